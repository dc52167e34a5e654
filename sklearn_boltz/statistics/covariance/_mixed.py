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
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtri, softmax

from sklearn_boltz.networks.categorical._contrasts import trend_basis
from sklearn_boltz.networks.model._gauge import state_slices
from sklearn_boltz.networks.training._objective import Objective, Point, parameter_places
from sklearn_boltz.networks.training._solvers import solver_of
from sklearn_boltz.numerics._lbfgs import Lbfgs
from sklearn_boltz.numerics._threads import slices_of_rows
from sklearn_boltz.statistics.covariance._curvature import Regressions

# Matrices of second derivatives at most, steps with each, and the gain in nats that ends them.
MAX_MATRICES, MAX_STEPS, TOL = 20, 30, 1e-6
# Nats below the maximum from where a matrix has double precision.
NEAR = 1e-2
# Groups of the numbers of a column for tests of all couplings, of about the same size.
N_GROUPS = 5
# Of scores, where states are needed: nodes of a normal distribution.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
# Products of pairs of features at a time: so many stay in a cache. And features of a column beyond
# which it has products of its own, of the others alone.
CELLS, LARGE = 2**19, 16


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

    def means(self, fields):
        """A, and the means of the features, from g of shape (n, k)."""
        logits = fields @ self.basis.T
        top = logits.max(axis=1, keepdims=True)
        chances = np.exp(logits - top)
        sums = chances.sum(axis=1, keepdims=True)
        return (np.log(sums) + top)[:, 0], (chances @ self.basis) / sums

    def spread(self, fields):
        """Covariances of the features, (k (k + 1) / 2, n), in the order of `np.tril_indices`."""
        r, s = np.tril_indices(self.basis.shape[1])
        chances, basis = self.law(fields)[0].T, self.basis.T
        means = basis @ chances
        return (basis[r] * basis[s]) @ chances - means[r] * means[s]

    def law(self, fields):
        """Probabilities of the states, (n, q), and their features, (q, k)."""
        return softmax(fields @ self.basis.T, axis=1), self.basis

    def levels(self):
        """The column itself."""
        return self

    def some(self, rows):
        """The column in some rows."""
        return self._replace(own=self.own[rows])


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

    def means(self, fields):
        """A, and the means of the features, from g of shape (n, 2)."""
        field, precision = fields.T
        if precision.min() <= 0:
            return np.inf, 0.0
        variance = 1 / precision
        mu = field * variance
        mean = np.column_stack([mu, -(variance + mu**2) / 2])
        return (field * mu - np.log(precision)) / 2, mean

    def spread(self, fields):
        """Covariances of the features, (3, n), in the order of `np.tril_indices`."""
        variance = 1 / fields[:, 1]
        mu = fields[:, 0] * variance
        return np.array([variance, -mu * variance, variance**2 / 2 + mu**2 * variance])

    def law(self, fields):
        """Weights of a quadrature around the mean, (n, q), and the features there, (q, k)."""
        at = NODES / np.sqrt(fields[0, 1])
        return np.tile(NODE_WEIGHTS, (len(fields), 1)), np.column_stack([at, 0 * at])

    def some(self, rows):
        """The column in some rows."""
        return ScoreColumn(self.z[rows])

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


def pair_numbers(n):
    """The number of each pair of n in the order of `np.tril_indices`, (n, n)."""
    r, s = np.tril_indices(n)
    found = np.empty((n, n), dtype=int)
    found[r, s] = found[s, r] = np.arange(len(r))
    return found


class Mixed(Objective):
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
    slices : list of slice
        The features of each column.
    coupled : ndarray of bool of shape (D,)
    pairs : (ndarray of int, ndarray of int)
        The features of each K.
    places : ndarray of int of shape (D, D)
        Where K is in θ, and on the diagonal η; the number of parameters if there is none.
    """

    def __init__(self, columns, weights, free):
        self.columns, self.weights, self.free = columns, weights, free
        own = [column.features for column in columns]
        self.features, sizes = np.hstack(own), [part.shape[1] for part in own]
        self.column, self.slices = np.repeat(np.arange(len(columns)), sizes), state_slices(sizes)
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
        """Evaluate the objective."""
        fields = self.fields(theta)
        residuals, log_partition = self._residuals(fields)
        value = self.weights @ ((self.features * fields).sum(axis=1) - log_partition)
        residuals *= self.weights[:, None]
        products = residuals.T @ self.features
        slope = np.append(residuals.sum(axis=0), (products + products.T)[self.pairs])
        return Point(theta, float(value), slope)

    def _residuals(self, fields):
        """What the features exceed their conditional means by, (n, D), and the sum of all A."""
        residuals, total = self.features.copy(), np.zeros(len(fields))
        for column, own in zip(self.columns, self.slices, strict=True):
            log_partition, mean = column.means(fields[:, own])
            total += log_partition
            residuals[:, own] -= mean
        return residuals, total

    def information(self, point, dtype=np.float64):
        """Minus the second derivatives, (n_parameters, n_parameters), with sums in `dtype`."""
        fields = self.fields(point.theta)
        found = np.zeros((self.n_parameters + 1,) * 2)  # the last is of what has no coupling
        is_large = np.bincount(self.column, self.coupled) > LARGE
        for group in (*np.flatnonzero(is_large)[:, None], np.flatnonzero(~is_large)):
            if len(group):
                self._add_information(found, group, fields, dtype)
        return found[:-1, :-1].astype(dtype)

    def _add_information(self, found, group, fields, dtype):
        """Add that of the regressions of some columns."""
        used = np.flatnonzero(self.coupled & ((self.column != group[0]) | (len(group) > 1)))
        x = np.vstack([np.ones(len(fields)), self.features.T[used]]).astype(dtype)
        (i, k), of_x, both, one = np.tril_indices(len(x)), pair_numbers(len(x)), 0.0, 0.0
        # Of two features with couplings, which are the first, and of others.
        ranks = [self.columns[j].coupled.sum() for j in group]
        n_both = [c * (c + 1) // 2 for c in ranks]
        pairs = [pair_numbers(len(self.columns[j].coupled)) for j in group]
        for rows in slices_of_rows(len(fields), len(i), CELLS):
            spreads = [
                np.split(self.columns[j].spread(fields[rows, self.slices[j]]), [n])
                for j, n in zip(group, n_both, strict=True)
            ]
            of_both, of_one = map(np.vstack, zip(*spreads, strict=True))
            some, weights = x[:, rows], self.weights[rows]
            both = both + (of_both * weights).astype(dtype) @ (some[i] * some[k]).T
            one = one + (of_one * weights).astype(dtype) @ some.T
        n_one = [own.max() + 1 - n for own, n in zip(pairs, n_both, strict=True)]
        both = np.split(both, np.cumsum(n_both)[:-1])
        one = np.split(one, np.cumsum(n_one)[:-1])
        for j, c, own, of_both, of_one in zip(group, ranks, pairs, both, one, strict=True):
            intercepts = np.arange(self.slices[j].start, self.slices[j].stop)
            others = np.flatnonzero(self.column[used] != j)
            place, lone = np.append(0, 1 + others), intercepts[c:]
            slopes = np.column_stack([intercepts, self.places[np.ix_(intercepts, used[others])]])
            slopes = slopes[:c].ravel()
            square = of_both[own[:c, None, :c, None], of_x[np.ix_(place, place)][:, None]]
            mixed = of_one[own[c:, :c] - len(of_both)][..., place]
            mixed = mixed.reshape(len(lone), len(slopes))
            found[np.ix_(slopes, slopes)] += square.reshape((len(slopes),) * 2)
            found[np.ix_(lone, slopes)] += mixed
            found[np.ix_(slopes, lone)] += mixed.T
            found[np.ix_(lone, lone)] += of_one[own[c:, c:] - len(of_both), 0]

    def fit(self):
        """The maximum, also where it is at infinity, the information there, and its solver.

        The matrix of Newton's method is the costly part: with each, there are steps of L-BFGS.
        """
        return self.ended(self.at(self.start()), np.inf)

    def ended(self, point, gain=0.0):
        """The same from a point on, which lacks about so much."""
        for _ in range(MAX_MATRICES):
            is_near = gain < NEAR
            information = self.information(point, np.float64 if is_near else np.float32)
            solve = solver_of(information.copy())
            gain = point.gradient @ solve(point.gradient)
            if is_near and gain <= TOL:
                break
            point = self.climbed(point, solve)
            gain = point.gradient @ solve(point.gradient)
        return point, information, solve

    def climbed(self, point, solve):
        """The point after steps of L-BFGS, until one gains next to nothing."""
        for after in islice(Lbfgs().points(self, point, solve), MAX_STEPS):
            rise, point = after.value - point.value, after
            if rise < TOL:
                break
        return point

    def some_draws(self, first, most):
        """At most about so many rows, of the draws that begin at `first`; and which these are.

        At least one of each incomplete row, and the complete ones; all if there are no draws.
        """
        n = len(self.weights)
        n_each = np.diff(np.arange(n) if first is None else first, append=n)
        n_drawn = (n_each > 1).sum()
        n_kept = np.minimum(n_each, max(1, (most - len(n_each) + n_drawn) // max(n_drawn, 1)))
        place = np.arange(n) - np.repeat(np.cumsum(n_each) - n_each, n_each)
        rows = np.flatnonzero(place < np.repeat(n_kept, n_each))
        weights = self.weights[rows] * np.repeat(n_each / n_kept, n_kept)
        return Mixed([column.some(rows) for column in self.columns], weights, self.free), rows

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

    def regressions(self, theta, first=None):
        """Each column's regression on the others, for the covariance of the estimate."""
        fields, d = self.fields(theta), len(self.column)
        residuals, _ = self._residuals(fields)

        def spread(rows):
            inner = fields[rows]
            found = np.zeros((len(inner), d, d))
            for column, own in zip(self.columns, self.slices, strict=True):
                packed = column.spread(inner[:, own])
                found[:, own, own] = packed[pair_numbers(own.stop - own.start)].transpose(2, 0, 1)
            return found

        def law(column):
            return self.columns[column].law(fields[:, self.slices[column]])

        which = self.column, self.pairs
        return Regressions(*which, self.features, residuals, self.weights, spread, law, first)
