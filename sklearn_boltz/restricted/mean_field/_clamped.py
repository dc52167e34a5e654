"""Mean field of the hidden layers given rows of data: the visible layer is clamped.

The hidden layers given the visible one are a model by themselves, with a field W₁ v on the
first of them (Appendix E of Tramel et al., 2018). Where there is only one, its units are
independent, and all that follows is exact.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz._methods import dense
from sklearn_boltz.numerics._arrays import like, numpy_dtype
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.mean_field._observed import solve_observed
from sklearn_boltz.restricted.mean_field._solutions import fields, free_energy
from sklearn_boltz.restricted.mean_field._tap import Evidence, solve
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps


class Clamped(NamedTuple):
    """Rows of the visible layer, and the beliefs about the hidden layers given them.

    Attributes
    ----------
    layered : Layered
    V : ndarray of shape (n_rows, n_visible)
    field : ndarray of shape (n_rows, n_units of the first hidden layer)
        W₁ v.
    solutions : Bunch or None
        As returned by `mean_field._tap.solve`, for the hidden layers; None if there is only one.
    """

    layered: Layered
    V: np.ndarray
    field: np.ndarray
    solutions: Bunch | None

    @property
    def converged(self):
        """Whether each row has."""
        if self.solutions is None:
            return np.ones(len(self.V), dtype=bool)
        return self.solutions.converged

    def means(self):
        """Means of all layers, from the visible one up: a list of arrays."""
        if self.solutions is None:
            return [self.V, self.layered.layers[1].mean(self.field)]
        hidden, found = self.layered.hidden_layers(), self.solutions
        return [self.V, *hidden.split(found.visible_mean, found.hidden_mean)]

    def variances(self):
        """Variances of all layers, from the visible one up; None where values are exact."""
        if self.solutions is None:
            return [None, None]
        hidden, found = self.layered.hidden_layers(), self.solutions
        return [None, *hidden.split(found.visible_variance, found.hidden_variance)]

    def visible_side(self):
        """The even layers, as rows of the visible side of the model."""
        return np.hstack(self.means()[::2]) if self.solutions is not None else self.V

    def fields(self, order):
        """(B, A) of each hidden layer."""
        if self.solutions is None:
            return [(self.field, 0.0)]
        first, *others = fields_of_layers(self.layered.hidden_layers(), self.solutions, order)
        return [(first[0] + self.field, first[1]), *others]

    def visible_gradients(self, order):
        """Mean derivatives of ln w(v) by the parameters of the visible units."""
        return self.layered.layers[0].gradients(self.V)

    def free_energy(self, order):
        """F(v), ln p(v) = −F(v) − ln Z: ndarray of float64 of shape (n_rows,)."""
        visible, first = self.layered.layers[:2]
        if self.solutions is None:
            return -visible.log_weight(self.V) - first.log_partition_sum(self.field)
        hidden = self.layered.hidden_layers()
        evidence = Evidence(hidden.padded(self.field))
        of_hidden = free_energy(hidden.sides(), self.solutions, order, evidence)
        return of_hidden - visible.log_weight(self.V)


def clamp(layered, V, iteration, workers):
    """Find the beliefs about the hidden layers given rows, from the lowest layer upwards.

    Parameters
    ----------
    layered : Layered
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    iteration : TAP
    workers : Workers

    Returns
    -------
    clamped : Clamped or ObservedRows
    """
    if rows_with_gaps(V) is not None:
        return solve_observed(layered, V, iteration, workers)
    field = V @ layered.weights[0].T
    if len(layered.weights) == 1:
        return Clamped(layered, V, field, None)
    hidden = layered.hidden_layers()
    means = [hidden.layers[0].mean(field)]
    for W, units in zip(hidden.weights, hidden.layers[1:], strict=True):
        means.append(units.mean(means[-1] @ W.T))
    start, evidence = np.hstack(means[::2]), Evidence(hidden.padded(field))
    solutions = solve(hidden.sides(), start, iteration, workers, evidence=evidence)
    return Clamped(layered, V, field, solutions)


class MeanFieldModel(NamedTuple):
    """p(v) of a deep machine, its hidden layers summed out by mean field.

    Attributes
    ----------
    layered : Layered
    iteration : TAP
    n_jobs : int or None
    """

    layered: Layered
    iteration: NamedTuple
    n_jobs: int | None

    @property
    def visible(self):
        """The units of the visible layer."""
        return self.layered.layers[0]

    @property
    def weights(self):
        """Between the visible and the first hidden layer."""
        return self.layered.weights[0]

    visible_field, mean_visible = Model.visible_field, Model.mean_visible

    def sides(self):
        """Joint distribution with the hidden layers, as a `Model`."""
        return self.layered.sides()

    def energy(self, V, *H):
        """E(v, h) of values of all layers, in float64."""
        layers = [dense(V), *H]
        return self.sides().energy(np.hstack(layers[::2]), np.hstack(layers[1::2]))

    def side(self, V):
        """Rows of the visible side for rows of visible units: other units are at their means."""
        return self.clamped(V).visible_side()

    def clamped(self, V):
        """Beliefs given rows."""
        with Workers(self.n_jobs) as workers:
            return clamp(self.layered, np.ascontiguousarray(V), self.iteration, workers)

    def free_energy(self, V):
        """F(v) of rows, in float64."""
        return self.clamped(V).free_energy(self.iteration.order)


def visible_side(layered, V, iteration, workers):
    """Rows of the visible side for rows of data: unknown values are set to their means."""
    if len(layered.weights) == 1 and rows_with_gaps(V) is None:
        return V
    return clamp(layered, V, iteration, workers).visible_side()


def tap_starts(rbm, V, kept, iteration):
    """Where TAP starts: by rows of a `FittedRBM`, or by those that it has kept, if any; or None."""
    if V is not None:
        return rbm.marginal.side(V)
    if kept is None:
        return None
    kept = like(rbm.layered.weights[0], kept.astype(numpy_dtype(rbm.layered.weights[0])))
    with Workers(rbm.n_jobs) as workers:
        return visible_side(rbm.layered, kept, iteration, workers)


def fields_of_layers(layered, solutions, order):
    """(B, A) of each layer at solutions of the two sides."""
    return layered.split_tilts(*fields(layered.sides(), solutions, order))
