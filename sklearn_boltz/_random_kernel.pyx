"""The numbers of the counter-based stream, as an array."""

from cython cimport floating
from libc.stdint cimport uint64_t


cdef extern from "_random.h" nogil:
    uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row) noexcept
    float random_uniform_f32(uint64_t key, unsigned int column) noexcept
    double random_uniform_f64(uint64_t key, unsigned int column) noexcept


def uniform(floating[:, ::1] out, uint64_t seed, uint64_t step, uint64_t first_row=0):
    """Fill an array with the stream's numbers in (0, 1)."""
    cdef uint64_t key
    with nogil:
        for i in range(out.shape[0]):
            key = random_row_key(seed, step, first_row + <uint64_t>i)
            for j in range(out.shape[1]):
                if floating is float:
                    out[i, j] = random_uniform_f32(key, <unsigned int>j)
                else:
                    out[i, j] = random_uniform_f64(key, <unsigned int>j)
