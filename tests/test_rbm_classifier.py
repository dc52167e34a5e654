"""RBMClassifier: exact probabilities, gradients, training, and what a user meets."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from contract.frames import memory_map
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score

from oracles_rbm import binary, slopes
from private import (
    ClassModel,
    Layered,
    Stream,
    Workers,
    _discriminative,
    _labelled_rows,
)
from sklearn_boltz import SDCPRBM, RBMClassifier
from sklearn_boltz.batches import Batches
from sklearn_boltz.units import Bernoulli, Categorical, Stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Means may differ by this many standard errors: a false alarm in 1.7 million figures.
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
    weights = [scale * rng.normal(size=(n_hidden, k)) for k in (5, n_classes)]
    hidden, bias = rng.normal(size=n_hidden), rng.normal(size=n_classes)
    layers = [visible, Bernoulli(hidden), Categorical([n_classes], bias)]
    return ClassModel.of(Layered([weights[0], weights[1].T], layers))


def arrays_of(model):
    """All parameters: weights, biases of the hidden units, and of features and label."""
    units = model.joint.visible.parameters().values()
    return [model.joint.weights.T, model.hidden.intercept, *units]


def every_row():
    return np.array([[*bits, *category] for bits in binary(2) for category in np.eye(3)])


def log_joint(model, V):
    """ln Σ_h p(x, y, h) for each class, except for ln Z, by enumeration of the hidden units."""
    H = binary(len(model.hidden))
    columns = []
    for label in np.eye(model.n_classes):
        rows = np.hstack([V, np.tile(label, (len(V), 1))])
        bias = np.concatenate(arrays_of(model)[2:])
        energy = -(rows @ model.joint.weights.T) @ H.T - (rows @ bias)[:, None]
        columns.append(logsumexp(-energy + H @ model.hidden.intercept, axis=1))
    return np.column_stack(columns)


# The model and its gradients.


def objective_of(model, V, codes, weights, generative):
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
        total += generative * weight * (of_row - log_z)
    return total / weights.sum()


def finite_differences(model, rows, generative):
    def objective():
        return objective_of(model, *rows, generative)

    return np.concatenate([slopes(objective, array).ravel() for array in arrays_of(model)])


def some_rows(n=12, seed=1, gaps=False):
    rng = np.random.default_rng(seed)
    V = every_row()[rng.integers(12, size=n)]
    if gaps:
        V[: n // 2, 0] = np.nan
        V[n // 3 : 2 * n // 3, 2:] = np.nan
    return V, rng.integers(-1, 3, size=n), rng.integers(1, 4, size=n) / 2.0


def one_gradient(model, rows, generative, seed=0, n_gibbs=1, gap_seed=None):
    codes, weights = rows.codes, rows.weights
    share = weights[codes >= 0].sum() / weights.sum()
    objective = _discriminative.ClassObjective(
        generative=generative, n_gibbs=n_gibbs, label_share=share
    )
    scale = 1 / weights.sum()  # weights of any mean
    found = _discriminative.gradient(
        model, rows, objective, scale, Stream(seed), gap_seed, Workers(1)
    )
    return np.concatenate(list(map(np.ravel, found)))


def test_the_discriminative_gradient_against_finite_differences():
    model, rows = a_model(), some_rows()
    expected = finite_differences(model, rows, 0.0)
    assert_allclose(
        one_gradient(model, _labelled_rows.LabelledRows(*rows), 0.0), expected, atol=1e-8
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_the_gradient_in_the_mean(gaps):
    """Chains of 12 transitions forget where they began: weights are small."""
    model, rows = a_model(scale=0.3), some_rows(gaps=gaps)
    expected, labelled = finite_differences(model, rows, 0.5), _labelled_rows.LabelledRows(*rows)
    draws = [
        one_gradient(model, labelled, 0.5, seed, 12, 1000 + seed if gaps else None)
        for seed in range(200)
    ]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(mean - expected) < SIGMAS * error + 1e-8).all()
    assert np.median(error) < 0.1 * np.abs(expected).max()  # so that it could fail


# A fitted machine, against sums over all states.


@pytest.fixture(scope="module")
def fitted(problem):
    return small(generative=0.1).fit(*problem)


EVERY = binary(8)


@pytest.fixture(scope="module")
def of_every(fitted):
    """ln of p(x, y), of all states and classes."""
    logs = log_joint(fitted._marginal(), EVERY)
    return logs - logsumexp(logs)


def test_the_density_is_normalised(fitted, of_every):
    log_p = fitted.score_samples(EVERY)
    assert_allclose(log_p, logsumexp(of_every, axis=1), atol=1e-6)
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-6)
    of_labels = [fitted.score_samples(EVERY, np.full(len(log_p), k)) for k in range(3)]
    assert_allclose(np.transpose(of_labels), of_every, atol=1e-6)
    without = fitted.score_samples(EVERY, np.full(len(log_p), -1))
    assert_allclose(without, log_p, atol=1e-6)
    assert fitted.entropy() == pytest.approx(-(np.exp(log_p) * log_p).sum(), abs=1e-6)


def test_predictions_agree(fitted, of_every, problem):
    log_p = fitted.predict_log_proba(EVERY)
    assert_allclose(log_p, log_softmax(of_every, axis=1), atol=1e-6)
    assert_allclose(fitted.predict_proba(EVERY).sum(axis=1), 1, atol=1e-12)
    assert_array_equal(fitted.predict(EVERY), log_p.argmax(axis=1))
    assert_array_equal(fitted.decision_function(EVERY), log_p)
    machine, means = fitted._marginal(), 0.0
    for k in range(3):
        hidden = machine.joint.mean_hidden(np.hstack([EVERY, np.tile(np.eye(3)[k], (256, 1))]))
        means = means + np.exp(log_p[:, [k]]) * hidden
    assert_allclose(fitted.transform(EVERY), means, atol=1e-6)
    two = small().fit(problem[0], problem[1] > 0)
    assert_array_equal(two.classes_, [False, True])
    odds = two.predict_log_proba(EVERY)
    assert_allclose(two.decision_function(EVERY), odds[:, 1] - odds[:, 0])


def test_missing_cells_are_summed_out(fitted, of_every, problem):
    X, labels = problem[0][:20].copy(), np.arange(20) % 3
    X[np.random.default_rng(0).random(X.shape) < 0.4] = np.nan
    X[0] = np.nan  # its label has a probability of its own
    agree = [(np.isnan(x) | (EVERY == x)).all(axis=1) for x in X]
    expected = np.array([logsumexp(of_every[agrees], axis=0) for agrees in agree])
    assert_allclose(fitted.predict_proba(X), softmax(expected, axis=1), atol=1e-6)
    assert_allclose(fitted.score_samples(X), logsumexp(expected, axis=1), atol=1e-6)
    of_labels = fitted.score_samples(X, labels)
    assert_allclose(of_labels, expected[np.arange(20), labels], atol=1e-6)
    filled, p = fitted.impute(X), np.exp(logsumexp(of_every, axis=1))
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    for agrees, found in zip(agree, filled, strict=True):
        assert_allclose(found, p[agrees] @ EVERY[agrees] / p[agrees].sum(), atol=1e-6)


def test_energy_and_log_partition(fitted, problem):
    """Estimates within 5 standard errors of the exact value, or 0.05."""
    X, machine = problem[0][:5], fitted._marginal()
    H = np.random.default_rng(0).integers(2, size=(5, 6)).astype(float)
    joint = [machine.joint.energy(np.hstack([X, np.tile(label, (5, 1))]), H) for label in np.eye(3)]
    assert_allclose(fitted.energy(X, H), -logsumexp(-np.array(joint), axis=0), atol=1e-6)
    exact = fitted.log_partition()
    assert exact.method == "exact" and exact.value == fitted.log_partition_
    for method in ("ais", "ladder"):
        found = fitted.log_partition(method, random_state=0)
        assert abs(found.value - exact.value) < max(5 * found.std_err, 0.05), method


def test_samples_of_a_class(fitted, of_every):
    """A false alarm in 1.7 million figures."""
    labels = np.arange(3000) % 3
    X = fitted.sample(3000, random_state=0, y=labels, n_steps=200)
    for k in range(3):
        p = softmax(of_every[:, k]) @ EVERY
        error = np.sqrt(p * (1 - p) / 1000)
        assert (np.abs(X[labels == k].mean(axis=0) - p) < SIGMAS * error).all()
    given = fitted.sample(10, random_state=0, y=2, given={4: 1})
    assert (given[:, 4] == 1).all()
    assert fitted.sample(4, random_state=0).shape == (4, 8)
    assert fitted.sample(4, random_state=0, init=X[:2], n_steps=2).shape == (4, 8)


# Training.


@pytest.mark.parametrize(
    ("options", "score"),
    [({"generative": 0.0}, 0.9), ({"generative": 0.1}, 0.9),
     ({"generative": np.inf, "n_gibbs": 3}, 0.85)],
)  # fmt: skip
def test_it_learns(problem, options, score):
    assert small(**{"max_iter": 60, **options}).fit(*problem).score(*problem) > score


@pytest.mark.parametrize(("scoring", "name"), [("neg_log_loss", "log_loss"), ("accuracy", "error")])
def test_early_stopping_keeps_the_best_epoch(problem, scoring, name, monkeypatch):
    short = RBMClassifier._schedule._replace(patience=(4, 1))
    monkeypatch.setattr(RBMClassifier, "_schedule", short)
    X, y = problem
    model = small(early_stopping=True, scoring=scoring, max_iter=200, generative=0.0).fit(X, y)
    path = model.history_[f"validation_{name}"]
    assert model.n_iter_ < 200 and len(path) == model.n_iter_
    valid = _labelled_rows.stratified(y, 0.1, model._training.evaluation_seed)[1]
    log_p = model.predict_log_proba(X[valid])
    best = path[model._training.best["epoch"] - 1]
    found = (log_p.argmax(axis=1) != y[valid]).mean()
    if name == "log_loss":
        found = -log_p[np.arange(len(valid)), y[valid]].mean()
    assert found == pytest.approx(best, abs=1e-9)
    assert best <= path.min() + model.tol
    assert model.n_iter_ == model._training.best["waiting_since"] + 4
    assert model.set_params(tol=1e3).fit(X, y)._training.best["epoch"] == 1


@pytest.mark.parametrize("stops", [False, True])
def test_early_stopping_auto_needs_labels(problem, stops):
    """Rows are set aside from a number of labels on, whatever the container."""
    X, y = problem
    few, n_labels = np.full(len(y), -1), _labelled_rows.ENOUGH_LABELS - (not stops)
    labelled = np.random.default_rng(0).permutation(len(y))[:n_labels]
    few[labelled] = y[labelled]
    model, same = (
        small(early_stopping=choice, max_iter=5).fit(X, few) for choice in ("auto", stops)
    )
    assert model.do_early_stopping_ is same.do_early_stopping_ is stops
    assert ("validation_log_loss" in model.history_) == stops
    assert_array_equal(model.components_, same.components_)
    batches = small(early_stopping="auto", max_iter=5).fit(Batches(as_pairs(X, few)))
    assert batches.do_early_stopping_ is stops
    small(early_stopping="auto").partial_fit(X, y, classes=[0, 1, 2])


def test_a_stratified_part():
    codes = np.array([0] * 50 + [1] * 20 + [2] * 3 + [3] + [-1] * 30)
    train, valid = _labelled_rows.stratified(codes, 0.1, 0)
    assert_array_equal(np.sort(np.append(train, valid)), np.arange(len(codes)))
    assert_array_equal(np.bincount(codes[valid], minlength=4), [5, 2, 0, 0])
    assert len(_labelled_rows.stratified(codes, 0, 0)[1]) == 0
    # The only row of a class stays, though its remainder is the largest.
    train, valid = _labelled_rows.stratified(np.repeat([0, 1], [11, 1]), 0.38, 0)
    assert len(valid) == 5 and 11 in train


def test_sparsity_and_penalty(problem):
    X, y = problem
    means = [small(sparsity=delta).fit(X, y).transform(X).mean() for delta in (0.0, 0.02)]
    assert means[1] < means[0] - 0.1
    sizes = [np.abs(small(alpha=w).fit(X, y).components_).max() for w in (0.0, 0.1)]
    assert sizes[1] < sizes[0]


def test_weights_of_classes_are_weights_of_rows(problem):
    X, y = problem
    expected = small().fit(X, y, sample_weight=np.array([1.0, 3.0, 1.0])[y])
    model = small(class_weight={1: 3.0}).fit(X, y)
    assert_array_equal(model.components_, expected.components_)
    factors = len(y) / (3 * np.bincount(y))
    balanced = small(class_weight="balanced").fit(X, y)
    expected = small().fit(X, y, sample_weight=factors[y])
    assert_allclose(balanced.components_, expected.components_, atol=1e-9)


# Where training begins, and how it goes on.


def test_init(problem):
    X, y = problem
    machine = SDCPRBM(6, max_iter=5, random_state=0)
    fitted = clone(machine).fit(X)
    start = small(init=fitted, max_iter=0).fit(X, y)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        assert_array_equal(getattr(start, name), getattr(fitted, name))
    assert start.init_ is fitted
    for init in (machine, FrozenEstimator(fitted)):
        begun = clone(small(init=init, max_iter=0)).fit(X, y)
        assert_array_equal(begun.components_, fitted.components_)
    assert not hasattr(machine, "components_")
    assert small(init=fitted).fit(X, y).score(X, y) > 0.9
    assert cross_val_score(small(init=machine), X, y, cv=3).min() > 0.8


def test_partial_fit(problem):
    X, y = problem
    model = small()
    for _ in range(30):
        for rows in np.array_split(np.arange(len(y)), 10):
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert model.score(X, y) > 0.9
    assert_array_equal(small().partial_fit(X, y, [2, 1, 0]).classes_, [0, 1, 2])
    one = small().partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2])
    assert_array_equal(one.classes_, [0, 1, 2])
    fresh = small()
    with pytest.raises(ValueError, match="label 7"):
        fresh.partial_fit(X, np.full(len(y), 7), classes=[0, 1, 2])
    assert not hasattr(fresh, "classes_")


# Batches.


def as_pairs(X, y, n=4):
    return [(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), n)]


def test_batches(problem, tmp_path):
    X, y = problem
    pairs, short = as_pairs(X, y), {"max_iter": 5}
    assert small().fit(Batches(pairs)).score(X, y) > 0.9
    assert small().fit(Batches(lambda: iter(pairs))).score(X, y) > 0.9
    listed, paired = (
        small(**short).fit(Batches([part for part, _ in pairs]), y),
        small(**short).fit(Batches(pairs)),
    )
    assert_array_equal(paired.components_, listed.components_)
    mapped = small(**short).fit(memory_map(X, tmp_path), y)
    assert_allclose(mapped.components_, small(**short).fit(X, y).components_, atol=1e-9)
    few = small(early_stopping=True, **short).fit(Batches(as_pairs(X, np.where(y == 2, -1, y))))
    assert_array_equal(few.classes_, [0, 1])
    weighted = small().fit(Batches(pairs), sample_weight=np.where(y == 2, 0.0, 1.0))
    assert weighted.predict_proba(X)[:, 2].max() < 0.5


# Tables and labels.


@pytest.mark.parametrize("kind", ["numbers", "words in a list", "real", "numbers in objects"])
def test_rows_without_a_label(problem, kind):
    """They are trained on, and the score leaves them out."""
    X, y = problem
    some, weights = np.arange(len(y)) % 3 > 0, np.arange(len(y), dtype=float)
    labels, absent = {
        "numbers": (y, -1),
        "words in a list": (np.array(list("abc"), object)[y], np.nan),
        "real": (y.astype(float), np.nan),
        "numbers in objects": (y.astype(object), None),
    }[kind]
    holes = np.where(some, labels, absent)
    holes = holes.tolist() if kind == "words in a list" else holes
    model = small(max_iter=10).fit(X, holes)
    same = small(max_iter=10).fit(X, np.where(some, y, -1))
    assert_array_equal(model.components_, same.components_)
    assert_array_equal(model.classes_, list("abc") if "words" in kind else [0, 1, 2])
    assert model.classes_.dtype.kind == ("O" if "words" in kind else "i")
    expected = np.mean(model.predict(X[some]) == labels[some])
    assert model.score(X, holes) == pytest.approx(expected)
    assert model.score(sp.csr_array(X), pd.Series(holes)) == pytest.approx(expected)
    expected = model.score(X[some], labels[some], weights[some])
    assert model.score(X, holes, sample_weight=weights) == pytest.approx(expected)


def test_labels_that_the_rows_do_not_tell(problem):
    labels = np.random.default_rng(0).integers(2, size=240)
    with pytest.warns(ConvergenceWarning, match="no better than by the frequencies"):
        small(max_iter=1, learning_rate=1e-6).fit(problem[0], labels)


def test_missing_cells_by_chains_are_near_and_depend_on_the_row_alone(problem):
    """Means over 500 draws, of which many are alike: within 0.15."""
    X, y = problem
    model = small(n_components=30, max_iter=10).fit(np.hstack([X, X]), y)
    rows = np.hstack([X, X])[:6].copy()
    rows[:, 3:15] = np.nan
    found, machine = model.predict_proba(rows), model._marginal()
    for k, x in enumerate(rows):
        assert_allclose(model.predict_proba(rows[[k]])[0], found[k], rtol=1e-6)
        filled = np.tile(x, (2**12, 1))
        filled[:, 3:15] = binary(12)
        logs = machine.class_log_weights(machine.hidden_field(filled))
        logs = logs + machine.visible.log_weight(filled)[:, None]
        assert_allclose(found[k], softmax(logsumexp(logs, axis=0)), atol=0.15)
    rows[:, 5:15] = np.hstack([X, X])[:6, 5:15]
    assert np.isfinite(model.score_samples(rows)).all() and model.transform(rows).shape == (6, 30)
    for how in ("mean", "mode", "sample"):
        assert np.isfinite(model.impute(rows, how=how, n_steps=50, random_state=0)).all()
