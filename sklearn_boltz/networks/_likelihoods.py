"""Figures of a fitted network: conditional means, likelihoods, ln Z, marginals."""

from numbers import Integral

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._discrete import DiscreteDensity
from sklearn_boltz._methods import (
    LOG_PARTITION_CONSTRAINTS,
    fingerprint,
    named,
    validate_arguments,
)
from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.location._joint import joint_scores
from sklearn_boltz.networks.location._model import LocationModel, MixedRows
from sklearn_boltz.networks.model import _model
from sklearn_boltz.networks.model._gauge import average_product_correction, frobenius_scores
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.model._spin_model import SpinModel, term_arrays, terms_of, to_spins
from sklearn_boltz.networks.sampling._figures import MAX_ROUNDS, TOL
from sklearn_boltz.networks.sampling._sampling import (
    annealed_log_partition,
    gibbs_sample,
    spurious_message,
    strange_columns,
)
from sklearn_boltz.networks.sampling._tempering import N_CHAINS, Path, ladder_log_partition
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.partition._estimates import (
    combined,
    compare_with_floor,
    estimate_from_value,
    temperature_ladder,
)
from sklearn_boltz.tables._frames import frame_or_bunch
from sklearn_boltz.tables._numbers import normal_scores
from sklearn_boltz.tables._values import as_objects

# Nats of standard error, above which an estimate of the normalising constant is not trusted.
DOUBTFUL = 0.2
# Chains, and their transitions, that then tell whether the model has mass far from the data.
N_COMPARED, N_STEPS = 200, 200
# Samples whose means are the expectations of terms where nothing is enumerated.
N_EXPECTED = 2000


class Likelihoods(DiscreteDensity):
    """Methods of an estimator with `coupling_`, `intercept_` and an `_encoder`."""

    def _parameters(self):
        terms, weights, potential = self._beyond_pairs()
        return [self.coupling_, self.intercept_, *term_arrays(terms, weights), potential]

    def _beyond_pairs(self):
        """Terms of three columns and more, their weights, and a potential of the number of ones."""
        nothing = [], np.zeros(0), np.zeros(self.n_features_in_ + 1)
        return *(getattr(self, name) for name in self._further), *nothing[len(self._further) :]

    def _model(self):
        """The distribution."""
        if self._encoder.coding.is_binary:
            pairs, further = (self.coupling_, self.intercept_), self._beyond_pairs()
            return SpinModel(*pairs, *further, constant=self._constant, base=self._base)
        return PottsModel(self.coupling_, self.intercept_, self.n_values_, self._base)

    # What the energies of given couplings of bits are less than those of spins.
    _constant = 0.0

    # Of the normal scores of numbers, given the categories; None where all numbers are codes.
    _gaussians = None

    def _distribution(self):
        if self._gaussians is None:
            return self._model()
        scored = np.flatnonzero(self._encoder.is_scored)
        return LocationModel(self._model().potts, self._gaussians, scored)

    def _rows_of(self, X, cells):
        codes = self._encoder.coding.codes(cells, self._refuse_codes)
        if self._gaussians is None:
            return codes
        codes[:, self.n_values_ == 1] = 0  # which are known, also where the number is not
        return MixedRows(codes, *normal_scores(self._encoder, X))

    def _warn_of_scores(self):
        """Warn that a figure is that of the categories alone, summed over normal scores."""
        scored = np.flatnonzero(self._encoder.is_scored)
        if len(scored):
            warn(
                f"{type(self).__name__}: {self._have(scored)} normal scores, and this is about "
                "the network of the categories alone. Set columns='binned' for a network of all, "
                "or see statistics.inference and `interaction_scores`."
            )

    def _codes(self, X):
        """The codes of the cells, -1 for a missing one."""
        check_is_fitted(self)
        return self._encoder.coding.codes(self._known_cells(X), self._refuse_codes)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), default=None
            Names of the variables; None for those seen in `fit`, or ``x0``, ``x1``, ...

        Returns
        -------
        names : ndarray of str
            The names of the variables, if all are binary. Otherwise ``name=value`` for each value
            of each variable, which is also the order of `coupling_` and `intercept_`.
        """
        check_is_fitted(self)
        names = self._input_names(input_features)
        if self._encoder.coding.is_binary:
            return as_objects(list(map(str, names)))
        codes = enumerate(map(np.arange, self.n_values_))
        labels = [self._encoder.labels(j, values) for j, values in codes]
        pairs = zip(names, labels, strict=True)
        return np.array([f"{name}={a}" for name, values in pairs for a in values], dtype=object)

    def transform(self, X):
        """Return the conditional expectation of each variable given the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing cell. Missing cells are summed out.

        Returns
        -------
        expectation : ndarray of shape (n_samples, n_features) or (n_samples, Σ n_values)
            For binary variables, in the coding of the training data: tanh(M x + b), from -1 to 1,
            for -1 and 1, and the probabilities of a 1 for 0 and 1. If any variable has more
            values, the probabilities of all values of all variables, one after another. The type is
            float32 for float32 data, and otherwise float64.
        """
        check_is_fitted(self)
        cells, model = self._known_cells(X), self._distribution()
        rows = self._rows_of(X, cells)
        if self._gaussians is None:
            expectation = model.expectation(rows)
            if self._encoder.coding.is_binary and self._encoder.coding.low == 0:
                expectation = (1 + expectation) / 2
        else:
            p = [model.column_probabilities(rows, j)[0] for j in range(self.n_features_in_)]
            first = int(self._encoder.coding.is_binary)
            expectation = np.hstack([own[:, first:] for own in p])
        return expectation.astype(np.float32 if cells.dtype == np.float32 else np.float64)

    def _complete_codes(self, X):
        """Codes of rows that must be complete."""
        codes = self._codes(X)
        codes[:, self._encoder.is_empty] = 0  # a value that says nothing
        self._refuse_gaps(codes < 0)
        return codes

    @validate_arguments(
        LOG_PARTITION_CONSTRAINTS | {"method": [StrOptions({"auto", "exact", "ais", "ladder"})]}
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
    ):
        """Compute or estimate the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact", "ladder", "ais"}, default="auto"
            ``"exact"`` enumerates the states of connected variables, 2**26 at most.

            ``"ladder"`` runs Gibbs chains at several inverse temperatures, from independent columns
            with the rates of the model to the model itself. The chains exchange states (parallel
            tempering). ln Z is the sum of Bennett's acceptance ratios [1]_ of neighbours.

            ``"ais"`` is annealed importance sampling from the base rates of the training data. The
            estimate of Z is unbiased, and that of ln Z is too low on average. With a probability of
            at least 95 %, ln Z is greater than the estimate minus 3 nats, for any number of chains.

            ``"auto"`` is exact up to 2**26 joint states of connected variables, and beyond that the
            ladder; AIS as well if the ladder is not to be trusted.
        n_chains : int, default=None
            Number of independent chains; for the ladder, at each temperature, and 2 or more. None
            means 100 for the ladder and 500 for AIS.
        n_temperatures : int or array-like of float, default=None
            Number of equal steps of the inverse temperature, or all its values from 0 up to 1.
            None chooses temperatures for the ladder so that enough exchanges are accepted, and
            means 1,000 for AIS.
        temperature : float, default=1.0
            T > 0: the model is P(x)^(1/T), with Z = Σ_x exp(-E(x) / T).
        tol : float, default=None
            The ladder ends when the standard error, in nats, is at most this, each chain has been
            renewed, and two halves of the rounds agree. None means 0.05.
        max_rounds : int, default=None
            Maximum number of rounds of the ladder. A round is a sweep at every temperature, and
            exchanges. None means 5,000.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.

        Returns
        -------
        estimate : Bunch
            `value`, in nats; `std_err`, its standard error by the delta method; `low` and `high`,
            bounds of ln Z that hold with a probability of 95 % each (for the ladder, three standard
            errors away; infinite where the method gives no bound, but never by ``"auto"``, where
            `high` is 3 nats above both if the ladder is not to be trusted); `trusted` and
            `verdict`, whether the estimate can be trusted, and why; `ess`, the effective number of
            chains (for the ladder, the number of states that moved from independent columns to the
            model); `log_weights` of the chains; `states` where they ended, in the coding of the
            training data; and `method`. The ladder also has `betas`, the inverse temperatures;
            `log_partitions` at these, and `log_partition_errors`; `acceptances` of exchanges
            between neighbours; and `n_rounds`.

        Raises
        ------
        ValueError
            If ``method="exact"`` and connected variables have more than 2**26 joint states.

        Warns
        -----
        UserWarning
            If the estimate is not to be trusted, or if its states show that the model has mass
            far from the data, see Notes of the class.

        Notes
        -----
        `log_partition_`, which `score_samples` uses, is the estimate of ``method="auto"`` with a
        fixed seed. Other runs do not change it. If `low` of an AIS run is above it,
        `score_samples` warns that the scores are too high.

        The standard error of the ladder is that of the mean of `n_chains` independent
        simulations, since states are exchanged between chains of the same number only. So it
        includes correlations in time and between temperatures. Half of the chains begin at
        independent columns, half where plain Gibbs chains of the model from several starts have
        ended. The standard error does not include modes that no chain has found. If `low` of an
        earlier AIS run is above `high`, the verdict says so.

        References
        ----------
        .. [1] C. H. Bennett, "Efficient estimation of free energy differences from Monte Carlo
           data", Journal of Computational Physics 22, 245–268, 1976.
        """
        check_is_fitted(self)
        if method == "exact" and not self._model().is_enumerable():
            self._refuse_enumeration("Use method='ladder'.")
        with named(self):
            self._distribution().tempered(temperature)  # where numbers have scores, 1 alone
        model, generator = self._model().tempered(temperature), make_generator(random_state)
        if method in ("auto", "exact") and model.is_enumerable():
            exact = self._cached(
                "exact_log_partition", model.log_partition, np.array([temperature])
            )
            return estimate_from_value(exact)
        if method == "ais":
            betas = temperature_ladder(n_temperatures)
            estimate = annealed_log_partition(model, model.base, betas, n_chains or 500, generator)
        elif n_chains == 1:
            raise ValueError(
                f"{type(self).__name__}.log_partition: n_chains must be 2 or more for the ladder: "
                "how far chains differ is the standard error."
            )
        else:
            n_chains, path = n_chains or N_CHAINS, Path.from_model(model, model.base, generator)
            estimate = ladder_log_partition(
                path, n_temperatures, n_chains, tol or TOL, max_rounds or MAX_ROUNDS, generator
            )
            if method == "auto" and not estimate.trusted:
                betas = temperature_ladder(1000)
                annealed = annealed_log_partition(model, model.base, betas, n_chains, generator)
                estimate = combined(estimate, annealed)
        if temperature == 1:
            compare_with_floor(estimate, self._cached("log_partition_floor", Bunch))
            self._warn_of_partition(estimate)
        elif not estimate.trusted:
            warn(estimate.verdict)
        estimate.states = self._encoder.coding.decode(estimate.states).astype(self._sample_dtype)
        return estimate

    def _warn_of_partition(self, estimate):
        """Warn if the estimate of ln Z is uncertain, or if the model has mass far from the data."""
        if estimate.method == "ladder":
            if not estimate.trusted or estimate.std_err > DOUBTFUL:
                warn(estimate.verdict)
            n = len(estimate.states)
            self._warn_if_far_from_data("In samples of the model,", estimate.states, None, n)
            return
        if not estimate.trusted and estimate.std_err <= DOUBTFUL:
            warn(estimate.verdict)
        where = "In the weighted states from which log_partition_ is estimated,"
        weights = np.exp(estimate.log_weights - estimate.log_weights.max())
        codes, n = estimate.states, estimate.ess
        if estimate.std_err > DOUBTFUL:
            warn(
                f"The estimate of log_partition_ is uncertain by at least {estimate.std_err:.2g} "
                "nats: the model has modes that chains rarely find, perhaps far from the data."
            )
            # A few states have nearly all the weight, too few to compare. Plain chains have more.
            where, n = "In samples of the model,", N_COMPARED
            generator = make_generator(0)
            codes, weights = gibbs_sample(self._model(), n, N_STEPS, generator), None
        self._warn_if_far_from_data(where, codes, weights, n)

    def _warn_if_far_from_data(self, where, codes, weights, n):
        """Compare the rates of values in n states of the model with those of the training data.

        Parameters that the user has set have nothing to do with these.
        """
        if fingerprint(self._parameters()) != self._estimate:
            return
        model = self._model()
        rates, expected = model.rates(codes, weights), model.rates_of_independent(self._base)
        columns = strange_columns(rates, expected, n)
        if len(columns):
            message = spurious_message(where, rates, expected, columns, self._value_label)
            warn(message)

    def _value_label(self, place):
        """How messages name what is counted at a place of `rates`."""
        j, code = place, 1
        if not self._encoder.coding.is_binary:
            ends = np.cumsum(self.n_values_)
            j = int(np.searchsorted(ends, place, side="right"))
            code = place - ends[j] + self.n_values_[j]
        values = self._encoder.labels(j, self._encoder.coding.values(j))
        return f"{self._column(j)} is {values[code]}"

    def _refuse_enumeration(self, remedy):
        limit = "2**26 joint states"
        if self._encoder.coding.is_binary:
            limit = f"{int(np.log2(_model.MAX_STATES))} variables"
        raise ValueError(
            f"{type(self).__name__}: the model connects more than {limit}, too many to enumerate. "
            f"{remedy}"
        )

    def interactions(self):
        """Return the terms of one, two and more binary variables as a table, the strongest first.

        Returns
        -------
        table : pandas.DataFrame, or Bunch of arrays where pandas is not installed
            A row for each weight that is not 0. Its columns are ``term`` (names of the variables),
            ``order`` (number of variables), ``weight`` (b_j, m_jk or θ_t, with variables of -1
            and 1) and ``expectation``, that of the product of the variables under the model. The
            expectation is exact up to 26 connected variables; otherwise it is the mean over 2,000
            samples with a fixed seed.

        Raises
        ------
        ValueError
            If some variable has more than two values; see `coupling_` then.

        See Also
        --------
        sklearn_boltz.statistics.inference : Estimates without the default penalty, with standard
            errors and tests.
        FSLLDensity.interactions : The same table. There, a variable is 1 for its first value and -1
            for its second, so that weights of odd orders have the opposite sign.

        Examples
        --------
        The third column is the parity of the first two.

        >>> import numpy as np
        >>> from sklearn_boltz import SparseFVBM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.choice([-1, 1], size=(1000, 4))
        >>> X[:, 2] = X[:, 0] * X[:, 1] * rng.choice([-1, 1], size=1000, p=[0.2, 0.8])
        >>> table = SparseFVBM(max_order=3).fit(X).interactions()
        >>> table["term"][0], int(table["order"][0]), round(float(table["weight"][0]), 1)
        ('x0*x1*x2', 3, 0.7)
        """
        check_is_fitted(self)
        if not self._encoder.coding.is_binary:
            j = int(self.n_values_.argmax())
            raise ValueError(
                f"{type(self).__name__}.interactions: {self._column(j)} has "
                f"{self.n_values_[j]} values. `coupling_` has a block for each pair of "
                "variables, and `interaction_scores` a number."
            )
        pairs = np.argwhere(np.triu(self.coupling_))
        terms = [(j,) for j in range(self.n_features_in_)]
        further, further_weights, _ = self._beyond_pairs()
        terms += [*map(tuple, pairs.tolist()), *further]
        weights = np.concatenate([self.intercept_, self.coupling_[tuple(pairs.T)], further_weights])
        order = np.argsort(-np.abs(weights), kind="stable")
        order = order[weights[order] != 0]
        names, terms = self._input_names(), [terms[place] for place in order]
        columns = {
            "term": np.array(["*".join(str(names[j]) for j in t) for t in terms], dtype=object),
            "order": np.array([len(term) for term in terms]),
            "weight": weights[order],
            "expectation": self._cached("expectations", lambda: self._expectations(terms)),
        }
        return frame_or_bunch(columns)

    def _expectations(self, terms):
        """Means under the model of products of variables of -1 and 1."""
        model = self._model()
        if model.is_enumerable():
            return model.log_linear[0].expectation(terms_of(terms, self.n_features_in_))
        spins = to_spins(self._codes(self.sample(N_EXPECTED, random_state=0)))
        return np.array([spins[:, term].prod(axis=1).mean() for term in terms])

    @validate_arguments({"apc": ["boolean"], "ignore": [Integral, str, "array-like", None]})
    def interaction_scores(self, X=None, *, apc=True, ignore=None):
        """Return a number for each pair of variables: how strongly they interact.

        Parameters
        ----------
        X : Ignored
            Present for API consistency: the scores follow from the couplings.
        apc : bool, default=True
            Whether to apply the average product correction: from S_ij, the product of the means of
            both variables over all others is subtracted, divided by the mean over all pairs.
        ignore : int, str or array-like of int of shape (n_features,), default=None
            A value to leave out, for example that of a gap in a sequence: its number, where -1
            leaves out none, or as in ``ignore="-"`` its name, in the columns that have it.

        Returns
        -------
        scores : ndarray of float64 of shape (n_features, n_features)
            The Frobenius norms of the blocks of the coupling in the zero-sum gauge, corrected;
            symmetric, with a diagonal of 0. For two binary variables, the norm is 2 abs(m_jk).

            Where numbers have normal scores, the blocks are those of
            :func:`~sklearn_boltz.statistics.joint_network`: each pair given all other columns,
            those of numbers included. A number counts like a binary variable of -1 and 1, so
            that the norm of two numbers is 2 abs(r), with r their partial correlation.

        Raises
        ------
        ValueError
            If `ignore` is a value of no column, or is given where numbers have normal scores.
        """
        check_is_fitted(self)
        if self._gaussians is None:
            ignore = self._numbers_of_value(ignore) if isinstance(ignore, str) else ignore
            model = self._model().potts
            scores = frobenius_scores(model.coupling, model.n_values, ignore)
        elif ignore is None:
            scores = joint_scores(self._joint_network()[0], self._layout())
        else:
            raise ValueError(
                f"{type(self).__name__}.interaction_scores: ignore={ignore!r} is for tables "
                "without normal scores of numbers. Leave it out, or set columns='binned'."
            )
        return average_product_correction(scores) if apc else scores

    def _numbers_of_value(self, value):
        """The number of a string among the values of each column, -1 where it is none of them."""
        found = np.full(self.n_features_in_, -1)
        for j, values in enumerate(self.categories_):
            if values is not None and value in list(values):
                found[j] = list(values).index(value)
        if (found < 0).all():
            raise ValueError(
                f"{type(self).__name__}.interaction_scores: ignore={value!r} is not a value "
                "of any column. Give one of `categories_`, or the number of a value."
            )
        return found
