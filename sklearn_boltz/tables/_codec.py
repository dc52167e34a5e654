"""Numbers of which floats do not hold all digits, as floats and back."""

from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._values import (
    as_objects,
    beyond_floats,
    form_of,
    is_a_float,
    is_empty,
    is_number,
    plain,
)


class Exact(NamedTuple):
    """Whole numbers, decimals or fractions as floats, of which whole ones may have too few digits.

    Attributes
    ----------
    origin : int
        Of whole numbers: the floats say how far they are from it.
    n_digits : int or None
        Of decimals, after the point.
    denominator : int or None
        Of fractions, at most.
    """

    origin: int = 0
    n_digits: int | None = None
    denominator: int | None = None

    def numbers(self, cells):
        """Decode as `Dates` does; an OverflowError if a number is beyond all floats."""
        forms = (np.nan if is_empty(x) else _number(x) - self.origin for x in cells.tolist())
        return np.array([float(number) for number in forms], dtype=np.float64)

    def cell(self, value):
        """Convert a user's value to that of a cell."""
        if self.n_digits is None and self.denominator is None:
            return round(_number(value))
        is_exact = isinstance(value, (Decimal, Fraction))
        return value if is_exact else self._cell(float(_number(value)))

    def cells(self, numbers):
        """Numbers as whole ones, decimals of this many digits, or fractions; None for NaN."""
        cells = [None if x != x else self._cell(x) for x in numbers.ravel().tolist()]
        return as_objects(cells).reshape(numbers.shape)

    def _cell(self, number):
        if self.n_digits is not None:
            return Decimal(f"{number:.{self.n_digits}f}")
        if self.denominator is not None:
            return Fraction(number).limit_denominator(self.denominator)
        return round(number) + self.origin

    def names(self, numbers):
        """Numbers in messages."""
        return self.cells(numbers).astype(str)


def codec_of_numbers(cells):
    """Codec of a column of numbers that are not all floats; None for others."""
    if cells.dtype.kind != "O":
        return Exact(int(cells.min())) if beyond_floats(cells) else None
    numbers = [plain(cell) for cell in dict.fromkeys(cells.tolist()) if not is_empty(cell)]
    if all(map(is_a_float, numbers)):
        return None
    forms = list(map(form_of, numbers))
    decimals = [x for x in numbers if isinstance(x, Decimal) and x.is_finite()]
    if decimals:
        return Exact(0, max(0, *(-x.as_tuple().exponent for x in decimals)))
    if all(isinstance(x, Integral) for x in forms):
        return Exact(min(forms))
    fractions = [x.denominator for x in numbers if isinstance(x, Rational)]
    return Exact(0, None, max(fractions)) if len(fractions) == len(numbers) else None


def _number(cell):
    """The number that a cell is, or that is its text; a ValueError for others."""
    form = form_of(cell)
    if not is_number(form):
        raise ValueError(f"{cell!r} is no number")
    return form
