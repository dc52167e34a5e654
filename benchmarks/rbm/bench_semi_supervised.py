"""MNIST with 100 and with 1,000 labels: do the other rows help?

Of 60,000 rows some have a label, of each class equally many. `RBMClassifier` learns from these
alone, from all of them, and, in `SelfTrainingClassifier`, also from its own predictions. Beside
it are logistic regression and a network, alone and in `SelfTrainingClassifier`, and
`LabelSpreading` along a graph of the ten nearest neighbours. What takes too long with all
rows, or too much memory, has fewer unlabelled ones (``--few-rows``); the table says how many
rows each had. Seconds are those of the processor, in one thread.

Each fit is kept in ``rbm_semi_supervised.csv`` when it is done; those that are there are not made
again without ``--again``. For example

    python bench_semi_supervised.py --data DIR
    python bench_semi_supervised.py --data DIR --quick --output /tmp
"""

import _path  # noqa: F401
import numpy as np
from _classifiers import measure
from _common import (
    keep_row,
    make_parser,
    print_check,
    print_table,
    read_table,
    report,
    rows_to_make,
    run_script,
)
from _data import load_images
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from sklearn_boltz import RBMClassifier

LABELS = (100, 1000)
ALONE, ALL = "RBMClassifier, labelled alone", "RBMClassifier"
# Fewer wrong test rows with 1,000 labels, in percent of all.
ASKED = 3.0
HEADER = ["model", "labels", "seed", "rows", "error", "log_loss", "fit_seconds", "predict_seconds",
          "iterations"]  # fmt: skip


def models(args):
    """-> {name: (constructor by seed, number of rows or None for the labelled alone)}"""

    def rbm(seed, **options):
        return RBMClassifier(args.units, n_jobs=1, random_state=seed, **options)

    def network(seed):
        return MLPClassifier((args.units,), random_state=seed)

    def logistic(seed):
        return LogisticRegression(C=0.1, max_iter=200)

    def of_its_own(base, **options):
        return lambda seed: SelfTrainingClassifier(base(seed), threshold=0.95, **options)

    return {
        ALONE: (rbm, None),
        ALL: (rbm, args.rows),
        "RBMClassifier, self-training": (of_its_own(rbm, max_iter=3), args.few_rows),
        "LogisticRegression": (logistic, None),
        "LogisticRegression, self-training": (of_its_own(logistic), args.rows),
        "MLPClassifier": (network, None),
        "MLPClassifier, self-training": (of_its_own(network, max_iter=4), args.few_rows),
        "LabelSpreading": (
            lambda seed: LabelSpreading(kernel="knn", n_neighbors=10, n_jobs=1), args.few_rows,
        ),
    }  # fmt: skip


def labelled_first(y, n_labels, rng):
    """All rows in a random order, first as many of each class as are to have a label."""
    order = rng.permutation(len(y))
    each = n_labels // len(np.unique(y))
    chosen = np.concatenate([order[y[order] == k][:each] for k in np.unique(y)])
    return np.append(chosen, order[~np.isin(order, chosen)])


def run(args, path):
    """Make the fits that are missing."""
    X, X_test, y, y_test = load_images("mnist", args.data, args.rows)
    todo = models(args)
    keys = [
        (name, str(n_labels), str(seed))
        for seed in range(args.seeds)
        for n_labels in args.labels
        for name in args.models or todo
    ]
    for name, n_labels, seed in rows_to_make(keys, path, args.again):
        make, n_rows = todo[name]
        order = labelled_first(y, int(n_labels), np.random.default_rng(int(seed)))
        rows = order[: n_rows or int(n_labels)]
        known = np.where(np.arange(len(rows)) < int(n_labels), y[rows].astype(int), -1)
        found = measure(make(int(seed)), X[rows], known, X_test, y_test)
        keep_row(path, HEADER, (name, n_labels, seed), (len(rows), *found))


def summary(args, path):
    """Print the means over seeds."""
    fits, rows, errors = read_table(path, 3), [], {}
    for n_labels in map(str, LABELS):
        for name in models(args):
            mine = [row[3:] for key, row in fits.items() if key[:2] == (name, n_labels)]
            if not mine:
                continue
            mine = np.array(mine, dtype=float)
            n_rows, error, loss, fit, *_ = mine.mean(axis=0)
            errors[name, n_labels] = 100 * error
            spread = f"{100 * mine[:, 1].min():.2f}-{100 * mine[:, 1].max():.2f}"
            rows.append([
                name, n_labels, f"{n_rows:,.0f}", len(mine), f"{100 * error:.2f}", spread,
                f"{loss:.3f}", f"{fit:.0f}",
            ])  # fmt: skip
    print_table(
        ["model", "labels", "rows", "seeds", "error %", "by seed", "log-loss", "fit s"], rows
    )
    for n_labels in map(str, LABELS):
        if (ALONE, n_labels) in errors and (ALL, n_labels) in errors:
            gain = errors[ALONE, n_labels] - errors[ALL, n_labels]
            what = f"{n_labels} labels, points gained by the other rows"
            if n_labels == "1000":
                print_check(what, f">= {ASKED}", f"{gain:.2f}", gain >= ASKED)
            else:
                print(f"{what}: {gain:.2f}")


def main():
    """Fit what is missing, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000, help="with and without labels")
    parser.add_argument("--few-rows", type=int, default=20_000, help="for what is slow")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS, help="labelled rows")
    parser.add_argument("--units", type=int, default=500, help="hidden units")
    parser.add_argument("--models", type=lambda text: text.split(";"), help="some, by semicolons")
    parser.add_argument("--again", action="store_true", help="make all fits anew")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    args = parser.parse_args()
    stem = "rbm_semi_supervised"
    if args.quick:
        args.rows, args.few_rows, args.seeds, args.units = 3000, 2000, 1, 50
        stem = "rbm_semi_supervised_quick"
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / f"{stem}.csv"
    run(args, path)
    title = f"MNIST with few labels, {args.units} hidden units"
    with report(args.output / f"{stem}.txt", title):
        summary(args, path)


if __name__ == "__main__":
    run_script(main)
