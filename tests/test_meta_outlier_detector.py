"""BoltzmannOutlierDetector: rows that are improbable, with words, numbers and gaps."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from private import _default, _sample, left_out
from sklearn_boltz import SDCPRBM, BoltzmannOutlierDetector, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches


def many_columns(n, seed):
    """Rows of 20 bits that depend on two numbers."""
    rng, weights = np.random.default_rng(seed), np.random.default_rng(0).normal(size=(2, 20))
    return (rng.normal(size=(n, 20)) + rng.normal(size=(n, 2)) @ weights > 0).astype(int)


def coupled_rows(n, seed=0):
    """Rows of five columns of values 0 to 2, all noisy copies of one."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(3, size=(n, 1)), 5, axis=1)
    return np.where(rng.random(X.shape) < 0.2, rng.integers(3, size=X.shape), X)


def scrambled_rows(n, seed=0):
    """The same columns, independent of each other."""
    return np.random.default_rng(seed).integers(3, size=(n, 5))


@pytest.fixture(scope="module")
def coupled():
    """The default detector of 500 such rows."""
    return BoltzmannOutlierDetector(random_state=0).fit(coupled_rows(500))


# Scores.


def test_scores_are_log_probabilities_less_their_mean():
    X, new = coupled_rows(300), scrambled_rows(50)
    density = FSLLDensity(columns=range(3))
    detector = BoltzmannOutlierDetector(density).fit(X)
    by_hand = clone(density).fit(X)
    expected = by_hand.score_samples(new) - by_hand.score(X)
    assert_allclose(detector.score_samples(new), expected, atol=1e-9)
    assert_allclose(detector.score_samples(X).mean(), 0, atol=1e-9)
    assert_allclose(detector.decision_function(new), expected - detector.offset_, atol=1e-9)
    assert_array_equal(detector.predict(new), np.where(expected < detector.offset_, -1, 1))
    # Rows with gaps: the expectation over all completions, of which each detector draws ten. The
    # mean of 50 draws is within four standard errors in all but 1 of 1,000 runs.
    gap = np.array([[0, 0, np.nan, 1, 1]])
    completions = np.where(np.isnan(gap), np.arange(3)[:, None], gap)
    scores = by_hand.score_samples(completions)
    p = np.exp(scores - scores.max())
    p /= p.sum()
    expected = p @ scores - by_hand.score(X)
    error = np.sqrt(p @ (scores - p @ scores) ** 2 / 50)
    found = [clone(detector).set_params(random_state=k).fit(X) for k in range(5)]
    mean = np.mean([one.score_samples(gap)[0] for one in found])
    assert abs(mean - expected) < 4 * error


@pytest.mark.parametrize(
    ("density", "container"), [(None, pd.DataFrame), (FSLLDensity(), np.asarray)]
)
def test_equal_rows_have_equal_scores_in_any_batch(density, container):
    X = coupled_rows(200).astype(float)
    gaps = X[:20].copy()
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.5] = np.nan
    gaps[::4] = [0, np.nan, np.nan, 1, np.nan]
    detector = BoltzmannOutlierDetector(density, random_state=0).fit(container(X))
    scores = detector.score_samples(container(gaps))
    assert_allclose(scores[::4], scores[0], rtol=1e-9)
    order = np.random.default_rng(1).permutation(20)
    assert_allclose(detector.score_samples(container(gaps[order])), scores[order], rtol=1e-9)
    alone = [detector.score_samples(container(gaps[[i]]))[0] for i in range(5)]
    assert_allclose(alone, scores[:5], rtol=1e-9)
    other = BoltzmannOutlierDetector(density, random_state=1).fit(container(X))
    change = np.ptp(other.score_samples(container(gaps)) - scores)
    assert change < 1e-9 if density is None else change > 0.1  # nothing is drawn, or other draws


def test_the_default_network_has_the_mean_over_all_completions():
    """Also in bins."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(coupled_rows(400), columns=list("abcde")).astype(str)
    X = X.assign(pay=X["a"].astype(int) + rng.normal(size=400))
    detector = BoltzmannOutlierDetector().fit(X)
    network = detector.estimator_
    gap = X.iloc[[0]].assign(b=None, c=None, pay=np.nan)
    bins = detector._encoder.columns[5].bins
    rows = detector._rows(gap).codes.repeat(9 * bins.n_bins, axis=0)
    rows[:, [1, 2, 5]] = np.indices((3, 3, bins.n_bins)).reshape(3, -1).T
    log_p = -network.free_energy(rows)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    terms = log_p + bins.mean_log_density[rows[:, 5].astype(int)]
    found = detector.score_samples(gap)[0] + detector._mean
    found -= 3 * np.log(400 / 401)  # of three words, no one is unseen
    assert_allclose(found, p @ terms, rtol=0, atol=1e-6)


def test_scores_are_comparable_however_many_cells_are_missing(coupled):
    """Of rows of the same kind, with half of the cells missing in half of the rows."""
    new = coupled_rows(400, seed=1).astype(float)
    gaps = new.copy()
    gaps[np.random.default_rng(0).random(new.shape) < 0.5] = np.nan
    with_gaps, complete = coupled.score_samples(gaps), coupled.score_samples(new)
    error = np.hypot(with_gaps.std(), complete.std()) / 20
    assert abs(with_gaps.mean() - complete.mean()) < 4 * error
    # ln p of the observed cells alone says that the rows with gaps are far better.
    density = coupled.estimator_
    raw = density.score_samples(gaps).mean() - density.score_samples(new).mean()
    assert raw > 1


def test_rows_whose_values_do_not_go_together_are_found(coupled):
    new = np.concatenate([coupled_rows(300, seed=1), scrambled_rows(300)])
    y = np.repeat([1, -1], 300)
    assert roc_auc_score(y, coupled.decision_function(new)) > 0.85


def test_a_word_that_fit_has_not_seen_is_improbable():
    X = np.array([["a", "x"], ["b", "y"]] * 50, dtype=object)
    detector = BoltzmannOutlierDetector(random_state=0).fit(X)
    strange, gap = detector.score_samples([["c", "x"], [None, "x"]])
    assert strange == pytest.approx(gap - np.log(101), abs=0.2)
    assert detector.predict([["c", "x"]]) == [-1]
    assert detector.explain([["c", "x"]])[0, 0] == np.log(101)


# Offsets.


@pytest.mark.parametrize("density", [None, KernelDensity()])
def test_the_fence_is_that_of_held_out_scores(density):
    """Tukey's, of quantiles of the scores as often as the rows count; few are equal of kernels."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(40, 1)), rng.integers(1, 5, size=40)
    detector = BoltzmannOutlierDetector(density, random_state=0).fit(X, sample_weight=weights)
    scores = np.repeat(detector.held_out_scores_, weights)
    first, third = np.quantile(scores, [0.25, 0.75], method="averaged_inverted_cdf")
    assert detector.offset_ == pytest.approx(first - 1.5 * (third - first))
    # A row on the fence is inside.
    detector.offset_ = detector.score_samples(X[:1])[0]
    assert detector.predict(X[:1]) == [1]


def test_contamination_is_the_share_of_outliers():
    """Except for rows with the score of the fence, which are equal to the last digits."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    for share in (0.05, 0.5):
        detector = BoltzmannOutlierDetector(contamination=share)
        found = detector.fit_predict(X) == -1
        on_the_fence = np.isclose(detector.held_out_scores_, detector.offset_, rtol=0, atol=1e-6)
        assert 0 <= share - found.mean() <= on_the_fence.mean()
        assert_array_equal(found, detector.held_out_scores_ < detector.offset_)


# Other tables and densities.


def test_other_densities_and_searches():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 2)), [[8.0, 8.0]]])
    kernels = BoltzmannOutlierDetector(KernelDensity())
    assert make_pipeline(StandardScaler(), kernels).fit(X[:100]).predict(X)[100] == -1
    rbm = SDCPRBM(2, columns="gaussian", max_iter=5, random_state=0)
    detector = BoltzmannOutlierDetector(rbm, random_state=0).fit(X[:100])
    assert detector.score_samples(X).argmin() == 100
    y = np.append(np.ones(100), -1)
    grid = {"contamination": [0.01, 0.5]}
    search = GridSearchCV(kernels, grid, scoring="accuracy", cv=2).fit(X, y)
    assert search.best_params_ == {"contamination": 0.01}


@pytest.mark.parametrize("container", [np.asarray, lambda X: Batches([X[:30], X[30:]])])
def test_the_offset_is_no_higher_than_that_of_rows_of_the_fit(container):
    X = (np.random.default_rng(0).random((60, 4)) < [0.2, 0.5, 0.7, 0.4]).astype(int)
    detector = BoltzmannOutlierDetector(FSLLDensity(), contamination=0.2, random_state=0)
    scores = np.stack([detector.fit(container(X)).held_out_scores_, detector.score_samples(X)])
    held_out, own = np.quantile(scores, 0.2, axis=1, method="averaged_inverted_cdf")
    assert detector.offset_ == pytest.approx(min(held_out, own))


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_of_equal_rows_none_is_an_outlier(contamination):
    """However rounding falls: 10 sums of different lengths."""
    for n in range(5, 35, 3):
        X = np.ones((n, n % 7 + 1), dtype=int)
        detector = BoltzmannOutlierDetector(contamination=contamination, random_state=0)
        assert (detector.fit(X, sample_weight=1 + np.arange(n) % 3).predict(X) == 1).all()


# Surprises.


def brute_surprise(density, row, j, values):
    """-ln p of cell j given the other observed cells, from scores of rows with each value there."""
    rows = np.repeat(row[None], len(values), axis=0)
    rows[:, j] = values
    scores = density.score_samples(rows)
    return np.logaddexp.reduce(scores) - scores[values.index(row[j])]


@pytest.mark.parametrize(
    ("density", "low"),
    [
        (FVBMPseudoLikelihood(columns=range(3), unseen="error"), 0),
        (SDCPRBM(4, columns=[list(range(3))] * 5, max_iter=10), 0),
        (FSLLDensity(columns=range(3), unseen="error"), 0),
        (FVBMPseudoLikelihood(), -1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_surprises_are_those_of_scores(density, low):
    X, new = coupled_rows(300).astype(float), scrambled_rows(20).astype(float)
    values = [0.0, 1.0, 2.0]
    if getattr(density, "columns", "auto") == "auto":  # bits
        X, new, values = X.clip(max=1), new.clip(max=1), [float(low), 1.0]
        X[X == 0], new[new == 0] = low, low
    detector = BoltzmannOutlierDetector(density, random_state=0).fit(X)
    new[np.random.default_rng(0).random(new.shape) < 0.3] = np.nan
    found = detector.explain(new)
    assert found.dtype == np.float64
    assert_array_equal(np.isnan(found), np.isnan(new))
    for i, j in np.argwhere(~np.isnan(new)):
        expected = brute_surprise(detector.estimator_, new[i], j, values)
        assert found[i, j] == pytest.approx(expected, abs=1e-4)


def test_numbers_are_surprising_where_their_bin_is_thin():
    """The further out, the more, although all are in the last bin, with what others say of it."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    detector = BoltzmannOutlierDetector(random_state=0).fit(X)
    far = X[:, 0].max() + np.array([0.0, 1, 2, 4, 8])
    found = detector.explain(np.column_stack([far, np.zeros(5)]))
    assert (np.diff(found[:, 0]) > 0.5).all() and np.ptp(found[:, 1]) < 1e-9
    # In the middle there are as many rows as in the mean: nothing is added for a bin.
    near = detector.explain([[0.01, 0.0], [0.02, 0.0]])[:, 0]
    assert near[0] == pytest.approx(near[1], abs=0.05) and near.max() < found[0, 0]


def test_far_numbers_are_improbable_beside_gaps_in_tables_too_large_for_a_network(monkeypatch):
    """An RBM draws completions; the densities inside of the last bin are added to both rows."""
    monkeypatch.setattr("sklearn_boltz.meta._default.MOST_FEATURES", 1)
    monkeypatch.setattr("sklearn_boltz.meta._default.N_BATCHES", 0)  # a few epochs will do
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=40), "word": rng.choice(["a", "b"], 40)})
    detector = BoltzmannOutlierDetector(random_state=0).fit(X)
    far = pd.DataFrame({"n": [4.0, 400.0] * 2, "word": ["a", "a", None, None]})
    scores = detector.score_samples(far)
    assert isinstance(detector.estimator_, SDCPRBM)
    assert (scores[[0, 2]] > scores[[1, 3]] + 5).all()


def test_densities_without_probabilities_of_columns_explain_nothing():
    assert hasattr(BoltzmannOutlierDetector(), "explain")
    assert not hasattr(BoltzmannOutlierDetector(KernelDensity()), "explain")


def test_contamination_is_the_share_of_outliers_among_new_rows():
    """Five tables have .078 with an error of .012: a false alarm in less than 1 of 10,000 runs."""
    new, shares = many_columns(2000, seed=100), []
    for seed in range(1, 6):
        detector = BoltzmannOutlierDetector(contamination=0.1).fit(many_columns(100, seed))
        shares.append((detector.predict(new) == -1).mean())
    assert np.mean(shares) == pytest.approx(0.1, abs=0.07)


@pytest.mark.parametrize("weights", [None, np.r_[0, 0, np.ones(38)]])
def test_held_out_scores_are_those_of_densities_without_the_rows(weights):
    X = coupled_rows(40).astype(float)
    X[:, 0] = np.arange(40)  # no equal rows
    density = FVBMPseudoLikelihood(
        columns=[range(40), range(3), range(3), range(3), range(3)], alpha=0.1
    )
    detector = BoltzmannOutlierDetector(density, random_state=0).fit(X, sample_weight=weights)
    counted = np.ones(40) if weights is None else weights
    rows, generator = X[counted > 0], np.random.RandomState(0)
    generator.randint(2**31, size=2)  # seeds of completions and of the density
    held_out = {}
    for left, held in left_out(rows, np.ones(len(rows)), 3, generator):
        assert_array_equal(np.flatnonzero(left == 0), held)
        fitted = clone(density).fit(rows[left > 0])
        own = -fitted.free_energy(rows)
        held_out |= dict(zip(rows[held, 0], own[held] - own[left > 0].mean(), strict=True))
    new = detector.score_samples(X)
    expected = [held_out.get(i, new[i]) for i in range(40)]
    assert_allclose(detector.held_out_scores_, expected, atol=1e-9)


def test_a_fitted_density_is_taken_as_it_is():
    """Its scores of the rows of `fit` are held out."""
    rng = np.random.default_rng(0)
    learned, rows = rng.random((2, 300, 4)) < [0.1, 0.2, 0.5, 0.8]
    density = FVBMPseudoLikelihood().fit(learned.astype(int))
    detector = BoltzmannOutlierDetector(FrozenEstimator(density), contamination=0.1)
    detector.fit(rows.astype(int))
    assert detector.estimator_ is density
    scores = density.score_samples(rows.astype(int))
    assert_allclose(detector.score_samples(rows.astype(int)), scores - scores.mean(), atol=1e-9)
    # Except for means of the rows without a fold.
    assert_allclose(detector.held_out_scores_, scores - scores.mean(), atol=0.1)


def test_codes_of_an_array_that_a_fold_lacks():
    rows = np.random.default_rng(0).integers(3, size=(60, 3))
    rows[7, 1] = 5
    detector = BoltzmannOutlierDetector(FVBMPseudoLikelihood(), random_state=0).fit(rows)
    assert detector.held_out_scores_.argmin() == 7


@pytest.mark.parametrize("n_cells", [2**22, 100 * 5])
def test_batches_have_the_outliers_of_their_table(monkeypatch, n_cells):
    """All, or a hundred rows; then the other rows have scores by the density of these."""
    monkeypatch.setattr(_default, "MOST_SAMPLED", n_cells)
    monkeypatch.setattr(_sample, "LEAST_ROWS", 1)
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=240)
    frame = pd.DataFrame({f"c{j}": np.where(rng.random(240) < 0.9, kind, 0) for j in range(4)})
    frame["n"] = rng.normal(5 * kind)
    frame.loc[7] = [2, 2, 2, 2, 0.0]
    frame.loc[9::10, "c1"] = np.nan
    batches = Batches([frame[:100], frame[100:160], frame[160:]])
    detector = BoltzmannOutlierDetector(random_state=0)
    labels = detector.fit_predict(batches)
    assert_array_equal(labels == -1, detector.held_out_scores_ < detector.offset_)
    X, rows, _ = _sample.sample_rows(batches, n_cells)
    assert len(rows) == min(n_cells // 5, 240) and (np.diff(rows) > 0).all()
    pd.testing.assert_frame_equal(X, frame.iloc[rows])
    whole, scores = clone(detector).fit(X), detector.held_out_scores_
    assert_array_equal(whole.held_out_scores_, scores[rows])
    others = np.setdiff1d(np.arange(240), rows)
    assert_array_equal(whole.score_samples(frame)[others], scores[others])
    assert whole.offset_ == detector.offset_ and (labels[7] == -1 or len(others))


def test_each_row_is_as_likely_to_be_sampled(monkeypatch):
    """Whichever batch it is in: a chi-squared test, which is wrong once in 10**6 times."""
    monkeypatch.setattr(_sample, "LEAST_ROWS", 1)
    sizes = [3000, 10, 5000, 1990, 10_000]
    parts = np.split(np.arange(20_000)[:, None], np.cumsum(sizes)[:-1])
    X, rows, n_rows = _sample.sample_rows(Batches(parts), 4000)
    assert n_rows == 20_000 and X[:, 0].tolist() == rows.tolist()
    counts = np.histogram(rows, bins=20, range=(0, 20_000))[0]
    assert counts.sum() == 4000 and chisquare(counts).pvalue > 1e-6
