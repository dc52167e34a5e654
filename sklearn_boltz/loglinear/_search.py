"""The search for a sparse θ: the paper's moves, and joint refits by Newton's method."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from sklearn_boltz.loglinear._dual_update import active_changes
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._threads import slices_of_rows

# Terms looked at for joint appending, and appended at once at most.
N_PROMISING = 2000
N_JOINT = 20
# Precision of the joint refits, in nats: to decide on the next moves, and at the end. A step
# of Newton's method squares what is left, so the result is better by far.
ENOUGH, FINAL = 1e-6, 1e-10
# What a cost is known to, in units of the last place. Moves that are worth less go to and fro for
# ever.
ROUNDING = 16
# Pairs of active terms whose moments are gathered at once.
PAIRS = 2**21


class Move(NamedTuple):
    """A change of one coordinate of θ."""

    change: float  # of the cost
    code: int  # of the term
    step: float  # added to θ_y
    place: int  # of the term among the active ones; -1 if it is new
    tol: float  # what the change must exceed to be worth it


class SearchState:
    """θ of the variables of one dual table, and the cost that it has.

    Attributes
    ----------
    codes : ndarray of int64 of shape (n_active,)
        The active terms.
    theta, penalty : ndarray of float64 of shape (n_active,)
        Their weights and description lengths.
    log_partition : float
    cost : float
    n_moves : int
        Number of changes so far.
    """

    def __init__(self, log_partition, cost):
        self.log_partition, self.cost, self.n_moves = log_partition, cost, 0
        self.codes, self.theta, self.penalty = np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)

    def apply(self, move, table):
        """Take over a move."""
        if move.place < 0:
            self.append([move.code], [table.penalty(move.code)])
        self.theta[move.place] += move.step  # a new term is the last one
        if self.theta[move.place] == 0:
            self.codes = np.delete(self.codes, move.place)
            self.theta = np.delete(self.theta, move.place)
            self.penalty = np.delete(self.penalty, move.place)
        self.cost += move.change
        self.n_moves += 1

    def append(self, codes, penalty):
        """Take over terms with weights of 0; the cost stays that without them."""
        self.codes = np.append(self.codes, codes)
        self.theta = np.append(self.theta, np.zeros(len(codes)))
        self.penalty = np.append(self.penalty, penalty)


class SearchHistory:
    """The costs and the numbers of terms of all variables together, move by move.

    Groups of variables that are independent of each other are searched one after another, each
    with a table and a state of its own. The divergence from all data is the sum of those from
    the data of each group, plus a constant.

    Parameters
    ----------
    cost : float
        Without any term.
    end_iteration : callable
        Called after each move; returns whether to stop.
    verbose : int
        Show a bar if 1, and print a line for each move if greater.

    Attributes
    ----------
    cost_path, n_basis_path : list
        One entry for no term at all, and one for each move.
    seconds : list of float
        That each move took.
    stopped : bool
        Whether `end_iteration` has asked to stop.
    """

    def __init__(self, cost, end_iteration=lambda: False, verbose=0):
        self.cost_path, self.n_basis_path, self.stopped = [cost], [0], False
        self.seconds, self._time = [], time.perf_counter()
        self._end_iteration, self._verbose = end_iteration, verbose
        self.bar = progress_bar("moves", None, verbose == 1)

    @property
    def n_moves(self):
        """Number of moves so far."""
        return len(self.cost_path) - 1

    def follow(self, state):
        """Begin with the next group; return what its search is to call after each move."""
        elsewhere = self.cost_path[-1] - state.cost
        n_elsewhere = self.n_basis_path[-1]

        def end_iteration():
            self.seconds.append(time.perf_counter() - self._time)
            self.cost_path.append(elsewhere + state.cost)
            self.n_basis_path.append(n_elsewhere + len(state.codes))
            self.bar.update()
            if self._verbose > 1:
                print(f"[FSLLDensity] move {self.n_moves}: {self}")
            self.stopped = self._end_iteration() or self.stopped
            self._time = time.perf_counter()
            return self.stopped

        return end_iteration

    def __str__(self):
        return f"{self.n_basis_path[-1]} terms, cost {self.cost_path[-1]:.6f}"


def search(table, state, *, solver, tol, max_iter, max_basis, end_iteration=lambda: False):
    """Lower the cost by the best move, again and again, until none is worth `tol`; -> whether so.

    Algorithm 1 of the paper. With ``solver="newton"`` the active terms are refitted jointly
    whenever their number has grown enough and before the search ends, and where no term is worth
    appending by itself, those are tried that are worth it after a joint refit. `end_iteration` is
    called after each move, and returns whether to stop.
    """
    solver = SOLVERS[solver]
    tol = max(tol, rounding(table, state.cost))
    removal_tol = 0.0 if solver.removes_freely else tol
    settled, stopped, n_before = False, False, 0
    unlimited = max_iter > 0 and max_basis == math.inf
    if unlimited and not len(state.codes) and solver.begin(table, state):
        stopped = end_iteration()
    champion = table.scan(-tol)
    while True:
        n_moves = state.n_moves
        stopped = stopped or n_moves >= max_iter
        n_free = max_basis - len(state.codes)
        move = None
        if not stopped:
            candidate = champion if n_free > 0 else None
            move = best_move(table, state, candidate, tol, removal_tol)
        due = len(state.codes) >= solver.growth * n_before + 1
        if len(state.codes) and not settled and (move is None or due):
            # On the way one step will do: the next terms change the optimum anyway.
            solver.settle(table, state, ENOUGH if move is None else math.inf)
            settled, n_before = move is None, len(state.codes)
            champion = table.scan(-tol)
        elif move is not None:
            state.log_partition += log_growth(float(table.t[move.code]), move.step)
            champion = table.update(move.code, move.step, -tol)
            state.apply(move, table)
            settled = False
        elif not stopped and n_free > 0 and solver.widen(table, state, tol, n_free):
            champion = table.scan(-tol)
        else:
            solver.settle(table, state, FINAL)
            if state.n_moves > n_moves:
                end_iteration()
            return not stopped
        if state.n_moves > n_moves:
            stopped = end_iteration() or stopped


def best_move(table, state, champion, tol, removal_tol):
    """The move that lowers the cost most, or None if none is worth the tolerance.

    `champion` is the change of the cost by the best term to append, and its code, or None.
    """
    moves = []
    # An active term is adjusted instead, which is as good: without a penalty it may be the best.
    if champion is not None and champion[1] >= 0 and champion[1] not in state.codes:
        change, code = champion
        moves.append(Move(change, code, table.step_to_data(code), -1, tol))
    if len(state.codes):
        adjust, i, remove, j = active_changes(
            table.t, table.d, state.codes, state.theta, state.penalty
        )
        moves.append(Move(adjust, int(state.codes[i]), table.step_to_data(state.codes[i]), i, tol))
        # Those of `take_columns` stay: by rounding, one may be worth nothing for a while.
        if state.penalty[j] > 0:
            step = -float(state.theta[j])
            moves.append(Move(remove, int(state.codes[j]), step, j, removal_tol))
    worth = [move for move in moves if move.change < -move.tol]
    return min(worth, key=lambda move: move.change, default=None)


def take_columns(table, state):
    """Give columns of more than two values their own distribution; return whether any has one.

    By the description length of each term, values that no term is worth would share the
    probability of the value without an indicator, however frequent that is. All terms of a
    column together are not selected, and so are free.
    """
    for codes, theta, gain in table.columns():
        state.codes, state.theta = np.append(state.codes, codes), np.append(state.theta, theta)
        state.cost -= gain
    state.penalty = np.zeros(len(state.codes))
    if len(state.codes):
        _refresh(table, state, FINAL)
        state.n_moves += 1
    return bool(len(state.codes))


def rounding(table, value):
    """Some rounding errors of a value that follows from the tables."""
    return ROUNDING * float(np.finfo(table.t.dtype).eps) * max(1.0, abs(value))


def log_growth(t, step):
    """Change of ln Z when θ_y moves: ln E[exp(δ Φ)] = ln(cosh δ + θ̄ sinh δ)."""
    up = 0.5 * (1 + math.copysign(t, step * t))
    return abs(step) + math.log(up + (1 - up) * math.exp(-2 * abs(step)))


def refit(table, state, precision):
    """Fit the weights of the active terms jointly, by Newton's method.

    The gradient of KL(p_d || p) is θ̄ - d̄, and its Hessian the covariance of the basis
    functions, which is read off the dual table. The last step is the first one that promises
    less than `precision`, in nats. Without terms, nothing happens.
    """
    if not len(state.codes):
        return
    codes, d = state.codes, table.d[state.codes].astype(np.float64)
    for _ in range(20):
        gradient = table.t[codes] - d
        factor = _cholesky(covariance(table.space, table.t, codes, codes), table.t.dtype)
        direction = -cho_solve((factor, True), gradient)
        slope = float(gradient @ direction)
        accepted = _line_search(table, state, direction, slope, d)
        if not accepted or -slope < precision:
            break
    state.n_moves += 1


def covariance(space, t, left, right):
    """Covariance of the basis functions of two sets of terms, (n_left, n_right).

    That of the active terms with themselves is the Fisher information.
    """
    moments = np.empty((len(left), len(right)))
    for rows in slices_of_rows(len(left), len(right), PAIRS):
        moments[rows] = space.product_moments(t, left[rows], right)
    return moments - np.outer(t[left].astype(np.float64), t[right].astype(np.float64))


def _cholesky(matrix, dtype):
    """Lower Cholesky factor of a covariance known to the precision of `dtype`."""
    # Nearly collinear terms on nearly impossible states: a ridge far below any real variance.
    ridge = np.finfo(dtype).eps * len(matrix)
    while True:
        try:
            return cholesky(matrix + ridge * np.eye(len(matrix)), lower=True)
        except LinAlgError:
            ridge *= 100


def _line_search(table, state, direction, slope, d):
    """Halve the step until KL falls as it should (Armijo); return whether it does.

    If no step lowers the cost, state and table stay as they are.
    """
    theta, log_partition = state.theta, state.log_partition
    noise = rounding(table, log_partition)
    scale = 1.0
    for _ in range(12):
        trial = theta + scale * direction
        trial_log_partition = table.weigh(state.codes, trial)
        change = (trial_log_partition - log_partition) - scale * float(direction @ d)
        if change <= 1e-4 * scale * slope + noise:
            table.normalise()
            state.theta, state.log_partition = trial, trial_log_partition
            state.cost += change
            return True
        scale *= 0.5
    table.refresh(state.codes, theta)
    return False


def append_jointly(table, state, tol, n_free):
    """Append terms that are worth it after a joint refit; return whether the cost fell by `tol`."""
    if not len(state.codes):
        return False
    codes = table.promising(N_PROMISING, without=state.codes)
    penalty = np.array([table.penalty(code) for code in codes])
    chosen = choose_jointly(table, state.codes, codes, penalty, tol, min(n_free, N_JOINT))
    return bool(chosen) and _append(table, state, codes[chosen], penalty[chosen], tol)


def choose_jointly(table, active, codes, penalty, tol, n_terms):
    """Places among `codes` of the terms that lower the cost by `tol` with a joint refit.

    At the joint optimum of the active terms A, a further term y with residual
    e = d̄_y - θ̄_y gains e²/2s by a refit of all, where s = Var(Φ_y) - Cov(y,A) Cov(A,A)⁻¹
    Cov(A,y) is what the active terms leave of its variance. The closed form of a single
    coordinate sees Var(Φ_y) in place of s, so it can miss terms for whose absence the
    others partly compensate. They are chosen one by one, e and s following.
    """
    t, d = table.t[codes].astype(np.float64), table.d[codes].astype(np.float64)
    return choose(
        d - t,
        1 - t**2,
        covariance(table.space, table.t, active, active),
        covariance(table.space, table.t, active, codes),
        lambda k: covariance(table.space, table.t, codes[[k]], codes)[0],
        penalty,
        tol,
        n_terms,
        table.t.dtype,
    )


def choose(
    residual, variance, of_active, with_active, among, penalty, tol, n_terms, dtype=np.float64
):
    """Places of at most `n_terms` terms that are worth appending, by residuals and covariances.

    `of_active` is the covariance of the active terms, known to the precision of `dtype`, and
    `with_active` that with the new ones, (n_active, n_terms). `among` makes of a place the
    covariances of that term with all new ones.
    """
    factor = _cholesky(of_active, dtype)
    explained = solve_triangular(factor, with_active, lower=True)
    # Below, s is mostly rounding, and e²/2s no gain but a fiction. With missing cells it may be 0.
    floor = np.maximum(1e-3 * variance, np.finfo(np.float64).tiny)
    left = variance - np.einsum("ij,ij->j", explained, explained)
    chosen = []
    while len(chosen) < min(n_terms, len(residual)):
        gain = np.where(left > floor, 0.5 * residual**2 / np.maximum(left, floor), 0) - penalty
        k = int(np.argmax(gain))
        if gain[k] < tol:
            break
        chosen.append(k)
        # One more row of the Cholesky factor.
        row = among(k) - explained[:, k] @ explained
        row /= math.sqrt(left[k])
        residual = residual - row * (residual[k] / row[k])
        left = left - row**2
        explained = np.vstack([explained, row])
    return chosen


def _append(table, state, codes, penalty, tol):
    """Append terms and refit; undo it unless the cost falls by more than `tol`."""
    before = vars(state).copy()
    state.append(codes, penalty)
    state.cost += penalty.sum()
    refit(table, state, ENOUGH)
    if state.cost < before["cost"] - tol:
        return True
    vars(state).update(before)
    table.refresh(state.codes, state.theta)
    return False


def _refresh(table, state, precision):
    """Make the dual table anew: the paper's moves leave the weights as they are."""
    state.log_partition = table.refresh(state.codes, state.theta)


def _nothing(*state):
    return False


class SearchSteps(NamedTuple):
    """Steps in which the solvers differ."""

    begin: Callable  # done before the search, where there are no terms; whether there are some now
    settle: Callable  # done before the search may end
    growth: float  # and when the number of terms has grown by this factor
    widen: Callable  # done when no move is left; whether there is a new state to go on from
    # With joint refits a term that was chosen early may come to nearly nothing. It goes then,
    # even if that lowers the cost by less than `tol`: else the true terms had company.
    removes_freely: bool


SOLVERS = {
    "greedy": SearchSteps(_nothing, _refresh, math.inf, _nothing, removes_freely=False),
    "newton": SearchSteps(take_columns, refit, 1.3, append_jointly, removes_freely=True),
}
