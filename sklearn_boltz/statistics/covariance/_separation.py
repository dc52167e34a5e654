"""Which parameters the data separate: those whose maximum is at infinity.

A direction in the space of the parameters separates if it never lowers the field of a value that
occurs, against the fields of the column's other values, and raises some. These directions are a
cone. Along it the objective approaches its supremum, so the data tell nothing of the linear span of
the cone, and of all directions at right angles to it what they tell in the limit (C. J. Geyer,
Electronic Journal of Statistics 3, 259–289, 2009).
"""

import numpy as np
from scipy.linalg import null_space, orth, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.optimize import linprog
from scipy.sparse import eye_array, hstack

from sklearn_boltz.networks.model._gauge import column_of_state, state_offsets

# Where the maximum is at infinity, a fit to `tol` leaves less than this to values that do not
# occur. Others may be as improbable: that makes the linear program larger, and changes no result.
IMPROBABLE = 1e-3
# What rounding makes of 0, in ratio to the largest.
ROUNDING = 1e-9
# Entries of a table for a linear program of seconds. From a larger one, all that might be separated
# counts as separated.
MOST_ENTRIES = 300_000


def separated_by_spins(problem, point, places):
    """An orthonormal basis of what binary columns separate, of shape (len(places), k).

    `point` is the maximum of a `PseudoLikelihood`, as far as the fit has come, and `places` are
    those of the free parameters; the others are 0.
    """
    improbable = (problem.spins * point.tanh > 1 - 2 * IMPROBABLE) & (problem.weights > 0)
    if not improbable.any():
        return np.zeros((len(places), 0))
    # Of the other cells any weight will do.
    rest = point._replace(coupling=np.ones_like(point.coupling), tanh=improbable.astype(float))
    blind = blind_directions(problem.information(rest)[np.ix_(places, places)])

    def gains(direction):
        return (problem.spins * problem.fields(*problem.unpack(direction)))[improbable]

    return cone_span(blind, gains, places, point.theta)


def separated_by_contrasts(contrasts, point, places, chances=None):
    """Directions that categorical columns separate, by their contrasts.

    `chances`, (n, Q), take the place of the probabilities at the point.
    """
    codes = contrasts.problem.cells.codes
    chances = contrasts.probabilities(point.theta) if chances is None else chances
    column = column_of_state(contrasts.n_values)
    own = (np.maximum(codes, 0) + state_offsets(contrasts.n_values)[:-1])[:, column]
    others = (own != np.arange(len(column))) & (codes >= 0)[:, column]
    improbable = others & (chances < IMPROBABLE)
    if not improbable.any():
        return np.zeros((len(places), 0))
    rest = np.where(improbable, 0.0, 1.0)
    sums = np.add.reduceat(rest, state_offsets(contrasts.n_values)[:-1], axis=1)
    rest = contrasts.information(point, chances=rest / sums[:, column])
    blind = blind_directions(rest[np.ix_(places, places)])

    def gains(direction):
        fields = contrasts.fields(direction)
        return (np.take_along_axis(fields, own, axis=1) - fields)[improbable]

    return cone_span(blind, gains, places, point.theta)


def blind_directions(information):
    """An orthonormal basis of the directions without information.

    By a Cholesky factor with pivots, which takes a tenth of the time of eigenvectors: what is left
    after the last pivot is 0 to rounding, and the other parameters follow from the first.
    """
    n, scale = len(information), information.diagonal().max(initial=0)
    if not scale:
        return np.eye(n)
    factor, pivots, rank, _ = dpstrf(information, tol=ROUNDING * scale)
    follow = solve_triangular(factor[:rank, :rank], factor[:rank, rank:])
    blind = np.empty((n, n - rank))
    blind[pivots - 1] = np.vstack([-follow, np.eye(n - rank)])
    return np.linalg.qr(blind)[0]


def cone_span(directions, gains, places, theta):
    """A basis of the span of the cone of those directions that have no negative gain.

    `directions`, (len(places), k), are orthonormal, and `gains` a function of a direction in all
    parameters, of which those at `places` are free. `theta` is where the fit has come, perhaps far
    along such a direction.
    """
    if not directions.shape[1]:
        return directions
    whole = np.zeros((directions.shape[1], len(theta)))
    whole[:, places] = directions.T
    table = np.column_stack([gains(direction) for direction in whole])
    table = table.round(9)
    # Equal rows have the same sum by any weights; to sort the rows themselves takes far longer.
    sums = table @ np.random.default_rng(0).normal(size=table.shape[1])
    table = table[np.unique(sums, return_index=True)[1]]
    table = table[table.any(axis=1)]
    if not len(table):  # no row informs them: the information is singular
        return directions[:, :0]
    way = table @ (theta[places] @ directions)
    if (way > ROUNDING * way.max()).all() or table.size > MOST_ENTRIES:
        return directions
    gained = positive_rows(table)
    if not gained.any():
        return directions[:, :0]
    # What gains nothing where the cone does not is the difference of two of its directions.
    return directions @ null_space(table[~gained], rcond=ROUNDING)


def positive_rows(table):
    """Which rows of `table @ x` can be positive while none is negative.

    One linear program: the largest sum of slacks s with table @ x >= s and 0 <= s <= 1. Sums of
    solutions are solutions, and so are multiples: each slack that can be positive is 1.
    """
    n, k = table.shape
    found = linprog(
        np.append(np.zeros(k), -np.ones(n)),
        A_ub=hstack([-table, eye_array(n)], format="csr"),
        b_ub=np.zeros(n),
        bounds=[(None, None)] * k + [(0, 1)] * n,
    )
    return found.x[k:] > 0.5


def empty_pairs(problem, places):
    """Directions that pairs of values that never occur together separate, as above.

    Of their directions, those count that change free parameters only.
    """
    directions = [problem.away(*cell) for cell in problem.empty_cells()]
    fixed = np.delete(np.arange(len(directions[0])), places) if directions else []
    inner = [direction[places] for direction in directions if not direction[fixed].any()]
    return span_of(np.array(inner).T) if inner else np.zeros((len(places), 0))


def span_of(directions):
    """An orthonormal basis of the span of the columns, of which there may be none."""
    return orth(directions, rcond=ROUNDING) if directions.shape[1] else directions
