"""Common parts of meta-estimators: checks of tables, and the default density model."""

import re
import warnings
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._density import Density
from sklearn_boltz._methods import named
from sklearn_boltz._tabular import Tabular
from sklearn_boltz.networks import FVBMPseudoLikelihood
from sklearn_boltz.networks.features._basis import n_features
from sklearn_boltz.restricted import SDCPRBM
from sklearn_boltz.restricted._boltzmann_machine import BaseBoltzmannMachine
from sklearn_boltz.tables._batches import out_of_memory
from sklearn_boltz.tables._cells import (
    APART,
    MOST_LEVELS,
    as_array,
    is_whole,
    unmasked,
    unusable_cell,
)
from sklearn_boltz.tables._coded import Coded
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._form import check_form
from sklearn_boltz.tables._frames import is_frame, some_columns, some_rows
from sklearn_boltz.tables._kinds import NAMES
from sklearn_boltz.tables._phrases import having, join_columns
from sklearn_boltz.tables._sample import sample_rows
from sklearn_boltz.tables._weights import RowWeights, checked_weights, row_weights

# Cells of batches that are kept, of rows drawn at random. A network of 15 columns is fitted to
# 30 times 16,000 rows at most, and these are 280,000.
MOST_SAMPLED = 2**22
# What errors of the default density begin with.
DEFAULTS = ("FVBMPseudoLikelihood", "SDCPRBM")
# Constraints of the parameter `columns`.
COLUMNS = [StrOptions(set(NAMES)), list, dict, tuple, range]
# Tolerance of the fit of a network, in nats.
TOL = 0.1
# Most functions of the columns of a network, two of a bit: there are as many couplings as pairs of
# them. With more, it would take many minutes.
MOST_FEATURES = 2048
# Number of hidden units of the RBM.
N_HIDDEN = 64
# Its mini-batches: their number, and their rows. On four tables of 150 to 569 rows of real numbers,
# 1,500 mini-batches take twice as long, and fill gaps with errors smaller by 3 % at most; on one of
# 1,670 rows and 1,058 bits they fill gaps worse.
N_BATCHES, BATCH_SIZE = 600, 100

# Of methods that ask the default model, or a given one, for the probabilities of single columns.
needs_column_proba = available_if(
    lambda self: self.estimator is None or hasattr(self.estimator, "predict_column_proba")
)


class OfTables(Tabular):
    """A meta-estimator: what it does with tables is the same for all of them."""

    # Of the codes that the default model gets.
    _dtype = np.float64
    # Of `_read_by`.
    _reader = None

    def _own_error(self, error):
        """Errors as of `Tabular`; those of the default density name this estimator."""
        error = super()._own_error(error)
        is_default = getattr(self, "estimator", self) is None
        if is_default and type(error) is ValueError and str(error).startswith(DEFAULTS):
            return ValueError(re.sub(r"^\w+", type(self).__name__, str(error)))
        return error

    def _read(self, X, *, reset=False):
        """Check a table: the number of its columns, and cells, none infinite or a time of day.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        reset : bool
            Whether this is the table of `fit`, whose columns are the right ones.

        Returns
        -------
        X : ndarray or data frame
        """
        if not reset:
            check_is_fitted(self)
        X, name = unmasked(X), type(self).__name__
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
            with named(self):
                check_form(X)
        if not is_frame(X):
            X = check_array(
                as_array(X) if isinstance(X, (list, tuple)) else X,
                dtype=None,
                ensure_all_finite=False,  # below, with the name of the column
                input_name="X",
                estimator=self,
            )
        elif X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(
                f"{name}: X has 0 {'columns' if X.shape[0] else 'rows'} (shape {tuple(X.shape)}), "
                "and there must be at least one."
            )
        X = self._validate_data(X, reset=reset, skip_check_array=True)
        description = unusable_cell(X, None)
        if description is not None:
            raise ValueError(f"{name}: {description}")
        return X

    def _counted(self, X, sample_weight):
        """-> the numbers of the rows that count, these rows, and their weights."""
        weights = checked_weights(row_weights(sample_weight, tell=True), X)
        kept = np.flatnonzero(weights)
        X = X if len(kept) == len(X) else some_rows(X, kept)
        return kept, X, weights[kept].view(RowWeights)

    def _declared(self):
        """Kinds that `columns` declares for the default model; None if nothing."""
        if self.estimator is not None and not is_auto(self.columns):
            raise ValueError(
                f"{type(self).__name__}: `columns` is for the default model, and `estimator` is "
                "given. Set `columns` of that instead: "
                f"{type(self.estimator).__name__}(columns=...)."
            )
        with named(self):
            return self._kinds(None)

    def _observed(self, missing):
        """The numbers of the columns with an observed cell; a warning names the others."""
        empty = missing.all(axis=0)
        if empty.all():
            name = type(self).__name__
            raise ValueError(
                f"{name}: all cells of the table are missing. Pass rows with observed cells."
            )
        without = list(map(self._column, np.flatnonzero(empty)))
        if without:
            are = "is" if len(without) == 1 else "are"
            self._warn(f"{join_columns(without)} without an observed value {are} left out.")
        return np.flatnonzero(~empty)

    def _learned(self, learn, X, weights, kinds):
        """The encoder that a function learns of the kept columns."""
        kinds = kinds and [kinds[j] for j in self._kept]
        with named(self):
            return learn(some_columns(X, self._kept), weights, kinds)

    def _rows(self, X):
        """The rows of a table as the density takes them."""
        X = some_columns(X, self._kept)
        if self._reader is not None:
            codes = self._reader._validate(X, reset=False, allow_nan=True)
            return Coded(self._reader._encoder, X, codes, is_own=True)
        if self._encoder is None:
            return Coded(None, X, X)
        with named(self):
            codes = self._encoder.encode(X, "missing")
        if self.estimator is None:
            codes = codes.astype(self._dtype, copy=False)
        return Coded(self._encoder, X, codes)

    def _read_by(self, estimator, X, weights):
        """-> a density that encodes rows for others like it, and the rows of a fit.

        There is none, and the rows stay a table, for a density that is not of this package: also a
        subclass of a user's own may look at tables.
        """
        is_frozen = isinstance(estimator, FrozenEstimator)
        reader = estimator.estimator if is_frozen else clone(estimator)
        name, place = type(reader).__name__, type(reader).__module__
        if not isinstance(reader, Density) or not place.startswith("sklearn_boltz."):
            return None, Coded(None, X, X)
        if not is_frozen:
            reader._validate_params()
        try:
            codes = reader._validate(X, reset=not is_frozen, allow_nan=True, sample_weight=weights)
        except (TypeError, ValueError) as error:
            text = re.sub(rf"^{name}\b", type(self).__name__, str(error))
            raise type(error)(text) from error.__cause__
        return reader, Coded(reader._encoder, X, codes, is_own=True)

    def _batches(self, X, sample_weight):
        """Batches of rows that are not in memory; None for a table."""
        batches = out_of_memory(X)
        if batches is not None and sample_weight is not None:
            name = type(self).__name__
            raise ValueError(f"{name}: Batches have no sample_weight. Leave it at None.")
        return batches

    def _sampled(self, batches):
        """Random rows of batches, as of `sample_rows`."""
        with named(self):
            X, rows, n_rows = sample_rows(batches, MOST_SAMPLED)
        self._tell("sample", {"rows": len(rows), "of": n_rows})
        return X, rows, n_rows

    def _tell(self, stage, figures):
        """Print figures of a stage of a fit if `verbose` is set."""
        if self.verbose:
            shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"[{type(self).__name__}] {stage}: {shown}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def seeded(estimator, generator):
    """An estimator; a clone with a seed, if it takes one."""
    if "random_state" not in estimator.get_params():
        return estimator
    return clone(estimator).set_params(random_state=generator.randint(2**31))


def timed_fit(estimator, rows, weights):
    """-> a clone of an estimator fitted to `Coded` rows, and the seconds; weights may be None.

    What is inside of a FrozenEstimator is fitted.
    """
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator, 0.0
    start, weights = perf_counter(), {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        # The imputer tells itself.
        warnings.filterwarnings("ignore", f".*: {APART}")
        density = clone(estimator)
        if rows.of_codes:
            density._fit_codes(rows.table, rows.codes, **weights)
        else:
            density.fit(rows.taken, **weights)
        return density, perf_counter() - start


def choose_density(table, n_rows, n_classes=0, **options):
    """Choose a density model for a table of codes, by its size and types of columns.

    Parameters
    ----------
    table : Encoder
        Of categories and bins; other columns hold real numbers.
    n_rows : int
    n_classes : int
        If positive, number of values of one more column.
    **options : dict
        Parameters of the network.

    Returns
    -------
    density : FVBMPseudoLikelihood or SDCPRBM
        The network of all pairs of columns. The RBM, if there are real numbers or too many columns.
    """
    n_values = [*table.n_categories.tolist(), *[n_classes] * (n_classes > 0)]
    kinds = [*table.order_kinds, *["nominal"] * (n_classes > 0)]
    if all(n_values) and n_features(kinds, n_values, n_rows) <= MOST_FEATURES:
        columns = [(kind, list(range(max(n, 2)))) for kind, n in zip(kinds, n_values, strict=True)]
        return FVBMPseudoLikelihood(columns=columns, tol=TOL, **options)
    # Far fewer mini-batches than for the best likelihood: units of real numbers have no kernels.
    # The likelihood after each epoch would take longer than the epoch, and is not needed.
    max_iter = max(N_BATCHES * BATCH_SIZE // max(n_rows, BATCH_SIZE), 10)
    return SDCPRBM(
        N_HIDDEN, columns=list(map(_unit, n_values)), batch_size=BATCH_SIZE, max_iter=max_iter,
        track_likelihood=False, verbose=options.get("verbose", 0),
    )  # fmt: skip


def with_values(estimator, X, n_classes=0):
    """A clone of a density model that knows the values of all columns of a table.

    Otherwise, a model that is fitted to some of the rows would know only the values in these rows.

    Parameters
    ----------
    estimator : estimator
    X : data frame or array
    n_classes : int
        If positive, number of values of one more column.

    Returns
    -------
    estimator : estimator
        A clone whose parameter `columns` is set, if it is at ``"auto"``.
    table : Encoder or None
        The encoder of the rows for it; None if it takes the rows as they are.
    """
    estimator, parameters = clone(estimator), estimator.get_params(deep=False)
    if not is_auto(parameters.get("columns")):
        if n_classes:
            remedy = "Leave `columns` at 'auto'." if "columns" in parameters else "Set joint=False."
            raise ValueError(
                "joint=True needs an estimator with columns='auto', as it adds the class as a "
                f"column; got {estimator!r}. {remedy}"
            )
        return estimator, None
    is_rbm, table = isinstance(estimator, BaseBoltzmannMachine), Encoder.learn(X)
    n_values = table.n_categories
    numbers = Coded(table, X, X).numbers(np.flatnonzero(~table.is_word))
    for j, own in numbers.items():
        n_values[j] = n_codes(own, is_rbm)
    if not is_rbm and not n_values.all():
        if n_classes:
            places = np.flatnonzero(n_values == 0)
            own = numbers[places[0]]
            others = own[~(np.isnan(own) | is_whole(own) & (own <= MOST_LEVELS))]
            raise ValueError(
                f"joint=True with {type(estimator).__name__} needs categories, or codes from 0 to "
                f"{MOST_LEVELS}, and {having(table.columns[j].title for j in places)} other "
                f"numbers, such as {others[0]:g}. If they stand for missing values, replace them "
                "by NaN; if they are categories, write them as strings. Otherwise bin them, for "
                "example by KBinsDiscretizer(encode='ordinal'), or set estimator=None."
            )
        return estimator, None
    n_values = [*n_values.tolist(), *[n_classes] * (n_classes > 0)]
    if is_rbm:
        return estimator.set_params(columns=list(map(_unit, n_values))), table
    return with_codes(estimator, n_values), table


def with_codes(network, n_values):
    """A clone of a model of codes that knows how many values each column has."""
    return clone(network).set_params(columns=[list(range(max(n, 2))) for n in n_values])


def is_auto(value):
    """Whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"  # an array is equal cell by cell


def n_codes(numbers, probabilities=False):
    """Number of codes in a column of 0, 1, 2, ...; 0 for other numbers.

    Numbers from 0 to 1 count as two codes if they may be `probabilities` of a 1.
    """
    numbers = numbers[~np.isnan(numbers)]
    largest = numbers.max(initial=0)
    if probabilities and numbers.min(initial=0) >= 0 and largest <= 1:
        return 2
    return int(largest) + 1 if is_whole(numbers).all() and largest <= MOST_LEVELS else 0


def _unit(n_values):
    """Entry of `columns` for a column with a number of values; 0 means real numbers."""
    if n_values > 2:
        return list(range(n_values))
    return "probability" if n_values else "gaussian"
