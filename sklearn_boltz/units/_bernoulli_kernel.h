/* Element-wise kernels of Bernoulli units, one row at a time; a template, included once for each
 * element type:
 *
 *   REAL      float or double
 *   SUFFIX    appended to the names
 *
 * Plain loops without branches, for the compiler to vectorise.
 */
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

#ifndef BERNOULLI_ONCE
#define BERNOULLI_ONCE
#include <math.h>
#include <string.h>

enum {
    /* Partial products and sums that a row is dealt out to, whatever the registers. */
    BERNOULLI_LANES = 16,
    /* Factors between 1/2 and 2 that may be multiplied before a logarithm is taken. */
    BERNOULLI_FACTORS = 64,
    /* Numbers that are drawn once more where the first bits of one of them decide nothing. */
    BERNOULLI_BLOCK = 128
};

/* In float32 there are no other bits. */
#define FIRST_BITS_DECIDE (sizeof(REAL) == sizeof(double))
#endif

/* x[j] = 1 / (1 + exp(-(scale x[j] + bias[j]))) */
SIMD_DISPATCH(void, NAME(bernoulli_mean),
              (REAL *restrict x, REAL scale, const REAL *restrict bias, ptrdiff_t n),
              (x, scale, bias, n))
{
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = 1 / (1 + NAME(simd_exp)(-(scale * x[j] + bias[j])));
}

/* x[j] = 1 with probability 1 / (1 + exp(-(scale x[j] + bias[j]))), else 0. For a uniform
 * u, u < 1 / (1 + e) is u + u e < 1, without the division. NaN stays NaN.
 *
 * In float64, what the first bits of u decide is compared for the least and the greatest u that
 * begins with them. Where the two differ, the block is drawn once more with all bits: rounding
 * keeps the order of numbers, so the result is the same as if all had been. */
SIMD_DISPATCH(void, NAME(bernoulli_sample),
              (REAL *restrict x, REAL scale, const REAL *restrict bias, ptrdiff_t n, uint64_t key),
              (x, scale, bias, n, key))
{
    REAL field[BERNOULLI_BLOCK], other[BERNOULLI_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += BERNOULLI_BLOCK, x += BERNOULLI_BLOCK) {
        const int size = n - start < BERNOULLI_BLOCK ? (int)(n - start) : BERNOULLI_BLOCK;
        const REAL *restrict shift = bias + start;
        if (FIRST_BITS_DECIDE) {
            for (int j = 0; j < size; j++) {
                const int32_t bits = random_first_bits(key, (uint32_t)start + (uint32_t)j);
                const REAL least = (REAL)bits * (REAL)0x1p-27, most = least + (REAL)RANDOM_REST;
                const REAL y = scale * x[j] + shift[j], e = NAME(simd_exp)(-y);
                field[j] = y;
                x[j] = y == y ? (least + least * e < 1 ? 1 : 0) : y;
                other[j] = y == y ? (most + most * e < 1 ? 1 : 0) : y;
            }
            if (memcmp(x, other, (size_t)size * sizeof(REAL)) == 0)
                continue;
            memcpy(x, field, (size_t)size * sizeof(REAL));
        }
        for (int j = 0; j < size; j++) {
            const REAL u = NAME(random_uniform)(key, (uint32_t)start + (uint32_t)j);
            const REAL y = FIRST_BITS_DECIDE ? x[j] : scale * x[j] + shift[j];
            x[j] = y == y ? (u + u * NAME(simd_exp)(-y) < 1 ? 1 : 0) : y;
        }
    }
}

/* x[j] = 1 with probability p[j], else 0; in float64 by the first bits where they decide. */
SIMD_DISPATCH(void, NAME(bernoulli_draw),
              (REAL *restrict x, const REAL *restrict p, ptrdiff_t n, uint64_t key),
              (x, p, n, key))
{
    int32_t bits[BERNOULLI_BLOCK];
    REAL other[BERNOULLI_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += BERNOULLI_BLOCK) {
        const int size = n - start < BERNOULLI_BLOCK ? (int)(n - start) : BERNOULLI_BLOCK;
        if (FIRST_BITS_DECIDE) {
            for (int j = 0; j < size; j++)
                bits[j] = random_first_bits(key, (uint32_t)start + (uint32_t)j);
            for (int j = 0; j < size; j++) {
                const REAL least = (REAL)bits[j] * (REAL)0x1p-27;
                x[start + j] = least < p[start + j] ? 1 : 0;
                other[j] = least + (REAL)RANDOM_REST < p[start + j] ? 1 : 0;
            }
            if (memcmp(x + start, other, (size_t)size * sizeof(REAL)) == 0)
                continue;
        }
        for (int j = 0; j < size; j++) {
            const REAL u = NAME(random_uniform)(key, (uint32_t)start + (uint32_t)j);
            x[start + j] = u < p[start + j] ? 1 : 0;
        }
    }
}

/* The sum of softplus(high y) - softplus(low y), y = x + bias. With
 * softplus(z) = max(z, 0) + log(1 + exp(-|z|)), the logarithms become one of a product. */
SIMD_INLINE double NAME(bernoulli_rise)(const REAL *restrict x, const REAL *restrict bias,
                                        ptrdiff_t n, REAL low, REAL high, const int from_zero)
{
    double logarithm = 0;
    REAL positive[BERNOULLI_LANES] = {0};
    for (ptrdiff_t start = 0; start < n; start += BERNOULLI_LANES * BERNOULLI_FACTORS) {
        const ptrdiff_t left = n - start;
        const ptrdiff_t length = left < BERNOULLI_LANES * BERNOULLI_FACTORS ? left : BERNOULLI_LANES * BERNOULLI_FACTORS;
        REAL product[BERNOULLI_LANES];
        for (int lane = 0; lane < BERNOULLI_LANES; lane++)
            product[lane] = 1;
        for (ptrdiff_t i = 0; i + BERNOULLI_LANES <= length; i += BERNOULLI_LANES) {
            for (int lane = 0; lane < BERNOULLI_LANES; lane++) {
                const REAL y = x[start + i + lane] + bias[start + i + lane];
                const REAL size = y < 0 ? -y : y;
                positive[lane] += y > 0 ? y : (y == y ? 0 : y);
                product[lane] *= (1 + NAME(simd_exp)(-high * size)) / (from_zero ? 2 : 1 + NAME(simd_exp)(-low * size));
            }
        }
        for (ptrdiff_t i = length - length % BERNOULLI_LANES; i < length; i++) {
            const REAL y = x[start + i] + bias[start + i];
            const REAL size = y < 0 ? -y : y;
            positive[i % BERNOULLI_LANES] += y > 0 ? y : (y == y ? 0 : y);
            product[i % BERNOULLI_LANES] *= (1 + NAME(simd_exp)(-high * size)) / (from_zero ? 2 : 1 + NAME(simd_exp)(-low * size));
        }
        for (int lane = 0; lane < BERNOULLI_LANES; lane++)
            logarithm += log((double)product[lane]);
    }
    double sum = 0;
    for (int lane = 0; lane < BERNOULLI_LANES; lane++)
        sum += positive[lane];
    return logarithm + (double)(high - low) * sum;
}

/* Of low and high, which are not negative. */
SIMD_DISPATCH(double, NAME(bernoulli_softplus),
              (const REAL *restrict x, const REAL *restrict bias, ptrdiff_t n, REAL low,
               REAL high),
              (x, bias, n, low, high))
{
    /* From 0, one exponential is known: all log-partitions are from there. */
    return low == 0 ? NAME(bernoulli_rise)(x, bias, n, low, high, 1)
                    : NAME(bernoulli_rise)(x, bias, n, low, high, 0);
}

#undef REAL
#undef SUFFIX
