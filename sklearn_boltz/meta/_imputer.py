"""BoltzmannImputer: fills missing cells of a table with a density model of its rows."""

import warnings
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._estimator import named, unchanged_on_error
from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.meta._coding import observed_columns
from sklearn_boltz.meta._default import (
    COLUMNS,
    OfTables,
    choose_density,
    draws_of,
    timed_fit,
)
from sklearn_boltz.meta._linear import LinearMeans
from sklearn_boltz.networks._network import Network
from sklearn_boltz.numerics._threads import in_parallel, row_blocks
from sklearn_boltz.tables._cells import MISSING_CODES, columns_of, looks_missing, missing_cells
from sklearn_boltz.tables._column import are_bits
from sklearn_boltz.tables._frames import (
    is_frame,
    joined,
    some_columns,
    some_rows,
    with_columns,
    with_flags,
)
from sklearn_boltz.tables._kinds import Kind, Need
from sklearn_boltz.tables._table import Table

# Maximum number of joint states of connected missing cells of a row that are enumerated; for other
# rows, number of sweeps of Gibbs sampling before averaging, and during it. With more states, these
# sweeps take less time.
MAX_STATES, N_STEPS = 2**18, 200
# Number of rows that are filled together, each such block with random numbers of its own.
BLOCK_ROWS = 500


class BoltzmannImputer(TransformerMixin, OfTables, BaseEstimator):
    """Fill missing cells using their distribution given the observed cells of the row.

    A density model is fitted to all observed cells of the table, which may contain words and
    numbers. Missing cells are then filled given the observed cells of their row. Cells are assumed
    to be missing at random [1]_: whether a cell is missing may depend only on observed cells.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with a method `impute`, such as
        :class:`~sklearn_boltz.FVBMPseudoLikelihood`. None means a network of all pairs of
        columns with a weak L2 penalty, or an RBM if the table is too large for that. Whole numbers
        with at most 20 different values are levels; other numbers, and dates, are in bins. The
        penalty takes the order of levels and of bins into account: it is weak for trends and
        strong for jumps between neighbours. The mean of a number is half that of the network, half
        that of a linear regression on the other cells of its row, which follows order inside bins.

    columns : str, list or dict, default="auto"
        The kind of each column in the default model: ``"binary"``, ``"nominal"``, ``"ordinal"``,
        ``"count"``, ``"number"`` or ``"binned"``, which both have bins, or the list of its values;
        see :ref:`kinds`. A string is the kind of all columns, a dict names some, and a list has an
        entry for each. ``"auto"`` looks at the table. Of a given `estimator`, set its own
        `columns`.

    how : {"mode", "mean", "sample"}, default="mode"
        ``"mode"`` fills the most probable value of each missing cell, which is most often correct,
        and the mean of numbers in bins, rounded where the column has whole numbers only. ``"mean"``
        fills means of all numbers as they are; words and declared levels get their mode.
        ``"sample"`` draws from the joint distribution of the missing cells of a row. For an RBM
        and for a given `estimator`, ``"mode"`` is the most probable joint state of the missing
        cells.

    add_indicator : bool, default=False
        Whether to append indicator columns: one for each column with missing cells in `fit`, which
        marks its missing cells.

    n_jobs : int, default=None
        How many blocks of 500 rows `transform` fills at the same time, in processes of joblib. None
        means 1, unless in a context of :class:`joblib.parallel_config`; -1 means all processors.
        The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the fit and for draws. For multiple imputation, use
        ``how="sample"`` and several imputers with different integers.

    verbose : int, default=0
        If positive, print the time of the fit, and the share of the cells that are missing.

    Attributes
    ----------
    estimator_ : estimator
        The fitted density model.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    FVBMPseudoLikelihood : The network that is the default for words and levels.
    sklearn.impute.IterativeImputer : Repeated regressions, for numbers.

    Notes
    -----
    `transform` leaves out columns without an observed cell in `fit`, like scikit-learn's imputers.
    In the default model, a word or level that did not occur in `fit` is left unchanged and is not
    used to fill other cells. A given `estimator` gets the table unchanged. Rows without missing
    cells are returned unchanged.

    In a pipeline, encode the words after the imputer and leave numbers as they are, with a
    :class:`~sklearn.compose.ColumnTransformer`. If a search does not change the imputer,
    ``memory`` of the pipeline avoids fitting it again.

    References
    ----------
    .. [1] D. B. Rubin, "Inference and missing data", Biometrika 63(3), 581–592, 1976.
       https://doi.org/10.1093/biomet/63.3.581

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import BoltzmannImputer
    >>> X = np.array([["yes", "left"], ["no", "right"], ["yes", "left"], ["no", None]] * 20)
    >>> BoltzmannImputer().fit_transform(X)[3].tolist()
    ['no', 'right']
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "impute"]), None],
        "columns": COLUMNS,
        "how": [StrOptions({"mode", "mean", "sample"})],
        "add_indicator": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        columns="auto",
        how="mode",
        add_indicator=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.columns = columns
        self.how = how
        self.add_indicator = add_indicator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the density model to the observed cells.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        self : BoltzmannImputer
            The fitted imputer.

        Raises
        ------
        ValueError
            If all cells are missing, if a number is infinite, or if a column holds dates.
        """
        with unchanged_on_error(self):
            return self._fit(X, sample_weight)

    def _fit(self, X, sample_weight):
        """Fit what the attributes need, and set them."""
        _, X, weights = self._counted(self._read(X, reset=True), sample_weight)
        kinds, missing = self._declared() or [Kind()] * X.shape[1], missing_cells(X)
        with named(self):
            self._kept = observed_columns(X, missing, "BoltzmannImputer")
        self._with_gaps = np.flatnonzero(missing[:, self._kept].any(axis=0))
        X = some_columns(X, self._kept)
        with named(self):
            self._table = self._linear = None
            if self.estimator is None:
                kinds = _closed([kinds[j] for j in self._kept], X)
                table = Table.learn(X, None, Need(bins=True), kinds, weights)
                self._table = table.with_bins(X, _left(table, X), weights)
                self._has_means = self._table.has_means(X)
        rows = X if self._table is None else self._table.encode(X)
        estimator = clone(self.estimator) if self._table is None else self._chosen(rows)
        if "random_state" in estimator.get_params():
            seed = check_random_state(self.random_state).randint(2**31)
            estimator.set_params(random_state=seed)
        self.estimator_, seconds = timed_fit(
            estimator, rows, None if sample_weight is None else weights
        )
        if self._table is not None and isinstance(self.estimator_, Network):
            n_values = self.estimator_.n_values_
            linear = LinearMeans(self._table, self._has_means & (n_values > 2), n_values)
            with named(self):
                self._linear = linear.fit(X, rows.astype(np.float64), weights)
        share = missing[:, self._kept].mean()
        figures = {"seconds": seconds, "rows": len(missing), "share of missing cells": share}
        self._tell(type(estimator).__name__, figures)
        return self

    def transform(self, X):
        """Fill missing cells.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        X : ndarray or data frame
            A copy without missing cells. Observed cells are unchanged.
        """
        X = some_columns(self._read(X), self._kept)
        missing = missing_cells(X)
        filled = self._filled(X, missing)
        if not self.add_indicator:
            return filled
        flags = missing[:, self._with_gaps]
        if not is_frame(filled):
            return np.hstack([filled, flags.astype(filled.dtype)])
        names = self.get_feature_names_out()[len(self._kept) :]
        return with_flags(filled, names, flags)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns of the result.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns, if `fit` saw no names.

        Returns
        -------
        names : ndarray of str
            Names of the kept columns and of the indicators.
        """
        check_is_fitted(self)
        names = np.array(self._input_names(input_features), dtype=object)[self._kept]
        if not self.add_indicator:
            return names
        return np.append(names, [f"missing_{name}" for name in names[self._with_gaps]])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _chosen(self, codes):
        """A density model for a table of codes."""
        n_values = np.maximum(self._table.n_categories, 0)
        bits = np.array([np.isin(column[~np.isnan(column)], (0, 1)).all() for column in codes.T])
        n_values[(n_values == 0) & bits] = 2
        return choose_density(n_values, self._table.is_ordered, len(codes), **draws_of(codes))

    def _filled(self, X, missing):
        if not missing.any():
            return with_columns(X, {}) if is_frame(X) else X.copy()
        if self._table is None:
            return self._in_blocks(_impute, X, self.how)
        with named(self):
            codes = self._table.encode(X, "missing")
        generator = check_random_state(self.random_state)
        if self.how == "sample" or not isinstance(self.estimator_, Network):
            filled, numbers = self._in_blocks(_impute, codes, self.how), {}
        else:
            filled, numbers = self._cell_by_cell(X, codes)
        drawn = np.random.default_rng(generator.randint(2**31)) if self.how == "sample" else None
        return self._table.fill(X, filled, missing, drawn, numbers)

    def _cell_by_cell(self, X, codes):
        """-> the most probable code of each cell, or the mean of a bit, and means of numbers."""
        p = self._in_blocks(_cell_probabilities, codes)
        shares = np.split(p, np.cumsum(self.estimator_.n_values_)[:-1], axis=1)
        filled, numbers = np.column_stack([own.argmax(axis=1) for own in shares]).astype(float), {}
        linear = {} if self._linear is None else self._linear.means(X, codes, shares)
        for j, column in enumerate(self._table.columns):
            if column.bins is None and (self.how == "mode" or not self._has_means[j]):
                continue
            values = _values(column, shares[j].shape[1])
            numbers[j] = shares[j][:, : len(values)] @ values
            if j in linear:  # on six tables, nearer than the nearer one of both, or nearly so
                numbers[j] = (numbers[j] + linear[j]) / 2
            if self.how == "mode" and column.bins.is_whole:
                numbers[j] = np.rint(numbers[j])
        return filled, numbers

    def _in_blocks(self, fill, rows, *options):
        """Rows that are filled in blocks, whatever the number of processes."""
        generator = check_random_state(self.random_state)
        blocks = row_blocks(len(rows), BLOCK_ROWS)
        tasks = [
            (self.estimator_, some_rows(rows, block), generator.randint(2**31), *options)
            for block in blocks
        ]
        return joined(in_parallel(fill, tasks, self.n_jobs))


def _left(table, X):
    """Which columns have neither levels nor bins nor bits: in arrays, these may be codes."""
    pairs = zip(table.columns, columns_of(X), strict=True)
    return np.array([
        column.categories is None and not are_bits(column.numbers(cells))
        for column, (_, cells) in pairs
    ])  # fmt: skip


def _values(column, n_values):
    """The numbers that the codes of a column stand for."""
    if column.bins is not None:
        return column.bins.means
    return np.arange(n_values) if column.categories is None else column.categories.astype(float)


def _impute(estimator, rows, seed, how):
    return estimator.impute(rows, how=how, random_state=seed)


def _cell_probabilities(network, codes, seed):
    return network._cell_probabilities(codes, MAX_STATES, N_STEPS, seed)


def _closed(kinds, X):
    """Kinds of columns where those are said that are certainly no numbers but levels.

    A single number has no variance. -1 beside 0 and 1 may be a code for a missing cell, of which
    there is a warning; or a level.
    """
    kinds = list(kinds)
    for j, (title, cells) in enumerate(columns_of(X)):
        if not kinds[j].is_open:
            continue
        values = cells[np.isfinite(cells)] if cells.dtype.kind in "iuf" else np.empty(0)
        values = set(np.unique(values).tolist())
        code = next((code for code in MISSING_CODES if values - {code} == {0, 1}), None)
        is_coded = code is not None and code in values
        if is_coded:
            warnings.warn(
                f"BoltzmannImputer: {title}: {looks_missing(code, values)}. If it is one, replace "
                "it by NaN.",
                stacklevel=find_stack_level(),
            )
        is_constant = len(values) == 1 and not values <= {0, 1}
        if is_coded or is_constant:
            kinds[j] = Kind("ordinal")
    return kinds
