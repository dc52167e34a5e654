/* Moments and quantiles of w(x) = exp(b x - a x^2 / 2) on [low, high], for any sign of a; a
 * template, included once for each element type:
 *
 *   REAL      float or double
 *   SUFFIX    appended to the names
 *   ORDER     nodes of the quadrature
 *   CUT       the exponent of what is left out, relative to the peak
 *
 * Differences of error functions cancel where the peak lies far outside the support, so the
 * integrals are taken by quadrature. The exponent is monotone on at most two panels: from the
 * peak to both sides, or from both ends to the trough, or from one end to the other. Each is
 * cut where the exponent has fallen by CUT, and gets a Gauss-Legendre rule. All distances are
 * from the highest point of w, so that no moment cancels.
 *
 * Plain loops without branches over blocks of elements, for the compiler to vectorise.
 */
#ifndef TG_ONCE
#define TG_ONCE
enum {
    TG_BLOCK = 32,
    /* Pieces of a panel that are taken for exponentials, to guess a quantile. */
    TG_PIECES = 8,
    /* Steps from the guess; each has an error of third order. */
    TG_STEPS = 2,
    /* Nodes in one pass over a block. */
    TG_UNROLL = 4
};

/* Gauss-Legendre rules on [0, 1]. */
static const double tg_node_28[28] = {
    1.778751213022775e-3, 9.3484173145636232e-3, 2.2870359685530901e-2, 4.2183486803933963e-2,
    6.7053738712802476e-2, 9.7179314541410414e-2, 1.3219456099318411e-1, 1.7167445298056752e-1,
    2.1513976409429914e-1, 2.6206288752244087e-1, 3.1187424195546064e-1, 3.6396918618241096e-1,
    4.1771535893330961e-1, 4.7246035505798286e-1, 5.2753964494201714e-1, 5.8228464106669039e-1,
    6.3603081381758904e-1, 6.8812575804453936e-1, 7.3793711247755913e-1, 7.8486023590570086e-1,
    8.2832554701943248e-1, 8.6780543900681589e-1, 9.0282068545858959e-1, 9.3294626128719752e-1,
    9.5781651319606604e-1, 9.771296403144691e-1, 9.9065158268543638e-1, 9.9822124878697722e-1,
};
static const double tg_weight_28[28] = {
    4.5621412965472589e-3, 1.056605629638563e-2, 1.645071389115219e-2, 2.2136467379502114e-2,
    2.7553672837858373e-2, 3.2636461983499798e-2, 3.732310711728439e-2, 4.1556708614450609e-2,
    4.528587219651642e-2, 4.8465328998964958e-2, 5.1056483789030385e-2, 5.3027882961423209e-2,
    5.4355596129147068e-2, 5.5023506508237598e-2, 5.5023506508237598e-2, 5.4355596129147068e-2,
    5.3027882961423209e-2, 5.1056483789030385e-2, 4.8465328998964958e-2, 4.528587219651642e-2,
    4.1556708614450609e-2, 3.732310711728439e-2, 3.2636461983499798e-2, 2.7553672837858373e-2,
    2.2136467379502114e-2, 1.645071389115219e-2, 1.056605629638563e-2, 4.5621412965472589e-3,
};
static const double tg_node_16[16] = {
    5.2995325041750337e-3, 2.7712488463383712e-2, 6.7184398806084128e-2, 1.2229779582249848e-1,
    1.9106187779867813e-1, 2.7099161117138631e-1, 3.5919822461037054e-1, 4.5249374508118128e-1,
    5.4750625491881872e-1, 6.4080177538962946e-1, 7.2900838882861369e-1, 8.0893812220132187e-1,
    8.7770220417750152e-1, 9.3281560119391587e-1, 9.7228751153661629e-1, 9.9470046749582497e-1,
};
static const double tg_weight_16[16] = {
    1.3576229705877047e-2, 3.1126761969323946e-2, 4.7579255841246392e-2, 6.2314485627766936e-2,
    7.4797994408288366e-2, 8.4578259697501269e-2, 9.1301707522461794e-2, 9.4725305227534248e-2,
    9.4725305227534248e-2, 9.1301707522461794e-2, 8.4578259697501269e-2, 7.4797994408288366e-2,
    6.2314485627766936e-2, 4.7579255841246392e-2, 3.1126761969323946e-2, 1.3576229705877047e-2,
};

static inline float tg_sqrt_f32(float x) { return sqrtf(x); }
static inline double tg_sqrt_f64(double x) { return sqrt(x); }
static inline float tg_log_f32(float x) { return logf(x); }
static inline double tg_log_f64(double x) { return log(x); }
#endif

#define TG_TABLE(name) JOIN(JOIN(name, _), ORDER)

/* Where w is highest, and two panels. On the way from its start, t in [0, 1] of its length in
 * its direction, the exponent falls by linear t + square t^2, and starts at -depth. */
typedef struct {
    REAL peak[TG_BLOCK];
    struct NAME(tg_panel) {
        REAL start[TG_BLOCK], length[TG_BLOCK], linear[TG_BLOCK], square[TG_BLOCK], depth[TG_BLOCK];
    } panel[2];
} NAME(tg_panels);

/* Length of a panel: where slope t + a t^2 / 2 is CUT, but at most `reach`. */
SIMD_INLINE REAL NAME(tg_length)(REAL slope, REAL a, REAL reach)
{
    const REAL discriminant = slope * slope + 2 * CUT * a;
    const REAL root = NAME(tg_sqrt)(discriminant > 0 ? discriminant : 0);
    const REAL length = 2 * CUT / (slope + root);
    return ((discriminant > 0) & (length < reach)) ? length : reach;
}

SIMD_INLINE void NAME(tg_split)(const REAL *restrict b, const REAL *restrict a, REAL low,
                                REAL high, NAME(tg_panels) *restrict out, ptrdiff_t n)
{
    const REAL width = high - low;
    for (ptrdiff_t i = 0; i < n; i++) {
        const REAL rise = b[i] - a[i] * low, fall = a[i] * high - b[i];
        const int inside = (rise > 0) & (fall > 0), trough = (rise < 0) & (fall < 0);
        const int falling = rise < fall;
        REAL still = b[i] / a[i];
        still = still > low ? still : low;
        still = still < high ? still : high;
        const REAL peak = inside ? still : falling ? low : high;
        const REAL other = inside ? still : falling ? high : low;
        const REAL end = inside ? high : trough ? still : other;
        const REAL other_end = inside ? low : trough ? still : other;
        const REAL slope = inside ? 0 : falling ? -rise : -fall;
        const REAL other_slope = trough ? (falling ? -fall : -rise) : 0;
        const REAL to_right = end >= peak ? 1 : -1, from_right = other_end >= other ? 1 : -1;
        const REAL reach = NAME(tg_length)(slope, a[i], to_right * (end - peak));
        const REAL other_reach =
            NAME(tg_length)(other_slope, a[i], from_right * (other_end - other));
        out->peak[i] = peak;
        out->panel[0].start[i] = peak;
        out->panel[0].length[i] = to_right * reach;
        out->panel[0].linear[i] = slope * reach;
        out->panel[0].square[i] = (REAL)0.5 * a[i] * reach * reach;
        out->panel[0].depth[i] = 0;
        out->panel[1].start[i] = other;
        out->panel[1].length[i] = from_right * other_reach;
        out->panel[1].linear[i] = other_slope * other_reach;
        out->panel[1].square[i] = (REAL)0.5 * a[i] * other_reach * other_reach;
        const REAL depth = (REAL)0.5 * width * (falling ? fall - rise : rise - fall);
        out->panel[1].depth[i] = trough ? depth : 0;
    }
}

/* The integrals of e^-(linear t + square t^2 + depth) t^k over [0, 1], k < n_moments. */
SIMD_INLINE void NAME(tg_integrate)(const REAL *restrict linear, const REAL *restrict square,
                                    const REAL *restrict depth, REAL (*restrict integral)[TG_BLOCK],
                                    const int n_moments)
{
    for (int m = 0; m < n_moments; m++)
        for (int i = 0; i < TG_BLOCK; i++)
            integral[m][i] = 0;
    for (int k = 0; k < ORDER; k += TG_UNROLL)
        for (int i = 0; i < TG_BLOCK; i++) {
            REAL sum[3] = {0, 0, 0};
#pragma GCC unroll 4
            for (int u = k; u < k + TG_UNROLL; u++) {
                const REAL t = (REAL)TG_TABLE(tg_node)[u];
                const REAL fallen = (square[i] * t + linear[i]) * t + depth[i];
                const REAL density = (REAL)TG_TABLE(tg_weight)[u] * NAME(simd_exp)(-fallen);
                sum[0] += density;
                sum[1] += density * t;
                sum[2] += density * (t * t);
            }
            integral[0][i] += sum[0];
            if (n_moments == 3) {
                integral[1][i] += sum[1];
                integral[2][i] += sum[2];
            }
        }
}

/* Whether the second panels of a block are of any length. */
SIMD_INLINE int NAME(tg_has_second)(const NAME(tg_panels) *panels)
{
    for (int i = 0; i < TG_BLOCK; i++)
        if (panels->panel[1].length[i] != 0)
            return 1;
    return 0;
}

/* The logarithm of the integral, the mean and the variance, for one block. */
SIMD_DISPATCH(void, NAME(tg_moments),
              (const REAL *restrict b, const REAL *restrict a, REAL low, REAL high,
               REAL *restrict log_partition, REAL *restrict mean, REAL *restrict variance),
              (b, a, low, high, log_partition, mean, variance))
{
    NAME(tg_panels) panels;
    REAL moment[3][TG_BLOCK], integral[3][TG_BLOCK];
    NAME(tg_split)(b, a, low, high, &panels, TG_BLOCK);
    for (int i = 0; i < TG_BLOCK; i++)
        moment[0][i] = moment[1][i] = moment[2][i] = 0;
    for (int p = 0; p < 1 + NAME(tg_has_second)(&panels); p++) {
        const struct NAME(tg_panel) *panel = &panels.panel[p];
        NAME(tg_integrate)(panel->linear, panel->square, panel->depth, integral, 3);
        for (int i = 0; i < TG_BLOCK; i++) {
            const REAL length = panel->length[i], from = panel->start[i] - panels.peak[i];
            const REAL size = length < 0 ? -length : length;
            const REAL first = length * integral[1][i];
            moment[0][i] += size * integral[0][i];
            moment[1][i] += size * (from * integral[0][i] + first);
            moment[2][i] += size * (from * from * integral[0][i] + 2 * from * first
                                    + length * length * integral[2][i]);
        }
    }
    for (int i = 0; i < TG_BLOCK; i++) {
        const REAL distance = moment[1][i] / moment[0][i];
        REAL x = panels.peak[i] + distance;
        x = x > low ? x : low;
        mean[i] = x < high ? x : high;
        variance[i] = moment[2][i] / moment[0][i] - distance * distance;
        log_partition[i] = panels.peak[i] * (b[i] - (REAL)0.5 * a[i] * panels.peak[i]);
    }
    for (int i = 0; i < TG_BLOCK; i++)
        log_partition[i] += NAME(tg_log)(moment[0][i]);
}

/* Where the integral of e^-(linear t + square t^2) from 0 is `share` of that to 1, if each
 * piece of [0, 1] had an exponential density: a guess. */
SIMD_INLINE void NAME(tg_guess)(const REAL *restrict linear, const REAL *restrict square,
                                const REAL *restrict share, REAL *restrict t)
{
    REAL mass[TG_PIECES][TG_BLOCK], drop[TG_PIECES][TG_BLOCK], total[TG_BLOCK];
    REAL rest[TG_BLOCK], steepness[TG_BLOCK];
    for (int i = 0; i < TG_BLOCK; i++)
        total[i] = 0;
    for (int k = 0; k < TG_PIECES; k++) {
        const REAL s = (REAL)k / TG_PIECES, width = (REAL)1 / TG_PIECES;
        for (int i = 0; i < TG_BLOCK; i++) {
            const REAL here = NAME(simd_exp)(-(square[i] * s + linear[i]) * s);
            const REAL step = ((2 * s + width) * square[i] + linear[i]) * width;
            const REAL ratio = NAME(simd_exp)(-step);
            const REAL chord = (1 - ratio) / (step > (REAL)1e-3 ? step : 1);
            mass[k][i] = here * (step > (REAL)1e-3 ? chord : (REAL)0.5 * (1 + ratio));
            drop[k][i] = step;
            total[i] += mass[k][i];
        }
    }
    for (int i = 0; i < TG_BLOCK; i++)
        total[i] *= share[i];
    for (int k = 0; k < TG_PIECES; k++)
        for (int i = 0; i < TG_BLOCK; i++) {
            const int found = (k == 0) | (total[i] > 0);
            t[i] = found ? k : t[i];
            rest[i] = found ? total[i] / mass[k][i] : rest[i];
            steepness[i] = found ? drop[k][i] : steepness[i];
            total[i] -= mass[k][i];
        }
    for (int i = 0; i < TG_BLOCK; i++) {
        const REAL x = rest[i] < 0 ? 0 : rest[i] > 1 ? 1 : rest[i], d = steepness[i];
        const REAL tail = 1 - x * (1 - NAME(simd_exp)(-d));
        const REAL y = d > (REAL)1e-3 ? -NAME(tg_log)(tail) / d : x;
        t[i] = (t[i] + y) / TG_PIECES;
    }
}

/* Carry the guess to the quantile: for the integral up to t, the rule on [0, t] is exact. */
SIMD_INLINE void NAME(tg_improve)(const REAL *restrict linear, const REAL *restrict square,
                                  const REAL *restrict goal, REAL *restrict t)
{
    REAL here_linear[TG_BLOCK], here_square[TG_BLOCK], zero[TG_BLOCK] = {0};
    REAL integral[1][TG_BLOCK];
    for (int i = 0; i < TG_BLOCK; i++) {
        here_linear[i] = linear[i] * t[i];
        here_square[i] = square[i] * t[i] * t[i];
    }
    NAME(tg_integrate)(here_linear, here_square, zero, integral, 1);
    for (int i = 0; i < TG_BLOCK; i++) {
        const REAL density = NAME(simd_exp)(-here_linear[i] - here_square[i]);
        const REAL newton = (t[i] * integral[0][i] - goal[i]) / density;
        const REAL bend = (REAL)0.5 * newton * (linear[i] + 2 * square[i] * t[i]);
        const REAL next = t[i] - newton / (1 + bend);
        /* The guess is so near that a larger step is noise, where there is no density. */
        const int is_small = (bend > (REAL)-0.5) & (bend < (REAL)0.5);
        const REAL within = next < 0 ? 0 : next > 1 ? 1 : next;
        t[i] = is_small ? within : t[i];
    }
}

/* x[i] where the share of the integral to the left of it is u[i], for one block. */
SIMD_DISPATCH(void, NAME(tg_quantile),
              (const REAL *restrict b, const REAL *restrict a, const REAL *restrict u, REAL low,
               REAL high, REAL *restrict x),
              (b, a, u, low, high, x))
{
    NAME(tg_panels) panels;
    REAL integral[2][TG_BLOCK] = {{0}};
    REAL start[TG_BLOCK], length[TG_BLOCK], linear[TG_BLOCK], square[TG_BLOCK];
    REAL share[TG_BLOCK], goal[TG_BLOCK], t[TG_BLOCK];
    NAME(tg_split)(b, a, low, high, &panels, TG_BLOCK);
    for (int p = 0; p < 1 + NAME(tg_has_second)(&panels); p++) {
        const struct NAME(tg_panel) *panel = &panels.panel[p];
        NAME(tg_integrate)(panel->linear, panel->square, panel->depth, &integral[p], 1);
    }
    const struct NAME(tg_panel) *one = &panels.panel[0], *two = &panels.panel[1];
    for (int i = 0; i < TG_BLOCK; i++) {
        const REAL size_one = one->length[i] < 0 ? -one->length[i] : one->length[i];
        const REAL size_two = two->length[i] < 0 ? -two->length[i] : two->length[i];
        const REAL mass_one = size_one * integral[0][i], mass_two = size_two * integral[1][i];
        /* Compares the middles of the panels. */
        const int two_left = 2 * (two->start[i] - one->start[i]) < one->length[i] - two->length[i];
        const REAL mass_left = two_left ? mass_two : mass_one;
        const REAL mass_right = two_left ? mass_one : mass_two;
        const REAL from_low = u[i] * (mass_one + mass_two);
        const int left = (from_low < mass_left) | (mass_right == 0);
        const int second = left == two_left;
        const REAL part = left ? from_low / mass_left : (from_low - mass_left) / mass_right;
        start[i] = second ? two->start[i] : one->start[i];
        length[i] = second ? two->length[i] : one->length[i];
        linear[i] = second ? two->linear[i] : one->linear[i];
        square[i] = second ? two->square[i] : one->square[i];
        const REAL clipped = part > 1 ? 1 : part;
        share[i] = length[i] < 0 ? 1 - clipped : clipped;
        /* Relative to the start of the panel. A depth beyond the range of exp() has no share. */
        const REAL rise = NAME(simd_exp)(second ? two->depth[i] : 0);
        goal[i] = share[i] * rise * (second ? integral[1][i] : integral[0][i]);
    }
    NAME(tg_guess)(linear, square, share, t);
    for (int step = 0; step < TG_STEPS; step++)
        NAME(tg_improve)(linear, square, goal, t);
    for (int i = 0; i < TG_BLOCK; i++) {
        const REAL value = start[i] + length[i] * t[i];
        const REAL above = value > low ? value : low;
        x[i] = above < high ? above : high;
    }
}

#undef TG_TABLE
#undef REAL
#undef SUFFIX
#undef ORDER
#undef CUT
