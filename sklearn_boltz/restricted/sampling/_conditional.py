"""Means, modes and draws of the missing cells of a row given the observed ones."""

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.partition._shares import (
    FIRST_CHAINS,
    LEAST_TEMPERATURES,
    chosen_chains,
    shares_by_chains,
)
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.model._enumeration import n_bits
from sklearn_boltz.restricted.model._model import Model, log_sums_of_states
from sklearn_boltz.restricted.sampling._array_chains import filled_by_chains, moves_of_chains
from sklearn_boltz.restricted.sampling._completions import Completer
from sklearn_boltz.restricted.sampling._modes import coordinate_ascent, mode_of_mixture
from sklearn_boltz.restricted.sampling._observed import (
    Gaps,
    annealed,
    distinct_rows,
    has_few_hidden,
    has_few_missing,
    has_few_states,
    missing_bits,
    missing_units,
    observed_log_weight,
    row_stream,
    spread_over_columns,
)

# Rows of which fields are kept at once.
CHUNK_ROWS = 1000
# States of a chain that are compared, where a comparison costs much more than a transition.
FEW_COMPARED = 50
# States of the hidden units among which the most probable joint state is searched for.
MOST_PARTS = 2**12
# Bits of the hidden units that are summed out for many rows together, however few cells they lack.
FEW_HIDDEN = 12
# Annealed chains of a row, of which one is drawn by its weight; chains that are kept at once.
N_CHAINS, CHUNK_CHAINS = 20, 5000


# Imputation.


def impute(model, base, V, missing, how, n_steps, rng, marginal=None):
    """Fill missing values; exactly where that is possible.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units as in the data, where annealing begins.
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
        Correct in the missing places.
    """
    marginal = model if marginal is None else marginal
    features, units = marginal.visible, missing_units(model.visible, missing)
    missing = spread_over_columns(model.visible, units)
    find_mode = how == "mode" and np.isfinite(features.state_counts).any()
    filled, stream = np.zeros(V.shape), Stream.from_generator(rng)
    some, exact = missing.any(axis=1), has_few_states(model, missing)
    complete, by_chains = Completer(model), np.flatnonzero(some & ~exact)
    for v, rows in distinct_rows(V, missing, some & exact):
        found = complete(v)
        if how == "sample":
            filled[rows] = draw(model, v, found, len(rows), rng, stream)
        elif find_mode:
            filled[rows, : len(features)] = _mode(features, np.isnan(v), found)
        else:
            filled[rows] = found.mean()
    if len(by_chains) and find_mode:
        rows = V[by_chains], missing[by_chains]
        filled[by_chains] = _mode_by_chains(model, *rows, n_steps, stream, marginal)
    elif len(by_chains):
        reduce = draws_of_rows if how == "sample" else means_of_rows
        for rows in np.array_split(by_chains, 1 + len(by_chains) * N_CHAINS // CHUNK_CHAINS):
            filled[rows] = reduce(model, base, V[rows], missing[rows], n_steps, stream)
    return filled


def draw(model, v, found, n_rows, rng, stream):
    """Rows with the missing values drawn from their joint distribution, as of `Completer`."""
    probability = found.probability
    chosen = rng.choice(len(probability), size=n_rows, p=probability)
    if found.fields is None:
        return found.with_values(found.values[chosen]).astype(model.dtype)
    rows = model.visible.sample(found.fields[chosen].astype(model.dtype), stream)
    return np.where(np.isnan(v), rows, v).astype(model.dtype)


def drawn(model, base, V, missing, n_steps, rng, stream):
    """A draw of the missing values of each row, which are the same ones in all of them."""
    rows, complete = np.empty(V.shape, model.dtype), Completer(model)
    missing = np.broadcast_to(missing, V.shape)
    is_exact = has_few_states(model, missing[0])
    for v, mine in distinct_rows(V, missing, np.ones(len(V), dtype=bool)):
        if is_exact:
            rows[mine] = draw(model, v, complete(v), len(mine), rng, stream)
            continue
        # All chains of equal rows are drawn from together.
        chains = np.repeat(v[np.newaxis], max(len(mine), N_CHAINS), axis=0).astype(model.dtype)
        n_temperatures = max(1, n_steps - n_steps // 2)
        log_weights, ends = annealed(Gaps.of(model, chains), base, n_temperatures, stream)
        chosen = rng.permutation(chosen_chains(log_weights[np.newaxis], len(mine), rng)[0])
        rows[mine] = _moved(model, ends[chosen], missing[mine], n_steps // 2, stream)
    return rows


def _mode(features, missing, found):
    """A row with the most probable joint state of missing features; all else is summed out."""
    missing = missing[: len(features)]
    row, units = np.zeros(len(features)), np.flatnonzero(missing_units(features, missing))
    counts, log_probability = features.state_counts[units], found.log_probability
    if found.fields is None:
        # The features are the slowest digits of the states that were enumerated.
        p = np.exp(log_probability).reshape(int(counts.prod()), -1)
        values = found.values[[p.sum(axis=1).argmax() * p.shape[1]]]
        return found.with_values(values)[0, : len(features)]
    most = np.argsort(-log_probability, kind="stable")[:MOST_PARTS]
    found = found.some(most)
    log_probability = found.log_probability
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
        row[columns] = softmax(log_probability) @ found.values[:, columns]
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


def _annealed_chains(model, base, V, missing, n_kept, n_steps, stream):
    """Annealed chains of each row, of which some are kept by their weights.

    A single chain may stay in one mode for good. Those that are kept are in the modes in the right
    proportions. All chains of a row take `n_steps` transitions together.

    Returns
    -------
    states : ndarray of shape (n_rows * n_kept, n_visible)
    """
    rows = np.repeat(np.where(missing, np.nan, V), N_CHAINS, axis=0)
    n_temperatures = max(1, n_steps // N_CHAINS)
    log_weights, states = annealed(Gaps.of(model, rows), base, n_temperatures, stream)
    log_weights = log_weights.reshape(-1, N_CHAINS)
    chosen = chosen_chains(log_weights, n_kept, stream.generator())
    return states[(chosen + N_CHAINS * np.arange(len(V))[:, np.newaxis]).ravel()]


def draws_of_rows(model, base, V, missing, n_steps, stream):
    """States of one chain for each row, drawn by the weights, which then goes on."""
    chosen = _annealed_chains(model, base, V, missing, 1, n_steps, stream)
    return _moved(model, chosen, missing, n_steps // 2, stream)


def means_of_rows(model, base, V, missing, n_steps, stream):
    """Means over chains of each row, which go on for `n_steps` transitions together."""
    states = _annealed_chains(model, base, V, missing, N_CHAINS, n_steps, stream)
    n_moves, clamped = max(1, n_steps // N_CHAINS), np.repeat(~missing, N_CHAINS, axis=0)
    total = sum(
        model.visible.mean(field).astype(np.float64)
        for field, _ in moves_of_chains(model, states, clamped, n_moves, stream)
    )
    return total.reshape(len(V), N_CHAINS, -1).mean(axis=1) / n_moves


def _moved(model, V, missing, n_steps, stream):
    for _, states in moves_of_chains(model, V, ~missing, n_steps, stream):
        V = states
    return V


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


def column_probabilities(model, base, V, missing, unit, units, n_steps, seed, workers):
    """p(state of a unit | observed cells) of each row, which depends on this row alone.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units as in the data, where annealing begins.
    V : ndarray of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : ndarray of bool of the same shape
        The unit itself is missing in each row.
    unit : int
        Number of the unit, which has finitely many states: the column, if no unit is wide.
    units : UnitType
        Of the visible layer.
    n_steps : int
        A fiftieth of the transitions for each value, at most, where annealing is needed.
    seed : int
        With the content of a row, it decides on the random numbers for that row.
    workers : Workers

    Returns
    -------
    probability : ndarray of float64 of shape (n_rows, n_states)
    errors : ndarray of float64 of shape (n_rows,)
        Standard errors, the greatest one of each row; 0 where sums are exact.
    """
    column, values = units.columns_of(unit), units.unit_states()[unit]
    probability, errors = np.zeros((len(V), len(values[0]))), np.zeros(len(V))
    of_units, complete = missing_units(model.visible, missing), Completer(model)
    alone = of_units.sum(axis=1) == 1
    for rows in np.array_split(np.flatnonzero(alone), 1 + alone.sum() // CHUNK_ROWS):
        others = np.array(V[rows], model.dtype)
        others[:, column] = 0
        weights = model.weights_by_visible[column]
        parts = model.hidden_field(others), None, weights, values[0]
        probability[rows] = softmax(values[1] + log_sums_of_states(model, *parts), axis=1)
    by_hidden = np.zeros(len(V), dtype=bool)
    if has_few_hidden(model):
        bits = missing_bits(model.visible, of_units)
        by_hidden = ~alone & (n_bits(model.hidden) <= np.maximum(bits, FEW_HIDDEN))
        rows = V[by_hidden], missing[by_hidden]
        probability[by_hidden] = _by_hidden(complete, *rows, column, *values)
    by_missing = ~(alone | by_hidden) & has_few_missing(model, of_units)
    for v, rows in distinct_rows(V, missing, by_missing):
        # States of the missing units before the unit, its own, and those after it.
        counts = np.where(of_units[rows[0]], model.visible.state_counts, 1)
        shape = int(counts[:unit].prod()), int(counts[unit]), -1
        probability[rows] = complete(v).probability.reshape(shape).sum(axis=(0, 2))
    drawn = list(distinct_rows(V, missing, ~(alone | by_hidden | by_missing)))

    def annealed_row(task):
        v, _ = task
        states = np.repeat(v[np.newaxis], len(values[0]), axis=0)
        states[:, column] = values[0]
        return _annealed_probabilities(model, base, states, n_steps, row_stream(seed, v))

    work = len(drawn) * FIRST_CHAINS * LEAST_TEMPERATURES * len(values[0]) * model.weights.size
    found = workers.map(annealed_row, drawn, work) if drawn else []
    for (_, rows), (p, error) in zip(drawn, found, strict=True):
        probability[rows], errors[rows] = p, error
    return probability, errors


def _annealed_probabilities(model, base, V, n_steps, stream):
    """p of some rows that differ in one value, what is missing summed out; its standard error."""
    gaps = Gaps.of(model, V)
    known = observed_log_weight(model.visible, gaps.V, gaps.missing)
    base = base.chosen(np.flatnonzero(gaps.missing[0]))

    def weights_of_chains(n_chains, n_temperatures):
        log_weights, _ = annealed(gaps.repeated(n_chains), base, n_temperatures, stream)
        return log_weights.reshape(len(V), n_chains)

    return shares_by_chains(known, weights_of_chains, n_steps)


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
