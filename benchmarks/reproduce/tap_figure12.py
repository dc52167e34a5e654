"""Figure 12 of the TAP paper: TAP, annealed importance sampling and the pseudo-likelihood.

The three measures of the same machine in the course of its TAP training on binary MNIST.

E. W. Tramel et al. (2018), see `tap_figures3to7.py`.
"""

from functools import partial

import _path  # noqa: F401
import numpy as np
from _common import log_likelihood, script, unconverged_is_fine
from _data import load_bits
from _reproduction import compare, keep_rows, kept, plt, reproduction, save_picture, settings

from sklearn_boltz import TAP, TAPRBM


def evaluate(model, X_test, args):
    """TAP, AIS and its standard error, and the pseudo-likelihood of test rows."""
    return [
        model.tap_log_likelihood(X_test).mean(),
        *log_likelihood(model, X_test, n_temperatures=args.temperatures),
        model.log_pseudo_likelihood(X_test[:1000]).mean(),
    ]


@script
def main():
    args = settings(
        __doc__,
        full=dict(rows=60_000, hidden=500, epochs=100, points=20, rate=0.005, temperatures=14_500,
                  test_rows=10_000, jobs=1),
        quick=dict(rows=5_000, hidden=100, epochs=10, points=5, rate=0.1, temperatures=500,
                   test_rows=500),
    )  # fmt: skip
    X, X_test = load_bits("mnist", args.data, args.rows, args.test_rows)
    epochs = args.epochs // args.points
    model = TAPRBM(args.hidden, inference=TAP(max_iter=10, n_gibbs=0), learning_rate=args.rate,
                   max_iter=epochs, warm_start=True, init=0.01, n_jobs=args.jobs,
                   random_state=0)  # fmt: skip
    with reproduction("tap_figure12", "TAP, Figure 12", args):
        rows = []
        for point in range(1, args.points + 1):
            name = f"tap_{args.hidden}_{args.rows}_{args.rate}_{point * epochs}"
            with unconverged_is_fine():
                model = kept(args, name, partial(model.fit, X))
            figures = kept(args, f"{name}_{args.temperatures}_{args.test_rows}",
                           partial(evaluate, model, X_test, args))  # fmt: skip
            rows.append([model.n_iter_, *map(float, figures)])
        printed = [[row[0], *(f"{x:.2f}" for x in row[1:])] for row in rows]
        keep_rows(args, ["epoch", "TAP", "AIS", "std. err.", "pseudo"], printed)
        values = np.array(rows)
        tap, ais, pseudo = (values[:, k] for k in (1, 2, 4))
        paths = {"TAP": tap, "AIS": ais, "pseudo-likelihood": pseudo}
        gap = np.abs(tap - ais)
        compare(args, [
            ("settings", "500 hidden units, 60,000 rows, 100 epochs, 14,500 temperatures",
             f"{args.hidden} hidden units, {args.rows:,} rows, {args.epochs} epochs, "
             f"{args.temperatures:,} temperatures", None),
            *((f"{name}, first and last point", "rises", f"{path[0]:.1f} to {path[-1]:.1f}",
               bool(path[-1] > path[0])) for name, path in paths.items()),
            ("TAP and AIS by test images, largest difference", "similar growth",
             f"{gap.max():.1f} nats, in the end {gap[-1]:.1f}",
             bool(gap[-1] < 0.25 * (ais[-1] - ais[0] + gap[-1]))),
        ])  # fmt: skip
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, path in paths.items():
        ax.plot(values[:, 0], path, "o-", label=name)
    ax.set(xlabel="epoch", ylabel="mean of test images, nats")
    ax.legend()
    save_picture(figure, f"{args.stem}.png")
