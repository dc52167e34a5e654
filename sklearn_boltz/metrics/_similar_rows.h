/* Template: rows of codes of the type CODE, whose functions end with SUFFIX. */
#include <stddef.h>
#include <stdint.h>
#include "_simd.h"

#ifndef ROW_BLOCK
#define ROW_BLOCK 128 /* rows are whole blocks of codes; a byte holds the count of one */
#endif

/* Whether two rows differ in `most` elements at most. It looks no further than it must: rows that
 * have little in common are told apart after a block or two. */
SIMD_INLINE int NAME(rows_similar)(const CODE *restrict a, const CODE *restrict b,
                                   ptrdiff_t n_columns, ptrdiff_t most)
{
    ptrdiff_t total = 0;
    for (ptrdiff_t j = 0; j < n_columns && total <= most; j += ROW_BLOCK) {
        CODE differing = 0;
        for (int k = 0; k < ROW_BLOCK; k++)
            differing += a[j + k] != b[j + k];
        total += differing;
    }
    return total <= most;
}

/* Each pair of a row of [begin, end) and a later row, once, counted for both. The rows from
 * `begin` to `end` stay in the cache, the later ones pass by. */
SIMD_DISPATCH(void, NAME(rows_count_similar),
              (const CODE *codes, const int64_t *multiplicity, int64_t *counts, ptrdiff_t begin,
               ptrdiff_t end, ptrdiff_t n_rows, ptrdiff_t n_columns, ptrdiff_t most),
              (codes, multiplicity, counts, begin, end, n_rows, n_columns, most))
{
    for (ptrdiff_t later = begin + 1; later < n_rows; later++) {
        const ptrdiff_t stop = later < end ? later : end;
        for (ptrdiff_t row = begin; row < stop; row++)
            if (NAME(rows_similar)(codes + row * n_columns, codes + later * n_columns, n_columns,
                                   most)) {
                counts[row] += multiplicity[later];
                counts[later] += multiplicity[row];
            }
    }
}

#undef CODE
#undef SUFFIX
