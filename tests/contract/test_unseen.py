"""Values that `fit` did not see have a small probability, and folds with them a finite score."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from conftest import cases
from contract.estimators import DENSITIES, META, MODELS, OF_ANY_TABLE, each, each_with
from contract.frames import bits, people
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.fixes import parse_version

from sklearn_boltz import SDCPRBM, BoltzmannClassifier, FSLLDensity, FVBMPseudoLikelihood

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*looks like a code for a missing value"),
    pytest.mark.filterwarnings("ignore:.*has a single row"),
]
BRIEF = {"max_iter": 2, "early_stopping": False, "random_state": 0}
EXACT = [FSLLDensity(), FVBMPseudoLikelihood(alpha=0.01), SDCPRBM(3, **BRIEF)]
FRAMES = {"pandas": lambda frame: frame, "polars": pl.from_pandas}
if parse_version(sklearn.__version__) >= parse_version("1.9"):  # which can select rows of PyArrow
    FRAMES["PyArrow"] = pa.Table.from_pandas
UNPENALISED = FVBMPseudoLikelihood(alpha=0)


@each([*OF_ANY_TABLE, UNPENALISED, META[0]])
@settings(max_examples=cases(3))
@given(seed=st.integers(0, 2**20), gaps=st.booleans(), container=st.sampled_from(sorted(FRAMES)))
@pytest.mark.filterwarnings("ignore:.*no row has a value")
@pytest.mark.filterwarnings("ignore:.*without an observed value")
def test_each_fold_of_a_cross_validation_is_finite(estimator, seed, gaps, container):
    table, rng = people(seed=seed), np.random.default_rng(seed)
    table["constant"] = np.where(np.arange(60) == 7, "other", "same")
    if gaps:
        table = table.astype(dict.fromkeys(["kids", "member", "constant"], object))
        table = table.mask(rng.random(table.shape) < 0.2)
        table["member"] = table["member"].where(np.arange(60) < 15)  # empty in a fold
    table = FRAMES[container](table)
    scores = cross_val_score(estimator, table, np.arange(60) % 2, cv=2, error_score="raise")
    assert np.isfinite(scores).all()


@each(EXACT)
def test_probabilities_sum_to_one_with_all_other_values(estimator):
    """One more value in each column. ln Z is exact in all three."""
    table = people()
    model = clone(estimator).fit(table)
    kids = range(table["kids"].max() + 1)
    domain = [
        [*table["city"].unique(), "nowhere"], [*kids, 99], [False, True, "perhaps"],
        ["s", "m", "l", "xl"],
    ]  # fmt: skip
    rows = pd.DataFrame(product(*domain), columns=table.columns).astype({"member": object})
    assert logsumexp(model.score_samples(rows)) == pytest.approx(0, abs=1e-5)
    # A column that is summed out takes its other values along.
    summed = model.score_samples(rows[:1].assign(size=None))[0]
    assert summed == pytest.approx(logsumexp(model.score_samples(rows[:4])), abs=1e-5)


@each(OF_ANY_TABLE)
def test_an_unseen_value_is_never_more_probable_than_the_rarest(estimator):
    for seed, weight in enumerate([1.0, 0.01]):
        table = people(seed=seed)
        weights = np.where(np.arange(60) % 3 == 0, weight, 1.0) * weight
        model = clone(estimator).fit(table, sample_weight=weights)
        for column in ("city", "kids"):
            counts = table.groupby(column).size()
            strange = table.assign(**{column: "nowhere" if column == "city" else 50})
            unseen = model.score_samples(strange)
            for value in counts.index[counts == counts.min()]:
                seen = model.score_samples(table.assign(**{column: value}))
                assert (unseen <= seen + 1e-5).all(), (column, value, (unseen - seen).max())


def test_the_probability_of_an_unseen_value():
    table = pd.DataFrame({"word": ["a"] * 50 + ["b"] * 49})
    for model in (FSLLDensity(alpha=0), FVBMPseudoLikelihood()):
        p = np.exp(model.fit(table).score_samples(pd.DataFrame({"word": ["c", "a", "b"]})))
        assert p[0] == pytest.approx(1 / (99 + 2 + 1)) and p.sum() == pytest.approx(1)
    # Weights are counts, and those of rare values matter where they are less than 1.
    model.fit(table, sample_weight=np.where(table["word"] == "a", 1, 0.001))
    p = np.exp(model.score_samples(pd.DataFrame({"word": ["c", "b"]})))
    assert 0 < p[0] <= p[1]


@each(OF_ANY_TABLE)
def test_other_ways_to_treat_unseen_values(estimator):
    table = people(seed=1)
    model = clone(estimator).fit(table)
    strange = table[:3].assign(city=["nowhere", "c0", "c1"])
    gap = table[:3].assign(city=[None, "c0", "c1"])
    assert model.score_samples(strange)[0] < model.score_samples(gap)[0] - 2
    assert_array_equal(model.score_samples(strange)[1:], model.score_samples(gap)[1:])
    assert_allclose(model.transform(strange), model.transform(gap))
    assert model.impute(strange, how="mode")["city"].tolist() == ["nowhere", "c0", "c1"]
    found, expected = (model.predict_column_proba(rows, "size") for rows in (strange, gap))
    assert_allclose(found, expected)
    assert "nowhere" not in set(model.sample(20, random_state=0)["city"])
    with pytest.raises(ValueError, match="`given`.*'nowhere'"):
        model.sample(given={"city": "nowhere"})
    model.set_params(unseen="missing")
    assert_array_equal(model.score_samples(strange), model.score_samples(gap))
    model.set_params(unseen="error")
    with pytest.raises(ValueError, match="column 'city' has the value 'nowhere' in row 0"):
        model.score_samples(strange)


@each_with("container", [pd.DataFrame, pl.DataFrame], EXACT)
def test_counts_beyond_those_of_the_fit(estimator, container):
    frame = container({"kids": [0, 1, 1, 0, 0, 1] * 10, "x": [0, 1] * 30})
    model = clone(estimator).fit(frame)
    p = np.exp(model.score_samples(container({"kids": [0, 1, 5], "x": [0, 0, 0]})))
    assert 0 < p[2] < p[:2].min()
    assert_allclose(p.sum(), np.exp(model.score_samples(container({"kids": [None], "x": [0]}))[0]))
    if not isinstance(model, SDCPRBM):  # an RBM takes a fraction for the probability of a 1
        with pytest.raises(ValueError, match=r"0\.5"):
            model.score_samples(container({"kids": [0.5], "x": [1.0]}))


@each_with("container", [pd.DataFrame, pl.DataFrame, np.array], MODELS)
def test_columns_without_a_value(estimator, container):
    """They change nothing, whatever is in them later."""
    X = bits(dtype=float)
    empty, later = X.copy(), X.copy()
    empty[:, 2], later[:, 2] = np.nan, np.arange(60)
    others, empty, later = (container(t) for t in (np.delete(X, 2, axis=1), empty, later))
    with pytest.warns(UserWarning, match="no row has a value in column"):
        model = clone(estimator).fit(empty)
    scores = model.score_samples(empty)
    assert_allclose(model.score_samples(later), scores, rtol=1e-6)
    if estimator in DENSITIES[:2]:
        expected = clone(estimator).fit(others).score_samples(others)
        assert_allclose(scores, expected, atol=1e-9)
    for table in (empty, later):
        filled = np.asarray(model.impute(table, how="mode"), dtype=float)
        assert_array_equal(filled, np.asarray(table, dtype=float))
    assert np.isnan(np.asarray(model.sample(5, random_state=0), dtype=float)[:, 2]).all()
    assert np.isfinite(model.transform(later)).all()
    p = model.predict_column_proba(later, 2)
    assert_allclose(p, np.full_like(p, 1 / p.shape[1]))
    model.set_params(unseen="error")
    with pytest.raises(ValueError, match="it had no value there"):
        model.score_samples(later)


@each([*OF_ANY_TABLE, UNPENALISED])
def test_declared_categories_are_kept(estimator):
    table = people(seed=2)
    levels = pl.col("size").cast(pl.Enum(list("sml")))
    for data in (table, pl.from_pandas(table).with_columns(levels)):
        model = clone(estimator).fit(data)
        assert model.categories_[3].tolist() == ["s", "m", "l"]
        assert model.predict_column_proba(data, "size").shape == (60, 3)
        row = {"city": ["c0"], "kids": [0], "member": [False]}
        rare, common = (model.score_samples(type(data)({**row, "size": [s]}))[0] for s in "lm")
        assert -30 < rare < common


@pytest.mark.parametrize("estimator", [None, FSLLDensity(), FVBMPseudoLikelihood()], ids=str)
def test_scores_of_a_classifier(estimator):
    """A word that no class has seen is less probable than a missing one, by ln 61."""
    table = people(seed=3)[["city", "member"]]
    model = BoltzmannClassifier(estimator, joint=True).fit(table, np.arange(60) % 2)
    strange, gap = (table.assign(city=value) for value in ("nowhere", None))
    difference = model.score_samples(gap) - model.score_samples(strange)
    assert_allclose(difference, np.log(61), atol=1e-9)


@each(EXACT)
def test_a_value_that_columns_do_not_list_is_missing_if_so_asked(estimator):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(list("ab"), (40, 2)), columns=["u", "v"])
    other, gap = (pd.DataFrame({"u": [value], "v": ["a"]}) for value in ("z", None))
    model = clone(estimator).set_params(columns=[["a", "b"], "nominal"]).fit(table)
    with pytest.raises(ValueError, match="none of the values that `columns` lists"):
        model.score_samples(other)
    model = clone(model).set_params(unseen="missing").fit(table)
    assert_array_equal(model.score_samples(other), model.score_samples(gap))
