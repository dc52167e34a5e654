"""Pairwise networks beyond enumeration: the ladder of temperatures, against enumeration.

Where a figure is said to be within 4 standard errors, that fails by chance with a probability of
1e-4, since the errors are those of the mean of 100 independent simulations. Random numbers have
fixed seeds, except for those that hypothesis chooses.
"""

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import lattice
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import columns, enumerate_states, estimator_of, random_model, random_spins, seeds
from scipy.special import comb, logsumexp

from private import SpinModel, Workers, _model, _tempering
from sklearn_boltz import statistics

NAMES = "log_partition", "energy", "entropy", "specific_heat"
# ln Z of the Ising model on the periodic 7 × 7 lattice, by transfer matrix.
ISING = {0.4: 43.447619, 0.6: 59.989710}


def path_to(model, seed=0):
    """The path from independent columns, and a generator."""
    rng = np.random.default_rng(seed)
    return _tempering.Path.from_model(model, np.zeros_like(model.intercept), rng), rng


def ising(beta, field=0.0):
    """A lattice of ±1."""
    return estimator_of(SpinModel(beta * lattice(7), np.full(49, field)), low=-1)


@pytest.fixture(scope="module")
def estimator():
    """A small network of strong couplings, whose two modes differ in mass."""
    rng = np.random.default_rng(0)
    coupling = 0.3 + 0.1 * rng.normal(size=(8, 8))
    coupling = np.triu(coupling, 1) + np.triu(coupling, 1).T
    return estimator_of(SpinModel(coupling, 0.1 * rng.normal(size=8)), low=-1)


# ln Z.


@given(columns.filter(lambda n: len(n) > 1), st.floats(0, 1.5), seeds)
@settings(max_examples=cases(12))
def test_log_partition_of_any_model(n_values, strength, seed):
    """Within 6 standard errors: a false alarm once in 1e7 runs, by Student's t of 99 degrees."""
    model = random_model(n_values, seed, strength=strength)
    path, rng = path_to(model, seed)
    estimate = _tempering.ladder_log_partition(path, None, 100, 0.1, 3000, rng)
    assert abs(estimate.value - logsumexp(enumerate_states(model)[2])) < 6 * estimate.std_err + 1e-8
    assert estimate.trusted and estimate.std_err <= 0.1
    assert estimate.high - estimate.low == pytest.approx(6 * estimate.std_err)


def test_standard_errors_are_right():
    """z scores of 40 runs: mean 0 within 4 / √40, and variance 1 within its quantiles of 1e-4."""
    network = random_spins(8, 3, 0.4)
    model, exact = estimator_of(network), logsumexp(enumerate_states(network)[2])
    runs = [model.log_partition("ladder", n_chains=50, random_state=seed) for seed in range(40)]
    z = [(run.value - exact) / run.std_err for run in runs]
    assert abs(np.mean(z)) < 4 / np.sqrt(40)
    assert 0.33 < np.var(z) < 2.3


@pytest.mark.parametrize("beta", ISING)
def test_two_modes_of_the_ising_model(beta):
    """ln Z and, where it has modes, the share of the one that is up: within 4 standard errors."""
    path, rng = path_to(SpinModel(beta * lattice(7), np.zeros(49)))
    estimate = _tempering.ladder_log_partition(path, None, 100, 0.1, 2000, rng)
    assert estimate.trusted and estimate.std_err <= 0.1
    assert abs(estimate.value - ISING[beta]) < 4 * estimate.std_err
    if beta >= 0.5:
        with Workers(1) as workers:
            codes, is_broken = _tempering.draw(path, estimate.betas, 200, 200, rng, workers, False)
        assert abs((codes.mean(axis=1) > 0.5).mean() - 0.5) < 4 * np.sqrt(0.25 / 200)
        assert not is_broken


def test_the_ladder_beside_enumeration(estimator):
    exact, found = estimator.log_partition(), estimator.log_partition("ladder", random_state=0)
    assert abs(found.value - exact.value) < 4 * found.std_err
    assert (found.method, found.trusted, found.log_weights) == ("ladder", True, None)
    assert found.low < found.value < found.high and found.ess > 20
    assert len(found.acceptances) == len(found.betas) - 1
    assert set(found.states.ravel()) == {-1, 1} and found.states.shape == (100, 8)
    assert "no sign of failure" in found.verdict
    again = estimator.log_partition("ladder", random_state=0)
    assert again.value == found.value
    hot = estimator.log_partition("ladder", temperature=3.0, random_state=0)
    assert abs(hot.value - estimator.log_partition(temperature=3.0).value) < 4 * hot.std_err
    assert hot.value < found.value
    few = estimator.log_partition("ladder", n_chains=8, random_state=0)
    # Student's t of 7 degrees of freedom: beyond 8 with a probability of 1e-4.
    assert abs(few.value - estimator.log_partition_) < 8 * few.std_err
    found = estimator.log_partition("ladder", n_temperatures=4, random_state=0)
    assert_allclose(found.betas, [0, 0.25, 0.5, 0.75, 1])
    assert abs(found.value - estimator.log_partition_) < 4 * found.std_err


def test_a_broken_ladder_says_so():
    """From independent columns to a cold lattice in one step: no bounds, and a warning."""
    model = ising(2.0)
    with pytest.warns(UserWarning, match="is not to be trusted: of the exchanges between two"):
        found = model.log_partition("ladder", n_temperatures=1, random_state=0)
    assert not found.trusted and (found.low, found.high) == (-np.inf, np.inf)
    with pytest.warns(UserWarning, match="is not to be trusted: of the exchanges between two"):
        model.log_partition("ladder", n_temperatures=1, temperature=1.1, random_state=0)
    with pytest.warns(UserWarning, match="log_partition_ is uncertain by at least"):
        model.log_partition("ais", n_temperatures=1, random_state=0)
    told = "hardly exchange states.*not to be trusted. Leave n_temperatures at None.$"
    with pytest.warns(UserWarning, match=told):
        model.sample(50, random_state=0, n_steps=50, n_temperatures=2)
    told = "^((?!n_temperatures).)*may connect the modes; fit with a larger alpha.$"
    with pytest.warns(UserWarning, match=told):
        model.sample(5, 0, n_steps=3)


def test_too_few_rounds_say_so():
    model = ising(0.5)
    options = dict(method="ladder", tol=1e-3, random_state=0)
    found = model.log_partition(**options, max_rounds=400)
    assert found.trusted and found.std_err > 1e-3
    assert found.verdict.endswith(f"More than 0.001 after {found.n_rounds} rounds, though.")
    with pytest.warns(UserWarning, match="of 100 chains are still where they began"):
        found = model.log_partition(**options, max_rounds=1)
    assert found.n_rounds == 128 and not found.trusted
    # By default, annealing closes what this leaves open.
    with pytest.warns(UserWarning, match=r"where they began.* by annealed importance sampling"):
        found = model.log_partition(random_state=0, max_rounds=1)
    assert not found.trusted and found.low < found.value < found.high < found.low + 8


def test_mass_that_chains_from_the_data_do_not_see():
    """A mode of ones, far from the base rates, with nearly all mass: it is found and exact."""
    d = 20
    model = SpinModel(0.25 * (1 - np.eye(d)), np.full(d, -1.0))
    # Couplings are equal: a sum over the number of ones.
    n_ones = np.arange(d + 1)
    total = 2 * n_ones - d
    log_z = np.log(comb(d, n_ones) @ np.exp(0.25 * (total**2 - d) / 2 - total))
    rng = np.random.default_rng(0)
    path = _tempering.Path.from_model(model, np.full(d, -2.0), rng)
    estimate = _tempering.ladder_log_partition(path, None, 100, 0.05, 3000, rng)
    assert abs(estimate.value - log_z) < 4 * estimate.std_err


def brute_force(model, T):
    """The values of `thermodynamics` at one temperature."""
    weights = enumerate_states(model)[2]
    log_z = np.logaddexp.reduce(weights / T)
    p = np.exp(weights / T - log_z)
    mean = p @ weights
    return log_z, -mean, -(p * (weights / T - log_z)).sum(), p @ (weights - mean) ** 2 / T**2


@pytest.mark.parametrize("n_values", [[2] * 6, [3, 2, 4], [2]])
def test_exact_thermodynamics(n_values):
    model = random_model(n_values, 2)
    for T in (0.1, 1.0, 30.0):
        log_z, weight, variance = model.cumulants([1 / T])[:, 0]
        log_z_, energy, entropy, heat = brute_force(model, T)
        assert_allclose([log_z, -weight], [log_z_, energy], atol=1e-9)
        assert_allclose([log_z - weight / T, variance / T**2], [entropy, heat], atol=1e-9)


def test_thermodynamics_by_the_ladder(estimator, monkeypatch):
    """All figures at all temperatures within 4.5 standard errors: a false alarm in 1e-4."""
    T = [5.0, 0.5, 1.0, 1.0, 2.0]
    exact = statistics.thermodynamics(estimator, T)
    assert exact.method == "exact" and not any(exact.std_err[name].any() for name in NAMES)
    monkeypatch.setattr(_model, "MAX_STATES", 1)
    found = statistics.thermodynamics(estimator, T, random_state=0)
    assert found.method == "ladder" and found.trusted
    assert_array_equal(found.temperature, T)
    for name in NAMES:
        assert (found.std_err[name] > 0).all()
        z = (found[name] - exact[name]) / found.std_err[name]
        assert np.abs(z).max() < 4.5, name
        assert found[name][2] == found[name][3]
    assert (found.std_err.entropy < 0.05).all()
    found = statistics.thermodynamics(estimator, T, tol=1e-3, max_rounds=200, random_state=0)
    assert found.trusted and found.verdict.endswith(" nats.")
    with pytest.warns(UserWarning, match="estimates by .* temperatures are not to be trusted"):
        cold = estimator_of(SpinModel(2.0 * lattice(4), np.zeros(16)), low=-1)
        statistics.thermodynamics(cold, 1.0, max_rounds=1, random_state=0)


def test_shares_of_modes_in_samples():
    """Two modes that plain chains never leave. The exact mean spin is .433: 4 standard errors."""
    model = ising(0.6, 0.01)
    X = model.sample(300, random_state=0, n_steps=300)
    assert abs(X.mean() - 0.433) < 4 * 0.05
    assert len(model.sample(3, random_state=0, n_steps=20, n_temperatures=1)) == 3
    held = model.sample(20, random_state=0, n_steps=50, given={0: 1, 5: -1})
    assert (held[:, 0] == 1).all() and (held[:, 5] == -1).all()
