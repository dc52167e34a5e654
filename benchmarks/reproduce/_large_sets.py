"""Figures 3 to 7 of the S-DCP paper: 28 × 28 pixels, likelihood by annealed importance sampling.

All take 24 Gibbs transitions for a mini-batch: CD-24, PCD-24, CG-24, S-DCP and CS-DCP with 6 × 4.
The paper has 500 hidden units, batches of 200, 200 epochs, 10 trials and 10,000 temperatures of
AIS: at 20 seconds an epoch of MNIST and one thread, some ten hours for a trial of one curve.
"""

import numpy as np
from _bench import plt, save_picture, save_table
from _common import binary, load_images, log_likelihood, print_table
from _small_sets import near_its_best
from bench_rbm_mnist import ALGORITHMS

from sklearn_boltz import SDCPRBM

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


def load(name, args):
    """Training and test rows, drawn with the pixels as probabilities."""
    X, X_test, *_ = load_images(name, args.data, args.rows)
    rng = np.random.default_rng(0)
    return binary(X, rng), binary(X_test[: args.test_rows], rng)


def paper_and_here(args, batch=200, epochs=200):
    """The row of the settings; `batch` and `epochs` are those of the paper."""
    trials = "1 trial" if args.trials == 1 else f"{args.trials} trials"
    return (
        "settings",
        f"500 hidden units, all rows, batches of {batch}, {epochs} epochs, 10 trials",
        f"{args.hidden} hidden units, {args.rows:,} rows, batches of {args.batch}, "
        f"{args.epochs} epochs, {trials}",
        None,
    )


def curve(X, X_test, options, args, visible_bias=None):
    """Mean test log-likelihood at `args.points` epochs, over the trials.

    Parameters
    ----------
    X, X_test : ndarray of shape (n_rows, n_pixels)
    options : dict
        Parameters of `SDCPRBM`.
    args : Namespace
    visible_bias : float, default=None
        What the biases of the visible units are at first; None for the log-odds of the means.
    """
    values = np.empty((args.trials, args.points))
    for trial in range(args.trials):
        model = SDCPRBM(args.hidden, warm_start=True, max_iter=0, random_state=trial,
                        n_jobs=args.jobs)  # fmt: skip
        model.set_params(**{"batch_size": args.batch} | options).fit(X)
        if visible_bias is not None:
            model.intercept_visible_ = np.full_like(model.intercept_visible_, visible_bias)
        model.set_params(max_iter=args.epochs // args.points)
        for k in range(args.points):
            model.fit(X)
            ladder = dict(n_chains=100, n_temperatures=args.temperatures)
            values[trial, k], _ = log_likelihood(model, X_test, **ladder)
    print(f"{values[:, -1].mean():.2f} with {options}", flush=True)
    return values.mean(axis=0)


def keep(curves, args):
    """Print and keep all curves; -> (log-likelihood in the end, epoch of 90 %) of each."""
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    ends = {name: (path[-1], near_its_best(path, args.epochs)) for name, path in curves.items()}
    print()
    print_table(["", "test log-likelihood", "epoch of 90 %"],
                [[name, f"{end:.2f}", epoch] for name, (end, epoch) in ends.items()])  # fmt: skip
    rows = [[n, *(f"{path[k]:.2f}" for path in curves.values())] for k, n in enumerate(at)]
    save_table(f"{args.stem}_curves.csv", ["epoch", *curves], rows)
    return ends


def draw(panels, args):
    """A panel for each title, with a dict of curves; those of S-DCP are dashed."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5.5 * len(panels), 4), sharey=True,
                                squeeze=False, layout="constrained")  # fmt: skip
    at = args.epochs // args.points * np.arange(1, args.points + 1)
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        for name, path in curves.items():
            ax.plot(at, path, "--" if name.startswith("S-DCP") else "-", marker=".", label=name)
        ax.set(title=title, xlabel="epoch")
        ax.legend(fontsize="small")
    axes[0, 0].set_ylabel("mean test log-likelihood, nats")
    save_picture(figure, f"{args.stem}.png")
