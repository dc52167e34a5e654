"""DiscreteDensity: what models of rows of codes share."""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._density import Density
from sklearn_boltz._methods import IMPUTE_CONSTRAINTS, SAMPLE_CONSTRAINTS, validate_arguments
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.partition._estimates import estimate_from_value
from sklearn_boltz.tables._cells import (
    ROWS_TO_TELL,
    as_array,
    columns_with_codes,
    if_missing,
    is_whole,
    missing_code_hint,
    without_codes,
)
from sklearn_boltz.tables._coded import Coded, uncoded
from sklearn_boltz.tables._frames import is_frame
from sklearn_boltz.tables._phrases import and_others, first_of
from sklearn_boltz.tables._where import rows_where

# What to do about numbers that are no codes, and about codes beyond those of `fit`.
DECLARE = "Declare the columns in `columns`: 'nominal' for categories, 'number' for numbers."
LIST_VALUES = (
    "List all values of the column in `columns` and fit again, or correct the cell, or write it as "
    "NaN."
)


class DiscreteDensity(Density):
    """A density of rows of codes: 0, 1, ... for the values of each column.

    A child defines `fit`, which sets `n_values_` besides what a `Density` does, `transform`,
    `_parameters`, and `_model`, a distribution of codes such as `LogLinearModel`.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _distribution(self):
        """That of rows, which may have more than codes."""
        return self._model()

    def _rows_of(self, X, cells):
        """Rows as `_distribution` takes them, from a table and the codes of its cells."""
        if self._encoder.is_empty.any():
            cells = np.where(self._encoder.is_empty, 0, cells)
        missing = np.isnan(cells)
        legal = missing | (cells < self.n_values_) & is_whole(cells)
        if not legal.all():
            self._refuse_codes(cells, legal, lambda j: f"values from 0 to {self.n_values_[j] - 1}")
        return np.where(missing, -1, cells).astype(np.int64)

    def _free_energy(self, X, cells):
        return -self._distribution().log_sums(self._rows_of(X, cells))

    def energy(self, X):
        """Return the energy of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, without missing cells.

        Returns
        -------
        energy : ndarray of float64 of shape (n_samples,)
            E(x), with P(x) = exp(-E(x)) / Z: -Σ_y θ_y Φ_y(x) of the terms of an `FSLLDensity`, and
            -½ xᵀ M x - bᵀ x of a network, where x has values -1 and 1 if all variables are binary,
            and otherwise is the one-hot vector of length Σ n_values. With `terms_` it is less by
            Σ_t θ_t Π_{i ∈ t} x_i, and with a `count_potential_` V by V(K), for K variables that are
            1. After ``from_couplings(J, h, coding="bits")`` it is -½ xᵀ J x - hᵀ x with x of 0 and
            1.
        """
        check_is_fitted(self)
        cells = self._known_cells(X)
        self._refuse_gaps(np.isnan(cells) & ~self._encoder.is_empty)
        return self._free_energy(X, cells)

    def free_energy(self, X):
        """Return the free energy of each row: its energy, with missing cells summed out.

        Other models sum out hidden units. This one has none, and sums out missing cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing cell.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            F = -ln Σ exp(-E(x)) over all values of the missing cells, so that the observed cells
            have the probability exp(-F) / Z. For complete rows it is ``energy(X)``. In a network,
            with more than 2**20 joint states of connected missing cells, it is an estimate by
            importance sampling with a fixed seed, annealed if need be. Its standard error is about
            0.03 nats.
        """
        check_is_fitted(self)
        return self._free_energy(X, self._known_cells(X))

    def log_pseudo_likelihood(self, X):
        """Return the log pseudo-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing cell.

        Returns
        -------
        log_pseudo_likelihood : ndarray of float64 of shape (n_samples,)
            The sum over the observed cells of ln p(x_j | all other observed cells), in nats.
            Missing cells are summed out. This is exact, but in a network with more than 2**20 joint
            states of connected missing cells, where Gibbs sampling with a fixed seed estimates it.
        """
        check_is_fitted(self)
        rows = self._rows_of(X, self._known_cells(X))
        return self._distribution().log_pseudo_likelihood(rows)

    @validate_arguments({"method": [StrOptions({"auto", "exact"})]})
    def log_partition(self, method="auto", *, random_state=None):
        """Compute the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact"}, default="auto"
            Both enumerate all joint states of the variables that are connected by terms.
        random_state : Ignored
            Present for API consistency.

        Returns
        -------
        estimate : Bunch
            The exact value, with the same fields as the estimates of other estimators: `value` in
            nats, `std_err` 0, `low` and `high` equal to `value`, `ess` infinite, `method`
            ``"exact"``, `trusted`, `verdict`, and `log_weights` and `states` None.
        """
        check_is_fitted(self)
        return estimate_from_value(self._model().log_partition())

    def marginal(self, features):
        """Return the joint probabilities of some variables.

        Parameters
        ----------
        features : int, str or sequence of them
            Numbers or names of variables, each once.

        Returns
        -------
        table : ndarray of float64 with one axis for each of `features`
            ``table[0, 1]`` is the probability that the first variable has its first value and the
            second variable its second value. The sum is 1.

        Raises
        ------
        ValueError
            If connected variables have more than 2**26 joint states; use `sample` then.
        """
        check_is_fitted(self)
        variables = self._variables(features)
        model = self._model()
        if not model.is_enumerable():
            self._refuse_enumeration("Count in the rows of `sample` instead.")
        return model.marginal(variables)

    @validate_arguments({"temperature": [Interval(Real, 0, None, closed="neither")]})
    def entropy(self, temperature=1.0):
        """Return the entropy of the model.

        Parameters
        ----------
        temperature : float, default=1.0
            T > 0: the model is P(x)^(1/T).

        Returns
        -------
        entropy : float
            -Σ_x P(x) ln P(x), in nats. It is exact up to 2**26 joint states of connected variables.
            In a larger network it is estimated as by `statistics.thermodynamics`, which also has
            the standard error, with a fixed seed.

        Warns
        -----
        UserWarning
            If an estimate is not to be trusted.
        """
        check_is_fitted(self)
        model = self._model().tempered(temperature)
        if model.is_enumerable():
            return self._cached("entropy", model.entropy, np.array([temperature]))
        return self._figures_at(temperature).entropy[0]

    @validate_arguments(SAMPLE_CONSTRAINTS)
    def sample(
        self,
        n_samples=1,
        random_state=None,
        *,
        given=None,
        where=None,
        temperature=1.0,
        n_steps=1000,
    ):
        """Draw independent samples from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        given : dict, default=None
            Values of some columns, by label or number. The other columns are drawn from their
            conditional distribution. The values are those of the returned rows.
        where : callable, default=None
            A condition, as in ``lambda table: table["start"] <= table["end"]``: a function from a
            table of samples to a bool for each row. Rows are drawn until `n_samples` obey it, so
            that they have the distribution of the model given the condition.
        temperature : float, default=1.0
            Temperature T > 0: rows are drawn with probabilities proportional to p(x)^(1/T).
        n_steps : Ignored
            Present for API consistency: all draws are exact.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Exact samples as a table like the training data. Numbers in bins are not independent
            of those of other rows: they are spread evenly over the training cells of each bin, in
            random order.

        Raises
        ------
        ValueError
            If fewer than 1 in 10,000 rows obey `where`.
        """
        check_is_fitted(self)
        check_drawn(self, n_samples)
        if where is not None:
            draw = partial(self.sample, given=given, temperature=temperature)
            return rows_where(draw, n_samples, random_state, where, type(self).__name__)
        columns, values = self._given(given, lambda j: np.arange(self.n_values_[j]))
        model = self._model().tempered(temperature).given(columns, values)
        generator = make_generator(random_state)
        states = model.sample(n_samples, generator)
        states[:, columns] = values
        return self._encoder.decode(states, generator, self._given_numbers(given))

    @validate_arguments(IMPUTE_CONSTRAINTS)
    def impute(self, X, *, how="mean", n_steps=1000, random_state=None):
        """Fill missing values from their distribution given the observed values of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN, None and pandas.NA are missing values.
        how : {"mean", "mode", "sample"}, default="mean"
            The conditional mean of each missing value, the most probable joint state of the
            missing values, or a draw of all of them from their joint conditional distribution.
            Columns with an entry in `categories_`, such as strings and booleans, have no mean: they
            get the mode. All are exact, but in a network only in rows whose missing values have no
            more than 2**20 joint states, as 20 binary ones have. Where numbers have normal scores,
            rows with more than 1,024 joint states of missing categories have 200 weighted draws
            instead.
        n_steps : int, default=1000
            Transitions (sweeps of Gibbs sampling) for rows of a network with more joint states. The
            mean is that of four chains with `n_steps` together, of which the first quarter does not
            count; where all columns are binary, and for a sample, chains of a row are annealed with
            as many, and go on by their weights, a sample with half as many. The most probable state
            is that of `n_steps` after as many. Strongly coupled columns with more than two values
            are drawn together.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness for ``how="sample"``, and for rows with more joint states.

        Returns
        -------
        X : of the type of X
            A copy with the missing values filled; observed values are unchanged.
        """
        check_is_fitted(self)
        generator = make_generator(random_state)
        return self._impute(X, self._known_cells(X), how, n_steps, generator)

    def _impute(self, X, cells, how, n_steps, generator):
        missing = np.isnan(cells)
        rows, codes = missing.any(axis=1), self._rows_of(X, cells)

        def impute(how):
            filled = cells.astype(np.float64)
            if rows.any():
                found = self._model().complete(codes[rows], how, generator, n_steps)
                filled[rows] = np.where(missing[rows], self._cells_of(found), cells[rows])
            return filled

        return self._fill(X, cells, how, impute, generator)

    def _column_probabilities(self, X, j, n_steps, seed, bar=None):
        cells = self._known_cells(X, copy=True)
        cells[:, j] = 1  # any legal value
        rows = self._rows_of(X, cells)
        return self._distribution().column_probabilities(rows, j, n_steps, seed, bar)

    def _refuse_gaps(self, missing):
        """Refuse rows with missing cells, which have no energy."""
        if missing.any():
            row, j = np.argwhere(missing)[0]
            titles = map(self._column, np.flatnonzero(missing.any(axis=0)))
            more = first_of(missing.sum(), "missing cells", titles)
            raise ValueError(
                f"{type(self).__name__}: {self._column(j)} has no value (NaN) in row {row}{more}, "
                "and an energy belongs to a complete row. `free_energy` sums missing cells out; "
                "`impute` fills them."
            )

    def _fill(self, X, cells, how, impute, generator):
        """A copy of a table, with these codes, in which missing cells have values.

        `impute` makes of `how` the rows as numbers without missing cells. Strings and levels have
        no mean: the mode is taken for that. The generator draws numbers from their bins.
        """
        table, missing, numbers = self._encoder, np.isnan(cells), {}
        if how == "mean":
            for j in np.flatnonzero(table.is_binned & missing.any(axis=0)):
                numbers[j] = self._mean_numbers(X, cells, j)
        if how == "mean" and table.is_word.all():
            how = "mode"
        filled = impute(how)
        if how == "mean" and table.is_word.any():
            filled = np.where(table.is_word, impute("mode"), filled)
        return table.fill(X, filled, missing, generator if how == "sample" else None, numbers)

    def _mean_numbers(self, X, cells, j):
        """Means of the missing cells of a column of numbers in bins, NaN in other rows."""
        X, rows = uncoded(X), np.flatnonzero(np.isnan(cells[:, j]))
        coded = Coded(self._encoder, X if is_frame(X) else as_array(X), cells, is_own=True)
        means, key = np.full(len(cells), np.nan), self._keys()[j]
        p = self.predict_column_proba(coded.some(rows), key)
        means[rows] = p @ self._encoder.columns[j].bins.means
        return means

    def _known_cells(self, X, **options):
        """Check rows for a fitted model of codes; values that `fit` has not seen may be missing."""
        X = self._validate(X, reset=False, allow_nan=True, **options)
        if self.unseen == "smooth" and self._encoder.unseen:
            return self._encoder.unseen.hidden(X)
        if self.unseen != "missing":
            return X
        strange = is_whole(X) & (X >= self.n_values_)
        return np.where(strange, np.nan, X) if strange.any() else X

    def _kind_of_codes(self, j):
        """The kind of a column of numbers that stand for themselves."""
        return "binary" if self.n_values_[j] <= 2 else "nominal"

    def _empty_columns(self, codes):
        """Which columns have no value in the rows that count; they are noted."""
        if not len(codes):
            raise ValueError(
                f"{type(self).__name__}: all cells are missing in all rows that count. Pass rows "
                "with observed cells."
            )
        empty = self._encoder.is_empty
        if codes.dtype.kind == "i":
            empty = empty | (codes < 0).all(axis=0)
        if not self._encoder.is_empty[empty].all():
            self._without_empty(empty)
        return empty

    def _numbers_of_values(self, X):
        """How many values each column of codes has; with a warning of doubtful ones.

        Others than 0, 1, 2, ... and NaN are refused.
        """
        legal = np.isnan(X) | is_whole(X)
        if not legal.all():
            self._refuse_codes(X, legal, lambda j: "the integers 0, 1, 2, ...", in_fit=True)
        words = self._encoder.is_word
        found = [about for about in columns_with_codes(X) if not words[about[0]]]
        for j, codes, values in found[:1]:
            more = and_others(self._column(k) for k, *_ in found[1:])
            self._warn(
                f"in {self._column(j)}, {missing_code_hint(codes, values)}. {if_missing(codes)} "
                f"{without_codes(codes, values, self._encoder.columns[j].place)}{more}"
            )
        highest = np.fmax.reduce(X, axis=0, initial=0).astype(np.int64)
        columns = np.flatnonzero((highest > 1) & ~words)
        columns = columns[np.fmin.reduce(X[:, columns], axis=0) == 1]
        if len(columns) and len(X) >= ROWS_TO_TELL:
            self._warn(
                f"{self._have(columns)} values from 1 to {highest[columns].max()} and never 0. "
                "Values are counted from 0, so the model has an unused value 0. Subtract 1, or set "
                "columns='nominal'."
            )
        # Numbers without an atom have one value in a network.
        least = np.where(self._encoder.is_scored, 1, 2)
        return np.maximum(np.maximum(highest + 1, self._encoder.n_categories), least)

    def _refuse_codes(self, X, legal, domain, in_fit=False):
        """Refuse cells that are no codes, as `_refuse_cells`; those of new rows, or `in_fit`."""
        values, remedy = set(np.unique(X[~np.isnan(X)]).tolist()), LIST_VALUES
        if in_fit:
            remedy = DECLARE
        elif values == {0, 1}:
            remedy = "The table has the values 0 and 1 only. Recode it by 2 * X - 1."
        elif not is_whole(X[~legal]).all():
            remedy = "The training data have no other values. Correct the cell, or write it as NaN."
        # Signs in place of bits are recognised after the fit, too.
        self._refuse_cells(X, legal, domain, remedy, coded=in_fit or values == {-1, 1})
