"""Figure 10 of the TAP paper: training by TAP and by adaptive TAP, and what an iteration costs.

Left: the pseudo-likelihood in the course of training, with gradients from a number of iterations of
either inference, damping 0.5, batches of 100. Right: seconds of one iteration against the size of
the batch, 784 × 500 units. Adaptive TAP inverts a matrix of all units for each row and iteration,
so that the paper's left panel, 5,000 rows of 784 pixels and 500 hidden units, takes weeks of one
core; --quick trains on scikit-learn's digits, 64 pixels.

The paper trains with adaptive TAP by the formula that TAP has for the covariances of visible and
hidden units. That is not the derivative of adaptive TAP's free energy. Here, both are tried: the
formula as printed, and the derivative.

E. W. Tramel et al. (2018), see `tap_figures3to7.py`.
"""

from functools import partial
from time import perf_counter

import _path  # noqa: F401
import joblib
import numpy as np
from _common import print_table, save_table, script
from _data import binary, load_images, load_small_digits
from _reproduction import compare, keep_curves, kept, plt, reproduction, save_picture, settings

from sklearn_boltz import TAP, TAPRBM
from sklearn_boltz.numerics._threads import Workers
from sklearn_boltz.restricted.mean_field import _vamp
from sklearn_boltz.restricted.mean_field._inference import by_tap
from sklearn_boltz.restricted.model._model import Model
from sklearn_boltz.units import Bernoulli

METHODS = {"TAP": False, "adaTAP": True}
AS_PRINTED = "adaTAP, as printed"


def step(model, V, method, n_iter, rate, workers):
    """Change the parameters by one mini-batch, Algorithm 2."""
    # All iterations are made, as in the figure, except for those that would not change a digit.
    iteration = TAP(max_iter=n_iter, adaptive=method != "TAP", tol=1e-16)
    if method == "adaTAP":
        found, points = _vamp.solve(model, V, iteration)
        covariance = _vamp.mean_covariance(model, points)
    else:
        found = by_tap(model, V, iteration, workers)
        covariance = model.weights * (found.hidden_variance.T @ found.visible_variance) / len(V)
    H, n = model.mean_hidden(V), len(V)
    slope = (H.T @ V - found.hidden_mean.T @ found.visible_mean) / n - covariance
    # In place: a model holds its arrays as they are.
    np.add(model.weights, rate * slope, out=model.weights)
    model.visible.intercept += rate * (V - found.visible_mean).mean(axis=0)
    model.hidden.intercept += rate * (H - found.hidden_mean).mean(axis=0)


def model_of(W, b, c):
    return Model(W, Bernoulli(b), Bernoulli(c))


def train(X, method, n_iter, args, workers):
    """-> mean log-pseudo-likelihood after each epoch; NaN where the training broke down."""
    rng, path = np.random.default_rng(0), np.full(args.epochs + 1, np.nan)
    estimator = TAPRBM(args.hidden, max_iter=0, init=0.01, random_state=0).fit(X)
    model = model_of(estimator.components_.astype(float), estimator.intercept_visible_,
                     estimator.intercept_hidden_)  # fmt: skip
    for epoch in range(args.epochs + 1):
        estimator.components_ = model.weights
        estimator.intercept_visible_ = model.visible.intercept
        estimator.intercept_hidden_ = model.hidden.intercept
        path[epoch] = estimator.log_pseudo_likelihood(X[:1000]).mean()
        if epoch == args.epochs or not np.isfinite(model.weights).all():
            return path
        order = rng.permutation(len(X))
        for first in range(0, len(X), args.batch):
            rows = order[first : first + args.batch]
            step(model, X[rows], method, n_iter, args.rate, workers)


def seconds_of_an_iteration(sizes, workers, n_visible=784, n_hidden=500):
    """For each method and size of a batch."""
    rng = np.random.default_rng(0)
    W = 0.05 * rng.normal(size=(n_hidden, n_visible))
    model = model_of(W, np.zeros(n_visible), np.zeros(n_hidden))
    V = binary(rng.random((max(sizes), n_visible))).astype(float)
    found = {}
    for method, adaptive in METHODS.items():
        n_iter = 100 if method == "TAP" else 1
        for size in sizes:
            start = perf_counter()
            by_tap(model, V[:size], TAP(max_iter=n_iter, adaptive=adaptive, tol=0.0), workers)
            found[method, size] = (perf_counter() - start) / n_iter
    return found


def draw(paths, seconds, args):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    styles = {"TAP": "-", "adaTAP": "--", AS_PRINTED: ":"}
    for (method, n_iter), path in paths.items():
        color = f"C{args.iterations.index(n_iter)}"
        left.plot(path, styles[method], color=color, label=f"{method}, {n_iter} iterations")
    # Some trainings break down.
    first, best = next(iter(paths.values()))[0], max(np.nanmax(path) for path in paths.values())
    left.set(xlabel="epoch", ylabel="log-pseudo-likelihood, nats", title=args.data_set,
             ylim=(1.2 * first, 0.95 * best))  # fmt: skip
    left.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    for method in METHODS:
        right.loglog(args.sizes, [seconds[method, size] for size in args.sizes], "o-", label=method)
    right.set(xlabel="rows of a batch", title="seconds of an iteration, 784 × 500 units")
    right.legend()
    save_picture(figure, f"{args.stem}.png")


@script
def main():
    args = settings(
        __doc__,
        full=dict(data_set="mnist", rows=5_000, batch=100, hidden=500, epochs=50, rate=0.001,
                  iterations=[3, 10, 100], printed=[3, 10, 100], sizes=[1, 3, 10, 30, 100]),
        quick=dict(data_set="digits", rows=300, batch=10, hidden=16, epochs=10, rate=0.3,
                   iterations=[3, 10], printed=[3, 10], sizes=[1, 3, 10, 30]),
    )  # fmt: skip
    # As float64: adaptive TAP needs the digits.
    if args.data_set == "digits":
        X = np.random.default_rng(0).permutation(load_small_digits()[0])
    else:
        X, *_ = load_images("mnist", args.data, args.rows)
    X = binary(X[: args.rows]).astype(float)
    with Workers(1) as workers, reproduction("tap_figure10", "TAP, Figure 10", args):
        paths = {}
        for method in (*METHODS, AS_PRINTED):
            for n_iter in args.printed if method == AS_PRINTED else args.iterations:
                chosen = (X, method, n_iter, args.hidden, args.epochs, args.batch, args.rate)
                path = partial(train, X, method, n_iter, args, workers)
                paths[method, n_iter] = kept(args, f"tap_10_{joblib.hash(chosen)}", path)
                print(f"{method}, {n_iter} iterations: {paths[method, n_iter][-1]:.2f}", flush=True)
        seconds = seconds_of_an_iteration(args.sizes, workers)
        print()
        rows = [[method, size, f"{value:.2e}"] for (method, size), value in seconds.items()]
        print_table(["", "rows", "seconds of an iteration"], rows)
        save_table(f"{args.stem}_rows.csv", ["method", "rows", "seconds"], rows)
        curves = {f"{method}, {n_iter}": path for (method, n_iter), path in paths.items()}
        keep_curves(args, range(args.epochs + 1), curves, 3)
        few = args.iterations[0]
        plain, mended, printed = (
            {n_iter: path[-1] for (name, n_iter), path in paths.items() if name == method}
            for method in (*METHODS, AS_PRINTED)
        )
        poor, enough = mended.pop(few), [*plain.values(), *mended.values()]
        size = max(args.sizes)
        slower = seconds["adaTAP", size] / seconds["TAP", size]
        compare(args, [
            ("settings", "MNIST, 5,000 rows, 784 × 500 units, rate 0.001",
             f"{args.data_set}, {len(X)} rows, {X.shape[1]} × {args.hidden} units, "
             f"rate {args.rate:g}, batches of {args.batch}", None),
            (f"log-pseudo-likelihood in the end, all but adaTAP with {few} iterations",
             "equivalent", f"{min(enough):.2f} to {max(enough):.2f}",
             max(enough) - min(enough) < 1),
            (f"adaTAP with {few} iterations", "poorer", f"{poor:.2f}",
             bool(poor < min(enough) - 1)),
            *((f"{AS_PRINTED}, {n_iter} iterations", "poorer" if n_iter == few else "equivalent",
               f"{end:.2f}", (end < min(enough) - 1) == (n_iter == few))
              for n_iter, end in printed.items()),
            (f"an iteration of adaTAP by one of TAP, {size} rows", "about 1000",
             f"{slower:.0f}", 300 < slower < 3_000),
        ])  # fmt: skip
    draw(paths, seconds, args)
