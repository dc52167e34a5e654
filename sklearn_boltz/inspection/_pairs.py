"""Names of the variables of a pairwise model, and one number for each pair."""

import numpy as np
from scipy.linalg import block_diag

from sklearn_boltz.statistics import joint_network


def names_of(estimator):
    """Names of the variables of a network, and lists of the names of their values.

    None instead of these lists if all variables are binary.
    """
    d, entries = estimator.n_features_in_, estimator.get_feature_names_out()
    labels = list(estimator.columns_)
    names = [f"x{j}" for j in range(d)] if labels == list(range(d)) else list(map(str, labels))
    if len(entries) == d:
        return names, None
    of_columns = np.split(entries, np.cumsum(estimator.n_values_)[:-1])
    return names, values_of(names, of_columns)


def joint_of(estimator):
    """The couplings of all columns, (n_entries, n_entries), and names as of `names_of`.

    A number with a normal score has one value, "score".
    """
    joint, (names, _) = joint_network(estimator), names_of(estimator)
    if np.array_equal(joint.names, names):
        return joint.coupling, names, None
    of_columns = np.split(joint.names, np.flatnonzero(np.diff(joint.columns)) + 1)
    return joint.coupling, names, values_of(names, of_columns)


def values_of(names, of_columns):
    """The values of columns from what their entries are called; of a number "score"."""
    return [
        ["score" if entry == name else entry.removeprefix(f"{name}=") for entry in of_column]
        for name, of_column in zip(names, of_columns, strict=True)
    ]


def block_norms(coupling, value_names):
    """The Frobenius norms of the blocks of one or several couplings, of shape (..., d, d)."""
    starts = np.cumsum([0, *map(len, value_names[:-1])])
    rows = np.add.reduceat(np.square(coupling), starts, axis=-2)
    return np.sqrt(np.add.reduceat(rows, starts, axis=-1))


def signed_norms(estimator):
    """Norms of the blocks, with the signs of trends if all values have an order; (d, d)."""
    norms, sizes = estimator.interaction_scores(apc=False), estimator.n_values_
    ordered = getattr(estimator, "ordered_", False) & ~estimator._encoder.declared("cyclic")
    if not (ordered | (sizes == 2)).all():
        return norms
    trends = block_diag(*(np.arange(m)[:, None] - (m - 1) / 2 for m in sizes))
    return norms * np.sign(trends.T @ estimator.coupling_ @ trends)
