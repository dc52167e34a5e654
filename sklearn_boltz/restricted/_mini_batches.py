"""Estimators that learn by epochs of mini-batches, with early stopping and resuming."""

import warnings
from functools import cache, partial
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._estimator import (
    checked_weights,
    dense,
    unchanged_on_error,
)
from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.callbacks import iterations, with_callbacks
from sklearn_boltz.numerics._arrays import dispatched, is_foreign, like
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import TRACKED, BaseBoltzmannMachine
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted.model._columns import LEARNED
from sklearn_boltz.restricted.model._enumeration import n_enumerated
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import check_normalisable
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._auto import (
    LEAST_DIVIDED,
    STEADY_RATE,
    STREAMED_ROWS,
    chosen_batch,
    chosen_components,
    chosen_rate,
    tested_independence,
)
from sklearn_boltz.restricted.training._epochs import QUIET, Plan, train
from sklearn_boltz.restricted.training._gaps import KeptValues
from sklearn_boltz.restricted.training._initial import INITIAL_SCALE, fitted_init, is_model
from sklearn_boltz.restricted.training._labelled_rows import LabelledRows
from sklearn_boltz.restricted.training._monitor import BETTER, EXACT_UNITS, no_better
from sklearn_boltz.restricted.training._progress import Fall, LastStage, Stages
from sklearn_boltz.restricted.training._rows import (
    SHARE,
    ChosenRows,
    StreamedRows,
    as_mini_batch,
    divided,
    has_rows,
    held_out_share,
    merge_sums,
    relative,
    sums_of_batch,
    visits,
    with_information,
)
from sklearn_boltz.restricted.training._tracker import LADDER_WEIGHTS, Tracker
from sklearn_boltz.tables._batches import as_batches, rows_of, summarise
from sklearn_boltz.units._unit import UnitType

DIVERGED = "The parameters diverged. Use a smaller learning_rate."
# With max_iter="auto": the minimum and the maximum number of epochs, and with early stopping the
# maximum number of epochs and of mini-batches.
LEAST_EPOCHS, MOST_EPOCHS, MOST_BEFORE_STOP, MOST_BATCHES_BEFORE_STOP = 10, 200, 1000, 100_000
# Number of stages of a training, each with FALL times the learning rate of the one before.
N_STAGES = 4
# Number of epochs and of mini-batches without improvement that end a stage. Where a last one is to
# come, half as many mini-batches end the first stage, and the epochs alone those after it.
FALL_AFTER, FALL_AFTER_BATCHES, FALL = 8, 400, 0.3
# Epochs, and mini-batches, in which a training should become better than independent columns: with
# the rate of "auto", the parity of three columns beside five others takes 900.
PLATEAU, PLATEAU_BATCHES = 20, 4000
# The last stage with persistent="auto": limits of its learning rate, as a part of the first one and
# as such; its number of mini-batches, of epochs for each mini-batch of an epoch, and the least and
# largest number of epochs. With 30 epochs in place of 100, Pumsb-star loses a nat, the digits .02.
LAST_PART, LAST_RATE = 0.12, 0.006
LAST_BATCHES, LAST_EPOCHS, LEAST_LAST, MOST_LAST = 15_000, 2, 30, 100
# Standard deviation of the weights of units beyond those of an initial model.
SMALL_WEIGHTS = 0.01
# Of the size of the weights, at least, that a training has at its peak: 5 to 15 were measured.
MATRICES = 5


class MiniBatchEstimator(BaseBoltzmannMachine):
    """An estimator that learns by epochs of mini-batches.

    A fit changes only a `Training`; the attributes are set from it at the end. A subclass has

    - `_begun(X, weights, n_rows)`, a new `Training` for rows X; parameters that are ``"auto"`` are
      chosen by n_rows;
    - `_resumed(training)`, which has it continue from the public attributes;
    - `_monitor(training, X, train, valid, weights)`, which measures the progress of training.

    Rows have NaN in missing cells. Weights have mean 1, or are None for equal weights.
    """

    # With max_iter="auto": the number of mini-batches to aim at.
    _auto_batches = 1500
    _parameter_constraints = {
        **BaseBoltzmannMachine._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "init": INITIAL_SCALE,
        "early_stopping": [*SHARE, StrOptions({"auto"}), "array-like", "sparse matrix"],
    }

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model in epochs over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or batches
            Words, levels, bits, numbers and dates, see :ref:`tables`; units that `columns` gives
            may limit the values. NaN is a
            missing value: the model is fitted to the observed values. For
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, only a few
            batches are in memory at a time. If Dask has a cluster, its workers share each
            mini-batch.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            Relative weight of each row; with batches, of all rows in their order. In each epoch, a
            row is used w times on average, where w is its weight divided by the mean of the
            positive weights. None means equal weights.

        Returns
        -------
        self : object
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
            no better than independent columns. If `max_iter` ended a fit with `early_stopping`.

        Notes
        -----
        After Ctrl-C, the model is that of the last complete epoch. If there is none, the model is
        the one before the fit. With `warm_start`, the next fit continues from it.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight):
        status = None
        with unchanged_on_error(self):
            going_on = self.warm_start and hasattr(self, "components_")
            rows, weights = self._source(X, y, sample_weight, reset=not going_on)
            if not going_on:
                self._fit_init(X, sample_weight)
            n_rows, stops = rows.shape[0], self._stops_early(rows)
            training = self._taken_up(n_rows) if going_on else self._new(rows, weights, n_rows)
            training.tracker = self._tracker(training, stops)
            # Whether it uses the chains of a ladder of saved models.
            if getattr(self, "tempered", 0) and not stops:
                training.best = None  # only epochs of this fit are compared
            rows = rows.astype(training.dtype, copy=False)
            # Looked at before rows are set aside.
            independence, is_array = None, isinstance(rows, np.ndarray)
            if is_array and stops and self.max_iter == "auto" and weights is None:
                independence = tested_independence(rows, self._layout_now().starts)
            rows, monitor = self._divide(training, rows, weights, stops)
            plan = self._plan(training, rows.n_rows, stops)
            if independence is not None:
                plan = plan.adapted(independence)
            self._tell_columns()
            self._tell_choice(training, rows.n_rows, stops)
            n_before = training.n_epochs
            with (
                Workers(self.n_jobs) as workers,
                iterations(self, X, y, name="epoch", max_iter=plan.n_epochs) as end_epoch,
            ):

                def tell(training):
                    self._tell(training.n_epochs, training.figures(training.n_epochs))
                    return end_epoch(partial(self._attributes, training))

                training, status = train(training, rows, monitor, plan, workers, tell)
                nothing_new = training.n_epochs == n_before and not training.before
                if status == "interrupted" and nothing_new:
                    raise KeyboardInterrupt
                vars(self).update(self._attributes(training))
                if independence is not None and independence.is_likely and status == "max_iter":
                    status = "independent"
                if status != "interrupted":
                    check_normalisable(self._model())
                    self._conclude(training, status, monitor, workers)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

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
            Relative weight of each row. A row is used w times on average, where w is its weight
            divided by the mean of the positive weights. None means equal weights.

        Returns
        -------
        self : object
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If the parameters diverge; the model is then the one before the call.
        """
        return self._partial_fit(X, y, sample_weight)

    def _partial_fit(self, X, y, sample_weight):
        with unchanged_on_error(self):
            first = not hasattr(self, "components_")
            X, weights = self._source(X, y, sample_weight, reset=first, is_batch=True)
            if first:
                self._fit_init()
            training = self._new(X, weights, STREAMED_ROWS) if first else self._taken_up()
            training.tracker = self._tracker(training)
            X = dense(X).astype(training.dtype, copy=False)
            if first:
                vars(self).update(self._attributes(training.copy()))
            else:
                training.see(X, weights)
            if weights is not None:
                X = X[np.repeat(np.arange(len(X)), visits(weights, training.rng))]
            training.n_passes += 1
            with Workers(self.n_jobs) as workers, QUIET():
                training.learn(as_mini_batch(X), self._first_rate(), workers)
            if training.is_finite():
                vars(self).update(self._attributes(training))
            else:
                kept = "The model before this batch is kept."
                level = find_stack_level()
                warnings.warn(f"{DIVERGED} {kept}", ConvergenceWarning, stacklevel=level)
            return self

    # Before the training.

    def _new(self, X, weights, n_rows):
        """A new training, where the rows lie."""
        training = self._begun(X, weights, n_rows)
        training.n_rows, rows = n_rows, X.V if isinstance(X, LabelledRows) else X
        there = isinstance(rows, DeviceRows)
        return training.moved(partial(like, rows.array)) if there else training

    def _taken_up(self, n_rows=None):
        """A copy of the last training, which goes on from the public attributes."""
        found = [units.n_units for units in self._layered().layers[1:]]
        name, shown = "hidden_layer_sizes", f"layers of {found} units"
        if not self._is_deep:
            name, found = "n_components", found[0]
            shown = f"{found} components"
        given = getattr(self, name)
        if not (isinstance(given, str) or np.array_equal(np.ravel(given), np.ravel(found))):
            raise ValueError(
                f"{type(self).__name__}: {name} is {given}, but the model to continue from has "
                f"{shown}. Set {name}={found}, or fit with warm_start=False."
            )
        training = self._training.copy()
        training.n_rows = n_rows or training.n_rows
        self._resumed(training)
        return training

    def _fit_init(self, X=None, sample_weight=None):
        """Find the initial model, if `init` is one."""
        if is_model(self.init):
            name, layout = type(self).__name__, self._layout_now()
            self.init_ = fitted_init(self.init, name, layout, self._column, X, sample_weight)

    def _source(self, X, y, sample_weight, reset, is_batch=False):
        """The rows to train on, an array, a CSR matrix or `StreamedRows`, and their weights."""
        if dispatched(X):
            return self._device_source(X, sample_weight, reset)
        if is_batch:
            X = self._validated(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
            return with_information(X, sample_weight)
        batches = as_batches(X)
        if batches is None:
            return self._rows_of_fit(X, sample_weight, reset)
        indexed = batches is not X
        rows = self._streamed(batches, sample_weight, sample_weight, reset=reset, indexed=indexed)
        return rows, rows.weights

    def _begin_batches(self, batches, sample_weight, reset):
        """Batches as the training reads them. With `reset`, the columns are learned."""
        batches = self._encoded(batches, reset=reset)
        if not reset:
            return batches
        self._unseen = None
        if not batches.are_codes and isinstance(self.columns, str) and self.columns not in LEARNED:
            return batches
        rows = batches.blocks.first(rows_of)
        if rows is None:  # an error follows in the pass over all batches
            return batches
        # Invalid weights are rejected later, when all rows are known.
        n_rows = rows.shape[0]
        weights = None if np.ndim(sample_weight) != 1 else np.asarray(sample_weight)[:n_rows]
        if weights is not None and (len(weights) < n_rows or not (weights > 0).any()):
            weights = None
        reader = self._reader(batches)
        vars(reader).pop("feature_names_in_", None)
        X = reader._coded(rows, allow_nan=True)
        self._layout = self._learned_layout(X, weights)
        if batches.are_codes:
            self._unseen = self._learned_unseen(X, weights)
        return batches

    def _streamed(self, batches, sample_weight=None, visits=None, *, reset, indexed=False):
        """Rows that come in batches, with how often each is visited: a pass over them."""
        batches = self._begin_batches(batches, sample_weight, reset)
        reader = self._reader(batches)
        found = summarise(batches, partial(sums_of_batch, reader._validated), merge_sums)
        # Names were compared in that pass, and numbers of columns are enough from here on.
        vars(reader).pop("feature_names_in_", None)
        check = partial(reader._validated, allow_nan=True)
        rows = StreamedRows(batches, found, check, visits, indexed=indexed)
        self._check_observed(rows)
        if reset:
            self._count_values(rows)
        return rows

    def _count_values(self, rows):
        """Count the values of all batches, of which `_unseen` knows those of the first one."""
        layout, (totals, n_cells) = self._layout_now(), rows.observed_sums
        n_cells = np.broadcast_to(n_cells, len(totals))
        for j, seen in enumerate(self._unseen.counts if self._unseen is not None else ()):
            if layout.one_hot[j]:
                self._unseen.counts[j] = totals[layout.numbers_of(j)][: len(seen)]
            else:
                place = layout.starts[j]
                bits = np.array([n_cells[place] - totals[place], totals[place]])
                self._unseen.counts[j] = bits[: len(seen)]

    def _device_source(self, X, sample_weight, reset):
        """The rows with positive weights of an array on a device, and their weights."""
        X = self._validated(X, reset=reset)
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, np.empty((X.shape[0], 0)))
            counts = np.flatnonzero(weights > 0)
            X, weights = DeviceRows(X)[counts], relative(weights[counts])
        return DeviceRows(X, weights), weights

    def _stops_early(self, rows):
        """Whether some rows are set aside, which tell when to end."""
        if has_rows(self.early_stopping):
            return True
        if self.early_stopping == "auto":
            return self.max_iter == "auto" and rows.shape[0] >= LEAST_DIVIDED
        return bool(self.early_stopping)

    def _divide(self, training, X, weights, stops):
        """-> the rows to train on, and a function that returns the monitor, made when needed."""
        seed = training.evaluation_seed
        fraction, n_given = held_out_share(self.early_stopping) if stops else 0, 0
        if has_rows(self.early_stopping):
            X, weights, n_given = self._with_validation_rows(X, weights)
        if isinstance(X, StreamedRows) and not X.indexed:
            if fraction and X.shape[0] - len(X.useless) < 2:
                raise ValueError(
                    "early_stopping needs at least two rows, but X has 1. Use more rows or "
                    "early_stopping=False."
                )
            some, valid = X.choose(np.random.default_rng(seed), fraction)
            monitor = partial(self._monitor, training, X, some, valid, weights)
            return X.all_but(valid), cache(monitor)
        if isinstance(X, StreamedRows):
            numbers, kept = X.usable(), X.kept_values()
        else:
            numbers, kept = None, KeptValues.of(X, training.dtype)
        n_rows = (X.shape[0] if numbers is None else len(numbers)) - n_given
        train, valid = divided(n_rows, fraction, seed)
        if n_given:
            valid = np.arange(n_rows, n_rows + n_given)
        if numbers is not None:
            train, valid = numbers[train], numbers[valid]
        if kept is None or training.kept is None or training.kept.digest != kept.digest:
            training.kept = kept
        rows = ChosenRows(X, train, weights, training.kept)
        return rows, cache(partial(self._monitor, training, X, train, valid, weights))

    def _with_validation_rows(self, X, weights):
        """-> the rows to train on, then those of `early_stopping`; their weights, and how many."""
        if not (isinstance(X, np.ndarray) or issparse(X)):
            raise ValueError(
                f"{type(self).__name__}: early_stopping has validation rows, which is for rows in "
                "memory, but X comes in batches or lies on a device. Give a share, such as "
                "early_stopping=0.1, or an array of some of the rows."
            )
        valid = dense(self._validated(self.early_stopping, allow_nan=True))
        stack = partial(vstack, format="csr") if issparse(X) else np.vstack
        if weights is not None:
            weights = np.append(weights, np.ones(len(valid)))
        return stack([X, valid.astype(X.dtype, copy=False)]), weights, len(valid)

    def _n_batch(self, n_rows):
        """Number of rows of a mini-batch."""
        return chosen_batch(n_rows) if self.batch_size == "auto" else self.batch_size

    def _plan(self, training, n_rows, stops):
        """The plan of the training on `n_rows` rows: its length and its learning rate."""
        size = self._n_batch(n_rows)
        n_epochs, n_batches = self.max_iter, max(1, round(n_rows / size))
        if n_epochs == "auto":
            most, of_batches = MOST_EPOCHS, self._auto_batches
            if stops:
                most, of_batches = MOST_BEFORE_STOP, MOST_BATCHES_BEFORE_STOP
            n_epochs = int(np.clip(round(of_batches / n_batches), LEAST_EPOCHS, most))
        is_tempered = getattr(self, "tempered", 0) > 0
        rate = self._first_rate(training if stops and not is_tempered else None)
        plan = Plan(n_epochs, size, rate, tol=self.tol, keep_best=is_tempered)
        if not stops:
            return plan
        patience = enough(FALL_AFTER, FALL_AFTER_BATCHES, n_batches)
        if is_tempered:  # it keeps its best epoch, of whatever rate
            return plan._replace(patience=(N_STAGES - 1) * patience, fall=Fall(patience, FALL))
        last, later = None, np.inf
        if getattr(self, "persistent", False) == "auto":  # it makes up for what stages before leave
            patience, later = enough(FALL_AFTER, FALL_AFTER_BATCHES // 2, n_batches), FALL_AFTER
            n_last = min(LAST_BATCHES // n_batches, LAST_EPOCHS * n_batches)
            n_last = int(np.clip(n_last, LEAST_LAST, MOST_LAST))
            last = LastStage(min(LAST_PART, LAST_RATE / rate), n_last)
        plateau = enough(PLATEAU, PLATEAU_BATCHES, n_batches)
        n_stages = N_STAGES - (last is not None)
        return plan._replace(stages=Stages(patience, FALL, n_stages, last, plateau, later))

    def _first_rate(self, staged=None):
        """The learning rate that a training begins with; of stages if that is given."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        return STEADY_RATE if staged is None else chosen_rate(staged.base)

    def _tracker(self, training, stops=False):
        """The tracker of ln Z during training: a new one, or that of the last fit."""
        if not hasattr(self, "track_likelihood"):
            return None
        model, is_tempered = training.learner.model().sides(), getattr(self, "tempered", 0) > 0
        needs_none = not (self.track_likelihood or stops) or n_enumerated(model) <= EXACT_UNITS
        if needs_none and not is_tempered:
            return None
        base, seed = training.base.astype(training.dtype), training.evaluation_seed
        if is_foreign(model.weights):
            base = base.moved(partial(like, model.weights))
        size, share = self._n_batch(training.n_rows), self.track_likelihood
        has_ladder = not (stops and model.n_weights < LADDER_WEIGHTS)
        return Tracker.begun(training.tracker, base, share, seed, is_tempered, size, has_ladder)

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
        scale = SMALL_WEIGHTS if is_model(scale) else scale
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

    def _tell_choice(self, training, n_rows, stops):
        """Print what was chosen by the data, if that is wanted."""
        if self.verbose:
            chosen = {"rows": n_rows, **self._chosen(training.learner), "early_stopping": stops}
            chosen = ", ".join(
                f"{name} {value if isinstance(value, list) else f'{value:.4g}'}"
                for name, value in chosen.items()
            )
            print(f"[{type(self).__name__}] trains with {chosen}")

    def _chosen(self, learner):
        """The parameters that may be ``"auto"``, as they are used."""
        if "scheme" not in vars(learner):
            return {}
        sizes = [units.n_units for units in Layered.of(learner.model()).layers[1:]]
        size = {"hidden_layer_sizes": sizes} if self._is_deep else {"n_components": sizes[0]}
        return {**size, "alpha": learner.scheme.alpha}

    def _attributes(self, training):
        chosen = self._chosen(training.learner)
        return {
            **super()._attributes(training),
            **{f"{name}_": value for name, value in chosen.items()},
            **({"pretrain_history_": list(training.before)} if self._is_deep else {}),
            "n_iter_": training.n_epochs,
        }

    def _conclude(self, training, status, monitor, workers):
        """Warn if the fit failed."""
        kept_best = status == "converged" or (
            status == "max_iter" and getattr(self, "tempered", 0) > 0
        )
        epoch = training.best["epoch"] if kept_best and training.best else training.n_epochs
        comparison = None
        if epoch and status != "diverged":
            model = training.learner.model()
            comparison = monitor().compare(training.measured(epoch), model, workers)
        message = self._trouble(status, comparison)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())

    def _trouble(self, status, comparison):
        """The text of the warning for a failed fit, or None."""
        if status == "independent":
            return (
                "The columns look independent, by likelihood-ratio tests against all joint "
                "distributions and of each pair of columns, so that there is nothing to learn, and "
                "the training ended after an epoch. Set max_iter to train longer."
            )
        if status == "diverged":
            return f"{DIVERGED} The model before epoch {self.n_iter_ + 1} is kept."
        if comparison is not None and not comparison.exceeds(BETTER):
            size = self._n_batch(self._training.n_rows)
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


class MiniBatchRBM(MiniBatchEstimator, BaseRBM):
    """An RBM that is trained by mini-batches."""

    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        **TRACKED,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    # Hidden units for the root of the number of rows, at most, of ``n_components="auto"``. With
    # 6 instead of 2, the likelihood of the digits is better by .2 to .4 nats.
    _units_per_root = 6

    def _hidden_units(self, n_rows, n_numbers):
        """The type and the number of the hidden units of a training that begins, by layers."""
        n_units = self.n_components
        if n_units == "auto" and isinstance(self.hidden, UnitType):
            n_units = self.hidden.n_units
        elif n_units == "auto":
            n_units = chosen_components(n_rows, n_numbers, self._units_per_root)
        return [(self.hidden, n_units)]


def enough(n_epochs, n_mini_batches, n_batches):
    """Smallest number of epochs, `n_epochs` or more, that has `n_mini_batches` mini-batches."""
    return max(n_epochs, -(-n_mini_batches // n_batches))
