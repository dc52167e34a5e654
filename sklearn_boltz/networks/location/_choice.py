"""What held-out rows choose: the number of classes, and the strength of their prior.

Unknown scores are filled by draws for that, and EM stops early.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from sklearn_boltz.networks.location._fit import fit_one
from sklearn_boltz.networks.location._gaussians import HALF_LOG_2PI, Scores

# Classes at most, and rows for each of them at least.
MOST_CLASSES, LEAST_ROWS = 6, 5
# The ν of which one is chosen: a cell, and these times the number of scores.
STRENGTHS = (0.0, 1.0, 4.0)
# The folds, the rows that choose at most, and the rounds of EM and the gain per row that end it.
N_FOLDS, MOST_ROWS, MAX_ROUNDS, TOL = 5, 4000, 60, 1e-3


class Choice(NamedTuple):
    """What held-out rows choose, with their mean log-likelihood, and a fit to begin with."""

    score: float
    strength: float
    n_classes: int
    one: object = None


def filled_residuals(rows, one):
    """z - B x of the most probable completion of each row, unknown scores drawn; and weights."""
    shares, _ = rows.shares(one.of_classes(rows.z), rows.x @ one.slopes.T)
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
    one = fit_one(rows, 1.0)
    residuals, weights = filled_residuals(rows, one)
    residuals, where = np.unique(residuals, axis=0, return_inverse=True)
    weights = np.bincount(where.ravel(), weights)
    order = np.random.default_rng(0).permutation(len(residuals))[:MOST_ROWS]
    fold = np.arange(len(order)) % N_FOLDS
    folds = [(order[fold != k], order[fold == k]) for k in range(N_FOLDS)]
    total, best = weights[order].sum(), Choice(-np.inf, 1.0, 1, one)

    @cache
    def first(k, n_classes):
        some, _ = folds[k]
        return first_classes(residuals[some], weights[some], n_classes).T

    def held_out(strength, n_classes):
        score = 0.0
        for k, (some, held) in enumerate(folds):
            classes = _fit(residuals[some], weights[some], first(k, n_classes), strength)
            log_p = np.logaddexp.reduce(_log_densities(residuals[held], *classes))
            score += weights[held] @ log_p
        return Choice(score / total, strength, n_classes, one)

    for strength in 1.0 + d * np.array(STRENGTHS):
        last = -np.inf
        for n_classes in range(1, min(MOST_CLASSES, len(order) // (2 * LEAST_ROWS)) + 1):
            choice = held_out(float(strength), n_classes)
            best = max(best, choice, key=lambda choice: choice.score)
            if choice.score < last:
                break
            last = choice.score
    return best


def _log_densities(z, log_weights, means, roots):
    """ln π_c N(z; m_c, Σ_c), a row for each class; `roots` are inverses of Cholesky factors."""
    found = np.empty((len(means), len(z)))
    for c, (mean, root) in enumerate(zip(means, roots, strict=True)):
        off = (z - mean) @ root.T
        found[c] = np.einsum("ij,ij->i", off, off)
    log_dets = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return (log_weights + log_dets - z.shape[1] * HALF_LOG_2PI)[:, None] - found / 2


def _fit(z, weights, first, strength):
    """Classes of rows whose scores are all known: ln of weights, means, inverse roots.

    `first` has a row for each class, as all arrays of classes here.
    """
    n_classes = len(first)
    n, mean = weights.sum(), np.average(z, axis=0, weights=weights)
    scatter = ((z - mean) * weights[:, None]).T @ (z - mean)
    scale = np.maximum(scatter.diagonal() / n, 1e-8)
    target = (scatter + strength * np.diag(scale)) / (n + strength)
    if n_classes == 1:
        return np.zeros(1), mean[None], np.linalg.inv(np.linalg.cholesky(target))[None]
    target = target / n_classes ** (2 / z.shape[1])
    shares, last = first * weights, -np.inf
    for _ in range(MAX_ROUNDS):
        n_each = shares.sum(axis=1)
        log_weights = np.log((n_each + 1) / (n + n_classes))
        means = shares @ z / np.maximum(n_each, 1e-300)[:, None]
        offs = (z - mean for mean in means)
        scatters = [(off.T * own) @ off for off, own in zip(offs, shares, strict=True)]
        covariances = (scatters + strength * target) / (n_each + strength)[:, None, None]
        roots = np.linalg.inv(np.linalg.cholesky(covariances))
        log_p = _log_densities(z, log_weights, means, roots)
        peaks = log_p.max(axis=0)
        p = np.exp(log_p - peaks)
        sums = p.sum(axis=0)
        shares, value = p * (weights / sums), weights @ (peaks + np.log(sums))
        if value - last < TOL * n:
            break
        last = value
    return log_weights, means, roots


def first_classes(residuals, weights, n_classes):
    """The class of each row to begin with, one-hot."""
    if n_classes == 1:
        return np.ones((len(residuals), 1))
    means = KMeans(n_classes, n_init=3, random_state=0)
    labels = means.fit_predict(residuals / residuals.std(axis=0).clip(1e-8), sample_weight=weights)
    return np.eye(n_classes)[labels]
