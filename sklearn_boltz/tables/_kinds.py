"""Kinds of columns, as users declare them by the parameter `columns`."""

from collections.abc import Hashable
from difflib import get_close_matches
from numbers import Integral, Number
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_boltz.tables._bins import MOST
from sklearn_boltz.tables._phrases import N_NAMES

# Of columns that are codes in every model, and of numbers; those of levels in an order.
OF_LEVELS = ("binary", "nominal", "ordinal", "cyclic")
OF_NUMBERS = ("number", "binned", "count")
IN_ORDER = ("ordinal", "cyclic")
NAMES = ("auto", *OF_LEVELS, *OF_NUMBERS)


class Need(NamedTuple):
    """Columns that a model takes.

    Attributes
    ----------
    codes : bool
        The integers 0, 1, 2, ..., also those in a data frame.
    signs : bool
        A table of -1 and 1.
    bins : bool
        Numbers that are no codes, which are put into bins.
    scored : tuple of str
        The kinds of numbers that have normal scores beside the codes instead.
    most_bins : int
        Bins of a column at most.
    n_bits : float
        All columns have at most about as many joint states as this many bits; columns of numbers
        get fewer bins where necessary.
    """

    codes: bool = False
    signs: bool = False
    bins: bool = False
    scored: tuple = ()
    most_bins: int = MOST
    n_bits: float = np.inf

    @property
    def reads_levels(self):
        """Whether whole numbers of an array are levels, as those of a data frame are."""
        return self.bins and not self.codes


class Kind(NamedTuple):
    """Kind of a column.

    Attributes
    ----------
    name : str
        One of `NAMES`; of units of RBMs, "plain" for numbers that stand for themselves.
    levels : list or None
        The values of the column, in order, where they are declared.
    """

    name: str = "auto"
    levels: list | None = None

    @property
    def is_open(self):
        """Whether the table is to be looked at."""
        return self.name == "auto"


def grouped(kinds):
    """Kinds of columns in a line: how many have each, and the first of these.

    `kinds` is a dict from the name or number of each column.
    """
    columns = {}
    for column, kind in kinds.items():
        name = kind if isinstance(kind, str) else type(kind).__name__
        columns.setdefault(name, []).append(column)
    return ", ".join(
        f"{len(those):,} {kind} ({', '.join(map(str, those[:N_NAMES]))}"
        f"{', ...' * (len(those) > N_NAMES)})"
        for kind, those in columns.items()
    )


def number_of_column(column, labels):
    """Number of a column given by its label; or by its number, where no label is a number.

    `labels` are those of all columns: in an array, their names by default.
    """
    n_columns, is_hashable = len(labels), isinstance(column, Hashable)
    if is_hashable and column in labels:
        return labels.index(column)
    are_numbers = any(isinstance(label, Number) for label in labels)
    if is_hashable and (are_numbers or not isinstance(column, Integral)):
        names = [label for label in labels if isinstance(label, str)]
        alike = get_close_matches(column, names) if isinstance(column, str) else []
        some = ", ".join(map(repr, alike or labels[:N_NAMES]))
        more = f", ... ({n_columns} in all)" if n_columns > N_NAMES else ""
        raise ValueError(f"There is no column {column!r}; there are {some}{more}.")
    if not isinstance(column, Integral):
        raise ValueError(f"There is no column {column!r}: give its name or its number.")
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"There is no column {column} among {n_columns}, which are numbered from 0."
        )
    return int(column) % n_columns


def per_column(columns, variable, n_columns):
    """Entry of `columns` for each column, or "auto".

    A list has an entry for each, a dict for some; all else is an entry for all. `variable` finds
    the number of a column from its name or number.
    """
    if isinstance(columns, dict):
        entries = ["auto"] * n_columns
        for column, entry in columns.items():
            entries[variable(column)] = entry
        return entries
    if not isinstance(columns, (list, np.ndarray)):
        return [columns] * n_columns
    if len(columns) != n_columns:
        raise InvalidParameterError(
            f"columns has {len(columns)} entries, but the table has {n_columns} columns. Give a "
            "dict for some columns, or one kind for all."
        )
    return list(columns)


def kind_of(entry, names=NAMES):
    """The kind that an entry of `columns` stands for.

    It is one of `names`; the values of a nominal column; or a pair of the name of a kind and the
    values.
    """
    if isinstance(entry, str) and entry in names:
        return Kind(entry)
    name, levels = "nominal", entry
    if isinstance(entry, tuple) and len(entry) == 2 and entry[0] in ("nominal", *IN_ORDER):
        name, levels = entry
    if isinstance(levels, (list, tuple, range, np.ndarray)) and name in names:
        values = list(levels.tolist() if isinstance(levels, np.ndarray) else levels)
        cells = [value for value in values if isinstance(value, (str, Number))]
        if values and len(set(cells)) == len(values):
            return Kind(name, values)
    raise InvalidParameterError(
        f"columns has {entry!r} for a column; it may be one of {list(names)}, or the list of its "
        "values, of which none may occur twice."
    )
