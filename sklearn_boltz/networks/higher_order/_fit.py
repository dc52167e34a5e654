"""Fit a network with terms of three columns and more: from a task to a result."""

import time

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.higher_order._selection import ROUGH, Network, refit, select
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._fit import Result


class History:
    """The rounds so far, which a user may end, or interrupt.

    Parameters
    ----------
    end_round : callable
        Called after each round; returns whether to stop.
    max_rounds : int
    verbose : int
        Print a line for each round if greater than 1.

    Attributes
    ----------
    rounds : list of Network
    seconds : list of float
        How long each round took.
    is_over : bool
        Whether the user, or `max_rounds`, has ended the fit.
    """

    def __init__(self, end_round, max_rounds, verbose):
        self.end_round, self.max_rounds, self.verbose = end_round, max_rounds, verbose
        self.rounds, self.seconds, self.is_over = [], [], False
        self._time = time.perf_counter()

    def add(self, network):
        """Record the end of a round; -> whether to stop."""
        self.rounds.append(network)
        self.seconds.append(time.perf_counter() - self._time)
        if self.verbose > 1:
            print(f"round {len(self.rounds)}: {len(network.terms)} terms, {network.value:.8f}")
        self.is_over = self.end_round() or len(self.rounds) >= self.max_rounds
        self._time = time.perf_counter()
        return self.is_over


def fit_terms(task, initial, allowed, max_order, price, tol, history, label):
    """Choose terms in the columns that vary, and fit them.

    Parameters
    ----------
    task : Task
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    allowed : ndarray of bool of shape (n_features, n_features) or None
        The pairs of all columns that have a coupling; None for all pairs.
    max_order : int
        Number of columns of a chosen term at most.
    price : float
        Factor on the description length of a term.
    tol : float
        The last iteration of the last round raises the objective by less.
    history : History
    label : callable
        What messages call a column.

    Returns
    -------
    result : Result
    """
    pairs = task.problem
    network, status = Network(*task.initial(*initial), [], np.zeros(0)), "interrupted"
    if allowed is not None:
        allowed = allowed[np.ix_(task.varying, task.varying)]
    try:
        network = refit(pairs, network, [], ROUGH, allowed)
        if not history.add(network):
            network = select(pairs, network, max_order, price, history.add, allowed)
        if not history.is_over:
            network = refit(pairs, network, network.terms, tol, allowed)
            history.add(network)
        status = _status(history, network)
    except KeyboardInterrupt:
        if not history.rounds:
            raise
        network = history.rounds[-1]
    coupling, intercept, terms, weights = whole(task, network)
    values = np.array([network.value for network in history.rounds])
    return Result(
        coupling,
        intercept,
        objective=values / pairs.total + task.mean_of_constant_columns(),
        seconds=np.array(history.seconds),
        n_iter=len(values),
        status=status,
        message=_message(task, network, status, history, label),
        history={"n_terms": np.array([len(network.terms) for network in history.rounds])},
        terms=terms,
        weights=weights,
    )


def whole(task, network):
    """The couplings and intercepts of all columns, the terms in these, and their weights."""
    terms = [tuple(task.varying[list(term)].tolist()) for term in network.terms]
    return *task.whole(network.coupling, network.intercept), terms, network.weights


def _status(history, network):
    if not history.is_over or len(history.rounds) == 1:
        return network.status
    return "max_iter" if len(history.rounds) >= history.max_rounds else "asked"


def _message(task, network, status, history, label):
    """What a user should know about the end, or None."""
    reason = task.no_maximum(label)
    if reason is not None:
        return reason
    term = None if task.problem.penalty else empty_term(task.problem, network.terms)
    if term is not None:
        columns = ", ".join(label(task.varying[j]) for j in term)
        return without_maximum(f"some values of {columns} never occur together")
    if status == "max_iter":
        return (
            f"The choice of terms ended at max_iter={history.max_rounds} rounds. Raise max_iter, "
            "or use a larger alpha."
        )
    return None
