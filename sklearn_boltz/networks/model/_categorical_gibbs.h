/* Gibbs sampling of a network of categorical columns, one chain a row. A sweep is a step of the
 * random numbers, and a chain the row of them that `rows` has for it.
 */
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

/* The value that u selects: probabilities are in proportion to exp(scale * field + offset). */
SIMD_INLINE int32_t categorical_draw(const double *restrict field, const double *restrict offset,
                                     double scale, ptrdiff_t q, double u, double *restrict weight)
{
    double peak = scale * field[0] + offset[0], total = 0, sum;
    for (ptrdiff_t a = 0; a < q; a++) {
        weight[a] = scale * field[a] + offset[a];
        peak = weight[a] > peak ? weight[a] : peak;
    }
    for (ptrdiff_t a = 0; a < q; a++)
        weight[a] = simd_exp_f64(weight[a] - peak);
    for (ptrdiff_t a = 0; a < q; a++)
        total += weight[a];
    ptrdiff_t value = 0;
    for (sum = weight[0]; sum <= u * total && value < q - 1; sum += weight[value])
        value++;
    return (int32_t)value;
}

/* Sweeps over the free columns of each row, with the fields scale * local + offset, where
 * local, the sums of the couplings to the values of a row, is kept up to date. The states of
 * column j are those from starts[j] to starts[j + 1]. */
SIMD_DISPATCH(void, categorical_gibbs,
              (int32_t *restrict codes, double *restrict local, const double *restrict coupling,
               const double *restrict offset, const int64_t *restrict starts, double scale,
               const uint8_t *restrict free, double *restrict work, ptrdiff_t n, ptrdiff_t d,
               uint64_t seed, uint64_t first_sweep, ptrdiff_t n_sweeps,
               const uint64_t *restrict rows),
              (codes, local, coupling, offset, starts, scale, free, work, n, d, seed, first_sweep,
               n_sweeps, rows))
{
    const ptrdiff_t width = starts[d];
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t *restrict row = codes + i * d;
        double *restrict field = local + i * width;
        for (ptrdiff_t s = 0; s < n_sweeps; s++) {
            const uint64_t key = random_row_key(seed, first_sweep + (uint64_t)s, rows[i]);
            for (ptrdiff_t j = 0; j < d; j++) {
                if (!free[i * d + j])
                    continue;
                const int64_t start = starts[j];
                const double u = random_uniform_f64(key, (uint32_t)j);
                const int32_t value = categorical_draw(
                    field + start, offset + start, scale, starts[j + 1] - start, u, work);
                if (value == row[j])
                    continue;
                const double *restrict now = coupling + (start + value) * width;
                const double *restrict before = coupling + (start + row[j]) * width;
                row[j] = value;
                for (ptrdiff_t k = 0; k < width; k++)
                    field[k] += now[k] - before[k];
            }
        }
    }
}
