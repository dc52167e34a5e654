"""The log-likelihood of a fully visible Boltzmann machine, from a table of all its states.

The data have a part in it by their means and moments only, which the model at the maximum has too:
of all distributions with these moments it is the one of maximum entropy.

A state is a number whose bit j says that x_j = -1. The transform of Walsh and Hadamard leads from
the parameters, each at the number of its variables, to the log-weights of all states, and from
probabilities to the moments of all sets of variables.
"""

import math

import numpy as np

from sklearn_boltz.loglinear._hadamard import fwht
from sklearn_boltz.networks.model._spin_model import SpinModel, ones_of_states
from sklearn_boltz.networks.training._objective import CHUNK, BinaryObjective, Point, largest_move
from sklearn_boltz.numerics._threads import slices_of_rows

# Columns of a table of all states, of 2**25 float64 numbers, or 256 MiB, at most.
MAX_COLUMNS = 25


class Further:
    """Products of three columns and more, and indicators of the number K of ones.

    A potential V(K) is known up to a quadratic of K, which pairs and intercepts have as well. So it
    is 0 at the three most frequent K, and the other K have a weight each; with a penalty on the
    couplings, which tells quadratics apart, at two.

    Parameters
    ----------
    d : int
        Number of columns.
    terms : sequence of tuples of int, default=()
    frequencies : ndarray of shape (d + 1,), default=None
        Of the K in the data; None for a model without a potential.
    is_penalised : bool, default=False
        Whether couplings are.
    """

    def __init__(self, d, terms=(), frequencies=None, is_penalised=False):
        self.d, self.terms, self.frequencies = d, terms, frequencies
        self.counts = np.zeros(0, dtype=np.int64)
        if frequencies is not None:
            self.counts = np.argsort(-frequencies, kind="stable")[2 if is_penalised else 3 :]
            self.counts.sort()

    def __len__(self):
        return len(self.terms) + len(self.counts)

    def values(self, spins):
        """Values for rows of ±1, of shape (..., n, len(self)) in float32."""
        values = np.empty((*spins.shape[:-1], len(self)), dtype=np.float32)
        for k, term in enumerate(self.terms):
            values[..., k] = spins[..., list(term)].prod(axis=-1)
        ones = np.count_nonzero(spins > 0, axis=-1)
        values[..., len(self.terms) :] = ones[..., np.newaxis] == self.counts
        return values

    def sums(self, problem):
        """N, Σ x_j x_k and the sums of these statistics, over the rows of a problem.

        With a potential, there is one more row, spread evenly over all K: else V would be -∞ at
        those K that never occur.
        """
        if not len(self):
            return problem.total, problem.moments, np.zeros(0)
        rows = slice(problem.n_rows)
        values = self.values(problem.spins[:, rows].T)
        sums = problem.weights[rows] @ values.astype(np.float64)
        if not len(self.counts):
            return problem.total, problem.moments, sums
        return problem.total + 1, problem.moments + 1 / 3, sums + self._uniform()

    def _uniform(self):
        """Their means if all K are equally likely, and all rows with as many ones.

        So is a row whose cells are 1 with a probability that is uniform itself: the mean of a
        product of r cells is 1 / (r + 1), or 0 if r is odd.
        """
        products = [0.0 if len(term) % 2 else 1 / (len(term) + 1) for term in self.terms]
        return np.append(products, np.full(len(self.counts), 1 / (self.d + 1)))

    def model(self, coupling, intercept, theta):
        """The distribution of a pairwise network with these terms and a potential."""
        weights, potential = self.split(theta)
        return SpinModel(coupling, intercept, self.terms, weights, potential)

    def split(self, theta):
        """The weights of the terms, and V(0), ..., V(d)."""
        potential = np.zeros(self.d + 1)
        potential[self.counts] = theta[len(self.terms) :]
        return theta[: len(self.terms)], potential


class Likelihood(BinaryObjective):
    """Σ_i w_i θ·t(x_i) - N ln Z - ½ α N (Σ_{j<k} m_jk² + Σ_t θ_t²), exactly.

    The sufficient statistics t(x) are the x_j, the x_j x_k, and further ones. The solvers take it
    as they take `PseudoLikelihood`.

    Parameters
    ----------
    pairs : PseudoLikelihood or StreamedPseudoLikelihood
        Of the same rows, all of them complete.
    further : Further, default=None
        Terms of more columns, and a potential of the number K of ones. None for pairs only.

    Attributes
    ----------
    total : float
        N = Σ_i w_i.
    penalty : float
        α N.
    sums : ndarray of shape (n_parameters,)
        Σ_i w_i t(x_i).
    """

    name = "log-likelihood"

    def __init__(self, pairs, further=None):
        self.pairs, self.further = pairs, further or Further(len(pairs.means))
        total, self.moments, sums = self.further.sums(pairs)
        super().__init__(pairs.means, total, 0.0)
        self.penalty, self.cell_sums = pairs.penalty, pairs.cell_sums
        d, self.n_pairs = len(self.means), self.n_parameters
        self.sums = np.append(super().pack(self.moments, self.means), sums)
        self.n_parameters = len(self.sums)
        bits, (j, k) = 1 << np.arange(d), self.upper
        terms = [bits[list(term)].sum() for term in self.further.terms]
        self.terms = np.concatenate([bits, bits[j] | bits[k], terms]).astype(np.int64)
        self._penalised = slice(d, len(self.terms))  # couplings and weights, not the potential
        # The product of two terms is that of the variables which are in one of them only. That of a
        # single variable with itself has none.
        both = np.bitwise_xor.outer(self.terms, self.terms).ravel()
        self._products, places = np.unique(np.append(both, self.terms), return_inverse=True)
        self._pairs, self._singles = np.split(places, [len(both)])
        self._ones = d - ones_of_states(d) if len(self.further.counts) else None

    def pack(self, coupling, intercept):
        """θ of a pairwise network."""
        zeros = np.zeros(self.n_parameters - self.n_pairs)
        return np.append(super().pack(coupling, intercept), zeros)

    def at(self, theta):
        """The objective at θ, but with the potential that is best for the other parameters."""
        return self.evaluate(self._with_potential(theta))

    def evaluate(self, theta):
        """The objective at θ."""
        (log_z, mass, table), penalised = self._weights(theta), theta[self._penalised]
        value = theta @ self.sums - self.total * log_z
        value -= self.penalty / 2 * penalised @ penalised
        counts = self.further.counts
        if len(counts):
            counts = np.bincount(self._ones, table)[counts] / mass
        products = fwht(table, overwrite_a=True, n_jobs=-1)[self._products] / mass
        expected = np.append(products[self._singles], counts)
        return Point(theta, float(value), expected=expected, products=products)

    def _log_weights(self, theta):
        """θ·t(x) of all states, without the potential."""
        table = np.zeros(2 ** len(self.means))
        table[self.terms] = theta[: len(self.terms)]
        return fwht(table, overwrite_a=True, n_jobs=-1)

    def _weights(self, theta):
        """ln Z, and of all states the weights, up to a factor; their sum comes before them."""
        table = self._log_weights(theta)
        if len(self.further.counts):
            table += self.further.split(theta[self.n_pairs :])[1][self._ones]
        peak = table.max()
        np.exp(np.subtract(table, peak, out=table), out=table)
        mass = table.sum()
        return peak + math.log(mass), mass, table

    def _with_potential(self, theta):
        """θ with the potential that gives K its distribution in the data.

        It is the maximum while the other parameters stay, so Newton's method never strays to where
        the model has no mass at some K, whose weight would then have no curvature. The polynomial
        of K that is 0 in `Further` goes to intercepts and couplings, which changes no probability.
        """
        counts, d = self.further.counts, len(self.means)
        if not len(counts):
            return theta
        table = self._log_weights(theta)
        table = np.exp(np.subtract(table, table.max(), out=table), out=table)
        mass = np.maximum(np.bincount(self._ones, table), np.finfo(float).tiny)
        potential = np.log((self.further.frequencies + 1 / (d + 1)) / mass)
        powers = np.vander(2.0 * np.arange(d + 1) - d, d + 1 - len(counts), increasing=True)
        fixed = np.delete(np.arange(d + 1), counts)
        polynomial = np.linalg.solve(powers[fixed], potential[fixed])
        theta = theta.copy()
        theta[:d] += polynomial[1]
        if len(polynomial) > 2:
            # (Σ x_j)² = d + 2 Σ_{j<k} x_j x_k.
            theta[d : self.n_pairs] += 2 * polynomial[2]
        theta[len(self.terms) :] = (potential - powers @ polynomial)[counts]
        return theta

    def gradient(self, point):
        """∂/∂θ: the moments of the data less those of the model, of shape (n_parameters,)."""
        gradient = self.sums - self.total * point.expected
        gradient[self._penalised] -= self.penalty * point.theta[self._penalised]
        return gradient

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ²: the covariances of the statistics, of shape (n_parameters, n_parameters)."""
        information = point.products[self._pairs].reshape(2 * (len(self.terms),))
        if len(self.further.counts):
            information = self._with_counts(information, point)
        information = self.total * (information - np.outer(point.expected, point.expected))
        np.einsum("ii->i", information)[self._penalised] += self.penalty
        return information

    def _with_counts(self, products, point):
        """The moments of all products of two statistics, from those of two terms."""
        _, mass, table = self._weights(point.theta)
        n, moments = len(products), np.diag(point.expected)
        moments[:n, :n] = products
        for place, k in enumerate(self.further.counts, start=n):
            own = fwht(np.where(self._ones == k, table, 0.0), overwrite_a=True, n_jobs=-1)
            moments[place, :n] = moments[:n, place] = own[self.terms] / mass
        return moments

    def score_products(self, point, squares=None):
        """Σ_i w_i s_i s_iᵀ, s_i the terms of row i less their expectations; of pairs only.

        `squares` may take the place of the weights w_i.
        """
        spins, q = self.pairs.spins, self.n_parameters
        weights = self.pairs.weights if squares is None else squares
        products = np.zeros((q, q))
        for rows in slices_of_rows(spins.shape[1], q, CHUNK):
            x = spins[:, rows]
            scores = np.concatenate([x, x[self.upper[0]] * x[self.upper[1]]])
            scores -= point.expected[:, np.newaxis]
            scores *= np.sqrt(weights[rows])
            products += scores @ scores.T
        return products

    def move(self, direction):
        """By how much a direction moves the field of any state at most, without the potential."""
        coupling, intercept = self.unpack(direction)
        reach = np.abs(intercept)
        weights = direction[self.n_pairs : len(self.terms)]
        for term, weight in zip(self.further.terms, weights, strict=True):
            reach[list(term)] += abs(weight)
        return largest_move(coupling, reach)

    bound = move

    def gains(self, direction):
        """By how much a direction changes x_j F_j of each variable, at least and at most.

        There is no maximum if all rows have the greatest log-weight of a direction: the first bound
        is what all rows together lack of it.
        """
        coupling, intercept = self.unpack(direction)
        theta = self.pack(coupling, intercept)
        lack = self.total * self._log_weights(theta).max() - theta @ self.sums
        greatest = np.abs(coupling).sum(axis=1) + np.abs(intercept)
        return np.full_like(greatest, -max(lack, 0.0)), greatest

    def model(self, theta):
        """The distribution."""
        return self.further.model(*self.unpack(theta), theta[self.n_pairs :])
