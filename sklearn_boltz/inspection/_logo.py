"""plot_logo: a sequence logo, such as the weights of a hidden unit."""

from functools import cache

import numpy as np
from sklearn.utils.validation import check_array

from sklearn_boltz.inspection._axes import axes_or_new

# The colour of each group of letters, which colour-blind readers can distinguish; others are grey.
NUCLEOTIDES = {"A": "#009e73", "C": "#0072b2", "G": "#e69f00", "TU": "#d55e00"}
RESIDUES = {
    "AFILMVW": "0.2",  # hydrophobic
    "NQST": "#009e73",  # polar
    "HKR": "#0072b2",  # positive
    "DE": "#d55e00",  # negative
    "CGPY": "#e69f00",  # others
}
# Letters that are lower than this share of the range of all heights are not drawn.
LOWEST = 0.01


def plot_logo(heights, letters, *, positions=None, ax=None):
    """Draw a sequence logo: for each site a stack of letters, the highest one outermost.

    Parameters
    ----------
    heights : array-like of shape (n_sites, n_letters)
        Height of each letter at each site; negative ones hang below the axis. For a hidden unit of
        an RBM whose columns are sites: its weights, less their mean over the letters of each site,
        which acts like a bias.
    letters : str of length n_letters
        The letters in the order of their codes, as in `alphabet` of an alignment.
    positions : array-like of int of shape (n_sites,), default=None
        The number of each site. None means 1, 2, 3, ...
    ax : matplotlib Axes, default=None
        Axes to draw on. None means a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the logo.

    Raises
    ------
    ValueError
        If the shapes do not match, or if heights are not finite.

    See Also
    --------
    ReceptiveFieldDisplay : The weights of hidden units as images.

    Examples
    --------
    The letters of an alignment of four sites; the height of each is its frequency:

    >>> import numpy as np
    >>> from sklearn_boltz.datasets import make_alignment
    >>> from sklearn_boltz.inspection import plot_logo
    >>> alignment = make_alignment(100, 4, alphabet="dna", random_state=0)
    >>> frequency = np.eye(4)[alignment.codes].mean(axis=0)
    >>> ax = plot_logo(frequency, alignment.alphabet)
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['1', '2', '3', '4']
    """
    heights = check_array(heights, dtype=np.float64, input_name="heights")
    positions = np.arange(1, len(heights) + 1) if positions is None else np.asarray(positions)
    if heights.shape != (len(positions), len(letters)):
        raise ValueError(
            f"plot_logo: heights has the shape {heights.shape}, but {len(positions)} positions and "
            f"the letters {letters!r} need {(len(positions), len(letters))}."
        )
    ax = axes_or_new(ax, figsize=(min(1 + 0.25 * len(heights), 10), 2))
    # Imported after the axes exist: their error says how to install Matplotlib.
    from matplotlib.collections import PathCollection
    from matplotlib.transforms import Affine2D

    paths, colors = [], []
    for site, column in enumerate(heights):
        for code, bottom in _stacked(column, LOWEST * np.ptp(heights)):
            path, color = _glyph(letters[code], set(letters) <= set("-ACGTU"))
            box = Affine2D().scale(0.9, abs(column[code])).translate(site - 0.45, bottom)
            paths.append(path.transformed(box))
            colors.append(color)
    ax.add_collection(PathCollection(paths, facecolors=colors, linewidths=0))
    ax.axhline(0, color="0.3", lw=0.6)
    ax.set(xlim=(-0.6, len(heights) - 0.4), xlabel="site")
    ax.autoscale_view(scalex=False)
    shown = np.arange(0, len(heights), max(1, len(heights) // 20))
    ax.set_xticks(shown, positions[shown])
    return ax


def _stacked(heights, lowest):
    """(letter, lower edge) of each letter of a site, from the axis outwards."""
    top, bottom = 0.0, 0.0
    for code in np.argsort(np.abs(heights), kind="stable"):
        if heights[code] > lowest:
            yield code, top
            top += heights[code]
        elif heights[code] < -lowest:
            bottom += heights[code]
            yield code, bottom


@cache
def _glyph(letter, is_nucleotide):
    """The outline of a letter that fills the unit square, and its colour."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import BboxTransformFrom

    kinds = NUCLEOTIDES if is_nucleotide else RESIDUES
    color = next((color for kind, color in kinds.items() if letter in kind), "0.6")
    path = TextPath((0, 0), letter, prop=FontProperties(weight="bold"))
    return path.transformed(BboxTransformFrom(path.get_extents())), color
