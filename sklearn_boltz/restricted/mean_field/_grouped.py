"""Stacked units with those of one type together, wherever they are in a row.

The columns of a table come in any order, and a layer of one type for each run of them would be
many small ones: most of the time would go into calls.
"""

import numpy as np

from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical


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
    parts = units.parts()
    bits = [part for part in parts if part[0].is_binary]
    words = [part for part in parts if type(part[0]) is Categorical]
    if max(len(bits), len(words)) < 2:
        return units
    groups, every = [], np.arange(len(units))
    if bits:
        groups.append((Bernoulli(_joined(bits)), _columns(bits, every)))
    if words:
        widths = np.concatenate([part.widths for part, _ in words])
        groups.append((Categorical(widths, _joined(words)), _columns(words, every)))
    others = [part for part in parts if part not in bits and part not in words]
    return Grouped(groups + [(part, every[columns]) for part, columns in others])


def _joined(parts):
    return np.concatenate([part.intercept for part, _ in parts])


def _columns(parts, every):
    return np.concatenate([every[columns] for _, columns in parts])
