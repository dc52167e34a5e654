"""The ways to fit a network: each goes from a task to a result, and tells of each iteration.

A way has `solver`, a name; `max_iter`; and a method ``run(task, initial, label, end_iteration)``
that returns a `Result`. `label` tells what messages call a column, and `end_iteration` takes what
the iteration found: couplings and intercepts of all columns, and terms with their weights if there
are any.
"""

from typing import NamedTuple

from sklearn_boltz.networks.higher_order import _fit as _terms
from sklearn_boltz.networks.higher_order import _likelihood as _further
from sklearn_boltz.networks.higher_order._selection import MAX_ROUNDS
from sklearn_boltz.networks.training import _em
from sklearn_boltz.networks.training._fit import MAX_ITER, maximise
from sklearn_boltz.networks.training._further import FurtherStatistics
from sklearn_boltz.networks.training._likelihood import Likelihood
from sklearn_boltz.networks.training._recorder import Recorder
from sklearn_boltz.networks.training._sampled_likelihood import maximise_by_sampling
from sklearn_boltz.networks.training._solvers import Monitor, newton
from sklearn_boltz.numerics._random import make_generator


class Plan(NamedTuple):
    """What a fit does.

    Attributes
    ----------
    task : Task, CodesTask, SparseTask or LikelihoodTask
    way : Direct, ByEM, BySampling, WithTerms or WithFurther
    found : dict
        The attributes that are known before the fit, such as `alpha_`.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns to begin with.
    """

    task: object
    way: object
    found: dict
    initial: tuple


class Direct:
    """A solver goes to the maximum of the objective."""

    def __init__(self, task, solver, *, tol, max_iter, verbose, step_size=1.0):
        self.solver, self._solve = task.choose_solver(solver, step_size)
        self.max_iter = max_iter or MAX_ITER[self.solver]
        self._tol, self._verbose = tol, verbose

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        asked = of_pairs(task, end_iteration)
        monitor = Monitor(self._tol, self.max_iter, asked, self._verbose)
        return maximise(task, initial, self._solve, monitor, label)


class ByEM:
    """Missing cells are completed by the model, in rounds."""

    def __init__(self, task, solver, *, tol, max_iter, verbose, step_size=1.0, n_draws=_em.N_DRAWS):
        self.solver, self._solve = task.choose_solver(solver, step_size)
        self.max_iter = max_iter or _em.MAX_ROUNDS
        self._tol, self._n_draws, self._verbose = tol, n_draws, verbose

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        recorder = Recorder(of_pairs(task, end_iteration), self._verbose)
        return _em.fit_incomplete(
            task, initial, self.solver, self._solve, self._tol, self.max_iter, recorder, label,
            self._n_draws,
        )  # fmt: skip


class BySampling:
    """The moments of the model come from chains."""

    solver = "sampling"

    def __init__(self, *, moment_tol, max_iter, verbose, random_state):
        self.max_iter = max_iter or MAX_ITER[self.solver]
        self._tol, self._verbose = moment_tol, verbose
        self._generator = make_generator(random_state)

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        recorder = Recorder(of_pairs(task, end_iteration), self._verbose)
        return maximise_by_sampling(
            task, initial, self._tol, self.max_iter, recorder, label, self._generator
        )


class Relaxed:
    """Select pairs by a penalty, and fit these without it.

    Parameters
    ----------
    selection : (SparseTask, Direct or ByEM)
        The task with the penalty, and the way to fit it.
    way : Direct or ByEM
        That of the task without the penalty.
    """

    def __init__(self, selection, way):
        self.solver, self.max_iter = way.solver, way.max_iter
        self._selection, self._way = selection, way

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        found = run_selection(self._selection, initial, label)
        task.keep_pairs(found.coupling)
        result = self._way.run(task, found.network[:2], label, end_iteration)
        return result._replace(message=result.message or found.message)


class WithTerms:
    """Terms of three columns and more, chosen in rounds, besides all pairs or those selected."""

    solver = "lbfgs"

    def __init__(self, *, selection, max_order, price, tol, max_iter, verbose):
        self.max_iter = max_iter or MAX_ROUNDS
        self._selection, self._max_order, self._price = selection, max_order, price
        self._tol, self._verbose = tol, verbose

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        allowed = None
        if self._selection is not None:
            found = run_selection(self._selection, initial, label)
            initial, allowed = found.network[:2], found.coupling != 0
        recorder = Recorder(
            lambda network: end_iteration(*_terms.whole(task, network)), self._verbose
        )
        return _terms.fit_terms(
            task, initial, allowed, self._max_order, self._price, self._tol, self.max_iter,
            recorder, label,
        )  # fmt: skip


class WithFurther:
    """By likelihood: given terms of three columns and more, a potential of the number of ones."""

    def __init__(
        self, task, terms, count_potential, *, tol, moment_tol, max_iter, verbose, random_state
    ):
        self.solver = "newton" if task.is_exact() else "sampling"
        self.max_iter = max_iter or MAX_ITER[self.solver]
        self._terms, self._count_potential = terms, count_potential
        self._tol, self._moment_tol, self._verbose = tol, moment_tol, verbose
        self._generator = make_generator(random_state)

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        further = _further.further_of(task, self._terms, self._count_potential)
        fit = self._by_table if task.is_exact() else self._by_chains

        def asked(model):
            return end_iteration(*_further.whole(task, model))

        result, model = fit(task, initial, further, label, asked)
        _, _, terms, weights, potential = _further.whole(task, model)
        return result._replace(terms=terms, weights=weights, potential=potential)

    def _by_table(self, task, initial, further, label, asked):
        problem = Likelihood(task.problem, further)
        monitor = Monitor(self._tol, self.max_iter, asked, self._verbose, problem.model)
        task = _further.FurtherTask(*task)._replace(problem=problem)
        return maximise(task, initial, newton, monitor, label), monitor.last

    def _by_chains(self, task, initial, further, label, asked):
        recorder = Recorder(asked, self._verbose)
        statistics = FurtherStatistics(task.problem, further)
        result = maximise_by_sampling(
            task, initial, self._moment_tol, self.max_iter, recorder, label, self._generator,
            statistics,
        )  # fmt: skip
        return result, recorder.last


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
