"""How far a long computation has come, and the time that is left."""

import sys
from threading import Lock
from time import monotonic

# Seconds before a bar is shown, and between two of its states.
DELAY, PAUSE = 2.0, 0.2
WIDTH = 20


class Bar:
    """A line on the standard error, of what takes more than two seconds, as a context.

    Parameters
    ----------
    what : str
    total : int
        The number of steps, or the largest there may be.
    is_shown : bool or int
    """

    def __init__(self, what, total, is_shown=True):
        self.what, self.total, self.n_done, self.is_shown = what, total, 0, is_shown
        self._start, self._drawn, self._lock = monotonic(), None, Lock()

    def step(self, result=None):
        """Count a step, in any thread; -> its result."""
        with self._lock:
            self.n_done += 1
            now = monotonic()
            is_due = now - (self._drawn or self._start + DELAY - PAUSE) >= PAUSE
            if self.is_shown and is_due and self.n_done <= self.total:
                self._draw(now)
        return result

    def _draw(self, now):
        self._drawn, share = now, self.n_done / self.total
        minutes, seconds = divmod(round((now - self._start) * (1 / share - 1)), 60)
        line = "=" * int(WIDTH * share)
        text = f"{self.what} [{line:{WIDTH}}] {self.n_done}/{self.total}"
        print(f"\r{text}, {minutes}:{seconds:02} left ", end="", file=sys.stderr, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._drawn is not None:
            print(file=sys.stderr)
