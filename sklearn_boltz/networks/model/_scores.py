"""How strongly two categorical columns interact, as one number a pair."""

import numpy as np

from sklearn_boltz.networks.model._gauge import state_offsets, to_zero_sum


def frobenius_scores(coupling, n_values, ignore=None):
    """The Frobenius norms of the blocks of a coupling in the zero-sum gauge.

    Parameters
    ----------
    coupling : array-like of shape (Q, Q)
        In any gauge.
    n_values : array-like of int of shape (n_columns,)
        The number of states of each column.
    ignore : int or array-like of int of shape (n_columns,), default=None
        A state, for example that of a gap, which is left out of the norm; -1 for no such state. The
        gauge is that with all states.

    Returns
    -------
    scores : ndarray of shape (n_columns, n_columns)
        Symmetric, with a diagonal of 0.
    """
    n_values = np.asarray(n_values)
    starts = state_offsets(n_values)[:-1]
    coupling, _ = to_zero_sum(coupling, np.zeros(n_values.sum()), n_values)
    if ignore is not None:
        ignore = np.asarray(ignore)
        if ignore.shape not in ((), n_values.shape):
            raise ValueError(
                f"ignore must be one state, or one for each of the {len(n_values)} columns; got "
                f"the shape {ignore.shape}."
            )
        ignore = np.broadcast_to(ignore, n_values.shape)
        wrong = np.flatnonzero((ignore < -1) | (ignore >= n_values))
        if len(wrong):
            j = wrong[0]
            raise ValueError(
                f"ignore must be a state of each column, or -1 for none; column {j} has the states "
                f"0 to {n_values[j] - 1}, and not {ignore[j]}."
            )
        left_out = (starts + ignore)[ignore >= 0]
        coupling[left_out] = coupling[:, left_out] = 0
    squares = np.add.reduceat(np.add.reduceat(coupling**2, starts, axis=0), starts, axis=1)
    return np.sqrt(squares)


def average_product_correction(scores):
    """Scores less what the two columns have with all others: S_ij - S_i. S_.j / S_..

    Parameters
    ----------
    scores : array-like of shape (n_columns, n_columns)
        Symmetric. The diagonal is not looked at: means are over the other columns.

    Returns
    -------
    corrected : ndarray of shape (n_columns, n_columns)
        With a diagonal of 0.
    """
    scores = np.array(scores, dtype=np.float64)
    np.fill_diagonal(scores, 0)
    d = len(scores)
    if d < 2 or not scores.any():
        return scores
    means = scores.sum(axis=0) / (d - 1)
    corrected = scores - np.outer(means, means) / means.mean()
    np.fill_diagonal(corrected, 0)
    return corrected
