"""Penalties that choose pairs of columns."""

from typing import NamedTuple

import numpy as np

# That of pairs where only intercepts are wanted: finite, so that 0 times it is 0.
ENORMOUS = 1e300


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
    """

    groups: np.ndarray
    l1: np.ndarray
    l2: np.ndarray

    @classmethod
    def of(cls, groups, weights, alpha, l1_ratio):
        """α [ρ w_g ‖θ_g‖ + (1 - ρ)/2 w_g² ‖θ_g‖²], with ρ = `l1_ratio` and infinite w_g left out.

        `alpha` is a number, or one for each group.
        """
        kept = np.isfinite(weights)
        w, alpha = np.where(kept, weights, 0.0), np.minimum(alpha, ENORMOUS)
        l1 = np.where(kept, l1_ratio * alpha * w, np.inf)
        return cls(groups, l1, (1 - l1_ratio) * alpha * w**2)

    def allowed(self, theta):
        """θ with 0 for the groups that have to be 0."""
        return np.where(np.isinf(self.l1)[self.groups], 0.0, theta)

    def norms(self, theta):
        """‖θ_g‖ of each group."""
        return np.sqrt(np.bincount(self.groups, theta * theta, len(self.l1)))

    def costs(self, theta):
        """The penalty of each group, of shape (n_groups,)."""
        norms = self.norms(theta)
        return np.where(norms > 0, self.l1, 0.0) * norms + self.l2 / 2 * norms**2

    def prox(self, z, curvature):
        """argmin_θ Σ_g [ ½ c_g ‖θ_g - z_g‖² ] + penalty, for a curvature c_g of each group."""
        norms = self.norms(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(norms * curvature > self.l1, curvature - self.l1 / norms, 0.0)
        return (kept / (curvature + self.l2))[self.groups] * z

    def violation(self, theta, gradient):
        """How far -∇f is from the subdifferential of the penalty, for each group.

        It is 0 where f plus the penalty is least.
        """
        norms = self.norms(theta)
        kept = norms > 0
        unit = np.divide(np.where(kept, self.l1, 0.0), norms, out=np.zeros_like(norms), where=kept)
        off = self.norms(gradient + (unit + self.l2)[self.groups] * theta)
        return np.where(kept, off, np.maximum(off - self.l1, 0.0))
