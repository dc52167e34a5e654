"""S-DCP and CS-DCP: one mini-batch of the algorithms of Upadhya and Sastry (2017).

The parameters are always the ordinary ones. Centring is a change of coordinates in which the
gradient is taken: with offsets μ, λ and W the weights (n_hidden, n_visible), the centred
biases are b + λW and c + Wμ. Sliding the offsets changes neither the law nor the ordinary
parameters, and a step (ΔW, Δb, Δc) in centred coordinates is the step
(ΔW, Δb − λΔW, Δc − ΔWμ) in ordinary ones.
"""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.restricted._gibbs import draw, row_blocks, run_chains
from sklearn_boltz.restricted._gibbs_kernel import moments
from sklearn_boltz.restricted._model import Model
from sklearn_boltz.restricted.units import Bernoulli

# Hidden units of a block of the gradient.
GRADIENT_ROWS = 250


class Scheme(NamedTuple):
    """Which algorithm: CD-K is (1, K), S-DCP (d, K'), both centred or not."""

    n_inner: int = 6
    n_gibbs: int = 4
    centered: bool = True
    persistent: bool = False
    n_chains: int = 100  # persistent ones
    offset_rate: float = 0.01
    weight_decay: float = 0.0


class Learner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    weights : ndarray of shape (n_hidden, n_visible)
    visible_bias : ndarray of shape (n_visible,)
    hidden_bias : ndarray of shape (n_hidden,)
    visible_offset : ndarray of shape (n_visible,)
        μ at the start, by rights the mean of the data; λ starts at 1/2.
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted._optimizers`.
    stream : Stream
    """

    def __init__(self, weights, visible_bias, hidden_bias, visible_offset, optimizer, stream):
        self.weights, self.visible_bias, self.hidden_bias = weights, visible_bias, hidden_bias
        self.visible_offset = visible_offset
        self.hidden_offset = np.full_like(hidden_bias, 0.5)
        self.optimizer, self.stream = optimizer, stream
        self.chains = None

    def parameters(self):
        """Weights, visible and hidden biases, not copied."""
        return self.weights, self.visible_bias, self.hidden_bias

    def model(self):
        """The RBM as it stands; it shares the arrays."""
        return Model(self.weights, Bernoulli(self.visible_bias), Bernoulli(self.hidden_bias))

    def slide_offsets(self, visible_mean, hidden_mean, rate):
        """Move the offsets towards means of a mini-batch."""
        self.visible_offset += rate * (visible_mean - self.visible_offset)
        self.hidden_offset += rate * (hidden_mean - self.hidden_offset)

    def move(self, steps, centered):
        """Add a step, which is in centred coordinates if `centered`."""
        weights, visible_bias, hidden_bias = steps
        self.weights += weights
        self.visible_bias += visible_bias
        self.hidden_bias += hidden_bias
        if centered:
            self.visible_bias -= self.hidden_offset @ weights
            self.hidden_bias -= weights @ self.visible_offset


class Buffers:
    """Arrays that are used again and again: new ones would cost page faults."""

    def __init__(self):
        self._arrays = {}

    def __call__(self, name, shape, dtype):
        """An array with any content."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            array = self._arrays[name] = np.empty(shape, dtype)
        return array


def learn_batch(learner, V, scheme, rate, workers, buffers):
    """Change the parameters by the rows of one mini-batch (Algorithms 3 and 4).

    With g the positive part of the log-likelihood and f = ln Z, the gradient of g is taken
    once; then `n_inner` steps go up g linearised there minus f, whose gradient is estimated
    by chains that start at the rows and are kept from one step to the next. All gradients
    are multiplied by the learning rate where they are made, not in a pass of its own.

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
    """
    model, dtype = learner.model(), learner.weights.dtype
    H = buffers("H", (len(V), len(model.hidden)), dtype)
    run_chains(model, V, H, 0, learner.stream, workers)  # no transition: the means given V
    means = V.mean(axis=0), H.mean(axis=0)
    if scheme.persistent:
        chains, H_chains = _persistent_chains(learner, H, scheme, buffers, dtype, V.shape[1])
    else:
        chains, H_chains = buffers("V_chains", V.shape, dtype), buffers("H_chains", H.shape, dtype)
        chains[...] = V
    ascent = buffers("ascent", learner.weights.shape, dtype)
    for inner in range(scheme.n_inner):
        run_chains(model, chains, H_chains, scheme.n_gibbs, learner.stream, workers,
                   from_hidden=scheme.persistent)  # fmt: skip
        if scheme.centered:
            learner.slide_offsets(*means, scheme.offset_rate)
        if inner == 0:
            _moments(ascent, learner, V, H, rate, scheme.centered, workers, buffers)
        step = ascent
        if inner < scheme.n_inner - 1:
            step = buffers("step", ascent.shape, dtype)
            step[...] = ascent
        _moments(step, learner, chains, H_chains, -rate, scheme.centered, workers, buffers)
        if scheme.weight_decay:
            step -= rate * scheme.weight_decay * learner.weights
        biases = [
            rate * (mean - states.mean(axis=0))
            for mean, states in zip(means, (chains, H_chains), strict=True)
        ]
        if scheme.persistent:
            # The next transition starts with hidden units that are drawn from means that
            # are there already, as in scikit-learn's BernoulliRBM.
            H_chains[...] = learner.chains = draw(H_chains, learner.stream)
        learner.move(learner.optimizer.steps([step, *biases]), scheme.centered)


def _persistent_chains(learner, H, scheme, buffers, dtype, n_visible):
    """Buffers for the chains, the hidden ones as they were left; they begin at the data."""
    if learner.chains is None:
        starts = np.arange(scheme.n_chains) % len(H)
        learner.chains = draw(H[starts], learner.stream)
    H_chains = buffers("H_chains", learner.chains.shape, dtype)
    H_chains[...] = learner.chains
    return buffers("V_chains", (len(H_chains), n_visible), dtype), H_chains


def _moments(out, learner, V, H, factor, centered, workers, buffers):
    """out = factor * (H - λ).T @ (V - μ) / n_rows, the offsets 0 unless `centered`.

    With a negative factor, it is added to what is there.
    """
    if centered:
        V = np.subtract(V, learner.visible_offset, out=buffers("V_centred", V.shape, V.dtype))
        H = np.subtract(H, learner.hidden_offset, out=buffers("H_centred", H.shape, H.dtype))

    def block(units):
        moments(H[:, units], V, factor / len(V), out[units], factor < 0)

    workers.map(block, row_blocks(H.shape[1], GRADIENT_ROWS), len(V) * out.size)
