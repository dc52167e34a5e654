"""Units of the columns of a table, as a user declares them or as the data show."""

from functools import cache

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._methods import dense
from sklearn_boltz._warnings import warn_once
from sklearn_boltz.numerics._threads import slices_of_rows
from sklearn_boltz.restricted.model._layout import ROUNDING, ColumnLayout
from sklearn_boltz.tables._cells import columns_of, grey_levels
from sklearn_boltz.tables._form import holds_numbers
from sklearn_boltz.tables._kinds import IN_ORDER, NAMES, Kind, kind_of
from sklearn_boltz.tables._phrases import and_others
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType

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
# The least standard deviation by which a column is divided, relative to its mean.
LEAST_DEVIATION = 1e-6
# Cells that are looked at together: so many stay in a cache.
CELLS = 2**18


# What the user says about the columns.


def specs_of(estimator):
    """The units that the parameter `columns` gives to each column; see `units_of`.

    Returns
    -------
    specs : list of {"auto", type, UnitType}, or UnitType
        The units of all columns, if they are given together.
    """
    columns, n_columns = estimator.columns, estimator.n_features_in_
    if isinstance(columns, str):
        return [units_of(columns)] * n_columns
    if not isinstance(columns, UnitType):
        return list(map(units_of, estimator._entries()))
    if columns.n_units != n_columns:
        raise ValueError(
            f"columns has {columns.n_units} units, but there must be {n_columns}: one for each "
            "column."
        )
    return columns


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
    if isinstance(entry, str) and entry in ("auto", *UNITS_OF_COLUMNS):
        return UNITS_OF_COLUMNS.get(entry, "auto")
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
        As of `specs_of`.
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


def are_probabilities(X):
    """Whether X is an array or a sparse matrix of numbers within [0, 1]."""
    cells = X.tocsr().data if issparse(X) else X  # other formats keep their cells in other ways
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        return False
    low = np.fmin.reduce(cells, axis=None, initial=0)
    return bool(low >= -ROUNDING and np.fmax.reduce(cells, axis=None, initial=1) <= 1 + ROUNDING)


def warn_of_pictures(name, X, kinds):
    """Warn that columns of an array may be pixels, which are taken for levels or bins."""
    is_open = kinds is None or all(kind.is_open for kind in kinds)
    are_numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
    levels = grey_levels(X) if is_open and are_numbers else None
    if levels is not None:
        warn_once(
            "pictures",
            f"{name}: X has whole numbers from 0 to {np.nanmax(X):g} in "
            f"{X.shape[1]} columns, as pictures have, and they are taken for levels or bins. "
            f"If they are grey levels, scale them to [0, 1] by X / {levels}: a pixel is then "
            "the probability of a 1.",
        )


# What is learned of them.


def hold_bits(X):
    """Which columns of an array or CSR matrix have no other numbers than 0 and 1."""
    if issparse(X):
        others = X.indices[(X.data != 0) & (X.data != 1)]
        return np.bincount(others, minlength=X.shape[1]) == 0
    found = np.ones(X.shape[1], dtype=bool)
    for rows in slices_of_rows(len(X), X.shape[1], CELLS):
        some = X[rows]
        found &= ((some == 0) | (some == 1) | np.isnan(some)).all(axis=0)
    return found


def learn_layout(specs, table, X, weights=None):
    """Learn how the columns of a table become numbers of visible units.

    Parameters
    ----------
    specs : list of {"auto", type, UnitType}, or UnitType
        As of `specs_of`.
    table : Encoder
    X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
        The codes and numbers of the training.
    weights : ndarray of shape (n_rows,), default=None
        How often each row counts.

    Returns
    -------
    layout : ColumnLayout
    """
    n_categories = table.n_categories
    if isinstance(specs, UnitType):
        return _layout_of_units(specs, table)
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
    _check_categories(table, np.array(most))
    ends = np.array(bounds, dtype=np.float64).T
    same = (ends == ends[:, :1]).all()
    bounds = tuple(ends[:, 0].tolist()) if same else tuple(ends)
    center, scale = _scales(kinds, X, weights)
    return ColumnLayout(kinds, np.array(widths), bounds, np.array(n_states), center, scale)


@cache
def bounds_of_type(kind):
    """The least and the greatest value of the units of a type that no one has given parameters."""
    return kind.neutral(1).bounds


def _check_categories(table, most):
    """Raise an error if columns have more categories than their units have values."""
    n_categories, columns = table.n_categories, table.columns
    beyond = np.flatnonzero(n_categories > most)
    if len(beyond):
        j, *others = beyond
        raise ValueError(
            f"{columns[j].title} has {n_categories[j]} categories, but its visible units have "
            f"{most[j]} values. Declare it as 'nominal', or leave it at 'auto', which looks at the "
            f"table.{and_others(columns[k].title for k in others)}"
        )


def _layout_of_units(units, table):
    """Layout of units that a user gave for all columns."""
    widths = units.widths
    _check_categories(table, np.where(widths > 1, widths, 2))
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
