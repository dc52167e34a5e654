"""What every estimator shares: domain checks, score, feature names, tags."""

import os
import warnings
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from numbers import Integral
from threading import Lock

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from sklearn_boltz._callbacks import CallbackSupportMixin

VERSION = version("sklearn_boltz")


def dense(X):
    """Rows as an ndarray, which is new where they are sparse."""
    return X.toarray() if issparse(X) else X


class BaseBoltzmann(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """A density model of discrete data that is also a transformer.

    A child defines `fit`, `transform` and `score_samples`, and sets `_n_features_out`.
    """

    # Where the HTML representation links to.
    _doc_link_module = "sklearn_boltz"
    _doc_link_template = (
        "https://sklearn-boltz.readthedocs.io/en/stable/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    def _doc_link_url_param_generator(self):
        return {"estimator_module": "sklearn_boltz", "estimator_name": type(self).__name__}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # scikit-learn does this for its own estimators only.

    def __getstate__(self):
        return {**super().__getstate__(), "_sklearn_boltz_version": VERSION}

    def __setstate__(self, state):
        state = dict(state)
        written_by = state.pop("_sklearn_boltz_version", "before 0.1")
        if written_by != VERSION:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=f"{type(self).__name__} of sklearn_boltz",
                    current_sklearn_version=VERSION,
                    original_sklearn_version=written_by,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)

    def score(self, X, y=None):
        """Return the mean log-probability of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : Ignored
            Present for API consistency.

        Returns
        -------
        score : float
            Mean of `score_samples`, in nats; `GridSearchCV` maximises it.
        """
        return float(np.mean(self.score_samples(X)))

    def _column(self, j):
        """How error messages name column j."""
        names = getattr(self, "feature_names_in_", None)
        return f"column {j}" if names is None else f"column {names[j]!r}"

    def _input_names(self, input_features=None):
        """Names of the columns: as given, or as seen in `fit`, or x0, x1, ..."""
        seen = getattr(self, "feature_names_in_", None)
        if input_features is None:
            default = [f"x{i}" for i in range(self.n_features_in_)]
            return default if seen is None else list(seen)
        if seen is not None and not np.array_equal(seen, input_features):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(input_features) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(input_features)}"
            )
        return list(input_features)

    def _variables(self, features):
        """Numbers of the columns in a user's number, name or sequence of them."""
        single = isinstance(features, (str, Integral))
        variables = [self._variable(f) for f in ([features] if single else features)]
        if not variables or len(set(variables)) < len(variables):
            raise ValueError(f"features must name at least one variable, each once: {features!r}.")
        return variables

    def _variable(self, feature):
        """Number of a column given by its number or its name."""
        if isinstance(feature, str):
            names = self._input_names()
            if feature not in names:
                raise ValueError(f"There is no variable {feature!r}; there are {names}.")
            return names.index(feature)
        if not -self.n_features_in_ <= feature < self.n_features_in_:
            raise ValueError(f"There is no variable {feature} among {self.n_features_in_}.")
        return int(feature) % self.n_features_in_

    def _binarized(self, X):
        """1 where X is greater than the threshold `binarize`, 0 elsewhere; NaN stays NaN."""
        if self.binarize is None:
            return X
        # A threshold beyond what the type of X can hold is an infinity, as right as itself.
        with np.errstate(over="ignore"):
            return np.where(np.isnan(X), X, X > self.binarize).astype(X.dtype)

    def _check_domain(self, X, legal, domain, remedy):
        """Raise a ValueError that names the first entry where `legal` is False.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        legal : ndarray of bool of shape (n_samples, n_features)
        domain : callable
            From a column number, what the values of the column may be.
        remedy : str
            What the user can do.
        """
        if legal.all():
            return
        i, j = np.unravel_index(np.argmin(legal), legal.shape)
        raise ValueError(
            f"{type(self).__name__} wants {domain(j)} in {self._column(j)}, "
            f"but row {i} has the value {X[i, j]!s}. {remedy}"
        )


def make_generator(random_state):
    """Return a `numpy.random.Generator` from any kind of `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


@contextmanager
def unchanged_on_error(estimator):
    """Give an estimator back its state if a fit ends by an error or by Ctrl-C.

    Yields
    ------
    keep : callable
        To be called with the attributes as they are at the end of an epoch, arrays that no one
        changes: Ctrl-C then goes back to these, so that no hours of work are lost.
    """
    before = on_interrupt = vars(estimator).copy()

    def keep(attributes):
        nonlocal on_interrupt
        on_interrupt = attributes

    def give_back(attributes):
        vars(estimator).clear()
        vars(estimator).update(attributes)

    try:
        yield keep
    except KeyboardInterrupt:
        give_back(on_interrupt)
        raise
    except BaseException:
        give_back(before)
        raise


@cache
def _thread_pools():
    # Made once: looking for the libraries takes longer than a small fit.
    return ThreadpoolController()


class _Limits:
    """How many limits of BLAS are in force, over all threads, and the first of them."""

    lock, number, first = Lock(), 0, None


@contextmanager
def limit_blas(n_threads):
    """Limit the threads of BLAS, as a context.

    Its threads spin after each call. On small matrices that costs more than it gives, and
    beside threads of our own it is ruinous.

    The limit is one of the whole process. Where contexts overlap, in several threads, the first
    sets it, and the last lifts it: each by itself would bring back what another had set.
    """
    with _Limits.lock:
        if _Limits.number == 0:
            _Limits.first = _thread_pools().limit(limits=n_threads, user_api="blas")
        _Limits.number += 1
    try:
        yield
    finally:
        with _Limits.lock:
            _Limits.number -= 1
            if _Limits.number == 0:
                _disown_blas()
                _Limits.first.restore_original_limits()
                _disown_blas()


def _disown_blas():
    """Let any thread set limits: threadpoolctl 3.8 heeds none but the one that began."""
    for library in _thread_pools().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def available_memory():
    """Bytes of memory that can be had now, or None where the system does not tell."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None
