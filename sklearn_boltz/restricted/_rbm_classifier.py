"""RBMClassifier: an RBM of features and a label (Larochelle and Bengio, 2008)."""

from copy import deepcopy
from functools import cache, partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_boltz._estimator import checked_weights, dense, unchanged_on_error, validate_arguments
from sklearn_boltz.callbacks import with_callbacks
from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    concatenated,
    dispatched,
    is_foreign,
    like,
    logsumexp,
    namespace_of,
    numpy_dtype,
    taken,
)
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import (
    DEVICE_ROWS,
    IMPUTE_CONSTRAINTS,
    SAMPLE_CONSTRAINTS,
    by_processor,
)
from sklearn_boltz.restricted._mini_batches import MiniBatchEstimator, enough
from sklearn_boltz.restricted.model._classes import ClassModel, joint_units
from sklearn_boltz.restricted.model._columns import parameter_names, published, with_published
from sklearn_boltz.restricted.model._model import CONTINUUM, Model, log_pseudo_likelihood_by
from sklearn_boltz.restricted.sampling import _array_chains, _conditional, _observed
from sklearn_boltz.restricted.sampling._class_probabilities import (
    by_blocks,
    log_probability,
    log_probability_of_gaps,
)
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._class_monitor import ClassMonitor
from sklearn_boltz.restricted.training._discriminative import Learner, Objective
from sklearn_boltz.restricted.training._epochs import Plan, Training
from sklearn_boltz.restricted.training._initial import INITIAL_SCALE, is_model, start_of
from sklearn_boltz.restricted.training._labelled_rows import (
    LabelCounts,
    LabelledDeviceRows,
    LabelledRows,
    LabelledStream,
    stratified,
)
from sklearn_boltz.restricted.training._monitor import BETTER, LIKELIHOOD_ROWS
from sklearn_boltz.restricted.training._optimizers import Adam
from sklearn_boltz.restricted.training._progress import Fall
from sklearn_boltz.restricted.training._rows import (
    MOST_VALID,
    ChosenRows,
    StreamedRows,
    check_observed,
    held_out_share,
    of_some,
    relative,
    that_count,
)
from sklearn_boltz.tables._batches import as_batches, with_labels
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._labels import encode_labels, is_labelled, learn_classes, split_labels
from sklearn_boltz.units import Bernoulli, Categorical

# With batch_size="auto", a fiftieth of the rows, within limits.
ROWS_PER_BATCH, LEAST_BATCH, MOST_BATCH = 50, 10, 100
# With max_iter="auto" and early stopping, epochs and mini-batches at most; without, about so many
# mini-batches, and epochs within limits.
MOST_EPOCHS, MOST_BATCHES = 200, 10_000
AUTO_BATCHES, LEAST_EPOCHS = 3000, 20
# Number of epochs and of mini-batches without progress after which early stopping ends training.
END_AFTER, END_AFTER_BATCHES = 8, 1000
# Number of epochs and of mini-batches without progress after which the learning rate is multiplied
# by FALL.
FALL_AFTER, FALL_AFTER_BATCHES, FALL = 3, 400, 0.3
# With early_stopping="auto", rows are set aside if so many have a label.
ENOUGH_LABELS = 200
# What is added to the share of each class, of which the logarithms are the first biases.
LEAST_SHARE = 1e-3


class RBMClassifier(ClassifierMixin, MiniBatchEstimator):
    """Classify rows with a restricted Boltzmann machine of features and label.

    The label is one more visible unit, with a state for each class. Its probabilities given a row
    are exact, and so is the gradient of their logarithms: the machine is trained to predict the
    label (discriminative training), and with a part `generative` to be a good density of rows and
    labels (generative training) [1]_. With the density, rows without labels help,
    missing cells are summed out, and `score_samples` is low for rows that are unlike the training
    rows.

    Parameters
    ----------
    n_components : int, default=500
        Number of hidden units.

    columns : str, list, dict or UnitType, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"probability"``, the list of its values, or the type of its units, which is
        ``"gaussian"``, ``"truncated_gaussian"``, ``"truncated_gauss_bernoulli"`` or a class of
        `sklearn_boltz.units`; see :ref:`kinds`. A string is the kind of all columns. A dict names
        some, as in ``{"age": "gaussian"}``, by name or number, and a list has an entry for each.
        ``"auto"`` looks at the table: numbers are put into bins, but for those of an array whose
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

    n_jobs : int, default=None
        Number of threads; None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print the kinds of the columns, and a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the initial weights, the order of the rows and Markov chains.

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
        The kind of each column, by name or number, as `columns` calls it: as declared, or as found.

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
    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "generative": [Interval(Real, 0, None, closed="left"), Options(Real, {np.inf})],
        "n_gibbs": [Interval(Integral, 1, None, closed="left")],
        "dynamic_binarization": ["boolean"],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "init": [*INITIAL_SCALE, HasMethods(["fit", "score_samples"])],
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
            Words, levels, bits, numbers and dates, see :ref:`tables`; units that `columns` gives
            may limit the values. NaN is a
            missing value, which is summed out.
        y : array-like of shape (n_samples,)
            The label of each row. None, NaN and, if labels are numbers, -1 mean that a row has no
            label. But -1 is a class if all labels are -1 or 1, or if other labels are negative.
            With batches, the labels of all rows in their order, or None if each batch is a pair
            (X, y).
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, by which its gradient is multiplied. None means equal weights.

        Returns
        -------
        self : object
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
            If rows with the label -1 are taken for rows without a label, and it may be a class.

        Notes
        -----
        After Ctrl-C, the model is that of the last complete epoch. If there is none, the model is
        the one before the fit. With `warm_start`, the next fit continues from it.
        """
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from one mini-batch, of any length.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the mini-batch; NaN is a missing value.
        y : array-like of shape (n_samples,)
            The label of each row, as in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All classes that there will be: needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None for equal weights.

        Returns
        -------
        self : object
            The estimator.

        Warns
        -----
        ConvergenceWarning
            If parameters grow beyond all bounds; the model is then the one before the call.
        """
        with unchanged_on_error(self):
            self._take_classes(classes)
            return self._partial_fit(X, y, sample_weight)

    # Rows and labels.

    def _source(self, X, y, sample_weight, reset):
        """The rows to train on, with their labels."""
        name, given = type(self).__name__, y
        batches = None if dispatched(X) else as_batches(X)
        if batches is None:
            V, y, present = self._validated_with_labels(X, y, sample_weight, reset)
        else:
            batches, y = with_labels(batches, y)
            y, present = split_labels(y, name)
        if reset:
            self._learn_classes(y, present, given)
        remedy = "Fit anew, with warm_start=False."
        codes = encode_labels(y, present, self._known_classes, name, remedy)
        if batches is None:
            rows = self._labelled(V, codes, sample_weight)
            check_observed(self, rows.V)
        else:
            rows = self._streamed(batches, codes, sample_weight, reset, batches is not X)
        codes = np.unique(rows.codes[rows.codes >= 0])
        if len(codes) < 2 and reset:
            found = repr(self._known_classes[codes].tolist()[0]) if len(codes) else "or none"
            raise ValueError(
                f"{name}: the rows that count have only one class, {found}. There must be two at "
                "least."
            )
        return rows, None

    def _streamed(self, batches, codes, sample_weight, reset, indexed):
        """Rows in batches with their labels."""
        batches = self._begin_batches(batches, sample_weight, reset)
        V = StreamedRows(self, batches, indexed=indexed)
        if reset:
            self._count_values(V)
        if len(codes) != V.shape[0]:
            raise ValueError(
                f"{type(self).__name__}: y has {len(codes):,} labels, and the batches have "
                f"{V.shape[0]:,} rows."
            )
        weights = self._weights(codes, sample_weight, np.empty((V.shape[0], 0)))
        return LabelledStream(V, codes, None if weights is None else relative(weights))

    def _rows_of_batch(self, X, y, sample_weight, reset):
        """The rows of a mini-batch that count, with their labels."""
        V, y, present = self._validated_with_labels(X, y, sample_weight, reset)
        remedy = "Name all classes in the first call of partial_fit, by `classes`, or fit anew."
        codes = encode_labels(y, present, self._known_classes, type(self).__name__, remedy)
        return self._labelled(dense(V), codes, sample_weight), None

    def _mini_batch(self, rows):
        if isinstance(rows, LabelledDeviceRows):
            return rows[rows.places(np.arange(len(rows)))]
        return rows

    def _labelled(self, V, codes, sample_weight):
        """The rows that count, with the codes of their labels."""
        V, codes, weights = self._counted(V, codes, sample_weight)
        if is_foreign(V):
            return LabelledDeviceRows(DeviceRows(V, weights), codes, weights)
        return LabelledRows(V, codes, weights)

    def _validated_with_labels(self, X, y, sample_weight, reset):
        """-> rows of the visible units, labels, and which rows have one."""
        name = type(self).__name__
        if y is None:
            split_labels(y, name)
        # On a device, rows to learn from are complete.
        allow_nan = not dispatched(X)
        V = self._validated(X, reset=reset, allow_nan=allow_nan, sample_weight=sample_weight)
        y, present = split_labels(y, name)
        check_consistent_length(V, y)
        return V, y, present

    def _counted(self, V, codes, sample_weight):
        """The rows that count, codes of their labels, and their weights."""
        weights = self._weights(codes, sample_weight, V)
        counts = that_count(V, weights)
        if not counts.all():
            rows = taken(V, np.flatnonzero(counts)) if is_foreign(V) else V[counts]
            V, codes, weights = rows, codes[counts], of_some(weights, counts)
        return V, codes, None if weights is None else relative(weights)

    def _weights(self, codes, sample_weight, V):
        """How often rows count, with the weights of their classes."""
        weights = None
        if sample_weight is not None:
            if is_foreign(sample_weight):
                sample_weight = as_numpy(sample_weight)
            of_rows = np.empty((V.shape[0], 0)) if is_foreign(V) else V
            weights = checked_weights(sample_weight, of_rows)
        return weights if self.class_weight is None else self._times_class_weights(codes, weights)

    def _times_class_weights(self, codes, weights):
        """The weights of rows times those of their classes; rows without a label keep theirs."""
        labelled, classes = codes >= 0, self._known_classes
        n_classes = len(classes)
        weights = np.ones(len(codes)) if weights is None else weights
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in classes]
            if unknown:
                raise ValueError(
                    f"{type(self).__name__}: class_weight has the class {unknown[0]!r}, but the "
                    f"classes are {classes.tolist()}."
                )
            factors = [self.class_weight.get(label, 1.0) for label in classes.tolist()]
            factors = np.array(factors, dtype=np.float64)
        else:
            totals = np.bincount(codes[labelled], weights[labelled], n_classes)
            factors = totals.sum() / (n_classes * np.where(totals > 0, totals, 1))
        weights = weights.astype(np.float64)
        weights[labelled] *= factors[codes[labelled]]
        return weights

    def _take_classes(self, classes):
        """The classes of the first call of `partial_fit`, or the same as then."""
        name = type(self).__name__
        if not hasattr(self, "classes_"):
            if classes is None:
                raise ValueError(
                    f"{name}: classes must be passed on the first call to partial_fit: all labels "
                    "that there will be."
                )
            self._learn_classes(*split_labels(classes, name), classes)
        elif classes is not None:
            if is_foreign(classes):
                classes = as_numpy(classes)
            if not np.array_equal(self._known_classes, np.unique(classes)):
                raise ValueError(
                    f"{name}: classes={classes!r} is not the same as on the last call to "
                    f"partial_fit: {self._known_classes.tolist()}."
                )

    def _learn_classes(self, y, present, given):
        """Find the classes, which lie where the labels were given, as in scikit-learn."""
        classes = learn_classes(y, present, type(self).__name__)
        self.classes_ = like(given, classes) if dispatched(given) else classes

    # Training: what `MiniBatchEstimator` asks for.

    def _begun(self, rows, weights, n_rows):
        rng, (V, codes, weights) = make_generator(self.random_state), rows.parts
        n_classes, dtype = len(self._known_classes), V.dtype
        matrix = self._initial_weights(rng, self.n_components, V.shape[1] + n_classes, dtype)
        counts = np.bincount(codes[codes >= 0], of_some(weights, codes >= 0), n_classes)
        shares = counts / max(counts.sum(), 1) + LEAST_SHARE
        label = Categorical([n_classes], np.log(shares / shares.mean()).astype(dtype))
        visible = self._initial_visible(V, weights)
        hidden = Bernoulli.neutral(self.n_components, dtype)
        base = visible.astype(dtype), label.astype(dtype)
        matrix = np.asfortranarray(matrix)
        if is_model(self.init):
            visible = start_of(self, self.init_, self.n_components).give(
                matrix[:, : V.shape[1]], visible, hidden
            )
        model = ClassModel(matrix, visible, hidden, label)
        learner = Learner(model, self._objective(), Adam(), Stream.from_generator(rng))
        training = Training(learner, rng, LabelCounts.of(rows))
        learner.label_share = training.seen.share
        training.base = base
        return training.moved(partial(like, V.array)) if isinstance(V, DeviceRows) else training

    def _objective(self):
        return Objective(
            generative=float(self.generative),
            n_gibbs=self.n_gibbs,
            sparsity=self.sparsity,
            alpha=self.alpha,
            binarized=self.dynamic_binarization,
        )

    def _resumed(self, n_rows=None):
        n_units = self.components_.shape[0]
        if n_units != self.n_components:
            raise ValueError(
                f"RBMClassifier: n_components is {self.n_components}, but the model to continue "
                f"from has {n_units} components. Set n_components={n_units}, or fit with "
                "warm_start=False."
            )
        training = self._training.copy()
        # The public attributes are the truth, also where a user has set them. Learning changes
        # arrays in place.
        training.learner.take(deepcopy(self._class_model()))
        training.learner.objective = self._objective()
        training.learner.label_share, training.learner.repeats = training.seen.share, 1
        return training

    def _with_more(self, seen, rows, weights=None):
        return seen + LabelCounts.of(rows)

    def _tracker(self, training, stops=False):
        return None

    def _divide(self, training, rows, weights, stops):
        self.do_early_stopping_ = stops
        share = held_out_share(self.early_stopping) if stops else 0
        seed, name = training.evaluation_seed, type(self).__name__
        train, valid = stratified(rows.codes, share, seed, name)
        if isinstance(rows, LabelledStream):  # rows without any cell
            train, valid = (some[~np.isin(some, rows.V.useless)] for some in (train, valid))
        monitor = partial(self._monitor, training, rows, train, valid)
        if isinstance(rows, LabelledStream) and not rows.V.indexed:
            return rows.all_but(valid), cache(monitor)
        # Where labels are few, their rows come more often, with as much less weight, so that each
        # mini-batch has some.
        labelled = rows.codes[train] >= 0
        n_labelled = int(labelled.sum())
        if self.generative and n_labelled:
            repeats = max(1, (len(train) - n_labelled) // n_labelled)
            training.learner.repeats = repeats
            train = np.repeat(train, np.where(labelled, repeats, 1))
        return ChosenRows(rows, train), cache(monitor)

    def _stops_early(self, rows):
        if self.early_stopping == "auto":
            codes = rows.codes
            counts = np.bincount(codes[codes >= 0], minlength=1)
            return bool(counts.sum() >= ENOUGH_LABELS and counts.max() > 1)
        return bool(self.early_stopping)

    def _plan(self, training, n_rows, stops):
        size, n_epochs = self.batch_size, self.max_iter
        if size == "auto":
            size = int(np.clip(n_rows // ROWS_PER_BATCH, LEAST_BATCH, MOST_BATCH))
        n_batches = max(1, round(n_rows / size))
        if n_epochs == "auto" and stops:
            n_epochs = enough(MOST_EPOCHS, MOST_BATCHES, n_batches)
        elif n_epochs == "auto":
            n_epochs = int(np.clip(AUTO_BATCHES // n_batches, LEAST_EPOCHS, MOST_EPOCHS))
        patience = enough(END_AFTER, END_AFTER_BATCHES, n_batches) if stops else None
        fall = Fall(enough(FALL_AFTER, FALL_AFTER_BATCHES, n_batches), FALL)
        return Plan(n_epochs, size, self._first_rate(), patience, self.tol, fall=fall)

    def _monitor(self, training, rows, train, valid):
        seed, train = training.evaluation_seed, train[rows.codes[train] >= 0]
        held_out = rows[valid[:MOST_VALID]] if len(valid) else None
        return ClassMonitor(rows[train[:LIKELIHOOD_ROWS]], held_out, self.scoring, seed)

    def _chosen(self, learner):
        return {}

    def _attributes(self, training):
        model = training.learner.model()
        exposed = {
            "components_": model.weights,
            "components_classes_": model.label_weights,
            "intercept_classes_": model.label.intercept,
            "intercept_hidden_": model.hidden.intercept,
        }
        for name, value in published(model.visible).items():
            exposed[f"{name}_visible_"] = value
        return {
            **exposed,
            "_visible_types": model.visible,
            "_base_units": training.base,
            **self._state(training),
        }

    def _trouble(self, status, comparison):
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
        return super()._trouble(status, None) if status == "diverged" else None

    # The model.

    def _class_model(self):
        kinds, dtype = self._visible_types, numpy_dtype(self.components_)
        values = {name: getattr(self, f"{name}_visible_") for name in parameter_names(kinds)}
        return ClassModel.of(
            self.components_, as_type(self.components_classes_, dtype),
            with_published(kinds, values, dtype),
            Bernoulli(self.intercept_hidden_).astype(dtype),
            Categorical([len(self._known_classes)], self.intercept_classes_).astype(dtype),
        )  # fmt: skip

    def _model(self):
        return self._class_model().joint()

    def _layered(self):
        return self._class_model().layered()

    def _base(self):
        return self._near(joint_units(*self._base_units), self.components_)

    def _parameters(self):
        model = self._class_model()
        units = [model.hidden, model.label, model.visible]
        return [model.joint_weights, *(a for u in units for a in u.parameters().values())]

    def _side(self, V):
        """Rows of features with the most probable label."""
        model = self._class_model()
        log_p = model.log_probability(model.hidden_field(V))
        codes = namespace_of(log_p).argmax(log_p, axis=1)
        return model.joint_rows(V, codes)

    def _moved_attributes(self, convert):
        moved = super()._moved_attributes(convert)
        moved["_visible_types"] = self._visible_types.moved(convert)
        if self._known_classes.dtype.kind in "biuf":
            moved["classes_"] = convert(self.classes_)
        return moved

    def _attributes_of_arrays(self):
        of_visible = [f"{name}_visible_" for name in parameter_names(self._visible_types)]
        return ["components_", "components_classes_", "intercept_classes_", "intercept_hidden_",
                *of_visible]  # fmt: skip

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

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
            The numbers ln p(y | x), in the order of `classes_`.
        """
        check_is_fitted(self)
        V, model = self._checked(X, allow_nan=True), self._class_model()
        with Workers(self.n_jobs) as workers:
            return self._by_rows(
                lambda rows: log_probability(model, rows, workers),
                lambda rows: log_probability_of_gaps(model, rows, self._evaluation_seed, workers),
                V,
            )

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, which is summed out: exactly where at most 10 binary
            values of a row are missing, with log2(n_classes) for the label, or there are at most 12
            hidden units, and otherwise by short Markov chains with the observed values clamped,
            the same each time.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_classes)
            The numbers p(y | x), exact for complete rows, in the order of `classes_`.
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
            Of two classes, the log-odds of the second; of more, ln p(y | x).
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
        Scorers of scikit-learn, such as ``scoring="accuracy"``, take -1 for a class. A search with
        ``scoring=None`` takes this function.
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
        if not labelled.all():
            numbers = np.flatnonzero(labelled)
            X, y = taken(X, numbers) if is_foreign(X) else some_rows(X, numbers), y[numbers]
            if sample_weight is not None:
                sample_weight = as_numpy(sample_weight)[numbers]
        weights = None if sample_weight is None else as_numpy(sample_weight)
        return accuracy_score(y, as_numpy(self.predict(X)), sample_weight=weights)

    # Hidden units, and the density of rows.

    def transform(self, X):
        """Return the means of the hidden units, features for another model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. NaN is a missing value, as in `mean_hidden`.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            P(h = 1 | x), the label summed out.
        """
        return self.mean_hidden(X)

    def mean_hidden(self, V):
        """Return the means of the hidden units given the features, the label summed out.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value, which is summed out as in
            `predict_proba`.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            P(h = 1 | x).
        """
        V, model = self._checked(V, allow_nan=True), self._class_model()

        def of_gaps(rows):
            with_label = model.joint_rows(rows)
            return self._of_gaps(_observed.mean_hidden, with_label)

        with Workers(self.n_jobs) as workers:
            of_complete = partial(by_blocks, lambda _, fields: model.mean_hidden(fields), model)
            return self._by_rows(lambda rows: of_complete(rows, workers), of_gaps, V)

    def energy(self, V, H):
        """Return the energy of states of the features and the hidden units, the label summed out.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units.
        H : array-like of shape (n_samples, n_components)
            Values of the hidden units.

        Returns
        -------
        energy : ndarray of float64 of shape (n_samples,)
            −ln Σ_y exp(−E(x, y, h)), in nats.
        """
        V, model = self._checked(V), self._class_model()
        if is_foreign(V):
            H = as_type(like(V, H), numpy_dtype(V))
        else:
            H = np.ascontiguousarray(H, dtype=model.dtype)
        if H.shape != (V.shape[0], len(model.hidden)):
            raise ValueError(
                f"H must have shape ({V.shape[0]}, {len(model.hidden)}), got {H.shape}."
            )
        of_label = model.label.log_partition_sum(H @ model.label_weights)
        features = Model(model.weights, model.visible, model.hidden)
        return features.energy(V, H) - of_label

    def free_energy(self, V, y=None):
        """Return the free energy of rows, minus the log-probability but for a constant.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value.
        y : array-like of shape (n_samples,), default=None
            Labels, for the free energy of rows with their labels; None to sum labels out.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            −ln Σ_yh exp(−E(x, y, h)), in nats, where real columns are standardised. In a row with
            missing values, these are summed out, too: exactly where they, with the label, or the
            hidden units have at most 20 bits, otherwise by annealed importance sampling with 50
            chains for the row, the same each time.
        """
        V, model = self._checked(V, allow_nan=True), self._class_model()
        if y is not None:
            return self._joint_free_energy(V, y, model)

        def of_complete(rows):
            return model.free_energy(rows, model.hidden_field(rows))

        return self._by_rows(of_complete, lambda rows: self._of_gaps_and_labels(rows, None), V)

    def _joint_free_energy(self, V, y, model):
        """F of rows with their labels, of which some may have none."""
        check_consistent_length(V, y)
        name = type(self).__name__
        codes = encode_labels(*split_labels(y, name), self._known_classes, name)
        if is_foreign(V):
            return self._joint_free_energy_of_arrays(V, codes, model)
        found = np.empty(V.shape[0])
        gaps = rows_with_gaps(V)
        gaps = np.zeros(len(found), dtype=bool) if gaps is None else gaps
        for rows in np.array_split(np.arange(len(found)), max(1, len(found) // 1000)):
            part, labels = dense(V[rows]), codes[rows]
            log_weights = model.class_log_weights(model.hidden_field(np.nan_to_num(part)))
            of_label = log_weights[np.arange(len(rows)), labels]
            total = np.where(labels < 0, logsumexp(log_weights), of_label)
            found[rows] = -model.visible.log_weight(np.nan_to_num(part)) - total
        if gaps.any():
            found[gaps] = self._of_gaps_and_labels(V[gaps], codes[gaps])
        return found

    def _joint_free_energy_of_arrays(self, V, codes, model):
        """`_joint_free_energy` where the rows lie."""
        xp, parts, codes = namespace_of(V), [], like(V, codes)
        classes = like(V, np.arange(model.n_classes))
        for rows in gen_batches(V.shape[0], DEVICE_ROWS):
            part, labels = V[rows, :], codes[rows][:, None]
            log_weights = model.class_log_weights(model.hidden_field(part))
            # What is summed is all classes, or the one of the label.
            counts = xp.logical_or(labels < 0, labels == classes)
            log_weights = xp.where(counts, log_weights, log_weights * 0 - np.inf)
            parts.append(-model.visible.log_weight(part) - logsumexp(log_weights))
        return concatenated(parts)

    def _of_gaps_and_labels(self, V, codes):
        """F of rows with missing values, and of their labels, if these are given."""
        rows = self._class_model().joint_rows(V, codes)
        with Workers(self.n_jobs) as workers:
            found = _observed.free_energy(
                self._model(), self._base(), rows, self._evaluation_seed, workers
            )
        return self._with_missing(V, found)

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
            The numbers ln p(x), or ln p(x, y), in nats: normalised, and the same each time. Of a
            row with missing values, the log-probability of those that are observed.

        Notes
        -----
        The generative term makes it a density of the data: with ``generative=0`` the machine knows
        labels given rows and nothing of the rows.
        """
        return self._with_cells(X, -self.free_energy(X, y) - self.log_partition_)

    @by_processor
    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row, the label summed out.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. A value between two states of a unit counts as a mixture of them: between
            0 and 1, as the probability of a 1. NaN is a missing value.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the features of ln p(x_i | all other features), in nats. In a row with
            missing values, the sum is over the observed ones, each given the other observed ones;
            the missing ones are summed out as in `predict_proba`.

        Raises
        ------
        ValueError
            If the visible units have a continuum of values.
        """
        X, model = self._checked(X, allow_nan=True), self._class_model()
        if not model.visible.is_enumerable:
            raise ValueError(CONTINUUM)

        def free_energy(rows):
            return model.free_energy(rows, model.hidden_field(rows))

        def of_gaps(rows):
            return self._of_gaps(_observed.log_pseudo_likelihood, model.joint_rows(rows))

        of_complete = partial(log_pseudo_likelihood_by, free_energy, model.visible)
        return self._by_rows(of_complete, of_gaps, X)

    # Rows that the machine makes.

    @validate_arguments(SAMPLE_CONSTRAINTS | {"y": ["array-like", str, Real, None]})
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        temperature=1.0,
        y=None,
        n_steps=1000,
        init=None,
        n_temperatures=1,
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
        temperature : float, default=1.0
            T > 0: samples are from the distribution ∝ p(x, y, h)^(1/T).
        y : label or array-like of shape (n_samples,), default=None
            The class of the samples, or that of each: they are then from p(x | y). None for p(x).
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
        init : array-like of shape (n_rows, n_features) or "ladder", default=None
            Rows where the chains start, in turn, or ``"ladder"``, as in
            :class:`~sklearn_boltz.SDCPRBM`.
        n_temperatures : int, default=1
            With more than 1, parallel tempering, as in :class:`~sklearn_boltz.SDCPRBM`.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like that of the training.
        """
        check_is_fitted(self)
        if y is None:
            return super().sample(
                n_samples, random_state, given=given, temperature=temperature, n_steps=n_steps,
                init=init, n_temperatures=n_temperatures,
            )  # fmt: skip
        check_drawn(self, n_samples, itemsize=4)
        y = as_numpy(y) if is_foreign(y) else y
        if is_foreign(self.components_) and (
            given or n_temperatures > 1 or self._draws_exactly(init)
        ):
            rows = self.move_to(np).sample(
                n_samples, random_state, given=given, temperature=temperature, y=y,
                n_steps=n_steps, init=as_numpy(init) if is_foreign(init) else init,
                n_temperatures=n_temperatures,
            )  # fmt: skip
            return like(self.components_, rows)
        labels, labelled = split_labels(np.atleast_1d(y), type(self).__name__)
        if len(labels) not in (1, n_samples) or not labelled.all():
            raise ValueError(
                f"{type(self).__name__}.sample: y must be one class or one for each of the "
                f"{n_samples} samples, got {y!r}."
            )
        codes = encode_labels(labels, labelled, self._known_classes, type(self).__name__)
        codes, rng = np.broadcast_to(codes, n_samples), make_generator(random_state)
        numbers = self._given_values(given) if given else np.full(self._n_numbers(), np.nan)
        drawn = []
        for code, n_rows in zip(*np.unique(codes, return_counts=True), strict=True):
            values = np.append(numbers, np.eye(len(self._known_classes))[code])
            drawn.append(
                self._drawn(int(n_rows), rng, values, temperature, n_steps, init, n_temperatures)
            )
        places = np.argsort(np.argsort(codes, kind="stable"))
        states = taken(concatenated(drawn), places)
        return self._as_table(as_type(states, numpy_dtype(self.components_)), rng, given)

    def _draws_exactly(self, init):
        """Whether rows of a class are drawn without Markov chains."""
        model = self._model()
        free = np.arange(len(model.visible)) < self._n_numbers()
        return init is None and _conditional.can_impute_exactly(model, free)

    @validate_arguments(IMPUTE_CONSTRAINTS)
    def impute(self, X, *, how="mean", n_steps=1000, random_state=None):
        """Fill missing values from their distribution given the observed values of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing value.
        how : {"mean", "mode", "sample"}, default="mean"
            As in :class:`~sklearn_boltz.SDCPRBM`, the label summed out.
        n_steps : int, default=1000
            Number of transitions of each Markov chain; means are over the second half.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            A copy with the missing values filled, of the type of `X`.
        """
        if dispatched(X):
            return self._impute_array(X, how, n_steps, make_generator(random_state))
        V, missing, model = self._to_impute(X)
        machine, some = self._class_model(), missing.any(axis=1)
        filled, rng = np.zeros(V.shape), make_generator(random_state)
        rows = machine.joint_rows(V[some])
        filled[some] = _conditional.impute(
            model, rows, np.isnan(rows), how, n_steps, rng,
            features=machine.visible,
            free_energy=lambda rows: machine.free_energy(rows, machine.hidden_field(rows)),
        )[:, : V.shape[1]]  # fmt: skip
        return self._filled(X, filled, missing, how, rng)

    def _impute_array(self, X, how, n_steps, rng):
        """`impute` where the rows lie, by Markov chains."""
        machine, V = self._class_model(), self._to_fill(X)
        rows, n_visible = machine.joint_rows(V), V.shape[1]
        isnan, stream = namespace_of(V).isnan, Stream.from_generator(rng)

        def free_energy(rows):
            return machine.free_energy(rows, machine.hidden_field(rows))

        filled = _array_chains.impute(
            machine.joint(), rows, isnan(rows), how, n_steps, stream,
            free_energy=lambda states: free_energy(states[:, :n_visible]),
        )  # fmt: skip
        return namespace_of(V).where(isnan(V), filled[:, :n_visible], V)
