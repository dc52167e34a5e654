"""Tables as codes 0, 1, ...: strings by category, numbers by bin."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._bins import CELLS
from sklearn_boltz.tables._categories import are_bits
from sklearn_boltz.tables._cells import MISSING_CODES, columns_of, missing_cells
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._kinds import Kind, Need

# Number of bins of a column of numbers. On three tables of scikit-learn, 4 and 6 give lower
# accuracy, and 12 no higher one.
MAX_BINS = 8


class Coded(NamedTuple):
    """Rows of a table, and as a density takes them: by default in codes.

    Attributes
    ----------
    table : Encoder or None
    X : data frame or array of shape (n_samples, n_columns)
    codes : ndarray of the same shape
        NaN where a cell is missing, or has a value that `table` does not know. Without a table, it
        is X.
    """

    table: Encoder | None
    X: object
    codes: np.ndarray

    def by(self, table):
        """The rows in the codes of another table, of which only changed columns are encoded."""
        codes = self.codes.copy()
        for j, (_, cells) in enumerate(columns_of(self.X)):
            if table.columns[j] is not self.table.columns[j]:
                codes[:, j] = table.columns[j].encode(cells, "missing")
        return Coded(table, self.X, codes)

    def some(self, places):
        """Some of the rows; themselves, if these are all."""
        if isinstance(places, np.ndarray) and len(places) == len(self.codes):
            return self
        X = some_rows(self.X, places)
        return Coded(self.table, X, X if self.table is None else self.codes[places])

    def numbers(self, columns):
        """The cells of some columns as float64: a dict from their numbers to arrays."""
        cells = [cells for _, cells in columns_of(self.X)]
        return {j: self.table.columns[j].finite(cells[j]) for j in columns}

    def log_density(self, codes=None):
        """`Encoder.log_density` of the rows, whose missing cells may have other codes."""
        return self.table.log_density(self.X, self.codes if codes is None else codes)

    def log_unseen(self, n_rows):
        """Summands of ln p of each row by unseen values, which are missing in its codes.

        ln 1 / (n + 1) for each, and ln n / (n + 1) for each seen value of a column of categories.
        """
        seen = ~np.isnan(self.codes)
        observed = seen if seen.all() else ~missing_cells(self.X)
        n_unseen = (observed & ~seen).sum(axis=1)
        n_seen = (observed & seen & self.table.is_word & ~self.table.is_binned).sum(axis=1)
        return n_seen * np.log(n_rows) - (n_seen + n_unseen) * np.log(n_rows + 1)


def mean_log_density(table, codes, shares):
    """Means of `Encoder.log_density` of missing cells, whose codes have shares, (n, n_values)."""
    total = np.zeros(len(codes))
    for column, own, of_codes in zip(table.columns, shares, codes.T, strict=True):
        if column.bins is not None:
            means = column.bins.mean_log_density
            total += np.where(np.isnan(of_codes), own[:, : len(means)] @ means, 0)
    return total


def coded_table(X, weights, kinds):
    """Kinds of the columns: numbers have a few bins.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
    weights : ndarray of float64 of shape (n_samples,)
    kinds : list of Kind or None
        What the user says of each column.

    Returns
    -------
    table : Encoder
    """
    table = Encoder.learn(X, None, Need(most_bins=MAX_BINS), kinds, weights)
    binned = table.holds_numbers & table.declared("auto")
    return table.with_bins(X, binned, weights, MAX_BINS)


def smooth_table(X, weights, kinds):
    """Kinds with levels, and with as many bins as functions of numbers take."""
    kinds = _closed(kinds or [Kind()] * X.shape[1], X)
    table = Encoder.learn(X, None, Need(bins=True, most_bins=CELLS), kinds, weights)
    return table.with_bins(X, _left(table, X), weights, CELLS).with_levels()


def _left(table, X):
    """Which columns have neither levels nor bins nor bits: in arrays, these may be codes."""
    pairs = zip(table.columns, columns_of(X), strict=True)
    return np.array([
        column.categories is None and not are_bits(column.numbers(cells))
        for column, (_, cells) in pairs
    ])  # fmt: skip


def _closed(kinds, X):
    """Kinds of columns where those are said that are certainly no numbers but levels.

    A single number has no variance. -1 beside 0 and 1 may be a code for a missing cell, of which
    there is a warning; or a level.
    """
    kinds = list(kinds)
    for j, (_, cells) in enumerate(columns_of(X)):
        if not kinds[j].is_open:
            continue
        values = cells[np.isfinite(cells)] if cells.dtype.kind in "iuf" else np.empty(0)
        values = set(np.unique(values).tolist())
        code = next((code for code in MISSING_CODES if values - {code} == {0, 1}), None)
        is_coded = code is not None and code in values
        is_constant = len(values) == 1 and not values <= {0, 1}
        if is_coded or is_constant:
            kinds[j] = Kind("ordinal")
    return kinds
