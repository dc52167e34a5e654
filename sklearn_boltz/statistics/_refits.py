"""The same estimator fitted again and again, to the same rows with other weights."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from sklearn_boltz._estimator import checked_weights
from sklearn_boltz.numerics._threads import limit_blas


class Refits(NamedTuple):
    """Fits of a copy of an estimator to weighted rows, as numbers.

    Attributes
    ----------
    estimator : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        Not fitted. It knows the numbers of values, so that rows without some fit as well.
    rows : ndarray of float64 of shape (n_samples, n_features)
        The codes of the values, NaN for a missing cell.
    """

    estimator: object
    rows: np.ndarray

    @classmethod
    def of(cls, model, codes):
        """Like a fitted model, of rows of codes."""
        model._warn_of_scores()
        settings = {"columns": "auto", "warm_start": False, "verbose": 0}
        if not model._coding.is_binary:
            settings["columns"] = [
                ("ordinal" if is_ordered else "nominal", list(range(n)))
                for n, is_ordered in zip(model._coding.n_values, model.ordered_, strict=True)
            ]
        known = model.get_params(deep=False)
        estimator = clone(model).set_params(**{k: settings[k] for k in settings if k in known})
        return cls(estimator, np.where(codes < 0, np.nan, codes))

    def with_rows(self, codes):
        """The same for other rows of codes."""
        return self._replace(rows=np.where(codes < 0, np.nan, codes))

    def with_params(self, **params):
        """The same with other parameters of the estimator."""
        return self._replace(estimator=clone(self.estimator).set_params(**params))

    def fit(self, weights, initial=(None, None)):
        """A copy fitted to the rows whose weight is positive.

        There are no warnings about these rows; if there is no maximum, `converged_` is False. BLAS
        has one thread, so that the result does not depend on how many fits there are at a time.
        """
        kept, copy = weights > 0, clone(self.estimator)
        names = ("coupling_init", "intercept_init")
        with warnings.catch_warnings(), limit_blas(1):
            warnings.simplefilter("ignore", UserWarning)
            return copy.fit(
                self.rows[kept],
                sample_weight=weights[kept],
                **dict(zip(names, initial, strict=True)),
            )


def repeated_rows(model, X, sample_weight, function):
    """The codes of rows, each as often as its weight says."""
    codes, _ = model._codes(X)
    weights = checked_weights(sample_weight, codes)
    if (weights != np.floor(weights)).any():
        row = int(np.argmax(weights != np.floor(weights)))
        raise ValueError(
            f"{function} divides rows, and needs whole numbers as sample_weight; row "
            f"{row} has {weights[row]:g}."
        )
    return np.repeat(codes, weights.astype(np.int64), axis=0)
