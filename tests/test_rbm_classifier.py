"""RBMClassifier: exact probabilities, gradients, training, and what a user meets."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from private import (
    ClassModel,
    LabelledRows,
    Objective,
    Scale,
    Stream,
    Workers,
    _rbm_classifier,
    gradient,
    row_factors,
    stratified,
    visible_arrays,
)
from private import DiscriminativeLearner as Learner
from sklearn_boltz import SDCPRBM, RBMClassifier
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Bernoulli, Categorical, Gaussian, Stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Means may differ by so many standard errors: a false alarm in 1.7 million figures.
SIGMAS = 5


@pytest.fixture(scope="module")
def problem():
    """Bits in which the class is written, with noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    X = (rng.random((240, 8)) < 0.5).astype(np.float64)
    X[:, :3] = np.eye(3)[y]
    flipped = rng.random((240, 3)) < 0.05
    X[:, :3] = np.where(flipped, 1 - X[:, :3], X[:, :3])
    return X, y


def small(**options):
    defaults = {"n_components": 6, "max_iter": 30, "batch_size": 20, "learning_rate": 0.03,
                "early_stopping": False, "n_jobs": 1, "random_state": 0}  # fmt: skip
    return RBMClassifier(**{**defaults, **options})


def a_model(n_hidden=4, n_classes=3, seed=0, scale=1.0):
    """Two bits, a column of three categories, and a label."""
    rng = np.random.default_rng(seed)
    visible = Stacked([Bernoulli(rng.normal(size=2)), Categorical([3], rng.normal(size=3))])
    return ClassModel.of(
        scale * rng.normal(size=(n_hidden, 5)), scale * rng.normal(size=(n_hidden, n_classes)),
        visible, Bernoulli(rng.normal(size=n_hidden)),
        Categorical([n_classes], rng.normal(size=n_classes)),
    )  # fmt: skip


def every_row():
    return np.array([
        [*bits, *category] for bits in itertools.product([0, 1], repeat=2) for category in np.eye(3)
    ], dtype=np.float64)  # fmt: skip


def log_joint(model, V):
    """ln Σ_h p(x, y, h) for each class, but for ln Z, by enumeration of the hidden units."""
    H = np.array(list(itertools.product([0.0, 1.0], repeat=len(model.hidden))))
    columns = []
    for label in np.eye(model.n_classes):
        rows = np.hstack([V, np.tile(label, (len(V), 1))])
        bias = np.concatenate(visible_arrays(model.visible) + [model.label.intercept])
        energy = -(rows @ model.joint_weights.T) @ H.T - (rows @ bias)[:, None]
        columns.append(logsumexp(-energy + H @ model.hidden.intercept, axis=1))
    return np.column_stack(columns)


# The model.


def test_probabilities_of_the_classes_against_enumeration():
    model, V = a_model(), every_row()
    expected = log_joint(model, V)
    fields = model.hidden_field(V)
    assert_allclose(model.log_probability(fields), log_softmax(expected, axis=1), atol=1e-12)
    assert_allclose(-model.free_energy(V, fields), logsumexp(expected, axis=1), atol=1e-12)
    joint = model.joint()
    for code in range(3):
        rows = model.joint_rows(V, np.full(len(V), code))
        assert_allclose(-joint.free_energy(rows), expected[:, code], atol=1e-12)


def test_means_of_the_hidden_units_against_enumeration():
    model, V = a_model(), every_row()
    p = softmax(log_joint(model, V), axis=1)
    expected = sum(
        p[:, [k]] * model.joint().mean_hidden(model.joint_rows(V, np.full(len(V), k)))
        for k in range(3)
    )
    assert_allclose(model.mean_hidden(model.hidden_field(V)), expected, atol=1e-12)


# Gradients.


def objective_of(model, V, codes, weights, alpha):
    """mean ln p(y | x) over labelled rows + α (mean ln p(x, y) or ln p(x)), NaN missing."""
    every = every_row()
    of_every = log_joint(model, every)
    log_z = logsumexp(of_every)
    labelled, total = codes >= 0, 0.0
    share = weights[labelled].sum() / weights.sum()
    for v, code, weight in zip(V, codes, weights, strict=True):
        agrees = (np.isnan(v) | (every == v)).all(axis=1)
        logs = logsumexp(of_every[agrees], axis=0)
        if code >= 0:
            total += weight * (logs[code] - logsumexp(logs)) / share
        of_row = logs[code] if code >= 0 else logsumexp(logs)
        total += alpha * weight * (of_row - log_z)
    return total / weights.sum()


def finite_differences(model, function):
    found = []
    for array in [model.joint_weights.T, model.hidden.intercept, model.label.intercept,
                  *visible_arrays(model.visible)]:  # fmt: skip
        slopes = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            value, step = array[place], 1e-5
            array[place] = value + step
            up = function()
            array[place] = value - step
            slopes[place] = (up - function()) / (2 * step)
            array[place] = value
        found.append(slopes.ravel())
    return np.concatenate(found)


def flat(found):
    return np.concatenate([
        found.weights.ravel(), found.hidden, found.label, *found.visible
    ])  # fmt: skip


def some_rows(n=12, seed=1, gaps=False):
    rng = np.random.default_rng(seed)
    V = every_row()[rng.integers(12, size=n)]
    if gaps:
        V[: n // 2, 0] = np.nan
        V[n // 3 : 2 * n // 3, 2:] = np.nan
    return V, rng.integers(-1, 3, size=n), rng.integers(1, 4, size=n) / 2.0


def one_gradient(model, rows, alpha, seed, n_gibbs=1, gap_seed=None):
    codes, weights = rows.codes, rows.weights
    share = weights[codes >= 0].sum() / weights.sum()
    objective = Objective(alpha=alpha, n_gibbs=n_gibbs)
    scale = Scale(weights.sum(), share)  # weights of any mean
    with Workers(1) as workers:
        return flat(gradient(model, rows, objective, scale, Stream(seed), gap_seed, workers))


def test_the_discriminative_gradient_against_finite_differences():
    model, (V, codes, weights) = a_model(), some_rows()
    expected = finite_differences(model, lambda: objective_of(model, V, codes, weights, 0.0))
    found = one_gradient(model, LabelledRows(V, codes, weights), 0.0, 0)
    assert_allclose(found, expected, atol=1e-8)


def assert_mean(draws, expected):
    mean, error = draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(mean - expected) < SIGMAS * error + 1e-8).all()
    assert np.median(error) < 0.1 * np.abs(expected).max()  # so that it could fail


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_the_hybrid_gradient_in_the_mean(alpha):
    """Chains of 30 transitions forget where they began: weights are small."""
    model, (V, codes, weights) = a_model(scale=0.3), some_rows()
    expected = finite_differences(model, lambda: objective_of(model, V, codes, weights, alpha))
    rows = LabelledRows(V, codes, weights)
    draws = np.array([one_gradient(model, rows, alpha, seed, n_gibbs=30) for seed in range(600)])
    assert_mean(draws, expected)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_the_gradient_with_missing_cells_in_the_mean(alpha):
    model, (V, codes, weights) = a_model(scale=0.3), some_rows(gaps=True)
    expected = finite_differences(model, lambda: objective_of(model, V, codes, weights, alpha))
    rows = LabelledRows(V, codes, weights)
    draws = np.array([
        one_gradient(model, rows, alpha, seed, n_gibbs=30, gap_seed=1000 + seed)
        for seed in range(600)
    ])  # fmt: skip
    assert_mean(draws, expected)


def test_repeated_rows_with_labels_change_no_mean():
    """Visits of labelled rows three times as often, each for a third."""
    V, codes, _ = some_rows()
    rows = LabelledRows(V, codes)
    discriminative, generative = row_factors(rows, 0.5, Scale(len(V), (codes >= 0).mean()))
    n_visits = np.where(codes >= 0, 3, 1)
    scale = Scale(n_visits.sum(), (codes >= 0).mean(), repeats=3)
    for once, often in zip(
        (discriminative, generative), row_factors(rows, 0.5, scale), strict=True
    ):
        assert_allclose(n_visits * often, once)
    assert discriminative.sum() == pytest.approx(1) and generative.sum() == pytest.approx(0.5)


def test_a_row_of_weight_two_is_two_rows():
    model, (V, codes, _) = a_model(), some_rows()
    times = np.random.default_rng(2).integers(1, 3, size=len(V))
    once = one_gradient(model, LabelledRows(V, codes, times.astype(float)), 0.0, 0)
    twice = LabelledRows(np.repeat(V, times, axis=0), np.repeat(codes, times), np.ones(times.sum()))
    assert_allclose(one_gradient(model, twice, 0.0, 0), once, atol=1e-12)


# A fitted machine.


def enumerated(model, X):
    machine = model._class_model()
    of_every = log_joint(machine, X)
    return of_every


@pytest.fixture(scope="module")
def fitted(problem):
    return small(alpha=0.1).fit(*problem)


@pytest.fixture(scope="module")
def every_state(problem):
    return np.array(list(itertools.product([0.0, 1.0], repeat=problem[0].shape[1])))


def test_it_learns(problem):
    X, y = problem
    for alpha in (0.0, 0.01, 0.1):
        assert small(alpha=alpha, max_iter=40).fit(X, y).score(X, y) > 0.9


def test_the_density_is_normalised(fitted, every_state):
    of_every = enumerated(fitted, every_state)
    log_p = fitted.score_samples(every_state)
    assert_allclose(log_p, logsumexp(of_every, axis=1) - logsumexp(of_every), atol=1e-6)
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-6)
    of_labels = [fitted.score_samples(every_state, np.full(len(log_p), k)) for k in range(3)]
    assert_allclose(logsumexp(of_labels, axis=0), log_p, atol=1e-6)
    without = fitted.score_samples(every_state, np.full(len(log_p), -1))
    assert_allclose(without, log_p, atol=1e-6)
    entropy = -(np.exp(log_p) * log_p).sum()
    assert fitted.entropy() == pytest.approx(entropy, abs=1e-6)


def test_predictions_agree(fitted, problem):
    X, _ = problem
    log_p = fitted.predict_log_proba(X)
    assert_allclose(log_p, log_softmax(enumerated(fitted, X), axis=1), atol=1e-6)
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1, atol=1e-12)
    assert_array_equal(fitted.predict(X), log_p.argmax(axis=1))
    assert_array_equal(fitted.decision_function(X), log_p)
    two = small().fit(X, problem[1] > 0)
    assert_array_equal(two.classes_, [False, True])
    odds = two.predict_log_proba(X)
    assert_allclose(two.decision_function(X), odds[:, 1] - odds[:, 0])


def test_missing_cells_are_summed_out(fitted, problem, every_state):
    X = problem[0][:20].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.4] = np.nan
    of_every = enumerated(fitted, every_state)
    expected = np.array([
        logsumexp(of_every[(np.isnan(x) | (every_state == x)).all(axis=1)], axis=0) for x in X
    ])  # fmt: skip
    assert_allclose(fitted.predict_proba(X), softmax(expected, axis=1), atol=1e-6)
    log_z = logsumexp(of_every)
    assert_allclose(fitted.score_samples(X), logsumexp(expected, axis=1) - log_z, atol=1e-6)
    labels = np.arange(20) % 3
    of_labels = fitted.score_samples(X, labels)
    assert_allclose(of_labels, expected[np.arange(20), labels] - log_z, atol=1e-6)
    filled = fitted.impute(X)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    p = np.exp(logsumexp(of_every, axis=1))
    for x, found in zip(X, filled, strict=True):
        agrees = (np.isnan(x) | (every_state == x)).all(axis=1)
        assert_allclose(found, p[agrees] @ every_state[agrees] / p[agrees].sum(), atol=1e-6)


def test_missing_cells_by_chains_are_near_and_depend_on_the_row_alone(problem):
    """Means over 500 draws, of which many are alike: within 0.15."""
    X, y = problem
    model = small(n_components=30, max_iter=10).fit(np.hstack([X, X]), y)
    rows = np.hstack([X, X])[:6].copy()
    rows[:, 3:15] = np.nan
    found = model.predict_proba(rows)
    for k in range(6):
        assert_allclose(model.predict_proba(rows[[k]])[0], found[k], rtol=1e-6)
    every = np.array(list(itertools.product([0.0, 1.0], repeat=12)))
    for x, p in zip(rows, found, strict=True):
        filled = np.tile(x, (len(every), 1))
        filled[:, 3:15] = every
        exact = softmax(logsumexp(model._class_model().class_log_weights(
            model._class_model().hidden_field(filled)
        ) + model._class_model().visible.log_weight(filled)[:, None], axis=0))  # fmt: skip
        assert_allclose(p, exact, atol=0.15)


def test_log_pseudo_likelihood_and_columns(fitted, every_state):
    log_p = fitted.score_samples(every_state)
    number = every_state @ 2.0 ** np.arange(7, -1, -1)
    rows, expected = every_state[::9], 0.0
    for i in range(8):
        other = rows.copy()
        other[:, i] = 1 - other[:, i]
        here = log_p[(rows @ 2.0 ** np.arange(7, -1, -1)).astype(int)]
        there = log_p[(other @ 2.0 ** np.arange(7, -1, -1)).astype(int)]
        expected = expected - np.logaddexp(0, there - here)
        p = fitted.predict_column_proba(rows, i)
        of_state = p[np.arange(len(rows)), rows[:, i].astype(int)]
        assert_allclose(of_state, 1 / (1 + np.exp(there - here)), atol=1e-6)
    assert_array_equal(number, np.arange(256))
    assert_allclose(fitted.log_pseudo_likelihood(rows), expected, atol=1e-5)
    gaps = rows.copy()
    gaps[:, 0] = np.nan
    assert (fitted.log_pseudo_likelihood(gaps) > fitted.log_pseudo_likelihood(rows) - 10).all()


def test_energy(fitted, problem):
    X, machine = problem[0][:5], fitted._class_model()
    H = np.random.default_rng(0).integers(2, size=(5, 6)).astype(float)
    joint = [
        machine.joint().energy(machine.joint_rows(X, np.full(5, k)), H) for k in range(3)
    ]  # fmt: skip
    assert_allclose(fitted.energy(X, H), -logsumexp(-np.array(joint), axis=0), atol=1e-6)
    with pytest.raises(ValueError, match="H must have shape"):
        fitted.energy(X, H[:, :3])


def test_samples_of_a_class(fitted, every_state):
    """A false alarm in 1.7 million figures."""
    of_every = enumerated(fitted, every_state)
    labels = np.arange(3000) % 3
    X = fitted.sample(3000, random_state=0, y=labels, n_steps=200)
    for k in range(3):
        p = softmax(of_every[:, k]) @ every_state
        error = np.sqrt(p * (1 - p) / 1000)
        assert (np.abs(X[labels == k].mean(axis=0) - p) < SIGMAS * error).all()
    given = fitted.sample(10, random_state=0, y=2, given={4: 1})
    assert (given[:, 4] == 1).all()
    assert fitted.sample(4, random_state=0).shape == (4, 8)
    assert fitted.sample(4, random_state=0, init=X[:2], n_steps=2).shape == (4, 8)
    with pytest.raises(ValueError, match="none of the classes 0, 1, 2. Give labels that are in cl"):
        fitted.sample(2, y=7)
    with pytest.raises(ValueError, match="one for each of the 2 samples"):
        fitted.sample(2, y=[0, 1, 2])


# Training.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept(problem, dtype):
    X, y = problem
    model = small().fit(X.astype(dtype), y)
    assert model.components_.dtype == model.transform(X.astype(dtype)).dtype == dtype
    assert small().fit(X.astype(int), y).components_.dtype == np.float32


def test_the_number_of_threads_does_not_matter(problem):
    rng = np.random.default_rng(0)
    X = (rng.random((400, 300)) < 0.3).astype(np.float32)
    y = rng.integers(3, size=400)
    models = [
        RBMClassifier(150, max_iter=2, batch_size=200, early_stopping=False, n_jobs=n_jobs,
                      random_state=0).fit(X, y)
        for n_jobs in (1, 3)
    ]  # fmt: skip
    assert_array_equal(models[0].components_, models[1].components_)
    assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_sparse_rows(problem, alpha):
    X, y = problem
    dense, sparse = (
        small(alpha=alpha).fit(container(X), y) for container in (np.asarray, sp.csr_array)
    )
    assert_allclose(sparse.components_, dense.components_, atol=1e-9)
    assert_allclose(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X), atol=1e-9)


def test_early_stopping_keeps_the_best_epoch(problem):
    X, y = problem
    for scoring, name in [("neg_log_loss", "log_loss"), ("accuracy", "error")]:
        model = small(
            early_stopping=True, scoring=scoring, max_iter=200, n_iter_no_change=4, alpha=0.0
        ).fit(X, y)
        path = model.history_[f"validation_{name}"]
        assert model.n_iter_ < 200 and len(path) == model.n_iter_
        valid = stratified(y, 0.1, model._evaluation_seed)[1]
        log_p = model.predict_log_proba(X[valid])
        best = path[model._training.best["epoch"] - 1]
        found = (log_p.argmax(axis=1) != y[valid]).mean()
        if name == "log_loss":
            found = -log_p[np.arange(len(valid)), y[valid]].mean()
        assert found == pytest.approx(best, abs=1e-9)
        assert best <= path.min() + model.tol


def test_early_stopping_auto_needs_labels(problem):
    """Rows are set aside from a number of labels on, whatever the container."""
    X, y = problem
    auto, n_least = small(early_stopping="auto", max_iter=5), _rbm_classifier.ENOUGH_LABELS
    order = np.random.default_rng(0).permutation(len(y))
    for n, stops in [(n_least - 1, False), (n_least, True)]:
        few = np.full(len(y), -1)
        few[order[:n]] = y[order[:n]]
        model = clone(auto).fit(X, few)
        same = small(early_stopping=stops, max_iter=5).fit(X, few)
        assert model.do_early_stopping_ is same.do_early_stopping_ is stops
        assert ("validation_log_loss" in model.history_) == stops
        assert_array_equal(model.components_, same.components_)
        batches = clone(auto).fit(Batches(as_pairs(X, few)))
        assert batches.do_early_stopping_ is stops
        other = small(early_stopping=not stops, max_iter=5).fit(X, few)
        assert other.do_early_stopping_ is not stops
        assert ("validation_log_loss" in other.history_) != stops
    clone(auto).partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize("first", [False, True])
def test_fitting_on_with_and_without_early_stopping(problem, first):
    """The history has an entry for each epoch, NaN where no rows were set aside."""
    model = small(early_stopping=first, max_iter=3, warm_start=True).fit(*problem)
    model.set_params(early_stopping=not first).fit(*problem)
    assert model.do_early_stopping_ is not first and model.n_iter_ == 6
    measured = np.isfinite(model.history_["validation_log_loss"])
    assert_array_equal(measured, np.repeat([first, not first], 3))
    assert np.isfinite(model.history_["log_loss"]).all()


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_early_stopping_auto_where_each_class_has_a_single_row():
    X = np.eye(8)[np.arange(_rbm_classifier.ENOUGH_LABELS) % 8]
    model = small(early_stopping="auto", max_iter=1).fit(X, np.arange(len(X)))
    assert not model.do_early_stopping_


def test_the_rate_falls_where_nothing_gets_better(problem, monkeypatch):
    monkeypatch.setattr(_rbm_classifier, "FALL_AFTER_BATCHES", 1)
    model = small(max_iter=60, early_stopping=True, n_iter_no_change=20, tol=10.0).fit(*problem)
    rates = model.history_["learning_rate"]
    assert rates[0] == 0.03 and rates[-1] < 0.03 * 0.3**3
    assert set(np.round(np.log(rates / 0.03) / np.log(0.3), 6)) == set(range(len(set(rates))))
    constant = small(learning_rate_schedule="constant").fit(*problem)
    assert (constant.history_["learning_rate"] == 0.03).all()
    falling = small(learning_rate_schedule="invscaling").fit(*problem)
    assert_allclose(falling.history_["learning_rate"], 0.03 / np.arange(1, 31) ** 0.5)


def test_a_stratified_part():
    codes = np.array([0] * 50 + [1] * 20 + [2] * 3 + [3] + [-1] * 30)
    train, valid = stratified(codes, 0.1, 0)
    assert_array_equal(np.sort(np.append(train, valid)), np.arange(len(codes)))
    assert_array_equal(np.bincount(codes[valid], minlength=4), [5, 2, 0, 0])
    assert len(stratified(codes, 0, 0)[1]) == 0
    with pytest.raises(ValueError, match="early_stopping=False"):
        stratified(np.array([0, 1]), 0.5, 0)


def test_unlabelled_rows_help():
    """Classes are two patterns of which each labelled row shows a few bits."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(2, size=(2, 60))

    def rows(n):
        y = rng.integers(2, size=n)
        noise = rng.random((n, 60)) < 0.35
        return np.where(noise, 1 - patterns[y], patterns[y]).astype(float), y

    (X, y), (X_test, y_test) = rows(1000), rows(2000)
    few = y.copy()
    few[6:] = -1
    options = {"n_components": 10, "batch_size": 50, "max_iter": 30, "learning_rate": 0.01}
    with_them, alone = [], []
    for seed in range(3):
        model = small(**options, alpha=1.0, random_state=seed)
        with_them.append(clone(model).fit(X, few).score(X_test, y_test))
        alone.append(clone(model).set_params(max_iter=300).fit(X[:6], y[:6]).score(X_test, y_test))
    assert np.mean(with_them) > np.mean(alone) + 0.03


def test_weights_of_classes_are_weights_of_rows(problem):
    X, y = problem
    expected = small().fit(X, y, sample_weight=np.array([1.0, 3.0, 1.0])[y])
    model = small(class_weight={1: 3.0}).fit(X, y)
    assert_array_equal(model.components_, expected.components_)
    factors = len(y) / (3 * np.bincount(y))
    balanced = small(class_weight="balanced").fit(X, y)
    expected = small().fit(X, y, sample_weight=factors[y])
    assert_allclose(balanced.components_, expected.components_, atol=1e-9)
    with pytest.raises(ValueError, match="class_weight has the class 9"):
        small(class_weight={9: 1.0}).fit(X, y)


def test_a_row_of_weight_zero_is_not_there(problem):
    X, y = problem
    weights = np.random.default_rng(5).integers(0, 3, size=len(y)).astype(float)
    strange = X.copy()
    strange[weights == 0] = 0.5
    expected = small().fit(X[weights > 0], y[weights > 0], sample_weight=weights[weights > 0])
    model = small().fit(strange, y, sample_weight=weights)
    assert_array_equal(model.components_, expected.components_)


@pytest.mark.parametrize("kind", ["numbers", "words", "real"])
def test_the_score_leaves_rows_without_a_label_out(problem, kind):
    X, y = problem
    y = {"numbers": y, "words": np.array(list("abc"), object)[y], "real": y.astype(float)}[kind]
    absent = {"numbers": -1, "words": None, "real": np.nan}[kind]
    some, weights = np.arange(len(y)) % 3 > 0, np.arange(len(y), dtype=float)
    holes = np.where(some, y, absent)
    model = small().fit(X, holes)
    expected = np.mean(model.predict(X[some]) == y[some])
    assert model.score(X, holes) == pytest.approx(expected)
    assert model.score(sp.csr_array(X), pd.Series(holes)) == pytest.approx(expected)
    expected = model.score(X[some], y[some], weights[some])
    assert model.score(X, holes, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"RBMClassifier.score: no row has a label"):
        model.score(X, np.full(len(y), absent))


def test_labels_that_are_no_class(problem):
    X, y = problem
    names = np.array(list("abcdefghij"))
    model = small(max_iter=1, warm_start=True).fit(X, names[np.arange(len(y)) % 10])
    among = r"which is none of the 10 classes \('a', 'b', 'c', 'd', 'e', ...\)\. "
    remedy = "Give labels that are in classes_."
    for call in (lambda: model.score_samples(X[:1], ["Z"]), lambda: model.sample(y="Z")):
        with pytest.raises(
            ValueError, match=f"RBMClassifier: y has the label 'Z', {among}{remedy}"
        ):
            call()
    with pytest.raises(ValueError, match="Fit anew, with warm_start=False."):
        model.fit(X, np.where(y > 0, "a", "Z"))


def test_one_label_of_each_class_is_too_few_to_set_some_aside(problem):
    X, y = problem
    few = np.full(len(y), -1)
    few[np.unique(y, return_index=True)[1]] = np.arange(3)
    expected = "RBMClassifier: early_stopping needs a class with two labelled rows at least. Set"
    with pytest.raises(ValueError, match=expected):
        small(early_stopping=True).fit(X, few)
    small(max_iter=1).fit(X, few)


def test_scores_of_classes_minus_one_and_one(problem):
    X, y = problem
    y = np.where(y > 0, 1, -1)
    model = small().fit(X, y)
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_a_search_scores_labelled_rows(problem):
    """Without `scoring`, a search takes the score of the estimator."""
    X, y = problem
    y = np.where(np.arange(len(y)) % 2, y, -1)
    search = GridSearchCV(small(max_iter=20), {"alpha": [0.01]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85  # at most 0.5 with -1 as a class


def test_partial_fit(problem):
    X, y = problem
    model = small()
    for _ in range(30):
        for rows in np.array_split(np.arange(len(y)), 10):
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert model.score(X, y) > 0.9
    assert_array_equal(small().partial_fit(X, y, [2, 1, 0]).classes_, [0, 1, 2])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        small().partial_fit(X, y)
    expected = "y has the label 7, which is none of the classes 0, 1, 2. Name all .* partial_fit"
    with pytest.raises(ValueError, match=expected):
        model.partial_fit(X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit(X, y, classes=[0, 1])
    fresh = small()
    with pytest.raises(ValueError, match="label 7"):
        fresh.partial_fit(X, np.full(len(y), 7), classes=[0, 1, 2])
    assert not hasattr(fresh, "classes_")
    one = small().partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2])
    assert_array_equal(one.classes_, [0, 1, 2])


def test_warm_start(problem):
    X, y = problem
    whole = small(max_iter=8, learning_rate_schedule="constant").fit(X, y)
    parts = small(max_iter=4, learning_rate_schedule="constant", warm_start=True).fit(X, y)
    assert_array_equal(parts.fit(X, y).components_, whole.components_)
    assert parts.n_iter_ == 8
    with pytest.raises(ValueError, match="n_components is 7"):
        parts.set_params(n_components=7).fit(X, y)


def test_pickle(fitted, problem):
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict_proba(problem[0]), fitted.predict_proba(problem[0]))


def test_the_public_attributes_are_the_truth(problem):
    X, y = problem
    model = small().fit(X, y)
    model.components_ = np.zeros_like(model.components_)
    assert_allclose(model.predict_proba(X), np.tile(model.predict_proba(X[:1]), (len(X), 1)))
    before = model.log_partition_
    model.intercept_classes_ = model.intercept_classes_ + 1
    assert model.log_partition_ == pytest.approx(before + 1)


def test_interrupted_fits(problem, monkeypatch):
    X, y = problem

    class Stop:
        def __init__(self, n):
            self.n = n

        def __call__(self, *args, **options):
            self.n -= 1
            if self.n < 0:
                raise KeyboardInterrupt

    model = small()
    model._tell = Stop(2)  # after the third epoch
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 3 and model.predict(X).shape == y.shape
    before = model.components_.copy()
    monkeypatch.setattr(Learner, "learn", Stop(2))  # in the first epoch
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_array_equal(model.components_, before)
    fresh = small()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not hasattr(fresh, "components_") and not hasattr(fresh, "classes_")


# Where training begins.


def test_init(problem):
    X, y = problem
    machine = SDCPRBM(6, max_iter=5, random_state=0)
    fitted = clone(machine).fit(X)
    start = small(init=fitted, max_iter=0).fit(X, y)
    assert_array_equal(start.components_, fitted.components_)
    assert_array_equal(start.intercept_hidden_, fitted.intercept_hidden_)
    assert_array_equal(start.intercept_visible_, fitted.intercept_visible_)
    assert start.init_ is fitted
    unfitted = small(init=machine, max_iter=0).fit(X, y)
    assert_array_equal(unfitted.components_, fitted.components_)
    assert not hasattr(machine, "components_")
    frozen = clone(small(init=FrozenEstimator(fitted), max_iter=0)).fit(X, y)
    assert_array_equal(frozen.components_, fitted.components_)
    assert small(init=fitted).fit(X, y).score(X, y) > 0.9
    assert cross_val_score(small(init=machine), X, y, cv=3).min() > 0.8


@pytest.mark.parametrize(
    ("init", "options", "message"),
    [
        (SDCPRBM(7, max_iter=1), {}, "n_components is 6, but init has 7 components"),
        (SDCPRBM(6, max_iter=1, hidden="gaussian"), {}, "must be Bernoulli ones"),
        (SDCPRBM(6, max_iter=1, visible="gaussian"), {}, "init was fitted to other columns"),
        (RBMClassifier(6), {}, "init must be an RBM"),
    ],
)
def test_machines_that_do_not_fit(problem, init, options, message):
    with pytest.raises(ValueError, match=message):
        small(init=init, **options).fit(*problem)


def test_init_with_columns_on_another_scale():
    X, y = load_iris(return_X_y=True)
    machine = SDCPRBM(6, visible="gaussian", max_iter=5, random_state=0).fit(X[::3] * 1.0)
    model = small(init=machine, visible="gaussian", max_iter=0).fit(X, y)
    H = np.random.default_rng(0).integers(2, size=(150, 6)).astype(float)
    model.components_classes_ = np.zeros_like(model.components_classes_)
    # The same energies but for a constant.
    difference = model.energy(X, H) - machine.energy(X, H)
    assert np.ptp(difference) < 1e-6 * np.abs(machine.energy(X, H)).max()


# Batches.


def as_pairs(X, y, n=4):
    return [(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), n)]


def test_batches(problem, tmp_path):
    X, y = problem
    listed = small(max_iter=30).fit(Batches([part for part, _ in as_pairs(X, y)]), y)
    assert listed.score(X, y) > 0.9
    pairs = small(max_iter=30).fit(Batches(as_pairs(X, y)))
    assert_array_equal(pairs.components_, listed.components_)
    streamed = small(max_iter=30).fit(Batches(lambda: iter(as_pairs(X, y))))
    assert streamed.score(X, y) > 0.9
    np.save(tmp_path / "X.npy", X)
    mapped = small().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    assert_allclose(mapped.components_, small().fit(X, y).components_, atol=1e-9)
    few = small(max_iter=60, early_stopping=True).fit(Batches(as_pairs(X, np.where(y == 2, -1, y))))
    assert_array_equal(few.classes_, [0, 1])
    weights = np.where(y == 2, 0.0, 1.0)
    weighted = small(max_iter=30).fit(Batches(as_pairs(X, y)), sample_weight=weights)
    assert weighted.predict_proba(X)[:, 2].max() < 0.5
    with pytest.raises(ValueError, match="requires y to be passed"):
        small().fit(Batches([X]))
    with pytest.raises(ValueError, match="y has 3 labels, and the batches have 240 rows"):
        small().fit(Batches([X]), [0, 1, 2])


def test_one_batch_is_the_gradient_of_the_array(problem):
    """With one mini-batch of all rows, their order does not matter without chains."""
    X, y = problem
    options = {"alpha": 0.0, "batch_size": 240, "max_iter": 5}
    expected = small(**options).fit(X, y).components_
    model = small(**options).fit(Batches([part for part, _ in as_pairs(X, y)]), y)
    assert_allclose(model.components_, expected, atol=1e-9)


# Tables and labels.


def test_tables_with_words_and_gaps():
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[rng.integers(2, size=200)]
    city = np.where(rng.random(200) < 0.9, np.where(y == "yes", "Oslo", "Rome"), "Cairo")
    age = np.where(y == "yes", 30.0, 50.0) + 5 * rng.normal(size=200)
    X = pd.DataFrame({"city": city, "age": age, "member": rng.random(200) < 0.5})
    X.loc[::7, "age"] = np.nan
    X.loc[::9, "city"] = None
    model = small(visible={"age": "gaussian"}, max_iter=40).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.visible_names_.tolist() == [
        "city=Cairo", "city=Oslo", "city=Rome", "age", "member=True"
    ]  # fmt: skip
    assert list(model.sample(3, random_state=0, y="yes").columns) == list(X.columns)
    assert model.impute(X).notna().all().all()
    assert set(model.predict(X)) == {"no", "yes"}
    some = y.astype(object)
    some[::3] = None
    assert_array_equal(small(visible={"age": "gaussian"}).fit(X, some).classes_, ["no", "yes"])


def test_labels(problem):
    X, y = problem
    words = np.array(["a", "b", "c"])[y]
    expected = small().fit(X, y).components_
    for labels in (words, words.astype(object), y + 5, y.astype(float)):
        model = small().fit(X, labels)
        assert_array_equal(model.components_, expected)
        assert_array_equal(model.classes_, np.unique(labels))
    signs = np.where(y == 0, -1, 1)
    assert_array_equal(small().fit(X, signs).classes_, [-1, 1])
    minus, nan, none = y.copy(), y.astype(float), y.astype(object)
    minus[::4], nan[::4], none[::4] = -1, np.nan, None
    models = [small().fit(X, labels) for labels in (minus, nan, none)]
    for model in models:
        assert_array_equal(model.components_, models[0].components_)
        assert_array_equal(model.classes_, [0, 1, 2])
        assert model.classes_.dtype.kind == "i"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: None, "requires y to be passed"),
        (lambda y: 0 * y, "only one class, 0"),
        (lambda y: np.where(y == 2, 2, -1), "only one class, 2. If -1 is a class.* y == 2"),
        (lambda y: 0 * y - 1, "no row has a label"),
        (lambda y: y + 0.5 * np.arange(len(y)), "Unknown label type: continuous"),
        (lambda y: np.array(["a", 1, 2], dtype=object)[y], "labels of the types int and str"),
        (lambda y: y[:-1], "inconsistent numbers of samples"),
    ],
)
def test_labels_that_cannot_be(problem, labels, message):
    X, y = problem
    with pytest.raises(ValueError, match=message):
        small().fit(X, labels(y))


def test_values_that_cannot_be(problem):
    X, y = problem
    with pytest.raises(ValueError, match="column 2, but row 4 has the value 3"):
        bad = X.copy()
        bad[4, 2] = 3
        small().fit(bad, y)
    with pytest.raises(ValueError, match="have only one class, 1"):
        small().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(NotFittedError):
        small().predict(X)
    with pytest.warns(ConvergenceWarning, match="no better than by the frequencies"):
        rng = np.random.default_rng(0)
        small(max_iter=1, learning_rate=1e-6).fit(X, rng.integers(2, size=len(y)))


def test_it_is_tuned_by_its_accuracy(problem):
    X, y = problem
    search = GridSearchCV(small(), {"learning_rate": [1e-6, 0.03]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learning_rate": 0.03} and search.best_score_ > 0.85


def test_real_columns():
    for load in (load_iris, load_breast_cancer):
        X, y = load(return_X_y=True)
        model = RBMClassifier(50, visible="gaussian", n_jobs=1, random_state=0)
        assert cross_val_score(model, X, y, cv=3).mean() > 0.9


def test_gaussian_units_learn_their_precisions():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X = np.column_stack([2.0 * y + rng.normal(size=300), rng.normal(size=300)])
    model = small(visible="gaussian", alpha=1.0, max_iter=30).fit(X, y)
    assert isinstance(model._class_model().visible, Gaussian)
    assert (model.precision_visible_ > 0).all()
    assert model.precision_visible_[0] != 1
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("n_gibbs", [1, 3])
def test_generative_training_alone(problem, n_gibbs):
    X, y = problem
    model = small(alpha=np.inf, n_gibbs=n_gibbs, max_iter=60).fit(X, y)
    assert model.score(X, y) > 0.85


def test_sparse_hidden_units(problem):
    X, y = problem
    means = [small(sparsity=delta).fit(X, y).transform(X).mean() for delta in (0.0, 0.02)]
    assert means[1] < means[0] - 0.1


def test_weight_decay_and_sgd(problem):
    X, y = problem
    sizes = [np.abs(small(weight_decay=w).fit(X, y).components_).max() for w in (0.0, 0.1)]
    assert sizes[1] < sizes[0]
    model = small(optimizer="sgd", learning_rate=0.2, max_iter=60).fit(X, y)
    assert model.score(X, y) > 0.9


# scikit-learn's.

# Its data are real numbers, and its figures of weights are to be exact: no chains, one mini-batch.
CHECKED = [
    RBMClassifier(20, visible="gaussian", alpha=0.0, learning_rate=0.03, batch_size=100,
                  max_iter=60, early_stopping=False),
    RBMClassifier(10, binarize=100.0, alpha=0.0, batch_size=100, max_iter=5, early_stopping=False),
]  # fmt: skip


@parametrize_with_checks(CHECKED[:1])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_estimates_of_the_log_partition(problem):
    """Within 5 standard errors of the exact value, or 0.05."""
    model = small(alpha=0.1).fit(*problem)
    exact = model.log_partition()
    assert exact.method == "exact" and exact.value == model.log_partition_
    for method in ("ais", "ladder"):
        found = model.log_partition(method, random_state=0)
        assert abs(found.value - exact.value) < max(5 * found.std_err, 0.05), method
    with pytest.raises(ValueError, match="X must be None in a deep"):
        model.log_partition("raise", X=problem[0])


def test_a_large_machine_scores_missing_cells_and_modes(problem):
    X, y = problem
    model = small(n_components=30).fit(np.hstack([X, X, X]), y)
    rows = np.hstack([X, X, X])[:4].copy()
    rows[:, 1:5] = np.nan
    assert np.isfinite(model.score_samples(rows)).all()
    for how in ("mean", "mode", "sample"):
        filled = model.impute(rows, how=how, n_steps=50, random_state=0)
        assert np.isfinite(filled).all()
    assert model.transform(rows).shape == (4, 30)
