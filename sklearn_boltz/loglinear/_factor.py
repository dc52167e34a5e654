"""Sums over all states of connected variables, block by block: no table of all states is made.

For given values of the slow variables of the layout, the terms become coefficients of the fast
ones, and one small transform gives the log-weights of the block.
"""

import math
from functools import cached_property

import numpy as np

from sklearn_boltz.loglinear._basis import StateSpace

# States in a block: a transform of it stays in the cache.
BLOCK = 2**17


class Factor:
    """A log-linear model whose variables are all connected.

    Parameters
    ----------
    n_values : ndarray of int64 of shape (n_features,)
    basis : ndarray of int64 of shape (n_basis, n_features)
        The terms.
    theta : ndarray of float64 of shape (n_basis,)
        Their weights.
    """

    def __init__(self, n_values, basis, theta):
        self.space = space = StateSpace(n_values)
        self.basis, self.theta = basis, theta
        self._outer, self._inner = space.split_layout(BLOCK)
        self._block_space = StateSpace(space.n_values[self._inner])
        self.block_size = self._block_space.size
        self._n_blocks = space.size // self.block_size
        self._inner_codes, self._slow_part = self._split(basis)

    def _split(self, basis):
        """Terms as codes of terms of the fast variables, and what gives each of them a sign."""
        slow_part = np.zeros_like(basis)
        slow_part[:, self._outer] = basis[:, self._outer]
        return self.space.encode(basis) % self.block_size, slow_part

    @cached_property
    def log_partition(self):
        """ln Z, from all states."""
        total = -math.inf
        for block in range(self._n_blocks):
            weights = self.log_weights(block)
            peak = weights.max()
            weights -= peak
            total = np.logaddexp(total, peak + math.log(np.exp(weights, out=weights).sum()))
        return float(total)

    def cumulants(self, betas):
        """ln Z_β of p(x)^β / Z_β, and mean and variance of the log-weight at β = 1, as rows."""
        found = [_NOTHING] * len(betas)
        for block in range(self._n_blocks):
            weights = self.log_weights(block)
            for i, beta in enumerate(betas):
                found[i] = _merged(found[i], _cumulants(weights, beta))
        return np.transpose(found)

    def _outer_state(self, block):
        """The first state of a block, (1, n_features)."""
        return self.space.decode([block * self.block_size])

    def log_weights(self, block):
        """Σ_y θ_y Φ_y(x) for the states of one block."""
        signs = self.space.signs(self._outer_state(block), self._slow_part)[0]
        table = np.zeros(self.block_size)
        np.add.at(table, self._inner_codes, self.theta * signs)
        self._block_space.synthesize(table)
        return table

    def _probabilities(self):
        """Yield (number of the block, probabilities of its states)."""
        for block in range(self._n_blocks):
            weights = self.log_weights(block)
            weights -= self.log_partition
            yield block, np.exp(weights, out=weights)

    def expectation(self, basis):
        """E[Φ_y] for each given y, (k, n_features) -> (k,)."""
        codes, slow_part = self._split(basis)
        moments = np.zeros(len(basis))
        for block, table in self._probabilities():
            self._block_space.analyze(table)
            moments += self.space.signs(self._outer_state(block), slow_part)[0] * table[codes]
        return moments

    def marginal(self, variables):
        """Joint probabilities of some variables, an array with one axis for each."""
        kept_outer = [i for i in self._outer if i in variables]
        kept_inner = [i for i in self._inner if i in variables]
        fast = math.prod(self.space.shape(kept_inner))
        shape, axes = _merged_axes(
            self.space.shape(self._inner), [i in variables for i in self._inner]
        )
        slow = StateSpace(self.space.n_values[kept_outer]) if kept_outer else None
        table = np.zeros((slow.size if slow else 1, fast))
        for block, probabilities in self._probabilities():
            states = self._outer_state(block)[:, kept_outer]
            row = np.ravel_multi_index(states[0], self.space.shape(kept_outer)) if slow else 0
            table[row] += probabilities.reshape(shape).sum(axis=axes).ravel()
        in_layout = kept_outer + kept_inner
        table = table.reshape(self.space.shape(in_layout))
        return table.transpose([in_layout.index(i) for i in variables])

    def mode(self):
        """The most probable state, (n_features,) int64."""
        best, place = -math.inf, 0
        for block in range(self._n_blocks):
            weights = self.log_weights(block)
            k = int(weights.argmax())
            if weights[k] > best:
                best, place = float(weights[k]), block * self.block_size + k
        return self.space.decode([place])[0]

    def sample(self, n_samples, generator):
        """Independent exact samples, -> (n_samples, n_features) int64."""
        mass = np.array([table.sum() for _, table in self._probabilities()])
        counts = generator.multinomial(n_samples, mass / mass.sum())
        codes = []
        for block in np.flatnonzero(counts):
            cumulated = np.cumsum(np.exp(self.log_weights(block) - self.log_partition))
            uniform = generator.random(counts[block]) * cumulated[-1]
            within = np.searchsorted(cumulated, uniform, side="right")
            codes.append(block * self.block_size + within)
        # Block by block is not an exchangeable order.
        return self.space.decode(generator.permutation(np.concatenate(codes)))


# The cumulants of no states.
_NOTHING = -math.inf, 0.0, 0.0


def _cumulants(weights, beta):
    """ln Σ exp(β w), and mean and variance of w with these probabilities."""
    p = beta * weights
    peak = p.max()
    np.exp(np.subtract(p, peak, out=p), out=p)
    mass = p.sum()
    mean = p @ weights / mass
    return peak + math.log(mass), mean, p @ (weights - mean) ** 2 / mass


def _merged(first, second):
    """The cumulants of two sets of states together."""
    log_mass = np.logaddexp(first[0], second[0])
    share, apart = math.exp(second[0] - log_mass), second[1] - first[1]
    variance = (1 - share) * first[2] + share * second[2] + share * (1 - share) * apart**2
    return log_mass, first[1] + share * apart, variance


def _merged_axes(shape, kept):
    """Merge neighbouring axes that are all kept, or all summed: sums over long axes are fast.

    -> the new shape, and the axes to sum over.
    """
    merged, keep = [], []
    for m, k in zip(shape, kept, strict=True):
        if keep and keep[-1] == k:
            merged[-1] *= m
        else:
            merged.append(m)
            keep.append(k)
    return merged, tuple(axis for axis, k in enumerate(keep) if not k)
