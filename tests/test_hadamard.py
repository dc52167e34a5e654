import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard

from sklearn_boltz.loglinear import fwht

DTYPES = [np.float64, np.float32]


def textbook(a, axis=-1):
    """The double loop, one vectorised stage at a time: independent, and in the same order."""
    b = np.array(np.moveaxis(a, axis, -1), order="C")
    m, h = b.shape[-1], 1
    while h < m:
        pairs = b.reshape(*b.shape[:-1], m // (2 * h), 2, h)
        low, high = pairs[..., 0, :].copy(), pairs[..., 1, :].copy()
        pairs[..., 0, :], pairs[..., 1, :] = low + high, low - high
        h *= 2
    return np.moveaxis(b, -1, axis)


def normal(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def finite(dtype, bound=1e3):
    size = st.integers(0, 9).map(lambda levels: 2**levels)
    width = np.dtype(dtype).itemsize * 8
    return size.flatmap(lambda m: arrays(dtype, m, elements=st.floats(-bound, bound, width=width)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_of_three_axes(dtype):
    sizes = [1, 3, 7], range(9), [1, 2, 3, 5, 8, 17, 33, 100]
    for outer, levels, inner in itertools.product(*sizes):
        a = normal((outer, 2**levels, inner), dtype)
        expected = textbook(a, 1)
        for axis in range(3):
            b, along = np.moveaxis(a, 1, axis), np.moveaxis(expected, 1, axis)
            assert_array_equal(fwht(b, axis=axis), along)
            assert_array_equal(fwht(b, axis=axis - 3), along)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large(dtype):
    """Every blocking of the kernel, for every alignment of the data."""
    for levels, offset in itertools.product(range(15, 20), [0, 1, 3]):
        a = normal(2**levels + offset, dtype)[offset:]
        expected = textbook(a)
        result = fwht(a, overwrite_a=True)
        assert np.shares_memory(result, a)
        assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
@settings(max_examples=50)
def test_any_numbers_and_the_way_back(dtype, data):
    """And Parseval's equation."""
    a = data.draw(finite(dtype))
    b = fwht(a)
    assert_array_equal(b, textbook(a))
    energy = a.size * np.sum(a.astype(np.float64) ** 2)
    tolerance = 40 * np.finfo(dtype).eps
    # Squares below the normal numbers have fewer digits.
    assert_allclose(np.sum(b.astype(np.float64) ** 2), energy, rtol=tolerance, atol=1e-300)
    back = fwht(b) / a.size
    assert_allclose(back, a, rtol=0, atol=tolerance * np.sqrt(energy / a.size) + 1e-37)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_propagates(value, dtype):
    for position in (0, 5, 1000):
        a = normal(2048, dtype)
        a[position] = value
        signs = hadamard(2048)[position]
        assert_array_equal(fwht(a), (value * signs).astype(dtype))
    opposite = np.array([np.inf, np.inf, 0, 0], dtype)
    assert_array_equal(fwht(opposite), [np.inf, np.nan, np.inf, np.nan])


def test_docstring_example():
    """pytest does not look for doctests in extension modules."""
    (examples,) = doctest.DocTestFinder().find(fwht, "fwht", globs={})
    result = doctest.DocTestRunner().run(examples)
    assert result.attempted > 0 and result.failed == 0
