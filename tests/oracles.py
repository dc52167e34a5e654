"""Brute force: slow, plain, and written without the package."""

import itertools
import math

import numpy as np
from scipy.linalg import hadamard
from scipy.stats import chi2


def local_basis(m):
    """Rows are the basis functions of a variable with m values (FSLL paper, eq. 2.2, 2.3)."""
    if m & (m - 1) == 0:
        return hadamard(m)
    functions = 2 * np.eye(m, dtype=int) - 1
    functions[0] = 1
    return functions


def states(n_values):
    """All joint states, the last variable fastest."""
    return np.array(list(itertools.product(*map(range, n_values)))).reshape(-1, len(n_values))


def places(rows, n_values):
    """Numbers of joint states, or of terms, in the order of `states`."""
    return np.ravel_multi_index(np.reshape(rows, (-1, len(n_values))).T, n_values)


def basis_matrix(n_values):
    """Φ_y(x) with rows y and columns x, both in the order of `states`."""
    phi = np.ones((1, 1), dtype=int)
    for m in n_values:
        phi = np.kron(phi, local_basis(m))
    return phi


def log_linear_probabilities(n_values, basis, theta):
    """p(x) for all states, from the terms of a log-linear model."""
    phi = basis_matrix(n_values)
    energy = np.asarray(theta) @ phi[places(basis, n_values)]
    weights = np.exp(energy - energy.max())
    return weights / weights.sum()


def smoothed_frequencies(X, n_values, weights=None):
    """Frequencies of all states, one observation spread evenly over them included."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights)
    table = np.full(math.prod(n_values), 1 / math.prod(n_values))
    np.add.at(table, places(X, n_values), weights)
    return table / (weights.sum() + 1)


def description_lengths(n_values, n_samples, alpha=1.0):
    """r_y of all terms (eq. 2.5), in the order of `states`; that of y = 0 is meaningless."""
    n = len(n_values)
    return np.array(
        [
            alpha
            / n_samples
            * (
                0.5 * math.log(n_samples)
                + sum(math.log(n * (m - 1)) for yi, m in zip(y, n_values, strict=True) if yi)
            )
            for y in states(n_values)
        ]
    )


def charges(n_values, n_samples, alpha, columns):
    """The same, but 0 for the terms of single columns with more than two values, where all of a
    column together gain alpha nats each. `columns` are the distributions of the columns."""
    r, every = description_lengths(n_values, n_samples, alpha), states(n_values)
    for j, p in enumerate(columns):
        gain = n_samples * (math.log(len(p)) + p @ np.log(p))
        if len(p) > 2 and gain > alpha * (len(p) - 1):
            r[(every[:, j] > 0) & ((every > 0).sum(axis=1) == 1)] = 0
    return r


def margins(table, n_values):
    """The distribution of each variable, from that of all."""
    table = table.reshape(n_values)
    axes = range(table.ndim)
    return [table.sum(axis=tuple(k for k in axes if k != j)) for j in axes]


def differences(function, theta, step=1e-5):
    """Central differences of a function of a vector, one row for each coordinate."""
    steps = step * np.eye(len(theta))
    return np.array([(function(theta + e) - function(theta - e)) / (2 * step) for e in steps])


def assert_drawn(rows, states, p):
    """A chi-square test, 1e-6 of false alarms; states expected less than 5 times are pooled."""
    of_rows = of_states = 0  # numbers in a mixed radix
    for drawn, legal in zip(rows.T, states.T, strict=True):
        levels, digits = np.unique(legal, return_inverse=True)
        found = np.searchsorted(levels[:-1], drawn)
        assert (levels[found] == drawn).all()
        of_rows, of_states = len(levels) * of_rows + found, len(levels) * of_states + digits
    order = np.argsort(of_states)
    numbers = order[np.searchsorted(of_states[order][:-1], of_rows)]
    assert (of_states[numbers] == of_rows).all()
    counts, expected = np.bincount(numbers, minlength=len(p)), len(rows) * p
    assert not counts[expected == 0].any()
    rare = expected < 5
    counts, expected = (np.append(of[~rare], of[rare].sum()) for of in (counts, expected))
    some = expected > 0
    statistic = ((counts - expected)[some] ** 2 / expected[some]).sum()
    assert some.sum() == 1 or statistic < chi2.isf(1e-6, some.sum() - 1)


class GreedyFSLL:
    """Algorithm 1 of the FSLL paper on dense tables, each move by minimising the true cost.

    Nothing of the closed forms is used: along a coordinate the cost is minimised through the
    table of probabilities, by bisection on its derivative.
    """

    def __init__(self, X, n_values, *, weights=None, alpha=1.0, tol=1e-4):
        self.phi = basis_matrix(n_values).astype(float)
        self.data = smoothed_frequencies(X, n_values, weights)
        n_samples = len(X) if weights is None else np.sum(weights)
        self.r = description_lengths(n_values, n_samples, alpha)
        self.tol = tol
        self.theta = np.zeros(len(self.phi))
        self.path = [self.cost(self.theta)]
        self.moves = []
        while self.step():
            self.path.append(self.cost(self.theta))

    def probabilities(self, theta):
        """Of each row of θ."""
        energy = theta @ self.phi
        weights = np.exp(energy - energy.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def cost(self, theta):
        kl = self.data @ (np.log(self.data) - np.log(self.probabilities(theta)))
        return kl + self.r[theta != 0].sum()

    def optima(self):
        """Rows of θ, the row y with coordinate y at its best: E_θ[Φ_y] = E_data[Φ_y]."""
        low, high = np.full((2, len(self.phi)), [[-40.0], [40.0]])
        thetas = np.tile(self.theta, (len(self.phi), 1))
        for _ in range(60):
            middle = (low + high) / 2
            np.fill_diagonal(thetas, middle)
            below = ((self.probabilities(thetas) - self.data) * self.phi).sum(axis=1) < 0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return thetas

    def step(self):
        now, optima = self.cost(self.theta), self.optima()
        candidates = []
        for y in range(1, len(self.phi)):
            trials = [optima[y]]
            if self.theta[y] != 0:
                trials.append(self.theta.copy())
                trials[1][y] = 0.0
            candidates += [(self.cost(trial) - now, y, trial) for trial in trials]
        change, y, trial = min(candidates, key=lambda candidate: candidate[0])
        if -change < self.tol:
            return False
        self.moves.append(y)
        self.theta = trial
        return True
