"""What `Task` is, where the likelihood is maximised: the model gets the moments of the data."""

from sklearn_boltz.fully_visible.training._fit import Task
from sklearn_boltz.fully_visible.training._likelihood import Likelihood


class LikelihoodTask(Task):
    """What is to be fitted by the exact likelihood."""

    objective = Likelihood.name

    @classmethod
    def of(cls, task):
        """The same rows. If some are incomplete, EM begins at the pseudo-likelihood of all."""
        problem = task.problem
        return cls(Likelihood.of(problem) if problem.observed is None else problem, *task[1:])

    def complete(self, rows, counts):
        """The objective of complete rows of the columns that vary, in place of incomplete ones."""
        return Likelihood.of(super().complete(rows, counts))
