"""How often values occur where strongly coupled columns are drawn together.

The pseudo-likelihood compares each cell with others of its row, of which one that all but
determines it leaves nothing to learn: an education and its number may have any frequencies, as long
as they agree. What both are if neither is known is then told by their shares in the rows.
"""

import numpy as np

from sklearn_boltz.networks.model._potts_model import PottsModel

# Rows of which the conditional distribution of a pair is the mean, and rounds over all pairs.
N_ROWS, N_ROUNDS = 500, 5


def with_marginals(model, codes, weights, shares):
    """A network where the columns of strongly coupled pairs have their shares in the rows.

    Parameters
    ----------
    model : PottsModel
    codes : ndarray of int of shape (n, d)
        Complete rows.
    weights : ndarray of shape (n,)
    shares : ndarray of shape (Q,)
        Of all states, with what is added for those that are rare.

    Returns
    -------
    model : PottsModel
    """
    rows = np.linspace(0, len(codes) - 1, min(N_ROWS, len(codes))).astype(np.intp)
    codes, weights = codes[rows], weights[rows] / weights[rows].sum()
    intercept, starts = model.intercept.copy(), model.starts
    fields = model.one_hot(codes) @ model.coupling
    for _ in range(N_ROUNDS):
        for j, k in model.pairs:
            own, other = (slice(starts[i], starts[i + 1]) for i in (j, k))
            coupling = model.coupling[own, other]
            p_j = _ratios(fields[:, own] - coupling[:, codes[:, k]].T + intercept[own])
            p_k = _ratios(fields[:, other] - coupling[codes[:, j]] + intercept[other])
            both = _ratios(coupling.ravel()).reshape(coupling.shape)
            sums = np.maximum(((p_j @ both) * p_k).sum(axis=1), np.finfo(float).tiny)
            found = (p_j.T * (weights / sums)) @ p_k * both
            for states, sums in ((own, found.sum(axis=1)), (other, found.sum(axis=0))):
                least = 0.1 * shares[states].min()
                intercept[states] += np.log((shares[states] + least) / (sums + least)) / 2
    return PottsModel(model.coupling, intercept, model.n_values)


def _ratios(log_p):
    """Probabilities in ratio to the greatest of each row."""
    return np.exp(log_p - log_p.max(axis=-1, keepdims=True))
