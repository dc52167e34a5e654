"""Import of Matplotlib, with a helpful error if it is missing."""


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


def height_in_points(ax):
    """The height of axes."""
    return ax.get_window_extent().height * 72 / ax.figure.dpi
