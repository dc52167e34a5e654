"""TAP and naive mean field: fixed points of the free energy (Tramel et al., 2018).

The distribution of an RBM is approximated by independent units, each with its own tilted by a
field B and a precision A. In the second order of an expansion in the weights, at its
stationary points

    A_j = −Σ_i W_ij² c_i,   B_j = A_j a_j + Σ_i W_ij a_i,   a_j, c_j = moments(B_j, A_j)

for the hidden units j, likewise for the visible ones: a are means, c variances. The term
A_j a_j, Onsager's, takes back what the unit itself has done to its neighbours. In the first
order (naive mean field), A = 0. Many starts are followed at once, a row for each.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import Bunch

from sklearn_boltz._threads import row_blocks
from sklearn_boltz.units._bernoulli_kernel import bernoulli_mean

# Two solutions are one if no unit's means differ by more than this part of its range.
SAME = 0.02


class Iteration(NamedTuple):
    """How to look for fixed points: order 1 is naive mean field, 2 is TAP."""

    order: int = 2
    max_iter: int = 1000
    tol: float = 1e-8
    damping: float = 0.5


class Evidence(NamedTuple):
    """What is known of the visible units beyond the model, a row for each start.

    An observation through a noisy channel is a field and a precision; where `known` is True,
    a unit is clamped at its start.
    """

    field: np.ndarray | float = 0.0
    precision: np.ndarray | float = 0.0
    known: np.ndarray | None = None

    def rows(self, rows):
        """The evidence of some rows."""
        return Evidence(*(a[rows] if isinstance(a, np.ndarray) else a for a in self))


class Layer(NamedTuple):
    """What is believed of the units of a layer: arrays of shape (n_rows, n_units).

    `change` is by how much the last iteration moved the means; while it lasts, the field.
    """

    mean: np.ndarray
    variance: np.ndarray
    change: np.ndarray
    precision: np.ndarray

    @classmethod
    def empty(cls, shape, dtype):
        """A layer without content."""
        return cls(*[np.empty(shape, dtype) for _ in range(4)])

    def rows(self, rows):
        """The beliefs of some rows: for a slice, the same memory."""
        return Layer(*[a[rows] for a in self])

    def set_rows(self, rows, beliefs):
        """Copy beliefs to some rows."""
        for mine, other in zip(self, beliefs, strict=True):
            mine[rows] = other


# The fixed points.


def start_at(model, V, visible, hidden, variance=None):
    """Begin at rows (eq. 37–38): a = v and c = 0, and hidden units at their means given v.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
    visible, hidden : Layer
        To be filled.
    variance : ndarray of shape (n_rows, n_visible), default=None
        Of the visible units, for starts that are means.
    """
    visible.mean[...] = V
    visible.variance[...] = 0 if variance is None else variance
    np.matmul(visible.mean, model.weights.T, out=hidden.mean)
    if model.hidden.is_binary:
        bernoulli_mean(hidden.mean, model.hidden.intercept)
        np.multiply(hidden.mean, hidden.mean, out=hidden.variance)
        np.subtract(hidden.mean, hidden.variance, out=hidden.variance)
    else:
        hidden.mean[...], hidden.variance[...] = model.hidden.moments(hidden.mean)


def iterate(model, negative_squares, visible, hidden, damping, evidence=None):
    """Make one iteration of Algorithm 1 in place: the visible side, then the hidden side.

    Parameters
    ----------
    model : Model
    negative_squares : ndarray of shape (n_hidden, n_visible)
        −W², or None in the first order.
    visible, hidden : Layer
    damping : float
        How much of the last beliefs remains.
    evidence : Evidence, default=None
    """
    W, squares = model.weights, negative_squares
    _update(model.visible, visible, hidden, W, squares, damping, evidence)
    _update(model.hidden, hidden, visible, W.T, None if squares is None else squares.T, damping)


def _update(units, layer, other, weights, negative_squares, damping, evidence=None):
    """Fields from the other layer, then the moments under them, damped."""
    mean, variance, change, precision = layer
    field = np.matmul(other.mean, weights, out=change)
    if negative_squares is not None:
        np.matmul(other.variance, negative_squares, out=precision)
    if evidence is not None and evidence.known is not None:
        before = mean.copy(), variance.copy()
    if units.is_binary:
        _bernoulli_moments(units, layer, negative_squares is not None, damping, evidence)
    else:
        if negative_squares is None:
            precision[...] = 0
        field += precision * mean
        outer = (0.0, 0.0) if evidence is None else evidence[:2]
        new_mean, new_variance = units.moments(field + outer[0], precision + outer[1])
        np.subtract(new_mean, mean, out=change)
        change *= 1 - damping
        mean += change
        variance += (1 - damping) * (new_variance - variance)
    if evidence is not None and evidence.known is not None:
        np.copyto(mean, before[0], where=evidence.known)
        np.copyto(variance, before[1], where=evidence.known)
        change[evidence.known] = 0


def _bernoulli_moments(units, layer, second_order, damping, evidence):
    """The same as of any units, without temporaries; the variance is that of the damped mean."""
    mean, variance, change, precision = layer
    field = change
    if second_order:  # x² = x makes a field of a precision: B − A/2 = Σ W a + A (a − 1/2)
        np.subtract(mean, 0.5, out=variance)
        variance *= precision
        field += variance
    if evidence is not None:
        field += evidence.field
        field -= 0.5 * evidence.precision
    bernoulli_mean(field, units.intercept)
    change -= mean
    change *= 1 - damping
    mean += change
    np.multiply(mean, mean, out=variance)
    np.subtract(mean, variance, out=variance)


def mean_squared_change(visible, hidden):
    """Of the means in the last iteration, for each row."""
    squares = sum(np.einsum("ij,ij->i", a.change, a.change) for a in (visible, hidden))
    return squares / (visible.mean.shape[1] + hidden.mean.shape[1])


def negative_squares(model, order, out=None):
    """−W², what the variances are multiplied with; None in the first order."""
    if order == 1:
        return None
    squares = np.multiply(model.weights, model.weights, out=out)
    return np.negative(squares, out=squares)


class Scratch(NamedTuple):
    """Arrays for `solve` to work in: new ones for each mini-batch would cost page faults.

    Attributes
    ----------
    visible, hidden : Layer
        Of shape (n_rows, n_units).
    squares : ndarray of shape (n_hidden, n_visible)
        Or what looks like one, as the weights of the model do.
    first_hidden : ndarray of shape (n_rows, n_hidden)
        To be filled with the means of the hidden units given the rows where TAP starts.
    """

    visible: Layer
    hidden: Layer
    squares: np.ndarray
    first_hidden: np.ndarray


def solve(model, V, iteration, workers, variance=None, evidence=None, scratch=None):
    """Follow starts to fixed points; each row stops when it has converged.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where to start.
    iteration : Iteration
    workers : Workers
    variance : ndarray of shape (n_rows, n_visible), default=None
        At the start, for rows that are means.
    evidence : Evidence, default=None
    scratch : Scratch, default=None
        Whose arrays the solutions are then in.

    Returns
    -------
    solutions : Bunch
        `visible_mean`, `visible_variance`, `hidden_mean`, `hidden_variance`, `converged`,
        `n_iter` and `change`, the last mean squared change, of each row.
    """
    n_rows, weights, most = len(V), model.weights, iteration.max_iter
    if scratch is None:
        visible = Layer.empty((n_rows, weights.shape[1]), weights.dtype)
        hidden = Layer.empty((n_rows, weights.shape[0]), weights.dtype)
        squares = negative_squares(model, iteration.order)
    else:
        visible, hidden = scratch.visible, scratch.hidden
        squares = negative_squares(model, iteration.order, scratch.squares)
    n_iter, change = np.zeros(n_rows, dtype=int), np.full(n_rows, np.inf)

    def block(rows):
        layers = whole = visible.rows(rows), hidden.rows(rows)
        start_at(model, V[rows], *layers, None if variance is None else variance[rows])
        if scratch is not None:
            scratch.first_hidden[rows] = layers[1].mean
        known = None if evidence is None else evidence.rows(rows)
        # Of the rows of the block, those that have not converged, which `layers` are.
        active, of_block = np.arange(len(whole[0].mean)), (change[rows], n_iter[rows])
        for step in range(1, most + 1):
            iterate(model, squares, *layers, iteration.damping, known)
            now = mean_squared_change(*layers)
            of_block[0][active], of_block[1][active] = now, step
            going = ~(now < iteration.tol)
            if going.all() and step < most:
                continue
            if layers is not whole:
                for to, of in zip(whole, layers, strict=True):
                    to.set_rows(active, of)
            if step == most or not going.any():
                break
            active, layers = active[going], [layer.rows(going) for layer in layers]
            known = None if known is None else known.rows(going)

    workers.map(block, row_blocks(n_rows), n_rows * weights.size * 4 * most)
    return Bunch(
        visible_mean=visible.mean, visible_variance=visible.variance, hidden_mean=hidden.mean,
        hidden_variance=hidden.variance, converged=change < iteration.tol, n_iter=n_iter,
        change=change,
    )  # fmt: skip


# What follows from them.


def fields(model, solutions, order):
    """B and A of the visible and of the hidden units at solutions: (B, A), (B, A)."""
    visible_field = model.visible_field(solutions.hidden_mean)
    hidden_field = model.hidden_field(solutions.visible_mean)
    if order == 1:
        return (visible_field, 0.0), (hidden_field, 0.0)
    squares = negative_squares(model, order)
    visible_precision = solutions.hidden_variance @ squares
    hidden_precision = solutions.visible_variance @ squares.T
    visible_field += visible_precision * solutions.visible_mean
    hidden_field += hidden_precision * solutions.hidden_mean
    return (visible_field, visible_precision), (hidden_field, hidden_precision)


def free_energy(model, solutions, order, evidence=None):
    """F of each solution, ln Z ≈ −F; stationary there in means, variances, B and A.

    Parameters
    ----------
    model : Model
    solutions : Bunch
        As of `solve`.
    order : {1, 2}
    evidence : Evidence, default=None
        Under which they are solutions; then ln Z is that of the model with the evidence.

    Returns
    -------
    free_energy : ndarray of float64 of shape (n_rows,)
    """
    nothing = Evidence()
    layers = zip(
        (model.visible, model.hidden),
        (solutions.visible_mean, solutions.hidden_mean),
        (solutions.visible_variance, solutions.hidden_variance),
        fields(model, solutions, order),
        (evidence or nothing, nothing),
        strict=True,
    )
    total = np.zeros(len(solutions.visible_mean))
    for units, a, c, (B, A), outer in layers:
        log_partition = units.log_partition(B + outer.field, A + outer.precision)
        local = log_partition - B * a + 0.5 * A * (a * a + c)
        total += local.sum(axis=1, dtype=np.float64)
    interaction = model.visible_field(solutions.hidden_mean) * solutions.visible_mean
    if order == 2:
        squares = model.weights * model.weights
        interaction += 0.5 * (solutions.hidden_variance @ squares) * solutions.visible_variance
    return -(total + interaction.sum(axis=1, dtype=np.float64))


def distinct(model, solutions):
    """Which rows are different solutions, the best converged of each, by free energy.

    Parameters
    ----------
    model : Model
    solutions : Bunch
        With `free_energy`.

    Returns
    -------
    representatives : ndarray of int of shape (n_solutions,)
        Numbers of rows.
    assignment : ndarray of int of shape (n_rows,)
        Of each row, which solution it reached.
    """
    ranges = [high - low for low, high in (model.visible.bounds, model.hidden.bounds)]
    means = np.hstack([solutions.visible_mean / ranges[0], solutions.hidden_mean / ranges[1]])
    assignment = np.full(len(means), -1)
    representatives, left = [], np.argsort(solutions.change, kind="stable")
    while len(left):
        near = np.abs(means[left] - means[left[0]]).max(axis=1) <= SAME
        near[0] = True  # also where it is NaN
        assignment[left[near]] = len(representatives)
        representatives.append(left[0])
        left = left[~near]
    representatives = np.array(representatives, dtype=int)
    order = np.argsort(solutions.free_energy[representatives], kind="stable")
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return representatives[order], rank[assignment]


def select(solutions, rows):
    """Some rows of solutions."""
    return Bunch(**{name: value[rows] for name, value in solutions.items()})


def total_log_partition(solutions):
    """ln Z ≈ ln Σ exp(−F) over distinct solutions, each of which is a part of the distribution.

    The paper takes the mean, which is too low by up to the logarithm of their number: 11 to
    15 nats for a model that learns MNIST, of which the sum leaves less than half.
    """
    # The converged ones, if there are any.
    chosen = solutions.converged if solutions.converged.any() else slice(None)
    return float(logsumexp(-solutions.free_energy[chosen]))
