"""TAPRBM: the estimator around the mean-field equations."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_boltz import SDCPRBM, TAPRBM
from sklearn_boltz.units import Bernoulli, TruncatedGaussBernoulli, TruncatedGaussian, UnitType

LAWS = ["bernoulli", "truncated_gaussian", "truncated_gauss_bernoulli"]


@pytest.fixture(scope="module")
def digits():
    return (load_digits().data > 8).astype(np.float32)


@pytest.fixture(scope="module")
def grey():
    return load_digits().data[:600] / 16


@pytest.fixture(scope="module")
def fitted(digits):
    return TAPRBM(32, learning_rate=0.1, max_iter=40, random_state=0).fit(digits)


def binary(n_rows=60, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n_rows, n_features)).astype(float)
    X[:, 1] = X[:, 0]
    return X


def parameters(model):
    return [model.components_, model.intercept_hidden_, model.intercept_visible_]


def assert_same(a, b):
    for mine, theirs in zip(parameters(a), parameters(b), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# Learning.


def test_training_raises_the_exact_likelihood_above_independent_units(digits):
    model = TAPRBM(12, learning_rate=0.2, max_iter=50, random_state=0).fit(digits)
    independent = clone(model).set_params(max_iter=0).fit(digits)
    assert model.log_partition("exact").value == model.log_partition_
    assert model.score(digits) > independent.score(digits) + 4
    assert model.history_["tap_log_likelihood"][-1] > model.history_["tap_log_likelihood"][0]


def test_tap_and_annealing_agree_on_a_trained_model(fitted, digits):
    ais = fitted.log_partition("ais", random_state=0)
    tap = fitted.log_partition("tap")
    # What scores rest on comes from chains.
    assert abs(fitted.log_partition_ - ais.value) < 0.5
    # The mean over solutions is too low by about the logarithm of their number.
    assert abs(logsumexp(tap.log_weights) - ais.value) < 2
    scores = -fitted.free_energy(digits[:5]) - tap.value
    assert fitted.tap_log_likelihood(digits[:5]) == pytest.approx(scores)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("visible", LAWS)
@pytest.mark.parametrize("hidden", LAWS)
def test_all_pairs_of_laws_learn(grey, visible, hidden):
    X = grey > 0.5 if visible == "bernoulli" else grey
    model = TAPRBM(
        10,
        visible=visible,
        hidden=hidden,
        learning_rate=0.1,
        weights_init=0.1,
        batch_size=20,
        max_iter=20,
        random_state=0,
    ).fit(X)
    history = model.history_["tap_log_likelihood"]
    assert np.isfinite(history).all() and history[-1] > history[0] + 1
    assert model.transform(X).shape == (600, 10)
    V = model.sample(20, random_state=0, n_steps=20).astype(float)
    assert V.min() >= 0 and V.max() <= 1 and np.ptp(V) > 0
    if visible == "truncated_gauss_bernoulli":
        assert 0.1 < (V == 0).mean() < 0.9
        assert ((0 < model.rho_visible_) & (model.rho_visible_ < 1)).all()


def test_values_beyond_zero_and_one():
    X = np.random.default_rng(0).normal(0, 1, (200, 4)).clip(-2, 3)
    X[:, 1] = X[:, 0]
    model = TAPRBM(
        3, visible="truncated_gaussian", visible_range=(-2, 3), max_iter=20, random_state=0
    )
    V = model.fit(X).sample(50, random_state=0)
    assert V.min() >= -2 and V.max() <= 3 and V.min() < 0
    with pytest.raises(ValueError, match="values from -2 to 3"):
        model.fit(X + 5)
    with pytest.warns(UserWarning, match="values from -2 to 3"):
        model.transform(X + 5)
    with pytest.raises(ValueError, match="visible_range"):
        model.set_params(visible_range=(3, -2)).fit(X)
    with pytest.raises(ValueError, match="visible_range"):
        model.set_params(visible_range=(0, 1), visible="bernoulli").fit(X)


def test_unit_objects_and_wrong_numbers_of_them():
    X = binary()
    visible, hidden = Bernoulli(np.zeros(6)), TruncatedGaussian(np.zeros(3), np.ones(3), -1, 1)
    model = TAPRBM(3, visible=visible, hidden=hidden, max_iter=2, random_state=0).fit(X)
    assert (visible.intercept == 0).all()  # what the user gave is not touched
    assert model.precision_hidden_.shape == (3,)
    H = model.sample_hidden(X, random_state=0)
    assert H.min() >= -1 and H.max() <= 1 and H.min() < 0
    with pytest.raises(ValueError, match="hidden has 3 units, but there must be 4"):
        clone(model).set_params(n_components=4).fit(X)


class Spin(UnitType):
    """Units with the values -1 and 1, as a user would write them."""

    bounds = (-1.0, 1.0)

    def __init__(self, intercept):
        self.intercept = intercept

    def parameters(self):
        return {"intercept": self.intercept}

    def log_weight(self, X):
        return X @ self.intercept

    def log_partition(self, field, precision=0.0):
        return np.logaddexp(self.intercept + field, -self.intercept - field) - precision / 2

    def moments(self, field, precision=0.0):
        mean = np.tanh(self.intercept + field + 0 * precision)
        return mean, 1 - mean**2

    def gradients(self, X, field=None, precision=0.0):
        mean = X if field is None else self.moments(field, precision)[0]
        return {"intercept": mean.mean(axis=0)}


def test_a_law_of_ones_own(grey):
    X = np.where(grey > 0.5, 1.0, -1.0)
    model = TAPRBM(8, visible=Spin(np.zeros(64)), max_iter=10, random_state=0).fit(X)
    history = model.history_["tap_log_likelihood"]
    assert history[-1] > history[0]
    with pytest.raises(ValueError, match="values from -1 to 1"):
        model.fit(X + 1)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_orders_and_persistence_learn(digits, order, persistent):
    model = TAPRBM(16, order=order, persistent=persistent, max_iter=15, random_state=0).fit(digits)
    assert np.ptp(model.history_["tap_log_likelihood"]) > 0.01 * (digits.shape[1] + 16)
    assert model._iteration().order == order


@pytest.mark.parametrize("inference", ["rbp", "adatap"])
def test_other_inferences_agree_on_a_small_model(inference):
    X = binary(40)
    model = TAPRBM(3, max_iter=20, inference=inference, weights_init=0.01, random_state=0).fit(X)
    tap = clone(model).set_params(inference="tap").fit(X)
    assert_same(model, tap)  # they are for evaluation only
    exact = model.log_partition("exact").value
    assert model.log_partition("tap").value == pytest.approx(exact, abs=1e-3)


def test_parameters_are_used(digits):
    """Each has an effect on the fit."""
    X = digits[:300]
    plain = TAPRBM(8, max_iter=2, random_state=0).fit(X)
    for change in [
        dict(learning_rate=0.01), dict(learning_rate_schedule="invscaling"), dict(momentum=0.0),
        dict(penalty="l1"), dict(penalty=None), dict(alpha=0.1), dict(batch_size=50),
        dict(weights_init=0.1), dict(damping=0.2), dict(tap_max_iter=1), dict(tap_tol=1e-2),
        dict(order=1), dict(persistent=True), dict(max_iter=3), dict(random_state=1),
    ]:  # fmt: skip
        other = clone(plain).set_params(**change).fit(X)
        assert not np.array_equal(plain.components_, other.components_), change


# Stop and go.


def test_stop_and_go_is_as_if_uninterrupted(digits):
    whole = TAPRBM(8, max_iter=4, persistent=True, random_state=0).fit(digits[:300])
    part = TAPRBM(8, max_iter=2, persistent=True, warm_start=True, random_state=0)
    part = pickle.loads(pickle.dumps(part.fit(digits[:300]))).fit(digits[:300])
    assert_same(whole, part)
    np.testing.assert_array_equal(
        whole.history_["tap_log_likelihood"], part.history_["tap_log_likelihood"]
    )


def test_threads_do_not_matter(digits):
    one, two = (TAPRBM(300, max_iter=1, batch_size=500, n_jobs=n, random_state=0) for n in (1, 2))
    assert_same(one.fit(digits), two.fit(digits))


def test_partial_fit_takes_any_length(digits):
    model = TAPRBM(8, random_state=0)
    for n_rows in (1, 7, 100):
        assert model.partial_fit(digits[:n_rows]) is model
    assert np.isfinite(model.score(digits))


def test_early_stopping_returns_the_best_epoch(digits):
    model = TAPRBM(
        8, early_stopping=True, n_iter_no_change=2, max_iter=100, tol=0.5, random_state=0
    )
    model.fit(digits[:400])
    values = model.history_["validation_log_likelihood"]
    assert model.n_iter_ < 100 and len(values) == model.n_iter_
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(model).set_params(max_iter=2).fit(digits[:400])


def test_a_spin_glass_is_noticed(digits):
    with pytest.warns(ConvergenceWarning, match="spin-glass"):
        TAPRBM(64, weights_init=8.0, max_iter=1, random_state=0).fit(digits[:200])
    with pytest.warns(ConvergenceWarning, match="smaller learning_rate"):
        TAPRBM(8, learning_rate=1e30, momentum=0.9, max_iter=20, random_state=0).fit(digits)


# Solutions.


def test_tap_solutions(fitted, digits):
    solutions = fitted.tap_solutions(digits[:200])
    n = len(solutions.free_energy)
    assert solutions.visible_mean.shape == (n, 64) and solutions.hidden_mean.shape == (n, 32)
    assert solutions.assignment.shape == (200,) and set(solutions.assignment) == set(range(n))
    assert (np.diff(solutions.free_energy) >= 0).all() and solutions.converged.all()
    each = fitted.tap_solutions(digits[:200], unique=False)
    assert each.visible_mean.shape == (200, 64)
    near = np.abs(each.visible_mean - solutions.visible_mean[solutions.assignment])
    assert near.max() <= 0.02 + 1e-6
    hasty = fitted.tap_solutions(digits[:20], unique=False, max_iter=1)
    assert (hasty.n_iter == 1).all() and not hasty.converged.any()


def test_the_other_rbm_has_tap_too(digits):
    model = SDCPRBM(10, max_iter=10, random_state=0).fit(digits)
    exact, tap = model.log_partition("exact").value, model.log_partition("tap", random_state=0)
    assert abs(tap.value - exact) < 2 and np.isnan(tap.std_err)


# Evidence.


def test_denoising_beats_each_pixel_for_itself(digits):
    train, test = digits[:1500], digits[1500:]
    model = TAPRBM(64, learning_rate=0.2, max_iter=40, random_state=0).fit(train)
    noisy = np.logical_xor(test, np.random.default_rng(0).random(test.shape) < 0.1)
    pointwise = TAPRBM(1, max_iter=0).fit(train)  # no weights to speak of
    scores = [
        matthews_corrcoef(test.ravel() > 0, m.denoise(noisy, 0.1).ravel() > 0.5)
        for m in (model, pointwise)
    ]
    assert scores[0] > scores[1] + 0.02


def test_denoising_is_exact_where_there_is_nothing_to_learn_from():
    """Without weights, Bayes' rule for each value."""
    X = binary()
    model = TAPRBM(1, max_iter=0, weights_init=0.0).fit(X)
    p = model._base().mean(np.zeros(6))
    means = model.denoise([[1, 0, 1, 0, 1, 0]], 0.2)[0]
    right, wrong = np.where([1, 0] * 3, 0.8, 0.2), np.where([1, 0] * 3, 0.2, 0.8)
    np.testing.assert_allclose(means, p * right / (p * right + (1 - p) * wrong), rtol=1e-6)
    # Certain and useless observations.
    np.testing.assert_allclose(model.denoise(X, 0.0), X, atol=1e-6)
    np.testing.assert_allclose(model.denoise(X, 0.5), np.tile(p, (60, 1)), rtol=1e-6)


def test_gaussian_noise(grey):
    model = TAPRBM(
        32, visible="truncated_gauss_bernoulli", learning_rate=0.01, max_iter=40, random_state=0
    ).fit(grey)
    noisy = grey + np.random.default_rng(0).normal(0, 0.3, grey.shape)
    denoised = model.denoise(noisy, noise_variance=0.09)
    assert ((denoised - grey) ** 2).mean() < 0.7 * ((noisy.clip(0, 1) - grey) ** 2).mean()
    with pytest.raises(ValueError, match="Bernoulli"):
        model.denoise(grey, 0.1)
    with pytest.raises(ValueError, match="exactly one of"):
        model.denoise(grey)


def test_imputation_by_tap_is_near_the_exact_one(digits):
    model = TAPRBM(10, max_iter=20, random_state=0).fit(digits)
    X = digits[:20].copy()
    X[:, 20:28] = np.nan
    exact = model.impute(X)
    by_tap = model.impute(X, method="tap")
    assert np.abs(exact - by_tap).max() < 0.15 and np.abs(exact - by_tap).mean() < 0.02
    assert not np.isnan(by_tap).any()
    np.testing.assert_array_equal(by_tap[:, :20], digits[:20, :20])
    assert set(np.unique(model.impute(X, how="mode", method="tap"))) <= {0, 1}
    with pytest.raises(ValueError, match="method"):
        model.impute(X, how="sample", method="tap")


def test_real_values_are_imputed(grey):
    model = TAPRBM(
        16, visible="truncated_gauss_bernoulli", learning_rate=0.1, max_iter=60, random_state=0
    ).fit(grey)
    independent = clone(model).set_params(max_iter=0, weights_init=0.0).fit(grey)
    assert model.tap_log_likelihood(grey).mean() > independent.tap_log_likelihood(grey).mean() + 3
    X = grey.copy()
    X[:, 20:44] = np.nan
    filled = model.impute(X)
    wrong = ((filled - grey)[:, 20:44] ** 2).mean()
    assert wrong < 0.9 * ((grey.mean(axis=0) - grey)[:, 20:44] ** 2).mean()


# Among others.


def test_features_and_searches(digits):
    y = load_digits().target
    pipeline = make_pipeline(
        TAPRBM(64, learning_rate=0.2, max_iter=30, random_state=0), LogisticRegression(max_iter=500)
    )
    assert pipeline.fit(digits[:1200], y[:1200]).score(digits[1200:], y[1200:]) > 0.8
    search = GridSearchCV(
        TAPRBM(learning_rate=0.1, max_iter=10, random_state=0), {"n_components": [2, 16]}, cv=3
    )
    assert search.fit(digits).best_params_ == {"n_components": 16}


def test_an_attribute_that_is_set_counts(digits):
    model = TAPRBM(8, max_iter=5, random_state=0).fit(digits)
    before = model.log_partition_
    model.components_ = np.zeros_like(model.components_)
    expected = np.logaddexp(0, model.intercept_visible_).sum()
    expected += np.logaddexp(0, model.intercept_hidden_).sum()
    assert model.log_partition_ == pytest.approx(expected, rel=1e-5) and before != expected


@settings(max_examples=60, deadline=None)
@given(
    visible=st.sampled_from(LAWS),
    hidden=st.sampled_from(LAWS),
    n_rows=st.integers(1, 12),
    n_features=st.integers(1, 5),
    n_components=st.integers(1, 4),
    constant=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64, bool, np.int8]),
    seed=st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_is_ever_nan(
    visible, hidden, n_rows, n_features, n_components, constant, dtype, seed
):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_features)) < 0.5).astype(dtype)
    if constant:
        X[:, 0] = 0
    model = TAPRBM(n_components, visible=visible, hidden=hidden, max_iter=3, random_state=seed)
    model.fit(X)
    for values in [
        model.transform(X), model.score_samples(X), model.sample(3, random_state=0, n_steps=5),
        model.tap_solutions(X).free_energy, model.denoise(X, noise_variance=0.5),
    ]:  # fmt: skip
        assert np.isfinite(values).all()
    expected = np.float64 if dtype == np.float64 else np.float32
    assert model.transform(X).dtype == model.components_.dtype == expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("law", [Bernoulli, TruncatedGaussian, TruncatedGaussBernoulli])
def test_large_weights(law):
    model = TAPRBM(3, visible=law.from_data(binary()), max_iter=1, random_state=0).fit(binary())
    for scale in (1e3, -1e3):
        model.components_ = np.full((3, 6), scale)
        assert np.isfinite(model.score_samples(binary())).all()
        assert np.isfinite(model.denoise(binary(), noise_variance=1.0)).all()


@pytest.mark.parametrize(("n_rows", "n_starts"), [(3, 3), (60, 25), (1000, 50), (2500, 100)])
def test_small_data_are_monitored_from_fewer_starts(n_rows, n_starts):
    X = np.random.default_rng(0).integers(2, size=(n_rows, 4)).astype(np.float32)
    model = TAPRBM(2, max_iter=0, random_state=0).fit(X)
    monitor = model._monitor(model._training, X, np.arange(n_rows), np.arange(0))
    assert len(monitor.rows) == min(n_rows, 100)
    assert len(monitor.starts) == n_starts
    assert monitor.starts[0] == 0 and monitor.starts[-1] == len(monitor.rows) - 1
