"""Fit a fully visible Boltzmann machine: from rows to an objective, from there to a result."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.training._existence import apart, warning_message
from sklearn_boltz.networks.training._objective import (
    PseudoLikelihood,
    penalty_of_sum,
)
from sklearn_boltz.networks.training._solvers import MAX_NEWTON_PARAMETERS, bslm, lbfgs, newton
from sklearn_boltz.networks.training._streamed import StreamedPseudoLikelihood, Sums

MAX_ITER = {
    "bslm": 10_000, "ga": 10_000, "lbfgs": 5_000, "newton": 100, "prox-newton": 1_000,
    "sampling": 300,
}  # fmt: skip


class Task(NamedTuple):
    """What is to be fitted: the columns that vary. The others are known without a fit.

    Attributes
    ----------
    problem : PseudoLikelihood or StreamedPseudoLikelihood
        The objective of the columns that vary.
    varying : ndarray of int
        These columns.
    base : ndarray of shape (d,)
        Intercepts of independent columns, for the data and one more observation spread evenly
        over both values.
    seen : (ndarray, ndarray) or None
        The distinct rows, and how often each counts; None if they are not kept. The rows are of
        uint8 at 1 bit an entry, or where some are incomplete, signed codes with -1.
    """

    problem: PseudoLikelihood | StreamedPseudoLikelihood
    varying: np.ndarray
    base: np.ndarray
    seen: tuple | None

    objective = PseudoLikelihood.name

    @classmethod
    def of_rows(cls, spins, counts, alpha):
        """Of distinct rows, of shape (d, n_distinct), and how often each counts."""
        varying = np.flatnonzero(np.ptp(spins, axis=1))
        sums = spins @ counts
        seen = np.packbits(spins.T > 0, axis=1), counts
        kept = spins if len(varying) == len(spins) else spins[varying]
        problem = PseudoLikelihood(kept, counts, alpha)
        return cls(problem, varying, np.arctanh(sums / (counts.sum() + 1)), seen)

    @classmethod
    def of_incomplete_rows(cls, codes, counts, alpha, varying=None):
        """Of distinct rows of shape (n_distinct, d) where -1 is a missing cell."""
        spins = np.ascontiguousarray(np.where(codes < 0, 0.0, 2.0 * codes - 1).T)
        if varying is None:
            varying = np.flatnonzero((spins == 1).any(axis=1) & (spins == -1).any(axis=1))
        base = np.arctanh(spins @ counts / (np.abs(spins) @ counts + 1))
        problem = PseudoLikelihood(np.ascontiguousarray(spins[varying]), counts, alpha)
        return cls(problem, varying, base, (codes, counts))

    @classmethod
    def of_batches(cls, batches, positive, sums, alpha):
        """Of batches that are read again for each evaluation of the objective.

        `positive` tells, of columns, a number and a batch, where these columns are 1.
        """
        varying = np.flatnonzero(np.abs(sums.means) < sums.total)
        moments = sums.moments[np.ix_(varying, varying)]
        part = Sums(sums.total, sums.means[varying], moments, None, None)
        problem = StreamedPseudoLikelihood(batches, partial(positive, varying), part, alpha)
        return cls(problem, varying, np.arctanh(sums.means / (sums.total + 1)), None)

    def rows(self):
        """The rows of the columns that vary, -1 for a missing cell, and how often each counts."""
        codes, counts = self.seen
        return codes[:, self.varying], counts

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        spins = np.multiply(rows.T, 2.0, order="C") - 1
        return PseudoLikelihood(spins, counts, self.problem.penalty / counts.sum())

    def n_values(self):
        """Number of values of the columns that vary."""
        return np.full(len(self.varying), 2)

    @property
    def column_sizes(self):
        """How many rows of the coupling each of all columns has."""
        return np.ones(len(self.base), dtype=int)

    def choose_solver(self, name, step_size=1.0):
        """The solver that runs, and its name."""
        if name == "newton" and self.problem.n_parameters > MAX_NEWTON_PARAMETERS:
            name = "lbfgs"
        gradient_ascent = partial(bslm, step_size=step_size)
        return name, {
            "bslm": bslm, "ga": gradient_ascent, "lbfgs": lbfgs, "newton": newton
        }[name]  # fmt: skip

    def with_newton(self, newton):
        """A solver by this version of Newton's method."""
        return newton

    def at(self, problem, coupling, intercept):
        """The point of an objective at couplings and intercepts as its points have them."""
        return problem.at(coupling, intercept)

    def parameters(self, problem, point):
        """Couplings and intercepts of a point of an objective."""
        return point.coupling, point.intercept

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        return warning_message(self.problem, point, direction, monitor, self.named(label))

    def no_maximum(self, label):
        """Why the pseudo-likelihood of incomplete rows has no maximum, or None if it may have."""
        return apart(self.problem, self.named(label), self.objective)

    def named(self, label):
        """What messages call the columns that vary, and their values."""
        return lambda j, *spin: label(self.varying[j], *spin)

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row."""
        self.problem.penalty = penalty_of_sum(alpha, self.problem.total)

    def pair_curvature(self, coupling, intercept):
        """Each coupling, the information on it by itself, and the variance of its score.

        At parameters of all columns; each of shape (n_pairs,).
        """
        problem = self.problem
        point = problem.at(*self.initial(coupling, intercept))
        n_known = problem.total
        if problem.observed is not None:
            n_known = problem.observed @ problem.weights
        curvature = problem.pair_curvature(point, problem.means / n_known)
        return np.array([point.coupling, *curvature])[:, *problem.upper]

    def model(self, coupling, intercept):
        """The distribution of the columns that vary."""
        return SpinModel(coupling, intercept)

    def whole(self, coupling, intercept):
        """Parameters of all columns, from those of the columns that vary."""
        all_couplings, all_intercepts = np.zeros((len(self.base),) * 2), self.base.copy()
        all_couplings[np.ix_(self.varying, self.varying)] = coupling
        all_intercepts[self.varying] = intercept
        return all_couplings, all_intercepts

    def initial(self, coupling, intercept):
        """Where to begin: parameters of all columns, None for those of independent columns."""
        d = len(self.varying)
        block = np.ix_(self.varying, self.varying)
        return (
            np.zeros((d, d)) if coupling is None else coupling[block],
            (self.base if intercept is None else intercept)[self.varying],
        )

    def mean_of_constant_columns(self):
        """What the constant columns add to the mean log pseudo-likelihood of a row."""
        constant = np.delete(np.arange(len(self.base)), self.varying)
        log_p = -np.log1p(np.exp(-2 * np.abs(self.base[constant])))
        if self.problem.observed is None or not len(constant):
            return log_p.sum()
        codes, counts = self.seen
        return log_p @ (counts @ (codes[:, constant] >= 0)) / counts.sum()


class Result(NamedTuple):
    """What a fit found.

    Attributes
    ----------
    coupling, intercept : ndarray
        Of all columns.
    objective, seconds : ndarray of shape (n_iter,)
        The mean per row, less the penalty, after each iteration; and how long that took.
    n_iter : int
    status : {"converged", "max_iter", "asked", "diverged", "interrupted"}
    message : str or None
        What a user should know about the end.
    history : dict of ndarray
        What else is known of each iteration.
    terms : sequence of tuples of int, and weights : sequence of float
        Terms of three columns and more.
    potential : sequence of float
        V(K) of the number of ones, if the model has one.
    """

    coupling: np.ndarray
    intercept: np.ndarray
    objective: np.ndarray
    seconds: np.ndarray
    n_iter: int
    status: str
    message: str | None
    history: dict = {}
    terms: Sequence = ()
    weights: Sequence = ()
    potential: Sequence = ()

    @property
    def network(self):
        """Couplings, intercepts, terms and their weights, and the potential."""
        return self.coupling, self.intercept, self.terms, self.weights, self.potential


def result_of(task, recorder, values, status, message):
    """The result of a fit that was recorded.

    Parameters
    ----------
    task : Task
    recorder : Recorder
    values : sequence of float
        The objective per row of the columns that vary, after each iteration.
    status : str
    message : str or None

    Returns
    -------
    result : Result
        With what was last kept.
    """
    n_iter = recorder.n_kept
    return Result(
        *task.whole(recorder.last.coupling, recorder.last.intercept),
        objective=np.array(values[:n_iter]) + task.mean_of_constant_columns(),
        seconds=np.array(recorder.seconds[:n_iter]),
        n_iter=n_iter,
        status=status,
        message=message,
        history={name: np.array(found[:n_iter]) for name, found in recorder.figures.items()},
    )


def maximise(task, initial, solve, monitor, label):
    """Find the maximum of the objective.

    Parameters
    ----------
    task : Task
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    solve : callable
        One of `_solvers`.
    monitor : Monitor
    label : callable
        What messages call a column, or with -1 or 1 one of its values.

    Returns
    -------
    result : Result
        After Ctrl-C, that of the last complete iteration, if there was one.
    """
    problem, direction = task.problem, None
    point = task.at(problem, *task.initial(*initial))
    try:
        if len(task.varying):
            point, direction = solve(problem, point, monitor)
        else:
            monitor(point)
            monitor.status = "converged"
        message = task.message(point, direction, monitor, label)
    except KeyboardInterrupt:
        # Ctrl-C may come while an iteration is being recorded.
        if not monitor.n_kept:
            raise
        point, message, monitor.status = None, None, "interrupted"
    if point is not None and np.isfinite(point.value):
        monitor.keep(monitor.state(point))
    means = np.array(monitor.values[1:]) / problem.total
    return result_of(task, monitor, means, monitor.status, message)
