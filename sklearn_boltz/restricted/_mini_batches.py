"""Estimators that learn by epochs of mini-batches, with early stopping and resuming."""

import warnings
from functools import cache, partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._arrays import as_numpy, dispatched, is_foreign, namespace_of
from sklearn_boltz._base import (
    checked_weights,
    dense,
    find_stack_level,
    unchanged_on_error,
)
from sklearn_boltz._batches import as_batches
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import BaseBoltzmannMachine
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted.model._enumeration import n_enumerated
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._epochs import QUIET, Fall, Plan, train
from sklearn_boltz.restricted.training._gaps import Incomplete, KeptValues
from sklearn_boltz.restricted.training._initial import fitted_init
from sklearn_boltz.restricted.training._monitor import BETTER, EXACT_UNITS, no_better
from sklearn_boltz.restricted.training._rows import (
    ChosenRows,
    StreamedRows,
    check_observed,
    divided,
    relative,
    visits,
    with_information,
)
from sklearn_boltz.restricted.training._tracker import Tracker
from sklearn_boltz.units._unit import observed_sums

DIVERGED = "The parameters grew beyond all bounds. Use a smaller learning_rate."
# With max_iter="auto", at least so many epochs, and so many times more with early stopping.
LEAST_EPOCHS, MORE_BEFORE_STOP = 10, 5
# Without progress for so many epochs, and so many mini-batches, an adaptive learning rate falls to
# a part of itself.
FALL_AFTER, FALL_AFTER_BATCHES, FALL = 3, 400, 0.3


class MiniBatchEstimator(BaseBoltzmannMachine):
    """An estimator that learns by epochs of mini-batches.

    All that a fit changes is in a `Training`; the attributes are assigned from it at the end. A
    child has

    - `_begun(X, weights)`, the `Training` that begins with rows X;
    - `_resumed()`, a copy of that of the last fit, to go on from the public attributes;
    - `_with_more(seen, X, weights)`, what is kept of the data, with more rows;
    - `_monitor(training, X, train, valid, weights)`, what watches over the training;
    - `_side_base(training)`, independent units of the visible side of the model;
    - `_attributes(training)`, a dict of all attributes that a training makes.

    Rows have NaN in missing cells, and weights of the mean 1, or None for equal ones.
    """

    # With max_iter="auto", about so many mini-batches, in at most so many epochs.
    _auto_batches, _most_epochs = 1500, 200
    _parameter_constraints = {
        **BaseBoltzmannMachine._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "learning_rate_schedule": [StrOptions({"constant", "invscaling", "adaptive"})],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "weights_init": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "track_likelihood": ["boolean", Interval(Real, 0, None, closed="neither")],
        "max_rungs": [Interval(Integral, 3, None, closed="left")],
    }
    # Whether the training takes chains from a ladder of saved models.
    _is_tempered = False

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn the parameters by passes over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or batches
            Legal values of the visible units, or anything real if `binarize` is set. NaN is a
            missing value: what is learned is the distribution of those that are there. Of
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, a few
            batches are in memory at a time; where Dask has a cluster, its workers share each
            mini-batch.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, in relation to the others; of batches, of all rows in their
            order. An epoch visits as many rows as have a weight, and each in the mean as
            often as its weight relative to the mean weight. None for equal weights.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, or a column has no value at all.

        Warns
        -----
        ConvergenceWarning
            If the training diverges. Where parameters grow beyond all bounds, the fit ends with
            those of the epoch before. Also if the model is no better than independent columns, and
            if `early_stopping` is set and `max_iter` ended the fit.

        Notes
        -----
        Ctrl-C leaves the model of the last complete epoch, if there is one, and that of before
        the fit if not. With `warm_start`, the next fit goes on from there.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight):
        status = None
        with unchanged_on_error(self):
            going_on = self.warm_start and hasattr(self, "components_")
            rows, weights = self._source(X, y, sample_weight, reset=not going_on)
            if not going_on:
                self._fit_init(X, sample_weight)
            training = self._resumed() if going_on else self._begun(rows, weights)
            training.tracker = self._tracker(training)
            if self._is_tempered and not self.early_stopping:
                training.best = None  # the best epoch is one of this fit
            rows = rows.astype(training.dtype, copy=False)
            rows, monitor = self._divide(training, rows, weights)
            plan = self._plan(rows.n_rows)
            n_before = training.n_epochs
            with (
                Workers(self.n_jobs) as workers,
                iterations(self, X, y, name="epoch", max_iter=plan.n_epochs) as end_epoch,
            ):

                def tell(training):
                    self._tell(training.n_epochs, training.figures(training.n_epochs))
                    return end_epoch(partial(self._attributes, training))

                training, status = self._train(training, rows, monitor, plan, workers, tell)
                if status == "interrupted" and not self._is_worth_keeping(training, n_before):
                    raise KeyboardInterrupt
                vars(self).update(self._attributes(training))
                if status != "interrupted":
                    self._conclude(training, status, monitor, workers)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn from one mini-batch, of any length.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the mini-batch; NaN is a missing value.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, in relation to the others: as many rows as have a weight
            are drawn from them, each in the mean as often as its weight relative to
            the mean weight. None for equal weights.

        Returns
        -------
        self : object
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If parameters grow beyond all bounds; they are then those of before.
        """
        return self._partial_fit(X, y, sample_weight)

    def _partial_fit(self, X, y, sample_weight):
        with unchanged_on_error(self):
            first = not hasattr(self, "components_")
            X, weights = self._rows_of_batch(X, y, sample_weight, reset=first)
            if first:
                self._fit_init()
            training = self._begun(X, weights) if first else self._resumed()
            training.tracker = self._tracker(training)
            X = dense(X).astype(training.dtype, copy=False)
            if first:
                vars(self).update(self._attributes(training.copy()))
            else:
                training.seen = self._with_more(training.seen, X, weights)
            if weights is not None:
                X = X[np.repeat(np.arange(len(X)), visits(weights, training.rng))]
            training.n_passes += 1
            with Workers(self.n_jobs) as workers, QUIET():
                rate = self._rate(training.n_passes)
                training.learn(self._mini_batch(X), rate, workers)
            if training.is_finite():
                vars(self).update(self._attributes(training))
            else:
                kept = "What is kept is the model before this batch."
                level = find_stack_level()
                warnings.warn(f"{DIVERGED} {kept}", ConvergenceWarning, stacklevel=level)
            return self

    # Before the training.

    def _rows_of_batch(self, X, y, sample_weight, reset):
        """The rows of a mini-batch that count, and their weights."""
        if dispatched(X):
            return self._device_source(X, sample_weight, reset)
        X = self._validated(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
        return with_information(X, sample_weight)

    def _fit_init(self, X=None, sample_weight=None):
        """Find the model that the training begins with, if there is a parameter `init`."""
        if getattr(self, "init", None) is not None:
            self.init_ = fitted_init(self, X, sample_weight)

    def _mini_batch(self, X):
        """Rows as what a training learns from."""
        X = X.array if isinstance(X, DeviceRows) else X
        return X if is_foreign(X) else Incomplete(np.ascontiguousarray(X))

    def _source(self, X, y, sample_weight, reset):
        """The rows to train on, an array, a CSR matrix or `StreamedRows`, and their weights."""
        if dispatched(X):
            return self._device_source(X, sample_weight, reset)
        batches = as_batches(X)
        if batches is None:
            rows = self._validated(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
            rows, weights = with_information(rows, sample_weight)
            check_observed(self, observed_sums(rows)[1])
            return rows, weights
        if reset:
            self._begin_batches(batches, sample_weight)
        indexed = batches is not X
        rows = StreamedRows(self, batches, sample_weight, reset=reset, indexed=indexed)
        return rows, rows.weights

    def _device_source(self, X, sample_weight, reset):
        """The rows that count of an array on a device, and their weights."""
        X = self._validated(X, reset=reset)
        weights = None
        if sample_weight is not None:
            weights = checked_weights(as_numpy(sample_weight), np.empty((X.shape[0], 0)))
            counts = np.flatnonzero(weights > 0)
            X, weights = DeviceRows(X)[counts], relative(weights[counts])
        return DeviceRows(X, weights), weights

    def _divide(self, training, X, weights):
        """-> the rows to train on, and a function that returns the monitor, made when needed."""
        seed = training.evaluation_seed
        fraction = self.validation_fraction if self.early_stopping else 0
        if isinstance(X, StreamedRows) and not X.indexed:
            if fraction and X.shape[0] - len(X.useless) < 2:
                raise ValueError("early_stopping needs two rows at least; there is 1.")
            some, valid = X.choose(np.random.default_rng(seed), fraction)
            monitor = partial(self._monitor, training, X, some, valid, weights)
            return X.all_but(valid), cache(monitor)
        if isinstance(X, StreamedRows):
            numbers, kept = X.usable(), X.kept_values()
        else:
            numbers, kept = None, KeptValues.of(X, training.dtype)
        n_rows = X.shape[0] if numbers is None else len(numbers)
        train, valid = divided(n_rows, fraction, seed)
        if numbers is not None:
            train, valid = numbers[train], numbers[valid]
        if kept is None or training.kept is None or training.kept.digest != kept.digest:
            training.kept = kept
        rows = ChosenRows(X, train, weights, training.kept)
        return rows, cache(partial(self._monitor, training, X, train, valid, weights))

    def _plan(self, n_rows):
        """How long and how fast to train, on so many rows."""
        n_epochs, n_batches = self.max_iter, max(1, round(n_rows / self.batch_size))
        if n_epochs == "auto":
            most = self._most_epochs * (MORE_BEFORE_STOP if self.early_stopping else 1)
            n_epochs = int(np.clip(round(self._auto_batches / n_batches), LEAST_EPOCHS, most))
        patience = self.n_iter_no_change if self.early_stopping else None
        rate, tol = self._rate, self.tol
        return Plan(
            n_epochs, self.batch_size, rate, patience, tol, self._is_tempered,
            self._fall(n_batches),
        )  # fmt: skip

    def _fall(self, n_batches):
        """When the learning rate falls, with so many mini-batches in an epoch; None for never."""
        if self.learning_rate_schedule != "adaptive":
            return None
        return Fall(enough(FALL_AFTER, FALL_AFTER_BATCHES, n_batches), FALL)

    def _tracker(self, training):
        """What follows ln Z in the course of the training, new or that of the last fit."""
        model = training.learner.model().sides()
        if not self._is_tempered:
            adaptive = self.learning_rate_schedule == "adaptive"
            wanted = self.track_likelihood or self.early_stopping or adaptive
            if not wanted or n_enumerated(model) <= EXACT_UNITS:
                return None
        base, seed = self._side_base(training), training.evaluation_seed
        return Tracker.begun(training.tracker, base, self, seed, self._is_tempered, self.batch_size)

    def _rate(self, n_passes):
        if self.learning_rate_schedule != "invscaling":
            return float(self.learning_rate)
        try:
            return float(self.learning_rate / n_passes ** float(self.power_t))
        except OverflowError:  # Python's powers overflow where quotients go to 0
            return 0.0

    def _initial_weights(self, rng, n_above, n_below, dtype):
        scale = self.weights_init
        if scale == "auto":
            # Whichever layer is the larger, its fields on the other do not grow with its size.
            scale = (n_above + n_below) ** -0.5
        with QUIET():
            weights = rng.normal(0, scale, (n_above, n_below)).astype(dtype)
        # Energies and mean fields have products of weights, which are to be finite.
        if not np.abs(weights).max() < np.finfo(dtype).max ** 0.25:
            raise ValueError(f"weights_init={scale:g} is too large for {dtype}.")
        return weights

    # The training, and after it.

    def _train(self, training, rows, monitor, plan, workers, tell):
        return train(training, rows, monitor, plan, workers, tell)

    def _is_worth_keeping(self, training, n_before):
        """Whether an interrupted fit has completed anything."""
        return training.n_epochs > n_before

    def _state(self, training):
        """The attributes that all trainings make."""
        return {
            "history_": {name: np.array(values) for name, values in training.history.items()},
            "n_iter_": training.n_epochs,
            "_training": training,
            "_evaluation_seed": training.evaluation_seed,
        }

    def _conclude(self, training, status, monitor, workers):
        """Warn of a fit that ended badly."""
        kept_best = status == "converged" or (status == "max_iter" and self._is_tempered)
        epoch = training.best["epoch"] if kept_best and training.best else training.n_epochs
        comparison = None
        if epoch and status != "diverged":
            model = training.learner.model()
            comparison = monitor().compare(training.figures(epoch), model, workers)
        message = self._trouble(status, comparison)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())

    def _trouble(self, status, comparison):
        """What a user should know about the end of a fit, or None."""
        if status == "diverged":
            return f"{DIVERGED} What is kept is the model before epoch {self.n_iter_ + 1}."
        if comparison is not None and not comparison.exceeds(BETTER):
            remedies = (
                f"Train longer (max_iter; there were {self.n_iter_} epochs), in smaller "
                f"mini-batches (batch_size is {self.batch_size}) or with a larger learning_rate"
            )
            return no_better(comparison, self.n_features_in_, remedies, self.n_iter_)
        if status == "max_iter" and self.early_stopping:
            return (
                f"The validation log-likelihood was still rising after {self.n_iter_} epochs. "
                "Increase max_iter, or fit on with warm_start."
            )
        return None


class MiniBatchRBM(MiniBatchEstimator, BaseRBM):
    """An RBM that is trained by mini-batches."""

    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "transform_temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def transform(self, X):
        """Return the means of the hidden units, features for a classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `mean_hidden`.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            E[h | v] for each row v at the temperature `transform_temperature`; at 1, those of
            `mean_hidden`.
        """
        return self._mean_hidden(X, self.transform_temperature)

    def inverse_transform(self, X):
        """Return the means of the visible units for features made by `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Means of the hidden units, at the temperature `transform_temperature`.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            E[v | h], with h at its mean at temperature 1, of the numbers that `visible_names_`
            names.

        Raises
        ------
        ValueError
            If `transform_temperature` is not 1 and hidden units have other values than 0 and 1:
            use ``mean_visible(mean_hidden(X))`` then.
        """
        H = self._checked_hidden(X)
        if self.transform_temperature == 1:
            return self.mean_visible(H)
        if not self._units()[1].is_binary:
            raise ValueError(
                f"transform_temperature is {self.transform_temperature:g}, and what the means of "
                "hidden units would be at temperature 1 is known of binary ones only. Use "
                "mean_visible(mean_hidden(X))."
            )
        if not namespace_of(H).all((H >= 0) & (H <= 1)):
            raise ValueError("Means of binary hidden units must be from 0 to 1.")
        # The log-odds are those at temperature 1, divided by the temperature. A quotient may be
        # infinite, where the mean is 0.
        with np.errstate(divide="ignore", over="ignore"):
            return self.mean_visible(1 / (1 + (1 / H - 1) ** float(self.transform_temperature)))

    def _check_same_size(self):
        n_units = self._units()[1].n_units
        if n_units != self.n_components:
            raise ValueError(
                f"n_components is {self.n_components}, but the fit to go on with has "
                f"{n_units} components."
            )


def enough(n_epochs, n_mini_batches, n_batches):
    """Epochs of so many mini-batches each that make so many epochs and mini-batches at least."""
    return max(n_epochs, -(-n_mini_batches // n_batches))
