"""Deep machines without sampling: TAPDBM on MNIST, pixels > 0.5, as in Figure 11 of the TAP paper.

Machines with two and with three hidden layers, each with and without pre-training: the mean TAP
log-likelihood of training and test rows over the joint training, and how large the weights of
each layer become; in the end AIS (100 chains), which does not rest on mean field. Logistic
regression on the last layer, on the first, and on that of an RBM. And the time of an epoch beside
that of its matrix products alone, taken in turn in the same run. For example

    python bench_tap_dbm.py --data DIR
    python bench_tap_dbm.py --data DIR --rows 5000 --sizes 256 128 64 --epochs 10

Claims: the log-likelihood of training and test rows rises; with pre-training the weights of the
upper layers do not collapse; an epoch takes at most 1.5 times its products.
"""

import _path  # noqa: F401
import matplotlib.pyplot as plt
import numpy as np
from _common import (
    interleaved,
    log_likelihood,
    make_parser,
    print_check,
    print_table,
    report,
    run_script,
    unconverged_is_fine,
)
from _data import binary, load_images
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_boltz import TAPDBM, TAPRBM
from sklearn_boltz._threads import Workers, row_blocks


def make(sizes, args, pretrain):
    return TAPDBM(
        sizes, learning_rate=args.rate, tap_max_iter=args.iterations, pretrain_max_iter=pretrain,
        max_iter=0, warm_start=True, random_state=args.seed,
    )  # fmt: skip


def course(model, X, X_test, args):
    """Train jointly; -> rows (epoch, train, test, norms), the first before the joint training."""
    n_units, entries = 784 + sum(model.hidden_layer_sizes), []
    some = X[: len(X_test)]
    while True:
        model.fit(X)
        figures = [model.tap_log_likelihood(rows).mean() for rows in (some, X_test)]
        norms = [np.linalg.norm(W) for W in model.components_]
        entries.append([model.n_iter_, *figures, *norms])
        print(
            f"{model.hidden_layer_sizes}, pre-trained {model.pretrain_max_iter}, epoch "
            f"{model.n_iter_}: train {figures[0]:.1f}, test {figures[1]:.1f}, "
            f"{figures[1] / n_units:.4f} a unit; norms {', '.join(f'{n:.1f}' for n in norms)}"
        )
        left = args.epochs - model.n_iter_
        if left <= 0:
            return np.array(entries)
        model.set_params(max_iter=min(args.every, left))


def accuracy(H, y, H_test, y_test):
    """Of a logistic regression on features, in percent."""
    classifier = LogisticRegression(max_iter=200, tol=1e-3)
    with unconverged_is_fine():
        return 100 * classifier.fit(H, y).score(H_test, y_test)


def features(models, data, args):
    """Print accuracies of a logistic regression on pixels, an RBM's units, and layers."""
    X, y, X_test, y_test = data
    rbm = TAPRBM(
        args.sizes[0], learning_rate=args.rate, tap_max_iter=args.iterations,
        max_iter=args.pretrain + args.epochs, random_state=args.seed,
    ).fit(X)  # fmt: skip
    rows = [
        ["pixels", "784", accuracy(X, y, X_test, y_test)],
        ["RBM", str(args.sizes[0]), accuracy(rbm.transform(X), y, rbm.transform(X_test), y_test)],
    ]
    for model in models:
        layers, test_layers = model.mean_hidden(X), model.mean_hidden(X_test)
        for what, k in [("first", 0), ("last", -1)]:
            name = f"{len(layers)} layers, {what}"
            figure = accuracy(layers[k], y, test_layers[k], y_test)
            rows.append([name, str(layers[k].shape[1]), figure])
        figure = accuracy(np.hstack(layers), y, np.hstack(test_layers), y_test)
        rows.append([f"{len(layers)} layers, all", str(sum(model.hidden_layer_sizes)), figure])
    print_table(["features", "units", "accuracy %"], [[*r[:2], f"{r[2]:.2f}"] for r in rows])


def products(X, model):
    """Make the matrix products of an epoch, with the same threads and blocks."""
    sizes, size = [X.shape[1], *model.hidden_layer_sizes], model.batch_size
    rng = np.random.default_rng(0)
    # What comes out goes nowhere, or it would grow out of all bounds.
    a, c, out = ([rng.random((size, n), dtype=np.float32) for n in sizes] for _ in range(3))
    weights = [rng.random((m, n), dtype=np.float32) for n, m in zip(sizes, sizes[1:], strict=False)]
    steps = [np.empty_like(W) for W in weights]

    def iterations(rows, first):
        for _ in range(model.tap_max_iter):
            for k, W in list(enumerate(weights))[first:]:
                for belief in (a, c):
                    np.matmul(belief[k][rows], W.T, out=out[k + 1][rows])
                    np.matmul(belief[k + 1][rows], W, out=out[k][rows])

    def follow(rows):
        for k, W in enumerate(weights):
            np.matmul(a[k][rows], W.T, out=out[k + 1][rows])  # where clamped iterations start
        iterations(rows, 1)
        for k, W in enumerate(weights):
            np.matmul(a[k][rows], W.T, out=out[k + 1][rows])
        iterations(rows, 0)

    with Workers(1) as workers:
        for _ in range(0, len(X), size):
            workers.map(follow, row_blocks(size), np.inf)
            for k, step in enumerate(steps):
                for _ in range(3 if k == 0 else 4):
                    np.matmul(a[k + 1].T, a[k], out=step)


def cost(X, model, repeats):
    """Median over turns of the time of an epoch by that of its products."""
    one = clone(model).set_params(
        max_iter=1, pretrain_max_iter=0, tap_tol=0.0, n_jobs=1, warm_start=False
    )

    with unconverged_is_fine():  # nothing is asked to converge
        learner = one.fit(X[:200])._training.learner

    def epoch():
        """The mini-batches of an epoch, without what is measured after it."""
        with Workers(1) as workers:
            for batch in range(0, len(X), one.batch_size):
                rows = learner.in_memory(X[batch : batch + one.batch_size])
                learner.learn(rows, one.learning_rate, workers)

    mine, alone = interleaved([epoch, lambda: products(X, model)], repeats)
    return float(np.median(mine / alone))


def draw(courses, path):
    """Log-likelihoods, and norms of the weights, over the joint training."""
    fig, axes = plt.subplots(2, len(courses), figsize=(10, 7), layout="constrained", squeeze=False)
    for (sizes, by_start), (top, bottom) in zip(courses.items(), axes.T, strict=True):
        for (name, entries), style in zip(by_start.items(), ("-", "--"), strict=True):
            top.plot(entries[:, 0], entries[:, 1], style, color="C1", label=f"train, {name}")
            top.plot(entries[:, 0], entries[:, 2], style, color="C0", label=f"test, {name}")
            for k in range(len(sizes)):
                label = f"layer {k + 1}, {name}"
                bottom.plot(entries[:, 0], entries[:, 3 + k], style, color=f"C{k + 2}", label=label)
        top.set(title="–".join(map(str, (784, *sizes))), ylabel="TAP log-likelihood, nats")
        bottom.set(xlabel="epochs of joint training", ylabel="norm of the weights", yscale="log")
        for ax in (top, bottom):
            ax.legend(frameon=False, fontsize=8)
    fig.savefig(path, dpi=110)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 128, 64])
    parser.add_argument("--pretrain", type=int, default=2, help="epochs for each layer")
    parser.add_argument("--epochs", type=int, default=6, help="of joint training")
    parser.add_argument("--every", type=int, default=1, help="epochs between evaluations")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--iterations", type=int, default=10, help="of TAP for a mini-batch")
    parser.add_argument("--temperatures", type=int, default=1000)
    parser.add_argument("--rows", type=int, help="training rows to use")
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="tap_dbm", help="of the files of results")
    args = parser.parse_args()
    X, X_test, y, y_test = load_images("mnist", args.data, args.rows, args.test_rows)
    X, X_test = binary(X), binary(X_test)
    title = f"MNIST > 0.5, {len(X)} rows, batch 100, {args.iterations} iterations a mini-batch"
    with report(args.output / f"{args.name}.txt", title):
        courses, models = {}, []
        for n_layers in (2, 3):
            sizes = tuple(args.sizes[:n_layers])
            courses[sizes] = {}
            for name, pretrain in [("pre-trained", args.pretrain), ("not", 0)]:
                model = make(sizes, args, pretrain)
                courses[sizes][name] = course(model, X, X_test, args)
                ladder = dict(n_temperatures=args.temperatures)
                by_ais, std_err = log_likelihood(model, X_test, **ladder)
                print(f"  test rows by AIS {by_ais:.2f}, standard error {std_err:.2f}\n")
                if pretrain:
                    models.append(model)
        features(models, (X, y, X_test, y_test), args)
        for (sizes, by_start), model in zip(courses.items(), models, strict=True):
            trained, not_trained = by_start["pre-trained"], by_start["not"]
            for column, rows in [(1, "train"), (2, "test")]:
                rise = trained[-1, column] - trained[0, column]
                print_check(f"{sizes}, rise of {rows} rows", "> 0", f"{rise:.1f}", rise > 0)
            # Norms by the square root of the number of weights: a root mean square.
            for k in range(1, len(sizes)):
                scale = np.sqrt(model.components_[k].size)
                now, start = trained[-1, 3 + k] / scale, trained[0, 3 + k] / scale
                without = not_trained[-1, 3 + k] / scale
                print_check(
                    f"{sizes}, layer {k + 1}, root mean square of the weights",
                    "> 0.5 of pre-trained",
                    f"{now:.3f} (pre-trained {start:.3f}, without {without:.3f})",
                    now > 0.5 * start,
                )
            ratio = cost(X[:2000], model, args.repeats)
            print_check(f"{sizes}, an epoch / its products", "<= 1.5", f"{ratio:.2f}", ratio <= 1.5)
    draw(courses, args.output / f"{args.name}.png")


if __name__ == "__main__":
    run_script(main)
