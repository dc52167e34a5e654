"""A mini-batch on a device: the sums that S-DCP asks for, by functions of its library."""

from sklearn_boltz.numerics._arrays import like, namespace_of
from sklearn_boltz.restricted.sampling._array_chains import move_chains
from sklearn_boltz.restricted.sampling._gibbs import rows_to_start_at
from sklearn_boltz.units._bernoulli_arrays import draw


class DeviceBatch:
    """A mini-batch on a device: the methods of `_sdcp.ArrayBatch`, by functions of its library.

    Nothing waits for the device, which works through what it is given.

    Parameters
    ----------
    V : array of shape (n_rows, n_visible)
    """

    def __init__(self, V):
        self.V, self._xp = V, namespace_of(V)

    def positive(self, learner, workers):
        """Compute E[h | v]; -> means of the visible and of the hidden units."""
        self.H = learner.model().mean_hidden(self.V)
        if learner.scheme.goes_on and learner.chains is None:
            starts = like(self.V, rows_to_start_at(learner.scheme.n_chains, self.V.shape[0]))
            learner.chains = draw(self._xp.take(self.H, starts, axis=0), learner.stream)
        self._states = self.V, self.H
        return self._means(self.V, self.H)

    def negative(self, learner, workers):
        """Make transitions of the chains; -> means of the visible and of the hidden units."""
        start = learner.chains if learner.scheme.goes_on else None
        V, n_steps = self._states[0], learner.scheme.n_gibbs
        self._states = move_chains(learner.model(), V, n_steps, learner.stream, start)
        return self._means(*self._states)

    def hidden_states(self, learner):
        """Draw the hidden units of the chains."""
        return draw(self._states[1], learner.stream)

    def shape_slopes(self, learner, chains):
        """Binary units have no parameters but biases."""
        return {}, {}

    def gradient(self, learner, rate, inner, workers):
        """The step of the weights: the rate times the gradient, of which inner step 0 keeps g's."""
        if inner == 0:
            self._ascent = self._products(learner, self.V, self.H, rate)
        return self._ascent - self._products(learner, *self._states, rate)

    def _means(self, *states):
        return tuple(self._xp.mean(rows, axis=0) for rows in states)

    def _products(self, learner, V, H, rate):
        """The rate times the mean of (h − λ) (v − μ)ᵀ, with offsets of 0 unless centred."""
        if learner.scheme.centered:
            V, H = V - learner.visible_offset, H - learner.hidden_offset
        return (H * (rate / V.shape[0])).T @ V
