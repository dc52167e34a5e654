"""TAPMonitor: figures of a model and of its TAP solutions after each epoch."""

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy, like, taken
from sklearn_boltz.restricted.mean_field._clamped import clamp
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._tap import distinct, select, total_log_partition
from sklearn_boltz.restricted.training._monitor import (
    Comparison,
    LikelihoodMonitor,
    independent_log_likelihood,
    log_partition_of,
    mean_volume,
    weighted_mean,
)

# Iterations after which a start is given up.
MOST_ITERATIONS = 500
# Starts: one for this many rows, within these limits. With few rows an epoch is short, and
# following a start to its solution takes as long as learning from ten rows or more.
ROWS_PER_START, LEAST_STARTS, MOST_STARTS = 50, 25, 100


class TAPMonitor(LikelihoodMonitor):
    """Fixed rows where TAP starts in the course of a training.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Whose free energies are measured; TAP starts at some of them.
    n_data : int
        Number of rows of the data.
    likelihoods : Likelihoods
    base : unit type
        Of independent features, as the training data have them.
    iteration : TAP
    weights : ndarray of float64 of shape (n_rows,), default=None
        How often each of the rows counts: figures of theirs are weighted means.
    log_scale : ndarray of float64 of shape (n_features,), default=None
        As of `mean_volume`: log-likelihoods are those of the columns of the table.
    """

    def __init__(self, rows, n_data, likelihoods, base, iteration, weights=None, log_scale=None):
        self.volume = mean_volume(rows, log_scale, weights)
        self.rows, self.likelihoods, self.base, self.weights = rows, likelihoods, base, weights
        n_starts = int(np.clip(n_data // ROWS_PER_START, LEAST_STARTS, MOST_STARTS))
        # Evenly spaced, and all of them if they are no more than that.
        self.starts = np.unique(np.linspace(0, len(rows) - 1, n_starts).round().astype(int))
        self.iteration = iteration._replace(max_iter=MOST_ITERATIONS)

    def measure(self, layered, workers, tracker):
        """Return a dict of figures.

        Parameters
        ----------
        layered : Layered
        workers : Workers
        tracker : Tracker or None
            Without one there are log-likelihoods of small models only.
        """
        rows = like(layered.weights[0], self.rows)
        clamped = clamp(layered, rows, self.iteration, workers)
        figures = self.figures(layered, clamped, workers)
        tracked = log_partition_of(layered.sides(), tracker, workers)
        if tracked is None:
            return figures
        return figures | self._figures_given(layered, tracked, workers)

    def _figures_given(self, layered, tracked, workers):
        def free_energy(rows):
            rows = like(layered.weights[0], rows)
            clamped = clamp(layered, rows, self.iteration, workers)
            return as_numpy(clamped.free_energy(self.iteration.order))

        return self.likelihoods.figures(free_energy, tracked)

    def figures(self, layered, clamped, workers):
        """What TAP says of the model, given what follows from the rows."""
        model, order = layered.sides(), self.iteration.order
        side = clamped.visible_side()
        starts = taken(side, self.starts)
        solutions = by_tap(model, starts, self.iteration, workers)
        kept, _ = distinct(model, solutions)
        chosen = select(solutions, kept)
        log_partition = total_log_partition(chosen)
        free_energy = weighted_mean(as_numpy(clamped.free_energy(order)), self.weights)
        return {
            "tap_log_likelihood": float(-free_energy - log_partition - self.volume),
            "n_solutions": len(kept),
            "free_energy": float(chosen.free_energy.mean()),
            "free_energy_std": float(chosen.free_energy.std()),
            "share_converged": float(solutions.converged.mean()),
        }

    def compare(self, figures, layered, workers):
        """Compare the model with independent columns."""
        if "log_likelihood" in figures:
            return self.likelihoods.compare(figures)
        independent = independent_log_likelihood(self.base, self.rows, self.weights) - self.volume
        return Comparison("training rows", figures["tap_log_likelihood"], independent)


class DeepTAPMonitor(TAPMonitor):
    """Figures of each hidden layer besides."""

    def figures(self, layered, clamped, workers):
        """What is measured, given what follows from the rows."""
        figures = super().figures(layered, clamped, workers)
        figures["share_converged_clamped"] = float(clamped.converged.mean())
        for k, (W, mean) in enumerate(zip(layered.weights, clamped.means()[1:], strict=True), 1):
            figures[f"weight_norm_{k}"] = float(np.linalg.norm(W))
            figures[f"feature_std_{k}"] = float(mean.std(axis=0).mean())
        return figures
