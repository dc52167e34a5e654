"""Features for a linear classifier from RBMs, beside pixels and untrained hidden units.

``--parts example`` is scikit-learn's example of `BernoulliRBM`: digits and the same shifted by a
pixel, 100 units, a logistic regression with C = 6000. (Its ``tol=1`` was meant for a sum over the
rows; that of the mean is 1e-4.) ``--parts images`` has both machines with the same settings, 256
units, on 5,000 rows of MNIST and on the Caltech-101 Silhouettes, with standardised features and C
= 0.03. Seconds are of the processor, without the classifier.

``--parts mnist`` gives more time, and chooses C:

Logistic regression, the same for all, on standardised features; its C is chosen on a fifth of
the training rows. All machines have as many hidden units and learn for as many seconds of the
processor, with one thread. `BernoulliRBM` has four settings: two learning rates and two sizes of
mini-batches. First the settings of one seed on 20,000 rows of MNIST, then the best over more seeds.
"""

from functools import partial
from time import process_time

import _path  # noqa: F401
import numpy as np
from _baselines import BernoulliRBMPeer
from _common import (
    make_parser,
    print_check,
    print_table,
    processor_timed,
    report,
    script,
    unconverged_is_fine,
)
from _data import load_images, load_small_digits, shifted
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, minmax_scale

from sklearn_boltz import SDCPRBM, TAP, TAPRBM

SCALE = dict(init="scaled")
PAPER = TAP(max_iter=10, n_gibbs=0)
# The user guide recommends this temperature of `transform`.
HOT = 3.0
# Learning rates and sizes of mini-batches.
PEER_SETTINGS = [(0.05, 10), (0.05, 100), (0.1, 10), (0.1, 100)]
# Standard deviations of the weights of untrained units.
UNTRAINED = [0.1, 0.2, 0.5]
# Inverse strengths of the penalty of the classifier.
PENALTIES = [0.01, 0.03, 0.1, 0.3]


# What is compared.


def hidden_means(weights, biases, temperature, X):
    """P(h = 1 | v) of binary units with weights and biases, at a temperature, in float32."""
    weights, biases = weights.astype(np.float32), biases.astype(np.float32)
    return expit((X @ weights.T + biases) / X.dtype.type(temperature))


def train_ours(model, X, seconds):
    """Train whole epochs as long as another one fits in; -> model, epochs, seconds."""
    model.set_params(max_iter=1, warm_start=True, track_likelihood=False, n_jobs=1)
    start, last = process_time(), 0.0
    while True:
        before = process_time()
        with unconverged_is_fine():
            model.fit(X)
        now = process_time()
        last = max(last, now - before)
        if now - start + last > seconds:
            return model, float(model.n_iter_), now - start


def train_peer(setting, n_hidden, X, seconds, seed):
    """Train scikit-learn's machine, to the mini-batch; -> model, epochs, seconds."""
    rate, batch_size = setting
    peer = BernoulliRBMPeer(X, n_hidden, learning_rate=rate, batch_size=batch_size, seed=seed)
    return peer.model, *peer.train(seconds)


def classified(X, X_test, y, y_test):
    """-> (error of the test rows, error of the rows that C is chosen on, C), errors in per cent.

    C is chosen on at most 5,000 rows after training on at most 20,000 others.
    """
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    n_valid = min(len(X) // 5, 5000)
    train, valid = slice(n_valid, n_valid + 20_000), slice(n_valid)

    def fitted(C, rows):
        with unconverged_is_fine():
            return LogisticRegression(C=C, max_iter=100).fit(X[rows], y[rows])

    def error(classifier, X, y):
        return 100 * (1 - classifier.score(X, y))

    found = {C: error(fitted(C, train), X[valid], y[valid]) for C in PENALTIES}
    C = min(found, key=found.get)
    return error(fitted(C, slice(None)), X_test, y_test), found[C], C


# The settings of the example, and the same on other data.


def load_nudged():
    """Rows and classes of training and test: of scikit-learn's example."""
    X, y = load_small_digits()
    X = minmax_scale(np.concatenate([X, shifted(X)])).astype(np.float32)
    return train_test_split(X, np.tile(y, 5), test_size=0.2, random_state=0)


def measured(make, data, classifier, seeds):
    """Means over seeds: accuracy, and seconds of the fit."""
    X, X_test, y, y_test = data
    found = []
    for seed in range(seeds):
        model, seconds = processor_timed(make(random_state=seed).fit, X)
        with unconverged_is_fine():
            classifier.fit(model.transform(X), y)
        found.append([classifier.score(model.transform(X_test), y_test), seconds])
    return np.mean(found, axis=0)


def compare_example(title, data, n_hidden, classifier, asked, args):
    """Print the accuracies of a data set, and what was asked for."""
    machines = {
        "BernoulliRBM": partial(BernoulliRBM, learning_rate=0.06),
        "SDCPRBM.for_features": partial(SDCPRBM.for_features, n_jobs=1),
    }
    rows = [
        [name, *measured(partial(make, n_hidden), data, classifier, args.seeds)]
        for name, make in machines.items()
    ]
    print(f"{title}: {len(data[0])} rows, {n_hidden} hidden units, {args.seeds} seeds\n")
    print_table(["features", "accuracy", "seconds"], rows, ".3f,.1f")
    (_, theirs, peer_seconds), (_, ours, seconds) = rows
    ratio = seconds / peer_seconds
    met = ours >= max(asked, theirs) and ratio <= 1.5
    what = f"{title}: accuracy of for_features, times the seconds of BernoulliRBM"
    print_check(what, f">= {max(asked, theirs):.3f}, <= 1.5", f"{ours:.3f}, {ratio:.2f}", met)
    print()


def compare_on_images(args):
    """Print the tables of MNIST and of the silhouettes."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.03))
    for name in ("mnist", "caltech"):
        X, X_test, y, y_test = load_images(name, args.data, args.few_rows)
        data = X, X_test, y.ravel(), y_test.ravel()
        compare_example(name, data, args.hidden, classifier, 0.0, args)


# The part of more time. A row of the table: its title, both errors, C, epochs and seconds.


def row_of(data, title, transform=None, figures=("", "")):
    """That of what a function makes of rows, or of pixels."""
    X, X_test, y, y_test = data
    if transform is not None:
        X, X_test = transform(X), transform(X_test)
    return [title, *classified(X, X_test, y, y_test), *figures]


def rows_of(data, title, model, epochs, seconds):
    """Those of the features of a machine, at the temperatures 1 and 3."""
    figures = f"{epochs:.1f}", f"{seconds:.1f}"
    units = model.components_, model.intercept_hidden_
    return [
        row_of(data, title + words, partial(hidden_means, *units, temperature), figures)
        for temperature, words in ((1.0, ""), (HOT, f", temperature {HOT:g}"))
    ]


def name_of(setting):
    """A setting of `BernoulliRBM` in words."""
    return "BernoulliRBM, rate {:g}, batches of {}".format(*setting)


def our_machines(n_hidden, seed):
    """The settings of ours by their names."""
    features = partial(SDCPRBM.for_features, n_hidden, random_state=seed)
    return {
        "SDCPRBM, PCD": features(),
        "SDCPRBM, CD": features(chains="data"),
        "SDCPRBM, centred CD": features(chains="data", centered=True),
        "SDCPRBM, CS-DCP": SDCPRBM(n_hidden, random_state=seed, **SCALE),
        "TAPRBM": TAPRBM(n_hidden, inference=PAPER, random_state=seed, **SCALE),
    }


def compare(data, args):
    """Print the table of one seed for MNIST; -> the best setting of the peers."""
    X, n_hidden, seconds = data[0], args.hidden, args.seconds
    rows = [row_of(data, "pixels")]
    for scale in UNTRAINED:
        weights = np.random.default_rng(0).normal(0, scale, (n_hidden, X.shape[1]))
        transform = partial(hidden_means, weights, np.zeros(n_hidden), 1.0)
        rows.append(row_of(data, f"untrained, N(0, {scale:g}²)", transform))
    for setting in PEER_SETTINGS:
        rows += rows_of(data, name_of(setting), *train_peer(setting, n_hidden, X, seconds, 0))
    for title, machine in our_machines(n_hidden, 0).items():
        rows += rows_of(data, title, *train_ours(machine, X, seconds))
    print(
        f"MNIST: {len(X)} training rows, {len(data[1])} test rows, {n_hidden} hidden units, "
        f"{seconds:g} seconds of the processor\n"
    )
    header = ["features", "error %", "validation", "C", "epochs", "seconds"]
    print_table(header, rows, ".2f,.2f,g")
    errors = {title: error for title, error, *_ in rows}
    setting = min(PEER_SETTINGS, key=lambda setting: errors[name_of(setting)])
    gain = errors[name_of(setting)] - errors[f"SDCPRBM, PCD, temperature {HOT:g}"]
    what = f"PCD at temperature {HOT:g} below the best of four settings of BernoulliRBM by"
    print_check(what, ">= 0.5", f"{gain:.2f}", gain >= 0.5)
    print()
    return setting


def more_seeds(data, setting, args):
    """Print the errors of more seeds: of ours, and of the best setting of `BernoulliRBM`."""
    lines = []
    for seed in range(1, args.seeds):
        machine = SDCPRBM.for_features(args.hidden, random_state=seed)
        trained = {
            "BernoulliRBM": train_peer(setting, args.hidden, data[0], args.seconds, seed),
            "SDCPRBM, PCD": train_ours(machine, data[0], args.seconds),
        }
        rows = sum((rows_of(data, title, *fit) for title, fit in trained.items()), [])
        lines.append([seed, *(error for _, error, *_ in rows)])
    print(f"more seeds; {name_of(setting)}\n")
    print_table(["seed", *(row[0] for row in rows)], lines, ".2f,.2f,.2f,.2f")


@script
def main():
    parser = make_parser(__doc__, seeds=3)
    parts = ["example", "images", "mnist"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--few-rows", type=int, default=5_000, help="of the images")
    parser.add_argument("--rows", type=int, default=20_000, help="training rows with more time")
    parser.add_argument("--hidden", type=int, default=256, help="hidden units")
    parser.add_argument("--seconds", type=float, default=20.0, help="of training")
    args = parser.parse_args()
    title = "Features of restricted Boltzmann machines"
    if "example" in args.parts:
        with report(args.output / "rbm_features_example.txt", title):
            classifier = LogisticRegression(C=6000, solver="newton-cg")
            compare_example("nudged digits", load_nudged(), 100, classifier, 0.945, args)
    if "images" in args.parts:
        with report(args.output / "rbm_features_images.txt", title):
            compare_on_images(args)
    if "mnist" in args.parts:
        data = load_images("mnist", args.data, args.rows)
        with report(args.output / "rbm_features_mnist.txt", title):
            setting = compare(data, args)
            if args.seeds > 1:
                more_seeds(data, setting, args)
