"""InfiniteRBM: Frank–Wolfe against enumeration, and what an estimator must do."""

import warnings
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from oracles_rbm import SmallRBM, binary, random_rbm
from private import SGD, Stream, Workers, _coded_rows, _frank_wolfe
from private import SDCPScheme as Scheme
from sklearn_boltz.datasets import make_bars_and_stripes, make_shifting_bar
from sklearn_boltz.restricted import SDCPRBM, InfiniteRBM
from sklearn_boltz.units import Bernoulli

WORKERS = Workers(1)


BITS = np.random.default_rng(0).random((130, 12)) < 0.3
BITS[:, 1] = BITS[:, 0]
BITS[:, 5] = BITS[:, 2]


@pytest.fixture
def X():
    """12 features: more states than model samples, so that the law is sampled."""
    return BITS.astype(float)


def fitted(X, **kwargs):
    parameters = dict(
        max_components=4, early_stopping=False, n_model_samples=500, alpha=0.01, random_state=0
    )
    return InfiniteRBM(**parameters | kwargs).fit(X)


def learner_of(W, b, c, offset=None):
    b = np.asarray(b, dtype=float)
    return _frank_wolfe.GrowingLearner(
        W.copy(), Bernoulli(b.copy()), Bernoulli(np.array(c, dtype=float)),
        np.zeros(len(b)) if offset is None else offset, Scheme(), SGD(), Stream(1),
    )  # fmt: skip


def without_units(b):
    """A learner that has nothing but the biases of the visible units."""
    return learner_of(np.zeros((1, len(b))), b, [0.0], np.array(b, dtype=float))


@pytest.fixture
def rbm():
    return random_rbm(6, 3, scale=0.7)


@pytest.fixture
def learner(rbm):
    return learner_of(rbm.W, rbm.b, rbm.c)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    return _frank_wolfe.Sample(binary(6), rng.dirichlet(np.full(64, 0.3)))


def log_likelihood(learner, data):
    return data.probability @ np.log(SmallRBM(*learner.parameters()).p)


# The mathematics.


@pytest.mark.parametrize("centered", [False, True])
def test_linearised_objective_is_the_functional_gradient(rbm, learner, data, centered):
    """Its negative is the derivative of the log-likelihood by how often a unit counts.

    Centred, the visible biases take back the mean pushes of the unit.
    """
    law, unit = _frank_wolfe.Enumeration.of(learner), np.random.default_rng(2).normal(size=7)
    field, args = rbm.V @ unit[:-1] + unit[-1], ()
    added = np.logaddexp(0, field)
    if centered:
        args = (np.append(data.visible_mean() - law.visible_mean(), 0),)
        added = added - data.mean(expit(field)) * rbm.V @ unit[:-1]

    def with_count(c):
        log_p = -rbm.free_energy() + c * added
        return data.probability @ (log_p - logsumexp(log_p))

    slope = (with_count(1e-4) - with_count(-1e-4)) / 2e-4
    objective, gradient = _frank_wolfe.linearised_objective(unit, data, law, 0.3, *args)
    assert objective - 0.15 * unit @ unit == pytest.approx(-slope, abs=1e-7)
    numeric = approx_fprime(
        unit, lambda u: _frank_wolfe.linearised_objective(u, data, law, 0.3, *args)[0], 1e-7
    )
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    assert _frank_wolfe.linearised_objective(0 * unit, data, law, 0.3, *args)[0] == pytest.approx(0)


@pytest.mark.parametrize("centered", [True, False])
def test_the_gain_of_an_insertion_is_exact(learner, data, centered):
    law, unit = _frank_wolfe.Enumeration.of(learner), np.random.default_rng(2).normal(size=7)
    fields = data.field(unit), law.field(unit)
    before = log_likelihood(learner, data)
    for change in _frank_wolfe.rescaled(
        unit, fields, [0.0, 0.5, 2.0], data, law, centered=centered
    ):
        after = deepcopy(learner)
        after.insert(unit, change.scale, change.shift)
        assert log_likelihood(after, data) - before == pytest.approx(change.gain, abs=1e-12)
        push = data.probability @ expit(change.scale * fields[0]) * change.scale
        assert change.shift == pytest.approx(push * centered)


def test_the_log_likelihood_never_falls_by_an_insertion(data):
    """With the exact law: neither by the insertion, nor by the steps of the biases after it."""
    learner, rng = without_units(np.zeros(6)), np.random.default_rng(0)
    law, path = _frank_wolfe.Enumeration.of(learner), [log_likelihood(learner, data)]
    for n_units in range(1, 9):
        change = _frank_wolfe.find_unit(data, data, law, 0.003, rng)
        learner.insert(change.unit, change.scale, change.shift)
        assert learner.n_units == n_units
        law.follow(learner, 0, WORKERS)
        path.append(log_likelihood(learner, data))
        assert change.gain > 0
        assert path[-1] - path[-2] == pytest.approx(change.gain, abs=1e-9)
        _frank_wolfe.match_means(learner, law, data, 0.3, WORKERS)
        path.append(log_likelihood(learner, data))
    assert (np.diff(path) >= -1e-12).all()
    entropy = data.probability @ np.log(data.probability)
    assert path[-1] > path[0] + 0.5 * (entropy - path[0])


def test_bias_steps_match_the_means(rbm, learner, data):
    law, target = _frank_wolfe.Enumeration.of(learner), data.visible_mean()
    n_steps = _frank_wolfe.match_means(learner, law, data, 0.5, WORKERS)
    assert n_steps < _frank_wolfe.MOST_BIAS_STEPS
    np.testing.assert_allclose(SmallRBM(*learner.parameters()).p @ rbm.V, target, atol=3e-3)


# The estimator.


def test_learns_bars_and_stripes():
    """9 pixels are enumerated: the log-likelihood rises with every unit."""
    X = make_bars_and_stripes(3)
    model = InfiniteRBM(16, mode="safeguarded", early_stopping=False, random_state=0).fit(X)
    path = model.history_["log_likelihood"]
    assert (np.diff(path) > 0).all()
    assert path[0] == pytest.approx(-6.238, abs=0.01)
    # Of eight seeds the lowest reached -3.19.
    assert -3.3 < model.score(X) < -2.599
    assert model.score(X) == pytest.approx(path[-1])
    assert model.n_components_ == len(model.components_) == model.n_iter_ == 16
    corrected = InfiniteRBM(16, early_stopping=False, random_state=0)
    assert corrected.fit(X).score(X) > model.score(X)


def test_samples_do_about_as_well_as_enumeration(X):
    model = fitted(X, n_model_samples=1000)
    path = model.history_["log_likelihood"]
    assert path[-1] > path[0] + 0.7  # two pairs of equal columns: 1.2 nats at best
    assert model.score(X) == pytest.approx(path[-1], rel=1e-5)


def test_early_stopping_returns_to_the_best_number_of_units():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 10)) < 0.5).astype(float)  # nothing to learn: it overfits
    X[:, 1] = X[:, 0]
    model = InfiniteRBM(50, alpha=0.001, early_stopping=0.5, random_state=0).fit(X)  # fmt: skip
    path = model.history_["validation_log_likelihood"]
    best = np.argmax(path)
    assert len(path) == best + 11 < 40
    assert model.n_components_ == max(1, model.history_["n_components"][best])
    order = np.random.default_rng(model._training.evaluation_seed).permutation(60)
    assert model.score(X[order[:30]]) == pytest.approx(path.max())
    assert model.history_["free_energy_gap"][-1] > model.history_["free_energy_gap"][best]


def test_nothing_to_gain_leaves_a_neutral_unit():
    X = np.tile(binary(4), (3, 1))
    model = InfiniteRBM(5, early_stopping=False, random_state=0).fit(X)
    assert model.n_components_ == 1 and model.n_iter_ == 0
    assert not model.components_.any()
    assert model.score(X) == pytest.approx(-4 * np.log(2))
    assert model.transform(X).shape == (48, 1)


def test_a_penalty_does_not_keep_every_unit_out():
    """One-hot rows: from small weights there is a way if alpha is below a quarter of 1/81."""
    X = make_shifting_bar(9).astype(float)
    excess = np.cov(X.T, bias=True) - np.diag(np.full(9, 8 / 81))  # independent features
    assert np.linalg.eigvalsh(excess).max() == pytest.approx(1 / 81)
    model = InfiniteRBM(8, early_stopping=False, random_state=0).fit(X)
    path = model.history_["log_likelihood"]
    assert path[0] == pytest.approx(8 * np.log(8 / 9) - np.log(9), abs=0.01)
    assert model.n_components_ == 8 and path[-1] > path[0] + 0.1


def test_the_plain_algorithm_rises_if_the_penalty_is_large_enough():
    """9 pixels are enumerated, so that it is the algorithm as published, without noise."""
    X = make_bars_and_stripes(3)
    model = InfiniteRBM(7, mode="plain", alpha=0.02, early_stopping=False, random_state=0).fit(X)
    path = model.history_["log_likelihood"]
    assert (np.diff(path) > 0.1).all() and path[-1] > -4.4
    p = np.exp(model.score_samples(binary(9)))
    assert p.sum() == pytest.approx(1)
    np.testing.assert_allclose(p @ binary(9), X.mean(axis=0), atol=4e-3)


def test_the_plain_algorithm_falls_with_a_small_penalty_and_says_so():
    rng = np.random.default_rng(0)
    prototypes = rng.random((5, 40)) < 0.5
    X = (prototypes[rng.integers(5, size=300)] ^ (rng.random((300, 40)) < 0.05)).astype(float)
    parameters = dict(alpha=0.001, early_stopping=False, n_model_samples=300, random_state=0)
    with pytest.warns(ConvergenceWarning, match="safeguarded"):
        InfiniteRBM(8, mode="plain", **parameters).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = InfiniteRBM(8, **parameters).fit(X)
    path = model.history_["log_likelihood"]
    assert path[-1] > path[0] + 8


def test_goes_on_from_a_fitted_rbm(X):
    start = SDCPRBM(2, max_iter=5, random_state=0).fit(X)
    model = fitted(X, init=start, mode="safeguarded")
    np.testing.assert_array_equal(model.components_[:2], start.components_)
    assert model.history_["n_components"][0] == 2
    assert model.n_components_ > 2
    frozen = clone(InfiniteRBM(init=FrozenEstimator(start)))
    assert fitted(X, init=frozen.init, mode="safeguarded").score(X) == model.score(X)
    unfitted = fitted(X, init=clone(start), mode="safeguarded")
    np.testing.assert_array_equal(unfitted.init_.components_, start.components_)
    assert unfitted.score(X) == model.score(X)


def test_a_fit_that_goes_on_keeps_the_model_before_if_no_other_is_better():
    X = (np.random.default_rng(2).random((60, 6)) < 0.5).astype(float)
    X[:, 1] = X[:, 0]
    model = InfiniteRBM(25, warm_start=True, early_stopping=0.3, tol=0, random_state=2).fit(X)
    before, n_units = model.components_.copy(), model.n_components_
    assert model.n_iter_ > n_units  # some were taken back
    path = model.history_["validation_log_likelihood"]
    kept = path[n_units]
    assert kept == path.max()
    model.set_params(max_components=n_units + 3).fit(X)
    later = model.history_["validation_log_likelihood"][len(path) :]
    assert len(later) == 3
    assert (model.n_components_ > n_units) == (later.max() > kept)
    if later.max() <= kept:
        np.testing.assert_array_equal(model.components_, before)


def test_sampled_gain_against_the_exact_one(rbm, learner, data):
    """Chains that have the law estimate the gain within five standard errors."""
    rng, n, exact = np.random.default_rng(3), 20_000, _frank_wolfe.Enumeration.of(learner)
    unit = rng.normal(size=7)
    chains = _frank_wolfe.ChainSample(rbm.V[rng.choice(64, size=n, p=rbm.p)])
    chains.follow(learner, 3, WORKERS)
    gains = [
        _frank_wolfe.rescaled(unit, (data.field(unit), law.field(unit)), [0.5, 1.0, 1.5], data, law)
        for law in (exact, chains)
    ]
    for true, estimate in zip(*gains, strict=True):
        # The relative variance of the weights is 1 / ess - 1.
        error = np.sqrt((1 / estimate.ess - 1) / n)
        assert estimate.gain == pytest.approx(true.gain, abs=5 * error)


@pytest.mark.parametrize("probability", [None, np.full(60, 1 / 60) + np.tile([-0.01, 0.01], 30)])
def test_expectations_over_codes_are_those_over_their_numbers(probability, monkeypatch):
    """A few rows at a time, with draws of the missing cells."""
    monkeypatch.setattr(_coded_rows, "EXPANDED", 80)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 60), "x": rng.normal(9, 4, 60)})
    X = X.mask(rng.random(X.shape) < 0.3)
    model = SDCPRBM(3, columns={"x": "gaussian"}, max_iter=2, random_state=0).fit(X)
    rows = model._validated(X, allow_nan=True, lazily=True)
    samples = [_frank_wolfe.IncompleteSample(r, probability) for r in (rows, rows.toarray())]
    for sample in samples:
        learner = SimpleNamespace(model=model._model, stream=Stream(0))
        for _ in range(2):
            sample.follow(learner, WORKERS)
    unit, visible = rng.normal(size=6), model._model().visible
    ours, theirs = (
        [sample.field(unit), sample.moment(sample.field(unit)), *slopes.values()]
        for sample in samples
        for slopes in [sample.shape_slopes(visible)]
    )
    for one, other in zip(
        [samples[0].rows.toarray(), *ours], [samples[1].rows, *theirs], strict=True
    ):
        assert_allclose(one, other, atol=1e-12)


def test_a_fit_of_many_rows_of_codes(monkeypatch):
    """Units are fitted to a part of the rows."""
    for module in ("_frank_wolfe", "_growth"):
        monkeypatch.setattr(f"sklearn_boltz.restricted.training.{module}.FITTED_ROWS", 150)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("pqr"), (300, 3)), columns=list("abc")).assign(d=lambda X: X.a)
    gaps = X.mask(rng.random(X.shape) < 0.1)
    model = InfiniteRBM(4, early_stopping=False, n_model_samples=500, random_state=0).fit(gaps)
    assert model.score(X) > -3 * np.log(3) - 0.4
