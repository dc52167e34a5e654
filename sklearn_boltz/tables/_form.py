"""Tables as users pass them: what is none, and cells and columns of all kinds as arrays."""

from collections import Counter
from numbers import Real
from os import PathLike

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.tables._cells import as_array, as_numbers, columns_of, unmasked
from sklearn_boltz.tables._frames import (
    are_numbers,
    compound,
    is_frame,
    library_of,
    names_of,
    with_columns,
)
from sklearn_boltz.tables._phrases import and_others
from sklearn_boltz.tables._remedies import Place
from sklearn_boltz.tables._values import beyond_floats, is_a_float, is_missing


def without_columns(X, columns):
    """A copy of a table in which all cells of some columns, by their numbers, are missing.

    An array of integers or flags becomes one of floats.
    """
    if not is_frame(X):
        hidden = X.astype(np.float64 if X.dtype.kind in "biu" else X.dtype)
        hidden[:, columns] = None if X.dtype.kind == "O" else np.nan
        return hidden
    return with_columns(X, {j: np.full(len(X), None) for j in columns})


def without_words(X, j):
    """A table in which column j is missing, so that its unseen strings do no harm.

    A table of numbers is returned as it is: callers replace the numbers of the column.
    """
    has_words = is_frame(X) or isinstance(X, np.ndarray) and X.dtype.kind == "O"
    if has_words and len(X.shape) == 2 and j < X.shape[1] and not as_plain_table(X)[1]:
        return without_columns(X, [j])
    return X


def as_plain_table(X):
    """-> a table without a mask, and whether it holds numbers or booleans only.

    These have a type of numbers then, if they were in a list or among objects.
    """
    X = unmasked(X)
    if is_frame(X):
        return X, are_numbers(X) and all(_are_floats(cells) for _, cells in columns_of(X))
    if issparse(X):
        return X, True
    try:
        array = as_array(X)
    except ValueError:  # rows of different lengths, which scikit-learn refuses
        return X, True
    if array.ndim == 2 and array.dtype.kind in "OUST":
        numbers_only = array.dtype.kind == "O" and _are_floats(array.ravel())
        return as_numbers(array) if numbers_only else X, numbers_only
    return array, _are_floats(array)


def _are_floats(cells):
    """Whether cells are numbers, or missing, of which floats hold all digits."""
    if cells.dtype.kind == "O":
        known = (cell for cell in cells.tolist() if not is_missing(cell))
        return all(isinstance(cell, Real) and is_a_float(cell) for cell in known)
    return not beyond_floats(cells)


def holds_numbers(cells):
    """Whether a column holds numbers or booleans only, beside missing cells."""
    if cells.dtype.kind in "biuf":
        return True
    return all(isinstance(cell, Real) or is_missing(cell) for cell in cells.tolist())


def check_form(X):
    """Refuse what is no table, lazy frames, and data frames with two columns of the same name."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):  # of polars
        raise ValueError(
            "X is a lazy frame, whose rows are not known. Call .collect(), or pass batches of its "
            "rows: sklearn_boltz.batches.Batches."
        )
    if hasattr(X, "map_reduce"):  # Batches
        raise ValueError(
            "X is Batches, which only `fit` and `partial_fit` of density models can read. Call "
            "this with the rows of one batch at a time."
        )
    if hasattr(X, "to_delayed"):  # of Dask, and as an array it would come back in memory
        raise ValueError(
            "X is a Dask collection, which only `fit` reads. Call this for one partition at a "
            "time, as in X.map_partitions(model.transform), or of an array X.map_blocks."
        )
    if isinstance(X, (str, PathLike)):
        raise ValueError(
            "X is the name of a file, and must be a table. Read the file first; `fit` also takes a "
            "parquet file as sklearn_boltz.batches.Batches(path)."
        )
    is_list = isinstance(X, (list, tuple)) and len(X) > 0
    is_dict = isinstance(X, dict) and not issparse(X)  # as scipy's dok_matrix is
    if is_dict or is_list and all(isinstance(row, dict) for row in X):
        what = "a dict" if is_dict else "a list of dicts"
        raise ValueError(f"X is {what}. Make a data frame of it: X = pd.DataFrame(X).")
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(
            "X is an array of dates or times. Pass a data frame, whose columns may hold dates."
        )
    shape = getattr(X, "shape", None)
    if is_list and all(isinstance(cell, str) for cell in X):
        shape = (len(X),)
    if shape is not None and len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: a table has rows and columns, and X has the "
            f"shape {tuple(shape)}. Of a data frame, take one row by X.iloc[[0]], and one column "
            "by X[['name']]."
        )
    names = names_of(X) if is_frame(X) else []
    twice = [repr(name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(
            f"the table has two columns named {twice[0]}. Rename one of them."
            f"{and_others(twice[1:])}"
        )
    parts = compound(X) if names else {}
    if parts:
        name, dtype = next(iter(parts.items()))
        raise ValueError(
            f"column {name!r} has the type {dtype}, which is not supported. "
            f"{Place(library_of(X), name).in_parts(dtype)}"
            f"{and_others(f'column {other!r}' for other in list(parts)[1:])}"
        )
