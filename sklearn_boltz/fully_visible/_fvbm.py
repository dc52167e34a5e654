"""FVBMPseudoLikelihood: the fully visible Boltzmann machine."""

import warnings
from contextlib import nullcontext
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import OneToOneFeatureMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import (
    BaseBoltzmann,
    checked_weights,
    find_stack_level,
    fingerprint,
    unchanged_on_error,
    validate_arguments,
)
from sklearn_boltz._batches import as_batches, fresh, summarise
from sklearn_boltz._callbacks import iterations, with_callbacks
from sklearn_boltz._estimates import (
    best_known,
    estimate_from_value,
    raise_floor,
    temperature_ladder,
)
from sklearn_boltz._random import make_generator
from sklearn_boltz._threads import limit_blas
from sklearn_boltz.fully_visible._bslm import row_fields
from sklearn_boltz.fully_visible._fit import Task, choose_solver, maximise
from sklearn_boltz.fully_visible._inference import PairwiseInference, sandwich_covariance
from sklearn_boltz.fully_visible._objective import PseudoLikelihood, distinct_rows, parameter_places
from sklearn_boltz.fully_visible._sampling import (
    annealed_log_partition,
    gibbs_impute,
    gibbs_sample,
    log_weight,
)
from sklearn_boltz.fully_visible._solvers import Monitor
from sklearn_boltz.fully_visible._spurious import spurious_message, strange_columns
from sklearn_boltz.fully_visible._streamed import Sums
from sklearn_boltz.loglinear._distribution import LogLinearModel

# Connected variables whose joint states are enumerated: for the normalising constant and
# exact samples, and for the distribution of the missing values of one row.
MAX_EXACT = 26
MAX_EXACT_MISSING = 20

# Nats of standard error, above which an estimate of the normalising constant is not trusted.
DOUBTFUL = 0.2
# Chains, and their transitions, that then tell whether the model has mass far from the data.
N_COMPARED, N_STEPS = 200, 200

# Rows a column, below which intervals are too narrow: benchmarks/fvbm/bench_fvbm_intervals.py.
FEW_ROWS = 20

# With fewer parameters the matrices of a fit, and of the inference after it, are so small
# that threads of BLAS mostly wait for each other.
MIN_THREADED_FIT = 20_000
MIN_THREADED_INFERENCE = 500


class Rows(NamedTuple):
    """Rows as they were read: their coding, and where they have the higher value.

    Of batches with too many distinct rows, `positive` and `weights` are None, and `sums` are the
    sums over all rows.
    """

    values: np.ndarray
    dtype: np.dtype
    positive: np.ndarray | None
    weights: np.ndarray | None
    sums: Sums | None = None


class FVBMPseudoLikelihood(OneToOneFeatureMixin, BaseBoltzmann):
    """Fully visible Boltzmann machine, fitted by maximum pseudo-likelihood.

    A network of pairwise interactions of binary variables, known as the Ising model too:
    with x in {-1, 1}^d,

        P(x) = exp(½ xᵀ M x + bᵀ x) / Z.

    The maximum pseudo-likelihood estimate is consistent and asymptotically normal, and needs
    no normalising constant. So each coupling comes with a standard error: see `inference`.

    Parameters
    ----------
    solver : {"newton", "lbfgs", "bslm", "ga"}, default="newton"
        ``"bslm"`` is block successive lower-bound maximisation, the algorithm of [1]_: no
        step lowers the objective. ``"ga"`` is gradient ascent, the same with all steps
        multiplied by `step_size`. ``"newton"`` is Newton's method with a line search; with
        more than 3,000 parameters (77 variables) ``"lbfgs"`` takes its place. All reach
        the same, unique maximum.

    step_size : float, default=1.0
        Factor μ on the steps of ``solver="ga"``. Above 1 nothing is guaranteed.

    alpha : float, default=0.0
        Penalty on the couplings, as a strength per row: ½ α Σ_{j<k} m_jk² is subtracted from
        the mean log pseudo-likelihood of the rows. Intercepts are not penalised. With
        ``alpha > 0`` the maximum exists for all data.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, the data must consist of -1 and 1, of 0 and 1, or of bool.

    tol : float, default=1e-5
        The fit ends when an iteration raises the objective, summed over the rows, by less than
        this, in nats. The statistical error of an estimate is a matter of the sum, too: at 0.05
        nats below the maximum, an estimate is off by less than a third of its standard error.

    max_iter : int, default=None
        Number of iterations at most. None means 100 for ``"newton"``, 5,000 for ``"lbfgs"``
        and 10,000 sweeps for ``"bslm"`` and ``"ga"``.

    warm_start : bool, default=False
        Whether `fit` begins at the parameters of the fit before.

    verbose : int, default=0
        If positive, print a line at the end of a fit; if greater than 1, for each iteration.

    Attributes
    ----------
    coupling_ : ndarray of shape (n_features, n_features)
        M, symmetric with a zero diagonal. It refers to values -1 and 1, whatever the coding
        of the data.

    intercept_ : ndarray of shape (n_features,)
        b, likewise.

    values_ : ndarray of shape (2,)
        The coding of the data: -1 and 1, or 0 and 1. Data that never are -1 have the latter.

    solver_ : str
        The solver that ran.

    n_iter_ : int
        Number of iterations (sweeps of ``"bslm"`` and ``"ga"``).

    converged_ : bool
        Whether the fit ended because of `tol`, and a maximum exists as far as is known.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"log_pseudo_likelihood"``, the objective after each iteration: the mean over the rows
        in nats, less the penalty; and ``"seconds"`` of each iteration.

    n_features_in_ : int
        Number of variables.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the variables, if `X` had names.

    See Also
    --------
    FSLLDensity : Chooses interactions of any order; exact likelihood.
    sklearn.covariance.GraphicalLasso : Network of real-valued variables.

    Notes
    -----
    Equal rows are collapsed first. `sample_weight` counts: a row of weight 2 is the same as
    two rows.

    A column that is constant in the data tells nothing of its couplings, which stay 0; its
    intercept is that of the data and one more observation spread evenly over both values.

    The pseudo-likelihood compares each row with those that differ from it in one variable. Of
    states far from all rows it knows nothing, and where the data are not those of a pairwise
    model, the estimate may have nearly all its mass there. This is common where values are
    rare and have causes in common: 20 columns can be enough, and more rows do not help. `sample`
    and, beyond 26 connected variables, `log_partition_` compare the rate of each column with
    that in the training data and warn. What helps is a large penalty, an `alpha` of
    0.05 to 0.5 in our measurements, chosen by the held-out
    `score`; or fewer columns; or a model that is trained with samples of itself, such as
    `SDCPRBM`.

    Up to 26 connected variables, everything is exact: `log_partition_`, `score_samples`,
    `marginal`, independent samples from `sample`. Beyond, samples come from Gibbs chains, and
    the normalising constant from annealed importance sampling, with a fixed seed.

    The fit is deterministic, so there is no `random_state`; methods that draw have one. Its time is
    spent in BLAS, which has threads of its own, so there is no `n_jobs`.

    References
    ----------
    .. [1] H. D. Nguyen and I. A. Wood, "A Block Successive Lower-Bound Maximization Algorithm
       for the Maximum Pseudo-Likelihood Estimation of Fully Visible Boltzmann Machines",
       Neural Computation 28(3), 485–492, 2016. https://doi.org/10.1162/NECO_a_00813
    .. [2] H. D. Nguyen and I. A. Wood, "Asymptotic Normality of the Maximum Pseudolikelihood
       Estimator for Fully Visible Boltzmann Machines", IEEE Transactions on Neural Networks
       and Learning Systems 27(4), 897–902, 2016. https://doi.org/10.1109/TNNLS.2015.2425898

    Examples
    --------
    The third column mostly repeats the first.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> model.coupling_.round(1) + 0.0
    array([[0. , 0.1, 0.7],
           [0.1, 0. , 0. ],
           [0.7, 0. , 0. ]])
    """

    _parameter_constraints = {
        "solver": [StrOptions({"newton", "lbfgs", "bslm", "ga"})],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        solver="newton",
        step_size=1.0,
        alpha=0.0,
        binarize=None,
        tol=1e-5,
        max_iter=None,
        warm_start=False,
        verbose=0,
    ):
        self.solver = solver
        self.step_size = step_size
        self.alpha = alpha
        self.binarize = binarize
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, coupling_init=None, intercept_init=None):
        """Find the maximum pseudo-likelihood estimate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or batches
            Values -1 and 1, 0 and 1 or bool, or anything real if `binarize` is set. Of
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections, the
            distinct rows are kept if they have no more than four million entries; if they
            have, there is a pass over the batches for each evaluation of the objective.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.
        coupling_init : array-like of shape (n_features, n_features), default=None
            Initial couplings, symmetric. None means 0, or with `warm_start` those of
            the fit before.
        intercept_init : array-like of shape (n_features,), default=None
            Initial intercepts. None means those of independent variables, or with
            `warm_start` those of the fit before.

        Returns
        -------
        self : FVBMPseudoLikelihood
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain.

        Warns
        -----
        ConvergenceWarning
            If there is no maximum because the data separate a variable, if `max_iter` ends
            the fit, or if the maximum is still far when `tol` ends it.

        Notes
        -----
        Ctrl-C leaves the parameters of the last complete iteration, if there is one, and those
        of before the fit if not. With `warm_start`, the next fit goes on from there.
        """
        if self.solver == "ga" and self.step_size > 1:
            warnings.warn(
                "With step_size > 1 gradient ascent may lower the pseudo-likelihood and need "
                "not converge.",
                stacklevel=find_stack_level(),
            )
        with unchanged_on_error(self):
            batches = as_batches(X, sample_weight)
            rows = self._read(X, sample_weight) if batches is None else self._read_batches(batches)
            initial = self._initial(coupling_init, intercept_init)
            status = self._fit(rows, batches, X, y, initial)
        if status == "interrupted":
            raise KeyboardInterrupt
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to those seen before, and fit all of them.

        The result is that of `fit` on all rows at once: of the rows seen before, each distinct
        one and its weight are kept, at 1 bit an entry. The fit begins at the parameters of
        the last one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            More rows, in the coding of the first ones.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. None counts each once.

        Returns
        -------
        self : FVBMPseudoLikelihood
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain, or if the estimator was fitted to batches with so
            many distinct rows that they were not kept.

        Warns
        -----
        ConvergenceWarning
            As `fit` does.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "coupling_")
            rows = self._read(X, sample_weight, values=None if first else self.values_)
            initial = (None, None) if first else (self.coupling_, self.intercept_)
            if not first:
                rows = self._with_rows_before(rows)
            # Interrupted, the estimator goes back to the rows of before.
            if self._fit(rows, None, X, y, initial) == "interrupted":
                raise KeyboardInterrupt
        return self

    def _fit(self, rows, batches, X, y, initial):
        """Fit rows, and set all fitted attributes at once; -> how the fit ended."""
        with blas_threads(self.n_features_in_, MIN_THREADED_FIT):
            task = self._task(rows, batches)
            solver, solve, max_iter = choose_solver(
                self.solver, task.problem.n_parameters, self.step_size, self.max_iter
            )

            def attributes(coupling, intercept):
                return {
                    "values_": rows.values,
                    "coupling_": coupling,
                    "intercept_": intercept,
                    "_base": task.base,
                    "_estimate": fingerprint([coupling, intercept]),
                    "_sample_dtype": rows.dtype,
                    "_seen": task.seen,
                    "_varying": task.varying,
                }

            def label(j, spin=None):
                name = self._column(j)
                return name if spin is None else f"{name} = {rows.values[(spin + 1) // 2]}"

            data = X if batches is None else batches
            with iterations(self, data, y, name="iteration", max_iter=max_iter) as end_iteration:
                monitor = Monitor(
                    self.tol,
                    max_iter,
                    lambda: end_iteration(lambda: attributes(*task.whole(*monitor.last[1:]))),
                    self.verbose,
                )
                result = maximise(task, initial, solve, monitor, label)
                vars(self).update(
                    attributes(result.coupling, result.intercept),
                    solver_=solver,
                    n_iter_=result.n_iter,
                    converged_=result.status == "converged" and result.message is None,
                    history_={"log_pseudo_likelihood": result.objective, "seconds": result.seconds},
                )
        if self.verbose:
            last = "" if not result.n_iter else f"{result.objective[-1]:.8f} a row, "
            print(
                f"{solver}: {result.n_iter} iterations, log pseudo-likelihood {last}{result.status}"
            )
        if result.message:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=find_stack_level())
        return result.status

    def _task(self, rows, batches):
        """Distinct rows in memory, or passes over batches that have too many."""
        if rows.positive is not None:
            return Task.of_rows(*distinct_rows(rows.positive, rows.weights), self.alpha)
        if self.solver in ("bslm", "ga"):
            raise ValueError(
                f"solver={self.solver!r} keeps all distinct rows in memory, and these batches "
                "have too many. Use solver='newton' or 'lbfgs'."
            )
        positive = partial(_positive_of_batch, fresh(self), rows.values)
        return Task.of_batches(batches, positive, rows.sums, self.alpha)

    def _read(self, X, sample_weight, values=None):
        """Check rows, in the coding `values` or, if that is None, in any."""
        X = self._validate(X, reset=values is None)
        values = self._coding(X) if values is None else values
        positive, weights = self._positive(X, values), checked_weights(sample_weight, X)
        if not weights.all():
            positive, weights = positive[weights > 0], weights[weights > 0]
        return Rows(values, X.dtype, positive, weights)

    def _read_batches(self, batches):
        """Collect the distinct rows if they are few, else sums over all rows."""
        low, dtype, sums = summarise(self, batches, _sums_of_batch, _merge_sums, reset=True).result
        values = np.array([0 if low is None else low, 1])
        return Rows(values, dtype, sums.rows, sums.weights, sums)

    def _with_rows_before(self, rows):
        """All rows since the first fit."""
        if self._seen is None:
            raise ValueError(
                "The batches of the last fit had so many distinct rows that they were not "
                "kept, so there is nothing to add rows to. Fit Batches of all rows."
            )
        bits, counts = self._seen
        before = np.unpackbits(bits, axis=1, count=self.n_features_in_).astype(bool)
        return Rows(
            self.values_,
            self._sample_dtype,
            np.concatenate([before, rows.positive]),
            np.concatenate([counts, rows.weights]),
        )

    def _initial(self, coupling, intercept):
        """Initial couplings and intercepts; None where the user leaves them open."""
        d = self.n_features_in_
        if self.warm_start and hasattr(self, "coupling_"):
            if len(self.coupling_) != d:
                raise ValueError(
                    f"With warm_start, X must have the {len(self.coupling_)} features of the "
                    f"fit before; it has {d}."
                )
            coupling = self.coupling_ if coupling is None else coupling
            intercept = self.intercept_ if intercept is None else intercept
        if coupling is not None:
            coupling = np.array(coupling, dtype=np.float64)
            if (
                coupling.shape != (d, d)
                or not np.isfinite(coupling).all()
                or not np.array_equal(coupling, coupling.T)
                or coupling.diagonal().any()
            ):
                raise ValueError(
                    f"coupling_init must be a finite symmetric matrix of shape {(d, d)} with a "
                    "zero diagonal."
                )
        if intercept is not None:
            intercept = np.array(intercept, dtype=np.float64)
            if intercept.shape != (d,) or not np.isfinite(intercept).all():
                raise ValueError(f"intercept_init must be a finite vector of shape {(d,)}.")
        return coupling, intercept

    # Data to spins.

    def _coding(self, X):
        """The two values of the training data."""
        low = -1 if self.binarize is None and X.dtype.kind != "b" and (X == -1).any() else 0
        return np.array([low, 1])

    def _positive(self, X, values):
        """Check the domain; -> whether each entry has the higher value, False for NaN."""
        X = self._binarized(X)
        low, high = values
        positive = X == high
        if self.binarize is None:
            legal = positive | (X == low)
            if X.dtype.kind == "f":
                legal |= np.isnan(X)
            self._check_domain(
                X,
                legal,
                lambda j: f"the values {low} and {high}",
                "Recode the column, or set `binarize` to a threshold and fit again.",
            )
        return positive

    def _validated_spins(self, X):
        """-> ±1 of float64, and the type of X."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return to_spins(self._positive(X, self.values_)), X.dtype

    def _decoded(self, spins):
        """From the scale of -1 and 1 to that of the data."""
        return spins if self.values_[0] == -1 else (1 + spins) / 2

    def _row_fields(self, spins):
        fields = np.empty_like(spins)
        row_fields(spins, self.coupling_, self.intercept_, fields)
        return fields

    # What a fitted model can do.

    def transform(self, X):
        """Return the conditional expectation of each variable given the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        expectation : ndarray of shape (n_samples, n_features)
            In the coding of the training data: tanh(M x + b), from -1 to 1, for -1 and 1, and
            the probabilities of a 1 for 0 and 1. float32 for float32 data and float64 else.
        """
        spins, dtype = self._validated_spins(X)
        expectation = self._decoded(np.tanh(self._row_fields(spins)))
        return expectation.astype(np.float32 if dtype == np.float32 else np.float64)

    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the variables of ln p(x_j | all others), in nats.
        """
        spins, _ = self._validated_spins(X)
        return -np.logaddexp(0, -2 * spins * self._row_fields(spins)).sum(axis=1)

    def score_samples(self, X):
        """Return the log-probability of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            In nats, normalised by `log_partition_`.
        """
        return -self.energy(X) - self.log_partition_

    def energy(self, X):
        """Return the energy of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        energy : ndarray of float64 of shape (n_samples,)
            E(x) = -½ xᵀ M x - bᵀ x with x of -1 and 1, with which P(x) = exp(-E(x)) / Z.
        """
        spins, _ = self._validated_spins(X)
        local = self._row_fields(spins) - self.intercept_
        return -log_weight(spins, local, self.intercept_)

    def free_energy(self, X):
        """Return the free energy of each row: its energy, as there are no hidden units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, without missing cells.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            ``energy(X)``.
        """
        return self.energy(X)

    def entropy(self):
        """Return the entropy of the model.

        Returns
        -------
        entropy : float
            -Σ_x P(x) ln P(x), exact, in nats.

        Raises
        ------
        ValueError
            If the model has more than 26 connected variables.
        """
        check_is_fitted(self)
        self._check_enumerable("There is no estimate of the entropy.")
        return self._cached("entropy", lambda: self._model().entropy())

    @property
    def log_partition_(self):
        """Logarithm of the normalising constant, in nats; computed when first asked for."""
        check_is_fitted(self)

        def compute():
            estimate = self.log_partition(random_state=0)
            return Bunch(value=estimate.value, method=estimate.method)

        return best_known(
            self._cached("log_partition", compute), self._cached("log_partition_floor", Bunch)
        )

    @validate_arguments(
        {
            "method": [StrOptions({"auto", "exact", "ais"})],
            "n_chains": [Interval(Integral, 1, None, closed="left")],
            "n_temperatures": [Interval(Integral, 1, None, closed="left"), "array-like"],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
        }
    )
    def log_partition(self, method="auto", *, n_chains=500, n_temperatures=1000, random_state=None):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ais"}, default="auto"
            ``"exact"`` enumerates the states of connected variables, of 26 at most. ``"ais"`` is
            annealed importance sampling from the base rates of the training data: the
            estimate of Z is unbiased, that of ln Z too low in the mean, and with probability
            95 % ln Z is greater than the estimate less 3 nats, however few chains carry it.
            ``"auto"`` is exact up to 26 connected variables, else AIS.
        n_chains : int, default=500
            Number of independent chains.
        n_temperatures : int or array-like of float, default=1000
            Number of equal steps of the inverse temperature, or all its values from 0 up to 1.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        estimate : Bunch
            `value` in nats; `std_err`, its standard error by the delta method; `low` and
            `high`, between which ln Z lies with a probability of 95 % each, infinite where
            the method cannot tell; `trusted` and `verdict`, what the estimate is worth;
            `ess`, the effective number of chains; `log_weights` of the chains; `states` where they
            ended, in the coding of the training data; and `method`.

        Raises
        ------
        ValueError
            If ``method="exact"`` and the model has more than 26 connected variables.

        Warns
        -----
        UserWarning
            If few chains carry the estimate, or if they show that the model has mass far from
            the data, see Notes of the class.

        Notes
        -----
        `log_partition_`, and with it `score_samples`, is the estimate of ``method="auto"``. If
        `low` of a later run is above that, the estimate of this run takes its place for as long
        as the parameters are the same.
        """
        check_is_fitted(self)
        if method == "exact":
            self._check_enumerable("Use method='ais'.")
        if method != "ais" and self._is_enumerable():
            return estimate_from_value(
                self._cached("exact_log_partition", lambda: self._model().log_partition())
            )
        estimate = annealed_log_partition(
            self.coupling_, self.intercept_, self._base, temperature_ladder(n_temperatures),
            n_chains, make_generator(random_state),
        )  # fmt: skip
        raise_floor(self._cached("log_partition_floor", Bunch), estimate)
        self._warn_of_partition(estimate)
        estimate.states = self._decoded(estimate.states).astype(self._sample_dtype)
        return estimate

    def _parameters(self):
        return [self.coupling_, self.intercept_]

    def _warn_of_partition(self, estimate):
        """Warn if the estimate of ln Z is uncertain, or if the model has mass far from the data."""
        where = "In the weighted states from which log_partition_ is estimated,"
        weights = np.exp(estimate.log_weights - estimate.log_weights.max())
        means, n = weights @ estimate.states / weights.sum(), estimate.ess
        if estimate.std_err > DOUBTFUL:
            warnings.warn(
                f"The estimate of log_partition_ is uncertain by at least {estimate.std_err:.2g} "
                "nats: the model has modes that chains rarely find, perhaps far from the data.",
                stacklevel=find_stack_level(),
            )
            # A few states have nearly all the weight, too few to compare. Plain chains have more.
            where, n = "In samples of the model,", N_COMPARED
            generator = make_generator(0)
            spins = gibbs_sample(self.coupling_, self.intercept_, n, N_STEPS, generator)
            means = spins.mean(axis=0)
        self._warn_if_far_from_data(where, means, n)

    def _warn_if_far_from_data(self, where, means, n):
        """Compare means of spins over n states of the model with those of the training data.

        Parameters that the user has set have nothing to do with these.
        """
        if fingerprint(self._parameters()) != self._estimate:
            return
        rates, expected = (1 + means) / 2, (1 + np.tanh(self._base)) / 2
        columns = strange_columns(rates, expected, n)
        if len(columns):
            message = spurious_message(where, rates, expected, columns, self._column)
            warnings.warn(message, stacklevel=find_stack_level())

    def _is_enumerable(self):
        return is_enumerable(self.coupling_)

    def _check_enumerable(self, remedy):
        if not self._is_enumerable():
            raise ValueError(
                f"{type(self).__name__}: the model connects more than {MAX_EXACT} variables, too "
                f"many to enumerate. {remedy}"
            )

    def _model(self):
        return log_linear_model(self.coupling_, self.intercept_)

    def marginal(self, features):
        """Return the joint probabilities of some variables.

        Parameters
        ----------
        features : int, str or sequence of them
            Numbers or names of variables, each once.

        Returns
        -------
        table : ndarray of float64 with one axis of length 2 for each of `features`
            ``table[0, 1]`` is the probability that the first has the lower and the second the
            higher of its values; the sum is 1.

        Raises
        ------
        ValueError
            If the model has more than 26 connected variables; use `sample` then.
        """
        check_is_fitted(self)
        variables = self._variables(features)
        self._check_enumerable("Count in the rows of `sample` instead.")
        return np.flip(self._model().marginal(variables))

    @validate_arguments(
        {
            "n_samples": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
            "given": [dict, None],
            "temperature": [Interval(Real, 0, None, closed="neither")],
            "n_steps": [Interval(Integral, 1, None, closed="left")],
        }
    )
    def sample(self, n_samples=1, random_state=None, *, given=None, temperature=1.0, n_steps=1000):
        """Draw samples from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by name or number, as they are in the rows that this method
            returns: the other columns are drawn from their distribution given these.
        temperature : float, default=1.0
            T > 0: rows are drawn with probabilities in proportion to P(x)^(1/T).
        n_steps : int, default=1000
            Transitions (sweeps of Gibbs sampling) that lead to each sample, in a chain of its
            own, if the model has more than 26 connected variables that are not given.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent samples in the coding of the training data and of its type; exact up
            to 26 connected variables.

        Warns
        -----
        UserWarning
            If the rate of a column differs from that in the training data by 0.05 and more
            than chance explains: the model then has mass far from the data, see Notes of the
            class. This is looked at without `given` and at temperature 1. While no rate under
            the model differs by more than 0.05, it happens in one call of 10,000 at most. Of
            fewer than about ten samples it cannot be told.
        """
        check_is_fitted(self)
        columns, places = self._given(given, lambda j: self.values_)
        generator = make_generator(random_state)
        spins = np.empty((n_samples, self.n_features_in_))
        spins[:, columns] = known = 2 * places - 1
        free = np.setdiff1d(np.arange(self.n_features_in_), columns)
        # Given some spins, the others are a model of the same kind.
        coupling = self.coupling_[np.ix_(free, free)]
        intercept = self.intercept_[free] + self.coupling_[np.ix_(free, columns)] @ known
        coldest = (np.abs(coupling).sum() + np.abs(intercept).sum()) / 1e300  # sums are finite
        scale = 1 / max(temperature, coldest)
        coupling, intercept = scale * coupling, scale * intercept
        if is_enumerable(coupling):
            states = log_linear_model(coupling, intercept).sample(n_samples, generator)
            spins[:, free] = 1 - 2 * states
        else:
            spins[:, free] = gibbs_sample(coupling, intercept, n_samples, n_steps, generator)
        if not len(columns) and temperature == 1:
            self._warn_if_far_from_data("In these samples,", spins.mean(axis=0), n_samples)
        return self._decoded(spins).astype(self._sample_dtype)

    @validate_arguments(
        {
            "X": ["array-like"],
            "how": [StrOptions({"mean", "mode", "sample"})],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
            "n_steps": [Interval(Integral, 1, None, closed="left")],
        }
    )
    def impute(self, X, *, how="mean", n_steps=1000, random_state=None):
        """Fill missing values from their distribution given the observed values of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing value.
        how : {"mean", "mode", "sample"}, default="mean"
            The conditional mean of each missing value, the most probable joint state of the
            missing values, or a draw of all of them from their joint conditional distribution.
            All are exact in rows with at most 20 missing values.
        n_steps : int, default=1000
            Transitions (sweeps of Gibbs sampling) before anything is kept, for rows with more
            than 20 missing values; as many follow for the mean, and for the best state met.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness for ``how="sample"``, and for rows with more than 20
            missing values.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            A copy with the missing values filled, in the coding of the training data; observed
            values are as they were given.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False, allow_nan=True, copy=True)
        missing = np.isnan(X)
        if not missing.any():
            return X
        spins = to_spins(self._positive(X, self.values_))
        generator = make_generator(random_state)
        many = missing.sum(axis=1) > MAX_EXACT_MISSING
        few = np.flatnonzero(missing.any(axis=1) & ~many)
        if len(few):
            states = (spins[few] < 0).astype(np.int64)
            spins[few] = 1 - 2 * self._model().impute(states, missing[few], how, generator)
        if many.any():
            spins[many] = gibbs_impute(
                self.coupling_, self.intercept_, spins[many], missing[many], n_steps, how,
                generator,
            )  # fmt: skip
        X[missing] = self._decoded(spins)[missing]
        return X

    @validate_arguments(
        {
            "X": ["array-like"],
            "n_steps": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state", Options(type, {np.random.Generator})],
        }
    )
    def predict_column_proba(self, X, column, *, n_steps=1000, random_state=None):
        """Return the probabilities of the values of one column given the rest of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. What stands in the column is ignored; other missing values (NaN) are
            summed out, exactly in rows with at most 20 missing values, the column included.
        column : int or str
            Number or name of the column.
        n_steps : int, default=1000
            Transitions (sweeps of Gibbs sampling) before anything is kept, for rows with more
            than 20 missing values; as many follow, over which probabilities are averaged.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness for rows with more than 20 missing values.

        Returns
        -------
        probabilities : ndarray of float64 of shape (n_samples, 2)
            Of the two values in the order of `values_`; each row sums to 1.
        """
        check_is_fitted(self)
        j = self._variable(column)
        X = self._validate(X, reset=False, allow_nan=True, copy=True)
        X[:, j] = self.values_[1]
        missing = np.isnan(X)
        missing[:, j] = True
        spins = to_spins(self._positive(X, self.values_))
        many = missing.sum(axis=1) > MAX_EXACT_MISSING
        probabilities = np.empty((len(X), 2))
        if not many.all():
            states = (spins[~many] < 0).astype(np.int64)
            found = self._model().column_probabilities(states, missing[~many], j)
            probabilities[~many] = found[:, ::-1]
        if many.any():
            mean = gibbs_impute(
                self.coupling_, self.intercept_, spins[many], missing[many], n_steps, "mean",
                make_generator(random_state),
            )[:, j]  # fmt: skip
            probabilities[many] = np.column_stack([1 - mean, 1 + mean]) / 2
        return probabilities

    @validate_arguments(
        {
            "X": ["array-like"],
            "sample_weight": ["array-like", None],
            "null": ["array-like", Real, None],
            "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        }
    )
    def inference(self, X, *, sample_weight=None, null=None, confidence_level=0.95):
        """Standard errors, Wald tests and confidence intervals of the estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.
        null : float or array-like of shape (n_parameters,), default=None
            Values of the parameters under the null hypotheses, in the order b_1, ..., b_d,
            m_12, m_13, ..., m_{d-1,d}. None means 0.
        confidence_level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        inference : PairwiseInference
            With ``estimate, std_err, z, p_value, ci_low, ci_high, names, covariance``; printed,
            it is a table. NaN where a column was constant in the fit.

        Warns
        -----
        UserWarning
            If there are fewer than 20 rows for each column that varies.

        Notes
        -----
        Standard errors are asymptotic. In simulations of sparse networks with 10 to 40 columns,
        95 % intervals covered the truth in 93 to 94 % of the cases with 10 to 20 rows a column and
        in 88 % with 5, and of the edges at a false discovery rate of 5 %, 4 to 9 % and 24 % were
        false; with 30 rows a column and more, intervals were right. The guide has the table.

        The covariance is the sandwich H⁻¹ J H⁻¹ of the information H and the products of the
        scores J (reference 2 of the class), both summed over the rows. With ``alpha > 0`` H
        contains the penalty; intervals then do not account for the bias of the estimates.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        weights = checked_weights(sample_weight, X)
        estimate = np.concatenate(
            [self.intercept_, self.coupling_[np.triu_indices(len(self.coupling_), 1)]]
        )
        null = np.zeros_like(estimate) if null is None else np.asarray(null, dtype=np.float64)
        if null.shape not in ((), estimate.shape):
            raise ValueError(f"null must be a number or of shape {estimate.shape}: {null.shape}.")
        if weights.sum() < FEW_ROWS * len(self._varying):
            warnings.warn(
                f"There are {weights.sum():g} rows for {len(self._varying)} columns. With fewer "
                f"than {FEW_ROWS} rows a column intervals tend to be too narrow and p values too "
                "small, so that more edges are false than the method of adjustment promises.",
                stacklevel=find_stack_level(),
            )
        positive = self._positive(X, self.values_)
        with blas_threads(self.n_features_in_, MIN_THREADED_INFERENCE):
            covariance = self._cached(
                "covariance", lambda: self._covariance(positive, weights), positive, weights
            )
        return PairwiseInference(
            estimate=estimate,
            covariance=covariance,
            names=parameter_names(self._input_names()),
            null=np.broadcast_to(null, estimate.shape),
            confidence_level=confidence_level,
            n_samples=weights.sum(),
        )

    def _covariance(self, positive, weights):
        """Of the estimates; NaN where a column was constant in the fit."""
        kept = self._varying
        spins, counts = distinct_rows(positive, weights)
        problem = PseudoLikelihood(spins[kept], counts, self.alpha)
        point = problem.at(self.coupling_[np.ix_(kept, kept)], self.intercept_[kept])
        if len(kept) == len(spins):
            return sandwich_covariance(problem, point)
        places = parameter_places(len(spins))[np.ix_(kept, kept)]
        known = np.concatenate([places.diagonal(), places[problem.upper]])
        n_parameters = len(spins) * (len(spins) + 1) // 2
        covariance = np.full((n_parameters, n_parameters), np.nan)
        if len(kept):
            covariance[np.ix_(known, known)] = sandwich_covariance(problem, point)
        return covariance

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # With a threshold, anything real is legal.
        tags.input_tags.categorical = self.binarize is None
        return tags


def _sums_of_batch(estimator, batch):
    """-> the lower value, or None if it does not occur, the type, and the sums over the rows."""
    X = estimator._validate(batch, reset=True)
    values = estimator._coding(X)
    positive = estimator._positive(X, values)
    low = None if positive.all() and estimator.binarize is None else int(values[0])
    return low, X.dtype, Sums.of(positive)


def _merge_sums(one, other):
    (low, dtype, sums), (other_low, _, others) = one, other
    if None not in (low, other_low) and low != other_low:
        raise ValueError(
            "FVBMPseudoLikelihood needs -1 and 1 or 0 and 1 in all batches, but one batch has the "
            "value -1 and another 0. Recode them, or set `binarize` to a threshold."
        )
    return other_low if low is None else low, dtype, sums + others


def _positive_of_batch(estimator, values, columns, k, batch):
    """Where these columns have the higher value."""
    estimator = copy(estimator)
    return estimator._positive(estimator._validate(batch, reset=True), values)[:, columns]


def blas_threads(n_features, least):
    """A context in which BLAS has one thread if there are less than `least` parameters."""
    n_parameters = n_features * (n_features + 1) // 2
    return limit_blas(1) if n_parameters < least else nullcontext()


def is_enumerable(coupling):
    """Whether each set of connected variables is small enough."""
    _, label = connected_components(coupling != 0, directed=False)
    return np.bincount(label).max(initial=0) <= MAX_EXACT


def log_linear_model(coupling, intercept):
    """The model as a log-linear one, whose state 0 stands for 1 and 1 for -1."""
    d = len(intercept)
    pairs = np.argwhere(np.triu(coupling))
    basis = np.zeros((d + len(pairs), d), dtype=np.int64)
    basis[:d] = np.eye(d)
    np.put_along_axis(basis[d:], pairs, 1, axis=1)
    theta = np.concatenate([intercept, coupling[tuple(pairs.T)]])
    return LogLinearModel(np.full(d, 2), basis, theta)


def to_spins(positive):
    """1 where `positive`, else -1, in rows that are contiguous."""
    return np.where(np.ascontiguousarray(positive), 1.0, -1.0)


def parameter_names(names):
    """``b[x0]`` and ``m[x0,x1]``, in the order of the parameters."""
    pairs = zip(*np.triu_indices(len(names), 1), strict=True)
    return np.array(
        [f"b[{name}]" for name in names] + [f"m[{names[j]},{names[k]}]" for j, k in pairs],
        dtype=object,
    )
