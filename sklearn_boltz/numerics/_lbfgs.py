"""Limited-memory BFGS."""

from collections import deque

import numpy as np
from scipy.linalg.blas import get_blas_funcs

# Steps that are remembered.
MEMORY = 10
# Part of the promised rise that a step must bring, and how often a step is shortened at most.
ENOUGH, MAX_SHORTENED = 1e-4, 30
# By how much a value may seem to fall by rounding, relative to itself.
ROUNDING = 1e-13
# The first step, in ratio to that of Newton's method by the approximate second derivative.
FIRST_STEP = 0.3


class Lbfgs:
    """Limited-memory BFGS that raises objectives, and remembers its steps from one to the next.

    SciPy's begins each objective anew, and asks for derivatives wherever it asks for a value. Here
    the second derivative may be approximated by more than a diagonal, and otherwise each time.
    """

    def __init__(self):
        self._steps = deque(maxlen=MEMORY)

    def points(self, objective, point, inverse, least=0.0):
        """Yield the point after each step, until none rises: the objective is flat to rounding.

        Parameters
        ----------
        objective : object
            With ``at(theta)``, ``gradient(point)`` and ``recycle(point)``, as `Objective` has.
        point : Point
            Where to begin; with ``theta`` and ``value``.
        inverse : callable
            The step to where derivatives would be 0, by an approximate second derivative.
        least : float, default=0.0
            A step that gains less is not remembered: it may tell of rounding.
        """
        slope = objective.gradient(point)
        while (after := self._rise(objective, point, slope, inverse)) is not None:
            before, slope = slope, objective.gradient(after)
            moved, change = after.theta - point.theta, before - slope
            curvature = float(np.vdot(moved, change))
            if curvature > 0 and after.value - point.value >= least:
                self._steps.append((moved, change, curvature))
            objective.recycle(point)
            point = after
            yield point

    def _rise(self, objective, point, slope, inverse):
        """A point along the step, shortened until it rises enough; None if none does."""
        size = 1.0 if self._steps else FIRST_STEP
        direction = self._direction(slope, inverse)
        rise = float(np.vdot(slope, direction))
        if rise <= 0:
            self._steps.clear()
            direction = inverse(slope)
            rise = float(np.vdot(slope, direction))
        # Near the maximum the rise drowns in the rounding of a sum.
        floor = point.value - ROUNDING * abs(point.value)
        for _ in range(MAX_SHORTENED):
            after = objective.at(point.theta + size * direction)
            if after.value >= floor + ENOUGH * size * rise:
                return after
            # The top of the parabola through both values and the slope; one may be no number.
            ratio = rise * size / (2 * (rise * size - (after.value - point.value)))
            size *= float(np.clip(np.nan_to_num(ratio), 0.1, 0.5))
            objective.recycle(after)
        return None

    def _direction(self, slope, inverse):
        left, shares = slope.copy(), []
        for moved, change, curvature in reversed(self._steps):
            shares.append(float(np.vdot(moved, left)) / curvature)
            _add(left, -shares[-1], change)
        direction = inverse(left)
        if self._steps:
            _, change, curvature = self._steps[-1]
            direction *= curvature / float(np.vdot(change, inverse(change)))
        for (moved, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            _add(direction, share - float(np.vdot(change, direction)) / curvature, moved)
        return direction


def _add(to, factor, other):
    """Add a multiple in place, in one pass."""
    get_blas_funcs("axpy", [to])(other.ravel(), to.ravel(), a=factor)
