"""The data of Table 1 of the FSLL paper, and the Boltzmann machines that it compares with.

These are fully visible and of second order,

    p(s) = exp( Σ_i b_i s_i + Σ_{i<j} W_ij s_i s_j ) / Z,    s_i = (-1)^{x_i}

Tables over the 2^n states are in the order of ``numpy.ndindex``, the last variable fastest; s_i
and s_i s_j are then columns of a Walsh-Hadamard matrix, and means under p a transform of p.
"""

import numpy as np
from scipy.optimize import minimize

from sklearn_boltz.datasets import make_bayesian_network, make_ising_grid
from sklearn_boltz.loglinear import fwht

SIZES = {"S": 1_000, "L": 100_000}
NETWORKS = ["Ising5x4", "BN20-37", "BN20-54"]


def draw(network, n_samples, seed):
    """Rows, the true distribution and, for the Ising grid, the true edges."""
    if network == "Ising5x4":
        return make_ising_grid(
            n_samples=n_samples, random_state=seed, return_distribution=True, return_edges=True
        )
    # The same network for every number of rows, as in the paper.
    X, p = make_bayesian_network(
        20,
        n_samples,
        max_parents=2 if network == "BN20-37" else 3,
        network_state=seed,
        random_state=1000 + seed,
        return_distribution=True,
    )
    return X, p, None


def log_distribution(codes, theta, n_features):
    """ln p(x) for all 2^n states of a log-linear model with the terms `codes`."""
    table = np.zeros(2**n_features)
    table[codes] = theta
    table = fwht(table, overwrite_a=True)
    peak = table.max()
    table -= peak + np.log(np.exp(table - peak).sum())
    return table


def second_order_codes(n_features):
    """Codes of s_0, ..., s_{n-1}, then of all s_i s_j with i < j."""
    single = 1 << np.arange(n_features)[::-1]
    first, second = np.triu_indices(n_features, 1)
    return np.concatenate([single, single[first] | single[second]])


def bm_di(X):
    """Boltzmann machine by direct integration: BFGS on the exact KL(p_d || p).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Of 0 and 1.

    Returns
    -------
    log_p : ndarray of shape (2 ** n_features,)
    n_terms : int
    """
    n_features = X.shape[1]
    codes = second_order_codes(n_features)
    spins = 1.0 - 2.0 * X
    moments = np.concatenate(
        [spins.mean(axis=0), (spins.T @ spins / len(X))[np.triu_indices(n_features, 1)]]
    )

    def objective(theta):
        """ln Z - Σ θ_y d_y, and its gradient E_p[Φ] - d."""
        table = np.zeros(2**n_features)
        table[codes] = theta
        table = fwht(table, overwrite_a=True)
        peak = table.max()
        np.exp(np.subtract(table, peak, out=table), out=table)
        z = table.sum()
        table = fwht(table, overwrite_a=True)
        return peak + np.log(z) - theta @ moments, table[codes] / z - moments

    theta = minimize(objective, np.zeros(len(codes)), jac=True, method="BFGS").x
    return log_distribution(codes, theta, n_features), len(codes)


def bm_pcd(X, *, learning_rate=0.01, n_chains=100, n_steps=10_000, random_state=0):
    """Boltzmann machine by persistent contrastive divergence.

    A step is a Gibbs sweep over all variables of all chains, then a step along the gradient.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Of 0 and 1.
    learning_rate, n_chains, n_steps : float, int, int
        The paper's.
    random_state : int

    Returns
    -------
    log_p : ndarray of shape (2 ** n_features,)
    n_terms : int
    """
    rng = np.random.default_rng(random_state)
    n_features = X.shape[1]
    spins = 1.0 - 2.0 * X
    mean, second = spins.mean(axis=0), spins.T @ spins / len(X)
    b, W = np.zeros(n_features), np.zeros((n_features, n_features))
    chains = rng.choice([-1.0, 1.0], size=(n_features, n_chains))
    for _ in range(n_steps):
        # s = +1 with probability σ(2 field) is 2 field > a logistic variable.
        thresholds = 0.5 * rng.logistic(size=chains.shape) - b[:, None]
        for i in range(n_features):
            chains[i] = np.where(W[i] @ chains > thresholds[i], 1.0, -1.0)
        b += learning_rate * (mean - chains.mean(axis=1))
        W += learning_rate * (second - chains @ chains.T / n_chains)
        np.fill_diagonal(W, 0)
    codes = second_order_codes(n_features)
    theta = np.concatenate([b, W[np.triu_indices(n_features, 1)]])
    return log_distribution(codes, theta, n_features), len(codes)
