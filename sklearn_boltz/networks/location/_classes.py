"""Several Gaussians: classes of what a regression on categories leaves of the scores.

Held-out rows choose their number, and ν: how many cells with the covariance of all rows each class
has besides its own.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from sklearn_boltz.networks.location._fit import MAX_ROUNDS, TOL, Prior, Rows, fit_one, symmetric
from sklearn_boltz.networks.location._gaussians import Gaussians, Scores

# Classes at most, and rows for each of them at least.
MOST_CLASSES, LEAST_ROWS = 6, 5
# The ν of which held-out rows choose one: a cell, and these times the number of scores. The folds,
# and the rows that choose at most.
STRENGTHS, N_FOLDS, MOST_ROWS = (0.0, 1.0, 4.0), 5, 4000


class Choice(NamedTuple):
    """What held-out rows choose, with their mean log-likelihood."""

    score: float
    strength: float
    n_classes: int


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
    residuals, weights = _filled_residuals(rows, one)
    first = _first_classes(residuals, weights, choice.n_classes)
    return fit_classes(rows, one, first, choice.strength)


def _filled_residuals(rows, one):
    """z - B x of the most probable completion of each row, unknown scores drawn; and weights."""
    shares, _ = rows.shares(one)
    order = np.lexsort((-shares[:, 0], rows.owner))
    best = order[np.diff(rows.owner[order], prepend=-1) != 0]
    at, z = rows.x[best] @ one.slopes.T, Scores(rows.z.values[best])
    return one.observed(0, z).sample(at, np.random.default_rng(0)) - at, rows.weights[best]


def choose(rows):
    """ν and the number of classes with the greatest likelihood of held-out rows."""
    d = rows.z.known.shape[1]
    if len(rows.z) <= max(2 * d, 2 * N_FOLDS):
        return Choice(-np.inf, float(d), 1)
    # One cell of the prior keeps Σ positive definite.
    residuals, weights = _filled_residuals(rows, fit_one(rows, 1.0))
    residuals, where = np.unique(residuals, axis=0, return_inverse=True)
    weights = np.bincount(where.ravel(), weights)
    order = np.random.default_rng(0).permutation(len(residuals))[:MOST_ROWS]
    fold = np.arange(len(order)) % N_FOLDS
    best, total = Choice(-np.inf, 1.0, 1), weights[order].sum()
    for per_score in STRENGTHS:
        last, strength = -np.inf, 1.0 + per_score * d
        for n_classes in range(1, min(MOST_CLASSES, len(order) // (2 * LEAST_ROWS)) + 1):
            score = 0.0
            for k in range(N_FOLDS):
                some, held = order[fold != k], order[fold == k]
                classes = _fit_complete(residuals[some], weights[some], n_classes, strength)
                score += weights[held] @ logsumexp(_log_densities(classes, residuals[held]), axis=1)
            if score / total > best.score:
                best = Choice(score / total, strength, n_classes)
            if score < last:
                break
            last = score
    return best


def _log_densities(classes, z):
    return classes.log_densities(np.zeros((len(z), 0)), Scores(z))


def _fit_complete(z, weights, n_classes, strength):
    """Classes of known residuals."""
    no_categories = np.zeros((len(z), 0))
    rows = Rows.complete(no_categories, z, weights)
    n = weights.sum()
    mean = weights @ z / n
    scatter = ((z - mean) * weights[:, None]).T @ (z - mean)
    scale = np.diag(np.maximum(scatter.diagonal() / n, 1e-8))
    covariance = symmetric((scatter + strength * scale) / (n + strength))
    one = Gaussians(np.zeros(1), mean[None], np.zeros((z.shape[1], 0)), covariance[None])
    if n_classes == 1:
        return one
    return fit_classes(rows, one, _first_classes(z, weights, n_classes), strength)


def _first_classes(residuals, weights, n_classes):
    """The class of each row to begin with, one-hot."""
    means = KMeans(n_classes, n_init=3, random_state=0)
    labels = means.fit_predict(residuals / residuals.std(axis=0).clip(1e-8), sample_weight=weights)
    return np.eye(n_classes)[labels]


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
