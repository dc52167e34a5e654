"""Monitor: figures of an RBM after each epoch, at a small cost."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz._base import dense
from sklearn_boltz._estimates import temperature_ladder
from sklearn_boltz._random import Stream
from sklearn_boltz.restricted.model._enumeration import exact_log_partition, n_enumerated
from sklearn_boltz.restricted.model._model import Model, log_pseudo_likelihood
from sklearn_boltz.restricted.sampling._annealing import (
    annealed_importance_sampling,
)
from sklearn_boltz.units._bernoulli import Bernoulli

# Rows, and features of each, that are looked at.
MONITORED_ROWS, MONITORED_FEATURES = 200, 10
# Rows on which free energies of training and validation are compared, at most.
GAP_ROWS = 2000
# The smaller layer is enumerated up to this; else so many chains, and a temperature for each ten
# rows of the data within these limits: of few rows an epoch is short.
EXACT_UNITS, N_CHAINS = 12, 100
ROWS_PER_TEMPERATURE, LEAST_TEMPERATURES, MOST_TEMPERATURES = 10, 60, 300
# A model counts as better than independent columns if rows are more probable by this part of their
# log-probability with these, and its training as begun if they are by that part.
BETTER, STARTED = 0.005, 0.01
# A model whose log pseudo-likelihood has risen by this part is better without a doubt. Of others
# the likelihood is looked at: near independent columns, so few chains and temperatures will do.
SURELY_BETTER, FEW_TEMPERATURES, FEW_CHAINS = 0.1, 20, 50


class Comparison(NamedTuple):
    """A mean log-likelihood of some rows in nats, and that with independent columns."""

    rows: str
    model: float
    independent: float

    def exceeds(self, part):
        """Whether the model is better by a part of the log-likelihood."""
        return self.model > self.independent + part * abs(self.independent)


def no_better(comparison, n_features, remedies):
    """What to tell of a model that is no better than independent columns."""
    rows, model, independent = comparison
    found = (
        f"The model is no better than independent columns: its {rows} have a mean log-likelihood "
        f"of {model:.4g} nats, and of {independent:.4g} with independent columns. "
    )
    if model < independent - n_features * np.log(2):
        return f"{found}The training diverged. Use a smaller learning_rate or weights_init."
    return f"{found}{remedies}, unless the columns are independent indeed."


def independent_log_likelihood(base, rows):
    """Mean log-probability of rows if the columns were independent, of the units `base`."""
    field = np.zeros((1, rows.shape[1]), rows.dtype)
    return float(base.log_weight(rows).mean() - base.log_partition_sum(field)[0])


class HeldOut:
    """Rows that were set aside, and rows of the training to compare them with.

    Parameters
    ----------
    valid, train : ndarray of shape (n_rows, n_features)
    base : unit type
        Of independent features, as the training data have them.
    """

    def __init__(self, valid, train, base):
        self.valid, self.train = valid, train
        self._independent = [independent_log_likelihood(base, rows) for rows in (valid, train)]

    def figures(self, free_energy, log_partition):
        """Log-likelihood of held-out rows; by how much their free energy exceeds that of others."""
        of_valid = free_energy(self.valid)
        gap = of_valid[:GAP_ROWS].mean() - free_energy(self.train).mean()
        log_likelihood = -of_valid.mean() - log_partition
        return {"log_likelihood": float(log_likelihood), "free_energy_gap": float(gap)}

    def has_started(self, figures):
        """Whether the training has left the plateau on which columns are independent.

        If training rows alone have become more probable, the model learns them by heart, but the
        training has started.
        """
        valid = figures["log_likelihood"]
        train = valid + figures["free_energy_gap"]
        likelihoods = zip((valid, train), self._independent, strict=True)
        return any(Comparison("", *pair).exceeds(STARTED) for pair in likelihoods)

    def compare(self, figures):
        """Compare the held-out rows with independent columns."""
        return Comparison("held-out rows", figures["log_likelihood"], self._independent[0])


class Monitor:
    """Fixed rows on which a model is measured in the course of its training.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    train, valid : ndarray of int
        Numbers of rows; none in `valid` where none were set aside.
    base : unit type
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
        self.held_out = held_out_rows(X, train, valid, base)
        wanted = X.shape[0] // ROWS_PER_TEMPERATURE
        self.n_temperatures = int(np.clip(wanted, LEAST_TEMPERATURES, MOST_TEMPERATURES))

    def measure(self, model, workers):
        """Return a dict of figures."""
        V = self.rows
        error = V - model.mean_visible(model.mean_hidden(V))
        figures = {
            "reconstruction_error": float(np.mean(error**2)),
            "log_pseudo_likelihood": self._log_pseudo_likelihood(model),
        }
        if self.held_out is None:
            return figures
        log_partition = self._log_partition(model, workers)
        return figures | self.held_out.figures(model.free_energy, log_partition)

    def compare(self, figures, model, workers):
        """Compare the model with independent columns; None if it is better without a doubt."""
        if self.held_out is not None:
            return self.held_out.compare(figures)
        no_hidden = Bernoulli(np.zeros(1, model.dtype))
        independent = Model(np.zeros((1, len(self.base)), model.dtype), self.base, no_hidden)
        pseudo = self._log_pseudo_likelihood(independent)
        if Comparison("", figures["log_pseudo_likelihood"], pseudo).exceeds(SURELY_BETTER):
            return None
        log_partition = self._log_partition(model, workers, FEW_TEMPERATURES, FEW_CHAINS)
        log_likelihood = -model.free_energy(self.rows).mean() - log_partition
        return Comparison(
            "training rows", log_likelihood, independent_log_likelihood(self.base, self.rows)
        )

    def _log_pseudo_likelihood(self, model):
        return float(log_pseudo_likelihood(model, self.rows, self.features).mean())

    def _log_partition(self, model, workers, n_temperatures=None, n_chains=N_CHAINS):
        if n_enumerated(model) <= EXACT_UNITS:
            return exact_log_partition(model)
        betas = temperature_ladder(n_temperatures or self.n_temperatures)
        return annealed_importance_sampling(
            model, self.base, betas, n_chains, Stream(self.seed), workers
        ).value


def held_out_rows(X, train, valid, base):
    """What was set aside, with as many rows of the training; None if nothing was."""
    if not len(valid):
        return None
    return HeldOut(dense(X[valid]), dense(X[train[: min(len(valid), GAP_ROWS)]]), base)
