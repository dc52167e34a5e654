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
    found = batches.map_reduce(_part, partial(_merge, n_cells))
    lengths, tables, keys, _ = _least(n_cells, found)
    numbers = np.array(sorted(lengths))
    starts = np.cumsum([0, *(lengths[k] for k in numbers)])
    rows = starts[np.searchsorted(numbers, keys["batch"])] + keys["row"]
    return _joined(tables), rows, int(starts[-1])


def some_of_table(X, weights, n_cells):
    """-> random rows of a table, in their order, and their weights, as of `sample_rows`."""
    n_rows = _most_rows(X, n_cells)
    if X.shape[0] <= n_rows:
        return X, weights
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], n_rows, replace=False))
    return some_rows(X, rows), weights[rows]


def _most_rows(X, n_cells):
    return max(n_cells // X.shape[1], LEAST_ROWS)


def _part(k, batch):
    """The number of rows of a batch; tables; their rows' batch, number and place; and its limit."""
    X = of_batch(batch)
    keys = np.empty(X.shape[0], dtype=[("batch", int), ("row", int), ("place", float)])
    keys["batch"], keys["row"] = k, np.arange(len(keys))
    keys["place"] = np.random.default_rng(k).random(len(keys))
    return {k: len(keys)}, [X], keys, 1.0


def _merge(n_cells, one, other):
    names, others = _names(one[1][0]), _names(other[1][0])
    if names != others:
        raise ValueError(
            f"In batch {min(other[0])}: the columns are {some_of(others)}, but those of batch "
            f"{min(one[0])} are {some_of(names)}. Select these, in this order."
        )
    limit = min(one[3], other[3])
    one, other = _below(limit, one), _below(limit, other)
    both = one[0] | other[0], one[1] + other[1], np.concatenate([one[2], other[2]]), limit
    are_many = len(both[2]) > 2 * _most_rows(both[1][0], n_cells)
    return _least(n_cells, both) if are_many else both


def _names(X):
    return names_of(X) if is_frame(X) else list(range(X.shape[1]))


def _least(n_cells, found):
    """The rows whose places come first."""
    n_rows, places = _most_rows(found[1][0], n_cells), found[2]["place"]
    return found if len(places) <= n_rows else _below(np.partition(places, n_rows)[n_rows], found)


def _below(limit, found):
    """The rows whose places are below a limit."""
    lengths, tables, keys, is_below = found
    if is_below <= limit:
        return found
    own = np.flatnonzero(keys["place"] < limit)
    return lengths, [some_rows(_joined(tables), own)], keys[own], limit


def _joined(tables):
    try:
        return joined(tables)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Batches have columns of types that are not alike: {error}. Convert them to one type."
        ) from error
