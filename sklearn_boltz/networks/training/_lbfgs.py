"""Limited-memory BFGS for millions of parameters.

SciPy's passes over its history take longer there than the objective. Here an iteration reads it
twice.
"""

import numpy as np
from scipy.linalg import solve_triangular

# Steps that are remembered.
MEMORY = 8
# Part of the promised rise that a step must bring.
ENOUGH = 1e-4
# By how much a value may seem to fall by rounding, relative to itself.
ROUNDING = 1e-13
# The first step is this long in scaled coordinates, and the line search halves it at most so often.
FIRST_STEP, MAX_HALVINGS = 0.1, 30


def maximise_lbfgs(problem, point, monitor):
    """Climb to the maximum of a concave objective.

    Parameters
    ----------
    problem : object
        With ``at(theta, out)``, which gives a point with ``theta``, ``value`` and ``gradient``, the
        latter in the array `out` if this is not None; and with ``curvature()``, about the negative
        diagonal of the second derivative.
    point : object
        The initial point, whose arrays are used again.
    monitor : Monitor

    Returns
    -------
    point : object
    direction : None
        As solvers do that know of no step of Newton's method.
    """
    scale = np.sqrt(problem.curvature())
    history = History(len(scale))
    # Arrays are used again: new ones would cost page faults.
    slope, before, direction = np.empty((3, len(scale)))
    spare = np.empty_like(scale), np.empty_like(scale)
    np.divide(point.gradient, scale, out=slope)
    while not monitor(point):
        history.direction(slope, out=direction)
        rise = float(np.vdot(slope, direction))
        new = None
        if rise > 0:
            first = min(1.0, FIRST_STEP / np.sqrt(rise)) if history.is_empty else 1.0
            new, size = line_search(problem, point, direction, scale, rise, first, spare)
        if new is None:
            # No step that rises: the objective is flat to rounding.
            monitor.status = "converged"
            break
        spare, point = (point.theta, point.gradient), new
        slope, before = before, slope
        np.divide(point.gradient, scale, out=slope)
        history.add(direction, size, before, slope)
    return point, None


def line_search(problem, point, direction, scale, slope, size, out):
    """Shorten a step until the objective rises enough; -> the point, or None, and the size.

    Near the maximum the rise drowns in the rounding of the sum.
    """
    floor = point.value - ROUNDING * abs(point.value)
    theta, gradient = out
    for _ in range(MAX_HALVINGS):
        np.divide(direction, scale, out=theta)
        theta *= size
        theta += point.theta
        new = problem.at(theta, gradient)
        if new.value >= floor + ENOUGH * size * slope:
            return new, size
        # The top of the parabola through both values and the slope.
        fall = slope * size - (new.value - point.value)
        best = slope * size**2 / (2 * fall) if np.isfinite(fall) and fall > 0 else 0
        size = min(max(best, size / 10), size / 2)
    return None, 0.0


class History:
    """The last steps, and the changes of the slope over them.

    The inverse of the second derivative that they tell is applied in the compact form of Byrd,
    Nocedal and Schnabel (1994). All products of a new pair with the old ones are
    differences of products with the slope, which are known.
    """

    def __init__(self, n_parameters):
        self._steps, self._changes = np.empty((2, MEMORY, n_parameters))
        self._work = np.empty(n_parameters)
        self._order = []  # places, the oldest first
        self._step_change, self._changes_squared = np.zeros((2, MEMORY, MEMORY))
        self._step_slope, self._change_slope = np.zeros((2, MEMORY))

    @property
    def is_empty(self):
        """Whether there is no step yet."""
        return not self._order

    def add(self, direction, size, before, after):
        """Add a step of some size in a direction, with the slopes before and after it."""
        full = len(self._order) == MEMORY
        k = self._order[0] if full else len(self._order)
        used = slice(None) if full else slice(k + 1)
        steps, changes = self._steps[used], self._changes[used]
        np.multiply(direction, size, out=steps[k])
        np.subtract(before, after, out=changes[k])
        self._step_slope[k] = np.vdot(steps[k], before)
        self._change_slope[k] = np.vdot(changes[k], before)
        step_slope, change_slope = steps @ after, changes @ after
        self._step_change[used, k] = self._step_slope[used] - step_slope
        squares = self._change_slope[used] - change_slope
        self._changes_squared[used, k] = self._changes_squared[k, used] = squares
        self._step_slope[used], self._change_slope[used] = step_slope, change_slope
        self._order = [*(self._order[1:] if full else self._order), k]
        if not (self._step_change[k, k] > 0 and self._changes_squared[k, k] > 0):
            self._order = []  # nothing but rounding: begin anew

    def direction(self, slope, out):
        """The step to where the slope would be 0, by what is known of the second derivative."""
        if self.is_empty:
            np.copyto(out, slope)
            return
        order, last = self._order, self._order[-1]
        places = np.ix_(order, order)
        step_change, squares = self._step_change[places], self._changes_squared[places]
        gamma = step_change[-1, -1] / self._changes_squared[last, last]
        upper = np.triu(step_change)
        inner = solve_triangular(upper, self._step_slope[order])
        outer = np.diag(np.diag(upper)) @ inner + gamma * (squares @ inner)
        outer = solve_triangular(upper, outer - gamma * self._change_slope[order], trans="T")
        weights, used = np.zeros((2, len(order))), slice(len(order))
        weights[0, order], weights[1, order] = outer, -gamma * inner
        np.multiply(slope, gamma, out=out)
        out += np.matmul(weights[0], self._steps[used], out=self._work)
        out += np.matmul(weights[1], self._changes[used], out=self._work)
