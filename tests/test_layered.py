"""Layered models: against all joint states, and their mean field given rows."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from mean_field import EXACTLY, layered_of, power_of, random_layered, rows_of
from oracles_rbm import SmallDBM, binary, random_dbm
from private import TAP, by_tap, clamp, exact_log_partition

SIZES = [5, 4, 3]
DEEPER = [4, 3, 3, 2]
MIXED = ("spiked", "bits", "truncated", "bits")
OF_WORDS = ("bits and words", "one word", "bits", "words")


def test_sides_of_several_layers(workers):
    model = random_layered(OF_WORDS).sides()
    whole = model._replace(weights=np.asarray(model.weights))
    V = rows_of(model.visible)
    found, expected = (by_tap(each, V, TAP(max_iter=6), workers) for each in (model, whole))
    for name, value in found.items():
        assert_allclose(value, expected[name], atol=1e-12)


@pytest.mark.parametrize("sizes", [SIZES, DEEPER])
def test_a_deep_model_is_an_rbm_of_its_two_sides(sizes):
    dbm = random_dbm(sizes)
    model = layered_of(dbm).sides()
    even, odd = np.hstack(dbm.layers[::2]), np.hstack(dbm.layers[1::2])
    assert_allclose(model.energy(even, odd), -dbm.log_joint, atol=1e-12)
    assert exact_log_partition(model) == pytest.approx(np.log(dbm.Z), abs=1e-10)
    assert exact_log_partition(model.transposed()) == pytest.approx(np.log(dbm.Z), abs=1e-10)
    # The conditionals of one side given the other.
    for k in np.random.default_rng(0).integers(len(even), size=5):
        same = (even == even[k]).all(axis=1)
        expected = dbm.joint[same] @ odd[same] / dbm.joint[same].sum()
        assert_allclose(model.mean_hidden(even[k : k + 1])[0], expected, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_hidden_layers_given_rows_satisfy_their_equations(order, workers):
    layered = random_layered(MIXED, 0.5)
    V = rows_of(layered.layers[0])
    clamped = clamp(layered, V, EXACTLY._replace(order=order), workers)
    assert clamped.converged.all()
    a, c, (W, W_above) = clamped.means(), clamped.variances(), layered.weights[:2]
    hidden = zip(layered.layers[1:], a[1:], c[1:], clamped.fields(order), strict=True)
    for units, mean, variance, (B, A) in hidden:
        expected = units.moments(B, A)
        assert_allclose(mean, expected[0], atol=1e-10)
        assert_allclose(variance, expected[1], atol=1e-10)
    # Those of the first hidden layer, written out.
    A = -c[2] @ W_above**2 if order == 2 else 0.0
    B = A * a[1] + a[0] @ W.T + a[2] @ W_above
    assert_allclose(a[1], layered.layers[1].mean(B, A), atol=1e-10)


@pytest.mark.parametrize("sizes", [SIZES, DEEPER])
@pytest.mark.parametrize(("order", "power"), [(1, 2), (2, 3)])
def test_errors_fall_as_a_power_of_the_coupling(sizes, order, power, workers):
    scales, iteration = [0.02, 0.04, 0.08], EXACTLY._replace(order=order)
    errors = np.zeros((3, len(scales), 6))
    for (i, scale), seed in itertools.product(enumerate(scales), range(6)):
        dbm = random_dbm(sizes, scale, seed)
        layered, V = layered_of(dbm), binary(sizes[0])[3:6]
        free = by_tap(layered.sides(), layered.padded(V), iteration, workers)
        errors[0, i, seed] = -free.free_energy[0] - np.log(dbm.Z)
        clamped = clamp(layered, V, iteration, workers)
        log_sums, means = dbm.given(V)
        errors[1, i, seed] = (-clamped.free_energy(order) - log_sums)[0]
        errors[2, i, seed] = np.abs(clamped.means()[-1] - means[-1]).max()
        assert free.converged.all() and clamped.converged.all()
    for of_figure in errors:
        assert power_of(scales, of_figure) == pytest.approx(power, abs=0.4)
        assert np.sqrt((of_figure[-1] ** 2).mean()) < (1e-2 if order == 1 else 1e-3)


@pytest.mark.parametrize("sizes", [(5, 3), (4, 3, 2)])
def test_tap_free_energy_of_incomplete_rows(sizes, workers):
    """Its error is of the third order in the weights."""
    errors, base = [], random_dbm(sizes, seed=1)
    v = np.array([1.0, np.nan, 0.0, np.nan, 1.0])[: sizes[0]]
    for scale in (0.1, 0.05):
        small = SmallDBM([scale * W for W in base.weights], base.intercepts)
        agree = ((small.layers[0] == v) | np.isnan(v)).all(axis=1)
        iteration = TAP(max_iter=5000, tol=1e-30)
        clamped = clamp(layered_of(small), v[np.newaxis], iteration, workers)
        errors.append(abs(clamped.free_energy(2)[0] + logsumexp(small.log_joint[agree])))
    assert errors[0] < 1e-4 and errors[0] / errors[1] > 2**2.7


def test_weights_in_blocks_are_no_array_where_that_would_fill_them():
    weights = layered_of(random_dbm((4, 3, 2))).sides().weights
    for call in (np.exp, np.add.reduce):
        with pytest.raises(TypeError, match="returned NotImplemented"):
            call(weights)
