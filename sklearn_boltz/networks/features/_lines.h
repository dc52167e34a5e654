/* Rows of sums of lines of a table, and lines of sums of rows; a template, included once for each
 * element type: REAL and SUFFIX as in _bernoulli_kernel.h.
 */
#include "_simd.h"

#ifndef LINES_ONCE
#define LINES_ONCE
/* Entries that are added at a time. */
enum { LINES_CHUNK = 32 };
#endif

/* Add to each row of x, (n, k), the lines of the table that its m columns name; -1 names none. The
 * chunks from own[2 j] to own[2 j + 1] of the lines of column j are left out. */
SIMD_DISPATCH(void, NAME(lines_gather),
              (REAL *restrict x, const REAL *restrict table, const int32_t *restrict lines,
               const int64_t *restrict own, ptrdiff_t n, ptrdiff_t m, ptrdiff_t k),
              (x, table, lines, own, n, m, k))
{
    const ptrdiff_t whole = k / LINES_CHUNK;
    for (ptrdiff_t i = 0; i < n; i++, x += k, lines += m) {
        for (ptrdiff_t c = 0; c < whole; c++) {
            REAL sum[LINES_CHUNK];
            for (int a = 0; a < LINES_CHUNK; a++)
                sum[a] = x[c * LINES_CHUNK + a];
            for (ptrdiff_t j = 0; j < m; j++) {
                if (lines[j] < 0 || (c >= own[2 * j] && c < own[2 * j + 1]))
                    continue;
                const REAL *line = table + lines[j] * k + c * LINES_CHUNK;
                for (int a = 0; a < LINES_CHUNK; a++)
                    sum[a] += line[a];
            }
            for (int a = 0; a < LINES_CHUNK; a++)
                x[c * LINES_CHUNK + a] = sum[a];
        }
        for (ptrdiff_t j = 0; j < m; j++)
            if (lines[j] >= 0)
                for (ptrdiff_t a = whole * LINES_CHUNK; a < k; a++)
                    x[a] += table[lines[j] * k + a];
    }
}

/* The other way round: add each row of x to these lines. */
SIMD_DISPATCH(void, NAME(lines_scatter),
              (const REAL *restrict x, REAL *restrict table, const int32_t *restrict lines,
               const int64_t *restrict own, ptrdiff_t n, ptrdiff_t m, ptrdiff_t k),
              (x, table, lines, own, n, m, k))
{
    for (ptrdiff_t i = 0; i < n; i++, x += k, lines += m)
        for (ptrdiff_t j = 0; j < m; j++) {
            if (lines[j] < 0)
                continue;
            REAL *restrict line = table + lines[j] * k;
            for (ptrdiff_t a = 0; a < own[2 * j] * LINES_CHUNK; a++)
                line[a] += x[a];
            for (ptrdiff_t a = own[2 * j + 1] * LINES_CHUNK; a < k; a++)
                line[a] += x[a];
        }
}

#undef REAL
#undef SUFFIX
