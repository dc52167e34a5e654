"""Block coordinate descent on penalised quadratic functions, over arrays of float64."""


cdef extern from "networks/sparse/_descent.h" nogil:
    double sparse_descend(const double*, const int*, const int*, const int*, const double*,
                          const double*, const double*, double*, double*, double*, Py_ssize_t,
                          double, int) noexcept


def descend(const double[::1] values, const int[::1] columns, const int[::1] rows,
            const int[::1] starts, const double[::1] l1, const double[::1] l2,
            const double[::1] curvature, double[::1] theta, double[::1] slope, double[::1] room,
            double tol, int max_sweeps):
    """Lower ``slope @ d + d @ H @ d / 2 + penalty(theta + d)`` by a change d of `theta`, in place.

    Sweep after sweep, for each block k of parameters,
    ``z = theta_k - slope_k / curvature[k]; norm = np.linalg.norm(z);
    d = max(0, 1 - l1[k] / (curvature[k] * norm)) / (1 + l2[k] / curvature[k]) * z - theta_k;
    theta_k += d; slope += H[:, k] @ d``.

    Parameters
    ----------
    values, columns, rows : ndarray
        H, symmetric, as the ``data, indices, indptr`` of a CSR matrix with int32 indices.
    starts : ndarray of int32 of shape (n_blocks + 1,)
        Where the parameters of each block start.
    l1, l2 : ndarray of shape (n_blocks,)
        The penalty ``l1 |theta_k| + l2 / 2 |theta_k|**2`` of each block.
    curvature : ndarray of shape (n_blocks,)
        Positive, and at least the largest eigenvalue of the block's part of H.
    theta, slope : ndarray of shape (n_parameters,)
        Overwritten; of the function without penalty, the slope.
    room : ndarray
        As long as the largest block.
    tol : float
        The end: no block of a sweep moves by more, times its curvature.
    max_sweeps : int

    Returns
    -------
    most : float
        The largest move of the last sweep, times the curvature.
    """
    cdef double most = 0
    if starts.shape[0] > 1:
        with nogil:
            most = sparse_descend(&values[0], &columns[0], &rows[0], &starts[0], &l1[0], &l2[0],
                                  &curvature[0], &theta[0], &slope[0], &room[0],
                                  starts.shape[0] - 1, tol, max_sweeps)
    return most
