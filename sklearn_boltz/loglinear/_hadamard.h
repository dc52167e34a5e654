/* Fast Walsh-Hadamard transform along the middle axis of a C-ordered
 * (outer, m, inner) array, in place, unnormalised, natural (Sylvester) order.
 *
 * This file is a template, included by _hadamard_all.h once for each pair of an
 * element type and a vector width:
 *
 *   REAL    double or float
 *   LANES   elements in a vector, which is REAL itself with LANES 1
 *   TARGET  attribute of functions that may use registers of that width
 *   SUFFIX  appended to the names
 *
 * The stage of distance h replaces rows j and j + h by their sum and difference.
 * Every element sees its stages in the order h = 1, 2, 4, ..., so the result has
 * the bits of the textbook double loop, however the work is cut up. A pass is one
 * trip through memory and makes up to four stages in registers (a butterfly of
 * radix 2, 4, 8 or 16). Blocks that fit the cache are finished first, then joined
 * by passes that go depth first, so that most passes find their data in a cache.
 */
#define VECTOR NAME(fwht_vector)
#define NEAR_LEVELS (LANES > 1 ? FWHT_NEAR_LEVELS : FWHT_SCALAR_LEVELS)
#define FAR_LEVELS (LANES > 1 ? FWHT_FAR_LEVELS : FWHT_SCALAR_LEVELS)

#ifndef FWHT_ONCE
#define FWHT_ONCE

enum {
    /* Bytes of a block that is finished before the next is touched: well inside a
     * usual second-level cache. */
    FWHT_BLOCK_BYTES = 131072,
    /* Rows as close as this do not collide in the first-level cache. Rows farther
     * apart by a power of two share one set of it, which holds eight lines or more. */
    FWHT_NEAR_BYTES = 1024,
    FWHT_NEAR_LEVELS = 4,
    FWHT_FAR_LEVELS = 3,
    /* A scalar pass returns to each cache line for every element of it, and compilers
     * spill the registers of larger butterflies. */
    FWHT_SCALAR_LEVELS = 2,
    /* Runs as long as this are worth a scalar start up to the next cache line:
     * NumPy's large arrays begin 16 bytes off one, and then wide vectors straddle two. */
    FWHT_ALIGNED_BYTES = 4096
};

#if defined(__clang__)
#define FWHT_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define FWHT_UNROLL _Pragma("GCC unroll 16")
#else
#define FWHT_UNROLL
#endif

/* One stage between lanes: partner + sign * self, a fused multiply-add where there is
 * one, with the one rounding of a butterfly. */
#define FWHT_LANE_STAGE(x, sign, ...) \
    x = __builtin_shufflevector(x, x, __VA_ARGS__) + (sign) * x
#endif

#if LANES == 1
typedef REAL VECTOR;
#else
/* NumPy promises no more than the alignment of an element. */
typedef REAL VECTOR __attribute__((vector_size(LANES * sizeof(REAL)), may_alias,
                                   aligned(sizeof(REAL))));
#endif

/* The stages inside one vector. */
TARGET SIMD_INLINE VECTOR NAME(fwht_lanes)(VECTOR x)
{
#if LANES == 2
    const VECTOR sign1 = {1, -1};
    FWHT_LANE_STAGE(x, sign1, 1, 0);
#elif LANES == 4
    const VECTOR sign1 = {1, -1, 1, -1}, sign2 = {1, 1, -1, -1};
    FWHT_LANE_STAGE(x, sign1, 1, 0, 3, 2);
    FWHT_LANE_STAGE(x, sign2, 2, 3, 0, 1);
#elif LANES == 8
    const VECTOR sign1 = {1, -1, 1, -1, 1, -1, 1, -1}, sign2 = {1, 1, -1, -1, 1, 1, -1, -1};
    const VECTOR sign4 = {1, 1, 1, 1, -1, -1, -1, -1};
    FWHT_LANE_STAGE(x, sign1, 1, 0, 3, 2, 5, 4, 7, 6);
    FWHT_LANE_STAGE(x, sign2, 2, 3, 0, 1, 6, 7, 4, 5);
    FWHT_LANE_STAGE(x, sign4, 4, 5, 6, 7, 0, 1, 2, 3);
#elif LANES == 16
    const VECTOR sign1 = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    const VECTOR sign2 = {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1};
    const VECTOR sign4 = {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1};
    const VECTOR sign8 = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
    FWHT_LANE_STAGE(x, sign1, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    FWHT_LANE_STAGE(x, sign2, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    FWHT_LANE_STAGE(x, sign4, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    FWHT_LANE_STAGE(x, sign8, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
    return x;
}

/* The stages of `radix` vectors that lie `stride` apart: LANES adjacent butterflies.
 * With `first`, the vectors are adjacent and the stages inside each come first. */
TARGET SIMD_INLINE void NAME(fwht_butterfly)(
    REAL *a, ptrdiff_t stride, const int radix, const int first)
{
    VECTOR x[16];
    FWHT_UNROLL
    for (int k = 0; k < radix; k++) {
        x[k] = *(const VECTOR *)(a + k * stride);
        if (first)
            x[k] = NAME(fwht_lanes)(x[k]);
    }
    FWHT_UNROLL
    for (int h = 1; h < radix; h *= 2) {
        FWHT_UNROLL
        for (int k = 0; k < radix; k++) {
            if (k & h)
                continue;
            const VECTOR difference = x[k] - x[k + h];
            x[k] += x[k + h];
            x[k + h] = difference;
        }
    }
    FWHT_UNROLL
    for (int k = 0; k < radix; k++)
        *(VECTOR *)(a + k * stride) = x[k];
}

#if LANES > 1 || !SIMD_VECTORS
/* The butterflies that start at a[0], ..., a[length - 1]. */
TARGET SIMD_INLINE void NAME(fwht_run)(
    REAL *a, ptrdiff_t length, ptrdiff_t stride, const int radix)
{
    ptrdiff_t j = 0;
#if LANES > 1
    if (length * (ptrdiff_t)sizeof(REAL) >= FWHT_ALIGNED_BYTES) {
        const ptrdiff_t head = (ptrdiff_t)((0 - (uintptr_t)a) % 64 / sizeof(REAL));
        for (; j < head; j++)
            SCALAR_BUTTERFLY(a + j, stride, radix, 0);
    }
    for (; j + LANES <= length; j += LANES)
        NAME(fwht_butterfly)(a + j, stride, radix, 0);
#endif
    for (; j < length; j++)
        SCALAR_BUTTERFLY(a + j, stride, radix, 0);
}

/* The levels from `done` on, of columns start .. stop of each of `outer` matrices
 * of shape (2^levels, inner), pass after pass. */
TARGET SIMD_INLINE void NAME(fwht_passes)(
    REAL *a, ptrdiff_t outer, int done, int levels, ptrdiff_t inner,
    ptrdiff_t start, ptrdiff_t stop)
{
    const REAL *end = a + outer * (inner << levels);
    while (done < levels) {
        const ptrdiff_t stride = inner << done;
        const int is_near = stride * (ptrdiff_t)sizeof(REAL) <= FWHT_NEAR_BYTES;
        const int most = is_near ? NEAR_LEVELS : FAR_LEVELS;
        const int step = levels - done < most ? levels - done : most;
        /* Whole rows lie side by side and make one long run. */
        const ptrdiff_t row = stop - start == inner ? stride : inner;
        const ptrdiff_t length = stop - start == inner ? stride : stop - start;
        for (REAL *group = a; group < end; group += stride << step) {
            for (ptrdiff_t j = start; j < stride; j += row) {
                switch (step) {
                case 1: NAME(fwht_run)(group + j, length, stride, 2); break;
                case 2: NAME(fwht_run)(group + j, length, stride, 4); break;
                case 3: NAME(fwht_run)(group + j, length, stride, 8); break;
                default: NAME(fwht_run)(group + j, length, stride, 16);
                }
            }
        }
        done += step;
    }
}

/* The first pass over `size` contiguous elements; returns how many levels it did. */
TARGET SIMD_INLINE int NAME(fwht_first_pass)(REAL *a, ptrdiff_t size, int levels)
{
    const int inside = LANES == 16 ? 4 : LANES == 8 ? 3 : LANES / 2;
    const int left = levels - inside;
    const int between = left < NEAR_LEVELS ? left : NEAR_LEVELS;
    if (left < 0)
        return 0;
    for (const REAL *end = a + size; a < end; a += LANES << between) {
        switch (between) {
        case 0: NAME(fwht_butterfly)(a, LANES, 1, 1); break;
        case 1: NAME(fwht_butterfly)(a, LANES, 2, 1); break;
        case 2: NAME(fwht_butterfly)(a, LANES, 4, 1); break;
        case 3: NAME(fwht_butterfly)(a, LANES, 8, 1); break;
        default: NAME(fwht_butterfly)(a, LANES, 16, 1);
        }
    }
    return inside + between;
}

/* The transform of columns start .. stop of a (2^levels, inner) matrix. */
TARGET static void NAME(fwht_columns)(
    REAL *a, int levels, ptrdiff_t inner, ptrdiff_t start, ptrdiff_t stop)
{
    NAME(fwht_passes)(a, 1, 0, levels, inner, start, stop);
}

/* The transform of an (outer, 2^levels, inner) array that fits the cache. */
TARGET static void NAME(fwht_block)(REAL *a, ptrdiff_t outer, int levels, ptrdiff_t inner)
{
    const int done = inner == 1 ? NAME(fwht_first_pass)(a, outer << levels, levels) : 0;
    NAME(fwht_passes)(a, outer, done, levels, inner, 0, inner);
}

/* The transform of an (outer, 2^levels, inner) array. */
static void NAME(fwht)(REAL *a, ptrdiff_t outer, int levels, ptrdiff_t inner)
{
    const ptrdiff_t size = inner << levels;
    const ptrdiff_t limit = FWHT_BLOCK_BYTES / (ptrdiff_t)sizeof(REAL);
    if (levels == 0 || size == 0)
        return;
    if (size <= limit) {
        const ptrdiff_t together = limit / size;
        for (ptrdiff_t i = 0; i < outer; i += together) {
            const ptrdiff_t count = outer - i < together ? outer - i : together;
            NAME(fwht_block)(a + i * size, count, levels, inner);
        }
        return;
    }
    const int top = levels < FAR_LEVELS ? levels : FAR_LEVELS;
    for (ptrdiff_t i = 0; i < outer; i++) {
        NAME(fwht)(a + i * size, (ptrdiff_t)1 << top, levels - top, inner);
        NAME(fwht_columns)(a + i * size, top, size >> top, 0, size >> top);
    }
}
#endif

#undef REAL
#undef LANES
#undef TARGET
#undef SUFFIX
#undef VECTOR
#undef NEAR_LEVELS
#undef FAR_LEVELS
