/* The random numbers of all kernels: functions of (seed, step, row, column), without a state, so
 * that they are the same however the work is cut into blocks and threads. A step is one use of
 * a whole array of numbers.
 *
 * A row has a key of 64 bits. A column hashes it to 32 bits, and for float64 to 32 more. The
 * loop over columns multiplies 32 bits only, which any instruction set does in registers;
 * products of 64 bits have to be put together before AVX-512DQ.
 *
 * The tests are in tests/test_random.py, more of them in the developer guide.
 */
#ifndef SKLEARN_BOLTZ_RANDOM_H
#define SKLEARN_BOLTZ_RANDOM_H
#include <stdint.h>

/* The finaliser of SplitMix64, a bijection of 64 bits: Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014, with the constants of Stafford's variant 13.
 * The increment is 2^64 over the golden ratio, odd. */
static inline uint64_t random_mix64(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The key of a row of random numbers. Compilers take what does not depend on the row out of
 * the loop over rows. */
static inline uint64_t random_row_key(uint64_t seed, uint64_t step, uint64_t row)
{
    return random_mix64(random_mix64(random_mix64(seed) ^ step) ^ row);
}

/* What both words of a column begin with: a first round on the column and half of the key.
 * The factor, 2^32 over the golden ratio, spreads neighbouring columns far apart. */
static inline uint32_t random_begin(uint64_t key, uint32_t column)
{
    uint32_t x = column * UINT32_C(0x9e3779b9) + (uint32_t)key;
    x ^= x >> 17;
    x *= UINT32_C(0xed5ad4bb);
    return x ^ (x >> 11);
}

/* The upper 32 bits. With random_begin, this is the hash triple32 of Wellons ("Prospecting for
 * hash functions", 2018, github.com/skeeto/hash-prospector), and the other half of the key is
 * added inside, so that rows which begin alike go apart. */
static inline uint32_t random_upper(uint64_t key, uint32_t begin)
{
    uint32_t x = begin + (uint32_t)(key >> 32);
    x *= UINT32_C(0xac4c1b51);
    x ^= x >> 15;
    x *= UINT32_C(0x31848bab);
    return x ^ (x >> 14);
}

/* The lower 32 bits: the two rounds of lowbias32, of the same source and in its improved form.
 * The key's third part makes them unknown where the upper bits are known. */
static inline uint32_t random_lower(uint64_t key, uint32_t begin)
{
    uint32_t x = begin ^ (uint32_t)((key * UINT64_C(0xd1342543de82ef95)) >> 32);
    x *= UINT32_C(0x21f0aaad);
    x ^= x >> 15;
    x *= UINT32_C(0xd35a2d97);
    return x ^ (x >> 15);
}

/* Uniform on (0, 1): n / 2^24 for n of 24 bits, and n / 2^53 for n of 53 bits, whose upper 24
 * are the same; except for n = 0, half a unit, since 0 has no logarithm. So u < p has just the
 * probability p where p is a multiple of the unit, as all floats from 1/2 are, and what has
 * probability 1 happens. Midpoints would do the same for small p, but those from 1/2 have one
 * bit too many, and would all be rounded to even. */
static inline float random_uniform_f32(uint64_t key, uint32_t column)
{
    const uint32_t upper = random_upper(key, random_begin(key, column));
    const float n = (float)(int32_t)(upper >> 8);
    return (n > 0.5f ? n : 0.5f) * 0x1p-24f;
}

static inline double random_uniform_f64(uint64_t key, uint32_t column)
{
    const uint32_t begin = random_begin(key, column);
    const uint32_t upper = random_upper(key, begin), lower = random_lower(key, begin);
    /* 27 and 26 bits: vectors of signed integers are converted in one instruction. */
    const double n = (double)(int32_t)(upper >> 5) * 0x1p26 + (double)(int32_t)(lower >> 6);
    return (n > 0.5 ? n : 0.5) * 0x1p-53;
}

/* The first 27 bits n of the same number u: n / 2^27 <= u <= n / 2^27 + RANDOM_REST. Nearly
 * always they tell on which side of a given number u is, without the second word. */
#define RANDOM_REST (0x1p-27 - 0x1p-53)
static inline int32_t random_first_bits(uint64_t key, uint32_t column)
{
    return (int32_t)(random_upper(key, random_begin(key, column)) >> 5);
}
#endif
