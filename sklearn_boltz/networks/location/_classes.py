"""Several Gaussians: classes of what a regression on categories leaves of the scores.

Held-out rows choose their number, and ν: how many cells with the covariance of all rows each class
has besides its own.
"""

import numpy as np

from sklearn_boltz.networks.location._choice import choose, filled_residuals, first_classes
from sklearn_boltz.networks.location._fit import MAX_ROUNDS, TOL, Prior, fit_one, symmetric
from sklearn_boltz.networks.location._gaussians import Gaussians
from sklearn_boltz.numerics._memory import check_memory

# Matrices of scores that a fit has for each pattern of missing cells.
MATRICES = 4


def fit_best(candidates, log_slopes):
    """The Gaussians of the scores that held-out rows have the greatest likelihood by.

    Parameters
    ----------
    candidates : list of Rows
        With scores by different transforms.
    log_slopes : list of float
        What each transform adds to the mean log-likelihood.

    Returns
    -------
    place : int
        The number of the candidate.
    gaussians : Gaussians
    """
    _check_memory(candidates[0].z)
    choices = [choose(rows) for rows in candidates]
    place = int(np.argmax(np.add([choice.score for choice in choices], log_slopes)))
    return place, fit_gaussians(candidates[place], choices[place])


def _check_memory(z):
    """Refuse rows whose patterns have too many matrices."""
    n_patterns, d = z.patterns.shape
    check_memory(
        8 * MATRICES * n_patterns * d**2,
        f"{n_patterns:,} patterns of missing cells in {d} columns of numbers",
        "Use fewer rows, fill missing cells of some columns, or take numbers in bins.",
    )


def fit_gaussians(rows, choice):
    """The Gaussians of rows, as many as were chosen."""
    one = fit_one(rows, choice.strength, start=choice.one)
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
    shares = rows.shares(one.of_classes(rows.z), at)[0] * first[place]
    current = Gaussians(
        np.zeros(n_classes), np.repeat(one.intercepts, n_classes, axis=0), one.slopes,
        np.repeat(one.covariances, n_classes, axis=0),
    )  # fmt: skip
    observed = current.of_classes(rows.z)
    for _ in range(MAX_ROUNDS):
        current = _next_classes(observed, at, shares, current, prior)
        observed = current.of_classes(rows.z)
        shares, log_likelihood = rows.shares(observed, at)
        value = log_likelihood + prior.log_density(current) + current.log_weights.sum()
        if value - last < TOL * shares.sum():
            break
        last = value
    return current


def _next_classes(observed, at, shares, current, prior):
    """One round; each class has one more cell."""
    n_each = shares.sum(axis=0)
    log_weights = np.log((n_each + 1) / (n_each.sum() + len(n_each)))
    intercepts, covariances = [], []
    for c, (n, given) in enumerate(zip(n_each, observed, strict=True)):
        own, residuals = shares[:, c], given.means(at) - at
        mean = own @ residuals / max(n, 1e-300)
        off = residuals - mean
        scatter = (off * own[:, None]).T @ off + given.mean_spread(own)
        scatter = (scatter + prior.strength * prior.target) / (n + prior.strength)
        intercepts.append(mean)
        covariances.append(symmetric(scatter))
    return Gaussians(log_weights, np.array(intercepts), current.slopes, np.array(covariances))
