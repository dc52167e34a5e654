"""Relaxed belief propagation: messages along each edge (Tramel et al., 2018).

On each edge i → j of the graph of units a message says what unit i would be without unit j:

    B_{i→j} = Σ_{l≠j} W_il a_{l→i},   A_{i→j} = −Σ_{l≠j} W_il² c_{l→i},
    a_{i→j}, c_{i→j} = moments(B_{i→j}, A_{i→j}).

It takes O(n_visible × n_hidden) memory and time a start and iteration, and as many moments:
for small models, as a check on TAP.
"""

import numpy as np
from sklearn.utils import Bunch


def solve(model, V, iteration):
    """Follow starts to fixed points of the messages, one after the other.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where to start: each visible unit tells its value to all hidden units.
    iteration : Iteration
        Of which the order does not count.

    Returns
    -------
    solutions : Bunch
        As of `mean_field._tap.solve`, with `free_energy`.
    """
    rows = [_solve_one(model, v, iteration) for v in V]
    return Bunch(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _solve_one(model, v, iteration):
    W, keep = model.weights, iteration.damping
    # Messages to hidden units are of shape (n_hidden, n_visible), to visible ones transposed.
    up = np.tile(v, (len(W), 1)), np.zeros(W.shape, W.dtype)
    down, change = None, np.inf
    n_iter = 0
    while n_iter < iteration.max_iter and not change < iteration.tol:
        n_iter += 1
        hidden, hidden_cavity = _fields(W, up)
        down, hidden_change = _damped(down, model.hidden.moments(*hidden_cavity), keep)
        visible, visible_cavity = _fields(W.T, down)
        up, visible_change = _damped(up, model.visible.moments(*visible_cavity), keep)
        change = 0.5 * (hidden_change + visible_change)
    # All fields once more, from the last messages.
    hidden, hidden_cavity = _fields(W, up)
    (visible_mean, visible_variance) = model.visible.moments(*visible)
    (hidden_mean, hidden_variance) = model.hidden.moments(*hidden)
    log_partition = _bethe(model.visible, visible, visible_cavity, len(W))
    log_partition += _bethe(model.hidden, hidden, hidden_cavity, len(v))
    return dict(
        visible_mean=visible_mean, visible_variance=visible_variance, hidden_mean=hidden_mean,
        hidden_variance=hidden_variance, converged=change < iteration.tol, n_iter=n_iter,
        change=change, free_energy=-log_partition,
    )  # fmt: skip


def _fields(W, messages):
    """(B, A) of units with all their neighbours, and without the one they are to tell.

    Parameters
    ----------
    W : ndarray of shape (n_units, n_neighbours)
    messages : (mean, variance)
        To the units, of the same shape.

    Returns
    -------
    full : (B, A) of shape (n_units,)
    cavity : (B, A) of shape (n_neighbours, n_units)
        For the messages of the units.
    """
    first, second = W * messages[0], -W * W * messages[1]
    B, A = first.sum(axis=1), second.sum(axis=1)
    return (B, A), (B - first.T, A - second.T)


def _damped(old, new, keep):
    """Messages between the old and the new ones, and the mean squared change of the means."""
    if old is None:
        return new, np.inf
    moved = [b + keep * (a - b) for a, b in zip(old, new, strict=True)]
    return moved, float(np.mean((moved[0] - old[0]) ** 2))


def _bethe(units, full, cavity, degree):
    """Σ_i (1 − d_i / 2) ln Z_i + ½ Σ_{i→j} ln Z_{i→j} of a layer."""
    whole = units.log_partition(*full).sum(dtype=np.float64)
    edges = units.log_partition(*cavity).sum(dtype=np.float64)
    return (1 - degree / 2) * whole + edges / 2
