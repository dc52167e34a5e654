"""Standard errors, tests and intervals of the estimates of a network."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations

import numpy as np
from scipy.stats import chi2, false_discovery_control, norm

from sklearn_boltz.networks.model._gauge import block_entries
from sklearn_boltz.statistics._results import (
    NetworkParameters,
    pair_frame,
    pair_matrix,
    parameter_frame,
)
from sklearn_boltz.statistics.covariance._curvature import changed
from sklearn_boltz.statistics.covariance._tests import (
    RANK_TOL,
    determined,
    wald_test,
)

# What the Wald test of a pair gives, in the order of the table of pairs.
FIGURES = "coupling", "std_err", "ci_low", "ci_high", "df", "statistic", "p_value"


def holm(p_value):
    """Adjust p values by Holm's step-down method.

    The k-th smallest of m, times m - k + 1, is compared with the level while all before it
    have been rejected: hence the running maximum.
    """
    order = np.argsort(p_value)
    factors = np.arange(len(p_value), 0, -1)
    adjusted = np.empty(len(p_value))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_value[order] * factors), 1)
    return adjusted


def adjust_p_values(p_value, method):
    """Adjust p values for their number by "holm" or "fdr_bh"; NaN where there is none."""
    if method not in ("holm", "fdr_bh"):
        raise ValueError(f"method must be 'holm' or 'fdr_bh', got {method!r}.")
    adjust = {"holm": holm, "fdr_bh": false_discovery_control}[method]
    adjusted, known = p_value.copy(), np.isfinite(p_value)
    if known.any():
        adjusted[known] = adjust(p_value[known])
    return adjusted


def parameter_names(entries, n_values=None):
    """``b[x0]`` and ``m[x0,x1]``, or ``b[x0=2]`` and ``m[x0=2,x1=0]``, in their order.

    `entries` are names of columns, or with `n_values` lists of what their values are called.
    """
    pairs = np.triu_indices(len(entries), 1)
    if n_values is not None:
        entries, pairs = list(chain(*entries)), block_entries(n_values)
    names = [f"b[{name}]" for name in entries]
    names += [f"m[{entries[j]},{entries[k]}]" for j, k in zip(*pairs, strict=True)]
    return np.array(names, dtype=object)


def turned_round(name):
    """Names of a coupling with its variables swapped, for each comma that may separate them.

    The name of a variable may have commas, too.
    """
    if not isinstance(name, str) or not (name.startswith("m[") and name.endswith("]")):
        return []
    parts = name[2:-1].split(",")
    return [f"m[{','.join(parts[cut:])},{','.join(parts[:cut])}]" for cut in range(1, len(parts))]


@dataclass(frozen=True, repr=False)
class PairwiseInference(NetworkParameters):
    """Estimates of a fully visible Boltzmann machine with their uncertainty.

    The result of :func:`~sklearn_boltz.statistics.inference`. The parameters are in the order
    b_1, ..., b_d, m_12, m_13, ..., m_{d-1,d}.

    Parameters
    ----------
    estimate : ndarray of shape (n_parameters,)
        The estimates.
    limit_covariance : ndarray of shape (n_parameters, n_parameters)
        Their asymptotic covariance; with `directions`, that of their part outside of these.
    directions : ndarray of shape (n_parameters, n_directions)
        Directions in which the maximum is at infinity, for example because two values never occur
        together. The data have no information on the parameters along them.
    names : ndarray of str of shape (n_parameters,)
        ``b[x0]`` for an intercept, ``m[x0,x1]`` for a coupling.
    null : ndarray of shape (n_parameters,)
        The values under the null hypotheses.
    confidence_level : float
        Level of the confidence intervals.
    n_samples : float
        Number of rows, or the sum of their weights.
    n_values : ndarray of shape (n_features,) or None
        Number of values of each variable; None if all are binary. A number with normal scores
        counts as one value, besides its atoms.
    method : {"jackknife", "sandwich"}
        How the covariance was estimated.
    feature_names : ndarray of str of shape (n_features,) or None
        Names of the variables; None for a `contrast`.
    objective : {"pseudo-likelihood", "likelihood"}
        The objective that the estimates maximise.
    reasons : ndarray of str of shape (n_features, n_features)
        A remark on the test of a pair, or why there is none; mostly empty.
    untested : ndarray of bool of shape (n_features, n_features)
        The pairs without a test, for these reasons.
    falls : ndarray of shape (n_features, n_features)
        Factors of the Wald statistics of pairs, at most 1: how far the objective falls to where the
        pair has no coupling, relative to the parabola that Wald's test assumes.
    figures : dict of ndarray of shape (n_features, n_features)
        Entries of `to_frame` for pairs that do not follow from the covariance; NaN elsewhere.
    rows : Profile or None
        The rows, for tests of all couplings where those of pairs are of trends; otherwise None.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> result = statistics.inference(FVBMPseudoLikelihood().fit(X), X)
    >>> result.to_frame().query("adjusted_p_value < 0.01")["coupling"].round(1)
    one  other
    x0   x2       0.7
    Name: coupling, dtype: float64
    """

    estimate: np.ndarray
    limit_covariance: np.ndarray
    directions: np.ndarray
    names: np.ndarray
    null: np.ndarray
    confidence_level: float
    n_samples: float
    n_values: np.ndarray | None
    method: str
    feature_names: np.ndarray | None
    objective: str
    reasons: np.ndarray
    untested: np.ndarray
    falls: np.ndarray
    figures: dict
    rows: object

    @cached_property
    def separated(self):
        """Which parameters `directions` change, ndarray of bool of shape (n_parameters,).

        The data separate them: they have an estimate, and neither errors nor tests.
        """
        return changed(self.directions)

    @property
    def covariance(self):
        """The asymptotic covariance of the estimates, (n_parameters, n_parameters).

        NaN where a parameter is separated or was not estimated.
        """
        separated = self.separated
        return np.where(separated | separated[:, None], np.nan, self.limit_covariance)

    @property
    def std_err(self):
        """Standard errors, ndarray of shape (n_parameters,)."""
        return np.sqrt(np.where(self.separated, np.nan, self.limit_covariance.diagonal()))

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
        return self.estimate - self._quantile * self.std_err

    @property
    def ci_high(self):
        """Upper ends of the confidence intervals, ndarray of shape (n_parameters,)."""
        return self.estimate + self._quantile * self.std_err

    @cached_property
    def _quantile(self):
        """Half the width of an interval, in standard errors."""
        return norm.isf((1 - self.confidence_level) / 2)

    def adjusted_p_value(self, method="fdr_bh"):
        """P values of the pairs of variables, adjusted for the number of pairs.

        Parameters
        ----------
        method : {"fdr_bh", "holm"}, default="fdr_bh"
            ``"fdr_bh"`` is Benjamini and Hochberg's method, which controls the expected share of
            false rejections among all. ``"holm"`` is Holm's step-down method, which controls the
            probability of any false rejection.

        Returns
        -------
        p_value : ndarray of shape (n_features, n_features)
            Of `pair_p_value`, adjusted. A pair without a p value does not count.
        """
        return pair_matrix(adjust_p_values(upper(self.pair_p_value()), method), np.nan)

    def _blocks(self):
        """Places of the parameters of each variable, and then of each pair of variables."""
        first, second = self.columns
        starts = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(second, prepend=-1))
        return np.split(np.arange(len(first)), starts[1:])

    def _places_of(self, parameters):
        """Places of parameters given by their names, by two variables, or by a mask."""
        is_one = isinstance(parameters, str) or not np.iterable(parameters)
        given = [parameters] if is_one else list(parameters)
        if len(given) == len(self.names) and all(
            isinstance(one, (bool, np.bool_)) for one in given
        ):
            return np.flatnonzero(given)
        names, places = self.names.tolist(), []
        for one in given:
            if isinstance(one, tuple):
                places.extend(self._places_of_pair(one))
            elif one in names:
                places.append(names.index(one))
            else:
                raise self._unknown(one, parameters)
        return np.unique(np.array(places, dtype=np.int64))

    def _unknown(self, name, parameters):
        """The error of a name that no parameter has, among those that were given."""
        variables = [] if self.feature_names is None else self.feature_names.tolist()
        remedy = "Give names as in `names`"
        if not isinstance(parameters, dict):
            remedy += f", tuples of the names of two columns, or {len(self.names)} booleans"
        remedy += "."
        if isinstance(parameters, tuple) and all(one in variables for one in parameters):
            remedy = f"For a pair of columns, give a list of tuples: [{parameters!r}]."
        turned = [one for one in turned_round(name) if one in self.names]
        if turned:
            remedy = f"It is called {turned[0]!r}."
        return ValueError(f"There is no parameter {name!r}. {remedy}")

    def _places_of_pair(self, pair):
        """Places of all couplings of two variables, given by their names."""
        variables = [] if self.feature_names is None else self.feature_names.tolist()
        unknown = [name for name in pair if name not in variables]
        if unknown or len(pair) != 2 or len(set(pair)) < 2:
            reason = f", and there is no column {unknown[0]!r}" if unknown else ""
            raise ValueError(f"A pair must be the names of two columns{reason}: {pair!r}.")
        j, k = sorted(map(variables.index, pair))
        first, second = self.columns
        places = np.flatnonzero((first == j) & (second == k))
        known = np.isfinite(self.limit_covariance.diagonal()[places])
        return places[known | ~known.any()].tolist()

    def wald_test(self, parameters):
        """Test whether some parameters all have their values under the null hypothesis.

        Parameters
        ----------
        parameters : str, list, or array-like of bool of shape (n_parameters,)
            Names of parameters as in `names`, and tuples of the names of two columns, which stand
            for all couplings of these; or a mask.

        Returns
        -------
        test : HypothesisTest
            The statistic is δᵀ C⁻¹ δ, with δ the estimates less their values under the hypothesis
            and C their covariance. It is asymptotically chi-squared. Parameters that others
            determine do not count in `df`, as in the blocks of variables with more than two values,
            whose rows and columns sum to 0. If the data separate some of the parameters, the test
            is restricted to what `directions` leave, a space of dimension `df`. If nothing is left,
            `statistic` and `p_value` are NaN, and `df` is 0.

        Raises
        ------
        ValueError
            If a parameter does not exist or was not estimated.
        """
        places = self._places_of(parameters)
        if not len(places):
            raise ValueError("wald_test needs at least one parameter.")
        unknown = np.isnan(self.limit_covariance.diagonal()[places])
        if unknown.any():
            raise ValueError(f"{self.names[places[unknown]][0]} is not estimated: leave it out.")
        return self._joint_test(places)

    def _joint_test(self, places):
        """The Wald test of the parameters at some places."""
        covariance = self.limit_covariance[np.ix_(places, places)]
        difference = (self.estimate - self.null)[places]
        if self.separated[places].any():
            least = RANK_TOL * np.nanmax(self.limit_covariance.diagonal())
            known = determined(self.directions[places], covariance, least)
            difference, covariance = known.T @ difference, known.T @ covariance @ known
        return wald_test(difference, covariance)

    def pair_p_value(self):
        """P values of the pairs of variables, of all couplings of each pair at once.

        Returns
        -------
        p_value : ndarray of shape (n_features, n_features)
            Symmetric; NaN on the diagonal, and where the rows have no information on a pair.
        """
        return self._pairs["p_value"].copy()

    @cached_property
    def _pairs(self):
        """Columns of `to_frame` for pairs, by name; ndarrays of shape (n_features, n_features)."""
        if self.n_values is None:  # each pair has one parameter
            known = np.isfinite(self.std_err)
            values = self.estimate, self.std_err, self.ci_low, self.ci_high, known, self.z**2
            values = [self.coupling_matrix(own) for own in (*values, self.p_value)]
            tables = dict(zip(FIGURES, values, strict=True))
        else:
            tables = self._of_blocks()
        tables["statistic"] *= self.falls
        p_value = chi2.sf(tables["statistic"], tables["df"])
        tables["p_value"] = np.where(self.falls < 1, p_value, tables["p_value"])
        for name, given in self.figures.items():
            tables[name] = np.where(np.isnan(given), tables.get(name, np.nan), given)
        for name in ("statistic", "p_value"):
            tables[name] = np.where(self.untested, np.nan, tables[name])
        return tables

    def _of_blocks(self):
        """The Wald tests of the couplings of each pair."""
        tables = np.full((len(FIGURES), *[len(self.n_values)] * 2), np.nan)
        for block in self._blocks():
            j, k = self.columns[:, block[0]]
            if j != k:
                tables[:, j, k] = tables[:, k, j] = self._pair(block)
        return dict(zip(FIGURES, tables, strict=True))

    def _pair(self, block):
        """The coupling of two variables, its error and interval if it is one number, and the test.

        `block` has the places of all their couplings.
        """
        known = block[np.isfinite(self.limit_covariance.diagonal()[block])]
        if not len(known):
            return (np.nan,) * 7
        test, norm = self._joint_test(known), np.linalg.norm(self.estimate[block])
        of_bits = (self.n_values[self.columns[:, block[0]]] <= 2).all()
        separated = self.separated[known].any()
        ends = error = np.nan
        # Parameters that are multiples of each other have a sign in common.
        if of_bits or (test.df == 1 and not separated):
            norm *= np.sign(self.estimate[known[-1]])
            if not separated:
                error = np.sqrt(self.limit_covariance.diagonal()[known].sum())
                ends = norm + self._quantile * error * np.array([-1, 1])
        return norm, error, *np.resize(ends, 2), test.df, test.statistic, test.p_value

    def contrast(self, weights):
        """Return the inference on a weighted sum of parameters.

        Parameters
        ----------
        weights : dict
            A weight for each name of a parameter. For example, ``{"m[x0=1,x1=2]": 1,
            "m[x0=1,x1=0]": -1}`` tests whether value 1 of x0 occurs more with 2 of x1 than with 0.

        Returns
        -------
        inference : PairwiseInference
            The inference on this single sum, with 0 as its value under the null hypothesis.
        """
        names = self.names.tolist()
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise self._unknown(unknown[0], weights)
        if not weights:
            raise ValueError("weights must name at least one parameter.")
        vector = np.zeros(len(names))
        for name, weight in weights.items():
            vector[names.index(name)] = weight
        used = np.flatnonzero(vector)
        part = vector[used]
        text = " ".join(f"{weight:+g} {name}" for name, weight in weights.items())
        return replace(
            self,
            estimate=np.array([part @ self.estimate[used]]),
            limit_covariance=np.atleast_2d(part @ self.limit_covariance[np.ix_(used, used)] @ part),
            directions=part[None] @ self.directions[used],
            names=np.array([text], dtype=object),
            null=np.zeros(1),
            n_values=None,
            feature_names=None,
        )

    def to_frame(self, method="fdr_bh", *, parameters=False):
        """Return the pairs of variables as a table, or all parameters; needs pandas.

        Parameters
        ----------
        method : {"fdr_bh", "holm"}, default="fdr_bh"
            How p values are adjusted for the number of pairs, see `adjusted_p_value`.
        parameters : bool, default=False
            Whether there is a row for each parameter instead, intercepts included.

        Returns
        -------
        frame : pandas.DataFrame
            The names of two columns are the index, and the columns are

            * `coupling`, the Frobenius norm of the couplings of the pair. If these are a single
              number, as of two binary variables, or of the trend of two ordinal ones, it has a
              sign, that of the coupling of the last values of both; and `std_err`, `ci_low` and
              `ci_high`. An interval with an infinite end is that of a coupling that the data
              separate;
            * `df`, `statistic` and `p_value` of the test that the pair has no coupling, and
              `adjusted_p_value`;
            * where the network has trends, `joint_df` and `joint_p_value` of the test of all
              couplings of a pair, with numbers in five groups;
            * `note`, a remark on the test, or why there is none.

            With `parameters`, their names are the index, and the columns are the attributes
            `estimate`, `std_err`, `null`, `z`, `p_value`, `ci_low` and `ci_high`.

        Raises
        ------
        ValueError
            For a result of `contrast`, which has no pairs, without `parameters`.
        ImportError
            If pandas is not installed. Without it, use the attributes of the same names.

        Notes
        -----
        ``frame.to_latex(escape=True, float_format="%.3f")`` makes a LaTeX table in the style of the
        booktabs package, and ``frame.style`` formats each column separately. Both need Jinja2.
        """
        if parameters:
            columns = "estimate", "std_err", "null", "z", "p_value", "ci_low", "ci_high"
            return parameter_frame(self.names, {name: getattr(self, name) for name in columns})
        if self.feature_names is None:
            raise ValueError("A contrast has no pairs of variables: use parameters=True.")
        return pair_frame(self.feature_names, self._table(method))

    def _table(self, method="fdr_bh"):
        """The columns of the table of pairs, each of shape (n_features, n_features)."""
        adjusted = {"adjusted_p_value": self.adjusted_p_value(method)}
        return self._pairs | adjusted | self._joint | {"note": self.reasons}

    @cached_property
    def _joint(self):
        """The tests of all couplings, where those of pairs are of trends."""
        return {} if self.rows is None else self.rows.joint_tests(self._pairs)

    def __str__(self):
        lines = [
            f"Fully visible Boltzmann machine, maximum {self.objective}",
            f"{self.n_samples:g} samples, {len(self.estimate)} parameters, {self.method} errors",
            "",
        ]
        if self.feature_names is None:
            lines += printed("parameter", self.names, [
                ("estimate", "{:.4f}", self.estimate), ("std err", "{:.4f}", self.std_err),
                *self._interval(self.ci_low, self.ci_high), ("p", "{:.2g}", self.p_value),
            ])  # fmt: skip
            return "\n".join(lines)
        pairs = [f"{one}, {other}" for one, other in combinations(self.feature_names, 2)]
        table = {name: upper(values) for name, values in self._table().items()}
        lines += printed("pair", pairs, [
            ("coupling", "{:.4f}", table["coupling"]), ("std err", "{:.4f}", table["std_err"]),
            *self._interval(table["ci_low"], table["ci_high"]), ("df", "{:.0f}", table["df"]),
            ("p", "{:.2g}", table["p_value"]), ("adjusted p", "{:.2g}", table["adjusted_p_value"]),
            ("", "{}", table["note"]),
        ])  # fmt: skip
        return "\n".join(lines)

    def _interval(self, low, high):
        """The column of intervals of a printed table."""
        ends = [
            "" if one != one else f"[{one:.4f}, {other:.4f}]"
            for one, other in zip(low, high, strict=True)
        ]
        return [(f"{100 * self.confidence_level:g} % interval", "{}", ends)]

    __repr__ = __str__


def upper(matrix):
    """The entries of a symmetric matrix above its diagonal."""
    return matrix[np.triu_indices(len(matrix), 1)]


def printed(title, names, columns):
    """Lines of a table: names on the left, and columns of a title, a format and values.

    NaN is left out.
    """
    width = max(map(len, [title, *names]))
    cells = [[name.ljust(width) for name in [title, *names]]]
    for head, style, values in columns:
        texts = [head, *("" if value != value else style.format(value) for value in values)]
        cells.append([text.rjust(max(map(len, texts))) for text in texts])
    return ["  ".join(row).rstrip() for row in zip(*cells, strict=True)]
