"""The one place where Matplotlib is looked for."""


def axes_or_new(ax):
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Pictures need Matplotlib, which is not installed: run `pip install matplotlib`."
        ) from error
    return pyplot.subplots(layout="constrained")[1]
