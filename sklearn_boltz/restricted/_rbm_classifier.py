"""RBMClassifier: an RBM of features and a label (Larochelle and Bengio, 2008)."""

from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_boltz._methods import dense, unchanged_on_error, validate_arguments
from sklearn_boltz._new_values import take_new_values
from sklearn_boltz.callbacks import with_callbacks
from sklearn_boltz.numerics._arrays import (
    as_numpy,
    concatenated,
    dispatched,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    taken,
)
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._constraints import MACHINE_SAMPLE_CONSTRAINTS, POSITIVE, SHARE
from sklearn_boltz.restricted._mini_batches import MiniBatchEstimator
from sklearn_boltz.restricted.model._cells import check_observed
from sklearn_boltz.restricted.model._classes import ClassModel, one_hot
from sklearn_boltz.restricted.model._layered import Layered, stacked
from sklearn_boltz.restricted.sampling._class_probabilities import log_probability
from sklearn_boltz.restricted.sampling._observed import by_chunks, by_rows
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._class_monitor import ClassMonitor
from sklearn_boltz.restricted.training._discriminative import ClassLearner, ClassObjective
from sklearn_boltz.restricted.training._epochs import Plan, Training
from sklearn_boltz.restricted.training._initial import (
    INITIAL_SCALE,
    begin_at_init,
    initial_visible,
    is_model,
)
from sklearn_boltz.restricted.training._labelled_rows import LabelledRows
from sklearn_boltz.restricted.training._monitor import BETTER, LIKELIHOOD_ROWS
from sklearn_boltz.restricted.training._optimizers import Adam
from sklearn_boltz.restricted.training._rows import ColumnSums
from sklearn_boltz.restricted.training._schedule import Schedule, enough
from sklearn_boltz.restricted.training._streamed_rows import MOST_VALID
from sklearn_boltz.restricted.training._visits import relative, rows_that_count
from sklearn_boltz.tables._batches import as_batches, with_labels
from sklearn_boltz.tables._labels import encode_labels, is_labelled, learn_classes, split_labels
from sklearn_boltz.tables._weights import checked_weights
from sklearn_boltz.units import Bernoulli, Categorical

# Added to the share of each class; the initial biases are the logarithms of these sums.
LEAST_SHARE = 1e-3


class RBMClassifier(ClassifierMixin, MiniBatchEstimator):
    """Classify rows with a restricted Boltzmann machine of features and label.

    The label is one more visible unit, with a state for each class. Its probabilities given a row
    are exact, and so is the gradient of their logarithms: the machine is trained to predict the
    label (discriminative training), and, with the weight `generative`, to be a good density of rows
    and labels (generative training) [1]_. With the density, rows without labels help, missing cells
    are summed out, and `score_samples` is low for rows that are unlike the training rows.

    Parameters
    ----------
    n_components : int, default=500
        Number of hidden units.

    columns : str, list, dict or UnitType, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"probability"``, the list of its values, or the type of its units, which is
        ``"gaussian"``, ``"truncated_gaussian"``, ``"truncated_gauss_bernoulli"`` or a class of
        `sklearn_boltz.units`; see :ref:`kinds`. A string is the kind of all columns. A dict names
        some, as in ``{"age": "gaussian"}``, by label or number, and a list has an entry for each.
        ``"auto"`` looks at the table: numbers are put into bins, except for those of an array whose
        cells all lie in [0, 1], which are probabilities of a 1.

    generative : float, default=0.01
        Weight of the generative term. Training maximises the mean of ln p(y | x) over labelled
        rows, plus `generative` times the mean of ln p(x, y) over labelled and of ln p(x) over
        unlabelled rows. 0 means discriminative training, which ignores unlabelled rows, and
        ``np.inf`` purely generative training.

    n_gibbs : int, default=1
        Number of Gibbs transitions of contrastive divergence, for the generative term.

    learning_rate : float, default=0.005
        Step size of Adam (adaptive moments) [2]_. It is multiplied by 0.3 whenever `scoring`, of
        the validation rows if there are any, has not improved for three epochs and 400
        mini-batches.

    batch_size : int or "auto", default="auto"
        Number of rows in a mini-batch. ``"auto"`` is a fiftieth of the rows, at least 10 and at
        most 100.

    max_iter : int or "auto", default="auto"
        Maximum number of epochs. With early stopping, ``"auto"`` is 200, or more if these are
        fewer than 10,000 mini-batches. Without it, ``"auto"`` aims at about 3,000 mini-batches, in
        at least 20 and at most 200 epochs.

    dynamic_binarization : bool, default=True
        Whether values of Bernoulli columns between 0 and 1, which are probabilities, are newly
        drawn as 0 or 1 for each mini-batch. This reduces overfitting. Predictions use the values
        as they are.

    sparsity : float, default=0.0
        Constant that is subtracted from the biases of the hidden units after each step, so that
        they are rarely on.

    alpha : float, default=0.0
        Strength of the L2 penalty on the weights.

    init : float, "scaled" or estimator, default=0.01
        A number is the standard deviation of the initial weights; ``"scaled"`` is 1 / √(n + m)
        between layers of n and m numbers. An estimator is the initial model: an RBM of the same
        columns, such as :class:`~sklearn_boltz.SDCPRBM`, with at most `n_components` binary hidden
        units, or a network, such as :class:`~sklearn_boltz.SparseFVBM`, as described for `init` of
        :class:`~sklearn_boltz.SDCPRBM`. If it is not fitted, a clone is fitted to the rows first.
        Cross-validation makes clones, which are not fitted; wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator` to keep it.

    class_weight : dict or "balanced", default=None
        Weights of the rows of each class. ``"balanced"`` gives all classes the same total weight.
        None means weight 1 for each class.

    early_stopping : bool, float or "auto", default="auto"
        Whether to set labelled validation rows aside, a tenth or another share of the labelled
        rows, stratified by class, and to stop when their predictions have not improved for 8 epochs
        and 1,000 mini-batches. The model is then that of the best epoch. ``"auto"`` does so
        if at least 200 rows have a label: with fewer, training would miss the validation rows, and
        these would be too few to find the best epoch.

    scoring : {"neg_log_loss", "accuracy"}, default="neg_log_loss"
        The score that early stopping uses.

    tol : float, default=1e-4
        Smallest change of `scoring` that counts as an improvement.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        What to do, after the fit, with values that did not occur in training: see :ref:`unseen`.
        ``"smooth"`` gives them a small probability in `score_samples` and treats the cells as
        missing elsewhere; ``"missing"`` does so in `score_samples`, too; ``"error"`` raises an
        error. In an array of numbers, this concerns columns of categories only.

    warm_start : bool, default=False
        Whether `fit` continues where the last fit ended, as if it had not been interrupted.
        Columns stay as they are: rows have the columns of the first fit, with its kinds, bins and
        categories, and a warning tells of other categories, which count as missing.

    n_jobs : int, default=None
        Number of threads; None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print the kinds of the columns and a line at the end of a fit; if 1, show a
        bar after two seconds, with the time left without early stopping; if greater, print a line
        for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the initial weights, the order of the rows and Markov chains.
        With None, each fit draws other numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in order, in the array library and on the device of the labels.

    components_ : ndarray of shape (n_components, n_visible)
        The weights W of the columns of X. A column of three or more categories has one column here
        for each category, any other column has one, as named by `visible_names_`.

    components_classes_ : ndarray of shape (n_components, n_classes)
        The weights Uᵀ of the label.

    intercept_classes_ : ndarray of shape (n_classes,)
        Biases d of the label.

    intercept_hidden_ : ndarray of shape (n_components,)
        Biases c of the hidden units.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters are in attributes of their own, such as
        `precision_visible_`, with NaN for units without such a parameter.

    init_ : estimator
        The fitted initial model, if `init` is given.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the columns of `components_`, such as ``city=Rome``.

    log_partition_ : float
        Logarithm of the normalising constant of columns and label, in nats, as ``log_partition()``
        returns it. It is computed at first access.

    do_early_stopping_ : bool
        Whether the last `fit` set rows aside for early stopping.

    history_ : dict of ndarray
        For each epoch of `fit`: ``"log_loss"`` (mean of −ln p(y | x), in nats) and ``"error"``
        (share of wrong predictions) of up to 2,000 labelled training rows, with early stopping
        ``"validation_log_loss"`` and ``"validation_error"`` of the rows set aside;
        ``"learning_rate"`` and ``"seconds"``. With `warm_start`, a figure is NaN in epochs of fits
        that did not measure it.

    n_iter_ : int
        Number of completed epochs.

    columns_ : dict
        The kind of each column, by label or number, as `columns` calls it: declared, or found.

    categories_ : list of length `n_features_in_`
        For each column, its values in the order of their codes 0, 1, 2, ...: an array, or None for
        a column of numbers.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    SDCPRBM : RBM without labels.
    BoltzmannClassifier : Classifies with a network or another density of rows and classes.
    sklearn.neural_network.MLPClassifier : A network with hidden units, without a density.

    Notes
    -----
    With hidden units h and o_yj = c_j + U_yj + W_j·x, p(y | x) ∝ exp(d_y + Σ_j ln(1 + exp(o_yj))),
    eq. 2 of [1]_: a sum over classes and hidden units, without any sampling. Integers and booleans
    are converted to float32. The fit is the same, bit for bit, for any number of threads.

    It is an RBM whose visible units are those of the columns and of the label. In the methods that
    it shares with other RBMs, the label is summed out: `energy` is −ln Σ_y exp(−E(x, y, h)),
    `transform` and `sample_hidden` are for P(h | x), `gibbs` starts at the most probable labels.

    With scikit-learn's ``array_api_dispatch``, PyTorch tensors and CuPy arrays are processed on
    their device if all units are Bernoulli units: see :doc:`/user_guide/gpu`. The labels may be on
    that device or in a NumPy array.

    References
    ----------
    .. [1] H. Larochelle and Y. Bengio, "Classification using discriminative restricted Boltzmann
       machines", ICML 2008. https://doi.org/10.1145/1390156.1390224
    .. [2] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization",
       ICLR 2015. https://arxiv.org/abs/1412.6980

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn_boltz import RBMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> model = RBMClassifier(100, max_iter=20, early_stopping=False, random_state=0)
    >>> model.fit(X_train, y_train).score(X_test, y_test) > 0.95
    True
    >>> model.predict_proba(X_test[:3]).shape
    (3, 10)

    Rows without a label have -1:

    >>> y_train[200:] = -1
    >>> model.fit(X_train, y_train).score(X_test, y_test) > 0.8
    True
    """

    _computes_on_devices = True
    _chosen = ()
    _schedule = Schedule(
        mini_batches=50, length=(3000, 20, 200), longest=(10_000, 200, 10_000), patience=(8, 1000),
        fall_after=(3, 400),
    )  # fmt: skip
    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        "n_components": POSITIVE,
        "generative": [Interval(Real, 0, None, closed="left"), Options(Real, {np.inf})],
        "n_gibbs": POSITIVE,
        "dynamic_binarization": ["boolean"],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "init": [*INITIAL_SCALE, HasMethods(["fit", "score_samples"])],
        "early_stopping": [*SHARE, StrOptions({"auto"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "scoring": [StrOptions({"neg_log_loss", "accuracy"})],
    }

    def __init__(
        self,
        n_components=500,
        *,
        columns="auto",
        generative=0.01,
        n_gibbs=1,
        learning_rate=0.005,
        batch_size="auto",
        max_iter="auto",
        dynamic_binarization=True,
        sparsity=0.0,
        alpha=0.0,
        init=0.01,
        class_weight=None,
        early_stopping="auto",
        scoring="neg_log_loss",
        tol=1e-4,
        unseen="smooth",
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.columns = columns
        self.generative = generative
        self.n_gibbs = n_gibbs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.dynamic_binarization = dynamic_binarization
        self.sparsity = sparsity
        self.alpha = alpha
        self.init = init
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.tol = tol
        self.unseen = unseen
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _known_classes(self):
        """The classes as an ndarray: they lie where the labels of the training did."""
        return as_numpy(self.classes_)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn the parameters by passes over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or batches
            Strings, levels, bits, numbers and dates, see :ref:`tables`; the unit type of a column
            may limit its values. NaN is a missing value, which is summed out.
        y : array-like of shape (n_samples,)
            The label of each row. None, NaN and, if labels are numbers, -1 mean that a row has no
            label. But -1 is a class if all labels are -1 or 1, or if other labels are negative.
            With batches, the labels of all rows in their order, or None if each batch is a pair
            (X, y).
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative (:ref:`weights`); the gradient of a row is multiplied by its weight, divided by
            their mean.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain of its column, if all values of a column are missing,
            or if there are fewer than two classes.

        Warns
        -----
        ConvergenceWarning
            If the parameters diverge. If the labels are predicted no better than by the
            frequencies of the classes. If a number `max_iter` ended a fit with early stopping.
        UserWarning
            If rows with the label -1 are treated as unlabelled, and -1 may be a class.

        Notes
        -----
        After Ctrl-C, the model is that of the last complete epoch. If there is none, the model is
        the one before the fit. With `warm_start`, the next fit continues from it.
        """
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from one mini-batch of any size.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the mini-batch; NaN is a missing value.
        y : array-like of shape (n_samples,)
            The label of each row, as in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever occur; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts in this step; None for once each. All calls are steps of the
            same length, so only the ratios of the weights of a call matter for it.

        Returns
        -------
        self : estimator
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If the parameters diverge; the model is then the one before the call.
        UserWarning
            If a column has categories that the first call did not have; they count as missing.
        """
        with unchanged_on_error(self):
            self._take_classes(classes)
            return self._partial_fit(X, y, sample_weight)

    # Rows and labels.

    def _source(self, X, y, sample_weight, reset, is_batch=False):
        """The rows to train on, with their labels."""
        name, given = type(self).__name__, y
        batches = None if is_batch or dispatched(X) else as_batches(X)
        if batches is not None:
            batches, y = with_labels(batches, y)
        y, present = split_labels(y, name)
        if batches is not None:
            V = self._streamed(batches, sample_weight, reset=reset, indexed=batches is not X)
        else:
            if not (reset or dispatched(X)):
                take_new_values(self, X, sample_weight)
            # On a device, rows to learn from are complete.
            options = {"allow_nan": not dispatched(X), "sample_weight": sample_weight}
            options["lazily"] = not is_batch
            V = self._validated(X, reset=reset, **options)
        if len(y) != V.shape[0]:
            raise ValueError(f"{name}: y has {len(y):,} labels, and X has {V.shape[0]:,} rows.")
        remedy = "Name all classes in the first call of partial_fit, by `classes`, or fit anew."
        if not is_batch:
            remedy = "Fit anew, with warm_start=False."
            if reset:
                self._learn_classes(y, present, given)
        codes = encode_labels(y, present, self._known_classes, name, remedy)
        weights = self._weights(codes, sample_weight)
        if batches is None and not (counts := rows_that_count(V, weights)).all():
            V, codes, weights = taken(V, np.flatnonzero(counts)), codes[counts], weights[counts]
        weights = relative(weights)
        V = DeviceRows(V, weights) if is_foreign(V) else dense(V) if is_batch else V
        rows = LabelledRows(V, codes, weights, bool(self.generative))
        if is_batch:
            return rows, None
        if batches is None:
            check_observed(name, self._encoder, V)
        known = np.unique(codes[codes >= 0])
        if len(known) < 2 and reset:
            found = repr(self._known_classes[known].tolist()[0]) if len(known) else "or none"
            raise ValueError(
                f"{name}: the rows that count have only one class, {found}. There must be at "
                "least two."
            )
        return rows, None

    def _weights(self, codes, sample_weight):
        """How often rows count, with the weights of their classes if they have a label."""
        weights, classes = checked_weights(sample_weight, codes), self._known_classes
        if self.class_weight is None:
            return weights
        labelled = codes >= 0
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in classes]
            if unknown:
                raise ValueError(
                    f"{type(self).__name__}: class_weight has the class {unknown[0]!r}, but the "
                    f"classes are {classes.tolist()}."
                )
            factors = np.array([self.class_weight.get(k, 1.0) for k in classes.tolist()], float)
        else:
            totals = np.bincount(codes[labelled], weights[labelled], len(classes))
            factors = totals.sum() / (len(classes) * np.where(totals > 0, totals, 1))
        return weights * np.where(labelled, factors[codes], 1.0)

    def _take_classes(self, classes):
        """The classes of the first call of `partial_fit`, or the same as then."""
        name = type(self).__name__
        if not hasattr(self, "classes_"):
            if classes is None:
                raise ValueError(
                    f"{name}: classes must be passed on the first call to partial_fit: all labels "
                    "that will ever occur."
                )
            self._learn_classes(*split_labels(classes, name), classes)
        elif classes is not None and not np.array_equal(
            self._known_classes, np.unique(as_numpy(classes))
        ):
            raise ValueError(
                f"{name}: classes={classes!r} is not the same as on the last call to "
                f"partial_fit: {self._known_classes.tolist()}."
            )

    def _learn_classes(self, y, present, given):
        """Find the classes, which lie where the labels were given, as in scikit-learn."""
        classes = learn_classes(y, present, type(self).__name__)
        self.classes_ = like(given, classes) if dispatched(given) else classes

    # Training: what `BaseRBM` asks for.

    def _new_training(self, rows, weights, n_rows):
        rng, V, codes = make_generator(self.random_state), rows.V, rows.codes
        n_classes, dtype, labelled = len(self._known_classes), V.dtype, codes >= 0
        matrix = self._initial_weights(rng, self.n_components, V.shape[1] + n_classes, dtype)
        features, of_label = np.split(matrix, [V.shape[1]], axis=1)
        counts = np.bincount(codes[labelled], rows.weights[labelled], n_classes)
        shares = counts / max(counts.sum(), 1) + LEAST_SHARE
        label = Categorical([n_classes], np.log(shares / shares.mean()).astype(dtype))
        weights = None if (rows.weights == 1).all() else rows.weights
        visible = initial_visible(self._encoder.coding, V, weights)
        hidden = Bernoulli.neutral(self.n_components, dtype)
        base = stacked([visible.astype(dtype), label.astype(dtype)])
        if is_model(self.init):
            visible = begin_at_init(self, features, visible, hidden)
        model = ClassModel.of(Layered([features, of_label.T], [visible, hidden, label]))
        seen = ColumnSums(*rows.observed_sums)
        objective, stream = self._objective(seen), Stream.from_generator(rng)
        return Training(ClassLearner(model, objective, Adam(), stream), rng, seen, base)

    def _objective(self, seen):
        label_share = float(seen.total / seen.n_rows) or 1.0
        settings = self.n_gibbs, self.sparsity, self.alpha, self.dynamic_binarization
        return ClassObjective(float(self.generative), *settings, label_share)

    def _restore(self, training):
        learner, objective = training.learner, self._objective(training.seen)
        # A copy, which learning changes.
        model = ClassModel.of(self._layered().astype(learner.dtype))
        training.learner = ClassLearner(model, objective, learner.optimizer, learner.stream)

    def _plan(self, training, n_rows, stops):
        schedule = self._schedule
        given = self.batch_size, self.max_iter
        size, n_batches, n_epochs = schedule.lengths(*given, n_rows, stops)
        self.do_early_stopping_ = stops
        patience = enough(schedule.patience, n_batches) if stops else None
        fall_after = enough(schedule.fall_after, n_batches)
        return Plan(n_epochs, size, self._first_rate(), patience, self.tol, fall_after=fall_after)

    def _tracker(self, training, stops=False):
        return None  # class probabilities need no ln Z

    def _monitor(self, training, rows, train, valid, weights):
        seed, train = training.evaluation_seed, train[rows.codes[train] >= 0]
        held_out = rows[valid[:MOST_VALID]] if len(valid) else None
        return ClassMonitor(rows[train[:LIKELIHOOD_ROWS]], held_out, self.scoring, seed)

    def _failure_message(self, status, comparison):
        if comparison is not None and not comparison.exceeds(BETTER):
            return (
                f"The labels of the {comparison.rows} are predicted no better than by the "
                f"frequencies of the classes: the log-loss is {-comparison.model:.4g}, and "
                f"{-comparison.independent:.4g} by these. Train longer (max_iter; there were "
                f"{self.n_iter_} epochs) or with another learning_rate, unless the columns tell "
                "nothing of the label."
            )
        if status == "max_iter" and self.do_early_stopping_ and self.max_iter != "auto":
            return (
                f"The labels of the rows set aside were still predicted better after "
                f"{self.n_iter_} epochs. Increase max_iter, or fit on with warm_start."
            )
        return super()._failure_message(status, None) if status == "diverged" else None

    # The model.

    def _marginal(self):
        return ClassModel.of(self._layered())

    def __sklearn_array_api_convert__(self, convert):
        other = super().__sklearn_array_api_convert__(convert)
        if self._known_classes.dtype.kind in "biuf":
            other.classes_ = convert(self.classes_)
        return other

    # Labels.

    def predict_log_proba(self, X):
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `predict_proba`.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples, n_classes)
            Values of ln p(y | x), in nats, in the order of `classes_`.
        """
        check_is_fitted(self)
        V, (_, base, model, seed, _) = self._checked(X, True, lazily=True), self._distribution()
        with Workers(self.n_jobs) as workers:
            return log_probability(model, V, seed, workers, base)

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, which is summed out: exactly if the missing values,
            with the label, or the hidden units have no more joint states than 2**23 divided by the
            number of all units, and otherwise by short Markov chains with the observed values
            clamped. The result is the same in each call.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_classes)
            Values of p(y | x), exact for complete rows, in the order of `classes_`.
        """
        log_p = self.predict_log_proba(X)
        return namespace_of(log_p).exp(log_p)

    def predict(self, X):
        """Return the most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `predict_proba`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Classes.
        """
        log_p, classes = self.predict_log_proba(X), self._known_classes
        if is_foreign(log_p) and classes.dtype.kind in "biuf":
            return taken(like(log_p, classes), namespace_of(log_p).argmax(log_p, axis=1))
        return classes[as_numpy(log_p).argmax(axis=1)]

    def decision_function(self, X):
        """Return the log-odds of two classes, or the log-probabilities of more.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `predict_proba`.

        Returns
        -------
        decision : ndarray of float64 of shape (n_samples,) or (n_samples, n_classes)
            For two classes, the log-odds of the second; for more, ln p(y | x).
        """
        log_p = self.predict_log_proba(X)
        return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p

    def score(self, X, y, sample_weight=None):
        """Return the accuracy in the rows that have a label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `predict_proba`.
        y : array-like of shape (n_samples,)
            Labels, as in `fit`. Rows without one, -1, None or NaN, are left out.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        score : float
            The share of the labelled rows whose most probable class is their label.

        Raises
        ------
        ValueError
            If no row has a label.

        Notes
        -----
        Scorers of scikit-learn, such as ``scoring="accuracy"``, treat -1 as a class. A search with
        ``scoring=None`` uses this function.
        """
        check_is_fitted(self)
        name = type(self).__name__
        check_consistent_length(X, y, sample_weight)
        y, present = split_labels(y, name)
        labelled = is_labelled(y, present, self._known_classes)
        if not labelled.any():
            raise ValueError(
                f"{name}.score: no row has a label; -1, None and NaN stand for rows without one. "
                "Give rows with labels."
            )
        weights = None if sample_weight is None else as_numpy(sample_weight)[labelled]
        return accuracy_score(
            y[labelled], as_numpy(self.predict(X))[labelled], sample_weight=weights
        )

    # Hidden units, and the density of rows.

    def free_energy(self, X, y=None):
        """Return the free energy of each row: −ln p(x) up to a constant.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value.
        y : array-like of shape (n_samples,), default=None
            Labels, for the free energy of rows with their labels; None to sum labels out.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            −ln Σ_yh exp(−E(x, y, h)), in nats, where continuous columns are standardised. In a row
            with missing values, these are summed out, too: exactly where they, with the label, or
            the hidden units have at most 20 bits, otherwise by annealed importance sampling with 50
            chains for the row. The result is the same in each call.
        """
        if y is None:
            return super().free_energy(X)
        V, model, name = self._checked(X, allow_nan=True), self._model(), type(self).__name__
        check_consistent_length(V, y)
        codes = encode_labels(*split_labels(y, name), self._known_classes, name)
        labels = one_hot(codes, len(self._known_classes), numpy_dtype(self.components_))
        if not is_foreign(V):
            rows = np.hstack([dense(V), labels])
            return by_rows(model.free_energy, self._free_energy_of_gaps, rows)
        of_rows = by_chunks(model.free_energy, concatenated([V, like(V, labels)], axis=1))
        without = by_chunks(self._marginal().free_energy, V)
        return namespace_of(V).where(like(V, codes < 0), without, of_rows)

    def score_samples(self, X, y=None):
        """Return the log-probability of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value.
        y : array-like of shape (n_samples,), default=None
            Labels, for the log-probability of rows with their labels; None to sum labels out.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            Values of ln p(x), or ln p(x, y), in nats: normalised, and the same in each call. For a
            row with missing values, the log-probability of the observed ones.

        Notes
        -----
        The generative term makes it a density of the data: with ``generative=0`` the machine models
        labels given rows, but not the rows.
        """
        if y is None:
            return super().score_samples(X)
        free_energy = self.free_energy(X, y)
        return self._with_cells(X, self._known_cells(X), -free_energy - self.log_partition_)

    # Rows that the machine makes.

    @validate_arguments(MACHINE_SAMPLE_CONSTRAINTS | {"y": ["array-like", str, Real, None]})
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
        y=None,
    ):
        """Draw samples from the model by Markov chains, one for each sample.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by their names or numbers: samples are then from the
            conditional distribution of the others.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.
        temperature : float, default=1.0
            T > 0: samples are from the distribution ∝ p(x, y, h)^(1/T).
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
        n_temperatures : int, default=None
            With more than 1, parallel tempering, as in :class:`~sklearn_boltz.SDCPRBM`.
        init : array-like of shape (n_rows, n_features) or "ladder", default=None
            Rows where the chains start, in turn, or ``"ladder"``, as in
            :class:`~sklearn_boltz.SDCPRBM`.
        y : label or array-like of shape (n_samples,), default=None
            The class of the samples, which are then from p(x | y); or, without `where`, the class
            of each. None for p(x).

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like that of the training.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.
        """
        check_is_fitted(self)
        check_drawn(self, n_samples, itemsize=4)
        labels = None
        if y is not None:
            name, n_classes = type(self).__name__, len(self._known_classes)
            y = as_numpy(y) if is_foreign(y) else y
            found, present = split_labels(np.atleast_1d(y), name)
            if len(found) not in (1, n_samples) or not present.all():
                raise ValueError(
                    f"{name}.sample: y must be one class or one for each of the {n_samples} "
                    f"samples, got {y!r}."
                )
            codes = encode_labels(found, present, self._known_classes, name)
            if where is not None and len(np.unique(codes)) > 1:
                raise ValueError(f"{name}.sample: with `where`, y must be a single class.")
            labels = one_hot(np.broadcast_to(codes, n_samples), n_classes)
        return self._sample_where(
            where, n_samples, random_state, given, labels, temperature=temperature, n_steps=n_steps,
            n_temperatures=n_temperatures or 1, init=init,
        )  # fmt: skip
