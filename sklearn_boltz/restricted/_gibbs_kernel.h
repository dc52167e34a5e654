/* Element-wise kernels of the Gibbs sampler, one row at a time; a template, included once
 * for each element type:
 *
 *   REAL      float or double
 *   SUFFIX    appended to the names
 *
 * Plain loops without branches, for the compiler to vectorise. exp() is written out here,
 * because calls to the C library are not vectorised without -ffast-math.
 */
#include "_simd.h"

#ifndef RBM_ONCE
#define RBM_ONCE
#include <math.h>
#include <string.h>

#define RBM_JOIN2(a, b) a##b
#define RBM_JOIN(a, b) RBM_JOIN2(a, b)

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

/* Uniform on (0, 1): the midpoints of 2^24 and of 2^31 intervals. */
static inline float rbm_uniform_f32(uint64_t key, uint32_t column)
{
    return ((float)(int32_t)(rbm_bits(key, column) >> 8) + 0.5f) * 0x1p-24f;
}

static inline double rbm_uniform_f64(uint64_t key, uint32_t column)
{
    return ((double)(int32_t)(rbm_bits(key, column) >> 1) + 0.5) * 0x1p-31;
}

/* exp for |x| < 87, to 2 units in the last place: x = n ln 2 + r with |r| < ln 2 / 2, and
 * a Taylor polynomial in r. Adding and subtracting 1.5 * 2^23 rounds to an integer. */
static inline float rbm_exp_f32(float x)
{
    const float limit = 87.0f;
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const float shifted = x * 0x1.715476p+0f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)bits << 23) + 0x3f800000;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* The same for |x| < 700. */
static inline double rbm_exp_f64(double x)
{
    const double limit = 700.0;
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const double shifted = x * 0x1.71547652b82fep+0 + 6755399441055744.0;
    const double n = shifted - 6755399441055744.0;
    const double r = (x - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b39p-40;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int64_t)((uint64_t)bits << 52) + INT64_C(0x3ff0000000000000);
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}
#endif

#define NAME(name) RBM_JOIN(name, SUFFIX)

/* x[j] = 1 / (1 + exp(-(scale x[j] + bias[j]))) */
SIMD_DISPATCH
void NAME(rbm_mean)(REAL *restrict x, REAL scale, const REAL *restrict bias, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = 1 / (1 + NAME(rbm_exp)(-(scale * x[j] + bias[j])));
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
        const REAL one = u + u * NAME(rbm_exp)(-field) < 1 ? 1 : 0;
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
                product[lane] *= (1 + NAME(rbm_exp)(-high * size)) / (1 + NAME(rbm_exp)(-low * size));
            }
        }
        for (ptrdiff_t i = length - length % RBM_LANES; i < length; i++) {
            const REAL y = x[start + i] + bias[start + i];
            const REAL size = y < 0 ? -y : y;
            positive[i % RBM_LANES] += y > 0 ? y : (y == y ? 0 : y);
            product[i % RBM_LANES] *= (1 + NAME(rbm_exp)(-high * size)) / (1 + NAME(rbm_exp)(-low * size));
        }
        for (int lane = 0; lane < RBM_LANES; lane++)
            logarithm += log((double)product[lane]);
    }
    double sum = 0;
    for (int lane = 0; lane < RBM_LANES; lane++)
        sum += positive[lane];
    return logarithm + (double)(high - low) * sum;
}

#undef NAME
#undef REAL
#undef SUFFIX
