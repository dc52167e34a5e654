"""Kinds of the columns of a table in batches, from one pass that counts their values.

The counts of a few thousand different values are exact. Of more numbers, neighbours are merged:
for n cells, how many lie below a number is then known up to n * 2 * (1 + log2(n / MOST)) / MOST,
whatever the order of the batches.
"""

import operator
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.tables._blocks import with_shape
from sklearn_boltz.tables._cells import as_array, check_cells, columns_of
from sklearn_boltz.tables._column import UnfitColumn, of_each
from sklearn_boltz.tables._dates import as_dates, dates_of_type, type_of_dates, unit_of_dates
from sklearn_boltz.tables._frames import (
    frame_like,
    is_frame,
)
from sklearn_boltz.tables._libraries import Dtype, Header, common_type, types_of, zones_of
from sklearn_boltz.tables._values import (
    as_cells,
    as_objects,
    beyond_floats,
    is_a_float,
    is_empty,
    is_number,
    plain,
)

# Numbers of a column whose weights differ by less than a factor of 2, at most. Ranks are then known
# to 0.2 % of a million cells and to 0.45 % of a billion.
MOST = 2**13
# Different texts of a column, at most: no model of codes has more.
MOST_TEXTS = 2**15
# The least hashes of numbers that are kept: they tell how many are different, to 1.6 %.
N_HASHES = 2**12
# Below this share of different numbers, a column is rounded: see `Bins`.
ROUNDED = 0.9
# Rows that stand for all batches, at least: some warnings look at shares of cells.
LEAST_ROWS = 1000


class Counts(NamedTuple):
    """Numbers in order, and how many cells each stands for.

    Attributes
    ----------
    values : ndarray of shape (n_values,)
        Of float64, of dates, or of objects where floats do not hold all of them.
    weights : ndarray of float64 of shape (n_values,)
    hashes : ndarray of uint64 of shape (at most N_HASHES,)
        The least ones of the different numbers, in order.
    n_merged : int
        How often neighbours were merged; 0 for exact counts.
    """

    values: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray
    n_merged: int = 0

    @classmethod
    def of(cls, numbers):
        """Count the values of cells, of which NaN is a missing one."""
        if numbers.dtype.kind in "biuf":
            numbers = numbers.astype(np.float64)
            numbers = numbers[~np.isnan(numbers)] + 0.0
        values, counts = np.unique(numbers, return_counts=True)
        return cls(values, counts.astype(np.float64), _least_hashes(_hashes(values))).thinned()

    def __add__(self, other):
        # An empty array is one of floats.
        both = np.concatenate([c.values for c in (self, other) if len(c.values)] or [self.values])
        values, place = np.unique(both, return_inverse=True)
        weights = np.bincount(place, np.append(self.weights, other.weights), len(values))
        hashes = _least_hashes(np.append(self.hashes, other.hashes))
        return Counts(values, weights, hashes, self.n_merged + other.n_merged).thinned()

    def thinned(self):
        """The counts where neighbours of about the same weight are merged, if these are many."""
        values, weights, hashes, n_merged = self
        while True:
            sizes = np.frexp(weights[1:-1])[1]  # the ends stay
            crowded = np.flatnonzero(np.bincount(sizes) > MOST) if len(sizes) else []
            if not len(crowded):
                return Counts(values, weights, hashes, n_merged)
            places = 1 + np.flatnonzero(sizes == crowded[0])
            pairs = places[: len(places) // 2 * 2].reshape(-1, 2)
            # By turns the lower and the greater one stays.
            stays, goes = pairs[:, n_merged % 2], pairs[:, 1 - n_merged % 2]
            weights = weights.copy()
            weights[stays] += weights[goes]
            values, weights = np.delete(values, goes), np.delete(weights, goes)
            n_merged += 1

    @property
    def n_different(self):
        """The number of different numbers; an estimate where neighbours were merged."""
        if not self.n_merged or len(self.hashes) < N_HASHES:
            return len(self.values)
        return (N_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64)

    @property
    def is_real(self):
        """Whether nearly all cells have a number of their own."""
        return self.n_different >= ROUNDED * self.weights.sum()


def _least_hashes(hashes):
    return np.unique(hashes)[:N_HASHES]


def _hashes(values):
    """A hash of each number, by the finalizer of SplitMix64."""
    if values.dtype.kind == "O":
        values = np.array([hash(value) for value in values.tolist()], dtype=np.int64)
    bits = values.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


class ColumnCounts(NamedTuple):
    """The values of a column: numbers or dates, and all others.

    Attributes
    ----------
    title : str
        Name of the column in messages.
    dtype : Dtype or None
        In a data frame of pandas.
    numbers : Counts
    texts : dict
        From the other values, as strings and booleans, to their counts.
    has_dates : bool
    of_objects : str
        As of `Column`.
    zone : str or None
        Of dates.
    """

    title: str
    dtype: Dtype | None
    numbers: Counts
    texts: dict
    has_dates: bool = False
    of_objects: str = ""
    zone: str | None = None

    @classmethod
    def of(cls, title, cells, dtype=None, zone=None):
        """Count the cells of a column of a batch."""
        is_listed = dtype is not None and dtype.name == "category"
        unit = None if is_listed else unit_of_dates(cells)
        if unit is not None:
            dates = as_dates(cells, "ns" if unit == "ns" else "us")
            found = Counts.of(dates[~np.isnat(dates)])
            return cls(title, dtype, found, {}, True, type_of_dates(cells), zone)
        if cells.dtype.kind in "iuf" and not beyond_floats(cells):
            return cls(title, dtype, Counts.of(cells), {})
        cells = [plain(cell) for cell in cells.tolist()]
        try:
            found = Counter(cells)
        except TypeError:  # a cell that is no value
            check_cells(cells, title)
            raise
        texts = {value: n for value, n in found.items() if not is_empty(value)}
        real = [v for v in texts if is_number(v) and not isinstance(v, bool)]
        are_floats = all(map(is_a_float, real))
        numbers = np.array(real, dtype=np.float64) if are_floats else as_objects(real)
        numbers = np.repeat(numbers, [texts.pop(v) for v in real])
        return cls(title, dtype, Counts.of(numbers), texts)._checked()

    def __add__(self, other):
        texts = dict(Counter(self.texts) + Counter(other.texts))
        if self.has_dates != other.has_dates and (self.n_cells and other.n_cells):
            raise UnfitColumn(
                "dates and others",
                f"{self.title} has dates in some batches and other values in others. Convert it, "
                "for example by pandas.to_datetime.",
            )
        # Where all cells of a batch are missing, its type means nothing.
        some = [one for one in (self, other) if one.n_cells] or [self]
        zones, of_objects = {one.zone for one in some}, {one.of_objects for one in some}
        zone = next(filter(None, zones), None)
        if len(zones) > 1 and None in zones:
            raise UnfitColumn(
                "zones",
                f"{self.title} has dates with a time zone, {zone}, in some batches and without one "
                "in others, which are no instants. Give them one, as by tz_localize of pandas.",
            )
        dtype = _joined(self.title, some[0].dtype, some[-1].dtype)
        has_dates = self.has_dates or other.has_dates
        added = ColumnCounts(
            self.title, dtype, self.numbers + other.numbers, texts, has_dates,
            of_objects.pop() if len(of_objects) == 1 else "", zone,
        )  # fmt: skip
        return added._checked()

    def _checked(self):
        if len(self.texts) > MOST_TEXTS:
            raise UnfitColumn(
                "text",
                f"{self.title} has more than {MOST_TEXTS:,} different strings. This looks like an "
                "ID column: it carries no information about other rows. Drop it.",
            )
        return self

    @property
    def n_cells(self):
        """Number of cells with a value."""
        return self.numbers.weights.sum() + sum(self.texts.values())

    def cells(self, n_rows):
        """All values, then as many again as rows are left, by their shares; and their weights.

        There are at least as many rows as values. Weights are 0 for values that are there again.
        """
        weights = np.append(self.numbers.weights, list(self.texts.values()))
        if not len(weights):
            return np.full(n_rows, None, dtype=object), np.zeros(n_rows)
        n_again = n_rows - len(weights)
        levels = (np.arange(n_again) + 0.5) / max(n_again, 1) * weights.sum()
        again = np.searchsorted(np.cumsum(weights), levels).clip(max=len(weights) - 1)
        return np.append(self._values(), self._values()[again]), np.append(
            weights, np.zeros(n_again)
        )

    def _values(self):
        values = self.numbers.values
        if self.has_dates:
            dates = values.astype(f"datetime64[{unit_of_dates(values)}]")
            return dates_of_type(dates, self.of_objects)
        if not self.texts:
            return values
        numbers = [
            int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()
        ]
        return as_objects([*numbers, *self.texts])


def _joined(title, one, other):
    """The type of a column that has these types in two batches; None is that of objects."""
    if one == other or None in (one, other):
        return one and other
    if one.name == other.name == "category":
        (values, of_values, is_ordered), (more, _, is_ordered_too) = one.options, other.options
        if is_ordered and is_ordered_too:
            raise UnfitColumn(
                "order",
                f"{title} declares {values} in some batches and {more} in others, both as "
                "ordered. Declare the same categories in all.",
            )
        return Dtype("category", (list(dict.fromkeys([*values, *more])), of_values, False))
    return common_type(one, other)


class TableCounts(NamedTuple):
    """The columns of batches.

    Attributes
    ----------
    n_rows : int
    columns : list of ColumnCounts
    header : Header or None
        Of the first batch, if the batches are data frames.
    dtype : dtype or None
        If they are arrays of numbers.
    """

    n_rows: int
    columns: list
    header: Header | None
    dtype: np.dtype | None

    @classmethod
    def of(cls, batch):
        """Count the values of all columns of a batch, a data frame or an array."""
        header = Header.of(batch) if is_frame(batch) else None
        batch = batch if header else as_array(batch)
        dtypes = types_of(batch) if header else [None] * batch.shape[1]
        zones = zones_of(batch) if header else dtypes
        columns = zip(columns_of(batch), dtypes, zones, strict=True)
        columns = of_each((c[0], partial(ColumnCounts.of, *c, *types)) for c, *types in columns)
        is_numeric = not header and batch.dtype.kind in "biuf"
        return cls(len(batch), columns, header, batch.dtype if is_numeric else None)

    def __add__(self, other):
        pairs = zip(self.columns, other.columns, strict=True)
        columns = of_each(
            (one.title, partial(operator.add, one, another)) for one, another in pairs
        )
        dtype = None
        if self.dtype is not None and other.dtype is not None:
            dtype = np.promote_types(self.dtype, other.dtype)
        header = self.header and self.header.joined(other.header)
        return TableCounts(self.n_rows + other.n_rows, columns, header, dtype)

    def rows(self):
        """A small table like the batches, with all values of each column, and its weights."""
        n_texts = max(len(column.texts) for column in self.columns)
        n_values = max(len(column.numbers.values) + len(column.texts) for column in self.columns)
        # Texts are half of the rows or less, unless there are no more rows.
        n_rows = max(n_values, min(self.n_rows, max(LEAST_ROWS, 2 * n_texts + 2)))
        found = [column.cells(n_rows) for column in self.columns]
        cells, weights = zip(*found, strict=True)
        return self._table(cells), np.column_stack(weights)

    def _table(self, cells):
        if self.header is not None:
            dtypes = [column.dtype for column in self.columns]
            orders = [dtype.options[0] if dtype and dtype.options else None for dtype in dtypes]
            return frame_like(self.header.with_types(dtypes).empty_frame(), cells, orders)
        if self.dtype is not None:
            return np.column_stack([column.astype(self.dtype) for column in cells])
        return np.column_stack(list(map(as_cells, cells)))


# The columns of all batches.


def interpolating(table, counts):
    """The table where bins of real numbers are known to be of these: weights do not tell.

    And without grids of numbers some of which are not known.
    """

    def change(column, found):
        column = replace(column, grid=None) if found.numbers.n_merged else column
        if column.bins is None or column.bins.is_whole or not found.numbers.is_real:
            return column
        return replace(column, bins=column.bins._replace(is_rounded=False))

    return table.each(change, counts.columns)


def of_batch(batch):
    """A batch as an array or data frame."""
    return batch.toarray() if issparse(batch) else with_shape(batch)


def locate_error_batch(batches, validate, error):
    """The error of a batch that is the same except for numbers, else the error itself.

    `validate` is called with each batch; the error is one of rows that stand for all batches.
    """
    for k, batch in enumerate(batches):
        try:
            validate(with_shape(batch))
        except (TypeError, ValueError) as found:
            if _without_numbers(str(found)) == _without_numbers(str(error)):
                return type(error)(f"In batch {k}: {found}")
    return type(error)(without_rows(str(error)))


def without_rows(message):
    """A message about the values of all batches, of which the numbers of rows mean nothing."""
    return re.sub(r" in row \d+", "", message)


def _without_numbers(message):
    return re.sub(r"[\d.,]+", "#", message)
