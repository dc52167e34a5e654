"""Standard errors and tests of a fitted network."""

import warnings
from contextlib import nullcontext
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import (
    available_memory,
    checked_weights,
    find_stack_level,
    validate_arguments,
)
from sklearn_boltz._completion import distinct_incomplete, informative
from sklearn_boltz._threads import limit_blas
from sklearn_boltz.fully_visible.categorical._objective import block_starts
from sklearn_boltz.fully_visible.categorical._task import CodesTask
from sklearn_boltz.fully_visible.inference._categorical import (
    as_parameters,
    fitted_places,
    parameter_index,
)
from sklearn_boltz.fully_visible.inference._completed import Coordinates, completed_covariance
from sklearn_boltz.fully_visible.inference._inference import PairwiseInference, sandwich_covariance
from sklearn_boltz.fully_visible.model._potts_model import PottsModel
from sklearn_boltz.fully_visible.model._scores import average_product_correction, frobenius_scores
from sklearn_boltz.fully_visible.model._spin_model import SpinModel
from sklearn_boltz.fully_visible.training._fit import Task
from sklearn_boltz.fully_visible.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.fully_visible.training._objective import (
    PseudoLikelihood,
    distinct_rows,
    parameter_places,
)

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
            m_12, m_13, ..., m_{d-1,d}; if some variable has more than two values, each b_j and
            m_jk is an array, row by row. None means 0.
        confidence_level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        inference : PairwiseInference
            Of variables with more than two values, the parameters are those of the zero-sum gauge:
            how a value differs from the mean over all values, ``b[x0=2]``, and a pair of values
            from the means over both, ``m[x0=2,x1=0]``. With ``estimate, std_err, z, p_value,
            ci_low, ci_high, names, covariance``; printed, it is a table. NaN where a column was
            constant in the fit, or a value never occurred.

        Raises
        ------
        ValueError
            If the penalty knew the order of values (`ordered_`), if the rows do not determine
            all parameters, or with ``objective="likelihood"`` if there are missing cells, more
            than two values, or more than 25 columns that vary.

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
        scores J (reference 2 of the class), both summed over the rows: of the pseudo-likelihood, or
        of the likelihood if that is the objective. With ``alpha > 0`` H contains the penalty;
        intervals then do not account for the bias of the estimates.

        With missing cells and ``missing="em"``, the scores are the expected ones given the observed
        cells, and H is less by what the missing cells would have told: the covariance of the scores
        with the sufficient statistics of the model, given the observed cells. Both are estimated
        from 50 completions of each row, with a fixed seed.

        A penalty that knows the order of values (`ordered`) draws the estimates towards trends, far
        more than it lets them vary: intervals would be too narrow, and there are none.
        """
        check_is_fitted(self)
        if self.ordered_.any():
            raise ValueError(
                f"{type(self).__name__}: there are no standard errors with the penalty by the "
                f"order of values (ordered), which {self._column(self.ordered_.argmax())} has: "
                "they would not account for its bias. Fit with ordered=False."
            )
        codes, _ = self._codes(X)
        if self.objective == "likelihood":
            self._check_likelihood_covariance(codes)
        codes, weights = informative(codes, checked_weights(sample_weight, codes))
        n_values = None if self._coding.is_binary else self._coding.n_values
        if n_values is None:
            pairs = self.coupling_[np.triu_indices(len(self.coupling_), 1)]
            estimate = np.concatenate([self.intercept_, pairs])
        else:
            estimate = as_parameters(self.coupling_, self.intercept_, n_values)
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
            names=parameter_names(self._input_names(), n_values, self._labels),
            null=np.broadcast_to(null, estimate.shape),
            confidence_level=confidence_level,
            n_samples=weights.sum(),
            n_values=n_values,
        )

    @validate_arguments({"apc": ["boolean"], "ignore": [Integral, "array-like", None]})
    def interaction_scores(self, X=None, *, apc=True, ignore=None):
        """Return how strongly each two variables interact.

        Parameters
        ----------
        X : Ignored
            Present for API consistency: the scores follow from the couplings.
        apc : bool, default=True
            Whether the average product is subtracted: from S_ij the product of the means of both
            variables over all others, divided by the mean over all pairs.
        ignore : int or array-like of int of shape (n_features,), default=None
            The number of a value, for example that of a gap in a sequence, which is left out; -1
            for no such value.

        Returns
        -------
        scores : ndarray of float64 of shape (n_features, n_features)
            The Frobenius norms of the blocks of the coupling in the zero-sum gauge, corrected;
            symmetric, with a diagonal of 0. Of two binary variables, the norm is 2 abs(m_jk).
        """
        check_is_fitted(self)
        model = self._model().potts()
        scores = frobenius_scores(model.coupling, model.n_values, ignore)
        return average_product_correction(scores) if apc else scores

    def _covariance(self, codes, weights):
        """Of the estimates; NaN where a column was constant in the fit."""
        if not self._coding.is_binary:
            return self._categorical_covariance(codes, weights)
        kept, d = self._varying, codes.shape[1]
        coupling, intercept = self.coupling_[np.ix_(kept, kept)], self.intercept_[kept]
        if not (codes < 0).any():
            spins, counts = distinct_rows(codes > 0, weights)
            problem = PseudoLikelihood(spins[kept], counts, self.alpha)
            if self.objective == "likelihood":
                problem = Likelihood.of(problem)
            covariance = partial(sandwich_covariance, problem, problem.at(coupling, intercept))
        elif self.missing == "observed":
            task = Task.of_incomplete_rows(*distinct_incomplete(codes, weights), self.alpha, kept)
            point = task.problem.at(coupling, intercept)
            covariance = partial(sandwich_covariance, task.problem, point)
        else:
            model = SpinModel(coupling, intercept)
            coordinates = Coordinates.of_spins(model, self.alpha * weights.sum())
            covariance = partial(completed_covariance, codes[:, kept], weights, model, coordinates)
        if len(kept) == d:
            return covariance()
        places = parameter_places(d)[np.ix_(kept, kept)]
        known = np.concatenate([places.diagonal(), places[np.triu_indices(len(kept), 1)]])
        return spread_out(covariance, known, d * (d + 1) // 2)

    def _check_likelihood_covariance(self, codes):
        """Refuse what has no table of all states."""
        if (codes < 0).any() or len(self._varying) > MAX_COLUMNS or not self._coding.is_binary:
            raise ValueError(
                f"{type(self).__name__}: standard errors of objective='likelihood' are those of "
                f"complete rows of up to {MAX_COLUMNS} binary columns. Use "
                "objective='pseudo-likelihood', or fit resampled rows."
            )

    def _categorical_covariance(self, codes, weights):
        """Of the h_j(a), then of the J_jk(a, b), block by block; NaN where nothing was fitted."""
        n_values = self._coding.n_values
        _, n_parameters = block_starts(n_values)
        check_memory(n_parameters)
        task = CodesTask(*distinct_incomplete(codes, weights), n_values, self.alpha)
        contrasts = task.contrasts
        theta = np.concatenate(task.initial(self.coupling_, self.intercept_)[::-1])
        z = contrasts.pack(*task.problem.unpack(theta))
        rows, counts = task.rows()

        def covariance():
            if self.missing == "em" and (rows < 0).any():
                model = PottsModel(*task.problem.unpack(theta), task.n_values())
                coordinates = Coordinates.of_contrasts(z, contrasts)
                found = completed_covariance(rows, counts, model, coordinates)
            else:
                found = sandwich_covariance(contrasts, contrasts.at(z))
            loadings = contrasts.loadings()
            return loadings @ found @ loadings.T

        return spread_out(covariance, fitted_places(task.inner), n_parameters)


def spread_out(covariance, known, n_parameters):
    """A covariance of some parameters among all; NaN elsewhere."""
    whole = np.full((n_parameters, n_parameters), np.nan)
    if len(known):
        whole[np.ix_(known, known)] = covariance()
    return whole


def check_memory(n_parameters):
    """Refuse a covariance that does not fit into memory."""
    needed, memory = 4 * 8 * n_parameters**2, available_memory()
    if memory is not None and needed > memory:
        raise ValueError(
            f"FVBMPseudoLikelihood: the covariance of {n_parameters:,} parameters needs "
            f"{needed / 2**30:.1f} GiB, and there are {memory / 2**30:.1f}. Leave out columns, or "
            "use `interaction_scores`, which needs none."
        )


def blas_threads(n_features, least):
    """A context in which BLAS has one thread if there are less than `least` parameters."""
    n_parameters = n_features * (n_features + 1) // 2
    return limit_blas(1) if n_parameters < least else nullcontext()


def parameter_names(names, n_values=None, labels=None):
    """``b[x0]`` and ``m[x0,x1]``, or ``b[x0=2]`` and ``m[x0=2,x1=0]``, in their order.

    `labels` gives what the values of a column are called, from its number and its codes.
    """
    if n_values is None:
        pairs = zip(*np.triu_indices(len(names), 1), strict=True)
        return np.array(
            [f"b[{name}]" for name in names] + [f"m[{names[j]},{names[k]}]" for j, k in pairs],
            dtype=object,
        )

    values = [labels(j, np.arange(m)) for j, m in enumerate(n_values)]

    def label(i, a, j, b):
        own = f"{names[i]}={values[i][a]}"
        return f"b[{own}]" if j < 0 else f"m[{own},{names[j]}={values[j][b]}]"

    index = zip(*parameter_index(n_values), strict=True)
    return np.array([label(*place) for place in index], dtype=object)
