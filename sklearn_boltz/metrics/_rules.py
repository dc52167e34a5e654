"""Rules that all rows of a table obey, and the share of the rows of another one that break them.

A rule counts as one if it would hold in 1 of 1,000 tables with independent columns at most.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._values import image_of

# Probability that a table of independent columns has a rule of a kind.
CHANCE = 1e-3
# By how much an estimated coefficient of a sum may differ from -1, 0 or 1; a sum, in ratio to the
# largest number in it; and rounding errors, in ratio to the least standard deviation.
COEFFICIENT, ROUNDING, FINE = 0.05, 1e-9, 0.1
# Digits after the point up to which numbers count as rounded.
MOST_DIGITS = 6


class TableRule(NamedTuple):
    """A rule that all rows of a table obey.

    Attributes
    ----------
    kind : {"order", "sum", "one-hot", "dependency"}
    text : str
        The rule in terms of the names of columns.
    is_broken : callable
        From rows to an array of bool; False for rows in which a cell is missing.
    """

    kind: str
    text: str
    is_broken: object


def rules_of(names, rows, is_category):
    """Yield the `TableRule` that all rows obey.

    Rows are float64, (n_rows, n_columns): numbers, and codes of categories; NaN in a missing cell.
    """
    numbers = [j for j in np.flatnonzero(~is_category) if len(np.unique(_known(rows[:, j]))) > 1]
    yield from _orders(names, rows, numbers)
    yield from _sums(names, rows, numbers)
    yield from _dependencies(names, rows)


def _known(cells):
    return cells[~np.isnan(cells)]


# Orders.


def _orders(names, rows, numbers):
    below = {
        (j, k) for j, k in permutations(numbers, 2) if _is_below(rows[:, j], rows[:, k], len(names))
    }
    for j, k in sorted(below):
        is_equal = (k, j) in below
        between = any((j, m) in below and (m, k) in below for m in numbers if m not in (j, k))
        if not between and not (is_equal and k < j):
            sign = "=" if is_equal else "<="
            yield TableRule("order", f"{names[j]} {sign} {names[k]}", _order(j, k, is_equal))


def _order(j, k, is_equal):
    def is_broken(rows):
        gap = rows[:, j] - rows[:, k]
        return (gap > 0) | (is_equal & (gap < 0))

    return is_broken


def _is_below(one, other, n_columns):
    """Whether no number is greater than the other of its row, and this is no accident."""
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[both], other[both]
    if not len(one) or (one > other).any():
        return False
    share = 1 - np.searchsorted(np.sort(one), other, side="right").mean() / len(one)
    return share * len(one) > np.log(n_columns**2 / CHANCE)


# Sums.


def _sums(names, rows, numbers):
    rows_known = rows[~np.isnan(rows[:, numbers]).any(axis=1)]
    if len(rows_known) <= len(numbers):
        return
    # What varies most is expressed last: a total by its parts.
    order = sorted(numbers, key=lambda j: rows_known[:, j].std())
    free = []
    for j in order:
        terms = _terms_of(rows_known, j, free)
        if terms is None:
            free.append(j)
            continue
        yield _sum(names, rows_known, terms)


def _terms_of(rows, j, free):
    """Coefficients of columns, j among them, whose sum is constant: -1 or 1; None without any."""
    if not free:
        return None
    x, y = rows[:, free] - rows[:, free].mean(axis=0), rows[:, j] - rows[:, j].mean()
    scale = x.std(axis=0)
    found = np.linalg.lstsq(x / scale, y, rcond=None)[0] / scale
    if np.abs(found - np.rint(found)).max() > COEFFICIENT or np.abs(found).max() > 1 + COEFFICIENT:
        return None
    found = np.rint(found)
    places = np.flatnonzero(found)
    terms = {j: 1} | {free[p]: -int(found[p]) for p in places}
    tolerance = _tolerance(rows, terms)
    is_fine = tolerance < FINE * rows[:, list(terms)].std(axis=0).min()
    is_constant = np.ptp(_total(rows, terms)) <= 2 * tolerance
    return terms if len(places) and is_fine and is_constant else None


def _total(rows, terms):
    return rows[:, list(terms)] @ np.array(list(terms.values()), dtype=np.float64)


def _tolerance(rows, terms):
    """By how much a sum of rounded numbers may be off."""
    cells = rows[:, list(terms)]
    return ROUNDING * np.abs(cells).max() + sum(map(_half_a_step, cells.T))


def _half_a_step(cells):
    for digits in range(MOST_DIGITS):
        if np.abs(np.round(cells, digits) - cells).max() <= ROUNDING * np.abs(cells).max():
            return 0.5 * 10.0**-digits if digits else 0.0
    return 0.0


def _sum(names, rows, terms):
    total = _total(rows, terms)
    value, tolerance = float(np.median(total)), _tolerance(rows, terms)
    are_bits = all(set(np.unique(rows[:, j])) <= {0, 1} for j in terms)
    kind = "one-hot" if are_bits and value == 1 and set(terms.values()) == {1} else "sum"
    left = " + ".join(str(names[j]) for j in sorted(terms) if terms[j] > 0)
    right = [str(names[j]) for j in sorted(terms) if terms[j] < 0]
    if abs(value) > tolerance or not right:
        right.append(f"{value:.6g}")

    def is_broken(rows):
        return np.abs(_total(rows, terms) - value) > tolerance + ROUNDING

    return TableRule(kind, f"{left} = {' + '.join(right)}", is_broken)


# Dependencies.


def _dependencies(names, rows):
    for j, k in permutations(range(len(names)), 2):
        found = image_of(rows[:, j], rows[:, k], CHANCE / len(names) ** 2)
        if found is not None:
            yield TableRule(
                "dependency", f"{names[j]} determines {names[k]}", _dependency(j, k, found)
            )


def _dependency(j, k, found):
    values, images = found

    def is_broken(rows):
        x, y = rows[:, j], rows[:, k]
        places = np.searchsorted(values, x).clip(max=len(values) - 1)
        return (values[places] == x) & ~np.isnan(y) & (images[places] != y)

    return is_broken
