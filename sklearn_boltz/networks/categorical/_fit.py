"""Fit a network of categorical columns: from rows to an objective, from there to a result."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.categorical._cells import (
    Cells,
    distinct_codes,
    independent_intercept,
    state_counts,
)
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._existence import large_warning, warning_message
from sklearn_boltz.networks.categorical._objective import (
    CategoricalPseudoLikelihood,
    SitePseudoLikelihood,
)
from sklearn_boltz.networks.model._gauge import (
    block_means,
    column_of_state,
    state_offsets,
    to_zero_sum,
)
from sklearn_boltz.networks.training._fit import MAX_ITER, Result
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._solvers import (
    MAX_NEWTON_PARAMETERS,
    Monitor,
    newton,
)


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


def choose_categorical_solver(name, task, max_iter=None):
    """The solver that runs, "newton" or "lbfgs", and the number of iterations at most."""
    problem = task.problem
    rank = problem.n_values - 1
    n_parameters = rank.sum() + (rank.sum() ** 2 - (rank**2).sum()) // 2
    if name == "newton" and (n_parameters > MAX_NEWTON_PARAMETERS or not task.zero_sum):
        name = "lbfgs"
    return name, MAX_ITER[name] if max_iter is None else max_iter


def maximise_categorical(task, theta, solver, monitor, label):
    """Find the maximum of the objective.

    Parameters
    ----------
    task : CategoricalTask
    theta : ndarray
        From `CategoricalTask.initial`; overwritten.
    solver : {"newton", "lbfgs"}
    monitor : Monitor
    label : callable
        What messages call a column, or with a second argument one of its states.

    Returns
    -------
    result : Result
        After Ctrl-C, that of the last complete iteration, if there was one.
    """
    problem, message = task.problem, None
    try:
        if not len(task.fitted):
            monitor(problem.at(theta))
            monitor.status = "converged"
        elif solver == "newton":
            contrasts = Contrasts(problem)
            point = contrasts.at(contrasts.pack(*problem.unpack(theta)))
            point, direction = newton(contrasts, point, monitor)
            message = warning_message(contrasts, point, direction, monitor, named(task, label))
        else:
            maximise_lbfgs(problem, problem.at(theta), monitor)
            message = large_warning(problem, monitor, named(task, label))
    except KeyboardInterrupt:
        if not monitor.n_kept:
            raise
        message, monitor.status = None, "interrupted"
    n_iter = monitor.n_kept
    means = np.array(monitor.values[1 : n_iter + 1]) / max(problem.total, 1e-300)
    return Result(
        *task.whole(*monitor.last),
        objective=means + task.constant,
        seconds=np.array(monitor.seconds[:n_iter]),
        n_iter=n_iter,
        status=monitor.status,
        message=message,
    )


def named(task, label):
    """What messages call the columns and states that are fitted."""
    offsets, starts = state_offsets(task.problem.n_values), state_offsets(task.n_values)

    def name(i, a=None):
        column = task.fitted[i]
        return label(column, *([] if a is None else [task.states[offsets[i] + a] - starts[column]]))

    return name


def fit_categorical(
    codes,
    n_values,
    weights=None,
    *,
    solver="newton",
    tol=1e-5,
    max_iter=None,
    label=None,
    **options,
):
    """Fit rows of codes, without an estimator.

    Parameters
    ----------
    codes : array-like of int of shape (n, n_columns)
        States 0 to q_i - 1, or -1 for a missing cell.
    n_values : array-like of int of shape (n_columns,)
    weights : array-like of shape (n,), default=None
    solver : {"newton", "lbfgs"}, default="newton"
    tol, max_iter : float and int
        As in `FVBMPseudoLikelihood`.
    label : callable, default=None
        What messages call a column, or with a second argument one of its states.
    **options : dict
        Of `CategoricalTask.of_rows`.

    Returns
    -------
    result : Result
    """
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else weights
    task = CategoricalTask.of_rows(codes, n_values, weights, **options)
    solver, max_iter = choose_categorical_solver(solver, task, max_iter)
    monitor = Monitor(tol, max_iter)
    label = label or (lambda i, a=None: f"x{i}" + ("" if a is None else f" = {a}"))
    return maximise_categorical(task, task.initial(), solver, monitor, label)


def fit_sites(
    codes,
    n_values,
    weights,
    *,
    coupling_penalty=0.0,
    intercept_penalty=0.0,
    tol=1e-5,
    max_iter=5000,
    dtype=np.float64,
):
    """Regress each column on the others by itself, and average both directions of each coupling.

    Parameters
    ----------
    codes, n_values, weights
        As in `fit_categorical`.
    coupling_penalty, intercept_penalty : float
        λ_J and λ_h of Σ_n w_n ln p(x_ni | others) - λ_J Σ_j Σ_ab J_ij(a, b)² - λ_h Σ_a h_i(a)², the
        objective of column i.
    tol, max_iter : float and int
        Of each group of columns that is fitted at once.

    Returns
    -------
    coupling : ndarray of shape (Q, Q)
        Zero-sum: both directions are made so before they are averaged.
    intercept : ndarray of shape (Q,)
    """
    n_values = np.asarray(n_values, dtype=np.int64)
    codes, weights = distinct_codes(np.asarray(codes), np.asarray(weights))
    cells = Cells(codes, n_values, weights, dtype)
    column, whole = column_of_state(n_values), np.zeros((n_values.sum(),) * 2)
    intercept = independent_intercept(state_counts(codes, cells.offsets, weights), n_values)
    for group in cells.groups(np.arange(len(n_values))):
        problem = SitePseudoLikelihood(cells, group, coupling_penalty, intercept_penalty)
        monitor = Monitor(tol, max_iter)
        maximise_lbfgs(problem, problem.at(problem.initial(intercept)), monitor)
        problem.unpack(np.concatenate(monitor.last[::-1]), whole, intercept)
    row_means = block_means(whole, n_values)
    means = block_means(row_means.T, n_values).T
    intercept = intercept + (row_means - means[column]).sum(axis=1)
    intercept -= block_means(intercept[None], n_values)[0, column]
    column_means = block_means(whole.T, n_values).T
    whole = whole - row_means[:, column] - column_means[column] + means[column][:, column]
    return (whole + whole.T) / 2, intercept
