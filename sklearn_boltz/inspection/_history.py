"""HistoryDisplay: the course of a fit."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import axes_or_new

LIKELIHOODS = "validation_log_likelihood", "log_likelihood"


class HistoryDisplay:
    """The course of a fit: a quantity by iteration or by time.

    Use `from_estimator` to create one.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        The quantity after each iteration.
    key : str
        Its name.
    label : str, default=None
        Name of the curve in a legend.
    at : array-like of shape (n_values,), default=None
        Where on the horizontal axis the values are. None means 1, 2, 3, ...: after each
        iteration.
    against : str, default="iteration"
        Name of the horizontal axis.
    std_err : array-like of shape (n_values,), default=None
        Standard errors of the values, of which a band shows two.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the values are.
    increase_ax_ : matplotlib Axes or None
        Where the increases are.
    figure_ : matplotlib Figure
        Which contains them.
    line_ : matplotlib Line2D
        The values.
    band_ : matplotlib PolyCollection or None
        Two standard errors about them, if they have errors.
    increase_line_ : matplotlib Line2D or None
        The increases.

    See Also
    --------
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
            Which entry. None means the log-likelihood of rows that were set aside, that of
            training rows, the log pseudo-likelihood or the first entry: the first of these that
            is there. Log-likelihoods whose ln Z is an estimate have a band of two standard errors.
        against : {"iteration", "seconds"}, default="iteration"
            What the horizontal axis shows: the number of iterations (for mini-batches, of
            epochs), or the time that they took, to compare unlike algorithms fairly.
        show_increase : bool, default=False
            Whether to add what each iteration after the first added, dashed, on a logarithmic
            axis at the right, as Figure 1 of Nguyen and Wood (2016) does: for fits whose
            iterations see all data, so that each adds something.
        label : str, default=None
            Name of the curve in a legend, which is drawn if there is a name.
        ax : matplotlib Axes, default=None
            Where to draw, also on top of another display. None means a new figure.
        **line_kw : dict
            Further properties of the line.

        Returns
        -------
        display : HistoryDisplay
            The picture with its data.
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
                raise ValueError(f"There is no history of {name!r}; there is {list(history)}")
        at = np.cumsum(history["seconds"]) if against == "seconds" else None
        # Both have the same ln Z, and so the same error.
        std_err = history.get("log_likelihood_std_err") if key in LIKELIHOODS else None
        display = cls(
            values=history[key], key=key, label=label, at=at, against=against, std_err=std_err
        )
        return display.plot(show_increase=show_increase, ax=ax, **line_kw)

    def plot(self, *, show_increase=False, ax=None, **line_kw):
        """Draw.

        Parameters
        ----------
        show_increase : bool, default=False
            Whether to add what each iteration after the first added.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **line_kw : dict
            Further properties of the line.

        Returns
        -------
        display : HistoryDisplay
            The object itself.
        """
        self.ax_ = ax = axes_or_new(ax)
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
        if self.label is not None:
            ax.legend()
        self.increase_ax_ = self.increase_line_ = None
        increase = np.diff(self.values)
        if show_increase and (increase > 0).any():
            # A second curve in the same axes shares the axis at the right.
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
