"""The log pseudo-likelihood of rows that come in batches.

It is a sum over rows, and so are its derivatives: each value is the sum, over one pass, of the
values of the batches. One pass beforehand collects the sums that do not depend on the
parameters, and the distinct rows while they are few.
"""

from functools import partial
from operator import add
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.training._objective import (
    BinaryObjective,
    GradientPoint,
    PlainLine,
    PseudoLikelihood,
    largest_move,
    penalty_of_sum,
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
        self.total, self.means, self.moments = sums[:3]
        self.penalty = penalty_of_sum(alpha, self.total)
        self.upper = np.triu_indices(len(self.means), 1)

    name = PseudoLikelihood.name

    def _sum(self, function, *arguments, merge=add):
        return self.batches.map_reduce(partial(function, self.positive, *arguments), merge)

    def at(self, coupling, intercept):
        """Evaluate the objective and its derivative."""
        found = self._sum(_value_and_gradient, coupling, intercept)
        value = found[0] - self.penalty / 4 * np.vdot(coupling, coupling)
        zeros = np.zeros_like(intercept)
        gradient = found[1:] - self.penalty * self.pack(coupling, zeros)
        theta = self.pack(coupling, intercept)
        return GradientPoint(theta, coupling, intercept, float(value), gradient)

    def gradient(self, point):
        """∂/∂θ, of shape (n_parameters,)."""
        return point.gradient

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ², of shape (n_parameters, n_parameters)."""
        information = self._sum(_information, point.coupling, point.intercept, dtype)
        pairs = np.arange(len(self.means), self.n_parameters)
        information[pairs, pairs] += self.penalty
        return information

    def pair_curvature(self, point, means):
        """The sums of `pair_curvature` for variables with these means, of shape (2, d, d)."""
        return self._sum(_pair_curvature, point.coupling, point.intercept, means)

    def line(self, point, direction):
        """From a point in a direction."""
        return PlainLine(self, point, direction, largest_move(*self.unpack(direction)))

    def after(self, point, step):
        """The point after a step."""
        return self.at(*self.unpack(point.theta + step))

    def cell_sums(self):
        """Number of rows, Σ x_j x_k and Σ x_j."""
        return self.total, self.moments, self.means

    def gains(self, direction):
        """The least and the greatest x_ij F_ij of each variable, each of shape (d,)."""
        low, high = self._sum(_gains, direction, merge=np.maximum)
        return -low, high

    def move(self, direction):
        """By how much a direction moves the field of any row, at most."""
        least, greatest = self.gains(direction)
        return max(greatest.max(initial=0), -least.min(initial=0))


# Of one batch, without the penalty.


def _problems(positive, k, batch):
    for spins in spins_in_parts(positive(k, batch)):
        yield PseudoLikelihood(spins, np.ones(spins.shape[1]))


def _value_and_gradient(positive, coupling, intercept, k, batch):
    """As one vector."""
    total = 0.0
    for problem in _problems(positive, k, batch):
        point = problem.at(coupling, intercept)
        total = total + np.append(point.value, problem.gradient(point))
    return total


def _information(positive, coupling, intercept, dtype, k, batch):
    total = 0.0
    for problem in _problems(positive, k, batch):
        total = total + problem.information(problem.at(coupling, intercept), dtype)
    return total


def _pair_curvature(positive, coupling, intercept, means, k, batch):
    total = 0.0
    for problem in _problems(positive, k, batch):
        total = total + problem.pair_curvature(problem.at(coupling, intercept), means)
    return total


def _gains(positive, direction, k, batch):
    """The least with its sign changed, and the greatest."""
    found = [problem.gains(direction) for problem in _problems(positive, k, batch)]
    return np.max([(-least, greatest) for least, greatest in found], axis=0)
