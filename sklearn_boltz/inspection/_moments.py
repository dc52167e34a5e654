"""MomentsDisplay: the moments of a model beside those of data."""

from itertools import combinations
from math import comb

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._axes import require_pyplot

# Okabe and Ito's colours, which the colour-blind tell apart.
DATA, MODEL, INDEPENDENT = "#000000", "#0072b2", "#d55e00"
PANELS = "mean", "covariance", "triplet", "count"
TITLES = {
    "mean": "means",
    "covariance": "covariances of two",
    "triplet": "third moments of three",
    "count": "number of ones",
}
# With more points than this, error bars would hide them.
MOST_BARS = 300


class MomentsDisplay:
    """Moments of a model against those of data.

    Four pictures: the mean of each column, the covariances of two columns, the third central
    moments of three columns, and the distribution of the number of ones in a row, P(K). In the
    first three, a model that is right has 95 % of the points within two standard errors of
    the diagonal: of the data and of the samples of the model together. They do not know of the
    error of the fit, which rows that were not in it show as well. Use `from_estimator` to create
    one.

    Parameters
    ----------
    moments : Bunch
        With `mean`, `covariance` and `triplet`, each a Bunch of arrays `data`, `model` and
        `std_err`; and `count`, a Bunch of the probabilities `data`, `model` and `independent`
        of 0, 1, ... ones, and of `std_err` of those of the data.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        ``"mean"``, ``"covariance"``, ``"triplet"`` and ``"count"``.
    figure_ : matplotlib Figure
        Which contains them.

    See Also
    --------
    CouplingDisplay : The couplings of a network.
    ThermodynamicsDisplay : Its specific heat and entropy.

    References
    ----------
    G. Tkačik et al., "Searching for Collective Behavior in a Large Network of Sensory Neurons",
    PLoS Computational Biology 10(1), e1003408, 2014. https://doi.org/10.1371/journal.pcbi.1003408

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.inspection import MomentsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((1000, 8)) < 0.2 + 0.3 * (rng.random((1000, 1)) < 0.5)
    >>> model = FVBMPseudoLikelihood(objective="likelihood").fit(X)
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
        """Draw samples of a fitted estimator, and compare their moments with those of data.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `sample`, of binary columns.
        X : array-like of shape (n_rows, n_features)
            The data, without missing cells; rows that the fit has not seen make a fair picture.
        n_samples : int, default=20_000
            Rows that the estimator draws.
        n_triplets : int, default=2_000
            Sets of three columns, drawn at random if there are more.
        random_state : int, RandomState instance or None, default=None
            The source of randomness.
        ax : sequence of four matplotlib Axes, default=None
            Where to draw. None means a new figure.

        Returns
        -------
        display : MomentsDisplay
            The picture with its data.
        """
        check_is_fitted(estimator)
        generator = check_random_state(random_state)
        sample = estimator.sample(n_samples, random_state=generator.randint(2**31))
        names = getattr(estimator, "feature_names_in_", None)
        data, model = _as_ones(X, sample, names)
        return cls(compared(data, model, n_triplets, generator)).plot(ax=ax)

    def z_scores(self, panel):
        """How far model and data are apart, in standard errors.

        Parameters
        ----------
        panel : {"mean", "covariance", "triplet"}
            Which moments.

        Returns
        -------
        z : ndarray of float64
            Of each point, abs(model - data) / std_err.

        Raises
        ------
        ValueError
            If `panel` is none of these.
        """
        if panel not in PANELS[:3]:
            raise ValueError(f"panel must be 'mean', 'covariance' or 'triplet', got {panel!r}.")
        found = self.moments[panel]
        return np.abs(found.model - found.data) / found.std_err

    def plot(self, *, ax=None):
        """Draw.

        Parameters
        ----------
        ax : sequence of four matplotlib Axes, default=None
            Where to draw: means, covariances, third moments, and P(K). None means a new figure.

        Returns
        -------
        display : MomentsDisplay
            The object itself.
        """
        if ax is None:
            _, ax = require_pyplot().subplots(2, 2, figsize=(8, 7), layout="constrained")
        if np.size(ax) != 4:
            raise ValueError("ax must be four Axes: means, covariances, third moments and P(K).")
        self.axes_ = dict(zip(PANELS, np.ravel(ax), strict=True))
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
        # No bar below the probability of half a row: there is no logarithm of 0.
        low = np.minimum(2 * found.std_err, found.data - found.least / 2)
        bars = np.maximum([low, 2 * found.std_err], 0)[:, seen]
        ax.errorbar(k[seen], found.data[seen], yerr=bars, fmt=".", color=DATA, lw=0.8, label="data")
        ax.plot(k, _or_nan(found.model), color=MODEL, label="model")
        ax.plot(k, found.independent, "--", color=INDEPENDENT, label="independent columns")
        most = np.flatnonzero(seen | (found.model > 0)).max()
        ax.set(
            yscale="log", ylim=(found.least / 3, 2 * max(found.data.max(), found.model.max())),
            xlim=(-0.5, most + 0.5), xlabel="K", ylabel="P(K)", title=TITLES["count"],
        )  # fmt: skip
        ax.locator_params(axis="x", integer=True)
        # Below the axes, where no point is.
        ax.legend(
            frameon=False,
            fontsize="small",
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
            ncols=3,
        )


def compared(data, model, n_triplets, generator):
    """Moments of rows of 0 and 1 of data and of a model.

    Parameters
    ----------
    data, model : ndarray of float64 of shape (n, d)
    n_triplets : int
    generator : RandomState

    Returns
    -------
    moments : Bunch
        As of `MomentsDisplay`.
    """
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
    # One more observation of the size of one: a product that never varies has an error, too.
    return mean, np.maximum(square - mean**2, 1 / n) / n


def _triplets(d, n_triplets, generator):
    """Sets of three columns, all of them or some."""
    if comb(d, 3) <= n_triplets:
        return np.array(list(combinations(range(d), 3)), dtype=np.int64).reshape(-1, 3)
    drawn = np.array([generator.choice(d, 3, replace=False) for _ in range(n_triplets)])
    return np.unique(np.sort(drawn, axis=1), axis=0)


def _counts(data, model):
    """P(K), of independent columns with the rates of the data as well."""
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


def _as_ones(X, sample, names):
    """Both tables as 0 and 1 of float64; the greater value of a column is 1."""
    data, model = np.asarray(X), np.asarray(sample)
    if data.ndim != 2 or data.shape[1] != model.shape[1]:
        raise ValueError(
            f"X must have {model.shape[1]} columns, like the rows that the estimator was "
            f"fitted to; got an array of shape {data.shape}."
        )
    ones = np.empty((2,), dtype=object)
    ones[:] = [np.empty(data.shape), np.empty(model.shape)]
    for j in range(data.shape[1]):
        cells = np.concatenate([data[:, j], model[:, j]])
        missing = np.array([_is_missing(cell) for cell in cells])
        values = np.unique(cells[~missing])
        if len(values) > 2 or missing.any():
            values = [*values[: 3 if missing.any() else 4], *cells[missing][:1]]
            name = f"column {j}" if names is None else f"column {j} ({names[j]!r})"
            raise ValueError(
                f"MomentsDisplay shows binary columns without missing cells, and {name} has the "
                f"values {', '.join(map(str, values))}. Leave it out, or binarize it."
            )
        # A constant column of 0 is one of zeros.
        top = values[-1] if len(values) == 2 or values[-1] == 1 else None
        ones[0][:, j], ones[1][:, j] = data[:, j] == top, model[:, j] == top
    return ones


def _is_missing(cell):
    """Whether a cell is None, NaN, or pandas.NA, which compared to itself is no bool."""
    return cell is None or not isinstance(cell == cell, bool | np.bool_) or cell != cell


def _or_nan(p):
    """Probabilities of 0 have no logarithm."""
    return np.where(p > 0, p, np.nan)
