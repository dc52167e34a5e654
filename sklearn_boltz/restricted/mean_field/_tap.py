"""TAP and naive mean field: fixed points of the free energy (Tramel et al., 2018).

The distribution of an RBM is approximated by independent units, each with its own distribution,
tilted by a field B and a precision A. In the second order of an expansion in the weights, at its
stationary points

    A_j = −Σ_i W_ij² c_i,   B_j = A_j a_j + Σ_i W_ij a_i,   a_j, c_j = moments(B_j, A_j)

for the hidden units j, likewise for the visible ones: a are means, c variances. The term A_j a_j,
Onsager's, takes back what the unit itself has done to its neighbours. In the first order (naive
mean field), A = 0; the same holds for one-hot units. Many starts are followed at once, a row for
each.
"""

import math
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.mean_field import _tap_arrays
from sklearn_boltz.restricted.mean_field._iteration_kernel import iterate_bernoulli
from sklearn_boltz.restricted.mean_field._second_order import (
    has_second_order,
    negative_squares,
)
from sklearn_boltz.units._bernoulli_kernel import bernoulli_mean
from sklearn_boltz.units._stacked import by_type

# The part of the precision V of a unit without bounds that A may take, at most.
MOST_TAKEN = 0.75


class TAP(NamedTuple):
    """Settings of mean-field inference, for `inference` of a TAPRBM or TAPDBM.

    Parameters
    ----------
    order : {1, 2}, default=2
        Order of the expansion: 1 is naive mean field, 2 is TAP. Columns of three and more
        categories are in the first order.
    max_iter : int, default=3
        Number of iterations for each mini-batch. After training, up to 1,000 are made.
    damping : float, default=0.5
        Share of the previous means that is kept in an iteration.
    n_gibbs : int, default=3
        Number of Gibbs transitions from each solution to a state, whose probability training then
        lowers. They correct what the expansion misses. With 0, as in the paper, training takes the
        means and covariances of the solutions instead; so do mini-batches with missing cells.
    adaptive : bool, default=False
        Whether adaptive TAP finds the solutions, in training without missing cells and in
        `tap_solutions`. Each iteration inverts a matrix of all units for each row, so this is for
        small models without columns of three or more categories.
    tol : float, default=1e-8
        The iteration from a row has converged when the mean squared change of the means is below
        this.

    Examples
    --------
    >>> from sklearn_boltz import TAP, TAPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X = make_bars_and_stripes(3)
    >>> paper = TAPRBM(8, inference=TAP(max_iter=10, n_gibbs=0), max_iter=20, random_state=0)
    >>> paper.fit(X).n_iter_
    20
    """

    order: int = 2
    max_iter: int = 3
    damping: float = 0.5
    n_gibbs: int = 3
    adaptive: bool = False
    tol: float = 1e-8


TAP.__module__ = "sklearn_boltz"  # the public module


class Evidence(NamedTuple):
    """Knowledge of the visible units beyond the model, a row for each start.

    An observation through a noisy channel is a field and a precision; where `known` is True,
    a unit is clamped at its start. `log_weight` is the sum of ln w over the known units of a row.
    """

    field: np.ndarray | float = 0.0
    precision: np.ndarray | float = 0.0
    known: np.ndarray | None = None
    log_weight: np.ndarray | float = 0.0

    def rows(self, rows):
        """The evidence of some rows."""
        return Evidence(*(a[rows] if isinstance(a, np.ndarray) else a for a in self))


class Limits(NamedTuple):
    """Where the second order ends: no unit without bounds may lose nearly all of its precision.

    On the way to a solution, A is kept from that. Where it would still be lower in the last
    iteration, weights are too large for the expansion there, or no distribution exists.

    Attributes
    ----------
    visible, hidden : ndarray of shape (n_columns,)
        The least A.
    beyond : ndarray of bool of shape (n_rows,)
        Rows in which A would have been lower in the last iteration.
    """

    visible: np.ndarray
    hidden: np.ndarray
    beyond: np.ndarray

    @classmethod
    def of(cls, model, n_rows):
        """Those of a model; None if all its units have bounds."""
        if model.visible.is_binary and model.hidden.is_binary:
            return None
        tails = model.visible.tail_precision, model.hidden.tail_precision
        if not any(np.isfinite(tail).any() for tail in tails):
            return None
        return cls(*(-MOST_TAKEN * tail for tail in tails), np.zeros(n_rows, dtype=bool))

    def rows(self, rows):
        """Those of some rows."""
        return self._replace(beyond=self.beyond[rows])


class Layer(NamedTuple):
    """Beliefs about the units of a layer: arrays of shape (n_rows, n_columns).

    `change` is by how much the last iteration moved the means; while it lasts, the field.
    """

    mean: np.ndarray
    variance: np.ndarray
    change: np.ndarray
    precision: np.ndarray

    @classmethod
    def empty(cls, n_rows, n_columns, dtype):
        """A layer without content."""
        return cls(*[np.empty((n_rows, n_columns), dtype) for _ in range(4)])

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


def iterate(model, squares, visible, hidden, damping, evidence=None, limits=None):
    """Make one iteration of Algorithm 1 in place: the visible side, then the hidden side.

    Parameters
    ----------
    model : Model
    squares : ndarray
        As of `negative_squares`, or None in the first order.
    visible, hidden : Layer
    damping : float
        How much of the last beliefs remains.
    evidence : Evidence, default=None
    limits : Limits, default=None
        If some units have no bounds.
    """
    W, back = model.weights, None if squares is None else squares.T
    ends = (None, None) if limits is None else limits[:2]
    beyond = _update(model.visible, visible, hidden, W, squares, damping, evidence, ends[0])
    beyond |= _update(model.hidden, hidden, visible, W.T, back, damping, None, ends[1])
    if limits is not None:
        limits.beyond[...] = beyond


def _update(units, layer, other, weights, squares, damping, evidence=None, least=None):
    """Fields from the other layer, then the moments under them, damped; -> rows with lower A."""
    mean, variance, change, precision = layer
    field, beyond = np.matmul(other.mean, weights, out=change), False
    if squares is not None:
        np.matmul(other.variance, squares, out=precision)
    if evidence is not None and evidence.known is not None:
        before = mean.copy(), variance.copy()
    if units.is_binary:
        _bernoulli_moments(units, layer, squares is not None, damping, evidence)
    else:
        A = 0.0
        if squares is not None:
            A = precision
            field += A * mean
        if least is not None and np.ndim(A):
            beyond = _keep_precision(least, A, mean, field, evidence)
        if evidence is not None:
            field, A = field + evidence.field, A + evidence.precision
        new_mean, new_variance = units.moments(field, A)
        np.subtract(new_mean, mean, out=change)
        change *= 1 - damping
        mean += change
        variance += (1 - damping) * (new_variance - variance)
    if evidence is not None and evidence.known is not None:
        np.copyto(mean, before[0], where=evidence.known)
        np.copyto(variance, before[1], where=evidence.known)
        change[evidence.known] = 0
    return beyond


def _keep_precision(least, A, mean, field, evidence):
    """Raise A where a unit would lose its precision, in place; -> in which rows there is one."""
    lacking = least - A
    if evidence is not None:
        lacking -= evidence.precision
        if evidence.known is not None:
            lacking[evidence.known] = 0
    np.maximum(lacking, 0, out=lacking)
    A += lacking
    field += lacking * mean
    return (lacking != 0).any(axis=1)


def _bernoulli_moments(units, layer, second_order, damping, evidence):
    """Moments as of any units, without temporaries; the variance is that of the damped mean."""
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
    """Mean square of the changes of the means in the last iteration, for each row."""
    squares = sum(np.einsum("ij,ij->i", a.change, a.change) for a in (visible, hidden))
    return squares / (visible.mean.shape[1] + hidden.mean.shape[1])


class Scratch(NamedTuple):
    """Arrays for `solve` to work in: new ones for each mini-batch would cost page faults.

    Attributes
    ----------
    visible, hidden : Layer
    squares : ndarray or None
        For `negative_squares`; None in the first order.
    first_hidden : ndarray of shape (n_rows, n_hidden)
        To be filled with the means of the hidden units given the rows where TAP starts.
    """

    visible: Layer
    hidden: Layer
    squares: np.ndarray | None
    first_hidden: np.ndarray

    @classmethod
    def of(cls, model, n_rows, order):
        """For this many rows of a model."""
        n_columns, dtype = model.weights.shape[::-1], model.weights.dtype
        is_second = order == 2 and has_second_order(model.visible, model.hidden)
        squares = np.negative(model.weights) if is_second else None
        layers = [Layer.empty(n_rows, n, dtype) for n in n_columns]
        return cls(*layers, squares, np.empty((n_rows, n_columns[1]), dtype))


def solve(model, V, iteration, workers, variance=None, evidence=None, scratch=None):
    """Follow starts to fixed points; each row stops when it has converged.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where to start.
    iteration : TAP
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
        `n_iter`, `change`, the last mean squared change, and `order`, of each row. The order is 1,
        and the variances are 0, where the second order ends beyond its `Limits`.
    """
    if is_foreign(V):
        return _tap_arrays.solve(model, V, iteration)
    solutions, beyond = _follow(model, V, iteration, workers, variance, evidence, scratch)
    rows = np.flatnonzero(beyond)
    if len(rows):
        variance = None if variance is None else variance[rows]
        evidence = None if evidence is None else evidence.rows(rows)
        others = _through_first_order(model, V[rows], iteration, workers, variance, evidence)
        for name, values in others.items():
            solutions[name][rows] = values
    return solutions


def _follow(model, V, iteration, workers, variance=None, evidence=None, scratch=None):
    """`solve` from each start at once; -> solutions, and which of them are beyond the `Limits`."""
    n_rows, weights, most = len(V), model.weights, iteration.max_iter
    if scratch is None:
        scratch = Scratch.of(model, n_rows, iteration.order)
    visible, hidden, squares, first_hidden = scratch
    if squares is not None:
        squares = negative_squares(model, out=squares)
    n_iter, change = np.zeros(n_rows, dtype=int), np.full(n_rows, np.inf)
    limits = Limits.of(model, n_rows)
    advance = stepper(model, squares, iteration, evidence)

    def block(rows):
        layers = whole = visible.rows(rows), hidden.rows(rows)
        start_at(model, V[rows], *layers, None if variance is None else variance[rows])
        first_hidden[rows] = layers[1].mean
        known = None if evidence is None else evidence.rows(rows)
        ends = None if limits is None else limits.rows(rows)
        # Of the rows of the block, those that have not converged, which `layers` are.
        active, of_block = np.arange(len(whole[0].mean)), (change[rows], n_iter[rows])
        step = 0
        while step < most:
            n_steps, now = advance(layers, most - step, known, ends)
            step += n_steps
            if limits is not None:
                limits.beyond[rows][active] = ends.beyond
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
            ends = None if ends is None else ends.rows(going)

    with np.errstate(over="ignore", invalid="ignore"):  # then it does not converge
        workers.map(block, row_blocks(n_rows), n_rows * weights.size * 4 * most)
    if limits is not None:
        _put_back(model, V, visible, hidden, change)
    solutions = Bunch(
        visible_mean=visible.mean, visible_variance=visible.variance, hidden_mean=hidden.mean,
        hidden_variance=hidden.variance, converged=change < iteration.tol, n_iter=n_iter,
        change=change, order=np.full(n_rows, iteration.order),
    )  # fmt: skip
    return solutions, np.zeros(n_rows, dtype=bool) if limits is None else limits.beyond


def _through_first_order(model, V, iteration, workers, variance, evidence):
    """Solutions of the second order by way of those of the first, which stay where there are none.

    Near a row, variances are small at first, and grow together with the precisions that they take
    away. Solutions of the first order lie beyond that.
    """
    first, _ = _follow(model, V, iteration._replace(order=1), workers, variance, evidence)
    starts = first.visible_mean, iteration, workers, first.visible_variance, evidence
    second, beyond = _follow(model, *starts)
    first.visible_variance[...] = first.hidden_variance[...] = 0
    stay = beyond | (first.converged & ~second.converged)
    for name, values in second.items():
        values[stay] = first[name][stay]
    return second


def stepper(model, squares, iteration, evidence):
    """Function that iterates some rows: by one kernel where all units are Bernoulli.

    Parameters
    ----------
    model, squares, evidence
        As of `iterate`.
    iteration : TAP

    Returns
    -------
    advance : callable
        From the two layers, a number of iterations, and the evidence and limits of the rows, to the
        number of iterations that were made, until some row has converged or one, and the mean
        squared changes of the rows in the last.
    """
    sides = model.visible, model.hidden
    has_gaps = model.weights.size < math.prod(model.weights.shape)
    is_known = evidence is not None and evidence.known is not None
    if has_gaps or is_known or not all(units.is_binary for units in sides):
        model = model._replace(visible=grouped(model.visible), hidden=grouped(model.hidden))

        def advance(layers, n_steps, evidence, limits):
            iterate(model, squares, *layers, iteration.damping, evidence, limits)
            return 1, mean_squared_change(*layers)

        return advance

    W = np.ascontiguousarray(model.weights)
    squares = W[:0] if squares is None else np.ascontiguousarray(squares)
    biases = [units.intercept for units in sides]

    def advance(layers, n_steps, evidence, limits):
        field, change = W[:0], np.empty(len(layers[0].mean))
        if evidence is not None:
            field = np.empty_like(layers[0].mean)
            field[...] = evidence.field - 0.5 * evidence.precision
        n_made = iterate_bernoulli(
            W, squares, *biases, field, *layers[0], *layers[1], iteration.damping, iteration.tol,
            n_steps, change,
        )  # fmt: skip
        return n_made, change

    return advance


class Grouped:
    """Moments of stacked units, those of one type together, wherever they are in a row.

    The columns of a table come in any order, and a layer of one type for each run of them would be
    many small ones: most of the time would go into calls.

    Parameters
    ----------
    groups : list of (UnitType, ndarray of int)
        Units, and their columns.
    """

    is_binary = False

    def __init__(self, groups):
        self.groups = groups

    def moments(self, field, precision=0.0):
        """Means and variances, as of `UnitType`."""
        mean, variance = np.empty(field.shape, field.dtype), np.empty(field.shape, field.dtype)
        for units, columns in self.groups:
            A = precision if np.ndim(precision) == 0 else precision[..., columns]
            mean[..., columns], variance[..., columns] = units.moments(field[..., columns], A)
        return mean, variance


def grouped(units):
    """Regroup units into fewer groups, for their moments; themselves if there are no fewer."""
    together, order = by_type(units)
    if order is None:
        return units
    return Grouped([(part, order[columns]) for part, columns in together.parts()])


def _put_back(model, V, visible, hidden, change):
    """Where means have grown beyond all bounds, put the start in their place."""
    lost = ~np.isfinite(change)
    if lost.any():
        layers = visible.rows(lost), hidden.rows(lost)
        start_at(model, V[lost], *layers)
        for whole, its in zip((visible, hidden), layers, strict=True):
            whole.set_rows(lost, its)
        change[lost] = np.inf
