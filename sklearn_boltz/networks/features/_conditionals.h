/* Conditional probabilities of the states of columns, one row at a time; a template, included once
 * for each element type: REAL and SUFFIX as in _bernoulli_kernel.h.
 */
#include "_exp.h"
#include "_simd.h"

#ifndef CONDITIONALS_ONCE
#define CONDITIONALS_ONCE
#include <math.h>

/* Maxima and sums at once: of this many partial ones, whatever the width of registers. */
enum { CONDITIONALS_LANES = 16 };
#endif

/* Log-weights of q states -> probabilities; returns the logarithm of that of one of them. */
SIMD_INLINE double NAME(conditionals_column)(REAL *restrict x, ptrdiff_t q, ptrdiff_t own)
{
    enum { L = CONDITIONALS_LANES };
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
    for (ptrdiff_t a = 0; a < q; a++)
        x[a] = NAME(simd_exp)(x[a] - peak);
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

/* All columns of a row; those without a code, -1, get 0. From the row's own states, `taken` is
 * taken away. Returns the sum of the logarithms. */
SIMD_DISPATCH(double, NAME(conditionals_row),
              (REAL *restrict x, const REAL *restrict base, const int64_t *restrict offsets,
               const int32_t *restrict codes, ptrdiff_t d, REAL weight, REAL taken),
              (x, base, offsets, codes, d, weight, taken))
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
        total += NAME(conditionals_column)(own, q, codes[j]);
        for (ptrdiff_t a = 0; a < q; a++)
            own[a] *= weight;
        own[codes[j]] -= taken;
    }
    return total * (double)weight;
}

#undef REAL
#undef SUFFIX
