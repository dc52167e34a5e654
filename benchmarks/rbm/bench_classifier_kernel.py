"""Speed of RBMClassifier with 500 hidden units, 784 features and 10 classes.

Claims: the sum over rows, classes and hidden units, with its gradient, takes at most a fifth of the
time that NumPy takes, in float32 and float64; a step of Adam at most half. An epoch of 50,000 rows
takes at most 1.6 times as long as one of scikit-learn's `MLPClassifier((500,))` with its batch of
200, in the same type.

The rows are those of MNIST, or random ones of as many grey levels without --data. All are run in
turn in one process, with one thread each: compare the ratios, not the times, which are those of the
processor.
"""

import warnings
from time import process_time

import _path  # noqa: F401
import numpy as np
from _common import interleaved, make_parser, print_check, print_table, report, run_script
from _data import load_images
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from sklearn_boltz import RBMClassifier
from sklearn_boltz.restricted.model._class_kernel import class_gradients, class_log_weights
from sklearn_boltz.restricted.training._adam_kernel import adam_step

N_VISIBLE, N_HIDDEN, N_CLASSES = 784, 500, 10


def numpy_gradients(fields, label_fields, bias, codes, target, share):
    """The lines that the kernel equals, with the exponential shared and products by BLAS."""
    field = fields[:, None] + label_fields
    small = np.exp(-np.abs(field))
    out = bias + (np.maximum(field, 0) + np.log1p(small)).sum(axis=2)
    means = np.where(field > 0, 1, small) / (1 + small)
    E = target[:, None] * (codes[:, None] == np.arange(len(bias)))
    E = (E + share[:, None] * softmax(out, axis=1)).astype(fields.dtype)
    gradient = np.einsum("ny,nyj->yj", E, means, optimize=True)
    return out, gradient, E.sum(axis=0), (E[:, None] @ means)[:, 0]


def plain_gradients(fields, label_fields, bias, codes, target, share):
    """The same by the functions of NumPy and SciPy that the docstring of the kernel names."""
    field = fields[:, None] + label_fields
    out = bias + np.logaddexp(0, field).sum(axis=2)
    E = target[:, None] * (codes[:, None] == np.arange(len(bias)))
    E = (E + share[:, None] * softmax(out, axis=1)).astype(fields.dtype)
    means = expit(field)
    gradient = np.einsum("ny,nyj->yj", E, means)
    return out, gradient, E.sum(axis=0), np.einsum("ny,nyj->nj", E, means)


def kernels(dtype, n_rows=200):
    """Seconds of the kernels and of NumPy."""
    rng = np.random.default_rng(0)
    fields = rng.normal(0, 3, (n_rows, N_HIDDEN)).astype(dtype)
    label_fields = rng.normal(0, 1, (N_CLASSES, N_HIDDEN)).astype(dtype)
    bias = rng.normal(size=N_CLASSES).astype(dtype)
    codes = rng.integers(N_CLASSES, size=n_rows)
    factors = np.full(n_rows, 1 / n_rows), np.full(n_rows, -1 / n_rows)
    out, sums = np.empty((n_rows, N_CLASSES)), np.zeros_like(label_fields)
    biases, work = np.zeros(N_CLASSES), np.empty_like(fields)
    x, mean, square = np.zeros((3, N_VISIBLE * N_HIDDEN), dtype)
    slopes = rng.normal(0, 1e-3, x.shape).astype(dtype)

    def gradients():
        work[...] = fields
        class_gradients(work, label_fields, bias, codes, *factors, out, sums, biases)

    def numpy_adam():
        mean[...] = 0.9 * mean + 0.1 * slopes
        square[...] = 0.999 * square + 0.001 * slopes**2
        x[...] += 1e-3 * mean / (np.sqrt(square) + 1e-8)

    functions = {
        "gradient, kernel": gradients,
        "gradient, NumPy by the docstring": lambda: plain_gradients(
            fields, label_fields, bias, codes, *factors
        ),
        "gradient, faster NumPy": lambda: numpy_gradients(
            fields, label_fields, bias, codes, *factors
        ),
        "sums, kernel": lambda: class_log_weights(fields, label_fields, bias, out),
        "sums, NumPy": lambda: bias + np.logaddexp(0, fields[:, None] + label_fields).sum(axis=2),
        "Adam, kernel": lambda: adam_step(x, slopes, mean, square, 0.9, 0.999, 1e-8, 1e-3),
        "Adam, NumPy": numpy_adam,
    }
    return dict(zip(functions, interleaved(functions.values(), 20, process_time), strict=True))


def epochs(X, y, repeats):
    """An epoch of each, from `fit` to its end."""

    def classifier(**options):
        options = {"early_stopping": False, "max_iter": 1, "n_jobs": 1, "random_state": 0} | options
        return lambda: RBMClassifier(N_HIDDEN, **options).fit(X, y)

    functions = {
        "MLPClassifier, batch 200": lambda: MLPClassifier(
            (N_HIDDEN,), max_iter=1, random_state=0
        ).fit(X, y),
        "RBMClassifier, alpha=0, batch 200": classifier(alpha=0.0, batch_size=200),
        "RBMClassifier, alpha=0, batch 100": classifier(alpha=0.0, batch_size=100),
        "RBMClassifier, alpha=.01, batch 200": classifier(batch_size=200),
        "RBMClassifier, alpha=.01, batch 100": classifier(batch_size=100),
    }
    return dict(zip(functions, interleaved(functions.values(), repeats, process_time), strict=True))


def ratio(seconds, above, below):
    """Median ratio of the turns."""
    return float(np.median(seconds[above] / seconds[below]))


def show(title, seconds):
    """A table of milliseconds, and of ratios to the first."""
    print(title)
    first = next(iter(seconds))
    print_table(
        ["", "median ms", "min ms", f"ratio to {first}"],
        [
            [name, f"{1e3 * np.median(s):.2f}", f"{1e3 * s.min():.2f}",
             f"{ratio(seconds, name, first):.2f}"]
            for name, s in seconds.items()
        ],
    )  # fmt: skip


def check(what, limit, measured, at_least=False):
    met = measured >= limit if at_least else measured <= limit
    print_check(what, f"{'≥' if at_least else '≤'} {limit}", f"{measured:.2f}", met)


def rows(n_rows, folder):
    """Images and their digits; random ones of as many grey levels without a folder."""
    if folder is not None:
        X, _, y, _ = load_images("mnist", folder, n_rows)
        return X, y
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, N_VISIBLE), dtype=np.float32)
    return np.where(rng.random(X.shape) < 0.81, 0, X), rng.integers(N_CLASSES, size=n_rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    title = f"Speed of RBMClassifier, {N_VISIBLE} × {N_HIDDEN} units, one thread, processor time"
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1), report(args.output / "rbm_classifier_speed.txt", title):
        for dtype in (np.float32, np.float64):
            name = np.dtype(dtype).name
            found = kernels(dtype)
            show(f"200 rows, {N_CLASSES} classes, {N_HIDDEN} units, {name}", found)
            for what, numpy, limit in [
                ("gradient", "gradient, faster NumPy", 5), ("sums", "sums, NumPy", 5),
                ("Adam", "Adam, NumPy", 2),
            ]:  # fmt: skip
                faster = ratio(found, numpy, f"{what}, kernel")
                check(f"times faster than NumPy: {what}, {name}", limit, faster, at_least=True)
        X, y = rows(args.rows, args.data)
        found = epochs(X, y, args.repeats)
        show(f"an epoch of {len(X):,} rows, float32", found)
        for name, seconds in list(found.items())[1:]:
            measured = float(np.median(seconds / found["MLPClassifier, batch 200"]))
            check(f"{name} / MLPClassifier", 1.6, measured)


if __name__ == "__main__":
    run_script(main)
