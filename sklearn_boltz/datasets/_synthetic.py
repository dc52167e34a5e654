"""Data with a known distribution: independent samples, and the probability of every state."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from sklearn_boltz.datasets._networks import (
    check_distribution_size,
    check_memory,
    check_n_values,
    grid_edges,
    ising_network,
    network_distribution,
    random_network,
    sample_network,
)

_POSITIVE_INT = [Interval(Integral, 1, None, closed="left")]
_FINITE = [Interval(Real, None, None, closed="neither")]


@validate_params(
    {
        "n_rows": _POSITIVE_INT,
        "n_columns": _POSITIVE_INT,
        "n_samples": _POSITIVE_INT,
        "coupling": _FINITE,
        "field": _FINITE,
        "periodic": ["boolean"],
        "random_state": ["random_state"],
        "return_distribution": ["boolean"],
        "return_edges": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_ising_grid(
    n_rows=5,
    n_columns=4,
    n_samples=1000,
    *,
    coupling=0.5,
    field=0.0,
    periodic=False,
    random_state=None,
    return_distribution=False,
    return_edges=False,
):
    r"""Draw exact, independent samples of a two-dimensional Ising model.

    The distribution is
    :math:`p(x) \propto \exp(J \sum_{\langle i, j \rangle} s_i s_j + h \sum_i s_i)` with
    :math:`s = 2x - 1`, the first sum over neighbours on a grid. The defaults are those of [1]_: 20
    sites, 31 edges. No Markov chain is used: the sites are summed out one by one, and then drawn
    one by one, each given the sites before it.

    Parameters
    ----------
    n_rows, n_columns : int, default=5, 4
        Shape of the grid. Time and memory are proportional to ``2 ** min(n_rows, n_columns)``, or
        to its square with ``periodic=True``. The shorter side can be about 17, or 9 with
        ``periodic=True``.
    n_samples : int, default=1000
        Number of rows.
    coupling : float, default=0.5
        The coupling `J`, including the inverse temperature; negative for an antiferromagnet.
    field : float, default=0.0
        The field `h`, including the inverse temperature.
    periodic : bool, default=False
        Whether opposite borders are neighbours. A pair of sites counts once, even if a side has
        length 2.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for the samples. Pass an int for reproducible output.
    return_distribution : bool, default=False
        Whether to return the true distribution, too.
    return_edges : bool, default=False
        Whether to return the pairs of neighbours, too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_rows * n_columns), int8
        The samples, 0 or 1; the sites are in row-major order.
    distribution : ndarray of shape (2,) * (n_rows * n_columns), float64
        ``distribution[tuple(x)]`` is the probability of the row `x`. Only with
        ``return_distribution=True``.
    edges : ndarray of shape (n_edges, 2), int
        Neighbours ``i < j``, in lexicographic order. Only with ``return_edges=True``.

    Raises
    ------
    ValueError
        If a parameter is out of its domain, or if a table would exceed 1 GiB.

    See Also
    --------
    make_bayesian_network : Samples of a random directed network.
    make_alignment : Samples of a Potts model, with more than two values per site.

    References
    ----------
    .. [1] K. Takabatake, S. Akaho (2022). "Full-Span Log-Linear Model and Fast Learning
       Algorithm", section 3.4. Neural Computation 34(6), 1398-1424.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_ising_grid
    >>> X, p, edges = make_ising_grid(
    ...     random_state=0, return_distribution=True, return_edges=True
    ... )
    >>> X.shape, p.size, len(edges)
    ((1000, 20), 1048576, 31)
    >>> make_ising_grid(30, 12, n_samples=10, random_state=0).shape
    (10, 360)
    """
    n_sites = n_rows * n_columns
    if return_distribution:
        check_distribution_size((2,) * n_sites)
    edges = grid_edges(n_rows, n_columns, periodic)
    # Scanning along the shorter side keeps the tables small.
    order = np.arange(n_sites).reshape(n_rows, n_columns)
    rank = np.argsort((order.T if n_rows < n_columns else order).ravel())
    parents, tables = ising_network(n_sites, np.sort(rank[edges], axis=1), coupling, field)
    X = sample_network(parents, tables, n_samples, check_random_state(random_state))
    extras = []
    if return_distribution:
        distribution = network_distribution(parents, tables)
        extras.append(np.ascontiguousarray(distribution.transpose(rank)))
    if return_edges:
        extras.append(edges)
    X = np.ascontiguousarray(X[:, rank])
    return (X, *extras) if extras else X


@validate_params(
    {
        "n_features": _POSITIVE_INT,
        "n_samples": _POSITIVE_INT,
        "max_parents": [Interval(Integral, 0, None, closed="left")],
        "n_values": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "network_state": ["random_state"],
        "random_state": ["random_state"],
        "return_distribution": ["boolean"],
        "return_network": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_bayesian_network(
    n_features=20,
    n_samples=1000,
    *,
    max_parents=2,
    n_values=2,
    concentration=1.0,
    network_state=None,
    random_state=None,
    return_distribution=False,
    return_network=False,
):
    """Draw independent samples of a random Bayesian network.

    Variable `i` has ``min(i, max_parents)`` parents, drawn without replacement among the variables
    before it; each row of its conditional probability table is drawn from a symmetric Dirichlet
    distribution. With 20 variables, 2 parents give the 37 edges and 3 parents the 54 edges of [1]_.

    Parameters
    ----------
    n_features : int, default=20
        Number of variables.
    n_samples : int, default=1000
        Number of rows.
    max_parents : int, default=2
        Largest number of parents of a variable.
    n_values : int or array-like of shape (n_features,), default=2
        Number of values: one number for all variables, or one for each.
    concentration : float, default=1.0
        Parameter of the Dirichlet distribution. 1 is uniform; with smaller values, variables
        depend more strongly on their parents.
    network_state : int, RandomState instance or None, default=None
        The source of randomness for the network. None means that `random_state` is used for the
        network and then for the samples. Pass an int here and vary `random_state` to get several
        independent samples of one network.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for the samples. Pass an int for reproducible output.
    return_distribution : bool, default=False
        Whether to return the true distribution, too.
    return_network : bool, default=False
        Whether to return the network, too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The samples, integers from 0 to ``n_values - 1``; int8 if possible, and otherwise int64.
    distribution : ndarray with one axis per variable, float64
        ``distribution[tuple(x)]`` is the probability of the row `x`. The length of an axis is the
        number of values of its variable. Only with ``return_distribution=True``.
    network : :class:`~sklearn.utils.Bunch`
        ``parents``, a list of index arrays (ascending), and ``tables``, a list of arrays;
        for a row `x`, ``tables[i][(*x[parents[i]], v)]`` is the probability that variable `i` is
        `v` given its parents. Only with ``return_network=True``.

    Raises
    ------
    ValueError
        If a parameter is out of its domain, or if a table would exceed 1 GiB.

    See Also
    --------
    make_ising_grid : Samples of a pairwise network on a grid.

    References
    ----------
    .. [1] K. Takabatake, S. Akaho (2022). "Full-Span Log-Linear Model and Fast Learning
       Algorithm", section 3.4. Neural Computation 34(6), 1398-1424.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bayesian_network
    >>> X, p = make_bayesian_network(6, 500, random_state=0, return_distribution=True)
    >>> X.shape, p.shape
    ((500, 6), (2, 2, 2, 2, 2, 2))
    >>> train = make_bayesian_network(6, 500, network_state=0, random_state=1)
    >>> test = make_bayesian_network(6, 500, network_state=0, random_state=2)
    """
    n_values = check_n_values(n_values, n_features)
    if return_distribution:
        check_distribution_size(n_values)
    rng = check_random_state(random_state)
    network_rng = rng if network_state is None else check_random_state(network_state)
    network = random_network(n_values, max_parents, concentration, network_rng)
    X = sample_network(network.parents, network.tables, n_samples, rng)
    extras = []
    if return_distribution:
        extras.append(network_distribution(network.parents, network.tables))
    if return_network:
        extras.append(network)
    return (X, *extras) if extras else X


@validate_params(
    {
        "side": _POSITIVE_INT,
        "n_samples": [*_POSITIVE_INT, None],
        "random_state": ["random_state"],
        "return_distribution": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_bars_and_stripes(side=3, n_samples=None, *, random_state=None, return_distribution=False):
    """Draw bars and stripes: square images whose rows, or whose columns, are constant.

    Each row of the image is off or on with equal probability; then the image is turned by 90
    degrees with probability one half [1]_. With ``side=3`` there are 14 patterns; all off and all
    on are twice as likely as the others, and the entropy is 2.5993 nats.

    Parameters
    ----------
    side : int, default=3
        Height and width of the images, in pixels.
    n_samples : int or None, default=None
        Number of rows. None means the training set of the literature: each outcome of the process
        above once, so that rows with equal weights have the true distribution.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for the samples; unused with ``n_samples=None``.
    return_distribution : bool, default=False
        Whether to return the true distribution, too.

    Returns
    -------
    X : ndarray of shape (n_samples, side * side), int8
        The images, 0 or 1, row-major; ``2 ** (side + 1)`` of them with ``n_samples=None``.
    distribution : ndarray of shape (2,) * (side * side), float64
        ``distribution[tuple(x)]`` is the probability of the row `x`. Only with
        ``return_distribution=True``.

    Raises
    ------
    ValueError
        If a parameter is out of its domain, or if an array would exceed 1 GiB.

    See Also
    --------
    make_shifting_bar : One bar on a ring of pixels.

    References
    ----------
    .. [1] D. J. C. MacKay (2003). "Information Theory, Inference, and Learning Algorithms".
       Cambridge University Press.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> X, p = make_bars_and_stripes(return_distribution=True)
    >>> X.shape, int((p > 0).sum())
    ((16, 9), 14)
    >>> float(p[(0,) * 9])
    0.125
    >>> make_bars_and_stripes(5, n_samples=100, random_state=0).shape
    (100, 25)
    """
    if return_distribution:
        check_distribution_size((2,) * side**2)
    if n_samples is None or return_distribution:
        check_memory(2 ** (side + 1) * side**2, 1, "The set of all bars and stripes")
        every_row = (np.arange(2**side)[:, np.newaxis] >> np.arange(side)[::-1]) & 1
        patterns = np.concatenate([_stripes(every_row, False), _stripes(every_row, True)])
    if n_samples is None:
        X = patterns
    else:
        rng = check_random_state(random_state)
        values = rng.randint(2, size=(n_samples, side))
        turned = rng.randint(2, size=(n_samples, 1, 1)).astype(bool)
        X = _stripes(values, turned)
    return (X, _equally_likely(patterns)) if return_distribution else X


def _stripes(values, turned):
    """Images with the rows `values`, or with these columns where `turned`."""
    n_images, side = values.shape
    images = np.broadcast_to(values.astype(np.int8)[:, :, np.newaxis], (n_images, side, side))
    return np.where(turned, images.transpose(0, 2, 1), images).reshape(n_images, side**2)


def _equally_likely(patterns):
    """The distribution of a row drawn at random; rows may repeat."""
    distribution = np.zeros((2,) * patterns.shape[1])
    np.add.at(distribution, tuple(patterns.T), 1 / len(patterns))
    return distribution


@validate_params(
    {
        "n_features": _POSITIVE_INT,
        "bar_length": _POSITIVE_INT,
        "n_samples": [*_POSITIVE_INT, None],
        "random_state": ["random_state"],
        "return_distribution": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_shifting_bar(
    n_features=9, bar_length=1, n_samples=None, *, random_state=None, return_distribution=False
):
    """Draw a shifting bar: consecutive pixels on, all others off, on a ring.

    Every position of the bar is equally likely [1]_: `n_features` patterns, with an entropy of
    ``log(n_features)`` nats when the bar is shorter than the ring.

    Parameters
    ----------
    n_features : int, default=9
        Number of pixels of the ring.
    bar_length : int, default=1
        Number of pixels that are on, at most `n_features`.
    n_samples : int or None, default=None
        Number of rows. None means each position once, so that rows with equal weights have the
        true distribution.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for the samples; unused with ``n_samples=None``.
    return_distribution : bool, default=False
        Whether to return the true distribution, too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), int8
        The patterns, 0 or 1; `n_features` of them with ``n_samples=None``.
    distribution : ndarray of shape (2,) * n_features, float64
        ``distribution[tuple(x)]`` is the probability of the row `x`. Only with
        ``return_distribution=True``.

    Raises
    ------
    ValueError
        If a parameter is out of its domain, or if an array would exceed 1 GiB.

    See Also
    --------
    make_bars_and_stripes : Square images with constant rows or columns.

    References
    ----------
    .. [1] J. Melchior, A. Fischer, L. Wiskott (2016). "How to Center Deep Boltzmann Machines".
       Journal of Machine Learning Research 17(99), 1-61.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_shifting_bar
    >>> make_shifting_bar(4, bar_length=2)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1],
           [1, 0, 0, 1]], dtype=int8)
    """
    if bar_length > n_features:
        raise ValueError(
            f"bar_length must be at most n_features, got bar_length={bar_length} and "
            f"n_features={n_features}."
        )
    if return_distribution:
        check_distribution_size((2,) * n_features)
    if n_samples is None:
        check_memory(n_features**2, 1, "The set of all positions")
        start = np.arange(n_features)
    else:
        start = check_random_state(random_state).randint(n_features, size=n_samples)
    X = _bars(start, n_features, bar_length)
    if not return_distribution:
        return X
    return X, _equally_likely(_bars(np.arange(n_features), n_features, bar_length))


def _bars(start, n_features, bar_length):
    offset = (np.arange(n_features) - start[:, np.newaxis]) % n_features
    return (offset < bar_length).astype(np.int8)
