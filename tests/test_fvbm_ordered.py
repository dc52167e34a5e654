"""The penalty that knows the order of levels, and probabilities cell by cell."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_boltz.fully_visible._categorical import CategoricalPseudoLikelihood
from sklearn_boltz.fully_visible._incomplete import cell_probabilities
from sklearn_boltz.fully_visible._ordered import CONTRAST, TREND
from sklearn_boltz.fully_visible._potts_model import PottsModel

Q = np.array([3, 2, 4, 3])


def problem(ordered, zero_sum=False, penalty=0.7):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(q, size=40) for q in Q]).astype(np.int16)
    codes[3, 2] = codes[5, 0] = -1
    return CategoricalPseudoLikelihood(
        codes, Q, np.ones(40), coupling_penalty=penalty, zero_sum=zero_sum,
        ordered=None if ordered is None else np.array(ordered),
    )  # fmt: skip


@pytest.mark.parametrize("zero_sum", [False, True])
def test_gradient(zero_sum):
    objective = problem([True, True, False, True], zero_sum)
    theta = np.random.default_rng(1).normal(size=objective.n_parameters)
    numeric = [
        (objective.evaluate(theta + step)[0] - objective.evaluate(theta - step)[0]) / 2e-5
        for step in 1e-5 * np.eye(len(theta))
    ]
    assert_allclose(objective.evaluate(theta)[1], numeric, atol=1e-6)


def test_trends_are_cheaper_than_jumps():
    ordered, plain = problem([True] * 4), problem(None)
    none = problem(None, penalty=0.0)

    def penalty_of(objective, left, right):
        coupling = np.zeros((Q.sum(), Q.sum()))
        block = np.outer(left, right) / np.linalg.norm(left) / np.linalg.norm(right)
        coupling[:3, 9:] = block
        theta = objective.pack(coupling, np.zeros(Q.sum()))
        return none.evaluate(theta)[0] - objective.evaluate(theta)[0]

    trend, jump = [-1, 0, 1], [1, -2, 1]
    assert_allclose(penalty_of(plain, trend, jump), 0.7)
    assert_allclose(penalty_of(ordered, jump, jump), 0.7 * CONTRAST**2)
    assert_allclose(penalty_of(ordered, trend, jump), 0.7 * CONTRAST**2 / TREND)
    assert_allclose(penalty_of(ordered, trend, trend), 0.7 * CONTRAST**2 / TREND**2)


def test_without_order_all_is_as_before():
    plain, none = problem(None), problem([False] * 4)
    theta = np.random.default_rng(1).normal(size=plain.n_parameters)
    for mine, other in zip(none.evaluate(theta), plain.evaluate(theta), strict=True):
        assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


def test_probabilities_of_cells():
    rng = np.random.default_rng(2)
    objective = problem(None)
    coupling, intercept = objective.unpack(rng.normal(size=objective.n_parameters))
    model = PottsModel(coupling, intercept, Q)
    codes = np.array([[-1, 0, -1, 2], [-1, -1, -1, -1], [1, -1, 0, 2], [1, 1, 0, 2]])
    states = np.array(list(product(*map(range, Q))))
    weight = np.exp(model.log_weight(states))
    exact = cell_probabilities(model, codes, 10**6, 1, np.random.default_rng(0))
    drawn = cell_probabilities(model, codes, 1, 40_000, np.random.default_rng(0))
    for row, code in enumerate(codes):
        fits = ((code < 0) | (states == code)).all(axis=1)
        for j in np.flatnonzero(code < 0):
            own = slice(model.starts[j], model.starts[j + 1])
            expected = np.bincount(states[fits, j], weight[fits], Q[j]) / weight[fits].sum()
            assert_allclose(exact[row, own], expected, rtol=1e-10)
            # Averages of probabilities of 40,000 correlated sweeps; the seed is fixed.
            assert_allclose(drawn[row, own], expected, atol=0.02)
