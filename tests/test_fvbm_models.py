"""Networks as distributions: every verb against enumeration, for columns of any kind."""

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import (
    agreeing,
    brute_conditional,
    columns,
    densities,
    enumerate_states,
    estimator_of,
    random_interactions,
    random_model,
    random_spins,
    seeds,
    with_gaps,
)
from scipy.special import logsumexp

from oracles import assert_drawn
from private import PottsModel, SpinModel, _model
from private import _network_incomplete as _incomplete
from sklearn_boltz import FVBMPseudoLikelihood, statistics


@pytest.fixture
def chains_only(monkeypatch):
    """As if every model had too many states to enumerate."""
    monkeypatch.setattr(_model, "MAX_STATES", 1)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)


def rows_of(codes, low):
    """As a user writes them, with NaN for what is missing."""
    return np.where(codes < 0, np.nan, np.where(codes == 0, low, codes))


@settings(max_examples=cases(20))
@given(columns, densities, seeds, st.sampled_from([0, -1]))
@example([2, 3, 4, 2, 3], 1.0, 0, 0)
def test_verbs_are_those_of_enumeration(n_values, density, seed, low):
    network = random_model(n_values, seed, density)
    is_binary = isinstance(network, SpinModel)
    low = low if is_binary else 0
    states, log_p, weights = enumerate_states(network)
    model, X, p = estimator_of(network, low), rows_of(states, low), np.exp(log_p)
    assert model.log_partition_ == pytest.approx(logsumexp(weights), abs=1e-10)
    estimate = model.log_partition()
    assert (estimate.std_err, estimate.method, estimate.trusted) == (0, "exact", True)
    assert estimate.value == estimate.low == estimate.high == model.log_partition_
    assert_allclose(model.energy(X), -weights, atol=1e-12)
    assert_allclose(model.score_samples(X), log_p, atol=1e-9)
    assert model.entropy() == pytest.approx(-p @ log_p, abs=1e-10)
    some = np.random.default_rng(seed).permutation(len(n_values))[:3]
    table = np.zeros(np.array(n_values)[some])
    np.add.at(table, tuple(states[:, some].T), p)
    assert_allclose(model.marginal(some.tolist()), table, atol=1e-12)

    codes = np.vstack([with_gaps(states, 8, seed), np.full_like(states[:1], -1), states[:2]])
    rows = rows_of(codes, low)
    sums = [logsumexp(weights[agreeing(states, row)]) for row in codes]
    assert_allclose(model.free_energy(rows), np.negative(sums), atol=1e-10)
    assert_allclose(model.score_samples(rows), sums - logsumexp(weights), atol=1e-9)
    expectation, pseudo = model.transform(rows), model.log_pseudo_likelihood(rows)
    mean, mode = model.impute(rows), model.impute(rows, how="mode")
    drawn = model.impute(rows, how="sample", random_state=0)
    assert_array_equal(drawn[codes >= 0], rows[codes >= 0])
    assert np.isin(drawn, X).all()
    asked = [model.predict_column_proba(rows, j) for j in range(len(n_values))]
    for i, row in enumerate(codes):
        places = range(len(n_values))
        conditionals = [brute_conditional(network, states, log_p, row, j) for j in places]
        for of_column, expected in zip(asked, conditionals, strict=True):
            assert_allclose(of_column[i], expected, atol=1e-11)
        expected = np.concatenate(conditionals)
        if is_binary:
            expected = expected[1::2] + low * expected[::2]
        assert_allclose(expectation[i], expected, atol=1e-11)
        known = np.flatnonzero(row >= 0)
        expected = sum(np.log(conditionals[j][row[j]]) for j in known)
        assert pseudo[i] == pytest.approx(expected, abs=1e-10)
        given_row = p * agreeing(states, row)
        assert_allclose(mean[i], given_row @ X / given_row.sum(), atol=1e-11)
        best = given_row[(mode[i] == X).all(axis=1)]
        assert best == pytest.approx(given_row.max(), rel=1e-9)


@pytest.mark.parametrize(("n_values", "share"), [([2] * 25, 0), ([3, 2, 4, 3], 0.25)])
def test_rows_do_not_depend_on_others(n_values, share):
    model = estimator_of(random_model(n_values, 0))
    rng = np.random.default_rng(0)
    X = rng.integers(n_values, size=(257, len(n_values))).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    for method in (model.transform, model.log_pseudo_likelihood, model.score_samples):
        whole = method(X)
        assert_array_equal(whole[::-3], method(X[::-3]))
        assert_array_equal(whole[5:6], method(X[5:6]))


@settings(max_examples=cases(20))
@given(st.integers(1, 7), seeds)
def test_chains_know_their_weights(d, seed):
    model = random_interactions(d, seed)
    codes = np.random.default_rng(seed).integers(2, size=(10, d))
    chains = model.chains(codes, seed)
    chains.sweep(model.intercept, 5)
    weights = model.log_weight(chains.codes)
    assert_allclose(chains.log_weight(model.intercept), weights, atol=1e-11)
    p = np.exp(model.log_conditionals(chains.codes))
    assert_allclose(chains.probabilities(model.intercept), p, atol=1e-11)


def neighbours(state, n_values):
    """States that differ in one column."""
    for j, q in enumerate(n_values):
        for a in set(range(q)) - {state[j]}:
            yield (*state[:j], a, *state[j + 1 :])


@settings(max_examples=cases(25))
@given(columns, seeds)
def test_minima_and_basins_are_those_of_all_states(n_values, seed):
    network = random_model(n_values, seed)
    states, _, weights = enumerate_states(network)
    energy = dict(zip(map(tuple, states.tolist()), -weights, strict=True))
    steepest = {state: min(neighbours(state, n_values), key=energy.get) for state in energy}
    found = statistics.local_minima(estimator_of(network), states)
    minima = {state for state in energy if energy[state] < energy[steepest[state]]}
    assert set(map(tuple, found.states.tolist())) == minima
    assert_allclose(found.energy, [energy[tuple(s)] for s in found.states.tolist()])
    assert (np.diff(found.energy) >= 0).all()
    assert_array_equal(found.count, np.bincount(found.basin))
    for state, basin in zip(map(tuple, states.tolist()), found.basin, strict=True):
        while energy[steepest[state]] < energy[state]:
            state = steepest[state]
        assert state == tuple(found.states[basin].tolist())


def test_states_of_equal_energy_end():
    """Without parameters, every state is where it is."""
    model = estimator_of(random_spins(2))
    model.coupling_, model.intercept_ = np.zeros((2, 2)), np.zeros(2)
    assert len(statistics.local_minima(model, [[0, 1], [1, 0], [0, 0], [1, 1]]).states) == 4


def test_minima_of_random_starts_and_of_tables():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(200) < 0.3, "b": rng.random(200) < 0.4})
    X["c"] = X.a
    model = FVBMPseudoLikelihood(alpha=0.01).fit(X)
    minima = statistics.local_minima(model, n_starts=300, random_state=0)
    assert minima.count.sum() == len(minima.basin) == 300
    assert list(minima.states.columns) == ["a", "b", "c"]
    again = statistics.local_minima(model, minima.states)
    assert_array_equal(again.basin, np.arange(len(minima.states)))


# Samples and estimates. False alarms: 1e-6 for each chi-square test, whatever the seed.


def sample(network, how, **options):
    """Codes that a network draws. Correlations after a sweep are below 0.6, and there are 50."""
    model = estimator_of(network)
    if how != "exact":
        options |= {"n_steps": 50, "n_temperatures": 1 if how == "chains" else None}
    X = model.sample(5000, random_state=0, **options)
    assert_array_equal(X, model.sample(5000, random_state=0, **options))
    return X


@pytest.mark.parametrize("how", ["exact", "chains", "ladder"])
@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4], 0), ([2] * 5, 2)])
def test_samples(n_values, seed, how, request):
    if how != "exact":
        request.getfixturevalue("chains_only")
    network = random_model(n_values, seed)
    states, log_p, _ = enumerate_states(network)
    assert_drawn(sample(network, how), states, np.exp(log_p))


@pytest.mark.parametrize("how", ["exact", "chains"])
@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4, 2], 0), ([2] * 4, 2)])
def test_drawn_completions(n_values, seed, how, request):
    if how != "exact":
        request.getfixturevalue("chains_only")
    network = random_model(n_values, seed)
    model, (states, log_p, _) = estimator_of(network), enumerate_states(network)
    for row in (np.array([1, -1, -1, 0]), np.array([-1, 1, -1, -1])):
        kept = agreeing(states, row)
        p = np.exp(log_p[kept] - logsumexp(log_p[kept]))
        rows = np.tile(rows_of(row, 0), (4000, 1))
        drawn = model.impute(rows, how="sample", n_steps=50, random_state=0)
        assert_drawn(drawn, states[kept], p)


def copied(strength=9.0):
    """A column of 12 values, its copy with a few errors, and four columns that each know a bit."""
    n_values, rng = np.array([12, 12, 3, 3, 3, 3]), np.random.default_rng(0)
    coupling = np.zeros((36, 36))
    coupling[12:24, :12] = strength * np.eye(12)
    coupling[24:, :24] = np.repeat(rng.normal(size=(12, 12)), 2, axis=1).reshape(12, 24)
    return PottsModel(coupling + coupling.T, rng.normal(size=36), n_values)


def test_copied_columns_hidden_together(chains_only):
    """Chains whose cells change one at a time would keep the values in which they begin.

    False alarms: 1e-6, as the rows are right independently of each other, with probabilities
    that sum to `expected`.
    """
    network, n = copied(), 500
    states, log_p, _ = enumerate_states(network)
    rng = np.random.default_rng(1)
    truth = states[rng.choice(len(states), n, p=np.exp(log_p - logsumexp(log_p)))]
    rows, model = truth.copy(), estimator_of(network)
    rows[:, :2] = -1
    # Exact probabilities of both values given the rest, which is enumerated by hand.
    fields = network.fields(rows)[:, :24].reshape(-1, 2, 12)
    joint = fields[:, 0, :, None] + fields[:, 1, None] + network.coupling[:12, 12:24]
    p = np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True))
    exact = p.reshape(n, -1).max(axis=1)
    X = rows_of(rows, 0)
    mode = model.impute(X, how="mode", n_steps=50, random_state=0)
    drawn = model.impute(X, how="sample", n_steps=50, random_state=0)
    for found, expected in ((mode, exact), (drawn, (p**2).sum(axis=(1, 2)))):
        right = (found[:, :2] == truth[:, :2]).all(axis=1).mean()
        error = np.sqrt((expected * (1 - expected)).sum()) / n
        assert abs(right - expected.mean()) < 4.9 * error
    values = np.arange(12)
    mean = np.column_stack([p.sum(axis=2) @ values, p.sum(axis=1) @ values])
    found = model.impute(X, n_steps=200, random_state=0)[:, :2]
    # 150 sweeps that count, each nearly a new draw of a number with a standard deviation below 6.
    assert np.sqrt(((found - mean) ** 2).mean()) < 6 / np.sqrt(150)


@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4, 2], 0), ([2] * 6, 2)])
def test_where_nothing_is_enumerated(n_values, seed, request):
    """Estimates near the exact values, the same for a row wherever it stands."""
    network = random_model(n_values, seed)
    model, (states, _, weights) = estimator_of(network), enumerate_states(network)
    X = rows_of(with_gaps(states, 12, 0), 0)
    exact = {name: getattr(model, name)(X) for name in ("free_energy", "transform")}
    mode, mean = model.impute(X, how="mode"), model.impute(X)
    request.getfixturevalue("chains_only")
    # 200 chains: a share of them within 6 standard errors, of at most 0.5 / sqrt(200) each.
    for name, atol in (("free_energy", 0.1), ("transform", 6 * 0.5 / np.sqrt(200))):
        found = getattr(model, name)(X)
        assert_allclose(found, exact[name], atol=atol)
        assert_array_equal(getattr(model, name)(X[::-2]), found[::-2])
    assert_array_equal(model.impute(X, how="mode", n_steps=300, random_state=0), mode)
    assert_allclose(model.impute(X, n_steps=1000, random_state=0), mean, atol=0.25)
    with pytest.raises(ValueError, match="too many to enumerate"):
        model.marginal(0)
    # Within 5 standard errors, and these are small.
    estimate = model.log_partition("ais", random_state=0)
    assert 0 < estimate.std_err < 0.02
    assert abs(estimate.value - logsumexp(weights)) < 5 * estimate.std_err
    assert abs(model.log_partition_ - logsumexp(weights)) < 0.1
