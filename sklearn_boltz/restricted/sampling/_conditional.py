"""What follows from the observed cells of a row: means, modes and draws of the others."""

from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.model._enumeration import all_states, n_bits
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._modes import coordinate_ascent, mode_of_mixture

# Bits of hidden units, or of missing values of a row, that are enumerated to impute exactly.
IMPUTE_HIDDEN, IMPUTE_MISSING = 12, 10
# Rows of which fields are kept at once.
CHUNK_ROWS = 1000
# Of the states of a chain, one in so many counts for a probability: others are much like it, and
# each costs as much as a transition.
THINNING = 5
# States of a chain that are compared, where a comparison costs much more than a transition.
FEW_COMPARED = 50


class Mixture(NamedTuple):
    """The distribution of the missing values of a row as a mixture of independent values.

    Attributes
    ----------
    probability : ndarray of shape (n_states,)
        Of each state of what is enumerated: the missing values, or the hidden units.
    means : ndarray of shape (n_states, n_missing)
        Means of the missing values given that state.
    fields : ndarray of shape (n_states, n_visible) or None
        Fields of all visible units given that state; None if it is the missing values.
    """

    probability: np.ndarray
    means: np.ndarray
    fields: np.ndarray | None


def can_impute_exactly(model, missing):
    """Whether the states of the missing values or of the hidden units are few, of a row or each."""
    few_hidden = n_bits(model.hidden) <= IMPUTE_HIDDEN
    return few_hidden | (_bits_of(model.visible, missing) <= IMPUTE_MISSING)


def _bits_of(units, missing):
    """The binary logarithm of the number of states of the missing units, of a row or each."""
    return np.where(missing_units(units, missing), np.log2(units.state_counts), 0).sum(axis=-1)


def missing_units(units, missing):
    """Which units are missing, each with all of its columns.

    Parameters
    ----------
    units : UnitType
    missing : ndarray of bool of shape (..., n_columns)

    Returns
    -------
    missing_units : ndarray of bool of shape (..., n_units)

    Raises
    ------
    ValueError
        If a unit is missing in some of its columns only.
    """
    if units.width == 1:
        return missing
    starts = np.cumsum(units.widths) - units.widths
    whole = np.logical_and.reduceat(missing, starts, axis=-1)
    partly = np.logical_or.reduceat(missing, starts, axis=-1) & ~whole
    if partly.any():
        columns = units.columns_of(
            int(np.flatnonzero(partly.reshape(-1, len(starts)).any(axis=0))[0])
        )
        raise ValueError(
            f"Columns {columns.start} to {columns.stop - 1} are the states of one unit, and some "
            "but not all of them are missing in a row. Set all of them to NaN."
        )
    return whole


class HiddenStates:
    """All states of the hidden units, and what follows from them whatever the row."""

    def __init__(self, model):
        self.rows = all_states(model.hidden).astype(model.dtype)
        self.log_weight = model.hidden.log_weight(self.rows)
        self.fields = model.visible_field(self.rows)
        self.log_partition = model.visible.log_partition(self.fields)
        self.means = model.visible.mean(self.fields)


def conditional_mixture(model, v, missing, every=None):
    """The distribution of the missing values of a row.

    Parameters
    ----------
    model : Model
        One that `can_impute_exactly`.
    v : ndarray of shape (n_visible,)
        The row; missing entries are ignored.
    missing : ndarray of bool of shape (n_visible,)
    every : HiddenStates, default=None
        Those of the model, if they are computed once for many rows.

    Returns
    -------
    mixture : Mixture
    """
    known = np.where(missing, 0, v)[np.newaxis].astype(model.dtype)
    visible = model.visible
    if _bits_of(visible, missing) <= IMPUTE_MISSING:
        means = all_states(visible, np.flatnonzero(missing_units(visible, missing)))
        rows = np.repeat(known, len(means), axis=0)
        rows[:, missing] = means
        return Mixture(softmax(-model.free_energy(rows)), means, None)
    every = HiddenStates(model) if every is None else every
    log_weight = every.log_weight + every.rows @ model.hidden_field(known)[0]
    log_partition = every.log_partition[:, missing_units(visible, missing)]
    log_weight = log_weight + log_partition.sum(axis=1, dtype=np.float64)
    return Mixture(softmax(log_weight), every.means[:, missing], every.fields)


# Imputation.


def impute(model, V, missing, how, n_steps, rng, marginal=None):
    """Fill missing values; exactly where that is possible.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
    missing : ndarray of bool of the same shape
    how : {"mean", "mode", "sample"}
        The mode is the most probable joint state of the missing features that have finitely many
        values, and for the others their mean given that state.
    n_steps : int
        Transitions of a chain.
    rng : Generator
    marginal : default=None
        Of a model with other units beside the features on the visible side, and after them: that
        of the features alone, with `visible` and `free_energy`.

    Returns
    -------
    filled : ndarray of shape (n_rows, n_visible)
        Right in the missing places.
    """
    marginal = model if marginal is None else marginal
    features = marginal.visible
    find_mode = how == "mode" and np.isfinite(features.state_counts).any()
    filled, stream = np.zeros(V.shape), Stream.from_generator(rng)
    some, exact = missing.any(axis=1), can_impute_exactly(model, missing)
    by_chains = some & ~exact
    by_hidden = some & exact & (_bits_of(model.visible, missing) > IMPUTE_MISSING)
    every = HiddenStates(model) if by_hidden.any() else None
    for i in np.flatnonzero(some & exact):
        mixture = conditional_mixture(model, V[i], missing[i], every)
        if how == "sample":
            filled[i] = draw(model, V[i], missing[i], mixture, 1, rng, stream)[0]
        elif find_mode:
            cells = np.flatnonzero(missing[i, : len(features)])
            filled[i, cells] = _mode(features, missing[i, : len(features)], mixture)[cells]
        else:
            filled[i, missing[i]] = mixture.probability @ mixture.means
    if not by_chains.any():
        return filled
    rows = V[by_chains], missing[by_chains]
    if find_mode:
        filled[by_chains] = _mode_by_chains(model, *rows, n_steps, stream, marginal)
    else:
        means, samples = impute_by_chains(model, *rows, n_steps, stream)
        filled[by_chains] = samples if how == "sample" else means
    return filled


def draw(model, v, missing, mixture, n_rows, rng, stream):
    """Rows with the missing values drawn from their joint distribution."""
    chosen = rng.choice(len(mixture.probability), size=n_rows, p=mixture.probability)
    if mixture.fields is None:
        rows = np.repeat(np.asarray(v, model.dtype)[np.newaxis], n_rows, axis=0)
        rows[:, missing] = mixture.means[chosen]
        return rows
    rows = model.visible.sample(mixture.fields[chosen], stream)
    rows[:, ~missing] = v[~missing]
    return rows


def drawn(model, V, missing, rng, stream):
    """A draw of the missing values of each row, which are the same ones in all of them."""
    rows = np.empty(V.shape, model.dtype)
    known, which = np.unique(np.where(missing, 0, V), axis=0, return_inverse=True)
    for k, v in enumerate(known):
        mixture, mine = conditional_mixture(model, v, missing), which.ravel() == k
        rows[mine] = draw(model, v, missing, mixture, int(mine.sum()), rng, stream)
    return rows


def _mode(features, missing, mixture):
    """A row with the most probable joint state of missing features; all else is summed out."""
    row, units = np.zeros(len(features)), np.flatnonzero(missing_units(features, missing))
    counts = features.state_counts[units]
    if mixture.fields is None:
        # The features are the slowest digits of the states that were enumerated.
        p = mixture.probability.reshape(int(counts.prod()), -1)
        row[missing] = mixture.means[p.sum(axis=1).argmax() * p.shape[1], : missing.sum()]
        return row
    with np.errstate(divide="ignore"):
        log_probability = np.log(mixture.probability)
    discrete, continuous = units[np.isfinite(counts)], units[np.isinf(counts)]
    if len(discrete):
        log_factors = _log_factors(features, discrete, mixture.fields)
        codes = mode_of_mixture(log_probability, log_factors)
        log_probability = log_probability + log_factors[:, np.arange(len(codes)), codes].sum(axis=1)
        states = features.unit_states()
        for i, code in zip(discrete, codes, strict=True):
            row[features.columns_of(i)] = states[i][0][code]
    if len(continuous):
        # Their means given that state of the others.
        chosen = np.zeros(len(row), dtype=bool)
        for i in continuous:
            chosen[features.columns_of(i)] = True
        place = np.cumsum(missing) - 1
        row[chosen] = softmax(log_probability) @ mixture.means[:, place[chosen]]
    return row


def _log_factors(features, units, fields):
    """ln p(state | field) of units, −∞ where a unit has fewer states than others.

    Returns
    -------
    log_factors : ndarray of shape (n_rows, n_chosen, n_states)
    """
    states = features.states()
    if features.width == 1 and states is not None:
        log_factors = fields[:, units, np.newaxis].astype(np.float64) * states
        log_factors += features.state_log_weights()[units]
    else:
        each = features.unit_states()
        most = max(len(each[i][0]) for i in units)
        log_factors = np.full((len(fields), len(units), most), -np.inf)
        for k, i in enumerate(units):
            states, log_weights = each[i]
            field = fields[:, features.columns_of(i)].astype(np.float64)
            log_factors[:, k, : len(states)] = log_weights + field @ states.T
    return log_factors - logsumexp(log_factors, axis=2, keepdims=True)


# Chains.


def clamped_chains(model, V, missing, n_steps, stream):
    """Run chains with the observed values clamped.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : ndarray of bool of the same shape
    n_steps : int
        Transitions.
    stream : Stream

    Yields
    ------
    field : ndarray of shape (n_rows, n_visible)
        Of the visible units in this transition.
    states : ndarray of shape (n_rows, n_visible)
        After it.
    """
    observed = ~missing
    chains = np.where(missing, model.visible.mean(0.0), V).astype(model.dtype)
    for _ in range(n_steps):
        H = model.hidden.sample(model.hidden_field(chains), stream)
        field = model.visible_field(H)
        chains = model.visible.sample(field, stream)
        np.copyto(chains, V, where=observed)
        yield field, chains


def impute_by_chains(model, V, missing, n_steps, stream):
    """Means and draws of missing values by chains, as of `clamped_chains`.

    Returns
    -------
    means : ndarray of shape (n_rows, n_visible)
        Means over the second half, from those of the visible units given the hidden.
    samples : ndarray of shape (n_rows, n_visible)
        The last states.
    """
    means, samples, n_counted = np.zeros(V.shape), None, 0
    for step, found in enumerate(clamped_chains(model, V, missing, n_steps, stream)):
        field, samples = found
        if step >= n_steps // 2:
            means += model.visible.mean(field)
            n_counted += 1
    return means / n_counted, samples


def _mode_by_chains(model, V, missing, n_steps, stream, marginal):
    """The most probable state that chains meet; its neighbours are tried as well."""
    n_features, is_cheap = len(marginal.visible), isinstance(marginal, Model)
    stride = 1 if is_cheap else max(1, n_steps // FEW_COMPARED)
    best, least = np.zeros(V.shape, model.dtype), np.full(len(V), np.inf)
    for step, (_, chains) in enumerate(clamped_chains(model, V, missing, n_steps, stream), start=1):
        if step % stride and step < n_steps:
            continue
        found = marginal.free_energy(chains[:, :n_features])
        better = found < least
        best[better], least[better] = chains[better], found[better]
    if isinstance(marginal, Model | ClassModel):
        features = best[:, :n_features], missing[:, :n_features]
        best[:, :n_features] = coordinate_ascent(marginal, *features)
    continuous = np.isinf(np.repeat(model.visible.state_counts, model.visible.widths))
    if continuous[:n_features].any():
        # Means of the others given that state.
        rest = missing & continuous
        rest[:, n_features:] = missing[:, n_features:]
        best = np.where(rest, impute_by_chains(model, best, rest, n_steps, stream)[0], best)
    return best


# The values of one column.


def column_probabilities(model, V, missing, unit, units, n_steps, rng):
    """p(state of a unit | observed cells) of each row.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : ndarray of bool of the same shape
        The unit itself is missing in each row.
    unit : int
        Number of the unit, which has finitely many states: the column, if no unit is wide.
    units : UnitType
        Of the visible layer.
    n_steps : int
        Transitions where chains are needed; the average is over the second half.
    rng : Generator

    Returns
    -------
    probability : ndarray of float64 of shape (n_rows, n_states)
    """
    column, values = units.columns_of(unit), units.unit_states()[unit]
    n_states = len(values[0])
    probability, stream = np.zeros((len(V), n_states)), Stream.from_generator(rng)
    alone = missing.sum(axis=1) == units.widths[unit]
    for rows in np.array_split(np.flatnonzero(alone), 1 + alone.sum() // CHUNK_ROWS):
        probability[rows] = _given_the_others(model, V[rows], column, *values)
    if n_bits(model.hidden) <= IMPUTE_HIDDEN:
        probability[~alone] = _by_hidden(model, V[~alone], missing[~alone], column, *values)
        return probability
    few = can_impute_exactly(model, missing)
    for i in np.flatnonzero(few & ~alone):
        mixture = conditional_mixture(model, V[i], missing[i])
        probability[i] = _of_missing(mixture, missing[i], column, values[0])
    if not few.all():
        chains = clamped_chains(model, V[~few], missing[~few], n_steps, stream)
        counted = islice(chains, n_steps // 2, None, THINNING)
        found = [_given_the_others(model, rows, column, *values) for _, rows in counted]
        probability[~few] = np.mean(found, axis=0)
    return probability


def _by_hidden(model, V, missing, column, states, log_weights):
    """p(state of a unit | observed cells), summed over the states of the hidden units."""
    every, model = HiddenStates(model.in_double()), model.in_double()
    given_hidden = softmax(log_weights + every.fields[:, column] @ states.T, axis=1)
    found = np.empty((len(V), len(states)))
    for rows in row_blocks(len(V), CHUNK_ROWS):
        field = model.hidden_field(np.where(missing[rows], 0, V[rows]))
        log_p = every.log_weight + field @ every.rows.T
        log_p += missing_units(model.visible, missing[rows]) @ every.log_partition.T
        found[rows] = softmax(log_p, axis=1) @ given_hidden
    return found


def _given_the_others(model, V, column, states, log_weights):
    """p(state of a unit | all other visible units), exact; `column` is a slice."""
    rows, weights = np.array(V, model.dtype), model.weights_by_visible[column]
    rows[:, column] = 0
    field = model.hidden_field(rows)
    logs = [
        log_weight + model.hidden.log_partition_sum(field + state.astype(model.dtype) @ weights)
        for state, log_weight in zip(states, log_weights, strict=True)
    ]
    return softmax(np.column_stack(logs), axis=1)


def _of_missing(mixture, missing, column, states):
    """The same, of a mixture over the states of what is missing."""
    place = missing[: column.start].sum()
    values = mixture.means[:, place : place + states.shape[1]]
    return np.array([mixture.probability[(values == s).all(axis=1)].sum() for s in states])
