"""Ctrl-C and errors at any call of a function during a fit: nothing is lost, and it goes on."""

import pickle

import numpy as np
import pytest
from conftest import cases
from contract.estimators import ALL, META, MODELS, by_turns, each
from contract.frames import bits, gaps
from contract.state import (
    CtrlC,
    answers,
    assert_not_fitted,
    assert_same,
    fitted_values,
    interrupted,
    n_calls,
    state,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.hypothesis,  # by `make fuzz`, too, at more calls
]
# Interrupts of each estimator: numbers of those at equal distances, and of those at the last calls,
# where attributes are set. Every other one is in a first fit.
N_ANYWHERE, N_LAST = cases(24), 6
EPOCHS = [e for e in MODELS if {"warm_start", "learning_rate"} <= e.get_params().keys()]
STREAMED = [e for e in ALL if hasattr(e, "partial_fit")]
X = gaps(16)


def places(n_calls):
    """Numbers of calls at which fits end: the first one, some anywhere, and the last ones."""
    anywhere = [1 + int((k + 0.5) / N_ANYWHERE * (n_calls - 1)) for k in range(N_ANYWHERE)]
    return [1, *anywhere, *range(n_calls - N_LAST, n_calls)]


@each(ALL)
def test_interrupts_lose_nothing(estimator):
    """After each, the model is the old one, the new one, or that of its complete epochs."""
    written = pickle.dumps(clone(estimator).fit(gaps(16, seed=1)))
    expected, n_old = answers(clone(estimator).fit(X)), 0
    for first, make in enumerate([lambda: clone(estimator), lambda: pickle.loads(written)]):
        was_fitted = hasattr(make(), "n_features_in_")
        n_calls(make(), X)  # fills caches
        for k, n in enumerate(places(n_calls(make(), X))[first::2]):
            model, before = interrupted(make, n, [X])
            if state(model) == before:
                n_old += 1
                assert was_fitted or not assert_not_fitted(model)
            else:
                found = answers(model)
                assert found == expected or estimator not in META
            if k % 4 == 0:
                assert answers(model.fit(X)) == expected
    assert n_old >= 2


@each(STREAMED)
def test_interrupts_of_partial_fit_lose_nothing(estimator):
    """After each, the model is that without the rows, or that with all of them."""
    written = pickle.dumps(clone(estimator).partial_fit(gaps(16, seed=1)))
    for make in (lambda: clone(estimator), lambda: pickle.loads(written)):
        arguments = [X, by_turns(X)] if is_classifier(estimator) else [X]
        total = n_calls(make(), *arguments, method="partial_fit")
        expected = answers(make().partial_fit(*arguments))
        for n in places(total)[::3]:
            model, before = interrupted(make, n, arguments, "partial_fit")
            assert state(model) == before or answers(model) == expected


@each(EPOCHS)
def test_interrupts_of_a_continued_fit_lose_nothing(estimator):
    """Within its first epoch, the model is the old one."""
    fitted = clone(estimator).fit(X).set_params(warm_start=True)
    written, n_iter, n_old = pickle.dumps(fitted), fitted.n_iter_, 0
    for n in places(n_calls(fitted, X))[:N_ANYWHERE]:
        model, _ = interrupted(lambda: pickle.loads(written), n, [X])
        if model.n_iter_ == n_iter:
            n_old += 1
            assert_same(model, pickle.loads(written))
        else:
            answers(model)
    assert n_old >= 2


class Failure(BaseException):
    """What no code expects."""


@each(ALL)
def test_errors_anywhere_leave_the_model_as_it_was(estimator):
    written = pickle.dumps(clone(estimator).fit(gaps(16, seed=1)))
    for make in (lambda: clone(estimator), lambda: pickle.loads(written)):
        # The last calls may come after the fit.
        for n in places(n_calls(make(), X))[:N_ANYWHERE:3]:
            model, before = interrupted(make, n, [X], error=Failure)
            assert state(model) == before


# With a rate so large that it gets worse: then the best epoch is kept.
TEMPERED = SDCPRBM(4, max_iter=5, tempered=0.5, learning_rate=1.0, random_state=0)


@each([*EPOCHS, TEMPERED])
@settings(max_examples=cases(4))
@given(where=st.floats(0, 1))
def test_an_interrupted_fit_has_its_complete_epochs_and_goes_on(estimator, where):
    """The bits of the fit that was shorter; and of the whole one, once it went on."""
    length = "max_iter" if "max_iter" in estimator.get_params() else "max_components"
    X, model = bits(30), clone(estimator).set_params(**{length: 4})
    whole = clone(model)
    total = n_calls(whole, X)
    with CtrlC(1 + int(where * (total - 1))):
        model.fit(X)
    done = getattr(model, "n_iter_", 0)
    if hasattr(model, "n_iter_"):
        shorter = done if length == "max_iter" else max(done, 1)
        if done == shorter:
            assert_same(model, clone(model).set_params(**{length: shorter}).fit(X))
    else:
        assert not fitted_values(model)
    if estimator is TEMPERED:
        return
    if done < 4:
        more = 4 - done if length == "max_iter" else 4
        model.set_params(warm_start=True, **{length: more}).fit(X)
    assert_same(model, whole)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "bslm", "ga"])
def test_an_interrupted_pairwise_fit_has_its_last_iteration(solver):
    X = bits()[:, :4]
    whole = FVBMPseudoLikelihood(solver=solver, alpha=0.01).fit(X)
    model = FVBMPseudoLikelihood(solver=solver, alpha=0.01, warm_start=True)
    total = n_calls(clone(model), X)
    seen = set()
    for n in range(total // 3, total, max(1, total // 20)):
        model = clone(model)
        with CtrlC(n):
            model.fit(X)
        if not hasattr(model, "n_iter_") or model.converged_:
            continue
        seen.add(model.n_iter_)
        assert len(model.history_["log_pseudo_likelihood"]) == model.n_iter_
        at_the_end = model.history_["log_pseudo_likelihood"][-1]
        penalty = 0.01 / 4 * (model.coupling_**2).sum()
        assert at_the_end == pytest.approx(model.log_pseudo_likelihood(X).mean() - penalty)
        assert np.isfinite(model.transform(X)).all() and np.isfinite(model.sample(3, 0)).all()
        from_there = clone(model).fit(
            X, coupling_init=model.coupling_, intercept_init=model.intercept_
        )
        model.fit(X)
        np.testing.assert_array_equal(model.coupling_, from_there.coupling_)
        assert model.history_["log_pseudo_likelihood"][0] >= at_the_end - 1e-12
        assert model.score(X) == pytest.approx(whole.score(X), abs=1e-3)
    assert len(seen) >= 2
