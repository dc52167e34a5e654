/* The fused pass over the dual table of a full-span log-linear model.
 *
 * This file is a template, included by _dual_update_all.h once for each
 *
 *   REAL, INT   type of the tables, and the integer of the same size
 *   LANES       elements in a vector; 1 for none
 *   TARGET      mark of functions that need the instructions
 *   SUFFIX      appended to the names
 *
 * A table entry y is reached as y = LANES * v + lane, and the description length of a term
 * is r_outer[y / n_inner] + r_inner[y % n_inner].
 */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, SUFFIX)
#define VEC NAME(fsll_vector)
#define MASK NAME(fsll_mask)

#if LANES > 1
/* Aligned as an element: NumPy promises no more. */
typedef REAL VEC __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef INT MASK __attribute__((vector_size(LANES * sizeof(REAL))));

SIMD_INLINE int NAME(fsll_any)(MASK hit)
{
    INT any = 0;
    for (int k = 0; k < LANES; k++)
        any |= hit[k];
    return any != 0;
}
#else
typedef REAL VEC;
typedef int MASK;
static inline int NAME(fsll_any)(int hit) { return hit; }
#endif

/* x with lane k moved to lane k ^ lanes, composed of swaps by one bit. */
SIMD_INLINE VEC NAME(fsll_swap)(VEC x, const int lanes)
{
    (void)lanes;
#if LANES >= 2
    if (lanes & 1) x = __builtin_shufflevector(x, x, JOIN(SWAP1_, LANES));
#endif
#if LANES >= 4
    if (lanes & 2) x = __builtin_shufflevector(x, x, JOIN(SWAP2_, LANES));
#endif
#if LANES >= 8
    if (lanes & 4) x = __builtin_shufflevector(x, x, JOIN(SWAP4_, LANES));
#endif
#if LANES >= 16
    if (lanes & 8) x = __builtin_shufflevector(x, x, JOIN(SWAP8_, LANES));
#endif
    return x;
}

/* Does the lower bound of the change (eq. 2.19) let any lane beat `best`?
 * The bound -(d-t)^2 / (1-t^2) + r < best, without the division. */
SIMD_INLINE void NAME(fsll_test)(VEC t, VEC d, VEC slack, MASK *hit)
{
    VEC e = d - t;
    *hit |= e * e > slack * (1 - t * t);
}

/* The exact change of the terms [begin, begin + n): the few that the bound let pass. */
static void NAME(fsll_examine)(const REAL *t, const REAL *d, int64_t begin, int64_t n,
                               const fsll_penalty *penalty, fsll_champion *best)
{
    const int64_t outer = begin / penalty->n_inner, inner = begin % penalty->n_inner;
    const REAL *r_inner = (const REAL *)penalty->r_inner + inner;
    const double r_outer = ((const REAL *)penalty->r_outer)[outer];
    for (int64_t k = 0; k < n; k++) {
        const double tk = fsll_inside(t[begin + k], sizeof(REAL)), dk = d[begin + k];
        const double r = r_outer + r_inner[k];
        if (!((dk - tk) * (dk - tk) > (r - best->change) * (1 - tk * tk)) || begin + k == 0)
            continue;
        if (penalty->order_outer[outer] + penalty->order_inner[inner + k] > penalty->max_order)
            continue;
        const double change = fsll_append_change(tk, dk) + r;
        if (change < best->change || (change == best->change && begin + k < best->code)) {
            best->change = change;
            best->code = begin + k;
        }
    }
}

/* How far the bound must reach down for the terms of vector v. */
SIMD_INLINE VEC NAME(fsll_slack)(int64_t v, const fsll_penalty *penalty, REAL best)
{
    const int64_t y = v * LANES;
#if LANES > 1 /* then n_inner is a power of two, and a shift is what there is time for */
    const int64_t outer = y >> penalty->inner_bits, inner = y & (penalty->n_inner - 1);
#else
    const int64_t outer = y / penalty->n_inner, inner = y % penalty->n_inner;
#endif
    return *(const VEC *)((const REAL *)penalty->r_inner + inner)
           + (((const REAL *)penalty->r_outer)[outer] - best);
}

/* Vectors looked at between two tests whether any lane passed. */
#define TILE 32

/* Best term to append among the vectors [begin, end). */
TARGET
static void NAME(fsll_scan)(const REAL *t, const REAL *d, int64_t begin, int64_t end,
                     const fsll_penalty *penalty, fsll_champion *best)
{
    for (int64_t tile = begin; tile < end; tile += TILE) {
        const int64_t stop = tile + TILE < end ? tile + TILE : end;
        MASK hit = {0};
        for (int64_t v = tile; v < stop; v++)
            NAME(fsll_test)(((const VEC *)t)[v], ((const VEC *)d)[v],
                            NAME(fsll_slack)(v, penalty, (REAL)best->change), &hit);
        if (NAME(fsll_any)(hit))
            for (int64_t v = tile; v < stop; v++)
                NAME(fsll_examine)(t, d, v * LANES, LANES, penalty, best);
    }
}

/* t[y] = a t[y] + b t[y ^ mask] for the vectors of pairs [begin, end), and the best
 * term to append afterwards. The mask is (vectors, lanes); with vectors != 0 pair p is
 * (v, v ^ vectors) with the top bit of `vectors` clear in v, else it is v alone. */
SIMD_INLINE void NAME(fsll_pairs)(REAL *t, const REAL *d, int64_t vectors, const int lanes,
                                  REAL a, REAL b, int64_t begin, int64_t end,
                                  const fsll_penalty *penalty, fsll_champion *best)
{
    int64_t low = 1;
    while (low * 2 <= vectors)
        low *= 2;
    for (int64_t tile = begin; tile < end; tile += TILE) {
        const int64_t stop = tile + TILE < end ? tile + TILE : end;
        MASK hit = {0};
        for (int64_t p = tile; p < stop; p++) {
            const int64_t v = vectors ? p + (p & ~(low - 1)) : p, w = v ^ vectors;
            const VEC tv = ((const VEC *)t)[v], tw = ((const VEC *)t)[w];
            const VEC new_v = a * tv + b * NAME(fsll_swap)(tw, lanes);
            ((VEC *)t)[v] = new_v;
            NAME(fsll_test)(new_v, ((const VEC *)d)[v],
                            NAME(fsll_slack)(v, penalty, (REAL)best->change), &hit);
            if (!vectors)
                continue;
            const VEC new_w = a * tw + b * NAME(fsll_swap)(tv, lanes);
            ((VEC *)t)[w] = new_w;
            NAME(fsll_test)(new_w, ((const VEC *)d)[w],
                            NAME(fsll_slack)(w, penalty, (REAL)best->change), &hit);
        }
        if (!NAME(fsll_any)(hit))
            continue;
        for (int64_t p = tile; p < stop; p++) {
            const int64_t v = vectors ? p + (p & ~(low - 1)) : p;
            NAME(fsll_examine)(t, d, v * LANES, LANES, penalty, best);
            if (vectors)
                NAME(fsll_examine)(t, d, (v ^ vectors) * LANES, LANES, penalty, best);
        }
    }
}

/* One body for each permutation of the lanes, so that it is a constant shuffle. */
#define PERMUTED(lane) \
    case lane: \
        NAME(fsll_pairs)(t, d, mask / LANES, lane, a, b, begin, end, penalty, best); \
        break;
TARGET
static void NAME(fsll_update_and_scan)(REAL *t, const REAL *d, int64_t mask, REAL a, REAL b,
                                int64_t begin, int64_t end,
                                const fsll_penalty *penalty, fsll_champion *best)
{
    switch (mask % LANES) {
        PERMUTED(0)
#if LANES >= 2
        PERMUTED(1)
#endif
#if LANES >= 4
        PERMUTED(2) PERMUTED(3)
#endif
#if LANES >= 8
        PERMUTED(4) PERMUTED(5) PERMUTED(6) PERMUTED(7)
#endif
#if LANES >= 16
        PERMUTED(8) PERMUTED(9) PERMUTED(10) PERMUTED(11)
        PERMUTED(12) PERMUTED(13) PERMUTED(14) PERMUTED(15)
#endif
    }
}

#undef PERMUTED
#undef TILE
#undef NAME
#undef JOIN
#undef JOIN2
#undef VEC
#undef MASK
#undef REAL
#undef INT
#undef LANES
#undef TARGET
#undef SUFFIX
