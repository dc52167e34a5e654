/* Normal random numbers: quantiles of uniform ones.
 *
 * M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied
 * Statistics 37, 477-484, 1988, PPND16: quotients of polynomials in three regions, to some 16
 * digits.
 */
#include <math.h>
#include "_exp.h"
#include "_random.h"
#include "_simd.h"

/* Small, as most tables have few columns of real numbers: a block is always filled. */
#define NORMAL_BLOCK 16
#define NORMAL_FAR 1.3887943864964e-11 /* exp(-25) */

/* (c[0] + c[1] x + ... + c[7] x^7) / (1 + d[0] x + ... + d[6] x^7) */
SIMD_INLINE double normal_quotient(const double *c, const double *d, double x)
{
    double above = c[7], below = d[6];
    for (int k = 6; k >= 0; k--)
        above = above * x + c[k];
    for (int k = 5; k >= 0; k--)
        below = below * x + d[k];
    return above / (below * x + 1);
}

/* |u - 1/2| <= .425: the quantile over u - 1/2, of .425^2 - (u - 1/2)^2. */
static const double NORMAL_A[] = {
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3};
static const double NORMAL_B[] = {
    4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
    5.2264952788528545610e3};
/* Tails, of r - 1.6 with r = sqrt(-ln u) <= 5. */
static const double NORMAL_C[] = {
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4};
static const double NORMAL_D[] = {
    2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9};
/* Far tails, of r - 5. */
static const double NORMAL_E[] = {
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7};
static const double NORMAL_F[] = {
    5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15};

/* The quantiles of a block, without the far tails; -> how many are there. */
SIMD_INLINE int64_t normal_block(const double *restrict u, double *restrict z)
{
    int64_t n_far = 0;
    for (ptrdiff_t i = 0; i < NORMAL_BLOCK; i++) {
        const double q = u[i] - 0.5, tail = u[i] < 0.5 ? u[i] : 1 - u[i];
        const double r = sqrt(-simd_log_f64(tail));
        const double centre = q * normal_quotient(NORMAL_A, NORMAL_B, 0.180625 - q * q);
        const double outer = copysign(normal_quotient(NORMAL_C, NORMAL_D, r - 1.6), q);
        z[i] = fabs(q) <= 0.425 ? centre : outer;
        n_far += tail < NORMAL_FAR;
    }
    return n_far;
}

/* A row of normal numbers, as far as a block goes, from its column `first` on. */
SIMD_INLINE void normal_fill(double *restrict z, uint64_t key, uint32_t first)
{
    double u[NORMAL_BLOCK];
    for (ptrdiff_t i = 0; i < NORMAL_BLOCK; i++)
        u[i] = random_uniform_f64(key, first + (uint32_t)i);
    if (normal_block(u, z))
        for (ptrdiff_t i = 0; i < NORMAL_BLOCK; i++) {
            const double q = u[i] - 0.5, tail = q < 0 ? u[i] : 1 - u[i];
            const double r = sqrt(-simd_log_f64(tail));
            if (tail < NORMAL_FAR)
                z[i] = copysign(normal_quotient(NORMAL_E, NORMAL_F, r - 5), q);
        }
}

/* Normal numbers are quantiles of the uniform ones of 53 bits, in float32 too: those of 24 bits
 * would end at 5.4. */
SIMD_DISPATCH(void, random_normal_f32,
              (float *restrict out, ptrdiff_t n, uint64_t key),
              (out, n, key))
{
    double z[NORMAL_BLOCK];
    for (ptrdiff_t begin = 0; begin < n; begin += NORMAL_BLOCK) {
        normal_fill(z, key, (uint32_t)begin);
        for (ptrdiff_t i = 0; i < NORMAL_BLOCK && begin + i < n; i++)
            out[begin + i] = (float)z[i];
    }
}

SIMD_DISPATCH(void, random_normal_f64,
              (double *restrict out, ptrdiff_t n, uint64_t key),
              (out, n, key))
{
    double z[NORMAL_BLOCK];
    for (ptrdiff_t begin = 0; begin < n; begin += NORMAL_BLOCK) {
        normal_fill(z, key, (uint32_t)begin);
        for (ptrdiff_t i = 0; i < NORMAL_BLOCK && begin + i < n; i++)
            out[begin + i] = z[i];
    }
}
