"""CouplingDisplay: the couplings of a network, as a heat map or as a graph."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_scalar

from sklearn_boltz import statistics
from sklearn_boltz.inspection._axes import axes_or_new, height_in_points, require_pyplot
from sklearn_boltz.inspection._network import (
    EdgeStyle,
    draw_network,
    group_colours,
    resolved_layout,
    strongest_edges,
)
from sklearn_boltz.inspection._pairs import block_norms, joint_of, signed_norms

# Default limit of the number of edges: a graph with more of them, and with more than two for each
# node, is hard to read.
READABLE_EDGES = 40
# Smallest font of names beside the heat map, in points. If they do not fit, they are left out.
SMALLEST_FONT, LARGEST_FONT = 4.5, 10.0
# By default, a figure has room for names of 12 letters beside the heat map. For longer names, of up
# to 60 letters, it gets wider by this many inches for each letter.
USUAL_LENGTH, LONGEST, LETTER = 12, 60, 0.08
# The colour of pairs without a test.
UNTESTED = "0.8"


class CouplingDisplay:
    """Couplings of a pairwise model, as a heat map or as a graph.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    coupling : ndarray of shape (n_features, n_features) or (Σ n_values, Σ n_values)
        Symmetric matrix. If variables have more than two values, each pair of variables has a
        block whose rows and columns sum to 0 (zero-sum gauge).
    names : list of str
        Names of the variables.
    significant : ndarray of bool of shape (n_features, n_features), default=None
        Which pairs of variables interact significantly. None if unknown.
    value_names : list of sequence of str, default=None
        The values of each variable, if some have more than two, and otherwise None.
    untested : ndarray of bool of shape (n_features, n_features), default=None
        Which pairs have no test. None if unknown.
    norms : ndarray of shape (n_features, n_features), default=None
        With `value_names`, the weights of the edges of the graph. They have signs if one of them is
        negative. None means the Frobenius norms of the blocks.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    image_ : matplotlib AxesImage or None
        The heat map.
    colorbar_ : matplotlib Colorbar or None
        The colour bar of the heat map.
    edges_ : matplotlib LineCollection or None
        The edges of the graph, strongest last.
    pairs_ : ndarray of int of shape (n_edges, 2) or None
        Numbers of the two variables of each edge of the graph, in the same order.
    positions_ : ndarray of shape (n_features, 2) or None
        Positions of the nodes of the graph.

    See Also
    --------
    ContactMapDisplay : Scores of pairs of sites beside known contacts.

    Notes
    -----
    The graph has one node for each variable. If some variables have more than two values, an edge
    is the Frobenius norm of a block (`interaction_scores` without the average product correction).
    It has a sign, that of the trend, if all columns of more than two values are ordinal or in bins.
    Its significance is taken from the table of :func:`~sklearn_boltz.statistics.inference`.

    Where numbers have normal scores, couplings are those of
    :func:`~sklearn_boltz.statistics.joint_network`, with one entry for each number.

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
    >>> display.pairs_
    array([[0, 2]])
    """

    def __init__(
        self,
        *,
        coupling,
        names,
        significant=None,
        value_names=None,
        untested=None,
        norms=None,
    ):
        self.coupling = coupling
        self.names = names
        self.significant = significant
        self.value_names = value_names
        self.untested = np.zeros((len(names),) * 2, dtype=bool) if untested is None else untested
        self.norms = norms

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
        estimator : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
            A fitted network.
        X : array-like of shape (n_samples, n_features), default=None
            The training data. If given, pairs that are not significant are hatched in the heat map
            and left out of the graph. The tests are those of
            :func:`~sklearn_boltz.statistics.inference`, whose estimates are without the default
            penalty; colours and widths are those of `coupling_`. Pairs without a test are grey in
            the heat map, and left out of the graph, whose title says how many they are.
        kind : {"heatmap", "graph"}, default="heatmap"
            Type of plot.
        significance_level : float, default=0.05
            A pair is significant if its p value is below this, adjusted for the number of pairs.
        method : {"fdr_bh", "holm"}, default="fdr_bh"
            How it is adjusted: Benjamini-Hochberg or Holm.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the fit.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : CouplingDisplay
            The display with its data.

        Raises
        ------
        ValueError
            If `X` is given and the couplings have no standard errors, as after a sparse penalty.
        """
        check_is_fitted(estimator)
        coupling, names, value_names = joint_of(estimator)
        norms = None if value_names is None else signed_norms(estimator)
        significant = untested = None
        if X is not None:
            p_value = inference_or_advice(estimator, X, sample_weight).adjusted_p_value(method)
            untested = np.isnan(p_value) & ~np.eye(len(p_value), dtype=bool)
            significant = p_value < significance_level  # NaN is not
        display = cls(
            coupling=coupling,
            names=names,
            significant=significant,
            value_names=value_names,
            untested=untested,
            norms=norms,
        )
        return display.plot(kind=kind, ax=ax, **plot_kw)

    def plot(
        self,
        *,
        kind="heatmap",
        ax=None,
        cmap="RdBu_r",
        limit=None,
        colorbar=True,
        legend=True,
        groups=None,
        min_coupling=0.0,
        n_edges="auto",
        layout="auto",
        random_state=0,
    ):
        """Draw the plot.

        Parameters
        ----------
        kind : {"heatmap", "graph"}, default="heatmap"
            Type of plot.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        cmap : str or matplotlib Colormap, default="RdBu_r"
            Colour map, with 0 in the middle. Edges of the graph use the colours of both ends;
            edges of negative couplings are also dashed.
        limit : float, default=None
            Coupling with the strongest colour or the widest edge. None means the largest coupling.
        colorbar : bool, default=True
            Whether the heat map has a colour bar.
        legend : bool, default=True
            Whether the graph has a legend of edges and groups, to the right of it. If you pass
            `ax`, create its figure with ``layout="constrained"`` to leave room for the legend.
        groups : array-like of shape (n_features,), default=None
            Group of each variable. In the graph, each group has its own colour. At most eight
            groups.
        min_coupling : float, default=0.0
            Edges of weaker couplings are left out of the graph.
        n_edges : "auto", int or None, default="auto"
            Maximum number of edges of the graph; the strongest are drawn. ``"auto"`` means two for
            each variable, but at least 40. None means all.
        layout : {"auto", "circle", "spring", "kamada_kawai"} or array-like of shape \
                (n_features, 2), default="auto"
            Positions of the nodes of the graph. ``"spring"`` and ``"kamada_kawai"`` need networkx.
            They place strongly coupled variables close to each other, and move overlapping nodes
            apart. ``"auto"`` is ``"spring"`` if networkx is installed and otherwise ``"circle"``.
        random_state : int or RandomState instance, default=0
            Seed of the spring layout. The same seed gives the same plot.

        Returns
        -------
        display : CouplingDisplay
            The display itself.
        """
        self.image_ = self.colorbar_ = self.edges_ = self.pairs_ = self.positions_ = None
        if kind == "heatmap":
            self._draw_matrix(ax, cmap, limit, colorbar)
        elif kind == "graph":
            layout = resolved_layout(layout, len(self.names))
            group_colours(groups, len(self.names))  # raises its error before a figure is made
            weight, edges, title = self._edges(min_coupling, n_edges)
            limit = np.abs(weight[edges]).max(initial=0) if limit is None else limit
            self._new_axes(ax)
            self.edges_, self.positions_ = draw_network(
                self.ax_,
                weight,
                edges,
                self.names,
                EdgeStyle(cmap, limit or 1, self._is_signed, len(self.names)),
                layout=layout,
                groups=groups,
                legend=title if legend else None,
                random_state=random_state,
            )
            self.pairs_ = np.column_stack(edges)
            self._note_untested(f"{np.triu(self.untested, 1).sum():,} without an edge")
        else:
            raise ValueError(f"kind must be 'heatmap' or 'graph', got {kind!r}.")
        return self

    def _note_untested(self, what):
        """Say above the picture what pairs without a test look like."""
        if self.untested.any():
            self.ax_.set_title(f"{what}: no test, see the table", fontsize="small")

    def _new_axes(self, ax, figsize=None):
        self.ax_ = axes_or_new(ax, figsize)
        self.figure_ = self.ax_.figure

    @property
    def _starts(self):
        """Start of the values of each variable, and the end of all."""
        n_values = [1] * len(self.names) if self.value_names is None else map(len, self.value_names)
        return np.cumsum([0, *n_values])

    # The graph.

    @property
    def _is_signed(self):
        """Whether edges have signs."""
        return self.value_names is None or (self.norms is not None and (self.norms < 0).any())

    def _edges(self, min_coupling, n_edges):
        """A number for each pair of variables, the pairs to draw, and the legend title."""
        if n_edges == "auto":
            n_edges = max(2 * len(self.names), READABLE_EDGES)
        elif n_edges is not None:
            check_scalar(n_edges, "n_edges", Integral, min_val=1)
        check_scalar(min_coupling, "min_coupling", Real, min_val=0)
        weight, title = self.coupling, "coupling"
        if self.value_names is not None:
            weight, title = self.norms, "coupling" if self._is_signed else "norm of the block"
            weight = block_norms(self.coupling, self.value_names) if weight is None else weight
        strength = np.abs(weight)
        if self.significant is not None:
            strength = np.where(self.significant, strength, 0)
        edges = strongest_edges(strength, min_coupling, n_edges)
        n_all = np.count_nonzero(np.triu(strength, 1))
        if len(edges[0]) < n_all:
            title = f"{title}\n({len(edges[0])} strongest\nof {n_all:,})"
        return weight, edges, title

    # The heat map.

    def _draw_matrix(self, ax, cmap, limit, colorbar):
        self._new_axes(ax, self._heatmap_size() if ax is None else None)
        limit = np.abs(self.coupling).max(initial=0) if limit is None else limit
        variable = np.repeat(np.arange(len(self.names)), np.diff(self._starts))
        blocks = np.ix_(variable, variable)
        same = variable[:, None] == variable
        self.image_ = self.ax_.imshow(
            np.where(same, np.nan, self.coupling), cmap=cmap, vmin=-(limit or 1), vmax=limit or 1
        )
        if self.significant is not None:
            covered = ~self.significant & ~self.untested
            self._cover(covered[blocks] & ~same, hatch="////")
            self._cover(self.untested[blocks], facecolor=UNTESTED)
            self._note_untested("grey")
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=self.ax_, label="coupling")
        self._write_names()

    def _heatmap_size(self):
        """Size of a new figure, with room for long names on two sides."""
        longest = min(max((len(str(name)) for name in self.names), default=0), LONGEST)
        room = LETTER * max(longest - USUAL_LENGTH, 0)
        width, height = require_pyplot().rcParams["figure.figsize"]
        return width + room, height + room

    def _cover(self, cells, **style):
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        squares = [Rectangle((k - 0.5, j - 0.5), 1, 1) for j, k in np.argwhere(cells)]
        style = {"facecolor": "none", "edgecolor": "0.75", "linewidth": 0} | style
        self.ax_.add_collection(PatchCollection(squares, **style))

    def _write_names(self):
        """Write names of variables beside the matrix, and of values if there is room."""
        ax, starts, names = self.ax_, self._starts, self.names
        middles = (starts[:-1] + starts[1:] - 1) / 2
        self._ticks(ax.xaxis, middles, names, starts[-1], rotation=90)
        if self.value_names is not None:
            ax.hlines(starts[1:-1] - 0.5, -0.5, starts[-1] - 0.5, color="0.4", lw=0.6)
            ax.vlines(starts[1:-1] - 0.5, -0.5, starts[-1] - 0.5, color="0.4", lw=0.6)
            pairs = zip(names, self.value_names, strict=True)
            entries = [f"{name}={value}" for name, values in pairs for value in values]
            if self._ticks(ax.yaxis, np.arange(starts[-1]), entries, starts[-1]):
                return
        self._ticks(ax.yaxis, middles, names, starts[-1])

    def _ticks(self, axis, places, labels, n_rows, **style):
        """Label an axis if the font fits; -> whether it has labels."""
        size = height_in_points(self.ax_) / n_rows
        size *= 0.85 * np.min(np.diff(places), initial=n_rows)
        shown = size >= SMALLEST_FONT
        axis.set_ticks(places if shown else [], labels if shown else [], **style)
        axis.set_tick_params(length=0, labelsize=min(size, LARGEST_FONT))
        return shown


def inference_or_advice(estimator, X, sample_weight):
    """The inference of an estimator, with an error that says how to draw without it."""
    try:
        return statistics.inference(estimator, X, sample_weight=sample_weight)
    except ValueError as error:
        raise ValueError(f"{error} To draw the couplings without tests, leave out X.") from error
