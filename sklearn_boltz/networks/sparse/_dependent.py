"""Pairs of columns that are dependent by Pearson's chi-squared test, whatever a penalty selects."""

import numpy as np
from scipy.stats import chi2

# Of the tests of all pairs together.
LEVEL = 0.01


def dependent_pairs(codes, weights, pairs):
    """Those that the test finds with Holm's adjustment, the smallest p value first.

    Parameters
    ----------
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell.
    weights : ndarray of shape (n,)
    pairs : list of pairs of int
        Of columns.
    """
    p_values = np.array([pearson_p_value(*codes[:, pair].T, weights) for pair in pairs])
    order = np.argsort(p_values, kind="stable")
    rejected = p_values[order] * np.arange(len(order), 0, -1) < LEVEL
    n_rejected = len(order) if rejected.all() else int(rejected.argmin())
    return [pairs[k] for k in order[:n_rejected]]


def pearson_p_value(one, other, weights):
    """The p value of two columns of codes, in the rows that have both."""
    known = (one >= 0) & (other >= 0)
    shape = one.max(initial=0) + 1, other.max(initial=0) + 1
    table = np.zeros(shape)
    np.add.at(table, (one[known], other[known]), weights[known])
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    df = (table.shape[0] - 1) * (table.shape[1] - 1)
    if df < 1:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), df))
