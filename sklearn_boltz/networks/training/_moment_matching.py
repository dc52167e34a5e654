"""What `Task` is, where the likelihood is maximised: the model gets the moments of the data."""

from sklearn_boltz.networks.training._fit import Task
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
