"""SDCPRBM: an RBM trained by stochastic difference-of-convex programming."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from sklearn_boltz._arrays import as_type, like
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz.restricted._boltzmann_machine import HIDDEN
from sklearn_boltz.restricted._mini_batches import MiniBatchRBM
from sklearn_boltz.restricted.model._columns import initial_hidden
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.training._array_rows import DeviceRows
from sklearn_boltz.restricted.training._auto import MOST_UNITS, chosen_decay
from sklearn_boltz.restricted.training._epochs import Training
from sklearn_boltz.restricted.training._initial import n_units_of, start_of
from sklearn_boltz.restricted.training._monitor import Monitor
from sklearn_boltz.restricted.training._optimizers import OPTIMIZERS
from sklearn_boltz.restricted.training._rows import ColumnSums
from sklearn_boltz.restricted.training._sdcp import Learner, Scheme, weights_of
from sklearn_boltz.units import Bernoulli


class SDCPRBM(MiniBatchRBM):
    """Restricted Boltzmann machine of any units, trained by CS-DCP and its relatives.

    The log-likelihood of an RBM is a difference of two convex functions. For each mini-batch,
    S-DCP linearises one of them and makes several steps of stochastic gradient descent on the
    other, with Markov chains that start at the data and go on from step to step [1]_. At the
    cost of contrastive divergence with as many transitions, it learns faster and gets stuck
    less. CS-DCP, the default, does so with the centred gradient.

    It has the parameters and attributes of :class:`sklearn.neural_network.BernoulliRBM`, and a
    likelihood: `score_samples` is normalised, so that models can be compared and tuned. Tables
    may have columns of bits, of categories and of real numbers side by side.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of hidden units. ``"auto"`` is twice the number of columns (of numbers in
        `visible_names_`), but at most twice the square root of the number of rows, between 8 and
        1,000. See `n_components_` for what was chosen.

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

    hidden : str, UnitType, type or tuple, default="bernoulli"
        The units of the hidden layer, of the same types; categorical ones with their number of
        states, as in ``("categorical", 3)``. An object of `sklearn_boltz.units` with
        `n_components` units is where the training begins.

    learning_rate : float, default=0.05
        Length of a step along the mean gradient.

    learning_rate_schedule : {"auto", "constant", "invscaling", "adaptive"}, default="auto"
        ``"auto"`` is ``"adaptive"`` with early stopping, and ``"constant"`` otherwise.
        ``"adaptive"`` multiplies the learning rate by 0.3 whenever the log-likelihood has not
        improved for `n_iter_no_change` epochs. With early stopping, it is the log-likelihood of
        the validation rows that counts, and the training ends after four such stages. With
        ``"invscaling"``, the learning rate in epoch t = 1, 2, ... is
        ``learning_rate / t ** power_t``. A call of `partial_fit` counts as an epoch.

    power_t : float, default=0.5
        Exponent of the inverse scaling.

    batch_size : int or "auto", default="auto"
        Number of rows in a mini-batch, and of chains with ``persistent=True``. ``"auto"`` is
        100; with fewer than 2,000 rows it is a 20th of them, but at least 10.

    max_iter : int or "auto", default="auto"
        Maximum number of epochs. With early stopping, ``"auto"`` is as
        many as 100,000 mini-batches need, in at least 10 and at most 1,000 epochs. Without it,
        ``"auto"`` aims at about 1,500 mini-batches, in at least 10 and at most 200 epochs.

    n_inner : int, default=6
        Number of steps for each mini-batch, d in the paper.

    n_gibbs : int, default=4
        Number of Gibbs transitions for each step, K' in the paper.

    centered : bool, default=True
        Whether to use the centred gradient.

    persistent : bool, default=False
        Whether the chains go on from one mini-batch to the next, and not from the data.

    sampler : {"gibbs", "tempered"}, default="gibbs"
        Where the negative phase comes from. ``"tempered"`` takes a part of it from the top of a
        ladder of saved models, whose chains exchange states [3]_: the training then sees states
        that are probable under the model and that no chain from the data visits. It takes about
        twice the time, and wants a learning rate of about .01 with the default `n_inner`.
        The parameters are then those of the epoch of this fit with the largest log-likelihood, of
        held-out rows if there are any, also after Ctrl-C; with `warm_start`, the next fit goes on
        from there.

    tempered_fraction : float, default=0.5
        The part of the negative phase that is from the ladder with ``sampler="tempered"``. With
        `persistent`, all of it is: the chains of the ladder take the place of persistent ones.
        There are as many as rows in a mini-batch, and at least 100. With less of it, the training
        stands larger learning rates: up to .025 at 0.2, where 0.5 wants .01.

    optimizer : {"sgd", "ssd"}, default="sgd"
        ``"ssd"`` is stochastic spectral descent [2]_: it takes a singular value decomposition
        for each step, and wants large mini-batches and small learning rates.

    offset_rate : float, default=0.01
        How fast the offsets of the centred gradient follow the means of the mini-batches.

    momentum : float, default=0.0
        Part of the last step that is added to each.

    weight_decay : float or "auto", default="auto"
        Strength λ of the L2 penalty ½ λ Σ W² on the weights, for the mean log-likelihood of the
        rows. ``"auto"`` is d / (40 n) for n rows and d columns (numbers in `visible_names_`): the
        penalty is then a Gaussian prior distribution of the weights with the variance 40 / d. It is
        0 if `max_iter` is a number. `partial_fit`, which does not know the number of rows, takes
        10,000 for n, here and for `n_components`.

    weights_init : float or "auto", default=0.01
        Standard deviation of the initial weights. ``"auto"`` is 1 / √(n + m) for weights between
        layers that take n and m numbers, which on tables of up to a hundred columns begins to
        learn sooner.

    init : estimator, default=None
        Where the training begins: an RBM of the same columns with at most `n_components` binary
        hidden units, or :class:`~sklearn_boltz.FVBMPseudoLikelihood`, of which each of the
        `n_components` strongest couplings becomes a hidden unit with the same effect. With as many
        units as the network has couplings, the training begins at its likelihood: for networks with
        few of them, ``FVBMPseudoLikelihood(penalty="l1", alpha="ebic")``. The network needs columns
        of bits or categories: no real ones and no probabilities between 0 and 1; with categories,
        ``penalty="group"`` in place of ``"l1"``. An estimator that is not fitted is cloned and
        fitted to the rows first. So is what a clone of this estimator has, as in cross-validation:
        a :class:`sklearn.frozen.FrozenEstimator` around it keeps it.

    transform_temperature : float, default=1.0
        Temperature of the features that `transform` gives: of binary hidden units,
        P(h = 1 | v) with the log-odds divided by it. After a training for features, most means
        are close to 0 or 1; at 2 to 4 they tell a linear classifier by how much, see
        :doc:`/user_guide/features`. The model itself remains as it is.

    early_stopping : bool or "auto", default="auto"
        Whether to set validation rows aside and to stop when their log-likelihood no longer
        improves. ``"auto"`` does so if there are at least 100 rows and `max_iter` is ``"auto"``.
        The model is then that of the best epoch, or with an adaptive learning rate that of the last
        one that has not overfitted. See `track_likelihood`.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int or "auto", default="auto"
        Number of epochs without improvement after which early stopping ends the training, or an
        adaptive learning rate is reduced. ``"auto"`` is 10, and with an adaptive learning rate as
        many as 800 mini-batches take, but at least 8.

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

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere, but for columns of words and real ones. If None, values of Bernoulli columns
        must lie in [0, 1]; those between count as probabilities.

    unknown : {"error", "missing"}, default="error"
        What to do, after the fit, about values of a column of categories that no row of the
        training has: raise an error, or take them for missing cells.

    warm_start : bool, default=False
        Whether `fit` goes on from where the last fit ended, as if it had not been interrupted.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print the settings that were chosen automatically, and a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness: of the first weights, the order of the rows and Markov chains.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights. A column of three or more categories takes a number for each of them, any
        other column one: `visible_names_` names all n_visible; hidden units with q states take
        q rows each.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units; ordinary ones, whether centred or not. Other parameters, such
        as `precision_hidden_` of Gaussian units, are those that `sklearn_boltz.units` describes.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters likewise, such as `precision_visible_`, with
        NaN in the place of units without such a parameter.

    init_ : estimator
        The fitted model that the training began with, if `init` is given.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the numbers of the visible units, such as ``city=Rome``.

    log_partition_ : float
        Logarithm of the normalising constant, in nats, as ``log_partition()`` gives it: exact with
        up to 20 units in the smaller layer, else estimated. Computed when first asked for.

    history_ : dict of ndarray
        For each epoch of `fit`: ``"reconstruction_error"`` (mean squared difference of a
        pixel), ``"log_pseudo_likelihood"`` (a stochastic estimate on fixed pixels of fixed
        training rows), ``"learning_rate"`` and ``"seconds"``;
        ``"log_likelihood"`` of up to 2,000 training rows, mean
        per row in nats, and ``"log_likelihood_std_err"``, the standard error of its ln Z, see
        `track_likelihood`; with `early_stopping`, also ``"validation_log_likelihood"`` and
        ``"free_energy_gap"``, by how much the free energy of validation rows exceeds that of
        training rows.

    n_components_ : int
        Number of hidden units.

    weight_decay_ : float
        Strength of the L2 penalty.

    n_iter_ : int
        Number of epochs made.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    sklearn.neural_network.BernoulliRBM : RBM trained by persistent contrastive divergence.

    Notes
    -----
    The algorithms of the paper are reached by

    ==============================  ======================================================
    contrastive divergence, CD-K    ``n_inner=1, n_gibbs=K, centered=False``
    centred gradient, CG            ``n_inner=1, n_gibbs=K``
    persistent CD, PCD              ``n_inner=1, n_gibbs=1, centered=False, persistent=True``
    S-DCP                           ``centered=False``
    CS-DCP                          the default
    spectral descent, SSD           ``n_inner=1, n_gibbs=25, optimizer="ssd"``
    ==============================  ======================================================

    Integers and booleans are computed with in float32. The fit has the same bits whatever
    the number of threads.

    With scikit-learn's ``array_api_dispatch``, tensors of PyTorch and arrays of CuPy are computed
    with on their device, if all units are Bernoulli ones: see :doc:`/user_guide/gpu`.

    References
    ----------
    .. [1] V. Upadhya and P. S. Sastry, "Learning RBM with a DC programming approach", ACML
       2017. Algorithms 3 (S-DCP) and 4 (CS-DCP).
    .. [2] D. Carlson, V. Cevher and L. Carin, "Stochastic spectral descent for restricted
       Boltzmann machines", AISTATS 2015.
    .. [3] N. Béreux, A. Decelle, C. Furtlehner, L. Rosset and B. Seoane, "Fast training and
       sampling of restricted Boltzmann machines", arXiv:2405.15376, 2024.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.restricted import SDCPRBM
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(n_components=8, learning_rate=0.3, max_iter=500, random_state=0)
    >>> model.fit(X).transform(X).shape
    (16, 8)
    >>> bool(model.score(X) > -4)
    True

    A table with a column of words and one of real numbers:

    >>> import numpy as np
    >>> import pandas as pd
    >>> city = np.tile(["Oslo", "Rome", "Cairo"], 60)
    >>> degrees = {"Oslo": 6.0, "Rome": 16.0, "Cairo": 22.0}
    >>> noise = np.random.default_rng(0).normal(size=180)
    >>> X = pd.DataFrame({"city": city, "degrees": [degrees[c] for c in city] + noise})
    >>> model = SDCPRBM(8, visible={"degrees": "gaussian"}, random_state=0).fit(X)
    >>> model.visible_names_.tolist()
    ['city=Cairo', 'city=Oslo', 'city=Rome', 'degrees']
    >>> model.sample(3, given={"city": "Oslo"}, random_state=0)["city"].tolist()
    ['Oslo', 'Oslo', 'Oslo']
    """

    _computes_on_devices = True
    _parameter_constraints = {
        **MiniBatchRBM._parameter_constraints,
        "hidden": HIDDEN,
        "n_inner": [Interval(Integral, 1, None, closed="left")],
        "n_gibbs": [Interval(Integral, 1, None, closed="left")],
        "centered": ["boolean"],
        "persistent": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "sampler": [StrOptions({"gibbs", "tempered"})],
        "tempered_fraction": [Interval(Real, 0, 1, closed="right")],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "offset_rate": [Interval(Real, 0, 1, closed="both")],
        "weight_decay": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "init": [HasMethods(["fit", "score_samples"]), None],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        visible="auto",
        hidden="bernoulli",
        learning_rate=0.05,
        learning_rate_schedule="auto",
        power_t=0.5,
        batch_size="auto",
        max_iter="auto",
        n_inner=6,
        n_gibbs=4,
        centered=True,
        persistent=False,
        sampler="gibbs",
        tempered_fraction=0.5,
        optimizer="sgd",
        offset_rate=0.01,
        momentum=0.0,
        weight_decay="auto",
        weights_init=0.01,
        init=None,
        transform_temperature=1.0,
        early_stopping="auto",
        validation_fraction=0.1,
        n_iter_no_change="auto",
        tol=1e-3,
        track_likelihood=True,
        max_rungs=40,
        binarize=None,
        unknown="error",
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.visible = visible
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.power_t = power_t
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_inner = n_inner
        self.n_gibbs = n_gibbs
        self.centered = centered
        self.persistent = persistent
        self.sampler = sampler
        self.tempered_fraction = tempered_fraction
        self.optimizer = optimizer
        self.offset_rate = offset_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.weights_init = weights_init
        self.init = init
        self.transform_temperature = transform_temperature
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.track_likelihood = track_likelihood
        self.max_rungs = max_rungs
        self.binarize = binarize
        self.unknown = unknown
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # Training: what `MiniBatchEstimator` asks for.

    def _begun(self, X, weights, n_rows):
        rng, seen = make_generator(self.random_state), ColumnSums.of(X, weights)
        n_hidden = self._n_hidden(n_rows, X.shape[1])
        if self.n_components == "auto" and self.init is not None:
            n_hidden = max(n_hidden, min(n_units_of(self.init_), MOST_UNITS))
        hidden = initial_hidden(self.hidden, n_hidden, X.dtype)
        matrix = self._initial_weights(rng, len(hidden), X.shape[1], X.dtype)
        visible = self._initial_visible(X, weights)
        base = visible.astype(X.dtype)
        check_kinds(visible, hidden, self.centered)
        if self.init is not None:
            visible = start_of(self, self.init_, n_hidden).give(matrix, visible, hidden)
        learner = Learner(
            matrix, visible, hidden, seen.means(X.dtype),
            self._scheme(n_rows, X.shape[1]),
            OPTIMIZERS[self.optimizer](self.momentum), Stream.from_generator(rng),
        )  # fmt: skip
        if self.init is not None:
            learner.center_hidden()
        training = Training(learner, rng, seen)
        training.base, training.n_rows = base, n_rows
        return training.moved(partial(like, X.array)) if isinstance(X, DeviceRows) else training

    def _resumed(self, n_rows=None):
        self._check_same_size()
        training = self._training.copy()
        training.n_rows = n_rows or training.n_rows
        # The public attributes are the truth, also where a user has set them.
        learner = training.learner
        learner.weights = weights_of(as_type(self.components_, learner.dtype))
        learner.visible, learner.hidden = (units.astype(learner.dtype) for units in self._units())
        learner.scheme = self._scheme(training.n_rows, learner.weights.shape[1])
        return training

    def _with_more(self, seen, X, weights=None):
        return seen + ColumnSums.of(X, weights)

    def _check_device_settings(self):
        super()._check_device_settings()
        if self._is_tempered:
            raise ValueError(
                "SDCPRBM: sampler='tempered' is there for NumPy arrays only. On a device, use "
                "sampler='gibbs'."
            )

    def _scheme(self, n_rows, n_numbers):
        decay = self.weight_decay
        if decay == "auto":
            decay = chosen_decay(n_rows, n_numbers) if self.max_iter == "auto" else 0.0
        return Scheme(
            n_inner=self.n_inner,
            n_gibbs=self.n_gibbs,
            centered=self.centered,
            persistent=self.persistent,
            n_chains=self._n_batch(n_rows),
            offset_rate=self.offset_rate,
            weight_decay=decay,
            tempered_fraction=self._tempered_fraction(),
        )

    @property
    def _is_tempered(self):
        return self.sampler == "tempered"

    def _tempered_fraction(self):
        if not self._is_tempered:
            return 0.0
        # The chains of the ladder take the place of persistent ones.
        return 1.0 if self.persistent else float(self.tempered_fraction)

    def _first_units(self, training, dtype):
        """Independent visible units fitted to the data: of binary ones, to all that were seen."""
        base = training.base
        return Bernoulli(training.seen.log_odds(dtype)) if base.is_binary else base

    def _side_base(self, training):
        return self._near(self._first_units(training, training.dtype), training.learner.weights)

    def _monitor(self, training, X, train, valid, weights=None):
        base = self._first_units(training, X.dtype)
        seed, log_scale = training.evaluation_seed, self._layout_now().log_scale
        return Monitor(X, train, valid, base, seed, weights, log_scale)

    def _attributes(self, training):
        weights, *units = training.learner.model()
        return {
            **self._exposed(Layered([weights], units)),
            "_unit_types": units,
            "_base_units": self._first_units(training, training.dtype),
            **{f"{name}_": value for name, value in self._chosen(training.learner).items()},
            **self._state(training),
        }

    def _chosen(self, learner):
        return {"n_components": learner.hidden.n_units, "weight_decay": learner.scheme.weight_decay}


def check_kinds(visible, hidden, centered):
    """Raise an error for units that cannot be trained together by chains."""
    if np.isfinite(visible.tail_precision).any() and np.isfinite(hidden.tail_precision).any():
        raise ValueError(
            "with Gaussian units in both layers, a model has a distribution only as long as its "
            "weights are small, and training makes them grow. Use hidden='bernoulli'."
        )
    parts = [part for units in (visible, hidden) for part, _ in units.parts()]
    if centered and not all("intercept" in part.parameters() for part in parts):
        raise ValueError(
            "the centred gradient needs units with a parameter `intercept`. Set centered=False."
        )
