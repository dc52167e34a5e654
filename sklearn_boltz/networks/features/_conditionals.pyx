"""Conditional probabilities of the states of all columns, for a block of rows."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t


cdef extern from "networks/features/_conditionals_all.h" nogil:
    double conditionals_row_f32(float *x, const float *base, const int64_t *offsets,
                                const int32_t *codes, Py_ssize_t d, float weight, float taken)
    double conditionals_row_f64(double *x, const double *base, const int64_t *offsets,
                                const int32_t *codes, Py_ssize_t d, double weight, double taken)


def conditionals(floating[:, ::1] x, const floating[::1] base, const int64_t[::1] offsets,
                 const int32_t[:, ::1] codes, const floating[::1] weights, bint residuals=False):
    """Equals this, and returns the sum of the weighted logarithms of the rows' own states::

        for j in range(d):
            own = slice(offsets[j], offsets[j + 1])
            p = scipy.special.softmax(x[:, own] + base[own], axis=1)
            x[:, own] = p * (weights * (codes[:, j] >= 0))[:, None]

    With `residuals`, 1 is taken away from p of the rows' own states.
    """
    cdef Py_ssize_t n = x.shape[0], d = offsets.shape[0] - 1, i
    cdef double total = 0
    if base.shape[0] != x.shape[1] or offsets[d] != x.shape[1] or codes.shape[0] != n \
            or codes.shape[1] != d or weights.shape[0] != n:
        raise ValueError("the arrays do not match")
    if n == 0 or d == 0:
        return 0.0
    with nogil:
        for i in range(n):
            if floating is float:
                total += conditionals_row_f32(&x[i, 0], &base[0], &offsets[0], &codes[i, 0], d,
                                              weights[i], weights[i] if residuals else 0)
            else:
                total += conditionals_row_f64(&x[i, 0], &base[0], &offsets[0], &codes[i, 0], d,
                                              weights[i], weights[i] if residuals else 0)
    return total
