"""Which terms may pay: all triples at once, and terms of four and more by heredity."""

from itertools import combinations

import numpy as np

from sklearn_boltz.networks.training._objective import PseudoLikelihood

# Rows that are multiplied at once.
ROWS = 2**12


def best_triples(pairs: PseudoLikelihood, tanh, n_best, known):
    """The triples of columns whose scores are greatest, in standard deviations.

    The score of a triple is A = Σ w p (q_i + q_j + q_k), with p = x_i x_j x_k and q = 1 - x tanh F,
    and its variance about J = Σ w (q_i + q_j + q_k)², as p² = 1. For each i, all A are one product
    of matrices.

    Parameters
    ----------
    pairs : PseudoLikelihood
    tanh : ndarray of shape (d, n)
        Of the fields of the rows.
    n_best : int
        How many triples are wanted.
    known : set of tuples of int
        Those that are not.

    Returns
    -------
    triples : list of tuples of int
        The best first.
    """
    x, w = pairs.spins.astype(np.float32), pairs.weights.astype(np.float32)
    q = np.abs(x) - x * tanh.astype(np.float32)
    products = (q * w) @ q.T
    gains, triples = np.empty(0), np.empty((0, 3), dtype=np.int64)
    for i in range(len(x) - 2):
        score = _scores_with(x, q, w, i)
        variance = _variances_with(products, i)
        j, k = np.triu_indices(len(score), 1)
        new = score[j, k] ** 2 / np.maximum(variance[j, k], 1e-30)
        rest = np.column_stack([np.full(len(j), i), i + 1 + j, i + 1 + k])
        gains, triples = np.concatenate([gains, new]), np.concatenate([triples, rest])
        if len(gains) > n_best + len(known):
            best = np.argpartition(-gains, n_best + len(known))[: n_best + len(known)]
            gains, triples = gains[best], triples[best]
    triples = triples[np.lexsort([*triples.T, -gains])]
    found = (tuple(triple) for triple in triples.tolist())
    return [triple for triple in found if triple not in known][:n_best]


def _scores_with(x, q, w, i):
    """A_ijk of all j and k greater than i, a symmetric matrix."""
    total = 0.0
    for start in range(0, x.shape[1], ROWS):
        rows = slice(start, start + ROWS)
        others = x[i + 1 :, rows]
        # q_i is shared out between j and k.
        left = others * (q[i + 1 :, rows] + 0.5 * q[i, rows])
        left *= w[rows] * x[i, rows]
        total = total + left @ others.T
    return total + total.T


def _variances_with(products, i):
    """J_ijk of all j and k greater than i, from the sums of q_i q_j."""
    own, squares = products[i, i + 1 :], products.diagonal()[i + 1 :]
    mixed = np.add.outer(own, own) + products[i + 1 :, i + 1 :]
    return products[i, i] + np.add.outer(squares, squares) + 2 * mixed


def heirs(terms, order):
    """Terms of one order all of whose parts of one column less are among the terms given."""
    parts = {term for term in terms if len(term) == order - 1}
    unions = {
        tuple(sorted({*one, *other}))
        for one, other in combinations(sorted(parts), 2)
        if len({*one, *other}) == order
    }
    return sorted(u for u in unions if all(p in parts for p in combinations(u, order - 1)))
