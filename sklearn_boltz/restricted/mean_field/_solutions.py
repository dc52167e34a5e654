"""Free energies of mean-field fixed points, the distinct ones, and the ln Z they give."""

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import Bunch

from sklearn_boltz.restricted.mean_field._second_order import (
    has_second_order,
    has_wide_units,
    negative_squares,
)
from sklearn_boltz.restricted.mean_field._tap import Evidence

# Two solutions count as one if no unit's means differ by more than this part of its range.
SAME = 0.02


def fields(model, solutions, order):
    """B and A of the visible and of the hidden units at solutions: (B, A), (B, A)."""
    visible_field = model.visible_field(solutions.hidden_mean)
    hidden_field = model.hidden_field(solutions.visible_mean)
    if order == 1 or not has_second_order(model.visible, model.hidden):
        return (visible_field, 0.0), (hidden_field, 0.0)
    squares = negative_squares(model)
    visible_precision = solutions.hidden_variance @ squares
    hidden_precision = solutions.visible_variance @ squares.T
    visible_field += visible_precision * solutions.visible_mean
    hidden_field += hidden_precision * solutions.hidden_mean
    return (visible_field, visible_precision), (hidden_field, hidden_precision)


def free_energy(model, solutions, order, evidence=None):
    """F of each solution, ln Z ≈ −F; stationary there in means, variances, B and A.

    Parameters
    ----------
    model : Model
    solutions : Bunch
        As of `solve`.
    order : {1, 2}
    evidence : Evidence, default=None
        Under which they are solutions; then ln Z is that of the model with the evidence.

    Returns
    -------
    free_energy : ndarray of float64 of shape (n_rows,)
    """
    nothing = Evidence()
    layers = zip(
        (model.visible, model.hidden),
        (solutions.visible_mean, solutions.hidden_mean),
        (solutions.visible_variance, solutions.hidden_variance),
        fields(model, solutions, order),
        (evidence or nothing, nothing),
        strict=True,
    )
    total = np.zeros(len(solutions.visible_mean))
    for units, a, c, (B, A), outer in layers:
        local = units.log_partition(B + outer.field, A + outer.precision)
        if outer.known is not None:  # what is clamped has its own weight
            starts = np.cumsum(units.widths) - units.widths
            local = np.where(outer.known[:, starts], 0, local)
            B, A = (np.where(outer.known, 0, tilt) for tilt in (B, A))
        if has_wide_units(units):
            total += local.sum(axis=1, dtype=np.float64)
            local = 0.0
        total += (local - B * a + 0.5 * A * (a * a + c)).sum(axis=1, dtype=np.float64)
    interaction = model.visible_field(solutions.hidden_mean) * solutions.visible_mean
    if order == 2 and has_second_order(model.visible, model.hidden):
        precision = solutions.hidden_variance @ negative_squares(model)
        interaction += -0.5 * precision * solutions.visible_variance
    total += interaction.sum(axis=1, dtype=np.float64)
    return -(total if evidence is None else total + evidence.log_weight)


def distinct(model, solutions):
    """Which rows are different solutions, the best converged of each, by free energy.

    Parameters
    ----------
    model : Model
    solutions : Bunch
        With `free_energy`.

    Returns
    -------
    representatives : ndarray of int of shape (n_solutions,)
        Numbers of rows.
    assignment : ndarray of int of shape (n_rows,)
        Of each row, which solution it reached.
    """
    sides = (model.visible, solutions.visible_mean), (model.hidden, solutions.hidden_mean)
    means = [mean / _ranges(units) for units, mean in sides]
    means = np.hstack([*means, solutions.order[:, np.newaxis]])
    assignment = np.full(len(means), -1)
    representatives, left = [], np.argsort(solutions.change, kind="stable")
    while len(left):
        near = np.abs(means[left] - means[left[0]]).max(axis=1) <= SAME
        near[0] = True  # also where it is NaN
        assignment[left[near]] = len(representatives)
        representatives.append(left[0])
        left = left[~near]
    representatives = np.array(representatives, dtype=int)
    order = np.argsort(solutions.free_energy[representatives], kind="stable")
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return representatives[order], rank[assignment]


def _ranges(units):
    """Ends of the range of each number; without ends, six standard deviations given the others."""
    low, high = units.bounds
    tail = units.tail_precision
    if not np.isfinite(tail).any():
        return high - low
    return np.where(np.isfinite(tail), 6 / np.sqrt(tail), high - low)


def select(solutions, rows):
    """Some rows of solutions."""
    return Bunch(**{name: value[rows] for name, value in solutions.items()})


def total_log_partition(solutions):
    """ln Z ≈ ln Σ exp(−F) over distinct solutions, each of which is a part of the distribution.

    The paper takes the mean, which is too low by up to the logarithm of their number: 11 to
    15 nats for a model that learns MNIST, of which the sum leaves less than half.
    """
    # The converged ones, if there are any. Without bounds, means may grow beyond all bounds.
    chosen = solutions.converged if solutions.converged.any() else slice(None)
    free_energy = solutions.free_energy[chosen]
    free_energy = free_energy[np.isfinite(free_energy)]
    return float(logsumexp(-free_energy)) if len(free_energy) else np.inf
