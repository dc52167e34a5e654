"""Gibbs sampling: random numbers, threads over blocks of rows, chains."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from copy import copy
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from sklearn_boltz._base import _thread_pools, limit_blas
from sklearn_boltz.restricted._gibbs_kernel import bernoulli_draw, gibbs_chains, uniform
from sklearn_boltz.restricted.units import Bernoulli

# Rows of a block: with fewer, BLAS spends its time on rearranging the weights. A mini-batch of
# this many is cut in two all the same, for a second thread. Results do not depend on the
# number of threads because the blocks do not.
BLOCK_ROWS, LEAST_ROWS = 100, 40
# Multiplications that must fall to a thread before it pays to wake it.
MIN_WORK = 4_000_000
# Persistent chains at most, unless there are more rows.
MOST_CHAINS = 10_000


class Stream:
    """Random numbers that are functions of (seed, step, row, column).

    Parameters
    ----------
    seed : int
        From 0 to 2**64 - 1.
    """

    def __init__(self, seed):
        self.seed, self.step = int(seed), 0

    @classmethod
    def from_generator(cls, rng):
        """A stream with a seed drawn from a NumPy generator."""
        return cls(rng.integers(2**63))

    def take(self, n_steps):
        """Reserve steps; -> the first of them."""
        first = self.step
        self.step += n_steps
        return first

    def uniform(self, shape, dtype=np.float64, first_row=0):
        """
        Draw uniform numbers, as a unit law needs them for `sample`.

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
            From 0 to 1, of one step: 24 bits in float32, 31 in float64.
        """
        out = np.empty(shape, dtype)
        uniform(out, self.seed, self.take(1), first_row)
        return out


class Workers:
    """Threads over blocks of rows, as a context, with one thread of BLAS in each.

    Parameters
    ----------
    n_jobs : int or None
        None for as many as BLAS would use.
    """

    def __init__(self, n_jobs=None):
        if n_jobs is None:
            libraries = _thread_pools().select(user_api="blas").lib_controllers
            self.n_threads = max([library.num_threads for library in libraries], default=1)
        else:
            self.n_threads = effective_n_jobs(n_jobs)
        self._pool = None

    def __enter__(self):
        self._stack = ExitStack()
        self._stack.enter_context(limit_blas(1))
        if self.n_threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_threads))
        return self

    def __exit__(self, *error):
        self._pool = None
        return self._stack.__exit__(*error)

    def map(self, function, blocks, work):
        """Call a function of a slice for each block; `work` is the cost of all, in products."""
        if self._pool is None or len(blocks) == 1 or work < MIN_WORK * len(blocks):
            return [function(block) for block in blocks]
        errors = np.geterr()  # each thread has its own

        def run(block):
            with np.errstate(**errors):
                return function(block)

        return list(self._pool.map(run, blocks))


def has_other_processes():
    """Whether joblib is configured to work in other processes, and this is not one of them."""
    backend, n_jobs = get_active_backend()
    if getattr(backend, "supports_sharedmem", False) or n_jobs == 1:
        return False
    # On a worker of Dask, joblib is configured as where the task came from.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return True
    try:
        distributed.get_worker()
    except ValueError:
        return True
    return False


def row_blocks(n_rows, size=BLOCK_ROWS):
    """Slices of nearly equal length that cover the rows, whatever the threads."""
    n_blocks = max(1, round(n_rows / size), min(2, n_rows // LEAST_ROWS))
    return [slice(*ends) for ends in pairwise(n_rows * k // n_blocks for k in range(n_blocks + 1))]


def run_chains(model, V, H, n_steps, stream, workers, *, from_hidden=False, first_row=0):
    """Make transitions of one Markov chain a row, in place.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_rows, n_visible)
        Where the chains are, and then the states after the last transition.
    H : ndarray of shape (n_rows, n_hidden)
        With `from_hidden`, where the chains start; in the end E[h | V].
    n_steps : int
    stream : Stream
    workers : Workers
    from_hidden : bool
        Whether the chains start at `H`, so that the first transition is only half a one.
    first_row : int
        What the random numbers take for the number of the first chain, where these are a part.
    """
    first, weights = stream.step, model.weights_by_visible
    if type(model.visible) is type(model.hidden) is Bernoulli:

        def block(rows):
            gibbs_chains(
                weights, model.visible.intercept, model.hidden.intercept, V[rows], H[rows],
                n_steps, from_hidden, stream.seed, first, first_row + rows.start,
            )  # fmt: skip
            return first + 2 * n_steps

    else:

        def block(rows):
            # Each block takes the same steps: a random number depends on its row as well.
            own = copy(stream)
            _run_chains_of_any_units(
                model, V[rows], H[rows], n_steps, own, first_row + rows.start, from_hidden
            )
            return own.step

    work = len(V) * weights.size * (2 * n_steps + 1)
    stream.step = workers.map(block, row_blocks(len(V)), work)[-1]


def _run_chains_of_any_units(model, V, H, n_steps, stream, first_row, from_hidden):
    for step in range(n_steps):
        if step > 0 or not from_hidden:
            H[...] = model.hidden.sample(model.hidden_field(V), stream, first_row)
        V[...] = model.visible.sample(model.visible_field(H), stream, first_row)
    H[...] = model.mean_hidden(V)


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
