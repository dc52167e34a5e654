"""A column of a table: its name, its cells as numbers, and the way back.

How numbers or values become codes is told by its treatment, a subclass: `Plain` here, `Categories`
in ``_categories.py``, `Binned` and `Scored` in ``_numbers.py``.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from sklearn_boltz.tables._bins import quantile_places
from sklearn_boltz.tables._cells import MOST_LEVELS, as_numbers
from sklearn_boltz.tables._codec import Exact
from sklearn_boltz.tables._dates import Dates, dates_of_type
from sklearn_boltz.tables._grid import Grid
from sklearn_boltz.tables._kinds import IN_ORDER, OF_LEVELS, Kind
from sklearn_boltz.tables._phrases import and_others
from sklearn_boltz.tables._remedies import Place
from sklearn_boltz.tables._values import as_objects, find_places, form_of, is_empty, is_number

# Larger numbers, such as the largest float that stands for a missing cell, count as this one.
LARGEST = 1e100
# Whole numbers in an array are codes up to here.
MOST_CODES = 64


class UnfitColumn(ValueError):
    """A column of cells that cannot be learned or encoded.

    `reason` is a word that is the same for all columns of which one error is to tell; the message
    says what is wrong with this one, and the remedy.
    """

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


def of_each(tasks):
    """Results of a task for each column; the error of one names all columns that have the same.

    `tasks` are pairs of the title of a column and a function without arguments.
    """
    results, refused = [], {}
    for title, task in tasks:
        try:
            results.append(task())
        except UnfitColumn as error:
            refused[title] = error
        except (TypeError, ValueError, ArithmeticError) as error:  # from inside
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise (error if title in str(error) else kind(f"{title}: {error}")) from error
    if not refused:
        return results
    first = next(iter(refused.values()))
    titles = [title for title, error in refused.items() if error.reason == first.reason]
    raise ValueError(f"{first}{and_others(titles[1:])}")


@dataclass(eq=False)
class Column:
    """A column of a fitted table; its treatment is a subclass, with `encode` and `decode`.

    Attributes
    ----------
    place : Place
        The column as code names it.
    kind : Kind
        The user's declaration of the column.
    codec : Dates, Exact or None
        Of a column of numbers that are not all floats.
    of_objects : str
        What the dates of a column of objects are, see `type_of_dates`.
    grid : Grid or None
        Of a column of numbers in bins or with scores, all of which lie on it.
    """

    place: Place
    kind: Kind = Kind()
    codec: Dates | Exact | None = None
    of_objects: str = ""
    grid: Grid | None = None

    # Names of the codes in order, the values themselves if they are categories; None if numbers
    # stand for themselves. What a treatment by bins or by normal scores has.
    categories = bins = scores = None
    # The values in order, if they are categories; whether they are numbers or dates.
    levels, holds_numbers = None, True

    @property
    def title(self):
        """Name of the column in messages."""
        return self.place.title

    @property
    def found_kind(self):
        """Kind as `columns` calls it; None for plain numbers, of which models know it."""
        return self.kind.name if self.kind.name in OF_LEVELS else self._own_kind

    @property
    def order_kind(self):
        """Its codes are "nominal", "cyclic" as declared, or "ordinal", as those of numbers."""
        name = self.kind.name
        are_numbers = self.holds_numbers and name not in OF_LEVELS
        return name if name in IN_ORDER else "ordinal" if are_numbers else "nominal"

    @property
    def values(self):
        """The values whose probabilities can be asked for; None for numbers themselves."""
        return self.categories

    @property
    def all_bins(self):
        """Bins of its numbers, also beside normal scores; None if it has none."""
        return self.bins if self.scores is None else self.scores.bins

    def seen_in(self, codes):
        """The column with the categories that are among codes; as it is if it has none."""
        return self

    def numbers(self, cells):
        """Cells of a column of numbers or dates in a type of numbers; NaN for missing ones."""
        if self.codec is None:
            return self._numbers(cells)
        try:
            return self.codec.numbers(cells)
        except (TypeError, ValueError, OverflowError):
            if not isinstance(self.codec, Dates):
                self._numbers(cells)  # which raises an error that names a cell
                raise self._too_large() from None
            raise UnfitColumn(
                "numbers",
                f"{self.title} has cells that are not dates, but held dates when the model was "
                "fitted. Convert it, for example by pandas.to_datetime.",
            ) from None

    def _numbers(self, cells):
        if cells.dtype.kind in "biuf":
            return cells
        numbers = np.empty(len(cells), dtype=object)
        for row, cell in enumerate(cells.tolist()):
            form = np.nan if is_empty(cell) else cell if isinstance(cell, Real) else form_of(cell)
            if not is_number(form):
                raise UnfitColumn(
                    "numbers",
                    f"{self.title} has the value {cell!r} in row {row}, but had only numbers in "
                    "`fit`, or in its first batch. Replace it by a number or NaN.",
                )
            numbers[row] = form
        try:
            return as_numbers(numbers)
        except OverflowError:
            raise self._too_large() from None

    def _too_large(self):
        return UnfitColumn(
            "too large",
            f"{self.title} has more than {MOST_LEVELS} different numbers, some of them beyond the "
            "range of floats, 1.8e308. Divide them, take logarithms, or declare the column as "
            "'nominal'.",
        )

    def finite(self, cells):
        """Numbers as float64, clipped so that squares exist; an error if one is infinite."""
        numbers = self.numbers(cells).astype(np.float64)
        rows = np.flatnonzero(np.isinf(numbers))
        if len(rows):
            raise infinite(numbers[rows[0]], rows[0], self.title)
        return np.clip(numbers, -LARGEST, LARGEST)

    def back(self, numbers):
        """Numbers as the column has them: on its grid, and dates, if it is one of dates."""
        numbers = numbers if self.grid is None else self.grid.nearest(numbers)
        return numbers if self.codec is None else self.codec.cells(numbers)

    def typed(self, values):
        """Values of `decode` in the type that the cells of a column of objects have."""
        return dates_of_type(values, self.of_objects) if values.dtype.kind == "M" else values

    def quantiles(self, probability, levels):
        """Quantiles of numbers, of shape (n_samples, n_levels), by the probability of each code."""
        codes, _ = quantile_places(probability, levels)
        return codes if self.categories is None else self.categories[codes]

    def number_of(self, value):
        """A number or date that a user gives, as a number; NaN if it is none."""
        cells = as_objects([value]) if self.codec else np.array([value], dtype=np.float64)
        return float(self.numbers(cells)[0])

    def code_of(self, value, legal):
        """The code of a value that a user gives, or a number itself; None for others.

        `legal` are its values, in order; none of a column that may have any number.
        """
        if len(legal) and self.bins is None and self.scores is None:
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
        coding = self.bins or self.scores
        return number if coding is None else int(coding.encode(np.array([number]))[0])

    def cell_of(self, value):
        """A number or date that a user gives, as the column has it."""
        return value if self.codec is None else self.codec.cell(value)


class Plain(Column):
    """Numbers or dates that stand for themselves."""

    _own_kind = None

    def encode(self, cells, unseen):
        """Numbers for cells, NaN for missing ones; see `Categories.encode`."""
        return self.numbers(cells) if cells.dtype.kind in "biuf" else self.finite(cells)

    def decode(self, codes, uniform=None):
        """Cells of numbers, the inverse of `encode`."""
        return self.back(codes)


def infinite(value, row, title):
    """The error of an infinite cell."""
    return UnfitColumn(
        "infinite",
        f"{title} has the value {value:g} in row {row}. Replace it by a finite one.",
    )
