"""Distinct rows of small integers."""

import numpy as np


def distinct_states(rows, weights):
    """Collapse equal rows of small integers.

    Parameters
    ----------
    rows : ndarray of bool or unsigned int of shape (n_rows, n_features)
    weights : ndarray of float64 of shape (n_rows,)

    Returns
    -------
    rows : ndarray of shape (n_distinct, n_features)
    weights : ndarray of float64 of shape (n_distinct,)
        The sums over equal rows.
    """
    rows, first, inverse = find_distinct(rows)
    return rows[first], np.bincount(inverse, weights)


def find_distinct(rows):
    """Find the distinct rows of small integers.

    Parameters
    ----------
    rows : ndarray of bool or unsigned int of shape (n_rows, n_features)

    Returns
    -------
    rows : ndarray of shape (n_rows, n_features)
        The same as numbers.
    first : ndarray of int of shape (n_distinct,)
        First occurrence of each distinct row.
    inverse : ndarray of int of shape (n_rows,)
        Number of the distinct row that each row equals.
    """
    rows = rows.view(np.uint8) if rows.dtype == bool else rows
    widths = [max(1, int(top).bit_length()) for top in rows.max(axis=0)]
    if sum(widths) <= 64:
        keys = np.zeros(len(rows), dtype=np.uint64)
        for column, width in zip(rows.T, widths, strict=True):
            keys <<= np.uint64(width)
            keys |= column
    else:
        packed = np.packbits(rows, axis=1) if max(widths) == 1 else np.ascontiguousarray(rows)
        keys = packed.view(np.dtype((np.void, packed.itemsize * packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows, first, inverse.ravel()
