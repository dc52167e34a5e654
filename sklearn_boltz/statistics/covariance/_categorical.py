"""Standard errors of the zero-sum couplings and intercepts of categorical columns."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.model._gauge import column_of_state, state_offsets
from sklearn_boltz.statistics.covariance._curvature import Regressions, fitted_curvature


class ParameterIndex(NamedTuple):
    """What each parameter refers to: h_i(a), or with j and b other than -1 J_ij(a, b).

    First all h_i(a), column by column; then the blocks J_ij(a, b), i < j, row by row.

    Attributes
    ----------
    i, a, j, b : ndarray of int of shape (n_parameters,)
    """

    i: np.ndarray
    a: np.ndarray
    j: np.ndarray
    b: np.ndarray


def parameter_index(n_values):
    """The `ParameterIndex` of columns with these numbers of states."""
    column, offsets = column_of_state(n_values), state_offsets(n_values)
    none = np.full(len(column), -1)
    parts = [(column, np.arange(len(column)) - offsets[column], none, none)]
    for i in range(len(n_values)):
        for j in range(i + 1, len(n_values)):
            a, b = (index.ravel() for index in np.indices((n_values[i], n_values[j])))
            parts.append((np.full(len(a), i), a, np.full(len(a), j), b))
    return ParameterIndex(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def as_parameters(coupling, intercept, n_values):
    """Values in the order of `parameter_index`, from those of shapes (..., Q, Q) and (..., Q)."""
    index, offsets = parameter_index(n_values), state_offsets(n_values)
    pairs = index.j >= 0
    rows, columns = (offsets[k[pairs]] + s[pairs] for k, s in ((index.i, index.a), index[2:]))
    return np.concatenate([intercept, coupling[..., rows, columns]], axis=-1)


def as_matrices(values, n_values, fill=np.nan):
    """Values of shapes (Q, Q) and (Q,), from those in the order of `parameter_index`.

    `fill` stands in the blocks on the diagonal.
    """
    index, offsets = parameter_index(n_values), state_offsets(n_values)
    pairs = index.j >= 0
    rows, columns = (offsets[k[pairs]] + s[pairs] for k, s in ((index.i, index.a), index[2:]))
    coupling = np.full((offsets[-1],) * 2, fill, dtype=np.float64)
    coupling[rows, columns] = coupling[columns, rows] = values[pairs]
    return coupling, values[~pairs].copy()


def contrasts_curvature(contrasts, point, numbers, free=None, **options):
    """H and J at a point of `Contrasts`; see `fitted_curvature`."""
    regressions = Regressions.of_contrasts(contrasts, point)
    information = contrasts.information(point)
    return fitted_curvature(information, regressions, numbers, free, **options)


def fitted_places(task):
    """Where the parameters of a task's problem stand among those of all columns."""
    whole = np.zeros((len(task.base),) * 2, dtype=np.int64)
    index, offsets = parameter_index(task.column_sizes), state_offsets(task.column_sizes)
    pairs = np.flatnonzero(index.j >= 0)
    rows = offsets[index.i[pairs]] + index.a[pairs]
    columns = offsets[index.j[pairs]] + index.b[pairs]
    whole[rows, columns] = whole[columns, rows] = pairs
    inner = whole[np.ix_(task.states, task.states)]
    return as_parameters(inner, task.states, task.problem.n_values)
