"""The line that repairs a column, in the library of its table: what messages name can be run."""

import re
from datetime import datetime
from typing import NamedTuple

# A number with a currency before it, or a unit behind it.
CURRENCY = "[$¢£¤¥₩₪₫€₱₹₺₽₿]|AUD|CAD|CHF|CNY|EUR|GBP|INR|JPY|USD|US\\$"
NUMBER = re.compile(rf"\s*({CURRENCY})?\s*([+-]?[\d.,' ]*\d)\s*([^\d.,+-]{{,12}}?)\s*")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.' ]\d{3})+")
# As postal codes have them.
LEADING_ZERO = re.compile(r"\s*0\d")
# How dates are written, of which the first one that all cells obey is taken: days before months.
DAYS = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%d-%b-%Y", "%d-%b-%y", "%b %d %Y", "%Y%m%d",
]  # fmt: skip
FEWEST_DIGITS = 3
TIMES = ["", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S.%f"]
WAYS = [day + time for day in DAYS for time in TIMES]
CLOCK = re.compile(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


class Place(NamedTuple):
    """A column of a table, as code names it.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow"} or None
        None for an array.
    name : object
        The label of the column, or its number in an array.
    """

    library: str | None
    name: object

    @property
    def title(self):
        """Name of the column in messages."""
        return f"column {self.name!r}"

    def line(self, of_pandas, of_polars=None):
        """A statement that replaces the column.

        From the column, which is called ``x`` there, to the new one: with pandas as ``pd``, and
        with polars as ``pl`` where that is not the same.
        """
        if self.library == "polars":
            column = f"pl.col({self.name!r})"
            return f"X = X.with_columns({_put(of_polars or of_pandas, column)})"
        column = f"X[{self.name!r}]"
        return f"{self._first}{column} = {_put(of_pandas, column)}"

    @property
    def _first(self):
        """Expression that converts the table to a pandas frame."""
        return {"pandas": "", "pyarrow": "X = X.to_pandas(); "}.get(
            self.library, "X = pd.DataFrame(X); "
        )

    def dropped(self):
        """A statement that leaves out the column."""
        return "X = " + {
            "pandas": f"X.drop(columns=[{self.name!r}])", "polars": f"X.drop({self.name!r})",
            "pyarrow": f"X.drop_columns([{self.name!r}])",
        }.get(self.library, f"np.delete(X, {self.name}, axis=1)")  # fmt: skip

    def in_parts(self, dtype):
        """Remedy for a column of a type whose cells have parts, as a sentence."""
        x = repr(self.name)
        if dtype == "Object":
            line = f"X = X.with_columns(pl.Series({x}, X[{x}].to_list()))"
            return f"Give it a type: {line}. Or drop it: {self.dropped()}."
        if not dtype.lower().startswith("struct"):
            return f"Make columns of what is in its cells, or drop it: {self.dropped()}."
        parts = {"polars": f"X.unnest({x})", "pyarrow": "X.flatten()"}.get(
            self.library, f"X.drop(columns=[{x}]).join(X[{x}].struct.explode())"
        )
        return f"Make columns of its parts: X = {parts}. Or drop it: {self.dropped()}."

    def texts(self):
        """A statement that makes strings of the cells, except for missing ones."""
        return self.line("x.map(str, na_action='ignore')", "x.cast(pl.String)")

    def without(self, codes):
        """A statement that makes missing cells of some values of the column."""
        some = codes if len(codes) > 1 else codes[0]
        if self.library is None:
            same = f"np.isin(X, {codes})" if len(codes) > 1 else f"X == {some!r}"
            return f"X = np.where({same}, np.nan, X)"
        return self.line(f"x.replace({some!r}, np.nan)", f"x.replace({some!r}, None)")


def _put(code, column):
    return re.sub(r"\bx\b(?!['\"])", lambda _: column, code)


# Texts of numbers and dates.


def conversion(texts, doubtful, place):
    """Describe the texts of a column, and the line that converts them, in sentences.

    None if they are neither numbers nor dates. `doubtful` are those that perhaps stand for a
    missing cell.
    """
    known = [text for text in texts if isinstance(text, str) and text not in doubtful]
    if len(known) + len(doubtful) < len(texts) or not known:
        return None
    found = _of_numbers(known, doubtful) or _of_dates(known, doubtful)
    if found is None:
        return None
    what, of_pandas, of_polars = found
    but = f"All but {doubtful[0]!r}" if doubtful else "They"
    line = place.line(of_pandas, of_polars)
    return what, f"{but} are {what}. Convert the column: {line}."


def _of_numbers(texts, doubtful):
    errors, strict = (", errors='coerce'", ", strict=False") if doubtful else ("", "")

    def found(what, of_pandas="", of_polars="", scale=""):
        column = "pd.to_numeric(x" + (of_pandas or ".str.strip()") + f"{errors}){scale}"
        of_polars = of_polars or ".str.strip_chars().replace('', None)"
        return what, column, f"x{of_polars}.cast(pl.Float64{strict}){scale}"

    if any(map(LEADING_ZERO.match, texts)):
        return None
    if all(map(_is_float, texts)):
        return found("numbers")
    parts = [NUMBER.fullmatch(text) for text in texts]
    if not all(parts):
        return None
    before, numbers, after = zip(*(part.groups() for part in parts), strict=True)
    before = [mark or "" for mark in before]
    marks = {mark for mark in (*before, *after) if mark}
    if len({*zip(before, after, strict=True)}) > 1:
        return None
    marked = next((number for number in numbers if not _is_float(number)), None)
    point, groups = _marks_of(numbers)
    if point is None:
        return None
    strip = "[^0-9.-]" if point == "." else "[^0-9,-]"
    pandas = f".str.replace(r'{strip}', '', regex=True)"
    polars = f".str.replace_all(r'{strip}', '')"
    if point == ",":
        pandas += ".str.replace(',', '.')"
        polars += ".str.replace(',', '.')"
    units, what = " and ".join(map(repr, sorted(marks))), []
    if marks:
        what.append("in per cent" if marks == {"%"} else f"with the unit {units}")
    if groups:
        what.append(f"with {groups!r} as the thousands separator")
    if point == "," and marked is not None:
        what.append("with a decimal comma")
    scale = " / 100" if marks == {"%"} else ""
    return found(f"numbers {' and '.join(what)}", pandas, polars, scale)


def _marks_of(numbers):
    """The decimal point of numbers and their thousands separator; None, None if unclear."""
    for point, groups in ((".", ","), (".", "'"), (".", " "), (",", "."), (",", " "), (",", "'")):
        whole = [number.split(point) for number in numbers]
        if all(
            len(parts) <= 2
            and re.fullmatch(r"[+-]?\d+", parts[0].replace(groups, ""))
            and (groups not in parts[0] or THOUSANDS.fullmatch(parts[0]))
            and re.fullmatch(r"\d*", "".join(parts[1:]))
            for parts in whole
        ):
            is_grouped = any(groups in parts[0] for parts in whole)
            return point, groups if is_grouped else ""
    return None, None


def _of_dates(texts, doubtful):
    if sum(map(str.isdigit, texts[0])) < FEWEST_DIGITS:
        return None
    errors, strict = (", errors='coerce'", ", strict=False") if doubtful else ("", "")
    for way in WAYS:
        if all(_obeys(text, way) for text in texts):
            to = "to_datetime" if "%H" in way else "to_date"
            return (
                f"dates, as in {texts[0]!r}",
                f"pd.to_datetime(x, format={way!r}{errors})",
                f"x.str.{to}({way.replace('.%f', '%.f')!r}{strict})",
            )
    if all(CLOCK.fullmatch(text) for text in texts):
        return (
            "times of day",
            "pd.to_timedelta(x + ':00').dt.total_seconds() / 3600"
            if all(text.count(":") == 1 for text in texts)
            else "pd.to_timedelta(x).dt.total_seconds() / 3600",
            "x.str.split(':').list.get(0).cast(pl.Float64) + "
            "x.str.split(':').list.get(1).cast(pl.Float64) / 60",
        )
    if all(any(_obeys(text, way) for way in WAYS) for text in texts):
        found = list(dict.fromkeys(next(w for w in WAYS if _obeys(t, w)) for t in texts))
        first, *others = [f"pd.to_datetime(x, format={way!r}, errors='coerce')" for way in found]
        parsed = ", ".join(
            f"x.str.to_datetime({way.replace('.%f', '%.f')!r}, strict=False)" for way in found
        )
        fillna = "".join(f".fillna({other})" for other in others)
        return "dates in several formats", first + fillna, f"pl.coalesce({parsed})"
    return None


def _obeys(text, way):
    try:
        datetime.strptime(text.strip(), way)
    except ValueError:
        return False
    # strptime takes 1.2.2020, and %Y%m%d takes 7 digits.
    return way != "%Y%m%d" or len(text.strip()) == 8


def _is_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


# Columns of times.

OF_TIMES = {
    "zone": ("objects that are dates with a time zone", "pd.to_datetime(x, utc=True)", None),
    "difference": (
        "differences of times",
        "pd.to_timedelta(x).dt.total_seconds()",
        "x.dt.total_microseconds() / 1e6",
    ),
    "time": (
        "times of day",
        "x.map(lambda t: t.hour + t.minute / 60, na_action='ignore')",
        "x.dt.hour() + x.dt.minute() / 60",
    ),
    "period": ("periods", "pd.PeriodIndex(x).to_timestamp()", None),
    "date": ("dates beside other values", "pd.to_datetime(x, errors='coerce')", None),
}


def without_times(kind, place):
    """Problem with a column of times, and the line that converts it, as a clause."""
    what, of_pandas, of_polars = OF_TIMES[kind]
    return (
        f"holds {what}, which are not supported. Convert the column: "
        f"{place.line(of_pandas, of_polars)}."
    )
