"""Estimators that learn by epochs of mini-batches, with early stopping and resuming."""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._methods import dense, unchanged_on_error
from sklearn_boltz._new_values import take_new_values
from sklearn_boltz._warnings import warn
from sklearn_boltz.callbacks import with_callbacks
from sklearn_boltz.numerics._arrays import dispatched, is_foreign, like
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._constraints import COUNT, POSITIVE, SHARE
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted.model._cells import check_observed
from sklearn_boltz.restricted.model._columns import hold_bits, learn_layout, specs_of
from sklearn_boltz.restricted.model._enumeration import n_enumerated
from sklearn_boltz.restricted.training._array_rows import DeviceRows, check_device_settings
from sklearn_boltz.restricted.training._auto import STREAMED_ROWS
from sklearn_boltz.restricted.training._epochs import QUIET, Plan
from sklearn_boltz.restricted.training._initial import INITIAL_SCALE, fit_init, is_model
from sklearn_boltz.restricted.training._monitor import BETTER, EXACT_UNITS, no_better
from sklearn_boltz.restricted.training._rows import as_mini_batch
from sklearn_boltz.restricted.training._schedule import Schedule, enough
from sklearn_boltz.restricted.training._streamed_rows import StreamedRows, merge_sums, sums_of_batch
from sklearn_boltz.restricted.training._tracker import Tracker
from sklearn_boltz.restricted.training._visits import relative, visits
from sklearn_boltz.tables._batches import as_batches, summarise
from sklearn_boltz.tables._blocks import rows_of
from sklearn_boltz.tables._weights import checked_weights, row_weights

DIVERGED = "The parameters diverged. Use a smaller learning_rate."
# Standard deviation of the weights of units beyond those of an initial model.
SMALL_WEIGHTS = 0.01
# Peak memory of a training, at least, in sizes of its weights: 5 to 15 were measured.
MATRICES = 5


class MiniBatchEstimator(BaseRBM):
    """An estimator whose epochs consist of mini-batches."""

    _schedule = Schedule()
    _parameter_constraints = {
        **BaseRBM._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [*POSITIVE, StrOptions({"auto"})],
        "max_iter": [*COUNT, StrOptions({"auto"})],
        "init": INITIAL_SCALE,
        "early_stopping": [*SHARE, StrOptions({"auto"}), "array-like", "sparse matrix"],
    }

    def __new__(cls, *args, **parameters):
        if "n_iter" in parameters:  # of scikit-learn's `BernoulliRBM`
            raise TypeError(f"{cls.__name__} has no parameter 'n_iter'. Epochs are `max_iter`.")
        return super().__new__(cls)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model in epochs over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or batches
            Strings, levels, bits, numbers and dates, see :ref:`tables`; the unit type of a column
            may limit its values. NaN is a missing value: the model is fitted to the observed
            values. For :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections,
            only a few batches are in memory at a time. If Dask has a cluster, its workers share
            each mini-batch.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each; with batches, of all rows in their order.
            Whole numbers are counts, others relative: :ref:`weights`. An epoch has as many visits
            as there are rows of positive weight, which are visited in proportion to their weights.
            What ``"auto"`` chooses by the number of rows, it chooses by the sum of the counts, or
            by the effective number.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain of its column, or if all values of a column are
            missing.

        Warns
        -----
        ConvergenceWarning
            If the parameters diverge; the model is then that of the epoch before. If the model is
            no better than independent columns or, on binary validation rows, than a tree of pairs
            of columns. If `max_iter` ended a fit with `early_stopping`.

        Notes
        -----
        After Ctrl-C, the model is that of the last complete epoch. If there is none, the model is
        the one before the fit. With `warm_start`, the next fit continues from it.
        """
        if "n_iter" in vars(self):  # set as an attribute, as in an example of scikit-learn
            self.set_params(n_iter=self.n_iter)  # an error, which names max_iter
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the model with one mini-batch of any size.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the mini-batch; NaN is a missing value.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts in this step; None for once each. All calls are steps of the
            same length, so only the ratios of the weights of a call matter for it.

        Returns
        -------
        self : estimator
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If the parameters diverge; the model is then the one before the call.
        UserWarning
            If a column has categories that the first call did not have; they count as missing.
        """
        return self._partial_fit(X, y, sample_weight)

    def _partial_fit(self, X, y, sample_weight):
        with unchanged_on_error(self):
            first, sample_weight = not hasattr(self, "components_"), row_weights(sample_weight)
            X, weights = self._source(X, y, sample_weight, reset=first, is_batch=True)
            if first and is_model(self.init):
                fit_init(self)
            training = self._new(X, weights, STREAMED_ROWS) if first else self._resume_training()
            training.tracker = self._tracker(training)
            X = dense(X).astype(training.dtype, copy=False)
            if first:
                vars(self).update(self._attributes(training.copy()))
            else:
                training.seen, training.base = training.seen.more(X, weights, training.base)
            if relative(weights) is not None:
                X = X[np.repeat(np.arange(len(X)), visits(weights, training.rng))]
            training.n_passes += 1
            with Workers(self.n_jobs) as workers, QUIET():
                training.learn(as_mini_batch(X), self._first_rate(), workers)
            if training.is_finite():
                vars(self).update(self._attributes(training))
            else:
                warn(f"{DIVERGED} The model before this batch is kept.", ConvergenceWarning)
            return self

    # Before the training.

    def _source(self, X, y, sample_weight, reset, is_batch=False):
        """The rows to train on, an array, a CSR matrix or `StreamedRows`, and their weights."""
        if dispatched(X):
            return self._device_source(X, sample_weight, reset)
        batches = None if is_batch else as_batches(X)
        if batches is None:
            return self._rows_of_fit(X, sample_weight, reset, is_batch)
        indexed = batches is not X
        rows = self._streamed(batches, sample_weight, sample_weight, reset=reset, indexed=indexed)
        return rows, rows.weights

    def _streamed(self, batches, sample_weight=None, visits=None, *, reset, indexed=False):
        """Rows that come in batches, with how often each is visited: a pass over them."""
        if not reset:
            take_new_values(self, batches)
        batches = self._encoded(batches, reset=reset)
        if reset:
            self._learn_first(batches, sample_weight)
        reader = self._reader(batches)
        found = summarise(batches, partial(sums_of_batch, reader._validated), merge_sums)
        # Names were compared in that pass, and numbers of columns are enough from here on.
        vars(reader).pop("feature_names_in_", None)
        check = partial(reader._validated, allow_nan=True)
        rows = StreamedRows(batches, found, check, visits, indexed=indexed)
        check_observed(type(self).__name__, self._encoder, rows)
        if reset:
            self._encoder.coding.hold_bits = rows.hold_bits[self._encoder.coding.starts[:-1]]
            self._count_values(rows)
        return rows

    def _learn_first(self, batches, sample_weight):
        """Learn from the first batch how columns become numbers of units."""
        rows = batches.blocks.first(rows_of)
        if rows is None:  # an error follows in the pass over all batches
            return
        # Invalid weights are rejected later, when all rows are known.
        n_rows = rows.shape[0]
        weights = None if np.ndim(sample_weight) != 1 else np.asarray(sample_weight)[:n_rows]
        if weights is not None and (len(weights) < n_rows or not (weights > 0).any()):
            weights = None
        reader = self._reader(batches)
        vars(reader).pop("feature_names_in_", None)
        X = reader._coded(rows, allow_nan=True)
        layout = learn_layout(specs_of(self), self._encoder, X, weights)
        layout.hold_bits = hold_bits(X)
        unseen = layout.unseen(self._encoder, X, weights) if batches.are_codes else None
        self._encoder = self._encoder.of_model(layout, unseen)

    def _count_values(self, rows):
        """Count the values of all batches, of which `unseen` knows those of the first one."""
        layout, (totals, n_cells) = self._encoder.coding, rows.observed_sums
        n_cells = np.broadcast_to(n_cells, len(totals))
        counts = self._encoder.unseen.counts if self._encoder.unseen else []
        for j, seen in enumerate(counts):
            if layout.one_hot[j]:
                counts[j] = totals[layout.numbers_of(j)][: len(seen)]
            else:
                place = layout.starts[j]
                bits = np.array([n_cells[place] - totals[place], totals[place]])
                counts[j] = bits[: len(seen)]

    def _device_source(self, X, sample_weight, reset):
        """The rows with positive weights of an array on a device, and their weights."""
        X = self._validated(X, reset=reset)
        if not reset:  # parameters may have been set since
            check_device_settings(self)
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, np.empty((X.shape[0], 0)))
            counts = np.flatnonzero(weights > 0)
            X, weights = DeviceRows(X)[counts], weights[counts]
            weights = None if (weights == 1).all() else weights
        return DeviceRows(X, weights), weights

    def _plan(self, training, n_rows, stops):
        """The plan of the training on `n_rows` rows: its length and its learning rate."""
        schedule = self._schedule
        given = self.batch_size, self.max_iter
        size, n_batches, n_epochs = schedule.lengths(*given, n_rows, stops)
        # Whether some chains come from a ladder of saved models.
        tempered = training.tracker is not None and training.tracker.keep
        rate = self._first_rate(training if stops and not tempered else None)
        plan = Plan(n_epochs, size, rate, tol=self.tol, keep_best=tempered)
        if not stops:
            return plan
        if tempered:  # it keeps its best epoch, of whatever rate
            fall_after = enough(schedule.fall_after, n_batches)
            return plan._replace(patience=schedule.n_stages * fall_after, fall_after=fall_after)
        chains = getattr(self, "chains", None)
        may_temper = self.tempered == "auto" == self.max_iter and chains in (None, "auto")
        may_temper = may_temper and not is_foreign(training.learner.parameters()[0])
        stages = schedule.stages(n_batches, rate, chains == "auto", training.base.is_binary)
        return plan._replace(stages=stages, may_temper=may_temper)

    def _first_rate(self, staged=None):
        """The learning rate that a training begins with; of stages if that is given."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        if staged is None:
            return self._schedule.steady_rate
        return self._schedule.first_rate(staged.base, self._encoder.coding.n_numbers)

    def _tracker(self, training, stops=False):
        """The tracker of ln Z during training: a new one, or that of the last fit."""
        model = training.learner.model().sides()
        # Whether states of the negative phase come from a ladder: as given, or as chains need.
        tempered = training.tempered if isinstance(self.tempered, str) else self.tempered > 0
        needs_none = not (self.track_likelihood or stops) or n_enumerated(model) <= EXACT_UNITS
        if needs_none and not tempered:
            return None
        base, seed = training.base, training.evaluation_seed
        if is_foreign(model.weights):
            base = base.moved(partial(like, model.weights))
        return Tracker.begun(
            training.tracker, base, self.track_likelihood, seed, in_stages=stops,
            tempered=self._schedule.ladder_share * tempered, n_weights=model.n_weights,
            batch_size=self._schedule.batch_size(self.batch_size, training.n_rows),
        )  # fmt: skip

    def _initial_weights(self, rng, n_above, n_below, dtype):
        n_bytes = MATRICES * n_above * n_below * np.dtype(dtype).itemsize
        if n_bytes > SMALL:
            check_memory(
                n_bytes,
                f"{type(self).__name__}: training {n_above:,} x {n_below:,} weights",
                "Use fewer hidden units, or leave out columns.",
            )
        # With "scaled", the inputs of a unit do not grow with the size of the other layer.
        scale = (n_above + n_below) ** -0.5 if self.init == "scaled" else self.init
        scale = scale if isinstance(scale, Real) else SMALL_WEIGHTS
        with QUIET():
            weights = rng.normal(0, scale, (n_above, n_below)).astype(dtype)
        # Energies and mean fields contain products of weights, which must be finite.
        if not np.abs(weights).max() < np.finfo(dtype).max ** 0.25:
            raise ValueError(
                f"init={scale:g} is too large: products of weights overflow in {dtype}. "
                "Use a smaller value, such as 0.01."
            )
        return weights

    # The training, and after it.

    def _failure_message(self, status, comparison):
        """The text of the warning for a failed fit, or None."""
        if status == "diverged":
            return f"{DIVERGED} The model before epoch {self.n_iter_ + 1} is kept."
        if comparison is not None and not comparison.exceeds(BETTER):
            size = self._schedule.batch_size(self.batch_size, self._training.n_rows)
            remedies = (
                f"Train longer (max_iter; there were {self.n_iter_} epochs), with smaller "
                f"mini-batches (batch_size is {size}) or with a larger learning_rate"
            )
            return no_better(comparison, self.n_features_in_, remedies, self.n_iter_)
        measured = self._training.measured(self.n_iter_)
        if status == "max_iter" and "validation_log_likelihood" in measured:
            return (
                f"The validation log-likelihood was still rising after {self.n_iter_} epochs. "
                "Increase max_iter, or continue the fit with warm_start=True."
            )
        return None
