"""States of the missing cells of a row, with their probabilities, and what follows from them."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.partition._shares import chosen_chains
from sklearn_boltz.restricted.model._enumeration import all_states, n_bits
from sklearn_boltz.restricted.model._model import log_sums_of_states
from sklearn_boltz.restricted.sampling._array_chains import moves_of_chains
from sklearn_boltz.restricted.sampling._observed import (
    Gaps,
    annealed,
    has_few_hidden,
    has_few_missing,
    has_few_states,
    missing_bits,
    missing_units,
    row_stream,
    spread_over_columns,
)

# Bits of the missing cells that are looked at rather than hidden units.
FEW_BITS = 10
# Chains of a row, their transitions, the first half of which anneals, and states that count of the
# second half.
ROW_CHAINS, ROW_STEPS, ROW_STATES = 10, 100, 5


class Completions(NamedTuple):
    """States of what is not observed of one row, with their probabilities.

    Attributes
    ----------
    log_probability : ndarray of float64 of shape (n_states,)
    row : ndarray of shape (n_visible,)
        The observed values.
    columns : ndarray of int of shape (n_columns,)
        Numbers of the row that `values` has.
    values : ndarray of shape (n_states, n_columns)
        The missing values, the hidden units summed out; or the means of all visible units given
        the hidden ones.
    H : ndarray of shape (n_states, n_hidden) or None
        The hidden units, if the missing values are summed out.
    fields : ndarray of shape (n_states, n_visible) or None
        Of the visible units, given these.
    """

    log_probability: np.ndarray
    row: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    H: np.ndarray | None = None
    fields: np.ndarray | None = None

    def some(self, chosen):
        """Some of the states."""
        H, fields = (a if a is None else a[chosen] for a in (self.H, self.fields))
        return self._replace(
            log_probability=self.log_probability[chosen], values=self.values[chosen], H=H,
            fields=fields,
        )  # fmt: skip

    @property
    def probability(self):
        """Probability of each state."""
        return np.exp(self.log_probability)

    @property
    def V(self):
        """Rows with all values, of shape (n_states, n_visible)."""
        return self.with_values(self.values)

    def with_values(self, values):
        """The row with some values, (n_rows, n_columns), in its columns."""
        rows = np.repeat(self.row[np.newaxis], len(values), axis=0)
        rows[:, self.columns] = values
        return rows

    def mean(self):
        """The row with the means of its values."""
        return self.with_values((self.probability @ self.values)[np.newaxis])[0]


class Completer:
    """p(missing, hidden | observed) of rows of a model, exact where states are few.

    Parameters
    ----------
    model : Model
    base : UnitType, default=None
        Independent visible units as in the data, where the annealing of `drawn` begins.
    """

    def __init__(self, model, base=None):
        self.model, self.base, self._pattern, self._few_states = model, base, None, {}

    @cached_property
    def exact(self):
        """The model in float64."""
        return self.model.in_double()

    @cached_property
    def hidden(self):
        """All states of the hidden units; their log-weights, fields, log-partitions and means."""
        H, exact = all_states(self.model.hidden), self.exact
        fields = exact.visible_field(H)
        log_partition = exact.visible.log_partition(fields)
        return H, exact.hidden.log_weight(H), fields, log_partition, exact.visible.mean(fields)

    @cached_property
    def weights(self):
        """Those of the exact model, as an array."""
        return np.asarray(self.exact.weights)

    @cached_property
    def _most_bits(self):
        """Bits of the missing units up to which these are enumerated, not the hidden ones."""
        model = self.model
        return max(FEW_BITS, n_bits(model.hidden)) if has_few_hidden(model) else np.inf

    def _missing(self, units):
        """All states of some units, their log-weights and what they add to the hidden fields.

        Rows come one pattern of missing cells after another: those of the last one are kept.
        """
        if self._pattern is None or not np.array_equal(self._pattern, units):
            visible, columns = self.exact.visible, spread_over_columns(self.exact.visible, units)
            alone = visible.chosen(np.flatnonzero(units))
            states = self._states_of(alone)
            fields = states @ self.weights[:, columns].T
            self._pattern, self._states = units, (states, alone.log_weight(states), fields)
        return self._states

    def _states_of(self, units):
        """All states; those of few bits, which many rows lack, are kept."""
        if not (units.is_binary and units.n_units <= FEW_BITS):
            return all_states(units)
        if units.n_units not in self._few_states:
            self._few_states[units.n_units] = all_states(units)
        return self._few_states[units.n_units]

    def __call__(self, v):
        """Completions of a row that `has_few_states`; NaN is missing."""
        exact, units = self.exact, missing_units(self.model.visible, np.isnan(v))
        missing = spread_over_columns(exact.visible, units)
        known, columns = np.where(missing, 0.0, v), np.flatnonzero(missing)
        if not len(columns):
            return Completions(np.zeros(1), known, columns, np.empty((1, 0)))
        field = exact.hidden_field(known[np.newaxis])
        bits = missing_bits(self.model.visible, units)
        if has_few_missing(self.model, units) and bits <= self._most_bits:
            states, log_weight, fields = self._missing(units)
            logs = log_weight + exact.hidden.log_partition_sum(fields + field)
            return Completions(_normalised(logs), known, columns, states)
        H, log_weight, fields, log_partition, means = self.hidden
        logs = log_weight + H @ field[0] + log_partition @ units
        every = np.arange(len(known))
        return Completions(_normalised(logs), known, every, means, H, fields)

    def drawn(self, v, seed, n_states=ROW_STATES):
        """Completions of any row: exact where states are few, else by annealed chains.

        Parameters
        ----------
        v : ndarray of shape (n_visible,)
        seed : int
        n_states : int
            States of each chain that count.

        Returns
        -------
        completions : Completions
        """
        if has_few_states(self.model, np.isnan(v)):
            return self(v)
        gaps = Gaps.of(self.model, v[np.newaxis])
        rows = _row_chains(gaps, self.base, row_stream(seed, v), n_states)
        return Completions(_normalised(np.zeros(len(rows))), v, np.arange(len(v)), rows)


def _normalised(logs):
    """Log-probabilities; SciPy's function takes longer on few numbers."""
    logs = logs - logs.max()
    return logs - np.log(np.exp(logs).sum())


def _row_chains(gaps, base, stream, n_states):
    """States that chains of one row reach, its observed values clamped.

    Annealed chains are drawn by their weights and go on for as many transitions.
    """
    model, n_moves = gaps.model, ROW_STEPS // 2
    chains = Gaps(*gaps[:1], *(np.repeat(a, ROW_CHAINS, axis=0) for a in gaps[1:]))
    log_weights, V = annealed(chains, base, n_moves, stream)
    V = V[chosen_chains(log_weights[np.newaxis], ROW_CHAINS, stream.generator())[0]]
    observed = ~spread_over_columns(model.visible, gaps.missing)
    moves = moves_of_chains(model, V, observed, n_moves, stream)
    kept = np.linspace(0, n_moves - 1, n_states).astype(int)
    return np.concatenate([rows for step, (_, rows) in enumerate(moves) if step in kept])


def mean_hidden(model, base, V, seed, workers):
    """E[h | v_o] of rows with missing cells.

    Parameters
    ----------
    model : Model
    base : UnitType
    V : ndarray of shape (n_rows, n_visible)
    seed : int
    workers : Workers

    Returns
    -------
    H : ndarray of shape (n_rows, n_hidden)
    """
    complete = Completer(model, base)

    def of_row(i):
        found = complete.drawn(V[i], seed)
        H = complete.exact.mean_hidden(found.V) if found.H is None else found.H
        return np.exp(found.log_probability) @ H

    return _of_rows(of_row, model, len(V), workers).astype(model.dtype)


def log_pseudo_likelihood(model, base, V, seed, workers):
    """Σ ln p(v_i | observed others) over the observed units of rows, the missing ones summed out.

    With draws of what is not observed given all that is, the ratios of the probabilities of the
    values of a unit are means of their ratios given the draws.

    Parameters
    ----------
    model : Model
    base : UnitType
    V : ndarray of shape (n_rows, n_visible)
    seed : int
    workers : Workers

    Returns
    -------
    log_pseudo_likelihood : ndarray of float64 of shape (n_rows,)
    """
    complete, states = Completer(model, base), model.visible.unit_states()

    def of_row(i):
        found, missing = complete.drawn(V[i], seed), missing_units(model.visible, np.isnan(V[i]))
        parts = [
            _log_conditional(complete.exact, found, V[i].astype(np.float64), unit, *states[unit])
            for unit in np.flatnonzero(~missing)
        ]
        return float(sum(parts))

    return _of_rows(of_row, model, len(V), workers)


def _of_rows(function, model, n_rows, workers):
    """Results of a function of the number of a row, which draws what is missing there."""
    work = n_rows * model.weights.size * ROW_CHAINS * ROW_STEPS
    return np.array(workers.map(function, range(n_rows), work))


def _log_conditional(model, found, v, unit, states, log_weights):
    """ln p(v_i | observed others) of one unit of a row."""
    columns = model.visible.columns_of(unit)
    changes, weights = states - v[columns], model.weights[:, columns]
    if found.H is None:
        V = found.V.astype(np.float64)
        field = model.hidden_field(V)
        ratios = log_sums_of_states(model, field, V[:, columns], weights.T, states)
        ratios -= model.log_sum(field)[:, np.newaxis]
    else:
        ratios = found.H @ weights @ changes.T
    logs = log_weights + logsumexp(found.log_probability[:, np.newaxis] + ratios, axis=0)
    shares = model.visible.state_shares(unit, v[np.newaxis, columns])[0]
    return shares @ (logs - logsumexp(logs))
