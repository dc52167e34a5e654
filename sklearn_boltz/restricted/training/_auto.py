"""What ``"auto"`` stands for: settings of a training from the numbers of rows and columns."""

import math

import numpy as np

from sklearn_boltz.units._unit import UnitType

# Hidden units: this many for each column, within limits.
UNITS_PER_COLUMN, LEAST_UNITS, MOST_UNITS = 2, 8, 500
# Mini-batches in an epoch, at least, as far as the limits of their size allow.
MINI_BATCHES, LEAST_BATCH, MOST_BATCH = 20, 10, 100
# The prior distribution of each weight has this variance, divided by the number
# of columns, so that the field on the unit has the same variance in tables of all widths. With
# 20 to 80, held-out log-likelihoods of eight tables of 1,670 to 16,181 rows and 16 to 1,058 columns
# differ little.
PRIOR_VARIANCE = 40
# The learning rate of a first stage times the summed variance of the columns, of which a quarter is
# about the curvature of the log-likelihood: at four times this rate, steps would diverge. Limits of
# the rate, and the rate for columns of real numbers, whose unit is arbitrary, and without stages.
RATE_OF_VARIANCE, LEAST_RATE, MOST_RATE, STEADY_RATE = 2.0, 0.03, 0.4, 0.05
# `partial_fit` does not know how many rows there will be.
STREAMED_ROWS = 10_000
# With fewer rows, none are set aside: too few to judge by.
LEAST_DIVIDED = 100


def chosen_components(n_rows, n_columns, per_root):
    """Number of hidden units, at most `per_root` times the root of the number of rows."""
    by_rows = per_root * math.isqrt(n_rows)
    return min(max(min(UNITS_PER_COLUMN * n_columns, by_rows), LEAST_UNITS), MOST_UNITS)


def resolve_n_components(n_components, hidden, *sizes):
    """Number of hidden units that is given, as such or by units, or else `chosen_components`."""
    if n_components != "auto":
        return n_components
    return hidden.n_units if isinstance(hidden, UnitType) else chosen_components(*sizes)


def chosen_decay(n_rows, n_columns):
    """Strength of the L2 penalty on the weights, for the mean log-likelihood of the rows.

    The maximum is that of the posterior density with a Gaussian prior of the weights, whose
    variance is `PRIOR_VARIANCE` / n_columns.
    """
    return n_columns / (PRIOR_VARIANCE * n_rows)


def chosen_l1(n_rows, n_columns):
    """Strength of an L1 penalty, of which the prior distribution is Laplace's of that variance."""
    return math.sqrt(2 * n_columns / PRIOR_VARIANCE) / n_rows


def chosen_batch(batch_size, n_rows):
    """Number of rows of a mini-batch: `batch_size`, if that is not "auto"."""
    if batch_size != "auto":
        return batch_size
    return min(max(n_rows // MINI_BATCHES, LEAST_BATCH), MOST_BATCH)


def chosen_rate(base, n_visible):
    """The learning rate that a training in stages begins with.

    Parameters
    ----------
    base : UnitType
        Independent units fitted to the data, the visible ones first.
    n_visible : int
        How many numbers these take.
    """
    if not base.is_enumerable:
        return STEADY_RATE
    variance = float(np.sum(base.variance(np.zeros((1, len(base))))[:, :n_visible]))
    return min(max(RATE_OF_VARIANCE / max(variance, 1e-3), LEAST_RATE), MOST_RATE)
