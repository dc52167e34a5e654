"""Threads over blocks of rows, with BLAS held to one thread in each."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

# Rows of a block: with fewer, BLAS spends its time on rearranging the weights. A mini-batch of
# this many is cut in two all the same, for a second thread. Results do not depend on the
# number of threads because the blocks do not.
BLOCK_ROWS, LEAST_ROWS = 100, 40
# Multiplications that must fall to a thread before it pays to wake it.
MIN_WORK = 4_000_000


@cache
def _thread_pools():
    # Made once: looking for the libraries takes longer than a small fit.
    return ThreadpoolController()


class _Limits:
    """How many limits of BLAS are in force, over all threads, and the first of them."""

    lock, number, first = Lock(), 0, None


@contextmanager
def limit_blas(n_threads):
    """Limit the threads of BLAS, as a context.

    Its threads spin after each call. On small matrices that costs more than it gives, and
    beside threads of our own it is ruinous.

    The limit is one of the whole process. Where contexts overlap, in several threads, the first
    sets it, and the last lifts it: each by itself would bring back what another had set.
    """
    with _Limits.lock:
        if _Limits.number == 0:
            _Limits.first = _thread_pools().limit(limits=n_threads, user_api="blas")
        _Limits.number += 1
    try:
        yield
    finally:
        with _Limits.lock:
            _Limits.number -= 1
            if _Limits.number == 0:
                _disown_blas()
                _Limits.first.restore_original_limits()
                _disown_blas()


def _disown_blas():
    """Let any thread set limits: threadpoolctl 3.8 heeds none but the one that began."""
    for library in _thread_pools().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


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


class OneThread:
    """What has the method `map` of `Workers`, for work that a thread of theirs does."""

    n_threads = 1

    def map(self, function, blocks, work):
        """Call a function of a slice for each block."""
        return [function(block) for block in blocks]


def in_parallel(function, arguments, n_jobs):
    """The results of a function for each of some tuples of arguments, in their order."""
    return Parallel(n_jobs=n_jobs)(delayed(function)(*given) for given in arguments)


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
