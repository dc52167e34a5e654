"""Comparison of networks: criteria, likelihood ratios, joint Wald tests, the jackknife."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, chi2

from private import (
    CategoricalPseudoLikelihood,
    Contrasts,
    PseudoLikelihood,
    Regressions,
    SpinModel,
    as_parameters,
    fitted_curvature,
    holm,
    to_zero_sum,
    unpack,
    wald_test,
    weighted_chi2_sf,
)
from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood

seeds = st.integers(0, 2**32 - 1)


def network(d, scale, seed=0, edges=None):
    """A network with random parameters, couplings within a mask."""
    theta = np.random.default_rng(seed).normal(scale=scale, size=d * (d + 1) // 2)
    coupling, intercept = unpack(theta, d)
    return SpinModel(coupling * (1 if edges is None else edges), intercept)


def draw(model, n, rng):
    """Rows of -1 and 1."""
    return 2 * model.sample(n, rng, 100).astype(int) - 1


def chain(d):
    """A mask of neighbours."""
    return np.abs(np.subtract.outer(range(d), range(d))) == 1


def within(X, edges, alpha=0.0):
    """The network of these pairs."""
    return FVBMPseudoLikelihood(edges=edges, alpha=alpha).fit(X)


# The jackknife.


@settings(max_examples=15)
@given(seeds)
def test_the_jackknife_leaves_out_each_row(seed):
    rng = np.random.default_rng(seed)
    d, n = 4, 60
    spins = rng.choice([-1.0, 1.0], size=(d, n))
    spins[rng.random((d, n)) < 0.1] = 0  # missing
    weights = rng.integers(1, 4, size=n).astype(float)
    theta = rng.normal(scale=0.3, size=d * (d + 1) // 2)
    edges = chain(d) if rng.random() < 0.5 else np.ones((d, d), dtype=bool)
    problem = PseudoLikelihood(spins, weights, 0.1)
    point = problem.at(*unpack(theta, d))
    information = problem.information(point)
    found = fitted_curvature(
        information, Regressions.of_spins(problem, point), np.arange(d), edges, jackknife=True
    )
    block = np.ix_(found.places, found.places)
    expected = 0
    for x, w in zip(spins.T, weights, strict=True):
        row = PseudoLikelihood(x[:, None], np.ones(1))
        at = row.at(*unpack(theta, d))
        rest = (information - row.information(at))[block]
        change = np.linalg.solve(rest, row.gradient(at)[found.places])
        expected = expected + w * np.outer(change, change)
    assert_allclose(found.covariance(), expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@settings(max_examples=10)
@given(seeds)
def test_the_jackknife_of_categories_leaves_out_each_row(seed):
    rng = np.random.default_rng(seed)
    n_values = np.array([3, 2, 4])
    codes = np.column_stack([rng.integers(q, size=80) for q in n_values]).astype(np.int16)
    codes[rng.random(codes.shape) < 0.1] = -1
    problem = Contrasts(CategoricalPseudoLikelihood(codes, n_values, np.ones(80), zero_sum=True))
    z = rng.normal(scale=0.3, size=problem.n_parameters)
    point = problem.at(z)
    information = problem.information(point)
    regressions = Regressions.of_contrasts(problem, point)
    found = fitted_curvature(information, regressions, np.arange(3), jackknife=True)
    expected = 0
    for x in codes:
        row = Contrasts(CategoricalPseudoLikelihood(x[None], n_values, np.ones(1), zero_sum=True))
        at = row.at(z)
        change = np.linalg.solve(information - row.information(at), at.slope)
        expected = expected + np.outer(change, change)
    assert_allclose(found.covariance(), expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def test_the_jackknife_is_near_refits_without_each_row():
    X = draw(network(3, 0.4), 60, np.random.default_rng(0))
    model = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X)
    estimates = []
    for i in range(len(X)):
        rest = np.delete(X, i, axis=0)
        estimates.append(
            FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(rest).inference(rest).estimate
        )
    changes = np.array(estimates) - model.inference(X).estimate
    expected = np.sqrt((changes**2).sum(axis=0))
    assert_allclose(model.inference(X).std_err, expected, rtol=0.03)


def test_a_row_that_alone_determines_a_parameter_has_a_finite_influence():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3))
    X[:, 0] = X[:, 0] > 0
    X[0, 0] = 2  # once only
    model = FVBMPseudoLikelihood(alpha=1e-3).fit(X)
    result = model.inference(X)
    assert np.isfinite(result.std_err).all()
    assert np.isfinite(model.aic(X))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_weights_of_any_size(scale):
    X = draw(network(3, 0.4), 200, np.random.default_rng(0))
    w = np.full(len(X), scale)
    model = FVBMPseudoLikelihood(alpha=0.01).fit(X, sample_weight=w)
    with pytest.warns(UserWarning, match="rows for 3") if scale < 1 else nullcontext():
        result = model.inference(X, sample_weight=w)
    assert np.isfinite(result.std_err).all() and (result.std_err > 0).all()
    assert np.isfinite(model.ebic(X, w))


# Weighted sums of chi-squared variables.


@settings(max_examples=50)
@given(st.integers(1, 60), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_equal_weights_give_chi_squared(df, ratio, scale):
    x = df * ratio if ratio < 20 else df + 20 * ratio**0.5
    expected = chi2.sf(x, df)
    assert_allclose(weighted_chi2_sf(scale * x, np.full(df, scale)), expected, rtol=1e-7)


def two_exponentials(x, one, other):
    """Weights (a, a, b, b): the sum of two exponential variables with means 2a and 2b."""
    a, b = 2 * one, 2 * other
    return (a * np.exp(-x / a) - b * np.exp(-x / b)) / (a - b)


@settings(max_examples=50)
@given(st.floats(0.01, 100), st.floats(0.01, 0.99), st.floats(0.1, 1000))
def test_unequal_weights_in_pairs(largest, share, x):
    other = largest * share
    expected = two_exponentials(x * largest, largest, other)
    found = weighted_chi2_sf(x * largest, [largest, largest, other, other])
    assert_allclose(found, expected, rtol=1e-6)


def test_unequal_weights_by_simulation():
    """400,000 draws: at 6 standard errors, a false alarm has the probability 1e-8 for each."""
    rng, n = np.random.default_rng(0), 400_000
    for weights in ([1.0, 2.0, 5.0], [1e-6, 1.0, 1.0], np.linspace(0.5, 3, 20)):
        sums = rng.chisquare(1, size=(n, len(weights))) @ np.asarray(weights)
        for x in np.quantile(sums, [0.05, 0.5, 0.95]):
            p = weighted_chi2_sf(x, weights)
            assert abs((sums > x).mean() - p) < 6 * np.sqrt(p * (1 - p) / n)


def test_no_statistic_no_evidence():
    assert weighted_chi2_sf(0.0, [1.0, 2.0]) == weighted_chi2_sf(-1e-9, [1.0]) == 1.0


# Criteria.


def numerical_trace(X, model):
    """tr(H⁻¹ J) by finite differences of the log pseudo-likelihoods of the rows."""
    d = X.shape[1]
    theta = np.append(model.intercept_, model.coupling_[np.triu_indices(d, 1)])

    def of_rows(theta):
        return SpinModel(*unpack(theta, d)).log_pseudo_likelihood((X + 1) // 2)

    q, step = len(theta), 1e-4
    steps = step * np.eye(q)
    scores = np.array([(of_rows(theta + s) - of_rows(theta - s)) / (2 * step) for s in steps])
    hessian = np.empty((q, q))
    for i, s in enumerate(steps):
        for j, t in enumerate(steps):
            ends = [of_rows(theta + a * s + b * t).sum() for a, b in
                    ((1, 1), (1, -1), (-1, 1), (-1, -1))]  # fmt: skip
            hessian[i, j] = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * step**2)
    return np.trace(np.linalg.solve(-hessian, scores @ scores.T)), of_rows(theta).sum()


def test_criteria_are_those_of_finite_differences():
    X = draw(network(4, 0.4, seed=1), 300, np.random.default_rng(0))
    model = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X)
    trace, value = numerical_trace(X, model)
    assert model.aic(X) == pytest.approx(-2 * value + 2 * trace, rel=1e-5)
    assert model.bic(X) == pytest.approx(-2 * value + np.log(300) * trace, rel=1e-5)
    more = model.ebic(X, gamma=0.5) - model.bic(X)
    assert more == pytest.approx(4 * 0.5 * 6 * np.log(3))
    assert model.ebic(X) - model.bic(X) == pytest.approx(more / 2)


def test_criteria_in_both_codings_agree():
    X = (draw(network(4, 0.4, seed=1), 300, np.random.default_rng(0)) + 1) // 2
    wide = np.column_stack([X, np.arange(300) % 3])
    bits = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X)
    edges = np.zeros((5, 5), dtype=bool)
    edges[:4, :4] = True
    mixed = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(wide)
    # The last column apart: its own parameters are two.
    mixed.edges = edges
    mixed.coupling_ = mixed.coupling_.copy()
    mixed.coupling_[8:] = mixed.coupling_[:, 8:] = 0
    blocks = bits._model().potts()
    mixed.coupling_[:8, :8], mixed.intercept_[:8] = blocks.coupling, blocks.intercept
    mixed.intercept_[8:] = 0
    assert mixed.aic(wide) == pytest.approx(bits.aic(X) + 600 * np.log(3) + 2 * 2, abs=0.01)


def test_criteria_count_rows_by_their_weights():
    rng = np.random.default_rng(0)
    X, weights = draw(network(4, 0.4), 60, rng), rng.integers(1, 4, size=60)
    repeated = np.repeat(X, weights, axis=0)
    weighted = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X, sample_weight=weights)
    expected = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(repeated)
    for name in ("aic", "bic", "ebic"):
        found = getattr(weighted, name)(X, weights)
        assert found == pytest.approx(getattr(expected, name)(repeated), abs=1e-6)


def test_aic_estimates_the_held_out_pseudo_likelihood():
    """The mean over 200 data sets of what AIC says of new rows is within 5 standard errors."""
    truth, rng = network(4, 0.4, seed=1), np.random.default_rng(3)
    new = draw(truth, 200_000, rng)
    errors = []
    for _ in range(200):
        X = draw(truth, 400, rng)
        model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
        errors.append(model.aic(X) + 2 * 400 * model.log_pseudo_likelihood(new).mean())
    # The spread is that of -2 l itself; the trace is about 16.
    assert abs(np.mean(errors)) < 5 * np.std(errors) / np.sqrt(200)


def test_bic_finds_the_chain():
    X = draw(network(5, 0.0), 2000, np.random.default_rng(0))
    X[:, 1] = np.where(np.random.default_rng(1).random(2000) < 0.8, X[:, 0], X[:, 1])
    one = np.zeros((5, 5), dtype=bool)
    one[0, 1] = one[1, 0] = True
    models = [
        within(X, edges) for edges in (np.zeros_like(one), one, chain(5), ~np.eye(5, dtype=bool))
    ]
    assert np.argmin([model.bic(X) for model in models]) == 1
    assert np.argmin([model.ebic(X, gamma=1.0) for model in models]) == 1


def test_criteria_with_missing_cells():
    rng = np.random.default_rng(0)
    X = draw(network(4, 0.4), 300, rng).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    for missing in ("em", "observed"):
        model = FVBMPseudoLikelihood(missing=missing, alpha=0.0).fit(X)
        n = (model.aic(X) + 2 * model.log_pseudo_likelihood(X).sum()) / 2
        assert 10 < n < 20


# Joint Wald tests.


def test_wald_test_by_hand():
    X = draw(network(4, 0.4), 400, np.random.default_rng(3))
    result = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    places = [4, 6, 9]
    delta, C = result.estimate[places], result.covariance[np.ix_(places, places)]
    expected = delta @ np.linalg.solve(C, delta)
    for named in (result.names[places], np.isin(np.arange(10), places),
                  [("x0", "x1"), ("x3", "x0"), "m[x2,x3]"]):  # fmt: skip
        test = result.wald_test(named)
        assert test.statistic == pytest.approx(expected) and test.df == 3
        assert test.p_value == pytest.approx(chi2.sf(expected, 3))
    one = result.wald_test("m[x0,x2]")
    assert one.p_value == pytest.approx(result.p_value[5])
    p_value = result.pair_p_value()
    assert_allclose(p_value, result.coupling_matrix(result.p_value))
    assert_allclose(result.pair_p_value("holm")[np.triu_indices(4, 1)], holm(result.p_value[4:]))


def test_wald_errors():
    X = np.column_stack([draw(network(3, 0.4), 100, np.random.default_rng(3)), np.ones(100)])
    result = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    with pytest.raises(ValueError, match="no parameter 'm\\[x0,x9\\]'"):
        result.wald_test("m[x0,x9]")
    with pytest.raises(ValueError, match="names of two variables.*no variable 'x9'"):
        result.wald_test([("x0", "x9")])
    with pytest.raises(ValueError, match="names of two variables"):
        result.wald_test([("x0", "x1", "x2")])
    with pytest.raises(ValueError, match=r"'m\[x2,x0\]'. It is called 'm\[x0,x2\]'"):
        result.wald_test("m[x2,x0]")
    with pytest.raises(ValueError, match=r"list of tuples: \[\('x1', 'x0'\)\]"):
        result.wald_test(("x1", "x0"))
    with pytest.raises(ValueError, match=r"no parameter 'b\[x7\]'"):
        result.contrast({"b[x0]": 1, "b[x7]": -1})
    with pytest.raises(ValueError, match="no parameter 3. Give names as in `names`"):
        result.wald_test(3)
    with pytest.raises(ValueError, match="one parameter at least"):
        result.contrast({})
    with pytest.raises(ValueError, match="x3\\] is not estimated"):
        result.wald_test(["b[x0]", "b[x3]"])
    with pytest.raises(ValueError, match="one parameter at least"):
        result.wald_test(np.zeros(10, dtype=bool))
    assert np.isnan(result.pair_p_value()[3]).all()


def categories(n, rng):
    X = np.column_stack([rng.integers(q, size=n) for q in (2, 3, 4)])
    X[:, 1] = np.where(rng.random(n) < 0.3, X[:, 0] + 1, X[:, 1])
    return X


def test_blocks_have_the_rank_of_their_contrasts():
    X = categories(500, np.random.default_rng(0))
    result = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    assert result.wald_test([("x1", "x2")]).df == 6
    assert result.wald_test([("x0", "x1"), ("x0", "x2")]).df == 2 + 3
    p = result.pair_p_value()
    assert p.shape == (3, 3) and p[0, 1] < 1e-6 and p[1, 2] > 1e-4
    # Whatever contrasts represent the block.
    places = np.flatnonzero((result.columns[0] == 1) & (result.columns[1] == 2))
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(6, len(places)))
    C = mix @ result.covariance[np.ix_(places, places)] @ mix.T
    other = wald_test(mix @ result.estimate[places], C)
    assert other.statistic == pytest.approx(result.wald_test([("x1", "x2")]).statistic)


def test_p_values_of_blocks_are_uniform_without_interaction():
    """Of 300 independent tables, 5 % are significant; a false alarm has the probability 1e-6."""
    rng, small = np.random.default_rng(0), 0
    for _ in range(300):
        X = np.column_stack([rng.integers(q, size=300) for q in (3, 3)])
        small += FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X).pair_p_value()[0, 1] < 0.05
    low, high = binom.interval(1 - 1e-6, 300, 0.05)
    assert low <= small <= high


def test_equal_hypotheses_count_once():
    rng = np.random.default_rng(0)
    X = categories(500, rng)
    result = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X)
    p, adjusted = result.p_value, result.adjusted_p_value("holm")
    once = np.array(["x0=0" not in name for name in result.names])
    assert_allclose(adjusted[once], holm(p[once]))
    assert_allclose(adjusted[np.isclose(p, p[0], rtol=1e-9)], adjusted[0])
    # Four parameters of two binary columns are one hypothesis.
    bits = np.column_stack([X[:, 0], rng.integers(2, size=500), X[:, 1]])
    result = FVBMPseudoLikelihood(alpha=0.0).fit(bits).inference(bits)
    n_hypotheses = (1 + 1 + 3) + (1 + 3 + 3)
    assert len(np.unique(result._twins())) == n_hypotheses
    # Also with null hypotheses of other values, if these are of a network.
    values = rng.normal(size=(7, 7))
    null = as_parameters(*to_zero_sum(values + values.T, values[0], [2, 2, 3]), [2, 2, 3])
    null = null.round(12)  # the signs are those of the sums of rows and columns
    assert len(np.unique(replace(result, null=null)._twins())) == n_hypotheses
    # Null hypotheses that contradict each other are different ones.
    odd = FVBMPseudoLikelihood(alpha=0.0).fit(X).inference(X, null=0.1)
    assert len(np.unique(odd._twins())) == len(odd.names)


# Likelihood ratios.


def test_likelihood_ratio_by_hand():
    X = draw(network(4, 0.3), 300, np.random.default_rng(0))
    full, small = FVBMPseudoLikelihood(tol=1e-10, alpha=0.0).fit(X), within(X, chain(4))
    test = full.likelihood_ratio(X, small)
    expected = full.log_pseudo_likelihood(X).sum() - small.log_pseudo_likelihood(X).sum()
    assert test.statistic == pytest.approx(2 * expected) and test.df == 3
    inference = full.inference(X)
    lost = [5, 6, 8]  # 02, 03, 13
    problem = PseudoLikelihood(np.ascontiguousarray(X.T.astype(float)), np.ones(300))
    H = problem.information(problem.at(full.coupling_, full.intercept_))
    block = np.ix_(lost, lost)
    eigenvalues = np.linalg.eigvals(
        np.linalg.solve(np.linalg.inv(H)[block], inference.covariance[block])
    )
    assert_allclose(np.sort(test.weights), np.sort(eigenvalues.real), rtol=1e-8)
    assert test.p_value == pytest.approx(weighted_chi2_sf(test.statistic, test.weights))
    assert "weights" not in repr(test)
    figures = test.statistic, test.p_value, full.aic(X), full.bic(X), full.ebic(X, gamma=1.0)
    assert {type(figure) for figure in figures} == {float}


def test_penalised_likelihood_ratios_in_both_codings_agree():
    """A column of three values apart makes a network of categories of the same bits."""
    bits = (draw(network(4, 0.4, seed=1), 300, np.random.default_rng(0)) + 1) // 2
    wide, found = np.column_stack([bits, np.arange(300) % 3]), []
    for X in (bits, wide):
        models = []
        for mask in (~np.eye(4, dtype=bool), chain(4)):
            edges = np.zeros((X.shape[1],) * 2, dtype=bool)
            edges[:4, :4] = mask
            models.append(FVBMPseudoLikelihood(edges=edges, alpha=0.05, tol=1e-10).fit(X))
        found.append(models[0].likelihood_ratio(X, models[1]))
    # Couplings of bits are four numbers of a block, of which each has a quarter of the penalty.
    assert found[1].statistic == pytest.approx(found[0].statistic, rel=1e-4)
    assert found[1].df == found[0].df == 3


def test_likelihood_ratios_of_true_networks_are_uniform():
    """Of 300 data sets 5 % and 50 % are below these levels; false alarms have probability 2e-6."""
    edges, rng = chain(4), np.random.default_rng(0)
    truth, p_values = network(4, 0.5, edges=edges), []
    for _ in range(300):
        X = draw(truth, 500, rng)
        p_values.append(
            FVBMPseudoLikelihood(alpha=0.0).fit(X).likelihood_ratio(X, within(X, edges)).p_value
        )
    for level in (0.05, 0.5):
        low, high = binom.interval(1 - 1e-6, 300, level)
        assert low <= np.sum(np.array(p_values) < level) <= high


def test_a_wrong_network_is_rejected():
    X = draw(network(4, 0.5), 2000, np.random.default_rng(0))
    test = FVBMPseudoLikelihood(alpha=1e-4).fit(X).likelihood_ratio(X, within(X, chain(4), 1e-4))
    assert test.p_value < 1e-10 and test.weights.min() > 0


def test_networks_that_are_not_nested():
    X = draw(network(4, 0.3), 300, np.random.default_rng(0))
    full, small = FVBMPseudoLikelihood(alpha=0.0).fit(X), within(X, chain(4))
    with pytest.raises(ValueError, match="the other couples column 0 with column 2"):
        small.likelihood_ratio(X, full)
    triple = FVBMPseudoLikelihood(terms=[(0, 1, 2)]).fit(X)
    for one, other in ((full, triple), (triple, full)):
        with pytest.raises(ValueError, match="has 1 term of more"):
            one.likelihood_ratio(X, other)
    with pytest.raises(ValueError, match="both have the same couplings"):
        full.likelihood_ratio(X, full)
    with pytest.raises(ValueError, match="alpha is 0 and 0.1"):
        full.likelihood_ratio(X, within(X, chain(4), 0.1))
    with pytest.raises(ValueError, match="different columns"):
        full.likelihood_ratio(X, FVBMPseudoLikelihood(alpha=0.0).fit(X[:, :3]))
    with pytest.raises(ValueError, match="the other is a SDCPRBM"):
        full.likelihood_ratio(X, SDCPRBM(2, max_iter=1).fit((X + 1) // 2))
    small.coupling_ = -small.coupling_
    with pytest.raises(ValueError, match="Fit both to these rows"):
        small.likelihood_ratio(X, within(X, np.zeros((4, 4), dtype=bool)))
    Y = X.astype(float)
    Y[0, 0] = np.nan
    with pytest.raises(ValueError, match="wald_test, which has these"):
        full.likelihood_ratio(Y, small)


def test_inference_within_a_mask():
    """Standard errors are those of the network without the other couplings."""
    X = draw(network(4, 0.3), 300, np.random.default_rng(0))
    apart = np.zeros((4, 4), dtype=bool)
    apart[:2, :2] = apart[2:, 2:] = True
    result = within(X, apart).inference(X)
    first, second = (
        FVBMPseudoLikelihood(tol=1e-9, alpha=0.0).fit(X[:, c]) for c in ([0, 1], [2, 3])
    )
    places = [0, 1, 4], [2, 3, 9]
    for place, model, c in zip(places, (first, second), ([0, 1], [2, 3]), strict=True):
        plain = model.inference(X[:, c], covariance="sandwich")
        found = within(X, apart).inference(X, covariance="sandwich")
        assert_allclose(found.std_err[place], plain.std_err, rtol=1e-5)
    assert_array_equal(np.isnan(result.std_err), np.isin(np.arange(10), [5, 6, 7, 8]))
