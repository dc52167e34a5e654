"""What `Task` is, where the likelihood is maximised: the model gets the moments of the data.

So fitted are networks of pairs, or with given terms and a potential of the number of ones.
"""

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.networks.training._statistics import Further


class LikelihoodTask(Task):
    """What is to be fitted by the likelihood.

    The problem is the exact likelihood, if there is a table of all states. It is the
    pseudo-likelihood, at whose maximum the search begins, if there are too many states for a table,
    or if some rows are incomplete.
    """

    objective = Likelihood.name

    @classmethod
    def of(cls, task):
        """The same rows."""
        whole = cls(*task)
        if whole.is_exact() and task.problem.observed is None:
            return whole._replace(problem=Likelihood(task.problem))
        return whole

    def is_exact(self):
        """Whether there is a table of all states of the columns that vary."""
        return len(self.varying) <= MAX_COLUMNS

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        return Likelihood(super().complete(rows, counts))

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        if not isinstance(self.problem, Likelihood) or not len(self.problem.further):
            return super().message(point, direction, monitor, label)
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
