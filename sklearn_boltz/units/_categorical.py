"""Units with one of several states, one-hot encoded."""

from copy import copy
from functools import cached_property
from numbers import Integral

import numpy as np

from sklearn_boltz.numerics._arrays import is_foreign
from sklearn_boltz.numerics._memory import check_memory
from sklearn_boltz.units import _categorical_arrays
from sklearn_boltz.units._bernoulli import Indicators
from sklearn_boltz.units._categorical_kernel import (
    categorical_log_partition,
    categorical_mean,
    categorical_sample,
    categorical_sums,
)
from sklearn_boltz.units._unit import FLOATS, as_floats, observed_sums

# Tolerance with which the probabilities of the states of a unit must sum to 1.
SUM_TOLERANCE = 1e-5


class Categorical(Indicators):
    """
    Units with one of several states: w(x) = exp(U · x) for one-hot x.

    A unit has one column for each state, next to each other. The column of its state is 1, the
    others are 0. In data, values between 0 and 1 that sum to 1 are taken as the probabilities of
    the states.

    Parameters
    ----------
    n_values : int or array-like of int of shape (n_units,)
        Number of states, at least 1: one number for all units, or one for each unit.
    intercept : ndarray of shape (n_columns,), default=None
        U, the log-weight of each state of each unit. Adding a constant to all states of a unit
        does not change the distribution. None means zeros; `n_values` must then be an array.

    Raises
    ------
    ValueError
        If the numbers of states do not match the length of the intercept, if one of them is less
        than 1, or if `n_values` is an int and there is no intercept.

    See Also
    --------
    UnitType : What the weight w and the field are.
    Bernoulli : Units with the values 0 and 1.

    Notes
    -----
    The means of the columns are the probabilities of the states: the softmax of U + B − A / 2 over
    the columns of a unit (equation 1 of [1]_, where A is zero). A column with mean m has the
    variance m (1 − m). The covariance of the columns a and b of one unit is −m_a m_b. A sample
    uses one uniform random number for each unit.

    References
    ----------
    .. [1] R. Salakhutdinov, A. Mnih and G. Hinton, "Restricted Boltzmann Machines for
       Collaborative Filtering", Proceedings of the 24th International Conference on Machine
       Learning, 791–798, 2007. https://doi.org/10.1145/1273496.1273596

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import Categorical
    >>> units = Categorical([2, 3], np.log([1.0, 3.0, 2.0, 1.0, 1.0]))
    >>> units.mean(0.0)
    array([0.25, 0.75, 0.5 , 0.25, 0.25])
    >>> units.log_partition(0.0).round(3)  # one value for each unit
    array([1.386, 1.386])
    >>> len(units), units.n_units
    (5, 2)
    """

    __module__ = "sklearn_boltz.units"  # the public module

    def __init__(self, n_values, intercept=None):
        if isinstance(n_values, Integral):
            if intercept is None:
                raise ValueError(
                    "Categorical: with a single n_values for all units, `intercept` is needed to "
                    "know the number of units. Give it, or n_values as a list."
                )
            n_numbers = np.shape(intercept)[0]
            n_units, left = divmod(n_numbers, int(n_values)) if n_values > 0 else (0, 1)
            widths = np.full(n_units, int(n_values))
        else:
            widths = np.array(n_values, dtype=int).ravel()
            intercept = _zeros(widths) if intercept is None else intercept
            n_numbers = np.shape(intercept)[0]
            left = n_numbers - widths.sum()
        if left or (widths < 1).any():
            raise ValueError(
                f"n_values must be at least 1 and sum to {n_numbers}, the length of the "
                f"intercept, got {n_values}."
            )
        self.n_values, self.intercept = n_values, as_floats(intercept)
        self._starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        # For the kernels: runs of units of equal width, each as (width, number of units).
        begins = np.flatnonzero(np.diff(widths, prepend=0))
        counts = np.diff(begins, append=len(widths))
        self._runs = np.column_stack([widths[begins], counts]).astype(np.intp)

    @classmethod
    def from_data(cls, X, n_values, weights=None):
        """
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            One-hot rows, or probabilities. A unit with NaN in one of its columns is missing.
        n_values : int or array-like of int of shape (n_units,)
            Number of states.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : Categorical
            Units whose log-weights are the logarithms of the frequencies, shifted to sum to 0 for
            each unit. One more row with equal shares of all states is added, so that they are
            finite. They are float32 if the data are, and otherwise float64.
        """
        units = cls(n_values, np.zeros(X.shape[1]))
        widths = np.repeat(units.widths, units.widths)
        counts, n_rows = observed_sums(X, weights)
        units.intercept = np.log((counts + 1 / widths) / (n_rows + 1))
        units.intercept -= units._spread(units._totals(units.intercept)) / widths
        return units.astype(X.dtype if X.dtype in FLOATS else np.float64)

    def fitted_to(self, X, weights=None):
        return self.from_data(X, self.n_values, weights)

    def chosen(self, units):
        return Categorical(self.widths[units], self.intercept[self._columns_of_all(units)])

    @classmethod
    def neutral(cls, n_units, dtype=np.float64, n_values=2):
        """
        Return neutral units, without a bias, such as hidden units before training.

        Parameters
        ----------
        n_units : int
            Number of units.
        dtype : dtype, default=float64
            Data type of the parameters.
        n_values : int or array-like of int of shape (n_units,), default=2
            Number of states.

        Returns
        -------
        units : Categorical
            Units whose states are equally likely.
        """
        widths = np.broadcast_to(n_values, n_units)
        return cls(n_values, _zeros(widths, dtype))

    def base(self):
        return self.tempered(0)

    def tempered(self, beta):
        other, intercept = copy(self), beta * self.intercept
        if not is_foreign(intercept):
            intercept = np.ascontiguousarray(intercept, dtype=self._dtype)
        other.intercept = intercept
        return other

    # Values and bounds.

    @property
    def widths(self):
        """Number of columns of each unit: one for each state."""
        return self._starts[1:] - self._starts[:-1]  # `np.diff` takes ten times as long

    @property
    def width(self):
        """Number of columns of a unit; None if the units differ."""
        if isinstance(self.n_values, Integral):
            return int(self.n_values)
        widths = self.widths
        return int(widths[0]) if len(widths) and (widths == widths[0]).all() else None

    @property
    def n_units(self):
        """Number of units; `len` counts their columns."""
        return len(self._starts) - 1

    @property
    def one_hot(self):
        """Which units are one-hot: all of them."""
        return np.ones(self.n_units, dtype=bool)

    def columns_of(self, unit):
        return slice(*self._starts[unit : unit + 2].tolist())

    @property
    def domain(self):
        """Description of the legal values, for messages."""
        n = self.width or f"{self.widths.min()} to {self.widths.max()}"
        return f"one 1 and otherwise 0 in the {n} columns of a unit, or probabilities that sum to 1"

    def contains(self, X):
        within = (X >= 0) & (X <= 1)
        return within & self._spread(np.abs(self._totals(X) - 1) <= SUM_TOLERANCE)

    def _totals(self, X):
        """Sums over the columns of each unit."""
        return np.add.reduceat(X, self._starts[:-1], axis=-1, dtype=np.float64)

    def _spread(self, values):
        """Values of units, repeated for each of their columns."""
        return np.repeat(values, self.widths, axis=-1)

    def states(self):
        return np.eye(self.width) if self.width else None

    @property
    def state_counts(self):
        """Number of values of each unit: an array of float of shape (n_units,)."""
        return self.widths.astype(np.float64)

    @cached_property
    def _kernel_layers(self):
        layers = np.array([[len(self), len(self._runs)]], dtype=np.intp)
        return (layers, self._runs) if type(self) is Categorical else None

    def state_log_weights(self):
        if not self.width:
            raise ValueError(
                "The units have different numbers of states. Use unit_states, which lists them "
                "unit by unit."
            )
        return self.intercept.astype(np.float64).reshape(-1, self.width)

    def unit_states(self):
        parts = np.split(self.intercept.astype(np.float64), self._starts[1:-1])
        return [(np.eye(len(part)), part) for part in parts]

    def state_shares(self, unit, values):
        return values

    def nearest(self, X):
        # The first column with the largest value of each unit, for any widths.
        rows = np.zeros(X.shape, X.dtype)
        for unit in range(self.n_units):
            columns = self.columns_of(unit)
            part = X[..., columns]
            rows[..., columns] = np.eye(part.shape[-1])[part.argmax(axis=-1)]
        return rows

    def mode(self, field):
        return self.nearest(self.intercept + field)

    # Values under a field.

    def unit_log_weights(self, X):
        if not X.shape[1]:
            return np.zeros((len(X), 0))
        return np.add.reduceat(X * self.intercept.astype(np.float64), self._starts[:-1], axis=1)

    def _fields(self, field, precision=0.0):
        """B − A / 2 as rows, the intercepts in the same dtype, and the leading shape."""
        # x² = x for x in {0, 1}, so a precision A acts as a field −A/2.
        field = field - 0.5 * precision
        single = np.result_type(self.intercept, field) == np.float32
        dtype = np.float32 if single else np.float64
        shape = np.broadcast_shapes(np.shape(field), (len(self),))
        rows = np.array(np.broadcast_to(field, shape), dtype=dtype, order="C")
        intercept = np.ascontiguousarray(self.intercept, dtype=dtype)
        return rows.reshape(-1, len(self)), intercept, shape[:-1]

    def log_partition(self, field, precision=0.0):
        rows, intercept, shape = self._fields(field, precision)
        out = np.empty((len(rows), self.n_units), rows.dtype)
        categorical_log_partition(rows, intercept, self._runs, out)
        return out.reshape(*shape, self.n_units)

    def log_partition_sum(self, field):
        if is_foreign(field):
            return _categorical_arrays.log_partition_sum(field, self.intercept, self._runs)
        rows, intercept, _ = self._fields(field)
        peaks, out = np.empty(self.n_units, rows.dtype), np.empty(len(rows))
        categorical_sums(rows, intercept, self._runs, peaks, out)
        return out

    def mean(self, field, precision=0.0):
        if is_foreign(field):
            return _categorical_arrays.mean(field, self.intercept, self._runs)
        rows, intercept, shape = self._fields(field, precision)
        categorical_mean(rows, intercept, self._runs)
        return rows.reshape(*shape, len(self))

    def moments(self, field, precision=0.0):
        mean = self.mean(field, precision)
        return mean, mean * (1 - mean)

    def sample(self, field, stream, first_row=0):
        if is_foreign(field):
            return _categorical_arrays.sample(field, self.intercept, self._runs, stream, first_row)
        out = np.array(field, dtype=self.intercept.dtype, order="C")
        self._draw(out, stream, first_row)
        return out

    def _draw(self, field, stream, first_row):
        intercept = np.ascontiguousarray(self.intercept)
        categorical_sample(field, intercept, self._runs, stream.seed, stream.take(1), first_row)


def _zeros(widths, dtype=np.float64):
    """A number for each state of units, if there is memory for all and for their places."""
    n_states = float(widths.sum(dtype=np.float64))  # no integer, which might overflow
    check_memory(
        n_states * np.dtype(dtype).itemsize + 16 * len(widths),
        f"Categorical: {n_states:,.0f} states of {len(widths):,} units",
        "Use fewer states or units.",
    )
    return np.zeros(widths.sum(), dtype)
