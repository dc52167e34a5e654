"""LadderDisplay: the models between independent units and a fitted model."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import named_axes

# Neighbours whose exchange rate is below this are not connected.
BROKEN = 0.05
GOOD_COLOUR, BROKEN_COLOUR = "C0", "#d55e00"


class LadderDisplay:
    """Diagnostics of a ladder of models: exchange rates, and ln Z of each model.

    A ladder is a series of models from independent units to the fitted model. Markov chains of
    neighbouring models exchange states, and the ratios of their normalising constants give ln Z.

    There are two plots. The first shows how often neighbours exchange states; pairs that almost
    never do are marked as broken. The second shows ln Z of all models, with a band of two
    standard errors. Use `from_estimator` to create a display.

    Parameters
    ----------
    estimate : Bunch
        What ``log_partition("ladder")`` returned.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"acceptance"`` and ``"log_partition"``.
    figure_ : matplotlib Figure
        The figure of the axes.
    bars_ : matplotlib BarContainer
        The bars of the exchange rates.
    broken_ : ndarray of int
        Numbers of the pairs that are not connected. Pair i has the models i and i + 1.
    line_ : matplotlib Line2D
        The curve of ln Z.
    band_ : matplotlib PolyCollection or None
        The band of two standard errors; None if no errors are known.

    See Also
    --------
    HistoryDisplay : The log-likelihood during a fit, which is measured with such a ladder.

    Examples
    --------
    >>> from sklearn_boltz import SDCPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.inspection import LadderDisplay
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(8, learning_rate=0.3, max_iter=300, random_state=0).fit(X)
    >>> display = LadderDisplay.from_estimator(model, random_state=0)
    >>> len(display.broken_)
    0
    >>> bool(abs(display.estimate.value - model.log_partition_) < 0.5)
    True
    """

    def __init__(self, estimate):
        self.estimate = estimate

    @classmethod
    def from_estimator(cls, estimator, *, random_state=None, ax=None, **kwargs):
        """Estimate ln Z of a fitted estimator with a ladder, and draw it.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with ``log_partition(method="ladder")``.
        random_state : int, RandomState instance, Generator or None, default=None
            The source of randomness.
        ax : sequence of two matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **kwargs : dict
            Further parameters of `log_partition`, such as `tol` and `max_rounds`.

        Returns
        -------
        display : LadderDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        estimate = estimator.log_partition("ladder", random_state=random_state, **kwargs)
        return cls(estimate).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the plot.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, default=None
            Axes of the exchange rates and of ln Z. None means a new figure.

        Returns
        -------
        display : LadderDisplay
            The display itself.
        """
        if self.estimate.get("acceptances") is None:
            raise ValueError(
                "LadderDisplay needs an estimate of a ladder. Pass what log_partition('ladder') "
                "returns."
            )
        names, what = ("acceptance", "log_partition"), "the exchange rates and for ln Z"
        self.axes_ = named_axes(ax, names, what, 1, 2, figsize=(9, 3.5))
        self.figure_ = self.axes_["acceptance"].figure
        # Ladders of networks have temperatures; models saved during training only have an order.
        at, betas = np.arange(len(self.estimate.log_partitions)), self.estimate.get("betas")
        self._xlabel = "model, from independent units (0)"
        if betas is not None:
            at, self._xlabel = np.asarray(betas), "inverse temperature"
        self._plot_acceptances(self.axes_["acceptance"], at)
        self._plot_log_partitions(self.axes_["log_partition"], at)
        return self

    def _plot_acceptances(self, ax, at):
        acceptances, widths = self.estimate.acceptances, np.diff(at)
        middles = at[:-1] + widths / 2
        self.broken_ = np.flatnonzero(acceptances < BROKEN)
        colours = np.where(acceptances < BROKEN, BROKEN_COLOUR, GOOD_COLOUR)
        self.bars_ = ax.bar(middles, acceptances, 0.85 * widths, color=colours)
        # A bar of height 0 is invisible, so broken pairs are shaded.
        for i in self.broken_:
            ax.axvspan(at[i], at[i + 1], color=BROKEN_COLOUR, alpha=0.15, lw=0)
            ax.text(
                middles[i], 0.5, "broken", color=BROKEN_COLOUR, rotation=90, ha="center",
                va="center", transform=ax.get_xaxis_transform(),
            )  # fmt: skip
        ax.set(xlim=(at[0], at[-1]), ylim=(0, 1), xlabel=self._xlabel, ylabel="acceptance")
        ax.set_title("exchanges between neighbours")
        self._count(ax)

    def _plot_log_partitions(self, ax, at):
        estimate = self.estimate
        values = np.asarray(estimate.log_partitions)
        (self.line_,) = ax.plot(at, values, ".-", color=GOOD_COLOUR)
        self.band_ = None
        if (errors := estimate.get("log_partition_errors")) is not None:
            # The errors of a broken ladder may be very large; they must not determine the scale.
            most = max(1.0, np.ptp(values))
            reach = np.minimum(2 * np.asarray(errors), most)
            self.band_ = ax.fill_between(
                at, values - reach, values + reach, color=GOOD_COLOUR, alpha=0.25, lw=0
            )
        colour = GOOD_COLOUR if estimate.trusted else BROKEN_COLOUR
        ax.plot(
            at[-1], estimate.value, "o", color=colour, clip_on=False, zorder=3,
            label=self._name_of_top(),
        )  # fmt: skip
        ax.legend(loc="best", frameon=False, labelcolor=None if estimate.trusted else colour)
        ax.set(xlim=(at[0], at[-1]), xlabel=self._xlabel, ylabel="ln Z, nats")
        ax.set_title("ln Z of each model")
        self._count(ax)

    def _name_of_top(self):
        """The value and its reliability, as a short text."""
        value = f"fitted model: {self.estimate.value:.2f} ± {self.estimate.std_err:.2f}"
        return value if self.estimate.trusted else f"{value},\nnot reliable"

    def _count(self, ax):
        """Label an axis of model numbers with integers."""
        if self.estimate.get("betas") is None:
            ax.locator_params(axis="x", integer=True)
