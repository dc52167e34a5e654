"""Terms of three columns and more: their objective, what they are worth, which are chosen."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, chi2
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from private import (
    InteractionModel,
    InteractionPseudoLikelihood,
    Network,
    PseudoLikelihood,
    best_triples,
    gains,
    heirs,
    refit,
)
from sklearn_boltz import FSLLDensity, FVBMPseudoLikelihood

FALSE_ALARM = 1e-6


def random_network(d, terms, weights, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(scale=scale, size=(d, d)), 1)
    coupling += coupling.T
    return InteractionModel(coupling, rng.normal(scale=scale, size=d), terms, weights)


def random_problem(d, seed, alpha=0.0, missing=False, n=40):
    """An objective of random rows with weights, its parameters, and terms of several orders."""
    rng = np.random.default_rng(seed)
    low = -1 if not missing else rng.choice([-1, 0])
    spins = rng.choice([-1.0, 1.0, float(low)], size=(d, n))
    pairs = PseudoLikelihood(spins, rng.gamma(2, size=n), alpha)
    orders = [order for order in (3, 3, 4, 5) if order <= d]
    terms = {tuple(sorted(rng.permutation(d)[:order].tolist())) for order in orders}
    problem = InteractionPseudoLikelihood(pairs, sorted(terms))
    theta = rng.normal(scale=0.4, size=pairs.n_parameters + len(terms))
    return problem, theta


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


@settings(max_examples=25, deadline=None)
@given(problems)
def test_objective(args):
    """Against its definition; a missing cell has no term of its own and adds nothing to others."""
    problem, theta = random_problem(*args)
    spins, w = problem.pairs.spins, problem.pairs.weights
    fields = brute_fields(spins, problem, theta)
    log_p = np.where(spins != 0, spins * fields - np.log(2 * np.cosh(fields)), 0)
    n_intercepts = len(spins)
    penalty = args[2] / 2 * w.sum() * (theta[n_intercepts:] ** 2).sum()
    assert problem.at(theta).value == pytest.approx((log_p @ w).sum() - penalty, rel=1e-10)
    expected = np.tanh(fields) * (spins != 0)
    assert_allclose(problem.tanh(*problem.unpack(theta)), expected, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(problems)
def test_gradient_and_curvature(args):
    """Central differences; where cells are missing, the curvature is an upper bound."""
    problem, theta = random_problem(*args)
    step = 1e-5
    around = [
        [problem.at(theta + sign * step * unit) for sign in (1, -1)] for unit in np.eye(len(theta))
    ]
    slopes = [(up.value - down.value) / (2 * step) for up, down in around]
    assert_allclose(problem.at(theta).gradient, slopes, atol=1e-5)
    problem.set_scale(theta)
    bends = [
        (down.gradient[k] - up.gradient[k]) / (2 * step) for k, (up, down) in enumerate(around)
    ]
    if args[-1]:
        assert (problem.curvature() > np.array(bends) - 1e-3).all()
    else:
        assert_allclose(problem.curvature(), bends, atol=1e-3)


@settings(max_examples=25, deadline=None)
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
    known = set(every[:n_known])
    found = best_triples(pairs, tanh, 4, known)
    assert not known & set(found)
    rest = [
        (-s, triple) for s, triple in zip(statistics, every, strict=True) if triple not in known
    ]
    expected = [-s for s, _ in sorted(rest)[:4]]
    own = dict(zip(every, statistics, strict=True))
    assert_allclose([own[triple] for triple in found], expected, rtol=1e-3, atol=1e-6)


def test_heirs():
    triples = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3), (1, 2, 4)]
    assert heirs(triples, 4) == [(0, 1, 2, 3)]
    assert heirs(triples[1:], 4) == []


def test_the_gain_is_that_of_a_test_of_scores():
    """Twice the gain of a term that is not there is distributed as the square of a normal number.

    Columns are skewed and coupled, and all pairs are fitted. Of 300 data sets, those above the 90 %
    quantile of chi-square: a binomial number, outside of whose interval 1 of 10,000 runs falls. One
    with the information H for the variance would have far more.
    """
    network, d = random_network(5, [], [], seed=1), 5
    rng, term = np.random.default_rng(0), (0, 2, 4)
    exceeded = 0
    for _ in range(300):
        X = network.sample(800, rng, 1)
        pairs = PseudoLikelihood(np.ascontiguousarray(2.0 * X.T - 1), np.ones(len(X)))
        start = Network(np.zeros((d, d)), np.zeros(d), [], np.zeros(0))
        fit = refit(pairs, start, [], 1e-6)
        tanh = InteractionPseudoLikelihood(pairs, []).tanh(fit.coupling, fit.intercept, fit.weights)
        exceeded += 2 * gains(pairs, tanh, [term], [0.0], set())[0] > chi2.isf(0.1, 1)
    low, high = binom.interval(1 - 1e-4, 300, 0.1)
    assert low <= exceeded <= high + 5  # asymptotic: a little more than that


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_the_gain_of_a_term_in_the_model(alpha):
    """Before a term is appended, and after the refit, nearly the same."""
    X = random_network(6, [(0, 1, 2)], [0.15], seed=2).sample(4000, np.random.default_rng(0), 1)
    pairs = PseudoLikelihood(np.ascontiguousarray(2.0 * X.T - 1), np.ones(len(X)), alpha)
    start = Network(np.zeros((6, 6)), np.zeros(6), [], np.zeros(0))
    found = []
    for terms in ([], [(0, 1, 2)]):
        fit = refit(pairs, start, terms, 1e-6)
        tanh = InteractionPseudoLikelihood(pairs, terms).tanh(
            fit.coupling, fit.intercept, fit.weights
        )
        weight = fit.weights if terms else [0.0]
        found.append(gains(pairs, tanh, [(0, 1, 2)], weight, set(terms))[0])
    assert found[0] > 10
    assert found[1] == pytest.approx(found[0], rel=0.15)


def test_planted_terms_are_found_and_no_others():
    network = random_network(12, [(0, 1, 2), (3, 4, 5), (2, 7, 9)], [0.3, -0.3, 0.25], seed=3)
    X = network.sample(6000, np.random.default_rng(0), 1)
    model = FVBMPseudoLikelihood(max_order=3).fit(X)
    assert model.terms_ == network.terms or set(model.terms_) == set(network.terms)
    weights = dict(zip(model.terms_, model.term_weights_, strict=True))
    assert_allclose([weights[term] for term in network.terms], network.weights, atol=0.08)
    assert_allclose(model.coupling_, network.coupling, atol=0.15)


def test_false_alarms():
    """Rows without any term of three: how often one is chosen.

    A gain above ½ ln N + ln C(d, 3) has the probability p of a chi-square number of one degree of
    freedom above twice that, and C(d, 3) p are expected: in 1.1 % of the fits here. More than nine
    of 150 fits with a false term would have a probability of 1e-6.
    """
    d, n, rng = 10, 300, np.random.default_rng(0)
    price = 0.5 * math.log(n) + math.log(math.comb(d, 3))
    expected = math.comb(d, 3) * chi2.sf(2 * price, 1)
    assert expected < 0.02
    network = random_network(d, [], [], seed=5, scale=0.2)
    wrong = sum(
        bool(FVBMPseudoLikelihood(max_order=3, tol=1e-3).fit(network.sample(n, rng, 1)).terms_)
        for _ in range(150)
    )
    assert wrong <= binom.isf(FALSE_ALARM, 150, expected)


def test_terms_of_four_by_heredity():
    """A term of four is looked for only where its parts are in the model."""
    parts = list(itertools.combinations(range(4), 3))
    network = random_network(7, [*parts, (0, 1, 2, 3)], [0.25] * 4 + [0.4], seed=1, scale=0.1)
    X = network.sample(8000, np.random.default_rng(1), 1)
    assert (0, 1, 2, 3) in FVBMPseudoLikelihood(max_order=4).fit(X).terms_
    assert max(map(len, FVBMPseudoLikelihood(max_order=3).fit(X).terms_)) == 3


@pytest.mark.parametrize("d", [8, 20])
def test_beside_the_exact_likelihood(d):
    """FSLLDensity(max_order=3) on the same rows: both near the truth, and to each other.

    A maximum of q parameters lies about q / 2N nats from the truth; the pseudo-likelihood somewhat
    more.
    """
    terms = [(0, 1, 2), (3, 4, 5), (1, 6, 7)]
    network = random_network(d, terms, [0.4, -0.4, 0.3], seed=4, scale=0.15)
    rng, n = np.random.default_rng(0), 20_000
    X, fresh = network.sample(n, rng, 1), network.sample(n, rng, 1)
    truth = (network.log_weight(fresh) - network.log_partition()).mean()
    ours = FVBMPseudoLikelihood(terms=terms).fit(X)
    chosen = FVBMPseudoLikelihood(max_order=3).fit(X)
    exact = FSLLDensity(max_order=3).fit(X)
    assert set(chosen.terms_) >= set(terms)
    bound = 3 * (d + d * (d - 1) / 2 + 3) / (2 * n)
    for model in (ours, chosen, exact):
        assert truth - model.score(fresh) < bound + 0.002
    assert ours.log_partition_ == pytest.approx(ours._model().log_partition())
    table, own = exact.interactions(), {}
    for name, weight in zip(table["term"], table["weight"], strict=True):
        own[name] = weight
    names = {"x0*x1*x2": 0, "x3*x4*x5": 1, "x1*x6*x7": 2}
    # There the second value has the sign -1.
    for name, place in names.items():
        weights = dict(zip(ours.terms_, ours.term_weights_, strict=True))
        assert -own[name] == pytest.approx(weights[terms[place]], abs=0.05)


def rows_with_a_term(n=1500, d=6, seed=0):
    network = random_network(d, [(0, 1, 2)], [0.5], seed=seed, scale=0.2)
    return network.sample(n, np.random.default_rng(seed), 1)


def test_estimator():
    X = rows_with_a_term()
    model = FVBMPseudoLikelihood(max_order=3).fit(X)
    assert model.terms_ == [(0, 1, 2)] and model.solver_ == "lbfgs" and model.converged_
    assert_array_equal(model.history_["n_terms"][[0, -1]], [0, 1])
    assert (np.diff(model.history_["log_pseudo_likelihood"]) > -1e-9).all()
    assert len(model.history_["seconds"]) == model.n_iter_
    states = np.array(list(itertools.product((0, 1), repeat=6)))
    p = np.exp(model.score_samples(states))
    assert p.sum() == pytest.approx(1)
    x = 2 * states - 1
    energy = -(
        0.5 * np.einsum("ij,jk,ik->i", x, model.coupling_, x)
        + x @ model.intercept_
        + model.term_weights_[0] * x[:, :3].prod(axis=1)
    )
    assert_allclose(model.energy(states), energy, atol=1e-12)
    own = X.astype(float)
    own[::3, 1] = np.nan
    expected = p[states[:, 1] == 1].sum()
    assert model.marginal([1])[1] == pytest.approx(expected)
    row = own[:1]
    agree = (states[:, [0, 2, 3, 4, 5]] == X[0, [0, 2, 3, 4, 5]]).all(axis=1)
    share = p[agree & (states[:, 1] == 1)].sum() / p[agree].sum()
    assert model.impute(row)[0, 1] == pytest.approx(share)
    assert model.predict_column_proba(X[:1], 1)[0, 1] == pytest.approx(share)
    assert model.score_samples(row)[0] == pytest.approx(np.log(p[agree].sum()))
    assert set(np.unique(model.sample(50, random_state=0, given={2: 1})[:, 2])) == {1}
    table = model.interactions()
    place = list(table["term"]).index("x0*x1*x2")
    assert table["order"][place] == 3
    assert table["expectation"][place] == pytest.approx(p @ x[:, :3].prod(axis=1))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert_allclose(clone(model).fit(X).term_weights_, model.term_weights_)
    model.term_weights_ *= 2  # figures that were kept are those of other parameters
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1)


def test_weights_are_counts():
    X = rows_with_a_term()
    weights = np.random.default_rng(0).integers(0, 3, size=len(X))
    one = FVBMPseudoLikelihood(max_order=3).fit(X, sample_weight=weights)
    two = FVBMPseudoLikelihood(max_order=3).fit(np.repeat(X, weights, axis=0))
    assert one.terms_ == two.terms_
    assert_allclose(one.term_weights_, two.term_weights_, rtol=1e-6)


def test_given_terms_by_name():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows_with_a_term(), columns=list("abcdef"))
    model = FVBMPseudoLikelihood(terms=[("c", "a", "b"), (3, 4, 5)]).fit(X)
    assert model.terms_ == [(0, 1, 2), (3, 4, 5)]
    assert abs(model.term_weights_[0]) > 0.3 > abs(model.term_weights_[1])
    assert "a*b*c" in list(model.interactions()["term"])


def test_observed_cells():
    """Missing at random: the term is found, and its weight is near."""
    X = rows_with_a_term(6000).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = FVBMPseudoLikelihood(max_order=3, missing="observed").fit(X)
    assert (0, 1, 2) in model.terms_
    assert model.term_weights_[model.terms_.index((0, 1, 2))] == pytest.approx(0.5, abs=0.15)
    assert np.isfinite(model.score(X))
    with pytest.raises(ValueError, match="missing='observed'"):
        FVBMPseudoLikelihood(max_order=3).fit(X)


def test_hard_tables():
    """float32, huge weights, rows without a cell, and equal rows give what plain ones do."""
    X = rows_with_a_term(400)
    plain = FVBMPseudoLikelihood(max_order=3).fit(X)
    same = FVBMPseudoLikelihood(max_order=3).fit(X.astype(np.float32))
    assert same.terms_ == plain.terms_ == [(0, 1, 2)]
    empty = np.vstack([X, np.full((3, 6), np.nan)])
    given = {"terms": [(0, 1, 2)], "missing": "observed", "tol": 1e-8}
    found = [
        FVBMPseudoLikelihood(**given).fit(rows, sample_weight=weights).term_weights_
        for rows, weights in ((X, None), (empty, None), (X, np.full(len(X), 1e3)))
    ]
    assert_allclose(found[1:], found[:1] * 2, atol=1e-4)


def test_constant_columns_and_few_rows():
    X = rows_with_a_term()
    constant = np.column_stack([np.ones(len(X)), X, np.zeros(len(X))])
    model = FVBMPseudoLikelihood(max_order=3).fit(constant)
    assert model.terms_ == [(1, 2, 3)] and np.isfinite(model.score(constant))
    model = FVBMPseudoLikelihood(terms=[(0, 1, 2), (1, 2, 3)]).fit(constant)
    assert model.term_weights_[0] == 0 and abs(model.term_weights_[1]) > 0.3
    for rows in (constant[:1], constant[:, :1], constant[:, :2], np.tile(constant[:1], (5, 1))):
        few = FVBMPseudoLikelihood(max_order=3, alpha=0.1).fit(rows)
        assert few.terms_ == [] and np.isfinite(few.score(rows))


def test_terms_without_a_maximum():
    X = rows_with_a_term()
    X = X[~((X[:, :3] == 1).all(axis=1))]
    with pytest.warns(ConvergenceWarning, match="never occur together"):
        FVBMPseudoLikelihood(terms=[(0, 1, 2)]).fit(X)
    model = FVBMPseudoLikelihood(terms=[(0, 1, 2)], alpha=0.01).fit(X)
    assert np.isfinite(model.term_weights_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": [(0, 1)]}, "three columns and more"),
        ({"terms": [(0, 1, 1)]}, r"column 1 is named twice in the term \(0, 1, 1\)"),
        ({"terms": [(0, 1, -1)]}, r"negative numbers, and \(0, 1, -1\) has -1"),
        ({"terms": (0, 1, 2)}, r"list of tuples. Give \[\(0, 1, 2\)\]"),
        ({"terms": ["x0*x1*x2"]}, r"Give \('x0', 'x1', 'x2'\)"),
        ({"max_order": 3, "nodewise": True}, "all pairs. Set nodewise=False.$"),
        ({"max_order": 3, "penalty": "l1", "alpha": "ebic"}, "penalty='l2', give a number"),
        ({"terms": [(0, 1, "z")]}, "no variable 'z'"),
        ({"terms": [(0, 1, 2)], "max_order": 3}, "one of the two"),
        ({"max_order": 3, "solver": "bslm"}, "solver='newton' or 'lbfgs'"),
        ({"max_order": 3, "penalty": "l1", "alpha": 0.1}, "penalty='l2'"),
        ({"max_order": 3, "objective": "likelihood"}, "objective='pseudo-likelihood'"),
    ],
)
def test_what_does_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        FVBMPseudoLikelihood(**options).fit(rows_with_a_term(50))


def test_words_and_standard_errors():
    X = rows_with_a_term(300)
    with pytest.raises(ValueError, match="one-hot"):
        FVBMPseudoLikelihood(max_order=3).fit(np.column_stack([X, np.arange(300) % 3]))
    model = FVBMPseudoLikelihood(terms=[(0, 1, 2)]).fit(X)
    with pytest.raises(ValueError, match="max_order=2"):
        model.inference(X)
    assert model.interaction_scores().shape == (6, 6)
