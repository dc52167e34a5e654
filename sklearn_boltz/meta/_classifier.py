"""BoltzmannClassifier: class densities and Bayes' rule."""

from numbers import Integral, Real

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from sklearn_boltz._methods import named, unchanged_on_error
from sklearn_boltz._warnings import told_once, warn
from sklearn_boltz.meta._calibration import calibrate, held_out
from sklearn_boltz.meta._class_densities import DensityOfEachClass, FittedJoint, JointDensity
from sklearn_boltz.meta._coding import coded_table
from sklearn_boltz.meta._default import (
    COLUMNS,
    OfTables,
    choose_density,
    seeded,
    with_values,
)
from sklearn_boltz.meta._priors import checked_priors
from sklearn_boltz.numerics._random import fixed
from sklearn_boltz.tables._batches import with_labels
from sklearn_boltz.tables._cells import as_array, columns_of, missing_cells
from sklearn_boltz.tables._labels import check_one_type, check_unmasked
from sklearn_boltz.tables._phrases import and_others
from sklearn_boltz.tables._values import is_missing

# Penalty of the network of columns and classes, and of the networks of single classes, which have
# fewer rows. With "auto", the log-loss of classes was 1.4 times as large on four of six tables.
ALPHA, ALPHA_OF_CLASS = 0.01, 0.1
# Number of cells of a table above which missing ones are not completed, unless all columns are
# binary. On 6,000 rows of 36 strings with 30 % missing, the fit takes 3 s instead of 12, and the
# log-loss of classes is .081 instead of .069; on 6,000 rows of 14 columns with 10 %, .3 s instead
# of 10, and the log-loss is the same.
MOST_COMPLETED = 2**16


class BoltzmannClassifier(ClassifierMixin, OfTables, BaseEstimator):
    """Classify rows with a density model of each class and Bayes' rule.

    With densities p(x | y) and prior probabilities π(y) of the classes,

        p(y | x) = π(y) p(x | y) / p(x),  p(x) = Σ_y π(y) p(x | y).

    Columns may contain strings, levels (whole numbers with few values) and other numbers. Cells may
    be missing, both in `fit` and in prediction; they are summed out. Since p(x) is known, rows
    that belong to none of the classes can be detected, see `score_samples`.

    Parameters
    ----------
    estimator : estimator, default=None
        A density model with `score_samples`. None means a network of all pairs of columns
        (:class:`~sklearn_boltz.FVBMPseudoLikelihood`); above 2,048 values of all columns (of a
        number, 4 to 16), an RBM. A :class:`~sklearn.frozen.FrozenEstimator` is a density of the
        columns and the class, as its last column, that is fitted already. By default, strings are
        modelled as they are, and so are columns of numbers with at most 8 different values. Other
        columns of numbers are put into 8 bins between quantiles; the density is a histogram within
        a bin, with heavy tails.

    columns : str, list or dict, default="auto"
        The kind of each column in the default model: ``"binary"``, ``"nominal"``, ``"ordinal"``,
        ``"count"``, ``"number"`` (here an alias of ``"binned"``), or the list of its values;
        see :ref:`kinds`. A string is the kind of all columns, a dict names some, and a list has an
        entry for each. ``"auto"`` looks at the table. If you pass an `estimator`, set its own
        `columns` instead.

    joint : "auto" or bool, default="auto"
        If True, a single density p(x, y) of the columns and the class is fitted. In a pairwise
        network, the classes then share the couplings between columns and differ only in the effects
        of single columns, as in linear discriminant analysis. This helps classes with few rows. If
        False, each class has its own density p(x | y), as in quadratic discriminant analysis. This
        needs many rows in each class. ``"auto"`` is True if `estimator` is None, and otherwise
        False.

    priors : dict or array-like of shape (n_classes,), default=None
        Prior probabilities of the classes, as a dict or in the order of `classes_`. None means the
        shares of the classes among the rows of `fit`.

    calibration : "auto" or bool, default="auto"
        Whether to hold out some rows of each class and to calibrate the log-densities ln p(x | y)
        on them, by an offset for each class and a common factor. The offsets correct errors of ln
        Z; the factor corrects densities that are too confident. ``"auto"`` calibrates only if each
        class has its own density and the error of some ln Z is unknown or above 0.1 nats.

    validation_fraction : float, default=0.2
        Fraction of the rows of each class that is held out for calibration.

    n_jobs : int, default=None
        How many classes are fitted at the same time, in processes of joblib, if each class has its
        own density. None means 1, unless in a context of :class:`joblib.parallel_config`; -1 means
        all processors. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the fit of `estimator` if it is random, and for the choice of
        held-out rows. The fit of the default network is not random. With None, fits of the same
        rows agree, as with 0.

    verbose : int, default=0
        If positive, print the time of each fit, and the result of the calibration, and show a bar
        of what takes more than two seconds, with the time left where it is known.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in order.

    priors_ : ndarray of float64 of shape (n_classes,)
        Prior probabilities of the classes.

    estimators_ : list of estimator
        The fitted density of each class. With a joint density, a list with this density alone,
        whose last column is the class.

    offsets_ : ndarray of float64 of shape (n_classes,)
        Offsets of calibration, in nats, which are added to ln p(x | y); 0 without calibration.

    scale_ : float
        Factor of calibration, by which ln p(x | y) is multiplied; 1 without calibration.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    BoltzmannOutlierDetector : Detects improbable rows, without classes.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : Gaussian classes.
    sklearn.naive_bayes.CategoricalNB : Classes of independent columns.

    Notes
    -----
    The default model leaves out columns without an observed cell in `fit`. A string that did not
    occur in `fit` is treated as a missing cell, and so is a new number in a column with at most 8
    different values. Values that occur in some class are known to the densities of all classes.

    Missing cells are summed out exactly if connected missing cells have at most 2**20 joint
    states. For other rows, the default network estimates p(y, x_o) for each class y by annealed
    importance sampling [1]_, where x_o are the observed cells. The standard error of p(y | x_o) is
    at most 0.03, unless that needs more than 1,600 temperatures. The random numbers have a fixed
    seed, so that the probabilities of a row do not depend on the other rows of a call.

    With ``joint=True``, a row without any observed cell gets the marginal probabilities of the
    classes in the network. A pseudo-likelihood fit does not match these to `priors_`; they can
    differ a lot. With ``joint=False``, such a row gets the probabilities `priors_`, up to errors
    of ln Z and to the calibration.

    The offsets o and the factor β of the calibration maximise the mean of ln p(y | x) over the
    held-out rows, minus a small penalty on the squared offsets, where p(y | x) ∝ π(y) exp(β ln p(x
    | y) + o(y)). This function is concave. The densities are fitted to the other rows only.

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
        "columns": COLUMNS,
        "joint": ["boolean", StrOptions({"auto"})],
        "priors": ["array-like", dict, None],
        "calibration": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        columns="auto",
        joint="auto",
        priors=None,
        calibration="auto",
        validation_fraction=0.2,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.columns = columns
        self.joint = joint
        self.priors = priors
        self.calibration = calibration
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the densities.

        Parameters
        ----------
        X : array-like, data frame, or batches, of shape (n_samples, n_features)
            The table; NaN, None and pandas.NA are missing cells. Of
            :class:`~sklearn_boltz.batches.Batches` and Dask collections, all rows are used up to
            four million cells, and otherwise rows with as many, drawn at random.
        y : array-like of shape (n_samples,)
            The class of each row. -1 is a class like any other. None if batches are pairs (X, y).
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`.

        Returns
        -------
        self : BoltzmannClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a row has no label (None, NaN or pandas.NA), if labels are of several types, if there
            is only one class, if `priors` are not probabilities of the classes, if each class has
            its own density and one of them has no value in some column, or if a number is infinite.
            With ``joint=True``, also if `columns` of `estimator` is not ``"auto"``, or if it is no
            RBM and a column holds real numbers. With calibration, also if no class has three rows.

        Warns
        -----
        UserWarning
            If each class has its own density and one of them has a single row.
        """
        with unchanged_on_error(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight):
        """Fit what the attributes need, and set them."""
        batches = self._batches(X, sample_weight)
        if batches is not None:
            X, y = self._sampled_with_labels(*with_labels(batches, y))
        X = self._read(X, reset=True)
        labels = self._checked_labels(y)
        check_consistent_length(X, labels)
        kept, X, weights = self._counted(X, sample_weight)
        y = self._learn_classes(labels, kept, weights)
        generator = check_random_state(fixed(self.random_state))
        self._densities, rows = self._unfitted(X, y, weights, generator)
        weights = None if sample_weight is None else weights
        self.offsets_, self.scale_ = np.zeros(len(self.classes_)), 1.0
        calibration = self.calibration
        if calibration is not True:
            self._fit_densities(rows, y, weights)
        if calibration == "auto":
            calibration = self._densities.are_uncertain()
        if calibration:
            held = held_out(y, self.validation_fraction, generator, "BoltzmannClassifier")
            self._fit_densities(*_some(~held, rows, y, weights))
            rows, y, weights = _some(held, rows, y, weights)
            self.offsets_, self.scale_ = calibrate(
                self._densities.log_likelihoods(rows), y, weights, np.log(self._shares)
            )
            figures = {"rows": len(y), "scale": self.scale_, "largest offset": self.offsets_.max()}
            self._tell("calibration", figures)
        self.estimators_ = self._densities.fitted
        return self

    def _sampled_with_labels(self, batches, y):
        """Random rows of batches, and their labels, of those of all rows."""
        X, rows, n_rows = self._sampled(batches)
        if len(y) != n_rows:
            raise ValueError(
                f"BoltzmannClassifier: y has {len(y)} labels, and the batches have "
                f"{n_rows} rows. Give a label for each row, in their order."
            )
        return X, as_array(y)[rows]

    @told_once
    def predict_log_proba(self, X):
        """Return the log-probabilities of the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; missing cells are summed out.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples, n_classes)
            Values of ln p(y | x), in nats, in the order of `classes_`.
        """
        rows = self._rows(self._read(X))
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
            Values of p(y | x), in the order of `classes_`. Each row sums to 1.
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
            Elements of `classes_`.
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
            Weight of each row. None means equal weights.

        Returns
        -------
        score : float
            Fraction of the rows whose most probable class is correct.
        """
        return super().score(X, y, sample_weight)

    @told_once
    def score_samples(self, X):
        """Return the log-density of each row, over all classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table.

        Returns
        -------
        log_density : ndarray of float64 of shape (n_samples,)
            The log-density of the observed cells, ln p(x) = ln Σ_y π(y) p(x | y), in nats, without
            calibration. It is low for rows that are unlike all classes. For strings, and for
            columns of numbers with at most 8 different values, it is a log-probability.
        """
        X = self._read(X)
        rows = self._rows(X)
        result = self._densities.score_samples(rows, self._log_priors())
        if rows.of_codes:
            result += rows.log_density()
            result += rows.log_unseen(self._n_rows)
        return result

    def _checked_labels(self, y):
        """The labels as an array, all of one type."""
        labels = _check_y(self._labels(y), estimator=self)
        check_one_type(labels, "BoltzmannClassifier")
        check_classification_targets(labels)
        return labels

    def _learn_classes(self, labels, kept, weights):
        """The classes, their shares and priors; -> the numbers of the classes of the rows kept."""
        self.classes_, y = np.unique(labels[kept], return_inverse=True)
        if len(self.classes_) < 2:
            self._refuse_single_class(labels)
        self._n_rows = float(weights.sum())
        self._shares = np.bincount(y, weights) / self._n_rows
        self.priors_ = checked_priors(
            self.priors, self.classes_, self._shares, "BoltzmannClassifier"
        )
        return y

    def _labels(self, y):
        """The labels, unchanged; an error if one is missing."""
        if y is None:
            raise ValueError(
                "BoltzmannClassifier requires y to be passed, but the target y is None. Give the "
                "class of each row."
            )
        check_unmasked(y, "BoltzmannClassifier")
        labels = as_array(y)
        for row, label in enumerate(labels.tolist() if labels.ndim == 1 else ()):
            if is_missing(label):
                raise ValueError(
                    f"BoltzmannClassifier: row {row} has no label. Leave such rows out, or use "
                    "RBMClassifier, which also learns from rows without labels."
                )
        return y

    def _refuse_single_class(self, labels):
        """Refuse labels of which those with a positive weight are of one class."""
        only = f"only one class, {self.classes_.tolist()[0]!r}, but at least two are needed."
        if len(np.unique(labels)) > 1:
            raise ValueError(f"BoltzmannClassifier: the rows with a positive weight have {only}")
        raise ValueError(
            f"BoltzmannClassifier: y has {only} BoltzmannOutlierDetector works with rows of one "
            "class."
        )

    def _log_priors(self):
        with np.errstate(divide="ignore"):  # a prior may be 0
            return np.log(self.priors_)

    def _unfitted(self, X, y, weights, generator):
        """-> densities that know the values of all columns, and their rows."""
        is_joint = self.estimator is None if self.joint == "auto" else self.joint
        n_classes, kinds = len(self.classes_) if is_joint else 0, self._declared()
        self._kept = np.arange(X.shape[1])
        if isinstance(self.estimator, FrozenEstimator):
            return self._fitted_joint(X), self._rows(X)
        if self.estimator is None:
            self._kept = self._observed(missing_cells(X))
            self._encoder = self._learned(coded_table, X, weights, kinds)
            alpha = ALPHA if is_joint else ALPHA_OF_CLASS
            options = {"alpha": alpha, "verbose": self.verbose}
            most_values = max(self._encoder.n_categories.max(), n_classes)
            if most_values > 2 and len(X) * len(self._kept) > MOST_COMPLETED:
                options["missing"] = "observed"
            density = choose_density(self._encoder, len(X), n_classes, **options)
        else:
            with named(self):
                density, self._encoder = with_values(self.estimator, X, n_classes)
        density, self._reader = seeded(density, generator), None
        if self._encoder is None:
            self._reader, rows = self._read_by(density, X, weights)
        else:
            rows = self._rows(X)
        if is_joint:
            return JointDensity(density, self._shares, generator.randint(2**31)), rows
        self._check_classes(X, y)
        return DensityOfEachClass(density), rows

    def _fitted_joint(self, X):
        """The densities of a FrozenEstimator, of columns and class."""
        density, self._encoder = self.estimator.estimator, None
        if self.joint is False or density.n_features_in_ != X.shape[1] + 1:
            raise ValueError(
                "BoltzmannClassifier: a FrozenEstimator has to be a density of the columns of X "
                "and of the class, as its last column. It has "
                f"{density.n_features_in_} columns, X has {X.shape[1]}, and `joint` is "
                f"{self.joint!r}. Fit the density to a table with the class, and leave `joint` at "
                "'auto'."
            )
        return FittedJoint(density, self.classes_, self._shares)

    def _fit_densities(self, rows, y, weights):
        seconds = self._densities.fit(rows, y, weights, self.n_jobs)
        stages, counts = ["joint density"], [len(y)]
        if len(seconds) > 1:
            stages, counts = [f"class {c!r}" for c in self.classes_.tolist()], np.bincount(y)
        for stage, time, n_rows in zip(stages, seconds, counts, strict=True):
            self._tell(stage, {"seconds": time, "rows": n_rows})

    def _check_classes(self, X, y):
        """Reject classes without a value in some column; warn about classes with a single row."""
        names, missing = self.classes_.tolist(), missing_cells(X)
        can_be_joint = self._encoder is not None
        for c in range(len(names)):
            empty = missing[y == c].all(axis=0) & ~missing.all(axis=0)
            if empty.any():
                titles = [title for title, _ in columns_of(X)]
                first, *others = [titles[j] for j in np.flatnonzero(empty)]
                remedy = "Set joint=True, leave" if can_be_joint else "Leave"
                raise ValueError(
                    f"BoltzmannClassifier: no row of class {names[c]!r} has a value in {first}. "
                    f"{remedy} out the column or the class, or fill its missing cells."
                    f"{and_others(others)}"
                )
        counts = np.bincount(y)
        if counts.min() < 2:
            remedy = "Leave this class out."
            if can_be_joint:
                remedy = (
                    "Set joint=True, so that classes share the couplings between columns, or leave "
                    "this class out."
                )
            warn(
                f"BoltzmannClassifier: class {names[counts.argmin()]!r} has a single row, which is "
                f"not enough to fit a density. {remedy}"
            )


def _some(which, rows, y, weights):
    """The rows for which a mask is true, with classes and weights."""
    places = np.flatnonzero(which)
    return rows.some(places), y[places], None if weights is None else weights[places]
