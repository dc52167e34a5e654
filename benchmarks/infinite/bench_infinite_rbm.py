"""Frank–Wolfe RBMs that grow, on MNIST, the Caltech-101 Silhouettes or the digits.

MNIST is statistically binarised with a fixed seed; the 8x8 digits of scikit-learn are on above 7.
For example

    python bench_infinite_rbm.py --data DIR --rows 10000
    python bench_infinite_rbm.py --data DIR --rows 10000 --modes plain corrective --alphas 0.1
    python bench_infinite_rbm.py --set digits --modes corrective safeguarded --alphas 0.01 --away
    python bench_infinite_rbm.py --data DIR --timing

Claims: no divergence for any alpha from 0.01 to 1; at 40 units at least 35 nats above the model
without hidden units for alpha up to 0.1, rising with every unit to within the error of the
estimate; the time for a unit at most linear in units, rows and features.
"""

import itertools
from time import process_time

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _baselines import independent
from _common import log_likelihood, make_parser, print_check, print_table, report, run_script
from _data import binary, load_parts

from sklearn_boltz import InfiniteRBM


def load(args):
    """Rows and labels to train on, to validate with and to test on."""
    drawn = args.set == "mnist" and not args.threshold
    rng = np.random.default_rng(args.seed) if drawn else None
    parts = load_parts(args.set, args.data)
    n_rows = {"train": args.rows, "valid": args.rows, "test": None}
    return {
        part: (binary(X[: n_rows[part]], rng), y[: n_rows[part]]) for part, (X, y) in parts.items()
    }


# By alpha and mode.


def by_alpha(sets, args):
    """Log-likelihood against units for each alpha and mode, with and without away steps."""
    (X, _), (X_test, _) = sets["train"], sets["test"]
    base = independent(X, X_test, extra=0.25)
    print(f"no hidden unit: {base:.2f}\n")
    rows, checks = [], []
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for mode, alpha, away in itertools.product(
        args.modes, args.alphas, [False, True] if args.away else [False]
    ):
        name = f"{mode}, alpha {alpha}" + ", away steps" * away
        start = process_time()
        model = InfiniteRBM(
            args.components, alpha=alpha, mode=mode, away_steps=away, n_jobs=1,
            n_iter_no_change=args.components, random_state=args.seed,
        ).fit(X)  # fmt: skip
        seconds = process_time() - start
        path = model.history_["validation_log_likelihood"]
        value, error = log_likelihood(model, X_test, n_temperatures=args.temperatures, n_chains=100)
        fall = float(np.max(-np.diff(path), initial=0))
        rows.append([
            name, model.n_components_, model.n_iter_, f"{value:.2f}", f"{error:.2f}",
            f"{value - base:.1f}", f"{fall:.2f}", f"{seconds / max(1, model.n_iter_):.2f}",
            f"{seconds:.1f}",
        ])  # fmt: skip
        print(*rows[-1], flush=True)
        if mode != "plain":
            diverged = path[-1] < path[0] or np.diff(path).min() < -5
            checks.append((f"{name}: no divergence", "", f"{path[-1]:.1f}", not diverged))
        if mode != "plain" and alpha <= 0.1 and args.set == "mnist":
            gain = value - base
            checks.append((f"{name}: nats above", "≥ 35", f"{gain:.1f}", gain >= 35))
        if mode == "safeguarded" and alpha <= 0.1:
            checks.append((f"{name}: largest fall", "≤ 1", f"{fall:.2f}", fall <= 1))
        ax.plot(model.history_["n_components"], path, label=name)
    print()
    header = ["units", "insertions", "test", "±", "above", "largest fall", "CPU s each", "CPU s"]
    print_table(["", *header], rows)
    for check in checks:
        print_check(*check)
    # A mode that diverges must not hide the others.
    best = max(float(row[3]) for row in rows)
    low = base - 0.3 * (best - base)
    ax.set(xlabel="hidden units", ylabel="validation log-likelihood, nats", ylim=(low, None))
    ax.legend(fontsize="small")
    fig.savefig(args.output / f"{args.name}_{args.set}.png", dpi=150)


# Time.


def timing(sets, args):
    """CPU seconds of an insertion against units, rows and features."""
    X = sets["train"][0]
    options = dict(n_jobs=1, early_stopping=False, warm_start=True, random_state=args.seed,
                   mode=args.modes[0])  # fmt: skip

    def seconds(rows):
        """For a unit, once there is one."""
        model = InfiniteRBM(1, **options).fit(rows)
        start = process_time()
        model.set_params(max_components=7).fit(rows)
        return (process_time() - start) / (model.n_iter_ - 1)

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
    model = InfiniteRBM(**options)
    for units in np.arange(10, args.components + 1, 10):
        start = process_time()
        before = model.n_components_ if units > 10 else 0
        model.set_params(max_components=int(units)).fit(X)
        counts["units"].append(int(units))
        spent["units"].append((process_time() - start) / max(1, model.n_components_ - before))
    for name, numbers in counts.items():
        rows = [[n, f"{s:.3f}"] for n, s in zip(numbers, spent[name], strict=True)]
        print_table([name, "CPU s a unit"], rows)
        slope = np.polyfit(np.log(numbers), np.log(spent[name]), 1)[0]
        print_check(f"time against {name}", "exponent ≤ 1", f"{slope:.2f}", slope <= 1.05)
    draw_times(counts, spent, args)


def draw_times(counts, spent, args):
    """Draw the seconds for a unit against rows, features and units."""
    top = 1.05 * max(itertools.chain(*spent.values()))
    fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    for ax, (name, numbers) in zip(axes, counts.items(), strict=True):
        ax.plot(numbers, spent[name], "o-")
        ax.set(xlabel=name, xlim=(0, None), ylim=(0, top))
    axes[0].set_ylabel("CPU seconds for a unit")
    fig.savefig(args.output / f"{args.name}_time.png", dpi=150)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=["mnist", "caltech", "digits"], default="mnist")
    parser.add_argument("--rows", type=int, help="training rows to use")
    parser.add_argument("--components", type=int, default=40)
    parser.add_argument("--alphas", type=float, nargs="+", default=[1, 0.5, 0.1, 0.05, 0.01])
    parser.add_argument("--modes", nargs="+", default=["safeguarded"],
                        choices=["corrective", "safeguarded", "plain"])  # fmt: skip
    parser.add_argument("--away", action="store_true", help="also with away steps")
    parser.add_argument("--threshold", action="store_true", help="pixels > 127, not drawn")
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="infinite_rbm", help="of the files of results")
    args = parser.parse_args()
    sets = load(args)
    title = f"{args.set}, {len(sets['train'][0])} rows, up to {args.components} hidden units"
    with report(args.output / f"{args.name}_{args.set}.txt", title):
        timing(sets, args) if args.timing else by_alpha(sets, args)


if __name__ == "__main__":
    run_script(main)
