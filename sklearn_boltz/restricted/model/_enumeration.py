"""Exact sums over the states of a layer, and the exact normalising constant."""

import math
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

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


def enumerated(units, start, stop, chosen=None):
    """The joint states number start, ..., stop - 1 of units, the first unit slowest.

    Parameters
    ----------
    units : UnitType
        A layer.
    start, stop : int
    chosen : array-like of int, default=None
        Numbers of the units, which have finitely many states; None for all.

    Returns
    -------
    rows : ndarray of float64 of shape (stop - start, n_columns)
        With the columns of these units.
    """
    chosen = np.arange(units.n_units) if chosen is None else np.asarray(chosen, dtype=int)
    counts = units.state_counts[chosen].astype(np.int64)
    places = np.append(np.cumprod(counts[:0:-1])[::-1], 1)[: len(counts)]
    digits = np.arange(start, stop)[:, np.newaxis] // places % counts
    states = units.states()
    if states is not None and states.ndim == 1:
        return np.asarray(states, dtype=np.float64)[digits]
    each = units.unit_states()
    parts = [each[i][0][digits[:, k]] for k, i in enumerate(chosen)]
    return np.hstack(parts) if parts else np.zeros((stop - start, 0))


def all_states(units, chosen=None):
    """All joint states of units of a layer that have finitely many values, as `enumerated`."""
    counts = units.state_counts if chosen is None else units.state_counts[chosen]
    return enumerated(units, 0, math.prod(int(count) for count in counts), chosen)


def blocks_of_states(units):
    """The joint states of a layer in blocks."""
    n_states = math.prod(int(count) for count in units.state_counts)
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


def exact_free_energy(layered, V):
    """F(v) of rows with all hidden layers summed out, in float64.

    Parameters
    ----------
    layered : Layered
        With few `hidden_bits`.
    V : ndarray of shape (n_rows, n_visible)

    Returns
    -------
    free_energy : ndarray of float64 of shape (n_rows,)
    """
    model, V = layered.sides().in_double(), np.asarray(V, np.float64)
    rest = layered.layers[2::2]
    if not rest:
        return model.free_energy(V)
    odd, n_units = layered.layers[1::2], layered.layers[0].n_units
    if sum(map(n_bits, rest)) <= sum(map(n_bits, odd)):
        logs = [
            -model.free_energy(np.hstack([V, np.broadcast_to(state, (len(V), len(state)))]))
            for state in joint_states(rest)
        ]
        return -logsumexp(logs, axis=0)
    H = joint_states(odd)
    rest_partition = model.visible.log_partition(model.visible_field(H))[:, n_units:]
    log_weight = model.hidden.log_weight(H) + rest_partition.sum(axis=1)
    visible = layered.layers[0].astype(np.float64)
    return -visible.log_weight(V) - np.concatenate([
        logsumexp(log_weight + model.hidden_field(layered.padded(V[rows])) @ H.T, axis=1)
        for rows in gen_batches(len(V), BLOCK_STATES)
    ])  # fmt: skip


def joint_states(layers):
    """All joint states of some small layers side by side."""
    states = np.zeros((1, 0))
    for units in layers:
        of_layer = all_states(units)
        states = np.hstack([
            np.repeat(states, len(of_layer), axis=0), np.tile(of_layer, (len(states), 1))
        ])  # fmt: skip
    return states


def exact_entropy(layered):
    """−Σ p(v) ln p(v) over all states of the visible layer, in nats.

    Parameters
    ----------
    layered : Layered

    Returns
    -------
    entropy : float
    """
    visible = layered.layers[0]
    bits = n_bits(visible) + hidden_bits(layered)
    if not bits <= EXACT_UNITS:
        raise ValueError(
            "`entropy` needs visible units with finitely many values, and some have real numbers."
            if n_bits(visible) == math.inf
            else f"There are {bits:g} bits to enumerate, of the visible layer and, with several "
            f"hidden layers, of every second one; `entropy` enumerates {EXACT_UNITS} at most. "
            "Minus the mean of score_samples over many rows of `sample` estimates it."
        )
    log_weights = np.concatenate([
        -exact_free_energy(layered, rows) for rows in blocks_of_states(visible)
    ])  # fmt: skip
    log_p = log_weights - logsumexp(log_weights)
    return float(-np.exp(log_p) @ log_p)
