"""ClassMonitor: log-loss and error of a classifying RBM after each epoch."""

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy
from sklearn_boltz.restricted.sampling._class_probabilities import log_probability
from sklearn_boltz.restricted.training._monitor import Comparison, weighted_mean

# The training has begun where the log-loss is less than that of the class frequencies by this part.
STARTED = 0.01


class ClassMonitor:
    """Fixed rows whose labels are predicted in the course of a training.

    Parameters
    ----------
    train : LabelledRows
        Some training rows with labels.
    valid : LabelledRows or None
        Rows that were set aside, which have labels, too.
    scoring : {"neg_log_loss", "accuracy"}
        What the training is judged by.
    seed : int
        Of the draws of missing cells.
    """

    def __init__(self, train, valid, scoring, seed):
        self.train, self.valid, self.scoring, self.seed = train, valid, scoring, seed
        shares = np.bincount(train.codes, train.weights)
        shares = shares[shares > 0] / shares.sum()
        # The log-loss of the frequencies of the classes.
        self._prior = float(-(shares * np.log(shares)).sum())

    def measure(self, model, workers, tracker):
        """Return a dict of figures.

        Parameters
        ----------
        model : ClassModel
        workers : Workers
        tracker : None
            The normalising constant is not followed.
        """
        figures = self._figures(model, self.train, "", workers)
        if self.valid is not None:
            figures |= self._figures(model, self.valid, "validation_", workers)
        return figures

    def _figures(self, model, rows, prefix, workers):
        log_p = as_numpy(log_probability(model, rows.V, self.seed, workers))
        of_label = log_p[np.arange(len(rows)), rows.codes]
        wrong = log_p.argmax(axis=1) != rows.codes
        return {
            f"{prefix}log_loss": float(-weighted_mean(of_label, rows.weights)),
            f"{prefix}error": float(weighted_mean(wrong, rows.weights)),
        }

    def of_interest(self, figures):
        """Minus the log-loss, or the accuracy: of held-out rows if there are any."""
        prefix = "" if self.valid is None else "validation_"
        if self.scoring == "accuracy":
            return 1 - figures[f"{prefix}error"]
        return -figures[f"{prefix}log_loss"]

    def has_started(self, figures):
        """Whether the classes are told apart by anything but their frequencies."""
        return figures["log_loss"] < (1 - STARTED) * self._prior

    def compare(self, figures, model, workers):
        """Compare the log-likelihood of the labels with that by the frequencies of the classes."""
        return Comparison("training rows", -figures["log_loss"], -self._prior)
