"""Meaning of `sample_weight` in all estimators and functions: how often each row counts.

Whole numbers are counts: a row of weight 2 is the same as two rows. Of other numbers, only the
ratios matter. They are scaled to sum to Kish's effective number of rows (Σ w)² / Σ w², the number
of rows of equal weight that estimate a mean as well, so that whatever goes by the sum of the
weights goes by this number.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from sklearn_boltz._warnings import warn
from sklearn_boltz.numerics._arrays import as_numpy, is_foreign

# Counts of a larger mean may be survey weights that somebody has rounded.
MOST_MEAN = 20
# From here on, all floats are whole numbers, also multiples of others.
MOST_COUNT = 2.0**52


class RowWeights(np.ndarray):
    """Weights that the rule has been applied to, also where only some of the rows are left."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """Results of arithmetic are plain."""
        return np.asarray(array)[()]


class Rule(NamedTuple):
    """Figures of the weights of all rows, by which they are scaled.

    Attributes
    ----------
    total, squares : float
        Sums of the weights and of their squares.
    are_counts : bool
    """

    total: float
    squares: float
    are_counts: bool

    @classmethod
    def of(cls, weights):
        """Rule for weights as the user gives them, an ndarray of float64."""
        return cls(float(weights.sum()), float((weights**2).sum()), are_counts(weights))

    def __add__(self, other):
        return Rule(
            *(a + b for a, b in zip(self[:2], other[:2], strict=True)), self[2] and other[2]
        )

    @property
    def factor(self):
        """Factor of the weights."""
        return 1.0 if self.are_counts else self.total / self.squares

    @classmethod
    def of_rows(cls, sample_weight, n_rows):
        """Rule for weights as the user gives them; None stands for 1 each."""
        given = 1.0 if sample_weight is None else as_numpy(sample_weight)
        given = np.asarray(given, dtype=np.float64)
        if given.ndim:
            return cls.of(given)
        return cls(float(n_rows * given), float(n_rows * given**2), are_counts(given))

    def together(self, other, before, more):
        """The rule of all rows, those before and more; and the weights of both by it."""
        rule = self + other
        factors = rule.factor / self.factor, rule.factor / other.factor
        return rule, before * factors[0], more * factors[1]


def are_counts(weights):
    """Whether these are counts of rows, from an ndarray of float64."""
    return bool((weights == np.floor(weights)).all() and weights.max(initial=0) < MOST_COUNT)


def squares_of(weights):
    """Contribution of each row to the variance of a weighted sum, in squares of its value.

    That of w rows for a count w, and w² for other weights.
    """
    return weights if are_counts(weights) else weights**2


def row_weights(sample_weight, *, tell=False):
    """How often each row counts, by the rule above, from the weights of all rows.

    `RowWeights` stay as they are. `tell` warns of counts that may be survey weights.
    """
    if sample_weight is None or isinstance(sample_weight, RowWeights):
        return sample_weight
    given = as_numpy(sample_weight) if is_foreign(sample_weight) else sample_weight
    given = np.asarray(given, dtype=np.float64)
    check_numbers(given)
    if are_counts(given):
        mean = given[given > 0].mean() if given.any() else 0.0
        if tell and mean > MOST_MEAN:
            warn_of_counts(mean, given)
        scaled = given
    else:
        shares = given / given.max()  # so that the sums are finite
        scaled = shares * Rule.of(shares)._replace(are_counts=False).factor
    return scaled.view(RowWeights) if scaled.ndim else float(scaled)


def check_numbers(given):
    """Refuse weights that say nothing."""
    illegal = np.flatnonzero(~((given >= 0) & (given < np.inf)))
    if len(illegal):
        value = given.ravel()[illegal[0]]
        raise ValueError(
            f"sample_weight is {f'{value:g}'.replace('nan', 'NaN')} in row {illegal[0]}. Weights "
            "must be finite and not negative."
        )
    if given.size and not given.any():
        raise ValueError("sample_weight is 0 for all rows: at least one non-zero number is needed.")


def warn_of_counts(mean, counts):
    """Warn of counts of which the user may have meant the ratios."""
    warn(
        f"the whole numbers in sample_weight have the mean {mean:.4g}. They are taken for counts "
        f"of rows, {counts.sum():,.0f} together: a row of weight 2 is the same as two rows. If "
        "only their ratios matter, as of survey weights, pass sample_weight=w / w.max(): weights "
        "that are not whole are scaled to sum to their effective number of rows, (Σw)²/Σw². If "
        "they are counts, ignore this warning."
    )


def checked_weights(sample_weight, X):
    """How often each row of a table counts, as `row_weights` says, an array of float64."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights = row_weights(sample_weight)
    return _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)


def mean_of_rows(values, sample_weight):
    """The mean over rows that count; others may have a value of -inf."""
    if sample_weight is None:
        return float(np.mean(values))
    weights = checked_weights(sample_weight, values)
    counted = weights > 0
    return float(np.average(values[counted], weights=weights[counted]))
