"""What a fit does: from rows to a task, and ways from there to a result."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.fitting._rows import positive_of_batch
from sklearn_boltz.networks.higher_order._selection import MAX_ROUNDS, fit_terms
from sklearn_boltz.networks.training import _em
from sklearn_boltz.networks.training._fit import MAX_ITER, Task, maximise
from sklearn_boltz.networks.training._objective import distinct_rows
from sklearn_boltz.networks.training._sampled_likelihood import maximise_by_sampling
from sklearn_boltz.networks.training._solvers import Monitor, never
from sklearn_boltz.numerics._random import make_generator


class Way(NamedTuple):
    """How a network is fitted.

    Attributes
    ----------
    task : Task
    solver : str
    max_iter : int
    run : callable
        ``run(end_iteration)`` returns a `Result`. After each iteration, ``end_iteration(network)``
        tells whether to stop, where ``network()`` are the parameters of all columns.
    """

    task: Task
    solver: str
    max_iter: int
    run: Callable


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
        The strength per row of the penalty on squares.
    ordered : ndarray of bool of shape (n_features,), default=None
        Columns whose order counts; None for none.

    Returns
    -------
    task : Task
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


# All have a task, where to begin, that is couplings and intercepts of all columns or None, and what
# messages call a column.


def direct(task, method, initial, label, *, tol, max_iter, verbose):
    """By a solver that goes to the maximum of the objective."""
    max_iter = max_iter or MAX_ITER[method.name]

    def run(end_iteration):
        monitor = Monitor(tol, max_iter, asking(end_iteration, task.network), verbose)
        return maximise(task, initial, method, monitor, label)

    return Way(task, method.name, max_iter, run)


def by_em(task, method, initial, label, *, tol, max_iter, verbose, first=None, n_draws=_em.N_DRAWS):
    """In rounds, in which the model completes missing cells."""
    max_iter = max_iter or _em.MAX_ROUNDS

    def run(end_iteration):
        rounds = Monitor(tol, max_iter, asking(end_iteration, task.network), verbose)
        return _em.fit_incomplete(task, initial, method, first or method, rounds, label, n_draws)

    return Way(task, method.name, max_iter, run)


def by_sampling(
    task, initial, label, *, moment_tol, max_iter, verbose, random_state, further=None, sampler=None
):
    """By chains or a user's sampler, of which the model has its moments."""
    max_iter, generator = max_iter or MAX_ITER["sampling"], make_generator(random_state)

    def run(end_iteration):
        monitor = Monitor(moment_tol, max_iter, asking(end_iteration, task.whole), verbose)
        return maximise_by_sampling(task, initial, monitor, label, generator, further, sampler)

    return Way(task, "sampling", max_iter, run)


def relaxed(selection, refit):
    """Without a penalty, for the pairs that a way with one has selected.

    `refit` returns the way from the couplings and intercepts of the latter.
    """

    def run(end_iteration):
        found = selection.run(never)
        result = refit(found.pairs).run(end_iteration)
        return result._replace(message=result.message or found.message)

    return selection._replace(run=run)


def with_terms(task, initial, label, selection, *, max_order, price, tol, max_iter, verbose):
    """With terms of three columns and more, chosen in rounds, besides all pairs or those selected.

    `selection` is a way with a penalty, or None for all pairs.
    """
    max_iter = max_iter or MAX_ROUNDS

    def run(end_iteration):
        begin, allowed = initial, None
        if selection is not None:
            begin = selection.run(never).pairs
            allowed = begin[0] != 0
        rounds = Monitor(tol, max_iter, asking(end_iteration, task.whole), verbose)
        return fit_terms(task, begin, allowed, max_order, price, rounds, label)

    return Way(task, "lbfgs", max_iter, run)


def asking(end_iteration, network):
    """What a monitor calls with its last state, of which `network` makes that of all columns."""
    return lambda state: end_iteration(partial(network, state))
