"""Rungs of a ladder of RBMs: from independent units to a model, by way of saved ones."""

from copy import deepcopy

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy, copied, is_foreign, like, namespace_of, zeros
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.partition._ladder import Ladder, Pair
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.sampling._annealing import base_log_partition
from sklearn_boltz.restricted.sampling._array_ladder import ArrayLadder
from sklearn_boltz.restricted.sampling._gibbs import parameters_of_layers, run_chains
from sklearn_boltz.restricted.sampling._gibbs_kernel import log_densities
from sklearn_boltz.units._bernoulli import Bernoulli

# Cost of the calls to kernels for a rung in a round, in multiplications.
CALLS = 2e6
# Between neighbours that exchange states less often than this, a model is put.
SPLIT = 0.15
# A rung moves in one of the threads of others: these are never entered, and have no pool.
ONE_THREAD = Workers(1)


class RBMRung:
    """A model, and chains of it.

    Parameters
    ----------
    model : Model
        Never changed; several ladders may share it. Of the top rung of a training it is the one
        in training.
    states : ndarray of shape (n_chains, n_visible)
        Changed in place.
    is_first : bool
        Whether the model has no weights: a draw is then exact.
    """

    def __init__(self, model, states, is_first=False):
        self.model, self.states, self.is_first = model, states, is_first

    def __len__(self):
        return self.states.shape[0]

    def copy(self):
        """Copy the states; the model is shared."""
        return RBMRung(self.model, copied(self.states), self.is_first)

    @property
    def cost(self):
        """Multiplications of a transition, and of log-weights at two places."""
        return 5 * self.states.shape[0] * self.model.n_weights + CALLS

    def move(self, n_steps, stream, first_row):
        """Make transitions of the chains, or draw new states."""
        if self.is_first:
            nothing = zeros(self.states, self.states.shape)
            self.states[...] = self.model.visible.sample(nothing, stream, first_row)
            return
        H = np.empty((len(self.states), len(self.model.hidden)), self.states.dtype)
        run_chains(self.model, self.states, H, n_steps, stream, ONE_THREAD, first_row=first_row)

    def log_weights(self, other):
        """Minus the free energies of the states of another rung."""
        return log_densities_of(self.model, other.states)

    def swap(self, other, chains):
        """Exchange the states of some chains."""
        mine = self.states[chains]
        self.states[chains] = other.states[chains]
        other.states[chains] = mine


def log_densities_of(model, V):
    """−F(v) of rows, in float64, as an ndarray."""
    if is_foreign(V):
        return -as_numpy(model.free_energy(V))
    of_layers = parameters_of_layers(model)
    if of_layers is None:
        return -model.free_energy(V)
    out, scratch = np.empty(len(V)), np.empty((len(V), len(model.hidden)), model.dtype)
    log_densities(*of_layers[:3], V, scratch, out)
    return out


def laid_out(model):
    """The model with its weights in the order in which the kernels read them."""
    if is_foreign(model.weights):
        return model
    return model._replace(weights=np.asfortranarray(model.weights))


def saved(model):
    """A copy of a model that is in training."""
    return Model(*deepcopy(tuple(laid_out(model))))


def between(low, high, part=0.5):
    """The model whose parameters lie between those of two others.

    Where one has fewer hidden units, it is given units without weights.

    Parameters
    ----------
    low, high : Model
        With units of the same types.
    part : float
        0 gives `low`, 1 gives `high`.
    """
    n_hidden = max(len(low.hidden), len(high.hidden))
    low, high = (with_hidden(model, n_hidden) for model in (low, high))
    weights = (1 - part) * low.weights + part * high.weights
    if not is_foreign(weights):
        weights = np.asfortranarray(weights, dtype=high.dtype)
    return Model(
        weights,
        high.visible.annealed(part, low.visible),
        high.hidden.annealed(part, low.hidden),
    )


def with_hidden(model, n_hidden):
    """The model with more binary hidden units, which have no weights."""
    n_more = n_hidden - len(model.hidden)
    if not n_more:
        return model
    weights = np.vstack([model.weights, np.zeros((n_more, len(model.visible)), model.dtype)])
    intercept = np.append(model.hidden.intercept, np.zeros(n_more, model.dtype))
    return Model(np.asfortranarray(weights), model.visible, Bernoulli(intercept))


def insert_between(ladder, place):
    """Put the model in the middle of two neighbours between them, with chains of both.

    Parameters
    ----------
    ladder : Ladder
    place : int
        The number of the upper one, and then of the new one.
    """
    low, high = ladder.rungs[place - 1 : place + 1]
    from_low = like(low.states, (np.arange(len(low)) % 2 == 0)[:, np.newaxis])
    states = namespace_of(low.states).where(from_low, low.states, high.states)
    ladder.insert(place, RBMRung(between(low.model, high.model), states))
    # The chains have to settle first.
    ladder.pairs[place - 1 : place + 1] = [Pair(), Pair()]


def mend(ladder):
    """Put a model between the two neighbours that exchange least, if they exchange too little.

    Parameters
    ----------
    ladder : Ladder

    Returns
    -------
    mended : bool
    """
    known = [pair.acceptance if len(pair.acceptances) > 1 else 1 for pair in ladder.pairs]
    worst = int(np.argmin(known))
    if known[worst] >= SPLIT:
        return False
    insert_between(ladder, worst + 1)
    return True


def begin_ladder(model, base, n_chains, stream):
    """Independent units and a model, whose chains begin at draws from these units.

    Parameters
    ----------
    model : Model
    base : UnitType
        Independent visible units, ideally fitted to the data.
    n_chains : int
    stream : Stream

    Returns
    -------
    ladder : Ladder
    """
    first = saved(model.annealed(0, base))
    states = base.sample(zeros(model.weights, (n_chains, len(base))), stream)
    rungs = [RBMRung(first, copied(states), is_first=True), RBMRung(laid_out(model), states)]
    kind = ArrayLadder if is_foreign(states) else Ladder
    return kind(rungs, base_log_partition(model, base), stream)
