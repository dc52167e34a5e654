"""SampleDisplay: rows of data or of a model as images."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.inspection._images import as_images, draw_grid


class SampleDisplay:
    """Rows as small images: samples, data, reconstructions, imputed rows.

    Use `from_estimator` or `from_rows` to create one.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        A row of pixels for each image. NaN is a missing value.
    image_shape : tuple of int, default=None
        Height and width of an image, in pixels. None means that images are square.
    names : list of str, default=None
        Names of the lines of images. If given, each line has as many images.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where they are drawn, all in one axes.
    figure_ : matplotlib Figure
        Which contains it.
    images_ : list of matplotlib AxesImage
        One for each row.

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
        """Draw samples from a fitted estimator, and draw their images.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator that has `sample`.
        n_samples : int, default=30
            Number of samples.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means that images are square.
        random_state : int, RandomState instance or None, default=None
            The source of randomness.
        sample_kw : dict, default=None
            Further arguments of `sample`, such as the number of steps of a Markov chain.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : SampleDisplay
            The picture with its data.
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
            The rows, of which NaN is a missing value. A dict of tables of the same length
            gives a line of images for each, with its name at the left.
        image_shape : tuple of int, default=None
            Height and width of an image, in pixels. None means that images are square.
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        **plot_kw : dict
            Further arguments of `plot`.

        Returns
        -------
        display : SampleDisplay
            The picture with its data.
        """
        names = None
        if isinstance(X, dict):
            names, tables = list(X), [np.asarray(table) for table in X.values()]
            lengths = [len(table) for table in tables]
            if len(set(lengths)) != 1:
                raise ValueError(f"The tables must have the same number of rows, got {lengths}.")
            X = np.concatenate(tables)
        return cls(rows=X, image_shape=image_shape, names=names).plot(ax=ax, **plot_kw)

    def plot(self, *, ax=None, n_columns=None, cmap="Greys", limits=None, missing="#f0c78a"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None means a new figure.
        n_columns : int, default=None
            How many images are side by side, where lines have no names. None means a grid
            that is wider than high.
        cmap : str or matplotlib Colormap, default="Greys"
            The colours, from the smallest value to the largest.
        limits : tuple of float, default=None
            The smallest and the largest value. None means those of the rows, or 0 and 1 if
            all values lie between.
        missing : color, default="#f0c78a"
            The colour of missing values.

        Returns
        -------
        display : SampleDisplay
            The object itself.
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
