"""Grids of small images, all in one axes: a hundred axes would take seconds to lay out."""

import math

import numpy as np

from sklearn_boltz.inspection._axes import axes_or_new

# Between images, as a part of the longer side of one.
GAP = 0.12
BETWEEN = "0.88"
# Inches: the width of a new figure, and how high and how small it may become.
WIDTH, MAX_HEIGHT, MIN_HEIGHT = 7.0, 9.0, 1.0


def as_images(rows, image_shape):
    """Rows as images of shape (n, height, width); without a shape, they are square."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"Rows of pixels must be a table that is not empty, got {rows.shape}.")
    n_features = rows.shape[1]
    if image_shape is None:
        side = math.isqrt(n_features)
        if side**2 != n_features:
            raise ValueError(f"{n_features} pixels are not a square; set image_shape.")
        image_shape = side, side
    if len(image_shape) != 2 or math.prod(image_shape) != n_features:
        raise ValueError(f"image_shape {image_shape} does not fit to {n_features} pixels.")
    return rows.reshape(-1, *image_shape)


def draw_grid(images, n_columns, ax, *, cmap, missing="none", **style):
    """Draw images from left to right and from top to bottom.

    Parameters
    ----------
    images : ndarray of shape (n, height, width)
    n_columns : int or None
        None for a grid that is two to four times as wide as high.
    ax : matplotlib Axes or None
    cmap : str or matplotlib Colormap
    missing : color
        Of values that are NaN.
    **style : dict
        Arguments of `imshow`, the same for all.

    Returns
    -------
    ax : matplotlib Axes
    artists : list of AxesImage, one for each image
    line_centers : ndarray of shape (n_lines,), where lines of images are in y
    """
    n, height, width = images.shape
    if n_columns is None:
        least = math.ceil(math.sqrt(2 * n * height / width))
        # A little more where the last line is fuller then.
        n_columns = min(range(least, 3 * least // 2 + 1), key=lambda columns: -n % columns)
    if n_columns < 1:
        raise ValueError(f"n_columns must be at least 1, got {n_columns}.")
    n_columns, n_lines = min(n_columns, n), math.ceil(n / n_columns)
    gap = GAP * max(height, width)
    step_x, step_y = width + gap, height + gap
    total_x, total_y = n_columns * step_x - gap, n_lines * step_y - gap
    size = np.clip(WIDTH * total_y / total_x, MIN_HEIGHT, MAX_HEIGHT)
    ax = axes_or_new(ax, figsize=(WIDTH, size))
    # After the axes, which say what to do where Matplotlib is missing.
    from matplotlib import colormaps

    cmap = (colormaps[cmap] if isinstance(cmap, str) else cmap).with_extremes(bad=missing)
    artists = []
    for k, image in enumerate(images):
        line, column = divmod(k, n_columns)
        left, top = column * step_x, line * step_y
        # imshow wants the bottom before the top; y goes down.
        extent = left, left + width, top + height, top
        artists.append(ax.imshow(image, extent=extent, interpolation="nearest", cmap=cmap, **style))
    ax.set(xlim=(-gap, total_x + gap), ylim=(total_y + gap, -gap), aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.set_facecolor(BETWEEN)
    ax.spines[:].set_visible(False)
    return ax, artists, np.arange(n_lines) * step_y + height / 2
