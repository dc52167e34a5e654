"""Where a fully visible Boltzmann machine is too large to enumerate: Gibbs sampling and AIS."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.fully_visible._gibbs import gibbs_sweeps


class LogPartition(NamedTuple):
    """An estimate of ln Z.

    By annealed importance sampling, also the means of the variables under the weighted states
    in which its chains end, and the effective number of these.
    """

    value: float
    std_err: float
    means: np.ndarray | None = None
    n_effective: float = np.inf


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


def gibbs_sample(coupling, intercept, n_samples, n_sweeps, generator):
    """One sample from each of `n_samples` chains, which start at independent spins."""
    start = independent_spins(intercept, n_samples, generator)
    chains = Chains(start, coupling, draw_seed(generator))
    chains.sweep(intercept, n_sweeps)
    return chains.spins


def gibbs_impute(coupling, intercept, spins, missing, n_sweeps, how, generator):
    """Fill missing spins by Gibbs sampling given the others.

    Parameters
    ----------
    coupling, intercept : ndarray
    spins : ndarray of float64 of shape (n, d)
        What stands in missing places is not used.
    missing : ndarray of bool of shape (n, d)
    n_sweeps : int
        Sweeps before anything is kept; for "mean" and "mode" as many follow.
    how : {"mean", "mode", "sample"}
        The mean of the conditional means after each sweep, the most probable row met, or the
        last row.
    generator : Generator

    Returns
    -------
    filled : ndarray of shape (n, d)
    """
    start = np.where(missing, independent_spins(intercept, len(spins), generator), spins)
    chains = Chains(start, coupling, draw_seed(generator), missing)
    chains.sweep(intercept, n_sweeps)
    if how == "sample":
        return chains.spins
    mean = np.zeros(spins.shape)
    best, best_weight = chains.spins.copy(), np.full(len(spins), -np.inf)
    for _ in range(n_sweeps):
        chains.sweep(intercept)
        if how == "mean":
            mean += np.tanh(chains.local + intercept)
            continue
        weight = log_weight(chains.spins, chains.local, intercept)
        better = weight > best_weight
        best[better], best_weight[better] = chains.spins[better], weight[better]
    return np.where(missing, mean / n_sweeps, spins) if how == "mean" else best


def log_weight(spins, local, intercept):
    """½ xᵀ M x + bᵀ x of each row, from its local fields M x."""
    return np.einsum("ij,ij->i", spins, 0.5 * local + intercept)


def annealed_log_partition(
    coupling, intercept, base, *, n_chains=500, n_temperatures=1000, generator
):
    """ln Z by annealed importance sampling.

    The path leads from independent spins with the fields `base`, whose constant is known, to
    the model: fields (1 - β) base + β b and couplings β M.

    Parameters
    ----------
    coupling, intercept, base : ndarray
    n_chains, n_temperatures : int
    generator : Generator

    Returns
    -------
    log_partition : LogPartition
        With the standard error of ln Z by the delta method, and weighted means.
    """
    chains = Chains(independent_spins(base, n_chains, generator), coupling, draw_seed(generator))
    log_w = np.zeros(n_chains)
    step = 1 / n_temperatures
    for beta in np.linspace(0, 1, n_temperatures, endpoint=False):
        log_w += step * log_weight(chains.spins, chains.local, intercept - base)
        chains.sweep((1 - beta - step) * base + (beta + step) * intercept, scale=beta + step)
    w = np.exp(log_w - log_w.max())
    log_base = np.logaddexp(base, -base).sum()
    value = log_base + logsumexp(log_w) - np.log(n_chains)
    std_err = float(w.std(ddof=1) / w.mean() / np.sqrt(n_chains))
    return LogPartition(
        float(value), std_err, w @ chains.spins / w.sum(), float(w.sum() ** 2 / (w @ w))
    )
