"""A fitted network as a graph of networkx."""

import numpy as np

from sklearn_boltz.networks.model._gauge import frobenius_scores
from sklearn_boltz.statistics._arguments import of_network
from sklearn_boltz.statistics._bootstrap import NetworkBootstrap
from sklearn_boltz.statistics._inference import PairwiseInference


@of_network({})
def to_networkx(network, inference=None):
    """Return the network as a graph of networkx.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.
    inference : PairwiseInference or NetworkBootstrap, default=None
        The result of `inference` for the training data: edges then also have p values. Or the
        result of `bootstrap`: edges then have `frequency`, its `edge_frequency`.

    Returns
    -------
    graph : networkx.Graph
        A node for each variable, by name, and an edge for each pair with a coupling that is
        not 0. All attributes are plain numbers, which networkx writes to any format.

        With binary variables, nodes have `intercept`. Edges have `weight`, the coupling m_jk
        with its sign; `sign`, which is 1 or -1; and `strength`, abs(m_jk), for algorithms that
        need weights without a sign. With `inference` they have `std_err` and `p_value`; all
        parameters are then the estimates without a penalty to which these belong.

        If some variable has more than two values, nodes have ``intercept[value]`` for each
        value. Both `weight` and `strength` of an edge are then the Frobenius norm of the block,
        as in `interaction_scores` without correction, which has no sign. `p_value` is that of
        the joint Wald test.

        P values are not adjusted for their number. Terms of three variables and more are left
        out.

    Raises
    ------
    ImportError
        If networkx is not installed.
    TypeError
        If `inference` is of another type, such as the training data.
    ValueError
        If `inference` belongs to another fit.

    See Also
    --------
    sklearn_boltz.inspection.CouplingDisplay : Draws the network.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(500, 3))
    >>> X[:, 2] = -X[:, 0] * rng.choice([-1, 1], size=500, p=[0.2, 0.8])
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> graph = statistics.to_networkx(model, statistics.inference(model, X))
    >>> edge = graph.edges["x0", "x2"]
    >>> edge["sign"], round(edge["weight"], 1), edge["p_value"] < 0.001
    (-1, -0.7, True)
    """
    if not isinstance(inference, PairwiseInference | NetworkBootstrap | None):
        raise TypeError(
            "to_networkx takes what statistics.inference or statistics.bootstrap returns, got "
            f"{type(inference).__name__}."
        )
    names = [str(name) for name in network._input_names()]
    if inference is not None and network._seen is not None:
        network = network._unpenalised(None, None)
    coupling, intercept = network.coupling_, network.intercept_
    if network._coding.is_binary:
        return binary_graph(names, coupling, intercept, inference)
    values = [network._labels(j, np.arange(m)) for j, m in enumerate(network._coding.n_values)]
    return categorical_graph(names, values, coupling, intercept, inference)


def require_networkx(function="to_networkx"):
    """Return networkx, or say what to do where it is missing."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            f"{function} needs networkx, which is not installed: run `pip install networkx`."
        ) from error
    return networkx


def binary_graph(names, coupling, intercept, inference=None):
    """Nodes with intercepts; edges with couplings that are not 0, their sign and strength.

    Parameters
    ----------
    names : list of str of length n_columns
    coupling : ndarray of shape (n_columns, n_columns)
    intercept : ndarray of shape (n_columns,)
    inference : PairwiseInference or NetworkBootstrap, default=None
        Its standard errors and p values, or frequencies, become attributes of the edges.

    Returns
    -------
    graph : networkx.Graph
    """
    graph = require_networkx().Graph()
    for name, b in zip(names, intercept.tolist(), strict=True):
        graph.add_node(name, intercept=b)
    values = {"weight": coupling, "strength": np.abs(coupling)}
    values["sign"] = np.sign(coupling).astype(int)
    if inference is not None:
        check_fit(inference, coupling)
        if hasattr(inference, "edge_frequency"):
            values["frequency"] = inference.edge_frequency
        else:
            values["std_err"] = inference.coupling_matrix(inference.std_err)
            values["p_value"] = inference.coupling_matrix(inference.p_value)
    add_edges(graph, names, values)
    return graph


def categorical_graph(names, value_names, coupling, intercept, inference=None):
    """Nodes with an intercept for each value; edges with Frobenius norms that are not 0.

    Parameters
    ----------
    names : list of str of length n_columns
    value_names : list of sequence
        What the values of each column are called.
    coupling : ndarray of shape (Q, Q)
    intercept : ndarray of shape (Q,)
    inference : PairwiseInference or NetworkBootstrap, default=None
        Its p values of pairs, or frequencies, become attributes of the edges.

    Returns
    -------
    graph : networkx.Graph
    """
    graph = require_networkx().Graph()
    n_values = list(map(len, value_names))
    of_columns = np.split(intercept, np.cumsum(n_values)[:-1])
    for name, values, b in zip(names, value_names, of_columns, strict=True):
        entries = zip(values, b.tolist(), strict=True)
        graph.add_node(name, **{f"intercept[{value}]": entry for value, entry in entries})
    scores = frobenius_scores(coupling, n_values)
    values = {"weight": scores, "strength": scores}
    if inference is not None:
        check_fit(inference, coupling)
        if hasattr(inference, "edge_frequency"):
            values["frequency"] = inference.edge_frequency
        else:
            values["p_value"] = inference.pair_p_value()
    add_edges(graph, names, values)
    return graph


def check_fit(inference, coupling):
    """An error for the inference of another fit."""
    estimate = np.nan_to_num(inference.coupling_matrix(inference.estimate))
    if estimate.shape != coupling.shape or not np.array_equal(estimate, coupling):
        raise ValueError(
            "inference must be what statistics.inference or statistics.bootstrap returns for this "
            "fit: its estimates are not the couplings of this one."
        )


def add_edges(graph, names, values):
    """Edges where the weight is not 0, with all values as plain numbers."""
    for j, k in zip(*np.nonzero(np.triu(values["weight"], 1)), strict=True):
        entries = {key: matrix[j, k].item() for key, matrix in values.items()}
        graph.add_edge(names[j], names[k], **entries)
