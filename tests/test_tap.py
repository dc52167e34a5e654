"""Mean-field inference and its training: against exact sums, finite differences, an oracle."""

import itertools

import numpy as np
import pytest
from scipy.special import logit
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from oracles_rbm import SmallRBM, random_rbm
from private import (
    INFERENCES,
    SGD,
    Evidence,
    Iteration,
    Layer,
    Layered,
    Workers,
    by_tap,
    clamp,
    distinct,
    fields,
    free_energy,
    iterate,
    mean_squared_change,
    solve,
    total_log_partition,
    unit_gradients,
)
from private import RBMModel as Model
from private import TAPLearner as Learner
from private import TAPScheme as Scheme
from sklearn_boltz.units import Bernoulli, Gaussian, TruncatedGaussBernoulli, TruncatedGaussian

N_VISIBLE, N_HIDDEN = 6, 4
EXACTLY = Iteration(max_iter=5000, tol=1e-26)


def bernoulli(n, rng):
    return Bernoulli(rng.standard_normal(n))


def truncated_gaussian(n, rng):
    return TruncatedGaussian(3 * rng.standard_normal(n), 5 * rng.standard_normal(n), -0.5, 1.0)


def truncated_gauss_bernoulli(n, rng):
    slab = 3 * rng.standard_normal(n), 5 * rng.standard_normal(n)
    return TruncatedGaussBernoulli(rng.uniform(0.2, 0.8, n), *slab)


LAWS = [bernoulli, truncated_gaussian, truncated_gauss_bernoulli]
PAIRS = list(itertools.product(LAWS, LAWS))


def name_of(value):
    return getattr(value, "__name__", str(value))


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as workers:
        yield workers


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(law.__name__ for law in pair))
def model(request):
    rng = np.random.default_rng(0)
    visible, hidden = request.param
    weights = 0.5 * rng.standard_normal((N_HIDDEN, N_VISIBLE))
    return Model(weights, visible(N_VISIBLE, rng), hidden(N_HIDDEN, rng))


def rows_of(model, n_rows=5):
    """Legal rows, with zeros where a law has a spike there."""
    rng = np.random.default_rng(1)
    low, high = model.visible.bounds
    V = rng.uniform(low, high, (n_rows, len(model.visible)))
    if model.visible.states() is not None:
        return (V > 0.5).astype(float)
    return np.where(rng.random(V.shape) < 0.3, 0, V)


def binary(rbm, scale=1.0):
    return Model(scale * rbm.W, Bernoulli(rbm.b), Bernoulli(rbm.c))


# Solutions.


@pytest.mark.parametrize("order", [1, 2])
def test_solutions_satisfy_their_equations(model, order, workers):
    solutions = solve(model, rows_of(model), EXACTLY._replace(order=order), workers)
    assert solutions.converged.all() and (solutions.n_iter < EXACTLY.max_iter).all()
    layers = zip((model.visible, model.hidden), fields(model, solutions, order), strict=True)
    means = [solutions.visible_mean, solutions.hidden_mean]
    variances = [solutions.visible_variance, solutions.hidden_variance]
    for (units, (B, A)), mean, variance in zip(layers, means, variances, strict=True):
        expected = units.moments(B, A)
        np.testing.assert_allclose(mean, expected[0], atol=1e-10)
        np.testing.assert_allclose(variance, expected[1], atol=1e-10)
    # The equations written out, for the hidden units.
    W, (a_v, a_h), (c_v, _) = model.weights, means, variances
    A = -c_v @ (W**2).T if order == 2 else np.zeros_like(a_h)
    np.testing.assert_allclose(a_h, model.hidden.mean(A * a_h + a_v @ W.T, A), atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
def test_free_energy_is_stationary_at_solutions(model, order, workers):
    solutions = solve(model, rows_of(model), EXACTLY._replace(order=order), workers)
    F = free_energy(model, solutions, order)
    rng = np.random.default_rng(2)
    for name in ["visible_mean", "hidden_mean", "visible_variance", "hidden_variance"]:
        # Not the formula itself, whose fields follow the beliefs, but its exactness to the
        # second order in the error of a belief is what is asked.
        change = 1e-4 * rng.standard_normal(solutions[name].shape)
        other = type(solutions)(**{**solutions, name: solutions[name] + change})
        np.testing.assert_allclose(free_energy(model, other, order), F, atol=1e-6)


def test_the_change_of_a_row_is_the_mean_over_all_units():
    rng = np.random.default_rng(0)
    changes = rng.standard_normal((3, N_VISIBLE)), rng.standard_normal((3, N_HIDDEN))
    visible, hidden = (Layer(change, change, change, change) for change in changes)
    expected = (np.hstack(changes) ** 2).mean(axis=1)
    np.testing.assert_allclose(mean_squared_change(visible, hidden), expected)


def test_rows_stop_by_themselves(workers):
    model = binary(random_rbm(8, 5, scale=0.8))
    V = rows_of(model, 40)
    together = solve(model, V, Iteration(tol=1e-14), workers)
    assert len(set(together.n_iter)) > 1
    for i in [0, 17, 39]:
        alone = solve(model, V[i : i + 1], Iteration(tol=1e-14), workers)
        assert alone.n_iter[0] == together.n_iter[i]
        np.testing.assert_allclose(alone.visible_mean[0], together.visible_mean[i], atol=1e-12)
    short = solve(model, V, Iteration(max_iter=3, tol=1e-14), workers)
    assert not short.converged.any() and (short.n_iter == 3).all()


def test_number_of_threads_does_not_matter():
    rng = np.random.default_rng(0)
    rbm = SmallRBM(0.1 * rng.standard_normal((3, 2)), np.zeros(2), np.zeros(3))
    model = binary(rbm)._replace(weights=0.05 * rng.standard_normal((300, 200)))
    model = model._replace(visible=Bernoulli(np.zeros(200)), hidden=Bernoulli(np.zeros(300)))
    V = (rng.random((250, 200)) < 0.3).astype(float)
    results = []
    for n_jobs in [1, 2, 3]:
        with Workers(n_jobs) as workers:
            results.append(solve(model, V, Iteration(), workers))
    for other in results[1:]:
        for name, value in results[0].items():
            np.testing.assert_array_equal(value, other[name])


# Two strong patterns that exclude each other: two solutions.
PATTERN = np.array([1.0, 1, 1, 1, -1, -1, -1, -1])


def of_two_patterns():
    W = np.vstack([4 * PATTERN, -4 * PATTERN])
    return Model(W, Bernoulli(-W.sum(axis=0) / 2), Bernoulli(np.full(2, -8.0)))


def test_distinct_solutions_and_their_attribution(workers):
    model, pattern = of_two_patterns(), PATTERN
    V = np.vstack([pattern > 0, pattern < 0, pattern > 0, pattern < 0]).astype(float)
    solutions = by_tap(model, V, EXACTLY, workers)
    kept, assignment = distinct(model, solutions)
    assert len(kept) == 2
    assert assignment[0] == assignment[2] != assignment[1] == assignment[3]
    assert (np.diff(solutions.free_energy[kept]) >= 0).all()
    np.testing.assert_allclose(
        solutions.visible_mean[kept][assignment], solutions.visible_mean, atol=1e-6
    )


def test_of_equal_solutions_the_best_converged_stands_for_all():
    model, hidden_mean = of_two_patterns(), np.zeros((4, 2))
    solutions = Bunch(
        visible_mean=np.array([PATTERN > 0, PATTERN > 0, PATTERN < 0, PATTERN < 0], dtype=float),
        hidden_mean=hidden_mean, change=np.array([1e-6, 1e-9, 1e-9, 1e-6]),
        free_energy=np.array([1.0, 1.0, 2.0, 2.0]),
    )  # fmt: skip
    kept, assignment = distinct(model, solutions)
    assert kept.tolist() == [1, 2] and assignment.tolist() == [0, 0, 1, 1]


def test_each_solution_is_a_part_of_the_distribution(workers):
    """Two equal parts: ln Z is greater by ln 2 than that of either."""
    model = of_two_patterns()
    solutions = by_tap(model, np.array([PATTERN > 0, PATTERN < 0], dtype=float), EXACTLY, workers)
    exact = np.log(SmallRBM(model.weights, model.visible.intercept, model.hidden.intercept).Z)
    np.testing.assert_allclose(-solutions.free_energy, exact - np.log(2), atol=0.05)
    assert total_log_partition(solutions) == pytest.approx(exact, abs=0.05)


def test_what_has_not_converged_is_no_part():
    solutions = Bunch(
        free_energy=np.array([1.0, -50.0, 2.0]), converged=np.array([True, False, True])
    )
    expected = np.log(np.exp(-1) + np.exp(-2))
    assert total_log_partition(solutions) == pytest.approx(expected, abs=1e-12)
    # Unless nothing has, and then what is finite.
    solutions.update(converged=np.zeros(3, dtype=bool), free_energy=np.array([1.0, np.nan, 2.0]))
    assert total_log_partition(solutions) == pytest.approx(expected, abs=1e-12)


# Against exact sums.


def errors(inference, order, scales, seeds, workers, what="log_partition"):
    """Root mean squares of errors over random models, for each scale of the weights."""
    found = np.empty((len(scales), len(seeds)))
    for i, scale in enumerate(scales):
        for k, seed in enumerate(seeds):
            rbm = random_rbm(10, 6, seed=seed)
            exact = SmallRBM(scale * rbm.W, rbm.b, rbm.c)
            solutions = INFERENCES[inference](
                binary(rbm, scale), exact.V[:1], EXACTLY._replace(order=order), workers
            )
            assert solutions.converged.all()
            if what == "log_partition":
                found[i, k] = -solutions.free_energy[0] - np.log(exact.Z)
            else:
                found[i, k] = np.abs(solutions.visible_mean[0] - exact.p @ exact.V).max()
    return np.sqrt((found**2).mean(axis=1))


@pytest.mark.parametrize(
    ("inference", "order", "slope"), [("tap", 1, 2), ("tap", 2, 3), ("rbp", 2, 3), ("adatap", 2, 3)]
)
def test_error_falls_as_a_power_of_the_coupling(inference, order, slope, workers):
    scales = np.array([0.02, 0.04, 0.08])
    for what in ["log_partition", "mean"]:
        error = errors(inference, order, scales, range(8), workers, what)
        assert np.polyfit(np.log(scales), np.log(error), 1)[0] == pytest.approx(slope, abs=0.4)
    assert error[-1] < 0.01


def test_tap_is_more_accurate_than_naive_mean_field(workers):
    first, second = (errors("tap", order, [0.1], range(8), workers)[0] for order in (1, 2))
    assert second < first / 20


def test_inferences_on_a_tree(workers):
    """A star: one hidden unit. There, relaxed messages err by their expansion only."""
    rng, scales = np.random.default_rng(3), np.array([0.05, 0.1, 0.2])
    W, b, c = rng.standard_normal((1, 7)), rng.standard_normal(7), rng.standard_normal(1)
    for inference in INFERENCES:
        error = []
        for scale in scales:
            exact = SmallRBM(scale * W, b, c)
            model = Model(scale * W, Bernoulli(b), Bernoulli(c))
            solutions = INFERENCES[inference](model, exact.V[:1], EXACTLY, workers)
            means = np.append(exact.p @ exact.V, exact.joint.sum(axis=0) @ exact.H)
            mine = np.append(solutions.visible_mean[0], solutions.hidden_mean[0])
            error.append(np.abs(mine - means).max())
        assert np.polyfit(np.log(scales), np.log(error), 1)[0] > 2.5, inference
        assert error[-1] < 5e-3, inference


def test_inferences_agree_for_all_units(model, workers):
    """Of weak weights, for every pair of laws, and where all start at the same row."""
    model = model._replace(weights=0.1 * model.weights)
    V = rows_of(model, 2)
    reference = by_tap(model, V, EXACTLY, workers)
    for inference in ["rbp", "adatap"]:
        other = INFERENCES[inference](model, V, EXACTLY, workers)
        assert other.converged.all()
        for name in ["free_energy", "visible_mean", "hidden_mean", "hidden_variance"]:
            np.testing.assert_allclose(other[name], reference[name], atol=2e-3)


def strongly_coupled(scale, iteration, workers):
    """Solutions by adaptive TAP of machines with large weights, from v = 0: solution, ln Z."""
    for seed in range(40):
        rbm = random_rbm(6, 4, scale, seed)
        solution = INFERENCES["adatap"](binary(rbm), np.zeros((1, 6)), iteration, workers)
        yield {name: value[0] for name, value in solution.items()}, np.log(rbm.Z)


@pytest.mark.parametrize("scale", [0.1, 0.3, 0.5, 1.0, 3.0])
def test_adaptive_tap_of_gaussian_units(workers, scale):
    """It is exact where their distribution exists; elsewhere it says that it has not converged."""
    weights = scale * np.random.default_rng(0).standard_normal((N_HIDDEN, N_VISIBLE))
    n_units = N_VISIBLE + N_HIDDEN
    U, precision = np.random.default_rng(1).standard_normal(n_units), np.eye(n_units)
    precision[N_VISIBLE:, :N_VISIBLE], precision[:N_VISIBLE, N_VISIBLE:] = -weights, -weights.T
    visible = Gaussian(U[:N_VISIBLE], np.ones(N_VISIBLE))
    model = Model(weights, visible, Gaussian(U[N_VISIBLE:], np.ones(N_HIDDEN)))
    exists = np.linalg.eigvalsh(precision)[0] > 0
    assert exists == (scale < 0.4)
    # With a tolerance of 1e9, everything that has a free energy would have converged.
    iteration = EXACTLY if exists else Iteration(tol=1e9)
    solutions = INFERENCES["adatap"](model, np.zeros((2, N_VISIBLE)), iteration, workers)
    assert (solutions.converged == exists).all()
    if exists:
        mean, (_, log_det) = np.linalg.solve(precision, U), np.linalg.slogdet(precision)
        exact = -0.5 * (U @ mean + n_units * np.log(2 * np.pi) - log_det)
        np.testing.assert_allclose(solutions.free_energy, exact, rtol=1e-10)
        np.testing.assert_allclose(solutions.visible_mean, [mean[:N_VISIBLE]] * 2, rtol=1e-10)
    else:
        assert np.isnan(solutions.free_energy).all()


def test_adaptive_tap_converges_for_strong_couplings(workers):
    """Where the start has no Gaussian, too: it finds ln Z, or that of a part of the mass."""
    found = list(strongly_coupled(3.0, Iteration(max_iter=1000), workers))
    assert all(solution["converged"] for solution, _ in found)
    error = [abs(solution["free_energy"] + log_z) for solution, log_z in found]
    assert max(error) < 0.25 and np.median(error) < 0.03
    found = list(strongly_coupled(30.0, Iteration(max_iter=1000), workers))
    error = [s["free_energy"] + log_z for s, log_z in found if s["converged"]]
    assert len(error) > 30 and min(error) > -0.01 and np.median(error) < 0.01


def test_derivative_of_adaptive_tap_by_the_weights(workers):
    """By finite differences: the means and covariances of `Point`, not W ∘ var(h) var(v)ᵀ."""
    rbm = random_rbm(6, 4, 1.0, 0)
    model, v, step = binary(rbm), np.zeros(6), 1e-5
    point, *_ = iterate(model, v, EXACTLY)
    mean, covariance = point.mean, point.covariance()[6:, :6]
    measured = np.zeros((4, 6))
    for place in np.ndindex(4, 6):
        energies = []
        for sign in (1, -1):
            weights = model.weights.copy()
            weights[place] += sign * step
            moved = model._replace(weights=weights)
            energies += INFERENCES["adatap"](moved, v[None], EXACTLY, workers).free_energy.tolist()
        measured[place] = (energies[1] - energies[0]) / (2 * step)
    means = np.outer(mean[6:], mean[:6])
    np.testing.assert_allclose(measured, means + covariance, atol=1e-7)
    of_tap = model.weights * np.outer(point.variance[6:], point.variance[:6])
    assert np.abs(measured - means - of_tap).max() > 1e-3


# Evidence.


def test_known_units_are_held_fast(model, workers):
    V, known = rows_of(model), np.arange(N_VISIBLE) < 3
    known = np.broadcast_to(known, V.shape)
    solutions = solve(model, V, EXACTLY, workers, evidence=Evidence(known=known))
    np.testing.assert_array_equal(solutions.visible_mean[known], V[known])
    assert (solutions.visible_variance[known] == 0).all()
    assert (solutions.visible_variance[~known] > 0).all()
    all_known = solve(
        model, V, EXACTLY, workers, evidence=Evidence(known=np.ones(V.shape, dtype=bool))
    )
    np.testing.assert_allclose(all_known.hidden_mean, model.mean_hidden(V), atol=1e-10)


def test_outer_fields_are_as_parameters(workers):
    model = binary(random_rbm(6, 4, scale=0.3))
    D = np.random.default_rng(0).standard_normal((5, 6))
    V = rows_of(model)
    solutions = solve(model, V, EXACTLY, workers, evidence=Evidence(D, 0.5))
    for i, d in enumerate(D):
        tilted = model._replace(visible=Bernoulli(model.visible.intercept + d - 0.25))
        other = solve(tilted, V[i : i + 1], EXACTLY, workers)
        np.testing.assert_allclose(solutions.visible_mean[i], other.visible_mean[0], atol=1e-10)
    gaussian = Model(model.weights, truncated_gaussian(6, np.random.default_rng(0)), model.hidden)
    solutions = solve(gaussian, V, EXACTLY, workers, evidence=Evidence(D, 0.5))
    for i, d in enumerate(D):
        law = gaussian.visible
        law = TruncatedGaussian(law.intercept + d, law.precision + 0.5, law.low, law.high)
        other = solve(gaussian._replace(visible=law), V[i : i + 1], EXACTLY, workers)
        np.testing.assert_allclose(solutions.visible_mean[i], other.visible_mean[0], atol=1e-10)


# Gradients and training.


def learn(learner, V, scheme, rate, workers):
    """Learn from a mini-batch by some scheme."""
    learner.scheme = scheme
    learner.learn(learner.in_memory(V), rate, workers)


def learner_of(model):
    """A learner that begins at an RBM, with copies of its parameters."""
    layers = [model.visible.astype(float), model.hidden.astype(float)]
    return Learner([model.weights.copy()], layers, None, SGD())


def mean_tap_log_likelihood(model, V, starts, order, workers):
    solutions = by_tap(model, starts, EXACTLY._replace(order=order), workers)
    assert solutions.converged.all()
    # With ln Z = −F averaged over the solutions, as the gradient has it.
    return -model.free_energy(V).mean() + solutions.free_energy.mean()


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_those_of_the_tap_log_likelihood(model, order, workers):
    V, starts, step = rows_of(model, 7), rows_of(model, 2), 1e-5
    # The step of the weights that a mini-batch makes: the rate is 1, nothing else is added.
    learner = learner_of(model)
    learner.starts = starts
    scheme = Scheme(EXACTLY._replace(order=order), persistent=True, alpha=0.0)
    learn(learner, V, scheme, 1e-3, workers)
    mine = (learner.weights[0] - model.weights) / 1e-3
    for j, i in [(0, 0), (1, 3), (3, 5)]:
        values = []
        for sign in (1, -1):
            W = model.weights.copy()
            W[j, i] += sign * step
            moved = model._replace(weights=W)
            values.append(mean_tap_log_likelihood(moved, V, starts, order, workers))
        assert mine[j, i] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)
    solutions = by_tap(model, starts, EXACTLY._replace(order=order), workers)
    layered = Layered([model.weights], [model.visible, model.hidden])
    slopes = unit_gradients(clamp(layered, V, EXACTLY, workers), solutions, order)
    for layer, slope in zip(("visible", "hidden"), slopes, strict=True):
        for name, gradient in slope.items():
            values = []
            for sign in (1, -1):
                law = getattr(model, layer).astype(float)
                law.parameters()[name][2] += sign * step
                moved = model._replace(**{layer: law})
                values.append(mean_tap_log_likelihood(moved, V, starts, order, workers))
            assert gradient[2] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)


def test_a_mini_batch_moves_all_parameters_up_the_gradient(model, workers):
    V = rows_of(model, 30)
    learner, scheme = learner_of(model), Scheme(EXACTLY, alpha=0.0)
    before = mean_tap_log_likelihood(model, V, V, 2, workers)
    learn(learner, V, scheme, 1e-3, workers)
    assert mean_tap_log_likelihood(learner.model().sides(), V, V, 2, workers) > before


def test_two_mini_batches_of_digits_are_those_of_the_authors(workers):
    """Computed by the authors' code: 3 iterations a mini-batch, second order, momentum 0.5."""
    X = load_digits().data
    X = (X / X.max() > 0.001).astype(float)
    bias = logit(np.clip(X.mean(axis=0), 1e-8, 1 - 1e-8))
    weights = np.random.default_rng(0).normal(0, 1e-16, (64, 64))
    learner = Learner([weights], [Bernoulli(bias), Bernoulli(np.zeros(64))], None, SGD(0.5))
    scheme = Scheme(Iteration(2, 3, 0.0, 0.5), alpha=0.0)
    learn(learner, X[:100], scheme, 0.005, workers)
    assert np.linalg.norm(weights, 2) == pytest.approx(0.007628825568441182, rel=1e-9)
    assert np.linalg.norm(bias) == pytest.approx(38.97452180357592, rel=1e-9)
    learn(learner, X[100:200], scheme, 0.005, workers)
    assert np.linalg.norm(weights, 2) == pytest.approx(0.015478158879359825, rel=1e-9)
    norm = np.linalg.norm(learner.layers[1].intercept)
    assert norm == pytest.approx(1.0779652694386856e-6, rel=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "l2", None])
def test_penalties(penalty, workers):
    model = binary(random_rbm(6, 4, scale=0.3))
    V, steps = rows_of(model, 20), []
    for alpha in [0.0, 0.1]:
        learner = learner_of(model)
        scheme = Scheme(Iteration(max_iter=5), penalty=penalty, alpha=alpha)
        learn(learner, V, scheme, 0.5, workers)
        steps.append(learner.weights[0])
    expected = {"l1": np.sign(model.weights), "l2": model.weights, None: 0 * model.weights}
    np.testing.assert_allclose(steps[1] - steps[0], -0.05 * expected[penalty], atol=1e-12)
