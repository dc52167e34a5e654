"""The network of binary columns in which all pairs have the same coupling, exactly.

Its state probabilities depend on the number K of ones and on independent columns, so that ln Z is a
sum over K, by one pass over the columns. Where many columns have a common cause, it has the
distribution of K that any pairwise network with these means has, roughly, with all its modes.
"""

import numpy as np
from scipy.optimize import minimize

# Iterations at most, and the penalty on the coupling without which there may be no maximum.
MAX_ITER, LEAST_ALPHA = 200, 1e-3
# A column that does not vary has no finite intercept.
LARGEST_MEAN = 1 - 1e-9


def shared_coupling(means, square, alpha):
    """The most likely of these networks, with a penalty.

    Parameters
    ----------
    means : ndarray of shape (d,)
        Means of the columns, of -1 and 1.
    square : float
        Mean of (Σ x_j)².
    alpha : float
        Of the penalty ½ α c² for each pair.

    Returns
    -------
    coupling : float
        c.
    intercept : ndarray of shape (d,)
    log_likelihood : float
        The mean of a row, less the penalty.
    """
    d = len(means)
    sums, target = ((2.0 * np.arange(d + 1) - d) ** 2 - d) / 2, (square - d) / 2
    ridge = max(alpha, LEAST_ALPHA) * d * (d - 1) / 2

    def loss(theta):
        # In these units, both curvatures are of the same order.
        intercept, coupling = theta[:d], theta[d] / d
        log_z, expected, p = _sum_over_columns(intercept, coupling * sums)
        value = log_z - intercept @ means - coupling * target + ridge / 2 * coupling**2
        slope = (p @ sums - target + ridge * coupling) / d
        return value, np.append(expected - means, slope)

    start = np.append(np.arctanh(np.clip(means, -LARGEST_MEAN, LARGEST_MEAN)), 0.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER})
    intercept, coupling = found.x[:d], found.x[d] / d
    more = ridge - alpha * d * (d - 1) / 2
    return coupling, intercept, more / 2 * coupling**2 - found.fun


def _sum_over_columns(intercept, potential):
    """ln Z, means and P(K) of columns with intercepts, and a potential of K, (d + 1,)."""
    d = len(intercept)
    # ln of the weight of all states of the first j columns with K ones.
    before = np.full((d + 1, d + 1), -np.inf)
    before[0, 0] = 0.0
    for j, h in enumerate(intercept):
        before[j + 1] = before[j] - h
        before[j + 1, 1:] = np.logaddexp(before[j + 1, 1:], before[j, :-1] + h)
    log_p = before[d] + potential
    log_z = np.logaddexp.reduce(log_p)
    # And of those of the last columns, given that there are K ones before these.
    after, means = potential, np.empty(d)
    for j in range(d - 1, -1, -1):
        at_one = np.append(after[1:], -np.inf) + intercept[j]
        means[j] = 2 * np.exp(np.logaddexp.reduce(before[j] + at_one) - log_z) - 1
        after = np.logaddexp(after - intercept[j], at_one)
    return log_z, means, np.exp(log_p - log_z)
