"""The kernels against the NumPy lines that they equal."""

from itertools import pairwise

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax

from private import (
    _bernoulli_kernel,
    _gibbs_kernel,
    _random_kernel,
    class_gradients,
    class_log_weights,
)


def chains_at(dtype):
    """Weights, biases of both layers, and states of twenty chains."""
    rng = np.random.default_rng(0)
    W = rng.normal(0, 1, (10, 6)).astype(dtype)
    b, c = rng.normal(0, 1, 10).astype(dtype), rng.normal(0, 1, 6).astype(dtype)
    return W, b, c, (rng.random((20, 10)) < 0.5).astype(dtype)


def bits(bias):
    """`layers` and `runs` of binary units."""
    return np.array([[len(bias), 0]]), np.empty((0, 2), dtype=int)


# Two units of three columns, two bits, and a unit of two columns.
WORDS = np.array([[6, 1], [2, 0], [2, 1]]), np.array([[3, 2], [2, 1]])
DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1), (3, 7), (5, 16), (2, 1500)]


def uniform(shape, seed, step, first_row=0, dtype=np.float64):
    out = np.empty(shape, dtype)
    _random_kernel.uniform(out, seed, step, first_row)
    return out


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


def test_mean_sample_draw_and_softplus(dtype):
    for shape in SHAPES:
        assert_as_numpy(shape, dtype)


def assert_as_numpy(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 5, shape).astype(dtype)
    bias = rng.normal(0, 1, shape[1]).astype(dtype)
    eps = np.finfo(dtype).eps
    expected = expit(x.astype(float) + bias)
    mean, sample, drawn = x.copy(), x.copy(), np.empty_like(x)
    _bernoulli_kernel.bernoulli_mean(mean, bias)
    np.testing.assert_allclose(mean, expected, rtol=40 * eps)
    u = uniform(shape, 3, 4, 5, dtype)
    _bernoulli_kernel.bernoulli_sample(sample, bias, 3, 4, 5)
    clear = np.abs(u - expected) > 10 * eps
    np.testing.assert_array_equal(sample[clear], (u < expected)[clear])
    _bernoulli_kernel.bernoulli_draw(drawn, mean, 3, 4, 5)
    np.testing.assert_array_equal(drawn, u < mean)
    sums = np.empty(shape[0])
    _bernoulli_kernel.softplus_sums(x, bias, sums)
    exact = np.logaddexp(0, x.astype(float) + bias).sum(axis=1)
    np.testing.assert_allclose(sums, exact, rtol=20 * eps, atol=20 * eps * shape[1])


def test_extremes(dtype):
    x = np.array([[-np.inf, -1e4, -100, 100, 1e4, np.inf, np.nan]], dtype=dtype)
    zero = np.zeros(7, dtype)
    mean, sample, sums = x.copy(), x.copy(), np.empty(1)
    _bernoulli_kernel.bernoulli_mean(mean, zero)
    _bernoulli_kernel.bernoulli_sample(sample, zero, 0, 0)
    np.testing.assert_allclose(mean[0], [0, 0, 0, 1, 1, 1, np.nan], atol=1e-30)
    np.testing.assert_array_equal(sample[0], [0, 0, 0, 1, 1, 1, np.nan])
    _bernoulli_kernel.softplus_sums(np.array([[-200.0, 500, 3e4]], dtype), np.zeros(3, dtype), sums)
    assert sums[0] == pytest.approx(30500)
    _bernoulli_kernel.softplus_sums(x, zero, sums)
    assert np.isnan(sums[0])
    fields = np.array([[0.0, np.nan], [0.0, 1.0]], dtype)
    out = np.empty((2, 2))
    class_log_weights(fields, np.zeros((2, 2), dtype), np.zeros(2, dtype), out)
    np.testing.assert_array_equal(np.isnan(out), [[True, True], [False, False]])


# Zeros are left out of products where there are many, and few rows go another way than many.
@settings(max_examples=cases(80))
@given(
    n_rows=st.integers(1, 45),
    n_inner=st.integers(1, 70),
    n_columns=st.sampled_from([1, 2, 7, 8, 15, 16, 17, 33, 97, 100, 209, 500]),
    density=st.sampled_from([0.0, 0.1, 0.35, 0.6, 1.0]),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
def test_products_of_any_shape_and_density(n_rows, n_inner, n_columns, density, dtype, seed):
    rng = np.random.default_rng(seed)
    V = (rng.random((n_rows, n_inner)) * (rng.random((n_rows, n_inner)) < density)).astype(dtype)
    W = rng.normal(0, 1, (n_inner, n_columns)).astype(dtype)
    tolerance = dict(rtol=1e-4, atol=1e-5) if dtype == np.float32 else dict(rtol=1e-9, atol=1e-12)
    b, c = np.zeros(n_inner, dtype), rng.normal(0, 1, n_columns).astype(dtype)
    H = np.full((n_rows, n_columns), np.nan, dtype)
    _gibbs_kernel.gibbs_chains(W, b, c, *bits(b), V.copy(), H, 0, False, 0, 0)
    np.testing.assert_allclose(H, expit(V.astype(float) @ W + c), **tolerance)
    out, half = np.full((n_inner, n_columns), np.nan, dtype), n_inner // 2
    products = V.T.astype(float) @ H
    _gibbs_kernel.moments(V, H, 0.5, out, False)
    np.testing.assert_allclose(out, 0.5 * products, **tolerance)
    _gibbs_kernel.moments(V[:, half:], H, 1, out[half:], True)
    products[:half] *= 0.5
    products[half:] *= 1.5
    np.testing.assert_allclose(out, products, **tolerance)
    fields, back, loose = np.empty_like(H), np.empty_like(V), {**tolerance, "atol": 1e-4}
    _gibbs_kernel.hidden_fields(W, V, fields)
    np.testing.assert_allclose(fields, V.astype(float) @ W, **loose)
    _gibbs_kernel.visible_fields(W, H, back)
    np.testing.assert_allclose(back, H.astype(float) @ W.T, **loose)
    with pytest.raises(ValueError, match="shapes do not fit"):
        _gibbs_kernel.hidden_fields(W, V, fields[1:])
    # Down: samples agree wherever the uniform number is not next to the probability.
    chains = V.copy()
    _gibbs_kernel.gibbs_chains(W, b, c, *bits(b), chains, H.copy(), 1, True, 5, 6)
    p, u = expit(H.astype(float) @ W.T), uniform(V.shape, 5, 7, dtype=dtype)
    clear = np.abs(u - p) > 1e-4
    np.testing.assert_array_equal(chains[clear], (u < p)[clear])


SIZES = st.tuples(st.integers(1, 6), st.integers(1, 5), st.sampled_from([1, 7, 16, 40, 255, 300]))


@settings(max_examples=cases(60))
@given(sizes=SIZES, seed=st.integers(0, 2**16), scale=st.sampled_from([0.1, 3.0, 60.0]))
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_over_classes_and_their_gradients(dtype, sizes, seed, scale):
    (n_rows, n_classes, n_units), rng = sizes, np.random.default_rng(seed)
    fields = rng.normal(0, scale, (n_rows, n_units)).astype(dtype)
    label_fields = rng.normal(0, scale, (n_classes, n_units)).astype(dtype)
    bias = rng.normal(size=n_classes).astype(dtype)
    codes, target = rng.integers(-1, n_classes, size=n_rows), rng.random(n_rows)
    share = rng.normal(size=n_rows)
    # The kernel adds in its own type.
    field = (fields[:, None] + label_fields).astype(float)
    expected = bias + np.logaddexp(0, field).sum(axis=2)
    size = np.finfo(dtype).eps * (np.abs(field).sum(axis=2).max() + n_units)
    out, again = np.empty((2, n_rows, n_classes))
    class_log_weights(fields, label_fields, bias, out)
    np.testing.assert_allclose(out, expected, atol=20 * size)
    gradient, of_bias, found = np.zeros_like(label_fields), np.zeros(n_classes), fields.copy()
    sums = again, gradient, of_bias
    class_gradients(found, label_fields, bias, codes, target, share, *sums)
    np.testing.assert_array_equal(again, out)
    E = target[:, None] * (codes[:, None] == np.arange(n_classes))
    E += share[:, None] * softmax(out, axis=1)
    S, eps = expit(field), 50 * np.finfo(dtype).eps * (np.abs(E).sum() + n_rows)
    np.testing.assert_allclose(found, np.einsum("ny,nyj->nj", E, S), atol=eps)
    np.testing.assert_allclose(gradient, np.einsum("ny,nyj->yj", E, S), atol=eps)
    np.testing.assert_allclose(of_bias, E.sum(axis=0), atol=1e-12 * (1 + np.abs(E).sum()))


@pytest.mark.parametrize("from_hidden", [False, True])
def test_chains_equal_numpy(dtype, from_hidden):
    W, b, c, start = chains_at(dtype)
    V, H = start.copy(), start[:, :6].copy()
    v, h = V.copy(), H.copy()
    for k in range(3):
        if k > 0 or not from_hidden:
            h = (uniform(h.shape, 7, 10 + 2 * k, 4, dtype) < expit(v @ W + c)).astype(dtype)
        v = (uniform(v.shape, 7, 11 + 2 * k, 4, dtype) < expit(h @ W.T + b)).astype(dtype)
    _gibbs_kernel.gibbs_chains(W, b, c, *bits(b), V, H, 3, from_hidden, 7, 10, 4)
    np.testing.assert_array_equal(V, v)
    np.testing.assert_allclose(H, expit(v @ W + c), rtol=1e-5)


def drawn_columns(field, step, dtype):
    """One of the columns of each unit, all as wide as the rows of `field` are together."""
    weights = np.exp(field)
    u = uniform((len(field), field.shape[1]), 7, step, 4, dtype)
    ends, limit = weights.cumsum(axis=2), weights.sum(axis=2) * u
    chosen = (ends[..., :-1] <= limit[..., None]).sum(axis=2)
    return np.eye(field.shape[2], dtype=dtype)[chosen].reshape(len(field), -1)


def drawn_words(field, step, dtype):
    """States of `WORDS`."""
    bit = uniform((len(field), 2), 7, step + 1, 4, dtype) < expit(field[:, 6:8])
    first, last = field[:, :6].reshape(-1, 2, 3), field[:, 8:].reshape(-1, 1, 2)
    return np.hstack([drawn_columns(first, step, dtype), bit, drawn_columns(last, step + 2, dtype)])


@pytest.mark.parametrize("from_hidden", [False, True])
def test_chains_of_bits_and_words_equal_numpy(dtype, from_hidden):
    W, b, c, start = chains_at(dtype)
    V, H = start.copy(), start[:, :6].copy()
    v, h, first = V.copy(), H.copy(), 9 if from_hidden else 10
    for step in (first, first + 4, first + 8):
        if step >= 10:
            h = (uniform(h.shape, 7, step, 4, dtype) < expit(v @ W + c)).astype(dtype)
        v = drawn_words(h @ W.T + b, step + 1, dtype)
    chains = W, b, c, *WORDS, V, H, 3, from_hidden, 7, 10, 4
    assert _gibbs_kernel.gibbs_chains(*chains) == first + 12
    np.testing.assert_array_equal(V, v)
    np.testing.assert_allclose(H, expit(v @ W + c), rtol=1e-5)
    with pytest.raises(ValueError, match="shapes do not fit"):
        _gibbs_kernel.gibbs_chains(W, b, c, WORDS[0][:2], *chains[4:])


def test_clamped_chains_equal_numpy(dtype):
    W, b, c, start = chains_at(dtype)
    V, free = start.copy(), np.random.default_rng(1).random(start.shape) < 0.4
    _gibbs_kernel.clamped_chains(
        W, b, c, *WORDS, V, free, np.empty_like(V), start[:, :6].copy(), 2, 7, 10, 4
    )
    v = start
    for step in (10, 14):
        h = (uniform((20, 6), 7, step, 4, dtype) < expit(v @ W + c)).astype(dtype)
        v = np.where(free, drawn_words(h @ W.T + b, step + 1, dtype), v)
    np.testing.assert_array_equal(V, v)


@pytest.mark.parametrize("of_words", [False, True])
def test_annealed_chains_and_their_weights_equal_numpy(dtype, of_words):
    W, base, c, start = chains_at(dtype)
    layers = WORDS if of_words else bits(base)
    n_steps = 1 + len(layers[0])
    shift, betas = np.random.default_rng(1).normal(size=10).astype(dtype), [0.0, 0.2, 0.7, 1.0]
    v, expected = start.copy(), np.ones(20)
    for k, (low, high) in enumerate(pairwise(betas)):
        field = v @ W + c
        softplus = np.logaddexp(0, high * field) - np.logaddexp(0, low * field)
        expected += (high - low) * (v @ shift) + softplus.sum(axis=1)
        if high < 1:
            p = expit(high * field)
            h = (uniform(p.shape, 7, 10 + n_steps * k, 4, dtype) < p).astype(dtype)
            field, step = base + high * (shift + h @ W.T), 11 + n_steps * k
            v = (uniform(field.shape, 7, step, 4, dtype) < expit(field)).astype(dtype)
            v = drawn_words(field, step, dtype) if of_words else v
    V, log_weights = start.copy(), np.ones(20)
    scratch = np.empty((20, 6), dtype), np.empty(10, dtype), np.empty(6, dtype)
    arguments = W, base, shift, c, *layers, np.array(betas)
    _gibbs_kernel.anneal(*arguments, V, *scratch, log_weights, 7, 10, 4)
    np.testing.assert_array_equal(V, v)
    np.testing.assert_allclose(log_weights, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


@settings(max_examples=cases(40))
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 40), st.integers(1, 70), st.integers(1, 40)),
    scale=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    dtype=st.sampled_from(DTYPES),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
)
def test_log_densities(seed, shape, scale, dtype, share):
    (n_rows, n_visible, n_hidden), rng = shape, np.random.default_rng(seed)
    weights = rng.normal(0, scale, (n_visible, n_hidden)).astype(dtype)
    b, c = (rng.normal(0, scale, n).astype(dtype) for n in (n_visible, n_hidden))
    V = (rng.random((n_rows, n_visible)) < share).astype(dtype)
    out, before = np.full(n_rows, np.nan), V.copy()
    _gibbs_kernel.log_densities(weights, b, c, V, np.empty((n_rows, n_hidden), dtype), out)
    exact = V.astype(float)
    expected = exact @ b + np.logaddexp(0, exact @ weights + c).sum(axis=1)
    size = np.abs(weights).sum() + np.abs(b).sum() + np.abs(c).sum() + n_hidden
    np.testing.assert_allclose(out, expected, atol=4 * np.finfo(dtype).eps * size, rtol=0)
    np.testing.assert_array_equal(V, before)
