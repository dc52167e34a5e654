"""PairEffectDisplay: how two columns of a network depend on each other, as curves or a surface."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import axes_or_new
from sklearn_boltz.inspection._pairs import names_of
from sklearn_boltz.statistics import NetworkBootstrap

# Kinds of columns whose values have an order.
ORDERED = ("ordinal", "count", "binned")
# Curves that can be told apart.
MOST_CURVES = 8


class PairEffectDisplay:
    """The coupling of two columns: curves of log odds, or a surface.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    effect : ndarray of shape (n_first, n_second)
        The coupling in nats of each value of the first column with each one of the second; rows and
        columns sum to 0.
    values : sequence of two ndarrays
        The values of both columns; for numbers in bins, the medians of the bins.
    names : sequence of two str
        Names of the columns.
    is_ordered : sequence of two bool
        Whether the values of each have an order.
    band : ndarray of shape (2, n_first, n_second), default=None
        Ends of a confidence interval of `effect`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        The curves; empty for a surface.
    image_ : matplotlib QuadMesh or None
        The surface of two columns that are both ordered, or both not.

    See Also
    --------
    CouplingDisplay : The couplings of all pairs.

    Notes
    -----
    In a pairwise network, ln p(b | a, rest) is the coupling of a and b plus a term that does not
    depend on a. For a column with an order and one without, each value of the second has a curve:
    its coupling with the values of the first, in nats, relative to the mean over all of its values.
    If the second column has two values, the curve shows their log odds. For two columns with an
    order, or two without, there is a surface, which is high where both values occur together more
    often than the rest of the row explains. With `intervals`, curves have bands, and a surface is
    hatched where the interval has both signs. Each value has an interval of its own, with the level
    of the result: the whole curve is inside less often.

    Smooth functions, as of ``alpha="auto"``, are shrunk towards 0, most where there are few rows.
    A bootstrap shows how much they vary, and not how far they are shrunk: where the true curve
    bends sharply, it is outside of the band more often than the level says. With ``alpha=0``
    nothing is shrunk, and `inference` has standard errors of each value; the curves are ragged.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.inspection import PairEffectDisplay
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=1000)
    >>> retired = rng.random(1000) < 1 / (1 + np.exp((65 - age) / 3))
    >>> X = pd.DataFrame({"age": age, "retired": np.where(retired, "yes", "no")})
    >>> model = FVBMPseudoLikelihood(columns={"age": "binned"}).fit(X)
    >>> display = PairEffectDisplay.from_estimator(model, ["age", "retired"])
    >>> line = display.lines_[0]
    >>> line.get_label(), bool(line.get_ydata()[0] < 0 < line.get_ydata()[-1])
    ('retired = yes', True)
    """

    def __init__(self, *, effect, values, names, is_ordered, band=None):
        self.effect = effect
        self.values = values
        self.names = names
        self.is_ordered = is_ordered
        self.band = band

    @classmethod
    def from_estimator(cls, estimator, columns, *, intervals=None, ax=None, **plot_kw):
        """Draw the coupling of two columns of a fitted network.

        Parameters
        ----------
        estimator : FVBMPseudoLikelihood or SparseFVBM
            A fitted network. One of both columns has more than two values.
        columns : sequence of two int or str
            The labels of the columns in a data frame, or their numbers in an array.
        intervals : NetworkBootstrap or PairwiseInference, default=None
            What :func:`~sklearn_boltz.statistics.bootstrap` or
            :func:`~sklearn_boltz.statistics.inference` returned for this estimator, for bands. The
            estimates of the latter are drawn: they are without a penalty that `fit` chose.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : PairEffectDisplay
            The display with its data.

        Raises
        ------
        ValueError
            If the columns are not two different ones, if both are binary, or if one is a number
            with normal scores: a single number then describes their coupling; or if `intervals`
            tells of trends alone.
        """
        check_is_fitted(estimator)
        names, value_names = names_of(estimator)
        if len(columns) != 2 or columns[0] == columns[1]:
            raise ValueError(f"columns must be two different columns, got {list(columns)!r}.")
        pair = [estimator._variable(column) for column in columns]
        kinds = [list(estimator.columns_.values())[j] for j in pair]
        if value_names is None or estimator.n_values_[pair].max() < 3 or "number" in kinds:
            raise ValueError(
                f"The coupling of {names[pair[0]]!r} and {names[pair[1]]!r} is a single number: "
                "see CouplingDisplay. Numbers have curves with columns='binned'."
            )
        starts = np.concatenate([[0], np.cumsum(estimator.n_values_)])
        first, second = (slice(starts[j], starts[j + 1]) for j in pair)
        effect, band = estimator.coupling_[first, second], None
        if isinstance(intervals, NetworkBootstrap):
            tails = (1 - intervals.confidence_level) / 2
            band = np.quantile(intervals.couplings[:, first, second], [tails, 1 - tails], axis=0)
        elif intervals is not None:
            effect, *band = _tested(intervals, pair, estimator.n_values_)
        display = cls(
            effect=effect,
            values=[_values(estimator, j, value_names[j]) for j in pair],
            names=[names[j] for j in pair],
            is_ordered=[kind in ORDERED for kind in kinds],
            band=None if band is None else np.asarray(band),
        )
        return display.plot(ax=ax, **plot_kw)

    def plot(self, *, ax=None, cmap="RdBu_r", limit=None):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        cmap : str or matplotlib Colormap, default="RdBu_r"
            Colour map of a surface, with 0 in the middle.
        limit : float, default=None
            Coupling with the strongest colour. None means the largest one.

        Returns
        -------
        display : PairEffectDisplay
            The display itself.
        """
        self.ax_, self.lines_, self.image_ = axes_or_new(ax), [], None
        self.figure_ = self.ax_.figure
        if self.is_ordered[0] != self.is_ordered[1]:
            self._draw_curves()
        else:
            self._draw_surface(cmap, limit)
        return self

    def _draw_curves(self):
        """A curve for each value of the column without an order, or the strongest of many."""
        along, other = (0, 1) if self.is_ordered[0] else (1, 0)
        name, values, title = self.names[other], self.values[other], None
        effect, band = np.moveaxis(self.effect, along, 0), self.band
        band = None if band is None else np.moveaxis(band, along + 1, 1)
        shown = np.sort(np.argsort(-np.abs(effect).max(axis=0), kind="stable")[:MOST_CURVES])
        what = "log odds against the average (nats)"
        if len(values) == 2:  # of which one follows from the other
            shown, effect, band = [1], 2 * effect, None if band is None else 2 * band
            what = f"log odds of {name} = {values[1]} (nats)"
        for k in shown:
            label = f"{name} = {values[k]}"
            (line,) = self.ax_.plot(self.values[along], effect[:, k], label=label)
            self.lines_.append(line)
            if band is not None:
                colour = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
                self.ax_.fill_between(self.values[along], *band[:, :, k], **colour)
        self.ax_.axhline(0, color="0.7", linewidth=0.8, zorder=0)
        self.ax_.set(xlabel=self.names[along], ylabel=what)
        if len(values) > MOST_CURVES:
            title = f"{MOST_CURVES} strongest of {len(values)}"
        if len(shown) > 1:
            self.ax_.legend(title=title, loc="center left", bbox_to_anchor=(1, 0.5))

    def _draw_surface(self, cmap, limit):
        limit = (np.abs(self.effect).max(initial=0) if limit is None else limit) or 1
        axes = [
            values if ordered else np.arange(len(values))
            for values, ordered in zip(self.values, self.is_ordered, strict=True)
        ]
        self.image_ = self.ax_.pcolormesh(
            *axes, self.effect.T, cmap=cmap, vmin=-limit, vmax=limit, shading="nearest"
        )
        if self.band is not None:  # hatched where the interval has both signs
            from matplotlib.colors import ListedColormap

            unsure = np.ma.masked_where(np.sign(self.band).prod(axis=0).T > 0, self.effect.T)
            # Without an array of colours, matplotlib would draw masked cells, too.
            nothing = ListedColormap(["none"])
            cover = self.ax_.pcolor(*axes, unsure, shading="nearest", cmap=nothing)
            cover.set(edgecolor="0.6", linewidth=0, hatch="////")
        if not self.is_ordered[0]:
            self.ax_.set_xticks(axes[0], self.values[0], rotation=90)
            self.ax_.set_yticks(axes[1], self.values[1])
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        self.figure_.colorbar(self.image_, ax=self.ax_, label="coupling (nats)")


def _tested(inference, pair, n_values):
    """Estimates of the coupling of a pair, and both ends of their intervals."""
    if not np.array_equal(inference.n_values, n_values):
        raise ValueError(
            "This inference is about trends, a single number for each pair. Give the result of "
            "statistics.bootstrap, or fit with alpha=0, for the inference on each value."
        )
    j, k = sorted(pair)
    own = (inference.columns == [[j], [k]]).all(axis=0)
    figures = inference.estimate, inference.ci_low, inference.ci_high
    blocks = [figure[own].reshape(n_values[j], n_values[k]) for figure in figures]
    return blocks if pair[0] == j else [block.T for block in blocks]


def _values(estimator, j, labels):
    """The values of a column, as an axis has them."""
    column = estimator._encoder.columns[j]
    if column.bins is not None:
        return np.asarray(column.back(column.bins.typical))
    if column.categories is not None and column.categories.dtype.kind in "iuf":
        return column.categories
    return np.array(labels)
