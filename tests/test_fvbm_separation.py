"""Parameters that the data separate have no standard error, and spoil no other; tests of pairs."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import assert_share, fit, parameter_index
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import separated_parameters
from scipy.stats import binom, chi2, chi2_contingency, hypergeom, nchypergeom_fisher
from sklearn.exceptions import ConvergenceWarning

from private import Mixed, Profile, Side, _separation, levels_of
from sklearn_boltz import MaximumEntropy, statistics
from sklearn_boltz.inspection import CouplingDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RATES = [0.12, 0.12, 0.5]
LEVELS = [0.4, 0.3, 0.2, 0.1]
GREY = [0.8, 0.8, 0.8, 1.0]


def bits(n=120, seed=0):
    """Independent bits without a row that has both rare ones."""
    X = (np.random.default_rng(seed).random((n, 3)) < RATES).astype(int)
    X[X[:, :2].all(axis=1), 0] = 0
    return X


def levels(seed=0):
    """Independent columns, of which the last two have an empty cell."""
    X = np.random.default_rng(seed).choice(4, p=LEVELS, size=(300, 3))
    X[(X[:, 1] == 3) & (X[:, 2] == 3), 1] = 0
    return X


@settings(max_examples=cases(20))
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]), st.booleans())
def test_separated_are_those_of_a_linear_program_over_all_cells(seed, q, has_gaps):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(15, 40)), 3
    X = rng.choice(q, p=rng.dirichlet(np.full(q, 2.0)), size=(n, d)).astype(float)
    X[:q] = np.arange(q)[:, None]  # all values occur
    if rng.random() < 0.3:
        X[:, 2] = np.where(rng.random(n) < rng.choice([0.0, 0.5]), X[:, 2], X[:, 0])
    if has_gaps:
        X[q:][rng.random((n - q, d)) < 0.1] = np.nan
    model = fit(X, missing="observed", columns=range(q))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There are .* rows")
        result = statistics.inference(model, X)
    expected = separated_parameters(X, q)
    if q == 2:
        _, a, _, b = parameter_index([2] * d)
        expected = expected[(a == 0) & (b <= 0)]
    assert_array_equal(result.separated, expected)
    assert_array_equal(np.isnan(result.std_err), expected)


@pytest.mark.parametrize("q", [2, 3])
def test_a_column_that_two_others_determine_together(q):
    """No cell of a pair is empty; EM completes rows so that they still determine it."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0], size=(400, 5))
    X[:, 3] = X[:, :3].sum(axis=1) > 1  # the majority
    X[:, 4] = rng.choice(q, size=400)  # two values or three
    columns = [range(2)] * 4 + [range(q)]
    result = statistics.inference(fit(X, columns=columns), X)
    first, second = result.columns
    assert result.separated[(first < 3) & (second == 3)].all()
    assert not result.separated[second == 4].any()
    X[rng.random(X.shape) < 0.1] = np.nan
    completed = statistics.inference(fit(X, columns=columns), X)
    assert_array_equal(completed.separated, result.separated)
    assert_array_equal(np.isnan(completed.std_err), result.separated)


@pytest.mark.parametrize("q", [2, 3])
def test_an_empty_cell_beside_gaps_has_a_maximum_without_completions(q):
    """Rows that have one of both cells bound the intercepts."""
    X = np.random.default_rng(0).choice(q, size=(200, 3)).astype(float)
    X[(X[:, :2] == 1).all(axis=1), 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = fit(X, missing="observed", columns=range(q))
    assert not statistics.inference(model, X).separated.any()


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, [1, 1, 0, 1, 0, 0]), (0.01, [0, 0, 0, 1])])
@pytest.mark.parametrize("params", [{}, {"kind": MaximumEntropy}, {"missing": "em"}],
                         ids=["complete", "likelihood", "em"])  # fmt: skip
def test_empty_cells_of_all_objectives(params, alpha, expected):
    """With a penalty, the coupling alone has no error."""
    X = bits(400).astype(float)
    if "missing" in params:
        X[:20, 2] = np.nan
    result = statistics.inference(fit(X, alpha=alpha, **params), X)
    assert_array_equal(result.separated, np.resize(expected + [0, 0], 6))
    assert_array_equal(np.isnan(result.std_err), result.separated)


def test_directions_that_differ_by_rounding_are_one():
    """Of completed rows, an empty pair is found twice; all parameters were separated."""
    direction = np.array([[1.0], [1.0], [0.0], [1.0]]) / np.sqrt(3)
    twice = np.hstack([direction, direction + 1e-13 * np.eye(4, 1)])
    assert _separation.span_of(twice).shape == (4, 1)


@pytest.mark.parametrize(("rows", "spanned"), [
    ([[1, 0, 0], [0, 1, 0], [0, -1, 0]], [1, 0, 1]), ([[0, 0, 0]], [0, 0, 0]),
    (np.vstack([np.eye(3), -np.eye(3)]), [0, 0, 0]),
])  # fmt: skip
def test_the_span_of_a_cone(rows, spanned):
    """x >= 0 with y = 0, and where nothing gains or each direction loses."""
    found = _separation.cone_span(np.eye(3), lambda x: rows @ x, np.arange(3), np.zeros(3))
    assert_allclose(found @ found.T, np.diag(spanned), atol=1e-9)


@pytest.mark.parametrize(
    ("alpha", "gaps", "missing"), [(0.0, 0, "em"), (0.0, 0.05, "em"), (0.01, 0.05, "observed")]
)
def test_columns_with_rare_values_are_found_independent(alpha, gaps, missing):
    """Of 60 tests of pairs, 11 and more are below .05 in 2 of 10,000 runs.

    Wald tests of all couplings of the pairs with an empty cell, a third, would nearly all reject.
    """
    rng, p_values = np.random.default_rng(0), []
    for _ in range(10):
        X = rng.choice(4, size=(400, 4), p=[0.07, 0.13, 0.3, 0.5]).astype(float)
        X[rng.random(X.shape) < gaps] = np.nan
        model = fit(X, alpha=alpha, missing=missing)
        p_values.append(statistics.inference(model, X).pair_p_value()[np.triu_indices(4, 1)])
    p_values = np.concatenate(p_values)
    assert np.isfinite(p_values).all()
    assert (p_values < 0.05).sum() <= 10


@pytest.mark.parametrize("gaps", [0, 1], ids=["in another column", "in a column of the pair"])
def test_em_of_categories(gaps):
    X = levels().astype(float)
    X[:10, gaps] = np.nan
    result = statistics.inference(fit(X), X)
    i, j = result.columns
    assert_array_equal(result.separated, ((i != j) & (i > 0)) | ((i == j) & (i > 0)))


def test_a_pair_of_bits(monkeypatch):
    """Other parameters are as in the limit, and nothing is left of the pair with an empty cell."""
    X = bits()
    model = fit(X)
    result, exact = statistics.inference(model, X), statistics.inference(fit(X, tol=1e-9), X)
    known = ~result.separated
    assert_allclose(result.std_err[known], exact.std_err[known], rtol=1e-3)
    assert_allclose(result.estimate[known], exact.estimate[known], atol=1e-3)
    test, p_value = result.wald_test([("x0", "x1")]), result.pair_p_value()
    assert np.isnan(test.p_value) and np.isnan(test.statistic) and test.df == 0
    assert np.isfinite(p_value[np.triu_indices(3, 1)]).all()
    assert result.reasons[0, 1] == "empty cell: exact test" and result.reasons[0, 2] == ""
    # In the limit each row with one rare bit determines the other: its term is 1.
    trace = (statistics.aic(model, X) + 2 * model.log_pseudo_likelihood(X).sum()) / 2
    assert 0 < trace < 2 * known.sum() + 1
    without_both, without_another = (fit(X, edges=[pair, (1, 2)]) for pair in ((0, 2), (0, 1)))
    ratio = statistics.likelihood_ratio(model, X, without_both)
    assert np.isnan(ratio.p_value) and ratio.statistic > 0
    assert 0 < statistics.likelihood_ratio(model, X, without_another).p_value < 1
    # A pair that may not be connected separates nothing.
    apart = statistics.inference(without_both, X)
    assert not apart.separated.any() and np.isfinite(apart.std_err[[0, 1, 2, 4, 5]]).all()
    # Too large a program is not solved.
    monkeypatch.setattr(_separation, "MOST_ENTRIES", 0)
    monkeypatch.setattr(_separation, "positive_rows", None)
    assert_array_equal(statistics.inference(fit(X), X).separated, [1, 1, 0, 1, 0, 0])


def test_tables_and_tests():
    X = levels()
    result = statistics.inference(fit(X), X)
    i, j = result.columns
    of_pair = (i == 1) & (j == 2)
    for values in (result.std_err, result.z, result.p_value, result.ci_low, result.ci_high):
        assert np.isnan(values[of_pair]).all()
        assert np.isfinite(values[(i == 0) & (i != j)]).all()
    frame = result.to_frame()
    assert np.isfinite(frame[["df", "statistic", "p_value", "adjusted_p_value"]]).all(axis=None)
    assert frame["note"].tolist() == ["", "", "separated: score test or likelihood ratio"]
    assert "score test" in str(result)
    name = result.names[of_pair][0]
    assert np.isnan(result.contrast({name: 1.0}).p_value).all()
    assert np.isnan(result.wald_test(name).p_value) and result.wald_test(name).df == 0


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_what_is_left_of_a_pair_with_an_empty_cell(gaps):
    """However far the fit has gone towards infinity."""
    X = levels().astype(float)
    X[np.random.default_rng(0).random(X.shape) < gaps] = np.nan
    result = statistics.inference(fit(X), X)
    test = result.wald_test([("x1", "x2")])
    assert test.df == 8 and 0.05 < test.p_value < 1
    further = replace(result, estimate=result.estimate + result.directions @ [5.0])
    assert_allclose(further.wald_test([("x1", "x2")]).statistic, test.statistic, rtol=1e-6)
    ones = [f"m[x1={a},x2={b}]" for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    odds = result.contrast(dict(zip(ones, [1, -1, -1, 1], strict=True)))  # without the empty cell
    assert f"{odds.estimate[0]:.4f}" in str(odds)
    assert np.isfinite(odds.p_value).all() and result.wald_test(ones).df == 3


def four_fold(*counts):
    """Rows of two bits, and how often each occurs."""
    return np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array(counts, dtype=float)


@pytest.mark.parametrize(
    "counts", [(190, 4, 4, 0), (52, 202, 418, 0), (150, 30, 20, 0), (30, 0, 12, 9), (9, 50, 0, 20)]
)
def test_the_empty_cell_of_two_bits_is_that_of_fisher(counts):
    """With the bound at which Fisher's noncentral distribution has it with a chance of 2.5 %."""
    rows, weights = four_fold(*counts)
    X = np.repeat(rows, weights.astype(int), axis=0)
    (row,) = statistics.inference(fit(X), X).to_frame().itertuples()
    a, b = rows[counts.index(0)]
    n, ones, others = len(X), (X[:, 0] == a).sum(), (X[:, 1] == b).sum()
    assert_allclose(row.p_value, min(1, 2 * hypergeom.pmf(0, n, ones, others)), rtol=5e-3)
    bound, other = (row.ci_high, row.ci_low) if a == b else (-row.ci_low, -row.ci_high)
    assert other == -np.inf
    odds = np.exp(4 * bound)
    assert_allclose(nchypergeom_fisher.pmf(0, n, ones, others, odds), 0.025, rtol=0.1)


@settings(max_examples=cases(10))
@given(st.integers(0, 2**32 - 1))
def test_the_chance_of_an_empty_cell_by_enumeration(seed):
    """Given the sums of a column and of its products with a third one, for all 4,096 columns.

    With 12 rows the approximation is at most 29 % off in 1,500 tables.
    """
    rng = np.random.default_rng(seed)
    n = 12
    z, t = rng.integers(2, size=n), rng.random(n) < 0.4
    y = (rng.random(n) < 0.5) & ~t
    every = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    same = (every.sum(axis=1) == y.sum()) & (every @ z == y @ z)
    expected = (same & (every @ t == 0)).sum() / same.sum()
    side = Side.of(np.column_stack([np.ones(n), z]), y, t, np.ones(n))
    assert_allclose(np.exp(side.log_probability(side.null)), expected, rtol=0.35)


@pytest.mark.parametrize("q", [2, 3, 4])
def test_without_other_columns_the_test_is_pearsons_or_the_likelihood_ratio(q):
    """By N - 1, as residuals vary less than what they estimate."""
    rng = np.random.default_rng(q)
    X = rng.choice(q, size=(60, 2), p=rng.dirichlet(np.full(q, 3.0)))
    profile = rows_of(X)
    table = np.zeros((q, q))
    np.add.at(table, tuple(X.T), 1)
    pearson, ratio = (chi2_contingency(table, False, name)[0] for name in (None, "log-likelihood"))
    jointly, lesser = (profile.score_test(0, 1, jointly=one) for one in (True, False))
    assert_allclose(jointly.statistic, pearson * (1 - 1 / 60), rtol=6e-3, atol=1e-6)
    assert_allclose(lesser.statistic, min(pearson, ratio) * (1 - 1 / 60), rtol=6e-3, atol=1e-6)
    assert jointly.df == lesser.df == (q - 1) ** 2
    assert_allclose(lesser.p_value, chi2.sf(lesser.statistic, lesser.df))


def rows_of(X):
    """Complete rows of nominal columns, for tests by regressions."""
    known = np.ones(X.shape, dtype=bool)
    columns = [levels_of(codes, known[:, 0], False) for codes in X.T]
    every = np.ones((X.shape[1],) * 2, dtype=bool)
    return Profile(Mixed(columns, np.ones(len(X)), every), known, np.arange(X.shape[1]))


def test_a_pair_that_others_explain_is_not_found_by_an_empty_cell():
    """Both bits follow a third column; given it they are independent, and no row has both."""
    rng, p_values = np.random.default_rng(0), []
    for _ in range(100):
        kind = rng.integers(2, size=150)
        rates = np.where(kind[:, None] == [0, 1], 0.3, 0.03)
        X = np.column_stack([rng.random((150, 2)) < rates, kind]).astype(int)
        result = statistics.inference(fit(X), X)
        p_values.append(result.pair_p_value()[0, 1])
    assert_share(np.mean(np.array(p_values) < 0.05), 100, 0.03, 1e-4)


def test_strong_pairs_with_empty_cells_are_found():
    """They had no p value; and what a column that others determine says does not count."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    place = np.where(kind == 0, rng.integers(3, size=300), kind)  # four of nine cells are empty
    X = np.column_stack([kind, place, rng.integers(2, size=300)])
    p_value = statistics.inference(fit(X), X).pair_p_value()
    assert p_value[0, 1] < 1e-20 and min(p_value[:2, 2]) > 1e-3
    again = np.column_stack([X, kind])  # determines the first, and is as good
    assert statistics.inference(fit(again), again).pair_p_value()[0, 3] < 1e-20


def test_bootstrap():
    X = bits()
    with pytest.warns(UserWarning, match="did not converge"):
        result = statistics.bootstrap(fit(X), X, 20, random_state=0)
    assert_array_equal(result.separated, [1, 1, 0, 1, 0, 0])
    for values in (result.std_err, *result.interval(), *result.interval("percentile")):
        assert_array_equal(np.isnan(values), result.separated)


def test_pictures():
    """A pair with an empty cell is there like others; one without a test is grey, or counted."""
    X = np.column_stack([bits(300), np.ones(300, dtype=int)])
    X[:, 1] = np.where(X[:, 2] == 1, 0, X[:, 1] | (np.arange(300) % 3 == 0))
    model = fit(X, alpha="auto")
    heatmap = CouplingDisplay.from_estimator(model, X)
    shown = heatmap.ax_.collections
    grey = [len(c.get_paths()) for c in shown if c.get_facecolor().tolist() == [GREY]]
    assert grey == [6] == [heatmap.untested.sum()] and "grey: no test" in heatmap.ax_.get_title()
    graph = CouplingDisplay.from_estimator(model, X, kind="graph", layout="circle")
    assert graph.ax_.get_title().startswith("3 without an edge: no test")
    assert [1, 2] in graph.pairs_.tolist()
    assert CouplingDisplay.from_estimator(model).ax_.get_title() == ""


@pytest.mark.parametrize(
    ("n_tables", "n_rows", "chances"),
    [(40, 300, [LEVELS] * 3), (80, 120, [[1 - p, p] for p in RATES]),
     (40, 200, [[0.98, 0.02]] * 3), (40, 200, [[0.9, 0.06, 0.02, 0.02]] * 3)],
    ids=["levels", "bits", "rare bits", "rare levels"],
)  # fmt: skip
def test_size_of_the_test_of_a_pair(n_tables, n_rows, chances):
    """At most the .064 that is .02 above Pearson's test; false alarm below 1e-3 at that size."""
    rng, rejected, n_empty = np.random.default_rng(0), 0, 0
    for _ in range(n_tables):
        X = np.column_stack([rng.choice(len(p), size=n_rows, p=p) for p in chances])
        result = statistics.inference(fit(X), X)
        rejected += result.pair_p_value()[0, 1] < 0.05
        n_empty += result.separated[(result.columns == [[0], [1]]).all(axis=0)].any()
    assert n_empty > 0.04 * n_tables
    assert rejected <= binom.isf(1e-3, n_tables, 0.064)
