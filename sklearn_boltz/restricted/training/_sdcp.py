"""S-DCP and CS-DCP: one mini-batch of the algorithms of Upadhya and Sastry (2017).

The parameters are always the ordinary ones. Centring is a change of coordinates in which the
gradient is taken: with offsets μ, λ and W the weights (n_hidden, n_visible), the centred
biases are b + λW and c + Wμ. Sliding the offsets changes neither the law nor the ordinary
parameters, and a step (ΔW, Δb, Δc) in centred coordinates is the step
(ΔW, Δb − λΔW, Δc − ΔWμ) in ordinary ones.
"""

from typing import NamedTuple

import numpy as np

from sklearn_boltz._threads import row_blocks
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._gibbs import draw, rows_to_start_at, run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import moments
from sklearn_boltz.units._bernoulli import Bernoulli

# Visible units of a block of the gradient.
GRADIENT_ROWS = 392


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
        Kept in Fortran order, as the kernels want them.
    visible_bias : ndarray of shape (n_visible,)
    hidden_bias : ndarray of shape (n_hidden,)
    visible_offset : ndarray of shape (n_visible,)
        μ at the start, by rights the mean of the data; λ starts at 1/2.
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted.training._optimizers`.
    stream : Stream
    """

    def __init__(self, weights, visible_bias, hidden_bias, visible_offset, optimizer, stream):
        self.weights = np.asfortranarray(weights)
        self.visible_bias, self.hidden_bias = visible_bias, hidden_bias
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
        """Add a step, which is in centred coordinates if `centered`.

        The step of the weights may be the `Factors` of one that is added already.
        """
        weights, visible_bias, hidden_bias = steps
        if not isinstance(weights, Factors):
            self.weights += weights
        self.visible_bias += visible_bias
        self.hidden_bias += hidden_bias
        if centered:
            # BLAS may set the flag of an invalid operation for numbers that it reads and does
            # not use; whether the parameters are finite is looked at in the end.
            with np.errstate(invalid="ignore"):
                self.visible_bias -= self.hidden_offset @ weights
                self.hidden_bias -= weights @ self.visible_offset


class Factors(NamedTuple):
    """The matrix ``H.T @ V`` before it is multiplied out."""

    H: np.ndarray
    V: np.ndarray

    # NumPy leaves the products below to this class.
    __array_ufunc__ = None

    def __rmatmul__(self, vector):
        return (self.H @ vector) @ self.V

    def __matmul__(self, vector):
        return (self.V @ vector) @ self.H

    def multiply(self, out, workers, add=False):
        """out = H.T @ V, or added to what is there; out in Fortran order."""

        def block(units):
            moments(self.V[:, units], self.H, 1, out.T[units], add)

        workers.map(block, row_blocks(len(out.T), GRADIENT_ROWS), len(self.V) * out.size)


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
    means = _column_means(V), _column_means(H)
    if scheme.persistent:
        chains, H_chains = _persistent_chains(learner, H, scheme, buffers, dtype, V.shape[1])
    else:
        chains, H_chains = buffers("V_chains", V.shape, dtype), buffers("H_chains", H.shape, dtype)
        chains[...] = V
    # Laid out as the weights are, with the hidden units of a visible one next to each other.
    shape = learner.weights.T.shape
    for inner in range(scheme.n_inner):
        run_chains(model, chains, H_chains, scheme.n_gibbs, learner.stream, workers,
                   from_hidden=scheme.persistent)  # fmt: skip
        if scheme.centered:
            learner.slide_offsets(*means, scheme.offset_rate)
        data, fantasy = (V, H, rate), (chains, H_chains, -rate)
        if scheme.n_inner == 1 and learner.optimizer.plain and not scheme.weight_decay:
            # In one pass over the weights: with small mini-batches, passes are what it costs.
            step = _gradient(learner, [data, fantasy], scheme.centered, buffers)
            step.multiply(learner.weights, workers, add=True)
        else:
            ascent, step = buffers("ascent", shape, dtype).T, buffers("step", shape, dtype).T
            if inner == 0:
                _gradient(learner, [data], scheme.centered, buffers).multiply(ascent, workers)
            step[...] = ascent
            fall = _gradient(learner, [fantasy], scheme.centered, buffers)
            fall.multiply(step, workers, add=True)
        if scheme.weight_decay:
            step -= rate * scheme.weight_decay * learner.weights
        biases = [
            rate * (mean - _column_means(states))
            for mean, states in zip(means, (chains, H_chains), strict=True)
        ]
        if scheme.persistent:
            # The next transition starts with hidden units that are drawn from means that
            # are there already, as in scikit-learn's BernoulliRBM.
            H_chains[...] = learner.chains = draw(H_chains, learner.stream)
        learner.move(learner.optimizer.steps([step, *biases]), scheme.centered)


def _column_means(A):
    # A.mean(axis=0) takes twice the time for a few rows.
    return np.add.reduce(A, axis=0) / A.dtype.type(len(A))


def _persistent_chains(learner, H, scheme, buffers, dtype, n_visible):
    """Buffers for the chains, the hidden ones as they were left; they begin at the data."""
    if learner.chains is None:
        starts = rows_to_start_at(scheme.n_chains, len(H))
        learner.chains = draw(H[starts], learner.stream)
    H_chains = buffers("H_chains", learner.chains.shape, dtype)
    H_chains[...] = learner.chains
    return buffers("V_chains", (len(H_chains), n_visible), dtype), H_chains


def _gradient(learner, parts, centered, buffers):
    """The sum over parts (V, H, factor) of factor * (H - λ).T @ (V - μ) / n_rows, as `Factors`.

    The offsets are 0 unless `centered`. V keeps its zeros, which save time: (V - μ).T @ H is
    [V, -μ].T @ [H, sum of H], with one row more.
    """
    ends = np.cumsum([0, *(len(V) for V, _, _ in parts)])
    n_hidden, n_visible = learner.weights.shape
    V_rows = buffers("V_rows", (ends[-1] + centered, n_visible), learner.weights.dtype)
    H_rows = buffers("H_rows", (ends[-1] + centered, n_hidden), learner.weights.dtype)
    for (V, H, factor), first, end in zip(parts, ends, ends[1:], strict=False):
        V_rows[first:end] = V
        np.subtract(H, learner.hidden_offset if centered else 0, out=H_rows[first:end])
        H_rows[first:end] *= factor / len(V)
    if centered:
        np.negative(learner.visible_offset, out=V_rows[-1])
        np.add.reduce(H_rows[:-1], axis=0, out=H_rows[-1])
    return Factors(H_rows, V_rows)
