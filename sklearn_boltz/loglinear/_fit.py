"""Learn a full-span log-linear model from rows and how often each counts."""

import math
from typing import NamedTuple

import numpy as np

from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._dual_table import DualTable
from sklearn_boltz.loglinear._incomplete import IncompleteSearch, initial_cost
from sklearn_boltz.loglinear._search import SearchHistory, SearchState, search
from sklearn_boltz.missing._completion import IncompleteRows, distinct_incomplete, informative
from sklearn_boltz.numerics._threads import limit_blas


class CountedRows(NamedTuple):
    """Rows as states, and how often each counts; `dtype` is the type that they came in.

    A missing cell is -1; without missing cells the rows are unsigned.
    """

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


def independent_groups(rows):
    """The variables that share a table, as a list of index arrays.

    A column whose observed cells are all equal is independent of the others in the model: it
    has a table of its own, and does not double the size of the other.
    """
    lowest = rows.min(axis=0)
    if has_gaps(rows):
        lowest = np.where(rows < 0, np.iinfo(rows.dtype).max, rows).min(axis=0)
    varies = lowest != rows.max(axis=0)
    groups = [np.flatnonzero(varies), *np.flatnonzero(~varies)[:, None]]
    return groups if len(groups[0]) else groups[1:]


def learn(counts, groups, settings, end_iteration):
    """Search for the terms of each group of variables, one group after another.

    Parameters
    ----------
    counts : CountedRows
    groups : list of ndarray of int
        Of `independent_groups`, none of them too large.
    settings : Settings
    end_iteration : callable
        Called after each move with a function that returns the basis and the weights as they
        are; it returns whether to stop.

    Returns
    -------
    rows, weights : ndarray
        The distinct rows, and how often each counts.
    terms : (ndarray of shape (n_basis, n_features), ndarray of shape (n_basis,))
        Basis and weights.
    converged : bool
    history : SearchHistory
    """
    n_values, rows, weights = counts[1:]
    if has_gaps(rows):
        rows, weights = distinct_incomplete(*informative(rows, weights))
    incomplete = has_gaps(rows)
    sources, parts, converged = [], [], True
    for group in groups:
        sources.append(source_of(rows[:, group], weights, StateSpace(n_values[group])))
        if len(sources) == 1 and not incomplete:
            # The columns that vary, if there are some: the other groups have one row.
            first, sums = sources[0].first, sources[0].weights
            cost = initial_divergence(sums, weights.sum(), math.prod(n_values.tolist()))
            rows, weights = rows[first], sums
    if incomplete:
        cost = sum(source.cost for source in sources)
    history = SearchHistory(
        cost, lambda: end_iteration(lambda: terms(parts, len(n_values))), settings.verbose
    )
    with history.bar:
        for group, source in zip(groups, sources, strict=True):
            state = SearchState(math.log(source.space.size), source.cost)
            parts.append((group, source.space, state))
            converged &= search_part(state, source, history, settings, len(n_values))
    return rows, weights, terms(parts, len(n_values)), converged, history


def search_part(state, source, history, settings, n_features):
    """Search for the terms of one group of variables; return whether the search ended by itself."""
    table = DualTable(
        source.space,
        source.codes,
        source.weights,
        n_features=n_features,
        alpha=settings.alpha,
        max_order=settings.max_order,
        dtype=settings.dtype,
        n_threads=settings.n_threads,
    )
    options = {
        "solver": settings.solver,
        "tol": settings.tol,
        "max_iter": 0 if history.stopped else settings.max_iter - history.n_moves,
        "max_basis": settings.max_basis - history.n_basis_path[-1],
    }
    with table, limit_blas(1):
        if source.incomplete is not None:
            return IncompleteSearch(table, state, source.incomplete, history, **options).run()
        return search(table, state, end_iteration=history.follow(state), **options)


class RowsOfFit(NamedTuple):
    """Rows that one table learns from."""

    space: StateSpace
    codes: np.ndarray  # of the distinct states, and how often each counts
    weights: np.ndarray
    first: np.ndarray | None  # where each occurs
    cost: float  # without terms
    incomplete: IncompleteRows | None  # in their place, if cells are missing


def source_of(rows, weights, space):
    """Rows that the table of some columns learns from, without those that say nothing of them."""
    if has_gaps(rows):
        rows, weights = informative(rows, weights)
    if not has_gaps(rows):
        codes, first, sums = collapse(space.encode(rows), weights)
        cost = initial_divergence(sums, weights.sum(), space.size)
        return RowsOfFit(space, codes, sums, first, cost, None)
    incomplete = IncompleteRows(rows, weights, space.n_values)
    cost = initial_cost(incomplete, space, SearchState(math.log(space.size), 0.0))
    # Only the total counts of the weights: the data come with each round.
    return RowsOfFit(space, np.zeros(1, int), weights.sum(keepdims=True), None, cost, incomplete)


def has_gaps(rows):
    """Whether cells are missing, -1."""
    return rows.dtype.kind == "i" and bool((rows < 0).any())


def terms(parts, n_features):
    """Basis and weights of all parts together."""
    n_terms = sum(len(state.codes) for *_, state in parts)
    basis = np.zeros((n_terms, n_features), dtype=np.int64)
    start = 0
    for group, space, state in parts:
        basis[start : start + len(state.codes), group] = space.decode(state.codes)
        start += len(state.codes)
    return basis, np.concatenate([state.theta for *_, state in parts])


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
