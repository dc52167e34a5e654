"""Terms of three columns and more, chosen or given, and a potential of the number of ones."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import fit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, chi2
from sklearn.base import clone

from oracles import differences, states
from private import PseudoLikelihood, SpinModel, _terms
from sklearn_boltz import FSLLDensity, MaximumEntropy, SparseFVBM

FALSE_ALARM = 1e-6


def random_network(d, terms, weights, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(scale=scale, size=(d, d)), 1)
    coupling += coupling.T
    return SpinModel(coupling, rng.normal(scale=scale, size=d), terms, weights)


def random_problem(d, seed, alpha=0.0, missing=False, n=40):
    """An objective of random rows with weights, its parameters, and terms of several orders."""
    rng = np.random.default_rng(seed)
    low = -1 if not missing else rng.choice([-1, 0])
    spins = rng.choice([-1.0, 1.0, float(low)], size=(d, n))
    pairs = PseudoLikelihood(spins, rng.gamma(2, size=n), alpha)
    orders = [order for order in (3, 3, 4, 5) if order <= d]
    terms = {tuple(sorted(rng.permutation(d)[:order].tolist())) for order in orders}
    problem = _terms.InteractionPseudoLikelihood(pairs, sorted(terms))
    theta = rng.normal(scale=0.4, size=pairs.n_parameters + len(terms))
    return problem, theta


# The objective, and what a term is worth.


def brute_fields(spins, problem, theta):
    coupling, intercept, weights = problem.unpack(theta)
    fields = coupling @ spins + intercept[:, None]
    for term, weight in zip(problem.terms, weights, strict=True):
        for j in term:
            fields[j] += weight * spins[[k for k in term if k != j]].prod(axis=0)
    return fields


problems = st.tuples(
    st.integers(3, 6), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]), st.booleans()
)


@settings(max_examples=cases(15))
@given(problems)
def test_objective_and_derivatives(args):
    """A missing cell has no term and adds nothing to others; then curvatures are upper bounds."""
    problem, theta = random_problem(*args)
    spins, w = problem.pairs.spins, problem.pairs.weights
    fields = brute_fields(spins, problem, theta)
    log_p = np.where(spins != 0, spins * fields - np.log(2 * np.cosh(fields)), 0)
    penalty = args[2] / 2 * w.sum() * (theta[len(spins) :] ** 2).sum()
    assert problem.at(theta).value == pytest.approx((log_p @ w).sum() - penalty, rel=1e-10)
    expected = np.tanh(fields) * (spins != 0)
    assert_allclose(problem.tanh(*problem.unpack(theta)), expected, atol=1e-12)
    slopes = differences(lambda theta: problem.at(theta).value, theta)
    assert_allclose(problem.at(theta).gradient, slopes, atol=1e-5)
    problem.set_scale(theta)
    bends = -differences(lambda theta: problem.at(theta).gradient, theta).diagonal()
    if args[-1]:
        assert (problem.curvature() > bends - 1e-3).all()
    else:
        assert_allclose(problem.curvature(), bends, atol=1e-3)


@settings(max_examples=cases(15))
@given(st.integers(3, 7), st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 3))
def test_all_triples(d, seed, missing, n_known):
    """Scores in standard deviations, against sums over the rows of each triple."""
    problem, theta = random_problem(d, seed, missing=missing)
    pairs, tanh = problem.pairs, problem.tanh(*problem.unpack(theta))
    residual = pairs.spins - tanh
    every, statistics = list(itertools.combinations(range(d), 3)), []
    for i, j, k in every:
        x, r = pairs.spins[[i, j, k]], residual[[i, j, k]] * (pairs.spins[[i, j, k]] != 0)
        score = r[0] * x[1] * x[2] + r[1] * x[0] * x[2] + r[2] * x[0] * x[1]
        variance = (x * r).sum(axis=0) ** 2  # without the gaps, p² = 1
        statistics.append((score @ pairs.weights) ** 2 / max(variance @ pairs.weights, 1e-30))
    own = dict(zip(every, statistics, strict=True))
    known = set(every[:n_known])
    expected = sorted((own[triple] for triple in set(every) - known), reverse=True)
    for n_best in (4, len(every)):
        found = _terms.best_triples(pairs, tanh, n_best, known)
        assert not known & set(found)
        scores = [own[triple] for triple in found]
        assert_allclose(scores, expected[:n_best], rtol=1e-3, atol=1e-6)


def gain_of(term, X, present=False, alpha=0.0):
    """What `gains` says of a term, in a fit with or without it."""
    pairs = PseudoLikelihood(np.ascontiguousarray(2.0 * X.T - 1), np.ones(len(X)), alpha)
    d, terms = X.shape[1], [term] if present else []
    found, *_ = _terms.refit(pairs, SpinModel(np.zeros((d, d)), np.zeros(d)), terms, 1e-6)
    problem = _terms.InteractionPseudoLikelihood(pairs, terms)
    tanh = problem.tanh(found.coupling, found.intercept, found.weights)
    return _terms.gains(pairs, tanh, [term], found.weights if present else [0.0], set(terms))[0]


def test_the_gain_is_that_of_a_test_of_scores():
    """Twice the gain of a term that is not there is distributed as the square of a normal number.

    Columns are skewed and coupled, and all pairs are fitted. Of 100 data sets, those above the 90 %
    quantile of chi-square: a binomial number, outside of whose interval 1 of 10,000 runs falls. One
    with the information H for the variance would have far more.
    """
    network, rng = random_network(5, [], [], seed=1), np.random.default_rng(0)
    tables = network.sample(100 * 800, rng, 1).reshape(100, 800, 5)
    exceeded = sum(2 * gain_of((0, 2, 4), X) > chi2.isf(0.1, 1) for X in tables)
    low, high = binom.interval(1 - 1e-4, 100, 0.1)
    assert low <= exceeded <= high + 3  # asymptotic: a little more than that


# Which terms are chosen.


def test_planted_terms_are_found_and_no_others():
    network = random_network(12, [(0, 1, 2), (3, 4, 5), (2, 7, 9)], [0.3, -0.3, 0.25], seed=3)
    model = fit(network.sample(6000, np.random.default_rng(0), 1), max_order=3)
    assert set(model.terms_) == set(network.terms)
    weights = dict(zip(model.terms_, model.term_weights_, strict=True))
    assert_allclose([weights[term] for term in network.terms], network.weights, atol=0.08)
    assert_allclose(model.coupling_, network.coupling, atol=0.15)


@pytest.mark.parametrize("n_sets", [30, pytest.param(150, marks=pytest.mark.slow)])
def test_false_alarms(n_sets):
    """Rows without any term of three: how often one is chosen.

    A gain above ½ ln N + ln C(d, 3) has the probability p of a chi-square number of one degree of
    freedom above twice that, and C(d, 3) p are expected: in 1.1 % of the fits here. More than
    eleven of 150 fits with a false term, or five of 30, have a probability below 1e-6.
    """
    d, n = 10, 300
    price = 0.5 * math.log(n) + math.log(math.comb(d, 3))
    expected = math.comb(d, 3) * chi2.sf(2 * price, 1)
    assert expected < 0.02
    network = random_network(d, [], [], seed=5, scale=0.2)
    tables = network.sample(n_sets * n, np.random.default_rng(0), 1).reshape(n_sets, n, d)
    wrong = sum(bool(fit(X, max_order=3, tol=1e-3).terms_) for X in tables)
    assert wrong <= binom.isf(FALSE_ALARM, n_sets, expected)


def test_terms_of_four_by_heredity():
    """A term of four is looked for only where its parts are in the model."""
    parts = list(itertools.combinations(range(4), 3))
    network = random_network(7, [*parts, (0, 1, 2, 3)], [0.25] * 4 + [0.4], seed=1, scale=0.1)
    X = network.sample(8000, np.random.default_rng(1), 1)
    assert (0, 1, 2, 3) in fit(X, max_order=4).terms_
    assert max(map(len, fit(X, max_order=3).terms_)) == 3


@pytest.mark.parametrize("d", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_beside_the_exact_likelihood(d):
    """Both are near the truth, from which a maximum of q parameters lies about q / 2N nats."""
    terms = [(0, 1, 2), (3, 4, 5), (1, 6, 7)]
    network = random_network(d, terms, [0.4, -0.4, 0.3], seed=4, scale=0.15)
    rng, n = np.random.default_rng(0), 20_000
    X, fresh = network.sample(n, rng, 1), network.sample(n, rng, 1)
    truth = (network.log_weight(fresh) - network.log_partition()).mean()
    ours, exact = fit(X, max_order=3), FSLLDensity(max_order=3).fit(X)
    assert set(ours.terms_) >= set(terms)
    bound = 3 * (d + d * (d - 1) / 2 + 3) / (2 * n)
    for model in (ours, exact):
        assert truth - model.score(fresh) < bound + 0.002
    assert ours.log_partition_ == pytest.approx(ours._model().log_partition())
    table = exact.interactions()
    own = dict(zip(table["term"], table["weight"], strict=True))
    weights = dict(zip(ours.terms_, ours.term_weights_, strict=True))
    for term, weight in ((term, weights[term]) for term in terms):
        # There the second value has the sign -1.
        assert -own["*".join(f"x{j}" for j in term)] == pytest.approx(weight, abs=0.05)


# The estimator.

LIKELIHOOD = {"kind": MaximumEntropy}


def rows_with_a_term(n=1500, d=6, seed=0):
    network = random_network(d, [(0, 1, 2)], [0.5], seed=seed, scale=0.2)
    return network.sample(n, np.random.default_rng(seed), 1)


def test_estimator():
    X = rows_with_a_term()
    model = fit(X, max_order=3)
    assert model.terms_ == [(0, 1, 2)] and model.solver_ == "lbfgs" and model.converged_
    assert_array_equal(model.history_["n_terms"][[0, -1]], [0, 1])
    assert (np.diff(model.history_["log_pseudo_likelihood"]) > -1e-9).all()
    assert len(model.history_["seconds"]) == model.n_iter_
    codes = states([2] * 6)
    p = np.exp(model.score_samples(codes))
    assert p.sum() == pytest.approx(1)
    x = 2 * codes - 1
    weight = np.einsum("ij,jk,ik->i", x, model.coupling_, x) / 2 + x @ model.intercept_
    weight += model.term_weights_[0] * x[:, :3].prod(axis=1)
    assert_allclose(model.energy(codes), -weight, atol=1e-12)
    table = model.interactions()
    place = list(table["term"]).index("x0*x1*x2")
    assert table["order"][place] == 3
    assert table["expectation"][place] == pytest.approx(p @ x[:, :3].prod(axis=1))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert_allclose(clone(model).fit(X).term_weights_, model.term_weights_)
    model.term_weights_ *= 2  # figures that were kept are those of other parameters
    assert np.exp(model.score_samples(codes)).sum() == pytest.approx(1)


def test_gains_are_those_of_the_terms():
    X = rows_with_a_term()
    model = fit(X, max_order=3)
    assert_allclose(model.term_gains_, [gain_of((0, 1, 2), X, present=True)], rtol=1e-3)
    assert model.term_gains_[0] > math.log(1500) / 2 + math.log(20)
    dear = fit(X, max_order=3, term_price=1.01 * model.term_gains_[0])
    assert not dear.terms_ and not len(dear.term_gains_)


@pytest.mark.parametrize("options", [
    {}, {"nodewise": "and"}, {"relax": True}, {"alpha": 0.05}, {"edges": [(0, 1), (2, 3)]},
])  # fmt: skip
def test_without_a_term_the_estimate_is_that_of_pairs(options):
    X = random_network(6, [], [], seed=1).sample(600, np.random.default_rng(0), 1)
    pairs, terms = (SparseFVBM(max_order=order, **options).fit(X) for order in (2, 3))
    assert terms.terms_ == [] and terms.converged_
    assert_array_equal(terms.coupling_, pairs.coupling_)
    assert_array_equal(terms.intercept_, pairs.intercept_)


def test_a_term_of_independent_columns_is_hardly_shrunk():
    """A parity, of which no pair is selected: within four standard errors of the truth."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(1000, 5))
    X[:, 2] = X[:, 0] * X[:, 1] * rng.choice([-1, 1], size=1000, p=[0.2, 0.8])
    model = SparseFVBM(max_order=3).fit(X)
    assert model.terms_ == [(0, 1, 2)] and not model.coupling_.any()
    assert abs(model.term_weights_[0] - math.atanh(0.6)) < 4 / (math.sqrt(1000) * 0.8)


def logical(n, rng):
    """Bits of which some follow from others, like those of a medical table."""
    X = rng.random((n, 8)) < [0.01, 0.5, 0.02, 0.05, 0.45, 0, 0.05, 0]
    X[:, 2] |= X[:, 0] & (rng.random(n) < 0.05)
    X[:, 5] = X[:, 2] | (X[:, 3] & X[:, 1])
    X[:, 6] ^= X[:, 5]
    X[:, 7] = rng.random(n) < np.where(X[:, 5] | X[:, 4], 0.8, 0.1)
    return X


@pytest.mark.filterwarnings("ignore:SparseFVBM. column 2 has")
@pytest.mark.parametrize("n", [300, 20_000])
def test_terms_are_not_worse_than_pairs(n):
    rng = np.random.default_rng(0)
    X, fresh = logical(n, rng), logical(20_000, rng)
    pairs, terms = (SparseFVBM(max_order=order).fit(X).score(fresh) for order in (2, 3))
    assert terms > pairs - 0.02


def test_given_terms_by_name():
    X = pd.DataFrame(rows_with_a_term(), columns=list("abcdef"))
    model = fit(X, **LIKELIHOOD, terms=[("c", "a", "b"), (3, 4, 5)])
    assert model.terms_ == [(0, 1, 2), (3, 4, 5)]
    assert abs(model.term_weights_[0]) > 0.3 > abs(model.term_weights_[1])
    assert "a*b*c" in list(model.interactions()["term"])


def test_observed_cells():
    """Missing at random: the term is found, and its weight is near."""
    X = rows_with_a_term(6000).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = fit(X, max_order=3, missing="observed")
    assert (0, 1, 2) in model.terms_
    assert model.term_weights_[model.terms_.index((0, 1, 2))] == pytest.approx(0.5, abs=0.15)
    assert np.isfinite(model.score(X))


def test_constant_columns_and_few_rows():
    X = rows_with_a_term()
    constant = np.column_stack([np.ones(len(X)), X, np.zeros(len(X))])
    model = fit(constant, max_order=3)
    assert model.terms_ == [(1, 2, 3)] and np.isfinite(model.score(constant))
    model = fit(constant, **LIKELIHOOD, terms=[(0, 1, 2), (1, 2, 3)])
    assert model.terms_ == [(1, 2, 3)] and abs(model.term_weights_[0]) > 0.3
    for rows in (constant[:1], constant[:, :1], constant[:, :2], np.tile(constant[:1], (5, 1))):
        few = fit(rows, max_order=3, alpha=0.1)
        assert few.terms_ == [] and np.isfinite(few.score(rows))
