"""Rows that obey a condition, drawn by rejection."""

import warnings

import numpy as np
from scipy.special import pdtr

from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.tables._frames import joined, some_rows
from sklearn_boltz.tables._values import is_missing

# Rows of a block: of the first one at least, and of later ones at most.
LEAST_BLOCK, LARGEST_BLOCK = 100, 2**14
# The least share of rows that obey. A smaller one counts as less if twice the least would give so
# few with this probability: none of 26,500 rows, or 9 of 100,000.
LEAST_SHARE, CHANCE = 1e-4, 0.005


def rows_where(draw, n_samples, random_state, where, name, bar):
    """Rows for which `where` is true, from blocks of rows of which the others are dropped.

    `draw` makes a table from a number of rows and a Generator, and `where` an array of bool from a
    table. `name` is that of the estimator in messages. `bar` counts the rows that are found.
    """
    generator, kept, n_found, n_drawn = make_generator(random_state), [], 0, 0
    size = max(LEAST_BLOCK, min(n_samples, LARGEST_BLOCK))
    while n_found < n_samples:
        with warnings.catch_warnings():
            if n_drawn:  # the first block has given the warnings
                warnings.simplefilter("ignore")
            table = draw(size, generator)
        rows = np.flatnonzero(_obeying(where(table), size, name))
        kept.append(some_rows(table, rows))
        bar.update(min(len(rows), n_samples - n_found))
        n_found, n_drawn = n_found + len(rows), n_drawn + size
        expected = LEAST_SHARE * n_drawn
        if n_found < expected and pdtr(n_found, 2 * expected) < CHANCE:
            raise ValueError(
                f"{name}.sample: {n_found:,} of {n_drawn:,} rows obey `where`, fewer than 1 in "
                "10,000. If it asks for single values, fix them by `given`. Otherwise, relax it."
            )
        size = np.ceil(1.1 * (n_samples - n_found) * n_drawn / max(n_found, 1))
        size = int(np.clip(size, LEAST_BLOCK, LARGEST_BLOCK))
    rows = some_rows(joined(kept), np.arange(n_samples))
    return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows


def _obeying(found, n_rows, name):
    """Result of a user's function on the rows, as an array of bool; missing values are False."""
    mask = np.asarray(found)
    if mask.dtype.kind == "O":  # with missing values
        cells = [False if is_missing(cell) else cell for cell in mask.ravel().tolist()]
        mask = np.array(cells).reshape(mask.shape)
    if mask.dtype.kind != "b" or mask.shape != (n_rows,):
        raise ValueError(
            f"{name}.sample: `where` returned a {type(found).__name__} of shape {mask.shape} and "
            f"type {mask.dtype} for a table of {n_rows} rows. It must return a bool for each row, "
            "as lambda table: table['start'] <= table['end'] does."
        )
    return mask
