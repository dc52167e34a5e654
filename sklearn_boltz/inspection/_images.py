"""Grids of small images in a single axes; a hundred axes would take seconds to lay out."""

import math

import numpy as np

from sklearn_boltz.inspection._axes import axes_or_new

# Gap between images, as a fraction of the longer side of an image.
GAP = 0.12
BETWEEN = "0.88"
# Width of a new figure, its largest height and its smallest size, in inches.
WIDTH, MAX_HEIGHT, MIN_HEIGHT = 7.0, 9.0, 1.0


def as_images(rows, image_shape):
    """Rows as images of shape (n, height, width); square if no shape is given."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(
            "Images need an array of shape (n_images, n_pixels) that is not empty, got the shape "
            f"{rows.shape}."
        )
    try:
        rows = rows.astype(np.float64 if rows.dtype.kind == "O" else rows.dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Images need numbers, and these rows have others: {error}.") from error
    n_features = rows.shape[1]
    if image_shape is None:
        side = math.isqrt(n_features)
        if side**2 != n_features:
            raise ValueError(
                f"{n_features} pixels do not form a square. Set image_shape=(height, width)."
            )
        image_shape = side, side
    if len(image_shape) != 2 or math.prod(image_shape) != n_features:
        raise ValueError(
            f"image_shape is {image_shape}, but the rows have {n_features} pixels. Height times "
            "width must equal that number."
        )
    return rows.reshape(-1, *image_shape)


def draw_grid(images, n_columns, ax, *, cmap, missing="none", **style):
    """Draw images of shape (n, height, width) from left to right and from top to bottom.

    `n_columns` None is a grid that is two to four times as wide as high, `missing` the colour of
    NaN, and `style` arguments of `imshow` for all. -> the axes, a list of AxesImage, and the y
    coordinates of the lines of images.
    """
    n, height, width = images.shape
    if n_columns is None:
        least = math.ceil(math.sqrt(2 * n * height / width))
        # One more column if the last line is then fuller.
        n_columns = min(range(least, 3 * least // 2 + 1), key=lambda columns: -n % columns)
    if n_columns < 1:
        raise ValueError(f"n_columns must be at least 1, got {n_columns}.")
    n_columns, n_lines = min(n_columns, n), math.ceil(n / n_columns)
    gap = GAP * max(height, width)
    step_x, step_y = width + gap, height + gap
    total_x, total_y = n_columns * step_x - gap, n_lines * step_y - gap
    size = np.clip(WIDTH * total_y / total_x, MIN_HEIGHT, MAX_HEIGHT)
    ax = axes_or_new(ax, figsize=(WIDTH, size))
    # Imported after the axes exist: their error says how to install Matplotlib.
    from matplotlib import colormaps

    cmap = (colormaps[cmap] if isinstance(cmap, str) else cmap).with_extremes(bad=missing)
    artists = []
    for k, image in enumerate(images):
        line, column = divmod(k, n_columns)
        left, top = column * step_x, line * step_y
        # imshow expects bottom before top; y increases downwards.
        extent = left, left + width, top + height, top
        artists.append(ax.imshow(image, extent=extent, interpolation="nearest", cmap=cmap, **style))
    ax.set(xlim=(-gap, total_x + gap), ylim=(total_y + gap, -gap), aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.set_facecolor(BETWEEN)
    ax.spines[:].set_visible(False)
    return ax, artists, np.arange(n_lines) * step_y + height / 2
