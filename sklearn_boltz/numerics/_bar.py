"""Bars of long computations, with the time that is left where the number of steps is known."""

from contextlib import nullcontext

from tqdm import tqdm

# Seconds before a bar is shown.
DELAY = 2.0


class NoBar(nullcontext):
    """A bar that is not shown.

    Each of tqdm takes a lock that all threads share, and an interrupt there would keep it for ever.
    """

    disable, n, total = True, 0, 0

    def __enter__(self):
        return self

    def update(self, n=1):
        """Show nothing."""


def progress_bar(what, total, is_shown):
    """A bar on the standard error, of what takes more than two seconds."""
    return tqdm(desc=what, total=total, delay=DELAY) if is_shown else NoBar()


def counted(function, bar):
    """A function, of which each call is a step of a bar."""

    def step(*arguments):
        found = function(*arguments)
        bar.update()
        return found

    return step
