"""TAP for an RBM of Bernoulli units whose arrays belong to libraries other than NumPy."""

from sklearn.utils import Bunch

from sklearn_boltz.numerics._arrays import device_of, namespace_of, zeros

# Iterations between two looks at whether a start is still on its way, where there are many: a look
# waits for the device.
LOOK_EVERY = 20


def solve(model, V, iteration):
    """Follow starts to fixed points, with the equations of `_tap.solve`.

    A row that has converged stays as it is. All rows make all iterations, so that nothing waits.

    Parameters
    ----------
    model : Model
    V : array of shape (n_rows, n_visible)
        Where to start.
    iteration : TAP

    Returns
    -------
    solutions : Bunch
        As of `_tap.solve`, and `first_hidden`, the means of the hidden units given the rows.
    """
    xp, W = namespace_of(V), model.weights
    squares = -(W * W) if iteration.order == 2 else None
    v, v_variance, h = V, zeros(V, V.shape), model.mean_hidden(V)
    first, h_variance = h, h - h * h
    change = v[:, 0] * 0 + xp.inf
    going = change == change
    n_iter = xp.zeros(V.shape[0], dtype=xp.int64, device=device_of(V))
    for step in range(1, iteration.max_iter + 1):
        moves = going[:, None], 1 - iteration.damping
        field = _field(v, h, h_variance, W, squares)
        v, v_change = _moved(v, model.visible.mean(field), *moves)
        v_variance = v - v * v
        field = _field(h, v, v_variance, W.T, None if squares is None else squares.T)
        h, h_change = _moved(h, model.hidden.mean(field), *moves)
        h_variance = h - h * h
        now = xp.sum(v_change * v_change, axis=1) + xp.sum(h_change * h_change, axis=1)
        change = xp.where(going, now / sum(W.shape), change)
        n_iter = n_iter + xp.astype(going, xp.int64)
        going = going & ~(change < iteration.tol)
        if step % LOOK_EVERY == 0 and not xp.any(going):
            break
    return Bunch(
        visible_mean=v, visible_variance=v_variance, hidden_mean=h, hidden_variance=h_variance,
        converged=change < iteration.tol, n_iter=n_iter, change=change, first_hidden=first,
        order=xp.full(V.shape[0], iteration.order, dtype=xp.int64, device=device_of(V)),
    )  # fmt: skip


def _field(mean, other, variance, weights, squares):
    """B − A/2 of the units of a side: Σ W a + A (a − 1/2), as x² = x makes a field of A."""
    field = other @ weights
    if squares is None:
        return field
    return field + (mean - 0.5) * (variance @ squares)


def _moved(mean, new_mean, going, pace):
    """-> the means, damped, and by how much they have moved; none of a row that has converged."""
    change = (new_mean - mean) * pace * namespace_of(mean).astype(going, mean.dtype)
    return mean + change, change
