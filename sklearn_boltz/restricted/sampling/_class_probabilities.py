"""Probabilities of the classes given a row, of which cells may be missing."""

from itertools import islice

import numpy as np
from scipy.special import log_softmax, logsumexp

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.sampling._array_chains import moves_of_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import hidden_fields
from sklearn_boltz.restricted.sampling._observed import (
    ROW_CHAINS,
    ROW_STEPS,
    Completer,
    Gaps,
    rows_with_gaps,
    start,
)

# States of each chain of a row that count.
N_STATES = 50
# While a model is in training: draws of the missing cells of a row, and transitions before them.
QUICK_DRAWS, QUICK_STEPS = 10, 10


def log_probability(model, V, workers):
    """ln p(y | x) of complete rows, exact.

    Parameters
    ----------
    model : ClassModel
    V : ndarray of shape (n_rows, n_visible)
    workers : Workers

    Returns
    -------
    log_probability : ndarray of float64 of shape (n_rows, n_classes)
    """
    if is_foreign(V):
        return model.log_probability(model.hidden_field(V))
    V = np.ascontiguousarray(V, dtype=model.dtype)
    weights = np.ascontiguousarray(model.weights.T)

    def block(rows):
        fields = np.empty((rows.stop - rows.start, weights.shape[1]), model.dtype)
        hidden_fields(weights, V[rows], fields)
        return model.log_probability(fields)

    return np.concatenate(workers.map(block, row_blocks(len(V)), V.size * weights.shape[1]))


def log_probability_of_gaps(model, V, seed, workers):
    """ln p(y | x_o) of rows with missing cells, which are summed out.

    With draws of what is not observed, it is the mean of p(y | x) over them, which is closer than
    the part of them that has class y.

    Parameters
    ----------
    model : ClassModel
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    seed : int
        With the content of a row, it decides on the random numbers for that row.
    workers : Workers

    Returns
    -------
    log_probability : ndarray of float64 of shape (n_rows, n_classes)
        Exact where what is missing has at most 2^10 states, the label counted, or the hidden
        units 2^12; else by short Markov chains.
    """
    double, rows = model.in_double(), model.layered().padded(V, np.nan)
    complete = Completer(model.joint)

    def of_row(v):
        found = complete.drawn(v, seed, N_STATES)
        if found.H is None:
            fields = double.hidden_field(found.V[:, : V.shape[1]])
            of_states = double.log_probability(fields)
        else:
            of_states = log_softmax(found.H @ double.label_weights + double.label.intercept, axis=1)
        log_p = logsumexp(found.log_probability[:, np.newaxis] + of_states, axis=0)
        return log_p - logsumexp(log_p)

    work = rows.size * len(model.hidden) * ROW_CHAINS * ROW_STEPS
    return np.array(workers.map(of_row, rows, work))


def quick_log_probability(model, V, seed, workers):
    """ln p(y | x_o) of rows at a small cost: of those with missing cells by few draws, the same
    each time."""
    gaps = rows_with_gaps(V)
    if gaps is None:
        return log_probability(model, V, workers)
    out = np.empty((len(V), model.n_classes))
    if not gaps.all():
        out[~gaps] = log_probability(model, V[~gaps], workers)
    joint, stream, parts = model.joint, Stream(seed), []
    rows = model.layered().padded(V[gaps], np.nan)
    missing, rows = np.isnan(rows), start(Gaps.of(joint, rows))
    moves = moves_of_chains(joint, rows, ~missing, QUICK_STEPS + QUICK_DRAWS, stream)
    for _, states in islice(moves, QUICK_STEPS, None):
        parts.append(log_probability(model, states[:, : V.shape[1]], workers))
    out[gaps] = logsumexp(parts, axis=0) - np.log(len(parts))
    return out
