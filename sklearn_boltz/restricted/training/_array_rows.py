"""Rows on a device: an array of PyTorch, CuPy or another library that stays where it lies."""

from copy import copy as shallow_copy

import numpy as np
from sklearn.utils.validation import validate_data

from sklearn_boltz.numerics._arrays import (
    as_numpy,
    as_type,
    is_foreign,
    like,
    namespace_of,
    numpy_dtype,
    place_of,
    widened,
    widest,
    without_gradient,
)
from sklearn_boltz.restricted.mean_field._inference import settings_of
from sklearn_boltz.restricted.model._cells import numbers_of
from sklearn_boltz.restricted.model._columns import specs_of
from sklearn_boltz.restricted.model._layout import ColumnLayout
from sklearn_boltz.tables._encoder import Encoder
from sklearn_boltz.units._bernoulli import Bernoulli

ELSEWHERE = (
    "{} was fitted on {}, and these rows lie on {}. Move the one or the other: `move_to` returns "
    "the estimator with its arrays elsewhere."
)


class DeviceRows:
    """Rows of an array that stays where it lies, with what a training asks of an ndarray.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Without missing cells.
    weights : ndarray of float64 of shape (n_rows,), default=None
        How often each row counts; None for once.

    Attributes
    ----------
    array : array of shape (n_rows, n_features)
    shape : tuple of (int, int)
    dtype : dtype
        As NumPy has it.
    observed_sums : tuple of (ndarray of float64 of shape (n_features,), int or float)
        Sums of the columns, and how many values these are.
    """

    def __init__(self, X, weights=None):
        self.array, self.shape, self.dtype = X, tuple(X.shape), numpy_dtype(X)
        xp = namespace_of(X)
        if weights is None:
            total, count = xp.sum(X, axis=0, dtype=widest(X)), self.shape[0]
        else:
            rows = widened(X)
            total = like(X, weights.astype(numpy_dtype(rows))) @ rows
            count = float(weights.sum())
        self.observed_sums = as_numpy(total).astype(np.float64), count

    def __len__(self):
        return self.shape[0]

    def astype(self, dtype, copy=False):
        """Convert the rows to another type."""
        other = shallow_copy(self)
        other.array, other.dtype = as_type(self.array, dtype), np.dtype(dtype)
        return other

    @property
    def widest(self):
        """The widest type of float where the rows lie, as NumPy has it."""
        return numpy_dtype(widened(self.array[:0, ...]))

    def places(self, numbers):
        """Numbers of rows, where the rows lie."""
        return like(self.array, numbers)

    def __getitem__(self, numbers):
        """The rows of some numbers: an array of the same library."""
        numbers = numbers if is_foreign(numbers) else self.places(np.asarray(numbers))
        return namespace_of(self.array).take(self.array, numbers, axis=0)


def check_device_settings(estimator):
    """Reject parameters that work only with NumPy arrays."""
    name, specs, params = type(estimator).__name__, specs_of(estimator), estimator.get_params(False)
    binary = isinstance(specs, list) and all(spec in ("auto", Bernoulli) for spec in specs)
    if not binary or params.get("hidden", Bernoulli) not in ("bernoulli", Bernoulli):
        raise ValueError(
            f"{name}: on a device, only Bernoulli units are supported. For other units, pass "
            "NumPy arrays."
        )
    if params.get("tempered", "auto") not in ("auto", 0) or callable(params.get("chains")):
        raise ValueError(
            f"{name}: `tempered`, and a sampler as `chains`, are there for NumPy arrays only. "
            "On a device, use tempered=0 and chains='auto'."
        )
    inference = params.get("inference")
    if settings_of(inference).adaptive:
        raise ValueError(
            f"{name}: inference={inference!r} works only with NumPy arrays. Use "
            "inference='tap' on a device."
        )


def checked_on_device(estimator, X, reset, allow_nan, clip):
    """Check an array of a library other than NumPy; it stays on its device."""
    estimator._check_library(X)
    xp, name = namespace_of(X), type(estimator).__name__
    X = validate_data(
        estimator, without_gradient(X), reset=reset, dtype=[xp.float32, xp.float64],
        ensure_all_finite="allow-nan" if allow_nan else True,
    )  # fmt: skip
    if not reset and (here := place_of(X)) != (there := place_of(estimator.components_)):
        raise ValueError(ELSEWHERE.format(name, there, here))
    if reset:
        check_device_settings(estimator)
        layout = ColumnLayout.of_numbers(X.shape[1])
        layout.hold_bits = as_numpy(xp.all((X == 0) | (X == 1), axis=0))
        table = Encoder.of_numbers(np.empty((0, X.shape[1]), numpy_dtype(X)))
        estimator._encoder = table.of_model(layout)
    low, high = estimator._encoder.coding.bounds
    if xp.any((X < low) | (X > high)):
        # An error that names the value, or values that are clipped.
        X = like(X, numbers_of(name, estimator._encoder, as_numpy(X), clip))
    return X
