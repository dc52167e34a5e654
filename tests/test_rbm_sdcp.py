"""SDCPRBM: the algorithms against literal transcriptions, and what an estimator must do."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.special import entr, expit, logit
from scipy.stats import truncnorm
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from oracles_rbm import random_rbm
from private import SGD, Adam, Stream, Workers, uniform
from private import SDCPLearner as Learner
from private import SDCPScheme as Scheme
from sklearn_boltz.datasets import make_shifting_bar
from sklearn_boltz.restricted import SDCPRBM, TAPDBM, TAPRBM
from sklearn_boltz.units import Bernoulli, Categorical, Stacked


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = (rng.random((130, 12)) < 0.3).astype(float)
    X[:, 1] = X[:, 0]
    X[:, 5] = X[:, 2]
    return X


def fitted(X, **kwargs):
    return SDCPRBM(6, max_iter=4, batch_size=50, random_state=0).set_params(**kwargs).fit(X)


def uniforms(shape, stream):
    out = np.empty(shape)
    uniform(out, stream.seed, stream.take(1))
    return out


def algorithm_4(W, b, c, mu, lam, V, d, K, eta, nu, stream, momentum=0.0, decay=0.0):
    """CS-DCP of the paper, line by line, in its own centred parameters; W is its Wᵀ."""
    Hp = expit((V - mu) @ W.T + c)
    mu_batch, lam_batch = V.mean(axis=0), Hp.mean(axis=0)
    Vn, velocity = V.copy(), [0.0, 0.0, 0.0]
    for step in range(d):
        for _ in range(K):
            h = (uniforms(Hp.shape, stream) < expit((Vn - mu) @ W.T + c)).astype(float)
            Vn = (uniforms(V.shape, stream) < expit((h - lam) @ W + b)).astype(float)
        Hn = expit((Vn - mu) @ W.T + c)
        b = b + nu * (lam_batch - lam) @ W
        c = c + nu * W @ (mu_batch - mu)
        mu, lam = (1 - nu) * mu + nu * mu_batch, (1 - nu) * lam + nu * lam_batch
        if step == 0:
            grad_g = (Hp - lam).T @ (V - mu) / len(V)
        gradients = [
            grad_g - (Hn - lam).T @ (Vn - mu) / len(V) - decay * W,
            mu_batch - Vn.mean(axis=0),
            lam_batch - Hn.mean(axis=0),
        ]
        velocity = [momentum * v + eta * g for v, g in zip(velocity, gradients, strict=True)]
        W, b, c = W + velocity[0], b + velocity[1], c + velocity[2]
    return W, b - lam @ W, c - W @ mu, mu, lam


def learner_of(rbm, visible_offset, scheme, stream, momentum=0.0):
    return Learner(
        rbm.W.copy(), Bernoulli(rbm.b.copy()), Bernoulli(rbm.c.copy()), visible_offset.copy(),
        scheme, SGD(momentum), stream,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("centered", "shape", "momentum", "decay"),
    [(True, (3, 4), 0, 0), (True, (1, 1), 0.5, 0.2), (False, (3, 4), 0.5, 0.2)],
)  # fmt: skip
def test_a_mini_batch_is_that_of_the_paper(centered, shape, momentum, decay):
    rbm, rng = random_rbm(9, 5), np.random.default_rng(1)
    V = (rng.random((90, 9)) < 0.4).astype(float)
    mu, lam = rng.random(9) * centered, np.full(5, 0.5 * centered)
    scheme = Scheme(
        n_inner=shape[0], n_gibbs=shape[1], centered=centered, offset_rate=0.1, alpha=decay
    )
    learner = learner_of(rbm, mu, scheme, Stream(5), momentum)
    learner.learn(learner.in_memory(V), 0.3, Workers(1))
    expected = algorithm_4(
        rbm.W, rbm.b + lam @ rbm.W, rbm.c + rbm.W @ mu, mu, lam, V, *shape, 0.3,
        0.1 * centered, Stream(5), momentum, decay,
    )  # fmt: skip
    for mine, theirs in zip(learner.parameters(), expected, strict=False):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    if centered:
        np.testing.assert_allclose(learner.visible_offset, expected[3])
        np.testing.assert_allclose(learner.hidden_offset, expected[4])


@pytest.mark.parametrize("persistent", [False, True])
def test_a_mini_batch_of_words_and_bits_in_one_kernel_or_step_by_step(persistent):
    rng, found = np.random.default_rng(0), []
    weights, V = rng.normal(size=(4, 7)), np.zeros((90, 7))
    for first, width in ((0, 3), (3, 2), (5, 2)):
        V[np.arange(90), first + rng.integers(width, size=90)] = 1
    for at_once in (True, False):
        units = Stacked([Categorical([3, 2]), Bernoulli(np.zeros(2))])
        scheme = Scheme(n_inner=3, n_gibbs=2, alpha=0.1, persistent=persistent, n_chains=90)
        hidden = Bernoulli(np.zeros(4))
        learner = Learner(weights.copy(), units, hidden, V.mean(axis=0), scheme, SGD(), Stream(1))
        for _ in range(3):
            batch = learner.in_memory(V)
            batch.learns_at_once &= at_once
            learner.learn(batch, 0.1, Workers(1))
        assert batch.learns_at_once is at_once
        found.append([*learner.parameters(), learner.visible_offset, learner.hidden_offset])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_single_persistent_chain_goes_on():
    """In the kernel of plain steps as with a momentum, in steps of their own."""
    rbm, V = random_rbm(9, 5), np.random.default_rng(1).integers(2, size=(30, 9)).astype(float)
    scheme, found = Scheme(centered=False, persistent=True, n_chains=1), []
    for momentum in (0.0, 1e-30):
        learner = learner_of(rbm, np.zeros(9), scheme, Stream(5), momentum)
        for _ in range(3):
            learner.learn(learner.in_memory(V), 0.3, Workers(1))
        found.append(np.concatenate([np.ravel(a) for a in (*learner.parameters(), learner.chains)]))
    assert learner.chains.shape == (1, 5)
    np.testing.assert_allclose(*found, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
def test_adam_is_the_published_algorithm(library):
    xp = pytest.importorskip(library)
    rng, adam, x = np.random.default_rng(0), Adam(), xp.asarray(np.zeros(4))
    mean, square, expected = np.zeros(4), np.zeros(4), np.zeros(4)
    for t in range(1, 6):
        g = rng.normal(size=4)
        adam.move([x], [xp.asarray(g)], 0.1)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        corrected = mean / (1 - 0.9**t), square / (1 - 0.999**t)
        expected += 0.1 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "products"),
    [({"n_inner": 1}, 6), ({"n_gibbs": 3}, 26), ({"tempered": 0.5, "n_gibbs": 3}, 26),
     ({"tempered": 1.0}, 2)],
)  # fmt: skip
def test_the_work_of_a_mini_batch(X, options, products):
    """Of each row, two products for the data, 2 K + 2 for an inner step; none from the ladder."""
    learner = fitted(X, **{"n_inner": 3, "n_gibbs": 1, **options})._training.learner
    assert learner.work(10**9) == pytest.approx(products * 1e9 * learner.model().work, rel=1e-3)


def test_learns_the_shifting_bar():
    X = make_shifting_bar(9)
    model = SDCPRBM(
        4, learning_rate=0.5, n_inner=3, max_iter=2500, track_likelihood=False, random_state=0
    ).fit(X)
    assert -2.45 < model.score(X) < -np.log(9)


def test_features_help_a_linear_classifier():
    """Of digits shifted by a pixel: by .08 and .09 with two seeds."""
    images, digit = load_digits(return_X_y=True)
    images = np.pad(images.reshape(-1, 8, 8) / 16, ((0, 0), (1, 1), (1, 1)))
    moved = [np.roll(images, step, axis) for step in (-1, 1) for axis in (1, 2)]
    X = np.concatenate(moved)[:, 1:-1, 1:-1].reshape(-1, 64).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))[:2000]
    X, y = X[order], np.tile(digit, 4)[order]
    rbm = SDCPRBM.for_features(60, random_state=0).fit(X[:1500])

    def accuracy(F):
        classifier = LogisticRegression(C=10, max_iter=2000).fit(F[:1500], y[:1500])
        return classifier.score(F[1500:], y[1500:])

    assert accuracy(rbm.transform(X)) > accuracy(X) + 0.05


def test_settings_for_features_can_be_replaced():
    model = SDCPRBM.for_features(5, max_iter=3, chains="data")
    assert (model.n_components, model.max_iter, model.chains) == (5, 3, "data")
    assert model.batch_size == 10 and not model.centered
    assert clone(model).get_params() == model.get_params()


def test_divergence_keeps_the_last_finite_state(X):
    model = fitted(X, warm_start=True)
    before = clone(model).fit(X)
    model.set_params(learning_rate=1.7e308)
    for train in (model.fit, model.partial_fit):
        with pytest.warns(ConvergenceWarning, match="smaller learning_rate"):
            train(X)
        np.testing.assert_array_equal(model.components_, before.components_)
        assert model.n_iter_ == before.n_iter_


def test_memory_of_a_fit():
    X = (np.random.default_rng(0).random((20_000, 20)) < 0.3).astype(np.float32)
    tracemalloc.start()
    SDCPRBM(400, max_iter=1, n_inner=1, n_gibbs=1, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 * 400 * 4 / 4


def test_a_fit_with_temperatures_waits_for_three_falls_of_the_rate():
    X = np.random.default_rng(0).integers(2, size=(60, 6))  # nothing to learn: it overfits
    model = SDCPRBM(6, tempered=0.2, early_stopping=True, max_iter=60, learning_rate=0.3,
                    batch_size=20, random_state=0)  # fmt: skip
    model._schedule = model._schedule._replace(fall_after=(5, 1))
    model.fit(X)
    assert model._training.best["epoch"] + 15 <= model.n_iter_ < 60


def test_early_stopping_returns_to_the_best_epoch():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 10)) < 0.5).astype(float)  # nothing to learn: it overfits
    model = SDCPRBM(10, early_stopping=0.5, max_iter=600, learning_rate=0.5, batch_size=10,
                    chains="data", random_state=0).fit(X)  # fmt: skip
    path, best = model.history_["validation_log_likelihood"], model._training.best["epoch"]
    assert best < model.n_iter_ == len(path) < 600
    order = np.random.default_rng(model._training.evaluation_seed).permutation(60)
    assert model.score(X[order[:30]]) == pytest.approx(path[best - 1])
    assert model.history_["free_energy_gap"][-1] > 0
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.set_params(max_iter=2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The model is no better")
        model.set_params(early_stopping=False).fit(X)


def test_initial_biases_are_base_rates_and_weights_follow_the_sizes_of_the_layers():
    """Standard deviations of 20,000 weights and more, within five standard errors: 1e-6."""
    X = np.random.default_rng(0).integers(2, size=(20, 300))
    none = dict(max_iter=0, init="scaled", random_state=0)
    models = [SDCPRBM(100, **none).fit(X), TAPRBM(100, **none).fit(X)]
    deep = TAPDBM((100, 200), pretrain_max_iter=0, **none).fit(X)
    for weights in [*(model.components_ for model in models), *deep.components_]:
        std = sum(weights.shape) ** -0.5
        assert weights.std() == pytest.approx(std, rel=5 / np.sqrt(2 * weights.size))
    rates = logit((X.sum(axis=0) + 0.5) / (len(X) + 1))
    np.testing.assert_allclose(models[0].intercept_visible_, rates, rtol=1e-5)


@pytest.mark.parametrize("kind", [SDCPRBM, TAPRBM])
def test_rectified_linear_units(kind):
    """Their means are those of normal numbers above 0, and they learn four equal columns."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.1, 0.0, rng.integers(2, size=(200, 1)))
    X[:, 4:] = rng.integers(2, size=(200, 2))
    model = kind(2, hidden="relu", learning_rate=0.1, max_iter=40, random_state=0).fit(X)
    units = model._layered().layers[1]
    scale = 1 / np.sqrt(units.precision)
    mean = (X[:20] @ model.components_.T + units.intercept) * scale**2
    expected = truncnorm(-mean / scale, np.inf, mean, scale).mean()
    np.testing.assert_allclose(model.transform(X[:20]), expected, rtol=1e-5)
    of_independent = -entr([X.mean(axis=0), 1 - X.mean(axis=0)]).sum()
    assert model.score(X) > of_independent + 0.5
