/* A step of Adam in one pass over the parameters; a template, included once for each element type:
 * REAL, SUFFIX as in units/_bernoulli_kernel.h.
 */
#include "_simd.h"
#include <math.h>

#define ADAM_LEAST ((REAL)1e-30)

#define ROOT(x) (sizeof(REAL) == sizeof(float) ? (REAL)sqrtf((float)(x)) : (REAL)sqrt((double)(x)))

SIMD_DISPATCH(void, NAME(adam_move),
              (REAL *restrict x, const REAL *restrict gradient, REAL *restrict mean,
               REAL *restrict square, ptrdiff_t n, REAL momentum, REAL decay, REAL epsilon,
               REAL rate),
              (x, gradient, mean, square, n, momentum, decay, epsilon, rate))
{
    const REAL rest = 1 - momentum, rest2 = 1 - decay;
    for (ptrdiff_t i = 0; i < n; i++) {
        const REAL g = gradient[i];
        const REAL m = momentum * mean[i] + rest * g, v = decay * square[i] + rest2 * (g * g);
        /* What decays for ever would end in denormal numbers, with which processors are slow. */
        mean[i] = m < ADAM_LEAST && m > -ADAM_LEAST ? 0 : m;
        square[i] = v < ADAM_LEAST ? 0 : v;
        x[i] += rate * m / (ROOT(v) + epsilon);
    }
}

#undef ADAM_LEAST
#undef ROOT
#undef REAL
#undef SUFFIX
