"""Exact sums over the states of a layer, and the exact normalising constant."""

import math
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from sklearn_boltz._estimates import estimate_from_value
from sklearn_boltz.restricted.model._model import Model

# Bits of the states of a layer up to which enumeration takes seconds, and at most.
EXACT_UNITS, MOST_UNITS = 20, 26
# States enumerated at once.
BLOCK_STATES = 2**11


def n_bits(units):
    """The binary logarithm of the number of states of a layer; infinite for a continuum."""
    states = units.states()
    return math.inf if states is None else len(units) * math.log2(len(states))


def n_enumerated(model):
    """Number of binary units, or bits, that the exact log-partition enumerates."""
    return min(n_bits(model.visible), n_bits(model.hidden))


def enumerated(values, n_units, start, stop):
    """The states number start, ..., stop - 1 of units, the first unit slowest.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        What each unit can be.
    n_units, start, stop : int

    Returns
    -------
    rows : ndarray of float64 of shape (stop - start, n_units)
    """
    places = len(values) ** np.arange(n_units)[::-1]
    digits = np.arange(start, stop)[:, np.newaxis] // places % len(values)
    return np.asarray(values, dtype=np.float64)[digits]


def all_states(units, n_units):
    """All states of some units of a layer that have finitely many values."""
    values = units.states()
    return enumerated(values, n_units, 0, len(values) ** n_units)


def log_sum_over_states(log_weight, units):
    """ln Σ exp of a function of rows over all states of a layer, in blocks."""
    values, n_units = units.states(), len(units)
    n_states = len(values) ** n_units
    return float(
        logsumexp([
            logsumexp(log_weight(enumerated(values, n_units, *ends)))
            for ends in pairwise([*range(0, n_states, BLOCK_STATES), n_states])
        ])
    )  # fmt: skip


def exact_log_partition(model):
    """ln Z by enumerating the states of one layer, in blocks, in float64.

    Parameters
    ----------
    model : Model
        At least one layer has units of finitely many states.

    Returns
    -------
    log_partition : float
    """
    if n_bits(model.hidden) < n_bits(model.visible):
        model = model.transposed()
    # Now the visible layer is the one with fewer states, and the hidden one is summed out.
    bits = n_bits(model.visible)
    if bits > MOST_UNITS:
        raise ValueError(
            "Neither layer has units of finitely many values. Use method='ais'."
            if bits == math.inf
            else f"The smaller layer has {bits:g} bits; at most {MOST_UNITS} can be enumerated. "
            "Use method='ais'."
        )
    model = Model(
        np.asarray(model.weights, np.float64),
        model.visible.astype(np.float64),
        model.hidden.astype(np.float64),
    )
    return log_sum_over_states(lambda rows: -model.free_energy(rows), model.visible)


def exact_estimate(model):
    """`exact_log_partition` in the form of an estimate."""
    return estimate_from_value(exact_log_partition(model))
