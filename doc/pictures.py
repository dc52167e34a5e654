"""The picture of the landing page and of README.md: ``python doc/pictures.py``.

It is in git, so that the documentation and the README show it without a build of the gallery.
"""

from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch

from sklearn_boltz import FSLLDensity
from sklearn_boltz.datasets import make_ising_grid

FOLDER = Path(__file__).parent / "_static"
N_ROWS, N_COLUMNS = 5, 4
BLUE, ORANGE, INK = "#0f5c8e", "#f0a04b", "#2b2b2b"


def draw_table(fig, cell, X):
    """Draw rows of the table as grids of spins that point up or down."""
    grids = cell.subgridspec(3, 6, wspace=0.0, hspace=0.12)
    for position, row in zip(grids, X, strict=False):
        ax = fig.add_subplot(position)
        up = row.reshape(N_ROWS, N_COLUMNS)
        for (i, j), spin in np.ndenumerate(up):
            ax.plot(j, -i, "^" if spin else "v", color=ORANGE if spin else BLUE, ms=5.6, mew=0)
        ax.set(xlim=(-1.1, N_COLUMNS + 0.1), ylim=(0.4 - N_ROWS, 0.6), aspect="equal")
        ax.axis("off")


def draw_network(ax, model):
    """Draw all pairs faintly, and the terms that the model has chosen."""
    place = np.array([(i % N_COLUMNS, -(i // N_COLUMNS)) for i in range(N_ROWS * N_COLUMNS)])
    for pair in combinations(range(len(place)), 2):
        ax.plot(*place[list(pair)].T, color="0.91", lw=0.6, zorder=0)
    for term in model.basis_:
        ax.plot(*place[np.flatnonzero(term)].T, color=BLUE, lw=6, zorder=1)
    ax.plot(*place.T, "o", ms=15, color="white", mec=INK, mew=1.3, zorder=2)
    for site, (x, y) in enumerate(place):
        ax.text(x, y, site, ha="center", va="center", fontsize=7, color=INK, zorder=3)
    ax.set(xlim=(-0.35, N_COLUMNS - 0.65), ylim=(0.65 - N_ROWS, 0.35), aspect="equal")
    ax.axis("off")


def main():
    """Draw the magnets."""
    X, edges = make_ising_grid(N_ROWS, N_COLUMNS, n_samples=1000, random_state=0, return_edges=True)
    model = FSLLDensity().fit(X)
    found = {tuple(np.flatnonzero(term).tolist()) for term in model.basis_}
    assert found == set(map(tuple, edges.tolist()))
    fig = plt.figure(figsize=(8.6, 3.9), facecolor="white")
    cells = fig.add_gridspec(
        1, 3, width_ratios=[5.5, 0.7, 3], left=0.02, right=0.98, top=0.86, bottom=0.03
    )
    draw_table(fig, cells[0], X)
    draw_network(fig.add_subplot(cells[2]), model)
    fig.text(0.31, 0.93, "in: 1,000 rows, 20 columns of ups and downs", ha="center", color=INK)
    fig.text(0.83, 0.93, "out: 31 of 1,048,575 terms", ha="center", color=INK)
    fig.add_artist(
        FancyArrowPatch((0.615, 0.45), (0.68, 0.45), mutation_scale=22, color=INK, lw=1.8)
    )
    fig.savefig(FOLDER / "magnets.png", dpi=160)


if __name__ == "__main__":
    main()
