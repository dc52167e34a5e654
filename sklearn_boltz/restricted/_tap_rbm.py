"""TAPRBM: an RBM of any units, trained and used with mean-field inference."""

from sklearn_boltz.restricted._base_tap import UNITS_PER_ROOT, BaseTAP
from sklearn_boltz.restricted._constraints import COMPONENTS, HIDDEN
from sklearn_boltz.restricted.training._auto import resolve_n_components


class TAPRBM(BaseTAP):
    """Restricted Boltzmann machine of binary or real-valued units, with mean-field inference.

    The fixed points of the mean-field equations of Thouless, Anderson and Palmer (TAP) approximate
    the distribution [1]_. Each step of training raises the probability of the data. It lowers that
    of the fixed points that iteration reaches from the data, or of states that a few Gibbs
    transitions reach from these. Inference is deterministic.

    Besides features and samples, the model provides its fixed points (`tap_solutions`), an
    approximate log-likelihood (`tap_log_likelihood`) and estimates of noisy rows (`denoise`).

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of hidden units. ``"auto"`` is twice the number of columns (of numbers in
        `visible_names_`), but at most twice the square root of the number of rows, between 8 and
        500. If `hidden` is an instance, it is its number of units. See `n_components_` for what was
        chosen.

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

    persistent : bool, default=False
        Whether solutions start where those of the last mini-batch, or their Gibbs transitions,
        ended, instead of at the data.

    tempered : bool or "auto", default="auto"
        Whether solutions start at states from the top of a ladder of saved models, whose chains
        exchange states, instead of at the data. Modes then have their probabilities under the
        model, not the shares of the rows. ``"auto"`` trains again with it if, after a fit with
        early stopping and ``max_iter="auto"``, chains from the data do not leave the modes of the
        model, measured as in :class:`SDCPRBM`; this can take 25 times as long.

    inference : {"tap", "naive", "adaptive"} or TAP, default="tap"
        How the solutions of the mean-field equations are found, in training and later, and how
        training uses them: by second-order TAP, naive mean field or adaptive TAP with the default
        settings of :class:`TAP`, or by an instance of it with others. ``TAP(max_iter=10,
        n_gibbs=0)`` is the algorithm of the paper.

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
        Maximum number of epochs. With early stopping, ``"auto"`` is as
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
        result is the model of the last stage that did not overfit. The normalising constant of the
        log-likelihood is exact with up to 12 binary units in the smaller layer, and otherwise
        estimated as described in `track_likelihood`.

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
        `predict_column_proba` has a bar, too.

    random_state : int, RandomState instance or None, default=None
        The source of randomness, for the initial weights, the order of the rows and Markov chains.
        With None, each fit draws other numbers.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights, with the columns named by `visible_names_`.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units. Gaussian and truncated units also have `precision_hidden_`, and
        truncated Gauss-Bernoulli units `rho_hidden_`; `sklearn_boltz.units` describes these
        parameters.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters are in `precision_visible_` and
        `rho_visible_`, with NaN for units without such a parameter.

    log_partition_ : float
        Logarithm of the normalising constant, in nats. It is exact with up to 20 binary units in
        the smaller layer. Otherwise, it is estimated with the ladder of saved models and by
        annealed importance sampling if the log-likelihood was measured during training, and else
        by annealed importance sampling alone. It is computed at first access.

    history_ : dict of ndarray
        One value for each epoch of `fit`, NaN where the model was not measured:

        - ``"tap_log_likelihood"``: mean over 100 training rows, in nats;
        - ``"n_solutions"``: number of distinct solutions that are reached from some of these rows
          (one start for each 50 rows of data, and at least 25);
        - ``"free_energy"`` and ``"free_energy_std"``: mean and standard deviation of their free
          energies;
        - ``"share_converged"``: share of the starts from which TAP converges;
        - ``"learning_rate"`` and ``"seconds"``;
        - ``"log_likelihood"``: mean over up to 2,000 training rows (200 if cells are missing), in
          nats, and ``"log_likelihood_std_err"``, the standard error of its ln Z, see
          `track_likelihood`;
        - with `early_stopping`, ``"validation_log_likelihood"`` and ``"free_energy_gap"``, the
          mean free energy of the validation rows minus that of the training rows.

    n_components_ : int
        Number of hidden units.

    alpha_ : float
        Strength of the penalty.

    n_iter_ : int
        Number of completed epochs.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the columns of `components_`. A column of three or more categories has one for
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
    TAP : Settings of mean-field inference.
    SDCPRBM : RBM trained with Markov chains.
    TAPDBM : The model with several hidden layers.

    Notes
    -----
    TAP is an expansion for small weights. `tap_log_likelihood`, the objective of training without
    Gibbs transitions, is an approximation with an error of third order in the weights; it is
    neither a bound nor unbiased. `score_samples` and `sample` do not use TAP.

    If iteration from most starts no longer converges, or if almost every start reaches a different
    solution, the model is in a spin-glass phase, and results that depend on solutions are not
    reliable. Use a smaller learning rate, a larger penalty or fewer hidden units.

    The second-order term lowers the precision of a Gaussian unit. If a solution would lose more
    than three quarters of it, the naive mean-field solution is used instead, with variances of 0
    (see `order` of `tap_solutions`). ln Z is the sum over the solutions of the higher order. Near
    the critical coupling, where no start has a solution of second order, it can be off by a nat;
    ``inference="adaptive"`` is then much closer.

    Integers and booleans are converted to float32. The fit is the same, bit for bit, for any
    number of threads.

    With scikit-learn's ``array_api_dispatch``, PyTorch tensors and CuPy arrays are processed on
    their device if all units are Bernoulli units, see :doc:`/user_guide/gpu`.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. Algorithms 1 (inference) and 2 (training).
       https://doi.org/10.1103/PhysRevX.8.041006

    Examples
    --------
    >>> from sklearn_boltz import TAPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X = make_bars_and_stripes(3)
    >>> model = TAPRBM(8, learning_rate=0.1, alpha=0, max_iter=300, random_state=0).fit(X)
    >>> model.tap_solutions(X).assignment.shape
    (16,)
    >>> bool(model.score(X) > -6)
    True
    """

    _computes_on_devices = True
    _parameter_constraints = {**BaseTAP._parameter_constraints, **COMPONENTS, "hidden": HIDDEN}

    def __init__(
        self,
        n_components="auto",
        *,
        columns="auto",
        hidden="bernoulli",
        persistent=False,
        tempered="auto",
        inference="tap",
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
        self.n_components = n_components
        self.columns = columns
        self.hidden = hidden
        self.persistent = persistent
        self.tempered = tempered
        self.inference = inference
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

    def _new_training(self, X, weights, n_rows):
        sizes = n_rows, X.shape[1], UNITS_PER_ROOT
        n_units = resolve_n_components(self.n_components, self.hidden, *sizes)
        scheme = self._scheme(n_rows, X.shape[1], self.max_iter)
        return self._training_of([self.hidden], [n_units], scheme, X, weights)
