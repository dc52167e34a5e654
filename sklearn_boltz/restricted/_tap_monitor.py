"""What is measured after each epoch of TAP training: its landscape of solutions."""

import numpy as np

from sklearn_boltz.restricted._clamped import clamp, visible_side
from sklearn_boltz.restricted._inference import INFERENCES
from sklearn_boltz.restricted._monitor import EXACT_UNITS, held_out_figures
from sklearn_boltz.restricted._partition import exact_log_partition, n_enumerated
from sklearn_boltz.restricted._tap import distinct, select, total_log_partition

# Iterations after which a start is given up.
MOST_ITERATIONS = 500


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

    def measure(self, machine, workers):
        """Return a dict of figures."""
        model, order = machine.sides(), self.iteration.order

        def free_energy(rows):
            return clamp(machine, rows, self.iteration, workers).free_energy(order)

        starts = visible_side(machine, self.rows, self.iteration, workers)
        solutions = self.inference(model, starts, self.iteration, workers)
        kept, _ = distinct(model, solutions)
        chosen = select(solutions, kept)
        log_partition = total_log_partition(chosen)
        n_units = len(model.visible) + len(model.hidden)
        log_likelihood = -free_energy(self.rows).mean() - log_partition
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
        return figures | held_out_figures(free_energy, self.valid, self.train, log_partition)


class DeepTAPMonitor(TAPMonitor):
    """Figures of each hidden layer besides."""

    def measure(self, machine, workers):
        """Return a dict of figures."""
        figures = super().measure(machine, workers)
        clamped = clamp(machine, self.rows, self.iteration, workers)
        figures["converged_clamped"] = float(clamped.converged.mean())
        for k, (W, mean) in enumerate(zip(machine.weights, clamped.means()[1:], strict=True), 1):
            figures[f"weight_norm_{k}"] = float(np.linalg.norm(W))
            figures[f"feature_std_{k}"] = float(mean.std(axis=0).mean())
        return figures
