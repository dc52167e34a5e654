"""Where a fully visible Boltzmann machine is too large to enumerate: Gibbs sampling and AIS."""

from itertools import pairwise

import numpy as np

from sklearn_boltz._estimates import estimate_from_weights
from sklearn_boltz.fully_visible._gibbs import gibbs_sweeps


class Chains:
    """States of many Gibbs chains with their local fields.

    Parameters
    ----------
    spins : ndarray of float64 of shape (n_chains, d)
        ±1; changed in place.
    coupling : ndarray of shape (d, d)
    seed : int
        Key of the random numbers.
    free : ndarray of bool of shape (n_chains, d), default=None
        Which entries may change. None for all.
    """

    def __init__(self, spins, coupling, seed, free=None):
        self.spins, self.coupling, self.seed = spins, np.ascontiguousarray(coupling), seed
        self.free = np.ones(spins.shape, dtype=np.uint8) if free is None else free.view(np.uint8)
        self.local = spins @ coupling
        self.n_sweeps = 0

    def sweep(self, intercept, n_sweeps=1, scale=1.0):
        """Resample all free spins, one after another, with couplings times `scale`."""
        gibbs_sweeps(
            self.spins,
            self.local,
            self.coupling,
            np.ascontiguousarray(intercept),
            scale,
            self.free,
            self.seed,
            self.n_sweeps,
            n_sweeps,
        )
        self.n_sweeps += n_sweeps


def draw_seed(generator):
    """A key for `Chains`."""
    return int(generator.integers(2**63))


def independent_spins(intercept, n, generator):
    """Rows of independent spins with the given fields."""
    positive = generator.random((n, len(intercept))) < (1 + np.tanh(intercept)) / 2
    return np.where(positive, 1.0, -1.0)


def gibbs_sample(coupling, intercept, n_samples, n_steps, generator):
    """One sample from each of `n_samples` chains, which begin at independent spins."""
    initial = independent_spins(intercept, n_samples, generator)
    chains = Chains(initial, coupling, draw_seed(generator))
    chains.sweep(intercept, n_steps)
    return chains.spins


def gibbs_impute(coupling, intercept, spins, missing, n_steps, how, generator):
    """Fill missing spins by Gibbs sampling given the others.

    Parameters
    ----------
    coupling, intercept : ndarray
    spins : ndarray of float64 of shape (n, d)
        What stands in missing places is not used.
    missing : ndarray of bool of shape (n, d)
    n_steps : int
        Sweeps before anything is kept; for "mean" and "mode" as many follow.
    how : {"mean", "mode", "sample"}
        The mean of the conditional means after each sweep, the most probable row met, or the
        last row.
    generator : Generator

    Returns
    -------
    filled : ndarray of shape (n, d)
    """
    initial = np.where(missing, independent_spins(intercept, len(spins), generator), spins)
    chains = Chains(initial, coupling, draw_seed(generator), missing)
    chains.sweep(intercept, n_steps)
    if how == "sample":
        return chains.spins
    mean = np.zeros(spins.shape)
    best, best_weight = chains.spins.copy(), np.full(len(spins), -np.inf)
    for _ in range(n_steps):
        chains.sweep(intercept)
        if how == "mean":
            mean += np.tanh(chains.local + intercept)
            continue
        weight = log_weight(chains.spins, chains.local, intercept)
        better = weight > best_weight
        best[better], best_weight[better] = chains.spins[better], weight[better]
    return np.where(missing, mean / n_steps, spins) if how == "mean" else best


def log_weight(spins, local, intercept):
    """½ xᵀ M x + bᵀ x of each row, from its local fields M x."""
    return np.einsum("ij,ij->i", spins, 0.5 * local + intercept)


def annealed_log_partition(coupling, intercept, base, betas, n_chains, generator):
    """ln Z by annealed importance sampling.

    The path leads from independent spins with the fields `base`, whose constant is known, to
    the model: fields (1 - β) base + β b and couplings β M.

    Parameters
    ----------
    coupling, intercept, base : ndarray
    betas : ndarray of float64
        Inverse temperatures from 0 to 1.
    n_chains : int
    generator : Generator

    Returns
    -------
    estimate : Bunch
        Of `estimate_from_weights`; `states` are the spins in which the chains end.
    """
    chains = Chains(independent_spins(base, n_chains, generator), coupling, draw_seed(generator))
    log_weights = np.full(n_chains, np.logaddexp(base, -base).sum())
    for low, high in pairwise(betas.tolist()):
        log_weights += (high - low) * log_weight(chains.spins, chains.local, intercept - base)
        chains.sweep((1 - high) * base + high * intercept, scale=high)
    return estimate_from_weights("ais", log_weights, 1, chains.spins)
