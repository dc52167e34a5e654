"""Rows that are unlike those of the training: `BoltzmannOutlierDetector` beside scikit-learn's.

A detector is fitted to half of the normal rows, and scores the other half and the outliers; the
figure is the area under the ROC curve, the mean over tasks and over `--seeds` partitions.

- digits: each class in turn is the outliers, pixels on from 8 of 16.
- soybean: the classes of 20 rows and less; 10 % of the cells are missing.
- vote: the party that is not in the training, each in turn; 5 % missing.
- ALARM: 2,000 rows of 37 words train; in 500 of 1,000 others, four cells are replaced by those of
  other rows.
- spikes: rows of 50 neurons with 3 spikes or more, 2,000 train; in 500 of 1,000 others, the values
  of each column are permuted, so that neurons fire as often, but independently.
- breast_cancer: benign tumours train, malignant ones are the outliers. wine, iris: each class in
  turn.

Words are one-hot columns for scikit-learn's detectors, with the most frequent one for missing
cells, and all columns are standardised. `contamination` has no part in the area, but in the time:
our detectors make four fits, three of them for the threshold. For example

    python bench_outliers.py --data DIR
    python bench_outliers.py --data DIR --sets vote --methods BoltzmannOutlierDetector

With some of the methods only, the figures of the others are those of the run before.

Claims: mean rank first among IsolationForest, LocalOutlierFactor, EllipticEnvelope and OneClassSVM;
digits at least .82.
"""

import csv
import time
import warnings

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_check, print_table, report, run_script, save_table
from _data import load_classes, load_spikes, load_table
from bench_classify import complete
from scipy.stats import rankdata
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from sklearn_boltz import SDCPRBM, BoltzmannOutlierDetector

SETS = ["digits", "soybean", "vote", "alarm", "spikes", "breast_cancer", "wine", "iris"]
ASKED, RARE, N_REPLACED = 0.82, 20, 4
HEADER = ["table", "method", "seed", "task", "auc", "seconds"]


# The tasks: rows to fit, rows to score, and which of these are outliers.


def leave_out(X, y, groups, rng):
    """Tasks in which groups of classes are the outliers."""
    for group in groups:
        strange = np.isin(y, group)
        normal = rng.permutation(np.flatnonzero(~strange))
        half = len(normal) // 2
        test = np.concatenate([normal[half:], np.flatnonzero(strange)])
        yield X.iloc[normal[:half]], X.iloc[test], strange[test]


def corrupt(X, change, rng):
    """One task, in which half of the rows to score are changed."""
    rows = rng.permutation(len(X))[:3000]
    train, normal, strange = (X.iloc[part] for part in np.split(rows, [2000, 2500]))
    cells = change(np.array(strange), np.array(train), rng)
    strange = pd.DataFrame(cells, columns=X.columns).astype(X.dtypes)
    yield train, pd.concat([normal, strange]), np.repeat([False, True], [len(normal), len(cells)])


def replace_cells(cells, others, rng):
    for row in cells:
        for j in rng.choice(len(row), N_REPLACED, replace=False):
            row[j] = others[rng.integers(len(others)), j]
    return cells


def permute_columns(cells, others, rng):
    return np.column_stack([rng.permutation(column) for column in cells.T])


def tasks(name, folder, seed):
    rng = np.random.default_rng(seed)
    if name == "alarm":
        return corrupt(load_table(name, folder), replace_cells, rng)
    if name == "spikes":
        bits = pd.DataFrame(load_spikes(folder)["spikes50"].astype(int))
        return corrupt(bits[bits.sum(axis=1) >= 3], permute_columns, rng)
    X, y = load_classes(name, folder)
    classes, counts = np.unique(y, return_counts=True)
    groups = [[c] for c in classes]
    if name == "soybean":
        groups = [classes[counts <= RARE]]
    if name == "breast_cancer":
        groups = [["0"]]
    return leave_out((X >= 8).astype(int) if name == "digits" else X, y, groups, rng)


# The detectors.


def with_numbers(detector):
    return make_pipeline(complete(), StandardScaler(), detector)


METHODS = {
    "IsolationForest": lambda name, seed: with_numbers(
        IsolationForest(n_estimators=300, random_state=seed)
    ),
    "LocalOutlierFactor": lambda name, seed: with_numbers(LocalOutlierFactor(novelty=True)),
    "EllipticEnvelope": lambda name, seed: with_numbers(EllipticEnvelope(random_state=seed)),
    "OneClassSVM": lambda name, seed: with_numbers(OneClassSVM()),
    "BoltzmannOutlierDetector": lambda name, seed: BoltzmannOutlierDetector(random_state=seed),
    # Beside the default, the density that the guide recommends for images.
    "the same, of an RBM": lambda name, seed: BoltzmannOutlierDetector(
        SDCPRBM(64, early_stopping=True), random_state=seed
    ),
}
OURS, RBM = list(METHODS)[-2:]


def measure(name, method, seed, folder):
    """Rows of results, one for each task."""
    rows = []
    for task, (train, test, strange) in enumerate(tasks(name, folder, seed)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of covariances without full rank
            start = time.process_time()
            scores = METHODS[method](name, seed).fit(train).score_samples(test)
            seconds = time.process_time() - start
        auc = roc_auc_score(~strange, scores)
        rows.append([name, method, str(seed), str(task), f"{auc:.5f}", f"{seconds:.2f}"])
    return rows


def kept_rows(path, args):
    """Rows of an earlier run which this one does not measure."""
    if not path.is_file():
        return []
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return [row for row in rows if row[0] not in args.sets or row[1] not in args.methods]


def tell(rows):
    """Print the means, and what was asked for beside them."""
    lines, means = [], {}
    for name in SETS:
        for method in METHODS:
            mine = [row[2:] for row in rows if row[:2] == [name, method]]
            if not mine:
                continue
            by_seed = {}
            for seed, _, auc, _ in mine:
                by_seed.setdefault(seed, []).append(float(auc))
            of_seeds = np.array([np.mean(values) for values in by_seed.values()])
            means[name, method] = of_seeds.mean()
            figure = f"{of_seeds.mean():.4f}"
            if len(of_seeds) > 1:
                figure += f" ± {of_seeds.std(ddof=1) / np.sqrt(len(of_seeds)):.4f}"
            seconds = np.mean([float(row[3]) for row in mine])
            lines.append([name, method, figure, f"{seconds:.2f}", len(mine)])
    print_table(["table", "method", "AUC", "seconds", "fits"], lines)
    rivals = [method for method in METHODS if method != RBM]
    whole = [name for name in SETS if all((name, method) in means for method in rivals)]
    if not whole:
        return
    ranks = np.mean(
        [rankdata([-means[name, method] for method in rivals]) for name in whole], axis=0
    )
    print_table(["method", "mean rank"], [
        [method, f"{rank:.2f}"] for method, rank in zip(rivals, ranks, strict=True)
    ])  # fmt: skip
    first = ranks[rivals.index(OURS)]
    print_check(f"mean rank over {len(whole)} tables", "first", f"{first:.2f}",
                first <= ranks.min())  # fmt: skip
    if ("digits", OURS) in means:
        of_digits = {m: means["digits", m] for m in (OURS, RBM) if ("digits", m) in means}
        best = max(of_digits, key=of_digits.get)
        print_check("digits, AUC", f">= {ASKED}", f"{of_digits[best]:.4f} ({best})",
                    of_digits[best] >= ASKED)  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    args = parser.parse_args()
    path = args.output / "tables_outliers.csv"
    with report(args.output / "tables_outliers.txt", "Outliers of tables, area under the curve"):
        rows = kept_rows(path, args)
        for name in args.sets:
            for method in args.methods:
                if method == RBM and name != "digits":
                    continue
                for seed in range(args.seeds):
                    rows += measure(name, method, seed, args.data)
                    save_table(path, HEADER, rows)
        tell(rows)


if __name__ == "__main__":
    run_script(main)
