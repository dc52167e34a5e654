"""What `Task` is, where some columns have more than two values."""

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.categorical._cells import (
    distinct_codes,
    independent_intercept,
    state_counts,
)
from sklearn_boltz.networks.categorical._contrasts import Contrasts, pair_curvature_of
from sklearn_boltz.networks.categorical._existence import (
    empty_cells,
    large_warning,
    warning_message,
)
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import (
    block_means,
    column_of_state,
    state_offsets,
    to_zero_sum,
)
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.training._existence import never_together, without_maximum
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._objective import PseudoLikelihood
from sklearn_boltz.networks.training._solvers import MAX_NEWTON_PARAMETERS, newton


class CategoricalTask(NamedTuple):
    """What is to be fitted: the states that occur, of the columns in which two do.

    Attributes
    ----------
    problem : CategoricalPseudoLikelihood
        The objective of these states.
    n_values : ndarray of int of shape (n_columns,)
        The number of states of all columns.
    fitted : ndarray of int
        The columns that are fitted.
    states : ndarray of int
        The states that are fitted, among those of all columns.
    base : ndarray of shape (Q,)
        Intercepts of independent columns, zero-sum, for the data and one more observation
        spread evenly over all states.
    constant : float
        What the other columns add to the mean log pseudo-likelihood of a row.
    zero_sum : bool
        Whether the estimate is to be zero-sum.
    """

    problem: CategoricalPseudoLikelihood
    n_values: np.ndarray
    fitted: np.ndarray
    states: np.ndarray
    base: np.ndarray
    constant: float
    zero_sum: bool

    @classmethod
    def of_rows(
        cls,
        codes,
        n_values,
        weights,
        *,
        coupling_penalty=0.0,
        intercept_penalty=0.0,
        zero_sum=True,
        ordered=None,
        dtype=np.float64,
    ):
        """Of rows of codes, which need not be distinct; see `CategoricalPseudoLikelihood`.

        With an `intercept_penalty` all states are fitted, also those that never occur.
        """
        n_values = np.asarray(n_values, dtype=np.int64)
        codes, weights = distinct_codes(np.asarray(codes), np.asarray(weights, dtype=np.float64))
        offsets, column = state_offsets(n_values), column_of_state(n_values)
        counts = state_counts(codes, offsets, weights)
        occurs = counts > 0 if intercept_penalty == 0 else np.ones(len(counts), dtype=bool)
        n_occur = np.bincount(column, occurs, len(n_values)).astype(np.int64)
        fitted = np.flatnonzero(n_occur > 1)
        states = np.flatnonzero(occurs & (n_occur > 1)[column])
        # The number of each state among those of its column that occur; the last is for -1.
        number = np.append(np.cumsum(occurs) - 1, -1)
        number[:-1] -= (np.cumsum(n_occur) - n_occur)[column]
        place = np.where(codes < 0, len(column), codes + offsets[:-1])[:, fitted]
        kept, kept_weights = distinct_codes(number[place], weights)
        problem = CategoricalPseudoLikelihood(
            kept,
            n_occur[fitted],
            kept_weights,
            coupling_penalty=coupling_penalty,
            intercept_penalty=intercept_penalty,
            zero_sum=zero_sum and bool((kept < 0).any()),
            ordered=None if ordered is None else ordered[fitted],
            dtype=dtype,
        )
        total = max(weights.sum(), 1e-300)
        alone = occurs & (n_occur == 1)[column]
        known = np.bincount(column, counts, len(n_values))[column]
        chances = (counts + 1 / n_values[column]) / (known + 1)
        constant = float(counts[alone] @ np.log(chances[alone])) / total
        base = independent_intercept(counts, n_values)
        return cls(problem, n_values, fitted, states, base, constant, zero_sum)

    def whole(self, coupling, intercept):
        """Parameters of all columns, of shapes (Q, Q) and (Q,), from those of the problem in θ."""
        theta = np.concatenate([intercept, coupling])
        if self.problem.zero_sum:
            self.problem.centered(theta, out=theta)
        inner, fields = self.problem.unpack(theta)
        if self.zero_sum:
            inner, fields = to_zero_sum(inner, fields, self.problem.n_values)
        whole = np.zeros((len(self.base),) * 2)
        whole[np.ix_(self.states, self.states)] = inner
        # States that do not occur stand to those that do as in independent columns.
        before = self.base[self.states]
        column = column_of_state(self.problem.n_values)
        level = block_means((before - fields)[None], self.problem.n_values)[0, column]
        intercepts = self.base.copy()
        intercepts[self.states] = fields + level
        if self.zero_sum:
            means = block_means(intercepts[None], self.n_values)[0]
            intercepts -= means[column_of_state(self.n_values)]
        return whole, intercepts

    def initial(self, coupling=None, intercept=None):
        """θ to begin with: None stands for independent columns."""
        q = len(self.states)
        inner = np.zeros((q, q)) if coupling is None else coupling[np.ix_(self.states, self.states)]
        fields = self.base[self.states] if intercept is None else intercept[self.states]
        if self.zero_sum:
            inner, fields = to_zero_sum(inner, fields, self.problem.n_values)
        return self.problem.pack(inner, fields)


class CodesTask:
    """What is to be fitted: the values that occur, of the columns in which two do.

    Parameters
    ----------
    inner : CategoricalTask
    seen : (ndarray, ndarray)
        As in `Task`.

    Attributes
    ----------
    problem, varying, base, seen
        As in `Task`.
    """

    objective = PseudoLikelihood.name

    def __init__(self, inner, seen):
        self.inner, self.seen = inner, seen
        self.problem, self.varying, self.base = inner.problem, inner.fitted, inner.base

    @classmethod
    def of_rows(cls, codes, counts, n_values, alpha, ordered=None):
        """Of distinct rows.

        Parameters
        ----------
        codes : ndarray of int of shape (n_distinct, d)
            -1 for a missing cell.
        counts : ndarray of shape (n_distinct,)
            How often each row counts.
        n_values : ndarray of int of shape (d,)
        alpha : float
            Strength of the penalty per row.
        ordered : ndarray of bool of shape (d,), default=None
            As in `CategoricalPseudoLikelihood`; if one is, the solver is "lbfgs".
        """
        ordered = ordered if ordered is not None and ordered.any() else None
        # For binary columns, the penalty is that of their m_jk.
        penalty = alpha * counts.sum() / 8
        inner = CategoricalTask.of_rows(
            codes, n_values, counts, coupling_penalty=penalty, ordered=ordered
        )
        return cls(inner, (codes, counts))

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
        rank = self.problem.n_values - 1
        n_parameters = rank.sum() + (rank.sum() ** 2 - (rank**2).sum()) // 2
        is_small = n_parameters <= MAX_NEWTON_PARAMETERS and self.inner.zero_sum
        if name == "newton" and (not is_small or self.problem.ordered is not None):
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


def named(task, label):
    """What messages call the columns and states that are fitted."""
    offsets, starts = state_offsets(task.problem.n_values), state_offsets(task.n_values)

    def name(i, a=None):
        column = task.fitted[i]
        return label(column, *([] if a is None else [task.states[offsets[i] + a] - starts[column]]))

    return name
