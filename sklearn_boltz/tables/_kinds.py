"""What a user says of the columns of a table: the parameter `columns`."""

import warnings
from collections.abc import Hashable
from difflib import get_close_matches
from numbers import Integral, Number
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import validate_data

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.numerics._memory import out_of_memory, tell_of_memory
from sklearn_boltz.tables._bins import MOST
from sklearn_boltz.tables._cells import N_NAMES, having, some_of
from sklearn_boltz.tables._codec import Dates
from sklearn_boltz.tables._frames import is_frame, names_of
from sklearn_boltz.tables._packing import packed, unpacked

# Of columns that are codes in every model, and of numbers.
OF_LEVELS = ("binary", "nominal", "ordinal")
OF_NUMBERS = ("number", "binned", "count")
NAMES = ("auto", *OF_LEVELS, *OF_NUMBERS)


class Need(NamedTuple):
    """What a model takes of the columns of a table.

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
    kinds : tuple of str
        What the parameter `columns` may name.
    """

    codes: bool = False
    signs: bool = False
    bins: bool = False
    scored: tuple = ()
    most_bins: int = MOST
    n_bits: float = np.inf
    kinds: tuple = NAMES

    @property
    def reads_levels(self):
        """Whether whole numbers of an array are levels, as those of a data frame are."""
        return self.bins and not self.codes


class Kind(NamedTuple):
    """What a column is.

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

    Parameters
    ----------
    kinds : dict
        From the name or number of each column to its kind.
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

    Parameters
    ----------
    column : object
    labels : list
        Of all columns: in an array, their names by default.
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
        raise ValueError(f"There is no variable {column!r}; there are {some}{more}.")
    if not isinstance(column, Integral):
        raise ValueError(f"There is no variable {column!r}: give its name or its number.")
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"There is no variable {column} among {n_columns}, which are numbered from 0."
        )
    return int(column) % n_columns


def per_column(columns, variable, n_columns):
    """What `columns` says of each column: its entry, or "auto".

    Parameters
    ----------
    columns : str, list, dict or object
        A list has an entry for each column, a dict for some; all else is an entry for all.
    variable : callable
        From the name or number of a column to its number.
    n_columns : int

    Returns
    -------
    entries : list
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

    Parameters
    ----------
    entry : str, sequence or tuple
        A name; the values of a nominal column; or a pair of "nominal" or "ordinal" and the values.
    names : sequence of str
        Those that the estimator knows.

    Returns
    -------
    kind : Kind
    """
    if isinstance(entry, str) and entry in names:
        return Kind(entry)
    name, levels = "nominal", entry
    if isinstance(entry, tuple) and len(entry) == 2 and entry[0] in ("nominal", "ordinal"):
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


class Tabular:
    """Of an estimator of tables: what columns are called and declared to be, and its page."""

    # What the model takes of the columns.
    _need = Need()

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        tell_of_memory(cls)

    _doc_link_module = "sklearn_boltz"
    _doc_link_template = (
        "https://sklearn-boltz.readthedocs.io/en/stable/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    def _doc_link_url_param_generator(self):
        return {"estimator_module": "sklearn_boltz", "estimator_name": type(self).__name__}

    def _warn(self, message):
        warnings.warn(f"{type(self).__name__}: {message}", stacklevel=find_stack_level())

    def _own_error(self, error):
        """An error as one that names this estimator; the same one if it does."""
        return out_of_memory(self, error) if isinstance(error, MemoryError) else error

    # Of the columns of a data frame whose labels are no strings: scikit-learn knows names only.
    _other_labels = None

    def _validate_data(self, X, *, reset, **options):
        """`validate_data`, which compares names of columns; other labels are compared here."""
        checked = validate_data(self, X, reset=reset, **options)
        labels = names_of(X) if is_frame(X) else []
        if all(isinstance(label, str) for label in labels):
            labels = None
        labels = packed(labels)
        if reset:
            self._other_labels = labels
        elif labels != self._other_labels and None not in (labels, self._other_labels):
            own, known = some_of(unpacked(labels)), some_of(unpacked(self._other_labels))
            raise ValueError(
                f"{type(self).__name__}: X has the columns {own}, but the table of `fit` had "
                f"{known}. Select these, in this order."
            )
        return checked

    def _column_labels(self):
        """What a user calls the columns of a data frame; None for an array, and for 0, 1, ...."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return list(names)
        labels = unpacked(self._other_labels)
        return None if labels == list(range(self.n_features_in_)) else labels

    def _keys(self):
        """The labels of the columns, or their numbers."""
        return self._column_labels() or list(range(self.n_features_in_))

    def _column(self, j):
        """How error messages name column j."""
        return f"column {self._keys()[j]!r}"

    def _have(self, columns):
        """How error messages name columns by number, with their verb."""
        return having(map(self._column, columns))

    def _input_names(self, input_features=None):
        """Names of the columns: as given, or as labelled in `fit`, or x0, x1, ..."""
        seen = self._column_labels()
        if input_features is None:
            default = [f"x{i}" for i in range(self.n_features_in_)]
            return default if seen is None else seen
        if seen is not None and list(map(str, seen)) != list(map(str, input_features)):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(input_features) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(input_features)}"
            )
        return list(input_features)

    def _variable(self, feature):
        """Number of a column given by its label or its number."""
        return number_of_column(feature, self._input_names())

    def _is_one(self, features):
        """Whether a user names one column, not several: a tuple may be a label."""
        is_label = isinstance(features, Hashable) and features in (self._column_labels() or ())
        return is_label or isinstance(features, str) or not np.iterable(features)

    def _variables(self, features):
        """Numbers of the columns in a user's number, label or sequence of them."""
        one = self._is_one(features)
        variables = [self._variable(f) for f in ([features] if one else features)]
        if not variables or len(set(variables)) < len(variables):
            raise ValueError(
                f"A list of columns must name at least one, each once; got {features!r}."
            )
        return variables

    def _entries(self):
        """What the parameter `columns` says of each column."""
        return per_column(self.columns, self._variable, self.n_features_in_)

    def _kinds(self, X):
        """What the user says of each column, a Kind each; None if nothing."""
        if isinstance(self.columns, str) and self.columns == "auto":
            return None
        return [kind_of(entry, self._need.kinds) for entry in self._entries()]

    def _given(self, given, values=lambda j: ()):
        """The columns for which a user gives values, and their codes, or numbers themselves.

        Parameters
        ----------
        given : dict or None
            From names or numbers of columns to values as the training table has them.
        values : callable
            From a column of numbers that stand for themselves to those it may have; to none for
            any numbers.

        Returns
        -------
        columns : ndarray of int
        codes : ndarray of int or float
        """
        found = {}
        for feature, value in (given or {}).items():
            j = self._variable(feature)
            column = self._encoder.columns[j]
            legal = values(j) if column.categories is None else column.categories
            code = column.code_of(value, legal)
            if j in found or code is None:
                what = "two values" if j in found else f"the value {value!r}"
                shown = ", ".join(map(str, legal[:4])) + (", ..." * (len(legal) > 4))
                remedy = "a date" if isinstance(column.codec, Dates) else "a number"
                if len(legal) and column.bins is None and column.scores is None:
                    remedy = f"one of its values: {shown}"
                remedy = "it once, by name or by number" if j in found else remedy
                raise ValueError(
                    f"{type(self).__name__}.sample: `given` has {what} for {self._column(j)}. "
                    f"Give {remedy}."
                )
            found[j] = code
        codes = np.array(list(found.values()), dtype=None if found else int)
        return np.array(list(found), dtype=int), codes
