"""Rows with missing cells: what is missing, and log-probabilities of what is observed.

The missing cells of a row and the hidden units are an RBM by themselves: what is observed adds
W_o v_o to the fields of the hidden units. Its normalising constant is the sum over all
completions of the row.
"""

from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import concatenated, is_foreign
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.restricted.model._coded_rows import CodedRows
from sklearn_boltz.restricted.model._enumeration import blocks_of_states, n_bits
from sklearn_boltz.restricted.model._model import log_sums_of_states

# Bits of the missing cells or of the hidden units up to which their states are summed out for a
# log-probability.
EXACT_SUM = 20
# Where each state is looked at: states of the missing cells, or of the hidden units, by units of
# both layers at most.
EXACT_MISSING, EXACT_HIDDEN = 2**23, 2**23
# Rows that a method works on at once, so that its memory does not grow with the data.
HOST_ROWS, DEVICE_ROWS = 1000, 2**14
# Rows that are looked at together.
CHUNK_ROWS = 500
# Annealing of the missing cells of a row: chains and steps of the inverse temperature.
N_CHAINS, N_TEMPERATURES = 50, 200
# While a model is in training: bits of the hidden units that are summed out, and steps of a single
# chain for each row, which underestimates the log-probability a little.
QUICK_HIDDEN, QUICK_TEMPERATURES = 12, 40


# What is missing.


def rows_with_gaps(V):
    """Which rows have a missing cell: an array of bool, or None if all cells are there."""
    V = V.codes if isinstance(V, CodedRows) else V
    if not isinstance(V, np.ndarray) or not np.isnan(V.sum()):
        return None
    gaps = np.isnan(V).any(axis=1)
    return gaps if gaps.any() else None


def by_chunks(function, X):
    """Apply a function of dense rows, a chunk at a time."""
    n_rows, size = X.shape[0], DEVICE_ROWS if is_foreign(X) else HOST_ROWS
    if n_rows <= size:
        return function(dense(X))
    parts = [function(dense(X[rows, ...])) for rows in gen_batches(n_rows, size)]
    return concatenated(parts)


def by_rows(of_complete, of_incomplete, X):
    """Apply one function to complete rows and another one to rows with missing cells."""
    gaps = rows_with_gaps(X)
    if gaps is None:
        return by_chunks(of_complete, X)
    found = by_chunks(of_incomplete, X[gaps])
    if gaps.all():
        return found
    complete = by_chunks(of_complete, X[~gaps])
    out = np.empty((len(gaps), *found.shape[1:]), found.dtype)
    out[gaps], out[~gaps] = found, complete
    return out


def missing_units(units, missing):
    """Which units are missing: those of which a number is; of shape (..., n_units)."""
    if units.width == 1:
        return missing
    return np.logical_or.reduceat(missing, np.cumsum(units.widths) - units.widths, axis=-1)


def missing_bits(units, missing):
    """The binary logarithm of the number of states of the missing units, of a row or each."""
    with np.errstate(invalid="ignore"):
        return np.where(missing, np.log2(units.state_counts), 0).sum(axis=-1)


def has_few_hidden(model):
    """Whether the states of the hidden units are enumerated."""
    return _are_few(model, n_bits(model.hidden), EXACT_HIDDEN)


def has_few_missing(model, units):
    """Whether the states of the missing units are enumerated, of a row or each."""
    return _are_few(model, missing_bits(model.visible, units), EXACT_MISSING)


def has_few_states(model, missing):
    """Whether the missing units, or the hidden ones, are enumerated; `missing` is of numbers."""
    return has_few_hidden(model) | has_few_missing(model, missing_units(model.visible, missing))


def _are_few(model, bits, most):
    return np.exp2(bits) * (len(model.visible) + len(model.hidden)) <= most


def spread_over_columns(units, of_units):
    """Repeat the values of units for each of their columns."""
    return of_units if units.width == 1 else np.repeat(of_units, units.widths, axis=-1)


def observed_log_weight(units, V, missing):
    """The sum of ln w(x) over the observed units of each row, in float64.

    Parameters
    ----------
    units : UnitType
    V : ndarray of shape (n_rows, n_columns)
    missing : ndarray of bool of shape (n_rows, n_units)
    """
    return np.where(missing, 0.0, units.unit_log_weights(V)).sum(axis=1)


class Gaps(NamedTuple):
    """Rows of which cells are missing, as an RBM of each row.

    Attributes
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Zeros where values are missing.
    missing : ndarray of bool of shape (n_rows, n_units)
    field : ndarray of shape (n_rows, n_hidden)
        What the observed values add to the fields of the hidden units.
    """

    model: NamedTuple
    V: np.ndarray
    missing: np.ndarray
    field: np.ndarray

    @classmethod
    def of(cls, model, V):
        """Gaps of rows in which NaN is missing."""
        missing = missing_units(model.visible, np.isnan(V))
        known = np.where(spread_over_columns(model.visible, missing), 0, V).astype(model.dtype)
        return cls(model, known, missing, model.hidden_field(known))

    def rows(self, chosen):
        """Some of the rows."""
        return self._replace(
            V=self.V[chosen], missing=self.missing[chosen], field=self.field[chosen]
        )

    def repeated(self, n_chains):
        """The RBM of what is missing, with chains of each row; all rows lack the same units."""
        alone, n = self.alone(), len(self.V) * n_chains
        nothing = np.zeros((n, len(alone.visible)), self.V.dtype)
        missing = np.ones((n, alone.visible.n_units), dtype=bool)
        return Gaps(alone, nothing, missing, np.repeat(self.field, n_chains, axis=0))

    def columns(self):
        """The numbers of a row that are missing, where all rows lack the same units."""
        return np.flatnonzero(spread_over_columns(self.model.visible, self.missing[0]))

    def alone(self):
        """The RBM of the missing units and the hidden ones, where all rows lack the same units."""
        model = self.model
        units = np.flatnonzero(self.missing[0])
        weights = np.asarray(model.weights)[:, self.columns()]
        return model._replace(weights=weights, visible=model.visible.chosen(units))


def start(gaps):
    """Rows with missing values near their means given the observed ones, by mean field."""
    model, columns = gaps.model, spread_over_columns(gaps.model.visible, gaps.missing)
    mean = model.visible.mean(np.zeros((1, len(model.visible)), model.dtype))
    rows = np.where(columns, mean, gaps.V).astype(model.dtype)
    means = model.mean_visible(model.mean_hidden(rows))
    return np.where(columns, means, gaps.V).astype(model.dtype)


# Log-probabilities.


def free_energy(model, base, V, seed, workers):
    """F(v_o) = −ln Σ exp(−E) over the hidden units and the missing cells of each row.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units as in the data, where annealing begins.
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    seed : int
        With the content of a row, it decides on the random numbers for that row.
    workers : Workers

    Returns
    -------
    free_energy : ndarray of float64 of shape (n_rows,)
        Exact where what is missing or the hidden units have up to 2^20 states; else by
        annealed importance sampling, of which exp(−F) is unbiased.
    """
    gaps, found = Gaps.of(model, V), np.empty(len(V))
    bits, of_hidden = missing_bits(model.visible, gaps.missing), n_bits(model.hidden)
    by_hidden = (of_hidden <= EXACT_SUM) & (of_hidden < bits)
    by_missing = ~by_hidden & (bits <= EXACT_SUM)
    others = np.flatnonzero(~(by_hidden | by_missing))
    exact = Gaps.of(model.in_double(), V)
    if by_hidden.any():
        found[by_hidden] = _sum_over_hidden(exact.rows(by_hidden))
    for rows in patterns(gaps.missing, by_missing):
        found[rows] = _sum_over_missing(exact.rows(rows))
    if len(others):

        def of_row(i):
            # A product of several rows may be rounded in another way.
            row, stream = Gaps.of(model, V[[i]]), row_stream(seed, V[i])
            units = base.chosen(np.flatnonzero(row.missing[0]))
            log_weights, _ = annealed(row.repeated(N_CHAINS), units, N_TEMPERATURES, stream)
            return logsumexp(log_weights) - np.log(N_CHAINS)

        work = len(others) * N_CHAINS * N_TEMPERATURES * model.weights.size
        found[others] = workers.map(of_row, others.tolist(), work)
    return -(found + observed_log_weight(exact.model.visible, exact.V, exact.missing))


def quick_free_energy(model, base, V, stream):
    """F(v_o) of rows at a small cost: exact with up to 12 bits of hidden units, else annealed.

    A chain for each row that lacks a cell, with the same random numbers each time, makes the mean
    over many rows good enough to compare a model with what it was an epoch ago.

    Parameters
    ----------
    model : Model
    base : UnitType
    V : ndarray of shape (n_rows, n_visible)
    stream : Stream

    Returns
    -------
    free_energy : ndarray of float64 of shape (n_rows,)
    """
    if n_bits(model.hidden) <= QUICK_HIDDEN:
        gaps = Gaps.of(model.in_double(), V)
        log_sum = _sum_over_hidden(gaps)
    else:
        gaps = Gaps.of(model, V)
        log_sum = gaps.model.hidden.log_partition_sum(gaps.field).astype(np.float64)
        lacking = np.flatnonzero(gaps.missing.any(axis=1))
        for chosen in map(lacking.__getitem__, gen_batches(len(lacking), CHUNK_ROWS)):
            log_sum[chosen] = annealed(gaps.rows(chosen), base, QUICK_TEMPERATURES, stream)[0]
    return -(log_sum + observed_log_weight(gaps.model.visible, gaps.V, gaps.missing))


def patterns(missing, chosen):
    """Numbers of the chosen rows, those together that lack the same units."""
    numbers = np.flatnonzero(chosen)
    if not len(numbers):
        return []
    packed = np.packbits(missing[numbers], axis=1)
    _, which = np.unique(packed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.flatnonzero(np.diff(which.ravel()[order])) + 1
    return np.split(numbers[order], ends)


def distinct_rows(V, missing, chosen):
    """Yield the chosen rows, NaN where they are missing, with the numbers of all that are equal.

    Rows that lack the same units come one after another.

    Parameters
    ----------
    V : ndarray of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : ndarray of bool of the same shape
    chosen : ndarray of bool of shape (n_rows,)
    """
    for numbers in patterns(missing, chosen):
        rows, equal = np.where(missing[numbers], np.nan, V[numbers]), {}
        for row, number in zip(rows, numbers.tolist(), strict=True):
            equal.setdefault(row.tobytes(), (row, []))[1].append(number)
        yield from equal.values()


def _sum_over_hidden(gaps):
    """ln Σ over the states of the hidden units, the missing ones summed out, of each row."""
    model, parts = gaps.model, []
    for states in blocks_of_states(model.hidden):
        log_weight = model.hidden.log_weight(states)
        of_units = model.visible.log_partition(model.visible_field(states)).astype(np.float64)
        parts.append([
            logsumexp(
                log_weight[:, np.newaxis] + states @ gaps.field[rows].T
                + of_units @ gaps.missing[rows].T, axis=0,
            )
            for rows in gen_batches(len(gaps.field), CHUNK_ROWS)
        ])  # fmt: skip
    return logsumexp([np.concatenate(part) for part in parts], axis=0)


def _sum_over_missing(gaps):
    """ln Σ over the states of what is missing, the hidden units summed out; one pattern."""
    if not gaps.missing[0].any():
        return gaps.model.hidden.log_partition_sum(gaps.field)
    alone, parts = gaps.alone(), []
    for states in blocks_of_states(alone.visible):
        sums = log_sums_of_states(alone, gaps.field, None, alone.weights.T, states)
        parts.append(logsumexp(alone.visible.log_weight(states) + sums, axis=1))
    return logsumexp(parts, axis=0)


# Annealing.


def row_stream(seed, v):
    """Random numbers of a row: they depend on its content, and on no other row."""
    row = np.where(np.isnan(v), np.nan, v + 0.0).astype(np.float64)  # one NaN, one zero
    digest = blake2b(row.tobytes(), digest_size=8, key=int(seed).to_bytes(8, "little"))
    return Stream(int.from_bytes(digest.digest(), "little"))


def annealed(gaps, base, n_temperatures, stream):
    """Log-weights of annealed chains, one a row: their exponentials are unbiased for Z of a row.

    At β = 0, the missing units are independent as in `base`, with the means μ, and the hidden
    units have the field W_o v_o + W_m μ; from there on it is W_o v_o + W_m (μ + β (v_m − μ)).

    Parameters
    ----------
    gaps : Gaps
    base : UnitType
    n_temperatures : int
    stream : Stream

    Returns
    -------
    log_weights : ndarray of float64 of shape (n_rows,)
    V : ndarray of shape (n_rows, n_visible)
        Where the chains end: with their weights, the missing values have the distribution of the
        model given the others.
    """
    model, missing = gaps.model, gaps.missing
    columns, dtype = spread_over_columns(model.visible, missing), model.dtype

    def masked(V):
        return np.where(columns, V, 0).astype(dtype)

    def at(beta, visible, own):
        """ln f of the rows, and the fields of the hidden units."""
        field = (gaps.field + (1 - beta) * centre + beta * own).astype(dtype, copy=False)
        log_weight = observed_log_weight(visible, V, ~missing)
        return log_weight + model.hidden.log_partition_sum(field), field

    zero = np.zeros((len(gaps.V), len(model.visible)), dtype)
    centre = model.hidden_field(masked(np.broadcast_to(base.mean(zero[:1]), zero.shape)))
    of_units = base.log_partition(zero[:1]).astype(np.float64)
    log_weights = np.where(missing, of_units, 0).sum(axis=1)
    log_weights = log_weights + model.hidden.log_partition_sum(gaps.field + centre)
    V = base.sample(zero, stream)
    own, visible = model.hidden_field(masked(V)), model.visible.annealed(0.0, base)
    betas = np.linspace(0, 1, n_temperatures + 1).tolist()
    for low, high in pairwise(betas):
        log_weights -= at(low, visible, own)[0]
        visible = model.visible.annealed(high, base)
        log_f, field = at(high, visible, own)
        log_weights += log_f
        if high < 1:
            H = model.hidden.sample(field, stream)
            V = visible.sample((high * model.visible_field(H)).astype(dtype, copy=False), stream)
            own = model.hidden_field(masked(V))
    return log_weights, np.where(columns, V, gaps.V)
