/* Kernels of categorical units, one row at a time; a template, included once for each element
 * type: REAL, SUFFIX as in _bernoulli_kernel.h, and CATEGORICAL_NEAR, the size of fields of which
 * the exponential and the sums and products of some of them are far from overflow and underflow.
 *
 * Units come in runs of equal width, (width, number of units) in turn. Those of few states have
 * loops of their own over them, which the compiler unrolls, and vectorises over the units.
 */
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

#ifndef CATEGORICAL_ONCE
#define CATEGORICAL_ONCE
#include <math.h>

/* Units that are worked on at once. */
enum { CATEGORICAL_BLOCK = 64 };

#define CATEGORICAL_BY_WIDTH(width, CALL) \
    switch (width) {                      \
    case 1: CALL(1); break;               \
    case 2: CALL(2); break;               \
    case 3: CALL(3); break;               \
    case 4: CALL(4); break;               \
    case 5: CALL(5); break;               \
    case 6: CALL(6); break;               \
    case 7: CALL(7); break;               \
    case 8: CALL(8); break;               \
    default: CALL(width);                 \
    }
#endif

/* Subtract the greatest field of each unit from its fields; those are then 0 at most. */
static void NAME(categorical_peaks)(REAL *restrict x, const ptrdiff_t *restrict runs,
                                    ptrdiff_t n_runs, REAL *restrict peaks)
{
    for (ptrdiff_t r = 0; r < n_runs; r++)
        for (ptrdiff_t i = 0, q = runs[2 * r]; i < runs[2 * r + 1]; i++, x += q) {
            REAL peak = x[0];
            int number = x[0] == x[0];
            for (ptrdiff_t a = 1; a < q; a++) {
                peak = x[a] > peak ? x[a] : peak;
                number &= x[a] == x[a];
            }
            /* Infinite fields, too, have a greatest one; a NaN is one for the whole unit. */
            for (ptrdiff_t a = 0; a < q; a++)
                x[a] = number ? (x[a] == peak ? 0 : x[a] - peak) : (REAL)NAN;
            if (peaks)
                *peaks++ = peak;
        }
}

/* x[j] = exp(x[j] + bias[j]), in units of the exponential of `peaks` if not 0; these may be NULL. */
SIMD_DISPATCH(void, NAME(categorical_weights),
              (REAL *restrict x, const REAL *restrict bias, ptrdiff_t n,
               const ptrdiff_t *restrict runs, ptrdiff_t n_runs, REAL *restrict peaks,
               ptrdiff_t n_units),
              (x, bias, n, runs, n_runs, peaks, n_units))
{
    int64_t far = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        const REAL y = x[j] + bias[j], size = y < 0 ? -y : y;
        far |= !(size < CATEGORICAL_NEAR);
        x[j] = y;
    }
    for (ptrdiff_t i = 0; peaks && i < n_units; i++)
        peaks[i] = 0;
    if (far)
        NAME(categorical_peaks)(x, runs, n_runs, peaks);
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] = NAME(simd_exp)(x[j]);
}

SIMD_INLINE void NAME(categorical_totals)(const REAL *restrict x, ptrdiff_t q, int n,
                                          REAL *restrict totals)
{
    for (int i = 0; i < n; i++) {
        REAL total = x[i * q];
        for (ptrdiff_t a = 1; a < q; a++)
            total += x[i * q + a];
        totals[i] = total;
    }
}

SIMD_INLINE void NAME(categorical_shares)(REAL *restrict x, ptrdiff_t q, int n)
{
    REAL totals[CATEGORICAL_BLOCK];
    NAME(categorical_totals)(x, q, n, totals);
    for (int i = 0; i < n; i++)
        for (ptrdiff_t a = 0; a < q; a++)
            x[i * q + a] /= totals[i];
}

/* The first state of which the cumulative weight is above a uniform share of the total. */
SIMD_INLINE void NAME(categorical_choice)(REAL *restrict x, ptrdiff_t q, int n,
                                          const REAL *restrict u)
{
    REAL totals[CATEGORICAL_BLOCK];
    NAME(categorical_totals)(x, q, n, totals);
    for (int i = 0; i < n; i++) {
        REAL *restrict weights = x + i * q;
        const REAL level = totals[i] * u[i], zero = totals[i] - totals[i];
        REAL below = 0;
        ptrdiff_t chosen = 0;
        for (ptrdiff_t a = 0; a < q - 1; a++) {
            below += weights[a];
            chosen += !(below > level);
        }
        for (ptrdiff_t a = 0; a < q; a++)
            weights[a] = zero;
        weights[chosen] = 1 + zero;
    }
}

/* Weights -> probabilities. */
SIMD_DISPATCH(void, NAME(categorical_mean),
              (REAL *restrict x, const ptrdiff_t *restrict runs, ptrdiff_t n_runs),
              (x, runs, n_runs))
{
    for (ptrdiff_t r = 0; r < n_runs; r++) {
        const ptrdiff_t width = runs[2 * r], n = runs[2 * r + 1];
        for (ptrdiff_t i = 0; i < n; i += CATEGORICAL_BLOCK) {
            const int size = n - i < CATEGORICAL_BLOCK ? (int)(n - i) : CATEGORICAL_BLOCK;
#define CALL(q) NAME(categorical_shares)(x, q, size)
            CATEGORICAL_BY_WIDTH(width, CALL)
#undef CALL
            x += size * width;
        }
    }
}

/* Weights -> 1 for one of the columns of each unit, and 0 for the others. NaN stays NaN. */
SIMD_DISPATCH(void, NAME(categorical_sample),
              (REAL *restrict x, const ptrdiff_t *restrict runs, ptrdiff_t n_runs, uint64_t key),
              (x, runs, n_runs, key))
{
    REAL u[CATEGORICAL_BLOCK];
    uint32_t unit = 0;
    for (ptrdiff_t r = 0; r < n_runs; r++) {
        const ptrdiff_t width = runs[2 * r], n = runs[2 * r + 1];
        for (ptrdiff_t i = 0; i < n; i += CATEGORICAL_BLOCK) {
            const int size = n - i < CATEGORICAL_BLOCK ? (int)(n - i) : CATEGORICAL_BLOCK;
            for (int k = 0; k < size; k++)
                u[k] = NAME(random_uniform)(key, unit + (uint32_t)k);
#define CALL(q) NAME(categorical_choice)(x, q, size, u)
            CATEGORICAL_BY_WIDTH(width, CALL)
#undef CALL
            x += size * width;
            unit += (uint32_t)size;
        }
    }
}

/* Weights and peaks -> the log-partitions of the units in the place of the peaks, if `each`, and
 * their sum: one logarithm of a product of totals, as long as that is far from overflow. */
SIMD_DISPATCH(double, NAME(categorical_log_partition),
              (const REAL *restrict x, const ptrdiff_t *restrict runs, ptrdiff_t n_runs,
               REAL *restrict peaks, int each),
              (x, runs, n_runs, peaks, each))
{
    REAL totals[CATEGORICAL_BLOCK];
    double sum = 0, product = 1;
    for (ptrdiff_t r = 0; r < n_runs; r++) {
        const ptrdiff_t width = runs[2 * r], n = runs[2 * r + 1];
        for (ptrdiff_t i = 0; i < n; i += CATEGORICAL_BLOCK) {
            const int size = n - i < CATEGORICAL_BLOCK ? (int)(n - i) : CATEGORICAL_BLOCK;
#define CALL(q) NAME(categorical_totals)(x, q, size, totals)
            CATEGORICAL_BY_WIDTH(width, CALL)
#undef CALL
            for (int k = 0; each && k < size; k++)
                peaks[k] += (REAL)log((double)totals[k]);
            for (int k = 0; !each && k < size; k++) {
                sum += (double)peaks[k];
                product *= (double)totals[k];
                if (!(product < 1e150 && product > 1e-150)) {
                    sum += log(product);
                    product = 1;
                }
            }
            x += size * width;
            peaks += size;
        }
    }
    return sum + log(product);
}

#undef REAL
#undef SUFFIX
#undef CATEGORICAL_NEAR
