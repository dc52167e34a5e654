"""Fit the Gaussians: ridge regression of scores on categories, then classes of what is left.

Unknown scores and categories are completed by EM. Priors are conjugate: N(0, Σ/λ) for each column
of B, and ν cells with a covariance T for each Σ_c. So each round raises the log-likelihood less
the penalties. λ follows from the rows (the evidence), ν and the number of classes from held-out
rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from sklearn_boltz.networks.location._gaussians import Gaussians, Scores

# Rounds of EM at most, those in which λ is estimated, and the gain per row that ends them.
MAX_ROUNDS, TUNED_ROUNDS, TOL = 200, 10, 1e-4
# Classes at most; the ν of which held-out rows choose one, by cells for each score; the folds.
MOST_CLASSES, STRENGTHS, N_FOLDS = 6, (0.0, 1.0, 4.0), 5
# Rows that choose, at most, and the rows for each class and score below which there is but one.
MOST_ROWS = 4000
# λ at most, per row: with this, no category matters.
MOST_RIDGE = 1e6


class Rows(NamedTuple):
    """Completed rows: all that an incomplete row may be, each with its own weight.

    Attributes
    ----------
    x : csr_array of shape (n, Q)
        One-hot categories.
    z : Scores
        Not known are those that are missing, or do not exist.
    weights : ndarray of float64 of shape (n,)
        How often the row of the table counts.
    owner : ndarray of int of shape (n,)
        Which row of the table it is; equal ones stand one after another.
    log_prior : ndarray of float64 of shape (n,)
        ln p of the completion given the categories of its row.
    """

    x: object
    z: Scores
    weights: np.ndarray
    owner: np.ndarray
    log_prior: np.ndarray

    @classmethod
    def complete(cls, x, z, weights):
        """Rows without unknown categories."""
        return cls(x, Scores(z), weights, np.arange(len(z)), np.zeros(len(z)))

    def shares(self, gaussians):
        """How much each completion counts by each class, and the log-likelihood of all rows."""
        log_p = gaussians.log_densities(self.x, self.z) + self.log_prior[:, None]
        own = logsumexp(log_p, axis=1)
        first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        peaks = np.maximum.reduceat(own, first)
        n_each = np.diff(np.append(first, len(own)))
        sums = np.add.reduceat(np.exp(own - np.repeat(peaks, n_each)), first)
        of_row = peaks + np.log(sums)
        shares = np.exp(log_p - np.repeat(of_row, n_each)[:, None]) * self.weights[:, None]
        return shares, float(self.weights[first] @ of_row)


class Prior(NamedTuple):
    """Strengths of the penalties.

    Attributes
    ----------
    ridge : float
        λ.
    strength : float
        ν.
    target : ndarray of float64 of shape (n_scores, n_scores)
        T.
    """

    ridge: float
    strength: float
    target: np.ndarray

    def log_density(self, gaussians):
        """What the penalties add to the log-likelihood."""
        total = 0.0
        for covariance in gaussians.covariances:
            _, log_det = np.linalg.slogdet(covariance)
            trace = np.trace(np.linalg.solve(covariance, self.target))
            total -= 0.5 * self.strength * (log_det + trace)
        if gaussians.n_classes == 1 and self.ridge > 0:
            slopes, covariance = gaussians.slopes, gaussians.covariances[0]
            _, log_det = np.linalg.slogdet(covariance)
            total -= 0.5 * self.ridge * (slopes * np.linalg.solve(covariance, slopes)).sum()
        return total


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


def _variances(rows):
    """Variances of the known scores, 1 where there is but one."""
    known, w = rows.z.known, rows.weights[:, None]
    n = (known * w).sum(axis=0)
    z = np.where(known, rows.z.values, 0.0)
    mean = (z * w).sum(axis=0) / np.maximum(n, 1e-300)
    variance = (known * w * (z - mean) ** 2).sum(axis=0) / np.maximum(n, 1e-300)
    return np.where(variance > 1e-8, variance, 1.0)


def fit_one(rows, strength, path=None):
    """One Gaussian by EM, with ν cells of independent scores.

    `path` gets the penalised log-likelihood of each round, after λ is known.
    """
    scale = _variances(rows)
    d, n_columns = rows.z.known.shape[1], rows.x.shape[1]
    current = Gaussians(
        np.zeros(1), np.zeros((1, d)), np.zeros((d, n_columns)), np.diag(scale)[None]
    )
    prior, last = Prior(1.0, strength, np.diag(scale)), -np.inf
    for n_rounds in range(MAX_ROUNDS):
        shares, log_likelihood = rows.shares(current)
        is_tuned = n_rounds >= TUNED_ROUNDS
        value = log_likelihood + prior.log_density(current)
        if is_tuned and path is not None:
            path.append(value)
        if is_tuned and value - last < TOL * shares.sum():
            break
        last = value if is_tuned else -np.inf
        current, prior = _regress(rows, shares[:, 0], current, prior, is_tuned)
    return current


def _regress(rows, shares, current, prior, is_tuned):
    """One round: a regression of the completed scores, and λ from the last one."""
    given = current.observed(0, rows.z)
    z = given.means(rows.x @ current.slopes.T)
    n, x = shares.sum(), rows.x
    mean_x, mean_z = x.T @ shares / n, shares @ z / n
    moment = (x.T @ (x * shares[:, None])).toarray() - n * np.outer(mean_x, mean_x)
    cross = x.T @ (shares[:, None] * (z - mean_z))
    eigenvalues, vectors = np.linalg.eigh(moment)
    eigenvalues = np.maximum(eigenvalues, 0)
    ridge = prior.ridge
    if not is_tuned:
        ridge = _evidence(eigenvalues, current, ridge, n)
    slopes = ((vectors / (eigenvalues + ridge)) @ (vectors.T @ cross)).T
    residuals = z - mean_z - x @ slopes.T + slopes @ mean_x
    scatter = (residuals * shares[:, None]).T @ residuals + given.mean_spread(shares)
    scatter += ridge * slopes @ slopes.T + prior.strength * prior.target
    covariance = _symmetric(scatter / (n + prior.strength))
    intercept = mean_z - slopes @ mean_x
    return Gaussians(np.zeros(1), intercept[None], slopes, covariance[None]), prior._replace(
        ridge=ridge
    )


def _evidence(eigenvalues, current, ridge, n):
    """λ that explains the slopes, with their errors; as it was where there are none yet."""
    slopes = current.slopes
    size = (slopes * np.linalg.solve(current.covariances[0], slopes)).sum()
    if size == 0:
        return ridge
    n_determined = (eigenvalues / (eigenvalues + ridge)).sum()
    return float(np.clip(len(slopes) * n_determined / size, 1e-3, MOST_RIDGE * n))


def _symmetric(matrix):
    return (matrix + matrix.T) / 2


def _filled_residuals(rows, one):
    """z - B x of the most probable completion of each row, unknown scores drawn; and weights."""
    shares, _ = rows.shares(one)
    order = np.lexsort((-shares[:, 0], rows.owner))
    best = order[np.diff(rows.owner[order], prepend=-1) != 0]
    at, z = rows.x[best] @ one.slopes.T, Scores(rows.z.values[best])
    return one.observed(0, z).sample(at, np.random.default_rng(0)) - at, rows.weights[best]


# Classes.


def choose(rows):
    """ν and the number of classes with the greatest likelihood of held-out rows."""
    d = rows.z.known.shape[1]
    if rows.weights.sum() <= 2 * d:
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
        for n_classes in range(1, MOST_CLASSES + 1):
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
    covariance = _symmetric((scatter + strength * scale) / (n + strength))
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
        covariances.append(_symmetric(scatter))
    return Gaussians(log_weights, np.array(intercepts), current.slopes, np.array(covariances))
