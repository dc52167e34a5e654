"""Which pairs of columns have too few rows for a test."""

import numpy as np

# Rows for each free value of a regression, at least, with the jackknife and without. Below, more
# than 6 % of tables of independent columns have an edge: benchmarks/networks/bench_null_tables.py.
LEAST = {True: 3, False: 20}


def few_rows(known, weights, sizes, free, jackknife):
    """Why pairs of columns have no test.

    The regression of a column on the others has a free value for the constant, and one for each
    feature of the columns that it has couplings with.

    Parameters
    ----------
    known : ndarray of bool of shape (n, d)
        Which cells are. Of a pair, rows count that have both.
    weights : ndarray of shape (n,)
    sizes : ndarray of int of shape (d,)
        How many features each column has for the others.
    free : ndarray of bool of shape (d, d)
        Which columns have couplings.
    jackknife : bool

    Returns
    -------
    reasons : ndarray of object of shape (d, d)
        Phrases; empty where there are enough.
    """
    n_rows = (known * weights[:, None]).T @ known
    n_values = 1 + (free & ~np.eye(len(sizes), dtype=bool)) @ sizes
    n_values, least = np.maximum(n_values[:, None], n_values), LEAST[bool(jackknife)]
    few = np.triu((n_rows < least * n_values) & np.outer(sizes, sizes) & free, 1)
    reasons = np.full(few.shape, "", dtype=object)
    for j, k in np.argwhere(few).tolist():
        reasons[j, k] = reasons[k, j] = (
            f"too few rows: {n_rows[j, k]:.4g}, and {least * n_values[j, k]} are needed, "
            f"{least} for each of {n_values[j, k]} free values"
        )
    return reasons
