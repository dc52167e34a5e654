"""Tests of pairs that the data separate, by the regressions of one column on the others.

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

Of other columns, let e and f be the residuals of the two regressions, one entry for each contrast.
Without a coupling Σ e f has the mean 0, and as its covariance the sum of the products of the
covariances of both. The test is that of the quadratic form or, if smaller, of the likelihood ratio:
with expected counts below 1, the former is too large where a cell has a row, and the latter where
it has none. Without other columns these are Pearson's X² and G².
"""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from sklearn_boltz.networks.categorical._contrasts import softmax_information
from sklearn_boltz.statistics.covariance._tests import wald_test

# The penalty on the squares of a regression's parameters, as others may be separated, too; and what
# is added to the information: sums of whole numbers have a spread where they are determined.
RIDGE, LEAST = 0.01, 1 / (2 * np.pi)
# Steps of Newton's method at most, and the gain in nats that ends them.
MAX_STEPS, TOL = 30, 1e-5
# Of a bound, steps at most, the longest one, and what may be left of ln(-ln p).
MAX_SECANTS, LONGEST, TOL_BOUND = 8, 4.0, 0.01
# ln of the probability of a cell about whose coupling the rows say nothing, given the others.
UNINFORMED = -1e-3
# The contrast of two values, by which the information is that of counts.
OF_BITS = np.array([[-0.5], [0.5]])


class Fit(NamedTuple):
    """The maximum of a regression.

    Attributes
    ----------
    beta : ndarray of shape (k, p)
    value : float
        The log-likelihood.
    chances : ndarray of shape (n, q)
        The probabilities of the states.
    log_det : float
        ln det of the information.
    """

    beta: np.ndarray
    value: float
    chances: np.ndarray
    log_det: float


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

    def fit(self, offset=0.0, start=None):
        """The maximum, with an offset of the fields of all states."""
        shape = len(self.coupled), self.x.shape[1]
        beta = np.zeros(shape) if start is None else start
        free = np.flatnonzero(self.coupled[:, None] | (np.arange(shape[1]) == 0))
        features, step = self.basis[self.own] * self.weights[:, None], np.zeros(beta.size)
        now, chances = self._at(beta, offset)
        for _ in range(MAX_STEPS):
            block = softmax_information(self.basis, chances, self.x, self.weights)
            information = block.reshape(beta.size, -1)[np.ix_(free, free)]
            expected = (chances @ self.basis) * self.weights[:, None]
            slope = ((features - expected).T @ self.x - RIDGE * beta).ravel()[free]
            step[free] = np.linalg.solve(information + RIDGE * np.eye(len(free)), slope)
            gain, size = slope @ step[free], 1.0
            if gain <= TOL:
                break
            while (then := self._at(beta + size * step.reshape(shape), offset))[0] < now:
                size /= 2
            beta, (now, chances) = beta + size * step.reshape(shape), then
        log_det = np.linalg.slogdet(information + LEAST * np.eye(len(free)))[1]
        return Fit(beta, now + RIDGE / 2 * (beta**2).sum(), chances, float(log_det))

    def residuals(self, chances):
        """What the coupled contrasts exceed their means by, and their covariances in each row."""
        basis = self.basis[:, self.coupled]
        mean = chances @ basis
        both = np.einsum("na,ar,as->nrs", chances, basis, basis, optimize=True)
        return basis[self.own] - mean, both - mean[:, :, None] * mean[:, None]


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
    """

    regression: Regression
    t: np.ndarray
    limit: Fit

    @classmethod
    def of(cls, x, y, t, weights):
        """Fit the rows without the other value."""
        regression = Regression.of_bits(y, x, weights)
        return cls(regression, t, Regression.of_bits(y[~t], x[~t], weights[~t]).fit())

    def log_probability(self, log_odds=0.0, start=None):
        """ln of the probability that the cell is empty, for a log odds ratio; and the fit."""
        start = self.limit.beta if start is None else start
        fit = self.regression.fit(np.outer(log_odds * self.t, [0, 1]), start)
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
    p_value : float
        Twice the probability of no such row, without a coupling: the greater one of both columns.
    statistic : float
        Twice the logarithm of the ratio of the likelihoods.
    side : Side
        Of this column.
    is_equal : bool
        Whether both are the higher or the lower of two values.
    """

    p_value: float
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
        """The most improbable empty cell of two columns of two values; None if there is none."""
        codes, known, weights = self._rows(j, k)
        x = self._features(known, j, k), self._features(known, k, j)
        found = []
        for a, b in product((0, 1), repeat=2):
            one, other = codes.T == np.array([[a], [b]])
            if not (one.any() and other.any()) or (one & other).any():
                continue
            sides = Side.of(x[0], one, other, weights), Side.of(x[1], other, one, weights)
            nulls = [side.log_probability() for side in sides]
            (log_p, null), side = max(zip(nulls, sides, strict=True), key=lambda pair: pair[0][0])
            gain = 2 * (side.limit.value - null.value)
            found.append(EmptyCell(min(1.0, 2 * np.exp(log_p)), gain, side, a == b))
        return min(found, key=lambda cell: cell.p_value, default=None)

    def lesser_test(self, j, k):
        """The lesser one of the score test and the likelihood ratio of two columns."""
        codes, known, weights = self._rows(j, k)
        ratio, parts = 0.0, []
        for (one, other), own in zip(((j, k), (k, j)), codes.T, strict=True):
            mine, theirs = (self.contrasts.column == column for column in (one, other))
            basis = self.contrasts.basis[self.contrasts.states[one]][:, mine]
            x, coupled = self._features(known, one, other), self.contrasts.coupled
            null = Regression(basis, own, x, weights, coupled[mine])
            more = self.contrasts.features[np.ix_(known, theirs & coupled)]
            fit, whole = null.fit(), null._replace(x=np.column_stack([x, more]))
            start = np.pad(fit.beta, [(0, 0), (0, more.shape[1])])
            ratio += whole.fit(start=start).value - fit.value  # half of twice, of two
            parts.append(null.residuals(fit.chances))
        (e, of_e), (f, of_f) = parts
        score = np.einsum("n,na,nb->ab", weights, e, f).ravel()
        covariance = np.einsum("n,nac,nbd->abcd", weights, of_e, of_f, optimize=True)
        test = wald_test(score, covariance.reshape(len(score), -1))
        statistic = min(test.statistic, ratio)
        return replace(test, statistic=statistic, p_value=float(chi2.sf(statistic, test.df)))
