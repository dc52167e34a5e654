"""The state of estimators: what was fitted, what they answer, and interrupts at chosen calls."""

import itertools
import pickle
import sys
from inspect import signature

import numpy as np
import pytest
from contract.estimators import by_turns
from contract.frames import gaps
from sklearn import get_config, set_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_boltz import FVBMPseudoLikelihood


class CtrlC:
    """Raise a KeyboardInterrupt at the n-th call of a Python function, as a context.

    Or another error. `has_come` tells whether it came out of the block. What scikit-learn changes
    of its settings for the time of a fit is put back: it does not expect that its own lines fail.
    Nor are calls of NumPy's `_internal` counted, for which its C code raises a TypeError. In a
    `__del__`, whose errors Python ignores, it waits for the first call after that.
    """

    def __init__(self, n=None, error=KeyboardInterrupt):
        self.n, self.n_calls, self.error, self.has_come = n, 0, error, False

    def _profile(self, frame, event, argument):
        code = frame.f_code
        is_counted = code is not CtrlC.__exit__.__code__
        if event == "call" and is_counted and not code.co_filename.endswith("_internal.py"):
            self.n_calls += 1
            if self.n and self.n_calls >= self.n and not _is_final(frame):
                sys.setprofile(None)
                raise self.error

    def __enter__(self):
        self.config = get_config()
        sys.setprofile(self._profile)
        return self

    def __exit__(self, kind, *rest):
        sys.setprofile(None)
        set_config(**self.config)
        self.has_come = kind is self.error
        return self.has_come


def _is_final(frame):
    """Whether the call of a frame, or one that it is in, closes an object."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def n_calls(estimator, *args, method="fit"):
    with CtrlC() as count:
        getattr(estimator, method)(*args)
    return count.n_calls


def interrupted(make, n, args, method="fit", error=KeyboardInterrupt):
    """-> a model before and after a call of a method that ends at the n-th call of a function.

    Python ignores what is raised where C calls it (looking for the libraries of BLAS) and where it
    closes a generator that no one needs any more: then the method ends at an earlier call.
    """
    for place in range(n, 0, -17):
        model = make()
        before = state(model)
        with CtrlC(place, error) as interrupt:
            getattr(model, method)(*args)
        if interrupt.has_come:
            return model, before
    pytest.fail("the interrupt did not come out")


def state(estimator):
    return pickle.dumps(vars(estimator))


def fitted_values(estimator):
    """The fitted numbers and arrays, except for the times."""
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
    one, other = fitted_values(one), fitted_values(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def arrays_of(machine):
    """All weights and biases."""
    named = machine.components_, machine.intercept_hidden_, machine.intercept_visible_
    return [a for part in named for a in (part if isinstance(part, list) else [part])]


def parameters(machine):
    """The same in one array."""
    return np.concatenate([np.ravel(a) for a in arrays_of(machine)])


def assert_goes_on(estimator, X):
    """With pickles between its parts, a fit of four epochs or units is as if in one go."""
    grows = "max_components" in estimator.get_params()
    parts, whole = clone(estimator).set_params(warm_start=True), clone(estimator)
    for before, n in itertools.pairwise((0, 0, 1, 2, 4)):
        size = {"max_components": max(n, 1)} if grows else {"max_iter": n - before}
        parts = pickle.loads(pickle.dumps(parts)).set_params(**size).fit(X)
    assert_same(whole.set_params(**{name: 4 for name in size}).fit(X), parts)


# What is no method of a fitted model; of the other methods, the arguments that must be given.
NO_ANSWERS = {
    "fit", "fit_predict", "fit_transform", "for_features", "from_couplings", "from_parameters",
    "get_metadata_routing", "get_params", "move_to", "partial_fit", "set_callbacks",
    "set_output", "set_params",
}  # fmt: skip
ARGUMENTS = {"basis": [[0]], "column": 0, "features": [0], "other": FVBMPseudoLikelihood()}


def methods_of(estimator):
    """The public methods of a fitted model, with arguments for those that need some."""
    X = gaps(seed=2)
    y = by_turns(X)
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
    X = np.nan_to_num(gaps(seed=2))
    X[0, 0] = np.nan
    seed = {"random_state": 0}
    calls = {
        "score_samples": {"X": X}, "decision_function": {"X": X}, "predict_proba": {"X": X},
        "impute": {"X": X, "how": "mode", **seed}, "sample": {"n_samples": 3, **seed},
    }  # fmt: skip
    if not hasattr(estimator, "score_samples"):  # BoltzmannImputer
        calls = {"transform": {"X": X}}
    found = [
        getattr(estimator, name)(**arguments)
        for name, arguments in calls.items()
        if hasattr(estimator, name)
    ]
    parts = [part for its in found for part in (its if isinstance(its, tuple) else (its,))]
    assert all(np.isfinite(part).all() for part in parts) and found
    return pickle.dumps(found)
