"""Estimates of tables with numbers: of levels and trends, and of numbers by their normal scores.

Incomplete rows are completed by draws from the network that was fitted to them, which has more
couplings, and a penalty; their numbers are then drawn from the estimates.
"""

from itertools import permutations
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, orth

from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._objective import CategoricalPseudoLikelihood
from sklearn_boltz.networks.model._gauge import block_entries, state_slices
from sklearn_boltz.numerics._memory import check_memory
from sklearn_boltz.statistics.covariance._curvature import (
    SingularInformation,
    columns_of_parameters,
    fitted_curvature,
    free_places,
    sandwiched,
)
from sklearn_boltz.statistics.covariance._mixed import Mixed, ScoreColumn, levels_of, normal_scores
from sklearn_boltz.statistics.covariance._separation import separated_by_contrasts
from sklearn_boltz.tables._cells import columns_of
from sklearn_boltz.tables._frames import some_rows
from sklearn_boltz.tables._values import image_of
from sklearn_boltz.tables._weights import squares_of

# Draws of each incomplete row, at most and at least; all draws, unless these are more; their seed.
MOST_DRAWS, LEAST_DRAWS, MOST_ROWS, SEED = 20, 5, 2**13, 0
# How often missing numbers are drawn anew from the estimates, and these estimated again. Those that
# the network draws for a row agree less with each other and its levels than known ones.
N_REDRAWN = 2
# Of what is left of the variance of a score given the other columns, the least.
LEAST_VARIANCE = 1e-6
# Probability that levels of independent columns go together by accident.
ACCIDENT = 1e-6
# Curvature in ratio to the largest below which the rows tell nothing of a direction; and the least
# part that a parameter has in such directions.
FLAT, FAINT = 1e-8, 1e-2


class TableRows(NamedTuple):
    """Rows of levels and numbers, each complete or completed by draws.

    Attributes
    ----------
    codes : ndarray of int of shape (n, d)
        Of columns of levels.
    numbers : dict of ndarray of float64 of shape (n,)
        Of the other columns.
    known : ndarray of bool of shape (n, d)
        Which cells have been observed.
    weights : ndarray of shape (n,)
        How often each row counts.
    first : ndarray of int or None
        Where the draws of each row begin; None if all rows are complete.
    squares : ndarray of shape (n_rows,)
        Contribution of each row to the variance, as in `Regressions`.
    """

    codes: np.ndarray
    numbers: dict
    known: np.ndarray
    weights: np.ndarray
    first: np.ndarray | None
    squares: np.ndarray

    @classmethod
    def read(cls, network, X, weights):
        """The rows of a table, those that count and have an observed cell."""
        codes, numbers, known = cells_of(network, X)
        kept = np.flatnonzero((weights > 0) & known.any(axis=1))
        has_gaps = ~known[kept].all(axis=1)
        n_draws = np.clip(MOST_ROWS // max(has_gaps.sum(), 1), LEAST_DRAWS, MOST_DRAWS)
        n_each = np.where(has_gaps, n_draws, 1)
        rows = np.repeat(kept, n_each)
        codes, known, first = codes[rows], known[rows], None
        numbers = {j: own[rows] for j, own in numbers.items()}
        if len(rows) > len(kept):
            drawn, first = np.flatnonzero(~known.all(axis=1)), np.cumsum(n_each) - n_each
            filled = network.impute(some_rows(X, rows[drawn]), how="sample", random_state=SEED)
            codes[drawn], others, _ = cells_of(network, filled)
            for j, own in others.items():
                numbers[j][drawn] = own
            is_code = (codes.max(axis=0) > 0) & ~network._encoder.is_number
            obey(codes, known, np.flatnonzero(is_code))
        of_draws, squares = weights[rows] / np.repeat(n_each, n_each), squares_of(weights)[kept]
        return cls(codes, numbers, known, of_draws, first, squares)


def cells_of(network, X):
    """Codes of levels, numbers of the other columns, and which cells have been observed."""
    table, codes = network._encoder, network._codes(X)
    known, numbers = codes >= 0, {}
    for j, (column, (_, cells)) in enumerate(zip(table.columns, columns_of(X), strict=True)):
        if table.is_number[j]:
            numbers[j] = column.finite(cells)
            known[:, j] = ~np.isnan(numbers[j])
    known |= (network.n_values_ == 1) & ~table.is_number
    return np.maximum(codes, 0), numbers, known


def obey(codes, known, columns):
    """Give drawn levels what all observed rows have: a level that goes with one of another column.

    Otherwise the draws alone would tell the couplings of both columns with others apart.
    """
    generator = np.random.default_rng(SEED)
    for j, k in permutations(columns, 2):
        both = known[:, j] & known[:, k]
        found = image_of(codes[both, j], codes[both, k], ACCIDENT)
        if found is None:
            continue
        image = np.full(codes[:, j].max() + 1, -1)
        image[found[0]] = found[1]
        rows = ~known[:, k] & (image[codes[:, j]] >= 0)
        codes[rows, k] = image[codes[rows, j]]
        counts = np.bincount(codes[both, j], minlength=len(image))
        for level in np.unique(codes[both, k]):
            rows = ~known[:, j] & (codes[:, k] == level) & (image[codes[:, j]] != level)
            p = counts * (image == level)
            codes[rows, j] = generator.choice(len(p), rows.sum(), p=p / p.sum())


class NumberEstimates(NamedTuple):
    """The maximum of the pseudo-likelihood of a table with numbers.

    Attributes
    ----------
    mixed : Mixed
        Of the columns that vary.
    kept : ndarray of int
        These columns.
    known : ndarray of bool of shape (n, len(kept))
    first : ndarray of int or None
        As in `TableRows`.
    theta : ndarray of shape (n_parameters,)
    curvature : Curvature
    sizes : ndarray of int of shape (d,)
        How many entries each column has in the results: one for a number.
    """

    mixed: Mixed
    kept: np.ndarray
    known: np.ndarray
    first: np.ndarray | None
    theta: np.ndarray
    curvature: object
    sizes: np.ndarray

    @classmethod
    def of(cls, network, X, weights, free, jackknife, bar):
        """From a fitted network, and the rows of its fit; in two steps of a bar."""
        rows, (d,) = TableRows.read(network, X, weights), network.n_values_.shape
        trends = network._encoder.declared("ordinal")
        columns = [column_of(rows, j, trends[j]) for j in range(d)]
        kept = np.flatnonzero([column is not None for column in columns])
        free, columns = free[np.ix_(kept, kept)], [columns[j] for j in kept]
        check_size(columns)
        mixed = Mixed(columns, rows.weights, free)
        point, information, solve = mixed.fit()
        check_precisions(network, mixed, point.theta, kept)
        if rows.first is not None:
            generator = np.random.default_rng(SEED)
            for _ in range(N_REDRAWN):
                mixed = mixed.redrawn(point.theta, rows.known[:, kept], generator)
                point = mixed.climbed(mixed.at(point.theta), solve)
            point, information, _ = mixed.ended(point)
        theta = point.theta
        bar.update()
        regressions = mixed.regressions(theta, rows.first)
        regressions = regressions._replace(squares=rows.squares)
        of_levels = separated(mixed, theta, free)
        directions = together(of_levels, flat(information, of_levels))
        if rows.first is not None:
            information = information - regressions.missing_information()
        curvature = fitted_curvature(
            information, theta, [regressions], kept, jackknife=jackknife,
            find_separated=lambda _: directions,
            is_symmetric=rows.first is None,
        )  # fmt: skip
        bar.update()
        sizes = np.where(network._encoder.is_number, 1, network.n_values_)
        return cls(mixed, kept, rows.known[:, kept], rows.first, theta, curvature, sizes)

    def results(self):
        """Estimates of all parameters, their covariance, and directions that are separated.

        In the order of `as_parameters`. Scores are in units of their standard deviations given all
        else, so that the coupling of two of them is their partial correlation.
        """
        loadings = self._loadings()
        estimate, unknown = loadings @ self.theta, ~loadings.any(axis=1)
        entries = np.repeat(np.arange(len(self.sizes)), self.sizes)
        own = [np.concatenate([entries, entries[part]]) for part in block_entries(self.sizes)]
        for i, place in self._precisions():
            of_score = (own[0] == self.kept[i]) | (own[1] == self.kept[i])
            loadings[of_score, place] = -estimate[of_score] / (2 * self.theta[place])
        covariance = sandwiched(loadings, self.curvature.covariance())
        covariance[unknown] = covariance[:, unknown] = np.nan
        return estimate, covariance, loadings @ self.curvature.separated

    def _precisions(self):
        """The numbers of the columns of scores, and the places of their precisions in θ."""
        column = self.mixed.column
        return [
            (i, np.flatnonzero(column == i)[1])
            for i, own in enumerate(self.mixed.columns) if isinstance(own, ScoreColumn)
        ]  # fmt: skip

    def _loadings(self):
        """How the results depend on θ, as long as the precisions are what they are."""
        states, column, places = state_slices(self.sizes), self.mixed.column, self.mixed.places
        basis = np.zeros((self.sizes.sum(), len(column)))
        for i, own in enumerate(self.mixed.columns):
            at = np.flatnonzero(column == i)
            rows = np.arange(self.sizes.sum())[states[self.kept[i]]]
            if isinstance(own, ScoreColumn):
                basis[rows, at[0]] = self.theta[at[1]] ** -0.5
            else:
                basis[np.ix_(rows[own.states], at)] = own.basis
        one, other = block_entries(self.sizes)
        loadings = np.zeros((len(basis) + len(one), len(self.theta)))
        loadings[: len(basis), : len(column)] = basis
        for a, b in zip(*self.mixed.pairs, strict=True):
            loadings[len(basis) :, places[a, b]] = basis[one, a] * basis[other, b]
        return loadings


def column_of(rows, j, is_trend):
    """A column of levels or scores; None if it does not vary."""
    known = rows.known[:, j]
    if j in rows.numbers:
        x = rows.numbers[j]
        if len(np.unique(x[known])) < 2:
            return None
        return ScoreColumn(normal_scores(np.where(known, x, np.nan), rows.weights)(x))
    return levels_of(rows.codes[:, j], known, is_trend)


def check_size(columns):
    """Refuse matrices that do not fit into memory."""
    rank = np.array([column.coupled.sum() for column in columns])
    size = sum(len(c.coupled) for c in columns) + (rank.sum() ** 2 - (rank**2).sum()) // 2
    check_memory(
        48 * size**2,
        f"The covariance of {size:,} parameters",
        "Leave out columns, or use `interaction_scores`, which needs none.",
    )


def check_precisions(network, mixed, theta, kept):
    """Refuse numbers that follow from the other columns."""
    for j, i in zip(kept, range(len(kept)), strict=True):
        own = np.flatnonzero(mixed.column == i)
        if isinstance(mixed.columns[i], ScoreColumn) and 1 / theta[own[1]] < LEAST_VARIANCE:
            raise SingularInformation(
                f"The others determine {network._column(j)}: leave it out, or use more rows."
            )


def flat(information, known):
    """Directions of which the rows tell nothing, as columns follow from others.

    None, if they tell of all at right angles to the `known` ones: that takes a tenth of the time.
    """
    scale = np.sqrt(np.maximum(information.diagonal(), np.finfo(np.float64).tiny))
    scaled, inner = information / np.outer(scale, scale), orth(known * scale[:, np.newaxis])
    least = FLAT * np.linalg.norm(scaled)  # at least that of the largest eigenvalue
    try:
        cholesky(scaled + inner @ inner.T - least * np.eye(len(scale)))
    except LinAlgError:
        values, directions = np.linalg.eigh(scaled)
        return orth(directions[:, values < FLAT * values[-1]] / scale[:, np.newaxis])
    return known[:, :0]


def together(*directions):
    """A basis of several subspaces, without what rounding adds to other parameters."""
    found = orth(np.hstack(directions), rcond=FAINT)
    return np.where(np.linalg.norm(found, axis=1, keepdims=True) < FAINT, 0.0, found)


def separated(mixed, theta, free):
    """A basis of the directions in which the maximum is at infinity: of levels alone."""
    of_levels = [i for i, own in enumerate(mixed.columns) if not isinstance(own, ScoreColumn)]
    if not of_levels:
        return np.zeros((len(theta), 0))
    columns = [mixed.columns[i] for i in of_levels]
    trends = np.array([own.is_trend for own in columns])
    codes = np.column_stack([own.own for own in columns]).astype(np.int16)
    sizes = np.array([len(own.basis) for own in columns])
    contrasts = Contrasts(CategoricalPseudoLikelihood(codes, sizes, mixed.weights, trends=trends))
    features = np.flatnonzero(np.isin(mixed.column, of_levels))
    inner = mixed.places[np.ix_(features, features)]
    places = np.append(inner.diagonal(), inner[contrasts.pairs])
    numbers = columns_of_parameters(contrasts.column, contrasts.pairs)
    among = free_places(numbers, free[np.ix_(of_levels, of_levels)])
    fields = [mixed.fields(theta, mixed.column == i) for i in of_levels]
    chances = np.hstack([own.law(field)[0] for own, field in zip(columns, fields, strict=True)])
    point = SimpleNamespace(theta=np.append(theta, 0.0)[places])
    found = separated_by_contrasts(contrasts, point, among, chances)
    whole = np.zeros((len(theta), found.shape[1]))
    whole[places[among]] = found
    return whole
