r"""Figures 1 and 2 of Ping, Liu and Ihler (2016), on MNIST, Caltech-101 Silhouettes or digits.

Test log-likelihood by AIS, and the error of logistic regression on the features, against the
number of hidden units, for

* Frank–Wolfe models that grow, in one mode or more;
* CD-10 and CS-DCP that start from the first of them, of the size that it then has;
* CD-10 and CS-DCP from random starts, for as many epochs, and for as long as growing and
  refining took together, in CPU seconds.

Learning rates and sizes of mini-batches are chosen on the validation rows, at the first size,
for each trainer and each start: those that start from Frank–Wolfe by some epochs, those from
random starts by as many as fit into the time of growing and refining. Training is cut into
parts, and of the states after each the best on the validation rows is kept. The size at which
early stopping would end is found by the rule of `InfiniteRBM` on the validation rows, and drawn
as a vertical line. For example

    python bench_infinite_rbm_figures.py
    python bench_infinite_rbm_figures.py --data DIR --set caltech --sizes 50 100 200 300 \
        --components 700 --batches 20 100 --minutes 60

Every line is written at once: the run can be stopped at any time, and ``--redraw`` then draws
and concludes from the table.

Claim: Frank–Wolfe and then a trainer is better than that trainer from a random start in the
same CPU time.
"""

import copy
import csv
import itertools
import math
import warnings
from time import perf_counter, process_time
from typing import NamedTuple

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import log_likelihood, make_parser, print_check, print_table, report, run_script
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from infinite.bench_infinite_rbm import load
from sklearn_boltz import SDCPRBM, InfiniteRBM

TRAINERS = {
    "CD-10": dict(n_inner=1, n_gibbs=10, centered=False),
    "CS-DCP": dict(n_inner=6, n_gibbs=4),
}


class Point(NamedTuple):
    """A line of the table."""

    units: int
    model: str
    test: float
    std_err: float
    valid: float
    gap: float
    error: float
    epochs: int
    cpu_seconds: float


def measure(name, model, spent, epochs, sets, ladder, *, classify=True):
    """Log-likelihoods, the gap of free energies, and the classification error of a model."""
    (X, y), (X_valid, _), (X_test, y_test) = sets["train"], sets["valid"], sets["test"]
    test, error = log_likelihood(model, X_test, **ladder)
    free_energy = [model.free_energy(rows).mean() for rows in (X[:2000], X_valid, X_test)]
    valid = test + free_energy[2] - free_energy[1]
    wrong = math.nan
    if classify:
        classifier = LogisticRegression(max_iter=300).fit(model.transform(X), y)
        wrong = 1 - classifier.score(model.transform(X_test), y_test)
    gap = free_energy[1] - free_energy[0]
    return Point(len(model.components_), name, test, error, valid, gap, wrong, epochs, spent)


# Growing.


def growing(X, mode, sizes, args):
    """Grow a model to one size after another; yields it each time, and the CPU seconds so far."""
    model = InfiniteRBM(mode=mode, alpha=args.alpha, early_stopping=False, warm_start=True,
                        n_jobs=args.jobs, random_state=args.seed)  # fmt: skip
    spent = 0.0
    for size in sizes:
        start = process_time()
        model.set_params(max_components=size).fit(X)
        spent += process_time() - start
        yield model, spent


def chosen_size(path, patience=10, tol=1e-3):
    """Where early stopping would end: the best size by the time that it stops, and whether it does.

    The rule of `InfiniteRBM`, on sizes that are some units apart.
    """
    best = path[0]
    for now in path[1:]:
        if now.valid > best.valid + tol:
            best = now
        elif now.gap > best.gap and now.units - best.units >= patience:
            return best.units, True
    return best.units, False


# Training.


def train(model, X, X_valid, n_epochs, n_parts, args):
    """Go on with a training; -> its best state on the validation rows, epochs, CPU seconds.

    The start is one of the states.
    """
    best = log_likelihood(model, X_valid, **args.short)[0], copy.deepcopy(model)
    done, spent = 0, 0.0
    model.set_params(warm_start=True)
    for end in np.unique(np.linspace(0, n_epochs, n_parts + 1).astype(int))[1:]:
        start = process_time()
        model.set_params(max_iter=int(end) - done).fit(X)
        spent += process_time() - start
        done = int(end)
        value = log_likelihood(model, X_valid, **args.short)[0]
        if value > best[0]:
            best = value, copy.deepcopy(model)
    return best[1], done, spent


def start_of(trainer, X, fw):
    """A trainer before its first epoch, from a Frank–Wolfe model if there is one."""
    with warnings.catch_warnings():
        # That nothing was learned yet.
        warnings.simplefilter("ignore")
        trainer = clone(trainer).set_params(max_iter=0, warm_start=False)
        return trainer.fit(X) if fw is None else fw.refine(X, trainer)


def n_epochs_in(seconds, spent, n_epochs):
    """How many more epochs fit into some CPU seconds, of which some epochs have spent a part."""
    return math.ceil(max(0, seconds - spent) / (spent / n_epochs))


def choose(name, X, X_valid, fw, growth, args):
    """The trainer whose rate and mini-batches do best on the validation rows.

    From random starts, at the end of as much time as growing and some epochs take: rates that
    are good for a few epochs are not those that are good for many.
    """
    best = -math.inf, None
    for rate, batch in itertools.product(args.rates, args.batches):
        trainer = SDCPRBM(args.sizes[0], learning_rate=rate, batch_size=batch, n_jobs=args.jobs,
                          random_state=args.seed, **TRAINERS[name])  # fmt: skip
        model, _, spent = train(start_of(trainer, X, fw), X, X_valid, args.trial, 1, args)
        if fw is None:
            more = n_epochs_in(growth + spent, spent, args.trial)
            model = train(model, X, X_valid, more, args.parts, args)[0]
        value = log_likelihood(model, X_valid, **args.short)[0]
        best = max(best, (value, trainer), key=lambda pair: pair[0])
    trainer = best[1]
    print(
        f"{name}, {'random start' if fw is None else 'from FW'}: learning rate "
        f"{trainer.learning_rate}, {trainer.batch_size} rows, {best[0]:.1f} nats",
        flush=True,
    )
    return trainer


def compared(fw, growth, choices, sets, args):
    """(name, model, CPU seconds in all, epochs) of the trainers at the size of a model."""
    X, X_valid = sets["train"][0], sets["valid"][0]
    for name in args.trainers:
        refiner, trainer = (
            clone(choice).set_params(n_components=fw.n_components_) for choice in choices[name]
        )
        start = process_time()
        model = start_of(refiner, X, fw)
        begun = process_time() - start
        model, n_epochs, refining = train(model, X, X_valid, args.epochs, args.parts, args)
        total = growth + begun + refining
        yield f"{name}, from FW", model, total, n_epochs
        model = start_of(trainer, X, None)
        first, n_epochs, spent = train(model, X, X_valid, args.epochs, args.parts, args)
        yield f"{name}, random, as many epochs", first, spent, n_epochs
        more = n_epochs_in(total, spent, n_epochs)
        second, n_more, longer = train(model, X, X_valid, more, 2 * args.parts, args)
        if n_more:
            first = max(first, second, key=lambda m: log_likelihood(m, X_valid, **args.short)[0])
        yield f"{name}, random, as long", first, spent + longer, n_epochs + n_more


# The run.


def run(sets, args):
    """Grow, train and measure until the largest size, or the time is over."""
    X, X_valid = sets["train"][0], sets["valid"][0]
    ends = sorted({*range(args.every, args.components + 1, args.every), *args.sizes})
    paths, points, choices = {mode: [] for mode in args.modes}, [], None
    with args.table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)

        def keep(point, where):
            where.append(point)
            numbers = [f"{x:.4f}" if isinstance(x, float) else x for x in point]
            writer.writerow(numbers)
            file.flush()
            print(*numbers, flush=True)

        begun = perf_counter()
        growths = [growing(X, mode, ends, args) for mode in args.modes]
        for end, *models in zip(ends, *growths, strict=True):
            for mode, (model, spent) in zip(args.modes, models, strict=True):
                point = measure(f"FW, {mode}", model, spent, 0, sets, args.ladder,
                                classify=end in args.sizes)  # fmt: skip
                keep(point, paths[mode])
            if end in args.sizes:
                fw, growth = models[0]
                if choices is None:
                    choices = {
                        name: [
                            choose(name, X, X_valid, start, growth, args) for start in (fw, None)
                        ]
                        for name in args.trainers
                    }
                for name, model, spent, epochs in compared(fw, growth, choices, sets, args):
                    keep(measure(name, model, spent, epochs, sets, args.ladder), points)
                draw(paths, points, args)
            if perf_counter() - begun > 60 * args.minutes:
                print(f"{args.minutes} minutes are over")
                break
    return paths, points


def read_table(args):
    """What `run` found, from its table."""
    paths, points = {}, []
    with args.table.open(newline="") as file:
        for line in csv.DictReader(file):
            line = {name: text if name == "model" else float(text) for name, text in line.items()}
            line |= {name: int(line[name]) for name in ("units", "epochs")}
            point = Point(**line)
            points.append(point)
            if point.model.startswith("FW, "):
                paths.setdefault(points.pop().model.removeprefix("FW, "), []).append(point)
    return paths, points


def conclude(paths, points, args):
    """Print the size chosen, and what starting from Frank–Wolfe is worth."""
    print()
    for mode, path in paths.items():
        units, stopped = chosen_size(path)
        top = max(path, key=lambda point: point.test)
        at = next(point for point in path if point.units == units)
        print(
            f"FW, {mode}: early stopping {'chooses' if stopped else 'has not ended by'} {units} "
            f"units, {at.test:.1f} nats; the largest test log-likelihood is at {top.units} of "
            f"{path[-1].units}, {top.test:.1f}"
        )
    compare_modes(paths)
    rows, named = [], {(point.units, point.model): point for point in points}
    sizes = sorted({point.units for point in points})
    for units, name in itertools.product(sizes, args.trainers):
        refined, short, long = (
            named.get((units, f"{name}, {start}"))
            for start in ("from FW", "random, as many epochs", "random, as long")
        )
        if long is None:
            continue
        rows.append([
            f"{units} units, {name}", f"{refined.test:.1f}", f"{short.test:.1f}",
            f"{long.test:.1f}", f"{refined.test - long.test:+.1f}",
            f"{100 * refined.error:.1f}", f"{100 * long.error:.1f}",
            f"{refined.cpu_seconds:.0f}", f"{long.cpu_seconds:.0f}", long.epochs,
        ])  # fmt: skip
    print()
    print_table(
        ["", "from FW", "random, as many epochs", "random, as long", "difference",
         "error % from FW", "random", "CPU s from FW", "random", "epochs, random"],
        rows,
    )  # fmt: skip
    for row in rows:
        print_check(f"{row[0]}, nats over a random start in the same time", "> 0", row[4],
                    float(row[4]) > 0)  # fmt: skip


def compare_modes(paths):
    """Print by how much the first mode of growth is better in the same CPU time."""
    (first, path), *others = paths.items()
    seconds = [point.cpu_seconds for point in path]
    for mode, other in others:
        pairs = [
            (point, np.interp(point.cpu_seconds, seconds, [p.test for p in path]))
            for point in other
            if seconds[0] <= point.cpu_seconds <= seconds[-1]
        ]
        for point, value in pairs:
            print(
                f"{point.cpu_seconds:.0f} CPU s: {mode} {point.test:.1f} with {point.units} units, "
                f"{first} {value:.1f}, {value - point.test:+.1f}"
            )


def draw(paths, points, args):
    """Draw what is known so far."""
    curves = {f"FW, {mode}": path for mode, path in paths.items()}
    for point in points:
        curves.setdefault(point.model, []).append(point)
    dashes = {"from FW": "-", "as many epochs": ":", "as long": "--"}
    colours = {"CD-10": "C2", "CS-DCP": "C3"}
    fig, axes = plt.subplots(1, 3, figsize=(16, 4.5), layout="constrained")
    for number, (name, curve) in enumerate(curves.items()):
        units, test, error, wrong = (
            np.array([getattr(point, field) for point in curve])
            for field in ("units", "test", "std_err", "error")
        )
        colour = colours.get(name.split(",")[0], f"C{number}")
        style = next((dash for end, dash in dashes.items() if name.endswith(end)), "-")
        options = dict(color=colour, ls=style, marker="o", ms=3, label=name)
        axes[0].errorbar(units, test, 3 * error, **options)
        spent = [point.cpu_seconds for point in curve]
        axes[2].errorbar(spent, test, 3 * error, **options)
        known = np.isfinite(wrong)
        axes[1].plot(units[known], 100 * wrong[known], **options)
    for number, (mode, path) in enumerate(paths.items()):
        units, stopped = chosen_size(path)
        if stopped:
            axes[0].axvline(units, color=f"C{number}", ls="-.", label=f"chosen, {mode}")
    # Bad starts must not hide the rest.
    tests = [point.test for curve in curves.values() for point in curve]
    low, pad = max(min(tests), max(tests) - 120), 0.05 * (max(tests) - min(tests))
    for ax in axes[::2]:
        ax.set(ylabel="test log-likelihood, nats", ylim=(low - pad, max(tests) + pad))
    axes[1].set(ylabel="classification error, %")
    for ax, label in zip(axes, ["hidden units", "hidden units", "CPU seconds"], strict=True):
        ax.set(xlabel=label, xlim=(0, None))
    handles = axes[0].get_legend_handles_labels()
    fig.legend(*handles, loc="outside right center", fontsize="x-small", handlelength=4)
    fig.suptitle(args.title)
    fig.savefig(args.output / f"{args.name}_{args.set}.png", dpi=150)
    plt.close(fig)


def main(command=None):
    """Run with these options, by default those of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=["mnist", "caltech", "digits"], default="digits")
    parser.add_argument("--rows", type=int, help="training rows to use")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 40, 80],
                        help="numbers of units at which the trainers are compared")  # fmt: skip
    parser.add_argument("--components", type=int, default=120, help="units to grow to")
    parser.add_argument("--every", type=int, default=10, help="units between points of growth")
    parser.add_argument("--modes", nargs="+", default=["corrective", "safeguarded"],
                        choices=["safeguarded", "plain", "corrective"],
                        help="the trainers start from the first")  # fmt: skip
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--trainers", nargs="+", choices=list(TRAINERS), default=list(TRAINERS))
    parser.add_argument("--rates", type=float, nargs="+", default=[0.05, 0.02, 0.01])
    parser.add_argument("--batches", type=int, nargs="+", default=[50])
    parser.add_argument("--trial", type=int, default=10, help="epochs to choose the rates by")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--parts", type=int, default=4, help="looks at the validation rows")
    parser.add_argument("--temperatures", type=int, default=2000, help="of AIS for the tables")
    parser.add_argument("--chains", type=int, default=100, help="of AIS for the tables")
    parser.add_argument("--paper-temperatures", action="store_true", help="14,500, 500 chains")
    parser.add_argument("--minutes", type=float, default=60, help="no size is begun after these")
    parser.add_argument("--redraw", action="store_true", help="only from the table of a run")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="infinite_rbm_figures", help="of the files of results")
    args = parser.parse_args(command)
    args.sizes = sorted(args.sizes)
    # As in the paper: pixels of MNIST are on above 127.
    args.threshold = True
    args.ladder = dict(n_temperatures=args.temperatures, n_chains=args.chains)
    # Of the runs of AIS that choose, on the validation rows.
    args.short = dict(n_temperatures=1000, n_chains=max(100, args.chains // 4))
    if args.paper_temperatures:
        parts = [(0, 0.5, 501), (0.5, 0.9, 4001), (0.9, 1, 10_001)]
        betas = np.unique(np.concatenate([np.linspace(*part) for part in parts]))
        args.ladder = dict(n_temperatures=betas, n_chains=500)
    args.table = args.output / f"{args.name}_{args.set}.csv"
    sets = load(args)
    args.title = f"{args.set}, {len(sets['train'][0])} training rows"
    ending = "_conclusion" * args.redraw
    with report(args.output / f"{args.name}_{args.set}{ending}.txt", args.title):
        paths, points = read_table(args) if args.redraw else run(sets, args)
        draw(paths, points, args)
        conclude(paths, points, args)


if __name__ == "__main__":
    run_script(main)
