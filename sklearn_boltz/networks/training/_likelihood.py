"""The log-likelihood of a fully visible Boltzmann machine, from a table of all its states.

The data have a part in it by their means and moments only, which the model at the maximum has too:
of all distributions with these moments it is the one of maximum entropy.

A state is a number whose bit j says that x_j = -1. The transform of Walsh and Hadamard leads from
the parameters, each at the number of its variables, to the log-weights of all states, and from
probabilities to the moments of all sets of variables.
"""

import math
from typing import NamedTuple

import numpy as np

from sklearn_boltz.loglinear._hadamard import fwht
from sklearn_boltz.networks.training._objective import CHUNK, PlainLine, PseudoLikelihood
from sklearn_boltz.networks.training._solvers import largest_move

# Columns of a table of all states, of 2**25 float64 numbers, or 256 MiB, at most.
MAX_COLUMNS = 25


class Point(NamedTuple):
    """Parameters, the objective there, and the moments of up to four variables."""

    coupling: np.ndarray
    intercept: np.ndarray
    value: float
    expected: np.ndarray


class Likelihood:
    """Σ_i w_i [½ x_iᵀ M x_i + bᵀ x_i] - N ln Z - ½ α N Σ_{j<k} m_jk², exactly.

    The solvers take it as they take `PseudoLikelihood`.

    Parameters
    ----------
    total : float
        N = Σ_i w_i.
    means : ndarray of shape (d,)
        Σ_i w_i x_ij.
    moments : ndarray of shape (d, d)
        Σ_i w_i x_ij x_ik.
    penalty : float
        α N.
    rows : (ndarray, ndarray), default=None
        Spins of shape (d, n) and their weights, which only `score_products` asks for.
    """

    name = "log-likelihood"
    observed = None  # no cell is missing
    n_parameters = PseudoLikelihood.n_parameters
    pair_sums = PseudoLikelihood.pair_sums
    move = staticmethod(largest_move)  # of the field of any state
    pack = PseudoLikelihood.pack
    unpack = PseudoLikelihood.unpack

    def __init__(self, total, means, moments, penalty, rows=None):
        self.total, self.penalty, self.rows = total, penalty, rows
        self.means, self.moments = means, moments
        d = len(means)
        self.upper = np.triu_indices(d, 1)
        bits = 1 << np.arange(d)
        self.terms = np.concatenate([bits, bits[self.upper[0]] | bits[self.upper[1]]])
        # The product of two terms is that of the variables which are in one of them only. That of a
        # single variable with itself has none.
        pairs = np.bitwise_xor.outer(self.terms, self.terms).ravel()
        self.products, places = np.unique(np.append(pairs, self.terms), return_inverse=True)
        self._pairs, self._singles = np.split(places, [len(pairs)])

    @classmethod
    def of(cls, problem):
        """Of the rows of a pseudo-likelihood, all of them complete."""
        rows = (problem.spins, problem.weights) if hasattr(problem, "spins") else None
        return cls(problem.total, problem.means, problem.moments, problem.penalty, rows)

    def at(self, coupling, intercept):
        """Evaluate the objective at parameters."""
        theta = self.pack(coupling, intercept)
        table = self._log_weights(theta)
        peak = table.max()
        np.exp(np.subtract(table, peak, out=table), out=table)
        mass = table.sum()
        value = theta @ self._sums() - self.total * (peak + math.log(mass))
        value -= self.penalty / 4 * np.vdot(coupling, coupling)
        expected = fwht(table, overwrite_a=True, n_jobs=-1)[self.products] / mass
        return Point(coupling, intercept, float(value), expected)

    def _log_weights(self, theta):
        """θ·Φ(x) of all states."""
        table = np.zeros(2 ** len(self.means))
        table[self.terms] = theta
        return fwht(table, overwrite_a=True, n_jobs=-1)

    def _sums(self):
        """The sufficient statistics of the data, of shape (n_parameters,)."""
        return self.pack(self.moments, self.means)

    def gradient(self, point):
        """∂/∂θ: the moments of the data less those of the model, of shape (n_parameters,)."""
        penalty = self.pack(self.penalty * point.coupling, np.zeros_like(point.intercept))
        return self._sums() - self.total * point.expected[self._singles] - penalty

    def information(self, point, dtype=np.float64):
        """-∂²/∂θ²: the covariances of the terms, of shape (n_parameters, n_parameters)."""
        expected = point.expected[self._singles]
        information = point.expected[self._pairs].reshape(2 * (self.n_parameters,))
        information = self.total * (information - np.outer(expected, expected))
        pairs = np.arange(len(self.means), self.n_parameters)
        information[pairs, pairs] += self.penalty
        return information

    def score_products(self, point):
        """Σ_i w_i s_i s_iᵀ, s_i the terms of row i less their expectations by the model."""
        (spins, weights), q = self.rows, self.n_parameters
        expected, products = point.expected[self._singles], np.zeros((q, q))
        step = max(1, CHUNK // max(1, q))
        for start in range(0, spins.shape[1], step):
            x = spins[:, start : start + step]
            scores = np.concatenate([x, x[self.upper[0]] * x[self.upper[1]]])
            scores -= expected[:, np.newaxis]
            scores *= np.sqrt(weights[start : start + step])
            products += scores @ scores.T
        return products

    def line(self, point, direction):
        """From a point in a direction."""
        return PlainLine(self, point, *self.unpack(direction))

    def cell_sums(self):
        """Number of rows, Σ x_j x_k and Σ x_j."""
        return self.total, self.moments, self.means

    def gains(self, coupling, intercept):
        """By how much a direction changes x_j F_j of each variable, at least and at most.

        There is no maximum if all rows have the greatest log-weight of a direction: the first bound
        is what all rows together lack of it.
        """
        theta = self.pack(coupling, intercept)
        lack = self.total * self._log_weights(theta).max() - theta @ self._sums()
        greatest = np.abs(coupling).sum(axis=1) + np.abs(intercept)
        return np.full_like(greatest, -max(lack, 0.0)), greatest
