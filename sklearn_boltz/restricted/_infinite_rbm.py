"""InfiniteRBM: an RBM that finds out how many hidden units it needs."""

import copy
import warnings
from numbers import Integral, Real
from time import perf_counter

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import dense, find_stack_level, unchanged_on_error
from sklearn_boltz._batches import as_batches
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted._sdcp_rbm import SDCPRBM
from sklearn_boltz.restricted._stochastic import QUIET, Buffers
from sklearn_boltz.restricted.sampling._gibbs import draw, rows_to_start_at
from sklearn_boltz.restricted.training._frank_wolfe import (
    BURN_IN,
    Chains,
    Enumeration,
    Machine,
    Sample,
    Search,
    find_away,
    find_unit,
    match_means,
)
from sklearn_boltz.restricted.training._monitor import (
    BETTER,
    GAP_ROWS,
    MOST_TEMPERATURES,
    Comparison,
    Monitor,
    independent_log_likelihood,
    no_better,
)
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._sdcp import Scheme, learn_batch
from sklearn_boltz.units._bernoulli import smoothed_log_odds

# Rows that a unit is fitted to; of more, so many are drawn for each unit. A unit has one
# weight a feature, and the samples of the model are fewer: more rows would not add to it.
FITTED_ROWS = 10_000
# How many times `n_bias_steps` there may be at the start.
FIRST_BIAS_STEPS = 10
# Searches without success before the fit ends: the starts may have had bad luck, or the
# penalty may have kept every unit out.
TRIES = 5
# The joint training of the corrective mode: rows of a mini-batch, and learning rate.
CORRECTIVE_ROWS, CORRECTIVE_RATE = 100, 0.05
DIVERGED = "The parameters grew beyond all bounds. Use a smaller learning_rate or a larger alpha."


class InfiniteRBM(BaseRBM):
    """Bernoulli restricted Boltzmann machine that grows, a hidden unit at a time.

    With any number of hidden units allowed, the log-likelihood is concave in the measure of
    their weights. Frank and Wolfe's algorithm goes up from there by units: it looks for the
    one along which the log-likelihood rises fastest, inserts it, and goes on until the
    likelihood of rows set aside no longer rises [1]_. So the number of hidden units need not
    be known. The result is an ordinary RBM, or where to start the training of one from, by
    `refine`.

    As printed, the algorithm can diverge. Here each insertion is centred and has the scale of
    largest gain, as samples of the model measure it; see Notes. By default all units are then
    trained together for a moment.

    Parameters
    ----------
    max_components : int, default=500
        Number of hidden units at most.

    alpha : float, default=0.01
        Strength of the L2 penalty on the weights of a unit when it is looked for, λ in the
        paper. It falls to a quarter with each search in vain, but not in the plain mode.

    mode : {"corrective", "safeguarded", "plain"}, default="corrective"
        ``"corrective"`` trains all units together for a moment after each insertion.
        ``"safeguarded"`` leaves units as they came: each costs less, but more of them, and
        more time in all, are needed to do as well. ``"plain"`` is the algorithm as printed;
        it may diverge.

    learning_rate : float, default=0.1
        Length of a step of the visible biases.

    n_model_samples : int, default=2000
        Number of persistent Markov chains that stand for the law of the model. If all states
        of the visible units are not more than that, they are enumerated, and all is exact.

    n_gibbs : int, default=5
        Number of transitions of the chains after each change of a unit.

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
        A fitted RBM to go on from, of any class that has `components_`,
        `intercept_hidden_` and `intercept_visible_`. Where this estimator is cloned, wrap it
        in :class:`sklearn.frozen.FrozenEstimator`.

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

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, values must lie in [0, 1]; those between count as probabilities.

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

    components_ : ndarray of shape (`n_components_`, n_features)
        The weights, in the order in which the units were inserted.

    intercept_hidden_ : ndarray of shape (`n_components_`,)
        Biases of the hidden units.

    intercept_visible_ : ndarray of shape (n_features,)
        Biases of the visible units.

    log_partition_ : float
        Logarithm of the normalising constant, in nats: exact with up to 20 units in the
        smaller layer, else estimated by annealed importance sampling with 100 chains and
        1,000 temperatures. Computed when first asked for.

    history_ : dict of ndarray
        An entry for the start and one for each insertion: ``"n_components"``;
        ``"log_likelihood"`` of validation rows, if any, and ``"train_log_likelihood"``, of
        2,000 training rows at most, in nats; ``"free_energy_gap"``, the difference of the
        two, free of the noise of the normalising constant; ``"gain"`` of the insertion as
        the samples of the model measured it, ``"ess"``, the part of them that vouched for
        it, ``"scale"`` and ``"norm"`` of the unit, and ``"seconds"``.

    n_iter_ : int
        Number of insertions made.

    n_features_in_ : int
        Number of visible units.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the visible units, if `X` had names.

    See Also
    --------
    SDCPRBM : RBM of a given number of hidden units.

    Notes
    -----
    A unit adds not only interactions but also its mean pushes on the visible units.
    Insertions are centred: the visible biases take the pushes back at once. The linearised
    objective does not know how far to go: the unit is multiplied by the scale of largest
    gain of the log-likelihood. That gain has a closed form, but for an expectation over the
    law of the model before the insertion, which the chains have. Scales at which fewer than
    a fifth of them would count are left out.

    Of a unit with small weights w the linearised objective is
    (α w·w − w·(C_data − C_model)w / 4) / 2, with C the covariances: there is a way down from
    w = 0 only if an eigenvalue of their difference is above 4 α. Where features are rarely on,
    the covariances are small. So α falls where no unit is found.

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

    _changed_in_place = "_machine", "_law", "_rng"
    _parameter_constraints = {
        **BaseRBM._parameter_constraints,
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
        "init": [HasMethods(["fit", "transform"]), None],
    }

    def __init__(
        self,
        max_components=500,
        *,
        alpha=0.01,
        mode="corrective",
        learning_rate=0.1,
        n_model_samples=2000,
        n_gibbs=5,
        n_bias_steps=30,
        n_restarts=1,
        n_corrective=60,
        away_steps=False,
        init=None,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-3,
        binarize=None,
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.max_components = max_components
        self.alpha = alpha
        self.mode = mode
        self.learning_rate = learning_rate
        self.n_model_samples = n_model_samples
        self.n_gibbs = n_gibbs
        self.n_bias_steps = n_bias_steps
        self.n_restarts = n_restarts
        self.n_corrective = n_corrective
        self.away_steps = away_steps
        self.init = init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.binarize = binarize
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Insert hidden units until no more are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values in [0, 1], or anything real if `binarize` is set.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        self : InfiniteRBM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, or `init` does not fit the data.

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
        with unchanged_on_error(self) as keep, Workers(self.n_jobs) as workers:
            going_on = self.warm_start and hasattr(self, "components_")
            rows = self._validated(X, reset=not going_on)
            if going_on:
                rows = rows.astype(self.components_.dtype, copy=False)
            train, monitor = self._begin(rows, going_on)
            # Away steps could go on without end.
            budget = 2 * self.max_components
            with iterations(self, X, y, name="unit", max_iter=budget) as end_unit:
                self._insert_units(Sample(rows[train]), budget, monitor, workers, keep, end_unit)
                self._publish()
            return self

    def refine(self, X, trainer):
        """Train all units together from here on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        trainer : SDCPRBM
            How; it is not changed. Its numbers of components and of visible units become
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
        refined = clone(trainer).set_params(n_components=self.n_components_, binarize=self.binarize)
        wanted = {name: getattr(refined, name) for name in ("max_iter", "warm_start")}
        V = self._checked(X)
        # No epoch: only the state of a training, which then goes on from these parameters.
        refined.set_params(max_iter=0, warm_start=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            refined.fit(X)
        for name in ("components_", "intercept_hidden_", "intercept_visible_"):
            setattr(refined, name, getattr(self, name).copy())
        learner, model = refined._learner, self._model()
        learner.hidden_offset = self._by_chunks(model.mean_hidden, V).mean(axis=0)
        if refined.persistent:
            starts = self._law.rows[rows_to_start_at(refined.batch_size, len(self._law))]
            learner.chains = draw(model.mean_hidden(starts), learner.stream)
        refined.set_params(max_iter=wanted["max_iter"], warm_start=True).fit(X)
        refined.initial_history_ = dict(self.history_)
        return refined.set_params(warm_start=wanted["warm_start"])

    # The start, and going on.

    def _begin(self, X, going_on):
        """Set up the machine and what watches over it; -> numbers of the rows to train on."""
        if going_on:
            # What a fit changes is its own, so that an interrupted one leaves no trace.
            state = self._machine, self._law, self._rng
            self._machine, self._law, self._rng = copy.deepcopy(state)
            self.history_ = dict(self.history_)
            self._take_over_parameters()
            return self._watch(X)
        self._rng = make_generator(self.random_state)
        log_odds = smoothed_log_odds(X.sum(axis=0, dtype=np.float64), X.shape[0])
        self._base_intercept = log_odds.astype(X.dtype)
        self._evaluation_seed = int(self._rng.integers(2**31))
        self._machine = self._make_machine(X, self.init, Stream.from_generator(self._rng))
        self._law, self.n_iter_, self.history_ = None, 0, {}
        return self._watch(X)

    def _take_over_parameters(self):
        """The public attributes are the truth, also where a user has set them."""
        mine = self.components_, self.intercept_visible_, self.intercept_hidden_
        pairs = zip(mine, self._machine.parameters(), strict=True)
        if all(np.array_equal(public, private) for public, private in pairs):
            return
        machine = self._machine
        arguments = [a.copy() for a in (*mine, machine.visible_offset)]
        self._machine = Machine(*arguments, machine.optimizer, machine.stream)
        self._law = None

    def _make_machine(self, X, start, stream):
        """The machine at the start: a fitted RBM, or independent visible units."""
        dtype, n_features = X.dtype, X.shape[1]
        weights, hidden_bias = np.zeros((1, n_features), dtype), np.zeros(1, dtype)
        visible_bias = self._base_intercept.copy()
        if start is not None:
            names = "components_", "intercept_visible_", "intercept_hidden_"
            if not all(hasattr(start, name) for name in names):
                raise ValueError(
                    f"init must be a fitted RBM, with the attributes {', '.join(names)}. If it "
                    "was fitted and then cloned, wrap it in sklearn.frozen.FrozenEstimator."
                )
            weights, visible_bias, hidden_bias = (
                np.array(getattr(start, name), dtype=dtype) for name in names
            )
            if weights.shape[1] != n_features:
                raise ValueError(
                    f"init has {weights.shape[1]} visible units, and X has {n_features} features."
                )
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(dtype)
        return Machine(weights, visible_bias, hidden_bias, mean, SGD(), stream)

    def _watch(self, X):
        train, valid = self._split_rows(X.shape[0])
        monitor = LikelihoodMonitor(X, train, valid, self._base(), self._evaluation_seed)
        return np.sort(train), monitor

    def _law_at_the_start(self, data, workers):
        """A sample of the law of the machine."""
        machine = self._machine
        if data.rows.shape[1] < 63 and 2 ** data.rows.shape[1] <= self.n_model_samples:
            return Enumeration.of(machine)
        shape = self.n_model_samples, data.rows.shape[1]
        if machine.n_units == 0:
            field = np.zeros(shape, dtype=machine.weights.dtype)
            return Chains(machine.model().visible.sample(field, machine.stream))
        rows = dense(data.rows[self._rng.integers(len(data), size=self.n_model_samples)])
        law = Chains(draw(np.ascontiguousarray(rows), machine.stream))
        law.follow(machine, BURN_IN, workers)
        return law

    # Algorithm 1.

    def _insert_units(self, data, budget, monitor, workers, keep, end_unit):
        """Insert units; at the end go back to the best model."""
        best, last = None, self._snapshot()
        try:
            with QUIET():
                best = self._begin_insertions(data, monitor, workers)
            last = self._snapshot()
            while self._machine.n_units < self.max_components and budget:
                budget -= 1
                with QUIET():
                    inserted = self._insert_unit(data, monitor, workers)
                if not inserted:
                    break
                best, last = self._remember(best), self._snapshot()
                keep(last)
                if end_unit(last.copy) or self._has_stopped_rising(best):
                    break
        except FloatingPointError as error:
            vars(self).update(last)
            message = f"{error} What is kept is the model before the last unit."
            warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())
        if best is not None:
            self._machine, self._law = best["state"]
        self._warn_if_worse(monitor, -1 if best is None else best["n_iter"])

    def _begin_insertions(self, data, monitor, workers):
        """Prepare the law of the model; -> the best state, which is that of now."""
        if self._law is None:
            self._law = self._law_at_the_start(data, workers)
            # Where means are off, units would be spent on them. A start from elsewhere may be
            # far off.
            self._match_means(data, FIRST_BIAS_STEPS * self.n_bias_steps, workers)
        if not self.history_:
            self._record(monitor, workers, 0.0)
        return self._remember(None)

    def _insert_unit(self, data, monitor, workers):
        """Insert a unit; -> whether there is one with a gain."""
        start, machine, law = perf_counter(), self._machine, self._law
        search = Search(self.alpha, self.n_restarts, self.mode == "plain")
        change = self._find(data, search, workers)
        if change is None:
            return False
        machine.insert(change.unit, change.scale, change.shift)
        law.follow(machine, self.n_gibbs, workers)
        if self.away_steps:
            self._step_away(data, workers)
        if self.mode == "corrective":
            self._train_together(data, workers)
        self._match_means(data, self.n_bias_steps, workers)
        self.n_iter_ += 1
        self._record(monitor, workers, perf_counter() - start, change)
        return True

    def _match_means(self, data, n_steps, workers):
        target = data.visible_mean()
        match_means(self._machine, self._law, target, self.learning_rate, n_steps, workers)

    def _find(self, data, search, workers):
        """The unit to insert, or None if there is none with a gain."""
        for k in range(TRIES):
            search = search._replace(n_failed=k)
            if k and not search.plain:
                search = search._replace(alpha=search.alpha / 4)
            subset = self._subset(data)
            change = find_unit(data, subset, self._law, search, self._rng, workers)
            if change is not None and (change.gain > self.tol or search.plain):
                return change
            self._law.follow(self._machine, self.n_gibbs, workers)
        return None

    def _subset(self, data):
        """The rows that a unit is fitted to."""
        if len(data) <= FITTED_ROWS:
            return data
        return Sample(data.rows[self._rng.choice(len(data), FITTED_ROWS, replace=False)])

    def _step_away(self, data, workers):
        i, change = find_away(self._machine, data, self._law, self.alpha)
        if change is None or change.gain <= self.tol:
            return
        self._machine.remove(i, change.shift)
        if change.scale > 0:
            self._machine.insert(change.unit, change.scale)
        self._law.follow(self._machine, self.n_gibbs, workers)

    def _train_together(self, data, workers):
        """Some mini-batches of CS-DCP on all units (the fully corrective step)."""
        machine, buffers = self._machine, Buffers()
        for _ in range(self.n_corrective):
            chosen = np.sort(self._rng.integers(len(data), size=CORRECTIVE_ROWS))
            learn_batch(
                machine, dense(data.rows[chosen]), Scheme(), CORRECTIVE_RATE, workers, buffers
            )
        self._law.follow(machine, self.n_gibbs, workers)

    # Stopping.

    def _record(self, monitor, workers, seconds, change=None):
        machine = self._machine
        if not all(np.isfinite(a).all() for a in machine.parameters()):
            raise FloatingPointError(DIVERGED)
        norm = 0.0 if change is None else change.scale * np.linalg.norm(change.unit)
        entry = {
            "n_components": machine.n_units,
            **monitor.measure(machine.model(), workers),
            "gain": 0.0 if change is None else change.gain,
            "ess": 1.0 if change is None else change.ess,
            "scale": 0.0 if change is None else change.scale,
            "norm": float(norm),
            "seconds": seconds,
        }
        if not np.isfinite(list(entry.values())).all():
            raise FloatingPointError(DIVERGED)
        self._add_to_history(entry)
        self.history_["n_components"] = self.history_["n_components"].astype(int)

    def _remember(self, best):
        """The state of largest log-likelihood of the validation rows: the best so far, or now."""
        if not self.early_stopping:
            return None
        now = self.history_["log_likelihood"][-1]
        if best is not None and not now > best["log_likelihood"] + self.tol:
            return best
        state = copy.deepcopy((self._machine, self._law))
        gap = self.history_["free_energy_gap"][-1]
        return {"log_likelihood": now, "gap": gap, "n_iter": self.n_iter_, "state": state}

    def _has_stopped_rising(self, best):
        """Whether units came in vain, and the training rows profited from them."""
        if best is None:
            return False
        widened = self.history_["free_energy_gap"][-1] > best["gap"]
        return widened and self.n_iter_ - best["n_iter"] >= self.n_iter_no_change

    def _warn_if_worse(self, monitor, kept):
        """Warn of a model that is no better than none; `kept` is the place in `history_`."""
        path = self.history_.get("train_log_likelihood", [])
        if not len(path):
            return
        if not path[-1] > path[0] - 1:
            message = (
                f"The log-likelihood fell from {path[0]:.1f} to {path[-1]:.1f} nats while units "
                'were inserted. Use mode="safeguarded", a larger alpha, a smaller '
                "learning_rate, or more n_model_samples."
            )
        else:
            comparison = monitor.compare({name: v[kept] for name, v in self.history_.items()})
            if comparison.exceeds(BETTER):
                return
            remedies = (
                "Use a smaller alpha, a smaller learning_rate, more n_model_samples or more rows"
            )
            message = no_better(comparison, self.n_features_in_, remedies)
        warnings.warn(message, ConvergenceWarning, stacklevel=find_stack_level())

    def _publish(self):
        """Set the public attributes from the state of the machine."""
        machine = self._machine
        self.components_, self.intercept_visible_, self.intercept_hidden_ = machine.parameters()
        self.n_components_ = len(self.components_)
        return self


class LikelihoodMonitor(Monitor):
    """Log-likelihoods of fixed rows, of training and of validation."""

    def __init__(self, X, train, valid, base, seed):
        super().__init__(X, train, valid, base, seed)
        self.train = dense(X[train[:GAP_ROWS]])
        self.n_temperatures = MOST_TEMPERATURES  # a unit takes longer than an epoch

    def measure(self, model, workers):
        """Return a dict of figures."""
        log_partition = self._log_partition(model, workers)
        train = -model.free_energy(self.train).mean()
        figures = {"train_log_likelihood": float(train - log_partition)}
        if self.held_out is None:
            return figures
        valid = -model.free_energy(self.held_out.valid).mean()
        gap = float(train - valid)
        return {"log_likelihood": float(valid - log_partition), **figures, "free_energy_gap": gap}

    def compare(self, figures):
        """Compare the model with independent columns."""
        if self.held_out is not None:
            return self.held_out.compare(figures)
        independent = independent_log_likelihood(self.base, self.train)
        return Comparison("training rows", figures["train_log_likelihood"], independent)
