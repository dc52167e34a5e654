"""TAP training: one mini-batch of Algorithm 2 of Tramel et al. (2018)."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz.restricted._gibbs import row_blocks
from sklearn_boltz.restricted._model import Model
from sklearn_boltz.restricted._tap import (
    Iteration,
    Layer,
    fields,
    iterate,
    mean_squared_change,
    negative_squares,
    start_at,
)
from sklearn_boltz.restricted.units import Bernoulli

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
    weights : ndarray of shape (n_hidden, n_visible)
    visible, hidden : unit laws
        Their parameters are changed in place.
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted._optimizers`. It makes the
        steps of the weights only, as in the paper.
    """

    def __init__(self, weights, visible, hidden, optimizer):
        self.weights, self.visible, self.hidden = weights, visible, hidden
        self.optimizer = optimizer
        self.starts = None  # visible means, of persistent solutions

    def parameters(self):
        """Weights and the parameters of the units, not copied."""
        units = [*self.visible.parameters().values(), *self.hidden.parameters().values()]
        return [self.weights, *units]

    def model(self):
        """The RBM as it stands; it shares the arrays."""
        return Model(self.weights, self.visible, self.hidden)


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
    model = learner.model()
    starts = V
    if scheme.persistent:
        if learner.starts is None:
            learner.starts = V[np.arange(scheme.n_solutions) % len(V)]
        starts = learner.starts
    visible, hidden, H, change = _follow(model, V, starts, scheme, workers, buffers)
    if scheme.persistent:
        learner.starts = visible.mean.copy()
    step = buffers("step", learner.weights.shape, learner.weights.dtype)
    _ascent(step, model, V, H, visible, hidden, scheme, rate, workers, buffers)
    slopes = _unit_slopes(model, V, H, visible, hidden, scheme)
    learner.weights += learner.optimizer.steps([step])[0]
    for units, slope in zip((learner.visible, learner.hidden), slopes, strict=True):
        units.ascend(slope, rate)
    return change


def _follow(model, V, starts, scheme, workers, buffers):
    """A few iterations from each start, in buffers; also the hidden means at the data."""
    iteration, dtype, n_starts = scheme.iteration, model.dtype, len(starts)

    def layer(name, n_units):
        return Layer(*(buffers(f"{name}{k}", (n_starts, n_units), dtype) for k in range(4)))

    visible, hidden = layer("visible", len(model.visible)), layer("hidden", len(model.hidden))
    H = buffers("H", (len(V), len(model.hidden)), dtype)
    squares = buffers("squares", model.weights.shape, dtype)
    squares = negative_squares(model, iteration.order, squares)
    change = np.zeros(n_starts)

    def block(rows):
        layers = visible.rows(rows), hidden.rows(rows)
        start_at(model, starts[rows], *layers)
        if starts is V:
            H[rows] = layers[1].mean
        for _ in range(iteration.max_iter):
            iterate(model, squares, *layers, iteration.damping)
            change[rows] = mean_squared_change(*layers)
            if (change[rows] < iteration.tol).all():
                break

    workers.map(block, row_blocks(n_starts), n_starts * model.weights.size * 4 * iteration.max_iter)
    if starts is not V:
        H[...] = model.mean_hidden(V)
    return visible, hidden, H, float(change.mean())


def _ascent(step, model, V, H, visible, hidden, scheme, rate, workers, buffers):
    """step = rate * (⟨h v⟩ data − ⟨a a + W c c⟩ solutions − alpha R(W)), a part a thread."""
    # The rate is multiplied in where it is cheap.
    H = H * (rate / len(H))
    mean, variance = (a * (rate / len(visible.mean)) for a in (hidden.mean, hidden.variance))
    scratch, decay = buffers("scratch", step.shape, step.dtype), rate * scheme.alpha

    def block(units):
        mine, other, W = step[units], scratch[units], model.weights[units]
        np.matmul(H[:, units].T, V, out=mine)
        mine -= np.matmul(mean[:, units].T, visible.mean, out=other)
        if scheme.iteration.order == 2:
            np.matmul(variance[:, units].T, visible.variance, out=other)
            other *= W
            mine -= other
        if scheme.penalty == "l2":
            mine -= np.multiply(W, decay, out=other)
        elif scheme.penalty == "l1":
            np.sign(W, out=other)
            other *= decay
            mine -= other

    workers.map(block, row_blocks(len(step), GRADIENT_ROWS), 3 * len(V) * step.size)


def _unit_slopes(model, V, H, visible, hidden, scheme):
    """Derivatives by the parameters of the visible and of the hidden units, as dicts."""
    if type(model.visible) is type(model.hidden) is Bernoulli:
        pairs = (V, visible.mean), (H, hidden.mean)
        return [{"intercept": data.mean(axis=0) - mean.mean(axis=0)} for data, mean in pairs]
    solutions = Bunch(
        visible_mean=visible.mean, visible_variance=visible.variance,
        hidden_mean=hidden.mean, hidden_variance=hidden.variance,
    )  # fmt: skip
    return unit_gradients(model, V, solutions, scheme.iteration.order)


def unit_gradients(model, V, solutions, order):
    """Derivatives of the mean TAP log-likelihood of rows by the units' parameters.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
    solutions : Bunch
        As of `sklearn_boltz.restricted._tap.solve`; their mean is taken.
    order : {1, 2}

    Returns
    -------
    visible, hidden : dict of str to ndarray
    """
    at_data = model.visible.gradients(V), model.hidden.gradients(None, model.hidden_field(V))
    units = model.visible, model.hidden
    at_solutions = [
        law.gradients(None, B, A)
        for law, (B, A) in zip(units, fields(model, solutions, order), strict=True)
    ]
    return [
        {name: data[name] - model_[name] for name in data}
        for data, model_ in zip(at_data, at_solutions, strict=True)
    ]
