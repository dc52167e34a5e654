"""Most probable joint states: by coordinate-wise ascent, where they cannot be enumerated."""

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.restricted.model._model import log_sums_of_states

# Modes of parts of a mixture that are compared, those of them where ascents start, and sweeps over
# the coordinates at most.
N_CANDIDATES, N_STARTS, MOST_SWEEPS = 256, 4, 50
# Parts of a mixture are left out that weigh less than the greatest by this many nats.
NEGLIGIBLE = 40.0
# A move must gain as many nats, so that rounding does not make it go round in circles.
LEAST_GAIN = 1e-5


def mode_of_mixture(log_probability, log_factors):
    """A most probable row of independent values, mixed over hidden states.

    To find the mode of a mixture is hard in general. Ascents start at the best of the modes of
    its parts, and the best end is taken.

    Parameters
    ----------
    log_probability : ndarray of shape (n_parts,)
    log_factors : ndarray of shape (n_parts, n_units, n_states)
        Log-probability of each state of each unit in each part; −∞ after the last state of a
        unit that has fewer than others.

    Returns
    -------
    codes : ndarray of int of shape (n_units,)
        Which state each unit is in.
    """
    kept = log_probability > log_probability.max() - NEGLIGIBLE
    log_probability, log_factors = log_probability[kept], log_factors[kept]
    weights = log_probability + log_factors.max(axis=2).sum(axis=1)
    parts = np.argsort(-weights, kind="stable")[:N_CANDIDATES]
    candidates = np.unique(log_factors[parts].argmax(axis=2), axis=0)
    totals = [logsumexp(_of_parts(codes, log_probability, log_factors)) for codes in candidates]
    chosen = candidates[np.argsort(totals)[-N_STARTS:]]
    ends = [_ascent_in_mixture(codes, log_probability, log_factors) for codes in chosen]
    return max(ends, key=lambda end: end[0])[1]


def _of_parts(codes, log_probability, log_factors):
    """ln p(part, codes) of each part."""
    return log_probability + log_factors[:, np.arange(len(codes)), codes].sum(axis=1)


def _ascent_in_mixture(codes, log_probability, log_factors):
    """Change one cell after the other; -> the final log-probability, the codes."""
    of_parts = _of_parts(codes, log_probability, log_factors)
    total = logsumexp(of_parts)
    for _ in range(MOST_SWEEPS):
        before = total
        for i in range(len(codes)):
            others = of_parts - log_factors[:, i, codes[i]]
            totals = logsumexp(others[:, np.newaxis] + log_factors[:, i], axis=0)
            if totals.max() > total + LEAST_GAIN:
                codes[i], total = totals.argmax(), totals.max()
                of_parts = others + log_factors[:, i, codes[i]]
        if total == before:
            break
    return total, codes


def coordinate_ascent(model, V, missing):
    """Change single missing values as long as that makes the row more probable.

    Parameters
    ----------
    model : Model
        An RBM, or `ClassModel`. Visible units with a continuum of values stay as they are.
    V : ndarray of shape (n_rows, n_visible)
        States where the ascent starts.
    missing : ndarray of bool of the same shape
        Units are missing as a whole.

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
        Rows that no change of a single missing value makes more probable.
    """
    each, widths = model.visible.unit_states(), model.visible.widths
    V, by_visible = np.array(V, model.dtype), model.weights_by_visible
    missing = missing[:, np.cumsum(widths) - widths]
    active = np.flatnonzero(missing.any(axis=1))
    for _ in range(MOST_SWEEPS):
        if not len(active):
            break
        rows, moved = V[active], np.zeros(len(active), dtype=bool)
        field = model.hidden_field(rows)
        for i in np.flatnonzero(missing[active].any(axis=0)):
            if each[i] is None:
                continue
            columns, (states, log_weights) = model.visible.columns_of(i), each[i]
            weights = by_visible[columns]
            steps = (states - rows[:, np.newaxis, columns]).astype(model.dtype)
            parts = field, rows[:, columns], weights, states
            gains = log_weights + log_sums_of_states(model, *parts)
            here, to = np.abs(steps).sum(axis=2).argmin(axis=1), gains.argmax(axis=1)
            every = np.arange(len(rows))
            gain = gains[every, to] - gains[every, here]
            moves = missing[active, i] & (gain > LEAST_GAIN)
            field[moves] += steps[every, to][moves] @ weights
            rows[moves, columns] = states[to[moves]]
            moved |= moves
        V[active], active = rows, active[moved]
    return V


def expectation_maximisation(units, field_given, V, missing):
    """Alternate between the mean field given a row and the most probable row under it.

    With exact means, no step makes the rows less probable.

    Parameters
    ----------
    units : UnitType
        The visible layer. Those with a continuum of values get their means.
    field_given : callable
        The mean field on the visible units given rows.
    V : ndarray of shape (n_rows, n_visible)
        States where the ascent starts.
    missing : ndarray of bool of the same shape

    Returns
    -------
    V : ndarray of shape (n_rows, n_visible)
    """
    V, active = V.copy(), np.arange(len(V))
    for _ in range(MOST_SWEEPS):
        rows = V[active]
        V[active] = np.where(missing[active], units.mode(field_given(rows)), rows)
        active = active[(V[active] != rows).any(axis=1)]
        if not len(active):
            break
    return V
