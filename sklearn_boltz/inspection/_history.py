"""HistoryDisplay: how the objective of a fit rose."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import axes_or_new


class HistoryDisplay:
    """The course of a fit: a quantity by iteration, and how much each iteration added.

    Use `from_estimator` to create one.

    Parameters
    ----------
    values : array-like of shape (n_iter + 1,)
        The quantity at the start and after each iteration.
    key : str
        Its name.
    label : str, default=None
        Name of the curve in a legend.

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

    def __init__(self, *, values, key, label=None):
        self.values = np.asarray(values)
        self.key = key
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, key=None, *, show_increase=True, label=None, ax=None,
                       **line_kw):  # fmt: skip
        """Draw an entry of the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `history_`.
        key : str, default=None
            Which entry. None means the first.
        show_increase : bool, default=True
            Whether to add what each iteration added, dashed, on a logarithmic axis at the
            right, as Figure 1 of Nguyen and Wood (2016) does.
        label : str, default=None
            Name of the curve in a legend.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **line_kw : dict
            Further properties of the line.

        Returns
        -------
        display : HistoryDisplay
            The picture with its data.
        """
        check_is_fitted(estimator)
        key = next(iter(estimator.history_)) if key is None else key
        if key not in estimator.history_:
            raise ValueError(f"There is no history of {key!r}; there is {list(estimator.history_)}")
        display = cls(values=estimator.history_[key], key=key, label=label)
        return display.plot(show_increase=show_increase, ax=ax, **line_kw)

    def plot(self, *, show_increase=True, ax=None, **line_kw):
        """Draw.

        Parameters
        ----------
        show_increase : bool, default=True
            Whether to add what each iteration added.
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
        (self.line_,) = ax.plot(self.values, **{"label": self.label, **line_kw})
        ax.set(xlabel="iteration", ylabel=self.key.replace("_", " ").replace("pseudo ", "pseudo-"))
        self.increase_ax_ = self.increase_line_ = None
        increase = np.diff(self.values)
        if show_increase and (increase > 0).any():
            # A second curve in the same axes shares the axis at the right.
            twins = [other for other in ax.figure.axes if getattr(other, "_increases_of", 0) is ax]
            self.increase_ax_ = twins[0] if twins else ax.twinx()
            self.increase_ax_._increases_of = ax
            (self.increase_line_,) = self.increase_ax_.semilogy(
                np.arange(1, len(self.values)),
                np.where(increase > 0, increase, np.nan),
                "--",
                color=self.line_.get_color(),
                alpha=0.6,
            )
            self.increase_ax_.set_ylabel("increase (dashed)")
        return self
