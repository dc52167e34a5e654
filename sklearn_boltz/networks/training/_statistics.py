"""Sufficient statistics: of pairs; and products of more columns, and the number of ones."""

import numpy as np

from sklearn_boltz.networks.model._interaction_model import InteractionModel
from sklearn_boltz.networks.model._spin_model import SpinModel


class Statistics:
    """The terms of a network of pairs, (x_j - μ_j) and (x_j - μ_j)(x_k - μ_k), and further ones.

    With the means μ of the data taken off, terms of one and of two columns hardly go together,
    which makes moments less noisy and steps longer. θ are the parameters of these terms.

    Parameters
    ----------
    problem : PseudoLikelihood or StreamedPseudoLikelihood
        Of complete rows.
    further : Further, default=None
        Of a problem that is not streamed. None for pairs only.

    Attributes
    ----------
    moments, variances : ndarray of shape (n_parameters,)
        Means of the terms over the rows, and their variances.
    mean : ndarray of shape (d,)
        μ.
    """

    def __init__(self, problem, further=None):
        d = len(problem.means)
        self.further, self.upper = further or Further(d), np.triu_indices(d, 1)
        self.total, products, sums = self.further.sums(problem)
        self.alpha, self.mean = problem.penalty / self.total, problem.means / self.total
        means = np.outer(self.mean, self.mean)
        covariance = products / self.total - means
        # (x - μ)² = 1 - μ² - 2 μ (x - μ), as x² = 1.
        alone = 1 - self.mean**2
        both = np.outer(alone, alone) + 4 * means * covariance - covariance**2
        pairs, sums = self.pack(np.zeros_like(self.mean), covariance), sums / self.total
        self.n_pairs, self.moments = len(pairs), np.append(pairs, sums)
        n_terms = len(self.further.terms)
        squares = np.append(np.ones(n_terms), sums[n_terms:])
        self.variances = np.append(self.pack(alone, both), squares - sums**2)

    def pack(self, single, pair):
        """One vector, from numbers of columns and of pairs."""
        return np.concatenate([single, pair[self.upper]])

    def theta(self, coupling, intercept):
        """θ of a network of pairs."""
        pairs = self.pack(intercept + coupling @ self.mean, coupling)
        return np.append(pairs, np.zeros(len(self.further)))

    def parameters(self, theta):
        """Couplings and intercepts of θ."""
        d = len(self.mean)
        coupling = np.zeros((d, d))
        coupling[self.upper] = theta[d : self.n_pairs]
        coupling += coupling.T
        return coupling, theta[:d] - coupling @ self.mean

    def model(self, theta):
        """The distribution."""
        if not len(self.further):
            return SpinModel(*self.parameters(theta))
        weights, potential = self.further.split(theta[self.n_pairs :])
        return InteractionModel(*self.parameters(theta), self.further.terms, weights, potential)

    def _of_further(self, states):
        """The further terms of states with the means taken off."""
        return self.further.values(np.sign(states + self.mean.astype(states.dtype)))

    def log_weights(self, theta, states):
        """Σ θ·terms of states with the means taken off, up to a number that depends on θ."""
        d = len(self.mean)
        half = np.zeros((d, d), dtype=states.dtype)
        half[self.upper] = theta[d : self.n_pairs]
        own = states @ half + theta[:d].astype(states.dtype)
        sums = np.einsum("ij,ij->i", own, states, dtype=np.float64)
        return sums + self._of_further(states) @ theta[self.n_pairs :] if self.further else sums

    def covariances_with(self, values, states):
        """Covariances of the terms with a number of each state."""
        centred = values - values.mean()
        scaled = centred.astype(states.dtype) / len(values)
        weighted = states * scaled[:, np.newaxis]
        pairs = self.pack(weighted.sum(axis=0), weighted.T @ states).astype(np.float64)
        if not self.further:
            return pairs
        return np.append(pairs, centred / len(values) @ self._of_further(states))

    def sums(self, states, conditional):
        """Sums of the terms over each group of states, (n_groups, n_parameters).

        By conditional means: E[x_j x_k] = E[x_j E(x_k | others)] has less noise.
        """
        pair = states.transpose(0, 2, 1) @ conditional
        pair = (pair + pair.transpose(0, 2, 1)) / 2
        single = conditional.sum(axis=1)
        sums = np.array([self.pack(*sums) for sums in zip(single, pair, strict=True)], np.float64)
        if not self.further:
            return sums
        return np.hstack([sums, self._of_further(states).sum(axis=1, dtype=np.float64)])

    def _penalised(self):
        """Where the parameters with a penalty stand in θ: there is none on the potential."""
        return slice(len(self.mean), self.n_pairs + len(self.further.terms))

    def penalty(self, theta):
        """½ α (Σ m_jk² + Σ θ_t²)."""
        penalised = theta[self._penalised()]
        return self.alpha / 2 * np.vdot(penalised, penalised)

    def penalty_slope(self, theta):
        """Its derivative."""
        slope, penalised = np.zeros_like(theta), self._penalised()
        slope[penalised] = self.alpha * theta[penalised]
        return slope

    def log_likelihood(self, theta, log_partition):
        """The mean of the rows, less the penalty."""
        coupling, intercept = self.parameters(theta)
        d = len(self.mean)
        products = np.zeros((d, d))
        products[self.upper] = self.moments[d : self.n_pairs]
        products += np.outer(self.mean, self.mean)
        weight = intercept @ self.mean + (coupling * products)[self.upper].sum()
        weight += theta[self.n_pairs :] @ self.moments[self.n_pairs :]
        return weight - log_partition - self.penalty(theta)

    def name(self, place, label):
        """What a message calls a term."""
        d = len(self.mean)
        if place < d:
            return f"the mean of {label(place)}"
        if place < self.n_pairs:
            j, k = (label(places[place - d]) for places in self.upper)
            return f"the covariance of {j} and {k}"
        place -= self.n_pairs
        if place < len(self.further.terms):
            return f"the product of {', '.join(map(label, self.further.terms[place]))}"
        return f"P(K = {self.further.counts[place - len(self.further.terms)]})"


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
        """Of rows of ±1, of shape (..., n, len(self)) in float32."""
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

    def split(self, theta):
        """The weights of the terms, and V(0), ..., V(d)."""
        potential = np.zeros(self.d + 1)
        potential[self.counts] = theta[len(self.terms) :]
        return theta[: len(self.terms)], potential
