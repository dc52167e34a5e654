"""Maximum likelihood of a network with given terms, and with a potential of the number of ones."""

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._further import Further
from sklearn_boltz.networks.training._moment_matching import LikelihoodTask


class FurtherTask(LikelihoodTask):
    """What is to be fitted with terms or a potential, from a table of all states."""

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        pairs, further = self.problem.pairs, self.problem.further
        if not pairs.penalty and not len(further.counts):
            reason = self.no_maximum(label)
            if reason is not None:
                return reason
            term = empty_term(pairs, further.terms)
            if term is not None:
                columns = ", ".join(label(self.varying[j]) for j in term)
                reason = f"some values of {columns} never occur together"
                return without_maximum(reason, self.objective)
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


def whole(task, model):
    """The network of all columns, from the model of those that vary."""
    terms = [tuple(task.varying[list(term)].tolist()) for term in model.terms]
    potential = model.potential if model.potential.any() else ()
    pairs = task.whole(model.coupling, model.intercept)
    return *pairs, terms, model.weights, potential
