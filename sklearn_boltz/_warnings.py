"""Where a warning points to, and how often it is given."""

import sys
import warnings
from contextvars import ContextVar
from functools import wraps

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


def told_once(method):
    """A method whose steps give a warning of the same thing only once; see `warn_once`."""

    @wraps(method)
    def telling(*args, **kwargs):
        told = _TOLD.get()
        token = _TOLD.set(set() if told is None else told)
        try:
            return method(*args, **kwargs)
        finally:
            _TOLD.reset(token)

    return telling


def warn_once(what, message):
    """Give a warning, but not the second one of the same thing in a method that is `told_once`."""
    told = _TOLD.get()
    if told is None or what not in told:
        warn(message)
    if told is not None:
        told.add(what)
