"""The C kernels against NumPy and mpmath."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from private import N_LANES, bslm_sweep, evaluate_fields, gibbs_sweeps, row_fields, uniform


def symmetric(rng, d, scale=0.5):
    coupling = np.triu(rng.normal(scale=scale, size=(d, d)), 1)
    return coupling + coupling.T


def evaluate(fields, weights):
    tanh = np.empty_like(fields)
    return evaluate_fields(fields, weights, tanh), tanh


def test_tanh_and_log_cosh_are_good_to_the_last_digits():
    points = np.concatenate(
        [np.linspace(-45, 45, 801), np.logspace(-300, 2, 199), -np.logspace(-20, 2, 199), [0.0]]
    )
    for x in points:
        # Each alone, in any lane of the vector.
        lane = hash(x) % N_LANES
        weights = np.zeros(N_LANES)
        weights[lane] = 1
        log_cosh, tanh = evaluate(np.full((1, N_LANES), x), weights)
        exact = mpmath.tanh(mpmath.mpf(x))
        assert abs(tanh[0, lane] - exact) <= 5e-16 * abs(exact)
        assert abs(log_cosh - mpmath.log(mpmath.cosh(mpmath.mpf(x)))) <= 5e-16 * max(1, abs(x))


def test_values_that_are_not_finite():
    fields = np.full((1, N_LANES), 1.0)
    fields[0, 0] = np.nan
    log_cosh, tanh = evaluate(fields, np.ones(N_LANES))
    assert np.isnan(log_cosh) and np.isnan(tanh[0, 0])
    log_cosh, tanh = evaluate(np.full((1, N_LANES), -np.inf), np.ones(N_LANES))
    assert log_cosh == np.inf
    assert_array_equal(tanh, -1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 150), st.integers(0, 2**32 - 1))
def test_evaluate_fields(d, vectors, seed):
    rng = np.random.default_rng(seed)
    fields, weights = rng.normal(size=(d, vectors * N_LANES)), rng.random(vectors * N_LANES)
    log_cosh, tanh = evaluate(fields, weights)
    assert_allclose(tanh, np.tanh(fields), rtol=1e-15)
    assert log_cosh == pytest.approx((np.log(np.cosh(fields)) @ weights).sum(), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_row_fields(n, d, seed):
    rng = np.random.default_rng(seed)
    x, coupling, b = rng.choice([-1.0, 1.0], size=(n, d)), symmetric(rng, d), rng.normal(size=d)
    out = np.empty_like(x)
    row_fields(x, coupling, b, out)
    assert_allclose(out, x @ coupling + b, atol=1e-12)
    alone = np.empty_like(x[-1:])
    row_fields(x[-1:], coupling, b, alone)
    assert_array_equal(alone, out[-1:])


def textbook_sweep(spins, weights, coupling, intercept, step, alpha):
    """The updates of the paper, every tanh computed anew."""
    coupling, intercept, total = coupling.copy(), intercept.copy(), weights.sum()
    d = len(spins)
    for j in range(d):
        tanh = np.tanh(coupling @ spins + intercept[:, None])
        intercept[j] += step / total * (weights @ (spins[j] - tanh[j]))
    for j in range(d):
        for k in range(j + 1, d):
            t = np.tanh(coupling @ spins + intercept[:, None])
            slope = weights @ (2 * spins[j] * spins[k] - spins[k] * t[j] - spins[j] * t[k])
            slope -= alpha * coupling[j, k]
            coupling[j, k] = coupling[k, j] = coupling[j, k] + step * slope / (2 * total + alpha)
    return coupling, intercept


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 7),
    st.integers(1, 6),
    st.sampled_from([1e-7, 1e-3, 0.3, 3.0, 0.01]),
    st.sampled_from([1.0, 0.5, 1.7]),
    st.sampled_from([0.0, 2.5]),
    st.integers(0, 2**32 - 1),
)
def test_sweep_is_the_papers(d, vectors, distance, step, alpha, seed):
    """For steps of all sizes: the kernel has a formula for short ones."""
    rng = np.random.default_rng(seed)
    spins = rng.choice([-1.0, 1.0], size=(d, vectors * N_LANES))
    weights = rng.random(spins.shape[1])
    coupling, intercept = symmetric(rng, d, distance), rng.normal(scale=distance, size=d)
    expected = textbook_sweep(spins, weights, coupling, intercept, step, alpha)
    largest = max(np.abs(expected[0] - coupling).max(), np.abs(expected[1] - intercept).max())
    bslm_sweep(
        np.vstack([np.ones(spins.shape[1]), spins]).astype(np.float32),
        np.tanh(coupling @ spins + intercept[:, None]),
        weights,
        spins * weights,
        (spins * weights) @ spins.T,
        spins @ weights,
        coupling,
        intercept,
        np.empty((2, d)),
        weights.sum(),
        step,
        alpha,
    )
    # A step by delta multiplies rounding errors by up to exp(2 delta), until the next sweep.
    tolerance = 1e-12 * np.exp(2 * largest)
    assert_allclose(coupling, expected[0], rtol=tolerance, atol=tolerance)
    assert_allclose(intercept, expected[1], rtol=tolerance, atol=tolerance)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.sampled_from([1.0, 0.3]), st.integers(0, 2**60))
def test_gibbs_sweeps(n, d, scale, seed):
    rng = np.random.default_rng(seed)
    x, coupling, offset = (
        rng.choice([-1.0, 1.0], size=(n, d)),
        symmetric(rng, d),
        rng.normal(size=d),
    )
    free = rng.random((n, d)) < 0.7
    expected = x.copy()
    for sweep in range(5, 8):
        u = np.empty((n, d))
        uniform(u, seed, sweep)
        for j in range(d):
            p = expit(2 * (scale * (expected @ coupling)[:, j] + offset[j]))
            expected[:, j] = np.where(free[:, j], np.where(u[:, j] < p, 1, -1), expected[:, j])
    local = x @ coupling
    gibbs_sweeps(x, local, coupling, offset, scale, free.view(np.uint8), seed, 5, 3)
    assert_array_equal(x, expected)
    assert_allclose(local, x @ coupling, atol=1e-12)


def test_gibbs_with_fields_beyond_the_range_of_exp():
    x, free = np.ones((4, 2)), np.ones((4, 2), dtype=np.uint8)
    gibbs_sweeps(x, np.zeros((4, 2)), np.zeros((2, 2)), np.array([-1e4, 1e4]), 1.0, free, 0, 0, 1)
    assert_array_equal(x, [[-1, 1]] * 4)
