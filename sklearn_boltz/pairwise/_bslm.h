/* Kernels of the pseudo-likelihood of a fully visible Boltzmann machine.
 *
 * Data and fields are stored variable by variable ("columns" of n rows one after
 * another), so that every inner loop runs along the rows.
 */
#include <math.h>
#include "_simd.h"

#define LN2_HI 6.93147180369123816490e-01 /* with 20 zero bits at its end */
#define LN2_LO 1.90821492927058770002e-10
#define HALF_LN2 0.34657359027997265471
#define SQRT2 1.41421356237309504880
#define BLOCK 512 /* a multiple of the lanes, in the first cache */
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

/* e^x - 1 for -80 <= x <= 0: Taylor's series after x = n ln 2 + r. Without branches, so
 * that a loop over it vectorises; the low bits of n + ROUNDER are those of n. */
SIMD_INLINE double fvbm_expm1(double x)
{
    union { double value; uint64_t bits; } shifted, power;
    shifted.value = x * 1.44269504088896340736 + ROUNDER;
    power.bits = (shifted.bits << 52) + ((uint64_t)1023 << 52);
    const double n = shifted.value - ROUNDER, r = (x - n * LN2_HI) - n * LN2_LO;
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
    p = p * r + 0.5;
    p = p * (r * r) + r;
    return power.value * p + (power.value - 1);
}

/* ln y for 1 <= y <= 2, less half of ln 2: 2 artanh((y - c) / (y + c)) with c = sqrt 2. */
SIMD_INLINE double fvbm_centred_log(double y)
{
    const double s = (y - SQRT2) / (y + SQRT2), z = s * s;
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

#if SIMD_VECTORS
typedef simd_f64x8 fvbm_vec;
#define LANES 8
SIMD_INLINE double fvbm_total(fvbm_vec v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
#else
typedef double fvbm_vec;
#define LANES 1
SIMD_INLINE double fvbm_total(double v) { return v; }
#endif

/* tanh(f) and ln cosh(f), elementwise. */
SIMD_INLINE void fvbm_tanh_log_cosh(const double *restrict f, double *restrict tanh_f,
                                    double *restrict log_cosh_f, ptrdiff_t size)
{
    for (ptrdiff_t i = 0; i < size; i++) {
        const double magnitude = fabs(f[i]), x = -2 * magnitude;
        const double e = fvbm_expm1(x < -80 ? -80 : x);
        tanh_f[i] = copysign(-e / (2 + e), f[i]);
        log_cosh_f[i] = magnitude + (fvbm_centred_log(2 + e) - HALF_LN2);
    }
}

/* The tanh of d columns of n fields; returns the weighted sum of the ln cosh. The columns
 * are whole vectors. */
SIMD_DISPATCH
double fvbm_evaluate(const double *restrict fields, const double *restrict weights,
                     double *restrict tanh_fields, ptrdiff_t d, ptrdiff_t n)
{
    double log_cosh[BLOCK];
    double total = 0;
    for (ptrdiff_t j = 0; j < d; j++)
        for (ptrdiff_t begin = 0; begin < n; begin += BLOCK) {
            const ptrdiff_t place = j * n + begin, size = n - begin < BLOCK ? n - begin : BLOCK;
            fvbm_tanh_log_cosh(fields + place, tanh_fields + place, log_cosh, size);
            fvbm_vec sum = {0};
            for (ptrdiff_t i = 0; i < size; i += LANES)
                sum += *(const fvbm_vec *)(log_cosh + i) * *(const fvbm_vec *)(weights + begin + i);
            total += fvbm_total(sum);
        }
    return total;
}

/* Fields of rows: out[i] = b + x[i] M, each row by the same operations in the same order. */
SIMD_DISPATCH
void fvbm_fields(const double *restrict x, const double *restrict coupling,
                 const double *restrict intercept, double *restrict out, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = out + i * d;
        for (ptrdiff_t k = 0; k < d; k++)
            row[k] = intercept[k];
        for (ptrdiff_t j = 0; j < d; j++) {
            const double x_ij = x[i * d + j];
            for (ptrdiff_t k = 0; k < d; k++)
                row[k] += x_ij * coupling[j * d + k];
        }
    }
}

/* The sweep holds u = x tanh(F) instead of tanh(F). A step by delta moves the field of a
 * row by ±delta, and tanh(F + delta) = (tanh F + T) / (1 + T tanh F) with T = tanh(delta):
 * no exponential. Where T is small, so is v = u q, and 1 / (1 + v) is a short product. */
SIMD_INLINE fvbm_vec fvbm_shifted(fvbm_vec u, fvbm_vec q, const int small)
{
    const fvbm_vec v = u * q, square = v * v;
    return small ? (u + q) * (1 - v) * (1 + square) : (u + q) / (1 + v);
}

/* Move the field of column j by delta, and with it u_j. */
SIMD_INLINE void fvbm_move_one(const fvbm_vec *x, fvbm_vec *u, double tanh_delta,
                               ptrdiff_t n, const int small)
{
    for (ptrdiff_t i = 0; i < n; i++)
        u[i] = fvbm_shifted(u[i], x[i] * tanh_delta, small);
}

/* Move m_jk by delta: the field of column j by delta x_k, that of column k by delta x_j. */
SIMD_INLINE void fvbm_move_two(const fvbm_vec *xj, const fvbm_vec *xk, fvbm_vec *uj, fvbm_vec *uk,
                               double tanh_delta, ptrdiff_t n, const int small)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const fvbm_vec q = xj[i] * xk[i] * tanh_delta;
        uj[i] = fvbm_shifted(uj[i], q, small);
        uk[i] = fvbm_shifted(uk[i], q, small);
    }
}

/* v^4 is then below half a unit in the last place. */
#define SMALL 0x1p-14

/* One sweep of BSLM over weighted rows, eq. 2.4 and 2.7: b_1 .. b_d, then the m_jk in
 * lexicographic order, each with the newest values of the others. `n` counts vectors;
 * `moments` holds sum_i w_i x_ij x_ik, and `means` sum_i w_i x_ij. */
SIMD_DISPATCH
void fvbm_sweep(const double *spins, double *products, const double *weights,
                const double *moments, const double *means, double *coupling, double *intercept,
                ptrdiff_t d, ptrdiff_t n, double total, double step, double alpha)
{
    const fvbm_vec *x = (const fvbm_vec *)spins, *w = (const fvbm_vec *)weights;
    fvbm_vec *u = (fvbm_vec *)products;
    for (ptrdiff_t j = 0; j < d; j++) {
        const fvbm_vec *xj = x + j * n;
        fvbm_vec *uj = u + j * n, sum = w[0] * 0;
        for (ptrdiff_t i = 0; i < n; i++)
            sum += w[i] * xj[i] * uj[i];
        const double delta = step * (means[j] - fvbm_total(sum)) / total;
        intercept[j] += delta;
        if (fabs(delta) < SMALL)
            fvbm_move_one(xj, uj, tanh(delta), n, 1);
        else
            fvbm_move_one(xj, uj, tanh(delta), n, 0);
    }
    for (ptrdiff_t j = 0; j < d; j++)
        for (ptrdiff_t k = j + 1; k < d; k++) {
            const fvbm_vec *xj = x + j * n, *xk = x + k * n;
            fvbm_vec *uj = u + j * n, *uk = u + k * n, sum = w[0] * 0;
            for (ptrdiff_t i = 0; i < n; i++)
                sum += w[i] * xj[i] * xk[i] * (uj[i] + uk[i]);
            const double m = coupling[j * d + k];
            const double slope = 2 * moments[j * d + k] - fvbm_total(sum) - alpha * m;
            const double delta = step * slope / (2 * total + alpha);
            coupling[j * d + k] = coupling[k * d + j] = m + delta;
            if (fabs(delta) < SMALL)
                fvbm_move_two(xj, xk, uj, uk, tanh(delta), n, 1);
            else
                fvbm_move_two(xj, xk, uj, uk, tanh(delta), n, 0);
        }
}
