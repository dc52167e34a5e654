"""Networks of pairs as distributions: every verb against enumeration, for columns of any kind."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from scipy.stats import chi2

from sklearn_boltz._random_kernel import uniform
from sklearn_boltz.fully_visible.model import _incomplete, _joint, _model
from sklearn_boltz.fully_visible.model._categorical_gibbs import categorical_sweeps
from sklearn_boltz.fully_visible.model._potts_model import PottsModel
from sklearn_boltz.fully_visible.model._spin_model import SpinModel
from sklearn_boltz.fully_visible.sampling._sampling import (
    annealed_log_partition,
    gibbs_complete,
    gibbs_sample,
)

# Probability of a false alarm of a chi-square test.
FALSE_ALARM = 1e-6


def random_potts(n_values, seed=0, scale=0.7, density=1.0):
    """A model in no particular gauge, some of its blocks 0."""
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    starts = np.concatenate([[0], np.cumsum(n_values)])
    coupling = np.zeros((starts[-1],) * 2)
    for j, k in itertools.combinations(range(len(n_values)), 2):
        if rng.random() < density:
            block = rng.normal(scale=scale, size=(n_values[j], n_values[k]))
            coupling[starts[j] : starts[j + 1], starts[k] : starts[k + 1]] = block
            coupling[starts[k] : starts[k + 1], starts[j] : starts[j + 1]] = block.T
    return PottsModel(coupling, rng.normal(scale=scale, size=starts[-1]), n_values)


def random_spins(d, seed=0, scale=0.6, density=1.0):
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(scale=scale, size=(d, d)) * (rng.random((d, d)) < density), 1)
    return SpinModel(coupling + coupling.T, rng.normal(scale=scale, size=d))


def random_model(n_values, seed, density=1.0):
    """A model of spins where all columns have two values."""
    if set(n_values) == {2} and seed % 2:
        return random_spins(len(n_values), seed, density=density)
    return random_potts(n_values, seed, density=density)


def enumerate_states(model):
    """All joint states, and the logarithms of their probabilities and weights."""
    states = np.array(list(itertools.product(*map(range, model.n_values))))
    if isinstance(model, SpinModel):
        x = 2 * states - 1
        weights = 0.5 * np.einsum("ij,jk,ik->i", x, model.coupling, x) + x @ model.intercept
    else:
        starts = np.concatenate([[0], np.cumsum(model.n_values)])[:-1]
        x = np.zeros((len(states), len(model.intercept)))
        np.put_along_axis(x, states + starts, 1, axis=1)
        weights = 0.5 * np.einsum("ij,jk,ik->i", x, model.coupling, x) + x @ model.intercept
    return states, weights - logsumexp(weights), weights


def with_gaps(states, n, seed, share=0.4):
    rng = np.random.default_rng(seed)
    codes = states[rng.integers(len(states), size=n)].copy()
    codes[rng.random(codes.shape) < share] = -1
    return codes


def agreeing(states, row):
    """Which states have the observed cells of a row."""
    return ((states == row) | (row < 0)).all(axis=1)


def brute_conditional(model, states, log_p, row, j):
    """p(x_j | the observed cells of the row but j)."""
    row = row.copy()
    row[j] = -1
    p = np.exp(log_p) * agreeing(states, row)
    found = np.bincount(states[:, j], p, minlength=model.n_values[j])
    return found / found.sum()


columns = st.lists(st.integers(2, 4), min_size=1, max_size=5)
densities = st.sampled_from([1.0, 0.5, 0.0])
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=25, deadline=None)
@given(columns, densities, seeds)
def test_the_whole_distribution(n_values, density, seed):
    model = random_model(n_values, seed, density)
    states, log_p, weights = enumerate_states(model)
    assert model.is_enumerable()
    assert_allclose(model.log_weight(states), weights, atol=1e-12)
    assert model.log_partition() == pytest.approx(logsumexp(weights), abs=1e-10)
    assert model.entropy() == pytest.approx(-np.exp(log_p) @ log_p, abs=1e-10)
    some = np.random.default_rng(seed).permutation(len(n_values))[:3]
    table = np.zeros(np.array(n_values)[some])
    np.add.at(table, tuple(states[:, some].T), np.exp(log_p))
    assert_allclose(model.marginal(some.tolist()), table, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(columns, densities, seeds)
def test_rows_with_missing_cells(n_values, density, seed):
    model = random_model(n_values, seed, density)
    states, log_p, weights = enumerate_states(model)
    codes = with_gaps(states, 12, seed)
    codes[0] = -1
    found = model.log_sums(codes, model.intercept)
    assert_allclose(found, [logsumexp(weights[agreeing(states, row)]) for row in codes], atol=1e-10)
    conditionals = np.exp(model.log_conditionals_of_any(codes))
    pseudo = model.log_pseudo_likelihood(codes)
    mean, mode = (_incomplete.impute(model, codes, how, 1, None) for how in ("mean", "mode"))
    for i, row in enumerate(codes):
        total, p = 0.0, np.exp(log_p) * agreeing(states, row)
        for j in range(len(n_values)):
            expected = brute_conditional(model, states, log_p, row, j)
            own = conditionals[i, model.starts[j] : model.starts[j + 1]]
            assert_allclose(own, expected, atol=1e-11)
            column = _incomplete.column_probabilities(model, codes[i : i + 1], j, 1, None)
            assert_allclose(column[0], expected, atol=1e-11)
            total += np.log(expected[row[j]]) if row[j] >= 0 else 0
        assert pseudo[i] == pytest.approx(total, abs=1e-10)
        assert_allclose(mean[i], p @ states / p.sum(), atol=1e-11)
        assert p[(states == mode[i]).all(axis=1)] == pytest.approx(p.max(), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(columns.filter(lambda n: len(n) > 1), seeds, st.sampled_from([0.4, 1.0, 3.0]))
def test_given_and_tempered(n_values, seed, temperature):
    model = random_model(n_values, seed)
    states, _, weights = enumerate_states(model)
    rng = np.random.default_rng(seed)
    known = rng.permutation(len(n_values))[: len(n_values) // 2]
    values = np.array([rng.integers(n_values[j]) for j in known])
    part = model.given(known, values).tempered(temperature)
    kept = (states[:, known] == values).all(axis=1)
    free = np.setdiff1d(np.arange(len(n_values)), known)
    expected = weights[kept] / temperature
    found = part.log_weight(states[kept][:, free])
    assert_allclose(found - found[0], expected - expected[0], atol=1e-10)
    assert_array_equal(part.n_values, np.array(n_values)[free])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), densities, seeds)
def test_spins_are_a_potts_model_of_two_values(d, density, seed):
    spins = random_spins(d, seed, density=density)
    potts = spins.potts()
    codes = np.random.default_rng(seed).integers(-1, 2, size=(20, d))
    assert potts.log_partition() == pytest.approx(spins.log_partition(), abs=1e-10)
    for name in ("log_pseudo_likelihood", "log_conditionals_of_any"):
        for rows in (codes, np.abs(codes)):
            assert_allclose(getattr(potts, name)(rows), getattr(spins, name)(rows), atol=1e-10)
    p = potts.expectation(codes)
    assert_allclose(spins.expectation(codes), p[:, 1::2] - p[:, ::2], atol=1e-10)
    assert_array_equal(potts.adjacency(), spins.adjacency())
    base = spins.potts().intercept
    row = codes[0]
    assert potts.independent_log_sum(base, row) == pytest.approx(
        spins.independent_log_sum(spins.intercept, row), abs=1e-10
    )
    assert_allclose(
        potts.rates_of_independent(base)[1::2], spins.rates_of_independent(spins.intercept)
    )


@pytest.mark.parametrize("n_values", [[2, 3, 4, 2, 3], [2] * 7])
@pytest.mark.parametrize("scale", [0.7, 400.0])
def test_sums_as_products_of_matrices(n_values, scale, monkeypatch):
    """The same as in logarithms, and where exp overflows."""
    model = random_potts(n_values, 1, scale=scale)
    codes = with_gaps(enumerate_states(model)[0], 30, 0)
    expected = model.log_conditionals_of_any(codes)
    monkeypatch.setattr(_joint, "MANY", 1)
    assert_allclose(model.log_conditionals_of_any(codes), expected, rtol=1e-9, atol=1e-9)


def test_rows_do_not_depend_on_others():
    model = random_potts([3, 2, 4, 3], seed=1)
    codes = with_gaps(enumerate_states(model)[0], 40, 0, share=0.25)
    for verb in (
        model.log_pseudo_likelihood,
        model.expectation,
        lambda rows: model.log_sums(rows, model.intercept),
    ):
        assert_array_equal(verb(codes)[::-3], verb(codes[::-3]))


@settings(max_examples=25, deadline=None)
@given(columns, st.integers(1, 9), st.sampled_from([1.0, 0.3]), st.integers(0, 2**60))
def test_categorical_sweeps(n_values, n, scale, seed):
    model = random_potts(n_values, seed % 1000)
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(m, size=n) for m in n_values], axis=1).astype(np.int32)
    free, offset = rng.random(codes.shape) < 0.7, rng.normal(size=len(model.intercept))
    expected = codes.copy()
    for sweep in range(5, 8):
        u = np.empty(codes.shape)
        uniform(u, seed, sweep)
        for j in range(len(n_values)):
            own = slice(model.starts[j], model.starts[j + 1])
            fields = scale * (model.one_hot(expected) @ model.coupling) + offset
            cumulated = np.cumsum(softmax(fields[:, own], axis=1), axis=1)
            drawn = (cumulated <= u[:, [j]]).sum(axis=1)
            expected[:, j] = np.where(free[:, j], drawn, expected[:, j])
    local = model.one_hot(codes) @ model.coupling
    categorical_sweeps(
        codes, local, model.coupling, offset, model.starts, scale, free.view(np.uint8),
        np.empty(max(n_values)), seed, 5, 3,
    )  # fmt: skip
    assert_array_equal(codes, expected)
    assert_allclose(local, model.one_hot(codes) @ model.coupling, atol=1e-12)


def test_sweeps_with_fields_beyond_the_range_of_exp():
    codes, free = np.zeros((4, 2), dtype=np.int32), np.ones((4, 2), dtype=np.uint8)
    offset = np.array([-1e4, 0.0, 1e4, 1e300, -1e300])
    starts = np.array([0, 3, 5])
    categorical_sweeps(
        codes, np.zeros((4, 5)), np.zeros((5, 5)), offset, starts, 1.0, free, np.empty(3), 0, 0, 1
    )
    assert_array_equal(codes, [[2, 0]] * 4)


def assert_sampled(codes, states, p):
    """A chi-square test of frequencies, cells merged where few are expected."""
    order = np.argsort(p)
    counts = np.array([(codes == state).all(axis=1).sum() for state in states[order]])
    assert counts.sum() == len(codes), "some rows are no states"
    cells = (np.cumsum(len(codes) * p[order]) // 10).astype(int)
    observed, expected = np.bincount(cells, counts), np.bincount(cells, len(codes) * p[order])
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.isf(FALSE_ALARM, max(kept.sum() - 1, 1))


@pytest.mark.parametrize("n_values", [[2, 3, 4], [2, 2, 2, 2], [3]])
def test_samples(n_values):
    """False alarms: 1e-6 for each of six chi-square tests, whatever the seed.

    Chains of 50 sweeps are as good as independent here: the slowest correlation is below 0.6 a
    sweep.
    """
    model, rng = random_model(n_values, 1), np.random.default_rng(0)
    states, log_p, _ = enumerate_states(model)
    assert_sampled(model.sample(5000, rng, 1), states, np.exp(log_p))
    assert_sampled(gibbs_sample(model, 5000, 50, rng), states, np.exp(log_p))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n_values", [[2, 3, 4, 2], [2, 2, 2, 2]])
def test_drawn_completions(n_values, exact, monkeypatch):
    """False alarms: 1e-6 for each of eight chi-square tests, whatever the seed."""
    if not exact:
        monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    model, rng = random_model(n_values, 1), np.random.default_rng(0)
    states, log_p, _ = enumerate_states(model)
    for row in (np.array([1, -1, -1, 0]), np.array([-1, 1, -1, -1])):
        kept = agreeing(states, row)
        p = np.exp(log_p[kept] - logsumexp(log_p[kept]))
        rows = np.tile(row, (4000, 1))
        assert_sampled(_incomplete.impute(model, rows, "sample", 50, rng), states[kept], p)


@pytest.mark.parametrize("n_values", [[2, 3, 4, 2], [2] * 8])
def test_annealing(n_values):
    """Within 5 standard errors, and these are small."""
    model = random_model(n_values, 1)
    states, _, weights = enumerate_states(model)
    base = np.zeros_like(model.intercept)
    betas = np.linspace(0, 1, 201)
    row = states[5].copy()
    row[1:] = -1
    for given_row, kept in ((None, slice(None)), (row, agreeing(states, row))):
        estimate = annealed_log_partition(
            model, base, betas, 300, np.random.default_rng(0), given_row
        )
        assert 0 < estimate.std_err < 0.05
        assert abs(estimate.value - logsumexp(weights[kept])) < 5 * estimate.std_err
    complete = annealed_log_partition(model, base, betas, 3, np.random.default_rng(0), states[5])
    assert complete.value == pytest.approx(weights[5], abs=1e-9)


@pytest.mark.parametrize("n_values", [[2, 3, 4, 2], [2] * 6])
def test_where_nothing_is_enumerated(n_values, monkeypatch):
    """Estimates near the exact values, the same for a row wherever it stands."""
    model = random_model(n_values, 1)
    codes = with_gaps(enumerate_states(model)[0], 12, 0)
    exact = model.log_sums(codes, model.intercept), model.log_conditionals_of_any(codes)
    mode = _incomplete.impute(model, codes, "mode", 1, None)
    mean = _incomplete.impute(model, codes, "mean", 1, None)
    monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    monkeypatch.setattr(_model, "MAX_STATES", 1)
    assert not model.is_enumerable()
    sums = model.log_sums(codes, model.intercept)
    conditionals = model.log_conditionals_of_any(codes)
    # 200 chains: a share of them within 6 standard errors, of at most 0.5 / sqrt(200) each.
    assert_allclose(sums, exact[0], atol=0.1)
    assert_allclose(np.exp(conditionals), np.exp(exact[1]), atol=6 * 0.5 / np.sqrt(200))
    assert_array_equal(model.log_sums(codes[::-2], model.intercept), sums[::-2])
    assert_array_equal(model.log_conditionals_of_any(codes[::-2]), conditionals[::-2])
    rng = np.random.default_rng(0)
    assert_array_equal(_incomplete.impute(model, codes, "mode", 300, rng), mode)
    assert_allclose(_incomplete.impute(model, codes, "mean", 2000, rng), mean, atol=0.25)


def test_observed_cells_never_move():
    model = random_potts([3, 2, 4], seed=2)
    codes = with_gaps(enumerate_states(model)[0], 30, 1)
    chains = gibbs_complete(model, codes, 20, np.random.default_rng(0))
    known = codes >= 0
    assert_array_equal(chains.codes[known], codes[known])
    assert (chains.codes >= 0).all() and (chains.codes < model.n_values).all()
