"""BaseBoltzmannMachine: what RBMs and deep Boltzmann machines share."""

import warnings
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import (
    COMPLETE_TO_USE,
    BaseBoltzmann,
    dense,
    find_stack_level,
    validate_arguments,
)
from sklearn_boltz._cells import foreign_coding, shown
from sklearn_boltz._estimates import best_known, raise_floor, temperature_ladder
from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._tap import (
    Iteration,
    distinct,
    select,
    total_log_partition,
)
from sklearn_boltz.restricted.model import _enumeration
from sklearn_boltz.restricted.sampling import _annealing, _conditional, _samples

# Rows that a method works on at once, so that its memory does not grow with the data.
CHUNK_ROWS = 1000
# Part of the bounds by which a value may be out of range: scaling in float32 leaves as much.
ROUNDING = 1e-6
# Transitions of a chain from independent features to where TAP starts without rows of data.
TAP_START_STEPS = 100
_RANDOM_STATE = ["random_state", np.random.Generator]
_COUNT = [Interval(Integral, 0, None, closed="left")]
_POSITIVE = [Interval(Integral, 1, None, closed="left")]
IMPUTE_CONSTRAINTS = {
    "X": ["array-like"],
    "how": [StrOptions({"mean", "mode", "sample"})],
    "n_steps": _POSITIVE,
    "random_state": _RANDOM_STATE,
}


class BaseBoltzmannMachine(BaseBoltzmann):
    """A model whose units are on two sides, those of a side independent given the other.

    In an RBM these are the visible and the hidden layer, in a deep Boltzmann machine the even and
    the odd layers, of which the visible one is the first: a row of the visible side begins with
    the features. A child has the parameters of `_parameter_constraints` below, `free_energy(X)` and

    - `_model()`, a `Model`, `_layered()`, the same as `Layered`, and `_parameters()`, all arrays
      that it depends on;
    - `_base()`, independent units of the visible side fitted to the data, where annealing
      begins;
    - `_visible_bounds()`, the least and the greatest legal value of data;
    - `_side(V)`, rows of the visible side for rows of features, if these are not all of it.

    `fit` sets `components_` and `_evaluation_seed`, for estimates that must be the same each time.
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
    # How ln Z is estimated where it cannot be computed.
    _estimate_of_log_partition = "ais"

    def _tell(self, number, figures, of="epoch"):
        """Print what was measured, if that is wanted."""
        if self.verbose:
            figures = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"[{type(self).__name__}] {of} {number}: {figures}")

    # Data.

    def _validated(self, X, *, reset=False, allow_nan=False, clip=False):
        """Check rows; -> legal values, float32 or float64, dense or CSR.

        With `clip`, values out of range are set to its nearest end, with a warning.
        """
        X = self._validate(
            X,
            accept_sparse=False if allow_nan else "csr",
            # The first is for all other types: integers and booleans work in float32.
            dtype=[np.float32, np.float64],
            allow_nan=allow_nan,
            reset=reset,
        )
        X = X.astype(X.dtype.type, copy=False)  # to the native byte order
        if not issparse(X):
            return self._bounded(self._binarized(X), clip)
        if self.binarize is not None:
            if self.binarize < 0:
                raise ValueError("binarize must not be negative for sparse data.")
            X = X.copy()
            X.data = self._binarized(X.data)
            X.eliminate_zeros()
        return self._bounded_sparse(X, clip)

    def _bounded(self, X, clip):
        """Rows within the bounds: rounding errors are mended, other values refused or clipped."""
        low, high = self._visible_bounds()
        # Without temporaries where all is well; a NaN takes the other way.
        if X.min() >= low and X.max() <= high:
            return X
        legal = self._are_legal(X)
        if not legal.all():
            if not clip:
                self._refuse(X, legal)
            row, column = np.unravel_index(np.argmin(legal), legal.shape)
            columns = np.flatnonzero(~legal.all(axis=0))
            self._warn_of_clipping(X, row, column, (~legal).sum(), len(columns))
        return X.clip(low, high)

    def _bounded_sparse(self, X, clip):
        low, high = self._visible_bounds()
        if not low <= 0 <= high:  # the zeros are outside
            return csr_array(self._bounded(X.toarray(), clip))
        if not X.nnz or (X.data.min() >= low and X.data.max() <= high):
            return X
        legal = self._are_legal(X.data)
        if not legal.all():
            place = np.argmin(legal)
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            rows = X[[row]].toarray()
            if not clip:
                self._refuse(rows, self._are_legal(rows), row)
            columns = np.unique(X.indices[~legal])
            n_values, column = (~legal).sum(), X.indices[place]
            self._warn_of_clipping(rows, 0, column, n_values, len(columns), row)
        X = X.copy()
        X.data = X.data.clip(low, high)
        return X

    def _are_legal(self, values):
        """Where values are within the bounds, to rounding errors, or NaN."""
        low, high = self._visible_bounds()
        size = max([abs(end) for end in (low, high) if np.isfinite(end)], default=1.0)
        rounding = ROUNDING * size
        return ~((values < low - rounding) | (values > high + rounding))

    def _domain(self, column=None):
        return "values from {:g} to {:g}".format(*self._visible_bounds())

    def _refuse(self, X, legal, first_row=0):
        self._check_domain(X, legal, self._domain, self._remedy(X), first_row)

    def _remedy(self, X):
        """What to do about values out of range."""
        low, high = self._visible_bounds()
        scaler = "" if (low, high) == (0, 1) else f"feature_range=({low:g}, {high:g}), "
        return (
            "Set `binarize` to a threshold, or scale the columns with "
            f"sklearn.preprocessing.MinMaxScaler({scaler}clip=True)."
        )

    def _warn_of_clipping(self, X, row, column, n_values, n_columns, first_row=0):
        one = n_values == 1
        coding = foreign_coding(X, column, COMPLETE_TO_USE)
        warnings.warn(
            f"{type(self).__name__}: {n_values:,} value{'' if one else 's'} in {n_columns:,} "
            f"column{'' if n_columns == 1 else 's'} {'is' if one else 'are'} outside of the "
            f"{self._domain()} and {'was' if one else 'were'} set to the nearer end; the first is "
            f"{shown(X[row, column])} in {self._column(column)}, row {first_row + row}. "
            f"{coding or 'MinMaxScaler(clip=True) before this step does the same silently.'}",
            UserWarning,
            stacklevel=find_stack_level(),
        )

    def _checked(self, X):
        check_is_fitted(self)
        X = self._validated(X, clip=True)
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

        def compute():
            estimate = self.log_partition(random_state=self._evaluation_seed)
            return Bunch(value=estimate.value, method=estimate.method)

        return best_known(
            self._cached("log_partition", compute), self._cached("log_partition_floor", Bunch)
        )

    @validate_arguments(
        {
            "method": [StrOptions({"auto", "exact", "ais", "raise", "tap"})],
            "n_chains": _POSITIVE,
            "n_temperatures": [*_POSITIVE, "array-like"],
            "X": ["array-like", "sparse matrix", None],
            "random_state": _RANDOM_STATE,
            "n_jobs": [Integral, None],
        }
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
            estimate of Z is unbiased, that of ln Z too low in the mean, and with probability
            95 % ln Z is greater than the estimate less 3 nats, however few chains carry it.
            ``"raise"`` runs chains the other way [2]_, beside AIS. It overestimates ln Z where
            they start at samples of the model. Where they do not, as in a model with mass far
            from the data, it may be too low as well: it bounds the likelihood of the
            distribution that the annealing ends in, not that of the model. ``"tap"`` is
            ln Σ exp(−F) over distinct TAP solutions with free energies F [3]_: deterministic
            given where it starts, and
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
            In a deep Boltzmann machine, it must be None. For ``"tap"``: rows to start at; None for
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
            `value` in nats; `std_err`, its standard error by the delta method; `low` and
            `high`, between which ln Z lies with a probability of 95 % each, as far as the
            method can tell, and infinite where it cannot; `verdict`, what the estimate is
            worth, in words; `ess`, the effective number of chains; `log_weights` of the
            chains; `states` where they ended; and `method`. Of TAP, `std_err` is NaN, `ess`
            the number of distinct solutions and `log_weights` minus their free energies.

        Warns
        -----
        UserWarning
            If few chains carry the estimate, or if AIS shows that ln Z is greater than RAISE
            says.
        ConvergenceWarning
            If no start of TAP converges.

        Notes
        -----
        `log_partition_`, and with it `score_samples`, is the estimate of ``method="auto"``. If
        `low` of a later run is above that, the estimate of this run takes its place for as long
        as the parameters are the same.

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
            raise ValueError("In a deep Boltzmann machine, method='raise' needs X=None.")
        if method == "auto":
            few = _enumeration.n_enumerated(model) <= _enumeration.EXACT_UNITS
            method = "exact" if few else self._estimate_of_log_partition
        if method == "exact":
            return _enumeration.exact_estimate(model)
        X = None if X is None else self._checked(X)
        rng = make_generator(random_state)
        stream, betas = Stream.from_generator(rng), temperature_ladder(n_temperatures)
        with Workers(self.n_jobs if n_jobs is None else n_jobs) as workers:
            if method == "tap":
                return self._tap_log_partition(model, X, n_chains, stream, workers)
            estimate = forward = _annealing.annealed_importance_sampling(
                model, self._base(), betas, n_chains, stream, workers
            )
            if method == "raise":
                n_rows = 1 if X is None else min(n_chains, X.shape[0])
                if X is None:
                    starts = _annealing.resampled(forward, rng)
                else:
                    starts = dense(X[np.arange(n_chains) % n_rows])
                backward = _annealing.reverse_importance_sampling(
                    model, self._base(), betas, starts, stream, workers, n_rows
                )
                estimate = _annealing.bracketed(forward, backward, from_model=X is None)
        raise_floor(self._cached("log_partition_floor", Bunch), forward)
        if not estimate.trusted:
            warnings.warn(estimate.verdict, UserWarning, stacklevel=find_stack_level())
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
            value=total_log_partition(chosen), std_err=np.nan, low=-np.inf, high=np.inf,
            ess=float(len(kept)), log_weights=-chosen.free_energy, method="tap",
            states=chosen.visible_mean, trusted=bool(chosen.converged.any()),
            verdict="An expansion for weak weights: its error is not known. AIS gives a floor.",
        )  # fmt: skip

    def _tap_starts(self, model, n_starts, stream, workers):
        """Rows that short chains reach."""
        V = self._base().sample(np.zeros((n_starts, len(model.visible)), model.dtype), stream)
        return _samples.chain_samples(model, V, TAP_START_STEPS, stream, workers)

    def _solutions(self, model, V, workers):
        """TAP solutions from rows, with their free energies."""
        return by_tap(model, V, Iteration(), workers)

    # New rows, and missing values.

    @validate_arguments(
        {
            "n_samples": _POSITIVE,
            "random_state": _RANDOM_STATE,
            "given": [dict, None],
            "temperature": [Interval(Real, 0, None, closed="neither")],
            "n_steps": _COUNT,
            "init": ["array-like", "sparse matrix", None],
            "n_temperatures": _POSITIVE,
        }
    )
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        temperature=1.0,
        n_steps=1000,
        init=None,
        n_temperatures=1,
    ):
        """Draw samples from the model by Markov chains, one for each sample.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by their names or numbers: samples are then from the
            conditional distribution of the others. They are exact if at most 10 binary columns
            are left or there are at most 12 binary hidden units; otherwise these columns are
            clamped in the chains. With `init` or `n_temperatures`, there are always chains.
        temperature : float, default=1.0
            T > 0: samples are from the distribution ∝ p(v, h)^(1/T) of visible and hidden units
            together, with all weights and biases divided by T. Below 1, probable rows become
            more frequent, and chains mix more slowly: take `n_temperatures` along.
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
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
        model, rng = self._model(), make_generator(random_state)
        stream = Stream.from_generator(rng)
        if temperature != 1:
            model = model.tempered(1 / temperature)
        clamped, values = np.zeros(len(model.visible), dtype=bool), None
        if given:
            values = self._given_values(given)
            clamped[: len(values)] = ~np.isnan(values)
            free = ~clamped
            if init is None and n_temperatures == 1:
                if not free.any():
                    return np.tile(values.astype(model.dtype), (n_samples, 1))
                if _conditional.can_impute_exactly(model, free):
                    v = np.append(values, np.zeros(len(free) - len(values)))
                    mixture = _conditional.conditional_mixture(model, v, free)
                    rows = _conditional.draw(model, v, free, mixture, n_samples, rng, stream)
                    return rows[:, : self.n_features_in_]
        if init is None:
            shape = n_samples, len(model.visible)
            V = self._base().sample(np.zeros(shape, model.dtype), stream)
        else:
            V = self._checked(init)
            V = self._side(dense(V[np.arange(n_samples) % V.shape[0]]))
        if values is not None:
            V = np.array(V)
            V[:, clamped] = values[clamped[: len(values)]]
        with Workers(self.n_jobs) as workers:
            if n_temperatures == 1:
                states = _samples.chain_samples(model, V, n_steps, stream, workers, clamped)
            else:
                states = _samples.tempered_samples(
                    model, self._base(), V, n_steps, n_temperatures, stream, workers, clamped
                )
        return states[:, : self.n_features_in_]

    def _given_values(self, given):
        """A row with the values that a user gives for some columns, NaN elsewhere."""
        row = np.full(self.n_features_in_, np.nan)
        for name, value in given.items():
            if not isinstance(name, (str, Integral)):
                raise ValueError(f"given: columns go by name or number, not by {name!r}.")
            j = self._variable(name)
            if not np.isnan(row[j]):
                raise ValueError(f"given has two values for {self._column(j)}.")
            if not isinstance(value, (Real, np.bool_)) or np.isnan(value):
                raise ValueError(f"given has {value!r} for {self._column(j)}, not a number.")
            row[j] = value
        row = self._binarized(row)
        legal = self._are_legal(row)
        if not legal.all():
            j = int(np.argmin(legal))
            raise ValueError(
                f"given has the value {shown(row[j])} for {self._column(j)}, where "
                f"{type(self).__name__} needs {self._domain(j)}."
            )
        return row.clip(*self._visible_bounds())

    def _to_impute(self, X):
        """-> rows as given and as the model takes them, where values are missing, the model."""
        check_is_fitted(self)
        given = self._validate(X, reset=False, allow_nan=True, dtype=[np.float32, np.float64])
        X = np.array(self._bounded(self._binarized(given), clip=True))
        return given, X, np.isnan(X), self._model()

    @validate_arguments(
        {"X": ["array-like"], "column": [str, Integral], "n_steps": _POSITIVE,
         "random_state": _RANDOM_STATE}
    )  # fmt: skip
    def predict_column_proba(self, X, column, *, n_steps=1000, random_state=None):
        """Return the probabilities of the values of one column given the other cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. What stands in the column itself is ignored. NaN in other columns is a
            missing value, which is summed out: exactly where at most 10 binary values of a row
            are missing, the column counted, or there are at most 12 binary hidden units, and
            otherwise by Markov chains with the observed values clamped.
        column : str or int
            Name or number of the column.
        n_steps : int, default=1000
            Number of transitions of each Markov chain; the probabilities are averaged over the
            second half.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        probability : ndarray of float64 of shape (n_samples, n_states)
            In the order of the values of the visible units, of binary ones 0 and 1.

        Raises
        ------
        ValueError
            If the visible units have a continuum of values.
        """
        check_is_fitted(self)
        units, j = self._layered().layers[0], self._variable(column)
        if units.n_states is None:
            raise ValueError(
                f"{self._column(j)} takes {self._domain(j)}, a continuum, in which a single value "
                "has no probability. `impute` gives its mean, and draws."
            )
        X = self._validate(X, reset=False, allow_nan=True, dtype=[np.float32, np.float64])
        X = np.array(self._binarized(X))
        X[:, j] = np.nan
        X = self._bounded(X, clip=True)
        pad, missing = self._layered().padded, np.isnan(X)
        return _conditional.column_probabilities(
            self._model(), pad(X), pad(missing, True), j, units, n_steps,
            make_generator(random_state),
        )  # fmt: skip

    def entropy(self):
        """Return the entropy of the distribution of the rows, by enumeration.

        Returns
        -------
        entropy : float
            −Σ p(v) ln p(v) over all rows v, in nats.

        Raises
        ------
        ValueError
            If there are more than 20 bits to enumerate: binary visible units and, of several
            hidden layers, every second one. Also if visible units have a continuum of values.
        """
        check_is_fitted(self)
        return _enumeration.exact_entropy(self._layered())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Without a threshold, only values within the bounds are legal.
        tags.input_tags.positive_only = self.binarize is None and self._visible_bounds()[0] >= 0
        tags.input_tags.sparse = True
        return tags
