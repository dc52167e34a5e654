"""`Task` of columns of which some have more than two values."""

from functools import cached_property, partial

import numpy as np

from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.networks.categorical._cells import independent_intercept, state_counts
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._objective import BITS, CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import (
    block_means,
    column_of_state,
    state_offsets,
)
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.training._existence import warning_message
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._solvers import (
    MAX_NEWTON_PARAMETERS,
    Method,
    lbfgs,
    newton,
)
from sklearn_boltz.numerics._memory import check_memory


class CodesTask(Task):
    """A fit of the values that occur, for columns with at least two of them.

    Parameters
    ----------
    codes : ndarray of int of shape (n_distinct, d)
        Distinct rows; -1 for a missing cell.
    counts : ndarray of shape (n_distinct,)
        How often each counts.
    n_values : ndarray of int of shape (d,)
    alpha : float
        Strength of the penalty per row.
    trends : ndarray of bool of shape (d,), default=None
        As in `CategoricalPseudoLikelihood`; if one is, the solver is Newton's.

    Attributes
    ----------
    n_fitted : ndarray of int64
        The number of values that are fitted of each of these columns.
    state_weights : ndarray of float64
        How often each of these values occurs.
    base : ndarray of shape (Q,)
        Intercepts of independent columns, zero-sum, for the data and one more observation spread
        evenly over all values.
    """

    def __init__(self, codes, counts, n_values, alpha, trends=None):
        self.seen, self.column_sizes = (codes, counts), np.asarray(n_values, dtype=np.int64)
        codes, weights = informative(codes, counts)
        offsets, column = state_offsets(self.column_sizes), column_of_state(self.column_sizes)
        state_weights = state_counts(codes, offsets, weights)
        occurs = state_weights > 0
        n_occur = np.bincount(column, occurs, len(offsets) - 1).astype(np.int64)
        self.varying = np.flatnonzero(n_occur > 1)
        self.states = np.flatnonzero(occurs & (n_occur > 1)[column])
        # The number of each state among those of its column that occur; the last is for -1.
        self._number = np.append(np.cumsum(occurs) - 1, -1)
        self._number[:-1] -= (np.cumsum(n_occur) - n_occur)[column]
        self._kept = self.merged(codes, weights)
        self._settings = {
            "coupling_penalty": alpha * counts.sum() / BITS,
            "trends": None if trends is None else trends[self.varying],
        }
        self.n_fitted, self.state_weights = n_occur[self.varying], state_weights[self.states]
        total = max(weights.sum(), 1e-300)
        alone = occurs & (n_occur == 1)[column]
        known = np.bincount(column, state_weights, len(offsets) - 1)[column]
        chances = (state_weights + 1 / self.column_sizes[column]) / (known + 1)
        self.constant = float(state_weights[alone] @ np.log(chances[alone])) / total
        self.base = independent_intercept(state_weights, self.column_sizes)

    @cached_property
    def problem(self):
        """The pseudo-likelihood of the values that are fitted."""
        codes, weights = self._kept
        return CategoricalPseudoLikelihood(codes, self.n_fitted, weights, **self._settings)

    def _numbered(self, codes):
        """Codes of the table as numbers of the values that are fitted, in the columns that are."""
        found = np.empty((len(codes), len(self.varying)), dtype=np.int16)
        first = state_offsets(self.column_sizes)[self.varying]
        for k, own in enumerate(codes.T[self.varying]):
            found[:, k] = self._number[np.where(own < 0, -1, own + first[k])]
        return found

    def merged(self, codes, weights):
        """The distinct rows of the columns that vary, and sums over them, in their order."""
        return distinct_incomplete(*informative(self._numbered(codes), weights))

    def problem_of(self, codes, weights):
        """The pseudo-likelihood of distinct rows of the same table, without a penalty."""
        return CategoricalPseudoLikelihood(self._numbered(codes), self.n_fitted, weights)

    def rows(self):
        """The rows of the columns that vary, -1 for a missing cell, and how often each counts."""
        return self._kept

    def initial(self, coupling, intercept):
        """θ, zero-sum, from parameters of all columns; None for those of independent columns."""
        return self.problem.gauged(super().initial(coupling, intercept))

    def network(self, theta):
        """Parameters of all columns from θ, zero-sum."""
        return self.of_all_columns(*self.problem.unpack(theta))

    def of_all_columns(self, inner, fields):
        """Parameters of all columns and values, from those that are fitted."""
        n_values = self.n_fitted
        # States that do not occur stand to those that do as in independent columns.
        before, column = self.base[self.states], column_of_state(n_values)
        fields = fields + block_means((before - fields)[None], n_values)[0, column]
        coupling, intercept, *rest = super().network(PottsModel(inner, fields, n_values))
        means = block_means(intercept[None], self.column_sizes)[0]
        intercept -= means[column_of_state(self.column_sizes)]
        return (coupling + coupling.T) / 2, intercept, *rest  # symmetric to the bit

    def method(self, name, step_size=1.0, newton=newton):
        """The solver that runs; `newton` is a version of that method."""
        if name in ("bslm", "ga"):
            raise ValueError(
                f"solver={name!r} is for binary columns, and some have more values. Use "
                "solver='newton' or 'lbfgs'."
            )
        rank = self.problem.n_values - 1
        n_parameters = rank.sum() + (rank.sum() ** 2 - (rank**2).sum()) // 2
        if n_parameters > MAX_NEWTON_PARAMETERS:
            name = "lbfgs"
        if self.problem.trends.any():  # which are parameters in contrasts alone
            name, n = "newton", self.contrasts.n_parameters
            check_memory(
                16 * n**2,
                f"A network of trends with {n:,} parameters",
                "Leave out columns, or declare all as 'nominal'.",
            )
        run = {"newton": partial(by_contrasts, newton=newton), "lbfgs": lbfgs}[name]
        return Method(name, run, self.message, self.no_maximum)

    @cached_property
    def contrasts(self):
        """The problem in coordinates of full rank."""
        return Contrasts(self.problem)

    def message(self, point, direction, monitor):
        """Warning about how the fit ended, or None."""
        of_full_rank = len(point.theta) < self.problem.n_parameters
        problem = self.contrasts if of_full_rank else self.problem
        return warning_message(problem, point, direction, monitor, self.named)

    def named(self, i, a=None):
        """Name of a fitted column, or of one of its states, in messages."""
        column, value = self.varying[i], []
        if a is not None:
            first = state_offsets(self.column_sizes)[column]
            value = [self.states[self.problem.offsets[i] + a] - first]
        return self.label(column, *value)


def by_contrasts(problem, point, monitor, newton=newton):
    """Newton's method in coordinates of full rank."""
    contrasts = Contrasts(problem)
    z = contrasts.pack(*problem.unpack(point.theta))
    return newton(contrasts, contrasts.at(z), monitor)
