/* Spins with terms of three and more: fields, sums of terms, and Gibbs sampling, one chain a row.
 *
 * Term t is weights[t] times the product of the spins of the columns members[starts[t]] to
 * members[starts[t + 1] - 1]. The terms of column j are touching[first[j]] to
 * touching[first[j + 1] - 1].
 */
#include <math.h>
#include "_random.h"
#include "_simd.h"

/* The product of the spins of a term, without that of one column, or of none if j < 0. */
SIMD_INLINE double term_product(const double *restrict x, const int64_t *restrict members,
                                ptrdiff_t order, int64_t j)
{
    double product = 1;
    for (ptrdiff_t a = 0; a < order; a++)
        product *= members[a] == j ? 1 : x[members[a]];
    return product;
}

/* To the fields of rows, add those of the terms: weight times the product of the other spins. */
SIMD_DISPATCH(void, term_fields,
              (const double *restrict x, const int64_t *restrict starts,
               const int64_t *restrict members, const double *restrict weights,
               double *restrict fields, ptrdiff_t n, ptrdiff_t d, ptrdiff_t n_terms),
              (x, starts, members, weights, fields, n, d, n_terms))
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t t = 0; t < n_terms; t++)
            for (int64_t a = starts[t]; a < starts[t + 1]; a++)
                fields[i * d + members[a]] += weights[t] * term_product(
                    x + i * d, members + starts[t], starts[t + 1] - starts[t], members[a]);
}

/* The sum of the terms of each row. */
SIMD_DISPATCH(void, term_sums,
              (const double *restrict x, const int64_t *restrict starts,
               const int64_t *restrict members, const double *restrict weights,
               double *restrict out, ptrdiff_t n, ptrdiff_t d, ptrdiff_t n_terms),
              (x, starts, members, weights, out, n, d, n_terms))
{
    for (ptrdiff_t i = 0; i < n; i++) {
        out[i] = 0;
        for (ptrdiff_t t = 0; t < n_terms; t++)
            out[i] += weights[t] * term_product(x + i * d, members + starts[t],
                                                starts[t + 1] - starts[t], -1);
    }
}

/* Sweeps over the free columns of each row. The field of column j is
 * scale * (local[j] + step[k]) + offset[j], k being the number of other columns at 1. local, the
 * fields of pairs and terms, is kept up to date. */
SIMD_DISPATCH(void, interaction_gibbs,
              (double *restrict x, double *restrict local, const double *restrict coupling,
               const int64_t *restrict starts, const int64_t *restrict members,
               const double *restrict weights, const int64_t *restrict first,
               const int64_t *restrict touching, const double *restrict step,
               const double *restrict offset, double scale, const uint8_t *restrict free,
               ptrdiff_t n, ptrdiff_t d, uint64_t seed, uint64_t first_sweep, ptrdiff_t n_sweeps,
               const uint64_t *restrict rows),
              (x, local, coupling, starts, members, weights, first, touching, step, offset, scale,
               free, n, d, seed, first_sweep, n_sweeps, rows))
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = x + i * d, *restrict field = local + i * d;
        ptrdiff_t count = 0;
        for (ptrdiff_t j = 0; j < d; j++)
            count += row[j] > 0;
        for (ptrdiff_t s = 0; s < n_sweeps; s++) {
            const uint64_t key = random_row_key(seed, first_sweep + (uint64_t)s, rows[i]);
            for (ptrdiff_t j = 0; j < d; j++) {
                if (!free[i * d + j])
                    continue;
                const ptrdiff_t others = count - (row[j] > 0);
                /* u < 1 / (1 + exp(-2 f)); where exp overflows, this is false, as it should. */
                const double odds = exp(-2 * (scale * (field[j] + step[others]) + offset[j]));
                const double u = random_uniform_f64(key, (uint32_t)j);
                const double spin = u * (1 + odds) < 1 ? 1 : -1;
                if (spin == row[j])
                    continue;
                row[j] = spin;
                count = others + (spin > 0);
                const double change = 2 * spin;
                for (ptrdiff_t k = 0; k < d; k++)
                    field[k] += change * coupling[j * d + k];
                for (int64_t p = first[j]; p < first[j + 1]; p++) {
                    const int64_t t = touching[p], *restrict own = members + starts[t];
                    const ptrdiff_t order = starts[t + 1] - starts[t];
                    const double product = change * weights[t] * term_product(row, own, order, j);
                    /* Without the spin of k, too: a spin is its own inverse. */
                    for (ptrdiff_t a = 0; a < order; a++)
                        if (own[a] != j)
                            field[own[a]] += product * row[own[a]];
                }
            }
        }
    }
}
