"""The log pseudo-likelihood of rows that come in batches.

It is a sum over rows, and so are its derivatives: each value is the sum, over one pass, of the
values of the batches. One pass beforehand collects the sums that do not depend on the parameters.
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

# Entries of the part of a batch that is worked on at once: ten arrays of float64 of that size exist
# at a time.
PART_ENTRIES = 2**19


class Sums(NamedTuple):
    """Sums over ±1-valued rows: their number, Σ x_j and Σ x_j x_k."""

    total: float
    means: np.ndarray
    moments: np.ndarray

    @classmethod
    def of(cls, positive, weights):
        """The sums of rows that are given by where they are 1, and how often each counts."""
        parts = (cls(p.total, p.means, p.moments) for p in in_parts(positive, weights))
        return reduce(add, parts, cls(0.0, 0.0, 0.0))

    def __add__(self, other):
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


def in_parts(positive, weights):
    """Yield the pseudo-likelihood, without a penalty, of a part of the rows at a time."""
    step = max(1, PART_ENTRIES // max(1, positive.shape[1]))
    for start in range(0, len(positive), step):
        part = slice(start, start + step)
        yield PseudoLikelihood(2.0 * positive[part].T - 1.0, weights[part])


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
    rows = positive(k, batch)
    return reduce(merge, map(find, in_parts(rows, np.ones(len(rows)))))


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
