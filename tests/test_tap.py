"""Mean-field inference of all units: against exact sums, closed forms and a general formula."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.utils import Bunch

from mean_field import (
    EXACTLY,
    OF_NUMBERS,
    PAIRS,
    power_of,
    random_layered,
    random_model,
    rows_of,
)
from oracles_rbm import SmallRBM, random_rbm, slopes
from private import TAP, Layered, _second_order, _solutions, _tap, _vamp, by_tap, parts_of
from private import RBMModel as Model
from sklearn_boltz.units import Bernoulli, Gaussian

both_orders = pytest.mark.parametrize("order", [1, 2])


@pytest.fixture(params=PAIRS, ids="-".join)
def model(request):
    return random_model(request.param)


def binary(rbm, scale=1.0):
    return Model(scale * rbm.W, Bernoulli(rbm.b), Bernoulli(rbm.c))


# Solutions.


@both_orders
def test_solutions_satisfy_their_equations(model, order, workers):
    iteration = EXACTLY._replace(order=order)
    solutions = _tap.solve(model, rows_of(model.visible), iteration, workers)
    assert solutions.converged.all() and (solutions.n_iter < EXACTLY.max_iter).all()
    fields = _solutions.fields(model, solutions, order)
    layers = zip((model.visible, model.hidden), fields, strict=True)
    means = [solutions.visible_mean, solutions.hidden_mean]
    variances = [solutions.visible_variance, solutions.hidden_variance]
    for (units, (B, A)), mean, variance in zip(layers, means, variances, strict=True):
        expected = units.moments(B, A)
        assert_allclose(mean, expected[0], atol=1e-10)
        assert_allclose(variance, expected[1], atol=1e-10)
        for unit in np.flatnonzero(units.one_hot):
            assert_allclose(mean[:, units.columns_of(unit)].sum(axis=1), 1)
    # The equations written out, for the hidden units.
    W, (a_v, a_h), (c_v, _) = model.weights, means, variances
    A = -(c_v * are_single(model.visible)) @ (W**2).T * are_single(model.hidden) * (order == 2)
    assert_allclose(a_h, model.hidden.mean(A * a_h + a_v @ W.T, A), atol=1e-10)


def are_single(units):
    """Which numbers are units of their own, which have a second order."""
    return np.repeat(units.widths == 1, units.widths)


def covariances(units, variance):
    """The block of each unit, 0 of a unit of several numbers."""
    variance = variance * are_single(units)
    return [np.diag(variance[units.columns_of(unit)]) for unit in range(units.n_units)]


def plain_free_energy(model, v, c_v, h, c_h):
    """F of one solution by the general formula, unit by unit, with q × q matrices.

    −F = Σ [ln Z(B, A) − B·m + ½ tr A (C + m mᵀ)] + Σ m W m + ½ Σ tr(W C Wᵀ C).
    """
    sides = [(model.visible, v, c_v), (model.hidden, h, c_h)]
    C = [covariances(units, variance) for units, _, variance in sides]
    total, W = h @ model.weights @ v, model.weights
    for (units, m, _), (other, mean, _), own, others, weights in zip(
        sides, sides[::-1], C, C[::-1], (W.T, W), strict=True
    ):
        B, A = weights @ mean, np.zeros(len(units))
        for i in range(units.n_units):
            at = units.columns_of(i)
            blocks = [weights[at, other.columns_of(j)] for j in range(other.n_units)]
            A_i = -sum(w @ c @ w.T for w, c in zip(blocks, others, strict=True))
            A_i = A_i * (units.widths[i] == 1)
            B[at] += A_i @ m[at]
            A[at] = np.diag(A_i)
            second = own[i] + np.outer(m[at], m[at])
            total += -B[at] @ m[at] + 0.5 * np.trace(A_i @ second)
            if units is model.visible:
                total -= 0.5 * np.trace(A_i @ own[i])
        total += units.log_partition(B, A).sum()
    return -total


def test_free_energy_is_that_of_the_general_formula(model, workers):
    solutions = _tap.solve(model, rows_of(model.visible), TAP(max_iter=7), workers)
    names = ["visible_mean", "visible_variance", "hidden_mean", "hidden_variance"]
    beliefs = zip(*(solutions[name] for name in names), strict=True)  # not converged
    expected = [plain_free_energy(model, *of_row) for of_row in beliefs]
    assert_allclose(_solutions.free_energy(model, solutions, 2), expected, rtol=1e-9)


@both_orders
def test_free_energy_is_stationary_at_solutions(model, order, workers):
    iteration = EXACTLY._replace(order=order)
    solutions = _tap.solve(model, rows_of(model.visible), iteration, workers)
    F, rng = _solutions.free_energy(model, solutions, order), np.random.default_rng(2)
    for name in ["visible_mean", "hidden_mean", "visible_variance", "hidden_variance"]:
        change = 1e-4 * rng.standard_normal(solutions[name].shape)
        units = model.visible if name.startswith("visible") else model.hidden
        if name.endswith("mean"):  # means of a one-hot unit still sum to 1
            for unit in np.flatnonzero(units.one_hot):
                columns = units.columns_of(unit)
                change[:, columns] -= change[:, columns].mean(axis=1, keepdims=True)
        up, down = (
            _solutions.free_energy(model, Bunch(**{**solutions, name: moved}), order)
            for moved in (solutions[name] + change, solutions[name] - change)
        )
        assert_allclose(up - down, 0, atol=1e-10)
        assert_allclose(up, F, atol=1e-6)


@pytest.mark.parametrize(
    ("order", "dtype", "n_layers", "given"),
    [
        (1, np.float32, 2, False), (1, np.float64, 3, True), (2, np.float64, 2, False),
        (2, np.float32, 3, True), (2, np.float64, 3, True),
    ],
)  # fmt: skip
def test_one_kernel_iterates_as_the_general_path(order, dtype, n_layers, given, workers):
    """The general one clamps known units, so that it is taken where some might be known."""
    rng = np.random.default_rng(3)
    sizes = [7, 19, 18][:n_layers]
    weights = [rng.normal(0, 0.6, (m, n)).astype(dtype) for n, m in itertools.pairwise(sizes)]
    biases = [rng.normal(0, 0.5, n).astype(dtype) for n in sizes]
    model = Layered(weights, [Bernoulli(b) for b in biases]).sides()
    V = rng.random((60, len(model.visible))).astype(dtype)
    evidence = _tap.Evidence()
    if given:
        evidence = _tap.Evidence(rng.normal(size=V.shape).astype(dtype), rng.random(V.shape))
    iteration = TAP(order, max_iter=200, tol=1e-5, damping=0.3)
    kernel = _tap.solve(model, V, iteration, workers, evidence=evidence if given else None)
    none_known = evidence._replace(known=np.zeros(V.shape, bool))
    general = _tap.solve(model, V, iteration, workers, evidence=none_known)
    assert len(set(general.n_iter)) > 1 and general.converged.any()
    assert (np.abs(kernel.n_iter - general.n_iter) <= (dtype == np.float32)).all()
    for name in ("visible_mean", "hidden_mean", "visible_variance", "hidden_variance"):
        atol = 1e-3 if dtype == np.float32 else 1e-12
        assert_allclose(kernel[name], general[name], atol=atol, err_msg=name)
    assert_allclose(kernel.change, general.change, rtol=0.5 if dtype == np.float32 else 1e-6)


# Two strong patterns that exclude each other: two solutions.
PATTERN = np.array([1.0, 1, 1, 1, -1, -1, -1, -1])
PATTERNS = np.array([PATTERN > 0, PATTERN < 0], dtype=float)


def of_two_patterns():
    W = np.vstack([4 * PATTERN, -4 * PATTERN])
    return Model(W, Bernoulli(-W.sum(axis=0) / 2), Bernoulli(np.full(2, -8.0)))


def test_each_solution_is_a_part_of_the_distribution(workers):
    """Two equal parts: ln Z is greater by ln 2 than that of either."""
    model = of_two_patterns()
    solutions = by_tap(model, PATTERNS, EXACTLY, workers)
    exact = np.log(SmallRBM(model.weights, model.visible.intercept, model.hidden.intercept).Z)
    assert_allclose(-solutions.free_energy, exact - np.log(2), atol=0.05)
    assert _solutions.total_log_partition(solutions) == pytest.approx(exact, abs=0.05)
    # They are distinct, and each is there once.
    solutions = by_tap(model, np.tile(PATTERNS, (2, 1)), EXACTLY, workers)
    kept, assignment = _solutions.distinct(model, solutions)
    assert len(kept) == 2
    assert assignment[0] == assignment[2] != assignment[1] == assignment[3]
    assert (np.diff(solutions.free_energy[kept]) >= 0).all()
    means = solutions.visible_mean
    assert_allclose(means[kept][assignment], means, atol=1e-6)


def test_solutions_are_compared_on_the_scales_of_the_units():
    """A Gaussian unit ranges over six standard deviations: .6 and 6 of these."""
    model = Model(
        np.zeros((2, 1)), Bernoulli(np.zeros(1)), Gaussian(np.zeros(2), np.array([100, 1]))
    )
    hidden = np.array([[0, 0], [0.01, 0.1], [0.02, 0], [0, 0.2]])
    four = dict(visible_mean=np.zeros((4, 1)), hidden_mean=hidden, order=np.full(4, 2))
    solutions = Bunch(**four, free_energy=np.arange(4.0), change=np.zeros(4))
    kept, assignment = _solutions.distinct(model, solutions)
    assert_array_equal(assignment, [0, 0, 1, 2])
    assert_array_equal(kept, [0, 2, 3])
    # Those of another order are others.
    solutions.order[1] = 1
    assert len(_solutions.distinct(model, solutions)[0]) == 4


# Against exact sums.


def adaptive(iteration):
    return iteration._replace(adaptive=True)


@pytest.mark.parametrize(
    ("iteration", "power"), [(EXACTLY._replace(order=1), 2), (EXACTLY, 3), (adaptive(EXACTLY), 3)]
)
def test_error_falls_as_a_power_of_the_coupling(iteration, power, workers):
    """Of ln Z and of the visible means of eight random machines, for each scale of the weights."""
    scales = [0.02, 0.04, 0.08]
    errors = np.empty((2, len(scales), 8))
    for (i, scale), seed in itertools.product(enumerate(scales), range(8)):
        rbm = random_rbm(8, 5, seed=seed)
        exact = SmallRBM(scale * rbm.W, rbm.b, rbm.c)
        found = by_tap(binary(rbm, scale), exact.V[:1], iteration, workers)
        assert found.converged.all()
        errors[0, i, seed] = -found.free_energy[0] - np.log(exact.Z)
        errors[1, i, seed] = np.abs(found.visible_mean[0] - exact.p @ exact.V).max()
    for of_figure in errors:
        assert power_of(scales, of_figure) == pytest.approx(power, abs=0.4)
    assert np.sqrt((errors[1, -1] ** 2).mean()) < 0.01


def exact_log_partition(model):
    """The states of one side, by its units, the other side summed out in closed form."""
    if not model.visible.is_enumerable:
        model = model.transposed()
    of_units = model.visible.unit_states()
    V = np.array([np.concatenate(v) for v in itertools.product(*(s for s, _ in of_units))])
    logs = np.array([sum(w) for w in itertools.product(*(w for _, w in of_units))])
    return logsumexp(logs + model.hidden.log_partition(V @ model.weights.T).sum(axis=1))


def can_be_enumerated(pair):
    return any(units.is_enumerable for units in random_layered(pair).layers)


@pytest.mark.parametrize("pair", list(filter(can_be_enumerated, PAIRS[1:])), ids="-".join)
@pytest.mark.parametrize(("order", "power"), [(1, 2), (2, 3)])
def test_error_of_all_units_falls_as_a_power_of_the_coupling(pair, order, power, workers):
    scales, iteration = [0.02, 0.04, 0.08], EXACTLY._replace(order=order)
    errors = np.empty((len(scales), 8))
    for (i, scale), seed in itertools.product(enumerate(scales), range(8)):
        model = random_model(pair, scale, seed)
        solutions = by_tap(model, rows_of(model.visible, 1), iteration, workers)
        assert solutions.converged.all()
        errors[i, seed] = -solutions.free_energy[0] - exact_log_partition(model)
    # The third order has the third cumulants of both units, and a Gaussian has none. One-hot units
    # have no second order.
    power += order == 2 and "gaussian" in pair
    if not (are_single(model.visible).all() and are_single(model.hidden).all()):
        power = 2
    assert power_of(scales, errors) == pytest.approx(power, abs=0.4)
    assert np.sqrt((errors[-1] ** 2).mean()) < 0.03


# Adaptive TAP.


@pytest.mark.parametrize("scale", [0.3, 0.5, 3.0])
def test_adaptive_tap_of_gaussian_units(workers, scale):
    """It is exact where their distribution exists; elsewhere it says that it has not converged."""
    weights = scale * np.random.default_rng(0).standard_normal((4, 6))
    U, precision = np.random.default_rng(1).standard_normal(10), np.eye(10)
    precision[6:, :6], precision[:6, 6:] = -weights, -weights.T
    model = Model(weights, Gaussian(U[:6], np.ones(6)), Gaussian(U[6:], np.ones(4)))
    exists = np.linalg.eigvalsh(precision)[0] > 0
    assert exists == (scale < 0.4)
    # With a tolerance of 1e9, everything that has a free energy would have converged.
    iteration = EXACTLY if exists else TAP(max_iter=1000, tol=1e9)
    solutions = by_tap(model, np.zeros((2, 6)), adaptive(iteration), workers)
    assert (solutions.converged == exists).all()
    if exists:
        mean, (_, log_det) = np.linalg.solve(precision, U), np.linalg.slogdet(precision)
        exact = -0.5 * (U @ mean + 10 * np.log(2 * np.pi) - log_det)
        assert_allclose(solutions.free_energy, exact, rtol=1e-10)
        assert_allclose(solutions.visible_mean, [mean[:6]] * 2, rtol=1e-10)
    else:
        assert np.isnan(solutions.free_energy).all()


@pytest.mark.parametrize("scale", [3.0, 30.0])
def test_adaptive_tap_converges_for_strong_couplings(scale, workers):
    """Where the start has no Gaussian, too: it finds ln Z, or that of a part of the mass."""
    errors = []
    for seed in range(20):
        rbm = random_rbm(6, 4, scale, seed)
        iteration = TAP(max_iter=1000)
        found = by_tap(binary(rbm), np.zeros((1, 6)), adaptive(iteration), workers)
        if found.converged[0]:
            errors.append(found.free_energy[0] + np.log(rbm.Z))
    if scale == 3:
        assert len(errors) == 20
        assert np.abs(errors).max() < 0.25 and np.median(np.abs(errors)) < 0.03
    else:
        assert len(errors) > 15 and min(errors) > -0.01 and np.median(errors) < 0.01


# Evidence.


@pytest.mark.parametrize("pair", OF_NUMBERS, ids="-".join)
def test_known_units_are_held_fast(pair, workers):
    model = random_model(pair, 0.5)
    V = rows_of(model.visible)
    known = np.broadcast_to(np.arange(4) < 2, V.shape)
    solutions = _tap.solve(model, V, EXACTLY, workers, evidence=_tap.Evidence(known=known))
    assert_array_equal(solutions.visible_mean[known], V[known])
    assert (solutions.visible_variance[known] == 0).all()
    assert (solutions.visible_variance[~known] > 0).all()
    evidence = _tap.Evidence(known=np.ones(V.shape, dtype=bool))
    all_known = _tap.solve(model, V, EXACTLY, workers, evidence=evidence)
    assert_allclose(all_known.hidden_mean, model.mean_hidden(V), atol=1e-10)
    # The evidence has the weight of what it says.
    found = _solutions.free_energy(model, all_known, 2, evidence) - model.visible.log_weight(V)
    assert_allclose(found, model.free_energy(V), atol=1e-8)


# Gaussian units, and what there is not.


def test_rows_without_a_second_order_are_in_the_first(workers):
    """Weights with Σ W² c > V: the Gaussian of the fixed point would have a negative precision."""
    V = np.zeros((2, 2))
    for scale, exists in ((0.5, True), (1.5, False), (20.0, False)):
        # Two hidden units that undo each other leave all means at 0 and 1/2, and c at 1/4.
        W = np.array([[scale, 0], [-scale, 0], [0, scale], [0, -scale]])
        model = Model(W, Gaussian(np.zeros(2), np.ones(2)), Bernoulli(np.zeros(4)))
        first, second = (by_tap(model, V, TAP(order, 1000), workers) for order in (1, 2))
        assert second.converged.all()
        assert (second.visible_variance > 0).all() == exists
        assert np.isfinite(_solutions.total_log_partition(second))
        if not exists:
            assert_allclose(second.free_energy, first.free_energy)
            assert_allclose(second.hidden_mean, first.hidden_mean)


def hopfield(patterns, beta):
    """Bits that remember patterns, by a Gaussian unit for each."""
    n_hidden, n = patterns.shape
    W = 2 * np.sqrt(beta / n) * patterns
    return Model(W, Bernoulli(np.zeros(n)), Gaussian(-W.sum(axis=1) / 2, np.ones(n_hidden)))


TWELVE_BITS = np.array(list(itertools.product([0.0, 1.0], repeat=12)))[::23]


@pytest.mark.parametrize("beta", [2.5, 3.0, 6.0])
def test_starts_reach_the_second_order_beyond_its_limit(beta, workers):
    """Rows far from all patterns, where variances are too large for it."""
    model = hopfield(np.where([np.ones(12), np.arange(12) % 2], 1.0, -1.0), beta)
    solutions, chosen = parts_of(model, TWELVE_BITS, TAP(max_iter=1000), workers)
    assert solutions.converged.all() and (chosen.order == 2).all()
    assert (solutions.order == 2).mean() > 0.3
    exact = exact_log_partition(model)
    assert _solutions.total_log_partition(chosen) == pytest.approx(exact, abs=0.01)
    # Those between patterns have none, and would have a second share of what is there already.
    kept = _solutions.select(solutions, _solutions.distinct(model, solutions)[0])
    assert set(kept.order) == {1, 2} and len(chosen.order) == 4


@pytest.mark.parametrize("beta", [0.8, 0.9, 1.0])
@pytest.mark.parametrize("n_patterns", [1, 2, 3])
def test_adaptive_tap_is_near_where_no_start_has_a_second_order(n_patterns, beta, workers):
    patterns = np.random.default_rng(2).choice([-1.0, 1.0], size=(n_patterns, 12))
    model = hopfield(patterns, beta)
    _, plain = parts_of(model, TWELVE_BITS, TAP(max_iter=1000), workers)
    _, chosen = parts_of(model, TWELVE_BITS, TAP(max_iter=1000, adaptive=True), workers)
    exact = exact_log_partition(model)
    errors = [_solutions.total_log_partition(s) - exact for s in (plain, chosen)]
    assert (plain.order == 1).all() and abs(errors[0]) > 0.1 > abs(errors[1])


def test_units_keep_a_quarter_of_their_precision_on_the_way():
    """Also where a solution would take more of it."""
    model, n_rows = hopfield(np.ones((1, 12)), 2.0), len(TWELVE_BITS)
    visible, hidden, *_ = _tap.Scratch.of(model, n_rows, 2)
    limits, squares = _tap.Limits.of(model, n_rows), _second_order.negative_squares(model)
    _tap.start_at(model, TWELVE_BITS, visible, hidden)
    were_beyond = np.zeros(n_rows, bool)
    for _ in range(20):
        _tap.iterate(model, squares, visible, hidden, 0.5, limits=limits)
        were_beyond |= limits.beyond
    assert were_beyond.mean() > 0.2
    assert hidden.variance.max() <= 4 and 3.9 < hidden.variance[limits.beyond].min()


def test_solutions_of_the_first_order_count_alone(workers):
    """Where those of the second are a small part of the distribution."""
    model = hopfield(np.random.default_rng(2).choice([-1.0, 1.0], size=(3, 12)), 4.0)
    solutions, chosen = parts_of(model, TWELVE_BITS, TAP(max_iter=1000), workers)
    assert 0.2 < (solutions.order == 2).mean() < 0.4 and (chosen.order == 1).all()
    exact = exact_log_partition(model)
    assert _solutions.total_log_partition(chosen) == pytest.approx(exact, abs=0.1)
    kept = _solutions.select(solutions, _solutions.distinct(model, solutions)[0])
    assert logsumexp(-kept.free_energy[kept.order == 2]) < exact - 3


def test_observations_give_units_precision(workers):
    """With a noisy value of each there is a second order, where there is none without."""
    W = 1.5 * np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    model = Model(W, Gaussian(np.zeros(2), np.ones(2)), Bernoulli(np.zeros(4)))
    for precision, order in ((0.0, 1), (3.0, 2)):
        evidence = _tap.Evidence(np.zeros((3, 2)), np.full((3, 2), precision))
        solutions = _tap.solve(model, np.zeros((3, 2)), EXACTLY, workers, evidence=evidence)
        assert (solutions.order == order).all()


@both_orders
def test_weights_too_large_for_two_gaussian_layers(order, workers):
    gaussian = Gaussian(np.ones(2), np.ones(2))
    model = Model(np.full((2, 2), 3.0), gaussian, gaussian)
    solutions = by_tap(model, np.ones((3, 2)), TAP(order, 2000), workers)
    assert not solutions.converged.any()
    assert np.isfinite(_solutions.total_log_partition(solutions))


def test_gaussian_pair_of_layers_is_nearly_exact(workers):
    """ln Z of a Gaussian in closed form, which exists for small weights."""
    rng, scales, errors = np.random.default_rng(0), [0.02, 0.04, 0.08], []
    visible, hidden = (Gaussian(rng.normal(size=n), rng.uniform(1, 2, n)) for n in (3, 2))
    W = rng.normal(size=(2, 3))
    u = np.concatenate([visible.intercept, hidden.intercept])
    for scale in scales:
        J = np.diag(np.concatenate([visible.precision, hidden.precision]))
        J[3:, :3], J[:3, 3:] = -scale * W, -scale * W.T
        exact = 0.5 * (u @ np.linalg.solve(J, u) - np.linalg.slogdet(J / (2 * np.pi))[1])
        model = Model(scale * W, visible, hidden)
        solutions = by_tap(model, np.zeros((1, 3)), EXACTLY, workers)
        assert solutions.converged.all()
        errors.append([-solutions.free_energy[0] - exact])
    assert power_of(scales, errors) == pytest.approx(4, abs=0.4)


def test_derivative_of_adaptive_tap_by_the_weights(workers):
    """By finite differences: the means and covariances of `Point`, not W ∘ var(h) var(v)ᵀ."""
    rbm = random_rbm(6, 4, 1.0, 0)
    model, v = binary(rbm), np.zeros(6)
    point, *_ = _vamp.iterate(model, v, EXACTLY)
    mean, covariance = point.mean, point.covariance()[6:, :6]

    def log_partition():
        return -by_tap(model, v[None], adaptive(EXACTLY), workers).free_energy[0]

    measured = slopes(log_partition, model.weights)
    means = np.outer(mean[6:], mean[:6])
    assert_allclose(measured, means + covariance, atol=1e-7)
    of_tap = model.weights * np.outer(point.variance[6:], point.variance[:6])
    assert np.abs(measured - means - of_tap).max() > 1e-3
    # Of several points, the mean; where there is no Gaussian, as of TAP.
    found = _vamp.mean_covariance(model, [point, point, point._replace(factor=None)])
    assert_allclose(found, (2 * covariance + of_tap) / 3, rtol=1e-12)
