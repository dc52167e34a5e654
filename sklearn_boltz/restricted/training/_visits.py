"""Rows that count, and how often each is visited."""

import numpy as np

from sklearn_boltz.restricted.model._coded_rows import gaps_of
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.tables._weights import checked_weights

EMPTY = "All cells are missing in all rows that count: there is nothing to learn from."


def relative(weights):
    """Weights with the mean 1; None if all are equal, or of None."""
    if weights is None or not len(weights) or (weights == weights[0]).all():
        return None
    weights = weights / weights.max()  # so that their sum is finite
    return weights * (len(weights) / weights.sum())


def of_some(weights, rows):
    """The weights of some rows; None of None."""
    return None if weights is None else weights[rows]


def rows_that_count(X, weights):
    """Which rows count: not those of weight 0, and not those of which all cells are missing."""
    counts = np.ones(X.shape[0], dtype=bool) if weights is None else weights > 0
    if rows_with_gaps(X) is not None:
        counts &= ~gaps_of(X).all(axis=1)
        if not counts.any():
            raise ValueError(EMPTY)
    return counts


def rows_with_information(X, sample_weight):
    """The rows that count, and how often each does.

    Parameters
    ----------
    X : ndarray, CSR matrix or CodedRows of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,) or None

    Returns
    -------
    X : ndarray, CSR matrix or CodedRows of shape (n_rows, n_features)
        Not copied where all rows count.
    weights : ndarray of float64 of shape (n_rows,) or None
        None for 1 each.
    """
    weights = None if sample_weight is None else checked_weights(sample_weight, X)
    counts = rows_that_count(X, weights)
    if not counts.all():
        X, weights = X[counts], of_some(weights, counts)
    return X, None if weights is None or (weights == 1).all() else weights


def visits(weights, rng):
    """How often each row is visited in an epoch: in the mean, its share of as many visits as rows.

    The whole part of that always, and the rest by systematic sampling of the rows in random
    order.

    Parameters
    ----------
    weights : ndarray of float64 of shape (n_rows,)
    rng : Generator

    Returns
    -------
    counts : ndarray of int of shape (n_rows,)
    """
    n_rows, order = len(weights), rng.permutation(len(weights))
    ends = np.cumsum(weights[order])
    ends *= n_rows / ends[-1]
    ends[-1] = n_rows  # without rounding
    counts = np.empty(n_rows, dtype=np.int64)
    counts[order] = np.diff(np.floor(ends + rng.random()), prepend=0)
    return counts
