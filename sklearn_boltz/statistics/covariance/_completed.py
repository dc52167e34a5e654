"""The covariance of estimates from incomplete rows, by the sandwich of the expected scores.

The estimate solves Σ_i w_i E[s_i(x; θ) | x_o; θ] = 0, s_i the score of a row's pseudo-likelihood.
Its derivative is Σ_i w_i (E[∂s_i | x_o] + Cov(s_i, t | x_o)), t the sufficient statistics, which
are the derivative of ln p(x) up to a constant. Both are estimated from draws of the missing cells.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklearn_boltz.missing._completion import (
    IncompleteRows,
    Model,
    distinct_incomplete,
    informative,
)
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._spin_model import to_spins
from sklearn_boltz.networks.sampling._sampling import gibbs_complete
from sklearn_boltz.networks.training._objective import PseudoLikelihood
from sklearn_boltz.numerics._threads import slices_of_rows
from sklearn_boltz.statistics.covariance._curvature import (
    columns_of_parameters,
    restricted_curvature,
    row_scores,
)

# Completions of each row, their seed, and the sweeps that lead to one where there are too many.
N_COMPLETIONS, SEED, N_STEPS = 50, 0, 200
# Entries of a temporary array.
CHUNK = 2**20


class Coordinates(NamedTuple):
    """How a network is parametrised: real-valued features of the columns, and their products.

    Attributes
    ----------
    pairs : (ndarray of int, ndarray of int)
        The features whose products are statistics.
    describe : callable
        From complete rows and weights to the information without penalty, the features u, and
        what they exceed their conditional means by, both (n, n_features).
    penalty : float
        On the information of each coupling.
    """

    pairs: tuple
    describe: Callable
    penalty: float

    @classmethod
    def of_spins(cls, model, penalty):
        """±1, and the couplings m_jk."""

        def describe(rows, weights):
            spins = to_spins(rows)
            problem = PseudoLikelihood(np.ascontiguousarray(spins.T), weights)
            theta = problem.pack(model.coupling, model.intercept)
            information = problem.information(problem.at(theta))
            return information, spins, spins - np.tanh(model.fields(rows))

        return cls(np.triu_indices(len(model.intercept), 1), describe, penalty)

    @classmethod
    def of_contrasts(cls, z, contrasts):
        """The contrasts of the values of categorical columns."""

        def describe(rows, weights):
            problem = CategoricalPseudoLikelihood(
                rows.astype(np.int16), contrasts.n_values, weights, trends=contrasts.problem.trends
            )
            here = Contrasts(problem)
            return here.information(here.at(z)), here.features, here.residuals(z)

        return cls(contrasts.pairs, describe, 2 * contrasts.penalty)

    def statistics(self, u):
        """∂/∂θ of each row's ln p up to a constant, (n_parameters, n)."""
        (r, s), u = self.pairs, np.ascontiguousarray(u.T)
        statistics = np.empty((len(u) + len(r), u.shape[1]))
        statistics[: len(u)] = u
        np.multiply(u[r], u[s], out=statistics[len(u) :])
        return statistics


def completed_curvature(codes, weights, model, coordinates, numbers, free=None):
    """A, less the derivative of the expected scores, and J, the sum of their products.

    Parameters
    ----------
    codes : ndarray of int of shape (n, d)
        -1 for a missing cell; columns that vary.
    weights : ndarray of shape (n,)
    model : DiscreteModel
        The estimate.
    coordinates : Coordinates
    numbers : ndarray of int of shape (n_features,)
        Of the column of each feature, in the whole table.
    free : ndarray of bool of shape (n_features, n_features), default=None
        Which couplings are free; the others are 0. None for all.

    Returns
    -------
    curvature : Curvature
    """
    codes, weights = informative(codes, weights)
    incomplete = (codes < 0).any(axis=1)
    complete = distinct_incomplete(codes[~incomplete], weights[~incomplete])
    gaps = distinct_incomplete(codes[incomplete], weights[incomplete])
    n_features, size = len(numbers), len(coordinates.pairs[0]) + 1
    information, products = np.zeros((2, n_features + size - 1, n_features + size - 1))
    for some in slices_of_rows(len(complete[0]), size, CHUNK):
        rows, w = (part[some] for part in complete)
        own, u, e = coordinates.describe(rows, w)
        scores = row_scores(u, e, coordinates.pairs)
        information, products = information + own, products + (scores * w) @ scores.T
    for some in slices_of_rows(len(gaps[0]), size * N_COMPLETIONS, CHUNK):
        own, gained = _of_incomplete(*(part[some] for part in gaps), model, coordinates)
        information, products = information + own, products + gained
    information.flat[n_features * (len(information) + 1) :: len(information) + 1] += (
        coordinates.penalty
    )
    columns = columns_of_parameters(numbers, coordinates.pairs)
    return restricted_curvature(information, products, columns, free, is_symmetric=False)


def completions(codes, weights, model, n_draws):
    """Draws of each distinct row given its observed cells, and how often each counts."""
    data = IncompleteRows(codes, weights, model.n_values)
    described = Model(
        model.log_weight,
        lambda rows, generator: gibbs_complete(model, rows, N_STEPS, generator).codes,
    )
    draws = data.draws(described, n_draws, np.random.default_rng(SEED))
    return np.concatenate(list(draws)), np.tile(data.weights / n_draws, n_draws)


def _of_incomplete(rows, weights, model, coordinates):
    """What some incomplete rows, distinct ones, add to A and to J."""
    m = N_COMPLETIONS
    draws, shares = completions(rows, weights, model, m)
    information, u, e = coordinates.describe(draws, shares)
    w = shares[: len(draws) // m] * m
    scores, mean = _spread(row_scores(u, e, coordinates.pairs), m, w)
    statistics, _ = _spread(coordinates.statistics(u), m, w)
    # The mean of m draws varies by a share of 1/m of what a draw does.
    products = (mean * w) @ mean.T - scores @ scores.T / m
    return information - scores @ statistics.T, products


def _spread(values, m, weights):
    """Deviations of m draws of each row from their mean, scaled for covariances; and the mean."""
    draws = values.reshape(len(values), m, -1)
    mean = draws.mean(axis=1)
    draws -= mean[:, None]
    draws *= np.sqrt(weights / (m - 1))
    return values, mean
