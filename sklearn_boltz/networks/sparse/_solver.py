"""Proximal Newton with working sets, for sums of regressions with a penalty that selects.

Each iteration minimises the penalty plus the second-order expansion of the loss in the working set,
by block coordinate descent, and goes there with a line search (Lee, Sun and Saunders 2014). The
working set are the parameters that are not 0, or may soon be by the derivatives (Tibshirani et al.
2012, the strong rule); all derivatives are looked at in every iteration, so none is missed. Second
derivatives are kept, along a path too, while the steps with them converge fast.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import coo_array

from sklearn_boltz.networks.sparse._penalty import ENORMOUS, group_norms

# Groups whose derivative exceeds this share of the penalty enter the working set with the others:
# with 100 penalties a path, those of the next few, for which the expansion will do then.
SOON = 0.5
# Second derivatives are renewed where an iteration does not lessen the violation by this factor.
SLOW = 0.5
# Minima on a path are found to this share of the penalty.
PATH_TOL = 1e-3
# The ratio of one penalty to the next on the way to a single one.
STEP = 0.5
# The quadratic problem is solved to this share of the violation.
SHARE = 0.1
# A bound on how far a step moves any field: beyond, the expansion is worth little.
MAX_MOVE = 10.0
# Part of the promised fall that a step must bring, and halvings of a step at most.
ENOUGH, MAX_HALVINGS = 1e-4, 40
# Least curvature of a parameter: that of a column which is nearly constant underflows.
TINY = 1e-200
# A ridge, relative to the largest second derivative: with few rows, or where a column separates
# another, they are singular, and in single precision hardly positive definite.
RIDGE = 1e-6
# The share of entries from which on a matrix is taken to be dense.
DENSE = 0.5


class Expansion(NamedTuple):
    """Second derivatives of a part of the problem, in its working set.

    `values`, `columns` and `rows` are a matrix in CSR; `starts` tells where the parameters of each
    group start, and `curvature` bounds the largest eigenvalue of each group's block.
    """

    parameters: np.ndarray
    groups: np.ndarray
    starts: np.ndarray
    values: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    curvature: np.ndarray


class Solver:
    """Minimise the mean loss per row plus a penalty; again and again, as along a path.

    Parameters
    ----------
    network : SpinNetwork or FunctionNetwork
    weights : ndarray of shape (n_groups,)
        Of the penalties of groups; 0 for intercepts.
    form : callable
        As of `_penalty`.
    tol : float
    max_iter : int
        On a path, for each penalty.

    Attributes
    ----------
    state : State
        The last minimum on a path.
    expansions : list
        For each part, its last `Expansion`. Those of a similar problem may take the place.
    """

    def __init__(self, network, weights, form, tol, max_iter):
        self.network, self.layout, self.weights = network, network.layout, weights
        self.form, self.tol, self.max_iter, self.state = form, tol, max_iter, None
        self.expansions = [None] * self.layout.n_parts
        self._slopes = np.zeros(self.layout.places.shape)
        self._last = None

    def penalty(self, alpha):
        """Penalty with a strength for each part."""
        return self.form(self.layout.groups, self.weights, alpha[self.layout.parts])

    def begin(self, theta):
        """Begin a path at intercepts, and no coupling."""
        self.state = self.network.at(theta)
        return self.go(np.full(self.layout.n_parts, ENORMOUS), self.tol)

    def go(self, alpha, tol=None):
        """Go to the minima for a penalty of each part, from those of the one before."""
        tol = np.maximum(self.tol, PATH_TOL * alpha) if tol is None else tol
        self.state, _ = self.solve(self.penalty(alpha), self.state, tol, self.max_iter)
        return self

    def lead_to(self, alpha):
        """Go near the minima for a penalty of each part, by larger penalties."""
        if (alpha > 0).all():
            first = np.maximum(self.first_alphas(), alpha)
            n_steps = int(np.ceil(np.log(alpha / first).min() / np.log(STEP)))
            for larger in np.geomspace(first, alpha, n_steps + 1)[1:-1]:
                self.go(larger)
        return self

    def first_alphas(self):
        """The least penalties with which all couplings of a part are 0; after `begin`."""
        layout, weights = self.layout, self.weights
        slopes = group_norms(layout.groups, self.gradient(self.state), layout.n_groups)
        kept = (weights > 0) & np.isfinite(weights)
        needed = np.divide(slopes, weights, out=np.zeros_like(weights), where=kept)
        alpha_max = self.penalty(np.ones(layout.n_parts)).alpha_max
        return alpha_max(layout.largest_of_part(needed))

    def solve(self, penalty, state, tol, max_iter, report=lambda state: False):
        """Go to the minimum of all parts.

        Parameters
        ----------
        penalty : Penalty
        state : State
            Where to begin.
        tol : float or ndarray of shape (n_parts,)
            The end: minus the gradient of the mean loss per row, of all parameters of a group, is
            nowhere further than this from the subdifferential of the penalty.
        max_iter : int
        report : callable
            Called with the state after each iteration; returns whether to stop.

        Returns
        -------
        state : State
        converged : bool
            Whether all of them are, or the loss is flat to rounding.
        """
        layout, before = self.layout, np.full(self.layout.n_parts, np.inf)
        for _ in range(max_iter):
            gradient = self.gradient(state)
            violation = penalty.violation(state.theta, gradient)
            worst = layout.largest_of_part(violation)
            parts = np.flatnonzero(worst > tol)
            if not len(parts):
                return state, True
            self._renew(penalty, state, gradient, violation, parts, worst > SLOW * before)
            before = worst
            step = self._step(penalty, state.theta, gradient, parts, worst)
            state, moved = self._line_search(penalty, state, gradient, step, parts)
            self._look(state, self.nodes(parts))
            if report(state):
                return state, False
            if not moved:
                return state, True
        return state, False

    def nodes(self, parts):
        """The columns whose losses make these parts."""
        chosen = np.zeros(self.layout.n_parts, dtype=bool)
        chosen[parts] = True
        return np.flatnonzero(chosen[self.layout.part_of_column])

    def gradient(self, state):
        """Gradient of the mean loss per row, of shape (n_parameters,)."""
        if state is not self._last:
            self._look(state, np.arange(self.network.n_columns))
        return self.layout.gradient(self._slopes)

    def _look(self, state, nodes):
        """Find the derivatives of some losses, those of the others being known."""
        self.network.slopes(state, nodes, self._slopes)
        self._last = state

    def _renew(self, penalty, state, gradient, violation, parts, slow):
        """Expand parts anew whose working set does not suffice, or whose expansion is too old."""
        layout = self.layout
        violated = violation > 0
        for p in parts:
            if self.expansions[p] is not None:
                violated[self.expansions[p].groups] = False
        old = slow.copy()
        old[layout.parts[violated]] = True
        renewed = [p for p in parts if old[p] or self.expansions[p] is None]
        if not renewed:
            return
        soon = penalty.norms(gradient) > SOON * penalty.l1
        wanted = soon | (penalty.norms(state.theta) > 0) | (penalty.l1 == 0) | (violation > 0)
        used = np.append(wanted[layout.groups], False)[layout.places]
        for p in renewed:
            groups = np.flatnonzero(wanted & (layout.parts == p))
            self.expansions[p] = self._expand(state, p, groups, used)

    def _expand(self, state, part, groups, used):
        """The second derivatives of a part by the parameters of some groups.

        `used` has the same parameters, as entries of the matrix.
        """
        parameters, places, blocks = self._curvatures(state, part, groups, used)
        matrix = scattered(places, blocks, len(parameters))
        starts = np.searchsorted(self.layout.groups[parameters], groups)
        starts = np.append(starts, len(parameters)).astype(np.int32)
        return Expansion(parameters, groups, starts, *matrix, block_curvature(*matrix, starts))

    def _curvatures(self, state, part, groups, used):
        """The parameters of some groups of a part, and the second derivatives of each column.

        For each column, these are a matrix and its places among the parameters.
        """
        places, blocks = zip(
            *(self.network.curvature(state, j, used) for j in self.nodes([part])), strict=True
        )
        parameters = self.layout.parameters(groups)
        return parameters, [np.searchsorted(parameters, place) for place in places], blocks

    def second_derivatives(self, state, part, chosen):
        """Those of a part by the groups where `chosen` is true, positive definite.

        -> these parameters, and the matrix.
        """
        layout = self.layout
        used = np.append(chosen[layout.groups], False)[layout.places]
        groups = np.flatnonzero(chosen & (layout.parts == part))
        parameters, places, blocks = self._curvatures(state, part, groups, used)
        matrix = np.zeros((len(parameters),) * 2)
        for place, block in zip(places, blocks, strict=True):
            matrix[np.ix_(place, place)] += block
        matrix[np.diag_indices_from(matrix)] += RIDGE * matrix.diagonal().max()
        return parameters, matrix

    def _step(self, penalty, theta, gradient, parts, worst):
        """The step to the minimum of the penalty and the expansions."""
        new = theta.copy()
        for p in parts:
            parameters = self.expansions[p].parameters
            inner, slope = theta[parameters], gradient[parameters]
            penalty.descend(self.expansions[p], inner, slope, SHARE * worst[p])
            new[parameters] = inner
        return new - theta

    def _line_search(self, penalty, state, gradient, step, parts):
        """Halve the steps of parts until loss and penalty fall as the slope promises.

        -> the state, and whether any part has moved.
        """
        layout = self.layout
        part_of = layout.part_of_parameter
        costs = penalty.costs(state.theta)
        before = self._objective(state, costs)
        sizes = MAX_MOVE / np.maximum(layout.largest_move(step), MAX_MOVE)
        theta, trying = state.theta, parts
        for _ in range(MAX_HALVINGS):
            new = theta + sizes[part_of] * step
            gain = layout.by_part(gradient * (new - theta), part_of)
            new_costs = penalty.costs(new)
            gain += layout.by_part(new_costs - costs, layout.parts)
            state = self.network.at(new, self.nodes(trying), state)
            allowed = before + ENOUGH * gain + self.network.rounding * np.abs(before)
            trying = trying[~(self._objective(state, new_costs) <= allowed)[trying]]
            if not len(trying):
                return state, True
            sizes[trying] /= 2
        sizes[trying] = 0
        state = self.network.at(theta + sizes[part_of] * step, self.nodes(trying), state)
        return state, len(trying) < len(parts)

    def _objective(self, state, costs):
        """Loss and penalty of each part."""
        layout = self.layout
        losses = layout.by_part(state.losses, layout.part_of_column)
        return losses + layout.by_part(costs, layout.parts)


def scattered(places, blocks, size):
    """The sum of dense blocks, scattered to places of a matrix: values, columns and rows in CSR."""
    if sum(block.size for block in blocks) >= DENSE * size**2:
        whole, matrix = np.arange(size + 1, dtype=np.int32), np.zeros((size, size))
        for place, block in zip(places, blocks, strict=True):
            matrix[np.ix_(place, place)] += block
        return matrix.ravel(), np.tile(whole[:-1], size), whole * size
    values = np.concatenate([block.ravel() for block in blocks])
    rows = np.concatenate([np.repeat(place, len(place)) for place in places])
    columns = np.concatenate([np.tile(place, len(place)) for place in places])
    rows, columns = rows.astype(np.int32), columns.astype(np.int32)
    matrix = coo_array((values, (rows, columns)), shape=(size, size)).tocsr()
    return matrix.data, matrix.indices, matrix.indptr


def block_curvature(values, columns, rows, starts):
    """The largest eigenvalue of each block on the diagonal."""
    size, sizes = len(rows) - 1, np.diff(starts)
    if len(values) == size**2:
        whole = values.reshape(size, size)
        blocks = [whole[a:b, a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
    else:
        row = np.repeat(np.arange(size), np.diff(rows))
        block = np.repeat(np.arange(len(sizes)), sizes)
        inside = np.flatnonzero(block[row] == block[columns])  # row by row, and so block by block
        pieces = np.split(values[inside], np.cumsum(sizes**2)[:-1])
        blocks = [piece.reshape(n, n) for piece, n in zip(pieces, sizes, strict=True)]
    largest = [block[0, 0] if len(block) == 1 else largest_eigenvalue(block) for block in blocks]
    return np.maximum(largest, TINY)


def largest_eigenvalue(matrix):
    """Return that of a symmetric matrix, with a little more for rounding."""
    n = len(matrix)
    return eigvalsh(matrix, subset_by_index=[n - 1, n - 1])[0] * (1 + RIDGE)
