"""What is measured after each epoch of TAP training: its landscape of solutions."""

import numpy as np

from sklearn_boltz.restricted.mean_field._clamped import clamp, visible_side
from sklearn_boltz.restricted.mean_field._inference import INFERENCES
from sklearn_boltz.restricted.mean_field._tap import distinct, select, total_log_partition
from sklearn_boltz.restricted.model._enumeration import exact_log_partition, n_enumerated
from sklearn_boltz.restricted.training._monitor import (
    EXACT_UNITS,
    Comparison,
    independent_log_likelihood,
)

# Iterations after which a start is given up.
MOST_ITERATIONS = 500


class TAPMonitor:
    """Fixed rows where TAP starts in the course of a training.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    held_out : HeldOut or None
    base : unit type
        Of independent features, as the training data have them.
    iteration : Iteration
    inference : str
    """

    def __init__(self, rows, held_out, base, iteration, inference):
        self.rows, self.held_out, self.base = rows, held_out, base
        self.iteration = iteration._replace(max_iter=MOST_ITERATIONS)
        self.inference = INFERENCES[inference]

    def measure(self, layered, workers):
        """Return a dict of figures."""
        model, order = layered.sides(), self.iteration.order

        def free_energy(rows):
            return clamp(layered, rows, self.iteration, workers).free_energy(order)

        starts = visible_side(layered, self.rows, self.iteration, workers)
        solutions = self.inference(model, starts, self.iteration, workers)
        kept, _ = distinct(model, solutions)
        chosen = select(solutions, kept)
        log_partition = total_log_partition(chosen)
        log_likelihood = -free_energy(self.rows).mean() - log_partition
        figures = {
            "tap_log_likelihood": float(log_likelihood),
            "n_solutions": len(kept),
            "free_energy": float(chosen.free_energy.mean()),
            "free_energy_std": float(chosen.free_energy.std()),
            "share_converged": float(solutions.converged.mean()),
        }
        if self.held_out is None:
            return figures
        if n_enumerated(model) <= EXACT_UNITS:
            log_partition = exact_log_partition(model)
        return figures | self.held_out.figures(free_energy, log_partition)

    def compare(self, figures, layered, workers):
        """Compare the model with independent columns."""
        if self.held_out is not None:
            return self.held_out.compare(figures)
        independent = independent_log_likelihood(self.base, self.rows)
        return Comparison("training rows", figures["tap_log_likelihood"], independent)


class DeepTAPMonitor(TAPMonitor):
    """Figures of each hidden layer besides."""

    def measure(self, layered, workers):
        """Return a dict of figures."""
        figures = super().measure(layered, workers)
        clamped = clamp(layered, self.rows, self.iteration, workers)
        figures["share_converged_clamped"] = float(clamped.converged.mean())
        for k, (W, mean) in enumerate(zip(layered.weights, clamped.means()[1:], strict=True), 1):
            figures[f"weight_norm_{k}"] = float(np.linalg.norm(W))
            figures[f"feature_std_{k}"] = float(mean.std(axis=0).mean())
        return figures
