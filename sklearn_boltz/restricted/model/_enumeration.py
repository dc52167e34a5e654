"""Exact sums over the states of a layer, and the exact normalising constant."""

import math
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz.numerics._arrays import as_numpy, is_foreign
from sklearn_boltz.restricted.model._model import check_normalisable

# Bits of the states of a layer up to which enumeration takes seconds, and at most.
EXACT_UNITS, MOST_UNITS = 20, 26
# States enumerated at once.
BLOCK_STATES = 2**11


def n_bits(units):
    """The binary logarithm of the number of states of a layer; infinite for a continuum."""
    return float(np.log2(units.state_counts).sum())


def n_enumerated(model):
    """Number of binary units, or bits, that the exact log-partition enumerates."""
    return min(n_bits(model.visible), n_bits(model.hidden))


def enumerated(units, start, stop):
    """The joint states number start, ..., stop - 1 of a layer of units, the first unit slowest.

    Parameters
    ----------
    units : UnitType
        Each has finitely many states.
    start, stop : int

    Returns
    -------
    rows : ndarray of float64 of shape (stop - start, n_columns)
    """
    counts, states = units.state_counts.astype(np.int64), units.states()
    places = np.append(np.cumprod(counts[:0:-1])[::-1], 1)[: len(counts)]
    digits = np.arange(start, stop)[:, np.newaxis] // places % counts
    if states is not None and states.ndim == 1:
        return np.asarray(states, dtype=np.float64)[digits]
    parts = [values[digits[:, k]] for k, (values, _) in enumerate(units.unit_states())]
    return np.hstack(parts) if parts else np.zeros((stop - start, 0))


def n_joint_states(units):
    """How many joint states a layer has."""
    return math.prod(map(int, units.state_counts))


def all_states(units):
    """All joint states of a layer, as `enumerated`."""
    return enumerated(units, 0, n_joint_states(units))


def blocks_of_states(units):
    """The joint states of a layer in blocks."""
    n_states = n_joint_states(units)
    for ends in pairwise([*range(0, n_states, BLOCK_STATES), n_states]):
        yield enumerated(units, *ends)


def exact_log_partition(model):
    """ln Z by enumerating the states of one layer, in blocks, in float64.

    Parameters
    ----------
    model : Model
        At least one layer has units of finitely many states only; the other is summed out, or
        integrated.

    Returns
    -------
    log_partition : float
    """
    check_normalisable(model)
    if n_bits(model.hidden) < n_bits(model.visible):
        model = model.transposed()
    # Now the visible layer is the one with fewer states, and the hidden one is summed out.
    bits = n_bits(model.visible)
    if bits > MOST_UNITS:
        raise ValueError(
            "Neither layer has units of finitely many values only. Use method='ais'."
            if bits == math.inf
            else f"The smaller layer has {bits:g} bits; at most {MOST_UNITS} can be enumerated. "
            "Use method='ais'."
        )
    if is_foreign(model.weights):
        model = model.moved(as_numpy)
    model = model.in_double()
    blocks = blocks_of_states(model.visible)
    return float(logsumexp([logsumexp(-model.free_energy(rows)) for rows in blocks]))


def hidden_bits(layered):
    """Bits that are enumerated to sum out all hidden layers given the visible one; 0 for one."""
    rest = sum(n_bits(units) for units in layered.layers[2::2])
    odd = sum(n_bits(units) for units in layered.layers[1::2])
    return min(rest, odd)
