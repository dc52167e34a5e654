"""Functions of the states of a column: of each value, or smooth ones where values have an order.

A network has couplings of such functions φ, J_jl(a, b) = φ_j(a) · K_jl φ_l(b). With orthonormal
ones, of which the first are the smoothest, one variance of all entries of K is a prior of smooth
couplings.
"""

from typing import NamedTuple

import numpy as np

# Functions of values without an order at most: rare values have one together.
MOST_VALUES = 256
# Hats of a column, at quantiles of its states, of all columns together, about, and rows for each.
# Where the cube root of the rows is more than `MANY_KNOTS`, it is so many, up to `MOST_KNOTS`.
FEWEST_KNOTS, MANY_KNOTS, MOST_KNOTS, MOST_HATS, ROWS_PER_KNOT = 4, 16, 25, 320, 10
# How much less rough functions have than smooth ones, before this is estimated: a function of
# roughness r counts 1 / (1 + TAU r) times.
TAU = 0.3
# Eigenvalues of functions that are the same on all states, in ratio to the greatest.
SAME = 1e-9


class Basis(NamedTuple):
    """Functions of the states of a column, whose mean over the rows is 0.

    Attributes
    ----------
    features : ndarray of float64 of shape (n_groups, n_features)
    order : ndarray of int of shape (n_features,)
        Of smooth functions their place from the smoothest, 0, on; of values without an order -1.
    shares : ndarray of float64 of shape (n_groups,)
        Of the rows.
    group : ndarray of int of shape (n_states,)
        Of each state. Rare values without an order are one group, all others have their own.
    within : ndarray of float64 of shape (n_states,)
        The share of each state in its group.
    """

    features: np.ndarray
    order: np.ndarray
    shares: np.ndarray
    group: np.ndarray
    within: np.ndarray

    @property
    def is_nominal(self):
        """Whether values have no order."""
        return self.order[0] < 0


def of_values(shares):
    """A function for each value, 1 there and 0 elsewhere, centred; rare ones have one together."""
    group, own = np.full(len(shares), min(len(shares), MOST_VALUES) - 1), np.arange(len(shares))
    if len(shares) > MOST_VALUES:
        own = np.sort(np.argsort(-shares, kind="stable")[: MOST_VALUES - 1])
    group[own] = np.arange(len(own))
    of_groups = np.bincount(group, shares)
    features = np.eye(len(of_groups)) - of_groups
    return Basis(features, np.full(len(features), -1), of_groups, group, shares / of_groups[group])


def n_knots(n_columns, n_rows):
    """The number of knots of each of this many columns with an order, at most."""
    many = np.clip(np.cbrt(n_rows), MANY_KNOTS, MOST_KNOTS)
    most = np.clip(n_rows / ROWS_PER_KNOT, FEWEST_KNOTS - 1, many)
    return int(np.clip(MOST_HATS / max(n_columns, 1), FEWEST_KNOTS, most))


def n_features(kinds, n_values, n_rows):
    """The number of functions of all columns, about, of which each has a kind and some values."""
    is_nominal = np.array(kinds) == "nominal"
    most = np.where(is_nominal, MOST_VALUES, n_knots((~is_nominal).sum(), n_rows))
    return np.minimum(n_values, most).sum()


def of_order(shares, positions, most_knots=MANY_KNOTS):
    """Smooth functions of states at some positions, linear between knots.

    Functions f = Σ_m c_m hat_m have the roughness Σ (c_m - 2 c_{m+1} + c_{m+2})². Those of the
    basis have the variance 1 and are uncorrelated, and each is the smoothest of such.
    """
    hats = hats_at(positions, knots_of(shares, positions, most_knots))
    return _of_hats(hats, shares, lambda values: values)


def of_cycle(shares, positions, most_knots=MANY_KNOTS):
    """Functions of states on a circle, in turns from 0 to 1: the last is next to the first.

    With equal shares, they are sines and cosines.
    """
    knots = knots_of(shares, positions, most_knots)
    hats = hats_at(positions, np.append(knots, knots[0] + 1))
    hats[:, 0] += hats[:, -1]
    around = np.arange(-1, len(knots) + 1) % len(knots)
    return _of_hats(hats[:, :-1], shares, lambda values: values[around])


def _of_hats(hats, shares, wrapped):
    """The basis of combinations of hats; `wrapped` has their values with those around the ends."""
    hats = hats - shares @ hats
    variance, vectors = np.linalg.eigh((hats * shares[:, None]).T @ hats)
    kept = variance > SAME * variance[-1]
    whitened = vectors[:, kept] / np.sqrt(variance[kept])
    bends = np.diff(wrapped(whitened), n=2, axis=0)
    roughness, vectors = np.linalg.eigh(bends.T @ bends)
    features = hats @ whitened @ vectors / np.sqrt(1 + TAU * np.maximum(roughness, 0))
    n_states, n_features = features.shape
    return Basis(features, np.arange(n_features), shares, np.arange(n_states), np.ones(n_states))


def knots_of(shares, positions, most_knots):
    """Quantiles of the states, with the first and the last; all if they are few."""
    if len(positions) <= most_knots:
        return positions
    up_to = np.cumsum(shares)
    places = np.searchsorted(up_to, np.linspace(0, up_to[-1], most_knots)[1:-1])
    return np.unique(positions[np.concatenate([[0], places, [len(positions) - 1]])])


def hats_at(x, knots):
    """Hat functions of the knots at x: 1 at a knot, 0 at others, and linear between."""
    place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    above = (x - knots[place]) / (knots[place + 1] - knots[place])
    hats, rows = np.zeros((len(x), len(knots))), np.arange(len(x))
    hats[rows, place], hats[rows, place + 1] = 1 - above, above
    return hats
