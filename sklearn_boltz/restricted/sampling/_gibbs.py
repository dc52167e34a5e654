"""Gibbs sampling: transitions of Markov chains, one for each row."""

from copy import copy
from functools import partial

import numpy as np

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import blocks_of_narrow_rows, row_blocks
from sklearn_boltz.restricted.sampling import _array_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import (
    clamped_chains,
    gibbs_chains,
    hidden_fields,
    visible_fields,
)
from sklearn_boltz.units._bernoulli_kernel import bernoulli_draw

# Persistent chains at most, unless there are more rows.
MOST_CHAINS = 10_000


def run_chains(model, V, H, n_steps, stream, workers, *, from_hidden=False, first_row=0):
    """Make transitions of one Markov chain for each row, in place.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where the chains are, and then the states after the last transition.
    H : ndarray of shape (n_rows, n_hidden)
        With `from_hidden`, where the chains start; finally E[h | V].
    n_steps : int
    stream : Stream
    workers : Workers
    from_hidden : bool
        Whether the chains start at `H`: the first transition samples the visible units only.
    first_row : int
        What the random numbers take for the number of the first chain, where these are a part.
    """
    if is_foreign(V):
        start = H if from_hidden else None
        V[...], H[...] = _array_chains.move_chains(model, V, n_steps, stream, start)
        return
    model = model._replace(weights=model.weights_by_visible.T)  # copied once
    of_layers, blocks = parameters_of_layers(model), row_blocks(len(V))
    if of_layers is None:
        blocks = blocks_of_narrow_rows(len(V), sum(model.weights.shape))

    def block(rows):
        # Each block takes the same steps: a random number depends on its row as well.
        own, states, means = copy(stream), V[rows], H[rows]
        V_block, H_block = (np.ascontiguousarray(A, model.dtype) for A in (states, means))
        here = first_row + rows.start
        if of_layers is None:
            _run_chains_of_any_units(model, V_block, H_block, n_steps, own, here, from_hidden)
        else:
            own.step = gibbs_chains(
                *of_layers, V_block, H_block, n_steps, from_hidden, own.seed, own.step, here
            )
        states[...], means[...] = V_block, H_block
        return own.step

    work = len(V) * model.weights.size * (2 * n_steps + 1)
    stream.step = workers.map(block, blocks, work)[-1]


def run_clamped_chains(model, V, free, n_steps, stream, first_row=0):
    """Make transitions of the `free` cells of rows, in place, with the others clamped."""
    of_layers = parameters_of_layers(model)
    if of_layers is None:
        *_, (_, V[...]) = _array_chains.moves_of_chains(model, V, ~free, n_steps, stream, first_row)
        return
    H = np.empty((len(V), len(model.hidden)), V.dtype)
    clamped_chains(
        *of_layers, V, free, np.empty_like(V), H, n_steps, stream.seed, stream.step, first_row
    )


def steps_of_transition(model):
    """How many steps of the stream a transition takes."""
    stream = Stream(0)
    for units in (model.visible, model.hidden):
        units.sample(np.zeros((1, len(units)), model.dtype), stream)
    return stream.step


def parameters_of_layers(model):
    """Arguments of `gibbs_chains` for a model; None if that is not of bits and categories."""
    layers = model.visible._kernel_layers
    if layers is None or not model.hidden.is_binary:
        return None
    bias = joined_intercepts(model.visible)
    return model.weights_by_visible, bias, model.hidden.intercept, *layers


def joined_intercepts(units):
    """A copy of the intercepts of all columns."""
    return np.concatenate([part.intercept for part, _ in units.parts()])


def _run_chains_of_any_units(model, V, H, n_steps, stream, first_row, from_hidden):
    hidden_field, visible_field = fields_by_kernels(model)
    field, parts = np.empty_like(V), model.visible.parts()
    parts = [(units, columns, np.empty((len(V), len(units)), V.dtype)) for units, columns in parts]
    for step in range(n_steps):
        if step > 0 or not from_hidden:
            hidden_field(V, H)
            model.hidden._draw(H, stream, first_row)
        visible_field(H, field)
        for units, columns, own in parts:
            own[...] = field[:, columns]
            units._draw(own, stream, first_row)
            V[:, columns] = own
    H[...] = model.hidden.mean(hidden_field(V))


def fields_by_kernels(model):
    """`Model.hidden_field` and `Model.visible_field`, faster for rows of many zeros.

    Parameters
    ----------
    model : Model

    Returns
    -------
    hidden_field, visible_field : callable
        From dense rows of the type of the weights, and an array to fill or None, to the fields.
    """
    if is_foreign(model.weights):
        return model.hidden_field, model.visible_field
    weights = model.weights_by_visible

    def product(kernel, n_columns, rows, out=None):
        out = np.empty((len(rows), n_columns), weights.dtype) if out is None else out
        kernel(weights, np.ascontiguousarray(rows, dtype=weights.dtype), out)
        return out

    n_visible, n_hidden = weights.shape
    return partial(product, hidden_fields, n_hidden), partial(product, visible_fields, n_visible)


def rows_to_start_at(n_chains, n_rows):
    """Numbers of the rows at which persistent chains start, each row in its turn.

    There are as many chains as a mini-batch has rows. A `batch_size` that only says "all rows"
    makes as many chains as there are rows, or `MOST_CHAINS`.
    """
    return np.arange(min(n_chains, max(n_rows, MOST_CHAINS))) % n_rows


def draw(p, stream):
    """Values 0 and 1 with the given probabilities."""
    out = np.empty_like(p)
    bernoulli_draw(out, p, stream.seed, stream.take(1))
    return out
