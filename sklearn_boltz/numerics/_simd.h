/* Run-time SIMD dispatch shared by the kernels.
 *
 * The wheels are built for the baseline of the architecture, so that they run everywhere, and
 * pick wider registers at run time. There are two ways:
 *
 * Plain loops that the compiler vectorises by itself: SIMD_DISPATCH begins the definition of a
 * function that GCC compiles once for each width, which is chosen when it is called. Other
 * compilers have it once. simd_f64x8 is for loops that must not depend on the width for the order
 * of their sums.
 *
 * Loops with shuffles: the kernel is a template in plain C, included once for each width of
 * register that the architecture may have, with vectors of just that width, because compilers
 * split wider ones badly; simd_register_bytes() tells which to call. One more inclusion works
 * on single elements, for the ends of runs and for compilers without vector types.
 *
 * SIMD_VECTORS   the compiler has GCC's vector types and shuffles by constant masks
 * SIMD_X86       there is a choice of widths: SIMD_AVX2 and SIMD_AVX512 mark functions
 *
 * For tests and debugging, the environment variable SKLEARN_BOLTZ_REGISTER_BYTES, 16 (SSE2) or
 * 32 (AVX2), does without wider registers. It is read when a kernel is loaded. To do without
 * vectors, define SKLEARN_BOLTZ_PORTABLE.
 */
#ifndef SKLEARN_BOLTZ_SIMD_H
#define SKLEARN_BOLTZ_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Templates: the names of a kernel end with the SUFFIX of the inclusion. */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, SUFFIX)

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

#if defined(__GNUC__) && __has_builtin(__builtin_shufflevector) && !defined(SKLEARN_BOLTZ_PORTABLE)
#define SIMD_VECTORS 1
#define SIMD_INLINE static inline __attribute__((always_inline))
/* Aligned as an element: NumPy promises no more. */
typedef double simd_f64x8 __attribute__((vector_size(64), aligned(8), may_alias));
#else
#define SIMD_VECTORS 0
#define SIMD_INLINE static inline
#endif

#if SIMD_VECTORS && defined(__x86_64__)
#define SIMD_X86 1
#define SIMD_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define SIMD_AVX2 __attribute__((target("avx2,fma")))

/* From GCC 12 on there are clones, and these need all of a level. */
#if !defined(__clang__) && __GNUC__ >= 12
#define SIMD_CLONES 1
#define SIMD_HAS_AVX512 __builtin_cpu_supports("x86-64-v4")
#define SIMD_HAS_AVX2 __builtin_cpu_supports("x86-64-v3")
#else
#define SIMD_CLONES 0
#define SIMD_HAS_AVX512 (__builtin_cpu_supports("avx512f") \
                         && __builtin_cpu_supports("avx512dq") \
                         && __builtin_cpu_supports("avx512vl"))
#define SIMD_HAS_AVX2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#endif

static int simd_bytes; /* of the registers of this processor, or those asked for */

__attribute__((constructor)) static void simd_choose(void)
{
    const char *asked = getenv("SKLEARN_BOLTZ_REGISTER_BYTES");
    const int bytes = asked ? atoi(asked) : 0, most = bytes == 16 || bytes == 32 ? bytes : 64;
    __builtin_cpu_init();
    simd_bytes = most >= 64 && SIMD_HAS_AVX512 ? 64 : most >= 32 && SIMD_HAS_AVX2 ? 32 : 16;
}
#else
#define SIMD_X86 0
#define SIMD_CLONES 0
enum { simd_bytes = 16 };
#endif

static inline int simd_register_bytes(void) { return simd_bytes; }

/* SIMD_DISPATCH(type, name, (parameters), (their names)) { body } */
#if SIMD_CLONES
#define SIMD_LEVEL(level) __attribute__((target("arch=x86-64" level))) static
#define SIMD_DISPATCH(type, name, parameters, names) \
    SIMD_INLINE type JOIN(name, _any) parameters; \
    static type JOIN(name, _16) parameters { return JOIN(name, _any) names; } \
    SIMD_LEVEL("-v3") type JOIN(name, _32) parameters { return JOIN(name, _any) names; } \
    SIMD_LEVEL("-v4") type JOIN(name, _64) parameters { return JOIN(name, _any) names; } \
    static inline type name parameters \
    { \
        return simd_bytes == 64   ? JOIN(name, _64) names \
               : simd_bytes == 32 ? JOIN(name, _32) names \
                                  : JOIN(name, _16) names; \
    } \
    SIMD_INLINE type JOIN(name, _any) parameters
#else
#define SIMD_DISPATCH(type, name, parameters, names) static inline type name parameters
#endif

#endif
