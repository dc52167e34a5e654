import doctest
import itertools

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard

from private import _hadamard, _transform_axis_parallel, transform_axis
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
@pytest.mark.parametrize("levels", range(11))
def test_dense_matrix(levels, dtype):
    m = 2**levels
    a = normal((3, m), dtype)
    expected = a.astype(np.float64) @ hadamard(m)
    tolerance = 4 * np.finfo(dtype).eps * m
    result = fwht(a)
    assert result.dtype == dtype
    assert_allclose(result, expected, rtol=0, atol=tolerance)
    assert_array_equal(result, textbook(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("levels", range(9))
def test_any_layout_of_three_axes(levels, dtype):
    for outer, inner in itertools.product([1, 3, 7], [1, 2, 3, 5, 8, 17, 33, 100]):
        a = normal((outer, 2**levels, inner), dtype)
        expected = textbook(a, 1)
        for axis in range(3):
            b, along = np.moveaxis(a, 1, axis), np.moveaxis(expected, 1, axis)
            assert_array_equal(fwht(b, axis=axis), along)
            assert_array_equal(fwht(b, axis=axis - 3), along)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("levels", range(15, 21))
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_large(levels, dtype, offset):
    """Every blocking of the kernel, for every alignment of the data."""
    a = normal(2**levels + offset, dtype)[offset:]
    expected = textbook(a)
    result = fwht(a, overwrite_a=True)
    assert np.shares_memory(result, a)
    assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [
    (1, 2, 70_001), (2, 8, 30_000), (1, 2**13, 37), (1, 2**16, 3), (1000, 2**8, 1), (0, 4, 1),
    (3, 8, 0),
])  # fmt: skip
def test_large_with_inner_and_empty(shape, dtype):
    a = normal(shape, dtype)
    assert_array_equal(fwht(a, axis=1), textbook(a, 1))


@pytest.mark.parametrize(
    "shape, axis",
    [((4, 2, 8, 16), axis) for axis in [(0, 1, 2, 3), (3, 0), (-1, -2), (1,), (2, 0), ()]]
    + [((3, 4, 5, 8, 6), (1, 3))],  # those that are not transformed have any length
)
def test_several_axes(shape, axis):
    a = normal(shape)
    expected = a
    for i in sorted((i % len(shape) for i in axis), reverse=True):
        expected = textbook(expected, i)
    assert_array_equal(fwht(a, axis=axis), expected)


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


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, object])
def test_other_dtypes_become_float64(dtype):
    a = np.array([1, 0, 1, 1], dtype=dtype)
    result = fwht(a, overwrite_a=True)
    assert result.dtype == np.float64
    assert_array_equal(result, [3, 1, -1, 1])
    assert_array_equal(a, np.array([1, 0, 1, 1], dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("overwrite_a", [False, True])
def test_awkward_memory(overwrite_a, dtype, tmp_path):
    a = normal((6, 32, 4), dtype)
    expected = textbook(a, 1)
    read_only = a.copy()
    read_only.flags.writeable = False
    wide = np.zeros((6, 64, 4), dtype)
    wide[:, ::2] = a
    np.save(tmp_path / "a.npy", a)
    packed = np.zeros(a.shape, dtype=[("byte", "i1"), ("value", dtype)])
    packed["value"] = a
    unaligned = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:].view(dtype).reshape(a.shape)
    unaligned[...] = a
    inputs = {
        "read-only": read_only,
        "strided": wide[:, ::2],
        "negative strides": a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
        "Fortran order": np.asfortranarray(a),
        "memory map": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "packed": packed["value"],
        "unaligned": unaligned,
        "swapped bytes": a.astype(np.dtype(dtype).newbyteorder()),
    }
    for name, value in inputs.items():
        result = fwht(value, axis=1, overwrite_a=overwrite_a)
        assert_array_equal(result, expected, err_msg=name)
        assert result.dtype == dtype and result.dtype.isnative
        assert_array_equal(np.asarray(value), a, err_msg=name)  # unchanged
        assert type(result) is np.ndarray and result.flags.c_contiguous
    assert_array_equal(fwht(a.astype(float).tolist(), axis=1), textbook(a.astype(float), 1))


def test_input_is_kept_unless_overwritten(tmp_path):
    a = normal(1024)
    kept, expected = a.copy(), textbook(a)
    assert_array_equal(fwht(a), expected)
    assert_array_equal(a, kept)
    mapped = np.memmap(tmp_path / "table", dtype=np.float64, mode="w+", shape=1024)
    mapped[:] = a
    fwht(mapped, overwrite_a=True)
    assert_array_equal(mapped, expected)
    assert fwht(a, overwrite_a=True) is a
    assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2**18,), (3 * 2**16, 2), (3, 2**14, 5), (3, 2, 2**15 + 1)])
def test_threads_give_the_same_bits(shape, dtype, monkeypatch):
    monkeypatch.setattr("sklearn_boltz.loglinear._hadamard._MIN_SIZE_PER_THREAD", 1000)
    a = normal(shape, dtype)
    axis = next(i for i, m in enumerate(shape) if not m & (m - 1))
    expected = textbook(a, axis)
    for n_jobs in (1, 2, 3, 4, -1):
        assert_array_equal(fwht(a, axis=axis, n_jobs=n_jobs), expected)
    with joblib.parallel_config("threading", n_jobs=2):
        assert_array_equal(fwht(a, axis=axis), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 7), (1, 2, 1), (1, 256, 3), (5, 64, 1), (30, 8, 40)])
def test_threads_on_any_shape(shape, dtype):
    a = normal(shape, dtype)
    for n_jobs in (2, 3, 9):
        result = a.copy()
        _transform_axis_parallel(result.reshape(-1), *shape, n_jobs)
        assert_array_equal(result, textbook(a, 1))


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


@pytest.mark.parametrize(
    "shape, axis", [((4, 4), axis) for axis in (2, -3, (0, -2), 0.5)] + [((), 0)]
)
def test_wrong_axes(shape, axis):
    with pytest.raises((ValueError, TypeError), match="axis|integer"):
        fwht(np.zeros(shape), axis=axis)


def test_transform_axis_refuses_other_shapes_and_read_only_memory():
    a = np.zeros(3 * 16 * 5)
    for shape in [(3, 16, 4), (3, 15, 5), (-3, 16, -5)]:
        with pytest.raises(ValueError):
            transform_axis(a, *shape)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        transform_axis(a, 3, 16, 5)


def test_docstring_example():
    """pytest does not look for doctests in extension modules."""
    result = doctest.testmod(_hadamard)
    assert result.attempted > 0 and result.failed == 0
