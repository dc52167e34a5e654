"""Where batches come from: an iterable, a function that returns one, or a list of any order."""

from functools import partial
from itertools import starmap, tee

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.tables._cells import as_array

ONE_PASS = (
    "More than one pass over the rows is needed, but an iterator allows only one. Pass a list, or "
    "Batches(f) with a function f that returns a new iterator at each call."
)


def rows_of(batch):
    """A batch as an array or CSR matrix."""
    if issparse(batch):
        return batch.tocsr()
    return batch if isinstance(batch, np.ndarray) else np.asarray(batch)


class Blocks:
    """The batches of an iterable, or of what a callable returns; of an iterator, in one pass."""

    n_blocks = array = size = None
    is_single = is_dask = is_used = False

    def __init__(self, source):
        self.source, self.is_single = source, hasattr(source, "__next__")

    def __iter__(self):
        if self.is_single and self.is_used:
            raise ValueError(ONE_PASS)
        self.is_used = True
        return self._counted(self.source() if callable(self.source) else self.source)

    def _counted(self, blocks):
        """The blocks of a pass, of which there have to be as many as in the first one."""
        n_blocks = n_rows = 0
        for block in blocks:
            yield block
            rows = block[0] if isinstance(block, tuple) else block  # rows and labels
            n_blocks += 1
            n_rows += rows.shape[0] if hasattr(rows, "shape") else len(rows)
        self.size = self.size or (n_blocks, n_rows)
        if self.size != (n_blocks, n_rows):
            raise ValueError(
                f"A later pass over the batches had {n_rows} rows in {n_blocks} batches, the first "
                f"one {self.size[1]} in {self.size[0]}. Each pass has to begin at the first batch "
                "and yield the same rows."
            )

    def first(self, function):
        """A function of the first batch with rows, also of an iterator, which is not used up."""
        blocks = self
        if self.is_single:
            self.source, blocks = tee(self.source)
        blocks = map(with_shape, blocks)
        return next((function(block) for block in blocks if block.shape[0]), None)

    def mapped(self, function):
        return Blocks(partial(_each, function, self))

    def map_reduce(self, function, merge):
        result = None
        for k, block in enumerate(self):
            result = merge(result, function(k, block))
        return result


class ListedBlocks(Blocks):
    """Batches in any order, by their numbers.

    Parameters
    ----------
    n_blocks : int
    block : callable
        From the number of a batch to the batch.
    array : ndarray or CSR matrix, default=None
        Of which they are slices.
    """

    def __init__(self, n_blocks, block, array=None):
        self.n_blocks, self.block, self.array = n_blocks, block, array

    def __iter__(self):
        return map(self.block, range(self.n_blocks))

    def mapped(self, function):
        return ListedBlocks(self.n_blocks, partial(_numbered, function, self.block))


# Not within others, so that batches can be pickled.


def _each(function, blocks):
    return starmap(function, enumerate(blocks))


def _numbered(function, block, k):
    return function(k, block(k))


def unless_empty(function, k, batch):
    """A function of a batch as an array or data frame; None of one without rows."""
    batch = with_shape(batch)
    return function(k, batch) if batch.shape[0] else None


def with_shape(batch):
    """A batch as an array or data frame, if it is a list or a record batch of PyArrow."""
    if type(batch).__name__ == "RecordBatch":
        from pyarrow import Table

        return Table.from_batches([batch])
    return batch if hasattr(batch, "shape") else as_array(batch)
