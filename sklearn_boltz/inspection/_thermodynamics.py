"""ThermodynamicsDisplay: specific heat and entropy of a network at several temperatures."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz import statistics
from sklearn_boltz.inspection._axes import named_axes

COLOUR, MARK = "#0072b2", "#d55e00"


class ThermodynamicsDisplay:
    """Specific heat and entropy per column of a network, against the temperature.

    The fitted model is at temperature 1. A peak of the specific heat near 1 means that the
    energies of the states differ more than they would for independent columns [1]_. Use
    `from_estimator` to create a display.

    Parameters
    ----------
    figures : Bunch
        What :func:`~sklearn_boltz.statistics.thermodynamics` returned for several temperatures.
    n_features : int
        Number of columns.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"specific_heat"`` and ``"entropy"``.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : dict of str to matplotlib Line2D
        The two curves.
    peak_ : float
        The given temperature with the largest specific heat.

    See Also
    --------
    MomentsDisplay : Moments of a model and of data.

    References
    ----------
    .. [1] G. Tkačik et al., "Thermodynamics and signatures of criticality in a network of
       neurons", PNAS 112(37), 11508–11513, 2015. https://doi.org/10.1073/pnas.1514188112

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.inspection import ThermodynamicsDisplay
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 5))
    >>> model = FVBMPseudoLikelihood(alpha=0.1).fit(X)
    >>> display = ThermodynamicsDisplay.from_estimator(model)
    >>> bool(display.figures.entropy[-1] <= 5 * np.log(2))
    True
    """

    def __init__(self, figures, n_features):
        self.figures, self.n_features = figures, n_features

    @classmethod
    def from_estimator(cls, estimator, temperatures=None, *, ax=None, **kwargs):
        """Compute the curves of a fitted estimator, and draw them.

        Parameters
        ----------
        estimator : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
            A fitted network.
        temperatures : array-like of float, default=None
            At least two temperatures. None means 31 from 0.3 to 3, with equal ratios.
        ax : sequence of two matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **kwargs : dict
            Further parameters of :func:`~sklearn_boltz.statistics.thermodynamics`, such as
            `random_state`.

        Returns
        -------
        display : ThermodynamicsDisplay
            The display with its data.

        Raises
        ------
        ValueError
            If there are fewer than two temperatures.
        """
        check_is_fitted(estimator)
        if temperatures is None:
            temperatures = np.geomspace(0.3, 3, 31)
        if np.ndim(temperatures) != 1 or len(temperatures) < 2:
            raise ValueError(
                "ThermodynamicsDisplay needs a list of at least two temperatures, got "
                f"{temperatures!r}. For a single one, call `statistics.thermodynamics`."
            )
        figures = statistics.thermodynamics(estimator, np.sort(temperatures), **kwargs)
        return cls(figures, estimator.n_features_in_).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the plot.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, default=None
            Axes of the specific heat and of the entropy. None means a new figure.

        Returns
        -------
        display : ThermodynamicsDisplay
            The display itself.
        """
        names, what = ("specific_heat", "entropy"), "the specific heat and for the entropy"
        self.axes_ = named_axes(ax, names, what, 1, 2, figsize=(8, 3.4))
        self.figure_ = self.axes_["entropy"].figure
        self.lines_ = {name: self._plot(name, ax) for name, ax in self.axes_.items()}
        self.peak_ = float(self.figures.temperature[self.figures.specific_heat.argmax()])
        T = self.figures.temperature
        end = "\n(an end of the range)" if self.peak_ in (T.min(), T.max()) else ""
        title = f"specific heat, greatest at T = {self.peak_:.2f}{end}"
        self.axes_["specific_heat"].set(title=title, ylabel="nats a column and unit of T")
        self.axes_["entropy"].set(title="entropy", ylabel="nats a column")
        self.axes_["entropy"].axhline(np.log(2), color="0.6", lw=0.8, ls=":", label="ln 2")
        for ax in self.axes_.values():
            ax.legend(frameon=False, fontsize="small")
        return self

    def _plot(self, name, ax):
        T, value = self.figures.temperature, self.figures[name] / self.n_features
        reach = 2 * self.figures.std_err[name] / self.n_features
        (line,) = ax.plot(T, value, color=COLOUR)
        if reach.any():
            ax.fill_between(
                T, value - reach, value + reach, color=COLOUR, alpha=0.25, lw=0,
                label="two standard errors",
            )  # fmt: skip
        ax.axvline(1, color=MARK, lw=1, ls="--", label="the data: T = 1")
        ax.set(xscale="log", xlabel="temperature T")
        ticks = [t for t in (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10) if T.min() <= t <= T.max()]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.minorticks_off()
        return line
