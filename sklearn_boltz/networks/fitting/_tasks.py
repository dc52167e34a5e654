"""What is to be fitted: from rows to an objective."""

from functools import partial

from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.fitting._rows import positive_of_batch
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._objective import distinct_rows
from sklearn_boltz.tables._batches import fresh


def make_task(estimator, rows, batches, alpha=0.0, ordered=None):
    """The pseudo-likelihood of all pairs.

    Parameters
    ----------
    estimator : Network
        It reads batches again where their distinct rows were not kept.
    rows : Rows
    batches : Batches or None
        From which the rows are.
    alpha : float, default=0.0
        Strength of the penalty on squares, per row.
    ordered : ndarray of bool of shape (n_features,), default=None
        The columns whose order the penalty takes into account.

    Returns
    -------
    task : Task or CodesTask
    """
    coding = rows.coding
    if rows.codes is None:
        # Too many distinct rows to keep: by passes over the batches.
        positive = partial(positive_of_batch, fresh(estimator), coding)
        return Task.of_batches(batches, positive, rows.sums, alpha)
    if coding.is_binary and rows.is_complete:
        return Task.of_rows(*distinct_rows(rows.codes > 0, rows.weights), alpha)
    codes, weights = distinct_incomplete(rows.codes, rows.weights)
    if not coding.is_binary:
        return CodesTask.of_rows(codes, weights, coding.n_values, alpha, ordered)
    return Task.of_incomplete_rows(codes, weights, alpha)
