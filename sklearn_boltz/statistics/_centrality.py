"""How central each variable of a network is, and whether fewer rows would show the same."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.networks._network import Network
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.statistics._arguments import REPEATED
from sklearn_boltz.statistics._conversions import require_networkx
from sklearn_boltz.statistics._groups import block_norms
from sklearn_boltz.statistics._refits import (
    Refits,
    codes_and_scores,
    n_divisible,
    random_part,
)
from sklearn_boltz.statistics._results import import_pandas
from sklearn_boltz.tables._values import as_objects, is_missing
from sklearn_boltz.tables._weights import checked_weights

# The probability of the correlation stability coefficient.
PROBABILITY = 0.95
# Centralities that differ by less than this share are equal up to rounding.
ROUNDING = 1e-9


def strength(sizes, communities=None):
    """The sum of the sizes of all couplings of each variable."""
    return sizes.sum(axis=0)


def closeness(sizes, communities=None):
    """How near all others are, on the shortest paths."""
    found = require_networkx("closeness").closeness_centrality(_graph(sizes), distance="weight")
    return np.array(list(found.values()))


def betweenness(sizes, communities=None):
    """How many pairs of others have their shortest path through each variable."""
    find = require_networkx("betweenness").betweenness_centrality
    return np.array(list(find(_graph(sizes), weight="weight", normalized=False).values()))


def bridge_strength(sizes, communities):
    """The sum of the sizes of the couplings of each variable with other communities."""
    return strength(np.where(communities[:, None] != communities, sizes, 0))


MEASURES = {f.__name__: f for f in (strength, closeness, betweenness, bridge_strength)}


def _graph(sizes):
    """A graph of networkx whose weights are distances, 1 / size."""
    distances = np.divide(1, sizes, where=sizes > 0, out=np.zeros(sizes.shape))
    return require_networkx("centrality").from_numpy_array(distances)


def centrality(network, *, communities=None):
    """Return how central each variable is.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM, MaximumEntropy or networkx.Graph
        A fitted network; or an undirected graph whose edges have a `weight`, for example what
        :func:`~sklearn_boltz.statistics.to_networkx` returns, without the edges that are not
        significant.
    communities : array-like of shape (n_features,), default=None
        The community of each variable, such as the disorder that a symptom belongs to; for
        `bridge_strength`.

    Returns
    -------
    table : pandas.DataFrame or Bunch
        A row for each variable, with its name as the index; without pandas a Bunch of arrays, with
        the names as `variable`. Its columns:

        * ``strength``, the sum of the sizes of all couplings. The size of a coupling is abs(m_jk),
          or the Frobenius norm of a block; where numbers have normal scores, that of
          `interaction_scores` without correction.
        * ``closeness``, the inverse of the mean distance to all others. The length of an edge is 1
          divided by the size of the coupling, as in qgraph [1]_; the distance is that of the
          shortest path [2]_. Where there are no paths to some of the others, it is the inverse of
          the mean distance to those that can be reached, times their share.
        * ``betweenness``, the number of pairs of other variables whose shortest path leads through
          this one.
        * ``bridge_strength`` with `communities`, the sum of the sizes of the couplings with
          variables of other communities [3]_.

    Raises
    ------
    ImportError
        If networkx is not installed.
    TypeError
        If `network` is neither a network of this package nor an undirected graph.
    ValueError
        If `communities` is not a label for each variable.

    See Also
    --------
    centrality_stability : How much centralities change if rows are left out.

    Notes
    -----
    A central variable is not necessarily one that an intervention should target: couplings have no
    direction, and depend on which variables the table has. Terms of three variables and more do not
    count.

    References
    ----------
    .. [1] S. Epskamp et al., "qgraph: Network Visualizations of Relationships in Psychometric
       Data", Journal of Statistical Software 48(4), 1–18, 2012.
       https://doi.org/10.18637/jss.v048.i04
    .. [2] T. Opsahl, F. Agneessens and J. Skvoretz, "Node Centrality in Weighted Networks:
       Generalizing Degree and Shortest Paths", Social Networks 32(3), 245–251, 2010.
       https://doi.org/10.1016/j.socnet.2010.03.006
    .. [3] P. J. Jones, R. Ma and R. J. McNally, "Bridge Centrality: A Network Approach to
       Understanding Comorbidity", Multivariate Behavioral Research 56(2), 353–367, 2021.
       https://doi.org/10.1080/00273171.2019.1614898

    Examples
    --------
    Each column mostly repeats the one before it. The third is in the middle, and connects the first
    three with the last two.

    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = np.cumprod(rng.choice([-1, 1], size=(500, 5), p=[0.2, 0.8]), axis=1)
    >>> table = statistics.centrality(SparseFVBM().fit(X), communities=list("aaabb"))
    >>> table.round(1)
              strength  closeness  betweenness  bridge_strength
    variable
    x0             0.7        0.3          0.0              0.0
    x1             1.4        0.4          3.0              0.0
    x2             1.3        0.5          4.0              0.6
    x3             1.4        0.4          3.0              0.6
    x4             0.7        0.3          0.0              0.0
    """
    networkx = require_networkx("centrality")
    if isinstance(network, networkx.Graph) and not network.is_directed():
        names, sizes = list(network), np.abs(networkx.to_numpy_array(network))
        np.fill_diagonal(sizes, 0)
    elif isinstance(network, Network):
        check_is_fitted(network)
        names, sizes = network._input_names(), block_norms(network)
    else:
        raise TypeError(
            "centrality takes a fitted FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy, or an "
            f"undirected graph of networkx; got {type(network).__name__}."
        )
    columns = {find.__name__: find(sizes) for find in (strength, closeness, betweenness)}
    if communities is not None:
        communities = checked_communities(communities, len(names))
        columns["bridge_strength"] = bridge_strength(sizes, communities)
    try:
        from pandas import DataFrame, Index
    except ImportError:
        return Bunch(variable=as_objects(names), **columns)
    return DataFrame(columns, index=Index(as_objects(names), name="variable", tupleize_cols=False))


def checked_communities(communities, n_variables):
    """A label for each variable; an error if some are missing."""
    labels = column_or_1d(communities)
    if len(labels) != n_variables or any(map(is_missing, labels)):
        raise ValueError(
            f"communities must be a label for each of the {n_variables} variables, in their order, "
            f"without missing labels; got {len(labels)} labels, {sum(map(is_missing, labels))} of "
            "them missing."
        )
    return labels


@dataclass(frozen=True, repr=False)
class CentralityStability:
    """Agreement of centralities from fewer rows with those from all rows.

    The result of `centrality_stability`.

    Parameters
    ----------
    statistic : str
        The centrality.
    shares : ndarray of shape (n_shares,)
        The shares of the rows that were left out, rising.
    correlations : ndarray of shape (n_shares, n_samples)
        The correlation of the centralities of each sample with those of all rows.
    threshold : float
        The required correlation.

    See Also
    --------
    centrality_stability : The method, with its reference.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import SparseFVBM
    >>> from sklearn_boltz.statistics import centrality_stability
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(400, 4))
    >>> X[:, 1:3] = X[:, :1]
    >>> X[::5, 1] *= -1
    >>> X[::3, 2] *= -1
    >>> centrality_stability(SparseFVBM(), X, shares=[0.1, 0.5], n_samples=5, random_state=0)
    CentralityStability of strength: coefficient 0.5, for a correlation of 0.7 in 95% of the samples
    """

    statistic: str
    shares: np.ndarray
    correlations: np.ndarray
    threshold: float

    @property
    def probability(self):
        """The share of the samples that reach the threshold, ndarray of shape (n_shares,)."""
        return (self.correlations >= self.threshold).mean(axis=1)

    @property
    def coefficient(self):
        """The correlation stability coefficient, CS.

        The largest share of the rows that can be left out such that at least 95 % of the samples
        reach the threshold; 0 if there is none among `shares`.
        """
        return float(self.shares[self.probability >= PROBABILITY].max(initial=0))

    def to_frame(self):
        """Return a table of the correlations; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each share of the rows that were left out, with the mean of the correlations,
            the ends of the interval that has 95 % of them, and the share of those that reach the
            threshold.
        """
        pandas = import_pandas("`shares` and `correlations`")
        low, high = np.quantile(self.correlations, [0.025, 0.975], axis=1)
        columns = {"mean": self.correlations.mean(axis=1), "low": low, "high": high}
        columns["probability"] = self.probability
        return pandas.DataFrame(columns, index=pandas.Index(self.shares, name="share"))

    def __repr__(self):
        return (
            f"CentralityStability of {self.statistic}: coefficient {self.coefficient:.2g}, for a "
            f"correlation of {self.threshold:g} in {PROBABILITY:.0%} of the samples"
        )


@validate_params(
    REPEATED
    | {
        "estimator": [BaseEstimator],
        "statistic": [StrOptions(set(MEASURES))],
        "communities": ["array-like", None],
        "shares": ["array-like", None],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "correlation": [Interval(Real, -1, 1, closed="both")],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=False,
)
def centrality_stability(
    estimator,
    X,
    *,
    statistic="strength",
    communities=None,
    shares=None,
    n_samples=100,
    correlation=0.7,
    sample_weight=None,
    n_jobs=None,
    random_state=None,
    verbose=0,
):
    """Measure how many rows can be left out without changing which variables are central.

    Random samples of the rows, without replacement, are fitted, and their centralities are compared
    with those of all rows (the case-dropping bootstrap [1]_).

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        The estimator to fit to each sample; it is not changed. If it chooses its penalty, each fit
        does.
    X : array-like of shape (n_samples, n_features)
        The data; NaN is a missing cell.
    statistic : {"strength", "closeness", "betweenness", "bridge_strength"}, default="strength"
        The centrality, see :func:`~sklearn_boltz.statistics.centrality`.
    communities : array-like of shape (n_features,), default=None
        The community of each variable, for ``"bridge_strength"``.
    shares : array-like of shape (n_shares,), default=None
        The shares of the rows to leave out. None means ten values from 0.05 to 0.75, as in bootnet.
    n_samples : int, default=100
        Number of samples for each share.
    correlation : float, default=0.7
        The correlation with the centralities of all rows that a sample should have.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts; None for once each. Of counts, copies of rows are left out; other
        rows are left out with their weight (:ref:`weights`).
    n_jobs : int, default=None
        Number of fits at a time, in processes of joblib. None means 1, unless in a context of
        :class:`joblib.parallel_config`. The result does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.
    verbose : int, default=0
        If positive, show a bar with the time left, after two seconds.

    Returns
    -------
    stability : CentralityStability
        With `correlations`, and the correlation stability coefficient as `coefficient`.

    Raises
    ------
    ImportError
        If networkx is not installed, for closeness and betweenness.
    ValueError
        If all variables are equally central in the network of all rows, or if `shares` leave no
        rows.

    See Also
    --------
    centrality : The centralities themselves.
    bootstrap : How much each coupling varies.
    stability_selection : Pairs that are coupled in most random halves of the rows.

    Notes
    -----
    The coefficient should not be below 0.25, and preferably be above 0.5, for differences of
    centralities to be interpreted [1]_. It cannot exceed the largest of `shares`. Correlations are
    Pearson's, and 0 for a sample in which all variables are equally central, for example because no
    coupling was selected.

    References
    ----------
    .. [1] S. Epskamp, D. Borsboom and E. I. Fried, "Estimating Psychological Networks and Their
       Accuracy", Behavior Research Methods 50(1), 195–212, 2018.
       https://doi.org/10.3758/s13428-017-0862-1

    Examples
    --------
    All columns depend on the first, so their strengths differ, and fewer rows would do. For
    independent columns, the order of the strengths is due to chance.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.statistics import centrality_stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(300, 6))
    >>> star = np.where(rng.random(X.shape) < 0.5, X[:, :1], X)
    >>> options = {"shares": [0.25, 0.5, 0.75], "n_samples": 10, "random_state": 0}
    >>> centrality_stability(FVBMPseudoLikelihood(), star, **options).coefficient
    0.75
    >>> centrality_stability(FVBMPseudoLikelihood(), X, **options).coefficient
    0.25
    """
    if not isinstance(estimator, Network):
        raise TypeError(
            "centrality_stability takes an FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy; got "
            f"{type(estimator).__name__}."
        )
    if statistic == "bridge_strength" and communities is None:
        raise ValueError(
            "statistic='bridge_strength' needs `communities`, a label for each column."
        )
    model = clone(estimator).fit(X, sample_weight=sample_weight)
    if communities is not None:
        communities = checked_communities(communities, model.n_features_in_)
    codes, z = codes_and_scores(model, X)
    weights = checked_weights(sample_weight, codes)
    n_rows = n_divisible(weights)
    shares = np.linspace(0.05, 0.75, 10) if shares is None else column_or_1d(shares)
    shares = np.unique(np.asarray(shares, dtype=np.float64))
    kept = n_rows - np.round(shares * n_rows).astype(np.int64)
    if not (len(shares) and (shares > 0).all() and (kept > 1).all()):
        raise ValueError(
            "shares must be above 0, and leave at least 2 of the "
            f"{n_rows} rows; got {shares.tolist()}."
        )
    whole = MEASURES[statistic](block_norms(model), communities)
    if is_constant(whole):
        raise ValueError(
            f"centrality_stability: in the network of all rows all variables have the {statistic} "
            f"{whole[0]:.3g}, so there is no order that could be stable. Take more rows, or an "
            "estimator that selects more couplings, for example with alpha='cv'."
        )
    refits, generator = Refits(model, codes, z), make_generator(random_state)
    tasks = (
        (refits, random_part(weights, size, generator), statistic, communities, whole)
        for size in kept
        for _ in range(n_samples)
    )
    bar = progress_bar("stability of a centrality", len(kept) * n_samples, verbose)
    found = in_parallel(correlation_of_rows, tasks, n_jobs, bar)
    correlations = np.reshape(found, (len(shares), n_samples))
    return CentralityStability(statistic, shares, correlations, float(correlation))


def correlation_of_rows(refits, weights, statistic, communities, whole):
    """The correlation of the centralities of some rows with those of all rows."""
    model = refits.fit(weights)
    part = MEASURES[statistic](block_norms(model), communities)
    return 0.0 if is_constant(part) else np.corrcoef(part, whole)[0, 1]


def is_constant(values):
    """Whether all values are equal up to rounding."""
    return np.ptp(values) <= ROUNDING * np.abs(values).max(initial=0)
