"""Products with features that are known by the states of columns: sums of lines of a table."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t


cdef extern from "networks/features/_lines_all.h" nogil:
    const int LINES_CHUNK
    void lines_gather_f32(float *x, const float *table, const int32_t *lines, const int64_t *own,
                          Py_ssize_t n, Py_ssize_t m, Py_ssize_t k)
    void lines_gather_f64(double *x, const double *table, const int32_t *lines, const int64_t *own,
                          Py_ssize_t n, Py_ssize_t m, Py_ssize_t k)
    void lines_scatter_f32(const float *x, float *table, const int32_t *lines, const int64_t *own,
                           Py_ssize_t n, Py_ssize_t m, Py_ssize_t k)
    void lines_scatter_f64(const double *x, double *table, const int32_t *lines,
                           const int64_t *own, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k)


# Own entries are left out in whole chunks of this many.
CHUNK = LINES_CHUNK


def gather(floating[:, ::1] x, const floating[:, ::1] table, const int32_t[:, ::1] lines,
           const int64_t[:, ::1] own):
    """Equals this, except for some entries that are 0::

        for j in range(lines.shape[1]):
            known = lines[:, j] >= 0
            x[known] += table[lines[known, j]]

    In the lines of column j these are CHUNK * own[j, 0] to CHUNK * own[j, 1].
    """
    _check(x.shape[0], x.shape[1], table.shape[1], lines, own)
    if x.shape[0] == 0 or table.shape[0] == 0:
        return
    with nogil:
        if floating is float:
            lines_gather_f32(&x[0, 0], &table[0, 0], &lines[0, 0], &own[0, 0], x.shape[0],
                             lines.shape[1], x.shape[1])
        else:
            lines_gather_f64(&x[0, 0], &table[0, 0], &lines[0, 0], &own[0, 0], x.shape[0],
                             lines.shape[1], x.shape[1])


def scatter(const floating[:, ::1] x, floating[:, ::1] table, const int32_t[:, ::1] lines,
            const int64_t[:, ::1] own):
    """Equals this, except for some entries that are not wanted, as in `gather`::

        for j in range(lines.shape[1]):
            known = lines[:, j] >= 0
            np.add.at(table, lines[known, j], x[known])
    """
    _check(x.shape[0], x.shape[1], table.shape[1], lines, own)
    if x.shape[0] == 0 or table.shape[0] == 0:
        return
    with nogil:
        if floating is float:
            lines_scatter_f32(&x[0, 0], &table[0, 0], &lines[0, 0], &own[0, 0], x.shape[0],
                              lines.shape[1], x.shape[1])
        else:
            lines_scatter_f64(&x[0, 0], &table[0, 0], &lines[0, 0], &own[0, 0], x.shape[0],
                              lines.shape[1], x.shape[1])


def _check(Py_ssize_t n, Py_ssize_t k, Py_ssize_t width, const int32_t[:, ::1] lines,
           const int64_t[:, ::1] own):
    if lines.shape[0] != n or width != k or own.shape[0] != lines.shape[1] or own.shape[1] != 2:
        raise ValueError("the arrays do not match")
