"""BoltzmannClassifier: Bayes' rule over densities of any table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.neighbors import KernelDensity

from private import calibrate
from sklearn_boltz import SDCPRBM, BoltzmannClassifier, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches


def discrete_rows(n=400, seed=0):
    """Rows of values 0 to 2 of three columns that two classes couple in other ways."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.integers(3, size=(n, 3))
    X[:, 1] = np.where(rng.random(n) < 0.7, np.where(y == 1, X[:, 0], 2 - X[:, 0]), X[:, 1])
    return X, y


STATES = np.indices((3, 3, 3)).reshape(3, -1).T


@pytest.mark.parametrize("priors", [None, [0.9, 0.1]])
def test_bayes_rule_of_enumerated_densities(priors):
    X, y = discrete_rows()
    model = BoltzmannClassifier(FSLLDensity(alpha=0.1), priors=priors).fit(X, y)
    by_hand = [FSLLDensity(alpha=0.1, columns=range(3)).fit(X[y == c]) for c in (0, 1)]
    p = np.array([np.exp(density.score_samples(STATES)) for density in by_hand])
    assert_allclose(p.sum(axis=1), 1)  # all states there are
    prior = np.array([np.mean(y == 0), np.mean(y == 1)] if priors is None else priors)
    joint = prior[:, None] * p
    assert_allclose(model.predict_proba(STATES), (joint / joint.sum(axis=0)).T, rtol=1e-8)
    assert_allclose(model.predict_log_proba(STATES), np.log(joint / joint.sum(axis=0)).T, rtol=1e-6)
    # Of a seen value; another one has the rest.
    seen = np.log(len(X) / (len(X) + 1))
    assert_allclose(model.score_samples(STATES), np.log(joint.sum(axis=0)) + 3 * seen, rtol=1e-8)
    assert_array_equal(model.predict(STATES), joint.argmax(axis=0))
    # Missing cells are summed out.
    summed = joint[:, (STATES[:, 0] == 1) & (STATES[:, 2] == 2)].sum(axis=1)
    gap = np.array([[1, np.nan, 2]])
    assert_allclose(model.predict_proba(gap)[0], summed / summed.sum(), rtol=1e-8)
    assert_allclose(model.score_samples(gap)[0], np.log(summed.sum()) + 2 * seen, rtol=1e-8)


@pytest.mark.parametrize("priors", [None, [0.8, 0.15, 0.05]])
@pytest.mark.parametrize("density", [FSLLDensity(alpha=0.1), FVBMPseudoLikelihood(alpha=0.01)])
def test_bayes_rule_of_the_joint_density(density, priors):
    rng = np.random.default_rng(0)
    X, _ = discrete_rows()
    y = np.where(rng.random(len(X)) < 0.6, X[:, 2], rng.integers(3, size=len(X)))
    model = BoltzmannClassifier(density, joint=True, priors=priors).fit(X, y)
    by_hand = clone(density).set_params(columns=range(3)).fit(np.column_stack([X, y]))
    joint = np.column_stack([
        by_hand.score_samples(np.column_stack([STATES, np.full(27, c)])) for c in range(3)
    ])  # fmt: skip
    if priors is not None:
        joint += np.log(priors) - np.log(np.bincount(y) / len(y))
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(STATES), expected, rtol=1e-6)
    seen = np.log(len(X) / (len(X) + 1))
    assert_allclose(model.score_samples(STATES), logsumexp(joint, axis=1) + 3 * seen, rtol=1e-6)


@pytest.mark.parametrize("joint", [True, False])
def test_rows_unlike_any_class_are_told(joint):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 3)) + 5 * y[:, None]
    model = BoltzmannClassifier(joint=joint).fit(X, y)
    assert model.score_samples(np.full((1, 3), 30.0)) < model.score_samples(X).min()


def test_other_densities():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 50)
    X = rng.normal(size=(100, 2)) + 3 * (y == "b")[:, None]
    assert BoltzmannClassifier(KernelDensity()).fit(X, y).score(X, y) > 0.95
    for joint in (True, False):
        rbm = SDCPRBM(4, max_iter=40, learning_rate=0.3, random_state=0)
        model = BoltzmannClassifier(rbm, joint=joint).fit(X, y)
        assert model.score(X, y) > 0.9


class WithWrongConstants(FSLLDensity):
    """ln Z is an estimate, and too low by 20 nats for one class."""

    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.error_ = 20.0 * (np.asarray(X)[:, 0].mean() > 0.5)
        return self

    def score_samples(self, X):
        return super().score_samples(X) + self.error_

    def log_partition(self, method="auto", random_state=None):
        found = super().log_partition()
        found.update(method="ais", std_err=5.0)
        return found


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_calibration_recovers_offsets_and_the_factor(scale):
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=(20_000, 3))
    offsets, log_priors = np.array([2.0, -1.0, -1.0]), np.log([0.2, 0.3, 0.5])
    p = np.exp(log_priors + scale * scores + offsets)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    found, factor = calibrate(scores, y, None, log_priors)
    # Standard errors of about 0.03, and 0.007 of the factor.
    assert_allclose(found, offsets, atol=0.15)
    assert factor == pytest.approx(scale, abs=0.04)


def test_offsets_make_wrong_constants_right():
    X, y = discrete_rows(1000)
    X[:, 0] = np.minimum(X[:, 0], 1 - (np.arange(1000) % 3 == 0))  # more zeros
    X[y == 1, 0] = np.maximum(X[y == 1, 0], np.arange((y == 1).sum()) % 2)
    rows, test = slice(0, 700), slice(700, None)
    raw = BoltzmannClassifier(WithWrongConstants(), calibration=False).fit(X[rows], y[rows])
    model = BoltzmannClassifier(WithWrongConstants(), random_state=0).fit(X[rows], y[rows])
    exact = BoltzmannClassifier(FSLLDensity()).fit(X[rows], y[rows])
    assert_array_equal(raw.offsets_, 0)
    assert raw.scale_ == 1
    losses = [log_loss(y[test], one.predict_proba(X[test])) for one in (raw, model, exact)]
    assert losses[0] > 3 and losses[1] < losses[2] + 0.1
    assert_array_equal(exact.offsets_, 0)  # ln Z is exact, and no row is held out
    assert exact.scale_ == 1


def test_priors_by_the_names_of_the_classes(animals):
    table, _, y = animals
    by_name = {"mammal": 0.7, "bird": 0.2, "fish": 0.1}
    model = BoltzmannClassifier(priors=by_name).fit(table, y)
    assert_array_equal(model.priors_, [0.2, 0.1, 0.7])
    other = BoltzmannClassifier(priors=[0.2, 0.1, 0.7]).fit(table, y)
    assert_array_equal(model.predict_proba(table), other.predict_proba(table))
    zero = BoltzmannClassifier(priors=[0.5, 0.5, 0]).fit(table, y)
    assert (zero.predict_proba(table)[:, 2] == 0).all()


@pytest.mark.parametrize("density", [None, FVBMPseudoLikelihood(alpha=0.1)])
def test_a_joint_density_of_a_class_without_a_value(animals, density):
    table, _, y = animals
    gaps = table.drop(columns="weight").assign(eggs=table["eggs"].mask(y == "fish"))
    assert BoltzmannClassifier(density, joint=True).fit(gaps, y).score(gaps, y) > 0.8


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, "array"])
def test_a_fitted_density_of_columns_and_class(convert):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    frame = pd.DataFrame({
        "a": np.where(rng.random(300) < 0.8, kind, 0), "b": rng.integers(2, size=300),
        "kind": kind if convert == "array" else np.array(["p", "q", "r"])[kind],
    })  # fmt: skip
    convert = pd.DataFrame.to_numpy if convert == "array" else convert
    density = FVBMPseudoLikelihood().fit(convert(frame))
    X, y = convert(frame[["a", "b"]]), frame["kind"]
    model = BoltzmannClassifier(FrozenEstimator(density)).fit(X, y)
    assert model.estimators_ == [density]
    expected = density.predict_column_proba(convert(frame), 2)
    assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    joint = [density.score_samples(convert(frame.assign(kind=c))) for c in model.classes_]
    assert_allclose(model.score_samples(X), logsumexp(joint, axis=0), atol=1e-9)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, "array"])
@pytest.mark.parametrize("are_pairs", [False, True])
def test_batches_are_classified_as_their_table(convert, are_pairs):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    frame = pd.DataFrame({
        "class": np.where(rng.random(300) < 0.8, kind, 0), "b": rng.integers(2, size=300),
    })  # fmt: skip
    y = kind if convert == "array" else np.array(["p", "q", "r"])[kind]
    convert = pd.DataFrame.to_numpy if convert == "array" else convert
    parts = [(convert(frame[:120]), y[:120]), (convert(frame[120:]), y[120:])]
    X = Batches(parts if are_pairs else [rows for rows, _ in parts])
    whole = convert(frame)
    for model in (BoltzmannClassifier(), BoltzmannClassifier(joint=False, calibration=True)):
        model = model.set_params(random_state=0).fit(X, None if are_pairs else y)
        expected = clone(model).fit(whole, y)
        assert_array_equal(model.predict_proba(whole), expected.predict_proba(whole))
        assert_array_equal(model.classes_, expected.classes_)


def test_labels_of_a_part_of_the_batches():
    with pytest.raises(ValueError, match="y has 7 labels, and the batches have 8 rows"):
        BoltzmannClassifier().fit(Batches([np.eye(4), np.eye(4)]), [0, 1, 1, 0, 1, 0, 1])


def test_an_rbm_knows_probabilities_codes_and_other_numbers_by_their_range():
    columns = [0.25, 1], [0, 1], range(21), [0, 1.5], [-0.5, 0.2, 1]
    X = np.column_stack([np.resize(cells, 60) for cells in columns])
    model = BoltzmannClassifier(SDCPRBM(2, max_iter=1)).fit(X, np.arange(60) // 30)
    found = model.estimators_[0].columns
    assert found == ["probability", "probability", list(range(21)), "gaussian", "gaussian"]
