/* Kernels of the pseudo-likelihood of a fully visible Boltzmann machine.
 *
 * Data and fields are stored variable by variable ("columns" of n rows one after
 * another), so that every inner loop runs along the rows.
 */
#include <math.h>
#include "_exp.h"
#include "_simd.h"

#define HALF_LN2 0.34657359027997265471
#define SQRT2 1.41421356237309504880
#define BLOCK 512 /* a multiple of the lanes, in the first cache */

/* ln y for 1 <= y <= 2, less half of ln 2: 2 artanh((y - c) / (y + c)) with c = sqrt 2. */
SIMD_INLINE double fvbm_centred_log(double y)
{
    return simd_twice_artanh_f64((y - SQRT2) / (y + SQRT2));
}

#if SIMD_VECTORS
typedef simd_f64x8 fvbm_vec;
typedef float fvbm_sign __attribute__((vector_size(32), aligned(4), may_alias));
#define LANES 8
SIMD_INLINE fvbm_vec fvbm_widen(fvbm_sign s) { return __builtin_convertvector(s, fvbm_vec); }
SIMD_INLINE double fvbm_total(fvbm_vec v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
#else
typedef double fvbm_vec;
typedef float fvbm_sign;
#define LANES 1
SIMD_INLINE double fvbm_widen(float s) { return s; }
SIMD_INLINE double fvbm_total(double v) { return v; }
#endif

/* tanh(f) and ln cosh(f), elementwise. */
SIMD_INLINE void fvbm_tanh_log_cosh(const double *restrict f, double *restrict tanh_f,
                                    double *restrict log_cosh_f, ptrdiff_t size)
{
    for (ptrdiff_t i = 0; i < size; i++) {
        const double magnitude = fabs(f[i]), x = -2 * magnitude;
        const double e = simd_expm1_f64(x < -80 ? -80 : x);
        tanh_f[i] = copysign(-e / (2 + e), f[i]);
        log_cosh_f[i] = magnitude + (fvbm_centred_log(2 + e) - HALF_LN2);
    }
}

/* The tanh of d columns of n fields; returns the weighted sum of the ln cosh. The columns
 * are whole vectors. */
SIMD_DISPATCH(double, fvbm_evaluate,
              (const double *restrict fields, const double *restrict weights,
               double *restrict tanh_fields, ptrdiff_t d, ptrdiff_t n),
              (fields, weights, tanh_fields, d, n))
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

/* The sweep moves tanh(F) along with F: for a step of F by q's artanh,
 * tanh F becomes (tanh F + q) / (1 + q tanh F), without an exponential. Where q is small, so
 * is v = q tanh F, and a few terms of the geometric series are 1 / (1 + v) to half a unit in
 * the last place: 4 up to 2^-14, 8 up to 2^-7. */
SIMD_INLINE fvbm_vec fvbm_shifted(fvbm_vec t, fvbm_vec q, const int terms)
{
    const fvbm_vec v = t * q, square = v * v;
    if (terms == 0)
        return (t + q) / (1 + v);
    const fvbm_vec two = 1 - v, four = two + two * square;
    if (terms == 4)
        return (t + q) * four;
    return (t + q) * (four + four * (square * square));
}

/* A step of a coupling that is not yet applied to tanh(F): the tanh of the step, and the
 * signs with which it comes to the rows. */
typedef struct {
    const fvbm_sign *signs;
    double tanh_delta;
} fvbm_step;

/* Apply the last step of each of t_j and t_k, and return sum_i w_i (x_ik t_ij + x_ij t_ik):
 * one pass for what would be three, as memory is what limits the speed. `wxj` is w_i x_ij. */
SIMD_INLINE double fvbm_pair(fvbm_vec *tj, fvbm_vec *tk, fvbm_step step_j, fvbm_step step_k,
                             const fvbm_vec *wxj, const fvbm_vec *wxk, ptrdiff_t n,
                             const int terms)
{
    fvbm_vec sum_j = {0}, sum_k = {0};
    for (ptrdiff_t i = 0; i < n; i++) {
        tj[i] = fvbm_shifted(tj[i], fvbm_widen(step_j.signs[i]) * step_j.tanh_delta, terms);
        tk[i] = fvbm_shifted(tk[i], fvbm_widen(step_k.signs[i]) * step_k.tanh_delta, terms);
        sum_j += wxk[i] * tj[i];
        sum_k += wxj[i] * tk[i];
    }
    return fvbm_total(sum_j + sum_k);
}

/* One sweep of BSLM over weighted rows, eq. 2.4 and 2.7: b_1 .. b_d, then the m_jk in
 * lexicographic order, each with the newest values of the others. `n` counts vectors;
 * `signs` has a column of ones before those of the d variables, as if the intercepts were
 * couplings to it; `weighted` holds w_i x_ij, `moments` sum_i w_i x_ij x_ik and `means`
 * sum_i w_i x_ij; `steps` is room for 2 d numbers. */
SIMD_DISPATCH(void, fvbm_sweep,
              (const float *signs, double *tanh_fields, const double *weights,
               const double *weighted, const double *moments, const double *means,
               double *coupling, double *intercept, double *steps, ptrdiff_t d, ptrdiff_t n,
               double total, double step, double alpha),
              (signs, tanh_fields, weights, weighted, moments, means, coupling, intercept, steps,
               d, n, total, step, alpha))
{
    const fvbm_sign *ones = (const fvbm_sign *)signs;
    const fvbm_vec *w = (const fvbm_vec *)weights, *wx = (const fvbm_vec *)weighted;
    fvbm_vec *t = (fvbm_vec *)tanh_fields;
    double *last = steps, *now = steps + d;
    for (ptrdiff_t j = 0; j < d; j++) {
        fvbm_vec sum = {0};
        for (ptrdiff_t i = 0; i < n; i++)
            sum += w[i] * t[j * n + i];
        const double delta = step * (means[j] - fvbm_total(sum)) / total;
        intercept[j] += delta;
        last[j] = tanh(delta);
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        /* The last step of column k > j was that of its coupling to j - 1, or to the ones. */
        const fvbm_sign *x_last = ones + j * n;
        for (ptrdiff_t k = j + 1; k < d; k++) {
            const int first = k == j + 1;
            const fvbm_step step_j = {first ? x_last : ones + k * n, first ? last[j] : now[k - 1]};
            const fvbm_step step_k = {x_last, last[k]};
            const double largest = fmax(fabs(step_j.tanh_delta), fabs(step_k.tanh_delta));
#define FVBM_PAIR(terms) \
    fvbm_pair(t + j * n, t + k * n, step_j, step_k, wx + j * n, wx + k * n, n, terms)
            const double sum = largest < 0x1p-14  ? FVBM_PAIR(4)
                               : largest < 0x1p-7 ? FVBM_PAIR(8)
                                                  : FVBM_PAIR(0);
            const double m = coupling[j * d + k];
            const double slope = 2 * moments[j * d + k] - sum - alpha * m;
            const double delta = step * slope / (2 * total + alpha);
            coupling[j * d + k] = coupling[k * d + j] = m + delta;
            now[k] = tanh(delta);
        }
        double *swap = last;
        last = now;
        now = swap;
    }
}
