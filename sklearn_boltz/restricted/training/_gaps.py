"""Mini-batches with missing cells: Markov chains fill them, with what is observed clamped.

The gradient of the log-probability of what is observed is a mean over the missing cells and the
hidden units given it, less that over the model. A draw of the missing cells makes a mini-batch
complete, and the algorithm goes on as if it always had been.
"""

from copy import copy
from hashlib import sha1
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.model._coded_rows import gaps_of
from sklearn_boltz.restricted.sampling._gibbs import run_clamped_chains
from sklearn_boltz.restricted.sampling._observed import Gaps, rows_with_gaps, start
from sklearn_boltz.restricted.training._labelled_rows import LabelledRows

# Transitions of a row that goes on from its last visit, and of one that starts anew.
KEPT_STEPS, FRESH_STEPS = 2, 10


class KeptValues:
    """Values of the missing cells of rows between visits, one number for each.

    Parameters
    ----------
    counts : ndarray of int of shape (n_rows,)
        Number of missing cells of each row.
    digest : object
        Of where they are: a fit goes on with values that are kept for the same cells only.
    dtype : dtype
    layout : ColumnLayout, default=None
        Of columns of one-hot numbers, whose codes are kept; None to keep all numbers of rows.
    """

    def __init__(self, counts, digest, dtype, layout=None):
        self.starts = np.append(0, np.cumsum(counts, dtype=np.int64))
        self.digest, self.values = digest, np.full(self.starts[-1], np.nan, dtype)
        self.layout = layout

    @classmethod
    def of(cls, X, dtype):
        """For an array of rows, without values as yet; None if it is complete."""
        if rows_with_gaps(X) is None:
            return None
        missing = gaps_of(X)
        return cls(missing.sum(axis=1), mask_digest(missing), dtype, getattr(X, "layout", None))

    def copy(self):
        """The values as they are now."""
        other = copy(self)
        other.values = self.values.copy()
        return other

    def fill(self, V, missing, cells, places):
        """Fill the missing cells of rows, if they have values as yet; the rest by `places`."""
        values = self.values[places]
        if np.isnan(values).any():  # rows are met for the first time
            return
        if self.layout is not None:
            codes = np.zeros(cells.shape, values.dtype)
            codes[cells] = values
            values = self.layout.with_one_hot(codes)[missing]
        V[missing] = values

    def keep(self, V, cells, places):
        """Keep the values of the missing cells of rows; the rest by `places`."""
        V = V if self.layout is None else self.layout.without_one_hot(V)
        self.values[places] = V[cells]

    def places(self, missing, numbers):
        """Which cells of rows of some numbers are missing, and where their values are kept."""
        cells = missing if self.layout is None else missing[:, self.layout.starts[:-1]]
        rows = np.nonzero(cells)[0]
        counts = np.bincount(rows, minlength=len(cells))
        offsets = self.starts[numbers] + counts - np.cumsum(counts)
        return cells, offsets[rows] + np.arange(len(rows))


def mask_digest(missing):
    """A digest of where cells are missing."""
    return sha1(np.packbits(missing), usedforsecurity=False).hexdigest()


class MiniBatch(NamedTuple):
    """A mini-batch in memory, or on a device.

    Attributes
    ----------
    V : array of shape (n_rows, n_visible), or LabelledRows
        NaN where a cell is missing.
    kept : KeptValues or None
        None for rows that are not met again.
    numbers : ndarray of int of shape (n_rows,) or None
        Of the rows among those that `kept` is for.
    """

    V: np.ndarray
    kept: KeptValues | None = None
    numbers: np.ndarray | None = None

    def __len__(self):
        return self.V.shape[0]

    def labelled(self, labels):
        """The mini-batch with classes and weights of its rows, which come in pieces."""
        return MiniBatch(LabelledRows(self.V, *map(np.concatenate, zip(*labels, strict=True))))

    def teach(self, learner, rate, workers):
        """Have a learner learn from it; -> the learner."""
        V = self.V
        if learner.draws_gaps and rows_with_gaps(V) is not None:
            V = self.completed(learner.model(), seed_of_batch(learner.stream), workers)
        learner.learn(learner.in_memory(V), rate, workers)
        return learner

    def completed(self, model, seed, workers):
        """Draw the missing cells; -> the rows.

        Parameters
        ----------
        model : Model
        seed : int
        workers : Workers
        """
        missing, V = np.isnan(self.V), np.array(self.V, model.dtype)
        if self.kept is None:
            return complete(model, V, missing, seed, workers)
        cells, places = self.kept.places(missing, self.numbers)
        self.kept.fill(V, missing, cells, places)
        completed = complete(model, V, missing, seed, workers)
        self.kept.keep(completed, cells, places)
        return completed


def seed_of_batch(stream):
    """The seed of the missing cells of a mini-batch, whose chains take other random numbers."""
    entropy = np.random.SeedSequence([stream.seed, stream.step])
    return int(entropy.generate_state(1, np.uint64)[0])


def complete(model, V, missing, seed, workers, first_row=0):
    """Make transitions of the missing cells of rows, with the others clamped.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where the chains start; with NaN, they start near the means given what is observed.
    missing : ndarray of bool of the same shape
    seed : int
    workers : Workers
    first_row : int
        What the random numbers take for the number of the first row.

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
    """
    out, fresh = np.array(V, model.dtype, order="C"), np.isnan(V).any()

    def block(rows):
        stream, chains, gaps = Stream(seed), out[rows], missing[rows]
        if not gaps.any():
            return
        if fresh:
            chains[...] = start(Gaps.of(model, np.where(gaps, np.nan, chains)))
        n_steps, first = FRESH_STEPS if fresh else KEPT_STEPS, first_row + rows.start
        run_clamped_chains(model, chains, gaps, n_steps, stream, first)

    workers.map(block, row_blocks(len(V)), len(V) * model.weights.size * 2 * KEPT_STEPS)
    return out
