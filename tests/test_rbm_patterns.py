"""Rows near a few patterns: chains that stick, what a training then does, and its best epoch."""

import warnings
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from private import Workers, _mixing, _progress, _tree
from sklearn_boltz import SDCPRBM, TAPDBM, TAPRBM


def planted(d, k, n_rows, f, seed=0):
    """-> rows, more rows, and the log-probability of the latter in the mean."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(2, size=(k, d))
    X = patterns[rng.integers(k, size=n_rows + 2000)]
    X = X ^ (rng.random(X.shape) < f)
    n_flips = (X[n_rows:, np.newaxis] != patterns).sum(axis=2)
    log_p = logsumexp(n_flips * np.log(f) + (d - n_flips) * np.log1p(-f), axis=1) - np.log(k)
    return X[:n_rows].astype(float), X[n_rows:].astype(float), log_p.mean()


@pytest.mark.parametrize(("strength", "expected"), [(0.0, 0.0), (9.0, 0.9)])
def test_memory_of_chains(strength, expected):
    """None of independent bits, within five standard errors; that of two modes without a bridge."""
    side = np.where(np.arange(20) % 2, 1.0, -1.0)
    weights, bias = strength * side[np.newaxis], -strength * side / 2
    balance = -weights.sum() / 2  # the modes have the same mass
    model = SDCPRBM.from_parameters(weights, bias, [balance])._model()
    rows = np.random.default_rng(0).integers(2, size=(200, 1)) == (side > 0)
    flipped = rows ^ (np.random.default_rng(1).random(rows.shape) < 0.01)
    with Workers(1) as workers:
        found = _mixing.memory(model, flipped.astype(float), 0, workers)
    if expected:
        assert found > expected
    else:
        assert abs(found) < 5 / np.sqrt(200)


def test_a_tree_is_the_best_of_all():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(300, 4))
    X[:, 2] = X[:, 0] ^ (rng.random(300) < 0.1)
    X[:, 3] = X[:, 2] ^ (rng.random(300) < 0.2)
    states = np.array(list(product((0, 1), repeat=4)))
    assert_allclose(np.exp(_tree.tree_log_density(states, X)).sum(), 1)
    found = _tree.tree_log_density(X, X).mean()
    totals = [of_tree(X, edges) for edges in combinations(combinations(range(4), 2), 3)]
    assert_allclose(found, max(filter(None, totals)), atol=1e-9)
    same = np.zeros((20, 3))
    assert_allclose(np.exp(_tree.tree_log_density(states[:8, 1:], same)).sum(), 1)


def of_tree(X, edges):
    """The log-likelihood of a tree, with half a row more in each cell of a pair; None of others."""
    joined = {k: {k} for k in range(4)}
    for i, j in edges:
        if joined[i] is joined[j]:
            return None
        joined[i] |= joined[j]
        joined |= {k: joined[i] for k in joined[i]}
    n, log_p = len(X) + 2, np.zeros(len(X))
    single = [(np.bincount(x, minlength=2) + 1) / n for x in X.T]
    for i in range(4):
        log_p += np.log(single[i][X[:, i]])
    for i, j in edges:
        joint = (np.bincount(2 * X[:, i] + X[:, j], minlength=4) + 0.5) / n
        log_p += np.log(joint[2 * X[:, i] + X[:, j]])
        log_p -= np.log(single[i][X[:, i]]) + np.log(single[j][X[:, j]])
    return log_p.mean()


def training(epoch, score, std_err):
    history = {"validation_log_likelihood": [score], "log_likelihood_std_err": [std_err]}
    figures = {name: values[0] for name, values in history.items()}
    return SimpleNamespace(
        of_epoch=epoch, n_epochs=epoch, history=history, best=None, tracker=epoch,
        figures=lambda epoch: figures, learner=SimpleNamespace(model=lambda: epoch),
    )  # fmt: skip


def test_the_peak_is_the_epoch_that_was_clearly_higher():
    first, near, far = training(1, -3.0, 0.1), training(2, -2.9, 0.1), training(3, -2.7, 0.1)
    assert _progress.higher(None, first) is first
    assert _progress.higher(first, near) is first
    assert _progress.higher(first, far) is far
    assert _progress.higher(far, training(4, np.nan, 0.1)) is far


@pytest.mark.parametrize(
    ("score", "gain", "is_kept"), [(-2.9, 9.0, True), (-4.0, 0.3, True), (-4.0, 0.5, False)]
)
def test_a_training_falls_back_to_what_is_better_by_two_errors(score, gain, is_kept):
    """Both are measured again only where the values of the epochs say so."""
    peak, now = training(3, -3.0, 0.1), training(8, score, 0.1)
    monitor = SimpleNamespace(difference=lambda models, tracker, workers: (gain, 0.2))
    _progress.fall_back(now, peak, lambda: monitor, None)
    assert now.of_epoch == (8 if is_kept else 3)
    assert now.learner.model() == now.tracker == now.of_epoch
    assert peak.of_epoch == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "never"), [(SDCPRBM, 0), (TAPRBM, False)])
def test_no_fit_ends_below_its_best_epoch(estimator, never):
    """With an exact ln Z: the error is that of the mean over the rows, of a difference at most."""
    X, valid, _ = planted(12, 3, 200, 0.02)
    model = estimator(
        8, tempered=never, early_stopping=valid, learning_rate=1.0, max_iter=60, random_state=0
    )
    history = model.fit(X).history_
    assert np.isfinite(history["validation_log_likelihood"]).all()
    log_p = model.score_samples(valid)
    error = 2 * log_p.std() / np.sqrt(len(valid))
    assert log_p.mean() > history["validation_log_likelihood"].max() - error
    # Without the rule, this rate has lost more than that in the end.
    assert history["validation_log_likelihood"][-1] < log_p.mean()


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "allowed"), [(SDCPRBM, 0.5), (TAPRBM, 0.8), (TAPDBM, 0.8)])
def test_planted_patterns(estimator, allowed):
    """With one hidden layer, of three seeds .2 nats below the truth at most."""
    X, rest, truth = planted(18, 3, 500, 0.005)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator(random_state=0).fit(X)
    assert model.score(rest) > truth - allowed
    again = estimator(random_state=0).fit(X)
    assert_array_equal(model.intercept_visible_, again.intercept_visible_)


@pytest.mark.slow
def test_the_remedy_for_a_fit_that_a_tree_beats():
    X, rest, _ = planted(18, 3, 500, 0.005)
    with pytest.warns(ConvergenceWarning, match="a tree of pairs.*tempered='auto'"):
        worse = TAPRBM(tempered=False, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        better = worse.__class__(random_state=0).fit(X)
    assert better.score(rest) > worse.score(rest) + 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "never"), [(SDCPRBM, 0), (TAPRBM, False)])
def test_where_chains_stick_a_second_training_follows_the_first(monkeypatch, estimator, never):
    short = estimator._schedule._replace(longest=(1, 15, 15), last_epochs=(2, 2))
    monkeypatch.setattr(estimator, "_schedule", short)
    X, valid, _ = planted(12, 3, 200, 0.01)
    model = estimator(8, early_stopping=valid, learning_rate=1.0, random_state=0, warm_start=True)
    once = clone(model).set_params(tempered=never).fit(X)
    first, both = (one.history_["validation_log_likelihood"] for one in (once, model.fit(X)))
    assert_array_equal(both[: len(first)], first)
    assert both[len(first)] < both[len(first) - 1] < both.max()  # it begins anew, and gets further
    n_epochs = model.fit(X).n_iter_
    assert n_epochs > len(both) and model._training.tracker.keep
