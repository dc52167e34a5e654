"""From the cells of a table to codes, and back."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._cells import is_whole
from sklearn_boltz.tables._column import MOST_CODES


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

    def codes(self, estimator, X, *, in_fit=False):
        """Check the domain; -> codes of the cells, -1 for NaN, small integers.

        `in_fit` is as of `_check_codes`.
        """
        if not self.is_binary:
            legal = np.isnan(X) | (is_whole(X) & (X < self.n_values))
            estimator._check_codes(
                X, legal, lambda j: f"values from 0 to {self.n_values[j] - 1}", in_fit
            )
            return np.where(np.isnan(X), -1, X).astype(np.min_scalar_type(-self.n_values.max() - 1))
        positive = X == 1
        missing = np.isnan(X) if X.dtype.kind == "f" else None
        legal = positive | (X == self.low)
        if missing is not None:
            legal |= missing
        estimator._check_codes(X, legal, lambda j: f"the values {self.low} and 1", in_fit)
        codes = positive.view(np.int8)
        if missing is not None:
            codes[missing] = -1
        return codes


def find_coding(estimator, X):
    """The values of the columns, as the user says or as the table shows.

    Parameters
    ----------
    estimator : estimator
        With `_table`, `_numbers_of_values` and `_check_codes`.
    X : ndarray of shape (n_samples, n_features)
        NaN is a missing cell.

    Returns
    -------
    coding : Coding
    """
    has_signs = X.dtype.kind != "b" and (X == -1).any()
    # With other values, -1 is a code for missing cells, which `_check_codes` explains.
    has_signs = has_signs and not ((X > 1).any() and (X == 0).any())
    if has_signs or X.dtype.kind == "b":
        return Coding(-1 if has_signs else 0, np.full(X.shape[1], 2))
    n_values, words = estimator._numbers_of_values(X), estimator._table.is_word
    if n_values[~words].max(initial=0) > MOST_CODES:
        what = f"at most {MOST_CODES} values, from 0 on,"
        estimator._check_codes(X, words | ~(X >= MOST_CODES), lambda j: what, in_fit=True)
    return Coding(0, n_values)


def order_of_levels(estimator, coding):
    """The columns whose order makes a difference to the penalty; an array of bool."""
    table = estimator._table
    ordered = (table.declared("ordinal") | table.is_binned) & (coding.n_values > 2)
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
