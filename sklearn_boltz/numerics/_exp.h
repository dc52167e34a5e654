/* The exponential function and the logarithm for loops that the compiler is to vectorise: without
 * branches, and without calls to the C library, which are not vectorised without -ffast-math.
 */
#ifndef SKLEARN_BOLTZ_EXP_H
#define SKLEARN_BOLTZ_EXP_H

#include <string.h>
#include "_simd.h"

/* exp for |x| < 87, to 2 units in the last place: x = n ln 2 + r with |r| < ln 2 / 2, and
 * a Taylor polynomial in r. Adding and subtracting 1.5 * 2^23 rounds to an integer. */
SIMD_INLINE float simd_exp_f32(float x)
{
    const float limit = 87.0f;
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const float shifted = x * 0x1.715476p+0f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)bits << 23) + 0x3f800000;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* x = n ln 2 + r; -> r and 2^n. ln 2 is the sum of two numbers, of which the first ends with
 * 20 zero bits, so that its product with n is exact. The low bits of n + 1.5 * 2^52 are n's. */
SIMD_INLINE double simd_reduce_f64(double x, double *power)
{
    const double shifted = x * 1.44269504088896340736 + 6755399441055744.0;
    const double n = shifted - 6755399441055744.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + (UINT64_C(1023) << 52);
    memcpy(power, &bits, sizeof bits);
    return (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
}

/* (e^r - 1 - r) / r^2 by Taylor's series. */
SIMD_INLINE double simd_exp_tail_f64(double r)
{
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    return p * r + 0.5;
}

/* The same for |x| < 700. */
SIMD_INLINE double simd_exp_f64(double x)
{
    const double limit = 700.0;
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    double power;
    const double r = simd_reduce_f64(x, &power);
    return power * ((simd_exp_tail_f64(r) * r + 1) * r + 1);
}

/* e^x - 1 for -80 <= x <= 0. */
SIMD_INLINE double simd_expm1_f64(double x)
{
    double power;
    const double r = simd_reduce_f64(x, &power);
    return power * (simd_exp_tail_f64(r) * (r * r) + r) + (power - 1);
}

/* 2 artanh s = ln((1 + s) / (1 - s)) for |s| < 0.172, by its series. */
SIMD_INLINE double simd_twice_artanh_f64(double s)
{
    const double z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return 2 * s + 2 * s * (p * z);
}

/* ln x for normal x > 0: x = 2^n m with sqrt(1/2) <= m < sqrt 2, and
 * ln m = 2 artanh((m - 1) / (m + 1)). */
SIMD_INLINE double simd_log_f64(double x)
{
    const uint64_t sqrt_half = UINT64_C(0x3fe6a09e667f3bcd);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t shifted = bits - sqrt_half;
    const double n = (double)(int32_t)((int64_t)shifted >> 52);
    bits = (shifted & UINT64_C(0x000fffffffffffff)) + sqrt_half;
    double m;
    memcpy(&m, &bits, sizeof m);
    return n * 0.69314718055994530942 + simd_twice_artanh_f64((m - 1) / (m + 1));
}

#endif
