"""BaseBoltzmannMachine: what RBMs and deep Boltzmann machines share."""

import warnings
from functools import partial, wraps
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._arrays import (
    as_numpy,
    as_type,
    dispatched,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    place_of,
    taken,
    zeros,
)
from sklearn_boltz._base import (
    COMPLETE_TO_USE,
    BaseBoltzmann,
    checked_weights,
    dense,
    find_stack_level,
    validate_arguments,
)
from sklearn_boltz._batches import fresh, rows_of
from sklearn_boltz._cells import foreign_coding, shown
from sklearn_boltz._estimates import best_known, greater, raise_floor, temperature_ladder
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz._tables import Table
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._tap import (
    Iteration,
    distinct,
    select,
    total_log_partition,
)
from sklearn_boltz.restricted.model import _enumeration
from sklearn_boltz.restricted.model._columns import (
    UNIT_TYPES,
    Layout,
    kinds_of,
    learn_layout,
    specified,
)
from sklearn_boltz.restricted.sampling import (
    _annealing,
    _climb,
    _conditional,
    _observed,
    _samples,
)
from sklearn_boltz.restricted.sampling._climb import same_parameters
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._array_rows import (
    ELSEWHERE,
    checked_rows,
)
from sklearn_boltz.restricted.training._rows import StreamedRows, evenly_spaced, of_some
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._unit import UnitType

# Rows that a method works on at once, so that its memory does not grow with the data.
CHUNK_ROWS, DEVICE_ROWS = 1000, 2**14
# Part of the bounds by which a value may be out of range: scaling in float32 leaves as much.
ROUNDING = 1e-6
# Rows of batches to which visible units are fitted before the training.
FIRST_ROWS = 10_000
# Transitions of a chain from independent features to where TAP starts without rows of data.
TAP_START_STEPS = 100
# Standard error of ln Z in nats at which a ladder ends, if nothing else is wanted.
TOL = 0.05
# Chains of a ladder that samples come from, at most.
LADDER_CHAINS = 1000
GAPS_ON_DEVICE = (
    "{}: rows on a device must be complete, but for `impute`, and there are missing cells. Fill "
    "them by `impute`, or sum them out on the processor: move_to(numpy) returns an estimator that "
    "takes NumPy arrays."
)
_RANDOM_STATE = ["random_state", np.random.Generator]
_COUNT = [Interval(Integral, 0, None, closed="left")]
_POSITIVE = [Interval(Integral, 1, None, closed="left")]
# What `visible` and `hidden` may be; more is checked where the columns are known.
VISIBLE = [StrOptions({"auto", *UNIT_TYPES}), UnitType, type, list, dict]
HIDDEN = [StrOptions(set(UNIT_TYPES)), UnitType, type, tuple]
IMPUTE_CONSTRAINTS = {
    "X": ["array-like"],
    "how": [StrOptions({"mean", "mode", "sample"})],
    "n_steps": _POSITIVE,
    "random_state": _RANDOM_STATE,
}
SAMPLE_CONSTRAINTS = {
    "n_samples": _POSITIVE,
    "random_state": _RANDOM_STATE,
    "given": [dict, None],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "n_steps": _COUNT,
    "init": ["array-like", "sparse matrix", StrOptions({"ladder"}), None],
    "n_temperatures": _POSITIVE,
}


def by_processor(method):
    """Have a method computed by NumPy also where the estimator lies elsewhere.

    The arrays that it returns lie where the estimator does.
    """

    @wraps(method)
    def brought_home(self, *args, **kwargs):
        weights = getattr(self, "components_", None)
        if not is_foreign(weights):
            return method(self, *args, **kwargs)
        args = [as_numpy(value) if is_foreign(value) else value for value in args]
        kwargs = {name: as_numpy(v) if is_foreign(v) else v for name, v in kwargs.items()}
        found = method(self.move_to(np), *args, **kwargs)
        return like(weights, found) if isinstance(found, np.ndarray) else found

    return brought_home


class BaseBoltzmannMachine(BaseBoltzmann):
    """A model whose units are on two sides, those of a side independent given the other.

    In an RBM these are the visible and the hidden layer, in a deep Boltzmann machine the even and
    the odd layers, of which the visible one is the first: a row of the visible side begins with
    the features. A child has the parameters of `_parameter_constraints` below, `free_energy(X)` and

    - `_model()`, a `Model`, `_layered()`, the same as `Layered`, and `_parameters()`, all arrays
      that it depends on;
    - `_base()`, independent units of the visible side fitted to the data, where annealing
      begins;
    - `_side(V)`, rows of the visible side for rows of features, if these are not all of it.

    `fit` sets `components_` and `_evaluation_seed`, for estimates that must be the same each time.
    Rows of a table become rows of the visible units by `_layout`, which `_validated` learns with
    `reset`.
    """

    _parameter_constraints = {
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": _POSITIVE,
        "tol": [Interval(Real, 0, None, closed="left")],
        "visible": VISIBLE,
        "unknown": [StrOptions({"error", "missing"})],
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }
    # How ln Z is estimated where it cannot be computed.
    _estimate_of_log_partition = "ais"

    def _tell(self, number, figures, of="epoch"):
        """Print what was measured, if that is wanted."""
        if self.verbose:
            figures = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"[{type(self).__name__}] {of} {number}: {figures}")

    # Data.

    def _validated(self, X, *, reset=False, allow_nan=False, clip=False, sample_weight=None):
        """Check rows; -> legal values, float32 or float64, dense or CSR.

        With `clip`, values out of range are set to its nearest end, with a warning. With `reset`,
        columns of real numbers are standardised from here on, by their weighted means.
        """
        if dispatched(X):
            return self._validated_on_device(X, reset, allow_nan, clip)
        X = self._coded(X, reset=reset, allow_nan=allow_nan, sample_weight=sample_weight)
        if not reset and is_foreign(getattr(self, "components_", None)):
            there = place_of(self.components_)
            raise ValueError(ELSEWHERE.format(type(self).__name__, there, "NumPy"))
        if issparse(X) and not self._takes_sparse():
            X = X.toarray()
        if not issparse(X):
            return self._layout_now().expand(self._bounded(self._binarized(X), clip))
        if self.binarize is not None:
            if self.binarize < 0:
                raise ValueError("binarize must not be negative for sparse data.")
            X = X.copy()
            X.data = super()._binarized(X.data)
            X.eliminate_zeros()
        return self._bounded_sparse(X, clip)

    def _coded(self, X, *, reset=False, allow_nan=False, sample_weight=None):
        """Check a table; -> one number for each cell. With `reset`, the columns are learned."""
        X = self._validate(
            X,
            accept_sparse="csr",
            # The first is for all other types: integers and booleans work in float32.
            dtype=[np.float32, np.float64],
            allow_nan=allow_nan and not issparse(X),
            reset=reset,
        )
        X = X.astype(X.dtype.type, copy=False)  # to the native byte order
        # Of batches, the first tells of the columns.
        if reset and not (self._reads_batches and vars(self).get("_layout")):
            specs, options = self._specs(), self._unit_options()
            if self._reads_batches and not isinstance(specs, UnitType) and Categorical in specs:
                raise ValueError(
                    "batches do not tell how many categories a column has: give its units, for "
                    "example visible={0: Categorical([3])} for the codes 0, 1 and 2."
                )
            weights = None if sample_weight is None else checked_weights(sample_weight, X)
            self._layout = learn_layout(specs, self._table, X, self._column, options, weights)
        return X

    def _takes_sparse(self):
        """Whether rows need not be dense: all columns have the same bounds, and one number."""
        layout = self._layout_now()
        return layout.is_plain and np.ndim(layout.bounds[0]) == 0

    def _binarized(self, X):
        if self.binarize is None:
            return X
        mine = self._layout_now().takes_threshold
        return super()._binarized(X) if mine.all() else np.where(mine, super()._binarized(X), X)

    def _bounded(self, X, clip):
        """Cells within the bounds: rounding errors are mended, other values refused or clipped."""
        low, high = self._layout_now().bounds
        # Without temporaries where all is well; a NaN takes the other way.
        if np.ndim(low) == 0 and X.min() >= low and X.max() <= high and not self._coded_units():
            return X
        legal = self._are_legal(X)
        if not legal.all():
            if not clip:
                self._refuse(X, legal)
            row, column = np.unravel_index(np.argmin(legal), legal.shape)
            columns = np.flatnonzero(~legal.all(axis=0))
            self._warn_of_clipping(X, row, column, (~legal).sum(), len(columns))
        X = X.clip(low, high).astype(X.dtype, copy=False)
        return np.where(self._layout_now().one_hot, np.rint(X), X) if self._coded_units() else X

    def _bounded_sparse(self, X, clip):
        low, high = self._layout_now().bounds
        if not low <= 0 <= high:  # the zeros are outside
            return csr_array(self._bounded(X.toarray(), clip))
        if not X.nnz or (X.data.min() >= low and X.data.max() <= high):
            return X
        legal = self._are_legal(X.data)
        if not legal.all():
            place = np.argmin(legal)
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            rows = X[[row]].toarray()
            if not clip:
                self._refuse(rows, self._are_legal(rows), row)
            columns = np.unique(X.indices[~legal])
            n_values, column = (~legal).sum(), X.indices[place]
            self._warn_of_clipping(rows, 0, column, n_values, len(columns), row)
        X = X.copy()
        X.data = X.data.clip(low, high)
        return X

    def _are_legal(self, values):
        """Where values are within the bounds, to rounding errors, or NaN."""
        low, high = self._layout_now().bounds
        ends = np.abs([low, high]).astype(np.float64)
        size = np.where(np.isfinite(ends), ends, 0).max(axis=0)
        rounding = ROUNDING * np.where(size > 0, size, 1.0)
        legal = ~((values < low - rounding) | (values > high + rounding))
        if self._coded_units():  # between two codes there is nothing
            codes = self._layout_now().one_hot
            legal &= ~(codes & (np.abs(values - np.rint(values)) > ROUNDING))
        return legal

    def _domain(self, column=None):
        layout = self._layout_now()
        ends = layout.bounds if column is None else layout.bounds_of(column)
        if column is not None and layout.one_hot[column]:
            return f"whole numbers from 0 to {ends[1]:g}"
        if np.isinf(ends).all():
            return "any real number"
        return "values from {:g} to {:g}".format(*ends)

    def _refuse(self, X, legal, first_row=0):
        column = int(np.flatnonzero(~legal.all(axis=0))[0])
        self._check_domain(X, legal, self._domain, self._remedy(X, column), first_row)

    def _remedy(self, X, column):
        """What to do about values out of range in a column."""
        low, high = self._layout_now().bounds_of(column)
        kind = self._layout_now().kinds[column]
        if kind is not Bernoulli:
            return (
                "Scale the columns with sklearn.preprocessing.MinMaxScaler("
                f"feature_range=({low:g}, {high:g}), clip=True)."
            )
        return (
            "Set `binarize` to a threshold, or scale the columns with "
            "sklearn.preprocessing.MinMaxScaler(clip=True). For a column of real numbers, set "
            f"visible={{{self._key(column)}: 'gaussian'}}; of categories, 'categorical'."
        )

    def _about_categories(self, j):
        return f"set visible={{{self._key(j)}: 'categorical'}}"

    def _key(self, column):
        """How `visible` would name a column."""
        names = getattr(self, "feature_names_in_", None)
        return repr(int(column) if names is None else names[column])

    def _warn_of_clipping(self, X, row, column, n_values, n_columns, first_row=0):
        one = n_values == 1
        remedy = self._about_categories(column)
        coding = foreign_coding(X, column, COMPLETE_TO_USE, remedy)
        warnings.warn(
            f"{type(self).__name__}: {n_values:,} value{'' if one else 's'} in {n_columns:,} "
            f"column{'' if n_columns == 1 else 's'} {'is' if one else 'are'} outside of the "
            f"{self._domain(column)} and {'was' if one else 'were'} set to the nearer end; the "
            f"first is {shown(X[row, column])} in {self._column(column)}, row {first_row + row}. "
            f"{coding or 'MinMaxScaler(clip=True) before this step does the same silently.'}",
            UserWarning,
            stacklevel=find_stack_level(),
        )

    def _checked(self, X, allow_nan=False):
        check_is_fitted(self)
        X = self._validated(X, allow_nan=allow_nan, clip=True)
        if not is_foreign(X):
            return self._in_type(X)
        xp = namespace_of(X)
        if allow_nan and xp.any(xp.isnan(X)):
            raise ValueError(GAPS_ON_DEVICE.format(type(self).__name__))
        return as_type(X, numpy_dtype(self.components_))

    def _to_fill(self, X):
        """Rows of an array that lies elsewhere, in which cells may be missing."""
        check_is_fitted(self)
        X = self._validated(X, allow_nan=True, clip=True)
        return as_type(X, numpy_dtype(self.components_))

    def _in_type(self, X):
        return X.astype(self._model().dtype, copy=False)

    def _check_device_settings(self):
        """Refuse parameters that are there for NumPy arrays only."""
        specs = self._specs()
        binary = isinstance(specs, list) and all(spec in ("auto", Bernoulli) for spec in specs)
        if not binary or getattr(self, "hidden", Bernoulli) not in ("bernoulli", Bernoulli):
            raise ValueError(
                f"{type(self).__name__}: on a device there are Bernoulli units in both layers. For "
                "other units, pass NumPy arrays."
            )

    def _validated_on_device(self, X, reset, allow_nan, clip):
        """Check an array of another library than NumPy, which stays where it lies."""
        self._check_library(X)
        X = checked_rows(self, X, reset=reset, allow_nan=allow_nan)
        if reset:
            self._check_device_settings()
            self._layout = Layout.of_numbers(X.shape[1])
            self._table = Table.of_numbers(np.empty((0, X.shape[1]), numpy_dtype(X)))
        low, high = self._layout_now().bounds
        if namespace_of(X).any((X < low) | (X > high)):
            X = like(X, self._bounded(as_numpy(X), clip))  # which tells what is wrong
        return X

    # Where the arrays lie.

    def move_to(self, xp, device=None):
        """Return the estimator with its arrays in another library or in another place.

        Parameters
        ----------
        xp : module
            The library: `numpy`, `torch`, `cupy` or another that has the array API.
        device : object, default=None
            Where to, as that library has it, such as ``"cuda"``; None for its default.

        Returns
        -------
        estimator : object
            Another one with the same parameters, which computes there. The ladder of models that
            a training on NumPy arrays has saved stays behind.

        Raises
        ------
        ValueError
            If this kind of estimator computes with NumPy arrays only.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_boltz.datasets import make_bars_and_stripes
        >>> from sklearn_boltz.restricted import SDCPRBM
        >>> model = SDCPRBM(8, max_iter=5, random_state=0).fit(make_bars_and_stripes(3))
        >>> type(model.move_to(np).components_)
        <class 'numpy.ndarray'>
        """
        library = namespace_of(xp.empty(0))  # as the array API has it
        if library is np:
            return self.__sklearn_array_api_convert__(as_numpy)
        return self.__sklearn_array_api_convert__(
            lambda array: library.asarray(as_numpy(array), device=device)
        )

    def __sklearn_array_api_convert__(self, convert):
        """What scikit-learn moves an estimator by."""
        check_is_fitted(self)
        if not self._computes_on_devices:
            raise ValueError(
                f"{type(self).__name__} computes with NumPy arrays only, and stays with them."
            )
        other = clone(self)
        vars(other).update({**vars(self), **self._moved_attributes(convert)})
        return other

    def _moved_attributes(self, convert):
        """The attributes that hold arrays, with these elsewhere."""
        names = [name for name in self._attributes_of_arrays() if name in vars(self)]
        moved = {name: convert(getattr(self, name)) for name in names}
        return {**moved, "_training": self._training.moved(convert)}

    # Columns of the table and numbers of the visible units.

    def _specs(self):
        """What the user says of each column; see `specified`."""
        return specified(self.visible, self._variable, self.n_features_in_)

    def _kinds(self, X):
        return kinds_of(self._specs(), X, self.binarize)

    def _unit_options(self):
        """The range of truncated visible units, if it is not the default."""
        return {}

    def _layout_now(self):
        """How columns become numbers; where nothing was learned of them, all are of one type."""
        layout = vars(self).get("_layout")
        if layout is not None:
            return layout
        kind = (
            UNIT_TYPES.get(self.visible, Bernoulli) if isinstance(self.visible, str) else Bernoulli
        )
        return Layout.of_numbers(self.n_features_in_, kind, self._unit_options())

    def _initial_visible(self, X, weights=None):
        """Units fitted to rows of numbers, where the training begins."""
        layout = self._layout_now()
        if isinstance(X, StreamedRows) and not layout.is_binary:
            # Whatever is fitted to them is only where the training begins.
            rows = evenly_spaced(X, FIRST_ROWS)
            X, weights = X[rows], of_some(weights, rows)
        return layout.initial_units(X, weights)

    def _coded_units(self):
        """Whether numbers in the table are codes of one-hot units, which have to be whole."""
        return bool(self._layout_now().one_hot.any())

    def _begin_batches(self, batches, sample_weight=None):
        """Learn the columns of batches: they hold numbers, and the first stands for all."""
        self._layout = None
        learned = "categorical", "gaussian"
        if isinstance(self.visible, str) and self.visible not in learned:
            return
        first, rows = fresh(self), rows_of(next(iter(batches)))
        # Weights that cannot be are refused where all rows are known.
        n_rows = rows.shape[0]
        weights = None if np.ndim(sample_weight) != 1 else np.asarray(sample_weight)[:n_rows]
        if weights is not None and (len(weights) < n_rows or not (weights > 0).any()):
            weights = None
        first._coded(rows, reset=True, allow_nan=True, sample_weight=weights)
        self._layout = first._layout

    @property
    def visible_names_(self):
        """Names of the numbers of the visible units: the columns of `components_`.

        A column of numbers has one, with its own name. A column of three or more categories has
        one for each, such as ``city=Rome``; of two categories, the number tells of the second.
        """
        check_is_fitted(self, "components_")
        names = self._layout_now().names(self._input_names(), self._table)
        return np.array(names, dtype=object)

    def _as_table(self, V):
        """Rows of the visible units as a table like that of the training."""
        if is_foreign(V):
            return V[:, : self._n_numbers()]
        return self._table.decode(self._layout_now().collapse(V[:, : self._n_numbers()]))

    def _near(self, units, weights):
        """Units where the weights are, in their type."""
        if is_foreign(weights):
            units = units.moved(partial(like, weights))
        return units.astype(numpy_dtype(weights))

    def _n_numbers(self):
        """How many numbers the visible units take."""
        return self._layout_now().n_numbers

    def _side(self, V):
        """Rows of the visible side of the model, for rows of features."""
        return V

    def _by_chunks(self, function, X):
        """Apply a function of dense rows, a chunk at a time."""
        if is_foreign(X):
            chunks = gen_batches(X.shape[0], DEVICE_ROWS)
            return namespace_of(X).concat([function(X[rows, ...]) for rows in chunks])
        return np.concatenate([
            function(dense(X[rows]))
            for rows in gen_batches(X.shape[0], CHUNK_ROWS)
        ])  # fmt: skip

    def _by_rows(self, of_complete, of_incomplete, X):
        """Apply one function to complete rows and another to those with missing cells."""
        gaps = rows_with_gaps(X)
        if gaps is None:
            return self._by_chunks(of_complete, X)
        found = self._by_chunks(of_incomplete, X[gaps])
        if gaps.all():
            return found
        complete = self._by_chunks(of_complete, X[~gaps])
        out = np.empty((len(X), *found.shape[1:]), found.dtype)
        out[gaps], out[~gaps] = found, complete
        return out

    def _of_gaps(self, function, V, model=None):
        """A function of the model, an RBM, or of another one, and of rows with missing cells."""
        model = self._model() if model is None else model
        with Workers(self.n_jobs) as workers:
            return function(model, V, self._evaluation_seed, workers)

    def _free_energy_of_gaps(self, V):
        seed, base = self._evaluation_seed, self._base()
        with Workers(self.n_jobs) as workers:
            found = _observed.free_energy(self._model(), base, V, seed, workers)
        return self._with_missing(V, found)

    def _with_missing(self, V, free_energy):
        """F of rows with missing cells, on the scale of the table.

        Real columns are standardised in the model: ln Z counts their volume, and what is summed
        out must count it, too. A row without any cell has probability 1, however ln Z was found.
        """
        layout, missing = self._layout_now(), np.isnan(V)
        if layout.scale is not None:
            free_energy -= missing[:, layout.starts[:-1]] @ np.log(layout.scale)
        empty = missing.all(axis=1)
        if empty.any():
            free_energy[empty] = -self.log_partition_
        return free_energy

    # Likelihoods.

    def score_samples(self, X):
        """Return the log-probability of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            ``-free_energy(X) - log_partition_``, in nats: normalised, and the same each time. Of
            a row with missing values, the log-probability of those that are observed.
        """
        return -self.free_energy(X) - self.log_partition_

    @property
    def log_partition_(self):
        """Logarithm of the normalising constant."""
        check_is_fitted(self, "components_")

        def compute():
            estimate = self.log_partition(random_state=self._evaluation_seed)
            return Bunch(value=estimate.value, method=estimate.method)

        return best_known(
            self._cached("log_partition", compute), self._cached("log_partition_floor", Bunch)
        )

    @validate_arguments(
        {
            "method": [StrOptions({"auto", "exact", "ladder", "ais", "raise", "tap"})],
            "n_chains": _POSITIVE,
            "n_temperatures": [*_POSITIVE, "array-like"],
            "tol": [Interval(Real, 0, None, closed="neither"), None],
            "max_rounds": _POSITIVE,
            "X": ["array-like", "sparse matrix", None],
            "random_state": _RANDOM_STATE,
            "n_jobs": [Integral, None],
        }
    )
    def log_partition(
        self,
        method="auto",
        *,
        n_chains=100,
        n_temperatures=1000,
        tol=None,
        max_rounds=1000,
        X=None,
        random_state=None,
        n_jobs=None,
    ):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ladder", "ais", "raise", "tap"}, default="auto"
            ``"exact"`` enumerates the smaller layer, of 26 units at most. ``"ladder"`` runs
            chains of a row of models from independent units to this one, which exchange states:
            models that the training has saved, if it was followed (`track_likelihood`), and models
            in between where the exchanges are too few. ln Z is the sum of Bennett's ratios of
            neighbours [4]_. ``"ais"`` is
            annealed importance sampling [1]_ from the base rates of the training data: the
            estimate of Z is unbiased, that of ln Z too low in the mean, and with probability
            95 % ln Z is greater than the estimate less 3 nats, however few chains carry it.
            ``"raise"`` runs chains the other way [2]_, beside AIS. It overestimates ln Z where
            they start at samples of the model. Where they do not, as in a model with mass far
            from the data, it may be too low as well: it bounds the likelihood of the
            distribution that the annealing ends in, not that of the model. ``"tap"`` is
            ln Σ exp(−F) over distinct TAP solutions with free energies F [3]_: deterministic
            given where it starts, and
            neither a bound nor unbiased. ``"auto"`` is exact up to 20 units; with the ladder of a
            training, both the ladder and AIS are run, and the greater estimate is kept where they
            differ; else it is AIS, or TAP in an estimator that is trained by it.
        n_chains : int, default=100
            Number of independent chains, of the ladder for each model, or of starts of TAP.
        n_temperatures : int or array-like of float, default=1000
            Number of equal steps of the inverse temperature, or all its values from 0 up to 1.
        tol : float, default=None
            The standard error that is wanted, in nats. The ladder makes rounds until it is
            reached, each chain has been renewed once in the mean, and two halves of the
            rounds agree; None stands for 0.05. AIS doubles its temperatures and its chains, up to
            six times, until it is reached and two runs agree; None makes one run.
        max_rounds : int, default=1000
            Rounds of the ladder at most: a transition of all chains, and exchanges.
        X : array-like of shape (n_samples, n_features), default=None
            For ``"raise"``: rows whose likelihood is to be bounded. The chains start at
            them, in turn; more than `n_chains` are not used. None for the states that an
            AIS run reached, drawn by their weights, as if they were samples of the model.
            In a deep Boltzmann machine, it must be None. For ``"tap"``: rows to start at; None for
            training rows where an estimator keeps some, else for rows that short Markov chains
            reach.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        n_jobs : int, default=None
            Number of threads; None for that of the estimator. The result does not depend
            on it.

        Returns
        -------
        estimate : Bunch
            `value` in nats; `std_err`, its standard error by the delta method; `low` and
            `high`, between which ln Z lies with a probability of 95 % each, as far as the
            method can tell, and infinite where it cannot; `verdict`, what the estimate is
            worth, in words; `ess`, the effective number of chains; `log_weights` of the
            chains; `states` where they ended; and `method`. Of TAP, `std_err` is NaN, `ess`
            the number of distinct solutions and `log_weights` minus their free energies. Of the
            ladder, `std_err` is that of the mean of `n_chains` independent simulations, `low` and
            `high` are two standard errors away, `ess` is the number of states that came from
            independent units to the model, `acceptances` are those of exchanges between
            neighbours, `log_partitions` and `log_partition_errors` the estimates for all models.

        Warns
        -----
        UserWarning
            If few chains carry the estimate, if AIS shows that ln Z is greater than RAISE
            or the ladder says, or if the ladder is not connected.
        ConvergenceWarning
            If no start of TAP converges.

        Notes
        -----
        `log_partition_`, and with it `score_samples`, is the estimate of ``method="auto"``. If
        `low` of a later run is above that, the estimate of this run takes its place for as long
        as the parameters are the same.

        References
        ----------
        .. [1] R. Salakhutdinov and I. Murray, "On the quantitative analysis of deep belief
           networks", ICML 2008.
        .. [2] Y. Burda, R. Grosse and R. Salakhutdinov, "Accurate and conservative estimates
           of MRF log-likelihood using reverse annealing", AISTATS 2015.
        .. [3] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018.
        .. [4] N. Béreux, A. Decelle, C. Furtlehner, L. Rosset and B. Seoane, "Fast training and
           sampling of restricted Boltzmann machines", arXiv:2405.15376, 2024.
        """
        check_is_fitted(self)
        model = self._model()
        if method == "raise" and X is not None and len(model.visible) > self._n_numbers():
            raise ValueError(
                "In a deep Boltzmann machine or a classifier, method='raise' needs X=None."
            )
        if method == "auto":
            few = _enumeration.n_enumerated(model) <= _enumeration.EXACT_UNITS
            method = "exact" if few else self._estimate_of_log_partition
            ladder = self._former_ladder()
            if not few and ladder is not None and same_parameters(ladder.rungs[-1].model, model):
                method = "both"
        if method == "exact":
            return self._on_scale(_enumeration.exact_estimate(model))
        X = None if X is None else self._checked(X)
        rng = make_generator(random_state)
        stream, betas = Stream.from_generator(rng), temperature_ladder(n_temperatures)
        with Workers(self.n_jobs if n_jobs is None else n_jobs) as workers:
            if method == "tap":
                estimate = self._tap_log_partition(model, X, n_chains, stream, workers)
                return self._on_scale(estimate)
            if method in ("ladder", "both"):
                ladder = _climb.ladder_to(
                    model, self._base(), self._former_ladder(), n_chains, stream, workers
                )
                climbed = _climb.ladder_estimate(ladder, tol or TOL, max_rounds, workers)
                self._on_scale(climbed)
            if method != "ladder":
                estimate = forward = _annealing.annealed_within(
                    tol, model, self._base(), betas, n_chains, stream, workers
                )
                self._on_scale(forward)
                raise_floor(self._cached("log_partition_floor", Bunch), forward)
            if method in ("ladder", "both"):
                floor = self._cached("log_partition_floor", Bunch)
                estimate = greater(climbed, floor if method == "ladder" else forward)
            if method == "raise":
                n_rows = 1 if X is None else min(n_chains, X.shape[0])
                if X is None:
                    starts = _annealing.resampled(forward, rng)
                else:
                    starts = dense(taken(X, np.arange(n_chains) % n_rows))
                backward = _annealing.reverse_importance_sampling(
                    model, self._base(), betas, starts, stream, workers, n_rows
                )
                self._on_scale(backward)
                estimate = _annealing.bracketed(forward, backward, from_model=X is None)
        if not estimate.trusted:
            warnings.warn(estimate.verdict, UserWarning, stacklevel=find_stack_level())
        return estimate

    def _former_ladder(self):
        """The ladder that the training has left, or None."""
        training = vars(self).get("_training", vars(self).get("_growth"))
        tracker = getattr(training, "tracker", None)
        return None if tracker is None else tracker.ladder

    def _on_scale(self, estimate):
        """An estimate of ln Z where the densities are those of the columns of the table."""
        layout = self._layout_now()
        if layout.scale is not None:
            sign = -1 if estimate.method == "raise" else 1
            for name in ("value", "low", "high", "log_partitions"):
                if name in estimate:
                    estimate[name] = estimate[name] + layout.log_volume
            if estimate.log_weights is not None:
                estimate.log_weights = estimate.log_weights + sign * layout.log_volume
        return estimate

    def _tap_log_partition(self, model, X, n_starts, stream, workers):
        if X is None:
            starts = self._tap_starts(model, n_starts, stream, workers)
        else:
            starts = self._side(dense(X))
        solutions = self._solutions(model, starts, workers)
        kept, _ = distinct(model, solutions)
        chosen = select(solutions, kept)
        if not chosen.converged.any():
            warnings.warn(
                "TAP converged from no start: its log-partition is not to be trusted. "
                "Use method='ais', or more damping.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return Bunch(
            value=total_log_partition(chosen), std_err=np.nan, low=-np.inf, high=np.inf,
            ess=float(len(kept)), log_weights=-chosen.free_energy, method="tap",
            states=like(model.weights, chosen.visible_mean), trusted=bool(chosen.converged.any()),
            verdict="An expansion for weak weights: its error is not known. AIS gives a floor.",
        )  # fmt: skip

    def _tap_starts(self, model, n_starts, stream, workers):
        """Rows that short chains reach."""
        V = self._base().sample(zeros(model.weights, (n_starts, len(model.visible))), stream)
        return _samples.chain_samples(model, V, TAP_START_STEPS, stream, workers)

    def _solutions(self, model, V, workers):
        """TAP solutions from rows, with their free energies."""
        return by_tap(model, V, Iteration(), workers)

    # New rows, and missing values.

    @validate_arguments(SAMPLE_CONSTRAINTS)
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        temperature=1.0,
        n_steps=1000,
        init=None,
        n_temperatures=1,
    ):
        """Draw samples from the model by Markov chains, one for each sample.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by their names or numbers: samples are then from the
            conditional distribution of the others. They are exact if at most 10 binary columns
            are left or there are at most 12 binary hidden units; otherwise these columns are
            clamped in the chains. With `init` or `n_temperatures`, there are always chains.
        temperature : float, default=1.0
            T > 0: samples are from the distribution ∝ p(v, h)^(1/T) of visible and hidden units
            together, with all weights and biases divided by T. Below 1, probable rows become
            more frequent, and chains mix more slowly: take `n_temperatures` along.
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
        init : array-like of shape (n_rows, n_features) or "ladder", default=None
            Rows where the chains start, in turn. None for independent features with the
            means of the training data. ``"ladder"`` runs chains of a row of models from
            independent units to this one, which exchange states, as ``log_partition("ladder")``
            does: samples then come from all modes by their shares. `n_steps` counts the
            transitions of all these models together.
        n_temperatures : int, default=1
            With more than 1, parallel tempering: each chain exchanges its state with chains
            at so many temperatures, of which the highest has independent units. It takes as
            many times as long, and mixes where a single chain stays in one mode.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like that of the training: of its container, with its
            names, types and categories.
        """
        check_is_fitted(self)
        if is_foreign(self.components_) and (given or n_temperatures > 1):
            rows = self.move_to(np).sample(
                n_samples, random_state, given=given, temperature=temperature, n_steps=n_steps,
                init=as_numpy(init) if is_foreign(init) else init,
                n_temperatures=n_temperatures,
            )  # fmt: skip
            return like(self.components_, rows)
        values = self._given_values(given) if given else None
        states = self._drawn(
            n_samples, random_state, values, temperature, n_steps, init, n_temperatures
        )
        return self._as_table(states)

    def _drawn(self, n_samples, random_state, values, temperature, n_steps, init, n_temperatures):
        """Samples of the visible side; numbers of `values` that are not NaN are given."""
        model, rng = self._model(), make_generator(random_state)
        stream = Stream.from_generator(rng)
        if isinstance(init, str):
            if values is not None or temperature != 1 or n_temperatures != 1:
                raise ValueError(
                    "init='ladder' draws from the whole model at temperature 1: it goes neither "
                    "with `given` nor with another temperature. Use n_temperatures for these."
                )
            with Workers(self.n_jobs) as workers:
                n_chains = min(n_samples, LADDER_CHAINS)
                ladder = _climb.ladder_to(
                    model, self._base(), self._former_ladder(), n_chains, stream, workers
                )
                states = _climb.ladder_samples(ladder, n_samples, n_steps, workers)
            return states
        if temperature != 1:
            model = model.tempered(1 / temperature)
        clamped = np.zeros(len(model.visible), dtype=bool)
        if values is not None:
            clamped[: len(values)] = ~np.isnan(values)
            free = ~clamped
            if init is None and n_temperatures == 1:
                if not free.any():
                    return np.tile(values.astype(model.dtype), (n_samples, 1))
                if _conditional.can_impute_exactly(model, free):
                    v = np.append(values, np.zeros(len(free) - len(values)))
                    mixture = _conditional.conditional_mixture(model, v, free)
                    return _conditional.draw(model, v, free, mixture, n_samples, rng, stream)
        if init is None:
            shape = n_samples, len(model.visible)
            V = self._base().sample(zeros(model.weights, shape), stream)
        else:
            V = self._checked(init)
            V = self._side(dense(taken(V, np.arange(n_samples) % V.shape[0])))
        if values is not None:
            V = _samples.with_values(V, clamped, values[clamped[: len(values)]])
        with Workers(self.n_jobs) as workers:
            if n_temperatures == 1:
                states = _samples.chain_samples(model, V, n_steps, stream, workers, clamped)
            else:
                states = _samples.tempered_samples(
                    model, self._base(), V, n_steps, n_temperatures, stream, workers, clamped
                )
        return states

    def _given_values(self, given):
        """A row of the model with the values that a user gives for some columns, NaN elsewhere."""
        row = np.full((1, self.n_features_in_), np.nan)
        for name, value in given.items():
            if not isinstance(name, (str, Integral)):
                raise ValueError(f"given: columns go by name or number, not by {name!r}.")
            j = self._variable(name)
            if not np.isnan(row[0, j]):
                raise ValueError(f"given has two values for {self._column(j)}.")
            row[0, j] = self._code(j, value)
        row = self._binarized(row)
        legal = self._are_legal(row)
        if not legal.all():
            j = int(np.argmin(legal[0]))
            raise ValueError(
                f"given has the value {shown(row[0, j])} for {self._column(j)}, where "
                f"{type(self).__name__} needs {self._domain(j)}."
            )
        layout = self._layout_now()
        return layout.expand(row.clip(*layout.bounds))[0]

    def _code(self, j, value):
        """A value of column j as the model takes it."""
        column = self._table.columns[j]
        if column.categories is None:
            if not isinstance(value, (Real, np.bool_)) or np.isnan(value):
                raise ValueError(f"given has {value!r} for {self._column(j)}, not a number.")
            return value
        place = np.flatnonzero(column.categories == value) if np.ndim(value) == 0 else []
        if not len(place):
            raise ValueError(
                f"given has the value {value!r} for {self._column(j)}, which has {column.shown()}."
            )
        return place[0]

    def _to_impute(self, X):
        """-> rows of the model, where they are missing, and the model."""
        check_is_fitted(self)
        V = np.array(self._validated(X, allow_nan=True, clip=True))
        return V, np.isnan(V), self._model()

    def _filled(self, X, V, missing):
        """A table in which the missing cells have the values of rows of the model."""
        layout = self._layout_now()
        starts = layout.starts[:-1]
        return self._table.fill(X, layout.collapse(V), missing[:, starts])

    @by_processor
    @validate_arguments(
        {"X": ["array-like"], "column": [str, Integral], "n_steps": _POSITIVE,
         "random_state": _RANDOM_STATE}
    )  # fmt: skip
    def predict_column_proba(self, X, column, *, n_steps=1000, random_state=None):
        """Return the probabilities of the values of one column given the other cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. What stands in the column itself is ignored. NaN in other columns is a
            missing value, which is summed out: exactly where at most 10 binary values of a row
            are missing, the column counted, or there are at most 12 binary hidden units, and
            otherwise by Markov chains with the observed values clamped.
        column : str or int
            Name or number of the column.
        n_steps : int, default=1000
            Number of transitions of each Markov chain; the probabilities are averaged over the
            second half.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_states)
            In the order of the values of the column in `categories_`; of numbers, in that of
            the states of its visible unit, such as 0 and 1.

        Raises
        ------
        ValueError
            If the visible unit of the column has a continuum of values.
        """
        check_is_fitted(self)
        units, j = self._layered().layers[0], self._variable(column)
        if not np.isfinite(units.state_counts[j]):
            raise ValueError(
                f"{self._column(j)} takes {self._domain(j)}, a continuum, in which a single value "
                "has no probability. `impute` gives its mean, and draws."
            )
        X = np.array(self._binarized(self._coded(X, allow_nan=True)))
        X[:, j] = np.nan
        V = np.array(self._layout_now().expand(self._bounded(X, clip=True)))
        pad, missing = self._layered().padded, np.isnan(V)
        probability = _conditional.column_probabilities(
            self._model(), pad(V), pad(missing, True), j, units, n_steps,
            make_generator(random_state),
        )  # fmt: skip
        n_values = self._table.n_categories[j]
        if 0 < n_values < probability.shape[1]:  # a state that no category stands for
            probability = probability[:, :n_values]
            probability = probability / probability.sum(axis=1, keepdims=True)
        return probability

    @by_processor
    def entropy(self):
        """Return the entropy of the distribution of the rows, by enumeration.

        Returns
        -------
        entropy : float
            −Σ p(v) ln p(v) over all rows v, in nats.

        Raises
        ------
        ValueError
            If there are more than 20 bits to enumerate: binary visible units and, of several
            hidden layers, every second one. Also if visible units have a continuum of values.
        """
        check_is_fitted(self)
        return _enumeration.exact_entropy(self._layered())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Without a threshold, only values within the bounds are legal.
        tags.input_tags.positive_only = self.binarize is None and not self._takes_negative()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _takes_negative(self):
        """Whether values of some column may be less than 0."""
        specs = self.visible.values() if isinstance(self.visible, dict) else self.visible
        specs = specs if isinstance(self.visible, (list, dict)) else [specs]
        return self._unit_options().get("low", 0) < 0 or any(
            np.min(spec.bounds[0]) < 0
            if isinstance(spec, UnitType)
            else isinstance(spec, (str, type)) and spec in ("gaussian", Gaussian)
            for spec in specs
        )
