"""Figure 5 of the TAP paper once more: how many solutions 10,000 starts lead to.

A machine of binary MNIST with 100 units, as in `tap_figures3to7.py`. Of all starts only those count
that converge, and the number of different solutions is given for several thresholds: two solutions
are the same if no mean differs by more. The paper does not say what is the same there.

E. W. Tramel, M. Gabrié, A. Manoel, F. Caltagirone, F. Krzakala (2018). "Deterministic and
generalized framework for unsupervised learning with restricted Boltzmann machines". Physical
Review X 8, 041006.
"""

from functools import partial

import _path  # noqa: F401
import joblib
import numpy as np
from _common import script, unconverged_is_fine
from _data import binary, load_images
from _reproduction import compare, keep_rows, kept, plt, reproduction, save_picture, settings

from sklearn_boltz import TAP, TAPRBM

SAME = (0.001, 0.005, 0.02, 0.1, 0.3)


def train(X, args):
    model = TAPRBM(
        args.units, columns="probability", learning_rate=args.rate, alpha=0.001, batch_size=100,
        inference=TAP(max_iter=10, n_gibbs=0), init=0.001, max_iter=args.epochs, random_state=0,
    )  # fmt: skip
    with unconverged_is_fine():
        return model.fit(X)


def solutions_of(model, X, args):
    """The means of all units where each start that converges leads; float32."""
    found = model.tap_solutions(X, unique=False, max_iter=args.most)
    return np.hstack([found.visible_mean, found.hidden_mean])[found.converged].astype(np.float32)


def count(points, same):
    """How many points differ by more than a threshold in some coordinate."""
    n = 0
    while len(points):
        points = points[np.abs(points - points[0]).max(axis=1) > same]
        n += 1
    return n


@script
def main():
    args = settings(
        __doc__,
        full=dict(rows=60_000, epochs=100, units=100, rate=0.005, starts=10_000, most=1000),
        quick=dict(rows=4_000, epochs=8, units=25, rate=0.1, starts=200, most=200),
    )
    X = binary(load_images("mnist", args.data, args.rows)[0])
    with reproduction("tap_solutions", "TAP, Figure 5, solutions that have converged", args):
        key = joblib.hash((X, args.epochs, args.units, args.rate))
        model = kept(args, f"tap_solutions_{key}", partial(train, X, args))
        make = partial(solutions_of, model, X[: args.starts], args)
        points = kept(args, f"tap_solutions_{key}_{args.starts}_{args.most}", make)
        sizes = [n for n in (100, 300, 1000, 3000, 10_000) if n < len(points)] + [len(points)]
        table = [[n, *(count(points[:n], same) for same in SAME)] for n in sizes]
        keep_rows(args, ["converged starts", *(f"same within {same}" for same in SAME)], table)
        share = table[-1][1 + SAME.index(0.02)] / len(points)
        compare(args, [
            ("settings", "60,000 rows, 100 epochs, 10,000 starts",
             f"{args.rows:,} rows, {args.epochs} epochs, {len(X[: args.starts]):,} starts", None),
            ("starts that converge", "", f"{len(points) / len(X[: args.starts]):.0%}", None),
            ("solutions by starts, same within 0.02", "below 10 %", f"{share:.0%}", share < 0.1),
        ])  # fmt: skip
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for k, same in enumerate(SAME):
        ax.plot(sizes, [row[1 + k] for row in table], "o-", label=f"same within {same}")
    ax.set(xscale="log", yscale="log", xlabel="starts that converge", ylabel="different solutions")
    ax.legend(fontsize="small")
    save_picture(figure, f"{args.stem}.png")
