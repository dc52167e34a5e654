"""Maximum likelihood: the model gets the moments of the data.

Of pairs, of given terms of three columns and more, and of the number of ones.
"""

import numpy as np

from sklearn_boltz.networks.higher_order._evidence import empty_term
from sklearn_boltz.networks.training._existence import (
    empty_cells,
    never_together,
    without_maximum,
)
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._further import Further
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS, Likelihood


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


class FurtherTask(LikelihoodTask):
    """What is to be fitted with terms or a potential, from a table of all states."""

    def message(self, point, direction, monitor, label):
        """What a user should know about the end of a fit, or None."""
        pairs, further = self.problem.pairs, self.problem.further
        if not pairs.penalty and not len(further.counts):
            empty = empty_cells(*pairs.cell_sums())
            if empty:
                reason = never_together(empty, lambda j, *s: label(self.varying[j], *s))
                return without_maximum(reason, self.objective)
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
