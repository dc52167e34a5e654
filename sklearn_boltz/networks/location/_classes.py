"""Several Gaussians: classes of what a regression on categories leaves of the scores.

Held-out rows choose their number, and ν: how many cells with the covariance of all rows each class
has besides its own.
"""

import numpy as np

from sklearn_boltz.networks.location._choice import choose, filled_residuals, first_classes
from sklearn_boltz.networks.location._fit import MAX_ROUNDS, TOL, Prior, fit_one, symmetric
from sklearn_boltz.networks.location._gaussians import Gaussians


def fit_best(candidates):
    """The Gaussians of the scores that held-out rows have the greatest likelihood by.

    Parameters
    ----------
    candidates : list of (Rows, float)
        Rows with some scores, and what the transform adds to their mean log-likelihood.

    Returns
    -------
    place : int
        The number of the candidate.
    gaussians : Gaussians
    """
    choices = [choose(rows) for rows, _ in candidates]
    totals = [
        choice.score + log_slope for choice, (_, log_slope) in zip(choices, candidates, strict=True)
    ]
    place = int(np.argmax(totals))
    return place, fit_gaussians(candidates[place][0], choices[place])


def fit_gaussians(rows, choice):
    """The Gaussians of rows, as many as were chosen."""
    one = fit_one(rows, choice.strength)
    if choice.n_classes == 1:
        return one
    residuals, weights = filled_residuals(rows, one)
    first = first_classes(residuals, weights, choice.n_classes)
    return fit_classes(rows, one, first, choice.strength)


def fit_classes(rows, one, first, strength):
    """Classes with their own means and covariances, and the slopes of one Gaussian, by EM.

    Parameters
    ----------
    rows : Rows
    one : Gaussians
        A single one, which is also where scores are unknown in the first round.
    first : ndarray of float64 of shape (n_rows, n_classes)
        The class of each row of the table in the first round.
    strength : float
        ν, of cells with the covariance of `one`, for each class smaller as there are more.
    """
    n_classes, d = first.shape[1], rows.z.known.shape[1]
    prior = Prior(0.0, strength, one.covariances[0] / n_classes ** (2 / d))
    at, last = rows.x @ one.slopes.T, -np.inf
    place = np.cumsum(np.diff(rows.owner, prepend=-1) != 0) - 1
    shares = rows.shares(one)[0] * first[place]
    current = Gaussians(
        np.zeros(n_classes), np.repeat(one.intercepts, n_classes, axis=0), one.slopes,
        np.repeat(one.covariances, n_classes, axis=0),
    )  # fmt: skip
    for _ in range(MAX_ROUNDS):
        current = _next_classes(rows.z, at, shares, current, prior)
        shares, log_likelihood = rows.shares(current)
        value = log_likelihood + prior.log_density(current) + current.log_weights.sum()
        if value - last < TOL * shares.sum():
            break
        last = value
    return current


def _next_classes(z, at, shares, current, prior):
    """One round; each class has one more cell."""
    n_each = shares.sum(axis=0)
    log_weights = np.log((n_each + 1) / (n_each.sum() + len(n_each)))
    intercepts, covariances = [], []
    for c, n in enumerate(n_each):
        given = current.observed(c, z)
        own, residuals = shares[:, c], given.means(at) - at
        mean = own @ residuals / max(n, 1e-300)
        off = residuals - mean
        scatter = (off * own[:, None]).T @ off + given.mean_spread(own)
        scatter = (scatter + prior.strength * prior.target) / (n + prior.strength)
        intercepts.append(mean)
        covariances.append(symmetric(scatter))
    return Gaussians(log_weights, np.array(intercepts), current.slopes, np.array(covariances))
