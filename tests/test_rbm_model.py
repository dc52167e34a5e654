"""Energies, conditionals, chains and estimates of RBMs of any units: sums and quadrature."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from oracles import assert_drawn
from oracles_rbm import SmallRBM, law_of, random_rbm, typed
from private import RBMModel as Model
from private import (
    Stream,
    Workers,
    _annealing,
    _enumeration,
    filled_by_chains,
    impute,
    log_pseudo_likelihood,
    run_chains,
    temperature_ladder,
    tempered_samples,
)
from sklearn_boltz import SDCPRBM
from sklearn_boltz.units import Bernoulli, Gaussian

# Off by five standard deviations: a false alarm has a probability of 6e-7.
SIGMAS = 5
PAIRS = [("BB", "B"), ("T", "B"), ("B", "S"), ("S", "T")]
OF_CATEGORIES = [("C", "B"), ("CC", "BC"), ("BC", "G"), ("G", "B"), ("M", "C"), ("BC", "TC")]
CONTINUOUS = [("G", "G"), ("M", "TC")]
# With the scale of the weights.
LAWS = [*((*pair, 1.0) for pair in PAIRS), *((*pair, 0.7) for pair in OF_CATEGORIES),
        *((*pair, 0.4) for pair in CONTINUOUS)]  # fmt: skip


def name_of(case):
    return "-".join(case[:2])


@pytest.fixture(params=LAWS, ids=name_of)
def law(request):
    return law_of(*request.param)


def some_laws(without):
    cases = [case for case in LAWS if case[:2] not in without]
    return pytest.mark.parametrize("law", cases, ids=name_of, indirect=True)


def as_model(rbm, dtype=np.float64):
    return typed(Model(rbm.W, Bernoulli(rbm.b), Bernoulli(rbm.c)), dtype)


def base_of(model):
    rows = model.visible.sample(np.zeros((500, len(model.visible)), model.dtype), Stream(9))
    return model.visible.fitted_to(rows)


def assert_moments(rows, law):
    """First and second moments of drawn rows are those of the law."""
    assert law.model.visible.contains(rows).all()
    i, j = np.triu_indices(1 + rows.shape[1])
    rows, V = (np.column_stack([np.ones(len(X)), X]) for X in (rows, law.V))
    products = V[:, i] * V[:, j]
    expected = law.p @ products
    spread = np.sqrt(np.maximum(law.p @ products**2 - expected**2, 0))
    error = (rows[:, i] * rows[:, j]).mean(axis=0) - expected
    assert (np.abs(error) <= SIGMAS * spread / np.sqrt(len(rows)) + 1e-6).all()


def assert_unbiased(ratio):
    assert abs(ratio.mean() - 1) < SIGMAS * ratio.std() / np.sqrt(len(ratio))


# Energies, conditionals and log-partitions.


@pytest.mark.parametrize("size", [(1, 1), (6, 10)])
def test_energies_and_conditionals(size):
    rbm = random_rbm(*size)
    model = as_model(rbm)
    assert_allclose(model.free_energy(rbm.V), rbm.free_energy(), rtol=1e-12)
    assert_allclose(model.mean_hidden(rbm.V), rbm.mean_hidden(), rtol=1e-10)
    assert_allclose(model.mean_visible(rbm.H), rbm.mean_visible(), rtol=1e-10)
    i, j = np.unravel_index(np.arange(rbm.joint.size), rbm.joint.shape)
    energy = model.energy(rbm.V[i], rbm.H[j])
    assert_allclose(energy, -rbm.log_joint.ravel(), rtol=1e-10, atol=1e-12)
    of_hidden = -np.log(np.exp(rbm.log_joint).sum(axis=0))
    assert_allclose(model.transposed().free_energy(rbm.H), of_hidden)
    found = log_pseudo_likelihood(model, rbm.V)
    assert_allclose(found, rbm.log_pseudo_likelihood(), rtol=1e-9)
    # On chosen features: the mean over all choices is the exact value.
    features = np.tile(np.arange(size[0]), (len(rbm.V[:8]), 1))
    assert_allclose(log_pseudo_likelihood(model, rbm.V[:8], features), found[:8])
    for dtype, rtol in [(np.float32, 1e-6), (np.float64, 1e-13)]:
        log_Z = _enumeration.exact_log_partition(as_model(rbm, dtype))
        assert log_Z == pytest.approx(np.log(rbm.Z), rel=rtol)


@some_laws(without=[("S", "T"), *CONTINUOUS])
def test_exact_log_partition_and_free_energy(law):
    for dtype, rtol in [(np.float64, 1e-11), (np.float32, 1e-6)]:
        assert_exact(law, dtype, rtol)


def assert_exact(law, dtype, rtol):
    model, log_Z = typed(law.model, dtype), pytest.approx(law.log_Z, rel=rtol, abs=rtol)
    assert (
        _enumeration.exact_log_partition(model)
        == _enumeration.exact_log_partition(model.transposed())
        == log_Z
    )
    assert _enumeration.n_enumerated(model) < 5
    if model.visible.is_enumerable:
        V = _enumeration.all_states(model.visible)
        assert_array_equal(V, law.V)
        assert_array_equal(_enumeration.enumerated(model.visible, 2, 4), V[2:4])
        log_p = -model.free_energy(V.astype(dtype)) - law.log_Z
        assert_allclose(log_p, law.log_p, rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("cell", [1.0, 1.5, -0.5])
def test_numbers_beyond_the_unit_interval_are_no_probabilities(cell):
    X = np.random.default_rng(0).random((60, 2))
    X[0, 0] = cell
    kind = SDCPRBM(2, max_iter=1, random_state=0).fit(X).columns_[0]
    assert kind == ("probability" if cell == 1 else "binned")


def test_tags_say_whether_values_may_be_negative():
    for columns, expected in ((Bernoulli(np.zeros(2)), True), (Gaussian.neutral(2), False)):
        assert SDCPRBM(columns=columns).__sklearn_tags__().input_tags.positive_only == expected


def test_wide_ends_of_ln_z_are_told():
    """With 10,000 chains a ladder would be too dear: annealed ones leave three nats above them."""
    X = np.random.default_rng(0).integers(2, size=(50, 22))
    model = SDCPRBM(21, max_iter=1, track_likelihood=False, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="and between .*, 3 nats above both"):
        wide = model.log_partition(n_chains=10_000, n_temperatures=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow = model.log_partition(random_state=0)
    assert wide.trusted and narrow.trusted and narrow.high - narrow.low < 0.5
    assert wide.low < narrow.value < wide.high


def test_log_pseudo_likelihood_of_probabilities():
    model, V = as_model(random_rbm(4, 3)), np.random.default_rng(0).random((5, 4))
    expected = np.zeros(5)
    for i in range(4):
        on, off = V.copy(), V.copy()
        on[:, i], off[:, i] = 1, 0
        log_odds = model.free_energy(off) - model.free_energy(on)
        expected += V[:, i] * log_odds - np.logaddexp(0, log_odds)
    assert_allclose(log_pseudo_likelihood(model, V), expected)


# Chains.


def test_chains_stay_in_the_law(law, workers):
    dtype = np.float32 if law.model.hidden.is_binary else np.float64
    model, n = typed(law.model, dtype), 20_000
    V, H = law.draw(n).astype(dtype), np.empty((n, len(law.model.hidden)), dtype)
    run_chains(model, V, H, 2, Stream(0), workers)
    assert_moments(V, law)
    assert_moments(tempered_samples(model, base_of(model), V, 3, 3, Stream(1), workers), law)


def test_chains_forget_their_start(workers):
    rbm = random_rbm(6, 4, scale=0.5)
    V, H = np.zeros((20_000, 6)), np.empty((20_000, 4))
    run_chains(as_model(rbm), V, H, 30, Stream(3), workers)
    assert_drawn(V, rbm.V, np.linalg.matrix_power(rbm.sweep(), 30)[0])


class OwnBits(Bernoulli):
    """Not known to the fast kernels."""


def test_chains_do_not_depend_on_threads_and_any_units_will_do():
    rng = np.random.default_rng(0)
    model = Model(
        rng.normal(0, 0.1, (200, 300)), Bernoulli(rng.normal(size=300)), Bernoulli(np.zeros(200))
    )
    slow = Model(model.weights, OwnBits(model.visible.intercept), OwnBits(model.hidden.intercept))
    start, results = (rng.random((130, 300)) < 0.5).astype(float), []
    for machine, n_jobs in [(model, 1), (model, 2), (model, 3), (slow, 1)]:
        V, H = start.copy(), np.empty((130, 200))
        with Workers(n_jobs) as workers:
            run_chains(machine, V, H, 3, Stream(1), workers)
        results.append((V, H))
    for V, _ in results[1:]:
        assert_array_equal(V, results[0][0])
    for _, H in results[1:3]:
        assert_array_equal(H, results[0][1])


@pytest.mark.parametrize(("n", "n_temperatures", "n_steps"), [(8, 10, 200), (5, 2, 600)])
def test_parallel_tempering_mixes_where_gibbs_does_not(n, n_temperatures, n_steps, workers):
    """In a law with two modes that a Gibbs chain practically never leaves."""
    W, start = np.full((6, n), 24.0 / n), np.zeros((1000, n))
    model = as_model(SmallRBM(W, -W.sum(axis=0) / 2, -W.sum(axis=1) / 2))
    plain = start.copy()
    run_chains(model, plain, np.empty((1000, 6)), 200, Stream(0), workers)
    assert (plain.mean(axis=1) > 0.5).mean() < 0.05
    base = Bernoulli(np.zeros(n))
    tempered = tempered_samples(model, base, start, n_steps, n_temperatures, Stream(0), workers)
    # The true share is a half.
    share = (tempered.mean(axis=1) > 0.5).mean()
    assert abs(share - 0.5) < SIGMAS * 0.5 / np.sqrt(1000)


# Annealed importance sampling.


def test_ais_is_unbiased(law, workers):
    """The mean weight is Z, however short the ladder."""
    model, n, n_temperatures = law.model, 20_000, 1 if law.model.hidden.is_binary else 4
    estimate = _annealing.annealed_importance_sampling(
        model, base_of(model), temperature_ladder(n_temperatures), n, Stream(0), workers
    )
    ratio = np.exp(estimate.log_weights - law.log_Z)
    assert_unbiased(ratio)
    assert model.visible.contains(estimate.states).all()
    base = base_of(model)
    expected = base.log_partition(0.0).sum() + model.hidden.base().log_partition(0.0).sum()
    assert _annealing.base_log_partition(model, base) == pytest.approx(expected)
    spread = ratio.std() / ratio.mean()
    assert estimate.std_err == pytest.approx(spread / np.sqrt(n), rel=1e-3)
    assert estimate.ess == pytest.approx(n / (1 + spread**2))
    # With ever more temperatures between the same ends.
    close = _annealing.annealed_within(
        0.05, model, base, temperature_ladder(2), 200, Stream(1), workers
    )
    assert close.value == pytest.approx(law.log_Z, abs=SIGMAS * max(close.std_err, 0.01))
    never = _annealing.annealed_within(1e-9, model, base, np.arange(2.0), 2, Stream(1), workers)
    assert not never.trusted and "64 temperatures and 128 chains it is not" in never.verdict


def test_reverse_ais_is_unbiased(law, workers):
    """From samples of the model, the mean weight is 1 / Z."""
    model = law.model
    estimate = _annealing.reverse_importance_sampling(
        model, base_of(model), temperature_ladder(5), law.draw(20_000), Stream(1), workers
    )
    assert_unbiased(np.exp(estimate.log_weights + law.log_Z))
    assert estimate.value == pytest.approx(law.log_Z, abs=0.1)


def test_raise_from_rows_is_conservative(workers):
    """For rows that follow the model, the mean bound is below the mean of ln p(v)."""
    law, excess = law_of("BB", "B", 2.0), []
    rows = law.draw(10_000)
    for n_temperatures in [1, 200]:
        estimate = _annealing.reverse_importance_sampling(
            law.model, base_of(law.model), temperature_ladder(n_temperatures), rows, Stream(0),
            workers, len(rows),
        )  # fmt: skip
        excess.append((estimate.value - law.log_Z) / estimate.std_err)
    assert excess[0] > SIGMAS
    assert excess[1] > -SIGMAS


def test_ends_of_chains_are_drawn_by_their_weights():
    """The weights themselves would be beyond all numbers."""
    found = Bunch(log_weights=np.log([1.0, 3, 6] * 3000) + 1e4, states=np.arange(9000) % 3)
    drawn = _annealing.resampled(found, np.random.default_rng(0))
    p = np.array([0.1, 0.3, 0.6])
    assert (np.abs(np.bincount(drawn) / 9000 - p) < SIGMAS * np.sqrt(p / 9000)).all()


# Imputation.


@some_laws(without=[("T", "B"), ("B", "S"), ("C", "B"), ("G", "B"), *CONTINUOUS])
def test_impute(law, way):
    """All units but one are missing."""
    model, rng = law.model, np.random.default_rng(0)
    n, n_steps = (300, 400) if way == "chains" else (1500, 40)  # 400 of 20 chains together
    side = model.visible if way == "missing" else model.hidden
    if way != "chains" and not side.is_enumerable:
        pytest.skip("this side has a continuum of values")
    known, observed = law.V[np.argmax(law.p)], np.zeros(law.V.shape[1], dtype=bool)
    observed[model.visible.columns_of(0)] = True
    rows, p = law.given(known, observed)
    V = np.tile(np.where(observed, known, np.nan), (n, 1))
    missing, mean = np.isnan(V), p @ rows
    spread = np.sqrt(np.maximum(p @ rows**2 - mean**2, 1e-12))
    near = SIGMAS * spread / np.sqrt(n) + 1e-12
    if way == "chains":
        filled = impute(model, base_of(model), V, missing, "mean", n_steps, rng).mean(axis=0)
        assert (np.abs(filled - mean) < near)[~observed].all()
        chained = filled_by_chains(model, V, missing, "sample", 40, Stream(0))
        assert (chained[:, observed] == known[observed]).all()
        assert (np.abs(chained.mean(axis=0) - mean) < near).all()
    else:
        filled = impute(model, base_of(model), V[:1], missing[:1], "mean", n_steps, rng)[0]
        assert_allclose(filled[~observed], mean[~observed], rtol=1e-9, atol=1e-9)
    filled = impute(model, base_of(model), V, missing, "sample", n_steps, rng)
    filled[:, observed] = known[observed]
    assert model.visible.contains(filled).all()
    assert (np.abs(filled.mean(axis=0) - mean) < near).all()
    # The most probable state of what has states, and the mean of the rest given that.
    continuous = np.repeat(np.isinf(model.visible.state_counts), model.visible.widths)
    states, group = np.unique(rows[:, ~continuous], axis=0, return_inverse=True)
    best = np.bincount(group.ravel(), weights=p).argmax()
    here = group.ravel() == best
    rest = p[here] @ rows[here][:, continuous] / p[here].sum()
    found = impute(model, base_of(model), V[:1], missing[:1], "mode", 2000, rng)[0]
    chosen = ~continuous & ~observed
    if way != "chains" or not continuous.any():
        assert_array_equal(found[chosen], states[best][chosen[~continuous]])
    chosen = continuous & ~observed
    error = np.abs(found[chosen] - rest[chosen[continuous]])
    assert (error <= (0.5 if way == "chains" else 1e-6) * (1 + spread[chosen])).all()


def test_exact_log_partition_by_blocks():
    c = np.random.default_rng(0).normal(size=14)
    model = Model(np.zeros((14, 30)), Bernoulli(np.full(30, 0.5)), Bernoulli(c))
    expected = 30 * np.log1p(np.exp(0.5)) + np.logaddexp(0, c).sum()
    assert _enumeration.exact_log_partition(model) == pytest.approx(expected, rel=1e-13)
    assert _enumeration.n_enumerated(law_of("S", "T").model) == np.inf


def test_reverse_chains_from_the_model_bound_from_above():
    forward, backward = Bunch(low=1.0, value=4.0), Bunch(value=4.5, high=np.inf, low=-np.inf)
    assert _annealing.bracketed(forward, Bunch(**backward), False).high == np.inf
    found = _annealing.bracketed(forward, Bunch(**backward), True)
    # By Markov's inequality, e³ times as much has a probability of 5 %.
    assert (found.low, found.high) == (1.0, 7.5)
