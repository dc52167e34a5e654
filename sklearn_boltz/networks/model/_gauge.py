"""Couplings and intercepts of categorical columns as matrices, and the gauge they are in.

The states of all columns stand one after another, like one-hot columns: the coupling is a
symmetric matrix of shape (Q, Q) with Q = Σ q_i, whose blocks on the diagonal are 0, and the
intercept a vector of shape (Q,). What is added to J_ij(x_i, x_j) as a function of x_i alone, and
taken from h_i, changes no distribution. In the zero-sum gauge every block of the coupling has
rows and columns that sum to 0, and so does the intercept of each column.
"""

from itertools import pairwise

import numpy as np
from scipy.linalg import block_diag, helmert


def state_offsets(n_values):
    """Where the states of each column start, and their number; of shape (n_columns + 1,)."""
    return np.concatenate([[0], np.cumsum(n_values, dtype=np.int64)])


def state_slices(n_values):
    """Where the states of each column are among those of all."""
    return [slice(*ends) for ends in pairwise(state_offsets(n_values).tolist())]


def column_of_state(n_values):
    """The column that each state is one of; of shape (Q,)."""
    return np.repeat(np.arange(len(n_values)), n_values)


def block_entries(n_values):
    """The states a and b of each coupling of θ, in the order of θ."""
    n_values = np.asarray(n_values)
    i, j = np.triu_indices(len(n_values), 1)
    sizes, offsets = n_values[i] * n_values[j], state_offsets(n_values)
    k = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    a, b = np.divmod(k, np.repeat(n_values[j], sizes))
    return np.repeat(offsets[i], sizes) + a, np.repeat(offsets[j], sizes) + b


def to_zero_sum(coupling, intercept, n_values):
    """Coupling, (Q, Q), and intercept, (Q,), of the same distribution in the zero-sum gauge.

    The blocks on the diagonal are not looked at.
    """
    n_values = np.asarray(n_values)
    column = column_of_state(n_values)
    coupling = np.where(column[:, None] == column, 0.0, coupling)
    row_means = block_means(coupling, n_values)  # of J_ij(a, .), of shape (Q, n_columns)
    means = block_means(row_means.T, n_values)  # of J_ij, of shape (n_columns, n_columns)
    moved = row_means - means[column]
    intercept = np.asarray(intercept, dtype=np.float64) + moved.sum(axis=1)
    intercept = intercept - block_means(intercept[None], n_values)[0, column]
    coupling = coupling - row_means[:, column] - row_means.T[column] + means[column][:, column]
    coupling[column[:, None] == column] = 0
    return coupling, intercept


def block_means(values, n_values):
    """Means over the states of each column, along the last axis."""
    starts = state_offsets(n_values)[:-1]
    return np.add.reduceat(values, starts, axis=-1) / n_values


def reduce_blocks(ufunc, matrix, starts):
    """A number for each pair of columns: what a ufunc makes of the block of their states."""
    return ufunc.reduceat(ufunc.reduceat(matrix, starts, axis=0), starts, axis=1)


def contrast_basis(n_values):
    """Orthonormal contrasts of the states of each column, of shape (Q, Σ (q_i - 1)).

    The first of them compares the second state with the first.
    """
    blocks = [-helmert(q).T if q > 1 else np.zeros((1, 0)) for q in n_values]
    return block_diag(*blocks) if blocks else np.zeros((0, 0))


def frobenius_scores(coupling, n_values, ignore=None):
    """The Frobenius norms of the blocks of a coupling in the zero-sum gauge, with a diagonal of 0.

    The coupling may be in any gauge. `ignore` is a state, or one for each column, such as that of a
    gap, which is left out of the norm; -1 for no such state. The gauge is that with all states.
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
    return np.sqrt(reduce_blocks(np.add, coupling**2, starts))


def average_product_correction(scores):
    """Scores less what the two columns have with all others: S_ij - S_i. S_.j / S_..

    The diagonal is not looked at, as means are over the other columns, and is 0 in the result.
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
