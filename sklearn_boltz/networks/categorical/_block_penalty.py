"""A penalty by blocks, for which the order of levels counts.

A coupling of two columns with q and r levels is a matrix J. In an ordered column, differences of
neighbouring levels are penalised, a prior by which these are alike. With the weights a (q - a) / 2,
a polynomial of degree k in the numbers of the levels costs k (k + 1) / 2 times its squares: a trend
is shrunk like any contrast of values without an order, and all else more, the finer it is.
"""

import numpy as np
from scipy.linalg import block_diag, eigh
from scipy.linalg.blas import daxpy

from sklearn_boltz.networks.categorical._kernel import measure_blocks
from sklearn_boltz.networks.model._gauge import block_entries, contrast_basis

# Entries of unit vectors that are 0.
ROUNDING = 1e-12


class BlockPenalty:
    """λ Σ_{i<j} ‖A_i J_ij A_j‖².

    ‖A_i f‖² = ½ Σ_a a (q_i - a) (f_a - f_{a-1})² for ordered columns, else ‖f‖².

    Parameters
    ----------
    n_values : ndarray of int of shape (n_columns,)
    starts : ndarray of int of shape (n_columns, n_columns)
        Where the block of each pair of columns begins among the couplings.
    ordered : ndarray of bool of shape (n_columns,)
    """

    def __init__(self, n_values, starts, ordered):
        self._blocks = n_values, starts, ordered.astype(np.int8)

    def add(self, coupling, strength, gradient):
        """The penalty, negative; its derivatives are added to a gradient."""
        if strength == 0 or not len(coupling):
            return 0.0
        scaled = self._measured(coupling) if self._blocks[2].any() else coupling
        daxpy(scaled, gradient, a=-2 * strength)
        return -strength * float(np.vdot(coupling, scaled))

    def _measured(self, coupling):
        """A² J A² of all blocks."""
        measured = np.empty_like(coupling)
        measure_blocks(coupling, *self._blocks, measured)
        return measured

    def curvature(self):
        """Half the second derivatives at λ = 1."""
        n_values, _, ordered = self._blocks
        if not ordered.any():
            return 1.0
        own = np.concatenate([metric.diagonal() for metric in metrics(n_values, ordered)])
        a, b = block_entries(n_values)
        return own[a] * own[b]


def metrics(n_values, ordered):
    """A² of each column, I if its values have no order."""
    found = [np.eye(m) for m in n_values]
    for j in np.flatnonzero(ordered):
        steps, a = np.diff(found[j], axis=0), np.arange(1, n_values[j])
        found[j] = (steps.T * (a * a[::-1] / 2)) @ steps
    return found


def trend_basis(n_values, trends):
    """Orthonormal contrasts, (Q, Σ (q_i - 1)); polynomials of a column with a trend, the first."""
    if not trends.any():
        return contrast_basis(n_values)
    blocks, metric = [contrast_basis([m]) for m in n_values], metrics(n_values, trends)
    for j in np.flatnonzero(trends):
        blocks[j] = eigh(metric[j])[1][:, 1:]
    basis = block_diag(*blocks)
    basis[np.abs(basis) < ROUNDING] = 0  # a trend says nothing of the level in the middle
    return basis
