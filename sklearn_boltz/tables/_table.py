"""Tables in, tables out: the values of columns as codes, and the way back."""

import warnings
from collections import Counter
from functools import partial
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.tables._cells import (
    MISSING_CODES,
    MOST_LEVELS,
    also,
    as_array,
    as_numbers,
    columns_of,
    columns_with_codes,
    dates_in,
    is_date_or_time,
    is_empty,
    is_frame,
    is_missing,
    looks_missing,
    missing_cells,
)
from sklearn_boltz.tables._headers import Header

# Categories in a message.
N_SHOWN = 5
# Texts that in many files stand for a missing cell, and are seldom a category of their own.
DOUBTFUL_TEXTS = {"?", "na", "n/a", "nan", "null", "."}


class Column(NamedTuple):
    """What is known of a column.

    Attributes
    ----------
    title : str
        What messages call it.
    categories : ndarray or None
        Its values in order, of which the codes are the places; None for a column of numbers,
        which stand for themselves.
    """

    title: str
    categories: np.ndarray | None = None

    def encode(self, cells, unseen):
        """Numbers for cells: their codes, or they themselves; NaN where a cell is missing.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
        unseen : {"smooth", "error", "missing"}
            What to do about values that are no category: raise an error, or take them as missing.

        Returns
        -------
        codes : ndarray of shape (n_samples,)
            Of a float type if a cell is missing.
        """
        if self.categories is None:
            return _numbers(cells, self.title)
        place_of = {value: code for code, value in enumerate(self.categories.tolist())}
        cells = cells.tolist()
        place_of = {cell: place_of.get(_plain(cell), -1) for cell in _different(cells)}
        codes = np.array([place_of[cell] for cell in cells], dtype=np.float64)
        strange = [row for row in np.flatnonzero(codes < 0) if not is_empty(cells[row])]
        if strange and unseen == "error":
            known = f"there are {self.shown()}" if len(self.categories) else "it had no value there"
            raise UnfitColumn(
                "unseen",
                f"{self.title} has the value {cells[strange[0]]!r} in row {strange[0]}, which no "
                f"row of the training data has; {known}. Replace it by NaN, or leave `unseen` at "
                "'smooth', which gives such values a small probability.",
            )
        codes[codes < 0] = np.nan
        return codes if np.isnan(codes).any() else codes.astype(np.int64)

    def decode(self, codes):
        """Values of codes, the inverse of `encode`; of fractions, the nearest category."""
        if self.categories is None:
            return codes
        if not len(self.categories):  # no cell of the training had a value
            return np.full(len(codes), None, dtype=object)
        places = np.clip(np.rint(np.nan_to_num(codes)), 0, len(self.categories) - 1)
        values = self.categories[places.astype(np.intp)]
        missing = np.isnan(codes)
        if missing.any():
            values = values.astype(object)
            values[missing] = None
        return values

    def shown(self):
        """The categories in a message."""
        some = ", ".join(map(repr, self.categories[:N_SHOWN].tolist()))
        return some + (", ..." if len(self.categories) > N_SHOWN else "")


class Table:
    """What `fit` learns of a table: its container, and the values of its columns.

    Parameters
    ----------
    columns : list of Column
    header : Header or None
        Of the training data, if they were a data frame.
    dtype : dtype or None
        Of the training data, if they were an array of numbers.

    Attributes
    ----------
    is_plain : bool
        Whether all columns hold numbers, which stand for themselves.
    n_categories : ndarray of int of shape (n_columns,)
        Number of categories of each column, 0 for numbers.
    is_word : ndarray of bool of shape (n_columns,)
        Which columns have categories.
    is_empty : ndarray of bool of shape (n_columns,)
        Which of them have none, as no cell of the training had a value.
    """

    def __init__(self, columns, header=None, dtype=None):
        self.columns, self.header, self.dtype = columns, header, dtype
        values = [column.categories for column in columns]
        self.is_plain = all(categories is None for categories in values)
        self.n_categories = np.array([0 if v is None else len(v) for v in values], dtype=int)
        self.is_word = np.array([v is not None for v in values], dtype=bool)
        self.is_empty = self.is_word & (self.n_categories == 0)

    @classmethod
    def of_numbers(cls, numbers, X=None):
        """Of columns of numbers that stand for themselves, as they are in a table X."""
        frame = X if is_frame(X) else None
        names = [f"column {j}" for j in range(numbers.shape[1])]
        if frame is not None:
            names = [f"column {name!r}" for name in frame.columns]
        header = None if frame is None else Header.of(frame)
        return cls([Column(name) for name in names], header, _dtype_of(X, numbers))

    @property
    def template(self):
        """A data frame without rows that has the columns and types of the training data.

        None if these were an array, or where the library of the frame is not installed.
        """
        return None if self.header is None else self.header.empty_frame()

    def without_values(self, empty):
        """The table where some columns have no category: no cell that counts has a value."""
        columns = [
            column._replace(categories=np.empty(0)) if is_empty else column
            for column, is_empty in zip(self.columns, empty, strict=True)
        ]
        return Table(columns, self.header, self.dtype)

    def encode(self, X, unseen="error"):
        """The rows of a table in the same columns as an array of numbers.

        Parameters
        ----------
        X : data frame or array of objects
        unseen : {"smooth", "error", "missing"}

        Returns
        -------
        codes : ndarray of shape (n_samples, n_features)
            NaN where a cell is missing.
        """
        cells = [cells for _, cells in columns_of(X)]
        if len(cells) != len(self.columns):  # which is told elsewhere
            cells = cells[: len(self.columns)]
        pairs = zip(self.columns, cells, strict=False)
        coded = _of_each(
            (column.title, partial(column.encode, mine, unseen)) for column, mine in pairs
        )
        # Codes and flags are no reason for floats.
        return np.column_stack(coded) if coded else np.empty((len(X), 0))

    def encode_numbers(self, X, unseen="error"):
        """The same for an array of numbers, in which some columns have categories."""
        if self.is_plain:
            return X
        coded = X = X.toarray() if issparse(X) else X
        words = np.flatnonzero(self.is_word)
        found = _of_each(
            (self.columns[j].title, partial(self.columns[j].encode, X[:, j], unseen)) for j in words
        )
        for j, codes in zip(words, found, strict=True):
            if coded is X:
                kind = np.float64 if X.dtype.kind in "biu" else X.dtype
                coded = X.astype(kind if np.isnan(codes).any() else X.dtype)
            if np.isnan(codes).any() and coded.dtype.kind in "biu":
                coded = coded.astype(np.float64)
            coded[:, j] = codes
        return coded

    def decode(self, codes):
        """Rows of codes as a table like the training data."""
        values = [column.decode(codes[:, j]) for j, column in enumerate(self.columns)]
        template = self.template
        if template is not None:
            return _frame(template, values)
        if self.is_plain:
            return _cast(codes, self.dtype)
        return _object_array(values) if self.dtype is None else _as_numbers(values, self.dtype)

    def fill(self, X, codes, missing):
        """A copy of a table in which the missing cells have values; all others are as they were.

        Parameters
        ----------
        X : array-like or data frame
        codes : ndarray of shape (n_samples, n_features)
        missing : ndarray of bool of the same shape

        Returns
        -------
        filled : of the type of X
        """
        if not is_frame(X):
            return self._fill_array(as_array(X), codes, missing)
        names, missing = list(X.columns), missing & missing_cells(X)
        filled = X.copy() if hasattr(X, "copy") else X.clone()
        for j in np.flatnonzero(missing.any(axis=0)):
            cells, rows = X[names[j]], missing[:, j]
            values = np.array(np.asarray(cells), dtype=object)
            values[rows] = self.columns[j].decode(codes[rows, j].astype(np.float64))
            series = _series(cells, values)
            if hasattr(filled, "with_columns"):
                filled = filled.with_columns(series)
            else:
                filled[names[j]] = series
        return filled

    def _fill_array(self, X, codes, missing):
        missing = missing & missing_cells(X)
        if X.dtype.kind in "biuf":
            values = np.column_stack([
                column.decode(codes[:, j]) for j, column in enumerate(self.columns)
            ])  # fmt: skip
            return np.where(missing, values, X).astype(X.dtype)
        X = np.array(X, dtype=object)
        for j, column in enumerate(self.columns):
            rows = missing[:, j]
            X[rows, j] = column.decode(codes[rows, j].astype(np.float64))
        return X


def without_column(X, j):
    """A copy of a table in which all cells of a column are missing.

    Parameters
    ----------
    X : ndarray or data frame
    j : int
        Number of the column.

    Returns
    -------
    hidden : of the type of X; an array of integers or flags becomes one of floats
    """
    if not is_frame(X):
        hidden = X.astype(np.float64 if X.dtype.kind in "biu" else X.dtype)
        hidden[:, j] = None if X.dtype.kind == "O" else np.nan
        return hidden
    cells = X[list(X.columns)[j]]
    if hasattr(X, "with_columns"):  # of polars
        return X.with_columns(type(cells)(cells.name, [None] * len(X), dtype=cells.dtype))
    hidden = X.copy()
    hidden[cells.name] = np.full(len(X), None)
    return hidden


def has_numbers_only(X):
    """Whether all columns hold numbers or truth values, by their types or one by one."""
    if is_frame(X):
        return all(_is_numeric(dtype) for dtype in X.dtypes)
    if issparse(X):
        return True
    try:
        X = as_array(X)
    except ValueError:  # rows of different lengths, which scikit-learn refuses
        return True
    if X.dtype.kind == "O" and X.ndim == 2:
        return all(isinstance(cell, Real) or is_missing(cell) for cell in X.ravel().tolist())
    return X.dtype.kind not in "UST" or X.ndim != 2


def holds_numbers(cells):
    """Whether a column holds numbers or truth values only, beside missing cells."""
    if cells.dtype.kind in "biuf":
        return True
    return all(isinstance(cell, Real) or is_missing(cell) for cell in cells.tolist())


def _is_numeric(dtype):
    if hasattr(dtype, "is_numeric"):  # of polars
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def learn_table(X, numbers=None, *, kinds=None, codes=False, signs=False):
    """Learn the columns of a table.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix
    numbers : ndarray, default=None
        The same as numbers, where it holds numbers only.
    kinds : list of {"number", "categories", None}, default=None
        What the user says of each column; None to look.
    codes : bool, default=False
        Whether the model takes the integers 0, 1, 2, ... themselves.
    signs : bool, default=False
        Whether it takes a table of -1 and 1.

    Returns
    -------
    table : Table
    """
    if numbers is not None and kinds is None and (not is_frame(X) or signs and _has_signs(numbers)):
        return Table.of_numbers(numbers, X)
    frame = X if is_frame(X) else None
    found = list(columns_of(X))
    check_form(X)
    tasks = []
    for j, (title, cells) in enumerate(found):
        kind = kinds[j] if kinds else None
        if frame is None and numbers is not None and kind is None:
            kind = "number"  # numbers in an array stand for themselves
        order = _declared_order(frame, j)
        tasks.append((title, partial(_categories, cells, title, kind, order, codes)))
    values = _of_each(tasks)
    titles = [title for title, _ in found]
    columns = [Column(title, of_it) for title, of_it in zip(titles, values, strict=True)]
    header = None if frame is None else Header.of(frame)
    return Table(columns, header, None if numbers is None else _dtype_of(X, numbers))


class UnfitColumn(ValueError):
    """A column of cells that cannot be learned or encoded.

    Parameters
    ----------
    reason : str
        One word, which is the same for all columns of which one error is to tell.
    message : str
        What is wrong with this column, and the remedy.
    """

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


def _of_each(tasks):
    """Results of a task for each column; the error of one names all columns that have the same.

    Parameters
    ----------
    tasks : iterable of (title, callable)

    Returns
    -------
    results : list
    """
    results, refused = [], {}
    for title, task in tasks:
        try:
            results.append(task())
        except UnfitColumn as error:
            refused[title] = error
    if not refused:
        return results
    first = next(iter(refused.values()))
    titles = [title for title, error in refused.items() if error.reason == first.reason]
    if first.reason == "dates":
        raise ValueError(dates_in(titles))
    raise ValueError(f"{first}{also(titles[1:])}")


def given_n_values(n_values, n_columns):
    """Check the numbers of values that a user gives; -> one for each column.

    Parameters
    ----------
    n_values : int or array-like of int of shape (n_columns,)
    n_columns : int

    Returns
    -------
    n_values : ndarray of int64 of shape (n_columns,)
    """
    given = np.asarray(n_values)
    if given.ndim == 0:
        given = np.full(n_columns, given)
    if given.shape != (n_columns,) or given.dtype.kind != "i" or not (given >= 2).all():
        raise InvalidParameterError(
            f"n_values must be 'auto', an integer or one integer for each of the "
            f"{n_columns} columns, all at least 2; got {n_values!r}."
        )
    return given.astype(np.int64)


def ordered_columns(table):
    """Which columns have ordered values: whole numbers, or categories declared as ordered.

    Parameters
    ----------
    table : Table

    Returns
    -------
    ordered : ndarray of bool of shape (n_columns,)
    """
    ordered = np.array([
        column.categories is None or column.categories.dtype.kind in "iuf"
        for column in table.columns
    ])  # fmt: skip
    if table.header is not None:
        ordered |= [dtype.is_ordered for dtype in table.header.dtypes]
    return ordered


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
    shape = getattr(X, "shape", None)
    if isinstance(X, (list, tuple)) and X and all(isinstance(cell, str) for cell in X):
        shape = (len(X),)
    if shape is not None and len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: a table has rows and columns, and X has the "
            f"shape {tuple(shape)}. Of a data frame, take one row by X.iloc[[0]], and one column "
            "by X[['name']]."
        )
    names = list(X.columns) if is_frame(X) else []
    twice = [repr(name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(
            f"the table has two columns named {twice[0]}. Rename one of them.{also(twice[1:])}"
        )


def _has_signs(numbers):
    """Whether a table holds -1 and 1 only."""
    return bool(((numbers == -1) | (numbers == 1) | np.isnan(numbers)).all())


def _declared_order(frame, j):
    """The categories that the type of a column declares, in their order; None if it has none."""
    if frame is None:
        return None
    dtype = frame.dtypes.iloc[j] if hasattr(frame.dtypes, "iloc") else frame.dtypes[j]
    if type(dtype).__name__ == "Categorical":  # of polars, whose categories have no order
        return None
    declared = getattr(dtype, "categories", None)
    return None if declared is None else [_plain(value) for value in declared]


def _categories(cells, title, kind, order, codes):
    """The categories of a column in order; None for numbers."""
    if order is None and kind != "categories" and cells.dtype.kind in "iuf":
        return None if kind == "number" else _levels(cells, codes, title)
    is_date = cells.dtype.kind in "mM"
    cells = cells.tolist()
    try:
        different = _different(cells)
    except TypeError:  # a cell that is no value
        for row, cell in enumerate(cells):
            _check_cell(cell, title, row)
        raise
    if is_date or any(map(is_date_or_time, different)):
        raise UnfitColumn("dates", dates_in([title]))
    values = dict.fromkeys(_plain(cell) for cell in different if not is_empty(cell))
    if order is not None:
        return _as_column(order)
    if values and all(isinstance(value, bool) for value in values):
        return np.array([False, True])
    texts = [value for value in values if isinstance(value, bool) or not isinstance(value, Real)]
    if not texts and kind != "categories":
        numbers = np.array([np.nan if is_empty(cell) else cell for cell in cells], dtype=float)
        return None if kind == "number" else _levels(numbers, codes, title)
    if kind == "number":
        raise UnfitColumn(
            "declared", f"{title} is declared to hold numbers, but has the value {texts[0]!r}."
        )
    n_numbers = len(values) - len(texts)
    if texts and n_numbers > MOST_LEVELS and kind != "categories":
        raise UnfitColumn(
            "text",
            f"{title} has {n_numbers:,} different numbers, and the text {texts[0]!r} in row "
            f"{cells.index(texts[0])}. Replace the text by a number or NaN; if all are "
            "categories, convert the column by .astype(str).",
        )
    _check_texts(texts, title, len(cells))
    return _as_column(_in_order(values))


def _different(cells):
    """The different values among cells, in the order of their first places."""
    return dict.fromkeys(cells)


def _check_texts(texts, title, n_rows):
    """Warn of texts that are perhaps no categories."""
    doubtful = [text for text in texts if str(text).strip().lower() in DOUBTFUL_TEXTS]
    if len(texts) > max(MOST_LEVELS, n_rows // 2):
        others = [text for text in texts if not _is_number(text)]
        if not others:
            remedy = "They are numbers: convert the column, for example by .astype(float)."
        elif others == doubtful:
            remedy = (
                f"All but {others[0]!r} are numbers: convert the column, for example by "
                "pandas.to_numeric(column, errors='coerce')."
            )
        else:
            remedy = (
                "This looks like an ID column: it carries no information about other rows. Drop it."
            )
        raise UnfitColumn(
            remedy, f"{title} has {len(texts):,} different texts in {n_rows:,} rows. {remedy}"
        )
    if doubtful:
        warnings.warn(
            f"{title} has the category {doubtful[0]!r}, which looks like a missing value. If it "
            "is one, replace it by NaN.",
            stacklevel=find_stack_level(),
        )


def _is_number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _levels(numbers, codes, title):
    """The values of a column of numbers, if they are but names of a few levels."""
    values = np.unique(numbers[np.isfinite(numbers)])
    if not len(values) or (values != np.floor(values)).any() or len(values) > MOST_LEVELS:
        return None
    if values[0] >= 0 and values[-1] <= 1:
        return None
    whole = set(values.tolist())
    if any(whole - {code} == {0, 1} for code in MISSING_CODES):
        return None  # what this code means has to be asked
    if codes and values[0] == 0:
        return None
    for _, code, found in columns_with_codes(numbers[:, None]):
        warnings.warn(
            f"{title}: {looks_missing(code, found)}. If it is one, replace it by NaN.",
            stacklevel=find_stack_level(),
        )
    return values


def _in_order(values):
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _as_column(values):
    """Values as an array of their own type, of objects where NumPy has none."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    if values and all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        return array.astype(np.float64)
    return array


def _check_cell(cell, title, row):
    if isinstance(cell, (dict, list, set, np.ndarray)):
        raise TypeError(
            f"{title} has a {type(cell).__name__} in row {row}: the argument must be a string or "
            "a number."
        )


def _plain(cell):
    """A cell as it is looked up: bytes and NumPy's scalars as Python has them."""
    return cell.item() if isinstance(cell, np.generic) else cell


def _numbers(cells, title):
    """Cells of a column of numbers in a type of numbers; NaN for missing ones."""
    if cells.dtype.kind in "biuf":
        return cells
    numbers = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells.tolist()):
        try:
            is_number = isinstance(cell, Real) and not is_missing(cell)
            numbers[row] = cell if is_number else np.nan if is_empty(cell) else float(cell)
        except (TypeError, ValueError):
            raise UnfitColumn(
                "numbers",
                f"{title} has the value {cell!r} in row {row}, but held numbers when the model "
                "was fitted. Replace it by a number or NaN.",
            ) from None
    return as_numbers(numbers)


def _dtype_of(X, numbers):
    """The type of an array of numbers as it was before it was checked."""
    dtype = getattr(X, "dtype", None)
    return dtype if getattr(dtype, "kind", "O") in "biuf" else numbers.dtype


def _as_numbers(values, dtype):
    """Columns of numbers, with None for a missing one, as an array."""
    return _cast(np.column_stack([np.asarray(column, np.float64) for column in values]), dtype)


def _object_array(values):
    out = np.empty((len(values[0]), len(values)), dtype=object)
    for j, column in enumerate(values):
        out[:, j] = column
    return out


def _cast(values, dtype):
    """Numbers in a type, if it can hold them."""
    if dtype is None or dtype == values.dtype or dtype.kind not in "biuf":
        return values
    if dtype.kind in "biu" and not np.array_equal(values, np.rint(values)):
        return values
    return values.astype(dtype)


def _frame(template, values):
    """A frame with the columns of a template and the given values."""
    names = list(template.columns)
    if hasattr(template, "with_columns"):  # of polars
        series = [
            _series(template[name], column) for name, column in zip(names, values, strict=True)
        ]
        return type(template)(series)
    columns = {
        place: _series(template[name], column)
        for place, (name, column) in enumerate(zip(names, values, strict=True))
    }
    frame = type(template)(columns)
    frame.columns = template.columns
    return frame


def _series(like, values):
    """Values as a column of the type of another one, if it can hold them."""
    whole = all(is_missing(v) or (isinstance(v, Real) and v == int(v)) for v in values.tolist())
    if hasattr(like, "alias"):  # of polars
        values = [None if is_missing(value) else _plain(value) for value in values.tolist()]
        if not like.dtype.is_integer():
            return type(like)(like.name, values, dtype=like.dtype)
        if whole:
            return type(like)(like.name, [v if v is None else int(v) for v in values], like.dtype)
        return type(like)(like.name, values, strict=False)
    index = like.index if len(like) == len(values) else None
    kind = getattr(like.dtype, "kind", "O")
    if kind in "iuf" and values.dtype.kind == "O":
        values = np.array([np.nan if is_missing(v) else v for v in values], dtype=np.float64)
    fits = kind not in "iub" or whole
    return type(like)(values, index, like.dtype if fits else None, like.name)
