"""Fits of all networks, from rows to attributes."""

import re
from copy import copy
from functools import cache, partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

from sklearn_boltz._methods import fingerprint, unchanged_on_error
from sklearn_boltz._new_values import recoded, take_new_values
from sklearn_boltz._warnings import warn
from sklearn_boltz.callbacks import iterations, with_callbacks
from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks._drawing import Drawing
from sklearn_boltz.networks._likelihoods import Likelihoods
from sklearn_boltz.networks._rows import (
    Rows,
    at_once,
    positive_of_batch,
    read,
    read_batches,
)
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.features._fit import MOST_ROUNDS
from sklearn_boltz.networks.features._likelihood import N_ROUNDS
from sklearn_boltz.networks.features._task import FeatureTask
from sklearn_boltz.networks.location._classes import fit_best
from sklearn_boltz.networks.location._fit import completed
from sklearn_boltz.networks.location._joint import JointLayout, joint_network, without_own
from sklearn_boltz.networks.model._gauge import reduce_blocks
from sklearn_boltz.networks.model._spin_model import term_arrays
from sklearn_boltz.networks.training._em import MAX_ROUNDS, N_DRAWS, fit_incomplete
from sklearn_boltz.networks.training._fit import MAX_ITER, Task, label_of, maximise
from sklearn_boltz.networks.training._objective import distinct_rows
from sklearn_boltz.networks.training._solvers import Monitor, blas_threads
from sklearn_boltz.tables._batches import as_batches
from sklearn_boltz.tables._cells import warn_of_pairs_apart
from sklearn_boltz.tables._kinds import NAMES, Need
from sklearn_boltz.tables._refusals import refuse_empty
from sklearn_boltz.tables._unseen import Unseen
from sklearn_boltz.tables._weights import Rule, row_weights

# With fewer parameters the matrices of a fit are so small that threads of BLAS mostly wait for
# each other.
MIN_THREADED_FIT = 20_000
# The parameters that all networks have.
CONSTRAINTS = {
    "columns": [StrOptions(set(NAMES)), list, dict, tuple, range],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    "unseen": [StrOptions({"smooth", "error", "missing"})],
    "verbose": ["verbose"],
}


def refuse(reason, remedy):
    """Raise what scikit-learn does for parameters that do not go together."""
    raise InvalidParameterError(f"{reason}. {remedy}")


class Network(Drawing, Likelihoods):
    """A network of discrete variables.

    A child defines ``_plan(rows, batches, initial)``: from rows, and where to begin, to the task,
    the name of the solver, steps and the `Monitor` of these, and the attributes that are known
    before the fit.
    """

    _need = Need(codes=True, signs=True, bins=True, scored=("number",))
    _grows = True
    # What the fit maximises.
    _objective = "pseudo-likelihood"
    # The fitted attributes of what is in the model besides pairs, of these three in their order:
    # terms, their weights, and a potential of the number of ones.
    _further = ()
    # The columns whose couplings are trends, linear in the positions of their values; None if none.
    _trends = None

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, coupling_init=None, intercept_init=None):
        """Fit the network to the rows of a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or batches
            Strings, booleans, categories, integers from 0 on, or -1 and 1; other numbers and dates
            are put into bins. See :ref:`tables`. NaN, None and pandas.NA are missing cells. From
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, the distinct
            rows are kept in memory if they have no more than four million entries. If they have
            more, there is a pass over the batches for each evaluation of the objective. Rows with
            missing cells or more than two values per column are always kept, and where numbers
            have normal scores all rows.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts: a row of weight
            2 is two rows. Others are relative, and sum to their effective number: :ref:`weights`.
        coupling_init : array-like of the shape of `coupling_`, default=None
            Initial couplings, symmetric. None means 0, or with `warm_start` those of
            the previous fit.
        intercept_init : array-like of the shape of `intercept_`, default=None
            Initial intercepts. None means those of independent variables, or with
            `warm_start` those of the previous fit.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, if all cells are missing, or if the rows do not allow
            what the parameters ask for.

        Warns
        -----
        ConvergenceWarning
            If there is no maximum, without a penalty, because the data separate a variable; if
            `max_iter` ends the fit; or if the maximum is still far when `tol` ends it.
        UserWarning
            If no row has both of two columns, as in surveys with split ballots.

        Notes
        -----
        After Ctrl-C the estimator has the parameters of the last complete iteration. If there is
        none, it is as before the fit. With `warm_start`, the next fit continues from there.
        """
        with unchanged_on_error(self):
            batches, given = as_batches(X, sample_weight), sample_weight
            sample_weight = row_weights(given, tell=True)
            going_on = self.get_params(deep=False).get("warm_start") and hasattr(self, "coupling_")
            places = take_new_values(self, X, sample_weight) if going_on else None
            coding = self._encoder.coding if going_on else None
            if batches is not None:
                X, batches = batches, self._encoded(batches, reset=not going_on)
                if self._encoder is not None and self._encoder.is_scored.any():
                    X, batches = at_once(X, type(self).__name__), None
            if batches is None:
                rows = read(self, X, sample_weight, coding)
            else:
                rows = read_batches(self, batches, coding)
            if rows.codes is not None:
                empty = (rows.codes < 0).all(axis=0)
                if empty.any():  # of a fit that continues
                    refuse_empty(type(self).__name__, self._encoder, empty)
                warn_of_pairs_apart(rows.codes >= 0, self._column, type(self).__name__)
            initial = self._initial(rows.coding, places, coupling_init, intercept_init)
            self._gaussians = None
            status = self._fit(rows, batches, X, y, initial)
            if rows.scores:
                self._fit_numbers(rows)
            n_rows = len(rows.codes) if batches is None else round(rows.total)
            self._rule = Rule.of_rows(given, n_rows)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to those seen before, and fit all of them.

        The result is that of `fit` on all rows at once, if these have the same kinds of columns and
        the same bins as the rows of the first call. New categories are learned. The distinct rows
        seen before and their weights are kept, at 1 bit per entry if all are complete and binary.
        Weights that are not counts are scaled anew, with those of all calls. The fit begins at the
        parameters of the last one, or anew if there are new categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            More rows, in the coding of the first ones.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts: a row of weight
            2 is two rows. Others are relative, and sum to their effective number: :ref:`weights`.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, or if the estimator was fitted to batches with so
            many distinct rows that they were not kept.

        Warns
        -----
        ConvergenceWarning
            As `fit` does.
        UserWarning
            If a value did not occur in earlier calls and counts as missing: with
            ``unseen="missing"``, or where the order of the values of a column is declared.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "coupling_")
            weights = row_weights(sample_weight, tell=True)
            places = None if first else take_new_values(self, X, sample_weight)
            rows = read(self, X, weights, None if first else self._encoder.coding)
            rule = Rule.of_rows(sample_weight, len(rows.codes))
            if rows.scores:
                raise ValueError(
                    f"{type(self).__name__}.partial_fit: normal scores of numbers follow from all "
                    "rows at once. Call `fit` with all of them, or set columns='binned'."
                )
            initial = self._initial(rows.coding, places)
            if not first:
                rows, rule = self._with_rows_before(rows, rule, places)
            # Interrupted, the estimator goes back to the rows of before.
            if self._fit(rows, None, X, y, initial) == "interrupted":
                raise KeyboardInterrupt
            self._rule = rule
        return self

    def _fit(self, rows, batches, X, y, initial):
        """Fit rows, and set all fitted attributes at once; -> how the fit ended."""
        with blas_threads(self.n_features_in_, MIN_THREADED_FIT):
            task, solver, steps, monitor, found = self._plan(rows, batches, initial)

            def attributes(network):
                return self._attributes(rows, task, *network) | {"_encoder": encoder()}

            @cache
            def encoder():
                if rows.codes is None or self.unseen != "smooth":
                    return self._encoder.of_model(rows.coding)
                # In a table of signs, other numbers are errors.
                n_values = np.where(rows.coding.low < 0, -1, rows.coding.n_values)
                n_values = self._encoder.n_open_values(n_values)
                unseen = Unseen.learn(rows.codes, rows.weights, n_values)
                return self._encoder.of_model(rows.coding, unseen)

            data, limit = X if batches is None else batches, monitor.max_iter
            with iterations(self, data, y, name="iteration", max_iter=limit) as end_iteration:
                monitor.end_iteration = lambda state: end_iteration(
                    lambda: attributes(task.network(state))
                )
                message, n_iter = monitor.run(steps), monitor.n_kept
                objective = np.array(monitor.values[:n_iter]) / monitor.total + task.constant
                history = {re.sub("[ -]", "_", task.objective): objective}
                figures = {"seconds": monitor.seconds} | monitor.figures
                for name in ("values_", "alphas_", "path_"):
                    vars(self).pop(name, None)
                vars(self).update(
                    attributes(task.network(monitor.last)),
                    **found,
                    solver_=solver,
                    n_iter_=n_iter,
                    converged_=monitor.status == "converged" and message is None,
                    history_=history | {k: np.array(v[:n_iter]) for k, v in figures.items()},
                )
        if self._tells:
            self._tell_columns()
            last = "" if not n_iter else f"{objective[-1]:.8f} a row, "
            alpha = f", alpha={found['alpha_']:.3g}" if np.ndim(found["alpha_"]) == 0 else ""
            print(f"{solver}: {n_iter} iterations, {task.objective} {last}{monitor.status}{alpha}")
        if message:
            warn(message, ConvergenceWarning)
        return monitor.status

    def _task(self, rows, batches, alpha=0.0):
        """The pseudo-likelihood of all pairs, penalised.

        It reads batches again where their distinct rows were not kept.
        """
        coding = rows.coding
        if rows.codes is None:
            positive = partial(positive_of_batch, self._reader(batches), coding)
            task = Task.of_batches(batches, positive, rows.sums, alpha)
        elif coding.is_binary and rows.is_complete:
            task = Task.of_rows(*distinct_rows(rows.codes > 0, rows.weights), alpha)
        else:
            kept = distinct_incomplete(rows.codes, rows.weights)
            if coding.is_binary:
                task = Task.of_incomplete_rows(*kept, alpha)
            else:
                task = CodesTask(*kept, coding.n_values, alpha, self._trends)

        task.label = label_of(self._encoder, coding)
        return task

    def _plan_of_features(self, rows, initial, n_draws, generator=None, alpha=None):
        """The plan of smooth functions, of columns of which one has more than two values at least.

        With a generator, the fit goes on to the maximum of the likelihood. `alpha` is the strength
        of the penalty if it is given.
        """
        task = FeatureTask.of_rows(rows, self._encoder, generator, alpha)
        found = np.zeros((len(task.column_sizes),) * 2)
        steps = partial(task.steps, initial, n_draws, found)
        solver, n_rounds = "lbfgs", MOST_ROUNDS
        if generator is not None:
            solver, n_rounds = "sampling", MOST_ROUNDS + N_ROUNDS
        found = {"alpha_": found if alpha is None else alpha}
        return task, solver, steps, self._monitor(n_rounds), found

    def _completes(self, rows):
        """Whether the model completes missing cells, in rounds of EM."""
        return self.get_params(deep=False).get("missing", "em") == "em" and not rows.is_complete

    def _steps(self, rows, task, method, initial, first=None, n_draws=N_DRAWS):
        """The steps of a fit by a method, and how many iterations there are by default.

        `first` finds where EM begins.
        """
        if self._completes(rows):
            steps = partial(fit_incomplete, task, initial, method, first or method, n_draws)
            return steps, MAX_ROUNDS
        return partial(maximise, task, initial, method), MAX_ITER[method.name]

    def _monitor(self, max_iter, tol=None):
        """The monitor of a fit, with this `max_iter` unless the user has set another."""
        tol = self.tol if tol is None else tol
        return Monitor(tol, self.max_iter or max_iter, verbose=self.verbose)

    def _refitted(self, codes, weights, initial=(None, None), **params):
        """A copy with other parameters, fitted to rows of codes."""
        other = copy(self)
        for name in ("_derived", "_skl_callbacks"):
            vars(other).pop(name, None)
        vars(other).update(params, verbose=0)
        rows = Rows(self._encoder.coding, self._sample_dtype, codes, weights, in_order=True)
        if other._fit(rows, None, None, None, initial) == "interrupted":
            raise KeyboardInterrupt
        return other

    def _fit_numbers(self, rows):
        """Fit the normal scores of numbers, given the categories."""
        network = self._model().potts
        tables, z, log_slopes = zip(*rows.scores, strict=True)
        candidates = completed(network, rows.codes, z, rows.weights)
        place, self._gaussians = fit_best(candidates, log_slopes)
        self._encoder = tables[place].of_model(self._encoder.coding, self._encoder.unseen)
        vars(self).pop("_derived", None)  # shares of unseen values depend on the scores, too

    def _layout(self):
        """The entries of columns in the network of categories and numbers."""
        return JointLayout(self.n_values_, self._encoder.is_scored)

    def _joint_network(self):
        """Couplings and intercepts of categories and numbers, each given all else."""
        layout, (mean, covariance) = self._layout(), self._gaussians.moments
        mean, slopes = without_own(mean, self._gaussians.slopes, layout)
        return joint_network(self._model().potts, mean, slopes, covariance, layout)

    def _attributes(self, rows, task, coupling, intercept, terms=(), weights=(), potential=()):
        """The fitted attributes that make a model."""
        potential = potential if len(potential) else np.zeros(self.n_features_in_ + 1)
        further = list(terms), np.array(weights, dtype=np.float64), potential
        parameters = [coupling, intercept, *term_arrays(terms, weights), potential]
        values = {"values_": rows.coding.values(0)} if rows.coding.is_binary else {}
        return values | {
            "n_values_": rows.coding.n_values,
            "coupling_": coupling,
            "intercept_": intercept,
            **dict(zip(self._further, further, strict=False)),
            "_n_features_out": len(intercept),
            "_base": task.base,
            "_constant": 0.0,
            "_estimate": fingerprint(parameters),
            "_sample_dtype": rows.dtype,
            "_seen": task.seen,
            "_varying": task.varying,
        }

    def _with_rows_before(self, rows, rule, places):
        """All rows since the first fit, and the rule of their weights.

        `places` are those of `take_new_values`.
        """
        if self._seen is None:
            raise ValueError(
                "The batches of the last fit had so many distinct rows that they were not "
                "kept, so there is nothing to add rows to. Fit Batches of all rows."
            )
        before, counts = self._seen_rows()
        rule, *weights = self._rule.together(rule, counts, rows.weights)
        codes = np.concatenate([recoded(before, places), rows.codes])
        return Rows(rows.coding, self._sample_dtype, codes, np.concatenate(weights)), rule

    def _seen_rows(self):
        """Codes of the distinct training rows, and how often each counts."""
        codes, counts = self._seen
        if codes.dtype == np.uint8:
            codes = np.unpackbits(codes, axis=1, count=self.n_features_in_).view(np.int8)
        return codes, counts

    def _initial(self, coding, places, coupling=None, intercept=None):
        """Initial couplings and intercepts; where the user names none, those of the last fit.

        `places` are those of `take_new_values`, None in a new fit. Where columns have grown, a fit
        begins anew.
        """
        d = self.n_features_in_ if coding.is_binary else int(coding.n_values.sum())
        if places == {} and np.array_equal(coding.n_values, self.n_values_):
            coupling = self.coupling_ if coupling is None else coupling
            intercept = self.intercept_ if intercept is None else intercept
        if coupling is not None:
            coupling = np.array(coupling, dtype=np.float64)
            if (
                coupling.shape != (d, d)
                or not np.isfinite(coupling).all()
                or not np.array_equal(coupling, coupling.T)
                or coupling.diagonal().any()
            ):
                raise ValueError(
                    f"coupling_init must be a finite symmetric matrix of shape {(d, d)} with a "
                    "zero diagonal."
                )
        if intercept is not None:
            intercept = np.array(intercept, dtype=np.float64)
            if intercept.shape != (d,) or not np.isfinite(intercept).all():
                raise ValueError(f"intercept_init must be a finite vector of shape {(d,)}.")
        return coupling, intercept

    # What statistics of a fitted network ask for.

    def _ridge(self):
        """The strength per row of the penalty on the squares of the couplings."""
        return self.alpha_

    def _allowed_pairs(self):
        """The mask that `edges` stands for; None for all pairs."""
        return None

    def _has_selected(self):
        """Whether a penalty has chosen which couplings are 0."""
        return False

    def _free_pairs(self):
        """Which pairs of columns have a coupling that the data decide, (d, d); None for all.

        A sparse penalty leaves those that it has not set to 0.
        """
        free = self._allowed_pairs()
        if not self._has_selected():
            return free
        chosen = self._pair_norms() > 0
        return chosen if free is None else chosen & free

    def _pair_norms(self):
        """The greatest absolute coupling of each pair of columns, (d, d)."""
        first = np.cumsum(self.n_values_) - self.n_values_
        first = np.arange(self.n_features_in_) if self._encoder.coding.is_binary else first
        return reduce_blocks(np.maximum, np.abs(self.coupling_), first)

    def _is_chosen(self):
        """Whether the estimate is that of `fit`, with a ridge of its choice."""
        return False

    def _functions(self, codes, weights):
        """Those of the columns that vary, which describe couplings; None for all values."""

    def _no_errors(self):
        """Why there are no standard errors of the estimates, and what to do; None if there are."""

    def _unpenalised(self, codes, weights):
        """The network that standard errors, tests and criteria are of.

        That is this one. Where `fit` has chosen the strength of a penalty, it is the estimate from
        the same rows without it, unless a user has set the parameters. Of rows that were not kept,
        `codes` and `weights` take the place.
        """
        return self
