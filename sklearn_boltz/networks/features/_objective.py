"""The pseudo-likelihood of a network of features."""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.features._conditionals import conditionals

# Rows whose features are in memory at a time.
BLOCK = 4096
# Features that are kept from one evaluation to the next, at most.
MOST_KEPT = 2**22


class Evaluation(NamedTuple):
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
        Rows; a missing cell, -1, has features 0, their means.
    observed : ndarray of bool of shape (n, d)
        Which cells have a term.
    weights : ndarray of float of shape (n,)
    penalty : ndarray of float of shape (K, K)
        1 / (n v) for the prior variance v of each coupling; any in blocks of single columns.
    """

    def __init__(self, network, codes, observed, weights, penalty):
        self.network, self.codes, self.weights = network, codes, weights
        self.observed = np.where(observed, codes, -1).astype(np.int32)
        self.total, self.penalty = float(weights.sum(dtype=np.float64)), penalty
        self.own = np.zeros(penalty.shape, dtype=bool)
        for place in network.places:
            self.own[place, place] = True
        self._features = network.expand(codes) if len(codes) * len(penalty) <= MOST_KEPT else None

    def at(self, coupling, intercept):
        """Evaluate the objective."""
        network = self.network.at(coupling, intercept)
        total, slope, own = 0.0, np.zeros_like(coupling), np.zeros_like(intercept)
        for x, rows in self._blocks():
            p, value = self._weighted_conditionals(network, x, rows, residuals=True)
            residuals = network.differences(p)
            total += value
            slope -= x.T @ residuals
            own -= residuals.sum(axis=0)
        slope = (slope + slope.T) / self.total
        slope[self.own] = 0
        penalty = self.penalty * coupling
        value = total / self.total - float(np.vdot(penalty, coupling)) / 4
        return Evaluation(coupling, intercept, value, slope - penalty, own / self.total)

    def moments(self, coupling, intercept):
        """Second moments of the features, and conditional variances of those of each column.

        The latter count by the share of the rows in which the column is observed.
        """
        network = self.network.at(coupling, intercept)
        second, spread = np.zeros((2, *coupling.shape))
        for x, rows in self._blocks():
            p, _ = self._weighted_conditionals(network, x, rows)
            root = np.sqrt(self.weights[rows, None])
            second += (x * self.weights[rows, None]).T @ x
            means, counts = network.means(p) / root, p.sum(axis=0)
            for place, states, features in network.columns:
                squares = (features.T * counts[states]) @ features
                spread[place, place] += squares - means[:, place].T @ means[:, place]
        return second / self.total, spread / self.total

    def _blocks(self):
        for start in range(0, len(self.codes), BLOCK):
            rows = slice(start, start + BLOCK)
            known = self._features is not None
            yield self._features[rows] if known else self.network.expand(self.codes[rows]), rows

    def _weighted_conditionals(self, network, x, rows, residuals=False):
        """w p(state | others) of observed cells, (n, Q), and Σ w ln p of the cells' own states.

        Of `residuals`, less w in these.
        """
        p = network.log_ratios(x @ network.coupling + network.intercept)
        value = conditionals(
            p, network.log_base, network.offsets, self.observed[rows], self.weights[rows],
            residuals,
        )  # fmt: skip
        return p, value
