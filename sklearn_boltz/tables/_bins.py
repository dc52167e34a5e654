"""Numbers in bins: p(x) = P(bin) f(x | bin), where a model of codes has P and this file has f.

The line is divided into pieces, one after another. Each belongs to a bin and has a share of it,
spread evenly, in the two outermost with a tail (of Lomax: a typing error of 1e9 does not outweigh
all other rows). A value that many rows have is an atom: a point that has a share of its own. Of
whole numbers, f is a probability, else a density.
"""

from typing import NamedTuple

import numpy as np

# Bins of n rows: 2 n^(1/4), within these bounds. By half as many again, the likelihood of new rows
# rises by .02 to .05 nats, of the form of marginals. Other cells are not predicted better, samples
# are no more like rows, and fits take one and a half to two times as long.
LEAST, MOST = 8, 32
# Models that are smooth functions of the bins take more of them, cells of about 16 rows each.
CELLS, ROWS_PER_CELL = 64, 16
# Of all columns together, about.
ALL_CELLS = 2048
# Numbers of a bin that are kept for samples: quantiles of its training cells.
N_KEPT = 64
LEVELS = np.linspace(0, 1, N_KEPT)
# Pieces inside of a bin at most, and different numbers for each of them at least.
PIECES = 8
# Different numbers, such as prices, that have a bin each if they have this many cells on average.
MOST_APART, CELLS_APART = 20, 20
# A value of more than this share of the cells is an atom, whatever the number of bins: likelihoods
# of two models of a column must have the same measure.
ATOM = 0.1
# Numbers of an outermost bin are in its tail from a gap on: where one is this many times as far
# from the next bin as the one before.
FAR = 4
# By which sums of probabilities may be off.
ROUNDING = 1e-12


def most_bins(most, n_columns):
    """Bins of each of this many columns at most, where a model takes `most` of a column."""
    return most if most <= MOST else max(min(most, ALL_CELLS // n_columns), MOST)


class Bins(NamedTuple):
    """Bins of a column of numbers.

    Attributes
    ----------
    breaks : ndarray of float64 of shape (n_pieces - 1,)
        Where one piece ends and the next begins; of whole numbers, halves.
    bin_of : ndarray of int of shape (n_pieces,)
        The bin of each piece.
    log_height : ndarray of float64 of shape (n_pieces,)
        ln of the share of a piece divided by its width, or by how many whole numbers it has; of
        the outermost ones, ln of their share.
    scales : ndarray of float64 of shape (2,)
        Of the tails below the first break and above the last one.
    atoms : ndarray of float64 of shape (n_atoms,)
    log_share : ndarray of float64 of shape (n_atoms,)
        Of the atoms, in their bins.
    values : ndarray of float64 of shape (n_bins, N_KEPT)
        Quantiles of the training cells of each bin, from the least to the greatest.
    means : ndarray of float64 of shape (n_bins,)
        Of the training cells of each bin, except for those beyond gaps.
    is_whole, is_rounded : bool
        Whether all training cells are whole numbers; whether many are equal.
    """

    breaks: np.ndarray
    bin_of: np.ndarray
    log_height: np.ndarray
    scales: np.ndarray
    atoms: np.ndarray
    log_share: np.ndarray
    values: np.ndarray
    means: np.ndarray
    is_whole: bool
    is_rounded: bool

    @classmethod
    def learn(cls, numbers, weights=None, most=MOST, n_atoms=LEAST):
        """Bins of about the same number of training cells, of which one at least is finite.

        `weights` say how often each cell counts. There are at most `most` bins, 2 or more, except
        for atoms and what lies between two of them; with more than `MOST`, they are cells of
        `ROWS_PER_CELL` rows where there are enough. If there are no more different numbers than
        `n_atoms`, all are atoms.
        """
        weights = np.ones(len(numbers)) if weights is None else weights
        known = ~np.isnan(numbers) & (weights > 0)
        x, where = np.unique(numbers[known], return_inverse=True)
        mass = np.bincount(where, weights[known])
        is_whole = bool((x == np.floor(x)).all() and np.abs(x).max() < 2**50)
        is_rounded = bool(is_whole or len(x) < 0.9 * mass.sum())
        codes, is_atom = _grouped(x, mass, most, n_atoms)
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        cells, counts = np.split(x, first[1:]), np.split(mass, first[1:])
        groups = zip(cells, counts, strict=True)
        values = np.array([_kept(own, of_own, is_rounded) for own, of_own in groups])
        cells, counts, in_tails = _without_tails(cells, counts)
        means = _sums(np.concatenate(cells) * np.concatenate(counts), cells) / _sums(counts, cells)
        pieces = _pieces(x, mass, cells, counts, in_tails, is_atom[first], is_whole)
        return cls(*pieces, values, np.clip(means, *values[:, [0, -1]].T), is_whole, is_rounded)

    @property
    def n_bins(self):
        """Number of bins."""
        return len(self.means)

    @property
    def typical(self):
        """A number of each bin that training cells have: their median."""
        return self.values[:, N_KEPT // 2]

    def labels(self, codec=None):
        """Names of the bins, by their smallest and largest training cells.

        `codec` is that of the column.
        """
        ends = self.values[:, [0, -1]]
        shown = np.char.mod("%.15g" if self.is_whole else "%.4g", ends)
        if codec is not None:
            shown = codec.names(ends)
        elif len(np.unique(shown)) < len(np.unique(ends)):
            shown = ends.astype(str)
        shown = shown.tolist()
        names = [low if low == high else f"{low} to {high}" for low, high in shown]
        if len(names) > 1:
            names[0] = names[0] if ends[0, 0] == ends[0, 1] else f"up to {shown[0][1]}"
            names[-1] = names[-1] if ends[-1, 0] == ends[-1, 1] else f"from {shown[-1][0]}"
        return names

    def encode(self, numbers):
        """The bin of each number, NaN for NaN."""
        codes = self.bin_of[self._place(numbers)[1]].astype(np.float64)
        return np.where(np.isnan(numbers), np.nan, codes)

    def _place(self, numbers):
        """Numbers as the bins take them, and the piece of each; any for NaN."""
        x = np.nan_to_num(np.rint(numbers) if self.is_whole else numbers)
        return x, np.searchsorted(self.breaks, x, side="right")

    def log_density(self, numbers):
        """ln f(x | the bin of x) of each number, 0 for NaN; of whole numbers, a probability.

        Other numbers in a column of whole ones are rounded.
        """
        x, piece = self._place(numbers)
        found = self.log_height[piece]
        for end, is_there in ((0, piece == 0), (-1, piece == len(self.breaks))):
            found[is_there] += self._tail(x[is_there], self.breaks[end], self.scales[end])
        if len(self.atoms):
            nearest = np.minimum(np.searchsorted(self.atoms, x), len(self.atoms) - 1)
            found = np.where(self.atoms[nearest] == x, self.log_share[nearest], found)
        return np.where(np.isnan(numbers), 0, found)

    def _tail(self, x, end, scale):
        """ln f of numbers beyond the last break, where P(distance > d) is 1 / (1 + d / scale)²."""
        if not self.is_whole:
            beyond = np.log(np.abs(x / 2 - end / 2) + scale / 2) + np.log(2)
            return np.log(2) + 2 * np.log(scale) - 3 * beyond
        at, after = (scale + np.abs(x - end) + step for step in (-0.5, 0.5))
        return 2 * np.log(scale) - 2 * np.log(at) - np.log(after) + np.log1p(at / after)

    @property
    def mean_log_density(self):
        """The mean of ln f over the training cells of each bin, from those that are kept."""
        return self.log_density(self.values.ravel()).reshape(self.values.shape).mean(axis=1)

    def sample(self, codes, uniform):
        """A number of each bin: one of its training cells, or between two of them.

        `uniform` are random numbers in [0, 1), one for each of the codes.
        """
        if self.is_rounded:
            return self.values[codes, (uniform * N_KEPT).astype(np.intp)]
        place = uniform * (N_KEPT - 1)
        below = place.astype(np.intp)
        one, other = self.values[codes, below], self.values[codes, below + 1]
        return one + (place - below) * (other - one)

    def quantiles(self, probability, levels):
        """Quantiles of numbers, of shape (n_samples, n_levels), by the probability of each bin."""
        return self.sample(*quantile_places(probability, levels))


def quantile_places(probability, levels):
    """The codes of quantiles, by the probability of each code, and where they are inside.

    Both are of shape (n_samples, n_levels); the latter are shares of the probability of the code.
    """
    up_to = np.cumsum(probability, axis=1)
    codes = (up_to[:, np.newaxis] < levels[:, np.newaxis] - ROUNDING).sum(axis=2)
    codes = np.minimum(codes, probability.shape[1] - 1)
    share = np.take_along_axis(probability, codes, axis=1)
    above = np.take_along_axis(up_to, codes, axis=1) - levels
    return codes, np.clip(1 - above / np.maximum(share, ROUNDING), 0, np.nextafter(1, 0))


def spread_evenly(codes, generator):
    """Random numbers in [0, 1), of which those of equal codes are spread evenly, in random order.

    Of n, one is in each n-th of the interval. So a column of drawn numbers differs from the one of
    the training by the noise of its codes alone, not by that of which cells of a bin were drawn.
    """
    order = np.lexsort([generator.random(len(codes)), codes])
    n_each = np.bincount(codes)
    place = np.empty(len(codes))
    place[order] = np.arange(len(codes)) - (np.cumsum(n_each) - n_each)[codes[order]]
    found = (place + generator.random(len(codes))) / n_each[codes]
    return np.minimum(found, np.nextafter(1, 0))  # sums may be rounded


def _grouped(x, mass, most, n_atoms):
    """The bin of each different number, in order, and whether it is an atom."""
    n = mass.sum()
    most_apart = most if most > MOST else min(most, MOST_APART)
    if n_atoms < len(x) <= min(most_apart, n / CELLS_APART):
        return np.arange(len(x)), mass > ATOM * n  # atoms do not depend on the number of cells
    by_rows = n / ROWS_PER_CELL if most > MOST else min(2 * n**0.25, MOST)
    most = min(most, max(round(by_rows), LEAST))
    is_atom = np.full(len(x), True) if len(x) <= n_atoms else mass > ATOM * n
    if is_atom.all():
        return np.arange(len(x)), is_atom
    others = np.where(is_atom, 0, mass)
    per_bin = others.sum() / max(most - is_atom.sum(), 1)
    # Of the numbers between two atoms, as many bins as their cells are worth.
    run = np.cumsum(is_atom)
    in_run = np.bincount(run, others)
    before = np.cumsum(in_run) - in_run
    middle = np.cumsum(others) - others / 2 - before[run]
    n_bins = np.maximum(np.rint(in_run / per_bin), 1)
    with np.errstate(invalid="ignore"):
        own = np.floor(middle / in_run[run] * n_bins[run])
    own = np.where(is_atom, -1, own)
    is_first = (np.diff(run, prepend=-1) != 0) | (np.diff(own, prepend=-2) != 0)
    return np.cumsum(is_first) - 1, is_atom


def _kept(cells, mass, is_rounded):
    """N_KEPT quantiles of sorted numbers, from first to last; real ones are interpolated."""
    up_to = np.cumsum(mass)
    if not is_rounded:
        middle = up_to - mass / 2
        return np.interp(middle[0] + LEVELS * (middle[-1] - middle[0]), middle, cells)
    places = np.searchsorted(up_to, LEVELS * up_to[-1])
    return cells[np.minimum(places, len(cells) - 1)]


def _pieces(x, mass, cells, counts, in_tails, is_atom, is_whole):
    """Breaks, bins and heights of the pieces; scales of the tails; atoms and their shares.

    `cells` and `counts` are the different numbers `x` and their `mass`, apart by bins, without as
    many as are `in_tails`. What a bin has beside its training cells counts as one more cell: a
    tail, or what lies between an atom and the next number. Where no cell is negative, all below 0
    counts as much less.
    """
    half, n_bins = 0.5 if is_whole else 0.0, len(cells)
    lowest, highest = cells[0][0] - half, cells[-1][-1] + half
    if not is_whole and not is_atom[-1]:
        # The greatest number is not in the tail. Alone in its bin, it has as much room as before.
        next_one = np.nextafter(highest, np.inf)
        if len(cells[-1]) == 1 < n_bins:
            with np.errstate(over="ignore"):
                room = cells[-1][0] - cells[-2][-1]
                highest = min(highest + room, np.finfo(np.float64).max)
        highest = max(highest, next_one)
    borders = np.array([lowest, *(own[0] - half for own in cells[1:]), highest])
    # Where each piece ends, its bin, its weight and its width.
    outside = [(lowest, 0, 1.0 + in_tails[0], np.nan)]
    if x[0] >= 0:
        outside = [(-half, 0, 1 / (mass.sum() + 1), np.nan)]
        if lowest > -half:
            outside.append((lowest, 0, 1.0 + in_tails[0], lowest + half))
    beyond = np.inf, n_bins - 1, 1.0 + in_tails[1], np.nan
    inside = _inside(cells, counts, borders, is_atom, is_whole)
    parts = zip(zip(*outside, strict=True), inside, beyond, strict=True)
    ends, bin_of, weight, width = (np.concatenate([*own, [last]]) for *own, last in parts)
    total = np.bincount(bin_of, weight)
    atoms = np.flatnonzero(is_atom)
    places, of_atoms = (np.array([some[k][0] for k in atoms]) for some in (cells, counts))
    total[atoms] += of_atoms
    scales = _scales(x, mass, borders, cells, counts, is_atom)
    width[[0, -1]] = 1.0
    with np.errstate(divide="ignore"):  # around an atom, there may be nothing
        log_height = np.log(weight / total[bin_of]) - np.log(width)
    return ends[:-1], bin_of, log_height, scales, places, np.log(of_atoms / total[atoms])


def _without_tails(cells, counts):
    """The bins without cells beyond gaps of the two outermost, and how often these count.

    So a typing error has the density of the tail that other cells suggest, and is in no mean.
    """
    cells, counts, in_tails = list(cells), list(counts), [0.0, 0.0]
    if len(cells) > 1:
        least, most = cells[0], cells[-1]
        with np.errstate(over="ignore"):
            low = len(least) - _before_gap(cells[1][0] - least[::-1], counts[0][::-1])
            high = _before_gap(most - cells[-2][-1], counts[-1])
        in_tails = [counts[0][:low].sum(), counts[-1][high:].sum()]
        cells[0], counts[0] = least[low:], counts[0][low:]
        cells[-1], counts[-1] = most[:high], counts[-1][:high]
    return cells, counts, in_tails


def _before_gap(distances, counts):
    """How many cells, with rising distances from the next bin, there are up to a gap."""
    is_far = distances[1:] / FAR > distances[:-1]
    is_half = np.cumsum(counts)[:-1] >= counts.sum() / 2
    return int(np.append(is_far & is_half, True).argmax()) + 1


def _inside(cells, counts, borders, is_atom, is_whole):
    """Where the pieces of all bins end, their bins, weights and widths.

    A bin is a histogram, to which one more cell is added that may be anywhere; an atom has a piece
    of what is around it.
    """
    n_pieces = np.clip([len(own) // PIECES for own in cells], 1, PIECES)
    n_pieces[is_atom] = 1
    code = np.repeat(np.arange(len(cells)), n_pieces)
    number = np.arange(1, len(code) + 1) - (np.cumsum(n_pieces) - n_pieces)[code]
    low, high, is_last = borders[code], borders[code + 1], number == n_pieces[code]
    ends = number * ((high - low) / n_pieces[code]) + low
    if is_whole:
        ends = np.floor(ends) + 0.5
    ends[is_last] = high[is_last]
    # Of the ends of narrow pieces, some are equal.
    kept = is_last | ((ends > np.where(number == 1, low, np.roll(ends, 1))) & (ends < high))
    ends, code = ends[kept], code[kept]
    width = np.diff(ends, prepend=borders[0])
    # The last atom has no width.
    places = np.minimum(np.searchsorted(ends, np.concatenate(cells), side="right"), len(code) - 1)
    n, of_pieces = _sums(counts, cells), np.bincount(places, np.concatenate(counts), len(code))
    rooms, is_alone = np.diff(borders), is_atom[code]
    share = width / np.where(is_atom, 1.0, rooms)[code]
    weight = (of_pieces + share) * (n / (n + 1))[code]
    around = rooms[code] - is_whole  # of whole numbers, the atom is one of them
    weight, width = np.where(
        is_alone, [around > 0, np.where(around > 0, around, 1.0)], [weight, width]
    )
    return ends, code, weight, width


def _sums(values, cells):
    """Sums of values over the cells of each bin."""
    first = np.cumsum([0, *map(len, cells[:-1])])
    return np.add.reduceat(np.concatenate(values) if isinstance(values, list) else values, first)


def _scales(x, mass, borders, cells, counts, is_atom):
    """Scales of the tails: mean distance of the outermost cells beyond their neighbours."""
    mean = np.average(x, weights=mass)
    spread = np.average(np.abs(x - mean), weights=mass) or max(abs(mean), 1.0)
    scales = [spread, spread]
    if len(cells) > 1 and not is_atom[0]:
        scales[0] = np.average(borders[1] - cells[0], weights=counts[0])
    if len(cells) > 1 and not is_atom[-1]:
        scales[1] = np.average(cells[-1] - borders[-2], weights=counts[-1]) or spread
    return np.array(scales)
