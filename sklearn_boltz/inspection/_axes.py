"""Axes of Matplotlib, with a helpful error if it is missing."""

import numpy as np


def require_pyplot():
    """Return Matplotlib's pyplot, or raise an error that says how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need Matplotlib, which is not installed: run `pip install matplotlib`."
        ) from error
    return pyplot


def axes_or_new(ax, figsize=None):
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    return require_pyplot().subplots(figsize=figsize, layout="constrained")[1]


def named_axes(ax, names, what, *shape, **options):
    """Axes by their names: those given, or of a new figure of some shape; `what` they show."""
    if ax is None:
        _, ax = require_pyplot().subplots(*shape, layout="constrained", **options)
    if np.size(ax) != len(names):
        number = {2: "two", 4: "four"}[len(names)]
        raise ValueError(f"ax must be {number} Axes, for {what}.")
    return dict(zip(names, np.ravel(ax), strict=True))


def height_in_points(ax):
    """The height of axes."""
    return ax.get_window_extent().height * 72 / ax.figure.dpi
