"""Log-probabilities of rows that are comparable for any number of missing cells."""

from zlib import crc32

import numpy as np

from sklearn_boltz.tables._cells import columns_of, missing_cells
from sklearn_boltz.tables._coded import pick, uncoded
from sklearn_boltz.tables._frames import joined
from sklearn_boltz.tables._values import form_of, is_a_float, is_number
from sklearn_boltz.tables._weights import are_counts

# Number of completions of a row with missing cells.
N_DRAWS = 10


def completed_log_weights(density, rows, seed, rest=None, **options):
    """E[ln p(x_o, x_m) | x_o] of each row, plus a constant; x_o are observed, x_m missing cells.

    Parameters
    ----------
    density : estimator
        Fitted.
    rows : data frame, array of shape (n, n_columns), or Coded
    seed : int
        Together with the content of a row, it determines the completions of that row.
    rest : callable, default=None
        Function of positions of rows and of the completed rows, which returns a term to add to ln
        p. The rows must then be an array.
    **options : dict
        Arguments of `density.impute`.

    Returns
    -------
    log_weights : ndarray of float64 of shape (n,)
        The log-weights. If the density has no `impute`, they are the plain log-probabilities.
    """
    missing = missing_cells(uncoded(rows))
    n, result = len(missing), np.empty(len(missing))
    gaps = missing.any(axis=1) if hasattr(density, "impute") else np.zeros(n, dtype=bool)
    places = np.flatnonzero(~gaps)
    if len(places):
        part = pick(rows, places)
        result[places] = _log_weights(density, part)
        if rest is not None:
            result[places] += rest(places, part)
    if not gaps.any():
        return result
    # The rows of a call of `impute` share a stream of random numbers. There is one call for each
    # distinct row, so that its completions do not depend on the other rows.
    contents = _contents(uncoded(rows), missing, np.flatnonzero(gaps))
    distinct, first, place = np.unique(contents, return_index=True, return_inverse=True)
    repeated = np.repeat(np.flatnonzero(gaps)[first], N_DRAWS)
    completions = [
        density.impute(
            pick(rows, some),
            how="sample",
            random_state=crc32(content.encode(), seed) % 2**31,
            **options,
        )
        for content, some in zip(distinct, repeated.reshape(-1, N_DRAWS), strict=True)
    ]
    draws = _log_weights(density, joined(completions)).reshape(-1, N_DRAWS)[place.ravel()]
    if rest is not None:  # of each row, as equal codes may stand for different numbers
        codes = np.array(completions)[place.ravel()].reshape(draws.size, -1)
        draws += rest(np.repeat(np.flatnonzero(gaps), N_DRAWS), codes).reshape(draws.shape)
    result[gaps] = draws.mean(axis=1)
    return result


def _contents(rows, missing, places):
    """A text for each of some rows; rows with equal cells have equal texts."""
    columns = [cells[places].tolist() for _, cells in columns_of(rows)]
    # The same numbers can be floats in one table and integers in another.
    columns = [
        [None if gap else _content(cell) for cell, gap in zip(cells, gaps, strict=True)]
        for cells, gaps in zip(columns, missing[places].T, strict=True)
    ]  # fmt: skip
    return np.array([repr(row) for row in zip(*columns, strict=True)])


def _content(cell):
    if not is_number(cell):
        return cell
    return float(cell) if is_a_float(cell) else form_of(cell)


def _log_weights(density, rows):
    """ln p(x) plus a constant, without ln Z if possible."""
    if hasattr(density, "free_energy"):
        return -np.asarray(density.free_energy(rows), dtype=np.float64)
    return np.asarray(density.score_samples(rows), dtype=np.float64)


def quantile(values, weights, q):
    """The weighted q-quantile of values.

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
    # Sums of weights have rounding errors, which depend on their order.
    end = np.searchsorted(below, q * below[-1] * (1 - 1e-12))
    is_end = below[end] <= q * below[-1] * (1 + 1e-12)
    return float(values[end] + values[min(end + is_end, len(values) - 1)]) / 2


def left_out(rows, weights, n_folds, generator):
    """Yield weights of rows for cross-validation with weighted rows.

    Equal rows are in the same fold, in which one of them is left out: one count of its weight, or
    all of a weight that is no count. Repeating a row is then the same as increasing its count, and
    for distinct rows this is ordinary cross-validation.

    Parameters
    ----------
    rows : ndarray of shape (n, n_columns)
        The rows. NaN is a missing cell.
    weights : ndarray of float64 of shape (n,)
    n_folds : int
    generator : RandomState

    Yields
    ------
    left : ndarray of float64 of shape (n,)
        The weights without those that are left out.
    held : ndarray of int
        Positions of the rows of the fold.
    """
    _, first, place = np.unique(
        np.nan_to_num(rows, nan=-1), axis=0, return_index=True, return_inverse=True
    )
    folds, counts = generator.permutation(len(first)) % n_folds, are_counts(weights)
    for fold in range(min(n_folds, len(first))):
        left, one = weights.copy(), first[folds == fold]
        left[one] -= np.minimum(left[one], 1) if counts else left[one]
        if left.any():
            yield left, np.flatnonzero(folds[place.ravel()] == fold)
