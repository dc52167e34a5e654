"""MomentsDisplay: the moments of a model and those of data."""

from itertools import combinations
from math import comb

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import named_axes

# Colours of Okabe and Ito, which are safe for colour-blind readers.
DATA, MODEL, INDEPENDENT = "#000000", "#0072b2", "#d55e00"
PANELS = "mean", "covariance", "triplet", "count"
TITLES = {
    "mean": "means",
    "covariance": "covariances of two",
    "triplet": "third moments of three",
    "count": "number of ones",
}
# Largest number of points that are drawn with error bars.
MOST_BARS = 300


class MomentsDisplay:
    """Moments of a model against those of data.

    There are four plots: the mean of each column, the covariance of each pair of columns, third
    central moments of three columns, and the distribution P(K) of the number K of ones in a row
    [1]_. In the first three, a correct model has about 95 % of the points within two standard
    errors of the diagonal. The standard errors are those of the data and of the samples of the
    model together. They do not include the error of the fit; use rows that were not in the fit to
    see it. Use `from_estimator` to create a display.

    Parameters
    ----------
    moments : Bunch
        `mean`, `covariance` and `triplet`, each a Bunch of arrays `data`, `model` and `std_err`;
        and `count`, a Bunch with the probabilities of 0, 1, ... ones in `data`, `model` and
        `independent`, with `std_err` of those in the data, and with `least`, 1 divided by the
        number of rows of the data.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"mean"``, ``"covariance"``, ``"triplet"`` and ``"count"``.
    figure_ : matplotlib Figure
        The figure of the axes.

    See Also
    --------
    CouplingDisplay : The couplings of a network.

    References
    ----------
    .. [1] G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory
       Neurons", PLoS Computational Biology 10(1), e1003408, 2014.
       https://doi.org/10.1371/journal.pcbi.1003408

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import MaximumEntropy
    >>> from sklearn_boltz.inspection import MomentsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((1000, 8)) < 0.2 + 0.3 * (rng.random((1000, 1)) < 0.5)
    >>> model = MaximumEntropy().fit(X)
    >>> display = MomentsDisplay.from_estimator(model, X, random_state=0)
    >>> bool((display.z_scores("covariance") < 3).all())
    True
    """

    def __init__(self, moments):
        self.moments = moments

    @classmethod
    def from_estimator(
        cls, estimator, X, *, n_samples=20_000, n_triplets=2_000, random_state=None, ax=None
    ):
        """Sample a fitted estimator, and compare the moments of the samples with those of data.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `sample`, of binary columns.
        X : array-like of shape (n_rows, n_features)
            The data, without missing cells. Use rows that were not in the fit for a fair
            comparison.
        n_samples : int, default=20_000
            Number of samples.
        n_triplets : int, default=2_000
            Number of sets of three columns. They are chosen at random if there are more.
        random_state : int, RandomState instance or None, default=None
            The source of randomness.
        ax : sequence of four matplotlib Axes, default=None
            Axes to draw on. None means a new figure.

        Returns
        -------
        display : MomentsDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        generator = check_random_state(random_state)
        names = getattr(estimator, "feature_names_in_", None)
        for j, cells in enumerate(np.asarray(X).T):  # before the samples, which may take long
            _two_values(cells, j, names)
        sample = estimator.sample(n_samples, random_state=generator.randint(2**31))
        data, model = _as_ones(X, sample, names)
        return cls(compared(data, model, n_triplets, generator)).plot(ax=ax)

    def z_scores(self, panel):
        """Return the differences between model and data, in standard errors.

        Parameters
        ----------
        panel : {"mean", "covariance", "triplet"}
            The moments to compare.

        Returns
        -------
        z : ndarray of float64
            The absolute value of (model - data) / std_err for each point.

        Raises
        ------
        ValueError
            If `panel` is not one of these.
        """
        if panel not in PANELS[:3]:
            raise ValueError(f"panel must be 'mean', 'covariance' or 'triplet', got {panel!r}.")
        found = self.moments[panel]
        return np.abs(found.model - found.data) / found.std_err

    def plot(self, *, ax=None):
        """Draw the plot.

        Parameters
        ----------
        ax : sequence of four matplotlib Axes, default=None
            Axes of means, covariances, third moments and P(K). None means a new figure.

        Returns
        -------
        display : MomentsDisplay
            The display itself.
        """
        what = "means, covariances, third moments and P(K)"
        self.axes_ = named_axes(ax, PANELS, what, 2, 2, figsize=(8, 7))
        self.figure_ = self.axes_["mean"].figure
        for panel in PANELS[:3]:
            self._plot_moments(panel)
        self._plot_count(self.axes_["count"])
        return self

    def _plot_moments(self, panel):
        ax, found = self.axes_[panel], self.moments[panel]
        ax.set(title=TITLES[panel], xlabel="data", ylabel="model")
        if not len(found.data):
            ax.text(0.5, 0.5, "too few columns", ha="center", transform=ax.transAxes)
            return
        ends = [min(found.data.min(), found.model.min()), max(found.data.max(), found.model.max())]
        ax.plot(ends, ends, color="0.5", lw=1, zorder=1)
        if len(found.data) <= MOST_BARS:
            ax.errorbar(
                found.data, found.model, xerr=2 * found.std_err, fmt="none", ecolor="0.75", lw=0.8,
                zorder=0,
            )  # fmt: skip
        ax.plot(found.data, found.model, ".", color=MODEL, ms=4 if len(found.data) < 500 else 2)
        share = np.mean(self.z_scores(panel) <= 2)
        ax.text(
            0.04, 0.96, f"{share:.0%} within\ntwo standard errors", va="top", fontsize="small",
            transform=ax.transAxes,
        )  # fmt: skip

    def _plot_count(self, ax):
        found = self.moments.count
        k = np.arange(len(found.data))
        seen = found.data > 0
        # Bars end at the probability of half a row, because the axis is logarithmic.
        low = np.minimum(2 * found.std_err, found.data - found.least / 2)
        bars = np.maximum([low, 2 * found.std_err], 0)[:, seen]
        ax.errorbar(k[seen], found.data[seen], yerr=bars, fmt=".", color=DATA, lw=0.8, label="data")
        positive = np.where(found.model > 0, found.model, np.nan)
        ax.plot(k, positive, color=MODEL, label="model")
        ax.plot(k, found.independent, "--", color=INDEPENDENT, label="independent columns")
        most = np.flatnonzero(seen | (found.model > 0)).max()
        ax.set(
            yscale="log", ylim=(found.least / 3, 2 * max(found.data.max(), found.model.max())),
            xlim=(-0.5, most + 0.5), xlabel="K", ylabel="P(K)", title=TITLES["count"],
        )  # fmt: skip
        ax.locator_params(axis="x", integer=True)
        # Below the axes, so that it covers no point.
        ax.legend(
            frameon=False,
            fontsize="small",
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
            ncols=3,
        )


def compared(data, model, n_triplets, generator):
    """Moments, as in `MomentsDisplay`, of rows of 0 and 1 of data and of a model, (n, d) float."""
    d = data.shape[1]
    centre = data.mean(axis=0)
    orders = {
        "mean": np.arange(d)[:, np.newaxis],
        "covariance": np.array(list(combinations(range(d), 2))).reshape(-1, 2),
        "triplet": _triplets(d, n_triplets, generator),
    }
    moments = Bunch()
    for panel, columns in orders.items():
        found = [_products(rows, centre, columns) for rows in (data, model)]
        (mean, own), (model_mean, other) = found
        shift = centre if panel == "mean" else 0
        moments[panel] = Bunch(
            data=mean + shift, model=model_mean + shift, std_err=np.sqrt(own + other)
        )
    moments.count = _counts(data, model)
    return moments


def _products(rows, centre, columns):
    """Means of ∏ (x_j - centre_j) over some columns, and the variances of these means."""
    centred, n = rows - centre, len(rows)
    mean, square = np.empty((2, len(columns)))
    for start in range(0, len(columns), 200):
        part = slice(start, start + 200)
        product = centred[:, columns[part].T].prod(axis=1)
        mean[part], square[part] = product.mean(axis=0), (product**2).mean(axis=0)
    # One more observation of size 1 gives constant products an error, too.
    return mean, np.maximum(square - mean**2, 1 / n) / n


def _triplets(d, n_triplets, generator):
    """Sets of three columns: all of them, or a random choice."""
    if comb(d, 3) <= n_triplets:
        return np.array(list(combinations(range(d), 3)), dtype=np.int64).reshape(-1, 3)
    drawn = np.array([generator.choice(d, 3, replace=False) for _ in range(n_triplets)])
    return np.unique(np.sort(drawn, axis=1), axis=0)


def _counts(data, model):
    """P(K) of the data, of the model, and of independent columns with the means of the data."""
    d, n = data.shape[1], len(data)
    own, other = (
        np.bincount(rows.sum(axis=1).astype(np.int64), minlength=d + 1) / len(rows)
        for rows in (data, model)
    )
    independent = np.ones(1)
    for rate in data.mean(axis=0):
        independent = np.convolve(independent, [1 - rate, rate])
    std_err = np.sqrt(own * (1 - own) / n)
    return Bunch(data=own, model=other, independent=independent, std_err=std_err, least=1 / n)


def _two_values(cells, j, names):
    """The values of column j, of which there may be two; no cell may be missing."""
    name = f"column {j}"
    if names is not None and j < len(names):
        name += f" ({names[j]!r})"
    missing = np.array([_is_missing(cell) for cell in cells])
    if missing.any():
        raise ValueError(
            f"MomentsDisplay needs rows without missing cells, but {name} has no value in row "
            f"{missing.argmax()}. Leave such rows out, or fill them with `impute`."
        )
    values = np.unique(cells)
    if len(values) > 2:
        raise ValueError(
            f"MomentsDisplay needs binary columns, but {name} has the values "
            f"{', '.join(map(str, values[:4]))}. Leave it out, or compare it with a threshold."
        )
    return values


def _as_ones(X, sample, names):
    """Both tables as 0 and 1 in float64. The larger value of a column becomes 1."""
    data, model = np.asarray(X), np.asarray(sample)
    if data.ndim != 2 or data.shape[1] != model.shape[1]:
        raise ValueError(
            f"X must have {model.shape[1]} columns, like the rows that the estimator was "
            f"fitted to; got an array of shape {data.shape}."
        )
    ones = np.empty(data.shape), np.empty(model.shape)
    for j in range(data.shape[1]):
        values = _two_values(np.concatenate([data[:, j], model[:, j]]), j, names)
        # A constant column of 0 stays 0.
        top = values[-1] if len(values) == 2 or values[-1] == 1 else None
        ones[0][:, j], ones[1][:, j] = data[:, j] == top, model[:, j] == top
    return ones


def _is_missing(cell):
    """Whether a cell is None, NaN or pandas.NA; comparing the last with itself gives no bool."""
    return cell is None or not isinstance(cell == cell, bool | np.bool_) or cell != cell
