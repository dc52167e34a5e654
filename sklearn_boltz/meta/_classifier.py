"""BoltzmannClassifier: the densities of the rows of each class, and Bayes' rule."""

import warnings
from numbers import Real

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted

from sklearn_boltz._base import checked_weights
from sklearn_boltz._cells import as_array, columns_of, is_missing, missing_cells
from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.meta._calibration import calibrate, held_out
from sklearn_boltz.meta._class_densities import DensityOfEachClass, JointDensity
from sklearn_boltz.meta._coding import Coding
from sklearn_boltz.meta._default import (
    check_cells,
    checked_table,
    choose_density,
    named,
    with_values,
)
from sklearn_boltz.meta._priors import checked_priors

# Strength of the penalty of the network of columns and classes, and of those of single classes,
# which have fewer rows.
ALPHA, ALPHA_OF_CLASS = 0.01, 0.1


class BoltzmannClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows by the densities of the classes and Bayes' rule.

    With densities p(x | y) and prior probabilities π(y) of the classes,

        p(y | x) = π(y) p(x | y) / p(x),  p(x) = Σ_y π(y) p(x | y).

    The columns may hold words, levels and numbers, and cells may be missing, in `fit` as
    later: they are summed out. Since p(x) is known, rows unlike any class can be told, see
    `score_samples`.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with `score_samples`, or with ``joint=True`` one that has
        `predict_column_proba`, too. None means a network of all pairs of columns, or an RBM where
        the table is too large for that. Words and levels are its values; of other numbers, those
        are the 8 bins between quantiles that they are in, with a constant density in a bin and
        exponential tails.

    joint : "auto" or bool, default="auto"
        Whether one density of the columns and the class is fitted, p(x, y). In a network of pairs,
        the classes then differ in the effects of single columns and share the couplings between
        columns, as Gaussian classes share their covariance in linear discriminant analysis. Rare
        classes gain by it. With False there is a density for each class, p(x | y), as in quadratic
        discriminant analysis, which pays with many rows in each. ``"auto"`` is True without an
        `estimator` and False with one.

    priors : dict or array-like of shape (n_classes,), default=None
        The prior probabilities: of each class in a dict, or in the order of `classes_`. None takes
        the shares of the classes among the rows of `fit`.

    calibration : "auto" or bool, default="auto"
        Whether some rows of each class are held out of the fit, on which an offset is fitted for
        each ln p(x | y), and a factor common to all: the offsets correct errors of
        ln Z, the factor densities that are too sure. ``"auto"`` does so where there is a density
        for each class, and some ln Z is an estimate with an error above 0.1 nats or not known.

    validation_fraction : float, default=0.2
        The share of the rows of each class that are held out for the calibration.

    random_state : int, RandomState instance or None, default=None
        The source of randomness of the fit, if `estimator` has one, and of the choice of held-out
        rows. The default network has none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in order.

    priors_ : ndarray of float64 of shape (n_classes,)
        Their prior probabilities.

    estimators_ : list of estimator
        The fitted density of each class; with one for all, a list of this alone, of which the
        class is the last column.

    offsets_ : ndarray of float64 of shape (n_classes,)
        What calibration adds to the ln p(x | y), in nats; 0 without it.

    scale_ : float
        The factor by which it multiplies all ln p(x | y); 1 without it.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Their names, if `X` had names.

    See Also
    --------
    BoltzmannOutlierDetector : Rows that are improbable, without classes.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : Gaussian classes.
    sklearn.naive_bayes.CategoricalNB : Classes of independent columns.

    Notes
    -----
    A column without an observed cell in `fit` is left out by the default model. A word or level
    that did not occur in `fit` counts as a missing cell. Words and levels of all rows are known to
    the densities of all classes.

    Missing cells are summed out exactly where connected ones have at most 2**20 joint states. For
    other rows the default network estimates p(y, x_o) for each class y by annealed importance
    sampling [1]_, with a standard error of p(y | x_o) of at most 0.03 unless 1,600 temperatures do
    not suffice. The random numbers have a fixed seed, so that the probabilities of a row do not
    depend on the other rows of a call.

    With ``joint=True``, a row without an observed cell has the marginal probabilities of the
    classes in the network. A fit by the pseudo-likelihood does not match them to `priors_`, and
    they can be far off; with ``joint=False`` such a row has the probabilities `priors_`, up to
    errors of ln Z and the calibration.

    The offsets o and the factor β maximise the mean of ln p(y | x) over the held-out rows, where
    p(y | x) ∝ π(y) exp(β ln p(x | y) + o(y)), less a small penalty of the squares of the offsets: a
    concave function. The densities are then those of the other rows.

    References
    ----------
    .. [1] R. M. Neal, "Annealed importance sampling", Statistics and
       Computing 11:125-139, 2001, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import BoltzmannClassifier
    >>> X = [["scales", "no"], ["feathers", "yes"], ["feathers", "no"], ["scales", None]] * 10
    >>> y = ["fish", "bird", "bird", "fish"] * 10
    >>> model = BoltzmannClassifier().fit(X, y)
    >>> model.predict([["feathers", None], [None, "yes"]])
    array(['bird', 'bird'], dtype='<U4')
    >>> model.predict_proba([["scales", "no"]]).round(2)
    array([[0.01, 0.99]])

    A network for each class:

    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> each = BoltzmannClassifier(FVBMPseudoLikelihood(alpha=0.1), priors=[0.8, 0.2])
    >>> each.fit(X, y).predict([[None, None]])
    array(['bird'], dtype='<U4')
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "score_samples"]), None],
        "joint": ["boolean", StrOptions({"auto"})],
        "priors": ["array-like", dict, None],
        "calibration": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        joint="auto",
        priors=None,
        calibration="auto",
        validation_fraction=0.2,
        random_state=None,
    ):
        self.estimator = estimator
        self.joint = joint
        self.priors = priors
        self.calibration = calibration
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Fit the densities.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells.
        y : array-like of shape (n_samples,)
            The class of each row. -1 is a class like others.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        self : BoltzmannClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a row has no label (None, NaN or pandas.NA), if there is one class only, if
            `priors` are no probabilities of the classes, if a class with a density of its own has
            no value in some column, or if a number is infinite.

        Warns
        -----
        UserWarning
            If a class has a density of its own and a single row.
        """
        X = checked_table(self, X, reset=True)
        y = _check_y(self._labels(y), estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        check_cells(self, X)
        weights = checked_weights(sample_weight, X)
        if not weights.all():
            kept = np.flatnonzero(weights)
            X, y, weights = _safe_indexing(X, kept), y[kept], weights[kept]
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"BoltzmannClassifier: there is one class only, {self.classes_.tolist()[0]!r}, and "
                "nothing to tell it from. BoltzmannOutlierDetector takes rows of one class."
            )
        self._shares = np.bincount(y, weights) / weights.sum()
        self.priors_ = checked_priors(
            self.priors, self.classes_, self._shares, "BoltzmannClassifier"
        )
        generator = check_random_state(self.random_state)
        self._densities, rows = self._unfitted(X, y, weights, generator)
        weights = None if sample_weight is None else weights
        self.offsets_, self.scale_ = np.zeros(len(self.classes_)), 1.0
        calibration = self.calibration
        if calibration is not True:
            self._densities.fit(rows, y, weights)
        if calibration == "auto":
            calibration = self._densities.are_uncertain()
        if calibration:
            held = held_out(y, self.validation_fraction, generator, "BoltzmannClassifier")
            self._densities.fit(*_some(~held, rows, y, weights))
            rows, y, weights = _some(held, rows, y, weights)
            self.offsets_, self.scale_ = calibrate(
                self._densities.log_likelihoods(rows), y, weights, np.log(self._shares)
            )
        self.estimators_ = self._densities.fitted
        return self

    def predict_log_proba(self, X):
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; missing cells are summed out.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples, n_classes)
            In the order of `classes_`: ln p(y | x), in nats.
        """
        rows = self._checked_rows(X)
        scores = self.scale_ * self._densities.log_likelihoods(rows) + self.offsets_
        return log_softmax(scores + self._log_priors(), axis=1)

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; missing cells are summed out.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_classes)
            In the order of `classes_`: p(y | x); each row sums to 1.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X):
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; missing cells are summed out.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Of `classes_`.
        """
        places = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[places]

    def score(self, X, y, sample_weight=None):
        """Return the accuracy.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; missing cells are summed out.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        score : float
            The part of rows whose most probable class is their own.
        """
        return super().score(X, y, sample_weight)

    def score_samples(self, X):
        """Return the log-density of each row, whatever its class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        log_density : ndarray of float64 of shape (n_samples,)
            That of the observed cells, ln p(x) = ln Σ_y π(y) p(x | y), in nats, without
            calibration. It is low for rows unlike any class. Of words and levels, it is a
            log-probability.
        """
        rows = self._checked_rows(X)
        result = self._densities.score_samples(rows, self._log_priors())
        if isinstance(self._coding, Coding):
            result += self._coding.log_density(checked_table(self, X, reset=False), rows)
        return result

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _labels(self, y):
        """The labels as they are given, of which none may be missing."""
        if y is None:
            return y
        labels = as_array(y)
        for row, label in enumerate(labels.tolist() if labels.ndim == 1 else ()):
            if is_missing(label):
                raise ValueError(
                    f"BoltzmannClassifier: row {row} has no label. Leave such rows out, or take "
                    "RBMClassifier, which learns from rows without labels."
                )
        return y

    def _log_priors(self):
        with np.errstate(divide="ignore"):  # a prior may be 0
            return np.log(self.priors_)

    def _unfitted(self, X, y, weights, generator):
        """-> densities that know the values of all columns, and the rows for them."""
        is_joint = self.estimator is None if self.joint == "auto" else self.joint
        n_classes = len(self.classes_) if is_joint else 0
        if self.estimator is None:
            with named(self):
                self._coding = Coding.learn(X, weights)
            n_values, ordered = self._coding.n_values, self._coding.ordered
            if is_joint:
                n_values, ordered = np.append(n_values, n_classes), np.append(ordered, False)
            alpha = ALPHA if is_joint else ALPHA_OF_CLASS
            density = choose_density(n_values, ordered, len(X), alpha)
        else:
            with named(self):
                density, self._coding = with_values(self.estimator, X, n_classes)
            if is_joint and self._coding is None:
                raise ValueError(
                    "BoltzmannClassifier: joint=True needs a density of codes, with n_values or "
                    f"visible at 'auto' and without `binarize`; got {self.estimator!r}. Code the "
                    "columns first, for example by sklearn.preprocessing.Binarizer."
                )
        if "random_state" in density.get_params():
            density.set_params(random_state=generator.randint(2**31))
        rows = X if self._coding is None else self._coding.encode(X)
        if is_joint:
            return JointDensity(density, self._shares, generator.randint(2**31)), rows
        self._check_classes(X, y)
        return DensityOfEachClass(density), rows

    def _checked_rows(self, X):
        """The rows of a table as the densities take them."""
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        check_cells(self, X)
        with named(self):
            if isinstance(self._coding, Coding):
                return self._coding.encode(X)
            return X if self._coding is None else self._coding.encode(X, "missing")

    def _check_classes(self, X, y):
        """Refuse classes without a value in some column; warn of classes of a single row."""
        names, missing = self.classes_.tolist(), missing_cells(X)
        for c in range(len(names)):
            empty = missing[y == c].all(axis=0) & ~missing.all(axis=0)
            if empty.any():
                title = [title for title, _ in columns_of(X)][int(empty.argmax())]
                raise ValueError(
                    f"BoltzmannClassifier: no row of class {names[c]!r} has a value in {title}. "
                    "Set joint=True, leave out the column or the class, or fill its cells."
                )
        counts = np.bincount(y)
        if counts.min() < 2:
            warnings.warn(
                f"BoltzmannClassifier: class {names[counts.argmin()]!r} has a single row, which "
                "tells hardly anything of a density. With joint=True, classes share what couples "
                "the columns; or leave this class out.",
                stacklevel=find_stack_level(),
            )


def _some(which, rows, y, weights):
    """The rows for which a mask is true, with classes and weights."""
    places = np.flatnonzero(which)
    return _safe_indexing(rows, places), y[places], None if weights is None else weights[places]
