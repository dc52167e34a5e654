"""Shifting Bar 9/1 and Bars & Stripes 3×3: Figures 1 and 2 of Upadhya and Sastry (2017).

RBMs of 4 hidden units, full batch, 12 Gibbs transitions for each mini-batch in all algorithms
(CD-12, PCD-12, CG-12; S-DCP and CS-DCP with 3×4), learning rates 0.3 and 0.5, 25 trials. The
log-likelihood of the patterns is exact. Claims: on Shifting Bar at 0.3, CS-DCP reaches −2.45
within 6,000 epochs, where CD-12 is stuck near −3.13. The paper makes 50,000 epochs:
``--sets bars --epochs 50000`` takes half an hour on one core.
"""

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script
from joblib import Parallel, delayed

from sklearn_boltz import SDCPRBM
from sklearn_boltz._threads import Workers
from sklearn_boltz.datasets import make_bars_and_stripes, make_shifting_bar

SETS = {
    "shifting": ("Shifting Bar 9/1", make_shifting_bar(9), -np.log(9)),
    "bars": ("Bars & Stripes 3×3", make_bars_and_stripes(3), -2.5993),
}
ALGORITHMS = {
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
    keys = [(s, a, r) for s in sets for a in ALGORITHMS for r in RATES]
    calls = [
        delayed(trial)(SETS[s][1], ALGORITHMS[a], r, epochs, points, seed)
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
        for algorithm in ALGORITHMS:
            path = paths[name, algorithm, rate]
            at = epochs * np.arange(1, path.shape[1] + 1) / path.shape[1]
            (line,) = ax.plot(at, path.mean(axis=0), label=algorithm)
            band = np.quantile(path, [0.25, 0.75], axis=0)
            ax.fill_between(at, *band, color=line.get_color(), alpha=0.15, lw=0)
        ax.axhline(ceiling, color="0.4", ls="--", lw=1)
        ax.set(title=f"{title}, learning rate {rate}", xlabel="epoch")
    axes[0].set_ylabel("mean log-likelihood, nats")
    lines = axes[0].get_legend_handles_labels()
    fig.legend(*lines, loc="outside upper center", ncols=len(ALGORITHMS), frameon=False)
    fig.savefig(file, dpi=130)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--epochs", type=int, default=6000)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--name", default="rbm_small", help="of the file of results")
    args = parser.parse_args()
    with report(args.output / f"{args.name}.txt", "Small sets, 4 hidden units, exact likelihood"):
        paths = run(args.sets, args.epochs, args.trials, args.points, args.jobs)
        print(f"Mean (worst, best) of {args.trials} trials after {args.epochs} epochs\n")
        for name in args.sets:
            rows = []
            for algorithm in ALGORITHMS:
                last = [paths[name, algorithm, rate][:, -1] for rate in RATES]
                rows.append([algorithm] + [f"{v.mean():.3f} ({v.min():.2f}, {v.max():.2f})"
                                           for v in last])  # fmt: skip
            print(f"{SETS[name][0]}, ceiling {SETS[name][2]:.4f}")
            print_table(["", *(f"learning rate {rate}" for rate in RATES)], rows)
            plot(name, paths, args.epochs, args.output / f"{args.name}_{name}.png")
        if "shifting" in args.sets:
            ours = paths["shifting", "CS-DCP 3×4", 0.3][:, -1].mean()
            stuck = paths["shifting", "CD-12", 0.3][:, -1].mean()
            print_check("CS-DCP, Shifting Bar, rate 0.3", "≥ −2.45", f"{ours:.3f}", ours >= -2.45)
            print_check(
                "CD-12 is stuck there", "near −3.13", f"{stuck:.3f}", abs(stuck + 3.13) < 0.05
            )


if __name__ == "__main__":
    run_script(main)
