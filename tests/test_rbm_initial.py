"""Trainings that begin at another model: its distribution is the initial one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator

from sklearn_boltz import SDCPRBM, TAPRBM, FVBMPseudoLikelihood, InfiniteRBM, RBMClassifier
from sklearn_boltz.batches import Batches

UNTRAINED = {"max_iter": 0, "random_state": 0, "track_likelihood": False}


@pytest.fixture(autouse=True)
def no_weights_beyond_the_model(monkeypatch):
    """Units beyond those of the initial model change nothing, so that likelihoods are equal."""
    monkeypatch.setattr("sklearn_boltz.restricted._mini_batches.SMALL_WEIGHTS", 0.0)


def bits(n_rows=300, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n_rows, n_features)).astype(float)
    X[:, 1] = np.abs(X[:, 0] - (rng.random(n_rows) < 0.1))
    X[:, 3] = 1 - np.abs(X[:, 2] - (rng.random(n_rows) < 0.2))
    return X


def table(n_rows=300, seed=0):
    """Bits, two words, three words and a constant column."""
    rng, X = np.random.default_rng(seed), bits(n_rows, 4, seed)
    frame = pd.DataFrame(X.astype(int), columns=list("abcd"))
    frame["town"] = np.where(X[:, 0] > 0, "Rome", rng.choice(["Oslo", "Rome", "Cairo"], n_rows))
    frame["answer"] = np.where(X[:, 3] == (rng.random(n_rows) < 0.8), "no", "yes")
    return frame.assign(always=1)


@pytest.fixture(scope="module")
def network():
    return FVBMPseudoLikelihood(alpha=0.01).fit(bits())


@pytest.mark.parametrize("X", [bits(), table()], ids=["bits", "table"])
def test_a_network_is_where_the_training_begins(X):
    network = FVBMPseudoLikelihood(alpha=0.01).fit(X)
    d = len(network.coupling_)
    model = SDCPRBM(d * d, init=network, **UNTRAINED).fit(X)
    rtol = 1e-6 if isinstance(X, pd.DataFrame) else 1e-10  # a frame of integers is float32
    assert_allclose(model.score_samples(X), network.score_samples(X), rtol=rtol)
    assert model.init_ is network
    # Trained, it is no worse; and a network that is not fitted is fitted first.
    options = {"max_iter": 10, "learning_rate": 0.01, "random_state": 0, "track_likelihood": False}
    trained = SDCPRBM(d * d, init=FVBMPseudoLikelihood(alpha=0.01), **options).fit(X)
    assert trained.score(X) > network.score(X) - 0.02
    assert_allclose(trained.init_.coupling_, network.coupling_)
    assert not hasattr(trained.init, "coupling_")


@pytest.mark.parametrize("columns", ["nominal", {1: "nominal"}], ids=str)
def test_a_network_of_bits_begins_units_of_categories(columns):
    X = bits()
    network = FVBMPseudoLikelihood(alpha=0.01).fit(X)
    d = 2 * len(network.coupling_)
    model = SDCPRBM(d * d, init=network, columns=columns, unseen="missing", **UNTRAINED).fit(X)
    assert_allclose(model.score_samples(X), network.score_samples(X), rtol=1e-10)
    grown = InfiniteRBM(2, init=network, columns=columns, n_model_samples=16, random_state=0)
    assert np.isfinite(grown.fit(X).score_samples(X)).all()


@pytest.mark.parametrize("kind", [SDCPRBM, TAPRBM])
@pytest.mark.parametrize("n_units", [5, 8])
def test_an_rbm_is_where_the_training_begins(kind, n_units):
    X = table()
    first = kind(5, max_iter=5, track_likelihood=False, random_state=0).fit(X)
    model = SDCPRBM(n_units, init=FrozenEstimator(first), **UNTRAINED).fit(X)
    assert_allclose(model.score_samples(X), first.score_samples(X), rtol=1e-5)
    assert_array_equal(model.components_[:5], first.components_)
    assert_array_equal(model.components_[5:], 0)


def test_real_columns_of_another_scale():
    """An RBM of other rows has other means and deviations; the density stays."""
    rng = np.random.default_rng(0)
    one = pd.DataFrame({"a": rng.normal(5, 3, 400), "b": rng.choice(["x", "y"], 400)})
    two = pd.DataFrame({"a": rng.normal(-1, 0.5, 400), "b": rng.choice(["x", "y"], 400)})
    first = SDCPRBM(4, columns={"a": "gaussian"}, max_iter=5, random_state=0).fit(one)
    model = SDCPRBM(4, columns={"a": "gaussian"}, init=first, **UNTRAINED).fit(two)
    assert_allclose(model.score_samples(one), first.score_samples(one), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:The labels of the training rows are predicted no better")
def test_other_ways_to_begin_at_a_network(network):
    """Batches, calls of partial_fit, a classifier; and the hidden offsets are the means."""
    X = bits()
    model = SDCPRBM(15, init=network, **UNTRAINED).fit(X)
    means = model._model().mean_hidden(X.mean(axis=0)[np.newaxis])[0]
    assert_allclose(model._training.learner.hidden_offset, means)
    batches = SDCPRBM(15, init=network, **UNTRAINED).fit(Batches([X[:100], X[100:]]))
    assert_allclose(batches.score(X), network.score(X))
    classifier = RBMClassifier(15, init=network, max_iter=1, learning_rate=1e-9, random_state=0)
    classifier.fit(X, X[:, 0])
    assert_allclose(classifier.components_, model.components_, atol=1e-6)
    one = SDCPRBM(15, init=network, learning_rate=1e-9, random_state=0)
    assert_allclose(one.partial_fit(X).score(X), network.score(X), rtol=1e-5)
    # Later fits go on from where the last one ended.
    one.set_params(warm_start=True, max_iter=1, learning_rate=0.5).fit(X)
    assert abs(one.score(X) - network.score(X)) > 1e-4
