"""Unit types: the values of the units of a layer, and their distributions.

A layer of units is an object that holds the parameters of their distributions as arrays. A model
uses a layer only through the methods of `UnitType`. A unit type of your own is a subclass and has

``parameters``, ``bounds``, ``log_weight``, ``log_partition``, ``moments``, ``sample``,
``gradients``
    always;
``base``, ``annealed``
    for annealed importance sampling, parallel tempering and samples at other temperatures;
``tempered``
    only if the weights of `base` are not constant;
``from_data``, ``neutral``, ``project``
    for training;
``states``
    if a unit has finitely many values: for exact sums over small layers, modes, the
    pseudo-likelihood and the probabilities of a column;
``width``
    if a unit has several columns, and ``one_hot`` if these are one-hot encoded;
``chosen``, ``unit_log_weights``
    if some of the parameters are not arrays with one entry for each column;
``tail_precision``
    if a unit is unbounded.

Other code tests properties of a unit type (``is_binary``, ``is_enumerable``, ``widths``), never
its class.

Under a field B and a precision A, the distribution of a unit is proportional to w(x) exp(B x − A
x² / 2). A precision may have any sign. The field never includes the parameters of the unit itself.
Fields and precisions may have any shapes that broadcast with (n_columns,), in float32 or float64.
Results have the wider of the input dtypes, but sums over a row are computed and returned in
float64.

Most units have one column; a one-hot unit has one column for each of its states. `len` is the
number of columns, n_columns. Rows, fields, precisions, means, variances, parameters and bounds
have one entry for each column. The columns of a unit are next to each other. Only the
log-partition and the states, which belong to a unit as a whole, have one entry for each of the
n_units units. For a unit with several columns, B x is a scalar product, and A x² is the sum of A_a
x_a².
"""

from copy import copy

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.numerics._arrays import copied_as, is_foreign

# The dtypes of parameters. Those fitted to data of another dtype, such as integers, are float64.
FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def as_floats(values):
    """Parameters in float32 or float64, which are not copied, or of another library.

    Training changes parameters in place by small steps, which integers cannot hold.
    """
    if is_foreign(values):
        return values
    values = np.asarray(values)
    return values if values.dtype in FLOATS else values.astype(np.float64)


def observed_sums(X, weights=None):
    """Sums of the observed values of each column in float64, and their numbers.

    NaN is a missing value. X may be sparse, or have an attribute `observed_sums`, or a method of
    this name that takes weights. `weights` are those of rows, None for equal ones. The second
    result is one number if it is the same for all columns.
    """
    found = getattr(X, "observed_sums", None)
    if found is not None:
        return found(weights) if callable(found) else found
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
    Base class of the unit types of a layer.

    An object of a unit type is a layer: the parameters of all its units, as arrays. The unit type
    defines the weight w(x) of each value x of a unit. In a model, the other layer adds a field B,
    and mean-field inference also a precision A. The distribution of the unit is then proportional
    to w(x) exp(B x − A x² / 2). U and V are the parameters of w(x) that correspond to B and A.

    See Also
    --------
    Bernoulli : Units with the values 0 and 1.
    Categorical : Units with one of several states.
    Gaussian : Units with real values.
    TruncatedGaussian : Units on an interval.
    TruncatedGaussBernoulli : Units on an interval that can be exactly zero.
    Stacked : Units of several types in one layer.

    Notes
    -----
    Most units have one column. A one-hot unit has one column for each of its states. The columns of
    a unit are next to each other. ``len(units)`` is n_columns, the number of all columns, and
    ``units.n_units`` is the number of units. Rows, fields, precisions, means, variances and
    parameters have one entry for each column; a log-partition has one for each unit. Log-weights
    and log-partitions are in nats.

    A subclass defines `parameters`, `bounds`, `log_weight`, `log_partition`, `moments` and
    `gradients`, and `sample` for samples: :doc:`/user_guide/units` has a complete example.

    The distributions given the other layer are exponential families, as in [1]_; the precision A
    is that of mean-field inference [2]_.

    References
    ----------
    .. [1] M. Welling, M. Rosen-Zvi and G. E. Hinton, "Exponential Family Harmoniums with an
       Application to Information Retrieval", Advances in Neural Information Processing Systems
       17, 2005.
    .. [2] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. https://doi.org/10.1103/PhysRevX.8.041006

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

    __module__ = "sklearn_boltz.units"  # the public module

    def __init_subclass__(cls):
        # A method or property without a docstring inherits that of the base class.
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

    # Values and bounds.

    @property
    def is_binary(self):
        """
        Whether the values are 0 and 1 with the log-odds `intercept` plus the field.

        If True, compiled kernels use `intercept` alone and do not call the methods. A subclass of
        `Bernoulli` with different methods must set it to False.
        """
        return False

    # What compiled kernels of chains ask of bits and categories, as `gibbs_chains` has it: `layers`
    # and `runs`. None for others, of which the methods are called.
    _kernel_layers = None

    @property
    def width(self):
        """Number of columns of a unit; None if the units differ."""
        return 1

    @property
    def widths(self):
        """Number of columns of each unit: an array of int of shape (n_units,)."""
        width = self.width
        return np.full(len(self) // width, width)

    @property
    def n_units(self):
        """Number of units; `len` counts their columns."""
        width = self.width
        return len(self) // width if width else len(self.widths)

    @property
    def one_hot(self):
        """Which units are one-hot encoded: an array of bool of shape (n_units,)."""
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
            Columns of the unit in a row.
        """
        if self.width:
            return slice(unit * self.width, (unit + 1) * self.width)
        start = self.widths[:unit].sum()
        return slice(start, start + self.widths[unit])

    @property
    def bounds(self):
        """Smallest and largest value of a column; infinite if it is unbounded."""
        raise NotImplementedError

    @property
    def tail_precision(self):
        """
        V of the unbounded columns, whose weight decreases as exp(−V x² / 2).

        An array of shape (n_columns,), infinite for bounded columns. If both layers of a model
        have unbounded units, its distribution exists only for small enough weights.
        """
        return np.full(len(self), np.inf)

    @property
    def domain(self):
        """Description of the legal values, for messages."""
        low, high = self.bounds
        return f"values from {low:g} to {high:g}"

    def contains(self, X):
        """
        Return which values are legal.

        Parameters
        ----------
        X : ndarray
            Values of any shape. For units with several columns, the last axis is a whole row. NaN
            is not legal.

        Returns
        -------
        legal : ndarray of bool of the same shape
            Whether each value is within the bounds.
        """
        low, high = self.bounds
        return (X >= low) & (X <= high)

    # States of units with finitely many values.

    def states(self):
        """
        Return the values of a unit, if all units have the same finite set of values.

        Returns
        -------
        states : ndarray of shape (n_states,) or (n_states, width), or None
            The values; for a unit with several columns, one row for each state. None if the values
            are continuous or if the units differ.
        """
        return None

    @property
    def state_counts(self):
        """Number of values of each unit: an array of float of shape (n_units,), or infinite."""
        states = self.states()
        return np.full(self.n_units, np.inf if states is None else len(states), dtype=np.float64)

    @property
    def is_enumerable(self):
        """Whether all units have finitely many values."""
        return bool(np.isfinite(self.state_counts).all())

    def state_log_weights(self):
        """
        Return the log-weight of each state of each unit, up to a constant for each unit.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_units, n_states)
            Log-weights of the values of `states`, in that order. By default, they are computed by
            `log_weight`.

        Raises
        ------
        ValueError
            If the values are continuous or if the units differ.
        """
        states, n_units = self.states(), self.n_units
        if states is None:
            raise ValueError(
                f"{type(self).__name__} units have continuous values, not states. Use log_weight "
                "for the log-weight of a value."
            )
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
        Return the states and their log-weights unit by unit, also if the units differ.

        Returns
        -------
        unit_states : list of length n_units
            For each unit, a pair of arrays: its states, of shape (n_states, width), and their
            log-weights, of shape (n_states,), up to a constant. The entry is None for a unit with
            continuous values.
        """
        states = self.states()
        if states is None:
            return [None] * self.n_units
        states = np.asarray(states, dtype=np.float64).reshape(len(states), -1)
        return [(states, log_weights) for log_weights in self.state_log_weights()]

    def state_shares(self, unit, values):
        """
        Return the shares of the states in the values of one unit.

        A legal value may be a mixture of states, such as 0.3 for a Bernoulli unit.

        Parameters
        ----------
        unit : int
            Number of the unit, which must have finitely many states.
        values : ndarray of shape (n_rows, width)
            Its values.

        Returns
        -------
        shares : ndarray of shape (n_rows, n_states)
            A state has the share 1; a value between two states has a share of each of them. A unit
            with several columns gets its nearest state, unless its type overrides this method.

        Raises
        ------
        ValueError
            If the unit has continuous values.
        """
        states = self.states()
        if states is None:
            raise ValueError(
                f"{type(self).__name__} units have continuous values, not states, so values have "
                "no shares of states. Call state_shares only for units with an entry in "
                "unit_states() that is not None."
            )
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
            States; for units with continuous values, the values themselves.
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
            B of each column.

        Returns
        -------
        mode : ndarray of the same shape
            States; for units with continuous values, the means.
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
        Return the layers that these units consist of, each of a single type, with their columns.

        Returns
        -------
        parts : list of (UnitType, slice)
            For most types, the units themselves.
        """
        return [(self, slice(None))]

    def shift(self, field):
        """
        Multiply w(x) by exp(field · x), in place.

        Parameters
        ----------
        field : ndarray of shape (n_columns,)
            B of each column. By default, it is added to the parameter `intercept`.
        """
        self.intercept += field

    def parameters(self):
        """
        Return the parameters, not copies, so that training can change them in place.

        Returns
        -------
        parameters : dict of str to ndarray of shape (n_columns,)
            Attributes by name, with the same keys as `gradients`. Call `project` after a change.
            The keys of `Stacked` are pairs: the number of a layer and a name.
        """
        raise NotImplementedError

    def project(self):
        """Set parameters that are out of range after a step to legal values, in place."""

    def ascend(self, slopes, rate):
        """
        Make a step along the derivatives of an objective with respect to the parameters, in place.

        Parameters
        ----------
        slopes : dict of str to ndarray of shape (n_columns,)
            The derivatives, with the keys of `parameters`.
        rate : float
            Step size.
        """
        for name, parameter in self.parameters().items():
            parameter += rate * slopes[name]
        self.project()

    def astype(self, dtype):
        """
        Return the same units in another float dtype.

        Parameters
        ----------
        dtype : dtype
            Either float32 or float64.

        Returns
        -------
        units : UnitType
            The units, with copies of the parameters.
        """
        other = copy(self)
        for name, value in self.parameters().items():
            setattr(other, name, copied_as(value, dtype))
        return other

    def moved(self, convert):
        """
        Return the same units with their parameters in another library or on another device.

        Parameters
        ----------
        convert : callable
            Function that converts an array.

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
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Legal values. NaN is a missing value.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : UnitType
            The units. Their parameters are float32 if the data are, and otherwise float64.
        """
        raise NotImplementedError

    def fitted_to(self, X, weights=None):
        """
        Fit independent units of the same kind to data: `from_data` with the same options.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns)
            Legal values. NaN is a missing value.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : UnitType
            Units of the same type and number.
        """
        return type(self).from_data(X, weights=weights)

    def chosen(self, units):
        """
        Return some of the units as a new layer.

        Parameters
        ----------
        units : ndarray of int of shape (n_chosen,)
            Numbers of the units.

        Returns
        -------
        units : UnitType
            The units, with copies of the parameters.
        """
        other, columns = copy(self), self._columns_of_all(units)
        for name, value in self.parameters().items():
            setattr(other, name, value[columns])
        return other

    def _columns_of_all(self, units):
        """Index of the columns of some units."""
        if self.width == 1:
            return np.asarray(units)
        starts = np.cumsum(self.widths) - self.widths
        parts = [np.arange(starts[k], starts[k] + self.widths[k]) for k in units]
        return np.concatenate(parts) if parts else np.empty(0, dtype=int)

    @classmethod
    def neutral(cls, n_units, dtype=np.float64):
        """
        Return neutral units, without a bias, such as hidden units before training.

        Parameters
        ----------
        n_units : int
            Number of units.
        dtype : dtype, default=float64
            Data type of the parameters.

        Returns
        -------
        units : UnitType
            The units.
        """
        raise NotImplementedError

    def base(self):
        """
        Return the units at infinite temperature, where annealing begins.

        Returns
        -------
        units : UnitType
            Units of the same type.
        """
        return type(self).neutral(len(self), self._dtype)

    def annealed(self, beta, base):
        """
        Return the units between `base` and these: ∝ w_base(x)^(1 − β) w(x)^β.

        Parameters
        ----------
        beta : float
            Inverse temperature, 0 for `base` and 1 for these units.
        base : UnitType
            Units of the same type.

        Returns
        -------
        units : UnitType
            The units. Their `log_weight` may differ from the geometric mean by a constant, on
            which importance weights do not depend.
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
            The units. Their `log_weight` is β times that of these units, up to a constant. By
            default, ``annealed(beta, base())``, which is correct if the weights of `base` are
            constant.
        """
        return self.annealed(beta, self.base())

    # Values, and values under a field.

    def log_weight(self, X):
        """
        Return the log-weight of each row.

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
        Return the log-weight ln w(x) of each unit in each row.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Values of the units. NaN gives NaN.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_rows, n_units)
            The log-weights. Their sum over the units is `log_weight`.
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
            A, of any shape that broadcasts with (n_columns,).

        Returns
        -------
        log_partition : ndarray of shape (..., n_units)
            The log-partitions, of the broadcast shape, with one value for each unit.
        """
        raise NotImplementedError

    def log_partition_sum(self, field):
        """
        Return the log-partition of each row.

        Parameters
        ----------
        field : ndarray of shape (n_rows, n_columns)
            B of each column.

        Returns
        -------
        log_partition : ndarray of float64 of shape (n_rows,)
            The sums over the units.
        """
        return self.log_partition(field).sum(axis=-1, dtype=np.float64)

    def moments(self, field, precision=0.0):
        """
        Return the mean and the variance of each column.

        They are the first and the second derivative of the log-partition with respect to B.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any shape that broadcasts with (n_columns,).

        Returns
        -------
        mean : ndarray
            An array of the broadcast shape.
        variance : ndarray
            An array of the same shape.
        """
        raise NotImplementedError

    def mean(self, field, precision=0.0):
        """
        Return the mean of each column under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any shape that broadcasts with (n_columns,).

        Returns
        -------
        mean : ndarray
            An array of the broadcast shape.
        """
        return self.moments(field, precision)[0]

    def variance(self, field, precision=0.0):
        """
        Return the variance of each column under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_columns,).
        precision : array-like, default=0.0
            A, of any shape that broadcasts with (n_columns,).

        Returns
        -------
        variance : ndarray
            An array of the broadcast shape.
        """
        return self.moments(field, precision)[1]

    def sample(self, field, stream, first_row=0):
        """
        Draw a value of each unit under a field.

        Parameters
        ----------
        field : ndarray of shape (n_rows, n_columns)
            B of each column.
        stream : Stream
            The source of randomness, which the model passes. ``stream.uniform(shape, dtype,
            first_row)`` and ``stream.normal(shape, dtype, first_row)`` return arrays of random
            numbers. These are functions of (seed, step, row, column), and each call uses one step.
            A unit type may use several steps, the same number of them in each call.
        first_row : int, default=0
            Number of the first row, if `field` is a block of a larger array.

        Returns
        -------
        X : ndarray of shape (n_rows, n_columns)
            Values of the units.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method `sample`, which Markov chains need. Only TAPRBM "
            "and TAPDBM can train without it, with inference=TAP(n_gibbs=0)."
        )

    def _draw(self, field, stream, first_row):
        """Replace a field, an ndarray of the type of the parameters, by draws under it."""
        field[...] = self.sample(field, stream, first_row)

    def gradients(self, X, field=None, precision=0.0):
        """
        Return derivatives with respect to the parameters, averaged over rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_columns) or None
            Rows, for derivatives of the mean of `log_weight`.
        field : ndarray of shape (n_rows, n_columns), default=None
            If X is None: B, for derivatives of the mean of `log_partition`.
        precision : array-like, default=0.0
            If X is None: A.

        Returns
        -------
        gradients : dict of str to ndarray of shape (n_columns,)
            The derivatives, with the keys of `parameters`. Those of `log_partition` are of the sum
            over the units, averaged over the rows.
        """
        raise NotImplementedError

    def _row_mean(self, values):
        """Mean of dense or sparse values over all axes but the last, in float64."""
        if isinstance(values, np.ndarray):
            values = values.reshape(-1, len(self))
        return np.asarray(values.mean(axis=0, dtype=np.float64)).ravel()


def between(base, units, beta):
    """`UnitType.annealed` for units whose ln w(x) is linear in the parameters."""
    found = copy(units)
    for name, there in base.parameters().items():
        here = getattr(units, name)
        value = (1 - beta) * there + beta * here
        if not is_foreign(value):
            value = np.ascontiguousarray(value, dtype=here.dtype)
        setattr(found, name, value)
    return found


def mixed_states(states, values):
    """The shares, (n_rows, n_states), of single numbers: of one state, or of the two around it."""
    order = np.argsort(states)
    corners = np.eye(len(states))
    shares = [np.interp(values, states[order], corners[k][order]) for k in range(len(states))]
    return np.column_stack(shares)
