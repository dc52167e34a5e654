"""Truncated Gaussians of any sign of precision: moments and quantiles, many at once."""

from cython cimport floating
from libc.string cimport memcpy


cdef extern from "units/_truncated_kernel_all.h" nogil:
    enum: TG_BLOCK
    void tg_moments_f32(const float *b, const float *a, float low, float high,
                        float *log_partition, float *mean, float *variance) noexcept
    void tg_moments_f64(const double *b, const double *a, double low, double high,
                        double *log_partition, double *mean, double *variance) noexcept
    void tg_quantile_f32(const float *b, const float *a, const float *u, float low, float high,
                         float *x) noexcept
    void tg_quantile_f64(const double *b, const double *a, const double *u, double low,
                         double high, double *x) noexcept


cdef void _moments(const floating *b, const floating *a, floating low, floating high,
                   floating *log_partition, floating *mean, floating *variance) noexcept nogil:
    """One block."""
    if floating is float:
        tg_moments_f32(b, a, low, high, log_partition, mean, variance)
    else:
        tg_moments_f64(b, a, low, high, log_partition, mean, variance)


cdef void _quantile(const floating *b, const floating *a, const floating *u, floating low,
                    floating high, floating *x) noexcept nogil:
    """One block."""
    if floating is float:
        tg_quantile_f32(b, a, u, low, high, x)
    else:
        tg_quantile_f64(b, a, u, low, high, x)


def truncated_moments(
    const floating[::1] b, const floating[::1] a, floating low, floating high,
    floating[::1] log_partition, floating[::1] mean, floating[::1] variance,
):
    """The moments of w(x) = exp(b x − a x² / 2) on [low, high].

    Equals, with the integral of each element taken by quadrature ::

        log_partition[...] = log(∫ w(x) dx)
        mean[...] = ∫ x w(x) dx / ∫ w(x) dx
        variance[...] = ∫ (x - mean)² w(x) dx / ∫ w(x) dx
    """
    cdef Py_ssize_t n = b.shape[0], i, k, whole
    cdef floating[5][TG_BLOCK] last
    if not (a.shape[0] == log_partition.shape[0] == mean.shape[0] == variance.shape[0] == n):
        raise ValueError("the arrays have different lengths")
    whole = n - n % TG_BLOCK
    with nogil:
        for k in range(n // TG_BLOCK):
            i = k * TG_BLOCK
            _moments(&b[i], &a[i], low, high, &log_partition[i], &mean[i], &variance[i])
        if whole < n:
            for k in range(TG_BLOCK):
                last[0][k] = b[min(whole + k, n - 1)]
                last[1][k] = a[min(whole + k, n - 1)]
            _moments(last[0], last[1], low, high, last[2], last[3], last[4])
            memcpy(&log_partition[whole], last[2], (n - whole) * sizeof(floating))
            memcpy(&mean[whole], last[3], (n - whole) * sizeof(floating))
            memcpy(&variance[whole], last[4], (n - whole) * sizeof(floating))


def truncated_quantile(
    const floating[::1] b, const floating[::1] a, const floating[::1] u, floating low,
    floating high, floating[::1] x,
):
    """Where the share of ∫ exp(b x − a x² / 2) dx over [low, high] to the left is u."""
    cdef Py_ssize_t n = b.shape[0], i, k, whole
    cdef floating[4][TG_BLOCK] last
    if not (a.shape[0] == u.shape[0] == x.shape[0] == n):
        raise ValueError("the arrays have different lengths")
    whole = n - n % TG_BLOCK
    with nogil:
        for k in range(n // TG_BLOCK):
            i = k * TG_BLOCK
            _quantile(&b[i], &a[i], &u[i], low, high, &x[i])
        if whole < n:
            for k in range(TG_BLOCK):
                last[0][k] = b[min(whole + k, n - 1)]
                last[1][k] = a[min(whole + k, n - 1)]
                last[2][k] = u[min(whole + k, n - 1)]
            _quantile(last[0], last[1], last[2], low, high, last[3])
            memcpy(&x[whole], last[3], (n - whole) * sizeof(floating))
