"""BaseMachine: what the estimators share that see their model as two sides of units."""

import copy
import warnings
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_boltz._base import BaseBoltzmann, dense, make_generator
from sklearn_boltz.restricted import _partition, _sampling
from sklearn_boltz.restricted._gibbs import Stream, Workers
from sklearn_boltz.restricted._inference import by_tap
from sklearn_boltz.restricted._tap import Iteration, distinct, select, total_log_partition

# Rows that a method works on at once, so that its memory does not grow with the data.
CHUNK_ROWS = 1000
# Transitions of a chain from independent features to where TAP starts without rows of data.
TAP_START_STEPS = 100
WORSE = (
    "The training diverged: its rows are less probable than with independent units, by a bit "
    "for each feature or more."
)
_RANDOM_STATE = ["random_state", np.random.Generator]
_COUNT = [Interval(Integral, 0, None, closed="left")]
_POSITIVE = [Interval(Integral, 1, None, closed="left")]
IMPUTE_CONSTRAINTS = {
    "X": ["array-like"],
    "how": [StrOptions({"mean", "mode", "sample"})],
    "n_steps": _POSITIVE,
    "random_state": _RANDOM_STATE,
}


class BaseMachine(BaseBoltzmann):
    """A machine whose units are on two sides, those of a side independent given the other.

    In an RBM these are the visible and the hidden layer, in a deep machine the even and the odd
    layers, of which the visible one is the first: a row of the visible side begins with the
    features. A child has the parameters of `_parameter_constraints` below, `free_energy(X)` and

    - `_model()`, a `Model`, and `_parameters()`, all arrays that it depends on;
    - `_base()`, the law of independent units of the visible side that fits the data, where
      annealing begins;
    - `_visible_bounds()`, the least and the greatest legal value of data;
    - `_side(V)`, rows of the visible side for rows of features, if these are not all of it.

    `fit` sets `components_`, calls `_forget`, and sets `_evaluation_seed`, for estimates that
    must be the same each time.
    """

    _parameter_constraints = {
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": _POSITIVE,
        "tol": [Interval(Real, 0, None, closed="left")],
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }
    # The attributes that a training changes in place, from one mini-batch or unit to the next.
    _changed_in_place = ()
    # How ln Z is estimated where it cannot be computed.
    _estimate_of_log_partition = "ais"

    def _forget(self):
        """Drop what was computed from earlier parameters."""
        self._cache = {}

    def _cached(self, name, compute):
        """A costly figure, computed again where a user has set a fitted attribute."""
        parameters = self._parameters()
        known = self._cache.get("parameters", [])
        if [id(a) for a in parameters] != [id(a) for a in known]:
            self._cache = {"parameters": parameters}
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    def _split_rows(self, n_rows):
        """Numbers of the rows to train on and of those set aside, both in random order."""
        # The same rows each time that a fit is taken up again.
        order = np.random.default_rng(self._evaluation_seed).permutation(n_rows)
        if not self.early_stopping:
            return order, order[:0]
        if n_rows < 2:
            raise ValueError(
                "early_stopping needs n_samples of at least 2, but n_samples=1. "
                "Set early_stopping=False."
            )
        n_valid = min(max(1, round(self.validation_fraction * n_rows)), n_rows - 1)
        return order[n_valid:], order[:n_valid]

    def _add_to_history(self, entry, heading=""):
        """Append a dict of figures to `history_`, and print it if that is wanted."""
        for name, value in entry.items():
            self.history_[name] = np.append(self.history_.get(name, []), value)
        if self.verbose:
            figures = ", ".join(f"{name} {value:.4g}" for name, value in entry.items())
            print(f"[{type(self).__name__}] {heading}{figures}")

    def _snapshot(self):
        """The attributes that a fit leaves which ends here; no one changes them any more."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        # In one go: they may share arrays.
        state = {name: getattr(self, name) for name in self._changed_in_place}
        vars(other).update(copy.deepcopy(state))
        other.history_ = dict(self.history_)
        return vars(other._publish())

    def _visible_base(self):
        """The law of independent features that fits the data."""
        return self._base()

    def _least_log_likelihood(self, rows):
        """What any sound training exceeds: a bit for each feature less than independent units."""
        base, field = self._visible_base(), np.zeros((1, rows.shape[1]), rows.dtype)
        independent = base.log_weight(rows).mean() - base.log_partition_sum(field)[0]
        return independent - rows.shape[1] * np.log(2)

    # Data.

    def _validated(self, X, *, reset=False, allow_nan=False):
        """Check rows; -> legal values, float32 or float64, dense or CSR."""
        X = validate_data(
            self,
            X,
            accept_sparse=False if allow_nan else "csr",
            # The first is for all other types: integers and booleans work in float32.
            dtype=[np.float32, np.float64],
            ensure_all_finite="allow-nan" if allow_nan else True,
            reset=reset,
        )
        X = X.astype(X.dtype.type, copy=False)  # to the byte order of the machine
        if not issparse(X):
            X = self._binarized(X)
            self._check_bounds(X)
            return X
        if self.binarize is not None:
            if self.binarize < 0:
                raise ValueError("binarize must not be negative for sparse data.")
            X = X.copy()
            X.data = self._binarized(X.data)
            X.eliminate_zeros()
        low, high = self._visible_bounds()
        if not low <= 0 <= high:
            self._check_bounds(X.toarray())
        elif X.nnz and (X.data.min() < low or X.data.max() > high):
            place = int(np.argmax((X.data < low) | (X.data > high)))
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            dense = X[[row]].toarray()
            self._check_bounds(dense, row)
        return X

    def _check_bounds(self, X, first_row=0):
        low, high = self._visible_bounds()
        # Without temporaries where all is well; a NaN takes the other way.
        if X.min() >= low and X.max() <= high:
            return
        legal = np.isnan(X) | ((X >= low) & (X <= high))
        if legal.all():
            return
        negative = (
            "Negative values in data are no probabilities. " if low == 0 and (X < 0).any() else ""
        )
        where = f" (row {first_row} of the data)" if first_row else ""
        scaler = "" if (low, high) == (0, 1) else f"feature_range=({low:g}, {high:g}), "
        self._check_domain(
            X,
            legal,
            lambda j: f"values from {low:g} to {high:g}" + where,
            f"{negative}Set `binarize` to a threshold, or scale the columns with "
            f"sklearn.preprocessing.MinMaxScaler({scaler}clip=True).",
        )

    def _checked(self, X):
        check_is_fitted(self)
        X = self._validated(X)
        return X.astype(self._model().dtype, copy=False)

    def _side(self, V):
        """Rows of the visible side of the model, for rows of features."""
        return V

    def _by_chunks(self, function, X):
        """Apply a function of dense rows, a chunk at a time."""
        return np.concatenate([
            function(dense(X[rows]))
            for rows in gen_batches(X.shape[0], CHUNK_ROWS)
        ])  # fmt: skip

    # Likelihoods.

    def score_samples(self, X):
        """Return the log-probability of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        log_probability : ndarray of float64 of shape (n_samples,)
            ``-free_energy(X) - log_partition_``, in nats: normalised, and the same each time.
        """
        return -self.free_energy(X) - self.log_partition_

    @property
    def log_partition_(self):
        """Logarithm of the normalising constant."""
        check_is_fitted(self, "components_")
        return self._cached(
            "log_partition", lambda: self.log_partition(random_state=self._evaluation_seed).value
        )

    @validate_params(
        {
            "method": [StrOptions({"auto", "exact", "ais", "raise", "tap"})],
            "n_chains": _POSITIVE,
            "n_temperatures": [*_POSITIVE, "array-like"],
            "X": ["array-like", "sparse matrix", None],
            "random_state": _RANDOM_STATE,
            "n_jobs": [Integral, None],
        },
        prefer_skip_nested_validation=True,
    )
    def log_partition(
        self,
        method="auto",
        *,
        n_chains=100,
        n_temperatures=1000,
        X=None,
        random_state=None,
        n_jobs=None,
    ):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ais", "raise", "tap"}, default="auto"
            ``"exact"`` enumerates the smaller layer, of 26 units at most. ``"ais"`` is
            annealed importance sampling [1]_ from the base rates of the training data: the
            estimate of Z is unbiased, that of ln Z too low in the mean. ``"raise"`` runs
            the chains the other way [2]_ and errs on the other side, so that a likelihood
            computed with it is conservative. ``"tap"`` is ln Σ exp(−F) over distinct TAP
            solutions with free energies F [3]_: deterministic given where it starts, and
            neither a bound nor unbiased. ``"auto"`` is exact up to 20 units, else AIS, or
            TAP in an estimator that is trained by it.
        n_chains : int, default=100
            Number of independent chains, or of starts of TAP.
        n_temperatures : int or array-like of float, default=1000
            Number of equal steps of the inverse temperature, or all its values from 0 up to 1.
        X : array-like of shape (n_samples, n_features), default=None
            For ``"raise"``: rows whose likelihood is to be bounded. The chains start at
            them, in turn; more than `n_chains` are not used. None for the states that an
            AIS run reached, drawn by their weights, as if they were samples of the model.
            In a deep machine, it must be None. For ``"tap"``: rows to start at; None for
            training rows where an estimator keeps some, else for rows that short Markov chains
            reach.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        n_jobs : int, default=None
            Number of threads; None for that of the estimator. The result does not depend
            on it.

        Returns
        -------
        estimate : Bunch
            `value` in nats, `std_err`, its standard error by the delta method, `ess`, the
            effective number of chains, `log_weights` of the chains, and `method`. Of TAP,
            `std_err` is NaN, `ess` the number of distinct solutions and `log_weights` minus
            their free energies.

        Warns
        -----
        UserWarning
            If few chains carry the estimate.
        ConvergenceWarning
            If no start of TAP converges.

        References
        ----------
        .. [1] R. Salakhutdinov and I. Murray, "On the quantitative analysis of deep belief
           networks", ICML 2008.
        .. [2] Y. Burda, R. Grosse and R. Salakhutdinov, "Accurate and conservative estimates
           of MRF log-likelihood using reverse annealing", AISTATS 2015.
        .. [3] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018.
        """
        check_is_fitted(self)
        model = self._model()
        if method == "raise" and X is not None and len(model.visible) > self.n_features_in_:
            raise ValueError("In a deep machine, method='raise' needs X=None.")
        if method == "auto":
            few = _partition.n_enumerated(model) <= _partition.EXACT_UNITS
            method = "exact" if few else self._estimate_of_log_partition
        if method == "exact":
            return _partition.exact_estimate(model)
        X = None if X is None else self._checked(X)
        rng = make_generator(random_state)
        stream, betas = Stream.from_generator(rng), _partition.temperature_ladder(n_temperatures)
        with Workers(self.n_jobs if n_jobs is None else n_jobs) as workers:
            if method == "tap":
                return self._tap_log_partition(model, X, n_chains, stream, workers)
            if X is None or method == "ais":
                n_rows = 1
                estimate = _partition.annealed_importance_sampling(
                    model, self._base(), betas, n_chains, stream, workers
                )
                starts = _partition.resampled(estimate, rng)
            else:
                n_rows = min(n_chains, X.shape[0])
                starts = dense(X[np.arange(n_chains) % n_rows])
            if method == "raise":
                estimate = _partition.reverse_importance_sampling(
                    model, self._base(), betas, starts, stream, workers, n_rows
                )
        _partition.warn_if_unreliable(estimate)
        return estimate

    def _tap_log_partition(self, model, X, n_starts, stream, workers):
        if X is None:
            starts = self._tap_starts(model, n_starts, stream, workers)
        else:
            starts = self._side(dense(X))
        solutions = self._solutions(model, starts, workers)
        kept, _ = distinct(model, solutions)
        chosen = select(solutions, kept)
        if not chosen.converged.any():
            warnings.warn(
                "TAP converged from no start: its log-partition is not to be trusted. "
                "Use method='ais', or more damping.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return Bunch(
            value=total_log_partition(chosen), std_err=np.nan, ess=float(len(kept)),
            log_weights=-chosen.free_energy, method="tap", states=chosen.visible_mean,
        )  # fmt: skip

    def _tap_starts(self, model, n_starts, stream, workers):
        """Rows that short chains reach."""
        V = self._base().sample(np.zeros((n_starts, len(model.visible)), model.dtype), stream)
        return _sampling.chain_samples(model, V, TAP_START_STEPS, stream, workers)

    def _solutions(self, model, V, workers):
        """TAP solutions from rows, with their free energies."""
        return by_tap(model, V, Iteration(), workers)

    # New rows, and missing values.

    @validate_params(
        {
            "n_samples": _POSITIVE,
            "random_state": _RANDOM_STATE,
            "n_steps": _COUNT,
            "init": ["array-like", "sparse matrix", None],
            "n_temperatures": _POSITIVE,
        },
        prefer_skip_nested_validation=True,
    )
    def sample(self, n_samples=1, random_state=None, *, n_steps=1000, init=None, n_temperatures=1):
        """Draw samples from the model by Markov chains, one for each sample.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        n_steps : int, default=1000
            Number of transitions.
        init : array-like of shape (n_rows, n_features), default=None
            Rows where the chains start, in turn. None for independent features with the
            means of the training data.
        n_temperatures : int, default=1
            With more than 1, parallel tempering: each chain exchanges its state with chains
            at so many temperatures, of which the highest has independent units. It takes as
            many times as long, and mixes where a single chain stays in one mode.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Values of the visible units.
        """
        check_is_fitted(self)
        stream, model = Stream.from_generator(make_generator(random_state)), self._model()
        if init is None:
            shape = n_samples, len(model.visible)
            V = self._base().sample(np.zeros(shape, model.dtype), stream)
        else:
            V = self._checked(init)
            V = self._side(dense(V[np.arange(n_samples) % V.shape[0]]))
        with Workers(self.n_jobs) as workers:
            if n_temperatures == 1:
                states = _sampling.chain_samples(model, V, n_steps, stream, workers)
            else:
                states = _sampling.tempered_samples(
                    model, self._base(), V, n_steps, n_temperatures, stream, workers
                )
        return states[:, : self.n_features_in_]

    def _to_impute(self, X):
        """-> rows, where values are missing, the model."""
        check_is_fitted(self)
        X = np.array(self._validated(X, allow_nan=True))
        return X, np.isnan(X), self._model()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Without a threshold, only values within the bounds are legal.
        tags.input_tags.positive_only = self.binarize is None and self._visible_bounds()[0] >= 0
        tags.input_tags.sparse = True
        return tags
