"""Bayesian networks, with which synthetic distributions are sampled and enumerated.

Each variable has a table of probabilities given its parents, which all come before it. A Markov
network is converted to this form by summing out its variables, starting with the last one. All
distributions can then use the same sampler and the same product.
"""

from math import prod
from numbers import Integral

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils import Bunch

MAX_BYTES = 2**30


def check_memory(n_entries, itemsize, what):
    """Reject arrays above 1 GiB before they are allocated."""
    gib = -(-n_entries * itemsize // 2**30)
    if n_entries * itemsize > MAX_BYTES:
        raise ValueError(
            f"{what} would need {_count(n_entries)} entries, {_count(gib)} GiB; "
            f"the limit is {MAX_BYTES // 2**30} GiB. Use fewer variables or values."
        )


def _count(n):
    # Python refuses to print integers of more than some thousand digits.
    return f"{n}" if n < 2**64 else f"about 2**{n.bit_length() - 1}"


def check_distribution_size(n_values):
    """Reject a table of states above 1 GiB."""
    check_memory(prod(n_values), 8, f"The distribution of {len(n_values)} variables")


def check_n_values(n_values, n_features):
    """One cardinality per variable, as a tuple of ints."""
    if isinstance(n_values, Integral):
        return (int(n_values),) * n_features
    n_values = np.asarray(n_values)
    if n_values.shape != (n_features,):
        raise ValueError(
            "n_values must be an int or hold one entry per feature: "
            f"expected shape ({n_features},), got {n_values.shape}."
        )
    if not np.issubdtype(n_values.dtype, np.integer) or n_values.min() < 2:
        raise ValueError(f"Every entry of n_values must be an int of at least 2, got {n_values}.")
    return tuple(n_values.tolist())


def sample_network(parents, tables, n_samples, rng):
    """Draw rows, variable by variable.

    ``tables[i]`` has one axis per parent of variable `i` (ascending), then its own.
    """
    largest = max(table.shape[-1] for table in tables) - 1
    dtype = np.int8 if largest <= np.iinfo(np.int8).max else np.int64
    X = np.empty((n_samples, len(tables)), dtype=dtype)
    for i, (parents_i, table) in enumerate(zip(parents, tables, strict=True)):
        row = np.zeros(n_samples, dtype=np.intp)
        for j, n_values in zip(parents_i, table.shape, strict=False):
            row = row * n_values + X[:, j]
        # The last bound is left out: it is one, up to rounding.
        bounds = np.cumsum(table.reshape(-1, table.shape[-1])[:, :-1], axis=1)
        X[:, i] = (rng.random_sample(n_samples)[:, np.newaxis] >= bounds[row]).sum(axis=1)
    return X


def network_distribution(parents, tables):
    """Probability of every state, by the chain rule: one axis per variable."""
    p = np.ones(())
    for i, (parents_i, table) in enumerate(zip(parents, tables, strict=True)):
        shape = [1] * i + [table.shape[-1]]
        for j, n_values in zip(parents_i, table.shape, strict=False):
            shape[j] = n_values
        p = p[..., np.newaxis] * table.reshape(shape)
    return p


def random_network(n_values, max_parents, concentration, rng):
    """Draw parents without replacement and tables from a symmetric Dirichlet distribution."""
    parents = [
        np.sort(rng.choice(i, size=min(i, max_parents), replace=False)) if i else np.arange(0)
        for i in range(len(n_values))
    ]
    shapes = [
        (*(n_values[j] for j in parents_i), n_values[i]) for i, parents_i in enumerate(parents)
    ]
    check_memory(sum(map(prod, shapes)), 8, f"A network of up to {max_parents} parents a variable")
    tables = []
    for shape in shapes:
        # Gamma variables by their logarithms, G(a) = G(a + 1) U**(1 / a): a small concentration
        # then gives probabilities of 0 and 1, where the ratio of Gamma variables is 0 / 0.
        log_gamma = np.log(rng.standard_gamma(concentration + 1, size=shape))
        log_gamma += np.log(1 - rng.random_sample(shape)) / concentration
        tables.append(softmax(log_gamma, axis=-1))
    return Bunch(parents=parents, tables=tables)


def grid_edges(n_rows, n_columns, periodic):
    """Neighbours (i, j), i < j, in lexicographic order, each pair once; sites row-major."""
    site = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    pairs = [(site[:, :-1], site[:, 1:]), (site[:-1], site[1:])]
    if periodic:
        # A side of one would couple a site with itself, a side of two count a pair twice.
        if n_columns > 2:
            pairs.append((site[:, 0], site[:, -1]))
        if n_rows > 2:
            pairs.append((site[0], site[-1]))
    edges = np.concatenate([np.stack([i.ravel(), j.ravel()], axis=1) for i, j in pairs])
    return edges[np.lexsort(edges.T[::-1])]


def ising_network(n_sites, edges, coupling, field):
    """Write an Ising model as a Bayesian network, by summing out its sites from the last one on.

    `message` is the logarithm of the sum over the sites already eliminated, as a function of the
    others that touch them; `edges` holds pairs ``i < j``.
    """
    parents = _elimination_parents(n_sites, edges)
    check_memory(
        sum(2 ** (len(parents_i) + 1) for parents_i in parents),
        8,
        "Exact sampling of a grid with so long a shorter side",
    )
    spin = np.array([-1.0, 1.0])
    tables = [None] * n_sites
    message, message_sites = np.zeros(()), []
    for i in reversed(range(n_sites)):
        scope = [*parents[i].tolist(), i]
        spin_i = _along(spin, [i], scope)
        log_weight = np.zeros((2,) * len(scope))
        log_weight += _along(message, message_sites, scope) + field * spin_i
        for j in edges[edges[:, 1] == i, 0].tolist():
            log_weight += coupling * _along(spin, [j], scope) * spin_i
        log_odds = log_weight[..., 1] - log_weight[..., 0]
        tables[i] = np.stack([expit(-log_odds), expit(log_odds)], axis=-1)
        message, message_sites = np.logaddexp(log_weight[..., 0], log_weight[..., 1]), scope[:-1]
    return parents, tables


def _elimination_parents(n_sites, edges):
    """For each site, the earlier ones that it depends on once the later ones are summed out.

    These are the earlier sites with a neighbour at or after it: for a grid scanned along its
    shorter side, about as many as that side is long.
    """
    last_neighbour = np.full(n_sites, -1)
    np.maximum.at(last_neighbour, edges[:, 0], edges[:, 1])
    return [np.flatnonzero(last_neighbour[:i] >= i) for i in range(n_sites)]


def _along(values, sites, scope):
    """Give `values`, with one axis per site of `sites`, one axis per site of `scope`."""
    return values.reshape([2 if site in sites else 1 for site in scope])
