"""Tables in, tables out: the values of columns as codes, and the way back."""

from functools import partial

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.tables._bins import MOST, most_bins, spread_evenly
from sklearn_boltz.tables._categories import Categories
from sklearn_boltz.tables._cells import as_array, columns_of, missing_cells, places_of
from sklearn_boltz.tables._coded import uncoded
from sklearn_boltz.tables._column import Plain, of_each
from sklearn_boltz.tables._form import holds_numbers
from sklearn_boltz.tables._frames import (
    declared_values,
    frame_like,
    is_frame,
    names_of,
    with_cells,
)
from sklearn_boltz.tables._kinds import OF_LEVELS, OF_NUMBERS, Kind, Need
from sklearn_boltz.tables._libraries import Header
from sklearn_boltz.tables._numbers import Binned, Scored, learn_again, learn_numbers
from sklearn_boltz.tables._packing import packed, unpacked
from sklearn_boltz.tables._recognition import PLAIN, hold_amounts, most_codes, recognise_columns
from sklearn_boltz.tables._remedies import Place
from sklearn_boltz.tables._values import as_cells, beyond_floats, find_places, in_type_of

# Of a table that is looked at for no model.
NO_NEED = Need()


def _which(test):
    """A property: the columns of which a test is true, an array of bool."""
    return property(lambda self: np.array([test(column) for column in self.columns], dtype=bool))


class Encoder:
    """A fitted table: its container, the values of its columns, and their codes. A value.

    Parameters
    ----------
    columns : list of Column
    header : Header or None
        Of the training data, if they were a data frame.
    dtype : dtype or None
        Of the training data, if they were an array of numbers.
    coding : Coding, ColumnLayout or None
        What a network, or the units of an RBM, makes of codes; None if it takes them as they are.
    unseen : Unseen or None
        How values that `fit` did not see are treated.

    Attributes
    ----------
    is_plain : bool
        Whether all columns hold numbers, which stand for themselves.
    is_open : bool
        Whether plain numbers may have other values than those of the training. In an array of
        numbers, these stand for themselves, and others are errors.
    n_categories : ndarray of int of shape (n_columns,)
        Number of categories of each column, 0 for numbers.
    is_word : ndarray of bool of shape (n_columns,)
        Which columns have categories.
    is_empty : ndarray of bool of shape (n_columns,)
        Which of them have none, as no cell of the training had a value.
    is_binned : ndarray of bool of shape (n_columns,)
        Which columns hold numbers in bins.
    is_scored : ndarray of bool of shape (n_columns,)
        Which columns hold numbers with normal scores.
    """

    # Whether rows are arrays of the codes themselves.
    are_codes = False

    def __init__(self, columns, header=None, dtype=None, coding=None, unseen=None):
        self.columns, self.header, self.dtype = columns, header, dtype
        self.coding, self.unseen = coding, unseen
        values = [column.categories for column in columns]
        self.n_categories = np.array([0 if v is None else len(v) for v in values], dtype=int)
        self.is_word = np.array([v is not None for v in values], dtype=bool)
        self.is_plain = not self.is_word.any()
        self.is_open = header is not None or dtype is None
        self.is_empty = self.is_word & (self.n_categories == 0)
        self.is_binned = np.array([column.bins is not None for column in columns], dtype=bool)
        self.is_scored = np.array([column.scores is not None for column in columns], dtype=bool)

    def __getstate__(self):
        return {name: packed(value) for name, value in vars(self).items()}

    def __setstate__(self, state):
        vars(self).update((name, unpacked(value)) for name, value in state.items())

    @classmethod
    def of_numbers(cls, X):
        """Encoder of numbers that stand for themselves, in a frame, an array or a matrix."""
        if is_frame(X):
            return cls(list(map(Plain, places_of(X))), Header.of(X))
        return cls([Plain(Place(None, j)) for j in range(X.shape[1])], None, X.dtype)

    def of_codes(self, kinds, dtype):
        """Encoder of its codes: 0, 1, ... in columns whose kinds list these, and plain numbers."""
        columns = [
            Plain(own.place, kind) if kind.levels is None
            else Categories(own.place, kind, categories=np.array(kind.levels))
            for own, kind in zip(self.columns, kinds, strict=True)
        ]  # fmt: skip
        found = Encoder(columns, None, dtype)
        found.are_codes = True
        return found

    @classmethod
    def learn(cls, X, numbers=None, need=NO_NEED, kinds=None, weights=None):
        """Learn the columns of a table.

        `numbers` are the same as numbers, where it holds numbers only; `need` are the kinds of
        columns that the model takes, by default neither codes nor bins; `kinds` are the user's
        declarations, None to look at all; `weights` say how often each row counts.
        """
        names = np.array([kind.name for kind in kinds or [Kind()]])
        frame = X if is_frame(X) else None
        # Numbers in an array stand for themselves in models of codes, and signs in a frame.
        is_plain = numbers is not None and np.isin(names, PLAIN).all()
        stay = frame is None and ((names == "plain").all() or not need.reads_levels)
        if is_plain and not stay and not kinds and need.signs:
            stay = ((np.abs(numbers) == 1) | np.isnan(numbers)).all()
        if is_plain and stay:
            table = cls.of_numbers(X)
        else:
            header = None if frame is None else Header.of(frame)
            is_numeric = numbers is not None or isinstance(X, np.ndarray) and beyond_floats(X)
            dtype = getattr(X, "dtype", None) if is_numeric else None
            table = cls(recognise_columns(X, numbers, need, kinds), header, dtype)
        binned, is_open = np.isin(names, OF_NUMBERS), names == "auto"
        if need.bins and is_open.any() and (need.reads_levels or not issparse(X)):
            binned = binned | is_open & hold_amounts(table.columns, X, most_codes(X, need))
        if not binned.any():
            return table
        other_bits = np.log2(np.maximum(table.n_categories[~binned], 2)).sum()
        n_bits = max(need.n_bits - other_bits, 0) / binned.sum()
        most = int(min(most_bins(need.most_bins, binned.sum()), max(2, 2.0**n_bits)))
        return table.with_bins(X, binned, weights, most, binned & np.isin(names, need.scored))

    @property
    def template(self):
        """A data frame without rows that has the columns and types of the training data.

        None if these were an array, or where the library of the frame is not installed.
        """
        return None if self.header is None else self.header.empty_frame()

    @property
    def kinds(self):
        """Kinds of the columns, as `columns` calls them; None for plain numbers."""
        return [column.found_kind for column in self.columns]

    @property
    def categories(self):
        """Values of each column in the order of their codes, or None for a column of numbers."""
        return [column.values for column in self.columns]

    def labels(self, j, values):
        """The values of a column as the training table has them; for numbers, those given.

        A model may have more values than the table: of a constant column.
        """
        categories = self.columns[j].categories
        if categories is None:
            return values
        n_unused = max(len(values) - len(categories), 0)
        unused = [f"(unused {k + 1})" if k else "(unused)" for k in range(n_unused)]
        return np.append(categories, np.array(unused, dtype=object)) if unused else categories

    def of_categories(self, probability, j):
        """Probabilities of the values of column j that are in the training table."""
        n_values = self.n_categories[j]
        if self.is_scored[j]:  # of its bins
            return probability
        if self.is_empty[j]:  # nothing is known: the prior
            return np.full_like(probability, 1 / probability.shape[1])
        if not 0 < n_values < probability.shape[1]:
            return probability
        probability = probability[:, :n_values]
        return probability / probability.sum(axis=1, keepdims=True)

    def n_open_values(self, n_values):
        """The numbers of values of columns that may have more, -1 for others; as `Unseen` asks.

        `n_values` are those of a model of codes.
        """
        # There is a code for every number, and a list of values is complete.
        is_known = self.is_number | self.is_listed
        plain = n_values if self.is_open else -1
        return np.where(is_known, -1, np.where(self.is_word, self.n_categories, plain))

    # Columns of numbers in bins, or with normal scores.
    is_number = _which(lambda column: isinstance(column, (Binned, Scored)))
    # Those that hold numbers or dates, also as levels; and of these, those that are no declared
    # levels.
    holds_numbers = _which(lambda column: column.holds_numbers)
    has_means = _which(lambda c: c.holds_numbers and c.kind.name not in OF_LEVELS)
    # See `Column.order_kind`.
    is_ordered = _which(lambda column: column.order_kind == "ordinal")
    order_kinds = property(lambda self: np.array([column.order_kind for column in self.columns]))
    # Columns of which the user lists the values, so that there are no others.
    is_listed = _which(lambda column: column.kind.levels is not None)

    def declared(self, *kinds):
        """Which columns the user, or their type, declares to be of some kinds; an array of bool."""
        return np.isin([column.kind.name for column in self.columns], kinds)

    def without_values(self, empty):
        """The table where some columns have no category: no cell that counts has a value."""
        none = np.empty(0)
        return self.each(lambda one, out: Categories.of(one, none) if out else one, empty)

    def grown(self, X, values):
        """The table with more categories, and where the old ones now are.

        X are rows whose types may declare an order, and `values` a dict from numbers of columns to
        lists of new values. The places are those of the old categories, by columns; one whose order
        is not known does not grow.
        """
        columns, places = list(self.columns), {}
        names = names_of(X) if is_frame(X) else None
        for j, new in values.items():
            order = None if names is None else declared_values(X[names[j]])[0]
            grown = columns[j].grown(new, order)
            if grown is not None:
                old = columns[j].categories.tolist()
                places[j] = find_places(grown.categories.tolist(), old)
                columns[j] = grown
        return self.each(lambda _, column: column, columns), places

    def each(self, change, *of_columns):
        """The table with a function of each column, and of what goes with it, in its place."""
        columns = [change(*one) for one in zip(self.columns, *of_columns, strict=True)]
        return Encoder(columns, self.header, self.dtype, self.coding, self.unseen)

    def of_model(self, coding=None, unseen=None):
        """The encoder with what a model makes of codes, and of values that `fit` did not see."""
        other = object.__new__(Encoder)
        vars(other).update(vars(self), coding=coding, unseen=unseen)
        return other

    def with_bins(self, X, binned, sample_weight=None, most=MOST, scored=None):
        """The table where some columns of numbers have bins, or normal scores.

        Of other columns, -1 and 1 become levels. X are the rows of the training; `sample_weight`
        says how often each counts, or each cell. `binned` and `scored` tell which columns; there
        are at most `most` bins of each.
        """
        scored = np.zeros(len(binned), dtype=bool) if scored is None else scored
        weights = [sample_weight] * len(binned) if np.ndim(sample_weight) < 2 else sample_weight.T

        def change(column, titled, weights, is_number, is_scored):
            if is_number:
                treatment = Scored if is_scored else Binned
                return learn_numbers(treatment, column, titled[1], weights, most)
            return Categories.of_signs(column, titled[1]) if column.categories is None else column

        return self.each(change, columns_of(X), weights, binned, scored)

    def with_levels(self):
        """The table where 0 and 1 are levels, not numbers that stand for themselves."""
        bits = np.array([0, 1])
        return self.each(lambda c: Categories.of(c, bits) if c.categories is None else c)

    def with_bins_of(self, X, weights):
        """The table with the bins and normal scores of other rows, no more bins than it has."""
        return self.each(lambda one, titled: learn_again(one, titled[1], weights), columns_of(X))

    def with_values_of(self, codes, X):
        """The table with the categories that some rows have, or that are declared."""
        names = names_of(X) if is_frame(X) else []
        declared = self.is_listed | self.is_number
        for j, name in enumerate(names):
            declared[j] |= declared_values(X[name])[0] is not None
        return self.each(lambda c, own, kept: c if kept else c.seen_in(own), codes.T, declared)

    def log_density(self, X, codes=None):
        """ln of the densities of numbers given their bins, summed over the cells of each row.

        If there are codes of all cells, a missing number has the mean ln of the density of its bin,
        and a code that is NaN leaves its cell out.
        """
        total = np.zeros(X.shape[0])
        for j, (column, (_, cells)) in enumerate(zip(self.columns, columns_of(X), strict=True)):
            if column.bins is None:
                continue
            numbers = column.finite(cells)
            found = column.bins.log_density(numbers)
            if codes is not None:
                completed = np.isnan(numbers) & ~np.isnan(codes[:, j])
                means = column.bins.mean_log_density
                # A model has two values at least, a column that is all but empty a single bin.
                places = codes[completed, j].astype(np.intp).clip(max=len(means) - 1)
                found[completed] = means[places]
                found[np.isnan(codes[:, j])] = 0
            total += found
        return total

    def encode(self, X, unseen="error"):
        """The rows of a table as an array of numbers, NaN where a cell is missing.

        An array of numbers is returned as it is where these stand for themselves. `unseen` is that
        of `Categories.encode`.
        """
        are_numbers = issparse(X) or isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        if are_numbers and (self.is_plain or self.are_codes):
            return X
        # That columns are too few or too many is an error of scikit-learn.
        coded = of_each(
            (column.title, partial(column.encode, cells, unseen))
            for column, (_, cells) in zip(self.columns, columns_of(X), strict=False)
        )
        # Codes and flags are no reason for floats.
        coded = np.column_stack(coded) if coded else np.empty((len(X), 0))
        if not are_numbers or X.dtype.kind != "f" and np.isnan(coded).any():
            return coded
        return coded.astype(X.dtype, copy=False)

    def decode(self, codes, generator=None, given=()):
        """Rows of codes as a table like the training data.

        A generator draws numbers from their bins, spread evenly. `given` is a dict from columns of
        numbers to the cells of rows, or that of all.
        """
        spread = partial(spread_evenly, generator=generator)
        uniform = None if generator is None else spread
        values = [column.decode(codes[:, j], uniform) for j, column in enumerate(self.columns)]
        for j, value in dict(given).items():
            values[j][:] = value
        values = [column.typed(own) for column, own in zip(self.columns, values, strict=True)]
        template = self.template
        if template is not None:
            return frame_like(template, values, [column.levels for column in self.columns])
        if self.is_plain:
            return _cast(codes, self.dtype)
        return _stacked(values, self.dtype)

    def fill(self, X, codes, missing, generator=None, numbers=()):
        """A copy of a table in which the missing cells have values; all others are as they were.

        A generator draws numbers from their bins, independently: several draws of a cell are to
        show how uncertain it is. `numbers` is a dict from columns of numbers to these, where they
        are known.
        """
        X = uncoded(X)
        X = X if is_frame(X) else as_array(X)
        missing, values, known = missing & missing_cells(X), {}, dict(numbers)
        uniform = None if generator is None else lambda places: generator.random(len(places))
        for j in np.flatnonzero(missing.any(axis=0)):
            rows = missing[:, j]
            found = self.columns[j].decode(codes[rows, j].astype(np.float64), uniform)
            found = self.columns[j].back(known[j][rows]) if j in known else found
            values[j] = self.columns[j].typed(found)
        if not is_frame(X):
            return _filled_array(X, values, missing)
        cells = {j: (missing[:, j], found) for j, found in values.items()}
        orders = {j: self.columns[j].levels for j in values}
        return with_cells(X, cells, orders, self.template if values else None)


def _stacked(values, dtype):
    """Columns as an array of a type of numbers, if it can hold them; None means objects."""
    if dtype is not None and all(column.dtype.kind != "O" for column in values):
        return _cast(np.column_stack([column.astype(float) for column in values]), dtype)
    cells = np.column_stack(list(map(as_cells, values)))
    return cells if dtype is None or not holds_numbers(cells.ravel()) else cells.astype(dtype)


def _filled_array(X, values, missing):
    filled = np.array(X, dtype=X.dtype if X.dtype.kind in "biuf" else object)
    for j, found in values.items():
        rows = missing[:, j]
        if filled.dtype.kind == "O":
            found = in_type_of(found, filled[~rows, j])
        filled[rows, j] = as_cells(found)
    return filled


def _cast(values, dtype):
    """Numbers in a type, if it can hold them."""
    if dtype is None or dtype == values.dtype or dtype.kind not in "biuf":
        return values
    if dtype.kind in "biu" and not np.array_equal(values, np.rint(values)):
        return values
    return values.astype(dtype)
