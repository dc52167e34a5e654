"""The sum over classes and hidden units of a classifying RBM, for a block of rows.

Rows times classes times units are never in memory at once: a row is finished before the next.
"""

from cython cimport floating
from libc.math cimport exp
from libc.stdlib cimport free, malloc


cdef extern from "restricted/model/_class_kernel_all.h" nogil:
    void class_sums_f32(const float *x, const float *u, Py_ssize_t n_classes, Py_ssize_t n,
                        double *out) noexcept
    void class_sums_f64(const double *x, const double *u, Py_ssize_t n_classes, Py_ssize_t n,
                        double *out) noexcept
    void class_sums_and_means_f32(
        const float *x, const float *u, Py_ssize_t n_classes, Py_ssize_t n, float *means,
        double *out) noexcept
    void class_sums_and_means_f64(
        const double *x, const double *u, Py_ssize_t n_classes, Py_ssize_t n, double *means,
        double *out) noexcept
    void class_combine_f32(const float *means, const float *e, Py_ssize_t n_classes,
                           Py_ssize_t n, float *g, float *du) noexcept
    void class_combine_f64(const double *means, const double *e, Py_ssize_t n_classes,
                           Py_ssize_t n, double *g, double *du) noexcept


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
                class_sums_f32(&fields[i, 0], &label_fields[0, 0], n_classes, n, &out[i, 0])
            else:
                class_sums_f64(&fields[i, 0], &label_fields[0, 0], n_classes, n, &out[i, 0])
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
    cdef double peak, total, factor
    cdef floating *means
    cdef floating *factors
    _check(fields, label_fields, bias, out)
    if (
        codes.shape[0] != n_rows or target.shape[0] != n_rows or share.shape[0] != n_rows
        or label_gradient.shape[0] != n_classes or label_gradient.shape[1] != n
        or bias_gradient.shape[0] != n_classes
    ):
        raise ValueError("the shapes do not fit")
    if n_rows == 0:
        return
    means = <floating *>malloc((n_classes * n + n_classes) * sizeof(floating))
    if means == NULL:
        raise MemoryError
    factors = means + n_classes * n
    with nogil:
        for i in range(n_rows):
            if floating is float:
                class_sums_and_means_f32(
                    &fields[i, 0], &label_fields[0, 0], n_classes, n, means, &out[i, 0])
            else:
                class_sums_and_means_f64(
                    &fields[i, 0], &label_fields[0, 0], n_classes, n, means, &out[i, 0])
            peak = out[i, 0] + bias[0]
            for y in range(n_classes):
                out[i, y] += bias[y]
                peak = max(peak, out[i, y])
            total = 0
            for y in range(n_classes):
                total += exp(out[i, y] - peak)
            for y in range(n_classes):
                factor = share[i] * exp(out[i, y] - peak) / total
                if codes[i] == y:
                    factor += target[i]
                bias_gradient[y] += factor
                factors[y] = <floating>factor
            if floating is float:
                class_combine_f32(
                    means, factors, n_classes, n, &fields[i, 0], &label_gradient[0, 0])
            else:
                class_combine_f64(
                    means, factors, n_classes, n, &fields[i, 0], &label_gradient[0, 0])
    free(means)
