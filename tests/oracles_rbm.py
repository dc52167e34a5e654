"""Brute force for RBMs: sums over all joint states. Of the package, only parameters are used."""

import itertools
from copy import deepcopy
from functools import cache

import numpy as np
from scipy.special import logsumexp

from private import RBMModel
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussBernoulli,
    TruncatedGaussian,
)


def pseudo_likelihoods(log_p, n_values):
    """Σ_i ln p(unit i | others) of all states."""
    table = log_p.reshape(n_values)
    return sum(table - logsumexp(table, i, keepdims=True) for i in range(table.ndim)).ravel()


def slopes(function, array, eps=1e-5):
    """Derivatives of what a function makes of an array, by differences, entry by entry."""
    found = []
    for place in np.ndindex(array.shape):
        value, ends = array[place], []
        for step in (eps, -eps):
            array[place] = value + step
            ends.append(function())
        array[place] = value
        found.append((ends[0] - ends[1]) / (2 * eps))
    return np.reshape(found, array.shape + np.shape(ends[0]))


def agreeing(V, p, row):
    """The law of the states given the cells of a row that are not missing."""
    seen = ~np.isnan(row)
    weights = np.where((V[:, seen] == row[seen]).all(axis=1), p, 0)
    return weights / weights.sum()


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
        return pseudo_likelihoods(np.log(self.p), (2,) * len(self.b))

    def log_likelihood(self, frequencies):
        return frequencies @ np.log(self.p)

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


CELL = 18 / 40  # of the quadrature of a Gaussian


def unit_points(layer):
    """Of each unit: rows of values and their log-weights, times those of a quadrature."""
    if isinstance(layer, Stacked):
        return [points for part in layer.layers for points in unit_points(part)]
    if isinstance(layer, Bernoulli):
        return [(np.array([[0.0], [1.0]]), np.array([0, u])) for u in layer.intercept]
    if isinstance(layer, Categorical):
        parts = np.split(layer.intercept, np.cumsum(layer.widths)[:-1])
        return [(np.eye(width), part) for width, part in zip(layer.widths, parts, strict=True)]
    if isinstance(layer, Gaussian):
        # The trapezoidal rule is exact for what is smooth and falls to 0.
        x = np.linspace(-9, 9, 41)
        measure = np.full(len(x), np.log(CELL))
    else:
        nodes, measure = np.polynomial.legendre.leggauss(24)
        low, high = layer.bounds
        x, measure = low + (high - low) * (nodes + 1) / 2, np.log(measure * (high - low) / 2)
    logs = np.outer(layer.intercept, x) - np.outer(layer.precision, x * x) / 2 + measure
    if isinstance(layer, TruncatedGaussBernoulli):
        logs += np.log(layer.rho)[:, np.newaxis] - logsumexp(logs, axis=1, keepdims=True)
        x, logs = np.append(x, 0.0), np.column_stack([logs, np.log1p(-layer.rho)])
    return [(x[:, np.newaxis], of_unit) for of_unit in logs]


def all_points(layer):
    points = unit_points(layer)
    index = np.array(list(itertools.product(*(range(len(logs)) for _, logs in points))))
    rows = np.hstack([values[k] for (values, _), k in zip(points, index.T, strict=True)])
    return rows, sum(logs[k] for (_, logs), k in zip(points, index.T, strict=True))


class Law:
    """The rows of a model, or a grid of points of quadrature, and their probabilities."""

    def __init__(self, model):
        self.model = model
        (self.V, visible), (H, hidden) = all_points(model.visible), all_points(model.hidden)
        logs = self.V @ model.weights.T @ H.T + visible[:, np.newaxis] + hidden
        self.log_Z = logsumexp(logs)
        self.log_p = logsumexp(logs, axis=1) - self.log_Z
        self.p = np.exp(self.log_p)

    def given(self, known, observed):
        """The rows that have the observed values, and their probabilities."""
        here = np.isclose(self.V[:, observed], known[observed]).all(axis=1)
        return self.V[here], self.p[here] / self.p[here].sum()

    def draw(self, n):
        """Samples, except for the grid: one exact transition later they are of the law.

        The field of the hidden units sees it by quadrature only.
        """
        return self.V[np.random.default_rng(1).choice(len(self.p), size=n, p=self.p)]


def small_layer(kind, rng, n=None):
    """B bits, C categories, G Gaussians, T truncated and S spiked ones, M some of each."""

    def values(n):
        return rng.normal(0, 1, n)

    return {
        "B": lambda: Bernoulli(values(n or 3)),
        "BB": lambda: Bernoulli(values(6)),
        "C": lambda: Categorical([3, 2], values(5)),
        "CC": lambda: Categorical([1, 4, 2], values(7)),
        "CCC": lambda: Categorical(3, values(9)),
        "G": lambda: Gaussian(values(2), np.array([1.5, 3.0])),
        "T": lambda: TruncatedGaussian(values(n or 2), 3 * values(n or 2), -1.0, 1.5),
        "S": lambda: TruncatedGaussBernoulli(
            rng.uniform(0.3, 0.8, n or 2), values(n or 2), 3 * values(n or 2), -1.0, 1.5
        ),
        "BC": lambda: Stacked([Bernoulli(values(2)), Categorical([3], values(3))]),
        "TC": lambda: Stacked([
            TruncatedGaussian(values(1), values(1), -1.0, 2.0), Categorical([2], values(2))
        ]),
        "M": lambda: Stacked([
            Bernoulli(values(1)), Categorical([3], values(3)), Gaussian(values(1), np.full(1, 2.0))
        ]),
    }[kind]()  # fmt: skip


@cache
def law_of(visible, hidden, scale=0.7):
    rng = np.random.default_rng(0)
    visible, hidden = small_layer(visible, rng), small_layer(hidden, rng)
    return Law(RBMModel(rng.normal(0, scale, (len(hidden), len(visible))), visible, hidden))


def typed(model, dtype):
    weights = model.weights.astype(dtype)
    return RBMModel(weights, model.visible.astype(dtype), model.hidden.astype(dtype))


def with_parameters(model, rbm):
    """A copy of a fitted estimator that has the parameters of a `SmallRBM`."""
    model = deepcopy(model)
    model.components_, model.intercept_visible_ = rbm.W.copy(), rbm.b.copy()
    model.intercept_hidden_ = rbm.c.copy()
    return model
