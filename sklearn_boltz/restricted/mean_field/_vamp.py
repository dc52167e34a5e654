"""Adaptive TAP by vector approximate message passing (Tramel et al., 2018, Algorithm 3).

Each unit is described twice: by its own distribution under a field B₁ and a precision A₁, and as
a part of one Gaussian with all couplings J, B₂ and A₂. Means and variances must agree. Unlike
TAP, it does not take the weights for independent; it costs O((n_visible + n_hidden)³) an
iteration.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from sklearn.utils import Bunch

from sklearn_boltz.restricted.mean_field._tap import MOST_TAKEN

# Variances are kept above this: a unit that is certain has no Gaussian description.
LEAST_VARIANCE = 1e-12
# By how much a step may be shortened.
HALVINGS = 0.5 ** np.arange(30)


def solve(model, V, iteration):
    """Follow starts to fixed points, one after the other, in float64.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where to start.
    iteration : TAP
        Its order is ignored.

    Returns
    -------
    solutions : Bunch
        As of `mean_field._tap.solve`, with `free_energy`, which is NaN where no Gaussian exists at
        the start. Such a start has not converged.
    points : list of FixedPoint
        Where the iterations ended.
    """
    ends = [iterate(model, v, iteration) for v in V]
    rows = [_solution(model, *end, iteration.tol) for end in ends]
    solutions = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Bunch(**solutions), [point for point, *_ in ends]


def mean_covariance(model, points):
    """Covariance of hidden and visible units, the mean over points: (n_hidden, n_visible).

    The paper has TAP's W ∘ var(h) var(v)ᵀ here, which is not the derivative of this free energy by
    the weights. It is used where no Gaussian exists.
    """
    n_visible, total = len(model.visible), 0.0
    for point in points:
        if point.factor is None:
            total = total + model.weights * np.outer(
                point.variance[n_visible:], point.variance[:n_visible]
            )
        else:
            total = total + point.covariance()[n_visible:, :n_visible]
    return total / len(points)


def tilts(model, points):
    """B and A of the visible and of the hidden units at points: (B, A), (B, A)."""
    A, B = (np.array(values) for values in zip(*(point.own for point in points), strict=True))
    n_visible = len(model.visible)
    return (B[:, :n_visible], A[:, :n_visible]), (B[:, n_visible:], A[:, n_visible:])


class FixedPoint(NamedTuple):
    """Where an iteration is: the moments of the units, and both descriptions of them.

    Attributes
    ----------
    mean, variance : ndarray of shape (n_units,)
    own, gaussian : tuple of ndarray
        Precisions and fields, A₁ and B₁, A₂ and B₂.
    factor : ndarray of shape (n_units, n_units) or None
        Cholesky factor of the matrix of precisions of the Gaussian, diag(A₂) − J. None if it is
        not positive definite: then the Gaussian does not exist.
    """

    mean: np.ndarray
    variance: np.ndarray
    own: tuple
    gaussian: tuple
    factor: np.ndarray | None

    @classmethod
    def of(cls, model, J, A1, B1):
        """The point at precisions and fields."""
        mean, variance = _moments(model, B1, A1)
        A2, B2 = 1 / variance - A1, mean / variance - B1
        factor, failed = dpotrf(np.diag(A2) - J, lower=1)
        return cls(mean, variance, (A1, B1), (A2, B2), None if failed else factor)

    def covariance(self):
        """Covariance of the units by the Gaussian, (n_units, n_units), its lower triangle.

        With it, the derivative of the free energy by the weights is -(⟨h⟩⟨v⟩ᵀ + cov(h, v)) at a
        solution.
        """
        return dpotri(self.factor, lower=1)[0]


def iterate(model, v, iteration):
    """From a row, with `iteration` as in `solve`; -> the last `FixedPoint`, n_iter, change."""
    n_visible, n_units = len(model.visible), len(model.visible) + len(model.hidden)
    J = np.zeros((n_units, n_units))
    J[n_visible:, :n_visible] = model.weights
    J[:n_visible, n_visible:] = model.weights.T
    point, n_iter, change = _start(model, J, v), 0, np.inf
    while point.factor is not None and n_iter < iteration.max_iter and not change < iteration.tol:
        n_iter += 1
        (A1, B1), (A2, B2) = point.own, point.gaussian
        variance, mean = np.diag(point.covariance()), dpotrs(point.factor, B2, lower=1)[0]
        precision, field = 1 / variance - A2, mean / variance - B2
        # Without damping: a damped step moves no mean of a unit whose field is large.
        undamped, _ = _moments(model, field, precision)
        change = float(np.mean((undamped - point.mean) ** 2))
        # A Gaussian exists after a step that is short enough.
        for step in (1 - iteration.damping) * HALVINGS:
            new = FixedPoint.of(model, J, A1 + step * (precision - A1), B1 + step * (field - B1))
            if new.factor is not None:
                break
        else:
            change = np.inf
            break
        point = new
    return point, n_iter, change


def _solution(model, point, n_iter, change, tol):
    n_visible = len(model.visible)
    return dict(
        visible_mean=point.mean[:n_visible], visible_variance=point.variance[:n_visible],
        hidden_mean=point.mean[n_visible:], hidden_variance=point.variance[n_visible:],
        converged=change < tol, n_iter=n_iter, change=change, order=2,
        free_energy=_free_energy(model, point),
    )  # fmt: skip


def _start(model, J, v):
    """The point to begin with, which the paper leaves open.

    The fields are those of TAP, from a row and the hidden means given it. With precisions
    A₁ of 0, and the weights of a trained model, there seldom is a Gaussian. With lower ones there
    is, except for unbounded units. They are four times those of TAP at first: then the Gaussian is
    seldom almost singular, and the first iterations do not overshoot.
    """
    n_visible = len(v)
    B = J[:, :n_visible] @ v
    B[:n_visible] = J[:n_visible, n_visible:] @ model.hidden.mean(B[n_visible:])
    mean, variance = _moments(model, B, np.zeros(len(B)))
    least = [-MOST_TAKEN * units.tail_precision for units in (model.visible, model.hidden)]
    least, squares = np.concatenate(least), (J**2) @ variance
    for times in 4 / HALVINGS:
        A = np.maximum(-times * squares, least)
        point = FixedPoint.of(model, J, A, J @ mean + A * mean)
        if point.factor is not None:
            break
    return point


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


def _free_energy(model, point):
    """-ln Z: of the units by themselves and of the Gaussian, less what both share; or NaN."""
    if point.factor is None:
        return np.nan
    (A1, B1), (_, B2) = point.own, point.gaussian
    alone = sum(units.log_partition(*parts).sum() for units, parts in _parts(model, B1, A1))
    mean, _ = dpotrs(point.factor, B2, lower=1)
    coupled = 0.5 * B2 @ mean - np.log(np.diag(point.factor)).sum()
    shared = 0.5 * (point.mean**2 / point.variance + np.log(point.variance)).sum()
    return float(shared - alone - coupled)
