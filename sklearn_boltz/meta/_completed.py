"""Log-probabilities of rows that are comparable, however many of their cells are missing."""

import numpy as np
from sklearn.utils import _safe_indexing

from sklearn_boltz._cells import missing_cells

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
        For the completions of rows with missing cells.
    rest : callable, default=None
        From places of rows and these rows completed, what is to be added to ln p.
    **options : dict
        For `density.impute`.

    Returns
    -------
    log_weights : ndarray of float64 of shape (n,)
        Of all rows without another term if the density has no `impute`.
    """
    gaps, result = missing_cells(rows).any(axis=1), np.empty(len(rows))
    if not hasattr(density, "impute"):
        gaps[:] = False
    for places, n_draws in ((np.flatnonzero(~gaps), 1), (np.flatnonzero(gaps), N_DRAWS)):
        if not len(places):
            continue
        part, draws = _safe_indexing(rows, places), []
        for k in range(n_draws):
            complete = part
            if gaps[places[0]]:
                complete = density.impute(part, how="sample", random_state=seed + k, **options)
            found = _log_weights(density, complete)
            draws.append(found if rest is None else found + rest(places, complete))
        result[places] = np.mean(draws, axis=0)
    return result


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
