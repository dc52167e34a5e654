"""Pairs of ordered columns that a penalty selects: its norm, its path, and the criterion."""

import numpy as np
import pytest
from networks import categories, chain, items
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import zero_sum_slopes
from scipy.optimize import minimize
from sklearn.base import clone

from private import CategoricalPseudoLikelihood, PottsModel, price
from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics

Q, ORDERED = np.array([3, 4, 5, 2]), [True, False, True, True]
KINDS = ["ordinal" if is_ordered else "auto" for is_ordered in ORDERED]
STARTS = np.cumsum(Q) - Q
by_node = pytest.mark.parametrize("nodewise", [False, "and"])


def sparse(X, **options):
    return SparseFVBM(**{"columns": KINDS} | options).fit(X)


def inverse_root(m, is_ordered):
    """A⁻¹ of a column of m values, for contrasts; it maps a constant vector to 0."""
    if not is_ordered:
        return np.eye(m) - 1 / m
    degrees = np.arange(1, m)
    polynomials = np.linalg.qr(np.vander(np.arange(m), increasing=True))[0][:, 1:]
    return polynomials / np.sqrt(degrees * (degrees + 1) / 2) @ polynomials.T


ROOTS = [inverse_root(*kind) for kind in zip(Q, ORDERED, strict=True)]


def strength_of(codes, i, j, standardize):
    """The weight of the norm of a pair, by the formula of the docstring."""
    weight = 0.5
    for k in (i, j):
        p = np.bincount(codes[codes[:, k] >= 0, k], minlength=Q[k])
        p = p / p.sum()
        middle = np.diag(p) - np.outer(p, p) if standardize else np.eye(Q[k]) / Q[k]
        weight *= np.sqrt(np.trace(ROOTS[k] @ middle @ ROOTS[k]) * Q[k])
    return weight


@pytest.mark.parametrize("alpha", [0.02, 0.08])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("gaps", [False, True])
def test_kkt(alpha, standardize, gaps):
    """With the norm of A_i J A_j, whose dual is that of A_i⁻¹ J A_j⁻¹."""
    X = categories(300, Q, 4).astype(float)
    if gaps:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    model = sparse(X, alpha=alpha, standardize=standardize, missing="observed", tol=1e-9)
    codes, n_zero = np.where(np.isnan(X), -1, X).astype(np.int16), 0
    for i, j, slope, block in zero_sum_slopes(codes, Q, model, 1e-6):
        left, right = ROOTS[i], ROOTS[j]
        strength = alpha * strength_of(codes, i, j, standardize)
        dual = left @ slope @ right
        if block.any():
            scaled = np.linalg.pinv(left) @ block @ np.linalg.pinv(right)
            assert_allclose(dual, strength * scaled / np.linalg.norm(scaled), atol=1e-6)
        else:
            n_zero += 1
            assert np.linalg.norm(dual) <= strength + 1e-6
    assert model.ordered_.tolist() == [True, False, True, False] and n_zero < 6


def test_against_a_general_solver():
    """All pairs are selected, where the penalty is smooth."""
    X, alpha = categories(200, Q, 4)[:, :3], 0.02
    model = SparseFVBM(columns=KINDS[:3], alpha=alpha, standardize=False, tol=1e-9).fit(X)
    assert (model._pair_norms() > 0).sum() == 6
    problem = CategoricalPseudoLikelihood(X.astype(np.int16), Q[:3], np.ones(200))

    def cost(theta):
        value, gradient = problem.evaluate(theta)
        value, gradient = -value / 200, -gradient / 200
        for i, j, place in problem.blocks():
            left, right = np.linalg.pinv(ROOTS[i]), np.linalg.pinv(ROOTS[j])
            scaled = left @ theta[place].reshape(Q[i], Q[j]) @ right
            norm, strength = np.linalg.norm(scaled), alpha * strength_of(X, i, j, False)
            value += strength * norm
            gradient[place] += (strength / norm * left @ scaled @ right).ravel()
        return value, gradient

    start = np.random.default_rng(0).normal(size=problem.n_parameters) / 10
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-8})
    ours = problem.pack(model.coupling_, model.intercept_)
    assert_allclose(cost(ours)[0], found.fun, atol=1e-9)
    both = [problem.centered(theta)[problem.n_states :] for theta in (ours, found.x)]
    assert_allclose(*both, atol=1e-4)


@by_node
def test_a_path_begins_with_the_least_penalty_without_a_pair(nodewise):
    X, options = categories(300, Q, 4), {"nodewise": nodewise, "tol": 1e-8}
    first = np.max(sparse(X, **options).alphas_[0])
    options["nodewise"] = nodewise and "or"
    assert not sparse(X, alpha=1.0001 * first, **options).coupling_.any()
    assert (sparse(X, alpha=0.9999 * first, **options)._pair_norms() > 0).sum() == 2


def test_squares_are_those_of_the_dense_network():
    X = categories(200, Q, 3)
    ours = sparse(X, penalty="l2", alpha=0.05, tol=1e-10)
    theirs = FVBMPseudoLikelihood(alpha=0.05, columns=KINDS, tol=1e-14).fit(X)
    assert_allclose(ours.coupling_, theirs.coupling_, atol=2e-5)
    with pytest.raises(ValueError, match="columns 0, 2 have.*as 'nominal'"):
        statistics.inference(ours, X)
    assert_array_equal(ours.ordered_, theirs.ordered_)
    assert not sparse(X, penalty="l2", alpha=0).ordered_.any()


def test_levels_backwards_and_a_column_without_an_order():
    X = categories(300, Q, 4)
    model, turned = sparse(X), sparse(np.where([True, False, True, False], Q - 1 - X, X))
    assert_allclose(turned.alpha_, model.alpha_, rtol=1e-6)
    assert_allclose(turned._pair_norms(), model._pair_norms(), atol=2e-4)
    plain = sparse(X, columns="auto")
    assert_array_equal(sparse(X, columns={3: "ordinal"}).coupling_, plain.coupling_)
    assert np.abs(plain.coupling_ - model.coupling_).max() > 0.01


@pytest.mark.parametrize("bent", [False, True])
def test_the_criterion_is_what_it_says(bent):
    """Of one pair: the cheaper of its trend and its block, each with its own maximum."""
    n, trend = 2000, [np.arange(5) - 2, np.arange(3) - 1]
    block = 0.3 * np.outer(np.array([1, -1, 1, -1, 1]) if bent else trend[0] / 3, trend[1])
    coupling = np.block([[np.zeros((5, 5)), block], [block.T, np.zeros((3, 3))]])
    truth = PottsModel(coupling, np.zeros(8), np.array([5, 3]))
    X = truth.sample(n, np.random.default_rng(0), 100).astype(np.int16)
    model = SparseFVBM(columns="ordinal", tol=1e-9).fit(X)
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


def pairs_of(X, kind="nominal", **options):
    return SparseFVBM(columns=(kind, range(5)), **options).fit(X)._pair_norms() > 0


@by_node
def test_order_finds_edges_of_items_in_few_rows(nodewise):
    """All 16 of four chains of 200 rows."""
    true, tables = chain(5), [items(200, 5, seed) for seed in range(4)]
    plain, ordered = (
        np.array([pairs_of(X, kind, nodewise=nodewise) for X in tables])
        for kind in ("nominal", "ordinal")
    )
    assert ordered[:, true].all() and ordered[:, ~true].sum() <= 2
    assert plain[:, true].sum() / 2 <= 12


def test_few_edges_in_independent_items():
    """A pair enters with a probability of .0084 at most: more than 6 of 120 edges have 8e-5."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(8):
        X = rng.choice(5, size=(400, 6), p=[0.1, 0.2, 0.4, 0.2, 0.1])
        found += np.triu(pairs_of(X, "ordinal", nodewise="and")).sum()
    assert found <= 6


def test_relaxed_and_completed():
    X = items(600, 5, 0) // 2.0  # with fewer levels, all of a pair occur together
    shrunk = SparseFVBM(columns="ordinal", tol=1e-9).fit(X)
    relaxed = clone(shrunk).set_params(relax=True).fit(X)
    kept = shrunk._pair_norms() > 0
    assert_array_equal(relaxed._pair_norms() > 0, kept)
    expected = SparseFVBM(edges=kept, alpha=0, tol=1e-9).fit(X)
    assert_allclose(relaxed.coupling_, expected.coupling_, atol=1e-5)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = SparseFVBM(columns="ordinal", alpha="cv", cv=3).fit(X)
    assert model.solver_ == "prox-newton" and (model._pair_norms() > 0)[chain(5)].all()
