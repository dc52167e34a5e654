"""The numbers of the counter-based generator, as arrays."""

from cython cimport floating
from libc.stdint cimport uint64_t


cdef extern from "_random_kernel.h" nogil:
    uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row) noexcept
    void random_fill_f32(float *out, Py_ssize_t n, uint64_t key) noexcept
    void random_fill_f64(double *out, Py_ssize_t n, uint64_t key) noexcept
    void random_normal_f32(float *out, Py_ssize_t n, uint64_t key) noexcept
    void random_normal_f64(double *out, Py_ssize_t n, uint64_t key) noexcept
    int simd_register_bytes() noexcept


def uniform(floating[:, ::1] out, uint64_t seed, uint64_t step, uint64_t first_row=0):
    """Fill an array with the numbers in (0, 1) of (seed, step, row, column)."""
    cdef uint64_t key
    with nogil:
        for i in range(out.shape[0]):
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                random_fill_f32(&out[i, 0], out.shape[1], key)
            else:
                random_fill_f64(&out[i, 0], out.shape[1], key)


def normal(floating[:, ::1] out, uint64_t seed, uint64_t step, uint64_t first_row=0):
    """Fill ``out = scipy.special.ndtri(u)``, with u of float64 from `uniform`, to some ulps."""
    cdef uint64_t key
    with nogil:
        for i in range(out.shape[0]):
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            if floating is float:
                random_normal_f32(&out[i, 0], out.shape[1], key)
            else:
                random_normal_f64(&out[i, 0], out.shape[1], key)


def register_bytes():
    """How wide the registers are that kernels use, at most: see ``_simd.h``."""
    return simd_register_bytes()
