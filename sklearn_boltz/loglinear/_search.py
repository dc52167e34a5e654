"""The search for a sparse θ: the paper's moves, and joint refits by Newton's method."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sklearn_boltz.loglinear._dual_update import active_changes

# The active set is refitted jointly when it has grown by this factor.
REFIT_GROWTH = 1.3
# Pairs of active terms whose moments are gathered at once.
PAIRS = 2**21


class Move(NamedTuple):
    """A change of one coordinate of θ."""

    change: float  # of the cost
    code: int  # of the term
    step: float  # added to θ_y
    place: int  # of the term among the active ones; -1 if it is new
    tol: float  # what the change must exceed to be worth it


class State:
    """θ, and the cost that it has.

    Attributes
    ----------
    codes : ndarray of int64 of shape (n_active,)
        The active terms.
    theta, penalty : ndarray of float64 of shape (n_active,)
        Their weights and description lengths.
    log_partition : float
    cost : float
    cost_path, n_basis_path : list
        One entry for the start and one for each move.
    """

    def __init__(self, log_partition, cost):
        self.log_partition, self.cost = log_partition, cost
        self.cost_path, self.n_basis_path = [cost], [0]
        self.codes, self.n_elsewhere = (), 0
        self.begin()

    def begin(self):
        """Start on the terms of other variables, which are independent of those so far."""
        self.n_elsewhere += len(self.codes)
        self.codes, self.theta, self.penalty = np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)

    @property
    def n_basis(self):
        """Number of terms."""
        return self.n_elsewhere + len(self.codes)

    @property
    def n_moves(self):
        """Number of changes so far."""
        return len(self.cost_path) - 1

    def apply(self, move, table):
        """Take over a move."""
        if move.place < 0:
            self.codes = np.append(self.codes, move.code)
            self.theta = np.append(self.theta, move.step)
            self.penalty = np.append(self.penalty, table.penalty(move.code))
        else:
            self.theta[move.place] += move.step
            if self.theta[move.place] == 0:
                self.codes = np.delete(self.codes, move.place)
                self.theta = np.delete(self.theta, move.place)
                self.penalty = np.delete(self.penalty, move.place)
        self.record(self.cost + move.change)

    def record(self, cost):
        """Note the cost after a move."""
        self.cost = cost
        self.cost_path.append(cost)
        self.n_basis_path.append(self.n_basis)


def search(
    table, state, *, solver, tol, max_iter, max_basis, end_iteration=lambda: False, verbose=0
):
    """Lower the cost by the best move, again and again, until no move is worth `tol`.

    Algorithm 1 of the paper; with ``solver="newton"`` the active terms are refitted
    jointly whenever their number has grown enough, and before the search ends.

    Parameters
    ----------
    table : DualTable
    state : State
        Changed in place.
    solver : {"greedy", "newton"}
    tol : float
    max_iter, max_basis : int or float
    end_iteration : callable
        Called after each move; returns whether to stop.
    verbose : int
        Whether to print a line at the end, and more if greater than 1.

    Returns
    -------
    converged : bool
    """
    settle, is_due, removal_tol = SOLVERS[solver]
    removal_tol = tol if removal_tol is None else removal_tol
    settled, stopped, n_before = False, False, 0
    champion = table.scan(-tol)
    while True:
        n_moves = state.n_moves
        stopped = stopped or n_moves >= max_iter
        may_append = state.n_basis < max_basis
        move = None
        if not stopped:
            candidate = champion if may_append else None
            move = best_move(table, state, candidate, tol, removal_tol)
        if len(state.codes) and not settled and (move is None or is_due(state, n_before)):
            settle(table, state, last=move is None)
            settled, n_before = move is None, len(state.codes)
            champion = table.scan(-tol)
        elif move is None:
            if verbose:
                _report("end", state)
            return not stopped
        else:
            state.log_partition += log_growth(float(table.t[move.code]), move.step)
            champion = table.update(move.code, move.step, -tol)
            state.apply(move, table)
            settled = False
        if state.n_moves > n_moves:
            if verbose > 1:
                _report(f"move {state.n_moves}", state)
            stopped = end_iteration() or stopped


def _report(what, state):
    print(f"[FSLLDensity] {what}: {state.n_basis} terms, cost {state.cost:.6f}")


def best_move(table, state, champion, tol, removal_tol):
    """The move that lowers the cost most, or None if none is worth the tolerance.

    Parameters
    ----------
    champion : (float, int)
        Change of the cost and code of the best term to append; None to append none.
    tol, removal_tol : float
        What a move must lower the cost by.
    """
    moves = []
    if champion is not None and champion[1] >= 0:
        change, code = champion
        moves.append(Move(change, code, table.step_to_data(code), -1, tol))
    if len(state.codes):
        adjust, i, remove, j = active_changes(
            table.t, table.d, state.codes, state.theta, state.penalty
        )
        moves.append(Move(adjust, int(state.codes[i]), table.step_to_data(state.codes[i]), i, tol))
        step = -float(state.theta[j])
        moves.append(Move(remove, int(state.codes[j]), step, j, removal_tol))
    worth = [move for move in moves if move.change < -move.tol]
    return min(worth, key=lambda move: move.change, default=None)


def log_growth(t, step):
    """Change of ln Z when θ_y moves: ln E[exp(δ Φ)] = ln(cosh δ + θ̄ sinh δ)."""
    up = 0.5 * (1 + math.copysign(t, step * t))
    return abs(step) + math.log(up + (1 - up) * math.exp(-2 * abs(step)))


def refit(table, state, *, last):
    """Fit the weights of the active terms jointly, by Newton's method.

    The gradient of KL(p_d || p) is θ̄ - d̄, and its Hessian the covariance of the basis
    functions, which is read off the dual table. On the way, before the `last` refit, one
    step will do: the next terms change the optimum anyway.
    """
    codes, theta = state.codes, state.theta
    d = table.d[codes].astype(np.float64)
    cost = state.cost
    for _ in range(20 if last else 1):
        gradient = table.t[codes] - d
        direction = _newton_direction(table, codes, gradient)
        slope = float(gradient @ direction)
        accepted = _line_search(table, codes, theta, direction, slope, d, state.log_partition)
        if accepted is None:
            break
        log_partition, new_theta = accepted
        cost += (log_partition - state.log_partition) - (new_theta - theta) @ d
        theta, state.log_partition = new_theta, log_partition
        # Newton's method converges quadratically: after this step there is nothing left.
        if -slope < 1e-9:
            break
    state.theta = theta
    state.record(cost)


def _newton_direction(table, codes, gradient):
    hessian = covariance(table.space, table.t, codes)
    # Nearly collinear terms on nearly impossible states: a ridge far below any real variance.
    ridge = np.finfo(table.t.dtype).eps * len(codes)
    for _ in range(8):
        try:
            factor = cho_factor(hessian + ridge * np.eye(len(codes)), lower=True)
            return -cho_solve(factor, gradient)
        except LinAlgError:
            ridge *= 100
    return -gradient


def covariance(space, t, codes):
    """Covariance of the basis functions of some terms (the Fisher information), (k, k)."""
    k = len(codes)
    moments = np.empty((k, k))
    step = max(1, PAIRS // k)
    for start in range(0, k, step):
        rows = codes[start : start + step]
        pairs = space.product_moments(t, np.repeat(rows, k), np.tile(codes, len(rows)))
        moments[start : start + step] = pairs.reshape(-1, k)
    means = t[codes].astype(np.float64)
    return moments - np.outer(means, means)


def _line_search(table, codes, theta, direction, slope, d, log_partition):
    """Halve the step until KL falls as it should (Armijo); t follows the accepted θ.

    Returns
    -------
    (log_partition, theta), or None if no step lowers the cost; t then stays at `theta`.
    """
    rounding = 16 * np.finfo(table.t.dtype).eps * max(1.0, abs(log_partition))
    scale = 1.0
    for _ in range(12):
        trial = theta + scale * direction
        trial_log_partition = table.weigh(codes, trial)
        change = (trial_log_partition - log_partition) - scale * (direction @ d)
        if change <= 1e-4 * scale * slope + rounding:
            table.normalise()
            return trial_log_partition, trial
        scale *= 0.5
    table.refresh(codes, theta)
    return None


def _refresh(table, state, *, last):
    """Make the dual table anew: the paper's moves leave the weights as they are."""
    state.log_partition = table.refresh(state.codes, state.theta)


# What a solver does before the search may end; when it does so on the way, given the state and
# how many terms there were the last time; what a removal must lower the cost by (None: `tol`).
# With joint refits a term that was chosen early may come to nearly nothing. It goes then, even
# if that lowers the cost by less than `tol`: else the true interactions had company.
SOLVERS = {
    "greedy": (_refresh, lambda state, n_before: False, None),
    "newton": (refit, lambda state, n_before: len(state.codes) >= REFIT_GROWTH * n_before + 1, 0.0),
}
