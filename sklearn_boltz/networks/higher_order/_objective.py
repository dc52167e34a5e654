"""The log pseudo-likelihood of a network with terms of three columns and more."""

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.training._objective import Point, PseudoLikelihood

# Entries of a temporary array that should stay in the cache.
CACHED = 2**18
# Of sech² of the fields of a column, a mean that is not 0.
LEAST_SECH2 = 1e-6


class InteractionPseudoLikelihood:
    """Σ_i w_i Σ_j [x_ij F_ij - ln cosh F_ij - ln 2] - ½ α N (Σ_{j<k} m_jk² + Σ_t θ_t²).

    F_ij = b_j + Σ_k m_jk x_ik + Σ_{t ∋ j} θ_t ∏_{k ∈ t, k ≠ j} x_ik. With p_t = ∏_{k ∈ t} x_k, the
    term t adds x_j p_t to the field of each of its columns, since x_j² = 1. A missing cell is a
    0: it takes its term out of the row.

    Parameters
    ----------
    pairs : PseudoLikelihood
        The same without the terms: rows, weights and penalty.
    terms : list of tuples of int
        Columns.
    allowed : ndarray of bool of shape (d, d), default=None
        The pairs whose coupling is not 0; None for all.
    """

    def __init__(self, pairs: PseudoLikelihood, terms, allowed=None):
        self.pairs, self.terms = pairs, terms
        forbidden = [] if allowed is None else np.flatnonzero(~allowed[pairs.upper])
        self._forbidden = np.array(forbidden, dtype=np.intp) + len(pairs.means)
        self.total = pairs.total
        signs = pairs.spins.astype(np.int8)
        self.products = np.array([signs[list(term)].prod(axis=0, dtype=np.int8) for term in terms])
        self.products = self.products.reshape(len(terms), signs.shape[1])
        columns = np.array([j for term in terms for j in term], dtype=np.int64)
        self.orders = np.array([len(term) for term in terms], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(self.orders)])
        shape = len(terms), len(signs)
        # Which columns are in which term, (n_terms, d).
        self.incidence = csr_array((np.ones(len(columns)), columns, starts), shape)
        self.moments = sum(
            self.products[:, rows].astype(np.float64) @ pairs.weights[rows]
            for rows in self._row_blocks()
        )

    def _row_blocks(self):
        """Slices of the data, so long that all terms of these rows fill the cache."""
        n, step = self.pairs.spins.shape[1], max(64, CACHED // max(1, len(self.terms)))
        return (slice(start, start + step) for start in range(0, n, step))

    def pack(self, coupling, intercept, weights):
        """θ: intercepts, couplings j < k, weights of the terms."""
        return np.concatenate([self.pairs.pack(coupling, intercept), weights])

    def unpack(self, theta):
        """The couplings, the intercepts and the weights of the terms."""
        n_pairs = self.pairs.n_parameters
        return *self.pairs.unpack(theta[:n_pairs]), theta[n_pairs:]

    def fields(self, coupling, intercept, weights):
        """F, of shape (d, n)."""
        fields = self.pairs.fields(coupling, intercept)
        weighted = (self.incidence * weights[:, np.newaxis]).T.tocsr()
        for rows in self._row_blocks():
            added = weighted @ self.products[:, rows].astype(np.float64)
            fields[:, rows] += self.pairs.spins[:, rows] * added
        return fields

    def at(self, theta, out=None):
        """Evaluate the objective and its gradient, the latter in `out` if that is given."""
        coupling, intercept, weights = self.unpack(theta)
        fields, penalty = self.fields(coupling, intercept, weights), self.pairs.penalty
        point = self.pairs.at(theta[: self.pairs.n_parameters], fields)
        value = (
            point.value + weights @ (self.orders * self.moments) - penalty / 2 * weights @ weights
        )
        gradient = np.empty_like(theta) if out is None else out
        gradient[: self.pairs.n_parameters] = self.pairs.gradient(point)
        gradient[self.pairs.n_parameters :] = self._slopes(point.tanh) - penalty * weights
        gradient[self._forbidden] = 0  # where θ is 0, and stays so
        self.pairs.recycle(point)
        return Point(theta, float(value), gradient)

    def _slopes(self, tanh):
        """Σ_i w_i p_it Σ_{j ∈ t} (1 - x_ij tanh F_ij) for each term."""
        slopes = self.orders * self.moments
        for rows in self._row_blocks():
            agreement = self.pairs.spins[:, rows] * tanh[:, rows] * self.pairs.weights[rows]
            own = self.incidence @ agreement
            slopes -= np.einsum("tn,tn->t", own, self.products[:, rows])
        return slopes

    def tanh(self, coupling, intercept, weights):
        """tanh F of the rows, (d, n); 0 for a missing cell."""
        fields = self.fields(coupling, intercept, weights)
        if self.pairs.observed is not None:
            fields *= self.pairs.observed
        return np.tanh(fields, out=fields)

    def set_scale(self, theta):
        """Take the curvature at some parameters for that of the objective."""
        observed = 1.0 if self.pairs.observed is None else self.pairs.observed
        sech2 = observed - self.tanh(*self.unpack(theta)) ** 2
        # A column that all others determine still needs a scale.
        self._sech2 = sech2 @ self.pairs.weights + LEAST_SECH2 * self.pairs.total

    def curvature(self):
        """The negative diagonal of the second derivative where `set_scale` was called."""
        sech2, penalty = self._sech2, self.pairs.penalty
        couplings = (sech2[:, np.newaxis] + sech2)[self.pairs.upper]
        return np.concatenate([sech2, couplings + penalty, self.incidence @ sech2 + penalty])
