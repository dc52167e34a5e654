"""Rows with missing cells: what a network of pairs says of these, given the observed cells.

Given the observed cells of a row, the missing ones are a network of pairs, too, and fall into
groups that nothing connects. A group with few joint states is enumerated; else chains serve, with
random numbers that are the same for every row.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from sklearn_boltz._completion import patterns
from sklearn_boltz.fully_visible._sampling import (
    annealed_log_partition,
    gibbs_complete,
    gibbs_mode,
    gibbs_probabilities,
)

# Joint states of connected missing cells of a row that are enumerated at most.
MAX_STATES = 2**20
# Entries of a temporary array of rows by joint states.
CHUNK = 2**22
# Where there are more states, and nothing is random for the user: the seed, the chains of a row,
# their sweeps, and the temperatures of annealing.
SEED, N_CHAINS, N_STEPS, N_TEMPERATURES = 0, 200, 200, 500


class Part(NamedTuple):
    """Some rows with the same missing cells.

    Attributes
    ----------
    rows : ndarray of int
    groups : list of ndarray of int, or None
        The missing columns in sets that nothing connects; None if one has too many states.
    """

    rows: np.ndarray
    groups: list | None


def parts(model, codes):
    """Yield a Part for the rows of each pattern of missing cells, not too many at once."""
    adjacency = model.adjacency()
    for rows, unknown in patterns(codes < 0):
        _, label = connected_components(adjacency[np.ix_(unknown, unknown)], directed=False)
        groups = [unknown[label == g] for g in range(label.max(initial=-1) + 1)]
        sizes = [np.prod(model.n_values[group], dtype=float) for group in groups]
        largest = max(sizes, default=1.0)
        if largest > MAX_STATES:
            yield Part(rows, None)
            continue
        step = max(1, int(CHUNK // largest))
        for start in range(0, len(rows), step):
            yield Part(rows[start : start + step], groups)


class Joint(NamedTuple):
    """All joint states of some missing columns, for rows that miss the same.

    Attributes
    ----------
    columns : ndarray of int of shape (k,)
    states : ndarray of int of shape (n_states, k)
    log_weights : ndarray of shape (n_rows, n_states)
        Not normalised.
    """

    columns: np.ndarray
    states: np.ndarray
    log_weights: np.ndarray

    @classmethod
    def of(cls, potts, fields, columns):
        """From the fields of the observed cells, (n_rows, Q), intercepts included."""
        states = np.zeros((1, 0), dtype=np.int64)
        table, pairs = np.zeros((len(fields), 1)), np.zeros(1)
        for j in columns:
            own, m = np.arange(potts.starts[j], potts.starts[j + 1]), potts.n_values[j]
            pairs = (pairs[:, None] + influence(potts, columns, states, own)).ravel()
            table = (table[:, :, None] + fields[:, None, own]).reshape(len(fields), -1)
            states = np.column_stack(
                [np.repeat(states, m, axis=0), np.tile(np.arange(m), len(states))]
            )
        return cls(columns, states, table + pairs)

    def log_probabilities(self):
        """ln p of the joint states given the observed cells."""
        return self.log_weights - log_sum_exp(self.log_weights, axis=1)[:, None]


def influence(potts, columns, states, own):
    """What joint states of the first of some columns add to the fields of some values."""
    total = np.zeros((len(states), len(own)))
    for place, values in enumerate(states.T):
        lines = slice(potts.starts[columns[place]], potts.starts[columns[place] + 1])
        total += potts.coupling[lines][:, own][values]
    return total


def log_sum_exp(values, axis):
    """ln Σ exp along an axis; SciPy's takes longer on small arrays."""
    peak = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - peak).sum(axis=axis)) + peak.squeeze(axis)


# Sums over the missing cells.


def log_sums(model, codes, base):
    """ln Σ exp(log_weight) over the completions of each row."""
    potts = model.potts()
    result = potts.log_weight(codes)
    for rows, groups in parts(model, codes):
        if groups is None:
            betas = np.linspace(0, 1, N_TEMPERATURES + 1)
            for i in rows:
                generator = np.random.default_rng(SEED)
                result[i] = annealed_log_partition(
                    model, base, betas, N_CHAINS, generator, codes[i]
                ).value
            continue
        fields = potts.fields(codes[rows])
        for group in groups:
            result[rows] += log_sum_exp(Joint.of(potts, fields, group).log_weights, axis=1)
    return result


def log_conditionals(model, codes, columns=None):
    """ln p(x_j = a | the observed cells but x_j) in the one-hot layout, (n, Q).

    Parameters
    ----------
    model : PairwiseModel
    codes : ndarray of int of shape (n, d)
    columns : sequence of int, default=None
        The only columns that are asked for; what stands for others is of no use.
    """
    potts = model.potts()
    columns = range(codes.shape[1]) if columns is None else columns
    result = np.empty((len(codes), potts.starts[-1]))
    for rows, groups in parts(model, codes):
        fields = potts.fields(codes[rows])
        if groups is None:
            for place, i in enumerate(rows):
                result[i] = _by_chains(model, potts, codes[i], fields[place], columns)
            continue
        for group in groups:
            joint = Joint.of(potts, fields, group)
            _sum_out(potts, codes[rows], fields, joint, columns)
        result[rows] = potts.log_softmax(fields)
    return result


def _sum_out(potts, codes, fields, joint, columns):
    """Turn fields, in place, into those of observed columns with some missing ones summed out.

    Those of the missing columns become their own log-probabilities.
    """
    log_p, places = joint.log_probabilities(), joint.columns.tolist()
    observed = [j for j in columns if codes[0, j] >= 0]
    step = max(1, int(CHUNK // (log_p.size * potts.n_values.max())))
    for start in range(0, len(observed), step):
        part = observed[start : start + step]
        values = potts.places(part)
        extra = influence(potts, joint.columns, joint.states, values)
        if not extra.any():
            continue
        # p(missing | observed) without what the observed value itself contributed.
        own = np.cumsum(potts.n_values[part]) - potts.n_values[part] + codes[:, part]
        own = np.repeat(own, potts.n_values[part], axis=1)
        change = extra[None] - extra.T[own].transpose(0, 2, 1)
        fields[:, values] += log_sum_exp(log_p[:, :, None] + change, axis=1)
    for j in set(places) & set(columns):
        values = joint.states[:, places.index(j)]
        for a in range(potts.n_values[j]):
            fields[:, potts.starts[j] + a] = log_sum_exp(log_p[:, values == a], axis=1)


def _by_chains(model, potts, row, fields, columns):
    """`log_conditionals` of one row, from chains that begin in the same way for every row."""
    generator = np.random.default_rng(SEED)
    chains = gibbs_complete(model, np.tile(row, (N_CHAINS, 1)), N_STEPS, generator)
    unknown = np.flatnonzero(row < 0)
    missing = potts.places(unknown)
    draws = Joint(unknown, chains.codes[:, unknown], np.zeros((1, N_CHAINS)))
    fields = fields[None].copy()
    observed = [j for j in columns if row[j] >= 0]
    _sum_out(potts, row[None], fields, draws, observed)
    total = np.zeros(potts.starts[-1])
    for _ in range(N_STEPS):
        chains.sweep(model.intercept)
        total += chains.probabilities(model.intercept).mean(axis=0)
    fields[:, missing] = np.log(np.maximum(total[missing], 1e-300))
    return potts.log_softmax(fields)[0]


# Values for the missing cells.


def impute(model, codes, how, n_steps, generator):
    """Values for the missing cells of each row, given the others.

    Parameters
    ----------
    model : PairwiseModel
    codes : ndarray of int of shape (n, d)
    how : {"mean", "mode", "sample"}
        The mean of the codes, the most probable joint state, or a draw.
    n_steps : int
        Sweeps of the chains, where there are too many joint states.
    generator : Generator

    Returns
    -------
    filled : ndarray of float64 of shape (n, d)
    """
    potts, filled, many = model.potts(), codes.astype(np.float64), []
    for rows, groups in parts(model, codes):
        if groups is None:
            many.append(rows)
            continue
        fields = potts.fields(codes[rows])
        for group in groups:
            joint = Joint.of(potts, fields, group)
            filled[np.ix_(rows, group)] = _reduced(joint, how, generator)
    if many:
        many = np.sort(np.concatenate(many))
        missing = np.zeros(codes.shape, dtype=bool)
        missing[many] = codes[many] < 0
        found = _impute_by_chains(model, codes[many], how, n_steps, generator)
        filled[missing] = found[codes[many] < 0]
    return filled


def _reduced(joint, how, generator):
    """One value of each missing column for each row."""
    if how == "mode":
        return joint.states[joint.log_weights.argmax(axis=1)]
    p = np.exp(joint.log_probabilities())
    if how == "mean":
        return p @ joint.states
    cumulated = np.cumsum(p, axis=1)
    uniform = generator.random(len(p)) * cumulated[:, -1]
    return joint.states[(cumulated <= uniform[:, None]).sum(axis=1)]


def _impute_by_chains(model, codes, how, n_steps, generator):
    if how == "mode":
        return gibbs_mode(model, codes, n_steps, generator)
    if how == "sample":
        return gibbs_complete(model, codes, n_steps, generator).codes
    p = gibbs_probabilities(model, codes, n_steps, generator)
    values = np.concatenate([np.arange(m) for m in model.n_values])
    return np.add.reduceat(p * values, model.starts[:-1], axis=1)


def cell_probabilities(model, codes, max_states, n_steps, generator):
    """p(x_j = a | the observed cells) of the missing cells in the one-hot layout, (n, Q).

    What stands for observed cells is of no use. Rows whose missing cells have more than
    `max_states` joint states take chains.
    """
    potts = model.potts()
    result = np.empty((len(codes), potts.starts[-1]))
    n_states = np.where(codes < 0, potts.n_values.astype(float), 1.0).prod(axis=1)
    many = np.flatnonzero(n_states > max_states)
    few = np.flatnonzero(n_states <= max_states)
    if len(many):
        result[many] = gibbs_probabilities(potts, codes[many], n_steps, generator)
    for part in parts(model, codes[few]):
        rows = few[part.rows]
        fields = potts.fields(codes[rows])
        for group in part.groups:
            joint = Joint.of(potts, fields, group)
            _sum_out(potts, codes[rows], fields, joint, group)
        result[rows] = np.exp(potts.log_softmax(fields))
    return result


def column_probabilities(model, codes, column, n_steps, generator):
    """p(x_column | the observed cells) of each row, (n, n_values[column]).

    What stands in the column itself is ignored.
    """
    codes = codes.copy()
    codes[:, column] = -1
    own = slice(model.starts[column], model.starts[column + 1])
    result = np.empty((len(codes), own.stop - own.start))
    many = []
    for rows, groups in parts(model, codes):
        if groups is None:
            many.append(rows)
            continue
        result[rows] = np.exp(log_conditionals(model, codes[rows], [column])[:, own])
    if many:
        many = np.sort(np.concatenate(many))
        result[many] = gibbs_probabilities(model, codes[many], n_steps, generator)[:, own]
    return result


def draw(model, codes, n_draws, n_steps, generator):
    """Completions of rows by chains of their own, (n, n_draws, d)."""
    repeated = np.repeat(codes, n_draws, axis=0)
    drawn = gibbs_complete(model, repeated, n_steps, generator).codes
    return drawn.reshape(len(codes), n_draws, codes.shape[1])
