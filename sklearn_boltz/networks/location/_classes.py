"""Several Gaussians: classes of what a regression on categories leaves of the scores.

Held-out rows choose their number, and ν: how many cells with the covariance of all rows each class
has besides its own. For that, residuals stand for the scores, unknown ones are drawn, and EM stops
early.
"""

from functools import cache

import numpy as np
from sklearn.cluster import KMeans

from sklearn_boltz.networks.location._fit import MAX_ROUNDS, TOL, Prior, fit_one, symmetric
from sklearn_boltz.networks.location._gaussians import HALF_LOG_2PI, Gaussians, Scores
from sklearn_boltz.numerics._memory import check_memory

# Classes at most, and rows for each of them at least.
MOST_CLASSES, LEAST_ROWS = 6, 5
# The ν of which one is chosen: a cell, and these times the number of scores.
STRENGTHS = (0.0, 1.0, 4.0)
# The folds, the rows that choose at most, and the rounds of EM and the gain per row that end it.
N_FOLDS, MOST_ROWS, FEW_ROUNDS, ROUGH = 5, 4000, 60, 1e-3
# Matrices of scores that a fit has for each pattern of missing cells.
MATRICES = 4


def fit_best(candidates, log_slopes):
    """The Gaussians of the scores that held-out rows have the greatest likelihood by.

    `candidates` have scores by different transforms, of which `log_slopes` are the contributions to
    the mean log-likelihood. -> the number of the candidate, and its `Gaussians`.
    """
    n_patterns, d = candidates[0].z.patterns.shape
    check_memory(
        8 * MATRICES * n_patterns * d**2,
        f"{n_patterns:,} patterns of missing cells in {d} columns of numbers",
        "Use fewer rows, fill missing cells of some columns, or take numbers in bins.",
    )
    scores, choices = zip(*map(choose, candidates), strict=True)
    place = int(np.argmax(np.add(scores, log_slopes)))
    rows, (strength, n_classes, start) = candidates[place], choices[place]
    one = fit_one(rows, strength, start=start)
    if n_classes == 1:
        return place, one
    first = first_classes(*filled_residuals(rows, one), n_classes)
    return place, fit_classes(rows, one, first, strength)


def filled_residuals(rows, one):
    """z - B x of the most probable completion of each row, unknown scores drawn; and weights."""
    shares, _ = rows.shares(one.of_classes(rows.z), rows.x @ one.slopes.T)
    best = np.lexsort((-shares[:, 0], rows.owner))[rows.first]
    at, z = rows.x[best] @ one.slopes.T, Scores(rows.z.values[best])
    return one.observed(0, z).sample(at, np.random.default_rng(0)) - at, rows.weights[best]


def choose(rows):
    """Choose the degrees of freedom and the number of classes by held-out rows.

    -> their mean log-likelihood; and ν, the number of classes and a single Gaussian, or None, where
    the fit begins.
    """
    d = rows.z.known.shape[1]
    if len(rows.z) <= max(2 * d, 2 * N_FOLDS):
        return -np.inf, (float(d), 1, None)
    # One cell of the prior keeps Σ positive definite.
    one = fit_one(rows, 1.0)
    residuals, weights = filled_residuals(rows, one)
    residuals, where = np.unique(residuals, axis=0, return_inverse=True)
    weights = np.bincount(where.ravel(), weights)
    order = np.random.default_rng(0).permutation(len(residuals))[:MOST_ROWS]
    fold, best = np.arange(len(order)) % N_FOLDS, (-np.inf, (1.0, 1, one))
    folds = [(order[fold != k], order[fold == k]) for k in range(N_FOLDS)]

    @cache
    def first(k, n_classes):
        some, _ = folds[k]
        return first_classes(residuals[some], weights[some], n_classes).T

    def held_out(strength, n_classes):
        score = 0.0
        for k, (some, held) in enumerate(folds):
            classes = _fit_complete(residuals[some], weights[some], first(k, n_classes), strength)
            score += weights[held] @ np.logaddexp.reduce(_log_densities(residuals[held], *classes))
        return score / weights[order].sum()

    for strength in 1.0 + d * np.array(STRENGTHS):
        last = -np.inf
        for n_classes in range(1, min(MOST_CLASSES, len(order) // (2 * LEAST_ROWS)) + 1):
            score = held_out(float(strength), n_classes)
            if score > best[0]:
                best = score, (float(strength), n_classes, one)
            if score < last:
                break
            last = score
    return best


def _log_densities(z, log_weights, means, roots):
    """ln π_c N(z; m_c, Σ_c), a row for each class; `roots` are inverses of Cholesky factors."""
    found = np.empty((len(means), len(z)))
    for c, (mean, root) in enumerate(zip(means, roots, strict=True)):
        off = (z - mean) @ root.T
        found[c] = np.einsum("ij,ij->i", off, off)
    log_dets = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return (log_weights + log_dets - z.shape[1] * HALF_LOG_2PI)[:, None] - found / 2


def _fit_complete(z, weights, first, strength):
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
    for _ in range(FEW_ROUNDS):
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
        if value - last < ROUGH * n:
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


def fit_classes(rows, one, first, strength):
    """Classes with their own means and covariances, and the slopes of one Gaussian, by EM.

    In the first round, the rows of the table have the classes `first`, (n_rows, n_classes), and
    unknown scores are by the single Gaussian `one`. `strength` is ν, of cells with the covariance
    of `one`, for each class smaller as there are more.
    """
    n_classes, d = first.shape[1], rows.z.known.shape[1]
    prior = Prior(0.0, strength, one.covariances[0] / n_classes ** (2 / d))
    at, last = rows.x @ one.slopes.T, -np.inf
    shares = rows.shares(one.of_classes(rows.z), at)[0] * first[rows.place]
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
