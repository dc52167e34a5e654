"""Threads over blocks of rows, with BLAS held to one thread in each."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import RLock
from types import SimpleNamespace
from weakref import ref

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from sklearn_boltz.numerics._bar import counted

# Rows of a block: with fewer, BLAS spends its time on rearranging the weights. A mini-batch of
# this many is cut in two all the same, for a second thread. Results do not depend on the
# number of threads because the blocks do not.
BLOCK_ROWS, LEAST_ROWS = 100, 40
# Numbers in a block of narrow rows: to fewer, NumPy does less than the calls cost.
BLOCK_CELLS = 2**14
# Probabilities of all values of the columns of a block, where there are many steps for it.
PROBABILITIES = 2**19
# Multiplications that must fall to a thread before it pays to wake it.
MIN_WORK = 4_000_000


@cache
def _blas():
    # Made once: looking for the libraries takes longer than a small fit.
    return ThreadpoolController().select(user_api="blas").lib_controllers


# The limits of BLAS that are in force, over all threads, and the numbers before the first. Each is
# a weak reference to its context: with a context that was interrupted before it could lift its
# limit, the limit goes.
_limits = SimpleNamespace(lock=RLock(), held=set(), before=None)


class limit_blas:
    """Limit the threads of BLAS, as a context.

    Its threads spin after each call. On small matrices that costs more than it gives, and
    beside threads of our own it is ruinous.

    The limit is one of the whole process. Where contexts overlap, in several threads, the first
    sets it, and the last lifts it: each by itself would bring back what another had set.

    An interrupt, wherever it comes, lifts the limit, at the latest when its traceback is dropped.
    In a process that is forked, no limit is in force.
    """

    def __init__(self, n_threads):
        self.n_threads = n_threads

    def __enter__(self):
        self._held = _limit(self, self.n_threads)

    def __exit__(self, *error):
        held, self._held = self._held, None
        _lift(held)


def _limit(context, n_threads):
    """Set a limit while a context lives; -> the reference that `_lift` takes."""
    held = ref(context, _release)
    try:
        with _limits.lock:
            # Python ignores an interrupt of `_release` where it drops a context.
            if _limits.before is not None and all(other() is None for other in _limits.held):
                _release(None)
            _limits.held.add(held)
            if _limits.before is None:
                before = [(library, library.num_threads) for library in _blas()]
                _limits.before = before  # before any is changed
                for library, _ in before:
                    library.set_num_threads(n_threads)
    except BaseException:
        _release(held)
        raise
    return held


def _lift(held):
    """Lift a limit, even if this is interrupted."""
    try:
        _release(held)
    except BaseException:
        _release(held)
        raise


def _release(held):
    """Forget a limit, and bring back the numbers if it was the last; may be called again."""
    with _limits.lock:
        _limits.held -= {held, *(other for other in _limits.held if other() is None)}
        before = _limits.before
        if before is not None and not _limits.held:
            _disown_blas()
            for library, n_threads in before:
                library.set_num_threads(n_threads)
            _disown_blas()
            _limits.before = None


def _disown_blas():
    """Let any thread set limits: threadpoolctl 3.8 heeds none but the one that began."""
    for library in _blas():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def _lift_in_child():
    """Lift the limits in a process that was forked: its copies of the contexts never leave."""
    try:
        _limits.held.clear()
        _release(None)
    finally:
        _limits.lock.release()


if hasattr(os, "register_at_fork"):
    # No fork comes amid a change of a limit, where a lock that no one opens would be copied.
    os.register_at_fork(
        before=_limits.lock.acquire,
        after_in_parent=_limits.lock.release,
        after_in_child=_lift_in_child,
    )


class Workers:
    """Threads over blocks of rows, as a context, with one thread of BLAS in each.

    Parameters
    ----------
    n_jobs : int or None
        None for as many as BLAS would use.
    bar : tqdm or NoBar or None
        One whose steps are blocks.
    """

    def __init__(self, n_jobs=None, bar=None):
        self.bar = bar
        if n_jobs is None:
            self.n_threads = max([library.num_threads for library in _blas()], default=1)
        else:
            self.n_threads = effective_n_jobs(n_jobs)
        self._pool = None

    def __enter__(self):
        self._held = _limit(self, 1)
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return self

    def __exit__(self, *error):
        (pool, self._pool), (held, self._held) = (self._pool, None), (self._held, None)
        try:
            if pool is not None:
                pool.shutdown()
        finally:
            _lift(held)

    def map(self, function, blocks, work):
        """Call a function of a slice for each block; `work` is the cost of all, in products."""
        if self.bar is not None:
            self.bar.total = (self.bar.total or 0) + len(blocks)
            function = counted(function, self.bar)
        if self._pool is None or len(blocks) == 1 or work < MIN_WORK * len(blocks):
            return [function(block) for block in blocks]
        errors = np.geterr()  # each thread has its own

        def run(block):
            with np.errstate(**errors):
                return function(block)

        return list(self._pool.map(run, blocks))


def in_parallel(function, arguments, n_jobs, bar=None):
    """The results of a function for each of some tuples of arguments, in their order.

    Each is a step of a bar.
    """
    tasks = (delayed(function)(*given) for given in arguments)
    if bar is None or bar.disable:
        return Parallel(n_jobs=n_jobs)(tasks)
    with bar:
        found = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        return list(map(counted(lambda one: one, bar), found))


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


def slices_of_rows(n_rows, n_entries, most):
    """Slices of rows of which each has this many entries, not more than `most` together."""
    step = max(1, int(most // max(1, n_entries)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def blocks_of_narrow_rows(n_rows, n_columns, cells=BLOCK_CELLS):
    """`row_blocks` for what calls NumPy many times for a block: the narrower, the more rows."""
    return row_blocks(n_rows, max(BLOCK_ROWS, cells // max(n_columns, 1)))
