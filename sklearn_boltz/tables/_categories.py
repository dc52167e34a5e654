"""Columns of categories: words, flags, whole numbers of a few values, and whatever is listed."""

import re
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from sklearn_boltz._warnings import warn, warn_once
from sklearn_boltz.tables._cells import (
    ENORMOUS,
    MISSING_CODES,
    MOST_LEVELS,
    ROWS_TO_TELL,
    as_whole,
    check_cells,
    if_missing,
    missing_code_hint,
    suspected_codes,
    without_codes,
)
from sklearn_boltz.tables._column import Column, Plain, UnfitColumn, infinite
from sklearn_boltz.tables._dates import kind_of_times
from sklearn_boltz.tables._kinds import IN_ORDER, OF_LEVELS, OF_NUMBERS
from sklearn_boltz.tables._phrases import some_of
from sklearn_boltz.tables._remedies import conversion, without_times
from sklearn_boltz.tables._values import (
    as_column,
    beyond_floats,
    find_places,
    form_of,
    is_a_float,
    is_empty,
    is_missing,
    is_number,
    plain,
)

# Texts that in many files stand for a missing cell, and are seldom a category of their own.
DOUBTFUL_TEXTS = {"?", "na", "n/a", "nan", "null", "."}
# A text of a number that is written as such, without leading zeros.
NUMERAL = re.compile(r"[+-]?(0|[1-9]\d{0,299})(\.\d*)?([eE][+-]?\d{1,3})?")


@dataclass(eq=False)
class Categories(Column):
    """Values whose codes are their places.

    Attributes
    ----------
    categories : ndarray
        The values in order.
    """

    categories: np.ndarray | None = None

    @classmethod
    def learn(cls, cells, place, kind, order, codes):
        """The column of some cells, by what they are and what is said of it; `Plain` of numbers.

        `order` are the categories that its type declares, or None. With `codes`, the model takes
        the integers 0, 1, 2, ... themselves.
        """
        values = _levels_of(cells, place, kind, order, codes)
        return Plain(place, kind) if values is None else cls(place, kind, categories=values)

    @classmethod
    def of(cls, column, values):
        """A column with these values in order; with none if no cell has a value."""
        return cls(column.place, column.kind, column.codec, column.of_objects, categories=values)

    @classmethod
    def of_signs(cls, column, cells):
        """A column of numbers, with the levels -1 and 1 if it has these only."""
        numbers = column.numbers(cells).astype(np.float64)
        are_signs = set(np.unique(numbers[~np.isnan(numbers)]).tolist()) == {-1, 1}
        return cls.of(column, np.array([-1.0, 1.0])) if are_signs else column

    @property
    def _own_kind(self):
        return "binary" if len(self.categories) <= 2 else "nominal"

    @property
    def holds_numbers(self):
        """Whether the values are numbers."""
        return self.categories.dtype.kind in "iuf"

    @property
    def levels(self):
        """The values in order."""
        return self.categories

    def shown(self):
        """The values in a message."""
        return some_of(self.categories.tolist())

    def grown(self, values, order):
        """The column with more categories; None if their place among the others is not known.

        `order` are all values in the order that the type of the rows declares, or None.
        """
        old, kind = self.categories.tolist(), self.kind.name
        if not old or kind == "binary":
            return None
        every = _in_order([*old, *values], kind in IN_ORDER) if order is None else order
        places = find_places(every, old)
        if (places < 0).any() or (np.diff(places) < 0).any():
            if kind in IN_ORDER:
                return None
            every = [*old, *values]
        return replace(self, categories=as_column(every))

    def seen_in(self, codes):
        """The column with the categories that are among codes; both bools if there are any."""
        places = np.unique(codes[~np.isnan(codes)]).astype(np.intp)
        if len(places) in (0, len(self.categories)) or self.categories.dtype.kind == "b":
            return self
        return replace(self, categories=self.categories[places])

    def encode(self, cells, unseen):
        """The places of cells among the categories; as floats, with NaN, if a cell is missing.

        Values that are no category are missing ("smooth", "missing") or an error ("error", and
        "refuse" for rows of which no cell may be missing), as `unseen` says.
        """
        try:
            codes, strange = _places(self.categories, cells)
        except TypeError:  # a cell that is no value
            check_cells(cells.tolist(), self.title, f": {self.place.dropped()}")
            raise
        if strange:
            self._refuse(*strange[0], unseen)
            if unseen != "refuse" and (codes < 0).all():
                self._warn_of_strangers([cell for _, cell in strange])
        codes[codes < 0] = np.nan
        return codes if np.isnan(codes).any() else codes.astype(np.int64)

    def _refuse(self, row, cell, unseen):
        """Refuse a value that is no category, where they are listed or `unseen` says so."""
        # Of a listed column without a value in the training, none is known.
        if unseen != "missing" and self.kind.levels is not None and len(self.categories):
            _refuse_unlisted(self.title, row, cell, " and fit again,")
        if unseen not in ("error", "refuse"):
            return
        known = f"there are {self.shown()}" if len(self.categories) else "it had no value there"
        remedy = "Correct the cell, or leave out the row."
        if unseen == "error":
            remedy = (
                "Replace it by NaN, or leave `unseen` at 'smooth', which gives such values a "
                "small probability."
            )
        raise UnfitColumn(
            "unseen",
            f"{self.title} has the value {cell!r} in row {row}, which no row of the training "
            f"data has; {known}. {remedy}",
        )

    def _warn_of_strangers(self, cells):
        """Warn that no value occurred in training, unless a single cell has a new one."""
        values, others = self.categories.tolist(), list(dict.fromkeys(map(plain, cells)))
        are_alike = {is_number(v) or type(v) for v in others} <= {
            is_number(v) or type(v) for v in values
        }
        if values and (len(cells) > 1 or not are_alike):
            warn_once(
                ("strangers", self.title),
                f"{self.title} has none of the values that it had in training. Then: "
                f"{some_of(values)}. Now: {some_of(others)}. If they mean the same, write them in "
                "the same way.",
            )

    def decode(self, codes, uniform=None):
        """Values of codes, the inverse of `encode`; of fractions, the nearest category."""
        if not len(self.categories):  # no cell of the training had a value
            return np.full(len(codes), None, dtype=object)
        places = np.clip(np.rint(np.nan_to_num(codes)), 0, len(self.categories) - 1)
        categories, missing = self.categories, np.isnan(codes)
        if isinstance(categories[0], np.datetime64):
            categories = np.array(categories.tolist())
        values = categories[places.astype(np.intp)]
        if missing.any():
            values = values if values.dtype.kind == "M" else values.astype(object)
            values[missing] = None
        return values


def _places(categories, cells):
    """The place of each cell among the categories as float64, and rows and cells without one.

    Of the latter, places are -1, also where cells are empty.
    """
    # Numbers of which two can be told apart as floats.
    are_floats = categories.dtype.kind in "if" and len(categories) and not beyond_floats(categories)
    if are_floats and cells.dtype.kind in "biuf":
        order = np.argsort(categories)
        found = order[np.searchsorted(categories, cells, sorter=order).clip(max=len(order) - 1)]
        places, cells = np.where(categories[found] == cells, found, -1), cells.tolist()
    else:
        cells = cells.tolist() if cells.dtype.kind != "M" else list(cells)
        places = find_places(categories.tolist(), cells)
    strange = [(row, cells[row]) for row in np.flatnonzero(places < 0) if not is_empty(cells[row])]
    return places.astype(np.float64), strange


def _refuse_unlisted(title, row, cell, fit_again=","):
    raise UnfitColumn(
        "undeclared",
        f"{title} has the value {plain(cell)!r} in row {row}, which is none of the values that "
        f"`columns` lists. Add it there{fit_again} or write the cell as NaN.",
    )


# Which values a column has.


def _levels_of(cells, place, kind, order, codes):
    """Values in order, as of `Categories.learn`; None for numbers."""
    if kind.levels is not None:
        return _listed(cells, place.title, kind.levels)
    are_levels, stay = kind.name in OF_LEVELS, kind.name in (*OF_NUMBERS, "plain")
    is_array = cells.dtype.kind in "iuf"
    if is_array and order is None and not are_levels:
        return None if stay else _few_levels(cells, codes, place)
    if is_array and kind.name == "binary" and are_bits(cells):
        return None
    if order is None and (times := kind_of_times(cells)) is not None:
        raise UnfitColumn(times, f"{place.title} {without_times(times, place)}")
    cells = cells.tolist()
    values = _different(cells, place)
    if order is None:
        for value in values:
            if is_number(value) and abs(value) == np.inf:
                raise infinite(float(value), _row_of(value, cells), place.title)
        values = merged(values)
    if kind.name == "binary":
        _check_binary(values if order is None else order, place.title)
    # Of more values, bins tell codes of numbers; and names have none.
    elif order is not None or are_levels or len(values) <= MOST_LEVELS:
        warn_of_codes(list(values), len(cells), place, kind.name)
    if order is not None:
        return as_column(order)
    if values and all(isinstance(value, bool) for value in values):
        return np.array([False, True])
    texts = [value for value in values if isinstance(value, bool) or not is_number(value)]
    if not texts and not are_levels:
        return None if stay else _levels_of_numbers(values, cells, codes, place)
    if stay:
        _refuse_texts(texts, cells, place)
    n_numbers = len(values) - len(texts)
    if texts and not are_levels and n_numbers > MOST_LEVELS:
        _refuse_texts_among_numbers(texts, n_numbers, cells, place)
    _check_texts(texts, len(cells), are_levels, place)
    if kind.name == "cyclic" and not texts:
        _check_cyclic(values, place)
    return as_column(_in_order(values, kind.name in IN_ORDER))


def _listed(cells, title, levels):
    """The listed categories, of which each cell must be one."""
    are_whole = all(type(value) is int and is_a_float(value) for value in levels)
    categories = np.array(levels) if are_whole else as_column(levels)
    _, strange = _places(categories, cells)
    if strange:
        _refuse_unlisted(title, *strange[0])
    return categories


def _different(cells, place):
    """The values of cells, in a dict."""
    try:
        different = dict.fromkeys(cells)
    except TypeError:  # a cell that is no value
        check_cells(cells, place.title, f": {place.dropped()}")
        raise
    return dict.fromkeys(plain(cell) for cell in different if not is_empty(cell))


def are_bits(numbers):
    """Whether all numbers are 0 or 1, or missing."""
    return bool(((numbers == 0) | (numbers == 1) | np.isnan(numbers)).all())


def _few_levels(numbers, codes, place):
    """The values of a column of numbers, if they are but names of a few levels."""
    values = np.unique(numbers[np.isfinite(numbers)])
    if not len(values) or (values != np.floor(values)).any() or len(values) > MOST_LEVELS:
        return None
    if beyond_floats(values):
        return as_column(values.tolist())
    if values[0] >= 0 and values[-1] <= 1:
        return None
    whole = set(values.tolist())
    if any(whole - {code} == {0, 1} for code in MISSING_CODES):
        return None  # what this code means has to be asked
    if codes and values[0] == 0:
        return None
    warn_of_codes(values.tolist(), len(numbers), place)
    return values


def _levels_of_numbers(values, cells, codes, place):
    """Levels of a column of numbers that are objects, or None."""
    if not all(map(is_a_float, values)):
        return None if len(values) > MOST_LEVELS else as_column(_in_order(values))
    numbers = np.array([np.nan if is_empty(cell) else cell for cell in cells], dtype=float)
    levels = _few_levels(numbers, codes, place)
    are_whole = levels is not None and all(isinstance(value, Integral) for value in values)
    return levels.astype(np.int64) if are_whole else levels


def _refuse_texts(texts, cells, place):
    """Refuse a text in a column that is declared to hold numbers."""
    what, remedy = conversion(texts, _doubtful(texts), place) or (
        "declared",
        "Declare columns of numbers alone, in a dict such as columns={'age': 'number'}; the "
        "others stay at 'auto'.",
    )
    raise UnfitColumn(
        what,
        f"{place.title} is declared to hold numbers, but has the value {texts[0]!r} in row "
        f"{_row_of(texts[0], cells)}. {remedy}",
    )


def _refuse_texts_among_numbers(texts, n_numbers, cells, place):
    raise UnfitColumn(
        "text",
        f"{place.title} has {n_numbers:,} different numbers, and the string {texts[0]!r} in row "
        f"{_row_of(texts[0], cells)}. Replace the string by a number or NaN. If all are "
        f"categories, make strings of them: {place.texts()}.",
    )


def _check_binary(values, title):
    """Refuse a column of more than two values."""
    if len(values) > 2:
        or_number = " or 'number'" if all(map(is_number, values)) else ""
        raise UnfitColumn(
            f"binary{or_number}",
            f"{title} is declared as 'binary', but has {len(values):,} different values, such as "
            f"{', '.join(map(repr, list(values)[:5]))}. Declare it as 'nominal'{or_number}.",
        )


def _check_cyclic(values, place):
    """Refuse fractions that are no levels."""
    first = next((value for value in values if value != int(value)), None)
    if first is not None and len(values) > MOST_LEVELS:
        raise UnfitColumn(
            "cyclic",
            f"{place.title} is declared as 'cyclic', which is for levels, but has {len(values):,} "
            f"different numbers, such as {first}. Round them to parts of the cycle, such as 30 "
            f"degrees: {place.line('x // 30 * 30')}.",
        )


def _check_texts(texts, n_rows, are_declared, place):
    """Warn of texts that are perhaps no categories, and refuse those that are surely none."""
    doubtful, title = _doubtful(texts), place.title
    if len(texts) > MOST_LEVELS and not are_declared:
        what, remedy = conversion(texts, doubtful, place) or ("names", None)
        if len(texts) > n_rows // 2:
            remedy = remedy or (
                "This looks like an ID column or free text, which says nothing about other rows. "
                "Drop it, or declare it as 'nominal' in `columns` if it has categories."
            )
            raise UnfitColumn(
                what, f"{title} has {len(texts):,} different strings in {n_rows:,} rows. {remedy}"
            )
        if remedy:
            message = (
                f"{title} has {len(texts):,} different strings. {remedy} If they are names, "
                "declare it as 'nominal' in `columns`."
            )
            warn(message)
    if doubtful:
        warn(
            f"{title} has the category {doubtful[0]!r}, which looks like a missing value. If it "
            "is one, replace it by NaN."
        )


def _doubtful(texts):
    return [text for text in texts if str(text).strip().lower() in DOUBTFUL_TEXTS]


def warn_of_codes(values, n_rows, place, kind="nominal"):
    """Warn of numbers, also as texts, that look like codes for missing values."""
    numbers = set(map(form_of, values)) if n_rows >= ROWS_TO_TELL else set()
    if not all(is_number(number) and not isinstance(number, bool) for number in numbers):
        return
    enormous = [v for v in values if isinstance(v, float) and abs(v) >= ENORMOUS]
    are_few = enormous and 2 * len(enormous) < len(values)
    codes = enormous if are_few else suspected_codes(numbers)
    if codes:
        cells = [as_whole(value) for value in values if form_of(value) in codes]
        remedy = without_codes(cells, values, place, kind=kind)
        warn(f"{place.title}: {missing_code_hint(codes, numbers)}. {if_missing(codes)} {remedy}")


def _row_of(value, cells):
    """The first row that has a value; pandas.NA cannot be compared."""
    return next(row for row, cell in enumerate(cells) if not is_missing(cell) and cell == value)


def merged(values):
    """Values of which none is a text of another one: of 3 and "3" the number.

    If all are numbers or their texts, all are numbers. Texts with leading zeros are names.
    """
    if len({isinstance(value, str) for value in values}) < 2:
        return values
    forms = {value: form_of(value) for value in values}
    others = {form: value for value, form in forms.items() if not isinstance(value, str)}
    plain_texts = [v for v in values if not isinstance(v, str) or NUMERAL.fullmatch(v.strip())]
    are_numbers = len(plain_texts) == len(values) and not any(isinstance(v, bool) for v in values)
    if are_numbers and all(map(is_number, others.values())):
        return dict.fromkeys(others.get(form, form) for form in forms.values())
    return dict.fromkeys(others.get(form, value) for value, form in forms.items())


def _in_order(values, is_ordinal=False):
    """Values by size or alphabet; texts that are declared as ordinal by the numbers in them."""
    if is_ordinal and any(isinstance(value, str) for value in values):
        return sorted(values, key=_by_numbers)
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _by_numbers(value):
    """A key that sorts "2" before "10", "-10" before "-2", and "5 - 9" before "10 - 14"."""
    form = form_of(value)
    if is_number(form):
        return [(0, float(form), "")]
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    return [(0, float(p), "") if k % 2 else (1, 0.0, p) for k, p in enumerate(parts) if p.strip()]
