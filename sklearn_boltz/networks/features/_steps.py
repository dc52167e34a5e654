"""The scaling of steps that raise the objective of a network of features."""

import numpy as np
from scipy.linalg import eigh

from sklearn_boltz.networks.features._block_diagonal import BlockDiagonal

# What is added to variances of features, in ratio to their mean.
RIDGE = 1e-3


class Scaling:
    """The inverse of an approximate second derivative: pair by pair that of independent columns.

    That of a coupling K_jl is S_j ⊗ C_l + C_j ⊗ S_l and the penalty, with second moments S of
    features and conditional variances C. The penalty is told by its diagonal in coordinates that
    make S and C diagonal; with a `stiffness` of the features, whose products are the penalty,
    S + diag(stiffness) and C. So rough functions that are penalised ten thousand times as much as
    smooth ones do not mix with them.
    """

    def __init__(self, places, second, spread, objective, stiffness):
        self.own, self.dtype = objective.own, objective.penalty.dtype
        values, vectors, inverses = [], [], []
        for place in places:
            c, k = spread[place, place], place.stop - place.start
            c = c + np.eye(k) * (RIDGE * max(np.trace(c) / k, 1e-6))
            added = 1e-4 * np.eye(k) + np.diag(stiffness[place])
            of_both, basis = eigh(second[place, place] + added, c)
            values.append(np.maximum(of_both - stiffness[place] @ basis**2, 0))
            vectors.append(basis)
            inverses.append(np.linalg.inv(c))
        self.values, self.vectors = np.concatenate(values), BlockDiagonal.of(vectors, self.dtype)
        self.inverses = BlockDiagonal.of(inverses, self.dtype)
        self.transposed = self.vectors.map(np.copy)
        self.squares = self.vectors.map(np.square)
        self.renew(objective)

    def renew(self, objective):
        """Take the penalty of an objective."""
        spread = self.squares.on_both_sides(np.where(self.own, 0, objective.penalty))
        self.factor = (2 / (self.values[:, None] + self.values + spread)).astype(self.dtype)

    def __call__(self, slope):
        """A step from derivatives, both as `Evaluation` has them."""
        step, inner = np.empty_like(slope), self.transposed.on_both_sides(slope[:-1])
        inner *= self.factor
        step[:-1] = self.vectors.on_both_sides(inner)
        step[-1] = self.inverses.on_the_left(slope[-1][:, None])[:, 0]
        return step
