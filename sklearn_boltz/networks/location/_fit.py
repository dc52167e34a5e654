"""Fit one Gaussian: a ridge regression of scores on categories.

Unknown scores and categories are completed by EM. Priors are conjugate: N(0, Σ/λ) for each column
of B, and ν cells with a covariance T for Σ. So each round raises the log-likelihood less the
penalties. λ follows from the rows, as the one that makes them most probable.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, dia_array
from scipy.special import logsumexp

from sklearn_boltz.networks.location._gaussians import Gaussians, Scores

# Rounds of EM at most, those in which λ is estimated, also from another fit, and the gain per row
# that ends them.
MAX_ROUNDS, TUNED_ROUNDS, AGAIN_ROUNDS, TOL = 200, 10, 3, 1e-4
# λ at most, per row: with this, no category matters.
MOST_RIDGE = 1e6
# The share of the greatest eigenvalue, below which one is 0.
RANK_TOL = 1e-13
# Entries of a part of a matrix that is not sparse.
CHUNK = 2**22


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

    def shares(self, observed, at):
        """How much each completion counts by each class, and the log-likelihood of all rows.

        `observed` are the known scores by each class, and `at` is B x.
        """
        log_p = np.column_stack([given.log_densities(at) for given in observed])
        log_p += self.log_prior[:, None]
        own = logsumexp(log_p, axis=1)
        first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        n_each = np.diff(np.append(first, len(own)))
        of_row = log_sums(own, first, n_each)
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


def log_sums(log_p, first, n_each):
    """ln Σ exp of numbers that stand in groups, one after another."""
    peaks = np.maximum.reduceat(log_p, first)
    return peaks + np.log(np.add.reduceat(np.exp(log_p - np.repeat(peaks, n_each)), first))


def _variances(rows):
    """Variances of the known scores, 1 where there is but one."""
    known, w = rows.z.known, rows.weights[:, None]
    n = (known * w).sum(axis=0)
    z = np.where(known, rows.z.values, 0.0)
    mean = (z * w).sum(axis=0) / np.maximum(n, 1e-300)
    variance = (known * w * (z - mean) ** 2).sum(axis=0) / np.maximum(n, 1e-300)
    return np.where(variance > 1e-8, variance, 1.0)


def fit_one(rows, strength, path=None, *, ridge=None, start=None):
    """One Gaussian by EM, with ν cells of independent scores, and λ if that is given.

    `path` gets the penalised log-likelihood of each round, after λ is known. `start` is the fit
    with another ν.
    """
    scale, levels = _variances(rows), Levels(rows.x, rows.owner)
    d, n_columns = rows.z.known.shape[1], rows.x.shape[1]
    current = start or Gaussians(
        np.zeros(1), np.zeros((1, d)), np.zeros((d, n_columns)), np.diag(scale)[None]
    )
    n_tuned = (TUNED_ROUNDS if start is None else AGAIN_ROUNDS) if ridge is None else 0
    at = levels.times(current.slopes.T)
    prior, last = Prior(1.0 if ridge is None else ridge, strength, np.diag(scale)), -np.inf
    for n_rounds in range(MAX_ROUNDS):
        given = current.observed(0, rows.z)
        shares, log_likelihood = rows.shares([given], at)
        is_tuned = n_rounds >= n_tuned
        value = log_likelihood + prior.log_density(current)
        if is_tuned and path is not None:
            path.append(value)
        if is_tuned and value - last < TOL * shares.sum():
            break
        last = value if is_tuned else -np.inf
        completed = given.means(at), given.mean_spread(shares[:, 0])
        state = shares[:, 0], current, prior, is_tuned
        current, prior, at = _regress(levels, *completed, *state)
    return current


def _regress(x, z, spread, shares, current, prior, is_tuned):
    """One round: a regression of the completed scores, with λ from the last one; and B x."""
    n = shares.sum()
    mean_x, mean_z = x.sums(shares) / n, shares @ z / n
    moment = x.second_moments(shares) - n * np.outer(mean_x, mean_x)
    cross = x.sums(shares[:, None] * (z - mean_z))
    eigenvalues, vectors = np.linalg.eigh(moment)
    eigenvalues = np.maximum(eigenvalues, 0)
    ridge = prior.ridge
    if not is_tuned:
        ridge = _evidence(eigenvalues, current, ridge, n)
    strengths = eigenvalues + ridge
    known = strengths > RANK_TOL * strengths.max(initial=0)
    slopes = ((vectors[:, known] / strengths[known]) @ (vectors.T[known] @ cross)).T
    at = x.times(slopes.T)
    residuals = z - at + (slopes @ mean_x - mean_z)
    scatter = (residuals * shares[:, None]).T @ residuals + spread
    scatter += ridge * slopes @ slopes.T + prior.strength * prior.target
    covariance = symmetric(scatter / (n + prior.strength))
    intercept = mean_z - slopes @ mean_x
    found = Gaussians(np.zeros(1), intercept[None], slopes, covariance[None])
    return found, prior._replace(ridge=ridge), at


def _evidence(eigenvalues, current, ridge, n):
    """λ that explains the slopes, with their errors; as it was where there are none yet."""
    slopes = current.slopes
    size = (slopes * np.linalg.solve(current.covariances[0], slopes)).sum()
    if size == 0:
        return ridge
    n_determined = (eigenvalues / (eigenvalues + ridge)).sum()
    return float(np.clip(len(slopes) * n_determined / size, 1e-3, MOST_RIDGE * n))


def symmetric(matrix):
    """The same to the bit as its transpose."""
    return (matrix + matrix.T) / 2


class Levels:
    """One-hot categories x of completions: what all those of a row share, and the rest.

    Most cells are observed, so that sums over completions are sums over rows and over few cells.

    Parameters
    ----------
    x : csr_array of shape (n, Q)
    owner : ndarray of int of shape (n,)
        Which row of the table it is; equal ones stand one after another.
    """

    def __init__(self, x, owner):
        self.shape = x.shape
        self._first = np.flatnonzero(np.diff(owner, prepend=-1))
        n_each = np.diff(np.append(self._first, len(owner)))
        self._place = np.repeat(np.arange(len(n_each)), n_each)
        counts = self._by_row(x)
        # An entry is shared if all completions have it.
        shared = counts.data == np.repeat(n_each, np.diff(counts.indptr))
        counts.data = shared.astype(np.float64)
        counts.eliminate_zeros()
        self._shared = counts
        self._rest = csr_array(x - counts[self._place])
        self._rest.eliminate_zeros()

    def _by_row(self, x):
        """Sums over the completions of each row, sparse."""
        ends = np.append(self._first, x.shape[0])
        sums = csr_array((np.ones(x.shape[0]), np.arange(x.shape[0]), ends)) @ x
        sums.sum_duplicates()
        return sums

    def times(self, matrix):
        """x M."""
        return (self._shared @ matrix)[self._place] + self._rest @ matrix

    def sums(self, values):
        """xᵀ V."""
        return self._shared.T @ np.add.reduceat(values, self._first) + self._rest.T @ values

    def second_moments(self, weights):
        """xᵀ w x; matrices of numbers, some rows at a time, are faster than sparse ones."""
        rest = dia_array((weights[None], 0), shape=(len(weights),) * 2) @ self._rest
        total = (self._rest.T @ rest).toarray()
        of_rows, rest = np.add.reduceat(weights, self._first), self._by_row(csr_array(rest))
        step = max(1, CHUNK // max(self.shape[1], 1))
        for start in range(0, len(of_rows), step):
            part = slice(start, start + step)
            shared, own = self._shared[part].toarray(), rest[part].toarray()
            mixed = shared.T @ own
            total += (shared * of_rows[part, None]).T @ shared + mixed + mixed.T
        return total
