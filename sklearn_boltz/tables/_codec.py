"""Cells that stand for numbers, as floats and back: dates, large whole numbers, decimals."""

from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._cells import MOST_LEVELS, as_dates, is_empty, unit_of_dates
from sklearn_boltz.tables._frames import timestamps
from sklearn_boltz.tables._values import (
    MOST_EXACT,
    as_objects,
    beyond_floats,
    form_of,
    is_a_float,
    is_number,
    plain,
)


class Dates(NamedTuple):
    """Dates as how many units they are after another one.

    Attributes
    ----------
    unit : {"D", "us", "ns"}
    origin : int
        Units since 1970, from which the numbers count: floats have not enough digits for ns.
    """

    unit: str
    origin: int = 0

    @classmethod
    def of(cls, cells):
        """Of a column of dates; None of others."""
        unit = unit_of_dates(cells)
        if unit != "ns":
            return unit and cls(unit)
        dates = as_dates(cells, unit)
        return cls(unit, int(dates[~np.isnat(dates)].min().astype(np.int64)))

    def levels(self, cells):
        """The dates of a column in order, where they are few and floats cannot tell them apart.

        None of other columns.
        """
        if self.unit != "ns":
            return None
        values = np.unique(as_dates(cells, self.unit))
        values = values[~np.isnat(values)]
        is_wide = values[-1].astype(np.int64) - self.origin >= MOST_EXACT
        return as_objects(list(values)) if is_wide and len(values) <= MOST_LEVELS else None

    def numbers(self, cells):
        """Cells as float64, NaN for missing ones; a TypeError or ValueError if one is no date."""
        if cells.dtype.kind != "M":
            cells = cells.astype(object)
            if any(is_number(cell) and not is_empty(cell) for cell in cells):
                raise TypeError("numbers are no dates")
        dates = as_dates(cells, self.unit)
        if dates.shape != cells.shape:
            raise TypeError("lists are no dates")
        return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) - self.origin)

    def cell(self, value):
        """What a user gives, as a cell has it."""
        return as_dates(as_objects([value]), self.unit)[0]

    def cells(self, numbers):
        """Numbers as dates, NaT for NaN."""
        known = ~np.isnan(numbers)
        dates = np.full(numbers.shape, "NaT", f"datetime64[{self.unit}]")
        dates[known] = (np.rint(numbers[known]).astype(np.int64) + self.origin).astype(dates.dtype)
        return dates

    def names(self, numbers):
        """Numbers in messages."""
        return self.cells(np.trunc(numbers)).astype(str)


def type_of_dates(cells):
    """What the dates in a column of objects are, if they are all of one type.

    Returns
    -------
    of_objects : str
        "date", "datetime", "Timestamp" or a type of NumPy; empty for other columns.
    """
    types = set()
    if cells.dtype.kind == "O":
        types = {
            getattr(cell, "dtype", type(cell)) for cell in cells.tolist() if not is_empty(cell)
        }
    (only,) = types if len(types) == 1 else ("",)
    return getattr(only, "__name__", str(only))


def dates_of_type(dates, of_objects):
    """An array of dates as objects of a type, see `type_of_dates`."""
    if not of_objects:
        return dates
    if of_objects == "Timestamp":
        return as_objects(timestamps(dates))
    if of_objects in ("date", "datetime"):
        unit = "D" if of_objects == "date" else "us"
        return dates.astype(f"datetime64[{unit}]").astype(object)
    return as_objects(list(dates.astype(of_objects)))


class Whole(NamedTuple):
    """Whole numbers of which floats do not hold all digits, as how far they are from another one.

    Attributes
    ----------
    origin : int
    """

    origin: int

    def numbers(self, cells):
        """As of `Dates`; an OverflowError if one is beyond all floats."""
        return _floats(cells, self.origin)

    def cell(self, value):
        """What a user gives, as a cell has it."""
        return round(_number(value))

    def cells(self, numbers):
        """Numbers as those of Python, rounded; None for NaN."""
        return _each(numbers, lambda x: round(x) + self.origin)

    def names(self, numbers):
        """Numbers in messages."""
        return self.cells(numbers).astype(str)


class Exact(NamedTuple):
    """Decimals or fractions as floats.

    Attributes
    ----------
    n_digits : int or None
        Of decimals, after the point.
    denominator : int or None
        Of fractions, at most.
    """

    n_digits: int | None
    denominator: int | None = None

    def numbers(self, cells):
        """As of `Whole`."""
        return _floats(cells, 0)

    def cell(self, value):
        """What a user gives, as a cell has it."""
        is_exact = isinstance(value, (Decimal, Fraction))
        return value if is_exact else self._cell(float(_number(value)))

    def cells(self, numbers):
        """Numbers as decimals of this many digits, or as fractions; None for NaN."""
        return _each(numbers, self._cell)

    def _cell(self, number):
        if self.denominator is None:
            return Decimal(f"{number:.{self.n_digits}f}")
        return Fraction(number).limit_denominator(self.denominator)

    def names(self, numbers):
        """Numbers in messages."""
        return self.cells(numbers).astype(str)


def codec_of_numbers(cells):
    """Of a column of numbers that are not all floats; None of others."""
    if cells.dtype.kind != "O":
        return Whole(int(cells.min())) if beyond_floats(cells) else None
    numbers = [plain(cell) for cell in dict.fromkeys(cells.tolist()) if not is_empty(cell)]
    if all(map(is_a_float, numbers)):
        return None
    forms = list(map(form_of, numbers))
    decimals = [x for x in numbers if isinstance(x, Decimal) and x.is_finite()]
    if decimals:
        return Exact(max(0, *(-x.as_tuple().exponent for x in decimals)))
    if all(isinstance(x, Integral) for x in forms):
        return Whole(min(forms))
    fractions = [x.denominator for x in numbers if isinstance(x, Rational)]
    return Exact(None, max(fractions)) if len(fractions) == len(numbers) else None


def _floats(cells, origin):
    forms = (np.nan if is_empty(cell) else _number(cell) - origin for cell in cells.tolist())
    return np.array([float(number) for number in forms], dtype=np.float64)


def _number(cell):
    """The number that a cell is, or that is its text; a ValueError for others."""
    form = form_of(cell)
    if not is_number(form):
        raise ValueError(f"{cell!r} is no number")
    return form


def _each(numbers, convert):
    cells = [None if x != x else convert(x) for x in numbers.ravel().tolist()]
    return as_objects(cells).reshape(numbers.shape)
