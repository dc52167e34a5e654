"""What a fit does: from rows and settings to a task, and the way from there to a result."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.fitting._rows import positive_of_batch
from sklearn_boltz.networks.higher_order._likelihood import further_of
from sklearn_boltz.networks.higher_order._selection import MAX_ROUNDS, fit_terms, whole
from sklearn_boltz.networks.training import _em
from sklearn_boltz.networks.training._fit import MAX_ITER, Task, maximise
from sklearn_boltz.networks.training._likelihood import Likelihood
from sklearn_boltz.networks.training._objective import distinct_rows
from sklearn_boltz.networks.training._sampled_likelihood import maximise_by_sampling
from sklearn_boltz.networks.training._solvers import Monitor, Recorder, newton
from sklearn_boltz.networks.training._statistics import FurtherStatistics
from sklearn_boltz.numerics._random import make_generator


class Way(NamedTuple):
    """How a network is fitted.

    Attributes
    ----------
    solver : str
    max_iter : int
    run : callable
        ``run(task, initial, label, end_iteration)`` returns a `Result`. `label` tells what
        messages call a column, and `end_iteration` takes what an iteration found: couplings and
        intercepts of all columns, and terms with their weights if there are any.
    """

    solver: str
    max_iter: int
    run: Callable


class Plan(NamedTuple):
    """What a fit does.

    Attributes
    ----------
    task : Task, CodesTask, SparseTask or LikelihoodTask
    way : Way
    found : dict
        The attributes that are known before the fit, such as `alpha_`.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns to begin with.
    """

    task: object
    way: Way
    found: dict
    initial: tuple


def make_task(estimator, rows, batches, alpha=0.0, ordered=None):
    """The pseudo-likelihood of all pairs.

    Parameters
    ----------
    estimator : Network
        It reads batches again where their distinct rows were not kept.
    rows : Rows
    batches : Batches or None
        From which the rows are.
    alpha : float, default=0.0
        Strength of the penalty on squares, per row.
    ordered : ndarray of bool of shape (n_features,), default=None
        The columns whose order the penalty takes into account.

    Returns
    -------
    task : Task or CodesTask
    """
    coding = rows.coding
    if rows.codes is None:
        # Too many distinct rows to keep: by passes over the batches.
        positive = partial(positive_of_batch, estimator._reader(batches), coding)
        return Task.of_batches(batches, positive, rows.sums, alpha)
    if coding.is_binary and rows.is_complete:
        return Task.of_rows(*distinct_rows(rows.codes > 0, rows.weights), alpha)
    codes, weights = distinct_incomplete(rows.codes, rows.weights)
    if not coding.is_binary:
        return CodesTask(codes, weights, coding.n_values, alpha, ordered)
    return Task.of_incomplete_rows(codes, weights, alpha)


def direct(task, solver, *, tol, max_iter, verbose, step_size=1.0):
    """By a solver that goes to the maximum of the objective."""
    solver, solve = task.choose_solver(solver, step_size)
    max_iter = max_iter or MAX_ITER[solver]

    def run(task, initial, label, end_iteration):
        monitor = Monitor(tol, max_iter, of_pairs(task, end_iteration), verbose)
        return maximise(task, initial, solve, monitor, label)

    return Way(solver, max_iter, run)


def by_em(task, solver, *, tol, max_iter, verbose, step_size=1.0, n_draws=_em.N_DRAWS):
    """In rounds, in which the model completes missing cells."""
    solver, solve = task.choose_solver(solver, step_size)
    max_iter = max_iter or _em.MAX_ROUNDS

    def run(task, initial, label, end_iteration):
        recorder = Recorder(of_pairs(task, end_iteration), verbose)
        return _em.fit_incomplete(
            task, initial, solver, solve, tol, max_iter, recorder, label, n_draws
        )

    return Way(solver, max_iter, run)


def by_sampling(*, moment_tol, max_iter, verbose, random_state, sampler=None):
    """By chains or a user's sampler, of which the model has its moments."""
    max_iter, generator = max_iter or MAX_ITER["sampling"], make_generator(random_state)

    def run(task, initial, label, end_iteration):
        recorder = Recorder(of_pairs(task, end_iteration), verbose)
        return maximise_by_sampling(
            task, initial, moment_tol, max_iter, recorder, label, generator, draw=sampler
        )

    return Way("sampling", max_iter, run)


def relaxed(selection, way):
    """A way without a penalty, for the pairs that a task and a way with one have selected."""

    def run(task, initial, label, end_iteration):
        found = run_selection(selection, initial, label)
        task.keep_pairs(found.coupling)
        result = way.run(task, found.network[:2], label, end_iteration)
        return result._replace(message=result.message or found.message)

    return way._replace(run=run)


def with_terms(*, selection, max_order, price, tol, max_iter, verbose):
    """With terms of three columns and more, chosen in rounds, besides all pairs or those selected.

    `selection` is a task and a way with a penalty, or None for all pairs.
    """
    max_iter = max_iter or MAX_ROUNDS

    def run(task, initial, label, end_iteration):
        allowed = None
        if selection is not None:
            found = run_selection(selection, initial, label)
            initial, allowed = found.network[:2], found.coupling != 0
        recorder = Recorder(lambda network: end_iteration(*whole(task, network)), verbose)
        return fit_terms(task, initial, allowed, max_order, price, tol, max_iter, recorder, label)

    return Way("lbfgs", max_iter, run)


def with_further(task, terms, count_potential, *, tol, moment_tol, max_iter, verbose, random_state):
    """By likelihood, with given terms of three columns and more, and a potential."""
    solver = "newton" if task.is_exact() else "sampling"
    max_iter, generator = max_iter or MAX_ITER[solver], make_generator(random_state)

    def run(task, initial, label, end_iteration):
        further = further_of(task, terms, count_potential)

        def asked(model):
            return end_iteration(*whole(task, model))

        if task.is_exact():
            problem = Likelihood(task.problem, further)
            recorder = Monitor(tol, max_iter, asked, verbose, problem.model)
            task = task._replace(problem=problem)
            result = maximise(task, initial, newton, recorder, label)
        else:
            recorder = Recorder(asked, verbose)
            result = maximise_by_sampling(
                task, initial, moment_tol, max_iter, recorder, label, generator,
                FurtherStatistics(task.problem, further),
            )  # fmt: skip
        _, _, terms_, weights, potential = whole(task, recorder.last)
        return result._replace(terms=terms_, weights=weights, potential=potential)

    return Way(solver, max_iter, run)


def run_selection(selection, initial, label):
    """The result of a task with a penalty, by the way to fit it, which tells of no iteration."""
    task, way = selection
    found = way.run(task, initial, label, lambda *network: False)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found


def of_pairs(task, end_iteration):
    """A function that asks after an iteration whose state has couplings and intercepts."""
    return lambda state: end_iteration(*task.whole(state.coupling, state.intercept))
