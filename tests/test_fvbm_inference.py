"""Standard errors, tests, intervals and criteria of networks, and what they are compared by."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import assert_share, categories, chain, draw, fit
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import unpack
from scipy.stats import chi2, norm
from sklearn.base import clone

from oracles import differences
from private import (
    CategoricalPseudoLikelihood,
    Contrasts,
    PseudoLikelihood,
    Regressions,
    SpinModel,
    fitted_curvature,
    holm,
    wald_test,
    weighted_chi2_sf,
)
from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy, statistics
from sklearn_boltz.statistics import PairwiseInference

seeds = st.integers(0, 2**32 - 1)
few_rows = pytest.mark.filterwarnings("ignore:There are .* rows for:UserWarning")


def network(d, scale, seed=0, edges=None):
    """A network with random parameters, couplings within a mask."""
    theta = np.random.default_rng(seed).normal(scale=scale, size=d * (d + 1) // 2)
    coupling, intercept = unpack(theta, d)
    return SpinModel(coupling * (1 if edges is None else edges), intercept)


def parameters_of(coupling, intercept):
    return np.append(intercept, coupling[np.triu_indices(len(intercept), 1)])


# Other implementations.


def table(folder, name):
    return np.genfromtxt(folder / "oracles" / name, delimiter=",")


@pytest.mark.parametrize("alpha", ["auto", 0.0])
@few_rows
def test_senate_inference(shared_data, alpha):
    """BoltzMM's, an independent implementation run to convergence."""
    X = table(shared_data, "senate_X.csv")
    model, d = fit(X, alpha=alpha), X.shape[1]
    upper = np.triu_indices(d, 1)
    if alpha == 0:
        assert_allclose(model.coupling_, table(shared_data, "senate_M.csv"), rtol=1e-5)
        assert_allclose(model.intercept_, table(shared_data, "senate_b.csv"), rtol=1e-5)
        total = len(X) * model.history_["log_pseudo_likelihood"][-1]
        assert total == pytest.approx(-468.736508053067, rel=1e-10)
        assert model.log_pseudo_likelihood(X).sum() == pytest.approx(total, rel=1e-12)
    result = statistics.inference(model, X, covariance="sandwich")
    for name, oracle in (("std_err", "se"), ("z", "z"), ("p_value", "p")):
        values = getattr(result, name)
        assert_allclose(values[:d], table(shared_data, f"senate_b_{oracle}.csv"), rtol=1e-5)
        expected = table(shared_data, f"senate_M_{oracle}.csv")[upper]
        assert_allclose(values[d:], expected, rtol=1e-5)
    expected = table(shared_data, "senate_cov.csv") / len(X)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert_allclose(result.covariance / scale, expected / scale, atol=1e-5)


def test_simulated_oracle(shared_data):
    """Stopped early by its author, hence the tolerance."""
    model = fit(table(shared_data, "sim10_X.csv.gz"))
    assert_allclose(model.coupling_, table(shared_data, "sim10_M.csv"), atol=3e-4)
    assert_allclose(model.intercept_, table(shared_data, "sim10_b.csv"), atol=3e-4)


# Many data sets of one network.

N_SETS, N_ROWS = 100, 1000
simulated = pytest.mark.xdist_group("data_sets_of_a_chain")


@pytest.fixture(scope="module")
def data_sets():
    """A chain of four columns, tables of its rows, and their fits and inferences."""
    truth = network(4, 0.4, edges=chain(4))
    tables = draw(truth, N_SETS * N_ROWS).reshape(N_SETS, N_ROWS, 4)
    models = [fit(X) for X in tables]
    results = [statistics.inference(m, X) for m, X in zip(models, tables, strict=True)]
    return truth, tables, models, results


@simulated
def test_intervals_cover_the_truth_and_errors_are_the_spread(data_sets):
    """As if each data set had a single interval; 6 of the sd of a sample sd, 1 / sqrt(200)."""
    truth, _, _, results = data_sets
    theta = parameters_of(truth.coupling, truth.intercept)
    covered = [(result.ci_low < theta) & (theta < result.ci_high) for result in results]
    assert_share(np.mean(covered), N_SETS, 0.95)
    spread = np.std([result.estimate for result in results], axis=0)
    expected = np.mean([result.std_err for result in results], axis=0)
    assert_allclose(spread / expected, 1, atol=6 / np.sqrt(2 * N_SETS))


@simulated
def test_likelihood_ratios_of_true_networks_are_uniform(data_sets):
    """5 % and 50 % of them are below these levels; false alarms have probability 2e-6."""
    _, tables, models, _ = data_sets
    p_values = np.array([
        statistics.likelihood_ratio(model, X, fit(X, edges=chain(4))).p_value
        for model, X in zip(models, tables, strict=True)
    ])  # fmt: skip
    for level in (0.05, 0.5):
        assert_share(np.mean(p_values < level), N_SETS, level)


def test_few_rows_want_the_jackknife():
    """With 5 rows a column, 95 % intervals cover at least 94 %; those of the sandwich do not.

    Of 6 data sets; the coverages are near 0.968 and 0.870, with a standard deviation of 0.007 and
    0.022 over data sets: false alarms are 9 and 6 standard errors away.
    """
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(6):
        theta = rng.normal(scale=0.3, size=30 * 31 // 2)
        theta[30:] *= rng.random(len(theta) - 30) < 4 / 29
        X = 2 * SpinModel(*unpack(theta, 30)).sample(150, rng, 200) - 1
        model = fit(X)
        jackknife = statistics.inference(model, X)
        with pytest.warns(UserWarning, match="435 of 435 pairs of columns have too few"):
            sandwich = statistics.inference(model, X, covariance="sandwich")
        covered.append([((result.ci_low < theta) & (theta < result.ci_high)).mean()
                        for result in (jackknife, sandwich)])  # fmt: skip
    jackknife, sandwich = np.mean(covered, axis=0)
    assert sandwich < 0.93 < 0.94 < jackknife


def test_p_values_of_blocks_are_uniform_without_interaction():
    """Of 60 independent tables, 5 % are significant; a false alarm has the probability 1e-6."""
    tables = np.random.default_rng(0).integers(3, size=(60, 300, 2))
    small = [statistics.inference(fit(X), X).pair_p_value()[0, 1] < 0.05 for X in tables]
    assert_share(np.mean(small), 60, 0.05)


# Wald's figures of single parameters.


@pytest.fixture(scope="module")
def rows():
    return draw(network(4, 0.4), 400, seed=3)


@pytest.fixture(scope="module")
def result(rows):
    return statistics.inference(fit(rows), rows, null=0.1, confidence_level=0.9)


def test_wald_and_adjusted_p_values(result, monkeypatch):
    assert isinstance(result, PairwiseInference)
    assert_allclose(result.z, (result.estimate - 0.1) / np.sqrt(np.diag(result.covariance)))
    assert_allclose(result.p_value, 2 * norm.cdf(-np.abs(result.z)))
    assert_allclose(result.ci_high - result.estimate, 1.6448536269514722 * result.std_err)
    assert_allclose(result.ci_high + result.ci_low, 2 * result.estimate)
    assert list(result.names[:5]) == ["b[x0]", "b[x1]", "b[x2]", "b[x3]", "m[x0,x1]"]
    assert result.names[-1] == "m[x2,x3]" and len(result.names) == 10
    matrix = result.coupling_matrix(result.estimate)
    with pytest.raises(ValueError, match=f"{len(result.estimate)} entries"):
        result.coupling_matrix(np.ones(len(matrix) + 1))
    assert np.isnan(np.diag(matrix)).all()
    assert matrix[1, 3] == matrix[3, 1] == result.estimate[list(result.names).index("m[x1,x3]")]
    pairs = np.triu_indices(4, 1)  # intercepts do not count
    p, n = result.pair_p_value()[pairs], 6
    order = np.argsort(p)
    bh = np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    assert_allclose(result.adjusted_p_value()[pairs][order], np.minimum(bh, 1))
    monkeypatch.setitem(sys.modules, "statsmodels", None)  # it needs no other package
    monkeypatch.setitem(sys.modules, "statsmodels.stats.multitest", None)
    adjusted = result.adjusted_p_value("holm")
    assert_array_equal(adjusted[pairs], holm(p))
    assert_array_equal(adjusted, adjusted.T)


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


@settings(max_examples=cases(100))
@given(p_values, st.floats(0.001, 0.999))
def test_holm_rejects_what_its_procedure_rejects(p, level):
    p = np.array(p)
    adjusted = holm(p)
    # Rounding decides where a value is equal to the level.
    if not np.isclose(adjusted, level, rtol=1e-12, atol=0).any():
        assert set(np.flatnonzero(adjusted <= level)) == holm_rejects(p, level)
    assert ((p <= adjusted) & (adjusted <= 1)).all()


@pytest.mark.slow  # it takes long to import
@settings(max_examples=cases(50))
@given(p_values)
def test_holm_is_that_of_statsmodels(p):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert_allclose(holm(np.array(p)), multitest.multipletests(p, method="holm")[1], rtol=1e-12)


def test_frame_and_printed_table(rows, result):
    frame = result.to_frame(parameters=True)
    columns = ["estimate", "std_err", "null", "z", "p_value", "ci_low", "ci_high"]
    assert list(frame.columns) == columns
    assert_array_equal(frame.index, result.names)
    assert_array_equal(frame["z"], result.z)
    pairs, names = result.to_frame("holm"), ["coupling", "std_err", "ci_low", "ci_high", "p_value"]
    assert pairs.index[1] == ("x0", "x2") and (pairs["df"] == 1).all()
    assert_allclose(pairs[names], frame[["estimate", *names[1:]]][4:])
    assert_allclose(pairs["statistic"], frame["z"][4:] ** 2)
    assert_array_equal(pairs["adjusted_p_value"], holm(pairs["p_value"].values))
    assert (pairs["note"] == "").all()
    X = pd.DataFrame(rows, columns=list("abcd"))
    printed = str(statistics.inference(fit(X), X))
    assert "a, c" in printed and "95 % interval" in printed and "400 samples" in printed
    assert len(printed.splitlines()) == 3 + 1 + 6
    assert max(map(len, printed.splitlines())) < 88
    assert "maximum pseudo-likelihood" in printed
    assert "maximum likelihood" in str(statistics.inference(fit(X, kind=MaximumEntropy), X))


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("n_values", [2, 3])
def test_other_rows_and_forgotten_weights_warn(share, n_values):
    rng = np.random.default_rng(0)
    X = rng.integers(n_values, size=(300, 3)).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    weights = rng.integers(3, size=300)
    model = fit(X, weights)
    repeated = np.repeat(X, weights, axis=0)[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics.inference(model, X, sample_weight=weights)
        statistics.bic(model, repeated)
    for function in (statistics.inference, statistics.aic):
        for other in (X, repeated[1:], X[:, ::-1]):
            with pytest.warns(UserWarning, match="not the rows and weights of the fit"):
                function(model, other)


@pytest.mark.parametrize(("covariance", "least"), [("jackknife", 15), ("sandwich", 100)])
def test_few_rows_warn(covariance, least):
    X = draw(network(5, 0.3), least)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A constant column has no parameters that are estimated.
        wide = np.hstack([X, np.ones((least, 1), dtype=int)])
        statistics.inference(fit(wide, alpha=0.1), wide, covariance=covariance)
        half, w = X[: least // 2], np.full(least // 2, 3)
        statistics.inference(fit(half, w, alpha=0.1), half, sample_weight=w, covariance=covariance)
    model = fit(X[:-1], alpha=0.1)
    with pytest.warns(UserWarning, match="10 of 10 pairs of columns have too few rows") as caught:
        result = statistics.inference(model, X[:-1], covariance=covariance)
    assert f"{least - 1}, and {least} are needed" in result.reasons[0, 1]
    assert caught[0].filename == __file__


def test_a_constant_column_has_no_standard_error(rows):
    with_constant = np.insert(rows, 1, 1, axis=1)
    result, alone = (statistics.inference(fit(X), X) for X in (with_constant, rows))
    unknown = np.array(["x1" in name for name in result.names])
    assert np.isnan(result.std_err[unknown]).all() and np.isnan(result.p_value[unknown]).all()
    assert_allclose(result.std_err[~unknown], alone.std_err)
    others = np.ix_([0, 2, 3, 4], [0, 2, 3, 4])
    for method in ("fdr_bh", "holm"):
        adjusted = result.adjusted_p_value(method)
        assert_allclose(adjusted[others], alone.adjusted_p_value(method))
        assert np.isnan(adjusted[1]).all()
    assert np.isnan(result.pair_p_value()[1]).all()


@pytest.mark.parametrize(
    ("model", "has_gap"),
    [
        (FVBMPseudoLikelihood(), False), (FVBMPseudoLikelihood(), True),
        (FVBMPseudoLikelihood(missing="observed"), True), (FVBMPseudoLikelihood(alpha=0.0), False),
        (MaximumEntropy(), False), (FVBMPseudoLikelihood(columns=[range(3), range(2)]), False),
        (FVBMPseudoLikelihood(columns=[range(3), range(2)]), True),
    ],
)  # fmt: skip
def test_criteria_and_inference_of_constant_columns(model, has_gap):
    X = np.tile([[1.0, 1.0], [1.0, np.nan], [np.nan, 1.0]], (5, 1))
    X = X if has_gap else np.nan_to_num(X, nan=1.0)
    model = clone(model).fit(X)
    n_terms = model.log_pseudo_likelihood(X).sum()
    for criterion in (statistics.aic, statistics.bic, statistics.ebic):
        assert_allclose(criterion(model, X), -2 * n_terms)
    result = statistics.inference(model, X)
    assert np.isnan(result.std_err).all() and not result.separated.any()


def test_inference_within_a_mask(rows):
    """Standard errors are those of the network without the other couplings."""
    apart = np.kron(np.eye(2), np.ones((2, 2))).astype(bool)
    model = fit(rows, edges=apart, tol=1e-9)
    found = statistics.inference(model, rows, covariance="sandwich")
    for place, columns in (([0, 1, 4], [0, 1]), ([2, 3, 9], [2, 3])):
        X = rows[:, columns]
        plain = statistics.inference(fit(X, tol=1e-9), X, covariance="sandwich")
        assert_allclose(found.std_err[place], plain.std_err, rtol=1e-5)
    lost = np.isin(np.arange(10), [5, 6, 7, 8])
    assert_array_equal(np.isnan(statistics.inference(model, rows).std_err), lost)


# The jackknife.


@settings(max_examples=cases(13))
@given(seeds, st.sampled_from(["spins", None, np.array([True, False, True])]))
def test_the_jackknife_leaves_out_each_row(seed, trends):
    """Of spins with weights, within a mask, and of categories, with trends and without."""
    rng = np.random.default_rng(seed)
    if isinstance(trends, str):
        rows, weights = rng.choice([-1.0, 0, 1], size=(60, 4), p=[0.45, 0.1, 0.45]), np.ones(60)
        weights *= rng.integers(1, 4, size=60)
        edges = chain(4) if rng.random() < 0.5 else np.ones((4, 4), dtype=bool)
        rtol, whole = 1e-4, PseudoLikelihood(rows.T.copy(), weights, 0.1)

        def of_row(x):
            return PseudoLikelihood(x[:, None], np.ones(1))
    else:
        n_values, weights, edges, rtol = np.array([3, 2, 4]), np.ones(80), None, 1e-3
        rows = np.where(rng.random((80, 3)) < 0.1, -1, rng.integers(n_values, size=(80, 3)))

        def contrasts(codes):
            ones = np.ones(len(codes))
            return Contrasts(CategoricalPseudoLikelihood(codes, n_values, ones, trends=trends))

        whole = contrasts(rows)

        def of_row(x):
            return contrasts(x[None])

    theta = rng.normal(scale=0.3, size=whole.n_parameters)
    point = whole.at(theta)
    information = whole.information(point)
    kind = Regressions.of_spins if edges is not None else Regressions.of_contrasts
    columns = np.arange(rows.shape[1])
    found = fitted_curvature(
        information, theta, [kind(whole, point)], columns, edges, jackknife=True
    )
    places, expected = found.places, 0
    for x, w in zip(rows, weights, strict=True):
        row = of_row(x)
        at = row.at(theta)
        rest = (information - row.information(at))[np.ix_(places, places)]
        change = np.linalg.solve(rest, row.gradient(at)[places])
        expected = expected + w * np.outer(change, change)
    atol = 0.01 * rtol * np.abs(expected).max()
    assert_allclose(found.covariance(), expected, rtol=rtol, atol=atol)


def test_the_jackknife_is_near_refits_without_each_row():
    X = draw(network(3, 0.4), 60)
    result = statistics.inference(fit(X, tol=1e-10), X)
    rest = [np.delete(X, i, axis=0) for i in range(len(X))]
    estimates = [statistics.inference(fit(Y, tol=1e-10), Y).estimate for Y in rest]
    expected = np.sqrt(((np.array(estimates) - result.estimate) ** 2).sum(axis=0))
    assert_allclose(result.std_err, expected, rtol=0.03)


def test_a_row_that_alone_determines_a_parameter_has_a_finite_influence():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3))
    X[:, 0] = X[:, 0] > 0
    X[0, 0] = 2  # once only
    model = fit(X, alpha=1e-3)
    result = statistics.inference(model, X)
    i, j = result.columns
    assert np.isfinite(result.std_err[(i == j) | (i > 0)]).all()
    assert np.isfinite(statistics.aic(model, X))


def test_which_fits_have_a_jackknife(rows):
    holes = np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows)
    assert statistics.inference(fit(rows, kind=MaximumEntropy), rows).method == "sandwich"
    for missing in ("em", "observed"):
        assert statistics.inference(fit(holes, missing=missing), holes).method == "jackknife"


# Weighted sums of chi-squared variables.


@settings(max_examples=cases(50))
@given(st.integers(1, 60), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_equal_weights_give_chi_squared(df, ratio, scale):
    x = df * ratio if ratio < 20 else df + 20 * ratio**0.5
    expected = chi2.sf(x, df)
    assert_allclose(weighted_chi2_sf(scale * x, np.full(df, scale)), expected, rtol=1e-7)


@settings(max_examples=cases(50))
@given(st.floats(0.01, 100), st.floats(0.01, 0.99), st.floats(0.1, 1000))
def test_unequal_weights_in_pairs(largest, share, x):
    """(a, a, b, b): the sum of two exponential variables with means 2a and 2b."""
    a, b, x = 2 * largest, 2 * largest * share, x * largest
    expected = (a * np.exp(-x / a) - b * np.exp(-x / b)) / (a - b)
    assert_allclose(weighted_chi2_sf(x, np.array([a, a, b, b]) / 2), expected, rtol=1e-6)


def test_unequal_weights_by_simulation():
    """400,000 draws: at 6 standard errors, a false alarm has the probability 1e-8 for each."""
    rng, n = np.random.default_rng(0), 400_000
    for weights in ([1.0, 2.0, 5.0], [1e-6, 1.0, 1.0], np.linspace(0.5, 3, 20)):
        sums = sum(w * rng.chisquare(1, size=n) for w in weights)
        for x in np.quantile(sums, [0.05, 0.5, 0.95]):
            p = weighted_chi2_sf(x, weights)
            assert abs((sums > x).mean() - p) < 6 * np.sqrt(p * (1 - p) / n)
    # No statistic is no evidence.
    assert weighted_chi2_sf(0.0, [1.0, 2.0]) == weighted_chi2_sf(-1e-9, [1.0]) == 1.0


# Criteria.


def numerical_trace(X, model):
    """tr(H⁻¹ J) by finite differences of the log pseudo-likelihoods of the rows."""
    theta = parameters_of(model.coupling_, model.intercept_)

    def of_rows(theta):
        return SpinModel(*unpack(theta, X.shape[1])).log_pseudo_likelihood((X + 1) // 2)

    def slopes(theta):
        return differences(of_rows, theta, 1e-4)

    scores = slopes(theta)
    hessian = differences(lambda theta: slopes(theta).sum(axis=1), theta, 1e-4)
    return np.trace(np.linalg.solve(-hessian, scores @ scores.T)), of_rows(theta).sum()


def test_criteria_are_those_of_finite_differences(rows):
    model = fit(rows, tol=1e-10)
    trace, value = numerical_trace(rows, model)
    assert statistics.aic(model, rows) == pytest.approx(-2 * value + 2 * trace, rel=1e-5)
    assert statistics.bic(model, rows) == pytest.approx(-2 * value + np.log(400) * trace, rel=1e-5)
    more = statistics.ebic(model, rows, gamma=0.5) - statistics.bic(model, rows)
    assert more == pytest.approx(4 * 0.5 * 6 * np.log(3))
    assert statistics.ebic(model, rows) - statistics.bic(model, rows) == pytest.approx(more / 2)
    figures = statistics.aic(model, rows), statistics.bic(model, rows), more
    assert {type(figure) for figure in figures} == {float}


def test_criteria_in_both_codings_agree(rows):
    X = (rows + 1) // 2
    wide = np.column_stack([X, np.arange(400) % 3])
    # The last column apart: its own parameters are two.
    edges = np.zeros((5, 5), dtype=bool)
    edges[:4, :4] = True
    bits, mixed = fit(X, tol=1e-10), fit(wide, tol=1e-10, edges=edges)
    blocks = bits._model().potts
    mixed.coupling_, mixed.intercept_ = np.zeros((11, 11)), np.zeros(11)
    mixed.coupling_[:8, :8], mixed.intercept_[:8] = blocks.coupling, blocks.intercept
    expected = statistics.aic(bits, X) + 800 * np.log(3) + 2 * 2
    assert statistics.aic(mixed, wide) == pytest.approx(expected, abs=0.01)


# Joint Wald tests.


def test_joint_wald_test_by_hand(rows, result):
    places = [4, 6, 9]
    theta = np.linspace(-0.2, 0.2, 10)
    for null in (np.zeros(10), theta):
        given = statistics.inference(fit(rows), rows, null=null)
        assert_allclose(given.z * result.std_err, result.estimate - null)
        delta, C = (given.estimate - null)[places], given.covariance[np.ix_(places, places)]
        expected = delta @ np.linalg.solve(C, delta)
        for named in (given.names[places], np.isin(np.arange(10), places),
                      [("x0", "x1"), ("x3", "x0"), "m[x2,x3]"]):  # fmt: skip
            test = given.wald_test(named)
            assert test.statistic == pytest.approx(expected) and test.df == 3
            assert test.p_value == pytest.approx(chi2.sf(expected, 3))
        assert given.wald_test("m[x0,x2]").p_value == pytest.approx(given.p_value[5])
        assert_allclose(given.pair_p_value(), given.coupling_matrix(given.p_value))
        by_pair = given.adjusted_p_value("holm")[np.triu_indices(4, 1)]
        assert_allclose(by_pair, holm(given.pair_p_value()[np.triu_indices(4, 1)]))


def test_blocks_have_the_rank_of_their_contrasts():
    X = categories(500, (2, 3, 4), same=0.3)
    result = statistics.inference(fit(X), X)
    assert result.wald_test([("x1", "x2")]).df == 6
    assert result.wald_test([("x0", "x1"), ("x0", "x2")]).df == 2 + 3
    p = result.pair_p_value()
    assert p.shape == (3, 3) and p[0, 1] < 1e-6 and p[1, 2] > 1e-4
    # Whatever contrasts represent the block.
    places = np.flatnonzero((result.columns[0] == 1) & (result.columns[1] == 2))
    mix = np.random.default_rng(1).normal(size=(6, len(places)))
    C = mix @ result.covariance[np.ix_(places, places)] @ mix.T
    other = wald_test(mix @ result.estimate[places], C)
    assert other.statistic == pytest.approx(result.wald_test([("x1", "x2")]).statistic)


# Likelihood ratios.


def test_likelihood_ratio_by_hand(rows):
    full, small = fit(rows, tol=1e-10), fit(rows, edges=chain(4))
    test = statistics.likelihood_ratio(full, rows, small)
    expected = full.log_pseudo_likelihood(rows).sum() - small.log_pseudo_likelihood(rows).sum()
    assert test.statistic == pytest.approx(2 * expected) and test.df == 3
    lost = [5, 6, 8]  # 02, 03, 13
    problem = PseudoLikelihood(np.ascontiguousarray(rows.T.astype(float)), np.ones(400))
    H = problem.information(problem.at(problem.pack(full.coupling_, full.intercept_)))
    block = np.ix_(lost, lost)
    covariance = statistics.inference(full, rows).covariance[block]
    eigenvalues = np.linalg.eigvals(np.linalg.solve(np.linalg.inv(H)[block], covariance))
    assert_allclose(np.sort(test.weights), np.sort(eigenvalues.real), rtol=1e-8)
    assert test.p_value == pytest.approx(weighted_chi2_sf(test.statistic, test.weights))
    assert "weights" not in repr(test)
    assert type(test.statistic) is type(test.p_value) is float


def test_penalised_likelihood_ratios_in_both_codings_agree(rows):
    """A column of three values apart makes a network of categories of the same bits."""
    bits = (rows + 1) // 2
    found = []
    for X in (bits, np.column_stack([bits, np.arange(400) % 3])):
        models = []
        for mask in (~np.eye(4, dtype=bool), chain(4)):
            edges = np.zeros((X.shape[1],) * 2, dtype=bool)
            edges[:4, :4] = mask
            models.append(fit(X, edges=edges, alpha=0.05, tol=1e-10))
        found.append(statistics.likelihood_ratio(models[0], X, models[1]))
    # Couplings of bits are four numbers of a block, of which each has a quarter of the penalty.
    assert found[1].statistic == pytest.approx(found[0].statistic, rel=1e-4)
    assert found[1].df == found[0].df == 3
