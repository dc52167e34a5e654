"""Rows with missing cells: what a network of pairs says of these, given the observed cells.

Given the observed cells of a row, the missing ones are a network of pairs, too, and fall into
groups that nothing connects. A group with few joint states is enumerated; else chains serve, with
random numbers that are the same for every row.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from sklearn_boltz.missing._completion import patterns
from sklearn_boltz.networks.model._joint import CHUNK, log_sum_exp
from sklearn_boltz.networks.sampling._sampling import (
    annealed_log_partition,
    gibbs_complete,
    gibbs_mode,
    gibbs_probabilities,
)

# Joint states of connected missing cells of a row that are enumerated at most.
MAX_STATES = 2**20
# Where there are more states, and nothing is random for the user: the seed, the chains of a row,
# their sweeps, and the temperatures of annealing.
SEED, N_CHAINS, N_STEPS, N_TEMPERATURES = 0, 200, 200, 500
# Annealing for the values of a column: chains for each value; the temperatures, which are doubled
# until the standard errors of the probabilities, and of their logarithms before they are
# normalised, are this small, or there are so many.
N_CHAINS_OF_VALUE, LEAST_TEMPERATURES, MOST_TEMPERATURES = 100, 25, 1600
MAX_ERROR, MAX_LOG_ERROR = 0.03, 0.5
# The chains that find the rates of the independent columns where it begins, their sweeps before
# and while these are counted, and the least rate.
N_PILOT, N_PILOT_STEPS, LEAST_RATE = 50, 10, 0.01


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


# Sums over the missing cells.


def log_sums(model, codes, base):
    """ln Σ exp(log_weight) over the completions of each row."""
    result = model.log_weight(codes)
    for rows, groups in parts(model, codes):
        if groups is None:
            betas = np.linspace(0, 1, N_TEMPERATURES + 1)
            for i in rows:
                generator = np.random.default_rng(SEED)
                result[i] = annealed_log_partition(
                    model, base, betas, N_CHAINS, generator, codes[i]
                ).value
            continue
        fields = model.value_fields(codes[rows])
        for group in groups:
            result[rows] += model.joint(codes[rows], fields, group).log_partition()
    return result


def log_conditionals(model, codes, columns=None):
    """ln p(x_j = a | the observed cells but x_j) in the one-hot layout, (n, Q).

    Parameters
    ----------
    model : DiscreteModel
    codes : ndarray of int of shape (n, d)
    columns : sequence of int, default=None
        The only columns that are asked for; what stands for others is of no use.
    """
    columns = range(codes.shape[1]) if columns is None else columns
    result = np.empty((len(codes), model.starts[-1]))
    for rows, groups in parts(model, codes):
        if groups is None:
            for i in rows:
                result[i] = _by_chains(model, codes[i])
            continue
        fields = model.value_fields(codes[rows])
        joints = [model.joint(codes[rows], fields, group) for group in groups]
        observed = [j for j in columns if codes[rows[0], j] >= 0]
        for joint in joints:
            for values, gain in joint.gains(codes[rows], observed):
                fields[:, values] += gain
            for place, j in enumerate(joint.columns):
                if j in columns:
                    own = slice(model.starts[j], model.starts[j + 1])
                    fields[:, own] = joint.log_marginal(place)
        result[rows] = model.log_softmax(fields)
    return result


def _by_chains(model, row):
    """`log_conditionals` of one row, from chains that begin in the same way for every row."""
    generator = np.random.default_rng(SEED)
    chains = gibbs_complete(model, np.tile(row, (N_CHAINS, 1)), N_STEPS, generator)
    # The sums over the missing cells with another value of an observed one, and with its own, have
    # the mean of p(other | all cells) / p(own | all cells) as their ratio.
    log_p = model.log_conditionals(chains.codes)
    own = np.repeat(model.starts[:-1] + np.maximum(row, 0), model.n_values)
    fields = log_sum_exp(log_p - log_p[:, own], axis=0)
    total = np.zeros(model.starts[-1])
    for _ in range(N_STEPS):
        chains.sweep(model.intercept)
        total += chains.probabilities(model.intercept).mean(axis=0)
    missing = np.repeat(row < 0, model.n_values)
    fields[missing] = np.log(np.maximum(total[missing], 1e-300))
    return model.log_softmax(fields)


# Values for the missing cells.


def impute(model, codes, how, n_steps, generator):
    """Values for the missing cells of each row, given the others.

    Parameters
    ----------
    model : DiscreteModel
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
    filled, many = codes.astype(np.float64), []
    for rows, groups in parts(model, codes):
        if groups is None:
            many.append(rows)
            continue
        # Equal rows have one sum over the joint states.
        distinct, place = np.unique(codes[rows], axis=0, return_inverse=True)
        fields = model.value_fields(distinct)
        for group in groups:
            joint = model.joint(distinct, fields, group)
            filled[np.ix_(rows, group)] = joint.reduced(how, generator, place.ravel())
    if many:
        many = np.sort(np.concatenate(many))
        missing = np.zeros(codes.shape, dtype=bool)
        missing[many] = codes[many] < 0
        found = _impute_by_chains(model, codes[many], how, n_steps, generator)
        filled[missing] = found[codes[many] < 0]
    return filled


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
    result = np.empty((len(codes), model.starts[-1]))
    n_states = np.where(codes < 0, model.n_values.astype(float), 1.0).prod(axis=1)
    many = np.flatnonzero(n_states > max_states)
    few = np.flatnonzero(n_states <= max_states)
    if len(many):
        result[many] = gibbs_probabilities(model, codes[many], n_steps, generator)
    for some, groups in parts(model, codes[few]):
        rows = few[some]
        fields = model.value_fields(codes[rows])
        for group in groups:
            joint = model.joint(codes[rows], fields, group)
            for place, j in enumerate(joint.columns):
                own = slice(model.starts[j], model.starts[j + 1])
                fields[:, own] = joint.log_marginal(place)
        result[rows] = np.exp(model.log_softmax(fields))
    return result


def column_probabilities(model, codes, column, workers):
    """p(x_column | the observed cells) of each row, which depends on this row alone.

    What stands in the column itself is ignored. Chains seldom pass between values of a column to
    which all others are coupled. So rows with many joint states take p(x_column = a, the observed
    cells) from chains that hold the value a, by annealed importance sampling. The random numbers
    are the same for every row and value.

    Parameters
    ----------
    model : DiscreteModel
    codes : ndarray of int of shape (n, d)
    column : int
    workers : Workers

    Returns
    -------
    p : ndarray of float64 of shape (n, n_values[column])
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
        many = np.concatenate(many)
        distinct, place = np.unique(codes[many], axis=0, return_inverse=True)
        n_sweeps = len(distinct) * model.n_values[column] * LEAST_TEMPERATURES * N_CHAINS_OF_VALUE
        found = workers.map(
            lambda row: _annealed(model, row, column), distinct, n_sweeps * model.starts[-1]
        )
        result[many] = np.array(found)[place.ravel()]
    return result


def _annealed(model, row, column):
    """p(x_column | the observed cells) of one row."""
    n_values, n_temperatures = model.n_values[column], LEAST_TEMPERATURES
    rows = np.tile(row, (n_values, 1))
    rows[:, column] = np.arange(n_values)
    bases = [_independent_intercept(model, one) for one in rows]
    while True:
        betas = np.linspace(0, 1, n_temperatures + 1)
        found = [
            annealed_log_partition(
                model, base, betas, N_CHAINS_OF_VALUE, np.random.default_rng(SEED), one
            )
            for base, one in zip(bases, rows, strict=True)
        ]
        p = softmax([estimate.value for estimate in found])
        log_errors = np.array([estimate.std_err for estimate in found])
        # d p_a / d ln w_b = p_a (δ_ab - p_b).
        slopes = p[:, None] * (np.eye(n_values) - p)
        error = np.sqrt(slopes**2 @ log_errors**2).max()
        is_exact_enough = error <= MAX_ERROR and log_errors.max() <= MAX_LOG_ERROR
        if is_exact_enough or n_temperatures >= MOST_TEMPERATURES:
            return p
        n_temperatures *= 2


def _independent_intercept(model, row):
    """Intercepts of independent columns with the rates that chains find given a row."""
    generator = np.random.default_rng(SEED)
    chains = gibbs_complete(model, np.tile(row, (N_PILOT, 1)), N_PILOT_STEPS, generator)
    rates = np.zeros(model.starts[-1])
    for _ in range(N_PILOT_STEPS):
        chains.sweep(model.intercept)
        rates += chains.probabilities(model.intercept).mean(axis=0) / N_PILOT_STEPS
    return model.independent_intercept(np.log(np.maximum(rates, LEAST_RATE)))


def draw(model, codes, n_draws, n_steps, generator):
    """Completions of rows by chains of their own, (n, n_draws, d)."""
    repeated = np.repeat(codes, n_draws, axis=0)
    drawn = gibbs_complete(model, repeated, n_steps, generator).codes
    return drawn.reshape(len(codes), n_draws, codes.shape[1])
