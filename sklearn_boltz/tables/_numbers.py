"""Columns of numbers whose codes are bins, or the atoms of normal scores."""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_boltz._warnings import warn
from sklearn_boltz.tables._bins import LEAST, Bins
from sklearn_boltz.tables._categories import Categories, warn_of_codes
from sklearn_boltz.tables._cells import ENORMOUS, MOST_LEVELS, SUSPECTS, columns_of, is_whole
from sklearn_boltz.tables._codec import codec_of_numbers
from sklearn_boltz.tables._coded import uncoded
from sklearn_boltz.tables._column import Column, UnfitColumn
from sklearn_boltz.tables._dates import Dates
from sklearn_boltz.tables._grid import Grid
from sklearn_boltz.tables._scores import NormalScores
from sklearn_boltz.tables._values import as_column

# Share of cells up to which one that is no code is perhaps an error.
FEW = 0.05
# Probability that whole numbers of which none occurs twice are no numbers of rows.
ACCIDENT = 1e-5


@dataclass(eq=False)
class Binned(Column):
    """Numbers whose codes are those of bins.

    Attributes
    ----------
    bins : Bins
    categories : ndarray
        Names of the bins.
    """

    bins: Bins | None = None
    categories: np.ndarray | None = None

    @classmethod
    def learn(cls, column, numbers, sample_weight, most):
        """Bins of finite numbers, NaN for missing ones, of a column of them; see `Bins.learn`."""
        n_atoms = MOST_LEVELS if column.kind.name == "count" else LEAST
        bins = Bins.learn(numbers, sample_weight, most, n_atoms)
        return cls(*_fields(column), bins, as_column(bins.labels(column.codec)))

    @property
    def _own_kind(self):
        return "count" if self.kind.name == "count" else "binned"

    def encode(self, cells, unseen):
        """The bin of each cell, NaN of a missing one."""
        return self.bins.encode(self.finite(cells))

    def decode(self, codes, uniform=None):
        """A cell of each bin: a draw from its numbers by `uniform`, and else a typical one.

        `uniform` is a function from codes to random numbers in [0, 1).
        """
        known, values = ~np.isnan(codes), np.full(len(codes), np.nan)
        places = np.clip(np.rint(codes[known]), 0, self.bins.n_bins - 1).astype(np.intp)
        values[known] = (
            self.bins.typical[places] if uniform is None
            else self.bins.sample(places, uniform(places))
        )  # fmt: skip
        return self.back(values)

    def quantiles(self, probability, levels):
        """Quantiles of numbers by the probability of each bin."""
        return self.back(self.bins.quantiles(probability, levels))


@dataclass(eq=False)
class Scored(Column):
    """Numbers with normal scores: codes are those of atoms, the last that of all other numbers.

    Attributes
    ----------
    scores : NormalScores
    categories : ndarray
        Names of the codes.
    """

    scores: NormalScores | None = None
    categories: np.ndarray | None = None

    _own_kind = "number"

    @classmethod
    def learn(cls, column, numbers, sample_weight, most):
        """Learn as `Binned` does; return that if all numbers are atoms, which have no scores."""
        binned = Binned.learn(column, numbers, sample_weight, most)
        scores = NormalScores.learn(numbers, sample_weight, binned.bins)
        if scores is None:
            return binned
        return cls(*_fields(column), scores, as_column(scores.level_names(column.codec)))

    def plain(self):
        """The column with the simplest scores, by a single Gaussian."""
        return replace(self, scores=self.scores.plain or self.scores)

    @property
    def values(self):
        """The names of its bins, whose probabilities can be asked for."""
        return as_column(self.scores.bins.labels(self.codec))

    def encode(self, cells, unseen):
        """The code of each cell, NaN of a missing one."""
        return self.scores.encode(self.finite(cells))

    def decode(self, codes, uniform=None):
        """An atom, or a typical number of the others."""
        return self.back(self.scores.decode(codes))


def learn_again(column, cells, sample_weight):
    """The column with bins or normal scores of other cells.

    It is as it is if it has none, or if these cells have none, or more bins.
    """
    bins = column.all_bins
    numbers = np.full(1, np.nan) if bins is None else column.finite(cells)
    if np.isnan(numbers).all():
        return column
    other = type(column).learn(column, numbers, sample_weight, bins.n_bins)
    return column if other.all_bins.n_bins > bins.n_bins else other


def _fields(column):
    return column.place, column.kind, column.codec, column.of_objects, column.grid


def learn_numbers(treatment, column, cells, sample_weight, most):
    """A column of numbers or dates by a treatment, `Binned` or `Scored`, with `most` bins.

    `sample_weight` says how often each cell counts.
    """
    is_count = column.kind.name == "count"
    if column.codec is None and not is_count:
        column = replace(column, codec=codec_of_numbers(cells))
    numbers = column.finite(cells)
    counted = ~np.isnan(numbers) & (True if sample_weight is None else sample_weight > 0)
    if not counted.any():
        return Categories.of(column, np.empty(0))
    if column.codec is None:
        known = column.numbers(cells)[counted]
        ends = known.min(), known.max()  # where codes are
        if max(map(abs, map(float, ends))) >= ENORMOUS or not SUSPECTS.isdisjoint(ends):
            warn_of_codes(np.unique(known).tolist(), len(numbers), column.place)
    if column.kind.is_open and column.codec is None:
        _warn_of_exceptions(np.where(np.abs(numbers) < ENORMOUS, numbers, np.nan), column.title)
    if column.kind.is_open and not isinstance(column.codec, Dates):
        _warn_of_row_numbers(numbers[counted], column.title, column.codec)
    if is_count:
        _check_counts(numbers, column.title)
    column = replace(column, grid=Grid.of(numbers[counted]))
    return treatment.learn(column, numbers, sample_weight, most)


def _check_counts(numbers, title):
    """Refuse numbers that are no counts."""
    rows = np.flatnonzero(~(is_whole(numbers) | np.isnan(numbers)))
    if len(rows):
        raise UnfitColumn(
            "counts",
            f"{title} is declared as 'count', but has the value {numbers[rows[0]]:g} in row "
            f"{rows[0]}, which is not one of 0, 1, 2, .... Declare it as 'number'.",
        )


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
        warn(
            f"{title} holds whole numbers from 0 to {highest:g} except for {n_cells}, such as the "
            f"{numbers[rows[0]]:g} in row {rows[0]}, and is taken for numbers. If this is wrong, "
            "correct the cells, or write them as NaN."
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
        warn(f"{title} has {has}, like row numbers. If it only numbers the rows, drop it.")


# Normal scores of a table.


def normal_scores(table, X):
    """Normal scores z = T(x) of the cells of a table, (n, n_scored, 3), and ln T', (n, n_scored).

    z, and of whole numbers those at their start and end. NaN, and 0, for missing cells and atoms.
    """
    found = [
        column.scores.of_cells(column.finite(cells))
        for column, (_, cells) in zip(table.columns, columns_of(uncoded(X)), strict=True)
        if column.scores is not None
    ]
    return tuple(np.stack(part, axis=1) for part in zip(*found, strict=True))


def with_plain_scores(table):
    """The table with the simplest normal scores of each column, by a single Gaussian."""
    return table.each(lambda one: one if one.scores is None else one.plain())


def scores_of_row(table, numbers):
    """Normal scores of a row with some numbers, (1, n_scored, 3), from a dict of these."""
    found = []
    for j in np.flatnonzero(table.is_scored):
        cell = np.array([table.columns[j].number_of(numbers[j]) if j in numbers else np.nan])
        found.append(table.columns[j].scores.of_cells(cell)[0])
    return np.stack(found, axis=1)


def numbers_of_scores(table, codes, scores):
    """The numbers of codes and normal scores: a dict from columns to arrays."""
    places = np.flatnonzero(table.is_scored)
    return {
        j: table.columns[j].scores.decode(codes[:, j], z)
        for j, z in zip(places, scores.T, strict=True)
    }
