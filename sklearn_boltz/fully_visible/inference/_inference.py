"""Standard errors, tests and intervals of the maximum pseudo-likelihood estimate."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.stats import false_discovery_control, norm


def sandwich_covariance(problem, point):
    """H⁻¹ J H⁻¹, with H the information and J the sum of the products of the scores.

    As both are sums over the rows, this is the covariance of the estimate itself.
    """
    # Both matrices are symmetric and large: transposed, LAPACK works on them in place.
    try:
        factor = cho_factor(
            problem.information(point).T, lower=True, overwrite_a=True, check_finite=False
        )
    except LinAlgError as error:
        raise ValueError(
            "The information matrix is singular: the data do not determine all parameters. "
            "Use more data, or fit with alpha > 0."
        ) from error
    half = cho_solve(factor, problem.score_products(point).T, overwrite_b=True, check_finite=False)
    covariance = cho_solve(factor, half.T, check_finite=False)
    covariance += covariance.T.copy()
    covariance /= 2
    return covariance


def holm(p_value):
    """P values adjusted by Holm's step-down method.

    The k-th smallest of m, times m - k + 1, is compared with the level while all before it
    have been rejected: hence the running maximum.
    """
    order = np.argsort(p_value)
    factors = np.arange(len(p_value), 0, -1)
    adjusted = np.empty(len(p_value))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_value[order] * factors), 1)
    return adjusted


@dataclass(frozen=True, repr=False)
class PairwiseInference:
    """Estimates of a fully visible Boltzmann machine with their uncertainty.

    What `FVBMPseudoLikelihood.inference` returns. The parameters are in the order
    b_1, ..., b_d, m_12, m_13, ..., m_{d-1,d}.

    Parameters
    ----------
    estimate : ndarray of shape (n_parameters,)
        The estimates.
    covariance : ndarray of shape (n_parameters, n_parameters)
        Their asymptotic covariance.
    names : ndarray of str of shape (n_parameters,)
        ``b[x0]`` for an intercept, ``m[x0,x1]`` for a coupling.
    null : ndarray of shape (n_parameters,)
        The values under the null hypotheses.
    confidence_level : float
        Level of the confidence intervals.
    n_samples : float
        Number of rows, or the sum of their weights.
    n_values : ndarray of shape (n_features,) or None
        Number of values of each variable; None if all are binary.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> result = FVBMPseudoLikelihood().fit(X).inference(X)
    >>> result.names[result.adjusted_p_value("fdr_bh") < 0.01]
    array(['m[x0,x2]'], dtype=object)
    """

    estimate: np.ndarray
    covariance: np.ndarray
    names: np.ndarray
    null: np.ndarray
    confidence_level: float
    n_samples: float
    n_values: np.ndarray | None

    @property
    def std_err(self):
        """Standard errors, ndarray of shape (n_parameters,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def z(self):
        """Wald statistics, ndarray of shape (n_parameters,)."""
        return (self.estimate - self.null) / self.std_err

    @property
    def p_value(self):
        """Two-sided p values of the Wald statistics, ndarray of shape (n_parameters,)."""
        return 2 * norm.sf(np.abs(self.z))

    @property
    def ci_low(self):
        """Lower ends of the confidence intervals, ndarray of shape (n_parameters,)."""
        return self.estimate - norm.isf((1 - self.confidence_level) / 2) * self.std_err

    @property
    def ci_high(self):
        """Upper ends of the confidence intervals, ndarray of shape (n_parameters,)."""
        return self.estimate + norm.isf((1 - self.confidence_level) / 2) * self.std_err

    def adjusted_p_value(self, method="holm"):
        """Adjust the p values for their number.

        Parameters
        ----------
        method : {"holm", "fdr_bh"}, default="holm"
            Holm's step-down method, which controls the probability of any false rejection, or
            Benjamini and Hochberg's, which controls the expected share of false ones.

        Returns
        -------
        p_value : ndarray of shape (n_parameters,)
            The adjusted values; NaN where there is no p value.
        """
        if method not in ("holm", "fdr_bh"):
            raise ValueError(f"method must be 'holm' or 'fdr_bh', got {method!r}.")
        p_value = self.p_value
        known = np.isfinite(p_value)
        if not known.any():
            return p_value
        adjust = {"holm": holm, "fdr_bh": false_discovery_control}[method]
        p_value[known] = adjust(p_value[known])
        return p_value

    def coupling_matrix(self, values):
        """Arrange values of the parameters like the matrix of couplings.

        Parameters
        ----------
        values : array-like of shape (n_parameters,)
            For example `p_value`.

        Returns
        -------
        matrix : ndarray of the shape of `coupling_`
            Symmetric, NaN on the diagonal, or in the blocks of one and the same variable.
        """
        values = np.asarray(values, dtype=np.float64)
        if self.n_values is not None:
            from sklearn_boltz.fully_visible.inference._categorical import as_matrices

            return as_matrices(values, self.n_values)[0]
        d = round((np.sqrt(8 * len(values) + 1) - 1) / 2)
        matrix = np.full((d, d), np.nan)
        j, k = np.triu_indices(d, 1)
        matrix[j, k] = matrix[k, j] = values[d:]
        return matrix

    def contrast(self, weights):
        """Return the inference on a weighted sum of parameters.

        Parameters
        ----------
        weights : dict
            From names of parameters to weights. For example, ``{"m[x0=1,x1=2]": 1,
            "m[x0=1,x1=0]": -1}`` asks whether value 1 of x0 goes with 2 of x1 more than with 0.

        Returns
        -------
        inference : PairwiseInference
            Of this single parameter, with 0 as its value under the null hypothesis.
        """
        names = self.names.tolist()
        unknown = [name for name in weights if name not in names]
        if unknown or not weights:
            raise ValueError(f"weights must name parameters, as in `names`: {weights!r}.")
        vector = np.zeros(len(names))
        for name, weight in weights.items():
            vector[names.index(name)] = weight
        used = np.flatnonzero(vector)
        part = vector[used]
        text = " ".join(f"{weight:+g} {name}" for name, weight in weights.items())
        return replace(
            self,
            estimate=np.array([part @ self.estimate[used]]),
            covariance=np.atleast_2d(part @ self.covariance[np.ix_(used, used)] @ part),
            names=np.array([text], dtype=object),
            null=np.zeros(1),
            n_values=None,
        )

    def to_frame(self):
        """Return all but the covariance as a table; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each parameter, with its name as the index.

        Raises
        ------
        ImportError
            If pandas is not installed. The columns are there without it, as attributes.

        Notes
        -----
        ``frame.to_latex(escape=True, float_format="%.3f")`` is a LaTeX table in the style of the
        booktabs package, and ``frame.style`` formats each column by itself. Both need Jinja2.
        """
        try:
            from pandas import DataFrame, Index
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed: run `pip install pandas`, or use "
                "the attributes, such as `estimate` and `std_err`."
            ) from error

        columns = ("estimate", "std_err", "null", "z", "p_value", "ci_low", "ci_high")
        return DataFrame(
            {name: getattr(self, name) for name in columns},
            index=Index(self.names, name="parameter"),
        )

    def __str__(self):
        width = max(len("parameter"), *(len(name) for name in self.names))
        interval = f"{100 * self.confidence_level:g} % interval"
        lines = [
            "Fully visible Boltzmann machine, maximum pseudo-likelihood",
            f"{self.n_samples:g} samples, {len(self.estimate)} parameters, sandwich errors",
            "",
            f"{'parameter':<{width}} {'estimate':>10} {'std err':>9} {'z':>8} {'p':>9}"
            f"  {interval:>21}",
        ]
        columns = (self.estimate, self.std_err, self.z, self.p_value, self.ci_low, self.ci_high)
        for name, m, se, z, p, low, high in zip(self.names, *columns, strict=True):
            ends = f"[{low:.4f}, {high:.4f}]"
            lines.append(f"{name:<{width}} {m:>10.4f} {se:>9.4f} {z:>8.2f} {p:>9.2g}  {ends:>21}")
        return "\n".join(lines)

    __repr__ = __str__
