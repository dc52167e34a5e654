"""Maximum likelihood of a network with given terms, and with a potential of the number of ones."""

import math
import time

import numpy as np
from scipy.optimize import minimize

from sklearn_boltz.loglinear._hadamard import fwht
from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.higher_order._further import Further, FurtherStatistics
from sklearn_boltz.networks.model._interaction_model import InteractionModel, ones_of_states
from sklearn_boltz.networks.training._existence import (
    empty_cells,
    never_together,
    without_maximum,
)
from sklearn_boltz.networks.training._fit import Result
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS
from sklearn_boltz.networks.training._objective import unpack
from sklearn_boltz.networks.training._sampled_likelihood import maximise_by_sampling

# Differences of moments at which the exact fit ends.
MOMENT_TOL = 1e-8


class TableLikelihood:
    """The mean log-likelihood of a row, from a table of all states, with its derivatives.

    A state is a number whose bit j says that x_j = -1, as in `Likelihood`. θ are the intercepts,
    the couplings, the weights of the terms and of the potential.

    Parameters
    ----------
    statistics : FurtherStatistics
    """

    def __init__(self, statistics):
        self.statistics, self.further = statistics, statistics.further
        mean, d = statistics.mean, len(statistics.mean)
        bits, (j, k) = 1 << np.arange(d), statistics.upper
        products = [sum(1 << i for i in term) for term in self.further.terms]
        self.codes = np.concatenate([bits, bits[j] | bits[k], products]).astype(np.int64)
        n_pairs = statistics.n_pairs
        pairs = statistics.moments[d:n_pairs] + mean[j] * mean[k]
        self.moments = np.concatenate([mean, pairs, statistics.moments[n_pairs:]])
        self.ones = d - ones_of_states(d)
        self.penalty = statistics.penalty_slope(np.ones(len(self.moments)))

    def _probabilities(self, theta):
        """ln Z, and the probabilities of all states."""
        n = len(self.codes)
        table = np.zeros(len(self.ones))
        table[self.codes] = theta[:n]
        table = fwht(table, overwrite_a=True, n_jobs=-1)
        if len(self.further.counts):
            table += self.further.split(theta[n - len(self.further.terms) :])[1][self.ones]
        peak = table.max()
        np.exp(np.subtract(table, peak, out=table), out=table)
        mass = table.sum()
        table /= mass
        return peak + math.log(mass), table

    def expected(self, p):
        """The moments of a model."""
        counts = np.bincount(self.ones, p, len(self.statistics.mean) + 1)[self.further.counts]
        return np.append(fwht(p, n_jobs=-1)[self.codes], counts)

    def __call__(self, theta):
        """Value and gradient."""
        log_z, p = self._probabilities(theta)
        value = theta @ self.moments - log_z - self.penalty @ theta**2 / 2
        return float(value), self.moments - self.expected(p) - self.penalty * theta

    def information(self, theta):
        """The negative second derivative: the covariances of the terms."""
        _, p = self._probabilities(theta)
        n, counts = len(self.codes), self.further.counts
        dual, expected = fwht(p, n_jobs=-1), self.expected(p)
        products = np.zeros((len(expected), len(expected)))
        products[:n, :n] = dual[np.bitwise_xor.outer(self.codes, self.codes)]
        for place, k in enumerate(counts, start=n):
            own = fwht(np.where(self.ones == k, p, 0.0), overwrite_a=True, n_jobs=-1)[self.codes]
            products[place, :n] = products[:n, place] = own
            products[place, place] = expected[place]
        return products - np.outer(expected, expected) + np.diag(self.penalty)

    def model(self, theta):
        """The distribution."""
        d, n_pairs = len(self.statistics.mean), self.statistics.n_pairs
        weights, potential = self.further.split(theta[n_pairs:])
        pairs = unpack(theta[:n_pairs], d)
        return InteractionModel(*pairs, self.further.terms, weights, potential)


class Asked(Exception):
    """Ends SciPy's minimiser from its callback, in any version of SciPy."""


class TableHistory:
    """Iterations of the exact fit; as `_sampled_likelihood.History`."""

    def __init__(self, end_iteration, verbose):
        self.end_iteration, self.verbose, self.last = end_iteration, verbose, None
        self.log_likelihoods, self.seconds = [], []
        self._time = time.perf_counter()

    def add(self, likelihood, theta):
        """Record an iteration; -> whether to stop."""
        self.last = likelihood.model(theta)
        self.log_likelihoods.append(likelihood(theta)[0])
        self.seconds.append(time.perf_counter() - self._time)
        if self.verbose > 1:
            print(f"iteration {len(self.seconds)}: {self.log_likelihoods[-1]:.8f} a row")
        asked = self.end_iteration()
        self._time = time.perf_counter()
        return asked


def statistics_of(task, terms, count_potential):
    """Statistics of the columns that vary, with those of given terms and of a potential."""
    place = {j: k for k, j in enumerate(task.varying.tolist())}
    inner = [tuple(place[j] for j in t) for t in terms if all(j in place for j in t)]
    frequencies = None
    if count_potential:
        problem = task.problem
        ones = np.count_nonzero(problem.spins > 0, axis=0)
        frequencies = np.bincount(ones, problem.weights, len(task.varying) + 1)
    further = Further(len(task.varying), inner, frequencies, task.problem.penalty > 0)
    return FurtherStatistics(task.problem, further)


def fit_by_likelihood(task, initial, statistics, moment_tol, history, max_iter, label, generator):
    """Fit a network with further statistics.

    Parameters
    ----------
    task : Task
        Of complete rows, whose problem is the pseudo-likelihood.
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    statistics : FurtherStatistics
    moment_tol : float
        As of `maximise_by_sampling`.
    history : TableHistory or History
        The latter if there is no table of all states.
    max_iter : int
    label : callable
        What messages call a column.
    generator : Generator

    Returns
    -------
    result : Result
    """
    if has_table(task):
        result = _by_table(task, initial, TableLikelihood(statistics), max_iter, history, label)
    else:
        result = maximise_by_sampling(
            task, initial, moment_tol, max_iter, history, label, generator, statistics
        )
    _, _, terms, weights, potential = whole(task, history.last)
    return result._replace(terms=terms, weights=weights, potential=potential)


def has_table(task):
    """Whether there is a table of all states."""
    return len(task.varying) <= MAX_COLUMNS


def whole(task, model):
    """The network of all columns, from the model of those that vary."""
    terms = [tuple(task.varying[list(term)].tolist()) for term in model.terms]
    potential = model.potential if model.potential.any() else ()
    pairs = task.whole(model.coupling, model.intercept)
    return *pairs, terms, model.weights, potential


def _by_table(task, initial, likelihood, max_iter, history, label):
    """Newton's method in a region of trust."""
    coupling, intercept = task.initial(*initial)
    theta = np.append(task.problem.pack(coupling, intercept), np.zeros(len(likelihood.further)))

    def negative(theta):
        value, gradient = likelihood(theta)
        return -value, -gradient

    def callback(theta, *_):
        if history.add(likelihood, theta):
            raise Asked

    status = "converged"
    try:
        found = minimize(
            negative, theta, jac=True, hess=likelihood.information, method="trust-exact",
            callback=callback, options={"gtol": MOMENT_TOL, "maxiter": max_iter},
        )  # fmt: skip
        if found.nit >= max_iter:
            status = "max_iter"
    except Asked:
        status = "asked"
    except KeyboardInterrupt:
        if history.last is None:
            raise
        status = "interrupted"
    return Result(
        *task.whole(history.last.coupling, history.last.intercept),
        objective=np.array(history.log_likelihoods) + task.mean_of_constant_columns(),
        seconds=np.array(history.seconds),
        n_iter=len(history.seconds),
        status=status,
        message=_message(task, likelihood, status, label),
    )


def _message(task, likelihood, status, label):
    """What a user should know about the end, or None."""
    if not task.problem.penalty and not len(likelihood.further.counts):
        empty = empty_cells(*task.problem.cell_sums())
        if empty:
            reason = never_together(empty, lambda j, *s: label(task.varying[j], *s))
            return without_maximum(reason, "log-likelihood")
        term = empty_term(task.problem, likelihood.further.terms)
        if term is not None:
            columns = ", ".join(label(task.varying[j]) for j in term)
            reason = f"some values of {columns} never occur together"
            return without_maximum(reason, "log-likelihood")
    if status == "max_iter":
        return "The fit ended at max_iter, while the likelihood still rose. Raise max_iter."
    return None
