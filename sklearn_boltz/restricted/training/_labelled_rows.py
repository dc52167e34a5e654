"""Rows with labels: those to train on, in memory or in batches, and mini-batches of them."""

from functools import cached_property

import numpy as np

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import is_foreign, taken

# With early_stopping="auto", rows are set aside if this many have a label.
ENOUGH_LABELS = 200


class LabelledRows:
    """Rows with labels: those to train on, and a mini-batch of them.

    Parameters
    ----------
    V : ndarray, CSR matrix, DeviceRows or StreamedRows of shape (n_rows, n_visible)
        NaN in missing cells.
    codes : ndarray of intp of shape (n_rows,)
        Numbers of the classes; -1 for a row without a label.
    weights : ndarray of float64 of shape (n_rows,), default=None
        How often each row counts; 1 by default.
    repeats : bool
        Whether rows with labels come more often where they are few.
    """

    def __init__(self, V, codes, weights=None, repeats=False):
        self.V, self.codes, self.repeats = V, codes, repeats
        self.shape, self.dtype = V.shape, V.dtype
        self.weights = np.ones(len(codes)) if weights is None else weights

    def __len__(self):
        return self.shape[0]

    @cached_property
    def _there(self):
        """Codes and weights where rows of `DeviceRows` lie."""
        return self.V.places(self.codes), self.V.places(self.weights.astype(self.V.widest))

    @property
    def observed_sums(self):
        """How often rows with a label count together, and all rows."""
        return self.weights[self.codes >= 0].sum(), self.weights.sum()

    def __getitem__(self, numbers):
        """Some of the rows, dense and in memory: a pass over batches if need be."""
        V = taken(self.V, numbers) if is_foreign(self.V) else dense(self.V[numbers])
        if is_foreign(numbers):
            return LabelledRows(V, *(taken(array, numbers) for array in self._there))
        return LabelledRows(V, *self.labels(numbers))

    def labels(self, numbers):
        """Codes and weights of some rows."""
        return self.codes[numbers], self.weights[numbers]

    def astype(self, dtype, copy=False):
        """Convert the rows to another type."""
        V = self.V.astype(dtype, copy=copy)
        return LabelledRows(V, self.codes, self.weights, self.repeats)

    def are_enough(self):
        """Whether so many have labels that some of them can be set aside by default."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=1)
        return bool(counts.sum() >= ENOUGH_LABELS and counts.max() > 1)

    def repeated(self, numbers):
        """Where labels are few, their rows come more often, with as much less weight.

        So each mini-batch has some.

        Parameters
        ----------
        numbers : ndarray of int
            Of the rows to train on.

        Returns
        -------
        rows : LabelledRows
        numbers : ndarray of int
            With repetitions.
        """
        labelled = self.codes >= 0
        n_labelled = int(labelled[numbers].sum())
        times = (len(numbers) - n_labelled) // n_labelled if n_labelled else 1
        if times <= 1:
            return self, numbers
        visited = np.repeat(numbers, np.where(labelled[numbers], times, 1))
        weights = self.weights * (len(visited) / len(numbers)) / np.where(labelled, times, 1)
        return LabelledRows(self.V, self.codes, weights), visited

    # Of rows that come in batches.

    @property
    def n_rows(self):
        """Number of rows of an epoch."""
        return self.V.n_rows

    def all_but(self, numbers):
        """Leave some rows out of `mini_batches`, in a copy."""
        return LabelledRows(self.V.all_but(numbers), self.codes, self.weights, self.repeats)

    def mini_batches(self, batch_size, rng):
        """Yield the mini-batches of an epoch, or `Parts` of them on the workers of a cluster."""
        for pieces in self.V.pieces(batch_size, rng):
            labels = [self.labels(rows) for rows in self.V.numbers(pieces)]
            yield self.V.gathered(pieces).labelled(labels)


def stratified(codes, fraction, seed, name="y"):
    """Numbers of the rows to train on and of those set aside, of each class its share.

    Rows without a label are not set aside, nor is a class with all of its rows.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Numbers of the classes; -1 for a row without a label.
    fraction : float
        Part of the labelled rows that is set aside.
    seed : int
    name : str
        Name of the estimator in messages.

    Returns
    -------
    train, valid : ndarray of int
        In random order.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    if not fraction:
        return order, order[:0]
    labelled = order[codes[order] >= 0]
    counts = np.bincount(codes[labelled])
    wanted = fraction * counts
    taken = np.minimum(np.floor(wanted), np.maximum(counts - 1, 0)).astype(int)
    n_valid = max(1, round(fraction * len(labelled)))
    for k in np.argsort(taken - wanted, kind="stable"):  # the largest remainders
        if taken.sum() < n_valid and taken[k] < counts[k] - 1:
            taken[k] += 1
    valid = np.concatenate([
        labelled[codes[labelled] == k][:n] for k, n in enumerate(taken)
    ])  # fmt: skip
    if not len(valid):
        raise ValueError(
            f"{name}: early_stopping needs a class with at least two labelled rows. Set "
            "early_stopping=False."
        )
    return order[~np.isin(order, valid)], valid
