"""Rows unlike those of the training: `BoltzmannOutlierDetector` beside scikit-learn's and PyOD's.

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

Words are one-hot columns for the other detectors, with the most frequent one for missing cells, and
all columns are standardised. PyOD's KNN, ECOD and HBOS are left out where it is not installed; its
IForest and LOF call those of scikit-learn. `contamination` has no part in the area, but in the
time: our detectors make four fits, three of them for the threshold.

Then the shares of new rows that are flagged with `contamination` at .05: detectors are fitted to
100 or 200 of the 357 benign rows of breast_cancer, as numbers or as bits, above their medians in
the training rows; the figure is the share of the other benign rows that are below the threshold.
Of 100 rows, the share itself has a standard error of .02, whatever the detector.
"""

import itertools
import warnings
from importlib import import_module
from importlib.util import find_spec

import _path  # noqa: F401
import numpy as np
import pandas as pd
from _common import make_parser, print_table, processor_timed, report, script
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
RARE, N_REPLACED = 20, 4


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


def of_pyod(name):
    """A detector of PyOD, whose scores are larger for outliers."""
    return lambda seed: with_numbers(getattr(import_module(f"pyod.models.{name.lower()}"), name)())


PYOD = ["KNN", "ECOD", "HBOS"] if find_spec("pyod") else []
METHODS = {
    "IsolationForest": lambda seed: with_numbers(
        IsolationForest(n_estimators=300, random_state=seed)
    ),
    "LocalOutlierFactor": lambda seed: with_numbers(LocalOutlierFactor(novelty=True)),
    "EllipticEnvelope": lambda seed: with_numbers(EllipticEnvelope(random_state=seed)),
    "OneClassSVM": lambda seed: with_numbers(OneClassSVM()),
    **{name: of_pyod(name) for name in PYOD},
    "BoltzmannOutlierDetector": lambda seed: BoltzmannOutlierDetector(random_state=seed),
    # Beside the default, the density that the guide recommends for images.
    "the same, of an RBM": lambda seed: BoltzmannOutlierDetector(
        SDCPRBM(64, early_stopping=True), random_state=seed
    ),
}
RBM = list(METHODS)[-1]


def measure(name, method, seed, folder):
    """The mean area over the tasks, and the seconds of each."""
    areas, seconds = [], []
    for train, test, strange in tasks(name, folder, seed):
        model, of_fit = processor_timed(METHODS[method](seed).fit, train)
        score = model.decision_function if method in PYOD else model.score_samples
        scores, of_scores = processor_timed(score, test)
        scores = -scores if method in PYOD else scores
        seconds.append(of_fit + of_scores)
        areas.append(roc_auc_score(~strange, scores))
    return np.mean(areas), np.mean(seconds)


def compare(sets, n_seeds, folder):
    """Print the areas, and the mean ranks of all but the RBM."""
    lines, means = [], {}
    for name in sets:
        for method in METHODS:
            if method == RBM and name != "digits":
                continue
            found = np.array([measure(name, method, seed, folder) for seed in range(n_seeds)])
            area, seconds = found.mean(axis=0)
            means[name, method] = area
            error = found[:, 0].std(ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else np.nan
            lines.append([name, method, f"{area:.4f} ± {error:.4f}", f"{seconds:.2f}"])
    print_table(["table", "method", "AUC", "seconds"], lines)
    ranked = [method for method in METHODS if method != RBM]
    ranks = [rankdata([-means[name, method] for method in ranked]) for name in sets]
    rows = zip(ranked, np.mean(ranks, axis=0), strict=True)
    print_table(["method", "mean rank"], rows, ".2f")
    if not PYOD:
        print("PyOD is left out: pip install pyod")


# Shares of new rows that are flagged.

SHARE, BENIGN = 0.05, "1"
WITH_THRESHOLD = {
    "IsolationForest": lambda seed: IsolationForest(contamination=SHARE, random_state=seed),
    "LocalOutlierFactor": lambda seed: LocalOutlierFactor(contamination=SHARE, novelty=True),
    "BoltzmannOutlierDetector": lambda seed: BoltzmannOutlierDetector(
        contamination=SHARE, random_state=seed
    ),
}


def flagged(X, n_seeds):
    """Print the shares of the benign rows."""
    lines = []
    for columns, n_rows in itertools.product(("numbers", "bits"), (100, 200)):
        for name, make in WITH_THRESHOLD.items():
            shares = []
            for seed in range(n_seeds):
                train, new = np.split(np.random.default_rng(seed).permutation(X), [n_rows])
                if columns == "bits":
                    medians = np.median(train, axis=0)
                    train, new = ((rows > medians).astype(int) for rows in (train, new))
                shares.append(float((make(seed).fit(train).predict(new) == -1).mean()))
            each = " ".join(f"{share:.3f}" for share in shares)
            lines.append([columns, n_rows, name, each, np.mean(shares)])
    print_table(["columns", "rows", "method", "shares by seed", "mean"], lines, ",,,.3f")


@script
def main():
    args = make_parser(__doc__, seeds=3, sets=SETS).parse_args()
    warnings.simplefilter("ignore")  # of covariances without full rank
    with report(args.output / "tables_outliers.txt", "Outliers of tables, area under the curve"):
        compare(args.sets, args.seeds, args.data)
    X, y = load_classes("breast_cancer", args.data)
    with report(args.output / "tables_contamination.txt", "Shares of new rows that are flagged"):
        flagged(np.asarray(X, dtype=float)[np.asarray(y) == BENIGN], args.seeds + 2)
