"""Dates: which cells are such, and how many units they are after another one."""

from datetime import UTC, date, time, timedelta
from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._frames import timestamps
from sklearn_boltz.tables._values import MOST_EXACT, as_objects, is_empty, is_missing, is_number


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
        """Codec of a column of dates; None for others."""
        unit = unit_of_dates(cells)
        if unit != "ns":
            return unit and cls(unit)
        dates = as_dates(cells, unit)
        return cls(unit, int(dates[~np.isnat(dates)].min().astype(np.int64)))

    def levels(self, cells, most):
        """The dates of a column in order, where floats cannot tell them apart, `most` of them.

        None of other columns.
        """
        if self.unit != "ns":
            return None
        values = np.unique(as_dates(cells, self.unit))
        values = values[~np.isnat(values)]
        is_wide = values[-1].astype(np.int64) - self.origin >= MOST_EXACT
        return as_objects(list(values)) if is_wide and len(values) <= most else None

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
        """Convert a user's value to that of a cell."""
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
    """Type of the dates in a column of objects, if there is only one.

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


def kind_of_times(cells):
    """Kind of times that cannot be modelled, a key of `OF_TIMES`; None if there are none."""
    if cells.dtype.kind != "O":
        return {"M": "date", "m": "difference"}.get(cells.dtype.kind)
    try:
        different = dict.fromkeys(cells.tolist())
    except TypeError:  # a cell without a hash, such as a list
        different = cells.tolist()
    return next(filter(None, map(_kind_of_time, different)), None)


def _kind_of_time(value):
    if isinstance(value, (str, int, float)) or is_missing(value):  # most are; NaT is a date
        return None
    if isinstance(value, (date, np.datetime64)):
        return "date" if getattr(value, "tzinfo", None) is None else "zone"
    if isinstance(value, time):
        return "time"
    if isinstance(value, (timedelta, np.timedelta64)):
        return "difference"
    return "period" if hasattr(value, "start_time") and hasattr(value, "end_time") else None


def unit_of_dates(cells):
    """The unit of a column of dates: days if it has no time, else us, or ns; None of others.

    Dates with a time zone, times and differences are None, too.
    """
    if cells.dtype.kind == "O":
        known = (cell for cell in cells.tolist() if not is_missing(cell))
        if not _is_date(next(known, None)) or not all(map(_is_date, known)):
            return None
    elif cells.dtype.kind != "M":
        return None
    if _have_nanoseconds(cells):
        return "ns"
    dates = as_dates(cells, "us")
    dates = dates[~np.isnat(dates)]
    return "D" if (dates == dates.astype("datetime64[D]")).all() else "us"


def _is_date(value):
    is_date = isinstance(value, (date, np.datetime64))
    return is_date and getattr(value, "tzinfo", None) is None


def _have_nanoseconds(cells):
    """Whether some dates of a column are finer than microseconds."""
    if cells.dtype.kind == "O":
        of_numpy = [cell for cell in cells.tolist() if isinstance(cell, np.datetime64)]
        if not of_numpy:
            return any(getattr(cell, "nanosecond", 0) for cell in cells.tolist())
        cells = np.array(of_numpy)
    if np.datetime_data(cells.dtype)[0] != "ns":
        return False
    return bool((cells != cells.astype("datetime64[us]"))[~np.isnat(cells)].any())


def as_dates(cells, unit):
    """Cells of dates, NaT for missing ones, in a unit of NumPy."""
    if cells.dtype.kind == "O":
        cells = [None if is_missing(cell) else _in_utc(cell) for cell in cells.tolist()]
    if unit != "ns":
        return np.array(cells, dtype="datetime64[us]").astype(f"datetime64[{unit}]")
    if isinstance(cells, list):  # pandas' own conversion to NumPy keeps the nanoseconds
        cells = [getattr(cell, "asm8", cell) for cell in cells]
    return np.array(cells, dtype="datetime64[ns]")


def _in_utc(cell):
    """A date that has a time zone as the same instant without one."""
    has_zone = getattr(cell, "tzinfo", None) is not None
    return cell.astimezone(UTC).replace(tzinfo=None) if has_zone else cell
