"""BaseBoltzmannMachine: what RBMs and deep Boltzmann machines share."""

from functools import partial, wraps
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
)
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._density import Density
from sklearn_boltz._methods import LOG_PARTITION_CONSTRAINTS, dense, validate_arguments
from sklearn_boltz._new_values import take_new_values
from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    dispatched,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    place_of,
    taken,
)
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import Stream, make_generator
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._estimates import (
    combined,
    compare_with_floor,
    estimate_from_value,
    has_wide_ends,
    temperature_ladder,
)
from sklearn_boltz.restricted._constraints import (
    COLUMNS,
    MACHINE_SAMPLE_CONSTRAINTS,
)
from sklearn_boltz.restricted.mean_field._clamped import tap_starts
from sklearn_boltz.restricted.mean_field._inference import outside_training, tap_log_partition
from sklearn_boltz.restricted.model import _enumeration
from sklearn_boltz.restricted.model._cells import (
    check_observed,
    filled_table,
    given_row,
    numbers_of,
)
from sklearn_boltz.restricted.model._columns import (
    NOT_NEGATIVE,
    UNITS_OF_COLUMNS,
    are_probabilities,
    hold_bits,
    kinds_of,
    learn_layout,
    specs_of,
    warn_of_pictures,
)
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.sampling import _annealing, _climb
from sklearn_boltz.restricted.sampling._fitted_rbm import FittedRBM
from sklearn_boltz.restricted.sampling._observed import has_few_states, rows_with_gaps
from sklearn_boltz.restricted.training._array_rows import ELSEWHERE, checked_on_device
from sklearn_boltz.restricted.training._auto import chosen_by
from sklearn_boltz.restricted.training._visits import rows_with_information
from sklearn_boltz.tables._kinds import Kind, Need
from sklearn_boltz.tables._weights import checked_weights
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._unit import UnitType

GAPS_ON_DEVICE = (
    "{}: rows on a device must be complete, except for `impute`, and there are missing cells. Fill "
    "them by `impute`, or sum them out on the processor: move_to(numpy) returns an estimator that "
    "takes NumPy arrays."
)


def by_processor(method):
    """Compute a method with NumPy, also if the arrays of the estimator are on a device.

    The arrays that it returns are moved to that device.
    """

    @wraps(method)
    def brought_home(self, *args, **kwargs):
        weights = getattr(self, "components_", None)
        if not is_foreign(weights):
            return method(self, *args, **kwargs)
        args = [as_numpy(value) if is_foreign(value) else value for value in args]
        kwargs = {name: as_numpy(v) if is_foreign(v) else v for name, v in kwargs.items()}
        found = method(self.move_to(np), *args, **kwargs)
        return like(weights, found) if isinstance(found, np.ndarray) else found

    return brought_home


class BaseBoltzmannMachine(Density):
    """A model whose units are on two sides. The units of a side are independent given the other.

    In an RBM, the sides are the visible and the hidden layer. In a deep Boltzmann machine, they
    are the even and the odd layers, counted from 0, the visible one: a row of the visible side
    begins with the visible units. A subclass has the parameters of `_parameter_constraints` below
    and `free_energy(X)`.

    `fit` sets what `_attributes` returns. The `coding` of `_encoder` converts rows of codes to rows
    of the visible units; `_validated` learns it with ``reset=True``.
    """

    _need = Need(bins=True)

    # Whether the public attributes hold lists with an entry for each hidden layer.
    _is_deep = False
    # Parameters that may be "auto", of which attributes tell what was chosen.
    _chosen = ("n_components", "alpha")
    _parameter_constraints = {
        "tol": [Interval(Real, 0, None, closed="left")],
        "columns": COLUMNS,
        "unseen": [StrOptions({"smooth", "error", "missing"})],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    # The model.

    def _attributes(self, training):
        """All attributes that follow from a training."""
        chosen = chosen_by(training.learner, self._chosen)
        return {
            **Layered.of(training.learner.model()).exposed(self._is_deep),
            **{f"{name}_": value for name, value in chosen.items()},
            **({"pretrain_history_": list(training.before)} if self._is_deep else {}),
            "n_iter_": training.n_epochs,
            "history_": {name: np.array(values) for name, values in training.history.items()},
            "_training": training,
            "_evaluation_seed": training.evaluation_seed,
        }

    def _layered(self):
        # The public parameters count, and the types of the units.
        return Layered.read(vars(self), Layered.of(self._training.learner.model()).layers)

    def _marginal(self):
        """The model of the visible units, without the label of a classifier."""
        return self._layered().sides()

    def _model(self):
        """The two sides of the model."""
        return self._marginal().sides()

    def _distribution(self):
        """The distribution of rows of numbers."""
        layered, base = self._layered(), self._training.base
        if is_foreign(layered.weights[0]):
            base = base.moved(partial(like, layered.weights[0]))
        base = base.astype(numpy_dtype(layered.weights[0]))
        seed = self._training.evaluation_seed
        return FittedRBM(layered, base, self._marginal(), seed, self.n_jobs)

    def _parameters(self):
        return self._layered().parameters()

    # Data.

    def _validated(
        self, X, *, reset=False, allow_nan=False, clip=False, sample_weight=None, lazily=False
    ):
        """Check rows; -> legal values, float32 or float64, dense or CSR.

        With `lazily`, rows with one-hot numbers are `CodedRows`. With `clip`, values out of range
        are set to the nearest bound, with a warning. With `reset`, the weighted means and standard
        deviations of continuous columns are learned.
        """
        if dispatched(X):
            return checked_on_device(self, X, reset, allow_nan, clip)
        cells = self._coded(X, reset=reset, allow_nan=allow_nan, sample_weight=sample_weight)
        return numbers_of(type(self).__name__, self._encoder, cells, clip, lazily)

    def _rows_of_fit(self, X, sample_weight, reset, is_batch=False):
        """The rows to learn from, each column of which has a value in a fit, and their weights."""
        if not reset:
            take_new_values(self, X, sample_weight)
        cells = self._coded(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
        name = type(self).__name__
        rows = numbers_of(name, self._encoder, cells, lazily=not is_batch)
        if sample_weight is None and rows_with_gaps(rows) is None:
            return rows, None
        rows, weights = rows_with_information(rows, sample_weight)
        if not is_batch and rows_with_gaps(rows) is not None:
            check_observed(name, self._encoder, rows)
        return rows, weights

    def _coded(self, X, *, reset=False, allow_nan=False, sample_weight=None):
        """Check a table; -> one number for each cell. With `reset`, the columns are learned."""
        if not reset and is_foreign(getattr(self, "components_", None)):
            there = place_of(self.components_)
            raise ValueError(ELSEWHERE.format(type(self).__name__, there, "NumPy"))
        X = self._validate(
            X,
            accept_sparse="csr",
            # Other types, such as integers and booleans, are converted to the first one.
            dtype=[np.float32, np.float64],
            allow_nan=allow_nan and not issparse(X),
            reset=reset,
            sample_weight=sample_weight,
        )
        X = X.astype(X.dtype.type, copy=False)  # to the native byte order
        if reset:
            weights = None if sample_weight is None else checked_weights(sample_weight, X)
            is_sparse = issparse(X)
            # A column without a value in the rows that count has none in one of them.
            if not is_sparse and np.isnan(X[0 if weights is None else weights.argmax()]).any():
                empty = np.isnan(X if weights is None else X[weights > 0]).all(axis=0)
                if empty.any() and not empty.all():
                    self._without_empty(empty)
            layout = learn_layout(specs_of(self), self._encoder, X, weights)
            layout.hold_bits = hold_bits(X)
            # In an array of numbers, these stand for themselves.
            plain = is_sparse or self._encoder.is_plain and self._encoder.header is None
            unseen = None if plain else layout.unseen(self._encoder, X, weights)
            self._encoder = self._encoder.of_model(layout, unseen)
        elif self.unseen != "error" and not self._reads_codes and self._encoder.unseen:
            X = self._encoder.unseen.hidden(X)
        table = vars(self).get("_encoder")
        if table is not None and table.is_empty.any():  # its unit has one value: it says nothing
            X = np.where(table.is_empty, X.dtype.type(0), X)
        return X

    def _known_cells(self, X):
        return None if dispatched(X) else self._coded(X, allow_nan=True)

    def _checked(self, X, allow_nan=False, lazily=False, cells=None):
        """Rows of a table, or their cells if they are known, as the model takes them."""
        if cells is None:
            check_is_fitted(self)
            X = self._validated(X, allow_nan=allow_nan, clip=True, lazily=lazily)
        else:
            X = numbers_of(type(self).__name__, self._encoder, cells, True, lazily)
        if not is_foreign(X):
            weights = self.components_[0] if self._is_deep else self.components_
            return X.astype(numpy_dtype(weights), copy=False)
        xp = namespace_of(X)
        if allow_nan and xp.any(xp.isnan(X)):
            raise ValueError(GAPS_ON_DEVICE.format(type(self).__name__))
        return as_type(X, numpy_dtype(self.components_))

    # Where the arrays lie.

    def move_to(self, xp, device=None):
        """Return the estimator with its arrays in another library or on another device.

        Parameters
        ----------
        xp : module
            The library: `numpy`, `torch`, `cupy` or another that implements the array API.
        device : object, default=None
            A device of that library, such as ``"cuda"``; None means its default device.

        Returns
        -------
        estimator : object
            A new estimator with the same parameters, which computes there. It does not have the
            ladder of saved models of training on NumPy arrays.

        Raises
        ------
        ValueError
            If this kind of estimator computes with NumPy arrays only.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_boltz.datasets import make_bars_and_stripes
        >>> from sklearn_boltz.restricted import SDCPRBM
        >>> model = SDCPRBM(8, max_iter=5, random_state=0).fit(make_bars_and_stripes(3))
        >>> type(model.move_to(np).components_)
        <class 'numpy.ndarray'>
        """
        library = namespace_of(xp.empty(0))  # as the array API has it
        if library is np:
            return self.__sklearn_array_api_convert__(as_numpy)
        return self.__sklearn_array_api_convert__(
            lambda array: library.asarray(as_numpy(array), device=device)
        )

    def __sklearn_array_api_convert__(self, convert):
        """Return a moved copy; scikit-learn calls this to move an estimator to a device."""
        check_is_fitted(self)
        if not self._computes_on_devices:
            raise ValueError(
                f"{type(self).__name__} computes with NumPy arrays only, and stays with them."
            )
        other = clone(self)
        moved = {k: convert(v) for k, v in self._layered().exposed(self._is_deep).items()}
        moved["_training"] = self._training.moved(convert)
        vars(other).update({**vars(self), **moved})
        return other

    # Columns of the table and numbers of the visible units.

    def _kinds(self, X):
        kinds = None
        if not isinstance(self.columns, str) or self.columns != "auto":
            kinds = kinds_of(specs_of(self), self._entries(), X)
        if not are_probabilities(X):
            warn_of_pictures(type(self).__name__, X, kinds)
            return kinds
        # In an array, numbers in [0, 1] are probabilities of a 1, as of pixels, if all columns are.
        plain = Kind("plain")
        if kinds is None:
            return [plain] * self.n_features_in_
        return [plain if kind.name == "auto" else kind for kind in kinds]

    def _kind_of_codes(self, j):
        units = self._encoder.coding.kinds[j]
        if self._encoder.coding.hold_bits[j] and self._entries()[j] == "auto":
            return "binary"
        names = {kind: name for name, kind in UNITS_OF_COLUMNS.items()} | {Categorical: "nominal"}
        return names[units] if isinstance(units, type) and units in names else units

    @property
    def visible_names_(self):
        """Names of the columns of `components_`.

        A column of numbers has one, with its own name. A column of two categories has one, named
        by the second category, such as ``member=yes``. A column of three or more categories has
        one for each category, such as ``city=Rome``.
        """
        check_is_fitted(self, "components_")
        names = self._encoder.coding.names(self._input_names(), self._encoder)
        return np.array(names, dtype=object)

    def _as_table(self, V, generator=None, given=None):
        """Convert rows of the visible units to a table like the training data.

        The generator draws numbers from their bins, but those that are `given`.
        """
        if is_foreign(V):
            return V[:, : self._encoder.coding.n_numbers]
        codes = self._encoder.coding.collapse(V[:, : self._encoder.coding.n_numbers])
        return self._encoder.decode(codes, generator, self._given_numbers(given))

    def _free_energy_of_gaps(self, V, free_energy=None):
        """F of rows with missing cells, on the scale of the table; or as it is in the model.

        Continuous columns are standardised in the model. ln Z includes the volume of that scaling,
        so the sum over missing cells must include it, too. A row whose cells are all missing has
        probability 1, for any estimate of ln Z.
        """
        layout, missing = self._encoder.coding, np.isnan(V)
        if free_energy is None:
            free_energy = -self._distribution().log_sums(V)
        if layout.scale is not None:
            free_energy -= missing[:, layout.starts[:-1]] @ np.log(layout.scale)
        empty = missing.all(axis=1)
        if empty.any():
            free_energy[empty] = -self.log_partition_
        return free_energy

    # Likelihoods.

    @validate_arguments(
        LOG_PARTITION_CONSTRAINTS
        | {
            "method": [StrOptions({"auto", "exact", "ladder", "ais", "raise", "tap"})],
            "X": ["array-like", "sparse matrix", None],
        }
    )
    def log_partition(
        self,
        method="auto",
        *,
        n_chains=None,
        n_temperatures=None,
        temperature=1.0,
        tol=None,
        max_rounds=None,
        random_state=None,
        X=None,
    ):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ladder", "ais", "raise", "tap"}, default="auto"
            How ln Z is computed:

            - ``"exact"``: by enumerating the states of the smaller layer, of at most 26 binary
              units;
            - ``"ladder"``: from a ladder of models between independent units and this model.
              Chains of all models run in parallel and exchange states. ln Z is the sum of the
              differences between neighbours by Bennett's acceptance ratio [4]_. The ladder
              consists of the models saved during training, if the log-likelihood was measured
              (`track_likelihood`), and of models in between if neighbours exchange too few states.
              Half of the chains begin at what other chains of the model find far from the data;
            - ``"ais"``: by annealed importance sampling [1]_, starting at independent columns with
              the frequencies of the training data. The estimate of Z is unbiased; that of ln Z is
              too low on average. With a probability of at least 95 %, ln Z is greater than the
              estimate minus 3 nats, for any number of chains;
            - ``"raise"``: by chains that run in the opposite direction [2]_. It is meant to be used
              alongside AIS: it overestimates ln Z if the chains start at samples of the model. If
              they do not, for example because the model has probability mass far from the data, it
              may also be too low: it then bounds the likelihood of the distribution in which the
              annealing ends, not that of the model;
            - ``"tap"``: ln Σ exp(−F) over the free energies F of distinct TAP solutions [3]_. It is
              deterministic given the starts, and neither a bound nor unbiased. `trusted` is
              always False: it is a training objective, and training may have increased its error;
            - ``"auto"``: exact if the smaller layer has at most 20 units. Otherwise both the ladder
              and AIS are run, and the larger estimate is kept where they differ. With more than
              40,000 weights and no ladder saved in training, it is AIS, and chains in the opposite
              direction as a check.
        n_chains : int, default=None
            Number of independent chains; for the ladder, of chains for each model; for TAP, of
            starts. None means 100.
        n_temperatures : int or array-like of float, default=None
            Number of equal steps of the inverse temperature, or all its values, rising from 0 to
            1. None means 1,000.
        temperature : float, default=1.0
            T > 0: the model is P(x, h)^(1/T), with Z = Σ exp(-E(x, h) / T).
        tol : float, default=None
            Target standard error, in nats. The ladder runs until the target is reached, each chain
            has been renewed, and the two halves of the rounds agree; None means
            0.05, and 0.02 where that takes only a few seconds. AIS doubles its temperatures and
            chains, up to six times, until the target is reached and two runs agree; None means a
            single run.
        max_rounds : int, default=None
            Maximum number of rounds of the ladder. In each round, all chains make one transition
            and then exchange states. None means 1,000, or more where that takes only a few seconds.
            If the likelihood was measured during training, rounds beyond 400 take at most two
            fifths of the time of the training.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        X : array-like of shape (n_samples, n_features), default=None
            For ``"raise"``: the rows whose likelihood is to be bounded. The chains start at them;
            at most `n_chains` rows are used. None means the end states of an AIS run, drawn by
            their weights, as approximate samples of the model. It must be None in a deep Boltzmann
            machine and in a classifier.

            For ``"tap"``: the starts. None means the training rows that the estimator has kept, or
            else the end states of short Markov chains.

        Returns
        -------
        estimate : Bunch
            The estimate, with

            - `value`: ln Z in nats;
            - `std_err`: its standard error, by the delta method;
            - `low`, `high`: lower and upper bound. Each holds with a probability of 95 %, as far as
              the method can tell; infinite if the method gives no bound, but never by ``"auto"``;
            - `verdict`: a sentence on how reliable the estimate is, and `trusted`, a bool;
            - `ess`: effective number of chains;
            - `log_weights` of the chains, and `states`, their final states;
            - `method`.

            With TAP, `std_err` is NaN, `ess` is the number of distinct solutions, and
            `log_weights` are minus their free energies.

            With the ladder, `std_err` is that of the mean of `n_chains` independent simulations,
            `low` and `high` are three standard errors away, and `ess` is the number of states that
            moved from independent units to the model. It is trusted if all chains have left where
            they began or, after `max_rounds`, half of them have, and those that began far from the
            data as easily. There are also `acceptances` of exchanges between neighbours, and
            `log_partitions` and `log_partition_errors` of all models.

            With ``"auto"``, `low` and `high` contain the estimates of the ladder and of AIS. If the
            ladder is not to be trusted or AIS contradicts it, `low` is the largest lower bound, and
            `high` is 3 nats above both, which covers missed modes with less than 95 % of the mass.
            The same holds for AIS without a ladder, where `trusted` means that the chains in the
            opposite direction agree within half a nat.

        Warns
        -----
        UserWarning
            If the ends of ``"auto"`` are more than a nat apart, which the warning gives, if only a
            few chains contribute to the estimate, if AIS shows that ln Z is larger than
            the estimate of RAISE or of the ladder, if neighbours of the ladder do not exchange
            states, or if some of its chains never leave their starting points.
        ConvergenceWarning
            If TAP converges from no start.

        Notes
        -----
        `log_partition_`, which `score_samples` uses, is the estimate of ``method="auto"`` with a
        fixed seed. Other runs do not change it. If `low` of an AIS run is above it,
        `score_samples` warns that the scores are too high.

        With bits or categories, ln Z is at least the logarithm of the sum over the different
        states in which chains of the ladder have been. An estimate below that sum is raised to it.

        A ladder has at most 200 models beside those that training has saved. It settles in at most
        3,200 rounds, and is set up again up to four times if a mode appears late. A round costs
        about 5 `n_chains` multiplications for each weight of each model.

        References
        ----------
        .. [1] R. Salakhutdinov and I. Murray, "On the quantitative analysis of deep belief
           networks", ICML 2008.
        .. [2] Y. Burda, R. Grosse and R. Salakhutdinov, "Accurate and conservative estimates
           of MRF log-likelihood using reverse annealing", AISTATS 2015.
        .. [3] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala,
           "Deterministic and generalized framework for unsupervised learning with restricted
           Boltzmann machines", Physical Review X 8, 2018.
        .. [4] N. Béreux, A. Decelle, C. Furtlehner, L. Rosset and B. Seoane, "Fast training and
           sampling of restricted Boltzmann machines", arXiv:2405.15376, 2024.
        """
        check_is_fitted(self)
        distribution, layout = self._distribution(), self._encoder.coding
        model, base = distribution.tempered(temperature).model, distribution.base
        n_chains = n_chains or 100
        if method == "raise" and X is not None and len(model.visible) > layout.n_numbers:
            raise ValueError(
                "With method='raise', X must be None in a deep Boltzmann machine or a classifier: "
                "the chains cannot start at rows."
            )
        tracker, on_scale = self._training.tracker if temperature == 1 else None, layout.on_scale
        # The ladder of saved models of the training, and its multiplications, if they were counted.
        former, work = (None, np.inf) if tracker is None else (tracker.ladder, tracker.work)
        if method == "auto" and _enumeration.n_enumerated(model) <= _enumeration.EXACT_UNITS:
            method = "exact"
        if method == "exact":
            return on_scale(estimate_from_value(_enumeration.exact_log_partition(model)))
        X = None if X is None or method == "auto" else self._checked(X)
        rng = make_generator(random_state)
        stream, betas = Stream.from_generator(rng), temperature_ladder(n_temperatures)
        floor = self._cached("log_partition_floor", Bunch) if temperature == 1 else Bunch()
        climbs = method == "ladder" or (
            method == "auto"
            and (former is not None or n_chains * model.n_weights <= _climb.AFFORDABLE)
        )
        with Workers(self.n_jobs) as workers:
            if method == "tap":
                inference = self.get_params(deep=False).get("inference")
                V, kept = None if X is None else dense(X), self._training.seen.rows
                V = tap_starts(distribution, V, kept, outside_training(inference))
                of_starts = tap_log_partition(model, base, V, n_chains, inference, stream, workers)
                return on_scale(of_starts)
            if climbs:
                ladder = _climb.ladder_to(model, base, former, n_chains, stream)
                estimate = other = on_scale(
                    _climb.ladder_estimate(ladder, tol, max_rounds, workers, work)
                )
            if method != "ladder":
                estimate = forward = on_scale(
                    _annealing.annealed_within(tol, model, base, betas, n_chains, stream, workers)
                )
            compare_with_floor(estimate, floor)
            if method == "raise" or (method == "auto" and not climbs):
                n_rows = 1 if X is None else min(n_chains, X.shape[0])
                if X is None:
                    starts = _annealing.resampled(forward, rng)
                else:
                    starts = dense(taken(X, np.arange(n_chains) % n_rows))
                estimate = other = on_scale(
                    _annealing.reverse_importance_sampling(
                        model, base, betas, starts, stream, workers, n_rows
                    )
                )
        if method == "raise":
            estimate = _annealing.bracketed(forward, other, from_model=X is None)
        if method == "auto":
            estimate = combined(other, forward)
        if not estimate.trusted or (method == "auto" and has_wide_ends(estimate)):
            warn(estimate.verdict)
        return estimate

    # New rows, and missing values.

    @validate_arguments(MACHINE_SAMPLE_CONSTRAINTS)
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        where=None,
        temperature=1.0,
        n_steps=1000,
        n_temperatures=None,
        init=None,
    ):
        """Draw samples from the model, each by a Markov chain of its own.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by label or number, as in ``{"city": "Rome"}``. Samples are then
            drawn from the conditional distribution of the other columns: exactly if these, or the
            hidden units, have no more joint states than 2**23 divided by the number of all units,
            and otherwise by annealed chains, which are resampled by their weights and continue with
            the given columns clamped. With `init` or `n_temperatures`, plain chains are used.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.
        temperature : float, default=1.0
            Temperature T > 0. All weights and biases are divided by T, so that samples are from
            the distribution ∝ p(v, h)^(1/T) of visible and hidden units together. Below 1,
            probable rows become more frequent, and chains mix more slowly; then use
            `n_temperatures`, too.
        n_steps : int, default=1000
            Number of transitions of each Markov chain.
        n_temperatures : int, default=None
            Number of temperatures of parallel tempering. Each chain exchanges states with chains at
            higher temperatures, up to independent units. The time is proportional to
            `n_temperatures`, but samples reach modes that a single chain would not. None and 1 mean
            no tempering.
        init : array-like of shape (n_rows, n_features) or "ladder", default=None
            Rows at which the chains start. None means independent draws of each column, with the
            means of the training data. ``"ladder"`` runs chains of a ladder of models, from
            independent units to this model, that exchange states, as ``log_partition("ladder")``
            does; samples then come from all modes in the right proportions. `n_steps` then counts
            the transitions of all models of the ladder together.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Values of the columns, in a table like the training data: of the same container type,
            with the same names, dtypes and categories.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.
        """
        return self._sample_where(
            where, n_samples, random_state, given, None, temperature=temperature, n_steps=n_steps,
            n_temperatures=n_temperatures or 1, init=init,
        )  # fmt: skip

    def _sample_where(self, where, n_samples, random_state, given, labels, **options):
        """`_sample`, of the rows that obey; then all labels are equal."""
        check_is_fitted(self)
        is_elsewhere = where is not None and is_foreign(self.components_)
        here = self.move_to(np) if is_elsewhere else self

        def draw(n, generator):
            own = labels if where is None or labels is None else np.repeat(labels[:1], n, axis=0)
            return here._sample(n, generator, given, own, **options)

        rows = self._rows_where(draw, n_samples, random_state, where, itemsize=4)
        return like(self.components_, rows) if is_elsewhere else rows

    def _sample(self, n_samples, random_state, given, labels, *, init, n_temperatures, **options):
        """`sample`; of a classifier, given a label for each row, one-hot, or None."""
        distribution = self._distribution()
        model = distribution.model
        free = np.arange(len(model.visible)) < self._encoder.coding.n_numbers
        is_exact = labels is not None and init is None and has_few_states(model, free)
        if is_foreign(model.weights) and (given or n_temperatures > 1 or is_exact):
            options |= {"init": as_numpy(init) if is_foreign(init) else init}
            rows = self.move_to(np)._sample(
                n_samples, random_state, given, labels, n_temperatures=n_temperatures, **options
            )
            return like(self.components_, rows)
        rng, values, starts = make_generator(random_state), None, None
        if given or labels is not None:
            row = np.full(free.sum(), np.nan)
            if given:
                row = given_row(type(self).__name__, self._encoder, *self._given(given))
            values = np.tile(row, (n_samples, 1))
            values = values if labels is None else np.hstack([values, labels])
        if isinstance(init, str):
            if values is not None or options["temperature"] != 1 or n_temperatures != 1:
                raise ValueError(
                    "init='ladder' cannot be combined with `given`, with a temperature other than "
                    "1 or with n_temperatures > 1. Use n_temperatures without init."
                )
            former = getattr(self._training.tracker, "ladder", None)
            V = distribution.sample_by_ladder(former, n_samples, options["n_steps"], rng)
        else:
            if init is not None:
                starts = self._checked(init)
                starts = dense(taken(starts, np.arange(n_samples) % starts.shape[0]))
            options["n_temperatures"] = n_temperatures
            V = distribution.sample(n_samples, rng, values, starts, **options)
        return self._as_table(V, rng, given)

    def _impute(self, X, how, n_steps, rng):
        V = self._validated(X, allow_nan=True, clip=True)
        filled = self._distribution().complete(V, how, rng, n_steps)
        if is_foreign(filled):
            return filled
        return filled_table(self._encoder, X, filled, np.isnan(V), how, rng)

    predict_column_proba = by_processor(Density.predict_column_proba)
    entropy = by_processor(Density.entropy)

    def _column_probabilities(self, X, j, n_steps, seed):
        units = self._layered().layers[0]
        if not np.isfinite(units.state_counts[j]):
            domain = self._encoder.coding.domain(j)
            raise ValueError(
                f"{self._column(j)} takes {domain}: a continuous column has no "
                "probabilities of single values. Use `impute` for its mean or for samples."
            )
        X = np.array(self._coded(X, allow_nan=True))
        X[:, j] = np.nan
        V = numbers_of(type(self).__name__, self._encoder, X, clip=True)
        with progress_bar("rows", None, self.verbose) as bar:
            return self._distribution().column_probabilities(V, j, n_steps, seed, bar)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        entries = self.columns if isinstance(self.columns, (dict, list)) else [self.columns]
        entries = entries.values() if isinstance(entries, dict) else entries
        # Whether no column may have negative values.
        tags.input_tags.positive_only = all(
            np.min(entry.bounds[0]) >= 0
            if isinstance(entry, UnitType)
            else isinstance(entry, (str, type)) and entry in NOT_NEGATIVE
            for entry in entries
        )
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
