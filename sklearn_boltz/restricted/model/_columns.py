"""The columns of a table and the numbers of the visible units: which units, how wide, named what.

The rows of a table have one cell a column, the rows of a model one number for each number of its
visible units: a column of q categories is q numbers, of which one is 1. A column of real numbers
is standardised on the way.
"""

from copy import copy
from functools import cache
from itertools import pairwise
from numbers import Integral

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import as_type
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.tables._cells import columns_of
from sklearn_boltz.tables._form import holds_numbers
from sklearn_boltz.tables._kinds import IN_ORDER, NAMES, Kind, kind_of
from sklearn_boltz.tables._phrases import and_others
from sklearn_boltz.tables._unseen import Unseen
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._stacked import Stacked
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType

UNIT_TYPES = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gaussian": Gaussian,
    "truncated_gaussian": TruncatedGaussian,
    "truncated_gauss_bernoulli": TruncatedGaussBernoulli,
}
# Of hidden units, by what the parameter `hidden` calls them.
HIDDEN_NAMES = sorted([*UNIT_TYPES, "relu"])
# A number that rectified linear units do not reach: 20 standard deviations of their noise.
RELU_END = 20.0
# Of columns, by what the parameter `columns` calls them.
UNITS_OF_COLUMNS = {
    "probability": Bernoulli,
    "gaussian": Gaussian,
    "truncated_gaussian": TruncatedGaussian,
    "truncated_gauss_bernoulli": TruncatedGaussBernoulli,
}
# Kinds of columns without negative numbers.
NOT_NEGATIVE = (*(name for name in UNITS_OF_COLUMNS if name != "gaussian"), "count", Bernoulli)
# A column of this many categories and more has units of one-hot numbers.
MANY_CATEGORIES = 3
# Fraction of the bounds by which a value may be out of range, because of rounding in float32.
ROUNDING = 1e-6
# The least standard deviation by which a column is divided, relative to its mean.
LEAST_DEVIATION = 1e-6


# What the user says about the columns.


def units_of_all(units, n_columns):
    """The units of all columns, if they are as many as there are columns."""
    if units.n_units != n_columns:
        raise ValueError(
            f"columns has {units.n_units} units, but there must be {n_columns}: one for each "
            "column."
        )
    return units


def units_of(entry):
    """The units that an entry of `columns` stands for.

    Parameters
    ----------
    entry : str, sequence, type or UnitType

    Returns
    -------
    units : type, UnitType or "auto"
        "auto" if they follow from the number of values.
    """
    if isinstance(entry, str) and entry in UNITS_OF_COLUMNS:
        return UNITS_OF_COLUMNS[entry]
    if isinstance(entry, type) and issubclass(entry, UnitType):
        return entry
    if isinstance(entry, UnitType):
        if entry.n_units == 1:
            return entry
        entry = f"{entry.n_units} units"
    kind = kind_of(entry, (*NAMES, *UNITS_OF_COLUMNS))
    return Categorical if kind.name in ("nominal", *IN_ORDER) else "auto"


def kinds_of(specs, entries, X):
    """Kinds by which `Encoder.learn` reads each column.

    Parameters
    ----------
    specs : list of {"auto", type, UnitType}, or UnitType
        As of `units_of`, or the units of all columns.
    entries : list
        What `columns` says of each.
    X : array-like, data frame or sparse matrix

    Returns
    -------
    kinds : list of Kind
    """
    if isinstance(specs, UnitType):
        entries = specs = [specs if width > 1 else Bernoulli for width in specs.widths]
    cells = [None] * len(specs) if issparse(X) else [cells for _, cells in columns_of(X)]
    return [_kind(*triple) for triple in zip(specs, entries, cells, strict=False)]


def _kind(spec, entry, cells):
    if spec is Categorical:
        return Kind("nominal") if isinstance(entry, type) else kind_of(entry)
    if spec is Bernoulli or isinstance(spec, UnitType) and spec.widths[0] > 1:
        # Numbers are the codes or probabilities themselves; strings have to be coded.
        return Kind("plain" if cells is None or holds_numbers(cells) else "auto")
    return kind_of(entry) if isinstance(spec, str) else Kind("plain")


# What is learned of them.


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
    hold_bits : ndarray of bool of shape (n_columns,)
        Which columns had no other numbers than 0 and 1 in training.
    """

    def __init__(self, kinds, widths, bounds, n_states, center=None, scale=None):
        self.kinds, self.widths, self.bounds, self.n_states = kinds, widths, bounds, n_states
        self.center, self.scale = center, scale
        self.starts = np.concatenate([[0], np.cumsum(widths)])
        self.one_hot = n_states > 0
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

    @property
    def n_numbers(self):
        """How many numbers a row of the model has."""
        return int(self.starts[-1])

    @property
    def n_effective(self):
        """The same, where each number of a column of one-hot ones counts as half a number.

        With twice the hidden units, tables of words and binned numbers are learned no better.
        """
        return self.n_numbers - self.widths[self.one_hot].sum() / 2

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
        codes = np.nan_to_num(X[:, self.one_hot]).astype(np.intp)
        V[np.arange(len(X))[:, np.newaxis], starts[self.one_hot] + codes] = 1
        missing = np.isnan(X)
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


def hold_bits(X):
    """Which columns of an array or CSR matrix have no other numbers than 0 and 1."""
    if issparse(X):
        others = X.indices[(X.data != 0) & (X.data != 1)]
        return np.bincount(others, minlength=X.shape[1]) == 0
    return ((X == 0) | (X == 1) | np.isnan(X)).all(axis=0)


def learn_layout(specs, table, X, column, weights=None):
    """Learn how the columns of a table become numbers of visible units.

    Parameters
    ----------
    specs : list of {"auto", type, UnitType}, or UnitType
        As of `units_of`, or the units of all columns.
    table : Encoder
    X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
        The codes and numbers of the training.
    column : callable
        From a column number, the name of the column in messages.
    weights : ndarray of shape (n_rows,), default=None
        How often each row counts.

    Returns
    -------
    layout : ColumnLayout
    """
    n_categories = table.n_categories
    if isinstance(specs, UnitType):
        return _layout_of_units(specs, n_categories, column)
    if table.is_plain and all(spec in ("auto", Bernoulli) for spec in specs):
        return ColumnLayout.of_numbers(len(specs))
    kinds, widths, n_states, bounds, most = [], [], [], [], []
    for j, (spec, n_values) in enumerate(zip(specs, n_categories.tolist(), strict=True)):
        if table.is_empty[j]:
            spec = Categorical  # with one value
        elif spec == "auto":
            spec = Categorical if n_values >= MANY_CATEGORIES else Bernoulli
        if isinstance(spec, UnitType):
            width = int(spec.widths[0])
            n_codes = width if width > 1 or spec.state_counts[0] == 1 else 0
            ends = [float(np.ravel(end)[0]) for end in spec.bounds]
        else:
            n_codes = max(n_values, 1) if spec is Categorical else 0
            width, ends = max(n_codes, 1), bounds_of_type(spec)
        kinds.append(spec)
        most.append(width if spec is Categorical or width > 1 else 2)
        widths.append(width)
        n_states.append(n_codes)
        bounds.append((0, n_codes - 1) if n_codes else ends)
    _check_categories(n_categories, np.array(most), column)
    ends = np.array(bounds, dtype=np.float64).T
    same = (ends == ends[:, :1]).all()
    bounds = tuple(ends[:, 0].tolist()) if same else tuple(ends)
    center, scale = _scales(kinds, X, weights)
    return ColumnLayout(kinds, np.array(widths), bounds, np.array(n_states), center, scale)


@cache
def bounds_of_type(kind):
    """The least and the greatest value of the units of a type that no one has given parameters."""
    return kind.neutral(1).bounds


def _check_categories(n_categories, most, column):
    """Raise an error if columns have more categories than their units have values."""
    beyond = np.flatnonzero(n_categories > most)
    if len(beyond):
        j, *others = beyond
        raise ValueError(
            f"{column(j)} has {n_categories[j]} categories, but its visible units have {most[j]} "
            f"values. Declare it as 'nominal', or leave it at 'auto', which looks at the table."
            f"{and_others(map(column, others))}"
        )


def _layout_of_units(units, n_categories, column):
    """Layout of units that a user gave for all columns."""
    widths = units.widths
    _check_categories(n_categories, np.where(widths > 1, widths, 2), column)
    starts = np.concatenate([[0], np.cumsum(widths)])[:-1]
    ends = [np.broadcast_to(end, len(units))[starts].astype(np.float64) for end in units.bounds]
    n_states = np.where((widths > 1) | (units.state_counts == 1), widths, 0)
    low, high = np.where(n_states, 0, ends[0]), np.where(n_states, n_states - 1, ends[1])
    if (low == low[0]).all() and (high == high[0]).all():
        low, high = float(low[0]), float(high[0])
    return ColumnLayout([units] * len(widths), widths, (low, high), n_states)


def _scales(kinds, X, weights):
    """Means and standard deviations of the columns of real numbers; None if there are none."""
    real = np.array([kind is Gaussian for kind in kinds])
    if not real.any():
        return None, None
    center, scale = np.zeros(len(kinds)), np.ones(len(kinds))
    values = dense(X[:, real]).astype(np.float64)
    values, weights = _counted(values, weights)
    known = ~np.isnan(values)
    n_known = (known * weights).sum(axis=0)
    n_known = np.where(n_known > 0, n_known, 1)
    mean = (np.where(known, values, 0) * weights).sum(axis=0) / n_known
    squares = np.square(np.where(known, values - mean, 0))
    deviation = np.sqrt((squares * weights).sum(axis=0) / n_known)
    # Of a constant column nothing is known but its value.
    least = LEAST_DEVIATION * np.abs(mean)
    center[real], scale[real] = mean, np.where(deviation > least, deviation, 1.0)
    return center, scale


def _counted(values, weights):
    """The rows that count and how often each does: a column of numbers, or 1 for equal ones."""
    if weights is None:
        return values, 1
    values, weights = values[weights > 0], weights[weights > 0]
    if not len(weights) or (weights == weights[0]).all():
        return values, 1
    # Divided by a power of two, which is exact, their sum is finite.
    return values, np.ldexp(weights, -np.frexp(weights.max())[1])[:, None]


# Hidden units.


def initial_hidden(spec, n_units, dtype):
    """Initial units of a hidden layer: of a type, or a copy of the user's.

    Parameters
    ----------
    spec : str, type, (str, int) or UnitType
    n_units : int
    dtype : dtype

    Returns
    -------
    units : UnitType
    """
    if isinstance(spec, UnitType):
        if spec.n_units != n_units:
            raise ValueError(f"hidden has {spec.n_units} units, but there must be {n_units}.")
        return spec.astype(dtype)
    n_bytes = int(n_units) * np.dtype(dtype).itemsize
    if n_bytes > SMALL:
        check_memory(n_bytes, f"A layer of {n_units:,} hidden units", "Use fewer.")
    kind, *options = spec if isinstance(spec, tuple) else (spec,)
    if kind == "relu" and not options:
        units = TruncatedGaussian(np.zeros(n_units), np.ones(n_units), 0.0, RELU_END)
        return units.astype(dtype)
    kind = UNIT_TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if not (isinstance(kind, type) and issubclass(kind, UnitType)) or len(options) > 1:
        raise ValueError(f"hidden may not be {spec!r}. It may be one of {HIDDEN_NAMES}.")
    if kind is Categorical:
        if not options or not isinstance(options[0], Integral) or options[0] < 2:
            raise ValueError(
                f"hidden is {spec!r}, without a number of states of 2 or more. Write it as "
                "('categorical', 3)."
            )
        return kind.neutral(n_units, dtype, n_values=int(options[0]))
    if options:
        raise ValueError(f"hidden may not be {spec!r}: only categorical units have a number.")
    return kind.neutral(n_units, dtype)


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


# Parameters of units as attributes of an estimator.


def parameter_names(units):
    """Names of the parameters of units that may be of several types."""
    return list(dict.fromkeys(name for part, _ in units.parts() for name in part.parameters()))


def published(units):
    """Parameters by name, one value for each number; NaN where a unit has no such parameter."""
    parts = units.parts()
    if len(parts) == 1:
        return dict(units.parameters())
    found = {}
    for name in parameter_names(units):
        found[name] = np.full(len(units), np.nan, units._dtype)
        for part, columns in parts:
            if name in part.parameters():
                found[name][columns] = part.parameters()[name]
    return found


def with_published(units, values, dtype):
    """Units of the same kind with the parameters of `published`, copied where the type differs."""
    parts = []
    for part, columns in units.parts():
        part = copy(part)
        for name in part.parameters():
            setattr(part, name, as_type(values[name][columns], dtype))
        parts.append(part)
    return parts[0] if len(parts) == 1 else Stacked(parts)
