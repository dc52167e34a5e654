"""Adaptive TAP by vector approximate message passing (Tramel et al., 2018, Algorithm 3).

Each unit is described twice: by its own distribution under a field B₁ and a precision A₁, and as
a part of one Gaussian with all couplings J, B₂ and A₂. Means and variances must agree. Unlike
TAP, it does not take the weights for independent; it costs O((n_visible + n_hidden)³) an
iteration.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.utils import Bunch

# Variances are kept above this: a unit that is certain has no Gaussian description.
LEAST_VARIANCE = 1e-12


def solve(model, V, iteration):
    """Follow starts to fixed points, one after the other, in float64.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where to start.
    iteration : Iteration
        Of which the order does not count.

    Returns
    -------
    solutions : Bunch
        As of `mean_field._tap.solve`, with `free_energy`. A start from which the
        Gaussian ceases to exist has not converged.
    """
    rows = [_solve_one(model, v, iteration) for v in V]
    return Bunch(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _solve_one(model, v, iteration):
    n_visible, n_units = len(model.visible), len(model.visible) + len(model.hidden)
    J = np.zeros((n_units, n_units))
    J[n_visible:, :n_visible] = model.weights
    J[:n_visible, n_visible:] = model.weights.T
    # The start: fields from the row and from the hidden means given it.
    B1, A1 = J[:, :n_visible] @ v, np.zeros(n_units)
    B1[:n_visible] = model.weights.T @ model.hidden.mean(B1[n_visible:])
    mean, variance = _moments(model, B1, A1)
    free_energy, change = np.nan, np.inf
    n_iter = 0
    while n_iter < iteration.max_iter and not change < iteration.tol:
        n_iter += 1
        A2, B2 = 1 / variance - A1, mean / variance - B1
        try:
            factor = cho_factor(np.diag(A2) - J, lower=True)
        except LinAlgError:
            change = np.inf
            break
        covariance = cho_solve(factor, np.eye(n_units))
        gaussian_mean, gaussian_variance = covariance @ B2, np.diag(covariance)
        free_energy = -_log_partition(model, (A1, B1), (A2, B2), gaussian_mean, factor)
        keep = iteration.damping
        A1 = keep * A1 + (1 - keep) * (1 / gaussian_variance - A2)
        B1 = keep * B1 + (1 - keep) * (gaussian_mean / gaussian_variance - B2)
        before = mean
        mean, variance = _moments(model, B1, A1)
        change = float(np.mean((mean - before) ** 2))
    return dict(
        visible_mean=mean[:n_visible], visible_variance=variance[:n_visible],
        hidden_mean=mean[n_visible:], hidden_variance=variance[n_visible:],
        converged=change < iteration.tol, n_iter=n_iter, change=change, free_energy=free_energy,
    )  # fmt: skip


def _parts(model, *arrays):
    n_visible = len(model.visible)
    return (
        (units, [a[rows] for a in arrays])
        for units, rows in [
            (model.visible, slice(n_visible)),
            (model.hidden, slice(n_visible, None)),
        ]
    )


def _moments(model, B, A):
    """Means and variances of all units by their own distributions."""
    layers = [units.moments(*parts) for units, parts in _parts(model, B, A)]
    mean, variance = (np.concatenate(both).astype(np.float64) for both in zip(*layers, strict=True))
    return mean, np.maximum(variance, LEAST_VARIANCE)


def _log_partition(model, own, gaussian, gaussian_mean, factor):
    """ln Z of the units by themselves, plus that of the Gaussian, less what both share."""
    (A1, B1), (A2, B2) = own, gaussian
    alone = sum(units.log_partition(*parts).sum() for units, parts in _parts(model, B1, A1))
    coupled = 0.5 * B2 @ gaussian_mean - np.log(np.diag(factor[0])).sum()
    shared = 0.5 * ((B1 + B2) ** 2 / (A1 + A2) - np.log(A1 + A2)).sum()
    return float(alone + coupled - shared)
