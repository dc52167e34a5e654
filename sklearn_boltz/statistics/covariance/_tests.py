"""Tests of several parameters at once."""

from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import quad
from scipy.linalg import eigh, null_space
from scipy.optimize import minimize_scalar
from scipy.special import chdtrc

from sklearn_boltz.statistics.covariance._curvature import SEPARATED

# Share of the greatest variance, below which a direction has none.
RANK_TOL = 1e-9


@dataclass(frozen=True)
class HypothesisTest:
    """A test of several parameters at once.

    The result of `PairwiseInference.wald_test` and
    :func:`~sklearn_boltz.statistics.likelihood_ratio`.

    Parameters
    ----------
    statistic : float
        The value of the test statistic.
    df : int
        Number of parameters that the hypothesis fixes, without those that follow from others.
    p_value : float
        Probability of a statistic at least as large, if the hypothesis is true.
    weights : ndarray of shape (df,)
        The statistic is asymptotically a sum of independent squared standard normal variables with
        these weights. All are 1 where it has a chi-squared distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(500, 3))
    >>> inference = statistics.inference(FVBMPseudoLikelihood().fit(X), X)
    >>> test = inference.wald_test(["m[x0,x1]", "m[x0,x2]"])
    >>> test.df
    2
    >>> bool(test.p_value > 0.05)
    True
    """

    statistic: float
    df: int
    p_value: float
    weights: np.ndarray = field(repr=False)


def determined(directions, covariance, least):
    """Weighted sums of parameters that no direction changes, (n_parameters, n_sums), orthonormal.

    Those with a variance of less than `least` are left out: they follow from others.
    """
    sums = null_space(directions.T, rcond=SEPARATED)
    variances, axes = np.linalg.eigh(sums.T @ covariance @ sums)
    return sums @ axes[:, variances > least]


def wald_test(difference, covariance):
    """Test whether parameters differ from a hypothesis by what they do; NaN if there are none.

    The covariance may be singular: the hypothesis is then about as many parameters as its rank.
    """
    if not len(difference):
        return HypothesisTest(np.nan, 0, np.nan, np.zeros(0))
    scale = np.sqrt(covariance.diagonal())
    variances, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = variances > RANK_TOL * variances.max(initial=0)
    z = (directions.T @ (difference / scale))[kept] / np.sqrt(variances[kept])
    statistic, df = float(z @ z), int(kept.sum())
    return HypothesisTest(statistic, df, float(chdtrc(df, statistic)), np.ones(df))


def likelihood_ratio_weights(curvature, fixed):
    """Weights of the squared normal variables of a composite likelihood ratio, (fixed.sum(),).

    The eigenvalues of ((H⁻¹)_f)⁻¹ (H⁻¹ J H⁻¹)_f, with f what the smaller model fixes, by the
    `Curvature` of the larger one.
    """
    block = np.ix_(fixed, fixed)
    inverse = curvature.solve(np.eye(len(fixed))[:, fixed])[fixed]
    return eigh(curvature.covariance()[block], (inverse + inverse.T) / 2, eigvals_only=True)


def weighted_chi2_sf(x, weights):
    """Probability that Σ_j λ_j Z_j² exceeds x, with λ_j > 0 and independent standard normal Z_j.

    With K(t) = -½ Σ_j ln(1 - 2 λ_j t), it is the integral of exp(K(t) - x t) / (2πi t) along a path
    that crosses the real axis between 0 and 1 / (2 max λ_j). The path here is a parabola, which
    crosses where the integrand is least, at the saddle point, and has the branch points of K on its
    other side, so that the integrand decays like exp(-x Re t) without oscillating much (S. O. Rice,
    SIAM J. Sci. Stat. Comput. 1, 438–448, 1980). The relative error is small, also far in the tail.
    """
    if not x > 0:
        return 1.0
    weights = np.asarray(weights, dtype=np.float64)
    x, weights = x / weights.max(), weights / weights.max()

    def exponent(t):
        return -np.log(1 - 2 * np.multiply.outer(t, weights)).sum(axis=-1) / 2 - x * t

    def height(t):
        return exponent(t) - np.log(t)

    found = minimize_scalar(height, bounds=(0, 0.5), method="bounded", options={"xatol": 1e-9})
    crossing = min(max(found.x, 1e-12), 0.5 - 1e-12)
    peak, distance = height(crossing), 0.5 - crossing

    def integrand(u):
        # 1/2 - t = distance (1 + iu)², so that t goes to +∞ on both sides.
        t = 0.5 - distance * (1 + 1j * u) ** 2
        value = np.exp(exponent(t) - np.log(t) - peak) * (1 + 1j * u)
        return value.real

    total, _ = quad(integrand, 0, np.inf, limit=500, epsabs=1e-13, epsrel=1e-10)
    return float(min(1.0, 2 * distance / np.pi * np.exp(peak) * total))
