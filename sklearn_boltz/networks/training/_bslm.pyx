"""The sweep of BSLM, and tanh and ln cosh of the fields, over arrays of float64."""


cdef extern from "networks/training/_bslm.h" nogil:
    const int LANES
    double fvbm_evaluate(const double*, const double*, double*, Py_ssize_t, Py_ssize_t) noexcept
    void fvbm_sweep(const float*, double*, const double*, const double*, const double*,
                    const double*, double*, double*, double*, Py_ssize_t, Py_ssize_t, double,
                    double, double) noexcept


# The number of rows that the kernels are given must be a multiple of this.
N_LANES = LANES


def evaluate_fields(const double[:, ::1] fields, const double[::1] weights,
                    double[:, ::1] tanh_fields):
    """Fill ``tanh_fields = np.tanh(fields)``; return ``(np.log(np.cosh(fields)) @ weights).sum()``.

    Good to a few units in the last place. The arrays have the shapes (d, n), (n,) and (d, n);
    n is a multiple of `N_LANES`.
    """
    cdef double total = 0
    if fields.shape[0] and fields.shape[1]:
        with nogil:
            total = fvbm_evaluate(&fields[0, 0], &weights[0], &tanh_fields[0, 0],
                                  fields.shape[0], fields.shape[1])
    return total


def bslm_sweep(const float[:, ::1] signs, double[:, ::1] tanh_fields,
               const double[::1] weights, const double[:, ::1] weighted,
               const double[:, ::1] moments, const double[::1] means,
               double[:, ::1] coupling, double[::1] intercept, double[:, ::1] steps,
               double total, double step, double alpha):
    """One sweep in place: all ``intercept``, then the ``coupling`` in lexicographic order.

    With ``spins = signs[1:]`` and ``t = np.tanh(coupling @ spins + intercept[:, None])``, that is
    ``intercept[j] += step / total * (weights @ (spins[j] - t[j]))`` for each j, then for each
    j < k, added to both ``coupling[j, k]`` and ``coupling[k, j]``, ``step / (2 * total + alpha)
    * (weights @ (2 * spins[j] * spins[k] - spins[k] * t[j] - spins[j] * t[k])
    - alpha * coupling[j, k])``.

    Parameters
    ----------
    signs : ndarray of float32 of shape (d + 1, n)
        A row of 1, then the ±1 of the variables; n is a multiple of `N_LANES`.
    tanh_fields : ndarray of shape (d, n)
        ``t`` at the parameters given; overwritten.
    weights : ndarray of shape (n,)
    weighted : ndarray of shape (d, n)
        ``spins * weights``
    moments : ndarray of shape (d, d)
        ``spins * weights @ spins.T``
    means : ndarray of shape (d,)
        ``spins @ weights``
    coupling, intercept : ndarray of shape (d, d) and (d,)
    steps : ndarray of shape (2, d)
        Overwritten.
    total, step, alpha : float
        Sum of the weights, the factor on the steps, and the penalty.
    """
    cdef Py_ssize_t d = tanh_fields.shape[0], n = tanh_fields.shape[1] // LANES
    if d and n:
        with nogil:
            fvbm_sweep(&signs[0, 0], &tanh_fields[0, 0], &weights[0], &weighted[0, 0],
                       &moments[0, 0], &means[0], &coupling[0, 0], &intercept[0], &steps[0, 0],
                       d, n, total, step, alpha)
