"""The pseudo-likelihood of spins with its derivatives, and what is counted in its rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import differences, seeds

from private import PseudoLikelihood, Regressions, distinct_rows

alphas = st.sampled_from([0.0, 1.5])


def random_problem(seed, alpha=0.0, *, gaps=False, d=None):
    """Rows of -1 and 1, with 0 for missing cells, and parameters."""
    rng = np.random.default_rng(seed)
    d, n = d or rng.integers(1, 7), rng.integers(1, 40)
    values = [-1.0, 0.0, 1.0] if gaps else [-1.0, 1.0]
    problem = PseudoLikelihood(rng.choice(values, size=(d, n)), rng.random(n), alpha)
    return problem, rng.normal(scale=0.6, size=problem.n_parameters)


def value(problem, theta):
    return problem.at(theta).value


def gradient(problem, theta):
    return problem.gradient(problem.at(theta))


def information(problem, theta):
    return problem.information(problem.at(theta))


@settings(max_examples=60)
@given(seeds, alphas, st.booleans())
def test_objective_is_the_definition(seed, alpha, gaps):
    problem, theta = random_problem(seed, alpha, gaps=gaps)
    coupling, intercept = problem.unpack(theta)
    assert_array_equal(problem.pack(coupling, intercept), theta)
    x, w = problem.spins, problem.weights
    terms = -np.log1p(np.exp(-2 * x * (coupling @ x + intercept[:, None])))
    expected = (np.where(x == 0, 0, terms) @ w).sum()
    expected -= alpha / 2 * w.sum() * (theta[len(x) :] ** 2).sum()
    assert value(problem, theta) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@settings(max_examples=40)
@given(seeds, alphas, st.booleans())
def test_derivatives_are_finite_differences(seed, alpha, gaps):
    problem, theta = random_problem(seed, alpha, gaps=gaps)
    slope = differences(lambda theta: value(problem, theta), theta)
    assert_allclose(gradient(problem, theta), slope, atol=1e-6)
    bend = -differences(lambda theta: gradient(problem, theta), theta)
    assert_allclose(information(problem, theta), bend, atol=1e-6)
    direction = np.eye(len(theta))[0]
    moved = problem.moved(0.1 * direction)
    after = problem.after(problem.at(theta), 0.1 * direction, 0.5, moved)
    assert after.value == pytest.approx(value(problem, theta + 0.05 * direction))


@settings(max_examples=25)
@given(seeds)
def test_information_of_independent_variables_and_of_others_agree(seed):
    problem, theta = random_problem(seed, d=4)
    theta[4:] = 0
    almost = theta.copy()
    almost[-1] = 1e-12
    assert_allclose(information(problem, theta), information(problem, almost), atol=1e-9)


@settings(max_examples=25)
@given(seeds)
def test_score_products_are_those_of_single_rows(seed):
    problem, theta = random_problem(seed, alpha=0.7)
    rows = [PseudoLikelihood(x[:, None], np.ones(1)) for x in problem.spins.T]
    scores = np.array([gradient(row, theta) for row in rows])
    regressions = Regressions.of_spins(problem, problem.at(theta))
    expected = scores.T * problem.weights @ scores
    assert_allclose(regressions.score_products(), expected, atol=1e-11)


@settings(max_examples=50)
@given(st.integers(0, 140), st.integers(1, 30), seeds)
def test_distinct_rows(d, n, seed):
    rng = np.random.default_rng(seed)
    positive, weights = rng.random((3, d)) < 0.5, rng.random(n)
    positive = positive[rng.integers(3, size=n)]
    x, w = distinct_rows(positive, weights)
    expected, inverse = np.unique(positive, axis=0, return_inverse=True)
    order = np.lexsort(x[::-1]) if d else slice(None)
    assert_array_equal(x.T[order] > 0, expected)
    assert_allclose(w[order], np.bincount(inverse.ravel(), weights))


@settings(max_examples=50)
@given(seeds)
def test_rarest_cells_are_of_rows_with_both(seed):
    problem, _ = random_problem(seed, gaps=True)
    x, w = problem.spins, problem.weights
    for j, k in itertools.product(range(len(x)), repeat=2):
        cells = itertools.product((-1, 1), repeat=2) if j != k else [(-1, -1), (1, 1)]
        expected = min(w[(x[j] == s) & (x[k] == t)].sum() for s, t in cells)
        count, s, t = problem.rarest_cell(j, k)
        assert_allclose([count, w[(x[j] == s) & (x[k] == t)].sum()], expected, atol=1e-12)


@settings(max_examples=100)
@given(seeds, st.booleans())
def test_empty_cells_among_rows_with_both(seed, gaps):
    problem, _ = random_problem(seed, gaps=gaps)
    x = problem.spins[:, : problem.n_rows]
    expected = [
        (j, k, s, t)
        for j, k in itertools.combinations(range(len(x)), 2)
        for s, t in itertools.product((-1, 1), repeat=2)
        if not ((x[j] == s) & (x[k] == t)).any()
    ]
    assert problem.empty_cells() == expected
