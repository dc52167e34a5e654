/* Run-time SIMD dispatch shared by the kernels.
 *
 * The wheels are built for the baseline of the architecture, so that they run everywhere, and
 * pick wider registers at run time. There are two ways:
 *
 * Plain loops that the compiler vectorises by itself: a function marked SIMD_DISPATCH is
 * compiled once for each instruction set named there, and the dynamic loader picks the widest
 * that the processor has. Elsewhere (other compilers, other C libraries) the mark is empty.
 * simd_f64x8 is for loops that must not depend on the width for the order of their sums.
 *
 * Loops with shuffles: the kernel is a template in plain C, included once for each width of
 * register that the architecture may have, with vectors of just that width, because compilers
 * split wider ones badly; simd_register_bytes() tells which to call. One more inclusion works
 * on single elements, for the ends of runs and for compilers without vector types.
 *
 * SIMD_VECTORS   the compiler has GCC's vector types and shuffles by constant masks
 * SIMD_X86       there is a choice of widths: SIMD_AVX2 and SIMD_AVX512 mark functions
 *
 * For tests, define SKLEARN_BOLTZ_PORTABLE to do without vectors, or
 * SKLEARN_BOLTZ_REGISTER_BYTES as 16 or 32 to do without the wider ones.
 */
#ifndef SKLEARN_BOLTZ_SIMD_H
#define SKLEARN_BOLTZ_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Templates: the names of a kernel end with the SUFFIX of the inclusion. */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, SUFFIX)

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) \
    && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define SIMD_DISPATCH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SIMD_DISPATCH
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
#ifndef SKLEARN_BOLTZ_REGISTER_BYTES
#define SKLEARN_BOLTZ_REGISTER_BYTES 64
#endif

static inline int simd_register_bytes(void)
{
    if (SKLEARN_BOLTZ_REGISTER_BYTES >= 64 && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 64;
    if (SKLEARN_BOLTZ_REGISTER_BYTES >= 32 && __builtin_cpu_supports("avx2")
        && __builtin_cpu_supports("fma"))
        return 32;
    return 16;
}
#else
#define SIMD_X86 0
#endif

#endif
