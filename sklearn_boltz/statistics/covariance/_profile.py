"""Tests of pairs by the regressions of one column on the others.

Where two values never occur together, their coupling has its maximum at infinity, where Wald's test
fails. But the regression of a column on all others but one has a maximum.

Of two columns of two values, let y be whether one has its value a, and t whether the other has its
value b, and let no row have both. With l_0 and I_0 the log-likelihood and the information of the
regression of y on the other columns, and l_1 and I_1 those of the rows without b,

    exp(l_0 - l_1) sqrt(det I_0 / det I_1)

is the probability of no such row if there is no coupling, given the sums of y and of its products
with the other columns, whatever the parameters of these are: the ratio of the saddlepoint
approximations of how many y have these sums, and of how many of them have no such row
(I. M. Skovgaard, J. Appl. Prob. 24, 875–887, 1987). Without other columns it is that of Fisher's
exact test.

Of other columns, the test is the score test of the couplings in the regression without them or, if
smaller, the likelihood ratio: with expected counts below 1, the former is too large where a cell
has a row, and the latter where it has none. Without other columns these are Pearson's X² and G².
The score test is also that of all couplings of two columns where a network has trends only.

Each column of a pair has its regression. A column that others determine says nothing of the pair,
so that both are weighted by how much of the variance of the column is left.
"""

from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from sklearn_boltz.networks.categorical._contrasts import softmax_information
from sklearn_boltz.networks.training._solvers import solver_of
from sklearn_boltz.statistics.covariance._mixed import ScoreColumn
from sklearn_boltz.statistics.covariance._tests import HypothesisTest, wald_test

# The penalty on the squares of a regression's parameters, as others may be separated, too; and what
# is added to the information: sums of whole numbers have a spread where they are determined.
RIDGE, LEAST = 0.01, 1 / (2 * np.pi)
# Information that is as good as none, if other features leave no more than this share of it: a
# coupling would have a standard error above 4.
LEAST_KNOWN = 0.05
# Steps of Newton's method at most, the gain in nats that ends them, and by what a step gains less
# than the one before as long as its matrix serves.
MAX_STEPS, TOL, SERVES = 60, 1e-6, 5
# Of a bound, steps at most, the longest one, and what may be left of ln(-ln p).
MAX_SECANTS, LONGEST, TOL_BOUND = 8, 4.0, 0.01
# ln of the probability of a cell about whose coupling the rows say nothing, given the others.
UNINFORMED = -1e-3
# Rows of a value below which the errors of its trends vary too much for Wald's test.
FEW = 20
# The contrast of two values, by which the information is that of counts.
OF_BITS = np.array([[-0.5], [0.5]])


class Fit(NamedTuple):
    """The maximum of a regression.

    Attributes
    ----------
    regression : Regression
    beta : ndarray of shape (k, p)
    value : float
        The log-likelihood.
    chances : ndarray of shape (n, q)
        The probabilities of the states.
    """

    regression: object
    beta: np.ndarray
    value: float
    chances: np.ndarray

    @property
    def log_det(self):
        """ln det of the information."""
        own, free = self.regression, self.regression.free
        information = own.information(self.chances, own.x)[np.ix_(free, free)]
        return float(np.linalg.slogdet(information + LEAST * np.eye(len(free)))[1])


class Begin(NamedTuple):
    """Where a fit begins: at the maximum on more rows, or on more features.

    Attributes
    ----------
    beta : ndarray of shape (k, p)
    information : ndarray of shape (k, p, k, p)
    """

    beta: np.ndarray
    information: np.ndarray

    @classmethod
    def at(cls, fit):
        """The maximum itself; in single precision, the matrix takes half the time."""
        own, (k, p) = fit.regression, fit.beta.shape
        found = own.information(fit.chances, own.x.astype(np.float32))
        return cls(fit.beta, found.reshape(k, p, k, p))

    def given(self, kept):
        """With some of the features only."""
        return Begin(self.beta[:, kept], self.information[:, kept][:, :, :, kept])


class Regression(NamedTuple):
    """A column of q states, described by k contrasts, given p features of others.

    Attributes
    ----------
    basis : ndarray of shape (q, k)
    own : ndarray of int of shape (n,)
        The states.
    x : ndarray of shape (n, p)
        The first feature is 1.
    weights : ndarray of shape (n,)
    coupled : ndarray of bool of shape (k,)
        The contrasts that depend on features besides the first.
    """

    basis: np.ndarray
    own: np.ndarray
    x: np.ndarray
    weights: np.ndarray
    coupled: np.ndarray

    @classmethod
    def of_bits(cls, y, x, weights):
        """The logistic regression of 0 and 1, or of bool."""
        return cls(OF_BITS, y.astype(np.intp), x, weights, np.array([True]))

    def _at(self, beta, offset):
        """The penalised log-likelihood, and the probabilities."""
        fields = (self.x @ beta.T) @ self.basis.T + offset
        fields -= fields.max(axis=1, keepdims=True)
        chances = np.exp(fields)
        sums = chances.sum(axis=1)
        value = self.weights @ (fields[np.arange(len(fields)), self.own] - np.log(sums))
        return float(value - RIDGE / 2 * (beta**2).sum()), chances / sums[:, None]

    @property
    def free(self):
        """The places of the parameters, (k, p), that may differ from 0."""
        shape = len(self.coupled), self.x.shape[1]
        return np.flatnonzero(self.coupled[:, None] | (np.arange(shape[1]) == 0))

    def information(self, chances, x):
        """Minus the second derivatives, (k p, k p)."""
        block = softmax_information(self.basis, chances, x, self.weights)
        return block.reshape(block.shape[0] * block.shape[1], -1)

    def _slope(self, chances, x):
        """The derivatives without the penalty, (k, p)."""
        residuals = self.basis[self.own] - chances @ self.basis
        return (residuals * self.weights[:, None]).T @ x

    def fit(self, offset=0.0, begin=None):
        """The maximum, with an offset of the fields of all states.

        A matrix of Newton's method is kept, also that of the beginning, while it serves.
        """
        shape, free, solve = (len(self.coupled), self.x.shape[1]), self.free, None
        beta, step, gain = np.zeros(shape), np.zeros(shape), np.inf
        if begin is not None:
            beta, solve = begin.beta, self._solver(begin.information)
        now, chances = self._at(beta, offset)
        for _ in range(MAX_STEPS):
            slope = (self._slope(chances, self.x) - RIDGE * beta).ravel()[free]
            inner, before = None if solve is None else solve(slope), gain
            if inner is None or (gain := slope @ inner) > before / SERVES:
                solve = self._solver(self.information(chances, self.x.astype(np.float32)))
                inner = solve(slope)
                gain = slope @ inner
            step.ravel()[free] = inner
            if gain <= TOL:
                break
            size = 1.0
            while (then := self._at(beta + size * step, offset))[0] < now:
                size /= 2
            beta, (now, chances) = beta + size * step, then
        return Fit(self, beta, now + RIDGE / 2 * (beta**2).sum(), chances)

    def _solver(self, information):
        """A step from slopes of the free parameters, by the information."""
        n, free = self.coupled.size * self.x.shape[1], self.free
        information = information.reshape(n, n)[np.ix_(free, free)] + RIDGE * np.eye(len(free))
        return solver_of(information)

    def score_test(self, fit, more, tested):
        """Whether some contrasts depend on more features, at the maximum without these."""
        p, k = self.x.shape[1], len(self.coupled)
        x = np.column_stack([self.x, more])
        places = np.arange(k * x.shape[1]).reshape(k, -1)
        given, new = places[:, :p].ravel()[self.free], places[tested, p:].ravel()
        whole, slope = self.information(fit.chances, x), self._slope(fit.chances, x).ravel()[new]
        inner = whole[np.ix_(given, given)] + RIDGE * np.eye(len(given))
        across = np.linalg.solve(inner, whole[np.ix_(given, new)])
        left = whole[np.ix_(new, new)] - whole[np.ix_(new, given)] @ across
        axes = informative_axes(left, whole[np.ix_(new, new)])
        return wald_test(axes.T @ slope, axes.T @ left @ axes)

    def likelihood_ratio(self, fit, begin):
        """Twice its logarithm, beside a fit to some of the features."""
        return 2 * (self.fit(begin=begin).value - fit.value)

    def left(self, fit):
        """The share of the variance of the contrasts that the features leave."""

        def variance(chances):
            return self.weights @ (chances @ self.basis**2 - (chances @ self.basis) ** 2).sum(
                axis=1
            )

        rates = np.bincount(self.own, self.weights, len(self.basis)) / self.weights.sum()
        return variance(fit.chances) / variance(np.tile(rates, (len(self.own), 1)))


class Linear(NamedTuple):
    """Linear regression of scores on the features of other columns.

    Attributes
    ----------
    z : ndarray of shape (n,)
    x : ndarray of shape (n, p)
    weights : ndarray of shape (n,)
    """

    z: np.ndarray
    x: np.ndarray
    weights: np.ndarray

    def fit(self, begin=None):
        """The weighted sum of the squares of the residuals, from wherever it begins."""
        root = np.sqrt(self.weights)
        x = self.x * root[:, None]
        beta = np.linalg.lstsq(x, self.z * root, rcond=None)[0]
        return float(((self.z * root - x @ beta) ** 2).sum())

    def score_test(self, fit, more, _):
        """Whether the mean depends on more features."""
        statistic = self.weights.sum() * (1 - self.with_more(more).fit() / fit)
        root = np.sqrt(self.weights)[:, None]
        more = more * root
        rest = more - self.x * root @ np.linalg.lstsq(self.x * root, more, rcond=None)[0]
        df = informative_axes(rest.T @ rest, more.T @ more).shape[1]
        return HypothesisTest(statistic if df else np.nan, df, np.nan, np.ones(df))

    def likelihood_ratio(self, fit, begin):
        """Twice its logarithm, beside a fit to some of the features."""
        return self.weights.sum() * np.log(fit / self.fit(begin))

    def with_more(self, more):
        """The regression on more features."""
        return self._replace(x=np.column_stack([self.x, more]))

    def left(self, fit):
        """The share of the variance that the features leave."""
        return fit / self._replace(x=self.x[:, :1]).fit()


def informative_axes(left, whole):
    """A basis of the parameters of which the rows tell something, (n, k).

    From the information that other features leave, and that without these.
    """
    values, axes = np.linalg.eigh(left)
    shares = values / np.einsum("ik,ij,jk->k", axes, whole, axes)
    return axes[:, (values > LEAST_KNOWN) | (shares > LEAST_KNOWN)]


def regression_of(column, known, x, weights):
    """The regression of some rows of a column of `LevelColumn` or `ScoreColumn`."""
    if isinstance(column, ScoreColumn):
        return Linear(column.z[known], x, weights)
    return Regression(column.basis, column.own[known], x, weights, column.coupled)


class Side(NamedTuple):
    """An empty cell, seen from one of its columns.

    Attributes
    ----------
    regression : Regression
        Of whether this column has the value.
    t : ndarray of bool of shape (n,)
        Whether the other one has. No row has both.
    limit : Fit
        The regression of the rows without the other value.
    null : Fit
        That of all rows, without a coupling.
    """

    regression: Regression
    t: np.ndarray
    limit: Fit
    null: Fit

    @classmethod
    def of(cls, x, y, t, weights):
        """Fit the rows, and those without the other value."""
        regression = Regression.of_bits(y, x, weights)
        limit = Regression.of_bits(y[~t], x[~t], weights[~t]).fit()
        return cls(regression, t, limit, regression.fit(begin=Begin.at(limit)))

    def log_probability(self, fit):
        """ln of the probability that the cell is empty, by a regression of all rows."""
        found = fit.value - self.limit.value + (fit.log_det - self.limit.log_det) / 2
        return min(found, -1e-300)

    def bound(self, level):
        """The log odds ratio for which this probability is `level`; infinite if none is found.

        By the secant method in ln(-ln p), which is nearly linear in the log odds ratio.
        """
        aim, slope, at, fit = np.log(-np.log(level)), 1.0, 0.0, self.null
        log_p = self.log_probability(fit)
        for _ in range(MAX_SECANTS if log_p < UNINFORMED else 0):
            step = np.clip((aim - np.log(-log_p)) / slope, -LONGEST, LONGEST)
            before, at = log_p, at + step
            fit = self.regression.fit(np.outer(at * self.t, [0, 1]), Begin.at(fit))
            log_p = self.log_probability(fit)
            slope = max(np.log(log_p / before) / (step or 1), 0.1)
            if abs(aim - np.log(-log_p)) < TOL_BOUND:
                return float(at)
        return np.inf


class EmptyCell(NamedTuple):
    """Test of the coupling of two values that never occur together.

    Attributes
    ----------
    p_value : float
        Twice the probability of no such row, without a coupling.
    statistic : float
        Twice the logarithm of the ratio of the likelihoods.
    side : Side
        Of the column of which the others leave more.
    is_equal : bool
        Whether both are the higher or the lower of two values.
    """

    p_value: float
    statistic: float
    side: Side
    is_equal: bool

    @classmethod
    def of(cls, sides, is_equal):
        """From both columns."""
        weights = [side.regression.left(side.null) for side in sides]
        log_p = np.average([side.log_probability(side.null) for side in sides], weights=weights)
        gains = [2 * (side.limit.value - side.null.value) for side in sides]
        gain, side = np.average(gains, weights=weights), sides[int(np.argmax(weights))]
        return cls(min(1.0, 2 * np.exp(log_p)), float(gain), side, is_equal)


@dataclass(frozen=True)
class Profile:
    """The rows of a network, of which single columns are regressed on others.

    Attributes
    ----------
    network : Mixed
        Of the columns that vary.
    known : ndarray of bool of shape (n, d)
        Which cells have been observed. Of a pair, rows count that have both.
    kept : ndarray of int of shape (d,)
        The numbers of the columns in the table.
    """

    network: object
    known: np.ndarray
    kept: np.ndarray

    _begins: dict = field(default_factory=dict, repr=False, compare=False)

    def _used(self, one):
        """The features that a column is coupled with."""
        column = self.network.column
        return np.flatnonzero(
            self.network.coupled & self.network.free[one][column] & (column != one)
        )

    def _rows(self, known, one):
        """1 and these features in some rows."""
        x = self.network.features[np.ix_(known, self._used(one))]
        return np.column_stack([np.ones(len(x)), x])

    def _given(self, one, other):
        """Which rows have both columns; the features of one there; which are not of the other."""
        given = np.append(True, self.network.column[self._used(one)] != other)
        known = self.known[:, [one, other]].all(axis=1)
        return known, self._rows(known, one), given

    def _begin(self, one, column):
        """Where the regressions of a column, or of its levels, on most of the others begin."""
        if isinstance(column, ScoreColumn):
            return None
        key = one, column is self.network.columns[one]
        if key not in self._begins:
            known = self.known[:, one]
            x, weights = self._rows(known, one), self.network.weights[known]
            self._begins[key] = Begin.at(regression_of(column, known, x, weights).fit())
        return self._begins[key]

    def empty_cell(self, j, k):
        """The most improbable empty cell of two columns of two values; None if there is none."""
        (known, of_j, is_given), (_, of_k, given) = self._given(j, k), self._given(k, j)
        of_j, of_k = of_j[:, is_given], of_k[:, given]
        weights, found = self.network.weights[known], []
        codes = [self.network.columns[column].own[known] for column in (j, k)]
        for a, b in product((0, 1), repeat=2):
            one, other = codes[0] == a, codes[1] == b
            if one.any() and other.any() and not (one & other).any():
                sides = Side.of(of_j, one, other, weights), Side.of(of_k, other, one, weights)
                found.append(EmptyCell.of(sides, a == b))
        return min(found, key=lambda cell: cell.p_value, default=None)

    def is_rare(self, j, k):
        """Whether one column has a trend, and the other values of so few rows that errors vary."""
        trends = [self.network.columns[i].is_trend for i in (j, k)]
        if sum(trends) != 1:
            return False
        known = self.known[:, [j, k]].all(axis=1)
        levels = self.network.columns[k if trends[0] else j]
        counts = np.bincount(levels.own[known], self.network.weights[known], len(levels.basis))
        return counts.min() < FEW

    def score_test(self, j, k, *, jointly=False):
        """The score test of two columns, or if it is less the likelihood ratio.

        `jointly`, the former is that of all couplings, those besides the trend included.
        """
        statistics, weights, n_fitted, df = [], [], 0, np.inf
        for one, other in ((j, k), (k, j)):
            known, x, given = self._given(one, other)
            columns = [self.network.columns[i] for i in (one, other)]
            column, partner = (own.levels() for own in columns) if jointly else columns
            more = partner.features[np.ix_(known, partner.coupled | jointly)]
            whole = regression_of(column, known, x, self.network.weights[known])
            null, begin = whole._replace(x=x[:, given]), self._begin(one, column)
            fit = null.fit(begin=begin and begin.given(given))
            test = null.score_test(fit, more, column.coupled | jointly)
            statistic = test.statistic
            if not jointly:
                statistic = min(statistic, whole.likelihood_ratio(fit, begin))
            statistics.append(statistic)
            weights.append(null.left(fit))
            df = min(df, test.df)
            n_fitted = max(n_fitted, given.sum())
        # Residuals vary less than what they estimate.
        share = max(1 - n_fitted / null.weights.sum(), 0.0)
        statistic = share * float(np.average(statistics, weights=weights))
        return HypothesisTest(statistic, df, float(chdtrc(df, statistic)), np.ones(df))

    def joint_tests(self, tables):
        """Degrees of freedom and p values of all couplings, where those of pairs are of trends.

        `tables` is the table of pairs; pairs without a trend have what stands there.
        """
        found = {f"joint_{name}": tables[name].copy() for name in ("df", "p_value")}
        trends = [column.is_trend for column in self.network.columns]
        for j, k in combinations(range(len(trends)), 2):
            pair = self.kept[j], self.kept[k]
            if (trends[j] or trends[k]) and np.isfinite(tables["p_value"][pair]):
                test = self.score_test(j, k, jointly=True)
                for name, value in zip(found, (test.df, test.p_value), strict=True):
                    found[name][pair] = found[name][pair[::-1]] = value
        return found
