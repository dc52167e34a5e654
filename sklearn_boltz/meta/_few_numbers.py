"""Which of a few different numbers a missing cell has, where bins have several of them."""

import numpy as np

from sklearn_boltz.tables._bins import CELLS_APART, LEAST
from sklearn_boltz.tables._cells import MOST_LEVELS
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
    """Naive Bayes within the bins of a network, which does not know single numbers such as prices.

    p(number | others) ∝ p(bin | others) p(number | bin) Π p(cell | number) / p(cell | bin), where a
    cell counts by its value if its column has few, and else by its code.

    Parameters
    ----------
    rows : Coded
    weights : ndarray of float64 of shape (n_samples,)
    """

    def __init__(self, rows, weights):
        numbers = rows.numbers(np.flatnonzero(rows.table.is_binned))
        self._values = {j: np.unique(x[~np.isnan(x)]) for j, x in numbers.items() if are_few(x)}
        symbols, self._of_columns = self._symbols(rows), {}
        for j, values in self._values.items():
            bins = rows.table.columns[j].bins.encode(values).astype(np.intp)
            self._of_columns[j] = _learned(j, bins, symbols, weights)

    @property
    def columns(self):
        """Which columns have few different numbers."""
        return self._of_columns.keys()

    def fill(self, rows, j, shares):
        """The numbers of column j where they are missing, given the shares of its bins."""
        gaps, found = np.isnan(rows.codes[:, j]), np.full(len(rows.codes), np.nan)
        symbols = self._symbols(rows)[gaps]
        found[gaps] = self._values[j][_places(*self._of_columns[j], symbols, shares[gaps])]
        return found

    def _symbols(self, rows):
        """The place of each cell among the values of its column, or its code; -1 for others."""
        symbols = np.where(np.isnan(rows.codes), -1, rows.codes).astype(np.int32)
        for j, own in rows.numbers(self._values).items():
            values = self._values[j]
            place = np.searchsorted(values, own).clip(max=len(values) - 1)
            symbols[:, j] = np.where(values[place] == own, place, -1)
        return symbols


def _learned(j, bins, symbols, weights):
    """Dependence of the numbers of a column on the other cells.

    Parameters
    ----------
    j : int
    bins : ndarray of int of shape (n_values,)
        Of the numbers.
    symbols : ndarray of int of shape (n_samples, n_columns)
        Of all columns; j has those of its own values.
    weights : ndarray of float64 of shape (n_samples,)

    Returns
    -------
    bins : ndarray of int of shape (n_values,)
    log_share : ndarray of float64 of shape (n_values,)
        Of each number in its bin.
    log_ratios : dict
        From other columns to ln p(cell | number) / p(cell | bin), of shape (n_symbols, n_values).
    """
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
    return bins, log_share, found


def _places(bins, log_share, log_ratios, symbols, shares):
    """The most probable number of each row, given the shares of the bins."""
    scores = log_share + np.log(np.maximum(shares[:, bins], TINY))
    for k, ratios in log_ratios.items():
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
