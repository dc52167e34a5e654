"""Rows with all that their missing categories may be, for the fit of the Gaussians."""

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._fit import Rows
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.model import _incomplete

# Completions of a row that are enumerated at most; the draws that take their place, and their
# sweeps where there are too many to be drawn exactly.
MOST_COMPLETIONS, N_DRAWS, N_STEPS = 64, 30, 100


def completed(network, codes, z, weights):
    """Complete the categories by a network.

    Parameters
    ----------
    network : PottsModel
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell.
    z : ndarray of float64 of shape (n, n_scores)
    weights : ndarray of float64 of shape (n,)

    Returns
    -------
    rows : Rows
        Those with many completions have draws, which are equally probable.
    """
    codes, z, weights = _distinct(codes, z, weights)
    missing = codes < 0
    if not missing.any():
        return Rows.complete(network.one_hot(codes), z, weights)
    sizes = np.where(missing, network.n_values.astype(float), 1.0).prod(axis=1)
    few, many = (np.flatnonzero(s) for s in (sizes <= MOST_COMPLETIONS, sizes > MOST_COMPLETIONS))
    states, owner, n_each = all_completions(codes[few], missing[few], network.n_values)
    owner = np.repeat(few[owner], n_each)
    log_prior = network.log_weight(states)
    log_prior = log_prior - np.repeat(_sums(log_prior, n_each), n_each)
    if len(many):
        repeated = np.repeat(many, N_DRAWS)
        generator = np.random.default_rng(_incomplete.SEED)
        drawn = _incomplete.impute(network, codes[repeated], "sample", N_STEPS, generator)
        states = np.concatenate([states, drawn.astype(states.dtype)])
        owner = np.concatenate([owner, repeated])
        log_prior = np.concatenate([log_prior, np.full(len(repeated), -np.log(N_DRAWS))])
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    x = network.one_hot(states[order])
    return Rows(x, Scores(z[owner]), weights[owner], owner, log_prior[order])


def _distinct(codes, z, weights):
    """Equal rows as one, with the sum of their weights."""
    rows = np.hstack([np.nan_to_num(z, nan=np.inf), codes])
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return codes[first], z[first], np.bincount(which.ravel(), weights)


def _sums(log_weight, n_each):
    """ln Σ exp of each row's completions."""
    if not len(n_each):
        return np.zeros(0)
    ends = np.cumsum(n_each)
    return np.array([
        logsumexp(log_weight[end - n : end]) for end, n in zip(ends, n_each, strict=True)
    ])  # fmt: skip
