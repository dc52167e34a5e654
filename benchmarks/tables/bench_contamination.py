"""Shares of new rows that detectors of outliers flag, beside the share that was asked for.

A detector is fitted to 100 or 200 of the 357 benign rows of breast_cancer, 30 columns, with
`contamination` at `--share`; the figure is the share of the other benign rows that are below its
threshold. The columns are the measurements as they are, or bits: above their medians in the rows of
the fit. For example

    python bench_contamination.py --data DIR

Of 100 rows, the share itself has a standard error of .02, whatever the detector.

Claim: with the default network, the mean over the seeds is within .03 of the share.
"""

import time

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, save_table
from _data import load_classes
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from sklearn_boltz import BoltzmannOutlierDetector

TOLERANCE, BENIGN = 0.03, "1"
HEADER = ["columns", "rows", "method", "seed", "share", "seconds"]
METHODS = {
    "IsolationForest": lambda share, seed: IsolationForest(contamination=share, random_state=seed),
    "LocalOutlierFactor": lambda share, seed: LocalOutlierFactor(contamination=share, novelty=True),
    "BoltzmannOutlierDetector": lambda share, seed: BoltzmannOutlierDetector(
        contamination=share, random_state=seed
    ),
}


def divide(X, columns, n_rows, seed):
    """-> rows of the fit and other rows, as numbers or as bits."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, new = X[order[:n_rows]], X[order[n_rows:]]
    if columns == "numbers":
        return train, new
    medians = np.median(train, axis=0)
    return (train > medians).astype(int), (new > medians).astype(int)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    X, y = load_classes("breast_cancer", args.data)
    X = np.asarray(X, dtype=float)[np.asarray(y) == BENIGN]
    with report(args.output / "tables_contamination.txt", "Shares of new rows that are flagged"):
        rows, lines, checks = [], [], []
        for columns in ("numbers", "bits"):
            for n_rows in args.sizes:
                for name, make in METHODS.items():
                    shares, seconds = [], 0.0
                    for seed in range(args.seeds):
                        train, new = divide(X, columns, n_rows, seed)
                        start = time.process_time()
                        detector = make(args.share, seed).fit(train)
                        seconds = time.process_time() - start
                        shares.append(float((detector.predict(new) == -1).mean()))
                        key = [columns, str(n_rows), name, str(seed)]
                        rows.append([*key, f"{shares[-1]:.4f}", f"{seconds:.2f}"])
                    mean = np.mean(shares)
                    each = " ".join(f"{share:.3f}" for share in shares)
                    lines.append([columns, n_rows, name, each, f"{mean:.3f}", f"{seconds:.1f}"])
                    if name == "BoltzmannOutlierDetector":
                        checks.append((f"{columns}, {n_rows} rows", mean))
        save_table(args.output / "tables_contamination.csv", HEADER, rows)
        header = ["columns", "rows", "method", "shares by seed", "mean", "CPU s of a fit"]
        print_table(header, lines)
        for what, mean in checks:
            asked = f"{args.share} ± {TOLERANCE}"
            print_check(what, asked, f"{mean:.3f}", abs(mean - args.share) <= TOLERANCE)


if __name__ == "__main__":
    run_script(main)
