"""The pseudo-likelihood of spins: four solvers, the existence of a maximum, and derivatives."""

import re
import warnings

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import seeds, separated_parameters, unpack
from sklearn.exceptions import ConvergenceWarning

from oracles import differences
from private import PseudoLikelihood, Regressions, network_rows
from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches

SOLVERS = ["newton", "lbfgs", "bslm", "ga"]


def spins(n=300, d=5, seed=0, strength=0.4):
    """Rows of a chain in which each variable copies the one before now and then."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], size=(n, d), p=[0.4, 0.6])
    for j in range(1, d):
        copied = rng.random(n) < strength
        X[copied, j] = X[copied, j - 1]
    return X


def maximised(X, **params):
    """A fit without a penalty."""
    return FVBMPseudoLikelihood(alpha=0.0, **params).fit(X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_reach_the_same_maximum(solver):
    X, alpha = spins(), 0.01 if solver in ("lbfgs", "bslm") else 0.0
    best = FVBMPseudoLikelihood(alpha=alpha, tol=1e-12).fit(X)
    other = FVBMPseudoLikelihood(solver=solver, step_size=0.7, alpha=alpha, tol=1e-10).fit(X)
    assert other.converged_ and other.solver_ == solver
    assert_allclose(other.coupling_, best.coupling_, atol=1e-5)
    assert_allclose(other.intercept_, best.intercept_, atol=1e-5)
    values = other.history_["log_pseudo_likelihood"]
    rises = len(X) * np.diff(values)
    assert len(values) == len(other.history_["seconds"]) == other.n_iter_
    assert (rises > -1e-9).all()
    assert rises[-1] < 1e-10
    # It began where variables are independent.
    p = (1 + X.mean(axis=0)) / 2
    assert values[0] > (p * np.log(p) + (1 - p) * np.log1p(-p)).sum()


@settings(max_examples=cases(15))
@given(st.integers(0, 2**32 - 1), st.sampled_from([("bslm", 1.0), ("ga", 0.3)]), st.integers(2, 6))
def test_bslm_never_falls_from_any_start(seed, solver, d):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], size=(50, d))
    start = unpack(rng.normal(scale=0.7, size=d * (d + 1) // 2), d)
    model = FVBMPseudoLikelihood(solver=solver[0], step_size=solver[1], max_iter=60, alpha=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, coupling_init=start[0], intercept_init=start[1])
    initial = maximised(X)
    initial.coupling_, initial.intercept_ = start
    values = [initial.log_pseudo_likelihood(X).mean(), *model.history_["log_pseudo_likelihood"]]
    assert (np.diff(values) >= -1e-9 / len(X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start(solver):
    X = spins()
    model = maximised(X, solver=solver, warm_start=True, tol=1e-7)
    cold = model.n_iter_
    assert model.fit(X).n_iter_ < cold
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.fit(X[:, :3])
    assert model.coupling_.shape == (5, 5)


def far_couplings(d):
    """Couplings so strong that the pseudo-likelihood has no curvature there."""
    coupling = np.zeros((d, d))
    coupling[0, 1] = coupling[1, 0] = -28.0
    return coupling


@pytest.mark.parametrize("streamed", [False, True])
def test_newton_does_not_overshoot_where_values_are_rare(streamed, monkeypatch):
    """The sum rose while one coupling went to -30, and no step led back from there."""
    rng = np.random.default_rng(2)
    field = 0.7 * rng.normal(size=(10_000, 1)) + 0.7 * rng.normal(size=(10_000, 30))
    X = (field > np.linspace(0.5, 2.5, 30)).astype(int)
    if streamed:
        monkeypatch.setattr(network_rows, "MOST_ENTRIES", 1)
    model = maximised(Batches([X[:4000], X[4000:]]) if streamed else X)
    assert model.converged_ and model.n_iter_ < 30
    assert (model._seen is None) == streamed
    gradient = 2 * (2 * X - 1).T @ (X - model.transform(X))
    gradient += gradient.T
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient).max() < 1e-3


def test_newton_comes_back_from_where_there_is_no_curvature():
    X = spins(n=2000)
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X, coupling_init=far_couplings(5))
    assert model.converged_
    assert_allclose(model.coupling_, maximised(X).coupling_, atol=1e-6)


@pytest.mark.parametrize(("alpha", "ending"), [(0, "max_iter"), (0.1 / 2000, "tol")])
@pytest.mark.parametrize("kind", ["bits", "gaps", "categories"])
def test_no_figure_where_the_curvature_does_not_tell(kind, alpha, ending):
    X, coupling = (spins(n=2000) + 1) / 2, far_couplings(5)
    if kind == "gaps":
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    elif kind == "categories":
        X[:, 4] = np.arange(2000) % 3
        coupling = np.pad(np.kron(far_couplings(4), [[1, -1], [-1, 1]]), (0, 3))
    limits = {"max_iter": 2} if ending == "max_iter" else {"tol": 1e6}
    limits |= {"solver": "bslm"} if kind == "bits" else {"missing": "observed"}
    model = FVBMPseudoLikelihood(alpha=alpha, **limits)
    count = min(((X[:, 0] == s) & (X[:, 1] == t)).sum() for s in (0, 1) for t in (0, 1))
    with pytest.warns(ConvergenceWarning, match="does not tell how far the maximum is") as caught:
        model.fit(X, coupling_init=coupling)
    message = str(caught[0].message)
    assert "nats" not in message and not model.converged_
    if alpha == 0:
        assert "the coupling of column 0 and column 1 (column 0 = " in message
        assert f"in {count} of 2000 rows" in message
    else:
        assert re.search(r"the (intercept|coupling) of column [01].* of 2000 rows", message)
    assert ("or whether there is one" in message) == ("alpha=0.01" in message) == (alpha == 0)
    assert ("a larger max_iter" if ending == "max_iter" else "a smaller tol") in message


def test_the_figure_of_what_is_missing_is_about_right():
    """Within a factor of 2, for 30 early ends; it was 0 for Newton's method."""
    ratios = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d, n = rng.integers(2, 8), rng.integers(50, 2000)
        common = rng.normal(size=(n, 1)) * rng.uniform(0, 2)
        X = (common + rng.normal(size=(n, d)) > rng.normal(size=d)).astype(int)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solver = ["bslm", "lbfgs", "newton"][seed % 3]
            early = maximised(X, solver=solver, max_iter=int(rng.integers(1, 8)))
        figure = [re.search(r"some ([-\d.e+]+) nats", str(w.message)) for w in caught]
        if figure and figure[0]:
            fits = maximised(X, tol=1e-9), early
            missing = n * np.subtract(*[m.history_["log_pseudo_likelihood"][-1] for m in fits])
            if missing > 0.01:
                ratios.append(float(figure[0][1]) / missing)
    assert len(ratios) > 10
    assert 0.5 < min(ratios) and max(ratios) < 2


def test_long_steps_of_gradient_ascent():
    X = spins(strength=0.0)
    with pytest.warns(UserWarning, match="step_size > 1"):
        maximised(X, solver="ga", step_size=1.5)
    with (
        pytest.warns(UserWarning, match="step_size > 1"),
        pytest.warns(ConvergenceWarning, match="fell: the steps are too long"),
    ):
        model = maximised(X, solver="ga", step_size=2.5)
    assert not model.converged_ and np.isfinite(model.coupling_).all()


@settings(max_examples=cases(40))
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([8, 20, 60]))
def test_separation_is_found_where_linear_programming_finds_it(seed, d, n):
    X = np.random.default_rng(seed).choice([-1, 1], size=(n, d), p=[0.3, 0.7])
    varying = np.ptp(X, axis=0) > 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = maximised(X)
    warned = any("has no maximum" in str(w.message) for w in caught)
    assert warned == (varying.any() and separated_parameters(X[:, varying] > 0, 2).any())
    assert model.converged_ == (not warned)
    assert np.isfinite(model.coupling_).all() and np.isfinite(model.intercept_).all()
    # A penalty mends it.
    assert FVBMPseudoLikelihood(alpha=0.5 / n).fit(X).converged_


def random_problem(seed, alpha=0.0, *, gaps=False):
    """Rows of -1 and 1, with 0 for missing cells, and parameters."""
    rng = np.random.default_rng(seed)
    d, n = rng.integers(1, 7), rng.integers(1, 40)
    values = [-1.0, 0.0, 1.0] if gaps else [-1.0, 1.0]
    problem = PseudoLikelihood(rng.choice(values, size=(d, n)), rng.random(n), alpha)
    return problem, rng.normal(scale=0.6, size=problem.n_parameters)


def value(problem, theta):
    return problem.at(theta).value


def gradient(problem, theta):
    return problem.gradient(problem.at(theta))


def information(problem, theta):
    return problem.information(problem.at(theta))


@settings(max_examples=cases(60))
@given(seeds, st.sampled_from([0.0, 1.5]), st.booleans(), st.booleans())
def test_objective_and_derivatives_are_the_definition(seed, alpha, gaps, independent):
    problem, theta = random_problem(seed, alpha, gaps=gaps)
    if independent:  # for which there is a formula
        theta[len(problem.spins) :] = 0
    coupling, intercept = problem.unpack(theta)
    assert_array_equal(problem.pack(coupling, intercept), theta)
    x, w = problem.spins, problem.weights
    terms = -np.log1p(np.exp(-2 * x * (coupling @ x + intercept[:, None])))
    expected = (np.where(x == 0, 0, terms) @ w).sum()
    expected -= alpha / 2 * w.sum() * (theta[len(x) :] ** 2).sum()
    assert value(problem, theta) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    slope = differences(lambda theta: value(problem, theta), theta)
    assert_allclose(gradient(problem, theta), slope, atol=1e-6)
    bend = -differences(lambda theta: gradient(problem, theta), theta)
    assert_allclose(information(problem, theta), bend, atol=1e-6)
    direction = np.eye(len(theta))[0]
    moved = problem.moved(0.1 * direction)
    after = problem.after(problem.at(theta), 0.1 * direction, 0.5, moved)
    assert after.value == pytest.approx(value(problem, theta + 0.05 * direction))


@settings(max_examples=cases(25))
@given(seeds)
def test_score_products_are_those_of_single_rows(seed):
    problem, theta = random_problem(seed, alpha=0.7)
    rows = [PseudoLikelihood(x[:, None], np.ones(1)) for x in problem.spins.T]
    scores = np.array([gradient(row, theta) for row in rows])
    regressions = Regressions.of_spins(problem, problem.at(theta))
    expected = scores.T * problem.weights @ scores
    assert_allclose(regressions.score_products(), expected, atol=1e-11)
