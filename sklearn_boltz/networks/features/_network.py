"""A pairwise network in coordinates of functions of the columns."""

from copy import copy
from functools import cached_property
from itertools import groupby

import numpy as np

from sklearn_boltz.networks.features._block_diagonal import BlockDiagonal
from sklearn_boltz.networks.features._lines import CHUNK
from sklearn_boltz.networks.model._gauge import state_offsets, state_slices, to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel

# Functions of a column up to which products with them are as fast as sums of lines of a table.
FEW = 4
# Rows whose features are in memory at a time.
BLOCK = 4096


class FeatureNetwork:
    """p(x) ∝ Π_j π_j(x_j) exp(Σ_j h_j · φ_j(x_j) + Σ_{j<k} φ_j(x_j) · K_jk φ_k(x_k)).

    Its states are the groups of the bases.

    Parameters
    ----------
    bases : list of Basis
    theta : ndarray of float of shape (K + 1, K)
        The K_jk, symmetric and 0 in the blocks of single columns, above the h_j.

    Attributes
    ----------
    coupling, intercept : ndarray of float of shape (K, K) and (K,)
        Both parts of `theta`.
    log_base : ndarray of float of shape (Q,)
        ln π of the states, the shares of the rows.
    offsets : ndarray of int64 of shape (d + 1,)
        Where the states of the columns begin.
    places : list of slice
        Of the features of the columns.
    columns : list of (slice, slice, ndarray)
        The places of the features and of the states of each column, and their values.
    many, few, few_places : ndarray of int
        The columns of many functions; all others, and the places of their features.
    own : ndarray of int64 of shape (n_many, 2)
        The chunks of features that belong to each column of many functions; see `_lines`.
    runs : list of slice
        Neighbouring columns that all have an order or all have none: then their features are 1 and
        0 except for a constant.
    """

    def __init__(self, bases, theta):
        self.bases, self.theta = bases, theta
        ends = np.cumsum([basis.features.shape[1] for basis in bases])
        self.places = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        self.dtype = theta.dtype
        self.features = [basis.features.astype(self.dtype, copy=False) for basis in bases]
        self.log_base = np.log(np.concatenate([basis.shares for basis in bases]))
        self.log_base = self.log_base.astype(self.dtype)
        self.offsets = state_offsets(np.array([len(basis.shares) for basis in bases]))
        blocks = state_slices(np.diff(self.offsets))
        self.columns = list(zip(self.places, blocks, self.features, strict=True))
        self.nominal = [basis.is_nominal for basis in bases]
        sizes = np.diff(ends, prepend=0)
        self.many, self.few = np.flatnonzero(sizes > FEW), np.flatnonzero(sizes <= FEW)
        self.few_places = np.flatnonzero(np.repeat(sizes, sizes) <= FEW)
        n_states = np.diff(self.offsets)[self.many]
        self.first_lines, self.n_lines = np.cumsum(n_states) - n_states, int(n_states.sum())
        own = np.column_stack([-(-(ends - sizes) // CHUNK), ends // CHUNK])[self.many]
        self.own = np.where(own[:, :1] < own[:, 1:], own, 0).astype(np.int64)
        runs = [list(run) for _, run in groupby(range(len(bases)), self.nominal.__getitem__)]
        self.runs = [slice(run[0], run[-1] + 1) for run in runs]

    @property
    def coupling(self):
        """The K_jk."""
        return self.theta[:-1]

    @property
    def intercept(self):
        """The h_j."""
        return self.theta[-1]

    def at(self, theta):
        """Return a copy with other parameters."""
        other = copy(self)
        other.theta = theta
        return other

    def near(self, coupling, intercept):
        """The network nearest to couplings and intercepts of all values: where these have no
        order, and a group each, with the same distribution."""
        n_values = np.array([len(basis.group) for basis in self.bases])
        inverse, means = np.zeros((len(self.intercept), len(intercept))), np.zeros(len(intercept))
        log_base = np.zeros(len(intercept))
        for place, own, basis in zip(self.places, state_slices(n_values), self.bases, strict=True):
            shares, features = basis.shares[basis.group] * basis.within, basis.features[basis.group]
            weighted = features.T * shares
            inverse[place, own] = np.linalg.pinv(weighted @ features) @ weighted
            means += coupling[:, own] @ shares
            log_base[own] = np.log(shares)
        fields = inverse @ (intercept + means - log_base)
        coupling = inverse @ coupling @ inverse.T
        return self.at(np.vstack([coupling, fields]).astype(self.dtype))

    def expand(self, codes, columns):
        """Features of some columns of rows; 0 for -1, a missing cell."""
        ends = np.cumsum([0, *(self.features[j].shape[1] for j in columns)])
        x = np.empty((len(codes), ends[-1]), dtype=self.dtype)
        for j, start, stop in zip(columns, ends[:-1], ends[1:], strict=True):
            own, place = codes[:, j], slice(start, stop)
            np.take(self.features[j], np.maximum(own, 0), axis=0, out=x[:, place])
            if (own < 0).any():
                x[own < 0, place] = 0
        return x

    def lines(self):
        """φ(a) · K of the states a of the columns of many functions, one after another."""
        table = np.empty((self.n_lines, len(self.intercept)), self.dtype)
        for j, first in zip(self.many, self.first_lines, strict=True):
            block, features = self.coupling[self.places[j]], self.features[j]
            out = table[first : first + len(features)]
            if self.nominal[j]:  # features are 1 and 0, less their means
                np.subtract(block, self.bases[j].shares.astype(self.dtype) @ block, out=out)
            else:
                np.matmul(features, block, out=out)
        return table

    def of_lines(self, sums, out):
        """Fill the places of these columns with Σ_a φ(a) s(a), for lines s of such a table."""
        for j, first in zip(self.many, self.first_lines, strict=True):
            features = self.features[j]
            own, place = sums[first : first + len(features)], out[self.places[j]]
            if self.nominal[j]:
                shares = self.bases[j].shares.astype(self.dtype)
                np.subtract(own, shares[:, None] * own.sum(axis=0), out=place)
            else:
                np.matmul(features.T, own, out=place)

    def moments(self, codes, weights):
        """Means over rows of the products of all features, (K, K), and of the features, (K,)."""
        second, first = np.zeros(self.coupling.shape), np.zeros(len(self.intercept))
        for start in range(0, len(codes), BLOCK):
            rows = slice(start, start + BLOCK)
            x = self.expand(codes[rows], range(len(self.columns)))
            weighted = x * weights[rows, None]
            second += weighted.T @ x
            first += weighted.sum(axis=0)
        total = float(weights.sum(dtype=np.float64))
        return second / total, first / total

    def model(self):
        """The network as a distribution of its states."""
        n_states, coupling = len(self.log_base), self.coupling.astype(np.float64)
        left, both = np.empty((n_states, len(coupling))), np.empty((n_states, n_states))
        intercept = self.log_base.astype(np.float64)
        for place, states, features in self.columns:
            np.matmul(features, coupling[place], out=left[states])
            intercept[states] += features @ self.intercept[place]
        for place, states, features in self.columns:
            np.matmul(features, left[:, place].T, out=both[states])
        model = PottsModel(both, intercept, np.diff(self.offsets))
        model.strengths = self._strengths(coupling)
        return model

    def _strengths(self, coupling):
        """Those of the distribution, from sums over features instead of values."""
        first = [place.start for place in self.places]
        squares = self._roots.on_both_sides(coupling) ** 2
        return np.add.reduceat(np.add.reduceat(squares, first, axis=0), first, axis=1) / 2

    @cached_property
    def _roots(self):
        """A matrix R for each column: RᵀR is the covariance of its features for uniform values."""
        roots = []
        for basis in self.bases:
            features = basis.features - basis.features.mean(axis=0)
            k = features.shape[1]
            root = np.linalg.qr(np.vstack([features, np.zeros((k, k))]), mode="r")
            roots.append(root / np.sqrt(len(features)))
        return BlockDiagonal.of(roots, np.float64)

    def of_values(self, model):
        """A distribution of its states as one of all values of the columns."""
        n_values = np.array([len(basis.group) for basis in self.bases])
        state = np.concatenate([
            first + basis.group for first, basis in zip(self.offsets, self.bases, strict=False)
        ])  # fmt: skip
        intercept = model.intercept[state] + np.log(np.concatenate([b.within for b in self.bases]))
        coupling = model.coupling[np.ix_(state, state)]
        coupling, intercept = to_zero_sum((coupling + coupling.T) / 2, intercept, n_values)
        return PottsModel(coupling, intercept, n_values)
