"""Sparse networks: the penalties, the solver, the path and the choice on it."""

import functools
import math
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import categories, chain, fit, items, spins
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import zero_sum_slopes
from rounding import within
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import chi2, false_discovery_control
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.fixes import parse_version

from oracles import differences
from private import (
    CategoricalPseudoLikelihood,
    PottsModel,
    PseudoLikelihood,
    SpinModel,
    _sparse_network,
    descend,
    of_order,
    price,
)
from private import SparsePenalty as Penalty
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics

seeds = st.integers(0, 10**6)
by_node = pytest.mark.parametrize("nodewise", [False, "and"])


def mean_slopes(X, coupling, intercept, weights=None):
    """Of the mean log pseudo-likelihood of rows of ±1, NaN missing: by each M_jk and b_j.

    As if M_jk and M_kj were two parameters, the row being the equation.
    """
    weights = np.ones(len(X)) if weights is None else weights
    known, filled = ~np.isnan(X), np.nan_to_num(X)
    off = (filled - np.tanh(filled @ coupling.T + intercept)) * known * weights[:, None]
    return off.T @ filled / weights.sum(), off.sum(axis=0) / weights.sum()


def standard_deviations(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    mean = weights @ np.nan_to_num(X) / (weights @ ~np.isnan(X))
    return np.sqrt(1 - mean**2)


def assert_kkt(slope, coupling, strength, ridge=0.0, atol=2e-5):
    """The conditions of a maximum of an objective less Σ strength |m| + ½ ridge m²."""
    here = coupling != 0
    assert_allclose(slope[here], (strength * np.sign(coupling) + ridge * coupling)[here], atol=atol)
    assert (np.abs(slope) <= strength + atol)[~here].all()


# The pieces.


def random_penalty(rng, n_groups):
    sizes = rng.integers(1, 4, n_groups)
    l1 = rng.choice([0, 0.3, 1.0], n_groups) * rng.random(n_groups)
    return Penalty(np.repeat(np.arange(n_groups), sizes), l1, rng.choice([0, 0.5], n_groups))


@settings(max_examples=cases(20))
@given(seeds, st.sampled_from([1, 3, 2000]))
def test_descend(seed, n_sweeps):
    """The kernel is the NumPy line of its docstring, and ends at the minimum."""
    rng = np.random.default_rng(seed)
    penalty = random_penalty(rng, 6)
    n = len(penalty.groups)
    root = rng.normal(size=(n, n + 3))
    matrix, slope, theta = root @ root.T + np.eye(n), rng.normal(size=n), rng.normal(size=n)
    starts = np.searchsorted(penalty.groups, np.arange(7)).astype(np.int32)
    blocks = [slice(*ends) for ends in zip(starts, starts[1:], strict=False)]
    curvature = np.array([np.linalg.eigvalsh(matrix[k, k])[-1] for k in blocks]) * 1.01
    mine, my_slope = theta.copy(), slope.copy()
    descend(
        matrix.ravel(), np.tile(np.arange(n, dtype=np.int32), n),
        np.arange(n + 1, dtype=np.int32) * n, starts, penalty.l1, penalty.l2, curvature, mine,
        my_slope, np.empty(3), 1e-13, n_sweeps,
    )  # fmt: skip
    if n_sweeps == 2000:
        gradient = slope + matrix @ (mine - theta)
        assert_allclose(my_slope, gradient, atol=1e-9)
        assert penalty.violation(mine, gradient).max() < 1e-9
        return
    for _ in range(n_sweeps):
        for k, block in enumerate(blocks):
            z = theta[block] - slope[block] / curvature[k]
            scale = max(0, 1 - penalty.l1[k] / (curvature[k] * np.linalg.norm(z)))
            d = scale / (1 + penalty.l2[k] / curvature[k]) * z - theta[block]
            theta[block] += d
            slope += matrix[:, block] @ d
    assert_allclose(mine, theta, atol=1e-10)
    assert_allclose(my_slope, slope, atol=1e-9)


# Fits: the conditions of a minimum, and other solvers.


@settings(max_examples=cases(25))
@given(
    seed=seeds, n_rows=st.integers(20, 200), d=st.integers(2, 7), alpha=st.floats(0.01, 0.5),
    l1_ratio=st.floats(0.05, 1.0), standardize=st.booleans(), missing=st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_kkt_of_binary_columns(seed, n_rows, d, alpha, l1_ratio, standardize, missing):
    X = spins(n_rows, d, seed, missing)
    X[0], X[1] = 1, -1  # no constant column
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 3, len(X))
    allowed = np.triu(rng.random((d, d)) < 0.8, 1)
    allowed |= allowed.T
    model = fit(
        X, weights, penalty="elasticnet", alpha=alpha, l1_ratio=l1_ratio, standardize=standardize,
        missing="observed", edges=allowed,
    )  # fmt: skip
    assert model.converged_ and model.solver_ == "prox-newton"
    assert not model.coupling_[~allowed].any()
    sd = standard_deviations(X, weights) if standardize else np.ones(d)
    by_pair, by_intercept = mean_slopes(X, model.coupling_, model.intercept_, weights)
    assert_allclose(by_intercept, 0, atol=2e-5)
    weight = np.outer(sd, sd)
    assert_kkt(
        (by_pair + by_pair.T)[allowed],
        model.coupling_[allowed],
        (alpha * l1_ratio * weight)[allowed],
        (alpha * (1 - l1_ratio) * weight**2)[allowed],
    )


@by_node
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_kkt_along_the_path(nodewise, missing):
    X = spins(150, 5, 3, missing)
    path = fit(X, penalty="l1", alpha="ebic", nodewise=nodewise, missing="observed", tol=1e-8).path_
    sd, off = standard_deviations(X), ~np.eye(5, dtype=bool)
    weight = sd * np.ones((5, 1)) if nodewise else np.outer(sd, sd)
    for k in range(0, len(path.alphas), 4):
        alpha = np.broadcast_to(path.alphas[k], 5)
        by_pair, by_intercept = mean_slopes(X, path.coupling[k], path.intercept[k])
        by_pair = by_pair if nodewise else by_pair + by_pair.T
        going = ~np.isnan(alpha)
        assert_array_equal(np.isnan(path.coupling[k]).any(axis=1), ~going)
        inside = off & going[:, None]
        atol = 2e-3 * np.nanmax(alpha)  # a 1,000th of alpha, and centred features
        assert_allclose(by_intercept[going], 0, atol=atol)
        strength = alpha[:, None] * weight
        assert_kkt(by_pair[inside], path.coupling[k][inside], strength[inside], atol=atol)
        n_edges = (path.coupling[k] != 0).sum(axis=1) * going
        assert_array_equal(path.n_edges[k], n_edges if nodewise else n_edges.sum() / 2)
    assert not np.any(path.n_edges[0]) and np.all(path.n_edges[1:3].max(axis=0) > 0)


def test_joint_against_a_general_solver():
    """Positive and negative parts of the couplings, by L-BFGS-B with bounds."""
    X, alpha = spins(120, 5, 0), 0.07
    problem = PseudoLikelihood(np.ascontiguousarray(X.T), np.ones(120))
    sd, pairs = standard_deviations(X), np.triu_indices(5, 1)
    cost = alpha * np.tile(np.outer(sd, sd)[pairs], 2)

    def negative(parameters):
        theta = np.concatenate([parameters[:5], parameters[5:15] - parameters[15:]])
        point = problem.at(theta)
        slope = -problem.gradient(point) / 120
        value = -point.value / 120 + cost @ parameters[5:]
        return value, np.concatenate([slope[:5], slope[5:] + cost[:10], cost[10:] - slope[5:]])

    found = minimize(
        negative, np.zeros(25), jac=True, method="L-BFGS-B",
        bounds=[(None, None)] * 5 + [(0, None)] * 20, options={"ftol": 1e-15, "gtol": 1e-9},
    ).x  # fmt: skip
    model = fit(X, penalty="l1", alpha=alpha, tol=1e-9)
    assert_allclose(model.coupling_[pairs], found[5:15] - found[15:], atol=1e-5)
    assert_allclose(model.intercept_, found[:5], atol=1e-5)
    assert_array_equal(model.coupling_[pairs] == 0, np.abs(found[5:15] - found[15:]) < 1e-6)


def test_by_node_against_logistic_regression():
    X = spins(200, 6, 1)
    path = fit(X, penalty="l1", alpha="ebic", nodewise="and", tol=1e-8).path_
    sd, is_old = standard_deviations(X), parse_version(sklearn.__version__) < parse_version("1.8")
    lasso = {"penalty": "l1"} if is_old else {"l1_ratio": 1.0}
    for k, j in product((5, 12, 20), (0, 4)):
        others = np.arange(6) != j
        peer = LogisticRegression(
            **lasso, C=2 / (200 * path.alphas[k, j]), solver="saga", tol=1e-9, max_iter=10**5
        ).fit(X[:, others] / sd[others], X[:, j])
        expected = peer.coef_[0] / 2 / sd[others]
        assert_allclose(path.coupling[k][j, others], expected, atol=2e-3)
        assert_array_equal(path.coupling[k][j, others] == 0, np.abs(expected) < 1e-6)


# Columns of three, four, five and two values, of which all but the second may have an order.
Q, KINDS = np.array([3, 4, 5, 2]), ["ordinal", "nominal", "ordinal", "ordinal"]


def shares_of(codes, k):
    counts = np.bincount(codes[codes[:, k] >= 0, k], minlength=Q[k])
    return counts / counts.sum()


def functions_of(codes, kinds):
    """The functions of the values of all columns by which blocks have a norm."""
    found = []
    for k, kind in enumerate(kinds):
        functions = np.linalg.qr(np.vander(np.arange(Q[k]), increasing=True))[0][:, 1:]
        if kind == "ordinal" and Q[k] > 2:
            p, bends = shares_of(codes, k), np.diff(functions, 2, axis=0)
            covariance = functions.T @ (np.diag(p) - np.outer(p, p)) @ functions
            roughness, vectors = eigh(bends.T @ bends, covariance)
            functions = functions @ vectors / np.sqrt(2 * (1 + 0.3 * roughness))
        found.append(functions)
    return found


def strength_of(codes, functions, kinds, i, j, standardize):
    """The weight of the norm of a pair, by the formula of the docstring."""
    weight = 0.5
    for k in (i, j):
        p, is_smooth = shares_of(codes, k), kinds[k] == "ordinal" and Q[k] > 2
        middle = np.diag(p) - np.outer(p, p) if standardize or is_smooth else np.eye(Q[k]) / Q[k]
        variance = np.trace(functions[k].T @ middle @ functions[k])
        weight *= np.sqrt(variance * (2 if is_smooth else Q[k]))
    return weight


@settings(max_examples=cases(20))
@given(
    seed=seeds, alpha=st.floats(0.01, 0.3), standardize=st.booleans(), missing=st.booleans(),
    kinds=st.sampled_from([KINDS, ["nominal"] * 4]),
)  # fmt: skip
def test_kkt_of_groups(seed, alpha, standardize, missing, kinds):
    """The norm of K with J = F_i K F_jᵀ, and derivatives by K."""
    every = np.minimum(np.arange(5)[:, None], Q - 1)  # all values occur
    X = np.vstack([categories(200, Q, seed), every]).astype(float)
    if missing:
        X[:-5][np.random.default_rng(seed).random((200, 4)) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    options = {"alpha": alpha, "standardize": standardize, "missing": "observed", "tol": 1e-9}
    model = SparseFVBM(columns=kinds, **options).fit(X)
    assert model.ordered_.tolist() == [kind == "ordinal" for kind in kinds[:3]] + [False]
    codes = np.where(np.isnan(X), -1, X).astype(np.int16)
    functions = functions_of(codes, kinds)
    for i, j, slope, block in zero_sum_slopes(codes, Q, model, 1e-6):
        strength = alpha * strength_of(codes, functions, kinds, i, j, standardize)
        dual = functions[i].T @ slope @ functions[j]
        if block.any():
            scaled = np.linalg.pinv(functions[i]) @ block @ np.linalg.pinv(functions[j]).T
            assert_allclose(dual, strength * scaled / np.linalg.norm(scaled), atol=1e-6)
        else:
            assert np.linalg.norm(dual) <= strength + 1e-6


def test_groups_against_a_general_solver():
    """All pairs are selected, where the penalty is smooth."""
    X, alpha = categories(200, Q, 4)[:, :3], 0.02
    functions = functions_of(X, KINDS[:3])
    model = SparseFVBM(columns=KINDS[:3], alpha=alpha, standardize=False, tol=1e-9).fit(X)
    assert (model._pair_norms() > 0).sum() == 6
    problem = CategoricalPseudoLikelihood(X.astype(np.int16), Q[:3], np.ones(200))

    def cost(theta):
        value, gradient = problem.evaluate(theta)
        value, gradient = -value / 200, -gradient / 200
        for i, j, place in problem.blocks():
            left, right = np.linalg.pinv(functions[i]), np.linalg.pinv(functions[j])
            scaled = left @ theta[place].reshape(Q[i], Q[j]) @ right.T
            strength = alpha * strength_of(X, functions, KINDS, i, j, False)
            norm = np.linalg.norm(scaled)
            value += strength * norm
            gradient[place] += (strength / norm * left.T @ scaled @ right).ravel()
        return value, gradient

    start = np.random.default_rng(0).normal(size=problem.n_parameters) / 10
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-8})
    ours = problem.pack(model.coupling_, model.intercept_)
    assert_allclose(cost(ours)[0], found.fun, atol=1e-9)
    both = [problem.centered(theta)[problem.n_states :] for theta in (ours, found.x)]
    assert_allclose(*both, atol=1e-4)


def test_a_group_of_two_bits_is_l1():
    bits = (spins(200, 3, 5) > 0).astype(int)
    groups, single = (fit(bits, penalty=p, alpha=0.05, tol=1e-9) for p in ("group", "l1"))
    assert_array_equal(groups.coupling_, single.coupling_)
    # A column of three values that says nothing of the bits.
    apart = [(0, 1), (0, 2), (1, 2)]
    with_word = np.column_stack([bits, np.arange(200) % 3])
    mixed = fit(with_word, penalty="group", alpha=0.05, edges=apart, tol=1e-9)
    assert_allclose(mixed.coupling_[1:6:2, 1:6:2], groups.coupling_, atol=1e-6)


# Limits and what must not matter.


@pytest.mark.parametrize(
    ("X", "plain", "other"),
    [
        (spins(300, 4, 2), {}, {"penalty": "l1", "alpha": 1e-9}),
        (spins(300, 4, 2), {}, {"edges": np.ones((4, 4), dtype=bool)}),
        (spins(200, 5, 4), {"alpha": 0.1}, {"edges": np.ones((5, 5), dtype=bool)}),
        (categories(200, [3, 2, 4]), {"alpha": 0.1}, {"edges": np.ones((3, 3), dtype=bool)}),
    ],
)
def test_what_forbids_no_pair_is_a_plain_fit(X, plain, other):
    found, expected = fit(X, **(plain | other), tol=1e-10), fit(X, **plain, tol=1e-12)
    assert_allclose(found.coupling_, expected.coupling_, atol=1e-6)


def test_pairs_are_those_of_the_mask():
    """Of names or numbers, in any order and twice, and as argwhere gives them."""
    X = pd.DataFrame(spins(200, 4, 4), columns=list("abcd"))
    one_way = np.zeros((4, 4), dtype=bool)
    one_way[[0, 1], [2, 3]] = True
    mask = one_way | one_way.T
    expected, whole = fit(X, edges=mask).coupling_, fit(X)
    for pairs in (
        [("c", "a"), ("b", "d")], [(0, 2), ("b", 3), ["c", "a"]], np.argwhere(mask),
        np.argwhere(one_way), np.argwhere(one_way).astype("u1"),
    ):  # fmt: skip
        model = fit(X, edges=pairs)
        assert_array_equal(model.coupling_, expected)
        assert statistics.likelihood_ratio(whole, X, model).df == 4
        assert np.isnan(statistics.inference(model, X).pair_p_value()[~mask]).all()
    for nothing in ([], np.argwhere(mask & False)):
        assert not fit(X, edges=nothing).coupling_.any()


@by_node
def test_of_equal_pairs_the_least_shrunk_are_taken(nodewise):
    """The next penalty of the path selects other pairs; that of least criterion the same ones."""
    rng, n = np.random.default_rng(3), 400
    first = rng.random(n) < 0.3
    second = rng.random(n) < np.where(first, 0.6, 0.2)
    X = np.column_stack([first, second, *rng.integers(3, size=(2, n))])
    model = SparseFVBM(alpha="ebic", nodewise=nodewise).fit(X)
    path, starts = model.path_, np.cumsum(model.n_values_) - model.n_values_
    norms = np.add.reduceat(np.add.reduceat(path.coupling**2, starts, axis=1), starts, axis=2)
    for j in range(4) if nodewise else [slice(None)]:
        alphas, ebic = (a[:, j] if nodewise else a for a in (path.alphas, path.ebic))
        alpha = model.alpha_[j] if nodewise else model.alpha_
        (taken,) = np.flatnonzero(alphas == alpha)
        pairs = norms[:, j] > 0
        best = np.nanargmin(ebic)
        assert_array_equal(pairs[taken], pairs[best])
        assert taken >= best
        if taken + 1 < len(alphas) and np.isfinite(ebic[taken + 1]):
            assert not np.array_equal(pairs[taken], pairs[taken + 1])


def test_em_solves_the_expected_equation():
    """At the end of EM the expected slope given the observed cells meets the conditions."""
    X, alpha = spins(80, 4, 8, missing=0.15), 0.06
    model = fit(X, penalty="l1", alpha=alpha, tol=1e-9, standardize=False)
    states = np.array(list(product([-1.0, 1.0], repeat=4)))
    energy = np.einsum("ij,jk,ik->i", states, model.coupling_, states) / 2
    mass = np.exp(energy + states @ model.intercept_)
    rows, weights = [], []
    for row in X:
        fits = ((states == row) | np.isnan(row)).all(axis=1)
        rows.append(states[fits])
        weights.append(mass[fits] / mass[fits].sum())
    by_pair, by_intercept = mean_slopes(
        np.concatenate(rows), model.coupling_, model.intercept_, np.concatenate(weights)
    )
    off = ~np.eye(4, dtype=bool)
    assert_allclose(by_intercept, 0, atol=1e-4)
    assert_kkt((by_pair + by_pair.T)[off], model.coupling_[off], np.full(12, alpha), atol=1e-4)
    complete = X[~np.isnan(X).any(axis=1)]
    em, observed = (fit(complete, penalty="l1", alpha=0.1, missing=m) for m in ("em", "observed"))
    assert_array_equal(em.coupling_, observed.coupling_)


# The choice of the penalty.


@by_node
def test_the_criterion_is_what_it_says(nodewise):
    X, gamma = spins(300, 5, 9), 0.5
    model = fit(X, penalty="l1", alpha="ebic", ebic_gamma=gamma, nodewise=nodewise)
    path = model.path_
    expected = np.full((len(path.alphas), 5), np.nan)
    for k in range(len(path.alphas)):
        fields = X @ path.coupling[k].T + path.intercept[k]
        log_likelihood = -np.log1p(np.exp(-2 * X * fields)).sum(axis=0)
        size = (path.coupling[k] != 0).sum(axis=1)
        expected[k] = -2 * log_likelihood + size * (np.log(300) + 2 * gamma * np.log(4))
    assert_allclose(path.ebic, expected if nodewise else expected.sum(axis=1), rtol=1e-9)
    best = np.nanargmin(path.ebic, axis=0)
    chosen = path.alphas[best, np.arange(5)] if nodewise else path.alphas[best]
    assert_array_equal(model.alpha_, chosen)
    assert_array_equal(model.alphas_, path.alphas)
    model.set_params(alpha=0.1).fit(X)
    assert model.alpha_ == 0.1 and not hasattr(model, "path_")


def refitted(codes, n_values, present, coupling, intercept, both_ends):
    """-2 ℓ on a Newton step in the present couplings, as a sum over the columns i in `present`.

    By the conditional probabilities of all rows, with the couplings J(a, b), a, b > 0, as
    parameters. With `both_ends` J_ij and J_ji are one parameter.
    """
    one_hot = [np.eye(q)[column] for column, q in zip(codes.T, n_values, strict=True)]
    numbers, regressions, slope, curvature = {}, [], 0.0, 0.0
    n_parameters = sum((q - 1) * (1 + (n_values - 1).sum()) for q in n_values)

    def number(*key):
        return numbers.setdefault(key, len(numbers))

    ends = np.cumsum(n_values)
    for i, row in present.items():
        fields = np.hstack(one_hot) @ coupling[ends[i] - n_values[i] : ends[i]].T
        fields += intercept[ends[i] - n_values[i] : ends[i]]
        p = softmax(fields, axis=1)
        by_field = np.zeros((len(codes), n_values[i], n_parameters))
        for a in range(1, n_values[i]):
            by_field[:, a, number(i, a)] = 1
            for j in np.flatnonzero(row):
                for b in range(1, n_values[j]):
                    pair = (j, i, b, a) if both_ends and j < i else (i, j, a, b)
                    by_field[:, a, number(*pair)] = one_hot[j][:, b]
        mean = np.einsum("na,nap->np", p, by_field)
        slope = slope + (np.einsum("na,nap->np", one_hot[i], by_field) - mean).sum(axis=0)
        curvature = curvature + np.einsum("na,nap,naq->pq", p, by_field, by_field) - mean.T @ mean
        regressions.append((fields, by_field, one_hot[i]))
    used, step = slice(len(numbers)), np.zeros(n_parameters)
    step[used] = np.linalg.solve(curvature[used, used], slope[used])

    def deviance(share):
        return -2 * sum(
            (log_softmax(fields + share * by_field @ step, axis=1) * values).sum()
            for fields, by_field, values in regressions
        )

    return min(map(deviance, (0, 0.25, 0.5, 1)))


def last_alike(criterion, k):
    """The last penalty in a row with the criterion of number k: that by which it was found."""
    return k + np.argmax(np.append(criterion[k + 1 :] != criterion[k], True))


@by_node
def test_the_criterion_of_groups_is_what_it_says(nodewise):
    n_values, gamma = np.array([2, 3, 10, 2]), 0.5
    codes = categories(400, n_values, 1)
    model = fit(codes, penalty="group", alpha="ebic", ebic_gamma=gamma, nodewise=nodewise)
    path, single = model.path_, np.log(400) + 2 * gamma * np.log(3)
    starts = np.cumsum(n_values) - n_values
    blocks = np.logical_or.reduceat(np.nan_to_num(path.coupling) != 0, starts, axis=1)
    blocks = np.logical_or.reduceat(blocks, starts, axis=2)
    prices = price(np.outer(n_values - 1, n_values - 1), single)
    for columns in [[0], [1], [2], [3]] if nodewise else [range(4)]:
        criterion = path.ebic[:, columns[0]] if nodewise else path.ebic
        for k in np.flatnonzero(np.isfinite(criterion))[::10]:
            last = last_alike(criterion, k)
            assert_array_equal(blocks[k, columns], blocks[last, columns])
            present = {j: blocks[last, j] for j in columns}
            value = refitted(
                codes, n_values, present, path.coupling[last], path.intercept[last], not nodewise
            )
            value += (blocks[last] * prices)[columns].sum()
            assert_allclose(criterion[k], value, rtol=1e-6)
        chosen = np.ravel(model.alpha_)[columns[0] if nodewise else 0]
        alphas = path.alphas[:, columns[0]] if nodewise else path.alphas
        assert chosen == alphas[last_alike(criterion, np.nanargmin(criterion))]


def test_the_price_of_a_block():
    """It is exceeded by chance as often as that of one coupling, which is as given."""
    for single in (3.0, 7.3, 40.0):
        sizes = np.array([[1, 2, 16], [2, 1, 4]])
        found = price(sizes, single)
        assert (found[sizes == 1] == single).all()
        assert_allclose(chi2.sf(found, sizes), math.erfc(math.sqrt(single / 2)), rtol=1e-9)
        assert (np.diff(price(np.arange(1, 20), single)) > 0).all()
    assert_array_equal(price(np.array([1, 16]), 1e301), [1e301, 1.6e302])


def bits_of_any_rate(rng):
    return np.where(rng.random((500, 10)) < rng.uniform(0.2, 0.8, 10), 1, -1)


def independent_items(rng, shape=(500, 10)):
    return rng.choice(5, size=shape, p=[0.1, 0.2, 0.4, 0.2, 0.1])


def ordered_items(rng):
    return independent_items(rng, (400, 6))


@pytest.mark.parametrize(
    ("table", "kind", "n_tables", "most"),
    [
        (bits_of_any_rate, "auto", 10, 12), (independent_items, "auto", 3, 6),
        (ordered_items, "ordinal", 4, 5),
    ],
)  # fmt: skip
def test_ebic_finds_few_edges_in_independent_columns(table, kind, n_tables, most):
    """Of tables with 45 pairs each, or 15, in all.

    A pair enters if its fall of -2 ℓ exceeds the price, of one coupling ln 500 + ½ ln 9 = 7.3, in
    both regressions. By its definition that has a probability of .007 or less, of trends .0084: 3.2
    edges are expected at most, or .9, or .5, and more than 12, 6 or 5 have a probability of 2e-5,
    6e-5 and 1e-5.
    """
    rng, found = np.random.default_rng(0), 0
    for _ in range(n_tables):
        model = fit(table(rng), penalty="group", alpha="ebic", nodewise="and", columns=kind)
        found += np.triu(model._pair_norms() > 0).sum()
    assert found <= most


# The default: selected twice.


def first_norms(X, **options):
    """|m| of each pair where it is larger, of the regressions of all columns with their EBIC."""
    path = SparseFVBM(alpha="ebic", nodewise="or", **options).fit(X).path_
    best = np.nanargmin(path.ebic, axis=0)
    rows = np.abs(path.coupling[best, np.arange(X.shape[1])])
    return np.maximum(rows, rows.T)


def as_blocks(coupling):
    """Couplings or intercepts of -1 and 1 as those of two values, in the zero-sum gauge."""
    sign = np.array([-1, 1])
    return np.kron(coupling, np.outer(sign, sign) if coupling.ndim == 2 else sign)


@by_node
def test_the_second_choice_is_what_it_says(nodewise):
    """An adaptive lasso: the least refitted deviance and the price of its pairs."""
    X = spins(400, 6, 12)
    model = SparseFVBM(nodewise=nodewise, tol=1e-9).fit(X)
    norms, pairs = first_norms(X, tol=1e-9), np.triu_indices(6, 1)
    n_first, level = (norms[pairs] > 0).sum(), 0.075 if nodewise else 0.05
    price = chi2.isf(level * n_first / 15 * n_first / (n_first + 4), 1)
    path, codes, two = model.path_, (X > 0).astype(int), np.full(6, 2)
    assert 3 < n_first < 15
    all_present = np.nan_to_num(path.coupling) != 0
    for k in range(0, len(path.alphas), 14):
        alpha, present = np.broadcast_to(path.alphas[k], 6), all_present[k]
        assert not present[norms == 0].any()
        by_pair, _ = mean_slopes(X, path.coupling[k], path.intercept[k])
        by_pair = by_pair if nodewise else by_pair + by_pair.T
        going = (norms > 0) & np.isfinite(path.coupling[k])
        strength = (alpha[:, None] / np.where(norms > 0, norms, 1))[going]
        assert_kkt(by_pair[going], path.coupling[k][going], strength, atol=2e-3 * np.nanmax(alpha))
        for columns in [[j] for j in range(6)] if nodewise else [range(6)]:
            criterion = path.criterion[:, columns[0]] if nodewise else path.criterion
            if np.isfinite(criterion[k]):
                last = last_alike(criterion, k)
                assert_array_equal(present[columns], all_present[last, columns])
                coupling, intercept = map(as_blocks, (path.coupling[last], path.intercept[last]))
                own = {j: present[j] for j in columns}
                value = refitted(codes, two, own, coupling, intercept, not nodewise)
                value += present[columns].sum() * price
                assert_allclose(criterion[k], value, rtol=1e-5)
    best = np.nanargmin(path.criterion, axis=0)
    rows = path.coupling[best, np.arange(6)] if nodewise else path.coupling[best]
    assert_array_equal(model.coupling_ != 0, (rows != 0) & (rows.T != 0))


@pytest.mark.parametrize("seed", [11, 13])
def test_every_pair_that_is_selected_is_worth_its_price(seed):
    """A large block comes in late on a path, and what chance has brought in before is left out."""
    n, rng = 300, np.random.default_rng(seed)
    many, noise = rng.integers(16, size=n), rng.integers(3, size=n)
    X = np.column_stack([many, (many // 4 + noise) % 4, *rng.integers(4, size=(4, n))])
    n_values, pairs = X.max(axis=0) + 1, np.triu_indices(6, 1)
    model = SparseFVBM(columns="nominal").fit(X)
    first = SparseFVBM(alpha="ebic", nodewise="or", columns="nominal").fit(X)
    n_first = (first.interaction_scores(apc=False)[pairs] > 0).sum()
    level = 0.05 * n_first / 15 * n_first / (n_first + 4)
    prices = 2 * price(np.outer(n_values - 1, n_values - 1), chi2.isf(level, 1))

    def deviance(edges):
        weak = {"penalty": "l2", "alpha": 1e-5}  # as some values never meet
        free = SparseFVBM(edges=edges, columns="nominal", **weak).fit(X)
        return -2 * n * free.history_["log_pseudo_likelihood"][-1]

    selected = np.argwhere(np.triu(model.interaction_scores(apc=False))).tolist()
    assert selected == [[0, 1]] and model.path_.n_edges[model.alphas_ == model.alpha_] > 1
    whole = deviance(selected)
    assert deviance([]) - whole > prices[0, 1]
    rows = model.path_.coupling[np.argmax(model.alphas_ == model.alpha_)]
    starts = np.cumsum(n_values) - n_values
    norms = np.add.reduceat(np.add.reduceat(rows**2, starts, axis=0), starts, axis=1)
    for pair in np.argwhere(np.triu(norms, 1)).tolist():
        if pair not in selected:
            assert whole - deviance([*selected, pair]) < prices[tuple(pair)]


def half_of_the_pairs(seed, n=600, d=12):
    """Which of all pairs interact, about half of them, and rows of -1 and 1."""
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.random((d, d)) < 0.5, 1) * rng.uniform(0.1, 0.3, (d, d))
    coupling *= rng.choice([-1, 1], (d, d))
    network = SpinModel(coupling + coupling.T, rng.uniform(-0.3, 0.3, d))
    return coupling[np.triu_indices(d, 1)] != 0, 2 * network.sample(n, rng, 50) - 1


@functools.cache
def by_ebic_and_by_tests(seed):
    """How many false pairs the EBIC alone selects, and how many true ones tests of all find."""
    (edges, X), pairs = half_of_the_pairs(seed), np.triu_indices(12, 1)
    p_value = statistics.inference(FVBMPseudoLikelihood().fit(X), X).pair_p_value()[pairs]
    selected = SparseFVBM(alpha="ebic").fit(X).coupling_[pairs] != 0
    return (selected & ~edges).sum(), (edges & (false_discovery_control(p_value) < 0.05)).sum()


@pytest.mark.parametrize("nodewise", [False, "and", "or"])
def test_few_pairs_are_false_where_many_interact(nodewise):
    """Of some 100 absent pairs, and as many true ones as tests of all pairs find.

    At a rate of 5 % of the pairs found, some three false ones are expected. More than 11 of 100
    have a probability below 1e-4 if each of them is found with a probability of .03. The EBIC alone
    selects some 20.
    """
    found, others = np.zeros(2, int), np.zeros(2, int)
    for seed in range(3):
        edges, X = half_of_the_pairs(seed)
        pairs = SparseFVBM(nodewise=nodewise).fit(X).coupling_[np.triu_indices(12, 1)] != 0
        found += (pairs & ~edges).sum(), (pairs & edges).sum()
        others += by_ebic_and_by_tests(seed)
    assert found[0] <= 11 < others[0] and found[1] >= others[1] - 3


@pytest.mark.parametrize(("draw", "n_tables", "most"), [
    (lambda rng: rng.random((355, 12)) < rng.uniform(0.2, 0.6, 12), 10, 4),
    (lambda rng: rng.choice(3, size=(355, 8), p=[0.01, 0.5, 0.49]), 6, 3),  # that rarely meet
])  # fmt: skip
def test_independent_columns_have_no_edges(draw, n_tables, most):
    """Up to 5 % of the tables have one, see bench_selection.py: false alarms in 6e-5 and 9e-5."""
    rng = np.random.default_rng(0)
    assert sum(SparseFVBM().fit(draw(rng)).coupling_.any() for _ in range(n_tables)) <= most


@pytest.mark.filterwarnings("ignore:SparseFVBM. col")
@pytest.mark.parametrize("nodewise", [False, "or"])
def test_a_column_that_hardly_varies_has_no_edge_and_is_named(nodewise):
    """Two rows have the item, and both of them another one; so have most resamples."""
    X = np.random.default_rng(0).random((355, 6)) < [0.3, 0.2, 0.1, 0.4, 0.3, 0.0]
    X[np.flatnonzero(X[:, 2])[:2], 5] = True
    X[:, 1] = X[:, 0] ^ (np.arange(355) % 7 == 0)
    frame = pd.DataFrame(X, columns=list("abcde") + ["rare"])
    with pytest.warns(UserWarning, match="column 'rare' has the same value in all but fewer than"):
        model = SparseFVBM(nodewise=nodewise).fit(frame)
    assert model.coupling_[0, 1] > 0 and not model.coupling_[5].any()
    if nodewise:
        with warnings.catch_warnings(action="error"):  # the remedies
            SparseFVBM(nodewise=nodewise).fit(frame.drop(columns="rare"))
            SparseFVBM(nodewise=nodewise, alpha="ebic").fit(frame)
        return
    frequency = statistics.bootstrap(model, frame, 5, random_state=0).edge_frequency
    assert frequency[0, 1] == 1 and frequency[5].max() <= 0.3
    assert np.isnan(statistics.inference(model, frame, split=0.5).pair_p_value()[5]).all()


@pytest.mark.filterwarnings("ignore:SparseFVBM. col|alpha=|The coupling of")
@pytest.mark.parametrize("alpha", ["auto", "ebic", "cv"])
@pytest.mark.parametrize("nodewise", [False, "and"])
def test_few_rows_and_columns_that_follow_from_others(alpha, nodewise):
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(3), 20)[:, None]
    petals = kinds + (rng.random((60, 3)) < 0.1)  # as of iris: most values tell the kind
    tables = [rng.integers(3, size=(n, 4)) for n in (6, 9)]
    tables += [np.repeat(table[:, :1], 3, axis=1) for table in tables]
    tables += [np.hstack([petals == 1, kinds == 1]), np.hstack([petals, kinds])]
    first = ["auto", "ebic", "cv"].index(alpha)
    for k, X in enumerate(tables[(first + bool(nodewise)) % 3 :: 3]):  # by turns
        columns = ("auto", "ordinal")[(k + first) % 2]
        model = SparseFVBM(alpha=alpha, nodewise=nodewise, columns=columns, cv=3).fit(X)
        assert np.isfinite(model.coupling_).all() and np.isfinite(model.score(X))
        assert model.n_iter_ == len(model.history_["seconds"]) >= 1


@by_node
def test_a_column_that_is_constant_in_a_fold(nodewise):
    """Its couplings change nothing there, and have the value 0."""
    X = np.array([[0, 0, 1, 2, 2], [0, 2, 0, 1, 2], [2, 0, 0, 1, 2], [2, 0, 2, 2, 2],
                  [2, 0, 0, 2, 1], [1, 0, 1, 2, 2], [1, 0, 0, 0, 1], [1, 0, 2, 2, 0]])  # fmt: skip
    model = SparseFVBM(alpha="cv", cv=2, nodewise=nodewise).fit(X)
    assert np.isfinite(model.path_.cv_score[0]).all() and np.isfinite(model.coupling_).all()


def test_selected_networks_of_numbers_have_no_errors_but_of_other_rows():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:, 1] += 0.4 * X[:, 0]
    model = SparseFVBM().fit(X)
    with pytest.raises(ValueError, match="has selected couplings by these rows"):
        statistics.inference(model, X)
    result = statistics.inference(model, X, split=0.5, random_state=0)
    assert result.pair_p_value()[0, 1] < 1e-3


def test_a_gamma_asks_for_the_ebic_alone():
    X = spins(300, 6, 3)
    by_gamma, by_name, default = SparseFVBM(ebic_gamma=0.25), SparseFVBM(alpha="ebic"), SparseFVBM()
    couplings = [model.fit(X).coupling_ for model in (by_gamma, by_name, default)]
    assert_array_equal(*couplings[:2])
    assert not np.array_equal(*couplings[1:])
    assert "ebic" in by_gamma.path_ and "criterion" in default.path_


def test_a_bootstrap_may_keep_both_penalties():
    X = half_of_the_pairs(0)[1]
    model = SparseFVBM().fit(X)
    kept = statistics.bootstrap(model, X, 3, reselect=False, random_state=0)
    assert not kept.couplings[:, model._norms == 0].any() and kept.couplings.any()
    assert np.abs(kept.couplings.mean(axis=0) - model.coupling_).max() < 0.3


@pytest.mark.parametrize(("X", "options"), [
    (spins(200, 4, 3), {"penalty": "elasticnet", "l1_ratio": 0.3}),
    (spins(200, 4, 3), {"penalty": "elasticnet", "l1_ratio": 1.0}),
    (categories(300, Q, 4), {"columns": KINDS}),
    (categories(300, Q, 4), {"columns": KINDS, "nodewise": "and"}),
])  # fmt: skip
def test_a_path_begins_with_the_least_penalty_without_a_pair(X, options):
    first = np.max(SparseFVBM(**options, alpha="ebic", tol=1e-8).fit(X).alphas_[0])
    if "nodewise" in options:
        options = options | {"nodewise": "or"}
    close = 1e-4 if "columns" in options else 0.01
    more, less = (SparseFVBM(**options, alpha=k * first, tol=1e-8) for k in (1 + close, 1 - close))
    assert not more.fit(X).coupling_.any()
    assert (less.fit(X)._pair_norms() > 0).sum() == 2


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "l2"])
def test_cross_validation_is_what_it_says(penalty):
    X, folds = spins(120, 4, 10, missing=0.1), KFold(3, shuffle=True, random_state=0)
    options = {"penalty": penalty, "missing": "observed", "tol": 1e-8}
    model = fit(X, alpha="cv", cv=folds, **options)
    for k in (0, 10, 20):
        total = 0.0
        for train, test in folds.split(X):
            # The weights of the penalty are those of the rows fitted to.
            part = fit(X[train], alpha=model.alphas_[k], **options)
            known = ~np.isnan(X[test])
            fields = np.nan_to_num(X[test]) @ part.coupling_ + part.intercept_
            total -= np.log1p(np.exp(-2 * np.nan_to_num(X[test]) * fields))[known].sum()
        assert_allclose(model.path_.cv_score[k], total / len(X), atol=2e-3)
    assert model.alpha_ == model.alphas_[np.argmax(model.path_.cv_score)]


@pytest.mark.parametrize(
    ("X", "options", "atol"),
    [
        (spins(200, 6, 3), {}, 1e-7),
        (spins(200, 6, 3), {"nodewise": "and"}, 1e-7),
        (spins(200, 6, 3), {"nodewise": "or", "alpha": 0.1}, 1e-7),
        (spins(200, 6, 3, missing=0.1), {}, within(tol=1e-9)),
        (spins(200, 6, 3, missing=0.1), {"penalty": "elasticnet", "missing": "observed"}, 1e-7),
        (categories(400, [2, 3, 4, 2], 1), {}, 1e-6),
        (categories(400, [2, 3, 4, 2], 1), {"nodewise": "or", "alpha": 0.1}, 1e-6),
        (items(600, 5) // 2.0, {"columns": "ordinal"}, 1e-5),
    ],
)
def test_relaxed_fits(X, options, atol):
    """The pairs are those of the penalty, and the estimate that of these pairs without one."""
    options = {"penalty": "group", "alpha": "ebic", "tol": 1e-9} | options
    shrunk, relaxed = fit(X, **options), fit(X, relax=True, **options)
    kept = shrunk._pair_norms() > 0
    assert kept.any() and not kept[~np.eye(len(kept), dtype=bool)].all()
    missing = options.get("missing", "em")
    expected = fit(X, edges=kept, alpha=0, missing=missing, tol=1e-9)
    assert_array_equal(relaxed._pair_norms() > 0, kept)
    assert_allclose(relaxed.coupling_, expected.coupling_, atol=atol)
    assert_allclose(relaxed.intercept_, expected.intercept_, atol=atol)
    assert_array_equal(relaxed.alpha_, shrunk.alpha_)
    assert relaxed.converged_ and np.abs(relaxed.coupling_ - shrunk.coupling_).max() > 100 * atol
    with pytest.raises(ValueError, match="no standard errors|has selected"):
        statistics.inference(relaxed, X)


def test_relaxed_fits_at_their_limits():
    X = spins(200, 4, 2)
    none = fit(X, penalty="l1", alpha=1e6, relax=True)
    assert not none.coupling_.any() and none.converged_
    copies = np.column_stack([X[:, 0], X])
    with pytest.warns(ConvergenceWarning, match="column 0 and column 1 is .*With relax=False"):
        assert not fit(copies, penalty="l1", alpha=0.1, relax=True).converged_
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        assert not fit(X, penalty="l1", alpha=0.01, relax=True, max_iter=1).converged_
    with pytest.raises(InvalidParameterError, match="penalty='l2' keeps all"):
        fit(X, penalty="l2", alpha=0.1, relax=True)


def test_the_rules():
    X = spins(100, 8, 11)
    options = {"penalty": "l1", "alpha": "ebic", "tol": 1e-9}
    both, either = (fit(X, nodewise=rule, **options) for rule in ("and", "or"))
    assert_array_equal(both.alpha_, either.alpha_)
    kept = both.coupling_ != 0
    assert_array_equal(both.coupling_[kept], either.coupling_[kept])
    assert kept.sum() < (either.coupling_ != 0).sum()
    best = np.nanargmin(both.path_.ebic, axis=0)
    rows = both.path_.coupling[best, np.arange(8)]
    assert_array_equal(kept, (rows != 0) & (rows.T != 0))
    assert_allclose(either.coupling_, (rows + rows.T) / 2, atol=2e-3)


def test_where_there_may_be_no_maximum_and_an_early_end():
    X = spins(50, 2, 0)
    with pytest.warns(ConvergenceWarning, match="column 0 and column 2 is .*With alpha > 0"):
        fit(np.column_stack([X, X]), edges=~np.eye(4, dtype=bool))
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        fit(spins(50, 4, 0), penalty="l1", alpha=0.01, max_iter=1)


# Other implementations.


@pytest.mark.parametrize("name", "abc")
def test_rple(shared_data, name):
    """GraphicalModelLearning.jl's matrices, by node, symmetrised by the mean."""
    folder = shared_data / "oracles" / "rple"
    samples = np.loadtxt(folder / f"{name}_samples.csv", delimiter=",", dtype=int)
    learned = np.loadtxt(folder / f"{name}_RPLE_learned.csv", delimiter=",")
    counts, X = samples[:, 0], samples[:, 1:]
    alpha = 0.2 * np.sqrt(np.log(X.shape[1] ** 2 / 0.05) / counts.sum())
    model = fit(X, counts, penalty="l1", alpha=alpha, nodewise="or", standardize=False, tol=1e-10)
    assert_allclose(model.coupling_ + np.diag(model.intercept_), learned, atol=1e-7)


def copies(n_rows, d, n_sources, flipped, seed):
    """Bits that are almost the same as a few others, some of which are rare, and imply others."""
    rng = np.random.default_rng(seed)
    sources = rng.random((n_rows, n_sources)) < np.geomspace(0.01, 0.9, n_sources)
    X = sources[:, np.arange(d) % n_sources] ^ (rng.random((n_rows, d)) < flipped)
    X[:, :-1:5] |= X[:, 1::5]
    X[:, 3::7] &= X[:, 2:-1:7]
    return X


@by_node
@pytest.mark.parametrize("n_sources", [5, 30])
def test_single_penalty_of_copies(nodewise, n_sources):
    """Larger penalties lead to a single one: straight from independent columns, it takes 100."""
    X = copies(1000, 60, n_sources, 0.002, seed=0)
    options = dict(penalty="l1", nodewise=nodewise, tol=1e-7)
    model = fit(X, alpha=0.1, **options)
    assert model.n_iter_ <= 20
    weak = fit(X, alpha=0.05, **options)
    other = clone(model).fit(X, None, None, weak.coupling_, weak.intercept_)  # the other side
    ends = [fitted.history_["log_pseudo_likelihood"][-1] for fitted in (model, other)]
    assert_allclose(*ends, rtol=1e-6)


@pytest.mark.parametrize("name, file, key", [
    ("nltcs", "nltcs", "train"), ("spikes50", "spikes_maxent_toolbox", "spikes50"),
])  # fmt: skip
def test_isingfit(shared_data, name, file, key):
    """R's IsingFit 0.4: its edges, weights and thresholds on the scale of 0 and 1."""
    with np.load(shared_data / f"{file}.npz") as data:
        X = data[key][:6000]
    folder = shared_data / "oracles" / "isingfit"
    weights, thresholds, alphas = (
        np.loadtxt(folder / f"{name}_{what}.csv", delimiter=",")
        for what in ("weights", "thresholds", "lambda")
    )
    model = fit(X, penalty="l1", alpha="ebic", nodewise="and")
    pairs = np.triu_indices(len(weights), 1)
    assert ((model.coupling_ != 0) == (weights != 0))[pairs].mean() >= 0.97
    assert_allclose(4 * model.coupling_, weights, atol=0.02)
    assert_allclose(model.alpha_, 2 * alphas, rtol=1e-6)
    # Its thresholds belong to the regressions, before the rule makes one coupling of two.
    own = np.argmax(model.path_.alphas == model.alpha_, axis=0), np.arange(len(alphas))
    rows = model.path_.coupling[own]
    found = 2 * (model.path_.intercept[own] - rows.sum(axis=1))
    assert_allclose(found, thresholds, atol=0.02)


@pytest.mark.parametrize("q", [2, 3])
def test_em_has_no_pairs_that_the_criterion_has_not_selected(q):
    """Of independent columns, EM with the same alpha found one in a quarter of the tables."""
    rng, n_more = np.random.default_rng(0), 0
    for _ in range(10):
        X = rng.integers(q, size=(200, 4)).astype(float)
        X[rng.random(X.shape) < 0.2] = np.nan
        model = SparseFVBM(columns=range(q)).fit(X)
        n_edges = np.triu(model.interaction_scores(apc=False) > 0, 1).sum()
        n_more += n_edges - model.path_.n_edges[model.alphas_ == model.alpha_][0]
    assert n_more <= 0


# Columns of levels in an order.


def ordered(X, **options):
    return SparseFVBM(**{"columns": KINDS} | options).fit(X)


def test_squares_are_those_of_the_dense_network():
    X = categories(200, Q, 3)
    ours = ordered(X, penalty="l2", alpha=0.05, tol=1e-10, columns="nominal")
    theirs = FVBMPseudoLikelihood(alpha=0.05, columns="nominal", tol=1e-14).fit(X)
    assert_allclose(ours.coupling_, theirs.coupling_, atol=2e-5)
    ours = ordered(X, penalty="l2", alpha=0.05)
    with pytest.raises(ValueError, match="columns 0, 2 have.*Use FVBMPseudoLikelihood"):
        statistics.inference(ours, X)
    assert ours.ordered_.tolist() == [True, False, True, False]
    assert not ordered(X, penalty="l2", alpha=0).ordered_.any()


def test_levels_backwards_and_a_column_without_an_order():
    X = categories(300, Q, 4)
    backwards = np.where([True, False, True, False], Q - 1 - X, X)
    model, turned = ordered(X, tol=1e-8), ordered(backwards, tol=1e-8)
    assert_allclose(turned.alpha_, model.alpha_, rtol=1e-6)
    assert_allclose(turned._pair_norms(), model._pair_norms(), atol=2e-4)
    kinds = (KINDS, "auto", {3: "ordinal"})
    shrunk = [ordered(X, columns=columns, alpha=0.05).coupling_ for columns in kinds]
    assert np.abs(shrunk[0] - shrunk[1]).max() > 0.01
    assert_array_equal(shrunk[1], shrunk[2])


@pytest.mark.parametrize("bent", [False, True])
def test_the_criterion_of_trends_is_what_it_says(bent):
    """Of one pair: the cheaper of its trend and its block, each with its own maximum."""
    n, trend = 2000, [np.arange(5) - 2, np.arange(3) - 1]
    block = 0.3 * np.outer(np.array([1, -1, 1, -1, 1]) if bent else trend[0] / 3, trend[1])
    coupling = np.block([[np.zeros((5, 5)), block], [block.T, np.zeros((3, 3))]])
    truth = PottsModel(coupling, np.zeros(8), np.array([5, 3]))
    X = truth.sample(n, np.random.default_rng(0), 100).astype(np.int16)
    model = SparseFVBM(alpha="ebic", columns="ordinal", tol=1e-9).fit(X)
    problem = CategoricalPseudoLikelihood(X, [5, 3], np.ones(n))

    def deviance(parameters):
        block = parameters[8] * np.outer(*trend)
        coupling = np.block([[np.zeros((5, 5)), block], [block.T, np.zeros((3, 3))]])
        return -2 * problem.evaluate(problem.pack(coupling, parameters[:8]))[0]

    whole = FVBMPseudoLikelihood(alpha=0.0, tol=1e-12).fit(X)
    block = -2 * problem.evaluate(problem.pack(whole.coupling_, whole.intercept_))[0]
    single = np.log(n) + 2 * 0.25 * np.log(1) + 2 * np.log(2)
    expected = [minimize(deviance, np.zeros(9)).fun + 2 * single, block + 2 * price(8, single)]
    assert (np.argmin(expected) == 1) == bent
    assert_allclose(model.path_.ebic[-1], min(expected), atol=0.5)
    assert abs(expected[0] - expected[1]) > 5


@pytest.mark.parametrize(("nodewise", "seed"), [(False, 0), ("and", 1)])
def test_order_finds_edges_of_items_in_few_rows(nodewise, seed):
    """All 4 of a chain of 200 rows, and hardly any others.

    The first choice has six pairs of ten or fewer, with a level of .05 · 6/10 · 6/10 in the second:
    more than two of the 6 absent pairs have a probability of 1e-4.
    """
    true, X = chain(5), items(200, 5, seed)
    found = SparseFVBM(columns=("ordinal", range(5)), nodewise=nodewise).fit(X)._pair_norms() > 0
    assert found[true].all()
    assert found.sum() / 2 - 4 <= 2
    if not nodewise:  # without the order, not all are found
        nominal = SparseFVBM(columns=("nominal", range(5))).fit(X)
        assert (nominal._pair_norms() > 0)[true].sum() / 2 <= 3


def test_completed_items():
    X = items(600, 5, 0) // 2.0  # with fewer levels, all of a pair occur together
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = SparseFVBM(columns="ordinal", alpha="cv", cv=3).fit(X)
    assert model.solver_ == "prox-newton" and (model._pair_norms() > 0)[chain(5)].all()


# Numbers, whose couplings are smooth functions.


def numbers_and_a_word(n):
    """A number, another near its square, and a word by its sign."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    word = np.where(x + rng.normal(size=n) > 0, "up", "down")
    return pd.DataFrame({"x": x, "y": x**2 + rng.normal(size=n), "word": word})


def test_numbers_against_a_general_solver():
    """By coefficients of the three smoothest functions; their cells have their shares."""
    X, alpha, pairs = numbers_and_a_word(300), 0.01, [(0, 1), (0, 2), (1, 2)]
    model = SparseFVBM(alpha=alpha, tol=1e-9).fit(X)
    assert model.ordered_.tolist() == [True, True, False]
    codes = model._encoder.encode(X).astype(int)
    functions, bases, sizes = [], [], []
    for k, n_values in enumerate(model.n_values_):
        shares = np.bincount(codes[:, k]) / len(X)
        values, base, size = np.array([[-1.0], [1]]) / np.sqrt(2), np.zeros(2), 4 * shares.prod()
        if k < 2:
            values = of_order(shares, model._encoder.columns[k].bins.means).features[:, :3]
            base, size = np.log(shares), shares @ (values**2).sum(axis=1)
            values = values / np.sqrt(2)
        assert len(values) == n_values <= _sparse_network.MOST_GROUPS
        functions.append(values), bases.append(base), sizes.append(size)
    ends = np.cumsum([3, 3, 1, 9, 3, 3])[:-1]

    def blocks_of(theta):
        *fields, one, two, three = np.split(theta, ends)
        return fields, [one.reshape(3, 3), two.reshape(3, 1), three.reshape(3, 1)]

    def cost(theta):
        fields, blocks = blocks_of(theta)
        rows = [f[codes[:, k]] for k, f in enumerate(functions)]
        total = [np.tile(field, (len(X), 1)) for field in fields]
        value = 0.0
        for (i, j), block in zip(pairs, blocks, strict=True):
            total[i] += rows[j] @ block.T
            total[j] += rows[i] @ block
            value += alpha / 2 * np.sqrt(sizes[i] * sizes[j]) * np.linalg.norm(block)
        for k, f in enumerate(functions):
            log_p = log_softmax(total[k] @ f.T + bases[k], axis=1)
            value -= log_p[np.arange(len(X)), codes[:, k]].mean()
        return value

    found = minimize(cost, np.full(22, 0.1), tol=1e-10)
    assert_allclose(model.history_["log_pseudo_likelihood"][-1], -found.fun, atol=1e-6)
    starts = np.cumsum(model.n_values_) - model.n_values_
    for (i, j), block in zip(pairs, blocks_of(found.x)[1], strict=True):
        left, right = (functions[k] - functions[k].mean(axis=0) for k in (i, j))
        own = (slice(starts[k], starts[k] + model.n_values_[k]) for k in (i, j))
        assert_allclose(model.coupling_[*own], left @ block @ right.T, atol=2e-3)


def test_single_precision_takes_as_many_steps(monkeypatch):
    """Near a minimum, the loss falls by less than it is rounded."""
    n_steps, at = [], _sparse_network.FunctionNetwork.at

    def counting(*args):
        n_steps[-1] += 1
        return at(*args)

    def fitted():
        n_steps.append(0)
        return SparseFVBM().fit(numbers_and_a_word(1000))

    monkeypatch.setattr(_sparse_network.FunctionNetwork, "at", counting)
    double = fitted()
    monkeypatch.setattr(_sparse_network, "FEW_FEATURES", 0)
    single = fitted()
    assert n_steps[1] < 1.5 * n_steps[0]
    assert_allclose(single.alpha_, double.alpha_, rtol=1e-5)
    assert_allclose(single.coupling_, double.coupling_, atol=1e-3)


def test_criteria_count_the_couplings_of_functions():
    """tr(H⁻¹ J), by finite differences of the pseudo-likelihood of each row."""
    X, pairs = numbers_and_a_word(150), [(0, 1), (0, 2)]
    model = SparseFVBM(alpha=0.02, edges=pairs).fit(X)
    codes, starts = model._encoder.encode(X).astype(int), np.cumsum([0, *model.n_values_])
    functions, bases, found = [], [], []
    for k in range(3):
        shares, values, own = np.bincount(codes[:, k]) / 150, np.array([[-1.0], [1]]), np.zeros(2)
        if k < 2:
            values = of_order(shares, model._encoder.columns[k].bins.means).features[:, :3]
            values, own = values - values.mean(axis=0), np.log(shares)
        fields = model.intercept_[starts[k] : starts[k + 1]] - own
        functions.append(values), bases.append(own)
        found.append(np.linalg.lstsq(values, fields - fields.mean())[0])
    for i, j in pairs:
        block = model.coupling_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        found.append(
            (np.linalg.pinv(functions[i]) @ block @ np.linalg.pinv(functions[j]).T).ravel()
        )
    ends = np.cumsum([3, 3, 1, 9])

    def of_rows(theta):
        *fields, one, two = np.split(theta, ends)
        rows = [f[codes[:, k]] for k, f in enumerate(functions)]
        total = [np.tile(field, (150, 1)) for field in fields]
        for (i, j), block in zip(pairs, (one.reshape(3, 3), two.reshape(3, 1)), strict=True):
            total[i] += rows[j] @ block.T
            total[j] += rows[i] @ block
        each = zip(total, functions, bases, codes.T, strict=True)
        log_p = [log_softmax(t @ f.T + base, axis=1)[range(150), own] for t, f, base, own in each]
        return np.sum(log_p, axis=0)

    def slopes(theta):
        return differences(of_rows, theta, 1e-4)

    found = np.concatenate(found)
    assert_allclose(of_rows(found).sum(), model.log_pseudo_likelihood(X).sum(), rtol=1e-4)
    scores = slopes(found)
    information = -differences(lambda theta: slopes(theta).sum(axis=1), found, 1e-4)
    expected = np.trace(np.linalg.solve(information, scores @ scores.T))
    n_parameters = (statistics.bic(model, X) - statistics.aic(model, X)) / (np.log(150) - 2)
    assert_allclose(n_parameters, expected, rtol=1e-3)
    X.loc[::7, "y"] = np.nan  # completed
    assert np.isfinite(statistics.ebic(SparseFVBM(alpha=0.02).fit(X), X))


def test_the_conditional_of_many_cells_is_near_that_of_groups(monkeypatch):
    X = numbers_and_a_word(1000)
    model = SparseFVBM(alpha=0.02).fit(X)
    assert model.n_values_[0] > _sparse_network.MOST_GROUPS
    monkeypatch.setattr(_sparse_network, "MOST_GROUPS", 64)
    fine = SparseFVBM(alpha=0.02).fit(X)
    off = model.coupling_ - fine.coupling_
    assert np.linalg.norm(off) < 0.02 * np.linalg.norm(fine.coupling_)


def test_a_bend_is_selected_and_what_does_not_interact_is_not():
    """y is near the square of x, and the word depends on x alone."""
    X = numbers_and_a_word(500)
    model = SparseFVBM().fit(X)
    assert np.argwhere(np.triu(model._pair_norms() > 0)).tolist() == [[0, 1], [0, 2]]
    assert "coupling" not in model.path_ and model.path_.n_edges.max() >= 2
    found = statistics.bootstrap(model, X, 5, random_state=0).edge_frequency
    assert found[0, 1] == found[0, 2] == 1


# What there is to choose.

BIT = np.arange(20)[:, None] % 2


@pytest.mark.parametrize(
    "X",
    [np.zeros((20, 2), int), BIT, np.hstack([BIT, 0 * BIT]), np.arange(20)[:, None] % 3],
    ids=["constant", "one column", "one that varies", "one of three values"],
)
@pytest.mark.parametrize("alpha", ["ebic", "cv"])
@pytest.mark.parametrize("nodewise", [False, "and"])
def test_no_pair_to_choose(X, alpha, nodewise):
    penalty = "l1" if X.max() < 2 else "group"
    model = SparseFVBM(penalty=penalty, alpha=alpha, nodewise=nodewise).fit(X)
    alone = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    assert not model.coupling_.any() and model.converged_
    assert_allclose(model.intercept_, alone.intercept_, atol=1e-4)
    assert len(model.alphas_) == 0 and not hasattr(model, "path_")
    assert not np.nan_to_num(model.alpha_).any()


def likert(rng, n_items=6, strength=0.7):
    """Answers of five levels with one common cause."""
    cause = rng.normal(size=(300, 1))
    answers = 2 + strength * cause + rng.normal(size=(300, n_items))
    return np.clip(np.round(answers), 0, 4).astype(int)


def test_an_empty_network_of_dependent_columns_is_told():
    X = likert(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="no pair.*of 15 pairs dependent.* more. Use alpha='cv'"):
        empty = SparseFVBM(ebic_gamma=20).fit(X)
    assert not empty.coupling_.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_other_networks_are_silent(strength):
    """False alarm for independent columns by the level of the tests: 1 % for this seed."""
    model = SparseFVBM().fit(likert(np.random.default_rng(0), 6, strength))
    assert model.coupling_.any() == (strength > 0)


@pytest.mark.filterwarnings("error")
def test_pairs_that_may_not_be_connected_are_not_tested():
    rng = np.random.default_rng(0)
    X = np.hstack([likert(rng, 4), likert(rng, 4)])
    apart = [(j, k) for j in range(4) for k in range(4, 8)]
    model = SparseFVBM(edges=apart).fit(X)
    assert not model.coupling_.any()


# Penalties that a user writes: the named ones again, and one that is not convex.


class Lasso:
    """The norm, as ``penalty="group"`` has it."""

    def value(self, norms):
        return norms

    def prox(self, norms, step):
        return np.maximum(norms - step, 0)


class MinimaxConcave:
    """Zhang (2010): its slope falls from 1 at 0 to 0 at gamma."""

    def __init__(self, gamma=1.5):
        self.gamma = gamma

    def value(self, norms):
        return np.where(norms < self.gamma, norms - norms**2 / (2 * self.gamma), self.gamma / 2)

    def prox(self, norms, step):
        curved = np.maximum(1 - step / self.gamma, 1e-12)
        soft = np.where(norms < self.gamma, np.maximum(norms - step, 0) / curved, norms)
        hard = np.where(norms**2 > step * self.gamma, norms, 0.0)
        return np.where(step < self.gamma, soft, hard)


BITS, CODES = spins(120, 5, 1), categories(150, (2, 3, 4))


@pytest.mark.parametrize(("table", "options"), [
    (CODES, {"alpha": "cv", "cv": 2}), (BITS, {"nodewise": "and"}),
    (CODES, {"alpha": 0.05, "edges": [(0, 1), (1, 2)]}),
])  # fmt: skip
def test_the_lasso_is_that_of_its_name(table, options):
    expected = SparseFVBM(**options, tol=1e-8).fit(table)
    model = SparseFVBM(penalty=Lasso(), **options, tol=1e-8).fit(table)
    assert_allclose(model.alpha_, expected.alpha_)
    assert_allclose(model.coupling_, expected.coupling_, atol=1e-6)
    assert_allclose(model.history_["log_pseudo_likelihood"][-1:],
                    expected.history_["log_pseudo_likelihood"][-1:])  # fmt: skip


@pytest.mark.parametrize("table", [BITS, CODES], ids=["bits", "categories"])
def test_a_penalty_that_is_not_convex_ends_at_a_local_minimum(table):
    """No small change of a pair raises the mean log pseudo-likelihood less the penalty."""
    penalty, alpha, binary = MinimaxConcave(), 0.05, table is BITS
    model = SparseFVBM(penalty=penalty, alpha=alpha, standardize=False, tol=1e-9).fit(table)
    starts = np.append(0, np.cumsum(np.ones(5) if binary else model.n_values_)).astype(int)
    sizes = model.n_values_ - 1
    lasso = SparseFVBM(alpha=alpha, standardize=False).fit(table)
    assert np.abs(model.coupling_).max() > np.abs(lasso.coupling_).max() + 0.01

    def objective(coupling):
        model.coupling_ = coupling
        cost = 0.0
        for j in range(len(sizes)):
            for k in range(j):
                block = coupling[starts[k] : starts[k + 1], starts[j] : starts[j + 1]]
                norm = np.linalg.norm(block) * (1 if binary else 0.5)
                cost += np.sqrt(sizes[j] * sizes[k]) * penalty.value(np.array([norm]))[0]
        return model.log_pseudo_likelihood(table).mean() - alpha * cost

    best, rng = model.coupling_.copy(), np.random.default_rng(0)
    value = objective(best)
    for _ in range(100):
        j, k = sorted(rng.choice(len(sizes), 2, replace=False))
        rows, columns = slice(starts[j], starts[j + 1]), slice(starts[k], starts[k + 1])
        step = 1e-4 * rng.normal(size=best[rows, columns].shape)
        step -= 0 if binary else step.mean(axis=0) + step.mean(axis=1)[:, None] - step.mean()
        changed = best.copy()
        changed[rows, columns] += step
        changed[columns, rows] += step.T
        assert objective(changed) <= value + 1e-10


def test_scikit_learn_clones_and_searches_it():
    model = clone(SparseFVBM(penalty=MinimaxConcave(2.0), alpha=0.05))
    assert model.penalty.gamma == 2.0
    search = GridSearchCV(model, {"penalty": ["group", MinimaxConcave(1.0)]}, cv=3).fit(BITS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
