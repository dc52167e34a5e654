"""TAPRBM: an RBM of any units, trained and used by mean-field inference."""

from sklearn.utils._param_validation import StrOptions

from sklearn_boltz.restricted._base_tap import BaseTAP
from sklearn_boltz.restricted._boltzmann_machine import HIDDEN
from sklearn_boltz.restricted._mini_batches import MiniBatchRBM
from sklearn_boltz.restricted.mean_field._inference import INFERENCES
from sklearn_boltz.restricted.model._columns import initial_hidden


class TAPRBM(BaseTAP, MiniBatchRBM):
    """Restricted Boltzmann machine of binary or real-valued units, trained without sampling.

    The distribution is approximated by the fixed points of a mean-field free energy, with the
    second-order correction of Thouless, Anderson and Palmer [1]_. Training raises the probability
    of the data and lowers that of the fixed points that are reached from them. Inference is
    deterministic; it gives a landscape of solutions, a log-likelihood, and a prior for denoising.

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

    visible_range : tuple of (float, float), default=None
        The least and the greatest value of truncated visible units. None for
        (0, 1).

    order : {1, 2}, default=2
        1 is naive mean field, 2 is TAP.

    tap_max_iter : int, default=10
        Number of iterations for a mini-batch, at most. Outside of the training, there are
        up to 1,000.

    tap_tol : float, default=1e-8
        A start has converged when the mean squared change of its means is less.

    damping : float, default=0.5
        How much of the last means remains in an iteration.

    persistent : bool, default=False
        Whether solutions go on from one mini-batch to the next, and not from the data.

    inference : {"tap", "rbp", "adatap"}, default="tap"
        How solutions are found outside of the mini-batches, for the likelihood and the
        landscape. ``"rbp"``, relaxed belief propagation, and ``"adatap"``, adaptive TAP, are
        for small models without columns of three or more categories.

    learning_rate : float, default=0.05
        Length of a step along the mean gradient.

    learning_rate_schedule : {"auto", "constant", "invscaling", "adaptive"}, default="auto"
        ``"auto"`` is ``"adaptive"`` if rows are set aside, see `early_stopping`, and otherwise
        ``"constant"``.
        ``"adaptive"`` multiplies the learning rate by 0.3 each time that three epochs and 400
        mini-batches have passed without progress of the log-likelihood, of held-out rows if
        `early_stopping` is set. With
        ``"invscaling"``, the learning rate in epoch t = 1, 2, ... is
        ``learning_rate / t ** power_t``. A call of `partial_fit` counts as an epoch.

    power_t : float, default=0.5
        Exponent of the inverse scaling.

    momentum : float, default=0.5
        Part of the last step of the weights that is added to each.

    penalty : {"l1", "l2"} or None, default="l2"
        Of the weights.

    alpha : float or "auto", default="auto"
        Strength of the penalty, for the mean log-likelihood of the rows. ``"auto"`` is d / (40 n)
        with ``penalty="l2"``, for n rows and d columns, and √(d / 20) / n with ``"l1"``: the penalty
        is then a Gaussian or Laplace prior distribution of the weights with the variance 40 / d.
        `partial_fit`, which does not know the number of rows, takes 10,000 for n.

    batch_size : int or "auto", default="auto"
        Number of rows of a mini-batch, and of persistent solutions. ``"auto"`` is 100, and less with fewer
        than 2,000 rows: a 20th of them, but at least 10.

    max_iter : int or "auto", default="auto"
        Number of epochs. ``"auto"`` makes some 800 mini-batches: 10 epochs of
        many rows, and up to 200 of few. With `early_stopping`, the fit ends by itself, and
        ``"auto"`` is at most 1,000 epochs, and at most 100,000 mini-batches in more than ten.

    weights_init : float or "auto", default=0.01
        Standard deviation of the initial weights. ``"auto"`` is 1 / √(n + m) for weights between
        layers that take n and m numbers, which on tables of up to a hundred columns begins to
        learn sooner.

    transform_temperature : float, default=1.0
        Temperature of the features that `transform` gives: of binary hidden units,
        P(h = 1 | v) with the log-odds divided by it. After a training for features, most means
        are close to 0 or 1; at 2 to 4 they tell a linear classifier by how much, see
        :doc:`/user_guide/features`. The model itself remains as it is.

    early_stopping : bool or "auto", default="auto"
        Whether to set rows aside, and to stop when their log-likelihood no longer rises. ``"auto"``
        does so if `max_iter` is ``"auto"`` and there are at least 100 rows. The
        parameters are then those of the best epoch. The log-likelihood is exact with up to 12
        binary units in the smaller layer, and otherwise by TAP.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int or "auto", default="auto"
        Number of epochs without progress after which to stop. ``"auto"`` is 10, and enough for
        three falls of an adaptive learning rate.

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
        elsewhere. If None, values must be legal for the visible units.

    unknown : {"error", "missing"}, default="error"
        What to do, after the fit, about values of a column of categories that no row of the
        training has: raise an error, or take them for missing cells.

    warm_start : bool, default=False
        Whether `fit` goes on from where the last fit ended, as if it had not been interrupted.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print what was chosen by the data, and a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness: of the first weights and the order of the rows.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        U of the hidden units. Truncated units have `precision_hidden_`, and with a spike at
        zero `rho_hidden_`, besides: the parameters that `sklearn_boltz.units` describes.

    intercept_visible_ : ndarray of shape (n_visible,)
        U of the visible units; likewise, `precision_visible_` and `rho_visible_`, with NaN in the
        place of units without such a parameter.

    log_partition_ : float
        Logarithm of the normalising constant, in nats: exact with up to 20 binary units in the
        smaller layer; by the ladder of the training and annealing, if its likelihood was followed;
        else by TAP from 100 rows of the training. Computed when first asked for.

    history_ : dict of ndarray
        For each epoch of `fit`: ``"tap_log_likelihood"``, the mean over 100 training rows in
        nats; ``"n_solutions"``, how many different ones are reached from some of
        these rows, one for each 20 rows of data but 25 at least; ``"free_energy"``,
        their mean, and ``"free_energy_std"``; ``"share_converged"``, the part of the starts from
        which TAP converges; ``"learning_rate"`` and
        ``"seconds"``; ``"log_likelihood"`` of training rows, mean per row in nats, with ln Z by
        chains, and ``"log_likelihood_std_err"``, the standard error of that ln Z, see
        `track_likelihood`; with `early_stopping`, also ``"validation_log_likelihood"`` and
        ``"free_energy_gap"``, by how much the free energy of validation rows exceeds that
        of training rows.

    n_components_ : int
        Number of hidden units.

    alpha_ : float
        Strength of the penalty.

    n_iter_ : int
        Number of epochs made.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the numbers of the visible units, such as ``city=Rome``: a column of three or
        more categories takes one for each of them, any other column one.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    SDCPRBM : RBM of Bernoulli units, trained by Markov chains.

    Notes
    -----
    TAP is an expansion for weak weights: the log-likelihood is an approximation, with an error
    of the third order in the weights, neither a bound nor unbiased. ``log_partition("ais")``
    and `sample` do not depend on it. When most starts no longer converge, or nearly all reach
    solutions of their own, the model is in a spin-glass phase: take a smaller learning rate, a
    larger penalty, fewer hidden units.

    Where the other units would take more than three quarters of the precision of a Gaussian
    unit, a row goes on in the first order: its solution is that of naive mean field, and its
    variances are given as 0.

    Integers and booleans are computed with in float32. The fit has the same bits whatever
    the number of threads.

    With scikit-learn's ``array_api_dispatch``, tensors of PyTorch and arrays of CuPy are computed
    with on their device, if all units are Bernoulli ones: see :doc:`/user_guide/gpu`.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 2018. Algorithms 1 (inference) and 2 (training).

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.restricted import TAPRBM
    >>> X = make_bars_and_stripes(3)
    >>> model = TAPRBM(8, learning_rate=0.1, alpha=0, max_iter=300, random_state=0).fit(X)
    >>> model.tap_solutions(X).assignment.shape
    (16,)
    >>> bool(model.score(X) > -6)
    True
    """

    _computes_on_devices = True
    _parameter_constraints = {
        **MiniBatchRBM._parameter_constraints,
        **BaseTAP._parameter_constraints,
        "hidden": HIDDEN,
        "inference": [StrOptions(set(INFERENCES))],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        visible="auto",
        hidden="bernoulli",
        visible_range=None,
        order=2,
        tap_max_iter=10,
        tap_tol=1e-8,
        damping=0.5,
        persistent=False,
        inference="tap",
        learning_rate=0.05,
        learning_rate_schedule="auto",
        power_t=0.5,
        momentum=0.5,
        penalty="l2",
        alpha="auto",
        batch_size="auto",
        max_iter="auto",
        weights_init=0.01,
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
        self.visible_range = visible_range
        self.order = order
        self.tap_max_iter = tap_max_iter
        self.tap_tol = tap_tol
        self.damping = damping
        self.persistent = persistent
        self.inference = inference
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.power_t = power_t
        self.momentum = momentum
        self.penalty = penalty
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.weights_init = weights_init
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

    @property
    def _inference(self):
        return self.inference

    def _check_device_settings(self):
        super()._check_device_settings()
        if self.inference != "tap":
            raise ValueError(
                f"TAPRBM: inference={self.inference!r} is there for NumPy arrays only. Use "
                "inference='tap' on a device."
            )

    # What `BaseTAP` asks for.

    def _begin(self, X, rng, weights, n_rows):
        hidden = initial_hidden(self.hidden, self._n_hidden(n_rows, X.shape[1]), X.dtype)
        visible = self._initial_visible(X, weights)
        matrix = self._initial_weights(rng, len(hidden), X.shape[1], X.dtype)
        return [matrix], [visible, hidden]

    def _chosen(self, learner):
        return {"n_components": learner.layers[1].n_units, **super()._chosen(learner)}
