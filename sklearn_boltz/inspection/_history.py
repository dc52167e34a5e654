"""HistoryDisplay: a quantity after each iteration of a fit."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import axes_or_new

LIKELIHOODS = "validation_log_likelihood", "log_likelihood"


class HistoryDisplay:
    """A quantity of the training history, by iteration or by time.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        The quantity after each iteration.
    key : str
        Name of the quantity.
    label : str, default=None
        Name of the curve in a legend.
    at : array-like of shape (n_values,), default=None
        Positions of the values on the horizontal axis. None means 1, 2, 3, ...
    against : str, default="iteration"
        Name of the horizontal axis.
    std_err : array-like of shape (n_values,), default=None
        Standard errors of the values. A band shows two standard errors.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the values.
    increase_ax_ : matplotlib Axes or None
        The axes of the increases.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D
        The curve of the values.
    band_ : matplotlib PolyCollection or None
        The band of two standard errors, if there are errors.
    increase_line_ : matplotlib Line2D or None
        The curve of the increases.

    See Also
    --------
    LadderDisplay : The ladder of models that measures the log-likelihood of an RBM.
    LandscapeDisplay : The solutions of a mean-field model during training.
    CouplingDisplay : The couplings that were fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.inspection import HistoryDisplay
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(100, 4))
    >>> model = FVBMPseudoLikelihood(solver="bslm").fit(X)
    >>> display = HistoryDisplay.from_estimator(model)
    >>> display.ax_.get_ylabel()
    'log pseudo-likelihood'
    """

    def __init__(self, *, values, key, label=None, at=None, against="iteration", std_err=None):
        self.values = np.asarray(values)
        self.key = key
        self.label = label
        self.at = np.arange(1, len(self.values) + 1) if at is None else np.asarray(at)
        self.against = against
        self.std_err = None if std_err is None else np.asarray(std_err)

    @classmethod
    def from_estimator(cls, estimator, key=None, *, against="iteration", show_increase=False,
                       label=None, ax=None, **line_kw):  # fmt: skip
        """Draw an entry of the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `history_`.
        key : str, default=None
            Key of `history_`. None means the first that exists of: log-likelihood of validation
            rows, log-likelihood of training rows, log pseudo-likelihood, first entry. A
            log-likelihood with an estimated ln Z has a band of two standard errors.
        against : {"iteration", "seconds"}, default="iteration"
            Quantity of the horizontal axis: the number of iterations (epochs, for estimators that
            train with mini-batches), or the time, which is fairer between different algorithms.
        show_increase : bool, default=False
            Whether to add a dashed curve of the increase in each iteration after the first, on a
            logarithmic axis on the right, as in Figure 1 of [1]_. It is meant for fits in which
            each iteration uses all data and increases the quantity.
        label : str, default=None
            Name of the curve in the legend. None means no legend.
        ax : matplotlib Axes, default=None
            Axes to draw on; they may have other curves. None means a new figure.
        **line_kw : dict
            Further properties of the line.

        Returns
        -------
        display : HistoryDisplay
            The display with its data.

        Raises
        ------
        ValueError
            If the history has no entry `key`.

        References
        ----------
        .. [1] H. D. Nguyen and I. A. Wood, "A Block Successive Lower-Bound Maximization Algorithm
           for the Maximum Pseudo-Likelihood Estimation of Fully Visible Boltzmann Machines",
           Neural Computation 28(3), 485–492, 2016. https://doi.org/10.1162/NECO_a_00813
        """
        check_is_fitted(estimator)
        history = estimator.history_
        if against not in ("iteration", "seconds"):
            raise ValueError(f"against must be 'iteration' or 'seconds', got {against!r}.")
        if key is None:
            preferred = [*LIKELIHOODS, "log_pseudo_likelihood", *history]
            key = next((name for name in preferred if name in history), None)
        for name in [key] + (["seconds"] if against == "seconds" else []):
            if name not in history:
                raise ValueError(
                    f"The history has no entry {name!r}. Its entries are {list(history)}."
                )
        known = ~np.isnan(history[key])  # not all epochs are measured
        at = np.cumsum(history["seconds"]) if against == "seconds" else 1 + np.arange(len(known))
        # Both use the same ln Z and have the same error.
        std_err = history.get("log_likelihood_std_err") if key in LIKELIHOODS else None
        display = cls(
            values=history[key][known], key=key, label=label, at=at[known], against=against,
            std_err=None if std_err is None else std_err[known],
        )  # fmt: skip
        return display.plot(show_increase=show_increase, ax=ax, **line_kw)

    def plot(self, *, show_increase=False, ax=None, **line_kw):
        """Draw the plot.

        Parameters
        ----------
        show_increase : bool, default=False
            Whether to add a curve of the increase in each iteration after the first.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **line_kw : dict
            Further properties of the line.

        Returns
        -------
        display : HistoryDisplay
            The display itself.
        """
        self.ax_ = ax = axes_or_new(ax)

        from matplotlib.ticker import MaxNLocator

        self.figure_ = ax.figure
        (self.line_,) = ax.plot(self.at, self.values, **{"label": self.label, **line_kw})
        self.band_ = None
        if self.std_err is not None and (self.std_err > 0).any():
            reach = np.where(np.isfinite(self.std_err), 2 * self.std_err, np.nan)
            low, high, color = self.values - reach, self.values + reach, self.line_.get_color()
            self.band_ = ax.fill_between(self.at, low, high, color=color, alpha=0.25, lw=0)
        ylabel = self.key.replace("_", " ")
        for words in ("pseudo likelihood", "log likelihood", "free energy"):
            ylabel = ylabel.replace(words, words.replace(" ", "-"))
        ax.set(xlabel=self.against, ylabel=ylabel)
        locator = ax.xaxis.get_major_locator()
        if self.against == "iteration" and isinstance(locator, MaxNLocator):
            locator.set_params(integer=True)
        if self.label is not None:
            ax.legend()
        self.increase_ax_ = self.increase_line_ = None
        increase = np.diff(self.values)
        if show_increase and (increase > 0).any():
            # A second curve in the same axes shares the axis on the right.
            twins = [other for other in ax.figure.axes if getattr(other, "_increases_of", 0) is ax]
            self.increase_ax_ = twins[0] if twins else ax.twinx()
            self.increase_ax_._increases_of = ax
            (self.increase_line_,) = self.increase_ax_.semilogy(
                self.at[1:],
                np.where(increase > 0, increase, np.nan),
                "--",
                color=self.line_.get_color(),
                alpha=0.6,
            )
            self.increase_ax_.set_ylabel("increase (dashed)")
        return self
