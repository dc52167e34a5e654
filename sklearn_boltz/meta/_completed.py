"""Log-probabilities of rows that are comparable, however many of their cells are missing."""

from numbers import Real
from zlib import crc32

import numpy as np
from sklearn.utils import _safe_indexing

from sklearn_boltz._cells import columns_of, missing_cells

# Completions of a row with missing cells.
N_DRAWS = 10


def completed_log_weights(density, rows, seed, rest=None, **options):
    """E[ln p(x_o, x_m) | x_o] plus a constant, of the observed and missing cells of each row.

    Parameters
    ----------
    density : estimator
        Fitted.
    rows : data frame or array of shape (n, n_columns)
    seed : int
        With the content of a row, it decides on the completions of that row.
    rest : callable, default=None
        From places of rows and these rows completed, what is to be added to ln p. The rows are
        then an array.
    **options : dict
        For `density.impute`.

    Returns
    -------
    log_weights : ndarray of float64 of shape (n,)
        Of all rows without another term if the density has no `impute`.
    """
    missing, result = missing_cells(rows), np.empty(len(rows))
    gaps = missing.any(axis=1) if hasattr(density, "impute") else np.zeros(len(rows), dtype=bool)
    places = np.flatnonzero(~gaps)
    if len(places):
        part = _safe_indexing(rows, places)
        result[places] = _log_weights(density, part)
        if rest is not None:
            result[places] += rest(places, part)
    if not gaps.any():
        return result
    # Rows of a call of `impute` share a stream of random numbers, so that each distinct row has a
    # call of its own: its completions then do not depend on the other rows.
    contents = _contents(rows, missing, np.flatnonzero(gaps))
    distinct, first, place = np.unique(contents, return_index=True, return_inverse=True)
    repeated = np.repeat(np.flatnonzero(gaps)[first], N_DRAWS)
    completions = [
        density.impute(
            _safe_indexing(rows, some),
            how="sample",
            random_state=crc32(content.encode(), seed) % 2**31,
            **options,
        )
        for content, some in zip(distinct, repeated.reshape(-1, N_DRAWS), strict=True)
    ]
    draws = np.concatenate([_log_weights(density, complete) for complete in completions])
    if rest is not None:
        draws += rest(repeated, np.concatenate(completions))
    result[gaps] = draws.reshape(-1, N_DRAWS).mean(axis=1)[place.ravel()]
    return result


def _contents(rows, missing, places):
    """A text for each of some rows, the same for rows whose cells are the same."""
    columns = [cells[places].tolist() for _, cells in columns_of(rows)]
    # The numbers of a column are floats in one table and integers in another.
    columns = [
        [None if gap else float(cell) if isinstance(cell, Real) else cell
         for cell, gap in zip(cells, gaps, strict=True)]
        for cells, gaps in zip(columns, missing[places].T, strict=True)
    ]  # fmt: skip
    return np.array([repr(row) for row in zip(*columns, strict=True)])


def _log_weights(density, rows):
    """ln p(x) plus a constant, without ln Z where that can be."""
    if hasattr(density, "free_energy"):
        return -np.asarray(density.free_energy(rows), dtype=np.float64)
    return np.asarray(density.score_samples(rows), dtype=np.float64)


def quantile(values, weights, q):
    """Between the values where a share q of the weights ends and where the next begins.

    Parameters
    ----------
    values, weights : ndarray of float64 of shape (n,)
    q : float

    Returns
    -------
    value : float
    """
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(weights[order])
    # Weights of which some are equal sum up differently by rounding.
    end = np.searchsorted(below, q * below[-1] * (1 - 1e-12))
    is_end = below[end] <= q * below[-1] * (1 + 1e-12)
    return float(values[end] + values[min(end + is_end, len(values) - 1)]) / 2


def left_out(rows, weights, n_folds, generator):
    """Yield weights of distinct rows in which one count of each row of a fold is left out.

    So equal rows and weights are the same, and of rows that stand once this is cross-validation.

    Parameters
    ----------
    rows : ndarray of shape (n, n_columns)
        NaN where a cell is missing.
    weights : ndarray of float64 of shape (n,)
    n_folds : int
    generator : RandomState

    Yields
    ------
    places : ndarray of int
        One of each set of equal rows that are left.
    weights : ndarray of float64
        Of these.
    held, held_weights : ndarray
        Those of the fold, and the weights that they have in the table.
    """
    _, first, place = np.unique(
        np.nan_to_num(rows, nan=-1), axis=0, return_index=True, return_inverse=True
    )
    totals = np.bincount(place.ravel(), weights)
    folds = generator.permutation(len(first)) % n_folds
    for fold in range(min(n_folds, len(first))):
        held = folds == fold
        rest = np.maximum(totals - held, 0)
        if rest.any():
            yield first[rest > 0], rest[rest > 0], first[held], totals[held]
