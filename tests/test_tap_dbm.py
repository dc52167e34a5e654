"""TAPDBM: the estimator around layered mean field."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from oracles_rbm import SmallDBM, binary
from private import divided
from sklearn_boltz import TAPDBM, TAPRBM
from sklearn_boltz.units import Bernoulli, TruncatedGaussian

LAWS = ["bernoulli", "truncated_gaussian", "truncated_gauss_bernoulli"]


@pytest.fixture(scope="module")
def digits():
    return (load_digits().data > 8).astype(np.float32)


@pytest.fixture(scope="module")
def grey():
    return load_digits().data[:300] / 16


@pytest.fixture(scope="module")
def fitted(digits):
    return TAPDBM(
        (16, 8, 6), learning_rate=0.2, pretrain_max_iter=10, max_iter=12, random_state=0
    ).fit(digits[:800])


def rows(n_rows=60, n_features=5, seed=0):
    X = np.random.default_rng(seed).integers(2, size=(n_rows, n_features)).astype(float)
    X[:, 1] = X[:, 0]
    return X


def small(sizes=(4, 3), scale=0.5, **kwargs):
    """A model with random parameters, and the sums over all its states."""
    model = TAPDBM(sizes, max_iter=1, pretrain_max_iter=0, random_state=0, **kwargs).fit(rows())
    rng = np.random.default_rng(1)
    model.components_ = [scale * rng.standard_normal(W.shape) for W in model.components_]
    model.intercept_hidden_ = [rng.standard_normal(len(W)) for W in model.components_]
    model.intercept_visible_ = rng.standard_normal(5)
    intercepts = [model.intercept_visible_, *model.intercept_hidden_]
    return model, SmallDBM(model.components_, intercepts)


def parameters(model):
    return [*model.components_, *model.intercept_hidden_, model.intercept_visible_]


def assert_same(a, b):
    for mine, theirs in zip(parameters(a), parameters(b), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# One hidden layer.


@pytest.mark.parametrize("change", [{}, {"persistent": True}, {"order": 1}, {"momentum": 0.0}])
def test_one_hidden_layer_is_the_rbm_to_the_bit(digits, change):
    X = digits[:300]
    rbm = TAPRBM(12, max_iter=3, random_state=0, **change).fit(X)
    dbm = TAPDBM([12], pretrain_max_iter=0, max_iter=3, random_state=0, **change).fit(X)
    np.testing.assert_array_equal(dbm.components_[0], rbm.components_)
    np.testing.assert_array_equal(dbm.intercept_visible_, rbm.intercept_visible_)
    for name, values in rbm.history_.items():
        if name != "seconds":
            np.testing.assert_array_equal(dbm.history_[name], values)
    Y = X[:10].copy()
    Y[:, 20:40] = np.nan
    for compute in [
        lambda m: m.transform(X), lambda m: m.score_samples(X), lambda m: m.log_partition_,
        lambda m: m.tap_log_likelihood(X), lambda m: m.denoise(X[:9], 0.1),
        lambda m: m.sample(5, random_state=0, n_steps=10),
        lambda m: m.log_partition("ais", n_temperatures=50, random_state=0).value,
        lambda m: m.impute(Y, random_state=0), lambda m: m.impute(Y, method="tap"),
        lambda m: m.tap_solutions(X[:50]).free_energy,
    ]:  # fmt: skip
        np.testing.assert_array_equal(compute(dbm), compute(rbm))


# Against all states of a small model.


@pytest.mark.parametrize("sizes", [(4, 3), (3, 3, 2)])
def test_against_enumeration(sizes):
    model, dbm = small(sizes, scale=0.1)
    V = binary(5)
    exact = np.log(dbm.Z)
    assert model.log_partition("exact").value == pytest.approx(exact, abs=1e-10)
    assert model.log_partition_ == pytest.approx(exact, abs=1e-10)
    assert model.log_partition("tap", X=V).value == pytest.approx(exact, abs=2e-3)
    # 200 chains, fixed seeds; 6 standard errors.
    for method in ("ais", "raise"):
        estimate = model.log_partition(method, n_chains=200, random_state=0)
        assert estimate.value == pytest.approx(exact, abs=6 * estimate.std_err)
        assert estimate.std_err < 0.01
    log_sums, means = dbm.given(V)
    np.testing.assert_allclose(-model.free_energy(V), log_sums, atol=2e-3)
    np.testing.assert_allclose(model.score_samples(V), log_sums - exact, atol=2e-3)
    assert np.exp(model.score_samples(V)).sum() == pytest.approx(1, abs=2e-3)
    assert model.score(V) == model.score_samples(V).mean()
    for mine, expected in zip(model.mean_hidden(V), means[1:], strict=True):
        np.testing.assert_allclose(mine, expected, atol=2e-3)
    np.testing.assert_array_equal(model.transform(V), model.mean_hidden(V)[-1])


def test_samples_have_the_law_of_the_model():
    """20,000 chains with a fixed seed: total variation of p(v), of which 0.012 is noise."""
    model, dbm = small(scale=1.0)
    V = model.sample(20000, random_state=0, n_steps=50)
    assert V.shape == (20000, 5)
    places = 2 ** np.arange(5)[::-1]
    p = np.bincount(dbm.layers[0].astype(int) @ places, weights=dbm.joint)
    tempered = model.sample(4000, random_state=0, n_steps=20, n_temperatures=3)
    for sample, bound in [(V, 0.03), (tempered, 0.06)]:
        counts = np.bincount(sample.astype(int) @ places, minlength=32) / len(sample)
        assert np.abs(counts - p).sum() / 2 < bound
    started = model.sample(6, random_state=0, n_steps=0, init=rows()[:3])
    np.testing.assert_array_equal(started, rows()[[0, 1, 2, 0, 1, 2]])


def test_imputation_against_all_states():
    model, dbm = small(scale=0.3)
    X = rows()[:8]
    X[:, 2:] = np.nan
    X[0] = [1, 1, 0, 0, 1]
    _, means = dbm.given(X[:, :2])
    for method, tolerance in [("auto", 1e-9), ("gibbs", 1e-9), ("tap", 0.03)]:
        filled = model.impute(X, method=method)
        np.testing.assert_allclose(filled[1:, 2:], means[0][1:, 2:], atol=tolerance)
        np.testing.assert_array_equal(filled[:, :2], X[:, :2])
        np.testing.assert_array_equal(filled[0], X[0])
    mode = model.impute(X, how="mode", method="tap")
    np.testing.assert_array_equal(mode[1:, 2:], (means[0][1:, 2:] > 0.5).astype(float))
    # The mean of 4,000 draws, each with a standard error of at most 0.008; 6 of them.
    many = np.repeat(X[3:4], 4000, axis=0)
    drawn = model.impute(many, how="sample", random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0)[2:], means[0][3, 2:], atol=0.048)
    assert set(np.unique(drawn)) <= {0, 1}


def test_imputation_by_chains(fitted, digits):
    X = digits[:5].copy()
    X[:, 20:40] = np.nan
    filled = fitted.impute(X, method="gibbs", n_steps=50, random_state=0)
    assert np.abs(filled - fitted.impute(X, method="tap")).mean() < 0.1
    np.testing.assert_array_equal(filled[:, :20], digits[:5, :20])


# Learning.


def test_training_raises_the_likelihood_and_pre_training_the_deep_weights(fitted, digits):
    history = fitted.history_
    assert np.ptp(history["tap_log_likelihood"]) > 0.3
    assert history["tap_log_likelihood"][-1] > history["tap_log_likelihood"][0]
    assert (history["share_converged_clamped"] == 1).all()
    ais = fitted.log_partition("ais", random_state=0)
    assert abs(fitted.log_partition("tap").value - ais.value) < 2
    without = clone(fitted).set_params(pretrain_max_iter=0).fit(digits[:800])
    assert without.pretrain_history_ == []
    assert [len(h["seconds"]) for h in fitted.pretrain_history_] == [10, 10, 10]
    for name in ("weight_norm_2", "feature_std_2"):
        assert history[name][-1] > 1.5 * without.history_[name][-1]
    for k, W in enumerate(fitted.components_, start=1):
        assert history[f"weight_norm_{k}"][-1] == pytest.approx(np.linalg.norm(W), rel=1e-6)


def test_pre_training_is_that_of_rbms(digits):
    """The first layer, and the second on values of the first."""
    X = digits[:300]
    model = TAPDBM((8, 4), pretrain_max_iter=3, max_iter=0, random_state=0).fit(X)
    seeds = np.random.default_rng(0)
    for n, m in [(8, 64), (4, 8)]:
        seeds.normal(0, 1, (n, m))  # the weights without pre-training
    seeds.integers(2**31)  # for evaluation
    first = TAPRBM(8, max_iter=3, random_state=int(seeds.integers(2**31))).fit(X)
    H = first.sample_hidden(X, random_state=int(seeds.integers(2**31)))
    second = TAPRBM(4, max_iter=3, random_state=int(seeds.integers(2**31))).fit(H)
    for mine, rbm in zip(model.components_, [first, second], strict=True):
        np.testing.assert_array_equal(mine, rbm.components_)
    np.testing.assert_array_equal(model.intercept_visible_, first.intercept_visible_)
    np.testing.assert_array_equal(model.intercept_hidden_[1], second.intercept_hidden_)


@pytest.mark.parametrize("n_levels", [3, 9])
def test_pre_training_on_a_single_column_of_levels(n_levels):
    """Its units are one categorical unit, not one for each of its numbers."""
    X = np.random.default_rng(0).integers(n_levels, size=(60, 1))
    model = TAPDBM((4, 3), visible="categorical", max_iter=2, pretrain_max_iter=2, random_state=0)
    model.fit(X)
    assert model.components_[0].shape == (4, n_levels)
    states = np.arange(n_levels)[:, None]
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1, rel=0.05)


def test_rows_that_do_not_converge_are_told():
    """Strong couplings between the hidden layers: iterations jump to and fro."""
    X = rows()
    model = TAPDBM((5, 4), pretrain_max_iter=0, max_iter=0, random_state=0).fit(X)
    W = model.components_[1]
    W[...] = 50 * np.random.default_rng(0).normal(size=W.shape)
    model.intercept_hidden_[1][...] = -W.sum(axis=1) / 2
    for method in (model.transform, model.free_energy):
        with pytest.warns(ConvergenceWarning, match="% of the rows; .* larger damping"):
            assert np.isfinite(method(X)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("visible", LAWS)
def test_laws_of_each_layer(grey, visible):
    X = grey > 0.5 if visible == "bernoulli" else grey
    hidden = ["bernoulli", "truncated_gaussian", TruncatedGaussian(np.zeros(3), np.ones(3), -1, 1)]
    model = TAPDBM(
        (8, 4, 3), visible=visible, hidden=hidden, learning_rate=0.1, batch_size=20,
        pretrain_max_iter=3, max_iter=6, random_state=0,
    ).fit(X)  # fmt: skip
    history = model.history_["tap_log_likelihood"]
    assert np.isfinite(history).all() and history[-1] > history[0]
    assert model.precision_hidden_[0] is None and model.precision_hidden_[2].shape == (3,)
    assert (hidden[2].intercept == 0).all()  # what the user gave is not touched
    V = model.sample(20, random_state=0, n_steps=10).astype(float)
    assert V.shape == (20, 64) and V.min() >= 0 and V.max() <= 1 and np.ptp(V) > 0
    Y = X[:5].astype(float)
    Y[:, 10:40] = np.nan
    for filled in [model.impute(Y), model.impute(Y, method="gibbs", n_steps=5, random_state=0)]:
        assert filled.min() >= 0 and filled.max() <= 1
    if visible == "bernoulli":
        assert set(np.unique(model.impute(Y, how="mode", method="gibbs", n_steps=5))) <= {0, 1}


def test_wrong_layers(digits):
    X = digits[:50]
    for sizes in [(), (3, 0), (3, 2.5), ((3,), (2,))]:
        with pytest.raises(ValueError, match="hidden_layer_sizes"):
            TAPDBM(sizes).fit(X)
    with pytest.raises(ValueError, match="hidden has 1 unit types, but there are 2 hidden"):
        TAPDBM((3, 2), hidden=["bernoulli"]).fit(X)
    with pytest.raises(ValueError, match="hidden may not be 'gauss'"):
        TAPDBM((3, 2), hidden=["bernoulli", "gauss"]).fit(X)
    with pytest.raises(ValueError, match="hidden has 3 units, but there must be 2"):
        TAPDBM((3, 2), hidden=Bernoulli(np.zeros(3))).fit(X)
    with pytest.raises(ValueError, match="output_layer is 2, but there are 2 hidden"):
        TAPDBM((3, 2), output_layer=2).fit(X)
    model = TAPDBM((3, 2), max_iter=1, pretrain_max_iter=1, warm_start=True).fit(X)
    with pytest.raises(ValueError, match=r"layers of \[3, 2\] units"):
        model.set_params(hidden_layer_sizes=(3, 3)).fit(X)
    with pytest.raises(ValueError, match="X must be None"):
        model.log_partition("raise", X=X)


def test_parameters_are_used(digits):
    X = digits[:150]
    plain = TAPDBM((6, 4), max_iter=2, pretrain_max_iter=1, random_state=0).fit(X)
    for change in [
        dict(learning_rate=0.01), dict(learning_rate_schedule="invscaling"), dict(momentum=0.0),
        dict(penalty="l1"), dict(penalty=None), dict(alpha=0.1), dict(batch_size=50),
        dict(weights_init=0.1), dict(damping=0.2), dict(tap_max_iter=1), dict(tap_tol=1e-2),
        dict(order=1), dict(persistent=True), dict(max_iter=3), dict(random_state=1),
        dict(pretrain_max_iter=2),
    ]:  # fmt: skip
        other = clone(plain).set_params(**change).fit(X)
        for mine, theirs in zip(plain.components_, other.components_, strict=True):
            assert not np.array_equal(mine, theirs), change


# Stop and go.


@pytest.mark.parametrize("persistent", [False, True])
def test_stop_and_go_is_as_if_uninterrupted(digits, persistent):
    model = TAPDBM(
        (8, 6, 4), max_iter=4, pretrain_max_iter=2, persistent=persistent, random_state=0
    )
    X = digits[:200]
    whole = clone(model).fit(X)
    part = clone(model).set_params(max_iter=2, warm_start=True)
    part = pickle.loads(pickle.dumps(part.fit(X))).fit(X)
    assert_same(whole, part)
    for name in ("tap_log_likelihood", "weight_norm_2"):
        np.testing.assert_array_equal(whole.history_[name], part.history_[name])
    # Pre-trained only, and then on.
    later = clone(model).set_params(max_iter=0, warm_start=True).fit(X)
    assert_same(whole, later.set_params(max_iter=4).fit(X))


def test_divergence_is_noticed_and_leaves_no_trace(digits):
    model = TAPDBM((6, 4), max_iter=2, pretrain_max_iter=2, random_state=0).fit(digits[:100])
    before = [a.copy() for a in parameters(model)]
    model.set_params(learning_rate=1e30, momentum=0.9, warm_start=True, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="smaller learning_rate"):
        model.fit(digits[:100])
    for mine, theirs in zip(parameters(model), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert model.n_iter_ == 2


def test_threads_do_not_matter(digits):
    one, two = (
        TAPDBM(
            (150, 100), max_iter=1, pretrain_max_iter=1, batch_size=300, n_jobs=n, random_state=0
        )
        for n in (1, 2)
    )
    assert_same(one.fit(digits[:600]), two.fit(digits[:600]))


def test_partial_fit_takes_any_length(digits):
    model = TAPDBM((6, 4), random_state=0)
    for n_rows in (1, 7, 100):
        assert model.partial_fit(digits[:n_rows]) is model
    assert model.pretrain_history_ == [] and np.isfinite(model.score(digits[:100]))


def test_early_stopping_returns_the_best_epoch(digits):
    X = digits[:300]
    model = TAPDBM(
        (6, 4), early_stopping=True, n_iter_no_change=2, pretrain_max_iter=2, max_iter=200, tol=0.5,
        learning_rate=0.2, random_state=0,
    ).fit(X)  # fmt: skip
    values = model.history_["validation_log_likelihood"]
    assert model.n_iter_ < 200 and len(values) == model.n_iter_
    # The rows set aside are not pre-trained on either.
    other = X.copy()
    other[divided(len(X), model.validation_fraction, model._evaluation_seed)[1]] = 0
    histories = []
    for rows_ in (X, other):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            again = clone(model).set_params(max_iter=0).fit(rows_)
        histories.append(again.pretrain_history_[0]["tap_log_likelihood"])
    np.testing.assert_array_equal(*histories)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(model).set_params(max_iter=1).fit(X)


# What it gives.


def test_output_layers_and_their_names(digits):
    X = digits[:100]
    model = TAPDBM((6, 4, 3), max_iter=1, pretrain_max_iter=1, random_state=0).fit(X)
    layers = model.mean_hidden(X)
    assert [H.shape for H in layers] == [(100, 6), (100, 4), (100, 3)]
    for output, expected in [(-1, layers[2]), (0, layers[0]), (1, layers[1]), (-2, layers[1])]:
        model.set_params(output_layer=output)
        np.testing.assert_array_equal(model.transform(X), expected)
        assert len(model.get_feature_names_out()) == expected.shape[1]
    model.set_params(output_layer="all").set_output(transform="pandas")
    frame = model.transform(X)
    np.testing.assert_array_equal(frame.to_numpy(), np.hstack(layers))
    assert list(frame.columns) == [f"tapdbm{j}" for j in range(13)]


def test_solutions_by_layer(fitted, digits):
    found = fitted.tap_solutions(digits[:100])
    n = len(found.free_energy)
    assert found.visible_mean.shape == (n, 64) and found.assignment.shape == (100,)
    assert [a.shape for a in found.hidden_mean] == [(n, 16), (n, 8), (n, 6)]
    assert [a.shape for a in found.hidden_variance] == [(n, 16), (n, 8), (n, 6)]
    assert (np.diff(found.free_energy) >= 0).all() and found.converged.all()


def test_denoising(fitted, digits):
    X = digits[:300]
    noisy = np.logical_xor(X, np.random.default_rng(0).random(X.shape) < 0.1).astype(np.float32)
    pointwise = TAPRBM(1, max_iter=0, weights_init=0.0).fit(digits)
    wrong = [((m.denoise(noisy, 0.1) > 0.5) != X).mean() for m in (fitted, pointwise)]
    assert wrong[0] < 0.95 * wrong[1]
    with pytest.raises(ValueError, match="exactly one of"):
        fitted.denoise(X)


def test_an_attribute_that_is_set_counts():
    model, dbm = small()
    before = model.log_partition_
    model.components_ = [np.zeros_like(W) for W in model.components_]
    expected = sum(np.logaddexp(0, b).sum() for b in dbm.intercepts)
    assert model.log_partition_ == pytest.approx(expected, abs=1e-10) and before != expected


# Whatever the data.


def test_layouts_and_types(digits):
    X = digits[:80]
    model = TAPDBM((5, 3), max_iter=2, pretrain_max_iter=1, random_state=0)
    reference = clone(model).fit(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in [np.asfortranarray(X), read_only, csr_matrix(X), X.astype(bool), X[:, ::1]]:
        again = clone(model).fit(other)
        assert_same(reference, again)
        np.testing.assert_array_equal(again.transform(other), reference.transform(X))
        np.testing.assert_array_equal(again.score_samples(other), reference.score_samples(X))
    assert reference.transform(X).dtype == np.float32 == reference.components_[1].dtype
    assert clone(model).fit(X.astype(float)).transform(X).dtype == np.float64
    for a in parameters(reference):
        a.flags.writeable = False
    reference.sample(2, random_state=0, n_steps=3)
    reference.set_params(warm_start=True).fit(X)
    bad = X.copy()
    bad[1, 3] = 7
    with pytest.raises(ValueError, match="column 3, but row 1 has the value 7"):
        reference.fit(bad)
    with pytest.warns(UserWarning, match="is 7 in column 3, row 1"):
        reference.transform(bad)


@settings(max_examples=30, deadline=None)
@given(
    visible=st.sampled_from(LAWS),
    hidden=st.lists(st.sampled_from(LAWS), min_size=1, max_size=4),
    n_rows=st.integers(1, 12),
    n_features=st.integers(1, 5),
    pretrain=st.integers(0, 1),
    constant=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64, bool, np.int8]),
    seed=st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_is_ever_nan(visible, hidden, n_rows, n_features, pretrain, constant, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_features)) < 0.5).astype(dtype)
    if constant:
        X[:, 0] = 0
    sizes = rng.integers(1, 4, size=len(hidden))
    model = TAPDBM(
        sizes, visible=visible, hidden=hidden, pretrain_max_iter=pretrain, max_iter=2,
        random_state=seed,
    ).fit(X)  # fmt: skip
    missing = X.astype(float)
    missing[:, -1] = np.nan
    for values in [
        model.transform(X), model.score_samples(X), model.sample(3, random_state=0, n_steps=5),
        model.tap_solutions(X).free_energy, model.denoise(X, noise_variance=0.5),
        model.impute(missing, n_steps=4, random_state=0),
        model.log_partition("ais", n_chains=20, n_temperatures=20, random_state=0).value,
    ]:  # fmt: skip
        assert np.isfinite(values).all()
    expected = np.float64 if dtype == np.float64 else np.float32
    assert model.transform(X).dtype == model.components_[0].dtype == expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hidden", LAWS)
def test_large_weights(hidden):
    X = rows()
    model = TAPDBM((4, 3), hidden=hidden, max_iter=1, pretrain_max_iter=0, random_state=0).fit(X)
    for scale in (1e3, -1e3):
        model.components_ = [np.full(W.shape, scale) for W in model.components_]
        for values in [model.score_samples(X), model.transform(X), model.denoise(X, 0.1)]:
            assert np.isfinite(values).all()
