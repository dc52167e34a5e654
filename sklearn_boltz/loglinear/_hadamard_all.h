/* The fast Walsh-Hadamard transform for every element type and vector width, and the
 * choice of the width at run time:
 *
 *   fwht_f64, fwht_f32                  the transform of an (outer, 2^levels, inner) array
 *   fwht_columns_f64, fwht_columns_f32  that of some columns of a (2^levels, inner) matrix
 */
#include "_simd.h"

/* One element at a time: for the ends of runs, and where the compiler has no vectors. */
#define SCALAR_BUTTERFLY fwht_butterfly_f64x1
#define REAL double
#define LANES 1
#define TARGET
#define SUFFIX _f64x1
#include "_hadamard.h"

#if SIMD_VECTORS
#define REAL double
#define LANES 2
#define TARGET
#define SUFFIX _f64x2
#include "_hadamard.h"
#endif

#if SIMD_X86
#define REAL double
#define LANES 4
#define TARGET SIMD_AVX2
#define SUFFIX _f64x4
#include "_hadamard.h"

#define REAL double
#define LANES 8
#define TARGET SIMD_AVX512
#define SUFFIX _f64x8
#include "_hadamard.h"
#endif
#undef SCALAR_BUTTERFLY

#define SCALAR_BUTTERFLY fwht_butterfly_f32x1
#define REAL float
#define LANES 1
#define TARGET
#define SUFFIX _f32x1
#include "_hadamard.h"

#if SIMD_VECTORS
#define REAL float
#define LANES 4
#define TARGET
#define SUFFIX _f32x4
#include "_hadamard.h"
#endif

#if SIMD_X86
#define REAL float
#define LANES 8
#define TARGET SIMD_AVX2
#define SUFFIX _f32x8
#include "_hadamard.h"

#define REAL float
#define LANES 16
#define TARGET SIMD_AVX512
#define SUFFIX _f32x16
#include "_hadamard.h"
#endif
#undef SCALAR_BUTTERFLY

#if SIMD_X86
#define FWHT_WIDEST(name1, name16, name32, name64) \
    (simd_register_bytes() == 64 ? name64 : simd_register_bytes() == 32 ? name32 : name16)
#elif SIMD_VECTORS
#define FWHT_WIDEST(name1, name16, name32, name64) name16
#else
#define FWHT_WIDEST(name1, name16, name32, name64) name1
#endif

static void fwht_f64(double *a, ptrdiff_t outer, int levels, ptrdiff_t inner)
{
    FWHT_WIDEST(fwht_f64x1, fwht_f64x2, fwht_f64x4, fwht_f64x8)(a, outer, levels, inner);
}

static void fwht_f32(float *a, ptrdiff_t outer, int levels, ptrdiff_t inner)
{
    FWHT_WIDEST(fwht_f32x1, fwht_f32x4, fwht_f32x8, fwht_f32x16)(a, outer, levels, inner);
}

static void fwht_columns_f64(
    double *a, int levels, ptrdiff_t inner, ptrdiff_t start, ptrdiff_t stop)
{
    FWHT_WIDEST(
        fwht_columns_f64x1, fwht_columns_f64x2, fwht_columns_f64x4, fwht_columns_f64x8
    )(a, levels, inner, start, stop);
}

static void fwht_columns_f32(
    float *a, int levels, ptrdiff_t inner, ptrdiff_t start, ptrdiff_t stop)
{
    FWHT_WIDEST(
        fwht_columns_f32x1, fwht_columns_f32x4, fwht_columns_f32x8, fwht_columns_f32x16
    )(a, levels, inner, start, stop);
}
