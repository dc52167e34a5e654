"""Units with any real value."""

import math

import numpy as np

from sklearn_boltz.units._truncated import _square
from sklearn_boltz.units._unit import UnitType, observed_sums

# V stays within these bounds. Columns should have standard deviations of the order of 1.
LEAST_PRECISION, MOST_PRECISION = 1e-8, 1e8
# The least variance that is fitted to a column, relative to 1 + mean²: it may be constant.
LEAST_VARIANCE = 1e-6
# The least V + A, as a share of V.
LEAST_SHARE = 0.01
# A step of training changes the logarithm of V by so much at most.
MOST_STEP = math.log(2)
LOG_2_PI = math.log(2 * math.pi)


class Gaussian(UnitType):
    """
    Units with any real value, w(x) = exp(U x − V x² / 2), V > 0.

    Without a field, the mean is U / V and the variance 1 / V. Columns of data are best brought to
    standard deviations of about 1, by `sklearn.preprocessing.StandardScaler`: V is kept between
    1e-8 and 1e8.

    Parameters
    ----------
    intercept : ndarray of shape (n_units,)
        U, the slope of the log-density at zero.
    precision : ndarray of shape (n_units,)
        V, greater than 0.

    Raises
    ------
    ValueError
        If a precision is not greater than 0.

    Notes
    -----
    A distribution exists for V + A > 0 only. Mean-field inference may ask for others on its way:
    where V + A is less than V / 100, that is taken in its place, so that all remains finite.
    (TAP turns to the first order before that, where V + A would be less than V / 4.)

    A model with Gaussian units in both layers has a distribution only if its weights are small
    enough; with those in one layer, and units with bounds in the other, it always has.

    In training, steps are along the logarithm of V.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import Gaussian
    >>> units = Gaussian(np.array([0.0, 8.0]), np.array([1.0, 4.0]))
    >>> units.mean(0.0), units.variance(0.0)
    (array([0., 2.]), array([1.  , 0.25]))
    """

    __module__ = "sklearn_boltz.units"  # where users find it

    def __init__(self, intercept, precision):
        if not (precision > 0).all():
            raise ValueError("Precisions of Gaussian units must be greater than 0.")
        self.intercept, self.precision = intercept, precision

    def parameters(self):
        return {"intercept": self.intercept, "precision": self.precision}

    @classmethod
    def from_data(cls, X, weights=None):
        """
        Fit independent units to data: visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Finite values; NaN is a missing one.
        weights : ndarray of float64 of shape (n_rows,), default=None
            How often each row counts; None for once.

        Returns
        -------
        units : Gaussian
            With the means and the variances of the columns, of which none is less than
            1e-6 (1 + mean²): columns may be constant.
        """
        total, count = observed_sums(X, weights)
        count = np.where(count > 0, count, 1.0)
        mean = total / count
        if isinstance(X, np.ndarray):
            variance = observed_sums(np.square(X - mean), weights)[0] / count
        else:
            variance = observed_sums(_square(X.astype(np.float64)), weights)[0] / count - mean**2
        precision = 1 / np.maximum(variance, LEAST_VARIANCE * (1 + mean**2))
        precision = precision.clip(LEAST_PRECISION, MOST_PRECISION)
        return cls(mean * precision, precision).astype(X.dtype)

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
        units : Gaussian
            With mean 0 and variance 1.
        """
        return cls(np.zeros(n_units, dtype), np.ones(n_units, dtype))

    def base(self):
        """
        Return the units at infinite temperature.

        Returns
        -------
        units : Gaussian
            With mean 0 and the precisions of these units: without any precision, there would
            be no distribution.
        """
        return type(self)(np.zeros_like(self.intercept), self.precision.copy())

    def fallen(self, beta, base):
        pairs = zip(base.parameters().values(), self.parameters().values(), strict=True)
        mixed = [(1 - beta) * there + beta * here for there, here in pairs]
        return type(self)(*mixed).astype(self._dtype)

    def tempered(self, beta):
        return type(self)(beta * self.intercept, beta * self.precision).astype(self._dtype)

    def project(self):
        np.clip(self.precision, LEAST_PRECISION, MOST_PRECISION, out=self.precision)

    def ascend(self, slopes, rate):
        # In the logarithm of V, by which a large step cannot make it negative.
        step = (rate * self.precision * slopes["precision"]).clip(-MOST_STEP, MOST_STEP)
        change = (self.precision * np.expm1(step)).astype(self._dtype)
        super().ascend({**slopes, "precision": change / rate}, rate)

    # What a unit can be.

    @property
    def bounds(self):
        """The least and the greatest value of a unit: infinite."""
        return -np.inf, np.inf

    @property
    def domain(self):
        """The legal values in words, for messages."""
        return "finite values"

    def contains(self, X):
        return np.isfinite(X)

    @property
    def tail_precision(self):
        """The V of numbers without bounds: `precision`."""
        return self.precision

    # Values under a field.

    def log_weight(self, X):
        U, V = self.intercept.astype(np.float64), self.precision.astype(np.float64)
        return X @ U - _square(X) @ (0.5 * V)

    def unit_log_weights(self, X):
        U, V = self.intercept.astype(np.float64), self.precision.astype(np.float64)
        return X * U - _square(X) * (0.5 * V)

    def _tilted(self, field, precision):
        """U + B and V + A."""
        total = np.maximum(self.precision + precision, LEAST_SHARE * self.precision)
        return self.intercept + field, total

    def log_partition(self, field, precision=0.0):
        b, a = self._tilted(field, precision)
        return 0.5 * (b * b / a + LOG_2_PI - np.log(a))

    def moments(self, field, precision=0.0):
        b, a = self._tilted(field, precision)
        mean = b / a
        return mean, np.array(np.broadcast_to(1 / a, mean.shape))

    def sample(self, field, stream, first_row=0):
        b, a = self._tilted(field, 0.0)
        x = stream.normal(field.shape, b.dtype, first_row)
        x *= np.sqrt(1 / a)
        x += b / a
        return x

    def gradients(self, X, field=None, precision=0.0):
        if X is None:
            mean, variance = self.moments(field, precision)
            first, second = mean, variance + mean * mean
        else:
            first, second = X, _square(X)
        return {
            "intercept": self._row_mean(first).astype(self._dtype),
            "precision": -0.5 * self._row_mean(second).astype(self._dtype),
        }
