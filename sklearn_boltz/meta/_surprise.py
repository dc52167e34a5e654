"""How surprising each cell of a row is, given its other cells."""

import numpy as np

from sklearn_boltz._density import Density
from sklearn_boltz._tabular import Tabular
from sklearn_boltz.tables._coded import pick
from sklearn_boltz.tables._frames import is_frame, names_of

# The least probability, so that surprises are finite.
LEAST = 1e-300


def surprises(density, rows, X):
    """-ln p(cell | the other observed cells of its row).

    Parameters
    ----------
    density : estimator
        Fitted, with `predict_column_proba`.
    rows : Coded
    X : data frame or array of shape (n, n_columns), or Coded
        The same as `density` takes them.

    Returns
    -------
    surprises : ndarray of float64 of shape (n, n_columns)
        NaN for missing cells, and for values that are not known.
    """
    keys, found = keys_of(density, X), np.full(rows.codes.shape, np.nan)
    numbers = rows.numbers(np.flatnonzero(rows.table.is_number))
    for j, column in enumerate(rows.table.columns):
        bins = column.all_bins
        own = rows.codes[:, j] if bins is None else bins.encode(numbers[j])
        known = np.flatnonzero(~np.isnan(own))
        if not len(known):
            continue
        p = density.predict_column_proba(pick(X, known), keys[j])
        found[known, j] = -np.log(np.maximum(_of_codes(p, own[known]), LEAST))
        if bins is not None:
            # By how much ln f of a number is below its mean in the bin, if it is.
            usual = bins.mean_log_density[own[known].astype(np.intp)]
            found[known, j] += np.maximum(usual - bins.log_density(numbers[j][known]), 0)
    return found


def keys_of(density, rows):
    """Labels or numbers by which a density calls the columns of its rows."""
    if isinstance(density, Tabular):
        return density._keys()
    return names_of(rows) if is_frame(rows) else list(range(rows.shape[1]))


def table_of(density):
    """The table of a density of this package; else None."""
    return density._encoder if isinstance(density, Density) else None


def _of_codes(p, codes):
    """p of the value that each code stands for: -1 and 1, or 0, 1, ...; NaN for other codes."""
    codes = np.rint((codes + 1) / 2 if codes.min() < 0 else codes).astype(np.intp)
    own = np.take_along_axis(p, np.minimum(codes, p.shape[1] - 1)[:, None], axis=1)[:, 0]
    return np.where(codes < p.shape[1], own, np.nan)
