"""A network of levels and of numbers by their normal scores: a mixed graphical model.

A column is described by features u: contrasts of its levels, of which an ordinal one has couplings
of the first alone, the trend; or a score z and -z²/2, of which z has couplings. The probability of
a column given the others is that of an exponential family,

    ln p(x_j | others) = u_j(x_j)' g_j - A_j(g_j),   g_j = η_j + Σ_k K_jk u_k(x_k),

that is a multinomial regression, or a linear one with the precision as the parameter of -z²/2. The
sum of all columns is the pseudo-likelihood, concave in η and K = K'. What is true of a few levels,
that the maximum may be at infinity, cannot happen to couplings of scores.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from sklearn_boltz.networks.categorical._block_penalty import ordered_basis
from sklearn_boltz.networks.model._gauge import contrast_basis
from sklearn_boltz.networks.training._objective import parameter_places
from sklearn_boltz.statistics.covariance._curvature import Regressions

# Steps of Newton's method at most, and the gain in nats that ends them.
MAX_STEPS, TOL = 60, 1e-6
# Groups of the numbers of a column for tests of all couplings, of about the same size.
N_GROUPS = 5


class Levels(NamedTuple):
    """A column of q states.

    Attributes
    ----------
    basis : ndarray of shape (q, k)
        Contrasts.
    own : ndarray of int of shape (n,)
        The state in each row.
    is_trend : bool
        Whether the first contrast alone has couplings.
    """

    basis: np.ndarray
    own: np.ndarray
    is_trend: bool

    @property
    def features(self):
        """Those of each row, (n, k)."""
        return self.basis[self.own]

    @property
    def coupled(self):
        """Which features have couplings."""
        return np.arange(self.basis.shape[1]) < (1 if self.is_trend else np.inf)

    def start(self, weights):
        """η of independent columns."""
        shares = np.bincount(self.own, weights, len(self.basis))
        return self.basis.T @ np.log(shares / shares.sum())

    def moments(self, fields):
        """A, the means of the features, and their covariances, from g of shape (n, k)."""
        logits = fields @ self.basis.T
        top = logits.max(axis=1, keepdims=True)
        chances = np.exp(logits - top)
        sums = chances.sum(axis=1, keepdims=True)
        mean, spread = moments(chances / sums, self.basis)
        return (np.log(sums) + top)[:, 0], mean, spread

    def groups(self, fields):
        """Residuals of the features, as if all had couplings, and their covariances."""
        _, mean, spread = self.moments(fields)
        return self.features - mean, spread


class Scores(NamedTuple):
    """A column of normal scores.

    Attributes
    ----------
    z : ndarray of shape (n,)
    """

    z: np.ndarray

    coupled = np.array([True, False])
    is_trend = True

    @property
    def features(self):
        """Those of each row, (n, 2)."""
        return np.column_stack([self.z, -self.z**2 / 2])

    def start(self, weights):
        """η of independent columns: of scores with mean 0 and variance 1."""
        return np.array([0.0, 1.0])

    def moments(self, fields):
        """A, the means of the features, and their covariances, from g of shape (n, 2)."""
        field, precision = fields.T
        if precision.min() <= 0:
            return np.inf, *np.zeros((2, 1))
        variance = 1 / precision
        mu = field * variance
        spread = np.empty((len(mu), 2, 2))
        spread[:, 0, 0], spread[:, 1, 1] = variance, variance**2 / 2 + mu**2 * variance
        spread[:, 0, 1] = spread[:, 1, 0] = -mu * variance
        mean = np.column_stack([mu, -(variance + mu**2) / 2])
        return (field * mu - np.log(precision)) / 2, mean, spread

    def groups(self, fields):
        """Residuals of contrasts of a few groups of scores, and their covariances."""
        mu = fields[:, 0] / fields[:, 1]
        sd = np.sqrt(np.mean((self.z - mu) ** 2))
        cuts = np.unique(np.quantile(self.z, np.arange(1, N_GROUPS) / N_GROUPS))
        own = np.searchsorted(cuts, self.z)
        ends = np.append(np.append(-np.inf, cuts), np.inf)
        p = np.diff(ndtr((ends - mu[:, None]) / sd), axis=1)
        basis = contrast_basis([len(cuts) + 1])
        mean, spread = moments(p, basis)
        found = basis[own] - mean
        return found - found.mean(axis=0), spread


def moments(chances, basis):
    """Means of contrasts, (n, k), and their covariances, (n, k, k)."""
    mean = chances @ basis
    both = np.einsum("na,ar,as->nrs", chances, basis, basis, optimize=True)
    return mean, both - mean[:, :, None] * mean[:, None]


def normal_scores(x, weights):
    """Scores of numbers by their ranks, the mean rank for equal ones; mean 0 and variance 1.

    Parameters
    ----------
    x : ndarray of shape (n,)
        NaN is a missing cell.
    weights : ndarray of shape (n,)

    Returns
    -------
    score : callable
        From numbers to scores.
    """
    known = ~np.isnan(x)
    values, place = np.unique(x[known], return_inverse=True)
    mass = np.bincount(place, weights[known]) / weights[known].sum()
    z = ndtri(np.cumsum(mass) - mass / 2)
    z -= mass @ z
    z /= np.sqrt(mass @ z**2) if len(z) > 1 else 1.0
    return lambda numbers: np.interp(numbers, values, z)


class Mixed:
    """The pseudo-likelihood of columns of `Levels` and `Scores`.

    Parameters
    ----------
    columns : list of Levels or Scores
    weights : ndarray of shape (n,)
    free : ndarray of bool of shape (d, d)
        Which columns have couplings.

    Attributes
    ----------
    features : ndarray of shape (n, D)
    column : ndarray of int of shape (D,)
    coupled : ndarray of bool of shape (D,)
    pairs : (ndarray of int, ndarray of int)
        The features of each K.
    places : ndarray of int of shape (D, D)
        Where K is in θ, and on the diagonal η; the number of parameters if there is none.
    """

    def __init__(self, columns, weights, free):
        self.columns, self.weights = columns, weights
        own = [column.features for column in columns]
        self.features = np.hstack(own)
        self.column = np.repeat(np.arange(len(columns)), [part.shape[1] for part in own])
        self.coupled = np.concatenate([column.coupled for column in columns])
        first, second = self.column[:, None], self.column
        both = np.outer(self.coupled, self.coupled) & free[first, second]
        self.pairs = np.nonzero((first < second) & both)
        self.n_parameters = len(self.column) + len(self.pairs[0])
        self.places = parameter_places(len(self.column), self.pairs)

    def start(self):
        """θ of independent columns."""
        own = [column.start(self.weights) for column in self.columns]
        return np.concatenate([*own, np.zeros(len(self.pairs[0]))])

    def fields(self, theta, features=slice(None)):
        """g of some features, (n, D)."""
        inner = np.append(theta, 0.0)[self.places]
        intercept = inner.diagonal()
        inner = inner - np.diag(intercept)
        return self.features @ inner[:, features] + intercept[features]

    def at(self, theta):
        """The value, residuals of shape (n, D), and covariances of each column's features."""
        fields, value = self.fields(theta), 0.0
        residuals, spreads = self.features.copy(), []
        for j, column in enumerate(self.columns):
            own = self.column == j
            log_partition, mean, spread = column.moments(fields[:, own])
            if np.ndim(log_partition) == 0:
                return -np.inf, None, None
            value -= self.weights @ log_partition
            residuals[:, own] -= mean
            spreads.append(spread)
        return value + self.weights @ (self.features * fields).sum(axis=1), residuals, spreads

    def gradient(self, residuals):
        """The sum of the scores of all rows."""
        weighted = residuals * self.weights[:, None]
        products = weighted.T @ self.features
        return np.append(weighted.sum(axis=0), (products + products.T)[self.pairs])

    def information(self, spreads):
        """Minus the second derivatives, (n_parameters, n_parameters)."""
        found = np.zeros((self.n_parameters + 1,) * 2)
        ones = np.ones((len(self.weights), 1))
        for j, spread in enumerate(spreads):
            own = np.flatnonzero(self.column == j)
            others = np.flatnonzero(self.coupled & (self.column != j))
            x = np.hstack([ones, self.features[:, others]])
            place = np.column_stack([own, self.places[np.ix_(own, others)]])
            for r, of_r in enumerate(place):
                for s, of_s in enumerate(place):
                    few = [slice(None) if self.coupled[own[k]] else slice(1) for k in (r, s)]
                    left, right = (x[:, part] for part in few)
                    block = (left * (self.weights * spread[:, r, s])[:, None]).T @ right
                    found[np.ix_(of_r[few[0]], of_s[few[1]])] += block
        return found[:-1, :-1]

    def fit(self):
        """The maximum, with its residuals and information; as far as one is at infinity."""
        theta = self.start()
        value, residuals, spreads = self.at(theta)
        for _ in range(MAX_STEPS):
            slope, information = self.gradient(residuals), self.information(spreads)
            ridge = 1e-10 * information.diagonal().max() * np.eye(len(slope))
            step = np.linalg.solve(information + ridge, slope)
            gain, size = slope @ step, 1.0
            if gain < TOL:
                break
            while not (then := self.at(theta + size * step))[0] > value:
                size /= 2
                if size < 1e-9:
                    return theta, residuals, spreads, information
            theta, (value, residuals, spreads) = theta + size * step, then
        return theta, residuals, spreads, information

    def regressions(self, residuals, spreads, weights):
        """Each column's regression on the others, for the jackknife."""
        own = self.column[:, None] == self.column

        def spread(rows):
            found = np.zeros((len(residuals[rows]), *own.shape))
            for j, part in enumerate(spreads):
                at = np.flatnonzero(self.column == j)
                found[:, at[:, None], at] = part[rows]
            return found

        which = self.column, self.pairs
        return Regressions(*which, self.features, residuals, weights, spread)
