"""Random rows of batches, as one table."""

from functools import partial

import numpy as np

from sklearn_boltz.tables._counts import of_batch
from sklearn_boltz.tables._frames import is_frame, joined, names_of, some_rows
from sklearn_boltz.tables._phrases import some_of

# Rows at least, however many columns there are.
LEAST_ROWS = 2**14


def sample_rows(batches, n_cells):
    """Read batches once, and keep random rows.

    Which ones depends on nothing but the numbers of batches and rows. While batches are read, twice
    as many rows are in memory.

    Parameters
    ----------
    batches : Batches
    n_cells : int
        Cells of the rows, about. If there are no more, all rows are kept.

    Returns
    -------
    X : data frame or array of shape (n, n_columns)
        The rows, in their order.
    rows : ndarray of int of shape (n,)
        Their numbers among the rows of all batches.
    n_rows : int
        Number of rows of all batches.
    """
    lengths, parts = batches.map_reduce(_part, partial(_merge, n_cells))
    numbers = np.array(sorted(lengths))
    ends = np.cumsum([lengths[k] for k in numbers])
    ks, tables, rows, _ = zip(
        *sorted(_least(parts, n_cells), key=lambda part: part[0]), strict=True
    )
    starts = [ends[np.searchsorted(numbers, k)] - lengths[k] for k in ks]
    try:
        X = joined(tables)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Batches have columns of types that are not alike: {error}. Convert them to one type."
        ) from error
    return X, np.concatenate(list(map(np.add, starts, rows))), int(ends[-1])


def _part(k, batch):
    """The number of rows of a batch; and its number and table, the rows' numbers, and an order."""
    X = of_batch(batch)
    order = np.random.default_rng(k).random(X.shape[0])
    return {k: len(order)}, [(k, X, np.arange(len(order)), order)]


def _merge(n_cells, one, other):
    (k, X, *_), (other_k, other_X, *_) = one[1][0], other[1][0]
    if _names(X) != _names(other_X):
        raise ValueError(
            f"In batch {other_k}: the columns are {some_of(_names(other_X))}, but those of batch "
            f"{k} are {some_of(_names(X))}. Select these, in this order."
        )
    parts = one[1] + other[1]
    are_many = sum(len(rows) for _, _, rows, _ in parts) > 2 * _most_rows(X, n_cells)
    return one[0] | other[0], _least(parts, n_cells) if are_many else parts


def _names(X):
    return names_of(X) if is_frame(X) else list(range(X.shape[1]))


def _most_rows(X, n_cells):
    return max(n_cells // X.shape[1], LEAST_ROWS)


def _least(parts, n_cells):
    """The rows that are first in their order."""
    orders, n_rows = (
        np.concatenate([order for *_, order in parts]),
        _most_rows(parts[0][1], n_cells),
    )
    if len(orders) <= n_rows:
        return parts
    last, kept = np.partition(orders, n_rows - 1)[n_rows - 1], []
    for k, X, rows, order in parts:
        own = np.flatnonzero(order <= last)
        if len(own):
            kept.append((k, some_rows(X, own), rows[own], order[own]))
    return kept
