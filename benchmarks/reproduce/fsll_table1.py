"""Table 1 and Figures 3 and 4 of the FSLL paper: FSLLDensity against Boltzmann machines.

On samples of a 5x4 Ising grid and of random Bayesian networks of 20 binary variables, 1,000 (S)
and 100,000 (L) rows.

The paper's networks are random and not published: its figures compare in kind only.

K. Takabatake, S. Akaho (2022). "Full-Span Log-Linear Model and Fast Learning Algorithm".
Neural Computation 34(6), 1398-1424.

The Boltzmann machines that the paper compares with are fully visible and of second order,

    p(s) = exp( Σ_i b_i s_i + Σ_{i<j} W_ij s_i s_j ) / Z,    s_i = (-1)^{x_i}

Tables over the 2^n states are in the order of ``numpy.ndindex``, the last variable fastest; s_i
and s_i s_j are then columns of a Walsh-Hadamard matrix, and means under p a transform of p.
"""

from unittest.mock import patch

import _path  # noqa: F401
import numpy as np
from _common import processor_timed as timed
from _common import script
from _reproduction import compare, keep_rows, plt, reproduction, save_picture, settings
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_boltz import FSLLDensity
from sklearn_boltz.datasets import make_bayesian_network, make_ising_grid
from sklearn_boltz.loglinear import fwht
from sklearn_boltz.loglinear._dual_table import DualTable

SIZES = {"S": 1_000, "L": 100_000}
NETWORKS = ["Ising5x4", "BN20-37", "BN20-54"]
SOLVERS = ["greedy", "newton"]
TO_THE_LETTER = "FL greedy, rows alone"
# KL(p_d||p), KL(p*||p), number of terms, seconds.
PAPER = {
    ("Ising5x4 S", "FL"): (2.501, 0.012, 31, 5),
    ("Ising5x4 S", "BM-DI"): (2.424, 0.087, 210, 13),
    ("Ising5x4 S", "BM-PCD"): (2.504, 0.094, 210, None),
    ("Ising5x4 L", "FL"): (0.476, 0.004, 37, None),
    ("Ising5x4 L", "BM-DI"): (0.473, 0.002, 210, 12),
    ("Ising5x4 L", "BM-PCD"): (0.528, 0.053, 210, None),
    ("BN20-37 S", "FL"): (4.355, 0.317, 39, None),
    ("BN20-37 S", "BM-DI"): (4.746, 0.863, 210, 17),
    ("BN20-37 S", "BM-PCD"): (4.803, 0.903, 210, None),
    ("BN20-37 L", "FL"): (0.697, 0.026, 105, 12),
    ("BN20-37 L", "BM-DI"): (1.422, 0.750, 210, 19),
    ("BN20-37 L", "BM-PCD"): (1.477, 0.806, 210, None),
    ("BN20-54 S", "FL"): (3.288, 0.697, 41, None),
    ("BN20-54 S", "BM-DI"): (3.743, 1.301, 210, 23),
    ("BN20-54 S", "BM-PCD"): (3.826, 1.338, 210, None),
    ("BN20-54 L", "FL"): (0.430, 0.057, 192, 23),
    ("BN20-54 L", "BM-DI"): (1.545, 1.166, 210, 21),
    ("BN20-54 L", "BM-PCD"): (1.620, 1.242, 210, None),
}


def draw(network, n_samples, seed):
    """Rows, the true distribution and, for the Ising grid, the true edges."""
    if network == "Ising5x4":
        return make_ising_grid(
            n_samples=n_samples, random_state=seed, return_distribution=True, return_edges=True
        )
    # The same network for every number of rows, as in the paper.
    n_parents = 2 if network == "BN20-37" else 3
    X, p = make_bayesian_network(
        20, n_samples, max_parents=n_parents, network_state=seed, random_state=1000 + seed,
        return_distribution=True,
    )  # fmt: skip
    return X, p, None


def log_distribution(codes, theta, n_features):
    """ln p(x) for all 2^n states of a log-linear model with the terms `codes`."""
    table = np.zeros(2**n_features)
    table[codes] = theta
    table = fwht(table, overwrite_a=True)
    table -= logsumexp(table)
    return table


def second_order_codes(n_features):
    """Codes of s_0, ..., s_{n-1}, then of all s_i s_j with i < j."""
    single = 1 << np.arange(n_features)[::-1]
    first, second = np.triu_indices(n_features, 1)
    return np.concatenate([single, single[first] | single[second]])


def bm_di(X):
    """Boltzmann machine by direct integration, BFGS on the exact KL(p_d || p); -> ln p, terms."""
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
    """Boltzmann machine by persistent contrastive divergence with the paper's settings.

    A step is a Gibbs sweep over all variables of all chains, then a step along the gradient.
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


class RowsAlone(DualTable):
    """Moments of the rows alone, as in the paper, without the observation that is added to them.

    For binary columns. A term whose moment is ±1 gets the greatest weight that rounding allows.
    """

    def set_data(self, codes, weights):
        super().set_data(codes, weights)
        edge = 1 - 2 * np.finfo(self.d.dtype).eps
        self.d[1:] = np.clip(self.d[1:] * (1 + 1 / weights.sum()), -edge, edge)


def fit_fsll(X, solver):
    model = FSLLDensity(solver=solver, columns=range(2))
    _, seconds = timed(model.fit, X)
    codes = model.basis_ @ (1 << np.arange(X.shape[1])[::-1])
    return model, log_distribution(codes, model.theta_, X.shape[1]), seconds


def kl(p, log_q):
    """KL(p || q) in nats."""
    seen = p > 0
    return float(p[seen] @ (np.log(p[seen]) - log_q[seen]))


def empirical(X):
    codes = X @ (1 << np.arange(X.shape[1])[::-1])
    return np.bincount(codes, minlength=2 ** X.shape[1]) / len(X)


def count_edges(model, edges):
    """Number of true edges among the terms, and of other terms."""
    true = np.zeros((len(edges), model.n_features_in_), dtype=int)
    true[np.arange(len(edges))[:, None], edges] = 1
    found = {tuple(y) for y in model.basis_} & {tuple(y) for y in true}
    return len(found), len(model.basis_) - len(found)


def run(network, size, seed):
    """KL(p_d||p), KL(p*||p), terms and seconds of each model; the edges that newton finds."""
    X, p_true, edges = draw(network, SIZES[size], seed)
    p_true, p_data = p_true.ravel(), empirical(X)
    with patch("sklearn_boltz.loglinear._fit.DualTable", RowsAlone):
        fits = {TO_THE_LETTER: fit_fsll(X, "greedy")}
    fits |= {f"FL {solver}": fit_fsll(X, solver) for solver in SOLVERS}
    found = {name: (log_p, len(model.theta_), s) for name, (model, log_p, s) in fits.items()}
    for name, baseline in (("BM-DI", bm_di), ("BM-PCD", bm_pcd)):
        (log_p, n_terms), seconds = timed(baseline, X)
        found[name] = log_p, n_terms, seconds
    figures = {name: (kl(p_data, log_p), kl(p_true, log_p), n_terms, seconds)
               for name, (log_p, n_terms, seconds) in found.items()}  # fmt: skip
    return figures, None if edges is None else count_edges(fits["FL newton"][0], edges)


def rows_of(medians):
    """The table: the paper's figures beside ours."""
    for (data, model), (kl_data, kl_true, n_terms, seconds) in medians.items():
        theirs = PAPER[data, model.split()[0]]
        yield (
            [data, model, f"{theirs[0]:.3f}", f"{kl_data:.3f}", f"{theirs[1]:.3f}"]
            + [f"{kl_true:.4f}", theirs[2], f"{n_terms:.0f}", theirs[3] or "", f"{seconds:.2f}"]
        )


def draw_figures(medians, path):
    """KL(p*||p) and seconds as bars, Figures 3 and 4, the paper's pale."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    sets, models = (list(dict.fromkeys(names)) for names in zip(*medians, strict=True))
    for panel, column in zip(panels, (1, 3), strict=True):
        for k, model in enumerate(models):
            at = np.arange(len(sets)) + 0.17 * (k - 2)
            theirs = [PAPER[data, model.split()[0]][column] or np.nan for data in sets]
            panel.bar(at - 0.04, theirs, 0.08, color=f"C{k}", alpha=0.35)
            ours = [medians[data, model][column] for data in sets]
            panel.bar(at + 0.04, ours, 0.08, color=f"C{k}", label=model)
        panel.set(yscale="log", xticks=range(len(sets)))
        panel.set_xticklabels(sets, rotation=25)
    panels[0].set_title("KL(p*||p), nats; pale: the paper")
    panels[1].set_title("seconds; pale: the paper (Java, i7-6700K), where printed")
    panels[0].legend(fontsize="small")
    save_picture(figure, path)


def comparison(medians, edges, n_seeds):
    """What the paper says of its table, and what came out here."""
    sets = list(dict.fromkeys(data for data, _ in medians))

    def divergences(model):
        """KL(p*||p) on each set."""
        return np.array([medians[data, model][1] for data in sets])

    def times(model):
        return np.array([medians[data, model][3] for data in sets])

    di, greedy = divergences("BM-DI"), divergences("FL greedy")
    bayesian = [data.startswith("BN") for data in sets]
    factors = (di / greedy)[bayesian]
    theirs = [PAPER[data, "BM-DI"][1] / PAPER[data, "FL"][1] for data in sets
              if data.startswith("BN")]  # fmt: skip
    slowest = max(times(f"FL {solver}").max() for solver in SOLVERS)
    sampled = (divergences("BM-PCD") > di).sum()
    faster = [(times(f"FL {solver}") < times("BM-DI")).sum() for solver in SOLVERS]
    small = [medians["Ising5x4 S", model][1] for model in ("FL greedy", "BM-DI")]
    true, others = edges
    terms = [medians["BN20-54 L", f"FL {solver}"][2] for solver in SOLVERS]
    ratio = (divergences("FL newton") / greedy).max()
    alone = divergences(TO_THE_LETTER) / greedy
    return [
        ("settings", "one network of each kind", f"median of {n_seeds} other ones", None),
        ("KL(p*||p) on Ising5x4 S: FL, BM-DI", "0.012, 0.087",
         f"{small[0]:.3f}, {small[1]:.3f}", small[0] < small[1]),
        ("KL(p*||p) of BM-DI by that of FL on Bayesian networks",
         f"{min(theirs):.1f} to {max(theirs):.1f}",
         f"{min(factors):.1f} to {max(factors):.1f}", min(factors) > 1),
        ("sets on which BM-PCD is less accurate than BM-DI", "6 of 6",
         f"{sampled} of {len(sets)}", sampled == len(sets)),
        ("sets that FL learns faster than BM-DI", "5 of 6",
         f"{faster[0]} of {len(sets)} greedy, {faster[1]} newton", faster[0] >= 5),
        ("slowest fit of FL, asked less than a minute", "23 s", f"{slowest:.2f} s", slowest < 60),
        ("terms of FL on BN20-54 L", "192", f"{terms[0]:.0f} greedy, {terms[1]:.0f} newton", None),
        ("terms of FL on Ising5x4 L, of which 31 are true", "37",
         f"{true} true and {others} other ones (newton)", None),
        ("largest KL(p*||p) of newton by that of greedy", "", f"{ratio:.2f}", None),
        ("KL(p*||p) of FL greedy by the rows alone, over that with the observation added", "",
         f"{min(alone):.2f} to {max(alone):.2f}", None),
    ]  # fmt: skip


@script
def main():
    args = settings(__doc__, full=dict(seeds=3), quick=dict(seeds=1))
    with reproduction("fsll_table1", "FSLL, Table 1 and Figures 3 and 4", args):
        medians, edges = {}, {}
        for network in NETWORKS:
            for size in SIZES:
                found, n_edges = zip(*(run(network, size, seed) for seed in range(args.seeds)),
                                     strict=True)  # fmt: skip
                edges[network, size] = n_edges[0]
                for model in found[0]:
                    figures = np.median([own[model] for own in found], axis=0)
                    medians[f"{network} {size}", model] = figures
        header = ["data", "model", "KL(p_d||p): paper", "here", "KL(p*||p): paper", "here",
                  "terms: paper", "here", "seconds: paper", "here"]  # fmt: skip
        keep_rows(args, header, list(rows_of(medians)))
        compare(args, comparison(medians, edges["Ising5x4", "L"], args.seeds))
    draw_figures(medians, f"{args.stem}.png")
