"""Figures 1 and 2 of the Frank–Wolfe paper: likelihood and classification by hidden units.

Test log-likelihood, and the error of logistic regression on the means of the hidden units, of
Frank–Wolfe models (safeguarded: with a small penalty, the algorithm as printed diverges), of CD-10
from random starts and of CD-10 from the Frank–Wolfe model, on MNIST (pixels > 127) and the
Caltech-101 Silhouettes.
`bench_infinite_rbm_figures.py` measures both; this script gives it the paper's settings. The
paper's full course, 700 units and 14,500 temperatures of AIS, takes weeks of one core; no size is
begun after --minutes for each data set.

W. Ping, Q. Liu, A. Ihler (2016). "Learning infinite RBMs with Frank-Wolfe". NIPS.
"""

import csv
from functools import partial

import _path  # noqa: F401
import joblib
import numpy as np
from _common import print_table, run_script, save_table
from _data import load_parts
from _reproduction import compare, kept, plt, reproduction, save_picture, settings
from infinite.bench_infinite_rbm_figures import main as benchmark

STEM = "reproduce_infinite_figures1and2"  # of the files of results
SETS = {
    "mnist": ("MNIST", "460", "-160 to -80"),
    "caltech": ("Caltech-101", "550", "-220 to -120"),
}
FW, STARTED, RANDOM = "FW, safeguarded", "CD-10, from FW", "CD-10, random, as many epochs"
SHOWN = (FW, STARTED, RANDOM)


def measured(name, args):
    """The curves of a data set: model, then units, then values.

    The values are the test log-likelihood and the share of wrong labels.
    """
    options = {
        "set": name, "name": STEM, "jobs": args.jobs,
        "rows": args.rows, "components": args.components, "every": args.every, "alpha": args.alpha,
        "trial": args.trial, "epochs": args.epochs, "minutes": args.minutes,
    }  # fmt: skip
    lists = {"sizes": args.sizes, "rates": args.rates, "batches": args.batches,
             "modes": ["safeguarded"], "trainers": ["CD-10"]}  # fmt: skip
    command = [f"--{key}={value}" for key, value in options.items()]
    for key, values in lists.items():
        command += [f"--{key}", *map(str, values)]
    command += ["--temperatures=500"] if args.quick else ["--paper-temperatures"]
    return kept(args, f"infinite_{joblib.hash(command)}", partial(measure, name, command, args))


def measure(name, command, args):
    """Run the benchmark as from the command line; -> the curves in its table."""
    folders = [f"--output={args.output}"]
    if args.data is not None:
        folders.append(f"--data={args.data}")
    benchmark(command + folders)
    curves = {model: {} for model in SHOWN}
    with (args.output / f"{STEM}_{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["model"] in SHOWN:
                values = float(row["test"]), float(row["error"])
                curves[row["model"]][int(row["units"])] = values
    return curves


def claims(name, curves, args):
    """What the paper says of its figures."""
    title, chosen, axis = SETS[name]
    fw, started, random = (curves[model] for model in SHOWN)
    sizes = sorted(random)
    likelier = sum(started[n][0] > random[n][0] for n in sizes)
    values = [value for value, _ in fw.values()]
    best = max(fw, key=lambda n: fw[n][0])
    everything = [value for curve in curves.values() for value, _ in curve.values()]
    few = [n for n in sizes if n < 450]
    many = [n for n in sizes if n >= 450]
    worse = sum(fw[n][1] > random[n][1] for n in few)
    better = sum(fw[n][1] < random[n][1] for n in many)
    fewer = sum(started[n][1] < random[n][1] for n in sizes)
    return [
        (f"{title}, Figure 1: sizes at which CD-10 is likelier from FW than from random starts",
         "all", f"{likelier} of {len(sizes)}", likelier == len(sizes)),
        (f"{title}, Figure 1: units of FW with the highest log-likelihood",
         f"{chosen}, by early stopping",
         f"{best} of {max(fw)}", 0.75 < best / int(chosen) < 1.33 if max(fw) >= 600 else None),
        (f"{title}, Figure 1: log-likelihoods", f"{axis} (the axis)",
         f"{min(everything):.0f} to {max(everything):.0f}", None),
        (f"{title}, Figure 1: FW rises to its highest point", "yes",
         ", ".join(f"{value:.0f}" for value in values),
         values[: values.index(max(values)) + 1] == sorted(values)[: values.index(max(values)) + 1]
         if 1 < len(fw) and max(fw) < 400 else None),
        (f"{title}, Figure 2: sizes below 450 at which FW has more errors than CD-10", "all",
         f"{worse} of {len(few)}", worse == len(few)),
        *([(f"{title}, Figure 2: sizes from 450 on at which FW has fewer errors than CD-10", "all",
            f"{better} of {len(many)}", better == len(many))] if many else []),
        (f"{title}, Figure 2: sizes at which CD-10 from FW has fewer errors than CD-10", "all",
         f"{fewer} of {len(sizes)}", fewer == len(sizes)),
    ]  # fmt: skip


def draw(found, path):
    """A row for each figure, a column for each data set."""
    figure, axes = plt.subplots(2, len(found), figsize=(5 * len(found), 7), squeeze=False,
                                sharex="col", layout="constrained")  # fmt: skip
    for column, (name, curves) in zip(axes.T, found.items(), strict=True):
        for model, curve in curves.items():
            for k, ax in enumerate(column):
                # The errors of some sizes were not measured.
                known = {n: values[k] for n, values in curve.items() if np.isfinite(values[k])}
                ax.plot(known.keys(), known.values(), "o-", label=model)
        column[0].set_title(SETS[name][0])
        column[1].set_xlabel("hidden units")
        column[0].legend(fontsize="small")
    axes[0, 0].set_ylabel("test log-likelihood, nats")
    axes[1, 0].set_ylabel("share of wrong labels")
    save_picture(figure, path)


def main():
    args = settings(
        __doc__,
        full=dict(sets=["mnist", "caltech"], rows=50_000, components=700, every=20,
                  sizes=[20, 50, 100, 200, 300, 400, 500, 600, 700], alpha=0.05, epochs=200,
                  trial=10, rates=[0.05, 0.02, 0.01, 0.005], batches=[10, 20, 50, 100, 200],
                  minutes=1e9, jobs=1),
        quick=dict(rows=1_000, components=50, every=25, sizes=[25, 50], epochs=10, trial=5,
                   rates=[0.05], batches=[20], minutes=2.0),
    )  # fmt: skip
    # Before the report of an earlier run is overwritten.
    for name in args.sets:
        load_parts(name, args.data)
    title = "Infinite RBM, Figures 1 and 2"
    with reproduction("infinite_figures1and2", title, args):
        found = {name: measured(name, args) for name in args.sets}
        header = ["data", "units", *(f"{model}: {what}" for model in SHOWN
                                     for what in ("nats", "errors"))]  # fmt: skip
        rows = []
        for name, curves in found.items():
            for n in sorted(curves[RANDOM]):
                cells = [[f"{curves[m][n][0]:.1f}", f"{curves[m][n][1]:.1%}"] for m in SHOWN]
                rows.append([SETS[name][0], n, *sum(cells, [])])
        print_table(header, rows)
        save_table(f"{args.stem}_rows.csv", header, rows)
        grown = max(max(curves[FW]) for curves in found.values())
        compare(args, [
            ("settings", "50,000 and 4,100 rows, 700 units, 200 and 400 epochs",
             f"{args.rows:,} rows at most, {grown} units, {args.epochs} epochs", None),
            *(row for name, curves in found.items() for row in claims(name, curves, args)),
        ])  # fmt: skip
    draw(found, f"{args.stem}.png")


if __name__ == "__main__":
    run_script(main)
