"""BoltzmannOutlierDetector: rows that are improbable under a density model."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import has_fit_parameter

from sklearn_boltz._methods import named, unchanged_on_error
from sklearn_boltz._warnings import told_once
from sklearn_boltz.meta._coding import coded_table, mean_log_density
from sklearn_boltz.meta._completed import completed_log_weights, left_out, quantile
from sklearn_boltz.meta._default import (
    COLUMNS,
    OfTables,
    choose_density,
    is_auto,
    n_codes,
    needs_column_proba,
    seeded,
    timed_fit,
    with_codes,
)
from sklearn_boltz.meta._surprise import surprises, table_of
from sklearn_boltz.networks._network import Network
from sklearn_boltz.networks.model._incomplete import expected_log_weights
from sklearn_boltz.numerics._bar import counted, progress_bar
from sklearn_boltz.numerics._random import fixed
from sklearn_boltz.numerics._threads import (
    PROBABILITIES,
    Workers,
    blocks_of_narrow_rows,
    in_parallel,
)
from sklearn_boltz.restricted._boltzmann_machine import BaseBoltzmannMachine
from sklearn_boltz.tables._cells import missing_cells
from sklearn_boltz.tables._coded import Coded
from sklearn_boltz.tables._counts import of_batch
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.tables._frames import is_frame, of_numbers, some_rows

# Transitions of an RBM for a completion of a row with too many joint states.
N_STEPS = 100
# Tukey's fence: an outlier is this many interquartile ranges below the first quartile; and the
# share of rows that may be below: of few different rows, Tukey's would have a sixth, or all.
FENCE, FEW = 1.5, 0.05
# What rounding makes of equal scores, in ratio to these.
ROUNDING = 1e-9
# Number of folds of the held-out scores. The scores of the training rows are too high: with
# them, a fifth of new rows would be outliers, or most of 100 rows of 30 columns. With few rows,
# densities of two thirds of them are worse than that of all, so that there are more folds if a
# share of outliers is asked for: for 3,000 rows in all.
N_FOLDS, MAX_FOLDS, N_FOLDED = 3, 10, 3000


class BoltzmannOutlierDetector(OutlierMixin, OfTables, BaseEstimator):
    """Detect outliers: rows that are improbable under a density model of the data.

    Columns may contain strings, levels and numbers, and cells may be missing. An outlier is a row
    with a low log-probability. It may have a rare value, or values that rarely occur together.
    Fitted to rows without outliers, the detector finds novelties among new rows;
    :meth:`fit_predict` finds outliers among the training rows.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with `score_samples` or `free_energy`. Missing cells are completed by its
        method `impute`; without that method, the score is the log-probability of the observed
        cells. None means a network of all pairs of columns
        (:class:`~sklearn_boltz.FVBMPseudoLikelihood`); above 2,048 values of all columns (of a
        number, 4 to 16), an RBM. By default, strings are modelled as they are, and so are columns
        of numbers with at most 8 different values. Other columns of numbers, and dates, are put
        into 8 bins between quantiles, with a histogram inside of each and heavy tails.

    columns : str, list or dict, default="auto"
        The kind of each column in the default model: ``"binary"``, ``"nominal"``, ``"ordinal"``,
        ``"cyclic"``, ``"count"``, ``"number"`` (an alias of ``"binned"``) or the list of its
        values; see :ref:`kinds`. A string is the kind of all columns, a dict names some, and a list
        has an entry for each. ``"auto"`` looks at the table. If you pass an `estimator`, set its
        own `columns` instead.

    contamination : "auto" or float, default="auto"
        Expected proportion of outliers, above 0 and at most 0.5. It determines `offset_`: rows are
        scored by densities of the other folds, and this share of them lies below the offset, and
        so about this share of new rows of the same kind. There are ten folds up to 300 rows, and
        three from 1,000 rows on. With ``"auto"``, a row is an outlier if its score is more than 1.5
        interquartile ranges below the first quartile of the held-out scores of three folds (Tukey's
        fence [1]_), and below those of 95 % of the rows. For Gaussian scores, 0.35 % of the rows
        are outliers.

    n_jobs : int, default=None
        How many densities, that of all rows and those without a fold, are fitted at the same time,
        in processes of joblib. None means 1, unless in a context of
        :class:`joblib.parallel_config`; -1 means all processors. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the folds, for the fit of `estimator` if it is random, and for
        its completions of rows with missing cells: each call of `score_samples` draws the same
        completions of a row, whatever the other rows are. With the default network, only the folds
        are random. With None, fits of the same table agree, as with 0.

    verbose : int, default=0
        If positive, print the time of each fit, with the mean of the held-out scores, and the
        share of the rows that are outliers, and show a bar of what takes more than two seconds,
        with the time left where it is known.

    Attributes
    ----------
    estimator_ : estimator
        The fitted density model.

    offset_ : float
        Score below which a row is an outlier: ``decision_function(X)`` is
        ``score_samples(X) - offset_``.

    held_out_scores_ : ndarray of float64 of shape (n_samples,)
        Score of each row of `fit` by a density that is fitted without it, with which
        :meth:`fit_predict` finds outliers. `score_samples` gives rows of `fit` higher scores.
        Rows of batches that `fit` did not use have those of `score_samples`.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    sklearn.ensemble.IsolationForest : Isolates rows by random splits.
    BoltzmannClassifier : Classifies rows; its `score_samples` detects rows unlike all classes.

    Notes
    -----
    The log-probability ln p(x_o) of the observed cells of a row increases when cells are removed,
    for outliers and for other rows. It cannot be compared between rows with different missing
    cells. The score of an incomplete row is therefore the mean score of its completions, E[ln
    p(x_o, x_m) | x_o]. Under the model, its expectation is the same for all sets of missing cells
    if cells are missing at random. In networks, the mean is exact up to 2**20 joint states of the
    missing cells of a row, and otherwise that of 10 chains with fixed seeds. Other models, and
    networks with normal scores of numbers, average 10 draws, whose seed is the content of the row
    and `random_state`, so that equal rows have equal scores.

    If a column has more than two values, the default network is fitted to the observed cells alone,
    without completing rows.

    The default model leaves out columns without an observed cell in `fit`. A string that did not
    occur in `fit` is treated as a missing cell, and so is a new number in a column with at most 8
    different values. Each lowers the score by the logarithm of n + 1 for n training rows. A given
    `estimator` gets the table unchanged.

    For novelties that differ in many columns at once, such as images, an RBM often detects more
    than the network; see :doc:`/user_guide/outliers`.

    References
    ----------
    .. [1] J. W. Tukey, "Exploratory Data Analysis",
       Addison-Wesley, 1977.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import BoltzmannOutlierDetector
    >>> X = [["lion", "savanna"], ["seal", "sea"], ["lion", "savanna"], ["whale", "sea"]] * 20
    >>> detector = BoltzmannOutlierDetector().fit(X)
    >>> detector.predict([["seal", "sea"], ["lion", "sea"], ["lion", None]])
    array([ 1, -1,  1])
    """

    _parameter_constraints = {
        "estimator": [
            HasMethods(["fit", "score_samples"]),
            HasMethods(["fit", "free_energy"]),
            None,
        ],
        "columns": COLUMNS,
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        columns="auto",
        contamination="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.columns = columns
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the density model and the offset.

        Parameters
        ----------
        X : array-like, data frame, or batches, of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells. Of
            :class:`~sklearn_boltz.batches.Batches` and Dask collections, densities are fitted to
            all rows up to four million cells, and otherwise to rows with as many, drawn at random;
            the others are then scored in one more pass.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`. Batches take none. An `estimator` whose `fit` has no
            `sample_weight` is fitted without weights.

        Returns
        -------
        self : BoltzmannOutlierDetector
            The fitted detector.

        Raises
        ------
        ValueError
            If all cells are missing, or if a number is infinite.
        """
        with unchanged_on_error(self):
            return self._fit(X, sample_weight)

    def _fit(self, X, sample_weight):
        """Fit what the attributes need, and set them."""
        batches = self._batches(X, sample_weight)
        if batches is not None:
            X, rows, n_rows = self._sampled(batches)
            self._fit(X, None)
            self.held_out_scores_ = self._with_other_rows(rows, n_rows, batches)
            return self
        X = self._read(X, reset=True)
        whole, (kept, X, weights) = X, self._counted(X, sample_weight)
        generator = check_random_state(fixed(self.random_state))
        self._seed = generator.randint(2**31)
        self._n_rows, is_weighted = float(weights.sum()), sample_weight is not None
        density, rows = self._unfitted(X, weights, is_weighted)
        density = seeded(density, generator)
        folds = self._folds(rows, weights, generator)
        of_fold, rows_of_fold = self._of_folds(density, rows)
        tasks = [(density, rows, weights, slice(None), is_weighted)]
        tasks += [(of_fold, rows_of_fold, left, held, True) for left, held in folds]
        first, *others = in_parallel(self._fit_density, tasks, self.n_jobs)
        self.estimator_, self._mean, fitted, seconds = first
        if rows.table is None:
            self._table = table_of(self.estimator_) or self._table
        self._tell("density of all rows", {"seconds": seconds, "rows": len(fitted)})
        scores = fitted.copy()
        for k, ((_, held), found) in enumerate(zip(folds, others, strict=True)):
            scores[held] = found[2]
            own = np.average(scores[held], weights=weights[held])
            figures = {"seconds": found[3], "held-out rows": len(held), "mean score": own}
            self._tell(f"density without part {k + 1}", figures)
        self.offset_ = self._offset(scores, fitted, weights, len(folds))
        share = np.average(scores < self.offset_, weights=weights)
        self._tell("offset", {"score": self.offset_, "share of outliers": share})
        self.held_out_scores_ = np.empty(len(whole))
        self.held_out_scores_[kept] = scores
        others = np.setdiff1d(np.arange(len(whole)), kept)
        if len(others):  # rows without weight are new
            self.held_out_scores_[others] = self.score_samples(some_rows(whole, others))
        return self

    def _with_other_rows(self, rows, n_rows, batches):
        """The held-out scores of some rows of batches, and scores of the others."""
        scores, own = np.empty(n_rows), np.zeros(n_rows, dtype=bool)
        scores[rows], own[rows] = self.held_out_scores_, True
        if own.all():
            return scores
        first = 0
        for rows in map(of_batch, batches):
            others = np.flatnonzero(~own[first : first + rows.shape[0]])
            if len(others):
                scores[first + others] = self.score_samples(some_rows(rows, others))
            first += rows.shape[0]
        return scores

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit the density model, and find outliers among the training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None means once.

        Returns
        -------
        inlier : ndarray of int of shape (n_samples,)
            -1 for rows whose held-out score is below the offset, 1 for all other rows. ``predict``
            after ``fit`` finds fewer of these rows, whose scores are too high because the density
            was fitted to them.
        """
        self.fit(X, sample_weight=sample_weight)
        return np.where(self.held_out_scores_ < self.offset_, -1, 1)

    @told_once
    def score_samples(self, X):
        """Return the log-probability of each row, relative to the rows of `fit`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        scores : ndarray of float64 of shape (n_samples,)
            Log-probability ln p(x) minus its mean over the rows of `fit`, in nats. Missing cells
            are completed, see the notes of the class. Outliers have low scores.
        """
        rows = self._rows(self._read(X))
        return self._log_weights(self.estimator_, rows) - self._mean

    def decision_function(self, X):
        """Return the score of each row minus `offset_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        decision : ndarray of float64 of shape (n_samples,)
            ``score_samples(X) - offset_``, negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """Predict whether each row is an outlier.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        inlier : ndarray of int of shape (n_samples,)
            -1 for outliers, 1 for all other rows.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @needs_column_proba
    @told_once
    def explain(self, X):
        """Return how surprising each cell is, given the other cells of its row.

        Wrong cells of the rows of `fit` are less surprising, since the model has learned from them:
        :doc:`/user_guide/outliers` explains such rows by a model of other rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        surprise : ndarray or data frame of float64 of shape (n_samples, n_features)
            -ln p(cell | the other observed cells), in nats, at least 0; a data frame if `X` is one.
            NaN for missing cells. For a number in bins, p is the probability of its bin. Where its
            density is below the (geometric) mean of the bin, as it is far outside the numbers of
            `fit`, p is smaller in the same ratio. The unit of a column therefore does not matter. A
            value that did not occur in `fit` has p = 1/(n + 1), for n training rows, and counts
            as missing for the other cells of its row.

        Raises
        ------
        AttributeError
            If a given `estimator` has no `predict_column_proba`.
        ValueError
            If a given `estimator` models a column as continuous, such as an RBM with Gaussian
            units.

        Examples
        --------
        A whale that lives on land: the place does not fit the other cells.

        >>> import pandas as pd
        >>> from sklearn_boltz import BoltzmannOutlierDetector
        >>> animals = pd.DataFrame({"name": ["lion", "whale", "gnu"], "eats": ["meat", "krill",
        ...     "grass"], "place": ["land", "sea", "land"]})
        >>> X = animals.sample(300, replace=True, random_state=0)
        >>> new = pd.DataFrame({"name": ["whale"], "eats": ["krill"], "place": ["land"]})
        >>> BoltzmannOutlierDetector().fit(X).explain(new).round(1)
           name  eats  place
        0   0.3   0.3    5.2
        """
        X = self._read(X)
        rows, found = self._rows(X), np.full(X.shape, np.nan)
        taken = rows.taken
        with named(self):
            if rows.table is None:
                rows = Coded(self._table, X, self._table.encode(X, "missing"))
            own = surprises(self.estimator_, rows, taken)
        unseen = np.isnan(own) & ~missing_cells(rows.X)
        found[:, self._kept] = np.where(unseen, np.log(self._n_rows + 1), own)
        return of_numbers(X, found) if is_frame(X) else found

    def _unfitted(self, X, weights, is_weighted):
        """-> a density model, and the rows as it takes them."""
        kinds, self._encoder, self._reader = self._declared(), None, None
        if self.estimator is not None:
            self._kept = np.arange(X.shape[1])
            weights = weights if is_weighted else None
            self._reader, rows = self._read_by(self.estimator, X, weights)
            if self._reader is None:
                with named(self):
                    self._table = Encoder.learn(X)
            return clone(self.estimator), rows
        self._kept = self._observed(missing_cells(X))
        self._encoder = self._learned(coded_table, X, weights, kinds)
        # Outliers of tables with gaps rank no lower than with completed rows, and fits are faster.
        missing = "observed" if self._encoder.n_categories.max() > 2 else "em"
        density = choose_density(self._encoder, len(X), verbose=self.verbose, missing=missing)
        self._dtype = np.float32 if isinstance(density, Network) else np.float64
        return density, self._rows(X)

    def _log_weights(self, density, rows):
        """ln p(x) of each row with its missing cells completed, plus a constant."""
        if isinstance(density, Network) and density._gaussians is None:
            return self._expected_log_weights(density, rows)
        if not rows.of_codes:
            return completed_log_weights(density, rows.taken, self._seed)
        unseen = rows.log_unseen(self._n_rows)

        def rest(places, codes):
            return rows.some(places).log_density(codes)

        options = {"rest": rest, "n_steps": N_STEPS}
        return completed_log_weights(density, rows.codes, self._seed, **options) + unseen

    def _expected_log_weights(self, density, rows):
        """Score blocks of rows by a network, in threads."""
        n_values = density.n_values_

        def of_block(block):
            part = rows.some(block)
            result, p = expected_log_weights(density._model(), density._codes(part.taken))
            shares = np.split(p, np.cumsum(n_values)[:-1], axis=1)
            if not part.of_codes:
                codes = density._known_cells(part.taken)
                result = density._with_cells(part.taken, codes, result)
                return result + mean_log_density(density._encoder, codes, shares)
            result += part.log_density() + mean_log_density(part.table, part.codes, shares)
            return result + part.log_unseen(self._n_rows)

        blocks = blocks_of_narrow_rows(rows.X.shape[0], n_values.sum(), PROBABILITIES)
        bar = progress_bar("scores", len(blocks), self.verbose)
        with Workers() as workers, bar:
            return np.concatenate(workers.map(counted(of_block, bar), blocks, np.inf))

    def _folds(self, rows, weights, generator):
        """The weights of the rows without each fold, and the places of the fold."""
        codes = rows.codes
        if rows.table is None:
            codes = self._table.encode(rows.X, "missing")
        elif rows.is_own:  # different numbers are different rows
            codes = codes.astype(np.float64)
            for j, own in rows.numbers(np.flatnonzero(rows.table.is_number)).items():
                codes[:, j] = own
        n_folds = N_FOLDS
        if self.contamination != "auto":
            n_folds = int(np.clip(N_FOLDED // weights.sum(), N_FOLDS, MAX_FOLDS))
        return list(left_out(codes, weights, n_folds, generator))

    def _of_folds(self, density, rows):
        """A density that knows the codes of an array which some folds are without, and its rows."""
        X = rows.X
        knows = rows.of_codes or isinstance(density, BaseBoltzmannMachine)
        are_numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        if knows or not are_numbers or not is_auto(density.get_params().get("columns")):
            return density, rows
        n_values = [n_codes(column) for column in X.T.astype(np.float64)]
        if not all(n_values):
            return density, rows
        density = with_codes(density, n_values)
        return density, self._read_by(density, X, None)[1]

    def _fit_density(self, density, rows, weights, held, is_weighted):
        """-> a fitted clone, the mean of ln p over its rows, held-out scores, and seconds."""
        kept = np.flatnonzero(weights)
        is_frozen = isinstance(density, FrozenEstimator)
        if weights.sum() < self._n_rows and rows.table is not None and not is_frozen:
            # By bins that end at the numbers of held-out rows, these would look too likely.
            part, left = rows.some(kept), weights[kept]
            table = part.own_table(left) if rows.is_own else part.table.with_bins_of(part.X, left)
            rows = rows.by(table)
        is_weighted = is_weighted and has_fit_parameter(density, "sample_weight")
        own, own_weights = rows.some(kept), weights[kept] if is_weighted else None
        fitted, seconds = timed_fit(density, own, own_weights)
        # ln Z is the same for all rows, so only differences matter.
        scores = self._log_weights(fitted, rows)
        mean = float(np.average(scores, weights=weights))
        return fitted, mean, scores[held] - mean, seconds

    def _offset(self, scores, fitted, weights, n_folds):
        """The share of held-out scores that is asked for, or Tukey's fence with a small share.

        `fitted` are the scores of the same rows by the density of all.
        """
        is_auto = self.contamination == "auto"
        if is_auto and not n_folds:  # a single row
            return -np.inf
        share = FEW if is_auto else self.contamination
        offset = quantile(scores, weights, share)
        if is_auto:
            first, third = (quantile(scores, weights, q) for q in (0.25, 0.75))
            offset = min(first - FENCE * (third - first), offset)
        # Of many equal rows, held-out scores are not the score that `predict` gives to all of them.
        offset = min(offset, quantile(fitted, weights, share))
        # Of rows that are all alike, none is an outlier by the rounding of its score.
        return offset - ROUNDING * max(1.0, abs(offset))
