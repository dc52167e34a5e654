"""Checks of arguments, names in errors, and fits that succeed or change nothing."""

import math
from contextlib import contextmanager
from functools import wraps
from hashlib import sha1
from inspect import signature
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from sklearn_boltz.callbacks import context_of_fit
from sklearn_boltz.numerics._arrays import as_numpy
from sklearn_boltz.numerics._memory import check_memory

# Constraints of the arguments of `sample`, `log_partition` and `impute` in all models.
SAMPLE_CONSTRAINTS = {
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state", np.random.Generator],
    "given": [dict, None],
    "where": [callable, None],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "n_steps": [Interval(Integral, 1, None, closed="left")],
    "n_temperatures": [Interval(Integral, 1, None, closed="left"), None],
}
LOG_PARTITION_CONSTRAINTS = {
    "method": [StrOptions({"auto", "exact"})],
    "n_chains": [Interval(Integral, 1, None, closed="left"), None],
    "n_temperatures": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "tol": [Interval(Real, 0, None, closed="neither"), None],
    "max_rounds": [Interval(Integral, 1, None, closed="left"), None],
    "random_state": ["random_state", np.random.Generator],
}
IMPUTE_CONSTRAINTS = {
    "X": ["array-like"],
    "how": [StrOptions({"mean", "mode", "sample"})],
    "n_steps": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state", np.random.Generator],
}


def dense(X):
    """Rows as an ndarray, which is new where they are sparse or rows of codes."""
    if not issparse(X):
        return X.toarray() if hasattr(X, "toarray") else X
    check_memory(
        math.prod(X.shape) * X.dtype.itemsize,
        f"A dense copy of the sparse table of {X.shape[0]:,} rows and {X.shape[1]:,} columns",
        "Use fewer rows or columns.",
    )
    return X.toarray()


@contextmanager
def named(estimator):
    """Context that puts the name of an estimator in front of errors about a table."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{type(estimator).__name__}: {error}") from error.__cause__


def fingerprint(arrays):
    """A digest of the content of arrays: another one if a single bit differs."""
    digest = sha1(usedforsecurity=False)
    for array in arrays:
        array = as_numpy(array)
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        digest.update(f"{array.dtype.str} {array.shape} {by_columns};".encode())
        digest.update(np.ascontiguousarray(array.T if by_columns else array).data)
    return digest.hexdigest()


def validate_arguments(constraints):
    """Check the arguments of a method, as scikit-learn does; errors name the public class."""

    def decorate(method):
        parameters = signature(method)

        @wraps(method)
        def checked(self, *args, **kwargs):
            if not get_config()["skip_parameter_validation"]:
                given = parameters.bind(self, *args, **kwargs)
                given.apply_defaults()
                values = {k: v for k, v in given.arguments.items() if k in constraints}
                caller = f"{type(self).__name__}.{method.__name__}"
                validate_parameter_constraints(constraints, values, caller_name=caller)
            return method(self, *args, **kwargs)

        return checked

    return decorate


@contextmanager
def unchanged_on_error(estimator):
    """Give an estimator back its state if a fit ends by an error or by Ctrl-C.

    However the fit ends, and whenever Ctrl-C comes, no attribute is of another fit than the others.
    """
    before = vars(estimator).copy()
    try:
        yield
    except GeneratorExit:  # Ctrl-C came when the fit had ended, and Python closes this later
        raise
    except BaseException as error:
        own = estimator._own_error(error)
        estimator.__dict__ = before | context_of_fit(estimator)
        if own is error:
            raise
        raise own from error.__cause__ or error
