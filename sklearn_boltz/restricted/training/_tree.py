"""A tree of pairs of binary columns (Chow and Liu, 1968), which any model should beat."""

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import xlogy

# A half row more in each cell of a pair, and columns at most: the tree takes seconds beyond.
EXTRA, MOST_COLUMNS = 0.5, 1000


def tree_log_density(rows, others):
    """ln p of rows under the tree of largest likelihood of other rows.

    Parameters
    ----------
    rows, others : ndarray of shape (n_rows, n_columns)
        Zeros and ones.

    Returns
    -------
    log_p : ndarray of float64 of shape (n_rows,)
    """
    X = np.asarray(others, np.float64)
    states = np.stack([1 - X, X])
    joint = np.einsum("ani,bnj->abij", states, states, optimize=True) + EXTRA
    joint /= len(X) + 4 * EXTRA
    single = states.sum(axis=1) + 2 * EXTRA
    single /= len(X) + 4 * EXTRA
    independent = single[:, np.newaxis, :, np.newaxis] * single[np.newaxis, :, np.newaxis]
    information = xlogy(joint, joint / independent).sum(axis=(0, 1))
    # Of a sparse graph, an entry of 0 is no edge.
    tree = minimum_spanning_tree(-np.triu(information + 1e-9, 1))
    order, parents = breadth_first_order(tree, 0, directed=False)
    V = np.asarray(rows).astype(int)
    log_p = np.log(single[V[:, 0], 0])
    for k in order[1:]:
        parent = parents[k]
        log_p += np.log(joint[V[:, parent], V[:, k], parent, k] / single[V[:, parent], parent])
    return log_p
