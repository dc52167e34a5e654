"""Tests of tables with numbers: a network of levels, trends and normal scores."""

import pickle
from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import assert_share
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from scipy.stats import norm

from oracles import differences
from private import Mixed, NumberEstimates, ScoreColumn, _bar, levels_of, normal_scores
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.datasets import load_penguins
from sklearn_boltz.inspection import CouplingDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
seeds = st.integers(0, 2**32 - 1)

simulated = pytest.mark.parametrize(
    ("n_tables", "gaps"),
    [(8, 0.0), (2, 0.1), *(pytest.param(40, p, marks=pytest.mark.slow) for p in (0.0, 0.1))],
)


def inference(X, **options):
    """Where no cell is missing, the couplings of the network have no part in it."""
    has_gaps = pd.DataFrame(X).isna().any(axis=None)
    model = FVBMPseudoLikelihood() if has_gaps else FVBMPseudoLikelihood(max_iter=1)
    return statistics.inference(model.fit(X), X, **options)


def pair(frame, one, other):
    """A row of the table of pairs, whichever comes first."""
    return frame.loc[(one, other) if (one, other) in frame.index else (other, one)]


def chain(n, rng, slope=0.8):
    """Columns of all kinds that depend on z, and given z on nothing else."""
    z, noise = rng.normal(size=n), lambda: rng.normal(size=n)
    utility = rng.gumbel(size=(n, 3)) + np.outer(z, [-slope, 0, slope])
    likert = np.digitize(slope * z + 0.7 * noise(), [-1, -0.3, 0.5, 1.3])
    return pd.DataFrame({
        "z": z, "x": slope * z + 0.6 * noise(), "y": np.exp(slope * z + 0.6 * noise()),
        "likert": pd.Categorical(likert, range(5), ordered=True),
        "word": np.array(list("abc"))[utility.argmax(axis=1)],
        "bit": np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * slope * z)), "yes", "no"),
    })  # fmt: skip


def independent(n, rng):
    """Independent columns of all kinds, with heavy tails, many zeros and rare values."""
    return pd.DataFrame({
        "word": rng.choice(list("abc"), n, p=[0.1, 0.3, 0.6]),
        "rare": rng.choice(list("abcd"), n, p=[0.02, 0.02, 0.26, 0.7]),
        "likert": pd.Categorical(rng.integers(5, size=n), range(5), ordered=True),
        "tail": rng.standard_cauchy(n),
        "spend": np.where(rng.random(n) < 0.4, 0.0, np.exp(rng.normal(size=n))),
    })  # fmt: skip


# The pseudo-likelihood.


def mixed_of(rng, n=60):
    """A nominal column, an ordinal one and two of scores, and some of their couplings."""
    known = np.ones(n, dtype=bool)
    codes = [np.append(np.arange(q), rng.integers(q, size=n - q)) for q in (3, 4)]
    columns = [
        levels_of(own, known, trend) for own, trend in zip(codes, (False, True), strict=True)
    ]
    columns += [ScoreColumn(z) for z in rng.normal(size=(2, n))]
    free = ~np.eye(4, dtype=bool)
    free[0, 3] = free[3, 0] = rng.random() < 0.5
    return Mixed(columns, rng.integers(1, 4, size=n).astype(float), free)


def log_pseudo_likelihood(mixed, theta):
    """By single columns: softmax of levels, and a normal density of scores."""
    total, d = 0.0, len(mixed.column)
    coupling = np.zeros((d, d))
    coupling[mixed.pairs] = theta[d:]
    coupling += coupling.T
    for j, column in enumerate(mixed.columns):
        own = mixed.column == j
        fields = theta[:d][own] + mixed.features @ coupling[:, own]
        if isinstance(column, ScoreColumn):
            found = norm.logpdf(column.z, fields[:, 0] / fields[:, 1], fields[:, 1] ** -0.5)
            found += np.log(2 * np.pi) / 2
        else:
            found = log_softmax(fields @ column.basis.T, axis=1)[np.arange(len(fields)), column.own]
        total += mixed.weights @ found
    return total


@settings(max_examples=cases(10))
@given(seeds)
def test_the_pseudo_likelihood_and_its_derivatives(seed):
    rng = np.random.default_rng(seed)
    mixed = mixed_of(rng)
    theta = mixed.start() + 0.1 * rng.normal(size=mixed.n_parameters)
    point = mixed.at(theta)
    assert_allclose(point.value, log_pseudo_likelihood(mixed, theta))
    slope = differences(lambda theta: log_pseudo_likelihood(mixed, theta), theta, 1e-5)
    assert_allclose(point.gradient, slope, rtol=1e-5, atol=1e-4)
    second = differences(lambda theta: mixed.at(theta).gradient, theta, 1e-5)
    assert_allclose(mixed.information(point), -second, rtol=1e-5, atol=1e-4)
    best = mixed.fit()[0]
    assert_allclose(best.gradient, 0, atol=1e-2)
    assert best.value > point.value


@pytest.mark.parametrize("jackknife", [False, True])
def test_without_numbers_it_is_the_network_of_trends(jackknife):
    """The same maximum, covariance and separated parameters, by other code."""
    X = chain(300, np.random.default_rng(0))[["likert", "word", "bit"]]
    X["place"] = np.where(X["word"] == "a", "here", np.where(X["bit"] == "yes", "there", "far"))
    model = FVBMPseudoLikelihood(tol=1e-9).fit(X)
    every = np.ones((4, 4), dtype=bool)
    estimates = NumberEstimates.of(model, X, np.ones(300), every, jackknife, _bar.NoBar())
    estimate, covariance, directions = estimates.results()
    result = statistics.inference(model, X, covariance="jackknife" if jackknife else "sandwich")
    known = np.isfinite(result.std_err)
    assert 10 < known.sum() < len(known)
    assert_allclose(estimate[known], result.estimate[known], atol=1e-3)
    errors = np.sqrt(covariance.diagonal()[known])
    assert_allclose(errors, result.std_err[known], rtol=1e-2)
    assert_array_equal(np.abs(directions).max(axis=1) > 1e-6, result.separated)


def test_two_numbers_have_the_correlation_of_their_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ [[1, 0.5], [0, 1]]
    X[:, 1] = np.exp(3 * X[:, 1])
    (row,) = inference(X).to_frame().itertuples()
    scores = [normal_scores(x, np.ones(400))(x) for x in X.T]
    r = np.corrcoef(scores)[0, 1]
    assert_allclose(row.coupling, r, atol=1e-6)
    assert_allclose(row.std_err, (1 - r**2) / 20, rtol=0.2)
    assert row.ci_low < r < row.ci_high and row.df == 1
    stretched = inference(np.arctan(X)).to_frame()
    assert_allclose(stretched["statistic"], row.statistic, rtol=1e-6)


def test_weights_are_counts():
    rng = np.random.default_rng(1)
    X, w = chain(120, rng), rng.integers(1, 4, size=120)
    repeated = X.loc[X.index.repeat(w)]
    weighted = statistics.inference(
        FVBMPseudoLikelihood().fit(X, sample_weight=w), X, sample_weight=w, covariance="sandwich"
    )
    result = inference(repeated, covariance="sandwich")
    assert_allclose(weighted.estimate, result.estimate, atol=1e-6)
    # The errors are those of fewer, different rows where some are equal.
    assert_allclose(weighted.std_err, result.std_err, rtol=1e-3)


def test_the_jackknife_leaves_out_rows():
    """Against refits: within 8 %, as it is a step of Newton's method in place of each."""
    n = 150
    mixed = mixed_of(np.random.default_rng(0), n)
    mixed = Mixed(mixed.columns, np.ones(n), mixed.free)
    best, information, _ = mixed.fit()
    regressions, inverse = mixed.regressions(best.theta), np.linalg.inv(information)
    products = regressions.score_products(inverse)
    without = []
    for i in range(n):
        weights = np.ones(n)
        weights[i] = 1e-9
        without.append(Mixed(mixed.columns, weights, mixed.free).fit()[0].theta)
    spread = np.sqrt(((np.array(without) - best.theta) ** 2).sum(axis=0))
    assert_allclose(np.sqrt((inverse @ products @ inverse).diagonal()), spread, rtol=0.08)


# The table.


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def result(penguins):
    return inference(penguins)


def test_penguins(penguins, result):
    """Numbers, strings and gaps, by default."""
    frame = result.to_frame()
    assert np.isfinite(frame[["coupling", "df", "statistic", "p_value"]]).all(axis=None)
    numbers, complete = penguins.columns[2:6], inference(penguins.dropna()).to_frame()
    for one, other in combinations(numbers, 2):
        row = pair(frame, one, other)
        assert row["df"] == 1 and 12 <= row["joint_df"] <= 16 and abs(row["coupling"]) < 1
        assert row["ci_low"] < row["coupling"] < row["ci_high"]
    for number in numbers:
        assert pair(frame, "sex", number)["df"] == 1
        species = pair(frame, "species", number)
        assert species["df"] == 2 and 6 <= species["joint_df"] <= 8 and species["p_value"] < 1e-6
        # Two rows without a number tell nothing of it, whatever is drawn for them.
        ratio = species["p_value"] / pair(complete, "species", number)["p_value"]
        assert 1e-4 < ratio < 1e4
        assert species["joint_p_value"] < 1e-4 and np.isnan(species["std_err"])
    kinds = pair(frame, "species", "island")
    assert kinds["df"] == kinds["joint_df"] == 4 and kinds["p_value"] < 1e-10
    assert kinds["note"].startswith("separated")
    assert result.names[0] == "b[species=Adelie]" and "m[bill_length_mm,sex=male]" in result.names
    again = pickle.loads(pickle.dumps(result)).to_frame()
    pd.testing.assert_frame_equal(again, frame)


def test_penguins_as_pictures_and_graphs(penguins, result):
    matplotlib.use("agg")
    model = FVBMPseudoLikelihood().fit(penguins)
    display = CouplingDisplay.from_estimator(model, penguins, kind="graph", layout="circle")
    found = np.argwhere(np.triu(result.adjusted_p_value() < 0.05))
    assert 5 < len(found) < 21
    assert sorted(display.pairs_.tolist()) == found.tolist()
    matplotlib.pyplot.close(display.figure_)
    pytest.importorskip("networkx")
    graph, frame = statistics.to_networkx(model, result), result.to_frame()
    edge = graph.edges["bill_length_mm", "flipper_length_mm"]
    row = pair(frame, "bill_length_mm", "flipper_length_mm")
    assert edge["partial_correlation"] == row["coupling"] and edge["p_value"] == row["p_value"]
    assert list(graph.nodes["body_mass_g"]) == ["intercept"] and len(graph.nodes["island"]) == 3


def test_constant_and_empty_columns_dates_and_unused_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    X = pd.DataFrame({
        "x": x, "one": 1.5, "none": np.nan,
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta((100 * x).round(), "D"),
        "city": pd.Categorical(rng.choice(["Oslo", "Rome"], 200), ["Oslo", "Rome", "Nowhere"]),
    })  # fmt: skip
    result = inference(X)
    known = [not any(word in name for word in ("one", "Nowhere")) for name in result.names]
    assert_array_equal(np.isfinite(result.std_err), known)
    frame = result.to_frame()
    assert pair(frame, "x", "day")["p_value"] < 1e-50
    assert pair(frame, "x", "city")["df"] == 1
    assert frame["p_value"].isna().sum() == 7


@pytest.mark.parametrize("kinds", ["auto", {"x": "number", "y": "number"}, {"y": "binned"}])
def test_ordinal_columns_have_trends_beside_any_numbers(kinds):
    X = chain(400, np.random.default_rng(2)).assign(other=lambda X: X["likert"])
    X["other"] = pd.Categorical(np.random.default_rng(0).permutation(X["likert"]), ordered=True)
    frame = statistics.inference(FVBMPseudoLikelihood(columns=kinds).fit(X), X).to_frame()
    assert pair(frame, "likert", "other")[["df", "joint_df"]].tolist() == [1, 16]
    assert pair(frame, "likert", "z")[["df", "joint_df"]].tolist() == [1, 16]


def test_a_number_that_follows_from_others_is_refused():
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match="The others determine column [12]: leave it"):
        inference(np.column_stack([x, 2 * x[:, 1]]))


def test_selected_edges_of_a_table_with_numbers():
    X = chain(500, np.random.default_rng(3))
    result = statistics.inference(SparseFVBM(), X, split=0.5, random_state=0)
    p_value = result.pair_p_value()
    assert p_value[0, 1] < 1e-6 and result.to_frame().loc[("z", "x"), "df"] == 1
    assert np.isnan(p_value).any()  # what was not selected


# Sizes and powers.


@simulated
def test_what_depends_on_a_third_column_alone_is_not_found(gaps, n_tables):
    """10 pairs of each table, 5 % each; of all couplings likewise. A false alarm: 1e-6."""
    rng, small = np.random.default_rng(0), []
    for _ in range(n_tables):
        X = chain(400, rng)
        X = X.mask(rng.random(X.shape) < gaps) if gaps else X
        frame = inference(X).to_frame().drop("z")
        assert len(frame) == 10
        small.append(frame[["p_value", "joint_p_value"]] < 0.05)
    for share in np.mean(small, axis=(0, 1)):
        assert_share(share, 10 * n_tables, 0.05)


@simulated
def test_independent_columns_are_not_found(gaps, n_tables):
    """Also where values have four of 200 rows, beside which Wald's test rejects a half."""
    rng, small = np.random.default_rng(0), []
    for _ in range(n_tables):
        X = independent(200, rng)
        X = X.mask(rng.random(X.shape) < gaps) if gaps else X
        small.append(inference(X).to_frame()[["p_value", "joint_p_value"]] < 0.05)
    for share in np.mean(small, axis=(0, 1)):
        assert_share(share, 10 * n_tables, 0.045)


def test_a_dependence_that_is_no_trend_is_found_jointly():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    middle = np.where(np.abs(x) < 0.7, rng.integers(1, 3, 300), rng.choice([0, 3], 300))
    X = pd.DataFrame({"x": x, "far": 0.7 * np.abs(x) + rng.normal(size=300)})
    X["middle"] = pd.Categorical(middle, ordered=True)
    frame = inference(X).to_frame()
    for other in ("far", "middle"):
        row = pair(frame, "x", other)
        assert row["p_value"] > 1e-3 and row["joint_p_value"] < 1e-4


@pytest.mark.slow  # statsmodels takes long to import
def test_statistics_are_those_of_regressions():
    """Of a number on the others, a logistic one and one of an ordinal column, on scores."""
    linear = pytest.importorskip("statsmodels.api")
    ordinal = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    rng = np.random.default_rng(5)
    X = chain(1500, rng)
    X["x"] += 0.15 * np.log(X["y"])
    X["bit"] = np.where(rng.random(1500) < 1 / (1 + np.exp(-X["z"] - 0.3 * X["x"])), "yes", "no")
    frame = inference(X).to_frame()
    scores = {c: normal_scores(X[c].to_numpy(), np.ones(1500))(X[c].to_numpy()) for c in "xyz"}
    words = pd.get_dummies(X["word"], dtype=float)[["b", "c"]]
    design = pd.DataFrame(scores).assign(likert=X["likert"].astype(float), bit=X["bit"] == "yes")
    design = pd.concat([design.astype(float), words], axis=1)
    found = linear.OLS(design["x"], linear.add_constant(design.drop(columns="x"))).fit().tvalues
    assert_allclose(found["y"] ** 2, pair(frame, "x", "y")["statistic"], rtol=0.15)
    found = linear.Logit(design["bit"], linear.add_constant(design.drop(columns="bit"))).fit(disp=0)
    assert_allclose(found.tvalues["x"] ** 2, pair(frame, "x", "bit")["statistic"], rtol=0.25)
    others = design.drop(columns="likert")
    found = ordinal.OrderedModel(X["likert"], others, distr="logit").fit(method="bfgs", disp=0)
    assert_allclose(found.tvalues["z"] ** 2, pair(frame, "z", "likert")["statistic"], rtol=0.25)


@pytest.mark.parametrize("gaps", [0, 0.1])
def test_columns_that_determine_each_other(gaps):
    """The rows tell their couplings with others only together: these have no test, others do.

    Draws of missing cells would seem to tell them apart.
    """
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Bern"], 500)
    country = pd.Series(city).map({"Rome": "Italy", "Oslo": "Norway", "Bern": "Switzerland"})
    X = pd.DataFrame({"city": city, "country": country, "bit": rng.random(500) < 0.3})
    X["x"] = rng.normal(size=500) + X["bit"]
    frame = inference(X.mask(rng.random(X.shape) < gaps)).to_frame()
    notes = frame["note"].str.contains("the other columns determine one of these")
    assert notes.tolist() == [False, True, True, True, True, False]
    assert frame["p_value"].isna().tolist() == notes.tolist()
    assert (frame.loc[[("city", "country"), ("bit", "x")], "p_value"] < 1e-9).all()
    assert frame.loc[("bit", "x"), "std_err"] < 0.2
