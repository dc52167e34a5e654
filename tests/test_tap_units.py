"""Mean field with categorical and Gaussian units: against enumeration and finite differences."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from sklearn_boltz import TAPDBM, TAPRBM
from sklearn_boltz._threads import Workers
from sklearn_boltz.restricted.mean_field import _second_order
from sklearn_boltz.restricted.mean_field._clamped import clamp
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.mean_field._second_order import (
    ANY_WIDTH,
    Coupling,
    Features,
    weight_differences,
)
from sklearn_boltz.restricted.mean_field._tap import Evidence, Iteration, free_energy, solve
from sklearn_boltz.restricted.model._layered import Layered
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.restricted.training._optimizers import SGD
from sklearn_boltz.restricted.training._tap_steps import Learner, Scheme, unit_gradients
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
    return Stacked([bits(2, rng), words(3, 2)(rng), Gaussian(rng.normal(size=1), np.ones(1))])


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


def can_be_enumerated(units):
    return units.is_enumerable


def exact_log_partition(model):
    """The enumeration of one side, the other one summed out in closed form."""
    if not can_be_enumerated(model.visible):
        model = model.transposed()
    V, logs = states_of(model.visible)
    return logsumexp(logs + model.hidden.log_partition(V @ model.weights.T).sum(axis=1))


def rows_of(model, n=5, seed=0):
    """Rows of values of the visible units, drawn without a field."""
    from sklearn_boltz._random import Stream

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
        np.testing.assert_allclose(slope, 0, atol=1e-11)
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
    assert np.polyfit(np.log(scales), np.log(error), 1)[0] == pytest.approx(slope, abs=0.4)
    assert error[-1] < 0.03
