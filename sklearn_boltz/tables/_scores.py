"""Numbers as normal scores: z = T(x) = Φ⁻¹(F(x)), with a smooth distribution function F.

F is a mixture of a few Gaussians, of x or of ln x, and of a broad part with the weight of one cell
and tails of Lomax, so that a typing error of 1e9 does not outweigh all other rows. Its density is
f(x) = φ(z) T'(x). Of whole numbers, f is the probability of a point, which has scores from a start
to an end; z is the one in the middle. A value that many rows have is an atom, which has no score;
or where its neighbours have many, too, as rounded numbers, a heap: a point with the probability of
all that is closer to it than to its neighbours.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from sklearn_boltz.tables._bins import ROUNDING, Bins
from sklearn_boltz.tables._marginals import (
    HALF_LOG_2PI,
    MOST_GAUSSIANS,
    fewer,
    fit_mixture,
    scaled,
    spikes,
)

# Nodes of the quadrature for means of numbers whose scores are Gaussian.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


class NormalScores(NamedTuple):
    """Normal scores of a column of numbers.

    Attributes
    ----------
    bins : Bins
        Of the same cells: for the probabilities of intervals.
    atoms : ndarray of float64 of shape (n_atoms,)
    heaps : ndarray of float64 of shape (n_heaps, 3)
        Each with the ends of what counts as the same.
    shift : float
        The Gaussians are of ln(x + shift); NaN if they are of x.
    log_weights, means, sds : ndarray of float64 of shape (n_gaussians,)
    broad : ndarray of float64 of shape (3,)
        Of the broad part: ln of its weight, its middle, and its scale.
    values, cuts : ndarray of float64 of shape (n_kept,)
        Training numbers that are no atoms, in order, and the score up to which each of them, or
        what lies between two of them, is drawn.
    plain : NormalScores or None
        Those with a single Gaussian; None if these are so.
    """

    bins: Bins
    atoms: np.ndarray
    heaps: np.ndarray
    shift: float
    log_weights: np.ndarray
    means: np.ndarray
    sds: np.ndarray
    broad: np.ndarray
    values: np.ndarray
    cuts: np.ndarray
    plain: object = None

    @classmethod
    def learn(cls, numbers, weights, bins, most=MOST_GAUSSIANS):
        """Fit F to the numbers that are no atoms; None if fewer than two different ones are left.

        NaN is a missing cell. `weights` say how often each counts, and `bins` are those of the same
        cells; there are at most `most` Gaussians.
        """
        weights = np.ones(len(numbers)) if weights is None else weights
        known = ~np.isnan(numbers) & (weights > 0)
        atoms, heaps = spikes(numbers[known], weights[known], bins)
        known &= ~np.isin(numbers, atoms)
        x, where = np.unique(numbers[known], return_inverse=True)
        if len(x) < 2:
            return None
        x, mass = fewer(x, np.bincount(where, weights[known]))
        n, half = mass.sum(), 0.5 if bins.is_whole else 0.0
        step = 1.0 if bins.is_whole else np.diff(x).min(initial=np.inf) if bins.is_rounded else 0.0
        found = [fit_mixture(x, mass, np.nan, step, most)]
        if x[0] + half > 0:
            found.append(fit_mixture(x, mass, half, step, most))
        bic, shift, *gaussians = min(found, key=lambda candidate: candidate[0])
        gaussians[0] = gaussians[0] + np.log(n / (n + 1))
        middle = x[np.searchsorted(np.cumsum(mass), n / 2)]
        scale = 2 * np.average(np.abs(x / 2 - middle / 2), weights=mass / n)
        broad = np.array([-np.log(n + 1), middle, scale or max(abs(middle), 1.0)])
        up_to = np.cumsum(mass) / n
        cuts = ndtri(up_to if bins.is_rounded else up_to - mass / n / 2)
        plain = cls.learn(numbers, weights, bins, 1) if len(gaussians[0]) > 1 else None
        scores = cls(bins, atoms, heaps, shift, *gaussians, broad, x, cuts, plain)
        if plain is not None:
            # Its scores are not normal, so that shares of cells do not tell where to cut them.
            own, others = scores.transform(x)[0], plain.transform(x)[0]
            plain = plain._replace(cuts=np.interp(cuts, own, others))
            scores = scores._replace(plain=plain)
        return scores

    @property
    def n_parameters(self):
        """Numbers that were fitted."""
        return 3 * len(self.means) - 1

    @property
    def n_levels(self):
        """The atoms, and one level for all other numbers, which is the last."""
        return len(self.atoms) + 1

    def level_names(self, codec=None):
        """Names of the numbers in messages; `codec` is that of the column."""
        names = self.bins.labels(codec)
        atoms = [names[int(k)] for k in self.bins.encode(self.atoms)]
        return [*atoms, "other numbers" if atoms else "numbers"]

    def encode(self, numbers):
        """The level of each number, NaN for NaN."""
        x = np.rint(numbers) if self.bins.is_whole else numbers
        codes = np.full(len(x), self.n_levels - 1.0)
        for code, atom in enumerate(self.atoms):
            codes[x == atom] = code
        return np.where(np.isnan(numbers), np.nan, codes)

    def decode(self, codes, z=None):
        """Numbers of levels and scores, NaN for NaN; without scores, typical numbers."""
        z = np.zeros(len(codes)) if z is None else z
        found = self.inverse(np.nan_to_num(z))
        for code, atom in enumerate(self.atoms):
            found[codes == code] = atom
        return np.where(np.isnan(codes), np.nan, found)

    def of_cells(self, numbers):
        """Scores and ln T' of cells, NaN and 0 for those that are atoms.

        The scores are z, and those at the start and the end of a whole number, NaN for other
        numbers, of shape (n, 3).
        """
        z, log_slope = self.transform(numbers)
        ends = np.full((len(z), 2), np.nan)
        if self.bins.is_whole:
            at = np.rint(np.nan_to_num(numbers))[:, None] + [-0.5, 0.5]
            with np.errstate(over="ignore"):
                ends = self._scores(at.ravel(), *self._log_tails(at.ravel())).reshape(ends.shape)
        is_score = self.encode(numbers) == self.n_levels - 1
        z = np.where(is_score[:, None], np.column_stack([z, ends]), np.nan)
        return z, np.where(is_score, log_slope, 0.0)

    def transform(self, numbers):
        """Scores z = T(x) of numbers, and ln T'(x); NaN and 0 for NaN.

        Of a whole number, T' is its probability, among those that are no atoms, divided by φ(z).
        """
        missing = np.isnan(numbers)
        x = np.where(missing, self.broad[1], numbers)
        x = np.rint(x) if self.bins.is_whole else x
        with np.errstate(over="ignore"):
            log_f = self._log_density(x)
            below, above = self._log_tails(x)
            if self.bins.is_whole:
                below, above, log_f = self._cells(x, x - 0.5, x + 0.5, log_f)
            for value, low, high in self.heaps:
                # What is not the value itself has as much as one cell of all.
                log_f = log_f + self.broad[0] * ((low < x) & (x < high))
                own = x == value
                below[own], above[own], log_f[own] = self._cells(x[own], low, high, log_f[own])
                log_f[own] += np.log1p(-np.exp(self.broad[0]))
        z = self._scores(x, below, above)
        log_slope = log_f + z**2 / 2 + HALF_LOG_2PI - np.log1p(-self._at_atoms.sum())
        return np.where(missing, np.nan, z), np.where(missing, 0.0, log_slope)

    @property
    def _at_atoms(self):
        """Mass of F at atoms of whole numbers, which the others lack: less than 1 in all."""
        if not (self.bins.is_whole and len(self.atoms)):
            return np.zeros(len(self.atoms))
        x = self.atoms
        mass = np.exp(self._cells(x, x - 0.5, x + 0.5, self._log_density(x))[-1])
        return mass * min(1, (1 - 1e-9) / mass.sum())

    def _scores(self, x, below, above):
        """z of numbers, from ln F and ln(1 - F), of which what is at atoms is taken away."""
        mass = self._at_atoms
        if mass.any():
            with np.errstate(divide="ignore"):
                lost = np.log([mass @ (self.atoms[:, None] < x), mass @ (self.atoms[:, None] > x)])
            both = np.array([below, above])
            both += np.log1p(-np.exp(np.minimum(lost - both, -1e-15))) - np.log1p(-mass.sum())
            below, above = both
        is_low = below < above
        z = ndtri_exp(np.minimum(np.where(is_low, below, above), -np.log(2)))
        return np.where(is_low, z, -z)

    def _cells(self, x, start, end, log_f):
        """Compute ln F and ln(1 - F) in the middle of each cell's probability, and ln of that.

        `log_f` takes the place of the mass where its digits are lost.
        """
        (low, low_above), (high, high_above) = (self._log_tails(at + 0 * x) for at in (start, end))
        is_low = high < low_above
        one, other = np.where(is_low, high, low_above), np.where(is_low, low, high_above)
        lost = (one - other) < 1e-7
        with np.errstate(divide="ignore"):
            mass = one + np.log(-np.expm1(np.where(lost, -1.0, other - one)))
        below, above = (
            np.logaddexp(*ends) - np.log(2) for ends in ((low, high), (low_above, high_above))
        )
        return below, above, np.where(lost, log_f, mass)

    def _distances(self, x):
        """Distances: ln of the broad part's, the Gaussians', (n, n_gaussians); and ln dy/dx."""
        _, middle, scale = self.broad
        log_far = np.log(np.abs(x / 2 - middle / 2) + scale / 2) + np.log(2)
        y, log_dy = scaled(x, self.shift)
        t = np.clip(y[:, None] / self.sds - self.means / self.sds, -1e150, 1e150)
        return log_far, t, np.broadcast_to(log_dy, len(x))[:, None]

    def _log_density(self, x):
        """ln f."""
        log_weight, _, scale = self.broad
        log_far, t, log_dy = self._distances(x)
        broad = log_weight + 2 * np.log(scale) - 3 * log_far
        parts = self.log_weights - t**2 / 2 - HALF_LOG_2PI - np.log(self.sds) + log_dy
        return np.logaddexp.reduce(np.column_stack([broad, parts]), axis=1)

    def _log_tails(self, x):
        """ln F and ln(1 - F)."""
        log_weight, middle, scale = self.broad
        log_far, t, _ = self._distances(x)
        log_tail = 2 * np.log(scale) - 2 * log_far - np.log(2)
        ends = np.column_stack([log_tail, np.log1p(-np.exp(log_tail))])
        ends = log_weight + np.where((x < middle)[:, None], ends, ends[:, ::-1])
        parts = (self.log_weights + log_ndtr(sign * t) for sign in (1, -1))
        both = zip(ends.T, parts, strict=True)
        return tuple(np.logaddexp.reduce(np.column_stack(part), axis=1) for part in both)

    def inverse(self, z):
        """Numbers that the training had, or between two of them, from scores."""
        if not self.bins.is_rounded:
            return np.interp(z, self.cuts, self.values)
        return self.values[np.minimum(np.searchsorted(self.cuts, z), len(self.values) - 1)]

    def mean(self, codes, z, variances):
        """Means of numbers of some levels whose scores are Gaussian, with means z."""
        at = z[:, None] + np.sqrt(np.maximum(variances, 0))[:, None] * NODES
        found = self.inverse(at.ravel()).reshape(at.shape) @ NODE_WEIGHTS
        for code, atom in enumerate(self.atoms):
            found[codes == code] = atom
        return found

    @property
    def points(self):
        """The numbers that `decode` makes of levels and scores, or between which it makes them.

        In the latter case, all scores beyond the last cut are the greatest number, which is there
        twice.
        """
        x = np.union1d(self.values, self.atoms)
        last = np.searchsorted(x, self.values[-1])
        return x if self.bins.is_rounded else np.insert(x, last, x[last])

    def up_to(self, codes, z, variances):
        """The probabilities of numbers up to each of `points`, as of `bin_probabilities`."""
        x, values = self.points, self.values
        if self.bins.is_rounded:
            cuts = np.append(-np.inf, self.cuts)[np.searchsorted(values, x, side="right")]
        else:
            cuts = np.interp(x, values, self.cuts, left=-np.inf)
        cuts[np.searchsorted(x, values[-1], side="right") - 1 :] = np.inf
        sd = np.sqrt(np.maximum(variances, 1e-300))
        found = ndtr((cuts - z[:, None]) / sd[:, None])
        for code, atom in enumerate(self.atoms):
            found[codes == code] = x >= atom
        return found

    def quantiles(self, up_to, levels):
        """Quantiles of numbers, of shape (n, n_levels), by the probabilities of `points`."""
        x, last = self.points, len(self.points) - 1
        above = up_to[:, np.newaxis] >= levels[:, np.newaxis] - ROUNDING
        place = np.where(above.any(axis=2), above.argmax(axis=2), last)
        if self.bins.is_rounded:
            return x[place]
        # Between two numbers, unless the upper one is an atom that has the level itself.
        before = np.maximum(place - 1, 0)
        low, high = (np.take_along_axis(up_to, at, axis=1) for at in (before, place))
        share = np.clip((levels - low) / np.maximum(high - low, ROUNDING), 0, 1)
        share = np.where(np.isin(x[place], self.atoms), 1.0, share)
        return x[before] + share * (x[place] - x[before])

    def bin_probabilities(self, codes, z, variances):
        """Probabilities of the bins, (n, n_bins), of numbers with levels and Gaussian scores."""
        ends = self.bins.breaks[np.diff(self.bins.bin_of) != 0]
        for value, low, _ in self.heaps:
            ends = np.where(ends == value, low, ends)
        cuts = self._scores(ends, *self._log_tails(ends))
        sd = np.sqrt(np.maximum(variances, 1e-300))
        up_to = ndtr((cuts - z[:, None]) / sd[:, None])
        p = np.diff(up_to, axis=1, prepend=0.0, append=1.0)
        for code, own in enumerate(self.bins.encode(self.atoms).astype(np.intp)):
            p[codes == code] = np.arange(p.shape[1]) == own
        return p
