"""Data frames of pandas, polars, PyArrow and the like; only `_libraries.py` knows them, too.

What they have in common is done by narwhals. What it does not keep, such as names with levels and
extension types of pandas, or dictionaries of PyArrow, is done by methods of their own.
"""

from functools import partial
from importlib import import_module
from numbers import Real

import narwhals as nw
import numpy as np
from narwhals import dependencies
from sklearn.utils import Bunch, _safe_indexing

from sklearn_boltz.tables._values import (
    MOST_EXACT,
    as_cells,
    as_objects,
    find_places,
    in_type_of,
    is_a_float,
    is_missing,
    numpy_date,
)

# Types that hold any string.
OF_WORDS = nw.String, nw.Categorical, nw.Object
# How types begin whose cells have parts, or can be anything.
COMPOUND = (
    "list", "large_list", "fixed_size_list", "array", "struct", "map", "dense_union",
    "sparse_union", "run_end_encoded", "month_day_nano", "object",
)  # fmt: skip
# Types of polars that NumPy lacks.
WIDE = "Int128", "UInt128"


def is_frame(X):
    """Whether X is a data frame of pandas, polars, PyArrow or the like."""
    if isinstance(X, np.ndarray):  # quickly
        return False
    is_pandas = dependencies.is_pandas_dataframe(X)
    return is_pandas or dependencies.is_into_dataframe(X) and not isinstance(X, nw.DataFrame)


def library_of(frame):
    """ "pandas", "polars" or "pyarrow"."""
    return type(frame).__module__.partition(".")[0]


def names_of(frame):
    """The names of the columns, of which two may be the same."""
    return list(frame.column_names if dependencies.is_pyarrow_table(frame) else frame.columns)


def cells_of(column):
    """The cells of a column of a frame as an array, of objects where NumPy would change some."""
    dtype = type_of(column)
    is_listed = hasattr(dtype, "categories") or getattr(dtype, "ordered", False)
    if _is_dictionary(column):  # NumPy would have a value where one is missing
        try:
            column, dtype = column.cast(dtype.value_type), dtype.value_type
        except NotImplementedError:  # of views of strings
            return _objects_of(column)
    if isinstance(dtype, np.dtype):
        return np.asarray(column)
    if dependencies.is_pandas_like_series(column) and has_zone(column):
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()  # as others have it
    if str(dtype) in WIDE:
        return _objects_of(column)
    cells = np.asarray(column)
    of_values = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    # For the sake of NaN, NumPy has floats for whole numbers.
    are_lost = cells.dtype.kind == "f" and "int" in str(of_values).lower()
    are_lost = are_lost and (np.abs(cells) >= MOST_EXACT).any()
    is_date = cells.dtype.kind in "mM" and is_listed
    return _objects_of(column) if are_lost or is_date else cells


def _objects_of(column):
    if dependencies.is_pandas_like_series(column):
        return column.astype(object).to_numpy()
    is_polars = dependencies.is_polars_series(column)
    return as_objects(column.to_list() if is_polars else column.to_pylist())


def declared_values(column):
    """The values that the type of a column declares, or None, and whether it says they are ordered.

    An Enum of polars lists its values, but does not say whether their order means anything.
    """
    if dependencies.is_pyarrow_chunked_array(column):
        if not (_is_dictionary(column) and column.type.ordered and column.num_chunks):
            return None, False
        return column.unify_dictionaries().chunk(0).dictionary.to_pylist(), True
    if type(column.dtype).__name__ == "Categorical":  # of polars, whose categories have no order
        return None, False
    declared = getattr(column.dtype, "categories", None)
    is_ordered = bool(getattr(column.dtype, "ordered", False))
    return None if declared is None else list(declared), is_ordered


def compound(frame):
    """The names and types of columns whose cells are no single values."""
    if dependencies.is_pandas_like_dataframe(frame):  # of objects, the cells tell
        types = [getattr(dtype, "pyarrow_dtype", "") for dtype in frame.dtypes]
    else:
        types = [type_of(frame[name]) for name in names_of(frame)]
    pairs = zip(names_of(frame), map(str, types), strict=True)
    return {name: dtype for name, dtype in pairs if dtype.lower().startswith(COMPOUND)}


def are_numbers(frame):
    """Whether all columns are of numbers or booleans by their types."""
    if dependencies.is_pandas_like_dataframe(frame):
        return all(getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes)
    dtypes = nw.from_native(frame).schema.values()
    return all(dtype.is_numeric() or dtype == nw.Boolean for dtype in dtypes)


def optional(package, message):
    """A package that may not be installed, or an error that says what to do then."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(message) from error


def frame_or_bunch(columns):
    """Columns, by their names, as a frame of pandas; as a Bunch where that is not installed."""
    try:
        return import_module("pandas").DataFrame(columns)
    except ImportError:
        return Bunch(**columns)


def timestamps(dates):
    """Dates as a list of those of pandas."""
    timestamp = import_module("pandas").Timestamp
    return [None if np.isnat(date) else timestamp(date) for date in dates]


def some_rows(X, rows):
    """Some rows of a table of any kind, by their numbers or a slice."""
    if dependencies.is_pyarrow_table(X) and not isinstance(rows, slice):
        places = np.arange(len(X))[rows]
        return type(X).from_arrays([_taken(column, places) for column in X.columns], X.column_names)
    # Before 1.9, scikit-learn cannot select rows of PyArrow.
    return nw.from_native(X)[rows].to_native() if is_frame(X) else _safe_indexing(X, rows)


def some_columns(X, columns):
    """Some columns of a table by their numbers."""
    if len(columns) == X.shape[1]:
        return X
    return nw.from_native(X)[:, columns.tolist()].to_native() if is_frame(X) else X[:, columns]


def joined(tables):
    """Tables of one kind as one, one after the other, in types that hold the cells of all."""
    if not is_frame(tables[0]):
        return np.concatenate(tables)
    if dependencies.is_pyarrow_table(tables[0]):
        return import_module("pyarrow").concat_tables(tables, promote_options="permissive")
    if dependencies.is_polars_dataframe(tables[0]):
        return import_module("polars").concat(tables, how="vertical_relaxed")
    return nw.concat([nw.from_native(table) for table in tables]).to_native()


def with_columns(frame, cells):
    """A copy of a frame with other cells in some columns, which keep their types if they can.

    `cells` is a dict from the numbers of columns to arrays.
    """
    names = names_of(frame)
    likes = {names[j]: frame[names[j]] for j in cells}
    new = zip(likes.items(), cells.values(), strict=True)
    return with_new(frame, {name: _indexed(_column(like, own), like) for (name, like), own in new})


def with_cells(frame, cells, orders, template):
    """A copy of a frame with values in some cells; the others are the very ones that they were.

    `cells` is a dict from the numbers of columns to pairs: which rows, an array of bool, and their
    values; `orders` has the values of a category, in order. A column without another cell gets the
    type that it has in the template.
    """
    names, columns = names_of(frame), {}
    for j, (rows, values) in cells.items():
        column = like = frame[names[j]]
        if not rows.all():
            values = in_type_of(values, cells_of(column)[~rows])
            new = _column(column, values, orders[j])
            columns[names[j]] = _spliced(column, new, rows)
            continue
        if type(template) is type(frame):
            like = template[names_of(template)[j]]
        columns[names[j]] = _indexed(_column(like, values, orders[j]), column)
    return with_new(frame, columns)


def _indexed(column, other):
    """A column of pandas with the index of another one."""
    if dependencies.is_pandas_like_series(column):
        column.index = other.index
    return column


def _spliced(column, new, rows):
    """A column with new cells in some rows."""
    old, new = _of_one_type(column, new)
    places = np.arange(len(old))
    places[rows] = len(old) + np.arange(len(new))
    if dependencies.is_pandas_like_series(old):
        concat = nw.get_native_namespace(old).concat
        return _indexed(concat([old, new], ignore_index=True).iloc[places], column)
    if dependencies.is_polars_series(old):
        return old.clone().append(new).gather(places)
    pyarrow = import_module("pyarrow")
    both = pyarrow.chunked_array([*old.chunks, *new.chunks])
    return _taken(both.unify_dictionaries() if _is_dictionary(both) else both, places)


def _taken(column, places):
    """Cells of a column of PyArrow."""
    try:
        return column.take(places)
    except NotImplementedError:  # of views of strings
        cells = column.to_pylist()
        return new_column(column, [cells[place] for place in places], column.type)


def _of_one_type(column, new):
    """A column and new cells in one type, in which the cells of the column are what they were."""
    wanted = type_of(new)
    if type_of(column) == wanted:
        return column, new
    kinds = {cells_of(column).dtype.kind, cells_of(new).dtype.kind}
    if hasattr(wanted, "categories") or kinds <= set("iuf"):
        return _cast(column, wanted), new
    if dependencies.is_pandas_like_series(column):
        return column.astype(object), new.astype(object)
    raise ValueError(
        f"a column of the type {type_of(column)} cannot hold cells of the type {wanted}, which it "
        "had in `fit`. Convert it to that type."
    )


def of_numbers(frame, numbers):
    """A frame of numbers, (n, n_columns), with the names and the index of another frame."""
    if dependencies.is_pandas_like_dataframe(frame):
        return type(frame)(numbers, index=frame.index, columns=frame.columns)
    columns = dict(zip(names_of(frame), numbers.T, strict=True))
    library = nw.from_native(frame).implementation
    return nw.from_dict(columns, backend=library).to_native()


def with_flags(frame, names, flags):
    """A copy of a frame with more columns, of booleans."""
    like = frame[names_of(frame)[0]]
    return with_new(frame, dict(zip(names, (new_column(like, f) for f in flags.T), strict=True)))


def with_constant(X, name, value):
    """A copy of a table with one more column, all cells of which have a value.

    Of an array, it is the last one, whatever its name.
    """
    if is_frame(X):
        return nw.from_native(X).with_columns(nw.lit(value).alias(name)).to_native()
    cells = np.full((len(X), 1), value)
    kind = object if cells.dtype.kind in "OUS" else np.result_type(X, cells)
    return np.hstack([X.astype(kind), cells.astype(kind)])


def with_new(frame, columns):
    """A copy of a frame with other or more columns, by their names."""
    if dependencies.is_pandas_like_dataframe(frame):  # narwhals would drop names of levels
        frame = frame.copy()
        for name, column in columns.items():
            frame[name] = column
        return frame
    new = [nw.from_native(column, series_only=True).alias(name) for name, column in columns.items()]
    return nw.from_native(frame).with_columns(*new).to_native()


def has_zone(column):
    """Whether a column holds dates with a time zone."""
    dtype = getattr(type_of(column), "pyarrow_dtype", type_of(column))
    return bool(getattr(dtype, "time_zone", None) or getattr(dtype, "tz", None))


def frame_like(template, cells, orders):
    """A frame of the given cells with the names and types of a template, if they can hold them.

    `cells` are arrays, one for each column, and `orders` as in `with_cells`.
    """
    columns = []
    for name, own, order in zip(names_of(template), cells, orders, strict=True):
        try:
            columns.append(_column(template[name], own, order))
        except (TypeError, ValueError) as error:  # PyArrow has no type of texts and numbers
            raise ValueError(
                f"column {name!r} has cells of several types: {error}. Convert them to one type, "
                "in all batches if there are several."
            ) from error
    if dependencies.is_polars_dataframe(template):
        return type(template)(columns)
    if dependencies.is_pyarrow_table(template):
        return type(template).from_arrays(columns, template.column_names)
    frame = type(template)(dict(enumerate(columns)))
    frame.columns = template.columns
    return frame


def _column(like, values, order=None):
    """Values as a column of the type of another one, if it can hold them."""
    if values.dtype.kind in "biuf":
        missing, words = np.isnan(values), []
        cells, known = np.where(missing, None, values).tolist(), values[~missing].tolist()
        whole = bool((values == np.rint(values))[~missing].all())
    else:
        cells = [None if is_missing(value) else value for value in as_cells(values).tolist()]
        known = [value for value in cells if value is not None]
        words = [value for value in known if isinstance(value, str)]
        whole = all(isinstance(value, Real) and value == int(value) for value in known)
    if dependencies.is_pandas_like_series(like):
        is_nullable = not isinstance(like.dtype, np.dtype) and not hasattr(like.dtype, "fill_value")
        whole &= len(known) == len(cells) or is_nullable
        return _column_of_pandas(like, values, cells, words, whole, order)
    dtype, own = nw.from_native(like, series_only=True).dtype, type_of(like)
    if _is_dictionary(like):
        try:
            return _dictionary(own, cells, order)
        except (TypeError, ValueError):  # such as means of whole numbers
            return new_column(like, cells)
    if values.dtype.kind == "M":
        new = new_column(like, values)
        return _cast(new, own) if _is_temporal(own) else new
    # Of a constant column of booleans, the value is a number here.
    are_bits = all(value in (0, 1) for value in known)
    is_bool = dtype == nw.Boolean and are_bits
    as_type = bool if is_bool else int if dtype.is_integer() and whole else lambda x: x
    cells = [None if value is None else as_type(value) for value in cells]
    if dtype == nw.Enum:
        return new_column(like, cells, type(own)(_extended(own.categories, words, order)))
    fits = str(own).lower() != "null" and (dtype in OF_WORDS or not words)
    fits &= are_bits if dtype == nw.Boolean else whole or not dtype.is_integer()
    fits &= not dtype.is_float() or values.dtype.kind == "f" or all(map(is_a_float, known))
    try:
        return new_column(like, cells, own if fits else None)
    except (TypeError, ValueError, NotImplementedError):  # of PyArrow
        return new_column(like, cells)


def _column_of_pandas(like, values, cells, words, whole, order):
    series, kind = partial(type(like), name=like.name), getattr(like.dtype, "kind", "O")
    if hasattr(like.dtype, "categories"):
        return series(_categorical(like.dtype, cells, order))
    if words and kind in "biufcmM":  # of which a batch has none
        return series(values)
    if values.dtype.kind == "M":
        if has_zone(like):
            return series(values).dt.tz_localize("UTC").astype(like.dtype)
        new = series(values, dtype=like.dtype if _is_temporal(like.dtype) else None)
        if like.dtype != object:
            return new
        is_finer = isinstance(cells[0], np.datetime64)
        return new.astype(object) if is_finer else series(cells, dtype=object)
    fits = kind not in "iub" or whole and (kind != "b" or set(cells) <= {0, 1, None})
    if kind == "f" and values.dtype.kind == "O":
        fits = all(is_a_float(value) for value in cells if value is not None)
        cells = [np.nan if value is None else value for value in cells]
        values = np.array(cells, dtype=np.float64) if fits else values
    try:
        return series(values, dtype=like.dtype if fits else None)
    except (TypeError, ValueError):  # beyond the range of the type
        return series(values)


def _categorical(dtype, cells, order):
    """Cells as categories of pandas, of which there may be more than before."""
    places = find_places(list(dtype.categories), cells)
    new = [cells[row] for row in np.flatnonzero(places < 0) if cells[row] is not None]
    if new:
        dtype = type(dtype)(_extended(dtype.categories, new, order), dtype.ordered)
        places = find_places(list(dtype.categories), cells)
    return dtype.construct_array_type().from_codes(places, dtype=dtype)


def _extended(categories, cells, order):
    """Categories with those that a batch lacks, in the order of `fit` if that has all of them."""
    found = list(dict.fromkeys([*categories, *cells]))
    places = find_places([] if order is None else list(order), found)
    if (places < 0).any():
        return found
    own = dict(zip(places.tolist(), found, strict=True))
    return [own.get(place, value) for place, value in enumerate(order)]


def new_column(like, values, dtype=None):
    """A new column of polars or PyArrow; pandas takes an array for one."""
    if dependencies.is_pandas_like_series(like):
        return values
    if dependencies.is_polars_series(like):
        return type(like)(like.name, values, dtype, strict=dtype is not None)
    pyarrow = import_module("pyarrow")
    return pyarrow.chunked_array([pyarrow.array(values, dtype)])


def _dictionary(dtype, values, order):
    """A column of a dictionary of PyArrow, which begins with the values in `order`."""
    pyarrow = import_module("pyarrow")
    if str(dtype.value_type) == "bool" and set(values) <= {0, 1, None}:
        values = [value if value is None else bool(value) for value in values]
    values = list(map(numpy_date, values))
    known = [] if order is None else list(map(numpy_date, order))
    known = dict.fromkeys([*known, *(value for value in values if value is not None)])
    place = {value: code for code, value in enumerate(known)}
    codes = pyarrow.array(map(place.get, values), dtype.index_type)
    words = list(place)
    if words and isinstance(words[0], np.datetime64):
        words = pyarrow.array(np.array(words)).cast(dtype.value_type, safe=False)
    else:
        words = pyarrow.array(words, dtype.value_type)
    return pyarrow.chunked_array(
        [pyarrow.DictionaryArray.from_arrays(codes, words, ordered=dtype.ordered)]
    )


def _cast(column, dtype):
    """A column in another type; dates are cut where that is coarser."""
    if dependencies.is_pandas_like_series(column):
        return column.astype(dtype)
    if dependencies.is_polars_series(column):
        return column.cast(dtype)
    return column.cast(dtype, safe=False)


def type_of(column):
    """The type of a column of a frame."""
    return column.type if dependencies.is_pyarrow_chunked_array(column) else column.dtype


def _is_temporal(dtype):
    """Whether cells of a type are dates."""
    return any(word in str(dtype).lower() for word in ("date", "timestamp"))


def _is_dictionary(column):
    return type(getattr(column, "type", None)).__name__ == "DictionaryType"
