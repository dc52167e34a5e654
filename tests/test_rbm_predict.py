"""What fitted RBMs and DBMs say of rows, against brute force."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mean_field import Spin, deep
from oracles import assert_drawn
from oracles_rbm import (
    SmallDBM,
    SmallRBM,
    agreeing,
    binary,
    pseudo_likelihoods,
    random_dbm,
    random_rbm,
    with_parameters,
)
from private import _modes
from sklearn_boltz import SDCPRBM, TAPRBM
from sklearn_boltz.units import Bernoulli

N_DRAWS = 10_000


def rows(n_features, n_rows=60, seed=0):
    return np.random.default_rng(seed).integers(2, size=(n_rows, n_features)).astype(float)


@cache
def fitted(n_features):
    return SDCPRBM(5, max_iter=1, random_state=0).fit(rows(n_features))


def as_estimator(rbm):
    return with_parameters(fitted(len(rbm.b)), rbm)


def marginal(dbm):
    """All states of the visible layer, and their probabilities."""
    V = binary(len(dbm.intercepts[0]))
    return V, np.exp(dbm.given(V)[0]) / dbm.Z


def machine(kind, n_visible, scale, seed):
    """An estimator, all states of its visible units, and their probabilities."""
    if kind == "deep":
        dbm = random_dbm((n_visible, 3, 2), scale, seed)
        return deep(dbm), *marginal(dbm)
    rbm = random_rbm(n_visible, 4, scale, seed)
    return as_estimator(rbm), rbm.V, rbm.p


both_machines = pytest.mark.parametrize("kind", ["restricted", "deep"])


def entropy_of(p):
    return -(p @ np.log(p))


def holes(n_features, n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n_rows, n_features)).astype(float)
    X[rng.random(X.shape) < 0.6] = np.nan
    return X


# Modes.


@pytest.mark.parametrize("method", ["auto", "gibbs", "tap"])
def test_mode_of_a_deep_model_sums_the_other_layers_out(way, method):
    n_found = 0
    for seed in range(3):
        dbm, X = random_dbm((6, 3, 2), scale=0.7, seed=seed), holes(6, 10, seed)
        model = deep(dbm)
        V, p = marginal(dbm)
        filled = model.impute(X, how="mode", method=method, n_steps=100, random_state=0)
        for row, full in zip(X, filled, strict=True):
            law = agreeing(V, p, row)
            found = law[(V == full).all(axis=1)]
            if way != "chains" and method != "tap":
                assert_array_equal(full, V[law.argmax()])
            # By an expansion, the best state is nearly always found, or one nearly as good.
            assert found > 0.6 * law.max()
            n_found += found == law.max()
    assert n_found >= 28  # of 30


def test_an_ascent_goes_on_where_all_cells_have_changed(monkeypatch):
    """From (0, 0) to (1, 1), and then to (1, 0), where it ends."""

    def field_given(rows):
        return np.where(rows.any(axis=1, keepdims=True), [1.0, -1.0], 1.0)

    V, units = np.zeros((1, 2)), Bernoulli(np.zeros(2))
    found = _modes.expectation_maximisation(units, field_given, V, np.isfinite(V))
    assert_array_equal(found, [[1, 0]])
    monkeypatch.setattr(_modes, "MOST_SWEEPS", 1)
    found = _modes.expectation_maximisation(units, field_given, V, np.isfinite(V))
    assert_array_equal(found, [[1, 1]])


def test_modes_beyond_enumeration_cannot_be_improved():
    rng = np.random.default_rng(0)
    rbm = SmallRBM(rng.normal(size=(5, 12)), rng.normal(size=12), rng.normal(size=5))
    X = np.full((3, 12), np.nan)  # 12 values, two too many
    for n_hidden in (5, 14):
        W, c = rng.normal(0, 2, (n_hidden, 12)), rng.normal(size=n_hidden)
        model = as_estimator(rbm)
        model.components_, model.intercept_hidden_ = W, c
        best = model.free_energy(rbm.V).min()
        filled = model.impute(X, how="mode", n_steps=300, random_state=0)
        assert_allclose(model.free_energy(filled), best)


# Samples.


@both_machines
def test_conditional_samples(way, kind):
    model, V, p = machine(kind, 6, 0.8, seed=3)
    of_some = agreeing(V, p, np.array([np.nan, 1, np.nan, np.nan, 0, np.nan]))
    drawn = model.sample(N_DRAWS, 0, given={1: 1, -2: False}, n_steps=60)
    assert_drawn(drawn, V, of_some)
    if way == "missing":
        drawn = model.sample(5000, 1, given={1: 1, 4: 0}, n_steps=20, n_temperatures=3)
        assert_drawn(drawn, V, of_some)
        started = model.sample(3, 1, given={1: 1, 4: 0}, n_steps=0, init=np.zeros((1, 6)))
        assert_array_equal(started, np.tile([0, 1, 0, 0, 0, 0], (3, 1)))
    everything = model.sample(2, 0, given=dict(enumerate([0, 1, 1, 0, 1, 0])))
    assert_array_equal(everything, np.tile([0, 1, 1, 0, 1, 0], (2, 1)))


@pytest.mark.parametrize("temperature", [0.6, 2.5])
def test_samples_at_a_temperature(temperature):
    rbm = random_rbm(5, 3, seed=1)
    tempered = SmallRBM(*(a / temperature for a in (rbm.W, rbm.b, rbm.c)))
    model = as_estimator(rbm)
    drawn = model.sample(N_DRAWS, 0, temperature=temperature, n_steps=60)
    assert_drawn(drawn, rbm.V, tempered.p)
    drawn = model.sample(N_DRAWS, 0, temperature=temperature, given={0: 1})
    assert_drawn(drawn, rbm.V, agreeing(rbm.V, tempered.p, np.array([1.0] + [np.nan] * 4)))


def test_samples_of_a_deep_model():
    dbm = random_dbm((4, 3, 2), scale=0.8, seed=2)
    model = deep(dbm)
    assert_drawn(model.sample(N_DRAWS, 0, n_steps=50), *marginal(dbm))
    assert_drawn(model.sample(5000, 0, n_steps=20, n_temperatures=3), *marginal(dbm))
    hotter = SmallDBM([W / 2 for W in dbm.weights], [b / 2 for b in dbm.intercepts])
    assert_drawn(model.sample(N_DRAWS, 0, temperature=2, n_steps=60), *marginal(hotter))
    started = model.sample(6, random_state=0, n_steps=0, init=rows(4)[:3])
    assert_array_equal(started, rows(4)[[0, 1, 2, 0, 1, 2]])


# Columns.


@both_machines
def test_probabilities_of_a_column(way, kind):
    (model, V, p), X = machine(kind, 6, 0.8 if kind == "deep" else 1.5, seed=5), holes(6, 10, 5)
    X[0] = [0, 1, 1, 0, 0, 1]
    for column in (0, 3):
        found = model.predict_column_proba(X, column, n_steps=4000, random_state=0)
        assert found.shape == (10, 2)
        ignored = X.copy()
        ignored[:, column] = np.nan
        ones = [agreeing(V, p, row) @ V[:, column] for row in ignored]
        tolerance = 0.03 if way == "chains" else 1e-9
        assert_allclose(found[:, 1], ones, atol=tolerance)
        assert_allclose(found.sum(axis=1), 1)
        if kind != "deep" or way != "chains":  # of a deep machine the hidden units are drawn
            assert_allclose(found[0, 1], ones[0], atol=1e-9)


@pytest.mark.parametrize(("method", "atol"), [("auto", 1e-9), ("tap", 0.03)])
def test_missing_cells_of_a_deep_model(method, atol):
    (model, V, p), X = machine("deep", 5, 0.3, seed=1), holes(5, 8, 4)
    X[0] = [1, 1, 0, 0, 1]
    means = np.array([agreeing(V, p, row) @ V for row in X])
    assert_allclose(model.impute(X, method=method), means, atol=atol)
    # The mean of 4,000 draws, each with a standard error of at most 0.008; 6 of them.
    if method != "tap":
        many = np.repeat(X[3:4], 4000, axis=0)
        drawn = model.impute(many, how="sample", method=method, random_state=0)
        assert_allclose(drawn.mean(axis=0), means[3], atol=0.048)
        assert set(np.unique(drawn)) <= {0, 1}


# Energies and entropies.


@pytest.mark.parametrize("sizes", [(5, 3, 2), (4, 3, 2, 3)])
def test_deep_energies_against_all_states(sizes):
    dbm = random_dbm(sizes, scale=0.7, seed=1)
    model = deep(dbm)
    V, p = marginal(dbm)
    assert model.entropy() == pytest.approx(entropy_of(p), abs=1e-10)
    assert_allclose(model.energy(dbm.layers[0], dbm.layers[1:]), -dbm.log_joint)
    expected = pseudo_likelihoods(np.log(p), (2,) * sizes[0])
    assert_allclose(model.log_pseudo_likelihood(V), expected, atol=1e-9)


# The conditionals of deep models.


def test_conditionals_of_a_deep_model():
    dbm = random_dbm((4, 3, 2), scale=0.8, seed=2)
    model = deep(dbm)
    V, p = marginal(dbm)
    H = [dbm.layers[1][:40], dbm.layers[2][:40]]
    mean = 1 / (1 + np.exp(-(H[0] @ dbm.weights[0] + dbm.intercepts[0])))
    assert_allclose(model.mean_visible(H), mean)
    drawn = np.mean([model.sample_visible(H, seed) for seed in range(2000)], axis=0)
    assert np.abs(drawn - mean).max() < 5.5 * 0.5 / np.sqrt(2000)  # of 160 means: 6e-6
    # Chains that start anywhere end in the distribution of the model.
    ends = model.gibbs(np.zeros((N_DRAWS, 4)), 60, random_state=0)
    assert_drawn(ends, V, p)
    assert_array_equal(model.gibbs(V, 0), V)


@pytest.mark.parametrize("v", [[1.0, 0, 1, 1], [1, np.nan, np.nan, 0]])
@pytest.mark.parametrize("sizes", [(4, 3), (4, 3, 2)])
def test_hidden_units_are_drawn_with_what_is_missing(sizes, v):
    dbm, options = random_dbm(sizes, 0.8, 1), {"n_steps": 30} if sizes[2:] else {}
    model = deep(dbm) if sizes[2:] else as_estimator(SmallRBM(*dbm.weights, *dbm.intercepts))
    agrees = ((dbm.layers[0] == v) | np.isnan(v)).all(axis=1)
    H, hidden = binary(sum(sizes[1:])), np.hstack(dbm.layers[1:])
    law = np.array([dbm.joint[agrees & (hidden == h).all(axis=1)].sum() for h in H])
    drawn = model.sample_hidden(np.tile(v, (N_DRAWS, 1)), random_state=0, **options)
    assert_drawn(np.hstack(drawn) if sizes[2:] else drawn, H, law / law.sum())


# Unit types of users.


class SampledSpin(Spin):
    """With what samples, sums over states and annealing need."""

    def sample(self, field, stream, first_row=0):
        up = (1 + self.mean(field)) / 2
        return np.where(stream.uniform(up.shape, up.dtype, first_row) < up, 1, -1).astype(up.dtype)

    def states(self):
        return np.array([-1.0, 1.0])

    @classmethod
    def neutral(cls, n_units, dtype=np.float64):
        return cls(np.zeros(n_units, dtype))

    def annealed(self, beta, base):
        return SampledSpin((1 - beta) * base.intercept + beta * self.intercept)


@pytest.fixture
def spins():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(60, 5))
    layers = dict(columns=SampledSpin(np.zeros(5)), hidden=SampledSpin(np.zeros(3)))
    model = TAPRBM(3, max_iter=1, random_state=0, **layers).fit(X)
    model.components_ = 0.5 * rng.normal(size=(3, 5))
    model.intercept_visible_, model.intercept_hidden_ = rng.normal(size=5), rng.normal(size=3)
    return model


def of_spins(model, beta=1.0):
    V, H = 2 * binary(5) - 1, 2 * binary(3) - 1
    energy = V @ model.components_.T @ H.T + (V @ model.intercept_visible_)[:, np.newaxis]
    weights = np.exp(beta * (energy + H @ model.intercept_hidden_)).sum(axis=1)
    return V, weights / weights.sum(), np.log(weights.sum())


def test_spins_are_sampled_and_annealed(spins):
    V, p, log_Z = of_spins(spins)
    law_of_some = agreeing(V, p, np.array([-1] + [np.nan] * 4))
    for drawn, law in [
        (spins.sample(N_DRAWS, 0, n_steps=40), p),
        (spins.sample(5000, 0, n_steps=20, n_temperatures=3), p),
        (spins.sample(N_DRAWS, 0, temperature=2.0, n_steps=40), of_spins(spins, 0.5)[1]),
        (spins.sample(N_DRAWS, 0, given={0: -1}), law_of_some),
        (spins.gibbs(V[np.random.default_rng(0).choice(32, N_DRAWS, p=p)], 2, 0), p),
    ]:
        assert set(np.unique(drawn)) <= {-1, 1}
        assert_drawn((drawn + 1) / 2, (V + 1) / 2, law)
    for method in ("ais", "raise"):
        estimate = spins.log_partition(method, n_chains=400, n_temperatures=100, random_state=0)
        assert estimate.value == pytest.approx(log_Z, abs=6 * estimate.std_err)
    assert spins.log_partition_ == pytest.approx(log_Z)
    assert spins.entropy() == pytest.approx(entropy_of(p))
