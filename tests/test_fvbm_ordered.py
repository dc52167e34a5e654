"""The penalty that knows the order of levels, and probabilities cell by cell."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import fit
from numpy.testing import assert_allclose, assert_array_equal

from oracles import states
from private import (
    CategoricalPseudoLikelihood,
    PottsModel,
    Table,
    cell_probabilities,
    next_weights,
)
from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.batches import Batches

Q = np.array([3, 2, 4, 3])


def problem(ordered, penalty=0.7, pair_weights=None):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(q, size=40) for q in Q]).astype(np.int16)
    codes[3, 2] = codes[5, 0] = -1
    return CategoricalPseudoLikelihood(
        codes, Q, np.ones(40), coupling_penalty=penalty,
        ordered=None if ordered is None else np.array(ordered), pair_weights=pair_weights,
    )  # fmt: skip


@pytest.mark.parametrize("pair_weights", [None, np.random.default_rng(4).uniform(0, 3, (4, 4))])
def test_gradient(pair_weights):
    objective = problem([True, True, False, True], pair_weights=pair_weights)
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
    assert_allclose(penalty_of(ordered, trend, trend), 0.7)
    assert_allclose(penalty_of(ordered, trend, jump), 0.7 * 3)
    assert_allclose(penalty_of(ordered, jump, jump), 0.7 * 3 * 3)


def test_each_pair_has_its_weight():
    weights = np.arange(16.0).reshape(4, 4)
    weighted, plain, none = problem(None, pair_weights=weights), problem(None), problem(None, 0)
    for k, (i, j, place) in enumerate(plain.blocks()):
        theta = np.zeros(plain.n_parameters)
        theta[place] = 0.1 * (k + 1)
        costs = [none.evaluate(theta)[0] - own.evaluate(theta)[0] for own in (plain, weighted)]
        assert_allclose(costs[1], weights[i, j] * costs[0], rtol=1e-9)


@settings(max_examples=cases(20))
@given(st.integers(0, 2**32 - 1))
def test_weights_are_those_of_each_pair(seed):
    """γ is the trace of (H + Λ)⁻¹ H of a pair, whose variance 2/(λ w) is Σ m²/γ without a prior."""
    rng = np.random.default_rng(seed)
    columns = np.repeat(np.arange(4), Q - 1)
    contrasts = [(i, j) for r, i in enumerate(columns) for j in columns[r + 1 :] if i < j]
    m, h = rng.normal(size=len(contrasts)), rng.exponential(size=len(contrasts))
    strength, old = rng.uniform(0.1, 5), np.exp(rng.normal(size=(4, 4)))
    found = next_weights(m, h, strength, old, Q)
    for i, j in combinations(range(4), 2):
        own = np.array([pair == (i, j) for pair in contrasts])
        information, n = np.diag(h[own]), own.sum()
        assert n == (Q[i] - 1) * (Q[j] - 1)
        shrunk = information + strength * old[i, j] * np.eye(n)
        gamma = np.trace(np.linalg.solve(shrunk, information))
        expected = (gamma + 1 / n) / (strength * (m[own] ** 2).sum() / 2 + 1 / n)
        assert_allclose(found[i, j], expected)


def test_without_order_the_penalty_is_the_plain_one():
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
    every = states(Q)
    weight = np.exp(model.log_weight(every))
    exact = cell_probabilities(model, codes, 10**6, 1, np.random.default_rng(0))
    drawn = cell_probabilities(model, codes, 1, 40_000, np.random.default_rng(0))
    for row, code in enumerate(codes):
        fits = ((code < 0) | (every == code)).all(axis=1)
        for j in np.flatnonzero(code < 0):
            own = slice(model.starts[j], model.starts[j + 1])
            expected = np.bincount(every[fits, j], weight[fits], Q[j]) / weight[fits].sum()
            assert_allclose(exact[row, own], expected, rtol=1e-10)
            # Averages of probabilities of 40,000 correlated sweeps; the seed is fixed.
            assert_allclose(drawn[row, own], expected, atol=0.02)


@pytest.fixture(scope="module")
def ratings():
    """60 rows of two ratings that rise together, a word and a bit."""
    rng = np.random.default_rng(3)
    mood = rng.normal(size=60)
    one, two = (np.clip(np.round(mood + rng.normal(size=60)) + 2, 0, 4) for _ in range(2))
    return pd.DataFrame({
        "one": one.astype(int),
        "two": pd.Categorical(two.astype(int), range(5), ordered=True),
        "word": rng.choice(["a", "b", "c"], 60),
        "bit": rng.integers(2, size=60),
    })  # fmt: skip


def test_ordinal_columns(ratings):
    model = fit(ratings, alpha=0.1, columns={"one": "ordinal", "two": "ordinal"})
    assert model.ordered_.tolist() == [True, True, False, False]
    same = fit(ratings, alpha=0.1, columns=["ordinal", "ordinal", "nominal", "ordinal"])
    assert_array_equal(same.coupling_, model.coupling_)
    assert model.solver_ == "lbfgs"
    codes = np.column_stack([ratings["one"], ratings["two"].cat.codes])
    batches = Batches([codes[:30], codes[30:]])
    in_batches = fit(batches, alpha=0.1, columns=("ordinal", range(5)))
    at_once = fit(codes, alpha=0.1, columns=("ordinal", range(5)))
    assert in_batches.ordered_.all() and at_once.ordered_.all()
    assert_allclose(in_batches.coupling_, at_once.coupling_, atol=1e-8)


def test_the_fit_is_the_maximum_with_the_penalty(ratings):
    """At the maximum its gradient vanishes, and other columns of order give another maximum."""
    codes = np.column_stack([ratings["one"], ratings["two"].cat.codes]).astype(np.int16)
    model = fit(codes, alpha=0.2, columns={0: "ordinal"}, tol=1e-12)
    objective = CategoricalPseudoLikelihood(
        codes, model.n_values_, np.ones(60), coupling_penalty=0.2 * 60 / 8,
        ordered=np.array([True, False]),
    )  # fmt: skip
    theta = objective.pack(model.coupling_, model.intercept_)
    assert np.abs(objective.evaluate(theta)[1]).max() < 1e-3
    plain = fit(codes, alpha=0.2, tol=1e-12)
    assert np.abs(plain.coupling_ - model.coupling_).max() > 0.01


def test_order_makes_no_difference_without_penalty_or_levels(ratings):
    codes = np.column_stack([ratings["one"] > 2, ratings["bit"], ratings["two"].cat.codes > 1])
    for X, alpha in ((codes.astype(int), 0.1), (ratings[["word", "one"]], 0.0)):
        plain, ordered = fit(X, alpha=alpha), fit(X, alpha=alpha, columns="ordinal")
        assert not ordered.ordered_.any() and ordered.solver_ == "newton"
        assert_array_equal(ordered.coupling_, plain.coupling_)


def test_ordered_types_are_ordinal(ratings):
    """Of pandas, with more than two values; categories of numbers without an order are nominal."""
    X = ratings.assign(
        word=pd.Categorical(ratings["word"], ["b", "a", "c"], ordered=True),
        bit=pd.Categorical(np.where(ratings["bit"], "yes", "no"), ["no", "yes"], ordered=True),
        one=pd.Categorical(ratings["one"]),
    )
    model = FVBMPseudoLikelihood().fit(X)
    kinds = ["nominal", "ordinal", "ordinal", "binary"]
    assert list(model.columns_.values()) == kinds and model.ordered_.tolist()[:3] == [0, 1, 1]
    assert FVBMPseudoLikelihood(columns={"two": "nominal"}).fit(X).columns_["two"] == "nominal"
    table = Table.learn(X)
    assert table.is_ordered.tolist() == [False, True, True, False] and not table.has_means.any()
    # Their weak couplings are shrunk, by more than the least strength of .09.
    model = FVBMPseudoLikelihood().fit(X[["word", "bit", "one"]])
    assert model.ordered_.any() and model.alpha_ > 1


@pytest.mark.parametrize("columns", ["ordinal", {"one": "ordinal"}])
def test_standard_errors_are_those_without_a_penalty(ratings, columns):
    X = ratings[["one", "bit"]].clip(upper=2)
    found, plain = (
        statistics.inference(FVBMPseudoLikelihood(columns=kinds).fit(X), X)
        for kinds in (columns, "nominal")
    )
    assert_array_equal(found.estimate, plain.estimate)
    assert_array_equal(found.std_err, plain.std_err)
    assert np.isfinite(found.std_err).all()


def test_number_of_draws():
    """A row of 13 missing bits is completed by draws: more of them, less noise."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((160, 1)) < 0.5, 1.0, 0.0) * np.ones(14)
    X = np.where(rng.random(X.shape) < 0.3, 1 - X, X)
    X[:80, 1:] = np.nan
    few, same, many = (fit(X, alpha=0.1, n_draws=n, tol=0.1).coupling_ for n in (1, 1, 30))
    exact = fit(X[80:], alpha=0.1).coupling_
    assert_array_equal(few, same)
    assert np.linalg.norm(many - exact) < np.linalg.norm(few - exact)
