"""Rows with all that their missing categories may be, for the fit of the Gaussians."""

import numpy as np

from sklearn_boltz.missing._completion import all_completions
from sklearn_boltz.networks.location._fit import Rows, log_sums
from sklearn_boltz.networks.location._gaussians import Scores
from sklearn_boltz.networks.sampling._sampling import gibbs_complete

# Completions of a row that are enumerated at most; the draws that take their place, the sweeps that
# lead to each, and their seed: a fit is deterministic. With more, the likelihood of held-out rows
# was no greater.
MOST_COMPLETIONS, N_DRAWS, N_STEPS, SEED = 32, 10, 100, 0


def completed(network, codes, scores, weights):
    """Complete the categories by a network.

    Parameters
    ----------
    network : PottsModel
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell.
    scores : list of ndarray of float64 of shape (n, n_scores)
        By different transforms.
    weights : ndarray of float64 of shape (n,)

    Returns
    -------
    rows : list of Rows
        With each of these scores. Rows with many completions have draws, which are equally
        probable.
    """
    first, weights = _distinct(codes, scores[0], weights)
    codes, scores = codes[first], [z[first] for z in scores]
    states, owner, log_prior = _completions(network, codes)
    x = network.one_hot(states)
    return [Rows(x, Scores(z[owner]), weights[owner], owner, log_prior) for z in scores]


def _completions(network, codes):
    """Codes without gaps, whose they are, and ln p given the observed categories."""
    missing = codes < 0
    sizes = np.where(missing, network.n_values.astype(float), 1.0).prod(axis=1)
    few, many = (np.flatnonzero(s) for s in (sizes <= MOST_COMPLETIONS, sizes > MOST_COMPLETIONS))
    states, owner, n_each = all_completions(codes[few], missing[few], network.n_values)
    owner = np.repeat(few[owner], n_each)
    log_prior = network.log_weight(states)
    if len(few):
        of_row = log_sums(log_prior, np.cumsum(n_each) - n_each, n_each)
        log_prior = log_prior - np.repeat(of_row, n_each)
    if len(many):
        repeated = np.repeat(many, N_DRAWS)
        generator = np.random.default_rng(SEED)
        drawn = gibbs_complete(network, codes[repeated], N_STEPS, generator).codes
        states = np.concatenate([states, drawn.astype(states.dtype)])
        owner = np.concatenate([owner, repeated])
        log_prior = np.concatenate([log_prior, np.full(len(repeated), -np.log(N_DRAWS))])
    order = np.argsort(owner, kind="stable")
    return states[order], owner[order], log_prior[order]


def _distinct(codes, z, weights):
    """The first one of equal rows, and the sums of their weights, in the order of patterns."""
    rows = np.hstack([np.isnan(z), np.nan_to_num(z, nan=np.inf), codes])
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(which.ravel(), weights)
