"""FSLLDensity: the full-span log-linear model."""

import math
from functools import partial
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
)
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._discrete import DiscreteDensity
from sklearn_boltz._methods import unchanged_on_error
from sklearn_boltz._new_values import recoded, take_new_values
from sklearn_boltz.callbacks import iterations, with_callbacks
from sklearn_boltz.loglinear._basis import StateSpace
from sklearn_boltz.loglinear._distribution import LogLinearModel
from sklearn_boltz.loglinear._fit import CountedRows, Settings, independent_groups, learn
from sklearn_boltz.loglinear._size import check_size
from sklearn_boltz.missing._completion import distinct_incomplete, informative
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.tables._batches import as_batches, summarise
from sklearn_boltz.tables._frames import frame_or_bunch
from sklearn_boltz.tables._kinds import NAMES, Need
from sklearn_boltz.tables._unseen import Unseen
from sklearn_boltz.tables._weights import Rule, checked_weights, row_weights

# Binary columns that have as many joint states as tables of numbers in bins are to have.
BITS = 16


class FSLLDensity(DiscreteDensity):
    """Full-span log-linear model of discrete data.

    A Boltzmann machine without hidden units and with interactions of any order. Each term of the
    energy is a product of ±1-valued functions of single variables. The algorithm searches among
    *all* products of all orders and adds terms one at a time, by minimum description length. No
    hyperparameter has to be set. The result is an exact, normalised probability of every joint
    state, a readable list of interactions, and ±1 features.

    The algorithm stores tables with one entry for each joint state. About 26 binary variables fit
    in the memory of a laptop.

    Parameters
    ----------
    columns : str, list or dict, default="auto"
        The kind of each column: ``"binary"``, ``"nominal"``, ``"ordinal"``, ``"count"``,
        ``"number"``, ``"binned"`` or the list of its values; see :ref:`kinds`. A string is the kind
        of all columns. A dict names some, as in ``{"age": "number", "city": ["Oslo", "Rome"]}``, by
        name or number, and a list has an entry for each. ``"auto"`` looks at the table.

    alpha : float, default=1.0
        Factor of the description length of the terms. 1 is the cost of the paper; smaller values
        give more terms.

    max_order : int, default=None
        Maximum number of variables in a term. None means no limit.

    max_basis : int, default=None
        Maximum number of terms. None means no limit. With a limit, the terms of single columns are
        charged like all others, so that the strongest come first.

    solver : {"newton", "greedy"}, default="newton"
        ``"greedy"`` is the algorithm of the paper, which changes one weight at a time.
        ``"newton"`` makes the same moves and also refits the weights of all terms jointly as their
        number grows. If no single term lowers the cost by itself, it also tries terms that lower
        it after a joint refit. It reaches a lower cost with fewer terms. It starts with the
        distributions of single columns: see Notes.

    tol : float, default=1e-4
        The search ends when no move lowers the cost by more than this, in nats. With missing
        cells, the rounds of EM end when one of them lowers the cost by less than a hundredth of
        this.

    max_iter : int, default=None
        Maximum number of moves. None means no limit: each move lowers the cost by more than `tol`,
        so the search always ends.

    max_states : int, default=2**30
        Data with more joint states than this raise an error. A constant column does not multiply
        the number of joint states, because it has a table of its own.

    dtype : {float64, float32}, default=float64
        Data type of the two tables with one entry for each joint state. float32 halves memory and
        time; weights then have about six correct digits.

    n_jobs : int, default=None
        Number of threads; None means 1. The result does not depend on it.

    unseen : {"smooth", "error", "missing"}, default="smooth"
        How to treat values after `fit` that did not occur in `fit`: see :ref:`unseen`.
        ``"smooth"`` gives them a small probability in `score_samples` and treats the cells as
        missing elsewhere; ``"missing"`` does so in `score_samples`, too; ``"error"`` raises an
        error. In an array of numbers, other values are always an error.

    verbose : int, default=0
        If positive, print the kinds of the columns and a line at the end of a fit; if 1, show a
        bar of the moves after two seconds; if greater, print a line for each.
        `predict_column_proba` has a bar, too.

    Attributes
    ----------
    basis_ : ndarray of int64 of shape (n_basis, n_features)
        Index vectors y of the terms. Term k depends on variable i if ``basis_[k, i]`` is not 0.

    theta_ : ndarray of float64 of shape (n_basis,)
        Weights of the terms. The basis function of a binary variable is 1 for the value 0 and -1
        for the value 1. A positive weight of ``x0*x1`` thus means that the two variables tend to
        be equal, and a positive weight of ``x0`` alone that it tends to be 0.

    log_partition_ : float
        Logarithm of the normalising constant, in nats.

    n_values_ : ndarray of int64 of shape (n_features,)
        Number of values of each variable.

    cost_ : float
        Kullback–Leibler divergence from the data to the model, in nats, plus the description
        length of the terms per sample (eq. 2.5), without those of single columns that are free
        (see Notes). With missing cells, the divergence is that of the observed cells: it is
        computed for each pattern of missing cells and weighted by the number of its rows.

    cost_path_ : ndarray of float64 of shape (`n_iter_` + 1,)
        The cost without terms, and after each move or joint refit. It never increases, except by
        rounding. With missing cells, the entries within a round of EM are upper bounds; if rows
        are completed by random draws (see Notes), the cost may increase.

    n_iter_ : int
        Number of moves and joint refits.

    converged_ : bool
        Whether the search ended because no move lowered the cost by more than `tol` and, with
        missing cells, EM had converged. If rows are completed by random draws, the end of all
        rounds counts as convergence of EM.

    history_ : dict of ndarray of shape (`n_iter_`,)
        ``"cost"``, the number of terms ``"n_basis"`` and ``"seconds"`` of each move or refit.

    columns_ : dict
        The kind of each column, by label or number, as `columns` calls it: declared, or found.

    categories_ : list of length `n_features_in_`
        For each column, its values in the order of their codes 0, 1, 2, ...: an array, or None for
        a column of numbers.

    n_features_in_ : int
        Number of variables.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the variables, if `X` had names.

    See Also
    --------
    FVBMPseudoLikelihood : Pairs of variables only; for tables with more columns.
    sklearn.mixture.GaussianMixture : Density model of real-valued data.
    sklearn.neural_network.BernoulliRBM : Boltzmann machine with hidden units.

    Notes
    -----
    If the number of values of a variable is a power of two, its basis functions are the rows of a
    Walsh–Hadamard matrix. Otherwise, they are the constant and the ±1 indicators of all values
    except the first (eq. 2.2 and 2.3 of [1]_).

    In a column with many rare values, none of these is worth the description length of a term by
    itself. They would share the probability of the first value, however frequent that is. With
    ``solver="newton"``, each column with 3 to 512 values therefore starts with all terms of its own
    distribution, free of charge, if each gains at least `alpha` nats on average (Akaike's
    criterion). Columns with two values, and ``solver="greedy"``, are as in the paper.

    One observation, spread evenly over all joint states, is added to the data. This keeps every
    weight finite, even if some combinations never occur (a constant column, two equal columns, two
    values that never occur together).

    In `sample_weight`, whole numbers are counts: a row of weight 2 is the same as two rows. Other
    numbers are scaled to sum to their effective number of rows (:ref:`weights`).

    NaN is a missing cell. The fit maximises the likelihood of the observed cells minus the
    description length. This is correct if cells are missing at random: whether a cell is missing
    may depend on observed cells of its row, but not on the missing value itself. The algorithm is
    EM: rows are completed in all possible ways, weighted by the model, and the search continues
    from the current terms, until nothing changes. A row with more than 4,096 completions is
    completed by 20 random draws, new ones in each of 20 rounds. Their seed is fixed, so that each
    fit gives the same result. With ``solver="newton"``, and if no row is completed by draws, terms
    suggested by a score test on the observed cells are tried as well. A row without an observed
    cell is ignored. Nothing is learned about a column without one: its `n_values_` is 1.

    The search is deterministic, so there is no `random_state`. It always starts without terms, so
    there is no `warm_start`; `partial_fit` adds rows and searches again. An interrupted fit leaves
    the estimator unchanged.

    References
    ----------
    .. [1] K. Takabatake and S. Akaho, "Full-Span Log-Linear Model and Fast Learning
       Algorithm", Neural Computation 34(6), 1398–1424, 2022.
       https://doi.org/10.1162/neco_a_01496

    Examples
    --------
    The third column is the parity of the first two, and the fourth is noise.

    >>> import numpy as np
    >>> from sklearn_boltz import FSLLDensity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(500, 4))
    >>> X[:, 2] = X[:, 0] ^ X[:, 1]
    >>> model = FSLLDensity().fit(X)
    >>> model.get_feature_names_out()
    array(['x0*x1*x2'], dtype=object)
    >>> round(model.score(X), 2)
    -2.08
    """

    _need = Need(codes=True, bins=True, n_bits=BITS)
    _grows = True
    _parameter_constraints = {
        "columns": [StrOptions(set(NAMES)), list, dict, tuple, range],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_order": [Interval(Integral, 0, None, closed="left"), None],
        "max_basis": [Interval(Integral, 0, None, closed="left"), None],
        "solver": [StrOptions({"newton", "greedy"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left"), None],
        "max_states": [Interval(Integral, 2, None, closed="left")],
        "dtype": [Options(type, {np.float64, np.float32}), StrOptions({"float64", "float32"})],
        "n_jobs": [Integral, None],
        "unseen": [StrOptions({"smooth", "error", "missing"})],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        columns="auto",
        alpha=1.0,
        max_order=None,
        max_basis=None,
        solver="newton",
        tol=1e-4,
        max_iter=None,
        max_states=2**30,
        dtype=np.float64,
        n_jobs=None,
        unseen="smooth",
        verbose=0,
    ):
        self.columns = columns
        self.alpha = alpha
        self.max_order = max_order
        self.max_basis = max_basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_states = max_states
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.unseen = unseen
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn the terms and their weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or batches
            Strings, booleans, levels and integers 0, 1, 2, ...; other numbers and dates are put
            into bins. See :ref:`tables`. NaN, None and pandas.NA are missing cells.
            :class:`~sklearn_boltz.batches.Batches`, memory maps and Dask collections are read
            once, or twice if they hold more than codes; only the distinct rows and their counts
            are kept in memory.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`. It cannot be used with batches.

        Returns
        -------
        self : FSLLDensity
            The fitted estimator.

        Raises
        ------
        ValueError
            If a value is not in the domain of its column, if all cells are missing, if there are
            more than `max_states` joint states, or if the two tables of all joint states do not fit
            into the available memory.
        """
        with unchanged_on_error(self):
            counts, self._rule = self._counts(X, sample_weight, reset=True)
            return self._learn(X, y, counts)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to those seen before, and fit the model to all of them.

        The result is the same as that of `fit` on all rows at once, if these have the same bins of
        numbers as the rows of the first call. New strings and levels are learned. Between calls,
        only the distinct rows and their counts are kept. Weights that are not counts are scaled
        anew, with those of all calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or batches
            More rows.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; None for once each. Whole numbers are counts, others
            relative: :ref:`weights`. It cannot be used with batches.

        Returns
        -------
        self : FSLLDensity
            The fitted estimator.

        Raises
        ------
        ValueError
            As `fit` does, and with ``unseen="error"`` if a value did not occur in earlier calls.

        Warns
        -----
        UserWarning
            If a value did not occur in earlier calls and counts as missing: with
            ``unseen="missing"``, or where the order of the values of a column is declared.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "basis_")
            places = {} if first else take_new_values(self, X, sample_weight)
            counts, rule = self._counts(X, sample_weight, reset=first)
            if not first:
                rule, *weights = self._rule.together(rule, self._weights, counts.weights)
                n_values = np.maximum(counts.n_values, self.n_values_)
                rows = np.concatenate([recoded(self._rows, places), counts.rows])
                counts = CountedRows(counts.dtype, n_values, rows, np.concatenate(weights))
            self._rule = rule
            return self._learn(X, y, counts)

    def _learn(self, X, y, counts):
        """Search for the terms, and set all fitted attributes at once."""
        counts = self._observed(counts)
        groups = independent_groups(counts.rows)
        for group in groups:  # before anything is allocated
            check_size(
                counts.n_values[group].tolist(),
                lambda group=group: [self._column(j) for j in group],
                max_states=self.max_states,
                itemsize=np.dtype(self.dtype).itemsize,
            )
        n_features = len(counts.n_values)
        settings = Settings(
            alpha=self.alpha,
            max_order=min(n_features if self.max_order is None else self.max_order, 255),
            max_basis=math.inf if self.max_basis is None else self.max_basis,
            solver=self.solver,
            tol=self.tol,
            max_iter=math.inf if self.max_iter is None else self.max_iter,
            dtype=np.dtype(self.dtype),
            n_threads=effective_n_jobs(self.n_jobs),
            verbose=self.verbose,
        )

        n_values = self._encoder.n_open_values(counts.n_values)
        encoder = self._encoder.of_model(None, Unseen.learn(counts.rows, counts.weights, n_values))

        def attributes(basis, theta):
            return {
                "n_values_": counts.n_values,
                "basis_": basis,
                "theta_": theta,
                "_n_features_out": len(theta),
                "_encoder": encoder,
            }

        with iterations(self, X, y, name="move", max_iter=self.max_iter) as end_move:
            rows, weights, terms, converged, history = learn(
                counts, groups, settings, lambda now: end_move(lambda: attributes(*now()))
            )
            cost_path = np.array(history.cost_path)
            vars(self).update(
                attributes(*terms),
                _rows=rows,
                _weights=weights,
                converged_=converged,
                n_iter_=history.n_moves,
                cost_=history.cost_path[-1],
                cost_path_=cost_path,
                history_={
                    "cost": cost_path[1:],
                    "n_basis": np.array(history.n_basis_path[1:]),
                    "seconds": np.array(history.seconds),
                },
            )
        if self._tells:
            self._tell_columns()
            print(f"[FSLLDensity] end: {history}")
        return self

    def _counts(self, X, sample_weight, reset):
        """Check rows; -> the count of each, and the rule of their weights."""
        batches = as_batches(X, sample_weight)
        if batches is not None:
            batches = self._encoded(batches, reset=reset)
            count = partial(_counts_of_batch, self._reader(batches))
            _, counts = summarise(batches, count, _merge_counts)
            return counts, Rule.of_rows(None, round(counts.weights.sum()))
        given, sample_weight = sample_weight, row_weights(sample_weight, tell=True)
        X = self._validate(X, reset=reset, allow_nan=True, sample_weight=sample_weight)
        dtype, weights = X.dtype, checked_weights(sample_weight, X)
        n_values, rule = self._numbers_of_values(X), Rule.of_rows(given, len(X))
        missing = np.isnan(X)
        if missing.any():
            rows = np.where(missing, -1, X).astype(np.min_scalar_type(-int(n_values.max())))
            return CountedRows(dtype, n_values, *informative(rows, weights)), rule
        rows = X.astype(np.min_scalar_type(int(n_values.max()) - 1))
        return CountedRows(dtype, n_values, rows[weights > 0], weights[weights > 0]), rule

    def _observed(self, counts):
        """The rows where a column without an observed cell has one value, which says nothing."""
        rows, empty = counts.rows, self._empty_columns(counts.rows)
        if not empty.any():
            return counts
        rows, n_values = np.where(empty, 0, rows), np.where(empty, 1, counts.n_values)
        return counts._replace(rows=rows, n_values=n_values)

    def _model(self):
        return LogLinearModel(self.n_values_, self.basis_, self.theta_)

    def _parameters(self):
        return [self.n_values_, self.basis_, self.theta_]

    # Methods of a fitted model.

    def _column_probabilities(self, X, j, n_steps, seed):
        with progress_bar("rows", None, self.verbose) as bar:
            return super()._column_probabilities(X, j, n_steps, seed, bar)

    def _free_energy(self, X, cells):
        empty = np.isnan(cells).all(axis=1)
        if not empty.any():
            return super()._free_energy(X, cells)
        energy = super()._free_energy(X, np.where(empty[:, None], 0, cells))
        energy[empty] = -self.log_partition_
        return energy

    def transform(self, X):
        """Return the values of the learned terms, as features for a classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        signs : ndarray of shape (n_samples, n_basis)
            Φ_y(x), each 1 or -1; float32 for float32 data, and otherwise float64. In rows with
            missing cells (NaN), the expectation of Φ_y given the observed cells, from -1 to 1.
        """
        check_is_fitted(self)
        cells = self._known_cells(X)
        codes = self._rows_of(X, cells)
        if (codes < 0).any():
            signs = self._model().expected_terms(codes, self.basis_)
        else:
            signs = StateSpace(self.n_values_).signs(codes, self.basis_)
        return signs.astype(np.float32 if cells.dtype == np.float32 else np.float64)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the terms.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), default=None
            Names of the variables. None means the names seen in `fit`, or else ``x0``, ``x1``, ...

        Returns
        -------
        names : ndarray of str of shape (n_basis,)
            Names of the terms, in the order of `basis_`. A binary variable appears by its name.
            For a variable with more values, ``colour=2`` is the indicator of a value. For one with
            4, 8, 16, ... values, ``colour&3`` is the parity of the bits that the value has in
            common with 3. The empty product is never a term.
        """
        check_is_fitted(self)
        names = self._input_names(input_features)
        codes = enumerate(map(np.arange, self.n_values_))
        labels = [self._encoder.labels(j, values) for j, values in codes]
        names = StateSpace(self.n_values_).term_names(self.basis_, names, labels)
        return np.array(names, dtype=object)

    def interactions(self):
        """Return the learned terms as a table, strongest first.

        Returns
        -------
        table : pandas.DataFrame, or Bunch of arrays where pandas is not installed
            A table with the columns ``term`` (name), ``order`` (number of variables), ``weight``
            (θ_y) and ``expectation`` (E[Φ_y] under the model).

        Notes
        -----
        pandas is optional. A Bunch is a dict whose entries are attributes, too, so
        ``table["term"][:3]`` and ``table.weight`` are the same columns with pandas and without.
        Methods of a data frame, such as ``table.head()``, need pandas.
        """
        check_is_fitted(self)
        strongest = np.argsort(-np.abs(self.theta_), kind="stable")
        columns = {
            "term": self.get_feature_names_out()[strongest],
            "order": (self.basis_ != 0).sum(axis=1)[strongest],
            "weight": self.theta_[strongest],
            "expectation": self._model().expectation(self.basis_)[strongest],
        }
        return frame_or_bunch(columns)

    def expectation(self, basis):
        """Return the expectations of basis functions under the model.

        Parameters
        ----------
        basis : array-like of int of shape (n_basis, n_features)
            Index vectors y, as in `basis_`.

        Returns
        -------
        expectation : ndarray of float64 of shape (n_basis,)
            The dual parameters E[Φ_y], exact.
        """
        check_is_fitted(self)
        basis = np.asarray(basis)
        if (
            basis.ndim != 2
            or basis.shape[1] != self.n_features_in_
            or basis.dtype.kind not in "iub"
        ):
            raise ValueError(
                f"basis must be an array of integers of shape (n_basis, {self.n_features_in_}), "
                f"got {basis.dtype} of shape {basis.shape}."
            )
        if (basis < 0).any() or (basis >= self.n_values_).any():
            raise ValueError(
                "Each entry of column i of basis must be from 0 to n_values_[i] - 1, where "
                f"n_values_ is {self.n_values_.tolist()}."
            )
        return self._model().expectation(basis.astype(np.int64))


def _counts_of_batch(reader, batch):
    found, _ = reader._counts(batch, None, reset=False)
    rows, weights = distinct_incomplete(found.rows, found.weights)
    return CountedRows(found.dtype, found.n_values, rows, weights)


def _merge_counts(one, other):
    rows, weights = (np.concatenate(pair) for pair in zip(one[2:], other[2:], strict=True))
    n_values = np.maximum(one.n_values, other.n_values)
    return CountedRows(one.dtype, n_values, *distinct_incomplete(rows, weights))
