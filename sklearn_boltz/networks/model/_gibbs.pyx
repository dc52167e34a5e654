"""Fields of rows, and Gibbs sweeps over many chains with counter-based random numbers."""

from libc.stdint cimport uint8_t, uint64_t


cdef extern from "networks/model/_gibbs.h" nogil:
    void fvbm_fields(const double*, const double*, const double*, double*, Py_ssize_t,
                     Py_ssize_t) noexcept
    void fvbm_gibbs(double*, double*, const double*, const double*, double, const uint8_t*,
                    Py_ssize_t, Py_ssize_t, uint64_t, uint64_t, Py_ssize_t,
                    const uint64_t*) noexcept


def row_fields(const double[:, ::1] x, const double[:, ::1] coupling,
               const double[::1] intercept, double[:, ::1] out):
    """Fill ``out = x @ coupling + intercept``; equal rows get equal bits."""
    if out.shape[0] and out.shape[1]:
        with nogil:
            fvbm_fields(&x[0, 0], &coupling[0, 0], &intercept[0], &out[0, 0],
                        x.shape[0], x.shape[1])


def gibbs_sweeps(double[:, ::1] x, double[:, ::1] local, const double[:, ::1] coupling,
                 const double[::1] offset, double scale, const uint8_t[:, ::1] free,
                 uint64_t seed, uint64_t first_sweep, Py_ssize_t n_sweeps,
                 const uint64_t[::1] rows):
    """Resample in place the free columns of each row, one after another, `n_sweeps` times.

    With u from `uniform`, a sweep being a step and `rows` the row of each chain, for each j and
    each row where ``free``:
    ``x[:, j] = np.where(u[:, j] < expit(2 * (scale * (x @ coupling)[:, j] + offset[j])), 1, -1)``;
    `local`, which must be ``x @ coupling``, is kept up to date.
    """
    if x.shape[0] and x.shape[1]:
        with nogil:
            fvbm_gibbs(&x[0, 0], &local[0, 0], &coupling[0, 0], &offset[0], scale, &free[0, 0],
                       x.shape[0], x.shape[1], seed, first_sweep, n_sweeps, &rows[0])
