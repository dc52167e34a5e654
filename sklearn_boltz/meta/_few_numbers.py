"""Which of a few different numbers a missing cell has, where bins have several of them."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._bins import CELLS_APART, LEAST
from sklearn_boltz.tables._cells import MOST_LEVELS, columns_of
from sklearn_boltz.tables._column import MOST_CODES

# The least share of which a logarithm is taken.
TINY = 1e-12


def are_few(numbers):
    """Whether different numbers are few, and those of many cells, such as 0, 0.5 and 2.5."""
    known = numbers[~np.isnan(numbers)]
    values = np.unique(known)
    most = MOST_LEVELS if (values == np.floor(values)).all() else MOST_CODES
    return len(values) <= LEAST or len(values) <= min(most, len(known) / CELLS_APART)


class FewNumbers:
    """Naive Bayes inside of the bins of a network, which knows no single numbers, such as prices.

    p(number | others) ∝ p(bin | others) p(number | bin) Π p(cell | number) / p(cell | bin), where a
    cell counts by its value if its column has few, and else by its code.

    Parameters
    ----------
    table : Encoder
    """

    def __init__(self, table):
        self._encoder = table

    def fit(self, X, codes, weights):
        """Count the cells of a table and its codes; -> self."""
        binned = [j for j, column in enumerate(self._encoder.columns) if column.bins is not None]
        numbers = self._numbers(X, binned)
        numbers = {j: own for j, own in numbers.items() if are_few(own)}
        self._values = {j: np.unique(own[~np.isnan(own)]) for j, own in numbers.items()}
        symbols = self._symbols(numbers, codes)
        self._of_columns = {}
        for j, values in self._values.items():
            bins = self._encoder.columns[j].bins.encode(values).astype(np.intp)
            self._of_columns[j] = _OfColumn.learn(j, bins, symbols, weights)
        return self

    @property
    def columns(self):
        """Which columns have few different numbers."""
        return self._of_columns.keys()

    def fill(self, X, codes, rows, j, shares):
        """The numbers of column j in some rows of a table, given the shares of its bins in all."""
        numbers, few = self._numbers(X, self._values), self._of_columns[j]
        symbols = self._symbols(numbers, codes)[rows]
        return self._values[j][few.places(symbols, shares[rows])]

    def _numbers(self, X, few):
        cells = [cells for _, cells in columns_of(X)]
        return {j: self._encoder.columns[j].finite(cells[j]) for j in few}

    def _symbols(self, numbers, codes):
        """The place of each cell among the values of its column, or its code; -1 for others."""
        symbols = np.where(np.isnan(codes), -1, codes).astype(np.int32)
        for j, own in numbers.items():
            values = self._values[j]
            place = np.searchsorted(values, own).clip(max=len(values) - 1)
            symbols[:, j] = np.where(values[place] == own, place, -1)
        return symbols


class _OfColumn(NamedTuple):
    """Information of other cells about the numbers of a column.

    Attributes
    ----------
    bins : ndarray of int of shape (n_values,)
    log_share : ndarray of float64 of shape (n_values,)
        Of each number in its bin.
    log_ratios : dict
        From other columns to ln p(cell | number) / p(cell | bin), of shape (n_symbols, n_values).
    """

    bins: np.ndarray
    log_share: np.ndarray
    log_ratios: dict

    @classmethod
    def learn(cls, j, bins, symbols, weights):
        """From the symbols of all columns, of which j has those of its own values."""
        known = symbols[:, j] >= 0
        own, weights, n_values = symbols[known, j], weights[known], len(bins)
        sizes = np.bincount(own, weights, n_values)
        log_share = np.log(sizes / np.bincount(bins, sizes)[bins])
        found = {}
        for k in range(symbols.shape[1]):
            other = symbols[known, k]
            if k != j and (other >= 0).any():
                counts = np.zeros((other.max() + 1, n_values))
                there = other >= 0
                np.add.at(counts, (other[there], own[there]), weights[there])
                found[k] = _log_ratios(counts, bins)
        return cls(bins, log_share, found)

    def places(self, symbols, shares):
        """The most probable number of each row, given the shares of the bins."""
        scores = self.log_share + np.log(np.maximum(shares[:, self.bins], TINY))
        for k, ratios in self.log_ratios.items():
            is_known = (symbols[:, k] >= 0) & (symbols[:, k] < len(ratios))
            scores[is_known] += ratios[symbols[is_known, k]]
        return scores.argmax(axis=1)


def _log_ratios(counts, bins):
    """ln p(symbol | number) / p(symbol | bin); a number counts one cell of its bin more."""
    of_bin = np.zeros((len(counts), bins.max() + 1))
    np.add.at(of_bin.T, bins, counts.T)
    of_bin = (of_bin + 1 / len(counts)) / (of_bin.sum(axis=0) + 1)
    of_bin = of_bin[:, bins]
    return np.log((counts + of_bin) / (counts.sum(axis=0) + 1) / of_bin)
