"""Comparison of networks: information criteria, and the likelihood ratio test."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.networks._network import Network
from sklearn_boltz.statistics._arguments import counted, of_network, warn_of_other_rows
from sklearn_boltz.statistics._standard_errors import check_unselected
from sklearn_boltz.statistics.covariance._network import check_pairwise, find_curvature
from sklearn_boltz.statistics.covariance._tests import (
    HypothesisTest,
    likelihood_ratio_weights,
    weighted_chi2_sf,
)

ROWS = {"X": ["array-like"], "sample_weight": ["array-like", None]}
# The share by which a penalty of two fits may differ for rounding.
SAME = 1e-9


@of_network(ROWS)
def aic(network, X, sample_weight=None):
    """Return Akaike's information criterion; the lower, the better.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
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
    its columns, so the trace is about 2 for each coupling. With a number ``alpha > 0`` H contains
    the penalty. With ``alpha="auto"`` the criterion is that of the estimate without the penalty, in
    ordinal columns and bins with a trend for each pair, as in `inference`. With `MaximumEntropy`,
    l, H and J are those of the likelihood, and the trace is about 1 for each coupling. After a
    sparse penalty, and with a mask `edges`, H and J are those of the couplings that are not 0,
    without the penalty, as if the others had been known to be 0. Of smooth functions they are those
    of their coefficients, as if the shares of bins had been known: compare such networks with each
    other.

    For rows that EM has completed, H and J are those of `inference`, and the trace is only
    close to the bias of l.

    References
    ----------
    .. [1] C. Varin and P. Vidoni, "A Note on Composite Likelihood Inference and Model
       Selection", Biometrika 92(3), 519–528, 2005. https://doi.org/10.1093/biomet/92.3.519

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(200, 8))
    >>> alphas = [0.01, 0.1, 1.0]
    >>> models = [FVBMPseudoLikelihood(alpha=alpha).fit(X) for alpha in alphas]
    >>> min(models, key=lambda model: statistics.aic(model, X)).alpha  # nothing to be found
    1.0
    """
    deviance, n_parameters, _ = criterion(network, X, sample_weight)
    return deviance + 2 * n_parameters


@of_network(ROWS)
def bic(network, X, sample_weight=None):
    """Return the Bayesian information criterion; the lower, the better.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
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

    Examples
    --------
    Two of the columns interact. The criterion prefers the network of this pair alone.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 4))
    >>> X[:, 1] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.3, 0.7])
    >>> everything = FVBMPseudoLikelihood(alpha=0).fit(X)
    >>> pair = SparseFVBM(edges=[(0, 1)], alpha=0).fit(X)
    >>> round(float(statistics.bic(pair, X) - statistics.bic(everything, X)))
    -52
    """
    return ebic(network, X, sample_weight, gamma=0.0)


@of_network(ROWS | {"gamma": [Interval(Real, 0, None, closed="left")]})
def ebic(network, X, sample_weight=None, *, gamma=0.25):
    """Return the extended Bayesian information criterion; the lower, the better.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    X : array-like of shape (n_samples, n_features)
        The training data; NaN is a missing cell.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the fit.
    gamma : float, default=0.25
        The weight γ of the last term, which grows with the number of possible couplings. With 0
        the criterion is `bic`.

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

    Examples
    --------
    The greater γ, the more it costs to keep all pairs of these independent columns.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(500, 4))
    >>> model = FVBMPseudoLikelihood(alpha=0).fit(X)
    >>> [round(float(statistics.ebic(model, X, gamma=gamma))) for gamma in (0, 0.25, 0.5)]
    [2846, 2852, 2859]
    """
    deviance, n_parameters, n_rows = criterion(network, X, sample_weight)
    n_edges = int(np.triu(network._pair_norms() > 0, 1).sum())
    edges = 4 * gamma * n_edges * np.log(max(network.n_features_in_ - 1, 1))
    return float(deviance + np.log(n_rows) * n_parameters + edges)


def criterion(network, X, sample_weight):
    """-2 l, the effective number of parameters, and the number of rows."""
    codes, weights = counted(network, X, sample_weight)
    model = network._unpenalised(codes, weights)
    n_parameters = model._cached(
        "effective_parameters",
        lambda: find_curvature(model, codes, weights)[0].effective_parameters(),
        *(codes, weights),
    )
    return -2 * log_likelihood(model, codes, weights), n_parameters, weights.sum()


def log_likelihood(network, codes, weights):
    """Objective of the fit summed over rows: the likelihood or the pseudo-likelihood."""
    if network._objective == "likelihood":
        rows = network._model().log_weight(codes) - network.log_partition_
    else:
        rows = network._model().log_pseudo_likelihood(codes)
    return float(weights @ rows)


@of_network(ROWS | {"other": [BaseEstimator]})
def likelihood_ratio(network, X, other, sample_weight=None):
    """Test a smaller network against this one by the composite likelihood ratio.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
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
    The statistic is twice the difference of the log pseudo-likelihoods, summed over the rows, less
    the penalties. If the smaller network is true, it is asymptotically a weighted sum of
    independent chi-squared variables of one degree of freedom. The weights are the eigenvalues of
    ((H⁻¹)_f)⁻¹ (H⁻¹ J H⁻¹)_f, with f the couplings that are 0 in the smaller network [1]_, and H
    and J those of the jackknife, see `inference`. With ``alpha="auto"`` the estimates are those
    without the penalty. If the data separate one of the couplings f, for example because two values
    never occur together, the weights are not known, and they and `p_value` are NaN: in simulations
    with the weights at the smaller network a test at 5 % rejected up to 23 % of true hypotheses.

    References
    ----------
    .. [1] C. Varin, N. Reid and D. Firth, "An Overview of Composite Likelihood Methods",
       Statistica Sinica 21(1), 5–42, 2011.

    Examples
    --------
    The first column interacts with the second, and the second with the third. Whether the first
    also interacts with the third is a hypothesis about one coupling:

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = np.cumprod(rng.choice([-1, 1], size=(500, 3), p=[0.3, 0.7]), axis=1)
    >>> everything = FVBMPseudoLikelihood(alpha=0).fit(X)
    >>> chain = SparseFVBM(edges=[(0, 1), (1, 2)], alpha=0).fit(X)
    >>> test = statistics.likelihood_ratio(everything, X, chain)
    >>> test.df, round(float(test.p_value), 2)
    (1, 0.44)
    """
    check_is_fitted(other)
    check_unselected(network)
    check_pairwise(network)
    codes, weights = counted(network, X, sample_weight)
    if (codes < 0).any():
        raise ValueError(
            "likelihood_ratio: X has missing cells, for which there is no likelihood ratio. Use "
            "the Wald test of statistics.inference, which takes these, too."
        )
    if not isinstance(other, Network):
        raise not_nested(f"the other is a {type(other).__name__}")
    model = network._unpenalised(codes, weights)
    warn_of_other_rows(other, codes, weights)
    other = other._unpenalised(codes, weights)
    dropped = dropped_pairs(model, other)
    statistic = 2 * (objective_of(model, codes, weights) - objective_of(other, codes, weights))
    if statistic < -2 * max(network.tol, other.tol):
        raise ValueError(
            f"likelihood_ratio: the smaller network has the higher "
            f"pseudo-likelihood, by {-statistic / 2:.3g} nats. Fit both to these rows, with "
            "these weights, until they converge."
        )
    curvature, _ = find_curvature(model, codes, weights, jackknife=True)
    fixed = dropped[tuple(curvature.columns)]
    if not fixed.any():
        raise not_nested("none of the couplings that the other lacks is determined")
    statistic, df = max(float(statistic), 0.0), int(fixed.sum())
    if curvature.is_separated()[fixed].any():
        return HypothesisTest(statistic, df, np.nan, np.full(df, np.nan))
    shares = likelihood_ratio_weights(curvature, fixed)
    return HypothesisTest(statistic, df, weighted_chi2_sf(statistic, shares), shares)


def objective_of(network, codes, weights):
    """Objective of the fit, summed over complete rows."""
    squares = np.vdot(network.coupling_, network.coupling_) / (
        4 if network._encoder.coding.is_binary else 16
    )
    penalty = network._ridge() * weights.sum() * squares
    return log_likelihood(network, codes, weights) - penalty


def dropped_pairs(network, other):
    """Which couplings of this network another one lacks, (d, d); an error if not nested."""
    check_unselected(other)
    check_pairwise(other)
    if network._input_names() != other._input_names() or not np.array_equal(
        network.n_values_, other.n_values_
    ):
        raise not_nested("they have different columns, or columns of different values")
    if (network._trends is None) != (other._trends is None):
        raise not_nested("one has trends of ordinal columns, and the other all their couplings")
    if network._objective != other._objective:
        raise not_nested("one maximises the likelihood and one the pseudo-likelihood")
    if not np.isclose(network._ridge(), other._ridge(), rtol=SAME, atol=0):
        alphas = f"{network._ridge():g} and {other._ridge():g}"
        raise not_nested(f"their penalties are different: alpha is {alphas}")
    everything = ~np.eye(network.n_features_in_, dtype=bool)
    ours, theirs = (
        everything & (True if free is None else free)
        for free in (network._free_pairs(), other._free_pairs())
    )
    more = np.argwhere(theirs & ~ours)
    if len(more):
        one, two = (network._column(j) for j in more[0])
        raise not_nested(f"the other couples {one} with {two}, and this one does not")
    if (ours == theirs).all():
        raise not_nested("both have the same couplings")
    return ours & ~theirs


def not_nested(reason):
    """The error of networks of which one is not within the other."""
    return ValueError(
        f"likelihood_ratio: {reason}. Fit both to the same columns, with "
        "the same objective and alpha, and the other with fewer pairs in `edges`."
    )
