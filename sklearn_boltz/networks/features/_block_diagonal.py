"""Products with a matrix that has a block for each column."""

from itertools import groupby

import numpy as np


class BlockDiagonal:
    """A matrix B with square blocks on its diagonal, and 0 elsewhere.

    Parameters
    ----------
    stacks : list of ndarray of shape (n_blocks, k, k)
        The blocks, those of the same size that follow each other together: they are multiplied at
        once.
    """

    def __init__(self, stacks):
        ends = np.cumsum([stack.shape[0] * stack.shape[1] for stack in stacks])
        places = map(slice, [0, *ends[:-1]], ends)
        self._stacks, self._parts = stacks, list(zip(places, stacks, strict=True))

    @classmethod
    def of(cls, blocks, dtype):
        """The matrix with some blocks, one after another."""
        return cls([np.stack(list(own)).astype(dtype) for _, own in groupby(blocks, len)])

    def map(self, function):
        """The matrix of a function of arrays of blocks, which are transposed at first."""
        return BlockDiagonal([function(stack.transpose(0, 2, 1)) for stack in self._stacks])

    def on_both_sides(self, matrix):
        """B M Bᵀ of a symmetric M that is 0 in the places of the blocks."""
        return self.on_the_left(self.on_the_left(matrix).T)

    def on_the_left(self, matrix):
        """B M, which is 0 where M is to be."""
        found, width = np.zeros(matrix.shape, self._stacks[0].dtype), matrix.shape[1]
        for rows, stack in self._parts:
            is_alone = len(stack) == 1 and width > 1  # then it has no product with its own place
            for part in around(rows, width) if is_alone else [slice(0, width)]:
                shape = *stack.shape[:2], part.stop - part.start
                of_columns = matrix[rows, part].reshape(shape)
                np.matmul(stack, of_columns, out=found[rows, part].reshape(shape))
        return found


def around(place, end):
    """Slices before a slice, and after it up to an end, that are not empty."""
    parts = slice(0, place.start), slice(place.stop, end)
    return [part for part in parts if part.start < part.stop]
