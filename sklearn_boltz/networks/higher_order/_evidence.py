"""How many nats a term is worth, and which may be worth most: triples all at once."""

from itertools import combinations

import numpy as np

from sklearn_boltz.networks.training._objective import PseudoLikelihood

# A joint value of the columns of a term is rare in fewer rows.
LEAST_ROWS = 5
# Rows that are multiplied at once.
ROWS = 2**12


def gains(pairs: PseudoLikelihood, tanh, terms, weights, present, allowed=None):
    """Half the squared z values of terms, for those in the model as for candidates.

    For a term t and the parts l of it that are in the model, let s be the scores of a row, and H
    minus the second derivative of the penalised log pseudo-likelihood. u = s_t - H_tl H_ll⁻¹ s_l is
    the score whose mean does not change with the parameters l. Were the weight θ_t 0, its sum would
    be A = Σ u + θ_t (H_tt - H_tl H_ll⁻¹ H_lt); and the gain is A² / (2 Σ u²). This is with the
    variance of the scores, and not with H: that is too small for a pseudo-likelihood, where a term
    stands in the conditional distribution of each of its columns.

    Where a joint value of the columns is rare, H_ll is nearly singular, and u is s_t, whose
    variance is greater; without a penalty, the gain counts for 0, as there may be no maximum.

    Parameters
    ----------
    pairs : PseudoLikelihood
    tanh : ndarray of shape (d, n)
        Of the fields of the rows.
    terms : list of tuples of int
    weights : sequence of float
        Their weights, 0 for candidates.
    present : set of tuples of int
        The terms in the model.
    allowed : ndarray of bool of shape (d, d), default=None
        The pairs in the model; None for all.

    Returns
    -------
    gains : ndarray of shape (n_terms,)
        In nats.
    """
    x = pairs.spins
    q = np.abs(x) - x * tanh
    curvature = np.abs(x) - tanh**2
    curvature *= pairs.weights
    found = [
        _gain(x[list(term)], q[list(term)], curvature[list(term)], pairs, weight, parts)
        for term, weight, parts in zip(
            terms, weights, (_parts(term, present, allowed) for term in terms), strict=True
        )
    ]
    return np.array(found, dtype=np.float64)


def _parts(term, present, allowed):
    """The parts of a term that are in the model, as places in the term; the term itself last."""
    k = len(term)

    def is_present(part):
        if len(part) > 2:
            return part in present
        return len(part) < 2 or allowed is None or allowed[part]

    places = (places for size in range(1, k) for places in combinations(range(k), size))
    parts = [part for part in places if is_present(tuple(term[a] for a in part))]
    return [*parts, tuple(range(k))]


def _gain(x, q, curvature, pairs, weight, parts):
    rare = rarest(x, pairs.weights) < LEAST_ROWS
    if rare and not pairs.penalty:
        return 0.0
    products = np.array([x[list(part)].prod(axis=0) for part in parts])
    contains = np.array([[a in part for a in range(len(x))] for part in parts])
    share, effective = _adjustment(_information(products, contains, curvature, pairs.penalty))
    scores = products * (contains.astype(np.float64) @ q)
    score = scores[-1] if rare else scores[-1] - share @ scores[:-1]
    slope = pairs.weights @ score + weight * effective
    return float(slope**2 / (2 * max(pairs.weights @ score**2, 1e-300)))


def _information(products, contains, curvature, penalty):
    """H of the parts of a term: each column has a regression on the parts that contain it."""
    information = np.zeros((len(products),) * 2)
    for own, sech2 in zip(contains.T, curvature, strict=True):
        information[np.ix_(own, own)] += (products[own] * sech2) @ products[own].T
    information[np.diag_indices_from(information)] += penalty * (contains.sum(axis=1) > 1)
    return information


def _adjustment(information):
    """H_ll⁻¹ H_lt and H_tt - H_tl H_ll⁻¹ H_lt, t being the last parameter."""
    known, mixed = information[:-1, :-1], information[:-1, -1]
    ridge = max(1e-12 * known.trace(), 1e-30) * np.eye(len(known))
    share = np.linalg.solve(known + ridge, mixed)
    return share, information[-1, -1] - mixed @ share


def rarest(x, weights):
    """How many rows have the rarest joint value of some columns; rows with gaps do not count."""
    codes = (x > 0).T @ (1 << np.arange(len(x)))
    return np.bincount(codes, weights * (x != 0).all(axis=0), minlength=1 << len(x)).min()


def empty_term(pairs: PseudoLikelihood, terms):
    """The first term of which a joint value of its columns does not occur; None if all do.

    If all parts of the term are in the model, there is then no maximum without a penalty.
    """
    for term in terms:
        parts = (part for k in range(3, len(term)) for part in combinations(term, k))
        if all(part in terms for part in parts) and not rarest(
            pairs.spins[list(term)], pairs.weights
        ):
            return term
    return None


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
