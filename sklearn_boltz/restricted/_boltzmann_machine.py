"""BaseBoltzmannMachine: what RBMs and deep Boltzmann machines share."""

from functools import partial, wraps
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_boltz._density import Density
from sklearn_boltz._methods import LOG_PARTITION_CONSTRAINTS, dense, validate_arguments
from sklearn_boltz._new_values import take_new_values
from sklearn_boltz._warnings import warn, warn_once
from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    dispatched,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    place_of,
    taken,
    without_gradient,
    zeros,
)
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._estimates import (
    LogPartition,
    combined,
    compare_with_floor,
    estimate_from_value,
    has_wide_ends,
    temperature_ladder,
)
from sklearn_boltz.restricted._constraints import (
    COLUMNS,
    MACHINE_SAMPLE_CONSTRAINTS,
    TAP_CONSTRAINTS,
)
from sklearn_boltz.restricted.mean_field._clamped import visible_side
from sklearn_boltz.restricted.mean_field._inference import INFERENCES, MOST_ITERATIONS, parts_of
from sklearn_boltz.restricted.mean_field._solutions import total_log_partition
from sklearn_boltz.restricted.model import _enumeration
from sklearn_boltz.restricted.model._coded_rows import CodedRows
from sklearn_boltz.restricted.model._columns import (
    NOT_NEGATIVE,
    UNITS_OF_COLUMNS,
    hold_bits,
    kinds_of,
    learn_layout,
    units_of,
    units_of_all,
)
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._layout import ROUNDING, ColumnLayout
from sklearn_boltz.restricted.sampling import _annealing, _array_chains, _climb, _samples
from sklearn_boltz.restricted.sampling._fitted_rbm import FittedRBM
from sklearn_boltz.restricted.sampling._observed import has_few_states, rows_with_gaps
from sklearn_boltz.restricted.training._array_rows import ELSEWHERE
from sklearn_boltz.restricted.training._initial import begin_at, fitted_init, is_model
from sklearn_boltz.restricted.training._rows import evenly_spaced
from sklearn_boltz.restricted.training._streamed_rows import StreamedRows
from sklearn_boltz.restricted.training._visits import of_some, rows_with_information
from sklearn_boltz.tables._cells import grey_levels
from sklearn_boltz.tables._coded import uncoded
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._kinds import Kind, Need
from sklearn_boltz.tables._phrases import N_NAMES, format_number
from sklearn_boltz.tables._weights import checked_weights
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType, observed_sums

# Number of rows of batches to which visible units are fitted before training.
FIRST_ROWS = 10_000
# Number of transitions from independent visible units to the starts of TAP, if there are no rows.
TAP_START_STEPS = 100
# Maximum number of chains of a ladder that gives samples.
LADDER_CHAINS = 1000
GAPS_ON_DEVICE = (
    "{}: rows on a device must be complete, except for `impute`, and there are missing cells. Fill "
    "them by `impute`, or sum them out on the processor: move_to(numpy) returns an estimator that "
    "takes NumPy arrays."
)
TRUNCATED = (TruncatedGaussian, TruncatedGaussBernoulli)


def by_processor(method):
    """Compute a method with NumPy, also if the arrays of the estimator are on a device.

    The arrays that it returns are moved to that device.
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


def _are_probabilities(X):
    """Whether X is an array or a sparse matrix of numbers within [0, 1]."""
    cells = X.tocsr().data if issparse(X) else X  # other formats keep their cells in other ways
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        return False
    low = np.fmin.reduce(cells, axis=None, initial=0)
    return bool(low >= -ROUNDING and np.fmax.reduce(cells, axis=None, initial=1) <= 1 + ROUNDING)


class BaseBoltzmannMachine(Density):
    """A model whose units are on two sides. The units of a side are independent given the other.

    In an RBM, the sides are the visible and the hidden layer. In a deep Boltzmann machine, they
    are the even and the odd layers, counted from 0, the visible one: a row of the visible side
    begins with the visible units. A subclass has the parameters of `_parameter_constraints` below
    and `free_energy(X)`.

    `fit` sets what `_attributes` returns. The `coding` of `_encoder` converts rows of codes to rows
    of the visible units; `_validated` learns it with ``reset=True``.
    """

    _need = Need(bins=True)

    def __new__(cls, *args, **parameters):
        if "n_iter" in parameters:  # of scikit-learn's `BernoulliRBM`
            raise TypeError(f"{cls.__name__} has no parameter 'n_iter'. Epochs are `max_iter`.")
        return super().__new__(cls)

    # Whether the public attributes hold lists with an entry for each hidden layer.
    _is_deep = False
    # Parameters that may be "auto", of which attributes tell what was chosen.
    _chosen = ("n_components", "alpha")
    _parameter_constraints = {
        "tol": [Interval(Real, 0, None, closed="left")],
        "columns": COLUMNS,
        "unseen": [StrOptions({"smooth", "error", "missing"})],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def _tell(self, number, figures, of="epoch"):
        """Print figures of an epoch."""
        figures = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        print(f"[{type(self).__name__}] {of} {number}: {figures}")

    def _warn_of_trouble(self, message):
        """Warn that a fit failed, if there is a message."""
        if message is not None:
            warn(message, ConvergenceWarning)

    # The model.

    def _attributes(self, training):
        """All attributes that follow from a training."""
        return {
            **Layered.of(training.learner.model()).exposed(self._is_deep),
            **{f"{name}_": value for name, value in self._chosen_by(training.learner).items()},
            **({"pretrain_history_": list(training.before)} if self._is_deep else {}),
            "n_iter_": training.n_epochs,
            "history_": {name: np.array(values) for name, values in training.history.items()},
            "_training": training,
        }

    def _chosen_by(self, learner):
        """The parameters of `_chosen`, as they are used."""
        sizes = [units.n_units for units in Layered.of(learner.model()).layers[1:]]
        found = {"hidden_layer_sizes": sizes, "n_components": sizes[0]}
        if "alpha" in self._chosen:
            found["alpha"] = learner.scheme.alpha
        return {name: found[name] for name in self._chosen}

    def _layered(self):
        # The public parameters count, and the types of the units.
        return Layered.read(vars(self), Layered.of(self._training.learner.model()).layers)

    def _marginal(self):
        """The model of the visible units, without the label of a classifier."""
        return self._layered().sides()

    def _model(self):
        """The two sides of the model."""
        return self._marginal().sides()

    def _distribution(self):
        """The distribution of rows of numbers."""
        parts = self._layered(), self._base(), self._marginal()
        return FittedRBM(*parts, self._training.evaluation_seed, self.n_jobs)

    def _parameters(self):
        return self._layered().parameters()

    def _base(self):
        """Independent units of the visible side, where annealing begins."""
        units, weights = self._training.base, self._layered().weights[0]
        if is_foreign(weights):
            units = units.moved(partial(like, weights))
        return units.astype(numpy_dtype(weights))

    # Data.

    def _validated(
        self, X, *, reset=False, allow_nan=False, clip=False, sample_weight=None, lazily=False
    ):
        """Check rows; -> legal values, float32 or float64, dense or CSR.

        With `lazily`, rows with one-hot numbers are `CodedRows`. With `clip`, values out of range
        are set to the nearest bound, with a warning. With `reset`, the weighted means and standard
        deviations of continuous columns are learned.
        """
        if dispatched(X):
            return self._validated_on_device(X, reset, allow_nan, clip)
        cells = self._coded(X, reset=reset, allow_nan=allow_nan, sample_weight=sample_weight)
        return self._numbers(cells, clip, lazily)

    def _numbers(self, X, clip, lazily):
        """Numbers of the model from the cells that `_coded` returns."""
        layout = self._encoder.coding
        # Rows stay sparse if all columns have the same bounds, and one number each.
        if issparse(X) and layout.is_plain and np.ndim(layout.bounds[0]) == 0:
            return self._bounded_sparse(X, clip)
        X = self._bounded(X.toarray() if issparse(X) else X, clip)
        if layout.is_plain:
            return X
        if lazily and layout.has_codes:
            return CodedRows(layout, X)
        self._check_dense(X)
        return layout.expand(X)

    def _check_dense(self, X, n_copies=1):
        """Refuse rows of which this many copies with one-hot numbers do not fit into memory."""
        layout, n_rows = self._encoder.coding, X.shape[0]
        n_bytes = n_copies * n_rows * layout.n_numbers * X.dtype.itemsize
        if n_bytes > SMALL:
            j = int(layout.widths.argmax())
            check_memory(
                n_bytes,
                f"{type(self).__name__}: {n_rows:,} rows of {layout.n_numbers:,} numbers, "
                f"{layout.widths[j]:,} of them for the values of {self._column(j)},",
                "Pass fewer rows at a time, or merge rare values.",
            )

    def _rows_of_fit(self, X, sample_weight, reset, is_batch=False):
        """The rows to learn from, each column of which has a value in a fit, and their weights."""
        if not reset:
            take_new_values(self, X, sample_weight)
        cells = self._coded(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
        rows = self._numbers(cells, clip=False, lazily=not is_batch)
        rows, weights = rows_with_information(rows, sample_weight)
        if not is_batch and rows_with_gaps(rows) is not None:
            self._check_observed(rows)
        return rows, weights

    def _check_observed(self, X):
        """Refuse columns without an observed value: the data say nothing of them."""
        _, counts = observed_sums(X)
        if np.ndim(counts) and not np.all(counts):
            self._refuse_empty(np.asarray(counts)[self._encoder.coding.starts[:-1]] == 0)

    def _coded(self, X, *, reset=False, allow_nan=False, sample_weight=None):
        """Check a table; -> one number for each cell. With `reset`, the columns are learned."""
        if not reset and is_foreign(getattr(self, "components_", None)):
            there = place_of(self.components_)
            raise ValueError(ELSEWHERE.format(type(self).__name__, there, "NumPy"))
        X = self._validate(
            X,
            accept_sparse="csr",
            # Other types, such as integers and booleans, are converted to the first one.
            dtype=[np.float32, np.float64],
            allow_nan=allow_nan and not issparse(X),
            reset=reset,
            sample_weight=sample_weight,
        )
        X = X.astype(X.dtype.type, copy=False)  # to the native byte order
        if reset:
            weights = None if sample_weight is None else checked_weights(sample_weight, X)
            is_sparse = issparse(X)
            # A column without a value in the rows that count has none in one of them.
            if not is_sparse and np.isnan(X[0 if weights is None else weights.argmax()]).any():
                empty = np.isnan(X if weights is None else X[weights > 0]).all(axis=0)
                if empty.any() and not empty.all():
                    self._without_empty(empty)
            layout = learn_layout(self._specs(), self._encoder, X, self._column, weights)
            layout.hold_bits = hold_bits(X)
            # In an array of numbers, these stand for themselves.
            plain = is_sparse or self._encoder.is_plain and self._encoder.header is None
            unseen = None if plain else layout.unseen(self._encoder, X, weights)
            self._encoder = self._encoder.of_model(layout, unseen)
        elif self.unseen != "error" and not self._reads_codes and self._encoder.unseen:
            X = self._encoder.unseen.hidden(X)
        table = vars(self).get("_encoder")
        if table is not None and table.is_empty.any():  # its unit has one value: it says nothing
            X = np.where(table.is_empty, X.dtype.type(0), X)
        return X

    def _known_cells(self, X):
        return None if dispatched(X) else self._coded(X, allow_nan=True)

    def _bounded(self, X, clip):
        """Cells within the bounds. Rounding errors are corrected, others rejected or clipped."""
        layout = self._encoder.coding
        low, high = layout.bounds
        # The usual case, without temporary arrays. NaN makes it False.
        if np.ndim(low) == 0 and X.min() >= low and X.max() <= high and not layout.has_codes:
            return X
        legal = layout.are_legal(X)
        if not legal.all():
            if not clip:
                self._refuse(X, legal)
            row, column = np.unravel_index(np.argmin(legal), legal.shape)
            columns = np.flatnonzero(~legal.all(axis=0))
            self._warn_of_clipping(X, row, column, (~legal).sum(), len(columns))
        X = X.clip(low, high).astype(X.dtype, copy=False)
        return np.rint(X, out=X, where=layout.one_hot) if layout.has_codes else X

    def _bounded_sparse(self, X, clip):
        layout = self._encoder.coding
        low, high = layout.bounds
        if not low <= 0 <= high:  # the zeros are outside
            return csr_array(self._bounded(X.toarray(), clip))
        if not X.nnz or (X.data.min() >= low and X.data.max() <= high):
            return X
        legal = layout.are_legal(X.data)
        if not legal.all():
            place = np.argmin(legal)
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            rows = X[[row]].toarray()
            if not clip:
                self._refuse(rows, layout.are_legal(rows), row)
            columns = np.unique(X.indices[~legal])
            n_values, column = (~legal).sum(), X.indices[place]
            self._warn_of_clipping(rows, 0, column, n_values, len(columns), row)
        X = X.copy()
        X.data = X.data.clip(low, high)
        return X

    def _refuse(self, X, legal, first_row=0):
        domain, declare = self._encoder.coding.domain, partial(self._declaring, kind="nominal")
        self._refuse_cells(X, legal, domain, partial(self._remedy, X), first_row, declare=declare)

    def _remedy(self, X, columns):
        """The remedy for values out of range in some columns, for error messages."""
        layout, column = self._encoder.coding, columns[0]
        low, high = layout.bounds_of(column)
        truncated = np.array([kind in TRUNCATED for kind in layout.kinds])
        if truncated[column]:
            low, high = np.nanmin(X[:, truncated]), np.nanmax(X[:, truncated])
            if TruncatedGaussBernoulli in layout.kinds:  # its interval has to contain 0
                low, high = min(low, 0), max(high, 0)
            return (
                "Scale the columns with sklearn.preprocessing.MinMaxScaler(clip=True), or give "
                "units with the range of the data, such as "
                f"columns=TruncatedGaussian.from_data(X, {low:.6g}, {high:.6g})."
            )
        if layout.one_hot[column]:
            return f"Give these codes, or {self._declaring(columns, 'nominal')} for other values."
        if layout.kinds[column] is not Bernoulli:
            return (
                "Scale the columns with sklearn.preprocessing.MinMaxScaler("
                f"feature_range=({low:g}, {high:g}), clip=True)."
            )
        return (
            f"For numbers, {self._declaring(columns, 'number')}; for categories, 'nominal'. "
            "Grey levels become probabilities of a 1 by "
            "sklearn.preprocessing.MinMaxScaler(clip=True)."
        )

    def _declaring(self, columns, kind):
        """How a user sets the parameter `columns` to a kind for some columns."""
        entries = [f"{self._keys()[j]!r}: {kind!r}" for j in columns[:N_NAMES]]
        more = ", ..." if len(columns) > N_NAMES else ""
        return f"set columns={{{', '.join(entries)}{more}}}"

    def _warn_of_clipping(self, X, row, column, n_values, n_columns, first_row=0):
        one, layout = n_values == 1, self._encoder.coding
        is_code = layout.one_hot[column]
        place = "nearest of these" if is_code else "nearer end"
        remedy = "Correct it, or write it as NaN where missing cells are allowed."
        if not is_code:
            remedy = "To clip without this warning, use MinMaxScaler(clip=True) first."
            if X[row, column] < 0 and float(X[row, column]).is_integer():
                remedy = "If it stands for a missing value, write it as NaN."
        warn(
            f"{type(self).__name__}: {n_values:,} value{'' if one else 's'} in {n_columns:,} "
            f"column{'' if n_columns == 1 else 's'} {'is' if one else 'are'} outside the "
            f"{layout.domain(column)} and {'was' if one else 'were'} set to the {place}; the first "
            f"is {format_number(X[row, column])} in {self._column(column)}, row {first_row + row}. "
            f"{remedy}",
        )

    def _checked(self, X, allow_nan=False, lazily=False, cells=None):
        """Rows of a table, or their cells if they are known, as the model takes them."""
        check_is_fitted(self)
        if cells is None:
            X = self._validated(X, allow_nan=allow_nan, clip=True, lazily=lazily)
        else:
            X = self._numbers(cells, True, lazily)
        if not is_foreign(X):
            return X.astype(numpy_dtype(self._layered().weights[0]), copy=False)
        xp = namespace_of(X)
        if allow_nan and xp.any(xp.isnan(X)):
            raise ValueError(GAPS_ON_DEVICE.format(type(self).__name__))
        return as_type(X, numpy_dtype(self.components_))

    def _check_device_settings(self):
        """Reject parameters that work only with NumPy arrays."""
        name, specs, params = type(self).__name__, self._specs(), self.get_params(deep=False)
        binary = isinstance(specs, list) and all(spec in ("auto", Bernoulli) for spec in specs)
        if not binary or params.get("hidden", Bernoulli) not in ("bernoulli", Bernoulli):
            raise ValueError(
                f"{name}: on a device, only Bernoulli units are supported. For other units, pass "
                "NumPy arrays."
            )
        if params.get("tempered", "auto") not in ("auto", 0) or callable(params.get("chains")):
            raise ValueError(
                f"{name}: `tempered`, and a sampler as `chains`, are there for NumPy arrays only. "
                "On a device, use tempered=0 and chains='auto'."
            )
        if self._given_tap().adaptive:
            raise ValueError(
                f"{name}: inference={self.inference!r} works only with NumPy arrays. Use "
                "inference='tap' on a device."
            )

    def _validated_on_device(self, X, reset, allow_nan, clip):
        """Check an array of a library other than NumPy; it stays on its device."""
        self._check_library(X)
        xp, complete = namespace_of(X), "allow-nan" if allow_nan else True
        X = validate_data(
            self, without_gradient(X), reset=reset, dtype=[xp.float32, xp.float64],
            ensure_all_finite=complete,
        )  # fmt: skip
        if not reset and (here := place_of(X)) != (there := place_of(self.components_)):
            raise ValueError(ELSEWHERE.format(type(self).__name__, there, here))
        if reset:
            self._check_device_settings()
            layout = ColumnLayout.of_numbers(X.shape[1])
            layout.hold_bits = as_numpy(xp.all((X == 0) | (X == 1), axis=0))
            table = Encoder.of_numbers(np.empty((0, X.shape[1]), numpy_dtype(X)))
            self._encoder = table.of_model(layout)
        low, high = self._encoder.coding.bounds
        if xp.any((X < low) | (X > high)):
            X = like(X, self._bounded(as_numpy(X), clip))  # raises an error that names the value
        return X

    # Where the arrays lie.

    def move_to(self, xp, device=None):
        """Return the estimator with its arrays in another library or on another device.

        Parameters
        ----------
        xp : module
            The library: `numpy`, `torch`, `cupy` or another that implements the array API.
        device : object, default=None
            A device of that library, such as ``"cuda"``; None means its default device.

        Returns
        -------
        estimator : object
            A new estimator with the same parameters, which computes there. It does not have the
            ladder of saved models of training on NumPy arrays.

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
        """Return a moved copy; scikit-learn calls this to move an estimator to a device."""
        check_is_fitted(self)
        if not self._computes_on_devices:
            raise ValueError(
                f"{type(self).__name__} computes with NumPy arrays only, and stays with them."
            )
        other = clone(self)
        moved = {k: convert(v) for k, v in self._layered().exposed(self._is_deep).items()}
        moved["_training"] = self._training.moved(convert)
        vars(other).update({**vars(self), **moved})
        return other

    # Columns of the table and numbers of the visible units.

    def _specs(self):
        """The units that `columns` gives to each column; see `units_of`."""
        if isinstance(self.columns, UnitType):
            return units_of_all(self.columns, self.n_features_in_)
        if isinstance(self.columns, str):
            return [units_of(self.columns)] * self.n_features_in_
        return list(map(units_of, self._entries()))

    def _kinds(self, X):
        kinds = None
        if not isinstance(self.columns, str) or self.columns != "auto":
            kinds = kinds_of(self._specs(), self._entries(), X)
        if not _are_probabilities(X):
            self._warn_of_pictures(X, kinds)
            return kinds
        # In an array, numbers in [0, 1] are probabilities of a 1, as of pixels, if all columns are.
        plain = Kind("plain")
        if kinds is None:
            return [plain] * self.n_features_in_
        return [plain if kind.name == "auto" else kind for kind in kinds]

    def _warn_of_pictures(self, X, kinds):
        is_open = kinds is None or all(kind.is_open for kind in kinds)
        are_numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        levels = grey_levels(X) if is_open and are_numbers else None
        if levels is not None:
            warn_once(
                "pictures",
                f"{type(self).__name__}: X has whole numbers from 0 to {np.nanmax(X):g} in "
                f"{X.shape[1]} columns, as pictures have, and they are taken for levels or bins. "
                f"If they are grey levels, scale them to [0, 1] by X / {levels}: a pixel is then "
                "the probability of a 1.",
            )

    def _kind_of_codes(self, j):
        units = self._encoder.coding.kinds[j]
        if self._encoder.coding.hold_bits[j] and self._entries()[j] == "auto":
            return "binary"
        names = {kind: name for name, kind in UNITS_OF_COLUMNS.items()} | {Categorical: "nominal"}
        return names[units] if isinstance(units, type) and units in names else units

    def _initial_visible(self, X, weights=None):
        """Initial units, fitted to rows of numbers."""
        layout = self._encoder.coding
        if isinstance(X, StreamedRows) and not layout.is_binary:
            # The fitted units are only the start of the training.
            rows = evenly_spaced(X, FIRST_ROWS)
            X, weights = X[rows], of_some(weights, rows)
        return layout.initial_units(X, weights)

    def _fit_init(self, X=None, sample_weight=None):
        """Find the initial model, if `init` is one."""
        if is_model(self.init):
            name, layout = type(self).__name__, self._encoder.coding
            X = uncoded(X)
            self.init_ = fitted_init(self.init, name, layout, self._column, X, sample_weight)

    def _begin_at_init(self, weights, visible, hidden):
        """Take over the parameters of the initial model, if there is one; -> the visible units."""
        if not is_model(self.init):
            return visible
        name, parts = type(self).__name__, (self._encoder, weights, visible, hidden)
        return begin_at(self.init_, name, self._column_labels() or (), *parts)

    @property
    def visible_names_(self):
        """Names of the columns of `components_`.

        A column of numbers has one, with its own name. A column of two categories has one, named
        by the second category, such as ``member=yes``. A column of three or more categories has
        one for each category, such as ``city=Rome``.
        """
        check_is_fitted(self, "components_")
        names = self._encoder.coding.names(self._input_names(), self._encoder)
        return np.array(names, dtype=object)

    def _as_table(self, V, generator=None, given=None):
        """Convert rows of the visible units to a table like the training data.

        The generator draws numbers from their bins, but those that are `given`.
        """
        if is_foreign(V):
            return V[:, : self._encoder.coding.n_numbers]
        codes = self._encoder.coding.collapse(V[:, : self._encoder.coding.n_numbers])
        return self._encoder.decode(codes, generator, self._given_numbers(given))

    def _free_energy_of_gaps(self, V):
        return self._with_missing(V, -self._distribution().log_sums(V))

    def _with_missing(self, V, free_energy):
        """F of rows with missing cells, on the scale of the table.

        Continuous columns are standardised in the model. ln Z includes the volume of that scaling,
        so the sum over missing cells must include it, too. A row whose cells are all missing has
        probability 1, for any estimate of ln Z.
        """
        layout, missing = self._encoder.coding, np.isnan(V)
        if layout.scale is not None:
            free_energy -= missing[:, layout.starts[:-1]] @ np.log(layout.scale)
        empty = missing.all(axis=1)
        if empty.any():
            free_energy[empty] = -self.log_partition_
        return free_energy

    # Likelihoods.

    @validate_arguments(
        LOG_PARTITION_CONSTRAINTS
        | {
            "method": [StrOptions({"auto", "exact", "ladder", "ais", "raise", "tap"})],
            "X": ["array-like", "sparse matrix", None],
        }
    )
    def log_partition(
        self,
        method="auto",
        *,
        n_chains=None,
        n_temperatures=None,
        temperature=1.0,
        tol=None,
        max_rounds=None,
        random_state=None,
        X=None,
    ):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ladder", "ais", "raise", "tap"}, default="auto"
            How ln Z is computed:

            - ``"exact"``: by enumerating the states of the smaller layer, of at most 26 binary
              units;
            - ``"ladder"``: from a ladder of models between independent units and this model.
              Chains of all models run in parallel and exchange states. ln Z is the sum of the
              differences between neighbours by Bennett's acceptance ratio [4]_. The ladder
              consists of the models saved during training, if the log-likelihood was measured
              (`track_likelihood`), and of models in between if neighbours exchange too few states.
              Half of the chains begin at what other chains of the model find far from the data;
            - ``"ais"``: by annealed importance sampling [1]_, starting at independent columns with
              the frequencies of the training data. The estimate of Z is unbiased; that of ln Z is
              too low on average. With a probability of at least 95 %, ln Z is greater than the
              estimate minus 3 nats, for any number of chains;
            - ``"raise"``: by chains that run in the opposite direction [2]_. It is meant to be used
              alongside AIS: it overestimates ln Z if the chains start at samples of the model. If
              they do not, for example because the model has probability mass far from the data, it
              may also be too low: it then bounds the likelihood of the distribution in which the
              annealing ends, not that of the model;
            - ``"tap"``: ln Σ exp(−F) over the free energies F of distinct TAP solutions [3]_. It is
              deterministic given the starts, and neither a bound nor unbiased. `trusted` is
              always False: it is a training objective, and training may have increased its error;
            - ``"auto"``: exact if the smaller layer has at most 20 units. Otherwise both the ladder
              and AIS are run, and the larger estimate is kept where they differ. With more than
              40,000 weights and no ladder saved in training, it is AIS, and chains in the opposite
              direction as a check.
        n_chains : int, default=None
            Number of independent chains; for the ladder, of chains for each model; for TAP, of
            starts. None means 100.
        n_temperatures : int or array-like of float, default=None
            Number of equal steps of the inverse temperature, or all its values, rising from 0 to
            1. None means 1,000.
        temperature : float, default=1.0
            T > 0: the model is P(x, h)^(1/T), with Z = Σ exp(-E(x, h) / T).
        tol : float, default=None
            Target standard error, in nats. The ladder runs until the target is reached, each chain
            has been renewed, and the two halves of the rounds agree; None means
            0.05, and 0.02 where that takes only a few seconds. AIS doubles its temperatures and
            chains, up to six times, until the target is reached and two runs agree; None means a
            single run.
        max_rounds : int, default=None
            Maximum number of rounds of the ladder. In each round, all chains make one transition
            and then exchange states. None means 1,000, or more where that takes only a few seconds.
            If the likelihood was measured during training, rounds beyond 400 take at most two
            fifths of the time of the training.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        X : array-like of shape (n_samples, n_features), default=None
            For ``"raise"``: the rows whose likelihood is to be bounded. The chains start at them;
            at most `n_chains` rows are used. None means the end states of an AIS run, drawn by
            their weights, as approximate samples of the model. It must be None in a deep Boltzmann
            machine and in a classifier.

            For ``"tap"``: the starts. None means the training rows that the estimator has kept, or
            else the end states of short Markov chains.

        Returns
        -------
        estimate : Bunch
            The estimate, with

            - `value`: ln Z in nats;
            - `std_err`: its standard error, by the delta method;
            - `low`, `high`: lower and upper bound. Each holds with a probability of 95 %, as far as
              the method can tell; infinite if the method gives no bound, but never by ``"auto"``;
            - `verdict`: a sentence on how reliable the estimate is, and `trusted`, a bool;
            - `ess`: effective number of chains;
            - `log_weights` of the chains, and `states`, their final states;
            - `method`.

            With TAP, `std_err` is NaN, `ess` is the number of distinct solutions, and
            `log_weights` are minus their free energies.

            With the ladder, `std_err` is that of the mean of `n_chains` independent simulations,
            `low` and `high` are three standard errors away, and `ess` is the number of states that
            moved from independent units to the model. It is trusted if all chains have left where
            they began or, after `max_rounds`, half of them have, and those that began far from the
            data as easily. There are also `acceptances` of exchanges between neighbours, and
            `log_partitions` and `log_partition_errors` of all models.

            With ``"auto"``, `low` and `high` contain the estimates of the ladder and of AIS. If the
            ladder is not to be trusted or AIS contradicts it, `low` is the largest lower bound, and
            `high` is 3 nats above both, which covers missed modes with less than 95 % of the mass.
            The same holds for AIS without a ladder, where `trusted` means that the chains in the
            opposite direction agree within half a nat.

        Warns
        -----
        UserWarning
            If the ends of ``"auto"`` are more than a nat apart, which the warning gives, if only a
            few chains contribute to the estimate, if AIS shows that ln Z is larger than
            the estimate of RAISE or of the ladder, if neighbours of the ladder do not exchange
            states, or if some of its chains never leave their starting points.
        ConvergenceWarning
            If TAP converges from no start.

        Notes
        -----
        `log_partition_`, which `score_samples` uses, is the estimate of ``method="auto"`` with a
        fixed seed. Other runs do not change it. If `low` of an AIS run is above it,
        `score_samples` warns that the scores are too high.

        With bits or categories, ln Z is at least the logarithm of the sum over the different
        states in which chains of the ladder have been. An estimate below that sum is raised to it.

        A ladder has at most 200 models beside those that training has saved. It settles in at most
        3,200 rounds, and is set up again up to four times if a mode appears late. A round costs
        about 5 `n_chains` multiplications for each weight of each model.

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
        model, layout = self._distribution().tempered(temperature).model, self._encoder.coding
        n_chains = n_chains or 100
        if method == "raise" and X is not None and len(model.visible) > layout.n_numbers:
            raise ValueError(
                "With method='raise', X must be None in a deep Boltzmann machine or a classifier: "
                "the chains cannot start at rows."
            )
        tracker, on_scale = self._training.tracker if temperature == 1 else None, layout.on_scale
        # The ladder of saved models of the training, and its multiplications, if they were counted.
        former, work = (None, np.inf) if tracker is None else (tracker.ladder, tracker.work)
        if method == "auto" and _enumeration.n_enumerated(model) <= _enumeration.EXACT_UNITS:
            method = "exact"
        if method == "exact":
            return on_scale(estimate_from_value(_enumeration.exact_log_partition(model)))
        X = None if X is None or method == "auto" else self._checked(X)
        rng = make_generator(random_state)
        stream, betas = Stream.from_generator(rng), temperature_ladder(n_temperatures)
        floor = self._cached("log_partition_floor", Bunch) if temperature == 1 else Bunch()
        climbs = method == "ladder" or (
            method == "auto"
            and (former is not None or n_chains * model.n_weights <= _climb.AFFORDABLE)
        )
        with Workers(self.n_jobs) as workers:
            if method == "tap":
                return on_scale(self._tap_log_partition(model, X, n_chains, stream, workers))
            if climbs:
                ladder = _climb.ladder_to(model, self._base(), former, n_chains, stream)
                estimate = other = on_scale(
                    _climb.ladder_estimate(ladder, tol, max_rounds, workers, work)
                )
            if method != "ladder":
                estimate = forward = on_scale(
                    _annealing.annealed_within(
                        tol, model, self._base(), betas, n_chains, stream, workers
                    )
                )
            compare_with_floor(estimate, floor)
            if method == "raise" or (method == "auto" and not climbs):
                n_rows = 1 if X is None else min(n_chains, X.shape[0])
                if X is None:
                    starts = _annealing.resampled(forward, rng)
                else:
                    starts = dense(taken(X, np.arange(n_chains) % n_rows))
                estimate = other = on_scale(
                    _annealing.reverse_importance_sampling(
                        model, self._base(), betas, starts, stream, workers, n_rows
                    )
                )
        if method == "raise":
            estimate = _annealing.bracketed(forward, other, from_model=X is None)
        if method == "auto":
            estimate = combined(other, forward)
        if not estimate.trusted or (method == "auto" and has_wide_ends(estimate)):
            warn(estimate.verdict)
        return estimate

    # Mean field.

    def _given_tap(self):
        """The settings of mean field that `inference` stands for, checked."""
        tap = getattr(self, "inference", "tap")
        tap = INFERENCES.get(tap, tap)
        validate_parameter_constraints(TAP_CONSTRAINTS, tap._asdict(), "TAP")
        return tap

    def _iteration(self, **changes):
        """How solutions are found outside training."""
        return self._given_tap()._replace(**{"max_iter": MOST_ITERATIONS, **changes})

    def _kept_starts(self):
        """Where TAP starts by the training rows that the estimator has kept, or None."""
        rows, layered = getattr(self._training.seen, "rows", None), self._layered()
        if rows is None:
            return None
        rows = like(layered.weights[0], rows.astype(numpy_dtype(layered.weights[0])))
        with Workers(self.n_jobs) as workers:
            return visible_side(layered, rows, self._iteration(), workers)

    def _tap_log_partition(self, model, X, n_starts, stream, workers):
        starts = self._kept_starts() if X is None else self._marginal().side(dense(X))
        if starts is None:  # the end states of short Markov chains
            V = self._base().sample(zeros(model.weights, (n_starts, len(model.visible))), stream)
            starts = _samples.chain_samples(model, V, TAP_START_STEPS, stream, workers)
        _, chosen = parts_of(model, starts, self._iteration(), workers)
        if not chosen.converged.any():
            damping = ", or a larger damping of TAP" if hasattr(self, "inference") else ""
            warn(
                "TAP converged from no start: its estimate of ln Z is not reliable. Use "
                f"method='ais'{damping}.",
                ConvergenceWarning,
            )
        return LogPartition(
            value=total_log_partition(chosen), std_err=np.nan, low=-np.inf, high=np.inf,
            ess=float(len(chosen.order)), log_weights=-chosen.free_energy, method="tap",
            states=like(model.weights, chosen.visible_mean), trusted=False,
            verdict="The TAP estimate of the log-partition is not to be trusted: TAP is an "
            "expansion for small weights, whose error has an unknown size and sign. score_samples "
            "does not use it. method='ais' gives a lower bound.",
        )  # fmt: skip

    # New rows, and missing values.

    @validate_arguments(MACHINE_SAMPLE_CONSTRAINTS)
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        where=None,
        temperature=1.0,
        n_steps=1000,
        n_temperatures=None,
        init=None,
    ):
        """Draw samples from the model, each by a Markov chain of its own.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by label or number, as in ``{"city": "Rome"}``. Samples are then
            drawn from the conditional distribution of the other columns: exactly if these, or the
            hidden units, have no more joint states than 2**23 divided by the number of all units,
            and otherwise by annealed chains, which are resampled by their weights and continue with
            the given columns clamped. With `init` or `n_temperatures`, plain chains are used.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.
        temperature : float, default=1.0
            Temperature T > 0. All weights and biases are divided by T, so that samples are from
            the distribution ∝ p(v, h)^(1/T) of visible and hidden units together. Below 1,
            probable rows become more frequent, and chains mix more slowly; then use
            `n_temperatures`, too.
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
        n_temperatures : int, default=None
            Number of temperatures of parallel tempering. Each chain exchanges states with chains at
            higher temperatures, up to independent units. The time is proportional to
            `n_temperatures`, but samples reach modes that a single chain would not. None and 1 mean
            no tempering.
        init : array-like of shape (n_rows, n_features) or "ladder", default=None
            Rows at which the chains start. None means independent draws of each column, with the
            means of the training data. ``"ladder"`` runs chains of a ladder of models, from
            independent units to this model, that exchange states, as ``log_partition("ladder")``
            does; samples then come from all modes in the right proportions. `n_steps` then counts
            the transitions of all models of the ladder together.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like the training data: of the same container type,
            with the same names, dtypes and categories.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.
        """
        return self._sample_where(
            where, n_samples, random_state, given, None, temperature=temperature, n_steps=n_steps,
            n_temperatures=n_temperatures or 1, init=init,
        )  # fmt: skip

    def _sample_where(self, where, n_samples, random_state, given, labels, **options):
        """`_sample`, of the rows that obey; then all labels are equal."""
        check_is_fitted(self)
        is_elsewhere = where is not None and is_foreign(self.components_)
        here = self.move_to(np) if is_elsewhere else self

        def draw(n, generator):
            own = labels if where is None or labels is None else np.repeat(labels[:1], n, axis=0)
            return here._sample(n, generator, given, own, **options)

        rows = self._rows_where(draw, n_samples, random_state, where, itemsize=4)
        return like(self.components_, rows) if is_elsewhere else rows

    def _sample(self, n_samples, random_state, given, labels, *, init, n_temperatures, **options):
        """`sample`; of a classifier, given a label for each row, one-hot, or None."""
        options |= {"init": init, "n_temperatures": n_temperatures}
        model = self._model()
        free = np.arange(len(model.visible)) < self._encoder.coding.n_numbers
        is_exact = labels is not None and init is None and has_few_states(model, free)
        if is_foreign(model.weights) and (given or n_temperatures > 1 or is_exact):
            options["init"] = as_numpy(init) if is_foreign(init) else init
            rows = self.move_to(np)._sample(n_samples, random_state, given, labels, **options)
            return like(self.components_, rows)
        rng, values = make_generator(random_state), None
        if given or labels is not None:
            row = self._given_values(given) if given else np.full(free.sum(), np.nan)
            values = np.tile(row, (n_samples, 1))
            values = values if labels is None else np.hstack([values, labels])
        return self._as_table(self._drawn(n_samples, rng, values, **options), rng, given)

    def _drawn(self, n_samples, rng, values, *, temperature, n_steps, init, n_temperatures):
        """Samples of the visible side given the numbers of `values` that are not NaN."""
        starts = None
        if isinstance(init, str):
            if values is not None or temperature != 1 or n_temperatures != 1:
                raise ValueError(
                    "init='ladder' cannot be combined with `given`, with a temperature other than "
                    "1 or with n_temperatures > 1. Use n_temperatures without init."
                )
            former = getattr(self._training.tracker, "ladder", None)
            start = self._base(), former, min(n_samples, LADDER_CHAINS)
            stream = Stream.from_generator(rng)
            with Workers(self.n_jobs) as workers:
                ladder = _climb.ladder_to(self._model(), *start, stream)
                return _climb.ladder_samples(ladder, n_samples, n_steps, workers)
        if init is not None:
            V = self._checked(init)
            starts = dense(taken(V, np.arange(n_samples) % V.shape[0]))
        return self._distribution().sample(
            n_samples, rng, values, starts, temperature=temperature, n_steps=n_steps,
            n_temperatures=n_temperatures,
        )  # fmt: skip

    def _given_values(self, given):
        """A row of the model with the values that `given` has for some columns, NaN elsewhere."""
        row = np.full((1, self.n_features_in_), np.nan)
        columns, codes = self._given(given)
        row[0, columns] = codes
        legal = self._encoder.coding.are_legal(row)
        if not legal.all():
            j = int(np.argmin(legal[0]))
            raise ValueError(
                f"`given` has the value {format_number(row[0, j])} for {self._column(j)}, but "
                f"{type(self).__name__} needs {self._encoder.coding.domain(j)}."
            )
        layout = self._encoder.coding
        return layout.expand(row.clip(*layout.bounds))[0]

    def _to_fill(self, X):
        """Rows in which cells may be missing."""
        check_is_fitted(self)
        V = self._validated(X, allow_nan=True, clip=True)
        return as_type(V, numpy_dtype(self.components_)) if is_foreign(V) else np.array(V)

    def _impute(self, X, how, n_steps, rng):
        """Fill the missing cells of a table from p(missing | observed)."""
        V = self._to_fill(X)
        if is_foreign(V):
            return self._impute_array(V, how, n_steps, rng)
        missing = np.isnan(V)
        filled = self._distribution().complete(V, how, rng, n_steps)
        return self._filled(X, filled, missing, how, rng)

    def _impute_array(self, V, how, n_steps, rng):
        """Fill the missing cells where the rows lie, by Markov chains."""
        rows, stream = self._layered().padded(V, np.nan), Stream.from_generator(rng)
        xp, free_energy = namespace_of(V), self._marginal().free_energy
        filled = _array_chains.filled_by_chains(
            self._model(), rows, xp.isnan(rows), how, n_steps, stream,
            free_energy=lambda states: free_energy(states[:, : V.shape[1]]),
        )  # fmt: skip
        return xp.where(xp.isnan(V), filled[:, : V.shape[1]], V)

    def _filled(self, X, V, missing, how, generator):
        """The table with its missing cells replaced by the values of rows of the model."""
        layout, table, numbers = self._encoder.coding, self._encoder, {}
        generator = generator if how == "sample" else None
        if how == "mean":
            for j in np.flatnonzero(table.is_binned):
                shares = V[:, layout.numbers_of(j)]
                shares = shares if shares.shape[1] > 1 else np.hstack([1 - shares, shares])
                # A single bin has a unit of two values.
                numbers[j] = shares @ np.broadcast_to(table.columns[j].bins.means, shares.shape[1])
        gaps = missing[:, layout.starts[:-1]]
        return table.fill(X, layout.collapse(V), gaps, generator, numbers)

    predict_column_proba = by_processor(Density.predict_column_proba)
    entropy = by_processor(Density.entropy)

    def _column_probabilities(self, X, j, n_steps, seed):
        units = self._layered().layers[0]
        if not np.isfinite(units.state_counts[j]):
            domain = self._encoder.coding.domain(j)
            raise ValueError(
                f"{self._column(j)} takes {domain}: a continuous column has no "
                "probabilities of single values. Use `impute` for its mean or for samples."
            )
        X = np.array(self._coded(X, allow_nan=True))
        X[:, j] = np.nan
        V = self._encoder.coding.expand(self._bounded(X, clip=True))
        bar = progress_bar("rows", None, self.verbose)
        with bar:
            return self._distribution().column_probabilities(V, j, n_steps, seed, bar)

    @property
    def _evaluation_seed(self):
        return self._training.evaluation_seed

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        entries = self.columns if isinstance(self.columns, (dict, list)) else [self.columns]
        entries = entries.values() if isinstance(entries, dict) else entries
        # Whether no column may have negative values.
        tags.input_tags.positive_only = all(
            np.min(entry.bounds[0]) >= 0
            if isinstance(entry, UnitType)
            else isinstance(entry, (str, type)) and entry in NOT_NEGATIVE
            for entry in entries
        )
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
