/* The fused pass for every element type, in vectors and one element at a time. */
#include <math.h>
#include "_simd.h"

/* One element at a time: for tables too narrow for vectors, and where the compiler
 * has none. */
typedef int fsll_mask_f64;
typedef int fsll_mask_f32;
static inline int fsll_any_f64(int hit) { return hit; }
static inline int fsll_any_f32(int hit) { return hit; }
static inline double fsll_swap_f64(double x, int lanes) { (void)lanes; return x; }
static inline float fsll_swap_f32(float x, int lanes) { (void)lanes; return x; }

#define REAL double
#define VEC double
#define LANES 1
#define SUFFIX _f64
#include "_dual_update.h"

#define REAL float
#define VEC float
#define LANES 1
#define SUFFIX _f32
#include "_dual_update.h"

#if SIMD_VECTORS
typedef simd_i64x8 fsll_mask_f64x8;
typedef simd_i32x16 fsll_mask_f32x16;

SIMD_INLINE int fsll_any_f64x8(simd_i64x8 hit)
{
    int64_t any = 0;
    for (int k = 0; k < 8; k++)
        any |= hit[k];
    return any != 0;
}

SIMD_INLINE int fsll_any_f32x16(simd_i32x16 hit)
{
    int32_t any = 0;
    for (int k = 0; k < 16; k++)
        any |= hit[k];
    return any != 0;
}

/* x with lane k moved to lane k ^ lanes, composed of swaps by one bit. */
SIMD_INLINE simd_f64x8 fsll_swap_f64x8(simd_f64x8 x, const int lanes)
{
    if (lanes & 1) x = __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
    if (lanes & 2) x = __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    if (lanes & 4) x = __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    return x;
}

SIMD_INLINE simd_f32x16 fsll_swap_f32x16(simd_f32x16 x, const int lanes)
{
    if (lanes & 1)
        x = __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    if (lanes & 2)
        x = __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    if (lanes & 4)
        x = __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    if (lanes & 8)
        x = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    return x;
}

#define REAL double
#define VEC simd_f64x8
#define LANES 8
#define SUFFIX _f64x8
#include "_dual_update.h"

#define REAL float
#define VEC simd_f32x16
#define LANES 16
#define SUFFIX _f32x16
#include "_dual_update.h"
#else
/* The names exist, and are never reached: SIMD_VECTORS tells the caller. */
#define fsll_scan_f64x8 fsll_scan_f64
#define fsll_scan_f32x16 fsll_scan_f32
#define fsll_update_and_scan_f64x8 fsll_update_and_scan_f64
#define fsll_update_and_scan_f32x16 fsll_update_and_scan_f32
#endif
