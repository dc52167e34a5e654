"""Rows to train on that come in batches."""

import operator
from copy import copy as shallow_copy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack

from sklearn_boltz._methods import dense
from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._arrays import as_numpy
from sklearn_boltz.restricted.model._columns import hold_bits
from sklearn_boltz.restricted.training._cluster import Parts, find_cluster
from sklearn_boltz.restricted.training._gaps import KeptValues, MiniBatch, mask_digest
from sklearn_boltz.restricted.training._monitor import LIKELIHOOD_ROWS
from sklearn_boltz.restricted.training._visits import EMPTY, visits
from sklearn_boltz.tables._batches import mini_batches
from sklearn_boltz.tables._blocks import rows_of
from sklearn_boltz.tables._weights import checked_weights
from sklearn_boltz.units._unit import observed_sums

# A memory map with no more rows is trained on row by row, as an array in memory is, with a list of
# the numbers of all rows: that takes 24 bytes a row.
MOST_INDEXED = 2**20
# So few cells of a Dask collection (80 MB) need no cluster.
FEW_CELLS = 10**7
# Rows that are set aside for early stopping, at most: they are kept in memory.
MOST_VALID = 10_000


class StreamedRows:
    """Rows that come in batches, with what a training needs of an array or a CSR matrix.

    Parameters
    ----------
    batches : Batches
    found : (dict, BatchSums)
        Of a pass over the batches by `summarise` with `sums_of_batch` and `merge_sums`.
    check : callable
        From rows of a batch to legal values.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts, over all batches in their order.
    indexed : bool
        Whether the rows can be had in any order.

    Attributes
    ----------
    source : Batches
    shape : tuple of (int, int)
    dtype : dtype
        Of the rows when they are looked at.
    hold_bits : ndarray of bool of shape (n_visible,)
    observed_sums : tuple
        Sums of the columns over observed values, and how many these are.
    weights : ndarray of float64 of shape (n_rows,) or None
        None for 1 each.
    gaps : BatchSums or None
        Where cells are missing; None if none are.
    """

    def __init__(self, batches, found, check, sample_weight=None, *, indexed=False):
        lengths, sums = found
        self.source, self.dtype, self.hold_bits = batches, sums.dtype, sums.hold_bits
        self.gaps = sums if len(sums.rows) else None
        n_batches = max(max(lengths) + 1, batches.n_batches or 0)  # empty ones are not in lengths
        self._lengths = np.zeros(n_batches, dtype=np.int64)
        self._lengths[list(lengths)] = list(lengths.values())
        self._starts = np.append(0, np.cumsum(self._lengths))
        self.shape = int(self._starts[-1]), len(sums.total)
        # Of a source in memory order, rows may be had by their numbers.
        in_memory = batches.blocks.array is not None
        self.indexed = indexed and self.shape[0] <= MOST_INDEXED and in_memory
        self._check = check
        self._cluster = find_cluster() if batches.blocks.is_dask else None
        if self._cluster is not None and self.shape[0] * self.shape[1] <= FEW_CELLS:
            warn(
                f"The rows have {self.shape[0] * self.shape[1]:,} cells, and each mini-batch of "
                "them has to wait for the Dask cluster: in this process the fit takes a fraction "
                "of the time. Pass them as X.compute()."
            )
        self.observed_sums, self.weights = (sums.total, sums.count), None
        self.useless = self._without = np.empty(0, dtype=np.int64)
        if self.gaps is not None:
            self.useless = self.gaps.rows[self.gaps.n_missing == self.shape[1]]
        if sample_weight is not None:
            self._weigh(sample_weight)
        self._without = self.useless
        if len(self.useless) == self.shape[0]:
            raise ValueError(EMPTY)

    def _weigh(self, sample_weight):
        """Take the weights of the rows into account: a pass over the batches."""
        given = as_numpy(sample_weight)
        if given.ndim and len(given) != self.shape[0]:
            raise ValueError(
                f"sample_weight must have one weight for each of the {self.shape[0]:,} rows of "
                f"all batches, in their order, and has {len(given):,}."
            )
        weights = checked_weights(sample_weight, np.empty((self.shape[0], 0)))
        self.useless = np.union1d(self.useless, np.flatnonzero(weights == 0))
        count = np.ones(len(weights), dtype=bool)
        count[self.useless] = False
        is_weighted = (weights[count] != 1).any()
        if not is_weighted and count.all():
            return
        every = np.where(count, weights, 0.0)
        self.weights = every if is_weighted else None
        weigh = partial(_weighted_sums, self.checked, self._starts, every)
        total, count = self.source.map_reduce(weigh, operator.add)
        if self.gaps is None:  # one and the same number
            count = float(every.sum()) if is_weighted else int(every.sum())
        self.observed_sums = total, count

    @property
    def n_rows(self):
        """Number of rows of an epoch."""
        return self.shape[0] - len(self._without)

    def usable(self):
        """Numbers of the rows that count: not of weight 0, nor without any cell."""
        return np.delete(np.arange(self.shape[0]), self.useless)

    def kept_values(self):
        """Where the values of missing cells can be kept between visits; None if all are there."""
        if self.gaps is None:
            return None
        counts = np.zeros(self.shape[0], dtype=np.int64)
        counts[self.gaps.rows] = self.gaps.n_missing
        return KeptValues(counts, self.gaps.digest, self.dtype)

    def astype(self, dtype, copy=False):
        """Convert the rows to another type."""
        other = shallow_copy(self)
        other.dtype = np.dtype(dtype)
        return other

    def __getitem__(self, rows):
        """Rows of the given numbers, dense or CSR; a pass over the batches if need be."""
        rows = np.asarray(rows, dtype=np.int64)
        blocks = self.source.blocks
        if blocks.array is not None:
            return self.checked(blocks.array[rows])
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        block_of = np.searchsorted(self._starts, rows, side="right") - 1
        wanted = {k: rows[block_of == k] - self._starts[k] for k in np.unique(block_of).tolist()}
        if blocks.is_dask:
            picked = blocks.take(wanted).items()
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
        n_rows, n_valid = self.shape[0] - len(self.useless), 0
        if validation_fraction:
            n_valid = min(max(1, round(validation_fraction * n_rows)), MOST_VALID, n_rows - 1)
        chosen = rng.choice(n_rows, min(n_rows, n_valid + LIKELIHOOD_ROWS), replace=False)
        if len(self.useless):
            chosen = self.usable()[chosen]
        return chosen[n_valid:], chosen[:n_valid]

    def all_but(self, numbers):
        """Leave some rows out of `mini_batches`, in a copy."""
        other = shallow_copy(self)
        other._without = np.union1d(self.useless, numbers)
        return other

    def mini_batches(self, batch_size, rng):
        """Yield the mini-batches of an epoch, or `Parts` of them on the workers of a cluster."""
        yield from map(self.gathered, self.pieces(batch_size, rng))

    def pieces(self, batch_size, rng):
        """Yield of which rows the mini-batches of an epoch consist.

        Yields
        ------
        pieces : list of (int, (int, object), ndarray of int)
            The number of the lane, that of a batch with its rows, and numbers of some of them.
        """
        times = self._visits(rng)
        free = (((k, block), self._free_rows(k, times)) for k, block in self._epoch_blocks(rng))
        return mini_batches(free, self.source.n_lanes, batch_size, rng)

    def gathered(self, pieces):
        """A `MiniBatch`, or its `Parts` on the workers of a cluster."""
        if self._cluster is not None:
            pieces = [(lane, block, rows) for lane, (_, block), rows in pieces]
            return Parts(self._cluster, self.checked, pieces, self.gaps is not None)
        rows = [block[np.sort(numbers)] for _, (_, block), numbers in pieces]
        stacked = vstack(rows, "csr") if any(map(issparse, rows)) else np.concatenate(rows)
        return MiniBatch(dense(self.checked(stacked)))

    def numbers(self, pieces):
        """Numbers of the rows of a mini-batch among all, piece by piece, as they are gathered."""
        return [self._starts[k] + np.sort(rows) for _, (k, _), rows in pieces]

    def _visits(self, rng):
        """How often each row is visited in an epoch; None for once each."""
        if self.weights is None:
            return None
        numbers = np.delete(np.arange(self.shape[0]), self._without)
        times = np.zeros(self.shape[0], dtype=np.int64)
        times[numbers] = visits(self.weights[numbers], rng)
        return times

    def _epoch_blocks(self, rng):
        n_blocks = self.source.n_batches
        order = rng.permutation(n_blocks) if n_blocks is not None else np.arange(len(self._lengths))
        if self._cluster is None:
            return self._blocks(order)
        futures = self._cluster.blocks(self.source)
        return ((k, futures[k]) for k in order)

    def _free_rows(self, k, times=None):
        begin, end = np.searchsorted(self._without, self._starts[k : k + 2])
        rows = np.arange(self._lengths[k])
        if times is not None:
            return np.repeat(rows, times[self._starts[k] : self._starts[k] + len(rows)])
        return np.delete(rows, self._without[begin:end] - self._starts[k])


def _checked(check, n_features, dtype, rows):
    if not rows.shape[0]:
        return np.empty((0, n_features), dtype)
    return check(rows).astype(dtype, copy=False)


class BatchSums(NamedTuple):
    """Sums over batches, and the rows with missing cells.

    Attributes
    ----------
    dtype : dtype
    total : ndarray of float64 of shape (n_features,)
    count : int or ndarray of float64 of shape (n_features,)
        As of `observed_sums`.
    hold_bits : ndarray of bool of shape (n_features,)
    n_rows : int
    rows, n_missing : ndarray of int
        Numbers of the rows with missing cells, and how many each lacks.
    digest : str
        Of where cells are missing.
    """

    dtype: np.dtype
    total: np.ndarray
    count: int | np.ndarray
    hold_bits: np.ndarray
    n_rows: int
    rows: np.ndarray
    n_missing: np.ndarray
    digest: str


def sums_of_batch(check, batch):
    """`BatchSums` of the rows of a batch, of which `check` makes legal values."""
    X = check(batch, allow_nan=True)
    total, count = observed_sums(X)
    missing = np.isnan(X) if np.ndim(count) else np.empty((0, 0), dtype=bool)
    n_missing, digest = missing.sum(axis=1), mask_digest(missing) if missing.any() else ""
    rows = np.flatnonzero(n_missing)
    return BatchSums(
        X.dtype, total, count, hold_bits(X), X.shape[0], rows, n_missing[rows], digest
    )  # fmt: skip


def merge_sums(one, other):
    """`BatchSums` of one after the other."""
    total, count = one.total + other.total, one.count + other.count
    rows = np.append(one.rows, one.n_rows + other.rows)
    n_rows, n_missing = one.n_rows + other.n_rows, np.append(one.n_missing, other.n_missing)
    bits, digest = one.hold_bits & other.hold_bits, one.digest + other.digest
    return BatchSums(one.dtype, total, count, bits, n_rows, rows, n_missing, digest)


def _weighted_sums(check, starts, weights, k, batch):
    """The weighted sums of a batch, and of its observed cells in each column."""
    X = check(rows_of(batch))
    total, count = observed_sums(X, weights[starts[k] : starts[k + 1]])
    return np.array([total, np.broadcast_to(count, total.shape)])
