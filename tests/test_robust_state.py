"""Ctrl-C, kill -9, old pickles, threads: what happens to a fit from outside."""

import os
import pickle
import subprocess
import sys
import threading
import warnings
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from test_common import DEFAULTS, ESTIMATORS, by_turns

import sklearn_boltz
from private import limit_blas
from sklearn_boltz import (
    SDCPRBM,
    TAPRBM,
    BoltzmannClassifier,
    BoltzmannImputer,
    BoltzmannMixture,
    BoltzmannOutlierDetector,
    FSLLDensity,
    FVBMPseudoLikelihood,
    InfiniteRBM,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def name_of(estimator):
    return type(estimator).__name__


def data(seed=0, n_rows=60, n_features=5):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n_rows, n_features))
    X[:, 1] = X[:, 0] ^ (rng.random(n_rows) < 0.1)
    X[:, 4] = X[:, 2] ^ X[:, 3] ^ (rng.random(n_rows) < 0.1)
    return X


def fixed(estimator, **parameters):
    """A clone whose fits can be compared: quiet, of a fixed seed, and short."""
    estimator = clone(estimator).set_params(**parameters)
    known = estimator.get_params()
    for name, value in [("random_state", 0), ("n_model_samples", 64), ("early_stopping", False)]:
        if name in known and name not in parameters:
            estimator.set_params(**{name: value})
    return estimator


def arrays(estimator):
    """The fitted numbers and arrays, but for the times."""
    values = {}

    def add(name, value):
        if isinstance(value, dict):
            for key, part in value.items():
                add(f"{name}{key}", part)
        elif isinstance(value, list):  # of the layers of a deep machine
            for k, part in enumerate(value):
                add(f"{name}{k}_", part)
        elif not name.endswith("_seconds"):
            values[name] = value

    for name, value in vars(estimator).items():
        if name.endswith("_"):
            add(name, value)
    return values


def assert_same(one, other):
    one, other = arrays(one), arrays(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def assert_usable(model, X):
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.sample(3, random_state=0)).all()


# Ctrl-C.


class CtrlC:
    """Raise a KeyboardInterrupt at the n-th call of a Python function, as a context.

    Or another error. `has_come` tells whether it came out of the block.
    """

    def __init__(self, n=None, error=KeyboardInterrupt):
        self.n, self.n_calls, self.error, self.has_come = n, 0, error, False

    def _profile(self, frame, event, argument):
        if event == "call" and frame.f_code is not CtrlC.__exit__.__code__:
            self.n_calls += 1
            if self.n_calls == self.n:
                sys.setprofile(None)
                raise self.error

    def __enter__(self):
        sys.setprofile(self._profile)
        return self

    def __exit__(self, kind, *rest):
        sys.setprofile(None)
        self.has_come = kind is self.error
        return self.has_come


def n_calls(estimator, *args, method="fit"):
    with CtrlC() as count:
        getattr(estimator, method)(*args)
    return count.n_calls


@pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
@settings(max_examples=cases(8))
@given(where=st.floats(0, 1), again=st.booleans())
def test_interrupt_at_any_call(estimator, where, again):
    """Wherever it comes, the estimator is as before, or usable; and can be fitted."""
    X, model = data(), fixed(estimator)
    whole = clone(model)
    total = n_calls(whole, X)
    if again:
        model.fit(data(1))
    before = pickle.dumps(arrays(model))
    with CtrlC(1 + int(where * (total - 1))):
        model.fit(X)
    if pickle.dumps(arrays(model)) != before:
        assert_usable(model, X)
    if "warm_start" in model.get_params():
        assert_usable(clone(model).fit(X), X)
        model.set_params(warm_start=True)
    assert_usable(model.fit(X), X)
    if "warm_start" not in model.get_params():
        assert_same(model, whole)


EPOCHS = [e for e in DEFAULTS if {"warm_start", "learning_rate"} <= e.get_params().keys()]


@pytest.mark.parametrize("estimator", EPOCHS, ids=name_of)
@settings(max_examples=cases(8))
@given(where=st.floats(0, 1))
def test_an_interrupted_fit_has_its_complete_epochs_and_goes_on(estimator, where):
    """The bits of the fit that was shorter; and of the whole one, once it went on."""
    length = "max_iter" if "max_iter" in estimator.get_params() else "max_components"
    X, model = data(), fixed(estimator, **{length: 4})
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
        assert not arrays(model)
    if done < 4:
        more = 4 - done if length == "max_iter" else 4
        model.set_params(warm_start=True, **{length: more}).fit(X)
    assert_same(model, whole)


@settings(max_examples=cases(8))
@given(where=st.floats(0, 1))
def test_an_interrupted_tempered_fit_has_its_best_complete_epoch(where):
    """The bits of the fit that was shorter, also where the rate is so large that it gets worse."""
    X = data()
    model = SDCPRBM(4, max_iter=5, sampler="tempered", learning_rate=1.0, random_state=0)
    total = n_calls(clone(model), X)
    with CtrlC(1 + int(where * (total - 1))):
        model.fit(X)
    done = getattr(model, "n_iter_", 0)
    if not done:
        assert not arrays(model)
    else:
        assert_same(model, clone(model).set_params(max_iter=done).fit(X))


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "bslm", "ga"])
def test_an_interrupted_pairwise_fit_has_its_last_iteration(solver, monkeypatch):
    X = data()[:, :4]
    whole = FVBMPseudoLikelihood(solver=solver, alpha=0.01).fit(X)
    model = FVBMPseudoLikelihood(solver=solver, alpha=0.01, warm_start=True)
    total = n_calls(clone(model), X)
    seen = set()
    for n in range(total // 3, total, max(1, total // 40)):
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
        assert_usable(model, X)
        from_there = clone(model).fit(
            X, coupling_init=model.coupling_, intercept_init=model.intercept_
        )
        model.fit(X)
        np.testing.assert_array_equal(model.coupling_, from_there.coupling_)
        assert model.history_["log_pseudo_likelihood"][0] >= at_the_end - 1e-12
        assert model.score(X) == pytest.approx(whole.score(X), abs=1e-3)
    assert len(seen) >= 2


# Interrupts and errors in all estimators, at fixed places.

META = [
    BoltzmannClassifier(joint=False, calibration=True),
    BoltzmannMixture([("terms", FSLLDensity()), ("pairs", FVBMPseudoLikelihood(alpha=0.1))]),
    BoltzmannOutlierDetector(contamination=0.1),
    BoltzmannImputer(),
]
ALL = [*DEFAULTS, *META]
# Interrupts of each estimator: so many at equal distances, and at the last calls, where attributes
# are set. Every other one is in a first fit.
N_ANYWHERE, N_LAST = 34, 12
N_INTERRUPTS = 500
# What is no method of a fitted model; of the other methods, the arguments that must be given.
NO_ANSWERS = {
    "fit", "fit_predict", "fit_transform", "get_metadata_routing", "get_params", "move_to",
    "partial_fit", "refine", "set_callbacks", "set_output", "set_params",
}  # fmt: skip
ARGUMENTS = {"basis": [[0]], "column": 0, "features": [0], "other": FVBMPseudoLikelihood()}


def table(seed=0):
    """Bits of which some are missing, and labels."""
    X = data(seed, 40).astype(float)
    X[np.random.default_rng(seed).random(X.shape) < 0.03] = np.nan
    return X, by_turns(X)


def state(estimator):
    return pickle.dumps(vars(estimator))


def methods_of(estimator):
    """The public methods of a fitted model, with arguments for those that need some."""
    X, y = table(2)
    for name in dir(estimator):
        if name.startswith("_") or name in NO_ANSWERS or name in estimator.get_params():
            continue
        if name.endswith("_request") or isinstance(getattr(type(estimator), name, None), property):
            continue
        method = getattr(estimator, name)
        if callable(method):
            needed = [
                ARGUMENTS.get(key, y if key == "y" else X)
                for key, parameter in signature(method).parameters.items()
                if parameter.default is parameter.empty and parameter.kind < 2
            ]
            yield name, method, needed


def assert_not_fitted(estimator):
    for name, method, arguments in methods_of(estimator):
        with pytest.raises(NotFittedError):
            method(*arguments)
            pytest.fail(f"{name} gave an answer")


def answers(estimator):
    """What a model says of rows, of which one has a missing cell."""
    X = np.nan_to_num(table(2)[0])
    X[0, 0] = np.nan
    names = ["score_samples", "decision_function", "predict_proba", "impute"]
    if not hasattr(estimator, "score_samples"):  # BoltzmannImputer
        names = ["transform"]
    options = {"impute": {"random_state": 0, "how": "mode"}}
    found = [
        getattr(estimator, name)(X, **options.get(name, {}))
        for name in names
        if hasattr(estimator, name)
    ]
    assert all(np.isfinite(values).all() for values in found) and found
    return pickle.dumps(found)


def places(n_calls):
    """Numbers of calls at which fits end."""
    anywhere = [1 + int((k + 0.5) / N_ANYWHERE * (n_calls - 1)) for k in range(N_ANYWHERE)]
    return [*anywhere, *range(n_calls - N_LAST, n_calls)]


def test_all_estimators_are_interrupted_often_enough():
    public = {
        name
        for name, value in vars(sklearn_boltz).items()
        if isinstance(value, type) and issubclass(value, BaseEstimator)
    }
    assert {name_of(estimator) for estimator in ALL} == public and len(ALL) == 11
    assert N_ANYWHERE + N_LAST >= 40 and len(ALL) * (N_ANYWHERE + N_LAST) >= N_INTERRUPTS


def interrupted(make, n, method="fit", error=KeyboardInterrupt):
    """-> a model before and after a call of a method that ends at the n-th call of a function.

    Python ignores what is raised where C calls it (looking for the libraries of BLAS) and where it
    closes a generator that no one needs any more: then the method ends at an earlier call.
    """
    for place in range(n, 0, -99):
        model = make()
        before = state(model)
        with CtrlC(place, error) as interrupt:
            getattr(model, method)(*table())
        if interrupt.has_come:
            return model, before
    pytest.fail("the interrupt did not come out")


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_interrupts_lose_nothing(estimator):
    """After each, the model is the old one, the new one, or that of its complete epochs."""
    first = fixed(estimator)
    fitted, new = clone(first).fit(*table(1)), clone(first).fit(*table())
    written, expected, n_old = pickle.dumps(fitted), answers(new), 0
    for make in (lambda: clone(first), lambda: pickle.loads(written)):
        was_fitted = hasattr(make(), "n_features_in_")
        n_calls(make(), *table())  # fills caches
        for k, n in enumerate(places(n_calls(make(), *table()))[was_fitted::2]):
            model, before = interrupted(make, n)
            if state(model) == before:
                n_old += 1
                assert was_fitted or not assert_not_fitted(model)
            else:
                found = answers(model)
                assert found == expected or name_of(model) not in map(name_of, META)
            if k % 4 == 0:
                assert answers(model.fit(*table())) == expected
    assert n_old >= 10


STREAMED = [estimator for estimator in ALL if hasattr(estimator, "partial_fit")]


@pytest.mark.parametrize("estimator", STREAMED, ids=name_of)
def test_interrupts_of_partial_fit_lose_nothing(estimator):
    """After each, the model is that without the rows, or that with all of them."""
    first = fixed(estimator)
    written = pickle.dumps(clone(first).partial_fit(*table(1)))
    for make in (lambda: clone(first), lambda: pickle.loads(written)):
        total = n_calls(make(), *table(), method="partial_fit")
        expected = answers(make().partial_fit(*table()))
        for n in places(total)[::3]:
            model, before = interrupted(make, n, "partial_fit")
            assert state(model) == before or answers(model) == expected


@pytest.mark.parametrize("estimator", EPOCHS, ids=name_of)
def test_interrupts_of_a_continued_fit_lose_nothing(estimator):
    """Within its first epoch, the model is the old one."""
    fitted = fixed(estimator).fit(*table()).set_params(warm_start=True)
    written, n_iter, n_old = pickle.dumps(fitted), fitted.n_iter_, 0
    for n in places(n_calls(fitted, *table()))[:N_ANYWHERE:2]:
        model, _ = interrupted(lambda: pickle.loads(written), n)
        if model.n_iter_ == n_iter:
            n_old += 1
            assert_same(model, pickle.loads(written))
        else:
            answers(model)
    assert n_old >= 2


class Failure(BaseException):
    """What no code expects."""


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_errors_anywhere_leave_the_model_as_it_was(estimator):
    first = fixed(estimator)
    written = pickle.dumps(clone(first).fit(*table(1)))
    for make in (lambda: clone(first), lambda: pickle.loads(written)):
        # The last calls may come after the fit.
        for n in places(n_calls(make(), *table()))[:N_ANYWHERE:4]:
            model, before = interrupted(make, n, error=Failure)
            assert state(model) == before


def refused():
    """Arguments of `fit` that are refused, some before and some after columns are counted."""
    X, y = table()
    infinite, rows = np.hstack([X, X]), len(X)
    infinite[3, 1] = np.inf
    yield "no columns", (X[:, :0], y)
    yield "an infinite number", (infinite, y)
    yield "dates", (np.full((rows, 2), np.datetime64("2020-01-01"), dtype=object), y)
    yield "negative weights", (np.hstack([X, X]), y, np.full(rows, -1.0))
    yield "weights of other rows", (np.hstack([X, X]), y, np.ones(rows + 1))


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_a_refused_fit_leaves_the_model_as_it_was(estimator):
    for model in (fixed(estimator), fixed(estimator).fit(*table(1))):
        before = state(model)
        for what, arguments in refused():
            with pytest.raises((ValueError, TypeError)):
                model.fit(*arguments)
                pytest.fail(what)
            assert state(model) == before, what
        if "n_features_in_" not in vars(model):
            assert_not_fitted(model)


# kill -9.

BATCHES = 12
SCRIPT = """
import os, pickle, sys
import numpy as np

folder = sys.argv[1]
with open(f"{folder}/state", "rb") as file:
    done, models, batches = pickle.load(file)
for X in batches[done:]:
    for model in models:
        model.partial_fit(X)
    done += 1
    with open(f"{folder}/new", "wb") as file:
        pickle.dump((done, models, batches), file)
    # Either the old file or the new one is there, and never half of one.
    os.replace(f"{folder}/new", f"{folder}/state")
    print(done, flush=True)
    if done == int(sys.argv[2]):
        sys.stdin.read()  # for what comes
"""


def test_kill_between_batches_loses_at_most_one(tmp_path):
    models = [fixed(e) for e in [*DEFAULTS, FSLLDensity(dtype="float32")]
              if hasattr(e, "partial_fit")]  # fmt: skip
    batches = [data(seed, 30) for seed in range(BATCHES)]
    state = tmp_path / "state"
    state.write_bytes(pickle.dumps((0, [clone(model) for model in models], batches)))
    told = 0
    # Where the other process finds test_common.py.
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    # Killed while it waits, and then anywhere.
    for stop in (4, 0):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path), str(stop)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(sklearn_boltz.__file__).parents[1], env=environment,
        )  # fmt: skip
        for line in process.stdout:
            told = int(line)
            if told in (4, 7):
                break
        process.kill()
        process.communicate()
        done, resumed, batches = pickle.loads(state.read_bytes())
        assert done >= told  # what was told is on the disk
    assert done >= 7
    for X in batches[done:]:
        for model in resumed:
            model.partial_fit(X)
    for X in batches:
        for model in models:
            model.partial_fit(X)
    for model, other in zip(models, resumed, strict=True):
        assert_same(model, other)


# Pickles.


@pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
def test_pickles_of_other_versions_warn(estimator, monkeypatch):
    X = data()
    model = fixed(estimator).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(model, pickle.loads(pickle.dumps(model)))
    with monkeypatch.context() as other_version:
        other_version.setattr("sklearn_boltz._base.VERSION", "0.0.1")
        old = pickle.dumps(model)
    expected = f"{name_of(model)} of sklearn_boltz from version 0.0.1 when using version "
    with pytest.warns(InconsistentVersionWarning, match=expected + sklearn_boltz.__version__):
        assert_same(model, pickle.loads(old))
    nameless = {k: v for k, v in model.__getstate__().items() if k != "_sklearn_boltz_version"}
    with pytest.warns(InconsistentVersionWarning):
        clone(model).__setstate__(nameless)
    assert "_sklearn_boltz_version" not in vars(pickle.loads(pickle.dumps(model)))


# Threads.

THREADED = [
    *DEFAULTS,
    *[e for e in ESTIMATORS if "solver" in e.get_params()],
    FSLLDensity(dtype="float32", n_jobs=2),
    FVBMPseudoLikelihood(solver="lbfgs"),
    TAPRBM(4, visible="truncated_gaussian", hidden="truncated_gauss_bernoulli", max_iter=3),
    TAPRBM(4, inference="adatap", persistent=True, max_iter=3),
    InfiniteRBM(3, mode="corrective", away_steps=True),
]


def work(estimator, seed):
    """Fit, and use what was fitted; -> all that came out."""
    X = data(seed, 300)
    model = fixed(estimator, **({"n_jobs": 2} if "n_jobs" in estimator.get_params() else {}))
    model.fit(X)
    found = [*arrays(model).values(), model.score_samples(X), model.transform(X)]
    missing = np.where(np.random.default_rng(seed).random(X.shape) < 0.3, np.nan, X)
    found += [model.sample(50, random_state=seed), model.impute(missing[:20], random_state=0)]
    if "n_temperatures" in signature(getattr(model, "log_partition", fixed)).parameters:
        found.append(model.log_partition("ais", n_temperatures=50, random_state=0).value)
    return found


@pytest.mark.parametrize("estimator", THREADED, ids=name_of)
@pytest.mark.filterwarnings("ignore:The AIS estimate")
def test_threads_give_the_bits_of_a_sequence(estimator):
    seeds = range(3)
    in_sequence = [work(estimator, seed) for seed in seeds]
    found, together = {}, threading.Barrier(len(seeds))

    def run(seed):
        together.wait()
        found[seed] = work(estimator, seed)

    threads = [threading.Thread(target=run, args=[seed]) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        for one, other in zip(in_sequence[seed], found[seed], strict=True):
            np.testing.assert_array_equal(one, other)


def test_overlapping_limits_of_blas_are_lifted():
    from threadpoolctl import threadpool_info

    def n_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, entered, leave = n_threads(), threading.Event(), threading.Event()

    def other():
        with limit_blas(1):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with limit_blas(1):
        thread.start()
        entered.wait()
    assert set(n_threads()) <= {1}
    leave.set()
    thread.join()
    assert n_threads() == before
