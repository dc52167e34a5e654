"""Kernels of categorical units, for a block of rows, in place.

``starts`` has the first column of each unit, and the number of columns. The random numbers are
functions of (seed, step, row, unit); `first_row` says where a block starts.
"""

from cython cimport floating
from libc.stdint cimport uint64_t


cdef extern from "_random.h" nogil:
    uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row) noexcept


cdef extern from "units/_categorical_kernel_all.h" nogil:
    void categorical_weights_f32(float *x, const float *bias, Py_ssize_t n,
                                 const Py_ssize_t *starts, Py_ssize_t n_units,
                                 float *peaks) noexcept
    void categorical_weights_f64(double *x, const double *bias, Py_ssize_t n,
                                 const Py_ssize_t *starts, Py_ssize_t n_units,
                                 double *peaks) noexcept
    void categorical_mean_f32(
        float *x, const Py_ssize_t *starts, Py_ssize_t n_units) noexcept
    void categorical_mean_f64(
        double *x, const Py_ssize_t *starts, Py_ssize_t n_units) noexcept
    void categorical_sample_f32(
        float *x, const Py_ssize_t *starts, Py_ssize_t n_units, uint64_t key) noexcept
    void categorical_sample_f64(
        double *x, const Py_ssize_t *starts, Py_ssize_t n_units, uint64_t key) noexcept
    void categorical_log_totals_f32(
        const float *x, const Py_ssize_t *starts, Py_ssize_t n_units, float *peaks) noexcept
    void categorical_log_totals_f64(
        const double *x, const Py_ssize_t *starts, Py_ssize_t n_units, double *peaks) noexcept
    double categorical_sum_f32(
        const float *x, const Py_ssize_t *starts, Py_ssize_t n_units,
        const float *peaks) noexcept
    double categorical_sum_f64(
        const double *x, const Py_ssize_t *starts, Py_ssize_t n_units,
        const double *peaks) noexcept


cdef int _check(const floating[:, ::1] x, const floating[::1] bias,
                const Py_ssize_t[::1] starts) except -1:
    cdef Py_ssize_t i, n = starts.shape[0] - 1
    if x.shape[1] != bias.shape[0] or n < 0 or starts[0] != 0 or starts[n] != x.shape[1]:
        raise ValueError("the shapes do not fit")
    for i in range(n):
        if starts[i + 1] <= starts[i]:
            raise ValueError("each unit has a column at least")
    return 0


cdef void _weights(floating[::1] x, const floating[::1] bias, const Py_ssize_t[::1] starts,
                   floating *peaks) noexcept nogil:
    if floating is float:
        categorical_weights_f32(
            &x[0], &bias[0], x.shape[0], &starts[0], starts.shape[0] - 1, peaks)
    else:
        categorical_weights_f64(
            &x[0], &bias[0], x.shape[0], &starts[0], starts.shape[0] - 1, peaks)


def categorical_mean(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[::1] starts,
):
    """Equals ``x[:, a:b] = scipy.special.softmax(x[:, a:b] + bias[a:b], axis=1)`` by unit."""
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(x, bias, starts)
    if x.shape[1] == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            _weights(x[i], bias, starts, NULL)
            if floating is float:
                categorical_mean_f32(&x[i, 0], &starts[0], n_units)
            else:
                categorical_mean_f64(&x[i, 0], &starts[0], n_units)


def categorical_sample(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[::1] starts, uint64_t seed,
    uint64_t step, uint64_t first_row=0,
):
    """Draw one of the columns of each unit.

    With w = exp(x[:, a:b] + bias[a:b]) of unit i and u from `uniform`, equals ::

        chosen = (w.cumsum(axis=1) <= w.sum(axis=1) * u[:, [i]]).sum(axis=1)
        x[:, a:b] = np.eye(b - a)[chosen]
    """
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    cdef uint64_t key
    _check(x, bias, starts)
    if x.shape[1] == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            _weights(x[i], bias, starts, NULL)
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                categorical_sample_f32(&x[i, 0], &starts[0], n_units, key)
            else:
                categorical_sample_f64(&x[i, 0], &starts[0], n_units, key)


def categorical_log_partition(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[::1] starts,
    floating[:, ::1] out,
):
    """Equals ``out[:, i] = scipy.special.logsumexp(x[:, a:b] + bias[a:b], axis=1)`` by unit.

    `x` is changed.
    """
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(x, bias, starts)
    if out.shape[0] != x.shape[0] or out.shape[1] != n_units:
        raise ValueError("the shapes do not fit")
    if x.shape[1] == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            _weights(x[i], bias, starts, &out[i, 0])
            if floating is float:
                categorical_log_totals_f32(&x[i, 0], &starts[0], n_units, &out[i, 0])
            else:
                categorical_log_totals_f64(&x[i, 0], &starts[0], n_units, &out[i, 0])


def categorical_sums(
    floating[:, ::1] x, const floating[::1] bias, const Py_ssize_t[::1] starts,
    floating[::1] peaks, double[::1] out,
):
    """Equals the sums of `categorical_log_partition` over units; `x` and `peaks` are changed."""
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(x, bias, starts)
    if out.shape[0] != x.shape[0] or peaks.shape[0] != n_units:
        raise ValueError("the shapes do not fit")
    if x.shape[1] == 0:
        out[:] = 0
        return
    with nogil:
        for i in range(x.shape[0]):
            _weights(x[i], bias, starts, &peaks[0])
            if floating is float:
                out[i] = categorical_sum_f32(&x[i, 0], &starts[0], n_units, &peaks[0])
            else:
                out[i] = categorical_sum_f64(&x[i, 0], &starts[0], n_units, &peaks[0])
