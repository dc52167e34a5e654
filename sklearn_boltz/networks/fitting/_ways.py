"""The ways to fit a network: each goes from a task to a result, and tells of each iteration.

A way has `solver`, a name; `max_iter`; and a method ``run(task, initial, label, end_iteration)``
that returns a `Result`. `label` tells what messages call a column, and `end_iteration` takes what
the iteration found: couplings and intercepts of all columns, and terms with their weights if there
are any.
"""

from typing import NamedTuple

from sklearn_boltz._random import make_generator
from sklearn_boltz.networks.higher_order import _fit as _terms
from sklearn_boltz.networks.higher_order import _likelihood as _further
from sklearn_boltz.networks.higher_order._selection import MAX_ROUNDS
from sklearn_boltz.networks.training import _em, _sampled_likelihood
from sklearn_boltz.networks.training._fit import MAX_ITER, maximise
from sklearn_boltz.networks.training._solvers import Monitor


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
        monitor = Monitor(
            self._tol,
            self.max_iter,
            lambda: end_iteration(*task.whole(*monitor.last[1:])),
            self._verbose,
        )
        return maximise(task, initial, self._solve, monitor, label)


class ByEM:
    """Missing cells are completed by the model, in rounds."""

    def __init__(self, task, solver, *, tol, max_iter, verbose, step_size=1.0, n_draws=_em.N_DRAWS):
        self.solver, self._solve = task.choose_solver(solver, step_size)
        self.max_iter = max_iter or _em.MAX_ROUNDS
        self._tol, self._n_draws, self._verbose = tol, n_draws, verbose

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        history = _em.History(lambda: end_iteration(*task.whole(*history.last[:2])), self._verbose)
        return _em.fit_incomplete(
            task, initial, self.solver, self._solve, self._tol, self.max_iter, history, label,
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
        history = _sampled_likelihood.History(
            lambda: end_iteration(*task.whole(history.last.coupling, history.last.intercept)),
            self._verbose,
        )
        return _sampled_likelihood.maximise_by_sampling(
            task, initial, self._tol, self.max_iter, history, label, self._generator
        )


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
            pairs, way = self._selection
            found = way.run(pairs, initial, label, lambda *network: False)
            if found.status == "interrupted":
                raise KeyboardInterrupt
            initial, allowed = found.network[:2], found.coupling != 0
        history = _terms.History(
            lambda: end_iteration(*_terms.whole(task, history.rounds[-1])),
            self.max_iter,
            self._verbose,
        )
        return _terms.fit_terms(
            task, initial, allowed, self._max_order, self._price, self._tol, history, label
        )


class WithFurther:
    """By likelihood: given terms of three columns and more, a potential of the number of ones."""

    def __init__(
        self, task, terms, count_potential, *, moment_tol, max_iter, verbose, random_state
    ):
        self.solver = "newton" if _further.has_table(task) else "sampling"
        self.max_iter = max_iter or MAX_ITER[self.solver]
        self._terms, self._count_potential = terms, count_potential
        self._tol, self._verbose = moment_tol, verbose
        self._generator = make_generator(random_state)

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        has_table = _further.has_table(task)
        history = (_further.TableHistory if has_table else _sampled_likelihood.History)(
            lambda: end_iteration(*_further.whole(task, history.last)), self._verbose
        )
        statistics = _further.statistics_of(task, self._terms, self._count_potential)
        return _further.fit_by_likelihood(
            task, initial, statistics, self._tol, history, self.max_iter, label, self._generator
        )
