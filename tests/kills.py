"""What kills a worker of a Dask cluster in the middle of a fit, at a place that can be repeated."""

import os
import signal
import time

from distributed import SchedulerPlugin


def wait_for_both(cluster):
    """Wait for two workers; of one that was not started again for half a minute, start another.

    The scheduler is asked: what the cluster has heard of its workers can be out of date.
    """
    if not has_both(cluster, 30):
        cluster.scale(len(cluster.workers) + 1)
        if not has_both(cluster, 60):
            raise TimeoutError("A worker was not started.")


def has_both(cluster, seconds):
    """Whether the scheduler has two workers, within some seconds."""
    end = time.monotonic() + seconds
    while len(cluster.scheduler.workers) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    return len(cluster.scheduler.workers) >= 2


class Killer(SchedulerPlugin):
    """Count the results of tasks, and kill a worker when there are this many.

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
