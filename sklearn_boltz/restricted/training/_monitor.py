"""Monitor: figures of an RBM after each epoch, at a small cost."""

from functools import partial
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
from sklearn_boltz.restricted.sampling._observed import (
    independent_log_probability,
    missing_units,
    quick_free_energy,
    rows_with_gaps,
)
from sklearn_boltz.restricted.training._gaps import complete
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


def weighted_mean(values, weights=None):
    """The mean of one figure a row."""
    return values.mean() if weights is None else np.average(values, weights=weights)


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


def independent_log_likelihood(base, rows, weights=None):
    """Mean log-probability of what is observed of rows if the columns were independent."""
    return float(weighted_mean(independent_log_probability(base, rows), weights))


def mean_volume(rows, log_scale, weights=None):
    """Mean log-volume of what is observed of rows: densities of the columns of a table are less.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_visible)
        NaN in missing cells.
    log_scale : ndarray of float64 of shape (n_visible,) or None
        Logarithms of what the numbers were divided by.
    weights : ndarray of float64 of shape (n_rows,), default=None

    Returns
    -------
    volume : float
    """
    if log_scale is None:
        return 0.0
    return float(weighted_mean(~np.isnan(rows) @ log_scale, weights))


class HeldOut:
    """Rows that were set aside, and rows of the training to compare them with.

    Parameters
    ----------
    valid, train : ndarray of shape (n_rows, n_features)
        NaN in missing cells.
    base : unit type
        Of independent features, as the training data have them.
    weights : pair of ndarray of float64 or None
        How often each of the rows counts.
    log_scale : ndarray of float64 of shape (n_features,), default=None
        As of `mean_volume`.
    """

    def __init__(self, valid, train, base, weights=(None, None), log_scale=None):
        self.valid, self.train, self.weights = valid, train, weights
        pairs = list(zip((valid, train), weights, strict=True))
        self.volume = [mean_volume(rows, log_scale, of_rows) for rows, of_rows in pairs]
        self._independent = [
            independent_log_likelihood(base, *pair) - volume
            for pair, volume in zip(pairs, self.volume, strict=True)
        ]

    def figures(self, free_energy, log_partition):
        """Log-likelihood of held-out rows; by how much their free energy exceeds that of others."""
        of_valid, (weights, of_train) = free_energy(self.valid), self.weights
        some = None if weights is None else weights[:GAP_ROWS]
        gap = weighted_mean(of_valid[:GAP_ROWS], some)
        gap -= weighted_mean(free_energy(self.train), of_train)
        log_likelihood = -weighted_mean(of_valid, weights) - log_partition - self.volume[0]
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
    weights : ndarray of float64 of shape (n_samples,), default=None
        How often each row counts: figures are weighted means.
    log_scale : ndarray of float64 of shape (n_features,), default=None
        As of `mean_volume`: log-likelihoods are those of the columns of the table.
    """

    def __init__(self, X, train, valid, base, seed, weights=None, log_scale=None):
        self.log_scale = log_scale
        self.rows = dense(X[train[:MONITORED_ROWS]])
        self.weights = None if weights is None else weights[train[:MONITORED_ROWS]]
        self.base, self.seed = base, seed
        n_features = base.n_units
        self.features = None
        if n_features > MONITORED_FEATURES:
            shape = len(self.rows), MONITORED_FEATURES
            self.features = np.random.default_rng(seed).integers(n_features, size=shape)
        self.missing = None
        if rows_with_gaps(self.rows) is not None:
            self.missing = missing_units(base, self.rows)
            self.features = observed_features(self.missing, np.random.default_rng(seed))
        self.held_out = held_out_rows(X, train, valid, base, weights, log_scale)
        wanted = X.shape[0] // ROWS_PER_TEMPERATURE
        self.n_temperatures = int(np.clip(wanted, LEAST_TEMPERATURES, MOST_TEMPERATURES))

    def measure(self, model, workers):
        """Return a dict of figures."""
        V = self._completed(model, workers)
        squares = (V - model.mean_visible(model.mean_hidden(V))) ** 2
        figures = {
            "reconstruction_error": self._mean_of_cells(squares),
        }
        if self.base.is_enumerable:
            figures["log_pseudo_likelihood"] = self._log_pseudo_likelihood(model, V)
        if self.held_out is None:
            return figures
        log_partition = self._log_partition(model, workers)
        return figures | self.held_out.figures(partial(self._free_energy, model), log_partition)

    def _completed(self, model, workers):
        """The rows; missing cells are drawn given the others, each time by the same numbers."""
        if self.missing is None:
            return self.rows
        return complete(model, self.rows, np.isnan(self.rows), self.seed, workers)

    def _mean_of_cells(self, values):
        """The mean over the observed cells of the rows."""
        if self.missing is None and self.weights is None:
            return float(np.mean(values))
        weights = np.ones(len(values)) if self.weights is None else self.weights
        known = weights[:, np.newaxis] * ~np.isnan(self.rows)
        return float((known * values).sum() / known.sum())

    def _free_energy(self, model, rows):
        """F of what is observed of rows; where cells are missing, at a small cost."""
        if rows_with_gaps(rows) is None:
            return model.free_energy(rows)
        return quick_free_energy(model, self.base, rows, Stream(self.seed))

    def compare(self, figures, model, workers):
        """Compare the model with independent columns; None if it is better without a doubt."""
        if self.held_out is not None:
            return self.held_out.compare(figures)
        if "log_pseudo_likelihood" in figures:
            no_hidden = Bernoulli(np.zeros(1, model.dtype))
            independent = Model(np.zeros((1, len(self.base)), model.dtype), self.base, no_hidden)
            V = self._completed(independent, workers)
            pseudo = self._log_pseudo_likelihood(independent, V)
            if Comparison("", figures["log_pseudo_likelihood"], pseudo).exceeds(SURELY_BETTER):
                return None
        log_partition = self._log_partition(model, workers, FEW_TEMPERATURES, FEW_CHAINS)
        free_energy = self._free_energy(model, self.rows)
        independent = independent_log_likelihood(self.base, self.rows, self.weights)
        log_likelihood = -weighted_mean(free_energy, self.weights) - log_partition
        volume = mean_volume(self.rows, self.log_scale, self.weights)
        return Comparison("training rows", log_likelihood - volume, independent - volume)

    def _log_pseudo_likelihood(self, model, V):
        found = log_pseudo_likelihood(model, V, self.features)
        if self.missing is not None:  # the features are among those observed
            found = found * (1 - self.missing.mean(axis=1))
        return float(weighted_mean(found, self.weights))

    def _log_partition(self, model, workers, n_temperatures=None, n_chains=N_CHAINS):
        if n_enumerated(model) <= EXACT_UNITS:
            return exact_log_partition(model)
        betas = temperature_ladder(n_temperatures or self.n_temperatures)
        return annealed_importance_sampling(
            model, self.base, betas, n_chains, Stream(self.seed), workers
        ).value


def held_out_rows(X, train, valid, base, weights=None, log_scale=None):
    """What was set aside, with as many rows of the training; None if nothing was."""
    if not len(valid):
        return None
    numbers = valid, train[: min(len(valid), GAP_ROWS)]
    of_rows = [None if weights is None else weights[rows] for rows in numbers]
    return HeldOut(*(dense(X[rows]) for rows in numbers), base, of_rows, log_scale)


def observed_features(missing, rng):
    """Numbers of observed units of each row, drawn with replacement."""
    order = np.argsort(missing, axis=1, kind="stable")  # the observed ones first
    n_observed = missing.shape[1] - missing.sum(axis=1)
    shape = len(missing), MONITORED_FEATURES
    places = (rng.random(shape) * n_observed[:, np.newaxis]).astype(int)
    return np.take_along_axis(order, places, axis=1)
