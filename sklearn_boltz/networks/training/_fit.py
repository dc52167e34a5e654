"""Fit a fully visible Boltzmann machine: from rows to an objective, from there to a result."""

from functools import partial

import numpy as np

from sklearn_boltz.networks.training._existence import apart, warning_message
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.networks.training._objective import (
    PseudoLikelihood,
    StreamedPseudoLikelihood,
    Sums,
)
from sklearn_boltz.networks.training._solvers import (
    MAX_NEWTON_PARAMETERS,
    Method,
    Monitor,
    bslm,
    lbfgs,
    newton,
)

MAX_ITER = {
    "bslm": 10_000, "ga": 10_000, "lbfgs": 5_000, "newton": 100, "prox-newton": 1_000,
    "sampling": 300,
}  # fmt: skip


class Task:
    """A fit of the columns that vary; the others are known without one.

    Parameters
    ----------
    problem : PseudoLikelihood, StreamedPseudoLikelihood or Likelihood
        The objective of the columns that vary.
    varying : ndarray of int
        These columns.
    base : ndarray of shape (d,)
        Intercepts of independent columns, for the data and one more observation spread evenly
        over both values.
    seen : (ndarray, ndarray) or None
        The distinct rows, and how often each counts; None if they are not kept. The rows are of
        uint8 at 1 bit an entry, or where some are incomplete, signed codes with -1.

    Attributes
    ----------
    states : ndarray of int
        The rows of the coupling that vary.
    column_sizes : ndarray of int of shape (d,)
        How many rows of the coupling each column has.
    constant : float
        What the other columns add to the mean log pseudo-likelihood of a row.
    objective : str
        What is finally maximised.
    label : callable
        Name of a column in messages, or with a second argument that of one of its values.
    most_cells : float
        Cells of all completions of incomplete rows at most, if fewer than EM has by itself.
    """

    objective, label, most_cells = PseudoLikelihood.name, str, np.inf

    def __init__(self, problem, varying, base, seen):
        self.problem, self.varying, self.base, self.seen = problem, varying, base, seen
        self.states, self.column_sizes = varying, np.ones(len(base), dtype=int)
        others = np.delete(np.arange(len(base)), varying)
        log_p = -np.log1p(np.exp(-2 * np.abs(base[others])))
        self.constant = log_p.sum()
        if problem.observed is not None and len(others):
            codes, counts = seen
            self.constant = log_p @ (counts @ (codes[:, others] >= 0)) / counts.sum()

    @classmethod
    def of_rows(cls, spins, counts, alpha, seen=None, varying=None):
        """Build the task from distinct rows, (d, n_distinct), and how often each counts.

        If cells are missing, where it has 0, they are also given as `seen`.
        """
        if varying is None:
            varying = np.flatnonzero((spins == 1).any(axis=1) & (spins == -1).any(axis=1))
        known = counts.sum() if seen is None else np.abs(spins) @ counts
        base = np.arctanh(spins @ counts / (known + 1))
        if seen is None:
            seen = np.packbits(spins.T > 0, axis=1), counts
        kept = spins if len(varying) == len(spins) else spins[varying]
        return cls(PseudoLikelihood(kept, counts, alpha), varying, base, seen)

    @classmethod
    def of_incomplete_rows(cls, codes, counts, alpha, varying=None):
        """Build the task from distinct rows of shape (n_distinct, d); -1 is a missing cell."""
        spins = np.ascontiguousarray(np.where(codes < 0, 0.0, 2.0 * codes - 1).T)
        return cls.of_rows(spins, counts, alpha, (codes, counts), varying)

    @classmethod
    def of_batches(cls, batches, positive, sums, alpha):
        """Build the task from batches, which each evaluation of the objective reads again.

        `positive` tells, of columns, a number and a batch, where these columns are 1.
        """
        varying = np.flatnonzero(np.abs(sums.means) < sums.total)
        moments = sums.moments[np.ix_(varying, varying)]
        part = Sums(sums.total, sums.means[varying], moments)
        problem = StreamedPseudoLikelihood(batches, partial(positive, varying), part, alpha)
        return cls(problem, varying, np.arctanh(sums.means / (sums.total + 1)), None)

    @property
    def is_exact(self):
        """Whether there is a table of all states of the columns that vary."""
        return len(self.varying) <= MAX_COLUMNS

    def rows(self):
        """The rows of the columns that vary, -1 for a missing cell, and how often each counts."""
        codes, counts = self.seen
        return codes[:, self.varying], counts

    def problem_of(self, codes, weights):
        """The pseudo-likelihood of distinct rows of the same table, without a penalty."""
        return Task.of_incomplete_rows(codes, weights, 0.0, self.varying).problem

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        problem = self.problem.of_rows(rows, counts)
        return Likelihood(problem) if self.objective == Likelihood.name else problem

    def method(self, name, step_size=1.0, newton=newton):
        """The solver that runs; `newton` is a version of that method."""
        if name == "newton" and self.problem.n_parameters > MAX_NEWTON_PARAMETERS:
            name = "lbfgs"
        ga = partial(bslm, step_size=step_size)
        run = {"bslm": bslm, "ga": ga, "lbfgs": lbfgs, "newton": newton}[name]
        return Method(name, run, self.message, self.no_maximum)

    def message(self, point, direction, monitor):
        """Warning about how the fit ended, or None."""
        return warning_message(self.problem, point, direction, monitor, self.named)

    def no_maximum(self):
        """Why the objective of incomplete rows has no maximum, or None if it may have."""
        return apart(self.problem, self.named, self.objective)

    def named(self, j, *spin):
        """Name of a varying column in messages, or with -1 or 1 that of one of its values."""
        return self.label(self.varying[j], *spin)

    def initial(self, coupling, intercept):
        """θ, from parameters of all columns; None stands for those of independent columns."""
        states, q = self.states, len(self.states)
        inner = np.zeros((q, q)) if coupling is None else coupling[np.ix_(states, states)]
        return self.problem.pack(inner, (self.base if intercept is None else intercept)[states])

    def network(self, state):
        """Couplings, intercepts, terms, their weights and the potential of all columns.

        From θ, or a model of the columns that vary.
        """
        model = self.problem.model(state) if isinstance(state, np.ndarray) else state
        coupling, intercept = np.zeros((len(self.base),) * 2), self.base.copy()
        coupling[np.ix_(self.states, self.states)] = model.coupling
        intercept[self.states] = model.intercept
        terms = [tuple(self.varying[list(term)].tolist()) for term in model.terms]
        potential = model.potential if np.any(model.potential) else ()
        return coupling, intercept, terms, model.weights, potential


def label_of(table, coding):
    """The name of a column in messages, or with a second argument that of one of its values."""

    def label(j, value=None):
        if value is None:
            return table.columns[j].title
        place = (value + 1) // 2 if coding.is_binary else value
        return f"{table.columns[j].title} = {table.labels(j, coding.values(j))[place]}"

    return label


def maximise(task, initial, method, monitor):
    """Find the maximum of the objective; -> a warning about how the fit ended, or None.

    Parameters
    ----------
    task : Task
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    method : Method
    monitor : Monitor
    """
    problem, direction, monitor.total = task.problem, None, task.problem.total
    theta = task.initial(*initial)
    if len(task.varying):
        point, direction = method.run(problem, method.at(problem, theta), monitor)
    else:
        point = problem.at(theta)
        monitor(point)
        monitor.status = "converged"
    message = method.message(point, direction, monitor)
    if np.isfinite(point.value):
        monitor.keep(point.parameters.copy())
    return message


def near_maximum(task, initial, method, tol):
    """Couplings and intercepts of all columns, found to a tolerance, where a fit may begin."""
    monitor = Monitor(tol, MAX_ITER[method.name])
    maximise(task, initial, method, monitor)
    return task.network(monitor.last)[:2]
