"""Fit one Gaussian: a ridge regression of scores on categories.

Unknown scores and categories are completed by EM. Priors are conjugate: N(0, Σ/λ) for each column
of B, and ν cells with a covariance T for Σ. So each round raises the log-likelihood less the
penalties. λ follows from the rows, as the one that makes them most probable.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, dia_array
from scipy.special import logsumexp

from sklearn_boltz.missing._completion import all_completions, log_sums
from sklearn_boltz.networks.location._gaussians import Gaussians, Scores, symmetric
from sklearn_boltz.numerics._threads import slices_of_rows

# Rounds of EM at most, those in which λ is estimated, also from another fit, and the gain per row
# that ends them.
MAX_ROUNDS, TUNED_ROUNDS, AGAIN_ROUNDS, TOL = 200, 10, 3, 1e-4
# Completions of a row that are enumerated at most; the draws that take their place, the sweeps that
# lead to each, and their seed: a fit is deterministic. With more, the likelihood of held-out rows
# was no greater.
MOST_COMPLETIONS, N_DRAWS, N_STEPS, SEED = 32, 10, 100, 0
# λ at most, per row: with this, no category matters.
MOST_RIDGE = 1e6
# The share of the greatest eigenvalue, below which one is 0.
RANK_TOL = 1e-13
# Entries of a part of a matrix that is not sparse.
CHUNK = 2**19


class ScoredRows:
    """Completed rows: all that an incomplete row may be, each with its own weight.

    Parameters
    ----------
    x : csr_array of shape (n, Q)
        One-hot categories.
    z : Scores
        Not known are those that are missing, or do not exist.
    weights : ndarray of float64 of shape (n,)
        How often the row of the table counts.
    owner : ndarray of int of shape (n,), default=None
        Which row of the table it is; equal ones stand one after another. None if all are complete.
    log_prior : ndarray of float64 of shape (n,), default=None
        ln p of the completion given the categories of its row, up to a number for each row; None
        for 0.

    Attributes
    ----------
    first : ndarray of int of shape (n_rows,)
        The first completion of each row.
    place : ndarray of int of shape (n,)
        The number of the row of each completion.
    """

    def __init__(self, x, z, weights, owner=None, log_prior=None):
        self.x, self.z, self.weights = x, z, weights
        self.owner = np.arange(len(z)) if owner is None else owner
        self.log_prior = np.zeros(len(z)) if log_prior is None else log_prior
        self.first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        self._n_each = np.diff(np.append(self.first, len(z)))
        self.place = np.repeat(np.arange(len(self.first)), self._n_each)

    def shares(self, observed, at):
        """How much each completion counts by each class, and the log-likelihood of all rows.

        `observed` are the known scores by each class, and `at` is B x.
        """
        log_p = np.column_stack([given.log_densities(at) for given in observed])
        log_p += self.log_prior[:, None]
        of_row = log_sums(logsumexp(log_p, axis=1), self._n_each)
        shares = np.exp(log_p - of_row[self.place, None]) * self.weights[:, None]
        return shares, float(self.weights[self.first] @ of_row)

    # Sums over the categories. Most cells are observed, so that sums over completions are sums over
    # rows, and over few cells.

    @cached_property
    def _parts(self):
        """Part of x that all completions of a row share, a line for each row, and the rest."""
        counts = self._by_row(self.x)
        # An entry is shared if all completions have it.
        shared = counts.data == np.repeat(self._n_each, np.diff(counts.indptr))
        counts.data = shared.astype(np.float64)
        counts.eliminate_zeros()
        rest = csr_array(self.x - counts[self.place])
        rest.eliminate_zeros()
        return counts, rest

    def _by_row(self, x):
        """Sums over the completions of each row, sparse."""
        n = x.shape[0]
        sums = csr_array((np.ones(n), np.arange(n), np.append(self.first, n))) @ x
        sums.sum_duplicates()
        return sums

    def times(self, matrix):
        """x M."""
        shared, rest = self._parts
        return (shared @ matrix)[self.place] + rest @ matrix

    def sums(self, values):
        """xᵀ V."""
        shared, rest = self._parts
        return shared.T @ np.add.reduceat(values, self.first) + rest.T @ values

    def second_moments(self, weights):
        """xᵀ w x."""
        if np.array_equal(weights, self.weights):  # always, if no row has several completions
            return self._moments
        return self._second_moments(weights)

    @cached_property
    def _moments(self):
        return self._second_moments(self.weights)

    def _second_moments(self, weights):
        """Matrices of numbers, some rows at a time, are faster than sparse ones."""
        shared, rest = self._parts
        weighted = dia_array((weights[None], 0), shape=(len(weights),) * 2) @ rest
        total = (rest.T @ weighted).toarray()
        of_rows, rest = np.add.reduceat(weights, self.first), self._by_row(csr_array(weighted))
        for part in slices_of_rows(len(of_rows), self.x.shape[1], CHUNK):
            both, own = shared[part].toarray(), rest[part].toarray()
            mixed = both.T @ own
            total += (both * of_rows[part, None]).T @ both + mixed + mixed.T
        return total


def completed(network, codes, scores, weights):
    """Rows whose categories are completed by a network, with scores by different transforms.

    Rows with many completions have draws, which are equally probable. Equal rows are merged, in the
    order of patterns. `codes` have -1 for a missing cell.
    """
    keys = np.hstack([np.isnan(scores[0]), np.nan_to_num(scores[0], nan=np.inf), codes])
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    codes, weights = codes[first], np.bincount(which.ravel(), weights)
    is_many = n_completions(codes, network.n_values) > MOST_COMPLETIONS
    few, many = np.flatnonzero(~is_many), np.repeat(np.flatnonzero(is_many), N_DRAWS)
    states, owner, n_each = all_completions(codes[few], codes[few] < 0, network.n_values)
    owner, log_prior = np.repeat(few[owner], n_each), network.log_weight(states)
    if len(few):
        log_prior -= np.repeat(log_sums(log_prior, n_each), n_each)
    if len(many):
        drawn = network.draws(codes[many], N_STEPS, np.random.default_rng(SEED))
        states = np.concatenate([states, drawn.astype(states.dtype)])
        owner, log_prior = np.append(owner, many), np.append(log_prior, np.zeros(len(many)))
    order = np.argsort(owner, kind="stable")
    owner, x = owner[order], network.one_hot(states[order])
    return [
        ScoredRows(x, Scores(z[first][owner]), weights[owner], owner, log_prior[order])
        for z in scores
    ]


def n_completions(codes, n_values):
    """How many joint values the missing cells of each row have."""
    return np.where(codes < 0, n_values.astype(float), 1.0).prod(axis=1)


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
        """Contribution of the penalties to the log-likelihood."""
        total = 0.0
        for covariance in gaussians.covariances:
            _, log_det = np.linalg.slogdet(covariance)
            trace = np.trace(np.linalg.solve(covariance, self.target))
            total -= 0.5 * self.strength * (log_det + trace)
        if gaussians.n_classes == 1 and self.ridge > 0:
            slopes, covariance = gaussians.slopes, gaussians.covariances[0]
            total -= 0.5 * self.ridge * (slopes * np.linalg.solve(covariance, slopes)).sum()
        return total


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
    target = np.diag(_variances(rows))
    d, n_columns = rows.z.known.shape[1], rows.x.shape[1]
    current = start or Gaussians(
        np.zeros(1), np.zeros((1, d)), np.zeros((d, n_columns)), target[None]
    )
    n_tuned = (TUNED_ROUNDS if start is None else AGAIN_ROUNDS) if ridge is None else 0
    at = rows.times(current.slopes.T)
    prior, last = Prior(1.0 if ridge is None else ridge, strength, target), -np.inf
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
        current, prior, at = _regress(rows, *completed, *state)
    return current


def _regress(rows, z, spread, shares, current, prior, is_tuned):
    """One round: a regression of the completed scores, with λ from the last one; and B x."""
    n = shares.sum()
    mean_x, mean_z = rows.sums(shares) / n, shares @ z / n
    moment = rows.second_moments(shares) - n * np.outer(mean_x, mean_x)
    cross = rows.sums(shares[:, None] * (z - mean_z))
    eigenvalues, vectors = np.linalg.eigh(moment)
    eigenvalues = np.maximum(eigenvalues, 0)
    ridge = prior.ridge
    if not is_tuned:
        ridge = _evidence(eigenvalues, current, ridge, n)
    strengths = eigenvalues + ridge
    known = strengths > RANK_TOL * strengths.max(initial=0)
    slopes = ((vectors[:, known] / strengths[known]) @ (vectors.T[known] @ cross)).T
    at = rows.times(slopes.T)
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
