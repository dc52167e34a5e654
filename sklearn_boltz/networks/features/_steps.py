"""Steps of L-BFGS that raise the objective of a network of features, in scaled coordinates."""

from collections import deque

import numpy as np
from scipy.linalg import eigh

from sklearn_boltz.networks.features._blocks import Blocks

# Steps that are remembered.
MEMORY = 10
# Part of the promised rise that a step must bring, and the shortest one tried.
ENOUGH, SHORTEST = 1e-4, 1e-3
# The first step of all, in ratio to that of Newton's method for independent columns.
FIRST_STEP = 0.3
# What is added to variances of features, in ratio to their mean.
RIDGE = 1e-3


class Scaling:
    """The inverse of an approximate second derivative: pair by pair that of independent columns.

    That of a coupling K_jl is S_j ⊗ C_l + C_j ⊗ S_l and the penalty, with second moments S of
    features and conditional variances C.
    """

    def __init__(self, places, second, spread, objective):
        self.own, self.dtype = objective.own, objective.penalty.dtype
        values, vectors, inverses = [], [], []
        for place in places:
            c, k = spread[place, place], place.stop - place.start
            c = c + np.eye(k) * (RIDGE * max(np.trace(c) / k, 1e-6))
            of_place = eigh(second[place, place] + 1e-4 * np.eye(k), c)
            values.append(np.maximum(of_place[0], 0))
            vectors.append(of_place[1])
            inverses.append(np.linalg.inv(c))
        self.values, self.vectors = np.concatenate(values), Blocks(vectors, self.dtype)
        self.transposed, self.inverses = self.vectors.map(np.copy), Blocks(inverses, self.dtype)
        self.squares = self.vectors.map(np.square)
        self.renew(objective)

    def renew(self, objective):
        """Take the penalty of an objective."""
        spread = self.squares.on_both_sides(np.where(self.own, 0, objective.penalty))
        self.divisor = (self.values[:, None] + self.values + spread).astype(self.dtype)

    def __call__(self, slope):
        """A step from derivatives."""
        coupling, intercept = slope
        inner = self.transposed.on_both_sides(coupling)
        inner /= self.divisor
        coupling = self.vectors.on_both_sides(inner)
        return coupling, self.inverses.on_the_left(intercept[:, None])[:, 0]


class Lbfgs:
    """L-BFGS that remembers its steps from one objective to the next, which is much like it."""

    def __init__(self):
        self.steps = deque(maxlen=MEMORY)

    def run(self, objective, point, scaling, n_iter, tol):
        """Raise the objective by some iterations, or until one gains less than `tol`.

        Returns
        -------
        point : Evaluation
        rise : float
            Gain of the last iteration.
        """
        step, rise = (1.0 if self.steps else FIRST_STEP), np.inf
        for _ in range(n_iter):
            direction = self._direction(point.slope, scaling)
            slope = _dot(direction, point.slope)
            if slope <= 0:
                self.steps.clear()
                direction = scaling(point.slope)
                slope = _dot(direction, point.slope)
            after = self._search(objective, point, direction, slope, step)
            rise, step = after.value - point.value, 1.0
            before, point = point, after
            if rise < tol:  # what such a step tells of the curvature may be rounding
                break
            moved = after.coupling - before.coupling, after.intercept - before.intercept
            change = (
                before.coupling_slope - after.coupling_slope,
                before.intercept_slope - after.intercept_slope,
            )
            curvature = _dot(moved, change)
            if curvature > 0:
                self.steps.append((moved, change, curvature))
        return point, rise

    def _direction(self, slope, scaling):
        shares = []
        for moved, change, curvature in reversed(self.steps):
            share = _dot(moved, slope) / curvature
            slope = _add(slope, -share, change)
            shares.append(share)
        direction = scaling(slope)
        if self.steps:
            _, change, curvature = self.steps[-1]
            factor = curvature / _dot(change, scaling(change))
            direction = tuple(factor * part for part in direction)
        for (moved, change, curvature), share in zip(self.steps, reversed(shares), strict=True):
            direction = _add(direction, share - _dot(change, direction) / curvature, moved)
        return direction

    def _search(self, objective, point, direction, slope, step):
        while step >= SHORTEST:
            after = objective.at(*_add((point.coupling, point.intercept), step, direction))
            gain = after.value - point.value
            if gain >= ENOUGH * step * slope:
                return after
            # The maximum of the parabola, within bounds; a gain may be no number.
            ratio = np.nan_to_num(0.5 * step * slope / (step * slope - gain))
            step *= float(np.clip(ratio, 0.1, 0.5))
        return point


def _dot(one, other):
    """Each coupling stands in a matrix twice."""
    return float(np.vdot(one[0], other[0])) / 2 + float(one[1] @ other[1])


def _add(one, factor, other):
    return tuple(a + factor * b for a, b in zip(one, other, strict=True))
