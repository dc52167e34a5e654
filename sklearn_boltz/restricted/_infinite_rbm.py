"""InfiniteRBM: an RBM that finds out how many hidden units it needs."""

import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import find_stack_level, unchanged_on_error
from sklearn_boltz._batches import as_batches
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted._boltzmann_machine import TRACKED
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted._sdcp_rbm import SDCPRBM
from sklearn_boltz.restricted.model._columns import parameter_names, with_published
from sklearn_boltz.restricted.model._enumeration import n_bits
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.sampling._gibbs import draw, rows_to_start_at
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.training._frank_wolfe import GrowingLearner, IncompleteSample, Sample
from sklearn_boltz.restricted.training._growth import Growth, GrowthPlan, grow
from sklearn_boltz.restricted.training._monitor import BETTER, EXACT_UNITS, Monitor, no_better
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._rows import (
    ColumnSums,
    divided,
    of_some,
)
from sklearn_boltz.restricted.training._sdcp import Scheme
from sklearn_boltz.restricted.training._tracker import Tracker
from sklearn_boltz.units import Bernoulli

DIVERGED = "The parameters grew beyond all bounds. Use a smaller learning_rate or a larger alpha."


class InfiniteRBM(BaseRBM):
    """Restricted Boltzmann machine that grows, a hidden unit at a time.

    The number of hidden units need not be known. If any number is allowed, the log-likelihood is
    concave in the measure of their weights. Frank and Wolfe's algorithm searches for the unit along
    which the log-likelihood rises fastest, inserts it, and repeats this until the likelihood of
    rows that were set aside no longer rises [1]_. The result is an ordinary RBM; `refine` continues
    its training.

    As printed, the algorithm can diverge. Here each insertion is centred and scaled to the largest
    gain, estimated from samples of the model; see Notes. By default all units are then trained
    together for some mini-batches.

    Parameters
    ----------
    max_components : int, default=500
        Number of hidden units at most.

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

    alpha : float, default=0.01
        Strength of the L2 penalty on the weights of a unit in the search, λ in the paper. It is
        divided by 4 after each unsuccessful search, except in the plain mode.

    mode : {"corrective", "safeguarded", "plain"}, default="corrective"
        ``"corrective"`` trains all units together for some mini-batches after each insertion.
        ``"safeguarded"`` leaves units as they were added: each costs less, but reaching the same
        likelihood takes more units and more time. ``"plain"`` is the algorithm as printed; it may
        diverge.

    learning_rate : float, default=0.1
        Length of a step of the visible biases.

    n_model_samples : int, default=2000
        Number of persistent Markov chains whose states stand for the distribution of the model.
        If all states of the visible units are not more than that, they are enumerated, and all
        is exact.

    n_gibbs : int, default=5
        Number of transitions of the chains after each change of a unit.

    sampler : {"gibbs", "tempered"}, default="gibbs"
        Where the samples of the model come from. With ``"tempered"``, after each insertion the
        states at the top of a ladder of saved models, whose chains exchange states, take the
        place of some of them: so the samples reach modes that no chain comes to by itself.

    n_bias_steps : int, default=30
        Number of steps of the visible biases after each insertion, at most; they end when
        the means of the model are those of the data, to within the noise of the chains.

    n_restarts : int, default=1
        Number of starts of the search for a unit. More than one pay on small data where units
        stay as they come, not where all are trained together.

    n_corrective : int, default=60
        Number of mini-batches of joint training after each insertion, in the corrective mode.

    away_steps : bool, default=False
        Whether to look, after each insertion, for a unit that would better be removed or
        made smaller.

    init : estimator, default=None
        A fitted RBM to continue from, of any class that has `components_`, `intercept_hidden_` and
        `intercept_visible_`. Where this estimator is cloned, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.

    early_stopping : bool, default=True
        Whether to set rows aside, and to stop when their log-likelihood no longer rises and
        falls behind that of the training rows. The model is then that of largest
        log-likelihood, which is exact with up to 12 units in the smaller layer, and
        otherwise estimated by a short run of annealed importance sampling.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int, default=10
        Number of units without progress after which to stop.

    tol : float, default=1e-3
        What counts as progress, and as a gain of a unit, in nats.

    track_likelihood : bool or float, default=True
        Whether the log-likelihood is measured after each insertion, with ln Z from a ladder of
        saved models and from annealed chains, the greater where they differ. A number is what
        this may cost, as a part of the work of the samples and of the corrections; True stands
        for 0.12. It is measured in any case with `early_stopping`, and exact as long as there are
        at most 12 units in the smaller layer.

    max_rungs : int, default=40
        Number of saved models at most. Each takes the memory of the weights, also in a
        pickle.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, values must lie in [0, 1]; those between count as probabilities.

    unknown : {"error", "missing"}, default="error"
        What to do, after the fit, with values of a column of categories that did not occur in
        training: raise an error, or treat the cells as missing.

    warm_start : bool, default=False
        Whether `fit` adds units to the last fit.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print a line for each unit.

    random_state : int, RandomState instance or None, default=None
        The source of randomness.

    Attributes
    ----------
    n_components_ : int
        Number of hidden units; at least 1, with weights 0 if no unit has a gain.

    components_ : ndarray of shape (`n_components_`, n_visible)
        The weights, in the order in which the units were inserted. A column of three or more
        categories takes a number for each of them, any other column one: `visible_names_`
        names all n_visible.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units.

    intercept_visible_ : ndarray of shape (n_visible,)
        Biases of the visible units; other parameters likewise, such as `precision_visible_`, with
        NaN in the place of units without such a parameter.

    visible_names_ : ndarray of str of shape (n_visible,)
        Names of the numbers of the visible units, such as ``city=Rome``.

    log_partition_ : float
        Logarithm of the normalising constant, in nats, as ``log_partition()`` gives it: exact with
        up to 20 units in the smaller layer, else estimated. Computed when first asked for.

    history_ : dict of ndarray
        An entry for the start and one for each insertion: ``"n_components"``;
        ``"reconstruction_error"`` and ``"log_pseudo_likelihood"`` of fixed training rows, as of
        :class:`SDCPRBM`; ``"log_likelihood"`` of up to 2,000 training rows, mean per row in nats,
        and ``"log_likelihood_std_err"``, the standard error of its ln Z;
        ``"validation_log_likelihood"`` of validation rows, if any, and ``"free_energy_gap"``, by
        how much their free energy exceeds that of training rows, free of the noise of ln Z;
        ``"gain"`` of the insertion as the samples of the model measured it, ``"ess"``, the
        effective part of them, ``"scale"`` and ``"norm"`` of the unit, and ``"seconds"``.

    n_iter_ : int
        Number of insertions made.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if `X` had names.

    See Also
    --------
    SDCPRBM : RBM of a given number of hidden units.

    Notes
    -----
    A unit adds not only interactions but also shifts the means of the visible units. Insertions are
    centred: the visible biases compensate that shift at once. The linearised objective gives a
    direction but no length, so the unit is multiplied by the scale with the largest gain of the
    log-likelihood. That gain has a closed form except for an expectation over the model before the
    insertion, which is estimated by the chains. Scales at which the effective number of chains is
    below a fifth are left out.

    Of a unit with small weights w the linearised objective is (α w·w − w·(C_data − C_model)w / 4) /
    2, with C the covariances: a descent from w = 0 exists only if an eigenvalue of their difference
    exceeds 4 α. Where features are rarely on, the covariances are small. Therefore α falls when no
    unit is found.

    Integers and booleans are computed with in float32. The fit has the same bits whatever
    the number of threads. Its time for a unit is linear in units, rows and features.

    References
    ----------
    .. [1] W. Ping, Q. Liu and A. Ihler, "Learning infinite RBMs with Frank-Wolfe", NIPS
       2016. Algorithm 1.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.restricted import InfiniteRBM
    >>> X = make_bars_and_stripes(3)
    >>> model = InfiniteRBM(12, early_stopping=False, random_state=0).fit(X)
    >>> model.n_components_
    12
    >>> bool(model.score(X) > -3.3)  # -6.24 without hidden units, -2.60 at best
    True
    """

    _parameter_constraints = {
        **BaseRBM._parameter_constraints,
        **TRACKED,
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "mode": [StrOptions({"corrective", "safeguarded", "plain"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_model_samples": [Interval(Integral, 1, None, closed="left")],
        "n_gibbs": [Interval(Integral, 1, None, closed="left")],
        "n_bias_steps": [Interval(Integral, 0, None, closed="left")],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "n_corrective": [Interval(Integral, 0, None, closed="left")],
        "away_steps": ["boolean"],
        "sampler": [StrOptions({"gibbs", "tempered"})],
        "init": [HasMethods(["fit", "transform"]), None],
    }

    def __init__(
        self,
        max_components=500,
        *,
        visible="auto",
        alpha=0.01,
        mode="corrective",
        learning_rate=0.1,
        n_model_samples=2000,
        n_gibbs=5,
        sampler="gibbs",
        n_bias_steps=30,
        n_restarts=1,
        n_corrective=60,
        away_steps=False,
        init=None,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=10,
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
        self.max_components = max_components
        self.visible = visible
        self.alpha = alpha
        self.mode = mode
        self.learning_rate = learning_rate
        self.n_model_samples = n_model_samples
        self.n_gibbs = n_gibbs
        self.sampler = sampler
        self.n_bias_steps = n_bias_steps
        self.n_restarts = n_restarts
        self.n_corrective = n_corrective
        self.away_steps = away_steps
        self.init = init
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

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Insert hidden units until no more are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values in [0, 1], or anything real if `binarize` is set. NaN is a missing value: what
            is learned is the distribution of those that are there.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, in relation to the others: averages over the rows are
            weighted. None for equal weights.

        Returns
        -------
        self : InfiniteRBM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, a column has no value at all, or `init` does not fit
            the data.

        Warns
        -----
        ConvergenceWarning
            If the model became worse than it was at the start. Where parameters grow beyond all
            bounds, the fit ends with those of before the last unit.

        Notes
        -----
        Ctrl-C leaves the model after the last complete insertion; with `warm_start`, the next
        fit goes on from there.
        """
        if as_batches(X) is not None and not isinstance(X, np.ndarray):
            raise ValueError(
                "InfiniteRBM needs all rows in memory: a search looks at them anew for each "
                "unit. Fit an array of some of the rows, or use SDCPRBM, which takes batches."
            )
        status = None
        with unchanged_on_error(self), Workers(self.n_jobs) as workers:
            going_on = self.warm_start and hasattr(self, "components_")
            rows, weights = self._rows_of_fit(X, sample_weight, reset=not going_on)
            growth = self._resumed() if going_on else self._begun(rows, weights)
            rows = rows.astype(growth.learner.weights.dtype, copy=False)
            fraction = self.validation_fraction if self.early_stopping else 0
            train, valid = divided(rows.shape[0], fraction, growth.evaluation_seed)
            base, seed = growth.base, growth.evaluation_seed
            log_scale = self._layout_now().log_scale
            monitor = Monitor(rows, train, valid, base, seed, weights, log_scale)
            growth.tracker = self._tracker(growth)
            data, plan = self._sample(rows, np.sort(train), weights), self._plan()
            n_before, budget = growth.n_iter, 2 * plan.max_components
            with iterations(self, X, y, name="unit", max_iter=budget) as end_unit:

                def tell(growth):
                    self._tell(growth.n_iter, growth.figures(), of="unit")
                    return end_unit(partial(self._attributes, growth))

                growth, status, kept = grow(growth, data, monitor, plan, workers, tell)
                if status == "interrupted" and growth.n_iter == n_before:
                    raise KeyboardInterrupt
                vars(self).update(self._attributes(growth))
            if status != "interrupted":
                self._conclude(growth, status, monitor, kept)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    def refine(self, X, trainer):
        """Train all units together from here on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        trainer : SDCPRBM
            How; it is not changed. Its numbers of components and its visible units become
            those of this model.

        Returns
        -------
        refined : SDCPRBM
            A fitted estimator of the parameters of `trainer`, which started from this model.
            Its `history_` is that of the training; the history of the insertions is in its
            attribute `initial_history_`.

        Raises
        ------
        ValueError
            If `trainer` is no `SDCPRBM`.
        """
        check_is_fitted(self)
        if not isinstance(trainer, SDCPRBM):
            raise ValueError(f"trainer must be an SDCPRBM, got {trainer!r}.")
        given = {name: getattr(self, name) for name in ("visible", "binarize", "unknown")}
        given["hidden"] = "bernoulli"
        refined = clone(trainer).set_params(n_components=self.n_components_, **given)
        wanted = {name: getattr(refined, name) for name in ("max_iter", "warm_start")}
        V = self._checked(X, allow_nan=True)
        if rows_with_gaps(V) is not None:
            V = self._completed(V, self._evaluation_seed)
        # No epoch: only the state of a training, which then goes on from these parameters.
        refined.set_params(max_iter=0, warm_start=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            refined.fit(X)
        for name, value in self._exposed(self._layered()).items():
            setattr(refined, name, value.copy())
        learner, model = refined._training.learner, self._model()
        learner.hidden_offset = self._by_chunks(model.mean_hidden, V).mean(axis=0)
        if refined.persistent:
            sample = self._growth.sample
            starts = sample.rows[rows_to_start_at(refined.batch_size, len(sample))]
            learner.chains = draw(model.mean_hidden(starts), learner.stream)
        refined.set_params(max_iter=wanted["max_iter"], warm_start=True).fit(X)
        refined.initial_history_ = dict(self.history_)
        return refined.set_params(warm_start=wanted["warm_start"])

    # Growing.

    def _plan(self):
        return GrowthPlan(**{name: getattr(self, name) for name in GrowthPlan._fields})

    def _sample(self, rows, train, weights):
        """The rows to train on, with their probabilities."""
        rows, weights = rows[train], of_some(weights, train)
        probability = None if weights is None else weights / weights.sum()
        kind = Sample if rows_with_gaps(rows) is None else IncompleteSample
        return kind(rows, probability)

    def _begun(self, X, weights=None):
        rng, seen = make_generator(self.random_state), ColumnSums.of(X, weights)
        evaluation_seed = int(rng.integers(2**31))
        visible = self._initial_visible(X, weights)
        base = visible.astype(X.dtype)
        learner = self._initial_learner(visible, seen, Stream.from_generator(rng))
        growth = Growth(learner, rng, seen, evaluation_seed)
        growth.base = base
        return growth

    def _resumed(self):
        growth = self._growth.copy()
        # The public attributes are the truth, also where a user has set them.
        learner = growth.learner
        pairs = zip(self._parameters(), learner.parameters(), strict=True)
        if not all(np.array_equal(public, private) for public, private in pairs):
            growth.learner = GrowingLearner(
                self.components_.astype(learner.dtype),
                *(units.astype(learner.dtype) for units in self._units()),
                learner.visible_offset.copy(), Scheme(), learner.optimizer, learner.stream,
            )  # fmt: skip
            growth.sample = None
        return growth

    def _tracker(self, growth):
        """What follows ln Z while units come in, new or that of the last fit."""
        tempered = self.sampler == "tempered"
        wanted = self.track_likelihood or self.early_stopping or tempered
        if not wanted or n_bits(growth.learner.visible) <= EXACT_UNITS:
            return None
        seed = growth.evaluation_seed
        return Tracker.begun(growth.tracker, growth.base, self, seed, tempered)

    def _initial_learner(self, visible, seen, stream):
        """The parameters at the start: of a fitted RBM, or of independent visible units."""
        dtype, n_visible, start = visible._dtype, len(visible), self.init
        weights, hidden_bias = np.zeros((1, n_visible), dtype), np.zeros(1, dtype)
        if start is not None:
            names = "components_", "intercept_visible_", "intercept_hidden_"
            if not all(hasattr(start, name) for name in names):
                raise ValueError(
                    f"init must be a fitted RBM, with the attributes {', '.join(names)}. If it "
                    "was fitted and then cloned, wrap it in sklearn.frozen.FrozenEstimator."
                )
            if any(not units.is_binary for units in getattr(start, "_unit_types", ())[1:]):
                raise ValueError("init must have Bernoulli hidden units, as this RBM has.")
            weights, hidden_bias = (
                np.array(getattr(start, name), dtype=dtype)
                for name in ("components_", "intercept_hidden_")
            )
            if weights.shape[1] != n_visible:
                raise ValueError(
                    f"init has {weights.shape[1]} visible units, and X has {n_visible} features."
                )
            values = {
                name: np.array(getattr(start, f"{name}_visible_"), dtype=dtype)
                for name in parameter_names(visible)
            }
            visible = with_published(visible, values, dtype)
        return GrowingLearner(
            weights, visible, Bernoulli(hidden_bias), seen.means(dtype), Scheme(), SGD(), stream
        )

    def _attributes(self, growth):
        """All attributes that a growth makes."""
        weights, *units = growth.learner.model()
        history = {name: np.array(values) for name, values in growth.history.items()}
        return {
            **self._exposed(Layered([weights], units)),
            "_unit_types": units,
            "_base_units": growth.base,
            "n_components_": len(weights),
            "n_iter_": growth.n_iter,
            "history_": history,
            "_evaluation_seed": growth.evaluation_seed,
            "_growth": growth,
        }

    def _conclude(self, growth, status, monitor, kept):
        """Warn of a fit that ended badly; `kept` is the place of the model in the history."""
        message = self._trouble(growth, status, monitor, kept)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())

    def _trouble(self, growth, status, monitor, kept):
        """What a user should know about the end of a fit, or None."""
        if status == "diverged":
            return f"{DIVERGED} What is kept is the model before the last unit."
        path = growth.history.get("log_likelihood", [np.inf])
        if not path[-1] > path[0] - 1:
            return (
                f"The log-likelihood fell from {path[0]:.1f} to {path[-1]:.1f} nats while units "
                'were inserted. Use mode="safeguarded", a larger alpha, a smaller '
                "learning_rate, or more n_model_samples."
            )
        with Workers(self.n_jobs) as workers:
            model = growth.learner.model()
            comparison = monitor.compare(growth.figures(kept), model, workers)
        if comparison is None or comparison.exceeds(BETTER):
            return None
        remedies = "Use a smaller alpha, a smaller learning_rate, more n_model_samples or more rows"
        return no_better(comparison, self.n_features_in_, remedies)
