"""The ways to fit a network: each goes from a task to a result, and tells of each iteration."""

from sklearn_boltz._random import make_generator
from sklearn_boltz.fully_visible.higher_order import _fit as _terms
from sklearn_boltz.fully_visible.higher_order import _likelihood as _further
from sklearn_boltz.fully_visible.higher_order._options import (
    checked_further,
    checked_terms,
    has_further,
    has_terms,
)
from sklearn_boltz.fully_visible.higher_order._selection import MAX_ROUNDS
from sklearn_boltz.fully_visible.sparse._options import is_sparse
from sklearn_boltz.fully_visible.training import _em, _sampled_likelihood
from sklearn_boltz.fully_visible.training._fit import MAX_ITER, maximise
from sklearn_boltz.fully_visible.training._solvers import Monitor


def choose_way(estimator, task, rows):
    """The way to fit a task, by what the estimator asks for and whether cells are missing.

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood
    task : Task, CodesTask, SparseTask or LikelihoodTask
    rows : Rows

    Returns
    -------
    way : object
        With `solver`, a name; `max_iter`; and a method ``run(task, initial, label, end_iteration)``
        that returns a `Result`. `label` tells what messages call a column, and `end_iteration`
        takes what the iteration found: couplings and intercepts of all columns, and terms with
        their weights if there are any.
    """
    if has_further(estimator):
        terms = checked_further(estimator, task, rows, is_sparse(estimator))
        return WithFurther(estimator, task, terms)
    if has_terms(estimator):
        return WithTerms(estimator, checked_terms(estimator, task, rows, is_sparse(estimator)))
    if estimator.objective == "likelihood" and not task.is_exact():
        return BySampling(estimator)
    if estimator.missing == "em" and not rows.is_complete:
        return ByEM(estimator, task)
    return Direct(estimator, task)


class Direct:
    """A solver goes to the maximum of the objective."""

    def __init__(self, estimator, task):
        self.solver, self._solve = task.choose_solver(estimator.solver, estimator.step_size)
        self.max_iter = estimator.max_iter or MAX_ITER[self.solver]
        self._tol, self._verbose = estimator.tol, estimator.verbose

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

    def __init__(self, estimator, task):
        self.solver, self._solve = task.choose_solver(estimator.solver, estimator.step_size)
        self.max_iter = estimator.max_iter or _em.MAX_ROUNDS
        self._tol, self._n_draws, self._verbose = (
            estimator.tol, estimator.n_draws, estimator.verbose
        )  # fmt: skip

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

    def __init__(self, estimator):
        self.max_iter = estimator.max_iter or MAX_ITER[self.solver]
        self._tol, self._verbose = estimator.moment_tol, estimator.verbose
        self._generator = make_generator(estimator.random_state)

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
    """Terms of three columns and more, given or chosen in rounds."""

    solver = "lbfgs"

    def __init__(self, estimator, terms):
        self.max_iter = estimator.max_iter or MAX_ROUNDS
        self._terms, self._max_order = terms, estimator.max_order
        self._price, self._tol = estimator.term_price, estimator.tol
        self._verbose = estimator.verbose

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        history = _terms.History(
            lambda: end_iteration(*_terms.whole(task, history.rounds[-1])),
            self.max_iter,
            self._verbose,
        )
        return _terms.fit_terms(
            task, initial, self._terms, self._max_order, self._price, self._tol, history, label
        )


class WithFurther:
    """By likelihood: given terms of three columns and more, a potential of the number of ones."""

    def __init__(self, estimator, task, terms):
        self.solver = "newton" if _further.has_table(task) else "sampling"
        self.max_iter = estimator.max_iter or MAX_ITER[self.solver]
        self._terms, self._count_potential = terms, estimator.count_potential
        self._tol, self._verbose = estimator.moment_tol, estimator.verbose
        self._generator = make_generator(estimator.random_state)

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
