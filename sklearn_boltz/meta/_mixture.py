"""BoltzmannMixture: several densities of the same rows, mixed by weights."""

from functools import partial
from inspect import signature
from numbers import Integral, Real

import numpy as np
from scipy.special import logsumexp
from sklearn.base import (
    DensityMixin,
    _fit_context,
    clone,
    is_classifier,
    is_outlier_detector,
    is_regressor,
)
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sklearn_boltz._estimator import named, unchanged_on_error, validate_arguments
from sklearn_boltz._warnings import told_once
from sklearn_boltz.meta._default import OfTables, is_auto, timed_fit
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.tables._answers import Answers
from sklearn_boltz.tables._cells import MOST_LEVELS, is_whole, missing_cells
from sklearn_boltz.tables._frames import is_frame, joined, some_rows
from sklearn_boltz.tables._kinds import OF_NUMBERS
from sklearn_boltz.tables._table import Table, without_columns
from sklearn_boltz.tables._weights import mean_of_rows
from sklearn_boltz.tables._where import rows_where

# How far the weights may be from the best, in nats of the mean log-likelihood.
TOL = 1e-5


class BoltzmannMixture(DensityMixin, Answers, OfTables, _BaseComposition):
    """Mix several densities of the same rows, weighted to fit held-out rows best.

    With densities p_k(x) and weights w_k ≥ 0, whose sum is 1,

        p(x) = Σ_k w_k p_k(x).

    The mixture is normalised as exactly as its parts are. It is most useful for parts of
    different kinds: where one of them is improbable, another can be right.

    Parameters
    ----------
    estimators : list of (str, estimator)
        The parts, each with a name: density models with `fit` and a normalised `score_samples`,
        such as :class:`~sklearn_boltz.FSLLDensity`, :class:`~sklearn_boltz.FVBMPseudoLikelihood` or
        :class:`~sklearn_boltz.SDCPRBM`. All of them get the same table and must treat each column
        as the same kind.

    columns : str, list or dict, default="auto"
        The kind of each column, as `columns` of the parts, which all get it; see :ref:`kinds`. A
        part may have its own `columns` only where this is ``"auto"``.

    weights : {"auto", "uniform"} or array-like of shape (n_estimators,), default="auto"
        ``"auto"`` sets rows aside, and chooses the weights with which their mean log-probability is
        greatest. ``"uniform"`` gives all parts the same weight. Numbers are scaled to sum to 1.
        Unless the weights are chosen, the parts are fitted to all rows.

    validation_fraction : float, default=0.1
        The share of the rows that ``weights="auto"`` sets aside, and at least as many rows as there
        are parts. A row that is the only one with some value is not set aside.

    n_jobs : int, default=None
        How many parts are fitted at the same time, in processes of joblib. None means 1, unless in
        a context of :class:`joblib.parallel_config`; -1 means all processors. The result does not
        depend on it.

    random_state : int, RandomState instance or None, default=None
        The source of randomness of the choice of held-out rows, and of the seeds of all parts whose
        own `random_state` is None.

    verbose : int, default=0
        If positive, print the time, the held-out log-likelihood and the weight of each part.

    Attributes
    ----------
    estimators_ : list of estimator
        The fitted parts, in the order of `estimators`.

    named_estimators_ : Bunch
        The fitted parts by their names.

    weights_ : ndarray of float64 of shape (n_estimators,)
        The weights; their sum is 1.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    BoltzmannClassifier : Densities of classes and Bayes' rule.
    sklearn.mixture.GaussianMixture : Gaussian parts that are fitted together.

    Notes
    -----
    The parts are fitted independently. The mean log-probability of the held-out rows is a concave
    function of the weights. EM,

        w_k ← w_k g_k,  g_k = mean_i p_k(x_i) / p(x_i),

    increases it in each round, and the greatest value is at most max_k ln g_k above the current one
    [1]_. It ends when this bound is 1e-5 nats. So on the held-out rows the mixture is at
    least as good as its best part, up to 1e-5 nats; on other rows, up to the noise of the weights.

    Each p_k is divided by its own Z_k. Where ln Z_k is an estimate, the weights partly make up for
    its error on the held-out rows, but then p does not sum to 1 either. Since p falls as any Z_k
    rises, bounds of all ln Z_k bound ln p(x); see `score_bounds`.

    References
    ----------
    .. [1] T. M. Cover, "An algorithm for maximizing expected log investment return", IEEE
       Transactions on Information Theory 30, 369–373, 1984.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_boltz import BoltzmannMixture, FSLLDensity, FVBMPseudoLikelihood
    >>> X = load_digits().data[:, 18:30] > 7
    >>> mixture = BoltzmannMixture(
    ...     [("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood(alpha=0.01))],
    ...     random_state=0,
    ... ).fit(X[:1200])
    >>> bool(mixture.score(X[1200:]) > mixture.named_estimators_["pairs"].score(X[1200:]))
    True
    >>> mixture.weights_.round(1)
    array([0.6, 0.4])
    """

    _required_parameters = ["estimators"]
    _parameter_constraints = {
        "estimators": [list, tuple],
        "columns": [str, list, dict, tuple, range],
        "weights": [StrOptions({"auto", "uniform"}), "array-like"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimators,
        *,
        columns="auto",
        weights="auto",
        validation_fraction=0.1,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimators = estimators
        self.columns = columns
        self.weights = weights
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep=True):
        """Get parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include those of the parts, as in ``rbm__n_components``.

        Returns
        -------
        params : dict
            Names and values.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params):
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Names and values; the name of a part replaces the part, and ``rbm__n_components`` is
            a parameter of the part `rbm`.

        Returns
        -------
        self : BoltzmannMixture
            The estimator.
        """
        self._set_params("estimators", **params)
        return self

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the parts, and choose the weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; cells may be missing if all parts allow it.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`.

        Returns
        -------
        self : BoltzmannMixture
            The fitted mixture.

        Raises
        ------
        ValueError
            If `estimators` is empty, has a name twice, or has an estimator that is not a density
            model; if `weights` are not shares of the parts; if there are too few rows to set some
            aside; or if parts treat a column as different kinds.
        """
        with unchanged_on_error(self):
            return self._fit(X, sample_weight)

    def _fit(self, X, sample_weight):
        """Fit what the attributes need, and set them."""
        self._check_parts(sample_weight is not None)
        given = self._given_weights()
        X = self._read(X, reset=True)
        _, X, weights = self._counted(X, sample_weight)
        with named(self):
            self._table = Table.learn(X)
        generator = check_random_state(self.random_state)
        rest, held = np.arange(len(X)), None
        if given is None:
            rest, held = self._divided(X, generator)
        rows, counts = some_rows(X, rest), None if sample_weight is None else weights[rest]
        tasks = [(_seeded(part, generator), rows, counts) for part in self._parts()]
        parts, seconds = zip(*in_parallel(timed_fit, tasks, self.n_jobs), strict=True)
        names = [name for name, _ in self.estimators]
        self._check_same_values(names, parts)
        self.estimators_, figures = list(parts), [{} for _ in parts]
        self.named_estimators_ = Bunch(**dict(zip(names, parts, strict=True)))
        self.weights_ = given
        if given is None:
            rows = some_rows(X, held)
            log_p = np.column_stack([part.score_samples(rows) for part in parts])
            self.weights_ = likeliest_weights(log_p, weights[held])
            means = np.average(log_p, axis=0, weights=weights[held])
            figures = [{"held-out log-likelihood": mean} for mean in means]
        for k, name in enumerate(names):
            self._tell(name, {"seconds": seconds[k], **figures[k], "weight": self.weights_[k]})
        return self

    @told_once
    def score_samples(self, X):
        """Return the log-probability of the observed cells of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table. Cells may be missing if all parts allow it.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            In nats, normalised as the parts are: ln Σ_k w_k p_k(x).
        """
        return logsumexp(self._log_parts(self._read(X)), axis=1)

    def score(self, X, y=None, sample_weight=None):
        """Return the mean log-probability of the rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        score : float
            Mean of `score_samples`, in nats.
        """
        return mean_of_rows(self.score_samples(X), sample_weight)

    @validate_arguments({"random_state": ["random_state", np.random.Generator]})
    def score_bounds(self, X, sample_weight=None, *, random_state=None):
        """Return the mean log-probability of the rows, with a lower and an upper bound.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness of the estimates of ln Z.

        Returns
        -------
        estimate : Bunch
            `value`, the score in nats; `low` and `high`, those with the upper and the
            lower end of each part's ``log_partition()`` as ln Z; and `trusted`, whether all these
            estimates are. Parts without `log_partition` count as exact.

        Notes
        -----
        Each end of an estimate of ln Z holds with a probability of 95 %, so that with m estimates
        `low` and `high` hold with 1 - 0.05 m each, as far as the methods can tell. An end of ln Z
        may be infinite: then `low` is that of the other parts, and `high` is infinite.
        """
        X = self._read(X)
        generator, trusted = make_generator(random_state), True
        lows, highs = np.zeros((2, len(self.estimators_)))
        for k in np.flatnonzero(self.weights_):
            part = self.estimators_[k]
            if hasattr(part, "log_partition"):
                estimate = part.log_partition(**_options(part.log_partition, generator))
                used = part.log_partition_
                lows[k], highs[k] = used - estimate.high, used - estimate.low
                trusted &= bool(estimate.trusted)
        log_parts = self._log_parts(X)
        value, low, high = (
            mean_of_rows(logsumexp(log_parts + ends, axis=1), sample_weight)
            for ends in (0.0, lows, highs)
        )
        return Bunch(value=value, low=min(low, value), high=max(high, value), trusted=trusted)

    @available_if(lambda self: _all_have(self, "sample"))
    @validate_arguments(
        {
            "n_samples": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state", np.random.Generator],
            "given": [dict, None],
            "where": [callable, None],
        }
    )
    def sample(self, n_samples=1, random_state=None, *, given=None, where=None):
        """Draw samples from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by label or number, as they are in the rows that this method
            returns: the other columns are drawn from their distribution given these.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Samples as a table like the training data, each from a part that is drawn by the
            weights; with `given`, by w_k p_k(given). They are as good as those of the parts, of
            which some run Markov chains.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.
        """
        check_is_fitted(self)
        check_drawn(self, n_samples)
        if where is not None:
            draw = partial(self.sample, given=given)
            return rows_where(draw, n_samples, random_state, where, type(self).__name__)
        generator = make_generator(random_state)
        weights, options = self.weights_, {"given": given} if given else {}
        if given:
            row, (columns, codes) = np.full((1, self.n_features_in_), np.nan), self._given(given)
            row[0, columns] = codes
            weights = self._shares(self._table.decode(row))[0]
        counts = generator.multinomial(n_samples, weights / weights.sum())
        drawn = [
            part.sample(int(count), **_options(part.sample, generator), **options)
            for part, count in zip(self.estimators_, counts, strict=True)
            if count
        ]
        rows = some_rows(joined(drawn), generator.permutation(n_samples))
        return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows

    @available_if(lambda self: _all_have(self, "impute"))
    @validate_arguments(
        {
            "how": [StrOptions({"mean", "mode", "sample"})],
            "random_state": ["random_state", np.random.Generator],
        }
    )
    @told_once
    def impute(self, X, *, how="mean", random_state=None):
        """Fill missing cells from their distribution given the observed cells of the row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells.
        how : {"mean", "mode", "sample"}, default="mean"
            The mean of each missing cell; the most probable among the joint modes of
            the parts; or a draw from a part that is drawn by its probability given the observed
            cells, w_k p_k(x_o) / p(x_o). Strings, levels and booleans have no mean: they
            get the mode.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        X : ndarray or data frame
            A copy in which no cell is missing; observed cells are as they were given.
        """
        X, generator = self._read(X), make_generator(random_state)
        filled = [
            part.impute(X, how=how, **_options(part.impute, generator)) for part in self.estimators_
        ]
        if how == "mode":
            scores = [logsumexp(self._log_parts(rows), axis=1) for rows in filled]
            best = np.argmax(scores, axis=0)
            return some_rows(joined(filled), best * len(X) + np.arange(len(X)))
        shares = self._shares(X)
        if how == "sample":
            below = np.cumsum(shares, axis=1) < generator.random(len(X))[:, None]
            choice = np.minimum(below.sum(axis=1), len(filled) - 1)
            return some_rows(joined(filled), choice * len(X) + np.arange(len(X)))
        # Where a part takes a column for categories, it has no mean of it, but of bins.
        words = np.zeros(X.shape[1], dtype=bool)
        for part in self.estimators_:
            if hasattr(part, "categories_"):
                are_numbers = np.isin(list(part.columns_.values()), OF_NUMBERS)
                words |= [values is not None for values in part.categories_] & ~are_numbers
        modes = self.impute(X, how="mode", random_state=generator)
        if not is_frame(X) and X.dtype.kind in "biuf":
            means = np.einsum("nk,knd->nd", shares, np.array(filled))
            return np.where(words, modes, means).astype(X.dtype)
        words |= self._table.n_categories > 0
        means = [self._table.encode(rows, "missing") for rows in filled]
        means = np.einsum("nk,knd->nd", shares, np.array(means))
        means = np.where(words, self._table.encode(modes, "missing"), means)
        return self._table.fill(X, means, missing_cells(X))

    @available_if(lambda self: _all_have(self, "predict_column_proba"))
    @validate_arguments({"random_state": ["random_state", np.random.Generator]})
    @told_once
    def predict_column_proba(self, X, column, *, random_state=None):
        """Return the probability of each value of one column, given the other columns.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table. The values of the column itself are ignored, and missing cells in other
            columns are summed out.
        column : str, int or list of them
            The label of the column in a data frame, its number in an array, or those of several.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness of parts that run Markov chains for rows with missing cells.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_values)
            Σ_k s_k p_k(value | other cells): each part counts by the probability of the other cells
            under it, s_k ∝ w_k p_k(other cells). Each row sums to 1. The values have the order in
            which the parts have them: that of the categories, or 0, 1, ... for numbers. Of several
            columns, joint probabilities, of shape (n_samples, n_values, n_values, ...).

        Raises
        ------
        ValueError
            If there is no such column, if its values are continuous, or if its numbers are in other
            bins in one part than in another.
        """
        X, generator = self._read(X), make_generator(random_state)
        places = self._variables(column)
        others = without_columns(X, places)
        shares = self._shares(others)
        found = [
            part.predict_column_proba(
                others, column, **_options(part.predict_column_proba, generator)
            )
            for part in self.estimators_
        ]
        tables = [part._table for part in self.estimators_ if hasattr(part, "_table")]
        for j in places:
            names = [table.columns[j].values for table in tables if table.is_number[j]]
            if any(not np.array_equal(one, names[0]) for one in names):
                raise ValueError(
                    f"BoltzmannMixture.predict_column_proba: {self._table.columns[j].title} has "
                    "numbers, which the parts divide into different bins. Ask one of `estimators_`."
                )
        probability = np.zeros((len(others), *np.max([p.shape[1:] for p in found], axis=0)))
        for share, p in zip(shares.T, found, strict=True):
            those = (slice(None), *map(slice, p.shape[1:]))
            probability[those] += np.einsum("n,n...->n...", share, p)
        return probability

    def _answering(self):
        return next((part for part in self.estimators_ if hasattr(part, "_cells_of")), self)

    def _check_parts(self, is_weighted):
        """Refuse a list of estimators that is empty or has what is no density model."""
        for item in self.estimators or [None]:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise InvalidParameterError(
                    "BoltzmannMixture: estimators must be a list of pairs of a name and an "
                    f"estimator, and not empty; got {self.estimators!r}."
                )
        with named(self):
            self._validate_names([name for name, _ in self.estimators])
        for name, part in self.estimators:
            problem = None
            if isinstance(part, type):
                problem = "is a class. Put an object of it in the list"
            elif not (hasattr(part, "fit") and hasattr(part, "score_samples")):
                problem = "has no `fit` and `score_samples`. Take a density model"
            elif is_classifier(part) or is_regressor(part):
                problem = "needs labels. Take a density of the columns alone"
            elif is_outlier_detector(part):
                problem = "has scores that are not log-probabilities. Take a density model"
            elif is_weighted and not has_fit_parameter(part, "sample_weight"):
                problem = "takes no sample_weight. Leave out the weights or the part"
            if problem is not None:
                part = part.__name__ if isinstance(part, type) else repr(part)
                raise ValueError(f"BoltzmannMixture: the part {name!r}, {part}, {problem}.")

    def _parts(self):
        """The parts, with the `columns` of the mixture."""
        parts = [clone(part) for _, part in self.estimators]
        if is_auto(self.columns):
            return parts
        for (name, _), part in zip(self.estimators, parts, strict=True):
            if not is_auto(part.get_params().get("columns")):
                raise ValueError(
                    f"BoltzmannMixture: `columns` is for parts with columns='auto', and the part "
                    f"{name!r} is {part!r}. Leave the `columns` of one of them at 'auto'."
                )
        return [part.set_params(columns=self.columns) for part in parts]

    def _given_weights(self):
        """The weights that do not depend on rows, as shares; None if they do."""
        n = len(self.estimators)
        if isinstance(self.weights, str):
            return np.full(n, 1 / n) if self.weights == "uniform" or n == 1 else None
        try:
            weights = np.asarray(self.weights, dtype=np.float64)
        except (TypeError, ValueError):  # no numbers
            weights = np.empty(0)
        usable = weights.shape == (n,) and np.isfinite(weights).all() and (weights >= 0).all()
        if not usable or not weights.sum() > 0:
            raise ValueError(
                f"BoltzmannMixture: weights must be {n} numbers, one for each part, of which none "
                f"is negative and one is positive; got {self.weights!r}."
            )
        return weights / weights.sum()

    def _divided(self, X, generator):
        """-> places of the rows for the parts, and of those that are set aside for the weights.

        Estimators learn the values of a column from the rows, and values are the same only if each
        occurs in the former.
        """
        n_rows, n_parts = len(X), len(self.estimators)
        n_held = max(int(np.ceil(self.validation_fraction * n_rows)), n_parts)
        if n_held >= n_rows:
            raise ValueError(
                f"BoltzmannMixture: weights='auto' sets {n_held} rows aside, and there are no more "
                f"than that: n_samples = {n_rows}. Set weights='uniform', or choose a smaller "
                "validation_fraction."
            )
        order = generator.permutation(n_rows)
        held, rest = order[:n_held], order[n_held:]
        codes = self._table.encode(X, "missing")
        needed = [
            held[np.argmax(codes[held, j] == value)]
            for j, is_word in enumerate(self._table.n_categories > 0)
            for value in _lost_values(codes[held, j], codes[rest, j], is_word)
        ]
        held = np.setdiff1d(held, needed)
        if len(held) < n_parts:
            raise ValueError(
                f"BoltzmannMixture: weights='auto' sets {n_parts} rows aside, or more, and cannot: "
                f"of {n_held} rows, {n_held - len(held)} have a value that no other row has. Set "
                "weights='uniform', or leave out columns with rare values."
            )
        return np.setdiff1d(np.arange(n_rows), held), held

    def _check_same_values(self, names, parts):
        """Refuse parts of which one takes a column for other values than another."""
        spaces = [(name, _values_of(part)) for name, part in zip(names, parts, strict=True)]
        spaces = [(name, values) for name, values in spaces if values is not None]
        for name, values in spaces[1:]:
            first, reference = spaces[0]
            for column, ours, theirs in zip(self._table.columns, values, reference, strict=True):
                if ours != theirs:
                    raise ValueError(
                        f"BoltzmannMixture: the parts {first!r} and {name!r} differ in "
                        f"{column.title}: {theirs} and {ours}. Densities of different values "
                        "cannot be mixed. Give all parts the same `columns`."
                    )

    def _log_parts(self, X):
        """ln(w_k p_k(x)), of shape (n_samples, n_estimators)."""
        result = np.full((len(X), len(self.estimators_)), -np.inf)
        for k in np.flatnonzero(self.weights_):
            result[:, k] = np.log(self.weights_[k]) + self.estimators_[k].score_samples(X)
        return result

    def _shares(self, X):
        """w_k p_k(x) / p(x), the probabilities of the parts given a row; of the same shape."""
        log_parts = self._log_parts(X)
        return np.exp(log_parts - logsumexp(log_parts, axis=1, keepdims=True))


def likeliest_weights(log_p, row_weights, tol=TOL):
    """The weights of a mixture with which the mean log-probability of rows is greatest, by EM.

    Parameters
    ----------
    log_p : ndarray of float64 of shape (n_samples, n_parts)
        ln p_k(x).
    row_weights : ndarray of float64 of shape (n_samples,)
        How often each row counts.
    tol : float
        How far the mean may be from the greatest, in nats.

    Returns
    -------
    weights : ndarray of float64 of shape (n_parts,)
        Not negative, with the sum 1.
    """
    possible = np.isfinite(log_p).any(axis=1)  # other rows have p(x) = 0 with any weights
    log_p, row_weights = log_p[possible], row_weights[possible]
    n_parts = log_p.shape[1]
    weights = np.full(n_parts, 1 / n_parts)
    if not len(log_p):
        return weights
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    row_weights = row_weights / row_weights.sum()
    # From equal weights, EM is within ln K / t of the greatest after t rounds.
    for _ in range(int(np.ceil(np.log(n_parts) / tol))):
        gains = (row_weights / (p @ weights)) @ p
        if np.log(gains.max()) <= tol:
            break
        weights *= gains
    return weights / weights.sum()


def _lost_values(held, rest, is_word):
    """Values of a column that are to be known, and that only held-out rows have."""
    held, rest = (np.unique(codes[~np.isnan(codes)]) for codes in (held, rest))
    lost = np.setdiff1d(held, rest)
    if is_word or not len(lost):
        return lost
    everything = np.union1d(held, rest)
    if not is_whole(everything).all():
        return lost[:1] if not len(rest) else lost[:0]
    if len(everything) <= 2 * MOST_LEVELS:
        return lost[lost > 1]  # 0 and 1 are values of any column of codes
    return lost[lost == everything[-1]]  # up to which there are codes


def _values_of(part):
    """What an estimator takes the columns for, in words; None if it does not tell."""
    if hasattr(part, "n_values_"):
        counts = part.n_values_
    elif hasattr(part, "_layered"):
        counts = part._layered().layers[0].state_counts
    else:
        return None
    # Densities of numbers may be mixed, whatever the bins.
    are_numbers = part._table.is_number
    return [
        f"{max(int(count), 2)} values" if np.isfinite(count) and not is_number else "real numbers"
        for count, is_number in zip(counts, are_numbers, strict=True)
    ]


def _seeded(part, generator):
    """An estimator with seeds where it has none."""
    seeds = {
        name: int(generator.randint(2**31))
        for name, value in sorted(part.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return part.set_params(**seeds)


def _all_have(mixture, method):
    """Whether all parts have a method."""
    parts = getattr(mixture, "estimators_", None) or [part for _, part in mixture.estimators]
    return all(hasattr(part, method) for part in parts)


def _options(method, generator):
    """A seed for a method that takes one."""
    if "random_state" not in signature(method).parameters:
        return {}
    return {"random_state": int(generator.integers(2**31))}
