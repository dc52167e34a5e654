"""How the columns of a table become the numbers of the visible units, and back.

The rows of a table have one cell a column, the rows of a model one number for each number of its
visible units: a column of q categories is q numbers, of which one is 1. A column of real numbers
is standardised on the way.
"""

from itertools import pairwise

import numpy as np

from sklearn_boltz._methods import dense
from sklearn_boltz.tables._unseen import Unseen
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._stacked import Stacked
from sklearn_boltz.units._unit import UnitType

# Fraction of the bounds by which a value may be out of range, because of rounding in float32.
ROUNDING = 1e-6


class ColumnLayout:
    """How the columns of a table become the numbers of the visible units, and back.

    Parameters
    ----------
    kinds : list of type or UnitType
        Of each column: the type of its units, or the units themselves.
    widths : ndarray of int of shape (n_columns,)
        How many numbers each takes.
    bounds : pair of float or of ndarray of shape (n_columns,)
        The least and the greatest value of the cells.
    n_states : ndarray of int of shape (n_columns,)
        Of a column of one-hot numbers, how many codes it may have; 0 for others.
    center, scale : ndarray of float64 of shape (n_columns,) or None
        What is taken from the numbers, and what they are divided by.

    Attributes
    ----------
    one_hot : ndarray of bool of shape (n_columns,)
        Which columns have units of one-hot numbers.
    has_codes : bool
        Whether some have: their cells are whole numbers.
    is_plain : bool
        Whether rows of the table are rows of the model.
    n_numbers : int
        How many numbers a row of the model has.
    n_effective : float
        As many, if each of a column of one-hot ones counts as half a number.
    hold_bits : ndarray of bool of shape (n_columns,)
        Which columns had no other numbers than 0 and 1 in training.
    """

    def __init__(self, kinds, widths, bounds, n_states, center=None, scale=None):
        self.kinds, self.widths, self.bounds, self.n_states = kinds, widths, bounds, n_states
        self.center, self.scale = center, scale
        self.starts = np.concatenate([[0], np.cumsum(widths)])
        self.one_hot, self.n_numbers = n_states > 0, int(self.starts[-1])
        # With twice the hidden units, tables of words and binned numbers are hardly learned better.
        self.n_effective = self.n_numbers - widths[self.one_hot].sum() / 2
        self.has_codes = bool(self.one_hot.any())
        self.is_plain = not self.has_codes and scale is None
        self.hold_bits = np.zeros(len(kinds), dtype=bool)

    def part(self, first, end):
        """The layout of some neighbouring columns."""
        some = slice(first, end)
        bounds = [end if np.ndim(end) == 0 else end[some] for end in self.bounds]
        scales = [None if x is None else x[some] for x in (self.center, self.scale)]
        return ColumnLayout(
            self.kinds[some], self.widths[some], bounds, self.n_states[some], *scales
        )

    @classmethod
    def of_numbers(cls, n_columns):
        """Layout of columns that hold the numbers of Bernoulli units themselves."""
        every = np.ones(n_columns, dtype=int)
        return cls([Bernoulli] * n_columns, every, Bernoulli.bounds, 0 * every)

    @property
    def is_binary(self):
        """Whether all units are Bernoulli ones, of which nothing else is known."""
        return all(kind is Bernoulli for kind in self.kinds)

    def on_scale(self, estimate):
        """An estimate of ln Z for densities on the original scale of the columns, in place."""
        if self.scale is not None:
            volume = float(np.log(self.scale).sum())
            for name in ("value", "low", "high", "log_partitions"):
                if name in estimate:
                    estimate[name] = estimate[name] + volume
            if estimate.log_weights is not None:
                sign = -1 if estimate.method == "raise" else 1
                estimate.log_weights = estimate.log_weights + sign * volume
        return estimate

    @property
    def log_scale(self):
        """Logarithms of what the numbers were divided by; None if that is 1 for all."""
        return None if self.scale is None else self.spread(np.log(self.scale))

    def are_legal(self, values):
        """Where values are within the bounds, to rounding errors, or NaN."""
        low, high = self.bounds
        ends = np.abs([low, high]).astype(np.float64)
        size = np.where(np.isfinite(ends), ends, 0).max(axis=0)
        rounding = ROUNDING * np.where(size > 0, size, 1.0)
        legal = ~((values < low - rounding) | (values > high + rounding))
        if self.has_codes:  # only the codes themselves are legal
            legal &= ~(self.one_hot & (np.abs(values - np.rint(values)) > ROUNDING))
        return legal

    def domain(self, column=None):
        """The legal values of a column, or of all, in words."""
        ends = self.bounds if column is None else self.bounds_of(column)
        if column is not None and self.one_hot[column]:
            return f"whole numbers from 0 to {ends[1]:g}"
        if np.isinf(ends).all():
            return "any real number"
        return "values from {:g} to {:g}".format(*ends)

    def bounds_of(self, column):
        """The least and the greatest value of the cells of a column."""
        return tuple(float(np.broadcast_to(end, len(self.widths))[column]) for end in self.bounds)

    def numbers_of(self, column):
        """Which numbers of a row are those of a column: a slice."""
        return slice(*self.starts[column : column + 2].tolist())

    # There and back.

    def expand(self, X):
        """Rows of the model for rows of the table; all numbers of a missing cell are NaN.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Codes and numbers; not copied where these are the rows of the model.

        Returns
        -------
        V : {ndarray, sparse matrix} of shape (n_rows, n_numbers)
        """
        if self.is_plain:
            return X
        return self.with_one_hot(self.standardised(dense(X)))

    def collapse(self, V):
        """Rows of the table for rows of the model: of one-hot numbers, the greatest.

        Parameters
        ----------
        V : ndarray of shape (n_rows, n_numbers)

        Returns
        -------
        X : ndarray of shape (n_rows, n_columns)
        """
        if self.is_plain:
            return V
        X = self.without_one_hot(V)
        return X if self.scale is None else X * self.scale + self.center

    def standardised(self, X):
        """Cells as codes and standardised numbers; not copied where no column has a scale."""
        if self.scale is None:
            return X
        return ((X.astype(np.float64) - self.center) / self.scale).astype(X.dtype)

    def with_one_hot(self, X):
        """Rows of the model for rows of codes and standardised numbers."""
        V = np.zeros((len(X), self.n_numbers), X.dtype)
        single, starts = ~self.one_hot, self.starts[:-1]
        V[:, starts[single]] = X[:, single]
        missing = np.isnan(X)
        codes = np.where(missing, 0, X)[:, self.one_hot].astype(np.intp)
        V[np.arange(len(X))[:, np.newaxis], starts[self.one_hot] + codes] = 1
        if missing.any():
            V[self.spread(missing)] = np.nan
        return V

    def without_one_hot(self, V):
        """Codes and standardised numbers for rows of the model."""
        single, missing = ~self.one_hot, np.isnan(V)
        X = np.empty((len(V), len(self.widths)), np.float64 if self.scale is not None else V.dtype)
        X[:, single] = V[:, self.starts[:-1][single]]
        for j in np.flatnonzero(~single):
            numbers = self.numbers_of(j)
            X[:, j] = np.where(missing[:, numbers].any(axis=1), np.nan, V[:, numbers].argmax(1))
        return X

    def spread(self, of_columns):
        """Figures of columns, repeated for each of their numbers."""
        return np.repeat(of_columns, self.widths, axis=-1)

    def unscaled(self, V):
        """Numbers of the model with continuous columns on the scale of the table."""
        if self.scale is None:
            return V
        return V * self.spread(self.scale) + self.spread(self.center)

    def names(self, names, table):
        """Names of the numbers: of a column, or of it and a category.

        Parameters
        ----------
        names : list of str
            Of the columns.
        table : Encoder

        Returns
        -------
        names : list of str
        """
        found = []
        for j, name in enumerate(names):
            categories, n_states = table.columns[j].categories, self.n_states[j]
            values = range(n_states) if categories is None else categories.tolist()
            if not n_states:  # of two categories, the number is that of the second
                values = values[1:2]
            shown = (f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            found += [f"{name}={value}" for value in shown] or [name]
        return found

    def unseen(self, table, X, weights=None):
        """Knowledge of other values than those of the training rows.

        Parameters
        ----------
        table : Encoder
        X : ndarray of shape (n_rows, n_columns)
            Codes and numbers.
        weights : ndarray of float64 of shape (n_rows,), default=None

        Returns
        -------
        unseen : Unseen or None
        """
        found = table.is_word & ~table.is_binned & ~table.is_listed
        n_values = np.where(found, table.n_categories, -1)
        if table.is_open:
            codes = ~table.is_word & self.one_hot
            n_values[codes] = self.n_states[codes]
            is_bit = ~table.is_word & [kind is Bernoulli for kind in self.kinds]
            n_values[is_bit & self.hold_bits] = 2
        return Unseen.learn(X, np.ones(len(X)) if weights is None else weights, n_values)

    # Units.

    def initial_units(self, V, weights=None):
        """Units fitted to rows: where a training begins.

        Parameters
        ----------
        V : {ndarray, sparse matrix} of shape (n_rows, n_numbers)
            NaN in a missing cell.
        weights : ndarray of float64 of shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        units : UnitType
            Of one type, or `Stacked` in the order of the columns.
        """
        # Neighbouring columns of one type have their units in one array; what a user gave for a
        # single column stays by itself.
        kinds = self.kinds
        alone = [
            isinstance(kind, UnitType) and len(kind) == width
            for kind, width in zip(kinds, self.widths, strict=True)
        ]
        firsts = [j for j in range(len(kinds)) if not j or alone[j] or kinds[j] is not kinds[j - 1]]
        layers = []
        for first, end in pairwise([*firsts, len(kinds)]):
            part = V
            if len(firsts) > 1 and isinstance(V, np.ndarray):
                part = V[:, self.starts[first] : self.starts[end]]
            elif len(firsts) > 1:
                part = V.columns(first, end)
            layers.append(self._fitted(kinds[first], part, self.widths[first:end], weights))
        return layers[0] if len(layers) == 1 else Stacked(layers)

    def _fitted(self, kind, V, widths, weights):
        if isinstance(kind, UnitType):
            return kind.astype(V.dtype)
        if kind is Gaussian and self.scale is not None:
            # They are standardised; a constant column has no precision to begin with.
            return kind.neutral(V.shape[1], V.dtype)
        if kind is Categorical:
            return kind.from_data(V, widths, weights)
        V = dense(V)
        return kind.from_data(V) if weights is None else kind.from_data(V, weights=weights)


def rescaled(weights, visible, hidden, layout, other):
    """The parameters of an RBM where continuous columns are standardised in another way.

    With z = a z' + t, the fields W z + c are W a z' + (c + W t), and b z − V z² / 2 is
    a (b − V t) z' − a² V z'² / 2 up to a constant.

    Parameters
    ----------
    weights : ndarray of shape (n_hidden, n_visible)
    visible, hidden : UnitType
        Hidden units with a parameter `intercept`.
    layout, other : ColumnLayout
        Of the columns as they are, and as they are to be.

    Returns
    -------
    weights : ndarray of shape (n_hidden, n_visible)
    visible, hidden : UnitType
        Copies.
    """
    visible, hidden = visible.astype(weights.dtype), hidden.astype(weights.dtype)
    if layout.scale is None:
        return weights, visible, hidden
    factor = layout.spread(other.scale / layout.scale)
    shift = layout.spread((other.center - layout.center) / layout.scale)
    hidden.intercept += (weights @ shift).astype(weights.dtype)
    for part, columns in visible.parts():
        if "precision" in part.parameters() and np.isinf(part.bounds[0]).all():
            a, t = factor[columns], shift[columns]
            part.intercept[...] = a * (part.intercept - part.precision * t)
            part.precision[...] = a**2 * part.precision
    return (weights * factor).astype(weights.dtype), visible, hidden
