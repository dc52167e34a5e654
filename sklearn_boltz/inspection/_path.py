"""PathDisplay: couplings for each strength of a sparse penalty."""

from numbers import Integral

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import height_in_points, named_axes
from sklearn_boltz.inspection._pairs import block_norms, names_of

CRITERIA = {"criterion": "criterion", "ebic": "EBIC", "cv_score": "held-out\nlog pseudo-likelihood"}
POSITIVE, NEGATIVE, LEFT_OUT = "#b2182b", "#2166ac", "0.8"


class PathDisplay:
    """Couplings along a path of penalties, and the criterion that chooses the penalty.

    There are two plots. The upper one shows the couplings against the strength of the penalty,
    which decreases from left to right. The lower one shows the criterion and the number of edges.
    A vertical line marks the penalty of the fit. Couplings that are not 0 at this penalty are red
    if positive, and blue and dashed if negative; all others are grey. Use `from_estimator` to
    create a display.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        The penalties.
    coupling : array-like of shape (n_alphas, n_pairs)
        One number for each pair of variables.
    pairs : array-like of str of shape (n_pairs,)
        Names of the pairs.
    criterion : array-like of shape (n_alphas,)
        Values of the criterion: that of ``alpha="auto"`` or the EBIC, which are minimised, or the
        held-out log pseudo-likelihood, which is maximised.
    criterion_name : {"criterion", "ebic", "cv_score"}
        Name of the criterion in `path_`.
    alpha : float
        The penalty of the fit.
    signed : bool, default=True
        Whether the numbers are couplings. If not, they are Frobenius norms of blocks, without a
        sign.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"coupling"``, ``"criterion"`` and ``"n_edges"``; the last two share a plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        The path of each pair, in the order of `pairs`.
    selected_ : ndarray of bool of shape (n_pairs,)
        Which couplings are not 0 at the penalty of the fit.

    See Also
    --------
    CouplingDisplay : The couplings of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM
    >>> from sklearn_boltz.inspection import PathDisplay
    >>> rng = np.random.default_rng(1)
    >>> X = rng.choice([-1, 1], size=(500, 4))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = SparseFVBM().fit(X)
    >>> display = PathDisplay.from_estimator(model)
    >>> [str(pair) for pair in display.pairs[display.selected_]]
    ['x0, x2']
    """

    def __init__(self, *, alphas, coupling, pairs, criterion, criterion_name, alpha, signed=True):
        self.alphas = np.asarray(alphas)
        self.coupling = np.asarray(coupling)
        self.pairs = np.asarray(pairs, dtype=object)
        self.criterion = np.asarray(criterion)
        self.criterion_name = criterion_name
        self.alpha = alpha
        self.signed = signed

    @classmethod
    def from_estimator(cls, estimator, node=None, *, ax=None, **plot_kw):
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : SparseFVBM
            Fitted with ``alpha="auto"``, ``"ebic"`` or ``"cv"``.
        node : int or str, default=None
            Number or name of a variable: only its couplings are drawn. None means all pairs. It is
            required for a fit with `nodewise`, where each variable has its own path.
        ax : sequence of two matplotlib Axes, default=None
            Axes of the couplings and of the criterion. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : PathDisplay
            The display with its data.

        Raises
        ------
        TypeError
            If the estimator is of another class.
        ValueError
            If the fit has no path, or if `node` is missing or unknown.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "coupling_"):
            raise TypeError(f"PathDisplay is for SparseFVBM, got {type(estimator).__name__}.")
        path, (names, value_names) = getattr(estimator, "path_", None), names_of(estimator)
        if path is None:
            raise ValueError(
                f"The fit has no path: it used a single penalty, alpha={estimator.alpha!r}. Use "
                "SparseFVBM with alpha='auto', 'ebic' or 'cv'."
            )
        name = next(name for name in CRITERIA if name in path)
        alphas, criterion, alpha = path.alphas, path[name], estimator.alpha_
        if node is None:
            j, k = np.triu_indices(len(names), 1)
        else:
            node = number_of(node, names)
            k = np.delete(np.arange(len(names)), node)
            j = np.full_like(k, node)
        if np.ndim(alphas) == 2:
            if node is None:
                raise ValueError(
                    "In a fit with nodewise, each variable has its own path. Pass node, the "
                    "number or name of a variable."
                )
            alphas, criterion, alpha = alphas[:, node], criterion[:, node], alpha[node]
        coupling = path.coupling
        if value_names is not None:
            coupling = block_norms(coupling, value_names)
        display = cls(
            alphas=alphas,
            coupling=coupling[:, j, k],
            pairs=[f"{names[one]}, {names[other]}" for one, other in zip(j, k, strict=True)],
            criterion=criterion,
            criterion_name=name,
            alpha=alpha,
            signed=value_names is None,
        )
        return display.plot(ax=ax, **plot_kw)

    def plot(self, *, ax=None, n_names=5):
        """Draw the plot.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, default=None
            Axes of the couplings and of the criterion. None means a new figure.
        n_names : int, default=5
            Number of pairs that are named: the strongest at the penalty of the fit.

        Returns
        -------
        display : PathDisplay
            The display itself.
        """
        # The path of a node may end before those of others; the remaining values are NaN.
        known = (self.alphas > 0) & np.isfinite(self.criterion)
        if not known.any():
            raise ValueError(
                "There is no path to draw: all columns, or the chosen variable, were constant in "
                "the fit."
            )
        self.axes_ = named_axes(
            ax, ("coupling", "criterion"), "the couplings and for the criterion", 2, 1,
            sharex=True, figsize=(6.4, 5.6), height_ratios=[2, 1],
        )  # fmt: skip
        upper, lower = self.axes_.values()
        self.axes_["n_edges"] = lower.twinx()
        self.figure_ = upper.figure
        alphas = self.alphas[known]
        chosen = np.argmin(np.abs(np.log(alphas / self.alpha)))
        for axes in (upper, lower):
            show_penalties(axes, alphas)
            axes.axvline(self.alpha, color="black", lw=1, ls=":")
        self._plot_couplings(alphas, self.coupling[known], chosen, n_names)
        self._plot_criterion(alphas, self.criterion[known], chosen)
        self._plot_n_edges(alphas, np.count_nonzero(self.coupling[known], axis=1))
        return self

    def _plot_couplings(self, alphas, coupling, chosen, n_names):
        ax, at_fit = self.axes_["coupling"], coupling[chosen]
        self.selected_ = at_fit != 0
        order = np.argsort(np.abs(at_fit), kind="stable")
        lines = {pair: self._line(ax, alphas, coupling[:, pair], at_fit[pair]) for pair in order}
        self.lines_ = [lines[pair] for pair in range(len(order))]
        ax.set_ylabel("coupling" if self.signed else "norm of the block")
        named = order[len(order) - min(n_names, self.selected_.sum()) :]
        # A line of text has 11 points.
        heights = apart(coupling[-1, named], 11 / height_in_points(ax) * np.ptp(ax.get_ylim()))
        leader = {"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 0, "shrinkB": 0}
        for pair, height in zip(named, heights, strict=True):
            ax.annotate(
                self.pairs[pair], (1, coupling[-1, pair]), (1.03, height), va="center",
                fontsize="small", color=lines[pair].get_color(), annotation_clip=False,
                xycoords=ax.get_yaxis_transform(), textcoords=ax.get_yaxis_transform(),
                arrowprops=leader,
            )  # fmt: skip

    def _line(self, ax, alphas, values, at_fit):
        """The path of a pair: grey and below the others if it is not selected."""
        style = {"color": LEFT_OUT, "lw": 0.8, "zorder": 1}
        if at_fit:
            hue, ls = (NEGATIVE, "--") if at_fit < 0 else (POSITIVE, "-")
            style = {"color": hue if self.signed else "0.2", "ls": ls, "lw": 1.3, "zorder": 2}
        return ax.plot(alphas, values, **style)[0]

    def _plot_criterion(self, alphas, criterion, chosen):
        ax = self.axes_["criterion"]
        ax.plot(alphas, criterion, color="black")
        ax.plot(alphas[chosen], criterion[chosen], "o", color="black")
        ax.set(xlabel="penalty alpha", ylabel=CRITERIA[self.criterion_name])

    def _plot_n_edges(self, alphas, n_edges):
        ax = self.axes_["n_edges"]
        ax.plot(alphas, n_edges, color="C1", drawstyle="steps-mid")
        ax.set_ylim(0, None)
        ax.set_ylabel("edges", color="C1")
        ax.tick_params(axis="y", colors="C1")
        ax.locator_params(axis="y", integer=True)


def show_penalties(ax, alphas):
    """Make a horizontal axis of decreasing penalties, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set(xscale="log", xlim=(1.01 * alphas.max(), alphas.min() / 1.01))
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def number_of(node, names):
    """The number of a variable, from its name or number."""
    if isinstance(node, str) and node in names:
        return names.index(node)
    if not isinstance(node, Integral) or not -len(names) <= node < len(names):
        raise ValueError(f"node is {node!r}, but the variables are {names}.")
    return int(node) % len(names)


def apart(heights, least):
    """Heights in the same order and close to the given ones, at least `least` apart."""
    if not len(heights):
        return heights
    order = np.argsort(heights, kind="stable")
    steps = least * np.arange(len(heights))
    # After subtracting the minimum spacing, the rest must not decrease: isotonic regression.
    moved = np.empty(len(heights))
    moved[order] = isotonic_regression(np.asarray(heights)[order] - steps) + steps
    return moved
