"""TAPRBM: an RBM of any units, trained and used by mean-field inference."""

import copy
import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_boltz._base import dense, make_generator
from sklearn_boltz.restricted import _sampling, _tap
from sklearn_boltz.restricted._gibbs import Workers
from sklearn_boltz.restricted._inference import INFERENCES
from sklearn_boltz.restricted._monitor import GAP_ROWS
from sklearn_boltz.restricted._optimizers import SGD
from sklearn_boltz.restricted._stochastic import StochasticRBM
from sklearn_boltz.restricted._tap import Evidence, Iteration
from sklearn_boltz.restricted._tap_learning import Learner, Scheme, learn_batch
from sklearn_boltz.restricted._tap_monitor import TAPMonitor
from sklearn_boltz.restricted._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.restricted.units import Bernoulli, UnitLaw

LAWS = {
    "bernoulli": Bernoulli,
    "truncated_gaussian": TruncatedGaussian,
    "truncated_gauss_bernoulli": TruncatedGaussBernoulli,
}
# Rows of the training that are kept, for TAP to start at.
N_STARTS = 100
# Iterations after which a start is given up, outside of the training.
MOST_ITERATIONS = 1000
# If TAP converges from fewer rows than this, the model is in a spin-glass phase.
LEAST_CONVERGED = 0.5
# Flip probabilities are kept this far from 0 and 1.
LEAST_PROBABILITY = 1e-12


class TAPRBM(StochasticRBM):
    """Restricted Boltzmann machine of binary or real-valued units, trained without sampling.

    The law of the units is approximated by the fixed points of a mean-field free energy, with
    the second-order correction of Thouless, Anderson and Palmer [1]_. Training makes the data
    probable where the fixed points that are reached from them are not; inference is
    deterministic, gives a landscape of solutions to look at, a log-likelihood, and a prior for
    denoising.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.

    visible : {"bernoulli", "truncated_gaussian", "truncated_gauss_bernoulli"} or UnitLaw, \
default="bernoulli"
        The law of the visible units, which training begins with by fitting it to the columns;
        an object of `sklearn_boltz.units` is where the training begins itself.

    hidden : {"bernoulli", "truncated_gaussian", "truncated_gauss_bernoulli"} or UnitLaw, \
default="bernoulli"
        The law of the hidden units; by its name, on [0, 1] and at first without preferences.

    visible_range : tuple of (float, float), default=None
        The least and the greatest value of visible units whose law is truncated. None for
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
        for small models.

    learning_rate : float, default=0.05
        Length of a step along the mean gradient.

    learning_rate_schedule : {"constant", "invscaling"}, default="constant"
        With ``"invscaling"``, the learning rate in epoch t = 1, 2, ... is
        ``learning_rate / t ** power_t``. A call of `partial_fit` counts as an epoch.

    power_t : float, default=0.5
        Exponent of the inverse scaling.

    momentum : float, default=0.5
        Part of the last step of the weights that is added to each.

    penalty : {"l1", "l2"} or None, default="l2"
        Of the weights.

    alpha : float, default=1e-3
        Strength of the penalty.

    batch_size : int, default=100
        Number of rows of a mini-batch, and of persistent solutions.

    max_iter : int, default=10
        Number of epochs.

    weights_init : float, default=0.01
        Standard deviation of the weights at the start.

    early_stopping : bool, default=False
        Whether to set rows aside, and to stop when their log-likelihood no longer rises. The
        parameters are then those of the best epoch. The log-likelihood is exact with up to 12
        binary units in the smaller layer, and otherwise by TAP.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int, default=5
        Number of epochs without progress after which to stop.

    tol : float, default=1e-3
        What counts as progress, in nats.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, values must be legal for the visible units.

    warm_start : bool, default=False
        Whether `fit` goes on from where the last fit ended, as if it had not been interrupted.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness: of the first weights and the order of the rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The weights.

    intercept_hidden_ : ndarray of shape (n_components,)
        U of the hidden units. Truncated laws have `precision_hidden_`, and with a spike at
        zero `rho_hidden_`, besides: the parameters that `sklearn_boltz.units` describes.

    intercept_visible_ : ndarray of shape (n_features,)
        U of the visible units; likewise, `precision_visible_` and `rho_visible_`.

    log_partition_ : float
        Logarithm of the normalising constant, in nats: exact with up to 20 binary units in the
        smaller layer, else by TAP from 100 rows of the training. Computed when first asked for.

    history_ : dict of ndarray
        For each epoch of `fit`: ``"tap_log_likelihood"`` of 100 rows of the training per unit,
        visible and hidden ones counted; ``"n_solutions"``, how many different ones are reached
        from these rows; ``"free_energy"``, their mean, and ``"free_energy_std"``;
        ``"converged"``, the part of the rows from which TAP converges; ``"learning_rate"`` and
        ``"seconds"``; with `early_stopping`, also ``"log_likelihood"`` of the validation rows
        and ``"free_energy_gap"``, by how much the free energy of validation rows exceeds that
        of training rows.

    n_iter_ : int
        Number of epochs made.

    n_features_in_ : int
        Number of visible units.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the visible units, if `X` had names.

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

    Integers and booleans are computed with in float32. The fit has the same bits whatever
    the number of threads.

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

    _parameter_constraints = {
        **StochasticRBM._parameter_constraints,
        "visible": [StrOptions(set(LAWS)), UnitLaw],
        "hidden": [StrOptions(set(LAWS)), UnitLaw],
        "visible_range": [tuple, list, None],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "tap_max_iter": [Interval(Integral, 1, None, closed="left")],
        "tap_tol": [Interval(Real, 0, None, closed="left")],
        "damping": [Interval(Real, 0, 1, closed="left")],
        "inference": [StrOptions(set(INFERENCES))],
        "penalty": [StrOptions({"l1", "l2"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    _estimate_of_log_partition = "tap"

    def __init__(
        self,
        n_components=256,
        *,
        visible="bernoulli",
        hidden="bernoulli",
        visible_range=None,
        order=2,
        tap_max_iter=10,
        tap_tol=1e-8,
        damping=0.5,
        persistent=False,
        inference="tap",
        learning_rate=0.05,
        learning_rate_schedule="constant",
        power_t=0.5,
        momentum=0.5,
        penalty="l2",
        alpha=1e-3,
        batch_size=100,
        max_iter=10,
        weights_init=0.01,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        tol=1e-3,
        binarize=None,
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
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.binarize = binarize
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # The units.

    def _units(self):
        return self._with_parameters(self._visible_law, "visible"), self._with_parameters(
            self._hidden_law, "hidden"
        )

    def _with_parameters(self, law, layer):
        """A law with the public attributes as its parameters, not copied."""
        units = copy.copy(law)
        for name in law.parameters():
            setattr(units, name, getattr(self, f"{name}_{layer}_"))
        return units

    def _base(self):
        return self._base_law

    def _visible_bounds(self):
        if self.visible_range is None:
            return self.visible.bounds if isinstance(self.visible, UnitLaw) else (0.0, 1.0)
        if self.visible not in ("truncated_gaussian", "truncated_gauss_bernoulli"):
            raise ValueError("visible_range is for truncated laws, given by their names.")
        if len(self.visible_range) != 2 or not self.visible_range[0] < self.visible_range[1]:
            raise ValueError(f"visible_range must be (low, high), got {self.visible_range!r}.")
        low, high = self.visible_range
        return float(low), float(high)

    def _first_units(self, X):
        """The laws that the training begins with."""
        options = {}
        if self.visible_range is not None:
            options = dict(zip(("low", "high"), self.visible_range, strict=True))
        laws = []
        for name, make, n_units in [
            ("visible", lambda law: law.from_data(X, **options), X.shape[1]),
            ("hidden", lambda law: law.neutral(self.n_components, X.dtype), self.n_components),
        ]:
            law = getattr(self, name)
            law = make(LAWS[law]) if isinstance(law, str) else law.astype(X.dtype)
            if len(law) != n_units:
                raise ValueError(f"{name} has {len(law)} units, but there must be {n_units}.")
            laws.append(law)
        return laws

    # Training: what `StochasticRBM` asks for.

    def _start(self, X):
        self._visible_law, self._hidden_law = visible, hidden = self._first_units(X)
        self._base_law = visible.astype(X.dtype)
        weights = self._rng.normal(0, self.weights_init, (self.n_components, X.shape[1]))
        self._learner = Learner(weights.astype(X.dtype), visible, hidden, SGD(self.momentum))
        self._rows = np.empty((0, X.shape[1]), X.dtype)
        self._keep_rows(X)

    def _keep_rows(self, X):
        """Keep rows to start at, evenly spaced, until there are enough."""
        n_more = min(N_STARTS - len(self._rows), X.shape[0])
        chosen = np.linspace(0, X.shape[0] - 1, n_more).round().astype(int)
        self._rows = np.vstack([self._rows, dense(X[chosen]).astype(self._rows.dtype)])

    def _resume(self):
        self._learner.weights = np.array(self.components_, order="C")
        visible, hidden = self._units()
        dtype = self.components_.dtype
        self._learner.visible, self._learner.hidden = visible.astype(dtype), hidden.astype(dtype)

    def _iteration(self, **changes):
        return Iteration(self.order, MOST_ITERATIONS, self.tap_tol, self.damping)._replace(
            **changes
        )

    def _learn_batch(self, V, workers, buffers):
        scheme = Scheme(
            self._iteration(max_iter=self.tap_max_iter), self.persistent, self.batch_size,
            self.penalty, self.alpha,
        )  # fmt: skip
        learn_batch(self._learner, V, scheme, self._rate(), workers, buffers)

    def _new_monitor(self, X, train, valid):
        sets = None, None
        if len(valid):
            gap_rows = train[: min(len(valid), GAP_ROWS)]
            sets = dense(X[valid]), dense(X[gap_rows])
        return TAPMonitor(self._rows, *sets, self._iteration(), self.inference)

    def _publish(self):
        self._check_finite()
        learner = self._learner
        self.components_ = learner.weights
        for layer, units in [("visible", learner.visible), ("hidden", learner.hidden)]:
            for name, value in units.parameters().items():
                setattr(self, f"{name}_{layer}_", value)
        self._forget()
        if self.history_ and self.history_["converged"][-1] < LEAST_CONVERGED:
            warnings.warn(
                f"TAP converges from {self.history_['converged'][-1]:.0%} of the training rows "
                "only: the model may be in a spin-glass phase. Use a smaller learning_rate, a "
                "larger alpha or fewer n_components.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    # Solutions and likelihood.

    def _tap_starts(self, model, n_starts, stream, workers):
        return self._rows.astype(model.dtype, copy=False)

    def _solutions(self, model, V, workers, **changes):
        return INFERENCES[self.inference](model, V, self._iteration(**changes), workers)

    @validate_params(
        {
            "X0": ["array-like", "sparse matrix", None],
            "unique": ["boolean"],
            "max_iter": [Interval(Integral, 1, None, closed="left")],
            "tol": [Interval(Real, 0, None, closed="left"), None],
        },
        prefer_skip_nested_validation=True,
    )
    def tap_solutions(self, X0=None, unique=True, *, max_iter=MOST_ITERATIONS, tol=None):
        """Find fixed points of the free energy from many starts at once.

        Parameters
        ----------
        X0 : {array-like, sparse matrix} of shape (n_starts, n_features), default=None
            Rows to start at; None for 100 rows of the training.
        unique : bool, default=True
            Whether to return each solution once, in the order of their free energies: two are
            the same if no unit's means differ by more than 0.02 of its range. Otherwise, a
            solution for each start.
        max_iter : int, default=1000
            Number of iterations after which a start is given up.
        tol : float, default=None
            Mean squared change of the means at which a start has converged; None for
            `tap_tol`.

        Returns
        -------
        solutions : Bunch
            `visible_mean`, `visible_variance` of shape (n_solutions, n_features),
            `hidden_mean`, `hidden_variance` of shape (n_solutions, n_components),
            `free_energy` in nats, `converged` and `n_iter` of shape (n_solutions,), and
            `assignment` of shape (n_starts,), which of the solutions each start reached.

        References
        ----------
        .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018. Algorithm 1.
        """
        check_is_fitted(self)
        model = self._model()
        V = self._rows if X0 is None else dense(self._checked(X0))
        with Workers(self.n_jobs) as workers:
            solutions = self._solutions(
                model, V, workers, max_iter=max_iter, tol=self.tap_tol if tol is None else tol
            )
        kept, assignment = np.arange(len(V)), np.arange(len(V))
        if unique:
            kept, assignment = _tap.distinct(model, solutions)
        chosen = {name: value[kept] for name, value in solutions.items() if name != "change"}
        return Bunch(**chosen, assignment=assignment)

    def tap_log_likelihood(self, X):
        """Return the log-probability of each row with ln Z by mean field.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            ``-free_energy(X)`` less ln Σ exp(−F) over the distinct solutions from 100 rows of
            the training, in nats.
        """
        free_energy = self.free_energy(X)
        return -free_energy - self._cached("tap", lambda: self.log_partition("tap").value)

    # Evidence: noisy and missing values.

    @validate_params(
        {
            "Y": ["array-like", "sparse matrix"],
            "flip_probability": [Interval(Real, 0, 1, closed="both"), None],
            "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
            "max_iter": [Interval(Integral, 1, None, closed="left")],
        },
        prefer_skip_nested_validation=True,
    )
    def denoise(self, Y, flip_probability=None, *, noise_variance=None, max_iter=MOST_ITERATIONS):
        """Estimate rows from noisy observations of them, with the model as their prior.

        TAP starts at the best estimate of each value by itself, from its observation and its
        law in the training data.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_features)
            The observations.
        flip_probability : float, default=None
            For visible units with the values 0 and 1, observed through a binary symmetric
            channel: the probability that a value is the other one.
        noise_variance : float, default=None
            The variance of Gaussian noise that was added to the values; exactly one of the
            two must be given.
        max_iter : int, default=1000
            Number of iterations at most.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Estimated means of the values given the observations.

        References
        ----------
        .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018. Section VII.D.
        """
        check_is_fitted(self)
        if (flip_probability is None) == (noise_variance is None):
            raise ValueError("Give either flip_probability or noise_variance.")
        model = self._model()
        if noise_variance is None:
            if type(model.visible) is not Bernoulli:
                raise ValueError("flip_probability is for Bernoulli visible units.")
            Y = dense(self._checked(Y))
            p = np.clip(flip_probability, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            # The paper has the fraction upside down.
            field, precision = (2 * Y - 1) * model.dtype.type(logit(1 - p)), 0.0
        else:
            # Noise may have carried values out of their range.
            Y = validate_data(self, Y, dtype=model.dtype, reset=False)
            field, precision = Y / noise_variance, 1 / noise_variance
        mean, variance = self._base().moments(field, precision)
        evidence = Evidence(np.asarray(field, model.dtype), precision)
        return self._mean_given(model, mean, variance, evidence, max_iter)

    def _mean_given(self, model, mean, variance, evidence, max_iter=MOST_ITERATIONS):
        """Visible means by TAP from a start, with evidence."""
        iteration = self._iteration(max_iter=max_iter)
        with Workers(self.n_jobs) as workers:
            solutions = _tap.solve(model, mean, iteration, workers, variance, evidence)
        return solutions.visible_mean

    def impute(self, X, *, how="mean", method="auto", n_steps=200, random_state=None):
        """Fill missing values from their law given the observed values of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing value.
        how : {"mean", "mode", "sample"}, default="mean"
            The conditional mean of each missing value, its more probable value, or a draw
            of all of them from their joint conditional law.
        method : {"auto", "tap", "gibbs"}, default="auto"
            ``"tap"`` is mean field with the observed values held fast; it starts at the means
            of the training data. ``"gibbs"`` is exact where a row has few missing values or
            the model few hidden units, else by Markov chains with the observed values held
            fast. ``"auto"`` is exact where that is possible, else by TAP; samples are drawn by
            chains.
        n_steps : int, default=200
            Number of transitions, at least 1; means are over the second half.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            A copy with the missing values filled.
        """
        if method not in ("auto", "tap", "gibbs") or (method == "tap" and how == "sample"):
            raise ValueError(f"method={method!r} does not go with how={how!r}.")
        X, missing, model = self._to_impute(X, how, n_steps)
        by_tap = np.zeros(len(X), dtype=bool)
        if method != "gibbs" and how != "sample":
            exact = partial(_sampling.can_impute_exactly, model)
            by_tap = np.array([m.any() and (method == "tap" or not exact(m)) for m in missing])
        filled, rng = np.zeros(X.shape), make_generator(random_state)
        others = ~by_tap
        filled[others] = _sampling.impute(model, X[others], missing[others], how, n_steps, rng)
        if by_tap.any():
            filled[by_tap] = self._imputed_by_tap(model, X[by_tap], missing[by_tap], how)
        return np.where(missing, filled, X).astype(X.dtype)

    def _imputed_by_tap(self, model, X, missing, how):
        mean, variance = self._base().moments(np.zeros(X.shape, model.dtype))
        start = np.where(missing, mean, X).astype(model.dtype)
        variance = np.where(missing, variance, 0).astype(model.dtype)
        filled = self._mean_given(model, start, variance, Evidence(known=~missing))
        return _sampling._nearest_state(model.visible, filled) if how == "mode" else filled
