"""RBMMonitor: figures of an RBM after each epoch, at a small cost."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import as_numpy, is_foreign, like, numpy_dtype
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.partition._estimates import estimate_from_value, temperature_ladder
from sklearn_boltz.restricted.model._enumeration import exact_log_partition, n_enumerated
from sklearn_boltz.restricted.model._model import Model, log_pseudo_likelihood
from sklearn_boltz.restricted.sampling._annealing import (
    annealed_importance_sampling,
)
from sklearn_boltz.restricted.sampling._observed import (
    missing_units,
    observed_log_weight,
    quick_free_energy,
    rows_with_gaps,
)
from sklearn_boltz.restricted.training._gaps import complete
from sklearn_boltz.restricted.training._tree import MOST_COLUMNS, tree_log_density
from sklearn_boltz.units._bernoulli import Bernoulli

# Rows, and features of each, that are looked at.
MONITORED_ROWS, MONITORED_FEATURES = 200, 10
# Training rows of which the log-likelihood is measured, at most.
LIKELIHOOD_ROWS = 2000
# ln Z is exact where the smaller layer has no more binary units than this.
EXACT_UNITS = 12
# A model counts as better than independent columns if rows are more probable by this part of their
# log-probability with these, and its training as begun if they are by that part.
BETTER, STARTED = 0.005, 0.01
# A model whose log pseudo-likelihood has risen by this part is certainly better. For others, the
# likelihood is measured; they are near independent columns, so few chains and temperatures suffice.
SURELY_BETTER, FEW_TEMPERATURES, FEW_CHAINS = 0.1, 20, 50
# After this many epochs without success, the columns are probably independent.
MANY_EPOCHS = 200


def weighted_mean(values, weights=None):
    """The mean of one figure a row."""
    return values.mean() if weights is None else np.average(values, weights=weights)


def std_err_of_mean(values, weights=None):
    """The standard error of `weighted_mean`."""
    weights = np.ones(len(values)) if weights is None else weights
    with np.errstate(over="ignore"):  # of a training that diverges
        deviation = np.linalg.norm(weights * (values - weighted_mean(values, weights)))
    return float(deviation / weights.sum())


class Comparison(NamedTuple):
    """A mean log-likelihood of some rows in nats, and that with independent columns."""

    rows: str
    model: float
    independent: float

    def exceeds(self, part):
        """Whether the model is better by a part of the log-likelihood."""
        return self.model > self.independent + part * abs(self.independent)


def no_better(comparison, n_features, remedies, n_epochs=0):
    """The warning of a model that is no better than independent columns after `n_epochs`."""
    rows, model, independent = comparison
    found = (
        f"The model is no better than independent columns: its {rows} have a mean log-likelihood "
        f"of {model:.4g} nats, and of {independent:.4g} with independent columns. "
    )
    if model < independent - n_features * np.log(2):
        return f"{found}The training diverged. Use a smaller learning_rate or init."
    if n_epochs >= MANY_EPOCHS:
        remedies = remedies[0].lower() + remedies[1:]
        return f"{found}The columns may really be independent; otherwise {remedies}."
    return f"{found}{remedies}, unless the columns really are independent."


def independent_log_likelihood(base, rows, weights=None):
    """Mean log-probability of what is observed of rows if the columns were independent."""
    field = np.zeros((1, rows.shape[1]), rows.dtype)
    if rows_with_gaps(rows) is None:
        log_p = base.log_weight(rows) - base.log_partition_sum(field)
    else:
        missing = missing_units(base, np.isnan(rows))
        of_units = base.log_partition(field.astype(np.float64)).astype(np.float64)
        log_p = observed_log_weight(base, rows, missing)
        log_p -= np.where(missing, 0, of_units).sum(axis=1)
    return float(weighted_mean(log_p, weights))


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


class MeasuredRows:
    """Rows of which the log-likelihood is measured.

    Parameters
    ----------
    name : str
        What a user calls them.
    rows : ndarray of shape (n_rows, n_features)
        NaN in missing cells.
    base : unit type
        Of independent features, as the training data have them.
    weights : ndarray of float64 of shape (n_rows,) or None
        How often each of the rows counts.
    log_scale : ndarray of float64 of shape (n_features,) or None
        As of `mean_volume`.
    """

    def __init__(self, name, rows, base, weights=None, log_scale=None):
        self.name, self.rows, self.weights = name, rows, weights
        here = as_numpy(rows)
        self.states = distinct_states(here, base)
        self.volume = mean_volume(here, log_scale, weights)
        self.independent = independent_log_likelihood(base, here, weights) - self.volume

    def log_likelihood(self, free_energy, log_partition):
        """Mean log-likelihood, from the free energies of the rows."""
        return float(-weighted_mean(free_energy, self.weights) - log_partition - self.volume)

    def floor(self, free_energy):
        """Lower bound of ln Z: ln Σ exp(−F) over some states."""
        return float(logsumexp(-free_energy[self.states])) if len(self.states) else -np.inf

    def compare(self, log_likelihood):
        """Compare a log-likelihood with that of independent columns."""
        return Comparison(self.name, log_likelihood, self.independent)


def distinct_states(rows, base):
    """Numbers of rows that are states of the visible units, each state once; none of a continuum.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    base : unit type

    Returns
    -------
    numbers : ndarray of int
    """
    if not base.is_enumerable or np.isnan(rows).any():
        return np.zeros(0, int)
    _, first = np.unique(rows, axis=0, return_index=True)
    return first[(rows[first] == base.nearest(rows[first])).all(axis=1)]


def log_partition_of(model, tracker, workers):
    """ln Z of a model in training: exact if that is quick, else by its tracker, or None."""
    if n_enumerated(model) <= EXACT_UNITS:
        return estimate_from_value(exact_log_partition(model))
    return None if tracker is None else tracker.log_partition(model, workers)


class LikelihoodMonitor:
    """A monitor that judges a model by the log-likelihood of rows, of training and set aside.

    A subclass defines `measure(model, workers, tracker)`, a dict of figures, and
    `free_energy(model, rows, workers)`.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    train, valid : ndarray of int
        Numbers of rows; none in `valid` where none were set aside.
    base : unit type
        Of independent features, as the training data have them.
    weights : ndarray of float64 of shape (n_samples,), default=None
        How often each row counts: figures are weighted means.
    log_scale : ndarray of float64 of shape (n_features,), default=None
        As of `mean_volume`: log-likelihoods are those of the columns of the table.
    """

    def __init__(self, X, train, valid, base, weights=None, log_scale=None):
        def some(name, numbers):
            of_rows = None if weights is None else weights[numbers]
            return MeasuredRows(name, dense(X[numbers]), base, of_rows, log_scale)

        self.train = some("training rows", train[:LIKELIHOOD_ROWS])
        if rows_with_gaps(self.train.rows) is not None:  # of which each takes longer
            self.train = some("training rows", train[:MONITORED_ROWS])
        self.valid = some("held-out rows", valid) if len(valid) else None
        self.base = base

    def log_likelihoods(self, model, tracked, workers):
        """Log-likelihoods in nats, with the error that ln Z has.

        Parameters
        ----------
        model : Model or Layered
        tracked : LogPartition or None
            Without ln Z, there are none.
        workers : Workers

        Returns
        -------
        figures : dict of float
        """
        if tracked is None:
            return {}
        of_train = self.free_energy(model, self.train.rows, workers)
        # What some states alone add up to is a floor under ln Z, whatever chains have found.
        log_partition = max(tracked.value, self.train.floor(of_train))
        train = self.train.log_likelihood(of_train, log_partition)
        figures = {"log_likelihood": train, "log_likelihood_std_err": tracked.std_err}
        if self.valid is not None:
            of_valid = self.free_energy(model, self.valid.rows, workers)
            valid = self.valid.log_likelihood(of_valid, log_partition)
            figures["validation_log_likelihood"] = valid
            # By how much the free energy of held-out rows exceeds that of others.
            volumes = self.valid.volume - self.train.volume
            figures["free_energy_gap"] = train - valid - volumes
        return figures

    def has_started(self, figures):
        """Whether the training has left the plateau on which columns are independent.

        If training rows alone have become more probable, the model memorises them, but the training
        has started.
        """
        pairs = [(self.train, "log_likelihood"), (self.valid, "validation_log_likelihood")]
        return any(
            rows.compare(figures[name]).exceeds(STARTED) for rows, name in pairs if rows is not None
        )

    def of_interest(self, figures):
        """The log-likelihood of held-out rows, or of training rows if none were set aside."""
        return figures["log_likelihood" if self.valid is None else "validation_log_likelihood"]

    def measure_slowly(self, model, tracker, workers):
        """Log-likelihoods of a model by which it is compared with another one.

        Parameters
        ----------
        model : Model or Layered
        tracker : Tracker or None
            None of a small model, of which ln Z is exact.
        workers : Workers

        Returns
        -------
        figures : dict of float
        """
        sides = model.sides()
        if tracker is None:
            tracked = log_partition_of(sides, None, workers)
        else:
            tracked = tracker.anneal_slowly(sides, workers)
        return self.log_likelihoods(model, tracked, workers)

    def difference(self, models, tracker, workers):
        """By how much held-out rows are likelier under the first of two models.

        Parameters
        ----------
        models : tuple of two Model or Layered
        tracker, workers
            As of `measure_slowly`.

        Returns
        -------
        nats, std_err : float
            The error is that of both ln Z and of the mean over rows.
        """
        found = [self.measure_slowly(model, tracker, workers) for model in models]
        first, second = (figures["validation_log_likelihood"] for figures in found)
        energies = [self.free_energy(model, self.valid.rows, workers) for model in models]
        of_rows = std_err_of_mean(energies[1] - energies[0], self.valid.weights)
        errors = [figures["log_likelihood_std_err"] for figures in found]
        return first - second, float(np.linalg.norm([*errors, of_rows]))

    def tree(self, log_likelihood, model, workers):
        """The log-likelihood of held-out rows under a tree of pairs, if it is clearly greater.

        Parameters
        ----------
        log_likelihood : float
            That of the model.
        model : Model or Layered
        workers : Workers

        Returns
        -------
        log_likelihood : float or None
            None also if columns are not bits, if they are many, or if cells are missing.
        """
        sides = self.valid and [as_numpy(its.rows) for its in (self.train, self.valid)]
        if sides is None or not self.base.is_binary or len(self.base) > MOST_COLUMNS:
            return None
        if not all(np.isin(rows, (0, 1)).all() for rows in sides):
            return None
        log_p, weights = tree_log_density(sides[1], sides[0]), self.valid.weights
        energies = self.free_energy(model, self.valid.rows, workers)
        found = float(weighted_mean(log_p, weights))
        error = std_err_of_mean(log_p + energies, weights)
        return found if found - log_likelihood > 2 * error else None

    def verified(self, model, tracked, log_likelihood, workers):
        """The log-likelihood by which the training is judged, with another ln Z if that is less."""
        figures = self.log_likelihoods(model, tracked, workers)
        return min(log_likelihood, self.of_interest(figures))

    def compare(self, figures, model, workers):
        """Compare a model with independent columns, by what was measured of it."""
        rows = self.train if self.valid is None else self.valid
        return rows.compare(self.of_interest(figures))


class RBMMonitor(LikelihoodMonitor):
    """Fixed rows on which a model is measured in the course of its training.

    Parameters
    ----------
    X, train, valid, base, weights, log_scale
        As of `LikelihoodMonitor`.
    seed : int
    """

    def __init__(self, X, train, valid, base, seed, weights=None, log_scale=None):
        super().__init__(X, train, valid, base, weights, log_scale)
        self.seed, rows = seed, self.train.rows
        self.rows = rows[: min(MONITORED_ROWS, rows.shape[0]), ...]
        self.weights = None if weights is None else weights[train[:MONITORED_ROWS]]
        n_features = base.n_units
        self.features = None
        if n_features > MONITORED_FEATURES:
            shape = self.rows.shape[0], MONITORED_FEATURES
            self.features = np.random.default_rng(seed).integers(n_features, size=shape)
        self.missing = None
        if rows_with_gaps(self.rows) is not None:
            self.missing = missing_units(base, np.isnan(self.rows))
            self.features = observed_features(self.missing, np.random.default_rng(seed))

    def measure(self, model, workers, tracker):
        """Return a dict of figures.

        Parameters
        ----------
        model : Model
        workers : Workers
        tracker : Tracker or None
            Without one there are log-likelihoods of small models only.
        """
        V = self.states(model, workers)
        squares = (V - model.mean_visible(model.mean_hidden(V))) ** 2
        figures = {"reconstruction_error": self._mean_of_cells(squares)}
        if self.base.is_enumerable:
            figures["log_pseudo_likelihood"] = self._log_pseudo_likelihood(model, V)
        tracked = log_partition_of(model, tracker, workers)
        return figures | self.log_likelihoods(model, tracked, workers)

    def states(self, model, workers):
        """The rows; missing cells are drawn given the others, each time by the same numbers."""
        if self.missing is None:
            return self.rows
        return complete(model, self.rows, np.isnan(self.rows), self.seed, workers)

    def _mean_of_cells(self, values):
        """The mean over the observed cells of the rows."""
        values = as_numpy(values)
        if self.missing is None and self.weights is None:
            return float(np.mean(values))
        weights = np.ones(len(values)) if self.weights is None else self.weights
        known = weights[:, np.newaxis] * ~np.isnan(as_numpy(self.rows))
        return float((known * values).sum() / known.sum())

    def free_energy(self, model, rows, workers):
        """F of what is observed of rows; where cells are missing, at a small cost."""
        if rows_with_gaps(rows) is None:
            return as_numpy(model.free_energy(rows))
        return quick_free_energy(model, self.base, rows, Stream(self.seed))

    def compare(self, figures, model, workers):
        """Compare the model with independent columns; None if it is better without a doubt."""
        if "log_likelihood" in figures:
            return super().compare(figures, model, workers)
        if "log_pseudo_likelihood" in figures:
            dtype = model.dtype if not is_foreign(model.weights) else numpy_dtype(model.weights)
            no_hidden = Bernoulli(np.zeros(1, dtype))
            independent = Model(np.zeros((1, len(self.base)), dtype), self.base, no_hidden)
            V = as_numpy(self.states(independent, workers))
            pseudo = self._log_pseudo_likelihood(independent, V)
            if Comparison("", figures["log_pseudo_likelihood"], pseudo).exceeds(SURELY_BETTER):
                return None
        base = self.base
        if is_foreign(model.weights):
            base = base.moved(partial(like, model.weights))
        found = annealed_importance_sampling(
            model, base, temperature_ladder(FEW_TEMPERATURES), FEW_CHAINS, Stream(self.seed),
            workers,
        )  # fmt: skip
        of_train = self.free_energy(model, self.train.rows, workers)
        return self.train.compare(self.train.log_likelihood(of_train, found.value))

    def _log_pseudo_likelihood(self, model, V):
        found = as_numpy(log_pseudo_likelihood(model, V, self.features))
        if self.missing is not None:  # the features are among those observed
            found = found * (1 - self.missing.mean(axis=1))
        return float(weighted_mean(found, self.weights))


def observed_features(missing, rng):
    """Numbers of observed units of each row, drawn with replacement."""
    order = np.argsort(missing, axis=1, kind="stable")  # the observed ones first
    n_observed = missing.shape[1] - missing.sum(axis=1)
    shape = len(missing), MONITORED_FEATURES
    places = (rng.random(shape) * n_observed[:, np.newaxis]).astype(int)
    return np.take_along_axis(order, places, axis=1)
