"""Resampled networks: bootstrap, stability selection, refits on a split, comparison of groups."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

from private import NetworkBootstrap, SpinModel, quantiles
from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible import compare_groups, stability_selection


def chain(d, strength):
    """A network of neighbours, of equal couplings."""
    coupling = np.zeros((d, d))
    i = np.arange(d - 1)
    coupling[i, i + 1] = coupling[i + 1, i] = strength
    return SpinModel(coupling, np.zeros(d))


def draw(model, n, rng):
    """Rows of -1 and 1."""
    return 2 * model.sample(n, rng, 100).astype(int) - 1


X = draw(chain(5, 0.4), 300, np.random.default_rng(0))


# The bootstrap.


@pytest.mark.parametrize("method", ["nonparametric", "parametric"])
@pytest.mark.parametrize(
    "params",
    [{}, {"alpha": 0.05}, {"penalty": "l1", "alpha": 0.05}, {"penalty": "l1", "alpha": "ebic"}],
)
def test_more_resamples_are_as_if_asked_for_at_once(method, params):
    model = FVBMPseudoLikelihood(**params).fit(X)
    options = {"method": method, "random_state": 3}
    at_once = model.bootstrap(X, 7, **options)
    first = model.bootstrap(X, 3, **options)
    both = model.bootstrap(X, 4, method=method, previous=first, random_state=99)
    assert_array_equal(both.resamples, at_once.resamples)
    assert both.resamples.shape == (7, 15) and len(np.unique(both.resamples[:, 0])) > 1


def test_the_number_of_jobs_does_not_matter():
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    one, two = (model.bootstrap(X, 4, n_jobs=n, random_state=0) for n in (1, 2))
    assert_array_equal(one.resamples, two.resamples)


def test_a_resample_is_a_fit_of_drawn_rows():
    w = np.arange(len(X)) % 3
    model = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X, sample_weight=w)
    result = model.bootstrap(X, 3, sample_weight=w, random_state=0)
    kept = w > 0
    for k in range(3):
        generator = np.random.default_rng([result.seed, k])
        counts = generator.multinomial(w.sum(), w[kept] / w.sum())
        again = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(np.repeat(X[kept], counts, axis=0))
        assert_allclose(result.couplings[k], again.coupling_, atol=1e-6)


def test_previous_must_belong_to_the_same_rows():
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    result = model.bootstrap(X, 2, random_state=0)
    for options in ({"X": X[:-1]}, {"X": X, "method": "parametric"}, {"X": X, "reselect": True}):
        with pytest.raises(ValueError, match="`previous` is of other rows"):
            model.bootstrap(n_resamples=2, previous=result, **options)


def test_bootstrap_errors_are_those_of_the_sandwich():
    """The spread of 400 resamples; its own standard error is 3.5 %, and 6 of them are allowed.

    With 3,000 rows both are within a few per cent of the truth.
    """
    rows = draw(chain(3, 0.4), 3000, np.random.default_rng(1))
    model = FVBMPseudoLikelihood(alpha=0.0).fit(rows)
    ratio = model.bootstrap(rows, 400, random_state=0).std_err / model.inference(rows).std_err
    assert_allclose(ratio, 1, atol=6 / np.sqrt(800) + 0.02)


@pytest.mark.parametrize("method", ["bias-corrected", "percentile"])
def test_bootstrap_intervals_cover(method):
    """Of 40 data sets of 3 intervals at 90 %; as if of 40 single ones, a false alarm has 1e-5."""
    truth, rng, covered = chain(3, 0.4), np.random.default_rng(0), []
    for _ in range(40):
        rows = draw(truth, 400, rng)
        result = FVBMPseudoLikelihood(alpha=0.0).fit(rows).bootstrap(
            rows, 60, confidence_level=0.9, random_state=rng
        )  # fmt: skip
        low, high = (result.coupling_matrix(end) for end in result.interval(method))
        inside = (low < truth.coupling) & (truth.coupling < high)
        covered.append(inside[np.triu_indices(3, 1)].mean())
    low, high = binom.interval(1 - 1e-5, 40, 0.9)
    assert low / 40 <= np.mean(covered) <= high / 40


def of_one_intercept(resamples, estimate=0.0):
    return NetworkBootstrap(
        np.array([estimate]), resamples[:, None], np.ones(len(resamples), dtype=bool),
        np.zeros(1, dtype=bool), np.array(["b[x0]"]), 0.95, None, 0, "",
    )  # fmt: skip


def test_bias_is_taken_out_of_intervals():
    """Where resamples are normal and too high by .5, the estimate is so by as much."""
    n = 20_000
    result = of_one_intercept(norm.ppf((np.arange(n) + 0.5) / n) + 0.5)
    assert_allclose(np.ravel(result.interval()), [-0.5 - 1.96, -0.5 + 1.96], atol=0.01)
    assert_allclose(np.ravel(result.interval("percentile")), [0.5 - 1.96, 0.5 + 1.96], atol=0.01)


def test_the_variance_of_two_resamples_is_half_the_square_of_their_difference():
    assert of_one_intercept(np.array([1.0, 4.0])).std_err == pytest.approx([3 / np.sqrt(2)])


def test_ties_with_the_estimate_are_no_bias():
    """As of couplings that a penalty has set to 0: as many resamples are above as below."""
    result = of_one_intercept(np.repeat([-2.0, -1.0, 0.0, 1.0, 2.0], [10, 90, 200, 90, 10]))
    assert_allclose(result.interval(), result.interval("percentile"))


def test_quantiles_are_those_of_numpy():
    values = np.sort(np.random.default_rng(0).normal(size=(30, 4)), axis=0)
    levels = np.array([0.0, 0.3, 0.77, 1.0])
    expected = [np.quantile(values[:, k], level) for k, level in enumerate(levels)]
    assert_allclose(quantiles(values, levels), expected)


def test_edge_frequencies():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcde"))
    model = FVBMPseudoLikelihood(penalty="l1", alpha=0.1).fit(table)
    result = model.bootstrap(table, 20, random_state=0)
    assert_allclose(result.edge_frequency, (result.couplings != 0).mean(axis=0))
    assert result.edge_frequency[0, 1] == 1 > result.edge_frequency[0, 4]
    frame = result.to_frame()
    assert frame.loc["m[a,b]", "edge_frequency"] == 1 and len(frame) == 10
    assert (frame["ci_low"] <= frame["ci_high"]).all()
    low, high = result.interval()
    unseen = ~result.resamples.any(axis=0)
    assert (low[unseen] == 0).all() and (high[unseen] == 0).all()


def test_edge_frequencies_of_columns_of_categories():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(q, size=400) for q in (2, 3, 4)])
    rows[:, 1] = np.where(rng.random(400) < 0.5, rows[:, 0] + 1, rows[:, 1])
    model = FVBMPseudoLikelihood(penalty="group", alpha="ebic").fit(rows)
    result = model.bootstrap(rows, 10, random_state=0)
    assert result.edge_frequency.shape == (3, 3) and result.edge_frequency[0, 1] == 1
    assert result.edge_frequency[0, 2] < 1
    assert result.couplings.shape == (10, 9, 9)
    again = model.bootstrap(rows, 10, random_state=0, reselect=True)
    assert not np.array_equal(again.resamples, result.resamples)


def test_bootstrap_with_missing_cells():
    rows = X.astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    model = FVBMPseudoLikelihood(alpha=0.01).fit(rows)
    for method in ("nonparametric", "parametric"):
        result = model.bootstrap(rows, 3, method=method, random_state=0)
        assert np.isfinite(result.resamples).all() and (result.std_err > 0).all()


def test_resamples_without_a_maximum_are_told():
    rows = np.array([[1, 1, -1], [-1, -1, 1], [1, 1, 1], [-1, -1, -1], [1, -1, 1], [-1, 1, 1]])
    model = FVBMPseudoLikelihood(alpha=0.0).fit(np.tile(rows, (3, 1)))
    with pytest.warns(UserWarning, match="of 20 resamples did not converge") as caught:
        result = model.bootstrap(np.tile(rows, (3, 1)), 20, random_state=0)
    assert caught[-1].filename == __file__
    assert not result.converged.all() and np.isfinite(result.resamples).all()


def test_by_node_a_chosen_penalty_is_chosen_again():
    model = FVBMPseudoLikelihood(penalty="l1", alpha="ebic", nodewise=True).fit(X)
    with pytest.raises(ValueError, match="Set reselect=True"):
        model.bootstrap(X, 2)
    assert model.bootstrap(X, 2, reselect=True, random_state=0).edge_frequency[0, 1] == 1


# Refits on a split.


def test_no_standard_errors_as_if_nothing_had_been_selected():
    model = FVBMPseudoLikelihood(penalty="l1", alpha="ebic").fit(X)
    with pytest.raises(ValueError, match="inference\\(others, refit=True\\)"):
        model.inference(X)
    with pytest.raises(ValueError, match="selected by these very rows"):
        model.inference(X, refit=True)
    by_node = FVBMPseudoLikelihood(penalty="l1", alpha="ebic", nodewise=True).fit(X)
    with pytest.raises(ValueError, match="nodewise=True"):
        by_node.inference(X)
    for other in (model, by_node):
        rows = draw(chain(5, 0.4), 300, np.random.default_rng(1))
        assert np.isfinite(other.inference(rows, refit=True).std_err[5])


def test_a_refit_is_a_fit_of_the_selected_pairs():
    model = FVBMPseudoLikelihood(penalty="l1", alpha=0.08).fit(X[:150])
    edges = model.coupling_ != 0
    result = model.inference(X[150:], refit=True)
    plain = FVBMPseudoLikelihood(edges=edges).fit(X[150:]).inference(X[150:])
    assert_allclose(result.estimate, plain.estimate)
    assert_allclose(result.std_err, plain.std_err)
    assert_array_equal(np.isfinite(result.std_err[5:]), edges[np.triu_indices(5, 1)])
    assert not edges.all()


def test_refits_on_a_split_are_valid_after_selection():
    """Selected though there is nothing: of independent columns 5 % are significant at 5 %.

    Pairs of one data set are dependent: as if of a single one for each of 60 data sets, a false
    alarm has the probability 1e-6. The same rows again give far too many, as the last line shows.
    """
    rng, right, wrong = np.random.default_rng(0), [], []
    while len(right) < 60:
        one, other = rng.choice([-1, 1], size=(2, 300, 6))
        model = FVBMPseudoLikelihood(penalty="l1", alpha=0.2).fit(one)
        selected = model.coupling_[np.triu_indices(6, 1)] != 0
        if selected.any():
            fresh = model.inference(other, refit=True)
            right.append(np.mean(fresh.p_value[6:][selected] < 0.05))
            again = FVBMPseudoLikelihood(edges=model.coupling_ != 0).fit(one).inference(one)
            wrong.append(np.mean(again.p_value[6:][selected] < 0.05))
    low, high = binom.interval(1 - 1e-6, 60, 0.05)
    assert low / 60 <= np.mean(right) <= high / 60
    assert np.mean(wrong) > 0.3


# Criteria after a selection.


def test_criteria_of_a_selected_network_count_what_is_not_0():
    model = FVBMPseudoLikelihood(penalty="l1", alpha=0.05).fit(X)
    edges = model.coupling_ != 0
    refit = FVBMPseudoLikelihood(edges=edges).fit(X)
    trace = (model.aic(X) + 2 * model.log_pseudo_likelihood(X).sum()) / 2
    other = (refit.aic(X) + 2 * refit.log_pseudo_likelihood(X).sum()) / 2
    assert trace == pytest.approx(other, rel=0.1)
    n_edges = np.triu(edges, 1).sum()
    assert model.ebic(X, gamma=1) - model.bic(X) == pytest.approx(4 * n_edges * np.log(4))


# Stability selection.


def test_stability_selection_finds_the_chain():
    rows = draw(chain(8, 0.5), 400, np.random.default_rng(0))
    model = FVBMPseudoLikelihood(penalty="l1")
    found = stability_selection(model, rows, n_pairs=8, max_false=5, random_state=0)
    assert found.max_edges == int(np.sqrt(0.5 * 28 * 5)) and found.max_false <= 5
    assert_array_equal(found.selected, chain(8, 1).coupling > 0)
    assert (np.diff(found.path, axis=0) >= 0).all()
    per_half = np.triu(found.probability, 1).sum()
    assert per_half <= found.max_edges
    again = stability_selection(model, rows, n_pairs=8, max_false=5, random_state=0, n_jobs=2)
    assert_array_equal(again.path, found.path)


def test_stability_selection_keeps_its_bound():
    """Of independent columns, the mean number of false pairs of 10 data sets is at most 1.

    It is a bound and not a level: the mean is below 0.3 with a standard error below 0.2.
    """
    rng, counts = np.random.default_rng(0), []
    for _ in range(10):
        rows = rng.choice([-1, 1], size=(100, 6))
        found = stability_selection(
            FVBMPseudoLikelihood(penalty="l1"), rows, n_pairs=5, threshold=0.8, random_state=rng
        )
        counts.append(np.triu(found.selected, 1).sum())
    assert np.mean(counts) <= 1


def test_stability_selection_of_an_estimator_with_this_interface():
    """A path that selects pairs in a known order: those before the limit are always selected."""
    rows = X[:100]

    class Ordered(FVBMPseudoLikelihood):
        def fit(self, X, y=None, sample_weight=None, coupling_init=None, intercept_init=None):
            alpha = 0.01 if self.alpha == "ebic" else self.alpha
            self.set_params(penalty="l2", alpha=0.1)
            super().fit(X, sample_weight=sample_weight)
            self.set_params(penalty="l1", alpha=alpha)
            j, k = np.triu_indices(5, 1)
            kept = np.arange(10) < round(1 / alpha)  # one more pair for each alpha
            self.coupling_ = np.zeros((5, 5))
            self.coupling_[j[kept], k[kept]] = self.coupling_[k[kept], j[kept]] = 1.0
            self.alphas_ = np.array([1.0])
            return self

    found = stability_selection(
        Ordered(penalty="l1"), rows, n_pairs=2, alphas=1 / np.arange(1, 8), max_false=2
    )
    assert found.max_edges == 3
    assert_array_equal(np.argwhere(np.triu(found.selected)), [[0, 1], [0, 2], [0, 3]])
    assert_array_equal(np.triu(found.path, 1).sum(axis=(1, 2)), [1, 2, 3, 3, 3, 3, 3])


def test_stability_selection_errors():
    with pytest.raises(ValueError, match="penalty='l2' does not"):
        stability_selection(FVBMPseudoLikelihood(alpha=0.0), X)
    model = FVBMPseudoLikelihood(penalty="l1")
    with pytest.raises(ValueError, match="Raise max_false or threshold"):
        stability_selection(model, X, max_false=0.01)
    with pytest.raises(ValueError, match="row 0 has 0.5"):
        stability_selection(model, X, sample_weight=np.full(len(X), 0.5))
    twice = stability_selection(
        model, X[:60], sample_weight=np.full(60, 2), n_pairs=3, random_state=0
    )
    assert twice.to_frame().shape == (10, 2)


# Groups.


def test_exact_comparison_of_tiny_groups():
    """All 20 divisions of six rows, one by one."""
    rows = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    groups = np.array(["a", "b", "a", "b", "b", "a"])
    model = FVBMPseudoLikelihood(alpha=0.5)
    with pytest.warns(UserWarning, match="constant in the group a: column 1. .* Leave these"):
        result = compare_groups(model, rows, groups, 19)
    assert "all 20 permutations" in repr(result)

    def of(chosen):
        first = np.isin(np.arange(6), chosen)
        parts = first.astype(float), 1.0 - first
        one, other = (model.fit(rows, sample_weight=part).coupling_ for part in parts)
        return one - other, abs(np.abs(np.triu(one)).sum() - np.abs(np.triu(other)).sum())

    here, strength = of([0, 2, 5])
    every = [of(chosen) for chosen in combinations(range(6), 3)]
    differences, strengths = (np.array(part) for part in zip(*every, strict=True))
    assert result.is_exact and result.n_permutations == 20
    assert_allclose(result.difference, here, atol=1e-5)
    expected = (np.abs(differences) >= np.abs(here) - 1e-6).mean(axis=0)
    off = ~np.eye(3, dtype=bool)
    assert_allclose(result.p_value[off], expected[off])
    largest = np.abs(differences).max(axis=(1, 2))
    assert result.max_difference_p_value == (largest >= np.abs(here).max() - 1e-6).mean()
    assert result.strength_p_value == (strengths >= strength - 1e-6).mean()
    # Each difference beside the largest one of each division.
    with pytest.warns(UserWarning, match="constant"):
        result = compare_groups(model, rows, groups, 19, adjust="max")
    expected = (largest[:, None, None] >= np.abs(here) - 1e-6).mean(axis=0)
    assert_allclose(result.adjusted_p_value[off], expected[off])


def test_p_values_of_equal_groups_are_uniform():
    """Of 40 data sets; as each p value is valid, a false alarm has the probability 1e-6."""
    rng, small = np.random.default_rng(0), np.zeros(3)
    groups = np.arange(60) % 2
    for _ in range(40):
        result = compare_groups(
            FVBMPseudoLikelihood(alpha=0.1), draw(chain(3, 0.4), 60, rng), groups, 19,
            random_state=rng, adjust="max",
        )  # fmt: skip
        small += [result.max_difference_p_value <= 0.05, result.strength_p_value <= 0.05,
                  np.nanmin(result.adjusted_p_value) <= 0.05]  # fmt: skip
    assert (small <= binom.isf(1e-6, 40, 0.05)).all()


def test_groups_that_differ():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = np.concatenate([draw(chain(4, s), 200, rng) for s in (0.0, 0.6)])
    table = pd.DataFrame(rows, columns=list("abcd"))
    groups = np.repeat([2, 7], 200)
    result = compare_groups(
        FVBMPseudoLikelihood(penalty="l1", alpha=0.05), table, groups, 99, random_state=0,
        adjust="max",
    )  # fmt: skip
    assert result.max_difference_p_value == result.strength_p_value == 0.01
    assert result.strength[1] > result.strength[0] and result.difference[0, 1] < 0
    frame = result.to_frame()
    assert frame.loc[("a", "b"), "adjusted_p_value"] == 0.01
    assert_allclose(frame["coupling[2]"] - frame["coupling[7]"], frame["difference"])
    assert frame.loc[("a", "d"), "p_value"] > 0.01
    assert "GroupComparison of 2 and 7, 99 permutations and the groups as they are" in repr(result)


def test_groups_of_categories_and_gaps():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(q, size=120) for q in (2, 3, 3)]).astype(float)
    rows[:60, 2][rows[:60, 2] == 2] = 1  # a value that one group lacks
    rows[rng.random(rows.shape) < 0.05] = np.nan
    groups = np.repeat([0, 1], 60)
    result = compare_groups(FVBMPseudoLikelihood(alpha=0.1), rows, groups, 9, random_state=0)
    assert np.isfinite(result.difference).all() and (result.difference >= 0).all()
    with pytest.raises(ValueError, match="there are 3: 0, 1, 2. Choose the rows of two"):
        compare_groups(FVBMPseudoLikelihood(alpha=0.0), rows, np.arange(120) % 3)
    rows[:60, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 has no value in the group 0"):
        compare_groups(FVBMPseudoLikelihood(alpha=0.0), rows, groups)


@pytest.mark.parametrize("labels", [[1.0, np.nan], ["yes", None], ["yes", "no", np.nan]])
def test_missing_labels_of_groups(labels):
    rows = np.random.default_rng(0).integers(2, size=(60, 3))
    groups = np.resize(np.array(labels, dtype=object), 60)
    n_missing, first = 60 // len(labels), len(labels) - 1
    with pytest.raises(
        ValueError, match=f"{n_missing} labels .* missing, the first in row {first}"
    ):
        compare_groups(FVBMPseudoLikelihood(alpha=0.0), rows, groups)


def test_labels_of_several_types():
    rows = np.random.default_rng(0).integers(2, size=(60, 3))
    with pytest.raises(ValueError, match="labels in groups are of several types. Make all of"):
        compare_groups(
            FVBMPseudoLikelihood(alpha=0.0), rows, np.resize(np.array(["a", 1], object), 60)
        )


def test_the_name_of_a_column_is_no_label():
    rows = np.random.default_rng(0).integers(2, size=(60, 3))
    with pytest.raises(ValueError, match=r"a label for each row, for example X\['smoker'\]"):
        compare_groups(FVBMPseudoLikelihood(alpha=0.0), rows, "smoker")


def test_one_resample_has_no_interval():
    rows = np.random.default_rng(0).integers(2, size=(60, 3))
    model = FVBMPseudoLikelihood(alpha=0.1).fit(rows)
    result = model.bootstrap(rows, 1, random_state=0)
    for ask in (result.interval, result.to_frame, lambda: result.std_err):
        with pytest.raises(ValueError, match="need two resamples at least"):
            ask()
    assert (model.bootstrap(rows, 1, previous=result).std_err > 0).all()
