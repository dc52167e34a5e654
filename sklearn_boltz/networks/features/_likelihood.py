"""Rounds that raise the likelihood of a network of features: Newton's method, moments of chains.

A pseudo-likelihood compares each cell with others of its row. Where columns determine each other,
conditional distributions that are nearly right leave a joint one that is far off. At the maximum
of the likelihood, the means of features and of their products are those of the rows, except for
what the prior takes off. Those of the network come from chains that go on from round to round
(Younes, 1999; Tieleman, 2008).
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from sklearn_boltz.networks.features._objective import FeatureObjective
from sklearn_boltz.networks.model._potts_model import PottsChains

# Rounds at most, and how many of the last are averaged, with half steps.
N_ROUNDS, N_AVERAGED = 80, 25
# Chains for each row, within bounds, and their sweeps of a round.
FEWEST_CHAINS, MOST_CHAINS, N_SWEEPS = 2000, 4096, 2
# Chains whose states tell second derivatives, and steps of conjugate gradients with these.
N_STATES, N_STEPS = 2048, 10
# Second derivatives of independent columns that are added to those of the chains: these are
# singular, with fewer states than products of features, and noisy.
ADDED = 1.0
# The longest step, in nats between the networks before and after it.
LONGEST = 0.05


def raise_likelihood(fit, network, monitor, generator):
    """Go on from a maximum of the pseudo-likelihood to that of the likelihood.

    Parameters
    ----------
    fit : Rounds
        A fit that has ended; its prior stays as it is.
    network : FeatureNetwork
        Its result.
    monitor : Monitor
        The networks of all rounds go to it; of the last ones their mean.
    generator : Generator
    """
    objective, mean = fit.objective(network), 0
    of_rows = network.moments(objective.codes, objective.weights)
    chains = _starts(objective, generator)
    n_rounds = max(min(N_ROUNDS, monitor.max_iter - len(monitor.values)), 0)
    monitor.status = "converged" if n_rounds == N_ROUNDS else "max_iter"
    monitor.bar.total = len(monitor.values) + n_rounds
    for k in range(n_rounds):
        if k and not fit.is_exact:  # other rows, or other draws of their missing cells
            objective = fit.objective(network)
            of_rows = network.moments(objective.codes, objective.weights)
        chains = _drawn(network, chains, generator)
        step = _newton_step(network, objective, of_rows, chains)
        is_last = k >= n_rounds - N_AVERAGED
        size = 0.5 if is_last else 1.0
        network = network.at(network.theta + size * step)
        averaged = network
        if is_last:
            mean = mean + (network.theta - mean) / (k + 1 - max(n_rounds - N_AVERAGED, 0))
            averaged = network.at(mean)
        point = objective.at(averaged.theta)
        if fit.record(monitor, point, averaged):
            return


def _starts(objective, generator):
    """Random rows, as often as they count."""
    n_rows, p = len(objective.codes), objective.weights.astype(np.float64)
    n_chains = np.clip(n_rows, FEWEST_CHAINS, MOST_CHAINS)
    return objective.codes[generator.choice(n_rows, n_chains, p=p / p.sum())]


def _drawn(network, codes, generator):
    """The states of chains after some sweeps."""
    model = network.model()
    chains = PottsChains(model, codes, int(generator.integers(2**63)))
    chains.sweep(model.intercept, N_SWEEPS)
    return chains.codes


def _conditional_moments(network, states):
    """Moments of the network, from the means of each column given the others of the states.

    They know values that are too rare for the states to have them.
    """
    weights, every = np.ones(len(states), network.dtype), np.ones(states.shape, dtype=bool)
    second, first = network.moments(states, weights)
    sampled = FeatureObjective(network, states, every, weights, np.zeros_like(network.coupling))
    point = sampled.at(network.theta)
    # Derivatives are means of x - E[x | others], times the other columns of a row in either order.
    return second - point.gradient[:-1], first - point.gradient[-1]


def _newton_step(network, objective, of_rows, states):
    """A change of θ, not too long; `of_rows` are the moments of the rows."""
    own, n = objective.own, len(objective.own)
    penalty = np.where(own, 0, objective.penalty)
    (second, first), (ours, mean) = of_rows, _conditional_moments(network, states)
    slope = _packed(np.where(own, 0, second - ours - penalty * network.coupling), first - mean)
    variance = np.concatenate([basis.shares @ basis.features**2 for basis in network.bases])
    independent = np.append(np.where(own, 1, np.outer(variance, variance)), variance)
    added = ADDED * independent + np.append(penalty, np.zeros(n))
    x = network.expand(states[:N_STATES], range(len(network.columns)))

    def changes(step):
        """Changes of ln p of the states by a step, except for a constant."""
        coupling, intercept = _unpacked(step.astype(x.dtype), n)
        change = np.einsum("ij,ij->i", x @ coupling, x) / 2 + x @ intercept
        return change - change.mean()

    def curvature(step):
        change = changes(step)
        products = (x * change[:, None]).T @ x
        products[own] = 0
        return _packed(products, change @ x) / len(x) + added * step

    operator = LinearOperator((len(slope),) * 2, curvature, dtype=np.float64)
    scaling = LinearOperator((len(slope),) * 2, lambda r: r / (added + independent))
    step, _ = cg(operator, slope, maxiter=N_STEPS, M=scaling)
    length = (changes(step) ** 2).mean() / 2
    step = step * min(1.0, np.sqrt(LONGEST / max(length, LONGEST)))
    return np.vstack(_unpacked(step, n)).astype(network.dtype)


def _packed(coupling, intercept):
    """A vector whose product with another counts each coupling once."""
    return np.append(coupling / np.sqrt(2.0), intercept).astype(np.float64)


def _unpacked(vector, n):
    return vector[:-n].reshape(n, n) * np.sqrt(2.0, dtype=vector.dtype), vector[-n:]
