/* Fields and Gibbs sampling of a fully visible Boltzmann machine, one chain a row. A sweep is a step of the
 * random numbers, and a chain the row of them that `rows` has for it.
 */
#include <math.h>
#include "_random.h"
#include "_simd.h"

/* Fields of rows: out[i] = b + x[i] M, each row by the same operations in the same order. */
SIMD_DISPATCH(void, fvbm_fields,
              (const double *restrict x, const double *restrict coupling,
               const double *restrict intercept, double *restrict out, ptrdiff_t n, ptrdiff_t d),
              (x, coupling, intercept, out, n, d))
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = out + i * d;
        for (ptrdiff_t k = 0; k < d; k++)
            row[k] = intercept[k];
        for (ptrdiff_t j = 0; j < d; j++) {
            const double x_ij = x[i * d + j];
            for (ptrdiff_t k = 0; k < d; k++)
                row[k] += x_ij * coupling[j * d + k];
        }
    }
}

/* Sweeps over the free columns of each row, with the fields scale * local + offset, where
 * local = x M is kept up to date. */
SIMD_DISPATCH(void, fvbm_gibbs,
              (double *restrict x, double *restrict local, const double *restrict coupling,
               const double *restrict offset, double scale, const uint8_t *restrict free,
               ptrdiff_t n, ptrdiff_t d, uint64_t seed, uint64_t first_sweep, ptrdiff_t n_sweeps,
               const uint64_t *restrict rows),
              (x, local, coupling, offset, scale, free, n, d, seed, first_sweep, n_sweeps, rows))
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = x + i * d, *restrict field = local + i * d;
        for (ptrdiff_t s = 0; s < n_sweeps; s++) {
            const uint64_t key = random_row_key(seed, first_sweep + (uint64_t)s, rows[i]);
            for (ptrdiff_t j = 0; j < d; j++) {
                if (!free[i * d + j])
                    continue;
                /* u < 1 / (1 + exp(-2 f)); where exp overflows, this is false, as it should. */
                const double odds = exp(-2 * (scale * field[j] + offset[j]));
                const double u = random_uniform_f64(key, (uint32_t)j);
                const double spin = u * (1 + odds) < 1 ? 1 : -1;
                if (spin == row[j])
                    continue;
                row[j] = spin;
                const double change = 2 * spin;
                for (ptrdiff_t k = 0; k < d; k++)
                    field[k] += change * coupling[j * d + k];
            }
        }
    }
}
