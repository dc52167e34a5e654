"""Errors of cells and columns that a model cannot learn, by name."""

import numpy as np

from sklearn_boltz.tables._cells import recognise_coding
from sklearn_boltz.tables._phrases import first_of, format_number, having

MISSING_IN_FIT = "`fit` takes NaN as a missing cell."


def refuse_cells(name, table, X, legal, domain, remedy, first_row=0, coded=True, declare=None):
    """Raise a ValueError that names the first entry where `legal` is False, and all columns.

    Parameters
    ----------
    name : str
        Of the estimator.
    table : Encoder
    X : ndarray of shape (n_samples, n_features)
    legal : ndarray of bool of shape (n_samples, n_features)
    domain : callable
        From a column number, what the values of the column may be.
    remedy : str or callable
        What the user can do, if the coding of the values is not recognised; or a function from
        numbers of columns, of which the first has the value, to that.
    first_row : int
        Number of the first row of `X` in the data.
    coded : bool
        Whether the values may have a coding that is to be recognised; False if others of the
        column were accepted in `fit`.
    declare : callable, default=None
        From numbers of columns, what to do if their whole numbers are categories; None for a
        model that takes no fractions, either: scaled amounts would be refused as well.
    """
    negative = ~legal & (X < 0)
    i, j = np.unravel_index(np.argmax(negative if negative.any() else ~legal), legal.shape)
    columns = np.flatnonzero(~legal.all(axis=0))
    columns = [j, *(k for k in columns if k != j and domain(k) == domain(j))]
    n_cells = int((~legal[:, columns]).sum())
    more = first_of(n_cells, "such values", (table.columns[k].title for k in sorted(columns)))
    more = more if len(columns) > 1 else ""
    remedy = remedy(columns) if callable(remedy) else remedy
    coding = None
    if coded:
        place = table.columns[j].place
        coding = recognise_coding(X, j, MISSING_IN_FIT, declare and declare(columns), place)
    if coding is None and negative.any():
        coding = f"Negative values in data are out of this range. {remedy}"
    raise ValueError(
        f"{name} needs {domain(j)} in {table.columns[j].title}, "
        f"but row {first_row + i} has the value {format_number(X[i, j])}{more}. "
        f"{coding or remedy}"
    )


def refuse_empty(name, table, empty):
    """Refuse columns that have no value, of which others say what they are like."""
    columns = np.flatnonzero(empty)
    it = "it" if len(columns) == 1 else "them"
    raise ValueError(
        f"{name}: {having(table.columns[j].title for j in columns)} no value in any row, "
        f"apart from rows of weight 0. Leave {it} out: the data say nothing about {it}."
    )
