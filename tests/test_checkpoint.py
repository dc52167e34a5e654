"""Checkpoints of running fits: what they hold, and fits that go on after they were killed."""

import os
import pickle
import signal
import time
from multiprocessing import get_context

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from private import _em
from sklearn_boltz import (
    SDCPRBM,
    TAPDBM,
    TAPRBM,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
    MaximumEntropy,
    RBMClassifier,
    SparseFVBM,
)
from sklearn_boltz.callbacks import Checkpoint

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")

SHORT = {"early_stopping": False, "random_state": 0}
GOING_ON = [
    SDCPRBM(8, max_iter=4, **SHORT),
    TAPRBM(8, max_iter=4, **SHORT),
    TAPDBM((5, 4), pretrain_max_iter=1, max_iter=4, **SHORT),
    RBMClassifier(8, max_iter=4, **SHORT),
]
N_KILLS = 8


def table():
    rng = np.random.default_rng(0)
    X = (rng.random((120, 14)) < 0.4).astype(float)
    X[:, 1] = X[:, 0]
    return X, X[:, 0].astype(int)


class Stop:
    """A callback that ends the fit after some iterations."""

    def __init__(self, n):
        self.left = n

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        return self.left == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", GOING_ON, ids=lambda e: type(e).__name__)
def test_a_saved_model_goes_on_to_the_same_bits(estimator, tmp_path):
    (X, y), path = table(), tmp_path / "model.joblib"
    whole = clone(estimator).fit(X, y)
    clone(estimator).set_callbacks(Checkpoint(path, every=0), Stop(2)).fit(X, y)
    saved = joblib.load(path)
    assert saved.n_iter_ == 2 and not hasattr(saved, "_skl_callbacks")
    saved.set_params(warm_start=True, max_iter=2).fit(X, y)
    assert saved.n_iter_ == whole.n_iter_ == 4
    assert_array_equal(saved.score_samples(X), whole.score_samples(X))
    assert os.listdir(tmp_path) == ["model.joblib"]


OTHERS = [FSLLDensity(), FVBMPseudoLikelihood(solver="bslm"), InfiniteRBM(3, **SHORT)]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda e: type(e).__name__)
def test_other_models_are_saved_too(estimator, tmp_path):
    X, path = table()[0], tmp_path / "model.joblib"
    model = clone(estimator).set_callbacks(Checkpoint(path, every=0)).fit(X)
    assert np.isfinite(joblib.load(path).score_samples(X)).all()
    pickle.dumps(model)
    stopped = clone(estimator).set_callbacks(Stop(1)).fit(X)
    assert 1 <= stopped.n_iter_ < model.n_iter_


CODES = np.random.default_rng(0).integers(3, size=(60, 4)).astype(float)
WITH_GAPS = np.where(np.random.default_rng(1).random(CODES.shape) < 0.4, np.nan, CODES)
OF_NETWORKS = {
    "by EM": (FVBMPseudoLikelihood(alpha=0.1), WITH_GAPS, 1),
    "by draws": (FVBMPseudoLikelihood(alpha=0.1), WITH_GAPS, 2),
    "of features": (FVBMPseudoLikelihood(tol=1e-9), CODES, 1),
    "of features, near the end": (FVBMPseudoLikelihood(tol=1e-9), CODES, 16),
    "of the likelihood": (MaximumEntropy(random_state=0), CODES, 1),
    "of the likelihood, near the end": (MaximumEntropy(random_state=0), CODES, 30),
    "with a sampler": (
        MaximumEntropy(sampler=lambda J, h, n, rng: rng.choice([-1, 1], (n, len(h)))), CODES > 1, 1
    ),
    "with terms": (SparseFVBM(max_order=3), CODES > 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_callback_ends_the_fit_of_a_network(name, monkeypatch):
    monkeypatch.setattr(_em, "MAX_CELLS", 1 if name == "by draws" else _em.MAX_CELLS)
    estimator, X, n = OF_NETWORKS[name]
    model = clone(estimator).set_callbacks(Stop(n)).fit(X)
    assert model.n_iter_ == n == len(model.history_["seconds"]) and not model.converged_
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize(("every", "n_saved"), [(0, 4), ("0 min", 4), ("1 h", 0), (3600, 0)])
def test_the_time_between_two_models(every, n_saved, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("sklearn_boltz.callbacks._save", lambda *pair: saved.append(pair))
    clone(GOING_ON[0]).set_callbacks(Checkpoint(tmp_path / "model", every)).fit(table()[0])
    assert len(saved) == n_saved


@pytest.mark.parametrize("every", ["10 minutes", "soon", "min"])
def test_a_time_that_is_none(every, tmp_path):
    model = clone(GOING_ON[0]).set_callbacks(Checkpoint(tmp_path / "model", every))
    with pytest.raises(ValueError, match=f"every='{every}' is not a time.*'10 min'"):
        model.fit(table()[0])
    assert not hasattr(model, "components_")


def test_a_place_that_cannot_be_written_is_refused_at_the_beginning(tmp_path):
    for path, error, words in [
        (tmp_path / "no" / "model", FileNotFoundError, "Create the folder"),
        (tmp_path, IsADirectoryError, "is a folder"),
    ]:
        model = clone(GOING_ON[0]).set_callbacks(Checkpoint(path, every=0))
        with pytest.raises(error, match=words):
            model.fit(table()[0])
        assert not hasattr(model, "components_")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_ends_no_fit(call, tmp_path, monkeypatch):
    (X, y), path = table(), tmp_path / "model.joblib"
    whole, saves = clone(GOING_ON[0]).fit(X, y), []
    works = getattr(os, call)

    def fails(*args):
        saves.append(args)
        if len(saves) > 1:
            raise OSError(28, "No space left on device")
        return works(*args)

    monkeypatch.setattr(os, call, fails)
    model = clone(GOING_ON[0]).set_callbacks(Checkpoint(path, every=0))
    with pytest.warns(UserWarning, match="could not be saved.*No space left.*goes on") as caught:
        model.fit(X, y)
    assert len(saves) == 4 and sum("saved" in str(one.message) for one in caught) == 3
    assert_array_equal(model.components_, whole.components_)
    assert joblib.load(path).n_iter_ == 1 and os.listdir(tmp_path) == ["model.joblib"]


def test_an_interrupt_leaves_no_other_file(tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clone(GOING_ON[0]).set_callbacks(Checkpoint(tmp_path / "model", every=0)).fit(table()[0])
    assert not os.listdir(tmp_path)


def test_a_damaged_file_is_not_loaded(tmp_path):
    """Whichever bit has flipped: an error, or a model with the same scores."""
    X, path = table()[0], tmp_path / "model.joblib"
    clone(GOING_ON[0]).set_callbacks(Checkpoint(path, every=0)).fit(X)
    whole, scores = path.read_bytes(), joblib.load(path).score_samples(X)
    rng, n_refused = np.random.default_rng(0), 0
    for place in rng.integers(len(whole), size=100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            found = joblib.load(path).score_samples(X)
        except Exception:
            n_refused += 1
        else:
            assert_array_equal(found, scores)
    assert n_refused > 90


def train(path, n_epochs):
    """Go on from the last saved model, up to a number of epochs in all."""
    X = table()[0]
    model = SDCPRBM(14, random_state=0, early_stopping=False, warm_start=True)
    if path.exists():
        model = joblib.load(path)
    model.set_params(max_iter=n_epochs - getattr(model, "n_iter_", 0))
    model.set_callbacks(Checkpoint(path, every=0)).fit(X)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_killed_fits_go_on_to_the_same_bits(tmp_path):
    """Eight times, at any moment: also while a model is written."""
    path, rng, context = tmp_path / "model.joblib", np.random.default_rng(0), get_context("fork")
    done = 0
    for _ in range(N_KILLS):
        child = context.Process(target=train, args=(path, 10**6))
        child.start()
        before, deadline = path.stat().st_mtime_ns if done else 0, time.monotonic() + 60
        while (path.stat().st_mtime_ns if path.exists() else 0) <= before:
            assert child.is_alive() and time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.03))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        now = joblib.load(path).n_iter_
        assert now > done
        done = now
    train(path, done + 3)
    model, whole = joblib.load(path), SDCPRBM(14, max_iter=done + 3, **SHORT).fit(table()[0])
    assert_array_equal(model.components_, whole.components_)
    figures = model.history_["log_likelihood"], whole.history_["log_likelihood"]
    assert_array_equal(*figures)
