"""Kernels of categorical units, for a block of rows, in place.

``runs`` says how wide the units are: widths, and how many units in turn have each of them. The
random numbers are functions of (seed, step, row, unit); `first_row` says where a block starts.
"""

from cython cimport floating
from libc.stdint cimport uint64_t

from sklearn_boltz.units._categorical_rows cimport (
    categorical_log_partition_f32,
    categorical_log_partition_f64,
    categorical_mean_f32,
    categorical_mean_f64,
    categorical_sample_f32,
    categorical_sample_f64,
    categorical_weights_f32,
    categorical_weights_f64,
)


cdef extern from "_random.h" nogil:
    uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row) noexcept


cdef Py_ssize_t _check(const floating[:, ::1] x, const floating[::1] bias,
                       const Py_ssize_t[:, ::1] runs) except -1:
    """-> the number of units"""
    cdef Py_ssize_t r, n_columns = 0, n_units = 0
    for r in range(runs.shape[0]):
        if runs[r, 0] < 1 or runs[r, 1] < 1:
            raise ValueError("each unit has a column at least")
        n_columns += runs[r, 0] * runs[r, 1]
        n_units += runs[r, 1]
    if runs.shape[1] != 2 or not n_columns == x.shape[1] == bias.shape[0] or n_columns == 0:
        raise ValueError("the shapes do not fit")
    return n_units


cdef void _weights(floating *x, const floating[::1] bias, const Py_ssize_t[:, ::1] runs,
                   floating *peaks, Py_ssize_t n_units) noexcept nogil:
    if floating is float:
        categorical_weights_f32(
            x, &bias[0], bias.shape[0], &runs[0, 0], runs.shape[0], peaks, n_units)
    else:
        categorical_weights_f64(
            x, &bias[0], bias.shape[0], &runs[0, 0], runs.shape[0], peaks, n_units)


def categorical_mean(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[:, ::1] runs,
):
    """Equals ``x[:, a:b] = scipy.special.softmax(x[:, a:b] + bias[a:b], axis=1)`` by unit."""
    cdef Py_ssize_t i
    _check(x, bias, runs)
    with nogil:
        for i in range(x.shape[0]):
            _weights(&x[i, 0], bias, runs, NULL, 0)
            if floating is float:
                categorical_mean_f32(&x[i, 0], &runs[0, 0], runs.shape[0])
            else:
                categorical_mean_f64(&x[i, 0], &runs[0, 0], runs.shape[0])


def categorical_sample(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[:, ::1] runs, uint64_t seed,
    uint64_t step, uint64_t first_row=0,
):
    """Draw one of the columns of each unit.

    With w = exp(x[:, a:b] + bias[a:b]) of unit i and u from `uniform`, equals ::

        chosen = (w.cumsum(axis=1)[:, :-1] <= w.sum(axis=1) * u[:, [i]]).sum(axis=1)
        x[:, a:b] = np.eye(b - a)[chosen]
    """
    cdef Py_ssize_t i
    cdef uint64_t key
    _check(x, bias, runs)
    with nogil:
        for i in range(x.shape[0]):
            _weights(&x[i, 0], bias, runs, NULL, 0)
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                categorical_sample_f32(&x[i, 0], &runs[0, 0], runs.shape[0], key)
            else:
                categorical_sample_f64(&x[i, 0], &runs[0, 0], runs.shape[0], key)


def categorical_log_partition(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[:, ::1] runs,
    floating[:, ::1] out,
):
    """Equals ``out[:, i] = scipy.special.logsumexp(x[:, a:b] + bias[a:b], axis=1)`` by unit.

    `x` is changed.
    """
    cdef Py_ssize_t i, n_units = _check(x, bias, runs)
    if out.shape[0] != x.shape[0] or out.shape[1] != n_units:
        raise ValueError("the shapes do not fit")
    with nogil:
        for i in range(x.shape[0]):
            _weights(&x[i, 0], bias, runs, &out[i, 0], n_units)
            if floating is float:
                categorical_log_partition_f32(
                    &x[i, 0], &runs[0, 0], runs.shape[0], &out[i, 0], True)
            else:
                categorical_log_partition_f64(
                    &x[i, 0], &runs[0, 0], runs.shape[0], &out[i, 0], True)


def categorical_sums(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[:, ::1] runs,
    floating[::1] peaks, double[::1] out,
):
    """Equals the sums of `categorical_log_partition` over units; `x` and `peaks` are changed."""
    cdef Py_ssize_t i, n_units = _check(x, bias, runs)
    if out.shape[0] != x.shape[0] or peaks.shape[0] != n_units:
        raise ValueError("the shapes do not fit")
    with nogil:
        for i in range(x.shape[0]):
            _weights(&x[i, 0], bias, runs, &peaks[0], n_units)
            if floating is float:
                out[i] = categorical_log_partition_f32(
                    &x[i, 0], &runs[0, 0], runs.shape[0], &peaks[0], False)
            else:
                out[i] = categorical_log_partition_f64(
                    &x[i, 0], &runs[0, 0], runs.shape[0], &peaks[0], False)
