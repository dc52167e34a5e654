"""Rows with missing cells: what they may have been, with which weights, and EM on that.

An incomplete row is a cloud of weighted complete rows, its completions: all values of the missing
cells, with weights p(missing | observed) by a model. A model that learns from rows and how often
each counts learns from incomplete ones by EM: weigh the completions by the model, refit it to
them, and again. Cells must be missing at random: whether a cell is missing may depend on observed
cells, but given these not on the value that is missing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.tables._distinct import distinct_states, find_distinct

# A row with more completions than this is completed by draws.
MAX_COMPLETIONS = 4096
# Cells of all completions at most.
MAX_ENTRIES = 2**27
# Draws in a round for a row of mean weight that has too many completions.
N_DRAWS = 20
# Rounds of EM with draws, of which the second half is averaged.
N_STOCHASTIC = 20
# Its multiples are spread evenly over remainders.
GOLDEN = (5**0.5 - 1) / 2


class CompletionModel(NamedTuple):
    """Interface that the completion of rows needs from a model.

    Attributes
    ----------
    log_weight : callable
        From complete rows, (n, n_columns), to ln p(x) plus a constant, (n,) float64.
    draw : callable or None
        ``draw(rows, generator)``: a completion of each row, where -1 is a missing cell, from
        their distribution given the observed cells. Only called for rows with too many
        completions; equal rows stand side by side, and their draws are independent.
    objective : callable or None
        From the sum over all rows of w ln Σ_m exp(log_weight(x_o, x_m)), to what EM raises: for
        example less the sum of all w times ln Z. None if `maximise` need not end by it.
    fitted : object
        What a refit begins with.
    """

    log_weight: Callable
    draw: Callable | None = None
    objective: Callable | None = None
    fitted: Any = None


class Completed(NamedTuple):
    """Complete rows in place of incomplete ones.

    Attributes
    ----------
    rows : ndarray of unsigned int of shape (n, n_columns)
        Distinct.
    weights : ndarray of float64 of shape (n,)
        Their sum is that of the weights of the incomplete rows.
    log_likelihood : float
        Σ_r w_r ln Σ_m exp(log_weight(x_o, x_m)); NaN where some rows were completed by draws.
    """

    rows: np.ndarray
    weights: np.ndarray
    log_likelihood: float


class IncompleteRows:
    """Rows of which some have missing cells, and their completions.

    Equal rows are collapsed, and rows without an observed cell or with weight 0 are left out.

    Parameters
    ----------
    rows : ndarray of int of shape (n_rows, n_columns)
        Values 0, ..., n_values - 1, and -1 for a missing cell.
    weights : ndarray of float64 of shape (n_rows,)
        How often each counts.
    n_values : ndarray of int of shape (n_columns,)
    max_completions : int
        A row with more completions than this is completed by draws.
    max_entries : int
        Cells of all completions at most: beyond it, the rows with the most are drawn.
    n_draws : int
        Draws in a round for a row of mean weight that has too many completions, or for one of
        weight 1 if the mean is less; not more than `max_completions` for a row.
    max_draws : int
        Draws of all rows together, about, where one of each is not more than that.

    Attributes
    ----------
    rows, weights : ndarray
        The distinct rows, -1 for a missing cell, and the sums of their weights.
    is_exact : bool
        Whether no row needs draws.
    """

    def __init__(
        self,
        rows,
        weights,
        n_values,
        *,
        max_completions=MAX_COMPLETIONS,
        max_entries=MAX_ENTRIES,
        n_draws=N_DRAWS,
        max_draws=MAX_ENTRIES,
    ):
        rows, weights = informative(rows, weights)
        self.rows, self.weights = distinct_incomplete(rows, weights)
        self.n_values = np.asarray(n_values, dtype=np.int64)
        missing = self.rows < 0
        sizes = np.where(missing, self.n_values, 1.0).prod(axis=1)
        exact = _enumerable(sizes, max_completions, max_entries / rows.shape[1], n_draws)
        self.is_exact, self._drawn = bool(exact.all()), np.flatnonzero(~exact)
        shares = self.weights[~exact] / max(1.0, self.weights.mean())  # time is that of the rows
        n_each = shares * min(n_draws, max_draws / max(shares.sum(), 1.0))
        # Rounded up or down in turns, so that their sum is right.
        n_each = np.floor(n_each + np.arange(len(shares)) * GOLDEN % 1)
        self._n_each = np.clip(n_each, 1, max(1, max_completions)).astype(np.int64)
        self._enumerate(np.flatnonzero(exact), missing)

    def _enumerate(self, exact, missing):
        """All completions of some rows, those of each row one after another."""
        width = np.min_scalar_type(int(self.n_values.max()) - 1)
        rows, owners, self._counts = all_completions(
            self.rows[exact], missing[exact], self.n_values
        )
        rows, self._owners = rows.astype(width), exact[owners]
        self._starts = np.cumsum(self._counts) - self._counts
        if len(rows):
            rows, first, self._inverse = find_distinct(rows)
            self._states = rows[first]
        else:
            self._states, self._inverse = rows, np.empty(0, dtype=np.int64)

    def _shares(self, model):
        """p(missing | observed) of all enumerated completions, and ln Σ_m exp(log_weight)."""
        if not len(self._owners):
            return np.empty(0), np.empty(0)
        shares = np.asarray(model.log_weight(self._states), dtype=np.float64)[self._inverse]
        peaks = np.maximum.reduceat(shares, self._starts)
        shares -= np.repeat(peaks, self._counts)
        np.exp(shares, out=shares)
        sums = np.add.reduceat(shares, self._starts)
        shares /= np.repeat(sums, self._counts)
        return shares, peaks + np.log(sums)

    def conditional(self, model):
        """Distinct completions of the enumerated rows, and their probabilities given the others.

        The latter are a csr_array of shape (n_rows, n_states), in the order of `rows`; 0 for rows
        that are completed by draws.
        """
        shares, _ = self._shares(model)
        counts = np.zeros(len(self.rows) + 1, dtype=np.int64)
        counts[self._owners + 1] = self._counts
        starts = np.cumsum(counts)
        order = np.empty(len(shares), dtype=np.int64)
        order[
            np.arange(len(shares)) + np.repeat(starts[self._owners] - self._starts, self._counts)
        ] = np.arange(len(shares))
        shape = len(self.rows), len(self._states)
        return self._states, csr_array((shares[order], self._inverse[order], starts), shape=shape)

    def complete(self, model, generator=None):
        """Weigh the completions by a model; the generator is not needed if `is_exact`."""
        shares, log_sums = self._shares(model)
        own = self.weights[self._owners]
        shares *= np.repeat(own, self._counts)
        weights = np.bincount(self._inverse, shares, minlength=len(self._states))
        if self.is_exact:
            return Completed(self._states, weights, float(own @ log_sums))
        copies = np.repeat(self._drawn, self._n_each)
        drawn = model.draw(self.rows[copies], generator).astype(self._states.dtype)
        each = np.repeat(self.weights[self._drawn] / self._n_each, self._n_each)
        rows, weights = distinct_states(
            np.concatenate([self._states, drawn]), np.concatenate([weights, each])
        )
        return Completed(rows, weights, np.nan)

    def draws(self, model, n_draws, generator):
        """Yield each distinct row completed by a draw given its observed cells, `n_draws` times.

        All are in the order of `rows`, so that `weights` belong to them.
        """
        shares, _ = self._shares(model)
        cumulated = np.cumsum(shares)
        before = (cumulated - shares)[self._starts]
        after = cumulated[self._starts + self._counts - 1]
        for _ in range(n_draws):
            rows = np.empty(self.rows.shape, dtype=self._states.dtype)
            level = before + generator.random(len(before)) * (after - before)
            place = np.searchsorted(cumulated, level, side="right")
            place = np.clip(place, self._starts, self._starts + self._counts - 1)
            rows[self._owners] = self._states[self._inverse[place]]
            if not self.is_exact:
                rows[self._drawn] = model.draw(self.rows[self._drawn], generator)
            yield rows


def maximise(data, model, refit, *, tol, max_rounds=200, generator=None, stop=lambda: False):
    """Fit a model to incomplete rows by EM; -> whether neither `max_rounds` nor `stop` ended it.

    While all completions are enumerated, each round raises the objective if `refit` does not lower
    what it maximises: the expected log-likelihood of the completed rows, and penalties. EM ends
    when the objective changes by less than `tol` in a round. With draws, this is stochastic EM: the
    draws are new in each of a fixed number of rounds, whose end counts as convergence, and the last
    fit is to the mean of those of the second half.

    ``refit(rows, weights, model)`` is the next model, begun from this one. The generator is not
    needed if `data.is_exact`.
    """
    if not data.is_exact:
        return _maximise_by_draws(data, model, refit, max_rounds, generator, stop)
    completed = data.complete(model)
    last = model.objective(completed.log_likelihood)
    for _ in range(max_rounds):
        model = refit(completed.rows, completed.weights, model)
        completed = data.complete(model)
        before, last = last, model.objective(completed.log_likelihood)
        if stop():
            break
        if abs(last - before) < tol:
            return True
    return False


def _maximise_by_draws(data, model, refit, max_rounds, generator, stop):
    n_rounds = min(max_rounds, N_STOCHASTIC)
    rows = weights = None
    for k in range(n_rounds):
        completed = data.complete(model, generator)
        if 2 * k >= n_rounds - 1 and rows is None:
            rows, weights = completed[:2]
        elif rows is not None:
            rows, weights = distinct_states(
                np.concatenate([rows, completed.rows]), np.concatenate([weights, completed.weights])
            )
        if k < n_rounds - 1:
            model = refit(completed.rows, completed.weights, model)
            if stop():
                return False
    refit(rows, weights * (data.weights.sum() / weights.sum()), model)
    return not stop()


def independent_columns(data):
    """A first model of incomplete rows, without an objective: each column by its observed cells."""
    tables = []
    for j, m in enumerate(data.n_values.tolist()):
        known = data.rows[:, j] >= 0
        # One more observation, spread evenly: no value is impossible.
        counts = np.bincount(data.rows[known, j], data.weights[known], minlength=m) + 1 / m
        tables.append(counts / counts.sum())
    logs = [np.log(table) for table in tables]

    def log_weight(rows):
        total = np.zeros(len(rows))
        for j, log_p in enumerate(logs):
            total += log_p[rows[:, j]]
        return total

    def draw(rows, generator):
        drawn = rows.copy()
        for j, table in enumerate(tables):
            holes = rows[:, j] < 0
            drawn[holes, j] = generator.choice(len(table), holes.sum(), p=table)
        return drawn

    return CompletionModel(log_weight, draw)


# Rows and cells.


def informative(rows, weights):
    """The rows that count: those with an observed cell and a positive weight."""
    counts = (weights > 0) & (rows >= 0).any(axis=1)
    return (rows, weights) if counts.all() else (rows[counts], weights[counts])


def distinct_incomplete(rows, weights):
    """The distinct rows, where -1 is a missing cell, and the sums of their weights."""
    if rows.dtype.kind != "i" or not len(rows):
        return distinct_states(rows, weights) if len(rows) else (rows, weights)
    shifted, weights = distinct_states((rows + 1).astype(f"u{rows.dtype.itemsize}"), weights)
    return shifted.astype(rows.dtype) - rows.dtype.type(1), weights


def patterns(missing):
    """Yield the rows, and the missing columns, of each pattern of missing cells."""
    if not len(missing):
        return
    _, first, which = find_distinct(missing)
    order = np.argsort(which, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
        yield rows, np.flatnonzero(missing[rows[0]])


def all_completions(rows, missing, n_values):
    """All completions of rows, those of each row one after another.

    And the numbers of the rows in the order in which their completions come, and how many each has.
    """
    blocks, owners, counts = [rows[:0]], [np.empty(0, int)], [np.empty(0, int)]
    for places, unknown in patterns(missing):
        fills = all_states(n_values[unknown])
        block = np.repeat(rows[places], len(fills), axis=0)
        block[:, unknown] = np.tile(fills, (len(places), 1))
        blocks.append(block)
        owners.append(places)
        counts.append(np.full(len(places), len(fills)))
    return np.concatenate(blocks), np.concatenate(owners), np.concatenate(counts)


def log_sums(log_p, n_each):
    """ln Σ exp over the completions of each row, which stand one after another."""
    first = np.cumsum(n_each) - n_each
    peaks = np.maximum.reduceat(log_p, first)
    return peaks + np.log(np.add.reduceat(np.exp(log_p - np.repeat(peaks, n_each)), first))


def all_states(n_values):
    """All joint states of some columns, (n_states, n_columns); one without columns."""
    if not len(n_values):
        return np.zeros((1, 0), dtype=np.int64)
    return np.indices(n_values).reshape(len(n_values), -1).T


def _enumerable(sizes, max_completions, max_rows, n_draws):
    """Which rows are completed by enumeration, those with few completions before others."""
    order = np.argsort(sizes, kind="stable")
    within = np.empty(len(sizes), dtype=bool)
    within[order] = np.cumsum(sizes[order] - 1) <= max_rows  # a complete row adds no row
    return (sizes <= max_completions) & (within | (sizes <= n_draws))
