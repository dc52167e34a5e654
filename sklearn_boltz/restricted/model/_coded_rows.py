"""Rows of the model that are kept as rows of the table."""

from copy import copy

import numpy as np
from sklearn.utils import gen_batches

from sklearn_boltz.units._unit import observed_sums

# Numbers that are expanded at a time.
EXPANDED = 2**18


class CodedRows:
    """Rows of numbers and codes, of which one-hot numbers are made for a few rows at a time.

    They are used as a CSR matrix is: some of them are such rows again, and `dense` has the numbers.

    Parameters
    ----------
    layout : ColumnLayout
    codes : ndarray of shape (n_rows, n_columns)
        Cells within the bounds, NaN where they are missing.
    dtype : dtype, default=None
        Of the numbers; None for that of the codes.
    """

    def __init__(self, layout, codes, dtype=None):
        self.layout, self.codes = layout, codes
        self.dtype = codes.dtype if dtype is None else np.dtype(dtype)
        self.shape = len(codes), layout.n_numbers

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, rows):
        return CodedRows(self.layout, self.codes[rows], self.dtype)

    def astype(self, dtype, copy=False):
        """Convert the rows to numbers of another type."""
        return CodedRows(self.layout, self.codes, dtype)

    def toarray(self):
        """The numbers of all rows, NaN where a cell is missing."""
        return self.layout.expand(self.codes).astype(self.dtype, copy=False)

    def parts(self):
        """Slices of the rows, and the numbers of these, a few rows at a time."""
        for some in gen_batches(len(self), max(1, EXPANDED // self.shape[1])):
            yield some, self[some].toarray()

    def standardised(self):
        """Rows as codes and numbers of the model, which need no scale."""
        layout = copy(self.layout)
        layout.center = layout.scale = None
        codes = self.layout.standardised(self.codes).astype(self.dtype, copy=False)
        return CodedRows(layout, codes)

    def columns(self, first, end):
        """The rows of some neighbouring columns."""
        return CodedRows(self.layout.part(first, end), self.codes[:, first:end], self.dtype)

    def observed_sums(self, weights=None):
        """See `sklearn_boltz.units._unit.observed_sums`."""
        if len(self) * self.shape[1] <= EXPANDED:
            return observed_sums(self.toarray(), weights)
        weights, total, count = np.ones(len(self)) if weights is None else weights, 0, 0
        for some, rows in self.parts():
            found = observed_sums(rows, weights[some])
            total, count = total + found[0], count + found[1]
        return total, count if np.ndim(count) or weights.min() != 1 else len(self)


def gaps_of(rows):
    """Which cells are missing: of codes, those of the table, and of an array its own."""
    return np.isnan(rows.codes if isinstance(rows, CodedRows) else rows)
