/* The fused pass over the dual table of a full-span log-linear model.
 *
 * This file is a template, included by _dual_update_all.h once for each
 *
 *   REAL, INT   type of the tables, and the integer of the same size
 *   LANES       elements in a vector; 1 for none
 *   TARGET      mark of functions that need the instructions, also of those that are inlined:
 *               Clang lets no vector pass between functions of different instructions
 *   SUFFIX      appended to the names
 *
 * A table entry y is reached as y = LANES * v + lane, and the description length of a term
 * is r_outer[y / n_inner] + r_inner[y % n_inner].
 */
#define VEC NAME(fsll_vector)
#define MASK NAME(fsll_mask)

#if LANES > 1
/* Aligned as an element: NumPy promises no more. */
typedef REAL VEC __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef INT MASK __attribute__((vector_size(LANES * sizeof(REAL))));

TARGET SIMD_INLINE int NAME(fsll_any)(MASK hit)
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
TARGET SIMD_INLINE VEC NAME(fsll_swap)(VEC x, const int lanes)
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

/* What the inner loops need of the description lengths, in registers: through a pointer, each
 * store to the table might have changed it. */
typedef struct {
    const REAL *r_outer, *r_inner;
    int64_t n_inner;
    int inner_bits;
    REAL best;
} NAME(fsll_bound);

TARGET SIMD_INLINE NAME(fsll_bound) NAME(fsll_make_bound)(const fsll_penalty *penalty, double best)
{
    const NAME(fsll_bound) bound = {(const REAL *)penalty->r_outer, (const REAL *)penalty->r_inner,
                                    penalty->n_inner, penalty->inner_bits, (REAL)best};
    return bound;
}

/* In which lanes of vector v might appending the term beat the best so far? By the lower bound
 * of eq. 2.19, -(d-t)^2 / (1-t^2) + r < best, without the division. */
TARGET SIMD_INLINE MASK NAME(fsll_test)(VEC t, VEC d, int64_t v, NAME(fsll_bound) bound)
{
    const int64_t y = v * LANES;
#if LANES > 1 /* then n_inner is a power of two, and a shift is what there is time for */
    const int64_t outer = y >> bound.inner_bits, inner = y & (bound.n_inner - 1);
#else
    const int64_t outer = y / bound.n_inner, inner = y % bound.n_inner;
#endif
    const VEC slack = *(const VEC *)(bound.r_inner + inner) + (bound.r_outer[outer] - bound.best);
    const VEC e = d - t;
    return e * e > slack * (1 - t * t);
}

/* The exact change of the terms of vector v, if the bound lets any pass. */
TARGET SIMD_INLINE void NAME(fsll_examine)(const REAL *t, const REAL *d, int64_t v,
                                           const fsll_penalty *penalty, fsll_champion *best)
{
    const NAME(fsll_bound) bound = NAME(fsll_make_bound)(penalty, best->change);
    if (!NAME(fsll_any)(NAME(fsll_test)(((const VEC *)t)[v], ((const VEC *)d)[v], v, bound)))
        return;
    for (int64_t y = v * LANES; y < (v + 1) * LANES; y++) {
        const int64_t outer = y / bound.n_inner, inner = y % bound.n_inner;
        const double ty = fsll_inside(t[y], sizeof(REAL)), dy = d[y];
        const double r = (double)bound.r_outer[outer] + bound.r_inner[inner];
        if (!((dy - ty) * (dy - ty) > (r - best->change) * (1 - ty * ty)) || y == 0)
            continue;
        if (penalty->order_outer[outer] + penalty->order_inner[inner] > penalty->max_order)
            continue;
        const double change = fsll_append_change(ty, dy) + r;
        if (change < best->change || (change == best->change && y < best->code)) {
            if (best->code != y)
                best->former = best->code;
            best->change = change;
            best->code = y;
        }
    }
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
        const NAME(fsll_bound) bound = NAME(fsll_make_bound)(penalty, best->change);
        MASK hit = {0};
        for (int64_t v = tile; v < stop; v++)
            hit |= NAME(fsll_test)(((const VEC *)t)[v], ((const VEC *)d)[v], v, bound);
        if (!NAME(fsll_any)(hit))
            continue;
        for (int64_t v = tile; v < stop; v++)
            NAME(fsll_examine)(t, d, v, penalty, best);
    }
}

/* t[y] = a t[y] + b t[y ^ mask] for the vectors of pairs [begin, end), and the best
 * term to append afterwards. The mask is (vectors, lanes); with vectors != 0 pair p is
 * (v, v ^ vectors) with the top bit of `vectors` clear in v, else it is v alone. */
TARGET SIMD_INLINE void NAME(fsll_pairs)(REAL *t, const REAL *d, const int64_t vectors,
                                         const int lanes, const REAL a, const REAL b,
                                         int64_t begin, int64_t end,
                                         const fsll_penalty *penalty, fsll_champion *best)
{
    int64_t low = 1;
    while (low * 2 <= vectors)
        low *= 2;
    for (int64_t tile = begin; tile < end; tile += TILE) {
        const int64_t stop = tile + TILE < end ? tile + TILE : end;
        const NAME(fsll_bound) bound = NAME(fsll_make_bound)(penalty, best->change);
        MASK hit = {0};
        for (int64_t p = tile; p < stop; p++) {
            const int64_t v = vectors ? p + (p & ~(low - 1)) : p, w = v ^ vectors;
            const VEC tv = ((const VEC *)t)[v], tw = ((const VEC *)t)[w];
            const VEC new_v = a * tv + b * NAME(fsll_swap)(tw, lanes);
            ((VEC *)t)[v] = new_v;
            hit |= NAME(fsll_test)(new_v, ((const VEC *)d)[v], v, bound);
            if (!vectors)
                continue;
            const VEC new_w = a * tw + b * NAME(fsll_swap)(tv, lanes);
            ((VEC *)t)[w] = new_w;
            hit |= NAME(fsll_test)(new_w, ((const VEC *)d)[w], w, bound);
        }
        if (!NAME(fsll_any)(hit))
            continue;
        for (int64_t p = tile; p < stop; p++) {
            const int64_t v = vectors ? p + (p & ~(low - 1)) : p;
            NAME(fsll_examine)(t, d, v, penalty, best);
            if (vectors)
                NAME(fsll_examine)(t, d, v ^ vectors, penalty, best);
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
#undef VEC
#undef MASK
#undef REAL
#undef INT
#undef LANES
#undef TARGET
#undef SUFFIX
