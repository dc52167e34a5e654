"""What fails or ends early leaves a model as it was; pickles between batches, and threads."""

import pickle
import threading

import numpy as np
import pytest
from contract.estimators import ALL, MODELS, SHORT, BoltzmannClassifier, each, fitted
from contract.frames import ODD, REFUSED, REFUSED_BY_OTHERS, bits, gaps
from contract.state import answers, assert_not_fitted, assert_same, fitted_values, state
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklearn_boltz import (
    SDCPRBM,
    TAPRBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    MaximumEntropy,
    SparseFVBM,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BITS = bits(40)
WEIGHTS = {"negative weights": np.full(40, -1.0), "weights of other rows": np.ones(41)}
# Where numbers stand for themselves; META may put them into bins.
SIGNS = ["minus one beside bits"]
DOMAIN = ["far outside", "two columns with values outside", "grey levels"]


@each(ALL)
def test_a_refused_fit_leaves_the_model_as_it_was(estimator):
    domain = {what: ODD[what] for what in SIGNS if estimator in MODELS}
    for model in (clone(estimator), fitted(estimator)):
        before = state(model)
        for what, table in {**REFUSED_BY_OTHERS, **REFUSED, **domain}.items():
            with pytest.raises((ValueError, TypeError)) as caught:
                model.fit(table)
            assert len(str(caught.value)) > 20 and state(model) == before, what
        for what, weights in WEIGHTS.items():
            with pytest.raises(ValueError):
                model.fit(np.hstack([BITS, BITS]), sample_weight=weights)
            assert state(model) == before, what
        if "n_features_in_" not in vars(model):
            assert_not_fitted(model)


@each(MODELS)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_refused_rows_are_not_scored(estimator):
    """Machines set numbers out of range to the nearer end, with a warning."""
    model = fitted(estimator)
    tables = {**REFUSED_BY_OTHERS, **REFUSED, **{what: ODD[what] for what in DOMAIN}}
    for what, table in tables.items():
        if what in DOMAIN and hasattr(model, "early_stopping"):
            with pytest.warns(UserWarning, match="the nearer end"):
                assert np.isfinite(model.score_samples(table)).all()
        else:
            with pytest.raises((ValueError, TypeError)):
                model.score_samples(table)


SHORT_RBM = SDCPRBM(2, max_iter=1, early_stopping=False)
OVER_DENSITIES = BoltzmannImputer, BoltzmannOutlierDetector, BoltzmannClassifier
UNSEEDED = [
    FVBMPseudoLikelihood(),
    SparseFVBM(),
    FSLLDensity(),
    MaximumEntropy(max_iter=61),
    *[kind(density) for kind in OVER_DENSITIES for density in (None, SHORT_RBM)],
]


@each(UNSEEDED)
def test_fits_without_a_seed_agree(estimator):
    X = gaps(60)
    X[:, 0] += gaps(60, seed=1)[:, 1]  # of three values
    fits = [clone(estimator).fit(X) for _ in range(2)]
    for one, other in (fits, [getattr(fit, "estimator_", fit) for fit in fits]):
        assert answers(one) == answers(other)


THREADED = [
    *MODELS,
    FSLLDensity(solver="greedy"),
    FVBMPseudoLikelihood(solver="bslm"),
    FSLLDensity(dtype="float32", n_jobs=2),
    FVBMPseudoLikelihood(solver="lbfgs"),
    TAPRBM(2, columns="truncated_gaussian", **SHORT),
    TAPRBM(2, hidden="truncated_gauss_bernoulli", **SHORT),
    TAPRBM(4, inference="adaptive", persistent=True, **SHORT),
    InfiniteRBM(3, mode="safeguarded", n_model_samples=32, random_state=0),
]


def work(estimator, seed, n_jobs):
    """Fit, and use what was fitted; -> all that came out."""
    X, model = bits(80, seed=seed), clone(estimator)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    model.fit(X)
    found = [*fitted_values(model).values(), model.score_samples(X), model.transform(X)]
    missing = np.where(np.random.default_rng(seed).random(X.shape) < 0.3, np.nan, X)
    found += [model.sample(50, random_state=seed), model.impute(missing[:20], random_state=0)]
    if not isinstance(model, FSLLDensity):  # which is exact
        found.append(model.log_partition("ais", n_temperatures=50, random_state=0).value)
    return found


@each(THREADED)
@pytest.mark.filterwarnings("ignore:The AIS estimate")
def test_threads_give_the_bits_of_a_sequence(estimator, monkeypatch):
    """Two fits at once, each with two threads of its own however little there is to do."""
    monkeypatch.setattr("sklearn_boltz.numerics._threads.MIN_WORK", 1)
    seeds = range(2)
    in_sequence = [work(estimator, seed, n_jobs=1) for seed in seeds]
    found, together = {}, threading.Barrier(len(seeds))

    def run(seed):
        together.wait()
        found[seed] = work(estimator, seed, n_jobs=2)

    threads = [threading.Thread(target=run, args=[seed]) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        for one, other in zip(in_sequence[seed], found[seed], strict=True):
            assert_array_equal(one, other)


@each([e for e in MODELS if hasattr(e, "partial_fit")])
def test_partial_fit_goes_on_from_a_pickle_to_the_same_bits(estimator):
    whole, parts = clone(estimator), clone(estimator)
    for X in (bits(30, seed=seed) for seed in range(3)):
        whole.partial_fit(X)
        parts = pickle.loads(pickle.dumps(parts)).partial_fit(X)
    assert_same(whole, parts)
