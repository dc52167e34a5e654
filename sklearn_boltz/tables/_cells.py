"""The cells of tables: which are missing, which cannot be used, and codings that are not ours.

What messages say is looked for after a table has been refused: the cell that is to blame, and the
remedy for its case.
"""

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._warnings import warn
from sklearn_boltz.tables._dates import kind_of_times, unit_of_dates
from sklearn_boltz.tables._frames import (
    cells_of,
    declared_values,
    is_frame,
    library_of,
    names_of,
)
from sklearn_boltz.tables._phrases import N_NAMES, and_others, enumerated, first_of
from sklearn_boltz.tables._remedies import Place, without_times
from sklearn_boltz.tables._values import MOST_EXACT, is_a_float, is_empty, is_missing, is_number

# What a warning of columns says that no row has both of.
APART = "no row has both of the columns"
# Codes that stand for a missing value in surveys: of those that are an error, as a model of codes
# cannot go on, and of all.
MISSING_CODES = {-1, -9, -99, -999, 9, 99, 999}
SUSPECTS = {7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 9997, 9998, 9999, 99999}
SUSPECTS |= {-1, -9999} | {-code for code in SUSPECTS}
# No amount is so large: the largest floats are codes of databases and of C.
ENORMOUS = 1e30
# Values of a column that a message lists at most.
MOST_LISTED = 8
# Rows from which on it is no accident that a value never occurs.
ROWS_TO_TELL = 20
# Integers up to here are grey levels, if there are some above half of it; those of small pictures
# such as scikit-learn's digits have the other end.
GREY_LEVELS, FEW_GREY_LEVELS = 255, 16
# Columns that a picture has at least.
LEAST_PIXELS = 16
# Whole numbers of this many different values are taken for levels.
MOST_LEVELS = 20


def as_array(X):
    """Rows as an array that keeps numbers and texts apart."""
    if isinstance(X, np.ndarray):
        return unmasked(X)
    array = np.asarray(X)
    if array.dtype.kind == "f" and (np.abs(array) >= MOST_EXACT).any():
        # Large whole numbers among fractions have lost digits.
        cells = np.array(X, dtype=object)
        return array if all(map(is_a_float, cells.flat)) else cells
    return np.array(X, dtype=object) if array.dtype.kind in "US" else array


def unmasked(X):
    """An array without a mask: NaN, or None among objects and texts, in cells that are masked."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    mask = np.ma.getmaskarray(X)
    if not mask.any():
        return X.data
    of_numbers = X.dtype.kind in "biuf"
    cells = np.array(X.data, dtype=np.result_type(X, np.float32) if of_numbers else object)
    cells[mask] = np.nan if of_numbers else None
    return cells


def columns_of(X):
    """Yield what each column of a table is called in messages, and its cells as an array."""
    if is_frame(X):
        for name in names_of(X):
            yield f"column {name!r}", cells_of(X[name])
        return
    try:
        X = X.toarray() if issparse(X) else as_array(X)
    except ValueError:  # rows of different lengths
        return
    for j in range(X.shape[1] if X.ndim == 2 else 0):
        yield f"column {j}", X[:, j]


def warn_of_pairs_apart(observed, title, name):
    """Warn of pairs of columns that no row has both of, such as those of split ballots.

    `observed` tells which cells there are, of shape (n, n_columns), and `title` the name in
    messages of a column, by its number; `name` is that of the estimator.
    """
    if observed.all():
        return
    counts = observed.astype(np.float32)
    never = counts.T @ counts == 0
    is_empty = never.diagonal()
    pairs = np.argwhere(np.triu(never & ~is_empty & ~is_empty[:, None]))
    if not len(pairs):
        return
    names = [title(j).removeprefix("column ") for j in pairs[:N_NAMES].ravel().tolist()]
    some = ", ".join(map(" and ".join, zip(names[::2], names[1::2], strict=True)))
    more = f", and {len(pairs) - N_NAMES:,} more" if len(pairs) > N_NAMES else ""
    warn(
        f"{name}: {APART} {some}{more}. What the model says of such a pair "
        "follows from other columns: that the two do not interact beyond that is an assumption, "
        "which these rows cannot test."
    )


def unusable_cell(X, complete):
    """Describe the first cell that is infinite or missing, and what to do; None if there is none.

    `complete` says what to do about missing cells; None where they are allowed.
    """
    columns = list(columns_of(X))
    places, times = places_of(X), {}
    names = names_of(X) if is_frame(X) else []
    are_listed = [declared_values(X[name])[0] is not None for name in names]
    are_listed = are_listed or [False] * len(columns)
    for place, (name, cells), is_listed in zip(places, columns, are_listed, strict=True):
        kind = None if is_listed or unit_of_dates(cells) else kind_of_times(cells)
        if kind is not None:
            times.setdefault(kind, {})[name] = without_times(kind, place)
    if times:
        first, *others = next(iter(times.values())).items()
        return f"{' '.join(first)}{and_others(name for name, _ in others)}"
    infinite = _columns_where(columns, _is_infinite, np.isinf)
    if infinite:
        name, rows = next(iter(infinite.items()))
        n_cells, value = sum(map(len, infinite.values())), f"{dict(columns)[name][rows[0]]:g}"
        more = first_of(n_cells, "infinite ones", infinite)
        it, one = ("it", "a finite one") if n_cells == 1 else ("them", "finite ones")
        return f"{name} has the value {value} in row {rows[0]}{more}. Replace {it} by {one}."
    incomplete = {} if complete is None else _columns_where(columns, is_empty, np.isnan)
    if not incomplete:
        return None
    name, rows = next(iter(incomplete.items()))
    more = first_of(sum(map(len, incomplete.values())), "missing cells", incomplete)
    return f"{name} has no value (NaN) in row {rows[0]}{more}. {complete}"


def _is_infinite(cell):
    return is_number(cell) and not is_missing(cell) and abs(cell) == np.inf


def _columns_where(columns, of_object, of_float):
    """The rows for which a test is true, of each column that has some."""
    found = {name: np.flatnonzero(true_of(cells, of_object, of_float)) for name, cells in columns}
    return {name: rows for name, rows in found.items() if len(rows)}


def true_of(cells, of_object, of_float=None):
    """Cells of a column for which a test is true; each distinct value is tested once.

    `of_object` tests an object or a string, and says the same of equal ones; `of_float` tests
    arrays of floats or dates.
    """
    if cells.dtype.kind in "fM" and of_float is not None:
        return of_float(cells)
    if cells.dtype.kind not in "OUS":
        return np.zeros(len(cells), dtype=bool)
    cells = cells.tolist()
    try:
        found = {cell: of_object(cell) for cell in dict.fromkeys(cells)}
        return np.array([found[cell] for cell in cells], dtype=bool)
    except TypeError:  # a cell without a hash, such as a list
        return np.array([of_object(cell) for cell in cells], dtype=bool)


def places_of(X):
    """The columns of a table as code names them."""
    if is_frame(X):
        return [Place(library_of(X), name) for name in names_of(X)]
    shape = np.shape(X)
    return [Place(None, j) for j in range(shape[1] if len(shape) > 1 else 0)]


def as_numbers(cells):
    """Objects that are real numbers, booleans or missing, in the type that NumPy has for them.

    It is a float type, with NaN, if a cell is missing.
    """
    values = [np.nan if is_missing(cell) else cell for cell in cells.ravel().tolist()]
    numbers = np.array(values, dtype=None if values else np.float64)
    if numbers.dtype.kind == "O":  # fractions, or integers that no type of NumPy holds
        numbers = numbers.astype(np.float64)
    return numbers.reshape(cells.shape)


def check_cells(cells, title, line=""):
    """Refuse a cell that is no value, as it has no hash; `line` drops the column."""
    for row, cell in enumerate(cells):
        try:
            hash(cell)
        except TypeError as error:
            raise TypeError(
                f"{title} has a {type(cell).__name__} in row {row}: the argument must be a string "
                f"or a number. Make columns of what is in its cells, or drop it{line}."
            ) from error


def missing_cells(X):
    """Where the cells of a table are missing, an array of bool of its shape."""
    return np.column_stack([true_of(cells, is_empty, np.isnan) for _, cells in columns_of(X)])


def without_codes(codes, values, place, missing_remedy="", kind="nominal"):
    """Remedy for codes that mean missing cells, in an array or in a column of a frame.

    `values` are all values of the column, which is of a `kind` if the codes are values, too;
    `missing_remedy` is said of missing cells.
    """
    text = f"{place.without(codes)}. {missing_remedy}"
    if len(values) <= MOST_LISTED:
        it_is = "it is a value" if len(codes) == 1 else "they are values"
        numbers_first = sorted(values, key=lambda value: (isinstance(value, str), value))
        values = list(map(as_whole, numbers_first))
        entry = values if kind == "nominal" else f"({kind!r}, {values})"
        text += f"If {it_is}, list all: columns={{{place.name!r}: {entry}}}."
    return text.strip()


def as_whole(value):
    """A whole number as one of Python's, and all else as it is."""
    if not is_number(value) or isinstance(value, float) and abs(value) >= ENORMOUS:
        return value
    return int(value) if value == int(value) else value


def recognise_coding(X, j, missing_remedy, category_remedy=None, place=None):
    """Recognise a coding of values that is not ours: what they look like, and what to do, or None.

    `j` is the column where a value was refused, at `place`. `missing_remedy` says what to do about
    missing cells, `category_remedy` about categories that are written as whole numbers; it is None
    for a model that takes no fractions.
    """
    column, table, place = _distinct(X[:, j]), _distinct(X), place or Place(None, int(j))
    if not np.array_equal(table, np.floor(table)):
        return None
    whole, own = set(table.tolist()), set(column.tolist())
    if whole == {-1, 1}:
        return "The table has the values -1 and 1 only. Recode it by (X + 1) / 2."
    for values in (whole, own):
        codes = suspected_codes(values)
        # What stands apart in the whole table need not be what is wrong with this column.
        if codes and (values is own or values - set(codes) == {0, 1}):
            it = "it" if len(codes) == 1 else "them"
            return (
                f"{missing_code_hint(codes, values)}. Write {it} as NaN: "
                f"{without_codes(codes, own, place, missing_remedy + ' ')}"
            )
    if own == {-1, 1}:
        return "The column has the values -1 and 1 only. Recode it by (x + 1) / 2."
    if own == {1, 2}:
        return "The column is coded 1 and 2. Subtract 1."
    if category_remedy is None:
        return None
    if min(whole) >= 0 and GREY_LEVELS / 2 < max(whole) <= GREY_LEVELS:
        return "The values look like grey levels from 0 to 255. Divide them by 255."
    if min(own) >= 0 and 1 < max(own) <= MOST_LEVELS:
        return (
            f"The column holds whole numbers from {min(own):g} to {max(own):g}. If they are "
            f"categories, {category_remedy}; if they are amounts, 'number'. For bits, compare "
            "them with a threshold."
        )
    return None


def grey_levels(X):
    """How many grey levels above 0 the rows of an array have, if they look like pictures.

    They are whole numbers, and most columns have a pixel in the upper half; None of other arrays.
    """
    if X.shape[1] < LEAST_PIXELS or not (is_whole(X) | np.isnan(X)).all():
        return None
    brightest = np.fmax.reduce(X, axis=0, initial=0)
    high = int(brightest.max())
    n_levels = GREY_LEVELS if GREY_LEVELS / 2 < high <= GREY_LEVELS else FEW_GREY_LEVELS
    is_end = high == n_levels or n_levels == GREY_LEVELS
    return n_levels if is_end and (brightest > high / 2).mean() > 0.5 else None


def suspected_codes(values):
    """Find numbers that are perhaps codes for missing values: such as 8 and 9 beside 1 to 5.

    These are some of `SUSPECTS` among a set of values, beside two others at least: negative ones,
    if all others are not; and the greatest values, see `_stand_apart`.
    """
    negative = {value for value in values if value < 0}
    others = sorted(values - negative)
    if not negative <= SUSPECTS or negative == {-1} and others and others[-1] > MOST_LEVELS:
        return []
    n_codes = len(others) - 1
    while n_codes > 0 and not SUSPECTS.issuperset(others[-n_codes:]):
        n_codes -= 1
    while n_codes > 0 and not _stand_apart(others[-n_codes:], others[:-n_codes]):
        n_codes -= 1
    codes = [*negative, *others[len(others) - n_codes :]]
    return sorted(map(int, codes)) if len(others) - n_codes >= 2 else []


def _stand_apart(codes, others):
    """Whether codes are more than twice as large as other values, two at least.

    Or two more, and a single one three more, than whole numbers without a gap from 0 or 1 on.
    """
    if len(others) < 2 or codes == [7]:
        return False
    is_run = others[0] in (0, 1) and others == list(range(int(others[0]), int(others[-1]) + 1))
    gap = codes[0] - others[-1]
    return codes[0] > max(2 * others[-1], 8) or is_run and gap >= (3 if len(codes) == 1 else 2)


def missing_code_hint(codes, values):
    """The beginning of a sentence about codes for missing values that were found."""
    others = sorted(values - set(codes))
    between = "and" if len(others) == 2 else "to"
    values = f"{others[0]:g} {between} {others[-1]:g}"
    if len(codes) == 1:
        return f"{codes[0]} beside {values} looks like a code for a missing value"
    return f"{enumerated(codes)} beside {values} look like codes for missing values"


def if_missing(codes):
    """The beginning of a sentence about what to do about them."""
    return f"If {'it is one, write it' if len(codes) == 1 else 'they are, write them'} as NaN:"


def columns_with_codes(X):
    """Yield the columns with numbers that look like codes for missing values.

    Each with its number, a list of the codes, and the set of all its values.
    """
    if len(X) < ROWS_TO_TELL:
        return
    ends = np.array([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])
    for j in np.flatnonzero(np.isin(ends, list(SUSPECTS)).any(axis=0)):
        values = set(_distinct(X[:, j]).tolist())
        codes = suspected_codes(values)
        if codes:
            yield int(j), codes, values


def _distinct(values):
    values = np.unique(np.asarray(values, dtype=np.float64))
    return values[np.isfinite(values)]


def is_whole(X):
    """Which cells are 0, 1, 2, ..."""
    with np.errstate(over="ignore", invalid="ignore"):  # in float16, 2**31 is infinite
        return (X >= 0) & (X < 2**31) & (X == np.floor(X))
