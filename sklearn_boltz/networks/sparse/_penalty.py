"""Penalties that choose pairs of columns.

`Penalty` has those with names, `UserPenalty` those that a user has written. A form makes one from
groups, their weights, and a strength α or one for each group.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.sparse._descent import descend

# That of pairs where only intercepts are wanted: finite, so that 0 times it is 0.
ENORMOUS = 1e300
# An elastic net with a smaller share of L1 has the first penalty of this one.
LEAST_RATIO = 1e-3
# The same of users' penalties, whose squares are finite, too.
LARGE = 1e30
# A norm near 0.
SMALL = 1e-6
# Sweeps of coordinate descent at most; after the first ones, after each few of which there is an
# extrapolation.
MAX_SWEEPS, FIRST_SWEEPS, MEMORY = 1000, 10, 5


def group_norms(groups, theta, n_groups):
    """‖θ_g‖ of each group; `groups` has that of each parameter."""
    return np.sqrt(np.bincount(groups, theta * theta, n_groups))


def extrapolate(points, slopes, theta, slope, cost):
    """Go where a sequence of points leads, if the quadratic function and its cost are less there.

    Anderson's acceleration of coordinate descent (Bertrand and Massias 2021). The slopes are those
    of `points[1:]`, affine in them; `theta` and `slope` are the last ones, and overwritten.
    """
    steps = np.diff(points, axis=0)
    products = steps @ steps.T
    products[np.diag_indices_from(products)] += 1e-10 * np.trace(products)
    shares = np.linalg.solve(products, np.ones(len(steps)))
    shares /= shares.sum()
    new, new_slope = shares @ points[1:], shares @ slopes
    gain = (new_slope + slope) @ (new - theta) / 2 + cost(new) - cost(theta)
    if gain < 0:
        theta[:], slope[:] = new, new_slope


class Penalty(NamedTuple):
    """Σ_g [ l1_g ‖θ_g‖ + ½ l2_g ‖θ_g‖² ] over groups g of parameters.

    With one parameter a group and l2 = 0 it is the L1 penalty, with l2 > 0 the elastic net; with
    larger groups that of the group lasso (Yuan and Lin 2006).

    Attributes
    ----------
    groups : ndarray of int of shape (n_parameters,)
        The group of each parameter, in increasing order.
    l1, l2 : ndarray of shape (n_groups,)
        Both 0 for groups that are free, as those of intercepts; l1 is infinite where the group has
        to be 0.
    l1_ratio : float
        ρ.
    """

    groups: np.ndarray
    l1: np.ndarray
    l2: np.ndarray
    l1_ratio: float = 1.0

    @classmethod
    def of(cls, groups, weights, alpha, l1_ratio):
        """α [ρ w_g ‖θ_g‖ + (1 - ρ)/2 w_g² ‖θ_g‖²], where infinite w_g are left out."""
        kept = np.isfinite(weights)
        w = np.where(kept, weights, 0.0)
        alpha = np.minimum(alpha, ENORMOUS / max(w.max(initial=0), 1) ** 2)
        l1 = np.where(kept, l1_ratio * alpha * w, np.inf)
        return cls(groups, l1, (1 - l1_ratio) * alpha * w**2, l1_ratio)

    def alpha_max(self, slopes):
        """The least α that keeps groups at 0 where the loss has these slopes, per weight."""
        return slopes / max(self.l1_ratio, LEAST_RATIO)

    def allowed(self, theta):
        """θ with 0 for the groups that have to be 0."""
        return np.where(np.isinf(self.l1)[self.groups], 0.0, theta)

    def norms(self, theta):
        """‖θ_g‖ of each group."""
        return group_norms(self.groups, theta, len(self.l1))

    def costs(self, theta):
        """The penalty of each group, of shape (n_groups,)."""
        norms = self.norms(theta)
        return np.where(norms > 0, self.l1, 0.0) * norms + self.l2 / 2 * norms**2

    def violation(self, theta, gradient):
        """How far -∇f is from the subdifferential of the penalty, for each group.

        It is 0 where f plus the penalty is least.
        """
        norms = self.norms(theta)
        kept = norms > 0
        unit = np.divide(np.where(kept, self.l1, 0.0), norms, out=np.zeros_like(norms), where=kept)
        off = self.norms(gradient + (unit + self.l2)[self.groups] * theta)
        return np.where(kept, off, np.maximum(off - self.l1, 0.0))

    def descend(self, expansion, theta, slope, tol):
        """Lower a quadratic function and the penalty; see `_descent.descend`."""
        _, groups, starts, *matrix, curvature = expansion
        l1, l2, room = self.l1[groups], self.l2[groups], np.empty(len(theta))

        def sweep(most):
            return descend(*matrix, starts, l1, l2, curvature, theta, slope, room, tol, most)

        def cost(theta):
            squares = np.add.reduceat(theta**2, starts[:-1])
            return np.where(squares > 0, l1, 0.0) @ np.sqrt(squares) + l2 @ squares / 2

        n_sweeps, moved = FIRST_SWEEPS, sweep(FIRST_SWEEPS)
        while moved > tol and n_sweeps < MAX_SWEEPS:
            points, slopes = [theta.copy()], []
            for _ in range(MEMORY):
                moved = sweep(1)
                points.append(theta.copy())
                slopes.append(slope.copy())
            n_sweeps += MEMORY
            if moved > tol:
                extrapolate(np.array(points), np.array(slopes), theta, slope, cost)


class UserPenalty(NamedTuple):
    """Σ_g strength_g value(scale ‖θ_g‖), as `Penalty` is, by functions that a user has written.

    With the scale, a group of one parameter and the block of two binary columns have the same size.

    Attributes
    ----------
    groups : ndarray of int of shape (n_parameters,)
    strength : ndarray of shape (n_groups,)
        0 for groups that are free, infinite for those that have to be 0.
    penalty : object
        With `value` and `prox`.
    scale : float
    """

    groups: np.ndarray
    strength: np.ndarray
    penalty: object
    scale: float

    @classmethod
    def of(cls, groups, weights, alpha, penalty, scale):
        """α Σ_g w_g value(scale ‖θ_g‖) / scale."""
        kept = np.isfinite(weights)
        strength = np.minimum(alpha, LARGE) * np.where(kept, weights, 0.0)
        return cls(groups, np.where(kept, strength / scale, np.inf), penalty, scale)

    def alpha_max(self, slopes):
        """The least α that keeps groups at 0 where the loss has these slopes, per weight."""
        return getattr(self.penalty, "alpha_max", np.asarray)(slopes)

    @property
    def l1(self):
        """About the slope of each group's penalty at 0."""
        return self.strength * float(self.penalty.value(np.array([self.scale * SMALL]))[0]) / SMALL

    def allowed(self, theta):
        """θ with 0 for the groups that have to be 0."""
        return np.where(np.isinf(self.strength)[self.groups], 0.0, theta)

    def norms(self, theta):
        """‖θ_g‖ of each group."""
        return group_norms(self.groups, theta, len(self.strength))

    def costs(self, theta):
        """The penalty of each group, of shape (n_groups,)."""
        costs, kept = np.zeros(len(self.strength)), self._penalised()
        costs[kept] = self.strength[kept] * self.penalty.value(self.scale * self.norms(theta)[kept])
        return costs

    def _penalised(self):
        return (self.strength > 0) & np.isfinite(self.strength)

    def prox(self, z, curvature):
        """argmin_θ Σ_g [ ½ c_g ‖θ_g - z_g‖² ] + penalty, for a curvature c_g of each group."""
        norms, kept = self.norms(z), self._penalised()
        new = np.where(np.isinf(self.strength), 0.0, norms)
        new[kept] = self._prox(norms[kept], (self.strength / curvature)[kept])
        ratio = np.divide(new, norms, out=np.zeros_like(norms), where=norms > 0)
        return ratio[self.groups] * z

    def _prox(self, norms, step):
        return self.penalty.prox(self.scale * norms, self.scale**2 * step) / self.scale

    def violation(self, theta, gradient):
        """How far θ is from the minimum of itself after a step of the gradient, for each group."""
        return self.norms(theta - self.prox(theta - gradient, np.ones(len(self.strength))))

    def descend(self, expansion, theta, slope, tol):
        """Lower a quadratic function and the penalty, in place, block by block."""
        _, groups, starts, values, columns, rows, curvature = expansion
        matrix = csr_array((values, columns, rows), (len(theta), len(theta)))
        blocks = [
            (slice(a, b), matrix[a:b], group, bound)
            for a, b, group, bound in zip(starts[:-1], starts[1:], groups, curvature, strict=True)
        ]
        for _ in range(MAX_SWEEPS):
            most = 0.0
            for block, lines, group, bound in blocks:
                z = theta[block] - slope[block] / bound
                norm, strength = np.sqrt(z @ z), self.strength[group] / bound
                new = norm
                if strength > 0 and norm > 0:
                    new = self._prox(np.array([norm]), np.array([strength]))[0]
                step = (z * (new / norm) if norm > 0 else z) - theta[block]
                size = np.abs(step).max(initial=0)
                if size > 0:
                    theta[block] += step
                    slope += step @ lines
                    most = max(most, bound * size)
            if most <= tol:
                return
