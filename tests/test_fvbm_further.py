"""Maximum likelihood with given terms, and with a potential of the number of ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn.utils._param_validation import InvalidParameterError

from private import (
    Further,
    FurtherStatistics,
    PseudoLikelihood,
    TableLikelihood,
    _likelihood,
    _moment_matching,
)
from sklearn_boltz import FVBMPseudoLikelihood

D = 5
ALL = np.array(list(itertools.product([-1.0, 1.0], repeat=D)))
TERMS = [(0, 1, 2), (1, 2, 3, 4)]
J, K = np.triu_indices(D, 1)


def terms_of(x, counts=()):
    """Sufficient statistics of rows of ±1."""
    products = [x[:, list(term)].prod(axis=1, keepdims=True) for term in TERMS]
    ones = (x > 0).sum(axis=1, keepdims=True)
    return np.hstack([x, x[:, J] * x[:, K], *products, ones == np.asarray(counts, dtype=int)])


def neurons(seed, n=2000):
    rng = np.random.default_rng(seed)
    return np.where(rng.normal(size=(n, D)) + rng.normal(size=(n, 1)) > 0.8, 1.0, -1.0)


def statistics_of(x, weights, alpha=0.0):
    problem = PseudoLikelihood(np.ascontiguousarray(x.T), weights, alpha)
    frequencies = np.bincount((x > 0).sum(axis=1), weights, D + 1)
    return FurtherStatistics(problem, Further(D, TERMS, frequencies, alpha > 0))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
@settings(max_examples=20)
def test_value_gradient_and_information_are_those_of_brute_force(seed, alpha):
    x = neurons(seed, 100)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 3, len(x)).astype(float)
    statistics = statistics_of(x, weights, alpha)
    likelihood, counts = TableLikelihood(statistics), statistics.further.counts
    assert len(counts) == D + 1 - (2 if alpha else 3)
    # One more row: each number of ones is as likely, and each row with as many.
    ones = (ALL > 0).sum(axis=1)
    even = 1 / np.bincount(ones)[ones] / (D + 1)
    sums = weights @ terms_of(x, counts) + even @ terms_of(ALL, counts)
    assert_allclose(likelihood.moments, sums / (weights.sum() + 1))
    theta = rng.normal(0, 0.5, len(sums))
    n_penalised = 15 + len(TERMS)

    def value(theta):
        log_z = np.logaddexp.reduce(terms_of(ALL, counts) @ theta)
        penalty = statistics.alpha / 2 * (theta[D:n_penalised] ** 2).sum()
        return theta @ sums / (weights.sum() + 1) - log_z - penalty

    found, gradient = likelihood(theta)
    assert_allclose(found, value(theta))
    assert_allclose(gradient, approx_fprime(theta, value, 1e-6), atol=1e-4)
    p = np.exp(terms_of(ALL, counts) @ theta)
    information = np.cov(terms_of(ALL, counts).T, aweights=p, ddof=0)
    information += np.diag(likelihood.penalty)
    assert_allclose(likelihood.information(theta), information, atol=1e-10)
    model = likelihood.model(theta)
    log_p = model.log_weight((ALL > 0).astype(int)) - model.log_partition()
    assert_allclose(np.exp(log_p), p / p.sum())


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_counts_are_those_of_the_rows(alpha):
    """P(K) of the rows and of one more, with a penalty on the couplings as well."""
    x = neurons(0)
    model = FVBMPseudoLikelihood(objective="likelihood", count_potential=True, alpha=alpha).fit(x)
    assert model.converged_
    p = np.exp(model.score_samples(ALL))
    assert_allclose(p.sum(), 1)
    found = np.bincount((ALL > 0).sum(axis=1), p)
    expected = np.bincount((x > 0).sum(axis=1), minlength=D + 1) + 1 / (D + 1)
    assert_allclose(found, expected / (len(x) + 1), atol=1e-6)
    assert model.count_potential_.any()
    assert_allclose(model.energy(ALL), -model._model().log_weight((ALL > 0).astype(int)))


def test_counts_have_no_standard_errors_and_criteria():
    """Those of the pairs alone would be wrong."""
    x = neurons(0)
    model = FVBMPseudoLikelihood(objective="likelihood", count_potential=True).fit(x)
    pairs = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    message = "a potential of the number of ones. Fit with count_potential=False"
    for call in (
        lambda: model.inference(x),
        lambda: model.aic(x),
        lambda: model.bic(x),
        lambda: pairs.likelihood_ratio(x, model),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_products_of_given_terms_are_those_of_the_rows():
    x = neurons(1)
    model = FVBMPseudoLikelihood(objective="likelihood", terms=TERMS).fit(x)
    p = np.exp(model.score_samples(ALL))
    assert_allclose(p @ terms_of(ALL), terms_of(x).mean(axis=0), atol=1e-6)
    assert model.terms_ == TERMS
    pairs = FVBMPseudoLikelihood(objective="likelihood").fit(x)
    assert model.score(x) > pairs.score(x)
    assert_allclose(model.history_["log_likelihood"][-1], model.score(x))


def test_counts_that_never_occur_keep_everything_finite():
    x = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]] * 5)
    model = FVBMPseudoLikelihood(objective="likelihood", count_potential=True).fit(x)
    assert np.isfinite(model.count_potential_).all()
    assert np.isfinite(model.score_samples(x)).all()
    assert model.score(x) > -np.log(4) - 0.1


def test_chains_find_what_a_table_finds(monkeypatch):
    """All moments within half a standard error of the data, and the chains' own."""
    x = neurons(2)
    exact = FVBMPseudoLikelihood(
        objective="likelihood", terms=TERMS, count_potential=True, alpha=0.01
    ).fit(x)
    monkeypatch.setattr(_likelihood, "MAX_COLUMNS", 1)
    monkeypatch.setattr(_moment_matching, "MAX_COLUMNS", 1)
    sampled = FVBMPseudoLikelihood(
        objective="likelihood", terms=TERMS, count_potential=True, alpha=0.01, random_state=0
    ).fit(x)
    assert sampled.solver_ == "sampling"
    assert sampled.converged_
    statistics = statistics_of(x, np.ones(len(x)), 0.01)
    likelihood = TableLikelihood(statistics)
    J_, K_ = statistics.upper
    theta = np.concatenate(
        [
            sampled.intercept_,
            sampled.coupling_[J_, K_],
            sampled.term_weights_,
            sampled.count_potential_[statistics.further.counts],
        ]
    )
    value, gradient = likelihood(theta)
    errors = np.sqrt(statistics.variances / len(x))
    # Raw moments of pairs vary more than centred ones: the mean is in them.
    single = slice(0, D)
    assert (np.abs(gradient[single]) <= 0.8 * errors[single]).all()
    assert (np.abs(gradient[15:]) <= 0.8 * errors[15:]).all()
    # The noise of the rows costs half a nat for each parameter.
    assert exact.history_["log_likelihood"][-1] - value < len(theta) / (2 * len(x))
    assert_allclose(sampled.history_["log_likelihood"][-1], value, atol=0.03)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"count_potential": True}, "count_potential=True is for objective='likelihood'"),
        (
            {"objective": "likelihood", "max_order": 3},
            "objective='likelihood' does not choose terms",
        ),
        (
            {"objective": "likelihood", "terms": [(0, 1)]},
            "terms must have three columns",
        ),
    ],
)
def test_what_does_not_go_together(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        FVBMPseudoLikelihood(**parameters).fit(neurons(0, 100))


def test_constant_columns_and_missing_cells():
    x = neurons(0, 200)
    constant = np.insert(x, 1, 1, axis=1)
    with pytest.raises(ValueError, match="column 1 is constant"):
        FVBMPseudoLikelihood(objective="likelihood", count_potential=True).fit(constant)
    model = FVBMPseudoLikelihood(objective="likelihood", terms=[(0, 1, 2), (0, 2, 3)], alpha=0.01)
    model.fit(constant)
    assert model.term_weights_[model.terms_.index((0, 2, 3))] != 0
    x[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing"):
        FVBMPseudoLikelihood(objective="likelihood", count_potential=True).fit(x)
