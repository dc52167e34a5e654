/* Kernels of categorical units, one row at a time; a template, included once for each element
 * type: REAL, SUFFIX as in _bernoulli_kernel.h.
 *
 * A unit has the columns from starts[i] to starts[i + 1] of a row. Loops over columns are for
 * the compiler to vectorise; those over the few states of a unit are not, but units do not wait
 * for each other. Sums are taken in double.
 */
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

#ifndef CATEGORICAL_ONCE
#define CATEGORICAL_ONCE
#include <math.h>
#endif

/* x[j] = exp(x[j] + bias[j] - peak of the unit), which is 1 at its peak; peaks may be NULL. */
SIMD_DISPATCH
void NAME(categorical_weights)(REAL *restrict x, const REAL *restrict bias, ptrdiff_t n,
                               const ptrdiff_t *restrict starts, ptrdiff_t n_units,
                               REAL *restrict peaks)
{
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] += bias[j];
    for (ptrdiff_t i = 0; i < n_units; i++) {
        REAL peak = x[starts[i]];
        for (ptrdiff_t j = starts[i] + 1; j < starts[i + 1]; j++)
            peak = x[j] > peak ? x[j] : peak;
        /* Infinite fields, too, have a greatest one. */
        for (ptrdiff_t j = starts[i]; j < starts[i + 1]; j++)
            x[j] = x[j] == peak ? 0 : x[j] - peak;
        if (peaks)
            peaks[i] = peak;
    }
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = x[j] == x[j] ? NAME(simd_exp)(x[j]) : x[j];
}

/* Weights -> probabilities. */
void NAME(categorical_mean)(REAL *restrict x, const ptrdiff_t *restrict starts, ptrdiff_t n_units)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        double total = 0;
        for (ptrdiff_t j = starts[i]; j < starts[i + 1]; j++)
            total += (double)x[j];
        const REAL factor = (REAL)(1 / total);
        for (ptrdiff_t j = starts[i]; j < starts[i + 1]; j++)
            x[j] *= factor;
    }
}

/* Weights -> 1 for one of the columns of each unit, and 0 for the others: the first whose
 * cumulative weight is above a uniform share of the total. A unit with a NaN is all NaN. */
void NAME(categorical_sample)(REAL *restrict x, const ptrdiff_t *restrict starts,
                              ptrdiff_t n_units, uint64_t key)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        const ptrdiff_t start = starts[i], stop = starts[i + 1];
        double total = 0, below = 0;
        for (ptrdiff_t j = start; j < stop; j++)
            total += (double)x[j];
        const double level = total * (double)NAME(random_uniform)(key, (uint32_t)i);
        ptrdiff_t chosen = start;
        for (ptrdiff_t j = start; j < stop - 1; j++) {
            below += (double)x[j];
            chosen += below <= level;
        }
        const REAL other = total == total ? 0 : (REAL)total;
        for (ptrdiff_t j = start; j < stop; j++)
            x[j] = other;
        x[chosen] = other == 0 ? 1 : other;
    }
}

/* Weights and peaks -> the logarithms of the totals. */
void NAME(categorical_log_totals)(const REAL *restrict x, const ptrdiff_t *restrict starts,
                                  ptrdiff_t n_units, REAL *restrict peaks)
{
    for (ptrdiff_t i = 0; i < n_units; i++) {
        double total = 0;
        for (ptrdiff_t j = starts[i]; j < starts[i + 1]; j++)
            total += (double)x[j];
        peaks[i] += (REAL)log(total);
    }
}

/* The sum of these over the units. Totals are at least 1, so that the logarithm is taken of
 * products of them, as large as they may be. */
double NAME(categorical_sum)(const REAL *restrict x, const ptrdiff_t *restrict starts,
                             ptrdiff_t n_units, const REAL *restrict peaks)
{
    double sum = 0, product = 1;
    for (ptrdiff_t i = 0; i < n_units; i++) {
        double total = 0;
        for (ptrdiff_t j = starts[i]; j < starts[i + 1]; j++)
            total += (double)x[j];
        sum += (double)peaks[i];
        product *= total;
        if (!(product < 1e250)) {
            sum += log(product);
            product = 1;
        }
    }
    return sum + log(product);
}

#undef REAL
#undef SUFFIX
