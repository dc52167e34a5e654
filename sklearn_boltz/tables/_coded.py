"""Rows of a table beside their codes, so that nothing is encoded twice."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._cells import columns_of, missing_cells
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._values import find_places


class Coded(NamedTuple):
    """Rows of a table, and their codes.

    Attributes
    ----------
    table : Encoder or None
        None for a density that is not of this package.
    X : data frame or array of shape (n_samples, n_columns)
    codes : ndarray of the same shape
        NaN where a cell is missing, or has a value that `table` does not know. Without a table, it
        is X.
    is_own : bool
        Whether the table is that of the density, whose methods then take the `Coded` itself in
        place of X. By default the density is one of codes, and does not know the table.
    """

    table: object
    X: object
    codes: np.ndarray
    is_own: bool = False

    @property
    def taken(self):
        """The rows as the density takes them."""
        return self if self.is_own else self.codes

    @property
    def of_codes(self):
        """Whether the density takes the codes alone."""
        return self.table is not None and not self.is_own

    def by(self, table):
        """The rows in the codes of another table, of which only changed columns are encoded.

        Codes of categories follow from those that they have.
        """
        codes = self.codes.astype(np.result_type(self.codes, np.float32))
        pairs = zip(self.table.columns, table.columns, columns_of(self.X), strict=True)
        for j, (old, new, (_, cells)) in enumerate(pairs):
            if new is old:
                continue
            if old.levels is None:
                codes[:, j] = new.encode(cells, "missing")
                continue
            places = find_places(new.categories.tolist(), old.categories.tolist())
            places = np.append(np.where(places < 0, np.nan, places), np.nan)
            codes[:, j] = places[np.where(np.isnan(codes[:, j]), -1, codes[:, j]).astype(np.intp)]
        return self._replace(table=table, codes=codes)

    def own_table(self, weights):
        """The table as these rows alone have it: bins, normal scores and values are theirs.

        Values that a fit is without are then new to it, as others are in new rows.
        """
        return self.table.with_values_of(self.codes, self.X).with_bins_of(self.X, weights)

    def some(self, places):
        """Some of the rows; themselves, if these are all."""
        if isinstance(places, np.ndarray) and np.array_equal(places, np.arange(len(self.codes))):
            return self
        X = some_rows(self.X, places)
        return self._replace(X=X, codes=X if self.table is None else self.codes[places])

    def numbers(self, columns):
        """The cells of some columns as float64: a dict from their numbers to arrays."""
        cells = [cells for _, cells in columns_of(self.X)]
        return {j: self.table.columns[j].finite(cells[j]) for j in columns}

    def log_density(self, codes=None):
        """`Encoder.log_density` of the rows, whose missing cells may have other codes."""
        return self.table.log_density(self.X, self.codes if codes is None else codes)

    def log_unseen(self, n_rows):
        """Summands of ln p of each row by unseen values, which are missing in its codes.

        ln 1 / (n + 1) for each, and ln n / (n + 1) for each seen value of a column of categories.
        """
        seen = ~np.isnan(self.codes)
        observed = seen if seen.all() else ~missing_cells(self.X)
        n_unseen = (observed & ~seen).sum(axis=1)
        n_seen = (observed & seen & self.table.is_word & ~self.table.is_binned).sum(axis=1)
        return n_seen * np.log(n_rows) - (n_seen + n_unseen) * np.log(n_rows + 1)


def uncoded(X):
    """The table of rows that may be `Coded`."""
    return X.X if isinstance(X, Coded) else X


def pick(X, places):
    """Some rows of a table, or of one that is `Coded`."""
    return X.some(places) if isinstance(X, Coded) else some_rows(X, places)
