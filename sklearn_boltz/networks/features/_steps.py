"""Steps of L-BFGS that raise the objective of a network of features, in scaled coordinates."""

from collections import deque

import numpy as np
from scipy.linalg import eigh

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
        self.own, self.dtype, size = objective.own, objective.penalty.dtype, len(second)
        values, vectors, inverse = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
        for place in places:
            c, k = spread[place, place], place.stop - place.start
            c = c + np.eye(k) * (RIDGE * max(np.trace(c) / k, 1e-6))
            values[place], vectors[place, place] = eigh(second[place, place] + 1e-4 * np.eye(k), c)
            inverse[place, place] = np.linalg.inv(c)
        self.values = np.maximum(values, 0)
        self.squares, self.vectors = vectors**2, vectors.astype(self.dtype)
        self.inverse = inverse.astype(self.dtype)
        self.renew(objective)

    def renew(self, objective):
        """Take the penalty of an objective."""
        spread = self.squares.T @ np.where(self.own, 0, objective.penalty) @ self.squares
        self.divisor = (self.values[:, None] + self.values + spread).astype(self.dtype)

    def __call__(self, slope):
        """A step from derivatives."""
        coupling, intercept = slope
        coupling = (
            self.vectors
            @ ((self.vectors.T @ coupling @ self.vectors) / self.divisor)
            @ self.vectors.T
        )
        coupling[self.own] = 0
        return coupling, self.inverse @ intercept


class Lbfgs:
    """L-BFGS that remembers its steps from one objective to the next, which is much like it."""

    def __init__(self):
        self.steps = deque(maxlen=MEMORY)

    def run(self, objective, point, scaling, n_iter, tol):
        """Raise the objective by some iterations, or until one gains less than `tol`.

        Returns
        -------
        point : Point
        rise : float
            What the last iteration gained.
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
            moved = after.coupling - point.coupling, after.intercept - point.intercept
            change = (
                point.coupling_slope - after.coupling_slope,
                point.intercept_slope - after.intercept_slope,
            )
            curvature = _dot(moved, change)
            if curvature > 0:
                self.steps.append((moved, change, curvature))
            point = after
            if rise < tol:
                break
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
        while True:
            after = objective.at(*_add((point.coupling, point.intercept), step, direction))
            gain = after.value - point.value
            if gain >= ENOUGH * step * slope or step < SHORTEST:
                return after if gain >= 0 else point
            # The maximum of the parabola, within bounds.
            step *= float(np.clip(0.5 * step * slope / (step * slope - gain), 0.1, 0.5))


def _dot(one, other):
    """Each coupling stands in a matrix twice."""
    return float(np.vdot(one[0], other[0])) / 2 + float(one[1] @ other[1])


def _add(one, factor, other):
    return tuple(a + factor * b for a, b in zip(one, other, strict=True))
