"""Rows that come in batches: memory maps, streams, parquet files, Dask collections."""

import os
from contextlib import contextmanager
from copy import copy
from functools import partial

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.tables._blocks import Blocks, ListedBlocks, unless_empty
from sklearn_boltz.tables._dask import DaskBlocks, computed, outlive_workers
from sklearn_boltz.tables._files import agreed, open_dataset, read

# Entries of a batch that is cut from an array.
BATCH_ENTRIES = 2**21
# Rows of a batch that is read from a file.
FILE_ROWS = 2**15


class Batches:
    """
    Rows that come in batches, for data that do not fit in memory.

    Pass this object instead of an array to `fit` of :class:`~sklearn_boltz.FSLLDensity`,
    :class:`~sklearn_boltz.FVBMPseudoLikelihood`, :class:`~sklearn_boltz.SDCPRBM`,
    :class:`~sklearn_boltz.TAPRBM`, :class:`~sklearn_boltz.TAPDBM` (with ``pretrain_max_iter=0``),
    of an imputer, a detector or a classifier. Classifiers also need the labels of all rows, or
    batches that are pairs (X, y). Only a few batches are in memory at any time. A memory map, a
    Dask collection, a ``pyarrow.dataset.Dataset`` or a generator can be passed to `fit` directly;
    `fit` then creates this object with default options.

    Parameters
    ----------
    source : object
        One of

        - an array, a memory map or a sparse matrix of shape (n_samples, n_features), which is
          cut into batches;
        - an iterable of batches, for example a list. Each iteration over it must start from the
          beginning;
        - a callable without arguments that returns such an iterable;
        - an iterator, such as a generator. It allows a single pass, which is enough for
          :class:`~sklearn_boltz.FSLLDensity`, and for
          :class:`~sklearn_boltz.FVBMPseudoLikelihood` if there are few distinct rows;
        - the path of a parquet file or of a folder of them, or a ``pyarrow.dataset.Dataset``
          (pyarrow must be installed);
        - a ``dask.array`` or ``dask.dataframe``, whose partitions are the batches. Where possible,
          computations run on the workers that hold them.

        A batch is an array, a sparse matrix or a data frame, of shape (n_rows, n_features). The
        number of rows may differ between batches. Strings, dates and numbers are found as in one
        table, by one more pass over the batches: see the Notes.
    batch_rows : int, default=None
        Number of rows in a batch, if this class cuts the source into batches; for a parquet file,
        the maximum. None means two million entries of an array, or 32,768 rows of a file.
    n_lanes : int, default=4
        Number of batches whose rows are mixed: each mini-batch takes rows from this many batches.
        On a cluster, each lane belongs to one worker, so use the number of workers or a multiple
        of it.

    Raises
    ------
    ValueError
        If batches cannot be made from `source`, or if `batch_rows` or `n_lanes` is less than 1.
        Later, in `fit`, if a second pass over an iterator is needed.
    ImportError
        If `source` is a path and pyarrow is not installed.

    Notes
    -----
    Arrays of bits or of codes 0, 1, 2, ... are used as they are, and so are data frames whose first
    batch holds bits only. Otherwise `fit` first counts the values of each column in one pass, and
    learns from all batches what the columns are. The counts are exact up to 8,192 different numbers
    in a column, and the bins are then those of the table in one piece. Beyond, ranks are known to
    0.2 % of a million rows and to 0.45 % of a billion, in any order of the batches. If a column has
    several types in its batches or files, it gets one that holds all of its values; dates of two
    time zones are in UTC, and a mixture of dates with and without a zone is refused.

    An epoch of mini-batches visits the batches in random order if the source allows it (arrays,
    lists, Dask), and otherwise in the order of the source. Within each lane, the rows of a batch
    are shuffled. If the rows of a file are sorted, shuffle the file itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FSLLDensity
    >>> from sklearn_boltz.batches import Batches
    >>> def read():
    ...     for seed in range(10):
    ...         X = np.random.default_rng(seed).integers(2, size=(100, 3))
    ...         X[:, 2] = X[:, 0] ^ X[:, 1]
    ...         yield X
    >>> FSLLDensity().fit(Batches(read)).get_feature_names_out()
    array(['x0*x1*x2'], dtype=object)
    """

    def __init__(self, source, *, batch_rows=None, n_lanes=4):
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"batch_rows must be at least 1, got {batch_rows}.")
        if n_lanes < 1:
            raise ValueError(f"n_lanes must be at least 1, got {n_lanes}.")
        self.source, self.batch_rows, self.n_lanes = source, batch_rows, n_lanes
        self.blocks = _blocks_of(source, batch_rows)
        # Whether they are codes of a table whose columns are known, NaN for gaps.
        self.are_codes = False

    def __iter__(self):
        return iter(self.blocks)

    @property
    def n_batches(self):
        """Number of batches; None if they can only be read one after another."""
        return self.blocks.n_blocks

    def batch(self, k):
        """
        Return batch number k.

        Parameters
        ----------
        k : int
            From 0 to `n_batches` - 1.

        Returns
        -------
        batch : array-like of shape (n_rows, n_features)
            Rows of the batch.

        Raises
        ------
        TypeError
            If the batches can only be read one after another (`n_batches` is None).
        IndexError
            If there is no batch with this number.
        """
        n_batches = self.n_batches
        if n_batches is None:
            kind = f"an object of type {type(self.source).__name__}"
            kind = "a function" if callable(self.source) else kind
            raise TypeError(
                f"batch({k}) is not available: batches of {kind} can only be read "
                "one after another. Iterate over this object, or make it from a list of batches, "
                "an array or a Dask collection."
            )
        if not 0 <= k < n_batches:
            raise IndexError(
                f"batch({k}) does not exist: the number of batches is {n_batches}, and the first "
                "one is batch(0)."
            )
        return self.blocks.block(k)

    def map_reduce(self, function, merge):
        """
        Apply a function to each batch and merge the results, in order.

        Parameters
        ----------
        function : callable
            Called as ``function(k, batch)`` with the number and the rows of each batch. It may be
            called in another process.
        merge : callable
            Called as ``merge(one, other)`` with two results. It must be associative.

        Returns
        -------
        result : object
            ``merge(merge(function(0, batch_0), function(1, batch_1)), ...)``; the order of
            evaluation may differ. Batches without rows are left out.

        Raises
        ------
        ValueError
            If there are no rows.
        """
        result = self.blocks.map_reduce(partial(unless_empty, function), partial(_merge, merge))
        if result is None:
            raise ValueError("There are no rows: found 0 sample(s) in all batches.")
        return result


def mapped(batches, function, are_codes=False):
    """Other batches: a function of the number and the rows of each, called in any process."""
    other = copy(batches)
    other.blocks, other.are_codes = batches.blocks.mapped(function), are_codes
    return other


def as_batches(X, sample_weight=None):
    """`X` as `Batches` if it is not in memory as a whole, and otherwise None."""
    if isinstance(X, np.memmap):
        # Weights for each row are in memory, so the rows may be, too, and so may a single batch.
        is_large = X.ndim == 2 and X.size > BATCH_ENTRIES
        return Batches(X) if is_large and sample_weight is None else None
    if isinstance(X, np.ndarray) or issparse(X):
        return None
    is_batches = hasattr(X, "map_reduce")
    is_source = _is_of(X, "pyarrow", "scanner") or _is_of(X, "dask", "to_delayed")
    if not (is_batches or is_source or hasattr(X, "__next__")):
        return None
    if sample_weight is not None:
        raise ValueError(
            "sample_weight cannot be used with batches. Call partial_fit for each batch, with the "
            "weights of its rows."
        )
    return X if is_batches else Batches(X)


def out_of_memory(X):
    """`X` as `Batches` if it is no table; None for arrays, which may be memory maps."""
    return None if isinstance(X, np.ndarray) else as_batches(X)


def with_labels(batches, y=None):
    """Batches and the labels of all their rows.

    Parameters
    ----------
    batches : Batches
        Batches of rows, or of pairs (X, y) if `y` is None.
    y : array-like of shape (n_rows,), default=None
        Classes of all rows in their order; also a Dask collection.

    Returns
    -------
    batches : Batches
        Batches of rows alone.
    y : ndarray or data frame of shape (n_rows,)
    """
    if y is not None:
        return batches, outlive_workers(partial(computed, y)) if hasattr(y, "compute") else y
    parts = []
    for k, batch in enumerate(batches):
        if not (isinstance(batch, tuple) and len(batch) == 2):
            raise ValueError(
                f"requires y to be passed, but the target y is None and batch {k} is not a pair "
                "(X, y). Give the labels of all rows as an array, in the order of the batches, or "
                "batches that are pairs (X, y)."
            )
        parts.append(np.ravel(batch[1]))
    if not parts:
        raise ValueError("There are no rows: found 0 sample(s) in all batches.")
    return mapped(batches, _without_labels), np.concatenate(parts)


def _without_labels(k, pair):
    return pair[0]


def _blocks_of(source, batch_rows):
    if isinstance(source, (str, os.PathLike)):
        source = open_dataset(source)
    if _is_of(source, "pyarrow", "scanner"):
        return Blocks(partial(read, agreed(source), batch_rows or FILE_ROWS))
    if _is_of(source, "dask", "to_delayed"):
        by_columns = len(getattr(source, "numblocks", ())) > 1
        source = source.rechunk({1: -1}) if by_columns else source
        return DaskBlocks(list(np.ravel(source.to_delayed())))
    if issparse(source) or isinstance(source, np.ndarray):
        if source.ndim != 2:
            raise ValueError(
                f"An array of rows must have two axes (rows and columns), got the shape "
                f"{source.shape}."
            )
        # As a plain array, because a view of a memory map would be treated as a memory map again.
        array = np.asarray(source) if isinstance(source, np.ndarray) else source.tocsr()
        step = batch_rows or max(1, BATCH_ENTRIES // max(1, array.shape[1]))
        return ListedBlocks(-(-array.shape[0] // step), partial(_slice, array, step), array)
    in_memory = hasattr(source, "__array__") or hasattr(source, "__dataframe__")
    if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not in_memory:
        return ListedBlocks(len(source), source.__getitem__)
    if (callable(source) or hasattr(source, "__iter__")) and not in_memory:
        return Blocks(source)
    raise ValueError(
        f"Batches cannot be made from {type(source).__name__}. Give an array or a memory map, an "
        "iterable of arrays, a callable that returns one, the path of a parquet file, or a "
        "dask.array or dask.dataframe. Pass a data frame in memory to fit directly."
    )


def _is_of(X, package, method):
    # Data frames of Dask were in dask_expr before 2025.1.
    return type(X).__module__.startswith(package) and hasattr(X, method)


# Not within others, so that batches can be pickled.


def _slice(array, step, k):
    return array[k * step : (k + 1) * step]


def _merge(merge, one, other):
    if one is None or other is None:
        return other if one is None else one
    return merge(one, other)


# Functions of all batches for estimators.


def summarise(batches, function, merge):
    """Apply a function to each batch, and merge the results.

    Parameters
    ----------
    batches : Batches
    function : callable
        Of a batch. It may be called in another process.
    merge : callable
        Of two results.

    Returns
    -------
    lengths : dict
        From the numbers of batches to their numbers of rows.
    result : object
    """
    return batches.map_reduce(partial(_measured, function), partial(_merge_pairs, merge))


def _measured(function, k, batch):
    with naming(k):
        return {k: batch.shape[0]}, function(batch)


def _merge_pairs(merge, one, other):
    return one[0] | other[0], merge(one[1], other[1])


@contextmanager
def naming(k):
    """Begin messages with the number of a batch."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"In batch {k}: {error}") from error


# Mini-batches.


def mini_batches(blocks, n_lanes, batch_size, rng):
    """Cut blocks of rows into mini-batches, each with rows of a few blocks.

    Parameters
    ----------
    blocks : iterator of (object, ndarray of int)
        A block, and the numbers of the rows in it that may be used.
    n_lanes : int
    batch_size : int
    rng : Generator

    Yields
    ------
    pieces : list of (int, object, ndarray of int)
        Number of the lane, a block and numbers of rows in it. A mini-batch has `batch_size` rows;
        if less than half of that remains at the end, it joins the last mini-batch.
    """
    blocks, lanes, last = iter(blocks), {}, None
    while True:
        pieces, missing = [], batch_size
        while missing and _refill(lanes, blocks, n_lanes, rng):
            for n_left, k in zip(range(len(lanes), 0, -1), sorted(lanes), strict=True):
                block, rows = lanes.pop(k)
                taken, left = np.split(rows, [-(-missing // n_left)])
                pieces += [(k, block, taken)] if len(taken) else []
                missing -= len(taken)
                if len(left):
                    lanes[k] = block, left
        if missing:
            break
        if last is not None:
            yield last
        last = pieces
    # A step from very few rows would be as long as any other, and noisy.
    if last is not None and batch_size - missing < (batch_size + 1) // 2:
        pieces = last + pieces
    elif last is not None:
        yield last
    if pieces:
        yield pieces


def _refill(lanes, blocks, n_lanes, rng):
    """Give each empty lane a new block while there are any; -> the lanes."""
    for k in range(n_lanes):
        while k not in lanes:
            block, rows = next(blocks, (None, None))
            if rows is None:
                return lanes
            if len(rows):
                lanes[k] = block, rng.permutation(rows)
    return lanes
