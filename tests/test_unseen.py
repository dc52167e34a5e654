"""Values that `fit` did not see have a small probability, and folds with them a finite score."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannMixture,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    RBMClassifier,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*looks like a code for a missing value"),
    pytest.mark.filterwarnings("ignore:.*has a single row"),
]
RBM = SDCPRBM(3, max_iter=5, early_stopping=False, random_state=0)
DENSITIES = [
    FSLLDensity(),
    FVBMPseudoLikelihood(),
    RBM,
    TAPRBM(3, max_iter=3, early_stopping=False, random_state=0),
    TAPDBM((2, 2), max_iter=2, pretrain_max_iter=2, random_state=0),
    InfiniteRBM(2, n_model_samples=50, random_state=0),
]
CLASSIFIER = RBMClassifier(3, max_iter=3, early_stopping=False, random_state=0)
WITH_SCORE = [
    *DENSITIES,
    FVBMPseudoLikelihood(alpha=0),
    CLASSIFIER,
    BoltzmannClassifier(),
    BoltzmannMixture([("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood())]),
]


def name(estimator):
    return type(estimator).__name__


def frame(seed, n=60, rare=6):
    """Independent columns: words of which most are rare, counts, bits, and declared categories."""
    rng = np.random.default_rng(seed)
    chances = np.r_[0.4, 0.4, np.full(rare, 0.2 / rare)]
    return pd.DataFrame({
        "city": rng.choice([f"c{k}" for k in range(len(chances))], n, p=chances),
        "kids": rng.poisson(0.8, n),
        "member": rng.random(n) < 0.1,
        "size": pd.Categorical(rng.choice(["s", "m"], n), ["s", "m", "l"], ordered=True),
    })  # fmt: skip


@pytest.mark.parametrize("estimator", WITH_SCORE, ids=name)
@settings(max_examples=cases(3))
@given(seed=st.integers(0, 2**20), gaps=st.booleans(), container=st.sampled_from(["pd", "pl"]))
@pytest.mark.filterwarnings("ignore:.*no row that counts has a value")
@pytest.mark.filterwarnings("ignore:.*without an observed value")
def test_each_fold_of_a_cross_validation_is_finite(estimator, seed, gaps, container):
    table, rng = frame(seed), np.random.default_rng(seed)
    table["constant"] = np.where(np.arange(60) == 7, "other", "same")
    if gaps:
        table = table.astype(dict.fromkeys(["kids", "member", "constant"], object))
        table = table.mask(rng.random(table.shape) < 0.2)
        table["member"] = table["member"].where(np.arange(60) < 15)  # empty in a fold
    table = table if container == "pd" else pl.from_pandas(table)
    scores = cross_val_score(estimator, table, np.arange(60) % 2, cv=4, error_score="raise")
    assert np.isfinite(scores).all()


def test_a_grid_search_over_counts_and_rare_words():
    table = frame(0, 200, rare=8)[["kids", "city"]]
    table.loc[11, "kids"] = 7
    search = GridSearchCV(FVBMPseudoLikelihood(), {"alpha": [0.01, 0.1, 1.0]}, cv=5).fit(table)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = FVBMPseudoLikelihood().fit(table)
    strange = table[:5].assign(city="nowhere")
    commonest = table[:5].assign(city=table["city"].mode()[0])
    assert (model.score_samples(strange) < model.score_samples(commonest) - 3).all()


@pytest.mark.parametrize(
    "estimator", [FSLLDensity(), FVBMPseudoLikelihood(alpha=0.01), RBM], ids=name
)
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_all_rows_sum_to_one(estimator, seed):
    """With one more value in each column. ln Z is exact in all three."""
    table = frame(seed)
    model = estimator.fit(table)
    kids = range(table["kids"].max() + 1)
    domain = [
        [*table["city"].unique(), "nowhere"], [*kids, 99], [False, True, "perhaps"],
        ["s", "m", "l", "xl"],
    ]  # fmt: skip
    rows = pd.DataFrame(product(*domain), columns=table.columns).astype({"member": object})
    assert logsumexp(model.score_samples(rows)) == pytest.approx(0, abs=1e-5)
    # A column that is summed out takes its other values along.
    some = rows[:1].assign(size=None)
    each = rows[:4]
    assert model.score_samples(some)[0] == pytest.approx(
        logsumexp(model.score_samples(each)), abs=1e-5
    )


@pytest.mark.parametrize("estimator", [*DENSITIES, CLASSIFIER], ids=name)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [1.0, 0.01])
def test_an_unseen_value_is_never_more_probable_than_the_rarest(estimator, seed, weight):
    table, y = frame(seed), np.arange(60) % 2
    weights = np.where(np.arange(60) % 3 == 0, weight, 1.0) * weight
    model = clone(estimator)
    target = {"y": y} if estimator is CLASSIFIER else {}
    model.fit(table, **target, sample_weight=weights)
    for column in ("city", "kids"):
        counts = table.groupby(column).size()
        rarest = counts.index[counts == counts.min()]
        strange = table.assign(**{column: "nowhere" if column == "city" else 50})
        unseen = model.score_samples(strange)
        for value in rarest:
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


@pytest.mark.parametrize("estimator", [*DENSITIES, CLASSIFIER], ids=name)
def test_other_ways_to_treat_unseen_values(estimator):
    table = frame(1)
    fit = (table, np.arange(60) % 2) if estimator is CLASSIFIER else (table,)
    model = clone(estimator).fit(*fit)
    strange = table[:3].assign(city=["nowhere", "c0", "c1"])
    gap = table[:3].assign(city=[None, "c0", "c1"])
    assert model.score_samples(strange)[0] < model.score_samples(gap)[0] - 2
    assert_array_equal(model.score_samples(strange)[1:], model.score_samples(gap)[1:])
    assert_allclose(model.transform(strange), model.transform(gap))
    assert model.impute(strange, how="mode")["city"].tolist() == ["nowhere", "c0", "c1"]
    assert_allclose(
        model.predict_column_proba(strange, "size"), model.predict_column_proba(gap, "size")
    )
    assert "nowhere" not in set(model.sample(20, random_state=0)["city"])
    with pytest.raises(ValueError, match="`given`.*'nowhere'"):
        model.sample(given={"city": "nowhere"})
    model.set_params(unseen="missing")
    assert_array_equal(model.score_samples(strange), model.score_samples(gap))
    model.set_params(unseen="error")
    with pytest.raises(ValueError, match="column 'city' has the value 'nowhere' in row 0"):
        model.score_samples(strange)


@pytest.mark.parametrize("estimator", DENSITIES[:3], ids=name)
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_counts_beyond_those_of_the_fit(estimator, container):
    bits = container({"kids": [0, 1, 1, 0, 0, 1] * 10, "x": [0, 1] * 30})
    model = clone(estimator).fit(bits)
    p = np.exp(model.score_samples(container({"kids": [0, 1, 5], "x": [0, 0, 0]})))
    assert 0 < p[2] < p[:2].min()
    assert_allclose(p.sum(), np.exp(model.score_samples(container({"kids": [None], "x": [0]}))[0]))
    if not isinstance(model, SDCPRBM):  # an RBM takes a fraction for the probability of a 1
        with pytest.raises(ValueError, match=r"0\.5"):
            model.score_samples(container({"kids": [0.5], "x": [1.0]}))


@pytest.mark.parametrize("estimator", DENSITIES[:3], ids=name)
def test_arrays_of_bits_are_as_before(estimator):
    X = np.random.default_rng(0).integers(2, size=(60, 4))
    model = clone(estimator).fit(X)
    exact = -model.free_energy(X) - model.log_partition_
    assert_array_equal(model.score_samples(X), exact)
    if not isinstance(model, SDCPRBM):
        with pytest.raises(ValueError, match="row 0 has the value 7"):
            model.score_samples([[7, 0, 1, 0]])


@pytest.mark.parametrize("estimator", [*DENSITIES, CLASSIFIER], ids=name)
@pytest.mark.parametrize("container", ["frame", "array", "polars"])
def test_columns_without_a_value(estimator, container):
    """They change nothing, whatever is in them later."""
    X = np.random.default_rng(0).integers(2, size=(60, 3)).astype(float)
    empty = np.column_stack([X[:, :2], np.full(60, np.nan), X[:, 2]])
    later = np.column_stack([X[:, :2], np.arange(60), X[:, 2]])
    X, empty, later = (
        {"frame": pd.DataFrame, "polars": pl.DataFrame, "array": np.array}[container](table)
        for table in (X, empty, later)
    )
    y = [np.arange(60) % 2] if estimator is CLASSIFIER else []
    expected = clone(estimator).fit(X, *y)
    with pytest.warns(UserWarning, match="no row that counts has a value in column"):
        model = clone(estimator).fit(empty, *y)
    scores = model.score_samples(empty)
    assert_allclose(model.score_samples(later), scores, rtol=1e-6)
    if estimator in DENSITIES[:2]:
        assert_allclose(scores, expected.score_samples(X), atol=1e-9)
    filled = np.asarray(model.impute(empty, how="mode"), dtype=float)
    assert_array_equal(filled, np.asarray(empty, dtype=float))
    filled = np.asarray(model.impute(later, how="mode"), dtype=float)
    assert_array_equal(filled, np.asarray(later, dtype=float))
    assert np.isnan(np.asarray(model.sample(5, random_state=0), dtype=float)[:, 2]).all()
    assert np.isfinite(model.transform(later)).all()
    model.set_params(unseen="error")
    with pytest.raises(ValueError, match="it had no value there"):
        model.score_samples(later)


@pytest.mark.parametrize(
    "estimator", [*DENSITIES, FVBMPseudoLikelihood(alpha=0), CLASSIFIER], ids=name
)
def test_declared_categories_are_kept(estimator):
    table = frame(2)
    y = [np.arange(60) % 2] if estimator is CLASSIFIER else []
    for data in (
        table,
        pl.from_pandas(table).with_columns(pl.col("size").cast(pl.Enum(list("sml")))),
    ):
        model = clone(estimator).fit(data, *y)
        assert model.categories_[3].tolist() == ["s", "m", "l"]
        assert model.predict_column_proba(data, "size").shape == (60, 3)
        row = {"city": ["c0"], "kids": [0], "member": [False], "size": ["l"]}
        log_p = model.score_samples(type(data)(row))[0]
        row["size"] = ["m"]
        assert -30 < log_p < model.score_samples(type(data)(row))[0]


def test_more_values_than_the_kernels_number():
    codes = np.arange(40_000)[:, None]
    with pytest.raises(ValueError, match=r"column 0 has up to 40,000 values, and at most 32,767"):
        FVBMPseudoLikelihood(n_values=40_000).fit(codes)


@pytest.mark.parametrize("estimator", [None, FSLLDensity(), FVBMPseudoLikelihood()], ids=str)
def test_scores_of_a_classifier(estimator):
    """A word that no class has seen is less probable than a missing one, by ln 61."""
    table = frame(3)[["city", "member"]]
    model = BoltzmannClassifier(estimator, joint=True).fit(table, np.arange(60) % 2)
    strange, gap = (table.assign(city=value) for value in ("nowhere", None))
    difference = model.score_samples(gap) - model.score_samples(strange)
    assert_allclose(difference, np.log(61), atol=1e-9)
