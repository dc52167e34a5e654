"""TAPMonitor: figures of a model and of its TAP solutions after each epoch."""

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy, like, taken
from sklearn_boltz.restricted.mean_field._clamped import clamp
from sklearn_boltz.restricted.mean_field._inference import parts_of
from sklearn_boltz.restricted.mean_field._solutions import total_log_partition
from sklearn_boltz.restricted.training._monitor import (
    Comparison,
    LikelihoodMonitor,
    independent_log_likelihood,
    log_partition_of,
    mean_volume,
    weighted_mean,
)
from sklearn_boltz.restricted.training._visits import relative

# Iterations after which a start is given up.
MOST_ITERATIONS = 500
# Starts: one for this many rows, within these limits. With few rows an epoch is short, and
# following a start to its solution takes as long as learning from ten rows or more.
ROWS_PER_START, LEAST_STARTS, MOST_STARTS = 50, 25, 100


class TAPMonitor(LikelihoodMonitor):
    """Fixed rows where TAP starts in the course of a training.

    Parameters
    ----------
    X, train, valid, weights, log_scale
        As of `LikelihoodMonitor`.
    seen : (UnitType, ndarray of shape (n_rows, n_features), ndarray of shape (n_rows,))
        Independent features, as the training data have them; rows whose free energies are
        measured, where TAP starts at some of them; and how often each of these counts.
    iteration : TAP
    of_layers : bool
        Whether there are figures of each hidden layer besides.
    """

    def __init__(self, X, train, valid, seen, iteration, weights, log_scale, of_layers):
        base, self.rows, counts = seen
        super().__init__(X, train, valid, base, weights, log_scale)
        self.weights, self.of_layers = relative(counts), of_layers
        self.volume = mean_volume(self.rows, log_scale, self.weights)
        n_starts = int(np.clip(X.shape[0] // ROWS_PER_START, LEAST_STARTS, MOST_STARTS))
        # Evenly spaced, and all of them if they are no more than that.
        self.starts = np.unique(np.linspace(0, len(self.rows) - 1, n_starts).round().astype(int))
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
        model, clamped = layered.sides(), self._clamped(layered, self.rows, workers)
        starts = taken(clamped.visible_side(), self.starts)
        solutions, chosen = parts_of(model, starts, self.iteration, workers)
        log_partition = total_log_partition(chosen)
        free_energy = as_numpy(clamped.free_energy(self.iteration.order))
        free_energy = weighted_mean(free_energy, self.weights)
        figures = {
            "tap_log_likelihood": float(-free_energy - log_partition - self.volume),
            "n_solutions": len(chosen.order),
            "free_energy": float(chosen.free_energy.mean()),
            "free_energy_std": float(chosen.free_energy.std()),
            "share_converged": float(solutions.converged.mean()),
        }
        if self.of_layers:
            figures["share_converged_clamped"] = float(clamped.converged.mean())
            for k, (W, mean) in enumerate(zip(layered.weights, clamped.means()[1:], strict=True)):
                figures[f"weight_norm_{k + 1}"] = float(np.linalg.norm(W))
                figures[f"feature_std_{k + 1}"] = float(mean.std(axis=0).mean())
        tracked = log_partition_of(model, tracker, workers)
        return figures | self.log_likelihoods(layered, tracked, workers)

    def states(self, layered, workers):
        """Rows on the visible side, with means where values are not known."""
        return as_numpy(self._clamped(layered, self.rows, workers).visible_side())

    def _clamped(self, layered, rows, workers):
        return clamp(layered, like(layered.weights[0], rows), self.iteration, workers)

    def free_energy(self, layered, rows, workers):
        """F of what is observed of rows."""
        clamped = self._clamped(layered, rows, workers)
        return as_numpy(clamped.free_energy(self.iteration.order))

    def compare(self, figures, layered, workers):
        """Compare the model with independent columns."""
        if "log_likelihood" in figures:
            return super().compare(figures, layered, workers)
        independent = independent_log_likelihood(self.base, self.rows, self.weights) - self.volume
        return Comparison("training rows", figures["tap_log_likelihood"], independent)
