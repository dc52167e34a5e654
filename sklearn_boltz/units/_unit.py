"""Unit types: what values the units of a layer take, and how likely each is.

A layer of units is an object that holds the parameters of their distributions as arrays, with one
entry for each unit. All that a model has to know of a layer is the contract of `UnitType`. A unit
type of your own inherits from it and has

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
    pseudo-likelihood and the probabilities of a column.

Code asks what a unit type can do (``is_binary``, ``n_states``), never which class it is.

The distribution of a unit under a field B and a precision A is w(x) exp(B x − A x² / 2), up to
its normalisation. A precision may have any sign. A field never contains the parameters of the
unit itself. Fields and precisions may have any shapes that broadcast with (n_units,), in
float32 or float64; results have the wider of the types that came in, but sums over a row are
taken and returned in float64.

``width`` is how many numbers a unit takes in a row: 1 for all types so far. In types of other
widths, ``len`` will count these numbers, and so will the last axis of fields, means and rows;
``moments``, ``sample`` and ``log_weight`` will have to treat each group of `width` columns as one
unit, ``log_partition`` to return one value for each unit and ``states`` one row for each state.
"""

from copy import copy

import numpy as np


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
        # A method that has nothing to add to the contract is documented by it.
        for name, member in vars(cls).items():
            function = getattr(member, "__func__", member)
            told = not callable(function) or function.__doc__ or name.startswith("_")
            if not told and hasattr(UnitType, name):
                function.__doc__ = getattr(UnitType, name).__doc__

    def __len__(self):
        return len(next(iter(self.parameters().values())))

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
        """How many numbers a unit takes in a row: 1 in all types so far."""
        return 1

    @property
    def bounds(self):
        """The least and the greatest value of a unit."""
        raise NotImplementedError

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
            Values of any shape; NaN is not legal.

        Returns
        -------
        legal : ndarray of bool of the same shape
            Whether each value is within the bounds.
        """
        low, high = self.bounds
        return (X >= low) & (X <= high)

    def states(self):
        """
        Return the values of a unit, where they are finitely many.

        Returns
        -------
        states : ndarray of shape (n_states,) or None
            The values, or None where there is a continuum of them.
        """
        return None

    @property
    def n_states(self):
        """Number of values of a unit; None where there is a continuum of them."""
        states = self.states()
        return None if states is None else len(states)

    # Parameters.

    def parameters(self):
        """
        Return the parameters themselves, so that a trainer can change them in place.

        Returns
        -------
        parameters : dict of str to ndarray of shape (n_units,)
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
        slopes : dict of str to ndarray of shape (n_units,)
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
            setattr(other, name, value.astype(dtype))
        return other

    @classmethod
    def from_data(cls, X):
        """
        Fit independent units to data: visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Legal values.

        Returns
        -------
        units : UnitType
            With parameters of the type of the data.
        """
        raise NotImplementedError

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
            Its `log_weight` is β times that of these units, but for a constant. By default
            ``fallen(beta, base())``, which is right where the weights of `base` are constant.
        """
        return self.fallen(beta, self.base())

    # Values, and values under a field.

    def log_weight(self, X):
        """
        Return the log-weights of rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Values of the units.

        Returns
        -------
        log_weight : ndarray of float64 of shape (n_rows,)
            The sum of ln w(x) over the units of each row.
        """
        raise NotImplementedError

    def state_log_weights(self):
        """
        Return the log-weight of each state of each unit, but for a constant of the unit.

        Returns
        -------
        log_weights : ndarray of float64 of shape (n_units, n_states)
            Of the values of `states`, in that order; by default from `log_weight`.

        Raises
        ------
        ValueError
            If there is a continuum of values.
        """
        states, n_units = self.states(), len(self)
        if states is None:
            raise ValueError(f"{type(self).__name__} has a continuum of values.")
        log_weights = np.zeros((n_units, len(states)))
        rows = np.full((n_units, n_units), states[0], dtype=np.float64)
        reference = self.log_weight(rows)
        for k, state in enumerate(states[1:], start=1):
            np.fill_diagonal(rows, state)
            log_weights[:, k] = self.log_weight(rows) - reference
        return log_weights

    def log_partition(self, field, precision=0.0):
        """
        Return ln ∫ w(x) exp(B x − A x² / 2) dx of each unit.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_units,).
        precision : array-like, default=0.0
            A, of any such shape.

        Returns
        -------
        log_partition : ndarray
            Of the shape to which all are broadcast.
        """
        raise NotImplementedError

    def log_partition_sum(self, field):
        """
        Return the log-partition of whole rows.

        Parameters
        ----------
        field : ndarray of shape (n_rows, n_units)
            B of each unit.

        Returns
        -------
        log_partition : ndarray of float64 of shape (n_rows,)
            The sum over the units.
        """
        return self.log_partition(field).sum(axis=-1, dtype=np.float64)

    def moments(self, field, precision=0.0):
        """
        Return the mean and the variance of each unit: derivatives of the log-partition by B.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_units,).
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
        Return the mean of each unit under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_units,).
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
        Return the variance of each unit under a field and a precision.

        Parameters
        ----------
        field : array-like
            B, of any shape that broadcasts with (n_units,).
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
        field : ndarray of shape (n_rows, n_units)
            B of each unit.
        stream : Stream
            Random numbers that are functions of (seed, step, row, column). A unit type takes
            as many steps as it needs, the same number at each call.
        first_row : int, default=0
            Number of the first row, where `field` is a block of a larger array.

        Returns
        -------
        X : ndarray of shape (n_rows, n_units)
            Values of the units.
        """
        raise NotImplementedError

    def gradients(self, X, field=None, precision=0.0):
        """
        Return derivatives by the parameters, averaged over rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units) or None
            Rows, for the derivatives of the mean of `log_weight`.
        field : ndarray of shape (n_rows, n_units), default=None
            Where X is None: B, for the derivatives of the mean of `log_partition`.
        precision : array-like, default=0.0
            Where X is None: A.

        Returns
        -------
        gradients : dict of str to ndarray of shape (n_units,)
            With the keys of `parameters`.
        """
        raise NotImplementedError

    def _row_mean(self, values):
        """The mean over all axes but the last, in float64, of dense or sparse values."""
        if isinstance(values, np.ndarray):
            values = values.reshape(-1, len(self))
        return np.asarray(values.mean(axis=0, dtype=np.float64)).ravel()
