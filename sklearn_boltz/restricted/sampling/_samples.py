"""Samples of an RBM: long chains and parallel tempering, also with some columns clamped."""

import numpy as np

from sklearn_boltz.numerics._arrays import empty, is_foreign, like
from sklearn_boltz.restricted.sampling._array_chains import moves_of_chains
from sklearn_boltz.restricted.sampling._gibbs import run_chains


def chain_samples(model, V, n_steps, stream, workers, clamped=None):
    """Make transitions of one chain a row.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where the chains start; changed in place.
    n_steps : int
    stream : Stream
    workers : Workers
    clamped : ndarray of bool of shape (n_visible,), default=None
        Columns that stay as they are.

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
        The states of the chains.
    """
    H = empty(V, (V.shape[0], len(model.hidden)))
    if clamped is None or not clamped.any():
        run_chains(model, V, H, n_steps, stream, workers)
        return V
    if is_foreign(V):
        for _, states in moves_of_chains(model, V, like(V, clamped), n_steps, stream):
            V = states
        return V
    model = model._replace(weights=np.asfortranarray(model.weights))  # copied once
    values = V[:, clamped]
    for _ in range(n_steps):
        run_chains(model, V, H, 1, stream, workers)
        V[:, clamped] = values
    return V


def tempered_samples(model, base, V, n_steps, n_temperatures, stream, workers, clamped=None):
    """States of chains that exchange places with chains at higher temperatures.

    Parameters
    ----------
    model : Model
    base : UnitType
        Visible units at infinite temperature.
    V : ndarray of shape (n_rows, n_visible)
        Where all temperatures start.
    n_steps : int
        Number of rounds: a transition of each chain, then exchanges of neighbours.
    n_temperatures : int
        At least 2.
    stream : Stream
    workers : Workers
    clamped : ndarray of bool of shape (n_visible,), default=None
        Columns that stay as they are.

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
        The states at temperature 1.
    """
    betas = np.linspace(1, 0, n_temperatures)
    models = [model.annealed(beta, base) for beta in betas]
    replicas = np.repeat(V[np.newaxis], n_temperatures, axis=0)
    H = np.empty((len(V), len(model.hidden)), V.dtype)
    rng = stream.generator()
    for step in range(n_steps):
        for tempered, chains in zip(models, replicas, strict=True):
            run_chains(tempered, chains, H, 1, stream, workers)
            if clamped is not None:
                chains[:, clamped] = V[:, clamped]
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
