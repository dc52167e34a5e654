"""Whether the log pseudo-likelihood of categorical columns has a maximum, and how far off it is.

See ``_existence.py``. For a state never seen, no observation speaks; `CategoricalTask` leaves it
out. If two states never meet, and neither column has missing cells, their coupling grows
without bound.
"""

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.model._gauge import column_of_state
from sklearn_boltz.networks.training._existence import (
    NEGLIGIBLE,
    QUADRATIC,
    determined,
    distance,
    more_alpha,
    never_together,
    recession,
    remedies,
)
from sklearn_boltz.networks.training._solvers import information_solver

NO_MAXIMUM = (
    "The log pseudo-likelihood has no maximum: {}. Parameters would grow without bound. All "
    "parameters of these columns are those at the end of the fit, and `inference` has NaN in place "
    "of their standard errors and p values. Merge or leave out values that hardly occur. Or set "
    "alpha > 0, for example alpha=0.01: then the couplings are drawn towards 0 and the maximum "
    "exists."
)


def warning_message(contrasts, point, direction, monitor, label):
    """What a user should know about the end of a fit by Newton's method, or None.

    Parameters
    ----------
    contrasts : Contrasts
    point : ContrastPoint
    direction : ndarray of shape (n_parameters,) or None
        The last step.
    monitor : Monitor
    label : callable
        The name of a column, or with a second argument of one of its states.
    """
    unpenalised = contrasts.penalty == 0
    empty = empty_cells(contrasts.problem.cells) if unpenalised else []
    if empty:
        return NO_MAXIMUM.format(never_together(empty, label))
    gradient = contrasts.gradient(point)
    if direction is None or monitor.status == "max_iter":
        direction = information_solver(contrasts, point)(gradient)
    separated = {}
    if unpenalised:
        coupling, _ = contrasts.inner(direction)
        separated = recession(contrasts, direction, coupling, contrasts.column)
    if separated:
        return NO_MAXIMUM.format(determined(separated, label))
    remaining = float(gradient @ direction) / 2
    known = remaining <= NEGLIGIBLE or move(contrasts, direction) <= QUADRATIC
    if not known:
        return _unknown(contrasts, direction, monitor, label)
    if monitor.status == "max_iter":
        return (
            f"The fit ended at max_iter={monitor.max_iter} before it converged; "
            f"{distance(contrasts, remaining)}. "
            f"{remedies('Raise max_iter', contrasts, by_newton=True)}"
        )
    return None


def large_warning(problem, monitor, label):
    """The same after L-BFGS, where second derivatives are too many."""
    if problem.coupling_penalty == 0:
        empty = empty_cells(problem.cells)
        if empty:
            return NO_MAXIMUM.format(never_together(empty, label))
    if monitor.status != "max_iter":
        return None
    return (
        f"The fit ended at max_iter={monitor.max_iter} before it converged. Raise max_iter, or "
        f"{more_alpha(problem.coupling_penalty)}."
    )


def _unknown(contrasts, direction, monitor, label):
    """The fit ended where the curvature does not tell where the maximum is."""
    coupling, intercept = contrasts.inner(direction)
    strengths = np.abs(np.triu(coupling) + np.diag(intercept))
    r, s = np.unravel_index(strengths.argmax(), strengths.shape)
    i, j = sorted((contrasts.column[r], contrasts.column[s]))
    where = (
        f"the intercept of {label(i)}" if i == j else f"the coupling of {label(i)} and {label(j)}"
    )
    remedy = "a larger max_iter" if monitor.status == "max_iter" else "a smaller tol"
    return (
        "The fit ended at a point whose curvature does not tell how far the maximum is, or "
        f"whether there is one: a step of Newton's method would go too far, above all in {where}. "
        f"The estimates and their standard errors are not to be trusted. Use {remedy}; if that "
        "does not help, fit with a larger alpha, or leave out or merge states that hardly occur."
    )


def empty_cells(cells):
    """Two columns without missing cells and their states (i, j, a, b) that never meet."""
    whole = np.flatnonzero((cells.codes >= 0).all(axis=0))
    if len(whole) < 2:
        return []
    column = column_of_state(cells.n_values)
    states = np.flatnonzero(np.isin(column, whole))
    lines = (cells.codes + cells.offsets[:-1])[:, whole]
    n, d = lines.shape
    ones = np.ones(n * d, dtype=np.float32)
    rows = csr_array((ones, lines.ravel(), np.arange(0, n * d + 1, d)), (n, len(column)))
    together = (rows.T @ rows).toarray()[np.ix_(states, states)]
    below = column[states][:, None] < column[states]
    found = np.argwhere((together == 0) & below)
    first = cells.offsets[column[states]]
    return [
        (int(column[states[r]]), int(column[states[s]]), int(states[r] - first[r]),
         int(states[s] - first[s]))
        for r, s in found
    ]  # fmt: skip


def move(contrasts, direction):
    """By how much a direction moves the difference of two fields of any row, at most."""
    least, greatest = contrasts.gains(direction)
    return max(greatest.max(initial=0), -least.min(initial=0))
