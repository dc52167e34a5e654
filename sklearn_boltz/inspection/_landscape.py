"""LandscapeDisplay: the fixed points of a TAP model."""

import numpy as np
from sklearn.manifold import Isomap
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import require_pyplot


class LandscapeDisplay:
    """The fixed points of a mean-field model: during training, by free energy, and on a map.

    There are three plots. The first shows the number of distinct solutions after each epoch and
    their free energies (Figure 5 of [1]_). The second is a histogram of the free
    energies of the solutions of the fitted model, where each solution counts once for each row
    that reaches it. The third shows rows and solutions on a plane, by Isomap (Figures 6 and 7).
    Use `from_estimator` to create a display.

    Parameters
    ----------
    solutions : Bunch
        What `tap_solutions` returned with ``unique=True``.
    history : dict of ndarray
        With the keys ``"n_solutions"``, ``"free_energy"`` and ``"free_energy_std"``.
    row_map : ndarray of shape (n_rows, 2)
        Coordinates of the rows on the plane.
    solution_map : ndarray of shape (n_solutions, 2)
        Coordinates of the solutions.
    y : array-like of shape (n_rows,), default=None
        Classes of the rows.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"training"``, ``"free_energy"`` and ``"map"``.
    figure_ : matplotlib Figure
        The figure of the axes.

    See Also
    --------
    HistoryDisplay : A quantity after each iteration of a fit.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. https://doi.org/10.1103/PhysRevX.8.041006

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_boltz import TAPRBM
    >>> from sklearn_boltz.inspection import LandscapeDisplay
    >>> X = load_digits().data[:200] > 8
    >>> model = TAPRBM(16, max_iter=5, random_state=0).fit(X)
    >>> display = LandscapeDisplay.from_estimator(model, X)
    >>> sorted(display.axes_)
    ['free_energy', 'map', 'n_solutions', 'training']
    """

    def __init__(self, *, solutions, history, row_map, solution_map, y=None):
        self.solutions = solutions
        self.history = history
        self.row_map = row_map
        self.solution_map = solution_map
        self.y = y

    @classmethod
    def from_estimator(cls, estimator, X, *, y=None, n_neighbors=10, **plot_kw):
        """Find the solutions that rows reach, and draw them.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `tap_solutions` and `history_`.
        X : array-like of shape (n_rows, n_features)
            Starts of the iteration. A few hundred rows give a readable plot.
        y : array-like of shape (n_rows,), default=None
            Classes of the rows, which determine their colours. None means colours by solution.
        n_neighbors : int, default=10
            Number of neighbours of each row for Isomap.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : LandscapeDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        rows = check_array(X, dtype=np.float64)
        solutions = estimator.tap_solutions(X)
        points = np.vstack([rows, solutions.visible_mean])
        n_neighbors = min(n_neighbors, len(points) - 1)
        plane = Isomap(n_neighbors=n_neighbors).fit_transform(points)
        display = cls(
            solutions=solutions,
            history=estimator.history_,
            row_map=plane[: len(rows)],
            solution_map=plane[len(rows) :],
            y=y,
        )
        return display.plot(**plot_kw)

    def plot(self, *, bins=30, cmap=None):
        """Draw the plots in a new figure.

        Parameters
        ----------
        bins : int, default=30
            Number of bins of the histogram.
        cmap : str or Colormap, default=None
            Colours of the classes. None means ``"tab10"``.

        Returns
        -------
        display : LandscapeDisplay
            The display itself.
        """
        self.figure_, axes = require_pyplot().subplot_mosaic(
            [["training", "free_energy", "map"], ["n_solutions", "free_energy", "map"]],
            figsize=(12, 3.8),
            layout="constrained",
            width_ratios=(1, 0.8, 1.1),
        )
        self.axes_ = axes
        self._plot_training(axes["training"], axes["n_solutions"])
        counts = np.bincount(self.solutions.assignment, minlength=len(self.solution_map))
        axes["free_energy"].hist(self.solutions.free_energy, bins=bins, weights=counts, color="C0")
        axes["free_energy"].set(xlabel="free energy, nats", ylabel="rows", title="solutions")
        self._plot_map(axes["map"], counts, cmap or "tab10")
        return self

    def _plot_training(self, ax, below):
        n_solutions, mean = self.history["n_solutions"], self.history["free_energy"]
        deviation = self.history["free_energy_std"]
        epochs = np.arange(1, len(mean) + 1)
        ax.plot(epochs, mean, color="C0")
        ax.fill_between(epochs, mean - deviation, mean + deviation, color="C0", alpha=0.25, lw=0)
        ax.set(ylabel="free energy", title="training", xticklabels=[])
        below.plot(epochs, n_solutions, color="C0")
        below.set(xlabel="epoch", ylabel="solutions", ylim=(0, None))

    def _plot_map(self, ax, counts, cmap):
        colours = self.solutions.assignment if self.y is None else self.y
        labels, colours = np.unique(colours, return_inverse=True)
        dots = ax.scatter(*self.row_map.T, c=colours % 10, cmap=cmap, s=8, alpha=0.6, lw=0)
        if self.y is not None and len(labels) <= 10:
            handles, _ = dots.legend_elements(alpha=1)
            ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        size = 15 + 200 * np.sqrt(counts / counts.sum())
        ax.scatter(*self.solution_map.T, s=size, facecolors="none", edgecolors="black", lw=0.8)
        ax.set(xticks=[], yticks=[], title="rows (dots) and solutions (circles), Isomap")
