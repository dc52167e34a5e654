"""Density: what all models of the rows of tables share, from checks of tables to their verbs."""

import operator
import warnings
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import Bunch
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_boltz._answers import Answers
from sklearn_boltz._methods import dense, fingerprint, named
from sklearn_boltz._tabular import Tabular
from sklearn_boltz._warnings import warn
from sklearn_boltz.callbacks import CallbackSupportMixin
from sklearn_boltz.numerics._arrays import as_numpy, dispatched, is_foreign, place_of
from sklearn_boltz.partition._estimates import contradiction
from sklearn_boltz.tables._batches import mapped, naming, summarise
from sklearn_boltz.tables._blocks import ONE_PASS
from sklearn_boltz.tables._cells import (
    as_array,
    as_numbers,
    missing_cells,
    unusable_cell,
)
from sklearn_boltz.tables._coded import Coded, uncoded
from sklearn_boltz.tables._counts import (
    TableCounts,
    interpolating,
    locate_error_batch,
    of_batch,
    without_rows,
)
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._form import as_plain_table, check_form
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._kinds import (
    Kind,
    grouped,
)
from sklearn_boltz.tables._phrases import join_columns
from sklearn_boltz.tables._recognition import stands_for_itself
from sklearn_boltz.tables._refusals import MISSING_IN_FIT
from sklearn_boltz.tables._values import beyond_floats
from sklearn_boltz.tables._weights import checked_weights, mean_of_rows

VERSION = version("sklearn_boltz")

# What to do about missing cells.
COMPLETE_TO_USE = "Fill missing cells by `impute` first."
COMPLETE_IF_SPARSE = (
    "No cell of a sparse matrix may be missing: pass X.toarray(), in which NaN is a missing cell."
)
# What is known of the columns of batches.
KNOWN = "n_features_in_", "feature_names_in_", "_other_labels", "_encoder"


class Density(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    Answers,
    Tabular,
    BaseEstimator,
):
    """A density model of discrete data that is also a transformer.

    A child defines `fit`, `transform`, `energy`, `sample`, `log_partition`, what `Answers` needs,
    and `_parameters`, the arrays that cached results depend on; `fit` sets `_n_features_out`, and
    `_validate` the `_encoder`.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.input_tags.categorical = self._need.codes
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = self._computes_on_devices
        return tags

    # scikit-learn does this for its own estimators only.

    def __getstate__(self):
        state = {**super().__getstate__(), "_sklearn_boltz_version": VERSION}
        if "_derived" in state:
            # Numbers took long to compute; arrays are only large.
            derived = state["_derived"].items()
            large = "covariance", "without_penalty"
            state["_derived"] = {k: v for k, v in derived if k not in large}
        return state

    def __setstate__(self, state):
        state = dict(state)
        written_by = state.pop("_sklearn_boltz_version", "before 0.1")
        if written_by != VERSION:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=f"{type(self).__name__} of sklearn_boltz",
                    current_sklearn_version=VERSION,
                    original_sklearn_version=written_by,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)

    def score_samples(self, X):
        """Return the log-probability of the observed cells of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, also sparse if `fit` takes that. Missing cells (NaN) are summed out.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            ``-free_energy(X) - log_partition_``, in nats: normalised, the same in each call, and 0
            for a row without an observed cell. It is exact, or estimated with a fixed seed, where
            these are. Values that `fit` did not see count as `unseen` says.
        """
        check_is_fitted(self)
        cells = self._known_cells(X)
        return self._with_cells(X, cells, -self._free_energy(X, cells) - self.log_partition_)

    def score(self, X, y=None, sample_weight=None):
        """Return the mean log-probability of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        score : float
            Mean of `score_samples`, in nats. Higher is better.
        """
        return mean_of_rows(as_numpy(self.score_samples(X)), sample_weight)

    @property
    def log_partition_(self):
        """Logarithm of the normalising constant, in nats; computed at first access."""
        check_is_fitted(self)

        def compute():
            estimate = self.log_partition(random_state=self._seed_of(None))
            return Bunch(value=estimate.value, method=estimate.method)

        estimate = self._cached("log_partition", compute)
        _, floor = self._derived.get("log_partition_floor", (None, Bunch()))
        against = contradiction(estimate, floor)
        if against:
            warn(against)
        return estimate.value

    def _cached(self, name, compute, *others):
        """A figure that follows from the fitted parameters, such as ln Z, and from other arrays.

        It is computed again where their content has changed, however a user has changed it.
        """
        derived, state = vars(self).setdefault("_derived", {}), fingerprint(self._parameters())
        if derived.get("parameters") != state:
            derived.clear()
            derived["parameters"] = state
        key = fingerprint(others)
        if derived.get(name, (None, None))[0] != key:
            derived[name] = key, compute()
        return derived[name][1]

    # Whether arrays of other libraries than NumPy are computed with where they lie.
    _computes_on_devices = False

    def _check_library(self, X):
        """Refuse arrays that scikit-learn would dispatch, if the estimator takes NumPy's only."""
        if not self._computes_on_devices and dispatched(X):
            raise ValueError(
                f"{type(self).__name__} computes with NumPy arrays only, and X is one of "
                f"{place_of(X)}. Convert it, as by sklearn.utils._array_api.move_to, or set "
                "array_api_dispatch=False if it is in the memory of the processor."
            )

    # Tables.

    # Whether rows are the codes of a table that is known.
    _reads_codes = False
    # Whether a fit that continues another one learns new categories.
    _grows = False

    def _validate(self, X, *, reset, allow_nan=False, sample_weight=None, **options):
        """Check a table as scikit-learn does; -> an array of numbers, for strings of their codes.

        With `reset`, the values of the columns are learned, from rows that count as often as
        `sample_weight` says; those that do not count are NaN. An error names the cell and the
        remedy. Rows that are `Coded` have been checked.
        """
        if isinstance(X, Coded):
            if reset:
                self._validate_data(X.X, reset=True, skip_check_array=True)
                self._encoder = X.table
            return check_array(X.codes, ensure_all_finite="allow-nan", **options)
        if self._reads_codes:
            return check_array(X, ensure_all_finite="allow-nan", **options)
        complete = None if allow_nan else MISSING_IN_FIT if reset else COMPLETE_TO_USE
        if issparse(X):
            complete = COMPLETE_IF_SPARSE
        options["ensure_all_finite"] = "allow-nan" if allow_nan else True
        # Of an array of numbers, there is nothing to find out.
        is_plain = type(X) is np.ndarray and X.dtype.kind in "biuf"
        numbers_only = is_plain and not beyond_floats(X)
        if not numbers_only:
            self._check_library(X)
            with named(self):
                check_form(X)
                X, numbers_only = as_plain_table(X)
        with self._naming_cells(X, complete):
            options["skip_check_array"] = not numbers_only
            checked = self._validate_data(X, reset=reset, **options)
            if numbers_only and checked.dtype.kind == "O":  # such as booleans with gaps, of polars
                checked = as_numbers(checked)
        weights, counted = sample_weight, None
        of_cells = isinstance(weights, np.ndarray) and weights.shape == X.shape  # in batches
        if weights is not None and not of_cells:
            weights = checked_weights(weights, X)
            if reset and allow_nan and not issparse(X) and not weights.all():
                counted = weights > 0
                kept = np.flatnonzero(counted)
                X, checked, weights = some_rows(X, kept), some_rows(checked, kept), weights[kept]
        with named(self):
            if reset:
                numbers, kinds = checked if numbers_only else None, self._kinds(X)
                self._encoder = Encoder.learn(X, numbers, self._need, kinds, weights)
            table = vars(self).get("_encoder") or Encoder.of_numbers(checked)
            coded = table.encode(checked, self.unseen if allow_nan else "refuse")
        if options.pop("skip_check_array"):
            with self._naming_cells(X, complete):
                coded = check_array(coded, **options)
        if counted is None:
            return coded
        shape, dtype = (len(counted), coded.shape[1]), np.result_type(coded, np.float32)
        every = np.full(shape, np.nan, dtype)
        every[counted] = coded
        return every

    @contextmanager
    def _naming_cells(self, X, complete):
        """Name the cell that is to blame if scikit-learn's checks refuse a table."""
        try:
            yield
        except (TypeError, ValueError) as error:
            description = unusable_cell(X, complete)
            if description is None:
                raise
            raise ValueError(f"{type(self).__name__}: {description}") from error

    def _fit_codes(self, table, codes, sample_weight=None):
        """Fit to the codes of an encoder, in columns that `columns` lists, or calls numbers.

        This is for estimators that need the codes themselves. All methods take codes then, too.
        """
        self.n_features_in_, self._reads_codes = codes.shape[1], True
        self._encoder = table.of_codes(self._kinds(codes), codes.dtype)
        try:
            return self.fit(codes, sample_weight=sample_weight)
        finally:
            del self._reads_codes

    # Tables in batches.

    def _encoded(self, batches, *, reset=True):
        """Batches of codes, if what the columns are depends on all batches; else as they are.

        With `reset`, the columns of all batches are learned, in one pass. Else they are known.
        """
        if reset:
            for name in KNOWN:
                vars(self).pop(name, None)
            found = batches.blocks.first(self._reader(batches)._of_first_batch)
            # Without rows, an error follows in the pass over all batches.
            vars(self).update(found or {"_encoder": None})
            if hasattr(self, "_encoder"):
                return batches
            if batches.blocks.is_single:
                raise ValueError(ONE_PASS)
            self._learn_from_all(batches)
        elif self._encoder.is_plain:
            return batches
        return mapped(batches, self._reader(batches)._codes_of_batch, are_codes=True)

    def _unfitted(self):
        return type(self)(**self.get_params(deep=False))

    def _reader(self, batches):
        """An unfitted estimator with the same parameters and columns, without callbacks."""
        reader = self._unfitted()
        vars(reader).update({name: vars(self)[name] for name in KNOWN if name in vars(self)})
        reader._reads_codes = batches.are_codes
        return reader

    def _of_first_batch(self, X):
        """Attributes of the columns if other batches make no difference, else their names."""
        with named(self):
            check_form(X)
            X, numbers_only = as_plain_table(X)
        self._validate_data(X, reset=True, skip_check_array=True)
        kinds = self._kinds(X) or [Kind()] * self.n_features_in_
        if numbers_only and stands_for_itself(X, self._need, kinds):
            with named(self):
                are_listed = any(kind.levels for kind in kinds)
                learn = partial(Encoder.learn, numbers=X, need=self._need, kinds=kinds)
                self._encoder = learn(X) if are_listed else Encoder.of_numbers(X)
        return {name: value for name, value in vars(self).items() if name in KNOWN}

    def _learn_from_all(self, batches):
        """Learn what the columns are, as from all rows at once."""
        _, counts = summarise(batches, self._reader(batches)._counts_of_batch, operator.add)
        X, weights = counts.rows()
        learn = {"reset": True, "allow_nan": True}
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._validate(X, sample_weight=weights, **learn)
        except (TypeError, ValueError) as error:
            raise locate_error_batch(
                batches, partial(self._unfitted()._validate, **learn), error
            ) from error
        for warning in caught:
            text = without_rows(str(warning.message))
            warn(text, warning.category)
        self._encoder = interpolating(self._encoder, counts)
        empty = np.array([not column.n_cells for column in counts.columns])
        if empty.any() and not empty.all():
            self._without_empty(empty)

    def _counts_of_batch(self, X):
        check_form(X)
        self._validate_data(X, reset=False, skip_check_array=True)
        return TableCounts.of(of_batch(X))

    def _codes_of_batch(self, k, X):
        X = of_batch(X)
        if not X.shape[0]:
            return np.empty((0, self.n_features_in_))
        with naming(k):
            return self._validate(X, reset=False, allow_nan=True)

    @property
    def columns_(self):
        """The kind of each column, by label or number, as `columns` calls it: declared or found."""
        check_is_fitted(self)
        return self._kinds_now()

    def _kinds_now(self):
        kinds = [kind or self._kind_of_codes(j) for j, kind in enumerate(self._encoder.kinds)]
        return dict(zip(self._keys(), kinds, strict=True))

    @property
    def _tells(self):
        """Whether to print lines: inside of another estimator, that one does."""
        return self.verbose and not self._reads_codes

    def _tell_columns(self):
        """Print the kinds of the columns."""
        print(f"[{type(self).__name__}] columns: {grouped(self._kinds_now())}")

    @property
    def categories_(self):
        """Values of each column in the order of their codes, or None for a column of numbers.

        Strings, booleans and levels are coded by their position in this order: that of their type
        if it has one, otherwise alphabetical or by size. For numbers in bins, the values are the
        names of the bins.
        """
        check_is_fitted(self)
        return self._encoder.categories

    def _without_empty(self, empty):
        """Note columns of which nothing is learned, as no cell has a value, with a warning.

        Parameters
        ----------
        empty : ndarray of bool of shape (n_features,)
        """
        names = join_columns(map(self._column, np.flatnonzero(empty)))
        self._warn(
            f"no row has a value in {names}, apart from rows of weight 0. Nothing is learned about "
            "such a column: its cells do not count in scores, and stay missing in imputed rows."
        )
        self._encoder = self._encoder.without_values(empty)

    def _with_cells(self, X, cells, log_probability):
        """ln p of rows from that of their codes: with the densities of numbers in their bins.

        And with the probabilities of unseen cells, which were taken as missing in `cells`.
        """
        X = uncoded(X)
        X = X if hasattr(X, "shape") else as_array(X)
        if self._encoder.is_binned.any():
            log_probability = log_probability + self._encoder.log_density(X)
        if self.unseen != "smooth" or not self._encoder.unseen or is_foreign(X):
            return log_probability

        def log_weight(codes):
            return -self.free_energy(Coded(self._encoder, self._encoder.decode(codes), codes))

        shares = self._cached("unseen", lambda: self._encoder.unseen.shares(log_weight))
        seen = ~np.isnan(dense(cells))
        observed = seen if seen.all() else ~missing_cells(X)
        added = self._encoder.unseen.log_probability(seen, observed, shares)
        return log_probability + added
