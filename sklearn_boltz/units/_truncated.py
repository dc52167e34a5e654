"""Units on an interval: truncated Gaussian, optionally with a probability mass at zero."""

from copy import copy

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from sklearn_boltz.units._gaussian import Quadratic, _square
from sklearn_boltz.units._truncated_kernel import truncated_moments, truncated_quantile
from sklearn_boltz.units._unit import FLOATS, as_floats, observed_sums

# Bounds of fitted parameters, for an interval of length 1. Columns may be constant.
MOST_FIELD, LEAST_PRECISION, MOST_PRECISION = 1e3, -100.0, 1e3
# Smallest distance from 0 and 1 of the share of nonzero values in training.
RHO_MARGIN = 1e-6


def tilted_moments(b, a, low, high):
    """ln ∫ exp(b x − a x² / 2) dx over [low, high], and the mean and variance of that density.

    b and a broadcast, and `a` may have any sign. Results are float32 if both are, else float64.
    """
    b, a = np.asarray(b), np.asarray(a)
    # For a small layer, `np.broadcast_arrays` would take longer than the moments.
    shape, dtype = np.broadcast(b, a).shape, np.result_type(b, a)
    dtype = np.float32 if dtype == np.float32 else np.float64
    given, out = np.empty((2, *shape), dtype), np.empty((3, *shape), dtype)
    given[0], given[1] = b, a
    truncated_moments(*given.reshape(2, -1), low, high, *out.reshape(3, -1))
    return list(out)


def _check_interval(kind, low, high):
    """Refuse an empty interval, and an infinite one: the quadrature needs two ends."""
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(
            f"{kind.__name__}: low and high must be finite, got low={low} and high={high}. Give "
            "the smallest and the largest possible value, or use Gaussian units for values "
            "without bounds."
        )
    if not low < high:
        raise ValueError(f"low must be less than high, got low={low} and high={high}.")


class TruncatedGaussian(Quadratic):
    """
    Units on an interval: w(x) = exp(U x − V x² / 2) for low ≤ x ≤ high.

    Parameters
    ----------
    intercept : ndarray of shape (n_units,)
        U, the slope of the log-density at zero.
    precision : ndarray of shape (n_units,)
        V, of any sign. If it is negative, the density has its maxima at the ends of the interval.
    low, high : float, default=0.0 and 1.0
        Ends of the interval, the same for all units. They must be finite: for values without
        bounds, use :class:`~sklearn_boltz.units.Gaussian`.

    Raises
    ------
    ValueError
        If the interval is empty or infinite.

    See Also
    --------
    UnitType : What the weight w and the field are.
    TruncatedGaussBernoulli : Units on an interval that can be exactly zero.
    Gaussian : Units with real values.

    Notes
    -----
    Moments are computed by quadrature, for precisions of any sign and any position of the peak.
    The relative error is below 1e-9 in float64 and below 1e-4 in float32, not counting the
    rounding of the field. For a mean, it is relative to the distance from the nearer end. Samples
    are drawn by inverting the distribution function at uniform random numbers.

    With a positive precision, `low` 0 and a `high` that is never reached, these are the rectified
    linear units (ReLU) of [2]_: ``SDCPRBM(hidden="relu")``. The units of Nair and Hinton (2010),
    max(0, x + noise), are different.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. Appendix C.1.
       https://doi.org/10.1103/PhysRevX.8.041006
    .. [2] J. Tubiana and R. Monasson, "Emergence of Compositional Representations in Restricted
       Boltzmann Machines", Physical Review Letters 118, 138301, 2017.
       https://doi.org/10.1103/PhysRevLett.118.138301

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import TruncatedGaussian
    >>> units = TruncatedGaussian(np.array([0.0, 50.0]), np.array([0.0, 100.0]))
    >>> units.mean(0.0).round(3)
    array([0.5, 0.5])
    >>> units.variance(0.0).round(3)
    array([0.083, 0.01 ])
    """

    __module__ = "sklearn_boltz.units"  # the public module

    def __init__(self, intercept, precision, low=0.0, high=1.0):
        _check_interval(type(self), low, high)
        self.intercept, self.precision = as_floats(intercept), as_floats(precision)
        self.low, self.high = float(low), float(high)

    @classmethod
    def from_data(cls, X, low=0.0, high=1.0, weights=None):
        """
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Values from `low` to `high`. NaN is a missing value.
        low, high : float, default=0.0 and 1.0
            Ends of the interval.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : TruncatedGaussian
            The maximum-likelihood fit, with one more row of uniformly distributed values. The
            parameters are float32 if the data are, and otherwise float64.

        Raises
        ------
        ValueError
            If the interval is empty or infinite.
        """
        _check_interval(cls, low, high)
        counts = np.broadcast_to(observed_sums(X, weights)[1], X.shape[1]).astype(np.float64)
        units = cls(*_fitted(X, counts, low, high, weights), low, high)
        return units.astype(X.dtype if X.dtype in FLOATS else np.float64)

    def fitted_to(self, X, weights=None):
        return self.from_data(X, self.low, self.high, weights)

    @classmethod
    def neutral(cls, n_units, dtype=np.float64, low=0.0, high=1.0):
        """
        Return neutral units, without a bias, such as hidden units before training.

        Parameters
        ----------
        n_units : int
            Number of units.
        dtype : dtype, default=float64
            Data type of the parameters.
        low, high : float, default=0.0 and 1.0
            Ends of the interval.

        Returns
        -------
        units : TruncatedGaussian
            Uniformly distributed units.
        """
        return cls(np.zeros(n_units, dtype), np.zeros(n_units, dtype), low, high)

    @property
    def bounds(self):
        """Smallest and largest value of a unit."""
        return self.low, self.high

    def base(self):
        return self.neutral(len(self), self._dtype, self.low, self.high)

    def _slab(self, field, precision):
        """The log-partition, mean and variance without the mass at zero."""
        b, a = self.intercept + field, self.precision + precision
        return tilted_moments(b, a, self.low, self.high)

    def log_partition(self, field, precision=0.0):
        return self._slab(field, precision)[0]

    def moments(self, field, precision=0.0):
        return tuple(self._slab(field, precision)[1:])

    def sample(self, field, stream, first_row=0):
        b = np.ascontiguousarray(self.intercept + field)
        u = stream.uniform(b.shape, b.dtype, first_row)
        a, out = np.empty_like(b), np.empty_like(b)
        a[...] = self.precision
        flat = [np.ascontiguousarray(values).ravel() for values in (b, a, u)]
        truncated_quantile(*flat, self.low, self.high, out.ravel())
        return out


class TruncatedGaussBernoulli(TruncatedGaussian):
    """
    Units that are zero with probability 1 − ρ and otherwise truncated Gaussian.

    w(x) = (1 − ρ) δ(x) + ρ exp(U x − V x² / 2) / Z(U, V) on an interval that contains zero, where
    Z normalises the second term. At x = 0, `log_weight` is ln(1 − ρ), the logarithm of the
    probability of zero; elsewhere, it is the logarithm of the density.

    Parameters
    ----------
    rho : ndarray of shape (n_units,)
        Probability ρ of a nonzero value without a field, between 0 and 1.
    intercept : ndarray of shape (n_units,)
        U, the slope of the log-density at zero.
    precision : ndarray of shape (n_units,)
        V, of any sign.
    low, high : float, default=0.0 and 1.0
        Ends of the interval, the same for all units. They must be finite.

    Raises
    ------
    ValueError
        If the interval is empty, infinite or without zero, or ρ is not between 0 and 1.

    See Also
    --------
    UnitType : What the weight w and the field are.
    TruncatedGaussian : Units on an interval without a mass at zero.

    References
    ----------
    .. [1] E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone and F. Krzakala, "Deterministic
       and generalized framework for unsupervised learning with restricted Boltzmann machines",
       Physical Review X 8, 041006, 2018. Appendix C.2.
       https://doi.org/10.1103/PhysRevX.8.041006

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import TruncatedGaussBernoulli
    >>> units = TruncatedGaussBernoulli(np.array([0.25]), np.zeros(1), np.zeros(1))
    >>> units.mean(0.0)
    array([0.125])
    """

    __module__ = "sklearn_boltz.units"  # the public module

    def __init__(self, rho, intercept, precision, low=0.0, high=1.0):
        super().__init__(intercept, precision, low, high)
        if not low <= 0 <= high:
            raise ValueError(
                f"TruncatedGaussBernoulli: the interval must contain zero, got low={low} and "
                f"high={high}."
            )
        rho = as_floats(rho)
        legal = (rho > 0) & (rho < 1)
        if not legal.all():
            raise ValueError(
                "TruncatedGaussBernoulli: rho, the share of nonzero values, must be between 0 "
                f"and 1, got {rho[~legal][0]:g}. Use TruncatedGaussian for units without a mass "
                "at zero."
            )
        self.rho = rho

    def parameters(self):
        return {"rho": self.rho, **super().parameters()}

    @classmethod
    def from_data(cls, X, low=0.0, high=1.0, weights=None):
        """
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Values from `low` to `high`. NaN is a missing value.
        low, high : float, default=0.0 and 1.0
            Ends of the interval.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : TruncatedGaussBernoulli
            The maximum-likelihood fit, with one more row that is zero with probability ½ and
            otherwise uniformly distributed. The parameters are float32 if the data are, and
            otherwise float64.

        Raises
        ------
        ValueError
            If the interval is empty, infinite or without zero.
        """
        _check_interval(cls, low, high)
        n_rows, present = observed_sums(X, weights)[1], X != 0
        if np.ndim(n_rows):  # NaN is not equal to anything
            present = present & ~np.isnan(X)
        counts = observed_sums(present, weights)[0]
        rho = (counts + 0.5) / (n_rows + 1)
        units = cls(rho, *_fitted(X, counts, low, high, weights), low, high)
        return units.astype(X.dtype if X.dtype in FLOATS else np.float64)

    @classmethod
    def neutral(cls, n_units, dtype=np.float64, low=0.0, high=1.0):
        """
        Return neutral units, without a bias, such as hidden units before training.

        Parameters
        ----------
        n_units : int
            Number of units.
        dtype : dtype, default=float64
            Data type of the parameters.
        low, high : float, default=0.0 and 1.0
            Ends of the interval.

        Returns
        -------
        units : TruncatedGaussBernoulli
            Units that are zero with probability ½ and otherwise uniformly distributed.
        """
        zeros = np.zeros(n_units, dtype)
        return cls(np.full(n_units, 0.5, dtype), zeros, zeros.copy(), low, high)

    def project(self):
        np.clip(self.rho, RHO_MARGIN, 1 - RHO_MARGIN, out=self.rho)

    def ascend(self, slopes, rate):
        # In the log-odds of ρ, all derivatives are less than 1.
        odds_slope = self.rho * (1 - self.rho) * slopes["rho"]
        step = expit(logit(self.rho) + rate * odds_slope) - self.rho
        super().ascend({**slopes, "rho": step / rate}, rate)

    def annealed(self, beta, base):
        # The unnormalised spike and slab are mixed. This changes ρ.
        mixed = super().annealed(beta, base)
        mixed._set_slab_log_odds((1 - beta) * base._slab_log_odds() + beta * self._slab_log_odds())
        return mixed

    def tempered(self, beta):
        # Unless the interval has length 1, `base` is not neutral between spike and slab.
        tempered = copy(self)
        tempered.intercept = (beta * self.intercept).astype(self._dtype)
        tempered.precision = (beta * self.precision).astype(self._dtype)
        tempered._set_slab_log_odds(beta * self._slab_log_odds())
        return tempered

    def _set_slab_log_odds(self, log_odds):
        """Choose ρ so that `_slab_log_odds` has this value, to the precision of its dtype."""
        dtype = self.rho.dtype
        rho = expit(log_odds + self._log_slab(np.float64)).astype(dtype)
        self.rho = np.clip(rho, np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg)

    def _log_slab(self, dtype):
        """ln Z(U, V)."""
        U, V = self.intercept.astype(dtype), self.precision.astype(dtype)
        return tilted_moments(U, V, self.low, self.high)[0]

    def _slab_log_odds(self):
        """Log of the factor of exp(U x − V x² / 2), minus the log of the factor of the spike."""
        return logit(self.rho.astype(np.float64)) - self._log_slab(np.float64)

    def log_weight(self, X):
        present = X != 0
        spike = np.log1p(-self.rho.astype(np.float64)).sum()
        return spike + present @ self._slab_log_odds() + super().log_weight(X)

    def unit_log_weights(self, X):
        slab = self._slab_log_odds() + super().unit_log_weights(X)
        return np.log1p(-self.rho.astype(np.float64)) + np.where(X != 0, slab, 0.0)

    def _log_ratio(self, log_partition):
        """ln(ρ / (1 − ρ)) + ln Z_TG, where Z_TG is the integral of the normalised, tilted slab."""
        return logit(self.rho) + (log_partition - self._log_slab(log_partition.dtype))

    def log_partition(self, field, precision=0.0):
        log_ratio = self._log_ratio(self._slab(field, precision)[0])
        return np.log1p(-self.rho) + np.logaddexp(0, log_ratio)

    def _parts(self, field, precision):
        """P(x ≠ 0), P(x = 0), and the mean and variance where x ≠ 0."""
        log_partition, mean, variance = self._slab(field, precision)
        log_ratio = self._log_ratio(log_partition)
        return expit(log_ratio), expit(-log_ratio), mean, variance

    def moments(self, field, precision=0.0):
        present, absent, mean, variance = self._parts(field, precision)
        return present * mean, present * (variance + absent * mean * mean)

    def sample(self, field, stream, first_row=0):
        present = self._parts(field, 0.0)[0]
        u = stream.uniform(present.shape, present.dtype, first_row)
        slab = super().sample(field, stream, first_row)
        # A value of the slab that is rounded to zero must not be mistaken for the spike.
        least = np.copysign(np.finfo(slab.dtype).tiny, self.low + self.high).astype(slab.dtype)
        slab[slab == 0] = least
        return np.where(u < present, slab, np.zeros_like(slab))

    def gradients(self, X, field=None, precision=0.0):
        _, mean_0, variance_0 = self._slab(np.zeros_like(self.rho), 0.0)
        if X is None:
            present, _, mean, variance = self._parts(field, precision)
            first, second = present * mean, present * (variance + mean * mean)
        else:
            present, first, second = X != 0, X, _square(X)
        share = self._row_mean(present)
        excess = self._row_mean(second) - share * (variance_0 + mean_0**2)
        rho = self.rho.astype(np.float64)
        gradients = {
            "rho": (share - rho) / (rho * (1 - rho)),
            "intercept": self._row_mean(first) - share * mean_0,
            "precision": -0.5 * excess,
        }
        return {name: value.astype(self.rho.dtype) for name, value in gradients.items()}


def _fitted(X, counts, low, high, weights=None):
    """Maximum-likelihood U and V for the values of columns and one more uniform value.

    `counts` are the numbers of nonzero values of each column.
    """
    n_units, width = X.shape[1], high - low
    first, second = (observed_sums(values, weights)[0] for values in (X, _square(X)))
    # Moments of y = (x − low) / width.
    square = (second - 2 * low * first + counts * low**2) / width**2
    first = ((first - counts * low) / width + 1 / 2) / (counts + 1)
    square = (square + 1 / 3) / (counts + 1)

    def negative_log_likelihood(parameters):
        U, V = parameters.reshape(2, n_units)
        log_partition, mean, variance = tilted_moments(U, V, 0.0, 1.0)
        loss = log_partition - U * first + 0.5 * V * square
        slope = [mean - first, -0.5 * (variance + mean**2 - square)]
        return loss.sum(), np.concatenate(slope)

    bounds = [(-MOST_FIELD, MOST_FIELD)] * n_units + [(LEAST_PRECISION, MOST_PRECISION)] * n_units
    start = np.zeros(2 * n_units)
    options = {"maxiter": 500, "maxfun": 1000}
    fit = minimize(
        negative_log_likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    U, V = fit.x.reshape(2, n_units)
    return U / width + V / width**2 * low, V / width**2
