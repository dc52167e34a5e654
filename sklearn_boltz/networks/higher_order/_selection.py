"""Terms of three columns and more that pay: chosen, and fitted, in rounds."""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import best_triples, empty_term, gains, heirs
from sklearn_boltz.networks.higher_order._objective import InteractionPseudoLikelihood
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._fit import Result
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._likelihood import Further
from sklearn_boltz.networks.training._objective import PseudoLikelihood
from sklearn_boltz.networks.training._solvers import Monitor

# A round appends this many terms at most, or this share of those that there are. The evidence of
# several times as many triples is looked at.
FEW, SHARE, PER_TERM = 32, 0.5, 10
# Rounds, and iterations of a refit, at most.
MAX_ROUNDS, MAX_ITER = 100, 5000
# While terms are chosen, a refit ends when an iteration raises the objective by less, in nats.
ROUGH = 0.1


class TermNetwork(NamedTuple):
    """A fitted network.

    Attributes
    ----------
    coupling, intercept : ndarray
    terms : list of tuples of int
    weights : ndarray of shape (n_terms,)
    allowed : ndarray of bool of shape (d, d) or None
        The pairs whose coupling is not 0; None for all.
    value : float
        The objective.
    status : str
        How the fit ended, as of `Monitor`.
    """

    coupling: np.ndarray
    intercept: np.ndarray
    terms: list
    weights: np.ndarray
    allowed: np.ndarray | None = None
    value: float = math.nan
    status: str = "initial"

    potential = ()


def refit(pairs: PseudoLikelihood, network, terms, tol):
    """Maximise the objective of some terms, all parameters jointly, from a network with others."""
    problem = InteractionPseudoLikelihood(pairs, terms, network.allowed)
    if not len(pairs.means):
        return network._replace(value=0.0, status="converged")
    known = dict(zip(network.terms, network.weights, strict=True))
    weights = np.array([known.get(term, 0.0) for term in terms])
    monitor = Monitor(tol, MAX_ITER)
    theta = problem.pack(network.coupling, network.intercept, weights)
    problem.set_scale(theta)
    point, _ = maximise_lbfgs(problem, problem.at(theta), monitor)
    coupling, intercept, weights = problem.unpack(point.theta)
    return network._replace(
        coupling=coupling, intercept=intercept, terms=list(terms), weights=weights,
        value=point.value, status=monitor.status,
    )  # fmt: skip


def select(pairs: PseudoLikelihood, network, max_order, price, end_round):
    """Append terms that pay, refit, remove those that do not, until nothing changes.

    A term pays if its gain is greater than `price` times the length of its description: ½ ln N nats
    for its weight, N being the number of rows, and ln C(d, k) for its place among all terms of
    order k.

    Parameters
    ----------
    pairs : PseudoLikelihood
    network : TermNetwork
        Where to begin: the fit of the pairs.
    max_order : int
        Number of columns of a term at most.
    price : float
    end_round : callable
        Called with the network after each round; returns whether to stop.

    Returns
    -------
    network : TermNetwork
    """
    refused = set()
    if len(pairs.means) < 3:
        return network
    for _ in range(MAX_ROUNDS):
        tanh = InteractionPseudoLikelihood(pairs, network.terms).tanh(
            network.coupling, network.intercept, network.weights
        )
        kept = _paying(pairs, tanh, network, network.terms, network.weights, price)
        refused |= set(network.terms) - set(kept)
        new = _best_candidates(pairs, tanh, network, max_order, price, refused)
        if not new and len(kept) == len(network.terms):
            break
        network = refit(pairs, network, sorted(kept) + new, ROUGH)
        if end_round(network):
            break
    return network


def _paying(pairs, tanh, network, terms, weights, price):
    """The terms whose gain is greater than their price, the best first."""
    d, present = len(pairs.means), set(network.terms)
    weight = math.log(max(pairs.total, 1)) / 2
    lengths = np.array([weight + math.log(math.comb(d, len(term))) for term in terms])
    profit = gains(pairs, tanh, terms, weights, present, network.allowed) - price * lengths
    return [terms[place] for place in np.argsort(-profit, kind="stable") if profit[place] > 0]


def _best_candidates(pairs, tanh, network, max_order, price, refused):
    """The next terms to append, no two of which share all columns but one.

    Such neighbours mostly explain the same.
    """
    n_wanted, known = max(FEW, int(SHARE * len(network.terms))), refused | set(network.terms)
    candidates = best_triples(pairs, tanh, PER_TERM * n_wanted, known)
    for order in range(4, max_order + 1):
        candidates += [term for term in heirs(network.terms, order) if term not in known]
    none = np.zeros(len(candidates))
    paying = _paying(pairs, tanh, network, candidates, none, price)
    chosen, taken = [], set()
    for term in paying:
        parts = set(combinations(term, len(term) - 1))
        if not parts & taken:
            chosen.append(term)
            taken |= parts
    return chosen[:n_wanted]


def fit_terms(task, initial, allowed, max_order, price, rounds, label):
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
    rounds : Monitor
        The last iteration of the last round raises the objective by less than its `tol`.
    label : callable
        What messages call a column.

    Returns
    -------
    result : Result
    """
    pairs = task.problem
    if allowed is not None:
        allowed = allowed[np.ix_(task.varying, task.varying)]
    network = TermNetwork(*pairs.unpack(task.initial(*initial)), [], np.zeros(0), allowed)
    status = rounds.run(_rounds, pairs, network, max_order, price, rounds)
    message, network = _message(task, status, rounds, label), task.whole(rounds.last)
    values = np.array(rounds.values) / pairs.total
    return Result.of(task, network, rounds, values, status, message)


def _rounds(pairs, network, max_order, price, rounds):
    """Choose terms, and fit them; -> how that ended."""

    def end_round(network):
        _record(rounds, network)
        return rounds.stop() or len(rounds.values) >= rounds.max_iter

    network = refit(pairs, network, [], ROUGH)
    if not end_round(network):
        network = select(pairs, network, max_order, price, end_round)
    if not (rounds.asked or len(rounds.values) >= rounds.max_iter):
        network = refit(pairs, network, network.terms, rounds.tol)
        end_round(network)
    if len(rounds.values) > 1 and len(rounds.values) >= rounds.max_iter:
        return "max_iter"
    return "asked" if len(rounds.values) > 1 and rounds.asked else network.status


def _record(rounds, network):
    """Record the end of a round."""
    n, n_terms = len(rounds.values) + 1, len(network.terms)
    line = f"round {n}: {n_terms} terms, {network.value:.8f}"
    rounds.add(network.value, network, line, n_terms=n_terms)


def _message(task, status, rounds, label):
    """What a user should know about the end, or None."""
    reason = _unbounded(task, task.problem, rounds.last.terms, label)
    if reason is None and status == "max_iter":
        return (
            f"The choice of terms ended at max_iter={rounds.max_iter} rounds. Raise max_iter, "
            "or use a larger alpha."
        )
    return reason


def message(task, point, direction, monitor, label):
    """What a user should know about the end of a fit by the exact likelihood, or None."""
    pairs, further, reason = task.problem.pairs, task.problem.further, None
    if not further:
        return task.message(point, direction, monitor, label)
    if not len(further.counts):
        reason = _unbounded(task, pairs, further.terms, label)
    if reason is None and monitor.status == "max_iter":
        return "The fit ended at max_iter, while the likelihood still rose. Raise max_iter."
    return reason


def _unbounded(task, pairs, terms, label):
    """Why the objective has no maximum, or None if it may have."""
    reason = task.no_maximum(label)
    term = None if reason or pairs.penalty else empty_term(pairs, terms)
    if term is None:
        return reason
    columns = ", ".join(label(task.varying[j]) for j in term)
    return without_maximum(f"some values of {columns} never occur together", task.objective)


def further_of(task, terms, count_potential):
    """The given terms of columns that vary, and the potential, as statistics of these columns."""
    place = {j: k for k, j in enumerate(task.varying.tolist())}
    inner = [tuple(place[j] for j in t) for t in terms if all(j in place for j in t)]
    problem, frequencies = task.problem, None
    if count_potential:
        ones = np.count_nonzero(problem.spins > 0, axis=0)
        frequencies = np.bincount(ones, problem.weights, len(task.varying) + 1)
    return Further(len(task.varying), inner, frequencies, problem.penalty > 0)
