"""The second order of mean field, between units of one number.

In the second order of the expansion in the weights, the free energy of two units i and j has the
term ½ W_ij² c_i c_j with their variances c, whose derivatives act on units as precisions
A_j = −Σ_i W_ij² c_i. Units of several numbers, the one-hot ones, are in the first order: on four
tables of 16 columns of categories, held-out log-likelihoods differ by less than 0.1 nats.
"""

import numpy as np

from sklearn_boltz.restricted.model._layered import BlockWeights


def has_wide_units(units):
    """Whether some unit of a layer takes several numbers."""
    return units.n_units < len(units)


def has_second_order(visible, hidden):
    """Whether some unit of each of two layers or sides is of one number."""
    return all((units.widths == 1).any() for units in (visible, hidden))


def single_variances(units, variance):
    """Variances of the numbers of a layer, 0 for those of units of several numbers."""
    if variance is None or not has_wide_units(units):
        return variance
    return variance * _are_single(units).astype(variance.dtype)


def negative_squares(model, out=None):
    """−W² of a model, 0 where a unit is of several numbers: an array, or what looks like one."""
    W = model.weights
    squares = np.multiply(W, W, out=out)
    squares = np.negative(squares, out=squares)
    if has_wide_units(model.visible) or has_wide_units(model.hidden):
        of_visible, of_hidden = ~_are_single(model.visible), ~_are_single(model.hidden)
        for i, j, block in _blocks(squares):
            block[:, of_visible[j]] = 0
            block[of_hidden[i]] = 0
    return squares


def _are_single(units):
    return np.repeat(units.widths == 1, units.widths)


def _blocks(W):
    if isinstance(W, BlockWeights):
        return W.blocks
    return [(slice(None), slice(None), W)]
