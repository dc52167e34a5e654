"""Values of cells: which of them are no floats, and which are the same in other types."""

import re
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache, partial
from numbers import Integral, Rational, Real

import numpy as np

# Below this, every whole number is a float.
MOST_EXACT = 2**53
# Texts of numbers, of truth, and of dates by ISO 8601.
WHOLE = re.compile(r"[+-]?\d{1,4000}")
REAL = re.compile(r"[+-]?(\d{1,300}\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
TRUTH = {"false": 0, "true": 1}
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d+))?)?")


def is_missing(value):
    """Whether a cell is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # bool(pandas.NA), and NaN of Decimal that signals
        return True
    except ValueError:  # an array in a cell
        return False


def is_empty(cell):
    """Whether a cell is missing, or a text without a character in it."""
    if isinstance(cell, str):
        return not cell.strip()
    return is_missing(cell)


def plain(cell):
    """A cell as it is looked up: NumPy's scalars as Python has them, but dates and durations."""
    are_finer = isinstance(cell, (np.datetime64, np.timedelta64))
    return cell.item() if isinstance(cell, np.generic) and not are_finer else cell


def is_number(value):
    """Whether a value is a real number of Python or NumPy; booleans are, too."""
    return isinstance(value, (Real, Decimal)) and not isinstance(value, np.timedelta64)


def is_a_float(number):
    """Whether a number is nothing but a float: no Decimal, no Fraction, no large whole number."""
    if isinstance(number, Integral):
        return abs(int(number)) < MOST_EXACT
    return not isinstance(number, (Decimal, Rational))


def beyond_floats(numbers):
    """Whether an array of integers has some that floats may not hold."""
    if numbers.dtype.kind not in "iu" or numbers.dtype.itemsize < 8 or not numbers.size:
        return False
    return bool(numbers.max() >= MOST_EXACT or numbers.min() <= -MOST_EXACT)


def as_objects(values):
    """A list of values as an array of these very objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def as_cells(values):
    """An array as one of Python's objects, of NumPy's dates where Python's are not fine enough."""
    is_finer = values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] == "ns"
    return as_objects(list(values)) if is_finer else values.astype(object)


def as_column(values):
    """Values as an array: of numbers if floats hold them, else of objects; dates are NumPy's."""
    numbers = [v for v in values if isinstance(v, Real) and not isinstance(v, (bool, np.bool_))]
    if values and len(numbers) == len(values) and all(map(is_a_float, numbers)):
        are_whole = all(isinstance(value, Integral) for value in numbers)
        return np.array(values, dtype=np.int64 if are_whole else np.float64)
    return as_objects([numpy_date(value) for value in values])


def numpy_date(value):
    """A date without a time zone as one of NumPy, and all else as it is."""
    if not isinstance(value, date) or getattr(value, "tzinfo", None) is not None:
        return value
    return value.to_datetime64() if hasattr(value, "to_datetime64") else np.datetime64(value)


# The same value in another type.


def form_of(value):
    """Value regardless of its type: equal for 10115, 10115.0, Decimal("10115") and "10115".

    Numbers and booleans, also as texts, are numbers: whole ones are exact, others floats. Dates are
    texts by ISO 8601, without a time if that is midnight. All else is its text.
    """
    value = plain(value)
    if is_number(value):
        return _number_form(value)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = text.strip()
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if WHOLE.fullmatch(text):
        return int(text)
    if REAL.fullmatch(text):
        return _number_form(float(text))
    moment = MOMENT.fullmatch(text)
    return text if moment is None else _moment_form(*moment.groups(""))


def _number_form(number):
    try:
        whole = int(number)
    except (OverflowError, ValueError):  # infinite
        return number
    return whole if whole == number else float(number)


def _moment_form(day, minutes, seconds, fraction):
    time = (minutes or "00:00") + (seconds or ":00")
    fraction = fraction.rstrip("0")
    is_midnight = time == "00:00:00" and not fraction
    return day if is_midnight else f"{day}T{time}" + (f".{fraction}" if fraction else "")


def find_places(values, cells):
    """The place of each cell among some values; -1 for a missing cell, and for one that is none.

    A cell has the place of the value that is equal, or else of the only one that is the same in
    another type, as of 10115 for "10115". Two texts are the same only if they are equal.
    """
    place_of = {plain(value): place for place, value in enumerate(values)}
    found, forms = {}, None
    for cell in dict.fromkeys(cells):
        place = place_of.get(plain(cell), -1)
        if place < 0 and not is_missing(cell):
            forms = _places_of_forms(values) if forms is None else forms
            place = forms.get(form_of(cell), -1)
            if place >= 0 and isinstance(cell, str) and isinstance(values[place], str):
                place = -1
        found[cell] = place
    return np.array([found[cell] for cell in cells], dtype=np.intp)


def _places_of_forms(values):
    """The places of values by their forms, of those that no other value has."""
    found = {}
    for place, value in enumerate(values):
        found.setdefault(form_of(value), []).append(place)
    return {form: places[0] for form, places in found.items() if len(places) == 1}


def in_type_of(values, cells):
    """Values as other cells have them, if these are all of one type: numbers as texts, and so on.

    None of the cells is missing. A value that is nothing in the other type stays.
    """
    kinds = {values.dtype.kind, cells.dtype.kind}
    if not len(cells) or "O" not in kinds and (len(kinds) == 1 or kinds <= set("iuf")):
        return values
    types = set(map(type, cells.tolist() if cells.dtype.kind == "O" else cells[:1]))
    if len(types) > 1:
        return values
    (kind,) = types
    if kind is str:
        write = _writer_of_texts(list(dict.fromkeys(cells.tolist())))
    elif kind is np.datetime64:
        unit = np.array(cells.tolist()).dtype

        def write(value):
            return np.datetime64(form_of(value)).astype(unit)
    else:
        write = partial(_converted, kind=kind)
    cells, kept = as_cells(values).tolist(), lru_cache(None, typed=True)(partial(_kept, write))
    return as_objects([cell if is_missing(cell) else kept(cell) for cell in cells])


def _writer_of_texts(texts):
    """A function from a value to its text, as others are written: of dates with their times."""
    known = {form_of(text): text for text in texts}
    sample = max(texts, key=len)
    have_times = sample[10:] and all(MOMENT.fullmatch(text) for text in texts)

    def write(value):
        if isinstance(value, (str, bool)):
            return str(value)
        form = form_of(value)
        if form in known:
            return known[form]
        if not have_times or not MOMENT.fullmatch(str(form)):
            return str(form)
        time = form[11:] or "00:00:00"
        time += "." * (len(time) == 8 < len(sample) - 11)
        return f"{form[:10]}{sample[10]}{time.ljust(len(sample) - 11, '0')[: len(sample) - 11]}"

    return write


def _kept(write, value):
    try:
        written = write(value)
    except (TypeError, ValueError, ArithmeticError):
        return value
    return written if form_of(written) == form_of(value) else value


def _converted(value, kind):
    if type(value) is kind:
        return value
    form = form_of(value)
    if kind in (date, datetime):
        unit = "D" if kind is date else "us"
        return np.datetime64(form).astype(f"datetime64[{unit}]").item()
    return kind(form)  # also a Timestamp of pandas


def image_of(one, other, chance):
    """The values of a column and those of the other that go with them, if these are single ones.

    None if they are not, or that is an accident, as likely as `chance` in independent columns: if
    values occur once, or nearly all cells of the other are equal. NaN is a missing cell.
    """
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[both], other[both]
    values, first, place, n_each = np.unique(
        one, return_index=True, return_inverse=True, return_counts=True
    )
    if not len(values) or (other != other[first][place]).any():
        return None
    shares = np.unique(other, return_counts=True)[1] / len(other)
    sizes, n_sizes = np.unique(n_each, return_counts=True)
    log_chance = n_sizes @ np.log([(shares**size).sum() for size in sizes])
    return (values, other[first]) if log_chance < np.log(chance) else None
