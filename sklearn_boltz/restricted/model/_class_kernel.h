/* The sum over classes and hidden units of a classifying RBM, one row at a time; a template,
 * included once for each element type: REAL, SUFFIX as in _bernoulli_kernel.h.
 *
 * With x the fields of the n hidden units of a row and u[y, j] what class y adds to that of
 * unit j, everything follows from e = exp(-|x[j] + u[y, j]|), which is computed once.
 */
#include "_exp.h"
#include "_simd.h"

#ifndef CLASS_ONCE
#define CLASS_ONCE
#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    /* Partial products and sums that a row is dealt out to, whatever the registers. */
    CLASS_LANES = 16,
    /* Units that are worked on at once: 16 factors between 1 and 2 in each product. */
    CLASS_BLOCK = 256
};
#endif

#define CLASS_EPSILON (sizeof(REAL) == sizeof(float) ? 0x1p-24 : 0x1p-53)

/* The sum of softplus(y) = (y + |y|) / 2 + log(1 + e), e = exp(-|y|), y = x + u. */
SIMD_INLINE double NAME(class_sum)(const REAL *restrict x, const REAL *restrict u, ptrdiff_t n,
                                   REAL *restrict kept, const int keep)
{
    double sum = 0, logarithm = 0;
    for (ptrdiff_t start = 0; start < n; start += CLASS_BLOCK) {
        const int size = n - start < CLASS_BLOCK ? (int)(n - start) : CLASS_BLOCK;
        REAL factor[CLASS_BLOCK], twice[CLASS_BLOCK];
        for (int lane = 0; lane < CLASS_LANES; lane++) {  /* which a compiler sees to be set */
            twice[lane] = 0;
            factor[lane] = 1;
        }
        for (int j = 0; j < size; j++) {
            const REAL y = x[start + j] + u[start + j], magnitude = y < 0 ? -y : y;
            const REAL e = NAME(simd_exp)(-magnitude);
            twice[j] = y + magnitude;
            factor[j] = 1 + e;
            if (keep)
                kept[start + j] = e;
        }
        for (int j = size; j < CLASS_BLOCK && j % CLASS_LANES; j++) {
            twice[j] = 0;
            factor[j] = 1;
        }
        for (int i = CLASS_LANES; i < size; i += CLASS_LANES)
            for (int lane = 0; lane < CLASS_LANES; lane++) {
                twice[lane] += twice[i + lane];
                factor[lane] *= factor[i + lane];
            }
        /* Each of them is at most 2^16. */
        double product = 1;
        for (int lane = 0; lane < CLASS_LANES; lane++) {
            sum += (double)twice[lane];
            product *= (double)factor[lane];
        }
        logarithm += log(product);
    }
    return logarithm + sum / 2;
}

/* out[y] = sum over j of softplus(x[j] + u[y, j]); kept[y, j] = exp(-|x[j] + u[y, j]|), or NULL. */
SIMD_DISPATCH(void, NAME(class_sums),
              (const REAL *restrict x, const REAL *restrict u, ptrdiff_t n_classes, ptrdiff_t n,
               REAL *restrict kept, double *restrict out),
              (x, u, n_classes, n, kept, out))
{
    for (ptrdiff_t y = 0; y < n_classes; y++)
        out[y] = kept == NULL ? NAME(class_sum)(x, u + y * n, n, NULL, 0)
                              : NAME(class_sum)(x, u + y * n, n, kept + y * n, 1);
}

/* x[j] = sum over y of E_y s, and du[y, j] += E_y s, s = expit(x[j] + u[y, j]), from what was kept.
 * `sum` is scratch for n numbers. A class of which E is below the rounding error of the others is
 * left out: once a row is learned, few count. */
SIMD_DISPATCH(void, NAME(class_combine),
              (REAL *restrict x, const REAL *restrict u, const REAL *restrict kept,
               const double *restrict factors, ptrdiff_t n_classes, ptrdiff_t n,
               REAL *restrict sum, REAL *restrict du),
              (x, u, kept, factors, n_classes, n, sum, du))
{
    double size = 0;
    for (ptrdiff_t y = 0; y < n_classes; y++)
        size += fabs(factors[y]);
    memset(sum, 0, (size_t)n * sizeof(REAL));
    for (ptrdiff_t y = 0; y < n_classes; y++) {
        if (fabs(factors[y]) < size * CLASS_EPSILON)
            continue;
        const REAL factor = (REAL)factors[y];
        const REAL *restrict shift = u + y * n, *restrict small = kept + y * n;
        REAL *restrict total = du + y * n;
        for (ptrdiff_t j = 0; j < n; j++) {
            const REAL e = small[j];
            const REAL part = factor * (x[j] + shift[j] < 0 ? e : 1) / (1 + e);
            sum[j] += part;
            total[j] += part;
        }
    }
    memcpy(x, sum, (size_t)n * sizeof(REAL));
}

#undef CLASS_EPSILON
#undef REAL
#undef SUFFIX
