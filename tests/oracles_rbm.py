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


class SmallDBM:
    """p(x_0, ..., x_L) ∝ exp(Σ_l x_l · W_l x_{l−1} + Σ_l b_l · x_l), all states enumerated."""

    def __init__(self, weights, intercepts):
        self.weights = [np.asarray(W, dtype=float) for W in weights]
        self.intercepts = [np.asarray(b, dtype=float) for b in intercepts]
        states = binary(sum(map(len, intercepts)))
        self.layers = np.split(states, np.cumsum([len(b) for b in intercepts])[:-1], axis=1)
        self.log_joint = sum(x @ b for x, b in zip(self.layers, self.intercepts, strict=True))
        for below, above, W in zip(self.layers, self.layers[1:], self.weights, strict=False):
            self.log_joint = self.log_joint + np.einsum("ni,ij,nj->n", above, W, below)
        self.Z = np.exp(self.log_joint).sum()
        self.joint = np.exp(self.log_joint) / self.Z

    def given(self, known):
        """-> (ln of the sum over the states that agree, means of all layers in that law).

        `known` are rows of some of the first units of all.
        """
        X = np.hstack(self.layers)
        logs, means = [], []
        for row in known:
            agrees = (X[:, : len(row)] == row).all(axis=1)
            weight = np.exp(self.log_joint[agrees])
            logs.append(np.log(weight.sum()))
            means.append([weight @ x[agrees] / weight.sum() for x in self.layers])
        return np.array(logs), [np.array(of_layer) for of_layer in zip(*means, strict=True)]


def random_dbm(sizes, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal(pair) for pair in zip(sizes[1:], sizes[:-1], strict=True)]
    intercepts = [rng.standard_normal(n) for n in sizes]
    return SmallDBM([scale * W for W in weights], intercepts)


def binary(n):
    return np.array(list(itertools.product([0.0, 1.0], repeat=n))).reshape(-1, n)


def random_rbm(n_visible, n_hidden, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return SmallRBM(
        scale * rng.standard_normal((n_hidden, n_visible)),
        rng.standard_normal(n_visible),
        rng.standard_normal(n_hidden),
    )
