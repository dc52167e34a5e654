"""Optimizers: gradient ascent with momentum, and stochastic spectral descent.

An optimizer knows only gradients and the steps it made. The gradients come multiplied by the
learning rate, and may be overwritten. All optimizers are of degree one: twice the gradient is
twice the step.
"""

import numpy as np
from scipy.linalg import svd


class SGD:
    """Gradient ascent, with momentum if wanted.

    Parameters
    ----------
    momentum : float
        Part of the last step that is added to the next.
    """

    def __init__(self, momentum=0.0):
        self.momentum = momentum
        self.velocity = None

    @property
    def plain(self):
        """Whether the steps are the gradients."""
        return self.momentum == 0

    def steps(self, gradients):
        """Return what to add to each parameter."""
        if self.momentum == 0:
            return gradients
        if self.velocity is None:
            self.velocity = [np.zeros_like(gradient) for gradient in gradients]
        for velocity, gradient in zip(self.velocity, gradients, strict=True):
            velocity *= self.momentum
            velocity += gradient
        return self.velocity


class SpectralDescent(SGD):
    """Stochastic spectral descent (Carlson, Cevher and Carin, 2015).

    The steepest step for a bound of the log-partition in the Schatten-∞ norm: along U Vᵀ of
    the singular value decomposition of a matrix of gradients, as long as the sum of its
    singular values; for a vector in the ℓ∞ norm, along its signs.
    """

    plain = False

    def steps(self, gradients):
        """Return what to add to each parameter."""
        return super().steps([self._sharp(gradient) for gradient in gradients])

    @staticmethod
    def _sharp(gradient):
        if gradient.ndim == 1:
            return np.abs(gradient).sum() * np.sign(gradient)
        if not np.isfinite(gradient).all():
            return gradient  # there is no decomposition; who checks the parameters will see it
        U, s, Vt = svd(gradient, full_matrices=False, check_finite=False)
        return s.sum() * (U @ Vt)


OPTIMIZERS = {"sgd": SGD, "ssd": SpectralDescent}
