"""Missing cells of rows by enumeration: their probabilities, and sums over their joint states."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "networks/model/_enumeration.h" nogil:
    ctypedef struct enumeration:
        pass
    enumeration *enumeration_new(Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    void enumeration_free(enumeration *) noexcept
    void enumeration_rows(enumeration *, const int32_t *, double *, const double *,
                          const int64_t *, const uint8_t *, double, double *, uint8_t *,
                          int64_t *, int64_t *, double *, double *, Py_ssize_t,
                          Py_ssize_t) noexcept
    void enumeration_weights(enumeration *, const double *, const double *, const int64_t *,
                             Py_ssize_t, Py_ssize_t, double *, uint64_t, uint64_t, Py_ssize_t,
                             Py_ssize_t, double *) noexcept


def enumerate_rows(const int32_t[:, ::1] codes, double[:, ::1] fields,
                   const double[:, ::1] coupling, const int64_t[::1] starts,
                   const uint8_t[:, ::1] adjacency, double max_states, double[::1] log_sums,
                   uint8_t[::1] is_exact):
    """Fill in p(missing cells | observed cells) of rows, and ln of the sums over missing cells.

    Parameters
    ----------
    codes : ndarray of int32 of shape (n, d)
        -1 for a missing cell.
    fields : ndarray of shape (n, Q)
        What observed cells add to the fields of all values, intercepts included. The values of
        missing cells are overwritten with their probabilities.
    coupling : ndarray of shape (Q, Q)
    starts : ndarray of int64 of shape (d + 1,)
        Where the values of each column begin.
    adjacency : ndarray of uint8 of shape (d, d)
        Which columns are coupled.
    max_states : float
        A row in which connected missing cells have more joint states is left as it is.
    log_sums : ndarray of shape (n,)
        Overwritten; 0 for a row without missing cells.
    is_exact : ndarray of uint8 of shape (n,)
        Overwritten with which rows were enumerated.
    """
    cdef Py_ssize_t n = codes.shape[0], d = codes.shape[1]
    if n == 0 or d == 0:
        is_exact[:] = 1
        log_sums[:] = 0
        return
    cdef int64_t[::1] integers = np.empty(2 * d, dtype=np.int64)
    cdef double[::1] own = np.empty(2 * starts[d])
    cdef enumeration *plan = enumeration_new(d, starts[d], np.diff(starts).max())
    if plan == NULL:
        raise MemoryError
    with nogil:
        enumeration_rows(plan, &codes[0, 0], &fields[0, 0], &coupling[0, 0], &starts[0],
                         &adjacency[0, 0], max_states, &log_sums[0], &is_exact[0], &integers[0],
                         &integers[d], &own[0], &own[starts[d]], n, d)
        enumeration_free(plan)


def importance_weights(const double[:, ::1] fields, const double[:, ::1] coupling,
                       const int64_t[::1] starts, Py_ssize_t n_drawn, Py_ssize_t n_draws,
                       uint64_t seed, uint64_t first_draw):
    """ln of weights whose mean is the sum over all joint states of some columns.

    Parameters
    ----------
    fields : ndarray of shape (n, Q)
        Rows with fields of their own.
    coupling : ndarray of shape (Q, Q)
    starts : ndarray of int64 of shape (d + 1,)
    n_drawn : int
        The first columns, which are drawn; the others are summed out, which takes as long as they
        have joint states.
    n_draws : int
    seed, first_draw : int
        Random numbers are functions of (seed, number of the draw, column).

    Returns
    -------
    log_weights : ndarray of shape (n, n_draws)
    """
    cdef Py_ssize_t n = fields.shape[0], width = fields.shape[1], k = starts.shape[0] - 1
    log_weights = np.empty((n, n_draws))
    cdef double[:, ::1] out = log_weights
    cdef double[::1] room = np.empty(6 * width)
    cdef enumeration *plan = enumeration_new(k, width, np.diff(starts).max(initial=1))
    if plan == NULL:
        raise MemoryError
    with nogil:
        enumeration_weights(plan, &fields[0, 0], &coupling[0, 0], &starts[0], k, n_drawn, &room[0],
                            seed, first_draw, n, n_draws, &out[0, 0])
        enumeration_free(plan)
    return log_weights
