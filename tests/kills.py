"""What kills a worker of a Dask cluster in the middle of a fit, at a place that can be repeated."""

import os
import signal

from distributed import SchedulerPlugin


def wait_for_both(cluster):
    """Wait for two workers; of one that was not started again for half a minute, start another."""
    try:
        cluster.wait_for_workers(2, timeout=30)
    except TimeoutError:
        cluster.scale(len(cluster.workers) + 1)
        cluster.wait_for_workers(2, timeout=60)


class Killer(SchedulerPlugin):
    """Count the results of tasks, and kill a worker when there are so many.

    Parameters
    ----------
    scheduler : distributed.Scheduler
        In this process, as that of a `LocalCluster` is.
    """

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.begin()

    def begin(self, at=None, other=False):
        """Count from 0; at that number, kill the worker that sent the result, or another one."""
        self.n_results, self.at, self.other, self.killed = 0, at, other, False

    def transition(self, key, start, finish, *args, worker=None, **options):
        """See a task change its state."""
        if start != "processing" or finish != "memory":
            return
        self.n_results += 1
        if self.n_results == self.at:
            alive = self.scheduler.workers
            others = [address for address in alive if address != worker]
            os.kill(alive[others[0] if self.other and others else worker].pid, signal.SIGKILL)
            self.killed = True
