"""Encoding of tables as codes 0, 1, ...: words by category, numbers by bin."""

import warnings

import numpy as np

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.tables._cells import columns_of, listed, missing_cells
from sklearn_boltz.tables._frames import some_columns
from sklearn_boltz.tables._kinds import Need
from sklearn_boltz.tables._table import Table

# Number of bins of a column of numbers. On three tables of scikit-learn, 4 and 6 give lower
# accuracy, and 12 no higher one.
MAX_BINS = 8


class Coding:
    """The encoding of the columns of a table, some of words and some of numbers.

    Parameters
    ----------
    table : Table
        Table of the kept columns, in which all numbers have bins.
    kept : ndarray of int
        Columns with an observed cell.
    n_rows : float
        Total weight of all rows.
    """

    def __init__(self, table, kept, n_rows):
        self.table, self.kept, self.n_rows = table, kept, n_rows

    @classmethod
    def learn(cls, X, weights, name, kinds=None):
        """Learn the columns of a table.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
        weights : ndarray of float64 of shape (n_samples,)
        name : str
            What messages call the estimator.
        kinds : list of Kind, default=None
            What the user says of each column.
        """
        kept = observed_columns(X, missing_cells(X), name)
        X = some_columns(X, kept)
        kinds = None if kinds is None else [kinds[j] for j in kept]
        table = Table.learn(X, None, Need(most_bins=MAX_BINS), kinds, weights)
        table = table.with_bins(X, table.holds_numbers & table.is_open, weights, MAX_BINS)
        return cls(table, kept, float(weights.sum()))

    @property
    def n_values(self):
        """Number of values of each column, at least 2."""
        return np.maximum(2, self.table.n_categories)

    @property
    def ordered(self):
        """Which columns have ordered values."""
        return self.table.is_ordered

    def encode(self, X):
        """The codes of a table; NaN for cells with missing or unseen values."""
        return self.table.encode(some_columns(X, self.kept), "missing").astype(np.float64)

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
        return self.table.log_density(some_columns(X, self.kept), codes)

    def expected_log_density(self, X, codes, shares):
        """The same, of missing cells whose codes have shares, each (n_samples, n_values)."""
        total = self.log_density(X, codes)
        for column, own, of_codes in zip(self.table.columns, shares, codes.T, strict=True):
            if column.bins is not None:
                means = column.bins.mean_log_density
                total += np.where(np.isnan(of_codes), own[:, : len(means)] @ means, 0)
        return total

    def log_unseen(self, X, codes):
        """What values that `learn` did not see add to ln p of each row; see `log_unseen`."""
        return log_unseen(self.table, some_columns(X, self.kept), codes, self.n_rows)


def observed_columns(X, missing, name):
    """The numbers of the columns with an observed cell; a warning names the others."""
    empty = missing.all(axis=0)
    if empty.all():
        raise ValueError("all cells of the table are missing. Pass rows with observed cells.")
    without = [title for (title, _), is_empty in zip(columns_of(X), empty, strict=True) if is_empty]
    if without:
        warnings.warn(
            f"{name}: {listed(without)} without an observed value "
            f"{'is' if len(without) == 1 else 'are'} left out.",
            stacklevel=find_stack_level(),
        )
    return np.flatnonzero(~empty)


def log_unseen(table, X, codes, n_rows):
    """What unseen values, which are missing in its codes, add to ln p of each row.

    ln 1 / (n + 1) for each, and ln n / (n + 1) for each seen value of a column of categories.
    """
    observed, seen = ~missing_cells(X), ~np.isnan(codes)
    n_unseen = (observed & ~seen).sum(axis=1)
    n_seen = (observed & seen & table.is_word & ~table.is_binned).sum(axis=1)
    return n_seen * np.log(n_rows) - (n_seen + n_unseen) * np.log(n_rows + 1)
