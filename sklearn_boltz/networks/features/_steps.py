"""The scaling of steps that raise the objective of a network of features."""

import numpy as np
from scipy.linalg import eigh

# What is added to variances of features, in ratio to their mean.
RIDGE = 1e-3


class Scaling:
    """The inverse of an approximate second derivative: pair by pair that of independent columns.

    That of a coupling K_jl is S_j ⊗ C_l + C_j ⊗ S_l and the penalty, with second moments S of
    features and conditional variances C.
    """

    def __init__(self, places, second, spread, objective):
        self.places, self.own, self.dtype = places, objective.own, objective.penalty.dtype
        values, vectors, inverses = [], [], []
        for place in places:
            c, k = spread[place, place], place.stop - place.start
            c = c + np.eye(k) * (RIDGE * max(np.trace(c) / k, 1e-6))
            of_place = eigh(second[place, place] + 1e-4 * np.eye(k), c)
            values.append(np.maximum(of_place[0], 0))
            vectors.append(of_place[1].astype(self.dtype))
            inverses.append(np.linalg.inv(c).astype(self.dtype))
        self.values, self.vectors, self.inverses = np.concatenate(values), vectors, inverses
        self.renew(objective)

    def renew(self, objective):
        """Take the penalty of an objective."""
        squares = [vectors.T**2 for vectors in self.vectors]
        spread = self._on_both_sides(squares, np.where(self.own, 0, objective.penalty))
        self.divisor = (self.values[:, None] + self.values + spread).astype(self.dtype)

    def __call__(self, slope):
        """A step from derivatives, both as `Evaluation` has them."""
        coupling, step = 2 * slope[:-1], np.empty_like(slope)
        inner = self._on_both_sides([vectors.T for vectors in self.vectors], coupling)
        step[:-1] = self._on_both_sides(self.vectors, inner / self.divisor)
        step[:-1][self.own] = 0
        step[-1] = self._on_the_left(self.inverses, slope[-1][:, None])[:, 0]
        return step

    def _on_both_sides(self, blocks, matrix):
        """B M Bᵀ, with a block of B for each column; M is symmetric."""
        return self._on_the_left(blocks, self._on_the_left(blocks, matrix).T)

    def _on_the_left(self, blocks, matrix):
        found = np.empty((len(self.own), matrix.shape[1]), self.dtype)
        for place, block in zip(self.places, blocks, strict=True):
            np.matmul(block, matrix[place], out=found[place])
        return found
