"""FVBMPseudoLikelihood: codings, weights, states of the estimator, and mass far from the data."""

import warnings

import numpy as np
import pytest
from oracles_fvbm import estimator_of, random_spins, unpack

from private import SpinModel
from sklearn_boltz import FVBMPseudoLikelihood


def spins_of(d, seed=0, n=200):
    """Rows of -1 and 1, drawn from a network."""
    network = estimator_of(random_spins(d, seed, scale=0.5), low=-1)
    return network.sample(n, random_state=0)


def test_constant_columns_are_set_aside():
    X = np.insert(spins_of(4), 1, -1, axis=1)
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    # One observation more, half of it with the other value.
    assert model.marginal(1)[1] == pytest.approx(0.5 / 201)
    mean = model.log_pseudo_likelihood(X).mean()
    assert model.history_["log_pseudo_likelihood"][-1] == pytest.approx(mean)
    nothing = FVBMPseudoLikelihood().fit(np.ones((5, 3), dtype=int))
    assert nothing.converged_ and np.isfinite(nothing.score(np.ones((1, 3), dtype=int)))


def test_verbose(capsys):
    model = FVBMPseudoLikelihood(verbose=2).fit(spins_of(3))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == model.n_iter_ + 2
    assert printed[-2] == "[FVBMPseudoLikelihood] columns: 3 binary (0, 1, 2)"
    assert printed[0].startswith("iteration 1: ")


def test_large_models_take_lbfgs():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(3000, 78))
    X[:, 1:] = np.where(rng.random((3000, 77)) < 0.2, X[:, :-1], X[:, 1:])
    model = FVBMPseudoLikelihood(alpha=0.0, tol=1e-6).fit(X)
    assert model.solver_ == "lbfgs" and model.converged_
    gradient = X.T @ (X - model.transform(X)) / len(X)
    gradient += gradient.T
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient).max() < 1e-4


@pytest.mark.filterwarnings("error")
def test_a_model_of_its_own_data_does_not_warn():
    """Each `sample` warns with a probability of at most 1e-4 while no rate is off by 0.05.

    Over 4 calls a false alarm comes once in 2,500 runs of new seeds at most. The
    estimates move the rates by some 0.01 to 0.03. The weighted states are not independent draws:
    that they do not warn is measured, not proved.
    """
    rng, d = np.random.default_rng(30), 30
    n = 1000
    theta = rng.normal(scale=0.3, size=d * (d + 1) // 2)
    theta[d:] *= rng.random(len(theta) - d) < 4 / (d - 1)  # four neighbours each
    network = estimator_of(SpinModel(*unpack(theta, d)), low=-1)
    X = network.sample(n, random_state=0, n_steps=50)
    model = FVBMPseudoLikelihood(alpha=1 / n).fit(X)
    for n_samples in (1, 10, 100, 1000):
        model.sample(n_samples, random_state=n_samples, n_steps=50)
    assert np.isfinite(model.log_partition_)


def quiet_and_active_rows(d, n=5000, seed=0):
    """Columns that are independent given the kind of row, of which a fifth is active."""
    rng = np.random.default_rng(seed)
    rate = rng.choice([0.03, 0.25], size=(n, 1), p=[0.8, 0.2])
    return (rng.random((n, d)) < rate).astype(int)


@pytest.mark.parametrize("d", [20, pytest.param(30, marks=pytest.mark.slow)])
def test_mass_far_from_the_data_warns(d):
    """With a common cause, the estimate prefers a state that no row is near."""
    X = quiet_and_active_rows(d)
    model = FVBMPseudoLikelihood(alpha=1 / len(X)).fit(X)
    match = (
        r"column \d+ is 1 with a rate of .*, against 0.0\d+ in the training data.* held-out `score`"
    )
    with pytest.warns(UserWarning, match="In these samples, " + match) as caught:
        samples = model.sample(200, random_state=0)
    assert caught[0].filename == __file__
    assert samples.mean() > 0.5 > X.sum(axis=1).max() / d - 0.3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score = model.score(X)
    assert any("In samples of the model, column" in str(w.message) for w in caught) == (d > 26)
    # As the message says, a large penalty helps; independent columns had been better than none.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FVBMPseudoLikelihood(alpha=0.5).fit(X)
        assert abs(model.sample(200, random_state=0).mean() - X.mean()) < 0.05
        p = X.mean(axis=0)
        independent = (p * np.log(p) + (1 - p) * np.log1p(-p)).sum()
        assert score < independent < model.score(X)


@pytest.mark.parametrize("d", [6, 30])
@pytest.mark.filterwarnings("error")
def test_parameters_that_were_set_are_not_compared_with_the_data(d):
    model = estimator_of(random_spins(d, scale=0.05), low=-1)
    model.intercept_ = np.full(d, -2.0)
    assert model.sample(1000, random_state=0, n_steps=100).mean() < -0.5
    assert np.isfinite(model.log_partition_)
