"""Gibbs sweeps over many chains, with counter-based random numbers."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

import numpy as np


cdef extern from "fully_visible/_gibbs.h" nogil:
    void philox4x32(const uint32_t*, uint64_t, uint32_t*) noexcept
    void gibbs_uniforms(uint64_t, uint64_t, uint32_t, uint32_t, double*) noexcept
    void fvbm_gibbs(double*, double*, const double*, const double*, double, const uint8_t*,
                    Py_ssize_t, Py_ssize_t, uint64_t, uint64_t, Py_ssize_t) noexcept


def philox(const uint32_t[::1] counter, uint64_t seed):
    """The four words of Philox4x32-10 for a counter of four words and a key."""
    cdef uint32_t[::1] out = np.empty(4, dtype=np.uint32)
    philox4x32(&counter[0], seed, &out[0])
    return np.asarray(out)


def uniforms(uint64_t seed, uint64_t sweep, Py_ssize_t n, Py_ssize_t d):
    """The uniforms in [0, 1) that `gibbs_sweeps` uses in one sweep, (n, d)."""
    cdef double[:, ::1] out = np.empty((n, d + d % 2))
    cdef Py_ssize_t i, pair
    for i in range(n):
        for pair in range((d + 1) // 2):
            gibbs_uniforms(seed, sweep, i, pair, &out[i, 2 * pair])
    return np.asarray(out)[:, :d]


def gibbs_sweeps(double[:, ::1] x, double[:, ::1] local, const double[:, ::1] coupling,
                 const double[::1] offset, double scale, const uint8_t[:, ::1] free,
                 uint64_t seed, uint64_t first_sweep, Py_ssize_t n_sweeps):
    """Resample in place the free columns of each row, one after another, `n_sweeps` times.

    With ``u = uniforms(seed, sweep, *x.shape)``, for each j and each row where ``free``:
    ``x[:, j] = np.where(u[:, j] < expit(2 * (scale * (x @ coupling)[:, j] + offset[j])), 1, -1)``;
    `local`, which must be ``x @ coupling``, is kept up to date.
    """
    if x.shape[0] and x.shape[1]:
        with nogil:
            fvbm_gibbs(&x[0, 0], &local[0, 0], &coupling[0, 0], &offset[0], scale, &free[0, 0],
                       x.shape[0], x.shape[1], seed, first_sweep, n_sweeps)
