"""Scores are those of enumeration, to their stated error, whatever was called before.

Here sums are over all rows that a model can have. Of the package they use energies, which other
files compare with brute force. TAP's expansion of ln Z is an objective of training, no score.
"""

import itertools
from copy import deepcopy

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from private import _enumeration, _model
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    MaximumEntropy,
    RBMClassifier,
    SparseFVBM,
)


def exact_score(model, X):
    return -model.free_energy(X).mean() - model.log_partition("exact").value


SHORT = dict(max_iter=2, early_stopping=False, random_state=0)
UNTRACKED = SHORT | dict(track_likelihood=False)
# Estimators whose hidden layer has n units, or of the pairs of columns.
MODELS = {
    "SDCPRBM": lambda n: SDCPRBM(n, **SHORT),
    "hidden categories": lambda n: SDCPRBM(n // 2, hidden=("categorical", 3), **UNTRACKED),
    "Gaussian hidden": lambda n: SDCPRBM(n, hidden="gaussian", learning_rate=0.01, **UNTRACKED),
    "TAP": lambda n: TAPRBM(n, **SHORT),
    "grown": lambda n: InfiniteRBM(
        max_components=n, n_model_samples=32, n_corrective=5, early_stopping=False, random_state=0
    ),
    "classifier": lambda n: RBMClassifier(n, **SHORT),
    "pairs": lambda n: FVBMPseudoLikelihood(),
    "few pairs": lambda n: SparseFVBM(alpha=0.02),
    "moments": lambda n: MaximumEntropy(random_state=0),
}
OF_BITS = {"moments", "classifier"}
SCALES = {"Gaussian hidden": 0.02}


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Small models count as too large for a sum over their states, which then is the truth."""
    monkeypatch.setattr(_enumeration, "EXACT_UNITS", 2)
    monkeypatch.setattr(_model, "MAX_STATES", 1)


def table(n_columns, n_levels, seed):
    """Columns that depend on each other, with all their levels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(n_levels, size=(60, n_columns))
    X = np.where(rng.random(X.shape) < 0.5, X[:, :1], X)
    return np.vstack([X, np.arange(n_levels)[:, np.newaxis].repeat(n_columns, axis=1)])


def disturbed(model, scale, rng):
    """The model with weights that no training would find."""
    for name in ("components_", "coupling_"):
        if hasattr(model, name):
            W = getattr(model, name)
            noise = rng.normal(0, scale, W.shape)
            noise = (noise + noise.T) * (W != 0) if name == "coupling_" else noise
            setattr(model, name, (W + noise).astype(W.dtype))
    return model


CALLS = [
    lambda m, X: m.log_partition(random_state=1),
    lambda m, X: m.log_partition("ais", n_chains=200, n_temperatures=100, random_state=0),
    lambda m, X: m.log_partition("exact") if hasattr(m, "components_") else None,
    lambda m, X: m.log_partition("tap") if isinstance(m, TAPRBM) else None,
    lambda m, X: m.score_samples(X[:5]),
    lambda m, X: m.sample(3, random_state=0),
    lambda m, X: deepcopy(m).score_samples(X[:5]),
]


@pytest.mark.filterwarnings("ignore")  # what is hardly trained says so
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=cases(1))  # the first values are those of the first case
@given(
    n_hidden=st.sampled_from([7, 6, 8, 9, 10, 11, 12, 13, 14]),
    n_levels=st.sampled_from([3, 2]),
    scale=st.sampled_from([1.0, 0.1, 0.5, 2.0]),
    seed=st.integers(0, 10**6),
    order=st.permutations(range(len(CALLS))),
)
def test_scores_are_those_of_enumeration(name, n_hidden, n_levels, scale, seed, order):
    """By chance, five standard errors are exceeded once in a million times."""
    n_levels = 2 if name in OF_BITS else n_levels
    X, model = table(5, n_levels, seed), MODELS[name](n_hidden)
    if n_levels > 2:
        model.set_params(columns="nominal", unseen="error")
    model.fit(X, *[X[:, 0]] * (name == "classifier"))
    model = disturbed(model, scale * SCALES.get(name, 1), np.random.default_rng(seed))
    every = np.array(list(itertools.product(range(n_levels), repeat=5)))
    expected = -model.free_energy(every)
    expected -= logsumexp(expected)
    before, found = deepcopy(model).score_samples(every), model.log_partition(random_state=0)
    assert found.method != "exact" and found.trusted
    assert_allclose(before, expected, rtol=0, atol=5 * found.std_err)
    assert_allclose(np.ptp(before - expected), 0, atol=1e-9)
    for k in order:
        CALLS[k](model, X)
    assert_array_equal(model.score_samples(every), before)


GREY = load_digits().data[:300] / 16
BITS = (GREY > 0.5).astype(np.float32)
EXPANDED = {
    "bits": (TAPRBM(12, learning_rate=0.2), BITS),
    "truncated": (TAPRBM(8, columns="truncated_gaussian", learning_rate=0.15), GREY[:, 20:32]),
    "gaussian": (TAPRBM(8, columns="gaussian", learning_rate=0.02), GREY[:, 20:30]),
    "deep": (TAPDBM((12, 8), learning_rate=0.2, pretrain_max_iter=5), BITS),
}


@pytest.mark.parametrize("case", EXPANDED)
def test_scores_do_not_use_the_expansion(case):
    model, X = EXPANDED[case]
    model = clone(model).set_params(**UNTRACKED | dict(max_iter=20)).fit(X)
    before = deepcopy(model).score_samples(X)
    exact, tap = model.log_partition("exact").value, model.log_partition("tap")
    ais = model.log_partition("ais", random_state=0)
    assert model.log_partition().method == "ladder"
    # TAP is off by more than the tolerance below, which can tell the two apart.
    assert abs(tap.value - exact) > 7 * ais.std_err
    # By chance, 5 standard errors are exceeded once in a million times.
    assert abs(model.log_partition_ - exact) < 5 * ais.std_err
    expected = -model.free_energy(X).mean() - model.log_partition_
    assert model.score(X) == pytest.approx(expected, rel=1e-12)
    assert not tap.trusted and "is not to be trusted: TAP is an expansion" in tap.verdict
    objective = -model.free_energy(X) - tap.value
    # With several hidden layers, TAP has the free energies of the objective, too.
    assert_allclose(model.tap_log_likelihood(X), objective, rtol=1e-3 if case == "deep" else 1e-12)
    model.tap_solutions(X[:5])
    assert_array_equal(model.score_samples(X), before)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))]
)
def test_a_search_finds_what_is_best_by_enumeration(seed):
    """Of folds of columns that depend on each other. Settings within .02 nats count as equal."""
    grid = {"inference": ["tap", "naive"], "n_components": [4, 13]}
    by = {"sampled": lambda model, X: model.score(X), "exact": exact_score}
    model = TAPRBM(learning_rate=0.2, **UNTRACKED | dict(max_iter=20, random_state=seed))
    columns = np.random.default_rng(seed).permutation(64)[:40]
    rows = BITS[:, columns] if seed else BITS
    found = GridSearchCV(model, grid, scoring=by, refit="sampled", cv=2).fit(rows).cv_results_
    sampled, exact = found["mean_test_sampled"], found["mean_test_exact"]
    assert_allclose(sampled, exact, atol=0.1)  # five standard errors
    assert exact[sampled.argmax()] >= exact.max() - 0.02 and np.ptp(exact) > 0.05
