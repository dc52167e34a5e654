"""TAP's expansion of ln Z is an objective of training: scores do not use it."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from private import _enumeration
from sklearn_boltz import TAPDBM, TAPRBM

UNTRACKED = dict(max_iter=20, early_stopping=False, track_likelihood=False, random_state=0)
GREY = load_digits().data[:300] / 16
BITS = (GREY > 0.5).astype(np.float32)
MODELS = {
    "bits": (TAPRBM(12, learning_rate=0.2), BITS),
    "naive": (TAPRBM(14, learning_rate=0.3, inference="naive"), BITS),
    "truncated": (TAPRBM(8, columns="truncated_gaussian", learning_rate=0.15), GREY[:, 20:32]),
    "gaussian": (TAPRBM(8, columns="gaussian", learning_rate=0.02), GREY[:, 20:30]),
    "deep": (TAPDBM((12, 8), learning_rate=0.2, pretrain_max_iter=5), BITS),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, X = MODELS[request.param]
    return model.set_params(**UNTRACKED).fit(X), X


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Small models count as too large for a sum over their states, which then is the truth."""
    monkeypatch.setattr(_enumeration, "EXACT_UNITS", 2)


def test_scores_do_not_use_the_expansion(fitted):
    model, X = deepcopy(fitted)
    exact, tap = model.log_partition("exact").value, model.log_partition("tap")
    ais = model.log_partition("ais", random_state=0)
    assert model.log_partition().method == "ladder"
    # TAP is off by more than the tolerance below, which can tell the two apart.
    assert abs(tap.value - exact) > 7 * ais.std_err
    # By chance, 5 standard errors are exceeded once in a million times.
    assert abs(model.log_partition_ - exact) < 5 * ais.std_err
    expected = -model.free_energy(X).mean() - model.log_partition_
    assert model.score(X) == pytest.approx(expected, rel=1e-12)
    assert not tap.trusted and "is not to be trusted: TAP is an expansion" in tap.verdict
    objective = -model.free_energy(X) - tap.value
    np.testing.assert_allclose(model.tap_log_likelihood(X), objective, rtol=1e-12)


def test_what_was_called_before_makes_no_difference(fitted):
    """Called one after the other, in random orders."""
    model, X = fitted
    expected, rng = deepcopy(model).score_samples(X), np.random.default_rng(0)
    calls = [
        lambda m: m.log_partition("tap"),
        lambda m: m.log_partition("ais", n_chains=200, n_temperatures=100, random_state=0),
        lambda m: m.log_partition("exact"),
        lambda m: m.tap_log_likelihood(X[:5]),
        lambda m: m.tap_solutions(X[:5]),
        lambda m: m.score(X[:5]),
    ]
    for _ in range(2):
        again = deepcopy(model)
        for k in rng.permutation(len(calls)):
            calls[k](again)
        np.testing.assert_array_equal(again.score_samples(X), expected)


def exact_score(model, X):
    return -model.free_energy(X).mean() - model.log_partition("exact").value


def test_a_search_finds_what_is_best_by_enumeration():
    """All scores are those by enumeration within .1, five standard errors; the best to .05."""
    grid = {"inference": ["tap", "naive"], "n_components": [4, 13]}
    by = {"sampled": lambda model, X: model.score(X), "exact": exact_score}
    model = TAPRBM(learning_rate=0.2, **UNTRACKED)
    found = GridSearchCV(model, grid, scoring=by, refit="sampled", cv=2).fit(BITS).cv_results_
    sampled, exact = found["mean_test_sampled"], found["mean_test_exact"]
    np.testing.assert_allclose(sampled, exact, atol=0.1)
    assert exact[sampled.argmax()] >= exact.max() - 0.05 and np.ptp(exact) > 0.5
