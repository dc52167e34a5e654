"""Tables in, tables out: the values of columns as codes, and the way back."""

import warnings
from collections import Counter
from functools import partial
from numbers import Real

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._warnings import find_stack_level
from sklearn_boltz.tables._bins import MOST, most_bins, spread_evenly
from sklearn_boltz.tables._cells import (
    MOST_LEVELS,
    as_array,
    as_numbers,
    columns_of,
    is_whole,
    missing_cells,
    places_of,
    unmasked,
)
from sklearn_boltz.tables._codec import Dates, type_of_dates
from sklearn_boltz.tables._column import (
    MOST_CODES,
    Column,
    UnfitColumn,
    are_amounts,
    are_bits,
    categories_of,
)
from sklearn_boltz.tables._frames import (
    Header,
    are_numbers,
    compound,
    declared_values,
    frame_like,
    is_frame,
    library_of,
    names_of,
    with_cells,
    with_columns,
)
from sklearn_boltz.tables._kinds import OF_LEVELS, OF_NUMBERS, Kind, Need
from sklearn_boltz.tables._packing import packed, unpacked
from sklearn_boltz.tables._phrases import and_others, having
from sklearn_boltz.tables._remedies import Place
from sklearn_boltz.tables._values import (
    as_cells,
    beyond_floats,
    find_places,
    in_type_of,
    is_a_float,
    is_missing,
)

# Kinds of columns whose numbers stand for themselves in an array.
PLAIN = ("auto", "plain")
# Of a table that is looked at for no model.
NO_NEED = Need()


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
        What is known of values that `fit` did not see.

    Attributes
    ----------
    is_plain : bool
        Whether all columns hold numbers, which stand for themselves.
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
        places = places_of(X)
        columns = [Column(f"column {place.name!r}", place=place) for place in places]
        return cls(columns, Header.of(X)) if is_frame(X) else cls(columns, None, X.dtype)

    @classmethod
    def of_codes(cls, kinds, dtype):
        """Encoder of codes: 0, 1, ... in columns whose kinds list these, and plain numbers."""
        columns = [
            Column(
                f"column {j}", None if kind.levels is None else np.array(kind.levels), kind=kind,
                place=Place(None, j),
            )
            for j, kind in enumerate(kinds)
        ]  # fmt: skip
        found = cls(columns, None, dtype)
        found.are_codes = True
        return found

    @classmethod
    def learn(cls, X, numbers=None, need=NO_NEED, kinds=None, weights=None):
        """Learn the columns of a table.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix
        numbers : ndarray or sparse matrix, default=None
            The same as numbers, where it holds numbers only.
        need : Need
            What the model takes; by default, neither codes nor bins.
        kinds : list of Kind, default=None
            What the user says of each column; None to look at all.
        weights : ndarray of float64 of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        table : Encoder
        """
        names = np.array([kind.name for kind in kinds or [Kind()]])
        frame = X if is_frame(X) else None
        # Numbers in an array stand for themselves in models of codes, and signs in a frame.
        is_plain = numbers is not None and np.isin(names, PLAIN).all()
        stay = frame is None and (not need.reads_levels or (names == "plain").all())
        if is_plain and (stay or not kinds and need.signs and _has_signs(numbers)):
            table = cls.of_numbers(X)
        else:
            header = None if frame is None else Header.of(frame)
            is_numeric = numbers is not None or isinstance(X, np.ndarray) and beyond_floats(X)
            dtype = getattr(X, "dtype", None) if is_numeric else None
            table = cls(_learned(X, frame, numbers, need, kinds), header, dtype)
        binned, is_open = np.isin(names, OF_NUMBERS), names == "auto"
        if need.bins and is_open.any() and (need.reads_levels or not issparse(X)):
            binned = binned | is_open & table._amounts(X, need)
        if not binned.any():
            return table
        other_bits = np.log2(np.maximum(table.n_categories[~binned], 2)).sum()
        n_bits = max(need.n_bits - other_bits, 0) / binned.sum()
        most = int(min(most_bins(need.most_bins, binned.sum()), max(2, 2.0**n_bits)))
        return table.with_bins(X, binned, weights, most, binned & np.isin(names, need.scored))

    def _amounts(self, X, need):
        """Which columns of X hold numbers that are no codes: fractions, many values, or negative.

        Not those in which a code seems to stand for a missing value: what it means has to be asked.
        """
        most = MOST_CODES if self.header is None and need.codes else MOST_LEVELS
        found = ~self.is_word
        if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":  # most arrays hold codes
            codes = (is_whole(X) | np.isnan(X)).all(axis=0)
            found &= ~(codes & (np.fmax.reduce(X, axis=0, initial=0) < most))
        for j, (_, cells) in enumerate(columns_of(X) if found.any() else ()):
            column = self.columns[j]
            is_date = column.codec is not None
            found[j] = found[j] and (is_date or are_amounts(column.numbers(cells), most))
        return found

    @classmethod
    def stands_for_itself(cls, X, need, kinds):
        """Whether a batch of numbers holds codes or listed values, whatever is in others."""
        if any(kind.name not in PLAIN and not kind.levels for kind in kinds):
            return False
        is_open = [kind.name == "auto" for kind in kinds]
        if need.reads_levels and any(is_open) and not is_frame(X):
            return False
        if issparse(X):
            return True
        if is_frame(X):
            # Where all cells are missing, those of other batches may be anything.
            return all(
                cells.dtype.kind in "biuf" and are_bits(cells) and not np.isnan(cells).all()
                for _, cells in columns_of(X)
            )
        return not (need.bins and (is_open & cls.of_numbers(X)._amounts(X, need)).any())

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

    @property
    def is_open(self):
        """Whether plain numbers may have other values than those of the training.

        In an array of numbers, these stand for themselves, and others are errors.
        """
        return self.header is not None or self.dtype is None

    def n_open_values(self, n_values):
        """The numbers of values of columns that may have more, -1 for others; as `Unseen` asks.

        Parameters
        ----------
        n_values : ndarray of int of shape (n_columns,)
            Of a model of codes.
        """
        # There is a code for every number, and a list of values is complete.
        is_known = self.is_number | self.is_listed
        plain = n_values if self.is_open else -1
        return np.where(is_known, -1, np.where(self.is_word, self.n_categories, plain))

    @property
    def is_number(self):
        """Which columns hold numbers in bins, or with normal scores; an array of bool."""
        return self.is_binned | self.is_scored

    @property
    def holds_numbers(self):
        """Which columns hold numbers or dates, also those that are levels; an array of bool."""
        are_levels = [c.categories is not None and c.categories.dtype.kind in "iuf"
                      for c in self.columns]  # fmt: skip
        return ~self.is_word | self.is_number | are_levels

    @property
    def is_ordered(self):
        """Which columns are ordinal as declared, or hold numbers."""
        return self.holds_numbers & ~self.declared("binary", "nominal") | self.declared("ordinal")

    def declared(self, *kinds):
        """Which columns the user, or their type, declares to be of some kinds; an array of bool."""
        return np.isin([column.kind.name for column in self.columns], kinds)

    @property
    def is_listed(self):
        """Columns of which the user lists the values, so that there are no others."""
        return np.array([column.kind.levels is not None for column in self.columns], dtype=bool)

    @property
    def has_means(self):
        """Which columns hold numbers that are no declared levels; an array of bool."""
        return self.holds_numbers & ~self.declared(*OF_LEVELS)

    def without_values(self, empty):
        """The table where some columns have no category: no cell that counts has a value."""
        none = np.empty(0)
        return self.each(lambda one, out: one._replace(categories=none) if out else one, empty)

    def grown(self, X, values):
        """The table with more categories, and where the old ones now are.

        Parameters
        ----------
        X : data frame or array
            Rows whose types may declare an order.
        values : dict
            From numbers of columns to lists of new values.

        Returns
        -------
        table : Encoder
        places : dict
            From columns that have grown to the new codes of their old categories. A column whose
            order is not known does not grow.
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
        return self._of(columns), places

    def each(self, change, *of_columns):
        """The table with a function of each column, and of what goes with it, in its place."""
        return self._of([change(*one) for one in zip(self.columns, *of_columns, strict=True)])

    def _of(self, columns):
        return Encoder(columns, self.header, self.dtype, self.coding, self.unseen)

    def of_model(self, coding=None, unseen=None):
        """The encoder with what a model makes of codes, and of values that `fit` did not see."""
        other = object.__new__(Encoder)
        vars(other).update(vars(self), coding=coding, unseen=unseen)
        return other

    def with_bins(self, X, binned, sample_weight=None, most=MOST, scored=None):
        """The table where some columns of numbers have bins, or normal scores.

        Parameters
        ----------
        X : array-like or data frame
            The rows of the training.
        binned : ndarray of bool of shape (n_columns,)
            Which columns; of the others, -1 and 1 become levels.
        sample_weight : ndarray of float64 of shape (n_samples,) or (n_samples, n_columns) or None
            How often each row counts, or each cell.
        most : int
            Bins of a column at most.
        scored : ndarray of bool of shape (n_columns,), default=None
            Which of these columns have normal scores.
        """
        scored = np.zeros(len(binned), dtype=bool) if scored is None else scored
        weights = [sample_weight] * len(binned) if np.ndim(sample_weight) < 2 else sample_weight.T

        def change(column, titled, weights, is_number, is_scored):
            if is_number:
                return column.with_bins(titled[1], weights, most, is_scored)
            return column.with_signs(titled[1]) if column.categories is None else column

        return self.each(change, columns_of(X), weights, binned, scored)

    def with_levels(self):
        """The table where 0 and 1 are levels, not numbers that stand for themselves."""

        def change(column):
            is_level = column.categories is None
            return column._replace(categories=np.array([0, 1])) if is_level else column

        return self.each(change)

    def with_bins_of(self, X, weights):
        """The table with the bins of other rows, no more than it has."""
        return self.each(lambda own, titled: own.with_bins_of(titled[1], weights), columns_of(X))

    def log_density(self, X, codes=None):
        """ln of the densities of numbers given their bins, summed over the cells of each row.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_columns)
        codes : ndarray of shape (n_samples, n_columns), default=None
            Codes of all cells: a missing number then has the mean ln of the density of its bin. A
            code that is NaN leaves its cell out.

        Returns
        -------
        log_density : ndarray of float64 of shape (n_samples,)
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

    def scores(self, X):
        """Normal scores z = T(x) of numbers, and ln T'.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_columns)

        Returns
        -------
        scores : ndarray of float64 of shape (n_samples, n_scored, 3)
            z, and of whole numbers those at their start and end. NaN where there is none: for a
            missing cell and for an atom.
        log_slope : ndarray of float64 of shape (n_samples, n_scored)
            ln T', 0 where there is no score.
        """
        found = [
            column.scores.of_cells(column.finite(cells))
            for column, (_, cells) in zip(self.columns, columns_of(X), strict=True)
            if column.scores is not None
        ]
        return tuple(np.stack(part, axis=1) for part in zip(*found, strict=True))

    def with_plain_scores(self):
        """The table with the simplest normal scores of each column, by a single Gaussian."""
        return self.each(
            lambda one: one._replace(scores=one.scores and (one.scores.plain or one.scores))
        )

    def scores_of(self, numbers):
        """Normal scores of a row with some numbers, (1, n_scored, 3), from a dict of these."""
        found = []
        for j in np.flatnonzero(self.is_scored):
            cell = np.array([self.columns[j].number_of(numbers[j]) if j in numbers else np.nan])
            found.append(self.columns[j].scores.of_cells(cell)[0])
        return np.stack(found, axis=1)

    def numbers(self, codes, scores):
        """The numbers of codes and normal scores: a dict from columns to arrays."""
        places = np.flatnonzero(self.is_scored)
        return {
            j: self.columns[j].scores.decode(codes[:, j], z)
            for j, z in zip(places, scores.T, strict=True)
        }

    def encode(self, X, unseen="error"):
        """The rows of a table in the same columns as an array of numbers.

        Parameters
        ----------
        X : data frame, array or sparse matrix
            An array of numbers is returned as it is where these stand for themselves.
        unseen : {"smooth", "error", "missing", "refuse"}
            As of `Column.encode`.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_features)
            NaN where a cell is missing.
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

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_columns)
        generator : Generator or None
            Draws numbers from their bins, spread evenly.
        given : dict
            From columns of numbers to the cells of rows, or that of all.
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

        Parameters
        ----------
        X : array-like or data frame
        codes : ndarray of shape (n_samples, n_features)
        missing : ndarray of bool of the same shape
        generator : Generator or None
            Draws numbers from their bins, independently: several draws of a cell are to show how
            uncertain it is.
        numbers : dict
            From columns of numbers to the numbers themselves, where they are known.

        Returns
        -------
        filled : of the type of X
        """
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


def without_columns(X, columns):
    """A copy of a table in which all cells of some columns are missing.

    Parameters
    ----------
    X : ndarray or data frame
    columns : list of int

    Returns
    -------
    hidden : of the type of X; an array of integers or flags becomes one of floats
    """
    if not is_frame(X):
        hidden = X.astype(np.float64 if X.dtype.kind in "biu" else X.dtype)
        hidden[:, columns] = None if X.dtype.kind == "O" else np.nan
        return hidden
    return with_columns(X, {j: np.full(len(X), None) for j in columns})


def as_plain_table(X):
    """-> a table without a mask, and whether it holds numbers or booleans only.

    These have a type of numbers then, if they were in a list or among objects.
    """
    X = unmasked(X)
    if is_frame(X):
        return X, are_numbers(X) and all(_are_floats(cells) for _, cells in columns_of(X))
    if issparse(X):
        return X, True
    try:
        array = as_array(X)
    except ValueError:  # rows of different lengths, which scikit-learn refuses
        return X, True
    if array.ndim == 2 and array.dtype.kind in "OUST":
        numbers_only = array.dtype.kind == "O" and _are_floats(array.ravel())
        return as_numbers(array) if numbers_only else X, numbers_only
    return array, _are_floats(array)


def _are_floats(cells):
    """Whether cells are numbers, or missing, of which floats hold all digits."""
    if cells.dtype.kind == "O":
        known = (cell for cell in cells.tolist() if not is_missing(cell))
        return all(isinstance(cell, Real) and is_a_float(cell) for cell in known)
    return not beyond_floats(cells)


def holds_numbers(cells):
    """Whether a column holds numbers or booleans only, beside missing cells."""
    if cells.dtype.kind in "biuf":
        return True
    return all(isinstance(cell, Real) or is_missing(cell) for cell in cells.tolist())


def _learned(X, frame, numbers, need, kinds):
    """The columns of a table, of which those of numbers have no bins."""
    found = list(columns_of(X))
    names = [] if frame is None else names_of(frame)
    declared = [declared_values(frame[name]) for name in names] or [(None, False)] * len(found)
    kinds = kinds or [Kind()] * len(found)
    stay = frame is None and numbers is not None and not need.reads_levels
    open_kind = Kind("plain" if stay else "auto")
    places = [Place(None, j) for j in range(len(found))] if frame is None else places_of(frame)
    columns = of_each(
        (title, partial(_column, title, cells, kind, open_kind, own, need.codes, place))
        for (title, cells), kind, own, place in zip(found, kinds, declared, places, strict=True)
    )
    _warn_of_spellings(columns)
    _warn_of_alphabet([c for c, own in zip(columns, declared, strict=True) if own[0] is None])
    return columns


def _warn_of_alphabet(columns):
    """Warn of strings in an order that nobody has declared, if they are more than two."""

    def has_words(column):
        return any(len(str(value)) > 2 and str(value).isalpha() for value in column.categories)

    declared = [c for c in columns if c.kind.name == "ordinal" and c.kind.levels is None]
    odd = [c for c in declared if len(c.categories) > 2 and has_words(c)]
    if odd:
        warnings.warn(
            f"{having([column.title for column in odd])} strings and the kind 'ordinal'. They are "
            f"put in alphabetical order, {odd[0].shown()}. If their order is another, declare it: "
            "columns=('ordinal', ['low', 'medium', 'high']).",
            stacklevel=find_stack_level(),
        )


def _warn_of_spellings(columns):
    """Warn of strings that differ in case or blanks only, unless that tells all values apart."""
    found = []
    for column in columns:
        texts = [] if column.categories is None or column.codec else column.categories.tolist()
        alike = {}
        for text in filter(lambda value: isinstance(value, str), texts):
            alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
        groups = [group for group in alike.values() if len(group) > 1]
        if groups and len(alike) > 1:
            found.append((column, groups[0]))
    if found:
        column, texts = found[0]
        some = " and ".join(map(repr, texts[:2]))
        line = column.place.line(
            "x.str.strip().str.lower()", "x.str.strip_chars().str.to_lowercase()"
        )
        warnings.warn(
            f"{having([one.title for one, _ in found])} strings that differ in case or blanks "
            f"only, such as {some}. If they mean the same, write them in the same way: {line}.",
            stacklevel=find_stack_level(),
        )


def _column(title, cells, kind, open_kind, declared, codes, place):
    values, is_ordered = declared
    dates = Dates.of(cells) if values is None else None
    if dates is None:
        seen_as = open_kind if kind.is_open else kind
        categories = categories_of(cells, title, seen_as, values, codes, place)
        if kind.is_open and values is not None and len(values) > 2:
            kind = Kind("ordinal" if is_ordered else "nominal")
        return Column(title, categories, kind=kind, place=place)
    if kind.name in OF_LEVELS:
        raise UnfitColumn(
            "dates of levels",
            f"{title} holds dates, and is declared as {kind.name!r}. Leave it at 'auto', which "
            f"takes dates for numbers, or make strings of them: {place.texts()}.",
        )
    levels = dates.levels(cells) if kind.is_open else None
    codec = dates if levels is None else None
    return Column(
        title, levels, codec=codec, kind=kind, place=place, of_objects=type_of_dates(cells)
    )


def of_each(tasks):
    """Results of a task for each column; the error of one names all columns that have the same.

    Parameters
    ----------
    tasks : iterable of (title, callable)

    Returns
    -------
    results : list
    """
    results, refused = [], {}
    for title, task in tasks:
        try:
            results.append(task())
        except UnfitColumn as error:
            refused[title] = error
        except (TypeError, ValueError, ArithmeticError) as error:  # from inside
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise (error if title in str(error) else kind(f"{title}: {error}")) from error
    if not refused:
        return results
    first = next(iter(refused.values()))
    titles = [title for title, error in refused.items() if error.reason == first.reason]
    raise ValueError(f"{first}{and_others(titles[1:])}")


def check_form(X):
    """Refuse what is no table, lazy frames, and data frames with two columns of the same name."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):  # of polars
        raise ValueError(
            "X is a lazy frame, whose rows are not known. Call .collect(), or pass batches of its "
            "rows: sklearn_boltz.batches.Batches."
        )
    if hasattr(X, "map_reduce"):  # Batches
        raise ValueError(
            "X is Batches, which only `fit` and `partial_fit` of density models can read. Call "
            "this with the rows of one batch at a time."
        )
    if isinstance(X, str):
        raise ValueError("X is a string, and must be a table. Read the file that it names first.")
    is_list = isinstance(X, (list, tuple)) and len(X) > 0
    is_dict = isinstance(X, dict) and not issparse(X)  # as scipy's dok_matrix is
    if is_dict or is_list and all(isinstance(row, dict) for row in X):
        what = "a dict" if is_dict else "a list of dicts"
        raise ValueError(f"X is {what}. Make a data frame of it: X = pd.DataFrame(X).")
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(
            "X is an array of dates or times. Pass a data frame, whose columns may hold dates."
        )
    shape = getattr(X, "shape", None)
    if is_list and all(isinstance(cell, str) for cell in X):
        shape = (len(X),)
    if shape is not None and len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: a table has rows and columns, and X has the "
            f"shape {tuple(shape)}. Of a data frame, take one row by X.iloc[[0]], and one column "
            "by X[['name']]."
        )
    names = names_of(X) if is_frame(X) else []
    twice = [repr(name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(
            f"the table has two columns named {twice[0]}. Rename one of them."
            f"{and_others(twice[1:])}"
        )
    parts = compound(X) if names else {}
    if parts:
        name, dtype = next(iter(parts.items()))
        raise ValueError(
            f"column {name!r} has the type {dtype}, which is not supported. "
            f"{Place(library_of(X), name).in_parts(dtype)}"
            f"{and_others(f'column {other!r}' for other in list(parts)[1:])}"
        )


def _has_signs(numbers):
    """Whether a table holds -1 and 1 only."""
    return bool(((numbers == -1) | (numbers == 1) | np.isnan(numbers)).all())


def _cast(values, dtype):
    """Numbers in a type, if it can hold them."""
    if dtype is None or dtype == values.dtype or dtype.kind not in "biuf":
        return values
    if dtype.kind in "biu" and not np.array_equal(values, np.rint(values)):
        return values
    return values.astype(dtype)
