"""What `Task` is, where some columns have more than two values."""

from functools import cached_property, partial

import numpy as np

from sklearn_boltz.networks.categorical._contrasts import Contrasts, pair_curvature_of
from sklearn_boltz.networks.categorical._existence import (
    empty_cells,
    large_warning,
    warning_message,
)
from sklearn_boltz.networks.categorical._fit import (
    CategoricalTask,
    choose_categorical_solver,
    named,
)
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.training._existence import never_together, without_maximum
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._solvers import newton


class CodesTask:
    """What is to be fitted: the values that occur, of the columns in which two do.

    Parameters
    ----------
    codes : ndarray of int of shape (n_distinct, d)
        Distinct rows; -1 for a missing cell.
    counts : ndarray of shape (n_distinct,)
        How often each counts.
    n_values : ndarray of int of shape (d,)
    alpha : float
        Strength of the penalty per row.
    ordered : ndarray of bool of shape (d,), default=None
        As in `CategoricalPseudoLikelihood`; if one is, the solver is "lbfgs".

    Attributes
    ----------
    problem, varying, base, seen
        As in `Task`.
    inner : CategoricalTask
    """

    objective = "log pseudo-likelihood"

    def __init__(self, codes, counts, n_values, alpha, ordered=None):
        self.seen = codes, counts
        ordered = ordered if ordered is not None and ordered.any() else None
        # For binary columns, the penalty is that of their m_jk.
        penalty = alpha * counts.sum() / 8
        self.inner = CategoricalTask.of_rows(
            codes, n_values, counts, coupling_penalty=penalty, ordered=ordered
        )
        self.problem, self.varying = self.inner.problem, self.inner.fitted
        self.base = self.inner.base

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row."""
        self.problem.coupling_penalty = min(alpha * self.problem.total / 8, 1e300)

    def pair_curvature(self, coupling, intercept):
        """As of `Task`, where K/2 takes the place of m: of two binary columns it is the same."""
        theta = np.concatenate(self.initial(coupling, intercept)[::-1])
        couplings, curvature = pair_curvature_of(self.problem, theta)
        return np.array([couplings / 2, *(4 * curvature)])

    def rows(self):
        """The rows of the columns that vary, -1 for a missing cell, and how often each counts."""
        return self.problem.cells.codes, self.problem.cells.weights

    def n_values(self):
        """Number of values of the columns that vary."""
        return self.problem.n_values

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        return CategoricalPseudoLikelihood(
            rows.astype(np.int16),
            self.problem.n_values,
            counts,
            coupling_penalty=self.problem.coupling_penalty,
            ordered=self.problem.ordered,
        )

    def at(self, problem, coupling, intercept):
        """The point of an objective at couplings and intercepts as its points have them."""
        return problem.at(np.concatenate([intercept, coupling]))

    def parameters(self, problem, point):
        """Couplings and intercepts of a point of an objective, zero-sum."""
        theta = np.concatenate([point.intercept, point.coupling])
        if problem.zero_sum:
            theta = problem.centered(theta)
        else:
            theta = problem.pack(*to_zero_sum(*problem.unpack(theta), problem.n_values))
        return theta[problem.n_states :], theta[: problem.n_states]

    def model(self, coupling, intercept):
        """The distribution of the columns that vary."""
        theta = np.concatenate([intercept, coupling])
        return PottsModel(*self.problem.unpack(theta), self.problem.n_values)

    def initial(self, coupling, intercept):
        """Where to begin: parameters of all columns, None for those of independent columns."""
        theta = self.inner.initial(coupling, intercept)
        return theta[self.problem.n_states :], theta[: self.problem.n_states]

    def whole(self, coupling, intercept):
        """Parameters of all columns, zero-sum, from those of what was fitted."""
        coupling, intercept = self.inner.whole(coupling, intercept)
        return (coupling + coupling.T) / 2, intercept  # symmetric to the bit

    def mean_of_constant_columns(self):
        """What the constant columns add to the mean log pseudo-likelihood of a row."""
        return self.inner.constant

    def choose_solver(self, name, step_size=1.0):
        """The solver that runs, and its name."""
        if name in ("bslm", "ga"):
            raise ValueError(
                f"solver={name!r} is for binary columns, and some have more values. Use "
                "solver='newton' or 'lbfgs'."
            )
        name, _ = choose_categorical_solver(name, self.inner)
        if self.problem.ordered is not None:
            name = "lbfgs"  # whose steps need no second derivative
        return name, {"newton": by_contrasts, "lbfgs": by_lbfgs}[name]

    def with_newton(self, newton):
        """A solver by this version of Newton's method."""
        return partial(by_contrasts, newton=newton)

    @cached_property
    def contrasts(self):
        """The problem in coordinates of full rank."""
        return Contrasts(self.problem)

    def no_maximum(self, label):
        """Why the pseudo-likelihood of incomplete rows has no maximum, or None if it may have."""
        empty = [] if self.problem.coupling_penalty > 0 else empty_cells(self.problem.cells)
        if not empty:
            return None
        return without_maximum(never_together(empty, named(self.inner, label)))

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        label = named(self.inner, label)
        if not hasattr(point, "z"):
            return large_warning(self.problem, monitor, label)
        return warning_message(self.contrasts, point, direction, monitor, label)


def by_contrasts(problem, point, monitor, newton=newton):
    """Newton's method in coordinates of full rank."""
    contrasts = Contrasts(problem)
    z = contrasts.pack(*to_zero_sum(*problem.unpack(point.theta), problem.n_values))
    return newton(contrasts, contrasts.at(z), monitor)


def by_lbfgs(problem, point, monitor):
    """Limited-memory BFGS."""
    return maximise_lbfgs(problem, point, monitor), None
