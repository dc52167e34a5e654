"""The covariance of the couplings of numbers: the sandwich of Gaussian scores given categories.

Given the categories x, scores z have means (1, x) β and a covariance Σ. The likelihood of the known
scores has its maximum at the least squares estimate and the covariance of its residuals, whatever
the distribution of these. As E[z - (1, x) β | x] = 0, what a row contributes to these estimates is
not correlated with what it contributes to those of the network of the categories.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from sklearn_boltz.networks.location._fit import fit_one
from sklearn_boltz.networks.location._gaussians import Observed
from sklearn_boltz.networks.location._joint import joint_network
from sklearn_boltz.networks.model._gauge import contrast_basis, state_offsets
from sklearn_boltz.numerics._memory import check_memory
from sklearn_boltz.statistics.covariance._categorical import as_parameters, coupling_places
from sklearn_boltz.statistics.covariance._curvature import CHUNK, SingularInformation

# Steps of Newton's method at most, and the step that ends them, in standard errors.
MAX_STEPS, TOL = 20, 1e-6
# The share of the greatest information, below which a direction has none; the part of a parameter
# along such a direction that is not due to rounding; and the least that a row leaves.
RANK_TOL, UNKNOWN, LEAST_LEFT = 1e-10, 1e-6, 1e-6
# Rows in which a level has a score, at least, for a test of what it does to this score: with the
# jackknife, and without. The score of a single row is fitted, and seems to have no error.
LEAST_ROWS = {True: 3, False: 10}
REMEDY = "Use more rows, or leave out some of the columns of numbers."


def estimate_joint(network, rows, layout, *, jackknife):
    """The joint network where the Gaussian has no penalty.

    Parameters
    ----------
    network : PottsModel
        Of the categories, in the zero-sum gauge.
    rows : Rows
        With one-hot categories.
    layout : JointLayout
    jackknife : bool
        Whether rows contribute how the estimate changes without them.

    Returns
    -------
    estimate : ndarray of shape (n_parameters,)
        In the order of `as_parameters`.
    covariance : ndarray of shape (n_parameters, n_parameters)
        As far as it is due to the Gaussian; NaN where the rows do not determine a parameter.
    rare : ndarray of shape (n_parameters, n_directions)
        How the parameters change with the mean of a score at a level of too few rows.
    """
    problem = Problem.of(rows, layout)
    theta, inverse, unknown = problem.fitted()
    scores = problem.scores(theta, jackknife=jackknife)
    changes = (scores * np.sqrt(problem.weights)[:, None]) @ inverse
    joint = problem.joint(network)
    rare = problem.rare(theta, LEAST_ROWS[bool(jackknife)])
    directions = np.vstack([changes, unknown, rare])
    moved = _derivatives(joint, theta, directions, layout.sizes.sum())
    ends = len(changes), len(changes) + len(unknown)
    moved, gone, rare = np.split(moved, ends)
    gone = np.abs(gone) > UNKNOWN
    covariance = moved.T @ moved
    varies = np.append(problem.basis.any(axis=1), np.ones(len(layout.own), dtype=bool))
    varies = varies[layout.order]
    gone = gone.any(axis=0) | ~as_parameters(np.outer(varies, varies), varies, layout.sizes)
    covariance[gone] = covariance[:, gone] = np.nan
    return joint(theta), covariance, rare.T / np.linalg.norm(rare, axis=1)


def _inverse(information):
    """The inverse where there is information, and the directions without, (n, n_parameters)."""
    scale = np.sqrt(np.maximum(information.diagonal(), 1e-300))
    values, vectors = np.linalg.eigh(information / scale / scale[:, None])
    known, vectors = values > RANK_TOL * values.max(), vectors / scale[:, None]
    return (vectors[:, known] / values[known]) @ vectors[:, known].T, vectors[:, ~known].T


def _derivatives(function, at, directions, size):
    """Those of a vector along some directions, by complex numbers: without loss of digits."""
    step = 1e-30 / np.maximum(np.abs(directions).max(axis=1, keepdims=True), 1e-300)
    n_parts = 1 + len(directions) * size**2 // CHUNK
    parts = zip(np.array_split(directions, n_parts), np.array_split(step, n_parts), strict=True)
    return np.concatenate([function(at + 1j * h * one).imag / h for one, h in parts])


def of_seen_values(rows, codes, n_values):
    """The completions without values that no row has; of incomplete codes, (n, d)."""
    seen = [np.isin(np.arange(q), own) for q, own in zip(n_values, codes.T, strict=True)]
    return rows.take(np.flatnonzero(rows.x @ ~np.concatenate(seen) == 0))


def places_of_categories(coding, layout):
    """Where parameters of the joint network stand among those of the categories, with signs.

    Returns
    -------
    places : ndarray of int of shape (n_parameters,)
        -1 for those of scores.
    signs : ndarray of float64 of shape (n_parameters,)
        By which those of spins become those of their two values.
    """
    d, order, n_scores = len(coding.n_values), layout.order, layout.is_scored.sum()
    if coding.is_binary:
        pairs = np.zeros((d, d), dtype=np.int64)
        pairs[np.triu_indices(d, 1)] = np.arange(d, d * (d + 1) // 2)
        pairs = np.kron(pairs + pairs.T, np.ones((2, 2), dtype=np.int64))
        single = np.repeat(np.arange(d), 2)
        sign = np.tile([-1.0, 1.0], d)
    else:
        pairs = coupling_places(coding.n_values)
        single, sign = np.arange(len(pairs)), np.ones(len(pairs))
    pairs = np.pad(pairs, (0, n_scores), constant_values=-1)[order[:, None], order]
    single = np.pad(single, (0, n_scores), constant_values=-1)[order]
    sign = np.pad(sign, (0, n_scores))[order]
    signs = as_parameters(np.outer(sign, sign), sign, layout.sizes)
    return as_parameters(pairs, single, layout.sizes), signs


class Problem(NamedTuple):
    """Rows of scores given categories, and their log-likelihood by the free parameters of (β, Σ).

    Attributes
    ----------
    rows : Rows
    layout : JointLayout
    basis : ndarray of shape (Q, p - 1)
        Contrasts of the levels that occur.
    design : ndarray of shape (n, p)
        1, and the contrasts of each completion.
    is_free : ndarray of bool of shape (p, n_scores)
        Of β. A score exists only at the last level of its column: its contrasts there are 0.
    """

    rows: object
    layout: object
    basis: np.ndarray
    design: np.ndarray
    is_free: np.ndarray

    @classmethod
    def of(cls, rows, layout):
        """For rows with one-hot categories."""
        occurs = np.split(rows.x.sum(axis=0) > 0, state_offsets(layout.n_values)[1:-1])
        basis = block_diag(*(np.eye(len(o))[:, o] @ contrast_basis([o.sum()]) for o in occurs))
        is_own = (np.abs(basis).T @ layout.own.T) > 0
        is_free = np.vstack([np.ones((1, is_own.shape[1]), dtype=bool), ~is_own])
        n, size = len(rows.z), is_free.sum() + is_own.shape[1] * (is_own.shape[1] + 1) // 2
        check_memory(
            8 * size * (3 * n + 5 * size),
            f"The covariance of {size:,} parameters of numbers",
            "Leave out columns, or use `interaction_scores`, which needs none.",
        )
        return cls(rows, layout, basis, np.column_stack([np.ones(n), rows.x @ basis]), is_free)

    @property
    def weights(self):
        """How often each row counts."""
        return self.rows.weights[self.rows.first]

    def start(self):
        """The estimate by EM."""
        p, n_scores = self.is_free.shape
        if len(self.rows.first) <= p + n_scores:
            raise SingularInformation(REMEDY)
        try:
            one = fit_one(self.rows, 0.0, ridge=0.0)
            scale = np.sqrt(np.maximum(one.covariances[0].diagonal(), 1e-300))
            values = np.linalg.eigvalsh(one.covariances[0] / scale / scale[:, None])
        except np.linalg.LinAlgError as error:
            raise SingularInformation(REMEDY) from error
        if not values.min() > RANK_TOL:
            raise SingularInformation(REMEDY)
        beta = np.vstack([one.intercepts, self.basis.T @ one.slopes.T])
        # As it is at the last levels, where the contrasts of a score's own column are constant.
        beta[0] += (beta[1:] * self.basis[self.layout.last].T).sum(axis=0)
        upper = one.covariances[0][np.triu_indices(n_scores)]
        return np.concatenate([beta[self.is_free], upper])

    def fitted(self):
        """The maximum, the inverse of the information, and the directions without any."""
        theta = self.start()
        for _ in range(MAX_STEPS):
            information = self.information(theta)
            inverse, unknown = _inverse(information)
            step = inverse @ (self.scores(theta).T @ self.weights)
            is_last = step @ information @ step < TOL**2
            theta = theta + step if is_last else self._improved(theta, step)
            if is_last:
                break
        return theta, inverse, unknown

    def _improved(self, theta, step):
        """The first of a step, its half, a quarter and so on that raises the likelihood."""
        value = self._log_likelihood(theta)
        for k in range(MAX_STEPS):
            if self._log_likelihood(theta + step / 2**k) > value:
                return theta + step / 2**k
        return theta

    def _log_likelihood(self, theta):
        beta, covariance = self.gaussian(theta)
        if np.linalg.eigvalsh(covariance)[0] <= 0:
            return -np.inf
        given = Observed(0.0, np.zeros(len(covariance)), covariance, self.rows.z)
        return self.rows.shares([given], self.design @ beta)[1]

    def gaussian(self, theta):
        """β and Σ of parameters, (..., n_parameters)."""
        (p, n_scores), n_free = self.is_free.shape, self.is_free.sum()
        beta = np.zeros((*theta.shape[:-1], p, n_scores), dtype=theta.dtype)
        beta[..., self.is_free] = theta[..., :n_free]
        covariance = np.zeros((*theta.shape[:-1], n_scores, n_scores), dtype=theta.dtype)
        one, other = np.triu_indices(n_scores)
        covariance[..., one, other] = covariance[..., other, one] = theta[..., n_free:]
        return beta, covariance

    def rare(self, theta, least):
        """The parameters that are the mean of a score at a level, if fewer rows have both."""
        shares = self._at(theta)[3] / self.rows.weights
        n_rows = self.rows.x.T @ (shares[:, None] * self.rows.z.known)
        occurs = self.basis.any(axis=1)
        level, score = np.nonzero(occurs[:, None] & ~self.layout.own.T & (n_rows < least))
        ends = state_offsets(self.layout.n_values)
        n_levels = np.add.reduceat(occurs.astype(int), ends[:-1])
        beta = np.zeros((len(level), *self.is_free.shape))
        which, column = np.arange(len(level)), np.searchsorted(ends, level, side="right") - 1
        beta[which, 0, score] = 1 / n_levels[column]
        beta[which, 1:, score] = self.basis[level]
        return np.pad(beta[:, self.is_free], ((0, 0), (0, len(theta) - self.is_free.sum())))

    def joint(self, network):
        """The function from these parameters to those of the joint network."""

        def parameters(theta):
            beta, covariance = self.gaussian(theta)
            slopes = np.swapaxes(beta[..., 1:, :], -1, -2) @ self.basis.T
            found = joint_network(network, beta[..., 0, :], slopes, covariance, self.layout)
            return as_parameters(*found, self.layout.sizes)

        return parameters

    def _at(self, theta):
        """P of patterns, residuals of completions, P times these, and shares."""
        beta, covariance = self.gaussian(theta)
        given = Observed(0.0, np.zeros(len(covariance)), covariance, self.rows.z)
        at = self.design @ beta
        residuals, (shares, _) = given.residuals(at), self.rows.shares([given], at)
        return given.precisions, residuals, given.weighed(residuals), shares[:, 0]

    def _scores(self, theta, jackknife):
        """Of completions, and their shares."""
        precisions, residuals, v, shares = self._at(theta)
        left = np.ones(len(v))
        if jackknife:
            inverse = np.linalg.pinv((self.design * shares[:, None]).T @ self.design)
            left -= ((self.design @ inverse) * self.design).sum(axis=1)
            n_known = np.maximum(shares @ self.rows.z.known, 1)
            left -= (v * residuals / n_known).sum(axis=1)
        far = v / np.maximum(left, LEAST_LEFT)[:, None]
        of_beta = (self.design[:, :, None] * far[:, None, :])[:, self.is_free]
        of_covariance = far[:, :, None] * v[:, None, :] - precisions[self.rows.z.which]
        return np.hstack([of_beta, _folded(of_covariance / 2)]), shares

    def scores(self, theta, *, jackknife=False):
        """Derivatives of the log-likelihood of each row, (n_rows, n_parameters)."""
        scores, shares = self._scores(theta, jackknife)
        return np.add.reduceat(scores * (shares / self.rows.weights)[:, None], self.rows.first)

    def information(self, theta):
        """Minus the second derivatives of the log-likelihood of all rows."""
        precisions, _, v, shares = self._at(theta)
        d, w = self.design, shares[:, None]
        order, ends = self.rows.z.by_pattern
        parts = np.split(order, ends[:-1])
        of_x = np.array([(d[i] * w[i]).T @ d[i] for i in parts])
        cross = np.array([d[i].T @ (w[i] * v[i]) for i in parts])
        # ½ (P E V + V E P - P E P) for a change E, with V the sum of v vᵀ.
        of_v = np.array([v[i].T @ (w[i] * v[i]) for i in parts])
        n = np.array([w[i].sum() for i in parts])
        of_v -= n[:, None, None] * precisions / 2
        free, n_beta = np.flatnonzero(self.is_free), self.is_free.size
        slopes = np.tensordot(of_x, precisions, axes=(0, 0)).transpose(0, 2, 1, 3)
        mixed = np.tensordot(cross, precisions, axes=(0, 0)).transpose(0, 2, 3, 1)
        slopes = slopes.reshape(n_beta, n_beta)[np.ix_(free, free)]
        mixed = _folded(mixed).reshape(n_beta, -1)[free]
        both = np.tensordot(precisions, of_v, axes=(0, 0))
        both = _folded((both + both.transpose(2, 3, 0, 1)).transpose(0, 3, 1, 2) / 2)
        both = _folded(np.moveaxis(both, 2, 0))
        found = np.block([[slopes, mixed], [mixed.T, both]])
        if len(shares) > len(self.rows.first):  # what is not known of missing categories
            scores, _ = self._scores(theta, False)
            means = self.scores(theta)
            found -= (scores * w).T @ scores - (means * self.weights[:, None]).T @ means
        return found


def _folded(values):
    """Derivatives by the upper entries of a symmetric matrix, from those by all, (..., k, k)."""
    one, other = np.triu_indices(values.shape[-1])
    return (values[..., one, other] + values[..., other, one]) / np.where(one == other, 2, 1)
