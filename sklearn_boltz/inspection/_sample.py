"""SampleDisplay: rows of data or samples of a model as images."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._images import as_images, draw_grid


class SampleDisplay:
    """Rows as small images, such as samples, data, reconstructions or imputed rows.

    Use `from_estimator` or `from_rows` to create a display.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Pixels of each image. NaN is a missing value.
    image_shape : tuple of int, default=None
        Height and width of an image, in pixels. None means square images.
    names : list of str, default=None
        Names of the lines of images. If given, all lines have the same number of images.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with all images.
    figure_ : matplotlib Figure
        The figure of the axes.
    images_ : list of matplotlib AxesImage
        One image for each row.

    See Also
    --------
    ReceptiveFieldDisplay : The weights of hidden units as images.

    Examples
    --------
    >>> from sklearn_boltz import SDCPRBM
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.inspection import SampleDisplay
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(n_components=8, learning_rate=0.3, random_state=0).fit(X)
    >>> display = SampleDisplay.from_estimator(model, 10, random_state=0)
    >>> len(display.images_)
    10
    >>> display = SampleDisplay.from_rows({"data": X, "reconstructed": model.gibbs(X)})
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['data', 'reconstructed']
    """

    def __init__(self, *, rows, image_shape=None, names=None):
        self.rows = np.asarray(rows)
        self.image_shape = image_shape
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        n_samples=30,
        *,
        image_shape=None,
        random_state=None,
        sample_kw=None,
        ax=None,
        **plot_kw,
    ):
        """Sample a fitted estimator, and draw the samples as images.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a method `sample`.
        n_samples : int, default=30
            Number of samples.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means square images.
        random_state : int, RandomState instance or None, default=None
            The source of randomness.
        sample_kw : dict, default=None
            Further arguments of `sample`, such as the number of steps of a Markov chain.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : SampleDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        rows = estimator.sample(n_samples, random_state=random_state, **(sample_kw or {}))
        return cls(rows=rows, image_shape=image_shape).plot(ax=ax, **plot_kw)

    @classmethod
    def from_rows(cls, X, *, image_shape=None, ax=None, **plot_kw):
        """Draw rows as images.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or dict of such
            The rows. NaN is a missing value. A dict of arrays with the same number of rows gives
            one line of images for each array, with its name on the left.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means square images.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : SampleDisplay
            The display with its data.
        """
        names = None
        if isinstance(X, dict):
            names, tables = list(X), [np.asarray(table) for table in X.values()]
            lengths = [len(table) for table in tables]
            if len(set(lengths)) != 1:
                raise ValueError(f"The arrays must have the same number of rows, got {lengths}.")
            X = np.concatenate(tables)
        return cls(rows=X, image_shape=image_shape, names=names).plot(ax=ax, **plot_kw)

    def plot(self, *, ax=None, n_columns=None, cmap="Greys", limits=None, missing="#f0c78a"):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        n_columns : int, default=None
            Number of images in a line, if lines have no names. None means a grid that is wider
            than high.
        cmap : str or matplotlib Colormap, default="Greys"
            Colour map, from the smallest value to the largest.
        limits : tuple of float, default=None
            Smallest and largest value of the colour map. None means 0 and 1, extended
            to the smallest and the largest value of the rows if these lie outside.
        missing : color, default="#f0c78a"
            Colour of missing values.

        Returns
        -------
        display : SampleDisplay
            The display itself.
        """
        images = as_images(self.rows, self.image_shape)
        if limits is None:
            seen = images[~np.isnan(images)]
            limits = min(0, seen.min(initial=0)), max(1, seen.max(initial=1))
        if self.names is not None:
            n_columns = len(images) // len(self.names)
        style = {"cmap": cmap, "missing": missing, "vmin": limits[0], "vmax": limits[1]}
        self.ax_, self.images_, lines = draw_grid(images, n_columns, ax, **style)
        self.figure_ = self.ax_.figure
        if self.names is not None:
            self.ax_.set_yticks(lines, self.names)
            self.ax_.tick_params(axis="y", length=0)
        return self
