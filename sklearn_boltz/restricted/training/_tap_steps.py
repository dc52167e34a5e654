"""TAP training: one mini-batch of Algorithms 2 and 4 of Tramel et al. (2018)."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz._threads import row_blocks
from sklearn_boltz.restricted.mean_field._clamped import clamp, fields_of_layers
from sklearn_boltz.restricted.mean_field._tap import (
    Iteration,
    Layer,
    iterate,
    mean_squared_change,
    negative_squares,
    start_at,
)
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.sampling._gibbs import rows_to_start_at

# Hidden units of a block of the gradient.
GRADIENT_ROWS = 50


class Scheme(NamedTuple):
    """How a mini-batch is learned from."""

    iteration: Iteration
    persistent: bool = False
    n_solutions: int = 100  # persistent ones
    penalty: str | None = "l2"
    alpha: float = 1e-3


class Learner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    weights : list of ndarray of shape (n_units of a layer, n_units of the one below)
    layers : list of unit laws
        From the visible layer up; their parameters are changed in place.
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted.training._optimizers`. It makes the
        steps of the weights only, as in the paper.
    """

    def __init__(self, weights, layers, optimizer):
        self.weights, self.layers = weights, layers
        self.optimizer = optimizer
        self.starts = None  # means of the visible side, of persistent solutions

    def parameters(self):
        """Weights and the parameters of the units, not copied."""
        units = [value for law in self.layers for value in law.parameters().values()]
        return [*self.weights, *units]

    def model(self):
        """The machine as it stands; it shares the arrays."""
        return Layered(self.weights, self.layers)


class Beliefs(NamedTuple):
    """Of all layers, from the visible one up: lists of arrays of shape (n_rows, n_units).

    A variance of None is that of values which are known, or exact given such.
    """

    means: list
    variances: list


def learn_batch(learner, V, scheme, rate, workers, buffers):
    """Change the parameters by the rows of one mini-batch.

    Parameters
    ----------
    learner : Learner
    V : ndarray of shape (n_rows, n_visible)
        Any number of rows.
    scheme : Scheme
    rate : float
        Learning rate.
    workers : Workers
    buffers : Buffers

    Returns
    -------
    change : float
        Mean squared change of the means in the last iteration, over all solutions.
    """
    machine, order = learner.model(), scheme.iteration.order
    clamped, starts = None, V
    hidden_at_starts = buffers("H", (len(V), len(machine.layers[1])), V.dtype)
    if len(machine.weights) > 1 or scheme.persistent:
        clamped = clamp(machine, V, scheme.iteration, workers)
        starts, hidden_at_starts = clamped.visible_side(), None
        data = Beliefs(clamped.means(), clamped.variances())
    else:
        # Where the solutions of an RBM start, its hidden units have just what is asked for.
        data = Beliefs([V, hidden_at_starts], [None, None])
    if scheme.persistent:
        if learner.starts is None:
            learner.starts = starts[rows_to_start_at(scheme.n_solutions, len(V))]
        starts = learner.starts
    solutions, change = _follow(machine, starts, scheme, workers, buffers, hidden_at_starts)
    if scheme.persistent:
        learner.starts = solutions.visible_mean.copy()
    free = Beliefs(
        machine.split(solutions.visible_mean, solutions.hidden_mean),
        machine.split(solutions.visible_variance, solutions.hidden_variance),
    )
    steps = [
        _ascent(k, W, data, free, scheme, rate, workers, buffers)
        for k, W in enumerate(machine.weights)
    ]
    if all_binary(machine):
        pairs = zip(data.means, free.means, strict=True)
        slopes = [{"intercept": a.mean(axis=0) - b.mean(axis=0)} for a, b in pairs]
    else:
        clamped = clamped or clamp(machine, V, scheme.iteration, workers)
        slopes = unit_gradients(clamped, solutions, order)
    for W, step in zip(learner.weights, learner.optimizer.steps(steps), strict=True):
        W += step
    for units, slope in zip(learner.layers, slopes, strict=True):
        units.ascend(slope, rate)
    return change


def all_binary(machine):
    """Whether the gradients of the units follow from the means alone."""
    return all(units.is_binary for units in machine.layers)


def _follow(machine, starts, scheme, workers, buffers, hidden_at_starts=None):
    """A few iterations from each start, in buffers; -> solutions, mean squared change."""
    model, iteration, n_starts = machine.sides(), scheme.iteration, len(starts)

    def side(name, n_units):
        return Layer(*(buffers(f"{name}{k}", (n_starts, n_units), model.dtype) for k in range(4)))

    visible, hidden = side("visible", len(model.visible)), side("hidden", len(model.hidden))
    squares = [buffers(f"squares{k}", W.shape, W.dtype) for k, W in enumerate(machine.weights)]
    squares = machine._replace(weights=squares).sides().weights
    squares = negative_squares(model, iteration.order, squares)
    change = np.zeros(n_starts)

    def block(rows):
        layers = visible.rows(rows), hidden.rows(rows)
        start_at(model, starts[rows], *layers)
        if hidden_at_starts is not None:
            hidden_at_starts[rows] = layers[1].mean
        for _ in range(iteration.max_iter):
            iterate(model, squares, *layers, iteration.damping)
            change[rows] = mean_squared_change(*layers)
            if (change[rows] < iteration.tol).all():
                break

    workers.map(block, row_blocks(n_starts), n_starts * model.weights.size * 4 * iteration.max_iter)
    solutions = Bunch(
        visible_mean=visible.mean, visible_variance=visible.variance,
        hidden_mean=hidden.mean, hidden_variance=hidden.variance,
    )  # fmt: skip
    return solutions, float(change.mean())


def _ascent(k, W, data, free, scheme, rate, workers, buffers):
    """rate * (⟨a a + W c c⟩ data − ⟨a a + W c c⟩ solutions − alpha R(W)) between k and k + 1."""
    step, scratch = (buffers(f"{name}{k}", W.shape, W.dtype) for name in ("step", "scratch"))
    decay = rate * scheme.alpha

    def scaled(a):
        """The rate is multiplied in where it is cheap."""
        return None if a is None else a * (rate / len(a))

    (V, H), (c_v, c_h) = data.means[k : k + 2], data.variances[k : k + 2]
    (a_v, a_h), (d_v, d_h) = free.means[k : k + 2], free.variances[k : k + 2]
    H, c_h, a_h, d_h = scaled(H), scaled(c_h), scaled(a_h), scaled(d_h)

    def block(units):
        mine, other, own = step[units], scratch[units], W[units]
        np.matmul(H[:, units].T, V, out=mine)
        mine -= np.matmul(a_h[:, units].T, a_v, out=other)
        if scheme.iteration.order == 2:
            np.matmul(d_h[:, units].T, d_v, out=other)
            if c_v is not None:
                other -= c_h[:, units].T @ c_v
            other *= own
            mine -= other
        if scheme.penalty == "l2":
            mine -= np.multiply(own, decay, out=other)
        elif scheme.penalty == "l1":
            np.sign(own, out=other)
            other *= decay
            mine -= other

    workers.map(block, row_blocks(len(step), GRADIENT_ROWS), 3 * len(V) * step.size)
    return step


def unit_gradients(clamped, solutions, order):
    """Derivatives of the mean TAP log-likelihood of rows by the units' parameters.

    Parameters
    ----------
    clamped : Clamped
        The rows.
    solutions : Bunch
        As of `mean_field._tap.solve`, of the machine; their mean is taken.
    order : {1, 2}

    Returns
    -------
    gradients : list of dict of str to ndarray
        Of each layer, from the visible one up.
    """
    at_data = gradients_at_rows(clamped, order)
    at_solutions = gradients_at_solutions(clamped.machine, solutions, order)
    return [
        {name: data[name] - model[name] for name in data}
        for data, model in zip(at_data, at_solutions, strict=True)
    ]


def gradients_at_rows(clamped, order):
    """The part of `unit_gradients` that rows have: means over them."""
    visible, *hidden = clamped.machine.layers
    fields = zip(hidden, clamped.fields(order), strict=True)
    return [
        visible.gradients(clamped.V),
        *(units.gradients(None, B, A) for units, (B, A) in fields),
    ]


def gradients_at_solutions(machine, solutions, order):
    """The part that is taken away: means over solutions."""
    fields = zip(machine.layers, fields_of_layers(machine, solutions, order), strict=True)
    return [units.gradients(None, B, A) for units, (B, A) in fields]
