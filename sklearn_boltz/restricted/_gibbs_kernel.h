/* Element-wise kernels of the Gibbs sampler, one row at a time; a template, included once
 * for each element type:
 *
 *   REAL      float or double
 *   SUFFIX    appended to the names
 *
 * Plain loops without branches, for the compiler to vectorise.
 */
#include "_exp.h"
#include "_simd.h"

#ifndef RBM_ONCE
#define RBM_ONCE
#include <math.h>
#include <string.h>

enum {
    /* Partial products and sums that a row is dealt out to, whatever the registers. */
    RBM_LANES = 16,
    /* Factors between 1/2 and 2 that may be multiplied before a logarithm is taken. */
    RBM_FACTORS = 64
};

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64 bits. */
static inline uint64_t rbm_mix64(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The key of a row of random numbers. */
static inline uint64_t rbm_row_key(uint64_t seed, uint64_t step, uint64_t row)
{
    return rbm_mix64(rbm_mix64(rbm_mix64(seed) ^ step) ^ row);
}

/* 32 random bits for a column of a row: a bijective hash of 32 bits of Wellons's triple32
 * family for the lower half of the key, with the upper half added inside. */
static inline uint32_t rbm_bits(uint64_t key, uint32_t column)
{
    uint32_t x = column * UINT32_C(0x9e3779b9) + (uint32_t)key;
    x ^= x >> 17;
    x *= UINT32_C(0xed5ad4bb);
    x ^= x >> 11;
    x += (uint32_t)(key >> 32);
    x *= UINT32_C(0xac4c1b51);
    x ^= x >> 15;
    x *= UINT32_C(0x31848bab);
    return x ^ (x >> 14);
}

/* Uniform on (0, 1): the midpoints of 2^24 and of 2^31 intervals, in float as they are rounded,
 * but never to 1: what has probability 1 must happen. */
static inline float rbm_uniform_f32(uint64_t key, uint32_t column)
{
    const float u = ((float)(int32_t)(rbm_bits(key, column) >> 8) + 0.5f) * 0x1p-24f;
    return u < 1 ? u : 0x1.fffffep-1f;
}

static inline double rbm_uniform_f64(uint64_t key, uint32_t column)
{
    return ((double)(int32_t)(rbm_bits(key, column) >> 1) + 0.5) * 0x1p-31;
}
#endif

/* x[j] = 1 / (1 + exp(-(scale x[j] + bias[j]))) */
SIMD_DISPATCH
void NAME(rbm_mean)(REAL *restrict x, REAL scale, const REAL *restrict bias, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = 1 / (1 + NAME(simd_exp)(-(scale * x[j] + bias[j])));
}

/* x[j] = 1 with probability 1 / (1 + exp(-(scale x[j] + bias[j]))), else 0. For a uniform
 * u, u < 1 / (1 + e) is u + u e < 1, without the division. NaN stays NaN. */
SIMD_DISPATCH
void NAME(rbm_sample)(REAL *restrict x, REAL scale, const REAL *restrict bias, ptrdiff_t n,
                      uint64_t key)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        const REAL field = scale * x[j] + bias[j];
        const REAL u = NAME(rbm_uniform)(key, (uint32_t)j);
        const REAL one = u + u * NAME(simd_exp)(-field) < 1 ? 1 : 0;
        x[j] = field == field ? one : field;
    }
}

/* x[j] = 1 with probability p[j], else 0. */
SIMD_DISPATCH
void NAME(rbm_draw)(REAL *restrict x, const REAL *restrict p, ptrdiff_t n, uint64_t key)
{
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = NAME(rbm_uniform)(key, (uint32_t)j) < p[j] ? 1 : 0;
}

/* The sum of softplus(high y) - softplus(low y), y = x + bias. With
 * softplus(z) = max(z, 0) + log(1 + exp(-|z|)), the logarithms become one of a product.
 * low and high are not negative. */
SIMD_DISPATCH
double NAME(rbm_softplus)(const REAL *restrict x, const REAL *restrict bias, ptrdiff_t n,
                          REAL low, REAL high)
{
    double logarithm = 0;
    REAL positive[RBM_LANES] = {0};
    for (ptrdiff_t start = 0; start < n; start += RBM_LANES * RBM_FACTORS) {
        const ptrdiff_t left = n - start;
        const ptrdiff_t length = left < RBM_LANES * RBM_FACTORS ? left : RBM_LANES * RBM_FACTORS;
        REAL product[RBM_LANES];
        for (int lane = 0; lane < RBM_LANES; lane++)
            product[lane] = 1;
        for (ptrdiff_t i = 0; i + RBM_LANES <= length; i += RBM_LANES) {
            for (int lane = 0; lane < RBM_LANES; lane++) {
                const REAL y = x[start + i + lane] + bias[start + i + lane];
                const REAL size = y < 0 ? -y : y;
                positive[lane] += y > 0 ? y : (y == y ? 0 : y);
                product[lane] *= (1 + NAME(simd_exp)(-high * size)) / (1 + NAME(simd_exp)(-low * size));
            }
        }
        for (ptrdiff_t i = length - length % RBM_LANES; i < length; i++) {
            const REAL y = x[start + i] + bias[start + i];
            const REAL size = y < 0 ? -y : y;
            positive[i % RBM_LANES] += y > 0 ? y : (y == y ? 0 : y);
            product[i % RBM_LANES] *= (1 + NAME(simd_exp)(-high * size)) / (1 + NAME(simd_exp)(-low * size));
        }
        for (int lane = 0; lane < RBM_LANES; lane++)
            logarithm += log((double)product[lane]);
    }
    double sum = 0;
    for (int lane = 0; lane < RBM_LANES; lane++)
        sum += positive[lane];
    return logarithm + (double)(high - low) * sum;
}

#undef REAL
#undef SUFFIX
