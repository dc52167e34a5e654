"""Tables as codes 0, 1, ...: strings by category, numbers by bin."""

import warnings

import numpy as np

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.tables._cells import columns_of, missing_cells
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._frames import some_columns
from sklearn_boltz.tables._kinds import Need
from sklearn_boltz.tables._phrases import join_columns

# Number of bins of a column of numbers. On three tables of scikit-learn, 4 and 6 give lower
# accuracy, and 12 no higher one.
MAX_BINS = 8


def coded_table(X, weights, name, kinds=None):
    """Which columns have an observed cell, and what they are: numbers have a few bins.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
    weights : ndarray of float64 of shape (n_samples,)
    name : str
        What messages call the estimator.
    kinds : list of Kind, default=None
        What the user says of each column.

    Returns
    -------
    kept : ndarray of int
    table : Encoder
        Of these columns.
    """
    kept = observed_columns(X, missing_cells(X), name)
    X, kinds = some_columns(X, kept), kinds and [kinds[j] for j in kept]
    table = Encoder.learn(X, None, Need(most_bins=MAX_BINS), kinds, weights)
    binned = table.holds_numbers & table.declared("auto")
    return kept, table.with_bins(X, binned, weights, MAX_BINS)


def expected_log_density(table, X, codes, shares):
    """`Encoder.log_density` of rows, whose missing cells have codes by shares, (n, n_values)."""
    total = table.log_density(X, codes)
    for column, own, of_codes in zip(table.columns, shares, codes.T, strict=True):
        if column.bins is not None:
            means = column.bins.mean_log_density
            total += np.where(np.isnan(of_codes), own[:, : len(means)] @ means, 0)
    return total


def observed_columns(X, missing, name):
    """The numbers of the columns with an observed cell; a warning names the others."""
    empty = missing.all(axis=0)
    if empty.all():
        raise ValueError("all cells of the table are missing. Pass rows with observed cells.")
    without = [title for (title, _), is_empty in zip(columns_of(X), empty, strict=True) if is_empty]
    if without:
        warnings.warn(
            f"{name}: {join_columns(without)} without an observed value "
            f"{'is' if len(without) == 1 else 'are'} left out.",
            stacklevel=find_stack_level(),
        )
    return np.flatnonzero(~empty)


def log_unseen(table, X, codes, n_rows):
    """Summands of ln p of each row by unseen values, which are missing in its codes.

    ln 1 / (n + 1) for each, and ln n / (n + 1) for each seen value of a column of categories.
    """
    observed, seen = ~missing_cells(X), ~np.isnan(codes)
    n_unseen = (observed & ~seen).sum(axis=1)
    n_seen = (observed & seen & table.is_word & ~table.is_binned).sum(axis=1)
    return n_seen * np.log(n_rows) - (n_seen + n_unseen) * np.log(n_rows + 1)
