"""Energies, conditionals, likelihoods and their estimates against brute force."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from oracles_rbm import SmallRBM, binary, random_rbm
from private import (
    Bernoulli,
    Stream,
    Workers,
    _annealing,
    annealed_importance_sampling,
    exact_log_partition,
    impute,
    impute_by_chains,
    log_pseudo_likelihood,
    reverse_importance_sampling,
    row_blocks,
    run_chains,
    temperature_ladder,
    tempered_samples,
)
from private import RBMModel as Model

SIZES = [(1, 1), (3, 2), (6, 10), (10, 6)]


def as_model(rbm, dtype=np.float64):
    return Model(
        rbm.W.astype(dtype), Bernoulli(rbm.b.astype(dtype)), Bernoulli(rbm.c.astype(dtype))
    )


def total_variation(V, p):
    codes = V.astype(int) @ (1 << np.arange(V.shape[1])[::-1])
    return 0.5 * np.abs(np.bincount(codes, minlength=len(p)) / len(V) - p).sum()


def noise_floor(p, n):
    """Mean total variation of n independent samples of p from p, at most."""
    return 0.5 * np.sqrt(2 * p * (1 - p) / (np.pi * n)).sum()


@pytest.mark.parametrize("size", SIZES)
def test_energies_and_conditionals(size):
    rbm = random_rbm(*size)
    model = as_model(rbm)
    np.testing.assert_allclose(model.free_energy(rbm.V), rbm.free_energy(), rtol=1e-12)
    np.testing.assert_allclose(model.mean_hidden(rbm.V), rbm.mean_hidden(), rtol=1e-10)
    np.testing.assert_allclose(model.mean_visible(rbm.H), rbm.mean_visible(), rtol=1e-10)
    i, j = np.unravel_index(np.arange(rbm.joint.size), rbm.joint.shape)
    np.testing.assert_allclose(
        model.energy(rbm.V[i], rbm.H[j]), -rbm.log_joint.ravel(), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        model.transposed().free_energy(rbm.H), -np.log(np.exp(rbm.log_joint).sum(axis=0))
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_partition(size, dtype):
    rbm = random_rbm(*size)
    rtol = 1e-6 if dtype == np.float32 else 1e-13
    assert exact_log_partition(as_model(rbm, dtype)) == pytest.approx(np.log(rbm.Z), rel=rtol)


def test_exact_log_partition_by_blocks():
    rng = np.random.default_rng(0)
    c = rng.normal(size=14)
    model = Model(np.zeros((14, 30)), Bernoulli(np.full(30, 0.5)), Bernoulli(c))
    expected = 30 * np.log1p(np.exp(0.5)) + np.logaddexp(0, c).sum()
    assert exact_log_partition(model) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("size", [(3, 2), (6, 10), (10, 6)])
def test_log_pseudo_likelihood(size):
    rbm = random_rbm(*size)
    model = as_model(rbm)
    np.testing.assert_allclose(
        log_pseudo_likelihood(model, rbm.V), rbm.log_pseudo_likelihood(), rtol=1e-9
    )
    # On chosen features: the mean over all choices is the exact value.
    some = rbm.V[:8]
    features = np.tile(np.arange(size[0]), (len(some), 1))
    np.testing.assert_allclose(
        log_pseudo_likelihood(model, some, features), log_pseudo_likelihood(model, some)
    )


def test_log_pseudo_likelihood_of_probabilities():
    rbm = random_rbm(4, 3)
    model, V = as_model(rbm), np.random.default_rng(0).random((5, 4))
    expected = np.zeros(5)
    for i in range(4):
        on, off = V.copy(), V.copy()
        on[:, i], off[:, i] = 1, 0
        log_odds = model.free_energy(off) - model.free_energy(on)
        expected += V[:, i] * log_odds - np.logaddexp(0, log_odds)
    np.testing.assert_allclose(log_pseudo_likelihood(model, V), expected)


def test_gradient_of_the_log_likelihood_by_finite_differences():
    rbm = random_rbm(5, 3)
    frequencies = np.random.default_rng(1).dirichlet(np.ones(len(rbm.V)))
    model = as_model(rbm)
    H = model.mean_hidden(rbm.V)
    weight = frequencies - rbm.p
    gradients = (H * weight[:, None]).T @ rbm.V, weight @ rbm.V, weight @ H
    for k, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            ends = []
            for step in [1e-5, -1e-5]:
                parameters = [rbm.W.copy(), rbm.b.copy(), rbm.c.copy()]
                parameters[k][index] += step
                ends.append(SmallRBM(*parameters).log_likelihood(frequencies))
            assert gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chains_that_start_in_the_law_stay_in_it(dtype):
    """Total variation below twice its mean under the law itself.

    A sum over 64 states fluctuates by a tenth of its mean at most, so the bound is at ten
    standard deviations: a false alarm is out of the question, with any seed.
    """
    rbm = random_rbm(6, 4)
    n = 40000
    start = rbm.V[np.random.default_rng(0).choice(len(rbm.p), size=n, p=rbm.p)].astype(dtype)
    with Workers(1) as workers:
        for n_sweeps in [1, 4, 16]:
            V, H = start.copy(), np.empty((n, 4), dtype)
            run_chains(as_model(rbm, dtype), V, H, n_sweeps, Stream(n_sweeps), workers)
            assert total_variation(V, rbm.p) < 2 * noise_floor(rbm.p, n)
            np.testing.assert_allclose(H[:100], as_model(rbm).mean_hidden(V[:100]), rtol=1e-5)
        # And the test can fail: other parameters are noticed.
        other = random_rbm(6, 4, seed=1)
        run_chains(as_model(other, dtype), V, H, 16, Stream(0), workers)
        assert total_variation(V, rbm.p) > 4 * noise_floor(rbm.p, n)


def test_chains_forget_their_start():
    rbm = random_rbm(6, 4, scale=0.5)
    V, H = np.zeros((40000, 6)), np.empty((40000, 4))
    with Workers(1) as workers:
        run_chains(as_model(rbm), V, H, 30, Stream(3), workers)
    expected = np.linalg.matrix_power(rbm.sweep(), 30)[0]
    assert total_variation(V, expected) < 2 * noise_floor(expected, len(V))


def test_chains_do_not_depend_on_threads_and_any_units_will_do():
    rng = np.random.default_rng(0)
    model = Model(
        rng.normal(0, 0.1, (200, 300)), Bernoulli(rng.normal(size=300)), Bernoulli(np.zeros(200))
    )
    start, results = (rng.random((130, 300)) < 0.5).astype(float), []
    for n_jobs in [1, 2, 3]:
        V, H = start.copy(), np.empty((130, 200))
        with Workers(n_jobs) as workers:
            run_chains(model, V, H, 3, Stream(1), workers)
        results.append((V, H))

    class Other(Bernoulli):
        """Not known to the fast kernels."""

    slow = Model(model.weights, Other(model.visible.intercept), Other(model.hidden.intercept))
    V, H = start.copy(), np.empty((130, 200))
    run_chains(slow, V, H, 3, Stream(1), workers)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])
    np.testing.assert_array_equal(results[0][0], V)


def test_row_blocks_cover_the_rows():
    for n in [0, 1, 10, 74, 75, 100, 130, 200]:
        blocks = row_blocks(n)
        assert np.concatenate([np.arange(n)[block] for block in blocks]).tolist() == list(range(n))


# Annealed importance sampling.


def base_of(rbm):
    mean = rbm.p @ rbm.V
    return Bernoulli(np.log(mean) - np.log1p(-mean))


@pytest.mark.parametrize("n_temperatures", [1, 3, 20])
def test_ais_is_unbiased(n_temperatures):
    """The mean weight is Z, however short the ladder; the z-score is below 5."""
    rbm = random_rbm(6, 4)
    with Workers(1) as workers:
        estimate = annealed_importance_sampling(
            as_model(rbm), base_of(rbm), temperature_ladder(n_temperatures), 20000, Stream(0),
            workers,
        )  # fmt: skip
    ratio = np.exp(estimate.log_weights) / rbm.Z
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(ratio))
    assert estimate.std_err == pytest.approx(ratio.std() / ratio.mean() / np.sqrt(20000), rel=1e-3)
    assert estimate.ess == pytest.approx(20000 / (1 + (ratio.std() / ratio.mean()) ** 2))


def test_both_ends_enclose_the_log_partition():
    """AIS ≤ exact ≤ RAISE in the mean, with chains from the enumerated law."""
    rbm, rng, n = random_rbm(6, 4, scale=2.0), np.random.default_rng(0), 20000
    betas, exact = temperature_ladder(4), np.log(rbm.Z)
    V = rbm.V[rng.choice(len(rbm.p), size=n, p=rbm.p)]
    with Workers(1) as workers:
        low, high = (
            annealed_importance_sampling(
                as_model(rbm), base_of(rbm), betas, n, Stream(0), workers
            ).log_weights,
            -reverse_importance_sampling(
                as_model(rbm), base_of(rbm), betas, V, Stream(1), workers
            ).log_weights,
        )
    # Estimates from one chain each: both are off by more than five standard errors.
    assert low.mean() + 5 * low.std() / np.sqrt(n) < exact
    assert high.mean() - 5 * high.std() / np.sqrt(n) > exact
    # The weights of the reverse chains are unbiased for 1 / Z.
    ratio = np.exp(-high) * rbm.Z
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(n)


def test_raise_from_rows_is_conservative():
    """For rows that follow the model, the mean bound is below the mean of ln p(v).

    It is the annealing law that is bounded, so rows that do not follow the model may get more.
    """
    rbm, rng = random_rbm(6, 4, scale=2.0), np.random.default_rng(0)
    rows = rbm.V[rng.choice(len(rbm.p), size=20000, p=rbm.p)]
    excess = []
    with Workers(1) as workers:
        for n_temperatures in [1, 200]:
            estimate = reverse_importance_sampling(
                as_model(rbm), base_of(rbm), temperature_ladder(n_temperatures),
                rows, Stream(0), workers, len(rows),
            )  # fmt: skip
            excess.append((estimate.value - np.log(rbm.Z)) / estimate.std_err)
    assert excess[0] > 5
    assert excess[1] > -5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ais_between_biases_alone(dtype):
    """Without weights, from units with other biases; a fixed seed, and ten standard errors."""
    rbm = SmallRBM(np.zeros((2, 4)), [1.0, -2.0, 0.5, 3.0], [0.3, -0.4])
    base = Bernoulli(np.zeros(4, dtype))
    with Workers(1) as workers:
        estimate = annealed_importance_sampling(
            as_model(rbm, dtype), base, temperature_ladder(100), 200, Stream(0), workers
        )
    assert estimate.value == pytest.approx(np.log(rbm.Z), abs=10 * estimate.std_err)
    assert estimate.std_err < 0.05


def test_raise_from_rows_by_hand(monkeypatch):
    """Chains of a row estimate 1 / Z together, and the mean over rows is of the logarithms."""
    log_weights = np.log([1.0, 2, 3, 6])  # of the rows 0, 1, 0, 1
    monkeypatch.setattr(_annealing, "_anneal", lambda *_: log_weights.copy())
    monkeypatch.setattr(_annealing, "base_log_partition", lambda *_: 0.0)
    rbm = random_rbm(6, 4)
    with Workers(1) as workers:
        estimate = reverse_importance_sampling(
            as_model(rbm), base_of(rbm), temperature_ladder(3), rbm.V[:4], Stream(0), workers, 2
        )
    values = -np.log([2, 4])
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.std_err == pytest.approx(np.abs(np.diff(values))[0] / 2)


def test_runs_that_are_apart_are_repeated_and_floors_are_kept(monkeypatch):
    runs = [
        Bunch(value=value, std_err=0.01, low=low, trusted=True, verdict="")
        for value, low in [(0.0, 5.0), (1.0, -2.0), (1.15, -2.0), (1.15, 9.0)]
    ]
    remaining = iter(runs)
    monkeypatch.setattr(_annealing, "annealed_importance_sampling", lambda *_: next(remaining))
    found = _annealing.annealed_within(0.1, None, None, np.linspace(0, 1, 3), 2, None, None)
    assert found is runs[2] and found.trusted  # the first that is within twice 0.1 of the last
    assert found.low == 5.0


def test_reverse_chains_from_the_model_bound_from_above():
    forward, backward = Bunch(low=1.0, value=4.0), Bunch(value=4.5, high=np.inf, low=-np.inf)
    assert _annealing.bracketed(forward, Bunch(**backward), False).high == np.inf
    found = _annealing.bracketed(forward, Bunch(**backward), True)
    # By Markov's inequality, e³ times as much has a probability of 5 %.
    assert (found.low, found.high) == (1.0, 7.5)


def test_ais_in_float32_agrees_and_ladders():
    rbm = random_rbm(10, 6)
    base = base_of(rbm)
    ladder = np.concatenate(
        [np.linspace(0, 0.5, 50), np.linspace(0.5, 0.9, 400), np.linspace(0.9, 1, 1000)]
    )
    with Workers(1) as workers:
        for dtype in [np.float32, np.float64]:
            estimate = annealed_importance_sampling(
                as_model(rbm, dtype), Bernoulli(base.intercept.astype(dtype)),
                temperature_ladder(ladder), 50, Stream(0), workers,
            )  # fmt: skip
            assert estimate.value == pytest.approx(np.log(rbm.Z), abs=5 * estimate.std_err + 1e-3)
    for wrong in [[0.1, 1], [0, 0.9], [0, 0.5, 0.4, 1], [[0, 1]]]:
        with pytest.raises(ValueError, match="n_temperatures"):
            temperature_ladder(wrong)


# Samples and imputation.


def two_modes():
    """A law with two modes that a Gibbs chain practically never leaves."""
    W = np.full((6, 8), 3.0)
    return SmallRBM(W, -W.sum(axis=0) / 2, -W.sum(axis=1) / 2)


def test_parallel_tempering_mixes_where_gibbs_does_not():
    rbm = two_modes()
    model, base = as_model(rbm), base_of(rbm)
    start = np.zeros((2000, 8))
    with Workers(1) as workers:
        plain, H = start.copy(), np.empty((2000, 6))
        run_chains(model, plain, H, 200, Stream(0), workers)
        tempered = tempered_samples(model, base, start, 200, 10, Stream(0), workers)
    assert (plain.mean(axis=1) > 0.5).mean() < 0.05
    # The true share is a half; five standard deviations.
    assert abs((tempered.mean(axis=1) > 0.5).mean() - 0.5) < 2.5 / np.sqrt(2000)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("size", [(6, 4), (12, 3)])
def test_impute(size, exact):
    rbm = random_rbm(*size)
    model, n_missing = as_model(rbm), size[0] - 1
    v = np.full(size[0], np.nan)
    v[0] = 1.0
    missing = np.isnan(v)
    law = rbm.impute(v, missing)
    V, gone = np.tile(v, (4000, 1)), np.tile(missing, (4000, 1))
    rng = np.random.default_rng(0)
    if exact:
        mean = impute(model, V[:1], gone[:1], "mean", 1, rng)[0]
        np.testing.assert_allclose(mean[missing], (law @ rbm.V)[missing], rtol=1e-10)
        mode = impute(model, V[:1], gone[:1], "mode", 1, rng)[0]
        np.testing.assert_array_equal(mode[missing], (law @ rbm.V)[missing] > 0.5)
        samples = impute(model, V, gone, "sample", 1, rng)
        samples[:, 0] = 1
    else:
        means, samples = impute_by_chains(model, V, gone, 40, Stream(0))
        np.testing.assert_allclose(means.mean(axis=0)[missing], (law @ rbm.V)[missing], atol=0.02)
        assert (samples[:, 0] == 1).all()
    assert total_variation(samples, law) < 2 * noise_floor(law, 4000) + 0.01
    assert n_missing > 4


def test_units_keep_their_contract():
    rng = np.random.default_rng(0)
    unit = Bernoulli(rng.normal(size=3))
    field, precision, eps = rng.normal(size=(5, 3)), rng.normal(size=3), 1e-5
    weights = np.exp(unit.intercept + field - 0.5 * precision)
    np.testing.assert_allclose(unit.log_partition(field, precision), np.log1p(weights))
    up, down = (unit.log_partition(field + s * eps, precision) for s in (1, -1))
    np.testing.assert_allclose(unit.mean(field, precision), (up - down) / (2 * eps), rtol=1e-8)
    up, down = (unit.mean(field + s * eps, precision) for s in (1, -1))
    np.testing.assert_allclose(unit.variance(field, precision), (up - down) / (2 * eps), rtol=1e-7)
    np.testing.assert_allclose(unit.log_partition_sum(field), unit.log_partition(field).sum(axis=1))
    X = binary(3)
    np.testing.assert_allclose(unit.log_weight(X), X @ unit.intercept)
    for j in range(3):
        shift = np.eye(3)[j] * eps
        up, down = Bernoulli(unit.intercept + shift), Bernoulli(unit.intercept - shift)
        by_rows = (up.log_weight(X).mean() - down.log_weight(X).mean()) / (2 * eps)
        assert unit.gradients(X)["intercept"][j] == pytest.approx(by_rows)
        tilted = up.log_partition(field, precision) - down.log_partition(field, precision)
        assert unit.gradients(None, field, precision)["intercept"][j] == pytest.approx(
            tilted.sum() / (2 * eps) / len(field)
        )
    halfway = unit.fallen(0.5, unit.base())
    np.testing.assert_allclose(halfway.intercept, unit.intercept / 2)
    assert list(unit.states()) == [0, 1] and len(unit) == 3
