"""The pictures of README.md and of the first page, that of an example: ``python doc/pictures.py``.

They are in git, so that the README shows its own without a build of the gallery.
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent


def save():
    """Save the picture, and one for phones: its parts below each other."""
    figure = plt.gcf()
    figure.savefig(FOLDER / "_static" / "fill.png", dpi=150)
    for ax, place in zip(figure.axes, figure.add_gridspec(3), strict=True):
        ax.set_subplotspec(place)
        ax.set_ylabel("flipper, mm")
        ax.tick_params(labelleft=True)
        ax.label_outer()
    figure.set_size_inches(4.2, 8.4)
    figure.savefig(FOLDER / "_static" / "fill_narrow.png", dpi=150)


if __name__ == "__main__":
    plt.switch_backend("agg")
    plt.style.use(FOLDER / "gallery.mplstyle")
    plt.show = save
    runpy.run_path(str(FOLDER.parent / "examples" / "plot_tables_fill.py"))
