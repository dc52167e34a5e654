"""What is to be fitted, with a penalty that selects pairs of columns."""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz.fully_visible.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.fully_visible.model._gauge import column_of_state
from sklearn_boltz.fully_visible.sparse._network import network_of
from sklearn_boltz.fully_visible.sparse._path import (
    Path,
    alpha_grid,
    ebic,
    held_out,
    neighbours,
    select,
)
from sklearn_boltz.fully_visible.sparse._penalty import Penalty
from sklearn_boltz.fully_visible.sparse._solver import Solver
from sklearn_boltz.fully_visible.training._objective import PseudoLikelihood, distinct_rows
from sklearn_boltz.fully_visible.training._solvers import MAX_ITER


class Point(NamedTuple):
    """Parameters, and the objective: the log pseudo-likelihood less the penalty, summed over rows."""

    coupling: np.ndarray
    intercept: np.ndarray
    value: float


class SparseTask:
    """A task with a penalty that selects, by the sparse solver.

    All that is not here is the task's own.

    Parameters
    ----------
    task : Task or CodesTask
        Without a penalty of its own.
    penalty : {"l2", "l1", "elasticnet", "group"}
    alpha : float or ndarray of shape (d,)
        By node, one for each column that varies.
    l1_ratio : float
    edges : ndarray of bool of shape (d, d) or None
        The pairs of all columns that may be connected.
    nodewise : bool
    rule : {"and", "or"}
    standardize : bool
    tol : float
    """

    def __init__(self, task, *, penalty, alpha, l1_ratio, edges, nodewise, rule, standardize, tol):
        self.inner_task, self.penalty, self.alpha, self.tol = task, penalty, alpha, tol
        self.l1_ratio = {"l2": 0.0, "elasticnet": l1_ratio}.get(penalty, 1.0)
        self.nodewise, self.rule = nodewise, rule
        self.standardize = standardize and penalty != "l2"
        self.edges = None if edges is None else edges[np.ix_(task.varying, task.varying)]
        self.start = None

    def __getattr__(self, name):
        if name == "inner_task":  # not yet there, as in unpickling
            raise AttributeError(name)
        return getattr(self.inner_task, name)

    def choose_solver(self, name, step_size=1.0):
        """The solver that runs, and its name."""
        return "prox-newton", self.solve

    def weights(self, network):
        """The weight of the penalty of each group: 0 of intercepts, infinite of other than `edges`."""
        layout, size = network.layout, network.n_values - 1
        spread = network.spread if self.standardize else np.ones(len(size))
        # By node the features are standardised, as in glmnet; jointly, the scores of the pairs.
        matrix = spread * np.ones((len(size), 1)) if self.nodewise else np.outer(spread, spread)
        if network.is_categorical:
            # The norm of the block of two binary columns is twice their m_jk.
            matrix = matrix / 2 * (np.sqrt(np.outer(size, size)) if self.penalty == "group" else 1)
        if self.edges is not None:
            matrix = np.where(self.edges, matrix, np.inf)
        np.fill_diagonal(matrix, 0)
        weights = np.empty(layout.n_groups)
        weights[layout.pairs] = matrix
        return weights

    def solve(self, problem, point, monitor):
        """A solver as those of `_solvers`; it begins at `start` if that is given."""
        network = network_of(problem, self.nodewise)
        layout = network.layout
        alpha = np.broadcast_to(self.alpha, layout.n_parts)[layout.parts]
        penalty = Penalty.of(layout.groups, self.weights(network), alpha, self.l1_ratio)
        theta = network.theta(point) if self.start is None else self.start

        def found(state):
            value = -network.total * (state.losses.sum() + penalty.costs(state.theta).sum())
            return Point(*network.as_point(*self.combined(network, state.theta)), float(value))

        def report(state):
            return monitor(found(state)) and monitor.status != "converged"

        theta = np.where((layout.parts >= 0)[layout.groups], theta, 0.0)
        state = network.at(penalty.allowed(theta))
        monitor(found(state))
        state, converged = Solver(network).solve(penalty, state, self.tol, monitor.max_iter, report)
        if converged:
            monitor.status = "converged"
        return found(state), None

    def combined(self, network, theta):
        """Coupling and intercept of θ; by node, both couplings of a pair are made one."""
        coupling, intercept = network.matrices(theta)
        if not self.nodewise:
            return coupling, intercept
        present, column = neighbours(network, theta), network.layout.column
        kept = present & present.T if self.rule == "and" else present | present.T
        coupling = np.where(kept[np.ix_(column, column)], (coupling + coupling.T) / 2, 0.0)
        return coupling, intercept

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        if monitor.status != "max_iter":
            return None
        return (
            f"The fit ended at max_iter={monitor.max_iter} iterations, before it met tol={self.tol:g}"
            ". Raise max_iter, or use a larger alpha."
        )

    def no_maximum(self, label):
        """With a penalty there is one."""


def choose_alpha(task, how, gamma, n_alphas, cv, rows):
    """Choose the strength of the penalty on a path, and begin the fit there.

    Parameters
    ----------
    task : SparseTask
        Gets its `alpha` and `start`.
    how : {"ebic", "cv"}
    gamma : float
        Of the EBIC.
    n_alphas : int
    cv : int, splitter or iterable
    rows : (ndarray, ndarray)
        Codes of all columns, one row after another, and their weights.

    Returns
    -------
    found : dict
        The attributes `alpha_`, `alphas_` and `path_`.
    """
    network = network_of(task.problem, task.nodewise)
    path = task_path(task, network)
    alphas = alpha_grid(path.first_alphas(), n_alphas, network)
    if how == "ebic":
        selected = select(path, alphas, lambda _, state: ebic(network, state, gamma))
    else:
        pairs = [
            (task_path(task, network_of(problem_of(task, *train), task.nodewise)),
             network_of(problem_of(task, *test), task.nodewise))
            for train, test in folds(*rows, cv)
        ]  # fmt: skip
        total = sum(other.total for _, other in pairs)

        def criterion(alpha, _):
            return sum(held_out(fold, alpha, other) for fold, other in pairs) / total

        selected = select(path, alphas, criterion)
    task.start = selected.theta
    chosen = selected.alphas[selected.best, np.arange(len(selected.best))]
    task.alpha = chosen if task.nodewise else float(chosen[0])
    ...


def task_path(task, network):
    """The path of a network, begun at independent columns."""
    base = network.independent()
    return Path(network, base, task.weights(network), task.l1_ratio, task.tol, MAX_ITER["prox-newton"])


def folds(codes, weights, cv):
    """Yield the rows and weights to fit to, and those held out."""
    for train, test in check_cv(cv).split(codes):
        yield (codes[train], weights[train]), (codes[test], weights[test])


def problem_of(task, codes, weights):
    """The pseudo-likelihood of other rows, in the columns and values of a task."""
    problem = task.problem
    if isinstance(problem, PseudoLikelihood):
        codes = codes[:, task.varying]
        ...
