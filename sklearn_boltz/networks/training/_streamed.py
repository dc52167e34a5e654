"""The log pseudo-likelihood of rows that come in batches.

It is a sum over rows, and so are its derivatives: each value is the sum, over one pass, of the
values of the batches. One pass beforehand collects the sums that do not depend on the
parameters, and the distinct rows while they are few.
"""

from functools import partial, reduce
from operator import add
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.training._objective import (
    BinaryObjective,
    Point,
    PseudoLikelihood,
)
from sklearn_boltz.tables._batches import distinct_states

# Entries of the distinct rows that are kept, at most, and of the part of a batch that is worked
# on at once: ten arrays of float64 of that size exist at a time.
MOST_ENTRIES, PART_ENTRIES = 2**22, 2**19


class Sums(NamedTuple):
    """Sums over ±1-valued rows, which are kept where few are distinct.

    Attributes
    ----------
    total : float
        Number of rows.
    means : ndarray of shape (d,)
        Σ x_j.
    moments : ndarray of shape (d, d)
        Σ x_j x_k.
    rows : ndarray of bool of shape (n_distinct, d) or None
        Where they are 1.
    weights : ndarray of shape (n_distinct,) or None
        How often each occurs.
    """

    total: float
    means: np.ndarray
    moments: np.ndarray
    rows: np.ndarray | None
    weights: np.ndarray | None

    @classmethod
    def of(cls, positive):
        """The sums of some rows."""
        d = positive.shape[1]
        means, moments = np.zeros(d), np.zeros((d, d))
        for spins in spins_in_parts(positive):
            means += spins.sum(axis=1)
            moments += spins @ spins.T
        kept = distinct_states(positive, np.ones(len(positive)))
        return cls(float(len(positive)), means, moments, *_few(*kept))

    def __add__(self, other):
        kept = None, None
        if self.rows is not None and other.rows is not None:
            pairs = zip(self[3:], other[3:], strict=True)
            kept = _few(*distinct_states(*(np.concatenate(pair) for pair in pairs)))
        return Sums(*(a + b for a, b in zip(self[:3], other[:3], strict=True)), *kept)


def _few(rows, weights):
    return (None, None) if rows.size > MOST_ENTRIES else (rows.astype(bool), weights)


def spins_in_parts(positive):
    """Yield ±1 of float64, variable by variable, of a part of the rows at a time."""
    step = max(1, PART_ENTRIES // max(1, positive.shape[1]))
    for start in range(0, len(positive), step):
        yield 2.0 * positive[start : start + step].T - 1.0


class StreamedPseudoLikelihood(BinaryObjective):
    """What `PseudoLikelihood` is, by a pass over the batches for each question.

    Parameters
    ----------
    batches : Batches
    positive : callable
        From the number and the rows of a batch, where the variables of the problem are 1. It may be
        called in other processes.
    sums : Sums
        Of these variables.
    alpha : float
        Strength of the penalty per row.
    """

    def __init__(self, batches, positive, sums, alpha):
        self.batches, self.positive = batches, positive
        super().__init__(sums.means, sums.total, alpha)
        self.moments = sums.moments

    name = PseudoLikelihood.name

    def _sum(self, find, *arguments, merge=add):
        in_batch = partial(_of_batch, partial(find, *arguments), merge, self.positive)
        return self.batches.map_reduce(in_batch, merge)

    def at(self, theta):
        """Evaluate the objective and its derivative."""
        found, (coupling, intercept) = self._sum(_value_and_gradient, theta), self.unpack(theta)
        value = found[0] - self.penalty / 4 * np.vdot(coupling, coupling)
        gradient = found[1:] - self.penalty * self.pack(coupling, np.zeros_like(intercept))
        return Point(theta, float(value), gradient)

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ², of shape (n_parameters, n_parameters)."""
        information = self._sum(_information, point.theta, dtype)
        pairs = np.arange(len(self.means), self.n_parameters)
        information[pairs, pairs] += self.penalty
        return information

    def pair_sums(self, theta, means):
        """The sums of `pair_curvature` for variables with these means, of shape (2, d, d)."""
        return self._sum(_pair_sums, theta, means)

    def cell_sums(self):
        """Number of rows, Σ x_j x_k and Σ x_j."""
        return self.total, self.moments, self.means

    def gains(self, direction):
        """The least and the greatest x_ij F_ij of each variable, each of shape (d,)."""
        low, high = self._sum(_gains, direction, merge=np.maximum)
        return -low, high


def _of_batch(find, merge, positive, k, batch):
    """What is found in one batch, part by part, without the penalty."""
    parts = spins_in_parts(positive(k, batch))
    return reduce(merge, (find(PseudoLikelihood(x, np.ones(x.shape[1]))) for x in parts))


def _value_and_gradient(theta, problem):
    """As one vector."""
    point = problem.at(theta)
    return np.append(point.value, problem.gradient(point))


def _information(theta, dtype, problem):
    return problem.information(problem.at(theta), dtype)


def _pair_sums(theta, means, problem):
    return problem.pair_sums(theta, means)


def _gains(direction, problem):
    """The least with its sign changed, and the greatest."""
    least, greatest = problem.gains(direction)
    return np.array([-least, greatest])
