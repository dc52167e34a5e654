"""The data of Table 1 of the FSLL paper."""

from sklearn_boltz.datasets import make_bayesian_network, make_ising_grid

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
