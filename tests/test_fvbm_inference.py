"""Standard errors, tests and intervals."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

from private import SpinModel, gibbs_sample, holm, unpack
from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.fully_visible import PairwiseInference


def table(folder, name):
    return np.genfromtxt(folder / "oracles" / name, delimiter=",")


@pytest.fixture(scope="module", params=["auto", 0.0])
def senate(shared_data, request):
    X = table(shared_data, "senate_X.csv")
    return X, FVBMPseudoLikelihood(alpha=request.param).fit(X)


def test_senate_estimates(shared_data):
    """BoltzMM's, an independent implementation run to convergence."""
    X = table(shared_data, "senate_X.csv")
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    assert_allclose(model.coupling_, table(shared_data, "senate_M.csv"), rtol=1e-5)
    assert_allclose(model.intercept_, table(shared_data, "senate_b.csv"), rtol=1e-5)
    total = len(X) * model.history_["log_pseudo_likelihood"][-1]
    assert total == pytest.approx(-468.736508053067, rel=1e-10)
    assert model.log_pseudo_likelihood(X).sum() == pytest.approx(total, rel=1e-12)


few_rows = pytest.mark.filterwarnings("ignore:There are 147 rows for 8 columns:UserWarning")


@few_rows
@pytest.mark.parametrize(("name", "oracle"), [("std_err", "se"), ("z", "z"), ("p_value", "p")])
def test_senate_inference(senate, shared_data, name, oracle):
    X, model = senate
    result = model.inference(X, covariance="sandwich")
    values = getattr(result, name)
    d = X.shape[1]
    assert_allclose(values[:d], table(shared_data, f"senate_b_{oracle}.csv"), rtol=1e-5)
    upper = np.triu_indices(d, 1)
    expected = table(shared_data, f"senate_M_{oracle}.csv")[upper]
    assert_allclose(values[d:], expected, rtol=1e-5)


@few_rows
def test_senate_covariance(senate, shared_data):
    X, model = senate
    expected = table(shared_data, "senate_cov.csv") / len(X)
    error = np.sqrt(np.diag(expected))
    covariance = model.inference(X, covariance="sandwich").covariance
    assert_allclose(covariance / np.outer(error, error), expected / np.outer(error, error),
                    atol=1e-5)  # fmt: skip


def test_simulated_oracle(shared_data):
    """Stopped early by its author, hence the tolerance."""
    X = np.genfromtxt(shared_data / "oracles" / "sim10_X.csv.gz", delimiter=",")
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    assert_allclose(model.coupling_, table(shared_data, "sim10_M.csv"), atol=3e-4)
    assert_allclose(model.intercept_, table(shared_data, "sim10_b.csv"), atol=3e-4)


def known_machine(d, scale, seed=0):
    """A fitted estimator with parameters of our choice."""
    rng = np.random.default_rng(seed)
    model = FVBMPseudoLikelihood(alpha=0.02).fit(rng.choice([-1, 1], size=(50, d)))
    theta = rng.normal(scale=scale, size=d * (d + 1) // 2)
    model.coupling_, model.intercept_ = unpack(theta, d)
    return model, theta


def test_coverage_of_the_intervals():
    """95 % intervals cover the truth.

    200 data sets of 15 parameters, whose intervals are dependent: as if of 200 single
    intervals, a false alarm has the probability 1e-6.
    """
    truth, theta = known_machine(5, 0.3)
    n_sets = 200
    X = truth.sample(2000 * n_sets, random_state=1).reshape(n_sets, 2000, 5)
    covered = []
    for sample in X:
        result = FVBMPseudoLikelihood(alpha=0.0).fit(sample).inference(sample)
        covered.append((result.ci_low < theta) & (theta < result.ci_high))
    low, high = binom.interval(1 - 1e-6, n_sets, 0.95)
    assert low / n_sets <= np.mean(covered) <= high / n_sets


@pytest.mark.parametrize(("covariance", "least"), [("jackknife", 25), ("sandwich", 100)])
def test_few_rows_warn(covariance, least):
    truth, _ = known_machine(5, 0.3)
    X = truth.sample(least, random_state=0)
    constant = np.ones((least, 1), dtype=int)
    options = {"alpha": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A constant column has no parameters that are estimated.
        Y = np.hstack([X, constant])
        FVBMPseudoLikelihood(**options).fit(Y).inference(Y, covariance=covariance)
        Y, w = X[: least // 2], np.full(least // 2, 2.1)
        model = FVBMPseudoLikelihood(**options).fit(Y, sample_weight=w)
        model.inference(Y, sample_weight=w, covariance=covariance)
    model = FVBMPseudoLikelihood(**options).fit(X[:-1])
    with pytest.warns(UserWarning, match=f"There are {least - 1} rows for 5 columns") as caught:
        model.inference(X[:-1], covariance=covariance)
    assert caught[0].filename == __file__


def test_few_rows_want_the_jackknife():
    """With 5 rows a column, 95 % intervals cover at least 94 %; those of the sandwich do not.

    Of 12 data sets; the coverages are near 0.967 and 0.885, with a standard deviation of 0.015 and
    0.02 over data sets: false alarms are 6 and 9 standard errors away.
    """
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(12):
        theta = rng.normal(scale=0.3, size=40 * 41 // 2)
        theta[40:] *= rng.random(len(theta) - 40) < 4 / 39
        X = gibbs_sample(SpinModel(*unpack(theta, 40)), 200, 200, rng)
        model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
        jackknife = model.inference(X)
        with pytest.warns(UserWarning, match="200 rows for 40 columns"):
            sandwich = model.inference(X, covariance="sandwich")
        covered.append([((result.ci_low < theta) & (theta < result.ci_high)).mean()
                        for result in (jackknife, sandwich)])  # fmt: skip
    jackknife, sandwich = np.mean(covered, axis=0)
    assert sandwich < 0.93 < 0.94 < jackknife


def test_standard_errors_are_the_spread_of_the_estimates():
    """In ratio, over 300 data sets; sd of a sample sd is 1 / sqrt(600), and 6 of them allowed."""
    truth, theta = known_machine(4, 0.4)
    X = truth.sample(1000 * 300, random_state=2).reshape(300, 1000, 4)
    results = [FVBMPseudoLikelihood(alpha=0.0).fit(sample).inference(sample) for sample in X]
    spread = np.std([result.estimate for result in results], axis=0)
    expected = np.mean([result.std_err for result in results], axis=0)
    assert_allclose(spread / expected, 1, atol=6 / np.sqrt(600))


@pytest.fixture
def result():
    truth, _ = known_machine(4, 0.4)
    X = truth.sample(400, random_state=3)
    return FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X, null=0.1, confidence_level=0.9)


def test_wald(result):
    assert isinstance(result, PairwiseInference)
    assert_allclose(result.z, (result.estimate - 0.1) / np.sqrt(np.diag(result.covariance)))
    assert_allclose(result.p_value, 2 * norm.cdf(-np.abs(result.z)))
    assert_allclose(result.ci_high - result.estimate, 1.6448536269514722 * result.std_err)
    assert_allclose(result.ci_high + result.ci_low, 2 * result.estimate)
    assert list(result.names[:5]) == ["b[x0]", "b[x1]", "b[x2]", "b[x3]", "m[x0,x1]"]
    assert result.names[-1] == "m[x2,x3]" and len(result.names) == 10


def test_null_hypotheses():
    truth, theta = known_machine(4, 0.4)
    X = truth.sample(400, random_state=3)
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    assert_allclose(
        model.inference(X, null=theta).z * model.inference(X).std_err,
        model.inference(X).estimate - theta,
    )
    given, places = model.inference(X, null=theta), [4, 6, 9]
    delta, C = (given.estimate - theta)[places], given.covariance[np.ix_(places, places)]
    test = given.wald_test(given.names[places])
    assert test.statistic == pytest.approx(delta @ np.linalg.solve(C, delta))
    with pytest.raises(ValueError, match="null must be"):
        model.inference(X, null=[0.0, 1.0])


def test_adjusted_p_values(result):
    p, n = result.p_value, len(result.names)
    order = np.argsort(p)
    bh = np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    assert_allclose(result.adjusted_p_value("fdr_bh")[order], np.minimum(bh, 1))
    assert_array_equal(result.adjusted_p_value(), holm(p))
    with pytest.raises(ValueError, match="method must be"):
        result.adjusted_p_value("bonferroni")


def holm_rejects(p, level):
    """Holm's procedure, step by step: the smallest p value first, until one is not rejected."""
    left, rejected = list(range(len(p))), set()
    while left:
        j = min(left, key=lambda k: p[k])
        if p[j] > level / len(left):
            break
        rejected.add(j)
        left.remove(j)
    return rejected


p_values = st.lists(st.sampled_from([0.0, 1e-300, 1e-3, 0.01, 0.2, 1.0]) | st.floats(0, 1),
                    min_size=1, max_size=12)  # fmt: skip


@settings(max_examples=200)
@given(p_values, st.floats(0.001, 0.999))
def test_holm_rejects_what_its_procedure_rejects(p, level):
    p = np.array(p)
    adjusted = holm(p)
    # Rounding decides where a value is equal to the level.
    if not np.isclose(adjusted, level, rtol=1e-12, atol=0).any():
        assert set(np.flatnonzero(adjusted <= level)) == holm_rejects(p, level)
    assert ((p <= adjusted) & (adjusted <= 1)).all()


@settings(max_examples=50)
@given(p_values)
def test_holm_is_that_of_statsmodels(p):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert_allclose(holm(np.array(p)), multitest.multipletests(p, method="holm")[1], rtol=1e-12)


def test_holm_needs_no_other_package(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    monkeypatch.setitem(sys.modules, "statsmodels.stats.multitest", None)
    assert np.isfinite(result.adjusted_p_value("holm")).all()


def test_frame_and_printed_table(result):
    pd = pytest.importorskip("pandas")
    frame = result.to_frame()
    assert list(frame.columns) == [
        "estimate", "std_err", "null", "z", "p_value", "ci_low", "ci_high",
    ]  # fmt: skip
    assert_array_equal(frame.index, result.names)
    assert_array_equal(frame["z"], result.z)
    adjusted = result.to_frame("fdr_bh")
    assert_array_equal(adjusted["adjusted_p_value"], result.adjusted_p_value("fdr_bh"))
    assert adjusted.drop(columns="adjusted_p_value").equals(frame)
    with pytest.raises(ValueError, match="method must be 'holm' or 'fdr_bh'"):
        result.to_frame("bonferroni")
    X = pd.DataFrame(known_machine(3, 0.4)[0].sample(300, random_state=0), columns=list("abc"))
    printed = str(FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X))
    assert "m[a,c]" in printed and "95 % interval" in printed and "300 samples" in printed
    assert max(map(len, printed.splitlines())) < 88
    assert "maximum pseudo-likelihood" in printed
    exact = FVBMPseudoLikelihood(objective="likelihood").fit(X).inference(X)
    assert "maximum likelihood" in str(exact)


def test_coupling_matrix(result):
    matrix = result.coupling_matrix(result.estimate)
    assert np.isnan(np.diag(matrix)).all()
    assert matrix[1, 3] == matrix[3, 1] == result.estimate[list(result.names).index("m[x1,x3]")]


def test_weights_count():
    truth, _ = known_machine(3, 0.4)
    X = truth.sample(300, random_state=0)
    w = np.random.default_rng(0).integers(4, size=300)
    X2 = np.repeat(X, w, axis=0)
    weighted = FVBMPseudoLikelihood(alpha=0.0).fit(X, sample_weight=w).inference(X, sample_weight=w)
    repeated = FVBMPseudoLikelihood(alpha=0.0).fit(X2).inference(X2)
    assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9, atol=1e-15)
    assert weighted.n_samples == w.sum()


def test_a_constant_column_has_no_standard_error():
    truth, _ = known_machine(3, 0.4)
    X = truth.sample(300, random_state=0)
    with_constant = np.column_stack([X[:, 0], np.ones(300, dtype=int), X[:, 1:]])
    result = FVBMPseudoLikelihood(alpha=0.0).fit(with_constant).inference(with_constant)
    unknown = np.array(["x1" in name for name in result.names])
    assert np.isnan(result.std_err[unknown]).all() and np.isnan(result.p_value[unknown]).all()
    alone = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    assert_allclose(result.std_err[~unknown], alone.std_err)
    adjusted = result.adjusted_p_value("fdr_bh")
    assert_allclose(adjusted[~unknown], alone.adjusted_p_value("fdr_bh"))
    assert_allclose(result.adjusted_p_value()[~unknown], alone.adjusted_p_value())
    assert np.isnan(result.adjusted_p_value()[unknown]).all()
    assert "nan" in str(result)


def test_a_singular_information_is_a_clear_error():
    X = known_machine(3, 0.4)[0].sample(300, random_state=0)
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    model.coupling_ *= 1000
    for method in (model.inference, model.aic):
        with pytest.raises(ValueError, match="singular: .* do not determine all .*alpha > 0"):
            method(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_that_are_equal_have_no_errors():
    X = known_machine(4, 0.2)[0].sample(500, random_state=0)
    X[:, 1] = X[:, 0]
    result = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    first, second = result.columns
    assert_array_equal(result.separated, (first < 2) | (second < 2))
    assert np.isfinite(result.std_err[~result.separated]).all()


def test_a_jackknife_that_there_is_not():
    X = known_machine(3, 0.4)[0].sample(300, random_state=0)
    exact = FVBMPseudoLikelihood(objective="likelihood").fit(X)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    completed = FVBMPseudoLikelihood(alpha=0.0).fit(holes)
    for model, rows, reason in ((exact, X, "objective='likelihood'"), (completed, holes, "EM has")):
        assert model.inference(rows).method == "sandwich"
        with pytest.raises(ValueError, match=f"no jackknife .*{reason}.*covariance='auto'"):
            model.inference(rows, covariance="jackknife")
    observed = FVBMPseudoLikelihood(missing="observed", alpha=0.0).fit(holes)
    assert observed.inference(holes, covariance="jackknife").method == "jackknife"


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("n_values", [2, 3])
def test_other_rows_and_forgotten_weights_warn(share, n_values):
    rng = np.random.default_rng(0)
    X = rng.integers(n_values, size=(300, 3)).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    weights = rng.integers(3, size=300)
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X, sample_weight=weights)
    repeated = np.repeat(X, weights, axis=0)[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.inference(X, sample_weight=weights)
        model.bic(repeated)
    for method in (model.inference, model.aic):
        for rows in (X, repeated[1:], X[:, ::-1]):
            with pytest.warns(UserWarning, match="not the rows and weights of the fit"):
                method(rows)
