"""Survey weights: do the intervals of the sandwich contain the means and couplings of the public?

A public of a known network of four columns, of two values or of two and three, with and without
missing cells. Who answers depends on the answers: the probability of a row to be in the
sample rises with an interaction and with a column. Its weight is one over that probability, times
noise, in any unit. The truth is that of the public. Coverage of the 95 % intervals with the
weights, and without them, where selection is taken for association.
"""

import warnings
from itertools import product

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.networks.model._gauge import to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.statistics.covariance._categorical import as_parameters

N_ROWS, N_SETS, MISSING, NOISE = 500, 1000, 0.15, 0.3
NETWORKS = {"bits": (2, 2, 2, 2), "levels": (2, 3, 2, 3)}


def public(n_values):
    """The states of a network, their probabilities, and its parameters as `inference` has them."""
    rng, n_values = np.random.default_rng(3), np.array(n_values)
    coupling = np.triu(rng.normal(scale=0.3, size=(n_values.sum(),) * 2))
    intercept = rng.normal(scale=0.3, size=n_values.sum())
    coupling, intercept = to_zero_sum(coupling + coupling.T, intercept, n_values)
    states = np.indices(n_values).reshape(len(n_values), -1).T
    log_p = PottsModel(coupling, intercept, n_values).log_weight(states)
    p = np.exp(log_p - log_p.max())
    if (n_values > 2).any():
        theta = as_parameters(coupling, intercept, n_values)
    else:
        pairs = coupling[1::2, 1::2][np.triu_indices(len(n_values), 1)]
        theta = np.concatenate([intercept[1::2], pairs])
    return states, p / p.sum(), theta


def sample(states, p, rng):
    """Rows that have answered, and their weights."""
    chance = np.exp(0.5 * (states[:, 0] == states[:, 1]) + 0.6 * (states[:, 2] > 0))
    chosen = rng.choice(len(states), size=N_ROWS, p=p * chance / (p @ chance))
    noise = np.exp(NOISE * rng.normal(size=N_ROWS))
    return states[chosen].astype(float), 1234.5 * noise / chance[chosen]


def covers(model, X, weights, truth):
    """Which intervals of the parameters contain the truth."""
    model.fit(X, sample_weight=weights)
    result = statistics.inference(model, X, sample_weight=weights, covariance="sandwich")
    return (result.ci_low < truth) & (truth < result.ci_high)


def of_table(states, p, theta, seed, *, gaps, weighted):
    """Coverage of the mean parameters of columns, and of couplings, in one sample."""
    rng, d = np.random.default_rng(seed), states.shape[1]
    X, weights = sample(states, p, rng)
    weights = weights if weighted else None
    if gaps:
        X[rng.random(X.shape) < MISSING] = np.nan
    n_values = states.max(axis=0) + 1
    pairs = covers(FVBMPseudoLikelihood(alpha=0), X, weights, theta)
    n_first = d if (n_values == 2).all() else n_values.sum()
    # A network without couplings has the means of columns.
    shares = [np.bincount(column, p) for column in states.T]
    logs = [np.log(share) - np.log(share).mean() for share in shares]
    means = [log[1:] for log in logs] if n_first == d else logs
    edges = np.zeros((d, d), dtype=bool)
    truth = np.append(np.concatenate(means), np.zeros(len(theta) - n_first))
    of_means = covers(SparseFVBM(edges=edges, alpha=0), X, weights, truth)[:n_first]
    return of_means.mean(), pairs[n_first:].mean()


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the tables to run")
    args, rows = parser.parse_args(), []
    warnings.simplefilter("ignore", UserWarning)
    with report(args.output / "survey_weights.txt", "Coverage of 95 % intervals, survey weights"):
        for (name, n_values), gaps in product(NETWORKS.items(), (False, True)):
            known = public(n_values)
            for weighted in (True, False):
                n = max(2, round(args.share * N_SETS / (1 if weighted else 10)))
                found = [of_table(*known, k, gaps=gaps, weighted=weighted) for k in range(n)]
                shown = [f"{c.mean():.3f} ± {c.std() / n**0.5:.3f}" for c in np.array(found).T]
                rows.append([name, "15 %" if gaps else "none", "yes" if weighted else "no", n])
                rows[-1] += shown
        print_table(["columns", "missing", "weights", "tables", "means", "couplings"], rows)
