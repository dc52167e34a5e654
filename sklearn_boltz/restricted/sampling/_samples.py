"""Samples of an RBM: long chains, parallel tempering, and missing values given the others."""

import numpy as np
from scipy.special import softmax

from sklearn_boltz._random import Stream
from sklearn_boltz.restricted.model._enumeration import all_states, n_bits
from sklearn_boltz.restricted.sampling._gibbs import run_chains

# Bits of hidden units, or of missing values of a row, that are enumerated to impute exactly.
IMPUTE_HIDDEN, IMPUTE_MISSING = 12, 10


def chain_samples(model, V, n_steps, stream, workers):
    """States of one chain a row after some transitions; `V` is changed in place."""
    run_chains(model, V, np.empty((len(V), len(model.hidden)), V.dtype), n_steps, stream, workers)
    return V


def tempered_samples(model, base, V, n_steps, n_temperatures, stream, workers):
    """States of chains that exchange places with chains at higher temperatures.

    Parameters
    ----------
    model : Model
    base : unit law
        Of the visible units at infinite temperature.
    V : ndarray of shape (n_rows, n_visible)
        Where all temperatures start.
    n_steps : int
        Number of rounds: a transition of each chain, then exchanges of neighbours.
    n_temperatures : int
        At least 2.
    stream : Stream
    workers : Workers

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
        The states at temperature 1.
    """
    betas = np.linspace(1, 0, n_temperatures)
    models = [model.fallen(beta, base) for beta in betas]
    replicas = np.repeat(V[np.newaxis], n_temperatures, axis=0)
    H = np.empty((len(V), len(model.hidden)), V.dtype)
    rng = np.random.default_rng([stream.seed, stream.take(1)])
    for step in range(n_steps):
        for tempered, chains in zip(models, replicas, strict=True):
            run_chains(tempered, chains, H, 1, stream, workers)
        for cold in range(step % 2, n_temperatures - 1, 2):
            _exchange(models[cold : cold + 2], replicas[cold : cold + 2], rng)
    return replicas[0].copy()


def _exchange(models, replicas, rng):
    """Let rows of two temperatures change places with the probability of Metropolis."""
    log_ratio = sum(
        sign * models[i].free_energy(replicas[j])
        for i, j, sign in [(0, 0, 1), (1, 1, 1), (0, 1, -1), (1, 0, -1)]
    )
    exchanged = np.log(rng.random(len(log_ratio))) < log_ratio
    replicas[:, exchanged] = replicas[::-1, exchanged]


def impute(model, V, missing, how, n_steps, rng):
    """Fill missing values; exactly where that is possible.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
    missing : ndarray of bool of the same shape
    how : {"mean", "mode", "sample"}
        The mode is the state nearest to the mean, for two states the likelier one; where there
        is a continuum of values, it is the mean.
    n_steps : int
        Transitions of a chain.
    rng : Generator

    Returns
    -------
    filled : ndarray of shape (n_rows, n_visible)
        Right in the missing places.
    """
    filled = np.zeros(V.shape)
    stream = Stream.from_generator(rng)
    by_chains = np.zeros(len(V), dtype=bool)
    for i in np.flatnonzero(missing.any(axis=1)):
        if not can_impute_exactly(model, missing[i]):
            by_chains[i] = True
            continue
        probability, means, fields = impute_exactly(model, V[i], missing[i])
        if how != "sample":
            filled[i, missing[i]] = probability @ means
            continue
        k = rng.choice(len(means), p=probability)
        if fields is None:
            filled[i, missing[i]] = means[k]
        else:
            filled[i] = model.visible.sample(fields[k : k + 1], stream)[0]
    if by_chains.any():
        means, samples = impute_by_chains(model, V[by_chains], missing[by_chains], n_steps, stream)
        filled[by_chains] = samples if how == "sample" else means
    return nearest_state(model.visible, filled) if how == "mode" else filled


def nearest_state(units, means):
    """The nearest value that a unit can have, for each mean; a mean itself in a continuum."""
    states = units.states()
    if states is None:
        return means
    return states[np.abs(means[..., np.newaxis] - states).argmin(axis=-1)]


def impute_exactly(model, v, missing):
    """The law of the missing values of a row as a mixture of independent values.

    Parameters
    ----------
    model : Model
        One that `can_impute_exactly`.
    v : ndarray of shape (n_visible,)
        The row; missing entries are ignored.
    missing : ndarray of bool of shape (n_visible,)

    Returns
    -------
    probability : ndarray of shape (n_states,)
        Of each state of what is enumerated: the missing values, or the hidden units.
    means : ndarray of shape (n_states, n_missing)
        Means of the missing values given that state.
    fields : ndarray of shape (n_states, n_visible) or None
        Fields of all visible units given that state; None if it is the missing values.
    """
    known = np.where(missing, 0, v)[np.newaxis].astype(model.dtype)
    visible, hidden = model.visible, model.hidden
    if _bits_of(visible, missing) <= IMPUTE_MISSING:
        means = all_states(visible, int(missing.sum()))
        rows = np.repeat(known, len(means), axis=0)
        rows[:, missing] = means
        return softmax(-model.free_energy(rows)), means, None
    H = all_states(hidden, len(hidden)).astype(model.dtype)
    fields = model.visible_field(H)
    log_weight = hidden.log_weight(H) + H @ model.hidden_field(known)[0]
    log_partition = visible.log_partition(fields)[:, missing]
    log_weight = log_weight + log_partition.sum(axis=1, dtype=np.float64)
    return softmax(log_weight), visible.mean(fields)[:, missing], fields


def _bits_of(units, chosen):
    """The binary logarithm of the number of states of some units."""
    return n_bits(units) / len(units) * chosen.sum()


def can_impute_exactly(model, missing):
    """Whether the states of the missing values or of the hidden units are few."""
    return (
        _bits_of(model.visible, missing) <= IMPUTE_MISSING or n_bits(model.hidden) <= IMPUTE_HIDDEN
    )


def impute_by_chains(model, V, missing, n_steps, stream):
    """Run chains with the observed values held fast.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Missing entries are ignored.
    missing : ndarray of bool of the same shape
    n_steps : int
        Transitions; the means are over the second half.
    stream : Stream

    Returns
    -------
    means : ndarray of shape (n_rows, n_visible)
        Estimated conditional means, from the means of the visible units given the hidden.
    samples : ndarray of shape (n_rows, n_visible)
        The last states.
    """
    observed = ~missing
    chains = np.where(missing, model.visible.mean(0.0), V).astype(model.dtype)
    means, n_counted = np.zeros(V.shape), 0
    for step in range(n_steps):
        H = model.hidden.sample(model.hidden_field(chains), stream)
        field = model.visible_field(H)
        chains = model.visible.sample(field, stream)
        np.copyto(chains, V, where=observed)
        if step >= n_steps // 2:
            means += model.visible.mean(field)
            n_counted += 1
    return means / n_counted, chains
