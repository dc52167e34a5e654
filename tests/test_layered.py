"""Layered models: against all joint states, and derivatives against finite differences."""

import itertools

import numpy as np
import pytest

from oracles_rbm import binary, random_dbm
from private import (
    SGD,
    BlockWeights,
    Evidence,
    Iteration,
    Layered,
    Stacked,
    Stream,
    Workers,
    annealed_importance_sampling,
    by_tap,
    chain_samples,
    clamp,
    exact_log_partition,
    free_energy,
    solve,
    stacked,
    temperature_ladder,
    unit_gradients,
)
from private import RBMModel as Model
from private import TAPLearner as Learner
from private import TAPScheme as Scheme
from sklearn_boltz.units import Bernoulli, TruncatedGaussBernoulli, TruncatedGaussian

SIZES = [5, 4, 3]
DEEPER = [4, 3, 3, 2]
EXACTLY = Iteration(max_iter=5000, tol=1e-26)


def gaussian(n, rng):
    return TruncatedGaussian(2 * rng.standard_normal(n), 3 * rng.standard_normal(n), -0.5, 1.0)


def spiked(n, rng):
    slab = 2 * rng.standard_normal(n), 3 * rng.standard_normal(n)
    return TruncatedGaussBernoulli(rng.uniform(0.2, 0.8, n), *slab)


def bernoulli(n, rng):
    return Bernoulli(rng.standard_normal(n))


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as workers:
        yield workers


def layered_of(dbm):
    return Layered(dbm.weights, [Bernoulli(b) for b in dbm.intercepts])


def mixed(sizes=DEEPER, laws=(spiked, bernoulli, gaussian, bernoulli), scale=0.5):
    rng = np.random.default_rng(0)
    weights = [
        scale * rng.standard_normal(pair) for pair in zip(sizes[1:], sizes[:-1], strict=True)
    ]
    return Layered(weights, [law(n, rng) for law, n in zip(laws, sizes, strict=False)])


def rows_of(layered, n_rows=5):
    rng, units = np.random.default_rng(1), layered.layers[0]
    V = rng.uniform(*units.bounds, (n_rows, len(units)))
    return (V > 0.5).astype(float) if units.states() is not None else np.where(V < 0.3, 0, V)


# Two sides.


@pytest.mark.parametrize("sizes", [SIZES, DEEPER, [2, 3, 4, 2, 3]])
def test_block_weights_are_as_the_array_they_stand_for(sizes):
    layered = layered_of(random_dbm(sizes))
    model = layered.sides()
    weights = model.weights
    whole = np.asarray(weights)
    assert isinstance(weights, BlockWeights) and whole.shape == weights.shape
    assert weights.size == sum(W.size for W in layered.weights) == np.count_nonzero(whole)
    # Each block is where its two layers are.
    for k, (W, columns) in enumerate(zip(layered.weights, layered.columns, strict=False)):
        above = layered.columns[k + 1]
        block = whole[above, columns] if k % 2 == 0 else whole[columns, above].T
        np.testing.assert_array_equal(block, W)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, whole.shape[1]))
    np.testing.assert_allclose(X @ weights.T, X @ whole.T, rtol=1e-12)
    out = np.empty((6, whole.shape[0]))
    assert np.matmul(np.asfortranarray(X), weights.T, out=out) is out
    np.testing.assert_allclose(out, X @ whole.T, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(weights.T), whole.T)
    np.testing.assert_array_equal(np.asarray(-(weights * weights)), -(whole**2))
    np.testing.assert_array_equal(np.asarray(0.5 * weights), 0.5 * whole)
    with pytest.raises(TypeError):  # would not be zero where there are no weights
        np.exp(weights)


@pytest.mark.parametrize("sizes", [SIZES, DEEPER])
def test_a_deep_model_is_an_rbm_of_its_two_sides(sizes):
    dbm = random_dbm(sizes)
    model = layered_of(dbm).sides()
    even, odd = np.hstack(dbm.layers[::2]), np.hstack(dbm.layers[1::2])
    np.testing.assert_allclose(model.energy(even, odd), -dbm.log_joint, atol=1e-12)
    assert exact_log_partition(model) == pytest.approx(np.log(dbm.Z), abs=1e-10)
    assert exact_log_partition(model.transposed()) == pytest.approx(np.log(dbm.Z), abs=1e-10)
    # The conditionals of one side given the other.
    for k in np.random.default_rng(0).integers(len(even), size=5):
        same = (even == even[k]).all(axis=1)
        expected = dbm.joint[same] @ odd[same] / dbm.joint[same].sum()
        np.testing.assert_allclose(model.mean_hidden(even[k : k + 1])[0], expected, atol=1e-12)


def test_one_hidden_layer_is_the_rbm_itself(workers):
    layered = layered_of(random_dbm([5, 4]))
    model, V = layered.sides(), binary(5)
    assert isinstance(model, Model) and model.weights is layered.weights[0]
    clamped = clamp(layered, V, Iteration(), workers)
    assert clamped.converged.all() and clamped.visible_side() is V
    np.testing.assert_array_equal(clamped.means()[1], model.mean_hidden(V))
    np.testing.assert_array_equal(clamped.free_energy(2), model.free_energy(V))
    assert layered.padded(V) is V


def test_annealing_is_unbiased(workers):
    """The mean weight of 4,000 chains with few temperatures, within 4.5 standard errors."""
    for layered in [
        layered_of(random_dbm(SIZES)),
        mixed(laws=[bernoulli, gaussian, bernoulli] * 2),
    ]:
        model = layered.sides()
        estimate = annealed_importance_sampling(
            model, model.visible.base(), temperature_ladder(20), 4000, Stream(0), workers
        )
        ratio = np.exp(estimate.log_weights - exact_log_partition(model))
        assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / np.sqrt(len(ratio))
        assert ratio.std() < 1


def test_chains_that_start_in_the_law_stay_there(workers):
    """20,000 chains from exact samples: total variation of p(v), of which 0.012 is noise."""
    dbm = random_dbm(SIZES)
    rng = np.random.default_rng(0)
    states = rng.choice(len(dbm.joint), size=20000, p=dbm.joint)
    even = np.hstack(dbm.layers[::2])[states]
    places = 2 ** np.arange(5)[::-1]
    p = np.bincount(dbm.layers[0].astype(int) @ places, weights=dbm.joint)
    for n_steps in (1, 4):
        even = chain_samples(layered_of(dbm).sides(), even.copy(), n_steps, Stream(3), workers)
        counts = np.bincount(even[:, :5].astype(int) @ places, minlength=32)
        assert np.abs(counts / len(even) - p).sum() / 2 < 0.03


# Several laws on a side.


def test_stacked_laws_are_their_parts():
    rng = np.random.default_rng(0)
    laws = [bernoulli(2, rng), gaussian(3, rng), spiked(2, rng)]
    units = stacked(laws)
    assert isinstance(units, Stacked) and len(units) == 7 and units.states() is None
    parts = [slice(0, 2), slice(2, 5), slice(5, 7)]
    field, precision = rng.standard_normal((2, 4, 7))
    for B, A in [(field, precision), (field, 0.0), (0.0, precision[0])]:
        whole = [np.broadcast_to(a, (4, 7)) for a in (B, A)]
        for name in ("log_partition", "mean", "variance"):
            values = np.broadcast_to(getattr(units, name)(B, A), (4, 7))
            for law, part in zip(laws, parts, strict=True):
                expected = getattr(law, name)(*(a[:, part] for a in whole))
                np.testing.assert_array_equal(values[:, part], expected)
    low, high = units.bounds
    X = np.clip(rng.random((4, 7)), low, high)
    X[:, :2] = X[:, :2] > 0.5
    assert units.contains(X).all() and not units.contains(X + 2).any()
    expected = sum(law.log_weight(X[:, part]) for law, part in zip(laws, parts, strict=True))
    np.testing.assert_allclose(units.log_weight(X), expected, rtol=1e-12)
    # On the way from the law at infinite temperature, of which samples are in the bounds.
    base = units.base()
    for beta, end in [(0.0, base), (1.0, units)]:
        between = units.fallen(beta, base)
        np.testing.assert_allclose(between.mean(field), end.mean(field), atol=1e-12)
    V = units.astype(np.float32).sample(field.astype(np.float32), Stream(0))
    assert V.dtype == np.float32 and units.contains(V).all()
    gradients = units.gradients(None, field, precision)
    assert gradients.keys() == units.parameters().keys() == units.gradients(X).keys()
    other = units.astype(float)
    other.ascend({name: np.full(len(a), -9.0) for name, a in gradients.items()}, 1.0)
    assert (other.layers[2].rho > 0).all()  # brought back to a legal value
    assert (other.layers[0].intercept == laws[0].intercept - 9).all()


def test_bernoulli_layers_are_one_law_with_its_kernels():
    units = stacked([Bernoulli(np.zeros(2)), Bernoulli(np.ones(3))])
    assert type(units) is Bernoulli
    np.testing.assert_array_equal(units.intercept, [0, 0, 1, 1, 1])
    equal = Stacked([Bernoulli(np.zeros(2)), Bernoulli(np.ones(3))])
    np.testing.assert_array_equal(equal.states(), [0, 1])


# Given rows, and free: errors of the third order.


def test_hidden_layers_given_rows_satisfy_their_equations(workers):
    layered = mixed()
    for order in (1, 2):
        clamped = clamp(layered, rows_of(layered), EXACTLY._replace(order=order), workers)
        assert clamped.converged.all()
        hidden = zip(
            layered.layers[1:], clamped.means()[1:], clamped.variances()[1:],
            clamped.fields(order), strict=True,
        )  # fmt: skip
        for units, mean, variance, (B, A) in hidden:
            expected = units.moments(B, A)
            np.testing.assert_allclose(mean, expected[0], atol=1e-10)
            np.testing.assert_allclose(variance, expected[1], atol=1e-10)
        # Those of the first hidden layer, written out.
        a, c, (W, W_above) = clamped.means(), clamped.variances(), layered.weights[:2]
        A = -c[2] @ W_above**2 if order == 2 else 0.0
        B = A * a[1] + a[0] @ W.T + a[2] @ W_above
        np.testing.assert_allclose(a[1], layered.layers[1].mean(B, A), atol=1e-10)


@pytest.mark.parametrize("sizes", [SIZES, DEEPER])
@pytest.mark.parametrize(("order", "slope"), [(1, 2), (2, 3)])
def test_errors_fall_as_a_power_of_the_coupling(sizes, order, slope, workers):
    scales, seeds, iteration = [0.02, 0.04, 0.08], range(6), EXACTLY._replace(order=order)
    errors = np.zeros((3, len(scales), len(seeds)))
    for (i, scale), (k, seed) in itertools.product(enumerate(scales), enumerate(seeds)):
        dbm = random_dbm(sizes, scale, seed)
        layered, V = layered_of(dbm), binary(sizes[0])[3:6]
        free = by_tap(layered.sides(), layered.padded(V), iteration, workers)
        errors[0, i, k] = -free.free_energy[0] - np.log(dbm.Z)
        clamped = clamp(layered, V, iteration, workers)
        log_sums, means = dbm.given(V)
        errors[1, i, k] = (-clamped.free_energy(order) - log_sums)[0]
        errors[2, i, k] = np.abs(clamped.means()[-1] - means[-1]).max()
        assert free.converged.all() and clamped.converged.all()
    for error in np.sqrt((errors**2).mean(axis=2)):
        assert np.polyfit(np.log(scales), np.log(error), 1)[0] == pytest.approx(slope, abs=0.4)
        assert error[-1] < (1e-2 if order == 1 else 1e-3)


def test_evidence_counts_in_the_free_energy(workers):
    """A field and a precision on a Bernoulli unit are an intercept: the same ln Z."""
    layered = layered_of(random_dbm(SIZES, 0.3))
    model, rng = layered.sides(), np.random.default_rng(0)
    field = rng.standard_normal((1, len(model.visible)))
    V, evidence = np.zeros_like(field), Evidence(field, 0.5)
    solutions = solve(model, V, EXACTLY, workers, evidence=evidence)
    tilted = model._replace(visible=Bernoulli(model.visible.intercept + field[0] - 0.25))
    expected = by_tap(tilted, V, EXACTLY, workers).free_energy
    np.testing.assert_allclose(free_energy(model, solutions, 2, evidence), expected, atol=1e-10)


# Gradients.


def objective(layered, V, starts, order, workers):
    """Mean TAP log-likelihood, with ln Z = −F averaged over solutions."""
    iteration = EXACTLY._replace(order=order)
    free = by_tap(layered.sides(), starts, iteration, workers)
    clamped = clamp(layered, V, iteration, workers)
    assert free.converged.all() and clamped.converged.all()
    return -clamped.free_energy(order).mean() + free.free_energy.mean()


def learn(learner, V, scheme, rate, workers):
    """Learn from a mini-batch by some scheme."""
    learner.scheme = scheme
    learner.learn(learner.in_memory(V), rate, workers)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "layered",
    [layered_of(random_dbm(SIZES, 0.5)), layered_of(random_dbm(DEEPER, 0.5)), mixed(),
     mixed(laws=[bernoulli, gaussian, spiked, gaussian])],
    ids=["5-4-3", "4-3-3-2", "mixed", "other"],
)  # fmt: skip
def test_gradients_by_finite_differences(layered, order, workers):
    V, iteration, step = rows_of(layered, 6), EXACTLY._replace(order=order), 1e-5
    starts = layered.padded(rows_of(layered, 2))
    learner = Learner(
        [W.copy() for W in layered.weights], [u.astype(float) for u in layered.layers], None, SGD()
    )
    learner.starts = starts
    scheme = Scheme(iteration, persistent=True, alpha=0.0)
    learn(learner, V, scheme, 1e-3, workers)

    def difference(change):
        """Of the objective, along what `change(weights, layers, amount)` makes."""
        values = []
        for amount in (step, -step):
            weights = [W.copy() for W in layered.weights]
            layers = [units.astype(float) for units in layered.layers]
            change(weights, layers, amount)
            values.append(objective(Layered(weights, layers), V, starts, order, workers))
        return (values[0] - values[1]) / (2 * step)

    for k, W in enumerate(layered.weights):
        mine = (learner.weights[k] - W) / 1e-3
        for place in [(0, 0), (1, 2)]:

            def change(weights, layers, amount, k=k, place=place):
                weights[k][place] += amount

            assert mine[place] == pytest.approx(difference(change), abs=1e-6)
    solutions = by_tap(layered.sides(), starts, iteration, workers)
    slopes = unit_gradients(clamp(layered, V, iteration, workers), solutions, order)
    for k, slope in enumerate(slopes):
        for name, gradient in slope.items():

            def change(weights, layers, amount, k=k, name=name):
                layers[k].parameters()[name][1] += amount

            assert gradient[1] == pytest.approx(difference(change), abs=1e-6)
            if name == "intercept":  # and that is the step that a mini-batch makes
                moved = learner.layers[k].parameters()[name] - layered.layers[k].parameters()[name]
                np.testing.assert_allclose(moved, 1e-3 * gradient, atol=1e-9)
