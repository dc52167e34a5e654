"""Maximum likelihood: the moments of the model are those of the data."""

import itertools
import re

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles_fvbm import seeds
from scipy.optimize import approx_fprime, minimize
from sklearn.exceptions import ConvergenceWarning

from oracles import differences
from private import (
    PseudoLikelihood,
    Workers,
    _likelihood,
    _network_fit,
    _sampled_likelihood,
    _sampled_moments,
    _tempering,
)
from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy, statistics

ALL = {d: np.array(list(itertools.product([-1.0, 1.0], repeat=d))) for d in range(1, 8)}


TERMS = [(0, 1, 2), (1, 2, 3, 4)]


def terms(x, products=(), counts=()):
    """Sufficient statistics of rows of ±1, (n, q): columns, pairs, products, numbers of ones."""
    j, k = np.triu_indices(x.shape[1], 1)
    of_terms = [x[:, list(term)].prod(axis=1, keepdims=True) for term in products]
    ones = (x > 0).sum(axis=1, keepdims=True)
    return np.hstack([x, x[:, j] * x[:, k], *of_terms, ones == np.asarray(counts, dtype=int)])


def log_likelihood(theta, x, weights, penalty=0.0):
    """By brute force, with the penalty on the couplings."""
    d = x.shape[1]
    log_z = np.logaddexp.reduce(terms(ALL[d]) @ theta)
    return weights @ (terms(x) @ theta - log_z) - penalty / 2 * (theta[d:] ** 2).sum()


def maximum(x, penalty):
    """By a general optimiser."""
    start, ones = np.zeros(terms(x).shape[1]), np.ones(len(x))
    return minimize(lambda theta: -log_likelihood(theta, x, ones, penalty), start, tol=1e-12)


def problem_of(x, weights, alpha=0.0, products=None):
    """With products of columns, if only an empty list, also with a potential of the ones."""
    pairs, d = PseudoLikelihood(np.ascontiguousarray(x.T), weights, alpha), x.shape[1]
    if products is None:
        return _likelihood.Likelihood(pairs)
    frequencies = np.bincount((x > 0).sum(axis=1), weights, d + 1)
    return _likelihood.Likelihood(pairs, _likelihood.Further(d, products, frequencies, alpha > 0))


def rows(seed, d, n=60):
    """Rows of a network, all values of all pairs among them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.4, d * (d + 1) // 2)
    p = np.exp(terms(ALL[d]) @ theta)
    drawn = ALL[d][rng.choice(2**d, size=n, p=p / p.sum())]
    return np.vstack([drawn, ALL[d]]) if d < 4 else np.vstack([drawn, 2 * np.eye(d) - 1,
        1 - 2 * np.eye(d), np.ones((1, d)), -np.ones((1, d))])  # fmt: skip


def likeliest(x, sample_weight=None, **params):
    model = MaximumEntropy(**params)
    return model.fit(x, sample_weight=sample_weight)


def estimate_of(model):
    """The parameters of `terms`."""
    pairs = np.triu_indices(len(model.intercept_), 1)
    return np.concatenate([model.intercept_, model.coupling_[pairs]])


sizes = st.integers(2, 6)


@given(seeds, sizes, st.sampled_from([0.0, 0.1, 3.0]), st.booleans())
@settings(max_examples=cases(30))
def test_objective_gradient_and_information_are_those_of_brute_force(seed, d, alpha, is_further):
    x, rng = rows(seed, d), np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(x)).astype(float)
    products = [term for term in TERMS if max(term) < d] if is_further and d > 2 else None
    problem = problem_of(x, weights, alpha, products)
    kinds = products or (), problem.further.counts
    features, sums, total = terms(ALL[d], *kinds), weights @ terms(x, *kinds), weights.sum()
    if products is not None:
        # One more row: each number of ones is as likely, and each row with as many.
        assert len(kinds[1]) == d + 1 - (2 if alpha else 3)
        ones = (ALL[d] > 0).sum(axis=1)
        sums, total = sums + 1 / np.bincount(ones)[ones] / (d + 1) @ features, total + 1
    assert_allclose(problem.sums, sums)
    assert_allclose(problem.total, total)
    penalised, penalty = np.arange(d, len(sums) - len(kinds[1])), alpha * weights.sum()

    def value(theta):
        log_z = np.logaddexp.reduce(features @ theta)
        return theta @ sums - total * log_z - penalty / 2 * (theta[penalised] ** 2).sum()

    theta = rng.normal(0, 0.5, len(sums))
    point = problem.evaluate(theta)
    assert_allclose(point.value, value(theta))
    assert_allclose(problem.gradient(point), differences(value, theta), atol=1e-6 * total)
    p = np.exp(features @ theta)
    information = total * np.cov(features.T, aweights=p, ddof=0)
    information[penalised, penalised] += penalty
    assert_allclose(problem.information(point), information, atol=1e-8 * total)
    model, codes = problem.model(theta), (ALL[d] > 0).astype(int)
    assert_allclose(np.exp(model.log_weight(codes) - model.log_partition()), p / p.sum())


@given(seeds, sizes)
@settings(max_examples=cases(20))
def test_the_moments_of_the_model_are_those_of_the_data(seed, d):
    x = rows(seed, d)
    weights = np.random.default_rng(seed).integers(1, 4, len(x)).astype(float)
    model = likeliest(x, weights, tol=1e-9)
    assert model.converged_
    p = np.exp(model.score_samples(ALL[d]))
    assert_allclose(p @ terms(ALL[d]), np.average(terms(x), axis=0, weights=weights), atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_the_maximum_is_that_of_another_optimiser(alpha):
    x = rows(0, 5, 300)
    model = likeliest(x, alpha=alpha, tol=1e-9)
    found = maximum(x, alpha * len(x))
    assert_allclose(estimate_of(model), found.x, atol=2e-5)
    assert_allclose(model.history_["log_likelihood"][-1] * len(x), -found.fun)
    assert len(model.history_["seconds"]) == model.n_iter_


@pytest.mark.parametrize("count_potential", [False, True])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_maximum_likelihood_of_one_and_two_columns(n_columns, count_potential):
    """Without a penalty, the model has the frequencies of the states."""
    X = np.array([[0, 0]] * 3 + [[0, 1]] * 4 + [[1, 0]] * 5 + [[1, 1]] * 8)[:, :n_columns]
    model = MaximumEntropy(count_potential=count_potential, tol=1e-12).fit(X)
    states, counts = np.unique(X, axis=0, return_counts=True)
    # A count potential determines nothing that one and two columns leave open.
    atol = 0.02 if count_potential else 1e-6
    assert_allclose(np.exp(model.score_samples(states)), counts / len(X), atol=atol)


@given(seeds, st.sampled_from([0.0, 0.3]))
@settings(max_examples=cases(10))
def test_after_a_step_the_numbers_of_ones_are_those_of_the_rows(seed, alpha):
    """And at each number, the rows are distributed as after the step alone."""
    x, rng, d = rows(seed, 5), np.random.default_rng(seed), 5
    likelihood = problem_of(x, np.ones(len(x)), alpha, TERMS)
    theta = rng.normal(0, 0.5, likelihood.n_parameters)
    start, step = likelihood.evaluate(theta), rng.normal(0, 0.5, len(theta))
    found = likelihood.after(start, step, 1.0, likelihood.moved(step))
    alone = likelihood.evaluate(theta + step)
    codes = (ALL[d] > 0).astype(int)
    ones = codes.sum(axis=1)
    models = [likelihood.model(point.theta) for point in (found, alone)]
    weights = np.exp([model.log_weight(codes) for model in models])
    p, q = weights / weights.sum(axis=1, keepdims=True)
    expected = np.bincount((x > 0).sum(axis=1), minlength=d + 1) + 1 / (d + 1)
    assert_allclose(np.bincount(ones, p), expected / (len(x) + 1))
    assert_allclose(p / np.bincount(ones, p)[ones], q / np.bincount(ones, q)[ones])
    if alpha:
        assert_allclose(models[0].coupling, models[1].coupling)
    assert found.value >= alone.value
    penalised = np.arange(d, len(likelihood.terms))
    assert_allclose(np.delete(likelihood.gradient(found), penalised)[d:], 0, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_numbers_of_ones_that_no_model_of_pairs_expects(alpha):
    """Independent columns, where it begins, have P(K = 10) = 1e-13, and the rows 1e-4."""
    rng = np.random.default_rng(0)
    x = rng.random((1000, 10)) < 0.05
    model = likeliest(x, count_potential=True, alpha=alpha)
    assert model.converged_ and model.n_iter_ < 15
    codes = np.indices((2,) * 10).reshape(10, -1).T
    found = np.bincount(codes.sum(axis=1), np.exp(model.score_samples(codes.astype(bool))))
    expected = np.bincount(x.sum(axis=1), minlength=11) + 1 / 11
    assert_allclose(found, expected / 1001, rtol=1e-6)
    assert_allclose(model.energy(codes.astype(bool)), -model._model().log_weight(codes))


def test_products_and_counts_of_the_model_are_those_of_the_rows():
    x = rows(1, 5, 2000)
    model = likeliest(x, terms=TERMS)
    p = np.exp(model.score_samples(ALL[5]))
    assert_allclose(p @ terms(ALL[5], TERMS), terms(x, TERMS).mean(axis=0), atol=1e-6)
    assert model.terms_ == TERMS
    assert model.score(x) > likeliest(x).score(x)
    assert_allclose(model.history_["log_likelihood"][-1], model.score(x))
    model = likeliest(x, count_potential=True)
    p, table = np.exp(model.score_samples(ALL[5])), model.interactions()
    columns = [[int(name[1:]) for name in term.split("*")] for term in table["term"]]
    expected = [p @ ALL[5][:, term].prod(axis=1) for term in columns]
    assert_allclose(table["expectation"], expected, atol=1e-10)


@pytest.mark.filterwarnings("ignore:The log-likelihood has no maximum")
def test_where_pairs_never_meet_a_penalty_makes_a_maximum():
    x = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]])
    model = likeliest(x)
    assert np.isfinite(model.coupling_).all()
    assert not model.converged_
    assert model.set_params(alpha=0.01).fit(x).converged_


def test_missing_cells_raise_the_likelihood_of_what_is_observed():
    """At the maximum no small change of a parameter makes the observed cells likelier."""
    rng = np.random.default_rng(0)
    x = rows(5, 4, 300)
    x[rng.random(x.shape) < 0.2] = np.nan
    x = x[~np.isnan(x).all(axis=1)]
    model = likeliest(x, tol=1e-7)

    def observed(theta):
        weight = terms(ALL[4]) @ theta
        fits = (np.isnan(x)[:, None] | (x[:, None] == ALL[4])).all(axis=2)
        sums = np.logaddexp.reduce(np.where(fits, weight, -np.inf), axis=1)
        return (sums - np.logaddexp.reduce(weight)).sum()

    estimate = estimate_of(model)
    assert_allclose(model.score_samples(x).sum(), observed(estimate))
    assert_allclose(approx_fprime(estimate, observed, 1e-6), 0, atol=0.02)


def test_standard_errors_are_those_of_the_sandwich():
    x = rows(2, 4, 400)
    model = likeliest(x)
    p = np.exp(model.score_samples(ALL[4]))
    information = len(x) * np.cov(terms(ALL[4]).T, aweights=p, ddof=0)
    scores = terms(x) - p @ terms(ALL[4])
    inverse = np.linalg.inv(information)
    covariance = inverse @ (scores.T @ scores) @ inverse
    assert_allclose(statistics.inference(model, x).covariance, covariance, rtol=1e-5)


def test_a_large_table():
    """Of 22 columns: 4 million states."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(4000, 1))
    x = (rng.normal(size=(4000, 22)) + 0.7 * common > 0.8).astype(np.uint8)
    model = likeliest(x)
    for j, k in [(0, 1), (3, 21), (10, 11)]:
        table = np.histogram2d(x[:, j], x[:, k], bins=2)[0] / len(x)
        assert_allclose(model.marginal([j, k]), table, atol=1e-6)


# Beyond a table of all states: chains. A table of fewer columns is the oracle.


@pytest.fixture
def no_table(monkeypatch):
    """As if every network were too large for a table."""
    monkeypatch.setattr(_network_fit, "MAX_COLUMNS", 1)


@given(seeds, st.sampled_from([0.0, 0.2]))
@settings(max_examples=cases(15))
def test_terms_and_their_weights_are_those_of_the_network(seed, alpha):
    """Centred terms: log-weights up to a constant, moments and variances as of the rows."""
    x = rows(seed, 5)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(x)).astype(float)
    statistics = _sampled_moments.Statistics(
        PseudoLikelihood(np.ascontiguousarray(x.T), weights, alpha)
    )
    theta = rng.normal(size=15)
    u = x - statistics.mean
    assert_allclose(statistics.theta(*statistics.parameters(theta)), theta)
    full = np.concatenate([statistics.parameters(theta)[1], theta[5:]])
    difference = statistics.log_weights(theta, u) - terms(x) @ full
    assert_allclose(difference, difference[0])
    share = weights / weights.sum()
    assert_allclose(statistics.moments, share @ terms(u), atol=1e-12)
    assert_allclose(statistics.variances, np.cov(terms(u).T, aweights=weights, ddof=0).diagonal())
    value = rng.normal(size=len(u))
    expected = ((value - value.mean())[:, None] * terms(u)).mean(axis=0)
    assert_allclose(statistics.covariances_with(value, u), expected, atol=1e-12)
    log_z = np.logaddexp.reduce(terms(ALL[5]) @ full)
    expected = log_likelihood(full, x, share, alpha)
    assert_allclose(statistics.log_likelihood(theta, log_z), expected)


@pytest.mark.parametrize("seed", range(2))
def test_sampled_moments_are_unbiased_and_their_errors_true(seed):
    """By 20 groups of chains: one of 30 beyond 6 of Student's t happens once in 3,000 runs."""
    x = rows(seed, 5, 200)
    statistics = _sampled_moments.Statistics(
        PseudoLikelihood(np.ascontiguousarray(x.T), np.ones(len(x)))
    )
    theta = np.random.default_rng(seed).normal(0, 0.4, 15)
    _, intercept = statistics.parameters(theta)
    with Workers() as workers:
        sampler = _sampled_moments.Sampler(
            statistics, intercept, np.random.default_rng(seed), workers
        )
        visit = sampler.visit(theta, 512, sampler.explore(theta))
    weight = terms(ALL[5]) @ np.concatenate([intercept, theta[5:]])
    log_z = np.logaddexp.reduce(weight)
    p = np.exp(weight - log_z)
    z = (visit.expected - p @ terms(ALL[5] - statistics.mean)) / visit.errors
    assert np.abs(z).max() < 6
    assert visit.error < 0.02
    assert abs(visit.log_likelihood - statistics.log_likelihood(theta, log_z)) < 5 * visit.error


@given(seeds, st.booleans(), st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=cases(20))
def test_bounds_of_the_likelihood_are_no_less_than_it(seed, is_further, scale):
    """And are it where columns are independent, if means and not single states are asked."""
    x, rng = rows(seed, 5), np.random.default_rng(seed)
    problem = PseudoLikelihood(np.ascontiguousarray(x.T), np.ones(len(x)), 0.1)
    further = _likelihood.Further(5, TERMS) if is_further else None
    statistics = _sampled_moments.Statistics(problem, further)
    theta = rng.normal(0, scale, len(statistics.moments))
    model = statistics.model(theta)
    log_w = model.log_weight((ALL[5] > 0).astype(int))
    value = statistics.log_likelihood(theta, np.logaddexp.reduce(log_w))
    path = _tempering.Path(model, np.zeros(5), (x[:10] > 0).astype(int))
    bound = _sampled_moments.Bound.of_path(statistics, path)
    assert bound.at(theta) >= value - 1e-9
    if not scale and not is_further:
        assert_allclose(bound.at(theta), value)


@pytest.mark.parametrize("seed", range(2))
def test_the_rise_of_a_step_is_that_of_brute_force(seed):
    """Within 5 standard errors, which by chance it is not once in a million."""
    x, rng = rows(seed, 4), np.random.default_rng(seed)
    statistics = _sampled_moments.Statistics(
        PseudoLikelihood(np.ascontiguousarray(x.T), np.ones(len(x)), 100.0)
    )
    visits, values = [], []
    for theta in rng.normal(0, 0.2, (2, 10)):
        weight = terms(ALL[4]) @ np.concatenate([statistics.parameters(theta)[1], theta[4:]])
        log_z = np.logaddexp.reduce(weight)
        drawn = ALL[4][rng.choice(16, 20_000, p=np.exp(weight - log_z))]
        states = (drawn - statistics.mean).astype(np.float32).reshape(20, 1000, 4)
        visits.append(_sampled_moments.Visit(theta, None, None, states, 1000))
        values.append(statistics.log_likelihood(theta, log_z))
    rise, error, _ = _sampled_likelihood.compare(statistics, *visits)
    assert abs(np.diff([statistics.penalty(visit.theta) for visit in visits])) > 20 * error
    assert abs(rise - np.diff(values)) < 5 * error


@pytest.mark.parametrize(
    ("alpha", "seed", "most_rounds"), [(0.02, 0, None), (0.0, 1, None), (0.0, 2, 64)],
    ids=["penalty", "none", "mean of models"],
)  # fmt: skip
def test_chains_find_what_a_table_finds(no_table, alpha, seed, most_rounds, monkeypatch):
    """Moments within `moment_tol` and six errors of the chains, and the likelihood of the maximum.

    The gap of the likelihood is then far below what the noise of the rows costs, half a nat for
    each of the 21 parameters.
    """
    if most_rounds:
        monkeypatch.setattr(_sampled_likelihood, "MAX_ROUNDS", most_rounds)
    x = rows(seed, 6, 1000)
    sampled = likeliest(x, alpha=alpha, random_state=seed, moment_tol=0.3)
    assert sampled.solver_ == "sampling"
    assert sampled.converged_
    assert sampled.history_["largest_difference"][-1] <= 0.3
    problem = problem_of(x, np.ones(len(x)), alpha)
    point = problem.at(problem.pack(sampled.coupling_, sampled.intercept_))
    errors = np.sqrt(len(x) * (1 - terms(x).mean(axis=0) ** 2) + 1)
    assert np.abs(problem.gradient(point) / errors).max() < 0.6
    assert -maximum(x, problem.penalty).fun - point.value < 2
    assert_allclose(sampled.history_["log_likelihood"][-1], point.value / len(x), atol=0.03)


def tables_with_modes(d):
    """Rows of columns with a common cause, of two kinds of rows, and of several causes."""
    rng, shape = np.random.default_rng(0), (800, d)
    cause, is_up = rng.normal(size=(800, 1)), rng.random((800, 1)) < 0.3
    causes = rng.normal(size=shape) @ rng.normal(size=(d, d))
    tables = cause + rng.normal(size=shape) > 1, rng.random(shape) < np.where(is_up, 0.9, 0.05)
    return [np.where(table, 1.0, -1.0) for table in (*tables, causes > 0.5)]


@pytest.mark.parametrize(("x", "max_iter"), zip(tables_with_modes(7), (1, 10, 10), strict=True))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_history_has_the_likelihood_of_each_model(no_table, x, max_iter):
    """Within 5 standard errors, which all three fits together miss once in 10,000 runs."""
    model = likeliest(x, alpha=0.01, random_state=0, moment_tol=0.2, max_iter=max_iter)
    theta = estimate_of(model)
    exact = log_likelihood(theta, x, np.full(len(x), 1 / len(x)), 0.01)
    value, error = (model.history_[f"log_likelihood{name}"][-1] for name in ("", "_error"))
    assert len(model.history_["log_likelihood_error"]) == model.n_iter_ <= max_iter
    assert 0 < error < 0.1
    assert abs(value - exact) < 5 * error


def test_chains_find_products_and_counts(no_table, monkeypatch):
    """All moments within half a standard error of the data, and the chains' own."""
    x, options = rows(2, 5, 2000), dict(terms=TERMS, count_potential=True, alpha=0.01)
    sampled = likeliest(x, **options, random_state=0)
    monkeypatch.undo()
    exact = likeliest(x, **options)
    assert sampled.solver_ == "sampling" and sampled.converged_ and exact.solver_ == "newton"
    problem = problem_of(x, np.ones(len(x)), 0.01, TERMS)
    statistics = _sampled_moments.Statistics(problem.pairs, problem.further)
    theta = np.concatenate([
        estimate_of(sampled), sampled.term_weights_,
        sampled.count_potential_[problem.further.counts],
    ])  # fmt: skip
    point = problem.evaluate(theta)
    value, gradient = point.value / problem.total, problem.gradient(point) / problem.total
    errors = np.sqrt(statistics.variances / len(x))
    # Raw moments of pairs vary more than centred ones: the mean is in them.
    for part in (slice(0, 5), slice(15, None)):
        assert (np.abs(gradient[part]) <= 0.8 * errors[part]).all()
    # The noise of the rows costs half a nat for each parameter.
    assert exact.history_["log_likelihood"][-1] - value < len(theta) / (2 * len(x))
    assert_allclose(sampled.history_["log_likelihood"][-1], value, atol=0.03)


def test_chains_are_repeatable_and_begin_where_they_are_told(no_table):
    x = rows(0, 5, 500)
    model = likeliest(x, random_state=3)
    assert_array_equal(model.coupling_, likeliest(x, random_state=3).coupling_)
    model.set_params(warm_start=True, max_iter=1).fit(x)
    assert model.n_iter_ == 1


def test_a_fit_by_chains_that_ends_too_early_names_the_moment(no_table):
    x = rows(0, 6, 3000)
    match = r"while the (mean|covariance) of .*moment_tol=0.001.* Raise max_iter or moment_tol, or"
    with pytest.warns(ConvergenceWarning, match=match) as caught:
        model = likeliest(x, random_state=0, max_iter=1, moment_tol=1e-3)
    assert not model.converged_
    # The remedies; a larger max_iter for another tolerance, as this one would take long.
    differs = float(re.search(r"by ([\d.]+) of its", str(caught[0].message))[1])
    assert likeliest(x, random_state=0, max_iter=1, moment_tol=1.1 * differs).converged_
    assert likeliest(x, random_state=0, max_iter=20, moment_tol=0.5).converged_
    assert likeliest(x, random_state=0, max_iter=1, moment_tol=1, alpha=100.0).converged_


def test_an_interrupted_fit_by_chains_keeps_the_last_iteration(no_table, monkeypatch):
    x = rows(0, 5, 500)
    steps = []

    def step(search):
        steps.append(search.here.theta)
        if len(steps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_sampled_likelihood.Search, "step", step)
    model = MaximumEntropy(random_state=0, moment_tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x)
    assert model.n_iter_ == 1
    assert np.isfinite(model.coupling_).all()


def test_a_spurious_state_is_not_where_the_search_ends(no_table):
    """Columns with a common cause: the pseudo-likelihood of a small penalty has most at 1."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(2000, 1))
    x = (rng.normal(size=(2000, 16)) + cause > 2.6).astype(np.uint8)

    def errors(model):
        model.fit(x)
        return [model.marginal(j)[1] - x[:, j].mean() for j in range(16)]

    assert max(errors(FVBMPseudoLikelihood(alpha=1e-3))) > 0.3
    # Half a standard error of the rates is 0.002. Newton's first step would make all ones likely.
    model = MaximumEntropy(alpha=1e-3, random_state=0)
    assert_allclose(errors(model), 0, atol=0.005)
    assert model.converged_ and model.n_iter_ < 15
