"""Sparse networks: the penalties, the solver, the path and the choice on it."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.fully_visible.sparse._descent import descend
from sklearn_boltz.fully_visible.sparse._network import network_of
from sklearn_boltz.fully_visible.sparse._penalty import Penalty
from sklearn_boltz.fully_visible.training._objective import PseudoLikelihood


def spins(n_rows, d, seed, missing=0.0):
    """Rows of a chain, ±1, some cells NaN."""
    rng = np.random.default_rng(seed)
    X = np.cumprod(rng.choice([-1, 1], size=(n_rows, d), p=[0.3, 0.7]), axis=1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def table(n_rows, n_values, seed):
    """Categorical columns, each near the one before."""
    rng = np.random.default_rng(seed)
    mood = rng.normal(size=n_rows)
    columns = []
    for q in n_values:
        mood = 0.7 * mood + rng.normal(size=n_rows)
        columns.append(np.clip(np.floor(mood + q / 2), 0, q - 1))
    return np.column_stack(columns).astype(int)


def mean_slopes(X, coupling, intercept, weights=None):
    """Of the mean log pseudo-likelihood of rows of ±1, NaN missing: by each M_jk and b_j.

    As if M_jk and M_kj were two parameters, the row being the equation.
    """
    weights = np.ones(len(X)) if weights is None else weights
    known, filled = ~np.isnan(X), np.nan_to_num(X)
    off = (filled - np.tanh(filled @ coupling.T + intercept)) * known * weights[:, None]
    return off.T @ filled / weights.sum(), off.sum(axis=0) / weights.sum()


def standard_deviations(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    known = ~np.isnan(X)
    mean = weights @ np.nan_to_num(X) / (weights @ known)
    return np.sqrt(1 - mean**2)


def assert_kkt(slope, coupling, strength, ridge=0.0, atol=2e-5):
    """The conditions of a maximum of an objective less Σ strength |m| + ½ ridge m²."""
    here = coupling != 0
    assert_allclose(slope[here], (strength * np.sign(coupling) + ridge * coupling)[here], atol=atol)
    assert (np.abs(slope) <= strength + atol)[~here].all()


@settings(max_examples=cases(25))
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(20, 200),
    d=st.integers(2, 7),
    alpha=st.floats(0.01, 0.5),
    l1_ratio=st.floats(0.05, 1.0),
    standardize=st.booleans(),
    nodewise=st.booleans(),
    missing=st.sampled_from([0.0, 0.2]),
)
def test_kkt_of_binary_columns(seed, n_rows, d, alpha, l1_ratio, standardize, nodewise, missing):
    X = spins(n_rows, d, seed, missing)
    X[0], X[1] = 1, -1  # no constant column
    weights = np.random.default_rng(seed).uniform(0.5, 3, len(X))
    model = FVBMPseudoLikelihood(
        penalty="elasticnet", alpha=alpha, l1_ratio=l1_ratio, standardize=standardize,
        nodewise=nodewise, rule="or", missing="observed",
    ).fit(X, sample_weight=weights)  # fmt: skip
    assert model.converged_ and np.isfinite(model.coupling_).all()
    if nodewise:
        return  # the two couplings of a pair are seen below, on the path
    sd = standard_deviations(X, weights) if standardize else np.ones(d)
    by_pair, by_intercept = mean_slopes(X, model.coupling_, model.intercept_, weights)
    assert_allclose(by_intercept, 0, atol=2e-5)
    weight = np.outer(sd, sd)
    off = ~np.eye(d, dtype=bool)
    assert_kkt(
        (by_pair + by_pair.T)[off],
        model.coupling_[off],
        (alpha * l1_ratio * weight)[off],
        (alpha * (1 - l1_ratio) * weight**2)[off],
    )


def test_rple(shared_data):
    """GraphicalModelLearning.jl's matrices, by node, symmetrised by the mean."""
    for name in "abc":
        folder = shared_data / "oracles" / "rple"
        samples = np.loadtxt(folder / f"{name}_samples.csv", delimiter=",", dtype=int)
        learned = np.loadtxt(folder / f"{name}_RPLE_learned.csv", delimiter=",")
        counts, X = samples[:, 0], samples[:, 1:]
        alpha = 0.2 * np.sqrt(np.log(X.shape[1] ** 2 / 0.05) / counts.sum())
        model = FVBMPseudoLikelihood(
            penalty="l1", alpha=alpha, nodewise=True, rule="or", standardize=False, tol=1e-10
        ).fit(X, sample_weight=counts)
        assert_allclose(model.coupling_ + np.diag(model.intercept_), learned, atol=1e-7)


@pytest.mark.parametrize("name, file, key", [
    ("nltcs", "nltcs", "train"), ("spikes50", "spikes_maxent_toolbox", "spikes50"),
])  # fmt: skip
def test_isingfit(shared_data, name, file, key):
    """R's IsingFit 0.4: its edges, weights and thresholds on the scale of 0 and 1."""
    with np.load(shared_data / f"{file}.npz") as data:
        X = data[key][:6000]
    folder = shared_data / "oracles" / "isingfit"
    weights, thresholds, alphas = (
        np.loadtxt(folder / f"{name}_{what}.csv", delimiter=",")
        for what in ("weights", "thresholds", "lambda")
    )
    model = FVBMPseudoLikelihood(penalty="l1", alpha="ebic", nodewise=True).fit(X)
    pairs = np.triu_indices(len(weights), 1)
    assert ((model.coupling_ != 0) == (weights != 0))[pairs].mean() >= 0.97
    assert_allclose(4 * model.coupling_, weights, atol=0.02)
    assert_allclose(model.alpha_, 2 * alphas, rtol=1e-6)
    assert model.path_.n_edges[-1].shape == alphas.shape and len(thresholds) == len(alphas)
