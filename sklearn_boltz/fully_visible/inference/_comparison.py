"""Which of several networks describes the rows best: criteria and the likelihood ratio."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz._base import BaseBoltzmann, checked_weights, validate_arguments
from sklearn_boltz._completion import informative
from sklearn_boltz.fully_visible.inference._tests import (
    HypothesisTest,
    likelihood_ratio_weights,
    weighted_chi2_sf,
)

ROWS = {"X": ["array-like"], "sample_weight": ["array-like", None]}
# The share by which a penalty of two fits may differ for rounding.
SAME = 1e-9


class Comparison:
    """Methods of an estimator that knows `_curvature`, `_free_pairs` and `_ridge`."""

    @validate_arguments(ROWS)
    def aic(self, X, sample_weight=None):
        """Return Akaike's information criterion; the lower, the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data; NaN is a missing cell.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.

        Returns
        -------
        aic : float
            -2 l + 2 tr(H⁻¹ J) [1]_, with l the sum of `log_pseudo_likelihood` over the rows.

        Raises
        ------
        ValueError
            If the rows do not determine all parameters, or if the network has `terms_` or a
            `count_potential_`.

        Warns
        -----
        UserWarning
            If these are not the rows and weights of the fit.

        Notes
        -----
        tr(H⁻¹ J) is the effective number of parameters, with the information H and the products of
        the scores J of `inference`. Each pair enters the pseudo-likelihood twice, once for each of
        its columns, so the trace is about 2 for each coupling. With a number ``alpha > 0`` H
        contains the penalty. With ``alpha="auto"`` the criterion is that of the estimate without
        the penalty, as in `inference`. With ``objective="likelihood"``, l, H and J are those of the
        likelihood, and the trace is about 1 for each coupling. After a sparse penalty, and with a
        mask `edges`, H and J are those of the couplings that are not 0, without the penalty, as if
        the others had been known to be 0.

        For rows that EM has completed, H and J are those of `inference`, and the trace is only
        close to the bias of l.

        References
        ----------
        .. [1] C. Varin and P. Vidoni, "A Note on Composite Likelihood Inference and Model
           Selection", Biometrika 92(3), 519–528, 2005. https://doi.org/10.1093/biomet/92.3.519

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_boltz import FVBMPseudoLikelihood
        >>> X = np.random.default_rng(0).choice([-1, 1], size=(200, 8))
        >>> alphas = [0.01, 0.1, 1.0]
        >>> models = [FVBMPseudoLikelihood(alpha=alpha).fit(X) for alpha in alphas]
        >>> min(models, key=lambda model: model.aic(X)).alpha  # there is nothing to be found
        1.0
        """
        deviance, n_parameters, _ = self._criterion(X, sample_weight)
        return deviance + 2 * n_parameters

    @validate_arguments(ROWS)
    def bic(self, X, sample_weight=None):
        """Return the Bayesian information criterion; the lower, the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data; NaN is a missing cell.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.

        Returns
        -------
        bic : float
            -2 l + ln(N) tr(H⁻¹ J) [1]_, with l and the trace as in `aic`, and N the sum of the
            weights of rows.

        References
        ----------
        .. [1] X. Gao and P. X.-K. Song, "Composite Likelihood Bayesian Information Criteria for
           Model Selection in High-Dimensional Data", Journal of the American Statistical
           Association 105(492), 1531–1540, 2010. https://doi.org/10.1198/jasa.2010.tm09414
        """
        return self.ebic(X, sample_weight, gamma=0.0)

    @validate_arguments(ROWS | {"gamma": [Interval(Real, 0, None, closed="left"), None]})
    def ebic(self, X, sample_weight=None, *, gamma=None):
        """Return the extended Bayesian information criterion; the lower, the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data; NaN is a missing cell.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit.
        gamma : float, default=None
            The weight γ of the last term, which grows with the number of possible couplings. With 0
            the criterion is `bic`. None means the parameter `ebic_gamma`.

        Returns
        -------
        ebic : float
            -2 l + ln(N) tr(H⁻¹ J) + 4 γ E ln(d - 1), with E the number of pairs of columns whose
            coupling is not 0 and d the number of columns; the rest as in `bic`.

        Notes
        -----
        The last term is that of the Gaussian graphical model [1]_, with d - 1 in place of d as in
        eLasso [2]_, which counts each of the E pairs at both of its columns.

        References
        ----------
        .. [1] R. Foygel and M. Drton, "Extended Bayesian Information Criteria for Gaussian
           Graphical Models", Advances in Neural Information Processing Systems 23, 2010.
        .. [2] C. D. van Borkulo et al., "A New Method for Constructing Networks from Binary Data",
           Scientific Reports 4, 5918, 2014. https://doi.org/10.1038/srep05918
        """
        gamma = self.ebic_gamma if gamma is None else gamma
        deviance, n_parameters, n_rows = self._criterion(X, sample_weight)
        n_edges = int(np.triu(self._pair_norms() > 0, 1).sum())
        edges = 4 * gamma * n_edges * np.log(max(self.n_features_in_ - 1, 1))
        return float(deviance + np.log(n_rows) * n_parameters + edges)

    def _criterion(self, X, sample_weight):
        """-2 l, the effective number of parameters, and the number of rows."""
        check_is_fitted(self)
        codes, weights = self._counted(X, sample_weight)
        model = self._without_penalty(codes, weights)
        n_parameters = model._cached(
            "effective_parameters",
            lambda: model._n_effective(codes, weights),
            *(codes, weights),
        )
        return -2 * model._log_likelihood_of(codes, weights), n_parameters, weights.sum()

    def _n_effective(self, codes, weights):
        """tr(H⁻¹ J)."""
        return self._curvature(codes, weights)[0].effective_parameters()

    def _counted(self, X, sample_weight):
        """The codes of rows that count, and their weights; a warning if they are not the fit's."""
        codes, _ = self._codes(X)
        codes, weights = informative(codes, checked_weights(sample_weight, codes))
        self._warn_of_other_rows(codes, weights)
        return codes, weights

    def _log_likelihood_of(self, codes, weights):
        """The sum over rows of what the fit is about, the likelihood or the pseudo-likelihood."""
        if self.objective == "likelihood":
            rows = self._model().log_weight(codes) - self.log_partition_
        else:
            rows = self._model().log_pseudo_likelihood(codes)
        return float(weights @ rows)

    @validate_arguments(ROWS | {"other": [BaseBoltzmann]})
    def likelihood_ratio(self, X, other, sample_weight=None):
        """Test a smaller network against this one by the composite likelihood ratio.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training data of both, without missing cells.
        other : FVBMPseudoLikelihood
            A network of the same columns, fitted to the same rows, with fewer couplings: those of
            its mask `edges` must be among those of this network.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of both fits.

        Returns
        -------
        test : HypothesisTest
            With ``statistic, df, p_value, weights``.

        Raises
        ------
        ValueError
            If the networks are not nested, or were penalised differently.

        Warns
        -----
        UserWarning
            If these are not the rows and weights of both fits.

        Notes
        -----
        The statistic is twice the difference of the log pseudo-likelihoods, summed over the rows,
        less the penalties. If the smaller network is true, it is asymptotically a weighted sum of
        independent chi-squared variables of one degree of freedom. The weights are the eigenvalues
        of ((H⁻¹)_f)⁻¹ (H⁻¹ J H⁻¹)_f, with f the couplings that are 0 in the smaller network [1]_,
        and H and J those of the jackknife, see `inference`. With ``alpha="auto"`` the estimates are
        those without the penalty. If the data separate one of the couplings f, for example as two
        values never occur together, the weights are not known, and they and `p_value` are NaN: in
        simulations with the weights at the smaller network a test at 5 % rejected up to 23 % of
        true hypotheses.

        References
        ----------
        .. [1] C. Varin, N. Reid and D. Firth, "An Overview of Composite Likelihood Methods",
           Statistica Sinica 21(1), 5–42, 2011.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        self._check_unselected()
        self._check_pairwise()
        codes, weights = self._counted(X, sample_weight)
        if (codes < 0).any():
            raise ValueError(
                f"{type(self).__name__}.likelihood_ratio: X has missing cells, for which there is "
                "no likelihood ratio. Use inference(X).wald_test, which has these, too."
            )
        if not isinstance(other, Comparison):
            raise self._not_nested(f"the other is a {type(other).__name__}")
        model = self._without_penalty(codes, weights)
        other._warn_of_other_rows(codes, weights)
        other = other._without_penalty(codes, weights)
        dropped = model._dropped(other)
        statistic = 2 * (model._objective(codes, weights) - other._objective(codes, weights))
        if statistic < -2 * max(self.tol, other.tol):
            raise ValueError(
                f"{type(self).__name__}.likelihood_ratio: the smaller network has the higher "
                f"pseudo-likelihood, by {-statistic / 2:.3g} nats. Fit both to these rows, with "
                "these weights, until they converge."
            )
        curvature, _ = model._curvature(codes, weights, jackknife=True)
        fixed = dropped[tuple(curvature.columns)]
        if not fixed.any():
            raise self._not_nested("none of the couplings that the other lacks is determined")
        statistic, df = max(float(statistic), 0.0), int(fixed.sum())
        if curvature.is_separated()[fixed].any():
            return HypothesisTest(statistic, df, np.nan, np.full(df, np.nan))
        shares = likelihood_ratio_weights(curvature, fixed)
        return HypothesisTest(statistic, df, weighted_chi2_sf(statistic, shares), shares)

    def _objective(self, codes, weights):
        """What the fit maximises, summed over complete rows."""
        squares = np.vdot(self.coupling_, self.coupling_) / (4 if self._coding.is_binary else 16)
        penalty = self._ridge() * weights.sum() * squares
        return self._log_likelihood_of(codes, weights) - penalty

    def _dropped(self, other):
        """Which couplings of this network another one lacks, (d, d); an error if not nested."""
        other._check_unselected()
        other._check_pairwise()
        if self._input_names() != other._input_names() or not np.array_equal(
            self._coding.n_values, other._coding.n_values
        ):
            raise self._not_nested("they have different columns, or columns of different values")
        if self.objective != other.objective:
            raise self._not_nested("one maximises the likelihood and one the pseudo-likelihood")
        if not np.isclose(self._ridge(), other._ridge(), rtol=SAME, atol=0):
            raise self._not_nested(
                f"their penalties are different: alpha is {self._ridge():g} and {other._ridge():g}"
            )
        everything = ~np.eye(self.n_features_in_, dtype=bool)
        ours, theirs = (
            everything & (True if free is None else free)
            for free in (self._free_pairs(), other._free_pairs())
        )
        more = np.argwhere(theirs & ~ours)
        if len(more):
            one, two = (self._column(j) for j in more[0])
            raise self._not_nested(f"the other couples {one} with {two}, and this one does not")
        if (ours == theirs).all():
            raise self._not_nested("both have the same couplings")
        return ours & ~theirs

    def _not_nested(self, reason):
        """The error of networks of which one is not within the other."""
        return ValueError(
            f"{type(self).__name__}.likelihood_ratio: {reason}. Fit both to the same columns, with "
            "the same objective and alpha, and the other with fewer pairs in `edges`."
        )
