"""Callbacks of scikit-learn are torn down however a fit ends."""

import contextlib
import functools

import pytest
from contract.estimators import ALL, each, each_with
from contract.frames import bits
from sklearn.base import clone

own = pytest.importorskip(
    "sklearn.callback.tests.test_callback_support", reason="scikit-learn below 1.9"
)

WITH_CALLBACKS = [estimator for estimator in ALL if hasattr(estimator, "set_callbacks")]
HOOKS = ["setup", "on_fit_task_begin", "on_fit_task_end", "teardown"]


def knowing(estimator):
    """A copy whose `fit` needs no table."""
    model = clone(estimator)
    model.fit = functools.partial(model.fit, bits())
    return model


@each_with("fail_at", HOOKS, WITH_CALLBACKS)
def test_scikit_learns_check_of_errors(estimator, fail_at, monkeypatch):
    """Theirs has a fit that succeeds otherwise."""
    monkeypatch.setattr(own, "MaxIterEstimator", lambda: knowing(estimator))
    own.test_callback_error(fail_at)


@each(WITH_CALLBACKS)
def test_scikit_learns_checks_of_several_callbacks(estimator, monkeypatch):
    monkeypatch.setattr(own, "MaxIterEstimator", lambda: knowing(estimator))
    own.test_teardown_matches_setup_calls_on_partial_setup_failure()
    own.test_multiple_teardown_errors_are_grouped()


class Interrupting(own.RecordingCallback):
    """Ctrl-C in one of its methods, once."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def _at(self, method):
        if method == self.at:
            self.at = None
            raise KeyboardInterrupt

    def setup(self, estimator, context):
        super().setup(estimator, context)
        self._at("setup")

    def on_fit_task_begin(self, estimator, context):
        super().on_fit_task_begin(estimator, context)
        self._at("on_fit_task_begin")

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        self._at("on_fit_task_end")


@each_with("at", HOOKS[:3], WITH_CALLBACKS)
def test_callbacks_are_torn_down_after_an_interrupt(estimator, at):
    callback = Interrupting(at)
    model = clone(estimator).set_callbacks(callback)
    with contextlib.suppress(KeyboardInterrupt):  # after a first iteration, not all fits raise
        model.fit(bits())
    assert callback.at is None and callback.count_hooks("teardown") == 1
    assert not [name for name in vars(model) if name.startswith(("_callback", "_skl_callbacks_"))]
