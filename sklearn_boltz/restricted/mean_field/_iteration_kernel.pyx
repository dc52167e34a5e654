"""The kernel of mean field: iterations of Bernoulli units."""

from cython cimport floating
from scipy.linalg.cython_blas cimport dgemm, sgemm

from sklearn_boltz.units._bernoulli_rows cimport check_rows


cdef extern from "restricted/mean_field/_iteration_kernel_all.h" nogil:
    double believe_f32(float*, float*, float*, const float*, const float*, const float*, float,
                       Py_ssize_t) noexcept
    double believe_f64(double*, double*, double*, const double*, const double*, const double*,
                       double, Py_ssize_t) noexcept


def iterate_bernoulli(
    const floating[:, ::1] weights, const floating[:, ::1] negative_squares,
    const floating[::1] visible_bias, const floating[::1] hidden_bias,
    const floating[:, ::1] evidence, floating[:, ::1] V, floating[:, ::1] V_variance,
    floating[:, ::1] V_field, floating[:, ::1] V_precision, floating[:, ::1] H,
    floating[:, ::1] H_variance, floating[:, ::1] H_field, floating[:, ::1] H_precision,
    floating damping, double tol, Py_ssize_t n_steps, double[::1] change,
):
    """Make iterations until some row has converged, `n_steps` at most; -> how many.

    One of them equals ::

        A = H_variance @ negative_squares
        moved = expit(H @ weights + A * (V - 0.5) + evidence + visible_bias) - V
        V += (1 - damping) * moved
        V_variance[...] = V * (1 - V)

    and then the same for `H`, without evidence. `change` is the mean square of what was added to
    the last means of a row. Fields and precisions are scratch. Without rows, `negative_squares` and
    `evidence` count as zeros.
    """
    cdef Py_ssize_t n_rows = V.shape[0], n_hidden = weights.shape[0], n_visible = weights.shape[1]
    cdef Py_ssize_t i, step = 0
    cdef bint second = negative_squares.shape[0] > 0, given = evidence.shape[0] > 0, going = True
    check_rows(n_rows, n_visible, V, visible_bias)
    check_rows(n_rows, n_visible, V_variance, visible_bias)
    check_rows(n_rows, n_visible, V_field, visible_bias)
    check_rows(n_rows, n_hidden, H, hidden_bias)
    check_rows(n_rows, n_hidden, H_variance, hidden_bias)
    check_rows(n_rows, n_hidden, H_field, hidden_bias)
    if given:
        check_rows(n_rows, n_visible, evidence, visible_bias)
    if second:
        check_rows(n_rows, n_visible, V_precision, visible_bias)
        check_rows(n_rows, n_hidden, H_precision, hidden_bias)
        check_rows(n_hidden, n_visible, negative_squares, visible_bias)
    if change.shape[0] != n_rows:
        raise ValueError("change needs an entry a row")
    if n_rows == 0:
        return n_steps
    with nogil:
        while going and step < n_steps:
            step += 1
            change[:] = 0
            _product(H, weights, False, V_field)
            if second:
                _product(H_variance, negative_squares, False, V_precision)
            _believe(V, V_variance, V_field, V_precision, evidence, visible_bias, 1 - damping,
                     second, given, change)
            _product(V, weights, True, H_field)
            if second:
                _product(V_variance, negative_squares, True, H_precision)
            _believe(H, H_variance, H_field, H_precision, evidence, hidden_bias, 1 - damping,
                     second, False, change)
            for i in range(n_rows):
                change[i] /= n_visible + n_hidden
                going = going and not change[i] < tol
    return step


cdef void _product(const floating[:, ::1] rows, const floating[:, ::1] b, bint transposed,
                   floating[:, ::1] out) noexcept nogil:
    """out = rows @ (b.T if transposed else b)"""
    cdef int n = <int>rows.shape[0], k = <int>rows.shape[1], m = <int>out.shape[1]
    cdef int stride = <int>b.shape[1]
    cdef char *form = "T" if transposed else "N"
    cdef floating one = 1, zero = 0
    if floating is float:
        sgemm(form, "N", &m, &n, &k, &one, <float *>&b[0, 0], &stride, <float *>&rows[0, 0], &k,
              &zero, &out[0, 0], &m)
    else:
        dgemm(form, "N", &m, &n, &k, &one, <double *>&b[0, 0], &stride, <double *>&rows[0, 0], &k,
              &zero, &out[0, 0], &m)


cdef void _believe(
    floating[:, ::1] mean, floating[:, ::1] variance, floating[:, ::1] field,
    const floating[:, ::1] precision, const floating[:, ::1] evidence, const floating[::1] bias,
    floating moved, bint second, bint given, double[::1] change,
) noexcept nogil:
    """New beliefs of all rows; the squares of their changes are added to `change`."""
    cdef const floating *A = NULL
    cdef const floating *outer = NULL
    for i in range(mean.shape[0]):
        if second:
            A = &precision[i, 0]
        if given:
            outer = &evidence[i, 0]
        if floating is float:
            change[i] += believe_f32(&mean[i, 0], &variance[i, 0], &field[i, 0], A, outer,
                                     &bias[0], moved, mean.shape[1])
        else:
            change[i] += believe_f64(&mean[i, 0], &variance[i, 0], &field[i, 0], A, outer,
                                     &bias[0], moved, mean.shape[1])
