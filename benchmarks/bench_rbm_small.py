"""Shifting Bar 9/1 and Bars & Stripes 3×3: Figures 1 and 2 of Upadhya and Sastry (2017).

RBMs of 4 hidden units, full batch, 12 Gibbs transitions for each mini-batch in all algorithms
(CD-12, PCD-12, CG-12; S-DCP and CS-DCP with 3×4), learning rates 0.3 and 0.5, 25 trials. The
log-likelihood of the patterns is exact. Claims: on Shifting Bar at 0.3, CS-DCP reaches −2.45
within 6,000 epochs, where CD-12 is stuck near −3.13.
"""

import sys

import numpy as np
from _common import make_parser, print_check, print_table, report
from joblib import Parallel, delayed

from sklearn_boltz import SDCPRBM
from sklearn_boltz.datasets import make_bars_and_stripes, make_shifting_bar

SETS = {
    "Shifting Bar 9/1": (make_shifting_bar(9), -np.log(9)),
    "Bars & Stripes 3×3": (make_bars_and_stripes(3), -2.5993),
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
        4,
        learning_rate=rate,
        batch_size=len(X),
        max_iter=epochs // points,
        warm_start=True,
        random_state=seed,
        n_jobs=1,
        **scheme,
    )
    return [model.fit(X).score(X) for _ in range(points)]


def run(epochs, trials, points, n_jobs):
    """Log-likelihoods of shape (trials, points) for each set, algorithm and rate."""
    keys = [(s, a, r) for s in SETS for a in ALGORITHMS for r in RATES]
    calls = [
        delayed(trial)(SETS[s][0], ALGORITHMS[a], r, epochs, points, seed)
        for s, a, r in keys
        for seed in range(trials)
    ]
    paths = np.array(Parallel(n_jobs=n_jobs)(calls)).reshape(len(keys), trials, points)
    return dict(zip(keys, paths, strict=True))


def plot(paths, epochs, file):
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 2, figsize=(9, 6.5), sharex=True, layout="constrained")
    for row, (name, (_, ceiling)) in zip(axes, SETS.items(), strict=True):
        for ax, rate in zip(row, RATES, strict=True):
            for algorithm in ALGORITHMS:
                path = paths[name, algorithm, rate].mean(axis=0)
                at = epochs * np.arange(1, len(path) + 1) / len(path)
                ax.plot(at, path, label=algorithm)
            ax.axhline(ceiling, color="0.4", ls="--", lw=1)
            ax.set(title=f"{name}, learning rate {rate}")
        row[0].set_ylabel("mean log-likelihood, nats")
    axes[1, 0].set_xlabel("epoch")
    axes[1, 1].set_xlabel("epoch")
    axes[0, 0].legend(frameon=False, loc="upper left")
    fig.savefig(file, dpi=130)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=6000)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    with report(args.output / "rbm_small.txt", "Small sets, 4 hidden units, exact likelihood"):
        paths = run(args.epochs, args.trials, args.points, args.jobs)
        print(f"Mean (worst, best) of {args.trials} trials after {args.epochs} epochs\n")
        for name, (_, ceiling) in SETS.items():
            rows = []
            for algorithm in ALGORITHMS:
                last = [paths[name, algorithm, rate][:, -1] for rate in RATES]
                rows.append([algorithm] + [f"{v.mean():.3f} ({v.min():.2f}, {v.max():.2f})"
                                           for v in last])  # fmt: skip
            print(f"{name}, ceiling {ceiling:.4f}")
            print_table(["", *(f"learning rate {rate}" for rate in RATES)], rows)
        bar = "Shifting Bar 9/1"
        ours = paths[bar, "CS-DCP 3×4", 0.3][:, -1].mean()
        stuck = paths[bar, "CD-12", 0.3][:, -1].mean()
        print_check("CS-DCP, Shifting Bar, rate 0.3", "≥ −2.45", f"{ours:.3f}", ours >= -2.45)
        print_check("CD-12 is stuck there", "near −3.13", f"{stuck:.3f}", abs(stuck + 3.13) < 0.05)
        plot(paths, args.epochs, args.output / "rbm_small.png")


if __name__ == "__main__":
    sys.exit(main())
