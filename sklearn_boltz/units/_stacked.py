"""Units of several types in one layer."""

from copy import deepcopy
from functools import cached_property

import numpy as np

from sklearn_boltz.numerics._arrays import concatenated, for_kernels, is_foreign
from sklearn_boltz.units._bernoulli import Bernoulli
from sklearn_boltz.units._categorical import Categorical
from sklearn_boltz.units._unit import UnitType


class Stacked(UnitType):
    """
    Units of several types in one layer, such as the columns of a mixed table.

    All methods are those of :class:`~sklearn_boltz.units.UnitType`. Each part uses its own columns.

    Parameters
    ----------
    layers : list of UnitType
        The units, in the order of their columns. The number of columns is the sum over `layers`.

    Raises
    ------
    ValueError
        If `layers` is empty.
    TypeError
        If `layers` is not a list of objects of unit types.

    See Also
    --------
    UnitType : What the weight w and the field are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import Bernoulli, Categorical, Gaussian, Stacked
    >>> units = Stacked([Bernoulli(np.zeros(1)), Categorical([3]), Gaussian.neutral(1)])
    >>> units.mean(np.zeros(5)).round(2)
    array([0.5 , 0.33, 0.33, 0.33, 0.  ])
    >>> units.widths
    array([1, 3, 1])
    """

    __module__ = "sklearn_boltz.units"  # the public module

    def __init__(self, layers):
        self.layers = _checked(layers)
        ends = np.cumsum([0, *map(len, self.layers)]).tolist()
        columns = (slice(*pair) for pair in zip(ends[:-1], ends[1:], strict=True))
        self._parts = list(zip(self.layers, columns, strict=True))

    def __deepcopy__(self, memo):
        return Stacked(deepcopy(self.layers, memo))  # all else never changes

    def __len__(self):
        return self._parts[-1][1].stop

    @property
    def _dtype(self):
        return self.layers[0]._dtype

    # Values and bounds. What layers do not change while they learn is asked of them once.

    @cached_property
    def widths(self):
        """Number of columns of each unit: an array of int of shape (n_units,)."""
        return np.concatenate([units.widths for units in self.layers])

    @cached_property
    def _columns(self):
        ends = np.cumsum(self.widths).tolist()
        return list(map(slice, [0, *ends[:-1]], ends))

    def columns_of(self, unit):
        return self._columns[unit]

    @cached_property
    def _places(self):
        """The layer of each unit, and its number there."""
        return [(units, k) for units in self.layers for k in range(units.n_units)]

    @cached_property
    def _kernel_layers(self):
        found = [units._kernel_layers for units in self.layers]
        if any(each is None for each in found):
            return None
        return tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))

    @property
    def one_hot(self):
        """Which units are one-hot: an array of bool of shape (n_units,)."""
        return np.concatenate([units.one_hot for units in self.layers])

    @property
    def state_counts(self):
        """Number of values of each unit: an array of float of shape (n_units,), or infinite."""
        return np.concatenate([units.state_counts for units in self.layers])

    @property
    def tail_precision(self):
        """V of the unbounded columns, infinite for the others: an array of shape (n_columns,)."""
        return np.concatenate([units.tail_precision for units in self.layers])

    @cached_property
    def width(self):
        """Number of columns of a unit; None if the units differ."""
        first, *others = (units.width for units in self.layers)
        return first if all(other == first for other in others) else None

    @property
    def bounds(self):
        """Smallest and largest value of each column: arrays of shape (n_columns,)."""
        ends = [[np.broadcast_to(end, len(units)) for end in units.bounds] for units in self.layers]
        return tuple(np.concatenate(end) for end in zip(*ends, strict=True))

    @property
    def domain(self):
        """Description of the legal values, for messages."""
        return "; ".join(
            f"{_named(columns)}: {units.domain}" for units, columns in self.parts() if len(units)
        )

    def contains(self, X):
        return self._joined("contains", X)

    # States.

    def states(self):
        first, *others = (units.states() for units in self.layers)
        return first if all(np.array_equal(first, other) for other in others) else None

    def state_log_weights(self):
        if self.states() is None:
            raise ValueError(
                "The units differ or have continuous values. Use unit_states, which lists the "
                "states unit by unit."
            )
        return np.vstack([units.state_log_weights() for units in self.layers])

    def unit_states(self):
        return [states for units in self.layers for states in units.unit_states()]

    def state_shares(self, unit, values):
        units, own = self._places[unit]
        return units.state_shares(own, values)

    def nearest(self, X):
        return self._joined("nearest", X)

    def mode(self, field):
        return self._joined("mode", field)

    # Parameters.

    def parts(self):
        return self._parts

    def shift(self, field):
        for units, columns in self.parts():
            units.shift(field[columns])

    def parameters(self):
        return {
            (k, name): value
            for k, units in enumerate(self.layers)
            for name, value in units.parameters().items()
        }

    def project(self):
        for units in self.layers:
            units.project()

    def ascend(self, slopes, rate):
        for k, units in enumerate(self.layers):
            units.ascend({name: slopes[k, name] for name in units.parameters()}, rate)

    def astype(self, dtype):
        return Stacked([units.astype(dtype) for units in self.layers])

    def moved(self, convert):
        return Stacked([units.moved(convert) for units in self.layers])

    def fitted_to(self, X, weights=None):
        return Stacked([units.fitted_to(X[:, k], weights) for units, k in self.parts()])

    def chosen(self, units):
        ends, parts = np.cumsum([0, *(layer.n_units for layer in self.layers)]), []
        for layer, start, stop in zip(self.layers, ends[:-1], ends[1:], strict=True):
            mine = np.asarray([k - start for k in units if start <= k < stop], dtype=int)
            if len(mine):
                parts.append(layer.chosen(mine))
        # In the order of the columns.
        return Stacked(parts) if parts else self.layers[0].chosen(np.empty(0, dtype=int))

    def base(self):
        return Stacked([units.base() for units in self.layers])

    def annealed(self, beta, base):
        pairs = zip(self.layers, base.layers, strict=True)
        return Stacked([units.annealed(beta, its_base) for units, its_base in pairs])

    def tempered(self, beta):
        return Stacked([units.tempered(beta) for units in self.layers])

    # Values, and values under a field.

    def _each(self, *arrays):
        """Each layer with its columns of arrays that broadcast with (n_columns,)."""
        # A Python number takes the dtype of the units, as in NumPy.
        arrays = [a if np.ndim(a) else np.asarray(a, self._dtype) for a in arrays]
        n = len(self)
        whole = [
            a
            if np.ndim(a) and np.shape(a)[-1] == n
            else np.broadcast_to(a, np.broadcast_shapes(np.shape(a), (n,)))
            for a in arrays
        ]
        for units, columns in self.parts():
            yield units, *(a[..., columns] for a in whole)

    def _joined(self, method, *arrays):
        """Results of a method of each layer, side by side."""
        parts = [getattr(units, method)(*mine) for units, *mine in self._each(*arrays)]
        return concatenated(parts, axis=-1)

    def log_weight(self, X):
        return sum(units.log_weight(X[:, columns]) for units, columns in self.parts())

    def unit_log_weights(self, X):
        return self._joined("unit_log_weights", X)

    def log_partition(self, field, precision=0.0):
        return self._joined("log_partition", field, precision)

    def log_partition_sum(self, field):
        return sum(units.log_partition_sum(B) for units, B in self._each(field))

    def mean(self, field, precision=0.0):
        if not is_foreign(field):
            return super().mean(field, precision)
        return self._joined("mean", field)

    def moments(self, field, precision=0.0):
        parts = [units.moments(B, A) for units, B, A in self._each(field, precision)]
        return tuple(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))

    def sample(self, field, stream, first_row=0):
        # Each layer uses steps of its own in the stream.
        if is_foreign(field):
            parts = [
                units.sample(for_kernels(B), stream, first_row) for units, B in self._each(field)
            ]
            return concatenated(parts, axis=1)
        out = np.empty(field.shape, field.dtype)
        for units, columns in self._parts:
            out[:, columns] = units.sample(field[:, columns], stream, first_row)
        return out

    def gradients(self, X, field=None, precision=0.0):
        if X is not None:
            parts = [units.gradients(X[:, columns]) for units, columns in self.parts()]
        else:
            parts = [units.gradients(None, B, A) for units, B, A in self._each(field, precision)]
        return {(k, name): value for k, part in enumerate(parts) for name, value in part.items()}


def _checked(layers):
    """The layers as a list of at least one, all of them units."""
    if isinstance(layers, UnitType):
        raise TypeError(
            f"Stacked: layers must be a list of units, got {type(layers).__name__} units. Put them "
            "in a list, or use them without Stacked."
        )
    layers = list(layers)
    if not layers:
        raise ValueError(
            "Stacked: layers must contain at least one layer of units, got []. For example, "
            "Stacked([Bernoulli(np.zeros(3)), Gaussian.neutral(2)]) has 3 binary and 2 real units."
        )
    for k, layer in enumerate(layers):
        if not isinstance(layer, UnitType):
            raise TypeError(
                f"Stacked: layers must be instances of unit types, got layers[{k}]={layer!r}. Use, "
                "for example, Gaussian.neutral(2) for 2 real units."
            )
    return layers


def _named(columns):
    """Text for the columns of a slice, of which there is at least one."""
    first, last = columns.start, columns.stop - 1
    return f"column {first}" if first == last else f"columns {first} to {last}"


def by_type(units):
    """Sort units so that those of one type are next to each other: longer arrays, fewer calls.

    -> the units in another order, with copies of their parameters, and for each new column the
    index of the old one; the units themselves and None if the order is the same.
    """
    parts = units.parts()
    bits = [part for part in parts if type(part[0]) is Bernoulli]
    words = [part for part in parts if type(part[0]) is Categorical]
    if max(len(bits), len(words)) < 2:
        return units, None
    layers = []
    if bits:
        layers.append(Bernoulli(_joined(bits)))
    if words:
        widths = np.concatenate([part.widths for part, _ in words])
        layers.append(Categorical(widths, _joined(words)))
    others = [part for part in parts if type(part[0]) not in (Bernoulli, Categorical)]
    layers += [part for part, _ in others]
    every = np.arange(len(units))
    order = np.concatenate([every[columns] for _, columns in [*bits, *words, *others]])
    return layers[0] if len(layers) == 1 else Stacked(layers), order


def _joined(parts):
    return np.concatenate([part.intercept for part, _ in parts])
