"""Where a warning points to, and how often it is given."""

import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

EVERYTHING = "everything"
# What the present call of the user was warned of; None if every warning is given.
_TOLD = ContextVar("told", default=None)


def find_stack_level():
    """The level for a warning of the first frame outside of this package and its callers."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("sklearn_boltz.", "sklearn.", "joblib.")
    ):
        frame, level = frame.f_back, level + 1
    return level


def warn(message, category=UserWarning):
    """Give a warning, which points to the user's line."""
    warnings.warn(message, category, stacklevel=find_stack_level())


@contextmanager
def telling_once(*, nothing=False):
    """Context of a call of the user of which several steps have to warn of the same thing.

    With `nothing`, of a step after one that has given the warnings.
    """
    told = _TOLD.get()
    token = _TOLD.set({EVERYTHING} if nothing else set() if told is None else told)
    try:
        yield
    finally:
        _TOLD.reset(token)


def told_once(method):
    """A method as one call of the user in the sense of `telling_once`."""

    @wraps(method)
    def telling(*args, **kwargs):
        with telling_once():
            return method(*args, **kwargs)

    return telling


def warn_once(what, message):
    """Give a warning, but not the second one of the same thing in a context of `telling_once`."""
    told = _TOLD.get()
    if told is None or not told & {what, EVERYTHING}:
        warn(message)
    if told is not None:
        told.add(what)
