"""FSLLDensity and FVBMPseudoLikelihood say the same under the same names: sums over all states."""

import itertools
import math

import numpy as np
import pytest
import sklearn
from contract.test_interface import BUNCH
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.fixes import parse_version

from oracles import assert_drawn
from oracles_rbm import pseudo_likelihoods
from private import _model
from private import _network_incomplete as _incomplete
from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood

# Estimators, and the coding of their data: numbers of values, and whether these are -1 and 1.
CASES = {
    "terms of categories": (FSLLDensity(alpha=0.1, tol=1e-6), [2, 3, 2, 4, 2], False),
    "terms of bits": (FSLLDensity(alpha=0.1), [2] * 5, False),
    "pairs of spins": (FVBMPseudoLikelihood(alpha=0.001), [2] * 5, True),
    "pairs of bits": (FVBMPseudoLikelihood(alpha=0.001), [2] * 5, False),
    "network of categories": (FVBMPseudoLikelihood(alpha=0.001), [2, 3, 2, 4, 2], False),
}
PAIRS = [case for case in CASES if case.startswith("pairs")]
every_case = pytest.mark.parametrize("case", CASES)
each_with_dtype = pytest.mark.parametrize(
    ("case", "dtype"), list(zip(CASES, 2 * [np.float64, np.float32, np.int64], strict=False))
)
LADDER = {"acceptances", "betas", "n_rounds", "log_partitions", "log_partition_errors"}


def legal_values(case):
    """The values of each column."""
    _, n_values, are_spins = CASES[case]
    return [[-1, 1] if are_spins else list(range(m)) for m in n_values]


def rows_for(case, n=400, dtype=np.int64, seed=0):
    """Rows whose columns depend on each other."""
    rng = np.random.default_rng(seed)
    common, columns = rng.random(n), []
    for legal in legal_values(case):
        u = np.where(rng.random(n) < 0.5, common, rng.random(n))
        columns.append(np.array(legal)[np.minimum((u * len(legal)).astype(int), len(legal) - 1)])
    return np.column_stack(columns).astype(dtype)


def fitted(case, dtype=np.int64):
    return clone(CASES[case][0]).fit(rows_for(case, dtype=dtype))


def of_known_values(case):
    """The estimator, for parts of the rows."""
    columns = "auto" if case in PAIRS else list(map(range, CASES[case][1]))
    return clone(CASES[case][0]).set_params(columns=columns)


def enumerated(case, model):
    """All states, and their probabilities by normalising exp(-energy)."""
    every = np.array(list(itertools.product(*legal_values(case))))
    log_p = -model.energy(every)
    return every, np.exp(log_p - np.logaddexp.reduce(log_p))


@every_case
def test_likelihoods_and_entropies(case):
    model = fitted(case)
    every, p = enumerated(case, model)
    assert_allclose(model.score_samples(every), np.log(p), atol=1e-10)
    assert_allclose(-model.energy(every) - model.log_partition_, np.log(p), atol=1e-10)
    assert_array_equal(model.free_energy(every), model.energy(every))
    pseudo = pseudo_likelihoods(np.log(p), [len(values) for values in legal_values(case)])
    assert_allclose(model.log_pseudo_likelihood(every), pseudo, atol=1e-9)
    for name in ("energy", "free_energy", "score_samples", "log_pseudo_likelihood"):
        assert getattr(model, name)(every).dtype == np.float64
    assert model.entropy() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)
    estimate = model.log_partition("exact")
    assert isinstance(estimate.value, float) and estimate.value == model.log_partition_
    assert estimate.ess == math.inf and estimate.verdict == "Exact, by enumeration."


@pytest.mark.parametrize("case", ["terms of categories", "pairs of bits"])
def test_sample_weight_is_routed(case):
    X, w = rows_for(case), np.random.default_rng(0).integers(3, size=400)
    halves, estimator = [(np.arange(200), np.arange(200, 400))], of_known_values(case)
    with config_context(enable_metadata_routing=True):
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        model = clone(estimator).fit(X[:200], sample_weight=w[:200])
        expected = pytest.approx(model.score(X[200:], sample_weight=w[200:]))
        search = GridSearchCV(estimator, {"tol": [1e-5]}, cv=halves).fit(X, sample_weight=w)
        assert search.best_score_ == expected
        searches = [estimator]
        if parse_version(sklearn.__version__) >= parse_version("1.8"):  # where pipelines pass it on
            searches.append(make_pipeline(FunctionTransformer(), estimator))
        for searched in searches:
            found = cross_validate(searched, X, cv=halves, params={"sample_weight": w})
            assert found["test_score"][0] == expected


def conditional(case, model, row, columns):
    """p of the joint values of columns, given the other cells of the row that are not NaN."""
    (every, p), values = enumerated(case, model), legal_values(case)
    known = ~np.isnan(row)
    known[columns] = False
    p = p * (every[:, known] == row[known]).all(axis=1)
    states = itertools.product(*(values[j] for j in columns))
    found = [p[(every[:, columns] == state).all(axis=1)].sum() for state in states]
    return np.array(found) / sum(found)


@every_case
def test_column_probabilities(case):
    model, X = fitted(case), rows_for(case, n=25, dtype=np.float64, seed=2)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X[0], X[1, 1:] = np.nan, np.nan
    levels = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    for column, values in enumerate(map(np.array, legal_values(case))):
        found = model.predict_column_proba(X, column)
        assert found.shape == (25, len(values)) and found.dtype == np.float64
        expected = [conditional(case, model, row, [column]) for row in X]
        assert_allclose(found, expected, atol=1e-10)
        assert_array_equal(found, model.predict_column_proba(X, column - 5))
        # What stands there is ignored, whatever it is.
        other = X.copy()
        other[:, column] = 77
        assert_array_equal(model.predict_column_proba(other, column), found)
        other[:, column] = np.nan
        assert_allclose(model.impute(other)[:, column], values @ found.T, atol=1e-12)
        quantiles = model.predict_column_quantiles(X, column, levels)
        for p, of_row in zip(found, quantiles, strict=True):
            places = np.searchsorted(np.cumsum(p) + 1e-12, levels)
            assert_array_equal(of_row, values[np.minimum(places, len(values) - 1)])
    for columns in [3, 1], [0, 2, 1]:
        found = model.predict_column_proba(X, columns).reshape(25, -1)
        expected = [conditional(case, model, row, columns) for row in X]
        assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(("n_draws", "atol"), [(_incomplete.N_DRAWS, 0.04), ((), 0.1)])
@pytest.mark.parametrize("columns", ["auto", range(3)], ids=str)
def test_column_probabilities_by_draws_and_by_annealing(columns, n_draws, atol, monkeypatch):
    """Within over three standard errors; those of a row depend on this row alone."""
    X = rows_for("terms of categories", dtype=np.float64).clip(max=1 if columns == "auto" else 2)
    model = FVBMPseudoLikelihood(alpha=0.01, columns=columns).fit(X)
    X = X[:6]
    X[:, 1:4] = np.nan
    exact, exact_scores = model.predict_column_proba(X, 2), model.score_samples(X)
    codes = model._codes(X)
    weights, shares = _incomplete.expected_log_weights(model._model(), codes)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    monkeypatch.setattr(_incomplete, "MAX_CORE", 1)
    monkeypatch.setattr(_incomplete, "N_DRAWS", n_draws)
    monkeypatch.setattr(_incomplete, "N_SUM_DRAWS", n_draws and _incomplete.N_SUM_DRAWS)
    found = model.predict_column_proba(X, 2)
    assert_allclose(found, exact, atol=atol)
    assert (found != exact).any()
    assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    for row, p in zip(X, found, strict=True):
        assert_array_equal(model.predict_column_proba(row[np.newaxis], 2)[0], p)
    by_chains = _incomplete.expected_log_weights(model._model(), codes)
    assert_allclose(by_chains[0], weights, atol=0.3)
    missing = slice(len(p), 4 * len(p))
    assert_allclose(by_chains[1][:, missing], shares[:, missing], atol=0.15)
    scores = model.score_samples(X)
    assert_allclose(scores, exact_scores, atol=0.12)  # four standard errors
    assert (scores != exact_scores).any()
    assert_allclose(model.score_samples(X[3:]), scores[3:], atol=1e-12)


def assert_drawn_given(case, model, given=None, temperature=1.0, **options):
    every, p = enumerated(case, model)
    given = given or {}
    agrees = np.all([every[:, j] == value for j, value in given.items()], axis=0)
    q = np.where(agrees, p ** (1 / temperature), 0)
    X = model.sample(4000, 0, given=given, temperature=temperature, **options)
    assert_drawn(X, every, q / q.sum())


@every_case
def test_samples_with_conditions_and_temperatures(case):
    """False alarms: 1e-6 for each of six chi-square tests, whatever the seed."""
    model, values = fitted(case), legal_values(case)
    for given in ({0: values[0][1]}, {1: values[1][0], -1: values[4][1]}):
        assert_drawn_given(case, model, given)
    for temperature in (0.5, 3.0, 1e9):
        assert_drawn_given(case, model, temperature=temperature)
    assert_drawn_given(case, model, {2: values[2][0]}, temperature=2.0)
    every, _ = enumerated(case, model)
    cold = model.sample(50, random_state=0, temperature=1e-300)
    assert_allclose(model.energy(cold), model.energy(every).min(), atol=1e-9)
    plain = model.sample(9, random_state=0)
    assert_array_equal(model.sample(9, random_state=0, given={}, temperature=1.0), plain)
    everything = {j: v[0] for j, v in enumerate(values)}
    X = model.sample(3, random_state=0, given=everything)
    assert_array_equal(X, np.tile(list(everything.values()), (3, 1)))


@every_case
def test_samples_that_obey(case):
    """False alarms: 1e-6 for each of three chi-square tests, whatever the seed."""
    model, values = fitted(case), legal_values(case)
    every, p = enumerated(case, model)

    def where(rows):
        return rows[:, 0] + rows[:, 1] > rows[:, 2]

    def unsure(rows):
        return np.where(where(rows), True, None)

    for given, temperature in (({}, 1.0), ({4: values[4][1]}, 1.0), ({}, 2.0)):
        agrees = where(every) & np.all([every[:, j] == v for j, v in given.items()], axis=0)
        q = np.where(agrees, p ** (1 / temperature), 0)
        X = model.sample(4000, 0, given=given, where=unsure, temperature=temperature)
        assert_drawn(X, every, q / q.sum())


def test_samples_with_conditions_and_temperatures_by_gibbs(monkeypatch):
    """As if every model were too large to enumerate. False alarms: 1e-6 for each of three tests."""
    monkeypatch.setattr(_model, "MAX_STATES", 1)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    model = fitted("pairs of bits")
    for options in ({"given": {0: 1, 3: 0}}, {"temperature": 2.0},
                    {"temperature": 0.8, "given": {4: 1}}):  # fmt: skip
        assert_drawn_given("pairs of bits", model, n_steps=200, **options)
    with pytest.warns(UserWarning, match="hardly exchange states"):
        X = model.sample(5, 0, temperature=1e-300, n_steps=3, n_temperatures=4)
    assert np.isfinite(X).all()


def test_conditions_make_a_large_model_exact():
    """Without its hub, no two variables are connected."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(2000, 40))
    X[:, 1:] = np.where(rng.random((2000, 39)) < 0.4, X[:, :1], X[:, 1:])
    model = FVBMPseudoLikelihood(alpha=0.01).fit(X)
    model.coupling_[1:, 1:] = 0
    drawn = model.sample(4000, random_state=0, given={"x0": 1})
    expected = 1 / (1 + np.exp(-2 * (model.coupling_[0] + model.intercept_)))[1:]
    # Each within 5 standard errors.
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(drawn[:, 1:].mean(axis=0) - expected) < 5 * error).all()


@each_with_dtype
def test_types_come_back(case, dtype):
    model = fitted(case, dtype)
    assert model.sample(3, random_state=0).dtype == dtype
    X = rows_for(case, n=8, dtype=dtype, seed=4)
    assert_array_equal(model.impute(X), X)
    if dtype == np.int64:
        return
    given = X.copy()
    X[:, 1] = np.nan
    for how in ("mean", "mode", "sample"):
        filled = model.impute(X, how=how, random_state=0)
        assert filled.dtype == dtype and not np.isnan(filled).any()
        assert_array_equal(np.delete(filled, 1, axis=1), np.delete(given, 1, axis=1))
    if case in PAIRS:
        low, high = model.values_
        expectation = model.transform(given)
        assert expectation.dtype == dtype
        assert (expectation > low).all() and (expectation < high).all()
        p = [model.predict_column_proba(given, j) @ model.values_ for j in range(5)]
        assert_allclose(expectation, np.transpose(p), atol=1e-6)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(1000, 30))
    X[:, 1:] = np.where(rng.random((1000, 29)) < 0.3, X[:, :-1], X[:, 1:])
    return FVBMPseudoLikelihood(alpha=0.01).fit(X)


def test_estimates_beyond_enumeration(large):
    estimate = large.log_partition("ais", n_chains=200, n_temperatures=300, random_state=0)
    assert set(estimate) == BUNCH and estimate.method == "ais" and estimate.trusted
    assert estimate.low == pytest.approx(estimate.value - 3) and estimate.high == math.inf
    assert 1 < estimate.ess <= 200 and estimate.log_weights.shape == (200,)
    assert estimate.states.shape == (200, 30) and set(estimate.states.ravel()) == {0, 1}
    assert "no sign of failure" in estimate.verdict
    assert abs(estimate.value - large.log_partition_) < 0.2
    given = large.log_partition("ais", n_temperatures=np.linspace(0, 1, 50), random_state=0)
    assert abs(given.value - large.log_partition_) < 0.5
    ladder = large.log_partition(random_state=0)
    assert set(ladder) == BUNCH | LADDER
    assert ladder.method == "ladder" and ladder.trusted and ladder.value == large.log_partition_
    assert abs(estimate.value - ladder.value) < 5 * np.hypot(estimate.std_err, ladder.std_err)
    assert 0 < large.entropy() < 30 * np.log(2)
    for call in (lambda: large.log_partition("exact"), lambda: large.marginal(0)):
        with pytest.raises(ValueError, match="FVBMPseudoLikelihood: the model connects more than"):
            call()
