"""Mean field with categorical and Gaussian units: against enumeration and finite differences."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.utils import Bunch

from private import (
    INFERENCES,
    SGD,
    Evidence,
    Features,
    Iteration,
    Layered,
    Stream,
    Workers,
    _second_order,
    act,
    by_tap,
    clamp,
    differences,
    distinct,
    free_energy,
    gathered,
    grouped,
    solve,
    spreads,
    total_log_partition,
    unit_gradients,
)
from private import RBMModel as Model
from private import TAPLearner as Learner
from private import TAPScheme as Scheme
from sklearn_boltz import TAPDBM, TAPRBM
from sklearn_boltz.units import (
    Bernoulli,
    Categorical,
    Gaussian,
    Stacked,
    TruncatedGaussian,
    UnitType,
)

EXACTLY = Iteration(max_iter=5000, tol=1e-26)


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as workers:
        yield workers


@pytest.fixture(params=[8, 2], ids=["pairs", "numbers"])
def most_paired(request, monkeypatch):
    """Units of 3 numbers by pairs of them, and by the numbers themselves."""
    monkeypatch.setattr(_second_order, "MOST_PAIRED", request.param)
    return request.param


def bits(n, rng):
    return Bernoulli(rng.standard_normal(n))


def words(*widths):
    return lambda rng: Categorical(widths, rng.standard_normal(sum(widths)))


def mixed(rng):
    return Stacked([bits(2, rng), words(3, 2)(rng), Gaussian(rng.normal(size=1), np.full(1, 4.0))])


# Sides of a model: what is made from a generator.
SIDES = {
    "bits": lambda rng: bits(4, rng),
    "words": words(3, 2, 4),
    "one word": words(3, 3),
    "bits and words": lambda rng: Stacked([bits(2, rng), words(3, 1, 4)(rng)]),
    "mixed": mixed,
    "gaussian": lambda rng: Gaussian(rng.normal(size=3), rng.uniform(0.5, 2, 3)),
    "truncated": lambda rng: TruncatedGaussian(rng.normal(size=3), rng.normal(size=3), -0.5, 1.0),
}
PAIRS = [
    ("words", "bits"),
    ("bits and words", "bits"),
    ("bits", "words"),
    ("words", "one word"),
    ("bits and words", "bits and words"),
    ("mixed", "bits"),
    ("mixed", "words"),
    ("gaussian", "bits"),
    ("gaussian", "words"),
    ("words", "gaussian"),
    ("truncated", "words"),
    ("mixed", "truncated"),
]


def random_model(pair, scale=0.3, seed=0):
    rng = np.random.default_rng(seed)
    visible, hidden = (SIDES[name](rng) for name in pair)
    return Model(scale * rng.standard_normal((len(hidden), len(visible))), visible, hidden)


@pytest.fixture(params=PAIRS, ids="-".join)
def model(request):
    return random_model(request.param)


def states_of(units):
    """All states of a layer of finitely many, by its units, and their log-weights."""
    of_units = units.unit_states()
    rows = [np.concatenate(parts) for parts in itertools.product(*(s for s, _ in of_units))]
    logs = [sum(parts) for parts in itertools.product(*(w for _, w in of_units))]
    return np.array(rows), np.array(logs)


def exact_log_partition(model):
    """The enumeration of one side, the other one summed out in closed form."""
    if not model.visible.is_enumerable:
        model = model.transposed()
    V, logs = states_of(model.visible)
    return logsumexp(logs + model.hidden.log_partition(V @ model.weights.T).sum(axis=1))


def rows_of(model, n=5, seed=0):
    """Rows of values of the visible units, drawn without a field."""
    return model.visible.sample(np.zeros((n, len(model.visible))), Stream(seed))


# Fixed points.


def test_units_of_the_other_kind_sum_to_one(model, workers):
    solutions = solve(model, rows_of(model), EXACTLY, workers)
    assert solutions.converged.all()
    for units, means in (
        (model.visible, solutions.visible_mean),
        (model.hidden, solutions.hidden_mean),
    ):
        for unit in np.flatnonzero(units.one_hot):
            np.testing.assert_allclose(means[:, units.columns_of(unit)].sum(axis=1), 1)


def covariances(units, mean, variance):
    """The block of each unit."""
    blocks = []
    for unit in range(units.n_units):
        columns = units.columns_of(unit)
        m = mean[columns]
        one_hot = np.diag(m) - np.outer(m, m)
        blocks.append(one_hot if units.one_hot[unit] else np.diag(variance[columns]))
    return blocks


def plain_free_energy(model, v, c_v, h, c_h):
    """F of one solution by the general formula, unit by unit, with q × q matrices.

    −F = Σ [ln Z(B, A) − B·m + ½ tr A (C + m mᵀ)] + Σ m W m + ½ Σ tr(W C Wᵀ C).
    """
    sides = [(model.visible, v, c_v), (model.hidden, h, c_h)]
    C = [covariances(*side) for side in sides]
    total, W = h @ model.weights @ v, model.weights
    for (units, m, _), (other, mean, _), own, others, weights in zip(
        sides, sides[::-1], C, C[::-1], (W.T, W), strict=True
    ):
        B, A = weights @ mean, np.zeros(len(units))
        for i in range(units.n_units):
            at = units.columns_of(i)
            blocks = [weights[at, other.columns_of(j)] for j in range(other.n_units)]
            A_i = -sum(w @ c @ w.T for w, c in zip(blocks, others, strict=True))
            B[at] += A_i @ m[at]
            A[at] = np.diag(A_i)
            second = own[i] + np.outer(m[at], m[at])
            total += -B[at] @ m[at] + 0.5 * np.trace(A_i @ second)
            if units is model.visible:
                total -= 0.5 * np.trace(A_i @ own[i])
        total += units.log_partition(B, A).sum()
    return -total


def test_free_energy_is_that_of_the_general_formula(model, most_paired, workers):
    solutions = solve(model, rows_of(model), Iteration(max_iter=7), workers)  # not converged
    expected = [
        plain_free_energy(model, *row)
        for row in zip(
            solutions.visible_mean, solutions.visible_variance, solutions.hidden_mean,
            solutions.hidden_variance, strict=True,
        )
    ]  # fmt: skip
    found = free_energy(model, solutions, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_free_energy_is_stationary_at_solutions(model, order, most_paired, workers):
    solutions = solve(model, rows_of(model), EXACTLY._replace(order=order), workers)
    assert solutions.converged.all()
    F = free_energy(model, solutions, order)
    rng = np.random.default_rng(2)
    for name in ["visible_mean", "hidden_mean", "visible_variance", "hidden_variance"]:
        change = 1e-4 * rng.standard_normal(solutions[name].shape)
        units = model.visible if name.startswith("visible") else model.hidden
        if name.endswith("mean"):  # means of a one-hot unit still sum to 1
            for unit in np.flatnonzero(units.one_hot):
                columns = units.columns_of(unit)
                change[:, columns] -= change[:, columns].mean(axis=1, keepdims=True)
        moved = [type(solutions)(**{**solutions, name: solutions[name] + s * change})
                 for s in (1, -1)]  # fmt: skip
        slope = free_energy(model, moved[0], order) - free_energy(model, moved[1], order)
        np.testing.assert_allclose(slope, 0, atol=1e-10)
        np.testing.assert_allclose(free_energy(model, moved[0], order), F, atol=1e-6)


def test_both_descriptions_of_a_unit_agree(model, monkeypatch, workers):
    V, found = rows_of(model), []
    for most in (8, 2):
        monkeypatch.setattr(_second_order, "MOST_PAIRED", most)
        found.append(by_tap(model, V, Iteration(max_iter=6), workers))
    for name in ["visible_mean", "hidden_mean", "hidden_variance", "free_energy"]:
        np.testing.assert_allclose(found[0][name], found[1][name], atol=1e-12)


ENUMERABLE = [pair for pair in PAIRS if pair != ("mixed", "truncated")]


@pytest.mark.parametrize("pair", ENUMERABLE, ids="-".join)
@pytest.mark.parametrize(("order", "slope"), [(1, 2), (2, 3)])
def test_error_falls_as_a_power_of_the_coupling(pair, order, slope, workers):
    scales, seeds = np.array([0.02, 0.04, 0.08]), range(8)
    errors = np.empty((len(scales), len(seeds)))
    for i, scale in enumerate(scales):
        for k in seeds:
            model = random_model(pair, scale, seed=k)
            solutions = by_tap(model, rows_of(model, 1), EXACTLY._replace(order=order), workers)
            assert solutions.converged.all()
            errors[i, k] = -solutions.free_energy[0] - exact_log_partition(model)
    error = np.sqrt((errors**2).mean(axis=1))
    # The third order has the third cumulants of both units, and a Gaussian has none.
    slope += order == 2 and "gaussian" in pair
    assert np.polyfit(np.log(scales), np.log(error), 1)[0] == pytest.approx(slope, abs=0.4)
    assert error[-1] < 0.03


# The same models by other parameters.


def binary_pair(rng):
    """A model of bits, and the same one with units of two states in both layers."""
    W, b, c = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=4)
    # Another constant for each pair of units: what is added to all states of a unit goes to the
    # fields of the other side.
    shift = rng.normal(size=(4, 2, 6, 1)), rng.normal(size=(4, 1, 6, 2))
    V = np.zeros((4, 2, 6, 2))
    V[:, 1, :, 1] = W
    V = V + shift[0] + shift[1]
    u, w = np.zeros((6, 2)), np.zeros((4, 2))
    u[:, 1], w[:, 1] = b, c
    w -= shift[0].sum(axis=(2, 3))
    u -= shift[1].sum(axis=(0, 1))
    words = Model(V.reshape(8, 12), Categorical(2, u.ravel()), Categorical(2, w.ravel()))
    return Model(W, Bernoulli(b), Bernoulli(c)), words


def as_words(V):
    return np.stack([1 - V, V], axis=-1).reshape(len(V), -1)


@pytest.mark.parametrize("damping", [0.5, 0.1])
def test_two_states_are_a_bit(damping, workers):
    """To rounding, and in each iteration: the expansion does not depend on the parametrisation."""
    bit, word = binary_pair(np.random.default_rng(0))
    V = np.random.default_rng(1).integers(2, size=(7, 6)).astype(float)
    known = np.arange(6) < np.array([0, 2, 4, 6, 0, 1, 2])[:, np.newaxis]
    V[2] = 0.3  # known shares
    for evidence in (None, known):
        mine, other = (
            solve(model, rows, Iteration(2, 6, 0, damping), workers,
                  evidence=None if its is None else Evidence(known=its))
            for model, rows, its in (
                (bit, V, evidence),
                (word, as_words(V), None if evidence is None else np.repeat(known, 2, axis=1)),
            )
        )  # fmt: skip
        for name in ("visible_mean", "hidden_mean"):
            np.testing.assert_allclose(other[name], as_words(mine[name]), atol=1e-12)
        if evidence is None:
            F = free_energy(bit, mine, 2)
            np.testing.assert_allclose(free_energy(word, other, 2), F, atol=1e-10)


def test_a_constant_for_all_states_of_a_unit_changes_nothing(model, most_paired, workers):
    V, rng = rows_of(model), np.random.default_rng(3)
    before = by_tap(model, V, Iteration(max_iter=5), workers)
    W, hidden = model.weights.copy(), model.hidden.astype(float)
    parameters = list(hidden.parameters().values())
    if isinstance(hidden, Stacked) or not model.visible.one_hot.any():
        pytest.skip("nothing to shift, or shifts that have no place")
    unit = int(np.flatnonzero(model.visible.one_hot)[0])
    shift = rng.normal(size=(len(W), 1))
    W[:, model.visible.columns_of(unit)] += shift
    parameters[0] -= shift[:, 0]
    after = by_tap(Model(W, model.visible, hidden), V, Iteration(max_iter=5), workers)
    for name in ("visible_mean", "hidden_mean", "free_energy"):
        np.testing.assert_allclose(after[name], before[name], atol=1e-10)


# Gradients.


def mean_tap_log_likelihood(model, V, starts, order, workers):
    solutions = by_tap(model, starts, EXACTLY._replace(order=order), workers)
    assert solutions.converged.all()
    return -model.free_energy(V).mean() + solutions.free_energy.mean()


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_those_of_the_tap_log_likelihood(model, order, most_paired, workers):
    V, starts, step = rows_of(model, 7), rows_of(model, 2, seed=1), 1e-5
    layers = [model.visible.astype(float), model.hidden.astype(float)]
    scheme = Scheme(EXACTLY._replace(order=order), persistent=True, alpha=0.0)
    learner = Learner([model.weights.copy()], layers, scheme, SGD())
    learner.starts = starts
    learner.learn(learner.in_memory(V), 1e-3, workers)
    mine = (learner.weights[0] - model.weights) / 1e-3

    def slope(moved_by):
        values = [mean_tap_log_likelihood(moved_by(s * step), V, starts, order, workers)
                  for s in (1, -1)]  # fmt: skip
        return (values[0] - values[1]) / (2 * step)

    for j, i in [(0, 0), (1, 2), (2, 1)]:

        def with_weight(change, j=j, i=i):
            W = model.weights.copy()
            W[j, i] += change
            return model._replace(weights=W)

        assert mine[j, i] == pytest.approx(slope(with_weight), abs=1e-6)
    solutions = by_tap(model, starts, EXACTLY._replace(order=order), workers)
    layered = Layered([model.weights], [model.visible, model.hidden])
    slopes = unit_gradients(clamp(layered, V, EXACTLY, workers), solutions, order)
    for layer, its in zip(("visible", "hidden"), slopes, strict=True):
        for name, gradient in its.items():

            def with_parameter(change, layer=layer, name=name):
                units = getattr(model, layer).astype(float)
                units.parameters()[name][-1] += change
                return model._replace(**{layer: units})

            assert gradient[-1] == pytest.approx(slope(with_parameter), abs=1e-6)


def random_layered(scale=0.3, seed=0):
    """Categories and bits in three layers: the sides of the model are mixed."""
    rng = np.random.default_rng(seed)
    layers = [SIDES["bits and words"](rng), words(3, 2)(rng), bits(3, rng), words(4)(rng)]
    sizes = [len(units) for units in layers]
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return Layered([scale * rng.standard_normal(pair) for pair in pairs], layers)


def as_one_matrix(layered):
    """The same model with its weights as an ordinary array."""
    model = layered.sides()
    return model._replace(weights=np.asarray(model.weights))


def test_sides_of_several_layers(most_paired, workers):
    layered = random_layered()
    blocks, whole = layered.sides(), as_one_matrix(layered)
    found = [by_tap(model, rows_of(whole), Iteration(max_iter=6), workers)
             for model in (blocks, whole)]  # fmt: skip
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], atol=1e-12)


def test_gradients_of_several_layers(most_paired, workers):
    layered, step = random_layered(), 1e-5
    V = rows_of(Model(None, layered.layers[0], None), 6)

    def tap_log_likelihood(layered):
        clamped = clamp(layered, V, EXACTLY, workers)
        starts = clamped.visible_side()
        solutions = by_tap(layered.sides(), starts, EXACTLY, workers)
        assert clamped.converged.all() and solutions.converged.all()
        return -clamped.free_energy(2).mean() + solutions.free_energy.mean()

    weights = [W.copy() for W in layered.weights]
    layers = [units.astype(float) for units in layered.layers]
    learner = Learner(weights, layers, Scheme(EXACTLY, alpha=0.0), SGD())
    learner.learn(learner.in_memory(V), 1e-3, workers)
    for k, (before, after) in enumerate(zip(layered.weights, learner.weights, strict=True)):
        for place in [(0, 0), (1, 2)]:
            values = []
            for sign in (1, -1):
                moved = [W.copy() for W in layered.weights]
                moved[k][place] += sign * step
                values.append(tap_log_likelihood(layered._replace(weights=moved)))
            slope = (values[0] - values[1]) / (2 * step)
            assert (after - before)[place] / 1e-3 == pytest.approx(slope, abs=1e-6)
    for units, mine in zip(layered.layers, learner.layers, strict=True):
        for name, value in mine.parameters().items():
            values = []
            for sign in (1, -1):
                other = units.astype(float)
                other.parameters()[name][1] += sign * step
                others = [other if its is units else its for its in layered.layers]
                values.append(tap_log_likelihood(layered._replace(layers=others)))
            slope = (values[0] - values[1]) / (2 * step)
            change = (value - units.parameters()[name])[1] / 1e-3
            assert change == pytest.approx(slope, abs=1e-6)


# Gaussian units, and what there is not.


def test_rows_without_a_second_order_are_in_the_first(workers):
    """Weights with Σ W² c > V: the Gaussian of the fixed point would have a negative precision."""
    V = np.zeros((2, 2))
    for scale, exists in ((0.5, True), (1.5, False), (20.0, False)):
        # Two hidden units that undo each other leave all means at 0 and 1/2, and c at 1/4.
        W = np.array([[scale, 0], [-scale, 0], [0, scale], [0, -scale]])
        model = Model(W, Gaussian(np.zeros(2), np.ones(2)), Bernoulli(np.zeros(4)))
        first, second = (by_tap(model, V, Iteration(order), workers) for order in (1, 2))
        assert second.converged.all()
        assert (second.visible_variance > 0).all() == exists
        assert np.isfinite(total_log_partition(second))
        if not exists:
            np.testing.assert_allclose(second.free_energy, first.free_energy)
            np.testing.assert_allclose(second.hidden_mean, first.hidden_mean)


def test_rows_leave_the_second_order_by_themselves(workers):
    """Two clusters: rows in them keep the second order, those between them do not."""
    visible = Gaussian(np.full(6, -1.3), np.ones(6))
    model = Model(np.full((2, 6), 1.3), visible, Bernoulli(np.zeros(2)))
    V = np.outer([-1.0, 0.0, 1.0], np.full(6, 1.3))  # the middle leaves hidden units undecided
    together = by_tap(model, V, EXACTLY, workers)
    assert (together.visible_variance > 0).all(axis=1).tolist() == [True, False, True]
    for i in range(3):
        alone = by_tap(model, V[i : i + 1], EXACTLY, workers)
        for name in ("free_energy", "visible_mean", "hidden_mean"):
            np.testing.assert_allclose(alone[name][0], together[name][i], atol=1e-9)
    known = np.ones(V.shape, dtype=bool)  # of known units, the precision does not matter
    found = solve(model, V, EXACTLY, workers, evidence=Evidence(known=known))
    np.testing.assert_allclose(found.hidden_mean, model.mean_hidden(V), atol=1e-9)
    # Between the clusters, only the known ones would lose their precision, or only the other.
    known[:, 5] = False
    for precision, stays in [
        ([1.0, 1, 1, 1, 1, 100], True),
        ([100.0, 100, 100, 100, 100, 1], False),
    ]:
        units = Gaussian(visible.intercept, np.array(precision))
        evidence = Evidence(known=known[1:2])
        found = solve(model._replace(visible=units), V[1:2], EXACTLY, workers, evidence=evidence)
        assert (found.hidden_variance > 0).all() == stays


@pytest.mark.parametrize("order", [1, 2])
def test_weights_too_large_for_two_gaussian_layers(order, workers):
    gaussian = Gaussian(np.ones(2), np.ones(2))
    model = Model(np.full((2, 2), 3.0), gaussian, gaussian)
    solutions = by_tap(model, np.ones((3, 2)), Iteration(order, 2000), workers)
    assert not solutions.converged.any()
    assert np.isfinite(total_log_partition(solutions))


def test_gaussian_pair_of_layers_is_nearly_exact(workers):
    """ln Z of a Gaussian in closed form, which exists for small weights."""
    rng = np.random.default_rng(0)
    visible, hidden = (Gaussian(rng.normal(size=n), rng.uniform(1, 2, n)) for n in (3, 2))
    errors, scales = [], np.array([0.02, 0.04, 0.08])
    W = rng.normal(size=(2, 3))
    for scale in scales:
        model = Model(scale * W, visible, hidden)
        J = np.diag(np.concatenate([visible.precision, hidden.precision]))
        J[3:, :3], J[:3, 3:] = -scale * W, -scale * W.T
        u = np.concatenate([visible.intercept, hidden.intercept])
        exact = 0.5 * (u @ np.linalg.solve(J, u) - np.linalg.slogdet(J / (2 * np.pi))[1])
        solutions = by_tap(model, np.zeros((1, 3)), EXACTLY, workers)
        assert solutions.converged.all()
        errors.append(abs(-solutions.free_energy[0] - exact))
    assert np.polyfit(np.log(scales), np.log(errors), 1)[0] == pytest.approx(4, abs=0.4)


def test_solutions_of_gaussian_units_are_told_apart():
    units = Gaussian(np.zeros(2), np.array([1.0, 100.0]))
    model = Model(np.zeros((1, 2)), units, Bernoulli(np.zeros(1)))
    # 2 % of six standard deviations, 1 and 0.1, are 0.12 and 0.012.
    mean = np.array([[0.0, 0.0], [0.05, 0.0], [0.0, 0.05], [1.0, 0.0], [0.0, 0.01]])
    solutions = Bunch(
        visible_mean=mean, hidden_mean=np.zeros((5, 1)), change=np.zeros(5),
        free_energy=np.arange(5.0),
    )  # fmt: skip
    kept, assignment = distinct(model, solutions)
    assert kept.tolist() == [0, 2, 3]
    assert assignment.tolist() == [0, 0, 1, 2, 0]


class Pair(UnitType):
    """Units of two numbers that are not one-hot."""

    width, bounds = 2, (0.0, 1.0)

    def __init__(self, intercept):
        self.intercept = intercept

    def parameters(self):
        return {"intercept": self.intercept}

    def moments(self, field, precision=0.0):
        mean = 1 / (1 + np.exp(-self.intercept - field))
        return mean, mean * (1 - mean)

    def log_partition(self, field, precision=0.0):
        return np.logaddexp(0, self.intercept + field).reshape(len(field), -1, 2).sum(axis=-1)


def test_what_wide_units_cannot_do(workers):
    model = Model(np.zeros((2, 4)), Pair(np.zeros(4)), Bernoulli(np.zeros(2)))
    with pytest.raises(ValueError, match="must be one-hot. Set order=1"):
        by_tap(model, np.zeros((3, 4)), Iteration(), workers)
    solutions = by_tap(model, np.zeros((3, 4)), Iteration(order=1), workers)
    np.testing.assert_allclose(solutions.free_energy, -6 * np.log(2))
    model = random_model(("words", "bits"))
    for name in ("rbp", "adatap"):
        with pytest.raises(ValueError, match="inference='tap'"):
            INFERENCES[name](model, rows_of(model), Iteration(), workers)


# Kernels and small parts.


def pairs_of(features):
    """The pairs of columns of the features, (a, a) for a single one; written in plain Python."""
    pairs = []
    for start, width in zip(features.starts, features.widths, strict=False):
        columns = range(start, start + width)
        paired = 1 < width <= features.most
        pairs += itertools.combinations(columns, 2) if paired else [(a, a) for a in columns]
    return np.array(pairs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    most=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_features_equal_lines_of_numpy(dtype, widths, most, seed):
    rng, widths = np.random.default_rng(seed), np.array(widths)
    features = Features(widths, most)
    n, pairs = features.n_columns, pairs_of(features)
    assert features.n_features == len(pairs)
    single = np.repeat(widths == 1, widths)
    mean, variance, field, W = (rng.random((3, n)).astype(dtype) for _ in range(4))
    variance[rng.random((3, n)) < 0.2] = 0
    a, b = pairs.T
    varies = np.where(variance > 0, mean, 0)
    spread = np.where(a == b, np.where(single[a], variance[:, a], varies[:, a]),
                      varies[:, a] * varies[:, b])  # fmt: skip
    np.testing.assert_allclose(features.spread(mean, variance), spread, rtol=1e-6)
    expected = np.where(a == b, W[:, a], W[:, a] - W[:, b])
    np.testing.assert_array_equal(features.differences(W), expected)
    D = rng.random((2, len(pairs))).astype(dtype)
    transposed = D @ features.differences(np.eye(n, dtype=dtype)).T
    np.testing.assert_allclose(features.gathered(D), transposed, atol=1e-5)
    A = rng.random((3, len(pairs))).astype(dtype)
    moved, precision = field.copy(), np.zeros((3, n))
    for k, (i, j) in enumerate(pairs):
        if single[i]:
            precision[:, i] = A[:, k]
            moved[:, i] += A[:, k] * mean[:, i]
        elif i == j:
            moved[:, i] -= A[:, k] / 2
        else:
            moved[:, i] -= A[:, k] * mean[:, j] / 2
            moved[:, j] -= A[:, k] * mean[:, i] / 2
    found = np.broadcast_to(features.act(A, mean, field), (3, n))
    np.testing.assert_allclose(field, moved, atol=1e-5)
    np.testing.assert_allclose(found, precision)


def test_kernels_refuse_arrays_that_do_not_fit():
    starts, ones = np.array([0, 1, 4], dtype=np.intp), np.ones((2, 4))
    for n_features in (3, 5):
        with pytest.raises(ValueError, match="features"):
            spreads(ones, ones, starts, 8, np.empty((2, n_features)))
        with pytest.raises(ValueError, match="features"):
            act(np.empty((2, n_features)), ones, starts, 8, ones, ones)
        with pytest.raises(ValueError, match="features"):
            differences(ones, starts, 8, np.empty((2, n_features)))
        with pytest.raises(ValueError, match="features"):
            gathered(np.empty((2, n_features)), starts, 8, ones)
    with pytest.raises(ValueError, match="shapes"):
        spreads(ones, ones[:1], starts, 8, np.empty((2, 4)))


def test_units_in_groups_have_the_same_moments():
    rng = np.random.default_rng(0)
    units = Stacked([bits(2, rng), words(3)(rng), bits(1, rng), words(2, 4)(rng),
                     Gaussian(np.zeros(2), np.ones(2)), words(3)(rng)])  # fmt: skip
    field, A = rng.normal(size=(2, 5, len(units)))
    for precision in (A.clip(0), 0.0):
        for found, expected in zip(
            grouped(units).moments(field, precision), units.moments(field, precision), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    assert grouped(units.layers[0]) is units.layers[0]


# Estimators.


@pytest.fixture(scope="module")
def table():
    """Words, truth values and an amount that hang together by a hidden class."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=400)
    kept = rng.random((400, 4)) < 0.85
    colour = np.where(kept[:, 0], kind, rng.integers(3, size=400))
    size = np.where(kept[:, 1], kind + 1, rng.integers(4, size=400))
    return pd.DataFrame({
        "colour": np.array(["red", "green", "blue"])[colour],
        "sweet": np.where(kept[:, 2], kind == 0, rng.random(400) < 0.5),
        "size": np.array(["s", "m", "l", "xl"])[size],
        "weight": 50 + 10 * kind + rng.normal(0, 3, 400),
    })  # fmt: skip


VISIBLE = {"weight": "gaussian"}


@pytest.fixture(scope="module")
def fitted(table):
    return TAPRBM(
        6, visible=VISIBLE, learning_rate=0.2, max_iter=25, batch_size=50, random_state=0
    ).fit(table)


def test_a_table_is_learned(table, fitted):
    history = fitted.history_["tap_log_likelihood"]
    assert history[-1] > history[0] + 1
    assert fitted.history_["share_converged"][-1] > 0.5
    tap, exact = (fitted.log_partition(method).value for method in ("tap", "exact"))
    assert tap == pytest.approx(exact, abs=0.5)
    solutions = fitted.tap_solutions(table)
    assert solutions.visible_mean.shape[1] == len(fitted.visible_names_) == 9
    assert 1 <= len(solutions.free_energy) <= 20


def test_a_long_training_stays_finite(table):
    """At a large rate, for much longer than it takes to learn clusters that are far apart."""
    model = TAPRBM(
        6, visible=VISIBLE, learning_rate=0.2, max_iter=100, batch_size=50, random_state=0
    ).fit(table)
    independent = TAPRBM(6, visible=VISIBLE, max_iter=0).fit(table)
    assert model.score(table) > independent.score(table) + 0.5


def test_missing_cells_of_a_table(table, fitted):
    holes = table[:60].copy()
    holes["colour"] = None
    for how in ("mean", "mode"):
        filled = fitted.impute(holes, how=how, method="tap")
        # By chance alone, two thirds would be wrong.
        assert (filled["colour"] == table["colour"][:60]).mean() > 0.6


def test_noisy_categories(table):
    """Through a symmetric channel: with the model closer than observed, and exact without."""
    words = table.drop(columns="weight")
    model = TAPRBM(8, learning_rate=0.2, max_iter=25, batch_size=50, random_state=0).fit(words)
    noisy, rng = words.copy(), np.random.default_rng(1)
    flipped = rng.random(400) < 0.3
    others = {"red": ["green", "blue"], "green": ["red", "blue"], "blue": ["red", "green"]}
    noisy.loc[flipped, "colour"] = [rng.choice(others[c]) for c in words["colour"][flipped]]
    means = model.denoise(noisy, flip_probability=0.3)
    names = model.visible_names_
    colours = [k for k, name in enumerate(names) if name.startswith("colour=")]
    np.testing.assert_allclose(means[:, colours].sum(axis=1), 1, atol=1e-5)
    found = np.array([names[k] for k in colours])[means[:, colours].argmax(axis=1)]
    right = found == "colour=" + words["colour"]
    assert right.mean() > (~flipped).mean()
    # Without weights, each column is by itself: Bayes' rule with its frequencies.
    model.components_ = np.zeros_like(model.components_)
    means = model.denoise(noisy, flip_probability=0.3)
    prior = model._layered().layers[0].mean(0.0)[colours]
    for k, name in enumerate(np.array(names)[colours]):
        rows = ("colour=" + noisy["colour"] == name).to_numpy()
        channel = np.where(np.arange(3) == k, 0.7, 0.15)
        expected = prior * channel / (prior @ channel)
        np.testing.assert_allclose(means[rows][:, colours], [expected] * rows.sum(), atol=1e-3)


def test_errors_of_tables(table, fitted):
    with pytest.raises(ValueError, match="'weight' has Gaussian ones. A table with both"):
        fitted.denoise(table, flip_probability=0.1)
    for inference in ("rbp", "adatap"):
        with pytest.raises(ValueError, match="Set inference='tap'"):
            TAPRBM(3, visible=VISIBLE, inference=inference).fit(table)


@pytest.mark.parametrize("order", [1, 2])
def test_deep_models_of_tables(table, order):
    settings = dict(
        visible=VISIBLE, hidden=[("categorical", 3), "bernoulli"], order=order, learning_rate=0.1,
        batch_size=50, random_state=0,
    )  # fmt: skip
    model = TAPDBM((6, 4), max_iter=25, pretrain_max_iter=20, **settings).fit(table)
    assert model.components_[0].shape == (18, 9)
    independent = TAPRBM(6, visible=VISIBLE, max_iter=0).fit(table)
    assert model.score(table) > independent.score(table) + 0.3
    assert model.log_partition("tap").value == pytest.approx(model.log_partition_, abs=0.7)
    persistent = TAPDBM((6, 4), max_iter=3, pretrain_max_iter=3, persistent=True, **settings)
    assert np.isfinite(persistent.fit(table).history_["tap_log_likelihood"]).all()


def test_threads_do_not_matter(table):
    fits = [
        TAPRBM(40, visible=VISIBLE, max_iter=2, batch_size=200, random_state=0, n_jobs=n).fit(table)
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_hard(dtype):
    """A constant column, a rare category, one row twice; in both types, and finite."""
    X = np.zeros((40, 3), dtype)
    X[:, 1] = np.arange(40) % 4
    X[0, 2] = 2
    model = TAPRBM(3, visible="categorical", max_iter=4, random_state=0).fit(X)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.log_partition("tap").value)
