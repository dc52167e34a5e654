"""BoltzmannOutlierDetector: rows that a density model of the others finds improbable."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import checked_weights
from sklearn_boltz._cells import missing_cells
from sklearn_boltz.meta._coding import Coding
from sklearn_boltz.meta._default import check_cells, checked_table, choose_density

# Strength of the penalty of the network. From .01 to .3, the areas under the ROC curve rise by .02
# on votes, and fall by .08 on ALARM.
ALPHA = 0.01
# Completions of a row with missing cells, and sweeps of Gibbs sampling of each where it has too
# many joint states.
N_DRAWS, N_STEPS = 10, 100
# Tukey's fence: a score so many times the distance of the quartiles below the first is far out.
FENCE = 1.5


class BoltzmannOutlierDetector(OutlierMixin, BaseEstimator):
    """Find rows that are improbable by a density model of the other rows.

    The columns may hold words, levels and numbers, and cells may be missing. An outlier is a row
    whose log-probability is low; so it may have a value that is rare, or values that seldom occur
    together. Fitted to rows without outliers, it detects novelties; :meth:`fit_predict` finds
    outliers among the rows of the fit.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with `score_samples` and, if cells are missing, `impute`.
        None means a network of all pairs of columns, or an RBM where the table is too large for
        that. Words and levels are its values; of other numbers, those are the 8 bins between
        quantiles that they are in, with a constant density in a bin and exponential tails.

    contamination : "auto" or float, default="auto"
        The share of outliers among the rows of `fit`, above 0 and at most 0.5, which fixes
        `offset_`. With ``"auto"`` an outlier is a row whose score is 1.5 times the distance
        between the quartiles of all scores below the first quartile (Tukey's fence).

    random_state : int, RandomState instance or None, default=None
        The source of randomness of the fit, if `estimator` has one, and of the completions of rows
        with missing cells. The default network has none in its fit. `score_samples` draws the same
        completions each time.

    Attributes
    ----------
    estimator_ : estimator
        The fitted density model.

    offset_ : float
        The score at which a row is an outlier: ``decision_function(X)`` is
        ``score_samples(X) - offset_``.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Their names, if `X` had names.

    See Also
    --------
    sklearn.ensemble.IsolationForest : Splits rows off by random thresholds.
    BoltzmannClassifier : Tells classes apart; its `score_samples` rows unlike any class.

    Notes
    -----
    The log-probability of what is observed of a row, ln p(x_o), is the greater the fewer cells that
    are, whether the row is an outlier or not. So the score of an incomplete row is the mean of that
    of its completions, E[ln p(x_o, x_m) | x_o]. Under the model its expectation is the same for
    all sets of missing cells, if they are missing at random. The mean is that of 10 draws.

    A column without an observed cell in `fit` is left out by the default model. A word or level
    that did not occur in `fit` counts as a missing cell, and as an event of the probability
    1/(n + 1) for n rows. A given `estimator` gets the table as it is.

    For novelties that differ in many columns at once, such as images, an RBM often finds more than
    the network; see the user guide.

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
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "random_state": ["random_state"],
    }

    def __init__(self, estimator=None, *, contamination="auto", random_state=None):
        self.estimator = estimator
        self.contamination = contamination
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the density model and the offset.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        self : BoltzmannOutlierDetector
            The fitted detector.

        Raises
        ------
        ValueError
            If no cell is observed, or a number is infinite.
        """
        X = checked_table(self, X, reset=True)
        weights = checked_weights(sample_weight, X)
        if not weights.all():
            X = _safe_indexing(X, np.flatnonzero(weights))
            weights = weights[weights > 0]
        generator = check_random_state(self.random_state)
        self._seed = generator.randint(2**31)
        self._coding, rows = None, X
        if self.estimator is not None:
            estimator = clone(self.estimator)
        else:
            check_cells(self, X)
            self._coding = Coding.learn(X, weights)
            rows = self._coding.encode(X)
            estimator = choose_density(
                self._coding.n_values, self._coding.ordered, len(rows), ALPHA
            )
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=generator.randint(2**31))
        options = {} if sample_weight is None else {"sample_weight": weights}
        self.estimator_ = estimator.fit(rows, **options)
        # ln Z is the same for all rows, so that only differences count.
        scores = self._log_weights(X)
        self._mean = float(np.average(scores, weights=weights))
        self.offset_ = self._offset(scores - self._mean, weights)
        return self

    def score_samples(self, X):
        """Return the log-probability of each row, compared with the rows of `fit`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        scores : ndarray of float64 of shape (n_samples,)
            The log-probability in nats, ln p(x) less its mean over the rows of `fit`; missing
            cells are completed, see Notes of the class. The lower, the more of an outlier.
        """
        check_is_fitted(self)
        return self._log_weights(checked_table(self, X, reset=False)) - self._mean

    def decision_function(self, X):
        """Return how far the score of each row is above the offset.

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
        """Tell outliers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        inlier : ndarray of int of shape (n_samples,)
            -1 for outliers, 1 for others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _offset(self, scores, weights):
        """The score at which a row is an outlier."""
        if self.contamination != "auto":
            return _quantile(scores, weights, self.contamination)
        first, third = (_quantile(scores, weights, q) for q in (0.25, 0.75))
        return first - FENCE * (third - first)

    def _log_weights(self, X):
        """ln p(x) plus a constant of each row, the mean over its completions."""
        coding = self._coding
        if coding is None:
            return self._mean_log_weights(X)
        check_cells(self, X)
        codes = coding.encode(X)
        surprise = coding.n_unknown(X, codes) * np.log(coding.n_rows + 1)
        return self._mean_log_weights(codes, X, n_steps=N_STEPS) - surprise

    def _mean_log_weights(self, rows, X=None, **options):
        density = self.estimator_
        gaps = missing_cells(rows).any(axis=1)
        if not gaps.any() or not hasattr(density, "impute"):
            return self._complete_log_weights(rows, X)
        result = np.empty(len(gaps))
        parts = [(~gaps, 1), (gaps, N_DRAWS)] if not gaps.all() else [(gaps, N_DRAWS)]
        for part, n_draws in parts:
            some, cells = (
                None if table is None else _safe_indexing(table, np.flatnonzero(part))
                for table in (rows, X)
            )
            draws = (
                density.impute(some, how="sample", random_state=self._seed + k, **options)
                for k in range(n_draws)
            )
            result[part] = np.mean([self._complete_log_weights(d, cells) for d in draws], axis=0)
        return result

    def _complete_log_weights(self, rows, X):
        """ln p(x) plus a constant; of rows of codes, with what is known of X beside these."""
        density = self.estimator_
        if hasattr(density, "free_energy"):
            result = -np.asarray(density.free_energy(rows), dtype=np.float64)
        else:
            result = np.array(density.score_samples(rows), dtype=np.float64)
        return result if X is None else result + self._coding.log_density(X, rows)


def _quantile(values, weights, q):
    """Between the values where a share q of the weights ends and where the next begins."""
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(weights[order])
    # Weights of which some are equal sum up differently by rounding.
    end = np.searchsorted(below, q * below[-1] * (1 - 1e-12))
    is_end = below[end] <= q * below[-1] * (1 + 1e-12)
    return float(values[end] + values[min(end + is_end, len(values) - 1)]) / 2
