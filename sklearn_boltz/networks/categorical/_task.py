"""What `Task` is, where some columns have more than two values."""

from functools import cached_property, partial

import numpy as np

from sklearn_boltz.networks.categorical._block_penalty import next_weights
from sklearn_boltz.networks.categorical._cells import (
    distinct_codes,
    independent_intercept,
    state_counts,
)
from sklearn_boltz.networks.categorical._contrasts import Contrasts, pair_curvature_of
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import (
    block_means,
    column_of_state,
    state_offsets,
    to_zero_sum,
)
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.training._existence import apart, warning_message
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._solvers import MAX_NEWTON_PARAMETERS, newton


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
    problem, varying, seen
        As in `Task`.
    column_sizes : ndarray of int of shape (d,)
        The number of values of all columns.
    states : ndarray of int
        The values that are fitted, among those of all columns.
    base : ndarray of shape (Q,)
        Intercepts of independent columns, zero-sum, for the data and one more observation spread
        evenly over all values.
    """

    objective = "log pseudo-likelihood"

    def __init__(self, codes, counts, n_values, alpha, ordered=None):
        self.seen, self.column_sizes = (codes, counts), np.asarray(n_values, dtype=np.int64)
        ordered = ordered if ordered is not None and ordered.any() else None
        # For binary columns, the penalty is that of their m_jk.
        penalty = alpha * counts.sum() / 8
        codes, weights = distinct_codes(codes, counts)
        offsets, column = state_offsets(self.column_sizes), column_of_state(self.column_sizes)
        state_weights = state_counts(codes, offsets, weights)
        occurs = state_weights > 0
        n_occur = np.bincount(column, occurs, len(offsets) - 1).astype(np.int64)
        self.varying = np.flatnonzero(n_occur > 1)
        self.states = np.flatnonzero(occurs & (n_occur > 1)[column])
        # The number of each state among those of its column that occur; the last is for -1.
        number = np.append(np.cumsum(occurs) - 1, -1)
        number[:-1] -= (np.cumsum(n_occur) - n_occur)[column]
        place = np.where(codes < 0, len(column), codes + offsets[:-1])[:, self.varying]
        kept, kept_weights = distinct_codes(number[place], weights)
        self.problem = CategoricalPseudoLikelihood(
            kept,
            n_occur[self.varying],
            kept_weights,
            coupling_penalty=penalty,
            zero_sum=bool((kept < 0).any()),
            ordered=None if ordered is None else ordered[self.varying],
        )
        total = max(weights.sum(), 1e-300)
        alone = occurs & (n_occur == 1)[column]
        known = np.bincount(column, state_weights, len(offsets) - 1)[column]
        chances = (state_weights + 1 / self.column_sizes[column]) / (known + 1)
        self._constant = float(state_weights[alone] @ np.log(chances[alone])) / total
        self.base = independent_intercept(state_weights, self.column_sizes)

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row."""
        self.problem.coupling_penalty = min(alpha * self.problem.total / 8, 1e300)

    def weigh_pairs(self, coupling, intercept):
        """Give the penalty of each pair the weight that its coupling suggests."""
        theta = np.concatenate(self.initial(coupling, intercept)[::-1])
        self.problem.weigh(next_weights(self.problem, theta))

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
            pair_weights=self.problem.pair_weights,
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
        q = len(self.states)
        inner = np.zeros((q, q)) if coupling is None else coupling[np.ix_(self.states, self.states)]
        fields = self.base[self.states] if intercept is None else intercept[self.states]
        theta = self.problem.pack(*to_zero_sum(inner, fields, self.problem.n_values))
        return theta[self.problem.n_states :], theta[: self.problem.n_states]

    def whole(self, coupling, intercept):
        """Parameters of all columns, zero-sum, from those of what was fitted."""
        n_values = self.problem.n_values
        theta = np.concatenate([intercept, coupling])
        if self.problem.zero_sum:
            self.problem.centered(theta, out=theta)
        inner, fields = to_zero_sum(*self.problem.unpack(theta), n_values)
        whole = np.zeros((len(self.base),) * 2)
        whole[np.ix_(self.states, self.states)] = inner
        # States that do not occur stand to those that do as in independent columns.
        before, column = self.base[self.states], column_of_state(n_values)
        intercepts = self.base.copy()
        intercepts[self.states] = fields + block_means((before - fields)[None], n_values)[0, column]
        means = block_means(intercepts[None], self.column_sizes)[0]
        intercepts -= means[column_of_state(self.column_sizes)]
        return (whole + whole.T) / 2, intercepts  # symmetric to the bit

    def mean_of_constant_columns(self):
        """What the constant columns add to the mean log pseudo-likelihood of a row."""
        return self._constant

    def choose_solver(self, name, step_size=1.0):
        """The solver that runs, and its name."""
        if name in ("bslm", "ga"):
            raise ValueError(
                f"solver={name!r} is for binary columns, and some have more values. Use "
                "solver='newton' or 'lbfgs'."
            )
        rank = self.problem.n_values - 1
        n_parameters = rank.sum() + (rank.sum() ** 2 - (rank**2).sum()) // 2
        # By an order, the steps of L-BFGS need no second derivative.
        if n_parameters > MAX_NEWTON_PARAMETERS or self.problem.ordered is not None:
            name = "lbfgs"
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
        return apart(self.problem, self.named(label))

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        of_full_rank = len(point.theta) < self.problem.n_parameters
        problem = self.contrasts if of_full_rank else self.problem
        return warning_message(problem, point, direction, monitor, self.named(label))

    def named(self, label):
        """What messages call the columns and states that are fitted."""
        offsets, starts = state_offsets(self.problem.n_values), state_offsets(self.column_sizes)

        def name(i, a=None):
            column = self.varying[i]
            states = [] if a is None else [self.states[offsets[i] + a] - starts[column]]
            return label(column, *states)

        return name


def by_contrasts(problem, point, monitor, newton=newton):
    """Newton's method in coordinates of full rank."""
    contrasts = Contrasts(problem)
    z = contrasts.pack(*to_zero_sum(*problem.unpack(point.theta), problem.n_values))
    return newton(contrasts, contrasts.at(z), monitor)


def by_lbfgs(problem, point, monitor):
    """Limited-memory BFGS."""
    return maximise_lbfgs(problem, point, monitor), None
