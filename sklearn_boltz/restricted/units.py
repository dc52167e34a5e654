"""Unit laws: what kind of value the units of a layer take, and how likely each value is.

A layer of units is an object that holds the parameters of its law as arrays with one entry
for each unit. All that an RBM has to know of a layer is this contract:

``log_weight(X)``
    ln w(x) of each row, the sum over the units; w is the law without its normalisation.
``log_partition(field, precision=0)``
    ln ∫ w(x) exp(B x − A x² / 2) dx of each unit, for a field B and a precision A.
``log_partition_sum(field)``
    Its sum over the units, for each row; fields of shape (n_rows, n_units).
``mean(field, precision=0)``, ``variance(field, precision=0)``
    First and second derivative of the log-partition by the field.
``sample(field, stream, first_row=0)``
    One value of each unit, drawn with the numbers of a `Stream`.
``gradients(X, field=None, precision=0)``
    Derivatives of the mean of ``log_weight(X)`` by the parameters, as a dict; with a field
    instead of rows (``X=None``), derivatives of the mean of ``log_partition``.
``states()``
    The values that a unit can take, where they are finitely many.
``fallen(beta, base)``
    The law between this one (``beta=1``) and `base` (``beta=0``), geometrically.

A field never contains the parameters of the unit itself. The methods take fields of any
shape that broadcasts with (n_units,).
"""

import numpy as np
from scipy.special import expit

from sklearn_boltz.restricted._gibbs_kernel import bernoulli_sample, softplus_sums


class Bernoulli:
    """Units with the values 0 and 1, w(x) = exp(U x).

    Parameters
    ----------
    intercept : ndarray of shape (n_units,)
        U, the log-odds of a unit without a field.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.restricted.units import Bernoulli
    >>> units = Bernoulli(np.array([0.0, 2.0]))
    >>> units.mean(np.array([0.0, -2.0]))
    array([0.5, 0.5])
    """

    def __init__(self, intercept):
        self.intercept = intercept

    def __len__(self):
        return len(self.intercept)

    def _log_odds(self, field, precision):
        # x² = x for x in {0, 1}: a precision is a field of −A/2.
        return self.intercept + field - 0.5 * precision

    def log_weight(self, X):
        """Return the log-weight of rows, of shape (n_rows,)."""
        return X @ self.intercept.astype(np.float64)

    def log_partition(self, field, precision=0.0):
        """Return the log-partition of each unit under a field and a precision."""
        return np.logaddexp(0, self._log_odds(field, precision))

    def log_partition_sum(self, field):
        """Return the log-partition of whole rows, of shape (n_rows,), in float64."""
        out = np.empty(len(field))
        softplus_sums(np.ascontiguousarray(field), self.intercept, out)
        return out

    def mean(self, field, precision=0.0):
        """Return the mean of each unit under a field and a precision."""
        return expit(self._log_odds(field, precision))

    def variance(self, field, precision=0.0):
        """Return the variance of each unit under a field and a precision."""
        mean = self.mean(field, precision)
        return mean * (1 - mean)

    def sample(self, field, stream, first_row=0):
        """Return a sample for each entry of a field of shape (n_rows, n_units)."""
        out = np.array(field, dtype=self.intercept.dtype, order="C")
        bernoulli_sample(out, self.intercept, stream.seed, stream.take(1), first_row)
        return out

    def gradients(self, X, field=None, precision=0.0):
        """Return the derivatives of the mean log-weight of rows, or of a log-partition."""
        mean = X if field is None else self.mean(field, precision)
        return {"intercept": np.asarray(mean.mean(axis=0)).ravel()}

    def states(self):
        """Return the values of a unit."""
        return np.array([0.0, 1.0])

    def fallen(self, beta, base):
        """Return the law between `base` (beta = 0) and this one (beta = 1)."""
        dtype = self.intercept.dtype
        mixed = (1 - beta) * base.intercept + beta * self.intercept
        return Bernoulli(np.ascontiguousarray(mixed, dtype=dtype))

    def base(self):
        """Return the law at infinite temperature: all values equally likely."""
        return Bernoulli(np.zeros_like(self.intercept))
