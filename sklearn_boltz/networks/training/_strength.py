"""The strength of the l2 penalty from the data: the variance of the couplings, as of a prior.

The penalty ½ λ Σ_{j<k} m_jk² of the sum over rows is a normal prior of variance s with λ = c/s. The
factor c makes up for what a pseudo-likelihood counts twice: independent columns have c = 2.

A penalised estimate has m_jk = h/(h + λ) times the estimate without, to second order, with h the
information on m_jk. So Σ m_jk² is expected to be s Σ (h/(h + λ))² + Σ J/(h + λ)², with J the
variance of the score, and s is what makes it so (Efron and Morris, Journal of the American
Statistical Association 68(341), 117–130, 1973). h and J are those of two columns by themselves:
where columns are nearly independent they are right, and only there s is small.

The s where that begins is also the largest: one by which all other columns together move the field
of a column with a variance of 1. Larger ones, which few rows suggest where they separate columns,
made the model of other rows worse.

All this is of binary columns. Of others, `features` estimates a variance for each pair.
"""

import numpy as np

from sklearn_boltz.networks.training._fit import near_maximum

# Of the information on a coupling and of the variance of its score, in independent columns.
DOUBLE = 2.0
# With fewer columns there are too few couplings to estimate their variance.
MIN_COLUMNS = 3
# α, at most. Then couplings are less than a tenth of what they are without a penalty.
MAX_ALPHA = 20.0
# Estimates of s, each of another fit.
N_ESTIMATES = 2
# Nats, by which an iteration of these fits raises the objective at its end.
TOL = 1e-3


def least_strength(n_values):
    """The least λ, where the other columns together move each column with a variance of 1.

    For d binary columns with m_jk of variance 1/(d - 1). A column of q values counts 2 (1 - 1/q)
    times: that is its variance, in ratio to a binary one.
    """
    return DOUBLE * max(len(n_values) - 1, 1) * float(np.mean(2 * (1 - 1 / n_values)))


def next_strength(couplings, information, products, strength, least, most):
    """The λ by the variance that the couplings at another λ suggest.

    Parameters
    ----------
    couplings, information, products : ndarray of shape (n_pairs,)
        m, h and J.
    strength : float
        λ.
    least, most : float
        Bounds of the result.
    """
    shrunk = 1 / (information + strength) ** 2
    noise = products @ shrunk
    variance = (couplings @ couplings - noise) / (information**2 @ shrunk)
    factor = noise / (information @ shrunk)
    # Not factor / variance, which may be infinite or negative.
    return max(least, factor / max(variance, factor / most)) if factor > 0 else least


def choose_strength(task, method, initial):
    """Choose the strength of the penalty, and fit with about that.

    Parameters
    ----------
    task : Task
        Its penalty is changed.
    method : Method
        How each of the fits is made.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.

    Returns
    -------
    alpha : float
        λ per row.
    initial : (ndarray, ndarray)
        Where the fit may begin.
    """
    problem = task.problem
    n_values, total = problem.n_values, problem.total
    if len(n_values) < 2:
        return 0.0, initial
    least = least_strength(n_values)
    most, strength, last = max(MAX_ALPHA * total, least), least, None
    n_estimates = N_ESTIMATES if len(n_values) >= MIN_COLUMNS else 0
    for _ in range(max(n_estimates, 1)):
        problem.set_alpha(strength / total)
        initial, last = near_maximum(task, initial, method, TOL), strength
        if n_estimates:
            curvature = problem.pair_curvature(task.initial(*initial))
            strength = next_strength(*curvature, strength, least, most)
        if strength == last:
            break
    problem.set_alpha(strength / total)
    return strength / total, initial
