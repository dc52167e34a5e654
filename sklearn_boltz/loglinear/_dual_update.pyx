"""The fused update of the dual table and scan for the next term to append."""

from cython cimport floating
from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport int64_t, uint8_t

import numpy as np


cdef extern from "loglinear/_dual_update_all.h" nogil:
    ctypedef struct fsll_champion:
        double change
        int64_t code
        int64_t former

    ctypedef struct fsll_penalty:
        const void *r_outer
        const void *r_inner
        const uint8_t *order_outer
        const uint8_t *order_inner
        int64_t n_inner
        int inner_bits
        int max_order

    double fsll_append_change(double t, double d) noexcept
    double fsll_inside(double t, size_t n_bytes) noexcept
    int fsll_lanes_f64() noexcept
    int fsll_lanes_f32() noexcept
    void fsll_scan_f64(int, const double*, const double*, int64_t, int64_t,
                       const fsll_penalty*, fsll_champion*) noexcept
    void fsll_scan_f32(int, const float*, const float*, int64_t, int64_t,
                       const fsll_penalty*, fsll_champion*) noexcept
    void fsll_update_and_scan_f64(int, double*, const double*, int64_t, double, double, int64_t,
                                  int64_t, const fsll_penalty*, fsll_champion*) noexcept
    void fsll_update_and_scan_f32(int, float*, const float*, int64_t, float, float, int64_t,
                                  int64_t, const fsll_penalty*, fsll_champion*) noexcept


cdef class Penalty:
    """Cost of each term: ``r_outer[y // n_inner] + r_inner[y % n_inner]``.

    Parameters
    ----------
    r_outer, r_inner : ndarray of float32 or float64
        The two halves of the description length, of the type of the tables.
    order_outer, order_inner : ndarray of uint8
        The two halves of the order of the term, added in the same way.
    max_order : int
        Terms of a higher order are never chosen.
    """

    cdef fsll_penalty c
    cdef readonly object arrays
    cdef readonly int lanes

    def __init__(self, r_outer, r_inner, const uint8_t[::1] order_outer,
                 const uint8_t[::1] order_inner, int max_order):
        cdef int width = fsll_lanes_f64() if r_inner.itemsize == 8 else fsll_lanes_f32()
        # The addresses below stay valid as long as these references live.
        self.arrays = (r_outer, r_inner, np.asarray(order_outer), np.asarray(order_inner))
        self.c.r_outer = <const void*> <size_t> r_outer.ctypes.data
        self.c.r_inner = <const void*> <size_t> r_inner.ctypes.data
        self.c.order_outer = &order_outer[0]
        self.c.order_inner = &order_inner[0]
        self.c.n_inner = r_inner.size
        self.c.inner_bits = int(r_inner.size).bit_length() - 1
        self.c.max_order = max_order
        is_power = r_inner.size == 1 << self.c.inner_bits
        self.lanes = width if is_power and r_inner.size >= width else 1

    def __getitem__(self, int64_t code):
        """The cost of a term; infinite if its order is too high."""
        r_outer, r_inner = self.arrays[:2]
        cdef int64_t outer = code // self.c.n_inner, inner = code % self.c.n_inner
        if self.c.order_outer[outer] + self.c.order_inner[inner] > self.c.max_order:
            return INFINITY
        return float(r_outer[outer]) + float(r_inner[inner])


def scan(const floating[::1] t, const floating[::1] d, Penalty penalty, double best,
         Py_ssize_t begin, Py_ssize_t end):
    """Return (change, code, former) of the best term to append, in blocks [begin, end).

    A block is ``penalty.lanes`` entries. Equal to the minimum over the entries y != 0 of
    ``(1+d)/2*log((1+t)/(1+d)) + (1-d)/2*log((1-t)/(1-d)) + r``, or (best, -1, -1) if none is
    less than ``best``. `former` is the term that was best before, or -1.
    """
    cdef fsll_champion champion
    champion.change = best
    champion.code = champion.former = -1
    with nogil:
        if floating is double:
            fsll_scan_f64(penalty.lanes, &t[0], &d[0], begin, end, &penalty.c, &champion)
        else:
            fsll_scan_f32(penalty.lanes, &t[0], &d[0], begin, end, &penalty.c, &champion)
    return champion.change, champion.code, champion.former


def update_and_scan(floating[::1] t, const floating[::1] d, int64_t mask, double a, double b,
                    Penalty penalty, double best, int64_t best_code, Py_ssize_t begin,
                    Py_ssize_t end):
    """In place ``t = a*t + b*t[np.arange(t.size) ^ mask]``, then as `scan`.

    `best_code` is a term known to change the cost by `best`, or -1.

    Blocks are paired, y with y ^ mask; [begin, end) counts pairs, of which there are half
    as many as blocks, or as many as blocks where the mask lies within a block.
    """
    cdef fsll_champion champion
    champion.change = best
    champion.code = best_code
    champion.former = -1
    with nogil:
        if floating is double:
            fsll_update_and_scan_f64(
                penalty.lanes, &t[0], &d[0], mask, a, b, begin, end, &penalty.c, &champion)
        else:
            fsll_update_and_scan_f32(
                penalty.lanes, &t[0], &d[0], mask, a, b, begin, end, &penalty.c, &champion)
    return champion.change, champion.code, champion.former


def append_change(double t, double d):
    """Change of the divergence when t is set to d: eq. 2.18, without the penalty."""
    return fsll_append_change(fsll_inside(t, sizeof(float)), d)


def active_changes(const floating[::1] t, const floating[::1] d, const int64_t[::1] codes,
                   const double[::1] theta, const double[::1] penalty):
    """Return (change, place) of the best adjustment and of the best removal, flat.

    To adjust a term is to make its t equal to d. To remove it changes the cost by that of
    ``ln Z - theta * d``, which is ``log(cosh(theta) - t*sinh(theta)) + theta*d``, less its
    penalty.
    """
    cdef double adjust = INFINITY, remove = INFINITY, change, ty, dy, up, size
    cdef Py_ssize_t k, best_adjust = -1, best_remove = -1
    for k in range(codes.shape[0]):
        ty = fsll_inside(t[codes[k]], sizeof(floating))
        dy = d[codes[k]]
        change = fsll_append_change(ty, dy)
        if change < adjust:
            adjust = change
            best_adjust = k
        # In terms of exp(-2|theta|), which cannot overflow.
        size = fabs(theta[k])
        up = 0.5 * (1 - ty if theta[k] > 0 else 1 + ty)
        change = size + log(up + (1 - up) * exp(-2 * size)) + theta[k] * dy - penalty[k]
        if change < remove:
            remove = change
            best_remove = k
    return adjust, best_adjust, remove, best_remove
