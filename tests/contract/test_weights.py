"""`sample_weight`: whole numbers are counts of rows, of others only the ratios matter."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from contract.estimators import (
    ALL,
    DENSITIES,
    MACHINES,
    MODELS,
    BoltzmannClassifier,
    each,
    labels,
    name_of,
)  # fmt: skip
from contract.frames import bits
from contract.state import n_calls, parameters
from scipy.stats import binom
from sklearn.base import clone

from sklearn_boltz import (
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
    statistics,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:sample_weight:UserWarning"),
]
# Those whose fits draw nothing that depends on how many rows there are.
CERTAIN = [e for e in DENSITIES if e not in MACHINES] + [
    BoltzmannClassifier(joint=False, calibration=False, random_state=0),
    BoltzmannOutlierDetector(random_state=0),
    BoltzmannImputer(random_state=0),
]
SANDWICH = partial(statistics.inference, covariance="sandwich")


def answers(model, X):
    """What a model that is fitted says of rows."""
    if hasattr(model, "score_samples"):
        return np.asarray(model.score_samples(X))
    return model.estimator_.coupling_  # of the imputer


def learned(estimator, X, weights=None):
    return answers(clone(estimator).fit(X, *labels(estimator, X), sample_weight=weights), X)


def survey_weights(n, seed=1):
    return np.random.default_rng(seed).gamma(2, 1, n)


@each(CERTAIN[-3:])  # of the others, see test_same_table.py
def test_a_count_is_as_many_rows(estimator):
    X, w = bits(60), np.random.default_rng(0).integers(0, 4, size=60)
    y = np.arange(60) % 2
    own, repeated = ([y], [np.repeat(y, w)]) if labels(estimator, X) else ([], [])
    one = answers(clone(estimator).fit(X, *own, sample_weight=w), X)
    two = answers(clone(estimator).fit(np.repeat(X, w, axis=0), *repeated), X)
    np.testing.assert_allclose(one, two, atol=1e-5)


@each(MACHINES[:3])
def test_what_counts_decide_before_a_training_is_that_of_as_many_rows(estimator):
    """Biases, and what "auto" chooses; test_rbm_weights.py has the distribution of what follows."""
    X, w = bits(80), np.random.default_rng(0).integers(0, 4, size=80)
    estimator = clone(estimator).set_params(max_iter=0)
    if "pretrain_max_iter" in estimator.get_params():
        estimator.set_params(pretrain_max_iter=0)
    one = clone(estimator).fit(X, sample_weight=w)
    two = clone(estimator).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(parameters(one), parameters(two), atol=1e-12)
    if "alpha" in estimator.get_params():
        automatic = clone(estimator).set_params(alpha="auto")
        chosen = [automatic.fit(*rows)._training.n_rows
                  for rows in ((X, None, w), (np.repeat(X, w, axis=0),))]  # fmt: skip
        assert chosen[0] == chosen[1] == w.sum()


@each([*CERTAIN, *MACHINES])
def test_a_row_of_weight_zero_is_left_out_with_the_values_that_only_it_has(estimator):
    X = bits(60)
    frame = pd.DataFrame(np.where(X > 0, "yes", "no"), columns=list("abcde"))
    w = np.arange(60) % 3 * 0.7
    strange = frame.mask(np.broadcast_to(w[:, None] == 0, frame.shape), "strange")
    if isinstance(estimator, MaximumEntropy):
        strange = frame.mask(np.broadcast_to(w[:, None] == 0, frame.shape), "yes")
    kept = w > 0
    y = np.arange(60) % 2
    own, rest = ([y], [y[kept]]) if labels(estimator, X) else ([], [])
    one = clone(estimator).fit(strange, *own, sample_weight=w)
    two = clone(estimator).fit(frame[kept], *rest, sample_weight=w[kept])
    np.testing.assert_array_equal(answers(one, frame[kept]), answers(two, frame[kept]))


@each(ALL)
def test_only_ratios_of_other_weights_matter(estimator):
    X, w = bits(60), survey_weights(60)
    expected = learned(estimator, X, w)
    for factor in (1e-9, 3e5, 1e17):
        found = learned(estimator, X, factor * w)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    equal = learned(estimator, X, np.full(60, 0.123))
    np.testing.assert_array_equal(equal, learned(estimator, X))


@each(ALL)
def test_counts_with_a_large_mean_are_told_once(estimator):
    X, w = bits(60), np.full(60, 30)
    found = []
    for weights in (w, w / w.max(), np.full(60, 20)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(estimator).fit(X, *labels(estimator, X), sample_weight=weights)
        found.append([str(one.message) for one in caught if "sample_weight" in str(one.message)])
    (text,), *others = found
    assert others == [[], []]
    assert "mean 30" in text and "1,800 together" in text and "w / w.max()" in text


@pytest.mark.filterwarnings("ignore:the whole numbers in sample_weight")
@each(ALL)
def test_the_cost_does_not_grow_with_counts(estimator):
    X = bits(60).astype(float)
    if estimator in MODELS and not isinstance(estimator, MaximumEntropy):
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    learned(estimator, X)  # imports
    y = (labels(estimator, X) or [None])[0]
    one, some, many = (n_calls(clone(estimator), X, y, np.full(60, w)) for w in (1.0, 1e3, 1e6))
    # So many rows tell of more terms, and of weaker ones; but of no more than all.
    assert many < 1.5 * some < 15 * one, (one, some, many)


@pytest.mark.parametrize("estimator", [FSLLDensity(), FVBMPseudoLikelihood()], ids=name_of)
def test_partial_fit_has_the_rule_of_all_calls(estimator):
    X, w = bits(90), survey_weights(90)
    w[:30] *= 10
    whole = answers(clone(estimator).fit(X, sample_weight=w), X)
    first = clone(estimator).fit(X[:30], sample_weight=w[:30])
    by_parts = first.partial_fit(X[30:50], sample_weight=w[30:50])
    by_parts.partial_fit(X[50:], sample_weight=w[50:])
    np.testing.assert_allclose(answers(by_parts, X), whole, atol=1e-4)  # by the tolerance
    counts = clone(estimator).partial_fit(X[:30], sample_weight=np.full(30, 2))
    counts.partial_fit(X[30:])
    expected = clone(estimator).fit(np.concatenate([X[:30], X]))
    np.testing.assert_allclose(answers(counts, X), answers(expected, X), atol=1e-5)


# Statistics.


def by_differences(x, w, theta):
    """H⁻¹ J H⁻¹ of the pseudo-likelihood of spins, from the scores of rows by differences."""
    d, step = x.shape[1], 1e-5

    def values(theta):
        J = np.zeros((d, d))
        J[np.triu_indices(d, 1)] = theta[d:]
        field = 2 * x * (x @ (J + J.T) + theta[:d])
        return -np.log1p(np.exp(-field)).sum(axis=1)

    def scores(theta):
        units = step * np.eye(len(theta))
        return np.array([(values(theta + u) - values(theta - u)) / (2 * step) for u in units]).T

    units = 1e-4 * np.eye(len(theta))
    H = -np.array([w @ (scores(theta + u) - scores(theta - u)) / 2e-4 for u in units])
    s = scores(theta)
    J = (s * (w**2)[:, None]).T @ s
    return np.linalg.solve(H, np.linalg.solve(H, J).T)


@pytest.mark.parametrize("factor", [1.0, 1e4])
def test_the_sandwich_has_squares_of_weights(factor):
    X, w = 2 * bits(200, 4) - 1, factor * survey_weights(200)
    model = FVBMPseudoLikelihood(alpha=0, tol=1e-12).fit(X, sample_weight=w)
    found = SANDWICH(model, X, sample_weight=w)
    np.testing.assert_allclose(found.covariance, by_differences(X, w, found.estimate), rtol=1e-3)
    assert found.n_samples == pytest.approx(w.sum() ** 2 / (w**2).sum())


@pytest.mark.parametrize("columns", ["binary", "nominal", "gaps"])
def test_equal_rows_are_apart_where_weights_are_no_counts(columns):
    """One half of the weight on each of two equal rows has half the variance of all on one."""
    X = bits(300, 4)[:, :3].astype(float)
    if columns == "nominal":
        X[:, 2] += np.random.default_rng(0).integers(2, size=300)
    if columns == "gaps":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    w = survey_weights(300)
    twice, halves = np.repeat(X, 2, axis=0), np.repeat(w, 2) / 2
    one, two = (
        SANDWICH(FVBMPseudoLikelihood(alpha=0, tol=1e-9).fit(T, sample_weight=v), T,
                 sample_weight=v) for T, v in ((X, w), (twice, halves))
    )  # fmt: skip
    np.testing.assert_allclose(two.covariance, one.covariance / 2, rtol=1e-4, atol=1e-10)
    plain = SANDWICH(FVBMPseudoLikelihood(alpha=0, tol=1e-9).fit(X), X)
    equal = np.full(300, 0.3)
    same = SANDWICH(FVBMPseudoLikelihood(alpha=0, tol=1e-9).fit(X, sample_weight=equal), X,
                    sample_weight=equal)  # fmt: skip
    np.testing.assert_allclose(same.covariance, plain.covariance, rtol=1e-6, atol=1e-12)


def test_criteria_and_resamples_go_by_the_effective_number():
    X, w = 2 * bits(200, 4) - 1, survey_weights(200)
    for function in (statistics.aic, statistics.bic, statistics.ebic):
        values = []
        for factor in (1.0, 1e6):
            model = FVBMPseudoLikelihood().fit(X, sample_weight=factor * w)
            values.append(function(model, X, factor * w))
        assert values[0] == pytest.approx(values[1], rel=1e-10)
    X = 2 * np.random.default_rng(0).integers(2, size=(200, 4)) - 1
    model = FVBMPseudoLikelihood(alpha=0).fit(X, sample_weight=w)
    spread = statistics.bootstrap(model, X, 300, sample_weight=w, random_state=0).resamples
    errors = SANDWICH(model, X, sample_weight=w).std_err
    # The spread of 300 estimates is known to 4 %: by 20 % it is off in one of 3 million.
    np.testing.assert_allclose(spread.std(axis=0), errors, rtol=0.25)


STATES = np.indices((2, 2, 2)).reshape(3, -1).T * 2 - 1
PAIRS, FIELDS = np.array([[0, 0.4, 0], [0, 0, -0.3], [0, 0, 0]]), np.array([0.3, -0.2, 0.1])


def test_intervals_of_surveys_contain_the_truth():
    """In 60 tables of 400 rows whose chance to be drawn depends on them; a benchmark has 1,000.

    The bound is a false alarm once in a million, if the true share is .94 and the 9 intervals of a
    table are as good as 3 independent ones.
    """
    log_p = np.einsum("ni,ij,nj->n", STATES, PAIRS, STATES) + STATES @ FIELDS
    p = np.exp(log_p) / np.exp(log_p).sum()
    truth = np.concatenate([np.arctanh(p @ STATES), FIELDS, PAIRS[np.triu_indices(3, 1)]])
    chance = np.exp(0.5 * STATES[:, 0] * STATES[:, 1] + 0.4 * STATES[:, 2])
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(8, size=400, p=p * chance / (p @ chance))
        X, w = STATES[chosen], 99 / chance[chosen] * np.exp(0.3 * rng.normal(size=400))
        alone = SparseFVBM(edges=np.zeros((3, 3), dtype=bool), alpha=0)
        ends = []
        for model, n in ((alone, 3), (FVBMPseudoLikelihood(alpha=0), 6)):
            result = SANDWICH(model.fit(X, sample_weight=w), X, sample_weight=w)
            ends.append([result.ci_low[:n], result.ci_high[:n]])
        low, high = np.concatenate(ends, axis=1)
        covered.append((low < truth) & (truth < high))
    least = binom.ppf(1e-6, 180, 0.94) / 180
    assert np.mean(covered) > least > 0.8


def test_parts_of_counts_take_no_memory():
    X = 2 * bits(60, 4) - 1
    w = np.full(60, 10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = statistics.centrality_stability(
            FVBMPseudoLikelihood(alpha=0.01), X, sample_weight=w, n_samples=2, random_state=0
        )
        selection = statistics.stability_selection(
            SparseFVBM(), X, sample_weight=w, n_pairs=2, random_state=0
        )
    assert found.correlations.min() > 0.999  # any part of this many copies is like the whole
    assert np.isin(selection.path, [0, 1]).mean() > 0.9  # where a pair enters, by accident
