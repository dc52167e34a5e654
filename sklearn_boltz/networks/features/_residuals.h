/* Residuals of the states of columns given the others, one row at a time; a template, included once
 * for each element type: REAL and SUFFIX as in _bernoulli_kernel.h.
 */
#include "_exp.h"
#include "_simd.h"

#ifndef RESIDUALS_ONCE
#define RESIDUALS_ONCE
#include <math.h>

/* Maxima and sums at once: of this many partial ones, whatever the width of registers; of few
 * states, fewer. */
enum { RESIDUALS_LANES = 16, RESIDUALS_FEW = 4 };
/* Products of sums up to which one logarithm will do for all of them. */
#define RESIDUALS_MOST 1e250
/* Where the exponential function is cut off: products of less are denormal numbers, with which a
 * processor is many times slower. */
#define RESIDUALS_LEAST (-60)
#endif

/* Fields and log-shares of q states -> log-weights, of which the largest is 0, with L lanes. */
SIMD_INLINE void NAME(residuals_begin)(REAL *restrict x, const REAL *restrict base, ptrdiff_t q,
                                       const int L)
{
    const ptrdiff_t whole = q - q % L;
    REAL peaks[RESIDUALS_LANES], peak = x[0] + base[0];
    for (int k = 0; k < L; k++)
        peaks[k] = peak;
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++) {
            x[a + k] += base[a + k];
            peaks[k] = x[a + k] > peaks[k] ? x[a + k] : peaks[k];
        }
    for (int k = 0; k < L; k++)
        peak = peaks[k] > peak ? peaks[k] : peak;
    for (ptrdiff_t a = whole; a < q; a++) {
        x[a] += base[a];
        peak = x[a] > peak ? x[a] : peak;
    }
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++)
            x[a + k] -= peak;
    for (ptrdiff_t a = whole; a < q; a++)
        x[a] -= peak;
}

/* Multiply the weights of q states, so that their sum is `weight`; -> the sum before. */
SIMD_INLINE REAL NAME(residuals_end)(REAL *restrict x, ptrdiff_t q, REAL weight, const int L)
{
    const ptrdiff_t whole = q - q % L;
    REAL sums[RESIDUALS_LANES], sum = 0;
    for (int k = 0; k < L; k++)
        sums[k] = 0;
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++)
            sums[k] += x[a + k];
    for (int k = 0; k < L; k++)
        sum += sums[k];
    for (ptrdiff_t a = whole; a < q; a++)
        sum += x[a];
    const REAL factor = weight / sum;
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++)
            x[a + k] *= factor;
    for (ptrdiff_t a = whole; a < q; a++)
        x[a] *= factor;
    return sum;
}

/* All columns of a row; those without a code, -1, get 0. Returns the sum of the logarithms. */
SIMD_DISPATCH(double, NAME(residuals_row),
              (REAL *restrict x, const REAL *restrict base, const int64_t *restrict offsets,
               const int32_t *restrict codes, ptrdiff_t d, REAL weight),
              (x, base, offsets, codes, d, weight))
{
    double total = 0, product = 1;
    for (ptrdiff_t j = 0; j < d; j++) {
        const ptrdiff_t first = (ptrdiff_t)offsets[j], q = (ptrdiff_t)offsets[j + 1] - first;
        if (codes[j] < 0)
            continue;
        if (q < RESIDUALS_LANES)
            NAME(residuals_begin)(x + first, base + first, q, RESIDUALS_FEW);
        else
            NAME(residuals_begin)(x + first, base + first, q, RESIDUALS_LANES);
        total += (double)x[first + codes[j]];
    }
    for (ptrdiff_t a = 0; a < (ptrdiff_t)offsets[d]; a++)
        x[a] = NAME(simd_exp)(x[a] > RESIDUALS_LEAST ? x[a] : RESIDUALS_LEAST);
    for (ptrdiff_t j = 0; j < d; j++) {
        const ptrdiff_t first = (ptrdiff_t)offsets[j], q = (ptrdiff_t)offsets[j + 1] - first;
        REAL *restrict own = x + first;
        if (codes[j] < 0) {
            for (ptrdiff_t a = 0; a < q; a++)
                own[a] = 0;
            continue;
        }
        product *= q < RESIDUALS_LANES
            ? (double)NAME(residuals_end)(own, q, weight, RESIDUALS_FEW)
            : (double)NAME(residuals_end)(own, q, weight, RESIDUALS_LANES);
        own[codes[j]] -= weight;
        if (product > RESIDUALS_MOST) {
            total -= log(product);
            product = 1;
        }
    }
    return (total - log(product)) * (double)weight;
}

#undef REAL
#undef SUFFIX
