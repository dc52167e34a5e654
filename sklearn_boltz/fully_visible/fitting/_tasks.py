"""What an estimator is to fit, by its rows and its settings."""

from functools import partial

import numpy as np

from sklearn_boltz._batches import fresh
from sklearn_boltz._completion import distinct_incomplete
from sklearn_boltz.fully_visible.categorical._task import CodesTask
from sklearn_boltz.fully_visible.fitting._columns import given_order
from sklearn_boltz.fully_visible.fitting._rows import positive_of_batch
from sklearn_boltz.fully_visible.higher_order._options import has_further
from sklearn_boltz.fully_visible.sparse._options import (
    is_sparse,
    ridge,
    sparse_task,
    wanted_alpha,
)
from sklearn_boltz.fully_visible.training._fit import Task
from sklearn_boltz.fully_visible.training._likelihood import MAX_COLUMNS
from sklearn_boltz.fully_visible.training._moment_matching import LikelihoodTask
from sklearn_boltz.fully_visible.training._objective import distinct_rows


def make_task(estimator, rows, batches):
    """What is to be fitted.

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood
    rows : Rows
    batches : Batches or None
        From which the rows are.

    Returns
    -------
    task : Task, CodesTask, SparseTask or LikelihoodTask
    found : dict
        The attribute `alpha_`, or "auto" where it is yet to be chosen; and `alphas_` and `path_`
        of a path.
    """
    in_memory = rows.codes is not None
    task = _of_rows(estimator, rows) if in_memory else _of_batches(estimator, rows, batches)
    if is_sparse(estimator):
        return sparse_task(estimator, task, rows)
    if estimator.objective == "likelihood":
        task = _by_likelihood(estimator, task, rows)
    return task, {"alpha_": wanted_alpha(estimator)}


def ordered_columns(estimator, coding):
    """The columns whose order makes a difference to the penalty."""
    ordered = given_order(estimator.ordered, estimator._table) & (coding.n_values > 2)
    is_penalised = ridge(estimator) > 0 or wanted_alpha(estimator) == "auto"
    return ordered if is_penalised else np.zeros_like(ordered)


def _of_rows(estimator, rows):
    """The pseudo-likelihood of the distinct rows."""
    alpha, coding = ridge(estimator), rows.coding
    if coding.is_binary and rows.is_complete:
        return Task.of_rows(*distinct_rows(rows.codes > 0, rows.weights), alpha)
    codes, weights = distinct_incomplete(rows.codes, rows.weights)
    if not coding.is_binary:
        ordered = ordered_columns(estimator, coding)
        return CodesTask(codes, weights, coding.n_values, alpha, ordered)
    if estimator.solver in ("bslm", "ga") and estimator.missing == "observed":
        raise ValueError(
            f"solver={estimator.solver!r} needs complete rows. Use solver='newton' or 'lbfgs', "
            "or missing='em', which completes them."
        )
    return Task.of_incomplete_rows(codes, weights, alpha)


def _of_batches(estimator, rows, batches):
    """The pseudo-likelihood of batches that have too many distinct rows, by passes over them."""
    if estimator.solver in ("bslm", "ga"):
        raise ValueError(
            f"solver={estimator.solver!r} keeps all distinct rows in memory, and these batches "
            "have too many. Use solver='newton' or 'lbfgs'."
        )
    positive = partial(positive_of_batch, fresh(estimator), rows.coding)
    return Task.of_batches(batches, positive, rows.sums, ridge(estimator))


def _by_likelihood(estimator, task, rows):
    """The same rows, fitted by maximum likelihood."""
    if estimator.solver in ("bslm", "ga"):
        raise ValueError(
            f"solver={estimator.solver!r} is for the pseudo-likelihood. With "
            "objective='likelihood' use solver='newton' or 'lbfgs'."
        )
    if estimator.missing == "observed" and not rows.is_complete:
        raise ValueError(
            "missing='observed' leaves out terms of the pseudo-likelihood. With "
            "objective='likelihood' and missing cells use missing='em'."
        )
    if not rows.coding.is_binary:
        many = np.flatnonzero(rows.coding.n_values > 2)
        raise ValueError(
            f"objective='likelihood' is for binary columns, and {estimator._have(many)} more than "
            "two values. Use objective='pseudo-likelihood', or one-hot columns."
        )
    # With further statistics, the pseudo-likelihood of pairs is where the search begins.
    task = LikelihoodTask(*task) if has_further(estimator) else LikelihoodTask.of(task)
    if not task.is_exact() and not rows.is_complete:
        missing = np.flatnonzero((rows.codes < 0).any(axis=0))
        raise ValueError(
            f"objective='likelihood' learns from missing cells, as {estimator._have(missing)}, "
            f"only up to {MAX_COLUMNS} columns that vary; there are {len(task.varying)}. Use "
            "objective='pseudo-likelihood', or fill the cells by `impute` of such a model."
        )
    return task
