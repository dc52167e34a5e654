"""Data frames of pandas, polars, PyArrow and the like: no other file knows their libraries.

What they have in common is done by narwhals. What it does not keep, such as names with levels and
extension types of pandas, or dictionaries of PyArrow, is done by methods of their own.
"""

from importlib import import_module
from io import BytesIO
from numbers import Real
from typing import NamedTuple

import narwhals as nw
import numpy as np
from narwhals import dependencies
from sklearn.utils import Bunch, _safe_indexing

# Types that hold any string.
OF_WORDS = nw.String, nw.Categorical, nw.Object


def is_frame(X):
    """Whether X is a data frame of pandas, polars, PyArrow or the like."""
    return dependencies.is_into_dataframe(X) and not isinstance(X, nw.DataFrame)


def is_missing(value):
    """Whether a cell is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # bool(pandas.NA) is an error
        return True
    except ValueError:  # an array in a cell
        return False


def names_of(frame):
    """The names of the columns, of which two may be the same."""
    return list(frame.column_names if dependencies.is_pyarrow_table(frame) else frame.columns)


def cells_of(column):
    """The cells of a column of a frame as an array."""
    if _is_dictionary(column):  # NumPy would have a value where one is missing
        column = column.cast(column.type.value_type)
    return np.asarray(column)


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


# Frames from frames.


def some_rows(X, rows):
    """Some rows of a table of any kind, by their numbers or a slice."""
    # Before 1.9, scikit-learn cannot select rows of PyArrow.
    return nw.from_native(X)[rows].to_native() if is_frame(X) else _safe_indexing(X, rows)


def some_columns(X, columns):
    """Some columns of a table by their numbers."""
    if len(columns) == X.shape[1]:
        return X
    return nw.from_native(X)[:, columns.tolist()].to_native() if is_frame(X) else X[:, columns]


def joined(tables):
    """Tables of one kind as one, one after the other."""
    if not is_frame(tables[0]):
        return np.concatenate(tables)
    return nw.concat([nw.from_native(table) for table in tables]).to_native()


def with_columns(frame, cells, order=()):
    """A copy of a frame with other cells in some columns, which keep their types if they can.

    Parameters
    ----------
    frame : data frame
    cells : dict
        From the numbers of columns to arrays.
    order : dict
        From such numbers to the values of a dictionary of PyArrow, in order.
    """
    names, order = names_of(frame), dict(order)
    columns = {names[j]: _column(frame[names[j]], own, order.get(j)) for j, own in cells.items()}
    return _with(frame, columns)


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
    return _with(frame, {name: _new(like, flag) for name, flag in zip(names, flags.T, strict=True)})


def _with(frame, columns):
    """A copy of a frame with other or more columns, by their names."""
    if dependencies.is_pandas_like_dataframe(frame):  # narwhals would drop names of levels
        frame = frame.copy()
        for name, column in columns.items():
            frame[name] = column
        return frame
    new = [nw.from_native(column, series_only=True).alias(name) for name, column in columns.items()]
    return nw.from_native(frame).with_columns(*new).to_native()


def frame_like(template, cells, orders):
    """A frame of the given cells with the names and types of a template, if they can hold them.

    Parameters
    ----------
    template : data frame
    cells : list of ndarray
        Of each column.
    orders : list
        As in `with_columns`, of each column.
    """
    likes = [template[name] for name in names_of(template)]
    columns = list(map(_column, likes, cells, orders))
    if dependencies.is_polars_dataframe(template):
        return type(template)(columns)
    if dependencies.is_pyarrow_table(template):
        return type(template).from_arrays(columns, template.column_names)
    frame = type(template)(dict(enumerate(columns)))
    frame.columns = template.columns
    return frame


def _column(like, values, order):
    """Values as a column of the type of another one, if it can hold them."""
    cells = [None if is_missing(value) else value for value in values.tolist()]
    known = [value for value in cells if value is not None]
    words = [value for value in known if isinstance(value, str)]
    whole = values.dtype.kind != "M" and all(
        isinstance(value, Real) and value == int(value) for value in known
    )
    if dependencies.is_pandas_like_series(like):
        whole &= len(known) == len(cells) or not isinstance(like.dtype, np.dtype)
        return _column_of_pandas(like, values, known, words, whole, order)
    if values.dtype.kind == "M":
        return _new(like, values.astype("datetime64[us]")).cast(_type(like))
    dtype = nw.from_native(like, series_only=True).dtype
    # Of a constant column of booleans, the value is a number here.
    are_bits = all(value in (0, 1) for value in known)
    is_bool = dtype == nw.Boolean and are_bits
    as_type = bool if is_bool else int if dtype.is_integer() and whole else lambda x: x
    values = [None if value is None else as_type(value) for value in cells]
    if _is_dictionary(like):
        return _dictionary(like.type, values, order)
    if dtype == nw.Enum:
        own = _type(like)
        return _new(like, values, type(own)(_extended(own.categories, words, order)))
    fits = (dtype in OF_WORDS or not words) and dtype != nw.Unknown
    fits &= are_bits if dtype == nw.Boolean else whole or not dtype.is_integer()
    return _new(like, values, _type(like) if fits else None)


def _column_of_pandas(like, values, known, words, whole, order):
    index, kind = like.index if len(like) == len(values) else None, getattr(like.dtype, "kind", "O")
    if words and kind in "biufcmM":  # of which a batch has none
        return type(like)(values, index, None, like.name)
    if hasattr(like.dtype, "categories"):
        dtype = like.dtype
        if any(value not in dtype.categories for value in dict.fromkeys(known)):
            dtype = type(dtype)(_extended(dtype.categories, known, order), dtype.ordered)
        return type(like)(values, index, dtype, like.name)
    if values.dtype.kind == "M":
        values = values.astype(object) if kind == "O" else values  # of Python
        return type(like)(values, index, like.dtype, like.name)
    if kind in "iuf" and values.dtype.kind == "O":
        values = np.array([np.nan if is_missing(v) else v for v in values], dtype=np.float64)
    fits = kind not in "iub" or whole
    return type(like)(values, index, like.dtype if fits else None, like.name)


def _extended(categories, cells, order):
    """Categories with those that a batch lacks, in the order of `fit` if that has all of them."""
    found = list(dict.fromkeys([*categories, *cells]))
    return found if order is None or not set(found) <= set(order) else list(order)


def _new(like, values, dtype=None):
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
    known = [value for value in values if value is not None]
    known = dict.fromkeys([*([] if order is None else order), *known])
    place = {value: code for code, value in enumerate(known)}
    codes = pyarrow.array(map(place.get, values), dtype.index_type)
    words = pyarrow.array(list(place)).cast(dtype.value_type)
    return pyarrow.chunked_array(
        [pyarrow.DictionaryArray.from_arrays(codes, words, ordered=dtype.ordered)]
    )


def _type(column):
    return column.type if dependencies.is_pyarrow_chunked_array(column) else column.dtype


def _is_dictionary(column):
    return type(getattr(column, "type", None)).__name__ == "DictionaryType"


# What is kept of frames.


class Header(NamedTuple):
    """The columns of a data frame in plain values: no object of its library is kept.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow"}
    names : list
        Of the columns.
    types : list of Dtype or bytes
        Of pandas; of the others, an empty frame or the schema as Arrow writes it.
    names_of_levels : list
        What pandas calls the levels of the names.
    """

    library: str
    names: list
    types: list | bytes
    names_of_levels: list

    @classmethod
    def of(cls, frame):
        """The header of a data frame."""
        names = names_of(frame)
        if dependencies.is_polars_dataframe(frame):
            file = BytesIO()
            frame.clear().write_ipc(file)
            return cls("polars", names, file.getvalue(), [])
        if dependencies.is_pyarrow_table(frame):
            return cls("pyarrow", names, frame.schema.serialize().to_pybytes(), [])
        names_of_levels = list(frame.columns.names)
        return cls("pandas", frame.columns.tolist(), types_of(frame), names_of_levels)

    def with_types(self, types):
        """The header with other types, as `types_of` gives them."""
        return self._replace(types=types) if self.library == "pandas" else self

    def empty_frame(self):
        """A data frame without rows; None if its library is not installed."""
        try:
            library = import_module(self.library)
        except ImportError:
            return None
        if self.library == "polars":
            return library.read_ipc(BytesIO(self.types))
        if self.library == "pyarrow":
            return library.ipc.read_schema(library.py_buffer(self.types)).empty_table()
        dtypes = [_of_pandas(library, dtype) for dtype in self.types]
        frame = library.DataFrame({
            j: library.Series([], dtype=dtype) for j, dtype in enumerate(dtypes)
        })  # fmt: skip
        frame.columns = (
            library.MultiIndex.from_tuples(self.names, names=self.names_of_levels)
            if len(self.names_of_levels) > 1
            else library.Index(self.names, name=self.names_of_levels[0])
        )
        return frame


class Dtype(NamedTuple):
    """The type of a column of pandas.

    Attributes
    ----------
    name : str
        As pandas writes it; "string" and "arrow" for the types that have a storage.
    options : tuple
        What else the type has: of categories their values, their type and whether they are
        ordered; of texts their storage and whether a missing one is NaN.
    """

    name: str
    options: tuple = ()


def types_of(frame):
    """The type of each column, a list of Dtype; None for types that are kept as a whole."""
    if dependencies.is_pandas_like_dataframe(frame):
        return list(map(_described, frame.dtypes))
    if dependencies.is_polars_dataframe(frame):
        return [None] * len(frame.columns)
    orders = (declared_values(column)[0] for column in frame.columns)
    return [None if order is None else Dtype("category", (order, None, True)) for order in orders]


def _described(dtype):
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        values = dtype.categories
        return Dtype("category", (values.tolist(), _described(values.dtype), bool(dtype.ordered)))
    if kind == "StringDtype":
        return Dtype("string", (dtype.storage, isinstance(dtype.na_value, float)))
    if kind == "ArrowDtype":
        return Dtype("arrow", (str(dtype.pyarrow_dtype),))
    return Dtype(str(dtype))


def _of_pandas(pandas, dtype):
    """A type of pandas; object where it cannot be told by its name."""
    if dtype.name == "category":
        values, of_values, ordered = dtype.options
        values = pandas.Index(values, dtype=_of_pandas(pandas, of_values))
        return pandas.CategoricalDtype(values, ordered)
    if dtype.name == "string":
        storage, is_nan = dtype.options
        return pandas.StringDtype(storage, **({"na_value": np.nan} if is_nan else {}))
    try:
        if dtype.name == "arrow":
            return pandas.ArrowDtype(import_module("pyarrow").type_for_alias(*dtype.options))
        return pandas.api.types.pandas_dtype(dtype.name)
    except (TypeError, ValueError):
        return np.dtype(object)
