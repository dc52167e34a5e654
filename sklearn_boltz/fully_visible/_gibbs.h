/* Gibbs sampling of a fully visible Boltzmann machine, one chain a row.
 *
 * The uniforms come from Philox4x32-10, a counter-based generator (Salmon et al.,
 * "Parallel random numbers: as easy as 1, 2, 3", 2011): the one of (sweep, row, column)
 * depends on these and on the seed alone, so not on how the work is cut up.
 */
#include <math.h>
#include "_simd.h"

SIMD_INLINE void philox4x32(const uint32_t counter[4], uint64_t seed, uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)p0;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* 53 bits, in [0, 1). */
SIMD_INLINE double philox_double(const uint32_t *word)
{
    return ((word[0] >> 5) * 67108864.0 + (word[1] >> 6)) * 0x1p-53;
}

/* Uniforms of columns 2 * pair and 2 * pair + 1. */
SIMD_INLINE void gibbs_uniforms(uint64_t seed, uint64_t sweep, uint32_t row, uint32_t pair,
                                double uniform[2])
{
    const uint32_t counter[4] = {pair, row, (uint32_t)sweep, (uint32_t)(sweep >> 32)};
    uint32_t words[4];
    philox4x32(counter, seed, words);
    uniform[0] = philox_double(words);
    uniform[1] = philox_double(words + 2);
}

/* Sweeps over the free columns of each row, with the fields scale * local + offset, where
 * local = x M is kept up to date. */
SIMD_DISPATCH
void fvbm_gibbs(double *restrict x, double *restrict local, const double *restrict coupling,
                const double *restrict offset, double scale, const uint8_t *restrict free,
                ptrdiff_t n, ptrdiff_t d, uint64_t seed, uint64_t first_sweep, ptrdiff_t n_sweeps)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = x + i * d, *restrict field = local + i * d;
        for (ptrdiff_t s = 0; s < n_sweeps; s++) {
            double uniform[2] = {0, 0};
            for (ptrdiff_t j = 0; j < d; j++) {
                if (j % 2 == 0)
                    gibbs_uniforms(seed, first_sweep + s, (uint32_t)i, (uint32_t)(j / 2), uniform);
                if (!free[i * d + j])
                    continue;
                /* u < 1 / (1 + exp(-2 f)); where exp overflows, this is false, as it should. */
                const double odds = exp(-2 * (scale * field[j] + offset[j]));
                const double spin = uniform[j % 2] * (1 + odds) < 1 ? 1 : -1;
                if (spin == row[j])
                    continue;
                row[j] = spin;
                const double change = 2 * spin;
                for (ptrdiff_t k = 0; k < d; k++)
                    field[k] += change * coupling[j * d + k];
            }
        }
    }
}
