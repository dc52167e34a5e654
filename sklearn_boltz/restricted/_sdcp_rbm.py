"""SDCPRBM: an RBM trained by stochastic difference-of-convex programming."""

from copy import deepcopy
from numbers import Real

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.restricted._constraints import COMPONENTS, HIDDEN, POSITIVE, TRACKED
from sklearn_boltz.restricted._mini_batches import MiniBatchEstimator
from sklearn_boltz.restricted.model._units import initial_hidden
from sklearn_boltz.restricted.training._auto import chosen_decay, resolve_n_components
from sklearn_boltz.restricted.training._epochs import Training
from sklearn_boltz.restricted.training._initial import (
    INITIAL_SCALE,
    begin_at_init,
    initial_visible,
    is_model,
    n_units_of,
)
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._rows import ColumnSums
from sklearn_boltz.restricted.training._sdcp import SDCPLearner, SDCPScheme, weights_of
from sklearn_boltz.units._unit import observed_sums

# With n_components="auto", at most this many couplings of an initial network become hidden units.
MOST_OF_INIT = 1000
# With n_components="auto", at most this many hidden units for each square root of the number of
# rows. With 6 instead of 2, the log-likelihood of the digits is 0.2 to 0.4 nats higher.
UNITS_PER_ROOT = 6
# Good features need many cheap steps rather than a good likelihood: PCD, as in scikit-learn's
# BernoulliRBM, which takes twice the time for as many epochs.
FEATURES = {
    "learning_rate": 0.05, "batch_size": 10, "n_inner": 1, "n_gibbs": 1, "centered": False,
    "chains": "persistent", "alpha": 0.0, "init": "scaled", "early_stopping": False,
    "track_likelihood": False,
}  # fmt: skip


class SDCPRBM(MiniBatchEstimator):
    """Restricted Boltzmann machine of any units, trained by CS-DCP or related algorithms.

    It can replace :class:`sklearn.neural_network.BernoulliRBM`, and adds a normalised likelihood,
    `score_samples`, so that models can be compared and tuned. The default settings are for a good
    likelihood; for features of a classifier, use `for_features`. Tables may have columns of bits,
    of categories and of real numbers.

    The log-likelihood of an RBM is a difference of two convex functions. For each mini-batch,
    S-DCP linearises one of them and makes several steps of stochastic gradient descent on the
    other. The Markov chains start at the data and continue from step to step [1]_. With the same
    number of transitions, S-DCP learns faster than contrastive divergence and gets stuck less
    often. CS-DCP, the default, is S-DCP with the centred gradient.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of hidden units. ``"auto"`` is one for each category of a column of three or more,
        and two for each other column, but at most 6 times the square root of the number of rows,
        between 8 and 500. If `hidden` is an instance, it is its number of units. With `init`, it is
        at least the number of hidden units or couplings of `init`, counted up to 1,000. See
        `n_components_` for what was chosen.

    columns : str, list, dict or UnitType, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"probability"``, the list of its values, or the type of its units, which is
        ``"gaussian"``, ``"truncated_gaussian"``, ``"truncated_gauss_bernoulli"`` or a class of
        `sklearn_boltz.units`; see :ref:`kinds`. A string is the kind of all columns. A dict names
        some, as in ``{"age": "gaussian"}``, by label or number, and a list has an entry for each.
        ``"auto"`` looks at the table: numbers are put into bins, except for those of an array whose
        cells all lie in [0, 1], which are probabilities of a 1.

        A ``"gaussian"`` column is standardised with its mean and standard deviation in the training
        data (in the first batch, if data come in batches), so that all continuous columns are
        learned equally fast. The parameters refer to the standardised column; rows, samples and
        densities refer to the original one.

        An instance of a class of `sklearn_boltz.units`, for all columns or for one, gives the
        initial parameters of these units, on the scale of the data.

    hidden : str, UnitType, type or tuple, default="bernoulli"
        The unit type of the hidden layer, one of the same types. Categorical units need their
        number of states, as in ``("categorical", 3)``. ``"relu"`` is
        :class:`~sklearn_boltz.units.TruncatedGaussian` from 0, with the precision 1 at first. An
        instance of a class of `sklearn_boltz.units` with `n_components` units gives their initial
        parameters.

    learning_rate : float or "auto", default="auto"
        Step size: the factor of the mean gradient in each update. With early stopping, it is that
        of the first stage; from one to the next, it is multiplied by 0.3. Otherwise, it is
        constant. ``"auto"`` is 0.05; in stages, it is 2 divided by the sum of the variances of all
        numbers of `visible_names_`, but at least 0.03 and at most 0.4, and 0.05 if a column has
        real numbers.

    batch_size : int or "auto", default="auto"
        Number of rows in a mini-batch, and of chains. ``"auto"`` is 100; with fewer than 2,000 rows
        it is a 20th of them, but at least 10.

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

    chains : {"data", "persistent", "auto"} or callable, default="auto"
        The Markov chains of the negative phase. ``"data"``: they start at the rows of each
        mini-batch. ``"persistent"``: they continue from one mini-batch to the next.

        With ``"auto"``, they start at the data. The last stage of a fit with early stopping
        is then different: persistent contrastive divergence with 5 transitions for each mini-batch
        (whatever `n_inner` and `n_gibbs`), at a learning rate of 0.006, but at most 0.12 times that
        of the first stage, for as many epochs as 15,000 mini-batches need, or twice as many as an
        epoch has mini-batches if that is less, but at least 30 and at most 100. The model is then
        the mean of the parameters over the last two thirds of these epochs, unless the model before
        was better on the validation rows. A fit never ends with parameters whose log-likelihood of
        the validation rows is more than two standard errors below that after an epoch in which it
        was measured: it then returns to that epoch, unless `max_iter` ended it and `warm_start` is
        set.

        A callable is a sampler that replaces the chains, such as an annealer, if all units are
        binary: the `sampler` of :class:`~sklearn_boltz.MaximumEntropy`, for the spins of
        :func:`~sklearn_boltz.statistics.to_ising`, visible and then hidden. It is asked for as many
        states as a mini-batch has rows, `n_inner` times for each mini-batch; the means of the
        hidden units given the visible spins count, not the hidden spins. See :ref:`annealer`.

    tempered : float or "auto", default="auto"
        Share of the states of the negative phase that comes from the top of a ladder of saved
        models, whose chains exchange states [2]_. Training then also uses states that are probable
        under the model but that chains from the data do not reach.

        ``"auto"`` begins with 0. At the end of a fit with early stopping and ``"auto"`` for
        `chains` and `max_iter`, chains from 200 training rows make 100 transitions. If the
        correlation of their states with the rows, summed over the columns, is above 0.5, the chains
        are stuck in modes, whose probabilities training cannot learn. It then starts again with a
        share of 0.2, which can take 25 times as long on small tables; `history_` continues.

        A number takes about twice the time, and needs a smaller learning rate with the default
        `n_inner`: about 0.025 for a share of 0.2, and 0.01 for 0.5. The number of chains is the
        number of rows in a mini-batch, and at least 100. With ``chains="persistent"``, all states
        come from the ladder, whose chains replace the persistent ones. The model is that of the
        epoch of this fit with the largest log-likelihood (of validation rows, if there are any),
        also after Ctrl-C. With `warm_start`, the next fit continues from it.

    alpha : float or "auto", default="auto"
        Strength λ of the L2 penalty ½ λ Σ W² on the weights, for the mean log-likelihood of the
        rows. ``"auto"`` is d / (40 n) for n rows and d columns (numbers in `visible_names_`): the
        penalty is then a Gaussian prior distribution of the weights with the variance 40 / d. It is
        0 if `max_iter` is a number. `partial_fit`, which does not know the number of rows, takes
        10,000 for n, here and for `n_components`.

    init : float, "scaled" or estimator, default=0.01
        A number is the standard deviation of the initial weights; ``"scaled"`` is 1 / √(n + m)
        between layers of n and m numbers. On tables of up to a hundred columns, learning starts
        sooner with it. An estimator is the initial model. It can be an RBM of the same columns with
        at most `n_components` binary hidden units, or a network, such as
        :class:`~sklearn_boltz.SparseFVBM`.

        Each of the `n_components` strongest couplings of a network becomes a hidden unit with the
        same effect. If there are as many units as couplings, training starts at the likelihood of
        the network. Columns must be bits or categories, not real numbers or probabilities between
        0 and 1.

        An estimator that is not fitted is cloned and fitted to the rows first. Cloning, as in
        cross-validation, undoes the fit of `init`; to keep it, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.

    early_stopping : bool, float, array-like of rows or "auto", default="auto"
        Whether to set validation rows aside, a tenth or another share of the rows, or the
        validation rows themselves, a table with the columns of `X`. Training then has three stages,
        or two if the rate of a third would be less than that of the last stage of `chains`. A stage
        ends when the log-likelihood of the validation rows has not improved for 8 epochs (in the
        first stage, for 8 epochs and 200 mini-batches, or 400 if `chains` is not ``"auto"``), or
        after 20,000 mini-batches, but at least 20 epochs. Where not all columns are bits and
        `chains` is ``"auto"``, 5 epochs and 100 mini-batches take the place of 8 and 200. The
        result is the model of the last stage that did not overfit, or the mean over one more stage,
        see `chains`. ``"auto"`` does so if there are at least 100 rows and `max_iter` is
        ``"auto"``.

    tol : float, default=1e-3
        Smallest increase of the log-likelihood per row, in nats, that counts as an improvement.

    track_likelihood : bool or float, default=True
        Whether to measure the log-likelihood after the last epoch and, as often as the cost allows,
        after others. It needs ln Z, the logarithm of the normalising constant. With at most 12
        units in the smaller layer, ln Z is exact, costs almost nothing and is computed after each
        epoch. Otherwise it is estimated by annealed importance sampling and, with 9,000 weights or
        more or where more than the usual cost is allowed, from a ladder of saved models, and the
        larger estimate is used where they differ. A number is this cost in multiplications, as a
        fraction of those of training; True means 0.12 with early stopping, 0.07 without it if there
        are fewer than 100,000 weights (8 to 11 % of the time), and 1 with `tempered`. With early
        stopping, the log-likelihood is always measured.

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
        If positive, print the kinds of the columns, the settings that were chosen automatically,
        and a line at the end of a fit; if 1, show a bar after two seconds, with the time left where
        the number of epochs is known; if greater, print a line for each epoch.
        `predict_column_proba` has a bar, too.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the initial weights, the order of the rows and Markov chains.
        With None, each fit draws other numbers.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights. A column of three or more categories has one column here for each category,
        any other column has one, as named by `visible_names_`. Hidden units with q states have q
        rows each.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units, always without centring. Other parameters, such as
        `precision_hidden_` of Gaussian units, are described in `sklearn_boltz.units`.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters are in attributes of their own, such as
        `precision_visible_`, with NaN for units without such a parameter.

    init_ : estimator
        The fitted initial model, if `init` is given.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the columns of `components_`, such as ``city=Rome``.

    log_partition_ : float
        Logarithm of the normalising constant, in nats, as ``log_partition()`` returns it: exact
        with up to 20 units in the smaller layer, and otherwise estimated. It is computed at first
        access.

    history_ : dict of ndarray
        One value for each epoch of `fit`, NaN where the model was not measured:

        - ``"reconstruction_error"``: mean squared difference of a value from its reconstruction;
        - ``"log_pseudo_likelihood"``: a stochastic estimate on fixed columns of fixed training
          rows; it is absent if a column has continuous values;
        - ``"learning_rate"`` and ``"seconds"``;
        - ``"log_likelihood"``: mean over up to 2,000 training rows (200 if cells are missing), in
          nats, and ``"log_likelihood_std_err"``, the standard error of its ln Z, see
          `track_likelihood`;
        - with `early_stopping`, ``"validation_log_likelihood"`` and ``"free_energy_gap"``, the
          mean free energy of the validation rows minus that of the training rows.

    n_components_ : int
        Number of hidden units.

    alpha_ : float
        Strength of the L2 penalty.

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
    TAPRBM : RBM with mean-field inference.
    InfiniteRBM : RBM that chooses its number of hidden units.
    RBMClassifier : RBM of features and a label.
    sklearn.neural_network.BernoulliRBM : RBM trained by persistent contrastive divergence.

    Notes
    -----
    These settings give the algorithms of the paper:

    ==============================  ======================================================
    contrastive divergence, CD-K    ``n_inner=1, n_gibbs=K, centered=False``
    centred gradient, CG            ``n_inner=1, n_gibbs=K``
    persistent CD, PCD              ``n_inner=1, n_gibbs=1, centered=False, chains="persistent"``
    S-DCP                           ``centered=False``
    CS-DCP                          the default
    ==============================  ======================================================

    Integers and booleans are converted to float32. The fit is the same, bit for bit, for any
    number of threads.

    With scikit-learn's ``array_api_dispatch``, PyTorch tensors and CuPy arrays are processed on
    their device if all units are Bernoulli units, see :doc:`/user_guide/gpu`.

    References
    ----------
    .. [1] V. Upadhya and P. S. Sastry, "Learning RBM with a DC programming approach", ACML
       2017. Algorithms 3 (S-DCP) and 4 (CS-DCP).
    .. [2] N. Béreux, A. Decelle, C. Furtlehner, L. Rosset and B. Seoane, "Fast training and
       sampling of restricted Boltzmann machines", arXiv:2405.15376, 2024.

    Examples
    --------
    >>> from sklearn_boltz import SDCPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(n_components=8, learning_rate=0.3, max_iter=200, random_state=0)
    >>> model.fit(X).transform(X).shape
    (16, 8)
    >>> bool(model.score(X) > -4)
    True

    A table with a column of strings and a column of real numbers:

    >>> import numpy as np
    >>> import pandas as pd
    >>> city = np.tile(["Oslo", "Rome", "Cairo"], 60)
    >>> degrees = {"Oslo": 6.0, "Rome": 16.0, "Cairo": 22.0}
    >>> noise = np.random.default_rng(0).normal(size=180)
    >>> X = pd.DataFrame({"city": city, "degrees": [degrees[c] for c in city] + noise})
    >>> model = SDCPRBM(8, max_iter=50, random_state=0).fit(X)
    >>> cold = model.sample(100, given={"city": "Oslo"}, random_state=0)
    >>> bool(4 < cold["degrees"].mean() < 8)
    True
    """

    _computes_on_devices = True
    _parameter_constraints = {
        **MiniBatchEstimator._parameter_constraints,
        **TRACKED,
        **COMPONENTS,
        "hidden": HIDDEN,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_inner": POSITIVE,
        "n_gibbs": POSITIVE,
        "centered": ["boolean"],
        "chains": [StrOptions({"auto", "data", "persistent"}), callable],
        "tempered": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "init": [*INITIAL_SCALE, HasMethods(["fit", "score_samples"])],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        columns="auto",
        hidden="bernoulli",
        learning_rate="auto",
        batch_size="auto",
        max_iter="auto",
        n_inner=6,
        n_gibbs=4,
        centered=True,
        chains="auto",
        tempered="auto",
        alpha="auto",
        init=0.01,
        early_stopping="auto",
        tol=1e-3,
        track_likelihood=True,
        unseen="smooth",
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.columns = columns
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_inner = n_inner
        self.n_gibbs = n_gibbs
        self.centered = centered
        self.chains = chains
        self.tempered = tempered
        self.alpha = alpha
        self.init = init
        self.early_stopping = early_stopping
        self.tol = tol
        self.track_likelihood = track_likelihood
        self.unseen = unseen
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def from_parameters(cls, weights, visible_bias=None, hidden_bias=None):
        """Return an RBM of bits with given parameters, as if it had been fitted.

        Parameters
        ----------
        weights : array-like of shape (n_components, n_features)
            The weights W, where p(v, h) ∝ exp(h·Wv + b·v + c·h).
        visible_bias : array-like of shape (n_features,), default=None
            The biases b, also as a matrix of one row or column; None for zeros.
        hidden_bias : array-like of shape (n_components,), default=None
            The biases c, likewise; None for zeros.

        Returns
        -------
        rbm : SDCPRBM
            With the dtype of the weights, if that is float32, and otherwise float64.

        Raises
        ------
        ValueError
            If the shapes do not match, or a number is not finite.

        Examples
        --------
        >>> from sklearn_boltz import SDCPRBM
        >>> rbm = SDCPRBM.from_parameters([[2.0, -2.0]], visible_bias=[0.0, 1.0])
        >>> rbm.score_samples([[1, 0], [0, 1]]).round(2)
        array([-0.81, -1.81])
        """
        weights = check_array(weights, dtype=[np.float64, np.float32], input_name="weights")
        shape, dtype = weights.shape, weights.dtype
        given = visible_bias, hidden_bias
        b, c = (
            np.zeros(n, dtype)
            if bias is None
            else column_or_1d(np.atleast_1d(np.squeeze(bias)), dtype=dtype)
            for bias, n in zip(given, shape[::-1], strict=True)
        )
        if (len(c), len(b)) != shape or not np.isfinite([b.sum(), c.sum()]).all():
            raise ValueError(
                f"weights of shape {shape} need {shape[1]} visible and {shape[0]} hidden biases, "
                f"all of them finite; got {len(b)} and {len(c)}."
            )
        rows = np.array([[0], [1]], dtype).repeat(shape[1], axis=1)
        rbm = cls(shape[0], max_iter=0, random_state=0).fit(rows).set_params(max_iter="auto")
        rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_ = weights.copy(), b, c
        return rbm.set_params(random_state=None)

    @classmethod
    def for_features(cls, n_components=256, **parameters):
        """Return an RBM, not fitted yet, with settings that make good features.

        The default settings are for a good likelihood. For `transform` before a classifier, many
        cheap steps are better: persistent contrastive divergence in mini-batches of 10 rows, as
        :class:`sklearn.neural_network.BernoulliRBM` learns. See :ref:`features`.

        Parameters
        ----------
        n_components : int or "auto", default=256
            Number of hidden units.
        **parameters
            Other parameters of the class, such as `random_state`. They take precedence over these
            settings.

        Returns
        -------
        rbm : SDCPRBM
            With ``learning_rate=0.05``, ``batch_size=10``, ``n_inner=1``, ``n_gibbs=1``,
            ``centered=False``, ``chains="persistent"``, ``alpha=0.0``, ``init="scaled"``,
            ``early_stopping=False`` and ``track_likelihood=False``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_boltz import SDCPRBM
        >>> X, y = load_digits(return_X_y=True)
        >>> rbm = SDCPRBM.for_features(100, random_state=0)
        >>> model = make_pipeline(rbm, LogisticRegression(max_iter=200)).fit(X / 16, y)
        >>> bool(model.score(X / 16, y) > 0.9)
        True
        """
        return cls(n_components, **FEATURES | parameters)

    # Training: what `BaseRBM` asks for.

    def _new_training(self, X, weights, n_rows):
        rng, seen = make_generator(self.random_state), ColumnSums(*observed_sums(X, weights))
        sizes = n_rows, self._encoder.coding.n_effective, UNITS_PER_ROOT
        n_hidden = resolve_n_components(self.n_components, self.hidden, *sizes)
        if self.n_components == "auto" and is_model(self.init):
            n_hidden = max(n_hidden, min(n_units_of(self.init_), MOST_OF_INIT))
        hidden = initial_hidden(self.hidden, n_hidden, X.dtype)
        matrix = self._initial_weights(rng, len(hidden), X.shape[1], X.dtype)
        visible = initial_visible(self._encoder.coding, X, weights)
        base = deepcopy(visible)
        check_kinds(visible, hidden, self.centered)
        first = begin_at_init(self, matrix, visible, hidden) if is_model(self.init) else visible
        learner = SDCPLearner(
            matrix, first, hidden, seen.means(X.dtype),
            self._scheme(n_rows, visible, hidden),
            SGD(), Stream.from_generator(rng),
        )  # fmt: skip
        if first is not visible:
            mean = learner.visible_offset[np.newaxis]
            learner.hidden_offset[...] = learner.model().mean_hidden(mean)[0]
        return Training(learner, rng, seen, base)

    def _restore(self, training):
        learner = training.learner
        (weights,), (learner.visible, learner.hidden) = self._layered().astype(learner.dtype)
        learner.weights = weights_of(weights)
        learner.scheme = self._scheme(training.n_rows, learner.visible, learner.hidden)

    def _scheme(self, n_rows, visible, hidden):
        alpha = self.alpha
        if alpha == "auto":
            alpha = chosen_decay(n_rows, len(visible)) if self.max_iter == "auto" else 0.0
        given = 0.0 if self.tempered == "auto" else float(self.tempered)
        is_persistent = self.chains == "persistent"  # from the beginning
        sampler = self.chains if callable(self.chains) else None
        if sampler is not None:
            name = type(self).__name__
            self._check_bits(f"{name}: a sampler", visible, hidden)
            if given:
                raise ValueError(
                    f"{name}: a sampler replaces all chains, and tempered is {given}. Use "
                    "tempered=0 or chains='auto'."
                )
        # The chains of a ladder take the place of persistent ones.
        share = 1.0 if given and is_persistent else given
        return SDCPScheme(
            n_inner=self.n_inner,
            n_gibbs=self.n_gibbs,
            centered=self.centered,
            persistent=is_persistent,
            n_chains=self._schedule.batch_size(self.batch_size, n_rows),
            alpha=alpha,
            tempered=share,
            sampler=sampler,
        )


def check_kinds(visible, hidden, centered):
    """Raise an error for units that cannot be trained together by chains."""
    if visible.is_binary and hidden.is_binary:
        return
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
