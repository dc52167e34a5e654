"""Training without sampling: TAPRBM on MNIST, pixels > 0.5, and what its likelihood is worth.

Side by side after each few epochs: the mean test log-likelihood by TAP, by AIS (100 chains,
2,000 temperatures) and the pseudo-likelihood; and an epoch's time beside that of its matrix
products alone, taken in turn in the same run. For example

    python bench_tap_mnist.py --data DIR
    python bench_tap_mnist.py --data DIR --hidden 500 --epochs 5

Claims for 100 hidden units: AIS ≥ −101 at 20 epochs; an epoch takes at most 1.4 times its
products.
"""

from time import perf_counter

import _path  # noqa: F401
import numpy as np
from _common import (
    log_likelihood,
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    unconverged_is_fine,
)
from _data import load_bits
from sklearn.base import clone

from sklearn_boltz import TAPRBM
from sklearn_boltz._threads import Workers, row_blocks


def products(X, model):
    """Make the matrix products of an epoch, with the same threads and blocks."""
    n_hidden, size, rng = model.n_components, model.batch_size, np.random.default_rng(0)
    # What comes out goes nowhere, or it would grow out of all bounds.
    V, c_v, to_visible = (rng.random((size, X.shape[1]), dtype=np.float32) for _ in range(3))
    H, c_h, to_hidden = (rng.random((size, n_hidden), dtype=np.float32) for _ in range(3))
    W = rng.standard_normal((n_hidden, X.shape[1]), dtype=np.float32)
    squares, step = W * W, np.empty_like(W)

    def follow(rows):
        np.matmul(V[rows], W.T, out=to_hidden[rows])
        for _ in range(model.tap_max_iter):
            np.matmul(H[rows], W, out=to_visible[rows])
            np.matmul(c_h[rows], squares, out=to_visible[rows])
            np.matmul(V[rows], W.T, out=to_hidden[rows])
            np.matmul(c_v[rows], squares.T, out=to_hidden[rows])

    def ascend(units):
        for _ in range(3):
            np.matmul(H[:, units].T, V, out=step[units])

    with Workers() as workers:
        for _ in range(0, len(X), size):
            workers.map(follow, row_blocks(size), np.inf)
            workers.map(ascend, row_blocks(n_hidden, 50), np.inf)


def times_of_an_epoch(X, model, repeats=3):
    """Least seconds of an epoch, all iterations made, and of its products alone."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        products(X, model)
        alone = perf_counter() - start
        with unconverged_is_fine():  # nothing is asked to converge
            one = clone(model).set_params(max_iter=1, tap_tol=0.0).fit(X)
        seconds.append((one.history_["seconds"][0], alone))
    return np.min(seconds, axis=0)


def evaluate(model, X_test, args):
    """TAP, AIS and its standard error, and the pseudo-likelihood of test rows."""
    return [
        model.tap_log_likelihood(X_test).mean(),
        *log_likelihood(model, X_test, n_temperatures=args.temperatures),
        model.log_pseudo_likelihood(X_test[:1000]).mean(),
    ]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--iterations", type=int, default=10, help="of TAP for a mini-batch")
    parser.add_argument("--order", type=int, default=2, help="1 is naive mean field")
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--rows", type=int, help="training rows to use")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="tap_mnist", help="of the file of results")
    args = parser.parse_args()
    X, X_test = load_bits("mnist", args.data, args.rows)
    model = TAPRBM(
        args.hidden, learning_rate=args.rate, tap_max_iter=args.iterations, order=args.order,
        alpha=args.alpha, persistent=args.persistent, warm_start=True, random_state=args.seed,
    )  # fmt: skip
    title = f"MNIST > 0.5, {len(X)} rows, {args.hidden} hidden units, {args.iterations} iterations"
    with report(args.output / f"{args.name}.txt", title):
        rows = []
        while (done := getattr(model, "n_iter_", 0)) < args.epochs:
            model.set_params(max_iter=min(args.every, args.epochs - done)).fit(X)
            last = {name: values[-1] for name, values in model.history_.items()}
            values = evaluate(model, X_test, args)
            rows.append([
                str(model.n_iter_), *(f"{value:.2f}" for value in values),
                f"{last['n_solutions']:.0f}", f"{last['share_converged']:.2f}",
                f"{model.history_['seconds'].sum():.0f}",
            ])  # fmt: skip
            print(" ".join(rows[-1]))
        print()
        header = ["epoch", "TAP", "AIS", "std. err.", "pseudo", "solutions", "converged", "s"]
        print_table(header, rows)
        epoch, alone = times_of_an_epoch(X, model)
        print(f"an epoch {epoch:.2f} s, its matrix products alone {alone:.2f} s")
        print_check("an epoch / its products", "<= 1.4", f"{epoch / alone:.2f}",
                    epoch <= 1.4 * alone)  # fmt: skip
        if args.hidden == 100 and args.epochs >= 20:
            print_check("AIS", ">= -101", f"{values[1]:.2f}", values[1] >= -101)


if __name__ == "__main__":
    run_script(main)
