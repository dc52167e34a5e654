"""Spins with terms of three and more: fields, sums of terms, and Gibbs sweeps over many chains."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "networks/model/_interaction_gibbs.h" nogil:
    void term_fields(const double*, const int64_t*, const int64_t*, const double*, double*,
                     Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    void term_sums(const double*, const int64_t*, const int64_t*, const double*, double*,
                   Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    void interaction_gibbs(double*, double*, const double*, const int64_t*, const int64_t*,
                           const double*, const int64_t*, const int64_t*, const double*,
                           const double*, double, const uint8_t*, Py_ssize_t, Py_ssize_t,
                           uint64_t, uint64_t, Py_ssize_t, const uint64_t*) noexcept


def add_term_fields(const double[:, ::1] x, const int64_t[::1] starts,
                    const int64_t[::1] members, const double[::1] weights,
                    double[:, ::1] fields):
    """Add to the fields of rows those of terms; equal rows get equal bits.

    For each term t with ``own = members[starts[t]:starts[t + 1]]``, and each j in own:
    ``fields[:, j] += weights[t] * x[:, own[own != j]].prod(axis=1)``.
    """
    if x.shape[0] and weights.shape[0]:
        with nogil:
            term_fields(&x[0, 0], &starts[0], &members[0], &weights[0], &fields[0, 0],
                        x.shape[0], x.shape[1], weights.shape[0])


def sum_terms(const double[:, ::1] x, const int64_t[::1] starts, const int64_t[::1] members,
              const double[::1] weights, double[::1] out):
    """Fill `out` with Σ_t ``weights[t] * x[:, own].prod(axis=1)``, own as in `add_term_fields`."""
    out[:] = 0
    if x.shape[0] and weights.shape[0]:
        with nogil:
            term_sums(&x[0, 0], &starts[0], &members[0], &weights[0], &out[0], x.shape[0],
                      x.shape[1], weights.shape[0])


def interaction_sweeps(double[:, ::1] x, double[:, ::1] local, const double[:, ::1] coupling,
                       const int64_t[::1] starts, const int64_t[::1] members,
                       const double[::1] weights, const int64_t[::1] first,
                       const int64_t[::1] touching, const double[::1] step,
                       const double[::1] offset, double scale, const uint8_t[:, ::1] free,
                       uint64_t seed, uint64_t first_sweep, Py_ssize_t n_sweeps,
                       const uint64_t[::1] rows):
    """Resample in place the free columns of each row, one after another, `n_sweeps` times.

    With u from `uniform`, a sweep being a step and `rows` the row of each chain, ``total`` being
    ``x @ coupling`` and what `add_term_fields` adds, for each j and each row where ``free``:
    ``field = scale * (total[:, j] + step[(x > 0).sum(axis=1) - (x[:, j] > 0)]) + offset[j]`` and
    ``x[:, j] = np.where(u[:, j] < expit(2 * field), 1, -1)``; `local`, which must be ``total``, is
    kept up to date. The terms of column j are ``touching[first[j]:first[j + 1]]``.
    """
    cdef const int64_t* of_terms = NULL
    cdef const int64_t* of_columns = NULL
    cdef const double* strengths = NULL
    if x.shape[0] and x.shape[1]:
        if weights.shape[0]:
            of_terms, of_columns, strengths = &members[0], &touching[0], &weights[0]
        with nogil:
            interaction_gibbs(&x[0, 0], &local[0, 0], &coupling[0, 0], &starts[0], of_terms,
                              strengths, &first[0], of_columns, &step[0], &offset[0], scale,
                              &free[0, 0], x.shape[0], x.shape[1], seed, first_sweep, n_sweeps,
                              &rows[0])
