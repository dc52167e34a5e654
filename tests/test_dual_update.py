"""The kernels of the fused pass against the lines of NumPy that they equal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from private import StateSpace, _dual_update

DTYPES = [np.float64, np.float32]


def tables(n_bits, dtype, seed, scale=0.3):
    rng = np.random.default_rng(seed)
    t = np.tanh(scale * rng.normal(size=2**n_bits)).astype(dtype)
    d = np.tanh(scale * rng.normal(size=2**n_bits)).astype(dtype)
    t[0] = d[0] = 1
    return t, d


def penalty(n_bits, dtype, *, inner_bits=10, alpha=0.02, max_order=255):
    space = StateSpace([2] * n_bits)
    outer, inner = space.split_layout(2**inner_bits)
    r_outer, order_outer = space.term_lengths(outer, n_bits)
    r_inner, order_inner = space.term_lengths(inner, n_bits)
    r_outer, r_inner = (alpha * r_outer).astype(dtype), (alpha * (1 + r_inner)).astype(dtype)
    p = _dual_update.Penalty(r_outer, r_inner, order_outer, order_inner, max_order)
    r = np.add.outer(r_outer.astype(float), r_inner).ravel()
    order = np.add.outer(order_outer, order_inner).ravel()
    return p, np.where(order <= max_order, r, np.inf)


def gain(t, d):
    """The change of the cost by the weight that takes an expectation from t to d."""
    return 0.5 * ((1 + d) * np.log((1 + t) / (1 + d)) + (1 - d) * np.log((1 - t) / (1 - d)))


def plain_scan(t, d, r, best):
    with np.errstate(divide="ignore", invalid="ignore"):
        change = r + gain(t.astype(float), d.astype(float))
    change[0] = np.inf
    code = int(np.argmin(change))
    return (change[code], code) if change[code] < best else (best, -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_bits", "max_order"), [
    (1, 255), (2, 1), (3, 255), (4, 2), (5, 255), (9, 1), (11, 2), (13, 255)
])  # fmt: skip
def test_scan(n_bits, max_order, dtype):
    p, r = penalty(n_bits, dtype, max_order=max_order)
    for seed in range(5):
        t, d = tables(n_bits, dtype, seed)
        expected = plain_scan(t, d, r, -1e-6)
        t.setflags(write=False)
        d.setflags(write=False)
        change, code, former = _dual_update.scan(t, d, p, -1e-6, 0, t.size // p.lanes)
        assert former != code or code == -1
        assert code == expected[1]
        assert change == pytest.approx(expected[0], abs=1e-6 if dtype == np.float32 else 1e-13)


@given(
    n_bits=st.integers(1, 12), dtype=st.sampled_from(DTYPES), inner_bits=st.integers(3, 8),
    seed=st.integers(0, 2**32 - 1), data=st.data(),
)  # fmt: skip
@settings(max_examples=150)
def test_update_and_scan(n_bits, dtype, inner_bits, seed, data):
    t, d = tables(n_bits, dtype, seed)
    p, r = penalty(n_bits, dtype, inner_bits=inner_bits)
    mask = data.draw(st.integers(1, 2**n_bits - 1))
    a, b = 0.9, 0.1
    updated = a * t.astype(float) + b * t[np.arange(t.size) ^ mask]
    n_pairs = t.size // (p.lanes * (2 if mask >= p.lanes else 1))
    cut = data.draw(st.integers(0, n_pairs))
    results = [
        _dual_update.update_and_scan(t, d, mask, a, b, p, -1e-6, -1, begin, end)
        for begin, end in [(0, cut), (cut, n_pairs)]
    ]
    rounding = 1e-6 if dtype == np.float32 else 1e-15
    assert_allclose(t, updated, atol=rounding)
    # Any cut of the range gives the same winner, and it is that of a separate scan.
    change, code, _ = min(results, key=lambda result: (result[0], result[1] < 0, result[1]))
    expected = plain_scan(t, d, r, -1e-6)
    assert change == pytest.approx(expected[0], abs=3e-6 if dtype == np.float32 else 1e-13)
    if code != expected[1]:  # only if two terms are equally good to rounding
        assert dtype == np.float32
