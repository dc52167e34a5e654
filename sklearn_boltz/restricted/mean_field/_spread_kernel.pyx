"""Kernels of the second order of mean field, for units of one number or of several.

``starts`` has the first column of each unit, and the number of columns. In the lines of NumPy
below, `pairs` are the pairs of columns (a, b), a < b, of one unit, in order. They are the features
of a unit of several columns, if these are no more than `most`; otherwise its columns are.
"""

from cython cimport floating


cdef extern from "restricted/mean_field/_spread_kernel_all.h" nogil:
    void spreads_f32(const float*, const float*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                     float*) noexcept
    void spreads_f64(const double*, const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                     double*) noexcept
    void act_f32(const float*, const float*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                 float*, float*) noexcept
    void act_f64(const double*, const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                 double*, double*) noexcept
    void differences_f32(const float*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                         float*) noexcept
    void differences_f64(const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                         double*) noexcept
    void gathered_f32(const float*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t, float*) noexcept
    void gathered_f64(const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t,
                      double*) noexcept


cdef int _check(Py_ssize_t n_columns, Py_ssize_t n_features, const Py_ssize_t[::1] starts,
                Py_ssize_t most) except -1:
    cdef Py_ssize_t i, width, n = starts.shape[0] - 1, total = 0
    if n < 0 or starts[0] != 0 or starts[n] != n_columns:
        raise ValueError("the shapes do not fit")
    for i in range(n):
        width = starts[i + 1] - starts[i]
        if width < 1:
            raise ValueError("each unit has a column at least")
        total += width if width == 1 or width > most else width * (width - 1) // 2
    if total != n_features:
        raise ValueError("the number of features does not fit")
    return 0


def spreads(const floating[:, ::1] mean, const floating[:, ::1] variance,
            const Py_ssize_t[::1] starts, Py_ssize_t most, floating[:, ::1] out):
    """What counts of each feature in the second order; a column of variance 0 is known.

    Equals ``variance[:, a]`` of a unit of one column; with ``mean`` 0 where ``variance`` is 0,
    ``mean[:, a] * mean[:, b]`` for a pair and ``mean[:, a]`` for a column.
    """
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(mean.shape[1], out.shape[1], starts, most)
    if variance.shape[1] != mean.shape[1] or not (
        mean.shape[0] == variance.shape[0] == out.shape[0]
    ):
        raise ValueError("the shapes do not fit")
    if n_units == 0:
        return
    with nogil:
        for i in range(mean.shape[0]):
            if floating is float:
                spreads_f32(&mean[i, 0], &variance[i, 0], &starts[0], n_units, most, &out[i, 0])
            else:
                spreads_f64(&mean[i, 0], &variance[i, 0], &starts[0], n_units, most, &out[i, 0])


def act(const floating[:, ::1] feature_precision, const floating[:, ::1] mean,
        const Py_ssize_t[::1] starts, Py_ssize_t most, floating[:, ::1] field,
        floating[:, ::1] precision):
    """Turn precisions A of features into fields and precisions of columns.

    Equals ``precision[:, a] = A; field[:, a] += A * mean[:, a]`` for a unit of one column. For
    others ``precision[:, a] = 0``, and ``field[:, a] -= A * mean[:, b] / 2`` and the same with a
    and b exchanged for a pair, ``field[:, a] -= A / 2`` for a column.
    """
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1, n = mean.shape[1]
    _check(n, feature_precision.shape[1], starts, most)
    if field.shape[1] != n or precision.shape[1] != n or not (
        mean.shape[0] == field.shape[0] == precision.shape[0] == feature_precision.shape[0]
    ):
        raise ValueError("the shapes do not fit")
    if n_units == 0:
        return
    with nogil:
        for i in range(mean.shape[0]):
            if floating is float:
                act_f32(&feature_precision[i, 0], &mean[i, 0], &starts[0], n_units, most,
                        &field[i, 0], &precision[i, 0])
            else:
                act_f64(&feature_precision[i, 0], &mean[i, 0], &starts[0], n_units, most,
                        &field[i, 0], &precision[i, 0])


def differences(const floating[:, ::1] x, const Py_ssize_t[::1] starts, Py_ssize_t most,
                floating[:, ::1] out):
    """Equals ``out = np.column_stack([x[:, a] - x[:, b] ...])`` by pairs, else ``x[:, a]``."""
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(x.shape[1], out.shape[1], starts, most)
    if out.shape[0] != x.shape[0]:
        raise ValueError("the shapes do not fit")
    if n_units == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            if floating is float:
                differences_f32(&x[i, 0], &starts[0], n_units, most, &out[i, 0])
            else:
                differences_f64(&x[i, 0], &starts[0], n_units, most, &out[i, 0])


def gathered(const floating[:, ::1] x, const Py_ssize_t[::1] starts, Py_ssize_t most,
             floating[:, ::1] out):
    """The transposed map of `differences`: ``out = x @ differences(np.eye(n_columns)).T``."""
    cdef Py_ssize_t i, n_units = starts.shape[0] - 1
    _check(out.shape[1], x.shape[1], starts, most)
    if out.shape[0] != x.shape[0]:
        raise ValueError("the shapes do not fit")
    if n_units == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            if floating is float:
                gathered_f32(&x[i, 0], &starts[0], n_units, most, &out[i, 0])
            else:
                gathered_f64(&x[i, 0], &starts[0], n_units, most, &out[i, 0])
