"""How central each variable of a network is."""

import numpy as np
from sklearn.utils import Bunch, column_or_1d
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.networks._network import Network
from sklearn_boltz.statistics._graph import require_networkx
from sklearn_boltz.statistics._groups import block_norms
from sklearn_boltz.tables._frames import is_missing


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


def sizes_of(network):
    """The sizes of all couplings, (d, d)."""
    if network._table.is_scored.any():
        return network.interaction_scores(apc=False)
    return block_norms(network, network.coupling_)


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
    A central variable is not for that reason one that an intervention should aim at: couplings
    have no direction, and depend on which variables the table has. Terms of three variables and
    more do not count.

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
    x0             0.6        0.2          0.0              0.0
    x1             1.2        0.3          3.0              0.0
    x2             1.2        0.4          4.0              0.6
    x3             1.2        0.3          3.0              0.6
    x4             0.6        0.2          0.0              0.0
    """
    networkx = require_networkx("centrality")
    if isinstance(network, networkx.Graph) and not network.is_directed():
        names, sizes = list(network), np.abs(networkx.to_numpy_array(network))
        np.fill_diagonal(sizes, 0)
    elif isinstance(network, Network):
        check_is_fitted(network)
        names, sizes = network._input_names(), sizes_of(network)
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
        return Bunch(variable=np.array(names, dtype=object), **columns)
    return DataFrame(columns, index=Index(names, name="variable"))


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
