"""Gradients of TAP, and the steps of its training: against finite differences and the authors."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.datasets import load_digits

from mean_field import (
    EXACTLY,
    OF_NUMBERS,
    PAIRS,
    layered_of,
    random_layered,
    rows_of,
    tap_log_likelihood,
)
from oracles_rbm import random_dbm
from private import SGD, TAP, Stream, _observed, _tap_steps, by_tap
from sklearn_boltz.units import Bernoulli

DEEP = [
    ("spiked", "bits", "truncated", "bits"),
    ("bits", "truncated", "spiked", "truncated"),
    ("bits and words", "one word", "bits", "words"),
]
# Those of which all layers are bits are deeper than wide.
OF_BITS = [(5, 4, 3), (4, 3, 3, 2)]


@pytest.fixture(params=PAIRS + DEEP + OF_BITS, ids=lambda case: "-".join(map(str, case)))
def layered(request):
    kinds = request.param
    return layered_of(random_dbm(kinds, 0.5)) if kinds in OF_BITS else random_layered(kinds)


def slopes_of(layered, V, order, workers, starts=None, shares=(1.0, 1.0)):
    """What the training takes as derivatives: (array of parameters, derivatives by it)."""
    scheme = _tap_steps.TAPScheme(EXACTLY._replace(order=order), persistent=starts is not None)
    workspace = _tap_steps.Workspace(layered, len(V), len(V if starts is None else starts), order)
    slopes, _ = _tap_steps.difference(
        layered, V, starts, scheme, shares, shares, Stream(0), workers, workspace
    )
    return by_parameter(layered, slopes)


def by_parameter(layered, slopes):
    of_weights, of_layers = slopes
    pairs = list(zip(layered.weights, of_weights, strict=True))
    for units, of_units in zip(layered.layers, of_layers, strict=True):
        assert units.parameters().keys() == of_units.keys()
        pairs += [(value, of_units[name]) for name, value in units.parameters().items()]
    return pairs


def assert_derivatives(layered, V, order, workers, starts=None):
    """Along a random direction of each array, in which each entry has its part."""
    slopes = slopes_of(layered, V, order, workers, starts)
    assert_derivatives_of(lambda: tap_log_likelihood(layered, V, order, workers, starts), slopes)


def assert_derivatives_of(function, slopes):
    rng, eps = np.random.default_rng(0), 1e-5
    for parameter, slope in slopes:
        before, ends = parameter.copy(), []
        direction = rng.choice([-1, 1], before.shape) * rng.uniform(0.5, 1, before.shape)
        for step in (eps, -eps):
            parameter[...] = before + step * direction
            ends.append(function())
        parameter[...] = before
        expected = (ends[0] - ends[1]) / (2 * eps)
        assert np.vdot(slope, direction) == pytest.approx(expected, abs=1e-6)


def test_gradients_are_those_of_the_tap_log_likelihood(layered, workers):
    """Of two layers, the first order has its part in the second; deep machines show it alone."""
    V = rows_of(layered.layers[0], 3)
    starts = layered.padded(rows_of(layered.layers[0], 2, seed=1))
    for order in (1, 2) if len(layered.layers) > 2 else (2,):
        assert_derivatives(layered, V, order, workers, starts)


@pytest.mark.parametrize(
    ("kinds", "order"),
    [("bits", 1), ("words", 2), ("bits and words", 2), ("truncated", 2), ("spiked", 1),
     ("gaussian", 2), ("spiked and bits", 2)],
)  # fmt: skip
def test_tap_gradient_of_incomplete_rows(kinds, order, workers):
    layered = random_layered((kinds, *["bits"] * order))
    visible, rng = layered.layers[0], np.random.default_rng(0)
    V, missing = rows_of(visible, 6), rng.random((6, visible.n_units)) < 0.5
    missing[np.arange(6), rng.integers(visible.n_units, size=6)] = True
    missing[0] = False
    V[_observed.spread_over_columns(visible, missing)] = np.nan
    assert_derivatives(layered, V, order, workers)


def of_model(layered, starts, tap, workers):
    """Slopes of the negative phase alone, and where its solutions or chains end."""
    workspace = _tap_steps.Workspace(layered, len(starts), len(starts), 2)
    scheme = _tap_steps.TAPScheme(tap, persistent=True)
    shares, V = (0.0, 1.0), layered.split(starts, starts)[0]
    slopes, ends = _tap_steps.difference(
        layered, V, starts, scheme, shares, shares, Stream(0), workers, workspace
    )
    return by_parameter(layered, slopes), ends


@pytest.mark.parametrize("kinds", [*OF_NUMBERS, ("bits", "bits", "truncated")], ids="-".join)
def test_gradients_of_adaptive_tap(kinds, workers):
    layered, tap = random_layered(kinds), EXACTLY._replace(adaptive=True)
    starts = layered.padded(rows_of(layered.layers[0], 3))
    slopes, _ = of_model(layered, starts, tap, workers)
    assert_derivatives_of(
        lambda: by_tap(layered.sides(), starts, tap, workers).free_energy.mean(), slopes
    )


def test_gradients_at_the_ends_of_chains(layered, workers):
    """They are those of ln Σ exp(−E) over the odd layers."""
    starts = layered.padded(rows_of(layered.layers[0], 6))
    slopes, ends = of_model(layered, starts, TAP(n_gibbs=2), workers)
    assert not np.allclose(ends, of_model(layered, starts, EXACTLY, workers)[1], atol=1e-3)
    assert_derivatives_of(lambda: layered.sides().free_energy(ends).mean(), slopes)


@pytest.mark.parametrize("sizes", [(5, 4), (4, 3, 3)], ids=len)
def test_chains_correct_the_solutions(sizes, workers):
    """With strong couplings; false alarms: 1 in 100,000, by five standard errors."""
    dbm, n = random_dbm(sizes, 1.5), 20_000
    layered, p = layered_of(dbm), np.exp(dbm.log_joint) / np.exp(dbm.log_joint).sum()
    starts = np.tile(layered.padded(rows_of(layered.layers[0], 100)), (n // 100, 1))
    for n_gibbs, agrees in ((0, False), (50, True)):
        slopes, _ = of_model(layered, starts, TAP(n_gibbs=n_gibbs), workers)
        errors = []
        for k, (_, slope) in enumerate(slopes[: len(layered.weights)]):
            products = np.einsum("ni,nj->nij", dbm.layers[k + 1], dbm.layers[k])
            mean = np.tensordot(p, products, 1)
            errors.append(np.abs(-slope - mean) / np.sqrt(mean * (1 - mean) / n))
        assert (max(e.max() for e in errors) < 5) == agrees


def learner_of(layered, scheme, optimizer=None):
    """A learner that begins at a machine, with copies of its parameters."""
    weights = [W.copy() for W in layered.weights]
    layers = [units.astype(float) for units in layered.layers]
    return _tap_steps.TAPLearner(weights, layers, scheme, optimizer or SGD(), Stream(0))


def test_a_mini_batch_moves_all_parameters_up_the_gradient(layered, workers):
    V, rate = rows_of(layered.layers[0], 30), 1e-3
    learner = learner_of(layered, _tap_steps.TAPScheme(EXACTLY, alpha=0.0))
    learner.learn(learner.in_memory(V), rate, workers)
    slopes = iter(slopes_of(layered, V, 2, workers))
    for before, after in zip(layered.weights, learner.weights, strict=True):
        np.testing.assert_allclose(after - before, rate * next(slopes)[1], atol=1e-9)
    for before, after in zip(layered.layers, learner.layers, strict=True):
        for name, value in before.parameters().items():
            _, slope = next(slopes)
            if name == "intercept" or name[-1] == "intercept":
                moved = after.parameters()[name] - value
                np.testing.assert_allclose(moved, rate * slope, atol=1e-9)
    after = tap_log_likelihood(learner.model(), V, 2, workers)
    assert after > tap_log_likelihood(layered, V, 2, workers)


def test_two_mini_batches_of_digits_are_those_of_the_authors(workers):
    """Computed by the authors' code: 3 iterations a mini-batch, second order, momentum 0.5."""
    X = load_digits().data
    X = (X / X.max() > 0.001).astype(float)
    bias = logit(np.clip(X.mean(axis=0), 1e-8, 1 - 1e-8))
    weights = np.random.default_rng(0).normal(0, 1e-16, (64, 64))
    scheme = _tap_steps.TAPScheme(TAP(n_gibbs=0, tol=0.0), alpha=0.0)
    layers = [Bernoulli(bias), Bernoulli(np.zeros(64))]
    learner = _tap_steps.TAPLearner([weights], layers, scheme, SGD(0.5), Stream(0))
    learner.learn(learner.in_memory(X[:100]), 0.005, workers)
    assert np.linalg.norm(weights, 2) == pytest.approx(0.007628825568441182, rel=1e-9)
    assert np.linalg.norm(bias) == pytest.approx(38.97452180357592, rel=1e-9)
    learner.learn(learner.in_memory(X[100:200]), 0.005, workers)
    assert np.linalg.norm(weights, 2) == pytest.approx(0.015478158879359825, rel=1e-9)
    norm = np.linalg.norm(learner.layers[1].intercept)
    assert norm == pytest.approx(1.0779652694386856e-6, rel=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "l2", None])
def test_penalties(penalty, workers):
    layered, steps = layered_of(random_dbm([6, 4], 0.3)), []
    for alpha in [0.0, 0.1]:
        learner = learner_of(
            layered, _tap_steps.TAPScheme(TAP(max_iter=5), penalty=penalty, alpha=alpha)
        )
        batch = learner.in_memory(rows_of(layered.layers[0], 20))
        learner.learn(batch, 0.5, workers)
        steps.append(learner.weights[0])
    (W,) = layered.weights
    expected = {"l1": np.sign(W), "l2": W, None: 0 * W}
    np.testing.assert_allclose(steps[1] - steps[0], -0.05 * expected[penalty], atol=1e-12)
