"""Differences between libraries of frames: their types, as plain values, and their cells."""

from datetime import date
from importlib import import_module
from io import BytesIO
from typing import NamedTuple

import numpy as np
from narwhals import dependencies

from sklearn_boltz.tables._frames import (
    cells_of,
    declared_values,
    has_zone,
    names_of,
    new_column,
    type_of,
    with_new,
)
from sklearn_boltz.tables._values import is_missing, numpy_date


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

    def joined(self, other):
        """The header with types that hold the cells of two; columns of pandas have their own."""
        if self.library == "pandas" or self.types == other.types:
            return self
        frame, others = self.empty_frame(), other.empty_frame()
        common = _common_of_polars if self.library == "polars" else _common_of_arrow
        types = {name: common(type_of(frame[name]), type_of(others[name])) for name in self.names}
        return Header.of(
            with_new(frame, {n: new_column(frame[n], [], own) for n, own in types.items()})
        )

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


def zones_of(frame):
    """The time zone of each column, None of those that have none."""
    return [_zone(type_of(frame[name])) for name in names_of(frame)]


def _zone(dtype):
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    zone = getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None)  # the latter of polars
    return None if zone is None else str(zone)


def _described(dtype):
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        values, of_values = dtype.categories, _described(dtype.categories.dtype)
        if hasattr(values, "freq"):  # dates, durations and periods, which texts tell
            values = values.astype(str)
        return Dtype("category", (values.tolist(), of_values, bool(dtype.ordered)))
    if kind == "StringDtype":
        return Dtype("string", (dtype.storage, isinstance(dtype.na_value, float)))
    if kind == "ArrowDtype":
        schema = import_module("pyarrow").schema([("", dtype.pyarrow_dtype)])
        return Dtype("arrow", (schema.serialize().to_pybytes(),))
    return Dtype(str(dtype))


def _of_pandas(pandas, dtype):
    """A type of pandas; object where it cannot be told by its name."""
    if dtype.name == "category":
        values, of_values, ordered = dtype.options
        values = pandas.Index(values, dtype=_of_pandas(pandas, of_values), tupleize_cols=False)
        return pandas.CategoricalDtype(values, ordered)
    if dtype.name == "string":
        storage, is_nan = dtype.options
        return pandas.StringDtype(storage, **({"na_value": np.nan} if is_nan else {}))
    try:
        if dtype.name == "arrow":
            pyarrow = import_module("pyarrow")
            schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(*dtype.options))
            return pandas.ArrowDtype(schema.field(0).type)
        return pandas.api.types.pandas_dtype(dtype.name)
    except (TypeError, ValueError):
        return np.dtype(object)


def common_type(one, other):
    """That of two types of pandas, as `Dtype`."""
    pandas = import_module("pandas")
    types = [_of_pandas(pandas, dtype) for dtype in (one, other)]
    if one.name == other.name == "arrow":
        arrow = _common_of_arrow(*(dtype.pyarrow_dtype for dtype in types))
        return _described(pandas.ArrowDtype(arrow))
    if len({*map(_zone, types)} - {None}) > 1:
        types = [pandas.DatetimeTZDtype(dtype.unit, "UTC") for dtype in types]
    return _described(pandas.concat([pandas.Series([], dtype=dtype) for dtype in types]).dtype)


def in_one_zone(one, other):
    """Two types of Arrow, of which timestamps in two time zones are in UTC."""
    if len({_zone(one), _zone(other)} - {None}) < 2:
        return one, other
    return tuple(import_module("pyarrow").timestamp(dtype.unit, "UTC") for dtype in (one, other))


def _common_of_arrow(one, other):
    pyarrow = import_module("pyarrow")
    schemas = [pyarrow.schema([("", dtype)]) for dtype in in_one_zone(one, other)]
    try:
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # dates have no times
        return max(one, other, key=lambda dtype: "timestamp" in str(dtype))


def _common_of_polars(one, other):
    polars, units = import_module("polars"), ("ms", "us", "ns")
    if isinstance(one, polars.Datetime) and isinstance(other, polars.Datetime):
        finest = max(one, other, key=lambda dtype: units.index(dtype.time_unit))
        is_same = _zone(one) == _zone(other)
        return finest if is_same else polars.Datetime(finest.time_unit, "UTC")
    frames = [polars.DataFrame(schema={"": dtype}) for dtype in (one, other)]
    try:
        return polars.concat(frames, how="vertical_relaxed").schema[""]
    except polars.exceptions.PolarsError:
        return one


# Frames of another library.


def of_library(frame, library):
    """A frame of "pandas" or "polars" with the cells of another one, but not its index."""
    is_own = {
        "pandas": dependencies.is_pandas_dataframe, "polars": dependencies.is_polars_dataframe,
    }[library]  # fmt: skip
    if is_own(frame):
        return frame
    convert = _for_pandas if library == "pandas" else _for_polars
    names, kind = names_of(frame), import_module(library).DataFrame
    new = kind({str(j): convert(frame[name]) for j, name in enumerate(names)})
    new.columns = names if library == "pandas" else list(map(str, names))
    return new


def _for_pandas(column):
    """A column of polars or PyArrow as pandas takes it."""
    if has_zone(column):
        return column.to_pandas()
    values, is_ordered = declared_values(column)
    cells = cells_of(column)
    return (
        cells if values is None else import_module("pandas").Categorical(cells, values, is_ordered)
    )


def _for_polars(column):
    """A column of pandas or PyArrow as polars takes it: as one of objects where it must."""
    polars, (values, _) = import_module("polars"), declared_values(column)
    if has_zone(column):
        is_pandas = dependencies.is_pandas_like_series(column)
        return (polars.from_pandas if is_pandas else polars.from_arrow)(column)
    cells = cells_of(column)
    if cells.dtype.kind == "O" and all(isinstance(c, (date, np.datetime64)) for c in cells):
        dates = [numpy_date(cell) for cell in cells]
        cells = cells if any(isinstance(cell, date) for cell in dates) else np.array(dates)
    if cells.dtype.kind == "M":
        is_day = np.datetime_data(cells.dtype)[0] == "D"
        return cells if is_day else cells.astype(np.promote_types(cells.dtype, "datetime64[ms]"))
    if cells.dtype.kind != "O":
        return cells
    cells = [None if is_missing(cell) else cell for cell in cells.tolist()]
    if values is not None and all(isinstance(value, str) for value in values):
        return polars.Series(cells, dtype=polars.Enum(values))
    try:
        new = polars.Series(cells)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        new = None
    is_same = new is not None and new.to_list() == cells
    return new if is_same else polars.Series(cells, dtype=polars.Object)
