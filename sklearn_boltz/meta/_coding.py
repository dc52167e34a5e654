"""Encoding of tables as codes 0, 1, ...: words by category, numbers by bin."""

import warnings
from typing import NamedTuple

import numpy as np

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.tables._cells import columns_of, is_frame, listed, missing_cells
from sklearn_boltz.tables._table import Column, learn_table, ordered_columns

# Number of bins of a column of numbers. On three tables of scikit-learn, 4 and 6 give lower
# accuracy, and 12 no higher one.
MAX_BINS = 8


class Bins(NamedTuple):
    """A column of numbers, binned at quantiles, with a constant density in each bin.

    Attributes
    ----------
    title : str
        Name of the column in messages.
    edges : ndarray of float64 of shape (n_bins - 1,)
        Edges between bins.
    values : ndarray of float64 of shape (n_bins,) or None
        Values of a column with few distinct values, which are then the bins.
    tails : tuple of float
        For other columns, the mean distances of values from the first and the last edge, in the
        first and the last bin. These bins are unbounded, and their density decreases
        exponentially.
    """

    title: str
    edges: np.ndarray
    values: np.ndarray | None
    tails: tuple = (1.0, 1.0)

    @classmethod
    def learn(cls, title, numbers, weights):
        """Bin a column so that all bins have about the same weight.

        Parameters
        ----------
        title : str
        numbers : ndarray of float64 of shape (n,)
            Observed values.
        weights : ndarray of float64 of shape (n,)
        """
        values, place = np.unique(numbers, return_inverse=True)
        between = values[:-1] + np.diff(values) / 2
        if len(values) <= MAX_BINS:
            return cls(title, between, values)
        below = np.cumsum(np.bincount(place, weights))
        levels = np.arange(1, MAX_BINS) / MAX_BINS * below[-1]
        # Sums of weights have rounding errors, which depend on the order of the rows.
        cuts = np.searchsorted(below, levels * (1 - 1e-12))
        edges = between[np.unique(np.minimum(cuts, len(between) - 1))]
        low, high = numbers < edges[0], numbers >= edges[-1]
        first = np.average(edges[0] - numbers[low], weights=weights[low])
        last = np.average(numbers[high] - edges[-1], weights=weights[high])
        return cls(title, edges, None, (float(first), float(last)))

    @property
    def n_values(self):
        """Number of bins."""
        return len(self.edges) + 1

    def encode(self, cells):
        """The bins of cells; NaN for missing and unseen values."""
        numbers = self._numbers(cells)
        codes = np.searchsorted(self.edges, numbers, side="right").astype(np.float64)
        codes[np.isnan(numbers)] = np.nan
        if self.values is not None:
            codes[~np.isin(numbers, self.values)] = np.nan
        return codes

    def log_density(self, cells, codes):
        """ln p(x | its bin) of each cell; for a missing cell, the mean over the given bin."""
        if self.values is not None:
            return np.zeros(len(codes))
        numbers = self._numbers(cells)
        codes, (first, last) = codes.astype(np.intp), self.tails
        inner = np.diff(self.edges)
        result = -np.log(np.concatenate([[first], inner, [last]]))[codes]
        # In units of the mean distance, so the mean is 1.
        distance = np.where(
            codes == 0, (self.edges[0] - numbers) / first, (numbers - self.edges[-1]) / last
        )
        distance[np.isnan(numbers)] = 1.0
        at_ends = (codes == 0) | (codes == len(self.edges))
        result[at_ends] -= distance[at_ends]
        return result

    def _numbers(self, cells):
        return Column(self.title).encode(cells, "missing").astype(np.float64)


class Coding:
    """The encoding of the columns of a table, some of words and some of numbers.

    Parameters
    ----------
    table : Table
        Table of the kept columns.
    bins : list of Bins or None
        Bins of each column; None for a column of words.
    kept : ndarray of int
        Columns with an observed cell.
    n_rows : float
        Total weight of all rows.
    """

    def __init__(self, table, bins, kept, n_rows):
        self.table, self.bins, self.kept, self.n_rows = table, bins, kept, n_rows

    @classmethod
    def learn(cls, X, weights, name="X"):
        """Learn the columns of a table.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
        weights : ndarray of float64 of shape (n_samples,)
        name : str
            What messages call the estimator.
        """
        missing = missing_cells(X)
        empty = missing.all(axis=0)
        kept = np.flatnonzero(~empty)
        titles = [title for title, _ in columns_of(X)]
        if not len(kept):
            raise ValueError("all cells of the table are missing. Pass rows with observed cells.")
        if empty.any():
            without = [titles[j] for j in np.flatnonzero(empty)]
            warnings.warn(
                f"{name}: {listed(without)} without an observed value "
                f"{'is' if len(without) == 1 else 'are'} left out.",
                stacklevel=find_stack_level(),
            )
        table = learn_table(some_columns(X, kept))
        bins = []
        rows = zip(table.columns, columns_of(some_columns(X, kept)), ~missing.T[kept], strict=True)
        for column, (_, cells), seen in rows:
            if column.categories is not None and column.categories.dtype.kind not in "iuf":
                bins.append(None)
                continue
            numbers = np.array(cells[seen].tolist(), dtype=np.float64)
            bins.append(Bins.learn(column.title, numbers, weights[seen]))
        return cls(table, bins, kept, float(weights.sum()))

    @property
    def n_values(self):
        """Number of values of each column, at least 2."""
        n_categories = self.table.n_categories
        n_bins = [0 if bins is None else bins.n_values for bins in self.bins]
        return np.maximum(2, np.where(n_bins, n_bins, n_categories))

    @property
    def ordered(self):
        """Which columns have ordered values."""
        return ordered_columns(self.table) | [bins is not None for bins in self.bins]

    def encode(self, X):
        """The codes of a table; NaN for cells with missing or unseen values."""
        pairs = zip(self.table.columns, self.bins, self._cells(X), strict=True)
        return np.column_stack([
            column.encode(cells, "missing") if bins is None else bins.encode(cells)
            for column, bins, cells in pairs
        ]).astype(np.float64)  # fmt: skip

    def log_density(self, X, codes):
        """ln p(x | codes) of each row, the part of the density that the codes do not contain.

        Parameters
        ----------
        X : data frame or array
        codes : ndarray of shape (n_samples, n_columns)
            Codes, also of missing cells: a missing number has the mean log-density of its bin. A
            code that is NaN leaves its column out.

        Returns
        -------
        log_density : ndarray of float64 of shape (n_samples,)
        """
        total = np.zeros(len(codes))
        for j, (bins, cells) in enumerate(zip(self.bins, self._cells(X), strict=True)):
            known = ~np.isnan(codes[:, j])
            if bins is not None and bins.values is None:
                total[known] += bins.log_density(cells[known], codes[known, j])
        return total

    def log_unseen(self, X, codes):
        """ln p of the cells in each row with a value that `learn` did not see, 1 / (n + 1) each."""
        return log_unseen(some_columns(X, self.kept), codes, self.n_rows)

    def _cells(self, X):
        return [cells for _, cells in columns_of(some_columns(X, self.kept))]


def log_unseen(X, codes, n_rows):
    """ln p of the unseen cells of each row, which are missing in its codes: 1 / (n + 1) each."""
    return -(np.isnan(codes) & ~missing_cells(X)).sum(axis=1) * np.log(n_rows + 1)


def some_columns(X, kept):
    """Some columns of a table."""
    if len(kept) == X.shape[1]:
        return X
    return X[[X.columns[j] for j in kept]] if is_frame(X) else X[:, kept]
