"""Values that a fit which continues another one is the first to see."""

import operator
import warnings

import numpy as np

from sklearn_boltz.tables._batches import as_batches, summarise
from sklearn_boltz.tables._blocks import ONE_PASS
from sklearn_boltz.tables._categories import merged
from sklearn_boltz.tables._cells import columns_of, missing_cells
from sklearn_boltz.tables._form import as_plain_table
from sklearn_boltz.tables._phrases import and_others, some_of
from sklearn_boltz.tables._values import as_cells, plain

# How to have such values learned, by what keeps them from it.
KEPT = "To learn them, leave `unseen` at 'smooth'."
FIT_ANEW = "To learn them, list all values in `columns`, or call `fit` with all rows{}."


def take_new_values(estimator, X, sample_weight=None):
    """Add values that fits before did not see to the columns where the model can grow.

    One warning tells of all others, which count as missing. Models of codes learn or refuse codes
    themselves. -> a dict from the numbers of columns that have grown to the new codes of their
    values.
    """
    table = estimator._encoder
    if estimator.unseen == "error" or table.header is None and not table.is_word.any():
        return {}
    X, weights, n_rows = _cells_and_weights(estimator, X, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the rows are checked again
        is_known = ~np.isnan(estimator._known_cells(X))
    new, values = ~(is_known | missing_cells(X)) & (weights > 0), {}
    looked_at = new.any(axis=0) & (table.is_word | (not estimator._need.codes))
    for j, (_, cells) in enumerate(columns_of(X)):
        if looked_at[j]:
            found = as_cells(cells[new[:, j]]).tolist()
            values[j] = list(merged(dict.fromkeys(map(plain, found))))
    places = {}
    if estimator._grows and estimator.unseen == "smooth":
        estimator._encoder, places = table.grown(X, values)
    lost = [j for j in values if j not in places]
    if lost:
        share = (weights * new)[:, lost[0]].sum() / n_rows
        estimator._warn(_message(estimator, lost, values, share))
    return places


def _cells_and_weights(estimator, X, sample_weight):
    """-> rows with all cells that there are, how often each cell counts, and the rows in all."""
    batches = as_batches(X)
    if batches is None:
        X = as_plain_table(X)[0]
        weights = np.ones(len(X)) if sample_weight is None else np.ravel(sample_weight) > 0
        return X, weights[:, np.newaxis], weights.sum()
    if batches.blocks.is_single:
        raise ValueError(ONE_PASS)
    count = estimator._reader(batches)._counts_of_batch
    counts = summarise(batches, count, operator.add)[1]
    return *counts.rows(), counts.n_rows


def _message(estimator, lost, values, share):
    """The warning of values that are not learned."""
    if estimator._grows and estimator.unseen != "smooth":
        remedy = KEPT
    else:
        remedy = FIT_ANEW.format(
            " and warm_start=False" if hasattr(estimator, "warm_start") else ""
        )
    first, *others = lost
    return (
        f"{100 * share:.2g} % of the rows have values in {estimator._column(first)} that fits "
        f"before did not see, {some_of(values[first])}. They count as missing. {remedy}"
        f"{and_others(map(estimator._column, others))}"
    )


def recoded(codes, places):
    """Codes of rows in columns that have grown, -1 where a cell is missing."""
    if not places:
        return codes
    codes = codes.astype(np.int32)
    for j, new in places.items():
        codes[:, j] = np.append(new, -1)[codes[:, j]]
    return codes
