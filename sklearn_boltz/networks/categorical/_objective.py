"""The log pseudo-likelihood of a network of categorical columns, with its derivatives.

A Potts model: P(x) ∝ exp(Σ_i h_i(x_i) + Σ_{i<j} J_ij(x_i, x_j)), x_i in {0, ..., q_i - 1}. The
parameters are one vector θ: the h_i(a), Q = Σ q_i of them, then the blocks J_ij(a, b), i < j, row
by row. A missing cell has no term, and adds nothing to the fields of the others, in the zero-sum
gauge the mean of what its states would add. All points are in this gauge: solvers then meet no
directions in which only the penalty changes, which would take them three times as long.
"""

from itertools import combinations

import numpy as np
from scipy.linalg.blas import daxpy

from sklearn_boltz.networks.categorical._cells import Cells, state_counts
from sklearn_boltz.networks.categorical._kernel import center_blocks
from sklearn_boltz.networks.model._gauge import (
    block_entries,
    column_of_state,
    state_slices,
    to_zero_sum,
)
from sklearn_boltz.networks.model._potts_model import PottsModel, one_hot
from sklearn_boltz.networks.training._objective import (
    Objective,
    Point,
    PseudoLikelihood,
)

# The penalty per row and squared entry in ratio to α: of binary columns it is then ½ α m².
BITS = 8


class CategoricalPseudoLikelihood(Objective):
    """Σ_n w_n Σ_i ln p(x_ni | others) - λ_J Σ_{i<j} Σ_ab J_ij(a, b)².

    Parameters
    ----------
    codes : ndarray of int of shape (n, n_columns)
        Distinct rows: states 0 to q_i - 1, or -1 for a missing cell.
    n_values : ndarray of int of shape (n_columns,)
        The number of states q_i of each column.
    weights : ndarray of shape (n,)
        How often each row counts.
    coupling_penalty : float, default=0.0
        λ_J.
    trends : ndarray of bool of shape (n_columns,), default=None
        Columns of which `Contrasts` has couplings of the trend alone; None means that none is.

    Attributes
    ----------
    total : float
        Σ_n w_n.
    n_parameters : int
    penalty : float
        λ_J.
    """

    name = PseudoLikelihood.name
    advice = "Merge or leave out values that hardly occur. "
    information = None  # of full rank in `Contrasts`

    def __init__(self, codes, n_values, weights, *, coupling_penalty=0.0, trends=None):
        self.cells = Cells(codes, n_values, weights)
        self.penalty = min(coupling_penalty, 1e300)
        self.n_values, self.offsets = self.cells.n_values, self.cells.offsets
        self.n_states, self.total = self.cells.n_states, float(self.cells.weights.sum())
        self.starts, self.n_parameters = block_starts(self.n_values)
        self.states, self._spare = state_slices(self.n_values), []
        self.trends = (False if trends is None else trends) & (self.n_values > 2)

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row."""
        self.penalty = min(alpha * self.total / BITS, 1e300)

    def of_rows(self, rows, counts):
        """The objective of other rows, complete ones."""
        return CategoricalPseudoLikelihood(
            rows.astype(np.int16), self.n_values, counts, coupling_penalty=self.penalty,
            trends=self.trends,
        )  # fmt: skip

    def evaluate(self, theta):
        """The objective and its gradient at θ."""
        q = self.n_states
        gradient = self._spare.pop() if self._spare else np.empty(self.n_parameters)
        gradient.fill(0)
        # Each coupling gets a term from two groups at most, and 0 + x + y = 0 + y + x.
        groups, starts = self.cells.groups, self.starts
        total = sum(self.cells.evaluate(group, theta, starts, gradient) for group in groups)
        if self.penalty and len(theta) > q:
            daxpy(theta[q:], gradient[q:], a=-2 * self.penalty)
            total -= self.penalty * np.vdot(theta[q:], theta[q:])
        return float(total), gradient

    def recycle(self, *used):
        """Take back the gradients of points that are no longer needed."""
        self._spare += [point.gradient for point in used]

    def at(self, theta):
        """Make θ zero-sum, in place, and evaluate the objective."""
        value, gradient = self.evaluate(self.centered(theta, out=theta))
        return Point(theta, value, self.centered(gradient, out=gradient))

    def curvature(self):
        """About the negative diagonal of the second derivative: that of independent columns.

        A half is added, for states that hardly occur.
        """
        counts = self.counts()
        known = np.add.reduceat(counts, self.offsets[:-1])
        rates = counts / np.maximum(known, 1e-300)[column_of_state(self.n_values)]
        spread = rates * (1 - rates)
        curvature = np.empty(self.n_parameters)
        curvature[: self.n_states] = counts * (1 - rates)
        a, b = block_entries(self.n_values)
        known = known[column_of_state(self.n_values)]
        both = known[a] * known[b] / max(self.total, 1e-300)
        curvature[self.n_states :] = both * (spread[a] * rates[b] + rates[a] * spread[b])
        curvature[self.n_states :] += 2 * self.penalty
        return curvature + 0.5

    @property
    def is_whole(self):
        """Which columns have no missing cells."""
        return (self.cells.codes >= 0).all(axis=0)

    def empty_cells(self):
        """Two columns and their states that never meet: (i, j, a, b).

        None of columns with a trend, which need not be at infinity for that.
        """
        offsets, column = self.offsets, column_of_state(self.n_values)
        ones = one_hot(self.cells.codes, offsets)
        free = ~self.trends[column]
        pairs = np.outer(free, free) & (column[:, None] < column)
        r, s = np.nonzero(((ones.T @ ones).toarray() == 0) & pairs)
        i, j = column[r], column[s]
        found = np.column_stack([i, j, r - offsets[i], s - offsets[j]])
        return [tuple(cell) for cell in found.tolist()]

    def rarest_cell(self, i, j):
        """The number of rows with the rarest pair of states of two columns, and these states.

        With i = j, of the rarest state of one column.
        """
        codes = self.cells.codes[:, [i, j]]
        known = (codes >= 0).all(axis=1)
        table = np.zeros(self.n_values[[i, j]])
        np.add.at(table, tuple(codes[known].T), self.cells.weights[known])
        if i == j:
            table[~np.eye(len(table), dtype=bool)] = np.inf
        a, b = np.unravel_index(table.argmin(), table.shape)
        return float(table[a, b]), int(a), int(b)

    def counts(self):
        """How often each state occurs, of shape (Q,)."""
        return state_counts(self.cells.codes, self.offsets, self.cells.weights)

    def centered(self, theta, out=None):
        """θ with all blocks and intercepts made zero-sum, each by itself."""
        out = theta.copy() if out is None else out
        center_blocks(out, self.n_values, self.starts)
        return out

    def gauged(self, theta):
        """Express the same distribution in the zero-sum gauge."""
        return self.pack(*to_zero_sum(*self.unpack(theta), self.n_values))

    def model(self, theta):
        """The distribution."""
        return PottsModel(*self.unpack(theta), self.n_values)

    def pack(self, coupling, intercept):
        """θ from a matrix of shape (Q, Q) and a vector of shape (Q,)."""
        return np.concatenate([intercept, coupling[block_entries(self.n_values)]])

    def unpack(self, theta):
        """A symmetric matrix of shape (Q, Q) and a vector of shape (Q,) from θ."""
        coupling, (a, b) = np.zeros((self.n_states,) * 2), block_entries(self.n_values)
        coupling[a, b] = coupling[b, a] = theta[self.n_states :]
        return coupling, theta[: self.n_states].copy()

    def blocks(self):
        """Two columns i < j and where their block is in θ, for all such columns."""
        sizes = np.outer(self.n_values, self.n_values).tolist()
        starts = self.starts.tolist()
        for i, j in combinations(range(len(self.n_values)), 2):
            yield i, j, slice(starts[i][j], starts[i][j] + sizes[i][j])


def block_starts(n_values):
    """Where the block of each pair of columns starts in θ, symmetric; the number of parameters."""
    i, j = np.triu_indices(len(n_values), 1)
    sizes = n_values[i] * n_values[j]
    ends = n_values.sum() + np.cumsum(sizes)
    starts = np.zeros((len(n_values),) * 2, dtype=np.int64)
    starts[i, j] = starts[j, i] = ends - sizes
    return starts, int(ends[-1]) if len(ends) else int(n_values.sum())
