"""TAPDBM: a deep Boltzmann machine, trained and used with mean-field inference."""

from functools import cache, partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import dense, validate_arguments
from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted._base_tap import LEAST_CONVERGED, UNITS_PER_ROOT, BaseTAP
from sklearn_boltz.restricted._constraints import COUNT, HIDDEN, POSITIVE, RANDOM_STATE
from sklearn_boltz.restricted.mean_field._inference import outside_training, settings_of
from sklearn_boltz.restricted.model._enumeration import hidden_bits
from sklearn_boltz.restricted.model._model import (
    CONTINUUM,
    check_normalisable,
    log_pseudo_likelihood_by,
)
from sklearn_boltz.restricted.sampling import _conditional, _samples
from sklearn_boltz.restricted.sampling._observed import (
    HOST_ROWS,
    by_chunks,
    by_rows,
    rows_with_gaps,
)
from sklearn_boltz.restricted.training._auto import chosen_components
from sklearn_boltz.restricted.training._epochs import Plan, train
from sklearn_boltz.restricted.training._gaps import complete
from sklearn_boltz.restricted.training._progress import tell_figures
from sklearn_boltz.restricted.training._rows import divide
from sklearn_boltz.restricted.training._streamed_rows import StreamedRows
from sklearn_boltz.restricted.training._tap_monitor import TAPMonitor
from sklearn_boltz.restricted.training._visits import rows_with_information

# Hidden layers of ``hidden_layer_sizes="auto"``.
N_LAYERS = 2
# Bits of the even or of the odd hidden layers up to which free energies are exact.
EXACT_BITS = 12


class TAPDBM(BaseTAP):
    """Deep Boltzmann machine of binary or real-valued units, with mean-field inference.

    A deep Boltzmann machine has several hidden layers, each connected to the next [1]_. As in
    :class:`TAPRBM`, which has a single hidden layer, fixed points of the mean-field equations of
    Thouless, Anderson and Palmer (TAP) approximate the distribution. With several hidden layers,
    the hidden units are dependent given a row, and TAP approximates their distribution as well.
    Training has two stages: first each layer by itself, as an RBM on values of the layer below,
    then all layers together.

    Parameters
    ----------
    hidden_layer_sizes : int, array-like of int or "auto", default="auto"
        Number of units of each hidden layer. The first one is next to the data. An int means one
        layer. ``"auto"`` means two layers of as many units as `TAPRBM` has by default: twice the
        number of columns, but not more than twice the square root of the number of training rows,
        and between 8 and 500.

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

    hidden : str, UnitType, type, tuple or list, default="bernoulli"
        The unit type of the hidden layers, one of the same types, or a list with one entry for
        each layer. Categorical units need their number of states, as in ``("categorical", 3)``.
        Truncated units that are given by name take values in [0, 1]; ``"relu"`` is
        :class:`~sklearn_boltz.units.TruncatedGaussian` from 0, with the precision 1 at first.

    persistent : bool, default=False
        Whether solutions start where those of the last mini-batch, or their Gibbs transitions,
        ended, instead of at the data.

    tempered : bool or "auto", default="auto"
        Whether solutions start at states from the top of a ladder of saved models, whose chains
        exchange states, instead of at the data. Modes then have their probabilities under the
        model, not the shares of the rows. ``"auto"`` trains again with it if, after a fit with
        early stopping and ``max_iter="auto"``, chains from the data do not leave the modes of the
        model, measured as in :class:`SDCPRBM`; this can take 25 times as long. It begins without
        pre-training, whose solutions start at the data.

    inference : {"tap", "naive", "adaptive"} or TAP, default="tap"
        How the solutions of the mean-field equations are found, in training and later, and how
        training uses them: by second-order TAP, naive mean field or adaptive TAP with the default
        settings of :class:`TAP`, or by an instance of it with others. ``TAP(max_iter=10,
        n_gibbs=0)`` is the algorithm of the paper.

    pretrain_max_iter : int or "auto", default="auto"
        Number of epochs for which each layer is trained by itself first. ``"auto"`` aims at about
        800 mini-batches, in at least 10 and at most 200 epochs, also if `max_iter` is a number.
        The other settings are those of the joint training, without early stopping;
        ``alpha="auto"`` depends on `pretrain_max_iter` instead of `max_iter`. 0 means no
        pre-training, as does ``"auto"`` with ``tempered=True``; the weights of the upper layers
        then stay small. If data come in batches, it must be 0; otherwise `fit` raises a ValueError.

    learning_rate : float or "auto", default="auto"
        Step size: the factor of the mean gradient in each update. With early stopping, it is that
        of the first stage, and multiplied by 0.3 from one stage to the next. ``"auto"`` is then 2
        divided by the sum of the variances of all numbers of `visible_names_`, but at least 0.03
        and at most 0.4, or 0.05 if a column has real numbers. Without early stopping, it is 0.05.

    penalty : {"l1", "l2"} or None, default="l2"
        Penalty on the weights.

    alpha : float or "auto", default="auto"
        Strength of the penalty, for the mean log-likelihood of the rows. ``"auto"`` is d / (40 n)
        with ``penalty="l2"``, for n rows and d columns, and √(d / 20) / n with ``"l1"``: that is a
        Gaussian or Laplace prior distribution of the weights with the variance 40 / d. It is 0.001,
        as in the paper, if `max_iter` is a number. `partial_fit`, which does not know the number of
        rows, takes 10,000 for n.

    batch_size : int or "auto", default="auto"
        Number of rows in a mini-batch, and of solutions with ``persistent=True``. ``"auto"`` is
        100; with fewer than 2,000 rows it is a 20th of them, but at least 10.

    max_iter : int or "auto", default="auto"
        Maximum number of epochs of the joint training. With early stopping, ``"auto"`` is as
        many as 100,000 mini-batches need, in at least 10 and at most 1,000 epochs. Without it,
        ``"auto"`` aims at about 800 mini-batches, in at least 10 and at most 200 epochs.

    init : float or "scaled", default=0.01
        Standard deviation of the initial weights. ``"scaled"`` is 1 / √(n + m) for weights between
        layers of n and m numbers. On tables of up to a hundred columns, learning starts sooner
        with it.

    early_stopping : bool, float, array-like of rows or "auto", default="auto"
        Whether to set validation rows aside, a tenth or another share of the rows, or the
        validation rows themselves, a table with the columns of `X`. ``"auto"`` does so if there are
        at least 100 rows and `max_iter` is ``"auto"``. Training then has three stages. A stage ends
        when the log-likelihood of these rows has not improved for 8 epochs (in the first stage, for
        8 epochs and 400 mini-batches), or after 20,000 mini-batches, but at least 20 epochs. The
        result is the model of the last stage that did not overfit. The free energies of the rows
        are approximated by TAP. The normalising constant is exact if at most 12 binary units have
        to be enumerated, and otherwise estimated as described in `track_likelihood`.

    tol : float, default=1e-3
        Smallest increase of the log-likelihood per row, in nats, that counts as an improvement.

    track_likelihood : bool or float, default=True
        Whether to measure the log-likelihood after the last epoch and, as often as the cost allows,
        after others. It needs ln Z, the logarithm of the normalising constant. With at most 12
        units in the smaller layer, ln Z is exact, costs almost nothing and is computed after each
        epoch. Otherwise it is estimated by annealed importance sampling and, with 9,000 weights or
        more or where more than the usual cost is allowed, from a ladder of saved models, and the
        larger estimate is used where they differ. A number is this cost in multiplications, as a
        fraction of those of training; True means 0.12, and 0.07 without early stopping and with
        fewer than 100,000 weights. With early stopping, the log-likelihood is always measured.

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

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the initial weights, the order of the rows, and the values of
        hidden units on which the next layer is pre-trained. With None, each fit draws other
        numbers.

    Attributes
    ----------
    components_ : list of ndarray of shape (n_units of the layer, n_units of the layer below)
        The weights between each hidden layer and the layer below it, starting at the data.

    hidden_layer_sizes_ : list of int
        The number of units of each hidden layer, given or chosen.

    intercept_hidden_ : list of ndarray of shape (n_units of the layer,)
        Biases of the hidden units. Gaussian and truncated units also have `precision_hidden_`, and
        truncated Gauss-Bernoulli units `rho_hidden_`; `sklearn_boltz.units` describes these
        parameters. Their entry is None for a layer whose units have no such parameter.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters are in `precision_visible_` and
        `rho_visible_`, with NaN for units without such a parameter.

    log_partition_ : float
        Logarithm of the normalising constant, in nats. Number the layers from 0, the visible one.
        The constant is exact if all even layers together, or all odd layers together, have at most
        20 binary units. Otherwise, it is estimated with the ladder of saved models and by annealed
        importance sampling if the log-likelihood was measured during training, and else by
        annealed importance sampling alone. It is computed at first access.

    history_ : dict of ndarray
        One value for each epoch of the joint training, NaN where the model was not measured:

        - ``"tap_log_likelihood"``: mean over 100 training rows, in nats;
        - ``"n_solutions"``: number of distinct solutions that are reached from some of these rows
          (one start for each 50 rows of data, and at least 25);
        - ``"free_energy"`` and ``"free_energy_std"``: mean and standard deviation of their free
          energies;
        - ``"share_converged"``: share of the starts from which TAP converges;
        - ``"share_converged_clamped"``: share of the rows for which TAP converges with the row
          clamped;
        - ``"weight_norm_k"`` for each hidden layer k = 1, 2, ...: Frobenius norm of the weights
          below it;
        - ``"feature_std_k"``: standard deviation of each unit's mean over the rows, averaged over
          the units of hidden layer k;
        - ``"learning_rate"`` and ``"seconds"``;
        - ``"log_likelihood"``: mean over up to 2,000 training rows (500 with several hidden
          layers, 200 if cells are missing), in nats, and ``"log_likelihood_std_err"``, the standard
          error of its ln Z, see `track_likelihood`;
        - with `early_stopping`, ``"validation_log_likelihood"`` and ``"free_energy_gap"``, the
          mean free energy of the validation rows minus that of the training rows.

    pretrain_history_ : list of dict of ndarray
        For each hidden layer, the `history_` of the :class:`TAPRBM` of its pre-training. The list
        is empty without pre-training.

    alpha_ : float
        Strength of the penalty.

    n_iter_ : int
        Number of epochs of the joint training.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the columns of ``components_[0]``. A column of three or more categories has one for
        each category, such as ``city=Rome``; any other column has one.

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
    TAPRBM : The model with one hidden layer.
    SDCPRBM : RBM trained with Markov chains.

    Notes
    -----
    The log-likelihood of a row has two terms, the free energy of the row and the normalising
    constant. `score_samples` computes the first by TAP, if there are two or more hidden layers, and
    the second without it. So the score is an approximation: the error of TAP is of third order in
    the weights, and TAP is neither a bound nor unbiased. `tap_log_likelihood` uses TAP for both
    terms; `sample` does not use it. For Gaussian units, see the notes of :class:`TAPRBM`.

    With one hidden layer and without pre-training, the model equals a :class:`TAPRBM`, bit for
    bit. `partial_fit` does not pre-train.

    Number the layers from 0, the visible one. The units of the even layers are independent given
    the odd layers, and vice versa. Markov chains and annealing therefore alternate between even
    and odd layers.

    Integers and booleans are converted to float32. The fit is the same, bit for bit, for any
    number of threads.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. Appendix E, Algorithm 4.
       https://doi.org/10.1103/PhysRevX.8.041006

    Examples
    --------
    >>> from sklearn_boltz import TAPDBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X = make_bars_and_stripes(3)
    >>> model = TAPDBM((8, 4), learning_rate=0.3, alpha=0, max_iter=50, random_state=0).fit(X)
    >>> model.transform(X).shape
    (16, 4)
    >>> [W.shape for W in model.components_]
    [(8, 9), (4, 8)]
    >>> bool(model.score(X) > -5.5)
    True
    """

    _parameter_constraints = {
        **BaseTAP._parameter_constraints,
        "hidden_layer_sizes": ["array-like", *POSITIVE, StrOptions({"auto"})],
        "hidden": [*HIDDEN, list],
        "pretrain_max_iter": [*COUNT, StrOptions({"auto"})],
    }

    _is_deep = True
    _chosen = ("hidden_layer_sizes", "alpha")

    def __init__(
        self,
        hidden_layer_sizes="auto",
        *,
        columns="auto",
        hidden="bernoulli",
        persistent=False,
        tempered="auto",
        inference="tap",
        pretrain_max_iter="auto",
        learning_rate="auto",
        penalty="l2",
        alpha="auto",
        batch_size="auto",
        max_iter="auto",
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.columns = columns
        self.hidden = hidden
        self.persistent = persistent
        self.tempered = tempered
        self.inference = inference
        self.pretrain_max_iter = pretrain_max_iter
        self.learning_rate = learning_rate
        self.penalty = penalty
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.init = init
        self.early_stopping = early_stopping
        self.tol = tol
        self.track_likelihood = track_likelihood
        self.unseen = unseen
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # The layers.

    def _has_one_layer(self):
        check_is_fitted(self)
        return len(self.components_) == 1

    def _given_sizes(self):
        """Numbers of hidden units as a list, checked; None for ``"auto"``. An int is one layer."""
        if isinstance(self.hidden_layer_sizes, str):
            return None
        sizes = np.atleast_1d(np.asarray(self.hidden_layer_sizes))
        if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(
                "hidden_layer_sizes must be positive integers, one for each hidden layer, got "
                f"{self.hidden_layer_sizes!r}."
            )
        return sizes.tolist()

    @property
    def _n_features_out(self):
        return len(self.components_[-1])

    def _hidden_kinds(self, n_layers):
        """The unit type that `hidden` asks for, for each hidden layer."""
        kinds = self.hidden if isinstance(self.hidden, list) else [self.hidden] * n_layers
        if len(kinds) != n_layers:
            raise ValueError(
                f"hidden has {len(kinds)} unit types, but there are {n_layers} hidden layers. Give "
                "one type for each layer, or a single type for all."
            )
        return kinds

    # Training.

    def _new_training(self, X, weights, n_rows):
        sizes = self._given_sizes()
        if sizes is None:
            sizes = [chosen_components(n_rows, X.shape[1], UNITS_PER_ROOT)] * N_LAYERS
        scheme = self._scheme(n_rows, X.shape[1], self.max_iter)
        return self._training_of(self._hidden_kinds(len(sizes)), sizes, scheme, X, weights)

    def _plan(self, training, n_rows, stops):
        # The layers would be pre-trained by what tempering is to replace.
        without = self.pretrain_max_iter == "auto" and self.tempered is True
        prepare = self._pretrain if self.pretrain_max_iter and not without else None
        return super()._plan(training, n_rows, stops)._replace(prepare=prepare)

    def _pretrain(self, training, rows, workers):
        """Train each layer as an RBM on the values of the layer below (Algorithm 4)."""
        if isinstance(rows, StreamedRows):
            raise ValueError(
                "TAPDBM: pre-training needs all rows in memory, but X comes in batches. Set "
                "pretrain_max_iter=0, or fit an array of some of the rows first and continue "
                "with warm_start=True."
            )
        X, weights = rows_with_information(rows.in_memory(), rows.weights)
        learner, visible, before = training.learner, training.learner.layers[0], []
        if isinstance(self.columns, str) and self._encoder.coding.is_plain:
            visible = self._encoder.coding.initial_units(X, weights)
        for k, kind in enumerate(self._hidden_kinds(len(learner.weights))):
            size = learner.layers[k + 1].n_units
            layer = self._trained_layer(k, kind, size, visible, X, weights, training.rng, workers)
            model = layer.learner.model().sides()
            check_normalisable(model)
            learner.weights[k], below, learner.layers[k + 1] = model
            if k == 0:
                learner.layers[0] = below
            before.append({name: np.array(v) for name, v in layer.history.items()})
            if k + 1 == len(learner.weights):
                break
            seed = None
            if rows_with_gaps(X) is not None:
                seed = int(training.rng.integers(2**31))
            stream = Stream.from_generator(make_generator(int(training.rng.integers(2**31))))
            X = model.hidden.sample(hidden_fields(model, X, seed, workers), stream)
            # The next one begins at these values, if the type of their units is all that is given.
            visible = model.hidden.astype(X.dtype)
            if isinstance(kind, str) and visible.width == 1:
                visible = visible.fitted_to(X, weights)
        training.before = before

    def _trained_layer(self, k, kind, size, visible, X, weights, rng, workers):
        """The training of an RBM of two layers, on rows of the lower one."""
        n_rows, rng = X.shape[0], make_generator(int(rng.integers(2**31)))
        scheme = self._scheme(n_rows, X.shape[1], self.pretrain_max_iter)
        layer = self._training_of([kind], [size], scheme, X, weights, visible, rng)
        rows, train_rows, valid = divide(X, weights, 0.0, layer.evaluation_seed)
        layer.kept = rows.kept
        monitor = partial(
            TAPMonitor,
            X,
            train_rows,
            valid,
            layer.seen,
            outside_training(self.inference),
            weights,
            None,
            False,
        )
        given = self.batch_size, self.pretrain_max_iter
        size, _, n_epochs = self._schedule.lengths(*given, n_rows, stops=False)
        plan = Plan(n_epochs, size, self._first_rate())

        bar = progress_bar(f"epochs of layer {k + 1}", n_epochs, self.verbose == 1)

        def tell(layer):
            bar.update()
            if self.verbose > 1:
                figures, of = layer.figures(layer.n_epochs), f"layer {k + 1}, epoch"
                tell_figures(type(self).__name__, of, layer.n_epochs, figures)

        with bar:
            layer, status = train(layer, rows, cache(monitor), plan, workers, tell)
        if status == "interrupted":
            raise KeyboardInterrupt
        return layer

    # What follows from rows.

    def _clamped(self, function, X):
        """Apply a function of `Clamped` to checked rows, a chunk at a time; NaN is missing."""
        model, n_converged = self._marginal(), 0

        def of_chunk(V):
            nonlocal n_converged
            clamped = model.clamped(V)
            n_converged += np.count_nonzero(clamped.converged)
            return function(clamped)

        found = by_rows(of_chunk, of_chunk, X)
        if n_converged < LEAST_CONVERGED * X.shape[0]:
            warn(
                f"With the row clamped, TAP converges for only {n_converged / X.shape[0]:.0%} of "
                "the rows; for the others, the result is that of the last iteration. Use a larger "
                "damping, or train with a smaller learning_rate or a larger alpha.",
                ConvergenceWarning,
            )
        return found

    def transform(self, X):
        """Return the means of the last hidden layer given each row, as features for a classifier.

        `mean_hidden` returns those of all layers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        H : ndarray of shape (n_samples, n_features_out)
            E[h | v] of the last layer, by TAP with the visible units clamped to the row.
        """
        return self.mean_hidden(X)[-1]

    def mean_hidden(self, V):
        """Return the means of all hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value.

        Returns
        -------
        H : list of ndarray of shape (n_samples, n_units of the layer)
            E[h | v] of each hidden layer, by TAP with the observed values clamped. With one hidden
            layer, as in :class:`TAPRBM`.
        """
        if self._has_one_layer():
            return [super().mean_hidden(V)]
        V = self._checked(V, allow_nan=True, lazily=True)
        means = self._clamped(lambda clamped: np.hstack(clamped.means()[1:]), V)
        return np.split(means, np.cumsum([len(W) for W in self.components_])[:-1], axis=1)

    def inverse_transform(self, X):
        """Return the means of the visible units for features made by `transform`.

        The means of each layer are computed from those of the layer above it, from the last one
        down to the visible one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Means of the units of the last layer.

        Returns
        -------
        V : ndarray of shape (n_samples, n_visible)
            Means of the visible units, in the order of `visible_names_`. With one hidden layer,
            they are E[v | h] with h at its mean.
        """
        check_is_fitted(self)
        layered = self._layered()
        mean = np.ascontiguousarray(X, dtype=layered.weights[0].dtype)
        if mean.ndim != 2 or mean.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have shape (n_samples, {self._n_features_out}), got {mean.shape}."
            )
        for units, W in zip(layered.layers[-2::-1], layered.weights[::-1], strict=True):
            mean = units.mean(mean @ W)
        return self._encoder.coding.unscaled(mean)

    @validate_arguments(
        {"V": ["array-like", "sparse matrix"], "n_steps": POSITIVE, "random_state": RANDOM_STATE}
    )
    def sample_hidden(self, V, random_state=None, *, n_steps=1000):
        """Draw the hidden units given the visible ones.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible units. NaN is a missing value, which is drawn together with the
            hidden units.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        n_steps : int, default=1000
            Number of transitions of each Markov chain, with the row clamped. It has no effect with
            one hidden layer and complete rows, because the draw is then exact.

        Returns
        -------
        H : list of ndarray of shape (n_samples, n_units of the layer)
            Values of each hidden layer.
        """
        V, layered, model = self._checked(V, allow_nan=True), self._layered(), self._model()
        stream = Stream.from_generator(make_generator(random_state))
        if rows_with_gaps(V) is not None:
            known, missing = np.nan_to_num(V), layered.padded(np.isnan(V), True)
            rows = layered.padded(known)
            *_, (_, even) = _conditional.clamped_chains(model, rows, missing, n_steps, stream)
        else:
            even = np.array(self._marginal().side(dense(V)), order="C")
            n_steps, columns = n_steps * (len(layered.weights) > 1), np.arange(even.shape[1])
            with Workers(self.n_jobs) as workers:
                columns = columns < V.shape[1]
                _samples.chain_samples(model, even, n_steps, stream, workers, columns)
        return layered.split(even, model.hidden.sample(model.hidden_field(even), stream))[1:]

    def _free_energy(self, V, cells=None):
        if not self._has_one_layer() and hidden_bits(self._layered()) <= EXACT_BITS:
            V = self._checked(V, allow_nan=True, lazily=True, cells=cells)
            return by_chunks(self._free_energy_of_gaps, V)
        return self._tap_free_energy(V, cells)

    def _tap_free_energy(self, V, cells=None):
        """F(v) of rows by mean field, as in training."""
        if self._has_one_layer():
            return super()._free_energy(V, cells)

        def of_rows(clamped):
            order = settings_of(self.inference).order
            return self._free_energy_of_gaps(clamped.V, clamped.free_energy(order))

        return self._clamped(of_rows, self._checked(V, allow_nan=True, lazily=True, cells=cells))

    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row.

        For each row, each column is set to each of its values in turn, and the free energies of
        all these rows are computed. They are exact with one hidden layer, or if all even or all
        odd hidden layers have at most 12 binary units together. Otherwise, they are approximated
        by TAP.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. A value between 0 and 1 is taken as the probability of a 1. NaN is a missing
            value.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the columns of ln p(v_i | all other columns), in nats. In a row with
            missing values, the sum is over the observed columns, each given the other observed
            ones.

        Raises
        ------
        ValueError
            If visible units have continuous values.
        """
        if self._has_one_layer():
            return super().log_pseudo_likelihood(X)
        X, layered, model = self._checked(X, allow_nan=True), self._layered(), self._marginal()
        visible = model.visible
        if not visible.is_enumerable:
            raise ValueError(CONTINUUM)
        exact = hidden_bits(layered) <= EXACT_BITS
        free_energy = self._free_energy_of_gaps if exact else model.free_energy
        return by_chunks(partial(log_pseudo_likelihood_by, free_energy, visible), X)


def hidden_fields(model, X, seed, workers):
    """Fields of the hidden units in rows; missing cells are drawn by a seed. A chunk at a time."""

    def of_chunk(rows):
        V = dense(X[rows])
        if seed is not None:
            V = complete(model, V, np.isnan(V), seed, workers, rows.start)
        return model.hidden_field(V)

    return np.concatenate([of_chunk(rows) for rows in gen_batches(X.shape[0], HOST_ROWS)])
