"""Answers of a density model: energies, imputed rows, and columns given the others."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._methods import IMPUTE_CONSTRAINTS, named, validate_arguments
from sklearn_boltz._warnings import told_once, warn
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._memory import check_drawn
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.partition._shares import message_of_errors
from sklearn_boltz.tables._cells import as_array
from sklearn_boltz.tables._form import without_columns, without_words
from sklearn_boltz.tables._frames import is_frame, some_rows
from sklearn_boltz.tables._where import rows_where


class Answers:
    """Methods of a density model.

    It defines `_free_energy`, `_impute`, `_column_probabilities` and `_distribution`.
    """

    def free_energy(self, X):
        """Return the free energy of each row: its energy, with all that is not observed summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, also sparse if `fit` takes that; NaN is a missing cell.

        Returns
        -------
        free_energy : ndarray of float64 of shape (n_samples,)
            F = -ln Σ exp(-E) over all values of the missing cells and of hidden units, in nats, so
            that the observed cells have the probability exp(-F) / Z; continuous columns are
            standardised. For complete rows of a model without hidden units it is ``energy(X)``.

        Notes
        -----
        Random numbers are the same in each call. In a network with more than 2**20 joint states of
        connected missing cells, it is an estimate by importance sampling, annealed if need be, with
        a standard error of about 0.03 nats. In a machine with hidden units, it is exact if the
        missing cells or the hidden units have at most 20 bits, and otherwise by annealed importance
        sampling with 50 chains for each row; with several hidden layers, it is approximated by TAP,
        unless all even or all odd ones have at most 12 binary units together.
        """
        check_is_fitted(self)
        return self._free_energy(X, self._known_cells(X))

    @validate_arguments({"temperature": [Interval(Real, 0, None, closed="neither")]})
    def entropy(self, temperature=1.0):
        """Return the entropy of the model's distribution of rows.

        Parameters
        ----------
        temperature : float, default=1.0
            T > 0: the model is P(x)^(1/T); with hidden units h, P(x, h)^(1/T), summed over these.

        Returns
        -------
        entropy : float
            -Σ_x P(x) ln P(x), in nats. It is exact up to 2**26 joint states of connected variables.
            In a larger network it is estimated as by `statistics.thermodynamics`, which also has
            the standard error, with a fixed seed.

        Raises
        ------
        ValueError
            If columns have continuous values, or numbers normal scores. If, with hidden units, more
            than 20 bits have to be enumerated: those of the columns and, with several hidden
            layers, of the even or the odd ones, whichever are fewer; the label of a classifier
            counts as a second layer.

        Warns
        -----
        UserWarning
            If an estimate is not to be trusted.
        """
        check_is_fitted(self)
        with named(self):
            model = self._distribution().tempered(temperature)
            return self._cached("entropy", model.entropy, np.array([temperature]))

    def _rows_where(self, draw, n_samples, random_state, where, itemsize=8):
        """Rows of `draw`, from their number and a source of randomness: all, or those that obey."""
        check_is_fitted(self)
        check_drawn(self, n_samples, itemsize)
        if where is None:
            return draw(n_samples, random_state)
        with progress_bar("rows that obey", n_samples, self.verbose) as bar:
            return rows_where(draw, n_samples, random_state, where, type(self).__name__, bar)

    @validate_arguments(IMPUTE_CONSTRAINTS)
    def impute(self, X, *, how="mean", n_steps=1000, random_state=None):
        """Fill missing cells from their distribution given the observed cells of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN, None and pandas.NA are missing cells.
        how : {"mean", "mode", "sample"}, default="mean"
            What replaces the missing cells of a row, given its observed ones:

            - ``"mean"``: the conditional mean of each. Columns with an entry in `categories_`, such
              as strings and booleans, have no mean: they get the mode, with hidden units the most
              probable value of each column by itself;
            - ``"mode"``: the most probable joint state of all. Continuous columns get the mean;
            - ``"sample"``: a draw of all from their joint conditional distribution.
        n_steps : int, default=1000
            Transitions of Markov chains, for rows that have too many joint states; see Notes.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness for ``how="sample"``, and for chains.

        Returns
        -------
        X : of the type of X
            A copy with the missing cells filled; observed cells are unchanged.

        Notes
        -----
        An :class:`FSLLDensity` is exact. A network is, in rows whose missing cells have no more
        than 2**20 joint states, as 20 binary ones have. In other rows, the mean is that of four
        chains with `n_steps` sweeps together, of which the first quarter does not count; where all
        columns are binary, and for a sample, chains of a row are annealed with as many, and go on
        by their weights, a sample with half as many. The most probable state is that of `n_steps`
        after as many. Strongly coupled columns with more than two values are drawn together. Where
        numbers have normal scores, rows with more than 1,024 joint states of missing categories
        have 200 weighted draws.

        A machine with hidden units is exact if the missing cells of the row, or the hidden units,
        have no more joint states than 2**23 divided by the number of all units; the mode, if the
        missing cells have at most 2**10, or no more than the hidden units. Otherwise, Markov chains
        run with the observed values clamped. They are annealed, so that their weights give each
        mode its probability: `n_steps` together for a row, and then as many for the mean, half as
        many for a sample. The mode is then the best state that a single chain visited or, with few
        states of the hidden units, that is found from the modes given each of them; no change of a
        single value makes it more probable.
        """
        check_is_fitted(self)
        return self._impute(X, how, n_steps, make_generator(random_state))

    @validate_arguments(
        {
            "random_state": ["random_state", np.random.Generator],
            "n_steps": [Interval(Integral, 1, None, closed="left")],
        }
    )
    def predict_column_proba(self, X, column, *, n_steps=1000, random_state=None):
        """Return the probability of each value of one column, given the rest of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. The values of the column itself are ignored. Missing cells (NaN) in other
            columns are summed out: exactly in rows where `impute` is exact, the column included,
            and in others by sampling for each value of the column.
        column : int, str or list of them
            The label of the column in a data frame, its number in an array, or those of several.
        n_steps : int, default=1000
            Where chains are needed, they run until the standard error of the probabilities of a row
            is at most 0.01, or until they made 50 `n_steps` transitions for each value.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness of estimates. None means the same random numbers in each call.

        Returns
        -------
        probabilities : ndarray of float64 of shape (n_samples, n_values)
            The probabilities of the values of the column in the order of `categories_`; of numbers
            that stand for themselves, of 0, 1, 2, ..., or of -1 and 1. Each row sums to 1. They
            depend on the row alone: equal rows have equal probabilities in any table. Of several
            columns, joint probabilities, of shape (n_samples, n_values, n_values, ...).

        Raises
        ------
        ValueError
            If the model has the column as continuous numbers.

        Warns
        -----
        UserWarning
            If the standard errors of some rows are greater than 0.01.
        """
        check_is_fitted(self)
        if not self._is_one(column):
            return self._joint_probabilities(X, column, n_steps=n_steps, random_state=random_state)
        j, seed = self._variable(column), self._seed_of(random_state)
        p, errors = self._column_probabilities(without_words(X, j), j, n_steps, seed)
        name = f"{type(self).__name__}.predict_column_proba"
        message = message_of_errors(name, self._column(j), errors, n_steps)
        if message:
            warn(message)
        return self._encoder.of_categories(p, j)

    # The seed of figures that are the same in each call.
    _evaluation_seed = 0

    def _seed_of(self, random_state):
        """The seed of what depends on a row alone: the same each time by default."""
        if random_state is None:
            return self._evaluation_seed
        return int(make_generator(random_state).integers(2**31))

    @told_once
    def predict_column_quantiles(
        self, X, column, quantiles=(0.05, 0.5, 0.95), *, n_steps=1000, random_state=None
    ):
        """Return quantiles of a column of numbers or dates, given the rest of each row.

        They are those of the numbers that `sample` draws: a bin counts by its probability given the
        row, and has the quantiles of its training cells inside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. The values of the column itself are ignored, and missing cells in other
            columns are summed out.
        column : int or str
            The label of the column in a data frame, or its number in an array.
        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Which ones, from 0 to 1. The default has the ends of an interval that the cell is in
            with a probability of 90 %, and the median.
        n_steps : int, default=1000
            As of `predict_column_proba`.
        random_state : int, RandomState instance, Generator or None, default=None
            As of `predict_column_proba`.

        Returns
        -------
        values : ndarray of shape (n_samples, n_quantiles)
            Numbers in the unit of the column, or dates. Each is the least number at which the
            distribution function of the column given the row is at least the quantile.

        Raises
        ------
        ValueError
            If the values of the column are no numbers, or a quantile is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from sklearn_boltz import FVBMPseudoLikelihood
        >>> rng = np.random.default_rng(0)
        >>> height = np.where(rng.random(800) < 0.5, 160, 180) + 5 * rng.normal(size=800)
        >>> weight = height - 100 + 5 * rng.normal(size=800)
        >>> table = pd.DataFrame({"height": height, "weight": weight})
        >>> model = FVBMPseudoLikelihood().fit(table)
        >>> people = pd.DataFrame({"height": [160.0, 180.0], "weight": [None, None]})
        >>> model.predict_column_quantiles(people, "weight").round()
        array([[50., 59., 68.],
               [72., 80., 88.]])
        """
        check_is_fitted(self)
        levels = np.asarray(quantiles, dtype=float)
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles must be a list of numbers from 0 to 1, got {quantiles!r}.")
        j, table = self._variable(column), self._encoder
        if not table.has_means[j]:
            raise ValueError(
                f"{type(self).__name__}: {self._column(j)} has values that are no numbers, which "
                "have no quantiles. predict_column_proba has their probabilities."
            )
        of_column, up_to = table.columns[j], self._up_to(X, j)
        if up_to is None:
            options = {"n_steps": n_steps, "random_state": random_state}
            p = self.predict_column_proba(X, self._keys()[j], **options)
            found = of_column.quantiles(p, levels)
        else:
            found = of_column.back(of_column.scores.quantiles(up_to, levels))
        return found if table.is_word[j] else self._cells_of(found)

    def _up_to(self, X, j):
        """The probabilities of `NormalScores.up_to`, where a column has such scores; or None."""
        return None

    def _cells_of(self, codes):
        """Codes as numbers of the table, where it has no names for them."""
        return codes

    @told_once
    def _joint_probabilities(self, X, columns, **options):
        """p(a, b, ... | other cells) = p(a | others) p(b | others, a) ..., in the given order."""
        table, places = self._encoder, self._variables(columns)
        # Of a number with normal scores, another column would be told the number, not the bin.
        order = sorted(places, key=lambda j: table.is_scored[j])
        if table.is_scored[order[:-1]].any():
            both = [table.columns[j].title for j in order[-2:]]
            raise ValueError(
                f"{' and '.join(both)} have normal scores: there are no joint probabilities of "
                "their bins. Fit with columns='auto' for bins, or ask for one with the other given."
            )
        X = without_columns(X if is_frame(X) else as_array(X), places)
        found = self._chained(X, order, partial(self.predict_column_proba, **options))
        return found.transpose(0, *(1 + order.index(j) for j in places))

    def _chained(self, X, places, ask):
        """Joint probabilities of some columns, which are missing in X, by the chain rule.

        `ask` has those of one column, from rows and its label or number.
        """
        j, *others = places
        p = ask(X, self._keys()[j])
        if not others:
            return p
        n, q = p.shape
        values = np.full((n * q, X.shape[1]), np.nan)
        values[:, j] = self._cells_of(np.tile(np.arange(q), n))
        rows = some_rows(X, np.repeat(np.arange(n), q))
        rest = self._chained(self._encoder.fill(rows, values, ~np.isnan(values)), others, ask)
        return np.einsum("nq,nq...->nq...", p, rest.reshape(n, q, *rest.shape[1:]))
