"""Tabular: what estimators of tables call columns, and what users say of them."""

from collections.abc import Hashable

import numpy as np
from sklearn.utils.validation import validate_data

from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._memory import out_of_memory, tell_of_memory
from sklearn_boltz.tables._dates import Dates
from sklearn_boltz.tables._frames import is_frame, names_of
from sklearn_boltz.tables._kinds import Need, kind_of, number_of_column, per_column
from sklearn_boltz.tables._packing import packed, unpacked
from sklearn_boltz.tables._phrases import having, some_of


class Tabular:
    """Methods of an estimator of tables: names and declared kinds of columns, and its page."""

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
        warn(f"{type(self).__name__}: {message}")

    def _own_error(self, error):
        """An error as one that names this estimator; the same one if it does."""
        return out_of_memory(self, error) if isinstance(error, MemoryError) else error

    # Of the columns of a data frame whose labels are no strings: scikit-learn knows names only.
    _other_labels = None

    def _validate_data(self, X, *, reset, **options):
        """`validate_data`, which compares names of columns; other labels are compared here."""
        checked = validate_data(self, X, reset=reset, **options)
        labels = names_of(X) if is_frame(X) else []
        labels = None if all(isinstance(label, str) for label in labels) else packed(labels)
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
        """Labels of the columns of a data frame; None for an array, and for 0, 1, ...."""
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
        table = vars(self).get("_encoder")
        are_codes = table is not None and table.are_codes
        return table.columns[j].title if are_codes else f"column {self._keys()[j]!r}"

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
        """Entries of the parameter `columns`, one for each column."""
        return per_column(self.columns, self._variable, self.n_features_in_)

    def _kinds(self, X):
        """Kinds that the user declares, one for each column; None if nothing."""
        if isinstance(self.columns, str) and self.columns == "auto":
            return None
        return list(map(kind_of, self._entries()))

    def _given(self, given, values=lambda j: ()):
        """Numbers of the columns for which a user gives values, and their codes, or numbers.

        `given` is a dict from names or numbers of columns to values as the training table has them,
        or None. `values` makes of a column of numbers that stand for themselves those it may have;
        none for any numbers.
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

    def _given_numbers(self, given):
        """The given cells of columns of numbers, by the numbers of the columns."""
        found = {self._variable(feature): value for feature, value in (given or {}).items()}
        table = self._encoder
        return {j: table.columns[j].cell_of(v) for j, v in found.items() if table.is_number[j]}
