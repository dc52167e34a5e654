"""Batches of a Dask collection, and a cluster whose workers may die."""

import asyncio
import concurrent.futures
import gc
import sys
from functools import partial
from time import sleep

from sklearn_boltz.tables._blocks import ListedBlocks, rows_of, unless_empty

# How often a Dask cluster that loses workers is asked for one result, and the seconds between; how
# many seconds it may be without any worker, and how often that is looked at.
ATTEMPTS, PAUSE = 5, 0.2
ALONE, LOOK = 60.0, 1.0


class DaskBlocks(ListedBlocks):
    """Partitions of a Dask collection, in any cluster or in this process."""

    is_dask = True

    def __init__(self, parts):
        self.n_blocks, self.parts = len(parts), parts

    def block(self, k):
        return outlive_workers(partial(computed, self.parts[k]))

    def first(self, function):
        from dask import delayed

        apply = delayed(partial(unless_empty, lambda k, batch: function(batch)), pure=False)
        tasks = (apply(k, part) for k, part in enumerate(self.parts))
        found = (outlive_workers(partial(computed, task)) for task in tasks)
        return next((result for result in found if result is not None), None)

    def mapped(self, function):
        from dask import delayed

        return DaskBlocks([delayed(function)(k, part) for k, part in enumerate(self.parts)])

    def map_reduce(self, function, merge):
        """By a tree of tasks; only the result is sent to this process."""
        from dask import delayed

        function, merge = delayed(function, pure=False), delayed(merge, pure=False)
        level = [function(k, part) for k, part in enumerate(self.parts)]
        while len(level) > 1:
            pairs = [merge(*level[k : k + 2]) for k in range(0, len(level) - 1, 2)]
            level = pairs + level[2 * len(pairs) :]
        return outlive_workers(partial(computed, level[0]))

    def take(self, wanted):
        """Rows of batches, by their numbers in these: from a dict to a dict, on the workers."""
        from dask import delayed

        picked = {k: delayed(_pick)(self.parts[k], rows) for k, rows in wanted.items()}
        return outlive_workers(partial(computed, delayed(picked)))

    def futures(self, client):
        """The batches in the memory of a cluster."""
        from dask import delayed

        return client.compute([delayed(rows_of)(part) for part in self.parts])


def _pick(batch, rows):
    return rows_of(batch)[rows]


def current_client():
    """The client of the Dask cluster that is in use, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:
        return None


def computed(value):
    """The result of a Dask collection or of delayed work, in the cluster if there is one."""
    client = current_client()
    return value.compute() if client is None else gathered(client, client.compute(value))


def gathered(client, futures):
    """The results of one or several futures; an error if the cluster has no worker for long."""
    from distributed import wait

    alone = 0.0
    while True:
        try:
            wait(futures, timeout=LOOK)
            return client.gather(futures)
        except TimeoutError:
            alone = 0.0 if client.scheduler_info(n_workers=1)["workers"] else alone + LOOK
        if alone >= ALONE:
            client.cancel(futures)
            raise _without_workers()


def workers_of(client):
    """The addresses of the workers of a cluster, in order; it waits for the first one."""
    try:
        client.wait_for_workers(1, timeout=ALONE)
    except TimeoutError as error:
        raise _without_workers() from error
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def _without_workers():
    return RuntimeError(
        f"The Dask cluster has had no worker for {ALONE:g} seconds. Start workers, and fit again; "
        "nothing of this fit is kept."
    )


def outlive_workers(function):
    """Call a function again while a Dask cluster cannot answer because workers have died."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return function()
        except BaseException as error:
            if not _is_of_workers(error):
                raise
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"The Dask cluster failed in each of {ATTEMPTS} attempts to compute one "
                    "result, as it does when workers die. Look into their logs. If a worker runs "
                    "out of memory, make the chunks smaller; if machines come and go, increase "
                    "distributed.scheduler.allowed-failures. The last attempt ended with "
                    f"{type(error).__name__}: {error}"
                ) from error
        # While futures of the failed attempt are in its frames, Dask does not compute them again.
        # They are released in another thread.
        gc.collect()
        sleep(PAUSE)


def _is_of_workers(error):
    """Whether Dask raises this where workers have died, and no task of ours does."""
    if isinstance(error, OSError):  # with a number, of a file
        return error.errno is None
    killed = getattr(sys.modules.get("distributed"), "KilledWorker", ())
    cancelled = asyncio.CancelledError, concurrent.futures.CancelledError
    return isinstance(error, (*cancelled, killed))
