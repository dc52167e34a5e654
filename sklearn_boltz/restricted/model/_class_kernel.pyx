"""The sum over classes and hidden units of a classifying RBM, for a block of rows.

Rows times classes times units are never in memory at once: a row is finished before the next.
"""

from cython cimport floating
from libc.math cimport exp
from libc.stdlib cimport free, malloc


cdef extern from "restricted/model/_class_kernel_all.h" nogil:
    void class_sums_f32(const float *x, const float *u, Py_ssize_t n_classes, Py_ssize_t n,
                        float *kept, double *out) noexcept
    void class_sums_f64(const double *x, const double *u, Py_ssize_t n_classes, Py_ssize_t n,
                        double *kept, double *out) noexcept
    void class_combine_f32(
        float *x, const float *u, const float *kept, const double *factors, Py_ssize_t n_classes,
        Py_ssize_t n, float *sum, float *du) noexcept
    void class_combine_f64(
        double *x, const double *u, const double *kept, const double *factors,
        Py_ssize_t n_classes, Py_ssize_t n, double *sum, double *du) noexcept


cdef int _check(const floating[:, ::1] fields, const floating[:, ::1] label_fields,
                const floating[::1] bias, const double[:, ::1] out) except -1:
    if (
        fields.shape[1] != label_fields.shape[1] or bias.shape[0] != label_fields.shape[0]
        or out.shape[0] != fields.shape[0] or out.shape[1] != bias.shape[0]
        or fields.shape[1] == 0 or bias.shape[0] == 0
    ):
        raise ValueError("the shapes do not fit")
    return 0


def class_log_weights(
    const floating[:, ::1] fields, const floating[:, ::1] label_fields,
    const floating[::1] bias, double[:, ::1] out,
):
    """Equals ``out[...] = bias + np.logaddexp(0, fields[:, None] + label_fields).sum(axis=2)``.

    `fields` has a row for each row, `label_fields` one for each class.
    """
    cdef Py_ssize_t i, y, n_classes = bias.shape[0], n = fields.shape[1]
    _check(fields, label_fields, bias, out)
    if fields.shape[0] == 0:
        return
    with nogil:
        for i in range(fields.shape[0]):
            if floating is float:
                class_sums_f32(&fields[i, 0], &label_fields[0, 0], n_classes, n, NULL, &out[i, 0])
            else:
                class_sums_f64(&fields[i, 0], &label_fields[0, 0], n_classes, n, NULL, &out[i, 0])
            for y in range(n_classes):
                out[i, y] += bias[y]


def class_gradients(
    floating[:, ::1] fields, const floating[:, ::1] label_fields, const floating[::1] bias,
    const Py_ssize_t[::1] codes, const double[::1] target, const double[::1] share,
    double[:, ::1] out, floating[:, ::1] label_gradient, double[::1] bias_gradient,
):
    """Sums of derivatives by what the classes add, and those by the fields in their place.

    Equals ::

        class_log_weights(fields, label_fields, bias, out)
        E = target[:, None] * (codes[:, None] == np.arange(len(bias)))
        E += share[:, None] * scipy.special.softmax(out, axis=1)
        S = scipy.special.expit(fields[:, None] + label_fields)
        label_gradient += np.einsum("ny,nyj->yj", E, S)
        bias_gradient += E.sum(axis=0)
        fields[...] = np.einsum("ny,nyj->nj", E, S)
    """
    cdef Py_ssize_t i, y, n_classes = bias.shape[0], n = fields.shape[1], n_rows = fields.shape[0]
    cdef double peak, total
    cdef double *factors
    cdef floating *kept
    _check(fields, label_fields, bias, out)
    if (
        codes.shape[0] != n_rows or target.shape[0] != n_rows or share.shape[0] != n_rows
        or label_gradient.shape[0] != n_classes or label_gradient.shape[1] != n
        or bias_gradient.shape[0] != n_classes
    ):
        raise ValueError("the shapes do not fit")
    if n_rows == 0:
        return
    factors = <double *>malloc(
        n_classes * sizeof(double) + (n_classes + 1) * n * sizeof(floating))
    if factors == NULL:
        raise MemoryError
    kept = <floating *>(factors + n_classes)
    with nogil:
        for i in range(n_rows):
            if floating is float:
                class_sums_f32(&fields[i, 0], &label_fields[0, 0], n_classes, n, kept, &out[i, 0])
            else:
                class_sums_f64(&fields[i, 0], &label_fields[0, 0], n_classes, n, kept, &out[i, 0])
            peak = out[i, 0] + bias[0]
            for y in range(n_classes):
                out[i, y] += bias[y]
                peak = max(peak, out[i, y])
            total = 0
            for y in range(n_classes):
                factors[y] = exp(out[i, y] - peak)
                total += factors[y]
            for y in range(n_classes):
                factors[y] *= share[i] / total
                if codes[i] == y:
                    factors[y] += target[i]
                bias_gradient[y] += factors[y]
            if floating is float:
                class_combine_f32(
                    &fields[i, 0], &label_fields[0, 0], kept, factors, n_classes, n,
                    kept + n_classes * n, &label_gradient[0, 0])
            else:
                class_combine_f64(
                    &fields[i, 0], &label_fields[0, 0], kept, factors, n_classes, n,
                    kept + n_classes * n, &label_gradient[0, 0])
    free(factors)
