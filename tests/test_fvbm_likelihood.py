"""Maximum likelihood: the moments of the model are those of the data."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.fully_visible.training._likelihood import Likelihood
from sklearn_boltz.fully_visible.training._objective import PseudoLikelihood

ALL = {d: np.array(list(itertools.product([-1.0, 1.0], repeat=d))) for d in range(1, 8)}


def terms(x):
    """Sufficient statistics of rows of ±1, (n, q)."""
    j, k = np.triu_indices(x.shape[1], 1)
    return np.hstack([x, x[:, j] * x[:, k]])


def log_likelihood(theta, x, weights, penalty=0.0):
    """By brute force, with the penalty on the couplings."""
    d = x.shape[1]
    log_z = np.logaddexp.reduce(terms(ALL[d]) @ theta)
    return weights @ (terms(x) @ theta - log_z) - penalty / 2 * (theta[d:] ** 2).sum()


def problem_of(x, weights, alpha=0.0):
    return Likelihood.of(PseudoLikelihood(np.ascontiguousarray(x.T), weights, alpha))


def rows(seed, d, n=60):
    """Rows of a network, all values of all pairs among them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.4, d * (d + 1) // 2)
    p = np.exp(terms(ALL[d]) @ theta)
    drawn = ALL[d][rng.choice(2**d, size=n, p=p / p.sum())]
    return np.vstack([drawn, ALL[d]]) if d < 4 else np.vstack([drawn, 2 * np.eye(d) - 1,
        1 - 2 * np.eye(d), np.ones((1, d)), -np.ones((1, d))])  # fmt: skip


sizes = st.integers(2, 6)
seeds = st.integers(0, 2**32 - 1)


@given(seeds, sizes, st.sampled_from([0.0, 0.1, 3.0]))
@settings(max_examples=30)
def test_objective_gradient_and_information_are_those_of_brute_force(seed, d, alpha):
    x = rows(seed, d)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(x)).astype(float)
    problem = problem_of(x, weights, alpha)
    theta = rng.normal(0, 0.5, problem.n_parameters)
    point = problem.at(*problem.unpack(theta))
    arguments = x, weights, problem.penalty
    assert_allclose(point.value, log_likelihood(theta, *arguments))
    slope = approx_fprime(theta, log_likelihood, 1e-6, *arguments)
    assert_allclose(problem.gradient(point), slope, atol=1e-3 * weights.sum())
    p = np.exp(terms(ALL[d]) @ theta)
    information = weights.sum() * np.cov(terms(ALL[d]).T, aweights=p, ddof=0)
    pairs = np.arange(d, len(theta))
    information[pairs, pairs] += problem.penalty
    assert_allclose(problem.information(point), information, atol=1e-8 * weights.sum())


@given(seeds, sizes)
@settings(max_examples=30)
def test_the_moments_of_the_model_are_those_of_the_data(seed, d):
    x = rows(seed, d)
    weights = np.random.default_rng(seed).integers(1, 4, len(x)).astype(float)
    model = FVBMPseudoLikelihood(objective="likelihood", tol=1e-9).fit(x, sample_weight=weights)
    assert model.converged_
    p = np.exp(model.score_samples(ALL[d]))
    assert_allclose(p @ terms(ALL[d]), np.average(terms(x), axis=0, weights=weights), atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_the_maximum_is_that_of_another_optimiser(solver, alpha):
    x = rows(0, 5, 300)
    model = FVBMPseudoLikelihood(objective="likelihood", solver=solver, alpha=alpha, tol=1e-9)
    model.fit(x)
    ones = np.ones(len(x))
    arguments = x, ones, alpha * len(x)
    found = minimize(lambda *a: -log_likelihood(*a), np.zeros(15), args=arguments, tol=1e-12)
    estimate = np.concatenate([model.intercept_, model.coupling_[np.triu_indices(5, 1)]])
    assert_allclose(estimate, found.x, atol=2e-5)
    assert_allclose(model.history_["log_likelihood"][-1] * len(x), -found.fun)
    assert len(model.history_["seconds"]) == model.n_iter_


def test_no_other_pairwise_model_is_likelier():
    """Not the maximum pseudo-likelihood, nor the terms of two that FSLLDensity chooses."""
    x = rows(3, 7, 2000)
    best = FVBMPseudoLikelihood(objective="likelihood").fit(x).score(x)
    assert best > FVBMPseudoLikelihood().fit(x).score(x)
    codes = (x > 0).astype(int)
    assert best >= FSLLDensity(max_order=2, alpha=1e-9, tol=1e-9).fit(codes).score(codes) - 1e-6


def test_constant_columns_are_left_out():
    x = rows(1, 4, 100)
    with_constant = np.insert(x, 2, 1, axis=1)
    model = FVBMPseudoLikelihood(objective="likelihood").fit(with_constant)
    alone = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    assert not model.coupling_[2].any()
    assert_allclose(np.delete(model.intercept_, 2), alone.intercept_)


def test_pairs_that_never_meet_have_no_maximum():
    x = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]])
    with pytest.warns(ConvergenceWarning, match="The log-likelihood has no maximum: .*alpha=0.01"):
        model = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    assert np.isfinite(model.coupling_).all()
    assert not model.converged_
    assert FVBMPseudoLikelihood(objective="likelihood", alpha=0.01).fit(x).converged_


def test_a_face_of_three_variables_has_no_maximum():
    """All pairs of values occur, but never three ones together: a boundary of the moments."""
    x = np.array([c for c in itertools.product([0, 1], repeat=3) if sum(c) not in (0, 3)])
    with pytest.warns(ConvergenceWarning, match="is determined"):
        FVBMPseudoLikelihood(objective="likelihood").fit(x)


def test_missing_cells_raise_the_likelihood_of_what_is_observed():
    """At the maximum no small change of a parameter makes the observed cells likelier."""
    rng = np.random.default_rng(0)
    x = rows(5, 4, 300)
    x[rng.random(x.shape) < 0.2] = np.nan
    x = x[~np.isnan(x).all(axis=1)]
    model = FVBMPseudoLikelihood(objective="likelihood", tol=1e-7).fit(x)

    def observed(theta):
        weight = terms(ALL[4]) @ theta
        fits = (np.isnan(x)[:, None] | (x[:, None] == ALL[4])).all(axis=2)
        sums = np.logaddexp.reduce(np.where(fits, weight, -np.inf), axis=1)
        return (sums - np.logaddexp.reduce(weight)).sum()

    estimate = np.concatenate([model.intercept_, model.coupling_[np.triu_indices(4, 1)]])
    assert_allclose(model.score_samples(x).sum(), observed(estimate))
    assert_allclose(approx_fprime(estimate, observed, 1e-6), 0, atol=0.02)


def test_standard_errors_are_those_of_the_sandwich():
    x = rows(2, 4, 400)
    model = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    p = np.exp(model.score_samples(ALL[4]))
    information = len(x) * np.cov(terms(ALL[4]).T, aweights=p, ddof=0)
    scores = terms(x) - p @ terms(ALL[4])
    inverse = np.linalg.inv(information)
    covariance = inverse @ (scores.T @ scores) @ inverse
    assert_allclose(model.inference(x).covariance, covariance, rtol=1e-5)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"solver": "bslm"}, "solver='bslm' is for the pseudo-likelihood"),
        ({"missing": "observed"}, "use missing='em'"),
    ],
)
def test_what_does_not_go_with_the_likelihood(parameters, message):
    x = rows(1, 4)
    x[0, 0] = np.nan
    with pytest.raises(ValueError, match=message):
        FVBMPseudoLikelihood(objective="likelihood", **parameters).fit(x)


def test_a_large_table():
    """Of 22 columns: 4 million states."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(4000, 1))
    x = (rng.normal(size=(4000, 22)) + 0.7 * common > 0.8).astype(np.uint8)
    model = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    pairs = [(0, 1), (3, 21), (10, 11)]
    for j, k in pairs:
        table = np.histogram2d(x[:, j], x[:, k], bins=2)[0] / len(x)
        assert_allclose(model.marginal([j, k]), table, atol=1e-6)
