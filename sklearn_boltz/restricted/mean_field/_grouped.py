"""Stacked units with those of one type together, wherever they are in a row.

The columns of a table come in any order, and a layer of one type for each run of them would be
many small ones: most of the time would go into calls.
"""

import numpy as np

from sklearn_boltz.units._stacked import by_type


class Grouped:
    """Moments of units, group by group.

    Parameters
    ----------
    groups : list of (UnitType, ndarray of int)
        Units, and their columns.
    """

    is_binary = False

    def __init__(self, groups):
        self.groups = groups

    def moments(self, field, precision=0.0):
        """Means and variances, as of `UnitType`."""
        mean, variance = np.empty(field.shape, field.dtype), np.empty(field.shape, field.dtype)
        for units, columns in self.groups:
            A = precision if np.ndim(precision) == 0 else precision[..., columns]
            mean[..., columns], variance[..., columns] = units.moments(field[..., columns], A)
        return mean, variance


def grouped(units):
    """The same units in fewer groups, for their moments; themselves if there are no fewer."""
    together, order = by_type(units)
    if order is None:
        return units
    return Grouped([(part, order[columns]) for part, columns in together.parts()])
