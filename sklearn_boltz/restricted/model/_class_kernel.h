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

enum {
    /* Partial products and sums that a row is dealt out to, whatever the registers. */
    CLASS_LANES = 16,
    /* Units that are worked on at once: 16 factors between 1 and 2 in each product. */
    CLASS_BLOCK = 256
};
#endif

/* The sum of softplus(y) = (y + |y|) / 2 + log(1 + e), y = x + u, and if wanted
 * means = expit(y) = (1 or e) / (1 + e). */
SIMD_INLINE double NAME(class_sum)(const REAL *restrict x, const REAL *restrict u, ptrdiff_t n,
                                   REAL *restrict means, const int with_means)
{
    double sum = 0, logarithm = 0;
    for (ptrdiff_t start = 0; start < n; start += CLASS_BLOCK) {
        const int size = n - start < CLASS_BLOCK ? (int)(n - start) : CLASS_BLOCK;
        REAL factor[CLASS_BLOCK], twice[CLASS_BLOCK];
        for (int j = 0; j < size; j++) {
            const REAL y = x[start + j] + u[start + j], magnitude = y < 0 ? -y : y;
            const REAL e = NAME(simd_exp)(-magnitude);
            twice[j] = y + magnitude;
            factor[j] = 1 + e;
            if (with_means)
                means[start + j] = (y < 0 ? e : 1) / (1 + e);
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
        /* Each product is at most 2^16. */
        double product = 1;
        for (int lane = 0; lane < CLASS_LANES; lane++) {
            sum += (double)twice[lane];
            product *= (double)factor[lane];
        }
        logarithm += log(product);
    }
    return logarithm + sum / 2;
}

/* out[y] = sum over j of softplus(x[j] + u[y, j]) */
SIMD_DISPATCH
void NAME(class_sums)(const REAL *restrict x, const REAL *restrict u, ptrdiff_t n_classes,
                      ptrdiff_t n, double *restrict out)
{
    for (ptrdiff_t y = 0; y < n_classes; y++)
        out[y] = NAME(class_sum)(x, u + y * n, n, NULL, 0);
}

/* The same, and means[y, j] = expit(x[j] + u[y, j]). */
SIMD_DISPATCH
void NAME(class_sums_and_means)(const REAL *restrict x, const REAL *restrict u,
                                ptrdiff_t n_classes, ptrdiff_t n, REAL *restrict means,
                                double *restrict out)
{
    for (ptrdiff_t y = 0; y < n_classes; y++)
        out[y] = NAME(class_sum)(x, u + y * n, n, means + y * n, 1);
}

/* g[j] = sum over y of e[y] means[y, j], and du[y, j] += e[y] means[y, j] */
SIMD_DISPATCH
void NAME(class_combine)(const REAL *restrict means, const REAL *restrict e, ptrdiff_t n_classes,
                         ptrdiff_t n, REAL *restrict g, REAL *restrict du)
{
    for (ptrdiff_t j = 0; j < n; j++)
        g[j] = 0;
    for (ptrdiff_t y = 0; y < n_classes; y++) {
        const REAL *restrict mean = means + y * n;
        REAL *restrict sum = du + y * n;
        const REAL factor = e[y];
        for (ptrdiff_t j = 0; j < n; j++) {
            const REAL part = factor * mean[j];
            g[j] += part;
            sum[j] += part;
        }
    }
}

#undef REAL
#undef SUFFIX
