"""Networks as distributions: every verb against enumeration, for columns of any kind."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp, softmax
from scipy.stats import chi2

from private import (
    BinaryModel,
    InteractionModel,
    Path,
    PottsModel,
    SpinModel,
    _factor,
    _joint,
    _model,
    add_term_fields,
    annealed_log_partition,
    categorical_sweeps,
    gibbs_complete,
    gibbs_sample,
    interaction_sweeps,
    ladder_log_partition,
    sum_terms,
    uniform,
)
from private import _network_incomplete as _incomplete

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


def random_interactions(d, seed=0, scale=0.4, density=1.0, potential=True):
    """Pairs, terms of three to five columns, and a potential of the number of ones."""
    pairs, rng = random_spins(d, seed, scale, density), np.random.default_rng(seed)
    orders = rng.integers(3, 6, size=4 if density else 0)
    terms = [rng.permutation(d)[:order] for order in orders if order <= d]
    terms = sorted({tuple(sorted(term.tolist())) for term in terms})
    weights = rng.normal(scale=scale, size=len(terms))
    V = rng.normal(scale=scale, size=d + 1) if potential else None
    return InteractionModel(pairs.coupling, pairs.intercept, terms, weights, V)


def random_model(n_values, seed, density=1.0):
    """One of several kinds of models where all columns have two values."""
    kind, d = (seed % 4 if set(n_values) == {2} else 0), len(n_values)
    if kind == 0:
        return random_potts(n_values, seed, density=density)
    if kind == 1:
        return random_spins(d, seed, density=density)
    return random_interactions(d, seed, density=density, potential=kind == 3)


def enumerate_states(model):
    """All joint states, and the logarithms of their probabilities and weights."""
    states = np.array(list(itertools.product(*map(range, model.n_values))))
    if isinstance(model, BinaryModel):
        x = 2 * states - 1
        weights = 0.5 * np.einsum("ij,jk,ik->i", x, model.coupling, x) + x @ model.intercept
        if isinstance(model, InteractionModel):
            for term, weight in zip(model.terms, model.weights, strict=True):
                weights += weight * x[:, term].prod(axis=1)
            weights += model.potential[states.sum(axis=1)]
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


columns = st.one_of(
    st.lists(st.integers(2, 4), min_size=1, max_size=5), st.integers(1, 6).map(lambda d: [2] * d)
)
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
            column = _incomplete.column_probabilities(model, codes[i : i + 1], j, None)
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


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(1, 9), st.sampled_from([1.0, 0.3]), st.integers(0, 2**60))
def test_interaction_sweeps(d, n, scale, seed):
    model = random_interactions(d, seed % 1000)
    rng, terms = np.random.default_rng(seed), model.arrays
    x = rng.choice([-1.0, 1.0], size=(n, d))
    free, offset = rng.random(x.shape) < 0.7, rng.normal(size=d)

    def total(x):
        fields = x @ model.coupling
        for term, weight in zip(model.terms, model.weights, strict=True):
            for j in term:
                fields[:, j] += weight * x[:, [k for k in term if k != j]].prod(axis=1)
        return fields

    sums = np.empty(n)
    sum_terms(x, *terms, sums)
    products = [x[:, term].prod(axis=1) for term in model.terms]
    assert_allclose(sums, model.weights @ np.reshape(products, (-1, n)), atol=1e-12)
    local, expected = x @ model.coupling, x.copy()
    add_term_fields(x, *terms, local)
    assert_allclose(local, total(x), atol=1e-12)
    for sweep in range(5, 8):
        u = np.empty(x.shape)
        uniform(u, seed, sweep)
        for j in range(d):
            others = (expected > 0).sum(axis=1) - (expected[:, j] > 0)
            field = scale * (total(expected)[:, j] + model.steps[others]) + offset[j]
            drawn = np.where(u[:, j] < expit(2 * field), 1, -1)
            expected[:, j] = np.where(free[:, j], drawn, expected[:, j])
    interaction_sweeps(
        x, local, model.coupling, *terms, *terms.by_column(d), model.steps, offset, scale,
        free.view(np.uint8), seed, 5, 3,
    )  # fmt: skip
    assert_array_equal(x, expected)
    assert_allclose(local, total(x), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), densities, seeds)
def test_without_terms_nothing_changes(d, density, seed):
    """The same bits as those of pairs."""
    spins = random_spins(d, seed, density=density)
    model = InteractionModel(spins.coupling, spins.intercept)
    codes = np.random.default_rng(seed).integers(2, size=(20, d))
    assert_array_equal(model.log_weight(codes), spins.log_weight(codes))
    assert_array_equal(model.fields(codes), spins.fields(codes))
    assert_array_equal(model.adjacency(), spins.adjacency())
    assert model.log_partition() == spins.log_partition()
    assert model.scale == spins.scale
    ours, theirs = model.chains(codes, seed), spins.chains(codes, seed)
    for chains in (ours, theirs):
        chains.sweep(model.intercept, 3)
    assert_array_equal(ours.codes, theirs.codes)
    assert_array_equal(ours.log_weight(model.intercept), theirs.log_weight(model.intercept))


@settings(max_examples=20, deadline=None)
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


def test_a_potential_that_is_large_enough_for_several_blocks(monkeypatch):
    monkeypatch.setattr(_factor, "BLOCK", 8)
    model = random_interactions(7, 3)
    states, log_p, weights = enumerate_states(model)
    assert model.log_partition() == pytest.approx(logsumexp(weights), abs=1e-10)
    assert model.entropy() == pytest.approx(-np.exp(log_p) @ log_p, abs=1e-10)
    found = model.marginal([1, 4])
    assert found[1, 0] == pytest.approx(np.exp(log_p) @ ((states[:, 1] == 1) & (states[:, 4] == 0)))


def test_a_ladder_of_interactions():
    """Within 5 standard errors: a false alarm in two million runs."""
    model = random_interactions(10, 2, scale=1.0)
    _, _, weights = enumerate_states(model)
    generator = np.random.default_rng(0)
    path = Path.from_model(model, np.zeros(10), generator)
    estimate = ladder_log_partition(path, None, 100, 0.02, 3000, generator)
    assert estimate.trusted and 0 < estimate.std_err < 0.03
    assert abs(estimate.value - logsumexp(weights)) < 5 * estimate.std_err


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


@pytest.mark.parametrize(
    ("n_values", "seed"), [([2, 3, 4], 0), ([2] * 4, 1), ([2] * 5, 3), ([3], 0)]
)
def test_samples(n_values, seed):
    """False alarms: 1e-6 for each of eight chi-square tests, whatever the seed.

    Chains of 50 sweeps are as good as independent here: the slowest correlation is below 0.6 a
    sweep.
    """
    model, rng = random_model(n_values, seed), np.random.default_rng(0)
    states, log_p, _ = enumerate_states(model)
    assert_sampled(model.sample(5000, rng, 1), states, np.exp(log_p))
    assert_sampled(gibbs_sample(model, 5000, 50, rng), states, np.exp(log_p))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4, 2], 0), ([2] * 4, 1), ([2] * 4, 3)])
def test_drawn_completions(n_values, seed, exact, monkeypatch):
    """False alarms: 1e-6 for each of twelve chi-square tests, whatever the seed."""
    if not exact:
        monkeypatch.setattr(_incomplete, "MAX_STATES", 1)
    model, rng = random_model(n_values, seed), np.random.default_rng(0)
    states, log_p, _ = enumerate_states(model)
    for row in (np.array([1, -1, -1, 0]), np.array([-1, 1, -1, -1])):
        kept = agreeing(states, row)
        p = np.exp(log_p[kept] - logsumexp(log_p[kept]))
        rows = np.tile(row, (4000, 1))
        assert_sampled(_incomplete.impute(model, rows, "sample", 50, rng), states[kept], p)


@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4, 2], 0), ([2] * 8, 1), ([2] * 8, 3)])
def test_annealing(n_values, seed):
    """Within 5 standard errors, and these are small."""
    model = random_model(n_values, seed)
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


@pytest.mark.parametrize(("n_values", "seed"), [([2, 3, 4, 2], 0), ([2] * 6, 1), ([2] * 6, 7)])
def test_where_nothing_is_enumerated(n_values, seed, monkeypatch):
    """Estimates near the exact values, the same for a row wherever it stands."""
    model = random_model(n_values, seed)
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
