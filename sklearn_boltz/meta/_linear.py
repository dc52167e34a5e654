"""Means of numbers that are linear in the other cells of a row."""

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.location._fit import ScoredRows, fit_one
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.numerics._threads import row_blocks

# Rows times the third power of the number of columns of numbers, up to which the fit takes seconds;
# and rows for each of these columns at least.
MOST_WORK, LEAST_ROWS = 5e8, 5
# Training rows at most: with 50 terms, more make the variances of means smaller by 0.15 %.
MOST_ROWS = 2**15
# Cells of a prior with the variance of the column, which make all covariances positive definite.
# One cell would hide relations that are nearly exact, as of a weight, a later one and the gain.
STRENGTH = 0.1
# Residual variance, in ratio to that of the column, below which the other columns all but determine
# a number.
COLLINEAR = 0.01
# Values of a category at most that numbers are linear in.
MOST_LEVELS = 64
# What is added to sums that may be 0, as of weights.
TINY = 1e-300
# Rows whose means are computed together.
BLOCK_ROWS = 500


class LinearMeans:
    """E[number | observed cells of its row], of numbers that are Gaussian given categories.

    That is the location model, in which a missing category counts by its probabilities.

    Parameters
    ----------
    numeric : ndarray of bool of shape (n_columns,)
        Which columns are numbers; all others are categories.
    n_values : ndarray of int of shape (n_columns,)
        Number of codes of each column.
    """

    def __init__(self, numeric, n_values):
        self._numeric, self._n_values = numeric, n_values

    def fit(self, rows, weights):
        """Learn from `Coded` rows; -> self, or None if there are too few of them for that."""
        codes, n_numbers = rows.codes, self._numeric.sum()
        n_rows = int(min(len(codes), MOST_ROWS, MOST_WORK / max(n_numbers, 1) ** 3))
        if not 0 < LEAST_ROWS * n_numbers <= n_rows:
            return None
        columns = [rows.table.columns[j].bins for j in np.flatnonzero(self._numeric)]
        ends = [(-np.inf, np.inf) if bins is None else bins.breaks[[0, -1]] for bins in columns]
        numbers = np.clip(self._numbers(rows), *np.transpose(ends))  # typing errors lie beyond
        self._ends = np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)
        moments = np.array([_moments(own, weights) for own in numbers.T])
        self._center, self._scale = moments[:, 0], np.sqrt(np.maximum(moments[:, 1], TINY))
        # A missing category counts as the mean. The probabilities of a network that has learned
        # these rows know the numbers, and are no better here.
        shares = [
            np.bincount(own[known].astype(np.intp), weights[known], n)
            / (weights[known].sum() + TINY)
            for own, known, n in zip(codes.T, ~np.isnan(codes.T), self._n_values, strict=True)
        ]
        some = np.linspace(0, len(codes) - 1, n_rows).astype(np.intp)
        x, z = self._one_hot(codes[some], shares), (numbers[some] - self._center) / self._scale
        self._gaussian = fit_one(ScoredRows(csr_array(x), Scores(z), weights[some]), STRENGTH)
        return self

    def means(self, rows, shares):
        """Means of all numbers of rows, given the shares of the codes of their missing cells.

        And how much they should count beside means of the network: the inverse variances of both
        are their weights.

        Parameters
        ----------
        rows : Coded
        shares : list of ndarray of float64 of shape (n, n_values)

        Returns
        -------
        means : dict
            From the numbers of columns to means and weights, each of shape (n,).
        """
        at, z = self._one_hot(rows.codes, shares) @ self._gaussian.slopes.T, self._scores(rows)
        found, variances = np.empty((2, *z.shape))
        for block in row_blocks(len(z), BLOCK_ROWS):
            given = self._gaussian.observed(0, Scores(z[block]))
            found[block], variances[block] = given.means(at[block]), given.variances
        found = np.clip(found * self._scale + self._center, *self._ends_of(variances))
        columns = np.flatnonzero(self._numeric)
        spread = np.column_stack([_variance(rows.table.columns[j], shares[j]) for j in columns])
        weights = spread / (spread + variances * self._scale**2 + TINY)
        return dict(zip(columns, zip(found.T, weights.T, strict=True), strict=True))

    def _ends_of(self, variances):
        """The ends of the training cells; where others all but determine a number, further ones.

        But numbers do not become negative.
        """
        low, high = self._ends
        room = np.where(variances < COLLINEAR, high - low, 0)
        lowest = np.where(low >= 0, np.maximum(low - room, 0), low - room)
        return lowest, high + room

    def _numbers(self, rows):
        return np.column_stack([*rows.numbers(np.flatnonzero(self._numeric)).values()])

    def _scores(self, rows):
        return (self._numbers(rows) - self._center) / self._scale

    def _one_hot(self, codes, shares):
        """Categories one-hot, the missing ones by their shares."""
        blocks = [np.empty((len(codes), 0))]
        for j in np.flatnonzero(~self._numeric & (self._n_values <= MOST_LEVELS)):
            known = ~np.isnan(codes[:, j])
            own = np.eye(self._n_values[j])[np.nan_to_num(codes[:, j]).astype(np.intp)]
            blocks.append(np.where(known[:, None], own, shares[j]))
        return np.hstack(blocks)


def _moments(numbers, weights):
    """The mean and the variance of numbers, NaN left out."""
    known = ~np.isnan(numbers)
    numbers, weights = numbers[known], weights[known] + TINY
    mean = np.average(numbers, weights=weights)
    return mean, np.average((numbers - mean) ** 2, weights=weights)


def _variance(column, shares):
    """Variance of the numbers of a column, from the shares of its codes."""
    values = numbers_of(column, shares.shape[1])
    inside = 0.0 if column.bins is None else column.bins.values.var(axis=1)
    shares = shares[:, : len(values)]
    return shares @ (values**2 + inside) - (shares @ values) ** 2


def numbers_of(column, n_values):
    """The numbers that the codes of a column stand for."""
    if column.bins is not None:
        return column.bins.means
    return np.arange(n_values) if column.categories is None else column.categories.astype(float)
