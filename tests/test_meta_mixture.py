"""BoltzmannMixture: several densities of the same rows, and the weights of held-out rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.neighbors import KernelDensity
from sklearn.utils import Bunch

from oracles import assert_drawn
from private import likeliest_weights
from sklearn_boltz import (
    SDCPRBM,
    BoltzmannClassifier,
    BoltzmannMixture,
    FSLLDensity,
    FVBMPseudoLikelihood,
)

TERMS, PAIRS = (
    FSLLDensity(alpha=0.1, unseen="error"),
    FVBMPseudoLikelihood(alpha=0.01, unseen="error"),
)
RBM = SDCPRBM(n_components=3, max_iter=3, columns="nominal", unseen="error")
TWO = [("terms", TERMS), ("pairs", PAIRS)]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def discrete_rows(n=400, seed=0):
    """Rows of values 0 to 2 of four columns, of which two pairs depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n, 4))
    X[:, 1] = np.where(rng.random(n) < 0.7, X[:, 0], X[:, 1])
    X[:, 3] = np.where(rng.random(n) < 0.6, (X[:, 0] + X[:, 2]) % 3, X[:, 3])
    return X


EVERY = np.array(list(itertools.product(range(3), repeat=4)))


@pytest.fixture(scope="module")
def mixture():
    parts = [*TWO, ("rbm", RBM)]
    return BoltzmannMixture(parts, random_state=0).fit(discrete_rows())


def words(container=pd.DataFrame, n=300, seed=0):
    X = discrete_rows(n, seed)
    columns = {
        "skin": np.array(["fur", "feathers", "scales"])[X[:, 0]].tolist(),
        "legs": X[:, 1],
        "eggs": (X[:, 2] > 0).tolist(),
    }
    return container(columns)


# The density.


def test_the_mixture_of_enumerated_distributions(mixture):
    p = np.exp([part.score_samples(EVERY) for part in mixture.estimators_])
    assert_allclose(p.sum(axis=1), 1)  # all states there are
    assert_allclose(mixture.score_samples(EVERY), np.log(mixture.weights_ @ p), rtol=1e-10)
    assert np.exp(mixture.score_samples(EVERY)).sum() == pytest.approx(1)
    assert mixture.weights_.sum() == pytest.approx(1) and (mixture.weights_ >= 0).all()
    assert mixture.score(EVERY) == pytest.approx(mixture.score_samples(EVERY).mean())
    # Missing cells are summed out.
    gap = np.array([[1, np.nan, 2, np.nan], [np.nan] * 4])
    every = EVERY[(EVERY[:, 0] == 1) & (EVERY[:, 2] == 2)]
    expected = [logsumexp(mixture.score_samples(every)), 0]
    assert_allclose(mixture.score_samples(gap), expected, atol=1e-8)


def test_given_weights_need_no_rows():
    X = discrete_rows()
    by_hand = [part.fit(X).score_samples(EVERY) for part in (clone(TERMS), clone(PAIRS))]
    for weights, shares in [("uniform", [0.5, 0.5]), ([3, 1], [0.75, 0.25]), ((0, 2), [0, 1])]:
        mixture = BoltzmannMixture(TWO, weights=weights).fit(X)
        assert_allclose(mixture.weights_, shares)
        expected = np.log(np.array(shares) @ np.exp(by_hand))
        assert_allclose(mixture.score_samples(EVERY), expected, rtol=1e-10)
    alone = BoltzmannMixture(TWO[:1]).fit(X)
    assert_allclose(alone.score_samples(EVERY), by_hand[0])


class Rough(KernelDensity):
    """A density with an estimate of its constant that has given ends."""

    log_partition_, ends = 0.0, (-0.5, 0.25)

    def log_partition(self, random_state=None):
        return Bunch(value=0.0, low=self.ends[0], high=self.ends[1], trusted=False)


def test_ends_of_one_part():
    X = np.random.default_rng(0).normal(size=(50, 2))
    log_p = KernelDensity().fit(X).score_samples(X).mean()
    parts = [("rough", Rough()), ("kernels", KernelDensity())]
    mixture = BoltzmannMixture(parts, weights=[1, 3]).fit(X)
    bounds = mixture.score_bounds(X)
    assert bounds.value == pytest.approx(log_p) and not bounds.trusted
    assert bounds.low == pytest.approx(log_p + np.log(0.25 * np.exp(-0.25) + 0.75))
    assert bounds.high == pytest.approx(log_p + np.log(0.25 * np.exp(0.5) + 0.75))
    mixture.estimators_[0].ends = -np.inf, np.inf
    bounds = mixture.score_bounds(X)
    assert bounds.low == pytest.approx(log_p + np.log(0.75)) and bounds.high == np.inf
    mixture.weights_ = np.array([0.0, 1.0])
    without = mixture.score_bounds(X)
    assert without.low == without.high and without.trusted


# The weights.


@settings(max_examples=cases(30))
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 60))
def test_weights_are_as_good_as_those_of_another_optimiser(seed, n_parts, n_rows):
    rng = np.random.default_rng(seed)
    log_p = rng.normal(scale=rng.choice([0.01, 1, 30]), size=(n_rows, n_parts)) - 50
    row_weights = rng.exponential(size=n_rows)
    weights = likeliest_weights(log_p, row_weights, tol=1e-6)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)

    def loss(weights):
        with np.errstate(divide="ignore"):
            mixed = logsumexp(log_p + np.log(np.maximum(weights, 0)), axis=1)
        return -np.average(mixed, weights=row_weights)

    # At least as good as each part alone, and as what a general optimiser finds.
    bound = loss(weights) - 2e-6
    assert bound <= min(loss(corner) for corner in np.eye(n_parts))
    found = minimize(
        loss, np.full(n_parts, 1 / n_parts), method="SLSQP", bounds=[(1e-12, 1)] * n_parts,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )  # fmt: skip
    assert bound <= loss(found.x / found.x.sum())


def test_held_out_rows_gain_by_the_mixture(capsys):
    X = discrete_rows(300, seed=3)
    mixture = BoltzmannMixture(TWO, validation_fraction=0.2, random_state=0, verbose=1).fit(X)
    out = capsys.readouterr().out
    assert "[BoltzmannMixture] terms:" in out and "held-out log-likelihood" in out
    fitted_to_all = clone(TERMS).fit(X)
    assert mixture.named_estimators_["terms"].score(X) != fitted_to_all.score(X)
    _, held = mixture._divided(X, np.random.RandomState(0))
    assert len(held) == 60
    scores = [part.score(X[held]) for part in mixture.estimators_]
    assert mixture.score(X[held]) >= max(scores) - 1e-5


def test_rows_with_a_value_of_their_own_are_not_set_aside():
    table = words(n=200)
    table.loc[17, "skin"] = "shell"
    for seed in range(5):
        mixture = BoltzmannMixture(TWO, validation_fraction=0.5, random_state=seed).fit(table)
        assert np.isfinite(mixture.score_samples(table)).all()
    every = table.assign(skin=[f"skin{i // 2}" for i in range(200)]).head(20)
    one = BoltzmannMixture(TWO, validation_fraction=0.4, random_state=0)
    assert np.isfinite(one.fit(every).score(every))
    with pytest.raises(ValueError, match="have a value that no other row has"):
        one.fit(every.assign(skin=[f"skin{i}" for i in range(20)]))


# Samples and missing cells.


def test_samples():
    X = discrete_rows()
    mixture = BoltzmannMixture(TWO, weights=[0.3, 0.7]).fit(X)
    p = np.exp(mixture.score_samples(EVERY))
    rows = mixture.sample(20_000, random_state=0)
    assert rows.dtype == X.dtype
    assert_drawn(rows, EVERY, p)
    few = (EVERY[:, 1] == 2) & (EVERY[:, 3] == 0)
    rows = mixture.sample(5_000, random_state=1, given={1: 2, "x3": 0})
    assert_drawn(rows, EVERY[few], p[few] / p[few].sum())
    assert_array_equal(mixture.sample(5, random_state=2), mixture.sample(5, random_state=2))


def test_probabilities_of_a_column(mixture):
    # Of all rows by enumeration, whatever is in the column itself.
    p = np.exp(mixture.score_samples(EVERY)).reshape(3, 3, 3, 3)
    rows = np.array([[0, 1, 2, 0], [2, np.nan, 1, 1], [np.nan] * 4, [1, 1, np.nan, -7]])
    found = mixture.predict_column_proba(rows, 3)
    joint = np.array(
        [p[0, 1, 2], p[2, :, 1].sum(axis=0), p.sum(axis=(0, 1, 2)), p[1, 1].sum(axis=0)]
    )
    assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), atol=1e-8)
    for name in ("x3", -1):
        assert_array_equal(mixture.predict_column_proba(rows[:2], name), found[:2])
    whole = rows[:1].astype(int)
    assert_allclose(mixture.predict_column_proba(whole, 3), found[:1])
    assert whole.dtype == int and whole[0, 3] == 0  # left as it was
    no_such_method = BoltzmannMixture([("terms", TERMS), ("kernel", KernelDensity())])
    assert not hasattr(no_such_method, "predict_column_proba")


def test_imputation(mixture):
    gap = np.array([[2.0, np.nan, 1.0, np.nan]] * 1_000)
    few = EVERY[(EVERY[:, 0] == 2) & (EVERY[:, 2] == 1)]
    p = np.exp(mixture.score_samples(few) - mixture.score_samples(gap[:1]))
    assert_drawn(mixture.impute(gap, how="sample", random_state=0).astype(int), few, p)
    # The parts agree on the mode here. The RBM has categories, which have no mean.
    assert_array_equal(mixture.impute(gap[:1], how="mode"), few[[np.argmax(p)]])
    assert_array_equal(mixture.impute(gap[:1], how="mean"), few[[np.argmax(p)]])
    numbers = BoltzmannMixture(TWO, random_state=0).fit(discrete_rows())
    p = np.exp(numbers.score_samples(few) - numbers.score_samples(gap[:1]))
    assert_allclose(numbers.impute(gap[:1]), [p @ few], atol=1e-8)


# As a density of the other estimators over densities.


def test_kinds_of_columns_of_all_parts():
    X = np.random.default_rng(0).integers(3, size=(60, 3))
    parts = [("pairs", FVBMPseudoLikelihood(alpha=0.1)), ("terms", FSLLDensity())]
    mixture = BoltzmannMixture(parts, columns={1: range(5)}, random_state=0).fit(X)
    assert [part.n_values_.tolist() for part in mixture.estimators_] == [[3, 5, 3]] * 2
    assert clone(mixture).estimators[0][1].columns == "auto"
    classifier = BoltzmannClassifier(mixture, joint=True)
    with pytest.raises(ValueError, match="Leave `columns` at 'auto'"):
        classifier.fit(X, np.arange(60) % 2)


def test_as_a_density_of_classes():
    X = discrete_rows(600)
    y = X[:, 3]
    mixture = BoltzmannMixture([*TWO, ("rbm", clone(RBM).set_params(columns="auto"))])
    model = BoltzmannClassifier(mixture, random_state=0, calibration=False).fit(X[:, :3], y)
    # Each class knows the values of all rows: its probabilities sum to 1 over all of them.
    every = np.array(list(itertools.product(range(3), repeat=3)))
    table = model._rows(every)
    for part in model.estimators_:
        assert np.exp(part.score_samples(table)).sum() == pytest.approx(1)
    assert model.score(X[:, :3], y) > 0.5
    X = X[X[:, 0] != y]  # no class has all values in the first column
    model.fit(X[:, :3], X[:, 3])
    assert np.isfinite(model.predict_log_proba(every)).all()
