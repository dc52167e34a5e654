"""Standard errors and tests of a fitted network."""

import warnings
from contextlib import nullcontext
from functools import partial
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import checked_weights, find_stack_level, validate_arguments
from sklearn_boltz._completion import distinct_incomplete, informative
from sklearn_boltz._threads import limit_blas
from sklearn_boltz.fully_visible._completed_inference import completed_covariance
from sklearn_boltz.fully_visible._fit import Task
from sklearn_boltz.fully_visible._inference import PairwiseInference, sandwich_covariance
from sklearn_boltz.fully_visible._objective import PseudoLikelihood, distinct_rows, parameter_places
from sklearn_boltz.fully_visible._spin_model import SpinModel

# Rows a column, below which intervals are too narrow: benchmarks/fvbm/bench_fvbm_intervals.py.
FEW_ROWS = 20
# With fewer parameters threads of BLAS mostly wait for each other.
MIN_THREADED_INFERENCE = 500


class Inference:
    """Methods of an estimator with `coupling_`, `intercept_` and a `_coding`."""

    @validate_arguments(
        {
            "X": ["array-like"],
            "sample_weight": ["array-like", None],
            "null": ["array-like", Real, None],
            "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        }
    )
    def inference(self, X, *, sample_weight=None, null=None, confidence_level=0.95):
        """Standard errors, Wald tests and confidence intervals of the estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data; NaN is a missing cell.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.
        null : float or array-like of shape (n_parameters,), default=None
            Values of the parameters under the null hypotheses, in the order b_1, ..., b_d,
            m_12, m_13, ..., m_{d-1,d}. None means 0.
        confidence_level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        inference : PairwiseInference
            With ``estimate, std_err, z, p_value, ci_low, ci_high, names, covariance``; printed,
            it is a table. NaN where a column was constant in the fit.

        Warns
        -----
        UserWarning
            If there are fewer than 20 rows for each column that varies.

        Notes
        -----
        Standard errors are asymptotic. In simulations of sparse networks with 10 to 40 columns,
        95 % intervals covered the truth in 93 to 94 % of the cases with 10 to 20 rows a column and
        in 88 % with 5, and of the edges at a false discovery rate of 5 %, 4 to 9 % and 24 % were
        false; with 30 rows a column and more, intervals were right. The guide has the table.

        The covariance is the sandwich H⁻¹ J H⁻¹ of the information H and the products of the
        scores J (reference 2 of the class), both summed over the rows. With ``alpha > 0`` H
        contains the penalty; intervals then do not account for the bias of the estimates.

        With missing cells and ``missing="em"``, the scores are the expected ones given the observed
        cells, and H is less by what the missing cells would have told: the covariance of the scores
        with the sufficient statistics of the model, given the observed cells. Both are estimated
        from 100 completions of each row, with a fixed seed.
        """
        check_is_fitted(self)
        codes, _ = self._codes(X)
        codes, weights = informative(codes, checked_weights(sample_weight, codes))
        estimate = np.concatenate(
            [self.intercept_, self.coupling_[np.triu_indices(len(self.coupling_), 1)]]
        )
        null = np.zeros_like(estimate) if null is None else np.asarray(null, dtype=np.float64)
        if null.shape not in ((), estimate.shape):
            raise ValueError(f"null must be a number or of shape {estimate.shape}: {null.shape}.")
        if weights.sum() < FEW_ROWS * len(self._varying):
            warnings.warn(
                f"There are {weights.sum():g} rows for {len(self._varying)} columns. With fewer "
                f"than {FEW_ROWS} rows a column intervals tend to be too narrow and p values too "
                "small, so that more edges are false than the method of adjustment promises.",
                stacklevel=find_stack_level(),
            )
        with blas_threads(self.n_features_in_, MIN_THREADED_INFERENCE):
            covariance = self._cached(
                "covariance", lambda: self._covariance(codes, weights), codes, weights
            )
        return PairwiseInference(
            estimate=estimate,
            covariance=covariance,
            names=parameter_names(self._input_names()),
            null=np.broadcast_to(null, estimate.shape),
            confidence_level=confidence_level,
            n_samples=weights.sum(),
        )

    def _covariance(self, codes, weights):
        """Of the estimates; NaN where a column was constant in the fit."""
        kept, d = self._varying, codes.shape[1]
        coupling, intercept = self.coupling_[np.ix_(kept, kept)], self.intercept_[kept]
        if not (codes < 0).any():
            spins, counts = distinct_rows(codes > 0, weights)
            problem = PseudoLikelihood(spins[kept], counts, self.alpha)
            covariance = partial(sandwich_covariance, problem, problem.at(coupling, intercept))
        elif self.missing == "observed":
            task = Task.of_incomplete_rows(*distinct_incomplete(codes, weights), self.alpha, kept)
            point = task.problem.at(coupling, intercept)
            covariance = partial(sandwich_covariance, task.problem, point)
        else:
            model = SpinModel(coupling, intercept)
            covariance = partial(completed_covariance, codes[:, kept], weights, model, self.alpha)
        if len(kept) == d:
            return covariance()
        places = parameter_places(d)[np.ix_(kept, kept)]
        known = np.concatenate([places.diagonal(), places[np.triu_indices(len(kept), 1)]])
        n_parameters = d * (d + 1) // 2
        whole = np.full((n_parameters, n_parameters), np.nan)
        if len(kept):
            whole[np.ix_(known, known)] = covariance()
        return whole


def blas_threads(n_features, least):
    """A context in which BLAS has one thread if there are less than `least` parameters."""
    n_parameters = n_features * (n_features + 1) // 2
    return limit_blas(1) if n_parameters < least else nullcontext()


def parameter_names(names):
    """``b[x0]`` and ``m[x0,x1]``, in the order of the parameters."""
    pairs = zip(*np.triu_indices(len(names), 1), strict=True)
    return np.array(
        [f"b[{name}]" for name in names] + [f"m[{names[j]},{names[k]}]" for j, k in pairs],
        dtype=object,
    )
