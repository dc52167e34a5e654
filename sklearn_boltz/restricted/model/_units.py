"""Units of a model: hidden ones where a training begins, and parameters as attributes."""

from copy import copy
from numbers import Integral

import numpy as np

from sklearn_boltz.numerics._arrays import as_type
from sklearn_boltz.numerics._memory import SMALL, check_memory
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._gaussian import Gaussian
from sklearn_boltz.units._stacked import Stacked
from sklearn_boltz.units._truncated import TruncatedGaussBernoulli, TruncatedGaussian
from sklearn_boltz.units._unit import UnitType

UNIT_TYPES = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gaussian": Gaussian,
    "truncated_gaussian": TruncatedGaussian,
    "truncated_gauss_bernoulli": TruncatedGaussBernoulli,
}
# Of hidden units, by what the parameter `hidden` calls them.
HIDDEN_NAMES = sorted([*UNIT_TYPES, "relu"])
# A number that rectified linear units do not reach: 20 standard deviations of their noise.
RELU_END = 20.0


def initial_hidden(spec, n_units, dtype):
    """Initial units of a hidden layer: of a type, or a copy of the user's.

    Parameters
    ----------
    spec : str, type, (str, int) or UnitType
    n_units : int
    dtype : dtype

    Returns
    -------
    units : UnitType
    """
    if isinstance(spec, UnitType):
        if spec.n_units != n_units:
            raise ValueError(f"hidden has {spec.n_units} units, but there must be {n_units}.")
        return spec.astype(dtype)
    n_bytes = int(n_units) * np.dtype(dtype).itemsize
    if n_bytes > SMALL:
        check_memory(n_bytes, f"A layer of {n_units:,} hidden units", "Use fewer.")
    kind, *options = spec if isinstance(spec, tuple) else (spec,)
    if kind == "relu" and not options:
        units = TruncatedGaussian(np.zeros(n_units), np.ones(n_units), 0.0, RELU_END)
        return units.astype(dtype)
    kind = UNIT_TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if not (isinstance(kind, type) and issubclass(kind, UnitType)) or len(options) > 1:
        raise ValueError(f"hidden may not be {spec!r}. It may be one of {HIDDEN_NAMES}.")
    if kind is Categorical:
        if not options or not isinstance(options[0], Integral) or options[0] < 2:
            raise ValueError(
                f"hidden is {spec!r}, without a number of states of 2 or more. Write it as "
                "('categorical', 3)."
            )
        return kind.neutral(n_units, dtype, n_values=int(options[0]))
    if options:
        raise ValueError(f"hidden may not be {spec!r}: only categorical units have a number.")
    return kind.neutral(n_units, dtype)


def parameter_names(units):
    """Names of the parameters of units that may be of several types."""
    return list(dict.fromkeys(name for part, _ in units.parts() for name in part.parameters()))


def published(units):
    """Parameters by name, one value for each number; NaN where a unit has no such parameter."""
    parts = units.parts()
    if len(parts) == 1:
        return dict(units.parameters())
    found = {}
    for name in parameter_names(units):
        found[name] = np.full(len(units), np.nan, units._dtype)
        for part, columns in parts:
            if name in part.parameters():
                found[name][columns] = part.parameters()[name]
    return found


def with_published(units, values, dtype):
    """Units of the same kind with the parameters of `published`, copied where the type differs."""
    parts = []
    for part, columns in units.parts():
        part = copy(part)
        for name in part.parameters():
            setattr(part, name, as_type(values[name][columns], dtype))
        parts.append(part)
    return parts[0] if len(parts) == 1 else Stacked(parts)
