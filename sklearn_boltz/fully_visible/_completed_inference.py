"""The covariance of estimates from incomplete rows, by the sandwich of the expected scores.

The estimate solves Σ_i w_i E[s_i(x; θ) | x_o; θ] = 0, s_i the score of a row's pseudo-likelihood.
Its derivative is Σ_i w_i (E[∂s_i | x_o] + Cov(s_i, t | x_o)), t the sufficient statistics, which
are the derivative of ln p(x) up to a constant.
"""

import numpy as np
from scipy.linalg import LinAlgError, lu_factor, lu_solve

from sklearn_boltz._completion import IncompleteRows, Model
from sklearn_boltz.fully_visible._objective import PseudoLikelihood
from sklearn_boltz.fully_visible._sampling import gibbs_complete

# Completions of each row, their seed, and the sweeps that lead to one where there are too many.
N_COMPLETIONS, SEED, N_STEPS = 100, 0, 200
# Entries of a temporary array.
CHUNK = 2**22


def completed_covariance(codes, weights, model, alpha):
    """A⁻¹ J A⁻ᵀ, both sums over the rows.

    Parameters
    ----------
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell; columns that vary.
    weights : ndarray of shape (n,)
    model : SpinModel
        The estimate.
    alpha : float
        Penalty per row.

    Returns
    -------
    covariance : ndarray of shape (n_parameters, n_parameters)
    """
    data = IncompleteRows(codes, weights, model.n_values)
    described = Model(
        model.log_weight,
        lambda rows, generator: gibbs_complete(model, rows, N_STEPS, generator).codes,
    )
    generator = np.random.default_rng(SEED)
    draws = np.stack(list(data.draws(described, N_COMPLETIONS, generator)))
    information, products = _expected(data, draws, model, alpha)
    try:
        factor = lu_factor(information)
    except (LinAlgError, ValueError) as error:
        raise ValueError("The information matrix is singular.") from error
    half = lu_solve(factor, products)
    covariance = lu_solve(factor, half.T)
    return (covariance + covariance.T) / 2


def _expected(data, draws, model, alpha):
    """A and J from draws of shape (m, n, d)."""
    m = len(draws)
    incomplete = (data.rows < 0).any(axis=1)
    rows = draws.reshape(-1, draws.shape[2])
    problem = PseudoLikelihood(
        np.multiply(rows.T, 2.0, order="C") - 1, np.tile(data.weights / m, m), alpha
    )
    information = problem.information(problem.at(model.coupling, model.intercept))
    products = np.zeros_like(information)
    step = max(1, CHUNK // (m * len(information)))
    for start in range(0, len(data.rows), step):
        part = slice(start, start + step)
        w = data.weights[part]
        scores, statistics = scores_of_rows(draws[:, part], model)
        mean = scores.mean(axis=0)
        products += (mean.T * w) @ mean
        lost = incomplete[part]
        if lost.any():
            root = np.sqrt(w[lost] / (m - 1))[:, None]
            ds = ((scores - mean)[:, lost] * root).reshape(-1, len(information))
            dt = statistics[:, lost] - statistics[:, lost].mean(axis=0)
            information -= ds.T @ (dt * root).reshape(-1, len(information))
            products -= ds.T @ ds / m  # what the mean of a few draws varies by
    return information, products


def scores_of_rows(codes, model):
    """Derivatives of each row's log pseudo-likelihood, and of its ln p up to a constant.

    Parameters
    ----------
    codes : ndarray of int of shape (m, n, d)
    model : SpinModel

    Returns
    -------
    scores, statistics : ndarray of shape (m, n, n_parameters)
    """
    m, n, d = codes.shape
    x = 2.0 * codes.reshape(-1, d) - 1
    residual = x - np.tanh(model.fields(codes.reshape(-1, d)))
    j, k = np.triu_indices(d, 1)
    scores = np.hstack([residual, x[:, j] * residual[:, k] + residual[:, j] * x[:, k]])
    statistics = np.hstack([x, x[:, j] * x[:, k]])
    return scores.reshape(m, n, -1), statistics.reshape(m, n, -1)
