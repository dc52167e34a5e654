"""From the cells of a table to codes, and back."""

import warnings
from typing import NamedTuple

import numpy as np

from sklearn_boltz._estimator import DECLARE, LIST_VALUES, find_stack_level
from sklearn_boltz.tables._cells import IF_A_VALUE, first_of, is_whole, shown

# A column of an array with more values than this is taken for amounts.
MOST_VALUES = 64


class Coding(NamedTuple):
    """What the values of the columns are.

    Attributes
    ----------
    low : int
        The value whose code is 0: -1 in tables of -1 and 1, else 0.
    n_values : ndarray of int64 of shape (n_features,)
        Number of values of each column.
    """

    low: int
    n_values: np.ndarray

    @property
    def is_binary(self):
        """Whether all columns have two values."""
        return bool((self.n_values == 2).all())

    @property
    def larger_columns(self):
        """The columns of more than two values."""
        return np.flatnonzero(self.n_values > 2)

    def values(self, j):
        """The values of column j."""
        return np.array([-1, 1]) if self.low == -1 else np.arange(self.n_values[j])

    def decode(self, codes):
        """From codes, or means of codes, to the scale of the data."""
        return 2 * codes - 1 if self.low == -1 else codes

    def codes(self, estimator, X, *, coded=False):
        """Check the domain; -> codes of the cells, -1 for NaN, small integers.

        `coded` is as of `_check_domain`: True in `fit`, whose remedies are of no use after it.
        """
        if not self.is_binary:
            legal = np.isnan(X) | (is_whole(X) & (X < self.n_values))
            if not legal.all():
                raise ValueError(self._about_value(estimator, X, legal, coded))
            return np.where(np.isnan(X), -1, X).astype(np.min_scalar_type(-self.n_values.max() - 1))
        positive = X == 1
        missing = np.isnan(X) if X.dtype.kind == "f" else None
        legal = positive | (X == self.low)
        if missing is not None:
            legal |= missing
        if not legal.all():
            recode = "Recode the column, or compare it with a threshold."
            estimator._check_domain(
                X,
                legal,
                lambda j: f"the values {self.low} and 1",
                recode if coded else self._correction(X, legal),
                coded=coded,
            )
        codes = positive.view(np.int8)
        if missing is not None:
            codes[missing] = -1
        return codes

    def _correction(self, X, legal):
        """How to mend rows for a model of two values that has been fitted."""
        values = set(np.unique(X[~np.isnan(X)]).tolist())
        if values == {-1, 1}:
            return "The table has the values -1 and 1 only. Recode it by (X + 1) / 2."
        if values == {0, 1}:
            return "The table has the values 0 and 1 only. Recode it by 2 * X - 1."
        illegal, more = X[~legal], ""
        if self.low == 0 and is_whole(illegal).all():
            more = "; to allow more values, fit again with all of them listed in `columns`"
        return (
            f"In the training data this column has the values {self.low} and 1 only. Correct the "
            f"cell, or write it as NaN{more}."
        )

    def _about_value(self, estimator, X, legal, coded):
        """What an error says of the first value that is not legal, and how to mend it."""
        i, j = np.unravel_index(np.argmin(legal), legal.shape)
        remedy = LIST_VALUES
        if set(np.unique(X[~np.isnan(X[:, j]), j]).tolist()) == {-1, 1}:
            remedy = "The column has the values -1 and 1 only. Recode it by (x + 1) / 2."
        elif X[i, j] < 0:
            code = shown(X[i, j])
            remedy = (
                "Negative values in data are out of this range. If it stands for a missing cell, "
                f"write it as NaN: np.where(X == {code}, np.nan, X)."
            )
            remedy += f" {IF_A_VALUE}" if coded else " If not, correct the cell."
        elif X[i, j] != np.floor(X[i, j]):
            remedy = (
                DECLARE
                if coded
                else "In the training data this column has values from 0 to "
                f"{self.n_values[j] - 1} only. Correct the cell, or write it as NaN."
            )
        columns = np.flatnonzero(~legal.all(axis=0))
        n_cells, titles = int((~legal).sum()), map(estimator._column, columns)
        more = first_of(n_cells, "such values", titles) if len(columns) > 1 else ""
        return (
            f"{type(estimator).__name__} needs values from 0 to {self.n_values[j] - 1} in "
            f"{estimator._column(j)}, but row {i} has the value {shown(X[i, j])}{more}. {remedy}"
        )


def find_coding(estimator, X):
    """The values of the columns, as the user says or as the table shows.

    Parameters
    ----------
    estimator : estimator
        With `_table` and `_check_domain`.
    X : ndarray of shape (n_samples, n_features)
        NaN is a missing cell.

    Returns
    -------
    coding : Coding
    """
    has_signs = X.dtype.kind != "b" and (X == -1).any()
    # With other values, -1 is a code for missing cells, which `Coding.codes` explains.
    has_signs = has_signs and not ((X > 1).any() and (X == 0).any())
    two = Coding(-1 if has_signs else 0, np.full(X.shape[1], 2))
    if has_signs or X.dtype.kind == "b":
        return two
    known = is_whole(X) | np.isnan(X) | (X == -1)
    if not known.all():
        if (X[known] > 1).any():
            estimator._check_domain(X, known, lambda j: "whole numbers from 0 on", DECLARE)
        return two
    with np.errstate(invalid="ignore"):
        top = np.where(np.isnan(X), 0, X).max(axis=0, initial=0).astype(np.int64)
    if top[~estimator._table.is_word].max(initial=0) >= MOST_VALUES:
        estimator._check_domain(
            X,
            ~(X >= MOST_VALUES),
            lambda j: f"at most {MOST_VALUES} values, from 0 on,",
            DECLARE,
        )
    estimator._warn_of_missing_codes(X)
    if top.max(initial=0) > 1 and not (X == 0).any():
        warnings.warn(
            f"{type(estimator).__name__}: no column has the value 0, and values of an array are "
            "numbered from 0, so that each column has a value that never occurs. If they begin at "
            "1, subtract 1, or fit a data frame.",
            stacklevel=find_stack_level(),
        )
    # Numbers without an atom have one value in the network.
    least = np.where(estimator._table.is_scored, 1, 2)
    return Coding(0, np.maximum(np.maximum(top + 1, estimator._table.n_categories), least))


def order_of_levels(estimator, coding):
    """The columns whose order makes a difference to the penalty; an array of bool."""
    table = estimator._table
    ordered = (table.is_ordinal | table.is_binned) & (coding.n_values > 2)
    is_penalised = isinstance(estimator.alpha, str) or estimator.alpha > 0
    return ordered if is_penalised else np.zeros_like(ordered)


def no_errors_of_ordered(estimator):
    """Why there are no standard errors with such a penalty on squares, and what to do."""
    return (
        "there are no standard errors with the penalty by the order of values, which "
        f"{estimator._have(np.flatnonzero(estimator.ordered_))}: they would not account for its "
        "bias. Declare columns of categories as 'nominal', and of numbers as 'number'."
    )


def value_names(names, labels):
    """``name=value``, in the one-hot layout."""
    return np.array(
        [f"{name}={a}" for name, values in zip(names, labels, strict=True) for a in values],
        dtype=object,
    )
