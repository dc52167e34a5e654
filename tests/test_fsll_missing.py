"""FSLLDensity on rows with missing cells, against sums over all completions."""

import itertools
import math

import numpy as np
import pytest
from conftest import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from test_fsll import SOLVERS, random_data

import oracles
from private import _loglinear_fit as _fit
from private import _loglinear_incomplete as _incomplete
from sklearn_boltz import FSLLDensity
from sklearn_boltz.batches import Batches


def random_table(n_values, n_rows, seed, share=0.3):
    """Rows near a few patterns, with missing cells, and no column without a cell."""
    X, rng = random_data(n_values, n_rows, seed, 4).astype(float), np.random.default_rng(seed)
    X[rng.random(X.shape) < share] = np.nan
    X[rng.integers(n_rows), np.isnan(X).all(axis=0)] = 0
    return X


def completions(row, n_values):
    values = [range(m) if np.isnan(v) else [int(v)] for v, m in zip(row, n_values, strict=True)]
    return np.array(list(itertools.product(*values)))


def observed_cost(model, X, weights=None):
    """Divergence from the observed cells by patterns, and lengths; of columns of one table."""
    n_values = model.n_values_.tolist()
    p = oracles.log_linear_probabilities(n_values, model.basis_, model.theta_).reshape(n_values)
    weights = np.ones(len(X)) if weights is None else weights
    kept = ~np.isnan(X).all(axis=1) & (weights > 0)
    X, weights = X[kept], weights[kept]
    total = weights.sum()
    groups = {}
    for row, weight in zip(X, weights, strict=True):
        pattern = groups.setdefault(tuple(np.isnan(row)), {})
        key = tuple(map(tuple, completions(row, n_values)))
        pattern[key] = pattern.get(key, 0) + weight
    even = groups.setdefault((False,) * len(n_values), {})
    for x in itertools.product(*map(range, n_values)):
        even[(x,)] = even.get((x,), 0) + 1 / p.size
    cost = 0.0
    for pattern in groups.values():
        size = sum(pattern.values())
        for key, weight in pattern.items():
            q = sum(p[x] for x in key)
            cost += weight / (total + 1) * (math.log(weight / size) - math.log(q))
    lengths = oracles.description_lengths(n_values, total, model.alpha)
    if model.solver == "newton" and model.max_basis is None:
        columns = []
        for x, m in zip(X.T, n_values, strict=True):
            known = ~np.isnan(x)
            counts = np.bincount(x[known].astype(int), weights[known], minlength=m)
            columns.append((counts + 1 / m) / (counts.sum() + 1))
        lengths = oracles.charges(n_values, total, model.alpha, columns)
    return cost + sum(lengths[np.ravel_multi_index(y, n_values)] for y in model.basis_)


tables = st.lists(st.sampled_from([2, 3]), min_size=2, max_size=4)


@settings(max_examples=cases(25))
@given(
    n_values=tables, n_rows=st.integers(2, 60), seed=st.integers(0, 2**20),
    solver=st.sampled_from(SOLVERS), share=st.sampled_from([0.05, 0.3, 0.6]),
    alpha=st.sampled_from([1.0, 0.1]),
)  # fmt: skip
# A term of a column with its own distribution is worth nothing after the first completions.
@example(n_values=[3, 2], n_rows=9, seed=173, solver="newton", share=0.3, alpha=0.1)
def test_fit_and_scores_against_enumeration(n_values, n_rows, seed, solver, share, alpha):
    X = random_table(n_values, n_rows, seed, share)
    X[:2] = [[0] * len(n_values), [1] * len(n_values)]  # no column is constant
    model = FSLLDensity(columns=list(map(range, n_values)), solver=solver, alpha=alpha).fit(X)
    assert model.converged_
    # EM never lets the cost rise, and it is that of the observed cells at the end.
    assert (np.diff(model.cost_path_) <= 1e-10).all()
    assert model.cost_ == pytest.approx(observed_cost(model, X), abs=1e-9)
    assert len(model.history_["seconds"]) == model.n_iter_ == len(model.cost_path_) - 1
    p = oracles.log_linear_probabilities(n_values, model.basis_, model.theta_).reshape(n_values)
    X = X[:20]
    X[0] = np.nan
    scores, energies = model.score_samples(X), model.free_energy(X)
    features = model.transform(X)
    assert scores[0] == 0
    for k, row in enumerate(X):
        fills = completions(row, n_values)
        each = p[tuple(fills.T)]
        assert scores[k] == pytest.approx(np.log(each.sum()), abs=1e-10)
        assert -energies[k] - model.log_partition_ == pytest.approx(scores[k], abs=1e-10)
        assert energies[k] == pytest.approx(-logsumexp(-model.energy(fills)), abs=1e-10)
        expected = each @ model.transform(fills) / each.sum()
        assert_allclose(features[k], expected, atol=1e-10)


def test_batches_without_a_column_and_dask_learn_the_same():
    X = random_table([2, 3, 2, 2], 300, seed=5)
    X[:100, 1] = np.nan
    model = FSLLDensity(columns=[range(2), range(3), range(2), range(2)])
    whole, array = clone(model).fit(X), pytest.importorskip("dask.array")
    for rows in (Batches([X[100:200], X[:100], X[200:]]), array.from_array(X, chunks=(100, 4))):
        other = clone(model).fit(rows)
        assert_array_equal(other.theta_, whole.theta_)
        assert_array_equal(other.basis_, whole.basis_)
        assert other.cost_ == pytest.approx(whole.cost_, abs=1e-12)


def test_a_row_of_which_only_a_constant_column_is_known_says_nothing_about_others():
    X = np.column_stack([random_table([2, 2, 3], 120, seed=1), np.ones(120)])
    more = np.vstack([X, [[np.nan, np.nan, np.nan, 1.0]] * 50])
    one, other = FSLLDensity().fit(X), FSLLDensity().fit(more)
    assert_array_equal(one.marginal([0, 1, 2]), other.marginal([0, 1, 2]))
    assert other.marginal(3)[1] > one.marginal(3)[1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_with_many_missing_cells_are_drawn(solver, monkeypatch):
    X = random_table([2] * 6, 300, seed=6)
    exact = FSLLDensity(solver=solver).fit(X)
    exact_rows, drawn = _fit.IncompleteRows, []

    def limited(*arguments):
        data = exact_rows(*arguments, max_completions=4)
        drawn.append(not data.is_exact)
        return data

    monkeypatch.setattr(_fit, "IncompleteRows", limited)
    first, second = FSLLDensity(solver=solver).fit(X), FSLLDensity(solver=solver).fit(X)
    assert sum(drawn) >= 2
    assert_array_equal(first.theta_, second.theta_)
    assert first.cost_ == pytest.approx(observed_cost(first, X), abs=1e-9)
    # Draws lose little of what there is to gain.
    gain = first.cost_path_[0] - exact.cost_
    assert gain > 0.15
    assert first.cost_path_[0] - first.cost_ > 0.7 * gain


def test_information_of_the_score_test_is_that_of_observed_cells(monkeypatch):
    """The covariance of E[Φ | observed cells] over the rows, as often as each occurs."""
    n_values, given = [2, 3, 2, 2], []
    X = random_table(n_values, 300, seed=9)
    choose, choose_terms = _incomplete.choose, _incomplete.IncompleteSearch._choose

    def spy(residual, variance, of_active, with_active, *rest):
        given[-1] += variance, of_active, with_active
        return choose(residual, variance, of_active, with_active, *rest)

    def spy_terms(search, codes, *rest):
        decode = search._space.decode
        given.append([decode(search._state.codes), search._state.theta.copy(), decode(codes)])
        return choose_terms(search, codes, *rest)

    monkeypatch.setattr(_incomplete, "choose", spy)
    monkeypatch.setattr(_incomplete.IncompleteSearch, "_choose", spy_terms)
    FSLLDensity(columns=list(map(range, n_values)), alpha=0.3).fit(X)
    active, theta, others, variance, of_active, with_active = given[0]
    p = oracles.log_linear_probabilities(n_values, active, theta)
    terms = np.ravel_multi_index(np.vstack([active, others]).T, n_values)
    basis = oracles.basis_matrix(n_values)[terms].T
    scores = []
    for row in X[~np.isnan(X).all(axis=1)]:
        rows = np.ravel_multi_index(completions(row, n_values).T, n_values)
        scores.append(p[rows] @ basis[rows] / p[rows].sum() - p @ basis)
    information, n = np.mean([np.outer(score, score) for score in scores], axis=0), len(active)
    assert n and len(others)
    assert_allclose(of_active, information[:n, :n], atol=1e-12)
    assert_allclose(with_active, information[:n, n:], atol=1e-12)
    assert_allclose(variance, np.diag(information)[n:], atol=1e-12)


def test_weights_of_terms_are_those_of_the_maximum():
    """Newton's method on the observed cost, by finite differences, has nowhere to go."""
    n_values = [2, 3, 2]
    X = random_table(n_values, 400, seed=8)
    model = FSLLDensity(columns=list(map(range, n_values)), alpha=0.3, tol=1e-9).fit(X)
    best, theta = observed_cost(model, X), model.theta_.copy()
    for k in range(len(theta)):
        for step in (-0.02, 0.02):
            model.theta_ = theta.copy()
            model.theta_[k] += step
            assert observed_cost(model, X) > best


def test_estimates_are_consistent():
    """The divergence from the true distribution falls like the reciprocal number of rows."""
    n_values, n_seeds = [2, 3, 2, 2], 6
    basis = np.array([[1, 1, 0, 0], [0, 2, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 0]])
    p = oracles.log_linear_probabilities(n_values, basis, [0.5, -0.4, 0.5, 0.4, 0.3])
    states = oracles.states(n_values)
    divergence = {}
    for n_rows in (500, 8000):
        values = []
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, n_rows])
            X = states[rng.choice(len(p), n_rows, p=p)].astype(float)
            # Missing at random: more often where the first column is 1, which is always observed.
            X[:, 1:][rng.random((n_rows, 3)) < 0.15 + 0.3 * X[:, :1]] = np.nan
            model = FSLLDensity(columns=list(map(range, n_values))).fit(X)
            values.append(p @ (np.log(p) - model.score_samples(states)))
        divergence[n_rows] = np.mean(values)
    # Without consistency, the ratio would be 1, not 1/16.
    assert divergence[8000] < divergence[500] / 4
    # About k/2N for the k = 5 parameters, and some for the missing half: with 6 seeds, three
    # times as much has a probability of less than 1e-6 (chi-squared of 30 degrees of freedom).
    assert divergence[8000] < 3 * 5 / 8000
