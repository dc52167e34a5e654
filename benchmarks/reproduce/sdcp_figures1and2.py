"""Figures 1 and 2 of the S-DCP paper: Shifting Bar 9/1 and Bars & Stripes 3×3, 4 hidden units.

Full batch, learning rates 0.3 and 0.5, 12 transitions for each mini-batch in all algorithms; exact
likelihood.

V. Upadhya, P. S. Sastry (2017), see `sdcp_figures6and7.py`.
"""

from itertools import product

import _path  # noqa: F401
import numpy as np
from _common import script
from _reproduction import compare, keep_curves, keep_rows, plt, reproduction, save_picture
from _sdcp import near_its_best, settings_with_points
from joblib import Parallel, delayed

from sklearn_boltz import SDCPRBM
from sklearn_boltz.datasets import make_bars_and_stripes, make_shifting_bar
from sklearn_boltz.numerics._threads import Workers

FULL = dict(epochs=50_000, trials=25, points=200, jobs=2)
QUICK = dict(epochs=6_000, trials=3, points=60)
ALGORITHMS = {
    "CD-12": dict(n_inner=1, n_gibbs=12, centered=False),
    "PCD-12": dict(n_inner=1, n_gibbs=12, centered=False, chains="persistent"),
    "CG-12": dict(n_inner=1, n_gibbs=12),
    "S-DCP 3×4": dict(n_inner=3, n_gibbs=4, centered=False),
    "CS-DCP 3×4": dict(n_inner=3, n_gibbs=4),
}
OURS = "S-DCP 3×4", "CS-DCP 3×4"
RATES = [0.3, 0.5]


def trial(X, scheme, rate, epochs, points, seed):
    """Exact mean log-likelihood at some epochs of one fit."""
    model = SDCPRBM(
        4, learning_rate=rate, batch_size=len(X), max_iter=0, random_state=seed, **scheme
    ).fit(X)
    X, path, training = X.astype(model.components_.dtype), [], model._training
    with Workers(1) as workers:
        for _ in range(points):
            # Epochs of one mini-batch without the history of fit(), which would double the time.
            for _ in range(epochs // points):
                training.learner.learn(training.learner.in_memory(X), rate, workers)
            vars(model).update(model._attributes(training))
            path.append(model.score(X))
    return path


def run(X, args):
    """Log-likelihoods of shape (trials, points) for each algorithm and rate."""
    keys = list(product(ALGORITHMS, RATES))
    calls = [
        delayed(trial)(X, ALGORITHMS[a], rate, args.epochs, args.points, seed)
        for a, rate in keys
        for seed in range(args.trials)
    ]
    found = Parallel(n_jobs=args.jobs)(calls)
    paths = np.array(found).reshape(len(keys), args.trials, args.points)
    return dict(zip(keys, paths, strict=True))


def draw(title, paths, ceiling, at, file):
    """The mean over the trials for each algorithm, and the band of the middle half."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, rate in zip(axes, RATES, strict=True):
        for algorithm in ALGORITHMS:
            path = paths[algorithm, rate]
            (line,) = ax.plot(at, path.mean(axis=0), label=algorithm)
            band = np.quantile(path, [0.25, 0.75], axis=0)
            ax.fill_between(at, *band, color=line.get_color(), alpha=0.15, lw=0)
        ax.axhline(ceiling, color="0.4", ls="--", lw=1)
        ax.set(title=f"{title}, learning rate {rate}", xlabel="epoch")
    axes[0].set_ylabel("mean log-likelihood, nats")
    lines = axes[0].get_legend_handles_labels()
    fig.legend(*lines, loc="outside upper center", ncols=len(ALGORITHMS), frameon=False)
    save_picture(fig, file)


# What the paper says of its figures. Both dicts are by (algorithm, rate): the log-likelihood in
# the end, and `near_its_best`.


def of_shifting_bar(last, speeds, args):
    rows = []
    for rate in RATES:
        stuck = [last[algorithm, rate] for algorithm in ("CD-12", "PCD-12")]
        rows.append((f"CD and PCD, rate {rate}", "stuck at about -3.15",
                     f"{stuck[0]:.2f}, {stuck[1]:.2f}",
                     max(abs(value + 3.15) for value in stuck) < 0.1))  # fmt: skip
    slow, fast = last["CG-12", 0.3], last["CG-12", 0.5]
    rows.append(("CG, rates 0.3 and 0.5", "escapes at 0.5 only", f"{slow:.2f}, {fast:.2f}",
                 slow < -2.9 < -2.7 < fast))  # fmt: skip
    for algorithm in OURS:
        both = [last[algorithm, rate] for rate in RATES]
        rows.append((f"{algorithm}, rates 0.3 and 0.5", "almost the same",
                     f"{both[0]:.2f}, {both[1]:.2f}", abs(both[0] - both[1]) < 0.2))  # fmt: skip
    others = max(last[a, 0.3] for a in ("CD-12", "PCD-12", "CG-12"))
    ours = [last[a, 0.3] for a in OURS]
    rows.append((f"rate 0.3: the best of CD, PCD and CG after {args.epochs:,} updates",
                 "below S-DCP and CS-DCP up to 30,000",
                 f"{others:.2f}, below {ours[0]:.2f} and {ours[1]:.2f}"
                 if others < min(ours) else f"{others:.2f}, not below {min(ours):.2f}",
                 others < min(ours) if args.epochs <= 30_000 else None))  # fmt: skip
    return rows


def of_bars_and_stripes(last, speeds, args):
    rows = []
    for rate in RATES:
        same = [last[a, rate] for a in ("CG-12", *OURS)]
        rows.append((f"CG, S-DCP and CS-DCP, rate {rate}", "almost the same",
                     ", ".join(f"{value:.2f}" for value in same),
                     max(same) - min(same) < 0.2))  # fmt: skip
        plain = [last[a, rate] for a in ("CD-12", "PCD-12")]
        rows.append((f"CD and PCD, rate {rate}", "below the three",
                     ", ".join(f"{value:.2f}" for value in plain),
                     max(plain) < min(same)))  # fmt: skip
        cg, ours = (speeds[a, rate] for a in ("CG-12", "CS-DCP 3×4"))
        rows.append((f"epochs that CG takes longer than CS-DCP to 90 % of its maximum, rate {rate}",
                     "about 2,500", f"{cg - ours:,} ({cg:,} and {ours:,})",
                     1_250 < cg - ours < 5_000))  # fmt: skip
    return rows


# Title, data, highest log-likelihood there is, claims.
FIGURES = {
    1: ("Shifting Bar 9/1", make_shifting_bar(9), -np.log(9), of_shifting_bar),
    2: ("Bars & Stripes 3×3", make_bars_and_stripes(3), -2.5993, of_bars_and_stripes),
}


def reproduce(number, args):
    """Run and keep a figure."""
    title, X, ceiling, claims = FIGURES[number]
    with reproduction(f"sdcp_figure{number}", f"S-DCP, Figure {number}: {title}", args):
        paths = run(X, args)
        means = {key: path.mean(axis=0) for key, path in paths.items()}
        speeds = {key: near_its_best(path, args.epochs) for key, path in means.items()}
        header, rows = ["algorithm"], {algorithm: [algorithm] for algorithm in ALGORITHMS}
        for rate in RATES:
            header += [f"rate {rate}: log-likelihood", "worst", "best", "epoch of 90 %"]
            for algorithm, row in rows.items():
                ends = paths[algorithm, rate][:, -1]
                row += [f"{x:.3f}" for x in (ends.mean(), ends.min(), ends.max())]
                row.append(speeds[algorithm, rate])
        keep_rows(args, header, rows.values())
        at = args.epochs // args.points * np.arange(1, args.points + 1)
        keep_curves(args, at, {f"{a}, {rate}": path for (a, rate), path in means.items()}, 4)
        compare(args, [
            ("settings", "50,000 epochs, 25 trials",
             f"{args.epochs:,} epochs, {args.trials} trials", None),
            ("highest log-likelihood there is", f"{ceiling:.1f}", f"{ceiling:.4f}", None),
            *claims({key: path[-1] for key, path in means.items()}, speeds, args),
        ])  # fmt: skip
    draw(title, paths, ceiling, at, f"{args.stem}.png")


@script
def main():
    args = settings_with_points(__doc__, FULL, QUICK)
    for number in FIGURES:
        reproduce(number, args)
