"""Brute force for RBMs: sums over all joint states, written without the package."""

import itertools

import numpy as np


class SmallRBM:
    """p(v, h) ∝ exp(h·Wv + b·v + c·h), all 2^(n + m) states enumerated."""

    def __init__(self, W, b, c):
        self.W, self.b, self.c = (np.asarray(a, dtype=float) for a in (W, b, c))
        self.V, self.H = binary(len(self.b)), binary(len(self.c))
        self.log_joint = self.V @ self.W.T @ self.H.T + (self.V @ self.b)[:, None] + self.H @ self.c
        self.Z = np.exp(self.log_joint).sum()
        self.joint = np.exp(self.log_joint) / self.Z

    @property
    def p(self):
        """p(v), in the order of `V`."""
        return self.joint.sum(axis=1)

    def free_energy(self):
        return -np.log(np.exp(self.log_joint).sum(axis=1))

    def mean_hidden(self):
        return self.joint @ self.H / self.p[:, None]

    def mean_visible(self):
        return self.joint.T @ self.V / self.joint.sum(axis=0)[:, None]

    def log_pseudo_likelihood(self):
        """Σ_i ln p(v_i | others), from the table p(v)."""
        table = self.p.reshape((2,) * len(self.b))
        total = np.zeros_like(table)
        for axis in range(table.ndim):
            total += np.log(table / table.sum(axis=axis, keepdims=True))
        return total.ravel()

    def log_likelihood(self, frequencies):
        return frequencies @ np.log(self.p)

    def impute(self, v, missing):
        """p over all v that agree with the observed values."""
        agrees = (self.V[:, ~missing] == v[~missing]).all(axis=1)
        p = np.where(agrees, self.p, 0)
        return p / p.sum()

    def sweep(self):
        """Matrix of one transition v → h → v', and its powers keep p."""
        given_h = self.joint / self.joint.sum(axis=0)
        given_v = self.joint / self.p[:, None]
        return given_v @ given_h.T


def binary(n):
    return np.array(list(itertools.product([0.0, 1.0], repeat=n))).reshape(-1, n)


def random_rbm(n_visible, n_hidden, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return SmallRBM(
        scale * rng.standard_normal((n_hidden, n_visible)),
        rng.standard_normal(n_visible),
        rng.standard_normal(n_hidden),
    )
