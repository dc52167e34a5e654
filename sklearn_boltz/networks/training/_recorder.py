"""What the iterations of a fit find, for its history, its callbacks and Ctrl-C."""

import time


def never(state):
    """No user ends the fit."""
    return False


class Recorder:
    """The iterations so far, which a user may end, or interrupt.

    Parameters
    ----------
    end_iteration : callable, default=never
        Called with the last state after each iteration; returns whether to stop.
    verbose : int, default=0
        Print a line for each iteration if greater than 1.

    Attributes
    ----------
    values, seconds : list of float
        The objective after each iteration, and how long it took. A value before these is that of
        `begin`.
    figures : dict of list
        What else is known of each iteration, by name.
    last : object or None
        The last state that is good, with `coupling` and `intercept`; it remains after Ctrl-C.
    n_kept : int
        The number of its iteration.
    asked : bool
        Whether the user has ended the fit.
    """

    def __init__(self, end_iteration=never, verbose=0):
        self.end_iteration, self.verbose = end_iteration, verbose
        self.values, self.seconds, self.figures = [], [], {}
        self.last, self.n_kept, self.asked = None, 0, False
        self._time = time.perf_counter()

    def begin(self, value, state):
        """Record where the first iteration begins."""
        self.values.append(value)
        self.keep(state)
        self._time = time.perf_counter()

    def add(self, value, state, line, **figures):
        """Record the end of an iteration, and print the line that tells of it."""
        self.seconds.append(time.perf_counter() - self._time)
        self.values.append(value)
        for name, figure in figures.items():
            self.figures.setdefault(name, []).append(figure)
        self.keep(state)
        if self.verbose > 1:
            print(line)

    def keep(self, state):
        """Take a state for that of the last iteration, unless it is None."""
        if state is not None:
            self.last, self.n_kept = state, len(self.seconds)

    def stop(self):
        """Whether to end after this iteration; the next one begins now."""
        self.asked = self.end_iteration(self.last)
        self._time = time.perf_counter()
        return self.asked
