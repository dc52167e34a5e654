"""Fit a network with terms of three columns and more: from a task to a result."""

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.higher_order._selection import ROUGH, Network, refit, select
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._fit import result_of


def fit_terms(task, initial, allowed, max_order, price, tol, max_rounds, recorder, label):
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
    max_rounds : int
    recorder : Recorder
    label : callable
        What messages call a column.

    Returns
    -------
    result : Result
    """
    pairs = task.problem
    if allowed is not None:
        allowed = allowed[np.ix_(task.varying, task.varying)]
    network = Network(*task.initial(*initial), [], np.zeros(0), allowed)
    status, is_over = "interrupted", False

    def end_round(network):
        nonlocal is_over
        _record(recorder, network)
        is_over = recorder.stop() or len(recorder.values) >= max_rounds
        return is_over

    try:
        network = refit(pairs, network, [], ROUGH)
        if not end_round(network):
            network = select(pairs, network, max_order, price, end_round)
        if not is_over:
            network = refit(pairs, network, network.terms, tol)
            end_round(network)
        status = network.status
        if is_over and len(recorder.values) > 1:
            status = "max_iter" if len(recorder.values) >= max_rounds else "asked"
    except KeyboardInterrupt:
        if recorder.last is None:
            raise
    message = _message(task, recorder.last, status, max_rounds, label)
    _, _, terms, weights, _ = whole(task, recorder.last)
    values = np.array(recorder.values) / pairs.total
    result = result_of(task, recorder, values, status, message)
    return result._replace(terms=terms, weights=weights)


def _record(recorder, network):
    """Record the end of a round."""
    n, n_terms = len(recorder.values) + 1, len(network.terms)
    line = f"round {n}: {n_terms} terms, {network.value:.8f}"
    recorder.add(network.value, network, line, n_terms=n_terms)


def whole(task, network):
    """The network of all columns, from that of those that vary."""
    terms = [tuple(task.varying[list(term)].tolist()) for term in network.terms]
    potential = network.potential if network.potential.any() else ()
    pairs = task.whole(network.coupling, network.intercept)
    return *pairs, terms, network.weights, potential


def _message(task, network, status, max_rounds, label):
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
            f"The choice of terms ended at max_iter={max_rounds} rounds. Raise max_iter, "
            "or use a larger alpha."
        )
    return None
