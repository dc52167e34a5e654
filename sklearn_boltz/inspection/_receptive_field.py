"""ReceptiveFieldDisplay: what the hidden units look for, as images."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._images import as_images, draw_grid


class ReceptiveFieldDisplay:
    """The weights of hidden units as small images, on one scale of colours.

    Use `from_estimator` to create one.

    Parameters
    ----------
    weights : array-like of shape (n_units, n_features)
        The weights of each unit that is shown, in the order of the images.
    image_shape : tuple of int, default=None
        Height and width of an image, in pixels. None means that images are square.
    units : array-like of int of shape (n_units,), default=None
        Numbers of these units in the model.
    rank : ndarray of shape (n_units,), default=None
        What they are ordered by.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where they are drawn, all in one axes.
    figure_ : matplotlib Figure
        Which contains it.
    images_ : list of matplotlib AxesImage
        One for each unit.
    colorbar_ : matplotlib Colorbar or None
        The scale of the colours.

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
            A fitted estimator with `components_`, such as `SDCPRBM`, or scikit-learn's
            `BernoulliRBM`. Of a `TAPDBM`, the first hidden layer is shown.
        X : array-like of shape (n_samples, n_features), default=None
            Rows over which the activity of the units is taken, for ``order="activity"``.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means that images are square.
        n_units : int, default=100
            How many units are shown, at most.
        order : {"spread", "activity"} or None, default="spread"
            Which units come first: those whose weights differ most over the pixels, by
            standard deviation; those that are most active, by their mean over `X`; or, with
            None, the first in the model.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : ReceptiveFieldDisplay
            The picture with its data.
        """
        check_is_fitted(estimator)
        weights = estimator.components_
        # Of other libraries' machines, `transform` gives the means.
        mean_hidden = getattr(estimator, "mean_hidden", estimator.transform)
        if isinstance(weights, list):  # of a deep model, the layer that sees the data
            weights, mean_hidden = weights[0], lambda X: estimator.mean_hidden(X)[0]
        names = getattr(estimator, "visible_names_", None)
        if names is not None and len(names) != estimator.n_features_in_:
            raise ValueError(
                f"The visible units take {len(names)} numbers for {estimator.n_features_in_} "
                "columns, those of categories one for each: such rows are no images. The weights "
                "are in `components_`, and `visible_names_` names its columns."
            )
        if n_units < 1:
            raise ValueError(f"n_units must be at least 1, got {n_units}.")
        if order == "activity":
            if X is None:
                raise ValueError("order='activity' needs X, the rows to take the activity over.")
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
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        n_columns : int, default=None
            How many images are side by side. None means a grid that is wider than high.
        cmap : str or matplotlib Colormap, default="RdBu_r"
            The colours, of which the middle one stands for 0.
        limit : float, default=None
            The weight with the strongest colour. None means that 99 % of the weights lie
            within, so that a few large ones do not make all others pale.
        colorbar : bool, default=True
            Whether to draw the scale of the colours.

        Returns
        -------
        display : ReceptiveFieldDisplay
            The object itself.
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
            # An inset is as high as the grid; axes beside it would be as high as the figure.
            self.colorbar_ = self.figure_.colorbar(
                self.images_[0],
                cax=self.ax_.inset_axes([1.01, 0, 0.02, 1]),
                label="weight",
                extend="both" if size.max() > limit else "neither",
            )
        return self
