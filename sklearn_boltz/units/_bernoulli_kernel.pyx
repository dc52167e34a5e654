"""Kernels of Bernoulli units, for a block of rows.

The random numbers come from a counter: each is a function of (seed, step, row, column), so the
result does not depend on how the rows are cut into blocks. `first_row` says where a block
starts. A layer that is sampled takes one step.
"""

from cython cimport floating
from libc.math cimport log
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


cdef int _check(Py_ssize_t n_rows, Py_ssize_t n_columns,
                const floating[:, ::1] a, const floating[::1] bias) except -1:
    if a.shape[0] != n_rows or a.shape[1] != n_columns or bias.shape[0] != n_columns:
        raise ValueError(
            f"expected shapes {(n_rows, n_columns)} and {(n_columns,)}, "
            f"got {(a.shape[0], a.shape[1])} and {(bias.shape[0],)}"
        )
    return 0


cdef void _mean(floating[:, ::1] x, floating scale, const floating[::1] bias) noexcept nogil:
    for i in range(x.shape[0]):
        if floating is float:
            bernoulli_mean_f32(&x[i, 0], scale, &bias[0], x.shape[1])
        else:
            bernoulli_mean_f64(&x[i, 0], scale, &bias[0], x.shape[1])


cdef void _sample(floating[:, ::1] x, floating scale, const floating[::1] bias,
                  uint64_t seed, uint64_t step, uint64_t first_row) noexcept nogil:
    cdef uint64_t key
    for i in range(x.shape[0]):
        key = random_row_key(seed, step, first_row + <uint64_t>i)
        if floating is float:
            bernoulli_sample_f32(&x[i, 0], scale, &bias[0], x.shape[1], key)
        else:
            bernoulli_sample_f64(&x[i, 0], scale, &bias[0], x.shape[1], key)


def bernoulli_mean(floating[:, ::1] x, const floating[::1] bias):
    """Equals ``x[...] = scipy.special.expit(x + bias)``."""
    _check(x.shape[0], x.shape[1], x, bias)
    if x.shape[0] == 0:
        return
    with nogil:
        _mean(x, 1, bias)


def bernoulli_sample(
    floating[:, ::1] x, const floating[::1] bias, uint64_t seed, uint64_t step,
    uint64_t first_row=0,
):
    """Equals ``x[...] = u < scipy.special.expit(x + bias)``, u from `uniform`."""
    _check(x.shape[0], x.shape[1], x, bias)
    if x.shape[0] == 0:
        return
    with nogil:
        _sample(x, 1, bias, seed, step, first_row)


def bernoulli_draw(
    floating[:, ::1] out, const floating[:, ::1] p, uint64_t seed, uint64_t step,
    uint64_t first_row=0,
):
    """Equals ``out[...] = u < p``, u from `uniform`."""
    cdef uint64_t key
    if out.shape[0] != p.shape[0] or out.shape[1] != p.shape[1]:
        raise ValueError("out and p have different shapes")
    with nogil:
        for i in range(out.shape[0]):
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                bernoulli_draw_f32(&out[i, 0], &p[i, 0], out.shape[1], key)
            else:
                bernoulli_draw_f64(&out[i, 0], &p[i, 0], out.shape[1], key)


def softplus_sums(const floating[:, ::1] x, const floating[::1] bias, double[::1] out):
    """Equals ``out[...] = np.logaddexp(0, x + bias).sum(axis=1)``."""
    _check(x.shape[0], x.shape[1], x, bias)
    if out.shape[0] != x.shape[0]:
        raise ValueError("out has the wrong length")
    with nogil:
        for i in range(x.shape[0]):
            out[i] = x.shape[1] * log(2.0)
            if floating is float:
                out[i] += bernoulli_softplus_f32(&x[i, 0], &bias[0], x.shape[1], 0, 1)
            else:
                out[i] += bernoulli_softplus_f64(&x[i, 0], &bias[0], x.shape[1], 0, 1)
