"""Weights of rows in restricted Boltzmann machines: what they mean, and what is exact."""

import numpy as np
import pytest
from contract.estimators import OF_BATCHES, UNLABELLED, each
from contract.frames import memory_map
from contract.state import parameters
from sklearn.base import clone

from oracles_rbm import SmallRBM
from private import _visits
from sklearn_boltz import SDCPRBM, TAP, TAPRBM
from sklearn_boltz.batches import Batches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Means over seeds may differ by this many standard errors: a false alarm in 1.7 million figures.
SIGMAS = 5
every_estimator, by_mini_batches = each(UNLABELLED), each(OF_BATCHES)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(90, 5)).astype(np.float64)
    X[:, 1] = np.where(rng.random(90) < 0.1, 1 - X[:, 0], X[:, 0])
    return X


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).integers(0, 4, size=90).astype(np.float64)


def test_visits_are_right_in_the_mean():
    rng, weights = np.random.default_rng(0), np.array([0.1, 0.7, 3.3, 1.0, 0.9])
    shares, n = weights / weights.mean(), 4000
    mean = sum(_visits.visits(weights, rng) for _ in range(n)) / n
    whole = np.floor(shares)
    deviation = np.sqrt((shares - whole) * (1 - shares + whole) / n)
    assert (np.abs(mean - shares) <= SIGMAS * deviation + 1e-12).all()


@by_mini_batches
def test_partial_fit_takes_weights(estimator, X, weights):
    model = clone(estimator).partial_fit(X)
    expected = parameters(model.partial_fit(X))
    model = clone(estimator).partial_fit(X, sample_weight=np.full(90, 0.7))
    model.partial_fit(X, sample_weight=np.ones(90))
    np.testing.assert_array_equal(parameters(model), expected)
    one = clone(estimator).partial_fit(X).partial_fit(X[3:4])
    other = clone(estimator).partial_fit(X).partial_fit(X, sample_weight=np.arange(90) == 3)
    np.testing.assert_array_equal(parameters(one), parameters(other))
    heavy = np.where(np.arange(90) == 3, 1e12, 1.0)
    assert np.isfinite(model.partial_fit(X, sample_weight=heavy).score(X))


@pytest.mark.parametrize(
    "kind, n_seeds, options",
    [
        (SDCPRBM, 24, {"n_inner": 2, "n_gibbs": 1}),
        (TAPRBM, 10, {"alpha": 0.01, "inference": TAP(n_gibbs=0)}),
    ],
    ids=["SDCPRBM", "TAPRBM"],
)
def test_weights_are_as_good_as_repeated_rows(kind, n_seeds, options):
    """Means over seeds of what was learned, from as many mini-batches."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(40, 3)).astype(float)
    X[:, 1] = X[:, 0]
    X = X[np.argsort(X[:, 0] != X[:, 2], kind="stable")]
    counts = np.repeat([5, 1], 20)
    epochs, of_repeated = 30, 10  # of 40 rows, and of 120

    def learned(sample_weight, rows, max_iter):
        figures = []
        for seed in range(n_seeds):
            model = kind(2, batch_size=10, learning_rate=0.1, max_iter=max_iter,
                         track_likelihood=False, random_state=seed, **options)  # fmt: skip
            model.fit(rows, sample_weight=sample_weight)
            exact = SmallRBM(model.components_, model.intercept_visible_, model.intercept_hidden_)
            moments = exact.V.T @ (exact.p[:, np.newaxis] * exact.V)
            log_p = np.log(exact.p[(X @ [4, 2, 1]).astype(int)])
            score = np.average(log_p, weights=counts)
            figures.append(np.append(moments[np.triu_indices(3)], score))
        return np.array(figures)

    weighted = learned(counts.astype(float), X, epochs)
    repeated = learned(None, np.repeat(X, counts, axis=0), of_repeated)
    error = np.sqrt((weighted.var(axis=0) + repeated.var(axis=0)) / n_seeds)
    difference = np.abs(weighted.mean(axis=0) - repeated.mean(axis=0))
    assert (difference < SIGMAS * error + 1e-9).all(), difference / error
    unweighted = learned(None, X, epochs)
    assert (np.abs(unweighted.mean(axis=0) - repeated.mean(axis=0)) > 2 * SIGMAS * error).any()


def test_settings_follow_from_the_effective_number_of_rows():
    """Units, decay and chains by rows of equal weight that estimate a mean as well (Kish)."""
    X = np.random.default_rng(0).integers(2, size=(300, 40)).astype(float)
    weights = np.where(np.arange(300) < 30, 1.0, 1e-6)  # as if there were 30 rows
    model = SDCPRBM(max_iter="auto", early_stopping=False, random_state=0)
    model.set_params(track_likelihood=False)
    fits = [model.fit(*given).n_components_ for given in [(X,), (X, None, weights), (X[:30],)]]
    assert fits[0] > fits[1] == fits[2]


# Columns of real numbers are standardised by the rows as they count.


def scales(model, X, **options):
    """Means and standard deviations by which a fit standardises the columns."""
    layout = clone(model).set_params(columns="gaussian").fit(X, **options)._encoder.coding
    return np.array([layout.center, layout.scale])


@every_estimator
def test_real_columns_are_standardised_by_weights(estimator):
    # Of eighths around 5, all sums are exact, and so are equal ones in any order.
    half = np.random.default_rng(3).integers(-40, 40, size=(15, 3)) / 8
    half[::7, 1] = np.nan
    X, weights = np.concatenate([5 + half, 5 - half]), np.tile(np.arange(15) % 4, 2)
    expected = scales(estimator, np.repeat(X, weights, axis=0))
    assert np.abs(expected - scales(estimator, X)).max() > 0.01
    np.testing.assert_array_equal(scales(estimator, X, sample_weight=weights), expected)
    huge = scales(estimator, X, sample_weight=weights * 2.0**900)
    np.testing.assert_allclose(huge, expected, rtol=1e-12)
    twice = np.full(30, 2.0)
    np.testing.assert_array_equal(scales(estimator, X, sample_weight=twice), scales(estimator, X))
    # One that is constant where it counts.
    X = np.column_stack([np.arange(20.0), np.where(np.arange(20), 1.0, 50.0)])
    center, scale = scales(estimator, X, sample_weight=np.arange(20) > 0)
    assert (center[1], scale[1]) == (1, 1)


@pytest.mark.parametrize("kind", [SDCPRBM, TAPRBM])
def test_batches_take_one_weight_a_row(kind, X, weights, tmp_path):
    model = kind(3, max_iter=3, batch_size=20, random_state=0)
    source = Batches([X[:50], X[50:]])
    equal, plain = (clone(model).fit(source, sample_weight=w) for w in (np.full(90, 0.3), None))
    np.testing.assert_array_equal(parameters(equal), parameters(plain))
    found = clone(model).fit(source, sample_weight=weights)
    assert np.isfinite(found.score(X))
    # A memory map has the bits of an array, with the order of the rows.
    mapped = memory_map(X, tmp_path)
    two, one = (clone(model).fit(mapped, sample_weight=w * (weights > 0)) for w in (0.3, 1.0))
    np.testing.assert_array_equal(parameters(two), parameters(one))
    one = clone(model).set_params(early_stopping=True).fit(mapped, sample_weight=weights)
    assert np.isfinite(one.score(X))
