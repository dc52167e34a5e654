"""TAPDBM: a deep Boltzmann machine, trained and used by mean-field inference."""

import warnings
from functools import partial
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import dense, validate_arguments
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted._base_tap import LEAST_CONVERGED, BaseTAP
from sklearn_boltz.restricted._boltzmann_machine import _COUNT, _POSITIVE, _RANDOM_STATE, HIDDEN
from sklearn_boltz.restricted._tap_rbm import TAPRBM
from sklearn_boltz.restricted.mean_field._clamped import clamp
from sklearn_boltz.restricted.model._columns import (
    UNIT_TYPES,
    Layout,
    initial_hidden,
    parameter_names,
    published,
    with_published,
)
from sklearn_boltz.restricted.model._enumeration import exact_free_energy, hidden_bits
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import (
    CONTINUUM,
    log_pseudo_likelihood,
    log_pseudo_likelihood_by,
)
from sklearn_boltz.restricted.sampling import _conditional, _observed, _samples
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._rows import StreamedRows
from sklearn_boltz.restricted.training._tap_monitor import DeepTAPMonitor
from sklearn_boltz.units._bernoulli import Bernoulli

# Bits of hidden layers that are summed out exactly for the pseudo-likelihood.
EXACT_HIDDEN = 12
# Parameters of the training of each layer by itself.
SHARED = (
    "order", "tap_max_iter", "tap_tol", "damping", "persistent", "learning_rate",
    "learning_rate_schedule", "power_t", "momentum", "penalty", "alpha", "batch_size",
    "weights_init",
)  # fmt: skip


class LayerRBM(TAPRBM):
    """An RBM of two layers of a deep machine: its rows hold the numbers of the units below."""

    def _kinds(self, X):
        return None

    def _learned_layout(self, X, weights):
        units = self.visible
        if isinstance(units, str):
            units = UNIT_TYPES.get(units, Bernoulli)
        return Layout.of_numbers(X.shape[1], units, self._unit_options())


class TAPDBM(BaseTAP):
    """Deep Boltzmann machine of binary or real-valued units, trained without Markov chains.

    Several layers of units, each connected to the next [1]_. The distribution is approximated by
    fixed points of the mean-field equations of Thouless, Anderson and Palmer, as in
    :class:`TAPRBM`, which is the case of one hidden layer. Unlike there, the hidden layers are
    dependent given a row; that distribution is approximated in the same way. The layers are first
    trained one by one, each as an RBM on values of the one below, and then all together.

    Parameters
    ----------
    hidden_layer_sizes : int or array-like of int, default=(256, 256)
        Number of units of each hidden layer, from the one next to the data upwards; an int for
        one layer.

    visible : str, UnitType, type, list or dict, default="auto"
        The units of the columns. ``"auto"`` looks at the table: a column of three or more
        categories has categorical units, any other column Bernoulli ones. A string,
        ``"bernoulli"``, ``"categorical"``, ``"gaussian"``, ``"truncated_gaussian"`` or
        ``"truncated_gauss_bernoulli"``, or a type of `sklearn_boltz.units` is for all columns; a
        list has an entry for each, and a dict entries for some, by their names or numbers, as in
        ``{"age": "gaussian"}``. Numbers of a column that is called ``"categorical"`` are
        categories. A ``"gaussian"`` column is standardised by its mean and standard deviation in
        the training data (in the first batch, where there are several), so that all real columns
        are learned at the same pace: the parameters are those of the standardised column, while
        rows, samples and densities are those of the column itself. An object of
        `sklearn_boltz.units`, of all columns or of one, is where the training begins itself, on
        the scale of the data.

    hidden : str, UnitType, type, tuple or list, default="bernoulli"
        The units of the hidden layers, of the same types, or a list with an entry for each layer;
        categorical ones with their number of states, as in ``("categorical", 3)``. By its name,
        truncated units are on [0, 1].

    visible_range : tuple of (float, float), default=None
        The least and the greatest value of truncated visible units. None for
        (0, 1).

    order : {1, 2}, default=2
        1 is naive mean field, 2 is TAP.

    tap_max_iter : int, default=10
        Number of iterations for a mini-batch, at most, given its rows as well as free. Outside
        of the training, there are up to 1,000.

    tap_tol : float, default=1e-8
        A start has converged when the mean squared change of its means is less.

    damping : float, default=0.5
        Share of the previous means that is kept in an iteration.

    persistent : bool, default=False
        Whether solutions continue from one mini-batch to the next, instead of starting from the
        data.

    pretrain_max_iter : int or "auto", default="auto"
        Number of epochs of the training of each layer by itself, with the learning rate,
        mini-batches and so on of the joint training. 0 for none: then the weights of the upper
        layers stay small.

    learning_rate : float, default=0.05
        Length of a step along the mean gradient.

    learning_rate_schedule : {"constant", "invscaling", "adaptive"}, default="constant"
        ``"adaptive"`` multiplies the learning rate by 0.3 each time that three epochs and 400
        mini-batches have passed without progress of the log-likelihood, of held-out rows if
        `early_stopping` is set. With
        ``"invscaling"``, the learning rate in epoch t = 1, 2, ... is
        ``learning_rate / t ** power_t``. A call of `partial_fit` counts as an epoch.

    power_t : float, default=0.5
        Exponent of the inverse scaling.

    momentum : float, default=0.5
        Share of the previous step of the weights that is added to each step.

    penalty : {"l1", "l2"} or None, default="l2"
        Of the weights.

    alpha : float, default=1e-3
        Strength of the penalty.

    batch_size : int, default=100
        Number of rows of a mini-batch, and of persistent solutions.

    max_iter : int or "auto", default="auto"
        Number of epochs of the joint training. ``"auto"`` makes some 800 mini-batches: 10
        epochs of many rows, and up to 200 of few, or up to 1,000 with `early_stopping`.

    weights_init : float or "auto", default=0.01
        Standard deviation of the initial weights. ``"auto"`` is 1 / √(n + m) for weights between
        layers that take n and m numbers, which on tables of up to a hundred columns begins to
        learn sooner.

    early_stopping : bool, default=False
        Whether to set rows aside, and to stop when their log-likelihood no longer rises. The
        parameters are then those of the best epoch. The log-likelihood is by TAP, with an exact
        normalising constant if that needs no more than 12 binary units to be enumerated.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int, default=10
        Number of epochs without progress after which to stop.

    tol : float, default=1e-3
        What counts as progress, in nats.

    track_likelihood : bool or float, default=True
        Whether the log-likelihood is measured after each epoch, with ln Z from a ladder of
        saved models and from annealed chains, the greater where they differ. A number is what
        this may cost, as a part of the work of the training; True stands for 0.12. It is
        measured in any case with `early_stopping` or an adaptive learning rate. With at most 12
        units in the smaller layer it is exact, and costs next to nothing.

    max_rungs : int, default=40
        Number of saved models at most. Each takes the memory of the weights, also in a
        pickle.

    output_layer : int or "all", default=-1
        Which hidden layer `transform` returns, counted from 0; -1 is the last one, "all" is all of
        them side by side.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, values must be legal for the visible units.

    unknown : {"error", "missing"}, default="error"
        What to do, after the fit, with values of a column of categories that did not occur in
        training: raise an error, or treat the cells as missing.

    warm_start : bool, default=False
        Whether `fit` continues where the last fit ended, as if it had not been interrupted.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness: of the first weights, the order of the rows, and the values of
        hidden units that the layer above them is first trained on.

    Attributes
    ----------
    components_ : list of ndarray of shape (n_units of the layer, n_units of the layer below)
        The weights, from the data upwards.

    intercept_hidden_ : list of ndarray of shape (n_units of the layer,)
        U of the hidden units. Truncated units have `precision_hidden_`, and with a spike at zero
        `rho_hidden_`, besides: the parameters that `sklearn_boltz.units` describes; None in the
        place of a layer whose units have no such parameter.

    intercept_visible_ : ndarray of shape (n_visible,)
        U of the visible units; likewise, `precision_visible_` and `rho_visible_`, with NaN in the
        place of units without such a parameter.

    log_partition_ : float
        Logarithm of the normalising constant, in nats: exact if the even layers, of which the
        visible one is the first, or the odd ones have at most 20 binary units together; by the
        ladder of the training and annealing, if its likelihood was followed; else by TAP from
        100 rows of the training. Computed when first asked for.

    history_ : dict of ndarray
        For each epoch of the joint training: ``"tap_log_likelihood"``, the mean over 100 training
        rows in nats; ``"n_solutions"``, how many different ones are reached from some of
        these rows, one for each 20 rows of data but 25 at least; ``"free_energy"``,
        their mean, and ``"free_energy_std"``; ``"share_converged"``, the part of the starts from
        which TAP converges, and ``"share_converged_clamped"``, that for
        which it does with the row clamped; of each hidden layer k = 1, 2, ...
        ``"weight_norm_k"``, the Frobenius norm of the weights below it, and ``"feature_std_k"``,
        the mean of the standard deviations of its means over the rows; ``"learning_rate"`` and
        ``"seconds"``; ``"log_likelihood"`` of training rows, mean per row in nats, with ln Z by
        chains, and ``"log_likelihood_std_err"``, the standard error of that ln Z, see
        `track_likelihood`; with `early_stopping`, also ``"validation_log_likelihood"`` and
        ``"free_energy_gap"``, by how much the free energy of validation rows exceeds that
        of training rows.

    pretrain_history_ : list of dict of ndarray
        Of each hidden layer, the `history_` of the :class:`TAPRBM` that it was first trained as;
        an empty list without that.

    n_iter_ : int
        Number of epochs of the joint training.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the numbers of the visible units, such as ``city=Rome``: a column of three or
        more categories takes one for each of them, any other column one.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    TAPRBM : The model with one hidden layer.

    Notes
    -----
    Both terms of the log-likelihood are approximations here, that of a row as well as the
    normalising constant, with errors of the third order in the weights, which are neither bounds
    nor unbiased. ``log_partition("ais")`` and `sample` do not depend on them. For Gaussian units,
    see :class:`TAPRBM`. With one hidden layer and without pre-training, the model is a
    :class:`TAPRBM`, bit for bit. The units of the even layers are independent given the odd ones,
    and vice versa: chains and annealing alternate between the two. `partial_fit` does not train
    layers one by one. Integers and booleans are computed with in float32. The fit has the same bits
    whatever the number of threads.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 2018. Appendix E, Algorithm 4.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.restricted import TAPDBM
    >>> X = make_bars_and_stripes(3)
    >>> model = TAPDBM((8, 4), learning_rate=0.1, alpha=0, max_iter=300, random_state=0).fit(X)
    >>> model.transform(X).shape
    (16, 4)
    >>> [W.shape for W in model.components_]
    [(8, 9), (4, 8)]
    >>> bool(model.score(X) > -6)
    True
    """

    _parameter_constraints = {
        **BaseTAP._parameter_constraints,
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "hidden": [*HIDDEN, list],
        "pretrain_max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "output_layer": [Integral, StrOptions({"all"})],
    }

    _monitor_class = DeepTAPMonitor

    def __init__(
        self,
        hidden_layer_sizes=(256, 256),
        *,
        visible="auto",
        hidden="bernoulli",
        visible_range=None,
        order=2,
        tap_max_iter=10,
        tap_tol=1e-8,
        damping=0.5,
        persistent=False,
        pretrain_max_iter="auto",
        learning_rate=0.05,
        learning_rate_schedule="constant",
        power_t=0.5,
        momentum=0.5,
        penalty="l2",
        alpha=1e-3,
        batch_size=100,
        max_iter="auto",
        weights_init=0.01,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-3,
        track_likelihood=True,
        max_rungs=40,
        output_layer=-1,
        binarize=None,
        unknown="error",
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.visible = visible
        self.hidden = hidden
        self.visible_range = visible_range
        self.order = order
        self.tap_max_iter = tap_max_iter
        self.tap_tol = tap_tol
        self.damping = damping
        self.persistent = persistent
        self.pretrain_max_iter = pretrain_max_iter
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.power_t = power_t
        self.momentum = momentum
        self.penalty = penalty
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.weights_init = weights_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.track_likelihood = track_likelihood
        self.max_rungs = max_rungs
        self.output_layer = output_layer
        self.binarize = binarize
        self.unknown = unknown
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # The layers.

    def _sizes(self):
        """Numbers of hidden units, checked; a number stands for one layer."""
        sizes = np.atleast_1d(np.asarray(self.hidden_layer_sizes))
        if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(
                "hidden_layer_sizes must be positive integers, one for each hidden layer, got "
                f"{self.hidden_layer_sizes!r}."
            )
        return sizes.tolist()

    def _hidden_kinds(self):
        """What is asked for, of each hidden layer."""
        n_layers = len(self._sizes())
        kinds = self.hidden if isinstance(self.hidden, list) else [self.hidden] * n_layers
        if len(kinds) != n_layers:
            raise ValueError(
                f"hidden has {len(kinds)} unit types, but there are {n_layers} layers."
            )
        return kinds

    def _output(self, layers):
        """Which of the hidden layers `transform` is to give, of a list: a list."""
        if self.output_layer == "all":
            return layers
        if not -len(layers) <= self.output_layer < len(layers):
            raise ValueError(f"output_layer is {self.output_layer}, of {len(layers)} layers.")
        return [layers[self.output_layer]]

    @property
    def _n_features_out(self):
        return sum(len(W) for W in self._output(self.components_))

    # What `BaseTAP` asks for.

    def _begin(self, X, rng, weights=None):
        sizes = self._sizes()
        self._output(sizes)
        hidden = [
            initial_hidden(kind, n_units, X.dtype)
            for kind, n_units in zip(self._hidden_kinds(), sizes, strict=True)
        ]
        visible = self._initial_visible(X, weights)
        above = [len(units) for units in hidden]
        below = [X.shape[1], *above[:-1]]
        matrices = [
            self._initial_weights(rng, *pair, X.dtype) for pair in zip(above, below, strict=True)
        ]
        return matrices, [visible, *hidden]

    def _layered(self):
        visible, *hidden = self._unit_types
        dtype = self.components_[0].dtype
        weights = [W.astype(dtype, copy=False) for W in self.components_]
        values = {name: getattr(self, f"{name}_visible_") for name in parameter_names(visible)}
        layers = [with_published(visible, values, dtype)]
        for k, units in enumerate(hidden):
            values = {name: getattr(self, f"{name}_hidden_")[k] for name in units.parameters()}
            layers.append(with_published(units, values, dtype))
        return Layered(weights, layers)

    def _exposed(self, layered):
        weights, (visible, *hidden) = layered
        exposed = {"components_": list(weights)}
        for name, value in published(visible).items():
            exposed[f"{name}_visible_"] = value
        parameters = [units.parameters() for units in hidden]
        for name in {name for of_layer in parameters for name in of_layer}:
            exposed[f"{name}_hidden_"] = [of_layer.get(name) for of_layer in parameters]
        return exposed

    def _attributes(self, training):
        history = list(training.pretrain_history)
        return {**super()._attributes(training), "pretrain_history_": history}

    def _check_same_size(self):
        sizes = [units.n_units for units in self._layered().layers[1:]]
        if sizes != self._sizes():
            raise ValueError(
                f"hidden_layer_sizes is {self.hidden_layer_sizes}, but the fit to go on with has "
                f"layers of {sizes} units."
            )

    def _by_layer(self, solutions):
        split, by_layer = self._layered().split, dict(solutions)
        for what in ("mean", "variance"):
            names = f"visible_{what}", f"hidden_{what}"
            by_layer[names[0]], *by_layer[names[1]] = split(*(solutions[name] for name in names))
        return by_layer

    # Training.

    def _train(self, training, rows, monitor, plan, workers, tell):
        if self.pretrain_max_iter and not training.n_passes and not training.pretrain_history:
            if isinstance(rows, StreamedRows):
                raise ValueError(
                    "Layers are trained one by one on rows in memory. Set pretrain_max_iter=0 to "
                    "learn from batches, or fit an array of some rows first, with warm_start."
                )
            self._pretrain(training, rows.in_memory(), rows.weights, workers)
        return super()._train(training, rows, monitor, plan, workers, tell)

    def _is_worth_keeping(self, training, n_before):
        return bool(training.pretrain_history) or super()._is_worth_keeping(training, n_before)

    def _pretrain(self, training, X, weights, workers):
        """Train each layer as an RBM on what the one below has made of the data (Algorithm 4)."""
        learner, visible, visible_range = training.learner, self.visible, self.visible_range
        histories = []
        named = isinstance(visible, str) and self._layout_now().is_plain
        if not named:  # X holds numbers of the units, and not the columns of a table
            visible, visible_range = learner.layers[0], None
        for k, (n_units, kind) in enumerate(zip(self._sizes(), self._hidden_kinds(), strict=True)):
            rbm = LayerRBM(
                n_units,
                visible=visible,
                hidden=kind,
                visible_range=visible_range,
                max_iter=self.pretrain_max_iter,
                track_likelihood=False,
                n_jobs=workers.n_threads,
                verbose=self.verbose,
                random_state=int(training.rng.integers(2**31)),
                **{name: getattr(self, name) for name in SHARED},
            )
            with warnings.catch_warnings():
                # What matters is whether the joint training ends among good solutions.
                warnings.simplefilter("ignore", ConvergenceWarning)
                rbm.fit(X, sample_weight=weights)
            (learner.weights[k],), (below, learner.layers[k + 1]) = rbm._layered()
            if k == 0:
                learner.layers[0] = below
            histories.append(rbm.history_)
            if k + 1 < len(learner.weights):
                if rows_with_gaps(X) is not None:
                    X = rbm._completed(X, int(training.rng.integers(2**31)))
                X = rbm.sample_hidden(X, random_state=int(training.rng.integers(2**31)))
            visible, visible_range = self._units_below(kind, learner.layers[k + 1]), None
        training.pretrain_history = histories

    def _units_below(self, kind, units):
        """What the next layer is told of the units of one: its type, if that tells all."""
        return kind if isinstance(kind, str) and units.width == 1 else units

    # What follows from rows.

    def _clamped(self, function, X):
        """Apply a function of `Clamped` to checked rows, a chunk at a time; NaN is missing."""
        layered, n_converged = self._layered(), 0
        with Workers(self.n_jobs) as workers:

            def of_chunk(V):
                nonlocal n_converged
                V = np.ascontiguousarray(V)
                clamped = clamp(layered, V, self._iteration(), workers)
                n_converged += np.count_nonzero(clamped.converged)
                return function(clamped)

            found = self._by_rows(of_chunk, of_chunk, X)
        if n_converged < LEAST_CONVERGED * X.shape[0]:
            warnings.warn(
                f"With the row clamped, TAP converges for {n_converged / X.shape[0]:.0%} of the "
                "rows; of the others, this is what the last iteration gave. Use a larger damping, "
                "or train with a smaller learning_rate or a larger alpha.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def transform(self, X):
        """Return means of hidden units given each row, features for a classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        H : ndarray of shape (n_samples, n_features_out)
            Means of the units of `output_layer` by TAP with the row clamped.
        """
        means = self._hidden_means(X)
        return np.hstack(self._output(means))

    def mean_hidden(self, V):
        """Return the means of all hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value.

        Returns
        -------
        H : list of ndarray of shape (n_samples, n_units of the layer)
            E[h | v] of each hidden layer, by TAP with the observed values clamped, and with one
            hidden layer as in :class:`TAPRBM`.
        """
        return self._hidden_means(V)

    def _hidden_means(self, V):
        """Of each hidden layer, a list."""
        V, layered = self._checked(V, allow_nan=True), self._layered()
        if len(layered.weights) == 1:
            of_gaps = partial(self._of_gaps, _observed.mean_hidden)
            return [self._by_rows(layered.sides().mean_hidden, of_gaps, V)]
        means = self._clamped(lambda clamped: np.hstack(clamped.means()[1:]), V)
        return np.split(means, np.cumsum([len(W) for W in self.components_])[:-1], axis=1)

    def mean_visible(self, H):
        """Return the means of the visible units given the hidden ones.

        Parameters
        ----------
        H : list of array-like of shape (n_samples, n_units of the layer)
            Values or means of each hidden layer; the first determines the result.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            E[v | h] of the numbers that `visible_names_` names: of units with the values 0 and
            1, P(v = 1 | h); of a column of categories, the probability of each.
        """
        H, layered = self._checked_hidden(H), self._layered()
        return self._layout_now().unscaled(layered.layers[0].mean(H[0] @ layered.weights[0]))

    def inverse_transform(self, X):
        """Return means of the visible units for features made by `transform`.

        A pass downwards: from the means of the lowest layer that is given, those of each layer are
        computed from the layer above it alone. The data are not used for the layers in between.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Means of the units of `output_layer`.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            Of one hidden layer, E[v | h] with h at its mean, of the numbers that `visible_names_`
            names.
        """
        check_is_fitted(self)
        layered, sizes = self._layered(), [len(W) for W in self.components_]
        X = np.ascontiguousarray(X, dtype=layered.weights[0].dtype)
        if X.ndim != 2 or X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have shape (n_samples, {self._n_features_out}), got {X.shape}."
            )
        # Of all layers the first stands first, and is the lowest.
        lowest = range(len(sizes))[0 if self.output_layer == "all" else self.output_layer]
        mean = X[:, : sizes[lowest]]
        for units, W in zip(layered.layers[lowest::-1], layered.weights[lowest::-1], strict=True):
            mean = units.mean(mean @ W)
        return self._layout_now().unscaled(mean)

    def _checked_hidden(self, H):
        """Values of each hidden layer."""
        check_is_fitted(self)
        sizes = [len(W) for W in self.components_]
        dtype = self.components_[0].dtype
        layers = [np.ascontiguousarray(h, dtype) for h in H] if isinstance(H, (list, tuple)) else []
        shapes = [h.shape for h in layers]
        if not layers or shapes != [(len(layers[0]), size) for size in sizes]:
            raise ValueError(
                f"H must be a list of arrays with {sizes} columns, one for each hidden layer, and "
                f"as many rows in each; got {shapes or type(H).__name__}."
            )
        return layers

    # Chains.

    def _chains(self, V, n_steps, random_state, clamped=False):
        """-> the visible side after transitions that begin at checked rows, the stream."""
        V, model = dense(V), self._model()
        stream = Stream.from_generator(make_generator(random_state))
        with Workers(self.n_jobs) as workers:
            even = np.array(self._side(V), order="C")
            columns = (np.arange(even.shape[1]) < V.shape[1]) & clamped
            return _samples.chain_samples(model, even, n_steps, stream, workers, columns), stream

    @validate_arguments(
        {"V": ["array-like", "sparse matrix"], "n_steps": _COUNT, "random_state": _RANDOM_STATE}
    )
    def gibbs(self, V, n_steps=1, random_state=None):
        """Make transitions of block Gibbs sampling.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Where the chains start, one a row. Hidden layers of the side of the visible one, the
            second, fourth and so on, start at their means given the row, by TAP.
        n_steps : int, default=1
            Number of transitions: all odd layers given the even ones, then back.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        V : ndarray or data frame of shape (n_samples, n_features)
            Where the chains are, in a table like that of the training. With several hidden layers,
            these are not returned: `n_steps` in one call are not the same as in several.
        """
        return self._as_table(self._chains(self._checked(V), n_steps, random_state)[0])

    @validate_arguments(
        {"V": ["array-like", "sparse matrix"], "n_steps": _POSITIVE, "random_state": _RANDOM_STATE}
    )
    def sample_hidden(self, V, random_state=None, *, n_steps=1000):
        """Draw the hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value, which is drawn along.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        n_steps : int, default=1000
            Number of transitions of each Markov chain, with the row clamped; without any effect
            with one hidden layer and complete rows, where the draw is exact.

        Returns
        -------
        H : list of ndarray of shape (n_samples, n_units of the layer)
            Values of each hidden layer.
        """
        V, layered, model = self._checked(V, allow_nan=True), self._layered(), self._model()
        if rows_with_gaps(V) is not None:
            stream = Stream.from_generator(make_generator(random_state))
            known, missing = np.nan_to_num(V), layered.padded(np.isnan(V), True)
            rows = layered.padded(known)
            *_, (_, even) = _conditional.clamped_chains(model, rows, missing, n_steps, stream)
        else:
            steps = 0 if len(layered.weights) == 1 else n_steps
            even, stream = self._chains(V, steps, random_state, clamped=True)
        return layered.split(even, model.hidden.sample(model.hidden_field(even), stream))[1:]

    def sample_visible(self, H, random_state=None):
        """Draw the visible units given the hidden ones.

        Parameters
        ----------
        H : list of array-like of shape (n_samples, n_units of the layer)
            Values of each hidden layer; the first determines the distribution.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        V : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like that of the training.
        """
        H, layered = self._checked_hidden(H), self._layered()
        stream = Stream.from_generator(make_generator(random_state))
        return self._as_table(layered.layers[0].sample(H[0] @ layered.weights[0], stream))

    # Energies and likelihoods.

    def energy(self, V, H):
        """Return the energy of joint states.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units.
        H : list of array-like of shape (n_samples, n_units of the layer)
            Values of each hidden layer.

        Returns
        -------
        energy : ndarray of float64 of shape (n_samples,)
            E(v, h) = −Σ_l x_l·W_l x_{l−1} − Σ_l ln w_l(x_l) with x_0 = v, in nats: with
            Bernoulli units, the last terms are −Σ_l b_l·x_l.
        """
        V, H = dense(self._checked(V)), self._checked_hidden(H)
        if len(V) != len(H[0]):
            raise ValueError(f"V has {len(V)} rows and H has {len(H[0])}.")
        layers = [V, *H]
        return self._model().energy(np.hstack(layers[::2]), np.hstack(layers[1::2]))

    def free_energy(self, V):
        """Return the free energy of rows, minus the log-probability up to a constant.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            F(v) = −ln Σ exp(−E(v, h)) over the states of all hidden layers, and of the missing
            values of a row, in nats: by TAP, and with one hidden layer as in :class:`TAPRBM`.
        """
        V, layered = self._checked(V, allow_nan=True), self._layered()
        if len(layered.weights) == 1:
            return self._by_rows(layered.sides().free_energy, self._free_energy_of_gaps, V)

        def of_rows(clamped):
            return self._with_missing(clamped.V, clamped.free_energy(self.order))

        return self._clamped(of_rows, V)

    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row.

        Each feature is given each of its values in turn, so that the free energies of as many
        rows are computed for each row. They are exact if all even or all odd hidden layers have
        at most 12 binary units together, and with one hidden layer; otherwise by TAP.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. A value between two states of a unit counts as a mixture of them: between
            0 and 1, as the probability of a 1. NaN is a missing value.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the features of ln p(v_i | all others), in nats. In a row with missing
            values, the sum is over the observed ones, each given the other observed ones; of
            several hidden layers, by TAP.

        Raises
        ------
        ValueError
            If the visible units have a continuum of values.
        """
        X, layered = self._checked(X, allow_nan=True), self._layered()
        visible = layered.layers[0]
        if not visible.is_enumerable:
            raise ValueError(CONTINUUM)
        if len(layered.weights) == 1:
            whole = partial(log_pseudo_likelihood, layered.sides())
            return self._by_rows(whole, self._log_pseudo_likelihood_of_gaps, X)
        exact = hidden_bits(layered) <= EXACT_HIDDEN
        of_complete = partial(exact_free_energy, layered) if exact else self._quiet_free_energy

        of_gaps = partial(log_pseudo_likelihood_by, self._quiet_free_energy, visible)
        whole = partial(log_pseudo_likelihood_by, of_complete, visible)
        return self._by_rows(whole, of_gaps, X)

    def _log_pseudo_likelihood_of_gaps(self, V):
        return self._of_gaps(_observed.log_pseudo_likelihood, V)
