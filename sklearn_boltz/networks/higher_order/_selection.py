"""Choose terms of three columns and more by description length, and fit all parameters jointly."""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.higher_order._candidates import best_triples, heirs
from sklearn_boltz.networks.higher_order._evidence import gains
from sklearn_boltz.networks.higher_order._objective import InteractionPseudoLikelihood
from sklearn_boltz.networks.training._lbfgs import maximise_lbfgs
from sklearn_boltz.networks.training._objective import PseudoLikelihood
from sklearn_boltz.networks.training._solvers import Monitor

# A round appends so many terms at most, or this share of those that there are. The evidence of
# several times as many triples is looked at.
FEW, SHARE, PER_TERM = 32, 0.5, 10
# Rounds, and iterations of a refit, at most.
MAX_ROUNDS, MAX_ITER = 100, 5000
# While terms are chosen, a refit ends when an iteration raises the objective by less, in nats.
ROUGH = 0.1


class Network(NamedTuple):
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
    potential : ndarray
        Of the number of ones; here there is none.
    """

    coupling: np.ndarray
    intercept: np.ndarray
    terms: list
    weights: np.ndarray
    allowed: np.ndarray | None = None
    value: float = math.nan
    status: str = "initial"
    potential: np.ndarray = np.zeros(0)


def refit(pairs: PseudoLikelihood, network, terms, tol, max_iter=MAX_ITER):
    """Maximise the objective of some terms, all parameters jointly, from a network with others."""
    problem = InteractionPseudoLikelihood(pairs, terms, network.allowed)
    if not len(pairs.means):
        return network._replace(value=0.0, status="converged")
    known = dict(zip(network.terms, network.weights, strict=True))
    weights = np.array([known.get(term, 0.0) for term in terms])
    monitor = Monitor(tol, max_iter)
    theta = problem.pack(network.coupling, network.intercept, weights)
    problem.set_scale(theta)
    point = maximise_lbfgs(problem, problem.at(theta), monitor)
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
    network : Network
        Where to begin: the fit of the pairs.
    max_order : int
        Number of columns of a term at most.
    price : float
    end_round : callable
        Called with the network after each round; returns whether to stop.

    Returns
    -------
    network : Network
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
