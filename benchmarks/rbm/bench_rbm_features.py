"""Features for a classifier from RBMs, and the choice of their size by likelihood.

Logistic regression, the same for all, on pixels, on the features of each machine, and on
pixels and features side by side. All machines have as many hidden units and learn for the
same time: `SDCPRBM` makes its epochs of CS-DCP with 6 x 4 transitions, which aim at the
likelihood; then others go on until as many seconds have passed: `SDCPRBM` with one transition
from the data (CG-1) and with persistent chains as in `BernoulliRBM` (PCD-1), `TAPRBM`, and
`BernoulliRBM` with its default batch size of 10 and with 100. Then `GridSearchCV` chooses
`n_components` and `learning_rate` by the log-likelihood of held-out rows, without labels.
MNIST is left out unless ``--data`` is given. For example

    python bench_rbm_features.py --data DIR --rows 20000 --hidden 256
    python bench_rbm_features.py --quick
"""

from time import perf_counter

import _path  # noqa: F401
import numpy as np
from _baselines import BernoulliRBMPeer
from _common import make_parser, print_check, print_table, report, run_script, timed
from _data import binary, load_images, load_small_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from sklearn_boltz import SDCPRBM, TAPRBM


def digits(args):
    """Training and test rows and labels: 8 x 8 pixels from 0 to 1."""
    X, y = load_small_digits()
    return train_test_split(
        X.astype(np.float32), y, test_size=0.3, stratify=y, random_state=args.seed
    )


def whole_epochs(machine, X, seconds, args):
    """One of our machines, trained for as many seconds in whole epochs."""
    machine.set_params(max_iter=1, warm_start=True, n_jobs=args.jobs, random_state=args.seed)
    start = perf_counter()
    while perf_counter() - start < seconds:
        machine.fit(X)
    return machine, machine.n_iter_, perf_counter() - start


def classified(X, X_test, y, y_test, args):
    """-> (share of wrong labels in the test set, seconds of the classifier)."""
    classifier = LogisticRegression(C=args.penalty, max_iter=args.steps)
    _, seconds = timed(classifier.fit, X, y)
    return 1 - classifier.score(X_test, y_test), seconds


def compare_features(name, data, n_hidden, epochs, args):
    """Print the table of features for one data set."""
    X, X_test, y, y_test = data
    batch_size = 50 if name == "digits" else 100
    ours = SDCPRBM(n_hidden, learning_rate=args.rate, batch_size=batch_size, max_iter=epochs)
    ours.set_params(n_jobs=args.jobs, random_state=args.seed)
    _, seconds = timed(ours.fit, X)
    machines = {"SDCPRBM": (ours, epochs, seconds)}
    one = dict(n_inner=1, n_gibbs=1, learning_rate=args.rate)
    pcd = dict(centered=False, persistent=True, batch_size=10)
    for title, machine in {
        "SDCPRBM, CG-1": SDCPRBM(n_hidden, batch_size=batch_size, **one),
        "SDCPRBM, PCD-1, batch 10": SDCPRBM(n_hidden, **one, **pcd),
        "TAPRBM": TAPRBM(n_hidden, learning_rate=args.rate, batch_size=batch_size),
    }.items():
        machines[title] = whole_epochs(machine, X, seconds, args)
    for batch_size in (10, 100):
        title = f"BernoulliRBM, batch {batch_size}"
        peer = BernoulliRBMPeer(X, n_hidden, learning_rate=args.peer_rate, batch_size=batch_size,
                                seed=args.seed)  # fmt: skip
        machines[title] = peer.model, *peer.train(seconds)

    errors, rows = {}, []

    def add(title, train, test, epochs="", seconds=""):
        errors[title], spent = classified(train, test, y, y_test, args)
        figures = [f"{x:.1f}" if x != "" else x for x in (epochs, seconds, spent)]
        wrong = f"{100 * errors[title]:.2f}"
        rows.append([title, f"{1 - errors[title]:.4f}", wrong, *figures])

    add("pixels", X, X_test)
    for title, (machine, n_epochs, spent) in machines.items():
        H, H_test = machine.transform(X), machine.transform(X_test)
        add(title, H, H_test, n_epochs, spent)
        both = np.hstack([X, H]), np.hstack([X_test, H_test])
        add(f"pixels and {title}", *both, n_epochs, spent)
    print(f"{name}: {len(X)} training rows, {len(X_test)} test rows, {n_hidden} hidden units\n")
    print_table(
        ["features", "accuracy", "error %", "epochs", "seconds to learn", "to classify"], rows
    )
    best = {"pixels": 100 * errors["pixels"]}
    for machine in ("SDCPRBM", "BernoulliRBM"):
        best[machine] = 100 * min(errors[title] for title in errors if title.startswith(machine))
    for other in ("pixels", "BernoulliRBM"):
        what = f"best error of SDCPRBM features below that of {other}"
        below = best["SDCPRBM"] < best[other]
        print_check(what, f"< {best[other]:.2f} %", f"{best['SDCPRBM']:.2f} %", below)
    print()


def choose_size(name, data, grid, epochs, args):
    """Print the grid search for one data set."""
    X, X_test, *_ = data
    machine = SDCPRBM(max_iter=epochs, batch_size=50, n_jobs=args.jobs, random_state=args.seed)
    search, seconds = timed(GridSearchCV(machine, grid, cv=args.folds).fit, X)
    results = search.cv_results_
    mean = results["mean_test_score"].reshape([len(grid[key]) for key in sorted(grid)])
    print(f"{name}: {len(X)} rows, {epochs} epochs, held-out log-likelihood in nats\n")
    rates, sizes = grid["learning_rate"], grid["n_components"]
    header = ["n_components", *(f"rate {rate:g}" for rate in rates)]
    print_table(
        header,
        [[n, *(f"{x:.2f}" for x in column)] for n, column in zip(sizes, mean.T, strict=True)],
    )
    held_out = search.score(X_test)
    print(f"chosen: {search.best_params_}, {seconds:.0f} s, {args.folds} folds; "
          f"on the test rows {held_out:.2f} nats\n")  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20000, help="training rows of MNIST")
    parser.add_argument("--search-rows", type=int, default=3000, help="of MNIST, in the search")
    parser.add_argument("--hidden", type=int, default=256, help="hidden units for MNIST")
    parser.add_argument("--epochs", type=int, default=6, help="of CS-DCP on MNIST")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--peer-rate", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=200, help="of lbfgs, at most")
    parser.add_argument("--penalty", type=float, default=10.0, help="C of the classifier")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="threads of SDCPRBM")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.search_rows, args.hidden, args.epochs, args.folds = 1000, 500, 32, 2, 2
    short = 2 if args.quick else 30
    grid = {"n_components": [32, 64, 128], "learning_rate": [0.03, 0.1, 0.3]}
    mnist_grid = {"n_components": [64, 128, 256], "learning_rate": [0.02, 0.05, 0.1]}
    if args.quick:
        grid = mnist_grid = {"n_components": [8, 16], "learning_rate": [0.05, 0.1]}
    title = "Features of restricted Boltzmann machines, and their choice by likelihood"
    with report(args.output / "rbm_features.txt", title):
        data = digits(args)
        compare_features("digits", data, 100, 3 * short, args)
        # The likelihood is that of binary rows.
        choose_size("digits, binary", [binary(X) for X in data[:2]], grid, short, args)
        if args.data is None:
            print("MNIST: no --data, left out")
            return
        data = load_images("mnist", args.data, args.rows)
        compare_features("MNIST", data, args.hidden, args.epochs, args)
        bits = binary(data[0][: args.search_rows]), binary(data[1])
        choose_size("MNIST, binary", bits, mnist_grid, 2 if args.quick else 10, args)


if __name__ == "__main__":
    run_script(main)
