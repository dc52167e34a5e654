"""Standard errors of the zero-sum couplings and intercepts of categorical columns."""

import numpy as np

from sklearn_boltz.networks.categorical._objective import block_entries


def as_parameters(coupling, intercept, n_values):
    """All h_i(a), column by column, then J_ij(a, b), i < j; from (..., Q, Q) and (..., Q)."""
    return np.concatenate([intercept, coupling[..., *block_entries(n_values)]], axis=-1)


def as_matrices(values, n_values, fill=np.nan):
    """Values of shapes (Q, Q) and (Q,), from those in the order of `as_parameters`.

    `fill` stands in the blocks on the diagonal.
    """
    a, b = block_entries(n_values)
    n_states = np.sum(n_values)
    coupling = np.full((n_states,) * 2, fill, dtype=np.float64)
    coupling[a, b] = coupling[b, a] = values[n_states:]
    return coupling, values[:n_states].copy()


def fitted_places(task):
    """Where the parameters of a task's problem stand among those of all columns."""
    whole = np.zeros((len(task.base),) * 2, dtype=np.int64)
    a, b = block_entries(task.column_sizes)
    whole[a, b] = whole[b, a] = len(whole) + np.arange(len(a))
    inner = whole[np.ix_(task.states, task.states)]
    return as_parameters(inner, task.states, task.problem.n_values)
