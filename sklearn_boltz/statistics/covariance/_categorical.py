"""Standard errors of the zero-sum couplings and intercepts of categorical columns."""

import numpy as np

from sklearn_boltz.networks.model._gauge import block_entries


def as_parameters(coupling, intercept, n_values):
    """All h_i(a), column by column, then J_ij(a, b), i < j; from (..., Q, Q) and (..., Q)."""
    return np.concatenate([intercept, coupling[..., *block_entries(n_values)]], axis=-1)


def coupling_places(n_values):
    """Where J_ij(a, b) stands in the order of `as_parameters`, (Q, Q); -1 within a column."""
    n_states = np.sum(n_values)
    places = np.full((n_states, n_states), -1)
    a, b = block_entries(n_values)
    places[a, b] = places[b, a] = n_states + np.arange(len(a))
    return places


def fitted_places(task):
    """Where the parameters of a task's problem stand among those of all columns."""
    inner = coupling_places(task.column_sizes)[np.ix_(task.states, task.states)]
    return as_parameters(inner, task.states, task.problem.n_values)


def places_of_categories(coding, layout):
    """Where parameters of the joint network stand among those of the categories; -1 for scores."""
    d, order, n_scores = len(coding.n_values), layout.order, layout.is_scored.sum()
    if coding.is_binary:
        pairs = np.zeros((d, d), dtype=np.int64)
        pairs[np.triu_indices(d, 1)] = np.arange(d, d * (d + 1) // 2)
        pairs = np.kron(pairs + pairs.T, np.ones((2, 2), dtype=np.int64))
        single = np.repeat(np.arange(d), 2)
    else:
        pairs = coupling_places(coding.n_values)
        single = np.arange(len(pairs))
    pairs = np.pad(pairs, (0, n_scores), constant_values=-1)[order[:, None], order]
    single = np.pad(single, (0, n_scores), constant_values=-1)[order]
    return as_parameters(pairs, single, layout.sizes)
