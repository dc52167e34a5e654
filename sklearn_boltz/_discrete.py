"""DiscreteDensity: what models of rows of codes share."""

from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._density import Density
from sklearn_boltz._methods import (
    LOG_PARTITION_CONSTRAINTS,
    SAMPLE_CONSTRAINTS,
    validate_arguments,
)
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
from sklearn_boltz.tables._refusals import refuse_cells

# What to do about numbers that are no codes, and about codes beyond those of `fit`.
DECLARE = "Declare the columns in `columns`: 'nominal' for categories, 'number' for numbers."
LIST_VALUES = (
    "List all values of the column in `columns` and fit again, or correct the cell, or write it as "
    "NaN."
)


class DiscreteDensity(Density):
    """A density of rows of codes: 0, 1, ... for the values of each column.

    A child defines `fit`, which sets `n_values_` besides what a `Density` does, `transform`,
    `_parameters`, and `_model`, a distribution of codes such as `LogLinearModel`. What is asked of
    these is in tests/test_distribution.py.
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

    @validate_arguments(LOG_PARTITION_CONSTRAINTS)
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
        """Compute the logarithm of the normalising constant.

        Parameters
        ----------
        method : {"auto", "exact"}, default="auto"
            Both enumerate all joint states of the variables that are connected by terms.
        n_chains, n_temperatures : Ignored
            Present for API consistency.
        temperature : float, default=1.0
            T > 0: the model is P(x)^(1/T), with Z = Σ_x exp(-E(x) / T).
        tol, max_rounds, random_state : Ignored
            Present for API consistency.

        Returns
        -------
        estimate : Bunch
            The exact value, with the same fields as the estimates of other estimators: `value` in
            nats, `std_err` 0, `low` and `high` equal to `value`, `ess` infinite, `method`
            ``"exact"``, `trusted`, `verdict`, and `log_weights` and `states` None.
        """
        check_is_fitted(self)
        return estimate_from_value(self._distribution().tempered(temperature).log_partition())

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
        model = self._distribution()
        if not model.is_enumerable():
            self._refuse_enumeration("Count in the rows of `sample` instead.")
        return model.marginal(variables)

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
        n_temperatures=None,
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
        n_steps, n_temperatures : Ignored
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
        draw = partial(self._sample, given=given, temperature=temperature)
        return self._rows_where(draw, n_samples, random_state, where)

    def _sample(self, n_samples, random_state, given, temperature):
        columns, values = self._given(given, lambda j: np.arange(self.n_values_[j]))
        model = self._model().tempered(temperature).given(columns, values)
        generator = make_generator(random_state)
        states = model.sample(n_samples, generator)
        states[:, columns] = values
        return self._encoder.decode(states, generator, self._given_numbers(given))

    def _impute(self, X, how, n_steps, generator):
        """A copy of a table in which missing cells have values.

        Strings and levels have no mean: the mode is taken for that.
        """
        words, cells, numbers = self._encoder.is_word, self._known_cells(X), {}
        missing, rows = np.isnan(cells), self._rows_of(X, cells)
        some = missing.any(axis=1)

        def completed(how):
            filled = cells.astype(np.float64)
            if some.any():
                codes, found = self._completed(rows[some], how, n_steps, generator)
                filled[some] = np.where(missing[some], self._cells_of(codes), cells[some])
                numbers.update({j: at_rows(some, own) for j, own in found.items()})
            return filled

        filled = completed("mode" if how == "mean" and words.all() else how)
        if how == "mean":
            if words.any() and not words.all():
                filled = np.where(words, completed("mode"), filled)
            numbers |= self._mean_numbers(X, cells)
        generator = generator if how == "sample" else None
        return self._encoder.fill(X, filled, missing, generator, numbers)

    def _completed(self, rows, how, n_steps, generator):
        """Codes of rows without gaps, and numbers that have scores, a dict from their columns."""
        return self._distribution().complete(rows, how, generator, n_steps), {}

    def _mean_numbers(self, X, cells):
        """Means of the missing cells of columns of numbers, NaN in other rows; a dict."""
        X, missing, found = uncoded(X), np.isnan(cells), {}
        X = X if is_frame(X) else as_array(X)
        coded = Coded(self._encoder, X, cells, is_own=True)
        for j in np.flatnonzero(self._encoder.is_binned & missing.any(axis=0)):
            rows = np.flatnonzero(missing[:, j])
            p = self.predict_column_proba(coded.some(rows), self._keys()[j])
            found[j] = at_rows(missing[:, j], p @ self._encoder.columns[j].bins.means)
        return found

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
        """Refuse cells that are no codes, as `refuse_cells`; those of new rows, or `in_fit`."""
        values, remedy = set(np.unique(X[~np.isnan(X)]).tolist()), LIST_VALUES
        if in_fit:
            remedy = DECLARE
        elif values == {0, 1}:
            remedy = "The table has the values 0 and 1 only. Recode it by 2 * X - 1."
        elif not is_whole(X[~legal]).all():
            remedy = "The training data have no other values. Correct the cell, or write it as NaN."
        # Signs in place of bits are recognised after the fit, too.
        name, coded = type(self).__name__, in_fit or values == {-1, 1}
        refuse_cells(name, self._encoder, X, legal, domain, remedy, coded=coded)


def at_rows(where, values):
    """Numbers of some rows in an array for all of them, with NaN for the others."""
    found = np.full(len(where), np.nan)
    found[where] = values
    return found
