"""CouplingDisplay: a network of interactions, as a matrix or as a graph."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import axes_or_new


class CouplingDisplay:
    """The couplings of a pairwise model, as a heat map or as a graph.

    Use `from_estimator` to create one.

    Parameters
    ----------
    coupling : ndarray of shape (n_features, n_features)
        Symmetric.
    names : list of str
        Names of the variables.
    significant : ndarray of bool of shape (n_features, n_features), default=None
        Which couplings differ from 0 beyond chance. None if that is not known.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        Which contains it.
    image_ : matplotlib AxesImage or LineCollection
        What the colours belong to: the matrix, or the edges.
    colorbar_ : matplotlib Colorbar or None
        The scale of the colours.
    positions_ : ndarray of shape (n_features, 2)
        Where the nodes of the graph are.

    See Also
    --------
    HistoryDisplay : The course of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.inspection import CouplingDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> display = CouplingDisplay.from_estimator(model, X, kind="graph")
    >>> display.significant.sum() // 2
    np.int64(1)
    """

    def __init__(self, *, coupling, names, significant=None):
        self.coupling = coupling
        self.names = names
        self.significant = significant

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        kind="heatmap",
        significance_level=0.05,
        method="fdr_bh",
        sample_weight=None,
        ax=None,
        **plot_kw,
    ):
        """Draw the couplings of a fitted estimator.

        Parameters
        ----------
        estimator : FVBMPseudoLikelihood
            The fitted estimator.
        X : array-like of shape (n_samples, n_features), default=None
            The training data. If given, couplings that may be chance are hatched in the heat
            map and left out of the graph.
        kind : {"heatmap", "graph"}, default="heatmap"
            What to draw.
        significance_level : float, default=0.05
            A coupling is significant if its adjusted p value is below.
        method : {"fdr_bh", "holm"}, default="fdr_bh"
            How the p values are adjusted for their number.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : CouplingDisplay
            The picture with its data.
        """
        check_is_fitted(estimator)
        significant = None
        if X is not None:
            inference = estimator.inference(X, sample_weight=sample_weight)
            # NaN, on the diagonal and for constant columns, is not below.
            p_value = inference.coupling_matrix(inference.adjusted_p_value(method))
            significant = p_value < significance_level
        names = [str(name) for name in estimator.get_feature_names_out()]
        display = cls(coupling=estimator.coupling_, names=names, significant=significant)
        return display.plot(kind=kind, ax=ax, **plot_kw)

    def plot(self, *, kind="heatmap", ax=None, cmap=None, limit=None, colorbar=True, layout="auto"):
        """Draw.

        Parameters
        ----------
        kind : {"heatmap", "graph"}, default="heatmap"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        cmap : str or matplotlib Colormap, default=None
            The colours, of which the middle one stands for 0. None means ``"RdBu_r"`` for the
            heat map and ``"coolwarm"``, whose middle is grey, for the graph.
        limit : float, default=None
            The coupling with the strongest colour. None means the largest.
        colorbar : bool, default=True
            Whether to draw the scale of the colours.
        layout : {"auto", "circle", "spring"} or array-like of shape (n_features, 2), \
                default="auto"
            Where the nodes of the graph are. ``"spring"`` needs networkx and pulls strongly
            coupled variables together; ``"auto"`` is ``"spring"`` if networkx is installed
            and ``"circle"`` else.

        Returns
        -------
        display : CouplingDisplay
            The object itself.
        """
        if kind not in ("heatmap", "graph"):
            raise ValueError(f"kind must be 'heatmap' or 'graph', got {kind!r}.")
        if isinstance(layout, str) and layout not in ("auto", "circle", "spring"):
            raise ValueError(
                f"layout must be 'auto', 'circle', 'spring' or an array, got {layout!r}."
            )
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        limit = np.abs(self.coupling).max(initial=0) if limit is None else limit
        cmap = {"heatmap": "RdBu_r", "graph": "coolwarm"}[kind] if cmap is None else cmap
        style = {"cmap": cmap, "clim": (-(limit or 1), limit or 1)}
        if kind == "heatmap":
            self._draw_matrix(style)
        else:
            self._draw_graph(style, layout)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=self.ax_, label="coupling")
        return self

    def _draw_matrix(self, style):
        ax, d = self.ax_, len(self.names)
        blank = np.where(np.eye(d, dtype=bool), np.nan, self.coupling)
        low, high = style["clim"]
        self.image_ = ax.imshow(blank, cmap=style["cmap"], vmin=low, vmax=high)
        if self.significant is not None:
            from matplotlib.collections import PatchCollection
            from matplotlib.patches import Rectangle

            chance = np.argwhere(~self.significant & ~np.eye(d, dtype=bool))
            cells = [Rectangle((k - 0.5, j - 0.5), 1, 1) for j, k in chance]
            hatched = PatchCollection(
                cells, facecolor="none", edgecolor="0.75", linewidth=0, hatch="////"
            )
            ax.add_collection(hatched)
        # Beyond some thirty, names would lie over one another.
        if d <= 32:
            ax.set_xticks(range(d), self.names, rotation=90 if d > 8 else 45)
            ax.set_yticks(range(d), self.names)

    def _draw_graph(self, style, layout):
        from matplotlib.collections import LineCollection

        ax = self.ax_
        edges = np.triu(self.coupling != 0, 1)
        if self.significant is not None:
            edges &= self.significant
        j, k = np.nonzero(edges)
        # The strongest last, on top of the others.
        order = np.argsort(np.abs(self.coupling[j, k]))
        j, k = j[order], k[order]
        strength = self.coupling[j, k]
        self.positions_ = xy = self._positions(layout, edges)
        self.image_ = LineCollection(
            np.stack([xy[j], xy[k]], axis=1),
            array=strength,
            linewidths=0.5 + 4.5 * np.minimum(np.abs(strength) / style["clim"][1], 1),
            zorder=1,
            **style,
        )
        ax.add_collection(self.image_)
        d = len(self.names)
        size = np.clip(12000 / d, 60, 900)
        ax.scatter(*xy.T, s=size, color="white", edgecolor="0.3", zorder=2)
        for name, (x, y) in zip(self.names, xy, strict=True):
            ax.text(x, y, name, ha="center", va="center", fontsize=np.clip(120 / d, 5, 9), zorder=3)
        ax.margins(0.12)
        ax.set_aspect("equal")
        ax.set_axis_off()

    def _positions(self, layout, edges):
        """Coordinates of the nodes."""
        d = len(self.names)
        if not isinstance(layout, str):
            layout = np.asarray(layout, dtype=np.float64)
            if layout.shape != (d, 2):
                raise ValueError(f"layout must have the shape {(d, 2)}, got {layout.shape}.")
            return layout
        if layout != "circle":
            try:
                import networkx
            except ImportError as error:
                if layout == "spring":
                    raise ImportError(
                        "The spring layout comes from networkx, which is not installed: run "
                        "`pip install networkx`, or use layout='circle'."
                    ) from error
            else:
                graph = networkx.from_numpy_array(np.where(edges, np.abs(self.coupling), 0))
                spring = networkx.spring_layout(graph, seed=0, k=2 / np.sqrt(d), iterations=200)
                return np.array([spring[j] for j in range(d)])
        angle = 2 * np.pi * np.arange(d) / d
        return np.column_stack([np.sin(angle), np.cos(angle)])
