"""The C kernels against NumPy and mpmath."""

import itertools
from functools import partial

import mpmath
import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import (
    agreeing,
    enumerate_states,
    random_interactions,
    random_potts,
    random_spins,
    with_gaps,
)
from scipy.special import expit, logsumexp, softmax

from private import (
    _bslm,
    _gibbs,
    _interaction_gibbs,
    categorical_sweeps,
    draw_missing,
    enumerate_rows,
    importance_weights,
    room,
    uniform,
)


def swept(x, free, seed, rows, draw):
    """The states after some sweeps; `draw(x, j, u)` are the new values of a column."""
    x, numbers = x.copy(), np.empty((int(rows.max()) + 1, x.shape[1]))
    for sweep in range(FIRST, FIRST + N_SWEEPS):
        uniform(numbers, seed, sweep)
        u = numbers[rows]
        for j in range(x.shape[1]):
            x[:, j] = np.where(free[:, j], draw(x, j, u[:, j]), x[:, j])
    return x


seeds = st.integers(0, 2**60)
scales = st.sampled_from([1.0, 0.3])
FIRST, N_SWEEPS = 5, 3


def evaluate(fields, weights):
    tanh = np.empty_like(fields)
    return _bslm.evaluate_fields(fields, weights, tanh), tanh


def test_tanh_and_log_cosh_are_good_to_the_last_digits():
    points = np.concatenate(
        [np.linspace(-45, 45, 801), np.logspace(-300, 2, 199), -np.logspace(-20, 2, 199), [0.0]]
    )
    for x in points:
        # Each alone, in any lane of the vector.
        lane = hash(x) % _bslm.N_LANES
        weights = np.zeros(_bslm.N_LANES)
        weights[lane] = 1
        log_cosh, tanh = evaluate(np.full((1, _bslm.N_LANES), x), weights)
        exact = mpmath.tanh(mpmath.mpf(x))
        assert abs(tanh[0, lane] - exact) <= 5e-16 * abs(exact)
        assert abs(log_cosh - mpmath.log(mpmath.cosh(mpmath.mpf(x)))) <= 5e-16 * max(1, abs(x))


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


@settings(max_examples=cases(40))
@given(
    st.integers(1, 7), st.integers(1, 6), st.sampled_from([1e-7, 1e-3, 0.3, 3.0, 0.01]),
    st.sampled_from([1.0, 0.5, 1.7]), st.sampled_from([0.0, 2.5]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_sweep_is_the_papers(d, vectors, distance, step, alpha, seed):
    """For steps of all sizes: the kernel has a formula for short ones."""
    rng = np.random.default_rng(seed)
    spins = rng.choice([-1.0, 1.0], size=(d, vectors * _bslm.N_LANES))
    weights = rng.random(spins.shape[1])
    model = random_spins(d, seed, scale=distance)
    coupling, intercept = model.coupling, model.intercept
    expected = textbook_sweep(spins, weights, coupling, intercept, step, alpha)
    largest = max(np.abs(expected[0] - coupling).max(), np.abs(expected[1] - intercept).max())
    weighted = spins * weights
    _bslm.bslm_sweep(
        np.vstack([np.ones(spins.shape[1]), spins]).astype(np.float32),
        np.tanh(coupling @ spins + intercept[:, None]), weights, weighted, weighted @ spins.T,
        spins @ weights, coupling, intercept, np.empty((2, d)), weights.sum(), step, alpha,
    )  # fmt: skip
    # A step by delta multiplies rounding errors by up to exp(2 delta), until the next sweep.
    tolerance = 1e-12 * np.exp(2 * largest)
    assert_allclose(coupling, expected[0], rtol=tolerance, atol=tolerance)
    assert_allclose(intercept, expected[1], rtol=tolerance, atol=tolerance)


def enumerate_missing(model, codes, max_states=np.inf):
    p, log_sums = model.fields(codes), np.empty(len(codes))
    is_exact, adjacency = np.empty(len(codes), np.uint8), model.adjacency().view(np.uint8)
    arrays = model.coupling, model.starts, adjacency, max_states, log_sums, is_exact
    enumerate_rows(codes.astype(np.int32), p, *arrays)
    return p, log_sums, is_exact


def assert_enumerated(model, codes, atol=1e-9):
    states, _, weights = enumerate_states(model)
    p, log_sums, is_exact = enumerate_missing(model, codes)
    assert is_exact.all()
    for row, found, log_sum in zip(codes, p, log_sums, strict=True):
        fits = agreeing(states, row)
        expected = logsumexp(weights[fits]) - model.log_weight(row[None])[0]
        assert log_sum == pytest.approx(expected, rel=1e-12, abs=1e-11 * model.scale)
        for j in np.flatnonzero(row < 0):
            own = found[model.starts[j] : model.starts[j + 1]]
            expected = np.bincount(states[fits, j], softmax(weights[fits]), len(own))
            assert_allclose(own, expected, atol=atol)


@settings(max_examples=cases(60))
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.sampled_from([0.5, 3.0, 300.0]),
    st.sampled_from([0.3, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_enumerate_rows(n_values, scale, density, seed):
    """Couplings of 300 are too large for products of exponentials."""
    model = random_potts(n_values, seed, scale, density)
    states = enumerate_states(model)[0]
    codes = np.vstack([with_gaps(states, 5, seed, 0.6), np.full_like(states[:1], -1), states[:1]])
    assert_enumerated(model, codes)
    found, alone = enumerate_missing(model, codes), enumerate_missing(model, codes[2:3])
    for all_rows, row in zip(found, alone, strict=True):
        assert_array_equal(all_rows[2:3], row)


@pytest.mark.parametrize(
    "n_values", [[200, 3, 2], [2] * 13, [7, 5, 6, 7, 8], [12, 13, 12, 2], [170, 40]], ids=str
)
def test_enumerate_rows_of_many_states(n_values):
    """More than the blocks have, and columns with more values than a block has states."""
    model = random_potts(n_values, 1)
    assert_enumerated(model, np.full((1, len(n_values)), -1), 1e-12)


@pytest.mark.parametrize("n_drawn", range(5))
def test_importance_weights(n_drawn):
    """Their mean is the sum over all states, within five standard errors: a false alarm of 6e-6."""
    model = random_potts([3, 4, 2, 5], 2, 0.5)
    fields = np.stack([model.intercept, -2 * model.intercept])
    arrays = fields, model.coupling, model.starts, n_drawn
    log_weights = importance_weights(*arrays, 4000, 7, 0)
    for field, found in zip(fields, log_weights, strict=True):
        exact = logsumexp(enumerate_states(model.like(model.coupling, field))[2])
        weights = np.exp(found - exact)
        error = weights.std() / np.sqrt(4000)
        assert abs(weights.mean() - 1) <= 5 * error + 1e-12
        assert error < (0.02 if n_drawn else 1e-14)
    # A draw is a function of its number.
    assert_array_equal(importance_weights(*arrays, 10, 7, 30), log_weights[:, 30:40])


@settings(max_examples=cases(40))
@given(st.integers(1, 5), st.integers(1, 150), st.integers(0, 2**32 - 1))
def test_evaluate_fields(d, vectors, seed):
    rng = np.random.default_rng(seed)
    fields, weights = (
        rng.normal(size=(d, vectors * _bslm.N_LANES)),
        rng.random(vectors * _bslm.N_LANES),
    )
    log_cosh, tanh = evaluate(fields, weights)
    assert_allclose(tanh, np.tanh(fields), rtol=1e-15)
    assert log_cosh == pytest.approx((np.log(np.cosh(fields)) @ weights).sum(), rel=1e-12)


@settings(max_examples=cases(30))
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_row_fields(n, d, seed):
    x = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, d))
    model = random_spins(d, seed)
    coupling, b = model.coupling, model.intercept
    out = np.empty_like(x)
    _gibbs.row_fields(x, coupling, b, out)
    assert_allclose(out, x @ coupling + b, atol=1e-12)
    alone = np.empty_like(x[-1:])
    _gibbs.row_fields(x[-1:], coupling, b, alone)
    assert_array_equal(alone, out[-1:])


@settings(max_examples=cases(30))
@given(st.integers(1, 12), st.integers(1, 9), scales, seeds)
def test_gibbs_sweeps(n, d, scale, seed):
    rng, coupling = np.random.default_rng(seed), random_spins(d, seed, scale=0.5).coupling
    rows = rng.integers(10, size=n).astype(np.uint64)
    x, offset = rng.choice([-1.0, 1.0], size=(n, d)), rng.normal(size=d)
    free = rng.random((n, d)) < 0.7

    def draw(x, j, u):
        return np.where(u < expit(2 * (scale * (x @ coupling)[:, j] + offset[j])), 1, -1)

    expected, local = swept(x, free, seed, rows, draw), x @ coupling
    free = free.view(np.uint8)
    _gibbs.gibbs_sweeps(x, local, coupling, offset, scale, free, seed, FIRST, N_SWEEPS, rows)
    assert_array_equal(x, expected)
    assert_allclose(local, x @ coupling, atol=1e-12)


@settings(max_examples=cases(25))
@given(st.lists(st.integers(2, 4), min_size=1, max_size=5), st.integers(1, 9), scales, seeds)
def test_categorical_sweeps(n_values, n, scale, seed):
    rng, model = np.random.default_rng(seed), random_potts(n_values, seed)
    rows = rng.integers(10, size=n).astype(np.uint64)
    codes = np.stack([rng.integers(m, size=n) for m in n_values], axis=1).astype(np.int32)
    free, offset = rng.random(codes.shape) < 0.7, rng.normal(size=len(model.intercept))
    sums, expected_sums = np.zeros((2, n, len(offset)))
    d, expected, local = len(n_values), codes.copy(), model.one_hot(codes) @ model.coupling
    pairs = np.array(list(itertools.combinations(range(d), 2)), dtype=np.int64).reshape(-1, 2)
    pairs = rng.permutation(pairs)[:3]
    numbers = np.empty((10, d + 2 * len(pairs)))

    def fields(codes):
        return scale * (model.one_hot(codes) @ model.coupling) + offset

    def drawn(p, u):
        return (np.cumsum(p, axis=1) <= u[:, None] * p.sum(axis=1, keepdims=True)).sum(axis=1)

    for sweep in range(FIRST, FIRST + N_SWEEPS):
        uniform(numbers, seed, sweep)
        u = numbers[rows]
        for k, pair in enumerate(pairs):
            others = expected.copy()
            others[:, pair] = -1
            own, other = (fields(others)[:, model.places([j])] for j in pair)
            table = scale * model.coupling[np.ix_(*(model.places([j]) for j in pair))]
            p = softmax(own[:, :, None] + other[:, None] + table, axis=(1, 2))
            first = drawn(p.sum(axis=2), u[:, d + 2 * k])
            second = drawn(p[np.arange(n), first], u[:, d + 2 * k + 1])
            both, found = free[:, pair].all(axis=1), np.column_stack([first, second])
            expected[:, pair] = np.where(both[:, None], found, expected[:, pair])
        for j in range(d):
            p = softmax(fields(expected)[:, model.places([j])], axis=1)
            expected_sums[:, model.places([j])] += p * free[:, [j]]
            expected[:, j] = np.where(free[:, j], drawn(p, u[:, j]), expected[:, j])
    categorical_sweeps(
        codes, local, model.coupling, offset, model.starts, scale, pairs, free.view(np.uint8),
        np.empty(room(model.n_values, pairs)), seed, FIRST, N_SWEEPS, rows, sums,
    )  # fmt: skip
    assert_array_equal(codes, expected)
    assert_allclose(local, model.one_hot(codes) @ model.coupling, atol=1e-12)
    assert_allclose(sums, expected_sums, atol=1e-12)


@settings(max_examples=cases(25))
@given(st.lists(st.integers(2, 4), min_size=1, max_size=5), st.integers(1, 9), seeds)
def test_missing_cells_drawn_in_order(n_values, n, seed):
    rng, model = np.random.default_rng(seed), random_potts(n_values, seed)
    codes = np.stack([rng.integers(-1, m, size=n) for m in n_values], axis=1).astype(np.int32)
    strengths, rows = rng.random((len(n_values),) * 2), rng.integers(10, size=n).astype(np.uint64)
    strengths += strengths.T
    u, expected = np.empty((10, len(n_values))), codes.copy()
    uniform(u, seed, 0)
    for row, own in zip(expected, u[rows], strict=True):
        while (row < 0).any():
            missing, known = np.flatnonzero(row < 0), np.flatnonzero(row >= 0)
            j = missing[strengths[np.ix_(missing, known)].max(axis=1, initial=0).argmax()]
            p = softmax(model.fields(row[None])[0, model.places([j])])
            row[j] = (np.cumsum(p) <= own[j]).sum()
    free, pairs = codes < 0, np.array([[0, 1]][: len(n_values) - 1], dtype=np.int64).reshape(-1, 2)
    swept, sums = codes.copy(), np.zeros((n, sum(n_values)))
    drawn = partial(
        draw_missing, coupling=model.coupling, offset=model.intercept, starts=model.starts,
        strengths=strengths, pairs=pairs, work=np.empty(room(model.n_values, pairs)),
        seed=seed, rows=rows,
    )  # fmt: skip
    drawn(codes)
    assert_array_equal(codes, expected)
    # With the sweeps of the other kernel after them, of which the last ones count.
    drawn(swept, n_sweeps=3, n_first=2, sums=sums)
    chains, expected_sums = model.chains(codes, seed, free), np.zeros_like(sums)
    for step, added in enumerate([None, None, expected_sums], 1):
        categorical_sweeps(
            chains.codes, chains.local, model.coupling, model.intercept, model.starts, 1.0, pairs,
            chains.free, np.empty(room(model.n_values, pairs)), seed, step, 1, rows, added,
        )  # fmt: skip
    assert_array_equal(swept, chains.codes)
    assert_allclose(sums, expected_sums, atol=1e-12)


@settings(max_examples=cases(25))
@given(st.integers(1, 7), st.integers(1, 9), scales, seeds)
def test_interaction_sweeps(d, n, scale, seed):
    rng, model = np.random.default_rng(seed), random_interactions(d, seed)
    rows = rng.integers(10, size=n).astype(np.uint64)
    x, terms = rng.choice([-1.0, 1.0], size=(n, d)), model.arrays
    free, offset = rng.random(x.shape) < 0.7, rng.normal(size=d)

    def total(x):
        fields = x @ model.coupling
        for term, weight in zip(model.terms, model.weights, strict=True):
            for j in term:
                fields[:, j] += weight * x[:, [k for k in term if k != j]].prod(axis=1)
        return fields

    def draw(x, j, u):
        others = (x > 0).sum(axis=1) - (x[:, j] > 0)
        field = scale * (total(x)[:, j] + model.steps[others]) + offset[j]
        return np.where(u < expit(2 * field), 1, -1)

    sums = np.empty(n)
    _interaction_gibbs.sum_terms(x, *terms, sums)
    products = [x[:, term].prod(axis=1) for term in model.terms]
    assert_allclose(sums, model.weights @ np.reshape(products, (-1, n)), atol=1e-12)
    expected, local = swept(x, free, seed, rows, draw), x @ model.coupling
    by_column = model.chains(x > 0, 0).by_column
    _interaction_gibbs.add_term_fields(x, *terms, local)
    assert_allclose(local, total(x), atol=1e-12)
    _interaction_gibbs.interaction_sweeps(
        x, local, model.coupling, *terms, *by_column, model.steps, offset, scale,
        free.view(np.uint8), seed, FIRST, N_SWEEPS, rows,
    )  # fmt: skip
    assert_array_equal(x, expected)
    assert_allclose(local, total(x), atol=1e-12)
