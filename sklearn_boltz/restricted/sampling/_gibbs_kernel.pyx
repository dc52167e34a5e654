"""Markov chains of an RBM of Bernoulli units, for a block of rows, without the interpreter.

The random numbers come from a counter: each is a function of (seed, step, row, column), so the
result does not depend on how the rows are cut into blocks. `first_row` says where a block
starts. A layer that is sampled takes one step.

The weights are stored with the hidden units of a visible unit next to each other, so that the
few visible units that are on, in most data, pick out few rows.
"""

from cython cimport floating
from libc.stdint cimport uint64_t
from scipy.linalg.cython_blas cimport ddot, dgemm, sdot, sgemm


from sklearn_boltz.units._bernoulli_rows cimport (
    bernoulli_softplus_f32,
    bernoulli_softplus_f64,
    check_rows,
    mean_rows,
    sample_rows,
)


cdef extern from "restricted/sampling/_products_all.h" nogil:
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
    cdef int n = <int>b.shape[1], m = <int>a.shape[1], k = <int>b.shape[0]
    cdef int stride = <int>(a.strides[0] // <Py_ssize_t>sizeof(floating))
    cdef floating beta = 1 if add else 0
    if (
        a.shape[0] != k or out.shape[0] != m or out.shape[1] != n
        or a.strides[1] != <Py_ssize_t>sizeof(floating)
    ):
        raise ValueError("the shapes do not fit")
    if k == 0 or m == 0:
        return
    with nogil:
        if floating is float:
            if not sparse_moments_f32(
                &a[0, 0], stride, m, &b[0, 0], k, n, alpha, beta, &out[0, 0]
            ):
                sgemm("N", "T", &n, &m, &k, &alpha, <float *>&b[0, 0], &n,
                      <float *>&a[0, 0], &stride, &beta, &out[0, 0], &n)
        else:
            if not sparse_moments_f64(
                &a[0, 0], stride, m, &b[0, 0], k, n, alpha, beta, &out[0, 0]
            ):
                dgemm("N", "T", &n, &m, &k, &alpha, <double *>&b[0, 0], &n,
                      <double *>&a[0, 0], &stride, &beta, &out[0, 0], &n)


def gibbs_chains(
    const floating[:, ::1] weights,
    const floating[::1] visible_bias,
    const floating[::1] hidden_bias,
    floating[:, ::1] V,
    floating[:, ::1] H,
    Py_ssize_t n_steps,
    bint from_hidden,
    uint64_t seed,
    uint64_t step,
    uint64_t first_row=0,
):
    """Make transitions of Markov chains, in place.

    Equals ::

        for k in range(n_steps):
            if k > 0 or not from_hidden:
                H[...] = u(step + 2 * k) < expit(V @ weights + hidden_bias)
            V[...] = u(step + 2 * k + 1) < expit(H @ weights.T + visible_bias)
        H[...] = expit(V @ weights + hidden_bias)

    where u(step) are the numbers of `uniform`.
    """
    cdef uint64_t k
    check_rows(V.shape[0], weights.shape[0], V, visible_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    if V.shape[0] == 0:
        return
    with nogil:
        for k in range(<uint64_t>n_steps):
            if k > 0 or not from_hidden:
                _hidden_field(weights, V, H)
                sample_rows(H, 1, hidden_bias, seed, step + 2 * k, first_row)
            _visible_field(weights, H, V)
            sample_rows(V, 1, visible_bias, seed, step + 2 * k + 1, first_row)
        _hidden_field(weights, V, H)
        mean_rows(H, 1, hidden_bias)


def anneal(
    const floating[:, ::1] weights,
    const floating[::1] base_bias,
    const floating[::1] bias_shift,
    const floating[::1] hidden_bias,
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
    ``log_f(v, t) - log_f(v, s)`` and, but for the last, makes a transition at t. All but
    `log_weights` and `V` that is changed in place is scratch.
    """
    cdef Py_ssize_t k, j, n_rungs = betas.shape[0] - 1
    check_rows(V.shape[0], weights.shape[0], V, base_bias)
    check_rows(V.shape[0], weights.shape[0], V, bias_shift)
    check_rows(V.shape[0], weights.shape[0], V, visible_scratch)
    check_rows(V.shape[0], weights.shape[1], H, hidden_bias)
    check_rows(V.shape[0], weights.shape[1], H, hidden_scratch)
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
            for j in range(hidden_bias.shape[0]):
                hidden_scratch[j] = <floating>betas[k + 1] * hidden_bias[j]
            for j in range(base_bias.shape[0]):
                visible_scratch[j] = base_bias[j] + <floating>betas[k + 1] * bias_shift[j]
            sample_rows(H, <floating>betas[k + 1], hidden_scratch, seed, step + 2 * k, first_row)
            _visible_field(weights, H, V)
            sample_rows(
                V, <floating>betas[k + 1], visible_scratch, seed, step + 2 * k + 1, first_row
            )


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
