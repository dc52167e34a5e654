/* Random numbers as functions of (seed, step, row, column): no state, the same numbers however
 * the work is cut into blocks and threads. A step is one use of a whole array of numbers.
 */
#ifndef SKLEARN_BOLTZ_RANDOM_H
#define SKLEARN_BOLTZ_RANDOM_H
#include <stdint.h>

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64 bits. */
static inline uint64_t random_mix64(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The key of a row of random numbers. */
static inline uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row)
{
    return random_mix64(random_mix64(random_mix64(seed) ^ step) ^ row);
}

/* 32 random bits for a column of a row: a bijective hash of 32 bits of Wellons's triple32
 * family for the lower half of the key, with the upper half added inside. */
static inline uint32_t random_bits(uint64_t key, uint32_t column)
{
    uint32_t x = column * UINT32_C(0x9e3779b9) + (uint32_t)key;
    x ^= x >> 17;
    x *= UINT32_C(0xed5ad4bb);
    x ^= x >> 11;
    x += (uint32_t)(key >> 32);
    x *= UINT32_C(0xac4c1b51);
    x ^= x >> 15;
    x *= UINT32_C(0x31848bab);
    return x ^ (x >> 14);
}

/* Uniform on (0, 1): the midpoints of 2^24 and of 2^31 intervals, in float as they are rounded,
 * but never to 1: what has probability 1 must happen. */
static inline float random_uniform_f32(uint64_t key, uint32_t column)
{
    const float u = ((float)(int32_t)(random_bits(key, column) >> 8) + 0.5f) * 0x1p-24f;
    return u < 1 ? u : 0x1.fffffep-1f;
}

static inline double random_uniform_f64(uint64_t key, uint32_t column)
{
    return ((double)(int32_t)(random_bits(key, column) >> 1) + 0.5) * 0x1p-31;
}
#endif
