"""The one place where Matplotlib is looked for."""


def require_pyplot():
    """Return Matplotlib's pyplot, or say what to do where it is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Pictures need Matplotlib, which is not installed: run `pip install matplotlib`."
        ) from error
    return pyplot


def axes_or_new(ax, figsize=None):
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    return require_pyplot().subplots(figsize=figsize, layout="constrained")[1]
