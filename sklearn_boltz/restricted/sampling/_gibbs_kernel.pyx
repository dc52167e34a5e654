"""Markov chains of an RBM of Bernoulli units, and learning from them, without the interpreter.

The random numbers come from a counter: each is a function of (seed, step, row, column), so the
result does not depend on how the rows are cut into blocks. `first_row` says where a block
starts. A layer that is sampled takes one step.

The weights are stored with the hidden units of a visible unit next to each other, so that the
few visible units that are on, in most data, pick out few rows.
"""

from cython cimport floating
from libc.stdint cimport uint64_t
from scipy.linalg.cython_blas cimport ddot, dgemm, dgemv, sdot, sgemm, sgemv


from sklearn_boltz.units._bernoulli_rows cimport (
    bernoulli_draw_f32,
    bernoulli_draw_f64,
    bernoulli_sample_f32,
    bernoulli_sample_f64,
    bernoulli_softplus_f32,
    bernoulli_softplus_f64,
    check_rows,
    mean_rows,
    random_row_key,
    sample_rows,
)
from sklearn_boltz.units._categorical_rows cimport (
    categorical_sample_f32,
    categorical_sample_f64,
    categorical_weights_f32,
    categorical_weights_f64,
)


cdef extern from "restricted/sampling/_products_all.h" nogil:
    const int SPARSE_NEAR
    int sparse_product_f32(const float *a, Py_ssize_t n_rows, Py_ssize_t n_inner,
                           const float *b, Py_ssize_t n_columns, float *out) noexcept
    int sparse_product_f64(const double *a, Py_ssize_t n_rows, Py_ssize_t n_inner,
                           const double *b, Py_ssize_t n_columns, double *out) noexcept
    int few_product_f32(const float *a, Py_ssize_t n_rows, Py_ssize_t n_inner,
                        const float *b, Py_ssize_t n_columns, float *out) noexcept
    int few_product_f64(const double *a, Py_ssize_t n_rows, Py_ssize_t n_inner,
                        const double *b, Py_ssize_t n_columns, double *out) noexcept
    int sparse_moments_f32(const float *a, Py_ssize_t stride, Py_ssize_t n_used,
                           const float *b, Py_ssize_t n_rows, Py_ssize_t n_columns,
                           float alpha, float beta, float *out) noexcept
    int sparse_moments_f64(const double *a, Py_ssize_t stride, Py_ssize_t n_used,
                           const double *b, Py_ssize_t n_rows, Py_ssize_t n_columns,
                           double alpha, double beta, double *out) noexcept


cdef enum:
    MANY_ROWS = 32


cdef void _hidden_field(const floating[:, ::1] weights, const floating[:, ::1] V,
                        floating[:, ::1] H) noexcept nogil:
    """H = V @ weights"""
    cdef int n_visible = <int>weights.shape[0], n_hidden = <int>weights.shape[1]
    cdef int n_rows = <int>V.shape[0]
    cdef floating one = 1, zero = 0
    if floating is float:
        if not sparse_product_f32(&V[0, 0], n_rows, n_visible, &weights[0, 0], n_hidden, &H[0, 0]):
            sgemm("N", "N", &n_hidden, &n_rows, &n_visible, &one, <float *>&weights[0, 0],
                  &n_hidden, <float *>&V[0, 0], &n_visible, &zero, &H[0, 0], &n_hidden)
    else:
        if not sparse_product_f64(&V[0, 0], n_rows, n_visible, &weights[0, 0], n_hidden, &H[0, 0]):
            dgemm("N", "N", &n_hidden, &n_rows, &n_visible, &one, <double *>&weights[0, 0],
                  &n_hidden, <double *>&V[0, 0], &n_visible, &zero, &H[0, 0], &n_hidden)


cdef void _visible_field(const floating[:, ::1] weights, const floating[:, ::1] H,
                         floating[:, ::1] V) noexcept nogil:
    """V = H @ weights.T"""
    cdef int n_visible = <int>weights.shape[0], n_hidden = <int>weights.shape[1]
    cdef int n_rows = <int>V.shape[0]
    cdef floating one = 1, zero = 0
    if floating is float:
        if not few_product_f32(&H[0, 0], n_rows, n_hidden, &weights[0, 0], n_visible, &V[0, 0]):
            sgemm("T", "N", &n_visible, &n_rows, &n_hidden, &one, <float *>&weights[0, 0],
                  &n_hidden, <float *>&H[0, 0], &n_hidden, &zero, &V[0, 0], &n_visible)
    else:
        if not few_product_f64(&H[0, 0], n_rows, n_hidden, &weights[0, 0], n_visible, &V[0, 0]):
            dgemm("T", "N", &n_visible, &n_rows, &n_hidden, &one, <double *>&weights[0, 0],
                  &n_hidden, <double *>&H[0, 0], &n_hidden, &zero, &V[0, 0], &n_visible)


def hidden_fields(
    const floating[:, ::1] weights, const floating[:, ::1] V, floating[:, ::1] out,
):
    """Equals ``out[...] = V @ weights``; where most of V is 0, the time is spent on the rest."""
    _check_product(weights.shape[0], weights.shape[1], V, out)
    if V.shape[0]:
        with nogil:
            _hidden_field(weights, V, out)


def visible_fields(
    const floating[:, ::1] weights, const floating[:, ::1] H, floating[:, ::1] out,
):
    """Equals ``out[...] = H @ weights.T``; few rows are faster than by BLAS."""
    _check_product(weights.shape[1], weights.shape[0], H, out)
    if H.shape[0]:
        with nogil:
            _visible_field(weights, H, out)


cdef int _check_product(Py_ssize_t n_inner, Py_ssize_t n_columns, const floating[:, ::1] rows,
                        const floating[:, ::1] out) except -1:
    if (
        rows.shape[1] != n_inner or out.shape[1] != n_columns
        or rows.shape[0] != out.shape[0] or n_inner == 0 or n_columns == 0
    ):
        raise ValueError("the shapes do not fit")
    return 0


def moments(
    const floating[:, :] a, const floating[:, ::1] b, floating alpha, floating[:, ::1] out,
    bint add,
):
    """Equals ``out[...] = alpha * a.T @ b + (out if add else 0)``, without a temporary.

    `a` may be some columns of a matrix. Where most of it is 0, the time is spent on the rest.
    """
    if (
        a.shape[0] != b.shape[0] or out.shape[0] != a.shape[1] or out.shape[1] != b.shape[1]
        or a.strides[1] != <Py_ssize_t>sizeof(floating)
    ):
        raise ValueError("the shapes do not fit")
    if b.shape[0] and a.shape[1]:
        with nogil:
            _moments(&a[0, 0], <int>(a.strides[0] // <Py_ssize_t>sizeof(floating)), b, alpha,
                     1 if add else 0, out)


cdef void _moments(const floating *a, int stride, const floating[:, ::1] b, floating alpha,
                   floating beta, floating[:, ::1] out) noexcept nogil:
    """out = alpha * a.T @ b + beta * out, with rows of `a` that are `stride` apart."""
    cdef int n = <int>out.shape[1], m = <int>out.shape[0], k = <int>b.shape[0]
    if floating is float:
        if not sparse_moments_f32(a, stride, m, &b[0, 0], k, n, alpha, beta, &out[0, 0]):
            sgemm("N", "T", &n, &m, &k, &alpha, <float *>&b[0, 0], &n,
                  <float *>a, &stride, &beta, &out[0, 0], &n)
    else:
        if not sparse_moments_f64(a, stride, m, &b[0, 0], k, n, alpha, beta, &out[0, 0]):
            dgemm("N", "T", &n, &m, &k, &alpha, <double *>&b[0, 0], &n,
                  <double *>a, &stride, &beta, &out[0, 0], &n)


def gibbs_chains(
    const floating[:, ::1] weights,
    const floating[::1] visible_bias,
    const floating[::1] hidden_bias,
    const Py_ssize_t[:, ::1] layers,
    const Py_ssize_t[:, ::1] runs,
    floating[:, ::1] V,
    floating[:, ::1] H,
    Py_ssize_t n_steps,
    bint from_hidden,
    uint64_t seed,
    uint64_t step,
    uint64_t first_row=0,
):
    """Make transitions of Markov chains, in place; -> the next step.

    Of bits, equals ::

        for k in range(n_steps):
            if k > 0 or not from_hidden:
                H[...] = u(step + 2 * k) < expit(V @ weights + hidden_bias)
            V[...] = u(step + 2 * k + 1) < expit(H @ weights.T + visible_bias)
        H[...] = expit(V @ weights + hidden_bias)

    where u(step) are the numbers of `uniform`. `layers` has a row for neighbouring visible units of
    one type, which take a step of random numbers: how many columns they have, and how many of the
    rows of `runs`, as of `categorical_sample`; 0 for bits. With categories, hidden units that are
    not drawn take no step.
    """
    check_rows(V.shape[0], weights.shape[0], V, visible_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    _check_layers(layers, runs, V.shape[1])
    if V.shape[0] == 0:
        return step + <uint64_t>n_steps * (1 + <uint64_t>layers.shape[0])
    with nogil:
        step = _move(weights, NULL, visible_bias, hidden_bias, layers, runs, V, H, n_steps,
                     from_hidden, seed, step, first_row)
    return step


cdef int _check_layers(const Py_ssize_t[:, ::1] layers, const Py_ssize_t[:, ::1] runs,
                       Py_ssize_t n_visible) except -1:
    cdef Py_ssize_t k, n_columns = 0, n_runs = 0, widths = 0
    for k in range(layers.shape[0]):
        n_columns += layers[k, 0]
        n_runs += layers[k, 1]
        widths += 0 if layers[k, 1] else layers[k, 0]
    for k in range(runs.shape[0]):
        widths += runs[k, 0] * runs[k, 1]
    if not n_columns == widths == n_visible or n_runs != runs.shape[0]:
        raise ValueError("the shapes do not fit")
    return 0


cdef uint64_t _move(
    const floating[:, ::1] weights, const floating *by_hidden, const floating[::1] visible_bias,
    const floating[::1] hidden_bias, const Py_ssize_t[:, ::1] layers,
    const Py_ssize_t[:, ::1] runs, floating[:, ::1] V, floating[:, ::1] H, Py_ssize_t n_steps,
    bint from_hidden, uint64_t seed, uint64_t step, uint64_t first_row,
) noexcept nogil:
    """`by_hidden` are the weights by hidden unit, if there are many chains."""
    cdef Py_ssize_t k
    for k in range(n_steps):
        if k > 0 or not from_hidden:
            _hidden_field(weights, V, H)
            sample_rows(H, 1, hidden_bias, seed, step, first_row)
            step += 1
        elif runs.shape[0] == 0:
            step += 1
        if by_hidden == NULL or not _sparse_product(H, by_hidden, V):
            _visible_field(weights, H, V)
        _sample_layers(V, 1, visible_bias, layers, runs, seed, step, first_row)
        step += <uint64_t>layers.shape[0]
    _hidden_field(weights, V, H)
    mean_rows(H, 1, hidden_bias)
    return step


def clamped_chains(
    const floating[:, ::1] weights,
    const floating[::1] visible_bias,
    const floating[::1] hidden_bias,
    const Py_ssize_t[:, ::1] layers,
    const Py_ssize_t[:, ::1] runs,
    floating[:, ::1] V,
    const unsigned char[:, ::1] free,
    floating[:, ::1] drawn,
    floating[:, ::1] H,
    Py_ssize_t n_steps,
    uint64_t seed,
    uint64_t step,
    uint64_t first_row=0,
):
    """Make transitions as `gibbs_chains` does, of which only cells that are `free` are kept.

    `drawn` and `H` are scratch.
    """
    cdef Py_ssize_t _, i, j
    check_rows(V.shape[0], weights.shape[0], V, visible_bias)
    check_rows(V.shape[0], weights.shape[0], drawn, visible_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    _check_layers(layers, runs, V.shape[1])
    if free.shape[0] != V.shape[0] or free.shape[1] != V.shape[1]:
        raise ValueError("the shapes do not fit")
    if V.shape[0] == 0:
        return
    with nogil:
        for _ in range(n_steps):
            _hidden_field(weights, V, H)
            sample_rows(H, 1, hidden_bias, seed, step, first_row)
            _visible_field(weights, H, drawn)
            _sample_layers(drawn, 1, visible_bias, layers, runs, seed, step + 1, first_row)
            step += 1 + <uint64_t>layers.shape[0]
            for i in range(V.shape[0]):
                for j in range(V.shape[1]):
                    if free[i, j]:
                        V[i, j] = drawn[i, j]


cdef void _sample_layers(
    floating[:, ::1] V, floating scale, const floating[::1] bias,
    const Py_ssize_t[:, ::1] layers, const Py_ssize_t[:, ::1] runs, uint64_t seed, uint64_t step,
    uint64_t first_row,
) noexcept nogil:
    """Draw visible units with fields scale * V + bias, in place."""
    cdef Py_ssize_t i, j, k, n, n_runs, start, first
    cdef uint64_t key
    for i in range(V.shape[0]):
        start = first = 0
        for k in range(layers.shape[0]):
            n, n_runs = layers[k, 0], layers[k, 1]
            key = random_row_key(seed, step + <uint64_t>k, first_row + <uint64_t>i)
            if n_runs and scale != 1:
                for j in range(start, start + n):
                    V[i, j] *= scale
            if floating is float:
                if n_runs == 0:
                    bernoulli_sample_f32(&V[i, start], scale, &bias[start], n, key)
                else:
                    categorical_weights_f32(
                        &V[i, start], &bias[start], n, &runs[first, 0], n_runs, NULL, 0)
                    categorical_sample_f32(&V[i, start], &runs[first, 0], n_runs, key)
            else:
                if n_runs == 0:
                    bernoulli_sample_f64(&V[i, start], scale, &bias[start], n, key)
                else:
                    categorical_weights_f64(
                        &V[i, start], &bias[start], n, &runs[first, 0], n_runs, NULL, 0)
                    categorical_sample_f64(&V[i, start], &runs[first, 0], n_runs, key)
            start += n
            first += n_runs


cdef int _sparse_product(const floating[:, ::1] a, const floating *b,
                         floating[:, ::1] out) noexcept nogil:
    """out = a @ b where that is quick; whether it was."""
    if floating is float:
        return sparse_product_f32(
            &a[0, 0], a.shape[0], a.shape[1], b, out.shape[1], &out[0, 0])
    else:
        return sparse_product_f64(
            &a[0, 0], a.shape[0], a.shape[1], b, out.shape[1], &out[0, 0])


def learn_rows(
    floating[:, ::1] weights, floating[::1] visible_bias, floating[::1] hidden_bias,
    const Py_ssize_t[:, ::1] layers, const Py_ssize_t[:, ::1] runs,
    floating[::1] visible_offset, floating[::1] hidden_offset, const floating[:, ::1] V,
    floating[:, ::1] chains, floating[:, ::1] H, floating[:, ::1] V_chains,
    floating[:, ::1] H_chains, floating[:, :, ::1] steps, floating[:, ::1] visible_means,
    floating[:, ::1] hidden_means, floating rate, floating alpha, floating offset_rate,
    int n_inner, Py_ssize_t n_gibbs, uint64_t seed, uint64_t step,
):
    """Learn from a mini-batch as `SDCPLearner.learn` does, with all parameters changed in place.

    `layers` and `runs` are those of `gibbs_chains`; `chains` are the hidden states of persistent
    chains, none where the chains start at the rows. Without centring, the offsets and their rate
    are 0. What follows `chains` is scratch; `steps` has room for two matrices, and the means for
    two of each. Returns the next step of the stream.
    """
    cdef bint goes_on = chains.shape[0] > 0
    cdef Py_ssize_t n_visible = weights.shape[0], n_hidden = weights.shape[1], inner
    cdef floating *by_hidden = NULL
    check_rows(V.shape[0], n_visible, V, visible_bias)
    check_rows(V.shape[0], n_hidden, H, hidden_bias)
    check_rows(H_chains.shape[0], n_visible, V_chains, visible_offset)
    check_rows(chains.shape[0] if goes_on else V.shape[0], n_hidden, H_chains, hidden_offset)
    check_rows(2, n_visible, visible_means, visible_offset)
    check_rows(2, n_hidden, hidden_means, hidden_offset)
    _check_layers(layers, runs, n_visible)
    if chains.shape[1] != n_hidden or (steps.shape[0], steps.shape[1], steps.shape[2]) != (
        2, n_visible, n_hidden
    ):
        raise ValueError("the shapes do not fit")
    # To lay the weights out anew pays for many chains, where they stay next to the processor.
    if V_chains.shape[0] >= MANY_ROWS and n_visible * n_hidden * sizeof(floating) <= SPARSE_NEAR:
        by_hidden = &steps[1, 0, 0]
    with nogil:
        _hidden_field(weights, V, H)
        mean_rows(H, 1, hidden_bias)
        _column_means(V, visible_means[0])
        _column_means(H, hidden_means[0])
        if not goes_on:
            V_chains[...] = V
        for inner in range(n_inner):
            if goes_on:
                H_chains[...] = chains
            if by_hidden != NULL:
                _transpose(weights, by_hidden)
            step = _move(weights, by_hidden, visible_bias, hidden_bias, layers, runs, V_chains,
                         H_chains, n_gibbs, goes_on, seed, step, 0)
            _column_means(V_chains, visible_means[1])
            _column_means(H_chains, hidden_means[1])
            _slide(visible_offset, visible_means[0], offset_rate)
            _slide(hidden_offset, hidden_means[0], offset_rate)
            if inner == 0:
                steps[0, :, :] = 0
                _add_gradient(V, H, rate, visible_offset, hidden_offset, visible_means[0],
                              hidden_means[0], steps[0])
            _decayed(steps[0], weights, rate * alpha, steps[1])
            _add_gradient(V_chains, H_chains, -rate, visible_offset, hidden_offset,
                          visible_means[1], hidden_means[1], steps[1])
            if goes_on:
                _draw(H_chains, chains, seed, step)
                step += 1
            _take(steps[1], weights, visible_bias, hidden_bias, visible_offset, hidden_offset,
                  visible_means, hidden_means, rate)
    return step


cdef void _column_means(const floating[:, ::1] rows, floating[::1] out) noexcept nogil:
    cdef Py_ssize_t i, j
    out[:] = 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[j] += rows[i, j]
    for j in range(rows.shape[1]):
        out[j] /= <floating>rows.shape[0]


cdef void _transpose(const floating[:, ::1] a, floating *out) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j * a.shape[0] + i] = a[i, j]


cdef void _slide(floating[::1] offset, const floating[::1] mean, floating rate) noexcept nogil:
    for j in range(offset.shape[0]):
        offset[j] += rate * (mean[j] - offset[j])


cdef void _decayed(const floating[:, ::1] ascent, const floating[:, ::1] weights, floating decay,
                   floating[:, ::1] out) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = ascent[i, j] - decay * weights[i, j]


cdef void _add_gradient(
    const floating[:, ::1] V, const floating[:, ::1] H, floating rate, const floating[::1] mu,
    const floating[::1] lam, const floating[::1] v_mean, const floating[::1] h_mean,
    floating[:, ::1] out,
) noexcept nogil:
    """out += rate * (V - mu).T @ (H - lam) / len(V), without a copy of V that has no zeros."""
    cdef Py_ssize_t i, j
    cdef floating of_lam, of_mean
    for i in range(out.shape[0]):
        of_lam, of_mean = rate * (v_mean[i] - mu[i]), rate * mu[i]
        for j in range(out.shape[1]):
            out[i, j] -= of_lam * lam[j] + of_mean * h_mean[j]
    _moments(&V[0, 0], <int>V.shape[1], H, rate / <floating>V.shape[0], 1, out)


cdef void _draw(const floating[:, ::1] p, floating[:, ::1] out, uint64_t seed,
                uint64_t step) noexcept nogil:
    cdef uint64_t key
    for i in range(out.shape[0]):
        key = random_row_key(seed, step, <uint64_t>i)
        if floating is float:
            bernoulli_draw_f32(&out[i, 0], &p[i, 0], out.shape[1], key)
        else:
            bernoulli_draw_f64(&out[i, 0], &p[i, 0], out.shape[1], key)


cdef void _take(
    const floating[:, ::1] step, floating[:, ::1] weights, floating[::1] visible_bias,
    floating[::1] hidden_bias, const floating[::1] mu, const floating[::1] lam,
    const floating[:, ::1] v_means, const floating[:, ::1] h_means, floating rate,
) noexcept nogil:
    """Add a step in centred coordinates; the means are those of the rows and of the chains."""
    cdef Py_ssize_t i, j
    cdef int n_visible = <int>step.shape[0], n_hidden = <int>step.shape[1], stride = 1
    cdef floating minus = -1, one = 1
    for i in range(n_visible):
        visible_bias[i] += rate * (v_means[0, i] - v_means[1, i])
        for j in range(n_hidden):
            weights[i, j] += step[i, j]
    for j in range(n_hidden):
        hidden_bias[j] += rate * (h_means[0, j] - h_means[1, j])
    if floating is float:
        sgemv("T", &n_hidden, &n_visible, &minus, <float *>&step[0, 0], &n_hidden,
              <float *>&lam[0], &stride, &one, &visible_bias[0], &stride)
        sgemv("N", &n_hidden, &n_visible, &minus, <float *>&step[0, 0], &n_hidden,
              <float *>&mu[0], &stride, &one, &hidden_bias[0], &stride)
    else:
        dgemv("T", &n_hidden, &n_visible, &minus, <double *>&step[0, 0], &n_hidden,
              <double *>&lam[0], &stride, &one, &visible_bias[0], &stride)
        dgemv("N", &n_hidden, &n_visible, &minus, <double *>&step[0, 0], &n_hidden,
              <double *>&mu[0], &stride, &one, &hidden_bias[0], &stride)


def anneal(
    const floating[:, ::1] weights,
    const floating[::1] base_bias,
    const floating[::1] bias_shift,
    const floating[::1] hidden_bias,
    const Py_ssize_t[:, ::1] layers,
    const Py_ssize_t[:, ::1] runs,
    const double[::1] betas,
    floating[:, ::1] V,
    floating[:, ::1] H,
    floating[::1] visible_scratch,
    floating[::1] hidden_scratch,
    double[::1] log_weights,
    uint64_t seed,
    uint64_t step,
    uint64_t first_row=0,
):
    """Carry chains along a ladder of inverse temperatures and add to their log-weights.

    With ``log_f(v, t) = v @ (base_bias + t * bias_shift) +
    np.logaddexp(0, t * (hidden_bias + v @ weights)).sum()``, each rung from s to t adds
    ``log_f(v, t) - log_f(v, s)`` and, except for the last, makes a transition at t. `layers` and
    `runs` are those of `gibbs_chains`. All that follows `V`, which is changed in place, but
    `log_weights` is scratch.
    """
    cdef Py_ssize_t k, j, n_rungs = betas.shape[0] - 1
    cdef floating beta
    check_rows(V.shape[0], weights.shape[0], V, base_bias)
    check_rows(V.shape[0], weights.shape[0], V, bias_shift)
    check_rows(V.shape[0], weights.shape[0], V, visible_scratch)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_scratch)
    _check_layers(layers, runs, V.shape[1])
    if log_weights.shape[0] != V.shape[0]:
        raise ValueError("log_weights has the wrong length")
    if V.shape[0] == 0:
        return
    with nogil:
        for k in range(n_rungs):
            _hidden_field(weights, V, H)
            _add_log_ratio(bias_shift, hidden_bias, betas[k], betas[k + 1], V, H, log_weights)
            if k == n_rungs - 1:
                break
            beta = <floating>betas[k + 1]
            for j in range(hidden_bias.shape[0]):
                hidden_scratch[j] = beta * hidden_bias[j]
            for j in range(base_bias.shape[0]):
                visible_scratch[j] = base_bias[j] + beta * bias_shift[j]
            sample_rows(H, beta, hidden_scratch, seed, step, first_row)
            _visible_field(weights, H, V)
            _sample_layers(V, beta, visible_scratch, layers, runs, seed, step + 1, first_row)
            step += 1 + <uint64_t>layers.shape[0]


cdef void _add_log_ratio(
    const floating[::1] bias_shift, const floating[::1] hidden_bias, double low, double high,
    floating[:, ::1] V, floating[:, ::1] H, double[::1] log_weights,
) noexcept nogil:
    """log_weights += log_f(V, high) - log_f(V, low), H the hidden field without its bias."""
    cdef int n = <int>V.shape[1], one = 1
    for i in range(V.shape[0]):
        if floating is float:
            log_weights[i] += (high - low) * sdot(
                &n, &V[i, 0], &one, <float *>&bias_shift[0], &one)
            log_weights[i] += bernoulli_softplus_f32(
                &H[i, 0], &hidden_bias[0], H.shape[1], <float>low, <float>high)
        else:
            log_weights[i] += (high - low) * ddot(
                &n, &V[i, 0], &one, <double *>&bias_shift[0], &one)
            log_weights[i] += bernoulli_softplus_f64(
                &H[i, 0], &hidden_bias[0], H.shape[1], low, high)


def log_densities(
    const floating[:, ::1] weights,
    const floating[::1] visible_bias,
    const floating[::1] hidden_bias,
    floating[:, ::1] V,
    floating[:, ::1] H,
    double[::1] out,
):
    """Equals ``out[...] = V @ visible_bias + np.logaddexp(0, V @ weights + hidden_bias).sum(1)``.

    `H` is scratch.
    """
    check_rows(V.shape[0], weights.shape[0], V, visible_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    if out.shape[0] != V.shape[0]:
        raise ValueError("out has the wrong length")
    if V.shape[0] == 0:
        return
    with nogil:
        for i in range(V.shape[0]):
            out[i] = hidden_bias.shape[0] * 0.6931471805599453  # ln 2 for each hidden unit
        _hidden_field(weights, V, H)
        _add_log_ratio(visible_bias, hidden_bias, 0, 1, V, H, out)
