"""Local minima of the energy, and the way down to them from any state."""

import numpy as np

# Rows that go down together: their fields are one table.
ROWS = 2**12
# Differences of the energy, and shares of its scale, that are rounding errors: no way down.
ROUNDING, RELATIVE_ROUNDING = 1e-9, 1e-13


def descend(model, codes):
    """Go down to local minima of the energy.

    In each step the cell of a row is changed whose change lowers the energy most; the row
    has arrived where no change of one cell lowers it.

    Parameters
    ----------
    model : PairwiseModel
    codes : ndarray of int of shape (n, d)
        Complete rows.

    Returns
    -------
    codes : ndarray of int of shape (n, d)
    """
    minima = np.array(codes, dtype=np.int64)
    for start in range(0, len(minima), ROWS):
        _descend(model, minima[start : start + ROWS])
    return minima


def _descend(model, codes):
    """The same in place."""
    column = np.repeat(np.arange(len(model.n_values)), model.n_values)
    active, least = np.arange(len(codes)), max(ROUNDING, RELATIVE_ROUNDING * model.scale)
    while len(active):
        # Of all values, given the others: their differences are those of the energy.
        log_p = model.log_conditionals(codes[active])
        own = np.take_along_axis(log_p, model.starts[:-1] + codes[active], axis=1)
        gains = log_p - own[:, column]
        best = gains.argmax(axis=1)
        rises = gains[np.arange(len(active)), best] > least
        active, best = active[rises], best[rises]
        codes[active, column[best]] = best - model.starts[column[best]]


def distinct_minima(model, minima):
    """The distinct rows, the lowest energy first.

    Returns
    -------
    distinct : ndarray of int of shape (n_minima, d)
    log_weight : ndarray of float64 of shape (n_minima,)
    basin : ndarray of int of shape (n,)
        Which of them each row is.
    """
    distinct, basin = np.unique(minima, axis=0, return_inverse=True)
    log_weight = model.log_weight(distinct)
    order = np.argsort(-log_weight, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return distinct[order], log_weight[order], place[basin.ravel()]
