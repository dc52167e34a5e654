"""Rows on a device: an array of PyTorch, CuPy or another library that stays where it lies."""

from copy import copy as shallow_copy

import numpy as np

from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    widened,
    widest,
)

ELSEWHERE = (
    "{} was fitted on {}, and these rows lie on {}. Move the one or the other: `move_to` returns "
    "the estimator with its arrays elsewhere."
)


class DeviceRows:
    """Rows of an array that stays where it lies, with what a training asks of an ndarray.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Without missing cells.
    weights : ndarray of float64 of shape (n_rows,), default=None
        How often each row counts; None for once.

    Attributes
    ----------
    array : array of shape (n_rows, n_features)
    shape : tuple of (int, int)
    dtype : dtype
        As NumPy has it.
    observed_sums : tuple of (ndarray of float64 of shape (n_features,), int or float)
        Sums of the columns, and how many values these are.
    """

    def __init__(self, X, weights=None):
        self.array, self.shape, self.dtype = X, tuple(X.shape), numpy_dtype(X)
        xp = namespace_of(X)
        if weights is None:
            total, count = xp.sum(X, axis=0, dtype=widest(X)), self.shape[0]
        else:
            rows = widened(X)
            total = like(X, weights.astype(numpy_dtype(rows))) @ rows
            count = float(weights.sum())
        self.observed_sums = as_numpy(total).astype(np.float64), count

    def __len__(self):
        return self.shape[0]

    def astype(self, dtype, copy=False):
        """Convert the rows to another type."""
        other = shallow_copy(self)
        other.array, other.dtype = as_type(self.array, dtype), np.dtype(dtype)
        return other

    @property
    def widest(self):
        """The widest type of float where the rows lie, as NumPy has it."""
        return numpy_dtype(widened(self.array[:0, ...]))

    def places(self, numbers):
        """Numbers of rows, where the rows lie."""
        return like(self.array, numbers)

    def __getitem__(self, numbers):
        """The rows of some numbers: an array of the same library."""
        numbers = numbers if is_foreign(numbers) else self.places(np.asarray(numbers))
        return namespace_of(self.array).take(self.array, numbers, axis=0)
