"""How many rows the intervals and tests of FVBMPseudoLikelihood need.

Data of sparse networks: a random graph of mean degree 4, couplings N(0, 0.3²), intercepts
likewise, a new network for each data set. Coverage of the 95 % intervals of all parameters, and
the edges that Benjamini and Hochberg's method declares at 5 %, by the jackknife and by the
sandwich.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, run_script
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.sampling._sampling import gibbs_sample
from sklearn_boltz.networks.training._objective import unpack

# Variables, and data sets of each size.
N_SETS = {10: 100, 20: 50, 40: 20}
N_ROWS = (200, 645, 2000, 10_000)
DEGREE, SCALE = 4, 0.3
COVARIANCES = "jackknife", "sandwich"


def sparse_parameters(d, rng):
    """θ = (b_1, ..., b_d, m_12, m_13, ...) of a random graph."""
    theta = rng.normal(scale=SCALE, size=d * (d + 1) // 2)
    theta[d:] *= rng.random(len(theta) - d) < DEGREE / (d - 1)
    return theta


def one_set(theta, X):
    """Share of the intervals that cover the truth; edges declared, and false ones among them.

    Of both covariances, one after another; None where the data have no maximum.
    """
    d = X.shape[1]
    model = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    if not model.converged_:
        return None
    found = []
    for covariance in COVARIANCES:
        result = statistics.inference(model, X, covariance=covariance)
        declared = result.adjusted_p_value("fdr_bh")[d:] < 0.05
        covered = (result.ci_low < theta) & (theta < result.ci_high)
        found.append((covered.mean(), declared.sum(), (declared & (theta[d:] == 0)).sum()))
    return found


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the data sets to run")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", "There are .* rows for", UserWarning)
    rows = []
    for d, n_sets in N_SETS.items():
        n_sets = max(1, round(args.share * n_sets))
        rng = np.random.default_rng(d)
        found = {n: [] for n in N_ROWS}
        for _ in range(n_sets):
            theta = sparse_parameters(d, rng)
            # Weak couplings: the chains forget their start in a few dozen sweeps.
            X = gibbs_sample(SpinModel(*unpack(theta, d)), max(N_ROWS), 200, rng).astype(np.int8)
            for n in N_ROWS:
                found[n].append(one_set(theta, X[:n]))
        for n in N_ROWS:
            kept = np.array([f for f in found[n] if f is not None])
            row = [d, n, f"{n / d:g}", n_sets, n_sets - len(kept)]
            for k in range(len(COVARIANCES) if len(kept) else 0):
                coverage, edges, wrong = kept[:, k].T
                share = np.mean(wrong / np.maximum(edges, 1))
                error = np.std(coverage) / np.sqrt(len(kept))
                row += [f"{coverage.mean():.3f} ± {error:.3f}", f"{edges.mean():.1f}",
                        f"{share:.3f}"]  # fmt: skip
            rows.append(row + ["-"] * (11 - len(row)))
    with report(args.output / "fvbm_intervals.txt", "Intervals and tests by number of rows"):
        head = [f"{text}, {name}" for name in COVARIANCES
                for text in ("coverage", "edges at FDR 5 %", "false share")]  # fmt: skip
        print_table(["d", "rows", "rows / d", "sets", "without maximum", *head], rows)


if __name__ == "__main__":
    run_script(main)
