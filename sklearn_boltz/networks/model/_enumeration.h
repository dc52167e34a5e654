/* Sums over all joint states of some columns of a pairwise network, given fields of their values.
 *
 * The columns are cut into two blocks of up to ENUMERATION_BLOCK joint states, and the rest.
 * For each joint state of the rest, the weights of the states (y, z) of the blocks are
 *
 *     exp(field_0[y] + pair[y, z] + field_1[z]).
 *
 * Their sums over z for each y, and over y for each z, are products of the matrix exp(pair) with
 * vectors: two multiplications for each joint state instead of an exponential function.
 */
#include <math.h>
#include <stdlib.h>
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

/* Joint states of a block, and of both: their matrix should stay in the second cache. */
#define ENUMERATION_BLOCK 160
#define ENUMERATION_BLOCKS 4096
#define ENUMERATION_LANES 8
/* If the entries of `pair` differ by more than this, exp(pair) loses small ones, and each weight
 * is computed by itself. */
#define ENUMERATION_RANGE 500.0
/* Sweeps of mean field, which need not converge. */
#define ENUMERATION_SWEEPS 10
/* The logarithm of the weight of a state that stands for none, in the padding of a block. */
#define ENUMERATION_NONE (-1e300)

/* Values of all columns are numbered one after another: those of column j from starts[j] on. */
typedef struct {
    ptrdiff_t n_columns, width, size; /* size: of a block with its padding, at most */
    int64_t *starts;
    double *coupling;             /* (width, width) */
    int64_t *block;               /* of each column: 0, 1, or 2 for the rest */
    int64_t *rest, n_rest;        /* the columns of the rest, the last of them the fastest */
    int64_t n_states[2], n_padded[2], n_members[2];
    int64_t *values[2];           /* (n_states, n_members): of each state of a block */
    double *inner[2];             /* (size,): couplings within a block */
    double *pair, *pair_t;        /* (size, size): between the blocks, or the exp of it - shift */
    double shift;
    int is_wide;                  /* whether pair holds logarithms */
    double *outer;                /* (width, 2 size): what a value of the rest adds to the blocks */
    double *fields, *weights;     /* (n_rest + 1, 2 size), (n_rest + 1,): down the tree */
    int64_t *digit;               /* (n_rest,) */
    double *exps, *sums, *totals; /* (2 size,): at a state of the rest, and over all */
} enumeration;

/* Room for plans, given the greatest numbers of columns, values of all and of one; NULL if none. */
static enumeration *enumeration_new(ptrdiff_t n_columns, ptrdiff_t width, ptrdiff_t most_values)
{
    const ptrdiff_t most = most_values > ENUMERATION_BLOCK ? most_values : ENUMERATION_BLOCK;
    const ptrdiff_t size = (most + ENUMERATION_LANES - 1) / ENUMERATION_LANES * ENUMERATION_LANES;
    const ptrdiff_t n_doubles = width * width + 2 * size * size + 2 * size
        + 2 * size * (width + n_columns + 4) + n_columns + 1;
    const ptrdiff_t n_integers = 4 * n_columns + 1 + 2 * size * n_columns;
    enumeration *plan = calloc(1, sizeof *plan);
    double *next = calloc((size_t)n_doubles, sizeof *next);
    int64_t *integers = calloc((size_t)n_integers, sizeof *integers);
    if (plan == NULL || next == NULL || integers == NULL) {
        free(plan), free(next), free(integers);
        return NULL;
    }
    plan->size = size;
    plan->coupling = next, next += width * width;
    plan->pair = next, next += size * size;
    plan->pair_t = next, next += size * size;
    plan->inner[0] = next, next += size;
    plan->inner[1] = next, next += size;
    plan->outer = next, next += 2 * size * width;
    plan->fields = next, next += 2 * size * (n_columns + 1);
    plan->exps = next, next += 2 * size;
    plan->sums = next, next += 2 * size;
    plan->totals = next, next += 2 * size;
    plan->weights = next;
    plan->starts = integers, integers += n_columns + 1;
    plan->block = integers, integers += n_columns;
    plan->rest = integers, integers += n_columns;
    plan->digit = integers, integers += n_columns;
    plan->values[0] = integers, integers += size * n_columns;
    plan->values[1] = integers;
    return plan;
}

static void enumeration_free(enumeration *plan)
{
    if (plan != NULL) {
        free(plan->coupling), free(plan->starts);
        free(plan);
    }
}

/* Cut the columns: those of few values go to the blocks first. */
static void enumeration_cut(enumeration *plan)
{
    plan->n_rest = 0;
    for (int b = 0; b < 2; b++)
        plan->n_states[b] = 1, plan->n_members[b] = 0;
    for (ptrdiff_t j = 0; j < plan->n_columns; j++)
        plan->block[j] = -1;
    for (ptrdiff_t count = 0; count < plan->n_columns; count++) {
        ptrdiff_t next = -1, q = 0;
        for (ptrdiff_t j = 0; j < plan->n_columns; j++) {
            const ptrdiff_t own = plan->starts[j + 1] - plan->starts[j];
            if (plan->block[j] < 0 && (next < 0 || own < q))
                next = j, q = own;
        }
        int b = plan->n_states[1] < plan->n_states[0];
        if (plan->n_members[b] && (plan->n_states[b] * q > ENUMERATION_BLOCK
                                   || plan->n_states[0] * plan->n_states[1] * q > ENUMERATION_BLOCKS))
            b = 2;
        plan->block[next] = b;
        if (b < 2)
            plan->n_states[b] *= q, plan->n_members[b]++;
        else
            plan->rest[plan->n_rest++] = next;
    }
}

/* The values in each joint state of a block, and the couplings within it. */
static void enumeration_states(enumeration *plan, int b)
{
    const ptrdiff_t n = plan->n_states[b], m = plan->n_members[b], width = plan->width;
    int64_t *values = plan->values[b];
    ptrdiff_t repeat = n, place = 0;
    for (ptrdiff_t j = 0; j < plan->n_columns; j++) {
        if (plan->block[j] != b)
            continue;
        const ptrdiff_t q = plan->starts[j + 1] - plan->starts[j];
        repeat /= q;
        for (ptrdiff_t s = 0; s < n; s++)
            values[s * m + place] = plan->starts[j] + s / repeat % q;
        place++;
    }
    for (ptrdiff_t s = 0; s < n; s++) {
        double total = 0;
        for (ptrdiff_t i = 0; i < m; i++)
            for (ptrdiff_t l = 0; l < i; l++)
                total += plan->coupling[values[s * m + i] * width + values[s * m + l]];
        plan->inner[b][s] = total;
    }
    plan->n_padded[b] = (n + ENUMERATION_LANES - 1) / ENUMERATION_LANES * ENUMERATION_LANES;
}

/* What a value adds to the states of a block; 0 in the padding. */
SIMD_INLINE void enumeration_influence(const enumeration *plan, ptrdiff_t value, int b,
                                       double *restrict out)
{
    const double *restrict line = plan->coupling + value * plan->width;
    const ptrdiff_t m = plan->n_members[b];
    for (ptrdiff_t s = 0; s < plan->n_padded[b]; s++)
        out[s] = 0;
    for (ptrdiff_t s = 0; s < plan->n_states[b]; s++)
        for (ptrdiff_t i = 0; i < m; i++)
            out[s] += line[plan->values[b][s * m + i]];
}

/* The couplings between the blocks. `outer` is room for what values of block 0 add to block 1. */
SIMD_INLINE void enumeration_pairs(enumeration *plan)
{
    const ptrdiff_t size = plan->size, n = plan->n_states[0], l = plan->n_states[1];
    const ptrdiff_t n_padded = plan->n_padded[0], l_padded = plan->n_padded[1];
    const ptrdiff_t m = plan->n_members[0];
    double low = INFINITY, high = -INFINITY;
    for (ptrdiff_t j = 0; j < plan->n_columns; j++)
        for (ptrdiff_t a = plan->starts[j]; plan->block[j] == 0 && a < plan->starts[j + 1]; a++)
            enumeration_influence(plan, a, 1, plan->outer + 2 * size * a);
    for (ptrdiff_t y = 0; y < n_padded; y++) {
        double *restrict line = plan->pair + y * size;
        for (ptrdiff_t z = 0; z < l_padded; z++)
            line[z] = 0;
        for (ptrdiff_t i = 0; i < m && y < n; i++) {
            const double *restrict added = plan->outer + 2 * size * plan->values[0][y * m + i];
            for (ptrdiff_t z = 0; z < l_padded; z++)
                line[z] += added[z];
        }
        for (ptrdiff_t z = 0; z < l && y < n; z++) {
            low = line[z] < low ? line[z] : low;
            high = line[z] > high ? line[z] : high;
        }
    }
    plan->is_wide = high - low > ENUMERATION_RANGE;
    plan->shift = plan->is_wide ? 0 : high;
    for (ptrdiff_t y = 0; y < n_padded; y++) {
        double *restrict line = plan->pair + y * size;
        if (!plan->is_wide)
            for (ptrdiff_t z = 0; z < l_padded; z++)
                line[z] = simd_exp_f64(line[z] - high);
        for (ptrdiff_t z = y < n ? l : 0; z < l_padded && !plan->is_wide; z++)
            line[z] = 0;
        for (ptrdiff_t z = 0; z < l_padded; z++)
            plan->pair_t[z * size + y] = line[z];
    }
}

/* All that does not depend on the fields; `n_columns`, `starts` and `coupling` are set. */
SIMD_INLINE void enumeration_prepare(enumeration *plan)
{
    plan->width = plan->starts[plan->n_columns];
    enumeration_cut(plan);
    enumeration_states(plan, 0);
    enumeration_states(plan, 1);
    enumeration_pairs(plan);
    for (ptrdiff_t t = 0; t < plan->n_rest; t++) {
        const ptrdiff_t j = plan->rest[t];
        for (ptrdiff_t a = plan->starts[j]; a < plan->starts[j + 1]; a++)
            for (int b = 0; b < 2; b++)
                enumeration_influence(plan, a, b, plan->outer + (2 * a + b) * plan->size);
    }
}

SIMD_INLINE double enumeration_exps(const double *restrict field, double *restrict out, ptrdiff_t n)
{
    double peak = field[0];
    for (ptrdiff_t s = 0; s < n; s++)
        peak = field[s] > peak ? field[s] : peak;
    for (ptrdiff_t s = 0; s < n; s++)
        out[s] = simd_exp_f64(field[s] - peak);
    return peak;
}

/* sums[y] = sum over z of matrix_t[z, y] * x[z] */
SIMD_INLINE void enumeration_product(const double *restrict matrix_t, const double *restrict x,
                                     double *restrict sums, ptrdiff_t n, ptrdiff_t n_sums,
                                     ptrdiff_t size)
{
    for (ptrdiff_t y = 0; y < n_sums; y++)
        sums[y] = 0;
    for (ptrdiff_t z = 0; z < n; z++) {
        const double factor = x[z], *restrict line = matrix_t + z * size;
        for (ptrdiff_t y = 0; y < n_sums; y++)
            sums[y] += factor * line[y];
    }
}

/* The weights of the states of the blocks, given one of the rest, over exp of what is returned:
 * sums over all of them, and for each state of a block in `sums`. */
SIMD_INLINE double enumeration_blocks(enumeration *plan, const double *restrict fields,
                                      double *total)
{
    const ptrdiff_t size = plan->size, n = plan->n_padded[0], l = plan->n_padded[1];
    double *exps = plan->exps, *sums = plan->sums;
    double part[ENUMERATION_LANES] = {0}, peak = ENUMERATION_NONE;
    if (plan->is_wide) {
        for (ptrdiff_t y = 0; y < plan->n_states[0]; y++)
            for (ptrdiff_t z = 0; z < plan->n_states[1]; z++) {
                const double log_w = fields[y] + fields[size + z] + plan->pair[y * size + z];
                peak = log_w > peak ? log_w : peak;
            }
        for (ptrdiff_t s = 0; s < 2 * size; s++)
            sums[s] = 0;
        *total = 0;
        for (ptrdiff_t y = 0; y < plan->n_states[0]; y++)
            for (ptrdiff_t z = 0; z < plan->n_states[1]; z++) {
                const double log_w = fields[y] + fields[size + z] + plan->pair[y * size + z];
                const double w = exp(log_w - peak);
                sums[y] += w, sums[size + z] += w, *total += w;
            }
        return peak;
    }
    peak = plan->shift + enumeration_exps(fields, exps, n);
    peak += enumeration_exps(fields + size, exps + size, l);
    enumeration_product(plan->pair_t, exps + size, sums, l, n, size);
    enumeration_product(plan->pair, exps, sums + size, n, l, size);
    for (ptrdiff_t s = 0; s < n; s++)
        sums[s] *= exps[s];
    for (ptrdiff_t s = 0; s < l; s++)
        sums[size + s] *= exps[size + s];
    for (ptrdiff_t s = 0; s < n; s += ENUMERATION_LANES)
        for (ptrdiff_t i = 0; i < ENUMERATION_LANES; i++)
            part[i] += sums[s + i];
    *total = ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    return peak;
}

/* What the first values of the rest add to the fields of the blocks, from depth `from` on. */
SIMD_INLINE void enumeration_descend(enumeration *plan, const double *restrict field,
                                     ptrdiff_t from)
{
    const ptrdiff_t both = 2 * plan->size;
    for (ptrdiff_t t = from; t < plan->n_rest; t++) {
        const ptrdiff_t value = plan->starts[plan->rest[t]] + plan->digit[t];
        const double *restrict added = plan->outer + both * value;
        const double *restrict above = plan->fields + both * t;
        double *restrict below = plan->fields + both * (t + 1);
        double weight = field[value];
        for (ptrdiff_t r = 0; r < t; r++)
            weight += plan->coupling[value * plan->width + plan->starts[plan->rest[r]] + plan->digit[r]];
        plan->weights[t + 1] = plan->weights[t] + weight;
        for (ptrdiff_t s = 0; s < both; s++)
            below[s] = above[s] + added[s];
    }
}

/* ln of the sum of the weights of all joint states; the probabilities of the values, (width,). */
SIMD_INLINE double enumeration_sum(enumeration *plan, const double *restrict field,
                                   double *restrict probability)
{
    const ptrdiff_t size = plan->size, n_rest = plan->n_rest;
    double peak = ENUMERATION_NONE, total = 0, *totals = plan->totals;
    plan->weights[0] = 0;
    for (int b = 0; b < 2; b++)
        for (ptrdiff_t s = 0; s < size; s++) {
            double *entry = &plan->fields[b * size + s];
            *entry = s < plan->n_states[b] ? plan->inner[b][s] : ENUMERATION_NONE;
            for (ptrdiff_t i = 0; i < plan->n_members[b] && s < plan->n_states[b]; i++)
                *entry += field[plan->values[b][s * plan->n_members[b] + i]];
        }
    for (ptrdiff_t s = 0; s < 2 * size; s++)
        totals[s] = 0;
    for (ptrdiff_t a = 0; a < plan->width; a++)
        probability[a] = 0;
    for (ptrdiff_t t = 0; t < n_rest; t++)
        plan->digit[t] = 0;
    for (ptrdiff_t from = 0; from >= 0;) {
        enumeration_descend(plan, field, from);
        double sum;
        const double log_scale = plan->weights[n_rest]
            + enumeration_blocks(plan, plan->fields + 2 * size * n_rest, &sum);
        if (log_scale > peak) {
            const double less = exp(peak - log_scale);
            for (ptrdiff_t s = 0; s < 2 * size; s++)
                totals[s] *= less;
            for (ptrdiff_t a = 0; a < plan->width; a++)
                probability[a] *= less;
            total *= less;
            peak = log_scale;
        }
        const double scale = exp(log_scale - peak);
        for (ptrdiff_t s = 0; s < 2 * size; s++)
            totals[s] += scale * plan->sums[s];
        total += scale * sum;
        for (ptrdiff_t t = 0; t < n_rest; t++)
            probability[plan->starts[plan->rest[t]] + plan->digit[t]] += scale * sum;
        for (from = n_rest - 1; from >= 0; from--) {
            const ptrdiff_t j = plan->rest[from];
            if (++plan->digit[from] < plan->starts[j + 1] - plan->starts[j])
                break;
            plan->digit[from] = 0;
        }
    }
    for (int b = 0; b < 2; b++)
        for (ptrdiff_t s = 0; s < plan->n_states[b]; s++)
            for (ptrdiff_t i = 0; i < plan->n_members[b]; i++)
                probability[plan->values[b][s * plan->n_members[b] + i]] += totals[b * size + s];
    for (ptrdiff_t a = 0; a < plan->width; a++)
        probability[a] /= total;
    return peak + log(total);
}

/* A set of connected missing columns, from `first` on; -> how many, and whether they have no more
 * joint states than `most`. Their `label`s, 0 before, become -1. */
static ptrdiff_t enumeration_group(ptrdiff_t first, ptrdiff_t d, int64_t *label,
                                   const uint8_t *adjacency, const int64_t *starts, int64_t *group,
                                   double most, int *is_small)
{
    ptrdiff_t n = 1;
    double n_states = 1;
    group[0] = first, label[first] = -1;
    for (ptrdiff_t i = 0; i < n; i++) {
        n_states *= (double)(starts[group[i] + 1] - starts[group[i]]);
        for (ptrdiff_t j = 0; j < d; j++)
            if (label[j] == 0 && adjacency[group[i] * d + j])
                group[n++] = j, label[j] = -1;
    }
    *is_small = n_states <= most;
    return n;
}

/* Probabilities in proportion to exp(p), in place; -> ln of the sum of these. */
SIMD_INLINE double enumeration_normalise(double *p, ptrdiff_t q)
{
    double peak = ENUMERATION_NONE, total = 0;
    for (ptrdiff_t a = 0; a < q; a++)
        peak = p[a] > peak ? p[a] : peak;
    for (ptrdiff_t a = 0; a < q; a++)
        p[a] = simd_exp_f64(p[a] - peak);
    for (ptrdiff_t a = 0; a < q; a++)
        total += p[a];
    for (ptrdiff_t a = 0; a < q; a++)
        p[a] /= total;
    return peak + log(total);
}

/* The missing columns of each row, code -1, given the others. `fields` has what these add to the
 * fields of all values, and gets the probabilities of the missing ones; `log_sums` gets ln of the
 * sum over the missing columns, 0 without any. A row of which some connected missing columns have
 * more than `most` joint states is left, with 0 in `is_exact`. */
SIMD_DISPATCH(void, enumeration_rows,
              (enumeration *plan, const int32_t *restrict codes, double *restrict fields,
               const double *restrict coupling, const int64_t *restrict starts,
               const uint8_t *restrict adjacency, double most, double *restrict log_sums,
               uint8_t *restrict is_exact, int64_t *restrict label, int64_t *restrict group,
               double *restrict own, double *restrict found, ptrdiff_t n, ptrdiff_t d),
              (plan, codes, fields, coupling, starts, adjacency, most, log_sums, is_exact, label,
               group, own, found, n, d))
{
    const ptrdiff_t width = starts[d];
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict field = fields + i * width;
        int is_small = 1;
        log_sums[i] = 0;
        for (int pass = 0; pass < 2 && is_small; pass++) {
            for (ptrdiff_t j = 0; j < d; j++)
                label[j] = codes[i * d + j] < 0 ? 0 : 1;
            for (ptrdiff_t j = 0; j < d && is_small; j++) {
                if (label[j] != 0)
                    continue;
                const ptrdiff_t k = enumeration_group(j, d, label, adjacency, starts, group, most,
                                                      &is_small);
                if (pass == 0)
                    continue; /* first, whether all are small */
                if (k == 1) {
                    log_sums[i] += enumeration_normalise(field + starts[j], starts[j + 1] - starts[j]);
                    continue;
                }
                plan->n_columns = k, plan->starts[0] = 0;
                for (ptrdiff_t c = 0; c < k; c++) {
                    const int64_t start = starts[group[c]], q = starts[group[c] + 1] - start;
                    plan->starts[c + 1] = plan->starts[c] + q;
                    for (ptrdiff_t a = 0; a < q; a++)
                        own[plan->starts[c] + a] = field[start + a];
                }
                const ptrdiff_t w = plan->starts[k];
                for (ptrdiff_t c = 0; c < k; c++)
                    for (ptrdiff_t a = plan->starts[c]; a < plan->starts[c + 1]; a++) {
                        const double *restrict line
                            = coupling + (starts[group[c]] + a - plan->starts[c]) * width;
                        for (ptrdiff_t e = 0; e < k; e++) /* none within a column */
                            for (ptrdiff_t f = plan->starts[e]; e != c && f < plan->starts[e + 1]; f++)
                                plan->coupling[a * w + f]
                                    = line[starts[group[e]] + f - plan->starts[e]];
                    }
                enumeration_prepare(plan);
                log_sums[i] += enumeration_sum(plan, own, found);
                for (ptrdiff_t c = 0; c < k; c++)
                    for (ptrdiff_t a = plan->starts[c]; a < plan->starts[c + 1]; a++)
                        field[starts[group[c]] + a - plan->starts[c]] = found[a];
            }
        }
        is_exact[i] = (uint8_t)is_small;
    }
}

/* Probabilities in proportion to exp(field + added); -> ln of the sum of these. */
SIMD_INLINE double enumeration_softmax(const double *restrict field, const double *restrict added,
                                       double *restrict out, ptrdiff_t q)
{
    for (ptrdiff_t a = 0; a < q; a++)
        out[a] = field[a] + added[a];
    return enumeration_normalise(out, q);
}

/* Mean field of all columns, and what columns that come later add to the fields of earlier ones. */
SIMD_INLINE void enumeration_look_ahead(const double *restrict field,
                                        const double *restrict coupling,
                                        const int64_t *restrict starts, ptrdiff_t k,
                                        double *restrict mean, double *restrict ahead,
                                        double *restrict added, double *restrict p)
{
    const ptrdiff_t width = starts[k];
    for (ptrdiff_t a = 0; a < width; a++)
        added[a] = 0, ahead[a] = 0;
    for (ptrdiff_t j = 0; j < k; j++)
        enumeration_softmax(field + starts[j], added, mean + starts[j], starts[j + 1] - starts[j]);
    for (ptrdiff_t a = 0; a < width; a++)
        for (ptrdiff_t c = 0; c < width; c++)
            added[c] += mean[a] * coupling[a * width + c];
    for (int sweep = 0; sweep < ENUMERATION_SWEEPS; sweep++)
        for (ptrdiff_t j = 0; j < k; j++) {
            enumeration_softmax(field + starts[j], added + starts[j], p, starts[j + 1] - starts[j]);
            for (ptrdiff_t a = starts[j]; a < starts[j + 1]; a++) {
                const double change = 0.5 * (p[a - starts[j]] - mean[a]);
                mean[a] += change;
                for (ptrdiff_t c = 0; c < width; c++)
                    added[c] += change * coupling[a * width + c];
            }
        }
    for (ptrdiff_t j = 0; j < k; j++)
        for (ptrdiff_t a = starts[j]; a < starts[j + 1]; a++)
            for (ptrdiff_t c = 0; c < starts[j]; c++)
                ahead[c] += mean[a] * coupling[a * width + c];
}

/* ln of importance weights whose mean is the sum of the weights of all joint states of k columns.
 * The first n_drawn are drawn one after another given those before, the others are summed out. Of
 * four draws, three take the fields that mean field expects from later columns into account. The
 * weights are over the density of both kinds of draws together. */
SIMD_INLINE void enumeration_draws(enumeration *plan, const double *restrict field,
                                   const double *restrict coupling, const int64_t *restrict starts,
                                   ptrdiff_t k, ptrdiff_t n_drawn, double *restrict room,
                                   uint64_t seed, uint64_t first, ptrdiff_t n, double *restrict out)
{
    const ptrdiff_t width = starts[k], core = starts[n_drawn];
    double *mean = room, *ahead = room + width, *now = room + 2 * width;
    double *p = room + 3 * width, *plain = room + 4 * width, *none = room + 5 * width;
    enumeration_look_ahead(field, coupling, starts, k, mean, ahead, now, p);
    for (ptrdiff_t a = 0; a < width; a++)
        none[a] = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint64_t draw = first + (uint64_t)i, key = random_row_key(seed, 0, draw);
        double log_weight = 0, log_p = 0, log_plain = 0;
        for (ptrdiff_t a = 0; a < width; a++)
            now[a] = field[a];
        for (ptrdiff_t j = 0; j < n_drawn; j++) {
            const ptrdiff_t start = starts[j], q = starts[j + 1] - start;
            enumeration_softmax(now + start, ahead + start, p, q);
            enumeration_softmax(now + start, none, plain, q);
            const double *from = draw % 4 == 3 ? plain : p;
            const double u = random_uniform_f64(key, (uint32_t)j);
            ptrdiff_t value = 0;
            for (double sum = from[0]; sum <= u && value < q - 1; sum += from[value])
                value++;
            log_p += log(p[value]), log_plain += log(plain[value]);
            log_weight += now[start + value];
            const double *restrict line = coupling + (start + value) * width;
            for (ptrdiff_t a = start + q; a < width; a++)
                now[a] += line[a];
        }
        if (core < width)
            log_weight += enumeration_sum(plan, now + core, mean);
        const double more = log_p > log_plain ? log_p : log_plain;
        out[i] = log_weight - more
            - log(0.75 * exp(log_p - more) + 0.25 * exp(log_plain - more));
    }
}

/* For each of n_fields rows of fields, n_draws weights; `coupling` and `starts` as of a plan. */
SIMD_DISPATCH(void, enumeration_weights,
              (enumeration *plan, const double *restrict fields, const double *restrict coupling,
               const int64_t *restrict starts, ptrdiff_t k, ptrdiff_t n_drawn,
               double *restrict room, uint64_t seed, uint64_t first, ptrdiff_t n_fields,
               ptrdiff_t n_draws, double *restrict out),
              (plan, fields, coupling, starts, k, n_drawn, room, seed, first, n_fields, n_draws,
               out))
{
    const ptrdiff_t width = starts[k], core = starts[n_drawn], own = width - core;
    plan->n_columns = k - n_drawn;
    for (ptrdiff_t j = n_drawn; j <= k; j++)
        plan->starts[j - n_drawn] = starts[j] - core;
    for (ptrdiff_t a = 0; a < own; a++)
        for (ptrdiff_t c = 0; c < own; c++)
            plan->coupling[a * own + c] = coupling[(core + a) * width + core + c];
    if (n_drawn < k)
        enumeration_prepare(plan);
    for (ptrdiff_t i = 0; i < n_fields; i++)
        enumeration_draws(plan, fields + i * width, coupling, starts, k, n_drawn, room, seed, first,
                          n_draws, out + i * n_draws);
}
