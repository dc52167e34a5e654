"""Drawing of a network: edges, positions and sizes of nodes, and legends."""

import textwrap

import numpy as np
from sklearn.utils import check_random_state

# Eight colours that are safe for colour-blind readers: Okabe and Ito, 2008, with light grey
# instead of black.
GROUP_COLOURS = (
    "#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d9d9d9", "#d55e00", "#0072b2",
)  # fmt: skip
LAYOUTS = "auto", "circle", "spring", "kamada_kawai"
# Font sizes and widths of edges, in points.
SMALLEST_FONT, LARGEST_FONT = 5.0, 10.0
THINNEST_EDGE, WIDEST_EDGE = 0.6, 4.5
# Largest share of the plot that nodes cover; margin of a name in its node, in font sizes; smallest
# distance between nodes, in points.
COVERED, MARGIN, GAP = 0.16, 0.35, 1.5
# Largest number of characters in a line of a name.
LINE_LENGTH = 12


def draw_network(ax, weight, edges, names, style, *, layout, groups, legend, random_state):
    """Draw nodes, edges and a legend; -> the LineCollection of the edges, and the nodes' positions.

    `weight`, (n_nodes, n_nodes), are the couplings, and `edges` both ends of each edge, the topmost
    last. `layout` is that of `resolved_layout`, and `groups` has a label for each node, or is None.
    `legend` is the title of the legend of the edges; None for no legend.
    """
    from matplotlib.collections import LineCollection

    group_colour, colours = group_colours(groups, len(names))
    ax.set_axis_off()
    if legend is not None:
        draw_legends(ax, group_colour, style.handles(weight[edges]), legend)
    # Legends come first: they shrink the axes, which determine the size of nodes.
    ax.figure.draw_without_rendering()
    nodes = Nodes(ax, names, colours)
    if not isinstance(layout, str):
        xy = nodes.put_at(layout)
    elif layout == "circle":
        xy = nodes.put_around()
    else:
        strength = np.zeros_like(weight)
        strength[edges] = strength[edges[::-1]] = np.abs(weight[edges])
        xy = nodes.put_apart(FORCES[layout](strength, random_state))
    ends = np.stack([xy[edges[0]], xy[edges[1]]], axis=1)
    lines = LineCollection(ends, zorder=1, **style(weight[edges]))
    ax.add_collection(lines, autolim=False)
    return lines, xy


# Edges.


def strongest_edges(strength, min_coupling, n_edges):
    """Both ends j < k of the edges to draw; the strongest one comes last, on top of the others.

    `strength`, (n_nodes, n_nodes), is symmetric, and 0 where there is no edge. Edges below
    `min_coupling` are left out, and all but the `n_edges` strongest, unless that is None.
    """
    j, k = np.nonzero(np.triu((strength > 0) & (strength >= min_coupling), 1))
    order = np.argsort(strength[j, k], kind="stable")
    kept = order if n_edges is None else order[max(0, len(order) - n_edges) :]
    return j[kept], k[kept]


class EdgeStyle:
    """Width, colour and line style of an edge, from its coupling.

    The upper half of `cmap` is for positive couplings and its lower half for negative ones; edges
    whose couplings have no signs are grey. A coupling of `limit` has the widest line, which is
    thinner if there are many nodes.
    """

    def __init__(self, cmap, limit, signed, n_nodes):
        from matplotlib import colormaps

        self.cmap = colormaps[cmap] if isinstance(cmap, str) else cmap
        self.limit, self.signed = limit, signed
        self.widest = WIDEST_EDGE * min(1, np.sqrt(25 / n_nodes))

    def __call__(self, coupling):
        """Properties of a LineCollection for an array of couplings."""
        coupling = np.asarray(coupling, dtype=np.float64)
        share = np.minimum(np.abs(coupling) / self.limit, 1)
        if self.signed:
            # The pale middle of the colour map is left out, so that weak edges are visible.
            colours = self.cmap(0.5 + np.sign(coupling) * (0.27 + 0.18 * share))
        else:
            colours = np.repeat(0.75 - 0.55 * share[:, None], 3, axis=1)
        return {
            "colors": colours,
            "linewidths": THINNEST_EDGE + (self.widest - THINNEST_EDGE) * share,
            "linestyles": ["solid" if m >= 0 else (0, (2.5, 1.2)) for m in coupling],
        }

    def handles(self, coupling):
        """Lines for a legend: for each sign, the strongest and weakest edge and one in between."""
        from matplotlib.lines import Line2D

        text, lines = "{:+.2g}" if self.signed else "{:.2g}", {}
        for of_sign in (coupling[coupling > 0], coupling[coupling < 0]):
            values = np.linspace(max(of_sign), min(of_sign), 3) if len(of_sign) else of_sign
            values = values[: len(np.unique(of_sign))]
            for m, color, lw, ls in zip(values, *self(values).values(), strict=True):
                label = text.format(m).replace("-", "\N{MINUS SIGN}")
                lines[label] = Line2D([], [], color=color, lw=lw, ls=ls, label=label)
        return list(lines.values())


# Groups.


def group_colours(groups, n_nodes):
    """The colour of each group, in order of occurrence, and that of each node."""
    if groups is None:
        return {}, ["white"] * n_nodes
    groups = [str(group) for group in groups]
    if len(groups) != n_nodes:
        raise ValueError(
            f"groups must have a label for each of the {n_nodes} variables, got {len(groups)}."
        )
    found = list(dict.fromkeys(groups))
    if len(found) > len(GROUP_COLOURS):
        raise ValueError(
            f"groups has {len(found)} different labels, but only {len(GROUP_COLOURS)} colours are "
            "easy to distinguish. Merge some groups."
        )
    colours = dict(zip(found, GROUP_COLOURS, strict=False))
    return colours, [colours[group] for group in groups]


def draw_legends(ax, group_colour, edge_handles, title):
    """Groups at the top right of the axes, edges at the bottom right."""
    from matplotlib.patches import Patch

    beside = {"frameon": False, "borderaxespad": 0, "alignment": "left", "fontsize": "small"}
    if group_colour:
        patches = [Patch(fc=c, ec="0.3", lw=0.6, label=group) for group, c in group_colour.items()]
        groups = ax.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1), **beside)
    if edge_handles:
        ax.legend(
            handles=edge_handles, title=title, title_fontsize="small", handlelength=2.8,
            loc="lower left", bbox_to_anchor=(1.01, 0), **beside,
        )  # fmt: skip
        if group_colour:  # the second call of legend has replaced the first legend
            ax.add_artist(groups)


# Positions of the nodes.


def resolved_layout(layout, n_nodes):
    """The name of an available layout, or coordinates."""
    if not isinstance(layout, str):
        layout = np.asarray(layout, dtype=np.float64)
        if layout.shape != (n_nodes, 2) or not np.isfinite(layout).all():
            raise ValueError(
                f"layout must have the shape {(n_nodes, 2)} and finite entries, got {layout.shape}."
            )
        return layout
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {LAYOUTS} or an array, got {layout!r}.")
    if layout == "circle":
        return layout
    try:
        import networkx  # noqa: F401
    except ImportError as error:
        if layout == "auto":
            return "circle"
        raise ImportError(
            f"The layout {layout!r} needs networkx, which is not installed: run "
            "`pip install networkx`, or use layout='circle'."
        ) from error
    return "spring" if layout == "auto" else layout


def spring(strength, random_state):
    """Layout by the forces of Fruchterman and Reingold."""
    import networkx

    # A weak attraction between all pairs keeps nodes without edges near the others.
    pull = _relative(strength) + 0.3 / len(strength)
    np.fill_diagonal(pull, 0)
    found = networkx.spring_layout(
        networkx.from_numpy_array(pull),
        k=2 / np.sqrt(len(pull)),
        iterations=300,
        seed=check_random_state(random_state),
    )
    return _lying(found)


def kamada_kawai(strength, random_state=None):
    """Deterministic layout by path lengths, where a stronger edge is shorter."""
    import networkx
    from scipy.sparse.csgraph import shortest_path

    relative = _relative(strength)
    lengths = np.divide(1, 0.3 + relative, where=relative > 0, out=np.zeros_like(relative))
    distance = shortest_path(lengths, directed=False)
    # Unconnected parts are as far apart as the most distant nodes of one part.
    distance[np.isinf(distance)] = distance[np.isfinite(distance)].max() or 1
    graph = networkx.from_numpy_array(relative)
    lengths = {j: dict(enumerate(row)) for j, row in enumerate(distance)}
    return _lying(networkx.kamada_kawai_layout(graph, dist=lengths))


FORCES = {"spring": spring, "kamada_kawai": kamada_kawai}


def _relative(strength):
    return strength / (strength.max(initial=0) or 1)


def _lying(positions):
    """Coordinates, rotated so that the widest extent is horizontal."""
    xy = np.array([positions[j] for j in range(len(positions))])
    xy -= xy.mean(axis=0)
    return xy @ np.linalg.svd(xy)[2].T


def spread(xy, size, area):
    """Fill the plot, and move nodes apart until none overlap, if there is room; -> their positions.

    `xy`, (n_nodes, 2), are positions in any units. The result, `size` of the nodes and `area` of
    the plot are in points.
    """
    size = size + GAP
    low, high, extent = size / 2, area - size / 2, np.ptp(xy, axis=0)
    share = np.divide(xy - xy.min(axis=0), extent, where=extent > 1e-9, out=np.full_like(xy, 0.5))
    xy = low + share * (high - low)
    reach = (size[:, None] + size) / 2
    # Nodes at the same place are separated in the order of their numbers.
    order = np.sign(np.subtract.outer(np.arange(len(xy)), np.arange(len(xy))))[:, :, None]
    for _ in range(500):
        apart = xy[:, None] - xy
        overlap = np.where(order == 0, -1, reach - np.abs(apart))
        if not (covers := (overlap > 0).all(axis=2, keepdims=True)).any():
            break
        # Along the shorter way; each node moves by half.
        shorter = overlap == overlap.min(axis=2, keepdims=True)
        direction = np.where(apart == 0, order, np.sign(apart))
        xy = xy + np.where(covers & shorter, direction * overlap, 0).sum(axis=1) / 2
        xy = np.clip(xy, low, high)
    return xy


# Sizes of the nodes.


class Nodes:
    """Names in boxes that fit them, small enough to leave room for edges, in axes of final size."""

    def __init__(self, ax, names, colours):
        self.ax, self.points = ax, 72 / ax.figure.dpi
        self.texts = [
            ax.text(
                0, 0, textwrap.fill(name, LINE_LENGTH, break_long_words=False) or " ",
                color=readable_on(colour), zorder=2, in_layout=False,
                ha="center", va="center", ma="center", linespacing=0.95,
                bbox={"boxstyle": f"round,pad={MARGIN},rounding_size=0.6", "facecolor": colour,
                      "edgecolor": "0.3", "linewidth": 0.6},
            )
            for name, colour in zip(names, colours, strict=True)
        ]  # fmt: skip
        self.largest = self._scale(1)
        self.area = self.points * ax.get_window_extent().size

    def put_apart(self, xy):
        """Choose the font by the available room and move nodes apart; -> their positions."""
        covered = self.largest.prod(axis=1).sum() / self.area.prod()
        return self._fill(xy, np.sqrt(COVERED / covered))

    def put_around(self):
        """Put nodes on an ellipse, clockwise from the top; -> their positions."""
        angle = 2 * np.pi * np.arange(len(self.texts)) / len(self.texts)
        around = np.column_stack([np.sin(angle), np.cos(angle)])
        inside = (self.area - self.largest.max(axis=0)) / 2
        return self._fill(around, fitting_share(inside * around, self.largest))

    def _fill(self, xy, share):
        xy = spread(xy, self._scale(share), self.area)
        self.ax.set(xlim=(0, self.area[0]), ylim=(0, self.area[1]))
        return self._move(xy)

    def put_at(self, xy):
        """Choose the font so that nodes at given positions do not overlap; -> the positions."""
        size, extent = self.largest, np.ptp(xy, axis=0)
        for _ in range(2):  # smaller names leave more room, so they may grow again
            room = np.maximum(self.area - size.max(axis=0), 1)
            points = np.min(room[extent > 0] / extent[extent > 0], initial=room.max())
            size = self._scale(fitting_share(points * xy, self.largest))
        margin = size.max(axis=0) / points / 2
        self.ax.update_datalim([xy.min(axis=0) - margin, xy.max(axis=0) + margin])
        self.ax.margins(0)
        self.ax.set_aspect("equal", adjustable="datalim")
        return self._move(xy)

    def _scale(self, share):
        """Use a share of the largest font size; -> the sizes of the nodes, in points."""
        font = np.clip(share * LARGEST_FONT, SMALLEST_FONT, LARGEST_FONT)
        for text in self.texts:
            text.set_fontsize(font)
        extents = [text.get_window_extent().size for text in self.texts]
        return self.points * np.array(extents) + 2 * MARGIN * font

    def _move(self, xy):
        for text, position in zip(self.texts, xy, strict=True):
            text.set_position(position)
        return xy


def fitting_share(xy, size):
    """The factor by which sizes must shrink so that no nodes overlap; 1 if they already fit."""
    pairs = np.triu_indices(len(xy), 1)
    apart, reach = np.abs(xy[:, None] - xy)[pairs], ((size[:, None] + size) / 2)[pairs]
    return np.min(np.max(apart / reach, axis=1), initial=1.0)


def readable_on(colour):
    """Black, or white on dark colours."""
    from matplotlib.colors import to_rgb

    return "black" if np.dot(to_rgb(colour), [0.299, 0.587, 0.114]) > 0.45 else "white"
