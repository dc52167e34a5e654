"""TAPRBM and TAPDBM: the estimators around the mean-field equations."""

import os
from itertools import product

import numpy as np
import pandas as pd
import pytest
from contract.state import arrays_of, assert_goes_on, parameters
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from mean_field import Spin, deep
from oracles_rbm import binary, random_dbm
from private import _observed, divided
from sklearn_boltz import TAP, TAPDBM, TAPRBM
from sklearn_boltz.units import TruncatedGaussian

PAPER = TAP(max_iter=10, n_gibbs=0)
SMALL = {
    "RBM": TAPRBM(8, random_state=0),
    "DBM": TAPDBM((6, 4), pretrain_max_iter=1, random_state=0),
}
both_machines = pytest.mark.parametrize("kind", SMALL)
unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def small(kind, **parameters):
    return clone(SMALL[kind]).set_params(**parameters)


@pytest.fixture(scope="module")
def digits():
    return (load_digits().data > 8).astype(np.float32)


@pytest.fixture(scope="module")
def grey():
    return load_digits().data[:200] / 16


def rows(n_rows=60, n_features=5, seed=0):
    X = np.random.default_rng(seed).integers(2, size=(n_rows, n_features)).astype(float)
    X[:, 1] = X[:, 0]
    return X


# A deep machine against all its states, and with one hidden layer against the RBM.


def test_against_enumeration():
    exactly = random_dbm((5, 3, 3, 2), scale=0.1, seed=1)
    model = deep(exactly)
    V, exact = binary(5), np.log(exactly.Z)
    assert model.log_partition("exact").value == pytest.approx(exact, abs=1e-10)
    assert model.log_partition_ == pytest.approx(exact, abs=1e-10)
    assert model.log_partition("tap", X=V).value == pytest.approx(exact, abs=2e-3)
    # 200 chains, fixed seeds; 6 standard errors.
    for method in ("ais", "raise"):
        estimate = model.log_partition(method, n_chains=200, random_state=0)
        assert estimate.value == pytest.approx(exact, abs=6 * estimate.std_err)
        assert estimate.std_err < 0.01
    log_sums, means = exactly.given(V)
    assert_allclose(-model.free_energy(V), log_sums, atol=2e-3)
    assert_allclose(model.score_samples(V), log_sums - exact, atol=2e-3)
    assert np.exp(model.score_samples(V)).sum() == pytest.approx(1, abs=2e-3)
    assert model.score(V) == model.score_samples(V).mean()
    for mine, expected in zip(model.mean_hidden(V), means[1:], strict=True):
        assert_allclose(mine, expected, atol=2e-3)
    assert_array_equal(model.transform(V), model.mean_hidden(V)[-1])


@pytest.mark.skipif("SKLEARN_BOLTZ_ROUNDING" in os.environ, reason="each product has its own sums")
@pytest.mark.parametrize("change", [{"persistent": True}, {"inference": "naive"}])
def test_one_hidden_layer_is_the_rbm_to_the_bit(digits, change):
    X = digits[:150]
    rbm = TAPRBM(12, max_iter=3, random_state=0, **change).fit(X)
    dbm = TAPDBM([12], pretrain_max_iter=0, max_iter=3, random_state=0, **change).fit(X)
    assert_array_equal(parameters(dbm), parameters(rbm))
    for name, values in rbm.history_.items():
        if name != "seconds":
            assert_array_equal(dbm.history_[name], values)
    Y = X[:10].copy()
    Y[:, 20:40] = np.nan
    H = rbm.sample_hidden(X[:9], 0)
    assert_array_equal(dbm.sample_hidden(X[:9], 0)[0], H)
    for mine, theirs in [
        (dbm.sample_visible([H], 1), rbm.sample_visible(H, 1)),
        (dbm.mean_visible([H]), rbm.mean_visible(H)),
        (dbm.energy(X[:9], [H]), rbm.energy(X[:9], H)),
        *((of(dbm), of(rbm)) for of in [
            lambda m: m.transform(X), lambda m: m.score_samples(X), lambda m: m.log_partition_,
            lambda m: m.tap_log_likelihood(X), lambda m: m.denoise(X[:9], 0.1),
            lambda m: m.sample(5, random_state=0, n_steps=10),
            lambda m: m.sample(4, 0, given={1: 1}), lambda m: m.gibbs(X[:9], 3, 2),
            lambda m: m.log_pseudo_likelihood(X[:9]), lambda m: m.inverse_transform(H),
            lambda m: m.log_partition("ais", n_temperatures=50, random_state=0).value,
            lambda m: m.impute(Y, random_state=0), lambda m: m.impute(Y, method="tap"),
            lambda m: m.tap_solutions(X[:50]).free_energy,
        ]),
    ]:  # fmt: skip
        assert_array_equal(mine, theirs)


# Learning.


def test_pre_training_is_that_of_rbms(digits):
    """The first layer, and the second on values of the first."""
    X = digits[:300]
    model = TAPDBM((8, 4), pretrain_max_iter=3, max_iter=0, random_state=0).fit(X)
    seeds = np.random.default_rng(0)
    for n, m in [(8, 64), (4, 8)]:
        seeds.normal(0, 1, (n, m))  # the weights without pre-training
    seeds.integers(2**63)  # of the chains
    seeds.integers(2**31)  # for evaluation
    first = TAPRBM(8, max_iter=3, random_state=int(seeds.integers(2**31))).fit(X)
    H = first.sample_hidden(X, random_state=int(seeds.integers(2**31)))
    second = TAPRBM(4, max_iter=3, random_state=int(seeds.integers(2**31))).fit(H)
    for mine, rbm in zip(model.components_, [first, second], strict=True):
        assert_array_equal(mine, rbm.components_)
    assert_array_equal(model.intercept_visible_, first.intercept_visible_)
    assert_array_equal(model.intercept_hidden_[1], second.intercept_hidden_)
    # Its solutions start at the data, what tempering replaces.
    assert TAPDBM((4, 3), tempered=True, max_iter=1).fit(X[:50]).pretrain_history_ == []


def test_pre_training_on_a_single_column_of_levels():
    """Its units are one categorical unit, not one for each of its numbers."""
    X = np.random.default_rng(0).integers(9, size=(60, 1))
    model = TAPDBM((4, 3), columns="nominal", max_iter=2, pretrain_max_iter=2, random_state=0)
    model.fit(X)
    assert model.components_[0].shape == (4, 9)
    states = np.arange(9)[:, None]
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1, rel=0.05)


@unconverged
@pytest.mark.parametrize("columns", ["probability", "truncated_gauss_bernoulli"])
def test_laws_of_each_layer(grey, columns):
    X = grey[:100, 16:48]
    X = X > 0.5 if columns == "probability" else X
    own = TruncatedGaussian(np.zeros(3), np.ones(3), -1, 1)
    model = TAPDBM(
        (8, 4, 3), columns=columns, hidden=["bernoulli", "truncated_gaussian", own],
        learning_rate=0.1, batch_size=20, pretrain_max_iter=3, max_iter=8, track_likelihood=False,
        random_state=0,
    ).fit(X)  # fmt: skip
    history = model.history_["tap_log_likelihood"]
    assert np.isfinite(history).all() and history[-1] > history[0]
    assert model.precision_hidden_[0] is None and model.precision_hidden_[2].shape == (3,)
    assert (own.intercept == 0).all()  # what the user gave is not touched
    H = model.sample_hidden(X[:30], random_state=0)[2]
    assert H.min() >= -1 and H.max() <= 1 and H.min() < 0
    Y = X[:5].astype(float)
    Y[:, 5:20] = np.nan
    for values in [
        model.sample(20, random_state=0, n_steps=10).astype(float),
        model.impute(Y),
        model.impute(Y, method="gibbs", n_steps=5, random_state=0),
    ]:
        assert values.min() >= 0 and values.max() <= 1 and np.ptp(values) > 0
    if columns == "probability":
        assert set(np.unique(model.impute(Y, how="mode", method="gibbs", n_steps=5))) <= {0, 1}


@both_machines
def test_parameters_are_used(kind, digits):
    """Each has an effect on the fit."""
    X = digits[:60]
    plain = small(kind, max_iter=2).fit(X)
    of_tap = dict(order=1, max_iter=1, damping=0.2, tol=1e-2)
    changes = [
        dict(learning_rate=0.01), dict(penalty="l1"), dict(penalty=None), dict(alpha=0.1),
        dict(batch_size=20), dict(init=0.1), dict(inference=TAP(n_gibbs=2)), dict(persistent=True),
        *(dict(inference=PAPER._replace(**{name: value})) for name, value in of_tap.items()),
        dict(max_iter=3), dict(random_state=1),
    ]  # fmt: skip
    for change in changes + [dict(pretrain_max_iter=2)] * (kind == "DBM"):
        other = clone(plain).set_params(**change).fit(X)
        for mine, theirs in zip(arrays_of(plain), arrays_of(other), strict=True):
            if mine.ndim == 2:  # weights
                assert not np.array_equal(mine, theirs), change


# Stop and go.


def test_a_fit_goes_on_as_if_it_had_not_ended(digits):
    assert_goes_on(small("DBM", persistent=True), digits[:100])


def test_a_spin_glass_is_noticed(digits):
    with pytest.warns(ConvergenceWarning, match="spin-glass"):
        TAPRBM(64, inference=PAPER, init=8.0, max_iter=1, random_state=0).fit(digits[:200])
    # Strong couplings between the hidden layers: iterations jump to and fro.
    X = rows()
    model = TAPDBM((14, 13), pretrain_max_iter=0, max_iter=0, random_state=0).fit(X)
    W = model.components_[1]
    W[...] = 50 * np.random.default_rng(0).normal(size=W.shape)
    model.intercept_hidden_[1][...] = -W.sum(axis=1) / 2
    for method in (model.transform, model.free_energy):
        with pytest.warns(ConvergenceWarning, match="% of the rows; .* larger damping"):
            assert np.isfinite(method(X)).all()
    with pytest.warns(ConvergenceWarning, match="from no start: .*, or a larger damping"):
        model.log_partition("tap", X=X)


@both_machines
def test_early_stopping_returns_the_best_epoch(kind, digits):
    X = digits[:120]
    model = small(kind, early_stopping=True, tol=0.5, learning_rate=0.2)
    model.set_params(max_iter=200).fit(X)
    values = model.history_["validation_log_likelihood"]
    assert model.n_iter_ < 200 and len(values) == model.n_iter_
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(model).set_params(max_iter=1).fit(X)
    if kind == "RBM":
        return
    # The rows set aside are not pre-trained on either.
    other, histories = X.copy(), []
    other[divided(len(X), 0.1, model._training.evaluation_seed)[1]] = 0
    for table in (X, other):
        again = clone(model).set_params(max_iter=0).fit(table)
        histories.append(again.pretrain_history_[0]["tap_log_likelihood"])
    assert_array_equal(*histories)


# What they give.


def test_hidden_layers_and_the_names_of_the_last(digits):
    X = digits[:100]
    model = TAPDBM((6, 4, 3), max_iter=1, pretrain_max_iter=1, random_state=0).fit(X)
    layers = model.mean_hidden(X)
    assert [H.shape for H in layers] == [(100, 6), (100, 4), (100, 3)]
    frame = model.set_output(transform="pandas").transform(X)
    assert_array_equal(frame.to_numpy(), layers[-1])
    assert list(frame.columns) == [f"tapdbm{j}" for j in range(3)]


def test_denoising_is_exact_where_there_is_nothing_to_learn_from():
    """Without weights, Bayes' rule for each value."""
    X = rows(60, 6)
    model = TAPRBM(1, max_iter=0, init=0.0).fit(X)
    p = model._distribution().base.mean(np.zeros(6))
    means = model.denoise([[1, 0, 1, 0, 1, 0]], 0.2)[0]
    right, wrong = np.where([1, 0] * 3, 0.8, 0.2), np.where([1, 0] * 3, 0.2, 0.8)
    assert_allclose(means, p * right / (p * right + (1 - p) * wrong), rtol=1e-6)
    # Certain and useless observations.
    assert_allclose(model.denoise(X, 0.0), X, atol=1e-6)
    assert_allclose(model.denoise(X, 0.5), np.tile(p, (60, 1)), rtol=1e-6)
    # Continuous columns, on their own scales: the mean by precisions.
    X = np.random.default_rng(0).normal(3, [0.5, 20], (60, 2))
    model = TAPRBM(1, columns="gaussian", max_iter=0, init=0.0).fit(X)
    expected = (X * X.var(axis=0) + X.mean(axis=0)) / (X.var(axis=0) + 1)
    assert_allclose(model.denoise(X, noise_variance=1.0), expected, rtol=1e-5)


def test_real_values_are_denoised_and_imputed(grey):
    model = TAPRBM(
        16, columns="truncated_gauss_bernoulli", learning_rate=0.2, max_iter=15,
        track_likelihood=False, random_state=0,
    ).fit(grey)  # fmt: skip
    independent = clone(model).set_params(max_iter=0, init=0.0).fit(grey)
    assert model.tap_log_likelihood(grey).mean() > independent.tap_log_likelihood(grey).mean() + 3
    noisy = grey + np.random.default_rng(0).normal(0, 0.3, grey.shape)
    denoised = model.denoise(noisy, noise_variance=0.09)
    assert ((denoised - grey) ** 2).mean() < 0.7 * ((noisy.clip(0, 1) - grey) ** 2).mean()
    X = grey.copy()
    X[:, 20:44] = np.nan
    wrong = ((model.impute(X) - grey)[:, 20:44] ** 2).mean()
    assert wrong < 0.9 * ((grey.mean(axis=0) - grey)[:, 20:44] ** 2).mean()
    # The mode of a continuum is the mean.
    filled = (model.impute(X[:9], how=how, method="tap") for how in ("mean", "mode"))
    assert_array_equal(*filled)


@both_machines
def test_a_fit_goes_on_with_the_penalty_of_the_same_table(kind, monkeypatch):
    """It follows from the numbers of the units, of which a column of four categories has four."""
    for estimator in (TAPRBM, TAPDBM):
        short = estimator._schedule._replace(length=(1, 10, 10))
        monkeypatch.setattr(estimator, "_schedule", short)
    X = np.random.default_rng(0).integers(4, size=(60, 3)).astype(float)
    model = small(kind, columns="nominal", max_iter="auto", warm_start=True, alpha="auto").fit(X)
    assert model.alpha_ == pytest.approx(12 / (40 * 60))
    assert model.fit(X).alpha_ == model.alpha_ == model._training.learner.scheme.alpha
    assert model.alpha_ == pytest.approx(12 / (40 * 60))


# Tables of words, booleans and amounts.

VISIBLE = {"weight": "gaussian"}
N, OF_TABLES = 200, dict(columns=VISIBLE, batch_size=25, random_state=0)


@pytest.fixture(scope="module")
def table():
    """Strings, booleans and an amount that depend on a hidden class."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=N)
    kept = rng.random((N, 4)) < 0.85
    colour = np.where(kept[:, 0], kind, rng.integers(3, size=N))
    size = np.where(kept[:, 1], kind + 1, rng.integers(4, size=N))
    return pd.DataFrame({
        "colour": np.array(["red", "green", "blue"])[colour],
        "sweet": np.where(kept[:, 2], kind == 0, rng.random(N) < 0.5),
        "size": np.array(["s", "m", "l", "xl"])[size],
        "weight": 50 + 10 * kind + rng.normal(0, 3, N),
    })  # fmt: skip


def test_noisy_categories(table):
    """Through a symmetric channel."""
    words = table.drop(columns="weight")
    model = TAPRBM(8, max_iter=1, batch_size=25, random_state=0).fit(words)
    noisy, rng = words.copy(), np.random.default_rng(1)
    flipped, colours = rng.random(N) < 0.3, np.array(["blue", "green", "red"])
    other = np.searchsorted(colours, words["colour"][flipped]) + rng.integers(1, 3, flipped.sum())
    noisy.loc[flipped, "colour"] = colours[other % 3]
    # Without weights, each column is by itself: Bayes' rule with its frequencies.
    model.components_ = np.zeros_like(model.components_)
    means = model.denoise(noisy, flip_probability=0.3)[:, :3]
    prior = model._layered().layers[0].mean(0.0)[:3]
    channel = np.where(noisy["colour"].to_numpy()[:, None] == colours, 0.7, 0.15)
    expected = prior * channel
    assert_allclose(means, expected / expected.sum(axis=1, keepdims=True), atol=1e-3)
    with pytest.raises(ValueError, match="columns of numbers, but .*give flip_probability"):
        model.denoise(noisy, noise_variance=0.3)


def test_means_of_units_without_chains_are_by_tap(monkeypatch):
    for side in ("EXACT_MISSING", "EXACT_HIDDEN"):
        monkeypatch.setattr(_observed, side, 0)
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(40, 5))
    model = TAPRBM(2, columns=Spin(np.zeros(5)), inference=TAP(n_gibbs=0), max_iter=2)
    gaps = np.where(np.arange(5) < 3, np.nan, X)
    filled = model.set_params(random_state=0).fit(X).impute(gaps)
    assert_array_equal(filled, model.impute(gaps, method="tap"))
    monkeypatch.setattr(Spin, "states", lambda self: np.array([-1.0, 1.0]))
    energy = [model.free_energy(np.where(np.arange(5) < 3, [*some, 0, 0], X))
              for some in product([-1, 1], repeat=3)]  # fmt: skip
    found = model.free_energy(model.impute(gaps, how="mode"))
    assert_allclose(found, np.min(energy, axis=0), rtol=1e-6)
    with pytest.raises(ValueError, match=r"feature_range=\(-1, 1\)"):
        model.fit(X + 0.5)
