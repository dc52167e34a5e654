"""A mini-batch on a device: the sums that S-DCP asks for, by functions of its library."""

from copy import copy

from sklearn_boltz.numerics._arrays import like, namespace_of
from sklearn_boltz.numerics._random_arrays import KEPT_STEPS
from sklearn_boltz.restricted.sampling._array_chains import move_chains
from sklearn_boltz.restricted.sampling._gibbs import rows_to_start_at
from sklearn_boltz.units._bernoulli_arrays import draw

# Mini-batches of a size before their kernels are recorded: those that compile them are among these.
BEFORE_RECORDING = 3


class DeviceBatch:
    """A mini-batch on a device: the methods of `_sdcp.ArrayBatch`, by functions of its library.

    Nothing waits for the device, which works through what it is given.

    Parameters
    ----------
    learner : SDCPLearner
    V : array of shape (n_rows, n_visible)
    """

    def __init__(self, learner, V):
        self.V, self._xp = V, namespace_of(V)
        n_steps = learner.scheme.n_inner * (2 * learner.scheme.n_gibbs + 1)
        self._can_record = learner.optimizer.plain and n_steps <= KEPT_STEPS and can_record(V)
        self._n_learned, self._recorded = 0, None

    @property
    def learns_at_once(self):
        """Whether the kernels of a mini-batch are launched together: on CUDA devices of PyTorch."""
        return self._can_record and self._n_learned >= BEFORE_RECORDING

    def learn(self, learner, rate):
        """Change the parameters as `SDCPLearner.learn` does."""
        if self._recorded is None or not self._recorded.fits(learner):
            self._recorded = Recorded(learner, self.V)
        self._recorded.learn(learner, self.V, rate)

    def positive(self, learner, workers):
        """Compute E[h | v]; -> means of the visible and of the hidden units."""
        self._n_learned += 1
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


class Recorded:
    """The kernels of a mini-batch, recorded once and launched together ever after.

    To launch a kernel takes some microseconds, longer than small ones run, and a mini-batch of
    CS-DCP has hundreds. Recorded ones read and write where they did: rows, rate and keys of the
    random numbers are copied there.

    Parameters
    ----------
    learner : SDCPLearner
        Its parameters are changed in place whenever the kernels run; here they do not.
    V : Tensor of shape (n_rows, n_visible)
        On a CUDA device, rows of the size that all mini-batches have.
    """

    def __init__(self, learner, V):
        import torch

        xp = namespace_of(V)
        self._V, self._rate = xp.empty_like(V), xp.zeros((), dtype=V.dtype, device=V.device)
        self._keys = xp.zeros(KEPT_STEPS, dtype=xp.int64, device=V.device)
        self._arrays, self._chains = arrays_of(learner), learner.chains
        twin = copy(learner)
        twin.stream = learner.stream.with_keys(V, self._keys)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            twin.learn(DeviceBatch(twin, self._V), self._rate, None)
            if self._chains is not None:
                self._chains.copy_(twin.chains)
        self._n_steps = twin.stream.step - learner.stream.step

    def fits(self, learner):
        """Whether the arrays of a learner are those that the kernels change."""
        return all(a is b for a, b in zip(self._arrays, arrays_of(learner), strict=True))

    def learn(self, learner, V, rate):
        """Change the parameters by a mini-batch."""
        numbers, step = learner.stream.numbers(V), learner.stream.take(self._n_steps)
        self._keys[: self._n_steps].copy_(numbers.keys(step, self._n_steps))
        self._V.copy_(V)
        self._rate.fill_(rate)
        if self._chains is not None and learner.chains is not self._chains:
            self._chains.copy_(learner.chains)
            learner.chains = self._chains
        self._graph.replay()


def can_record(array):
    """Whether the kernels of an array can be recorded."""
    if getattr(getattr(array, "device", None), "type", None) != "cuda":
        return False
    import torch

    return not torch.is_autocast_enabled()  # which keeps copies of its own


def arrays_of(learner):
    """All arrays of a learner that are changed in place."""
    return *learner.parameters(), learner.visible_offset, learner.hidden_offset
