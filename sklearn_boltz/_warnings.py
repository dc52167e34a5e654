"""Where a warning points to."""

import sys


def find_stack_level():
    """The level for a warning of the first frame outside of this package and its callers."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("sklearn_boltz.", "sklearn.", "joblib.")
    ):
        frame, level = frame.f_back, level + 1
    return level
