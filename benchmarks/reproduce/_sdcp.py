"""The figures of the S-DCP paper: what their scripts share.

A script says which curves its figure has, and what the paper says of them. All algorithms make as
many Gibbs transitions for a mini-batch: 12 on the small sets (`reproduce_small`), 24 on images
(`reproduce_images`): CD-24, PCD-24, CG-24, S-DCP and CS-DCP with 6 × 4. On images the paper has
500 hidden units, batches of 200, 200 epochs, 10 trials and 10,000 temperatures of AIS: some two
hours of one thread for a trial of one curve of MNIST.
"""

from functools import partial
from typing import NamedTuple

import _path  # noqa: F401
import joblib
import numpy as np
from _common import log_likelihood, print_table, save_table
from _data import load_bits
from _reproduction import compare, kept, plt, reproduction, save_picture, settings
from joblib import Parallel, delayed
from rbm.bench_rbm_mnist import ALGORITHMS

from sklearn_boltz import SDCPRBM
from sklearn_boltz._threads import Workers
from sklearn_boltz.datasets import make_bars_and_stripes, make_shifting_bar

SMALL_FULL = dict(epochs=50_000, trials=25, points=200, jobs=2)
SMALL_QUICK = dict(epochs=6_000, trials=3, points=60)
FULL = dict(hidden=500, rows=60_000, batch=200, epochs=200, trials=10, points=20,
            temperatures=10_000, test_rows=10_000, jobs=1)  # fmt: skip
# Small batches make up for the few rows: 60 of them an epoch, where the paper has 300.
QUICK = dict(hidden=100, rows=3_000, batch=50, epochs=8, trials=1, points=4,
             temperatures=300, test_rows=2_000)  # fmt: skip
COMPARED = {
    name: {key: value for key, value in ALGORITHMS[name.lower()].items() if key != "batch_size"}
    for name in ("CD-24", "PCD-24", "CG-24", "S-DCP", "CS-DCP")
}
OURS = {name: COMPARED[name] for name in ("S-DCP", "CS-DCP")}


def settings_with_points(description, full, quick):
    """Settings with as many epochs from each point of a curve to the next, if need be fewer points.

    So the last point is that of the last epoch.
    """
    args = settings(description, full, quick)
    args.points = max(n for n in range(1, args.points + 1) if args.epochs % n == 0)
    return args


def near_its_best(path, epochs):
    """The first epoch at which a path from below reaches 90 % of its maximum, as the paper says.

    Log-likelihoods are negative: of a maximum of -2.7, 90 % is -3.
    """
    path = np.asarray(path)
    first = int(np.argmax(path >= path.max() / 0.9))
    return round(epochs * (first + 1) / len(path))


# Figures 1 and 2: small sets, 4 hidden units, exact likelihood.

SETS = {
    "shifting": ("Shifting Bar 9/1", make_shifting_bar(9), -np.log(9)),
    "bars": ("Bars & Stripes 3×3", make_bars_and_stripes(3), -2.5993),
}
SMALL_ALGORITHMS = {
    "CD-12": dict(n_inner=1, n_gibbs=12, centered=False),
    "PCD-12": dict(n_inner=1, n_gibbs=12, centered=False, persistent=True),
    "CG-12": dict(n_inner=1, n_gibbs=12),
    "S-DCP 3×4": dict(n_inner=3, n_gibbs=4, centered=False),
    "CS-DCP 3×4": dict(n_inner=3, n_gibbs=4),
}
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


def run(sets, epochs, trials, points, n_jobs):
    """Log-likelihoods of shape (trials, points) for each set, algorithm and rate."""
    keys = [(s, a, r) for s in sets for a in SMALL_ALGORITHMS for r in RATES]
    calls = [
        delayed(trial)(SETS[s][1], SMALL_ALGORITHMS[a], r, epochs, points, seed)
        for s, a, r in keys
        for seed in range(trials)
    ]
    paths = np.array(Parallel(n_jobs=n_jobs)(calls)).reshape(len(keys), trials, points)
    return dict(zip(keys, paths, strict=True))


def plot(name, paths, epochs, file):
    """The mean over the trials for each algorithm, and the band of the middle half."""
    title, _, ceiling = SETS[name]
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, rate in zip(axes, RATES, strict=True):
        for algorithm in SMALL_ALGORITHMS:
            path = paths[name, algorithm, rate]
            at = epochs * np.arange(1, path.shape[1] + 1) / path.shape[1]
            (line,) = ax.plot(at, path.mean(axis=0), label=algorithm)
            band = np.quantile(path, [0.25, 0.75], axis=0)
            ax.fill_between(at, *band, color=line.get_color(), alpha=0.15, lw=0)
        ax.axhline(ceiling, color="0.4", ls="--", lw=1)
        ax.set(title=f"{title}, learning rate {rate}", xlabel="epoch")
    axes[0].set_ylabel("mean log-likelihood, nats")
    lines = axes[0].get_legend_handles_labels()
    fig.legend(*lines, loc="outside upper center", ncols=len(SMALL_ALGORITHMS), frameon=False)
    save_picture(fig, file)


def reproduce_small(number, name, description, claims):
    """Run and keep a figure.

    Parameters
    ----------
    number : int
        Of the figure.
    name : {"shifting", "bars"}
    description : str
    claims : callable
        (means, speeds, args) -> rows of the comparison; both are dicts by (algorithm, rate):
        the log-likelihood in the end, and `near_its_best`.
    """
    args = settings_with_points(description, SMALL_FULL, SMALL_QUICK)
    title, _, ceiling = SETS[name]
    with reproduction(f"sdcp_figure{number}", f"S-DCP, Figure {number}: {title}", args):
        paths = run([name], args.epochs, args.trials, args.points, args.jobs)
        means = {key[1:]: path.mean(axis=0) for key, path in paths.items()}
        speeds = {key: near_its_best(path, args.epochs) for key, path in means.items()}
        last = {key: path[-1] for key, path in means.items()}
        header = ["algorithm"]
        for rate in RATES:
            header += [f"rate {rate}: log-likelihood", "worst", "best", "epoch of 90 %"]
        rows = []
        for algorithm in SMALL_ALGORITHMS:
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


# Figures 3 to 7: 28 × 28 pixels, likelihood by annealed importance sampling.


class Curve(NamedTuple):
    """A curve of a figure.

    Attributes
    ----------
    panel : str
        Title of the panel that it is drawn in.
    options : dict
        Parameters of `SDCPRBM`, and "visible_bias": the biases of the visible units at first
        (without it, the log-odds of the means).
    label : str
        In the legend; empty for the name of the curve.
    """

    panel: str
    options: dict
    label: str = ""


def five_algorithms(title):
    """The curves of Figures 3 and 4: a panel for each learning rate."""

    def curves(args):
        return {
            f"{name}, rate {rate:g}": Curve(
                f"{title}, learning rate {rate:g}", options | dict(learning_rate=rate), name
            )
            for rate in args.rates
            for name, options in COMPARED.items()
        }

    return curves


def reproduce_images(
    number, subject, description, *, curves, claims, data="mnist", full, quick=None, paper=None
):
    """Run and keep a figure.

    Parameters
    ----------
    number : int
        Of the figure.
    subject, description : str
    curves : callable
        args -> dict of name to `Curve`. Curves with the same options are learned once.
    claims : callable
        (paths, ends, args) -> rows of the comparison; `paths` and `ends` are dicts by name of a
        curve: its log-likelihoods, and (log-likelihood in the end, epoch of 90 %).
    data : {"mnist", "omniglot"}
    full, quick : dict
        What the settings have besides `FULL` and `QUICK`, or differently.
    paper : dict, default=None
        The batch and epochs of the paper, where they differ from 200.
    """
    args = settings_with_points(description, FULL | full, QUICK | (quick or {}))
    X, X_test = load_bits(data, args.data, args.rows, args.test_rows, np.random.default_rng(0))
    with reproduction(f"sdcp_figure{number}", f"S-DCP, Figure {number}: {subject}", args):
        chosen, known, paths = curves(args), {}, {}
        for name, curve in chosen.items():
            key = repr(sorted(curve.options.items()))
            if key not in known:
                known[key] = learn(X, X_test, curve.options, args)
            paths[name] = known[key]
        ends = keep(paths, args)
        compare(args, [paper_and_here(args, len(X), **(paper or {})), *claims(paths, ends, args)])
    draw(chosen, paths, args)


def paper_and_here(args, n_rows, batch=200, epochs=200):
    """The row of the settings; `batch` and `epochs` are those of the paper."""
    trials = "1 trial" if args.trials == 1 else f"{args.trials} trials"
    return (
        "settings",
        f"500 hidden units, all rows, batches of {batch}, {epochs} epochs, 10 trials",
        f"{args.hidden} hidden units, {n_rows:,} rows, batches of {args.batch}, "
        f"{args.epochs} epochs, {trials}",
        None,
    )


def learn(X, X_test, options, args):
    """Mean test log-likelihood at `args.points` epochs, over the trials; `options` of a `Curve`."""
    trials = range(args.trials)
    values = np.mean([learn_once(X, X_test, options, trial, args) for trial in trials], axis=0)
    print(f"{values[-1]:.2f} with {options}", flush=True)
    return values


def learn_once(X, X_test, options, trial, args):
    """Test log-likelihood at `args.points` epochs of one trial.

    Each point is kept with its model. So a run with more epochs goes on from a shorter one, if both
    have as many epochs from point to point.
    """
    parameters = {"batch_size": args.batch} | options
    visible_bias = parameters.pop("visible_bias", None)
    model = SDCPRBM(args.hidden, warm_start=True, max_iter=0, weights_init=0.01,
                    track_likelihood=False, random_state=trial, n_jobs=args.jobs)  # fmt: skip
    model.set_params(**parameters).fit(X)
    if visible_bias is not None:
        model.intercept_visible_ = np.full_like(model.intercept_visible_, visible_bias)
    model.set_params(max_iter=args.epochs // args.points)
    key = joblib.hash((X, X_test, model, args.temperatures))
    values = []
    for point in range(args.points):
        following = partial(next_point, model, X, X_test, args.temperatures)
        model, value = kept(args, f"sdcp_{key}_{point}", following)
        values.append(value)
    return values


def next_point(model, X, X_test, n_temperatures):
    """Train up to the next point; -> model, its test log-likelihood."""
    model.fit(X)
    ladder = dict(n_chains=100, n_temperatures=n_temperatures)
    return model, log_likelihood(model, X_test, **ladder)[0]


def keep(paths, args):
    """Print and keep all curves; -> (log-likelihood in the end, epoch of 90 %) of each."""
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    ends = {name: (path[-1], near_its_best(path, args.epochs)) for name, path in paths.items()}
    print()
    print_table(["", "test log-likelihood", "epoch of 90 %"],
                [[name, f"{end:.2f}", epoch] for name, (end, epoch) in ends.items()])  # fmt: skip
    rows = [[n, *(f"{path[k]:.2f}" for path in paths.values())] for k, n in enumerate(at)]
    save_table(f"{args.stem}_curves.csv", ["epoch", *paths], rows)
    return ends


def draw(curves, paths, args):
    """The panels; the curves of S-DCP are dashed."""
    panels = list(dict.fromkeys(curve.panel for curve in curves.values()))
    figure, axes = plt.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.6), sharey=True,
                                squeeze=False, layout="constrained")  # fmt: skip
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    for ax, title in zip(axes[0], panels, strict=True):
        for name, curve in curves.items():
            if curve.panel == title:
                style = "--" if name.startswith("S-DCP") else "-"
                ax.plot(at, paths[name], style, marker=".", label=curve.label or name)
        ax.set(title=title, xlabel="epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        # Below the panel: the ends of the curves stay visible.
        ax.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    axes[0, 0].set_ylabel("mean test log-likelihood, nats")
    save_picture(figure, f"{args.stem}.png")
