"""Units with the values 0 and 1."""

import numpy as np
from scipy.special import expit, logit

from sklearn_boltz.numerics._arrays import is_foreign, widened, zeros
from sklearn_boltz.units import _bernoulli_arrays
from sklearn_boltz.units._bernoulli_kernel import bernoulli_sample, softplus_sums
from sklearn_boltz.units._unit import FLOATS, UnitType, as_floats, between, observed_sums

NO_RUNS = np.empty((0, 2), dtype=np.intp)


def smoothed_log_odds(ones, n_rows):
    """Log-odds of the means of columns, smoothed by one more row of values ½, in float64.

    The extra row keeps them finite if a column is constant. `ones` are sums of the columns, and
    `n_rows` the number of rows, or that of the observed values of each column.
    """
    return logit((np.asarray(ones, dtype=np.float64).ravel() + 0.5) / (n_rows + 1))


class Indicators(UnitType):
    """Units whose columns are 0 or 1, with w(x) = exp(U · x)."""

    bounds = 0.0, 1.0

    def parameters(self):
        return {"intercept": self.intercept}

    def annealed(self, beta, base):
        return between(base, self, beta)

    def log_weight(self, X):
        if is_foreign(X):
            return widened(X) @ widened(self.intercept)
        return X @ self.intercept.astype(np.float64)

    def gradients(self, X, field=None, precision=0.0):
        mean = self._row_mean(self.mean(field, precision) if X is None else X)
        return {"intercept": mean.astype(self.intercept.dtype)}


class Bernoulli(Indicators):
    """
    Units with the values 0 and 1: w(x) = exp(U x).

    In data, a value between 0 and 1 is taken as the probability of a 1.

    Parameters
    ----------
    intercept : ndarray of shape (n_units,)
        U, the log-odds of the value 1 without a field.

    See Also
    --------
    UnitType : What the weight w and the field are.
    Categorical : Units with more than two states.

    Notes
    -----
    Since x² = x, a precision A acts as a field −A / 2. With the log-odds u = U + B − A / 2, the
    mean is 1 / (1 + exp(−u)) and the log-partition is ln(1 + exp(u)).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz.units import Bernoulli
    >>> units = Bernoulli(np.array([0.0, 2.0]))
    >>> units.mean(np.array([0.0, -2.0]))
    array([0.5, 0.5])
    """

    __module__ = "sklearn_boltz.units"  # the public module

    is_binary, width = True, 1

    def __init__(self, intercept):
        # No call for what every fit passes: fits of small tables take as long as their calls.
        is_float = getattr(intercept, "dtype", None) in FLOATS
        self.intercept = intercept if is_float else as_floats(intercept)

    def __len__(self):
        return self.intercept.shape[0]

    @property
    def widths(self):
        """Number of columns of each unit: an array of 1 of shape (n_units,)."""
        return np.ones(self.intercept.shape[0], dtype=int)

    @property
    def _kernel_layers(self):
        layers = np.array([[len(self.intercept), 0]], dtype=np.intp)
        return (layers, NO_RUNS) if self.is_binary else None

    @classmethod
    def from_data(cls, X, weights=None):
        """
        Return independent units fitted to data, such as visible units before training.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_units)
            Values from 0 to 1. NaN is a missing value.
        weights : ndarray of float64 of shape (n_rows,), default=None
            Weight of each row. None means equal weights.

        Returns
        -------
        units : Bernoulli
            Units whose log-odds are those of the column means. One more row of values ½ is added,
            so that the log-odds are finite. They are float32 if the data are, and otherwise
            float64.
        """
        log_odds = smoothed_log_odds(*observed_sums(X, weights))
        return cls(log_odds.astype(X.dtype if X.dtype in FLOATS else np.float64))

    @classmethod
    def neutral(cls, n_units, dtype=np.float64):
        return cls(np.zeros(n_units, dtype))

    def states(self):
        return np.array([0.0, 1.0])

    @property
    def state_counts(self):
        """Number of values of each unit: an array of 2.0 of shape (n_units,)."""
        return np.full(self.intercept.shape[0], 2.0)

    def base(self):
        if is_foreign(self.intercept):
            return Bernoulli(zeros(self.intercept, self.intercept.shape))
        return super().base()

    def _log_odds(self, field, precision):
        # x² = x for x in {0, 1}, so a precision A acts as a field −A/2.
        return self.intercept + field - 0.5 * precision

    def unit_log_weights(self, X):
        return X * self.intercept.astype(np.float64)

    def state_log_weights(self):
        intercept = self.intercept.astype(np.float64)
        return np.column_stack([np.zeros_like(intercept), intercept])

    def log_partition(self, field, precision=0.0):
        return np.logaddexp(0, self._log_odds(field, precision))

    def log_partition_sum(self, field):
        if is_foreign(field):
            return _bernoulli_arrays.log_partition_sum(field, self.intercept)
        out = np.empty(len(field))
        softplus_sums(np.ascontiguousarray(field), self.intercept, out)
        return out

    def moments(self, field, precision=0.0):
        log_odds = self._log_odds(field, precision)
        mean = expit(log_odds)
        return mean, mean * expit(-log_odds)

    def mean(self, field, precision=0.0):
        if is_foreign(field):
            return _bernoulli_arrays.mean(field, self.intercept)
        return expit(self._log_odds(field, precision))

    def sample(self, field, stream, first_row=0):
        if is_foreign(field):
            return _bernoulli_arrays.sample(field, self.intercept, stream, first_row)
        out = np.array(field, dtype=self.intercept.dtype, order="C")
        self._draw(out, stream, first_row)
        return out

    def _draw(self, field, stream, first_row):
        bernoulli_sample(field, self.intercept, stream.seed, stream.take(1), first_row)
