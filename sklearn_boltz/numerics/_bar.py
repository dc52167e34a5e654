"""Bars of long computations, with the time that is left."""

from tqdm import tqdm

# Seconds before a bar is shown.
DELAY = 2.0


def progress_bar(what, total, is_shown):
    """A bar on the standard error, of what takes more than two seconds."""
    return tqdm(desc=what, total=total, delay=DELAY, disable=not is_shown)


def counted(function, bar):
    """A function, of which each call is a step of a bar."""

    def step(*arguments):
        found = function(*arguments)
        bar.update()
        return found

    return step
