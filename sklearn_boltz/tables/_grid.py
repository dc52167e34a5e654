"""The grid that all numbers of a column lie on: decimals, multiples, whole minutes."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._values import MOST_EXACT

# Digits after the point at most.
MOST_DIGITS = 8
# Error of a cell in float32, in ratio to the cell; and of a cell in ratio to the step.
OF_FLOAT32, OF_STEP = 6e-8, 1e-3
# Probability that whole numbers have a common step by accident: k numbers that of g, 1 / g^(k - 1).
ACCIDENT = 1e-6
# Cells that are looked at first.
N_FIRST = 20


class Grid(NamedTuple):
    """Numbers at equal distances.

    Attributes
    ----------
    step, origin : float
        The numbers are the origin plus multiples of the step.
    n_digits : int
        Digits after the point that they have at most.
    """

    step: float
    origin: float
    n_digits: int

    @classmethod
    def of(cls, numbers):
        """The widest grid of finite numbers; None if they have none, or are any whole numbers."""
        n_digits = _n_digits(numbers)
        if n_digits is None:
            return None
        whole = np.unique(np.rint(numbers * 10.0**n_digits)).astype(np.int64)
        step = int(np.gcd.reduce(whole - whole[0]))
        if step == 0 or (len(whole) - 1) * np.log(step) < -np.log(ACCIDENT):
            step = 1
        if step == 1 and n_digits == 0:
            return None
        return cls(step / 10.0**n_digits, float(numbers.min()), n_digits)

    def nearest(self, numbers):
        """The nearest number of the grid to each, NaN for NaN."""
        places = np.rint((numbers - self.origin) / self.step)
        return np.round(self.origin + places * self.step, self.n_digits)


def _n_digits(numbers):
    """Digits after the point; None if they are more than `MOST_DIGITS`, or floats too coarse."""
    first = next((d for d in range(MOST_DIGITS + 1) if _are_decimals(numbers[:N_FIRST], d)), None)
    if first is None:
        return None
    return next((d for d in range(first, MOST_DIGITS + 1) if _are_decimals(numbers, d)), None)


def _are_decimals(numbers, n_digits):
    """Whether numbers have this many digits after the point, except for rounding errors."""
    scale = 10.0**n_digits
    if not np.abs(numbers).max(initial=0) < MOST_EXACT / scale:
        return False
    off = np.abs(np.round(numbers, n_digits) - numbers)
    return bool((off <= np.minimum(OF_FLOAT32 * np.abs(numbers), OF_STEP / scale)).all())
