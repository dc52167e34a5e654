/* Kernels of mean field, one row at a time; a template, included once for each element type:
 * REAL, SUFFIX as in units/_bernoulli_kernel.h.
 *
 * A unit has the columns from starts[i] to starts[i + 1] of a row, and features: one if it has a
 * single column, else one for each pair of its columns, (0, 1), (0, 2), ..., (1, 2), ..., or, if
 * it has more columns than `most`, one for each column.
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

/* Variances, products of the means of two columns, or means: of columns that vary. */
void NAME(spreads)(const REAL *restrict mean, const REAL *restrict variance,
                   const ptrdiff_t *restrict starts, ptrdiff_t n_units, ptrdiff_t most,
                   REAL *restrict out)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        const ptrdiff_t start = starts[i], stop = starts[i + 1];
        if (stop - start == 1)
            *out++ = variance[start];
        else if (stop - start > most)
            for (ptrdiff_t a = start; a < stop; a++)
                *out++ = variance[a] > 0 ? mean[a] : 0;
        else
            for (ptrdiff_t a = start; a < stop; a++)
                for (ptrdiff_t b = a + 1; b < stop; b++)
                    *out++ = (variance[a] > 0) & (variance[b] > 0) ? mean[a] * mean[b] : 0;
    }
}

/* What the precisions of features add to the fields of columns, and the precisions of those that
 * are units by themselves; 0 for others. */
void NAME(act)(const REAL *restrict feature_precision, const REAL *restrict mean,
               const ptrdiff_t *restrict starts, ptrdiff_t n_units, ptrdiff_t most,
               REAL *restrict field, REAL *restrict precision)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        const ptrdiff_t start = starts[i], stop = starts[i + 1];
        if (stop - start == 1) {
            const REAL A = *feature_precision++;
            precision[start] = A;
            field[start] += A * mean[start];
            continue;
        }
        for (ptrdiff_t a = start; a < stop; a++)
            precision[a] = 0;
        if (stop - start > most)
            for (ptrdiff_t a = start; a < stop; a++)
                field[a] -= (REAL)0.5 * *feature_precision++;
        else
            for (ptrdiff_t a = start; a < stop; a++)
                for (ptrdiff_t b = a + 1; b < stop; b++) {
                    const REAL half = (REAL)0.5 * *feature_precision++;
                    field[a] -= half * mean[b];
                    field[b] -= half * mean[a];
                }
    }
}

/* Columns -> features: x_a, or x_a − x_b of a pair. */
void NAME(differences)(const REAL *restrict x, const ptrdiff_t *restrict starts,
                       ptrdiff_t n_units, ptrdiff_t most, REAL *restrict out)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        const ptrdiff_t start = starts[i], stop = starts[i + 1];
        if (stop - start == 1 || stop - start > most)
            for (ptrdiff_t a = start; a < stop; a++)
                *out++ = x[a];
        else
            for (ptrdiff_t a = start; a < stop; a++)
                for (ptrdiff_t b = a + 1; b < stop; b++)
                    *out++ = x[a] - x[b];
    }
}

/* Features -> columns, the transposed map. */
void NAME(gathered)(const REAL *restrict x, const ptrdiff_t *restrict starts, ptrdiff_t n_units,
                    ptrdiff_t most, REAL *restrict out)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        const ptrdiff_t start = starts[i], stop = starts[i + 1];
        if (stop - start == 1 || stop - start > most) {
            for (ptrdiff_t a = start; a < stop; a++)
                out[a] = *x++;
            continue;
        }
        for (ptrdiff_t a = start; a < stop; a++)
            out[a] = 0;
        for (ptrdiff_t a = start; a < stop; a++)
            for (ptrdiff_t b = a + 1; b < stop; b++) {
                out[a] += *x;
                out[b] -= *x++;
            }
    }
}

#undef REAL
#undef SUFFIX
