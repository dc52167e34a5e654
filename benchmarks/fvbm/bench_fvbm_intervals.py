"""Intervals and tests of FVBMPseudoLikelihood: how many rows they need, and with missing cells.

Data of sparse networks: a random graph of mean degree 4, couplings N(0, 0.3²), intercepts
likewise, a new network for each data set. Coverage of the 95 % intervals of all parameters, and
the edges that Benjamini and Hochberg's method declares at 5 %, by the jackknife and by the
sandwich.

Then data of known networks, of bits and of categorical columns, of which 10 % and 30 % of the cells
are deleted at random. For each way to deal with them: the coverage of the intervals, the standard
errors in ratio to the spread of the estimates, and the bias in spreads. Rivals: only the complete
rows, and each missing cell filled by the most frequent value.
"""

import warnings
from itertools import product

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.networks.model._gauge import to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._sampling import gibbs_sample
from sklearn_boltz.statistics.covariance._categorical import as_parameters

# Variables, and data sets of each size.
N_SETS = {10: 100, 20: 50, 40: 20}
N_ROWS = (200, 645, 2000, 10_000)
DEGREE, SCALE = 4, 0.3
COVARIANCES = "jackknife", "sandwich"


def covers(result, truth):
    return (result.ci_low < truth) & (truth < result.ci_high)


def shown(coverage, ddof=0):
    """Mean and standard error over the data sets."""
    return f"{coverage.mean():.3f} ± {coverage.std(ddof=ddof) / np.sqrt(len(coverage)):.3f}"


def with_both(theta, X):
    """Share of the intervals that cover θ; edges declared, and false ones among them.

    Of both covariances, one after another; None where the data have no maximum. θ = (b_1, ..., b_d,
    m_12, m_13, ...).
    """
    d = X.shape[1]
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    if not model.converged_:
        return None
    found = []
    for covariance in COVARIANCES:
        result = statistics.inference(model, X, covariance=covariance)
        declared = result.adjusted_p_value("fdr_bh")[np.triu_indices(d, 1)] < 0.05
        false = declared & (theta[d:] == 0)
        found.append((covers(result, theta).mean(), declared.sum(), false.sum()))
    return found


def by_rows(d, n_sets):
    """Rows of the table for networks of one size."""
    n_sets, rng = max(1, n_sets), np.random.default_rng(d)
    found = {n: [] for n in N_ROWS}
    for _ in range(n_sets):
        theta = rng.normal(scale=SCALE, size=d * (d + 1) // 2)
        theta[d:] *= rng.random(len(theta) - d) < DEGREE / (d - 1)
        # Weak couplings: the chains forget their start in a few dozen sweeps.
        coupling = np.zeros((d, d))
        coupling[np.triu_indices(d, 1)] = theta[d:]
        model = SpinModel(coupling + coupling.T, theta[:d])
        X = gibbs_sample(model, max(N_ROWS), 200, rng).astype(np.int8)
        for n in N_ROWS:
            found[n].append(with_both(theta, X[:n]))
    for n in N_ROWS:
        kept = np.array([f for f in found[n] if f is not None])
        row = [d, n, f"{n / d:g}", n_sets, n_sets - len(kept)]
        for k in range(len(COVARIANCES) if len(kept) else 0):
            coverage, edges, false = kept[:, k].T
            share = np.mean(false / np.maximum(edges, 1))
            row += [shown(coverage), f"{edges.mean():.1f}", f"{share:.3f}"]
        yield row + ["-"] * (11 - len(row))


# Missing cells.

NETWORKS, DELETED = {"bits": [2] * 6, "categories": [2, 3, 4, 3]}, (0.1, 0.3)
N_INCOMPLETE, N_OF_NETWORK, SCALE_OF_NETWORK = 1000, 300, 0.35  # rows, data sets


def random_network(n_values, rng):
    """A network with normal parameters, and these as `inference` has them."""
    n_values = np.array(n_values)
    coupling = np.triu(rng.normal(scale=SCALE_OF_NETWORK, size=(n_values.sum(),) * 2))
    coupling, intercept = to_zero_sum(
        coupling + coupling.T, rng.normal(scale=SCALE_OF_NETWORK, size=n_values.sum()), n_values
    )
    model = PottsModel(coupling, intercept, n_values)
    if (n_values > 2).any():
        return model, as_parameters(coupling, intercept, n_values)
    pairs = coupling[1::2, 1::2][np.triu_indices(len(n_values), 1)]
    return model, np.concatenate([intercept[1::2], pairs])


def ways(X):
    """Tables to fit, with the way to fit them."""
    return {
        "EM": (X, "em"),
        "observed terms": (X, "observed"),
        "complete rows": (X[~np.isnan(X).any(axis=1)], "em"),
        "most frequent": (SimpleImputer(strategy="most_frequent").fit_transform(X), "em"),
    }


def with_gaps(network, deleted, n_sets):
    """Rows of the table for a network and a share of missing cells."""
    n_values, rng = NETWORKS[network], np.random.default_rng(round(100 * deleted))
    model, truth = random_network(n_values, rng)
    found = {}
    for _ in range(max(2, n_sets)):
        X = model.sample(N_INCOMPLETE, rng, 1).astype(float)
        X[rng.random(X.shape) < deleted] = np.nan
        for name, (table, missing) in ways(X).items():
            fit = FVBMPseudoLikelihood(
                columns=list(map(range, n_values)), alpha=0.0, missing=missing
            ).fit(table)
            if fit.converged_:  # else the data have no maximum
                result = statistics.inference(fit, table)
                figures = result.estimate, result.std_err, covers(result, truth)
                found.setdefault(name, []).append(figures)
    for name, kept in found.items():
        if len(kept) < 2:
            continue
        estimates, errors, covered = (np.array(part) for part in zip(*kept, strict=True))
        spread = estimates.std(axis=0, ddof=1)
        bias = np.abs(estimates.mean(axis=0) - truth) / spread
        yield [network, f"{deleted:.0%}", name, len(kept), shown(covered.mean(axis=1), ddof=1),
               f"{np.mean(errors.mean(axis=0) / spread):.2f}", f"{bias.mean():.2f}"]  # fmt: skip


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the data sets to run")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    with report(args.output / "fvbm_intervals.txt", "Intervals and tests by number of rows"):
        head = [f"{text}, {name}" for name in COVARIANCES
                for text in ("coverage", "edges at FDR 5 %", "false share")]  # fmt: skip
        rows = [row for d, n in N_SETS.items() for row in by_rows(d, round(args.share * n))]
        print_table(["d", "rows", "rows / d", "sets", "without maximum", *head], rows)
    with report(args.output / "fvbm_missing.txt", "Intervals where cells are missing"):
        n = round(args.share * N_OF_NETWORK)
        rows = [row for case in product(NETWORKS, DELETED) for row in with_gaps(*case, n)]
        print_table(["network", "deleted", "way", "sets", "coverage", "error / spread",
                     "bias / spread"], rows)  # fmt: skip
