"""Which pairs of columns have too few rows for a test."""

import numpy as np

# Why there is none.
ABSENT, CONSTANT, FEW = "not in the network", "a column is constant", "too few rows"
# Rows for each free value of a regression, at least, with the jackknife and without. Holm's method
# finds an edge in 10 to 12 % of tables of 20 to 25 rows, 10 independent columns of two values, and
# in 5 % with 30 rows; without the jackknife: benchmarks/fvbm/bench_fvbm_intervals.py.
LEAST = {True: 3, False: 20}


def few_rows(known, weights, sizes, free, jackknife):
    """Why pairs of columns have no test: phrases, (d, d), empty where there are enough rows.

    The regression of a column on the others has a free value for the constant, and one for each
    feature of the columns that it has couplings with: `sizes` has their numbers, and `free`, (d,
    d), tells which columns have couplings. Of a pair, rows count that have both: `known`, (n, d).
    """
    n_rows = (known * weights[:, None]).T @ known
    n_values = 1 + (free & ~np.eye(len(sizes), dtype=bool)) @ sizes
    n_values, least = np.maximum(n_values[:, None], n_values), LEAST[bool(jackknife)]
    varies = np.outer(sizes, sizes) > 0
    few = np.triu((n_rows < least * n_values) & varies & free, 1)
    reasons = np.where(free, np.where(varies, "", CONSTANT), ABSENT).astype(object)
    np.fill_diagonal(reasons, "")
    for j, k in np.argwhere(few).tolist():
        reasons[j, k] = reasons[k, j] = (
            f"{FEW}: {n_rows[j, k]:.4g}, and {least * n_values[j, k]} are needed, "
            f"{least} for each of {n_values[j, k]} free values"
        )
    return reasons
