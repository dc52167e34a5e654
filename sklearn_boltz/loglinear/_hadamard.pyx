"""Fast Walsh-Hadamard transform."""

import operator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import prod

import numpy as np
from joblib import effective_n_jobs

from cython cimport floating

# Elements that must fall to each thread before threads, half a millisecond to start, pay.
_MIN_SIZE_PER_THREAD = 2**21


cdef extern from "loglinear/_hadamard_all.h" nogil:
    void fwht_f64(double *a, Py_ssize_t outer, int levels, Py_ssize_t inner) noexcept
    void fwht_f32(float *a, Py_ssize_t outer, int levels, Py_ssize_t inner) noexcept
    void fwht_columns_f64(
        double *a, int levels, Py_ssize_t inner, Py_ssize_t start, Py_ssize_t stop) noexcept
    void fwht_columns_f32(
        float *a, int levels, Py_ssize_t inner, Py_ssize_t start, Py_ssize_t stop) noexcept


def transform_axis(floating[::1] a, Py_ssize_t outer, Py_ssize_t m, Py_ssize_t inner):
    """Transform the middle axis of a C-ordered (outer, m, inner) array, in place.

    Equals, for ``c = a.reshape(outer, m, inner)``,
    ``c[...] = np.einsum("jk,okn->ojn", scipy.linalg.hadamard(m), c)``.

    Parameters
    ----------
    a : memoryview of shape (outer * m * inner,)
        The array, raveled; float32 or float64, contiguous, writeable.
    outer, m, inner : int
        Its shape; `m` is a power of two.
    """
    cdef int levels = _levels(m)
    if outer < 0 or inner < 0 or a.shape[0] != outer * m * inner:
        raise ValueError(f"{a.shape[0]} values do not have shape {outer, m, inner}")
    if a.shape[0] == 0:
        return
    with nogil:
        if floating is double:
            fwht_f64(&a[0], outer, levels, inner)
        else:
            fwht_f32(&a[0], outer, levels, inner)


def _transform_columns(
    floating[::1] a, Py_ssize_t m, Py_ssize_t inner, Py_ssize_t start, Py_ssize_t stop
):
    """Transform columns start, ..., stop - 1 of an (m, inner) matrix, in place."""
    cdef int levels = _levels(m)
    if a.shape[0] != m * inner or not 0 <= start < stop <= inner:
        raise ValueError(f"no columns {start}, ..., {stop} in shape {m, inner}")
    with nogil:
        if floating is double:
            fwht_columns_f64(&a[0], levels, inner, start, stop)
        else:
            fwht_columns_f32(&a[0], levels, inner, start, stop)


def _levels(m):
    """Return the base-2 logarithm of `m`."""
    if m < 1 or m & (m - 1):
        raise ValueError(f"the length of a transformed axis must be a power of two, got {m}")
    return m.bit_length() - 1


def _ranges(size, parts):
    """Cut ``range(size)`` into at most `parts` non-empty ranges of nearly equal length."""
    parts = min(size, parts)
    return pairwise(size * i // parts for i in range(parts + 1))


def _transform_axis_parallel(a, outer, m, inner, n_jobs):
    """Equal `transform_axis` to the last bit, in `n_jobs` threads.

    With m = top * (m / top), the lower stages act inside each of outer * top blocks, and the
    upper stages on each column of the matrix of `top` rows that these blocks make.
    """
    parts = 4 * n_jobs  # more than threads, so that a slow one holds nobody up
    top = 1
    while top < m and outer * top < parts:
        top *= 2
    row = m // top * inner

    def lower(blocks):
        start, stop = blocks
        transform_axis(a[start * row:stop * row], stop - start, m // top, inner)

    def upper(columns):
        i, (start, stop) = columns
        _transform_columns(a[i * top * row:(i + 1) * top * row], top, row, start, stop)

    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(lower, _ranges(outer * top, parts)))
        if top > 1:
            columns = [(i, c) for i in range(outer) for c in _ranges(row, parts)]
            list(pool.map(upper, columns))


def transform_in_threads(a, outer, m, inner, n_jobs):
    """Call `transform_axis` in up to `n_jobs` threads if the array is large enough."""
    n_jobs = min(n_jobs, a.size // _MIN_SIZE_PER_THREAD)
    if n_jobs > 1:
        _transform_axis_parallel(a, outer, m, inner, n_jobs)
    else:
        transform_axis(a, outer, m, inner)


def _merged_axes(shape, axis):
    """Yield (outer, m, inner) for each run of adjacent axes to transform, the last first.

    Adjacent axes are one: the Kronecker product of two Sylvester matrices is the next one.
    """
    ndim = len(shape)
    axes = [operator.index(i) for i in (axis if isinstance(axis, tuple) else (axis,))]
    for i in axes:
        if not -ndim <= i < ndim:
            raise ValueError(f"axis {i} is out of bounds for an array of {ndim} dimensions")
    chosen = {i % ndim for i in axes}
    if len(chosen) < len(axes):
        raise ValueError(f"repeated axis in {axis}")
    for i in chosen:
        _levels(shape[i])
    last = ndim
    while last > 0:
        first = last - 1
        if first in chosen:
            while first - 1 in chosen:
                first -= 1
            yield prod(shape[:first]), prod(shape[first:last]), prod(shape[last:])
        last = first


def fwht(a, *, axis=-1, overwrite_a=False, n_jobs=None):
    """Fast Walsh-Hadamard transform.

    Along each given axis of length m, multiply by the Sylvester-Hadamard matrix
    :math:`H_m`, unnormalised and in its natural order:

    .. math:: b_j = \\sum_{k=0}^{m-1} (-1)^{\\mathrm{popcount}(j \\,\\&\\, k)} a_k .

    As :math:`H_m H_m = m I`, the inverse is the transform itself divided by m.

    Parameters
    ----------
    a : array-like of real numbers
        Input of any shape. The length of every axis to transform is a power of two.

    axis : int or tuple of int, default=-1
        Axis or axes to transform.

    overwrite_a : bool, default=False
        Transform `a` in place where it is a writeable C-contiguous float32 or float64 array.
        Any other input is copied all the same: use the returned array.

    n_jobs : int, default=None
        Number of threads for large arrays; ``None`` means 1 unless in a
        :obj:`joblib.parallel_config` context, ``-1`` means all processors. The result has the
        same bits whatever it is.

    Returns
    -------
    ndarray of the same shape as `a`
        The transform: float32 for float32 input, else float64.

    Raises
    ------
    ValueError
        If the length of an axis to transform is not a power of two, an axis is out of bounds
        or repeated, or `a` is complex.

    See Also
    --------
    scipy.linalg.hadamard : The dense matrix.

    Notes
    -----
    It takes m log2(m) additions for an axis of length m and no memory besides the result.
    Every element is summed in the order of the textbook's double loop.

    References
    ----------
    .. [1] Fino, B. J. and Algazi, V. R. (1976). "Unified matrix treatment of the fast
       Walsh-Hadamard transform". IEEE Transactions on Computers C-25(11), 1142-1146.

    Examples
    --------
    >>> from sklearn_boltz.loglinear import fwht
    >>> fwht([1, 0, 1, 0, 0, 1, 1, 0])
    array([ 4.,  2.,  0., -2.,  0.,  2.,  0.,  2.])
    >>> fwht(fwht([1, 0, 1, 0, 0, 1, 1, 0])) / 8
    array([1., 0., 1., 0., 0., 1., 1., 0.])
    """
    a = np.asarray(a)
    if np.iscomplexobj(a):
        raise ValueError("complex input is not supported; transform a.real and a.imag")
    shapes = list(_merged_axes(a.shape, axis))
    single = a.dtype.kind == "f" and a.dtype.itemsize == 4
    dtype = np.dtype(np.float32 if single else np.float64)
    if not (overwrite_a and a.flags.carray and a.dtype == dtype):
        a = np.array(a, dtype=dtype, order="C", copy=True)

    flat = a.reshape(-1)
    for outer, m, inner in shapes:
        transform_in_threads(flat, outer, m, inner, effective_n_jobs(n_jobs))
    return a
