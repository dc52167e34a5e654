"""Gibbs sweeps over many chains of categorical columns, with counter-based random numbers."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "networks/model/_categorical_gibbs.h" nogil:
    void categorical_gibbs(int32_t*, double*, const double*, const double*, const int64_t*,
                           double, const uint8_t*, double*, Py_ssize_t, Py_ssize_t, uint64_t,
                           uint64_t, Py_ssize_t, const uint64_t*) noexcept


def categorical_sweeps(int32_t[:, ::1] codes, double[:, ::1] local,
                       const double[:, ::1] coupling, const double[::1] offset,
                       const int64_t[::1] starts, double scale, const uint8_t[:, ::1] free,
                       double[::1] work, uint64_t seed, uint64_t first_sweep,
                       Py_ssize_t n_sweeps, const uint64_t[::1] rows):
    """Resample in place the free columns of each row, one after another, `n_sweeps` times.

    With u from `uniform`, a sweep being a step and `rows` the row of each chain, one-hot rows x,
    and for each j the states ``own = slice(starts[j], starts[j + 1])``, for each row where
    ``free``:
    ``codes[:, j] = (np.cumsum(softmax((scale * (x @ coupling) + offset)[:, own], axis=1), axis=1)
    <= u[:, [j]]).sum(axis=1)``; `local`, which must be ``x @ coupling``, is kept up to date.
    `work` has room for the largest number of values of a column.
    """
    if codes.shape[0] and codes.shape[1]:
        with nogil:
            categorical_gibbs(&codes[0, 0], &local[0, 0], &coupling[0, 0], &offset[0],
                              &starts[0], scale, &free[0, 0], &work[0], codes.shape[0],
                              codes.shape[1], seed, first_sweep, n_sweeps, &rows[0])
