"""Training by mini-batches, with epochs, early stopping and resuming."""

import copy
import warnings
from functools import partial
from numbers import Integral, Real
from time import perf_counter

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._base import dense, find_stack_level, unchanged_on_error
from sklearn_boltz._batches import as_batches
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._random import make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted._machine import BaseMachine
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted.training._cluster import Parts
from sklearn_boltz.restricted.training._monitor import BETTER, no_better
from sklearn_boltz.restricted.training._rows import ChosenRows, StreamedRows

# With max_iter="auto", at least so many epochs, and so many times more with early stopping.
LEAST_EPOCHS, MORE_BEFORE_STOP = 10, 5
DIVERGED = "The parameters grew beyond all bounds. Use a smaller learning_rate."
# Overflow shows in the parameters, which are looked at.
QUIET = partial(np.errstate, over="ignore", invalid="ignore")


class Buffers:
    """Arrays that are used again and again: new ones would cost page faults."""

    def __init__(self):
        self._arrays = {}

    def __call__(self, name, shape, dtype):
        """An array with any content."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            array = self._arrays[name] = np.empty(shape, dtype)
        return array


class StochasticMachine(BaseMachine):
    """The loop over epochs and mini-batches; how to learn from one is for the child to say.

    A child has `_start(X)` and `_resume()`, which set `_learner`, `_keep_rows(X)`, for what it
    keeps of the data, `_learn_batch(V, workers, buffers)`, `_learn_parts(parts)`, the same for
    rows that lie on other machines, `_new_monitor(X, train, valid)`, an object with `held_out` and
    the methods `measure(model, workers)` and `compare(figures, model, workers)`, `_publish()`, and
    `_check_same_size()`, which raises an error where the parameters ask for another machine than
    that to go on with. A learner has `parameters()`, a list of arrays, and `model()`.
    """

    _changed_in_place = "_learner", "_rng"
    # With max_iter="auto", about so many mini-batches, in at most so many epochs.
    _auto_batches, _most_epochs = 1500, 200
    _parameter_constraints = {
        **BaseMachine._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "learning_rate_schedule": [StrOptions({"constant", "invscaling"})],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "weights_init": [Interval(Real, 0, None, closed="left")],
        "persistent": ["boolean"],
    }

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the parameters by passes over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or batches
            Legal values of the visible units, or anything real if `binarize` is set. Of
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, a few
            batches are in memory at a time; where Dask has a cluster, its workers share each
            mini-batch.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain.

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
        with unchanged_on_error(self) as keep:
            going_on = self.warm_start and hasattr(self, "components_")
            batches = as_batches(X)
            if batches is None:
                rows = self._validated(X, reset=not going_on)
            else:
                rows = StreamedRows(self, batches, reset=not going_on, indexed=batches is not X)
            rows, monitor = self._divide(self._begin_or_resume(rows, going_on))
            n_epochs = self._n_epochs(rows)
            with (
                Workers(self.n_jobs) as workers,
                iterations(self, X, y, name="epoch", max_iter=n_epochs) as end_epoch,
            ):
                epochs = range(n_epochs)
                status = self._learn_epochs(rows, epochs, monitor, workers, keep, end_epoch)
                self._publish()
                self._conclude(status, monitor, workers)
            return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
        """Learn from one mini-batch, of any length.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the mini-batch.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If parameters grow beyond all bounds; they are then those of before.
        """
        with unchanged_on_error(self):
            before, going_on = vars(self).copy(), hasattr(self, "components_")
            X = self._validated(X, reset=not going_on)
            X = self._begin_or_resume(X, going_on)
            if not going_on:
                before = self._snapshot()
            else:
                self._keep_rows(X)
            self._n_passes += 1
            V = np.ascontiguousarray(dense(X))
            try:
                with Workers(self.n_jobs) as workers, QUIET():
                    self._learn_batch(V, workers, Buffers())
                return self._publish()
            except FloatingPointError as error:
                vars(self).update(before)
                kept = "What is kept is the model before this batch."
                warnings.warn(f"{error} {kept}", ConvergenceWarning, stacklevel=2)
                return self

    # The start, and going on.

    def _begin_or_resume(self, X, going_on):
        """Set up the state of the training; -> X in its type."""
        if going_on:
            self._check_same_size()
            # What a fit changes is its own, so that an interrupted one leaves no trace.
            self._learner, self._rng = copy.deepcopy((self._learner, self._rng))
            # The public attributes are the truth, also where a user has set them.
            self._resume()
            self.history_ = dict(self.history_)
            return X.astype(self._model().dtype, copy=False)
        self._rng = make_generator(self.random_state)
        self._start(X)
        self._evaluation_seed = int(self._rng.integers(2**31))
        self._n_passes, self.n_iter_, self.history_, self._best = 0, 0, {}, None
        return X

    def _first_weights(self, n_above, n_below, dtype):
        with QUIET():
            weights = self._rng.normal(0, self.weights_init, (n_above, n_below)).astype(dtype)
        if not np.isfinite(weights).all():
            raise ValueError(f"weights_init={self.weights_init:g} is too large for {dtype}.")
        return weights

    def _rate(self):
        if self.learning_rate_schedule == "constant":
            return float(self.learning_rate)
        return float(self.learning_rate / self._n_passes**self.power_t)

    def _check_finite(self):
        if not all(np.isfinite(a).all() for a in self._learner.parameters()):
            raise FloatingPointError(DIVERGED)

    # Epochs.

    def _divide(self, X):
        """-> the rows to train on, and what watches over the training."""
        if isinstance(X, StreamedRows) and not X.indexed:
            if self.early_stopping and X.shape[0] < 2:
                raise ValueError("early_stopping needs two rows at least; there is 1.")
            rng = np.random.default_rng(self._evaluation_seed)
            some, valid = X.choose(rng, self.early_stopping and self.validation_fraction)
            return X.all_but(valid), self._new_monitor(X, some, valid)
        train, valid = self._split_rows(X.shape[0])
        return ChosenRows(X, train), self._new_monitor(X, train, valid)

    def _n_epochs(self, rows):
        """Number of epochs of the fit, at most."""
        if self.max_iter != "auto":
            return self.max_iter
        n_batches = max(1, round(rows.n_rows / self.batch_size))
        most = self._most_epochs * (MORE_BEFORE_STOP if self.early_stopping else 1)
        return int(np.clip(round(self._auto_batches / n_batches), LEAST_EPOCHS, most))

    def _learn_epochs(self, rows, epochs, monitor, workers, keep, end_epoch):
        """Make the epochs; -> why they ended."""
        buffers, last = Buffers(), self._snapshot()
        for _ in epochs:
            try:
                with QUIET():
                    self._learn_epoch(rows, monitor, workers, buffers)
            except FloatingPointError:
                vars(self).update(last)
                return "diverged"
            converged = self.early_stopping and self._has_stopped_rising(monitor.held_out)
            last = self._snapshot()
            keep(last)
            if end_epoch(last.copy):
                return "asked"
            if converged:
                return "converged"
        return "max_iter"

    def _learn_epoch(self, rows, monitor, workers, buffers):
        start = perf_counter()
        self._n_passes += 1
        for V in rows.mini_batches(self.batch_size, self._rng):
            if isinstance(V, Parts):
                self._learn_parts(V)
            else:
                self._learn_batch(V, workers, buffers)
        self._record(monitor, workers, perf_counter() - start)

    def _record(self, monitor, workers, seconds):
        self._check_finite()
        entry = monitor.measure(self._learner.model(), workers)
        if not np.isfinite(list(entry.values())).all():
            raise FloatingPointError(DIVERGED)
        self.n_iter_ += 1
        entry |= {"learning_rate": self._rate(), "seconds": seconds}
        self._add_to_history(entry, f"epoch {self.n_iter_}: ")

    def _has_stopped_rising(self, held_out):
        """Compare the validation log-likelihood with the best; at the end, go back to it."""
        figures = self._figures(self.n_iter_)
        now, best = figures["log_likelihood"], self._best
        if best is None or now > best["log_likelihood"] + self.tol:
            parameters = [a.copy() for a in self._learner.parameters()]
            best = {"log_likelihood": now, "epoch": self.n_iter_, "parameters": parameters}
            best["waiting_since"] = self.n_iter_
        elif not held_out.has_started(figures):
            # A plateau at the start is no reason to end, however long.
            best = {**best, "waiting_since": self.n_iter_}
        self._best = best
        if self.n_iter_ - best["waiting_since"] < self.n_iter_no_change:
            return False
        for mine, other in zip(self._learner.parameters(), best["parameters"], strict=True):
            mine[...] = other
        return True

    def _figures(self, epoch):
        """What was measured after an epoch."""
        return {name: values[epoch - 1] for name, values in self.history_.items()}

    def _conclude(self, status, monitor, workers):
        """Warn of a fit that ended badly."""
        epoch, comparison = self._best["epoch"] if status == "converged" else self.n_iter_, None
        if epoch and status != "diverged":
            model = self._learner.model()
            comparison = monitor.compare(self._figures(epoch), model, workers)
        message = self._trouble(status, comparison)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())

    def _trouble(self, status, comparison):
        """What a user should know about the end of a fit, or None."""
        if status == "diverged":
            return f"{DIVERGED} What is kept is the model before epoch {self.n_iter_ + 1}."
        if comparison is not None and not comparison.exceeds(BETTER):
            return no_better(comparison, self.n_features_in_, self._remedies())
        if status == "max_iter" and self.early_stopping:
            return (
                f"The validation log-likelihood was still rising after {self.n_iter_} epochs. "
                "Increase max_iter, or fit on with warm_start."
            )
        return None

    def _remedies(self):
        return (
            f"Train longer (max_iter; there were {self.n_iter_} epochs), in smaller mini-batches "
            f"(batch_size is {self.batch_size}) or with a larger learning_rate"
        )


class StochasticRBM(StochasticMachine, BaseRBM):
    """An RBM that is trained by mini-batches."""

    _parameter_constraints = {
        **StochasticMachine._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def _check_same_size(self):
        if len(self.components_) != self.n_components:
            raise ValueError(
                f"n_components is {self.n_components}, but the fit to go on with has "
                f"{len(self.components_)} components."
            )
