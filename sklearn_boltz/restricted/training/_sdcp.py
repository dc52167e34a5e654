"""S-DCP and CS-DCP: one mini-batch of the algorithms of Upadhya and Sastry (2017).

The parameters are always the ordinary ones. Centring is a change of coordinates in which the
gradient is taken: with offsets μ, λ and W the weights (n_hidden, n_visible), the centred
biases are b + λW and c + Wμ. Sliding the offsets changes neither the distribution nor the ordinary
parameters, and a step (ΔW, Δb, Δc) in centred coordinates is the step
(ΔW, Δb − λΔW, Δc − ΔWμ) in ordinary ones.

The units of both layers may be of any type. Their biases are the parameters that multiply their
values, so that the steps of these are differences of means as of binary units. Other parameters,
such as precisions, go up their own gradients at a rate of their own.
"""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import copied, is_foreign
from sklearn_boltz.numerics._random import spins_of_sampler
from sklearn_boltz.numerics._threads import MIN_WORK, row_blocks
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._gibbs import (
    draw,
    joined_intercepts,
    rows_to_start_at,
    run_chains,
)
from sklearn_boltz.restricted.sampling._gibbs_kernel import learn_rows, moments
from sklearn_boltz.restricted.sampling._rungs import CALLS
from sklearn_boltz.restricted.training._array_batch import DeviceBatch
from sklearn_boltz.restricted.training._mixing import LADDER_SHARE

# Visible units of a block of the gradient.
GRADIENT_ROWS = 392
# The learning rate of parameters that are no biases, as a part of that of the others.
SHAPE_RATE = 0.5
# Weights for each transition, at most, where one kernel learns from a mini-batch: with 784 × 500
# weights and one transition it takes 1.6 times as long as BLAS, with 200 × 200 as long.
KERNEL_WEIGHTS = 2**16
# Threads are called with this many times the work at which they begin to pay: for a single one,
# the kernel takes .8 of the time.
SINGLE = 4
# Transitions of persistent chains for each mini-batch, at the end of a training.
LAST_GIBBS = 5


class SDCPScheme(NamedTuple):
    """Which algorithm: CD-K is (1, K), S-DCP (d, K'), both centred or not."""

    n_inner: int = 6
    n_gibbs: int = 4
    centered: bool = True
    persistent: bool = False
    n_chains: int = 100  # persistent ones, or at the top of the ladder
    offset_rate: float = 0.01
    alpha: float = 0.0  # of the L2 penalty
    tempered: float = 0.0  # share of the negative phase that comes from the ladder
    sampler: Callable | None = None  # a user's, in place of the chains

    @property
    def goes_on(self):
        """Whether chains go on from one mini-batch to the next; those of a ladder do anyway."""
        return self.persistent and not self.tempered


class SDCPLearner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    weights : ndarray of shape (n_hidden, n_visible)
        Kept in Fortran order, as the kernels want them.
    visible, hidden : UnitType
        The units, whose parameters are changed in place.
    visible_offset : ndarray of shape (n_visible,)
        Initial μ, ideally the mean of the data; λ starts at 1/2, or the means of other units.
    scheme : SDCPScheme
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted.training._optimizers`.
    stream : Stream
    """

    # Missing cells of a mini-batch are drawn before it is learned from.
    draws_gaps = True

    def __init__(self, weights, visible, hidden, visible_offset, scheme, optimizer, stream):
        self.weights, self.dtype = np.asfortranarray(weights), weights.dtype
        self.visible, self.hidden = visible, hidden
        self.visible_offset = visible_offset
        self.hidden_offset = np.full(len(self.weights), 0.5, self.dtype)
        if not hidden.is_binary:
            self.hidden_offset[...] = hidden.mean(np.zeros(len(hidden), self.dtype))
        self.scheme, self.optimizer, self.stream = scheme, optimizer, stream
        self.chains = None
        # States of the chains at the top of the ladder, which are changed in place.
        self.tempered = None
        self._batch = None

    def __getstate__(self):
        return {**vars(self), "_batch": None}  # scratch is neither copied nor pickled

    def moved(self, convert):
        """The learner with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        other.weights, other._batch = weights_of(convert(self.weights)), None
        for name in ("visible", "hidden", "optimizer"):
            setattr(other, name, getattr(self, name).moved(convert))
        for name in ("visible_offset", "hidden_offset", "chains"):
            value = getattr(self, name)
            setattr(other, name, None if value is None else convert(value))
        other.tempered = None  # of a ladder, which stays behind
        return other

    def parameters(self):
        """Weights and the parameters of the visible and of the hidden units, not copied."""
        return self.model().parameters()

    def model(self):
        """The RBM as it stands; it shares the arrays."""
        return Model(self.weights, self.visible, self.hidden)

    def work(self, n_rows):
        """Multiplications that a mini-batch of this many rows takes, or what takes as long."""
        scheme = self.scheme
        n_own = n_rows if scheme.tempered < 1 else 0
        n_tempered = len(self.tempered) if scheme.tempered else 0
        each = n_own * (2 * scheme.n_gibbs + 2) + n_tempered * 4
        return (scheme.n_inner * each + 2 * n_rows) * self.model().work + CALLS

    def take_states(self, states):
        """Go on with states of the model, those of a ladder's top, which move in place."""
        self.tempered = states

    def turn_tempered(self):
        """Take a share of the states of the negative phase from a ladder."""
        self.scheme, self._batch = self.scheme._replace(tempered=LADDER_SHARE), None

    def turn_persistent(self):
        """Go on with persistent contrastive divergence: one step a mini-batch, and its chains."""
        self.scheme = self.scheme._replace(n_inner=1, n_gibbs=LAST_GIBBS, persistent=True)
        self._batch = None

    def in_memory(self, V):
        """Rows as a mini-batch, with the scratch of the last one if it has the same size."""
        if is_foreign(V):
            if self._batch is None:
                self._batch = DeviceBatch(self, V)
            elif self._batch.V.shape != V.shape:
                return DeviceBatch(self, V)
        elif self._batch is None or not self._batch.fits(self, V):
            self._batch = ArrayBatch(self, len(V))
        self._batch.V = V
        return self._batch

    def learn(self, batch, rate, workers):
        """Change the parameters by one mini-batch (Algorithms 3 and 4).

        With g the positive part of the log-likelihood and f = ln Z, the gradient of g is taken
        once. Then `n_inner` steps go up g linearised there minus f, whose gradient is estimated
        by chains that start at the rows and are kept from one step to the next. All gradients
        are multiplied by the learning rate where they are made, not in a pass of their own.

        Parameters
        ----------
        batch : ArrayBatch, or one on a cluster
            With the methods `positive`, `negative`, `gradient`, `hidden_states` and
            `shape_slopes`.
        rate : float
            Learning rate.
        workers : Workers
        """
        scheme = self.scheme
        if batch.learns_at_once and (self.chains is not None or not scheme.persistent):
            batch.learn(self, rate)
            return
        means = batch.positive(self, workers)
        slopes = batch.shape_slopes(self, chains=False)
        for inner in range(scheme.n_inner):
            chain_means = batch.negative(self, workers)
            if scheme.centered:
                offsets = self.visible_offset, self.hidden_offset
                for offset, mean in zip(offsets, means, strict=True):
                    offset += scheme.offset_rate * (mean - offset)
            step = batch.gradient(self, rate, inner, workers)
            if scheme.alpha:
                step -= rate * scheme.alpha * self.weights
            biases = [rate * (m - c) for m, c in zip(means, chain_means, strict=True)]
            if scheme.goes_on:
                # The next transition starts with hidden units that are drawn from means that
                # are there already, as in scikit-learn's BernoulliRBM.
                self.chains = batch.hidden_states(self)
            chain_slopes = batch.shape_slopes(self, chains=True)
            self.move(self.optimizer.steps([step, *biases]), scheme.centered)
            for units, *pair in zip((self.visible, self.hidden), slopes, chain_slopes, strict=True):
                reshape(units, *pair, rate)

    def sampled(self, n_rows):
        """Rows that a user's sampler draws, and the means of the hidden units given them."""
        model, rng = self.model(), self.stream.generator()
        spins = spins_of_sampler(self.scheme.sampler, *model.ising(), n_rows, rng)
        V = ((1 + spins[:, : len(self.visible)]) / 2).astype(self.dtype)
        return V, model.mean_hidden(V)

    def move(self, steps, centered):
        """Add a step, which is in centred coordinates if `centered`.

        The step of the weights may be the `Factors` of one that is added already.
        """
        weights, visible_bias, hidden_bias = steps
        if not isinstance(weights, Factors):
            self.weights += weights
        self.visible.shift(visible_bias)
        self.hidden.shift(hidden_bias)
        if centered:
            # BLAS may set the flag of an invalid operation for numbers that it reads and does
            # not use; whether the parameters are finite is checked at the end.
            with np.errstate(invalid="ignore"):
                self.visible.shift(-(self.hidden_offset @ weights))
                self.hidden.shift(-(weights @ self.visible_offset))


def weights_of(components):
    """A copy of weights that can be trained; of NumPy, in the order that the kernels want."""
    return copied(components) if is_foreign(components) else components.copy(order="F")


def reshape(units, slopes, model_slopes, rate):
    """Go up the gradients of the parameters of units that are no biases.

    Parameters
    ----------
    units : UnitType
    slopes, model_slopes : dict of str to ndarray
        As of `UnitType.gradients`, at the data and at the model; empty if there are none.
    rate : float
        That of the biases, which have moved already.
    """
    if slopes:
        slope = {name: slopes[name] - model_slopes[name] for name in slopes}
        slope.update({name: 0 * value for name, value in slope.items() if is_bias(name)})
        units.ascend(slope, SHAPE_RATE * rate)


def is_bias(name):
    """Whether a parameter is the one that multiplies the values of its units."""
    return "intercept" in ((name,) if isinstance(name, str) else name)


def has_shape(units):
    """Whether units have parameters that are no biases."""
    return not units.is_binary and not all(map(is_bias, units.parameters()))


def shape_slopes(model, V):
    """Derivatives of the mean of −F(v) by the parameters of the units.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)

    Returns
    -------
    visible, hidden : dict of str to ndarray
        Empty of units that have biases only.
    """
    visible = model.visible.gradients(V) if has_shape(model.visible) else {}
    if not has_shape(model.hidden):
        return visible, {}
    return visible, model.hidden.gradients(None, model.hidden_field(V))


def mixed_slopes(parts):
    """A mixture of several `shape_slopes`, from pairs of a part and what it is a part of."""
    if len(parts) == 1:
        return parts[0][1]
    return tuple(
        {name: sum(part * pair[layer][name] for part, pair in parts) for name in parts[0][1][layer]}
        for layer in range(2)
    )


def no_slopes(model):
    """`shape_slopes` of no rows: zeros."""
    return tuple(
        {name: 0 * value for name, value in units.parameters().items()} if has_shape(units) else {}
        for units in (model.visible, model.hidden)
    )


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


class ArrayBatch:
    """A mini-batch in memory, and the arrays that learning from it takes.

    Parameters
    ----------
    learner : SDCPLearner
    n_rows : int

    Attributes
    ----------
    V : ndarray of shape (n_rows, n_visible)
        The rows.
    learns_at_once : bool
        Whether one kernel learns from it, without threads: of bits and categories, and few of them.
    """

    def __init__(self, learner, n_rows):
        scheme, (n_hidden, n_visible) = learner.scheme, learner.weights.shape
        self.shape, self.V = (n_rows, n_hidden, n_visible), None
        n_chains, self.n_tempered = n_rows, 0
        if scheme.tempered:
            n_chains = n_rows if scheme.tempered < 1 else 0
            self.n_tempered = len(learner.tempered)
        elif scheme.persistent:
            self._starts = rows_to_start_at(scheme.n_chains, n_rows)
            n_chains = len(self._starts if learner.chains is None else learner.chains)
        # The chains from the rows, or persistent ones, and those of the ladder.
        self.own, self.others = slice(n_chains), slice(n_chains, n_chains + self.n_tempered)
        n_chains += self.n_tempered

        n_factors, dtype = n_rows + n_chains + scheme.centered, learner.weights.dtype
        self.H = np.empty((n_rows, n_hidden), dtype)
        self.V_chains = np.empty((n_chains, n_visible), dtype)
        self.H_chains = np.empty((n_chains, n_hidden), dtype)
        self._V_factors = np.empty((n_factors, n_visible), dtype)
        self._H_factors = np.empty((n_factors, n_hidden), dtype)
        work = n_rows * n_hidden * n_visible * (2 * scheme.n_gibbs + 1)
        own_chains = scheme.sampler is None and not scheme.tempered
        self._layers = learner.visible._kernel_layers if learner.hidden.is_binary else None
        simple = self._layers is not None and learner.optimizer.plain and own_chains
        few = n_hidden * n_visible <= KERNEL_WEIGHTS * scheme.n_gibbs
        self.learns_at_once = simple and few and work < SINGLE * MIN_WORK
        # Laid out as the weights are, with the hidden units of a visible one next to each other.
        self._steps = np.empty((2, n_visible, n_hidden), dtype)
        self._ascent, self._step = self._steps.transpose(0, 2, 1)
        self._means = np.empty((2, n_visible), dtype), np.empty((2, n_hidden), dtype)
        self._has_shape = self._layers is None and (
            has_shape(learner.visible) or has_shape(learner.hidden)
        )

    def fits(self, learner, V):
        """Whether other rows, and the parameters as they are now, have the same sizes."""
        return self.shape == (len(V), *learner.weights.shape)

    def learn(self, learner, rate):
        """Change the parameters as `SDCPLearner.learn` does, in one call."""
        scheme, stream = learner.scheme, learner.stream
        offsets = learner.visible_offset, learner.hidden_offset
        if not scheme.centered:
            offsets = map(np.zeros_like, offsets)
        bias = joined_intercepts(learner.visible)
        stream.step = learn_rows(
            learner.weights.T, bias, learner.hidden.intercept,
            *self._layers, *offsets,
            self.V, learner.chains if scheme.persistent else self.H[:0], self.H, self.V_chains,
            self.H_chains, self._steps, *self._means, rate, scheme.alpha,
            scheme.offset_rate * scheme.centered, scheme.n_inner, scheme.n_gibbs, stream.seed,
            stream.step,
        )  # fmt: skip
        for units, columns in learner.visible.parts():
            units.intercept[...] = bias[columns]

    def positive(self, learner, workers):
        """Compute E[h | v]; -> means of the visible and of the hidden units."""
        # No transition: the means given V.
        run_chains(learner.model(), self.V, self.H, 0, learner.stream, workers)
        if not learner.scheme.goes_on:
            self.V_chains[self.own] = self.V[self.own]
        elif learner.chains is None:
            starts = self._starts
            learner.chains = draw_hidden(learner, self.V[starts], self.H[starts])
        return _column_means(self.V), _column_means(self.H)

    def negative(self, learner, workers):
        """Make transitions of the chains; -> means of the visible and of the hidden units."""
        scheme, from_hidden = learner.scheme, learner.scheme.goes_on
        if scheme.sampler is not None:
            self.V_chains[...], self.H_chains[...] = learner.sampled(len(self.V_chains))
            return _column_means(self.V_chains), _column_means(self.H_chains)
        if from_hidden:
            self.H_chains[self.own] = learner.chains
        run_chains(
            learner.model(), self.V_chains[self.own], self.H_chains[self.own], scheme.n_gibbs,
            learner.stream, workers, from_hidden=from_hidden,
        )  # fmt: skip
        if self.n_tempered:
            V, H = self.V_chains[self.others], self.H_chains[self.others]
            V[...] = learner.tempered
            run_chains(learner.model(), V, H, 1, learner.stream, workers)
            learner.tempered[...] = V
        if not self.n_tempered:
            return _column_means(self.V_chains), _column_means(self.H_chains)
        parts = self._parts_of_chains(scheme)
        return tuple(
            sum(part * _column_means(states[k]) for *states, part in parts) for k in range(2)
        )

    def hidden_states(self, learner):
        """Draw the hidden units of the chains."""
        return draw_hidden(learner, self.V_chains, self.H_chains)

    def shape_slopes(self, learner, chains):
        """Derivatives by the parameters of the units at the rows or at the chains."""
        model = learner.model()
        if not self._has_shape:
            return {}, {}
        if not chains:
            return shape_slopes(model, self.V)
        parts = self._parts_of_chains(learner.scheme)
        return mixed_slopes([(part, shape_slopes(model, V)) for V, _, part in parts])

    def gradient(self, learner, rate, inner, workers):
        """The step of the weights: the rate times the gradient, of which inner step 0 keeps g's."""
        scheme = learner.scheme
        data = self.V, self.H, rate
        chains = [(V, H, -rate * part) for V, H, part in self._parts_of_chains(scheme)]
        if scheme.n_inner == 1 and learner.optimizer.plain and not scheme.alpha:
            # In one pass over the weights: with small mini-batches, passes are what it costs.
            step = self._factors(learner, data, *chains)
            step.multiply(learner.weights, workers, add=True)
            return step
        if inner == 0:
            self._factors(learner, data).multiply(self._ascent, workers)
        self._step[...] = self._ascent
        self._factors(learner, *chains).multiply(self._step, workers, add=True)
        return self._step

    def _parts_of_chains(self, scheme):
        """Visible states and means of the hidden units of chains, and the part that each makes."""
        fraction = scheme.tempered
        parts = (self.own, 1 - fraction), (self.others, fraction)
        return [(self.V_chains[rows], self.H_chains[rows], part) for rows, part in parts if part]

    def _factors(self, learner, *parts):
        """The sum over parts (V, H, factor) of factor * (H - λ).T @ (V - μ) / n_rows.

        The offsets are 0 unless centred. V keeps its zeros, which save time: (V - μ).T @ H is
        [V, -μ].T @ [H, sum of H], with one row more.
        """
        centered, end = learner.scheme.centered, 0
        for V, H, factor in parts:
            rows = slice(end, end := end + len(V))
            self._V_factors[rows] = V
            offset = learner.hidden_offset if centered else 0
            np.subtract(H, offset, out=self._H_factors[rows])
            self._H_factors[rows] *= factor / len(V)
        if centered:
            np.negative(learner.visible_offset, out=self._V_factors[end])
            np.add.reduce(self._H_factors[:end], axis=0, out=self._H_factors[end])
        n_factors = end + centered
        return Factors(self._H_factors[:n_factors], self._V_factors[:n_factors])


def draw_hidden(learner, V, H):
    """Draw the hidden units given rows V, of which H are the means."""
    if learner.hidden.is_binary:
        return draw(H, learner.stream)
    return learner.hidden.sample(learner.model().hidden_field(V), learner.stream)


def _column_means(A):
    # A.mean(axis=0) takes twice the time for a few rows.
    return np.add.reduce(A, axis=0) / A.dtype.type(len(A))
