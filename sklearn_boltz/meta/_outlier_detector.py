"""BoltzmannOutlierDetector: rows that a density model of the others finds improbable."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sklearn_boltz._base import checked_weights
from sklearn_boltz._tables import learn_table
from sklearn_boltz.meta._coding import Coding
from sklearn_boltz.meta._completed import completed_log_weights, left_out, quantile
from sklearn_boltz.meta._default import (
    check_cells,
    checked_table,
    choose_density,
    draws_of,
    named,
)

# Strength of the penalty of the network. From .01 to .3, the areas under the ROC curve rise by .02
# on votes, and fall by .08 on ALARM.
ALPHA = 0.01
# Sweeps of Gibbs sampling for a completion of a row whose missing cells have too many joint states.
N_STEPS = 100
# Tukey's fence: a score so many times the distance of the quartiles below the first is far out.
FENCE = 1.5
# Parts of the rows, of which each is scored by the others for the fence. By themselves, rows have
# scores so high that a fifth of new rows would be outliers.
N_FOLDS = 3


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
        `offset_`. With ``"auto"`` an outlier is a row whose score is more than 1.5 times the
        distance between the quartiles below the first quartile (Tukey's fence) of the scores that
        each third of the rows has by a density of the others; of Gaussian scores these are 0.35 %.

    random_state : int, RandomState instance or None, default=None
        The source of randomness of the fit, if `estimator` has one, and of the completions of rows
        with missing cells, on which `offset_` depends. The default network has none in its fit.
        `score_samples` draws the same completions of a row each time, whatever the other rows are.

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
    all sets of missing cells, if they are missing at random. The mean is that of 10 draws, for
    which the content of the row and `random_state` are the seed: equal rows have equal scores.

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
        check_cells(self, X)
        weights = checked_weights(sample_weight, X)
        if not weights.all():
            X = _safe_indexing(X, np.flatnonzero(weights))
            weights = weights[weights > 0]
        generator = check_random_state(self.random_state)
        self._seed = generator.randint(2**31)
        density, rows = self._unfitted(X, weights)
        if "random_state" in density.get_params():
            density.set_params(random_state=generator.randint(2**31))
        self.estimator_ = _fitted(density, rows, weights, sample_weight is not None)
        # ln Z is the same for all rows, so that only differences count.
        scores = self._log_weights(self.estimator_, X, rows)
        self._mean = float(np.average(scores, weights=weights))
        if self.contamination == "auto":
            self.offset_ = self._fence(density, X, rows, weights, generator)
        else:
            self.offset_ = quantile(scores - self._mean, weights, self.contamination)
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
        X = checked_table(self, X, reset=False)
        check_cells(self, X)
        with named(self):
            rows = X if self._coding is None else self._coding.encode(X)
        return self._log_weights(self.estimator_, X, rows) - self._mean

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

    def _unfitted(self, X, weights):
        """-> a density model, and the rows for it."""
        self._coding = None
        if self.estimator is not None:
            return clone(self.estimator), X
        with named(self):
            self._coding = coding = Coding.learn(X, weights)
        rows = coding.encode(X)
        options = draws_of(rows)
        return choose_density(coding.n_values, coding.ordered, len(X), ALPHA, **options), rows

    def _log_weights(self, density, X, rows):
        """ln p(x) plus a constant of each row, whose missing cells are completed."""
        coding = self._coding
        if coding is None:
            return completed_log_weights(density, rows, self._seed)

        def rest(places, codes):
            return coding.log_density(_safe_indexing(X, places), codes)

        result = completed_log_weights(density, rows, self._seed, rest, n_steps=N_STEPS)
        return result - coding.n_unknown(X, rows) * np.log(coding.n_rows + 1)

    def _fence(self, density, X, rows, weights, generator):
        """Tukey's fence of the scores that rows have by the others."""
        codes = rows
        if self._coding is None:
            with named(self):
                codes = learn_table(X).encode(X, "missing")
        found = []
        for places, rest, held, own in left_out(codes, weights, N_FOLDS, generator):
            fitted = _fitted(density, _safe_indexing(rows, places), rest)
            some = np.concatenate([places, held])
            scores = self._log_weights(fitted, _safe_indexing(X, some), _safe_indexing(rows, some))
            mean = np.average(scores[: len(places)], weights=rest)
            found.append((scores[len(places) :] - mean, own))
        if not found:  # a single row
            return -np.inf
        scores, weights = map(np.concatenate, zip(*found, strict=True))
        first, third = (quantile(scores, weights, q) for q in (0.25, 0.75))
        return first - FENCE * (third - first)


def _fitted(density, rows, weights, is_weighted=True):
    """A fitted clone of a density model, with weights if it takes them."""
    is_weighted = is_weighted and has_fit_parameter(density, "sample_weight")
    return clone(density).fit(rows, **({"sample_weight": weights} if is_weighted else {}))
