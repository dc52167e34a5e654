"""Tables as codes 0, 1, ...: strings by category, numbers by bin."""

import numpy as np

from sklearn_boltz.tables._bins import CELLS
from sklearn_boltz.tables._categories import are_bits
from sklearn_boltz.tables._cells import MISSING_CODES, columns_of
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._kinds import Kind, Need

# Number of bins of a column of numbers. On three tables of scikit-learn, 4 and 6 give lower
# accuracy, and 12 no higher one.
MAX_BINS = 8


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
