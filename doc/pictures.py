"""The picture of README.md, that of an example: ``python doc/pictures.py``.

It is in git, so that the README shows it without a build of the gallery.
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    plt.switch_backend("agg")
    plt.style.use(FOLDER / "gallery.mplstyle")
    plt.show = lambda: plt.savefig(FOLDER / "_static" / "fill.png", dpi=150)
    runpy.run_path(str(FOLDER.parent / "examples" / "plot_tables_fill.py"))
