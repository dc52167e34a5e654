"""BoltzmannImputer: fills missing cells of a table with a density model of its rows."""

from itertools import chain, count
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import named, unchanged_on_error, validate_arguments
from sklearn_boltz._warnings import told_once
from sklearn_boltz.meta._coding import smooth_table
from sklearn_boltz.meta._default import (
    COLUMNS,
    MOST_SAMPLED,
    OfTables,
    choose_density,
    needs_column_proba,
    seeded,
    timed_fit,
)
from sklearn_boltz.meta._few_numbers import FewNumbers
from sklearn_boltz.meta._linear import LinearMeans, numbers_of
from sklearn_boltz.meta._surprise import keys_of, table_of
from sklearn_boltz.networks._network import Network
from sklearn_boltz.numerics._bar import counted, progress_bar
from sklearn_boltz.numerics._random import fixed, make_generator
from sklearn_boltz.numerics._threads import (
    PROBABILITIES,
    Workers,
    blocks_of_narrow_rows,
    in_parallel,
    row_blocks,
)
from sklearn_boltz.tables._bins import quantile_places
from sklearn_boltz.tables._cells import (
    missing_cells,
    warn_of_pairs_apart,
)
from sklearn_boltz.tables._frames import (
    is_frame,
    joined,
    names_of,
    some_columns,
    some_rows,
    with_columns,
    with_flags,
)
from sklearn_boltz.tables._libraries import of_library
from sklearn_boltz.tables._sample import some_of_table
from sklearn_boltz.tables._values import as_objects

# Maximum number of joint states of connected missing cells of a row that are enumerated; for other
# rows, number of sweeps of Gibbs sampling. With more states, these take less time.
MAX_STATES, N_STEPS = 2**18, 200
MEDIAN = np.array([0.5])
# Number of rows that are filled together, each such block with random numbers of its own.
BLOCK_ROWS = 500


class BoltzmannImputer(TransformerMixin, OfTables, BaseEstimator):
    """Fill missing cells using their distribution given the observed cells of the row.

    A density model is fitted to all observed cells of the table, which may contain strings and
    numbers. Missing cells are then filled given the observed cells of their row. Cells are assumed
    to be missing at random [1]_: whether a cell is missing may depend only on observed cells.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with a method `impute`, such as
        :class:`~sklearn_boltz.FVBMPseudoLikelihood`. None means a network of all pairs of columns
        with an estimated penalty; above 2,048 values of all columns (of a number, 4 to 16), an RBM.
        Whole numbers with at most 20 different values are levels; other numbers, and dates, are in
        bins. Couplings are smooth functions of the order of levels and of bins. The mean of a
        number is that of the network and that of a linear regression on the other cells of its row,
        which follows order inside bins, with the inverse variances of both as weights. A
        :class:`~sklearn.frozen.FrozenEstimator` is taken as it is fitted.

    columns : str, list or dict, default="auto"
        The kind of each column in the default model: ``"binary"``, ``"nominal"``, ``"ordinal"``,
        ``"cyclic"``, ``"count"``, ``"number"`` (an alias of ``"binned"``) or the list of its
        values; see :ref:`kinds`. A string is the kind of all columns, a dict names some, and a list
        has an entry for each. ``"auto"`` looks at the table. If you pass an `estimator`, set its
        own `columns` instead.

    how : {"auto", "mode", "median", "mean", "sample"}, default="auto"
        What is filled, from the distribution of a missing cell. ``"auto"``: the most probable value
        of strings and flags, which is most often correct; the median of levels, counts and ordered
        categories, which is one of their values, and nearly as often correct but seldom far off;
        and the mean of numbers in bins, unless the column has few different ones, such as 0, 0.5
        and 2.5: then one of these. ``"mode"`` fills the most probable value of levels, too, and
        ``"median"`` the median of numbers. ``"mean"`` fills means of all numbers; strings and
        declared levels get their mode. What is filled has the decimals of its column, or is a
        multiple as all its cells are; only means of whole numbers have fractions with ``"mean"``.
        ``"sample"`` draws from the joint distribution of the missing cells of a row. An RBM, and a
        given `estimator`, have ``"mode"``, the most probable joint state of the missing cells,
        ``"mean"`` and ``"sample"``; ``"auto"`` is ``"mode"`` there.

    add_indicator : bool, default=False
        Whether to append indicator columns: one for each column with missing cells in `fit`, also
        for one without any other, which marks its missing cells. That of `age` is called
        ``missing_age``, or ``missing_2_age`` if the table has such a column.

    n_jobs : int, default=None
        How many blocks of rows `transform` fills at the same time; -1 means all processors. The
        default model works in threads, and None means as many as BLAS has. A given `estimator`
        works in processes of joblib, and None means 1, unless in a context of
        :class:`joblib.parallel_config`. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the fit and for draws. With None, fits of the same table
        agree, and modes, means and probabilities of cells are the same in each call; only
        ``how="sample"`` and `multiple_imputations` draw anew.

    verbose : int, default=0
        If positive, print the time of the fit, and the share of the cells that are missing, and
        show a bar of what takes more than two seconds, with the time left where it is known.

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
    FVBMPseudoLikelihood : The network that is the default for strings and levels.
    sklearn.impute.IterativeImputer : Repeated regressions, for numbers.

    Notes
    -----
    `transform` leaves out columns without an observed cell in `fit`, like scikit-learn's imputers.
    Of a table with more than four million cells, the default model learns the values of the columns
    from all rows, and all else from rows with as many cells, drawn at random.
    In the default model, a string or level that did not occur in `fit` is left unchanged and is not
    used to fill other cells. A given `estimator` gets the table unchanged. Rows without missing
    cells are returned unchanged.

    In a pipeline, encode the strings after the imputer and leave numbers as they are, with a
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
        "how": [StrOptions({"auto", "mode", "median", "mean", "sample"})],
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
        how="auto",
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
        X : array-like, data frame, or batches, of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells. Of
            :class:`~sklearn_boltz.batches.Batches` and Dask collections, all rows are used up to
            four million cells, and otherwise rows with as many, drawn at random.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`. Batches take none.

        Returns
        -------
        self : BoltzmannImputer
            The fitted imputer.

        Raises
        ------
        ValueError
            If all cells are missing, if a number is infinite, if a column holds times of day, or if
            `how` is ``"median"`` and the density is not the default network.

        Warns
        -----
        UserWarning
            If a column has no observed cell; if the model is a network and no row has both of two
            columns, as in surveys with split ballots.
        """
        with unchanged_on_error(self):
            return self._fit(X, sample_weight)

    def _fit(self, X, sample_weight):
        """Fit what the attributes need, and set them."""
        batches = self._batches(X, sample_weight)
        X = X if batches is None else self._sampled(batches)[0]
        _, X, weights = self._counted(self._read(X, reset=True), sample_weight)
        kinds, missing = self._declared(), missing_cells(X)
        knows_all = isinstance(self.estimator, FrozenEstimator)
        self._kept = np.arange(X.shape[1]) if knows_all else self._observed(missing)
        self._with_gaps = np.flatnonzero(missing.any(axis=0))
        self._encoder, self._linear, estimator = None, None, self.estimator
        if estimator is None:
            self._encoder = self._learned(smooth_table, X, weights, kinds)
            X, weights = some_of_table(X, weights, MOST_SAMPLED)
            estimator = choose_density(self._encoder, len(X), verbose=self.verbose)
            self._dtype = np.float32 if isinstance(estimator, Network) else np.float64
        self._fills_cells(estimator, self.how)
        estimator = seeded(estimator, check_random_state(fixed(self.random_state)))
        own_weights, self._reader = None if sample_weight is None else weights, None
        if self._encoder is None:
            X = some_columns(X, self._kept)
            self._reader, rows = self._read_by(estimator, X, own_weights)
        else:
            rows = self._rows(X)
        self.estimator_, seconds = timed_fit(estimator, rows, own_weights)
        if isinstance(self.estimator_, Network):
            warn_of_pairs_apart(~missing, self._column, type(self).__name__)
        if self._fills_cells(self.estimator_):
            n_values = self.estimator_.n_values_
            with named(self):
                linear = LinearMeans(self._encoder.has_means & (n_values > 2), n_values)
                self._linear = linear.fit(rows, weights)
                self._few = FewNumbers(rows, weights)
        share = missing[:, self._kept].mean()
        figures = {"seconds": seconds, "rows": len(missing), "share of missing cells": share}
        self._tell(type(estimator).__name__, figures)
        return self

    @told_once
    def transform(self, X):
        """Fill missing cells.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        X : ndarray or data frame
            A copy without missing cells. Observed cells are unchanged, in any container.
        """
        filled = self._completed(X, self.how, 1)[0]
        library = _get_output_config("transform", self)["dense"]
        return (
            filled if library == "default" or not is_frame(filled) else of_library(filled, library)
        )

    @validate_arguments({"n_imputations": [Interval(Integral, 1, None, closed="left")]})
    @told_once
    def multiple_imputations(self, X, n_imputations=5):
        """Draw several complete tables for multiple imputation, whatever `how` is.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.
        n_imputations : int, default=5
            The number of tables.

        Returns
        -------
        tables : list of ndarray or data frame
            Tables like those of `transform` with ``how="sample"``, drawn independently of each
            other. They are the same in each call if `random_state` is an integer.

        Notes
        -----
        All tables are drawn from the one fitted model, so their differences do not contain its
        own uncertainty: Rubin calls such imputations improper [1]_. For proper ones, draw each
        table from a model of bootstrap rows, see :ref:`multiple_imputation`.

        References
        ----------
        .. [1] D. B. Rubin, "Multiple Imputation for Nonresponse in Surveys", Wiley, 1987.
           https://doi.org/10.1002/9780470316696

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_boltz import BoltzmannImputer
        >>> X = np.array([["yes", "left"], ["no", "right"], ["yes", "right"], ["yes", None]] * 20)
        >>> tables = BoltzmannImputer(random_state=0).fit(X).multiple_imputations(X, 3)
        >>> [int((table[:, 1] == "left").sum()) for table in tables]
        [28, 32, 28]
        """
        return self._completed(X, "sample", n_imputations)

    @needs_column_proba
    @told_once
    def predict_cell_proba(self, X):
        """Return the probabilities of the values of each missing cell, given its row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        found : dict of Bunch
            An entry for each column with missing cells in `X`, by its label, or by its number if
            the table of `fit` was an array:

            rows : ndarray of int of shape (n_missing,)
                The positions of the rows in which the cell is missing.
            probabilities : ndarray of float64 of shape (n_missing, n_values)
                p(value | the observed cells of the row), other missing cells summed out.
            categories : ndarray of shape (n_values,) or None
                The values in their order, or the names of the bins of a number. None for numbers
                that stand for themselves in a given `estimator`, such as 0 and 1.
            ends : ndarray of shape (n_values, 2) or None
                For a number in bins, the smallest and largest number of each bin in `fit`.

        Raises
        ------
        AttributeError
            If a given `estimator` has no `predict_column_proba`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_boltz import BoltzmannImputer
        >>> X = pd.DataFrame({"sky": ["sun", "rain", "sun", "sun"] * 20,
        ...                   "coat": ["no", "yes", "no", "yes"] * 20})
        >>> gaps = pd.DataFrame({"sky": ["rain", "sun"], "coat": [None, None]})
        >>> found = BoltzmannImputer().fit(X).predict_cell_proba(gaps)["coat"]
        >>> pd.DataFrame(found.probabilities, found.rows, found.categories).round(2)
             no   yes
        0  0.02  0.98
        1  0.66  0.34
        """
        X = some_columns(self._read(X), self._kept)
        missing, generator = missing_cells(X), self._generator("mean")
        rows = {j: np.flatnonzero(missing[:, j]) for j in np.flatnonzero(missing.any(axis=0))}
        coded = self._rows(X)
        if self._fills_cells(self.estimator_):
            p = self._missing_proba(coded.codes, missing, generator)
        else:
            p = {j: self._column_proba(coded.some(own), j, generator) for j, own in rows.items()}
        keys = self._keys()
        return {
            keys[self._kept[j]]: Bunch(rows=own, **self._described(p[j], j))
            for j, own in rows.items()
        }

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
        names = self._labels_out(self._input_names(input_features))
        # pandas has any labels, and others names only.
        is_pandas = _get_output_config("transform", self)["dense"] == "pandas"
        return as_objects(names if is_pandas else list(map(str, names)))

    def _labels_out(self, labels):
        """Labels of the columns of the result, from those of a table."""
        kept = [labels[j] for j in self._kept]
        if self.add_indicator:
            for j in self._with_gaps:
                kept.append(_label_of_flags(labels[j], {*labels, *kept}))
        return kept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _generator(self, how):
        """The source of randomness: probabilities are the same in each call, unlike draws."""
        seed = self.random_state if how == "sample" else fixed(self.random_state)
        return check_random_state(seed)

    def _completed(self, X, how, n_tables):
        """Tables without missing cells, with indicators if these are wanted."""
        X = self._read(X)
        missing, generator = missing_cells(X), self._generator(how)
        flags = missing[:, self._with_gaps]
        labels = names_of(X) if is_frame(X) else None
        X, missing = some_columns(X, self._kept), missing[:, self._kept]
        tables = [self._filled(X, missing, how, generator) for _ in range(n_tables)]
        if not self.add_indicator:
            return tables
        if labels is None:
            return [np.hstack([filled, flags.astype(filled.dtype)]) for filled in tables]
        names = self._labels_out(labels)[len(self._kept) :]
        return [with_flags(filled, names, flags) for filled in tables]

    def _filled(self, X, missing, how, generator):
        if not missing.any():
            return with_columns(X, {}) if is_frame(X) else X.copy()
        fills_cells = self._fills_cells(self.estimator_, how)
        how = "mode" if not fills_cells and how == "auto" else how
        if self._encoder is None:
            return self._by_estimator(X, generator, how)
        whole, numbers = self._rows(X), {}
        is_joint = how == "sample" or not fills_cells
        filled = np.zeros(whole.codes.shape, whole.codes.dtype)

        def fill(rows, seed):
            if is_joint:
                filled[rows] = _impute(self.estimator_, whole.codes[rows], seed, how)
                return
            filled[rows], of_numbers = self._cell_by_cell(whole.some(rows), how, seed)
            for j, own in of_numbers.items():
                numbers[j][rows] = own

        if not is_joint:
            for j in np.flatnonzero(self._has_numbers(how) & missing.any(axis=0)):
                numbers[j] = np.full(len(filled), np.nan)
        self._in_blocks(fill, missing, generator)
        drawn = np.random.default_rng(generator.randint(2**31)) if how == "sample" else None
        return self._encoder.fill(X, filled, missing, drawn, numbers)

    def _fills_cells(self, density, how=None):
        """Whether a density fills each cell by itself, as the default network does."""
        found = self._encoder is not None and isinstance(density, Network)
        if how == "median" and not found:
            raise ValueError(
                "BoltzmannImputer: how='median' is for the network that is the default, and "
                f"{type(density).__name__} fills joint states. Use how='mean'."
            )
        return found

    def _has_numbers(self, how):
        """Columns for which `_cell_by_cell` finds numbers instead of codes."""
        return self._encoder.is_binned | (self._encoder.has_means & (how == "mean"))

    def _cell_by_cell(self, rows, how, seed):
        """-> the code of each cell, or the mean of a bit, and numbers in bins, or means of all."""
        shares, has_numbers = self._shares(rows.codes, seed), self._has_numbers(how)
        filled, numbers = np.column_stack([own.argmax(axis=1) for own in shares]), {}
        if how in ("auto", "median"):
            for j in np.flatnonzero(self._encoder.is_ordered & ~has_numbers):
                filled[:, j] = quantile_places(shares[j], MEDIAN)[0][:, 0]
        linear = {} if self._linear is None else self._linear.means(rows, shares)
        for j in np.flatnonzero(has_numbers & np.isnan(rows.codes).any(axis=0)):
            column = self._encoder.columns[j]
            if how != "mean" and j in self._few.columns:
                numbers[j] = self._few.fill(rows, j, shares[j])
                continue
            values = numbers_of(column, shares[j].shape[1])
            means = numbers[j] = shares[j][:, : len(values)] @ values
            if how == "median":
                numbers[j] = column.bins.quantiles(shares[j], MEDIAN)[:, 0]
            if j in linear:
                others, weights = linear[j]
                numbers[j] = numbers[j] + weights * (others - means)
            if how != "mean" and column.bins.is_whole:
                numbers[j] = np.rint(numbers[j])
        return filled, numbers

    def _shares(self, codes, seed):
        """The probabilities of the codes of missing cells, an array for each column."""
        model, codes = self.estimator_._model(), self.estimator_._codes(codes)
        p = model.cell_probabilities(codes, MAX_STATES, N_STEPS, make_generator(seed))
        return np.split(p, np.cumsum(self.estimator_.n_values_)[:-1], axis=1)

    def _missing_proba(self, codes, missing, generator):
        """The probabilities of the codes of the missing cells, by columns."""
        n_values = self.estimator_.n_values_
        found = {j: np.empty((missing[:, j].sum(), n_values[j])) for j in range(len(n_values))}
        before = np.cumsum(missing, axis=0) - missing

        def fill(rows, seed):
            for j, shares in enumerate(self._shares(codes[rows], seed)):
                own = missing[rows, j]
                found[j][before[rows[own], j]] = shares[own]

        self._in_blocks(fill, missing, generator)
        return found

    def _column_proba(self, rows, j, generator):
        """Probabilities of one column, by densities other than networks of codes."""
        key, seed = keys_of(self.estimator_, rows.X)[j], generator.randint(2**31)
        return self.estimator_.predict_column_proba(rows.taken, key, random_state=seed)

    def _described(self, p, j):
        """Probabilities of a column, and of what they are."""
        table, categories, ends = self._encoder or table_of(self.estimator_), None, None
        if table is not None and table.is_word[j]:
            column = table.columns[j]
            categories, bins = column.values, column.all_bins
            ends = bins and column.back(bins.values[:, [0, -1]])
            p = p[:, : len(categories)]  # a constant column has two values in the model
            p = p / p.sum(axis=1, keepdims=True)
        return {"probabilities": p, "categories": categories, "ends": ends}

    def _in_blocks(self, fill, missing, generator):
        """Fill the rows with missing cells in blocks, in threads; each block has a seed."""
        rows = np.flatnonzero(missing.any(axis=1))
        if not len(rows):
            return
        blocks = row_blocks(len(rows), BLOCK_ROWS)
        if isinstance(self.estimator_, Network):
            n_states = sum(self.estimator_.n_values_)
            blocks = blocks_of_narrow_rows(len(rows), n_states, PROBABILITIES)
        blocks = [(rows[block], generator.randint(2**31)) for block in blocks]
        bar = progress_bar("rows", len(blocks), self.verbose)
        with Workers(self.n_jobs) as workers, bar:
            workers.map(counted(lambda block: fill(*block), bar), blocks, np.inf)

    def _by_estimator(self, X, generator, how):
        """Rows that a given estimator fills in blocks, whatever the number of processes."""
        blocks = row_blocks(len(X), BLOCK_ROWS)
        parts = (some_rows(X, block) for block in blocks)
        tasks = ((self.estimator_, part, generator.randint(2**31), how) for part in parts)
        bar = progress_bar("rows", len(blocks), self.verbose)
        return joined(in_parallel(_impute, tasks, self.n_jobs, bar))


def _label_of_flags(label, taken):
    """Label of the flags of a column: another one than all that are taken."""
    first, rest = (label[0], label[1:]) if isinstance(label, tuple) else (label, None)
    for prefix in chain(["missing_"], (f"missing_{k}_" for k in count(2))):
        name = f"{prefix}{first}"
        found = name if rest is None else (name, *rest)
        if found not in taken:
            return found


def _impute(estimator, rows, seed, how):
    return estimator.impute(rows, how=how, random_state=seed)
