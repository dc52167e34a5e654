"""Probabilities of the classes given a row, of which cells may be missing."""

from functools import partial
from itertools import islice

import numpy as np
from scipy.special import log_softmax, logsumexp

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.model._classes import ClassModel
from sklearn_boltz.restricted.sampling._array_chains import moves_of_chains
from sklearn_boltz.restricted.sampling._completions import ROW_CHAINS, ROW_STEPS, Completer
from sklearn_boltz.restricted.sampling._gibbs_kernel import hidden_fields
from sklearn_boltz.restricted.sampling._observed import Gaps, by_rows, start

# States of each chain of a row that count.
N_STATES = 50
# While a model is in training: draws of the missing cells of a row, and transitions before them.
QUICK_DRAWS, QUICK_STEPS = 10, 10


def log_probability(model, V, seed, workers, base=None):
    """ln p(y | x_o) of rows, of which missing cells are summed out.

    Parameters
    ----------
    model : ClassModel
    V : ndarray of shape (n_rows, n_visible)
        NaN is missing.
    seed : int
        With the content of a row, it decides on the random numbers for that row.
    workers : Workers
    base : UnitType, default=None
        Independent units of features and label, where the annealing of rows with missing cells
        begins. Without it, they take few draws, at a small cost.

    Returns
    -------
    log_probability : ndarray of float64 of shape (n_rows, n_classes)
        Exact for complete rows.
    """
    of_complete = partial(_of_complete, model, workers)
    if base is None:
        of_gaps = partial(_quick, model, seed, workers)
    else:
        of_gaps = partial(_of_gaps, model, base, seed, workers)
    return by_rows(of_complete, of_gaps, V)


def _of_complete(model, workers, V):
    if is_foreign(V):
        return model.log_probability(model.hidden_field(V))
    V = np.ascontiguousarray(V, dtype=model.dtype)
    weights = np.ascontiguousarray(model.weights.T)

    def block(rows):
        fields = np.empty((rows.stop - rows.start, weights.shape[1]), model.dtype)
        hidden_fields(weights, V[rows], fields)
        return model.log_probability(fields)

    return np.concatenate(workers.map(block, row_blocks(len(V)), V.size * weights.shape[1]))


def _of_gaps(model, base, seed, workers, V):
    """Exact where what is missing, the label counted, or the hidden units have few states; else by
    short annealed chains.

    With draws of what is not observed, it is the mean of p(y | x) over them, which is closer than
    the part of them that has class y.
    """
    double, rows = ClassModel(model.joint.in_double()), model.layered().padded(V, np.nan)
    complete = Completer(model.joint, base)

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


def _quick(model, seed, workers, V):
    rows, stream = model.layered().padded(V, np.nan), Stream(seed)
    missing, rows = np.isnan(rows), start(Gaps.of(model.joint, rows))
    moves = moves_of_chains(model.joint, rows, ~missing, QUICK_STEPS + QUICK_DRAWS, stream)
    drawn = (states[:, : V.shape[1]] for _, states in islice(moves, QUICK_STEPS, None))
    parts = [_of_complete(model, workers, states) for states in drawn]
    return logsumexp(parts, axis=0) - np.log(QUICK_DRAWS)
