"""Figures 1 and 2 of the S-DCP paper: small sets, exact likelihood, five algorithms."""

import numpy as np
from _bench import compare, reproduction, save_table, settings
from _common import print_table
from bench_rbm_small import ALGORITHMS, RATES, SETS, plot, run

FULL = dict(epochs=50_000, trials=25, points=200, jobs=2)
QUICK = dict(epochs=6_000, trials=3, points=60)


def near_its_best(path, epochs):
    """The first epoch at which a path from below reaches 90 % of its maximum, as the paper says.

    Log-likelihoods are negative: of a maximum of -2.7, 90 % is -3.
    """
    path = np.asarray(path)
    first = int(np.argmax(path >= path.max() / 0.9))
    return round(epochs * (first + 1) / len(path))


def reproduce(name, figure, description, claims):
    """Run and keep one of the two figures.

    Parameters
    ----------
    name : {"shifting", "bars"}
    figure : int
    description : str
    claims : callable
        (means, speeds, args) -> rows of the comparison; both are dicts by (algorithm, rate):
        the log-likelihood in the end, and `near_its_best`.
    """
    args = settings(description, FULL, QUICK)
    title, _, ceiling = SETS[name]
    with reproduction(f"sdcp_figure{figure}", f"S-DCP, Figure {figure}: {title}", args):
        paths = run([name], args.epochs, args.trials, args.points, args.jobs)
        means = {key[1:]: path.mean(axis=0) for key, path in paths.items()}
        speeds = {key: near_its_best(path, args.epochs) for key, path in means.items()}
        last = {key: path[-1] for key, path in means.items()}
        header = ["algorithm"]
        for rate in RATES:
            header += [f"rate {rate}: log-likelihood", "worst", "best", "epoch of 90 %"]
        rows = []
        for algorithm in ALGORITHMS:
            rows.append([algorithm])
            for rate in RATES:
                ends = paths[name, algorithm, rate][:, -1]
                rows[-1] += [f"{x:.3f}" for x in (ends.mean(), ends.min(), ends.max())]
                rows[-1].append(speeds[algorithm, rate])
        print_table(header, rows)
        save_table(f"{args.stem}_rows.csv", header, rows)
        at = args.epochs * np.arange(1, args.points + 1) // args.points
        values = np.column_stack(list(means.values()))
        curves = [[n, *(f"{x:.4f}" for x in row)] for n, row in zip(at, values, strict=True)]
        labels = [f"{algorithm}, {rate}" for algorithm, rate in means]
        save_table(f"{args.stem}_curves.csv", ["epoch", *labels], curves)
        compare(args, [
            ("settings", "50,000 epochs, 25 trials",
             f"{args.epochs:,} epochs, {args.trials} trials", None),
            ("highest log-likelihood there is", f"{ceiling:.1f}", f"{ceiling:.4f}", None),
            *claims(last, speeds, args),
        ])  # fmt: skip
    plot(name, paths, args.epochs, f"{args.stem}.png")
