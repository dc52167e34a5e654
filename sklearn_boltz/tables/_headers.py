"""What a data frame says of its columns, in plain values: no object of its library is kept."""

from importlib import import_module
from typing import NamedTuple

import numpy as np


class Dtype(NamedTuple):
    """The type of a column.

    Attributes
    ----------
    name : str
        As the library writes it; "string" and "arrow" for the types of pandas that have a storage.
    options : tuple
        What else the type has: of categories their values, their type and whether they are
        ordered; of texts of pandas their storage and whether a missing one is NaN.
    """

    name: str
    options: tuple = ()

    @property
    def is_ordered(self):
        """Whether it declares an order of its values."""
        return self.name == "category" and self.options[2]


class Header(NamedTuple):
    """The columns of a data frame.

    Attributes
    ----------
    library : {"pandas", "polars"}
    names : list
        Of the columns.
    names_of_levels : list
        What pandas calls the levels of these names; empty for polars.
    dtypes : list of Dtype
    """

    library: str
    names: list
    names_of_levels: list
    dtypes: list

    @classmethod
    def of(cls, frame):
        """The header of a data frame."""
        if hasattr(frame, "with_columns"):
            dtypes = [_described_by_polars(dtype) for dtype in frame.dtypes]
            return cls("polars", list(frame.columns), [], dtypes)
        dtypes = [_described_by_pandas(dtype) for dtype in frame.dtypes]
        return cls("pandas", frame.columns.tolist(), list(frame.columns.names), dtypes)

    def empty_frame(self):
        """A data frame without rows; None if its library is not installed."""
        try:
            library = import_module(self.library)
        except ImportError:
            return None
        if self.library == "polars":
            dtypes = [_of_polars(library, dtype) for dtype in self.dtypes]
            return library.DataFrame(schema=dict(zip(self.names, dtypes, strict=True)))
        dtypes = [_of_pandas(library, dtype) for dtype in self.dtypes]
        frame = library.DataFrame({
            j: library.Series([], dtype=dtype) for j, dtype in enumerate(dtypes)
        })  # fmt: skip
        frame.columns = (
            library.MultiIndex.from_tuples(self.names, names=self.names_of_levels)
            if len(self.names_of_levels) > 1
            else library.Index(self.names, name=self.names_of_levels[0])
        )
        return frame


def _described_by_pandas(dtype):
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        values = dtype.categories
        options = values.tolist(), _described_by_pandas(values.dtype), bool(dtype.ordered)
        return Dtype("category", options)
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


def _described_by_polars(dtype):
    name, options = type(dtype).__name__, ()
    if name == "Enum":
        options = (dtype.categories.to_list(),)
    elif name == "Decimal":
        options = dtype.precision, dtype.scale
    elif name == "Datetime":
        options = dtype.time_unit, dtype.time_zone
    return Dtype(name, options)


def _of_polars(polars, dtype):
    return getattr(polars, dtype.name)(*dtype.options)
