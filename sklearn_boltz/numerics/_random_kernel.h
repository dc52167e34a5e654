/* Arrays of random numbers, a row at a time. */
#include "_normal.h"
#include "_random.h"
#include "_simd.h"

SIMD_DISPATCH(void, random_fill_f32,
              (float *out, ptrdiff_t n, uint64_t key),
              (out, n, key))
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] = random_uniform_f32(key, (uint32_t)j);
}

SIMD_DISPATCH(void, random_fill_f64,
              (double *out, ptrdiff_t n, uint64_t key),
              (out, n, key))
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] = random_uniform_f64(key, (uint32_t)j);
}
