"""A ladder of RBMs whose arrays belong to libraries other than NumPy: all rungs in one product."""

from operator import is_
from typing import NamedTuple

import numpy as np

from sklearn_boltz.numerics._arrays import as_numpy, concatenated, like, namespace_of, widest
from sklearn_boltz.partition._ladder import Ladder
from sklearn_boltz.units._unit import UnitType


class Stack(NamedTuple):
    """The models of all rungs, one above the other.

    Attributes
    ----------
    models : list of Model
        Of the rungs below the top, which never change.
    weights : array of shape (n_rungs, n_hidden, n_visible)
    visible, hidden : array of shape (n_rungs, 1, n_units)
        The biases.
    units : list of UnitType
        The visible and the hidden units, without biases.
    """

    models: list
    weights: object
    visible: object
    hidden: object
    units: list[UnitType]

    @classmethod
    def of(cls, models):
        """Stack models of Bernoulli units or categories, which have biases only."""
        xp = namespace_of(models[0].weights)
        biases = [
            xp.stack([_biases(units) for units in layer])[:, None, :]
            for layer in zip(*(model[1:] for model in models), strict=True)
        ]
        weights, units = xp.stack([model.weights for model in models]), models[0][1:]
        return cls(models[:-1], weights, *biases, [layer.base() for layer in units])

    def is_of(self, models):
        """Whether the models below the top are still the same."""
        return len(models) == self.weights.shape[0] and all(map(is_, self.models, models))

    def renew(self, top):
        """Take in the model at the top, which is in training."""
        self.weights[-1, ...] = top.weights
        self.visible[-1, 0, :] = _biases(top.visible)
        self.hidden[-1, 0, :] = _biases(top.hidden)

    def part(self, first, last=None):
        """Rungs from the first to before the last."""
        return Stack([], *(array[first:last, ...] for array in self[1:4]), self.units)

    def move(self, states, n_steps, stream, first_row):
        """Make transitions of the chains of all rungs, of shape (n_rungs, n_chains, n_visible)."""
        by_hidden = namespace_of(states).matrix_transpose(self.weights)
        visible, hidden = self.units
        for _ in range(n_steps):
            H = _drawn(hidden, states @ by_hidden + self.hidden, stream, first_row)
            states = _drawn(visible, H @ self.weights + self.visible, stream, first_row)
        return states

    def log_weights(self, states):
        """Minus the free energies of states, those of a rung under its own model."""
        xp = namespace_of(states)
        field = states @ xp.matrix_transpose(self.weights) + self.hidden
        summed = self.units[1].log_partition_sum(xp.reshape(field, (-1, field.shape[-1])))
        linear = xp.sum(states * self.visible, axis=2, dtype=widest(states))
        return linear + xp.reshape(summed, states.shape[:2])


def _biases(units):
    return concatenated([part.intercept for part, _ in units.parts()])


def _drawn(units, field, stream, first_row):
    """Draws of units under a field; chains of all rungs have numbers one after the other."""
    xp = namespace_of(field)
    drawn = units.sample(xp.reshape(field, (-1, field.shape[-1])), stream, first_row)
    return xp.reshape(drawn, field.shape)


class ArrayLadder(Ladder):
    """The rounds of `Ladder`, with the same random numbers, for all rungs at once.

    A round waits for the device once, to learn which chains exchange their states.
    """

    _stack = None

    def __getstate__(self):
        return {**vars(self), "_stack": None}

    def _stacked(self):
        models = [rung.model for rung in self.rungs]
        if self._stack is None or not self._stack.is_of(models):
            self._stack = Stack.of(models)
        self._stack.renew(models[-1])
        return self._stack

    def move(self, first, n_steps, workers):
        """Make transitions; the first rung draws anew."""
        rungs, stream, n_chains = self.rungs[first:], self.stream, len(self.rungs[0])
        begin = stream.step
        n_drawn = 0
        if first == 0:
            rungs[0].move(n_steps, stream, 0)
            n_drawn, stream.step = 1, begin
        moving = rungs[n_drawn:]
        states = namespace_of(rungs[0].states).stack([rung.states for rung in moving])
        stack = self._stacked().part(first + n_drawn)
        states = stack.move(states, n_steps, stream, n_drawn * n_chains)
        for k, rung in enumerate(moving):
            rung.states = states[k, ...]

    def _exchange_all(self, lower, u, workers):
        """Exchange states of pairs of neighbours."""
        first, n_chains = lower[0], len(self.rungs[0])
        last = min(lower[-1] + 2, len(self.rungs))
        partner = np.arange(first, last)
        for i in lower:
            partner[i - first : i - first + 2] = i + 1, i
        states = [rung.states for rung in self.rungs[first:last]]
        xp = namespace_of(states[0])
        pairs = xp.stack([xp.concat([states[k], states[p - first]]) for k, p in enumerate(partner)])
        stack = self._stacked().part(first, last)
        found = as_numpy(stack.log_weights(pairs))
        if not np.isfinite(found).all():  # the training has diverged, and will find out
            return {}
        own, other = found[:, :n_chains], found[:, n_chains:]
        differences = {}
        for i, numbers in zip(lower, u, strict=True):
            low, high = i - first, i - first + 1
            forward, backward = other[high] - own[low], other[low] - own[high]
            with np.errstate(over="ignore"):
                chosen = np.log(numbers) < forward + backward
            self._swap(i, chosen)
            self.pairs[i].add(forward, backward)
            differences[i] = forward, backward
        return differences

    def _swap(self, i, chosen):
        low, high = self.rungs[i : i + 2]
        xp, here = namespace_of(low.states), like(low.states, chosen[:, np.newaxis])
        low.states, high.states = (
            xp.where(here, high.states, low.states), xp.where(here, low.states, high.states)
        )  # fmt: skip
        mine, theirs = self.origins[i], self.origins[i + 1]
        mine[chosen], theirs[chosen] = theirs[chosen], mine[chosen]
