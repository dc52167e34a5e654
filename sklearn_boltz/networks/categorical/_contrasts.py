"""The pseudo-likelihood of categorical columns in coordinates of full rank: contrasts.

In the zero-sum gauge h_i = C_i η_i and J_ij = C_i K_ij C_jᵀ, where the columns of C_i, one fewer
than the states, are an orthonormal basis of the vectors that sum to 0. So a column becomes
some real-valued ones, u_i = C_iᵀ e(x_i), or 0 where x_i is missing, and ΣJ² = ΣK². The parameters
are z = (η_1, ..., η_D, K_12, K_13, ..., K_{D-1,D}), without the K of one and the same column; of
columns of two states, the one that follows from b and m of ±1 is √2 b and 2 m.

A column with a trend has couplings of its first contrast alone, the centred numbers of its states.
Smooth functions take the place of contrasts in sparse networks.
"""

import numpy as np
from scipy.linalg import block_diag

from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import (
    column_of_state,
    contrast_basis,
    reduce_blocks,
    state_slices,
    to_zero_sum,
)
from sklearn_boltz.networks.model._model import log_softmax
from sklearn_boltz.networks.training._objective import Objective, Point, parameter_places

# Contrasts of a column that a product of matrices for each two of them is fast for.
FEW = 8
# Rows at once otherwise.
N_ROWS = 4096


class Contrasts(Objective):
    """A `CategoricalPseudoLikelihood` as a function of z; for the solvers of small problems.

    Parameters
    ----------
    problem : CategoricalPseudoLikelihood
    functions : list of Functions, default=None
        Of the columns, in place of orthonormal contrasts. The information is then that with the
        penalty of a network with a number as `alpha`.

    Attributes
    ----------
    basis, inverse : ndarray of shape (Q, D) and (D, Q)
        The C_i along the diagonal, and what makes η and K of h and J.
    log_base : float or ndarray of shape (Q,)
        What h has besides C η.
    features : ndarray of shape (n, D)
        The u_i of the rows.
    coupled : ndarray of bool of shape (D,)
        Which contrasts have couplings.
    pairs : (ndarray of int, ndarray of int)
        The contrasts of each K_ij.
    n_parameters : int
    """

    name, advice = CategoricalPseudoLikelihood.name, CategoricalPseudoLikelihood.advice

    def __init__(self, problem, functions=None):
        self.problem, self.total, self.functions = problem, problem.total, functions
        self.weights, self.n_values = problem.cells.weights, problem.n_values
        if functions is None:
            self.basis, self.log_base = trend_basis(self.n_values, problem.trends), 0.0
            self.inverse, self.column = self.basis.T, column_of_state(self.n_values - 1)
            is_first = np.diff(self.column, prepend=-1) > 0
            self.coupled = is_first | ~problem.trends[self.column]
            self._costs = np.ones(len(self.column))
        else:
            self.basis = block_diag(*(f.values for f in functions))
            self.inverse = block_diag(*(f.inverse for f in functions))
            self.log_base = np.concatenate([f.log_base for f in functions])
            self.column = column_of_state(np.array([f.values.shape[1] for f in functions]))
            self.coupled = np.ones(len(self.column), dtype=bool)
            self._costs = np.concatenate([f.costs for f in functions])
        both = np.outer(self.coupled, self.coupled)
        self.pairs = np.nonzero((self.column[:, None] < self.column) & both)
        self.n_parameters = len(self.column) + len(self.pairs[0])
        self.empty_cells, self.rarest_cell = problem.empty_cells, problem.rarest_cell
        codes = problem.cells.codes
        self.features = np.zeros((len(codes), len(self.column)))
        self.states = state_slices(self.n_values)
        for i, states in enumerate(self.states):
            known = codes[:, i] >= 0
            own = self.basis[states, self.column == i]
            self.features[np.ix_(known, self.column == i)] = own[codes[known, i]]

    @property
    def is_whole(self):
        """Which columns have no missing cells."""
        return self.problem.is_whole

    @property
    def penalty(self):
        """Penalty on the couplings."""
        return self.problem.penalty

    def set_alpha(self, alpha):
        """Change the strength of the penalty per row."""
        self.problem.set_alpha(alpha)

    def of_rows(self, rows, counts):
        """Build the objective of other rows, which are complete."""
        return Contrasts(self.problem.of_rows(rows, counts), self.functions)

    def pack(self, coupling, intercept):
        """z of a coupling of shape (Q, Q) and an intercept of shape (Q,), both zero-sum."""
        inner = self.inverse @ coupling @ self.inverse.T
        return np.concatenate([self.inverse @ (intercept - self.log_base), inner[self.pairs]])

    def inner(self, z):
        """K and η, of shapes (D, D) and (D,)."""
        d = len(self.column)
        inner = np.zeros((d, d))
        inner[self.pairs] = z[d:]
        return inner + inner.T, z[:d]

    def unpack(self, z):
        """The coupling of shape (Q, Q) and the intercept of shape (Q,), zero-sum."""
        inner, intercept = self.inner(z)
        return self.basis @ inner @ self.basis.T, self.basis @ intercept + self.log_base

    def fields(self, z):
        """Fields of all states, of shape (n, Q), without `log_base`."""
        inner, intercept = self.inner(z)
        return (self.features @ inner + intercept) @ self.basis.T

    def probabilities(self, z):
        """Probability of each state given the other columns, of shape (n, Q)."""
        return np.exp(log_softmax(self.fields(z) + self.log_base, self.problem.offsets))

    def at(self, z):
        """Evaluate the objective."""
        point = self.problem.at(self.problem.pack(*self.unpack(z)))
        # J_ij and J_ji are one parameter.
        coupling, intercept = self.problem.unpack(point.gradient)
        slopes = (self.basis.T @ coupling @ self.basis)[self.pairs]
        slope = np.concatenate([self.basis.T @ intercept, slopes])
        return Point(z, point.value, slope, point.theta)

    def move(self, direction):
        """By how much a direction moves the field of any row, at most."""
        return np.abs(self.fields(direction)).max(initial=0)

    def information(self, point, dtype=np.float64, chances=None):
        """-∂²/∂z², of shape (n_parameters, n_parameters).

        Each column gives its logistic regression on the others: the sum of
        w C_iᵀ (diag p - p pᵀ) C_i ⊗ y yᵀ, with y = (1, the features of the others), over the rows
        in which it is known. The sums over rows are done in `dtype`. `chances`, (n, Q), take the
        place of the probabilities p.
        """
        information = np.zeros((self.n_parameters,) * 2)
        chances = self.probabilities(point.theta) if chances is None else chances
        weights = self.weights[:, None] * (self.problem.cells.codes >= 0)
        places = parameter_places(len(self.column), self.pairs)
        for i, states in enumerate(self.states):
            own = np.flatnonzero(self.column == i)
            others = np.flatnonzero(self.coupled & (self.column != i))
            x = np.column_stack([np.ones(len(chances)), self.features[:, others]]).astype(dtype)
            block = softmax_information(
                self.basis[states, own], chances[:, states], x, weights[:, i]
            )
            place = np.column_stack([own, places[np.ix_(own, others)]]).ravel()
            free = np.flatnonzero(place < self.n_parameters)
            block = block.reshape(len(place), -1)[np.ix_(free, free)]
            information[np.ix_(place[free], place[free])] += block
        return self.penalised(information)

    def penalised(self, information):
        """With the second derivatives of the penalty, in place."""
        places = np.arange(len(self.column), self.n_parameters)
        first, other = (self._costs[places] for places in self.pairs)
        information[places, places] += 2 * self.penalty * first * other
        return information

    def residuals(self, z):
        """∂/∂η of the term of each row, of shape (n, D)."""
        residuals = self.features - self.probabilities(z) @ self.basis
        known = self.problem.cells.codes >= 0
        residuals *= known[:, self.column]
        return residuals

    def away(self, i, j, a, b):
        """The direction in which x_i = a and x_j = b become less probable together."""
        offsets = self.problem.offsets
        coupling, r, s = np.zeros((offsets[-1],) * 2), offsets[i] + a, offsets[j] + b
        coupling[r, s] = coupling[s, r] = -1
        return self.pack(*to_zero_sum(coupling, np.zeros(offsets[-1]), self.n_values))

    def strengths(self, direction):
        """How much a direction changes the K of each pair, and on the diagonal η, at most."""
        inner, intercept = self.inner(direction)
        found = np.abs(inner + np.diag(intercept))
        starts = np.searchsorted(self.column, np.arange(len(self.n_values)))
        return reduce_blocks(np.maximum, found, starts)

    def gains(self, direction):
        """How much more a direction adds to the field of the state that occurs than to the others.

        The least and the greatest of each column, over the rows in which it is known and its other
        states.
        """
        fields, codes = self.fields(direction), self.problem.cells.codes
        least, greatest = np.zeros((2, len(self.n_values)))
        for i, states in enumerate(self.states):
            known = np.flatnonzero(codes[:, i] >= 0)
            own = fields[known, states]
            gain = own[np.arange(len(known)), codes[known, i]][:, None] - own
            least[i], greatest[i] = gain.min(initial=0), gain.max(initial=0)
        return least, greatest

    def loadings(self):
        """How J and h depend on z: a matrix of shape (Q + Σ_{i<j} q_i q_j, n_parameters).

        In the order of θ: the h_i(a), then the J_ij(a, b), i < j, block by block.
        """
        loadings = np.zeros((self.problem.n_parameters, self.n_parameters))
        loadings[: len(self.basis), : len(self.column)] = self.basis
        places = parameter_places(len(self.column), self.pairs)
        for i, j, place in self.problem.blocks():
            left, right = (self.coupled & (self.column == k) for k in (i, j))
            product = np.kron(self.basis[self.states[i], left], self.basis[self.states[j], right])
            loadings[place, places[np.ix_(left, right)].ravel()] = product
        return loadings


def softmax_information(basis, chances, x, weights):
    """Second derivatives of the regression of a column on x, (k, m, k, m) for k contrasts.

    `basis`, (q, k), has the contrasts of its states, and `chances`, (n, q), their probabilities.
    """
    mean, (k, m) = chances @ basis, (basis.shape[1], x.shape[1])
    if k > FEW:
        parts = [slice(i, i + N_ROWS) for i in range(0, len(x), N_ROWS)]
        return sum(_of_many_states(basis, mean[i], chances[i], x[i], weights[i]) for i in parts)
    block = np.empty((k, m) * 2)
    for r in range(k):
        for s in range(r + 1):
            spread = chances @ (basis[:, r] * basis[:, s]) - mean[:, r] * mean[:, s]
            part = (x * (weights * spread)[:, None].astype(x.dtype)).T @ x
            block[r, :, s], block[s, :, r] = part, part.T
    return block


def _of_many_states(basis, mean, chances, x, weights):
    """Compute the block by one product for each state, less the square of the means times x."""
    (q, k), m = basis.shape, x.shape[1]
    pure = np.empty((q, m, m), x.dtype)
    for own, chance in zip(pure, chances.T, strict=True):
        own[:] = (x * (weights * chance)[:, None].astype(x.dtype)).T @ x
    outer = np.einsum("ar,as->rsa", basis, basis).reshape(k * k, q).astype(x.dtype)
    block = (outer @ pure.reshape(q, m * m)).reshape(k, k, m, m).transpose(0, 2, 1, 3)
    scaled = (mean * np.sqrt(weights)[:, None]).astype(x.dtype)
    both = (scaled[:, :, None] * x[:, None]).reshape(len(x), k * m)
    return block - (both.T @ both).reshape(k, m, k, m)


def trend_basis(n_values, trends):
    """Orthonormal contrasts, (Q, Σ (q_i - 1)); the first of a column with a trend is that."""
    if not trends.any():
        return contrast_basis(n_values)
    blocks = [contrast_basis([m]) for m in n_values]
    for j in np.flatnonzero(trends):
        numbers = np.arange(n_values[j]) - (n_values[j] - 1) / 2
        others = np.eye(n_values[j])[:, 1:-1]
        basis = np.linalg.qr(np.column_stack([np.ones_like(numbers), numbers, others]))[0][:, 1:]
        basis[:, 0] = numbers / np.linalg.norm(numbers)  # 0 in the middle, without rounding
        blocks[j] = basis
    return block_diag(*blocks)
