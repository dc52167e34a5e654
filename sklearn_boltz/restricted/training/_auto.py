"""Settings of a training for ``"auto"``, from the numbers of rows and columns."""

import math

from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.units._unit import UnitType

# Hidden units: this many for each column, within limits.
UNITS_PER_COLUMN, LEAST_UNITS, MOST_UNITS = 2, 8, 500
# The prior distribution of each weight has this variance, divided by the number
# of columns, so that the field on the unit has the same variance in tables of all widths. With
# 20 to 80, held-out log-likelihoods of eight tables of 1,670 to 16,181 rows and 16 to 1,058 columns
# differ little.
PRIOR_VARIANCE = 40
# `partial_fit` does not know how many rows there will be.
STREAMED_ROWS = 10_000
# With fewer rows, none are set aside: too few to judge by.
LEAST_DIVIDED = 100


def chosen_components(n_rows, n_columns, per_root):
    """Number of hidden units, at most `per_root` times the root of the number of rows."""
    by_rows = per_root * math.isqrt(n_rows)
    return min(max(min(int(UNITS_PER_COLUMN * n_columns), by_rows), LEAST_UNITS), MOST_UNITS)


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


def chosen_by(learner, names):
    """The parameters of some names that may be "auto", as a learner uses them."""
    sizes = [units.n_units for units in Layered.of(learner.model()).layers[1:]]
    found = {"hidden_layer_sizes": sizes, "n_components": sizes[0]}
    if "alpha" in names:
        found["alpha"] = learner.scheme.alpha
    return {name: found[name] for name in names}
