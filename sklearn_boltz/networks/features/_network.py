"""A pairwise network in coordinates of functions of the columns."""

from copy import copy

import numpy as np

from sklearn_boltz.networks.model._gauge import state_offsets, to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel


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

    def log_ratios(self, fields):
        """φ · fields of all states, (n, Q); in columns without an order, except for a constant."""
        found = np.empty((len(fields), len(self.log_base)), self.dtype)
        for (place, states, features), basis in zip(self.columns, self.bases, strict=True):
            own, out = fields[:, place], found[:, states]
            if basis.alone is None:
                np.matmul(own, features.T, out=out)
            else:
                out[:] = own[:, -1:]
                out[:, basis.alone] = own[:, : len(basis.alone)]
        return found

    def means(self, weights):
        """Σ_a w(a) φ(a) of the features, (n, K), from weights of all states, (n, Q)."""
        found = np.empty((len(weights), len(self.intercept)), self.dtype)
        for (place, states, features), basis in zip(self.columns, self.bases, strict=True):
            own, out = weights[:, states], found[:, place]
            if basis.alone is None:
                np.matmul(own, features, out=out)
                continue
            n_alone, total = len(basis.alone), own.sum(axis=1, keepdims=True)
            out[:, :n_alone] = own[:, basis.alone]
            if n_alone < out.shape[1]:
                out[:, n_alone:] = total - out[:, :n_alone].sum(axis=1, keepdims=True)
            out -= total * (1 - features.max(axis=0))  # the shares of the rows
        return found

    def states(self):
        """The couplings and intercepts of all states, zero-sum, float64."""
        features = np.zeros((len(self.log_base), len(self.intercept)))
        for place, states, own in self.columns:
            features[states, place] = own
        coupling = features @ self.coupling.astype(np.float64) @ features.T
        intercept = features @ self.intercept + self.log_base
        return to_zero_sum((coupling + coupling.T) / 2, intercept, np.diff(self.offsets))

    def model(self):
        """The network as a distribution of states."""
        return PottsModel(*self.states(), np.diff(self.offsets))
