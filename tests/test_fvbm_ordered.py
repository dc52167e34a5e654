"""The penalty that knows the order of levels, and probabilities cell by cell."""

import numpy as np
import pandas as pd
import pytest
from networks import assert_share, fit, items
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import binom

from oracles import differences
from private import CategoricalPseudoLikelihood, CouplingPrior, holm, of_order, of_values
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics


def test_trends_are_cheaper_than_jumps():
    """That of two trends is as for bits with the coupling of their ends, 3 times that of bits."""
    shares = np.full(4, 0.25)
    bases = [of_order(shares, np.arange(4.0)), of_values(shares), of_values(np.full(2, 0.5))]
    prior = CouplingPrior(bases, 0.3)
    first, ends = prior.precision() / 0.3, [0, 3, 7, 9]
    ordered, nominal, bits = (slice(*pair) for pair in zip(ends[:-1], ends[1:], strict=True))
    assert_allclose(first[ordered, ordered], 9 * np.outer([1, 3, 6], [1, 3, 6]))
    assert_allclose(first[ordered, nominal], 1.5 * np.outer([1, 3, 6], np.ones(4)))
    m = 0.4  # J is m where both bits are the same, and -m where they are not
    block = m * np.array([[1, -1], [-1, 1]])
    assert_allclose((first[bits, bits] * block**2).sum() / 2, m**2 / 2)
    before = prior.precision()
    prior.estimate(np.ones((9, 9)), np.eye(9), np.eye(9), 100.0)
    assert_array_equal(prior.precision(), before)


@pytest.fixture(scope="module")
def ratings():
    """60 rows of two ratings that rise together, a word and a bit."""
    rng = np.random.default_rng(3)
    mood = rng.normal(size=60)
    one, two = (np.clip(np.round(mood + rng.normal(size=60)) + 2, 0, 4) for _ in range(2))
    return pd.DataFrame({
        "one": one.astype(int),
        "two": pd.Categorical(two.astype(int), range(5), ordered=True),
        "word": rng.choice(["a", "b", "c"], 60),
        "bit": rng.integers(2, size=60),
    })  # fmt: skip


def test_ordinal_columns(ratings):
    model = fit(ratings, alpha=0.1, columns={"one": "ordinal", "two": "ordinal"})
    assert model.ordered_.tolist() == [True, True, False, False]
    same = fit(ratings, alpha=0.1, columns=["ordinal", "ordinal", "nominal", "ordinal"])
    assert_array_equal(same.coupling_, model.coupling_)
    assert model.solver_ == "lbfgs"


def test_the_fit_is_the_maximum_with_the_penalty(ratings):
    """At the maximum its gradient vanishes, and other columns of order give another maximum."""
    codes = np.column_stack([ratings["one"], ratings["two"].cat.codes]).astype(np.int16)
    model = fit(codes, alpha=0.2, columns={0: "ordinal"}, tol=1e-12)
    problem = CategoricalPseudoLikelihood(codes, model.n_values_, np.ones(60))
    smooth = of_order(np.bincount(codes[:, 0]) / 60, np.arange(5.0)).features
    costs = np.array([1, 3, 6, 10])[:, None] * 0.2 * 60 / 2 * 3 / 2

    def objective(parameters):
        fields, coefficients = parameters[:10], parameters[10:].reshape(4, 5)
        block, nothing = smooth @ coefficients, np.zeros((5, 5))
        theta = problem.pack(np.block([[nothing, block], [block.T, nothing]]), fields)
        return problem.evaluate(theta)[0] - (costs * coefficients**2).sum()

    block = np.linalg.pinv(smooth - smooth.mean(axis=0)) @ model.coupling_[:5, 5:]
    fields = model.intercept_ - np.append(np.zeros(5), smooth.mean(axis=0) @ block)
    found = np.append(fields, block)
    assert np.abs(differences(objective, found)).max() < 1e-2
    plain = fit(codes, alpha=0.2, tol=1e-12)
    assert np.abs(plain.coupling_ - model.coupling_).max() > 0.01


def test_criteria_know_the_penalty():
    """tr(H⁻¹ J) of an ordinal column and a bit, by finite differences of each row's terms."""
    rng = np.random.default_rng(0)
    one = rng.integers(4, size=150)
    X = np.column_stack([one, rng.random(150) < 0.2 + 0.2 * one])
    model = fit(X, alpha=0.05, columns={0: "ordinal"}, tol=1e-10)
    smooth = of_order(np.bincount(one) / 150, np.arange(4.0)).features
    smooth -= smooth.mean(axis=0)
    back, spin = np.linalg.pinv(smooth), 2 * X[:, 1] - 1
    block = model.coupling_[:4, 5]
    found = np.concatenate([back @ model.intercept_[:4], [model.intercept_[5]], back @ block])
    penalty = np.append(np.zeros(4), 0.05 * 150 * np.array([1, 3, 6]) * 3)  # K of 0 and of 1

    def of_rows(theta):
        fields, bit, coupling = theta[:3], theta[3], theta[4:]
        own = (fields + spin[:, None] * coupling) @ smooth.T
        terms = own[np.arange(150), one] - logsumexp(own, axis=1)
        return terms - np.logaddexp(0, -2 * spin * (bit + smooth[one] @ coupling))

    def slopes(theta):
        return differences(of_rows, theta, 1e-4)

    scores = slopes(found)
    assert np.abs(scores.sum(axis=1) - penalty * found).max() < 1e-3
    information = -differences(lambda theta: slopes(theta).sum(axis=1), found, 1e-4)
    information += np.diag(penalty)
    n_parameters = (statistics.bic(model, X) - statistics.aic(model, X)) / (np.log(150) - 2)
    assert_allclose(n_parameters, np.trace(np.linalg.solve(information, scores @ scores.T)), 1e-5)


def test_order_makes_no_difference_without_penalty_or_levels(ratings):
    codes = np.column_stack([ratings["one"] > 2, ratings["bit"], ratings["two"].cat.codes > 1])
    for X, alpha in ((codes.astype(int), 0.1), (ratings[["word", "one"]], 0.0)):
        plain, ordered = fit(X, alpha=alpha), fit(X, alpha=alpha, columns="ordinal")
        assert not ordered.ordered_.any() and ordered.solver_ == "newton"
        assert_array_equal(ordered.coupling_, plain.coupling_)


def test_ordered_types_are_ordinal(ratings):
    """Of pandas, with more than two values; categories of numbers without an order are nominal."""
    X = ratings.assign(
        word=pd.Categorical(ratings["word"], ["b", "a", "c"], ordered=True),
        bit=pd.Categorical(np.where(ratings["bit"], "yes", "no"), ["no", "yes"], ordered=True),
        one=pd.Categorical(ratings["one"]),
    )
    model = FVBMPseudoLikelihood().fit(X)
    kinds = ["nominal", "ordinal", "ordinal", "binary"]
    assert list(model.columns_.values()) == kinds and model.ordered_.tolist()[:3] == [0, 1, 1]
    assert FVBMPseudoLikelihood(columns={"two": "nominal"}).fit(X).columns_["two"] == "nominal"
    # Their weak couplings are shrunk, by more than the least strength of .09.
    model = FVBMPseudoLikelihood().fit(X[["word", "bit", "one"]])
    assert model.ordered_.any() and model.alpha_[0, 2] > 1


# Trends, which standard errors and tests of ordinal columns are about.


def log_conditionals(theta, codes):
    """ln p(x_j | others) of each row, by single loops; θ has h of levels but the first, then φ."""
    n, d = codes.shape
    q = codes.max(axis=0) + 1
    fields = np.split(theta[: (q - 1).sum()], np.cumsum(q - 1)[:-1])
    phi = np.zeros((d, d))
    phi[np.triu_indices(d, 1)] = theta[(q - 1).sum() :]
    phi += phi.T
    scores = codes - (q - 1) / 2
    total = np.zeros(n)
    for j in range(d):
        levels = np.arange(q[j]) - (q[j] - 1) / 2
        field = np.append(0, fields[j]) + np.outer(scores @ phi[j], levels)
        total += field[np.arange(n), codes[:, j]] - logsumexp(field, axis=1)
    return total


def test_trends_are_those_of_a_plain_implementation():
    rng = np.random.default_rng(3)
    X = rng.integers((4, 5, 2), size=(150, 3))
    X[:, 1] = np.clip(X[:, 0] + rng.integers(-1, 3, 150), 0, 4)
    kinds = {0: "ordinal", 1: "ordinal"}
    model = FVBMPseudoLikelihood(columns=kinds, tol=1e-10).fit(X)
    result = statistics.inference(model, X, covariance="sandwich")
    start = np.zeros(3 + 4 + 1 + 3)
    best = minimize(lambda theta: -log_conditionals(theta, X).sum(), start, tol=1e-12).x

    def slopes(theta):
        return differences(lambda theta: log_conditionals(theta, X), theta, 1e-4)

    scores = slopes(best)
    information = -differences(lambda theta: slopes(theta).sum(axis=1), best, 1e-4)
    covariance = np.linalg.inv(information) @ (scores @ scores.T) @ np.linalg.inv(information)
    phi, spread = best[-3:], np.sqrt(covariance.diagonal()[-3:])
    # From the lowest levels of both columns to the highest ones.
    corner = {"m[x0=3,x1=4]": (0, 1.5 * 2), "m[x0=3,x2=1]": (1, 1.5 / 2), "m[x1=4,x2=1]": (2, 1)}
    places = [result.names.tolist().index(name) for name in corner]
    which, factor = np.array(list(corner.values())).T
    assert_allclose(result.estimate[places], phi[which.astype(int)] * factor, atol=1e-5)
    assert_allclose(result.std_err[places], spread[which.astype(int)] * factor, rtol=1e-4)
    frame = result.to_frame("holm")
    assert frame.index.tolist() == [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    assert (frame["df"] == 1).all() and (np.sign(frame["coupling"]) == np.sign(phi)).all()
    assert_allclose(frame["statistic"], (phi / spread) ** 2, rtol=1e-3)
    assert_allclose(frame["p_value"], result.pair_p_value()[np.triu_indices(3, 1)])
    assert_allclose(frame["adjusted_p_value"], holm(frame["p_value"].values))
    norms = statistics.to_networkx(model, result).edges
    assert_allclose(frame["coupling"].abs(), [norms[pair]["weight"] for pair in frame.index])
    assert result.wald_test([("x1", "x0")]).statistic == frame["statistic"].iloc[0]


def test_a_trend_is_one_hypothesis_and_none_of_the_middle(ratings):
    X = ratings[["one", "two"]].dropna()
    model = FVBMPseudoLikelihood(columns=("ordinal", range(5))).fit(X)
    result = statistics.inference(model, X)
    of_pair = result.columns[0] < result.columns[1]
    middle = np.array(["=2" in name for name in result.names]) & of_pair
    assert np.isnan(result.std_err[middle]).all() and middle.sum() == 9
    assert np.isfinite(result.std_err[~middle]).all()
    p = result.p_value[of_pair & ~middle]
    assert_allclose(p, p[0])
    assert result.contrast({"m[one=4,two=4]": 1, "m[one=0,two=4]": -1}).std_err[0] > 0
    with pytest.raises(ValueError, match=r"one=0,two=2\] is not estimated"):
        result.wald_test("m[one=0,two=2]")


def test_a_level_that_does_not_occur_takes_no_trend_its_sign(ratings):
    X = ratings[["one", "two"]].dropna()
    results = [
        statistics.inference(FVBMPseudoLikelihood(columns=("ordinal", range(n))).fit(X), X)
        for n in (5, 6)
    ]
    known, more = (result.to_frame().iloc[0] for result in results)
    assert known["df"] == more["df"] == 1 and known["coupling"] * more["coupling"] > 0
    assert_allclose(more["statistic"], known["statistic"], rtol=1e-6)
    with pytest.raises(ValueError, match="has no pairs"):
        results[0].contrast({"m[one=4,two=4]": 1}).to_frame()


@pytest.mark.parametrize("share", [0, 0.15])
def test_p_values_of_trends_are_uniform(share):
    """Of 6 × 15 tests that are nearly independent, 5 %; a false alarm has the probability 1e-6."""
    small, rng = [], np.random.default_rng(0)
    for _ in range(15):
        X = np.floor(5 * rng.random((150, 4)) ** (0.7, 1, 1.2, 1.5))  # some levels are rare
        X[rng.random(X.shape) < share] = np.nan
        result = statistics.inference(FVBMPseudoLikelihood(columns="ordinal").fit(X), X)
        small.append(result.pair_p_value()[np.triu_indices(4, 1)] < 0.05)
    assert_share(np.mean(small), 90, 0.05)


@pytest.mark.filterwarnings("ignore:The log pseudo-likelihood has no maximum")
def test_a_trend_is_found_where_many_couplings_are_not():
    """At 300 rows a trend's power was .85 and that of 16 couplings .12; 1e-6 for each bound."""
    found = np.zeros(2)
    for seed in range(40):
        X = items(300, 2, seed, correlation=0.2)
        for k, kind in enumerate(("ordinal", "nominal")):
            model = FVBMPseudoLikelihood(columns=kind).fit(X)
            found[k] += statistics.inference(model, X).pair_p_value()[0, 1] < 0.05
    assert found[0] > binom.ppf(1e-6, 40, 0.8) > binom.isf(1e-6, 40, 0.12) >= found[1]


def test_criteria_are_those_of_trends():
    X = np.digitize(items(400, 3), [1, 3])  # without empty cells
    model = FVBMPseudoLikelihood(columns="ordinal").fit(X)
    plain = FVBMPseudoLikelihood(alpha=0).fit(X)
    # 6 contrasts of intercepts, and 3 couplings in place of 12; each is in two regressions.
    n_parameters = (statistics.bic(model, X) - statistics.aic(model, X)) / (np.log(400) - 2)
    assert n_parameters == pytest.approx(6 + 3 * 2, rel=0.15)
    assert statistics.bic(model, X) < statistics.bic(plain, X)
    nominal = FVBMPseudoLikelihood().fit(X)
    pairs = SparseFVBM(edges=[(0, 1)], alpha=0).fit(X)
    assert statistics.likelihood_ratio(nominal, X, pairs).df == 8
    pairs = SparseFVBM(columns="ordinal", edges=[(0, 1)], alpha=0).fit(X)
    with pytest.raises(ValueError, match="one has trends of ordinal columns"):
        statistics.likelihood_ratio(model, X, pairs)
