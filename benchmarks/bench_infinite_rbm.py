"""Frank–Wolfe RBMs that grow, on MNIST or the Caltech-101 Silhouettes.

MNIST is statistically binarised with a fixed seed. For example

    python bench_infinite_rbm.py --data DIR --rows 10000
    python bench_infinite_rbm.py --data DIR --rows 10000 --modes plain corrective --alphas 0.1
    python bench_infinite_rbm.py --data DIR --timing
    python bench_infinite_rbm.py --data DIR --threshold --figure1 --figure2 --components 700

Claims: no divergence for any alpha from 0.01 to 1; at 40 units at least 35 nats above the model
without hidden units for alpha up to 0.1, rising with every unit to within the error of the
estimate; the time for a unit at most linear in units, rows and features.

``--figure1`` is Figure 1 of Ping, Liu and Ihler (2016), test log-likelihood by AIS against the
number of units: Frank–Wolfe, CD-10 from random starts and from the Frank–Wolfe model, and
CS-DCP both ways. ``--figure2`` is Figure 2, the error of logistic regression on the features.
Both write their tables row by row, and can be stopped at any time.
"""

import copy
import csv
import sys
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_check, print_table, report
from sklearn.linear_model import LogisticRegression

from sklearn_boltz import SDCPRBM, InfiniteRBM

TRAINERS = {
    "CD-10": dict(n_inner=1, n_gibbs=10, centered=False),
    "CS-DCP": dict(n_inner=6, n_gibbs=4),
}


def load(args):
    """Rows and labels to train on, to validate with and to test on."""
    name = {"mnist": "mnist.npz", "caltech": "caltech101_silhouettes.npz"}[args.set]
    with np.load(args.data / name, allow_pickle=False) as file:
        sets = {key: file[key] for key in file}
    if args.set == "mnist":
        # The last rows of the training set validate, as in the paper.
        for letter in "Xy":
            sets[f"{letter}_valid"] = sets[f"{letter}_train"][50_000:]
            sets[f"{letter}_train"] = sets[f"{letter}_train"][:50_000]
    rng = np.random.default_rng(args.seed)
    out = {}
    for part, n_rows in (("train", args.rows), ("valid", args.rows), ("test", None)):
        X = sets[f"X_{part}"].reshape(-1, 784).astype(np.float32)[:n_rows]
        if args.set == "mnist":
            X = (X > 127 if args.threshold else rng.random(X.shape) < X / 255).astype(np.float32)
        out[part] = X, sets[f"y_{part}"].ravel()[:n_rows]
    return out


def ladder(args):
    """Temperatures of AIS: equal steps, or those of the paper."""
    if not args.paper_temperatures:
        return dict(n_temperatures=args.temperatures, n_chains=100)
    parts = [np.linspace(0, 0.5, 501), np.linspace(0.5, 0.9, 4001), np.linspace(0.9, 1, 10_001)]
    return dict(n_temperatures=np.unique(np.concatenate(parts)), n_chains=500)


def test_log_likelihood(model, X, args):
    """Mean log-likelihood by AIS and its standard error."""
    if min(model.components_.shape) <= 20:
        estimate = model.log_partition("exact")
    else:
        estimate = model.log_partition("ais", random_state=0, **ladder(args))
    return -model.free_energy(X).mean() - estimate.value, estimate.std_err


def without_units(X, X_test):
    """Mean test log-likelihood of independent features."""
    p = (X.mean(axis=0, dtype=float) * len(X) + 0.25) / (len(X) + 0.5)
    return float((X_test * np.log(p) + (1 - X_test) * np.log1p(-p)).sum(axis=1).mean())


# By alpha and mode.


def by_alpha(sets, args):
    """Log-likelihood against units for each alpha and mode."""
    (X, _), (X_test, _) = sets["train"], sets["test"]
    base = without_units(X, X_test)
    print(f"no hidden unit: {base:.2f}\n")
    rows, checks = [], []
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for mode in args.modes:
        for alpha in args.alphas:
            start = process_time()
            model = InfiniteRBM(
                args.components, alpha=alpha, mode=mode, n_iter_no_change=args.components,
                n_jobs=1, random_state=args.seed,
            ).fit(X)  # fmt: skip
            seconds = process_time() - start
            path = model.history_["log_likelihood"]
            value, error = test_log_likelihood(model, X_test, args)
            fall = float(np.max(-np.diff(path), initial=0))
            rows.append([
                f"{mode}, alpha {alpha}", model.n_components_, f"{value:.2f}", f"{error:.2f}",
                f"{value - base:.1f}", f"{fall:.2f}", f"{seconds / max(1, model.n_iter_):.2f}",
            ])  # fmt: skip
            print(*rows[-1], flush=True)
            if mode == "safeguarded":
                diverged = path[-1] < path[0] or np.diff(path).min() < -5
                checks.append(
                    (f"alpha {alpha}: no divergence", "", f"{path[-1]:.1f}", not diverged)
                )
                if alpha <= 0.1:
                    gain = value - base
                    checks.append((f"alpha {alpha}: nats above", "≥ 35", f"{gain:.1f}", gain >= 35))
                    checks.append((f"alpha {alpha}: largest fall", "≤ 1", f"{fall:.2f}", fall <= 1))
            ax.plot(model.history_["n_components"], path, label=f"{mode}, λ = {alpha}")
    print()
    print_table(["", "units", "test", "±", "above", "largest fall", "CPU s a unit"], rows)
    for check in checks:
        print_check(*check)
    ax.set(xlabel="hidden units", ylabel="validation log-likelihood, nats", ylim=(base - 30, None))
    ax.legend()
    fig.savefig(args.output / f"{args.name}_{args.set}.png", dpi=150)


# Time.


def timing(sets, args):
    """CPU seconds of an insertion against units, rows and features."""
    X = sets["train"][0]
    options = dict(n_jobs=1, early_stopping=False, random_state=args.seed)

    def seconds(rows):
        start = process_time()
        model = InfiniteRBM(6, **options).fit(rows)
        return (process_time() - start) / model.n_iter_

    def widened(copies):
        """The rows beside as many independent ones of the same law."""
        rng = np.random.default_rng(args.seed)
        return np.hstack([X] + [X[rng.permutation(len(X))] for _ in range(copies - 1)])

    counts = {
        "rows": [len(X) // 4, len(X) // 2, len(X)],
        "features": [X.shape[1] * copies for copies in (1, 2, 4)],
        "units": [],
    }
    spent = {
        "rows": [seconds(X[:n]) for n in counts["rows"]],
        "features": [seconds(widened(copies)) for copies in (1, 2, 4)],
        "units": [],
    }
    model = InfiniteRBM(warm_start=True, **options)
    for units in np.arange(10, args.components + 1, 10):
        start = process_time()
        before = model.n_components_ if units > 10 else 0
        model.set_params(max_components=int(units)).fit(X)
        counts["units"].append(int(units))
        spent["units"].append((process_time() - start) / max(1, model.n_components_ - before))
    fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    for ax, (name, numbers) in zip(axes, counts.items(), strict=True):
        rows = [[n, f"{s:.3f}"] for n, s in zip(numbers, spent[name], strict=True)]
        print_table([name, "CPU s a unit"], rows)
        slope = np.polyfit(np.log(numbers), np.log(spent[name]), 1)[0]
        print_check(f"time against {name}", "exponent ≤ 1", f"{slope:.2f}", slope <= 1.05)
        ax.plot(numbers, spent[name], "o-")
        ax.set(xlabel=name, xlim=(0, None), ylim=(0, None))
    axes[0].set_ylabel("CPU seconds for a unit")
    fig.savefig(args.output / f"{args.name}_time.png", dpi=150)


# The figures of the paper.


def grown(X, args):
    """Frank–Wolfe models of the sizes in turn; none is changed later."""
    model = InfiniteRBM(early_stopping=False, alpha=args.alphas[0], mode=args.modes[0],
                        warm_start=True, n_jobs=args.jobs, random_state=args.seed)  # fmt: skip
    for size in args.sizes:
        model.set_params(max_components=size).fit(X)
        yield size, copy.deepcopy(model)
        if model.n_components_ < size:
            print(f"no gain any more at {model.n_components_} units")
            return


def trained(X, size, fw, args):
    """(name, model) of all that is compared at a size."""
    yield "FW", fw
    for name, options in TRAINERS.items():
        if name not in args.trainers:
            continue
        trainer = SDCPRBM(size, learning_rate=args.rate, batch_size=args.batch, n_jobs=args.jobs,
                          max_iter=args.epochs, random_state=args.seed, **options)  # fmt: skip
        yield f"{name} (FW init.)", fw.refine(X, trainer)
        trainer.set_params(n_components=fw.n_components_)
        for seed in range(args.starts):
            yield f"{name} (rand init. {seed})", trainer.set_params(random_state=seed).fit(X)


def figures(sets, args):
    """Figures 1 and 2: log-likelihood and classification error against the number of units."""
    (X, y), (X_valid, _), (X_test, y_test) = sets["train"], sets["valid"], sets["test"]
    table = args.output / f"{args.name}_{args.set}_figures.csv"
    header = ["units", "model", "test", "std_err", "gap", "error", "cpu_seconds"]
    curves = {}
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        start = process_time()
        for size, fw in grown(X, args):
            for name, model in trained(X, size, fw, args):
                spent = process_time() - start
                value = error = wrong = np.nan
                if args.figure1:
                    value, error = test_log_likelihood(model, X_test, args)
                gap = (
                    model.free_energy(X_valid).mean() - model.free_energy(X[: len(X_valid)]).mean()
                )
                if args.figure2:
                    wrong = classification_error(model, X, y, X_test, y_test)
                row = [size, name, *(f"{x:.4f}" for x in (value, error, gap, wrong, spent))]
                writer.writerow(row)
                file.flush()
                print(*row, flush=True)
                curves.setdefault(name, []).append((size, value, error, wrong))
                start = process_time()
            draw(curves, args)


def classification_error(model, X, y, X_test, y_test):
    """Of logistic regression on the means of the hidden units."""
    classifier = LogisticRegression(max_iter=300).fit(model.transform(X), y)
    return 1 - classifier.score(model.transform(X_test), y_test)


def draw(curves, args):
    """Draw what is known so far."""
    quantities = [(1, "test log-likelihood, nats")] * args.figure1
    quantities += [(3, "classification error")] * args.figure2
    fig, axes = plt.subplots(1, len(quantities), figsize=(5 * len(quantities), 4), squeeze=False,
                             layout="constrained")  # fmt: skip
    for ax, (column, label) in zip(axes[0], quantities, strict=True):
        for name, points in curves.items():
            points = np.array(points)
            errors = 3 * points[:, 2] if column == 1 else None
            ax.errorbar(points[:, 0], points[:, column], errors, marker="o", ms=3, label=name)
        ax.set(xlabel="hidden units", ylabel=label)
    axes[0, 0].legend(fontsize="small")
    fig.savefig(args.output / f"{args.name}_{args.set}_figures.png", dpi=150)
    plt.close(fig)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=["mnist", "caltech"], default="mnist")
    parser.add_argument("--rows", type=int, help="training rows to use")
    parser.add_argument("--components", type=int, default=40)
    parser.add_argument("--alphas", type=float, nargs="+", default=[1, 0.5, 0.1, 0.05, 0.01],
                        help="penalties; the figures take the first")  # fmt: skip
    parser.add_argument("--modes", nargs="+", default=["safeguarded"],
                        choices=["safeguarded", "plain", "corrective"])  # fmt: skip
    parser.add_argument("--threshold", action="store_true", help="pixels > 127, not drawn")
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--paper-temperatures", action="store_true", help="14,500, 500 chains")
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--figure1", action="store_true")
    parser.add_argument("--figure2", action="store_true")
    parser.add_argument("--every", type=int, default=20, help="units between figures, to 100")
    parser.add_argument("--trainers", nargs="+", choices=list(TRAINERS), default=list(TRAINERS))
    parser.add_argument("--starts", type=int, default=1, help="random starts of each trainer")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="infinite_rbm", help="of the files of results")
    args = parser.parse_args()
    few = range(args.every, min(args.components, 100) + 1, args.every)
    args.sizes = sorted({*few, *range(100, args.components + 1, 100), args.components})
    sets = load(args)
    title = f"{args.set}, {len(sets['train'][0])} rows, up to {args.components} hidden units"
    with report(args.output / f"{args.name}_{args.set}.txt", title):
        if args.timing:
            timing(sets, args)
        elif args.figure1 or args.figure2:
            figures(sets, args)
        else:
            by_alpha(sets, args)


if __name__ == "__main__":
    sys.exit(main())
