"""Unit types: what values the units of a layer take, and how likely each is.

A layer of units is an object that holds the parameters of their distributions as arrays. All that
a model has to know of a layer is the contract of `UnitType`. A unit type of your own inherits from
it and has

``parameters``, ``bounds``, ``log_weight``, ``log_partition``, ``moments``, ``sample``,
``gradients``
    without which nothing works;
``base``, ``fallen``
    for annealed importance sampling, parallel tempering and samples at other temperatures;
``tempered``
    only where the weights of `base` are not constant;
``from_data``, ``neutral``, ``project``
    for training;
``states``
    if a unit takes finitely many values: for exact sums over small layers, modes, the
    pseudo-likelihood and the probabilities of a column;
``width``
    if a unit takes several numbers in a row, and ``one_hot`` if these are a 1 among zeros;
``chosen``, ``unit_log_weights``
    if some of the parameters are not arrays with an entry for each number;
``tail_precision``
    if a unit has no bounds.

Code asks what a unit type can do (``is_binary``, ``is_enumerable``, ``widths``), never which class
it is.

The distribution of a unit under a field B and a precision A is w(x) exp(B x − A x² / 2), up to
its normalisation. A precision may have any sign. A field never contains the parameters of the
unit itself. Fields and precisions may have any shapes that broadcast with (n_columns,), in
float32 or float64; results have the wider of the types that came in, but sums over a row are
taken and returned in float64.

A unit takes as many numbers in a row as it is wide: one in most types, and as many as it has
states where these are one-hot. `len` counts the numbers, n_columns, and all arrays have one entry
for each number: rows, fields, precisions, means, variances, parameters and bounds. The columns of
a unit are next to each other. Only what belongs to a unit as a whole, its log-partition and its
states, comes with one entry for each of its n_units. For the numbers x of a wide unit, B x is a
scalar product and A x² the sum of A_a x_a².
"""

from copy import copy

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._arrays import copied_as


def observed_sums(X, weights=None):
    """Sums of columns over their observed values, and how many these are.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
        NaN is a missing value. Also what knows the sums of its columns, as `observed_sums`.
    weights : ndarray of float64 of shape (n_rows,), default=None
        How often each row counts; None for once.

    Returns
    -------
    total : ndarray of float64 of shape (n_columns,)
    count : int, float or ndarray of float64 of shape (n_columns,)
        A number where it is that of all columns.
    """
    if hasattr(X, "observed_sums"):
        return X.observed_sums
    total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    gaps = None if issparse(X) or not np.isnan(total).any() else np.isnan(X)
    if weights is None and gaps is None:
        return total, X.shape[0]
    if issparse(X):
        return X.T @ weights, float(weights.sum())
    weights = np.ones(X.shape[0]) if weights is None else weights
    if gaps is None:
        return weights @ X.astype(np.float64, copy=False), float(weights.sum())
    return weights @ np.where(gaps, 0.0, X), weights @ ~gaps


class UnitType:
    """
    Base class of the unit types.

    Examples
    --------
    A unit type of your own, with the values −1 and 1:

    >>> import numpy as np
    >>> from sklearn_boltz.units import UnitType
    >>> class Spin(UnitType):
    ...     def __init__(self, intercept):
    ...         self.intercept = intercept
    ...
    ...     bounds = (-1.0, 1.0)
    ...
    ...     def parameters(self):
    ...         return {"intercept": self.intercept}
    ...
    ...     def log_weight(self, X):
    ...         return X @ self.intercept
    ...
    ...     def moments(self, field, precision=0.0):
    ...         mean = np.tanh(self.intercept + field)
    ...         return mean, 1 - mean**2
    >>> units = Spin(np.zeros(2))
    >>> units.mean(np.array([[0.0, 100.0]]))
    array([[0., 1.]])
    >>> units.domain
    'values from -1 to 1'
    """

    __module__ = "sklearn_boltz.units"  # where users find it

    def __init_subclass__(cls):
        # A method or property that has nothing to add to the contract is documented by it.
        for name, member in vars(cls).items():
            function = getattr(member, "__func__", member)
            can_tell = callable(function) or isinstance(function, property)
            told = not can_tell or function.__doc__ or name.startswith("_")
            if not told and hasattr(UnitType, name):
                function.__doc__ = getattr(UnitType, name).__doc__

    def __len__(self):
        return next(iter(self.parameters().values())).shape[0]

    @property
    def _dtype(self):
        return next(iter(self.parameters().values())).dtype

    # What a unit can be.

    @property
    def is_binary(self):
        """
        Whether the values are 0 and 1 with the log-odds `intercept` plus the field.

        Fused kernels then compute from `intercept` alone, without the methods. A subclass of
        `Bernoulli` whose methods do something else sets it to False.
        """
        return False

    @property
    def width(self):
        """How many numbers a unit takes in a row; None where the units differ."""
        return 1

    @property
    def widths(self):
        """How many numbers each unit takes: an array of int of shape (n_units,)."""
        width = self.width
        return np.full(len(self) // width, width)

    @property
    def n_units(self):
        """Number of units; `len` counts the numbers that they take."""
        width = self.width
        return len(self) // width if width else len(self.widths)

    @property
    def one_hot(self):
        """Which units are one-hot, a 1 among zeros: an array of bool of shape (n_units,)."""
        return np.zeros(self.n_units, dtype=bool)

    def columns_of(self, unit):
        """
        Return the columns of a unit.

        Parameters
        ----------
        unit : int
            Number of the unit, from 0.

        Returns
        -------
        columns : slice
            Where the unit is in a row.
        """
        if self.width:
            return slice(unit * self.width, (unit + 1) * self.width)
        start = self.widths[:unit].sum()
        return slice(start, start + self.widths[unit])

    @property
    def bounds(self):
        """The least and the greatest value of a number; infinite where there are none."""
        raise NotImplementedError

    @property
    def tail_precision(self):
        """
        The V of numbers without bounds, of which the weight falls as exp(−V x² / 2).

        An array of shape (n_columns,), infinite for numbers with bounds. Where both layers have
        such units, the distribution of a model exists only for small enough weights.
        """
        return np.full(len(self), np.inf)

    @property
    def domain(self):
        """The legal values in words, for messages."""
        low, high = self.bounds
        return f"values from {low:g} to {high:g}"

    def contains(self, X):
        """
        Tell which values are legal.

        Parameters
        ----------
        X : ndarray
            Values of any shape; of units that are several numbers wide, the last axis has those
            of whole rows. NaN is not legal.

        Returns
        -------
        legal : ndarray of bool of the same shape
            Whether each value is within the bounds.
        """
        low, high = self.bounds
        return (X >= low) & (X <= high)

    # States, where a unit has finitely many values.

    def states(self):
        """
        Return the values of a unit, where they are finitely many and those of all units.

        Returns
        -------
        states : ndarray of shape (n_states,) or (n_states, width), or None
            The values, or rows of the numbers of a wide unit; None where there is a continuum of
            them or the units differ.
        """
        return None

    @property
    def n_states(self):
        """Number of values of a unit; None where there is a continuum or the units differ."""
        states = self.states()
        return None if states is None else len(states)

    @property
    def state_counts(self):
        """Number of values of each unit: an array of float of shape (n_units,), or infinite."""
        n_states = self.n_states
        return np.full(self.n_units, np.inf if n_states is None else n_states, dtype=np.float64)

    @property
    def is_enumerable(self):
        """Whether all units have finitely many values."""
        return bool(np.isfinite(self.state_counts).all())

    def state_log_weights(self):
        """
        Return the log-weight of each state of each unit, up to a constant of the unit.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_units, n_states)
            Of the values of `states`, in that order; by default from `log_weight`.

        Raises
        ------
        ValueError
            If there is a continuum of values or the units differ.
        """
        states, n_units = self.states(), self.n_units
        if states is None:
            raise ValueError(f"{type(self).__name__} has a continuum of values.")
        log_weights, every = np.zeros((n_units, len(states))), np.arange(n_units)
        states = states.reshape(len(states), -1)
        rows = np.tile(states[0].astype(np.float64), (n_units, n_units, 1))
        reference = self.log_weight(rows.reshape(n_units, -1))
        for k, state in enumerate(states[1:], start=1):
            rows[every, every] = state
            log_weights[:, k] = self.log_weight(rows.reshape(n_units, -1)) - reference
        return log_weights

    def unit_states(self):
        """
        Return the states and their log-weights unit by unit, also where the units differ.

        Returns
        -------
        unit_states : list of (ndarray, ndarray) or None
            Of each unit, its states, of shape (n_states, width), and their log-weights, of shape
            (n_states,), up to a constant; None for a unit with a continuum of values.
        """
        states = self.states()
        if states is None:
            return [None] * self.n_units
        states = np.asarray(states, dtype=np.float64).reshape(len(states), -1)
        return [(states, log_weights) for log_weights in self.state_log_weights()]

    def state_shares(self, unit, values):
        """
        Return the shares of the states in values of one unit: legal values may be mixtures.

        Parameters
        ----------
        unit : int
            Number of the unit, which has finitely many states.
        values : ndarray of shape (n_rows, width)
            Its values.

        Returns
        -------
        shares : ndarray of shape (n_rows, n_states)
            One share, or of a value between two states one for each of them. A wide unit has
            its nearest state, if its type knows no better.
        """
        states = self.states()
        if states.ndim == 1:
            return mixed_states(states, np.ravel(values))
        nearest = ((values[:, np.newaxis] - states) ** 2).sum(axis=-1).argmin(axis=1)
        return np.eye(len(states))[nearest]

    def nearest(self, X):
        """
        Return the nearest states of units with finitely many values.

        Parameters
        ----------
        X : ndarray of shape (..., n_columns)
            Means, for example.

        Returns
        -------
        X : ndarray of the same shape
            States; where there is a continuum, the values themselves.
        """
        states = self.states()
        if states is None:
            return X
        if states.ndim == 1:
            return states[np.abs(X[..., np.newaxis] - states).argmin(axis=-1)]
        values = X.reshape(*X.shape[:-1], -1, 1, self.width)
        return states[((values - states) ** 2).sum(axis=-1).argmin(axis=-1)].reshape(X.shape)

    def mode(self, field):
        """
        Return the most probable value of each unit under a field.

        Parameters
        ----------
        field : ndarray of shape (..., n_columns)
            B of each number.

        Returns
        -------
        mode : ndarray of the same shape
            States; where there is a continuum, the means.
        """
        states = self.states()
        if states is None:
            return self.mean(field)
        states = states.reshape(len(states), -1)
        field = field.reshape(*field.shape[:-1], self.n_units, 1, -1).astype(np.float64)
        logs = self.state_log_weights() + (field * states).sum(axis=-1)
        return states[logs.argmax(axis=-1)].reshape(*field.shape[:-3], len(self))

    # Parameters.

    def parts(self):
        """
        Return the layers of one type that these units consist of, with their columns.

        Returns
        -------
        parts : list of (UnitType, slice)
            Of most types the units themselves.
        """
        return [(self, slice(None))]

    def shift(self, field):
        """
        Make a field a part of the units, in place: ∝ w(x) exp(field · x).

        Parameters
        ----------
        field : ndarray of shape (n_columns,)
            B of each number. By default, it is added to the parameter `intercept`.
        """
        self.intercept += field

    def parameters(self):
        """
        Return the parameters themselves, so that a trainer can change them in place.

        Returns
        -------
        parameters : dict of str to ndarray of shape (n_columns,)
            The attributes of those names, with the keys of `gradients`. Call `project` after
            a change.
        """
        raise NotImplementedError

    def project(self):
        """Bring parameters that a step has carried too far back to legal values, in place."""

    def ascend(self, slopes, rate):
        """
        Go a step along the derivatives of an objective by the parameters, in place.

        Parameters
        ----------
        slopes : dict of str to ndarray of shape (n_columns,)
            With the keys of `parameters`.
        rate : float
            Length of the step.
        """
        for name, parameter in self.parameters().items():
            parameter += rate * slopes[name]
        self.project()

    def astype(self, dtype):
        """
        Return the same units in another float type.

        Parameters
        ----------
        dtype : dtype
            The type, float32 or float64.

        Returns
        -------
        units : UnitType
            With parameters that are copies.
        """
        other = copy(self)
        for name, value in self.parameters().items():
            setattr(other, name, copied_as(value, dtype))
        return other

    def moved(self, convert):
        """
        Return the same units with their parameters elsewhere.

        Parameters
        ----------
        convert : callable
            From an array to one of another library, or in another place.

        Returns
        -------
        units : UnitType
            The units.
        """
        other = copy(self)
        for name, value in self.parameters().items():
            setattr(other, name, convert(value))
        return other

    @classmethod
    def from_data(cls, X, weights=None):
        """
        Fit independent units to data: visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Legal values; NaN is a missing one.
        weights : ndarray of float64 of shape (n_rows,), default=None
            How often each row counts; None for once.

        Returns
        -------
        units : UnitType
            With parameters of the type of the data.
        """
        raise NotImplementedError

    def fitted_to(self, X, weights=None):
        """
        Fit independent units of the same kind to data: `from_data` with the same options.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Legal values; NaN is a missing one.
        weights : ndarray of float64 of shape (n_rows,), default=None
            How often each row counts; None for once.

        Returns
        -------
        units : UnitType
            As many as these, of the same type.
        """
        return type(self).from_data(X, weights=weights)

    def chosen(self, units):
        """
        Return some of the units, as a layer of their own.

        Parameters
        ----------
        units : ndarray of int of shape (n_chosen,)
            Their numbers.

        Returns
        -------
        units : UnitType
            With parameters that are copies.
        """
        other, columns = copy(self), self._columns_of_all(units)
        for name, value in self.parameters().items():
            setattr(other, name, value[columns])
        return other

    def _columns_of_all(self, units):
        """The columns of some units, as an index."""
        if self.width == 1:
            return np.asarray(units)
        starts = np.cumsum(self.widths) - self.widths
        parts = [np.arange(starts[k], starts[k] + self.widths[k]) for k in units]
        return np.concatenate(parts) if parts else np.empty(0, dtype=int)

    @classmethod
    def neutral(cls, n_units, dtype=np.float64):
        """
        Return units without preferences: hidden units before training.

        Parameters
        ----------
        n_units : int
            Number of units.
        dtype : dtype, default=float64
            Type of the parameters.

        Returns
        -------
        units : UnitType
            The units.
        """
        raise NotImplementedError

    def base(self):
        """
        Return the units at infinite temperature.

        Returns
        -------
        units : UnitType
            Of the same type.
        """
        return type(self).neutral(len(self), self._dtype)

    def fallen(self, beta, base):
        """
        Return the units between `base` and these: ∝ w_base(x)^(1 − β) w(x)^β.

        Parameters
        ----------
        beta : float
            Inverse temperature, 0 for `base` and 1 for these units.
        base : UnitType
            Of the same type.

        Returns
        -------
        units : UnitType
            Its `log_weight` may differ from the geometric mean by a constant: importance
            weights do not depend on that.
        """
        raise NotImplementedError

    def tempered(self, beta):
        """
        Return the units at another temperature: ∝ w(x)^β.

        Parameters
        ----------
        beta : float
            Inverse temperature, greater than 0.

        Returns
        -------
        units : UnitType
            Its `log_weight` is β times that of these units, up to a constant. By default
            ``fallen(beta, base())``, which is right where the weights of `base` are constant.
        """
        return self.fallen(beta, self.base())

    # Values, and values under a field.

    def log_weight(self, X):
        """
        Return the log-weights of rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Values of the units.

        Returns
        -------
        log_weight : ndarray of float64 of shape (n_rows,)
            The sum of ln w(x) over the units of each row.
        """
        raise NotImplementedError

    def unit_log_weights(self, X):
        """
        Return the log-weight of each unit of each row.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Values of the units. Where they are NaN, so is the result.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_rows, n_units)
            Of which `log_weight` is the sum over the units.
        """
        log_weights = np.empty((len(X), self.n_units))
        for unit in range(self.n_units):
            part = X[:, self.columns_of(unit)]
            log_weights[:, unit] = self.chosen(np.array([unit])).log_weight(part)
        return log_weights

    def log_partition(self, field, precision=0.0):
        """
        Return ln ∫ w(x) exp(B x − A x² / 2) dx of each unit.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any such shape.

        Returns
        -------
        log_partition : ndarray of shape (..., n_units)
            Of the shape to which all are broadcast, but with one value for each unit.
        """
        raise NotImplementedError

    def log_partition_sum(self, field):
        """
        Return the log-partition of whole rows.

        Parameters
        ----------
        field : ndarray of shape (n_rows, n_columns)
            B of each number.

        Returns
        -------
        log_partition : ndarray of float64 of shape (n_rows,)
            The sum over the units.
        """
        return self.log_partition(field).sum(axis=-1, dtype=np.float64)

    def moments(self, field, precision=0.0):
        """
        Return the mean and the variance of each number: derivatives of the log-partition by B.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any such shape.

        Returns
        -------
        mean : ndarray
            Of the shape to which all are broadcast.
        variance : ndarray
            Of the same shape.
        """
        raise NotImplementedError

    def mean(self, field, precision=0.0):
        """
        Return the mean of each number under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any such shape.

        Returns
        -------
        mean : ndarray
            Of the shape to which all are broadcast.
        """
        return self.moments(field, precision)[0]

    def variance(self, field, precision=0.0):
        """
        Return the variance of each number under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any such shape.

        Returns
        -------
        variance : ndarray
            Of the shape to which all are broadcast.
        """
        return self.moments(field, precision)[1]

    def sample(self, field, stream, first_row=0):
        """
        Draw a value of each unit under a field.

        Parameters
        ----------
        field : ndarray of shape (n_rows, n_columns)
            B of each number.
        stream : Stream
            Random numbers that are functions of (seed, step, row, column). A unit type takes
            as many steps as it needs, the same number at each call.
        first_row : int, default=0
            Number of the first row, where `field` is a block of a larger array.

        Returns
        -------
        X : ndarray of shape (n_rows, n_columns)
            Values of the units.
        """
        raise NotImplementedError

    def gradients(self, X, field=None, precision=0.0):
        """
        Return derivatives by the parameters, averaged over rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns) or None
            Rows, for the derivatives of the mean of `log_weight`.
        field : ndarray of shape (n_rows, n_columns), default=None
            Where X is None: B, for the derivatives of the mean of `log_partition`.
        precision : array-like, default=0.0
            Where X is None: A.

        Returns
        -------
        gradients : dict of str to ndarray of shape (n_columns,)
            With the keys of `parameters`.
        """
        raise NotImplementedError

    def _row_mean(self, values):
        """The mean over all axes but the last, in float64, of dense or sparse values."""
        if isinstance(values, np.ndarray):
            values = values.reshape(-1, len(self))
        return np.asarray(values.mean(axis=0, dtype=np.float64)).ravel()


def mixed_states(states, values):
    """The shares of states that are single numbers in each value: one, or two between them.

    Parameters
    ----------
    states : ndarray of shape (n_states,)
    values : ndarray of shape (n_rows,)

    Returns
    -------
    shares : ndarray of shape (n_rows, n_states)
    """
    order = np.argsort(states)
    corners = np.eye(len(states))
    shares = [np.interp(values, states[order], corners[k][order]) for k in range(len(states))]
    return np.column_stack(shares)
