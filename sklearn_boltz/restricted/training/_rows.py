"""Rows to train on, of an array or of what comes in batches, and their mini-batches."""

from copy import copy as shallow_copy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils import gen_batches

from sklearn_boltz._base import dense
from sklearn_boltz._batches import fresh, mini_batches, rows_of, summarise
from sklearn_boltz.restricted.training._cluster import Parts, find_cluster
from sklearn_boltz.restricted.training._monitor import GAP_ROWS
from sklearn_boltz.units._bernoulli import smoothed_log_odds

# A memory map with no more rows is trained on row by row, as an array in memory is, with a list of
# the numbers of all rows: that takes 24 bytes a row.
MOST_INDEXED = 2**20
# Rows that are set aside for early stopping, at most: they are kept in memory.
MOST_VALID = 10_000


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


class ColumnSums(NamedTuple):
    """Sums of the columns of the data: what a Bernoulli model keeps of them."""

    total: np.ndarray
    n_rows: int

    @classmethod
    def of(cls, X):
        """Of rows."""
        return cls(np.asarray(X.sum(axis=0, dtype=np.float64)).ravel(), X.shape[0])

    def __add__(self, other):
        return ColumnSums(self.total + other.total, self.n_rows + other.n_rows)

    def means(self, dtype):
        """Means of the columns."""
        return (self.total / self.n_rows).astype(dtype)

    def log_odds(self, dtype):
        """Their log-odds, finite where a column is constant."""
        return smoothed_log_odds(self.total, self.n_rows).astype(dtype)


class ChosenRows:
    """Some rows of data of which any row can be had by its number.

    Parameters
    ----------
    source : ndarray, CSR matrix, or StreamedRows that are indexed
    numbers : ndarray of int
        Which rows.

    Attributes
    ----------
    n_rows : int
        Number of rows of an epoch.
    """

    def __init__(self, source, numbers):
        self.source, self.numbers, self.n_rows = source, np.sort(numbers), len(numbers)

    def in_memory(self):
        """The rows as an array or a CSR matrix; not copied if they are all of one."""
        if len(self.numbers) == self.source.shape[0] and not isinstance(self.source, StreamedRows):
            return self.source
        return self.source[self.numbers]

    def mini_batches(self, batch_size, rng):
        """Yield the mini-batches of an epoch, dense."""
        order = self.numbers[rng.permutation(len(self.numbers))]
        # A step from a few rows would be as long as any, and spoil the epoch: a rest goes
        # to the last mini-batch if it is less than half of one.
        least = (batch_size + 1) // 2
        for batch in gen_batches(len(order), batch_size, min_batch_size=least):
            yield dense(self.source[order[batch]])


class StreamedRows:
    """Rows that come in batches, with what a training needs of an array or a CSR matrix.

    Parameters
    ----------
    estimator : estimator
        With a method `_validated`, which checks rows.
    batches : Batches
    reset : bool
        Whether the names of the columns are learned here.
    indexed : bool
        Whether the rows can be had in any order.

    Attributes
    ----------
    source : Batches
    shape : tuple of (int, int)
    dtype : dtype
        Of the rows when they are looked at.
    """

    def __init__(self, estimator, batches, *, reset, indexed=False):
        found = summarise(estimator, batches, _sums_of_batch, _merge_sums, reset=reset)
        self.source, self.dtype, self._sums = batches, *found.result
        self._lengths = np.zeros(max(found.lengths) + 1, dtype=np.int64)
        self._lengths[list(found.lengths)] = list(found.lengths.values())
        self._starts = np.append(0, np.cumsum(self._lengths))
        self.shape = int(self._starts[-1]), len(self._sums)
        # Of a source in memory order, rows may be had by their numbers.
        self.indexed = indexed and self.shape[0] <= MOST_INDEXED and batches.rows([]) is not None
        # Names were compared in the first pass, and numbers of columns are enough from here on.
        checker = fresh(estimator)
        checker.n_features_in_ = self.shape[1]
        self._check = checker._validated
        self._cluster = find_cluster() if batches.is_dask else None
        self._without = np.empty(0, dtype=np.int64)

    @property
    def n_rows(self):
        """Number of rows of an epoch."""
        return self.shape[0] - len(self._without)

    def sum(self, axis=0, dtype=np.float64):
        """The sums of the columns, in float64."""
        return self._sums

    def astype(self, dtype, copy=False):
        """The same rows in another type."""
        other = shallow_copy(self)
        other.dtype = np.dtype(dtype)
        return other

    def __getitem__(self, rows):
        """Rows of the given numbers, dense or CSR; a pass over the batches if need be."""
        rows = np.asarray(rows, dtype=np.int64)
        found = self.source.rows(rows)
        if found is not None:
            return self.checked(found)
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        block_of = np.searchsorted(self._starts, rows, side="right") - 1
        wanted = {k: rows[block_of == k] - self._starts[k] for k in np.unique(block_of).tolist()}
        if self.source.is_dask:
            picked = self.source.take(wanted).items()
        else:
            picked = ((k, block[wanted[k]]) for k, block in self._blocks(np.array(list(wanted))))
        for k, mine in picked:
            out[block_of == k] = dense(self.checked(mine))
        return out

    @property
    def checked(self):
        """The function from rows of a batch to legal values of the right type."""
        return partial(_checked, self._check, self.shape[1], self.dtype)

    def _blocks(self, wanted):
        """Yield number and rows of some batches: in that order, or else as they come."""
        if self.source.n_batches is not None:
            for k in wanted:
                yield k, rows_of(self.source.batch(k))
            return
        wanted = set(wanted.tolist())
        for k, batch in enumerate(self.source):
            length = self._lengths[k] if k < len(self._lengths) else 0
            if batch.shape[0] != length:
                raise ValueError(
                    f"Batch {k} had {length} rows in an earlier pass and now has "
                    f"{batch.shape[0]}: the source must give the same rows each time."
                )
            if k in wanted:
                yield k, rows_of(batch)

    def choose(self, rng, validation_fraction):
        """Numbers of a few random rows to train on, and of those set aside, if any are."""
        n_rows, n_valid = self.shape[0], 0
        if validation_fraction:
            n_valid = min(max(1, round(validation_fraction * n_rows)), MOST_VALID, n_rows - 1)
        chosen = rng.choice(n_rows, min(n_rows, n_valid + GAP_ROWS), replace=False)
        return chosen[n_valid:], chosen[:n_valid]

    def all_but(self, numbers):
        """The same without some rows, as far as `mini_batches` goes."""
        other = shallow_copy(self)
        other._without = np.sort(numbers)
        return other

    def mini_batches(self, batch_size, rng):
        """Yield the mini-batches of an epoch, dense, or as `Parts` on the workers of a cluster."""
        free = ((block, self._free_rows(k)) for k, block in self._epoch_blocks(rng))
        for pieces in mini_batches(free, self.source.n_lanes, batch_size, rng):
            if self._cluster is not None:
                yield Parts(self._cluster, self.checked, pieces)
            else:
                rows = [block[np.sort(numbers)] for _, block, numbers in pieces]
                stacked = vstack(rows, "csr") if issparse(rows[0]) else np.concatenate(rows)
                yield dense(self.checked(stacked))

    def _epoch_blocks(self, rng):
        n_blocks = self.source.n_batches
        order = rng.permutation(n_blocks) if n_blocks is not None else np.arange(len(self._lengths))
        if self._cluster is None:
            return self._blocks(order)
        futures = self._cluster.blocks(self.source)
        return ((k, futures[k]) for k in order)

    def _free_rows(self, k):
        begin, end = np.searchsorted(self._without, self._starts[k : k + 2])
        rows = np.arange(self._lengths[k] if k < len(self._lengths) else 0)
        return np.delete(rows, self._without[begin:end] - self._starts[k])


def _checked(check, n_features, dtype, rows):
    if not rows.shape[0]:
        return np.empty((0, n_features), dtype)
    return check(rows).astype(dtype, copy=False)


def _sums_of_batch(estimator, batch):
    X = estimator._validated(batch, reset=True)
    return X.dtype, np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()


def _merge_sums(one, other):
    return one[0], one[1] + other[1]
