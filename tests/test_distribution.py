"""Distributions of rows against enumeration, log-linear models first."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles_fvbm import agreeing, random_interactions, random_potts, random_spins, with_gaps
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import oracles
from oracles import assert_drawn
from oracles_rbm import random_dbm
from private import (
    TAP,
    FittedRBM,
    Layered,
    MeanFieldModel,
    _distribution,
    _factor,
    _given,
    _network_incomplete,
    location_gaussians,
    location_model,
)
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


# On this grid, sums over densities of Gaussians with variances of 0.5 to 1.5 are integrals.
STEP, MIXED = 0.5, [2, 3, 1, 1]
GRID = STEP * np.arange(-20, 21)


class OnGrid:
    """A location model, of rows that have places on the grid in the columns of the two scores."""

    n_values = np.array([2, 3, len(GRID), len(GRID)])

    def __init__(self, n_classes):
        rng, network = np.random.default_rng(n_classes), random_potts(MIXED)
        means, slopes = rng.normal(size=(n_classes, 2)), rng.normal(size=(2, 7)) / 2
        roots = rng.normal(size=(n_classes, 2, 2)) / 2
        covariances = roots @ roots.transpose(0, 2, 1) + np.eye(2) / 2
        shares = rng.dirichlet(np.ones(n_classes))
        gaussians = location_gaussians.Gaussians(np.log(shares), means, slopes, covariances)
        self.model = location_model.LocationModel(network, gaussians, np.array([2, 3]))
        # ln of the weights of all rows in each class, with nothing of the model.
        points = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)
        self.by_class = np.array([
            [
                np.log(share) + multivariate_normal(mean + slopes @ x, covariance).logpdf(points)
                + log_weight + 2 * np.log(STEP)
                for x, log_weight in zip(network.one_hot(states).toarray(), weights, strict=True)
            ]
            for share, mean, covariance in zip(shares, means, covariances, strict=True)
            for states in [oracles.states(MIXED)] for weights in [network.log_weight(states)]
        ]).reshape(n_classes, -1)  # fmt: skip

    def log_weight(self, every):
        return logsumexp(self.by_class, axis=0)

    def rows(self, places):
        codes, places = np.hstack([places[:, :2], 0 * places[:, 2:]]), places[:, 2:]
        scores = np.where(places < 0, np.nan, GRID[places])
        return location_model.MixedRows(codes, scores, np.log(STEP) * (places >= 0))

    def places(self, found):
        codes, scores = found
        return np.hstack([codes[:, :2], (scores - GRID[0]) / STEP])

    def sample(self, n_samples, rng):
        return np.rint(self.places(self.model.sample(n_samples, rng))).astype(int)

    def complete(self, places, how, rng, n_steps):
        found = self.places(self.model.complete(self.rows(places), how, rng, n_steps))
        return np.rint(found) if how == "sample" else found

    def log_sums(self, places):
        return self.model.log_sums(self.rows(places))

    def log_pseudo_likelihood(self, places):
        return self.model.log_pseudo_likelihood(self.rows(places))

    def column_probabilities(self, places, column, n_steps, seed):
        rows = self.rows(places)
        if column < 2:
            return self.model.column_probabilities(rows, column, n_steps, seed)

        def densities(codes, means, variances):
            own = means[:, [column - 2]], np.sqrt(variances[:, [column - 2]])
            return STEP * norm.pdf(GRID, *own)

        return self.model.expectation(self.model.without(rows, column), densities, len(GRID)), 0.0


PAIRED = [2, 3, 2, 4]
MACHINES = {"RBM": [4, 3], "deep RBM": [4, 3, 2]}
MODELS = {
    "log-linear": lambda: random_model(PAIRED, 9, seed=0)[0],
    "spins": lambda: random_spins(5),
    "terms and a potential": lambda: random_interactions(5, seed=2),
    "Potts": lambda: random_potts(PAIRED),
    **{name: partial(random_machine, sizes) for name, sizes in MACHINES.items()},
    "location": partial(OnGrid, 1),
    "location, three classes": partial(OnGrid, 3),
}
# As if they had many states.
LARGE = {
    "log-linear, in parts": [(_given, "CHUNK"), (_distribution, "FEW")],
    **{f"{name}, in parts": [(_network_incomplete, "MANY")] for name in ("spins", "Potts")},
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


@pytest.mark.parametrize("name", [*MODELS, *LARGE])
def test_rows_with_and_without_missing_cells(name, monkeypatch):
    """Each distribution says what its log-weights do. False alarms of draws: three in a million."""
    for module, limit in LARGE.get(name, ()):
        monkeypatch.setattr(module, limit, 1)
    n_drawn = 400 if name in LARGE else 4000
    name = name.removesuffix(", in parts")
    model, rng = MODELS[name](), np.random.default_rng(0)
    is_machine = name in MACHINES  # of rows of numbers, with NaN in missing cells
    on_grid = isinstance(model, OnGrid)
    every = oracles.states([2] * 4 if is_machine else getattr(model, "n_values", PAIRED))
    for temperature in (1.0,) if on_grid else (2.0, 1.0):
        if is_machine:
            parts = random_dbm(MACHINES[name], scale=0.7)
            arrays = parts.weights, parts.intercepts
            hotter = ([array / temperature for array in of] for of in arrays)
            weights = type(parts)(*hotter).given(every)[0]
        else:
            weights = model.log_weight(every) / temperature
        p = np.exp(weights - logsumexp(weights))
        tempered = model.model if on_grid else model.tempered(temperature)
        assert tempered.log_partition() == pytest.approx(logsumexp(weights), abs=1e-11)
        assert on_grid or tempered.entropy() == pytest.approx(-p @ np.log(p), abs=1e-11)
    assert_drawn(model.sample(4000, rng)[:, : every.shape[1]], every, p)
    some = every[p > 1e-6]  # not at the ends of a grid
    codes = np.vstack([with_gaps(some, 12, 0), some[:3], np.full_like(every[:1], -1)])
    rows = np.where(codes < 0, np.nan, codes) if is_machine else codes
    asked = [model.column_probabilities(rows, j, 10, 0)[0] for j in range(every.shape[1])]
    mean, mode = (model.complete(rows, how, rng, 10) for how in ("mean", "mode"))
    pseudo, sums = model.log_pseudo_likelihood(rows), model.log_sums(rows)
    assert model.log_sums(rows[:0]).shape == (0,)
    for i, row in enumerate(codes):
        law = p * agreeing(every, row)
        assert sums[i] - tempered.log_partition() == pytest.approx(np.log(law.sum()), abs=1e-11)
        assert_allclose(mean[i], law @ every / law.sum(), atol=1e-11)
        if on_grid:
            check_the_mode(model, every, agreeing(every, row), mode[i])
        else:
            assert law[(every == mode[i]).all(axis=1)] == pytest.approx(law.max())
        expected = 0.0
        for j, found in enumerate(asked):
            others = p * agreeing(every, np.where(np.arange(len(row)) == j, -1, row))
            own = np.bincount(every[:, j], others) / others.sum()
            assert_allclose(found[i], own, atol=1e-11)
            expected += np.log(own[row[j]]) if row[j] >= 0 else 0.0
        assert pseudo[i] == pytest.approx(expected, abs=1e-10)
    k = np.argmax((codes < 0).sum(axis=1) > 1)
    drawn = model.complete(np.tile(rows[k], (n_drawn, 1)), "sample", rng, 10)
    law = p * agreeing(every, codes[k])
    assert_drawn(drawn.astype(int), every[law > 0], law[law > 0] / law.sum())


def check_the_mode(model, every, legal, found):
    """The most probable codes, and means of scores given these and the most probable class."""
    by_class = np.exp(model.by_class - model.by_class.max()) * legal
    of_codes = by_class.sum(axis=0).reshape(-1, len(GRID) ** 2).sum(axis=1)
    best = every[of_codes.argmax() * len(GRID) ** 2, :2]
    assert (found[:2] == best).all()
    own = by_class * (every[:, :2] == best).all(axis=1)
    law = own[own.sum(axis=1).argmax()]
    assert_allclose(found, law @ every / law.sum(), atol=1e-9)


@pytest.mark.parametrize("columns", [[0], [1, 3], [0, 2, 4]])
def test_terms_given_some_columns(columns):
    model, every = random_interactions(5, seed=2), oracles.states([2] * 5)
    values = np.array([1, 0, 1])[: len(columns)]
    own = every[(every[:, columns] == values).all(axis=1)]
    found = model.given(columns, values).log_weight(np.delete(own, columns, axis=1))
    assert_allclose(np.ptp(found - model.log_weight(own)), 0, atol=1e-12)


def test_numbers_have_no_entropy_and_no_temperature():
    model = OnGrid(1).model
    assert model.tempered(1.0) is model
    for verb in (model.entropy, partial(model.tempered, 2.0)):
        with pytest.raises(ValueError, match="normal scores"):
            verb()


def test_sums_over_many_categories_with_scores(monkeypatch):
    """Where completions are not enumerated sums are the same, and draws are off by about .02."""
    model, every = OnGrid(3), oracles.states(OnGrid.n_values)
    places = with_gaps(every, 12, 0)
    expected, p = model.log_sums(places), model.column_probabilities(places, 1, 10, 0)[0]
    monkeypatch.setattr(location_model, "MOST_COMPLETIONS", 0)
    assert_allclose(model.log_sums(places), expected, atol=1e-11)
    assert_allclose(model.column_probabilities(places, 1, 10, 0)[0], p, atol=0.1)
    monkeypatch.setattr(_network_incomplete, "MAX_STATES", 1)
    assert_allclose(model.log_sums(places), expected, atol=0.1)


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
