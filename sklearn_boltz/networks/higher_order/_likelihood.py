"""The likelihood of networks with given terms and a potential of the number of ones."""

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._statistics import Further


def message(task, point, direction, monitor, label):
    """What a user should know about the end of a fit by the exact likelihood, or None."""
    pairs, further = task.problem.pairs, task.problem.further
    if not further:
        return task.message(point, direction, monitor, label)
    if not pairs.penalty and not len(further.counts):
        reason = task.no_maximum(label)
        if reason is not None:
            return reason
        term = empty_term(pairs, further.terms)
        if term is not None:
            columns = ", ".join(label(task.varying[j]) for j in term)
            return without_maximum(f"some values of {columns} never occur together", task.objective)
    if monitor.status == "max_iter":
        return "The fit ended at max_iter, while the likelihood still rose. Raise max_iter."
    return None


def further_of(task, terms, count_potential):
    """The given terms of columns that vary, and the potential, as statistics of these columns."""
    place = {j: k for k, j in enumerate(task.varying.tolist())}
    inner = [tuple(place[j] for j in t) for t in terms if all(j in place for j in t)]
    problem, frequencies = task.problem, None
    if count_potential:
        ones = np.count_nonzero(problem.spins > 0, axis=0)
        frequencies = np.bincount(ones, problem.weights, len(task.varying) + 1)
    return Further(len(task.varying), inner, frequencies, problem.penalty > 0)
