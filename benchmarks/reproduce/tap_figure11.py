"""Figure 11 of the TAP paper: joint training of deep Boltzmann machines.

The TAP log-likelihood of training and of test images by unit, in the course of the joint training
of machines of two and of three hidden layers, each first trained layer by layer. The paper does not
say how many units they have.

E. W. Tramel et al. (2018), see `tap_figures3to7.py`.
"""

from functools import partial

import _path  # noqa: F401
import joblib
import numpy as np
from _common import save_table, script, unconverged_is_fine
from _data import load_bits
from _reproduction import compare, kept, plt, reproduction, save_picture, settings

from sklearn_boltz import TAP, TAPDBM


def make(sizes, args):
    tap = TAP(max_iter=args.iterations, n_gibbs=0)
    return TAPDBM(sizes, inference=tap, learning_rate=args.rate,
                  pretrain_max_iter=args.pretrain, max_iter=0, warm_start=True,
                  random_state=args.seed)  # fmt: skip


def course(model, X, X_test, args):
    """Train jointly; -> rows (epoch, train, test, norms), the first before the joint training."""
    entries, some = [], X[: len(X_test)]
    while True:
        model.fit(X)
        figures = [model.tap_log_likelihood(rows).mean() for rows in (some, X_test)]
        norms = [np.linalg.norm(W) for W in model.components_]
        entries.append([model.n_iter_, *figures, *norms])
        print(f"{model.hidden_layer_sizes}, epoch {model.n_iter_}: test {figures[1]:.1f}")
        left = args.epochs - model.n_iter_
        if left <= 0:
            return np.array(entries)
        model.set_params(max_iter=min(args.every, left))


@script
def main():
    args = settings(
        __doc__,
        full=dict(rows=60_000, test_rows=10_000, sizes=[256, 128, 64], pretrain=50, epochs=3000,
                  every=100, rate=0.001, iterations=10, seed=0),
        quick=dict(rows=2_000, test_rows=500, sizes=[64, 32, 16], pretrain=5, epochs=20, every=2,
                   rate=0.02),
    )  # fmt: skip
    X, X_test = load_bits("mnist", args.data, args.rows, args.test_rows)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained", sharey=True)
    with reproduction("tap_figure11", "TAP, Figure 11", args):
        rows = [(
            "settings", "50 epochs for each layer, 3,000 together, rate 0.001",
            f"{args.pretrain} and {args.epochs}, rate {args.rate}, {args.rows:,} rows, "
            f"units {', '.join(map(str, args.sizes))}", None,
        )]  # fmt: skip
        for ax, n_layers in zip(axes, (2, 3), strict=True):
            sizes = tuple(args.sizes[:n_layers])
            model = make(sizes, args)
            key = joblib.hash((X, X_test, model, args.epochs, args.every))
            with unconverged_is_fine():
                found = kept(args, f"tap_deep_{key}", partial(course, model, X, X_test, args))
            found = found[:, :3] / [1, *[784 + sum(sizes)] * 2]
            header = ["epoch", "train", "test"]
            save_table(f"{args.stem}_{n_layers}_curves.csv", header, found.round(5).tolist())
            for k, name in ((1, "training images"), (2, "test images")):
                first, last = found[0, k], found[-1, k]
                rows.append((
                    f"{n_layers} hidden layers, {name}: first and last epoch, a unit", "rises",
                    f"{first:.4f} to {last:.4f}", bool(last > first),
                ))  # fmt: skip
                ax.plot(found[:, 0], found[:, k], label=name)
            ax.set(xlabel="epoch of joint training", title=f"{n_layers} hidden layers")
        compare(args, rows)
    axes[0].set_ylabel("TAP log-likelihood by unit, nats")
    axes[0].legend()
    save_picture(figure, f"{args.stem}.png")
