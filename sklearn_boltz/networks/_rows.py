"""The rows of a fit: read from a table or from batches, checked, and as codes; and back."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from zlib import crc32

import numpy as np

from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.networks.training._objective import Sums
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.tables._batches import summarise
from sklearn_boltz.tables._cells import is_whole
from sklearn_boltz.tables._column import MOST_CODES
from sklearn_boltz.tables._counts import of_batch
from sklearn_boltz.tables._frames import joined
from sklearn_boltz.tables._numbers import normal_scores, with_plain_scores
from sklearn_boltz.tables._weights import checked_weights

# Codes of the distinct rows of batches that are kept, at most: of more, a random half is, again and
# again. And of complete rows of bits, of which sums will do.
MOST_KEPT, MOST_ENTRIES = 2**25, 2**22
# The number of halvings that a row outlives is this at most, a code of 8 bits.
MOST_HALVINGS = 99
TOO_MANY = (
    "FVBMPseudoLikelihood keeps the distinct rows of batches that have missing cells or more than "
    "two values a column, and those of the first batches are too many to be kept, as they look "
    "like complete rows of bits. Shuffle the rows, use fewer, or fill the cells."
)
# Cells of batches with normal scores at most.
MOST_CELLS = 2**24
# Of the size of the couplings, at least, that a fit has at its peak: 13 to 28 were measured.
MATRICES = 12
# Values of a column at most: the kernels have codes of 16 bits.
MOST_VALUES = np.iinfo(np.int16).max


class Coding:
    """Values of the columns, and their codes.

    Parameters
    ----------
    low : int
        The value whose code is 0: -1 in tables of -1 and 1, else 0.
    n_values : ndarray of int64 of shape (n_features,)
        Number of values of each column.

    Attributes
    ----------
    is_binary : bool
        Whether all columns have two values.
    """

    def __init__(self, low, n_values):
        self.low, self.n_values = low, n_values
        self.is_binary = bool((n_values == 2).all())

    @property
    def larger_columns(self):
        """The columns of more than two values."""
        return np.flatnonzero(self.n_values > 2)

    def values(self, j):
        """The values of column j."""
        return np.array([-1, 1]) if self.low == -1 else np.arange(self.n_values[j])

    def grown(self, table, X):
        """The coding of rows that come later, of which columns of codes may have more values.

        In an array, codes are as they are: others are errors.
        """
        if self.low < 0:
            return self
        n_values = np.maximum(self.n_values, table.n_categories)
        if table.header is not None:
            highest = np.fmax.reduce(X, axis=0, initial=0)
            is_code = ~table.is_word & is_whole(highest) & (highest < MOST_CODES)
            n_values = np.where(is_code, np.maximum(n_values, highest + 1), n_values)
        return Coding(self.low, n_values.astype(np.int64))

    def decode(self, codes):
        """From codes, or means of codes, to the scale of the data."""
        return 2 * codes - 1 if self.low == -1 else codes

    def codes(self, X, refuse):
        """Codes of the cells, -1 for NaN, small integers; cells that are none go to `refuse`."""
        if not self.is_binary:
            legal = np.isnan(X) | (is_whole(X) & (X < self.n_values))
            if not legal.all():
                refuse(X, legal, lambda j: f"values from 0 to {self.n_values[j] - 1}")
            return np.where(np.isnan(X), -1, X).astype(np.min_scalar_type(-self.n_values.max() - 1))
        positive = X == 1
        missing = np.isnan(X) if X.dtype.kind == "f" else None
        legal = positive | (X == self.low)
        if missing is not None:
            legal |= missing
        if not legal.all():
            refuse(X, legal, lambda j: f"the values {self.low} and 1")
        codes = positive.view(np.int8)
        if missing is not None:
            codes[missing] = -1
        return codes


class Rows(NamedTuple):
    """Rows as they were read.

    Attributes
    ----------
    coding : Coding
    dtype : dtype
        Of the table.
    codes : ndarray of int of shape (n, n_features) or None
        -1 for a missing cell. None for batches with too many distinct rows to be kept.
    weights : ndarray of shape (n,) or None
        How often each row counts.
    sums : Sums or None
        Of batches of complete rows of bits that are not kept, the sums over all rows.
    in_order : bool
        Whether the codes are the rows of one table, one after another, and not the distinct ones.
    scores : list of tuple
        Of `scores_of`, of which one is to be chosen; empty if there are no such numbers.
    n_halvings : int
        Of batches that are being read: how often a random half of the rows has been dropped.
        Codes then have one more column, the number of halvings that a row outlives.
    """

    coding: Coding
    dtype: np.dtype
    codes: np.ndarray | None
    weights: np.ndarray | None
    sums: Sums | None = None
    in_order: bool = False
    scores: Sequence = ()
    n_halvings: int = 0

    @property
    def total(self):
        """The sum of the weights."""
        return self.sums.total if self.codes is None else self.weights.sum()

    @property
    def is_complete(self):
        """Whether no cell is missing."""
        return self.codes is None or not (self.codes < 0).any()

    @property
    def incomplete_columns(self):
        """The columns with missing cells."""
        return np.flatnonzero((self.codes < 0).any(axis=0))


def read(estimator, X, sample_weight, coding=None):
    """Check rows, in a coding or, if that is None, in any; rows without an observed cell go."""
    is_first, cells = coding is None, X
    X = estimator._validate(X, reset=is_first, allow_nan=True, sample_weight=sample_weight)
    coding = find_coding(estimator, X) if is_first else coding.grown(estimator._encoder, X)
    _check_size(estimator, coding)
    codes = coding.codes(X, partial(estimator._refuse_codes, in_fit=is_first))
    weights = checked_weights(sample_weight, X)
    counted = (weights > 0) & (codes >= 0).any(axis=1)
    is_scored = estimator._encoder.is_scored.any()
    scores = scores_of(estimator._encoder, cells, counted, weights) if is_scored else []
    if not counted.all():
        codes, weights = codes[counted], weights[counted]
    # A column without a value is a constant one. Later rows are added to those of the first call.
    empty = estimator._empty_columns(codes) if is_first else estimator._encoder.is_empty
    codes[:, empty | (coding.n_values == 1)] = 0
    return Rows(coding, X.dtype, codes, weights, in_order=True, scores=scores)


def scores_of(table, cells, counted, weights):
    """Normal scores of the rows that count: those of a table, and simpler ones.

    A list of such tables; their scores, (n, n_scored), NaN where there is none; and what the
    transforms add to the log-likelihood of a row, the number of their parameters subtracted: sums
    over columns of means of ln T'.
    """
    found, weights = [], weights[counted]
    columns = [column.scores for column in table.columns if column.scores is not None]
    is_plain = all(scores.plain is None for scores in columns)
    for one in [table] if is_plain else [table, with_plain_scores(table)]:
        z, log_slope = (part[counted] for part in normal_scores(one, cells))
        z = z[..., 0]
        known = ~np.isnan(z) * weights[:, None]
        means = (known * log_slope).sum(axis=0) / np.maximum(known.sum(axis=0), 1e-300)
        n_parameters = sum(c.scores.n_parameters for c in one.columns if c.scores is not None)
        found.append((one, z, means.sum() - n_parameters / weights.sum()))
    return found


def at_once(batches, name):
    """All rows of batches as one table, for normal scores; `name` is that of the estimator."""
    tables, n_cells = [], 0
    for batch in map(of_batch, batches):
        tables += [batch] if batch.shape[0] else []
        n_cells += math.prod(batch.shape)
        if n_cells > MOST_CELLS:
            raise ValueError(
                f"{name}: normal scores of numbers follow from all rows at once, which have more "
                f"than {MOST_CELLS:,} cells. Fit some of them, or set columns='binned'."
            )
    return joined(tables)


def read_batches(estimator, batches, known=None):
    """Collect the distinct rows if they are few, else sums over all rows.

    `known` is the coding of a fit that they continue.
    """
    found = partial(_found_in_batch, estimator._reader(batches), known)
    lengths, rows = summarise(batches, found, _merge)
    if rows.codes is not None:
        codes, weights = distinct_incomplete(rows.codes[:, :-1], rows.weights)
        rows = rows._replace(codes=codes, weights=weights)
        codes[:, estimator._empty_columns(codes)] = 0
    if rows.n_halvings:
        estimator._warn(
            f"the fit uses {rows.total:,.0f} of the {sum(lengths.values()):,} rows, drawn at "
            f"random, as distinct rows have {MOST_KEPT:,} cells at most in memory."
        )
    low = (rows.coding.low or 0) if known is None else known.low
    return rows._replace(coding=Coding(low, rows.coding.n_values))


def _check_size(estimator, coding):
    """Refuse couplings that do not fit into memory, and codes that do not fit into the kernels."""
    name, n_values = type(estimator).__name__, coding.n_values
    many = np.flatnonzero(n_values > MOST_VALUES)
    if len(many):
        raise ValueError(
            f"{name}: {estimator._have(many)} up to {n_values.max():,} values, and at most "
            f"{MOST_VALUES:,} are possible. Merge rare values, or leave the column out."
        )
    n_states = int(n_values.sum())
    if MATRICES * 8 * n_states**2 <= SMALL:
        return
    if coding.is_binary:
        n_states, remedy = len(n_values), "Leave out columns."
        what = f"{name}: the couplings of {n_states:,} columns"
    else:
        j, remedy = int(n_values.argmax()), "Leave out columns, or merge rare values."
        what = (
            f"{name}: the columns have {n_states:,} values together, most of them "
            f"{estimator._column(j)} with {n_values[j]:,}. Their couplings"
        )
    check_memory(MATRICES * 8 * n_states**2, what, remedy)


def _found_in_batch(reader, known, batch):
    """The rows of a batch, as of `_collected`; `low` is None if it does not occur."""
    X = reader._validate(batch, reset=False, allow_nan=True)
    coding = find_coding(reader, X) if known is None else known.grown(reader._encoder, X)
    _check_size(reader, coding)
    codes = coding.codes(X, partial(reader._refuse_codes, in_fit=True))
    if coding.is_binary and (codes != 0).all():
        coding = Coding(None, coding.n_values)
    codes, weights = informative(codes, np.ones(len(codes)))
    # What is drawn depends neither on the order of the batches nor on the process.
    generator = np.random.default_rng(crc32(np.ascontiguousarray(codes)))
    halvings = np.minimum(generator.geometric(0.5, len(codes)) - 1, MOST_HALVINGS)
    codes = np.column_stack([codes, halvings.astype(codes.dtype)])
    return _collected(coding, X.dtype, codes, weights, 0)


def _collected(coding, dtype, codes, weights, n_halvings):
    """The distinct rows, or sums over complete ones of bits where they are too many."""
    codes, weights = distinct_incomplete(codes, weights)
    if coding.is_binary and codes.size > MOST_ENTRIES and not (codes < 0).any():
        bits, counts = distinct_incomplete(codes[:, :-1], weights)
        if bits.size > MOST_ENTRIES:
            return Rows(coding, dtype, None, None, Sums.of(bits > 0, counts))
    kept = codes[:, -1] >= n_halvings
    while kept.sum() * codes.shape[1] > MOST_KEPT:
        n_halvings += 1
        kept = codes[:, -1] >= n_halvings
    codes, weights = (codes, weights) if kept.all() else (codes[kept], weights[kept])
    return Rows(coding, dtype, codes, weights, n_halvings=n_halvings)


def _merge(one, other):
    lows = {one.coding.low, other.coding.low} - {None}
    if len(lows) > 1:
        raise ValueError(
            "FVBMPseudoLikelihood needs -1 and 1 or 0 and 1 in all batches, but one batch has the "
            "value -1 and another 0. Recode them."
        )
    n_values = np.maximum(one.coding.n_values, other.coding.n_values)
    coding = Coding(lows.pop() if lows else None, n_values)
    if one.codes is not None and other.codes is not None:
        pairs = (one.codes, other.codes), (one.weights, other.weights)
        n_halvings = max(one.n_halvings, other.n_halvings)
        return _collected(coding, one.dtype, *map(np.concatenate, pairs), n_halvings)
    if not (coding.is_binary and one.is_complete and other.is_complete):
        raise ValueError(TOO_MANY)
    sums = [rows.sums or Sums.of(rows.codes[:, :-1] > 0, rows.weights) for rows in (one, other)]
    return Rows(coding, one.dtype, None, None, sums[0] + sums[1])


def positive_of_batch(reader, coding, columns, k, batch):
    """Where these columns of a batch of bits have the higher value."""
    X = reader._validate(batch, reset=False)
    return coding.codes(X, reader._refuse_codes)[:, columns] > 0


def find_coding(estimator, X):
    """The values of the columns of rows of numbers, as the user says or as the table shows."""
    has_signs = X.dtype.kind != "b" and (X == -1).any()
    # With other values, -1 is a code for missing cells, which `_refuse_codes` explains.
    has_signs = has_signs and not ((X > 1).any() and (X == 0).any())
    if has_signs or X.dtype.kind == "b":
        return Coding(-1 if has_signs else 0, np.full(X.shape[1], 2))
    n_values, words = estimator._numbers_of_values(X), estimator._encoder.is_word
    if n_values[~words].max(initial=0) > MOST_CODES:
        what = f"at most {MOST_CODES} values, from 0 on,"
        estimator._refuse_codes(X, words | ~(X >= MOST_CODES), lambda j: what, in_fit=True)
    return Coding(0, n_values)


def no_errors_of_ordered(have, ordered, remedy):
    """Why there are no standard errors with such a penalty, and what to do; None if no column.

    `have` names columns, with their verb.
    """
    if not ordered.any():
        return None
    return (
        "there are no standard errors with the penalty by the order of values, which "
        f"{have(np.flatnonzero(ordered))}: they would not account for its bias. {remedy}"
    )
