"""InfiniteRBM: an RBM that chooses its number of hidden units."""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from sklearn_boltz.callbacks import with_callbacks
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.restricted._constraints import COUNT, POSITIVE, SHARE, TRACKED
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted.model._cells import check_dense
from sklearn_boltz.restricted.model._enumeration import n_bits
from sklearn_boltz.restricted.training._epochs import Training
from sklearn_boltz.restricted.training._frank_wolfe import FITTED_ROWS, GrowingLearner
from sklearn_boltz.restricted.training._growth import GrowthPlan
from sklearn_boltz.restricted.training._initial import begin_at_init, initial_visible, n_units_of
from sklearn_boltz.restricted.training._monitor import BETTER, EXACT_UNITS, no_better
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._rows import ColumnSums
from sklearn_boltz.restricted.training._sdcp import SDCPScheme
from sklearn_boltz.restricted.training._tracker import Tracker
from sklearn_boltz.tables._batches import as_batches
from sklearn_boltz.units import Bernoulli
from sklearn_boltz.units._unit import observed_sums

# Copies of rows with one-hot numbers that a fit holds at a time, at least: data and samples.
COPIES = 3
DIVERGED = "The parameters diverged. Use a smaller learning_rate or a larger alpha."


class InfiniteRBM(BaseRBM):
    """Restricted Boltzmann machine that chooses its number of hidden units.

    Training starts without hidden units and adds one at a time. Each step searches for the unit
    along which the log-likelihood rises fastest, and inserts it. Training stops when the
    log-likelihood of validation rows no longer improves [1]_. The result is an ordinary RBM;
    as `init` of :class:`SDCPRBM`, it is a start for the training of all units together. The method
    is the Frank-Wolfe algorithm: with an unlimited number of hidden units, the log-likelihood is
    concave in the measure of their weights.

    As published, a unit is inserted at full size, and with an `alpha` of 0.01 the likelihood falls.
    Here, each insertion is centred, and the weights of the unit are scaled to the largest gain,
    which is estimated from samples of the model; see Notes. By default, all units are then trained
    together for some mini-batches.

    Parameters
    ----------
    max_components : int, default=500
        Maximum number of hidden units.

    columns : str, list, dict or UnitType, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"probability"``, the list of its values, or the type of its units, which is
        ``"gaussian"``, ``"truncated_gaussian"``, ``"truncated_gauss_bernoulli"`` or a class of
        `sklearn_boltz.units`; see :ref:`kinds`. A string is the kind of all columns. A dict names
        some, as in ``{"age": "gaussian"}``, by label or number, and a list has an entry for each.
        ``"auto"`` looks at the table: numbers are put into bins, except for those of an array whose
        cells all lie in [0, 1], which are probabilities of a 1.

        A ``"gaussian"`` column is standardised with its mean and standard deviation in the training
        data, so that all continuous columns are learned equally fast. The parameters refer to the
        standardised column; rows, samples and densities refer to the original one.

        An instance of a class of `sklearn_boltz.units`, for all columns or for one, gives the
        initial parameters of these units, on the scale of the data.

    alpha : float, default=0.01
        Strength of the L2 penalty on the weights of a unit in the search, λ in the paper. In
        the search for a unit, it is divided by 4 after each unsuccessful attempt, except with
        ``mode="plain"``. After five such attempts, the training ends.

    mode : {"corrective", "safeguarded", "plain"}, default="corrective"
        ``"corrective"`` trains all units together for some mini-batches after each insertion.
        ``"safeguarded"`` leaves units as they were inserted. Each unit costs less, but the same
        likelihood takes more units. ``"plain"`` is the algorithm as published; with its smallest
        penalty, an `alpha` of 0.01, the likelihood falls.

    learning_rate : float, default=0.1
        Step size for the visible biases. After each insertion, steps are repeated until the means
        of the model match those of the data within their sampling error, at most 1,000 times.

    n_model_samples : int, default=2000
        Number of persistent Markov chains whose states approximate the distribution of the model.
        If the visible units have no more states than this, all states are enumerated, and
        expectations are exact.

    n_gibbs : int, default=5
        Number of transitions of the chains after each change of a unit.

    n_corrective : int, default=60
        Number of mini-batches of joint training after each insertion, with ``mode="corrective"``.

    init : estimator, default=None
        The initial model: an RBM of the same columns with binary hidden units, or a network,
        such as :class:`~sklearn_boltz.SparseFVBM`, of which each coupling becomes a hidden unit
        with the same effect.

        An estimator that is not fitted is cloned and fitted to the rows first. Cloning, as in
        cross-validation, undoes the fit of `init`; to keep it, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.

    early_stopping : bool or float, default=True
        Whether to set validation rows aside, a tenth or another share of the rows, and to stop
        when their log-likelihood has not improved for 10 units and falls behind that of the
        training rows. The model is then the one with the largest validation log-likelihood. That
        log-likelihood is exact with up to 12 units in the smaller layer, and otherwise estimated as
        described in `track_likelihood`.

    tol : float, default=1e-3
        Smallest increase of the log-likelihood per row, in nats, that counts as an improvement,
        and smallest gain with which a unit is inserted, except with ``mode="plain"``.

    track_likelihood : bool or float, default=True
        Whether to measure the log-likelihood after each insertion. It needs ln Z, the logarithm of
        the normalising constant. With at most 12 units in the smaller layer, ln Z is exact.
        Otherwise it is estimated twice, from a ladder of saved models and by annealed importance
        sampling, and the larger estimate is used where they differ. A number is the cost that is
        allowed for this, as a fraction of the work of sampling and of joint training; True means
        0.12. With `early_stopping`, the log-likelihood is always measured.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        What to do, after the fit, with values that did not occur in training: see :ref:`unseen`.
        ``"smooth"`` gives them a small probability in `score_samples` and treats the cells as
        missing elsewhere; ``"missing"`` does so in `score_samples`, too; ``"error"`` raises an
        error. In an array of numbers, this concerns columns of categories only.

    warm_start : bool, default=False
        Whether `fit` adds units to the model of the last fit.
        Columns stay as they are: rows have the columns of the first fit, with its kinds, bins and
        categories, and a warning tells of other categories, which count as missing.

    n_jobs : int, default=None
        Number of threads; None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print the kinds of the columns, the number of rows to train on, and a line at
        the end of a fit; if 1, show a bar after two seconds, with the time left up to
        `max_components` without early stopping; if greater, print a line for each unit.

    random_state : int, RandomState instance or None, default=None
        The source of randomness. With None, each fit draws other numbers.

    Attributes
    ----------
    n_components_ : int
        Number of hidden units. If no unit has a gain, there is one with weights 0.

    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights, in the order in which the units were inserted. A column of three or more
        categories has one column here for each category, any other column has one, as named by
        `visible_names_`.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units. Other parameters are in attributes of their own, such as
        `precision_visible_`, with NaN for units without such a parameter.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the columns of `components_`, such as ``city=Rome``.

    log_partition_ : float
        Logarithm of the normalising constant, in nats, as ``log_partition()`` returns it: exact
        with up to 20 units in the smaller layer, and otherwise estimated. It is computed at first
        access.

    history_ : dict of ndarray
        One value for the start and one for each insertion:

        - ``"n_components"``: number of hidden units;
        - ``"reconstruction_error"`` and ``"log_pseudo_likelihood"`` of fixed training rows, as in
          :class:`SDCPRBM`;
        - ``"log_likelihood"``: mean over up to 2,000 training rows (200 if cells are missing), in
          nats, and ``"log_likelihood_std_err"``, the standard error of its ln Z;
        - ``"validation_log_likelihood"``: mean over the validation rows, if there are any, and
          ``"free_energy_gap"``, the mean free energy of the validation rows minus that of the
          training rows, which does not depend on ln Z;
        - ``"gain"``: gain of the insertion, estimated from the samples of the model, and
          ``"ess"``, the effective fraction of these samples;
        - ``"scale"`` and ``"norm"`` of the inserted unit;
        - ``"seconds"``.

    init_ : estimator
        The fitted initial model, if `init` is given.

    n_iter_ : int
        Number of insertions.

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
    SDCPRBM : RBM with a fixed number of hidden units.
    TAPRBM : RBM trained without Markov chains.

    Notes
    -----
    A new unit adds interactions, but it also shifts the means of the visible units. Insertions are
    centred: the visible biases compensate for that shift at once.

    The linearised objective gives a direction but no length. The unit is therefore multiplied by
    the scale with the largest gain of the log-likelihood. That gain has a closed form except for
    an expectation over the model before the insertion, which is estimated from the chains. Scales
    at which the effective number of chains is below a fifth are left out.

    For a unit with small weights w, the linearised objective is (α w·w − w·(C_data − C_model)w /
    4) / 2, where C_data and C_model are the covariances of the visible units. It decreases from w
    = 0 only if an eigenvalue of C_data − C_model exceeds 4 α. If columns are rarely 1, the
    covariances are small. This is why α is reduced when no unit is found.

    Integers and booleans are converted to float32. The fit is the same, bit for bit, for any
    number of threads. The time for each insertion is linear in the numbers of units, rows and
    columns.

    References
    ----------
    .. [1] W. Ping, Q. Liu and A. Ihler, "Learning infinite RBMs with Frank-Wolfe", NIPS
       2016. Algorithm 1.

    Examples
    --------
    >>> from sklearn_boltz import InfiniteRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X = make_bars_and_stripes(3)
    >>> model = InfiniteRBM(12, early_stopping=False, random_state=0).fit(X)
    >>> model.n_components_
    12
    >>> bool(model.score(X) > -3.3)  # -6.24 without hidden units, -2.60 at best
    True
    """

    _chosen = ("n_components",)
    _parameter_constraints = {
        **BaseRBM._parameter_constraints,
        **TRACKED,
        "max_components": POSITIVE,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "mode": [StrOptions({"corrective", "safeguarded", "plain"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_model_samples": POSITIVE,
        "n_gibbs": POSITIVE,
        "early_stopping": SHARE,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_corrective": COUNT,
        "init": [HasMethods(["fit"]), None],
    }

    def __init__(
        self,
        max_components=500,
        *,
        columns="auto",
        alpha=0.01,
        mode="corrective",
        learning_rate=0.1,
        n_model_samples=2000,
        n_gibbs=5,
        n_corrective=60,
        init=None,
        early_stopping=True,
        tol=1e-3,
        track_likelihood=True,
        unseen="smooth",
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.max_components = max_components
        self.columns = columns
        self.alpha = alpha
        self.mode = mode
        self.learning_rate = learning_rate
        self.n_model_samples = n_model_samples
        self.n_gibbs = n_gibbs
        self.n_corrective = n_corrective
        self.init = init
        self.early_stopping = early_stopping
        self.tol = tol
        self.track_likelihood = track_likelihood
        self.unseen = unseen
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model by inserting hidden units one at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Strings, levels, bits, numbers and dates, see :ref:`tables`; the unit type of a column
            may limit its values. NaN is a missing value: the model is fitted to the observed
            values.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts in averages over rows; None for once each. Whole numbers are
            counts, others relative: :ref:`weights`.

        Returns
        -------
        self : InfiniteRBM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain of its column, if all values of a column are missing,
            if `X` comes in batches, or if `init` does not match the data.

        Warns
        -----
        ConvergenceWarning
            If the model ended worse than it started. Also if the parameters diverge; the model is
            then the one before the last unit. Also if the model is no better than independent
            columns.

        Notes
        -----
        After Ctrl-C, the model is the one after the last complete insertion. With `warm_start`,
        the next fit continues from it.
        """
        return self._fit(X, y, sample_weight)

    # Training: what `BaseRBM` asks for.

    def _source(self, X, y, sample_weight, reset):
        if as_batches(X) is not None and not isinstance(X, np.ndarray):
            raise ValueError(
                "InfiniteRBM needs all rows in memory, because the search for each unit goes "
                "through all of them. Fit an array of some of the rows, or use SDCPRBM, which "
                "can learn from batches."
            )
        rows, weights = self._rows_of_fit(X, sample_weight, reset)
        check_dense("InfiniteRBM", self._encoder, rows[:FITTED_ROWS], COPIES)
        return rows, weights

    def _plan(self, growth, n_rows, stops):
        given = GrowthPlan._fields & self.get_params().keys()
        n_units = max(0, self.max_components - growth.learner.n_units)
        return GrowthPlan(n_units, **{name: getattr(self, name) for name in given})

    def _new_training(self, X, weights, n_rows):
        rng, seen = make_generator(self.random_state), ColumnSums(*observed_sums(X, weights))
        evaluation_seed, dtype = int(rng.integers(2**31)), X.dtype
        visible = initial_visible(self._encoder.coding, X, weights)
        base = visible.astype(dtype)
        n_units = 1 if self.init is None else n_units_of(self.init_)
        matrix, hidden = np.zeros((n_units, len(visible)), dtype), Bernoulli.neutral(n_units, dtype)
        if self.init is not None:
            visible = begin_at_init(self, matrix, visible, hidden)
        offset, stream = seen.means(dtype), Stream.from_generator(rng)
        learner = GrowingLearner(matrix, visible, hidden, offset, SDCPScheme(), SGD(), stream)
        return Training(learner, rng, seen, base, evaluation_seed)

    def _restore(self, growth):
        # The public attributes count, also if a user has changed them.
        learner = growth.learner
        pairs = zip(self._parameters(), learner.parameters(), strict=True)
        if not all(np.array_equal(public, private) for public, private in pairs):
            growth.learner = GrowingLearner(
                self.components_.astype(learner.dtype),
                *(units.astype(learner.dtype) for units in self._layered().layers),
                learner.visible_offset.copy(), SDCPScheme(), learner.optimizer, learner.stream,
            )  # fmt: skip

    def _tracker(self, growth, stops):
        """The tracker of ln Z while units are inserted: a new one, or that of the last fit."""
        wanted = self.track_likelihood or stops
        if not wanted or n_bits(growth.learner.visible) <= EXACT_UNITS:
            return None
        seed = growth.evaluation_seed
        return Tracker.begun(growth.tracker, growth.base, self.track_likelihood, seed)

    def _failure_message(self, status, comparison):
        """The text of the warning for a failed fit, or None."""
        if status == "diverged":
            return f"{DIVERGED} The model before the last unit is kept."
        path = self._training.history.get("log_likelihood", [np.inf])
        if not path[-1] > path[0] - 1:
            return (
                f"The log-likelihood fell from {path[0]:.1f} to {path[-1]:.1f} nats while units "
                'were inserted. Use mode="safeguarded", a larger alpha, a smaller '
                "learning_rate, or more n_model_samples."
            )
        if comparison is None or comparison.exceeds(BETTER):
            return None
        remedies = "Use a smaller alpha, a smaller learning_rate, more n_model_samples or more rows"
        return no_better(comparison, self.n_features_in_, remedies)
