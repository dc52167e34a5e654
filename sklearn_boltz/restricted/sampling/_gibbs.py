"""Gibbs sampling: transitions of Markov chains, one for each row."""

from copy import copy
from functools import partial

import numpy as np

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.numerics._threads import blocks_of_narrow_rows, row_blocks
from sklearn_boltz.restricted.sampling import _array_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import (
    chains_of_layers,
    gibbs_chains,
    hidden_fields,
    visible_fields,
)
from sklearn_boltz.units import Bernoulli, Categorical, _bernoulli_arrays
from sklearn_boltz.units._bernoulli_kernel import bernoulli_draw
from sklearn_boltz.units._stacked import by_type

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
    first, weights = stream.step, model.weights_by_visible
    if model.visible.is_binary and model.hidden.is_binary:
        blocks = row_blocks(len(V))

        def block(rows):
            gibbs_chains(
                weights, model.visible.intercept, model.hidden.intercept, V[rows], H[rows],
                n_steps, from_hidden, stream.seed, first, first_row + rows.start,
            )  # fmt: skip
            return first + 2 * n_steps

    else:
        blocks, order = blocks_of_narrow_rows(len(V), sum(weights.shape)), None
        of_layers = None
        if isinstance(model.weights, np.ndarray):
            model = model._replace(weights=weights.T)  # copied once
            model, order = visible_by_type(model) if n_steps else (model, None)
            of_layers = parameters_of_layers(model)

        def block(rows):
            # Each block takes the same steps: a random number depends on its row as well.
            own, mine, columns = copy(stream), V[rows], slice(None) if order is None else order
            states = np.array(mine[:, columns], model.dtype, order="C")
            means = np.array(H[rows], model.dtype, order="C")
            here = first_row + rows.start
            if of_layers is None:
                _run_chains_of_any_units(model, states, means, n_steps, own, here, from_hidden)
            else:
                own.step = chains_of_layers(
                    *of_layers, states, means, n_steps, from_hidden, own.seed, own.step, here
                )
            mine[:, columns], H[rows] = states, means
            return own.step

    work = len(V) * weights.size * (2 * n_steps + 1)
    stream.step = workers.map(block, blocks, work)[-1]


def visible_by_type(model):
    """The model with visible units of one type together, and the order of the columns or None."""
    visible, order = by_type(model.visible)
    if order is None:
        return model, None
    return model._replace(weights=model.weights_by_visible[order].T, visible=visible), order


def steps_of_transition(model):
    """How many steps of the stream a transition takes."""
    stream = Stream(0)
    for units in (by_type(model.visible)[0], model.hidden):
        units.sample(np.zeros((1, len(units)), model.dtype), stream)
    return stream.step


def parameters_of_layers(model):
    """Arguments of `chains_of_layers` for a model; None if its units are not bits and words."""
    parts = [units for units, _ in model.visible.parts()]
    if not model.hidden.is_binary or any(type(u) not in (Bernoulli, Categorical) for u in parts):
        return None
    bias = np.concatenate([units.intercept for units in parts])
    runs = np.concatenate([units._runs for units in parts])
    layers = np.array([(len(units), len(units._runs)) for units in parts], dtype=np.intp)
    return model.weights_by_visible, bias, model.hidden.intercept, layers, runs


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


def _matmul(weights, rows, out=None):
    """Multiply arrays, of libraries without `out`, too."""
    return rows @ weights if out is None else np.matmul(rows, weights, out=out)


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
    weights = model.weights
    if not isinstance(weights, np.ndarray):
        return partial(_matmul, weights.T), partial(_matmul, weights)
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
    if is_foreign(p):
        return _bernoulli_arrays.draw(p, stream)
    out = np.empty_like(p)
    bernoulli_draw(out, p, stream.seed, stream.take(1))
    return out
