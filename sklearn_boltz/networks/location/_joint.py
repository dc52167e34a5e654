"""The network of categories and scores: what each has to do with another given all else.

With Ω = Σ⁻¹, ln p(x) N(z; a + B x, Σ) is, up to constants,

    ½ xᵀ (J - Bᵀ Ω B) x + (h - Bᵀ Ω a)ᵀ x + xᵀ Bᵀ Ω z + (Ω a)ᵀ z - ½ zᵀ Ω z.

Scores are in units of their standard deviations given all else, 1 / √Ω_kk, so that the coupling of
two of them is their partial correlation.
"""

from typing import NamedTuple

import numpy as np

from sklearn_boltz.networks.model._gauge import (
    block_means,
    column_of_state,
    reduce_blocks,
    state_offsets,
)

# In norms, a score counts like a bit of -1 and 1, whose two values have opposite couplings.
SCORE = np.sqrt(2)


class JointLayout(NamedTuple):
    """The entries of each column: its levels, unless a score has a single one, and its score.

    Attributes
    ----------
    n_values : ndarray of int of shape (d,)
        Levels of each column.
    is_scored : ndarray of bool of shape (d,)
    """

    n_values: np.ndarray
    is_scored: np.ndarray

    @property
    def sizes(self):
        """The number of entries of each column."""
        return np.where(self.is_scored & (self.n_values == 1), 0, self.n_values) + self.is_scored

    def entry_names(self, names, table):
        """Names of the entries, a list for each column: ``city=Rome`` and ``age``."""
        found = []
        for j, (name, size) in enumerate(zip(names, self.sizes, strict=True)):
            n_levels = size - self.is_scored[j]
            levels = table.labels(j, np.arange(n_levels))[:n_levels]
            found.append([f"{name}={a}" for a in levels] + [f"{name}"] * int(self.is_scored[j]))
        return found

    @property
    def order(self):
        """The number of each entry among all levels and, after these, all scores."""
        scored = np.flatnonzero(self.is_scored)
        column = np.concatenate([column_of_state(self.n_values), scored])
        kept = np.repeat(~self.is_scored | (self.n_values > 1), self.n_values)
        kept = np.flatnonzero(np.append(kept, np.ones(len(scored), dtype=bool)))
        return kept[np.argsort(column[kept], kind="stable")]

    @property
    def of_scores(self):
        """Which entries are scores, of shape (F,)."""
        return self.order >= self.n_values.sum()

    @property
    def last(self):
        """The last level of the column of each score: the only one at which it exists."""
        return state_offsets(self.n_values)[1:][self.is_scored] - 1

    @property
    def own(self):
        """Which levels are those of a score's own column, (n_scores, Q)."""
        return np.flatnonzero(self.is_scored)[:, None] == column_of_state(self.n_values)


def without_own(intercept, slopes, layout):
    """The Gaussian of the scores that exist, at the last levels of columns: 0 for these."""
    at_last = slopes[np.arange(len(slopes)), layout.last]
    return intercept + at_last, np.where(layout.own, 0.0, slopes)


def joint_network(network, intercept, slopes, covariance, layout):
    """The couplings and intercepts of levels and scores.

    Parameters
    ----------
    network : PottsModel
        In the zero-sum gauge.
    intercept : ndarray of shape (..., n_scores)
        a. There may be several Gaussians, also of complex numbers, for derivatives.
    slopes : ndarray of shape (..., n_scores, Q)
        B, 0 for the levels of a score's own column.
    covariance : ndarray of shape (..., n_scores, n_scores)
    layout : JointLayout

    Returns
    -------
    coupling : ndarray of shape (..., F, F)
        In the layout, symmetric, in the zero-sum gauge; 0 between entries of one column.
    intercept : ndarray of shape (..., F)
        Those of levels at scores of 0.
    """
    column = column_of_state(layout.n_values)
    means = block_means(slopes, layout.n_values)
    intercept, slopes = intercept + means.sum(axis=-1), slopes - means[..., column]
    precision = np.linalg.inv(covariance)
    scale = np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
    weighed, turned = precision @ slopes, np.swapaxes(slopes, -1, -2)
    quadratic, linear = turned @ weighed, weighed / scale[..., None]
    of_levels = np.concatenate([network.coupling - quadratic, linear.swapaxes(-1, -2)], axis=-1)
    partial = -precision / scale[..., None] / scale[..., None, :]
    coupling = np.concatenate([of_levels, np.concatenate([linear, partial], axis=-1)], axis=-2)
    fields = network.intercept - (turned @ (precision @ intercept[..., None]))[..., 0]
    fields = fields - np.diagonal(quadratic, axis1=-2, axis2=-1) / 2
    fields = fields - block_means(fields, layout.n_values)[..., column]
    biases = (precision @ intercept[..., None])[..., 0] / scale
    coupling = (coupling + np.swapaxes(coupling, -1, -2)) / 2  # equal to the bit
    order, column = layout.order, column_of_state(layout.sizes)
    coupling = np.where(column[:, None] == column, 0, coupling[..., order[:, None], order])
    return coupling, np.concatenate([fields, biases], axis=-1)[..., order]


def joint_scores(coupling, layout):
    """The Frobenius norms of the blocks of each pair of columns, (d, d)."""
    length = np.where(layout.of_scores, SCORE, 1.0)
    squares = np.square(coupling * length[:, None] * length)
    return np.sqrt(reduce_blocks(np.add, squares, state_offsets(layout.sizes)[:-1]))
