"""What is measured after each epoch of TAP training: its landscape of solutions."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Bunch

from sklearn_boltz.restricted._inference import INFERENCES
from sklearn_boltz.restricted._partition import exact_log_partition, n_enumerated
from sklearn_boltz.restricted._tap import distinct, total_log_partition

# Iterations after which a start is given up.
MOST_ITERATIONS = 500
# Rows on which the free energies of training and validation are compared, at most.
GAP_ROWS = 2000
# The smaller layer is enumerated up to this, for early stopping.
EXACT_UNITS = 12


class TAPMonitor:
    """Fixed rows where TAP starts in the course of a training.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    valid, train : ndarray of shape (n_rows, n_features) or None
        What was set aside, and rows of the training to compare with.
    iteration : Iteration
    inference : str
    """

    def __init__(self, rows, valid, train, iteration, inference):
        self.rows, self.valid, self.train = rows, valid, train
        self.iteration = iteration._replace(max_iter=MOST_ITERATIONS)
        self.inference = INFERENCES[inference]

    def measure(self, model, workers):
        """Return a dict of figures."""
        solutions = self.inference(model, self.rows, self.iteration, workers)
        kept, _ = distinct(model, solutions)
        chosen = Bunch(**{name: value[kept] for name, value in solutions.items()})
        log_partition = total_log_partition(chosen)
        n_units = len(model.visible) + len(model.hidden)
        log_likelihood = -model.free_energy(self.rows).mean() - log_partition
        figures = {
            "tap_log_likelihood": float(log_likelihood) / n_units,
            "n_solutions": len(kept),
            "free_energy": float(chosen.free_energy.mean()),
            "free_energy_std": float(chosen.free_energy.std()),
            "converged": float(solutions.converged.mean()),
        }
        if self.valid is None:
            return figures
        if n_enumerated(model) <= EXACT_UNITS:
            log_partition = exact_log_partition(model)
        free_energy = model.free_energy(self.valid)
        gap = free_energy[:GAP_ROWS].mean() - model.free_energy(self.train).mean()
        log_likelihood = -free_energy.mean() - log_partition
        return figures | {"log_likelihood": float(log_likelihood), "free_energy_gap": float(gap)}


def dense_rows(X, rows):
    """Some rows as a dense array of its own."""
    X = X[rows]
    return X.toarray() if issparse(X) else np.array(X)
