"""A fitted network as a graph of networkx."""

import numpy as np

from sklearn_boltz.fully_visible.model._scores import frobenius_scores


def require_networkx():
    """Return networkx, or say what to do where it is missing."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            "to_networkx needs networkx, which is not installed: run `pip install networkx`."
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
            "inference must be what `inference(X)` or `bootstrap(X)` of the same fit returns: its "
            "estimates are not the couplings of this one."
        )


def add_edges(graph, names, values):
    """Edges where the weight is not 0, with all values as plain numbers."""
    for j, k in zip(*np.nonzero(np.triu(values["weight"], 1)), strict=True):
        entries = {key: matrix[j, k].item() for key, matrix in values.items()}
        graph.add_edge(names[j], names[k], **entries)
