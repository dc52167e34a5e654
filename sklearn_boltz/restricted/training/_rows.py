"""Rows to train on, of an array or of what comes in batches, and their mini-batches."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.restricted.model._coded_rows import CodedRows
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._gaps import KeptValues, MiniBatch
from sklearn_boltz.restricted.training._labelled_rows import (
    LabelledRows,
    stratified,
)
from sklearn_boltz.restricted.training._streamed_rows import StreamedRows
from sklearn_boltz.restricted.training._visits import relative, visits
from sklearn_boltz.units._bernoulli import Bernoulli, smoothed_log_odds
from sklearn_boltz.units._unit import observed_sums

# The share that is set aside where no other is given.
VALID_SHARE = 0.1
# Numbers of rows of which all one-hot numbers are made once, and not for each mini-batch.
MOST_EXPANDED = 2**20


def has_rows(early_stopping):
    """Whether `early_stopping` is a table of validation rows."""
    return not isinstance(early_stopping, (Real, np.bool_, str))


def held_out_share(early_stopping):
    """The share of the rows that `early_stopping` sets aside; 0 if it is a table itself."""
    if has_rows(early_stopping):
        return 0.0
    if isinstance(early_stopping, (bool, np.bool_, str)):
        return VALID_SHARE if early_stopping else 0.0
    return float(early_stopping)


def divided(n_rows, validation_fraction, seed):
    """Numbers of the rows to train on and of those set aside, both in random order.

    They are the same each time that a fit is taken up again.
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    if not validation_fraction:
        return order, order[:0]
    if n_rows < 2:
        raise ValueError(
            "early_stopping needs n_samples of at least 2, but n_samples=1. "
            "Set early_stopping=False."
        )
    n_valid = min(max(1, round(validation_fraction * n_rows)), n_rows - 1)
    return order[n_valid:], order[:n_valid]


def effective_rows(rows, weights=None):
    """Number of rows that count, by their weights."""
    if weights is not None:
        return max(1, round(weights.sum()))
    return rows.n_rows if isinstance(rows, StreamedRows) else rows.shape[0]


def evenly_spaced(X, n_most):
    """Numbers of this many rows at most, of those that count."""
    numbers = X.usable() if isinstance(X, StreamedRows) and len(X.useless) else None
    n_rows = X.shape[0] if numbers is None else len(numbers)
    places = np.linspace(0, n_rows - 1, min(n_rows, n_most)).round().astype(int)
    return places if numbers is None else numbers[places]


def as_mini_batch(X):
    """All rows as a `MiniBatch`."""
    if isinstance(X, LabelledRows):
        there = isinstance(X.V, DeviceRows)
        return MiniBatch(X[X.V.places(np.arange(len(X)))] if there else X)
    X = X.array if isinstance(X, DeviceRows) else X
    return MiniBatch(X if is_foreign(X) else np.ascontiguousarray(X))


class ColumnSums(NamedTuple):
    """Sums of the columns of the data, `observed_sums`: what a Bernoulli model keeps of them.

    Attributes
    ----------
    total : ndarray of float64 of shape (n_features,)
    n_rows : int, float or ndarray of float64 of shape (n_features,)
        Number of rows, or of those in which each column is observed.
    """

    total: np.ndarray
    n_rows: int | float | np.ndarray

    rows = None  # none are kept

    def more(self, X, weights, base):
        """With more rows; -> the sums, and independent units as in all of them."""
        total, n_rows = observed_sums(X, weights)
        seen = ColumnSums(self.total + total, self.n_rows + n_rows)
        return seen, Bernoulli(seen.log_odds(base.intercept.dtype)) if base.is_binary else base

    def means(self, dtype):
        """Means of the columns."""
        if np.ndim(self.n_rows):
            # Of a column that is never observed, between the ends.
            means = self.total / np.maximum(self.n_rows, np.finfo(np.float64).tiny)
            return np.where(self.n_rows > 0, means, 0.5).astype(dtype)
        return (self.total / self.n_rows).astype(dtype)

    def log_odds(self, dtype):
        """Their log-odds, finite where a column is constant."""
        return smoothed_log_odds(self.total, self.n_rows).astype(dtype)


class ChosenRows:
    """Some rows of data of which any row can be had by its number.

    Parameters
    ----------
    source : ndarray, CSR matrix, CodedRows, or StreamedRows that are indexed
    numbers : ndarray of int
        Which rows.
    weights : ndarray of float64 of shape (n_source,), default=None
        How often each row of the source counts; None for equal weights.
    kept : KeptValues, default=None
        The values of missing cells between visits, where some are missing.

    Attributes
    ----------
    n_rows : int
        Number of visits of an epoch.
    """

    def __init__(self, source, numbers, weights=None, kept=None):
        self.source, self.numbers, self.n_rows = source, np.sort(numbers), len(numbers)
        self.weights = None if weights is None else relative(weights[self.numbers])
        self.kept = kept

    def in_memory(self):
        """The rows as an array or a CSR matrix; not copied if they are all of one."""
        if len(self.numbers) == self.source.shape[0] and not isinstance(self.source, StreamedRows):
            return self.source
        return self.source[self.numbers]

    def mini_batches(self, batch_size, rng):
        """Yield the mini-batches of an epoch."""
        numbers = self.numbers
        if self.weights is not None:
            numbers = np.repeat(numbers, visits(self.weights, rng))
        order = numbers[rng.permutation(len(numbers))]
        rows = self.source.V if isinstance(self.source, LabelledRows) else self.source
        if isinstance(rows, DeviceRows):  # moved once for all mini-batches of an epoch
            order = rows.places(order)
        # A step from a few rows would be as long as any, and spoil the epoch: a rest goes
        # to the last mini-batch if it is less than half of one.
        least = (batch_size + 1) // 2
        for batch in gen_batches(len(numbers), batch_size, min_batch_size=least):
            some = order[batch]
            yield MiniBatch(dense(self.source[some]), self.kept, some)


def divide(X, weights, share, seed, n_given=0, former=None):
    """Set some rows aside.

    Parameters
    ----------
    X : ndarray, CSR matrix, CodedRows, DeviceRows or StreamedRows of shape (n_rows, n_visible)
    weights : ndarray of float64 of shape (n_rows,) or None
    share : float
        The part that is set aside; 0 for none.
    seed : int
    n_given : int
        How many of the last rows are set aside instead.
    former : KeptValues, default=None
        Values of missing cells that are kept from another fit, of these rows or of others.

    Returns
    -------
    rows : ChosenRows or StreamedRows
        To train on.
    train, valid : ndarray of int
        Numbers of rows of both kinds, by which a model is measured.
    """
    is_stream = isinstance(X, StreamedRows)
    if isinstance(X, CodedRows) and X.shape[0] * X.shape[1] <= MOST_EXPANDED:
        X = X.toarray()
    if is_stream and not X.indexed:
        if share and X.shape[0] - len(X.useless) < 2:
            raise ValueError(
                "early_stopping needs at least two rows, but X has 1. Use more rows or "
                "early_stopping=False."
            )
        train, valid = X.choose(np.random.default_rng(seed), share)
        return X.all_but(valid), train, valid
    numbers = X.usable() if is_stream else np.arange(X.shape[0])
    kept = X.kept_values() if is_stream else KeptValues.of(X, X.dtype)
    if kept is not None and former is not None and former.digest == kept.digest:
        kept = former
    numbers, given = np.split(numbers, [len(numbers) - n_given])
    train, valid = (numbers[some] for some in divided(len(numbers), share, seed))
    return ChosenRows(X, train, weights, kept), train, given if n_given else valid


def divide_labelled(rows, share, seed, name):
    """Set some of `LabelledRows` aside, of each class its share; -> as of `divide`."""
    train, valid = stratified(rows.codes, share, seed, name)
    if isinstance(rows.V, StreamedRows):  # rows without any cell
        train, valid = (some[~np.isin(some, rows.V.useless)] for some in (train, valid))
        if not rows.V.indexed:
            return rows.all_but(valid), train, valid
    return ChosenRows(*(rows.repeated(train) if rows.repeats else (rows, train))), train, valid
