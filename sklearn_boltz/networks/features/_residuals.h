/* Residuals of the states of columns given the others, one row at a time; a template, included once
 * for each element type: REAL and SUFFIX as in _bernoulli_kernel.h.
 */
#include "_exp.h"
#include "_simd.h"

#ifndef RESIDUALS_ONCE
#define RESIDUALS_ONCE
#include <math.h>

/* Maxima and sums at once: of this many partial ones, whatever the width of registers. */
enum { RESIDUALS_LANES = 16 };
/* Where the exponential function is cut off: products of less are denormal numbers, with which a
 * processor is many times slower. */
#define RESIDUALS_LEAST (-60)
#endif

/* Log-weights of q states -> probabilities; returns the logarithm of that of one of them. */
SIMD_INLINE double NAME(residuals_column)(REAL *restrict x, ptrdiff_t q, ptrdiff_t own)
{
    enum { L = RESIDUALS_LANES };
    const ptrdiff_t whole = q - q % L;
    REAL peaks[L], sums[L], peak = x[0], sum = 0;
    for (int k = 0; k < L; k++) {
        peaks[k] = x[0];
        sums[k] = 0;
    }
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++)
            peaks[k] = x[a + k] > peaks[k] ? x[a + k] : peaks[k];
    for (int k = 0; k < L; k++)
        peak = peaks[k] > peak ? peaks[k] : peak;
    for (ptrdiff_t a = whole; a < q; a++)
        peak = x[a] > peak ? x[a] : peak;
    const double field = (double)x[own] - (double)peak;
    for (ptrdiff_t a = 0; a < q; a++) {
        const REAL below = x[a] - peak;
        x[a] = NAME(simd_exp)(below > RESIDUALS_LEAST ? below : RESIDUALS_LEAST);
    }
    for (ptrdiff_t a = 0; a < whole; a += L)
        for (int k = 0; k < L; k++)
            sums[k] += x[a + k];
    for (int k = 0; k < L; k++)
        sum += sums[k];
    for (ptrdiff_t a = whole; a < q; a++)
        sum += x[a];
    for (ptrdiff_t a = 0; a < q; a++)
        x[a] /= sum;
    return field - log((double)sum);
}

/* All columns of a row; those without a code, -1, get 0. Returns the sum of the logarithms. */
SIMD_DISPATCH(double, NAME(residuals_row),
              (REAL *restrict x, const REAL *restrict base, const int64_t *restrict offsets,
               const int32_t *restrict codes, ptrdiff_t d, REAL weight),
              (x, base, offsets, codes, d, weight))
{
    double total = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        const ptrdiff_t first = (ptrdiff_t)offsets[j], q = (ptrdiff_t)offsets[j + 1] - first;
        REAL *restrict own = x + first;
        if (codes[j] < 0) {
            for (ptrdiff_t a = 0; a < q; a++)
                own[a] = 0;
            continue;
        }
        for (ptrdiff_t a = 0; a < q; a++)
            own[a] += base[first + a];
        total += NAME(residuals_column)(own, q, codes[j]);
        own[codes[j]] -= 1;
        for (ptrdiff_t a = 0; a < q; a++)
            own[a] *= weight;
    }
    return total * (double)weight;
}

#undef REAL
#undef SUFFIX
