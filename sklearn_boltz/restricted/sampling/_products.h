/* Products for which BLAS is slow. A template, included once for each element type: REAL,
 * SUFFIX as in _gibbs_kernel.h.
 *
 * Matrices of many zeros, as the states of binary units are: a row of A @ B is a combination
 * of the rows of B, of which only few are read. Matrices of few rows: BLAS would spend its time
 * on rearranging the other one.
 */
#include "_simd.h"

#ifndef SPARSE_ONCE
#define SPARSE_ONCE
#include <stdlib.h>
#include <string.h>

enum {
    /* Vectors of 64 bytes whose sums are in registers at once. */
    SPARSE_PANEL = 6,
    /* Rows that are multiplied at once with two of the other matrix. */
    FEW_PANEL = 4,
    /* Few rows are this many bytes of a column: 20 in float32, 10 in float64. */
    FEW_BYTES = 80,
    /* Bytes of the other matrix that stay next to the processor. */
    SPARSE_NEAR = 1 << 15
};

/* Part of the entries that may differ from 0, for this to be faster than BLAS, by the size of the
 * other matrix. */
#define SPARSE_LIMIT(bytes) ((bytes) > SPARSE_NEAR ? 0.4 : 0.6)

#endif

#define ENTRIES NAME(sparse_entries)
#define VEC NAME(sparse_vec)
#define HALF NAME(sparse_half)
#define QUARTER NAME(sparse_quarter)
#define LANES ((ptrdiff_t)(64 / sizeof(REAL)))

#if SIMD_VECTORS
typedef REAL VEC __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
#endif

/* The entries other than 0 of a matrix, row by row: those of row i from start[i] on. */
typedef struct {
    ptrdiff_t n_rows;
    ptrdiff_t *start;
    int32_t *index;
    REAL *value;
} ENTRIES;

/* Columns [begin, begin + width) of combinations of rows of b: out = beta out + alpha A b.
 * The last vector ends with the row, and may overlap the one before: all of out is read
 * before any of it is written. */
SIMD_INLINE void NAME(sparse_panel)(const ENTRIES *a, const REAL *b, ptrdiff_t n_columns,
                                    ptrdiff_t begin, REAL alpha, REAL beta, REAL *out,
                                    const int n_vectors)
{
#if SIMD_VECTORS
    ptrdiff_t last = begin + (n_vectors - 1) * LANES;
    last = last + LANES > n_columns ? n_columns - LANES : last;
    for (ptrdiff_t i = 0; i < a->n_rows; i++) {
        VEC sum[SPARSE_PANEL] = {{0}};
        for (ptrdiff_t k = a->start[i]; k < a->start[i + 1]; k++) {
            const REAL *row = b + a->index[k] * n_columns, value = a->value[k];
            for (int v = 0; v < n_vectors - 1; v++)
                sum[v] += value * *(const VEC *)(row + begin + v * LANES);
            sum[n_vectors - 1] += value * *(const VEC *)(row + last);
        }
        REAL *to = out + i * n_columns;
        for (int v = 0; v < n_vectors; v++) {
            const ptrdiff_t at = v == n_vectors - 1 ? last : begin + v * LANES;
            sum[v] = beta == 0 ? alpha * sum[v] : alpha * sum[v] + beta * *(const VEC *)(to + at);
        }
        for (int v = 0; v < n_vectors - 1; v++)
            *(VEC *)(to + begin + v * LANES) = sum[v];
        *(VEC *)(to + last) = sum[n_vectors - 1];
    }
#endif
}

/* out = beta out + alpha A b */
SIMD_DISPATCH(void, NAME(sparse_combine),
              (const ENTRIES *a, const REAL *b, ptrdiff_t n_columns, REAL alpha, REAL beta,
               REAL *out),
              (a, b, n_columns, alpha, beta, out))
{
    if (!SIMD_VECTORS || n_columns < LANES) {
        for (ptrdiff_t i = 0; i < a->n_rows; i++)
            for (ptrdiff_t j = 0; j < n_columns; j++) {
                REAL sum = 0;
                for (ptrdiff_t k = a->start[i]; k < a->start[i + 1]; k++)
                    sum += a->value[k] * b[a->index[k] * n_columns + j];
                REAL *to = out + i * n_columns + j;
                *to = beta == 0 ? alpha * sum : alpha * sum + beta * *to;
            }
        return;
    }
    /* Panels of nearly equal width, so that the last has more than the overlapping vector. */
    const ptrdiff_t n_vectors = (n_columns + LANES - 1) / LANES;
    const ptrdiff_t n_panels = (n_vectors + SPARSE_PANEL - 1) / SPARSE_PANEL;
    for (ptrdiff_t panel = 0; panel < n_panels; panel++) {
        const ptrdiff_t from = n_vectors * panel / n_panels, begin = from * LANES;
        switch (n_vectors * (panel + 1) / n_panels - from) {
        case 1: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 1); break;
        case 2: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 2); break;
        case 3: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 3); break;
        case 4: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 4); break;
        case 5: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 5); break;
        default: NAME(sparse_panel)(a, b, n_columns, begin, alpha, beta, out, 6);
        }
    }
}

/* Memory for the entries of a matrix; 0 if there is none. */
static inline int NAME(sparse_allocate)(ENTRIES *a, ptrdiff_t n_rows, ptrdiff_t most)
{
    const size_t starts = (size_t)(n_rows + 1) * sizeof(ptrdiff_t);
    a->n_rows = n_rows;
    a->start = malloc(starts + (size_t)most * (sizeof(int32_t) + sizeof(REAL)));
    if (a->start == NULL)
        return 0;
    a->value = (REAL *)(a->start + n_rows + 1);
    a->index = (int32_t *)(a->value + most);
    return 1;
}

/* The entries other than 0 of the first n_used columns of a matrix, if they are few enough and
 * there is memory; else 0. */
static inline int NAME(sparse_read)(ENTRIES *entries, const REAL *a, ptrdiff_t n_rows,
                                    ptrdiff_t n_used, ptrdiff_t stride, double limit)
{
    const ptrdiff_t most = (ptrdiff_t)(limit * (double)(n_rows * n_used));
    /* Room for a row too many. */
    if (!NAME(sparse_allocate)(entries, n_rows, most + n_used + 1))
        return 0;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        entries->start[i] = count;
        for (ptrdiff_t j = 0; j < n_used; j++) { /* without a branch */
            entries->index[count] = (int32_t)j;
            entries->value[count] = a[i * stride + j];
            count += a[i * stride + j] != 0;
        }
        if (count > most) {
            free(entries->start);
            return 0;
        }
    }
    entries->start[n_rows] = count;
    return 1;
}

/* The entries of the transposed matrix, of n_rows rows; 0 if there is no memory. */
static inline int NAME(sparse_transpose)(const ENTRIES *a, ENTRIES *transposed, ptrdiff_t n_rows)
{
    const ptrdiff_t count = a->start[a->n_rows];
    if (!NAME(sparse_allocate)(transposed, n_rows, count))
        return 0;
    ptrdiff_t *start = transposed->start;
    memset(start, 0, (size_t)(n_rows + 1) * sizeof *start);
    for (ptrdiff_t k = 0; k < count; k++)
        start[a->index[k]]++;
    for (ptrdiff_t j = 0, end = 0; j <= n_rows; j++)
        start[j] = end += start[j];
    /* Now start is where the rows end; they are filled from there. */
    for (ptrdiff_t i = a->n_rows - 1; i >= 0; i--)
        for (ptrdiff_t k = a->start[i]; k < a->start[i + 1]; k++) {
            const ptrdiff_t place = --start[a->index[k]];
            transposed->index[place] = (int32_t)i;
            transposed->value[place] = a->value[k];
        }
    return 1;
}

/* out = a @ b. Returns 0, with nothing done, if too much of a differs from 0. */
static inline int NAME(sparse_product)(const REAL *a, ptrdiff_t n_rows, ptrdiff_t n_inner,
                                       const REAL *b, ptrdiff_t n_columns, REAL *out)
{
    ENTRIES entries;
    const double limit = SPARSE_LIMIT(n_inner * n_columns * (ptrdiff_t)sizeof(REAL));
    if (!NAME(sparse_read)(&entries, a, n_rows, n_inner, n_inner, limit))
        return 0;
    NAME(sparse_combine)(&entries, b, n_columns, 1, 0, out);
    free(entries.start);
    return 1;
}

/* out = beta out + alpha a.T @ b for the first n_used columns of a, whose rows are `stride`
 * apart. Returns 0, with nothing done, if too much of a differs from 0. */
static inline int NAME(sparse_moments)(const REAL *a, ptrdiff_t stride, ptrdiff_t n_used,
                                       const REAL *b, ptrdiff_t n_rows, ptrdiff_t n_columns,
                                       REAL alpha, REAL beta, REAL *out)
{
    ENTRIES entries, transposed;
    const double limit = SPARSE_LIMIT(n_rows * n_columns * (ptrdiff_t)sizeof(REAL));
    if (!NAME(sparse_read)(&entries, a, n_rows, n_used, stride, limit))
        return 0;
    const int ready = NAME(sparse_transpose)(&entries, &transposed, n_used);
    free(entries.start);
    if (ready) {
        NAME(sparse_combine)(&transposed, b, n_columns, alpha, beta, out);
        free(transposed.start);
    }
    return ready;
}

#if SIMD_VECTORS
typedef REAL HALF __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));
typedef REAL QUARTER __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));

SIMD_INLINE REAL NAME(few_total)(VEC v)
{
    const HALF half = ((HALF *)&v)[0] + ((HALF *)&v)[1];
    const QUARTER quarter = ((QUARTER *)&half)[0] + ((QUARTER *)&half)[1];
    REAL sum = quarter[0] + quarter[1];
    for (int lane = 2; lane < LANES / 4; lane++)
        sum += quarter[lane];
    return sum;
}

/* out[r, c] = a[r] @ b[c] for n_rows rows of a and two of b. The last vector ends with the
 * rows; `last` is 0 in the lanes that were counted before, else 1. */
SIMD_INLINE void NAME(few_panel)(const REAL *a, const REAL *b, ptrdiff_t n_inner, VEC last,
                                 REAL *out, ptrdiff_t n_columns, const int n_rows)
{
    const REAL *b2 = b + n_inner;
    VEC sum[FEW_PANEL], sum2[FEW_PANEL];
    ptrdiff_t j = n_inner - LANES;
    VEC x = last * *(const VEC *)(b + j), x2 = last * *(const VEC *)(b2 + j);
    for (int r = 0; r < n_rows; r++) {
        const VEC y = *(const VEC *)(a + r * n_inner + j);
        sum[r] = x * y;
        sum2[r] = x2 * y;
    }
    for (j = 0; j + LANES <= n_inner; j += LANES) {
        x = *(const VEC *)(b + j), x2 = *(const VEC *)(b2 + j);
        for (int r = 0; r < n_rows; r++) {
            const VEC y = *(const VEC *)(a + r * n_inner + j);
            sum[r] += x * y;
            sum2[r] += x2 * y;
        }
    }
    for (int r = 0; r < n_rows; r++) {
        out[r * n_columns] = NAME(few_total)(sum[r]);
        out[r * n_columns + 1] = NAME(few_total)(sum2[r]);
    }
}
#endif

SIMD_DISPATCH(void, NAME(few_combine),
              (const REAL *a, ptrdiff_t n_rows, ptrdiff_t n_inner, const REAL *b,
               ptrdiff_t n_columns, REAL *out),
              (a, n_rows, n_inner, b, n_columns, out))
{
#if SIMD_VECTORS
    VEC last;
    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        last[lane] = lane >= LANES - n_inner % LANES;
    for (ptrdiff_t pair = 0; pair < n_columns; pair += 2)
        for (ptrdiff_t r = 0; r < n_rows; r += FEW_PANEL) {
            /* With an odd number, one column is made twice. */
            const ptrdiff_t c = pair + 2 > n_columns ? n_columns - 2 : pair;
            const REAL *rows = a + r * n_inner, *columns = b + c * n_inner;
            REAL *to = out + r * n_columns + c;
            switch (n_rows - r) {
            case 1: NAME(few_panel)(rows, columns, n_inner, last, to, n_columns, 1); break;
            case 2: NAME(few_panel)(rows, columns, n_inner, last, to, n_columns, 2); break;
            case 3: NAME(few_panel)(rows, columns, n_inner, last, to, n_columns, 3); break;
            default: NAME(few_panel)(rows, columns, n_inner, last, to, n_columns, FEW_PANEL);
            }
        }
#endif
}

/* out = a @ b.T. Returns 0, with nothing done, if a has too many rows for this to be faster
 * than BLAS, or one. */
static inline int NAME(few_product)(const REAL *a, ptrdiff_t n_rows, ptrdiff_t n_inner,
                                    const REAL *b, ptrdiff_t n_columns, REAL *out)
{
    if (!SIMD_VECTORS || n_rows == 1 || n_rows > (ptrdiff_t)(FEW_BYTES / sizeof(REAL))
        || n_inner < LANES || n_columns < 2)
        return 0;
    NAME(few_combine)(a, n_rows, n_inner, b, n_columns, out);
    return 1;
}

#undef ENTRIES
#undef VEC
#undef HALF
#undef QUARTER
#undef LANES
#undef REAL
#undef SUFFIX
