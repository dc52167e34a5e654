"""Normal scores given categories: a mixture of Gaussians whose means are linear in these.

Some scores of a row may be unknown, or not exist. The Gaussians of a row are the marginals of the
others: of a covariance Σ, rows need the inverse P of the observed block, with 0 elsewhere.
"""

from copy import copy
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from sklearn_boltz.tables._marginals import HALF_LOG_2PI

# Cells of fewer standard deviations than this are their middles, to rounding.
NARROW = 1e-5


class Gaussians:
    """p(z | x) = Σ_c π_c N(z; a_c + B x, Σ_c), with one-hot categories x.

    Parameters
    ----------
    log_weights : ndarray of float64 of shape (n_classes,)
        The ln π_c.
    intercepts : ndarray of float64 of shape (n_classes, n_scores)
        The a_c.
    slopes : ndarray of float64 of shape (n_scores, Q)
        B.
    covariances : ndarray of float64 of shape (n_classes, n_scores, n_scores)
        The Σ_c, positive definite.
    """

    def __init__(self, log_weights, intercepts, slopes, covariances):
        self.log_weights, self.intercepts = log_weights, intercepts
        self.slopes, self.covariances = slopes, covariances

    @property
    def n_classes(self):
        """Number of Gaussians."""
        return len(self.log_weights)

    @property
    def moments(self):
        """E[z | x] at x = 0, and cov[z | x], which is the same for all x."""
        p = np.exp(self.log_weights)
        mean = p @ self.intercepts
        off = self.intercepts - mean
        return mean, np.tensordot(p, self.covariances, axes=1) + (off.T * p) @ off

    def of_classes(self, z):
        """`observed` of each class."""
        return [self.observed(c, z) for c in range(self.n_classes)]

    def observed(self, c, z):
        """One of the Gaussians, given the known scores of rows."""
        return Observed(self.log_weights[c], self.intercepts[c], self.covariances[c], z)


class Scores:
    """Scores of rows, and which of them are known.

    Parameters
    ----------
    values : ndarray of float64 of shape (n, n_scores) or (n, n_scores, 3)
        NaN where a score is not known; perhaps with those at the start and end of whole numbers,
        NaN for other numbers.

    Attributes
    ----------
    ends : ndarray of float64 of shape (n, n_scores, 2) or None
    known : ndarray of bool of shape (n, n_scores)
    patterns : ndarray of bool of shape (n_patterns, n_scores)
        The different rows of `known`.
    which : ndarray of int of shape (n,)
        The pattern of each row.
    """

    def __init__(self, values):
        self.ends = values[..., 1:] if values.ndim == 3 else None
        values = values if self.ends is None else values[..., 0]
        self.values, self.known = values, ~np.isnan(values)
        self.patterns = np.ones((1, values.shape[1]), dtype=bool)
        self.which = np.zeros(len(values), dtype=np.intp)
        if not self.known.all():
            self.patterns, which = np.unique(self.known, axis=0, return_inverse=True)
            self.which = which.ravel()

    def __len__(self):
        return len(self.values)

    @cached_property
    def by_pattern(self):
        """The rows in the order of their patterns, and where each pattern ends."""
        order = np.argsort(self.which, kind="stable")
        return order, np.cumsum(np.bincount(self.which, minlength=len(self.patterns)))

    @cached_property
    def filled(self):
        """The values, 0 where they are not known."""
        return np.where(self.known, self.values, 0.0)

    def take(self, rows):
        """Those of some rows, perhaps more than once."""
        other = copy(self)
        for name in ("by_pattern", "filled"):
            vars(other).pop(name, None)
        other.values, other.known = self.values[rows], self.known[rows]
        other.which = self.which[rows]
        other.ends = None if self.ends is None else self.ends[rows]
        return other


class Observed:
    """The known scores of rows, and one Gaussian.

    Parameters
    ----------
    log_weight : float
    intercept : ndarray of float64 of shape (n_scores,)
    covariance : ndarray of float64 of shape (n_scores, n_scores)
    z : Scores

    Attributes
    ----------
    log_constant : ndarray of float64 of shape (n,)
        ln π N at the mean.
    """

    def __init__(self, log_weight, intercept, covariance, z):
        self.intercept, self.covariance, self.z = intercept, covariance, z
        patterns, self.which = z.patterns, z.which
        whole = self._whole = symmetric(np.linalg.inv(covariance))
        log_det = np.full(len(patterns), np.linalg.slogdet(covariance)[1])
        # Of a pattern, the inverse is that of all scores, less what the unknown ones explain of it.
        self._unknown = []
        n_unknown = (~patterns).sum(axis=1)
        for n in np.unique(n_unknown[n_unknown > 0]):
            own = np.flatnonzero(n_unknown == n)
            places = np.nonzero(~patterns[own])[1].reshape(-1, n)
            inner = whole[places[:, :, None], places[:, None, :]]
            log_det[own] += np.linalg.slogdet(inner)[1]
            self._unknown.append((own, places, symmetric(np.linalg.inv(inner))))
        of_pattern = log_weight - 0.5 * log_det - HALF_LOG_2PI * patterns.sum(axis=1)
        self.log_constant, self._last = of_pattern[self.which], (None, None)

    @cached_property
    def precisions(self):
        """P of each pattern, (n_patterns, n_scores, n_scores)."""
        patterns, whole = self.z.patterns, self._whole
        found = np.where(patterns[:, :, None] & patterns[:, None, :], whole, 0.0)
        for own, places, spreads in self._unknown:
            lines = whole[places] * patterns[own, None, :]
            found[own] -= symmetric(lines.transpose(0, 2, 1) @ (spreads @ lines))
        return found

    def residuals(self, at):
        """z - a - B x where z is known, else 0; `at` is B x, or 0."""
        found = self.z.filled - at
        found -= self.intercept
        found *= self.z.known
        return found

    def _weighed(self, at):
        """r and P r of each row, kept for the next question about the same B x."""
        if self._last[0] is not at:
            residuals = self.residuals(at)
            self._last = at, (residuals, self.weighed(residuals))
        return self._last[1]

    def weighed(self, residuals):
        """P r of each row, 0 where the score is unknown."""
        found = residuals @ self._whole
        if self._unknown:
            order, ends = self.z.by_pattern
            starts, ordered = np.append(0, ends[:-1]), found[order]
            explained = np.zeros_like(found)
            for own, places, spreads in self._unknown:
                for pattern, place, spread in zip(own, places, spreads, strict=True):
                    rows = slice(starts[pattern], ends[pattern])
                    explained[rows, place] = ordered[rows, place] @ spread
            by_row = np.empty_like(found)
            by_row[order] = explained
            found -= by_row @ self._whole
            found *= self.z.known
        return found

    def log_densities(self, at):
        """ln π N(z_o; a_o + B_o x, Σ_oo) of each row."""
        residuals, weighed = self._weighed(at)
        return self.log_constant - 0.5 * (residuals * weighed).sum(axis=1)

    def log_probabilities(self, at):
        """Return `log_densities`, except that with ln T' those of whole numbers sum to 1.

        After all other numbers, whole numbers come one after another. Each has the probability of
        all scores between its ends, given the midpoints of those before it.
        """
        found = self.log_densities(at).copy()
        for pattern, known in enumerate(self.z.patterns if self.z.ends is not None else ()):
            rows = np.flatnonzero(self.which == pattern)
            is_whole = known & ~np.isnan(self.z.ends[rows]).all(axis=(0, 2))
            last = np.flatnonzero(is_whole)
            if len(last):
                order = np.append(np.flatnonzero(known & ~is_whole), last)
                root = np.linalg.cholesky(self.covariance[np.ix_(order, order)])
                off = solve_triangular(root, self._weighed(at)[0][rows][:, order].T, lower=True)
                off, sd = off.T[:, -len(last) :], root.diagonal()[-len(last) :]
                z, ends = self.z.values[rows][:, last], self.z.ends[rows][:, last]
                found[rows] += _instead_of_middles(off, sd, z, ends).sum(axis=1)
        return found

    def means(self, at):
        """E[z | z_o, x] of each row, which is z where that is known."""
        found = self._weighed(at)[1] @ self.covariance
        found += at
        found += self.intercept
        np.copyto(found, self.z.values, where=self.z.known)
        return found

    @cached_property
    def spreads(self):
        """cov[z | z_o, x] of each pattern, 0 where z is known."""
        found = np.zeros((len(self.z.patterns), *self.covariance.shape))
        for own, places, spreads in self._unknown:
            found[own[:, None, None], places[:, :, None], places[:, None, :]] = spreads
        return found

    @property
    def variances(self):
        """var[z_j | z_o, x] of each row."""
        return np.diagonal(self.spreads, axis1=1, axis2=2)[self.which]

    def mean_spread(self, weights):
        """Σ_i w_i cov[z | z_o, x] over the rows."""
        of_pattern = np.bincount(self.which, weights, len(self.z.patterns))
        found, d = np.zeros(self.covariance.size), len(self.covariance)
        for own, places, spreads in self._unknown:
            cells = places[:, :, None] * d + places[:, None, :]
            weighted = spreads * of_pattern[own, None, None]
            found += np.bincount(cells.ravel(), weighted.ravel(), d * d)
        return found.reshape(d, d)

    def sample(self, at, generator):
        """Draws of z from its distribution given z_o and x."""
        noise, drawn = generator.normal(size=self.z.values.shape), self.means(at)
        for pattern in np.flatnonzero(~self.z.patterns.all(axis=1)):
            rows, (variances, axes) = self.which == pattern, np.linalg.eigh(self.spreads[pattern])
            drawn[rows] += noise[rows] @ (axes * np.sqrt(np.maximum(variances, 0))).T
        return np.where(self.z.known, self.z.values, drawn)


def _instead_of_middles(off, sd, z, ends):
    """Correction from ln of N(z) T' to ln of the probability, for each cell, (n, k).

    `off` is how far z is from the mean, in standard deviations `sd`, and `ends` has shape (n, k,
    2).
    """
    given = off[..., None] + (ends - z[..., None]) / sd[:, None]
    start, end = np.moveaxis(given, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = _log_mass(start, end) - _log_mass(*np.moveaxis(ends, -1, 0))
        change += (off**2 - z**2) / 2 + np.log(sd)
        is_wide = (end - start) * (1 + np.abs(off)) > NARROW
    return np.where(is_wide & np.isfinite(change), change, 0.0)


def _log_mass(start, end):
    """ln of the probability of intervals by the standard normal distribution."""
    is_high = start > -end
    start, end = np.where(is_high, -end, start), np.where(is_high, -start, end)
    most = log_ndtr(end)
    return most + np.log(-np.expm1(log_ndtr(start) - most))


def symmetric(matrices):
    """Symmetrise matrices, so that they equal their transposes to the bit."""
    return (matrices + matrices.swapaxes(-1, -2)) / 2
