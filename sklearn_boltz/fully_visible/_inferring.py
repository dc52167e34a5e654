"""Standard errors and tests of a fitted network."""

import warnings
from contextlib import nullcontext
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import (
    checked_weights,
    find_stack_level,
    fingerprint,
    validate_arguments,
)
from sklearn_boltz._completion import distinct_incomplete, informative
from sklearn_boltz._memory import check_memory
from sklearn_boltz._threads import limit_blas
from sklearn_boltz.fully_visible.categorical._objective import block_starts
from sklearn_boltz.fully_visible.categorical._task import CodesTask
from sklearn_boltz.fully_visible.inference._bootstrap import Resampling
from sklearn_boltz.fully_visible.inference._categorical import (
    as_parameters,
    contrasts_curvature,
    fitted_places,
    parameter_index,
)
from sklearn_boltz.fully_visible.inference._comparison import Comparison
from sklearn_boltz.fully_visible.inference._completed import Coordinates, completed_curvature
from sklearn_boltz.fully_visible.inference._curvature import (
    Regressions,
    Spread,
    fitted_curvature,
    restricted_curvature,
)
from sklearn_boltz.fully_visible.inference._inference import PairwiseInference
from sklearn_boltz.fully_visible.inference._separation import (
    empty_pairs_of_contrasts,
    empty_pairs_of_spins,
    separated_by_contrasts,
    separated_by_spins,
)
from sklearn_boltz.fully_visible.model._potts_model import PottsModel
from sklearn_boltz.fully_visible.model._scores import average_product_correction, frobenius_scores
from sklearn_boltz.fully_visible.model._spin_model import SpinModel
from sklearn_boltz.fully_visible.sparse._options import checked_edges
from sklearn_boltz.fully_visible.training._fit import Task
from sklearn_boltz.fully_visible.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.fully_visible.training._objective import (
    PseudoLikelihood,
    distinct_rows,
    parameter_places,
)
from sklearn_boltz.fully_visible.training._solvers import MAX_NEWTON_PARAMETERS

# Rows a column, below which intervals are too narrow: benchmarks/fvbm/bench_fvbm_intervals.py.
FEW_ROWS, FEW_ROWS_SANDWICH = 5, 20
# With fewer parameters threads of BLAS mostly wait for each other.
MIN_THREADED_INFERENCE = 500


class Inference(Comparison, Resampling):
    """Methods of an estimator with `coupling_`, `intercept_` and a `_coding`."""

    @validate_arguments(
        {
            "X": ["array-like"],
            "sample_weight": ["array-like", None],
            "null": ["array-like", Real, None],
            "confidence_level": [Interval(Real, 0, 1, closed="neither")],
            "covariance": [StrOptions({"auto", "jackknife", "sandwich"})],
            "refit": ["boolean"],
        }
    )
    def inference(
        self,
        X,
        *,
        sample_weight=None,
        null=None,
        confidence_level=0.95,
        covariance="auto",
        refit=False,
    ):
        """Standard errors, Wald tests and confidence intervals of the estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data, or with `refit` other rows; NaN is a missing cell.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit, or with `refit` of these rows.
        null : float or array-like of shape (n_parameters,), default=None
            Values of the parameters under the null hypotheses, in the order b_1, ..., b_d,
            m_12, m_13, ..., m_{d-1,d}. If some variable has more than two values, each b_j and
            m_jk is an array, whose entries follow row by row. None means 0.
        confidence_level : float, default=0.95
            Level of the confidence intervals.
        covariance : {"auto", "jackknife", "sandwich"}, default="auto"
            ``"sandwich"`` is the asymptotic covariance. ``"jackknife"`` sums the squared changes of
            the estimate when each row is left out, by one step of Newton's method. It is accurate
            for few rows, too. There is no jackknife for rows that EM has completed, nor for
            ``objective="likelihood"``. ``"auto"`` is the jackknife where there is one, and the
            sandwich otherwise.
        refit : bool, default=False
            Whether to estimate the couplings that a sparse penalty has selected again from `X`,
            without the penalty. `X` must be rows that the selection has not used. The inference is
            then about the new estimate, and is valid given the selection.

        Returns
        -------
        inference : PairwiseInference
            It has ``estimate, std_err, z, p_value, ci_low, ci_high, names, covariance``, and prints
            as a table. Entries are NaN where a column was constant in the fit, a value never
            occurred, or a coupling is not in the model. Where the data separate a parameter, for
            example as two values never occur together, its maximum is at infinity: all but the
            estimate, at which the fit ended, is NaN. For variables with more than two values,
            the parameters are those of the zero-sum gauge: how a value differs from the mean over
            all values, ``b[x0=2]``, and a pair of values from the means over both,
            ``m[x0=2,x1=0]``.

        Raises
        ------
        ValueError
            If the network has `terms_` or a `count_potential_`, if the penalty used the order of
            values (`ordered_`), if ``nodewise=True``, if a sparse penalty has selected the
            couplings by the same rows, if the rows do not determine all parameters, if the
            covariance does not fit into memory, if
            ``covariance="jackknife"`` is asked for where there is none, or with
            ``objective="likelihood"`` if there are missing cells, more than two values, or more
            than 25 columns that vary.

        Warns
        -----
        UserWarning
            If there are fewer than 5 rows for each column that varies, or 20 without the jackknife;
            or if these are not the rows and weights of the fit.
        ConvergenceWarning
            If ``alpha="auto"`` chose a penalty, and there is no maximum without it.

        Notes
        -----
        With ``alpha="auto"``, `fit` shrinks the couplings towards 0, so that the model predicts
        other rows well. Intervals around such estimates would cover the truth less often than they
        should. So the rows of the fit are fitted once more without the penalty, and all results are
        about this estimate: ``inference.estimate`` is not `coupling_`.

        The sandwich is H⁻¹ J H⁻¹ with the information H and the products of the scores J (reference
        2 of the class), both summed over the rows. With few rows it is too small, as the scores
        are those at an estimate that has adapted to the rows. The jackknife has the scores
        H (H - H_i)⁻¹ s_i instead, with H_i the information of the row itself [1]_. So it is the sum
        of the squared changes of the estimate when a row is left out, by one step of Newton's
        method. In simulations of sparse networks with 10 to 40 columns, 95 % intervals of the
        jackknife covered the truth in 95 to 97 % of the cases with 5 and more rows per column.
        Those of the sandwich did so in 88 % with 5 rows per column, and in 93 to 94 % with 10 to
        20. The user guide has the table.

        With a number ``alpha > 0`` H contains the penalty; intervals then do not account for the
        bias of the estimates. After a sparse penalty, estimates are biased and those that were not
        selected are missing, so there are no standard errors for the same rows. With
        ``objective="likelihood"`` H and J are those of the likelihood, and the covariance is always
        the sandwich.

        With missing cells and ``missing="em"``, the scores are the expected ones given the observed
        cells. From H the information of the missing cells is subtracted: the covariance of the
        scores with the sufficient statistics of the model, given the observed cells. Both are
        estimated from 50 completions of each row, with a fixed seed.

        Parameters are separated if the objective never falls as they grow in some direction
        [2]_. The directions are found by linear programming, and the errors of all other parameters
        are those in the limit. With ``objective="likelihood"``, and for rows that EM has completed,
        only pairs of values that never occur together are looked for. If a program would have more
        than 300,000 entries, all parameters that could be separated count as such.

        There are no intervals with a penalty that takes the order of values into account
        (`ordered`). It shrinks the estimates towards trends, far more than it lets them vary, and
        intervals would be too narrow.

        References
        ----------
        .. [1] L. A. Mancl and T. A. DeRouen, "A Covariance Estimator for GEE with Improved
           Small-Sample Properties", Biometrics 57(1), 126–134, 2001.
           https://doi.org/10.1111/j.0006-341X.2001.00126.x
        .. [2] C. J. Geyer, "Likelihood Inference in Exponential Families and Directions of
           Recession", Electronic Journal of Statistics 3, 259–289, 2009.
           https://doi.org/10.1214/08-EJS349
        """
        check_is_fitted(self)
        if refit:
            return self._refitted(X, sample_weight).inference(
                X,
                sample_weight=sample_weight,
                null=null,
                confidence_level=confidence_level,
                covariance=covariance,
            )
        self._check_unselected()
        codes, weights = self._counted(X, sample_weight)
        model = self._without_penalty(codes, weights)
        parameters = model._named_parameters()
        estimate = parameters["estimate"]
        null = np.zeros_like(estimate) if null is None else np.asarray(null, dtype=np.float64)
        if null.shape not in ((), estimate.shape):
            raise ValueError(f"null must be a number or of shape {estimate.shape}: {null.shape}.")
        jackknife = self._wants_jackknife(covariance, codes)
        self._warn_of_few_rows(weights.sum(), jackknife)
        with blas_threads(self.n_features_in_, MIN_THREADED_INFERENCE):
            covariance, separated = model._cached(
                "covariance",
                lambda: model._covariance(codes, weights, jackknife),
                *(codes, weights, jackknife),
            )
        return PairwiseInference(
            covariance=covariance,
            separated=separated,
            null=np.broadcast_to(null, estimate.shape),
            confidence_level=confidence_level,
            n_samples=weights.sum(),
            method="jackknife" if jackknife else "sandwich",
            objective=self.objective,
            **parameters,
        )

    def _without_penalty(self, codes, weights):
        """The network that standard errors, tests and criteria are of.

        That is this one; with ``alpha="auto"`` it is the estimate from the same rows without the
        penalty, unless a user has set the parameters. Of rows that were not kept, `codes` and
        `weights` take the place.
        """
        is_chosen = self.alpha == "auto" and self.penalty == "l2" and self.alpha_ > 0
        if not is_chosen or fingerprint(self._parameters()) != self._estimate:
            return self
        rows = (codes, weights) if self._seen is None else self._seen_rows()
        return self._cached("without_penalty", lambda: self._refitted_without_penalty(*rows), *rows)

    def _named_parameters(self):
        """The estimates in the order of `PairwiseInference`, and what they are called."""
        n_values = None if self._coding.is_binary else self._coding.n_values
        if n_values is None:
            pairs = self.coupling_[np.triu_indices(len(self.coupling_), 1)]
            estimate = np.concatenate([self.intercept_, pairs])
        else:
            estimate = as_parameters(self.coupling_, self.intercept_, n_values)
        names = self._input_names()
        return {
            "estimate": estimate,
            "names": parameter_names(names, n_values, self._labels),
            "n_values": n_values,
            "feature_names": np.array(names, dtype=object),
        }

    def _covariance(self, codes, weights, jackknife):
        """Of all parameters; NaN where one is not estimated. And which the data separate."""
        curvature, spread = self._curvature(codes, weights, jackknife=jackknife)
        return spread.covariance(curvature), spread.separated(curvature)

    def _separated(self, codes, weights):
        """Which parameters the data separate, as far as fits look for it."""
        estimate = self._named_parameters()["estimate"]
        # Where there is no maximum, a fit has not converged.
        may_be = not (self.converged_ or self._ridge() or self.nodewise or self._has_selected())
        is_pairwise = not (self.terms_ or self.count_potential_.any())
        if not (may_be and is_pairwise) or len(estimate) > MAX_NEWTON_PARAMETERS:
            return np.zeros(len(estimate), dtype=bool)
        curvature, spread = self._curvature(codes, weights)
        return spread.separated(curvature)

    def _check_pairwise(self):
        """Refuse terms of three columns and more, and a potential of the number of ones."""
        further, remedy = None, "max_order=2 and without `terms`"
        if self.terms_:
            count = "1 term" if len(self.terms_) == 1 else f"{len(self.terms_)} terms"
            further = f"{count} of more columns"
        elif self.count_potential_.any():
            further, remedy = "a potential of the number of ones", "count_potential=False"
        if further is not None:
            raise ValueError(
                f"{type(self).__name__}: standard errors, tests and information criteria are those "
                f"of networks of pairs, and this one has {further}. Fit with {remedy}; compare "
                "models by `score` of other rows."
            )

    def _check_unselected(self):
        """Refuse standard errors of estimates whose distribution is not known."""
        name = type(self).__name__
        if self.ordered_.any():
            raise ValueError(
                f"{name}: there are no standard errors with the penalty by the order of values "
                f"(ordered), which {self._have(np.flatnonzero(self.ordered_))}: they would not "
                "account for its bias. Fit with ordered=False."
            )
        if self.nodewise:
            raise ValueError(
                f"{name}: there are no standard errors with nodewise=True, whose couplings are the "
                "means of two estimates. Fit with nodewise=False, or use `bootstrap`; or fit some "
                "of the rows and call inference(others, refit=True) with the others."
            )
        if self._has_selected():
            raise ValueError(
                f"{name}: the penalty {self.penalty!r} has selected couplings by these rows, and "
                "so ordinary standard errors would be too small. Fit some of the "
                "rows and call inference(others, refit=True) with the others, or use `bootstrap`."
            )

    def _refitted(self, X, sample_weight):
        """A copy without a sparse penalty, fitted to rows that have not selected its couplings."""
        codes, _ = self._codes(X)
        rows = distinct_incomplete(*informative(codes, checked_weights(sample_weight, codes)))
        if self._has_selected() and self._has_seen(*rows):
            raise ValueError(
                f"{type(self).__name__}: the couplings have been selected by these very rows, and "
                "refit=True needs others. Split the rows, for example by sklearn.model_selection."
                "train_test_split: fit one part, and call inference with the other."
            )
        copy = clone(self)
        if self._has_selected():
            copy.set_params(penalty="l2", alpha=0.0, nodewise=False, edges=self._free_pairs())
        return copy.fit(X, sample_weight=sample_weight)

    def _has_seen(self, codes, weights):
        """Whether these distinct rows are those of the fit."""
        if self._seen is None:
            return False
        seen, counts = distinct_incomplete(*informative(*self._seen_rows()))
        return np.array_equal(seen, codes) and np.allclose(counts, weights)

    def _warn_of_other_rows(self, codes, weights):
        """Warn of rows, or of weights, that the estimates do not come from."""
        if self._seen is None:
            return
        is_same = self._cached(
            "is_same",
            lambda: self._has_seen(*distinct_incomplete(codes, weights)),
            *(codes, weights),
        )
        if not is_same:
            warnings.warn(
                f"{type(self).__name__}: these are not the rows and weights of the fit, for which "
                "standard errors, tests and criteria hold. Use the X and sample_weight of `fit`.",
                stacklevel=find_stack_level(),
            )

    def _warn_of_few_rows(self, n_rows, jackknife):
        few = FEW_ROWS if jackknife else FEW_ROWS_SANDWICH
        if n_rows < few * len(self._varying):
            warnings.warn(
                f"There are {n_rows:g} rows for {len(self._varying)} columns. With fewer than "
                f"{few} rows per column, confidence intervals are often too narrow and p values "
                "too small, so more edges are false than the adjustment allows.",
                stacklevel=find_stack_level(),
            )

    @validate_arguments({"apc": ["boolean"], "ignore": [Integral, str, "array-like", None]})
    def interaction_scores(self, X=None, *, apc=True, ignore=None):
        """Return a number for each pair of variables: how strongly they interact.

        Parameters
        ----------
        X : Ignored
            Present for API consistency: the scores follow from the couplings.
        apc : bool, default=True
            Whether to apply the average product correction: from S_ij, the product of the means of
            both variables over all others is subtracted, divided by the mean over all pairs.
        ignore : int, str or array-like of int of shape (n_features,), default=None
            A value to leave out, for example that of a gap in a sequence: its number, where -1
            leaves out none, or as in ``ignore="-"`` its name, in the columns that have it.

        Returns
        -------
        scores : ndarray of float64 of shape (n_features, n_features)
            The Frobenius norms of the blocks of the coupling in the zero-sum gauge, corrected;
            symmetric, with a diagonal of 0. Of two binary variables, the norm is 2 abs(m_jk).

        Raises
        ------
        ValueError
            If `ignore` is a value of no column.
        """
        check_is_fitted(self)
        ignore = self._numbers_of_value(ignore) if isinstance(ignore, str) else ignore
        model = self._model().pairs.potts()
        scores = frobenius_scores(model.coupling, model.n_values, ignore)
        return average_product_correction(scores) if apc else scores

    def _numbers_of_value(self, value):
        """The number of a string among the values of each column, -1 where it is none of them."""
        found = np.full(self.n_features_in_, -1)
        for j, values in enumerate(self.categories_):
            if values is not None and value in list(values):
                found[j] = list(values).index(value)
        if (found < 0).all():
            raise ValueError(
                f"{type(self).__name__}.interaction_scores: ignore={value!r} is a value of no "
                "column. Give one of `categories_`, or the number of a value."
            )
        return found

    def _allowed_pairs(self):
        """The mask that `edges` stands for; None for all pairs."""
        return checked_edges(self)

    def _free_pairs(self):
        """Which pairs of columns have a coupling that the data decide, (d, d); None for all.

        A sparse penalty leaves those that it has not set to 0.
        """
        free = self._allowed_pairs()
        if not self._has_selected():
            return free
        chosen = self._pair_norms() > 0
        return chosen if free is None else chosen & free

    def _pair_norms(self):
        """The greatest absolute coupling of each two columns, (d, d)."""
        first = np.cumsum(self._coding.n_values) - self._coding.n_values
        first = np.arange(self.n_features_in_) if self._coding.is_binary else first
        by_rows = np.maximum.reduceat(np.abs(self.coupling_), first, axis=0)
        return np.maximum.reduceat(by_rows, first, axis=1)

    def _has_selected(self):
        """Whether a penalty has chosen which couplings are 0."""
        return self.penalty != "l2" and np.any(self.alpha_ != 0)

    def _ridge(self):
        """The strength per row of the penalty on the squares of the couplings."""
        return 0.0 if self._has_selected() else self.alpha_

    def _can_leave_out(self, codes):
        """Whether the estimate without a row is known: not if rows were completed."""
        if self.objective == "likelihood":
            return False
        return self.missing == "observed" or not (codes < 0).any()

    def _wants_jackknife(self, covariance, codes):
        """Whether the covariance that a user asks for is the jackknife's."""
        known = self._can_leave_out(codes)
        if covariance == "jackknife" and not known:
            reason = "for rows that EM has completed"
            if self.objective == "likelihood":
                reason = "with objective='likelihood'"
            raise ValueError(
                f"{type(self).__name__}: there is no jackknife {reason}. Use covariance='auto' or "
                "'sandwich', or `bootstrap`."
            )
        return known and covariance != "sandwich"

    def _curvature(self, codes, weights, *, jackknife=False):
        """H and J of the free parameters, see `Curvature`.

        Of columns that vary; and the `Spread` from these to all parameters.
        """
        self._check_pairwise()
        check_room(self.n_features_in_, self._coding)
        find = self._spin_curvature if self._coding.is_binary else self._contrasts_curvature
        return find(codes, weights, jackknife)

    def _spin_curvature(self, codes, weights, jackknife):
        """Of the b_j, then of the m_jk."""
        kept, d, alpha = self._varying, codes.shape[1], self._ridge()
        coupling, intercept = self.coupling_[np.ix_(kept, kept)], self.intercept_[kept]
        if self.objective == "likelihood":
            found = self._likelihood_curvature(codes, weights, alpha)
        elif self._can_leave_out(codes):
            problem = self._spin_problem(codes, weights, alpha)
            point = problem.at(coupling, intercept)
            regressions = Regressions.of_spins(problem, point)
            found = fitted_curvature(
                problem.information(point), regressions, kept, self._free_pairs(),
                jackknife=jackknife,
                find_separated=partial(separated_by_spins, problem, point),
            )  # fmt: skip
        else:
            model = SpinModel(coupling, intercept)
            coordinates = Coordinates.of_spins(model, alpha * weights.sum())
            found = completed_curvature(
                codes[:, kept], weights, model, coordinates, kept, self._free_pairs()
            )
            problem = self._spin_problem(codes, weights, alpha)
            found = found._replace(separated=empty_pairs_of_spins(problem, found.places))
        places = parameter_places(d)[tuple(found.columns)]
        return found, Spread(None, places, d * (d + 1) // 2)

    def _check_likelihood_covariance(self, codes):
        """Refuse what has no table of all states."""
        if (codes < 0).any() or len(self._varying) > MAX_COLUMNS or not self._coding.is_binary:
            raise ValueError(
                f"{type(self).__name__}: standard errors of objective='likelihood' are those of "
                f"complete rows of up to {MAX_COLUMNS} binary columns. Use "
                "objective='pseudo-likelihood', or use `bootstrap`."
            )

    def _likelihood_curvature(self, codes, weights, alpha):
        """Of the b_j, then of the m_jk, and of the likelihood."""
        self._check_likelihood_covariance(codes)
        kept, free = self._varying, self._free_pairs()
        problem = Likelihood.of(self._spin_problem(codes, weights, alpha))
        point = problem.at(self.coupling_[np.ix_(kept, kept)], self.intercept_[kept])
        columns = np.array([np.append(kept, kept[pair]) for pair in problem.upper])
        found = restricted_curvature(
            problem.information(point), problem.score_products(point), columns, free
        )
        return found._replace(separated=empty_pairs_of_spins(problem, found.places))

    def _spin_problem(self, codes, weights, alpha):
        """The objective of the columns that vary."""
        if not (codes < 0).any():
            spins, counts = distinct_rows(codes > 0, weights)
            return PseudoLikelihood(spins[self._varying], counts, alpha)
        rows = distinct_incomplete(codes, weights)
        return Task.of_incomplete_rows(*rows, alpha, self._varying).problem

    def _contrasts_curvature(self, codes, weights, jackknife):
        """Of the contrasts of h_j, then of those of J_jk; the covariance is that of all values."""
        n_values, free = self._coding.n_values, self._free_pairs()
        task = CodesTask(*distinct_incomplete(codes, weights), n_values, self._ridge())
        contrasts, kept = task.contrasts, task.varying
        theta = np.concatenate(task.initial(self.coupling_, self.intercept_)[::-1])
        z = contrasts.pack(*task.problem.unpack(theta))
        rows, counts = task.rows()
        if self._can_leave_out(codes):
            point = contrasts.at(z)
            found = contrasts_curvature(
                contrasts, point, kept, free, jackknife=jackknife,
                find_separated=partial(separated_by_contrasts, contrasts, point),
            )  # fmt: skip
        else:
            model = PottsModel(*task.problem.unpack(theta), task.n_values())
            coordinates, numbers = Coordinates.of_contrasts(z, contrasts), kept[contrasts.column]
            found = completed_curvature(rows, counts, model, coordinates, numbers, free)
            found = found._replace(separated=empty_pairs_of_contrasts(contrasts, found.places))
        loadings = contrasts.loadings()[:, found.places]
        known = loadings.any(axis=1)
        loadings, places = loadings[known], fitted_places(task.inner)[known]
        return found, Spread(loadings, places, block_starts(n_values)[1])


def check_room(n_features, coding):
    """Refuse matrices of all parameters that do not fit into memory."""
    n_parameters = n_features * (n_features + 1) // 2
    if not coding.is_binary:
        n_parameters = block_starts(coding.n_values)[1]
    check_memory(
        6 * 8 * n_parameters**2,
        f"FVBMPseudoLikelihood: the covariance of {n_parameters:,} parameters",
        "Leave out columns, or use `interaction_scores`, which needs none.",
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
