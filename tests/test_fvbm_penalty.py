"""The penalty that FVBMPseudoLikelihood chooses by itself, alpha="auto"."""

import numpy as np
import pytest
from networks import categories, fit, spins
from numpy.testing import assert_allclose, assert_array_equal

from private import PseudoLikelihood, _strength
from sklearn_boltz import statistics


def auto(X, sample_weight=None, **options):
    return fit(X, sample_weight, alpha="auto", **options)


def schur_diagonal(information, n_fields):
    """The information on each coupling when all intercepts are free, by itself."""
    rest = information[n_fields:, n_fields:]
    cross = information[:n_fields, n_fields:]
    inner = np.linalg.solve(information[:n_fields, :n_fields], cross)
    return (rest - cross.T @ inner).diagonal()


def test_curvature_of_independent_columns_is_exact():
    X = spins(60, 6, 1)
    problem = PseudoLikelihood(np.ascontiguousarray(X.T), np.ones(60))
    means = problem.means / 60
    intercept = np.arctanh(means)
    theta = problem.pack(np.zeros((6, 6)), intercept)
    point = problem.at(theta)
    couplings, information, products = problem.pair_curvature(theta)
    assert not couplings.any()
    assert_allclose(information, schur_diagonal(problem.information(point), 6))
    centred = X - means
    j, k = np.triu_indices(6, 1)
    scores = 2 * centred[:, j] * centred[:, k]  # residual times feature, at both ends
    assert_allclose(products, (scores**2).sum(axis=0))


def test_least_strength_has_fields_of_variance_one():
    assert _strength.least_strength(np.full(11, 2)) == pytest.approx(20)
    # λ/4 on K of variance 8/λ, each of which moves the contrasts of the other columns, of norm
    # 1 - 1/q, and in all by 2: that is √2 times the field of a column of ±1.
    n_values = np.array([2, 3, 5, 5])
    variance = 8 / _strength.least_strength(n_values)
    moved = [variance * np.delete(1 - 1 / n_values, j).sum() for j in range(4)]
    assert np.mean(moved) == pytest.approx(2)


def test_next_strength_finds_the_variance():
    """Of 5,000 normal couplings with known errors. The error of s is 4 % of it: 5 in 10⁷."""
    rng = np.random.default_rng(0)
    h, strength, s = rng.uniform(50, 200, 5000), 30.0, 0.01
    products = 2 * h
    estimates = rng.normal(scale=np.sqrt(s), size=5000)
    estimates += rng.normal(size=5000) * np.sqrt(products) / h
    shrunk = h / (h + strength) * estimates
    found = _strength.next_strength(shrunk, h, products, strength, 1.0, 1e6)
    assert found == pytest.approx(2 / s, rel=0.2)
    # Less than the errors alone: the most. And never less than the least.
    assert _strength.next_strength(shrunk / 10, h, products, strength, 1.0, 1e6) == pytest.approx(
        1e6
    )
    assert _strength.next_strength(10 * shrunk, h, products, strength, 50.0, 1e6) == 50.0


def test_strong_couplings_have_the_least_strength_and_weak_ones_more():
    strong, weak = spins(300, 6, same=0.95), spins(300, 6, 4, same=0.55)
    assert auto(strong).alpha_ * 300 == pytest.approx(2 * 5)
    assert auto(weak).alpha_ * 300 > 30
    # Two columns have one coupling, whose variance nothing tells.
    assert auto(weak[:, :2]).alpha_ * 300 == pytest.approx(2)


def test_total_strength_is_bounded_as_rows_grow():
    """The chain of .4 has Σ m² / n_pairs of about .06."""
    few, many = (auto(spins(n, 6, 5)).alpha_ * n for n in (2000, 50_000))
    assert few == pytest.approx(many, rel=0.3)
    assert many < 60


@pytest.mark.parametrize("has_gaps", [False, True])
def test_is_a_fit_with_the_number(has_gaps):
    """The path to the estimate leaves no trace."""
    X = spins(150, 6)
    if has_gaps:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    chosen = auto(X, tol=1e-11)
    given = fit(X, alpha=chosen.alpha_, tol=1e-11)
    assert chosen.alpha_ > 0
    assert_allclose(chosen.coupling_, given.coupling_, atol=1e-5)
    assert_allclose(chosen.intercept_, given.intercept_, atol=1e-5)


def test_alpha_has_a_ceiling():
    """Rows of all states of four columns, once each, have couplings of exactly 0."""
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    assert auto(states).alpha_ == pytest.approx(_strength.MAX_ALPHA)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_separated_columns_have_a_maximum():
    X = np.random.default_rng(0).choice([-1, 1], size=(30, 8))
    X[:, 7] = X[:, 0]
    model = auto(X)
    assert model.converged_ and 0.5 < model.coupling_[0, 7] < 2
    assert auto(categories(25)).converged_


# Standard errors, tests and criteria are those of the estimate without the penalty.


@pytest.fixture(scope="module")
def fitted():
    X = spins(600, 5, 8)
    return X, auto(X), fit(X)


def test_inference_is_that_without_a_penalty(fitted):
    X, chosen, without = fitted
    one, other = statistics.inference(chosen, X), statistics.inference(without, X)
    assert_array_equal(one.estimate, other.estimate)
    assert_array_equal(one.std_err, other.std_err)
    assert np.abs(one.estimate[5:]).max() > np.abs(chosen.coupling_).max()
    for criterion in (statistics.aic, statistics.bic, statistics.ebic):
        assert criterion(chosen, X) == criterion(without, X)
    small = fit(X, edges=[(j, j + 1) for j in range(4)])
    assert small.alpha_ == 0
    one, other = (statistics.likelihood_ratio(model, X, small) for model in (chosen, without))
    assert one.p_value == other.p_value
    one, other = (statistics.bootstrap(model, X, 5, random_state=0) for model in (chosen, without))
    assert_array_equal(one.resamples, other.resamples)
    assert_array_equal(one.estimate, other.estimate)
    assert chosen.alpha_ > 0 == without.alpha_  # nothing has changed the model
    result = statistics.inference(chosen, X)
    weight = statistics.to_networkx(chosen, result).edges["x0", "x1"]["weight"]
    assert weight == without.coupling_[0, 1]
    assert statistics.to_networkx(chosen).edges["x0", "x1"]["weight"] == chosen.coupling_[0, 1]
    with pytest.raises(ValueError, match="for this fit"):
        statistics.to_networkx(auto(spins(200, 5)), result)
