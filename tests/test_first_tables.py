"""What a new user meets first with tables of words and levels: each test was a defect once."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_boltz import (
    SDCPRBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
)
from sklearn_boltz.inspection import CouplingDisplay, LandscapeDisplay, SampleDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "city": rng.choice(["Cairo", "Oslo", "Rome"], n),
            "member": rng.random(n) < 0.4,
            "kids": rng.integers(0, 4, n),
        }
    )


@pytest.mark.parametrize("constant", ["x", 5])
def test_a_constant_column_beside_categories(constant):
    table = people().assign(c=constant)
    model = FVBMPseudoLikelihood(alpha=0.1).fit(table)
    names = model.get_feature_names_out()
    assert f"c={model.categories_[3][0]}" in names and "c=(unused)" in names
    assert len(names) == len(model.coupling_)
    result = model.inference(table)
    assert len(result.names) == len(result.estimate)
    assert list(model.to_networkx().nodes) == list(table.columns)
    assert len(model.bootstrap(table, 2, random_state=0).to_frame())
    for kind in ("heatmap", "graph"):
        display = CouplingDisplay.from_estimator(model, kind=kind)
        assert (display.pairs_ is None) == (kind == "heatmap")
    framed = model.set_output(transform="pandas").transform(table)
    assert list(framed.columns) == list(names)
    for density in (model, FSLLDensity().fit(table)):
        assert density.predict_column_proba(table[:2], "c").tolist() == [[1.0], [1.0]]
    parts = [("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood(alpha=0.1))]
    mixture = BoltzmannMixture(parts, random_state=0).fit(table)
    assert mixture.predict_column_proba(table[:1], "c").tolist() == [[pytest.approx(1)]]


DATES = {
    "datetime64": lambda days: pd.to_datetime(days),
    "zone": lambda days: pd.to_datetime(days).tz_localize("UTC"),
    "timedelta": lambda days: pd.to_datetime(days) - pd.Timestamp("2020-01-01"),
    "period": lambda days: pd.PeriodIndex(days, freq="D"),
    "date": lambda days: [datetime.date.fromisoformat(day) for day in days],
    "polars": lambda days: pl.Series(days).str.to_datetime(),
}


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("n_days", [3, 80])
@pytest.mark.parametrize(
    "model",
    [FVBMPseudoLikelihood(), FSLLDensity(), SDCPRBM(2, max_iter=1), BoltzmannImputer()],
    ids=lambda model: type(model).__name__,
)
def test_dates_are_refused(model, n_days, kind):
    days = [str(day) for day in np.datetime64("2020-01-01") + np.arange(120) % n_days]
    table = people()
    if kind == "polars":
        table = pl.DataFrame(table.to_dict("list")).with_columns(DATES[kind](days).alias("day"))
    else:
        table["day"] = DATES[kind](days)
    with pytest.raises(
        ValueError, match="'day' contains datetimes, which are not supported. Drop it"
    ):
        clone(model).fit(table)


def test_a_network_of_levels_from_zero_begins_an_rbm():
    table = people()
    rbm = SDCPRBM(5, init=FVBMPseudoLikelihood(penalty="group"), max_iter=0, random_state=0)
    zero, one = (clone(rbm).fit(table.assign(kids=table["kids"] + shift)) for shift in (0, 1))
    assert_allclose(zero.components_, one.components_, atol=1e-4)
    other = FVBMPseudoLikelihood().fit(table.assign(kids=table["kids"] % 3))
    with pytest.raises(ValueError, match="init was fitted to other columns"):
        clone(rbm).set_params(init=other).fit(table)


def test_a_constant_number_has_no_variance():
    table = people()[["city", "member"]].assign(heat=36.6)
    table.loc[::5, ["city", "heat"]] = None
    imputer = BoltzmannImputer().fit(table)
    assert isinstance(imputer.estimator_, FVBMPseudoLikelihood)
    filled = imputer.transform(table)
    assert (filled["heat"] == 36.6).all() and filled["heat"].dtype == np.float64
    new = table[:3].assign(heat=[40.0, np.nan, 36.6])
    assert imputer.transform(new)["heat"].tolist() == [40.0, 36.6, 36.6]


def test_more_or_fewer_values_than_words():
    table = people()
    for model in (FSLLDensity(n_values=5), FVBMPseudoLikelihood(n_values=5, alpha=0.1)):
        model.fit(table)
        assert model.transform(table).shape[1] == len(model.get_feature_names_out())
        p = model.predict_column_proba(table[:4], "city")
        assert p.shape == (4, 3)
        assert_allclose(p.sum(axis=1), 1)
        words = r"column 'city' has 3 categories \('Cairo', 'Oslo', 'Rome'\), but n_values allows 2"
        with pytest.raises(ValueError, match=words):
            model.set_params(n_values=[2, 2, 4]).fit(table)


@pytest.mark.parametrize(
    "model", [FSLLDensity(), FVBMPseudoLikelihood(alpha=0.1)], ids=lambda m: type(m).__name__
)
def test_unknown_levels_from_zero_on(model):
    table = people()
    new, hidden = table[:3].assign(kids=[9, 1, 4]), table[:3].assign(kids=[np.nan, 1, np.nan])
    strict = clone(model).set_params(unseen="error").fit(table)
    words = "values from 0 to 3 in column 'kids', but row 0 has the value 9. Set `n_values` to the"
    with pytest.raises(ValueError, match=words) as raised:
        strict.score_samples(new)
    assert "FSLLDensity," not in str(raised.value) and "missing" not in str(raised.value)
    lenient = clone(model).set_params(unseen="missing").fit(table)
    assert_array_equal(lenient.score_samples(new), strict.score_samples(hidden))
    assert lenient.impute(new)["kids"].tolist() == [9, 1, 4]
    assert_array_equal(
        lenient.predict_column_proba(new, "city"), strict.predict_column_proba(hidden, "city")
    )
    with pytest.raises(ValueError, match="row 0 has the value -2"):
        lenient.score_samples(table[:1].assign(kids=-2))


META = [
    BoltzmannImputer(),
    BoltzmannOutlierDetector(),
    BoltzmannMixture([("terms", FSLLDensity())]),
    BoltzmannClassifier(),
]


@pytest.mark.parametrize("model", META, ids=lambda model: type(model).__name__)
def test_two_columns_of_a_name_and_single_columns(model):
    table, y = people(), np.arange(120) % 2
    twice = pd.concat([table, table[["city"]]], axis=1)
    name = type(model).__name__
    with pytest.raises(ValueError, match=f"{name}: the table has two columns named 'city'"):
        clone(model).fit(twice, y)
    for single in (table["city"], table["city"].tolist()):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead: a table"):
            clone(model).fit(single, y)


def test_one_row_of_words():
    model = FVBMPseudoLikelihood().fit(people())
    with pytest.raises(ValueError, match=r"shape \(3,\).* take one row by X.iloc\[\[0\]\]"):
        model.score_samples(people().iloc[0])


def test_given_values_of_a_mixture():
    mixture = BoltzmannMixture(META[2].estimators).fit(people())
    words = "`given` has the value 'Paris' for column 'city'. Give one of its values: 'Cairo', "
    with pytest.raises(ValueError, match=words):
        mixture.sample(given={"city": "Paris"})
    assert set(mixture.sample(20, given={"city": "Oslo"}, random_state=0)["city"]) == {"Oslo"}


def test_images_and_maps_need_numbers():
    table = people()
    with pytest.raises(ValueError, match="Images need numbers, and these rows have others"):
        SampleDisplay.from_rows(table[:4][["city", "member"]], image_shape=(1, 2))
    tap = TAPRBM(2, max_iter=1).fit(table)
    with pytest.raises(ValueError, match="could not convert string to float"):
        LandscapeDisplay.from_estimator(tap, table)


def test_minus_one_is_a_level_or_a_missing_cell():
    table = people().assign(vote=np.random.default_rng(1).choice([-1, 0, 1], 120))
    remedy = r"If it is a value, use words, or .astype\('category'\) in a data frame"
    for model in (FSLLDensity(), FVBMPseudoLikelihood(alpha=0.1), SDCPRBM(2, max_iter=1)):
        with pytest.raises(ValueError, match=remedy):
            clone(model).fit(table)
        named = clone(model).fit(table.assign(vote=table["vote"].astype("category")))
        assert set(named.sample(50, random_state=0)["vote"]) == {-1, 0, 1}
    gaps = table.astype({"vote": "Int64"})
    gaps.loc[::4, "vote"] = pd.NA
    with pytest.warns(UserWarning, match="column 'vote': -1 beside 0 and 1 looks like a code"):
        imputer = BoltzmannImputer().fit(gaps)
    filled = imputer.transform(gaps)["vote"]
    assert filled.dtype == "Int64" and set(filled) == {-1, 0, 1}


def test_lazy_frames():
    lazy = pl.DataFrame({"a": [0, 1] * 10}).lazy()
    for model in (FVBMPseudoLikelihood(), SDCPRBM(2, max_iter=1), BoltzmannImputer()):
        with pytest.raises(ValueError, match="X is a lazy frame.* Call .collect()"):
            clone(model).fit(lazy)


def test_a_column_of_spins_and_one_of_amounts():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3)).astype(float)
    X[:, 1] = np.where(X[:, 1] > 0, 1, -1)
    with pytest.raises(ValueError, match=r"column 1.*values -1 and 1 only. Recode it by \(x \+ 1"):
        FVBMPseudoLikelihood().fit(X)
    X[:, 1] = np.linspace(0, 30, 60)
    with pytest.raises(ValueError, match="column 1, but row 1 .*Put the numbers into bins, for ex"):
        FVBMPseudoLikelihood().fit(X)
