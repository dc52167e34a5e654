"""A network of levels and of numbers by their normal scores: a mixed graphical model.

A column is described by features u: contrasts of its levels, of which an ordinal one has couplings
of the first alone, the trend; or a score z and -z²/2, of which z has couplings. The probability of
a column given the others is that of an exponential family,

    ln p(x_j | others) = u_j(x_j)' g_j - A_j(g_j),   g_j = η_j + Σ_k K_jk u_k(x_k),

that is a multinomial regression, or a linear one with the precision as the parameter of -z²/2. The
sum of all columns is the pseudo-likelihood, concave in η and K = K'. What is true of a few levels,
that the maximum may be at infinity, cannot happen to couplings of scores.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtri, softmax

from sklearn_boltz.networks.categorical._block_penalty import ROUNDING, trend_basis
from sklearn_boltz.networks.training._objective import parameter_places
from sklearn_boltz.statistics.covariance._curvature import Regressions, moments

# Steps of Newton's method at most, and the gain in nats that ends them.
MAX_STEPS, TOL = 60, 1e-6
# Groups of the numbers of a column for tests of all couplings, of about the same size.
N_GROUPS = 5
# Of scores, where states are needed: nodes of a normal distribution.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


class LevelColumn(NamedTuple):
    """A column of q states.

    Attributes
    ----------
    basis : ndarray of shape (q, k)
        Contrasts.
    own : ndarray of int of shape (n,)
        The state in each row, -1 where it is missing.
    is_trend : bool
        Whether the first contrast alone has couplings.
    states : ndarray of int of shape (q,)
        What the states are among all that the column may have.
    """

    basis: np.ndarray
    own: np.ndarray
    is_trend: bool
    states: np.ndarray

    @property
    def features(self):
        """Those of each row, (n, k); 0 where the state is missing."""
        return self.basis[self.own] * (self.own >= 0)[:, None]

    @property
    def coupled(self):
        """Which features have couplings."""
        return np.arange(self.basis.shape[1]) < (1 if self.is_trend else np.inf)

    def start(self, weights):
        """η of independent columns."""
        shares = np.bincount(self.own + 1, weights, len(self.basis) + 1)[1:]
        return self.basis.T @ np.log(shares / shares.sum())

    def moments(self, fields):
        """A, the means of the features, and their covariances, from g of shape (n, k)."""
        logits = fields @ self.basis.T
        top = logits.max(axis=1, keepdims=True)
        chances = np.exp(logits - top)
        sums = chances.sum(axis=1, keepdims=True)
        mean, spread = moments(chances / sums, self.basis)
        return (np.log(sums) + top)[:, 0], mean, spread

    def law(self, fields):
        """Probabilities of the states, (n, q), and their features, (q, k)."""
        return softmax(fields @ self.basis.T, axis=1), self.basis

    def levels(self):
        """The column itself."""
        return self


class ScoreColumn(NamedTuple):
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
        return np.column_stack([self.z, -(self.z**2) / 2])

    def start(self, weights):
        """η of independent columns: of scores with mean 0 and variance 1."""
        return np.array([0.0, 1.0])

    def moments(self, fields):
        """A, the means of the features, and their covariances, from g of shape (n, 2)."""
        field, precision = fields.T
        if precision.min() <= 0:
            return np.inf, 0.0, None
        variance = 1 / precision
        mu = field * variance
        spread = np.empty((len(mu), 2, 2))
        spread[:, 0, 0], spread[:, 1, 1] = variance, variance**2 / 2 + mu**2 * variance
        spread[:, 0, 1] = spread[:, 1, 0] = -mu * variance
        mean = np.column_stack([mu, -(variance + mu**2) / 2])
        return (field * mu - np.log(precision)) / 2, mean, spread

    def law(self, fields):
        """Weights of a quadrature around the mean, (n, q), and the features there, (q, k)."""
        at = NODES / np.sqrt(fields[0, 1])
        return np.tile(NODE_WEIGHTS, (len(fields), 1)), np.column_stack([at, 0 * at])

    def levels(self):
        """A few groups of scores; their first contrast is the mean score."""
        cuts = np.unique(np.quantile(self.z, np.arange(1, N_GROUPS) / N_GROUPS))
        own = np.searchsorted(cuts, self.z)
        counts = np.bincount(own)
        states = np.flatnonzero(counts)
        own, counts = np.searchsorted(states, own), counts[states]
        means = np.bincount(own, self.z) / counts
        basis = np.linalg.qr(np.column_stack([np.ones(len(means)), means, np.eye(len(means))]))[0]
        return LevelColumn(basis[:, 1:], own, len(means) > 2, states)


def levels_of(codes, known, is_trend):
    """The levels of a column that occur; None if there is only one.

    `codes` of cells that are not `known` may have been drawn, or are -1. `is_trend` says whether
    levels have an order.
    """
    states = np.unique(codes[known])
    if len(states) < 2:
        return None
    own = np.searchsorted(states, codes).clip(max=len(states) - 1)
    is_trend = bool(is_trend) and len(states) > 2
    basis = contrasts(len(states), is_trend)
    return LevelColumn(basis, np.where(codes < 0, -1, own), is_trend, states)


@cache
def contrasts(n_levels, is_trend):
    """Those of the levels of a column, orthonormal; of levels in order, the first is the trend."""
    basis = trend_basis(np.array([n_levels]), np.array([is_trend]))
    basis.flags.writeable = False
    return basis


def normal_scores(x, weights):
    """A function from numbers to scores by ranks of x, with mean 0 and variance 1.

    Equal numbers have the mean rank; NaN is a missing cell.
    """
    known = ~np.isnan(x)
    values, place = np.unique(x[known], return_inverse=True)
    mass = np.bincount(place, weights[known]) / weights[known].sum()
    z = ndtri(np.cumsum(mass) - mass / 2)
    z -= mass @ z
    z /= np.sqrt(mass @ z**2)
    return lambda numbers: np.interp(numbers, values, z)


class Mixed:
    """The pseudo-likelihood of columns of `LevelColumn` and `ScoreColumn`.

    Parameters
    ----------
    columns : list of LevelColumn or ScoreColumn
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
        self.columns, self.weights, self.free = columns, weights, free
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
        intercept = inner.diagonal().copy()
        np.fill_diagonal(inner, 0)
        return self.features @ inner[:, features] + intercept[features]

    def at(self, theta):
        """The value, residuals of shape (n, D), and covariances of each column's features."""
        fields, value = self.fields(theta), 0.0
        residuals, spreads = self.features.copy(), []
        for j, column in enumerate(self.columns):
            own = self.column == j
            log_partition, mean, spread = column.moments(fields[:, own])
            value -= self.weights @ np.broadcast_to(log_partition, len(fields))
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
        found = np.zeros((self.n_parameters + 1,) * 2)  # the last is of what has no coupling
        ones = np.ones((len(self.weights), 1))
        for j, spread in enumerate(spreads):
            own = np.flatnonzero(self.column == j)
            others = np.flatnonzero(self.coupled & (self.column != j))
            x = np.hstack([ones, self.features[:, others]])
            place = np.column_stack([own, self.places[np.ix_(own, others)]])
            used = [slice(None) if self.coupled[k] else slice(1) for k in own]
            for r, of_r in zip(used, range(len(own)), strict=True):
                for s, of_s in zip(used, range(len(own)), strict=True):
                    part = x[:, r] * (self.weights * spread[:, of_r, of_s])[:, None]
                    found[np.ix_(place[of_r, r], place[of_s, s])] += part.T @ x[:, s]
        return found[:-1, :-1]

    def fit(self):
        """The maximum, its residuals, covariances and information, also where it is at infinity."""
        theta = self.start()
        value, residuals, spreads = self.at(theta)
        for _ in range(MAX_STEPS):
            slope, information = self.gradient(residuals), self.information(spreads)
            ridge = ROUNDING * information.diagonal().max() * np.eye(len(slope))
            step = np.linalg.solve(information + ridge, slope)
            gain, size = slope @ step, 1.0
            while gain > TOL and not (then := self.at(theta + size * step))[0] > value:
                size /= 2
            if gain <= TOL or size < ROUNDING:
                break
            theta, (value, residuals, spreads) = theta + size * step, then
        return theta, residuals, spreads, information

    def redrawn(self, theta, known, generator):
        """The network with missing scores drawn anew, given the levels and known scores of rows."""
        scores = [j for j, own in enumerate(self.columns) if isinstance(own, ScoreColumn)]
        first = np.searchsorted(self.column, scores)  # z, and beside it -z²/2
        inner, z = np.append(theta, 0.0)[self.places], self.features[:, first]
        precision = -inner[np.ix_(first, first)]
        np.fill_diagonal(precision, inner[first + 1, first + 1])
        patterns, place = np.unique(~known[:, scores], axis=0, return_inverse=True)
        for k, missing in enumerate(patterns):
            rows, own = np.flatnonzero(place.ravel() == k), np.flatnonzero(missing)
            block = precision[np.ix_(own, own)]
            if not len(own) or np.linalg.eigvalsh(block)[0] <= 0:
                continue  # nothing to draw, or no joint distribution
            fields = self.fields(theta, first[own])[rows] + z[np.ix_(rows, own)] @ block
            fields -= z[np.ix_(rows, own)] * block.diagonal()
            root = np.linalg.cholesky(block)
            noise = solve_triangular(root.T, generator.normal(size=fields.T.shape))
            z[np.ix_(rows, own)] = (cho_solve((root, True), fields.T) + noise).T
        columns = list(self.columns)
        for j, drawn in zip(scores, z.T, strict=True):
            columns[j] = ScoreColumn(drawn)
        return Mixed(columns, self.weights, self.free)

    def regressions(self, theta, residuals, spreads, first=None):
        """Each column's regression on the others, for the covariance of the estimate."""
        fields, own = self.fields(theta), self.column[:, None] == self.column

        def spread(rows):
            found = np.zeros((len(residuals[rows]), *own.shape))
            for j, part in enumerate(spreads):
                at = np.flatnonzero(self.column == j)
                found[:, at[:, None], at] = part[rows]
            return found

        def law(column):
            return self.columns[column].law(fields[:, self.column == column])

        which = self.column, self.pairs
        return Regressions(*which, self.features, residuals, self.weights, spread, law, first)
