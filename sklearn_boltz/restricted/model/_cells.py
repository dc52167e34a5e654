"""Cells of a table as numbers of a model, and back; what is out of range is refused by name.

A `table` is an `Encoder` whose `coding` is a `ColumnLayout`; `name` is that of the estimator.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array, issparse

from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.restricted.model._coded_rows import CodedRows
from sklearn_boltz.tables._phrases import N_NAMES, format_number
from sklearn_boltz.tables._refusals import refuse_cells, refuse_empty
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import observed_sums

TRUNCATED = (TruncatedGaussian, TruncatedGaussBernoulli)


def numbers_of(name, table, X, clip=False, lazily=False):
    """Rows of the model, dense or CSR, for codes and numbers of cells.

    Rounding errors are corrected. Other values out of range are refused or, with `clip`, set to the
    nearest bound, with a warning. With `lazily`, rows with one-hot numbers are `CodedRows`.
    """
    layout = table.coding
    # Rows stay sparse if all columns have the same bounds, and one number each.
    if layout.is_plain and np.ndim(layout.bounds[0]) == 0:
        return (_bounded_sparse if issparse(X) else _bounded)(name, table, X, clip)
    X = _bounded(name, table, X.toarray() if issparse(X) else X, clip)
    if layout.is_plain:
        return X
    if lazily and layout.has_codes:
        return CodedRows(layout, X)
    check_dense(name, table, X)
    return layout.expand(X)


def check_dense(name, table, X, n_copies=1):
    """Refuse rows of which this many copies with one-hot numbers do not fit into memory."""
    layout, n_rows = table.coding, X.shape[0]
    n_bytes = n_copies * n_rows * layout.n_numbers * X.dtype.itemsize
    if n_bytes > SMALL:
        j = int(layout.widths.argmax())
        check_memory(
            n_bytes,
            f"{name}: {n_rows:,} rows of {layout.n_numbers:,} numbers, "
            f"{layout.widths[j]:,} of them for the values of {table.columns[j].title},",
            "Pass fewer rows at a time, or merge rare values.",
        )


def check_observed(name, table, X):
    """Refuse columns without an observed value: the data say nothing of them."""
    _, counts = observed_sums(X)
    if np.ndim(counts) and not np.all(counts):
        refuse_empty(name, table, np.asarray(counts)[table.coding.starts[:-1]] == 0)


def given_row(name, table, columns, codes):
    """A row of the model with the values of some columns, NaN elsewhere."""
    layout, row = table.coding, np.full((1, len(table.columns)), np.nan)
    row[0, columns] = codes
    legal = layout.are_legal(row)
    if not legal.all():
        j = int(np.argmin(legal[0]))
        raise ValueError(
            f"`given` has the value {format_number(row[0, j])} for {table.columns[j].title}, but "
            f"{name} needs {layout.domain(j)}."
        )
    return layout.expand(row.clip(*layout.bounds))[0]


def filled_table(table, X, V, missing, how, generator):
    """A table with its missing cells replaced by the values of rows of the model."""
    layout, numbers = table.coding, {}
    if how == "mean":
        for j in np.flatnonzero(table.is_binned):
            shares = V[:, layout.numbers_of(j)]
            shares = shares if shares.shape[1] > 1 else np.hstack([1 - shares, shares])
            # A single bin has a unit of two values.
            numbers[j] = shares @ np.broadcast_to(table.columns[j].bins.means, shares.shape[1])
    gaps, generator = missing[:, layout.starts[:-1]], generator if how == "sample" else None
    return table.fill(X, layout.collapse(V), gaps, generator, numbers)


# What is out of range.


def _bounded(name, table, X, clip):
    """Cells within the bounds. Rounding errors are corrected, others rejected or clipped."""
    layout = table.coding
    low, high = layout.bounds
    # The usual case, without temporary arrays. NaN makes it False.
    if np.ndim(low) == 0 and X.min() >= low and X.max() <= high and not layout.has_codes:
        return X
    legal = layout.are_legal(X)
    if not legal.all():
        if not clip:
            _refuse(name, table, X, legal)
        row, column = np.unravel_index(np.argmin(legal), legal.shape)
        columns = np.flatnonzero(~legal.all(axis=0))
        _warn_of_clipping(name, table, X, row, column, (~legal).sum(), len(columns))
    X = X.clip(low, high).astype(X.dtype, copy=False)
    return np.rint(X, out=X, where=layout.one_hot) if layout.has_codes else X


def _bounded_sparse(name, table, X, clip):
    layout = table.coding
    low, high = layout.bounds
    if not low <= 0 <= high:  # the zeros are outside
        return csr_array(_bounded(name, table, X.toarray(), clip))
    if not X.nnz or (X.data.min() >= low and X.data.max() <= high):
        return X
    legal = layout.are_legal(X.data)
    if not legal.all():
        place = np.argmin(legal)
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        rows = X[[row]].toarray()
        if not clip:
            _refuse(name, table, rows, layout.are_legal(rows), row)
        columns = np.unique(X.indices[~legal])
        n_values, column = (~legal).sum(), X.indices[place]
        _warn_of_clipping(name, table, rows, 0, column, n_values, len(columns), row)
    X = X.copy()
    X.data = X.data.clip(low, high)
    return X


def _refuse(name, table, X, legal, first_row=0):
    declare, remedy = partial(_declaring, table, kind="nominal"), partial(_remedy, table, X)
    refuse_cells(name, table, X, legal, table.coding.domain, remedy, first_row, declare=declare)


def _remedy(table, X, columns):
    """The remedy for values out of range in some columns, for error messages."""
    layout, column = table.coding, columns[0]
    low, high = layout.bounds_of(column)
    truncated = np.array([kind in TRUNCATED for kind in layout.kinds])
    if truncated[column]:
        low, high = np.nanmin(X[:, truncated]), np.nanmax(X[:, truncated])
        if TruncatedGaussBernoulli in layout.kinds:  # its interval has to contain 0
            low, high = min(low, 0), max(high, 0)
        return (
            "Scale the columns with sklearn.preprocessing.MinMaxScaler(clip=True), or give "
            "units with the range of the data, such as "
            f"columns=TruncatedGaussian.from_data(X, {low:.6g}, {high:.6g})."
        )
    if layout.one_hot[column]:
        return f"Give these codes, or {_declaring(table, columns, 'nominal')} for other values."
    if layout.kinds[column] is not Bernoulli:
        return (
            "Scale the columns with sklearn.preprocessing.MinMaxScaler("
            f"feature_range=({low:g}, {high:g}), clip=True)."
        )
    return (
        f"For numbers, {_declaring(table, columns, 'number')}; for categories, 'nominal'. "
        "Grey levels become probabilities of a 1 by "
        "sklearn.preprocessing.MinMaxScaler(clip=True)."
    )


def _declaring(table, columns, kind):
    """How a user sets the parameter `columns` to a kind for some columns."""
    entries = [f"{table.columns[j].place.name!r}: {kind!r}" for j in columns[:N_NAMES]]
    more = ", ..." if len(columns) > N_NAMES else ""
    return f"set columns={{{', '.join(entries)}{more}}}"


def _warn_of_clipping(name, table, X, row, column, n_values, n_columns, first_row=0):
    one, layout, value = n_values == 1, table.coding, X[row, column]
    is_code = layout.one_hot[column]
    place = "nearest of these" if is_code else "nearer end"
    remedy = "Correct it, or write it as NaN where missing cells are allowed."
    if not is_code:
        remedy = "To clip without this warning, use MinMaxScaler(clip=True) first."
        if value < 0 and float(value).is_integer():
            remedy = "If it stands for a missing value, write it as NaN."
    warn(
        f"{name}: {n_values:,} value{'' if one else 's'} in {n_columns:,} "
        f"column{'' if n_columns == 1 else 's'} {'is' if one else 'are'} outside the "
        f"{layout.domain(column)} and {'was' if one else 'were'} set to the {place}; the first "
        f"is {format_number(value)} in {table.columns[column].title}, row {first_row + row}. "
        f"{remedy}",
    )
