"""Ways to the maximum of the log pseudo-likelihood.

A solver is a function of the problem, the initial point and a monitor, which it
calls with that point and with the one after each iteration, and which answers whether to
stop. It returns the point where it stopped, and the last step of Newton's method if it knows
one.
"""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.blas import get_blas_funcs

from sklearn_boltz.networks.training._bslm import bslm_sweep
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._lbfgs import Lbfgs
from sklearn_boltz.numerics._threads import limit_blas

# With more parameters than this, the matrix of Newton's method costs more than it saves.
MAX_NEWTON_PARAMETERS = 3000
# Nats below the maximum where Newton's method renews its matrix for the last time.
NEAR = 1e-3
# Matrices of Newton's method in single precision, before it goes on in double.
FEW = 4
# By how much a step of Newton's method moves the field of a row at most. Where a field is beyond
# ±20 the objective has no curvature left in double precision, and no step leads back.
MAX_MOVE = 10.0


class Method(NamedTuple):
    """How a task is solved.

    Attributes
    ----------
    name : str
    run : callable
        One of the functions below, or like them.
    message : callable
        ``message(point, direction, monitor)``: a warning about how the fit ended, or None.
    no_maximum : callable
        ``no_maximum()``: why the objective of incomplete rows has no maximum. Both are None where
        there is nothing to tell.
    at : callable
        ``at(problem, theta)``: the point where it begins.
    """

    name: str
    run: Callable
    message: Callable
    no_maximum: Callable
    at: Callable = lambda problem, theta: problem.at(theta)


class Monitor:
    """The iterations so far, which a user may end, or interrupt; and when to stop.

    Parameters
    ----------
    tol : float
        Stop when an iteration raises the objective by less.
    max_iter : int
        Stop after this many iterations.
    end_iteration : callable
        Called with the last state after each iteration; returns whether to stop.
    verbose : int, default=0
        Show a bar if 1, and print a line for each iteration if greater.

    Attributes
    ----------
    first : float or None
        The objective where a solver begins.
    values, seconds : list of float
        The objective after each iteration, and how long it took.
    rise : float
        By how much the last iteration of a solver raised the objective.
    total : float
        Number of rows, where the objective is a sum over these.
    figures : dict of list
        What else is known of each iteration, by name.
    last : object or None
        The last state that is good, such as θ; it remains after Ctrl-C.
    n_kept : int
        The number of its iteration.
    asked : bool
        Whether the user has ended the fit.
    status : {"initial", "converged", "max_iter", "asked", "diverged", "interrupted"}
        How the fit has ended.
    """

    def __init__(self, tol, max_iter, end_iteration=lambda state: False, verbose=0):
        self.tol, self.max_iter, self.status = tol, max_iter, "initial"
        self.end_iteration, self.verbose = end_iteration, verbose
        # A fit that ends by `tol` seldom comes near `max_iter`: only a fixed number is a total.
        self.bar = progress_bar("iterations", None, verbose == 1)
        self.first, self.values, self.seconds, self.figures = None, [], [], {}
        self.last, self.n_kept, self.asked, self.total = None, 0, False, 1.0
        self.rise = math.inf
        self._time = time.perf_counter()

    def add(self, value, state, line, **figures):
        """Record the end of an iteration, and print its line."""
        self.seconds.append(time.perf_counter() - self._time)
        self.values.append(value)
        for name, figure in figures.items():
            self.figures.setdefault(name, []).append(figure)
        self.keep(state)
        self.bar.update()
        if self.verbose > 1:
            print(line)

    def keep(self, state):
        """Take a state for that of the last iteration, unless it is None."""
        if state is not None:
            self.last, self.n_kept = state, len(self.seconds)

    def stop(self):
        """Whether to end after this iteration; the next one begins now."""
        self.asked = self.end_iteration(self.last)
        self._time = time.perf_counter()
        return self.asked

    def run(self, steps):
        """Take ``steps(monitor)``, which return a warning about how the fit ended, or None.

        After Ctrl-C, what was last kept is that of the last complete iteration, if there was one.
        """
        try:
            with self.bar:
                return steps(self)
        except KeyboardInterrupt:
            # It may come while an iteration is being recorded.
            if not self.n_kept:
                raise
            self.status = "interrupted"
            return None

    def __call__(self, point):
        """Record a point; -> whether to stop, of which `status` tells the reason."""
        value = point.value
        # A copy, as a solver may go on with the same arrays.
        state = point.parameters.copy() if math.isfinite(value) else None
        asked = False
        if self.first is None:
            self.first, self._time = value, time.perf_counter()
            self.keep(state)
        else:
            self.rise = value - (self.values or [self.first])[-1]
            n_iter = len(self.values) + 1
            self.add(value, state, f"iteration {n_iter}: {value:.8f}, rise {self.rise:.3g}")
            asked = self.stop()
        # Below, the sum itself is not known any better.
        rounding = 1e-12 * abs(value)
        if not math.isfinite(value) or self.rise < -max(self.tol, rounding):
            self.status = "diverged"
        elif self.rise < self.tol:
            self.status = "converged"
        elif asked:
            self.status = "asked"
        elif len(self.values) >= self.max_iter:
            self.status = "max_iter"
        else:
            return False
        return True


def bslm(problem, point, monitor, *, step_size=1.0):
    """Block successive lower-bound maximisation, eq. 2.4 and 2.7; or gradient ascent.

    With a `step_size` other than 1 these are the steps of gradient ascent, eq. 4.1 and 4.2.
    """
    coupling, intercept = problem.unpack(point.theta)
    # As float32 the signs take half the memory, whose bandwidth is the limit.
    signs = np.vstack([np.ones_like(problem.weights), problem.spins]).astype(np.float32)
    weighted, steps = problem.spins * problem.weights, np.empty((2, len(intercept)))
    while not monitor(point):
        bslm_sweep(
            signs, point.tanh, problem.weights, weighted, problem.moments, problem.means, coupling,
            intercept, steps, problem.total, step_size, problem.penalty,
        )  # fmt: skip
        point = problem.at(problem.pack(coupling, intercept))
    return point, None


def newton(problem, point, monitor):
    """Newton's method with a line search.

    The matrix is the costly part. It is kept while the steps with it gain ten times less
    from one to the next. For the last digits it is renewed once the maximum is near, or, if
    the steps gain a hundred times less each time, one more of them does as well.
    """
    solve, gain, before, near, direction = None, math.inf, math.inf, False, None
    n_renewals = 0
    while not monitor(point):
        gradient = problem.gradient(point)
        if solve is not None:
            direction = solve(gradient)
            before, gain = gain, gradient @ direction / 2
        close = gain < NEAR and not near and gain > before / 100
        if solve is None or gain > before / 10 or close:
            # Newton's method corrects what single precision leaves wrong, at half the cost. Not
            # on a long way to infinity, where the matrix becomes singular.
            dtype = np.float32 if n_renewals < FEW else np.float64
            solve = information_solver(problem, point, dtype)
            n_renewals += 1
            near = gain < NEAR
            direction = solve(gradient)
            gain = gradient @ direction / 2
        point = line_search(problem, point, direction, 2 * gain)
    if solve is not None and not near and monitor.status == "converged":
        gradient = problem.gradient(point)
        direction = solve(gradient)
        point = line_search(problem, point, direction, gradient @ direction)
    return point, direction


def information_solver(problem, point, dtype=np.float64):
    """The function g -> H⁻¹ g, with H the information.

    See `solver_of`.
    """
    return solver_of(problem.information(point, dtype))


def solver_of(information):
    """The function g -> H⁻¹ g.

    Where H is singular to rounding, as it becomes on the way to infinity, its diagonal is
    raised by as little as makes it regular, in place.
    """
    diagonal = np.einsum("ii->i", information)
    ridge = 1e-14 * diagonal.max(initial=1e-300)
    while True:
        try:
            factor, _ = cho_factor(information, lower=True, check_finite=False)
        except LinAlgError:
            diagonal += ridge
            ridge *= 10
        else:
            return partial(_solved, factor)


def _solved(lower, g):
    """H⁻¹ g from the lower Cholesky factor of H, in its precision.

    For a vector in double precision, `cho_solve` copies a factor in single precision each time.
    """
    if not len(g):
        return g
    triangular = get_blas_funcs("trsv", [lower])
    return triangular(lower, triangular(lower, g, lower=1), lower=1, trans=1).astype(g.dtype)


def line_search(problem, point, direction, slope):
    """Halve the step until the objective rises by a part of what the slope promises.

    It begins with a step that moves no field by more than `MAX_MOVE`: the sum over all
    variables may rise although one of them overshoots its maximum by far. The arrays of the old
    point are the problem's again.
    """
    moved = problem.moved(direction)
    # Near the maximum the rise drowns in the rounding of the sum.
    floor = point.value - 1e-13 * abs(point.value)
    size = 1.0
    if problem.bound(direction) > MAX_MOVE:
        size = MAX_MOVE / max(problem.move(direction), MAX_MOVE)
    least = 1e-9 * size
    while size > least:
        new = problem.after(point, direction, size, moved)
        if new.value >= floor + 1e-4 * size * slope:
            problem.recycle(point, moved)
            return new
        problem.recycle(new)
        size /= 2
    problem.recycle(moved)
    return point


def lbfgs(problem, point, monitor):
    """Limited-memory BFGS, of a problem with ``curvature()``.

    That is about the negative diagonal of the second derivative.
    """
    if monitor(point):
        return point, None
    scale = 1 / problem.curvature()
    points = Lbfgs().points(problem, point, lambda slope: slope * scale)
    for point in points:
        if monitor(point):
            break
    else:
        monitor.status = "converged"
    return point, None


def blas_threads(n_features, least):
    """A context in which BLAS has one thread if there are less than `least` parameters."""
    n_parameters = n_features * (n_features + 1) // 2
    return limit_blas(1) if n_parameters < least else nullcontext()
