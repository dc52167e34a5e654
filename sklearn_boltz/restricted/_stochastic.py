"""Training by mini-batches, with epochs, early stopping and resuming."""

import copy
import warnings
from numbers import Integral, Real
from time import perf_counter

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._base import dense, make_generator, unchanged_on_error
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz.restricted._gibbs import Workers
from sklearn_boltz.restricted._machine import BaseMachine
from sklearn_boltz.restricted._rbm import BaseRBM


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
    keeps of the data, `_learn_batch(V, workers, buffers)`, `_new_monitor(X, train, valid)`,
    an object with a method `measure(model, workers)`, `_publish()`, and `_check_same_size()`,
    which raises an error where the parameters ask for another machine than that to go on with.
    A learner has `parameters()`, a list of arrays, and `model()`.
    """

    _parameter_constraints = {
        **BaseMachine._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "learning_rate_schedule": [StrOptions({"constant", "invscaling"})],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "weights_init": [Interval(Real, 0, None, closed="left")],
        "persistent": ["boolean"],
    }

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the parameters by `max_iter` passes over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Legal values of the visible units, or anything real if `binarize` is set.
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
        FloatingPointError
            If the parameters grow beyond all bounds.

        Warns
        -----
        ConvergenceWarning
            If `early_stopping` is set and `max_iter` ended the fit.
        """
        with unchanged_on_error(self):
            going_on = self.warm_start and hasattr(self, "components_")
            X = self._validated(X, reset=not going_on)
            X = self._begin_or_resume(X, going_on)
            train, monitor = self._monitor(X)
            with Workers(self.n_jobs) as workers:
                stopped = self._learn_epochs(X, train, monitor, workers)
            if self.early_stopping and not stopped:
                warnings.warn(
                    f"The validation log-likelihood was still rising after {self.n_iter_} "
                    "epochs. Increase max_iter, or fit on with warm_start.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            return self._publish()

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
        """
        with unchanged_on_error(self):
            going_on = hasattr(self, "components_")
            X = self._validated(X, reset=not going_on)
            X = self._begin_or_resume(X, going_on)
            if going_on:
                self._keep_rows(X)
            self._n_passes += 1
            V = np.ascontiguousarray(dense(X))
            with Workers(self.n_jobs) as workers:
                self._learn_batch(V, workers, Buffers())
            return self._publish()

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

    def _rate(self):
        if self.learning_rate_schedule == "constant":
            return float(self.learning_rate)
        return float(self.learning_rate / self._n_passes**self.power_t)

    def _check_finite(self):
        if not all(np.isfinite(a).all() for a in self._learner.parameters()):
            raise FloatingPointError("The parameters diverged; use a smaller learning_rate.")

    # Epochs.

    def _monitor(self, X):
        """-> numbers of the rows to train on, and what watches over the training."""
        train, valid = self._split_rows(X.shape[0])
        return np.sort(train), self._new_monitor(X, train, valid)

    def _learn_epochs(self, X, train, monitor, workers):
        """Make `max_iter` epochs; -> whether the validation rows stopped them."""
        buffers = Buffers()
        with iterations(self, X, None, name="epoch", max_iter=self.max_iter) as end_iteration:
            for _ in range(self.max_iter):
                start = perf_counter()
                self._n_passes += 1
                order = train[self._rng.permutation(len(train))]
                # A step from a few rows would be as long as any, and spoil the epoch: a rest goes
                # to the last mini-batch if it is less than half of one.
                least = (self.batch_size + 1) // 2
                for batch in gen_batches(len(train), self.batch_size, min_batch_size=least):
                    self._learn_batch(dense(X[order[batch]]), workers, buffers)
                self._record(monitor, workers, perf_counter() - start)
                stopped = self.early_stopping and self._has_stopped_rising()
                if end_iteration() or stopped:
                    return True
        return False

    def _record(self, monitor, workers, seconds):
        self._check_finite()
        self.n_iter_ += 1
        entry = monitor.measure(self._learner.model(), workers)
        entry |= {"learning_rate": self._rate(), "seconds": seconds}
        self._add_to_history(entry, f"epoch {self.n_iter_}: ")

    def _has_stopped_rising(self):
        """Compare the validation log-likelihood with the best; at the end, go back to it."""
        now = self.history_["log_likelihood"][-1]
        if self._best is None or now > self._best["log_likelihood"] + self.tol:
            parameters = [a.copy() for a in self._learner.parameters()]
            self._best = {"log_likelihood": now, "epoch": self.n_iter_, "parameters": parameters}
        if self.n_iter_ - self._best["epoch"] < self.n_iter_no_change:
            return False
        for mine, best in zip(self._learner.parameters(), self._best["parameters"], strict=True):
            mine[...] = best
        return True


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
