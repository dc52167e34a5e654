/* The fused pass for every element type and vector width, and the choice of the width at
 * run time:
 *
 *   fsll_lanes_f64, fsll_lanes_f32                      elements in the widest vector
 *   fsll_scan_f64, fsll_scan_f32                        for `lanes` elements in a vector,
 *   fsll_update_and_scan_f64, fsll_update_and_scan_f32  that number or 1
 */
#include <math.h>
#include "_simd.h"

typedef struct {
    double change; /* of the cost, by the best move so far */
    int64_t code;  /* of its term; -1 while nothing beats the start value */
    int64_t former; /* the term that was best before, or -1 */
} fsll_champion;

typedef struct {
    const void *r_outer;
    const void *r_inner;
    const uint8_t *order_outer;
    const uint8_t *order_inner;
    int64_t n_inner;
    int inner_bits; /* binary logarithm of n_inner, where it is a power of two */
    int max_order;
} fsll_penalty;

/* KL(p_d || p) after setting the dual parameter t to d, minus KL before; eq. 2.18. */
static inline double fsll_append_change(double t, double d)
{
    return 0.5 * ((1 + d) * log((1 + t) / (1 + d)) + (1 - d) * log((1 - t) / (1 - d)));
}

/* A moment that rounding has brought to the edge of (-1, 1), or beyond, is inside. */
static inline double fsll_inside(double t, size_t bytes)
{
    const double edge = 1 - (bytes == 4 ? 0x1p-24 : 0x1p-53);
    return t > edge ? edge : t < -edge ? -edge : t;
}

/* Where lane k is after a swap by one bit. */
#define SWAP1_2 1, 0
#define SWAP1_4 SWAP1_2, 3, 2
#define SWAP1_8 SWAP1_4, 5, 4, 7, 6
#define SWAP1_16 SWAP1_8, 9, 8, 11, 10, 13, 12, 15, 14
#define SWAP2_4 2, 3, 0, 1
#define SWAP2_8 SWAP2_4, 6, 7, 4, 5
#define SWAP2_16 SWAP2_8, 10, 11, 8, 9, 14, 15, 12, 13
#define SWAP4_8 4, 5, 6, 7, 0, 1, 2, 3
#define SWAP4_16 SWAP4_8, 12, 13, 14, 15, 8, 9, 10, 11
#define SWAP8_16 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7

#define REAL double
#define INT int64_t
#define LANES 1
#define TARGET
#define SUFFIX _f64x1
#include "_dual_update.h"

#define REAL float
#define INT int32_t
#define LANES 1
#define TARGET
#define SUFFIX _f32x1
#include "_dual_update.h"

#if SIMD_VECTORS
#define REAL double
#define INT int64_t
#define LANES 2
#define TARGET
#define SUFFIX _f64x2
#include "_dual_update.h"

#define REAL float
#define INT int32_t
#define LANES 4
#define TARGET
#define SUFFIX _f32x4
#include "_dual_update.h"
#endif

#if SIMD_X86
#define REAL double
#define INT int64_t
#define LANES 4
#define TARGET SIMD_AVX2
#define SUFFIX _f64x4
#include "_dual_update.h"

#define REAL float
#define INT int32_t
#define LANES 8
#define TARGET SIMD_AVX2
#define SUFFIX _f32x8
#include "_dual_update.h"

#define REAL double
#define INT int64_t
#define LANES 8
#define TARGET SIMD_AVX512
#define SUFFIX _f64x8
#include "_dual_update.h"

#define REAL float
#define INT int32_t
#define LANES 16
#define TARGET SIMD_AVX512
#define SUFFIX _f32x16
#include "_dual_update.h"
#endif

#if SIMD_X86
static int fsll_lanes_f64(void) { return simd_register_bytes() / 8; }
static int fsll_lanes_f32(void) { return simd_register_bytes() / 4; }
#define FSLL_WIDTH(lanes, x1, x16, x32, x64) \
    ((lanes) == 1 ? x1 : simd_register_bytes() == 64 ? x64 : simd_register_bytes() == 32 ? x32 : x16)
#elif SIMD_VECTORS
static int fsll_lanes_f64(void) { return 2; }
static int fsll_lanes_f32(void) { return 4; }
#define FSLL_WIDTH(lanes, x1, x16, x32, x64) ((lanes) == 1 ? x1 : x16)
#else
static int fsll_lanes_f64(void) { return 1; }
static int fsll_lanes_f32(void) { return 1; }
#define FSLL_WIDTH(lanes, x1, x16, x32, x64) x1
#endif

static void fsll_scan_f64(int lanes, const double *t, const double *d, int64_t begin, int64_t end,
                          const fsll_penalty *penalty, fsll_champion *best)
{
    FSLL_WIDTH(lanes, fsll_scan_f64x1, fsll_scan_f64x2, fsll_scan_f64x4, fsll_scan_f64x8)
    (t, d, begin, end, penalty, best);
}

static void fsll_scan_f32(int lanes, const float *t, const float *d, int64_t begin, int64_t end,
                          const fsll_penalty *penalty, fsll_champion *best)
{
    FSLL_WIDTH(lanes, fsll_scan_f32x1, fsll_scan_f32x4, fsll_scan_f32x8, fsll_scan_f32x16)
    (t, d, begin, end, penalty, best);
}

static void fsll_update_and_scan_f64(int lanes, double *t, const double *d, int64_t mask, double a,
                                     double b, int64_t begin, int64_t end,
                                     const fsll_penalty *penalty, fsll_champion *best)
{
    FSLL_WIDTH(lanes, fsll_update_and_scan_f64x1, fsll_update_and_scan_f64x2,
               fsll_update_and_scan_f64x4, fsll_update_and_scan_f64x8)
    (t, d, mask, a, b, begin, end, penalty, best);
}

static void fsll_update_and_scan_f32(int lanes, float *t, const float *d, int64_t mask, float a,
                                     float b, int64_t begin, int64_t end,
                                     const fsll_penalty *penalty, fsll_champion *best)
{
    FSLL_WIDTH(lanes, fsll_update_and_scan_f32x1, fsll_update_and_scan_f32x4,
               fsll_update_and_scan_f32x8, fsll_update_and_scan_f32x16)
    (t, d, mask, a, b, begin, end, penalty, best);
}
