"""A penalty by blocks: each pair of columns has a weight, and the order of levels counts.

A coupling of two columns with q and r levels is a matrix J. Its part along u vᵀ, the centred
numbers of the levels, is a linear trend of both. A penalty that is weaker on trends is a prior by
which neighbouring levels are alike.

The penalty of a pair is a normal prior of the entries of its J, with a variance of its own. Most
pairs hardly interact and some do strongly, and no variance is right for both. A block of several
entries tells its own (MacKay, Neural Computation 4(3), 415–447, 1992, on Bayesian interpolation).
"""

import numpy as np
from scipy.linalg import block_diag, eigh
from scipy.linalg.blas import daxpy
from scipy.sparse import csr_array

from sklearn_boltz.networks.model._gauge import column_of_state, contrast_basis, state_offsets

# The penalty of a contrast of levels that is no trend, for each ordered column of two: the product
# is 24. And by how much less a trend is penalised. From a survey of 27 items with six levels, of
# which 20 % of the cells were hidden.
CONTRAST, TREND = 24**0.5, 11.0
# Entries of a block that the common variance counts as. From .06 to .6 the likelihood
# of held-out rows of nine tables was the same.
PRIOR = 0.5


class BlockPenalty:
    """λ Σ_{i<j} w_ij ‖A_i J_ij A_j‖².

    A_i² = CONTRAST (I - (1 - 1/TREND) u uᵀ) for ordered columns, u of norm 1, else I.

    Parameters
    ----------
    n_values : ndarray of int of shape (n_columns,)
    starts : ndarray of int of shape (n_columns, n_columns)
        Where the block of each two columns begins among the couplings.
    ordered : ndarray of bool of shape (n_columns,) or None
        Columns of two values have no order; None means that none has.
    weights : ndarray of shape (n_columns, n_columns)
        w.
    """

    def __init__(self, n_values, starts, ordered, weights):
        i, j = np.triu_indices(len(n_values), 1)
        self._weights = np.repeat(weights[i, j], n_values[i] * n_values[j])
        self._metric = None
        if ordered is not None and ordered.any():
            self._metric = csr_array(block_diag(*metrics(n_values, ordered)))
            column, first = column_of_state(n_values), state_offsets(n_values)[:-1]
            r, s = np.nonzero(column[:, None] < column)
            a, b = r - first[column[r]], s - first[column[s]]
            # Where the entries of the blocks are in a matrix of all states.
            self._places = np.empty(len(r), dtype=np.intp)
            self._places[starts[column[r], column[s]] + a * n_values[column[s]] + b] = (
                r * len(column) + s
            )

    def add(self, coupling, strength, gradient):
        """The penalty, negative; its derivatives are added to a gradient."""
        if strength == 0 or not len(coupling):
            return 0.0
        scaled = self._weights * (coupling if self._metric is None else self._measured(coupling))
        daxpy(scaled, gradient, a=-2 * strength)
        return -strength * float(np.vdot(coupling, scaled))

    def _measured(self, coupling):
        """A² J A² of all blocks."""
        matrix = np.zeros(self._metric.shape)
        matrix.ravel()[self._places] = coupling
        left = self._metric @ matrix
        return (self._metric @ left.T).T.ravel()[self._places]

    def curvature(self):
        """Half the second derivatives at λ = 1."""
        if self._metric is None:
            return self._weights
        own = self._metric.diagonal()
        return self._weights * np.outer(own, own).ravel()[self._places]


def metrics(n_values, ordered):
    """A² of each column, I if its values have no order."""
    found = [np.eye(m) for m in n_values]
    for j in [] if ordered is None else np.flatnonzero(ordered & (n_values > 2)):
        trend = np.arange(n_values[j]) - (n_values[j] - 1) / 2
        found[j] -= (1 - 1 / TREND) * np.outer(trend, trend) / (trend @ trend)
        found[j] *= CONTRAST
    return found


def next_weights(problem, theta):
    """The weight of the penalty of each pair, by couplings at other weights.

    Of the contrasts K of a pair, γ = Σ h/(h + λ w) are determined by the data, where h is the
    information on each in independent columns. So their variance 1/(λ w) is ‖K‖²/γ, and with a
    prior of PRIOR observations, for which it is 1/λ,

        w = (γ + PRIOR) / (λ ‖K‖² + PRIOR).

    Parameters
    ----------
    problem : CategoricalPseudoLikelihood
        With a penalty.
    theta : ndarray
        Zero-sum.

    Returns
    -------
    weights : ndarray of shape (n_columns, n_columns)
        Above the diagonal.
    """
    strength, costs = problem.penalty, metrics(problem.n_values, problem.ordered)
    known = (problem.cells.codes >= 0).T @ problem.cells.weights
    spreads = []  # K = A_i J A_j, for which the covariance of the states is A⁻¹ C A⁻¹
    counts = np.split(problem.counts(), problem.offsets[1:-1])
    for of_states, n, own in zip(counts, known, costs, strict=True):
        rates = of_states / max(n, 1e-300)
        covariance = np.diag(rates) - np.outer(rates, rates)
        spreads.append(eigh(covariance, own, eigvals_only=True)[1:].clip(0))
    weights = np.zeros_like(problem.pair_weights)
    for i, j, place in problem.blocks():
        block = theta[place].reshape(len(costs[i]), -1)
        square = np.vdot(block, costs[i] @ block @ costs[j])
        both = known[i] * known[j] / problem.total
        information = both * np.outer(spreads[i], spreads[j])
        shrunk = information + strength * problem.pair_weights[i, j]
        determined = (information / shrunk).sum()
        weights[i, j] = (determined + PRIOR) / (strength * square + PRIOR)
    return weights


def ordered_basis(n_values, ordered):
    """Contrasts in which the norm of a block is that of `BlockPenalty`.

    The block K with J = B_i K B_jᵀ has the norm of A_i J A_j. Columns of B_i are orthogonal, the
    first one of an ordered column is the trend.

    Parameters
    ----------
    n_values : ndarray of int of shape (n_columns,)
    ordered : ndarray of bool of shape (n_columns,)
        Only columns of more than two values.

    Returns
    -------
    basis : ndarray of shape (Q, Σ (q_i - 1))
    squares : ndarray of shape (Σ (q_i - 1),)
        The squared norms of its columns, 1 where there is no order.
    """
    column = np.repeat(np.arange(len(n_values)), n_values - 1)
    squares = np.where(ordered[column], 1 / CONTRAST, 1.0)
    squares[(np.diff(column, prepend=-1) > 0) & ordered[column]] *= TREND
    if not ordered.any():
        return contrast_basis(n_values), squares
    blocks = [
        _trends(m) if is_ordered else contrast_basis([m])
        for m, is_ordered in zip(n_values, ordered, strict=True)
    ]
    return block_diag(*blocks) * np.sqrt(squares), squares


def _trends(m):
    """Orthonormal contrasts of m levels, the first of them the trend."""
    levels = np.linspace(-1, 1, m)
    return np.linalg.qr(np.vander(levels, increasing=True))[0][:, 1:]
