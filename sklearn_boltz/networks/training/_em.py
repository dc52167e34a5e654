"""Fit a pairwise network to incomplete rows by EM on the pseudo-likelihood.

An incomplete row is a cloud of complete ones with weights p(missing | observed) by the model. A
round weighs the clouds, and maximises the pseudo-likelihood of the weighted rows. Where it ends,
the expected score given the observed cells is 0, summed over the rows: an unbiased equation, from
which `statistics.inference` derives the standard errors.
"""

import math
from functools import partial

import numpy as np

from sklearn_boltz.missing._completion import CompletionModel, IncompleteRows, maximise
from sklearn_boltz.networks.sampling._sampling import draw_seed
from sklearn_boltz.networks.training import _fit
from sklearn_boltz.networks.training._solvers import Monitor, information_solver, line_search

# Rounds at most, if the user does not say.
MAX_ROUNDS = 500
# Sweeps that lead to the completion of a row which has too many, and from one round to the next.
N_STEPS, N_MORE = 50, 5
# By default, such completions of a row in each of 20 rounds; their seed: a fit is deterministic.
N_DRAWS, SEED = 10, 0
# Cells of all completions at most: beyond it, the rows with the most are completed by draws; and
# these draws of all rows together, about, if the rows are fewer; with many columns, so many that
# their squares times the draws are this. On 400 rows of 500 bits it makes no difference to what is
# predicted, and a fit takes two thirds of the time.
MAX_CELLS, MAX_DRAWS, MAX_WORK = 2**19, 2**13, 8e8
# A round ends when a step gains less than this share of what its first one did: new draws move the
# maximum anyway. With .05, there are half as many evaluations again, and hidden cells are predicted
# equally well.
SHARE = 0.2
# Steps of a round whose completions are drawn, at most: with large counts and no end in sight.
MOST_STEPS = 30


def fit_incomplete(task, initial, method, first, n_draws, rounds):
    """Run EM; -> a warning about how it ended, or None.

    Parameters
    ----------
    task : Task
        Of incomplete rows.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns. Where both are None, the estimate from the
        observed cells alone.
    method, first : Method
        Of a round, and of that estimate.
    n_draws : int
        Of each row that has too many completions, in each round, at most.
    rounds : Monitor
        EM ends when a round raises the objective, summed over the rows, by less than its `tol`.
    """
    rounds.status = _rounds(task, initial, method, first, n_draws, rounds)
    reason = method.no_maximum()
    if reason is None and rounds.status == "max_iter":
        return (
            f"EM ended at max_iter={rounds.max_iter} rounds, while the pseudo-likelihood still "
            "rose. Raise max_iter, or use missing='observed', which needs no rounds."
        )
    return reason


def _rounds(task, initial, method, first, n_draws, rounds):
    """EM; -> how it ended."""
    if not len(task.varying):
        _record(rounds, task.initial(*initial), 0.0)
        return "converged"
    if initial[0] is None and initial[1] is None:
        initial = _fit.near_maximum(task, initial, first, 1e-3)
    max_cells = min(MAX_CELLS, task.most_cells)
    max_draws = min(MAX_DRAWS, MAX_WORK / len(task.varying) ** 2)
    limits = {"max_entries": max_cells, "n_draws": n_draws, "max_draws": max_draws}
    rows, draw = IncompleteRows(*task.rows(), task.problem.n_values, **limits), drawing()
    most = _fit.MAX_ITER[method.name] if rows.is_exact else MOST_STEPS
    converged = maximise(
        rows,
        _described(task, draw, task.initial(*initial), 0.0),
        partial(_round, task, draw, method, rounds, most),
        tol=rounds.tol,
        max_rounds=rounds.max_iter,
        generator=np.random.default_rng(SEED),
        stop=rounds.stop,
    )
    if rounds.asked:
        return "asked"
    return "converged" if converged else "max_iter"


def drawing():
    """Draws of rows that go on from those of the same rows by the model before."""
    last = None

    def draw(model, rows, generator):
        nonlocal last
        n_steps = N_STEPS if last is None else N_MORE
        start = model.begin(rows, generator) if last is None else last
        chains = model.chains(start, draw_seed(generator), rows < 0)
        chains.sweep(model.intercept, n_steps)
        last = chains.codes
        return last

    return draw


def _described(task, draw, theta, gained):
    """A model for the completion of rows, and what all refits before it have gained."""
    model = task.problem.model(theta)
    return CompletionModel(
        model.log_weight,
        partial(draw, model),
        # Which ends rising where EM ends.
        lambda _: gained,
        (theta, gained),
    )


def _round(task, draw, method, rounds, most, rows, weights, model):
    """The next model: the maximum of the objective of the completed rows, in `most` steps."""
    (theta, gained), problem = model.fitted, task.complete(rows, weights)
    # The next round moves the maximum anyway.
    monitor = Monitor(
        rounds.tol,
        most,
        lambda _: monitor.rise < SHARE * (monitor.values[0] - monitor.first),
    )
    # A copy, as solvers write to the arrays of their first point.
    point, _ = method.run(problem, method.at(problem, theta.copy()), monitor)
    gained += max(point.value, *monitor.values[-1:], monitor.first) - monitor.first
    _record(rounds, point.parameters, point.value / problem.total)
    return _described(task, draw, point.parameters, gained)


def _record(rounds, theta, value):
    """Record the end of a round, with the objective per row."""
    rounds.add(value, theta, f"round {len(rounds.values) + 1}: {value:.8f} a row")


def kept_newton():
    """Newton's method with a matrix that is kept from one round to the next while it serves."""
    solve = None

    def climb(problem, point, monitor):
        nonlocal solve
        before = math.inf
        while not monitor(point):
            gradient = problem.gradient(point)
            direction = None if solve is None else solve(gradient)
            gain = math.inf if direction is None else gradient @ direction / 2
            if direction is None or gain > before / 10:
                solve = information_solver(problem, point, np.float32)
                direction = solve(gradient)
                gain = gradient @ direction / 2
            before = gain
            point = line_search(problem, point, direction, 2 * gain)
        return point, None

    return climb
