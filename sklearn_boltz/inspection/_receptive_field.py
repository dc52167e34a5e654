"""ReceptiveFieldDisplay: the weights of hidden units as images."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._images import as_images, draw_grid


class ReceptiveFieldDisplay:
    """Weights of hidden units as small images with a common colour scale.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    weights : array-like of shape (n_units, n_features)
        Weights of each unit, in the order of the images.
    image_shape : tuple of int, default=None
        Height and width of an image, in pixels. None means square images.
    units : array-like of int of shape (n_units,), default=None
        Numbers of the units in the model.
    rank : ndarray of shape (n_units,), default=None
        Values by which the units are ordered.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with all images.
    figure_ : matplotlib Figure
        The figure of the axes.
    images_ : list of matplotlib AxesImage
        One image for each unit.
    colorbar_ : matplotlib Colorbar or None
        The colour bar.

    See Also
    --------
    SampleDisplay : Samples, reconstructions or imputed rows as images.

    Examples
    --------
    >>> from sklearn_boltz import SDCPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.inspection import ReceptiveFieldDisplay
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(n_components=8, learning_rate=0.3, random_state=0).fit(X)
    >>> display = ReceptiveFieldDisplay.from_estimator(model, n_units=5)
    >>> len(display.images_), display.images_[0].get_array().shape
    (5, (3, 3))
    """

    def __init__(self, *, weights, image_shape=None, units=None, rank=None):
        self.weights = np.asarray(weights)
        self.image_shape = image_shape
        self.units = np.arange(len(self.weights)) if units is None else np.asarray(units)
        self.rank = rank

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        image_shape=None,
        n_units=100,
        order="spread",
        ax=None,
        **plot_kw,
    ):
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `components_`, such as :class:`~sklearn_boltz.SDCPRBM` or
            :class:`sklearn.neural_network.BernoulliRBM`. For a :class:`~sklearn_boltz.TAPDBM`, the
            first hidden layer is shown.
        X : array-like of shape (n_samples, n_features), default=None
            Rows for the mean activity of the units, for ``order="activity"``.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means square images.
        n_units : int, default=100
            Maximum number of units to show.
        order : {"spread", "activity"} or None, default="spread"
            Order of the units: ``"spread"`` sorts by the standard deviation of the weights over
            the pixels, ``"activity"`` by the mean of the unit over `X`, both largest first. None
            means the order in the model.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : ReceptiveFieldDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        weights = estimator.components_
        # For estimators of other libraries, `transform` returns the means.
        mean_hidden = getattr(estimator, "mean_hidden", estimator.transform)
        if isinstance(weights, list):  # in a deep model, the layer next to the data
            weights, mean_hidden = weights[0], lambda X: estimator.mean_hidden(X)[0]
        names = getattr(estimator, "visible_names_", None)
        if names is not None and len(names) != estimator.n_features_in_:
            raise ValueError(
                f"The {estimator.n_features_in_} columns have {len(names)} visible units, because "
                "columns of categories have one for each category: the weights are not images. Use "
                "`components_`, whose columns are named by `visible_names_`; `plot_logo` draws "
                "those of sequences."
            )
        if n_units < 1:
            raise ValueError(f"n_units must be at least 1, got {n_units}.")
        if order == "activity":
            if X is None:
                raise ValueError("order='activity' needs X, the rows for the mean activity.")
            rank = np.asarray(mean_hidden(X)).mean(axis=0)
        elif order == "spread":
            rank = weights.std(axis=1)
        elif order is None:
            rank = None
        else:
            raise ValueError(f"order must be 'spread', 'activity' or None, got {order!r}.")
        units = np.arange(len(weights))
        if rank is not None:
            units = np.argsort(-rank, kind="stable")
        units = units[:n_units]
        rank = None if rank is None else rank[units]
        display = cls(weights=weights[units], image_shape=image_shape, units=units, rank=rank)
        return display.plot(ax=ax, **plot_kw)

    def plot(self, *, ax=None, n_columns=None, cmap="RdBu_r", limit=None, colorbar=True):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        n_columns : int, default=None
            Number of images in a line. None means a grid that is wider than high.
        cmap : str or matplotlib Colormap, default="RdBu_r"
            Colour map, with 0 in the middle.
        limit : float, default=None
            Weight with the strongest colour. None means the 99 % quantile of the absolute weights,
            so that a few large weights do not make all others pale.
        colorbar : bool, default=True
            Whether to draw a colour bar.

        Returns
        -------
        display : ReceptiveFieldDisplay
            The display itself.
        """
        images = as_images(self.weights, self.image_shape)
        size = np.abs(self.weights)
        limit = np.quantile(size, 0.99) if limit is None else limit
        limit = float(limit) or 1.0
        self.ax_, self.images_, _ = draw_grid(
            images, n_columns, ax, cmap=cmap, vmin=-limit, vmax=limit
        )
        self.figure_ = self.ax_.figure
        self.colorbar_ = None
        if colorbar:
            # An inset is as high as the grid; separate axes would be as high as the figure.
            self.colorbar_ = self.figure_.colorbar(
                self.images_[0],
                cax=self.ax_.inset_axes([1.01, 0, 0.02, 1]),
                label="weight",
                extend="both" if size.max() > limit else "neither",
            )
        return self
