"""What conditional probabilities of states leave of those of the rows."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t


cdef extern from "networks/features/_residuals_all.h" nogil:
    double residuals_row_f32(float *x, const float *base, const int64_t *offsets,
                             const int32_t *codes, Py_ssize_t d, float weight)
    double residuals_row_f64(double *x, const double *base, const int64_t *offsets,
                             const int32_t *codes, Py_ssize_t d, double weight)


def residuals(floating[:, :] x, const floating[::1] base, const int64_t[::1] offsets,
              const int32_t[:, :] codes, const floating[::1] weights):
    """Equals this, and returns the sum of the weighted logarithms of the rows' own states::

        for j in range(d):
            own = slice(offsets[j], offsets[j + 1])
            p = scipy.special.softmax(x[:, own] + base[own], axis=1)
            is_own = codes[:, [j]] == np.arange(p.shape[1])
            x[:, own] = (p - is_own) * (weights * (codes[:, j] >= 0))[:, None]

    The rows of `x` and of `codes` are contiguous each.
    """
    cdef Py_ssize_t n = x.shape[0], d = offsets.shape[0] - 1, i
    cdef double total = 0
    if base.shape[0] != x.shape[1] or offsets[d] != x.shape[1] or codes.shape[0] != n \
            or codes.shape[1] != d or weights.shape[0] != n \
            or (x.shape[1] > 1 and x.strides[1] != sizeof(floating)) \
            or (d > 1 and codes.strides[1] != sizeof(int32_t)):
        raise ValueError("the arrays do not match")
    if n == 0 or d == 0:
        return 0.0
    with nogil:
        for i in range(n):
            if floating is float:
                total += residuals_row_f32(&x[i, 0], &base[0], &offsets[0], &codes[i, 0], d,
                                           weights[i])
            else:
                total += residuals_row_f64(&x[i, 0], &base[0], &offsets[0], &codes[i, 0], d,
                                           weights[i])
    return total
