"""The corners of a grid of tables whose pairs of columns do not interact, and chains.

What is asked of each: p < .05 in at most .06 of the pairs, an edge by Holm's method in at most .06
of the tables, a false discovery rate of at most .06 by Benjamini and Hochberg's. The bounds add
what the sampling error of that many tables needs: where the share is .06, one of the assertions
fails with a probability of 1e-4. ``benchmarks/networks/bench_null_tables.py`` has the whole grid.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom

from sklearn_boltz import FVBMPseudoLikelihood, statistics

SHARE, ALARM = 0.06, 1e-4


def table(n_rows, n_columns, p, seed, *, missing=0.0, by_row=False, links=0.0):
    """Columns with the same probabilities of their levels, of which each may repeat the one before.

    `missing` is the share of the cells that are: at random, or half of the cells of some rows.
    """
    rng = np.random.default_rng([seed, n_rows, n_columns])
    X = rng.choice(len(p), size=(n_rows, n_columns), p=p).astype(float)
    for j in range(1, n_columns):
        X[:, j] = np.where(rng.random(n_rows) < links, X[:, j - 1], X[:, j])
    hidden = rng.random(X.shape) < (0.5 if by_row else missing)
    if by_row:
        hidden &= (rng.random(n_rows) < 2 * missing)[:, None]
    X[hidden] = np.nan
    return X


def results(X):
    """Of the upper triangle: p values, and which pairs have adjusted ones below .05."""
    upper = np.triu_indices(X.shape[1], 1)
    kind = "binary" if np.nanmax(X) < 2 else "nominal"
    model = FVBMPseudoLikelihood(columns=kind).fit(X)
    found = statistics.inference(model, X)
    adjusted = [found.adjusted_p_value(method)[upper] < 0.05 for method in ("holm", "fdr_bh")]
    return found.pair_p_value()[upper], *adjusted


def at_most(n):
    """The highest number of n tables with an edge that is no alarm."""
    return binom.isf(ALARM, n, SHARE)


RARE = [0.02] * 4 + [0.92]
CORNERS = {
    "rare bits": (40, (200, 4, [0.98, 0.02])),
    "many pairs of rare bits": (20, (1000, 30, [0.9, 0.1])),
    "rare levels": (40, (1000, 4, RARE)),
    "few rows": (30, (200, 10, [0.25] * 4), {"missing": 0.01}),
    "gaps": (40, (200, 10, [1 / 3] * 3), {"missing": 0.2}),
    "gaps by row": (60, (200, 4, [0.2] * 5), {"missing": 0.2, "by_row": True}),
    "gaps of rare bits": (60, (1000, 4, [0.98, 0.02]), {"missing": 0.2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("corner", CORNERS)
def test_independent_columns_have_no_edges(corner):
    n, arguments, *options = CORNERS[corner]
    with warnings.catch_warnings(action="ignore"):  # of what does not converge
        found = [results(table(*arguments, seed, **dict(*options))) for seed in range(n)]
    p, *adjusted = (np.array(part) for part in zip(*found, strict=True))
    assert np.isfinite(p).mean() >= 0.9
    raw = np.nanmean(p < 0.05, axis=1)
    # One in 10,000 means of the tables is that much above the share.
    assert raw.mean() <= SHARE + 3.72 * raw.std(ddof=1) / np.sqrt(n)
    for edges in adjusted:
        assert edges.any(axis=1).sum() <= at_most(n)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_columns_two_links_apart_have_no_edge(missing):
    """They depend on each other through the one between, which may be missing."""
    X = [table(4000, 4, [0.5, 0.5], seed, missing=missing, links=0.6) for seed in range(60)]
    is_link = np.array([True, False, False, True, False, True])
    found = np.array([results(one)[2] for one in X])
    assert found[:, is_link].all()
    share = (found & ~is_link).sum(axis=1) / found.sum(axis=1)
    assert share.mean() <= SHARE + 3.72 * share.std(ddof=1) / np.sqrt(len(X))


@pytest.mark.slow
def test_a_few_missing_cells_add_no_edges():
    """17 items of five levels, 362 rows, 22 cells missing: there were 33 pairs with p < .05."""
    rng = np.random.default_rng(0)
    X = rng.integers(5, size=(362, 17)).astype(float)
    complete = results(X)[0]
    X.flat[rng.choice(X.size, 22, replace=False)] = np.nan
    p, holm, _ = results(X)
    # Of 136 pairs, .06 are 8; more than 20 have a probability of 1e-4.
    assert np.sum(p < 0.05) <= binom.isf(ALARM, len(p), SHARE) and not holm.any()
    assert np.corrcoef(p, complete)[0, 1] > 0.9


@pytest.mark.slow
def test_five_per_cent_of_missing_cells_cost_a_tenth_of_the_power():
    """The edges found with gaps are those of the complete rows, less at most a tenth.

    Of the same tables, of which 900 pairs have an edge: the share is known to .02.
    """
    found = [
        np.mean([results(table(500, 6, [0.7, 0.3], seed, links=0.17, missing=missing))[2]
                 [[0, 5, 9, 12, 14]] for seed in range(180)])
        for missing in (0.0, 0.05)
    ]  # fmt: skip
    assert 0.3 < found[0] < 0.95
    assert found[1] >= 0.9 * found[0] - 0.06


def test_pairs_of_few_rows_have_a_reason_and_no_p_value():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(60, 12)).astype(float)
    X[:45, 3] = X[15:, 7] = np.nan  # no row has both, and 15 have each
    model = FVBMPseudoLikelihood(missing="observed", alpha=0.1).fit(X)
    with pytest.warns(UserWarning, match="21 of 66 pairs of columns have too few rows"):
        result = statistics.inference(model, X)
    few = np.zeros((12, 12), dtype=bool)
    few[[3, 7]] = few[:, [3, 7]] = True
    np.fill_diagonal(few, False)
    assert_array_equal(result.reasons != "", few)
    assert_array_equal(np.isnan(result.pair_p_value()), few | np.eye(12, dtype=bool))
    assert "too few rows: 15, and 36 are needed, 3 for each of 12 free" in result.reasons[3, 0]
