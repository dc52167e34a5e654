"""A column of a table: its values as codes or numbers, and the way back."""

import re
import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from sklearn_boltz._warnings import find_stack_level, warn_once
from sklearn_boltz.tables._bins import LEAST, Bins
from sklearn_boltz.tables._cells import (
    ENORMOUS,
    MISSING_CODES,
    MOST_LEVELS,
    ROWS_TO_TELL,
    SUSPECTS,
    as_numbers,
    as_whole,
    if_missing,
    is_empty,
    is_whole,
    kind_of_times,
    missing_code_hint,
    suspected_codes,
    without_codes,
)
from sklearn_boltz.tables._codec import Dates, Exact, Whole, codec_of_numbers, dates_of_type
from sklearn_boltz.tables._grid import Grid
from sklearn_boltz.tables._kinds import OF_LEVELS, OF_NUMBERS, Kind
from sklearn_boltz.tables._phrases import some_of
from sklearn_boltz.tables._remedies import Place, conversion, without_times
from sklearn_boltz.tables._scores import ROUNDING, NormalScores
from sklearn_boltz.tables._values import (
    as_column,
    as_objects,
    beyond_floats,
    find_places,
    form_of,
    is_a_float,
    is_missing,
    is_number,
    plain,
)

# Categories in a message.
N_SHOWN = 5
# Share of cells up to which one that is no code is perhaps an error.
FEW = 0.05
# Whole numbers in an array are codes up to here.
MOST_CODES = 64
# Probability that whole numbers of which none occurs twice are no numbers of rows.
ACCIDENT = 1e-5
# Texts that in many files stand for a missing cell, and are seldom a category of their own.
DOUBTFUL_TEXTS = {"?", "na", "n/a", "nan", "null", "."}
# A text of a number that is written as such, without leading zeros.
NUMERAL = re.compile(r"[+-]?(0|[1-9]\d{0,299})(\.\d*)?([eE][+-]?\d{1,3})?")


# Larger numbers, such as the largest float that stands for a missing cell, count as this one.
LARGEST = 1e100


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


class Column(NamedTuple):
    """A column of a fitted table.

    Attributes
    ----------
    title : str
        What messages call it.
    categories : ndarray or None
        Its values in order, of which the codes are the places; of numbers in bins, what the bins
        are called. None for a column of numbers that stand for themselves.
    bins : Bins or None
        Of a column of numbers whose codes are those of bins.
    codec : Dates, Whole, Exact or None
        Of a column of numbers that are not all floats.
    kind : Kind
        What the user says of the column.
    scores : NormalScores or None
        Of a column of numbers that have scores: the codes are those of its atoms, and a last one
        is that of all other numbers.
    place : Place or None
        The column as code names it.
    of_objects : str
        What the dates of a column of objects are, see `type_of_dates`.
    grid : Grid or None
        Of a column of numbers in bins or with scores, all of which lie on it.
    """

    title: str
    categories: np.ndarray | None = None
    bins: Bins | None = None
    codec: Dates | Whole | Exact | None = None
    kind: Kind = Kind()
    scores: NormalScores | None = None
    place: Place | None = None
    of_objects: str = ""
    grid: Grid | None = None

    def with_bins(self, cells, sample_weight, most, scored=False):
        """The column with bins for its numbers, or `scored`; see `Bins.learn`.

        Numbers that are all atoms have no scores, but bins.
        """
        if self.codec is None and self.kind.name != "count":
            self = self._replace(codec=codec_of_numbers(cells))
        numbers = self.finite(cells)
        counted = ~np.isnan(numbers) & (True if sample_weight is None else sample_weight > 0)
        if not counted.any():
            return self._replace(categories=np.empty(0))
        self._warn_of_codes_for_missing(self.numbers(cells)[counted], len(numbers))
        if self.kind.is_open:
            self._warn_of_doubts(numbers, counted)
        if self.kind.name == "count":
            _check_counts(numbers, self.title)
        self = self._replace(grid=Grid.of(numbers[counted]))
        bins = Bins.learn(numbers, sample_weight, most, self._n_atoms)
        scores = NormalScores.learn(numbers, sample_weight, bins) if scored else None
        if scores is not None:
            names = as_column(scores.level_names(self.codec))
            return self._replace(categories=names, scores=scores)
        return self._binned(bins)

    def _warn_of_codes_for_missing(self, numbers, n_rows):
        # Codes are at the ends.
        ends = numbers.min(), numbers.max()
        is_enormous = max(map(abs, map(float, ends))) >= ENORMOUS
        if self.codec is None and (is_enormous or not SUSPECTS.isdisjoint(ends)):
            warn_of_codes(np.unique(numbers).tolist(), n_rows, self.title, self.place)

    def _warn_of_doubts(self, numbers, counted):
        if self.codec is None:
            _warn_of_exceptions(np.where(np.abs(numbers) < ENORMOUS, numbers, np.nan), self.title)
        if not isinstance(self.codec, Dates):
            _warn_of_row_numbers(numbers[counted], self.title, self.codec)

    def _binned(self, bins):
        return self._replace(categories=as_column(bins.labels(self.codec)), bins=bins)

    @property
    def _n_atoms(self):
        """See `Bins.learn`."""
        return MOST_LEVELS if self.kind.name == "count" else LEAST

    def with_bins_of(self, cells, sample_weight):
        """The column with bins of other cells; as it is if these have none, or more bins."""
        if self.bins is None:
            return self
        numbers = self.finite(cells)
        if np.isnan(numbers).all():
            return self
        bins = Bins.learn(numbers, sample_weight, self.bins.n_bins, self._n_atoms)
        return self if bins.n_bins > self.bins.n_bins else self._binned(bins)

    def with_signs(self, cells):
        """The column, with the levels -1 and 1 if it has these numbers only."""
        numbers = self.numbers(cells).astype(np.float64)
        are_signs = set(np.unique(numbers[~np.isnan(numbers)]).tolist()) == {-1, 1}
        return self._replace(categories=np.array([-1.0, 1.0])) if are_signs else self

    def grown(self, values, order):
        """The column with more categories; None if their place among the others is not known.

        Parameters
        ----------
        values : list
            New values.
        order : list or None
            All values in the order that the type of the rows declares.
        """
        old, kind = self.categories.tolist(), self.kind.name
        if not old or kind == "binary":
            return None
        every = _in_order([*old, *values], kind == "ordinal") if order is None else order
        places = find_places(every, old)
        if (places < 0).any() or (np.diff(places) < 0).any():
            if kind == "ordinal":
                return None
            every = [*old, *values]
        return self._replace(categories=as_column(every))

    def numbers(self, cells):
        """Cells of a column of numbers or dates in a type of numbers; NaN for missing ones."""
        if self.codec is None:
            return _numbers(cells, self.title)
        try:
            return self.codec.numbers(cells)
        except (TypeError, ValueError, OverflowError):
            if not isinstance(self.codec, Dates):
                _numbers(cells, self.title)  # which raises an error that names a cell
                raise _too_large(self.title) from None
            raise UnfitColumn(
                "numbers",
                f"{self.title} has cells that are no dates, but held dates when the model was "
                "fitted. Convert it, for example by pandas.to_datetime.",
            ) from None

    def finite(self, cells):
        """The same as float64, of which none may be infinite; so large ones that squares exist."""
        numbers = self.numbers(cells).astype(np.float64)
        rows = np.flatnonzero(np.isinf(numbers))
        if len(rows):
            raise _infinite(numbers[rows[0]], rows[0], self.title)
        return np.clip(numbers, -LARGEST, LARGEST)

    def encode(self, cells, unseen):
        """Numbers for cells: their codes, or they themselves; NaN where a cell is missing.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
        unseen : {"smooth", "error", "missing", "refuse"}
            What to do about values that are no category: take them as missing, or raise an error,
            with "refuse" for rows of which no cell may be missing.

        Returns
        -------
        codes : ndarray of shape (n_samples,)
            Of a float type if a cell is missing.
        """
        if self.categories is None:
            return self.numbers(cells) if cells.dtype.kind in "biuf" else self.finite(cells)
        if self.bins or self.scores:
            return (self.bins or self.scores).encode(self.finite(cells))
        try:
            codes, strange = _places(self.categories, cells)
        except TypeError:  # a cell that is no value
            check_cells(cells.tolist(), self.title, f": {self.place.dropped()}")
            raise
        # Of a listed column without a value in the training, none is known.
        is_listed = self.kind.levels is not None and len(self.categories)
        if strange and unseen != "missing" and is_listed:
            _refuse_unlisted(self.title, *strange[0], " and fit again,")
        if strange and unseen in ("error", "refuse"):
            row, cell = strange[0]
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
        if strange and unseen != "refuse" and (codes < 0).all():
            self._warn_of_strangers([cell for _, cell in strange])
        codes[codes < 0] = np.nan
        return codes if np.isnan(codes).any() else codes.astype(np.int64)

    def _warn_of_strangers(self, cells):
        """Warn that no cell has a value of the training, unless a single one is but new."""
        values, others = self.categories.tolist(), list(dict.fromkeys(map(plain, cells)))
        are_alike = {is_number(v) or type(v) for v in others} <= {
            is_number(v) or type(v) for v in values
        }
        if values and (len(cells) > 1 or not are_alike):
            warn_once(
                ("strangers", self.title),
                f"{self.title}: no cell has a value of the training, which were {some_of(values)}; "
                f"there are {some_of(others)}. If they mean the same, write them in the same way.",
            )

    def decode(self, codes, uniform=None):
        """Values of codes, the inverse of `encode`; of fractions, the nearest category.

        A bin gives a draw from its numbers by `uniform`, a function from codes to random numbers in
        [0, 1), and else a typical one.
        """
        if self.categories is None:
            return self.back(codes)
        if self.bins is not None:
            return self.back(self._number_in(codes, uniform))
        if self.scores is not None:
            return self.back(self.scores.decode(codes))
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

    def _number_in(self, codes, uniform):
        known = ~np.isnan(codes)
        values = np.full(len(codes), np.nan)
        places = np.clip(np.rint(codes[known]), 0, self.bins.n_bins - 1).astype(np.intp)
        if uniform is None:
            values[known] = self.bins.typical[places]
        else:
            values[known] = self.bins.sample(places, uniform(places))
        return values

    def quantiles(self, probability, levels):
        """Quantiles of numbers, of shape (n_samples, n_levels), by the probability of each code."""
        bins = self.bins if self.scores is None else self.scores.bins
        up_to = np.cumsum(probability, axis=1)
        codes = (up_to[:, np.newaxis] < levels[:, np.newaxis] - ROUNDING).sum(axis=2)
        codes = np.minimum(codes, probability.shape[1] - 1)
        if bins is None:
            return codes if self.categories is None else self.categories[codes]
        share = np.take_along_axis(probability, codes, axis=1)
        above = np.take_along_axis(up_to, codes, axis=1) - levels
        inside = np.clip(1 - above / np.maximum(share, ROUNDING), 0, np.nextafter(1, 0))
        return self.back(bins.sample(codes, inside))

    def code_of(self, value, legal):
        """The code of a value that a user gives, or a number itself; None for others.

        `legal` are its values, in order; none of a column that may have any number.
        """
        bins = self.bins or self.scores
        if bins is None and len(legal):
            try:
                place = find_places(legal.tolist(), [value])[0]
            except TypeError:  # such as a list
                return None
            return int(place) if place >= 0 else None
        try:
            number = self.number_of(value)
        except (TypeError, ValueError, OverflowError):
            return None
        if not np.isfinite(number):
            return None
        return number if bins is None else int(bins.encode(np.array([number]))[0])

    def number_of(self, value):
        """A number or date that a user gives, as a number."""
        cells = as_objects([value]) if self.codec else np.array([value], dtype=np.float64)
        return float(self.numbers(cells)[0])

    def cell_of(self, value):
        """The same as the column has it."""
        return value if self.codec is None else self.codec.cell(value)

    def typed(self, values):
        """Values of `decode` in the type that the cells of a column of objects have."""
        return dates_of_type(values, self.of_objects) if values.dtype.kind == "M" else values

    def back(self, numbers):
        """Numbers as the column has them: on its grid, and dates, if it is one of dates."""
        numbers = numbers if self.grid is None else self.grid.nearest(numbers)
        return numbers if self.codec is None else self.codec.cells(numbers)

    @property
    def found_kind(self):
        """Kind as `columns` calls it; None for plain numbers, of which models know it."""
        if self.scores is not None:
            return "number"
        if self.bins is not None:
            return "count" if self.kind.name == "count" else "binned"
        if self.kind.name in OF_LEVELS:
            return self.kind.name
        if self.categories is None:
            return None
        return "binary" if len(self.categories) <= 2 else "nominal"

    @property
    def levels(self):
        """Its values in order, if they are categories; None for numbers, also those in bins."""
        return self.categories if self.bins is None and self.scores is None else None

    @property
    def values(self):
        """The values whose probabilities can be asked for; None for numbers themselves."""
        if self.scores is None:
            return self.categories
        return as_column(self.scores.bins.labels(self.codec))

    def shown(self):
        """The categories in a message."""
        return some_of(self.categories.tolist())


def _places(categories, cells):
    """The place of each cell among the categories as float64, and rows and cells without one.

    Of the latter, places are -1, also where cells are empty.
    """
    if _are_floats(categories) and cells.dtype.kind in "biuf":
        order = np.argsort(categories)
        found = order[np.searchsorted(categories, cells, sorter=order).clip(max=len(order) - 1)]
        places, cells = np.where(categories[found] == cells, found, -1), cells.tolist()
    else:
        cells = cells.tolist() if cells.dtype.kind != "M" else list(cells)
        places = find_places(categories.tolist(), cells)
    strange = [(row, cells[row]) for row in np.flatnonzero(places < 0) if not is_empty(cells[row])]
    return places.astype(np.float64), strange


def _are_floats(categories):
    """Whether they are numbers of which two can be told apart as floats."""
    return categories.dtype.kind in "if" and 0 < len(categories) and not beyond_floats(categories)


def _refuse_unlisted(title, row, cell, fit_again=","):
    raise UnfitColumn(
        "undeclared",
        f"{title} has the value {plain(cell)!r} in row {row}, which is none of the values that "
        f"`columns` lists. Add it there{fit_again} or write the cell as NaN.",
    )


def _check_counts(numbers, title):
    """Refuse numbers that are no counts."""
    rows = np.flatnonzero(~(is_whole(numbers) | np.isnan(numbers)))
    if len(rows):
        raise UnfitColumn(
            "counts",
            f"{title} is declared as 'count', but has the value {numbers[rows[0]]:g} in row "
            f"{rows[0]}, which is not one of 0, 1, 2, .... Declare it as 'number'.",
        )


def _numbers(cells, title):
    """Cells of a column of numbers in a type of numbers; NaN for missing ones."""
    if cells.dtype.kind in "biuf":
        return cells
    numbers = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells.tolist()):
        form = np.nan if is_empty(cell) else cell if isinstance(cell, Real) else form_of(cell)
        if not is_number(form):
            raise UnfitColumn(
                "numbers",
                f"{title} has the value {cell!r} in row {row}, but only numbers in the rows of "
                "`fit`, or in its first batch. Replace it by a number or NaN.",
            )
        numbers[row] = form
    try:
        return as_numbers(numbers)
    except OverflowError:
        raise _too_large(title) from None


def _too_large(title):
    return UnfitColumn(
        "too large",
        f"{title} has more than {MOST_LEVELS} different numbers, some of them beyond the range of "
        "floats, 1.8e308. Divide them, take logarithms, or declare the column as 'nominal'.",
    )


def are_amounts(numbers, most):
    """Whether the numbers of a column are no codes, of which there may be `most`."""
    values = np.unique(numbers[~np.isnan(numbers)])
    if (values != np.floor(values)).any():
        return True
    whole = set(values.tolist())
    if whole <= {-1.0, 0.0, 1.0} or suspected_codes(whole):
        return False
    return len(whole) > 0 and (min(whole) < 0 or len(whole) > most or max(whole) >= MOST_CODES)


def _warn_of_exceptions(numbers, title):
    """Warn of numbers that are codes except for a few cells."""
    known = numbers[~np.isnan(numbers)]
    codes = known[is_whole(known) & (known <= MOST_LEVELS)]
    usual = is_whole(numbers) & (numbers <= 10 * codes.max(initial=0))
    highest = numbers[usual].max(initial=0)
    rows = np.flatnonzero(~usual & ~np.isnan(numbers))
    # Beside a number that most cells have, such as 0, fractions are no exception.
    n_others = len(known) - np.unique(known, return_counts=True)[1].max(initial=0)
    if 0 < len(rows) <= FEW * n_others:
        n_cells = "one cell" if len(rows) == 1 else f"{len(rows):,} cells"
        warnings.warn(
            f"{title} holds whole numbers from 0 to {highest:g} except for {n_cells}, such as the "
            f"{numbers[rows[0]]:g} in row {rows[0]}, and is taken for numbers. If this is wrong, "
            "correct the cells, or write them as NaN.",
            stacklevel=find_stack_level(),
        )


def _warn_of_row_numbers(numbers, title, codec):
    """Warn of whole numbers of which none occurs twice, though there are few others.

    Those of some of the rows of a table are a part of them. If n whole numbers are drawn at random
    from m, none of them occurs twice with a probability of about exp(-n² / 2m).
    """
    low, high, n = numbers.min(), numbers.max(), len(numbers)
    n_all = high - low + 1
    if n <= MOST_LEVELS or n_all != n and n**2 < -2 * np.log(ACCIDENT) * n_all:
        return
    if (numbers == np.floor(numbers)).all() and len(np.unique(numbers)) == n:
        ends = [f"{low:g}", f"{high:g}"] if codec is None else codec.names(np.array([low, high]))
        has = f"each whole number from {ends[0]} to {ends[1]} once"
        if n_all != n:
            has = f"{n:,} different whole numbers from {ends[0]} to {ends[1]}"
        warnings.warn(
            f"{title} has {has}, as numbers of rows do. If it only names the rows, drop it.",
            stacklevel=find_stack_level(),
        )


def categories_of(cells, title, kind, order, codes, place):
    """The categories of a column in order; None for numbers.

    Parameters
    ----------
    cells : ndarray of shape (n_samples,)
    title : str
    kind : Kind
        What the user says of the column.
    order : list or None
        The categories that its type declares.
    codes : bool
        Whether the model takes the integers 0, 1, 2, ... themselves.
    place : Place
    """
    if kind.levels is not None:
        return _declared(cells, title, kind)
    are_levels, stay = kind.name in OF_LEVELS, kind.name in (*OF_NUMBERS, "plain")
    if order is None and not are_levels and cells.dtype.kind in "iuf":
        return None if stay else _levels(cells, codes, title, place)
    if kind.name == "binary" and cells.dtype.kind in "iuf" and are_bits(cells):
        return None
    if order is None:
        _check_times(cells, title, place)
    cells = cells.tolist()
    try:
        different = dict.fromkeys(cells)
    except TypeError:  # a cell that is no value
        check_cells(cells, title, f": {place.dropped()}")
        raise
    values = dict.fromkeys(plain(cell) for cell in different if not is_empty(cell))
    if order is None:
        _check_finite(values, cells, title)
        values = merged(values)
    if kind.name == "binary":
        _check_binary(values if order is None else order, title)
    if order is None and not are_levels and len(values) > MOST_LEVELS:
        pass  # numbers, of which bins tell codes; and names
    elif kind.name != "binary":
        warn_of_codes(list(values), len(cells), title, place, kind.name)
    if order is not None:
        return as_column(order)
    if values and all(isinstance(value, bool) for value in values):
        return np.array([False, True])
    texts = [value for value in values if isinstance(value, bool) or not is_number(value)]
    if not texts and not are_levels and not all(map(is_a_float, values)):
        return None if stay or len(values) > MOST_LEVELS else as_column(_in_order(values))
    if not texts and not are_levels:
        numbers = np.array([np.nan if is_empty(cell) else cell for cell in cells], dtype=float)
        levels = None if stay else _levels(numbers, codes, title, place)
        are_whole = levels is not None and all(isinstance(value, Integral) for value in values)
        return levels.astype(np.int64) if are_whole else levels
    if stay:
        what, remedy = conversion(texts, _doubtful(texts), place) or (
            "declared",
            "Declare columns of numbers alone, in a dict such as columns={'age': 'number'}; the "
            "others stay at 'auto'.",
        )
        raise UnfitColumn(
            what,
            f"{title} is declared to hold numbers, but has the value {texts[0]!r} in row "
            f"{_row_of(texts[0], cells)}. {remedy}",
        )
    n_numbers = len(values) - len(texts)
    if texts and n_numbers > MOST_LEVELS and not are_levels:
        raise UnfitColumn(
            "text",
            f"{title} has {n_numbers:,} different numbers, and the string {texts[0]!r} in row "
            f"{_row_of(texts[0], cells)}. Replace the string by a number or NaN. If all are "
            f"categories, make strings of them: {place.texts()}.",
        )
    _check_texts(texts, title, len(cells), are_levels, place)
    return as_column(_in_order(values, kind.name == "ordinal"))


def _declared(cells, title, kind):
    """The declared categories, of which each cell must be one."""
    are_whole = all(type(value) is int and is_a_float(value) for value in kind.levels)
    categories = np.array(kind.levels) if are_whole else as_column(kind.levels)
    _, strange = _places(categories, cells)
    if strange:
        _refuse_unlisted(title, *strange[0])
    return categories


def are_bits(numbers):
    """Whether all numbers are 0 or 1, or missing."""
    return bool(((numbers == 0) | (numbers == 1) | np.isnan(numbers)).all())


def _check_binary(values, title):
    """Refuse a column of more than two values."""
    if len(values) > 2:
        some = ", ".join(map(repr, list(values)[:N_SHOWN]))
        or_number = " or 'number'" if all(map(is_number, values)) else ""
        raise UnfitColumn(
            f"binary{or_number}",
            f"{title} is declared as 'binary', but has {len(values):,} different values, such as "
            f"{some}. Declare it as 'nominal'{or_number}.",
        )


def _check_texts(texts, title, n_rows, are_declared, place):
    """Warn of texts that are perhaps no categories, and refuse those that are surely none."""
    doubtful = _doubtful(texts)
    if len(texts) > MOST_LEVELS and not are_declared:
        what, remedy = conversion(texts, doubtful, place) or ("names", None)
        if len(texts) > n_rows // 2:
            remedy = remedy or (
                "This looks like an ID column: it carries no information about other rows. Drop "
                "it, or declare it as 'nominal' in `columns` if it is none."
            )
            raise UnfitColumn(
                what, f"{title} has {len(texts):,} different strings in {n_rows:,} rows. {remedy}"
            )
        if remedy:
            message = (
                f"{title} has {len(texts):,} different strings. {remedy} If they are names, "
                "declare it as 'nominal' in `columns`."
            )
            warnings.warn(message, stacklevel=find_stack_level())
    if doubtful:
        warnings.warn(
            f"{title} has the category {doubtful[0]!r}, which looks like a missing value. If it "
            "is one, replace it by NaN.",
            stacklevel=find_stack_level(),
        )


def _doubtful(texts):
    return [text for text in texts if str(text).strip().lower() in DOUBTFUL_TEXTS]


def _levels(numbers, codes, title, place):
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
    warn_of_codes(values.tolist(), len(numbers), title, place)
    return values


def warn_of_codes(values, n_rows, title, place, kind="nominal"):
    """Warn of numbers, also as texts, that look like codes for missing values."""
    numbers = set(map(form_of, values)) if n_rows >= ROWS_TO_TELL else set()
    if not all(is_number(number) and not isinstance(number, bool) for number in numbers):
        return
    enormous = [v for v in values if isinstance(v, float) and abs(v) >= ENORMOUS]
    codes = enormous[: len(values) - 2] or suspected_codes(numbers)
    if codes:
        cells = [as_whole(value) for value in values if form_of(value) in codes]
        remedy = without_codes(cells, values, place, kind=kind)
        warnings.warn(
            f"{title}: {missing_code_hint(codes, numbers)}. {if_missing(codes)} {remedy}",
            stacklevel=find_stack_level(),
        )


def _check_times(cells, title, place):
    kind = kind_of_times(cells)
    if kind is not None:
        raise UnfitColumn(kind, f"{title} {without_times(kind, place)}")


def _check_finite(values, cells, title):
    """Refuse infinite numbers among objects."""
    for value in values:
        if is_number(value) and abs(value) == np.inf:
            raise _infinite(float(value), _row_of(value, cells), title)


def _row_of(value, cells):
    """The first row that has a value; pandas.NA cannot be compared."""
    return next(row for row, cell in enumerate(cells) if not is_missing(cell) and cell == value)


def _infinite(value, row, title):
    return UnfitColumn(
        "infinite",
        f"{title} has the value {value:g} in row {row}. Replace it by a finite one.",
    )


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


def check_cells(cells, title, line=""):
    """Refuse a cell that is no value, as it has no hash; `line` drops the column."""
    for row, cell in enumerate(cells):
        try:
            hash(cell)
        except TypeError as error:
            raise TypeError(
                f"{title} has a {type(cell).__name__} in row {row}: the argument must be a string "
                f"or a number. Make columns of what is in its cells, or drop it{line}."
            ) from error
