"""Distributions of rows of codes against enumeration, log-linear models first."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles_fvbm import agreeing, random_interactions, random_potts, random_spins, with_gaps
from scipy.special import logsumexp

import oracles
from oracles import assert_drawn
from oracles_rbm import random_dbm
from private import TAP, FittedRBM, Layered, MeanFieldModel, _distribution, _factor
from sklearn_boltz.units import Bernoulli

cardinalities = st.lists(st.sampled_from([2, 2, 3, 4, 5]), min_size=1, max_size=5)


def random_model(n_values, n_basis, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    every = oracles.states(n_values)
    rows = rng.choice(np.arange(1, len(every)), size=min(n_basis, len(every) - 1), replace=False)
    basis, theta = every[rows], scale * rng.normal(size=len(rows))
    model = _distribution.LogLinearModel(np.array(n_values), basis, theta)
    return model, oracles.log_linear_probabilities(n_values, basis, theta), every


def random_machine(sizes):
    """An RBM, or a deep machine."""
    parts = random_dbm(sizes, scale=0.7)
    layered = Layered(parts.weights, list(map(Bernoulli, parts.intercepts)))
    two = layered.sides()
    marginal = two if len(sizes) == 2 else MeanFieldModel(layered, TAP(), 1)
    return FittedRBM(layered, two.visible.base(), marginal, seed=0, n_jobs=1)


PAIRED = [2, 3, 2, 4]
MACHINES = {"RBM": [4, 3], "deep RBM": [4, 3, 2]}
MODELS = {
    "log-linear": lambda: random_model(PAIRED, 9, seed=0)[0],
    "spins": lambda: random_spins(5),
    "terms and a potential": lambda: random_interactions(5, seed=2),
    "Potts": lambda: random_potts(PAIRED),
    **{name: partial(random_machine, sizes) for name, sizes in MACHINES.items()},
}


@pytest.fixture(params=[2**17, 4], ids=["one block", "many blocks"])
def block(request, monkeypatch):
    monkeypatch.setattr(_factor, "BLOCK", request.param)


@given(n_values=cardinalities, n_basis=st.integers(0, 6), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
@pytest.mark.parametrize("block_size", [2**17, 6])
def test_against_enumeration(block_size, n_values, n_basis, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_factor, "BLOCK", block_size)
        model, p, every = random_model(n_values, n_basis, seed)
        log_p = model.log_weight(every) - model.log_partition()
        assert_allclose(log_p, np.log(p), atol=1e-11)

        phi = oracles.basis_matrix(n_values)
        assert_allclose(model.expectation(every), phi @ p, atol=1e-11)

        rng = np.random.default_rng(seed)
        features = rng.permutation(len(n_values))[: rng.integers(1, len(n_values) + 1)].tolist()
        others = tuple(set(range(len(n_values))) - set(features))
        kept = sorted(features)
        marginal = p.reshape(n_values).sum(axis=others)
        marginal = marginal.transpose([kept.index(i) for i in features])
        assert_allclose(model.marginal(features), marginal, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_rows_with_and_without_missing_cells(name):
    """Each distribution says what its log-weights do. False alarms of draws: three in a million."""
    model, rng = MODELS[name](), np.random.default_rng(0)
    is_machine = name in MACHINES  # of rows of numbers, with NaN in missing cells
    every = oracles.states([2] * 4 if is_machine else getattr(model, "n_values", PAIRED))
    if is_machine:
        weights = random_dbm(MACHINES[name], scale=0.7).given(every)[0]
    else:
        weights = model.log_weight(every)
    p = np.exp(weights - logsumexp(weights))
    assert model.log_partition() == pytest.approx(logsumexp(weights), abs=1e-11)
    assert model.entropy() == pytest.approx(-p @ np.log(p), abs=1e-11)
    assert_drawn(model.sample(4000, rng)[:, : every.shape[1]], every, p)
    codes = np.vstack([with_gaps(every, 12, 0), every[:3], np.full_like(every[:1], -1)])
    rows = np.where(codes < 0, np.nan, codes) if is_machine else codes
    asked = [model.column_probabilities(rows, j, 10, 0)[0] for j in range(every.shape[1])]
    mean, mode = (model.complete(rows, how, rng, 10) for how in ("mean", "mode"))
    pseudo, sums = model.log_pseudo_likelihood(rows), model.log_sums(rows)
    for i, row in enumerate(codes):
        law = p * agreeing(every, row)
        assert sums[i] - model.log_partition() == pytest.approx(np.log(law.sum()), abs=1e-11)
        assert_allclose(mean[i], law @ every / law.sum(), atol=1e-11)
        assert law[(every == mode[i]).all(axis=1)] == pytest.approx(law.max())
        expected = 0.0
        for j, found in enumerate(asked):
            others = p * agreeing(every, np.where(np.arange(len(row)) == j, -1, row))
            own = np.bincount(every[:, j], others) / others.sum()
            assert_allclose(found[i], own, atol=1e-11)
            expected += np.log(own[row[j]]) if row[j] >= 0 else 0.0
        assert pseudo[i] == pytest.approx(expected, abs=1e-10)
    drawn = model.complete(np.tile(rows[0], (4000, 1)), "sample", rng, 10)
    law = p * agreeing(every, codes[0])
    assert_drawn(drawn.astype(int), every[law > 0], law[law > 0] / law.sum())


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("n_values", [[2] * 6, [3, 2, 4, 2], [2, 2, 5]])
def test_samples_follow_the_distribution(n_values):
    # False alarms: two in a million for each case, whatever the seed.
    model, p, every = random_model(n_values, 5, seed=3)
    sample = model.sample(20_000, np.random.default_rng(7))
    assert_drawn(sample, every, p)
    # The order tells nothing: the two halves follow the same distribution.
    assert_drawn(sample[:10_000], every, p)


def test_the_chi_square_test_can_fail():
    _, p, every = random_model([2] * 6, 5, seed=3)
    other, _, _ = random_model([2] * 6, 5, seed=4)
    with pytest.raises(AssertionError):
        assert_drawn(other.sample(20_000, np.random.default_rng(7)), every, p)


def test_independent_parts_never_meet_in_a_table():
    # 2^200 states, in 100 pairs.
    basis = np.zeros((100, 200), dtype=np.int64)
    basis[np.arange(100), 2 * np.arange(100)] = basis[np.arange(100), 2 * np.arange(100) + 1] = 1
    model = _distribution.LogLinearModel(np.full(200, 2), basis, np.full(100, 0.5))
    expected = 200 * math.log(2) + 100 * math.log(math.cosh(0.5))
    assert model.log_partition() == pytest.approx(expected, rel=1e-13)
    assert_allclose(model.expectation(basis), math.tanh(0.5), rtol=1e-12)
    assert model.sample(3, np.random.default_rng(0)).shape == (3, 200)
    assert model.marginal([0, 1, 4]).shape == (2, 2, 2)


@pytest.mark.parametrize("weight", [1e3, -1e3, 1e-300])
def test_extreme_weights(weight):
    basis = np.array([[1, 1, 0], [0, 1, 1]])
    model = _distribution.LogLinearModel(np.full(3, 2), basis, np.array([weight, weight]))
    assert np.isfinite(model.log_partition())
    assert_allclose(model.marginal([0, 1, 2]).sum(), 1.0, rtol=1e-12)
    every = oracles.states([2, 2, 2])
    assert_allclose(np.exp(model.log_weight(every) - model.log_partition()).sum(), 1, rtol=1e-10)
    assert np.isfinite(model.log_pseudo_likelihood(every)).all()


@pytest.mark.usefixtures("block")
def test_the_mode_is_the_most_probable_state():
    rng, n_values = np.random.default_rng(0), [2, 3, 2]
    basis = np.array(list(np.ndindex(*n_values)))[1:]
    theta = rng.normal(size=len(basis))
    p = oracles.log_linear_probabilities(n_values, basis, theta)
    mode = _factor.Factor(n_values, basis, theta).mode()
    assert mode.tolist() == oracles.states(n_values)[np.argmax(p)].tolist()
