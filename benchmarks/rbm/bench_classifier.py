"""`RBMClassifier` on MNIST beside other classifiers: errors, log-loss, seconds.

50,000 rows to train on, 10,000 to stop by, 10,000 to test; classifiers that stop early take
their validation rows at random from the 60,000, and those that do not learn from the first
50,000. The features of `SDCPRBM` go to a logistic regression. A support vector machine learns
from the first 10,000 rows. Seconds are those of the processor, in one thread, for the fit and
for the prediction of the test rows.

Each fit is kept in ``rbm_classifier.csv`` when it is done; those that are there are not made
again without ``--again``. For example

    python bench_classifier.py --data DIR
    python bench_classifier.py --data DIR --models "discriminative;MLPClassifier" --seeds 1
    python bench_classifier.py --data DIR --quick --output /tmp
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
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_boltz import SDCPRBM, RBMClassifier

VALIDATION = 1 / 6
# Asked of the mean of the test errors, in percent, and the errors of the paper (Larochelle and
# Bengio, 2008), by the number of hidden units.
ASKED = {"discriminative": 1.95, "hybrid": 1.5}
PUBLISHED = {"discriminative": "1.81 (500)", "hybrid": "1.28 (1,500)"}
HEADER = [
    "model",
    "seed",
    "rows",
    "error",
    "log_loss",
    "fit_seconds",
    "predict_seconds",
    "iterations",
]


def models(args):
    """-> {name: (constructor by seed, number of rows, whether the seed matters)}"""
    n_valid = round(VALIDATION * args.rows)
    n_train = args.rows - n_valid
    stop = dict(early_stopping=True, validation_fraction=VALIDATION)
    ours = stop | dict(n_jobs=1)

    def features(seed):
        machine = SDCPRBM(
            args.units[0], learning_rate=0.05, batch_size=100, max_iter=args.feature_epochs,
            n_inner=1, n_gibbs=1, n_jobs=1, random_state=seed,
        )  # fmt: skip
        return make_pipeline(machine, LogisticRegression(C=1.0, max_iter=200))

    return {
        "discriminative": (
            lambda seed: RBMClassifier(args.units[0], alpha=0, random_state=seed, **ours),
            args.rows, True,
        ),
        "hybrid": (
            lambda seed: RBMClassifier(args.units[1], random_state=seed, **ours),
            args.rows, True,
        ),
        "MLPClassifier": (
            lambda seed: MLPClassifier((args.units[0],), random_state=seed, **stop),
            args.rows, True,
        ),
        "LogisticRegression": (
            lambda seed: LogisticRegression(C=0.1, max_iter=200), n_train, False,
        ),
        "HistGradientBoosting": (
            lambda seed: HistGradientBoostingClassifier(random_state=seed, **stop),
            args.rows, False,
        ),
        "SVC, 10,000 rows": (
            lambda seed: SVC(C=10, gamma=0.025), min(10_000, n_train), False,
        ),
        "SDCPRBM + logistic": (features, n_train, False),
    }  # fmt: skip


def run(args, path):
    """Make the fits that are missing."""
    X, X_test, y, y_test = load_images("mnist", args.data, args.rows)
    todo = models(args)
    keys = [
        (name, str(seed))
        for name in args.models or todo
        for seed in range(args.seeds if todo[name][2] else 1)
    ]
    for name, seed in rows_to_make(keys, path, args.again):
        make, n_rows, _ = todo[name]
        found = measure(make(int(seed)), X[:n_rows], y[:n_rows], X_test, y_test)
        keep_row(path, HEADER, (name, seed), (n_rows, *found))


def summary(args, path):
    """Print the means over seeds."""
    fits, rows, errors = read_table(path, 2), [], {}
    for name in models(args):
        mine = np.array([row[3:] for key, row in fits.items() if key[0] == name], dtype=float)
        if not len(mine):
            continue
        errors[name] = 100 * mine[:, 0].mean()
        spread = f"{100 * mine[:, 0].min():.2f}-{100 * mine[:, 0].max():.2f}"
        loss = "" if np.isnan(mine[:, 1]).all() else f"{mine[:, 1].mean():.4f}"
        n_iter = "" if np.isnan(mine[:, 4]).all() else f"{mine[:, 4].mean():.0f}"
        rows.append([
            name, len(mine), f"{errors[name]:.2f}", spread if len(mine) > 1 else "", loss, n_iter,
            f"{mine[:, 2].mean():.0f}", f"{mine[:, 3].mean():.1f}", PUBLISHED.get(name, ""),
        ])  # fmt: skip
    print_table(
        [
            "model",
            "seeds",
            "error %",
            "by seed",
            "log-loss",
            "iterations",
            "fit s",
            "predict s",
            "published",
        ],
        rows,
    )
    for name, asked in ASKED.items():
        if name in errors:
            found = errors[name]
            print_check(f"{name}, test error %", f"<= {asked}", f"{found:.2f}", found <= asked)


def main():
    """Fit what is missing, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000, help="training and validation rows")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", type=int, nargs=2, default=[500, 500], metavar="N",
                        help="hidden units, discriminative and hybrid")  # fmt: skip
    parser.add_argument("--feature-epochs", type=int, default=20, help="of SDCPRBM")
    parser.add_argument("--models", type=lambda text: text.split(";"), help="some, by semicolons")
    parser.add_argument("--again", action="store_true", help="make all fits anew")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    args = parser.parse_args()
    stem = "rbm_classifier"
    if args.quick:
        args.rows, args.units, args.seeds, args.feature_epochs = 1200, [50, 50], 1, 2
        stem = "rbm_classifier_quick"
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / f"{stem}.csv"
    run(args, path)
    with report(args.output / f"{stem}.txt", "RBMClassifier on MNIST"):
        units = " and ".join(f"{n:,}" for n in args.units)
        print(f"{args.rows:,} rows; {units} hidden units; means over seeds\n")
        summary(args, path)


if __name__ == "__main__":
    run_script(main)
