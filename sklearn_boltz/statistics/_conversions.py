"""A fitted model in other forms: joint matrices, a graph of networkx, spins, a model of dimod."""

from itertools import combinations

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.networks._network import Network
from sklearn_boltz.networks.location._joint import joint_scores
from sklearn_boltz.networks.model._gauge import frobenius_scores
from sklearn_boltz.numerics._arrays import as_numpy
from sklearn_boltz.restricted._rbm import BaseRBM
from sklearn_boltz.restricted._tap_dbm import TAPDBM
from sklearn_boltz.statistics._arguments import of_network
from sklearn_boltz.statistics._bootstrap import NetworkBootstrap
from sklearn_boltz.statistics._inference import PairwiseInference
from sklearn_boltz.statistics._refits import resampled
from sklearn_boltz.tables._frames import optional

OTHER_FIT = (
    "inference must be what statistics.inference or statistics.bootstrap returns for this "
    "fit: its estimates are not the couplings of this one."
)


@of_network({}, numbers=True)
def joint_network(network):
    """Return the couplings of all columns, those of numbers included.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network.

    Returns
    -------
    joint : Bunch
        ``coupling``, ndarray of shape (n_entries, n_entries), and ``intercept``, ndarray of shape
        (n_entries,). ``names``, ndarray of str of shape (n_entries,): what the entries are called.
        ``columns``, ndarray of int of shape (n_entries,): the column that each belongs to.

        Without numbers that have normal scores, these are `coupling_` and `intercept_`. With such
        numbers, a column of categories has an entry for each of its values, and a number one by
        its name. If some of its values are atoms, it also has entries for these, and for other
        numbers.

    See Also
    --------
    inference : Estimates without penalties, with standard errors and tests.
    to_networkx : The same as a graph.

    Notes
    -----
    Given the categories x, the normal scores z have means a + B x and a covariance Σ. With several
    Gaussians, these are the moments of their mixture: Σ is the mean covariance within them and
    the covariance of their means. With Ω = Σ⁻¹, the joint network is the mixed graphical model
    [1]_ [2]_

        ln p(x, z) = ½ xᵀ (J - Bᵀ Ω B) x + xᵀ Bᵀ Ω z - ½ zᵀ Ω z + ...

    with J the `coupling_` of the categories alone. Each score is divided by its standard deviation
    given all else. So the coupling of two numbers is their partial correlation, that of a number
    and a value is how many standard deviations the value moves the number by, compared with the
    mean over the values, and that of two values is what is left of `coupling_` given the numbers.

    A number that is an atom has no score. Couplings are those of rows where all numbers have one.
    A sparse penalty selects among the couplings of the categories alone, so that none of the joint
    network need be 0.

    References
    ----------
    .. [1] S. L. Lauritzen and N. Wermuth, "Graphical Models for Associations between Variables,
       some of which are Qualitative and some Quantitative", Annals of Statistics 17(1), 31–57,
       1989. https://doi.org/10.1214/aos/1176347003
    .. [2] J. D. Lee and T. J. Hastie, "Learning the Structure of Mixed Graphical Models", Journal
       of Computational and Graphical Statistics 24(1), 230–253, 2015.
       https://doi.org/10.1080/10618600.2014.900500

    Examples
    --------
    The second number depends on the first, and the first on the string.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> word = rng.choice(["no", "yes"], 1000)
    >>> x = rng.normal(size=1000) + (word == "yes")
    >>> X = pd.DataFrame({"word": word, "x": x, "y": 0.75 * x + rng.normal(size=1000)})
    >>> model = FVBMPseudoLikelihood(columns={"x": "number", "y": "number"}).fit(X)
    >>> joint = statistics.joint_network(model)
    >>> joint.names
    array(['word=no', 'word=yes', 'x', 'y'], dtype=object)
    >>> joint.coupling[2].round(1) + 0.0
    array([-0.4,  0.4,  0. ,  0.6])
    """
    layout = network._layout()
    if network._gaussians is None:
        found, names = (network.coupling_, network.intercept_), network.get_feature_names_out()
        sizes = np.ones_like(layout.sizes) if network._encoder.coding.is_binary else layout.sizes
    else:
        found, sizes = network._joint_network(), layout.sizes
        entries = layout.entry_names(network._input_names(), network._encoder)
        names = np.array(sum(entries, []), dtype=object)
    columns = np.repeat(np.arange(len(sizes)), sizes)
    return Bunch(coupling=found[0], intercept=found[1], names=names, columns=columns)


@of_network({}, numbers=True)
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

        Binary variables have a node with `intercept`; edges have `weight`, the coupling m_jk
        with its sign; `sign`, which is 1 or -1; and `strength`, abs(m_jk), for algorithms that
        need weights without a sign. If some variable has more than two values, nodes have
        ``intercept[value]`` for each value, and both `weight` and `strength` of an edge are the
        Frobenius norm of the block, as in `interaction_scores` without correction. Where numbers
        have normal scores, edges are those of `joint_network`. An edge of two numbers also has
        their `partial_correlation`.

        With the result of `inference`, all of these are its estimates: `weight` is the `coupling`
        of a pair in its table, and edges have the `std_err` there, where there is one, and
        `p_value`. P values are not adjusted for their number. Terms of three variables and more
        are left out.

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
    names, layout = network._input_names(), network._layout()
    if isinstance(inference, PairwiseInference):
        return tested_graph(network, names, inference)
    if network._gaussians is not None:
        coupling, intercept = network._joint_network()
        scores = joint_scores(coupling, layout)
    else:
        if inference is not None and network._seen is not None:
            network = resampled(network, None, None)
        coupling, intercept = network.coupling_, network.intercept_
        if inference is not None:
            check_fit(inference, coupling)
        scores = None
        if not network._encoder.coding.is_binary:
            scores = frobenius_scores(coupling, layout.n_values)
    frequency = {} if inference is None else {"frequency": inference.edge_frequency}
    if scores is None:
        return graph_of(names, None, intercept, {"weight": coupling} | frequency)
    entries = layout.entry_names(names, network._encoder)
    graph = graph_of(names, entries, intercept, {"weight": scores} | frequency)
    add_partial_correlations(graph, names, layout.is_scored, coupling, layout.of_scores)
    return graph


def tested_graph(network, names, inference):
    """The graph of an inference: of its estimates, with their errors and p values."""
    table, is_number = inference._pairs, network._encoder.is_number
    of_numbers = inference.n_values is not None and (inference.n_values[is_number] == 1).any()
    if names != inference.feature_names.tolist():
        raise ValueError(OTHER_FIT)
    if not of_numbers:
        fitted = network if network._seen is None else network._unpenalised(None, None)
        check_fit(inference, fitted.coupling_)
    values = {"weight": np.nan_to_num(table["coupling"])}
    values |= {name: table[name] for name in ("std_err", "p_value")}
    if inference.n_values is None:
        return graph_of(names, None, inference.estimate, values)
    values["weight"] = np.abs(values["weight"])
    ends = np.cumsum(inference.n_values)
    entries = np.split([name[2:-1] for name in inference.names[: ends[-1]]], ends[:-1])
    graph = graph_of(names, entries, inference.estimate, values)
    if of_numbers:
        add_partial_correlations(graph, names, is_number, table["coupling"], is_number)
    return graph


def add_partial_correlations(graph, names, is_number, coupling, places):
    """To the edges of two numbers, from a matrix with these at some places."""
    numbers, places = np.flatnonzero(is_number), np.flatnonzero(places)
    for (j, a), (k, b) in combinations(zip(numbers, places, strict=True), 2):
        if graph.has_edge(names[j], names[k]):
            graph.edges[names[j], names[k]]["partial_correlation"] = coupling[a, b].item()


def require_networkx(function="to_networkx"):
    """Return networkx, or say what to do where it is missing."""
    message = f"{function} needs networkx, which is not installed: run `pip install networkx`."
    return optional("networkx", message)


def graph_of(names, entries, intercept, values):
    """Nodes with intercepts; edges where the weight is not 0, with all values as plain numbers.

    `entries` are lists of the names of the entries of each column, ``name=value``, or ``name`` of a
    number; None if all columns are binary: weights then have a sign. `intercept` has all entries
    one after another, and `values` matrices of shape (n_columns, n_columns), in which NaN is left
    out.
    """
    graph, weight = require_networkx().Graph(), values["weight"]
    intercept = iter(intercept.tolist())
    of_nodes = [[name] for name in names] if entries is None else entries
    for name, own in zip(names, of_nodes, strict=True):
        plain = name, f"{name}"
        keys = (
            "intercept" if entry in plain else f"intercept[{entry.removeprefix(f'{name}=')}]"
            for entry in own
        )
        graph.add_node(name, **{key: next(intercept) for key in keys})
    values = values | {"strength": np.abs(weight)}
    if entries is None:
        values["sign"] = np.sign(weight).astype(int)
    for j, k in zip(*np.nonzero(np.triu(weight, 1)), strict=True):
        found = {key: matrix[j, k].item() for key, matrix in values.items()}
        graph.add_edge(names[j], names[k], **{k: v for k, v in found.items() if v == v})
    return graph


def check_fit(inference, coupling):
    """An error for the inference of another fit."""
    estimate = np.nan_to_num(inference.coupling_matrix(inference.estimate))
    if estimate.shape != coupling.shape or not np.array_equal(estimate, coupling):
        raise ValueError(OTHER_FIT)


def to_ising(model, *, coding="spins"):
    """Return the couplings and fields of an Ising model with the distribution of a model.

    Parameters
    ----------
    model : FVBMPseudoLikelihood, SparseFVBM, MaximumEntropy, SDCPRBM, TAPRBM or InfiniteRBM
        A fitted network or RBM of binary columns.
    coding : {"spins", "bits"}, default="spins"
        Whether the first and second value of a column are -1 and 1, or 0 and 1. With bits, the
        couplings and fields are the coefficients and intercepts of the logistic regressions of
        each column on all others by this model. The R package IsingFit calls them weights and
        thresholds; its thresholds are those of separate regressions, before weights are averaged.

    Returns
    -------
    J : ndarray of float64 of shape (n_spins, n_spins)
        The couplings, symmetric with a zero diagonal: p(s) ∝ exp(½ s·Js + h·s). The spins of an RBM
        are its visible units and then its hidden ones.
    h : ndarray of float64 of shape (n_spins,)
        The fields.

    Raises
    ------
    ValueError
        If the model has columns or units of other values, or terms of more than two columns.

    See Also
    --------
    FVBMPseudoLikelihood.from_couplings : The network with given couplings and fields.

    Examples
    --------
    The RBM has the bits v and h, with the energy -4 vh.

    >>> from sklearn_boltz import SDCPRBM, statistics
    >>> J, h = statistics.to_ising(SDCPRBM.from_parameters([[4.0]]))
    >>> J
    array([[0., 1.],
           [1., 0.]])
    >>> h
    array([1., 1.])
    >>> J, h = statistics.to_ising(SDCPRBM.from_parameters([[4.0]]), coding="bits")
    >>> J
    array([[0., 4.],
           [4., 0.]])
    >>> h
    array([0., 0.])
    """
    if coding not in ("spins", "bits"):
        raise ValueError(f"coding must be 'spins' or 'bits', got {coding!r}.")
    if not isinstance(model, (Network, BaseRBM)) or isinstance(model, TAPDBM):
        raise TypeError(f"to_ising takes a fitted network or RBM; got {type(model).__name__}.")
    check_is_fitted(model)
    if isinstance(model, Network):
        _check_spins(model)
        J, h = model.coupling_.copy(), model.intercept_.copy()
    else:
        rbm = model._model().moved(as_numpy)
        model._check_bits("to_ising", rbm.visible, rbm.hidden)
        J, h = rbm.ising()
    # With spins s = 2x - 1.
    return (J, h) if coding == "spins" else (4 * J, 2 * (h - J.sum(axis=1)))


def _check_spins(network):
    """Refuse a network of more than pairs of binary columns."""
    larger = network._encoder.coding.larger_columns
    scored = np.flatnonzero(network._encoder.is_scored)
    terms, _, potential = network._beyond_pairs()
    if len(larger):
        reason = f"{network._have(larger)} more than two values. Use one-hot columns"
    elif len(scored):
        reason = f"{network._have(scored)} normal scores. Leave numbers out"
    elif terms or potential.any():
        reason = "this one has `terms` or a `count_potential`. Fit pairs only"
    else:
        return
    raise ValueError(f"to_ising needs a pairwise network of binary columns, and {reason}.")


def to_bqm(model):
    """Return a model as a binary quadratic model of dimod, for annealers.

    Parameters
    ----------
    model : FVBMPseudoLikelihood, SparseFVBM, MaximumEntropy, SDCPRBM, TAPRBM or InfiniteRBM
        A fitted network or RBM of binary columns.

    Returns
    -------
    bqm : dimod.BinaryQuadraticModel
        Its variables 0, 1, ... are the spins of `to_ising`, its energies those of
        ``model.energy``.

    Raises
    ------
    ImportError
        If dimod is not installed.
    ValueError
        As in `to_ising`.

    Examples
    --------
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> network = FVBMPseudoLikelihood.from_couplings([[0, 0.5], [0.5, 0]])
    >>> statistics.to_bqm(network).energy({0: 1, 1: -1})  # doctest: +SKIP
    0.5
    """
    message = "to_bqm needs dimod, which is not installed: run `pip install dimod`."
    dimod = optional("dimod", message)
    J, h = to_ising(model)
    j, k = np.triu(J).nonzero()
    # Where all bits of an RBM are 0, its energy is 0.
    offset = -model._constant if isinstance(model, Network) else J.sum() / 2 - h.sum()
    quadratic = j, k, -J[j, k]
    return dimod.BinaryQuadraticModel.from_numpy_vectors(-h, quadratic, offset, "SPIN")
