"""What is measured after each epoch, at a small cost."""

import numpy as np

from sklearn_boltz._base import dense
from sklearn_boltz.restricted._gibbs import Stream
from sklearn_boltz.restricted._model import log_pseudo_likelihood
from sklearn_boltz.restricted._partition import (
    annealed_importance_sampling,
    exact_log_partition,
    n_enumerated,
    temperature_ladder,
)

# Rows, and features of each, that are looked at.
MONITORED_ROWS, MONITORED_FEATURES = 200, 10
# Rows on which free energies of training and validation are compared, at most.
GAP_ROWS = 2000
# The smaller layer is enumerated up to this; else so many temperatures and chains.
EXACT_UNITS, N_TEMPERATURES, N_CHAINS = 12, 300, 100


class Monitor:
    """Fixed rows on which a model is measured in the course of its training.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    train, valid : ndarray of int
        Numbers of rows; none in `valid` where none were set aside.
    base : unit law
        Of the visible units at infinite temperature.
    seed : int
    """

    def __init__(self, X, train, valid, base, seed):
        self.rows = dense(X[train[:MONITORED_ROWS]])
        self.base, self.seed = base, seed
        n_features = X.shape[1]
        self.features = None
        if n_features > MONITORED_FEATURES:
            shape = len(self.rows), MONITORED_FEATURES
            self.features = np.random.default_rng(seed).integers(n_features, size=shape)
        self.valid = dense(X[valid]) if len(valid) else None
        self.train = dense(X[train[: min(len(valid), GAP_ROWS)]])

    def measure(self, model, workers):
        """Return a dict of figures."""
        V = self.rows
        error = V - model.mean_visible(model.mean_hidden(V))
        figures = {
            "reconstruction_error": float(np.mean(error**2)),
            "log_pseudo_likelihood": float(log_pseudo_likelihood(model, V, self.features).mean()),
        }
        if self.valid is None:
            return figures
        log_partition = self._log_partition(model, workers)
        return figures | held_out_figures(model.free_energy, self.valid, self.train, log_partition)

    def _log_partition(self, model, workers):
        if n_enumerated(model) <= EXACT_UNITS:
            return exact_log_partition(model)
        betas = temperature_ladder(N_TEMPERATURES)
        return annealed_importance_sampling(
            model, self.base, betas, N_CHAINS, Stream(self.seed), workers
        ).value


def held_out_figures(free_energy, valid, train, log_partition):
    """Log-likelihood of validation rows; by how much their free energy exceeds that of others."""
    of_valid = free_energy(valid)
    gap = of_valid[:GAP_ROWS].mean() - free_energy(train).mean()
    log_likelihood = -of_valid.mean() - log_partition
    return {"log_likelihood": float(log_likelihood), "free_energy_gap": float(gap)}
