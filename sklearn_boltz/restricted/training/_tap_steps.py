"""TAP training: one mini-batch of Algorithms 2 and 4 of Tramel et al. (2018)."""

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import copied, is_foreign, like, namespace_of
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.mean_field import _vamp
from sklearn_boltz.restricted.mean_field._clamped import clamp, fields_of_layers
from sklearn_boltz.restricted.mean_field._second_order import has_second_order, single_variances
from sklearn_boltz.restricted.mean_field._tap import TAP, Scratch, solve
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import CELL
from sklearn_boltz.restricted.sampling._array_chains import move_chains
from sklearn_boltz.restricted.sampling._gibbs import rows_to_start_at, run_chains
from sklearn_boltz.restricted.sampling._observed import rows_with_gaps
from sklearn_boltz.restricted.sampling._rungs import CALLS

# Hidden units of a block of the gradient.
GRADIENT_ROWS = 50


class TAPScheme(NamedTuple):
    """How a mini-batch is learned from."""

    tap: TAP
    persistent: bool = False
    n_solutions: int = 100  # persistent ones
    penalty: str | None = "l2"
    alpha: float = 1e-3


class TAPLearner:
    """The parameters in training, and all that travels from one mini-batch to the next.

    Parameters
    ----------
    weights : list of ndarray of shape (n_units of a layer, n_units of the one below)
    layers : list of unit types
        From the visible layer up; their parameters are changed in place.
    scheme : TAPScheme
    optimizer : object
        With a method `steps`, as in `sklearn_boltz.restricted.training._optimizers`. It makes the
        steps of the weights only, as in the paper.
    stream : Stream
        Of the chains that start at solutions.
    """

    # Of missing cells, TAP has the means.
    draws_gaps = False

    def __init__(self, weights, layers, scheme, optimizer, stream):
        self.weights, self.layers, self.dtype = weights, layers, weights[0].dtype
        self.scheme, self.optimizer, self.stream = scheme, optimizer, stream
        self.starts = None  # where persistent solutions go on, on the visible side
        self.workspace = None

    def __getstate__(self):
        return {**vars(self), "workspace": None}  # neither copied nor pickled

    def moved(self, convert):
        """The learner with its arrays elsewhere: `convert` is for each of them."""
        other = copy(self)
        other.weights = [copied(convert(W)) for W in self.weights]
        other.layers = [units.moved(convert) for units in self.layers]
        other.optimizer = self.optimizer.moved(convert)
        other.starts = None if self.starts is None else convert(self.starts)
        other.workspace = None
        return other

    def parameters(self):
        """Weights and the parameters of the units, not copied."""
        return self.model().parameters()

    def model(self):
        """The model as it stands; it shares the arrays."""
        return Layered(self.weights, self.layers)

    def work(self, n_rows):
        """Multiplications that a mini-batch of this many rows takes at most, or as long as it."""
        tap = self.scheme.tap
        each = 2 * (tap.order * (tap.max_iter + 1) + tap.n_gibbs)
        products = sum(math.prod(W.shape) + CELL * sum(W.shape) for W in self.weights)
        return each * n_rows * products + CALLS

    def turn_tempered(self):
        """Let solutions start at states from a ladder."""
        self.scheme = self.scheme._replace(persistent=True)

    def take_states(self, states):
        """Start solutions at states of the model, those of a ladder's top, in place of rows."""
        self.starts = copied(states)

    def in_memory(self, V):
        """Rows as a mini-batch: what finds slopes, in the workspace of the last one of its size."""
        if is_foreign(V):
            return partial(slopes_on_device, V)
        n_starts = len(V) if self.starts is None else len(self.starts)
        if self.scheme.persistent and self.starts is None:
            n_starts = len(rows_to_start_at(self.scheme.n_solutions, len(V)))
        if self.workspace is None or self.workspace.sizes != (len(V), n_starts):
            self.workspace = Workspace(self.model(), len(V), n_starts, self.scheme.tap.order)
        return partial(slopes_in_memory, V)

    def learn(self, batch, rate, workers):
        """Change the parameters by the rows of one mini-batch.

        Parameters
        ----------
        batch : callable
            From learner, rate and workers to slopes as of `difference`, and where persistent
            solutions go on.
        rate : float
            Learning rate.
        workers : Workers
        """
        scheme = self.scheme
        (steps, slopes), self.starts = batch(self, rate, workers)
        for W, step in zip(self.weights, steps, strict=True):
            if scheme.penalty is not None:
                slope = W if scheme.penalty == "l2" else namespace_of(W).sign(W)
                step -= rate * scheme.alpha * slope
        for W, step in zip(self.weights, self.optimizer.steps(steps), strict=True):
            W += step
        for units, slope in zip(self.layers, slopes, strict=True):
            units.ascend(slope, rate)


class Workspace:
    """Arrays that mini-batches of one size take: new ones would cost page faults.

    Parameters
    ----------
    layered : Layered
    n_rows : int
        Of the mini-batch.
    n_starts : int
        Of the solutions.
    order : {1, 2}
    """

    def __init__(self, layered, n_rows, n_starts, order):
        self.steps, self.products = (
            [np.empty(W.shape, W.dtype) for W in layered.weights] for _ in range(2)
        )
        self.sizes = n_rows, n_starts
        self.scratch = Scratch.of(layered.sides(), n_starts, order)


class Beliefs(NamedTuple):
    """Moments of all layers, from the visible one up: lists of arrays, (n_rows, n_units).

    A variance of None is that of values which are known, or exact given such. `tilts` finds B and A
    of each layer, None where values are known. `covariances` has those of adaptive TAP, of each
    layer with the one below, which take the place of what follows from the variances.
    """

    means: list
    variances: list
    tilts: Callable | None = None
    covariances: list | None = None


def slopes_in_memory(V, learner, rate, workers):
    """Derivatives at the rows of a mini-batch less those at solutions; -> slopes, next starts."""
    layered, scheme = learner.model(), learner.scheme
    slopes, found = difference(
        layered, V, learner.starts, scheme, (rate, rate), (1.0, 1.0), learner.stream, workers,
        learner.workspace,
    )  # fmt: skip
    return slopes, found.copy() if scheme.persistent else None


def slopes_on_device(V, learner, rate, workers):
    """Compute `slopes_in_memory` for an RBM of Bernoulli units on a device."""
    layered, scheme, starts = learner.model(), learner.scheme, learner.starts
    xp, (W,) = namespace_of(V), layered.weights
    H = None
    if scheme.persistent and starts is None:
        chosen = rows_to_start_at(scheme.n_solutions, V.shape[0])
        starts = xp.take(V, like(V, chosen), axis=0)
    if scheme.persistent:
        H = layered.sides().mean_hidden(V)
    free = solve(layered.sides(), V if starts is None else starts, scheme.tap, workers)
    H = free.first_hidden if H is None else H
    a_v, a_h, n_starts = free.visible_mean, free.hidden_mean, free.visible_mean.shape[0]
    if scheme.tap.n_gibbs:
        a_v, a_h = move_chains(layered.sides(), a_v, scheme.tap.n_gibbs, learner.stream)
    step = (H * (rate / V.shape[0])).T @ V - (a_h * (rate / n_starts)).T @ a_v
    if scheme.tap.order == 2 and not scheme.tap.n_gibbs:
        step -= W * ((free.hidden_variance * (rate / n_starts)).T @ free.visible_variance)
    pairs = (V, a_v), (H, a_h)
    units = [{"intercept": xp.mean(a, axis=0) - xp.mean(b, axis=0)} for a, b in pairs]
    return ([step], units), a_v if scheme.persistent else None


def difference(
    layered, V, starts, scheme, rates, shares, stream, workers, workspace, first_row=0
):  # fmt: skip
    """Derivatives at rows less those of the model, at solutions or at chains from these.

    Parameters
    ----------
    layered : Layered
    V : ndarray of shape (n_rows, n_visible)
    starts : ndarray of shape (n_starts, n_visible side) or None
        Where solutions start; None to start at the rows, or at some of them if the scheme is
        persistent.
    scheme : TAPScheme
    rates, shares : tuple of (float, float)
        What to multiply the derivatives by, at rows and of the model: those by the weights, and
        those by the parameters of the units.
    stream : Stream
    workers : Workers
    workspace : Workspace
    first_row : int, default=0
        What the random numbers take for the number of the first start.

    Returns
    -------
    slopes : (list of ndarray, list of dict)
        By the weights, with the learning rate, and by the parameters of the units of each layer.
    ends : ndarray of shape (n_starts, n_visible side)
        Means of the solutions, or states of the chains.
    """
    tap, clamped, has_gaps = scheme.tap, None, rows_with_gaps(V) is not None
    if has_gaps:  # of missing cells there are means by TAP, whose errors those of solutions offset
        tap = tap._replace(n_gibbs=0, adaptive=False)
    is_plain = len(layered.weights) == 1 and not (scheme.persistent or tap.adaptive)
    if not is_plain or has_gaps:
        clamped = clamp(layered, V, tap, workers)
        data = Beliefs(clamped.means(), clamped.variances())
        if starts is None:
            starts = clamped.visible_side()
            if scheme.persistent:
                starts = starts[rows_to_start_at(scheme.n_solutions, len(V))]
    else:
        # Where the solutions of an RBM start, its hidden units have just what is asked for.
        starts, data = V, Beliefs([V, workspace.scratch.first_hidden], [None, None])
    free, ends = negative(layered, starts, tap, stream, workers, workspace, first_row)
    weights = [
        _weight_slopes(k, layered, data, free, tap.order, rates, workers, workspace)
        for k in range(len(layered.weights))
    ]
    parts = [part for layer in layered.layers for part, _ in layer.parts()]
    if all(part.is_binary or part.one_hot.all() for part in parts):  # the means suffice
        pair = [
            [_of_means(units, a) for units, a in zip(layered.layers, side.means, strict=True)]
            for side in (data, free)
        ]
    else:
        clamped = clamped or clamp(layered, V, tap, workers)
        pair = gradients_at_rows(clamped, tap.order), gradients_of(layered, free)
    units = [
        {name: shares[0] * rows[name] - shares[1] * model[name] for name in rows}
        for rows, model in zip(*pair, strict=True)
    ]
    return (weights, units), ends


def negative(layered, starts, tap, stream, workers, workspace, first_row):
    """Beliefs about all layers of the model; -> `Beliefs`, and the ends of `difference`."""
    model, points = layered.sides(), None
    if tap.adaptive:
        solutions, points = _vamp.solve(model, starts, tap)
    else:
        solutions = solve(model, starts, tap, workers, scratch=workspace.scratch)
    even, odd = (
        solutions[name].astype(model.dtype, copy=False) for name in ("visible_mean", "hidden_mean")
    )
    if tap.n_gibbs:
        run_chains(model, even, odd, tap.n_gibbs, stream, workers, first_row=first_row)
        unknown = [None] * len(layered.layers)
        tilts = partial(_tilts_of_chains, layered, even)
        return Beliefs(layered.split(even, odd), unknown, tilts), even
    means = layered.split(even, odd)
    if points is None:
        variances = layered.split(solutions.visible_variance, solutions.hidden_variance)
        tilts = partial(fields_of_layers, layered, solutions, tap.order)
        return Beliefs(means, variances, tilts), even
    covariance, columns = _vamp.mean_covariance(model, points).astype(model.dtype), layered.columns
    covariances = [
        covariance[above, below] if k % 2 == 0 else covariance[below, above].T
        for k, (below, above) in enumerate(pairwise(columns))
    ]
    tilts = partial(layered.split_tilts, *_vamp.tilts(model, points))
    return Beliefs(means, [None] * len(means), tilts, covariances), even


def _tilts_of_chains(layered, even):
    """Tilts of the odd layers, given states of the even ones, which are known."""
    fields = layered.split(even, layered.sides().hidden_field(even))
    return [(field, 0.0) if k % 2 else None for k, field in enumerate(fields)]


def _of_means(units, mean):
    """Derivatives by the parameters, of units that are linear in their values."""
    return {"intercept": mean.mean(axis=0)} if units.is_binary else units.gradients(mean)


def _weight_slopes(k, layered, data, free, order, rates, workers, workspace):
    """⟨a a + W c c⟩ of the rows less that of the solutions, between layers k and k + 1."""
    W, layers = layered.weights[k], layered.layers[k : k + 2]
    step, product = workspace.steps[k], workspace.products[k]
    is_second = order == 2 and has_second_order(*layers)

    def scaled(a, rate):
        """The rate is multiplied in where it is cheap."""
        return a * (rate / len(a))

    (V, H), (a_v, a_h) = data.means[k : k + 2], free.means[k : k + 2]
    (c_v, c_h), (d_v, d_h) = (
        map(single_variances, layers, side.variances[k : k + 2]) for side in (data, free)
    )
    H, a_h = scaled(H, rates[0]), scaled(a_h, rates[1])
    spread = []  # variances of both layers, with the sign of what they add
    if is_second and c_v is not None:
        spread.append((np.add, scaled(c_h, rates[0]), c_v))
    if is_second and d_v is not None:
        spread.append((np.subtract, scaled(d_h, rates[1]), d_v))

    def block(units):
        mine, other, own = step[units], product[units], W[units]
        np.matmul(H[:, units].T, V, out=mine)
        mine -= np.matmul(a_h[:, units].T, a_v, out=other)
        for add, above, below in spread:
            np.matmul(above[:, units].T, below, out=other)
            other *= own
            add(mine, other, out=mine)

    workers.map(block, row_blocks(len(step), GRADIENT_ROWS), 3 * len(V) * step.size)
    if free.covariances is not None:
        step -= rates[1] * free.covariances[k]
    return step


def gradients_at_rows(clamped, order):
    """Derivatives of the mean TAP log-likelihood by the units' parameters: means over rows."""
    hidden = clamped.layered.layers[1:]
    fields = zip(hidden, clamped.fields(order), strict=True)
    return [
        clamped.visible_gradients(order),
        *(units.gradients(None, B, A) for units, (B, A) in fields),
    ]


def gradients_of(layered, beliefs):
    """Means over solutions, or chains, to subtract from `gradients_at_rows`."""
    layers = zip(layered.layers, beliefs.means, beliefs.tilts(), strict=True)
    return [
        units.gradients(a) if tilt is None else units.gradients(None, *tilt)
        for units, a, tilt in layers
    ]
