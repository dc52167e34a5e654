"""A pairwise network in coordinates of functions of the columns."""

from copy import copy

import numpy as np

from sklearn_boltz.networks.model._gauge import state_offsets, to_zero_sum

# A pair of columns whose dependence, in nats for a weak one, is at least this is drawn together.
STRONG = 0.25
# Rounds of scaling of the table of such a pair.
N_SCALINGS = 4


class FeatureNetwork:
    """p(x) ∝ Π_j π_j(x_j) exp(Σ_j h_j · φ_j(x_j) + Σ_{j<k} φ_j(x_j) · K_jk φ_k(x_k)).

    Parameters
    ----------
    bases : list of Basis
    coupling : ndarray of float of shape (K, K)
        The K_jk; symmetric, 0 in the blocks of single columns.
    intercept : ndarray of float of shape (K,)
        The h_j.

    Attributes
    ----------
    log_base : ndarray of float of shape (Q,)
        ln π of the states, the shares of the rows.
    offsets : ndarray of int64 of shape (d + 1,)
        Where the states of the columns begin.
    places : list of slice
        Of the features of the columns.
    columns : list of (slice, slice, ndarray)
        The places of the features and of the states of each column, and their values.
    """

    def __init__(self, bases, coupling, intercept):
        self.bases, self.coupling, self.intercept = bases, coupling, intercept
        ends = np.cumsum([basis.features.shape[1] for basis in bases])
        self.places = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        self.dtype = coupling.dtype
        self.features = [basis.features.astype(self.dtype, copy=False) for basis in bases]
        self.log_base = np.log(np.concatenate([basis.shares for basis in bases]))
        self.log_base = self.log_base.astype(self.dtype)
        self.offsets = state_offsets(np.array([len(basis.shares) for basis in bases]))
        self.blocks = [slice(*ends) for ends in zip(self.offsets, self.offsets[1:], strict=False)]
        self.columns = list(zip(self.places, self.blocks, self.features, strict=True))

    def at(self, coupling, intercept):
        """The same with other parameters."""
        other = copy(self)
        other.coupling, other.intercept = coupling, intercept
        return other

    def near(self, coupling, intercept):
        """The network nearest to couplings and intercepts of all states: where values have no
        order, with the same distribution."""
        inverse, means = np.zeros((len(self.intercept), len(intercept))), np.zeros(len(intercept))
        for place, own, basis in zip(self.places, self.blocks, self.bases, strict=True):
            weighted = basis.features.T * basis.shares
            inverse[place, own] = np.linalg.pinv(weighted @ basis.features) @ weighted
            means += coupling[:, own] @ basis.shares
        fields = inverse @ (intercept + means - self.log_base)
        coupling = inverse @ coupling @ inverse.T
        return self.at(coupling.astype(self.dtype), fields.astype(self.dtype))

    def expand(self, codes):
        """Features of rows, (n, K); 0 for -1, a missing cell."""
        x = np.empty((len(codes), len(self.intercept)), dtype=self.dtype)
        for place, features, own in zip(self.places, self.features, codes.T, strict=True):
            np.take(features, np.maximum(own, 0), axis=0, out=x[:, place])
            if (own < 0).any():
                x[own < 0, place] = 0
        return x

    def fields(self, x, j):
        """Fields of the features of a column in rows of features x."""
        place = self.places[j]
        return x @ self.coupling[:, place] + self.intercept[place]

    def log_ratios(self, fields):
        """φ · fields of all states, (n, Q); in columns without an order, but for a constant."""
        found = np.empty((len(fields), len(self.log_base)), self.dtype)
        for j, (place, states, _) in enumerate(self.columns):
            self._log_ratios(fields[:, place], j, found[:, states])
        return found

    def _log_ratios(self, fields, j, out):
        basis = self.bases[j]
        if basis.alone is None:
            np.matmul(fields, self.features[j].T, out=out)
        else:
            out[:, basis.alone] = fields[:, : len(basis.alone)]
            out[:, basis.together] = fields[:, -1:]

    def means(self, weights):
        """Σ_a w(a) φ(a) of the features, (n, K), from weights of all states, (n, Q)."""
        found = np.empty((len(weights), len(self.intercept)), self.dtype)
        for (place, states, features), basis in zip(self.columns, self.bases, strict=True):
            own, out = weights[:, states], found[:, place]
            if basis.alone is None:
                np.matmul(own, features, out=out)
                continue
            out[:, : len(basis.alone)] = own[:, basis.alone]
            if len(basis.together):
                out[:, -1] = own[:, basis.together].sum(axis=1)
            shares = (features.max(axis=0) - 1).astype(self.dtype)  # less those of the rows
            out += own.sum(axis=1, keepdims=True) * shares
        return found

    def log_weights(self, fields, j):
        """Log-weights of the states of a column from fields of its features, (n, n_states)."""
        found = np.empty((len(fields), len(self.features[j])), self.dtype)
        self._log_ratios(fields, j, found)
        return found + self.log_base[self.blocks[j]]

    def table(self, j, k):
        """φ_j(a) · K_jl φ_l(b) for all states of two columns."""
        block = self.coupling[self.places[j], self.places[k]]
        return self.features[j] @ block @ self.features[k].T

    def strong_pairs(self):
        """The pairs that are drawn together, the strongest first.

        The strength of a pair is half the variance of its coupling φ_j · K_jk φ_k, if both columns
        were independent: about their mutual information, if it is small.
        """
        spread = np.zeros_like(self.coupling)
        for (place, _, features), basis in zip(self.columns, self.bases, strict=True):
            spread[place, place] = (features.T * basis.shares) @ features
        first = [place.start for place in self.places]
        products = (spread @ self.coupling) * (self.coupling @ spread)
        strengths = np.add.reduceat(np.add.reduceat(products, first, axis=0), first, axis=1) / 2
        pairs = np.argwhere(np.tril(strengths, -1) > STRONG)
        order = np.argsort(-strengths[tuple(pairs.T)], kind="stable")
        return [StrongPair.of(self, *pair) for pair in pairs[order].tolist()]

    def states(self):
        """The couplings and intercepts of all states, zero-sum, float64."""
        features = np.zeros((len(self.log_base), len(self.intercept)))
        for place, states, own in self.columns:
            features[states, place] = own
        coupling = features @ self.coupling.astype(np.float64) @ features.T
        intercept = features @ self.intercept + self.log_base
        return to_zero_sum((coupling + coupling.T) / 2, intercept, np.diff(self.offsets))


class StrongPair:
    """Two columns whose couplings are so strong that chains of single cells hardly move.

    Given the other columns, both are drawn at once: x_j from the sum over x_k, which is a product
    of the weights of the states of k and a table exp(J_jk(a, b) - u(a) - v(b)), and then x_k. With
    u and v, no row and no column of the table has an entry above 1, and each has one near 1.
    """

    def __init__(self, j, k, couplings, u, v):
        self.j, self.k, self.couplings, self.u, self.v = j, k, couplings, u, v
        self.table = np.exp(couplings - u[:, None] - v)

    @classmethod
    def of(cls, network, j, k):
        """The pair of two columns of a network."""
        couplings = network.table(j, k)
        v = np.zeros(couplings.shape[1], dtype=couplings.dtype)
        for _ in range(N_SCALINGS):
            u = (couplings - v).max(axis=1)
            v = (v + (couplings - u[:, None]).max(axis=0)) / 2
        v = (couplings - u[:, None]).max(axis=0)
        return cls(j, k, couplings, u, v)

    def draw(self, network, x, generator):
        """-> states of both columns, given the other columns of rows of features."""
        j, k = self.j, self.k
        block = network.coupling[network.places[j], network.places[k]]
        own, other = network.places[j], network.places[k]
        f_j = network.log_weights(network.fields(x, j) - x[:, other] @ block.T, j)
        f_l = network.log_weights(network.fields(x, k) - x[:, own] @ block, k)
        weights = f_l + self.v
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        sums = np.maximum(weights @ self.table.T, np.finfo(weights.dtype).tiny)
        first = draw_states(f_j + self.u + np.log(sums), generator)
        return first, draw_states(f_l + self.couplings[first], generator)


def draw_states(log_weights, generator):
    """A state of each row of log-weights, which are overwritten."""
    weights = log_weights
    weights -= weights.max(axis=1, keepdims=True)
    up_to = np.cumsum(np.exp(weights, out=weights), axis=1)
    u = generator.random(len(up_to), dtype=up_to.dtype) * up_to[:, -1]
    return np.minimum((up_to < u[:, None]).sum(axis=1), up_to.shape[1] - 1)
