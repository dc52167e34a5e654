"""Figures 1 and 2 of the Frank–Wolfe paper: likelihood and classification by hidden units.

Test log-likelihood, and the error of logistic regression on the means of the hidden units, of
Frank–Wolfe models (safeguarded), of CD-10 from random starts and of CD-10 from the Frank–Wolfe
model, on MNIST (pixels > 127) and the Caltech-101 Silhouettes. The rate and the size of the
mini-batches are chosen on the validation rows, at the first size, for each start; of each training
the best state on them is kept. The paper's full course, 700 units and 14,500 temperatures of AIS,
takes weeks of one core; no size is begun after --minutes for each data set.

W. Ping, Q. Liu, A. Ihler (2016). "Learning infinite RBMs with Frank-Wolfe". NIPS.
"""

import copy
import itertools
import math
import warnings
from functools import partial
from time import perf_counter

import _path  # noqa: F401
import joblib
import numpy as np
from _common import log_likelihood, processor_timed, script
from _data import binary, load_parts
from _reproduction import compare, keep_rows, kept, plt, reproduction, save_picture, settings
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_boltz import SDCPRBM, InfiniteRBM

SETS = {"mnist": ("MNIST", "460", "-160 to -80"), "caltech": ("Caltech-101", "550", "-220 to -120")}
FW, STARTED, RANDOM = "FW, safeguarded", "CD-10, from FW", "CD-10, random, as many epochs"
SHOWN = (FW, STARTED, RANDOM)
# Of the runs of AIS that choose, on the validation rows.
SHORT = dict(n_temperatures=1000, n_chains=100)
N_PARTS = 4  # looks at the validation rows


def annealing(args):
    """Options of AIS for the figures: the paper's, or few temperatures."""
    if args.quick:
        return dict(n_temperatures=500, n_chains=100)
    parts = [(0, 0.5, 501), (0.5, 0.9, 4001), (0.9, 1, 10_001)]
    betas = np.unique(np.concatenate([np.linspace(*part) for part in parts]))
    return dict(n_temperatures=betas, n_chains=500)


def values_of(model, sets, args, *, classify=True):
    """The test log-likelihood, and the share of wrong labels."""
    (X, y), (X_test, y_test) = sets["train"], sets["test"]
    wrong = math.nan
    if classify:
        classifier = LogisticRegression(max_iter=300).fit(model.transform(X), y)
        wrong = 1 - classifier.score(model.transform(X_test), y_test)
    return log_likelihood(model, X_test, **annealing(args))[0], wrong


def train(model, X, X_valid, n_epochs, n_parts):
    """Go on with a training; -> its best state on the validation rows, CPU seconds.

    The start is one of the states.
    """
    best = log_likelihood(model, X_valid, **SHORT)[0], copy.deepcopy(model)
    done, spent = 0, 0.0
    model.set_params(warm_start=True)
    for end in np.unique(np.linspace(0, n_epochs, n_parts + 1).astype(int))[1:]:
        spent += processor_timed(model.set_params(max_iter=int(end) - done).fit, X)[1]
        done = int(end)
        value = log_likelihood(model, X_valid, **SHORT)[0]
        if value > best[0]:
            best = value, copy.deepcopy(model)
    return best[1], spent


def start_of(trainer, X, fw):
    """A trainer before its first epoch, from a Frank–Wolfe model if there is one."""
    with warnings.catch_warnings():
        # That nothing was learned yet.
        warnings.simplefilter("ignore")
        trainer = clone(trainer).set_params(max_iter=0, warm_start=False)
        if fw is not None:
            trainer.set_params(n_components=fw.n_components_, init=FrozenEstimator(fw))
        return trainer.fit(X)


def choose(X, X_valid, fw, growth, args):
    """CD-10 with the rate and mini-batches that do best on the validation rows.

    From random starts, at the end of as much time as growing and some epochs take: rates that
    are good for a few epochs are not those that are good for many.
    """
    best = -math.inf, None
    for rate, batch in itertools.product(args.rates, args.batches):
        trainer = SDCPRBM(args.sizes[0], learning_rate=rate, batch_size=batch, n_inner=1,
                          n_gibbs=10, centered=False, n_jobs=args.jobs, random_state=0)  # fmt: skip
        model, spent = train(start_of(trainer, X, fw), X, X_valid, args.trial, 1)
        if fw is None:
            more = math.ceil(growth / (spent / args.trial))
            model = train(model, X, X_valid, more, N_PARTS)[0]
        value = log_likelihood(model, X_valid, **SHORT)[0]
        best = max(best, (value, trainer), key=lambda pair: pair[0])
    trainer = best[1]
    print(
        f"{'random start' if fw is None else 'from FW'}: learning rate {trainer.learning_rate}, "
        f"{trainer.batch_size} rows, {best[0]:.1f} nats",
        flush=True,
    )
    return trainer


def measure(name, args):
    """The curves of a data set: model, then units, then (log-likelihood, share of wrong labels)."""
    n_rows = {"train": args.rows, "valid": args.rows, "test": None}
    sets = {
        part: (binary(X[: n_rows[part]]), y[: n_rows[part]])
        for part, (X, y) in load_parts(name, args.data).items()
    }
    X, X_valid = sets["train"][0], sets["valid"][0]
    curves, trainers = {model: {} for model in SHOWN}, None
    fw = InfiniteRBM(mode="safeguarded", alpha=args.alpha, early_stopping=False, warm_start=True,
                     n_jobs=args.jobs, random_state=0)  # fmt: skip
    begun, growth = perf_counter(), 0.0
    for size in sorted({*range(args.every, args.components + 1, args.every), *args.sizes}):
        growth += processor_timed(fw.set_params(max_components=size).fit, X)[1]
        curves[FW][size] = values_of(fw, sets, args, classify=size in args.sizes)
        if size in args.sizes:
            starts = {STARTED: fw, RANDOM: None}
            if trainers is None:
                trainers = {m: choose(X, X_valid, s, growth, args) for m, s in starts.items()}
            for model, start in starts.items():
                trainer = clone(trainers[model]).set_params(n_components=fw.n_components_)
                begin = start_of(trainer, X, start)
                trained = train(begin, X, X_valid, args.epochs, N_PARTS)[0]
                curves[model][size] = values_of(trained, sets, args)
        if perf_counter() - begun > 60 * args.minutes:
            print(f"{args.minutes} minutes are over")
            break
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


@script
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
        found = {}
        for name in args.sets:
            values = {setting: getattr(args, setting) for setting in args.settings}
            key = joblib.hash([name, args.quick, values])
            found[name] = kept(args, f"infinite_{key}", partial(measure, name, args))
        header = ["data", "units", *(f"{model}: {what}" for model in SHOWN
                                     for what in ("nats", "errors"))]  # fmt: skip
        rows = []
        for name, curves in found.items():
            for n in sorted(curves[RANDOM]):
                cells = [[f"{curves[m][n][0]:.1f}", f"{curves[m][n][1]:.1%}"] for m in SHOWN]
                rows.append([SETS[name][0], n, *sum(cells, [])])
        keep_rows(args, header, rows)
        grown = max(max(curves[FW]) for curves in found.values())
        compare(args, [
            ("settings", "50,000 and 4,100 rows, 700 units, 200 and 400 epochs",
             f"{args.rows:,} rows at most, {grown} units, {args.epochs} epochs", None),
            *(row for name, curves in found.items() for row in claims(name, curves, args)),
        ])  # fmt: skip
    draw(found, f"{args.stem}.png")
