"""The pseudo-likelihood of a network of features."""

from typing import NamedTuple

import numpy as np

# Rows whose features are in memory at a time.
BLOCK = 4096


class Point(NamedTuple):
    """Parameters, the objective per row and its derivatives."""

    coupling: np.ndarray
    intercept: np.ndarray
    value: float
    coupling_slope: np.ndarray
    intercept_slope: np.ndarray

    @property
    def slope(self):
        """The derivatives, of couplings and of intercepts."""
        return self.coupling_slope, self.intercept_slope


class FeatureObjective:
    """The mean over rows of Σ_j ln p(x_j | others) of the observed cells, with a prior.

    Parameters
    ----------
    network : FeatureNetwork
        Its columns.
    codes : ndarray of int of shape (n, d)
        Complete rows.
    observed : ndarray of bool of shape (n, d)
    weights : ndarray of float of shape (n,)
    penalty : ndarray of float of shape (K, K)
        1 / (n v) for the prior variance v of each coupling; any in blocks of single columns.
    """

    def __init__(self, network, codes, observed, weights, penalty):
        self.network, self.codes, self.observed, self.weights = network, codes, observed, weights
        self.total, self.penalty = float(weights.sum(dtype=np.float64)), penalty
        self.own = np.zeros(penalty.shape, dtype=bool)
        for place in network.places:
            self.own[place, place] = True

    def at(self, coupling, intercept):
        """Evaluate the objective."""
        network = self.network.at(coupling, intercept)
        total, slope, own = 0.0, np.zeros_like(coupling), np.zeros_like(intercept)
        for start in range(0, len(self.codes), BLOCK):
            rows = slice(start, start + BLOCK)
            x = network.expand(self.codes[rows])
            residuals, value = self._residuals(network, x, rows)
            total += value
            slope += x.T @ residuals
            own += residuals.sum(axis=0)
        slope = (slope + slope.T) / self.total
        slope[self.own] = 0
        penalty = self.penalty * coupling
        value = total / self.total - float(np.vdot(penalty, coupling)) / 4
        return Point(coupling, intercept, value, slope - penalty, own / self.total)

    def _residuals(self, network, x, rows):
        """Weighted differences of features and their conditional means; Σ w ln p."""
        fields, residuals = x @ network.coupling + network.intercept, np.empty_like(x)
        total = 0.0
        for j, place in enumerate(network.places):
            weights = self.weights[rows] * self.observed[rows, j]
            p = network.log_weights(fields[:, place], j)
            top = p.max(axis=1, keepdims=True)
            p -= top
            np.exp(p, out=p)
            sums = p.sum(axis=1, keepdims=True)
            p /= sums
            own = np.einsum("nk,nk->n", fields[:, place], x[:, place])
            base = network.log_base[j][self.codes[rows, j]]
            total += float(weights @ (own + base - top[:, 0] - np.log(sums[:, 0])))
            residuals[:, place] = (x[:, place] - p @ network.features[j]) * weights[:, None]
        return residuals, total

    def moments(self, coupling, intercept):
        """Second moments of the features, and conditional variances of those of each column.

        The latter count by the share of the rows in which the column is observed.
        """
        network = self.network.at(coupling, intercept)
        second, spread = np.zeros((2, *coupling.shape))
        for start in range(0, len(self.codes), BLOCK):
            rows = slice(start, start + BLOCK)
            x = network.expand(self.codes[rows])
            second += (x * self.weights[rows, None]).T @ x
            fields = x @ coupling + intercept
            for j, place in enumerate(network.places):
                weights = (self.weights[rows] * self.observed[rows, j])[:, None]
                p = network.log_weights(fields[:, place], j)
                p = np.exp(p - p.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                features, mean = network.features[j], p @ network.features[j]
                squares = (features * (weights * p).sum(axis=0)[:, None]).T @ features
                spread[place, place] += squares - (mean * weights).T @ mean
        return second / self.total, spread / self.total
