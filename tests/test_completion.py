"""Completions of incomplete rows, against loops over all of them."""

import functools
import itertools

import numpy as np
import pytest
from conftest import cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import binomtest

from private import _completion


def table_with_gaps(seed, n_values, n_rows=12, share=0.4):
    rng = np.random.default_rng(seed)
    rows = rng.integers(n_values, size=(n_rows, len(n_values))).astype(np.int8)
    rows[rng.random(rows.shape) < share] = -1
    return rows, rng.integers(0, 4, n_rows).astype(float)


def log_table(seed, n_values):
    """A random joint distribution, and it as a `Model` that draws without error."""
    log_p = np.random.default_rng(seed).normal(size=tuple(n_values))
    return log_p, _completion.CompletionModel(
        lambda rows: log_p[tuple(rows.T.astype(int))], drawing(log_p)
    )


def drawing(log_p):
    """A function that draws the missing cells of rows."""

    @functools.cache
    def law(row):
        fills = completions(row, log_p.shape)
        p = np.exp([log_p[x] for x in fills])
        return np.array(fills), p / p.sum()

    def draw(rows, generator):
        drawn = rows.copy()
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
        for k, row in enumerate(distinct.tolist()):
            fills, p = law(tuple(row))
            copies = which.ravel() == k
            drawn[copies] = fills[generator.choice(len(fills), copies.sum(), p=p)]
        return drawn

    return draw


def completions(row, n_values):
    values = [[v] if v >= 0 else range(m) for v, m in zip(row, n_values, strict=True)]
    return list(itertools.product(*values))


small_tables = st.lists(st.sampled_from([2, 3]), min_size=1, max_size=5)


@settings(max_examples=cases(40))
@given(n_values=small_tables, seed=st.integers(0, 2**20))
def test_completions_against_loops(n_values, seed):
    rows, weights = table_with_gaps(seed, n_values)
    log_p, model = log_table(seed + 1, n_values)
    expected, total = {}, 0.0
    for row, weight in zip(rows, weights, strict=True):
        if weight == 0 or (row < 0).all():
            continue
        fills = completions(row, n_values)
        logs = np.array([log_p[x] for x in fills])
        total += weight * logsumexp(logs)
        for x, share in zip(fills, np.exp(logs - logsumexp(logs)), strict=True):
            expected[x] = expected.get(x, 0) + weight * share
    assume(expected)
    data = _completion.IncompleteRows(rows, weights, n_values)
    assert data.is_exact
    found = data.complete(model)
    assert_allclose(found.log_likelihood, total, rtol=1e-12)
    assert len(np.unique(found.rows, axis=0)) == len(found.rows) == len(expected)
    for x, weight in zip(found.rows.tolist(), found.weights, strict=True):
        assert_allclose(weight, expected[tuple(x)], rtol=1e-10)


@pytest.mark.parametrize("limits", [{"max_completions": 3}, {"max_entries": 60}])
def test_rows_with_many_completions_are_drawn(limits):
    n_values = [2, 3, 2, 3, 2]
    rows, weights = table_with_gaps(3, n_values, 40)
    _, model = log_table(4, n_values)
    exact = _completion.IncompleteRows(rows, weights, n_values)
    drawn = _completion.IncompleteRows(rows, weights, n_values, n_draws=2, **limits)
    assert exact.is_exact and not drawn.is_exact
    table = np.zeros(n_values)
    rng, n_rounds = np.random.default_rng(0), 1500
    for _ in range(n_rounds):
        found = drawn.complete(model, rng)
        assert np.isnan(found.log_likelihood)
        assert_allclose(found.weights.sum(), exact.weights.sum())
        np.add.at(table, tuple(found.rows.T), found.weights)
    expected = np.zeros(n_values)
    found = exact.complete(model)
    np.add.at(expected, tuple(found.rows.T), found.weights)
    # A row of weight w adds w p to a cell, by draws of weight 1/2 at most: 2 w n_rounds or more
    # of them, but no more than 3 a round where that is the limit, so of weight w/3.
    std = np.sqrt(max(1 / 2, weights.max() / 3) * expected / n_rounds)
    # Six standard deviations in 72 cells: a false alarm in ten million.
    assert (np.abs(table / n_rounds - expected) < 6 * std + 1e-9).all()


def test_draws_follow_the_completions():
    n_values = [2, 3, 2]
    rows = np.array([[0, -1, -1], [-1, 1, 1], [1, 2, 0]], dtype=np.int8)
    log_p, model = log_table(5, n_values)
    for limit, some in ((4096, rows), (2, rows), (1, rows[:2])):
        data = _completion.IncompleteRows(
            some, np.ones(len(some)), n_values, max_completions=limit, n_draws=1
        )
        drawn = np.array(list(data.draws(model, 2000, np.random.default_rng(1))))
        known = data.rows >= 0
        assert (drawn[:, known] == data.rows[known]).all()
        for row, column in zip(data.rows, drawn.transpose(1, 0, 2), strict=True):
            fills = completions(row, n_values)
            p = np.exp([log_p[x] for x in fills])
            for x, share in zip(fills, p / p.sum(), strict=True):
                # In 25 cells: a false alarm in 40 million.
                count = (column == x).all(axis=1).sum()
                assert binomtest(count, 2000, min(share, 1)).pvalue > 1e-9


class JointEM:
    """EM on the whole table of probabilities: refit to relative frequencies, plus a little."""

    def __init__(self, p):
        self.tables, self.path = [p], []

    def maximise(self, data, **options):
        return _completion.maximise(data, self.model(), self.refit, **options)

    def model(self):
        p = self.tables[-1]
        return _completion.CompletionModel(
            lambda rows: np.log(p[tuple(rows.T.astype(int))]), drawing(np.log(p)), self.objective
        )

    def objective(self, value):
        self.path.append(value)
        return value

    def refit(self, rows, weights, model):
        p = np.full(self.tables[0].shape, 1e-300)
        np.add.at(p, tuple(rows.T), weights)
        self.tables.append(p / p.sum())
        return self.model()


@pytest.mark.parametrize("seed", range(4))
def test_em_never_falls_and_ends_at_a_maximum(seed):
    n_values = [2, 3, 2]
    rows, weights = table_with_gaps(seed, n_values, 60)
    data = _completion.IncompleteRows(rows, weights, n_values)
    start = _completion.independent_columns(data)
    states = np.array(list(itertools.product(*map(range, n_values))))
    first = np.exp(start.log_weight(states)).reshape(n_values)
    em = JointEM(first)
    assert em.maximise(data, tol=1e-9, max_rounds=5000) and len(em.path) > 3
    assert (np.diff(em.path) >= -1e-10).all()
    # At a maximum, the frequencies of the completions are the model.
    completed, p = data.complete(em.model()), np.zeros(n_values)
    np.add.at(p, tuple(completed.rows.T), completed.weights / completed.weights.sum())
    assert_allclose(p, em.tables[-1], atol=1e-4)
    stopped = JointEM(first)
    assert not stopped.maximise(data, tol=0, max_rounds=5000, stop=lambda: True)
    assert len(stopped.path) == 2


@pytest.mark.parametrize(
    ("rows", "weights", "n_values", "expected"),
    [
        ([[0, -1], [0, 1], [1, -1]], [1, 2, 4], [2, 2], ([3.5, 4.5], [0.5, 2.5])),
        ([[0, -1], [0, 2], [1, 2], [-1, 0]], [1] * 4, [2, 3], ([2.5, 1.5], [4 / 3, 1 / 3, 7 / 3])),
    ],
)
def test_independent_columns(rows, weights, n_values, expected):
    data = _completion.IncompleteRows(np.array(rows, np.int16), np.array(weights, float), n_values)
    model = _completion.independent_columns(data)
    first, second = (np.array(counts) / sum(counts) for counts in expected)
    found = np.exp(model.log_weight(_completion.all_states(np.array(n_values))))
    assert_allclose(found, np.outer(first, second).ravel())
    drawn = model.draw(np.full((5000, 2), [-1, 1]), np.random.default_rng(0))
    assert (drawn[:, 1] == 1).all()
    # Six standard errors, twice: a false alarm in 250 million.
    assert abs(drawn[:, 0].mean() - first[1]) < 6 * np.sqrt(first[0] * first[1] / 5000)
