"""One name for one thing: what every estimator has, under the same names, kinds and shapes."""

import inspect
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from test_common import DEFAULTS

from private import _likelihoods, _model
from private import _network_incomplete as _incomplete
from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood, InfiniteRBM

# Probability of a false alarm of a chi-square test, for each seed.
FALSE_ALARM = 1e-6
# Estimators, and the coding of their data: the values of the columns.
CASES = {
    "FSLLDensity": (FSLLDensity(alpha=0.1, tol=1e-6), [2, 3, 2, 4, 2], 0),
    "FSLLDensity-binary": (FSLLDensity(alpha=0.1), [2] * 5, 0),
    "FVBMPseudoLikelihood-signs": (FVBMPseudoLikelihood(alpha=0.001), [2] * 5, -1),
    "FVBMPseudoLikelihood-bits": (FVBMPseudoLikelihood(alpha=0.001), [2] * 5, 0),
}
every_case = pytest.mark.parametrize("case", CASES)
BUNCH = {"value", "std_err", "low", "high", "ess", "method", "trusted", "verdict", "log_weights",
         "states"}  # fmt: skip


@pytest.mark.parametrize("estimator", [FSLLDensity, FVBMPseudoLikelihood])
@pytest.mark.parametrize("n_values", [[2, 2], [2, 1, 2], [2.0, 2.0, 2.0], [[2, 2, 2]], ["2"] * 3])
def test_wrong_numbers_of_values_are_refused_in_the_same_words(estimator, n_values):
    words = "n_values must be 'auto', an integer or one integer for each of the 3 columns"
    with pytest.raises(ValueError, match=words):
        estimator(n_values=n_values).fit(np.eye(3, dtype=int))


def legal_values(case):
    """The values of each column."""
    _, n_values, low = CASES[case]
    return [[-1, 1] if low == -1 else list(range(m)) for m in n_values]


def rows_for(case, n=400, dtype=np.int64, seed=0):
    """Rows whose columns depend on each other."""
    rng = np.random.default_rng(seed)
    values = legal_values(case)
    common = rng.random(n)
    X = np.empty((n, len(values)), dtype=dtype)
    for j, legal in enumerate(values):
        u = np.where(rng.random(n) < 0.5, common, rng.random(n))
        X[:, j] = np.array(legal)[np.minimum((u * len(legal)).astype(int), len(legal) - 1)]
    return X


def fitted(case, dtype=np.int64):
    return clone(CASES[case][0]).fit(rows_for(case, dtype=dtype))


def enumerated(case, model):
    """All states, and their probabilities by normalising exp(-energy)."""
    every = np.array(list(itertools.product(*legal_values(case))))
    log_p = -model.energy(every)
    log_p -= np.logaddexp.reduce(log_p)
    return every, np.exp(log_p)


def chi_square_limit(n_cells):
    return chi2.isf(FALSE_ALARM, max(n_cells - 1, 1))


def assert_sampled(X, every, p):
    """Whether rows are a sample of a distribution, cells merged where few are expected."""
    order = np.argsort(p)
    counts = np.array([(X == state).all(axis=1).sum() for state in every[order]])
    assert counts.sum() == len(X), "some rows are no states"
    cells = (np.cumsum(len(X) * p[order]) // 10).astype(int)
    observed, expected = np.bincount(cells, counts), np.bincount(cells, len(X) * p[order])
    kept = expected > 0
    assert observed[~kept].sum() == 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi_square_limit(kept.sum())


@pytest.fixture
def gibbs_only(monkeypatch):
    """As if every model were too large to enumerate."""
    monkeypatch.setattr(_model, "MAX_STATES", 1)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)


# Names and kinds.


@every_case
def test_names_and_defaults(case):
    model = fitted(case)
    sample = inspect.signature(model.sample).parameters
    assert list(sample)[:4] == ["n_samples", "random_state", "given", "temperature"]
    assert sample["given"].kind is sample["temperature"].kind is inspect.Parameter.KEYWORD_ONLY
    assert (sample["given"].default, sample["temperature"].default) == (None, 1.0)
    for method in ("sample", "impute", "predict_column_proba"):
        parameters = inspect.signature(getattr(model, method)).parameters
        assert "n_sweeps" not in parameters
        if "n_steps" in parameters:
            assert parameters["n_steps"].default == 1000
    assert list(inspect.signature(model.impute).parameters)[:2] == ["X", "how"]
    assert list(inspect.signature(model.score).parameters) == ["X", "y", "sample_weight"]
    assert isinstance(type(model).log_partition_, property)


@every_case
def test_history_has_one_entry_an_iteration(case):
    model = fitted(case)
    assert model.n_iter_ > 0 and "seconds" in model.history_
    for name, values in model.history_.items():
        assert isinstance(values, np.ndarray) and values.shape == (model.n_iter_,), name
    assert (model.history_["seconds"] >= 0).all() and model.history_["seconds"].sum() < 60
    if "log_pseudo_likelihood" in model.history_:
        mean = model.log_pseudo_likelihood(rows_for(case)).mean()
        penalty = model.alpha / 4 * (model.coupling_**2).sum()
        last = model.history_["log_pseudo_likelihood"][-1]
        assert last == pytest.approx(mean - penalty, abs=1e-9)


# In FSLLDensity alpha multiplies a description length, which is smaller for more rows.
@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("FSLL")])
def test_twice_the_rows_make_the_same_fit(case):
    """Penalties are strengths per row, and log-likelihoods means."""
    X = rows_for(case)
    once, twice = fitted(case), clone(CASES[case][0]).fit(np.vstack([X, X]))
    assert_allclose(twice.coupling_, once.coupling_, atol=1e-7)
    name = "log_pseudo_likelihood"
    assert_allclose(twice.history_[name][-1], once.history_[name][-1], atol=1e-9)


@every_case
def test_partial_fit_keeps_a_history(case):
    X = rows_for(case)
    model = clone(CASES[case][0])
    if "FSLL" in case:
        model.set_params(n_values=CASES[case][1])
    model.partial_fit(X[:200]).partial_fit(X[200:])
    assert len(model.history_["seconds"]) == model.n_iter_
    assert_allclose(model.score(X), fitted(case).score(X), atol=1e-6)


@every_case
def test_log_partition_is_a_bunch(case):
    model = fitted(case)
    estimate = model.log_partition()
    assert set(estimate) == BUNCH
    assert isinstance(estimate.value, float) and estimate.value == model.log_partition_
    assert (estimate.low, estimate.high, estimate.std_err) == (estimate.value, estimate.value, 0)
    assert estimate.ess == math.inf and estimate.method == "exact" and estimate.trusted
    assert estimate.verdict == "Exact, by enumeration."
    assert model.log_partition("exact").value == estimate.value
    with pytest.raises(ValueError, match="log_partition"):
        model.log_partition("magic")


# Likelihood, energy, entropy.


@every_case
def test_energy_entropy_and_likelihood_against_enumeration(case):
    model = fitted(case)
    every, p = enumerated(case, model)
    assert_allclose(model.score_samples(every), np.log(p), atol=1e-10)
    assert_allclose(-model.energy(every) - model.log_partition_, np.log(p), atol=1e-10)
    assert_array_equal(model.free_energy(every), model.energy(every))
    assert model.entropy() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)
    for name in ("energy", "free_energy", "score_samples", "log_pseudo_likelihood"):
        assert getattr(model, name)(every).dtype == np.float64
        if name != "energy":
            continue  # it sums missing cells out
        with pytest.raises(ValueError, match="no value \\(NaN\\)"):
            getattr(model, name)(np.full((1, 5), np.nan))


@every_case
def test_entropy_follows_the_parameters(case):
    model = fitted(case)
    before = model.entropy()
    name = "coupling_" if hasattr(model, "coupling_") else "theta_"
    setattr(model, name, 3 * getattr(model, name))
    _, p = enumerated(case, model)
    assert model.entropy() != before
    assert model.entropy() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-9)


@every_case
def test_score_is_a_weighted_mean(case):
    model, X = fitted(case), rows_for(case, n=60, seed=1)
    w = np.random.default_rng(0).integers(3, size=60)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.score(X, sample_weight=w) == pytest.approx(model.score(np.repeat(X, w, axis=0)))
    with pytest.raises(ValueError, match="sample_weight|non-zero"):
        model.score(X, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(X, sample_weight=w[:5])


@every_case
def test_sample_weight_is_routed(case):
    X, w = rows_for(case), np.random.default_rng(0).integers(3, size=400)
    estimator = clone(CASES[case][0])
    if "FSLL" in case:
        estimator.set_params(n_values=CASES[case][1])
    halves = [(np.arange(200), np.arange(200, 400))]
    with config_context(enable_metadata_routing=True):
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        expected = clone(estimator).fit(X[:200], sample_weight=w[:200])
        expected = expected.score(X[200:], sample_weight=w[200:])
        found = cross_validate(estimator, X, cv=halves, params={"sample_weight": w})
        assert found["test_score"][0] == pytest.approx(expected)
        search = GridSearchCV(estimator, {"tol": [1e-5]}, cv=halves)
        search.fit(X, sample_weight=w)
        assert search.best_score_ == pytest.approx(expected)
        pipeline = make_pipeline(FunctionTransformer(), estimator)
        found = cross_validate(pipeline, X, cv=halves, params={"sample_weight": w})
        assert found["test_score"][0] == pytest.approx(expected)


# One column given the others.


def brute_column(case, model, row, column):
    """p(column | the cells of the row that are not NaN)."""
    every, p = enumerated(case, model)
    known = ~np.isnan(row)
    known[column] = False
    agrees = (every[:, known] == row[known]).all(axis=1)
    found = [p[agrees & (every[:, column] == v)].sum() for v in legal_values(case)[column]]
    return np.array(found) / sum(found)


@every_case
def test_column_probabilities_against_enumeration(case):
    model, X = fitted(case), rows_for(case, n=25, dtype=np.float64, seed=2)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X[0], X[1, 1:] = np.nan, np.nan
    for column in range(5):
        found = model.predict_column_proba(X, column)
        assert found.shape == (25, CASES[case][1][column]) and found.dtype == np.float64
        expected = [brute_column(case, model, row, column) for row in X]
        assert_allclose(found, expected, atol=1e-10)
        assert_allclose(found.sum(axis=1), 1, atol=1e-12)
        assert_array_equal(found, model.predict_column_proba(X, column - 5))
        # What stands there is ignored, whatever it is.
        ignored = X.copy()
        ignored[:, column] = 77
        assert_array_equal(model.predict_column_proba(ignored, column), found)
        mean = np.array(legal_values(case)[column]) @ found.T
        X[:, column], before = np.nan, X[:, column].copy()
        assert_allclose(model.impute(X)[:, column], mean, atol=1e-12)
        X[:, column] = before
    with pytest.raises(ValueError, match="no variable 'age'"):
        model.predict_column_proba(X, "age")


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, np.asarray])
@pytest.mark.parametrize(
    "model",
    [FSLLDensity(), FVBMPseudoLikelihood(), SDCPRBM(2, max_iter=2, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_unknown_words_in_the_column_are_ignored(model, container):
    rng = np.random.default_rng(0)
    words = rng.choice(["ash", "oak", "elm"], size=(60, 2)).astype(object)

    def table(rows):
        return (
            container(rows)
            if container is np.asarray
            else container({"tree": rows[:, 0].tolist(), "next": rows[:, 1].tolist()})
        )

    model = clone(model).set_params(unseen="error").fit(table(words))
    known, unknown = words[:5].copy(), words[:5].copy()
    unknown[:, 1] = "yew"
    found = model.predict_column_proba(table(unknown), 1)
    assert_array_equal(found, model.predict_column_proba(table(known), 1))
    assert unknown[0, 1] == "yew"
    with pytest.raises(ValueError, match="has the value 'yew' in row 0"):
        model.predict_column_proba(table(unknown), 0)


@pytest.mark.parametrize("n_values", ["auto", 3])
def test_column_probabilities_by_annealing(n_values, monkeypatch):
    """Within 0.1, over three standard errors; those of a row depend on this row alone."""
    X = rows_for("FSLLDensity", dtype=np.float64).clip(max=1 if n_values == "auto" else 2)
    model = FVBMPseudoLikelihood(alpha=0.01, n_values=n_values).fit(X)
    X = X[:6]
    X[:, 1:4] = np.nan
    exact = model.predict_column_proba(X, 2)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    found = model.predict_column_proba(X, 2)
    assert_allclose(found, exact, atol=0.1)
    assert (found != exact).any()
    assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    for row, p in zip(X, found, strict=True):
        assert_array_equal(model.predict_column_proba(row[np.newaxis], 2)[0], p)


# Samples with conditions, and at other temperatures.


def check_samples(case, model):
    every, p = enumerated(case, model)
    values = legal_values(case)
    for given in ({0: values[0][1]}, {1: values[1][0], -1: values[4][1]}):
        X = model.sample(4000, random_state=0, given=given)
        agrees = np.ones(len(every), dtype=bool)
        for column, value in given.items():
            assert (X[:, column] == value).all()
            agrees &= every[:, column] == value
        assert_sampled(X, every[agrees], p[agrees] / p[agrees].sum())
    for temperature in (0.5, 3.0, 1e9):
        q = p ** (1 / temperature)
        X = model.sample(4000, random_state=1, temperature=temperature)
        assert_sampled(X, every, q / q.sum())
    q = np.where(every[:, 2] == values[2][0], p**0.5, 0)
    X = model.sample(4000, random_state=2, temperature=2.0, given={2: values[2][0]})
    assert_sampled(X, every[q > 0], q[q > 0] / q.sum())
    cold = model.sample(50, random_state=0, temperature=1e-300)
    assert_allclose(model.energy(cold), model.energy(every).min(), atol=1e-9)


@every_case
def test_samples_with_conditions_and_temperatures(case):
    """False alarms: 1e-6 for each of six chi-square tests, whatever the seed."""
    model = fitted(case)
    check_samples(case, model)
    assert_array_equal(
        model.sample(9, random_state=0, given={}, temperature=1.0), model.sample(9, random_state=0)
    )
    everything = {j: v[0] for j, v in enumerate(legal_values(case))}
    X = model.sample(3, random_state=0, given=everything)
    assert_array_equal(X, np.tile(list(everything.values()), (3, 1)))


def test_samples_with_conditions_and_temperatures_by_gibbs(gibbs_only):
    case = "FVBMPseudoLikelihood-bits"
    model = fitted(case)
    every, p = enumerated(case, model)
    for options, q in [
        ({"given": {0: 1, 3: 0}}, np.where((every[:, 0] == 1) & (every[:, 3] == 0), p, 0)),
        ({"temperature": 2.0}, p**0.5),
        ({"temperature": 0.8, "given": {4: 1}}, np.where(every[:, 4] == 1, p**1.25, 0)),
    ]:
        X = model.sample(4000, random_state=0, n_steps=200, **options)
        assert_sampled(X, every[q > 0], q[q > 0] / q.sum())
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


@every_case
def test_bad_conditions_are_named(case):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows_for(case), columns=list("abcde"))
    model = clone(CASES[case][0]).fit(X)
    assert (model.sample(5, random_state=0, given={"c": 1})["c"] == 1).all()
    name = type(model).__name__
    for given, match in [
        ({"age": 1}, "no variable 'age'"),
        ({7: 1}, "no variable 7"),
        ({2.5: 1}, "no variable 2.5"),
        ({"b": 9}, rf"{name}.sample: `given` has the value 9 for column 'b'. Give one of its"),
        ({"b": "yes"}, "the value 'yes' for column 'b'"),
        ({"b": np.nan}, "the value nan for column 'b'"),
        ({"b": [0, 1]}, "for column 'b'"),
        ({"b": 1, 1: 1}, "two values for column 'b'"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.sample(given=given)
    for temperature in (0, -1.0, math.nan, math.inf, "hot"):
        with pytest.raises(ValueError, match="temperature"):
            model.sample(temperature=temperature)


# Types.


@every_case
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
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
    if "FVBM" in case:
        low, high = model.values_
        expectation = model.transform(given)
        assert expectation.dtype == dtype
        assert (expectation > low).all() and (expectation < high).all()
        p = [model.predict_column_proba(given, j) @ model.values_ for j in range(5)]
        assert_allclose(expectation, np.transpose(p), atol=1e-6)


# Beyond enumeration.


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
    figures = {"acceptances", "betas", "n_rounds", "log_partitions", "log_partition_errors"}
    assert set(ladder) == BUNCH | figures
    assert ladder.method == "ladder" and ladder.trusted and ladder.value == large.log_partition_
    assert abs(estimate.value - ladder.value) < 5 * np.hypot(estimate.std_err, ladder.std_err)
    assert 0 < large.entropy() < 30 * np.log(2) and large.specific_heat() > 0
    for call in (lambda: large.log_partition("exact"), lambda: large.marginal(0)):
        with pytest.raises(ValueError, match="FVBMPseudoLikelihood: the model connects more than"):
            call()


def test_annealing_agrees_with_enumeration():
    """Within 5 standard errors."""
    model = fitted("FVBMPseudoLikelihood-bits")
    estimate = model.log_partition("ais", random_state=0)
    assert estimate.std_err > 0
    assert abs(estimate.value - model.log_partition("exact").value) < 5 * estimate.std_err
    assert model.log_partition_ == model.log_partition().value


def test_a_later_run_that_shows_more_leaves_scores_and_warns(large, monkeypatch):
    model = clone(large)
    vars(model).update(vars(large), _derived={})
    before = model.log_partition_
    real = _likelihoods.annealed_log_partition

    def greater(*args):
        estimate = real(*args)
        estimate.value, estimate.low = estimate.value + 10, estimate.low + 10
        return estimate

    monkeypatch.setattr(_likelihoods, "annealed_log_partition", greater)
    found = model.log_partition("ais", n_temperatures=100, random_state=3)
    assert found.low > before
    with pytest.warns(UserWarning, match="but an AIS run shows that ln Z is at least"):
        assert model.log_partition_ == before
    model.intercept_ = model.intercept_ + 0.1
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.log_partition_ != before  # of other parameters


@pytest.mark.filterwarnings("ignore:The estimate of log_partition_ is uncertain:UserWarning")
def test_no_estimate_takes_the_place_of_an_exact_value():
    model = fitted("FVBMPseudoLikelihood-bits")
    before = model.log_partition_
    model.log_partition("ais", n_chains=5, n_temperatures=1, random_state=0)
    assert model.log_partition_ == before


# All estimators: what does not depend on the kind of model.

every_estimator = pytest.mark.parametrize(
    "estimator", DEFAULTS, ids=lambda estimator: type(estimator).__name__
)


@pytest.fixture(scope="module")
def bits():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(150, 5))
    X[:, 1] = X[:, 0] ^ (rng.random(150) < 0.1)
    return X


@every_estimator
def test_all_estimators_have_the_same_methods(estimator, bits):
    model = clone(estimator).fit(bits)
    sample = inspect.signature(model.sample).parameters
    assert list(sample)[:4] == ["n_samples", "random_state", "given", "temperature"]
    for method in ("sample", "impute", "predict_column_proba"):
        parameters = inspect.signature(getattr(model, method)).parameters
        assert "n_sweeps" not in parameters
        if "n_steps" in parameters:
            assert parameters["n_steps"].default == 1000
    assert list(inspect.signature(model.score).parameters) == ["X", "y", "sample_weight"]
    for method in ("energy", "free_energy", "entropy", "log_pseudo_likelihood", "log_partition"):
        assert callable(getattr(model, method)), method
    assert set(model.log_partition()) >= BUNCH
    assert isinstance(type(model).log_partition_, property)


@every_estimator
def test_histories_of_all_estimators(estimator, bits):
    model = clone(estimator).fit(bits)
    # That of InfiniteRBM has the model without hidden units besides.
    n_entries = model.n_iter_ + isinstance(model, InfiniteRBM)
    for name, values in model.history_.items():
        assert isinstance(values, np.ndarray) and values.shape == (n_entries,), name
    assert (model.history_["seconds"] >= 0).all()
    log_likelihoods = [name for name in model.history_ if name.endswith("likelihood")]
    for name in log_likelihoods:  # means over rows of five bits
        assert (-5 < model.history_[name]).all() and (model.history_[name] < 0).all(), name


@every_estimator
def test_columns_conditions_and_weights_of_all_estimators(estimator, bits):
    model = clone(estimator).fit(bits)
    p = model.predict_column_proba(bits[:7], 1)
    assert p.shape == (7, 2)
    assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    other = bits[:7].copy()
    other[:, 1] = 1 - other[:, 1]
    assert_allclose(model.predict_column_proba(other, 1), p, atol=1e-6)
    drawn = model.sample(20, random_state=0, given={1: 1})
    assert drawn.shape == (20, 5) and (drawn[:, 1] == 1).all()
    with pytest.raises(ValueError, match="9"):
        model.sample(2, given={9: 1})
    assert model.sample(3, random_state=0, temperature=2.0).shape == (3, 5)
    assert model.entropy() <= 5 * np.log(2) + 1e-6
    if is_classifier(model):
        return  # the score is the accuracy
    weights = np.arange(150.0)
    expected = np.average(model.score_samples(bits), weights=weights)
    assert model.score(bits, sample_weight=weights) == pytest.approx(expected)
