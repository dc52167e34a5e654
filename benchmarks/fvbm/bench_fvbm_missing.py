"""Whether the intervals of FVBMPseudoLikelihood are right where cells are missing.

Data of known networks, of bits and of categorical columns, of which 10 % and 30 % of the cells are
deleted at random. For each way to deal with them: the coverage of the 95 % intervals, the standard
errors in ratio to the spread of the estimates, and the bias in spreads. Rivals: only the complete
rows, and each missing cell filled by the most frequent value.
"""

import warnings

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, run_script
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.networks.model._gauge import to_zero_sum
from sklearn_boltz.networks.model._potts_model import PottsModel
from sklearn_boltz.statistics.covariance._categorical import as_parameters

N_ROWS, N_SETS, SCALE = 1000, 300, 0.35
NETWORKS = {"bits": [2] * 6, "categories": [2, 3, 4, 3]}


def random_network(n_values, rng):
    """A network with normal parameters, and these as `inference` has them."""
    n_values = np.array(n_values)
    coupling = np.triu(rng.normal(scale=SCALE, size=(n_values.sum(),) * 2))
    coupling, intercept = to_zero_sum(
        coupling + coupling.T, rng.normal(scale=SCALE, size=n_values.sum()), n_values
    )
    model = PottsModel(coupling, intercept, n_values)
    if (n_values > 2).any():
        return model, as_parameters(coupling, intercept, n_values)
    pairs = coupling[1::2, 1::2][np.triu_indices(len(n_values), 1)]
    return model, np.concatenate([intercept[1::2], pairs])


def ways(X):
    """Tables to fit, with the way to fit them."""
    complete = X[~np.isnan(X).any(axis=1)]
    return {
        "EM": (X, "em"),
        "observed terms": (X, "observed"),
        "complete rows": (complete, "em"),
        "most frequent": (SimpleImputer(strategy="most_frequent").fit_transform(X), "em"),
    }


def one_set(n_values, truth, X):
    """Estimates and their errors by each way; None where the data have no maximum."""
    found = {}
    for name, (table, missing) in ways(X).items():
        model = FVBMPseudoLikelihood(n_values=n_values, alpha=0.0, missing=missing).fit(table)
        if not model.converged_:
            found[name] = None
            continue
        result = statistics.inference(model, table)
        found[name] = (
            result.estimate,
            result.std_err,
            (result.ci_low < truth) & (truth < result.ci_high),
        )
    return found


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the data sets to run")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    n_sets = max(2, round(args.share * N_SETS))
    rows = []
    for network, n_values in NETWORKS.items():
        for deleted in (0.1, 0.3):
            rng = np.random.default_rng(round(100 * deleted))
            model, truth = random_network(n_values, rng)
            results = []
            for _ in range(n_sets):
                X = model.sample(N_ROWS, rng, 1).astype(float)
                X[rng.random(X.shape) < deleted] = np.nan
                results.append(one_set(n_values, truth, X))
            for name in results[0]:
                kept = [r[name] for r in results if r[name] is not None]
                if len(kept) < 2:
                    continue
                estimates, errors, covered = (np.array(part) for part in zip(*kept, strict=True))
                spread = estimates.std(axis=0, ddof=1)
                bias = np.abs(estimates.mean(axis=0) - truth) / spread
                coverage = covered.mean(axis=1)
                error = coverage.std(ddof=1) / np.sqrt(len(kept))
                rows.append([network, f"{deleted:.0%}", name, len(kept),
                             f"{coverage.mean():.3f} ± {error:.3f}",
                             f"{np.mean(errors.mean(axis=0) / spread):.2f}",
                             f"{bias.mean():.2f}"])  # fmt: skip
    with report(args.output / "fvbm_missing.txt", "Intervals where cells are missing"):
        print_table(["network", "deleted", "way", "sets", "coverage", "error / spread",
                     "bias / spread"], rows)  # fmt: skip


if __name__ == "__main__":
    run_script(main)
