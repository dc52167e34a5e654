"""Tests of couplings that the data separate, by the regression of a value on the other columns.

Let y be whether a column has its value a, and t whether another has its value b. If no row has
both, their coupling has its maximum at minus infinity, where Wald's test fails. But the regression
of y on the columns besides t has a maximum l_0, and so has that of the rows without b, l_1. With I
the information of each, the probability that no row has both, if there is no coupling, is

    exp(l_0 - l_1) sqrt(det I_0 / det I_1),

given the sums of y and of its products with the other columns, whatever the parameters of these
are: the saddlepoint approximations of how many y have these sums, and of how many of them have no
row with both (I. M. Skovgaard, J. Appl. Prob. 24, 875–887, 1987). Of two columns it is the
hypergeometric probability of Fisher's exact test.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

# The penalty on the squares of a regression's parameters, as others may be separated, too; and what
# is added to the information: sums of whole numbers have a spread where they are determined.
RIDGE, LEAST = 0.01, 1 / (2 * np.pi)
# Steps of Newton's method at most, and the gain in nats that ends them.
MAX_STEPS, TOL = 30, 1e-5
# Of a bound, steps at most, the longest one, and what may be left of ln(-ln p).
MAX_SECANTS, LONGEST, TOL_BOUND = 8, 4.0, 0.01
# ln of the probability of a cell about whose coupling the rows say nothing, given the others.
UNINFORMED = -1e-3


class Fit(NamedTuple):
    """The maximum of a logistic regression.

    Attributes
    ----------
    beta : ndarray of shape (p,)
    value : float
        The log-likelihood.
    log_det : float
        ln det of the information.
    """

    beta: np.ndarray
    value: float
    log_det: float


def logistic(x, y, weights, offset=0.0, start=None):
    """The regression of y, 0 and 1, on x; `offset` is added to the fields of all rows.

    Parameters
    ----------
    x : ndarray of shape (n, p)
    y, weights : ndarray of shape (n,)
    offset : float or ndarray of shape (n,), default=0.0
    start : ndarray of shape (p,), default=None

    Returns
    -------
    fit : Fit
    """

    def value(beta):
        field = x @ beta + offset
        return float(weights @ (y * field - np.logaddexp(0, field))) - RIDGE / 2 * beta @ beta

    beta = np.zeros(x.shape[1]) if start is None else start
    ridge, now = RIDGE * np.eye(len(beta)), value(beta)
    for _ in range(MAX_STEPS):
        p = expit(x @ beta + offset)
        information = (x * (weights * p * (1 - p))[:, None]).T @ x
        slope = (weights * (y - p)) @ x - RIDGE * beta
        step = np.linalg.solve(information + ridge, slope)
        while (then := value(beta + step)) < now and slope @ step > TOL:
            step = step / 2
        if slope @ step <= TOL:
            break
        beta, now = beta + step, then
    log_det = np.linalg.slogdet(information + LEAST * np.eye(len(beta)))[1]
    return Fit(beta, now + RIDGE / 2 * beta @ beta, float(log_det))


class Side(NamedTuple):
    """An empty cell, seen from one of its columns.

    Attributes
    ----------
    x : ndarray of shape (n, p)
        1, and the features of the columns besides these two.
    y, t : ndarray of bool of shape (n,)
        Whether this column, and the other one, has the value. No row has both.
    weights : ndarray of shape (n,)
    limit : Fit
        The regression of the rows without the other value.
    """

    x: np.ndarray
    y: np.ndarray
    t: np.ndarray
    weights: np.ndarray
    limit: Fit

    @classmethod
    def of(cls, x, y, t, weights):
        """Fit the rows without the other value."""
        return cls(x, y, t, weights, logistic(x[~t], y[~t], weights[~t]))

    def log_probability(self, log_odds=0.0, start=None):
        """ln of the probability that the cell is empty, for a log odds ratio; and the regression."""
        start = self.limit.beta if start is None else start
        fit = logistic(self.x, self.y, self.weights, log_odds * self.t, start)
        found = fit.value - self.limit.value + (fit.log_det - self.limit.log_det) / 2
        return min(found, -1e-300), fit

    def bound(self, level):
        """The log odds ratio for which this probability is `level`; infinite if none is found.

        By the secant method in ln(-ln p), which is nearly linear in the log odds ratio.
        """
        aim, slope, at = np.log(-np.log(level)), 1.0, 0.0
        log_p, fit = self.log_probability()
        for _ in range(MAX_SECANTS if log_p < UNINFORMED else 0):
            step = np.clip((aim - np.log(-log_p)) / slope, -LONGEST, LONGEST)
            before, at = log_p, at + step
            log_p, fit = self.log_probability(at, fit.beta)
            slope = max(np.log(log_p / before) / (step or 1), 0.1)
            if abs(aim - np.log(-log_p)) < TOL_BOUND:
                return float(at)
        return np.inf


class EmptyCell(NamedTuple):
    """What is known of the coupling of two values that no row has.

    Attributes
    ----------
    log_p : float
        ln of the probability of no such row, without a coupling: the greater one of both columns.
    statistic : float
        Twice the logarithm of the ratio of the likelihoods.
    side : Side
        Of this column.
    is_equal : bool
        Whether both are the higher or the lower of two values.
    """

    log_p: float
    statistic: float
    side: Side
    is_equal: bool


class Profile(NamedTuple):
    """The rows of a network, of which single columns are regressed on others.

    Attributes
    ----------
    contrasts : Contrasts
        Of the columns that vary.
    free : ndarray of bool of shape (n_columns, n_columns)
        Which couplings are in the network.
    """

    contrasts: object
    free: np.ndarray

    def _rows(self, j, k):
        """Codes of two columns where both are known, which rows these are, and weights."""
        codes = self.contrasts.problem.cells.codes[:, [j, k]]
        known = (codes >= 0).all(axis=1)
        return codes[known], known, self.contrasts.weights[known]

    def _features(self, known, one, other):
        """1, and the features of the columns that one column is coupled with, but another."""
        column = self.contrasts.column
        used = self.contrasts.coupled & self.free[one][column] & ~np.isin(column, (one, other))
        x = self.contrasts.features[np.ix_(known, used)]
        return np.column_stack([np.ones(len(x)), x])

    def empty_cell(self, j, k):
        """The most improbable one of the pairs of values that no row has; None if there is none."""
        codes, known, weights = self._rows(j, k)
        x = self._features(known, j, k), self._features(known, k, j)
        found = []
        for a, b in product(*map(np.unique, codes.T)):
            one, other = codes.T == np.array([[a], [b]])
            if (one & other).any():
                continue
            sides = Side.of(x[0], one, other, weights), Side.of(x[1], other, one, weights)
            nulls = [side.log_probability() for side in sides]
            (log_p, null), side = max(zip(nulls, sides, strict=True), key=lambda one: one[0][0])
            found.append(EmptyCell(log_p, 2 * (side.limit.value - null.value), side, a == b))
        return min(found, key=lambda cell: cell.log_p, default=None)

    def splits(self, j, k):
        """P value of the likelihood ratio of two columns, where the cells do not show why.

        The least of those of each value of a column, or of each split of an ordinal one, times
        their number.
        """
        codes, known, weights = self._rows(j, k)
        column, coupled = self.contrasts.column, self.contrasts.coupled
        found = []
        for one, other, own in ((j, k, codes[:, 0]), (k, j, codes[:, 1])):
            x, values = self._features(known, one, other), np.unique(own)
            added = self.contrasts.features[np.ix_(known, coupled & (column == other))]
            more = np.column_stack([x, added])
            has = np.greater_equal if self.contrasts.problem.trends[one] else np.equal
            splits = has(own, values[len(values) == 2 :, None])
            gains = [
                logistic(more, y, weights).value - logistic(x, y, weights).value for y in splits
            ]
            found.append(len(splits) * chi2.sf(2 * max(gains), added.shape[1]))
        return min(1.0, max(found))
