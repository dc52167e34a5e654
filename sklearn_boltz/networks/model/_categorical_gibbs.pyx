"""Gibbs sweeps over many chains of categorical columns, with counter-based random numbers."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "networks/model/_categorical_gibbs.h" nogil:
    void categorical_gibbs(int32_t*, double*, const double*, const double*, const int64_t*,
                           double, const int64_t*, double*, Py_ssize_t, const uint8_t*,
                           double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t, uint64_t,
                           uint64_t, Py_ssize_t, const uint64_t*) noexcept
    void categorical_draws(int32_t*, const double*, const double*, const int64_t*, const double*,
                           const int64_t*, double*, Py_ssize_t, uint8_t*, int64_t*, int32_t*,
                           double*, double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t, uint64_t,
                           Py_ssize_t, Py_ssize_t, const uint64_t*) noexcept


def categorical_sweeps(int32_t[:, ::1] codes, double[:, ::1] local,
                       const double[:, ::1] coupling, const double[::1] offset,
                       const int64_t[::1] starts, double scale, const int64_t[:, ::1] pairs,
                       const uint8_t[:, ::1] free, double[::1] work, uint64_t seed,
                       uint64_t first_sweep, Py_ssize_t n_sweeps, const uint64_t[::1] rows,
                       double[:, ::1] sums=None):
    """Resample in place the free columns of each row, `n_sweeps` times: pairs, then each column.

    With u from `uniform`, a sweep being a step and `rows` the row of each chain, one-hot rows x,
    and for each j the states ``own = slice(starts[j], starts[j + 1])``, for each row where
    ``free``:
    ``codes[:, j] = (np.cumsum(softmax((scale * (x @ coupling) + offset)[:, own], axis=1), axis=1)
    <= u[:, [j]]).sum(axis=1)``; `local`, which must be ``x @ coupling``, is kept up to date.

    The columns of a pair where both are free are drawn together, the p-th one with
    ``u[:, d + 2 * p]`` for the first and ``u[:, d + 2 * p + 1]`` for the second. To `sums` the
    softmax of single columns is added, in each sweep. `work` has room for three times the largest
    number of values of a column, and of each pair for the product of its numbers of values, and for
    those of the first.
    """
    cdef const int64_t* of_pairs = NULL
    cdef double* of_sums = NULL
    cdef Py_ssize_t j, most = 0
    for j in range(codes.shape[1]):
        most = max(most, starts[j + 1] - starts[j])
    if pairs.shape[0]:
        of_pairs = &pairs[0, 0]
    if codes.shape[0] and codes.shape[1]:
        if sums is not None:
            of_sums = &sums[0, 0]
        with nogil:
            categorical_gibbs(&codes[0, 0], &local[0, 0], &coupling[0, 0], &offset[0],
                              &starts[0], scale, of_pairs, &work[0] + 3 * most, pairs.shape[0],
                              &free[0, 0], &work[0], most, of_sums, codes.shape[0],
                              codes.shape[1], seed, first_sweep, n_sweeps, &rows[0])


def draw_missing(int32_t[:, ::1] codes, const double[:, ::1] coupling,
                 const double[::1] offset, const int64_t[::1] starts,
                 const double[:, ::1] strengths, const int64_t[:, ::1] pairs, double[::1] work,
                 uint64_t seed, const uint64_t[::1] rows, Py_ssize_t n_sweeps=0,
                 Py_ssize_t n_first=0, double[:, ::1] sums=None):
    """Draw the missing columns, -1, of each row in place, one after another, and by sweeps.

    Always that column j follows which has the largest ``strengths[j, k]``, symmetric, with a known
    column k, from its distribution given all known columns, as in `categorical_sweeps` with step 0.
    Sweeps over these columns follow, as there, with the steps from 1 on; those from `n_first` on
    add to `sums`. `work` has the room that is needed there.
    """
    cdef const int64_t* of_pairs = NULL
    cdef double* of_sums = NULL
    cdef Py_ssize_t d = codes.shape[1], j, most = 0
    cdef uint8_t[::1] free = np.empty(d, dtype=np.uint8)
    cdef int64_t[::1] parts = np.empty(4 * d, dtype=np.int64)
    cdef int32_t[::1] last = np.empty(d, dtype=np.int32)
    cdef double[::1] room = np.empty(3 * starts[d] + 10 * d)
    for j in range(d):
        most = max(most, starts[j + 1] - starts[j])
    if pairs.shape[0]:
        of_pairs = &pairs[0, 0]
    if codes.shape[0] and d:
        if sums is not None:
            of_sums = &sums[0, 0]
        with nogil:
            categorical_draws(&codes[0, 0], &coupling[0, 0], &offset[0], &starts[0],
                              &strengths[0, 0], of_pairs, &work[0] + 3 * most, pairs.shape[0],
                              &free[0], &parts[0], &last[0], &room[0], &work[0], most,
                              of_sums, codes.shape[0], d, seed, n_first, n_sweeps, &rows[0])
