"""A fit in two steps: a penalty selects pairs, which are then fitted without it."""


class Relaxed:
    """Select pairs, and fit these without a penalty; see `fitting._ways`.

    Parameters
    ----------
    selection : (SparseTask, Direct or ByEM)
        The task with the penalty, and the way to fit it.
    way : Direct or ByEM
        That of the task without the penalty.
    """

    def __init__(self, selection, way):
        self.solver, self.max_iter = way.solver, way.max_iter
        self._selection, self._way = selection, way

    def run(self, task, initial, label, end_iteration):
        """Fit."""
        pairs, way = self._selection
        found = way.run(pairs, initial, label, lambda *network: False)
        if found.status == "interrupted":
            raise KeyboardInterrupt
        task.keep_pairs(found.coupling)
        result = self._way.run(task, found.network[:2], label, end_iteration)
        return result._replace(message=result.message or found.message)
