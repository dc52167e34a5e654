/* Kernels of mean field, one row at a time; a template, included once for each element type:
 * REAL, SUFFIX as in units/_bernoulli_kernel.h.
 */
#include "_exp.h"
#include "_simd.h"

/* Bernoulli units: from the fields by weights to damped means and variances. The second order has
 * precisions A, and x² = x makes a field of them: Σ W a + A (a − 1/2). Either `precision` or
 * `evidence`, a field from outside, may be NULL. `field` has the changes in the end.
 * -> The sum of their squares. */
SIMD_DISPATCH(double, NAME(believe),
              (REAL *restrict mean, REAL *restrict variance, REAL *restrict field,
               const REAL *restrict precision, const REAL *restrict evidence,
               const REAL *restrict bias, REAL moved, ptrdiff_t n),
              (mean, variance, field, precision, evidence, bias, moved, n))
{
    enum { LANES = 16 };
    REAL squares[LANES] = {0};
    double sum = 0;
    if (precision)
        for (ptrdiff_t j = 0; j < n; j++)
            field[j] += (mean[j] - (REAL)0.5) * precision[j];
    if (evidence)
        for (ptrdiff_t j = 0; j < n; j++)
            field[j] += evidence[j];
    for (ptrdiff_t j = 0; j < n; j++) {
        const REAL found = 1 / (1 + NAME(simd_exp)(-(field[j] + bias[j])));
        const REAL change = moved * (found - mean[j]), now = mean[j] + change;
        field[j] = change;
        mean[j] = now;
        variance[j] = now - now * now;
    }
    for (ptrdiff_t j = 0; j + LANES <= n; j += LANES)
        for (int lane = 0; lane < LANES; lane++)
            squares[lane] += field[j + lane] * field[j + lane];
    for (ptrdiff_t j = n - n % LANES; j < n; j++)
        squares[j % LANES] += field[j] * field[j];
    for (int lane = 0; lane < LANES; lane++)
        sum += squares[lane];
    return sum;
}

#undef REAL
#undef SUFFIX
