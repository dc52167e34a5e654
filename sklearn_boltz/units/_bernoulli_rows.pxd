"""Kernels of Bernoulli units for a block of rows, compiled into each module that has use for them.

The random numbers are functions of (seed, step, row, column), and `first_row` is the number of
the first row of the block.
"""

from cython cimport floating
from libc.stdint cimport uint64_t


cdef extern from "_random.h" nogil:
    uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row) noexcept


cdef extern from "units/_bernoulli_kernel_all.h" nogil:
    void bernoulli_mean_f32(float *x, float scale, const float *bias, Py_ssize_t n) noexcept
    void bernoulli_mean_f64(double *x, double scale, const double *bias, Py_ssize_t n) noexcept
    void bernoulli_sample_f32(
        float *x, float scale, const float *bias, Py_ssize_t n, uint64_t key) noexcept
    void bernoulli_sample_f64(
        double *x, double scale, const double *bias, Py_ssize_t n, uint64_t key) noexcept
    void bernoulli_draw_f32(float *x, const float *p, Py_ssize_t n, uint64_t key) noexcept
    void bernoulli_draw_f64(double *x, const double *p, Py_ssize_t n, uint64_t key) noexcept
    double bernoulli_softplus_f32(
        const float *x, const float *bias, Py_ssize_t n, float low, float high) noexcept
    double bernoulli_softplus_f64(
        const double *x, const double *bias, Py_ssize_t n, double low, double high) noexcept


cdef inline int check_rows(Py_ssize_t n_rows, Py_ssize_t n_columns,
                           const floating[:, ::1] a, const floating[::1] bias) except -1:
    if a.shape[0] != n_rows or a.shape[1] != n_columns or bias.shape[0] != n_columns:
        raise ValueError(
            f"expected shapes {(n_rows, n_columns)} and {(n_columns,)}, "
            f"got {(a.shape[0], a.shape[1])} and {(bias.shape[0],)}"
        )
    return 0


cdef inline void mean_rows(
    floating[:, ::1] x, floating scale, const floating[::1] bias
) noexcept nogil:
    """x = expit(scale * x + bias)"""
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        if floating is float:
            bernoulli_mean_f32(&x[i, 0], scale, &bias[0], x.shape[1])
        else:
            bernoulli_mean_f64(&x[i, 0], scale, &bias[0], x.shape[1])


cdef inline void sample_rows(
    floating[:, ::1] x, floating scale, const floating[::1] bias,
    uint64_t seed, uint64_t step, uint64_t first_row,
) noexcept nogil:
    """x = u < expit(scale * x + bias)"""
    cdef uint64_t key
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        key = random_row_key(seed, step, first_row + <uint64_t>i)
        if floating is float:
            bernoulli_sample_f32(&x[i, 0], scale, &bias[0], x.shape[1], key)
        else:
            bernoulli_sample_f64(&x[i, 0], scale, &bias[0], x.shape[1], key)
