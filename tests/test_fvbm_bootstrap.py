"""Resampled networks: bootstrap, stability selection, refits on a split, comparison of groups."""

from itertools import combinations

import networks
import numpy as np
import pandas as pd
import pytest
from networks import assert_share, draw, fit, items
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

from private import NetworkBootstrap, SpinModel
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.statistics import compare_groups, stability_selection


def chain(d, strength):
    """A network of neighbours, of equal couplings."""
    return SpinModel(strength * networks.chain(d), np.zeros(d))


X = draw(chain(5, 0.4), 300)
L1 = SparseFVBM(penalty="l1")
few_or_many_sets = pytest.mark.parametrize("n_sets", [6, pytest.param(40, marks=pytest.mark.slow)])


@pytest.mark.parametrize(
    ("method", "params"),
    [("parametric", {"alpha": 0.05}), ("nonparametric", {"penalty": "l1", "alpha": "ebic"})],
)  # fmt: skip
def test_more_resamples_are_as_if_asked_for_at_once(method, params):
    model = fit(X, **params)
    options = {"method": method, "random_state": 3}
    at_once = statistics.bootstrap(model, X, 4, **options)
    first = statistics.bootstrap(model, X, 2, **options)
    both = statistics.bootstrap(model, X, 2, method=method, previous=first, random_state=99)
    assert_array_equal(both.resamples, at_once.resamples)
    assert both.resamples.shape == (4, 15) and len(np.unique(both.resamples[:, 0])) > 1


def test_two_jobs_and_single_resamples():
    model = fit(X)
    one, two = (statistics.bootstrap(model, X, 4, n_jobs=n, random_state=0) for n in (1, 2))
    assert_array_equal(one.resamples, two.resamples)
    single = statistics.bootstrap(model, X, 1, random_state=0)
    assert (statistics.bootstrap(model, X, 1, previous=single).std_err > 0).all()
    assert repr(single) == "NetworkBootstrap of 15 parameters, 1 resamples"


@pytest.mark.parametrize(
    "params", [{}, {"penalty": "l1", "alpha": "ebic", "nodewise": "and"},
               {"penalty": "l1", "alpha": "cv"}],
)  # fmt: skip
def test_a_resample_is_a_fit_of_drawn_rows(params):
    """Which chooses the penalty anew, if it is to be chosen."""
    w, alphas = np.arange(len(X)) % 3, []
    model = fit(X, w, tol=1e-10, **params)
    result = statistics.bootstrap(model, X, 2, sample_weight=w, random_state=0)
    kept = w > 0
    for k in range(2):
        generator = np.random.default_rng([result.seed, k])
        counts = generator.multinomial(w.sum(), w[kept] / w.sum())
        drawn, weights = np.repeat(X[kept], counts, axis=0), None
        if params.get("alpha") == "cv":  # Equal rows are in the same fold.
            drawn, weights = X[kept][counts > 0], counts[counts > 0]
        again = fit(drawn, weights, tol=1e-10, **params)
        assert_allclose(result.couplings[k], again.coupling_, atol=1e-6)
        alphas.append(again.alpha_)
    assert not params or len(np.unique(alphas)) > 1


def test_a_penalty_may_be_kept():
    model = fit(X, penalty="l1", alpha="ebic")
    kept = statistics.bootstrap(model, X, 3, reselect=False, random_state=0)
    number = fit(X, penalty="l1", alpha=model.alpha_)
    expected = statistics.bootstrap(number, X, 3, random_state=0)
    assert_allclose(kept.resamples, expected.resamples, atol=1e-5)


def mixed(n=300, seed=0):
    """Two numbers and two words; the first number depends on one word, the second on both."""
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"yes": rng.choice(["no", "yes"], n), "of three": rng.choice(list("abc"), n)})
    x["one"] = rng.normal(size=n) + (x["yes"] == "yes")
    x["two"] = 0.75 * x["one"] + rng.normal(size=n) + (x["of three"] == "a")
    return x[["yes", "one", "of three", "two"]]


SCORED = {"one": "number", "two": "number"}


@pytest.mark.parametrize(
    ("rows", "params", "n_resamples", "atol"),
    [
        (draw(chain(3, 0.4), 3000, seed=1), {"alpha": 0.0}, 400, 6 / np.sqrt(800) + 0.02),
        (items(400, 3), {"columns": "ordinal"}, 60, 0.45),
        (mixed(), {"columns": SCORED}, 60, 0.4),
    ],
    ids=["bits", "levels", "numbers and words"],
)  # fmt: skip
def test_bootstrap_errors_are_those_of_the_sandwich(rows, params, n_resamples, atol):
    """The spread of 400 resamples has a standard error of 3.5 %, and 6 of them are allowed.

    That of 60 has one of 9 %: with 4.5 times that, one run in 5,000 fails.
    """
    model = FVBMPseudoLikelihood(**params).fit(rows)
    inference = statistics.inference(model, rows)
    resampled = statistics.bootstrap(model, rows, n_resamples, random_state=0)
    assert_array_equal(resampled.names, inference.names)
    # Numbers are bootstrapped by the model's scores, and tested by their own normal scores.
    assert_allclose(
        resampled.estimate, inference.estimate, atol=0.03 if params == {"columns": SCORED} else 1e-8
    )
    known = inference.std_err > 0
    assert_allclose((resampled.std_err / inference.std_err)[known], 1, atol=atol)
    if params == {"columns": SCORED}:
        assert resampled.edge_frequency[-1, 0] == 1
        graph = statistics.to_networkx(model, resampled)
        assert graph.edges["one", "two"]["frequency"] == 1


@few_or_many_sets
def test_bootstrap_intervals_cover(n_sets):
    """Those of 3 couplings at 90 %; as if a data set had a single one, a false alarm has 1e-5."""
    truth, covered = chain(3, 0.4), {"bias-corrected": [], "percentile": []}
    for seed in range(n_sets):
        rows = draw(truth, 400, seed)
        result = statistics.bootstrap(fit(rows), rows, 60, confidence_level=0.9, random_state=seed)
        for method, shares in covered.items():
            low, high = (result.coupling_matrix(end) for end in result.interval(method))
            inside = (low < truth.coupling) & (truth.coupling < high)
            shares.append(inside[np.triu_indices(3, 1)].mean())
    for shares in covered.values():
        assert_share(np.mean(shares), n_sets, 0.9, 1e-5)


def of_one_intercept(resamples, estimate=0.0):
    return NetworkBootstrap(
        np.array([estimate]), resamples[:, None], np.ones(len(resamples), dtype=bool),
        np.zeros(1, dtype=bool), np.array(["b[x0]"]), 0.95, None, 0, "",
    )  # fmt: skip


def test_bias_is_taken_out_of_intervals():
    """Of normal resamples that are too high by .5, so is the estimate. Ties are no bias."""
    n = 20_000
    result = of_one_intercept(norm.ppf((np.arange(n) + 0.5) / n) + 0.5)
    assert_allclose(np.ravel(result.interval()), [-0.5 - 1.96, -0.5 + 1.96], atol=0.01)
    assert_allclose(np.ravel(result.interval("percentile")), [0.5 - 1.96, 0.5 + 1.96], atol=0.01)
    result = of_one_intercept(np.repeat([-2.0, -1.0, 0.0, 1.0, 2.0], [10, 90, 200, 90, 10]))
    assert_allclose(result.interval(), result.interval("percentile"))
    assert of_one_intercept(np.array([1.0, 4.0])).std_err == pytest.approx([3 / np.sqrt(2)])


def test_edge_frequencies():
    table = pd.DataFrame(X, columns=list("abcde"))
    model = fit(table, penalty="l1", alpha=0.1)
    result = statistics.bootstrap(model, table, 20, random_state=0)
    edges = statistics.to_networkx(model, result).edges
    assert edges["a", "b"]["frequency"] == result.edge_frequency[0, 1]
    assert_allclose(result.edge_frequency, (result.couplings != 0).mean(axis=0))
    assert result.edge_frequency[0, 1] == 1 > result.edge_frequency[0, 4]
    frame = result.to_frame()
    assert frame.loc["m[a,b]", "edge_frequency"] == 1 and len(frame) == 10
    assert (frame["ci_low"] <= frame["ci_high"]).all()
    unseen = ~result.resamples.any(axis=0)
    assert not any(end[unseen].any() for end in result.interval())


@pytest.mark.parametrize("method", ["nonparametric", "parametric"])
def test_bootstrap_with_missing_cells(method):
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    result = statistics.bootstrap(fit(rows, alpha=0.01), rows, 3, method=method, random_state=0)
    assert np.isfinite(result.resamples).all() and (result.std_err > 0).all()


def test_bins_keep_their_penalty():
    """Without one, couplings of values that hardly ever meet are some 10, and so are errors."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3)) + 0.5 * rng.normal(size=(300, 1))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    model = FVBMPseudoLikelihood().fit(rows)
    result = statistics.bootstrap(model, rows, 2, random_state=0)
    assert_array_equal(np.nan_to_num(result.coupling_matrix(result.estimate)), model.coupling_)
    assert result.converged.all() and 0 < result.std_err.min() and result.std_err.max() < 2
    graph = statistics.to_networkx(model, result)
    assert all(frequency == 1 for *_, frequency in graph.edges(data="frequency"))
    assert graph.number_of_edges() == 3


@pytest.mark.filterwarnings("error")
def test_what_is_said_of_all_rows_is_not_said_of_each_resample():
    with pytest.warns(UserWarning, match="alpha='ebic' has selected no pair"):
        empty = SparseFVBM(ebic_gamma=20).fit(X)
    assert not statistics.bootstrap(empty, X, 3, random_state=0).edge_frequency.any()


def test_resamples_without_a_maximum_are_told():
    rows = [[1, 1, -1], [-1, -1, 1], [1, 1, 1], [-1, -1, -1], [1, -1, 1], [-1, 1, 1]]
    rows = np.tile(rows, (3, 1))
    with pytest.warns(UserWarning, match="of 20 resamples did not converge") as caught:
        result = statistics.bootstrap(fit(rows), rows, 20, random_state=0)
    assert caught[-1].filename == __file__
    assert not result.converged.all() and np.isfinite(result.resamples).all()


def test_a_split_estimates_the_pairs_that_the_other_rows_select():
    w, first = 1 + np.arange(300) % 3, np.arange(300) % 2 == 0
    sparse = SparseFVBM(penalty="l1", alpha=0.08)
    result = statistics.inference(sparse, X, sample_weight=w, split=first)
    edges = fit(X[first], w[first], penalty="l1", alpha=0.08).coupling_ != 0
    plain = fit(X[~first], w[~first], edges=edges)
    plain = statistics.inference(plain, X[~first], sample_weight=w[~first])
    assert_array_equal(result.estimate, plain.estimate)
    assert_array_equal(result.std_err, plain.std_err)
    assert_array_equal(np.isfinite(result.std_err[5:]), edges[np.triu_indices(5, 1)])
    assert not edges.all() and not hasattr(sparse, "coupling_")


@pytest.mark.parametrize("n_sets", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_after_a_split_cover(n_sets):
    """Of a chain of 8 columns and 600 rows, half of which select by the BIC: 2 false pairs in 9.

    Intervals of the selected couplings cover in 95 %, and of those without a coupling 5 % are
    significant. As if a data set had a single coupling, a false alarm has the probability 4e-6.
    """
    truth, inside, false = chain(8, 0.4), [], []
    true = truth.coupling[np.triu_indices(8, 1)]
    for seed in range(n_sets):
        result = statistics.inference(
            SparseFVBM(ebic_gamma=0), draw(truth, 600, seed), split=0.5, random_state=seed
        )
        low, high, p_value = (x[8:] for x in (result.ci_low, result.ci_high, result.p_value))
        selected = np.isfinite(p_value)
        assert selected[true > 0].all()
        inside.append(((low < true) & (true < high))[selected].mean())
        if selected[true == 0].any():
            false.append((p_value[selected & (true == 0)] < 0.05).mean())
    for shares, level in ((inside, 0.95), (false, 0.05)):
        assert_share(np.mean(shares), len(shares), level, 2e-6)


def test_stability_selection_finds_the_chain():
    rows, options = draw(chain(8, 0.5), 400), {"n_pairs": 8, "max_false": 5, "random_state": 0}
    found = stability_selection(L1, rows, **options)
    assert found.max_edges == int(np.sqrt(0.5 * 28 * 5)) and found.max_false <= 5
    assert_array_equal(found.selected, chain(8, 1).coupling > 0)
    assert (np.diff(found.path, axis=0) >= 0).all()
    assert np.triu(found.probability, 1).sum() <= found.max_edges
    twice = np.full(60, 2)
    found = stability_selection(L1, X[:60], sample_weight=twice, n_pairs=3, random_state=0)
    assert found.to_frame().shape == (10, 2)


def test_stability_selection_keeps_its_bound():
    """The bound is 1 false pair; the mean is below 0.3 with a standard error below 0.2."""
    rng, counts = np.random.default_rng(0), []
    for rows in rng.choice([-1, 1], size=(10, 100, 6)):
        found = stability_selection(L1, rows, n_pairs=5, threshold=0.8, random_state=rng)
        counts.append(np.triu(found.selected, 1).sum())
    assert np.mean(counts) <= 1


def test_exact_comparison_of_tiny_groups():
    """All 20 divisions of six rows, one by one."""
    rows = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    groups = np.array(["a", "b", "a", "b", "b", "a"])
    model = FVBMPseudoLikelihood(alpha=0.5)

    def of(chosen):
        first = np.isin(np.arange(6), chosen)
        parts = first.astype(float), 1.0 - first
        one, other = (model.fit(rows, sample_weight=part).coupling_ for part in parts)
        return one - other, abs(np.abs(np.triu(one)).sum() - np.abs(np.triu(other)).sum())

    here, strength = of([0, 2, 5])
    every = [of(chosen) for chosen in combinations(range(6), 3)]
    differences, strengths = (np.array(part) for part in zip(*every, strict=True))
    largest = np.abs(differences).max(axis=(1, 2))
    with pytest.warns(UserWarning, match="constant in the group a: column 1. .* Leave these"):
        result = compare_groups(model, rows, groups, 19, adjust="max")
    assert result.is_exact and result.n_permutations == 20
    assert "all 20 permutations" in repr(result)
    assert_allclose(result.difference, here, atol=1e-5)
    off = ~np.eye(3, dtype=bool)
    expected = (np.abs(differences) >= np.abs(here) - 1e-6).mean(axis=0)
    assert_allclose(result.p_value[off], expected[off])
    assert result.max_difference_p_value == (largest >= np.abs(here).max() - 1e-6).mean()
    assert result.strength_p_value == (strengths >= strength - 1e-6).mean()
    # Each difference beside the largest one of each division.
    expected = (largest[:, None, None] >= np.abs(here) - 1e-6).mean(axis=0)
    assert_allclose(result.adjusted_p_value[off], expected[off])


@few_or_many_sets
def test_p_values_of_equal_groups_are_uniform(n_sets):
    """As each p value is valid, a false alarm has the probability 1e-6."""
    small, groups, model = np.zeros(3), np.arange(60) % 2, FVBMPseudoLikelihood(alpha=0.1)
    for seed in range(n_sets):
        rows = draw(chain(3, 0.4), 60, seed)
        result = compare_groups(model, rows, groups, 19, random_state=seed, adjust="max")
        small += [result.max_difference_p_value <= 0.05, result.strength_p_value <= 0.05,
                  np.nanmin(result.adjusted_p_value) <= 0.05]  # fmt: skip
    assert (small <= binom.isf(1e-6, n_sets, 0.05)).all()


def test_groups_that_differ():
    rows = np.concatenate([draw(chain(4, 0.0), 200, 0), draw(chain(4, 0.6), 200, 1)])
    table, groups = pd.DataFrame(rows, columns=list("abcd")), np.repeat([2, 7], 200)
    model = SparseFVBM(penalty="l1", alpha=0.05)
    result = compare_groups(model, table, groups, 39, random_state=0, adjust="max")
    assert result.max_difference_p_value == result.strength_p_value == 0.025
    assert result.strength[1] > result.strength[0] and result.difference[0, 1] < 0
    frame = result.to_frame()
    assert frame.loc[("a", "b"), "adjusted_p_value"] == 0.025
    assert_allclose(frame["coupling[2]"] - frame["coupling[7]"], frame["difference"])
    assert frame.loc[("a", "d"), "p_value"] > 0.025
    assert "GroupComparison of 2 and 7, 39 permutations and the groups as they are" in repr(result)
