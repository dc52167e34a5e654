"""Fit a network of pairs to incomplete rows by EM on the pseudo-likelihood.

An incomplete row is a cloud of complete ones with weights p(missing | observed) by the model. A
round weighs the clouds, and maximises the pseudo-likelihood of the weighted rows. Where it ends,
the expected score given the observed cells is 0, summed over the rows: an unbiased equation, of
which `_completed_inference` derives the standard errors.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from sklearn_boltz.missing._completion import IncompleteRows, Model, maximise
from sklearn_boltz.networks.sampling._sampling import gibbs_complete
from sklearn_boltz.networks.training import _fit
from sklearn_boltz.networks.training._solvers import Monitor, information_solver, line_search

# Rounds at most, if the user does not say.
MAX_ROUNDS = 500
# Sweeps that lead to the completion of a row which has too many.
N_STEPS = 50
# By default, such completions of a row in each of 20 rounds; their seed: a fit is deterministic.
N_DRAWS, SEED = 10, 0
# Cells of all completions at most: beyond it, the rows with the most are completed by draws.
MAX_CELLS = 2**19
# A round ends when a step gains less than this share of what its first one did: new draws move the
# maximum anyway. With .05, there are half as many evaluations again, and hidden cells are predicted
# equally well.
SHARE = 0.2


class Parameters(NamedTuple):
    """Where a round begins or ends; what all rounds have gained; and the objective per row."""

    coupling: np.ndarray
    intercept: np.ndarray
    gain: float
    value: float


def fit_incomplete(task, initial, solver, solve, tol, max_rounds, recorder, label, n_draws=N_DRAWS):
    """EM.

    Parameters
    ----------
    task : Task
        Of incomplete rows.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns. Where both are None, the estimate from the
        observed cells alone.
    solver : str
    solve : callable
        The solver of that name.
    tol : float
        EM ends when a round raises the objective, summed over the rows, by less.
    max_rounds : int
    recorder : Recorder
    label : callable
        What messages call a column.
    n_draws : int
        Of each row that has too many completions, in each round. With fewer than usual, fewer
        rows are completed by enumeration, too.

    Returns
    -------
    result : Result
    """
    codes, counts = task.rows()
    if not len(task.varying):
        _record(recorder, Parameters(*task.initial(*initial), 0.0, 0.0))
        return _fit.result_of(task, recorder, recorder.values, "converged", None)
    max_entries = MAX_CELLS * min(n_draws, N_DRAWS) // N_DRAWS
    data = IncompleteRows(codes, counts, task.n_values(), max_entries=max_entries, n_draws=n_draws)
    if solver == "newton":
        solve = task.with_newton(kept_newton())
    status = "interrupted"
    try:
        maximum = maximise(
            data,
            _described(task, _first(task, initial, label)),
            partial(_round, task, solver, solve, tol, recorder),
            tol=tol,
            max_rounds=max_rounds,
            generator=np.random.default_rng(SEED),
            stop=recorder.stop,
        )
        status = "converged" if maximum.converged else "max_iter"
        if recorder.asked:
            status = "asked"
    except KeyboardInterrupt:
        if recorder.last is None:
            raise
    message = _message(task, status, max_rounds, label)
    return _fit.result_of(task, recorder, recorder.values, status, message)


def _first(task, initial, label):
    """Where EM begins."""
    if initial[0] is None and initial[1] is None:
        solver, solve = task.choose_solver("newton")
        monitor = Monitor(1e-3, _fit.MAX_ITER[solver])
        found = _fit.maximise(task, initial, solve, monitor, label)
        if found.status == "interrupted":
            raise KeyboardInterrupt
        initial = found[:2]
    return Parameters(*task.initial(*initial), 0.0, np.nan)


def _described(task, parameters):
    """A model as the completion of rows wants it."""
    model = task.model(parameters.coupling, parameters.intercept)
    return Model(
        model.log_weight,
        lambda rows, generator: gibbs_complete(model, rows, N_STEPS, generator).codes,
        # What the refits have gained, which ends rising where EM ends.
        lambda _: parameters.gain,
        parameters,
    )


def _round(task, solver, solve, tol, recorder, rows, weights, model):
    """The next model: the maximum of the pseudo-likelihood of the completed rows."""
    before, problem = model.fitted, task.complete(rows, weights)
    monitor = Monitor(tol, _fit.MAX_ITER[solver], lambda _: _is_enough(monitor))
    point, _ = solve(problem, task.at(problem, before.coupling, before.intercept), monitor)
    gain = max(max(point.value, monitor.values[-1]) - monitor.values[0], 0.0)
    parameters = task.parameters(problem, point)
    after = Parameters(*parameters, before.gain + gain, point.value / problem.total)
    _record(recorder, after)
    return _described(task, after)


def _record(recorder, parameters):
    """Record the end of a round."""
    n, value = len(recorder.values) + 1, parameters.value
    recorder.add(value, parameters, f"round {n}: {value:.8f} a row")


def _is_enough(monitor):
    """Whether a round may end: the next one moves the maximum anyway."""
    return monitor.rise < SHARE * (monitor.values[1] - monitor.values[0])


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


def _message(task, status, max_rounds, label):
    """What a user should know about the end of EM, or None."""
    reason = task.no_maximum(label)
    if reason is not None:
        return reason
    if status == "max_iter":
        return (
            f"EM ended at max_iter={max_rounds} rounds, while the pseudo-likelihood still rose. "
            "Raise max_iter, or use missing='observed', which needs no rounds."
        )
    return None
