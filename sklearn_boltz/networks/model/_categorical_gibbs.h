/* Gibbs sampling of a network of categorical columns, one chain a row. A sweep is a step of the
 * random numbers, and a chain the row of them that `rows` has for it. The states of column j are
 * those from starts[j] to starts[j + 1]; `field` and `local` are sums of the couplings of all
 * states to the values of a row, which are kept up to date.
 */
#include <math.h>
#include <string.h>
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

/* Log-weights that differ by more have no digits in a product of their exponentials. */
#define CATEGORICAL_MOST_SPREAD 600.0

/* The value that u selects among weights. */
SIMD_INLINE int32_t categorical_select(const double *restrict weight, ptrdiff_t q, double total,
                                       double u)
{
    ptrdiff_t value = 0;
    for (double sum = weight[0]; sum <= u * total && value < q - 1; sum += weight[value])
        value++;
    return (int32_t)value;
}

/* weight = exp(scale * field + offset - peak), with the largest at 1; -> their sum. */
SIMD_INLINE double categorical_weights(const double *restrict field, const double *restrict offset,
                                       double scale, ptrdiff_t q, double *restrict weight)
{
    double peak = scale * field[0] + offset[0], total = 0;
    for (ptrdiff_t a = 0; a < q; a++) {
        weight[a] = scale * field[a] + offset[a];
        peak = weight[a] > peak ? weight[a] : peak;
    }
    for (ptrdiff_t a = 0; a < q; a++)
        weight[a] = simd_exp_f64(weight[a] - peak);
    for (ptrdiff_t a = 0; a < q; a++)
        total += weight[a];
    return total;
}

/* A value takes the place of another, or of none, -1. Of the fields, `n_parts` parts are kept up to
 * date, the i-th one from parts[2 i] to parts[2 i + 1]. */
SIMD_INLINE void categorical_set(int32_t *restrict row, double *restrict field,
                                 const double *restrict coupling, const int64_t *restrict starts,
                                 ptrdiff_t width, const int64_t *restrict parts, ptrdiff_t n_parts,
                                 ptrdiff_t j, int32_t value)
{
    const int32_t before = row[j];
    if (value == before)
        return;
    const double *restrict now = coupling + (starts[j] + value) * width;
    const double *restrict old = before < 0 ? now : coupling + (starts[j] + before) * width;
    row[j] = value;
    for (ptrdiff_t i = 0; i < n_parts; i++) {
        if (before < 0)
            for (ptrdiff_t k = parts[2 * i]; k < parts[2 * i + 1]; k++)
                field[k] += now[k];
        else
            for (ptrdiff_t k = parts[2 * i]; k < parts[2 * i + 1]; k++)
                field[k] += now[k] - old[k];
    }
}

/* The table of two columns: u(a) = max_b scale * J(a, b), and then, a line for each b, the numbers
 * exp(scale * J(a, b) - u(a)). */
SIMD_INLINE void categorical_table(const double *restrict coupling, const int64_t *restrict starts,
                                   double scale, ptrdiff_t width, ptrdiff_t j, ptrdiff_t l,
                                   double *restrict table)
{
    const ptrdiff_t n_a = starts[j + 1] - starts[j], n_b = starts[l + 1] - starts[l];
    const double *restrict block = coupling + starts[l] * width + starts[j];
    for (ptrdiff_t a = 0; a < n_a; a++)
        table[a] = scale * block[a];
    for (ptrdiff_t b = 1; b < n_b; b++)
        for (ptrdiff_t a = 0; a < n_a; a++) {
            const double weight = scale * block[b * width + a];
            table[a] = weight > table[a] ? weight : table[a];
        }
    for (ptrdiff_t b = 0; b < n_b; b++)
        for (ptrdiff_t a = 0; a < n_a; a++)
            table[(b + 1) * n_a + a] = simd_exp_f64(scale * block[b * width + a] - table[a]);
}

/* Draw the columns j and l of a row given all others: j from its sum over the values of l, and
 * then l. `work` has room for three times the largest number of values.
 * Where the log-weights of l are too far apart nothing is drawn; that depends on the others
 * alone, so the distribution remains the same. */
SIMD_INLINE void categorical_pair(int32_t *restrict row, double *restrict field,
                                  const double *restrict coupling, const double *restrict offset,
                                  const int64_t *restrict starts, double scale, ptrdiff_t width,
                                  const int64_t *restrict parts, ptrdiff_t n_parts, ptrdiff_t j,
                                  ptrdiff_t l, const double *restrict table, double u_j,
                                  double u_l, ptrdiff_t most, double *restrict work)
{
    const int64_t at_j = starts[j], at_l = starts[l];
    const ptrdiff_t n_a = starts[j + 1] - at_j, n_b = starts[l + 1] - at_l;
    double *restrict alone = work, *restrict weight = work + most, *restrict sum = work + 2 * most;
    const double *restrict of_j = coupling + (at_j + row[j]) * width + at_l;
    const double *restrict of_l = coupling + (at_l + row[l]) * width + at_j;
    double peak = -INFINITY, lowest = INFINITY;
    for (ptrdiff_t b = 0; b < n_b; b++) {
        alone[b] = field[at_l + b] - of_j[b];
        weight[b] = scale * alone[b] + offset[at_l + b];
        peak = weight[b] > peak ? weight[b] : peak;
        lowest = weight[b] < lowest ? weight[b] : lowest;
    }
    if (peak - lowest > CATEGORICAL_MOST_SPREAD)
        return;
    for (ptrdiff_t b = 0; b < n_b; b++)
        weight[b] = simd_exp_f64(weight[b] - peak);
    for (ptrdiff_t a = 0; a < n_a; a++)
        sum[a] = 0;
    for (ptrdiff_t b = 0; b < n_b; b++) {
        const double *restrict line = table + (b + 1) * n_a;
        const double w = weight[b];
        for (ptrdiff_t a = 0; a < n_a; a++)
            sum[a] += w * line[a];
    }
    double total = 0;
    peak = -INFINITY;
    for (ptrdiff_t a = 0; a < n_a; a++) {
        weight[a] = scale * (field[at_j + a] - of_l[a]) + offset[at_j + a] + table[a];
        peak = weight[a] > peak ? weight[a] : peak;
    }
    for (ptrdiff_t a = 0; a < n_a; a++)
        weight[a] = simd_exp_f64(weight[a] - peak) * sum[a];
    for (ptrdiff_t a = 0; a < n_a; a++)
        total += weight[a];
    const int32_t first = categorical_select(weight, n_a, total, u_j);
    const double *restrict given = coupling + (at_j + first) * width + at_l;
    for (ptrdiff_t b = 0; b < n_b; b++)
        alone[b] += given[b];
    total = categorical_weights(alone, offset + at_l, scale, n_b, weight);
    const int32_t second = categorical_select(weight, n_b, total, u_l);
    categorical_set(row, field, coupling, starts, width, parts, n_parts, j, first);
    categorical_set(row, field, coupling, starts, width, parts, n_parts, l, second);
}

/* Draw the free columns of a row one after another. Unless `sums` is NULL, p(x_j = a | the others)
 * is added to it, laid out as `field`. */
SIMD_INLINE void categorical_row(int32_t *restrict row, double *restrict field,
                                 const double *restrict coupling, const double *restrict offset,
                                 const int64_t *restrict starts, double scale,
                                 const int64_t *restrict parts, ptrdiff_t n_parts,
                                 const uint8_t *restrict free, double *restrict work,
                                 double *restrict sums, ptrdiff_t d, uint64_t key)
{
    for (ptrdiff_t j = 0; j < d; j++) {
        if (!free[j])
            continue;
        const int64_t start = starts[j];
        const ptrdiff_t q = starts[j + 1] - start;
        const double u = random_uniform_f64(key, (uint32_t)j);
        const double total = categorical_weights(field + start, offset + start, scale, q, work);
        if (sums)
            for (ptrdiff_t a = 0; a < q; a++)
                sums[start + a] += work[a] / total;
        categorical_set(row, field, coupling, starts, starts[d], parts, n_parts, j,
                        categorical_select(work, q, total, u));
    }
}

/* The tables of the pairs of which both columns are free in any row; `free` is the same as
 * `codes` < 0 if it is NULL. */
SIMD_INLINE void categorical_tables(const double *restrict coupling, const int64_t *restrict starts,
                                    double scale, const int64_t *restrict pairs, ptrdiff_t n_pairs,
                                    const uint8_t *restrict free, const int32_t *restrict codes,
                                    double *restrict tables, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t p = 0; p < n_pairs; p++) {
        const ptrdiff_t j = pairs[2 * p], l = pairs[2 * p + 1];
        int is_free = 0;
        for (ptrdiff_t i = 0; i < n && !is_free; i++)
            is_free = free ? free[i * d + j] && free[i * d + l]
                           : codes[i * d + j] < 0 && codes[i * d + l] < 0;
        if (is_free)
            categorical_table(coupling, starts, scale, starts[d], j, l, tables);
        tables += (starts[j + 1] - starts[j]) * (starts[l + 1] - starts[l] + 1);
    }
}

/* A sweep over the free columns of a row, with the fields scale * field + offset: first the pairs
 * of which both columns are free, then single columns, as `categorical_row` has them. */
SIMD_INLINE void categorical_sweep(int32_t *restrict row, double *restrict field,
                                   const double *restrict coupling, const double *restrict offset,
                                   const int64_t *restrict starts, double scale,
                                   const int64_t *restrict parts, ptrdiff_t n_parts,
                                   const int64_t *restrict pairs, const double *restrict table,
                                   ptrdiff_t n_pairs, const uint8_t *restrict free,
                                   double *restrict work, ptrdiff_t most, double *restrict sums,
                                   ptrdiff_t d, uint64_t key)
{
    for (ptrdiff_t p = 0; p < n_pairs; p++) {
        const ptrdiff_t j = pairs[2 * p], l = pairs[2 * p + 1];
        const uint32_t k = (uint32_t)(d + 2 * p);
        if (free[j] && free[l])
            categorical_pair(row, field, coupling, offset, starts, scale, starts[d], parts,
                             n_parts, j, l, table, random_uniform_f64(key, k),
                             random_uniform_f64(key, k + 1), most, work);
        table += (starts[j + 1] - starts[j]) * (starts[l + 1] - starts[l] + 1);
    }
    categorical_row(row, field, coupling, offset, starts, scale, parts, n_parts, free, work, sums,
                    d, key);
}

/* Sweeps of all rows. `tables` has room for those of all pairs. */
SIMD_DISPATCH(void, categorical_gibbs,
              (int32_t *restrict codes, double *restrict local, const double *restrict coupling,
               const double *restrict offset, const int64_t *restrict starts, double scale,
               const int64_t *restrict pairs, double *restrict tables, ptrdiff_t n_pairs,
               const uint8_t *restrict free, double *restrict work, ptrdiff_t most,
               double *restrict sums, ptrdiff_t n, ptrdiff_t d, uint64_t seed,
               uint64_t first_sweep, ptrdiff_t n_sweeps, const uint64_t *restrict rows),
              (codes, local, coupling, offset, starts, scale, pairs, tables, n_pairs, free, work,
               most, sums, n, d, seed, first_sweep, n_sweeps, rows))
{
    const ptrdiff_t width = starts[d];
    const int64_t all[2] = {0, width};
    categorical_tables(coupling, starts, scale, pairs, n_pairs, free, codes, tables, n, d);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t s = 0; s < n_sweeps; s++)
            categorical_sweep(codes + i * d, local + i * width, coupling, offset, starts, scale,
                              all, 1, pairs, tables, n_pairs, free + i * d, work, most,
                              sums ? sums + i * width : NULL, d,
                              random_row_key(seed, first_sweep + (uint64_t)s, rows[i]));
}

/* The parts of the fields that belong to the free columns; -> their number. */
SIMD_INLINE ptrdiff_t categorical_parts(const uint8_t *restrict free,
                                        const int64_t *restrict starts, ptrdiff_t d,
                                        int64_t *restrict parts)
{
    ptrdiff_t n_parts = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        if (!free[j])
            continue;
        if (n_parts && parts[2 * n_parts - 1] == starts[j])
            parts[2 * n_parts - 1] = starts[j + 1];
        else {
            parts[2 * n_parts] = starts[j], parts[2 * n_parts + 1] = starts[j + 1];
            n_parts++;
        }
    }
    return n_parts;
}

/* The fields of the free columns of a row from those that are known, at `lines` of the couplings.
 * Eight states are added at once, and more than those asked for do no harm. `work` has room for
 * the states of a row, and for eight of each column. */
SIMD_INLINE void categorical_fields(double *restrict field, const double *restrict coupling,
                                    const int64_t *restrict lines, ptrdiff_t n_lines,
                                    ptrdiff_t width, const int64_t *restrict parts,
                                    ptrdiff_t n_parts, double *restrict work)
{
    enum { L = 8 };
    const ptrdiff_t last = width - L;
    for (ptrdiff_t l = -1; l < n_lines; l++) {
        const double *restrict line = coupling + (l < 0 ? 0 : lines[l]);
        double *restrict sums = work;
        for (ptrdiff_t i = 0; i < n_parts; i++)
            for (ptrdiff_t k = parts[2 * i]; k < parts[2 * i + 1]; k += L, sums += L) {
                const ptrdiff_t at = k < last ? k : last;
                for (int a = 0; a < L; a++)
                    sums[a] = l < 0 ? 0 : sums[a] + line[at + a];
            }
    }
    for (ptrdiff_t i = 0; i < n_parts; i++)
        for (ptrdiff_t k = parts[2 * i]; k < parts[2 * i + 1]; k += L, work += L)
            for (int a = 0; a < L; a++)
                field[(k < last ? k : last) + a] = work[a];
}

/* How strongly each missing column is coupled to a known one; `known` gets 1 and 0. */
SIMD_INLINE void categorical_closest(const uint8_t *restrict free, const double *restrict strengths,
                                     double *restrict known, double *restrict closest, ptrdiff_t d)
{
    for (ptrdiff_t k = 0; k < d; k++)
        known[k] = free[k] ? 0 : 1;
    for (ptrdiff_t j = 0; j < d; j++) {
        closest[j] = 0;
        for (ptrdiff_t k = 0; k < d && free[j]; k++) {
            const double strength = strengths[j * d + k] * known[k];
            closest[j] = strength > closest[j] ? strength : closest[j];
        }
    }
}

/* Draw the missing values, -1, of a row one after another, from their conditionals given what is
 * known so far: always the column that is most strongly coupled to one which is known. */
SIMD_INLINE void categorical_begin(int32_t *restrict row, double *restrict field,
                                   const double *restrict coupling, const double *restrict offset,
                                   const int64_t *restrict starts,
                                   const double *restrict strengths,
                                   const int64_t *restrict parts, ptrdiff_t n_parts,
                                   double *restrict work, double *restrict closest,
                                   int64_t *restrict missing, ptrdiff_t d, uint64_t key)
{
    ptrdiff_t n_missing = 0;
    for (ptrdiff_t j = 0; j < d; j++)
        if (row[j] < 0)
            missing[n_missing++] = j;
    for (; n_missing; n_missing--) {
        ptrdiff_t place = 0;
        for (ptrdiff_t i = 1; i < n_missing; i++)
            place = closest[missing[i]] > closest[missing[place]] ? i : place;
        const int64_t next = missing[place], start = starts[next];
        for (ptrdiff_t i = place; i + 1 < n_missing; i++)
            missing[i] = missing[i + 1];
        const ptrdiff_t q = starts[next + 1] - start;
        const double total = categorical_weights(field + start, offset + start, 1, q, work);
        const double u = random_uniform_f64(key, (uint32_t)next);
        categorical_set(row, field, coupling, starts, starts[d], parts, n_parts, next,
                        categorical_select(work, q, total, u));
        for (ptrdiff_t i = 0; i + 1 < n_missing; i++) {
            const double strength = strengths[next * d + missing[i]];
            if (strength > closest[missing[i]])
                closest[missing[i]] = strength;
        }
    }
}

/* Draw the missing values, -1, of each row: one after another, and then by sweeps, of which those
 * from the n_first-th on add to `sums`, unless it is NULL. Only the fields of these are computed,
 * and once for equal rows that follow each other. `room` has room for two rows of fields and three
 * of columns, `parts` for four numbers of each column, and `last` for a row. */
SIMD_DISPATCH(void, categorical_draws,
              (int32_t *restrict codes, const double *restrict coupling,
               const double *restrict offset, const int64_t *restrict starts,
               const double *restrict strengths, const int64_t *restrict pairs,
               double *restrict tables, ptrdiff_t n_pairs, uint8_t *restrict free,
               int64_t *restrict parts, int32_t *restrict last, double *restrict room,
               double *restrict work, ptrdiff_t most, double *restrict sums, ptrdiff_t n,
               ptrdiff_t d, uint64_t seed, ptrdiff_t n_first, ptrdiff_t n_sweeps,
               const uint64_t *restrict rows),
              (codes, coupling, offset, starts, strengths, pairs, tables, n_pairs, free, parts,
               last, room, work, most, sums, n, d, seed, n_first, n_sweeps, rows))
{
    const ptrdiff_t width = starts[d];
    double *restrict field = room + width, *restrict first = field + width;
    double *restrict closest = first + d, *restrict known = closest + d;
    int64_t *restrict lines = parts + 2 * d;
    ptrdiff_t n_parts = 0;
    if (n_sweeps)
        categorical_tables(coupling, starts, 1, pairs, n_pairs, NULL, codes, tables, n, d);
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t *restrict row = codes + i * d;
        if (!i || memcmp(row, last, (size_t)d * sizeof *row)) {
            ptrdiff_t n_lines = 0;
            memcpy(last, row, (size_t)d * sizeof *row);
            for (ptrdiff_t j = 0; j < d; j++) {
                free[j] = row[j] < 0;
                if (!free[j])
                    lines[n_lines++] = (starts[j] + row[j]) * width;
            }
            n_parts = categorical_parts(free, starts, d, parts);
            if (width < 8)
                for (ptrdiff_t k = 0; k < width; k++) {
                    room[k] = 0;
                    for (ptrdiff_t l = 0; l < n_lines; l++)
                        room[k] += coupling[lines[l] + k];
                }
            else
                categorical_fields(room, coupling, lines, n_lines, width, parts, n_parts,
                                   known + d);
            categorical_closest(free, strengths, known, first, d);
        }
        for (ptrdiff_t l = 0; l < n_parts; l++)
            for (ptrdiff_t k = parts[2 * l]; k < parts[2 * l + 1]; k++)
                field[k] = room[k];
        memcpy(closest, first, (size_t)d * sizeof *first);
        categorical_begin(row, field, coupling, offset, starts, strengths, parts, n_parts, work,
                          closest, lines + d, d, random_row_key(seed, 0, rows[i]));
        for (ptrdiff_t s = 0; s < n_sweeps && n_parts; s++)
            categorical_sweep(row, field, coupling, offset, starts, 1, parts, n_parts, pairs,
                              tables, n_pairs, free, work, most,
                              sums && s >= n_first ? sums + i * width : NULL, d,
                              random_row_key(seed, 1 + (uint64_t)s, rows[i]));
    }
}
