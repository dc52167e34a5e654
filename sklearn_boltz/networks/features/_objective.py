"""The pseudo-likelihood of a network of features."""

from itertools import chain
from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.features._residuals import residuals
from sklearn_boltz.networks.features._rows import FeatureRows
from sklearn_boltz.networks.model._gauge import state_slices
from sklearn_boltz.networks.training._objective import Objective
from sklearn_boltz.numerics._threads import slices_of_rows

# Fields of all states of the rows that are evaluated together, about: so many stay in a cache.
FIELDS = 2**19
# Features that are kept from one evaluation to the next, at most.
MOST_KEPT = 2**22


class Evaluation(NamedTuple):
    """Parameters, the objective per row and its derivatives.

    Couplings are all rows but the last, intercepts are the last; each coupling stands twice, with
    half of its derivative each.
    """

    theta: np.ndarray
    value: float
    gradient: np.ndarray


class FeatureObjective(Objective):
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
        is_kept = len(codes) * (len(network.few_places) + len(network.many)) <= MOST_KEPT
        self._kept = list(self._blocks()) if is_kept else None

    def at(self, theta):
        """Evaluate the objective."""
        network, total, gradient = self.network.at(theta), 0.0, np.empty_like(theta)
        parts = network.coupling[network.few_places], network.lines()
        # Of single precision are the sums over a few rows alone.
        *sums, fields = (np.zeros(part.shape) for part in (*parts, network.intercept))
        for x, rows in self._kept or self._blocks():
            left = x.times(*parts)
            left += network.intercept
            for value, columns in self._residuals(left, rows):
                total += value
                for j, own in columns:
                    if not network.nominal[j]:
                        np.matmul(own, network.features[j], out=left[:, network.places[j]])
            for own, of_rows in zip(sums, x.products(left, network.n_lines), strict=True):
                own += of_rows
            fields += left.sum(axis=0)
        gradient[network.few_places], gradient[-1] = sums[0], fields
        network.of_lines(sums[1].astype(network.dtype), gradient)
        gradient /= -self.total
        penalty = self.penalty * network.coupling
        coupling = (gradient[:-1] + gradient[:-1].T - penalty) / 2
        coupling[self.own] = 0
        gradient[:-1] = coupling
        value = total / self.total - float(np.vdot(penalty, network.coupling)) / 4
        return Evaluation(theta, value, gradient)

    def moments(self, theta):
        """Second moments of the features, and conditional variances of those of each column.

        The latter count by the share of the rows in which the column is observed.
        """
        network = self.network.at(theta)
        spread, (second, _) = np.zeros(self.own.shape), network.moments(self.codes, self.weights)
        parts = network.coupling[network.few_places], network.lines()
        for x, rows in self._kept or self._blocks():
            fields, weights = x.times(*parts), self.weights[rows]
            fields += network.intercept
            for j, left in chain.from_iterable(c for _, c in self._residuals(fields, rows)):
                place, features = network.places[j], network.features[j]
                known = np.flatnonzero(self.observed[rows, j] >= 0)
                p = left[known]
                p[np.arange(len(known)), self.observed[rows, j][known]] += weights[known]
                means = (p @ features) / np.sqrt(weights[known, None])
                squares = (features.T * p.sum(axis=0)) @ features
                spread[place, place] += squares - means.T @ means
        return second, spread / self.total

    def _blocks(self):
        for rows in slices_of_rows(len(self.codes), len(self.network.log_base), FIELDS):
            yield FeatureRows(self.network, self.codes[rows]), rows

    def _residuals(self, fields, rows):
        """Yield, of each run of columns, Σ w ln p of the cells' own states, and (j, residuals).

        These are w (p(state | others) - 1 if it is the cell's own). Without an order they take the
        place of the fields.
        """
        network, weights = self.network, self.weights[rows]
        for run in network.runs:
            offsets = network.offsets[run.start : run.stop + 1]
            blocks = state_slices(np.diff(offsets))
            left = fields[:, network.places[run.start].start : network.places[run.stop - 1].stop]
            if not network.nominal[run.start]:
                left = np.empty((len(fields), blocks[-1].stop), network.dtype)
                for j, own in enumerate(blocks, run.start):
                    of_column = fields[:, network.places[j]]
                    np.matmul(of_column, network.features[j].T, out=left[:, own])
            base, observed = network.log_base[offsets[0] : offsets[-1]], self.observed[rows, run]
            value = residuals(left, base, offsets - offsets[0], observed, weights)
            yield value, [(j, left[:, own]) for j, own in enumerate(blocks, run.start)]
