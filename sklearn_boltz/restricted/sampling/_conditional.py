"""What follows from the observed cells of a row: means, modes and draws of the others."""

from itertools import islice

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._array_chains import filled_by_chains, moves_of_chains
from sklearn_boltz.restricted.sampling._modes import coordinate_ascent, mode_of_mixture
from sklearn_boltz.restricted.sampling._observed import (
    Completer,
    has_few_hidden,
    has_few_states,
    missing_units,
    spread_over_columns,
)

# Rows of which fields are kept at once.
CHUNK_ROWS = 1000
# Of the states of a chain, one in this many counts for a probability: others are much like it, and
# each costs as much as a transition.
THINNING = 5
# States of a chain that are compared, where a comparison costs much more than a transition.
FEW_COMPARED = 50


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
    missing = spread_over_columns(model.visible, missing_units(model.visible, missing))
    find_mode = how == "mode" and np.isfinite(features.state_counts).any()
    filled, stream = np.zeros(V.shape), Stream.from_generator(rng)
    some, exact = missing.any(axis=1), has_few_states(model, missing)
    complete, by_chains = Completer(model), some & ~exact
    for i in np.flatnonzero(some & exact):
        v = np.where(missing[i], np.nan, V[i])
        found = complete(v)
        if how == "sample":
            filled[i] = draw(model, v, found, 1, rng, stream)[0]
        elif find_mode:
            cells = np.flatnonzero(missing[i, : len(features)])
            filled[i, cells] = _mode(features, missing[i, : len(features)], found)[cells]
        else:
            filled[i] = found.probability @ found.V
    if not by_chains.any():
        return filled
    rows = V[by_chains], missing[by_chains]
    if find_mode:
        filled[by_chains] = _mode_by_chains(model, *rows, n_steps, stream, marginal)
    else:
        how = "sample" if how == "sample" else "mean"
        filled[by_chains] = filled_by_chains(model, *rows, how, n_steps, stream)
    return filled


def draw(model, v, found, n_rows, rng, stream):
    """Rows with the missing values drawn from their joint distribution, as of `Completer`."""
    probability = found.probability
    chosen = rng.choice(len(probability), size=n_rows, p=probability)
    if found.fields is None:
        return found.V[chosen].astype(model.dtype)
    rows = model.visible.sample(found.fields[chosen].astype(model.dtype), stream)
    return np.where(np.isnan(v), rows, v).astype(model.dtype)


def drawn(model, V, missing, rng, stream):
    """A draw of the missing values of each row, which are the same ones in all of them."""
    rows, complete = np.empty(V.shape, model.dtype), Completer(model)
    known, which = np.unique(np.where(missing, 0, V), axis=0, return_inverse=True)
    for k, v in enumerate(np.where(missing, np.nan, known)):
        mine = which.ravel() == k
        rows[mine] = draw(model, v, complete(v), int(mine.sum()), rng, stream)
    return rows


def _mode(features, missing, found):
    """A row with the most probable joint state of missing features; all else is summed out."""
    row, units = np.zeros(len(features)), np.flatnonzero(missing_units(features, missing))
    counts, log_probability = features.state_counts[units], found.log_probability
    if found.fields is None:
        # The features are the slowest digits of the states that were enumerated.
        p = np.exp(log_probability).reshape(int(counts.prod()), -1)
        return found.V[p.sum(axis=1).argmax() * p.shape[1], : len(features)]
    discrete, continuous = units[np.isfinite(counts)], units[np.isinf(counts)]
    if len(discrete):
        log_factors = _log_factors(features, discrete, found.fields)
        codes = mode_of_mixture(log_probability, log_factors)
        log_probability = log_probability + log_factors[:, np.arange(len(codes)), codes].sum(axis=1)
        states = features.unit_states()
        for i, code in zip(discrete, codes, strict=True):
            row[features.columns_of(i)] = states[i][0][code]
    # The means of the others given that state of these.
    for i in continuous:
        columns = features.columns_of(i)
        row[columns] = softmax(log_probability) @ found.V[:, columns]
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

    Returns
    -------
    chains : iterator
        As of `moves_of_chains`.
    """
    chains = np.where(missing, model.visible.mean(0.0), V).astype(model.dtype)
    return moves_of_chains(model, chains, ~missing, n_steps, stream)


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
        means = filled_by_chains(model, best, rest, "mean", n_steps, stream)
        best = np.where(rest, means, best)
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
    complete = Completer(model)
    if has_few_hidden(model):
        probability[~alone] = _by_hidden(complete, V[~alone], missing[~alone], column, *values)
        return probability
    few = has_few_states(model, missing)
    for i in np.flatnonzero(few & ~alone):
        found = complete(np.where(missing[i], np.nan, V[i]))
        are = [(found.V[:, column] == state).all(axis=1) for state in values[0]]
        probability[i] = np.array(are) @ found.probability
    if not few.all():
        chains = clamped_chains(model, V[~few], missing[~few], n_steps, stream)
        counted = islice(chains, n_steps // 2, None, THINNING)
        found = [_given_the_others(model, rows, column, *values) for _, rows in counted]
        probability[~few] = np.mean(found, axis=0)
    return probability


def _by_hidden(complete, V, missing, column, states, log_weights):
    """p(state of a unit | observed cells), summed over the states of the hidden units."""
    model, (H, log_weight, fields, log_partition, _) = complete.exact, complete.hidden
    given_hidden = softmax(log_weights + fields[:, column] @ states.T, axis=1)
    found = np.empty((len(V), len(states)))
    for rows in row_blocks(len(V), CHUNK_ROWS):
        field = model.hidden_field(np.where(missing[rows], 0, V[rows]))
        log_p = log_weight + field @ H.T
        log_p += missing_units(model.visible, missing[rows]) @ log_partition.T
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
