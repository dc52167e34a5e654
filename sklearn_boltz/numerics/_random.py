"""Random numbers: NumPy generators, and the counter-based stream of the kernels."""

from copy import copy

import numpy as np
from sklearn.utils import check_random_state

from sklearn_boltz.numerics._arrays import device_of, namespace_of
from sklearn_boltz.numerics._random_arrays import Numbers
from sklearn_boltz.numerics._random_arrays import uniform as uniform_of_arrays
from sklearn_boltz.numerics._random_kernel import normal, uniform


def make_generator(random_state):
    """Return a `numpy.random.Generator` from any kind of `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def fixed(random_state):
    """Return `random_state`, or 0 for None: then each fit draws the same numbers."""
    return 0 if random_state is None else random_state


def spins_of_sampler(sampler, J, h, n_samples, rng):
    """Rows of ±1, float64 (n_samples, d), that the `sampler` of `MaximumEntropy` draws."""
    spins = np.asarray(sampler(J.copy(), h.copy(), n_samples, rng))
    shape = n_samples, len(h)
    if spins.shape != shape:
        raise ValueError(
            f"sampler(J, h, n, rng) must return n states of the {len(h)} spins, an array of shape "
            f"{shape}; it returned one of shape {spins.shape}."
        )
    is_spin = np.isin(spins, (-1, 1))
    if not is_spin.all():
        raise ValueError(
            "sampler(J, h, n, rng) must return spins, which are -1 or 1; it returned "
            f"{spins[~is_spin][0]:g}. For bits return 2 * bits - 1."
        )
    return spins.astype(np.float64)


class Stream:
    """Random numbers that are functions of (seed, step, row, column).

    Parameters
    ----------
    seed : int
        From 0 to 2**64 - 1.
    """

    def __init__(self, seed):
        self.seed, self.step = int(seed), 0
        self._numbers = {}  # where the arrays of other libraries are

    def __getstate__(self):
        return {**vars(self), "_numbers": {}}  # neither copied nor pickled

    @classmethod
    def from_generator(cls, rng):
        """A stream with a seed drawn from a NumPy generator."""
        return cls(rng.integers(2**63))

    def take(self, n_steps):
        """Reserve steps; -> the first of them."""
        first = self.step
        self.step += n_steps
        return first

    def generator(self):
        """A NumPy generator that is seeded by the next step."""
        return np.random.default_rng([self.seed, self.take(1)])

    def numbers(self, reference):
        """A source of the same random numbers, for arrays of the library and device of another."""
        place = namespace_of(reference), str(device_of(reference))  # CuPy's devices have no hash
        if place not in self._numbers:
            self._numbers[place] = Numbers(self.seed, reference)
        return self._numbers[place]

    def with_keys(self, reference, keys):
        """A copy, of which the numbers on a device have other keys from the next step on."""
        other, numbers = copy(self), self.numbers(reference).with_keys(self.step, keys)
        other._numbers = {place: numbers for place in self._numbers}
        return other

    def uniform(self, shape, dtype=np.float64, first_row=0):
        """
        Draw uniform numbers, as unit types need them for `sample`.

        Parameters
        ----------
        shape : tuple of (int, int)
            Rows and columns.
        dtype : dtype, default=float64
            float32 or float64.
        first_row : int, default=0
            Number of the first row: those of a block are the same as in the whole array.

        Returns
        -------
        u : ndarray of the given shape
            Between 0 and 1, neither of which occurs, of one step: 24 bits in float32, 53 in
            float64, of which the first 24 are the same.
        """
        out = np.empty(shape, dtype)
        uniform(out, self.seed, self.take(1), first_row)
        return out

    def uniform_beside(self, reference, shape, first_row=0):
        """Draw the numbers of `uniform` where an array of another library lies, in its type."""
        xp, parts = namespace_of(reference), self.numbers(reference)
        parts = parts.parts(self.take(1), shape, first_row)
        return uniform_of_arrays(*parts, reference.dtype == xp.float64, xp)

    def normal(self, shape, dtype=np.float64, first_row=0):
        """Draw standard normal numbers: quantiles of `uniform` ones of float64."""
        out = np.empty(shape, dtype)
        normal(out, self.seed, self.take(1), first_row)
        return out
