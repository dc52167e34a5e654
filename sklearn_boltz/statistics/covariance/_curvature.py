"""The information H of an estimate, and the products J of its scores, both summed over the rows.

In coordinates of full rank: b and m of binary columns, contrasts of categorical ones.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from sklearn_boltz.networks.training._objective import parameter_places
from sklearn_boltz.numerics._threads import slices_of_rows

# Entries of a temporary array, and of one that is used again and again.
CHUNK, CACHED = 2**22, 2**16
# Fields of which the exponential is finite, also in sums.
FARTHEST = 700.0
# The share of a row's information that is left out with it: less than all, so that a row which
# alone determines a parameter has a large influence, and not an infinite one.
LEFT_OUT = 1 - 1e-6
# Parts of a unit vector that are not due to rounding.
SEPARATED = 1e-6


class Curvature(NamedTuple):
    """H and J of an estimate.

    Attributes
    ----------
    information : ndarray of shape (n_parameters, n_parameters)
        H, minus the derivative of the sum of the scores, with the penalty.
    products : ndarray of shape (n_parameters, n_parameters)
        J, the sum of the products of the scores of each row.
    columns : ndarray of int of shape (2, n_parameters)
        The two columns of each coupling; of an intercept, one column twice.
    places : ndarray of int of shape (n_parameters,)
        Where they stand among all parameters of the network; the others are 0.
    is_symmetric : bool
        Whether H is.
    separated : ndarray of shape (n_parameters, k) or None
        An orthonormal basis of the directions in which the maximum is at infinity, without a
        penalty.
    is_penalised : bool
        Whether H is regular by a penalty. Otherwise H⁻¹ is that of the directions at right angles
        to the separated ones.
    theta : ndarray of shape (n_parameters,) or None
        The estimate.
    parts : iterable of Regressions
        What H and J were computed from; none of the likelihood.
    inverted : ndarray of shape (n_parameters, n_parameters) or None
        H⁻¹, if it is known.
    """

    information: np.ndarray
    products: np.ndarray
    columns: np.ndarray
    places: np.ndarray
    is_symmetric: bool = True
    separated: np.ndarray | None = None
    is_penalised: bool = False
    theta: np.ndarray | None = None
    parts: Iterable = ()
    inverted: np.ndarray | None = None

    def is_separated(self):
        """Which parameters have their maximum at infinity, of bool."""
        if self.separated is None:
            return np.zeros(len(self.information), dtype=bool)
        return changed(self.separated)

    def solve(self, right):
        """H⁻¹ times a matrix."""
        if self.is_penalised or self.separated is None or not self.separated.size:
            return self._solve(self.information, right)
        # With R at right angles to the separated S, R (Rᵀ H R)⁻¹ Rᵀ is M⁻¹ less its part along S,
        # for M = H + c S Sᵀ.
        s = self.separated
        scale = self.information.diagonal().mean() or 1.0
        found = self._solve(self.information + scale * s @ s.T, np.hstack([right, s]))
        found, along = found[:, : right.shape[1]], found[:, right.shape[1] :]
        return found - along @ np.linalg.solve(s.T @ along, s.T @ found)

    def _solve(self, information, right):
        if not len(information):  # which old LAPACK calls refuse
            return right
        try:
            if self.is_symmetric:
                factor = cho_factor(information, lower=True, check_finite=False)
                return cho_solve(factor, right, check_finite=False)
            return np.linalg.solve(information, right)
        except LinAlgError as error:
            raise SingularInformation from error

    def inverse(self):
        """H⁻¹."""
        identity = np.eye(len(self.information))
        return self.solve(identity) if self.inverted is None else self.inverted

    def covariance(self):
        """H⁻¹ J H⁻ᵀ: as both are sums over the rows, that of the estimate itself."""
        if self.inverted is None:
            covariance = self.solve(self.solve(self.products).T)
        else:
            covariance = self.inverted @ self.products @ self.inverted.T
        known = covariance.diagonal()[~self.is_separated()]
        if not (known > 0).all():
            raise SingularInformation
        return (covariance + covariance.T) / 2

    def effective_parameters(self):
        """tr(H⁻¹ J)."""
        return float(np.trace(self.solve(self.products))) if len(self.products) else 0.0


class Spread(NamedTuple):
    """How the parameters of a network follow from those of a `Curvature`.

    Attributes
    ----------
    loadings : ndarray of shape (n_fitted, n_free) or None
        Of the parameters that are fitted on those that are free; None if they are the same.
    places : ndarray of int of shape (n_fitted,)
        Where they stand among all parameters.
    n_parameters : int
        Of the network.
    """

    loadings: np.ndarray | None
    places: np.ndarray
    n_parameters: int

    def covariance(self, curvature):
        """Covariance of all parameters; NaN where one is not estimated."""
        inner = curvature.covariance()
        if self.loadings is not None:
            inner = sandwiched(self.loadings, inner)
        whole = np.full((self.n_parameters, self.n_parameters), np.nan)
        whole[np.ix_(self.places, self.places)] = inner
        return whole

    def directions(self, curvature):
        """Directions of all parameters in which the maximum is at infinity, (n_parameters, k)."""
        found = curvature.separated
        if found is None:
            return np.zeros((self.n_parameters, 0))
        whole = np.zeros((self.n_parameters, found.shape[1]))
        whole[self.places] = found if self.loadings is None else self.loadings @ found
        return whole


def sandwiched(loadings, covariance):
    """A C Aᵀ for loadings A of values, of which each depends on few parameters."""
    loadings = csr_array(loadings)
    return loadings @ (loadings @ covariance).T


def changed(directions):
    """Which parameters some directions change, from an array of shape (n_parameters, k)."""
    return np.abs(directions).max(axis=1, initial=0) > SEPARATED


REMEDY = (
    "Merge or leave out values that hardly occur, or set alpha to a number above 0: with "
    "alpha='auto', standard errors are those without a penalty."
)


class SingularInformation(ValueError):
    """The data do not determine all parameters."""

    def __init__(self, remedy=REMEDY):
        super().__init__(
            "The information matrix is singular: the data do not determine all parameters. "
            f"{remedy}"
        )


class Regressions(NamedTuple):
    """Each column's regression on the others, of which the pseudo-likelihood is the sum.

    A column is one real-valued feature, or some.

    Attributes
    ----------
    column : ndarray of int of shape (D,)
        The column of each feature.
    pairs : (ndarray of int, ndarray of int)
        The features whose products have a coupling.
    features : ndarray of shape (n, D)
        0 for a missing cell.
    residuals : ndarray of shape (n, D)
        What the features exceed their conditional means by; 0 for a missing cell.
    weights : ndarray of shape (n,)
        How often each row counts.
    spread : callable
        From a slice of the rows to the conditional covariances of the features, (n, D, D).
    law : callable
        From a column to the conditional probabilities of its states, (n, q), and the features of
        these, (q, k).
    first : ndarray of int or None
        If these are completions, those of an incomplete row one after another, where they begin.
    squares : ndarray of float64 of shape (n_rows,) or None
        What each row, of which there may be completions, contributes to the variance: the sum of
        the squares of its weights. None for counts, of which each contributes 1.
    """

    column: np.ndarray
    pairs: tuple
    features: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray
    spread: Callable
    law: Callable
    first: np.ndarray | None = None
    squares: np.ndarray | None = None

    @classmethod
    def of_spins(cls, problem, point):
        """Regressions at a point of a `PseudoLikelihood`."""
        n = problem.n_rows
        spins, tanh = problem.spins[:, :n].T, point.tanh[:, :n].T

        def spread(rows):
            x, mean = spins[rows], tanh[rows]
            return np.eye(x.shape[1]) * ((1 - mean**2) * np.abs(x))[:, None]

        def law(column):
            mean = tanh[:, column]
            return np.array([1 - mean, 1 + mean]).T / 2, np.array([[-1.0], [1.0]])

        d = spins.shape[1]
        pairs = np.triu_indices(d, 1)
        return cls(np.arange(d), pairs, spins, spins - tanh, problem.weights[:n], spread, law)

    @classmethod
    def of_contrasts(cls, contrasts, point):
        """Regressions at a point of `Contrasts`."""
        residuals, chances = contrasts.residuals(point.theta), contrasts.probabilities(point.theta)
        known = (contrasts.problem.cells.codes >= 0)[:, contrasts.column]
        own = contrasts.column[:, None] == contrasts.column

        def spread(rows):
            return moments(chances[rows], contrasts.basis)[1] * own * known[rows, :, None]

        def law(column):
            states = contrasts.states[column]
            return chances[:, states], contrasts.basis[states, contrasts.column == column]

        which = contrasts.column, contrasts.pairs
        return cls(*which, contrasts.features, residuals, contrasts.weights, spread, law)

    def score_products(self, inverse=None):
        """Σ_i w_i s_i s_iᵀ, s_i the mean over completions; with H⁻¹, of rows that are left out.

        With w_i² in place of w_i where the weights are no counts.
        """
        rows = self if self.first is None else self.rows()
        residuals = rows.residuals if inverse is None else rows.left_out_residuals(inverse)
        if self.first is not None:
            scores = self._means(row_scores(self.features, self.residuals, self.pairs))
            more = row_scores(rows.features, residuals - rows.residuals, self.pairs)
            scores += more * np.sqrt(rows.weights)
            scores *= np.sqrt(rows._each())
            return scores @ scores.T
        n_parameters = len(self.column) + len(self.pairs[0])
        products = np.zeros((n_parameters, n_parameters))
        for some in slices_of_rows(len(residuals), n_parameters, CHUNK):
            scores = row_scores(self.features[some], residuals[some], self.pairs)
            scores *= np.sqrt((self.weights * self._each())[some])
            products += scores @ scores.T
        return products

    def _each(self):
        """The weight of each of the rows that have been merged to one."""
        if self.squares is None:
            return np.ones(len(self.weights))
        return self.squares / np.where(self.weights > 0, self.weights, 1)  # 0 if there are no rows

    def rows(self):
        """The rows in place of their completions: means, as far as leverages go.

        A column has no information in a row where it is missing, nor have its deviations from
        their mean about the couplings of others.
        """
        weights = np.add.reduceat(self.weights, self.first)
        features, residuals = (
            (self._means(values.T) / np.sqrt(weights)).T
            for values in (self.features, self.residuals)
        )
        ends = np.append(self.first, len(self.weights))
        lowest, highest = (
            of.reduceat(self.features, self.first) for of in (np.minimum, np.maximum)
        )
        known = lowest == highest

        def spread(some):
            inner = slice(ends[some.start], ends[min(some.stop, len(weights))])
            shares = self.weights[inner] / np.repeat(weights[some], np.diff(ends)[some])
            whole = self.spread(inner) * shares[:, None, None]
            whole = np.add.reduceat(whole, self.first[some] - inner.start)
            return whole * (known[some, None] & known[some, :, None])

        return self._replace(
            features=features, residuals=residuals, weights=weights, spread=spread, first=None
        )

    def _means(self, values):
        """Means over the completions of each row, times √w_i, from values of shape (k, n)."""
        total = np.add.reduceat(values * self.weights, self.first, axis=1)
        return total / np.sqrt(np.add.reduceat(self.weights, self.first))

    def missing_information(self):
        """Σ_i w_i Cov(s_i, t), the covariance over completions with the sufficient statistics."""
        scores = row_scores(self.features, self.residuals, self.pairs)
        (r, s), u = self.pairs, np.ascontiguousarray(self.features.T)
        statistics = np.concatenate([u, u[r] * u[s]])
        means = self._means(scores) @ self._means(statistics).T
        scores *= self.weights
        return scores @ statistics.T - means

    def falls(self, column, lines):
        """How far the terms of a column fall, and parabolas do, as its fields change; (2, n_lines).

        Less what they fall by the slope at the estimate, which all terms together do not have.
        `lines`, (n_lines, k, D), say how the K of its k features and all others change, and how
        their η do.
        """
        own, slopes, (p, features) = self.column == column, lines.copy(), self.law(column)
        slopes[..., own] = 0
        intercepts = np.diagonal(lines[..., own], axis1=1, axis2=2)
        # The fields of all states but the first, less that of the first.
        features = features[1:] - features[0]
        slopes = np.einsum("qk,lkd->qdl", features, slopes)
        intercepts = (features @ intercepts.T)[:, None]
        known, total = self.features[:, own].any(axis=1) * self.weights, np.zeros((2, len(lines)))
        for rows in slices_of_rows(len(p), len(lines) * len(features), CACHED):
            first, chances = p[rows, :1], p[rows, 1:].T[:, :, None]
            field = (self.features[rows] @ slopes + intercepts).clip(-FARTHEST, FARTHEST)
            mean = (chances * field).sum(axis=0)
            total[1] += known[rows] @ ((chances * field**2).sum(axis=0) - mean**2) / 2
            total[0] += known[rows] @ (np.log(first + (chances * np.exp(field)).sum(axis=0)) - mean)
        return total

    def left_out_residuals(self, inverse):
        """Residuals whose scores are H (H - H_i)⁻¹ s_i, H_i the information of row i itself.

        Of s_i = Z_i e_i and H_i = Z_i W_i Z_iᵀ, one column of Z_i a feature: they are (I - W_i Z_iᵀ
        H⁻¹ Z_i)⁻¹ e_i. `inverse` is the symmetric part of H⁻¹, 0 for parameters that are not free.
        """
        d = len(self.column)
        places = parameter_places(d, self.pairs)
        own = self.column[:, None] == self.column
        inverse = np.pad(inverse.astype(np.float32), (0, 1))  # 0 where there is no coupling
        residuals = np.empty_like(self.residuals)
        for rows in slices_of_rows(len(residuals), d * d, CHUNK):
            u = self.features[rows].astype(np.float32)
            z = np.where(own, np.eye(d, dtype=np.float32), u[:, None])
            leverage = np.empty((len(u), d, d))
            for r in range(d):
                later = inverse[places[r][:, None], places[r:].reshape(1, -1)]
                solved = (z[:, r] @ later).reshape(len(u), d - r, d)
                leverage[:, r, r:] = np.einsum("nsb,nsb->ns", solved, z[:, r:])
                leverage[:, r:, r] = leverage[:, r, r:]
            share = LEFT_OUT * self._each()[rows]
            left = np.eye(d) - share[:, None, None] * (self.spread(rows) @ leverage)
            residuals[rows] = np.linalg.solve(left, self.residuals[rows, :, None])[..., 0]
        return residuals


def moments(chances, basis):
    """Means of contrasts, (n, k), and their covariances, (n, k, k)."""
    mean, (q, k) = chances @ basis, basis.shape
    products = (basis[:, :, None] * basis[:, None]).reshape(q, k * k)
    both = (chances @ products).reshape(len(chances), k, k)
    return mean, both - mean[:, :, None] * mean[:, None]


def row_scores(features, residuals, pairs):
    """∂/∂θ of each row's log pseudo-likelihood, of shape (n_parameters, n)."""
    (r, s), u, e = pairs, np.ascontiguousarray(features.T), np.ascontiguousarray(residuals.T)
    scores = np.empty((len(e) + len(r), e.shape[1]))
    scores[: len(e)] = e
    both = scores[len(e) :]
    np.multiply(e[r], u[s], out=both)
    both += u[r] * e[s]
    return scores


def fitted_curvature(
    information,
    theta,
    parts,
    numbers,
    free=None,
    *,
    jackknife=False,
    find_separated=None,
    is_symmetric=True,
):
    """H and J of the free parameters of a network, from the regressions of some rows each.

    `numbers` are those of the columns in the whole table; `free`, (n_features, n_features), tells
    which couplings are not 0, and is None for all. With `jackknife`, the score s_i of a row is H (H
    - H_i)⁻¹ s_i, so that H⁻¹ J H⁻¹ is the sum of the squared changes of the estimate when each row
    is left out, by one step of Newton's method; rows that were completed are left out by the means
    of their completions. `find_separated` makes of the places of the free parameters a basis of the
    directions that are separated.
    """
    one = next(iter(parts))
    columns = columns_of_parameters(numbers[one.column], one.pairs)
    places = free_places(columns, free)
    block = np.ix_(places, places)
    separated = None if find_separated is None else find_separated(places)
    found = Curvature(
        information[block],
        np.empty((0, 0)),
        columns[:, places],
        places,
        is_symmetric,
        separated,
        theta=theta[places],
        parts=parts,
    )
    if jackknife:
        whole, found = np.zeros_like(information), found._replace(inverted=found.inverse())
        whole[block] = (found.inverted + found.inverted.T) / 2
    products = sum(part.score_products(whole if jackknife else None) for part in parts)
    return found._replace(products=products[block])


def columns_of_parameters(columns, pairs):
    """The two columns of each parameter, (2, n_parameters), from those of the features."""
    return np.array([np.append(columns, columns[pair]) for pair in pairs])


def free_places(columns, free):
    """Which parameters are free, from their two columns and the couplings that are."""
    i, j = columns
    return np.flatnonzero((i == j) | (True if free is None else free[i, j]))
