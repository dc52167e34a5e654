"""Mean field of the hidden layers and of the missing cells, given the observed cells of rows.

In the full model the observed units are clamped; the missing ones are free, as are all hidden
units. The free energy is stationary in the means and variances of what is free: its derivatives
by the parameters are those at fixed beliefs.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz.restricted.mean_field._solutions import fields, free_energy
from sklearn_boltz.restricted.mean_field._tap import Evidence, solve
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.sampling._observed import (
    missing_units,
    observed_log_weight,
    spread_over_columns,
)


class ObservedRows(NamedTuple):
    """Rows of the visible layer with missing cells, and the beliefs given the observed ones.

    It has the interface of `mean_field._clamped.Clamped`.

    Attributes
    ----------
    layered : Layered
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    solutions : Bunch
        As of `mean_field._tap.solve`, of the two sides of the model.
    evidence : Evidence
    """

    layered: Layered
    V: np.ndarray
    solutions: Bunch
    evidence: Evidence

    @property
    def converged(self):
        """Whether each row has."""
        return self.solutions.converged

    def means(self):
        """Means of all layers, from the visible one up: a list of arrays."""
        return self.layered.split(self.solutions.visible_mean, self.solutions.hidden_mean)

    def variances(self):
        """Variances of all layers, from the visible one up; 0 for observed cells."""
        return self.layered.split(self.solutions.visible_variance, self.solutions.hidden_variance)

    def visible_side(self):
        """The even layers, as rows of the visible side of the model."""
        return self.solutions.visible_mean

    def _all_fields(self, order):
        """(B, A) of each layer."""
        return self.layered.split_tilts(*fields(self.layered.sides(), self.solutions, order))

    def fields(self, order):
        """(B, A) of each hidden layer."""
        return self._all_fields(order)[1:]

    def visible_gradients(self, order):
        """Mean derivatives of ln w(x) at observed cells, and of ln Z(B, A) at missing ones."""
        units, tilt = self.layered.layers[0], self._all_fields(order)[0]
        missing = spread_over_columns(units, missing_units(units, np.isnan(self.V)))
        B, A = (np.where(missing, values, 0).astype(self.V.dtype) for values in tilt)
        parts = units.parts()
        found = [
            _gradients(part, self.V[:, columns], missing[:, columns], B[:, columns], A[:, columns])
            for part, columns in parts
        ]
        if len(parts) == 1:
            return found[0]
        return {(k, name): slope for k, part in enumerate(found) for name, slope in part.items()}

    def free_energy(self, order):
        """F(v_o), ln p(v_o) = −F(v_o) − ln Z: ndarray of float64 of shape (n_rows,)."""
        return free_energy(self.layered.sides(), self.solutions, order, self.evidence)


def _gradients(units, V, missing, B, A):
    """The derivatives of units of one type.

    They are means over rows. A cell that is not among these units gets a fixed value or field,
    whose known derivative is subtracted.
    """
    value, share = units.mean(np.zeros((1, len(units)), V.dtype)), missing.mean(axis=0)
    zeros = np.zeros_like(value)
    observed = units.gradients(np.where(missing, value, V).astype(V.dtype))
    free = units.gradients(None, B, A)
    of_value, of_zero = units.gradients(value), units.gradients(None, zeros, zeros)
    return {
        name: (
            observed[name] - share * of_value[name] + free[name] - (1 - share) * of_zero[name]
        ).astype(slope.dtype)
        for name, slope in observed.items()
    }


def solve_observed(layered, V, iteration, workers):
    """Find the beliefs about the missing cells and the hidden units of rows.

    Parameters
    ----------
    layered : Layered
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    iteration : TAP
    workers : Workers

    Returns
    -------
    observed : ObservedRows
    """
    visible, first = layered.layers[:2]
    of_units = missing_units(visible, np.isnan(V))
    missing = spread_over_columns(visible, of_units)
    rows = np.where(missing, visible.mean(np.zeros((1, len(visible)), V.dtype)), V)
    hidden = [first.mean(rows @ layered.weights[0].T)]
    rows = np.where(missing, visible.mean(hidden[0] @ layered.weights[0]), V).astype(V.dtype)
    for W, units in zip(layered.weights[1:], layered.layers[2:], strict=True):
        hidden.append(units.mean(hidden[-1] @ W.T))
    start, pad = np.hstack([rows, *hidden[1::2]]), layered.padded
    moments = visible.moments(hidden[0] @ layered.weights[0])
    variance = pad(np.where(missing, moments[1], 0).astype(V.dtype))
    known = pad(~missing, False)
    # What is known of each unit, whatever else there is on its side.
    evidence = Evidence(known=known)
    solutions = solve(layered.sides(), start, iteration, workers, variance, evidence)
    weight = observed_log_weight(visible, np.where(missing, 0, V), of_units)
    return ObservedRows(layered, V, solutions, evidence._replace(log_weight=weight))
