"""Learn a full-span log-linear model from rows and how often each counts."""

import math
from typing import NamedTuple

import numpy as np

from sklearn_boltz._threads import limit_blas
from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._dual_table import DualTable
from sklearn_boltz.loglinear._search import History, State, search


class Counts(NamedTuple):
    """Rows as states, and how often each counts; `dtype` is the type that they came in."""

    dtype: np.dtype
    n_values: np.ndarray
    rows: np.ndarray
    weights: np.ndarray


class Settings(NamedTuple):
    """The parameters of the search, see `FSLLDensity`; None has become a number."""

    alpha: float
    max_order: int
    max_basis: float
    solver: str
    tol: float
    max_iter: float
    dtype: np.dtype
    n_threads: int
    verbose: int


class Learned(NamedTuple):
    """What a fit found.

    Attributes
    ----------
    rows, weights : ndarray
        The distinct rows, and how often each counts.
    basis : ndarray of int64 of shape (n_basis, n_features)
    theta : ndarray of float64 of shape (n_basis,)
    converged : bool
    history : History
    """

    rows: np.ndarray
    weights: np.ndarray
    basis: np.ndarray
    theta: np.ndarray
    converged: bool
    history: History


class Part(NamedTuple):
    """Variables with a table of their own."""

    group: np.ndarray
    space: StateSpace
    state: State


def independent_groups(rows):
    """The variables that share a table, as a list of index arrays.

    A column that is constant in the data is independent of the others in the model: it
    has a table of its own, and does not double the size of the other.
    """
    varies = rows.min(axis=0) != rows.max(axis=0)
    groups = [np.flatnonzero(varies), *np.flatnonzero(~varies)[:, None]]
    return groups if len(groups[0]) else groups[1:]


def learn(counts, groups, settings, end_iteration):
    """Search for the terms of each group of variables, one group after another.

    Parameters
    ----------
    counts : Counts
    groups : list of ndarray of int
        Of `independent_groups`, none of them too large.
    settings : Settings
    end_iteration : callable
        Called after each move with a function that returns the basis and the weights as they
        are; it returns whether to stop.

    Returns
    -------
    learned : Learned
    """
    n_values, rows, weights = counts[1:]
    total, parts, converged = weights.sum(), [], True
    for group in groups:
        space = StateSpace(n_values[group])
        codes, first, sums = collapse(space.encode(rows[:, group]), weights)
        if not parts:  # the columns that vary, if there are some: the other groups have one row
            rows, weights = rows[first], sums
            size = math.prod(n_values.tolist())
            history = History(
                initial_divergence(sums, total, size),
                lambda: end_iteration(lambda: terms(parts, len(n_values))),
                settings.verbose,
            )
        state = State(math.log(space.size), initial_divergence(sums, total, space.size))
        parts.append(Part(group, space, state))
        table = DualTable(
            space,
            codes,
            sums,
            n_features=len(n_values),
            alpha=settings.alpha,
            max_order=settings.max_order,
            dtype=settings.dtype,
            n_threads=settings.n_threads,
        )
        with table, limit_blas(1):
            converged &= search(
                table,
                state,
                solver=settings.solver,
                tol=settings.tol,
                max_iter=0 if history.stopped else settings.max_iter - history.n_moves,
                max_basis=settings.max_basis - history.n_basis_path[-1],
                end_iteration=history.follow(state),
            )
    return Learned(rows, weights, *terms(parts, len(n_values)), converged, history)


def terms(parts, n_features):
    """Basis and weights of all parts together."""
    basis = np.zeros((sum(len(part.state.codes) for part in parts), n_features), dtype=np.int64)
    start = 0
    for group, space, state in parts:
        basis[start : start + len(state.codes), group] = space.decode(state.codes)
        start += len(state.codes)
    return basis, np.concatenate([part.state.theta for part in parts])


def collapse(codes, weights):
    """Distinct codes, a place where each occurs, and the sums of their weights."""
    codes, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return codes, first, np.bincount(inverse.ravel(), weights)


def initial_divergence(weights, total, size):
    """KL(p_d || uniform), p_d with one more observation spread over all states."""
    seen = (weights + 1 / size) / (total + 1)
    unseen = (1 - len(weights) / size) / (total + 1)
    entropy = -(seen @ np.log(seen)) + unseen * (math.log(size) + math.log(total + 1))
    return math.log(size) - float(entropy)
