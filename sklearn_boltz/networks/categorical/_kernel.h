/* Kernels of the pseudo-likelihood of categorical columns.
 *
 * The lanes of a vector are columns ("sites"): a group has as many as a vector of 64 bytes has
 * numbers, and "state a of a group" is a vector of the fields of their state a. So the softmax
 * over states is vertical, without a shuffle. In a row, the field of a group is the sum of one
 * line of a table for each column j: the couplings J_ij(., x_j) of the sites i of the group.
 *
 * A table has a line for each state of each column, and a last one of zeros, for missing cells.
 * It is cut into panels of a few states, in each of which lines are contiguous; the panel of
 * state a starts at a * n_lines * LANES. Fields have the same layout, with rows for lines.
 *
 * Few columns together have few distinct rows, their patterns. So the lines of each pattern
 * are added up once, and a row then has one line for a bundle of columns; likewise,
 * residuals are added up by pattern before they are dealt out to the lines of its states. The
 * patterns of a block of bundles stay in the cache while all rows are looked at.
 */
#include <math.h>
#include "_exp.h"
#include "_simd.h"

#if SIMD_VECTORS
typedef simd_f64x8 VEC;
#else
typedef double VEC;
#endif
enum {
    /* States of a panel at most: their sums are in registers. */
    CATEGORICAL_PANEL = 5,
    LANES = sizeof(VEC) / sizeof(double)
};

/* Bundles of columns, in blocks. Block k has bundles [bundles[k], bundles[k + 1]) and patterns
 * [patterns[k], patterns[k + 1]); its rows are in `rows`, a pattern of the block for each bundle,
 * from n_rows * bundles[k] on. Pattern m has the lines parts[first[m]] to parts[first[m + 1] - 1]. */
typedef struct {
    const uint16_t *rows, *parts;
    const int64_t *bundles, *patterns, *first;
    ptrdiff_t n_blocks, n_rows, n_lines;
} categorical_rows;

/* The sites of a group: their numbers, -1 for none; and where each block J_ij starts in theta. */
typedef struct {
    const int64_t *sites, *n_values, *starts;
    ptrdiff_t n_sites, n_states;
} categorical_group;

/* States [*begin, *begin + width) of panel k: nearly equal widths. */
static inline ptrdiff_t categorical_n_panels(ptrdiff_t n_states)
{
    return (n_states + CATEGORICAL_PANEL - 1) / CATEGORICAL_PANEL;
}
static inline ptrdiff_t categorical_panel(ptrdiff_t n_states, ptrdiff_t k, ptrdiff_t *begin)
{
    const ptrdiff_t n = categorical_n_panels(n_states);
    *begin = n_states * k / n;
    return n_states * (k + 1) / n - *begin;
}

/* The lines of each pattern of a block, added up. */
SIMD_INLINE void sum_patterns(const double *table, const uint16_t *parts, const int64_t *first,
                              double *patterns, ptrdiff_t n_patterns, const int width)
{
    for (ptrdiff_t m = 0; m < n_patterns; m++) {
        VEC *to = (VEC *)patterns + m * width, sum[CATEGORICAL_PANEL] = {{0}};
        for (int64_t k = first[m]; k < first[m + 1]; k++)
            for (int v = 0; v < width; v++)
                sum[v] += ((const VEC *)table)[parts[k] * width + v];
        for (int v = 0; v < width; v++)
            to[v] = sum[v];
    }
}

/* Add each pattern to its lines. */
SIMD_INLINE void deal_patterns(double *table, const uint16_t *parts, const int64_t *first,
                               const double *patterns, ptrdiff_t n_patterns, const int width)
{
    for (ptrdiff_t m = 0; m < n_patterns; m++)
        for (int64_t k = first[m]; k < first[m + 1]; k++)
            for (int v = 0; v < width; v++)
                ((VEC *)table)[parts[k] * width + v] += ((const VEC *)patterns)[m * width + v];
}

/* fields[n] = (first ? 0 : fields[n]) + the sum of the row's patterns in one block. */
SIMD_INLINE void gather_rows(const double *patterns, const uint16_t *rows, ptrdiff_t n_bundles,
                             double *fields, ptrdiff_t n_rows, int first, const int width)
{
    for (ptrdiff_t n = 0; n < n_rows; n++) {
        VEC *to = (VEC *)fields + n * width, sum[CATEGORICAL_PANEL] = {{0}};
        if (!first)
            for (int v = 0; v < width; v++)
                sum[v] = to[v];
        for (ptrdiff_t k = 0; k < n_bundles; k++)
            for (int v = 0; v < width; v++)
                sum[v] += ((const VEC *)patterns)[rows[n * n_bundles + k] * width + v];
        for (int v = 0; v < width; v++)
            to[v] = sum[v];
    }
}

/* Add the row's residuals to each of its patterns in one block. */
SIMD_INLINE void scatter_rows(double *patterns, const uint16_t *rows, ptrdiff_t n_bundles,
                              const double *residuals, ptrdiff_t n_rows, const int width)
{
    for (ptrdiff_t n = 0; n < n_rows; n++) {
        VEC add[CATEGORICAL_PANEL];
        for (int v = 0; v < width; v++)
            add[v] = ((const VEC *)residuals)[n * width + v];
        for (ptrdiff_t k = 0; k < n_bundles; k++)
            for (int v = 0; v < width; v++)
                ((VEC *)patterns)[rows[n * n_bundles + k] * width + v] += add[v];
    }
}

/* The fields of rows [begin, end), without intercepts; or, the other way round, add the
 * residuals of these rows to the lines of a table. `patterns` is room for a block of them. */
SIMD_INLINE void fields_of_panel(const categorical_rows *all, double *table, double *patterns,
                                 double *fields, ptrdiff_t begin, ptrdiff_t end,
                                 const int gather, const int width)
{
    for (ptrdiff_t k = 0; k < all->n_blocks; k++) {
        const ptrdiff_t n_bundles = all->bundles[k + 1] - all->bundles[k];
        const ptrdiff_t n_patterns = all->patterns[k + 1] - all->patterns[k];
        const uint16_t *rows = all->rows + all->n_rows * all->bundles[k] + begin * n_bundles;
        const int64_t *first = all->first + all->patterns[k];
        if (gather) {
            sum_patterns(table, all->parts, first, patterns, n_patterns, width);
            gather_rows(patterns, rows, n_bundles, fields, end - begin, k == 0, width);
        } else {
            for (ptrdiff_t v = 0; v < n_patterns * width * LANES; v++)
                patterns[v] = 0;
            scatter_rows(patterns, rows, n_bundles, fields, end - begin, width);
            deal_patterns(table, all->parts, first, patterns, n_patterns, width);
        }
    }
}

SIMD_INLINE void fields_of_rows(const categorical_rows *all, ptrdiff_t n_states, double *table,
                                double *patterns, double *fields, ptrdiff_t begin,
                                ptrdiff_t end, const int gather)
{
    for (ptrdiff_t p = 0; p < categorical_n_panels(n_states); p++) {
        ptrdiff_t state;
        const ptrdiff_t width = categorical_panel(n_states, p, &state);
        double *lines = table + state * all->n_lines * LANES;
        double *part = fields + state * (end - begin) * LANES;
        switch (width) {
        case 1: fields_of_panel(all, lines, patterns, part, begin, end, gather, 1); break;
        case 2: fields_of_panel(all, lines, patterns, part, begin, end, gather, 2); break;
        case 3: fields_of_panel(all, lines, patterns, part, begin, end, gather, 3); break;
        case 4: fields_of_panel(all, lines, patterns, part, begin, end, gather, 4); break;
        default: fields_of_panel(all, lines, patterns, part, begin, end, gather, 5);
        }
    }
}

SIMD_DISPATCH(void, categorical_gather,
              (const categorical_rows *all, ptrdiff_t n_states, double *table, double *patterns,
               double *fields, ptrdiff_t begin, ptrdiff_t end),
              (all, n_states, table, patterns, fields, begin, end))
{
    fields_of_rows(all, n_states, table, patterns, fields, begin, end, 1);
}

SIMD_DISPATCH(void, categorical_scatter,
              (const categorical_rows *all, ptrdiff_t n_states, double *table, double *patterns,
               double *fields, ptrdiff_t begin, ptrdiff_t end),
              (all, n_states, table, patterns, fields, begin, end))
{
    fields_of_rows(all, n_states, table, patterns, fields, begin, end, 0);
}

/* Fields become residuals, w (1[x = a] - p(a)), where the cell is not missing, else 0; the
 * residuals are added to `sums`, the derivatives of the intercepts. Returns
 * sum_n w_n sum_i ln p_i(x_i). `intercept` is -1e30 for states that a site has not; `codes` has
 * LANES numbers a row; `work` is room for the fields of a row. */
SIMD_DISPATCH(double, categorical_softmax,
              (double *fields, const double *intercept, const int16_t *codes,
               const double *weights, ptrdiff_t n_rows, ptrdiff_t n_states, double *work,
               double *sums),
              (fields, intercept, codes, weights, n_rows, n_states, work, sums))
{
    /* Below, e^x is nothing, and near the least number: slow. */
    const double least = -680;
    const ptrdiff_t n_panels = categorical_n_panels(n_states);
    double total = 0;
    for (ptrdiff_t n = 0; n < n_rows; n++) {
        VEC *field = (VEC *)work;
        double largest[LANES], sum[LANES], factor[LANES];
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            ptrdiff_t state;
            const ptrdiff_t width = categorical_panel(n_states, p, &state);
            const VEC *from = (const VEC *)(fields + (state * n_rows + n * width) * LANES);
            for (ptrdiff_t v = 0; v < width; v++)
                field[state + v] = from[v] + ((const VEC *)intercept)[state + v];
        }
        for (ptrdiff_t l = 0; l < LANES; l++)
            largest[l] = work[l];
        for (ptrdiff_t a = 1; a < n_states; a++)
            for (ptrdiff_t l = 0; l < LANES; l++)
                largest[l] = work[a * LANES + l] > largest[l] ? work[a * LANES + l] : largest[l];
        for (ptrdiff_t a = 0; a < n_states; a++)
            field[a] -= *(const VEC *)largest;
        double chosen = 0;
        for (ptrdiff_t l = 0; l < LANES; l++)
            if (codes[n * LANES + l] >= 0)
                chosen += work[codes[n * LANES + l] * LANES + l];
        for (ptrdiff_t k = 0; k < n_states * LANES; k++) {
            const double e = simd_exp_f64(work[k]);
            work[k] = work[k] < least ? 0 : e;
        }
        VEC normaliser = field[0];
        for (ptrdiff_t a = 1; a < n_states; a++)
            normaliser += field[a];
        *(VEC *)sum = normaliser;
        double product = 1;
        for (ptrdiff_t l = 0; l < LANES; l++) {
            const int known = codes[n * LANES + l] >= 0;
            product *= known ? sum[l] : 1;
            factor[l] = known ? weights[n] / sum[l] : 0;
        }
        total += weights[n] * (chosen - log(product));
        for (ptrdiff_t a = 0; a < n_states; a++)
            field[a] *= -*(const VEC *)factor;
        for (ptrdiff_t l = 0; l < LANES; l++)
            if (codes[n * LANES + l] >= 0)
                work[codes[n * LANES + l] * LANES + l] += weights[n];
        for (ptrdiff_t a = 0; a < n_states; a++)
            ((VEC *)sums)[a] += field[a];
        for (ptrdiff_t p = 0; p < n_panels; p++) {
            ptrdiff_t state;
            const ptrdiff_t width = categorical_panel(n_states, p, &state);
            VEC *to = (VEC *)(fields + (state * n_rows + n * width) * LANES);
            for (ptrdiff_t v = 0; v < width; v++)
                to[v] = field[state + v];
        }
    }
    return total;
}

/* Where J_ij(a, b) is in theta: start + a * *row + b * *column; -1 if there is none. */
static inline int64_t categorical_place(const categorical_group *group, ptrdiff_t lane,
                                        ptrdiff_t j, int64_t *row, int64_t *column)
{
    const int64_t i = group->sites[lane];
    if (i < 0 || i == j)
        return -1;
    *row = i < j ? group->n_values[j] : 1;
    *column = i < j ? 1 : group->n_values[i];
    return group->starts[i * group->n_sites + j];
}

/* Fill a table with the couplings in theta; or, the other way round, add the table to them. */
void categorical_couplings(const categorical_group *group, double *theta, double *table,
                           ptrdiff_t n_lines, int fill)
{
    for (ptrdiff_t k = 0; fill && k < n_lines * group->n_states * LANES; k++)
        table[k] = 0;
    for (ptrdiff_t p = 0; p < categorical_n_panels(group->n_states); p++) {
        ptrdiff_t state, line = 0;
        const ptrdiff_t width = categorical_panel(group->n_states, p, &state);
        for (ptrdiff_t j = 0; j < group->n_sites; line += group->n_values[j++])
            for (ptrdiff_t l = 0; l < LANES; l++) {
                int64_t row, column;
                const int64_t start = categorical_place(group, l, j, &row, &column);
                if (start < 0)
                    continue;
                const ptrdiff_t own = group->n_values[group->sites[l]] - state;
                for (ptrdiff_t a = 0; a < width && a < own; a++)
                    for (ptrdiff_t b = 0; b < group->n_values[j]; b++) {
                        double *one = theta + start + (state + a) * row + b * column;
                        double *cell = table
                                       + (state * n_lines + (line + b) * width + a) * LANES + l;
                        if (fill)
                            *cell = *one;
                        else
                            *one += *cell;
                    }
            }
    }
}
