"""The second order of mean field, for units of one number and for one-hot units.

In the second order of the expansion in the weights, the free energy of two units i and j has the
term ½ tr(W_ij C_j W_ijᵀ C_i) with their covariance matrices C. A one-hot unit with means m has
C = diag(m) − m mᵀ, for which uᵀ C u = Σ_{a<b} m_a m_b (u_a − u_b)². So all units can be treated
alike, if they are described by *features*, each with a spread: the variance of a unit of one
number, and of a one-hot unit the products m_a m_b for all pairs of its numbers. Between the
spreads φ of the features of two sides the term is

    ½ φ_h · D φ_v,   D = (differences of the weights)²,

where differences are taken between the numbers of each pair, on either side, and between units of
one number D = W². Its derivatives by the spreads act on units as precisions A = −D φ: that of a
unit of one number is a precision as such, and those of pairs add −½ Σ_b A_ab m_b to the field of
number a. What is added to the weights of all numbers of a unit changes nothing, as in the model.

A unit of q numbers has q (q − 1) / 2 pairs, which is too many if q is large. Then its features are
its numbers, with spreads m_a, and what they lack, −(Σ_a W_a m_a)², is computed unit by unit.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._threads import row_blocks
from sklearn_boltz.restricted.mean_field._spread_kernel import act, differences, gathered, spreads
from sklearn_boltz.restricted.model._layered import BlockWeights

# Hidden features of a block of a gradient.
GRADIENT_ROWS = 50
# One-hot units of more numbers are not described by pairs of them, on one side of a model.
MOST_PAIRED, ANY_WIDTH = 8, np.iinfo(np.intp).max


def has_wide_units(units):
    """Whether some unit of a layer takes several numbers."""
    return units.n_units < len(units)


class Features:
    """What counts of the units of a layer or side in the second order.

    Parameters
    ----------
    widths : ndarray of int of shape (n_units,)
        How many numbers each takes; if several, they are one-hot.
    most : int
        The widest unit that is described by pairs of its numbers.

    Attributes
    ----------
    is_plain : bool
        Whether all units are of one number: then the spreads are the variances.
    has_single : bool
        Whether some unit is of one number: otherwise no column has a precision.
    has_wide : bool
        Whether some unit is not described by pairs.
    n_columns, n_features : int
    """

    def __init__(self, widths, most):
        self.widths, self.most = widths, most
        self.is_plain, self.has_single = not (widths > 1).any(), bool((widths == 1).any())
        self.has_wide = bool((widths > max(most, 1)).any())
        self.starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        paired = (widths > 1) & (widths <= most)
        counts = np.where(paired, widths * (widths - 1) // 2, widths)
        self.feature_starts = np.concatenate([[0], np.cumsum(counts)])
        self.n_columns, self.n_features = int(self.starts[-1]), int(self.feature_starts[-1])

    def _units(self, columns):
        return slice(*np.searchsorted(self.starts, [columns.start, columns.stop]))

    def part(self, columns):
        """The features of the units in some columns."""
        return Features(self.widths[self._units(columns)], self.most)

    def features_of(self, columns):
        """Where the features of the units in some columns are: a slice."""
        units = self._units(columns)
        return slice(self.feature_starts[units.start], self.feature_starts[units.stop])

    def wide(self):
        """(features, columns) of each unit that is not described by pairs: slices."""
        units = np.flatnonzero(self.widths > max(self.most, 1))
        columns = [slice(*self.starts[k : k + 2].tolist()) for k in units]
        return [(self.features_of(its), its) for its in columns]

    def spread(self, mean, variance):
        """φ of each feature; a number of variance 0 is known.

        Parameters
        ----------
        mean, variance : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        spread : ndarray of shape (n_rows, n_features)
        """
        return variance if self.is_plain else self._by(spreads, self.n_features, mean, variance)

    def differences(self, W):
        """From an array of shape (n, n_columns), one of (n, n_features)."""
        return W if self.is_plain else self._by(differences, self.n_features, W)

    def gathered(self, D):
        """The transposed map: from an array of shape (n, n_features), one of (n, n_columns)."""
        return D if self.is_plain else self._by(gathered, self.n_columns, D)

    def _by(self, kernel, n_out, *arrays):
        """What a kernel makes of the rows of arrays: as many rows of `n_out` numbers."""
        out = np.empty((len(arrays[0]), n_out), arrays[0].dtype)
        arrays = [np.ascontiguousarray(array, out.dtype) for array in arrays]
        kernel(*arrays, self.starts, self.most, out)
        return out

    def act(self, precision, mean, field):
        """Add what precisions of features do to a field, in place; -> precisions of columns."""
        if self.is_plain:
            field += precision * mean
            return precision
        out = np.empty(mean.shape, mean.dtype)
        act(precision, np.ascontiguousarray(mean), self.starts, self.most, field, out)
        return out if self.has_single else 0.0


def features_of_pair(visible, hidden):
    """The features of two layers or sides that are joined by weights.

    Only one of the two may have units that are not described by pairs.

    Parameters
    ----------
    visible, hidden : UnitType

    Returns
    -------
    visible, hidden : Features
    """
    widths = [units.widths for units in (visible, hidden)]
    for units, its in zip((visible, hidden), widths, strict=True):
        if (its > 1).any() and (its[~units.one_hot] > 1).any():
            raise ValueError(
                "In the second order, units of several numbers must be one-hot. Set order=1."
            )
    of_visible = _features(tuple(widths[0].tolist()), MOST_PAIRED)
    most = ANY_WIDTH if of_visible.has_wide else MOST_PAIRED
    return of_visible, _features(tuple(widths[1].tolist()), most)


@lru_cache(maxsize=32)  # asked for several times in each mini-batch
def _features(widths, most):
    return Features(np.array(widths), most)


class Coupling(NamedTuple):
    """What the spreads of the units of one side, the source, do to the other side, the target.

    Attributes
    ----------
    negative_squares : ndarray of shape (n_features of source, n_features of target)
        −D, or what looks like an array.
    source, target : Features
    wide : list of tuple
        Of the one of the two that may have such, as of `wide_units`.
    """

    negative_squares: np.ndarray
    source: Features
    target: Features
    wide: list

    @classmethod
    def of(cls, model, features=None, out=None):
        """From the hidden to the visible side of a model.

        Parameters
        ----------
        model : Model
        features : (Features, Features), default=None
            Of the two sides, where they are known.
        out : ndarray, default=None
            As `empty_squares` makes it: for −D.
        """
        W = model.weights
        visible, hidden = features or features_of_pair(model.visible, model.hidden)
        if visible.is_plain and hidden.is_plain:
            squares = np.multiply(W, W, out=out)
            return cls(np.negative(squares, out=squares), hidden, visible, [])
        out = empty_squares(W, (visible, hidden)) if out is None else out
        for (i, j, block), (*_, squares) in zip(_blocks(W), _blocks(out), strict=True):
            D = weight_differences(block, visible.part(j), hidden.part(i))
            np.negative(np.multiply(D, D, out=squares), out=squares)
        wide = wide_units(W, visible, hidden) or wide_units(W.T, hidden, visible)
        return cls(out, hidden, visible, wide)

    @property
    def is_plain(self):
        """Whether all units are of one number."""
        return self.source.is_plain and self.target.is_plain

    @property
    def T(self):
        """That from the target to the source."""
        return Coupling(self.negative_squares.T, self.target, self.source, self.wide)

    def precisions(self, spread, out=None):
        """A of the features of the target, from the spreads of the source."""
        precision = np.matmul(spread, self.negative_squares, out=out)
        if self.source.has_wide:
            for others, features, _, weights in self.wide:
                common = spread[:, features] @ weights.T
                precision[:, others] += common * common
        return precision

    def interaction(self, source, target):
        """½ φ · D φ of rows, in float64; each side by its means and variances.

        The source is the side that has units that are not described by pairs, if one has.
        """
        precision = self.precisions(self.source.spread(*source))
        product = -0.5 * precision * self.target.spread(*target)
        return product.sum(axis=1, dtype=np.float64)

    def act(self, precision, spread, mean, field):
        """Add what precisions of features of the target do to its field; -> those of columns.

        Parameters
        ----------
        precision : ndarray of shape (n_rows, n_features of target)
            As of `precisions`.
        spread : ndarray of shape (n_rows, n_features of source)
        mean : ndarray of shape (n_rows, n_columns of target)
        field : ndarray of shape (n_rows, n_columns of target)
            Changed in place.

        Returns
        -------
        precision : ndarray of shape (n_rows, n_columns of target) or float
            Of one-hot units, 0.
        """
        of_columns = self.target.act(precision, mean, field)
        if self.target.has_wide:
            for others, _, columns, weights in self.wide:
                common = mean[:, columns] @ weights.T
                field[:, columns] -= (spread[:, others] * common) @ weights
        return of_columns


def empty_squares(W, features):
    """An array for −D between the features of two sides, or what looks like one."""
    visible, hidden = features
    if not isinstance(W, BlockWeights):
        return np.empty((hidden.n_features, visible.n_features), W.dtype)
    places = [(hidden.features_of(i), visible.features_of(j)) for i, j, _ in W.blocks]
    blocks = [(i, j, np.empty((i.stop - i.start, j.stop - j.start), W.dtype)) for i, j in places]
    return BlockWeights(blocks, (hidden.n_features, visible.n_features))


def weight_differences(W, visible, hidden):
    """Weights between features: of shape (n_features of hidden, n_features of visible)."""
    return hidden.differences(visible.differences(W).T).T


def weight_gradient(W, features, visible, hidden, scale, workers):
    """Derivatives by the weights of the sum over rows of ½ φ_h · D φ_v, times a scale.

    Parameters
    ----------
    W : ndarray of shape (n_hidden columns, n_visible columns)
    features : (Features, Features)
        Of the visible and of the hidden layer.
    visible, hidden : (ndarray, ndarray)
        Means and variances, of shape (n_rows, n_columns).
    scale : float
    workers : Workers

    Returns
    -------
    gradient : ndarray of the shape of W
    """
    of_visible, of_hidden = features
    visible, hidden = of_visible.spread(*visible), of_hidden.spread(*hidden)
    product = np.empty((of_hidden.n_features, of_visible.n_features), W.dtype)
    D = weight_differences(W, of_visible, of_hidden)

    def block(rows):
        np.matmul(hidden[:, rows].T, visible, out=product[rows])
        product[rows] *= D[rows]

    work = len(visible) * product.size
    workers.map(block, row_blocks(len(product), GRADIENT_ROWS), work)
    _lower(product, wide_units(W, of_visible, of_hidden), visible, hidden)
    _lower(product.T, wide_units(W.T, of_hidden, of_visible), hidden, visible)
    product *= W.dtype.type(scale)
    return of_visible.gathered(of_hidden.gathered(product.T).T)


def _lower(product, wide, spread, other):
    """Take away what the features of units that are not described by pairs lack, in place."""
    for others, features, _, weights in wide:
        own = spread[:, features]
        product[others, features] -= (other[:, others] * (own @ weights.T)).T @ own


def _blocks(W):
    if isinstance(W, BlockWeights):
        return W.blocks
    return [(slice(0, W.shape[0]), slice(0, W.shape[1]), W)]


def wide_units(W, side, other):
    """Units of a side, of which W has the columns, that are not described by pairs.

    Returns
    -------
    wide : list of (slice, slice, slice, ndarray)
        Features of the other side; those of the unit, and its columns; and its weights to the
        first, of shape (n_others, n_columns).
    """
    found = []
    if side.has_wide:
        for i, j, block in _blocks(W):
            part, features = side.part(j), side.features_of(j)
            to_features = other.part(i).differences(block.T).T
            for its, columns in part.wide():
                shifted = [
                    slice(s.start + first, s.stop + first)
                    for s, first in ((its, features.start), (columns, j.start))
                ]
                weights = np.ascontiguousarray(to_features[:, columns])
                found.append((other.features_of(i), *shifted, weights))
    return found
