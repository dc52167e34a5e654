"""FSLLDensity against brute force, and where data are awkward."""

import functools
import math

import numpy as np
import pandas as pd
import pytest
from conftest import cases as n_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import oracles
from private import DualTable, StateSpace, _dual_table, _search
from sklearn_boltz import FSLLDensity
from sklearn_boltz.datasets import make_bayesian_network, make_ising_grid


def table_of_rows(n_values, seed, **options):
    codes = StateSpace(n_values).encode(random_data(n_values, 300, seed))
    codes, counts = np.unique(codes, return_counts=True)
    return dual_table(n_values, codes, counts.astype(float), **options)


def settled_state(n_values, n_terms, seed):
    """A dual table and a state at the joint optimum of a few terms."""
    table = table_of_rows(n_values, seed)
    state = _search.SearchState(math.log(table.space.size), 1.0)
    _search.search(table, state, solver="greedy", tol=1e-4, max_iter=n_terms, max_basis=99)
    _search.refit(table, state, 1e-12)
    return table, state


def dual_table(n_values, codes, counts, *, max_order=99, dtype=float, n_threads=1):
    space, n_features = StateSpace(n_values), len(n_values)
    return DualTable(
        space, codes, counts, n_features=n_features, alpha=1.0, max_order=max_order,
        dtype=np.dtype(dtype), n_threads=n_threads,
    )  # fmt: skip


SOLVERS = ["greedy", "newton"]


def random_data(n_values, n_samples, seed, n_patterns=6):
    """Rows that come from few patterns, with noise: there is something to learn."""
    rng = np.random.default_rng(seed)
    patterns = np.column_stack([rng.integers(m, size=n_patterns) for m in n_values])
    noise = np.column_stack([rng.integers(m, size=n_samples) for m in n_values])
    X = patterns[rng.integers(n_patterns, size=n_samples)]
    return np.where(rng.random(X.shape) < 0.2, noise, X)


def probabilities(model):
    """The whole table of a small model, from its terms and nothing else of it."""
    return oracles.log_linear_probabilities(model.n_values_.tolist(), model.basis_, model.theta_)


TABLES = [[2, 2, 2, 2], [2] * 6, [3, 2, 2], [3, 3, 2], [4, 3, 2], [5, 2, 3], [2, 6], [8, 2]]
cases = pytest.mark.parametrize("n_values", TABLES, ids=str)


@functools.cache
def fitted(n_values, solver):
    """200 rows and the model that was fitted to them."""
    X = random_data(n_values, 200, seed=1)
    return X, FSLLDensity(columns=list(map(range, n_values)), solver=solver).fit(X)


@cases
@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_greedy_follows_the_paper(n_values, alpha, monkeypatch):
    monkeypatch.setattr(_dual_table, "SLAB", 4 if alpha == 1 else _dual_table.SLAB)
    X = random_data(n_values, 160, seed=sum(n_values))  # no two moves cost the same
    brute = oracles.GreedyFSLL(X, n_values, alpha=alpha)
    model = FSLLDensity(columns=list(map(range, n_values)), solver="greedy", alpha=alpha).fit(X)
    assert_allclose(model.cost_path_, brute.path, atol=1e-9)
    theta = np.zeros(len(brute.theta))
    theta[oracles.places(model.basis_, n_values)] = model.theta_
    assert_allclose(theta, brute.theta, atol=1e-6)
    assert model.n_iter_ == len(brute.moves)


@pytest.mark.filterwarnings("ignore:the whole numbers in sample_weight")
@settings(max_examples=15)
@given(
    n_values=st.lists(st.integers(2, 3), min_size=1, max_size=3), n_samples=st.integers(2, 20),
    alpha=st.sampled_from([0.0, 1e-300, 1e-3]), max_basis=st.sampled_from([None, 1, 4]),
    solver=st.sampled_from(SOLVERS), dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([1, 10**6]),
)  # fmt: skip
def test_ends_without_tolerance_and_penalty(
    n_values, alpha, n_samples, max_basis, solver, dtype, seed, weight
):
    """And no term comes twice, though one that is there costs no more than one that is not."""
    X = np.column_stack([np.random.default_rng(seed).integers(m, size=n_samples) for m in n_values])
    limits = {"alpha": alpha, "tol": 1e-300, "max_basis": max_basis, "dtype": dtype}
    model = FSLLDensity(columns=list(map(range, n_values)), solver=solver, **limits)
    model.fit(X, sample_weight=np.full(n_samples, weight))
    assert model.converged_
    assert len(np.unique(model.basis_, axis=0)) == len(model.basis_)
    assert (np.diff(model.cost_path_) <= 1e-5).all()


@cases
@pytest.mark.parametrize("solver", SOLVERS)
def test_exact_quantities(n_values, solver):
    X, model = fitted(tuple(n_values), solver)
    p, every = probabilities(model), oracles.states(n_values)
    assert_allclose(model.score_samples(every), np.log(p), atol=1e-11)
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1, abs=1e-12)
    phi = oracles.basis_matrix(n_values)
    assert_allclose(model.expectation(every), phi @ p, atol=1e-11)
    terms = phi[oracles.places(model.basis_, n_values)]
    assert_array_equal(model.transform(every), terms.T)
    assert_allclose(model.marginal(range(len(n_values))).ravel(), p, atol=1e-12)
    if solver == "newton":  # which ends at the optimum of its terms
        data = oracles.smoothed_frequencies(X, n_values)
        assert_allclose(terms @ p, terms @ data, atol=1e-7)
        assert model.converged_


@cases
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_move_is_left(n_values, solver):
    X, model = fitted(tuple(n_values), solver)
    brute = oracles.GreedyFSLL(X, n_values, tol=math.inf)  # no step
    if solver == "newton":
        brute.r = oracles.charges(n_values, 200, 1.0, oracles.margins(brute.data, n_values))
    brute.theta[oracles.places(model.basis_, n_values)] = model.theta_
    brute.tol = 1e-4 + 1e-9
    assert not brute.step()
    assert np.all(np.diff(model.cost_path_) <= 1e-12)


def test_newton_beats_greedy():
    X, p = make_bayesian_network(
        14, 30_000, max_parents=3, network_state=1, random_state=0, return_distribution=True
    )
    kl = {}
    for solver in SOLVERS:
        q = FSLLDensity(solver=solver).fit(X).marginal(range(14))
        kl[solver] = (p * np.log(p / q)).sum()
    assert kl["newton"] < 0.5 * kl["greedy"]


def test_ising_edges_are_found():
    X, p, edges = make_ising_grid(
        4, 4, 100_000, random_state=1, return_distribution=True, return_edges=True
    )
    model = FSLLDensity().fit(X)
    assert {tuple(np.flatnonzero(y)) for y in model.basis_} == {tuple(edge) for edge in edges}
    q = model.marginal(range(16))
    assert (p * np.log(p / q)).sum() < 0.0008
    # The Fisher bound: 24 weights of variance 1/N or so each.
    assert np.abs(model.theta_ - 0.5).max() < 6 / math.sqrt(100_000) * 3


@st.composite
def small_tables(draw):
    """Rows, weights and numbers of values of a few columns, of which some may be constant."""
    n_values = draw(
        st.lists(st.sampled_from([2, 2, 2, 3, 4, 5]), min_size=1, max_size=5).filter(
            lambda n_values: math.prod(n_values) <= 500
        )
    )
    n_samples = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random_data(n_values, n_samples, rng, n_patterns=draw(st.integers(1, 4)))
    for i, m in enumerate(n_values):
        if draw(st.booleans()):
            X[:, i] = rng.integers(m)
    if draw(st.booleans()):
        X = np.repeat(X, 20, axis=0)
    weights = None
    kind = draw(st.sampled_from(["none", "counts", "real"]))
    if kind != "none":
        weights = rng.integers(0, 4, len(X)) if kind == "counts" else 3 * rng.random(len(X))
        weights[0] = 1
    return X, weights, n_values


@given(
    table=small_tables(),
    solver=st.sampled_from(SOLVERS),
    dtype=st.sampled_from([np.float64, np.float64, np.float32]),
    alpha=st.sampled_from([0.0, 0.02, 0.2, 1.0, 10.0]),
    max_order=st.sampled_from([None, None, 0, 1, 2]),
    max_basis=st.sampled_from([None, None, 0, 1, 5]),
    max_iter=st.sampled_from([100, 3]),
)
@settings(max_examples=n_cases(150))
def test_cost_against_all_joint_states(table, solver, dtype, alpha, max_order, max_basis, max_iter):
    """And any data give a distribution, within the limits that are set."""
    X, weights, n_values = table
    model = FSLLDensity(
        columns=list(map(range, n_values)), solver=solver, dtype=dtype, alpha=alpha,
        max_order=max_order, max_basis=max_basis, max_iter=max_iter,
    ).fit(X, sample_weight=weights)  # fmt: skip
    p = probabilities(model)
    q = np.exp(model.score_samples(oracles.states(n_values)))
    assert np.isfinite(model.theta_).all() and (q > 0).all()
    assert q.sum() == pytest.approx(1, abs=1e-10)
    if weights is not None and weights.dtype.kind == "f":  # they are no counts
        weights = weights * weights.sum() / (weights**2).sum()
    n_samples = len(X) if weights is None else weights.sum()
    terms = oracles.places(model.basis_, n_values)
    data = oracles.smoothed_frequencies(X, n_values, weights)
    r = oracles.description_lengths(n_values, n_samples, alpha)
    if solver == "newton" and max_basis is None:
        r = oracles.charges(n_values, n_samples, alpha, oracles.margins(data, n_values))
    rounding = 1e-9 if dtype == np.float64 else 2e-4
    assert model.cost_ == pytest.approx(data @ np.log(data / p) + r[terms].sum(), abs=rounding)
    assert model.cost_path_[0] == pytest.approx(data @ np.log(data * len(data)), abs=1e-12)
    assert model.cost_path_[-1] == model.cost_
    assert np.all(np.diff(model.cost_path_) <= rounding)
    n_basis = model.history_["n_basis"]
    assert model.n_iter_ == len(n_basis) == len(model.history_["seconds"])
    assert len(model.cost_path_) == model.n_iter_ + 1
    assert_array_equal(model.history_["cost"], model.cost_path_[1:])
    assert [0, *n_basis][-1] == len(model.basis_)
    assert max_basis is None or max([0, *n_basis]) <= max_basis
    assert max_basis != 0 or model.n_iter_ == 0  # a refit of no terms is no iteration
    assert max_order is None or ((model.basis_ > 0).sum(axis=1) <= max_order).all()
    expected = logsumexp(model.theta_ @ oracles.basis_matrix(n_values)[terms])
    assert model.log_partition_ == pytest.approx(expected, abs=1e-11)


# Awkward data.


def test_constant_columns_cost_no_states():
    rng = np.random.default_rng(0)
    X = np.ones((500, 60), dtype=int)
    X[:, 7] = rng.integers(2, size=500)
    X[:, 31] = X[:, 7] ^ (rng.random(500) < 0.1)
    model = FSLLDensity().fit(X)
    plain = FSLLDensity().fit(X[:, [7, 31]])
    assert model.n_features_in_ == 60
    few = model.marginal([7, 31])
    assert_allclose(few, plain.marginal([0, 1]), atol=1e-6)
    assert model.score(X) > plain.score(X[:, [7, 31]]) - 58 / 500
    assert (model.sample(1000, random_state=0).mean(axis=0)[:7] > 0.98).all()


# What a fitted model can do.


def test_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(2, size=300), "pixel3": rng.integers(3, size=300)})
    X["pixel7"] = np.where(X.pixel3 == 2, 2, rng.integers(2, size=300))
    X["d"] = X.a + 2 * rng.integers(2, size=300)
    model = FSLLDensity().fit(X)
    names = model.get_feature_names_out()
    assert "pixel3=2*pixel7=2" in names
    assert "a*d&1" in names
    assert model.get_feature_names_out(["a", "pixel3", "pixel7", "d"]).tolist() == names.tolist()
    table = model.interactions()
    assert table.columns.tolist() == ["term", "order", "weight", "expectation"]
    assert table.weight.abs().is_monotonic_decreasing
    assert set(table.term) == set(names)
    assert_allclose(model.marginal("a").sum(), 1)
    assert_allclose(model.marginal(["d", "a"]), model.marginal([3, 0]))


def test_survey(shared_data):
    """Held-out likelihood on NLTCS, above what is asked of the defaults."""
    with np.load(shared_data / "nltcs.npz") as file:
        train, test = file["train"], file["test"]
    model = FSLLDensity().fit(train)
    assert model.score(test) >= -6.08
    every = StateSpace([2] * 16).decode(np.arange(2**16))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize(("m", "dependent"), [(3, True), (27, False), (32, True)])
def test_columns_have_their_own_distribution(m, dependent):
    """What a column loses against its frequencies is at most a nat for each that is free."""
    rng = np.random.default_rng(m)
    decay = 0.6 * 0.8 ** np.arange(m)
    for p in [rng.dirichlet(np.full(m, 0.3)), rng.dirichlet(np.full(m, 5.0)), decay / decay.sum()]:
        x = rng.choice(m, size=300, p=p)
        x[:100] = 0
        other = rng.integers(3, size=300)
        y = np.where(rng.random(300) < 0.5, x % 3, other) if dependent else other
        model = FSLLDensity(columns=[range(m), range(3)]).fit(np.column_stack([x, y]))
        for j, codes in enumerate([x, y]):
            q = model.marginal([j])
            observed = (np.bincount(codes, minlength=len(q)) + 1 / len(q)) / 301
            assert 300 * observed @ np.log(observed / q) < len(q) - 1


def test_few_terms_are_the_best_of_all():
    """With `max_basis`, terms of single columns are charged like the others."""
    X = random_data([5, 2, 2], 400, seed=3)
    X[:, 1] = X[:, 2]
    model = FSLLDensity(columns=[range(5), range(2), range(2)], max_basis=1).fit(X)
    assert model.get_feature_names_out().tolist() == ["x1*x2"]


@pytest.mark.parametrize("n_values", [[2] * 6, [3, 2, 2, 4]])
def test_joint_choice(n_values):
    table, state = settled_state(n_values, 4, seed=0)
    phi = oracles.basis_matrix(n_values)
    order = oracles.places(table.space.decode(np.arange(table.space.size)), n_values)
    phi = phi[np.ix_(order, order)].astype(float)
    weights = np.exp(state.theta @ phi[state.codes])
    p = weights / weights.sum()
    cov = (phi * p) @ phi.T - np.outer(phi @ p, phi @ p)
    residual = table.d - phi @ p
    others = np.setdiff1d(np.arange(1, table.space.size), state.codes)
    penalty = np.array([table.penalty(code) for code in others])
    expected, active = [], list(state.codes)
    for _ in range(3):
        # The quadratic model of the gain: half of g' C⁻¹ g over all terms in play.
        def gain(terms):
            return 0.5 * residual[terms] @ np.linalg.lstsq(
                cov[np.ix_(terms, terms)], residual[terms], rcond=1e-12
            )[0]  # fmt: skip

        gains = [gain([*active, y]) - gain(active) for y in others] - penalty
        gains[expected] = -1
        expected.append(int(np.argmax(gains)))
        active.append(others[expected[-1]])
    chosen = _search.choose_jointly(table, state.codes, others, penalty, -1.0, 3)
    assert chosen == expected


@pytest.mark.parametrize("n_values", [[2] * 8, [3, 2, 2, 2], [3, 5, 2, 2, 4], [3, 3, 3, 3, 3]])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_dual_table_does_not_drift(n_values, n_threads):
    rng = np.random.default_rng(0)
    codes = rng.choice(np.arange(1, math.prod(n_values)), size=9, replace=False)
    theta = np.zeros(9)
    with dual_table(n_values, codes, np.ones(9), n_threads=n_threads) as table:
        for _ in range(100):
            k = rng.integers(9)
            step = rng.normal() if rng.random() < 0.5 else -theta[k]
            change, code = table.update(codes[k], step, -1e-9)
            theta[k] += step
            assert table.scan(-1e-9) == (pytest.approx(change, abs=1e-12), code)
        updated = table.t.copy()
        table.weigh(codes, theta)
        table.normalise()
    # A step of -δ after δ loses some digits where 1 + tanh δ · θ̄ is small.
    assert_allclose(updated, table.t, atol=1e-9)


def test_limits(capsys):
    X = make_ising_grid(3, 3, 2000, random_state=0)
    for solver in ("newton", "greedy"):
        assert len(FSLLDensity(max_basis=4, solver=solver).fit(X).basis_) == 4
    model = FSLLDensity(max_iter=3, solver="greedy", verbose=2).fit(X)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert len(capsys.readouterr().out.splitlines()) == 5  # three moves, the columns, the end
    empty = FSLLDensity(max_iter=0).fit(X)
    assert FSLLDensity().fit(X).history_["n_basis"][0] == 1
    assert empty.transform(X).shape == (2000, 0)
    assert empty.score(X) == pytest.approx(-9 * math.log(2))
    assert len(FSLLDensity(alpha=0.1).fit(X).basis_) > len(FSLLDensity().fit(X).basis_)
    assert len(FSLLDensity(alpha=1e6).fit(X).basis_) == 0
