"""Optimizers: gradient ascent with momentum, and Adam.

An optimizer knows only gradients and the steps it made. The gradients come multiplied by the
learning rate, and may be overwritten.
"""

import math
from copy import copy

import numpy as np

from sklearn_boltz.numerics._arrays import is_foreign, namespace_of, zeros
from sklearn_boltz.restricted.training._adam_kernel import adam_step

# Of Adam, as published: the decay rates of the means of gradients and of their squares, β₁ and β₂,
# and what is added to the root.
MOMENTUM, DECAY, EPSILON = 0.9, 0.999, 1e-8


class SGD:
    """Gradient ascent, with momentum if wanted.

    Parameters
    ----------
    momentum : float
        Part of the last step that is added to the next.

    Attributes
    ----------
    plain : bool
        Whether the steps are the gradients.
    """

    def __init__(self, momentum=0.0):
        self.momentum, self.plain, self.velocity = momentum, momentum == 0, None

    def moved(self, convert):
        """The optimizer with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        if self.velocity is not None:
            other.velocity = [convert(velocity) for velocity in self.velocity]
        return other

    def steps(self, gradients):
        """Return what to add to each parameter."""
        if self.plain:
            return gradients
        if self.velocity is None:
            self.velocity = [zeros(gradient, gradient.shape) for gradient in gradients]
        for velocity, gradient in zip(self.velocity, gradients, strict=True):
            velocity *= self.momentum
            velocity += gradient
        return self.velocity


class Adam:
    """Gradient ascent by adaptive moments (Kingma and Ba, 2015).

    Each parameter moves along the mean of its gradients, divided by the root of the mean of
    their squares.
    """

    def __init__(self):
        self.n_steps, self.moments = 0, None

    def moved(self, convert):
        """The optimizer with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        if self.moments is not None:
            other.moments = [tuple(map(convert, pair)) for pair in self.moments]
        return other

    def move(self, parameters, gradients, rate):
        """Add the steps to the parameters, in place, along gradients without the learning rate."""
        if self.moments is None:
            self.moments = [(zeros(g, g.shape), zeros(g, g.shape)) for g in gradients]
        self.n_steps += 1
        root = math.sqrt(1 - DECAY**self.n_steps)
        options = MOMENTUM, DECAY, EPSILON * root, rate * root / (1 - MOMENTUM**self.n_steps)
        for parameter, gradient, (mean, square) in zip(
            parameters, gradients, self.moments, strict=True
        ):
            if is_foreign(parameter):
                _adam_step_of_arrays(parameter, gradient, mean, square, *options)
            else:
                adam_step(*map(np.ravel, (parameter, gradient, mean, square)), *options)


def _adam_step_of_arrays(x, gradient, mean, square, momentum, decay, epsilon, rate):
    """`adam_step` of arrays of another library."""
    mean *= momentum
    mean += (1 - momentum) * gradient
    square *= decay
    square += (1 - decay) * gradient * gradient
    x += rate * mean / (namespace_of(square).sqrt(square) + epsilon)
