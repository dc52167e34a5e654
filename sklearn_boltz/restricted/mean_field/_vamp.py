"""Adaptive TAP by vector approximate message passing (Tramel et al., 2018, Algorithm 3).

Each unit is described twice: by its own distribution under a field B₁ and a precision A₁, and as
a part of one Gaussian with all couplings J, B₂ and A₂. Means and variances must agree. Unlike
TAP, it does not take the weights for independent; it costs O((n_visible + n_hidden)³) an
iteration.
"""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from sklearn.utils import Bunch

from sklearn_boltz.restricted.mean_field._tap import MOST_TAKEN

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
        As of `mean_field._tap.solve`, with `free_energy`, which is NaN where the Gaussian does not
        exist in the end. Such a start has not converged.
    """
    rows = [_solve_one(model, v, iteration) for v in V]
    return Bunch(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _solve_one(model, v, iteration):
    n_visible, n_units = len(model.visible), len(model.visible) + len(model.hidden)
    J = np.zeros((n_units, n_units))
    J[n_visible:, :n_visible] = model.weights
    J[:n_visible, n_visible:] = model.weights.T
    A1, B1 = _start(model, J, v)
    mean, variance = _moments(model, B1, A1)
    n_iter, change = 0, np.inf
    while n_iter < iteration.max_iter and not change < iteration.tol:
        n_iter += 1
        A2, B2 = 1 / variance - A1, mean / variance - B1
        try:
            gaussian_mean, gaussian_variance = _gaussian_moments(np.diag(A2) - J, B2)
        except LinAlgError:
            break
        precision, field = 1 / gaussian_variance - A2, gaussian_mean / gaussian_variance - B2
        if not np.isfinite(precision + field).all():
            break
        # Without damping: a damped step moves no mean of a unit whose field is large.
        undamped, _ = _moments(model, field, precision)
        change = float(np.mean((undamped - mean) ** 2))
        keep = iteration.damping
        A1 = keep * A1 + (1 - keep) * precision
        B1 = keep * B1 + (1 - keep) * field
        mean, variance = _moments(model, B1, A1)
    free_energy = _free_energy(model, J, (A1, B1), mean, variance)
    if np.isnan(free_energy):
        change = np.inf
    return dict(
        visible_mean=mean[:n_visible], visible_variance=variance[:n_visible],
        hidden_mean=mean[n_visible:], hidden_variance=variance[n_visible:],
        converged=change < iteration.tol, n_iter=n_iter, change=change, free_energy=free_energy,
    )  # fmt: skip


def _start(model, J, v):
    """Precisions and fields to begin with: those of TAP, from a row and the hidden means given it.

    The algorithm leaves them open. Precisions of 0 are too large by the second order of TAP: with
    the weights of a trained model, the Gaussian then seldom exists.
    """
    n_visible = len(v)
    B = J[:, :n_visible] @ v
    B[:n_visible] = model.weights.T @ model.hidden.mean(B[n_visible:])
    mean, variance = _moments(model, B, np.zeros(len(B)))
    least = [-MOST_TAKEN * units.tail_precision for units in (model.visible, model.hidden)]
    A = np.maximum(-(J**2) @ variance, np.concatenate(least))
    return A, J @ mean + A * mean


def _gaussian_moments(precision, field):
    """Means and variances of a Gaussian with a matrix of precisions.

    On the way to a fixed point it need not exist: as in Algorithm 3, the inverse will do.
    """
    factor, failed = dpotrf(precision, lower=1)
    if not failed:  # this way takes less than half of the time
        covariance, _ = dpotri(factor, lower=1)
        return dpotrs(factor, field, lower=1)[0], np.diag(covariance)
    covariance = np.linalg.inv(precision)
    return covariance @ field, np.diag(covariance)


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


def _free_energy(model, J, own, mean, variance):
    """-ln Z: of the units by themselves and of the Gaussian, less what both share; or NaN.

    NaN stands for a Gaussian that does not exist.
    """
    A1, B1 = own
    A2, B2 = 1 / variance - A1, mean / variance - B1
    factor, failed = dpotrf(np.diag(A2) - J, lower=1)
    if failed:
        return np.nan
    alone = sum(units.log_partition(*parts).sum() for units, parts in _parts(model, B1, A1))
    coupled = 0.5 * B2 @ dpotrs(factor, B2, lower=1)[0] - np.log(np.diag(factor)).sum()
    shared = 0.5 * (mean**2 / variance + np.log(variance)).sum()
    return float(shared - alone - coupled)
