"""Units with real values."""

import math

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz.units._unit import FLOATS, UnitType, as_floats, between, observed_sums

# V is kept within these bounds. Columns should have standard deviations of about 1.
LEAST_PRECISION, MOST_PRECISION = 1e-8, 1e8
# Smallest variance that is fitted to a column, relative to 1 + mean². A column may be constant.
LEAST_VARIANCE = 1e-6
# Smallest V + A, as a fraction of V.
LEAST_SHARE = 0.01
# Largest change of the logarithm of V in one step of training.
MOST_STEP = math.log(2)
LOG_2_PI = math.log(2 * math.pi)


def _square(X):
    """x² of an array or a sparse matrix, in a float dtype."""
    if X.dtype not in FLOATS:  # small integers would overflow
        X = X.astype(np.float64)
    return X.multiply(X) if issparse(X) else X * X


class Quadratic(UnitType):
    """Units with ln w(x) = U x − V x² / 2, on some range."""

    def parameters(self):
        return {"intercept": self.intercept, "precision": self.precision}

    def annealed(self, beta, base):
        return between(base, self, beta)

    def log_weight(self, X):
        U, V = self.intercept.astype(np.float64), self.precision.astype(np.float64)
        return X @ U - _square(X) @ (0.5 * V)

    def unit_log_weights(self, X):
        U, V = self.intercept.astype(np.float64), self.precision.astype(np.float64)
        return X * U - _square(X) * (0.5 * V)

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


class Gaussian(Quadratic):
    """
    Units with real values: w(x) = exp(U x − V x² / 2), V > 0.

    Without a field, the mean is U / V and the variance is 1 / V. V is kept between 1e-8 and 1e8,
    so columns of data should have standard deviations of about 1. Scale them with
    :class:`sklearn.preprocessing.StandardScaler` if necessary.

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

    See Also
    --------
    UnitType : What the weight w and the field are.
    TruncatedGaussian : Units with values on an interval.

    Notes
    -----
    Under a field B and a precision A, the mean is (U + B) / (V + A) and the variance is
    1 / (V + A).

    The distribution exists only for V + A > 0. Mean-field inference may need other values on the
    way: if V + A is below V / 100, V / 100 is used instead, so that all results are finite. (TAP
    has no solutions of second order where V + A would be less than V / 4.)

    A model with Gaussian units in both layers has a distribution only if its weights are small
    enough. A model with Gaussian units in one layer and bounded units in the other always has one.

    Training changes the logarithm of V.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import Gaussian
    >>> units = Gaussian(np.array([0.0, 8.0]), np.array([1.0, 4.0]))
    >>> units.mean(0.0), units.variance(0.0)
    (array([0., 2.]), array([1.  , 0.25]))
    """

    __module__ = "sklearn_boltz.units"  # the public module

    bounds = -np.inf, np.inf

    def __init__(self, intercept, precision):
        intercept, precision = as_floats(intercept), as_floats(precision)
        if not (precision > 0).all():
            wrong = precision[~(precision > 0)][0]
            raise ValueError(
                f"Gaussian: every precision must be greater than 0, got {wrong:g}. It is 1 / "
                "variance of the unit."
            )
        self.intercept, self.precision = intercept, precision

    @classmethod
    def from_data(cls, X, weights=None):
        """
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Finite values. NaN is a missing value.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : Gaussian
            Units with the means and variances of the columns. Variances are at least 1e-6 (1 +
            mean²), so columns may be constant. The parameters are float32 if the data are, and
            otherwise float64.
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
        return cls(mean * precision, precision).astype(X.dtype if X.dtype in FLOATS else np.float64)

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
        units : Gaussian
            Units with mean 0 and variance 1.
        """
        return cls(np.zeros(n_units, dtype), np.ones(n_units, dtype))

    def base(self):
        """
        Return the units at infinite temperature.

        Returns
        -------
        units : Gaussian
            Units with mean 0 and the precisions of these units. Without a precision, there would
            be no distribution.
        """
        return type(self)(np.zeros_like(self.intercept), self.precision.copy())

    def tempered(self, beta):
        return type(self)(beta * self.intercept, beta * self.precision).astype(self._dtype)

    def project(self):
        np.clip(self.precision, LEAST_PRECISION, MOST_PRECISION, out=self.precision)

    def ascend(self, slopes, rate):
        # The step is in the logarithm of V, so that V stays positive.
        step = (rate * self.precision * slopes["precision"]).clip(-MOST_STEP, MOST_STEP)
        change = (self.precision * np.expm1(step)).astype(self._dtype)
        super().ascend({**slopes, "precision": change / rate}, rate)

    # Values and bounds.

    @property
    def domain(self):
        """Description of the legal values, for messages."""
        return "finite values"

    def contains(self, X):
        return np.isfinite(X)

    @property
    def tail_precision(self):
        """V of the unbounded columns: `precision`."""
        return self.precision

    # Values under a field.

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
